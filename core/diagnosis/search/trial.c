/* A trial of the search: one hypothesis planned, judged, kept; whether its pairs can be pairs at all; several faults as
 * one hypothesis. */
#include "core/diagnosis/diagnosis.h"

#include <stdlib.h>
#include <string.h>

/* ---- One hypothesis ---- */

enum { STEP_WORK = 128 }; /* asking whether to go on, and combining faults that are no hypothesis */

uint64_t pe_search_hypotheses_max(const struct pe_diagnosis *d)
{
    if (d->evidence.is_typed)
        return PE_HYPOTHESES_TYPED_MAX;
    return d->evidence.kind->id == PE_OF_MAPS ? PE_HYPOTHESES_OF_MAPS_MAX : PE_HYPOTHESES_MAX;
}

bool pe_search_goes_on(struct pe_search *s)
{
    if (s->status || s->is_full)
        return false;
    if (pe_is_cancelled()) {
        pe_fail(s->err, "", "cancelled: the client disconnected");
        s->status = s->err->status = PE_CANCELLED;
    }
    s->d->work += STEP_WORK;
    s->d->used_all = s->is_deep && s->d->work + s->reserved > s->d->request->max_work;
    s->is_full = s->d->searched >= pe_search_hypotheses_max(s->d) || s->d->used_all;
    return !s->status && !s->is_full;
}

struct pe_explanation pe_search_judge(struct pe_search *s, const struct pe_hypothesis *h, const struct pe_trial *t)
{
    struct pe_explanation k = {.h = *h, .cost = pe_hypothesis_cost(s->d, h)};
    k.score = pe_evaluate(s->d, t->model);
    s->d->searched++;
    if (pe_fits(k.score.verdict) && !pe_hypothesis_is_told(s->d, h, k.score.bits))
        k.score.verdict = PE_NEAR;
    if (pe_fits(k.score.verdict))
        pe_hypothesis_wonder(s->d, &t->edit, &k);
    pe_best_keep(s->d, &k, t->model);
    return k;
}

void pe_trial_open(struct pe_search *s, const struct pe_hypothesis *h, struct pe_trial *t)
{
    struct pe_failure error;
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

/* ---- Lengths of pairs ---- */

/* Faults of these kinds decide what becomes of a pair, not which channels are one. */
static bool keeps_pairs(size_t fault)
{
    enum pe_fault_kind kind = pe_fault_kind_of(fault);
    bool is_of_angles = kind == PE_KIND_POSITIONS || kind == PE_KIND_LADDER || kind == PE_KIND_ARITHMETIC;
    return is_of_angles || kind == PE_KIND_SIZE || (kind == PE_KIND_SENSE && !pe_fault_row(fault)->is_of_tensor);
}

/* Those of them that decide it. */
static struct pe_hypothesis pairing_of(const struct pe_hypothesis *h)
{
    struct pe_hypothesis pairing = {.n = 0};
    for (unsigned i = 0; i < h->n; i++)
        if (!keeps_pairs(h->fault[i])) {
            pairing.fault[pairing.n] = h->fault[i];
            pairing.choice[pairing.n++] = h->choice[i];
        }
    return pairing;
}

static struct pe_paired *slot_of(struct pe_search *s, const struct pe_hypothesis *h)
{
    uint32_t hash = 0;
    for (unsigned i = 0; i < h->n; i++)
        hash = (hash ^ h->fault[i] ^ (uint32_t)h->choice[i] << 8) * 0x9e3779b1U;
    struct pe_paired *slot = &s->paired[(hash >> 16) % PE_PAIRED_MAX];
    if (memcmp(&slot->faults, h, sizeof *h) != 0)
        *slot = (struct pe_paired){.faults = *h};
    return slot;
}

bool pe_search_has_pairs(struct pe_search *s, const struct pe_hypothesis *h)
{
    struct pe_hypothesis pairing = pairing_of(h);
    struct pe_trial t;
    if (s->d->belief.is_misfit || s->d->evidence.is_typed ||
        s->d->evidence.printed.has_gaps) /* another fault may mend the shape; pairs are not known */
        return true;
    struct pe_paired *slot = slot_of(s, &pairing);
    if (slot->lengths == PE_PAIRS_UNKNOWN) {
        pe_trial_open(s, &pairing, &t);
        bool differ = t.edit.is_hopeless || (t.model && !pe_lengths_agree(t.model));
        slot->lengths = differ ? PE_PAIRS_DIFFER : PE_PAIRS_AGREE;
        pe_trial_close(&t);
    }
    return slot->lengths == PE_PAIRS_AGREE;
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

/* ---- Singles ---- */

void pe_search_note(struct pe_search *s, const struct pe_hypothesis *h, const struct pe_trial *t)
{
    if (s->n_singles == s->room)
        return;
    const struct pe_fault *fault = pe_fault_row(h->fault[0]);
    size_t count = fault->count ? fault->count(s->d) : fault->n_alternatives;
    struct pe_single *one = &s->singles[s->n_singles];
    *one = (struct pe_single){.fault = h->fault[0], .choice = h->choice[0]};
    one->kind = (unsigned char)(fault->combines_as ? fault->combines_as : pe_fault_kind_of(h->fault[0]));
    one->is_fit = fault->n_fits && h->choice[0] + fault->n_fits >= count;
    one->is_list = fault->is_no_rotation || (one->is_fit && fault->fit_cost > 1);
    one->has_base = t->edit.presets[0] != NULL;
    s->n_singles++;
}
