/* Hypotheses: one to three faults applied to one edit; their cost and their order. */
#include "core/diagnosis/diagnosis.h"

#include <string.h>

static size_t count(const struct pe_diagnosis *d, const struct pe_fault *f)
{
    return f->count ? f->count(d) : f->n_alternatives;
}

static bool is_fit(const struct pe_diagnosis *d, const struct pe_hypothesis *h, unsigned i)
{
    const struct pe_fault *f = pe_fault_row(h->fault[i]);
    return f->n_fits && h->choice[i] + f->n_fits >= count(d, f);
}

static bool apply_one(struct pe_diagnosis *d, const struct pe_hypothesis *h, unsigned i, struct pe_edit *edit)
{
    return pe_fault_row(h->fault[i])->apply(d, h->choice[i], edit) && !edit->failed;
}

static bool apply_fits(struct pe_diagnosis *d, const struct pe_hypothesis *h, unsigned rank, struct pe_edit *edit)
{
    for (unsigned i = 0; i < h->n; i++)
        if (is_fit(d, h, i) && pe_fault_row(h->fault[i])->fit_rank == rank && !apply_one(d, h, i, edit))
            return false;
    return true;
}

bool pe_hypothesis_apply(struct pe_diagnosis *d, const struct pe_hypothesis *h, struct pe_edit *edit)
{
    enum { RANKS = 3 };
    pe_edit_init(edit);
    for (unsigned i = 0; i < h->n; i++)
        if (!is_fit(d, h, i) && !apply_one(d, h, i, edit))
            return false;
    for (unsigned rank = 0; rank < RANKS; rank++)
        if (!apply_fits(d, h, rank, edit))
            return false;
    return true;
}

unsigned pe_hypothesis_cost(const struct pe_diagnosis *d, const struct pe_hypothesis *h)
{
    unsigned cost = 0;
    for (unsigned i = 0; i < h->n; i++) {
        unsigned of_fit = pe_fault_row(h->fault[i])->fit_cost;
        cost += is_fit(d, h, i) && of_fit ? of_fit : 1;
    }
    return cost;
}

/* ---- The order of candidates ---- */

static int group(const struct pe_score *s) { return pe_fits(s->verdict) ? 0 : (int)s->verdict; }

static int by_table(const struct pe_hypothesis *a, const struct pe_hypothesis *b)
{
    for (unsigned i = 0; i < a->n && i < b->n; i++) {
        if (a->fault[i] != b->fault[i])
            return a->fault[i] < b->fault[i] ? -1 : 1;
        if (a->choice[i] != b->choice[i])
            return a->choice[i] < b->choice[i] ? -1 : 1;
    }
    return (int)a->n - (int)b->n;
}

int pe_kept_compare(const struct pe_kept *a, const struct pe_kept *b)
{
    int by_group = group(&a->score) - group(&b->score), by_cost = (int)a->cost - (int)b->cost;
    int by_verdict = (int)a->score.verdict - (int)b->score.verdict, table = by_table(&a->h, &b->h);
    if (by_group || by_cost || by_verdict || table)
        return by_group ? by_group : by_cost ? by_cost : by_verdict ? by_verdict : table;
    return a->score.max_error < b->score.max_error ? -1 : a->score.max_error > b->score.max_error;
}
