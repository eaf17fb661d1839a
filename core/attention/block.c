/* Computes a block of rows, from logits to probabilities and outputs, while it is in the cache.
 *
 *     s = softmax_scale · q·k + terms of the scheme;  s = softcap·tanh(s / softcap);  s += bias;  s = -inf where hidden
 *     p = e^(s - max) / (sum + e^(sink - max))        linear kernel: [R phi(q)]·[R phi(k)] / sum of phi(q)·phi(k)
 *
 * Why blocks: a map of q_len × k_len logits is written and read several times (scale, bias, mask, softmax). Whole, it
 * would go through main memory each time; some rows of it stay in the second-level cache. Unlike FlashAttention (Dao et
 * al. 2022, arXiv 2205.14135), which never has a whole row, a row is complete here, because the map itself is what is
 * asked for: so softmax is the plain one, with the row's own maximum.
 *
 * Invariant: blocks have fixed borders and are computed whole (fill.c), so the bytes do not depend on the part that is
 * asked for, although BLAS, where it is used, sums in an order that depends on sizes. The order of steps is the same
 * for all schemes; libraries differ on the place of the cap, hence `softcap_after_bias`.
 *
 * In f32 biases of -1000 would cost the logits their digits, so the largest bias of a block is subtracted first, which
 * changes no probability, but where a sink is beside them. */
#include "core/attention/attention.h"
#include "core/encode/encode.h"

#include <math.h>
#include <string.h>

/* The block being computed. Its numbers are at `block`, rows k_len apart. plan: as the row of the batch sees it. */
struct block {
    const struct pe_plan *plan;
    const struct pe_attention *t;
    const struct pe_arithmetic *a;
    struct pe_workspace *workspace;
    enum pe_attention_output kind;
    size_t batch, head, i0, n_rows;
    size_t first, end; /* keys that any of the rows may see */
    char *numbers;
};

static void *number_at(const struct block *b, size_t row, size_t key)
{
    return pe_numbers_at(b->a, b->numbers, row * b->t->k_len + key);
}

/* Was the request cancelled? Called before each row, but it checks only where rows are long. After a cancellation
 * the block's contents are not used. */
static bool is_left(const struct block *b)
{
    enum { LONG_ROW = 4096 };
    return b->t->k_len >= LONG_ROW && pe_is_cancelled();
}

static struct pe_rows rows_of(const struct block *b)
{
    const struct pe_attention *t = b->t;
    struct pe_rows rows = {.plan = b->plan, .a = b->a, .batch = b->batch, .head = b->head, .i0 = b->i0};
    rows.n_rows = b->n_rows;
    rows.j0 = b->first;
    rows.n_keys = b->end - b->first;
    rows.q = b->workspace->q;
    rows.head_dim = t->head_dim;
    rows.scale = t->scale;
    rows.logits = number_at(b, 0, b->first);
    rows.stride = t->k_len;
    rows.tables = b->workspace->head_tables;
    rows.scratch = b->workspace->scratch;
    rows.panels = b->workspace->panels;
    const char *keys =
        pe_workspace_keys(t, b->workspace, b->batch, b->head / (t->n_heads / t->n_kv_heads), &rows.k_stride);
    rows.k = keys + b->first * rows.k_stride * b->a->size;
    return rows;
}

/* ---- Logits ---- */

/* Finds the range of keys that the rows of the block see. */
static void find_reach(struct block *b)
{
    struct pe_view view;
    b->first = b->t->k_len;
    b->end = 0;
    for (size_t i = 0; i < b->n_rows; i++) {
        pe_view_row(b->plan, b->batch, b->i0 + i, b->workspace->seen, &view);
        if (view.first < view.end) {
            b->first = view.first < b->first ? view.first : b->first;
            b->end = view.end > b->end ? view.end : b->end;
        }
    }
    if (b->end <= b->first)
        b->first = b->end = 0;
    b->workspace->first = b->first;
    b->workspace->end = b->end;
}

static const void *biased_queries(const struct block *b, const struct pe_rows *rows)
{
    const double *bias = b->plan->scheme->attend->query_bias(b->plan, b->head);
    size_t d = rows->head_dim;
    for (size_t i = 0; i < b->n_rows * d; i++)
        pe_number_set(b->a, b->workspace->q_biased, i, pe_number(b->a, rows->q, i) + bias[i % d]);
    return b->workspace->q_biased;
}

/* Multiplies some keys at a time, in whole panels; each product depends on its own two rows only, so this does not
 * change the result. */
static void multiply_panels(const struct block *b, const struct pe_rows *rows, double factor, const void *q)
{
    enum { MOST = 1 << 25 }; /* multiply-adds: some milliseconds */
    size_t d = b->t->head_dim, n, most = MOST / (d * b->n_rows) & ~(size_t)63;
    most = most ? most : 64;
    for (size_t j = rows->j0, end = rows->j0 + rows->n_keys; j < end && !is_left(b); j += n) {
        n = end - j < most - j % 64 ? end - j : most - j % 64;
        b->a->products(b->n_rows, j, n, d, factor, q, d, rows->panels, pe_numbers_at(b->a, rows->logits, j - rows->j0),
                       rows->stride);
    }
}

/* The products of the queries q with the keys, times factor. */
static void multiply_by(const struct block *b, const struct pe_rows *rows, double factor, const void *q)
{
    size_t d = b->t->head_dim;
    if (rows->panels)
        multiply_panels(b, rows, factor, q);
    else
        b->a->abt(b->n_rows, rows->n_keys, d, factor, q, d, rows->k, rows->k_stride, 0, rows->logits, rows->stride);
}

/* Scores that are given in place of products. */
static void load_given(const struct block *b)
{
    const struct pe_attention *t = b->t;
    const struct pe_operand *op = &t->given;
    size_t size = pe_dtype_size(op->tensor.dtype), n = b->end - b->first;
    const char *from = op->tensor.data;
    from += (b->batch * op->batch_step + b->head * op->head_step + b->i0 * op->row_step + b->first) * size;
    for (size_t i = 0; i < b->n_rows && !is_left(b); i++, from += op->row_step * size) {
        pe_convert(b->a->dtype, number_at(b, i, b->first), op->tensor.dtype, from, n);
        if (t->scale != 1)
            b->a->scale(number_at(b, i, b->first), n, t->scale);
    }
}

static void multiply(const struct block *b)
{
    const struct pe_attention *t = b->t;
    if (pe_attention_is_given(t)) {
        load_given(b);
        return;
    }
    const struct pe_attend *attend = b->plan->scheme->attend;
    struct pe_rows rows = rows_of(b);
    double factor = pe_attention_is_linear(t) ? 1 : t->scale;
    if (attend && attend->cosine)
        attend->cosine(b->plan, b->head, &factor);
    multiply_by(b, &rows, factor, b->workspace->q_biased ? biased_queries(b, &rows) : rows.q);
    if (attend && attend->add_scores)
        attend->add_scores(&rows);
}

/* ---- Biases ---- */

/* Loads a head's biases at all distances, starting with the distance from the last query to the first key. Returns
 * false if they are not a function of the distance. */
static bool load_vector(const struct block *b)
{
    const struct pe_attention *t = b->t;
    const struct pe_sequence *seq = &b->plan->seq;
    struct pe_workspace *workspace = b->workspace;
    uint64_t head = 1 + b->head;
    if (!workspace->vector || !pe_rows_are_runs(b->plan))
        return false;
    if (workspace->bias_head == head)
        return true;
    double rel = 1 - (double)t->q_len + (seq->piece ? 0 : seq->k->start - seq->q->start);
    if (!b->plan->scheme->attend->bias_at(b->plan, b->head, rel, t->q_len + t->k_len - 1, workspace->vector))
        return false;
    workspace->bias_head = head;
    return true;
}

static double largest(const double *x, size_t n)
{
    double m = -(double)INFINITY;
    for (size_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return isfinite(m) ? m : 0;
}

/* Adding a constant to all biases of a row does not change its probabilities. In f32 the biases are shifted so that
 * the largest of a block is 0: the biases that matter are then small and keep their digits. */
static double anchor(const struct block *b, const double *biases, size_t n)
{
    bool moves =
        b->kind == PE_PROBS && b->a->dtype == PE_F32 && !b->t->fields.softcap_after_bias && !b->t->fields.sinks.n;
    return moves ? largest(biases, n) : 0;
}

/* near = (bias - anchor)·factor, as the arithmetic adds it. */
static void bring_near(const struct block *b, const double *biases, size_t n)
{
    double zero = anchor(b, biases, n), factor = b->t->bias_factor;
    float *f32 = (float *)b->workspace->near;
    double *f64 = (double *)b->workspace->near;
    for (size_t i = 0; i < n; i++)
        if (b->a->dtype == PE_F32)
            f32[i] = (float)((biases[i] - zero) * factor);
        else
            f64[i] = (biases[i] - zero) * factor;
}

static void add_row_biases(const struct block *b)
{
    const struct pe_attention *t = b->t;
    struct pe_output output = {.dtype = PE_F64};
    for (size_t i = 0; i < b->n_rows && !is_left(b); i++) {
        struct pe_block row = {.row0 = (b->batch * t->n_heads + b->head) * t->q_len + b->i0 + i, .n_rows = 1};
        row.col0 = b->first;
        row.n_cols = b->end - b->first;
        b->plan->scheme->fill(b->plan, &output, t->bias_id, &row, b->workspace->bias);
        bring_near(b, b->workspace->bias, row.n_cols);
        b->a->add(number_at(b, i, b->first), b->workspace->near, row.n_cols, 1);
    }
}

/* Row i of the block adds the window of the vector that begins i entries before the window of row 0. */
static void add_windows(const struct block *b)
{
    size_t n = b->end - b->first, last = b->i0 + b->n_rows - 1;
    bring_near(b, b->workspace->vector + (b->t->q_len - 1 - last) + b->first, n + b->n_rows - 1);
    for (size_t i = 0; i < b->n_rows; i++)
        b->a->add(number_at(b, i, b->first), pe_numbers_at(b->a, b->workspace->near, b->n_rows - 1 - i), n, 1);
}

static void add_biases(const struct block *b)
{
    if (b->t->bias_id == SIZE_MAX)
        return;
    if (load_vector(b))
        add_windows(b);
    else
        add_row_biases(b);
}

static void cap(const struct block *b)
{
    if (isnan(b->t->fields.softcap))
        return;
    for (size_t i = 0; i < b->n_rows && !is_left(b); i++)
        b->a->cap(number_at(b, i, b->first), b->end - b->first, b->t->fields.softcap);
}

/* ---- Masks ---- */

static void hide(const struct block *b, double x)
{
    struct pe_view view;
    for (size_t i = 0; i < b->n_rows && !is_left(b); i++) {
        pe_view_row(b->plan, b->batch, b->i0 + i, b->workspace->seen, &view);
        void *row = number_at(b, i, 0);
        pe_numbers_set(b->a, row, 0, view.first, x);
        pe_numbers_set(b->a, row, view.end, b->t->k_len, x);
        for (size_t j = view.first; view.seen && j < view.end; j++)
            if (!view.seen[j])
                pe_number_set(b->a, row, j, x);
    }
}

/* ---- Probabilities and weights ---- */

/* The part of a row's sum that its head's sink takes, as e^(sink - max). */
static double sink_of(const struct block *b, double max)
{
    return b->t->fields.sinks.n ? exp(pe_real_at(&b->t->fields.sinks, b->head) - max) : 0;
}

/* Entropy of p = e / total in nats, where a sink's part of the total is none of it:
 * (sum of e) / total · ln total - (sum of e·ln e) / total. */
static void soften_row(const struct block *b, size_t i, const struct pe_view *view)
{
    size_t n = view->end - view->first;
    void *row = number_at(b, i, view->first);
    double weighted, *entropy = &b->workspace->entropies[i];
    pe_numbers_set(b->a, number_at(b, i, 0), 0, view->first, 0);
    pe_numbers_set(b->a, number_at(b, i, 0), view->end, b->t->k_len, 0);
    *entropy = 0;
    if (view->is_empty) {
        pe_numbers_set(b->a, row, 0, n, 0);
        return;
    }
    double max = b->a->max(row, n), sum = b->a->exp(row, n, max, b->kind == PE_ROW_ENTROPY ? &weighted : NULL);
    double total = sum + sink_of(b, max);
    if (b->kind == PE_ROW_ENTROPY)
        *entropy = sum / total * log(total) - weighted / total;
    b->a->scale(row, n, 1 / total);
}

static void soften(const struct block *b)
{
    struct pe_view view;
    for (size_t i = 0; i < b->n_rows && !is_left(b); i++) {
        pe_view_row(b->plan, b->batch, b->i0 + i, b->workspace->seen, &view);
        soften_row(b, i, &view);
    }
}

/* Denominators use queries and keys that are not rotated, so they stay positive. */
static void divide(const struct block *b)
{
    const struct pe_attention *t = b->t;
    struct pe_workspace *workspace = b->workspace;
    struct block denominators = *b;
    struct pe_view view;
    if (t->turns) {
        denominators.numbers = workspace->second;
        b->a->abt(b->n_rows, b->end - b->first, t->head_dim, 1, workspace->q_plain, t->head_dim,
                  pe_numbers_at(b->a, workspace->k_plain, b->first * t->head_dim), t->head_dim, 0,
                  number_at(&denominators, 0, b->first), t->k_len);
    }
    for (size_t i = 0; i < b->n_rows && !is_left(b); i++) {
        double sum = 0;
        pe_view_row(b->plan, b->batch, b->i0 + i, workspace->seen, &view);
        for (size_t j = view.first; j < view.end; j++)
            if (!view.seen || view.seen[j])
                sum += pe_number(b->a, number_at(&denominators, i, 0), j);
        b->a->scale(number_at(b, i, view.first), view.end - view.first, 1 / sum);
    }
    hide(b, 0);
}

/* ---- The block ---- */

/* From products to scores, but for what add_last adds. */
static void add_bias_and_mask(const struct block *b)
{
    if (b->t->fields.softcap_after_bias)
        add_biases(b);
    cap(b);
    if (!b->t->fields.softcap_after_bias)
        add_biases(b);
    hide(b, -(double)INFINITY);
}

static void finish(const struct block *b)
{
    const struct pe_attend *attend = b->plan->scheme->attend;
    if (pe_attention_is_linear(b->t)) {
        divide(b);
        return;
    }
    add_bias_and_mask(b);
    if (attend && attend->add_last && b->first < b->end) {
        struct pe_rows rows = rows_of(b);
        attend->add_last(&rows);
    }
    if (b->kind != PE_SCORES)
        soften(b);
}

void pe_block_make(const struct pe_plan *plan, struct pe_workspace *workspace, enum pe_attention_output kind,
                   size_t batch, size_t head, size_t i0, size_t n_rows, void *numbers)
{
    const struct pe_attention *t = plan->attention;
    struct pe_plan room;
    struct block b = {.t = t, .a = t->a, .workspace = workspace, .kind = kind, .batch = batch, .head = head};
    b.plan = pe_plan_of_batch(plan, batch, &room);
    b.i0 = i0;
    b.n_rows = n_rows;
    b.numbers = numbers;
    pe_workspace_load_rows(plan, &t->sides[0], batch, head, i0, n_rows, workspace->q, workspace->q_plain);
    if (kind >= PE_TERM) {
        b.end = t->k_len;
        struct pe_rows rows = rows_of(&b);
        plan->scheme->attend->write_term(&rows, (size_t)(kind - PE_TERM));
        return;
    }
    find_reach(&b);
    if (b.first < b.end)
        multiply(&b);
    finish(&b);
}

/* ---- Terms of the scores ---- */

/* What add_last adds to the products: these are its gates, so it cannot begin from zero. */
static void take_last(const struct block *b, const struct pe_rows *rows)
{
    struct block before = *b;
    before.numbers = b->workspace->second;
    multiply_by(b, rows, b->t->scale, rows->q);
    hide(b, -(double)INFINITY);
    memcpy(before.numbers, b->numbers, b->n_rows * b->t->k_len * b->a->size);
    b->plan->scheme->attend->add_last(rows);
    for (size_t i = 0; i < b->n_rows && !is_left(b); i++)
        for (size_t j = b->first; j < b->end; j++)
            pe_number_set(b->a, number_at(b, i, 0), j,
                          pe_number(b->a, number_at(b, i, 0), j) - pe_number(b->a, number_at(&before, i, 0), j));
}

static void make_term(const struct block *b, size_t term)
{
    const struct pe_attend *attend = b->plan->scheme->attend;
    struct pe_rows rows = rows_of(b);
    if (b->plan->scheme->info.is_additive) {
        /* Part i of the queries with part j of the keys, term = 2i + j. */
        const struct pe_attention *t = b->t;
        const struct pe_operand *k = &t->parts[term % 2][1];
        struct pe_side side = {.operand = (struct pe_operand *)(uintptr_t)&t->parts[term / 2][0],
                               .positions = t->sides[0].positions,
                               .factors = t->sides[0].factors};
        size_t kv_head = b->head / (t->n_heads / t->n_kv_heads), d = t->head_dim;
        const char *keys = k->tensor.data;
        keys += (b->batch * k->batch_step + kv_head * k->head_step + b->first * k->row_step) * b->a->size;
        pe_workspace_load_rows(b->plan, &side, b->batch, b->head, b->i0, b->n_rows, b->workspace->q, NULL);
        b->a->abt(b->n_rows, rows.n_keys, d, t->scale, b->workspace->q, d, keys, k->row_step, 0, rows.logits,
                  rows.stride);
    } else if (term == 0)
        multiply_by(b, &rows, b->t->scale, rows.q);
    else if (!attend->add_part)
        take_last(b, &rows);
    else {
        for (size_t i = 0; i < b->n_rows; i++)
            pe_numbers_set(b->a, number_at(b, i, 0), 0, b->t->k_len, 0);
        attend->add_part(&rows, term);
    }
}

void pe_block_make_term(const struct pe_plan *plan, struct pe_workspace *workspace, size_t term, size_t batch,
                        size_t head, size_t i0, size_t n_rows, void *numbers)
{
    const struct pe_attention *t = plan->attention;
    struct pe_plan room;
    struct block b = {.t = t, .a = t->a, .workspace = workspace, .kind = PE_TERMS, .batch = batch, .head = head};
    b.plan = pe_plan_of_batch(plan, batch, &room);
    b.i0 = i0;
    b.n_rows = n_rows;
    b.numbers = numbers;
    pe_workspace_load_rows(plan, &t->sides[0], batch, head, i0, n_rows, workspace->q, NULL);
    find_reach(&b);
    if (b.first < b.end)
        make_term(&b, term);
    hide(&b, -(double)INFINITY);
}

/* ---- One pair ---- */

/* What add_last adds to the score of key j: the difference that it makes, since it reads the whole row. */
static double last_of_pair(struct block *b, size_t j)
{
    find_reach(b);
    multiply(b);
    add_bias_and_mask(b);
    double before = pe_number(b->a, number_at(b, 0, 0), j);
    struct pe_rows rows = rows_of(b);
    b->plan->scheme->attend->add_last(&rows);
    return pe_number(b->a, number_at(b, 0, 0), j) - before;
}

void pe_block_make_pair(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t head, size_t i,
                        size_t j, struct pe_pair_terms *terms)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    struct pe_plan room;
    struct pe_view view;
    struct block b = {.t = t, .a = t->a, .workspace = workspace, .kind = PE_SCORES, .batch = batch, .head = head};
    b.plan = pe_plan_of_batch(plan, batch, &room);
    b.i0 = i;
    b.n_rows = 1;
    b.first = j;
    b.end = j + 1;
    b.numbers = workspace->block;
    pe_workspace_load_rows(plan, &t->sides[0], batch, head, i, 1, workspace->q, NULL);
    pe_view_row(b.plan, batch, i, workspace->seen, &view);
    *terms = (struct pe_pair_terms){.is_empty = view.is_empty};
    terms->is_hidden = j < view.first || j >= view.end || (view.seen && !view.seen[j]);
    if (terms->is_hidden)
        return;
    if (t->bias_id != SIZE_MAX) {
        pe_number_set(b.a, number_at(&b, 0, 0), j, 0);
        add_row_biases(&b);
        terms->bias = pe_number(b.a, number_at(&b, 0, 0), j);
    }
    for (size_t part = 1; attend && attend->parts && attend->parts[part]; part++) {
        if (attend->has_part && !attend->has_part(plan, part))
            continue;
        if (!attend->add_part) {
            terms->parts[part] = last_of_pair(&b, j);
            continue;
        }
        struct pe_rows rows = rows_of(&b);
        pe_number_set(b.a, rows.logits, 0, 0); /* of key j */
        attend->add_part(&rows, part);
        terms->parts[part] = pe_number(b.a, rows.logits, 0);
    }
}

/* ---- Outputs ---- */

/* 0 · inf is NaN, so if a value is infinite or NaN, a matrix product would let hidden keys change the output. This
 * function then adds the values one by one and skips those with weight 0. */
static void add_values_one_by_one(const struct pe_attention *t, const void *block, size_t n_rows, const char *v,
                                  size_t v_stride, void *out, size_t out_stride)
{
    for (size_t i = 0; i < n_rows; i++)
        for (size_t c = 0; c < t->v_dim && !pe_is_cancelled(); c++) {
            double sum = 0;
            for (size_t j = 0; j < t->k_len; j++) {
                double p = pe_number(t->a, block, i * t->k_len + j);
                if (p != 0)
                    sum += p * pe_number(t->a, v, j * v_stride + c);
            }
            pe_number_set(t->a, out, i * out_stride + c, sum);
        }
}

void pe_block_output(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t head,
                     size_t n_rows, const void *numbers, void *out, size_t out_stride)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_operand *op = &t->v;
    size_t kv_head = head / (t->n_heads / t->n_kv_heads), stride = workspace->v ? t->v_dim : op->row_step;
    const char *v =
        workspace->v ? workspace->v
                     : (const char *)op->tensor.data + (batch * op->batch_step + kv_head * op->head_step) * t->a->size;
    if (workspace->first == workspace->end)
        for (size_t i = 0; i < n_rows; i++)
            pe_numbers_set(t->a, pe_numbers_at(t->a, out, i * out_stride), 0, t->v_dim, 0);
    else if (t->v_is_finite)
        t->a->ab(n_rows, t->v_dim, workspace->end - workspace->first, pe_numbers_at(t->a, numbers, workspace->first),
                 t->k_len, pe_numbers_at(t->a, v, workspace->first * stride), stride, 0, out, out_stride);
    else
        add_values_one_by_one(t, numbers, n_rows, v, stride, out, out_stride);
}

void pe_block_output_of_scheme(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t head,
                               size_t i0, size_t n_rows, const void *numbers, void *out, size_t out_stride)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    if (!attend || !attend->add_output)
        return;
    struct pe_plan room;
    struct block b = {.t = t, .a = t->a, .workspace = workspace, .kind = PE_PROBS, .batch = batch, .head = head};
    b.plan = pe_plan_of_batch(plan, batch, &room);
    b.i0 = i0;
    b.n_rows = n_rows;
    b.first = workspace->first;
    b.end = workspace->end;
    b.numbers = (char *)(uintptr_t)numbers;
    struct pe_rows rows = rows_of(&b);
    attend->add_output(&rows, out, out_stride, t->v_dim);
}
