/* Writes any elements of an output: computes the units that they belong to, each in a workspace. */
#include "core/attention/attention.h"

#include <string.h>

/* The part that one workspace computes at a time: some queries of one head, or of all heads if the output has the
 * heads after the positions, of all batches too if it has those after the positions. Units are numbered across the
 * output. */
struct unit {
    uint64_t number;
    size_t term;                 /* of terms: its number among those of the answer */
    size_t batch, head, n_heads; /* heads head … head+n_heads-1, on through the batches that follow */
    size_t i0, n_rows;
    size_t width; /* numbers per query and head */
};

static struct unit unit_at(const struct pe_plan *plan, size_t i, uint64_t element)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_output *o = &plan->outputs[i];
    uint64_t period = element / o->period, within = element % o->period / o->unit;
    bool inside = t->kinds[i] == PE_OUTPUT && pe_attention_heads_inside(t);
    struct unit u = {.number = period * ((o->period - 1) / o->unit + 1) + within};
    u.n_heads = inside ? t->n_heads * (pe_attention_batch_inside(t) ? t->n_batches : 1) : 1;
    u.batch = inside ? period : period / t->n_heads;
    if (t->kinds[i] == PE_TERMS || t->kinds[i] == PE_OUTPUT_TERMS) {
        u.term = u.batch / t->n_batches;
        u.batch %= t->n_batches;
    }
    u.head = inside ? 0 : period % t->n_heads;
    u.i0 = within * t->block_rows;
    u.n_rows = t->q_len - u.i0 < t->block_rows ? t->q_len - u.i0 : t->block_rows;
    u.width = o->unit / t->block_rows / u.n_heads;
    return u;
}

/* Computes the output of the unit's i-th head. In the unit, the heads of a query are contiguous. */
static void make_output(const struct pe_plan *plan, struct pe_workspace *workspace, const struct unit *u, size_t i)
{
    const struct pe_attention *t = plan->attention;
    enum pe_attention_output kind = pe_attention_is_linear(t) ? PE_WEIGHTS : PE_PROBS;
    size_t batch = u->batch + (u->head + i) / t->n_heads, head = (u->head + i) % t->n_heads;
    pe_block_make(plan, workspace, kind, batch, head, u->i0, u->n_rows, workspace->block);
    if (pe_is_cancelled())
        return;
    void *out = pe_numbers_at(t->a, workspace->out, i * t->v_dim);
    pe_block_output(plan, workspace, batch, head, u->n_rows, workspace->block, out, u->n_heads * t->v_dim);
    pe_block_output_of_scheme(plan, workspace, batch, head, u->i0, u->n_rows, workspace->block, out,
                              u->n_heads * t->v_dim);
    if (t->fields.unrotate_output)
        pe_workspace_unrotate(plan, batch, u->i0, u->n_rows, out, u->n_heads * t->v_dim);
}

/* One summand of the output: what the values give, or the scheme's own. */
static void make_output_term(const struct pe_plan *plan, struct pe_workspace *workspace, const struct unit *u)
{
    const struct pe_attention *t = plan->attention;
    pe_block_make(plan, workspace, PE_PROBS, u->batch, u->head, u->i0, u->n_rows, workspace->block);
    if (pe_is_cancelled())
        return;
    if (u->term == 0) {
        pe_block_output(plan, workspace, u->batch, u->head, u->n_rows, workspace->block, workspace->out, t->v_dim);
        return;
    }
    pe_numbers_set(t->a, workspace->out, 0, u->n_rows * t->v_dim, 0);
    pe_block_output_of_scheme(plan, workspace, u->batch, u->head, u->i0, u->n_rows, workspace->block, workspace->out,
                              t->v_dim);
}

/* Computes the unit's numbers, maps at `block`, and returns their address and dtype. */
static const void *make_unit(const struct pe_plan *plan, struct pe_workspace *workspace, enum pe_attention_output kind,
                             const struct unit *u, bool is_made, void *block, enum pe_dtype *dtype)
{
    const struct pe_attention *t = plan->attention;
    *dtype = kind == PE_ROW_ENTROPY ? PE_F64 : t->a->dtype;
    for (size_t j = 0; !is_made && j < u->n_heads && !pe_is_cancelled(); j++) {
        size_t head = (u->head + j) % t->n_heads;
        pe_workspace_load_head(plan, workspace, u->batch + (u->head + j) / t->n_heads, head);
        if (pe_was_cancelled())
            break;
        if (kind == PE_OUTPUT)
            make_output(plan, workspace, u, j);
        else if (kind == PE_OUTPUT_TERMS)
            make_output_term(plan, workspace, u);
        else if (kind == PE_TERMS)
            pe_block_make_term(plan, workspace, t->terms[u->term], u->batch, head, u->i0, u->n_rows, block);
        else
            pe_block_make(plan, workspace, kind, u->batch, head, u->i0, u->n_rows, block);
    }
    bool is_output = kind == PE_OUTPUT || kind == PE_OUTPUT_TERMS;
    return is_output ? workspace->out : kind == PE_ROW_ENTROPY ? (const void *)workspace->entropies : block;
}

/* A whole unit of a map in the arithmetic's own dtype is computed directly in the caller's buffer. */
static bool is_made_in_place(const struct pe_plan *plan, size_t i, const struct unit *u, size_t n, const void *at)
{
    const struct pe_attention *t = plan->attention;
    bool map = t->kinds[i] != PE_OUTPUT && t->kinds[i] != PE_OUTPUT_TERMS && t->kinds[i] != PE_ROW_ENTROPY;
    return map && n == u->n_rows * u->width && plan->outputs[i].dtype == t->a->dtype && (uintptr_t)at % t->a->size == 0;
}

/* A unit is always computed whole and the requested part is copied, because the last bits of a matrix product depend
 * on its size. */
void pe_attention_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    const struct pe_output *o = &plan->outputs[i];
    char *at = dst;
    while (n > 0 && !pe_is_cancelled()) {
        struct unit u = unit_at(plan, i, first);
        uint64_t start = first % o->period % o->unit;
        uint64_t left = u.n_rows * u.n_heads * u.width - start;
        size_t m = left < n ? (size_t)left : n;
        /* Writes n numbers of a unit from `start` on. The workspace remembers which unit its memory holds. */
        const struct pe_attention *t = plan->attention;
        uint64_t name = u.number * 16 + (uint64_t)t->kinds[i];
        enum pe_dtype dtype;
        struct pe_workspace *workspace = pe_workspace_borrow(t, name);
        uint64_t has = atomic_load_explicit(&workspace->unit, memory_order_relaxed);
        bool in_place = has != name && is_made_in_place(plan, i, &u, m, at);
        const char *numbers =
            make_unit(plan, workspace, t->kinds[i], &u, has == name, in_place ? at : (void *)workspace->block, &dtype);
        if (!in_place)
            pe_convert(plan->outputs[i].dtype, at, dtype, numbers + ((size_t)start) * pe_dtype_size(dtype), m);
        if (has != name && pe_was_cancelled()) /* the workspace may hold an incomplete unit */
            name = UINT64_MAX;
        pe_workspace_return(workspace, in_place && name != UINT64_MAX ? has : name);
        first += m;
        n -= m;
        at += m * pe_dtype_size(o->dtype);
    }
}
