/* transformers 4.56 and 4.57.
 * Source: transformers, src/transformers/modeling_rope_utils.py at 3927ffed31e3: ROPE_INIT_FUNCTIONS; the explicit
 * factor of YaRN came with 6451294f6f. */
#include "core/models/readers/readers.h"

static const struct pe_reader_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "dynamic"},
    {.name = "yarn", .original = PE_INSIDE},
    {.name = "longrope", .original = PE_OUTSIDE},
    {.name = "llama3", .original = PE_INSIDE, .original_is_needed = true},
    {.name = NULL},
};

const struct pe_reader pe_reader_transformers4 = {
    .name = "transformers4",
    .label = "transformers 4",
    .about = {"as transformers 4 reads it",
              "transformers 4.56 and 4.57: rope_theta beside rope_scaling, and no rope_parameters"},
    .source = "transformers 3927ffe",
    .objects = "rope_scaling",
    .base = PE_OUTSIDE,
    .share = PE_OUTSIDE,
    .rules = rules,
    .before = "4.56",
    .unread_before = "factor",
    .rules_before = "yarn|longrope",
};
