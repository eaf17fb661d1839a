/* transformers 5.
 * Source: transformers, src/transformers/modeling_rope_utils.py: RotaryEmbeddingConfigMixin
 * (convert_rope_params_to_dict, standardize_rope_params), main as stored, and 5.0.0.dev0 at 23cf3ee4c77e. */
#include "core/models/readers/readers.h"

static const struct pe_reader_rule rules[] = {
    {.name = "default"},
    {.name = "linear"},
    {.name = "dynamic"},
    {.name = "yarn", .original = PE_OUTSIDE_ELSE},
    {.name = "longrope", .original = PE_OUTSIDE_ELSE},
    {.name = "llama3", .original = PE_OUTSIDE_ELSE},
    {.name = "proportional"},
    {.name = NULL},
};

const struct pe_reader pe_reader_transformers5 = {
    .name = "transformers5",
    .label = "transformers 5",
    .about = {"as transformers 5 reads it", "transformers 5: rope_scaling or rope_parameters, which has the base too"},
    .source = "transformers 23cf3ee",
    .objects = "rope_scaling|rope_parameters",
    .base = PE_INSIDE_ELSE,
    .share = PE_OUTSIDE_ELSE,
    .unread_by_layer = "truncate",
    .rules = rules,
};
