/* The faults: mistakes that give another tensor than the one expected.
 *
 * How to add one: a row pe_fault_NAME in the file of its kind, which begins with FAULT_TEXT, and the line FAULT(NAME)
 * in list.h at its place in the order of findings. The Chinese of its texts is in core/zh.po.
 *
 * The placeholders of a sentence are members of its finding: {pointer}, {found} and {believed}, {largest} and {row} of
 * `angles_f32`, {position} and {candidate} of `undecided`, {nearest} and {worst} of `unexplained`, {nearest} of
 * `inv_freq_other`, {meaning} of `scaled`, {heads} of `channels_permuted`. A value that may be a list or an object is
 * not named in a sentence. A fault with several sentences has one for each alternative; `scaled` has one for a factor
 * that has a meaning. */
#ifndef PE_FAULTS_H
#define PE_FAULTS_H

#include "core/diagnosis/evidence/edit.h"

enum pe_fault_kind {
    PE_KIND_LAYOUT,
    PE_KIND_SENSE,
    PE_KIND_POSITIONS,
    PE_KIND_WIDTH,
    PE_KIND_SIZE,
    PE_KIND_LADDER,
    PE_KIND_ARITHMETIC,
    PE_KIND_AXES,
    PE_KIND_SINUSOID,
    PE_KIND_BIAS,
    PE_KIND_PARAMETER,
    PE_KIND_IDS,
    PE_KIND_FINDING, /* no fault */
    PE_N_FAULT_KINDS
};

/* One fault. Evaluation: the faults of a hypothesis are applied to one edit, those that are not fitted first, in the
 * order of list.h, then the fitted ones by their fit_rank; so apply() reads the values in use by pe_edit_value, which
 * include the other faults, and a fit may measure the evidence under the edit so far. It must give the same edit every
 * time, because only (fault, alternative) is kept. */
struct pe_fault {
    struct pe_fault_info info; /* the texts; its kind has another name than `kind` where two kinds have one mistake */
    enum pe_fault_kind kind;
    int plausibility;    /* how surprising it is: list.h */
    const char *schemes; /* "rope|xpos"; NULL: any */
    unsigned evidence;   /* PE_EVIDENCE_BIT of those it applies to, and of those like them; 0: any */
    unsigned not_of;     /* of those it does not apply to */
    bool is_of_tensor;   /* it changes the tensor rather than the plan, or reads it whatever the alternative */
    size_t n_alternatives;
    size_t (*count)(const struct pe_diagnosis *d); /* those that are tried, if that depends on the belief; else NULL */
    /* Changes the edit as the alternative states. false: it does not apply, or changes nothing. */
    bool (*apply)(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit);
    /* The last n_fits alternatives are fitted: they compute their value from the evidence. */
    size_t n_fits;
    unsigned fit_rank; /* 0 frequencies, 1 positions, 2 sizes */
    unsigned fit_cost; /* of a fitted alternative: 3 for a list of free numbers, 0 means 1 */
    /* Faults of one kind are not combined, unless one of them counts as another kind then; 0: as its own. */
    enum pe_fault_kind combines_as;
    /* By how much an alternative is more (or less) surprising than the fault's row; NULL: 0. */
    int (*surprise)(const struct pe_diagnosis *d, size_t alternative);
};

/* The table, in the order of list.h (pe_n_faults rows). */
const struct pe_fault *pe_fault_row(size_t i);
enum pe_fault_kind pe_fault_kind_of(size_t i);
extern const char *const pe_fault_kind_names[PE_N_FAULT_KINDS];
bool pe_fault_applies(const struct pe_diagnosis *d, size_t i);

#define FAULT(name) extern const struct pe_fault pe_fault_##name;
#include "core/diagnosis/faults/list.h"
#undef FAULT

/* The beginning of a row: code, name of the kind, kind, plausibility, label, summary, and one sentence or an array. */
#define FAULT_TEXTS(code_, kind_name_, kind_, plausibility_, label_, summary_, details_)                               \
    .info = {.code = code_,                                                                                            \
             .kind = kind_name_,                                                                                       \
             .about = {label_, summary_},                                                                              \
             .details = details_,                                                                                      \
             .n_details = sizeof(details_) / sizeof *(details_)},                                                      \
    .kind = PE_KIND_##kind_, .plausibility = plausibility_
#define FAULT_TEXT(code_, kind_name_, kind_, plausibility_, label_, summary_, detail_)                                 \
    FAULT_TEXTS(code_, kind_name_, kind_, plausibility_, label_, summary_, ((const char *const[]){detail_}))

#endif
