/* Faults of arithmetic: tables computed in few bits (core/diagnosis/model/recipe.c). */
#include "core/diagnosis/diagnosis.h"

#define OF_WAVES (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ENCODING))

static bool set_recipe(struct pe_edit *edit, enum pe_recipe recipe)
{
    edit->transforms.recipe = recipe;
    return true;
}

#define RECIPE(name, recipe)                                                                                           \
    static bool name##_apply(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)                                   \
    {                                                                                                                  \
        (void)d;                                                                                                       \
        (void)i;                                                                                                       \
        return set_recipe(edit, recipe);                                                                               \
    }                                                                                                                  \
    const struct pe_fault pe_fault_##name = {.evidence = OF_WAVES, .n_alternatives = 1, .apply = name##_apply};

RECIPE(angles_f32, PE_RECIPE_F32)
RECIPE(inv_freq_bf16, PE_RECIPE_BF16_INV_FREQ)
RECIPE(inv_freq_f16, PE_RECIPE_F16_INV_FREQ)
RECIPE(angles_bf16, PE_RECIPE_BF16)
