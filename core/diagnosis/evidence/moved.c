/* Axes in an order that no configuration has: a map with its heads behind the queries, a bias with its heads last, a
 * rotated tensor whose channels are not its last axis.
 *
 * Where the sizes of a tensor contradict the belief and those of its axes in another order do not, a copy in that order
 * takes the tensor's place, so that everything else is searched as in a tensor of this order. Indices in the answer are
 * those of the tensor that was sent. */
#include "core/diagnosis/diagnosis.h"

#include <stdlib.h>
#include <string.h>

/* Elements from one index of each axis to the next. */
static void find_steps(const struct pe_tensor *t, uint64_t *step)
{
    uint64_t n = 1;
    for (unsigned a = t->rank; a-- > 0; n *= t->shape[a])
        step[a] = n;
}

/* The element of the tensor sent that is number i of the copy. */
static uint64_t element_of(const struct pe_moved *m, uint64_t i)
{
    uint64_t at = 0;
    for (unsigned a = m->n; a-- > 0; i /= m->shape[a])
        at += i % m->shape[a] * m->step[a];
    return at;
}

static enum pe_status copy(struct pe_diagnosis *d, const struct pe_moved *m, struct pe_tensor *t, void **owned,
                           struct pe_failure *err)
{
    size_t size = pe_dtype_size(t->dtype);
    uint64_t n;
    pe_shape_count(t->shape, t->rank, &n);
    if (pe_diagnosis_admit(d, (double)n * (double)size, err))
        return err->status;
    char *to = *owned = malloc(n * size);
    if (!to)
        return pe_no_memory(err);
    for (uint64_t i = 0; i < n; i++) {
        memcpy(to + i * size, (const char *)t->data + element_of(m, i) * size, size);
        if (i % 16384 == 16383 && pe_is_cancelled())
            return pe_cancelled(err);
    }
    t->data = to;
    t->rank = m->n;
    memcpy(t->shape, m->shape, sizeof t->shape);
    return PE_OK;
}

enum pe_status pe_evidence_move(struct pe_diagnosis *d, const unsigned char *order, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    struct pe_moved *m = &e->moved;
    const struct pe_tensor t = e->tensors[0];
    uint64_t step[PE_RANK_MAX];
    find_steps(&t, step);
    m->n = t.rank;
    for (unsigned a = 0; a < t.rank; a++) {
        m->order[a] = order[a];
        m->shape[a] = t.shape[order[a]];
        m->step[a] = step[order[a]];
    }
    enum pe_status status = copy(d, m, &e->tensors[0], &m->owned[0], err);
    if (!status && e->kind->input)
        status = copy(d, m, &e->input, &m->owned[1], err);
    if (!status)
        pe_evidence_fold(e, m->n, m->shape);
    return status;
}

uint64_t pe_moved_element(const struct pe_evidence *e, uint64_t i) { return e->moved.n ? element_of(&e->moved, i) : i; }

bool pe_order_of(const struct pe_tensor *t, const uint64_t *shape, unsigned rank, unsigned char *order)
{
    bool is_used[PE_RANK_MAX] = {false}, is_other = false;
    if (t->rank != rank)
        return false;
    for (unsigned a = 0; a < rank; a++) {
        unsigned i = 0;
        while (i < rank && (is_used[i] || t->shape[i] != shape[a]))
            i++;
        if (i == rank)
            return false;
        is_used[i] = true;
        is_other = is_other || i != a;
        order[a] = (unsigned char)i;
    }
    return is_other;
}

void pe_order_to(unsigned rank, unsigned from, unsigned to, unsigned char *order)
{
    unsigned n = 0;
    for (unsigned a = 0; a < rank; a++, n++) {
        n += n == from;
        order[a] = (unsigned char)(a == to ? from : n);
        n -= a == to;
    }
}
