/* What is no rotation: scores, biases, tables. What was measured of it, related to what is believed, is one hypothesis
 * of several parts; if masks differ as well, each mistake of masks is tried beside it. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/naming/relations.h"

/* What each kind of evidence shows. */
static const struct {
    enum pe_evidence_id id;
    const char *scheme; /* NULL: any */
    size_t (*relate)(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts);
} kinds[] = {
    {PE_OF_MAPS, NULL, pe_relate_scores},
    {PE_OF_BIAS, NULL, pe_relate_bias},
    {PE_OF_BUCKETS, NULL, pe_relate_bias},
    {PE_OF_ENCODING, "learned", pe_relate_table},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static size_t kind_of(const struct pe_diagnosis *d)
{
    const char *scheme = d->belief.inheritance->scheme->info.name;
    size_t i = 0;
    while (i < N_KINDS &&
           !(kinds[i].id == d->evidence.kind->id && (!kinds[i].scheme || pe_same(kinds[i].scheme, scheme))))
        i++;
    return i;
}

bool pe_has_no_waves(const struct pe_diagnosis *d) { return !d->evidence.is_typed && kind_of(d) < N_KINDS; }

static uint16_t index_of(const struct pe_fault *fault)
{
    size_t i = 0;
    while (pe_fault_row(i) != fault)
        i++;
    return (uint16_t)i;
}

/* Judges a hypothesis with more parts; true: it fits the sample. */
static bool try_parts(struct pe_search *s, const struct pe_hypothesis *base, const struct pe_part *parts, size_t n)
{
    struct pe_single singles[PE_FAULTS_MAX];
    const struct pe_single *all[PE_FAULTS_MAX];
    struct pe_trial t;
    unsigned n_all = 0;
    if (base->n + n > PE_FAULTS_MAX || !pe_search_goes_on(s))
        return false;
    for (unsigned i = 0; i < base->n; i++)
        singles[n_all++] = (struct pe_single){.fault = base->fault[i], .choice = base->choice[i]};
    for (size_t i = 0; i < n; i++)
        singles[n_all++] = (struct pe_single){.fault = index_of(parts[i].fault), .choice = parts[i].choice};
    for (unsigned i = 0; i < n_all; i++)
        all[i] = &singles[i];
    struct pe_hypothesis h = pe_combine(all, n_all);
    bool fits = false;
    pe_trial_open(s, &h, &t);
    if (t.model)
        fits = pe_fits(pe_search_judge(s, &h, &t).score.verdict);
    pe_trial_close(&t);
    return fits;
}

static bool is_of_masks(const struct pe_single *one)
{
    const struct pe_fault *fault = pe_fault_row(one->fault);
    return fault == &pe_fault_mask_missing || fault == &pe_fault_mask_extra || fault == &pe_fault_window_other ||
           fault == &pe_fault_mask_value;
}

static bool try_masks(struct pe_search *s, const struct pe_hypothesis *base, struct pe_part *parts, size_t n)
{
    for (size_t i = 0; n < PE_PARTS_MAX && i < s->n_singles; i++) {
        const struct pe_single *one = &s->singles[i];
        parts[n] = (struct pe_part){pe_fault_row(one->fault), one->choice};
        if (is_of_masks(one) && try_parts(s, base, parts, n + 1))
            return true;
    }
    return false;
}

bool pe_name_without_waves(struct pe_search *s, const struct pe_hypothesis *base)
{
    struct pe_part parts[PE_PARTS_MAX];
    struct pe_trial t;
    size_t n = 0;
    if (!pe_search_goes_on(s))
        return false;
    pe_trial_open(s, base, &t);
    if (t.model)
        n = kinds[kind_of(s->d)].relate(s->d, &t.edit, base->n == 0, parts);
    pe_trial_close(&t);
    if (s->d->no_memory)
        s->status = pe_no_memory(s->err);
    return n > 0 && (try_parts(s, base, parts, n) || try_masks(s, base, parts, n));
}
