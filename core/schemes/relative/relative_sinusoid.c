/* The Transformer-XL family: the table of distances, the rules of its fields, and the weights of its term. */
#include "core/schemes/relative/relative.h"

#include <stdlib.h>

enum output { ENCODING, DISTANCES };

const struct pe_output_row pe_rel_sin_outputs[] = {
    [ENCODING] = PE_OUTPUT("encoding", "width,d_model", 1, PE_DTYPE_NONE, false, NULL, "encoding", "R of each distance",
                           .range = {-1, 1}, .axes = "distance,dim"),
    [DISTANCES] = PE_OUTPUT("distances", "width", 1, PE_I32, false, NULL, "distances",
                            "query minus key, descending; not clamped", .axes = "distance"),
    {.name = NULL},
};

static const struct pe_rel_sin_fields *fields(const struct pe_plan *plan) { return plan->config; }

uint64_t pe_rel_sin_width(const struct pe_plan *plan) { return ((const struct pe_rel_sin_tables *)plan->tables)->n; }

/* ---- R ---- */

static double clamped(const struct pe_plan *plan, double delta)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    double limit = (double)fields(plan)->clamp_len;
    if (limit <= 0)
        return delta;
    delta = fmin(delta, limit);
    return t->style->clamps_both ? fmax(delta, -limit) : delta;
}

static enum pe_status make_waves(const struct pe_plan *plan, struct pe_rel_sin_tables *t, struct pe_failure *err)
{
    const struct pe_rel_sin_fields *c = fields(plan);
    size_t d = (size_t)c->d_model, h = d / 2;
    struct pe_dd *freq = calloc(h, sizeof *freq);
    struct pe_wave *columns = calloc(d, sizeof *columns);
    enum pe_status status = freq && columns ? PE_OK : pe_no_memory(err);
    if (!status)
        pe_ladder(c->base, (double)h, h, freq);
    for (size_t i = 0; !status && i < h; i++) {
        struct pe_dd f = pe_quarter_turns(freq[i]);
        struct pe_wave wave = {.fh = f.hi, .fl = f.lo, .ah = 1};
        columns[t->style->is_interleaved ? 2 * i : i] = wave;
        wave.quarter = 1;
        columns[t->style->is_interleaved ? 2 * i + 1 : h + i] = wave;
    }
    if (!status)
        status = pe_waves_new(columns, d, &t->waves) ? pe_no_memory(err) : PE_OK;
    free(freq);
    free(columns);
    return status;
}

enum { RUN = 512 }; /* distances computed at a time */

void pe_rel_sin_fill_r(const struct pe_plan *plan, enum pe_dtype dtype, const struct pe_block *b, char *dst)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    double deltas[RUN];
    for (uint64_t i = 0, n; i < b->n_rows; i += n) {
        n = b->n_rows - i < RUN ? b->n_rows - i : RUN;
        for (uint64_t m = 0; m < n; m++)
            deltas[m] = clamped(plan, t->first - (double)(b->row0 + i + m));
        struct pe_positions list = {.n = n, .list = deltas};
        pe_waves_fill(t->waves, dtype, &list, 0, (size_t)n, (size_t)b->col0, (size_t)b->n_cols,
                      dst + i * b->n_cols * pe_dtype_size(dtype), (size_t)b->n_cols);
    }
}

void pe_rel_sin_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                     void *dst)
{
    const struct pe_rel_sin_tables *t = plan->tables;
    if (id == ENCODING)
        pe_rel_sin_fill_r(plan, output->dtype, b, dst);
    else
        for (uint64_t j = 0; j < b->n_cols; j++)
            ((int32_t *)dst)[j] = (int32_t)(t->first - (double)(b->col0 + j));
}

/* ---- The plan ---- */

static enum pe_status check(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_rel_sin_fields *c = plan->config;
    if (pe_fix_sizes(plan, (const char *const[]){"d_model", NULL}, err))
        return err->status;
    if (c->d_model == PE_UNSET_INT)
        c->d_model = c->relative.num_heads * c->relative.head_dim;
    if (c->d_model % 2)
        return pe_fail(err, "/d_model", "d_model is %lld; allowed: even numbers, a sine and a cosine each",
                       (long long)c->d_model);
    if (c->d_model > PE_DIM_MAX)
        return pe_fail(err, "/num_heads", "num_heads·head_dim is %lld; give d_model, at most %d", (long long)c->d_model,
                       PE_DIM_MAX);
    if (c->same_length && !c->causal)
        return pe_fail(err, "/same_length", "same_length is the shape of a causal mask; it needs \"causal\":true");
    return pe_relative_check(plan, err);
}

/* Sets the distances that the output lists. With one sequence, the memory's keys come before it. */
static enum pe_status set_list(const struct pe_plan *plan, struct pe_rel_sin_tables *t, struct pe_failure *err)
{
    const struct pe_rel_sin_fields *c = fields(plan);
    int64_t least, most;
    double last;
    pe_relative_reach(plan, &least, &most);
    if (plan->sequence.len != PE_UNSET_INT)
        least -= c->mem_len;
    t->style->list(c, -(double)least, -(double)most, &t->first, &last);
    if (fmax(fabs(t->first), fabs(last)) >= 0x1p31)
        return pe_fail(err, "/len", "the distances go from %.0f to %.0f; allowed: below 2^31", t->first, last);
    t->n = t->first < last ? 0 : (uint64_t)(t->first - last) + 1;
    return PE_OK;
}

/* Sets the distances between any query and any key. */
static enum pe_status set_reach(const struct pe_plan *plan, struct pe_rel_sin_tables *t, struct pe_failure *err)
{
    int64_t least, most;
    pe_relative_reach(plan, &least, &most);
    if (plan->seq.piece) { /* packed sequences: differences of indices are the distances inside each sequence */
        most = (int64_t)plan->seq.k->n - 1;
        least = -most;
    }
    t->first = (double)-least;
    t->n = (uint64_t)(most - least) + 1;
    bool runs = plan->seq.piece || (!plan->seq.q->list && !plan->seq.k->list);
    if (!runs && t->n > PE_LISTED_POSITIONS_MAX)
        return pe_fail(err, "/k_positions", "the positions span %llu distances; allowed: at most %d",
                       (unsigned long long)t->n, PE_LISTED_POSITIONS_MAX);
    if (!(fabs(t->first) + (double)t->n < 0x1p31))
        return pe_fail(err, "/q_offset", "the distances go up to %.0f; allowed: below 2^31", fabs(t->first));
    return PE_OK;
}

/* Segment ids of XLNet: one for each key. A query has the id of its own key. */
static enum pe_status read_types(const struct pe_plan *plan, struct pe_rel_sin_tables *t, struct pe_failure *err)
{
    const struct pe_reals *ids = &fields(plan)->token_type_ids;
    uint64_t n = plan->seq.k->n;
    if (!t->style->has_segments)
        return PE_OK;
    bool wanted = pe_weights_sent(plan, PE_REL_SEG_EMBED) || pe_weights_sent(plan, PE_REL_SEG_BIAS) || ids->n;
    if (!wanted)
        return PE_OK;
    if (!ids->n)
        return pe_fail(err, "/token_type_ids", "seg_embed needs token_type_ids, a segment number for each key");
    enum pe_status status = pe_reals_expect(ids, n, "token_type_ids", "one per key", err);
    if (!status && plan->seq.q->n > n)
        return pe_fail(err, "/token_type_ids", "there are %llu queries and %llu keys; a query has the id of its key",
                       (unsigned long long)plan->seq.q->n, (unsigned long long)n);
    t->types = status ? NULL : malloc(n);
    if (!status && !t->types)
        return pe_no_memory(err);
    for (uint64_t j = 0; !status && j < n && !pe_is_cancelled_at(j); j++)
        t->types[j] = (uint8_t)pe_real_at(ids, j);
    return status;
}

static enum pe_status read_weights(struct pe_plan *plan, struct pe_rel_sin_tables *t, struct pe_failure *err)
{
    const struct pe_rel_sin_fields *c = fields(plan);
    const uint64_t h = (uint64_t)c->relative.num_heads, d = (uint64_t)c->relative.head_dim;
    const uint64_t w[2] = {h * d, (uint64_t)c->d_model};
    if ((double)w[0] * (double)w[1] > PE_RELATIVE_WEIGHTS_MAX)
        return pe_fail(err, "/w_r", "w_r would have %llu by %llu numbers; allowed: %d in all", (unsigned long long)w[0],
                       (unsigned long long)w[1], PE_RELATIVE_WEIGHTS_MAX);
    enum pe_status status = PE_OK;
    for (size_t id = PE_REL_U; !status && id <= PE_REL_W; id++)
        status = pe_weights_need(plan, id, err);
    if (!status)
        status = read_types(plan, t, err);
    for (size_t id = PE_REL_SEG_EMBED; !status && t->types && id <= PE_REL_SEG_BIAS; id++)
        status = pe_weights_need(plan, id, err);
    if (status)
        return status;
    t->u = pe_weights_all(plan, PE_REL_U);
    t->v = pe_weights_all(plan, PE_REL_V);
    t->w = pe_weights_all(plan, PE_REL_W);
    if (t->types) {
        t->seg = pe_weights_all(plan, PE_REL_SEG_EMBED);
        t->seg_bias = pe_weights_all(plan, PE_REL_SEG_BIAS);
    }
    return t->u && t->v && t->w && (!t->types || (t->seg && t->seg_bias)) ? PE_OK : pe_no_memory(err);
}

/* Adds the cost of R projected for all heads (open). If that is too large, each head's projection is computed
 * separately. */
static void add_attention(const struct pe_plan *plan, double d_model, struct pe_cost *cost)
{
    const struct pe_rel_sin_fields *c = plan->config;
    double width = (double)c->relative.num_heads * (double)c->relative.head_dim;
    double w = fmin(width * d_model, PE_RELATIVE_WEIGHTS_MAX);
    int64_t least, most;
    pe_relative_reach(plan, &least, &most);
    double n = plan->seq.piece || plan->seq.is_counted ? 2 * (double)plan->seq.k->n : (double)most - (double)least + 1;
    pe_cost_weights(cost, plan, PE_REL_W, w);
    pe_cost_each(cost, 5 * width, sizeof(double), pe_cost_of_weight(plan, PE_REL_U));
    pe_cost_add(cost, (double)plan->seq.k->n, 3 * w); /* types; the norm of w_r */
    if (width * n * sizeof(float) > (double)PE_RELATIVE_ENCODING_MAX)
        return;
    pe_cost_each(cost, w + PE_R_ROWS * (width + d_model), sizeof(double), PE_NS_SENT);
    pe_cost_each(cost, width * (n + 32), sizeof(double), d_model * PE_NS_PRODUCT + 4);
    pe_cost_each(cost, n * d_model, 0, 10);
}

void pe_rel_sin_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct pe_rel_sin_fields *c = plan->config;
    double width = (double)c->relative.num_heads * (double)c->relative.head_dim;
    double d_model = c->d_model == PE_UNSET_INT ? width : (double)c->d_model;
    d_model = fmin(fmax(d_model, pe_size_most(plan, "d_model")), PE_DIM_MAX);
    pe_cost_waves(cost, d_model);
    pe_cost_ladder(cost, d_model / 2, false);
    if (plan->attention)
        add_attention(plan, d_model, cost);
}

enum pe_status pe_rel_sin_plan(struct pe_plan *plan, const struct pe_rel_sin_style *style, struct pe_failure *err)
{
    struct pe_rel_sin_tables *t = plan->tables = calloc(1, sizeof *t);
    if (!t)
        return pe_no_memory(err);
    t->style = style;
    enum pe_status status = check(plan, err);
    bool attends = plan->attention != NULL;
    if (!status)
        status = attends ? set_reach(plan, t, err) : set_list(plan, t, err);
    if (!status)
        status = make_waves(plan, t, err);
    return status || !attends ? status : read_weights(plan, t, err);
}

void pe_rel_sin_drop(struct pe_plan *plan)
{
    struct pe_rel_sin_tables *t = plan->tables;
    if (!t)
        return;
    pe_waves_free(t->waves);
    free(t->u);
    free(t->v);
    free(t->seg);
    free(t->seg_bias);
    free(t->w);
    free(t->types);
    free(t->projected);
    free(t);
}
