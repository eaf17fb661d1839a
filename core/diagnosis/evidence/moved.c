/* Copies of a tensor that take its place: axes in an order that no configuration has (a map with its heads behind the
 * queries, a bias with its heads last, a rotated tensor whose channels are not its last axis), and the rows that are
 * compared of a tensor which has more of them (sizes.c).
 *
 * Where the sizes of a tensor contradict the belief and those of the copy do not, everything else is searched as in a
 * tensor of this shape. Indices in the answer are those of the tensor that was sent. */
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

/* Element i of a tensor of this shape. */
static uint64_t element_of(unsigned rank, const uint64_t *shape, const uint64_t *step, uint64_t first, uint64_t i)
{
    uint64_t at = first;
    for (unsigned a = rank; a-- > 0; i /= shape[a])
        at += i % shape[a] * step[a];
    return at;
}

/* What is copied: of each axis its length, and its step in the tensor as it is now. */
struct part {
    unsigned rank;
    uint64_t shape[PE_RANK_MAX], step[PE_RANK_MAX], first;
};

static enum pe_status copy(struct pe_diagnosis *d, const struct part *p, struct pe_tensor *t, void **owned,
                           struct pe_failure *err)
{
    size_t size = pe_dtype_size(t->dtype);
    uint64_t n;
    pe_shape_count(p->shape, p->rank, &n);
    if (pe_diagnosis_admit(d, (double)n * (double)size, err))
        return err->status;
    char *to = malloc(n * size);
    if (!to)
        return pe_no_memory(err);
    for (uint64_t i = 0; i < n; i++) {
        memcpy(to + i * size, (const char *)t->data + element_of(p->rank, p->shape, p->step, p->first, i) * size, size);
        if (i % 16384 == 16383 && pe_is_cancelled()) {
            free(to);
            return pe_cancelled(err);
        }
    }
    free(*owned);
    *owned = to;
    t->data = to;
    t->rank = p->rank;
    memcpy(t->shape, p->shape, sizeof t->shape);
    return PE_OK;
}

static enum pe_status copy_all(struct pe_diagnosis *d, const struct part *p, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    enum pe_status status = PE_OK;
    for (size_t t = 0; !status && t < e->n_tensors; t++)
        status = copy(d, p, &e->tensors[t], &e->moved.owned[t], err);
    if (!status && e->kind->input)
        status = copy(d, p, &e->input, &e->moved.owned[PE_EVIDENCE_TENSORS_MAX], err);
    if (!status)
        pe_evidence_fold(e, p->rank, p->shape);
    return status;
}

/* The copy's elements in the tensor sent, which may be seen through an earlier copy. */
static void note(struct pe_moved *m, const struct pe_tensor *t, const struct part *p, const unsigned char *order)
{
    uint64_t step[PE_RANK_MAX] = {0};
    find_steps(t, step);
    for (unsigned a = 0; a < p->rank && a < PE_RANK_MAX; a++) {
        step[a] = m->n ? m->step[a] : step[a];
        m->order[a] = m->n ? m->order[a] : (unsigned char)a;
    }
    for (unsigned a = 0; a < p->rank && a < PE_RANK_MAX; a++) {
        m->order[a] = order ? order[a] : m->order[a];
        m->shape[a] = p->shape[a];
        m->step[a] = step[order ? order[a] : a];
    }
    m->n = p->rank;
    m->is_other_order |= order != NULL;
}

enum pe_status pe_evidence_move(struct pe_diagnosis *d, const unsigned char *order, struct pe_failure *err)
{
    const struct pe_tensor t = d->evidence.tensors[0];
    struct part p = {.rank = t.rank};
    uint64_t step[PE_RANK_MAX];
    find_steps(&t, step);
    for (unsigned a = 0; a < t.rank; a++) {
        p.shape[a] = t.shape[order[a]];
        p.step[a] = step[order[a]];
    }
    note(&d->evidence.moved, &t, &p, order);
    return copy_all(d, &p, err);
}

/* Of a view, rows are those of the tensor sent from another first one on. */
static enum pe_status cut_view(struct pe_evidence *e, unsigned axis, uint64_t first, uint64_t n, struct pe_failure *err)
{
    uint64_t shape[PE_RANK_MAX];
    unsigned rank = e->tensors[0].rank;
    memcpy(shape, e->tensors[0].shape, sizeof shape);
    shape[axis] = n;
    if (axis != rank - 2 || e->n_rows != e->tensors[0].shape[axis])
        return err->status;
    for (size_t t = 0; t < e->n_tensors; t++)
        e->view.first[t] += first * e->view.row_step;
    pe_evidence_fold(e, rank, shape);
    return PE_OK;
}

enum pe_status pe_evidence_cut(struct pe_diagnosis *d, unsigned axis, uint64_t first, uint64_t n,
                               struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    const struct pe_tensor t = e->tensors[0];
    struct part p = {.rank = t.rank};
    if (e->view.sent.rank)
        return cut_view(e, axis, first, n, err);
    find_steps(&t, p.step);
    memcpy(p.shape, t.shape, sizeof p.shape);
    p.shape[axis] = n;
    p.first = first * p.step[axis];
    note(&e->moved, &t, &p, NULL);
    e->moved.first += first * e->moved.step[axis];
    return copy_all(d, &p, err);
}

enum pe_status pe_evidence_pad(struct pe_diagnosis *d, unsigned axis, uint64_t first, uint64_t n,
                               struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    struct pe_tensor *t = &e->tensors[0];
    struct part p = {.rank = t->rank};
    uint64_t n_before, n_behind, before = t->shape[axis], size = pe_dtype_size(t->dtype);
    pe_shape_count(t->shape, axis, &n_before);
    pe_shape_count(t->shape + axis + 1, t->rank - axis - 1, &n_behind);
    if (e->view.sent.rank || pe_diagnosis_admit(d, (double)(n_before * n * n_behind * size), err))
        return err->status;
    char *to = calloc(n_before * n * n_behind, size);
    if (!to)
        return pe_no_memory(err);
    for (uint64_t i = 0; i < n_before; i++)
        memcpy(to + (i * n + first) * n_behind * size, (const char *)t->data + i * before * n_behind * size,
               before * n_behind * size);
    memcpy(p.shape, t->shape, sizeof p.shape);
    p.shape[axis] = n;
    note(&e->moved, t, &p, NULL);
    e->moved.first -= first * e->moved.step[axis]; /* modulo 2^64: indices of the tensor are again those sent */
    free(e->moved.owned[0]);
    e->moved.owned[0] = to;
    t->data = to;
    pe_evidence_fold(e, p.rank, p.shape);
    return PE_OK;
}

uint64_t pe_moved_element(const struct pe_evidence *e, uint64_t i)
{
    const struct pe_moved *m = &e->moved;
    return m->n ? element_of(m->n, m->shape, m->step, m->first, i) : i;
}

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
