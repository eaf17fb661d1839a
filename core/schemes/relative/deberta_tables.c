/* DeBERTa's tables of relative positions: the tensors that a request sends, and how the embeddings are normalised and
 * projected as keys (c2p) and as queries (p2c) of each head. */
#include "core/schemes/relative/relative.h"

#include <stdlib.h>
#include <string.h>

enum input {
    REL_EMBEDDINGS,
    NORM_WEIGHT,
    NORM_BIAS,
    W_POS_Q,
    W_POS_K,
    B_POS_Q,
    B_POS_K,
    POS_KEY,
    POS_QUERY,
};

#define INPUT(name_, shape_, ...)                                                                                      \
    {                                                                                                                  \
        .name = name_, .shape = shape_, .operation = PE_ATTEND, .about = PE_ABOUT(__VA_ARGS__)                         \
    }
const struct pe_input_row pe_deberta_inputs[] = {
    [REL_EMBEDDINGS] = INPUT("rel_embeddings", "2*span,hidden", "relative embeddings",
                             "encoder.rel_embeddings.weight; with w_q and w_k"),
    [NORM_WEIGHT] = INPUT("norm_weight", "hidden", "norm weight", "encoder.LayerNorm.weight; optional"),
    [NORM_BIAS] = INPUT("norm_bias", "hidden", "norm bias", "encoder.LayerNorm.bias; optional"),
    [W_POS_Q] =
        INPUT("w_pos_q", "num_heads*head_dim,hidden", "position query projection", "unless shared: pos_q_proj.weight"),
    [W_POS_K] =
        INPUT("w_pos_k", "num_heads*head_dim,hidden", "position key projection", "unless shared: pos_proj.weight"),
    [B_POS_Q] = INPUT("b_pos_q", "num_heads*head_dim", "position query bias", "pos_q_proj.bias; optional"),
    [B_POS_K] = INPUT("b_pos_k", "num_heads*head_dim", "position key bias", "optional"),
    [POS_KEY] = INPUT("pos_key", "num_heads,2*span,head_dim", "projected keys",
                      "instead of rel_embeddings: projected table for c2p"),
    [POS_QUERY] = INPUT("pos_query", "num_heads,2*span,head_dim", "projected queries",
                        "instead of rel_embeddings: projected table for p2c"),
    {.name = NULL},
};

/* ---- Projections of the embeddings ---- */

/* (x - mean)/sqrt(variance + 1e-7)·weight + bias, row by row. */
static void normalise(const struct pe_plan *plan, double *x, size_t n, size_t width)
{
    bool weight = pe_weights_sent(plan, NORM_WEIGHT), bias = pe_weights_sent(plan, NORM_BIAS);
    for (size_t i = 0; i < n; i++, x += width) {
        double mean = 0, variance = 0, w = 1, b = 0;
        for (size_t c = 0; c < width; c++)
            mean += x[c] / (double)width;
        for (size_t c = 0; c < width; c++)
            variance += (x[c] - mean) * (x[c] - mean) / (double)width;
        for (size_t c = 0; c < width; c++) {
            if (weight)
                pe_weights_read(&plan->weights[NORM_WEIGHT], c, 1, &w);
            if (bias)
                pe_weights_read(&plan->weights[NORM_BIAS], c, 1, &b);
            x[c] = (x[c] - mean) / sqrt(variance + 1e-7) * w + b;
        }
    }
}

/* The weights that project the embeddings for a term: pos_key uses the keys' weights, pos_query the queries'. */
static const struct pe_weights *projection(const struct pe_plan *plan, enum pe_deberta_term term, bool bias)
{
    const struct pe_deberta *c = plan->config;
    if (c->share_att_key && term == PE_C2P)
        return &plan->brought->projections[bias ? PE_B_K : PE_W_K];
    if (c->share_att_key)
        return &plan->brought->projections[bias ? PE_B_Q : PE_W_Q];
    return &plan->weights[term == PE_C2P ? (bias ? B_POS_K : W_POS_K) : (bias ? B_POS_Q : W_POS_Q)];
}

static const char *projection_name(const struct pe_deberta *c, enum pe_deberta_term term)
{
    static const char *const names[2][2] = {{"w_pos_k", "w_pos_q"}, {"w_k", "w_q"}};
    return names[c->share_att_key][term];
}

static enum pe_status check_projection(const struct pe_plan *plan, enum pe_deberta_term term, uint64_t hidden,
                                       struct pe_failure *err)
{
    const struct pe_deberta *c = plan->config;
    const struct pe_tensor *w = &projection(plan, term, false)->tensor, *b = &projection(plan, term, true)->tensor;
    uint64_t n = (uint64_t)(c->relative.num_heads * c->relative.head_dim);
    const char *name = projection_name(c, term);
    char pointer[16] = "/";
    strcat(pointer, name);
    if (!w->rank)
        return pe_fail(err, pointer, "rel_embeddings need %s [%llu,%llu], which projects them (share_att_key is %s)",
                       name, (unsigned long long)n, (unsigned long long)hidden, c->share_att_key ? "true" : "false");
    if (w->rank != 2 || w->shape[0] != n || w->shape[1] != hidden)
        return pe_fail(err, pointer, "%s has the shape [%llu,%llu]; needed: [%llu,%llu], [num_heads·head_dim, hidden]",
                       name, (unsigned long long)w->shape[0], (unsigned long long)(w->rank > 1 ? w->shape[1] : 1),
                       (unsigned long long)n, (unsigned long long)hidden);
    if (b->rank && (b->rank != 1 || b->shape[0] != n))
        return pe_fail(err, pointer, "the bias of %s has %llu numbers; needed: %llu", name,
                       (unsigned long long)b->shape[0], (unsigned long long)n);
    return PE_OK;
}

/* out [num_heads, rows, head_dim] = embeddings·Wᵀ + b */
static void project(const double *w, const double *b, const double *x, size_t rows, size_t hidden, size_t heads,
                    size_t d, double *out)
{
    const struct pe_arithmetic *a = pe_arithmetic(PE_F64);
    for (size_t h = 0; h < heads && !pe_is_cancelled(); h++) {
        double *to = out + h * rows * d;
        a->abt(rows, d, hidden, 1, x, hidden, w + h * d * hidden, hidden, 0, to, d);
        for (size_t i = 0; b && i < rows; i++)
            a->add(to + i * d, b + h * d, d, 1);
    }
}

static double *read_all(const struct pe_weights *w)
{
    uint64_t n = 0;
    pe_shape_count(w->tensor.shape, w->tensor.rank, &n);
    double *out = w->tensor.rank ? malloc(n * sizeof *out) : NULL;
    if (out)
        pe_weights_read(w, 0, n, out);
    return out;
}

static enum pe_status project_term(const struct pe_plan *plan, struct pe_deberta_tables *t, enum pe_deberta_term term,
                                   const double *x, uint64_t hidden, struct pe_failure *err)
{
    const struct pe_deberta *c = plan->config;
    size_t rows = 2 * (size_t)t->span, heads = (size_t)c->relative.num_heads, d = (size_t)c->relative.head_dim;
    enum pe_status status = check_projection(plan, term, hidden, err);
    if (status)
        return status;
    double *w = read_all(projection(plan, term, false)), *b = read_all(projection(plan, term, true));
    t->table[term] = malloc(heads * rows * d * sizeof *t->table[term]);
    if (w && t->table[term] && (b || !projection(plan, term, true)->tensor.rank))
        project(w, b, x, rows, hidden, heads, d, t->table[term]);
    else
        status = pe_no_memory(err);
    free(w);
    free(b);
    return status;
}

static enum pe_status project_embeddings(struct pe_plan *plan, struct pe_deberta_tables *t, struct pe_failure *err)
{
    const struct pe_deberta *c = plan->config;
    const uint64_t hidden = pe_weights_axis(plan, REL_EMBEDDINGS, 1);
    const uint64_t shape[2] = {2 * (uint64_t)t->span, hidden};
    enum pe_status status = pe_weights_need_shape(plan, REL_EMBEDDINGS, shape, 2, err);
    for (enum input i = NORM_WEIGHT; !status && i <= NORM_BIAS; i++)
        if (pe_weights_sent(plan, i))
            status = pe_weights_need_shape(plan, i, shape + 1, 1, err);
    if (status)
        return status;
    double *x = pe_weights_all(plan, REL_EMBEDDINGS);
    if (!x)
        return pe_no_memory(err);
    if (c->norm_rel_ebd->boolean)
        normalise(plan, x, shape[0], hidden);
    for (enum pe_deberta_term term = PE_C2P; !status && term <= PE_P2C; term++)
        if (t->has[term])
            status = project_term(plan, t, term, x, hidden, err);
    free(x);
    return status;
}

static enum pe_status read_tables(struct pe_plan *plan, struct pe_deberta_tables *t, struct pe_failure *err)
{
    const struct pe_deberta *c = plan->config;
    const uint64_t shape[3] = {(uint64_t)c->relative.num_heads, 2 * (uint64_t)t->span, (uint64_t)c->relative.head_dim};
    enum pe_status status = PE_OK;
    for (enum pe_deberta_term term = PE_C2P; !status && term <= PE_P2C; term++) {
        size_t id = term == PE_C2P ? POS_KEY : POS_QUERY;
        if (!t->has[term])
            continue;
        status = pe_weights_need_shape(plan, id, shape, 3, err);
        if (!status && !(t->table[term] = pe_weights_all(plan, id)))
            status = pe_no_memory(err);
    }
    return status;
}

enum pe_status pe_deberta_tables_make(struct pe_plan *plan, struct pe_deberta_tables *t, struct pe_failure *err)
{
    const struct pe_deberta *c = plan->config;
    double n = 2 * (double)t->span * (double)c->relative.num_heads * (double)c->relative.head_dim;
    if (n > PE_RELATIVE_TABLE_MAX)
        return pe_fail(err, "/max_relative_positions",
                       "the projected table would have %.0f numbers, num_heads·2·span·head_dim; allowed: %d", n,
                       PE_RELATIVE_TABLE_MAX);
    return pe_weights_sent(plan, REL_EMBEDDINGS) ? project_embeddings(plan, t, err) : read_tables(plan, t, err);
}

/* ---- The cost ---- */

static double terms_of(const struct pe_deberta *c)
{
    const struct pe_value *v = c->pos_att_type;
    bool is_one = v && ((v->kind == PE_STRING && !strchr(v->string, '|')) || (v->kind == PE_LIST && v->list.n == 1));
    return is_one ? 1 : 2;
}

/* Adds the cost of the embeddings, the weights of a term, and their products. */
static void add_projections(const struct pe_plan *plan, double rows, double width, struct pe_cost *cost)
{
    const struct pe_deberta *c = plan->config;
    double hidden = (double)pe_weights_axis(plan, REL_EMBEDDINGS, 1);
    pe_cost_each(cost, rows * hidden, sizeof(double), c->norm_rel_ebd ? 60 : PE_NS_SENT);
    bool is_seeded = c->share_att_key && plan->brought->projections[PE_W_Q].is_seeded;
    pe_cost_each(cost, terms_of(c) * width * (hidden + 1), sizeof(double), is_seeded ? PE_NS_SEEDED : PE_NS_SENT);
    pe_cost_each(cost, terms_of(c) * fmin(rows * width, PE_RELATIVE_TABLE_MAX), sizeof(double), hidden * PE_NS_PRODUCT);
}

void pe_deberta_tables_cost(const struct pe_plan *plan, double rows, struct pe_cost *cost)
{
    const struct pe_deberta *c = plan->config;
    double width = (double)c->relative.num_heads * (double)c->relative.head_dim;
    double table = fmin(rows * width, PE_RELATIVE_TABLE_MAX);
    if (pe_weights_sent(plan, REL_EMBEDDINGS))
        add_projections(plan, rows, width, cost);
    else
        pe_cost_each(cost, terms_of(c) * table, sizeof(double),
                     fmax(pe_cost_of_weight(plan, POS_KEY), pe_cost_of_weight(plan, POS_QUERY)));
    pe_cost_each(cost, terms_of(c) * table, 0, 3);
}
