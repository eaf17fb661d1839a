/* Scores and probabilities of other sizes than their q and k have.
 *
 * What they have more of is cut; what they have fewer of is there, but never compared, so that everything else is asked
 * as of a whole map. The last queries, and the first of all else, are taken to be those of both; of fewer heads or
 * queries the belief shows which they are. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>

enum pe_status pe_sizes_mend_attention(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_failure *err)
{
    static const enum pe_size_of of[] = {PE_SIZE_OF_KEYS, PE_SIZE_OF_ROWS, PE_SIZE_OF_HEADS, PE_SIZE_OF_BATCH};
    struct pe_evidence *e = &d->evidence;
    const struct pe_output *o = pe_plan_output(plan, 0);
    enum pe_status status = err->status;
    for (unsigned k = 1; k <= 4 && k <= o->rank && k <= e->tensors[0].rank; k++) {
        unsigned axis = e->tensors[0].rank - k;
        struct pe_size s = {.of = of[k - 1], .n_found = e->tensors[0].shape[axis], .n_believed = o->shape[o->rank - k]};
        uint64_t apart = s.n_found > s.n_believed ? s.n_found - s.n_believed : s.n_believed - s.n_found;
        if (apart == 0)
            continue;
        if (e->n_sizes == PE_SIZES_MAX)
            return err->status;
        s.first = s.of == PE_SIZE_OF_ROWS ? apart : 0;
        s.is_padded = s.n_found < s.n_believed;
        status = s.is_padded ? pe_evidence_pad(d, axis, s.first, s.n_believed, err)
                             : pe_evidence_cut(d, axis, s.first, s.n_believed, err);
        if (status)
            return status;
        e->sizes[e->n_sizes++] = s;
    }
    return status;
}

/* Is a row of a map one of the believed map's? Of those numbers that both have. */
static bool is_map_row(const struct pe_diagnosis *d, uint64_t found, uint64_t believed)
{
    enum { SOME = 256 };
    double x[SOME], y[SOME], largest = 0, error = 0;
    size_t n = d->evidence.row_len < SOME ? (size_t)d->evidence.row_len : SOME;
    pe_evidence_read(&d->evidence, 0, found, 0, n, x);
    pe_model_fill(d->belief.model, 0, believed, 0, n, y);
    for (size_t j = 0; j < n; j++) {
        if (isinf(x[j]) != isinf(y[j]))
            return false;
        largest = isfinite(y[j]) ? fmax(largest, fabs(y[j])) : largest;
        error = isfinite(x[j]) && isfinite(y[j]) ? fmax(error, fabs(x[j] - y[j])) : error;
    }
    return error <= 1e-2 * largest;
}

/* Other heads, or the first queries: where the last row of the first head that came is that of the belief. */
enum pe_status pe_sizes_place(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    const struct pe_place n = pe_evidence_places(e);
    for (size_t i = 0; e->kind->id == PE_OF_MAPS && i < e->n_sizes; i++) {
        struct pe_size *s = &e->sizes[i];
        bool are_heads = s->of == PE_SIZE_OF_HEADS;
        uint64_t step = are_heads ? n.row : 1, last = are_heads ? n.row - 1 : s->n_found - 1;
        if (!s->is_padded || !(are_heads || s->of == PE_SIZE_OF_ROWS))
            continue;
        uint64_t first = 0, most = s->n_believed - s->n_found;
        while (first <= most && !pe_is_cancelled() && !is_map_row(d, s->first * step + last, first * step + last))
            first++;
        if (first > most || first == s->first)
            continue;
        unsigned axis = e->tensors[0].rank - (are_heads ? 3 : 2);
        enum pe_status status = pe_evidence_cut(d, axis, s->first, s->n_found, err);
        if (!status)
            status = pe_evidence_pad(d, axis, first, s->n_believed, err);
        if (status)
            return status;
        s->first = first;
    }
    return PE_OK;
}
