/* No scaling: the frequencies as they are, or divided pair by pair (GGUF's rope_freqs, in which llama.cpp's converter
 * writes Llama 3.1's rule). */
#include "core/schemes/scalings/scaling.h"

static void steps(const struct pe_scaling_pair *p, struct pe_ggml_steps *g)
{
    (void)p;
    (void)g;
}

static const struct pe_formula_line formula[] = {
    {"w'_c = { w_c/divisors[c] if divisors is given; w_c }", "no scaling; GGUF files may divide each pair"},
    {NULL, NULL},
};

const struct pe_scaling_rule pe_scaling_default = {
    .name = "default",
    .formula = formula,
    .alias = "mrope", /* Qwen2-VL */
    .about = "none",
    .takes = "divisors",
    .alias_about = "mrope for default with an mrope_section",
    .in_transformers = true,
    .steps = steps,
};
