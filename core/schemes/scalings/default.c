/* No scaling: the frequencies as they are. */
#include "core/schemes/scalings/scaling.h"

const struct pe_scaling_rule pe_scaling_default = {
    .name = "default",
    .alias = "mrope", /* Qwen2-VL */
    .about = "none",
    .alias_about = "mrope for default with an mrope_section",
    .in_transformers = true,
};
