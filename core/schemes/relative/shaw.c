/* Relative position representations (Shaw et al. 2018, arXiv 1803.02155, eqs. 2 to 5): a vector for each clipped
 * distance is added to keys and values.
 *
 *     index[i, j] = clip(k - q, p_min, p_max) - p_min            (direction query_minus_key: q - k)
 *     logit[i, j] = softmax_scale · (q_i·k_j + q_i·rel_k[index])
 *     output[i] = sum over j of p[i, j] · (v_j + rel_v[index])
 *
 * table_style sinusoidal is NEZHA (arXiv 1909.00204): both tables are the sinusoidal encoding of the row's number, 0
 * to p_max - p_min, interleaved, base 10000. relative_key and relative_key_query are the BERT family of
 * transformers: row (q - k) + P - 1 of 2P - 1, without clipping; the latter adds k_j·rel_k[index] too. These two
 * styles have no rel_v. */
#include "core/schemes/relative/relative.h"

#include <stdlib.h>
#include <string.h>

enum direction { KEY_MINUS_QUERY, QUERY_MINUS_KEY };
enum table_style { WEIGHTS, SINUSOIDAL, RELATIVE_KEY, RELATIVE_KEY_QUERY };
static const char *const directions[] = {"key_minus_query", "query_minus_key", NULL};
static const char *const styles[] = {"weights", "sinusoidal", "relative_key", "relative_key_query", NULL};

struct shaw {
    struct pe_relative_fields relative;
    int64_t p_min, p_max, max_relative;
    int direction, table_style;
};

/* Rows are numbered in int32; tables are stored as doubles. */
enum { DISTANCE_MAX = 1 << 20 };

static const struct pe_param params[] = {
    PE_P_INT(shaw, p_min, -4, -DISTANCE_MAX, DISTANCE_MAX, "smallest position",
             "smallest relative position with its own row", .usual = {-32, 0}),
    PE_P_INT(shaw, p_max, 4, -DISTANCE_MAX, DISTANCE_MAX, "largest position",
             "largest relative position with its own row", .usual = {0, 32}),
    {.name = "max_relative",
     .type = PE_T_INT,
     .offset = PE_OFFSET(shaw, max_relative, int64_t),
     .fallback = PE_UNSET,
     .min = 1,
     .max = DISTANCE_MAX,
     .excludes = "p_min|p_max",
     .about = {"largest distance", "sets p_min to -max_relative and p_max to max_relative"},
     .usual = {1, 64}},
    PE_P_WORD(shaw, direction, directions, "direction",
              "key_minus_query: tensor2tensor, NEZHA; query_minus_key: rows reversed (relative_key always is)"),
    PE_P_WORD(shaw, table_style, styles, "style of the table",
              "weights; sinusoidal: NEZHA's fixed tables; relative_key, relative_key_query: transformers' BERT"),
    PE_RELATIVE_PARAMS,
    PE_P_END,
};

enum output { INDEX };

static const struct pe_output_row outputs[] = {
    [INDEX] = PE_OUTPUT("index", "q_len,k_len", 1, PE_I32, false, NULL, "index", "row of the table"),
    {.name = NULL},
};

enum input { REL_K, REL_V };

static const struct pe_input_row inputs[] = {
    [REL_K] = PE_INPUT("rel_k", "p_max-p_min+1,head_dim", PE_ATTEND, false, "vectors for keys",
                       "added to keys; distance_embedding.weight of transformers' BERT"),
    [REL_V] =
        PE_INPUT("rel_v", "p_max-p_min+1,v_dim", PE_ATTEND, false, "vectors for values", "added to values; optional"),
    {.name = NULL},
};

struct tables {
    struct pe_relative_index index; /* of attention */
    int64_t p_min, p_max;
    size_t n_rows;
    double *rel_k, *rel_v; /* [n_rows, head_dim], [n_rows, v_dim]; NULL: none */
    size_t v_dim;
};

static bool is_hugging_face(const struct shaw *c) { return c->table_style >= RELATIVE_KEY; }

static int32_t row(const struct pe_plan *plan, int64_t rel)
{
    const struct shaw *c = plan->config;
    const struct tables *t = plan->tables;
    if (c->direction == QUERY_MINUS_KEY)
        rel = -rel;
    return (int32_t)((rel < t->p_min ? t->p_min : rel > t->p_max ? t->p_max : rel) - t->p_min);
}

/* ---- One number ---- */

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct shaw *c = plan->config;
    const struct tables *t = plan->tables;
    double q = pe_position_at(plan->seq.q, at->row), k = pe_position_at(plan->seq.k, at->col);
    bool is_by_query = c->direction == QUERY_MINUS_KEY;
    double n = is_by_query ? q - k : k - q;
    long long least = t->p_min, most = t->p_max;
    (void)id, (void)err;
    pe_derived(d, "d", dd(n), "%s − %s", pe_shown(is_by_query ? q : k).text, pe_shown(is_by_query ? k : q).text);
    pe_derived_says(d, is_by_query ? "query minus key" : "key minus query");
    if (n < (double)least || n > (double)most) {
        pe_derived(d, "d'", dd(n < (double)least ? (double)least : (double)most),
                   "min(max(d, p_min), p_max), p_min = %lld, p_max = %lld", least, most);
        pe_derived_says(d, n < (double)least ? "distances beyond p_min share the first row"
                                             : "distances beyond p_max share the last row");
    }
    pe_derived(d, "index", dd((double)row(plan, (int64_t)(k - q))), "%s − p_min, p_min = %lld", d->at[d->n - 1].symbol,
               least);
    pe_derived_says(d, is_hugging_face(c) ? "the row of rel_k"
                       : c->table_style == SINUSOIDAL
                           ? "the row of both tables, which is the sinusoidal encoding of it"
                           : "the row of rel_k, added to the key, and of rel_v, to the value");
    return PE_OK;
}

/* ---- Tables ---- */

/* The BERT family's table has a row for every possible distance, so the number of rows sent determines the range. */
static enum pe_status set_range(struct pe_plan *plan, struct tables *t, struct pe_failure *err)
{
    struct shaw *c = plan->config;
    uint64_t sent = plan->weights ? pe_weights_axis(plan, REL_K, 0) : 0;
    bool gave = pe_plan_gave(plan, "p_min") || pe_plan_gave(plan, "p_max") || c->max_relative != PE_UNSET_INT;
    if (c->max_relative != PE_UNSET_INT) {
        c->p_min = -c->max_relative;
        c->p_max = c->max_relative;
    } else if (!gave && is_hugging_face(c) && sent % 2 && sent < 2 * DISTANCE_MAX) {
        c->p_max = (int64_t)(sent / 2);
        c->p_min = -c->p_max;
    }
    if (c->p_min > c->p_max)
        return pe_fail(err, "/p_min", "p_min is %lld, p_max %lld; p_min must be the smaller one", (long long)c->p_min,
                       (long long)c->p_max);
    t->p_min = c->p_min;
    t->p_max = c->p_max;
    t->n_rows = (size_t)(c->p_max - c->p_min + 1);
    return PE_OK;
}

static enum pe_status check_hugging_face(struct pe_plan *plan, const struct tables *t, struct pe_failure *err)
{
    struct shaw *c = plan->config;
    int64_t least, most;
    if (!is_hugging_face(c))
        return PE_OK;
    if (pe_plan_gave_itself(plan, "direction") && c->direction == KEY_MINUS_QUERY)
        return pe_fail(err, "/direction", "table_style %s counts query minus key; leave direction out",
                       styles[c->table_style]);
    c->direction = QUERY_MINUS_KEY;
    if (t->p_min != -t->p_max)
        return pe_fail(err, "/p_min", "p_min is %lld and p_max %lld; table_style %s has as many rows on both sides",
                       (long long)t->p_min, (long long)t->p_max, styles[c->table_style]);
    pe_relative_reach(plan, &least, &most);
    if (plan->seq.piece ? most > t->p_max : most > t->p_max || least < t->p_min)
        return pe_fail(err, pe_weights_axis(plan, REL_K, 0) ? "/rel_k" : "/max_relative",
                       "the sequence has distances from %lld to %lld, the table rows for %lld to %lld, and table_style "
                       "%s does not clip; give a shorter sequence or a larger table",
                       (long long)least, (long long)most, (long long)t->p_min, (long long)t->p_max,
                       styles[c->table_style]);
    return PE_OK;
}

/* NEZHA: PE(row) of width head_dim, interleaved. */
static enum pe_status make_sinusoids(const struct pe_plan *plan, struct tables *t, struct pe_failure *err)
{
    const struct shaw *c = plan->config;
    size_t d = (size_t)c->relative.head_dim;
    if (d % 2)
        return pe_fail(err, "/head_dim", "head_dim is %zu; table_style sinusoidal needs an even one", d);
    struct pe_dd freq[PE_HEAD_DIM_MAX / 2];
    struct pe_wave columns[PE_HEAD_DIM_MAX];
    struct pe_waves *waves;
    struct pe_positions rows_of = {.n = t->n_rows};
    pe_ladder(10000, (double)d / 2, d / 2, freq);
    for (size_t i = 0; i < d; i++) {
        struct pe_dd f = pe_quarter_turns(freq[i / 2]);
        columns[i] = (struct pe_wave){.fh = f.hi, .fl = f.lo, .ah = 1, .quarter = i % 2 != 0};
    }
    t->rel_k = malloc(t->n_rows * d * sizeof *t->rel_k);
    t->rel_v = malloc(t->n_rows * d * sizeof *t->rel_v);
    if (!t->rel_k || !t->rel_v || pe_waves_new(columns, d, &waves))
        return pe_no_memory(err);
    pe_waves_fill(waves, PE_F64, &rows_of, 0, t->n_rows, 0, d, t->rel_k, d);
    memcpy(t->rel_v, t->rel_k, t->n_rows * d * sizeof *t->rel_v);
    pe_waves_free(waves);
    return PE_OK;
}

static enum pe_status refuse_sent(const struct pe_plan *plan, enum input id, struct pe_failure *err)
{
    const struct shaw *c = plan->config;
    char pointer[8] = "/";
    if (!pe_weights_sent(plan, id))
        return PE_OK;
    return pe_fail(err, strcat(pointer, inputs[id].name), "%s is not used by table_style %s", inputs[id].name,
                   styles[c->table_style]);
}

static enum pe_status read_tables(struct pe_plan *plan, struct tables *t, struct pe_failure *err)
{
    const struct shaw *c = plan->config;
    const uint64_t k[2] = {t->n_rows, (uint64_t)c->relative.head_dim}, v[2] = {t->n_rows, t->v_dim};
    enum pe_status status = pe_weights_need_shape(plan, REL_K, k, 2, err);
    bool has_values = !is_hugging_face(c) && (pe_weights_sent(plan, REL_V) || plan->weights[REL_K].is_seeded);
    if (!status && is_hugging_face(c))
        status = refuse_sent(plan, REL_V, err);
    if (!status && has_values)
        status = pe_weights_need_shape(plan, REL_V, v, 2, err);
    if (status)
        return status;
    t->rel_k = pe_weights_all(plan, REL_K);
    t->rel_v = has_values ? pe_weights_all(plan, REL_V) : NULL;
    return t->rel_k && (t->rel_v || !has_values) ? PE_OK : pe_no_memory(err);
}

static enum pe_status make_tables(struct pe_plan *plan, struct tables *t, struct pe_failure *err)
{
    const struct shaw *c = plan->config;
    size_t head_dim = (size_t)c->relative.head_dim, v_dim = (size_t)plan->brought->v_dim;
    t->v_dim = v_dim ? v_dim : head_dim;
    if ((double)t->n_rows * (double)(t->v_dim > head_dim ? t->v_dim : head_dim) > PE_RELATIVE_TABLE_MAX)
        return pe_fail(err, "/p_max", "the table would have %zu rows of %zu channels; allowed: %d numbers", t->n_rows,
                       head_dim, PE_RELATIVE_TABLE_MAX);
    if (c->table_style != SINUSOIDAL)
        return read_tables(plan, t, err);
    enum pe_status status = refuse_sent(plan, REL_K, err);
    if (!status)
        status = refuse_sent(plan, REL_V, err);
    if (!status && t->v_dim != head_dim)
        return pe_fail(err, "/v", "v has %zu channels; table_style sinusoidal needs as many as q has, %zu", t->v_dim,
                       head_dim);
    return status ? status : make_sinusoids(plan, t, err);
}

/* Adds the cost of the tables and of the norms of their rows. */
static void shaw_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct shaw *c = plan->config;
    if (!plan->attention)
        return;
    double most = c->max_relative != PE_UNSET_INT ? 2 * (double)c->max_relative : (double)c->p_max - (double)c->p_min;
    double rows = fmax(most + 1, (double)pe_weights_axis(plan, REL_K, 0)), v_dim = (double)(size_t)plan->brought->v_dim;
    double d = (double)c->relative.head_dim, k = fmin(rows * d, PE_RELATIVE_TABLE_MAX);
    double v = fmin(rows * (v_dim > 0 ? v_dim : d), PE_RELATIVE_TABLE_MAX);
    if (c->table_style == SINUSOIDAL) {
        pe_cost_waves(cost, d);
        pe_cost_ladder(cost, d / 2, false);
        pe_cost_each(cost, k + v, sizeof(double), 10);
    } else {
        pe_cost_weights(cost, plan, REL_K, k);
        pe_cost_weights(cost, plan, REL_V, v);
    }
    pe_cost_each(cost, k, 0, 3);
    pe_relative_index_cost(plan, 10, cost);
}

static enum pe_status shaw_plan(struct pe_plan *plan, struct pe_failure *err)
{
    struct tables *t = plan->tables;
    enum pe_status status = pe_relative_check(plan, err);
    if (!status)
        status = set_range(plan, t, err);
    if (!status)
        status = check_hugging_face(plan, t, err);
    return status || !plan->attention ? status : make_tables(plan, t, err);
}

static void shaw_drop(struct pe_plan *plan)
{
    struct tables *t = plan->tables;
    free(t->rel_k);
    free(t->rel_v);
    free(t->index.run);
}

/* ---- Attention ---- */

static size_t head_dim_of(const struct pe_plan *plan)
{
    return (size_t)((const struct shaw *)plan->config)->relative.head_dim;
}

static bool by_key_too(const struct pe_plan *plan)
{
    return ((const struct shaw *)plan->config)->table_style == RELATIVE_KEY_QUERY;
}

static double largest(const struct pe_plan *plan, double q_norm, double k_norm)
{
    const struct tables *t = plan->tables;
    double e = pe_relative_norm(t->rel_k, t->n_rows, head_dim_of(plan));
    return (q_norm + (by_key_too(plan) ? k_norm : 0)) * e;
}

/* The tables of a head: rel_k, rel_v, and the products of the keys with rel_k. Styles with these products have no
 * rel_v. */
static size_t rel_v_at(const struct pe_plan *plan)
{
    const struct tables *t = plan->tables;
    return pe_relative_table_size(t->n_rows, head_dim_of(plan));
}

static struct pe_attend_room room(const struct pe_plan *plan, size_t n_rows)
{
    const struct tables *t = plan->tables;
    size_t meeting = by_key_too(plan) ? pe_relative_meeting_size(plan, t->n_rows) : 0;
    return (struct pe_attend_room){.tables = rel_v_at(plan) + t->n_rows * t->v_dim + meeting,
                                   .scratch = pe_relative_scratch(plan, n_rows, t->n_rows)};
}

static double work(const struct pe_plan *plan)
{
    const struct tables *t = plan->tables;
    double d = (double)head_dim_of(plan);
    return d * (double)t->n_rows / (double)plan->seq.k->n + (by_key_too(plan) ? 2 * d : 0);
}

static const void *open_head(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables)
{
    const struct tables *t = plan->tables;
    (void)head;
    pe_relative_table_set(a, t->rel_k, t->n_rows, head_dim_of(plan), tables);
    if (t->rel_v)
        pe_convert(a->dtype, pe_numbers_at(a, tables, rel_v_at(plan)), PE_F64, t->rel_v, t->n_rows * t->v_dim);
    return tables;
}

static void open_keys(const struct pe_rows *keys, void *tables)
{
    const struct tables *t = keys->plan->tables;
    if (by_key_too(keys->plan) && pe_relative_meeting_size(keys->plan, t->n_rows))
        pe_relative_meet(keys, keys->tables, t->n_rows, pe_numbers_at(keys->a, tables, rel_v_at(keys->plan)));
}

static const char *const parts[] = {"content_content", "content_relative", "relative_content", NULL};

static bool has_part(const struct pe_plan *plan, size_t part) { return part < 2 || by_key_too(plan); }

static void add_part(const struct pe_rows *rows, size_t part)
{
    const struct tables *t = rows->plan->tables;
    const void *panels = pe_relative_panels(rows->a, rows->tables, t->n_rows, rows->head_dim);
    if (part == 1)
        pe_relative_add_by_query(rows, &t->index, panels, t->n_rows, rows->scale);
    else
        pe_relative_add_by_key(rows, &t->index, rows->tables,
                               pe_numbers_at(rows->a, rows->tables, rel_v_at(rows->plan)), t->n_rows, rows->scale);
}

static void add_output(const struct pe_rows *rows, void *out, size_t out_stride, size_t v_dim)
{
    const struct tables *t = rows->plan->tables;
    const void *rel_v = pe_numbers_at(rows->a, rows->tables, rel_v_at(rows->plan));
    if (t->rel_v)
        pe_relative_add_values(rows, &t->index, rel_v, t->n_rows, out, out_stride, v_dim);
}

static const struct pe_attend attend = {
    .largest = largest,
    .room = room,
    .work = work,
    .open = pe_relative_open,
    .open_head = open_head,
    .open_keys = open_keys,
    .add_scores = pe_relative_add_parts,
    .add_output = add_output,
    .parts = parts,
    .has_part = has_part,
    .add_part = add_part,
};

static const struct pe_formula_line formula[] = {
    {"d = { k - q if direction is key_minus_query; q - k }", "the relative position"},
    {"a = { -max_relative if max_relative is given; p_min }", "the smallest position with a row of its own"},
    {"b = { max_relative if max_relative is given; p_max }", "the largest one"},
    {"index[q, k] = min(max(d, a), b) - a", "the row of the table; far keys share the first or the last"},
    {"S[m, n] = softmax_scale*sum(c, 0, head_dim - 1, Q[h, m, c]*(K[h, n, c] + rel_k[index[q, k], c]))",
     "the logit: a learned vector is added to each key, and rel_v likewise to each value"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_shaw = {
    .info =
        {
            .name = "shaw",
            .family = "relative",
            .about = {"relative vectors (Shaw)",
                      "a learned vector for each clipped distance, added to keys and values"},
            .paper = "Shaw et al. 2018, arXiv 1803.02155",
            .formula = formula,
            .example = "{\"scheme\":\"shaw\",\"len\":6,\"max_relative\":2}",
            .picture = "len=32",
            .worked = "query=7&key=1",
            .traps = "The distance is key minus query in tensor2tensor and NEZHA, query minus key in BERT of "
                     "transformers (`direction`, `table_style`): the same table with its rows reversed. "
                     "Values have a table of their own, `rel_v`, without which scores are right and outputs "
                     "are not.",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
        },
    .config_bytes = sizeof(struct shaw),
    .tables_bytes = sizeof(struct tables),
    .is_pairwise = true,
    .cost = shaw_cost,
    .plan = shaw_plan,
    .drop = shaw_drop,
    .fill = pe_relative_fill,
    .line = pe_relative_line,
    .derive = derive,
    .table_row = row,
    .attend = &attend,
};
