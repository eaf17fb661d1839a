/* CoPE, contextual position encoding (Golovneva et al. 2024, arXiv 2405.18719): a key's position is the number of
 * keys between it and the query, where the query decides how much each of them counts.
 *
 *     g[i, j] = sigmoid(s[i, j]), s: the logits, scaled and masked                      hidden keys count nothing
 *     p[i, j] = min(sum over t from j to i of g[i, t], npos_max - 1)                    from the key up to the query
 *     s[i, j] += (p - ⌊p⌋)·(q_i·pos_emb[⌈p⌉]) + (1 - (p - ⌊p⌋))·(q_i·pos_emb[⌊p⌋])       what is hidden stays hidden
 *
 * Without a causal mask, keys after the query have position 0 and do not count for keys before it. */
#include "core/schemes/relative/relative.h"

#include <stdlib.h>

struct cope {
    struct pe_relative_fields relative;
    int64_t npos_max;
};

enum { NPOS_MAX = 65536 };

static const struct pe_param params[] = {
    PE_P_INT(cope, npos_max, 64, 1, NPOS_MAX, "largest count", "rows of pos_emb; if pos_emb is sent, its own",
             .usual = {1, 128}),
    PE_RELATIVE_PARAMS,
    PE_P_END,
};

enum input { POS_EMB };

static const struct pe_output_row outputs[] = {{.name = NULL}};

static const struct pe_input_row inputs[] = {
    [POS_EMB] = PE_INPUT("pos_emb", "npos_max,head_dim", PE_ATTEND, false, "count vectors",
                         "a vector for each count, shared by all heads"),
    {.name = NULL},
};

/* plan->tables: pos_emb, [npos_max, head_dim] doubles. */

static void cope_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct cope *c = plan->config;
    double n = pe_size_most(plan, "npos_max") * (double)c->relative.head_dim;
    pe_cost_weights(cost, plan, POS_EMB, n);
    pe_cost_each(cost, n, 0, 3);
}

static enum pe_status cope_plan(struct pe_plan *plan, struct pe_failure *err)
{
    enum pe_status status = pe_fix_sizes(plan, (const char *const[]){"npos_max", NULL}, err);
    if (!status)
        status = pe_weights_need(plan, POS_EMB, err);
    if (status)
        return status;
    plan->tables = pe_weights_all(plan, POS_EMB);
    return plan->tables ? PE_OK : pe_no_memory(err);
}

/* ---- Attention ---- */

static size_t n_positions(const struct pe_plan *plan) { return (size_t)((const struct cope *)plan->config)->npos_max; }

static size_t head_dim_of(const struct pe_plan *plan)
{
    return (size_t)((const struct cope *)plan->config)->relative.head_dim;
}

/* The interpolated term is not scaled; the engine multiplies by the scale. */
static double largest(const struct pe_plan *plan, double q_norm, double k_norm)
{
    (void)k_norm;
    double d = (double)head_dim_of(plan);
    return q_norm * pe_relative_norm(plan->tables, n_positions(plan), head_dim_of(plan)) * sqrt(d);
}

static struct pe_attend_room room(const struct pe_plan *plan, size_t n_rows)
{
    size_t p = n_positions(plan);
    return (struct pe_attend_room){.tables = p * head_dim_of(plan), .scratch = n_rows * p + plan->seq.k->n};
}

static double work(const struct pe_plan *plan)
{
    return (double)n_positions(plan) * (double)head_dim_of(plan) / (double)plan->seq.k->n + 8;
}

static const void *open_head(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables)
{
    (void)head;
    pe_convert(a->dtype, tables, PE_F64, plan->tables, n_positions(plan) * head_dim_of(plan));
    return tables;
}

/* One row: z [npos_max] are the query's products with pos_emb. The sum uses double, because it adds thousands of
 * gates. */
static void add_row(const struct pe_rows *rows, size_t i, const void *z, const void *gates, void *logits)
{
    const struct pe_arithmetic *a = rows->a;
    double last = (double)n_positions(rows->plan) - 1, count = 0;
    for (size_t j = rows->n_keys; j-- > 0;) {
        count += pe_rows_is_after(rows, i, j) ? 0 : pe_number(a, gates, j);
        double p = fmin(count, last), low = floor(p), part = p - low;
        double term = part * pe_number(a, z, (size_t)ceil(p)) + (1 - part) * pe_number(a, z, (size_t)low);
        pe_number_set(a, logits, j, pe_number(a, logits, j) + term);
    }
}

/* A NaN gate needs no special case: fmin drops it, and the logit itself stays NaN. */
static void add_last(const struct pe_rows *rows)
{
    const struct pe_arithmetic *a = rows->a;
    size_t p = n_positions(rows->plan), d = rows->head_dim;
    void *z = rows->scratch, *gates = pe_numbers_at(a, z, rows->n_rows * p);
    a->abt(rows->n_rows, p, d, 1, rows->q, d, rows->tables, d, 0, z, p);
    for (size_t i = 0; i < rows->n_rows; i++) {
        void *logits = pe_numbers_at(a, rows->logits, i * rows->stride);
        a->sigmoid(logits, rows->n_keys, gates);
        add_row(rows, i, pe_numbers_at(a, z, i * p), gates, logits);
    }
}

static const char *const parts[] = {"content_content", "content_position", NULL};

static const struct pe_attend attend = {
    .largest = largest,
    .room = room,
    .work = work,
    .open_head = open_head,
    .add_last = add_last,
    .parts = parts,
};

static const struct pe_formula_line formula[] = {
    {"s[m, n] = softmax_scale*sum(c, 0, head_dim - 1, Q[h, m, c]*K[h, n, c])", "the logit of the content"},
    {"g[m, n] = 1/(1 + exp(-s[m, n]))", "how much key n counts for query m; a hidden key does not count"},
    {"i[m, n] = min(sum(t, n, n_m, g[m, t]), npos_max - 1)",
     "the position: the count of keys from n up to the query, which depends on the content"},
    {"f[m, n] = i[m, n] - floor(i[m, n])", "its place between two counts"},
    {"z[m, t] = sum(c, 0, head_dim - 1, Q[h, m, c]*pos_emb[t, c])", "the query's product with the vector of count t"},
    {"S[m, n] = s[m, n] + (1 - f[m, n])*z[m, floor(i[m, n])] + f[m, n]*z[m, ceil(i[m, n])]",
     "the logit, between the vectors of the two nearest counts"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_cope = {
    .info =
        {
            .name = "cope",
            .family = "relative",
            .about =
                {"contextual positions (CoPE)",
                 "a position is a content-dependent count of keys, and a table of counts is multiplied with the query"},
            .paper = "Golovneva et al. 2024, arXiv 2405.18719",
            .formula = formula,
            .example = "{\"scheme\":\"cope\",\"npos_max\":3,\"q\":[[1,0],[0,1]],\"k\":[[1,0],[0,1]],\"seed\":0,"
                       "\"causal\":true}",
            .worked = "npos_max=3&q=%5B%5B1,0%5D,%5B0,1%5D%5D&"
                      "k=%5B%5B1,1%5D,%5B0,1%5D%5D&seed=0&std=1&causal=true&tensor=scores&query=1&key=0",
            .traps = "A position is counted from queries and keys, so there is no table to store, and a "
                     "hidden key does not count: another mask gives other positions. Counts from `npos_max` - "
                     "1 on share the last vector.",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
        },
    .config_bytes = sizeof(struct cope),
    .is_pairwise = true,
    .is_counted = true,
    .cost = cope_cost,
    .plan = cope_plan,
    .attend = &attend,
};
