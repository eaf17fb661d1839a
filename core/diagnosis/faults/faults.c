/* The table of faults. */
#include "core/diagnosis/diagnosis.h"

#include <assert.h>

const char *const pe_fault_kind_names[PE_N_FAULT_KINDS] = {
    [PE_KIND_LAYOUT] = "layout",       [PE_KIND_SENSE] = "sense",
    [PE_KIND_POSITIONS] = "positions", [PE_KIND_WIDTH] = "width",
    [PE_KIND_SIZE] = "size",           [PE_KIND_LADDER] = "ladder",
    [PE_KIND_AXES] = "axes",           [PE_KIND_ARITHMETIC] = "arithmetic",
    [PE_KIND_SINUSOID] = "sinusoid",   [PE_KIND_BIAS] = "bias",
    [PE_KIND_PARAMETER] = "parameter", [PE_KIND_IDS] = "ids",
    [PE_KIND_FINDING] = "finding"};

/* ---- Findings that no hypothesis has ---- */

const struct pe_fault pe_fault_table_dtype = {
    FAULT_TEXT("table_dtype", "arithmetic", ARITHMETIC, 1, "table of lower precision",
               "The numbers are those of the configuration, rounded to a smaller dtype.",
               "The numbers were rounded to {found}; apart from that they are right.")};
const struct pe_fault pe_fault_axes_moved = {FAULT_TEXT(
    "axes_moved", "axes", AXES, 2, "axes in another order",
    "The axes of the tensor are in an order that no configuration has.",
    "The axes of the tensor are in another order: axis i of what the configuration gives is axis found[i] of "
    "the tensor.")};
const struct pe_fault pe_fault_as_believed = {FAULT_TEXT("as_believed", "finding", FINDING, 0, "as configured",
                                                         "The configuration gives the tensor.",
                                                         "The tensor is what the configuration gives.")};
const struct pe_fault pe_fault_identified = {
    FAULT_TEXT("identified", "finding", FINDING, 0, "identified",
               "No configuration was sent; one that gives the tensor was found.",
               "No configuration was sent; the first candidate gives the tensor.")};
const struct pe_fault pe_fault_undecided = {FAULT_TEXT(
    "undecided", "finding", FINDING, 0, "undecided", "Two configurations give the tensor, but differ elsewhere.",
    "Candidate {candidate} gives the tensor too; a row at position {position} tells them apart.")};
const struct pe_fault pe_fault_sides_differ = {FAULT_TEXT(
    "sides_differ", "finding", FINDING, 0, "q and k differ", "Queries and keys are not rotated alike.",
    "q and k are not rotated alike, so scores no longer depend on the distance of their positions alone; `sides` "
    "says what each of them is.")};
const struct pe_fault pe_fault_uninitialised = {FAULT_TEXT(
    "uninitialised", "finding", FINDING, 0, "uninitialised memory",
    "The frequencies look like memory that nobody wrote.",
    "The frequencies look like memory that nobody wrote, as after a buffer is created empty and never filled: "
    "`found` has the first pair that cannot be right.")};
/* Far; nearly the belief; nearly something else; of two matrices. */
static const char *const of_unexplained[] = {
    "No configuration that was tried gives the tensor; `ruled_out` lists the best of each kind.",
    "The tensor is nearly what you believe: the largest error is {nearest.max_error}, at "
    "{worst.output}[{worst.index}]. No mistake that was tried explains it.",
    "Nothing that was tried gives the tensor; the nearest is {nearest.codes}, with a largest error of "
    "{nearest.max_error}, at {worst.output}[{worst.index}].",
    "{found.missing} rows of w_believed are nowhere in w_found.",
};

const struct pe_fault pe_fault_unexplained = {FAULT_TEXTS("unexplained", "finding", FINDING, 0, "unexplained",
                                                          "No configuration that was tried gives the tensor.",
                                                          of_unexplained)};

/* ---- The table ---- */

static const struct pe_fault *const rows[] = {
#define FAULT(name) &pe_fault_##name,
#include "core/diagnosis/faults/list.h"
#undef FAULT
};

enum { N_FAULTS = sizeof rows / sizeof *rows };

size_t pe_n_faults(void) { return N_FAULTS; }

const struct pe_fault_info *pe_fault_at(size_t i)
{
    assert(i < N_FAULTS);
    return &rows[i]->info;
}

const struct pe_fault *pe_fault_row(size_t i)
{
    assert(i < N_FAULTS);
    return rows[i];
}

enum pe_fault_kind pe_fault_kind_of(size_t i) { return rows[i]->kind; }

int pe_fault_surprise(size_t i) { return rows[i]->plausibility; }

bool pe_fault_applies(const struct pe_diagnosis *d, size_t i)
{
    const struct pe_fault *fault = rows[i];
    const char *scheme = d->belief.inheritance->scheme->info.name;
    const struct pe_evidence_kind *kind = d->evidence.kind;
    unsigned bit = 1U << kind->id;
    return (!fault->evidence || fault->evidence & (bit | kind->like)) && !(fault->not_of & bit) &&
           (!fault->schemes || pe_is_among(fault->schemes, scheme));
}
