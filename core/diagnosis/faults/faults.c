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

const struct pe_fault pe_fault_table_dtype = {.n_alternatives = 0};
const struct pe_fault pe_fault_as_believed = {.n_alternatives = 0};
const struct pe_fault pe_fault_identified = {.n_alternatives = 0};
const struct pe_fault pe_fault_undecided = {.n_alternatives = 0};
const struct pe_fault pe_fault_sides_differ = {.n_alternatives = 0};
const struct pe_fault pe_fault_uninitialised = {.n_alternatives = 0};
const struct pe_fault pe_fault_unexplained = {.n_alternatives = 0};

/* ---- The table ---- */

static const struct row {
    const struct pe_fault *fault;
    const struct pe_fault_info *info;
    enum pe_fault_kind kind;
    int surprise;
} rows[] = {
#define FAULT(name, kind, surprise_) {&pe_fault_##name, &pe_fault_info_##name, PE_KIND_##kind, surprise_},
#include "core/diagnosis/faults/list.h"
#undef FAULT
};

enum { N_FAULTS = sizeof rows / sizeof *rows };

size_t pe_n_faults(void) { return N_FAULTS; }

const struct pe_fault_info *pe_fault_at(size_t i)
{
    assert(i < N_FAULTS);
    return rows[i].info;
}

const struct pe_fault *pe_fault_row(size_t i)
{
    assert(i < N_FAULTS);
    return rows[i].fault;
}

enum pe_fault_kind pe_fault_kind_of(size_t i) { return rows[i].kind; }

int pe_fault_surprise(size_t i) { return rows[i].surprise; }

bool pe_fault_applies(const struct pe_diagnosis *d, size_t i)
{
    const struct pe_fault *fault = rows[i].fault;
    const char *scheme = d->belief.inheritance->scheme->info.name;
    const struct pe_evidence_kind *kind = d->evidence.kind;
    unsigned bit = 1U << kind->id;
    return (!fault->evidence || fault->evidence & (bit | kind->like)) && !(fault->not_of & bit) &&
           (!fault->schemes || pe_is_among(fault->schemes, scheme));
}
