/* Workspaces: working memory of the threads that fill. All of it is allocated with the plan, so filling cannot fail;
 * pages that are never written take no memory.
 *
 * A thread that fills a piece borrows a workspace by one atomic exchange and returns it at the end; there are four,
 * since a stream of the server fills three pieces at a time, and a thread that finds none free waits. Each remembers
 * the head whose keys and values it has rotated, converted and laid out in panels, and the unit that it computed last.
 * Pieces are filled in order by threads in no order, so a thread first looks for the workspace that already has its
 * unit, then for the first free one: most pieces find their head ready, though nothing is passed from thread to thread.
 *
 * Both counting and laying out are one function, run twice, so the two cannot disagree. */
#include "core/attention/attention.h"
#include "core/encode/encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NOTHING_LOADED = 0 }; /* heads are counted from 1 */

/* After this many numbers of keys or values, half a millisecond, the thread checks whether the request was
 * cancelled. */
enum { ASK_NUMBERS = 1 << 17 };

/* ---- Making ---- */

static bool is_normalised(const struct pe_plan *plan)
{
    double factor;
    const struct pe_attend *attend = plan->scheme->attend;
    return attend && attend->cosine && attend->cosine(plan, 0, &factor);
}

/* Can a tensor's rows be used in place? */
static bool serves_as_is(const struct pe_plan *plan, const struct pe_operand *op, bool is_value)
{
    const struct pe_attention *t = plan->attention;
    bool changed = is_value ? t->fields.rotate_values : t->turns || pe_attention_is_linear(t) || is_normalised(plan);
    return !changed && op->tensor.dtype == t->a->dtype && (uintptr_t)op->tensor.data % t->a->size == 0;
}

struct layout {
    char *base; /* NULL while sizes are counted */
    size_t used;
};

static void *take_room(struct layout *l, size_t n, size_t size)
{
    char *at = l->base ? l->base + l->used : NULL;
    l->used += (n * size + 63) & ~(size_t)63;
    return n ? at : NULL;
}

/* Both counts a workspace's bytes and lays it out. */
static void lay_out(const struct pe_plan *plan, struct pe_workspace *workspace, struct layout *l)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    size_t size = t->a->size, rows = t->block_rows, map = rows * t->k_len;
    bool linear = pe_attention_is_linear(t), biased = t->bias_id != SIZE_MAX;
    struct pe_attend_room room = attend && attend->room ? attend->room(plan, rows) : (struct pe_attend_room){0};
    size_t heads_of_unit = pe_attention_batch_inside(t)   ? t->n_batches * t->n_heads
                           : pe_attention_heads_inside(t) ? t->n_heads
                                                          : 1;
    workspace->k = take_room(l, serves_as_is(plan, &t->k, false) ? 0 : t->k_len * t->head_dim, size);
    size_t panels = t->head_dim ? pe_panels_size(t->k_len, t->head_dim) : 0;
    workspace->panels = take_room(l, panels * size > PE_PANELS_BYTES_MAX ? 0 : panels, size);
    workspace->k_plain = take_room(l, linear && t->turns ? t->k_len * t->head_dim : 0, size);
    workspace->v = take_room(l, !t->wants_output || serves_as_is(plan, &t->v, true) ? 0 : t->k_len * t->v_dim, size);
    workspace->q = take_room(l, rows * t->head_dim, size);
    workspace->q_plain = take_room(l, linear && t->turns ? rows * t->head_dim : 0, size);
    workspace->q_biased = take_room(l, attend && attend->query_bias ? rows * t->head_dim : 0, size);
    workspace->block = take_room(l, map, size);
    bool has_second = (linear && t->turns) || (t->wants_terms && attend && attend->add_last);
    workspace->second = take_room(l, has_second ? map : 0, size);
    workspace->vector = take_room(l, biased && attend && attend->bias_at ? t->q_len + t->k_len : 0, sizeof(double));
    workspace->bias = take_room(l, biased ? t->k_len : 0, sizeof(double));
    workspace->near = take_room(l, biased ? rows + t->k_len : 0, size);
    workspace->seen = take_room(l, t->k_len, 1);
    workspace->entropies = take_room(l, rows, sizeof(double));
    workspace->out = take_room(l, t->wants_output ? rows * heads_of_unit * t->v_dim : 0, size);
    workspace->tables = take_room(l, room.tables, size);
    workspace->scratch = take_room(l, room.scratch, size);
}

static enum pe_status open_workspace(const struct pe_plan *plan, struct pe_workspace *workspace, struct pe_failure *err)
{
    struct layout counted = {0}, l = {0};
    lay_out(plan, workspace, &counted);
    workspace->memory = malloc(counted.used + 64);
    if (!workspace->memory)
        return pe_no_memory(err);
    l.base = workspace->memory + (-(uintptr_t)workspace->memory & 63);
    lay_out(plan, workspace, &l);
    atomic_init(&workspace->busy, false);
    atomic_init(&workspace->unit, UINT64_MAX);
    return PE_OK;
}

enum pe_status pe_workspaces_init(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    t->workspaces = calloc(PE_WORKSPACES_MAX, sizeof *t->workspaces);
    if (!t->workspaces)
        return pe_no_memory(err);
    t->n_workspaces = PE_WORKSPACES_MAX;
    enum pe_status status = PE_OK;
    for (size_t i = 0; !status && i < t->n_workspaces; i++)
        status = open_workspace(plan, &t->workspaces[i], err);
    return status;
}

double pe_attention_bytes(const struct pe_plan *plan)
{
    enum { AT_WORK = 3 }; /* a stream of the server has three pieces at a time */
    struct layout counted = {0};
    struct pe_workspace workspace;
    lay_out(plan, &workspace, &counted);
    return AT_WORK * (double)counted.used;
}

void pe_workspaces_drop(struct pe_attention *t)
{
    for (size_t i = 0; t->workspaces && i < PE_WORKSPACES_MAX; i++)
        free(t->workspaces[i].memory);
    free(t->workspaces);
}

/* ---- Borrowing ---- */

/* Chooses the workspace that already holds the unit, else the first free one, so that memory of the last ones is
 * touched only when it is needed. */
static struct pe_workspace *choose(const struct pe_attention *t, uint64_t unit)
{
    struct pe_workspace *any = NULL;
    for (size_t i = 0; i < t->n_workspaces; i++) {
        struct pe_workspace *workspace = &t->workspaces[i];
        if (atomic_load_explicit(&workspace->busy, memory_order_relaxed))
            continue;
        if (atomic_load_explicit(&workspace->unit, memory_order_relaxed) == unit)
            return workspace;
        any = any ? any : workspace;
    }
    return any;
}

/* A stream of the server fills three pieces at a time, so several streams of one plan may need more workspaces than
 * there are. */
struct pe_workspace *pe_workspace_borrow(const struct pe_attention *t, uint64_t unit)
{
    for (;;) {
        struct pe_workspace *workspace = choose(t, unit);
        if (workspace && !atomic_exchange_explicit(&workspace->busy, true, memory_order_acquire))
            return workspace;
        if (!workspace)
            pe_wait();
    }
}

void pe_workspace_return(struct pe_workspace *workspace, uint64_t unit)
{
    atomic_store_explicit(&workspace->unit, unit, memory_order_relaxed);
    atomic_store_explicit(&workspace->busy, false, memory_order_release);
}

/* ---- Loading ---- */

/* phi(x) = elu(x) + 1 > 0 */
static double phi(double x) { return x > 0 ? x + 1 : exp(x); }

/* Rows from row0 on of a side's table of cosines and sines. Without a stored table they are computed here, some rows
 * at a time. */
struct angles {
    size_t first, n;
    double values[PE_SCRATCH_BYTES / sizeof(double)];
};

static const double *cosines_at(const struct pe_plan *plan, const struct pe_side *side, size_t row, struct angles *w)
{
    const struct pe_row_rotation *turn = &plan->attention->turn;
    size_t width = 2 * turn->rotation.n_pairs;
    if (side->cosines)
        return side->cosines + row * width;
    if (row < w->first || row >= w->first + w->n) {
        size_t room = sizeof w->values / sizeof *w->values / width, left = pe_positions_count(side->positions) - row;
        w->first = row;
        w->n = left < room ? left : room;
        pe_rotate_table(turn, plan, side->positions, side->id, row, w->n, w->values);
    }
    return w->values + (row - w->first) * width;
}

/* Loads one row that must be changed before it is rotated. */
static void load_changed(const struct pe_plan *plan, const struct pe_operand *op, const char *from,
                         const double *cosines, char *to, char *plain)
{
    const struct pe_attention *t = plan->attention;
    double x[PE_HEAD_DIM_MAX];
    pe_convert(PE_F64, x, op->tensor.dtype, from, t->head_dim);
    for (size_t c = 0; pe_attention_is_linear(t) && c < t->head_dim; c++)
        x[c] = phi(x[c]);
    if (is_normalised(plan)) {
        double sum = 0;
        for (size_t c = 0; c < t->head_dim; c++)
            sum += x[c] * x[c];
        double norm = fmax(sqrt(sum), 1e-12); /* torch.nn.functional.normalize */
        for (size_t c = 0; c < t->head_dim; c++)
            x[c] /= norm;
    }
    if (plain)
        pe_convert(t->a->dtype, plain, PE_F64, x, t->head_dim);
    if (cosines)
        pe_rotate_row(&t->turn, cosines, PE_F64, x, t->a->dtype, to);
    else
        pe_convert(t->a->dtype, to, PE_F64, x, t->head_dim);
}

static void multiply_row(const struct pe_arithmetic *a, char *row, size_t n, double factor)
{
    for (size_t c = 0; factor != 1 && c < n; c++)
        pe_number_set(a, row, c, pe_number(a, row, c) * factor);
}

static bool is_time_to_ask(size_t row, size_t width)
{
    size_t rows = ASK_NUMBERS / width;
    return row % (rows ? rows : 1) == rows - 1;
}

/* The row of a side's positions at which the batch begins. */
static size_t place_of(const struct pe_side *side, size_t batch)
{
    size_t n_batches = side->positions ? side->positions->n_batches : 0;
    return n_batches ? batch % n_batches * side->operand->n : 0;
}

void pe_workspace_load_rows(const struct pe_plan *plan, const struct pe_side *side, size_t batch, size_t head,
                            size_t row0, size_t n, void *dst, void *plain)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_operand *op = side->operand;
    if (!op->tensor.data) /* scores are given */
        return;
    size_t size = pe_dtype_size(op->tensor.dtype), bytes = op->width * t->a->size;
    const char *from =
        (const char *)op->tensor.data + (batch * op->batch_step + head * op->head_step + row0 * op->row_step) * size;
    struct angles w;
    size_t place = place_of(side, batch);
    w.first = w.n = 0;
    for (size_t i = 0; i < n; i++, from += op->row_step * size) {
        if (is_time_to_ask(i, op->width) && pe_is_cancelled())
            return;
        const double *cosines = t->turns ? cosines_at(plan, side, place + row0 + i, &w) : NULL;
        /* A row of a tensor may be at any address, because a .npy part begins where the part before it ends. */
        char *to = (char *)dst + i * bytes;
        if (pe_attention_is_linear(t) || is_normalised(plan))
            load_changed(plan, op, from, cosines, to, plain ? (char *)plain + i * bytes : NULL);
        else if (cosines)
            pe_rotate_row(&t->turn, cosines, op->tensor.dtype, from, t->a->dtype, to);
        else
            pe_convert(t->a->dtype, to, op->tensor.dtype, from, op->width);
        if (side->factors)
            multiply_row(t->a, (char *)dst + i * bytes, op->width, side->factors[place + row0 + i]);
    }
}

static void load_values(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t kv_head)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_operand *v = &t->v;
    const struct pe_side *keys = &t->sides[1];
    size_t size = pe_dtype_size(v->tensor.dtype);
    const char *from = (const char *)v->tensor.data + (batch * v->batch_step + kv_head * v->head_step) * size;
    struct angles w;
    w.first = w.n = 0;
    for (size_t j = 0; j < t->k_len && !(is_time_to_ask(j, t->v_dim) && pe_is_cancelled()); j++) {
        const char *row = from + j * v->row_step * size;
        char *to = workspace->v + j * t->v_dim * t->a->size;
        if (t->fields.rotate_values)
            pe_rotate_row(&t->value_turn, cosines_at(plan, keys, place_of(keys, batch) + j, &w), v->tensor.dtype, row,
                          t->a->dtype, to);
        else
            pe_convert(t->a->dtype, to, v->tensor.dtype, row, t->v_dim);
    }
}

/* The inverse of [c -s; s c] is [c s; -s c]/f², where f is the table's attention_factor. */
void pe_workspace_unrotate(const struct pe_plan *plan, size_t batch, size_t i0, size_t n, void *out, size_t out_stride)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_side *queries = &t->sides[0];
    size_t pairs = t->turn.rotation.n_pairs;
    double inverse[PE_HEAD_DIM_MAX];
    struct angles w;
    w.first = w.n = 0;
    for (size_t i = 0; i < n; i++) {
        const double *cosines = cosines_at(plan, queries, place_of(queries, batch) + i0 + i, &w);
        for (size_t c = 0; c < pairs; c++) {
            double square = t->turn.columns[c].ah * t->turn.columns[c].ah;
            inverse[c] = cosines[c] / square;
            inverse[pairs + c] = -cosines[pairs + c] / square;
        }
        void *row = pe_numbers_at(t->a, out, i * out_stride);
        pe_rotate_row(&t->value_turn, inverse, t->a->dtype, row, t->a->dtype, row);
    }
}

const char *pe_workspace_keys(const struct pe_attention *t, const struct pe_workspace *workspace, size_t batch,
                              size_t kv_head, size_t *stride)
{
    const struct pe_operand *k = &t->k;
    *stride = workspace->k ? t->head_dim : k->row_step;
    return workspace->k ? workspace->k
                        : (const char *)k->tensor.data + (batch * k->batch_step + kv_head * k->head_step) * t->a->size;
}

/* Packs a whole number of panels at a time. */
static void pack(const struct pe_attention *t, const char *keys, size_t stride, char *panels)
{
    size_t rows = ASK_NUMBERS / t->head_dim & ~(size_t)63, n;
    rows = rows ? rows : 64;
    for (size_t j = 0; j < t->k_len && !pe_is_cancelled(); j += n) {
        n = t->k_len - j < rows ? t->k_len - j : rows;
        t->a->pack(keys + j * stride * t->a->size, stride, n, t->head_dim, panels + j * t->head_dim * t->a->size);
    }
}

static void meet_keys(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t head)
{
    const struct pe_attention *t = plan->attention;
    struct pe_plan room;
    struct pe_rows keys = {.plan = pe_plan_of_batch(plan, batch, &room), .a = t->a, .batch = batch, .head = head};
    keys.n_keys = t->k_len;
    keys.head_dim = t->head_dim;
    keys.k = pe_workspace_keys(t, workspace, batch, head / (t->n_heads / t->n_kv_heads), &keys.k_stride);
    keys.panels = workspace->panels;
    keys.tables = workspace->head_tables;
    plan->scheme->attend->open_keys(&keys, workspace->tables);
}

void pe_workspace_load_head(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t head)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    size_t kv_head = head / (t->n_heads / t->n_kv_heads);
    uint64_t kv = 1 + batch * t->n_kv_heads + kv_head;
    if (workspace->kv_head != kv) {
        size_t stride;
        if (workspace->k)
            pe_workspace_load_rows(plan, &t->sides[1], batch, kv_head, 0, t->k_len, workspace->k, workspace->k_plain);
        const char *keys = pe_workspace_keys(t, workspace, batch, kv_head, &stride);
        if (workspace->panels)
            pack(t, keys, stride, workspace->panels);
        if (workspace->v)
            load_values(plan, workspace, batch, kv_head);
        workspace->kv_head = pe_was_cancelled() ? NOTHING_LOADED : kv;
        if (pe_was_cancelled())
            return;
    }
    if (attend && attend->open_head && workspace->table_head != 1 + head) {
        workspace->head_tables = attend->open_head(plan, t->a, head, workspace->tables);
        workspace->table_head = pe_was_cancelled() ? NOTHING_LOADED : 1 + head;
    }
    if (attend && attend->open_keys && workspace->met != 1 + batch * t->n_heads + head) {
        meet_keys(plan, workspace, batch, head);
        workspace->met = pe_was_cancelled() ? NOTHING_LOADED : 1 + batch * t->n_heads + head;
    }
}
