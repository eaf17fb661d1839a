/* Faults of attention maps: what becomes of the bias, and where the map was taken. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <string.h>

#define OF_SCORES PE_EVIDENCE_BIT(MAPS)

/* ---- The bias ---- */

#define BIAS_FAULT(name, change, surprise, label, summary, detail)                                                     \
    const struct pe_fault pe_fault_##name = {FAULT_TEXT(#name, "bias", BIAS, surprise, label, summary, detail),        \
                                             .pointer = "scheme", .schemes = "alibi|t5|kerple|sandwich|fire",          \
                                             .evidence = OF_SCORES, PE_TRANSFORMS({PE_TO_BIAS, change})}

BIAS_FAULT(bias_missing, PE_BIAS_MISSING, 2, "missing bias", "No bias was added to the scores.",
           "The scores have no bias; the configuration adds one.");
BIAS_FAULT(bias_before_scale, PE_BIAS_BEFORE_SCALE, 2, "bias added before the scale",
           "The softmax scale multiplies the bias too.",
           "The bias was added before the softmax scale, which multiplies it too.");
BIAS_FAULT(bias_twice, PE_BIAS_TWICE, 4, "bias added twice", "The bias was added twice.", "The bias was added twice.");
BIAS_FAULT(bias_unsigned, PE_BIAS_UNSIGNED, 4, "bias with the opposite sign", "The bias has the opposite sign.",
           "The bias has the opposite sign, so distant keys are favoured.");

/* ---- Where the map was taken ---- */

/* Before the bias and the mask: a request without them, and of q·k itself without a scale. */
static bool take_before(struct pe_diagnosis *d, enum pe_stage stage, struct pe_edit *edit)
{
    static const char *const later[] = {"softcap", "window", "window_right", "key_mask"};
    enum { N_LATER = sizeof later / sizeof *later };
    size_t n = pe_edit_is_true(d, edit, "causal", false);
    bool has_bias = pe_evidence_is_output(d, "bias");
    if (n)
        pe_edit_set_boolean(edit, "causal", false);
    for (size_t i = stage == PE_STAGE_UNMASKED; i < N_LATER; i++)
        if (pe_edit_has(d, edit, later[i])) {
            pe_edit_remove(edit, later[i]);
            n++;
        }
    if (stage != PE_STAGE_UNMASKED && has_bias) {
        edit->transforms.bias = PE_BIAS_MISSING;
        n++;
    }
    if (stage == PE_STAGE_RAW && pe_edit_real(d, edit, "softmax_scale", 1) != 1) {
        pe_edit_set_integer(edit, "softmax_scale", 1);
        n++;
    }
    edit->transforms.stage = stage;
    return n > 1; /* one step alone is a fault of its own */
}

/* Of scores, then of probabilities. */
static bool stage_other(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    static const enum pe_stage stages[] = {PE_STAGE_OTHER, PE_STAGE_LOG_PROBS, PE_STAGE_RAW, PE_STAGE_SCALED,
                                           PE_STAGE_UNMASKED};
    bool are_scores = d->evidence.kind == &pe_evidence_scores;
    if (stages[i] > PE_STAGE_LOG_PROBS)
        return are_scores && take_before(d, stages[i], edit);
    edit->transforms.stage = stages[i];
    return true;
}

static const char *const of_stages[] = {
    "The tensor has probabilities where scores are expected, or scores where probabilities are.",
    "The tensor has logarithms of probabilities.",
    "The tensor is q·k itself, before the scale, the bias and the mask.",
    "The tensor is q·k times the scale, before the cap, the bias and the mask.",
    "The tensor was taken before the mask.",
};

const struct pe_fault pe_fault_stage_other = {
    FAULT_TEXTS("stage_other", "sense", SENSE, 3, "taken at another place",
                "The tensor was taken before or after the place that its name states.", of_stages),
    .pointer = "",
    .is_of_tensor = true,
    .evidence = OF_SCORES,
    .n_alternatives = 5,
    .apply = stage_other};
