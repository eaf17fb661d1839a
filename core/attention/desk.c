/* Desks: working memory of those who fill. All is allocated when the plan is made, so filling cannot fail; pages that
 * nobody writes take no memory. */
#include "core/attention/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NOTHING_LOADED = 0 }; /* heads are counted from 1 */

/* Numbers of keys or values, after which the desk asks whether it is still wanted: half a millisecond. */
enum { ASK_NUMBERS = 1 << 17 };

/* ---- Making ---- */

static bool is_normalised(const struct pe_plan *plan)
{
    double factor;
    const struct pe_attend *attend = plan->scheme->attend;
    return attend && attend->cosine && attend->cosine(plan, 0, &factor);
}

/* May a tensor's rows be used where they are? */
static bool serves_as_is(const struct pe_plan *plan, const struct pe_operand *op, bool is_value)
{
    const struct pe_attention *t = plan->attention;
    bool changed = !is_value && (t->turns || pe_attention_is_linear(t) || is_normalised(plan));
    return !changed && op->tensor.dtype == t->a->dtype && (uintptr_t)op->tensor.data % t->a->size == 0;
}

struct layout {
    char *base; /* NULL while sizes are counted */
    size_t used;
};

static void *take(struct layout *l, size_t n, size_t size)
{
    char *at = l->base ? l->base + l->used : NULL;
    l->used += (n * size + 63) & ~(size_t)63;
    return n ? at : NULL;
}

/* Both counts a desk's bytes and lays it out. */
static void lay_out(const struct pe_plan *plan, struct pe_desk *desk, struct layout *l)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    size_t size = t->a->size, rows = t->block_rows, map = rows * t->k_len;
    bool linear = pe_attention_is_linear(t), biased = t->bias_id != SIZE_MAX;
    struct pe_attend_room room = attend && attend->room ? attend->room(plan, rows) : (struct pe_attend_room){0};
    size_t heads_of_unit = t->fields.tensor_layout == PE_BNHD ? t->n_heads : 1;
    desk->k = take(l, serves_as_is(plan, &t->k, false) ? 0 : t->k_len * t->head_dim, size);
    size_t panels = pe_panels_size(t->k_len, t->head_dim);
    desk->panels = take(l, panels * size > PE_PANELS_BYTES_MAX ? 0 : panels, size);
    desk->k_plain = take(l, linear && t->turns ? t->k_len * t->head_dim : 0, size);
    desk->v = take(l, !t->wants_output || serves_as_is(plan, &t->v, true) ? 0 : t->k_len * t->v_dim, size);
    desk->q = take(l, rows * t->head_dim, size);
    desk->q_plain = take(l, linear && t->turns ? rows * t->head_dim : 0, size);
    desk->q_biased = take(l, attend && attend->query_bias ? rows * t->head_dim : 0, size);
    desk->block = take(l, map, size);
    desk->second = take(l, linear && t->turns ? map : 0, size);
    desk->vector = take(l, biased && attend && attend->bias_at ? t->q_len + t->k_len : 0, sizeof(double));
    desk->bias = take(l, biased ? t->k_len : 0, sizeof(double));
    desk->near = take(l, biased ? rows + t->k_len : 0, size);
    desk->seen = take(l, t->k_len, 1);
    desk->entropies = take(l, rows, sizeof(double));
    desk->out = take(l, t->wants_output ? rows * heads_of_unit * t->v_dim : 0, size);
    desk->tables = take(l, room.tables, size);
    desk->scratch = take(l, room.scratch, size);
}

static enum pe_status open_desk(const struct pe_plan *plan, struct pe_desk *desk, struct pe_error *err)
{
    struct layout counted = {0}, l = {0};
    lay_out(plan, desk, &counted);
    desk->memory = malloc(counted.used + 64);
    if (!desk->memory)
        return pe_no_memory(err);
    l.base = desk->memory + (-(uintptr_t)desk->memory & 63);
    lay_out(plan, desk, &l);
    atomic_init(&desk->busy, false);
    atomic_init(&desk->unit, UINT64_MAX);
    return PE_OK;
}

enum pe_status pe_desks_init(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    t->desks = calloc(PE_DESKS_MAX, sizeof *t->desks);
    if (!t->desks)
        return pe_no_memory(err);
    t->n_desks = PE_DESKS_MAX;
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < t->n_desks; i++)
        status = open_desk(plan, &t->desks[i], err);
    return status;
}

double pe_attention_bytes(const struct pe_plan *plan)
{
    enum { AT_WORK = 3 }; /* a stream of the server has three pieces at a time */
    struct layout counted = {0};
    struct pe_desk desk;
    lay_out(plan, &desk, &counted);
    return AT_WORK * (double)counted.used;
}

void pe_desks_drop(struct pe_attention *t)
{
    for (size_t i = 0; t->desks && i < PE_DESKS_MAX; i++)
        free(t->desks[i].memory);
    free(t->desks);
}

/* ---- Borrowing ---- */

/* The desk that has the unit already, else any that is free, the least used first. */
static struct pe_desk *choose(const struct pe_attention *t, uint64_t unit)
{
    struct pe_desk *any = NULL;
    for (size_t i = 0; i < t->n_desks; i++) {
        struct pe_desk *desk = &t->desks[i];
        if (atomic_load_explicit(&desk->busy, memory_order_relaxed))
            continue;
        if (atomic_load_explicit(&desk->unit, memory_order_relaxed) == unit)
            return desk;
        any = any ? any : desk;
    }
    return any;
}

/* A stream of the server has three pieces at work; several streams of one plan have more than there are desks. */
struct pe_desk *pe_desk_borrow(const struct pe_attention *t, uint64_t unit)
{
    for (;;) {
        struct pe_desk *desk = choose(t, unit);
        if (desk && !atomic_exchange_explicit(&desk->busy, true, memory_order_acquire))
            return desk;
        if (!desk)
            pe_wait();
    }
}

void pe_desk_return(struct pe_desk *desk, uint64_t unit)
{
    atomic_store_explicit(&desk->unit, unit, memory_order_relaxed);
    atomic_store_explicit(&desk->busy, false, memory_order_release);
}

/* ---- Loading ---- */

/* phi(x) = elu(x) + 1 > 0 */
static double phi(double x) { return x > 0 ? x + 1 : exp(x); }

/* Row row0 + i of a side's table of cosines and sines; made here, some rows at a time, where it is not kept. */
struct angles {
    size_t first, n;
    double values[PE_SCRATCH_BYTES / sizeof(double)];
};

static const double *cosines_at(const struct pe_plan *plan, const struct pe_side *side, size_t row, struct angles *w)
{
    const struct pe_turn *turn = &plan->attention->turn;
    size_t width = 2 * turn->rotation.n_pairs;
    if (side->cosines)
        return side->cosines + row * width;
    if (row < w->first || row >= w->first + w->n) {
        size_t room = sizeof w->values / sizeof *w->values / width, left = side->operand->n - row;
        w->first = row;
        w->n = left < room ? left : room;
        pe_turn_table(turn, plan, side->positions, side->id, row, w->n, w->values);
    }
    return w->values + (row - w->first) * width;
}

static void normalise(double *x, size_t n)
{
    double sum = 0;
    for (size_t c = 0; c < n; c++)
        sum += x[c] * x[c];
    double norm = fmax(sqrt(sum), 1e-12); /* torch.nn.functional.normalize */
    for (size_t c = 0; c < n; c++)
        x[c] /= norm;
}

/* One row, changed before it is turned. */
static void load_changed(const struct pe_plan *plan, const struct pe_operand *op, const char *from,
                         const double *cosines, char *to, char *plain)
{
    const struct pe_attention *t = plan->attention;
    double x[PE_HEAD_DIM_MAX];
    pe_convert(PE_F64, x, op->tensor.dtype, from, t->head_dim);
    for (size_t c = 0; pe_attention_is_linear(t) && c < t->head_dim; c++)
        x[c] = phi(x[c]);
    if (is_normalised(plan))
        normalise(x, t->head_dim);
    if (plain)
        pe_convert(t->a->dtype, plain, PE_F64, x, t->head_dim);
    if (cosines)
        pe_turn_row(&t->turn, cosines, PE_F64, x, t->a->dtype, to);
    else
        pe_convert(t->a->dtype, to, PE_F64, x, t->head_dim);
}

/* A row of a tensor may stand at any address: .npy parts begin where the part before them ends. */
static void load_row(const struct pe_plan *plan, const struct pe_operand *op, const char *from, const double *cosines,
                     char *to, char *plain)
{
    const struct pe_attention *t = plan->attention;
    if (pe_attention_is_linear(t) || is_normalised(plan))
        load_changed(plan, op, from, cosines, to, plain);
    else if (cosines)
        pe_turn_row(&t->turn, cosines, op->tensor.dtype, from, t->a->dtype, to);
    else
        pe_convert(t->a->dtype, to, op->tensor.dtype, from, op->width);
}

static bool is_time_to_ask(size_t row, size_t width)
{
    size_t rows = ASK_NUMBERS / width;
    return row % (rows ? rows : 1) == rows - 1;
}

void pe_desk_load_rows(const struct pe_plan *plan, const struct pe_side *side, size_t batch, size_t head, size_t row0,
                       size_t n, void *dst, void *plain)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_operand *op = side->operand;
    size_t size = pe_dtype_size(op->tensor.dtype), bytes = op->width * t->a->size;
    const char *from =
        (const char *)op->tensor.data + (batch * op->batch_step + head * op->head_step + row0 * op->row_step) * size;
    struct angles w;
    w.first = w.n = 0;
    for (size_t i = 0; i < n; i++, from += op->row_step * size) {
        if (is_time_to_ask(i, op->width) && pe_is_cancelled())
            return;
        const double *cosines = t->turns ? cosines_at(plan, side, row0 + i, &w) : NULL;
        load_row(plan, op, from, cosines, (char *)dst + i * bytes, plain ? (char *)plain + i * bytes : NULL);
    }
}

static void load_values(const struct pe_attention *t, struct pe_desk *desk, size_t batch, size_t kv_head)
{
    const struct pe_operand *v = &t->v;
    size_t size = pe_dtype_size(v->tensor.dtype);
    const char *from = (const char *)v->tensor.data + (batch * v->batch_step + kv_head * v->head_step) * size;
    for (size_t j = 0; j < t->k_len && !(is_time_to_ask(j, t->v_dim) && pe_is_cancelled()); j++)
        pe_convert(t->a->dtype, desk->v + j * t->v_dim * t->a->size, v->tensor.dtype, from + j * v->row_step * size,
                   t->v_dim);
}

const char *pe_desk_keys(const struct pe_attention *t, const struct pe_desk *desk, size_t batch, size_t kv_head,
                         size_t *stride)
{
    const struct pe_operand *k = &t->k;
    *stride = desk->k ? t->head_dim : k->row_step;
    return desk->k ? desk->k
                   : (const char *)k->tensor.data + (batch * k->batch_step + kv_head * k->head_step) * t->a->size;
}

/* A whole number of panels at a time. */
static void pack(const struct pe_attention *t, const char *keys, size_t stride, char *panels)
{
    size_t rows = ASK_NUMBERS / t->head_dim & ~(size_t)63, n;
    rows = rows ? rows : 64;
    for (size_t j = 0; j < t->k_len && !pe_is_cancelled(); j += n) {
        n = t->k_len - j < rows ? t->k_len - j : rows;
        t->a->pack(keys + j * stride * t->a->size, stride, n, t->head_dim, panels + j * t->head_dim * t->a->size);
    }
}

static void load_keys(const struct pe_plan *plan, struct pe_desk *desk, size_t batch, size_t kv_head)
{
    const struct pe_attention *t = plan->attention;
    size_t stride;
    if (desk->k)
        pe_desk_load_rows(plan, &t->sides[1], batch, kv_head, 0, t->k_len, desk->k, desk->k_plain);
    const char *keys = pe_desk_keys(t, desk, batch, kv_head, &stride);
    if (desk->panels)
        pack(t, keys, stride, desk->panels);
}

static void meet_keys(const struct pe_plan *plan, struct pe_desk *desk, size_t batch, size_t head)
{
    const struct pe_attention *t = plan->attention;
    struct pe_rows keys = {.plan = plan, .a = t->a, .batch = batch, .head = head, .n_keys = t->k_len};
    keys.head_dim = t->head_dim;
    keys.k = pe_desk_keys(t, desk, batch, head / (t->n_heads / t->n_kv_heads), &keys.k_stride);
    keys.panels = desk->panels;
    keys.tables = desk->head_tables;
    plan->scheme->attend->open_keys(&keys, desk->tables);
}

void pe_desk_load_head(const struct pe_plan *plan, struct pe_desk *desk, size_t batch, size_t head)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    size_t kv_head = head / (t->n_heads / t->n_kv_heads);
    uint64_t kv = 1 + batch * t->n_kv_heads + kv_head;
    if (desk->kv_head != kv) {
        load_keys(plan, desk, batch, kv_head);
        if (desk->v)
            load_values(t, desk, batch, kv_head);
        desk->kv_head = pe_was_cancelled() ? NOTHING_LOADED : kv;
        if (pe_was_cancelled())
            return;
    }
    if (attend && attend->open_head && desk->table_head != 1 + head) {
        desk->head_tables = attend->open_head(plan, t->a, head, desk->tables);
        desk->table_head = pe_was_cancelled() ? NOTHING_LOADED : 1 + head;
    }
    if (attend && attend->open_keys && desk->met != 1 + batch * t->n_heads + head) {
        meet_keys(plan, desk, batch, head);
        desk->met = pe_was_cancelled() ? NOTHING_LOADED : 1 + batch * t->n_heads + head;
    }
}
