/* One hypothesis of the search: made, judged, kept. */
#include "core/diagnosis/search/search.h"

#include <stdlib.h>
#include <string.h>

enum { STEP_WORK = 128 }; /* asking whether to go on, and combining faults that are no hypothesis */

bool pe_search_goes_on(struct pe_search *s)
{
    if (s->status || s->is_full)
        return false;
    if (pe_is_cancelled()) {
        pe_fail(s->err, "", "given up: nobody waits for the answer any more");
        s->status = s->err->status = PE_CANCELLED;
    }
    s->d->work += STEP_WORK;
    s->d->used_all = s->is_deep && s->d->work + s->reserved > s->d->request->max_work;
    s->is_full = s->d->searched >= PE_HYPOTHESES_MAX || s->d->used_all;
    return !s->status && !s->is_full;
}

struct pe_kept pe_search_judge(struct pe_search *s, const struct pe_hypothesis *h, const struct pe_trial *t)
{
    struct pe_kept k = {.h = *h, .cost = pe_hypothesis_cost(s->d, h)};
    k.score = pe_evaluate(s->d, t->model);
    s->d->searched++;
    if (pe_fits(k.score.verdict))
        pe_hypothesis_wonder(s->d, &t->edit, &k);
    pe_best_keep(s->d, &k, t->model);
    return k;
}

void pe_trial_open(struct pe_search *s, const struct pe_hypothesis *h, struct pe_trial *t)
{
    struct pe_error error;
    t->model = NULL;
    bool applies = pe_hypothesis_apply(s->d, h, &t->edit);
    if (t->edit.failed || s->d->no_memory)
        s->status = pe_no_memory(s->err);
    if (!applies || s->status)
        return;
    if (!pe_model_new(s->d, &t->edit, &t->model, &error)) {
        if (t->model->has_shape)
            return;
        pe_model_free(t->model);
        t->model = NULL;
        return;
    }
    if (error.status != PE_INVALID && error.status != PE_TOO_LARGE) {
        *s->err = error;
        s->status = error.status;
    }
}

void pe_trial_close(struct pe_trial *t)
{
    pe_model_free(t->model);
    pe_edit_drop(&t->edit);
}

void pe_search_try(struct pe_search *s, const struct pe_hypothesis *h)
{
    struct pe_trial t;
    if (!pe_search_goes_on(s))
        return;
    pe_trial_open(s, h, &t);
    if (t.model)
        pe_search_judge(s, h, &t);
    pe_trial_close(&t);
}

/* ---- Several faults as one hypothesis ---- */

static int by_fault(const void *a, const void *b)
{
    const struct pe_single *x = *(const struct pe_single *const *)a, *y = *(const struct pe_single *const *)b;
    return (int)x->fault - (int)y->fault;
}

struct pe_hypothesis pe_combine(const struct pe_single *const *faults, unsigned n)
{
    struct pe_hypothesis h = {.n = n};
    const struct pe_single *sorted[PE_FAULTS_MAX];
    memcpy(sorted, faults, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_fault);
    for (unsigned i = 0; i < n; i++) {
        h.fault[i] = sorted[i]->fault;
        h.choice[i] = sorted[i]->choice;
    }
    return h;
}
