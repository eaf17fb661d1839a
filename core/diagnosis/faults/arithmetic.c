/* Faults of arithmetic: tables computed in few bits (evidence/waves.c). */
#include "core/diagnosis/diagnosis.h"

#define OF_WAVES (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ENCODING))

/* A list of frequencies shows their bits. */
static bool set_recipe(struct pe_diagnosis *d, struct pe_edit *edit, enum pe_recipe recipe)
{
    enum pe_dtype dtype = recipe == PE_RECIPE_F16_INV_FREQ ? PE_F16 : PE_BF16;
    if (d->evidence.kind->id == PE_OF_LADDER && d->evidence.narrow != dtype && !d->evidence.is_typed)
        return false;
    edit->transforms.recipe = recipe;
    return true;
}

#define RECIPE(name, texts, evidence_, not_of_, cures_, ...)                                                           \
    static bool name##_apply(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)                                   \
    {                                                                                                                  \
        static const enum pe_recipe recipes[] = {__VA_ARGS__};                                                         \
        return set_recipe(d, edit, recipes[i]);                                                                        \
    }                                                                                                                  \
    const struct pe_fault pe_fault_##name = {texts,                                                                    \
                                             .evidence = (evidence_),                                                  \
                                             .not_of = (not_of_),                                                      \
                                             .n_alternatives =                                                         \
                                                 sizeof((enum pe_recipe[]){__VA_ARGS__}) / sizeof(enum pe_recipe),     \
                                             .apply = name##_apply,                                                    \
                                             .cures = (cures_)};

/* Explained by it; beside a configuration that is exact; beside float32 angles of other steps. */
static const char *const of_angles_f32[] = {
    "Your angles are computed in float32, as in most code; \"arith\":\"float32\" gives such angles.",
    ("Your angles are computed in float32, as in most code: the largest difference is {largest}, in row {row}. "
     "\"arith\":\"float32\" gives such angles."),
    ("Your angles are computed in float32 by other steps than \"arith\":\"float32\": the largest difference is "
     "{largest}, in row {row}, which is what right code may lose."),
};

RECIPE(angles_f32,
       FAULT_TEXTS("angles_f32", "arithmetic", ARITHMETIC, 1, "float32 angles",
                   "Angles are computed in float32, so their error grows with the position.", of_angles_f32),
       OF_WAVES, PE_EVIDENCE_BIT(ANGLES), NULL, PE_RECIPE_F32)
RECIPE(inv_freq_bf16,
       FAULT_TEXT("inv_freq_bf16", "arithmetic", ARITHMETIC, 2, "bfloat16 frequencies",
                  "The frequencies are rounded to bfloat16 before angles are computed.",
                  "The frequencies were rounded to bfloat16."),
       OF_WAVES | PE_EVIDENCE_BIT(LADDER), 0, pe_cures_ladder, PE_RECIPE_BF16_INV_FREQ, PE_RECIPE_BF16_INV_FREQ_DIVIDED)
RECIPE(inv_freq_f16,
       FAULT_TEXT("inv_freq_f16", "arithmetic", ARITHMETIC, 2, "float16 frequencies",
                  "The frequencies are rounded to float16 before angles are computed.",
                  "The frequencies were rounded to float16."),
       OF_WAVES | PE_EVIDENCE_BIT(LADDER), 0, pe_cures_ladder, PE_RECIPE_F16_INV_FREQ)
RECIPE(angles_bf16,
       FAULT_TEXT("angles_bf16", "arithmetic", ARITHMETIC, 2, "bfloat16 angles",
                  "Positions, frequencies and angles are rounded to bfloat16.",
                  "Positions, frequencies and angles were rounded to bfloat16."),
       OF_WAVES, 0, NULL, PE_RECIPE_BF16, PE_RECIPE_BF16_DIVIDED)

RECIPE(angles_f16,
       FAULT_TEXT("angles_f16", "arithmetic", ARITHMETIC, 2, "float16 angles",
                  "Positions, frequencies and angles are rounded to float16.",
                  "Positions, frequencies and angles were rounded to float16."),
       OF_WAVES, 0, NULL, PE_RECIPE_F16)
RECIPE(angles_tf32,
       FAULT_TEXT("angles_tf32", "arithmetic", ARITHMETIC, 2, "TF32 angles",
                  "Positions and frequencies are rounded to the 11 bits of TF32 before they are multiplied.",
                  "Angles are computed by a matrix product in TF32, which keeps 11 bits of positions and frequencies."),
       OF_WAVES, 0, NULL, PE_RECIPE_TF32)

static bool wrap_angles(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)d;
    edit->transforms.wrapped_from = i ? -0x1.921fb54442d18p+1 : 0;
    return true;
}

const struct pe_fault pe_fault_angles_wrapped = {
    FAULT_TEXT("angles_wrapped", "arithmetic", ARITHMETIC, 4, "angles modulo 2π", "Angles are reduced by whole turns.",
               "The angles are reduced modulo 2π, so they no longer grow with the position."),

    .evidence = PE_EVIDENCE_BIT(ANGLES), .n_alternatives = 2, .apply = wrap_angles};
