/* Keeps the best hypotheses while the search runs: a short sorted list (hypothesis.c has the order), the best of each
 * kind, and the nearest, for an answer that explains nothing.
 *
 * Many hypotheses give the same plan, e.g. a base doubled or a scaling by NTK. A signature of the plan finds them
 * without comparing numbers, and only the best of them stays, unless both fit by faults that have nothing in common:
 * then the reader should see both, since the tensor cannot decide between them. */
#include "core/diagnosis/diagnosis.h"

#include <string.h>

static bool share_a_fault(const struct pe_hypothesis *a, const struct pe_hypothesis *b)
{
    for (unsigned i = 0; i < a->n; i++)
        for (unsigned j = 0; j < b->n; j++)
            if (a->fault[i] == b->fault[j])
                return true;
    return false;
}

/* Is b another way to the numbers of a that is worth an answer? Only where they fit, and only by other faults: beside
 * the same second mistake, a scaling that changes nothing explains no more than one that is missing. The belief needs
 * no other way. */
static bool is_another_way(const struct pe_kept *a, const struct pe_kept *b)
{
    return a->h.n > 0 && !share_a_fault(&a->h, &b->h) && pe_fits(a->score.verdict) && pe_fits(b->score.verdict);
}

static void insert(struct pe_diagnosis *d, const struct pe_kept *k)
{
    size_t i = d->n_best;
    for (size_t j = 0; j < d->n_best; j++)
        if (d->best[j].signature == k->signature && !is_another_way(&d->best[j], k)) {
            if (pe_kept_compare(k, &d->best[j]) >= 0)
                return;
            memmove(&d->best[j], &d->best[j + 1], (d->n_best - j - 1) * sizeof *d->best);
            d->n_best--;
            break;
        }
    for (i = d->n_best; i > 0 && pe_kept_compare(k, &d->best[i - 1]) < 0; i--)
        ;
    if (i == PE_BEST_MAX)
        return;
    size_t moved = d->n_best - i - (d->n_best == PE_BEST_MAX);
    memmove(&d->best[i + 1], &d->best[i], moved * sizeof *d->best);
    d->best[i] = *k;
    d->n_best += d->n_best < PE_BEST_MAX;
}

void pe_best_keep(struct pe_diagnosis *d, struct pe_kept *k, const struct pe_model *model)
{
    struct pe_kept *of_kind = k->h.n == 1 ? &d->of_kind[pe_fault_kind_of(k->h.fault[0])] : NULL;
    if (of_kind && (of_kind->score.verdict == PE_NOT_JUDGED || k->score.verdict < of_kind->score.verdict ||
                    (k->score.verdict == of_kind->score.verdict && k->score.max_error < of_kind->score.max_error)))
        *of_kind = *k;
    if (d->nearest.score.verdict == PE_NOT_JUDGED || k->score.max_error < d->nearest.score.max_error)
        d->nearest = *k;
    bool is_full = d->n_best == PE_BEST_MAX;
    if (is_full && pe_kept_compare(k, &d->best[PE_BEST_MAX - 1]) >= 0)
        return;
    k->signature = pe_model_signature(model);
    insert(d, k);
}

bool pe_best_fits(const struct pe_diagnosis *d, unsigned cost)
{
    return d->n_best && pe_fits(d->best[0].score.verdict) && d->best[0].cost <= cost;
}

/* Comparing one with all numbers takes long. What does not fit is only answered where nothing does. */
void pe_best_trim(struct pe_diagnosis *d)
{
    enum { ANSWERED = 5 };
    size_t n = 0;
    while (n < d->n_best && pe_fits(d->best[n].score.verdict))
        n++;
    if (n == 0)
        n = d->n_best < ANSWERED ? d->n_best : ANSWERED;
    d->n_best = n;
}
