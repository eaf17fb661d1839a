/* Faults of arithmetic: tables computed in few bits (evidence/waves.c). */
#include "core/diagnosis/diagnosis.h"

#define OF_WAVES (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ENCODING))

#define RECIPE(name)                                                                                                   \
    {                                                                                                                  \
        PE_TO_RECIPE, PE_RECIPE_##name                                                                                 \
    }

/* Explained by it; beside a configuration that is exact; beside float32 angles of other steps. */
static const char *const of_angles_f32[] = {
    "Your angles are computed in float32, as in most code; \"arith\":\"float32\" gives such angles.",
    ("Your angles are computed in float32, as in most code: the largest difference is {largest}, in row {row}. "
     "\"arith\":\"float32\" gives such angles."),
    ("Your angles are computed in float32 by other steps than \"arith\":\"float32\": the largest difference is "
     "{largest}, in row {row}, which is what right code may lose."),
};

const struct pe_fault pe_fault_angles_f32 = {
    FAULT_TEXTS("angles_f32", "arithmetic", ARITHMETIC, 1, "float32 angles",
                "Angles are computed in float32, so their error grows with the position.", of_angles_f32),
    .role = PE_ROLE_NARROW_ANGLES, .evidence = OF_WAVES, .not_of = PE_EVIDENCE_BIT(ANGLES), PE_TRANSFORMS(RECIPE(F32))};
const struct pe_fault pe_fault_inv_freq_bf16 = {
    FAULT_TEXT("inv_freq_bf16", "arithmetic", ARITHMETIC, 2, "bfloat16 frequencies",
               "The frequencies are rounded to bfloat16 before angles are computed.",
               "The frequencies were rounded to bfloat16."),
    .evidence = OF_WAVES | PE_EVIDENCE_BIT(LADDER), PE_TRANSFORMS(RECIPE(BF16_INV_FREQ), RECIPE(BF16_INV_FREQ_DIVIDED)),
    .cures = pe_cures_ladder};
const struct pe_fault pe_fault_inv_freq_f16 = {
    FAULT_TEXT("inv_freq_f16", "arithmetic", ARITHMETIC, 2, "float16 frequencies",
               "The frequencies are rounded to float16 before angles are computed.",
               "The frequencies were rounded to float16."),
    .evidence = OF_WAVES | PE_EVIDENCE_BIT(LADDER), PE_TRANSFORMS(RECIPE(F16_INV_FREQ)), .cures = pe_cures_ladder};
const struct pe_fault pe_fault_angles_bf16 = {FAULT_TEXT("angles_bf16", "arithmetic", ARITHMETIC, 2, "bfloat16 angles",
                                                         "Positions, frequencies and angles are rounded to bfloat16.",
                                                         "Positions, frequencies and angles were rounded to bfloat16."),
                                              .evidence = OF_WAVES, PE_TRANSFORMS(RECIPE(BF16), RECIPE(BF16_DIVIDED))};

const struct pe_fault pe_fault_angles_f16 = {FAULT_TEXT("angles_f16", "arithmetic", ARITHMETIC, 2, "float16 angles",
                                                        "Positions, frequencies and angles are rounded to float16.",
                                                        "Positions, frequencies and angles were rounded to float16."),
                                             .evidence = OF_WAVES, PE_TRANSFORMS(RECIPE(F16))};
const struct pe_fault pe_fault_angles_tf32 = {
    FAULT_TEXT("angles_tf32", "arithmetic", ARITHMETIC, 2, "TF32 angles",
               "Positions and frequencies are rounded to the 11 bits of TF32 before they are multiplied.",
               "Angles are computed by a matrix product in TF32, which keeps 11 bits of positions and frequencies."),
    .evidence = OF_WAVES, PE_TRANSFORMS(RECIPE(TF32))};

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
