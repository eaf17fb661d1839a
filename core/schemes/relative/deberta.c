/* DeBERTa's disentangled attention (He et al. 2020, arXiv 2006.03654; v3: 2111.09543): content attends to position
 * and position to content, through a table of relative positions that is projected as keys and as queries.
 *
 *     index[i, j] = clip(b(q - k) + span, 0, 2·span - 1)
 *     b(delta) = delta where |delta| ≤ mid or without buckets; else
 *                sign·(mid + ⌈ln(|delta|/mid) / ln((M - 1)/mid) · (mid - 1)⌉)       mid = ⌊position_buckets/2⌋
 *     M = max_relative_positions; span = position_buckets, without buckets M
 *     logit[i, j] = softmax_scale · (q_i·k_j + q_i·pos_key[index[i, j]] + k_j·pos_query[index[i, j]])
 *     softmax_scale = 1/sqrt(head_dim · (1 + number of terms))
 *
 * The third term takes the same row as the second in every released code; the paper's eq. 4 has the row of delta(j,
 * i), but no published weights were trained with that. Libraries differ for |delta| ≥ M: Microsoft's clamps to M - 1
 * first (clamp_first), transformers does not. */
#include "core/schemes/relative/relative.h"

#include <stdlib.h>
#include <string.h>

/* Content to position, with pos_key; position to content, with pos_query. */
enum term { C2P, P2C };
static const char *const term_names[] = {[C2P] = "c2p", [P2C] = "p2c", NULL};

struct deberta {
    struct pe_relative_fields relative;
    int64_t position_buckets, max_relative_positions;
    const struct pe_value *pos_att_type, *norm_rel_ebd;
    bool share_att_key, clamp_first;
};

/* Buckets of distances beyond mid = position_buckets/2. */
struct ladder {
    int64_t mid;
    struct pe_dd log_mid, log_m; /* ln mid, ln((M-1)/mid) */
};

struct tables {
    struct pe_relative_index index; /* of attention */
    bool has[2];                    /* the terms */
    int64_t span;
    double *table[2]; /* pos_key, pos_query: [num_heads, 2·span, head_dim] */
    struct ladder ladder;
    int64_t n_buckets;
    int32_t bucket[]; /* [n_buckets]: b of each distance from 0 on, at most the span */
};

enum { SPAN_MAX = 1 << 16 };

static const struct pe_param params[] = {
    PE_P_INT(deberta, position_buckets, -1, -1, SPAN_MAX, "buckets of each side",
             "number of rows for each side, where far distances share rows; -1: each distance has its own row (v1)",
             .usual = {-1, 256}),
    {.name = "max_relative_positions",
     .alias = "max_relative",
     .type = PE_T_INT,
     .offset = PE_OFFSET(deberta, max_relative_positions, int64_t),
     .fallback = 512,
     .min = -1,
     .max = SPAN_MAX,
     .about = {"largest distance",
               "M: the distance where buckets end; without buckets, half of the table; below 1 it means 512, as in "
               "released configs"},
     .usual = {1, 1024}},
    PE_P_VALUE(deberta, pos_att_type, "terms", "terms: a list of \"c2p\" and \"p2c\", or \"c2p|p2c\"; default both"),
    PE_P_BOOL(deberta, share_att_key, true, "shared projections",
              "true: w_q and w_k project rel_embeddings; false: w_pos_q and w_pos_k do"),
    PE_P_VALUE(deberta, norm_rel_ebd, "normalise the table",
               "true or \"layer_norm\": normalise rel_embeddings first, with norm_weight and norm_bias if sent"),
    PE_P_BOOL(deberta, clamp_first, false, "clamp before buckets",
              "true: clamp distances to M - 1 before they get a bucket (Microsoft's code)"),
    PE_RELATIVE_PARAMS,
    PE_P_END,
};

enum output { INDEX };

static const struct pe_output_row outputs[] = {
    [INDEX] = PE_OUTPUT("index", "q_len,k_len", 1, PE_I32, false, NULL, "index", "row of the tables, 0 to 2·span - 1"),
    {.name = NULL},
};

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
static const struct pe_input_row inputs[] = {
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

/* ---- Buckets ---- */

/* Has |delta| = n passed step k of the logarithmic part, (n/mid)^(mid-1) > ((M-1)/mid)^k? Computed in double-double.
 * Values that agree to 2^-88 count as equal; for the last distance they are equal by construction. */
static bool has_passed(struct pe_dd log_n, struct pe_dd log_m, int64_t mid, int64_t k)
{
    struct pe_dd left = dd_mul_d(log_n, (double)(mid - 1)), right = dd_mul_d(log_m, (double)k);
    double difference = dd_sub(left, right).hi;
    return difference > right.hi * 0x1p-88;
}

static int32_t bucket_of(const struct ladder *s, int64_t span, int64_t n)
{
    if (s->mid > 0 && n > s->mid) {
        /* mid + ⌈ln(n/mid)/ln((M-1)/mid)·(mid-1)⌉, n > mid, or the span if that is less. The search starts from the
         * quotient in double, which is accurate enough to begin one step before the right one. */
        struct pe_dd log_n = dd_sub(pe_dd_log(dd((double)n)), s->log_mid);
        int64_t step = (int64_t)fmin(floor(log_n.hi / s->log_m.hi * (double)(s->mid - 1)), (double)span) - 1;
        step = step > 0 ? step : 0;
        while (s->mid + step < span && has_passed(log_n, s->log_m, s->mid, step))
            step++;
        return (int32_t)(s->mid + step);
    }
    return (int32_t)(n < span ? n : span);
}

/* The row of both tables for a relative position. */
static int32_t row(const struct pe_plan *plan, int64_t rel)
{
    const struct deberta *c = plan->config;
    const struct tables *t = plan->tables;
    int64_t n = rel < 0 ? -rel : rel, most = c->max_relative_positions - 1;
    if (c->clamp_first && n > most)
        n = most;
    int64_t b = n < t->n_buckets ? t->bucket[n]
                : t->bucket[t->n_buckets - 1] >= t->span
                    ? t->span
                    : bucket_of(&t->ladder, t->span, n); /* odd position_buckets only */
    int64_t r = (rel > 0 ? -b : b) + t->span;            /* delta = -rel */
    return (int32_t)(r < 0 ? 0 : r < 2 * t->span ? r : 2 * t->span - 1);
}

/* ---- One number ---- */

/* The place of a far distance among the buckets, as a logarithm: ⌈l⌉ behind mid. What agrees with a whole number as far
 * as has_passed() looks is one. */
static struct pe_dd state_bucket(const struct pe_plan *plan, double n, struct pe_derivation *d)
{
    const struct ladder *s = &((const struct tables *)plan->tables)->ladder;
    long long mid = s->mid, most = ((const struct deberta *)plan->config)->max_relative_positions - 1;
    struct pe_dd mid_ = dd((double)mid), ratio = pe_derived_round(d, PE_F32, dd_div(dd(n), mid_)),
                 far = pe_derived_round(d, PE_F32, dd_div(dd((double)most), mid_)),
                 whole = d->recipe == PE_RECIPE_EXACT ? s->log_m : pe_derived_round(d, PE_F32, pe_dd_log(far));
    struct pe_dd x =
        pe_derived(d, "x", pe_derived_round(d, PE_F32, pe_dd_log(ratio)), "ln(n/mid) = ln(%.0f/%lld)", n, mid);
    struct pe_dd share = pe_derived_round(d, PE_F32, dd_div(x, whole)),
                 l = pe_derived_round(d, PE_F32, dd_mul_d(share, (double)(mid - 1)));
    double k = nearbyint(l.hi);
    l = fabs(dd_sub(l, dd(k)).hi) <= k * 0x1p-88 ? dd(k) : l;
    return pe_derived(d, "l", l, "x/ln((M − 1)/mid)·(mid − 1) = x/ln(%lld/%lld)·%lld", most, mid, mid - 1);
}

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct deberta *c = plan->config;
    const struct tables *t = plan->tables;
    double q = pe_position_at(plan->seq.q, at->row), k = pe_position_at(plan->seq.k, at->col), delta = q - k,
           n = fabs(delta), most = (double)c->max_relative_positions - 1, mid = (double)t->ladder.mid;
    (void)id, (void)err;
    pe_derived(d, "d", dd(delta), "%s − %s", pe_shown(q).text, pe_shown(k).text);
    pe_derived_says(d, "query minus key");
    if (c->clamp_first && n > most) {
        n = most;
        pe_derived(d, "n", dd(n), "min(|d|, M − 1), M = %lld", (long long)c->max_relative_positions);
        pe_derived_says(d, "clamp_first: the distance is clamped before it gets a bucket");
    } else
        pe_derived(d, "n", dd(n), "|d|");
    double b = n;
    if (mid > 0) {
        pe_derived_case(d, n > mid ? "n > mid = %s" : "n ≤ mid = %s", pe_shown(mid).text);
        pe_derived_says(d, n > mid ? "long distances share buckets" : "short distances have a bucket each");
    }
    if (mid > 0 && n > mid) {
        struct pe_dd l = state_bucket(plan, n, d);
        b = mid + ceil(l.hi) + (l.hi == ceil(l.hi) && l.lo > 0);
        b = pe_derived(d, "b", dd(delta < 0 ? -b : b), delta < 0 ? "−(mid + ⌈l⌉)" : "mid + ⌈l⌉").hi;
    } else
        b = pe_derived(d, "b", dd(delta < 0 ? -b : b), delta < 0 ? "−n" : "n").hi;
    pe_derived(d, "index", dd(fmin(fmax(b + (double)t->span, 0), 2 * (double)t->span - 1)),
               "min(max(b + span, 0), 2·span − 1), span = %lld", (long long)t->span);
    pe_derived_says(d, t->has[C2P] && t->has[P2C]
                           ? "the row of pos_key, which the query meets (c2p), and of pos_query, "
                             "which the key meets (p2c)"
                       : t->has[C2P] ? "the row of pos_key, which the query meets (c2p)"
                                     : "the row of pos_query, which the key meets (p2c)");
    return PE_OK;
}

/* ---- What the request states ---- */

static bool set_term(struct tables *t, const char *name, size_t n)
{
    for (size_t i = 0; term_names[i]; i++)
        if (strlen(term_names[i]) == n && memcmp(term_names[i], name, n) == 0)
            return t->has[i] = true;
    return false;
}

/* "c2p|p2c" */
static bool read_words(struct tables *t, const char *words)
{
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, "|");
        if (!set_term(t, p, n))
            return false;
        p += n + (p[n] == '|');
    }
    return true;
}

static bool read_terms(struct tables *t, const struct pe_value *v)
{
    bool fine = v->kind == PE_STRING ? read_words(t, v->string)
                                     : v->kind == PE_LIST || (v->kind == PE_ARRAY && v->array.shape[0] == 0);
    for (size_t i = 0; v->kind == PE_LIST && i < v->list.n; i++)
        fine = fine && v->list.items[i].kind == PE_STRING && read_words(t, v->list.items[i].string);
    return fine;
}

static enum pe_status check_terms(struct deberta *c, struct tables *t, struct pe_failure *err)
{
    static const struct pe_value words[] = {{.kind = PE_STRING, .string = "c2p"}, {.kind = PE_STRING, .string = "p2c"}};
    static const struct pe_value both = {.kind = PE_LIST, .list = {words, 2}};
    c->pos_att_type = c->pos_att_type ? c->pos_att_type : &both;
    if (read_terms(t, c->pos_att_type))
        return PE_OK;
    const char *found = c->pos_att_type->kind == PE_STRING ? c->pos_att_type->string : pe_text("no word");
    return pe_fail(err, "/pos_att_type",
                   "pos_att_type is \"%.64s\"; allowed: a list of \"c2p\" and \"p2c\", or \"c2p|p2c\"", found);
}

static enum pe_status check_norm(struct deberta *c, struct pe_failure *err)
{
    static const struct pe_value no = {.kind = PE_BOOLEAN}, yes = {.kind = PE_BOOLEAN, .boolean = true};
    const struct pe_value *v = c->norm_rel_ebd ? c->norm_rel_ebd : &no;
    bool word = v->kind == PE_STRING, norm = word && strcmp(v->string, "layer_norm") == 0;
    if (v->kind != PE_BOOLEAN && !norm && !(word && strcmp(v->string, "none") == 0))
        return pe_fail(err, "/norm_rel_ebd", "norm_rel_ebd is none of true, false, \"layer_norm\", \"none\"");
    c->norm_rel_ebd = norm || (!word && v->boolean) ? &yes : &no;
    return PE_OK;
}

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
static const struct pe_weights *projection(const struct pe_plan *plan, enum term term, bool bias)
{
    const struct deberta *c = plan->config;
    if (c->share_att_key && term == C2P)
        return &plan->brought->projections[bias ? PE_B_K : PE_W_K];
    if (c->share_att_key)
        return &plan->brought->projections[bias ? PE_B_Q : PE_W_Q];
    return &plan->weights[term == C2P ? (bias ? B_POS_K : W_POS_K) : (bias ? B_POS_Q : W_POS_Q)];
}

static enum pe_status check_projection(const struct pe_plan *plan, enum term term, uint64_t hidden,
                                       struct pe_failure *err)
{
    const struct deberta *c = plan->config;
    const struct pe_tensor *w = &projection(plan, term, false)->tensor, *b = &projection(plan, term, true)->tensor;
    uint64_t n = (uint64_t)(c->relative.num_heads * c->relative.head_dim);
    static const char *const names[2][2] = {{"w_pos_k", "w_pos_q"}, {"w_k", "w_q"}};
    const char *name = names[c->share_att_key][term];
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

static double *read_all(const struct pe_weights *w)
{
    uint64_t n = 0;
    pe_shape_count(w->tensor.shape, w->tensor.rank, &n);
    double *out = w->tensor.rank ? malloc(n * sizeof *out) : NULL;
    if (out)
        pe_weights_read(w, 0, n, out);
    return out;
}

static enum pe_status project_term(const struct pe_plan *plan, struct tables *t, enum term term, const double *x,
                                   uint64_t hidden, struct pe_failure *err)
{
    const struct deberta *c = plan->config;
    size_t rows = 2 * (size_t)t->span, heads = (size_t)c->relative.num_heads, d = (size_t)c->relative.head_dim;
    enum pe_status status = check_projection(plan, term, hidden, err);
    if (status)
        return status;
    double *w = read_all(projection(plan, term, false)), *b = read_all(projection(plan, term, true));
    t->table[term] = malloc(heads * rows * d * sizeof *t->table[term]);
    if (w && t->table[term] && (b || !projection(plan, term, true)->tensor.rank)) {
        /* out [num_heads, rows, head_dim] = embeddings·Wᵀ + b */
        const struct pe_arithmetic *a = pe_arithmetic(PE_F64);
        for (size_t h = 0; h < heads && !pe_is_cancelled(); h++) {
            double *to = (t->table[term]) + h * rows * d;
            a->abt(rows, d, hidden, 1, x, hidden, w + h * d * hidden, hidden, 0, to, d);
            for (size_t i = 0; b && i < rows; i++)
                a->add(to + i * d, b + h * d, d, 1);
        }
    } else {
        status = pe_no_memory(err);
    }
    free(w);
    free(b);
    return status;
}

static enum pe_status project_embeddings(struct pe_plan *plan, struct tables *t, struct pe_failure *err)
{
    const struct deberta *c = plan->config;
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
    for (enum term term = C2P; !status && term <= P2C; term++)
        if (t->has[term])
            status = project_term(plan, t, term, x, hidden, err);
    free(x);
    return status;
}

static enum pe_status make_tables(struct pe_plan *plan, struct tables *t, struct pe_failure *err)
{
    const struct deberta *c = plan->config;
    double n = 2 * (double)t->span * (double)c->relative.num_heads * (double)c->relative.head_dim;
    if (n > PE_RELATIVE_TABLE_MAX)
        return pe_fail(err, "/max_relative_positions",
                       "the projected table would have %.0f numbers, num_heads·2·span·head_dim; allowed: %d", n,
                       PE_RELATIVE_TABLE_MAX);
    if (pe_weights_sent(plan, REL_EMBEDDINGS))
        return project_embeddings(plan, t, err);
    const uint64_t shape[3] = {(uint64_t)c->relative.num_heads, 2 * (uint64_t)t->span, (uint64_t)c->relative.head_dim};
    enum pe_status status = PE_OK;
    for (enum term term = C2P; !status && term <= P2C; term++) {
        size_t id = term == C2P ? POS_KEY : POS_QUERY;
        if (!t->has[term])
            continue;
        status = pe_weights_need_shape(plan, id, shape, 3, err);
        if (!status && !(t->table[term] = pe_weights_all(plan, id)))
            status = pe_no_memory(err);
    }
    return status;
}

/* ---- The cost ---- */

static double terms_of(const struct deberta *c)
{
    const struct pe_value *v = c->pos_att_type;
    bool is_one = v && ((v->kind == PE_STRING && !strchr(v->string, '|')) || (v->kind == PE_LIST && v->list.n == 1));
    return is_one ? 1 : 2;
}

/* Adds the cost of the tables, and that of the norms of their rows. */
static void tables_cost(const struct pe_plan *plan, double rows, struct pe_cost *cost)
{
    const struct deberta *c = plan->config;
    double width = (double)c->relative.num_heads * (double)c->relative.head_dim;
    double table = fmin(rows * width, PE_RELATIVE_TABLE_MAX);
    if (pe_weights_sent(plan, REL_EMBEDDINGS)) {
        /* Adds the cost of the embeddings, the weights of a term, and their products. */
        double hidden = (double)pe_weights_axis(plan, REL_EMBEDDINGS, 1);
        pe_cost_each(cost, rows * hidden, sizeof(double), c->norm_rel_ebd ? 60 : PE_NS_SENT);
        bool is_seeded = c->share_att_key && plan->brought->projections[PE_W_Q].is_seeded;
        pe_cost_each(cost, terms_of(c) * width * (hidden + 1), sizeof(double), is_seeded ? PE_NS_SEEDED : PE_NS_SENT);
        pe_cost_each(cost, terms_of(c) * fmin(rows * width, PE_RELATIVE_TABLE_MAX), sizeof(double),
                     hidden * PE_NS_PRODUCT);
    } else {
        pe_cost_each(cost, terms_of(c) * table, sizeof(double),
                     fmax(pe_cost_of_weight(plan, POS_KEY), pe_cost_of_weight(plan, POS_QUERY)));
    }
    pe_cost_each(cost, terms_of(c) * table, 0, 3);
}

/* ---- The plan ---- */

/* A logarithm for each distance that shares its bucket (with odd buckets also for each lookup); in attention the
 * tables and the index. */
static void deberta_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct deberta *c = plan->config;
    double m = c->max_relative_positions < 1 ? 512 : (double)c->max_relative_positions;
    double buckets = (double)c->position_buckets;
    pe_cost_each(cost, m + 2, sizeof(int32_t), buckets > 0 ? PE_NS_DD : 10);
    if (!plan->attention)
        return;
    tables_cost(plan, 2 * (buckets > 0 ? buckets : m), cost);
    pe_relative_index_cost(plan, buckets > 0 && c->position_buckets % 2 ? PE_NS_DD : 10, cost);
}

static enum pe_status deberta_plan(struct pe_plan *plan, struct pe_failure *err)
{
    struct deberta *c = plan->config;
    if (c->position_buckets == 0)
        c->position_buckets = -1;
    if (c->max_relative_positions < 1)
        c->max_relative_positions = 512;
    enum pe_status status = PE_OK;
    int64_t mid = c->position_buckets / 2;
    if (c->position_buckets > 0 && (mid < 1 || c->max_relative_positions - 1 <= mid))
        return pe_fail(
            err, "/position_buckets",
            "position_buckets is %lld and max_relative_positions %lld; allowed: at least 2 buckets, and half "
            "of them below max_relative_positions - 1; -1 for none",
            (long long)c->position_buckets, (long long)c->max_relative_positions);
    int64_t span = c->position_buckets > 0 ? c->position_buckets : c->max_relative_positions;
    int64_t room = c->max_relative_positions + 2;
    struct tables *t = plan->tables = calloc(1, sizeof *t + (size_t)room * sizeof *t->bucket);
    if (!t)
        return pe_no_memory(err);
    t->span = span;
    /* Computes the bucket of each distance up to M, or until the last bucket is reached. */
    struct ladder s = {.mid = c->position_buckets / 2};
    if (c->position_buckets > 0) {
        s.log_mid = pe_dd_log(dd((double)s.mid));
        s.log_m = dd_sub(pe_dd_log(dd((double)(c->max_relative_positions - 1))), s.log_mid);
    }
    t->ladder = s;
    while (t->n_buckets < room && (t->n_buckets == 0 || t->bucket[t->n_buckets - 1] < t->span)) {
        t->bucket[t->n_buckets] = bucket_of(&t->ladder, t->span, t->n_buckets);
        t->n_buckets++;
    }
    if (t->bucket[t->n_buckets - 1] < span)
        plan->pace = PE_SLOW; /* an odd position_buckets: a logarithm for each distance beyond the table */
    status = check_terms(c, t, err);
    if (!status)
        status = check_norm(c, err);
    if (!status)
        status = pe_relative_check(plan, err);
    return status || !plan->attention ? status : make_tables(plan, t, err);
}

static void deberta_drop(struct pe_plan *plan)
{
    struct tables *t = plan->tables;
    free(t->table[C2P]);
    free(t->table[P2C]);
    free(t->index.run);
}

/* ---- In attention: what the terms c2p and p2c add to the scores, from the tables of each head ---- */

/* Numbers of one head's table. */
static size_t table_numbers(const struct pe_plan *plan)
{
    const struct deberta *c = plan->config;
    return 2 * (size_t)((const struct tables *)plan->tables)->span * (size_t)c->relative.head_dim;
}

static size_t n_rows_of(const struct pe_plan *plan) { return 2 * (size_t)((const struct tables *)plan->tables)->span; }

/* The tables of a head: the table of c2p, the table of p2c, and the products of the keys with the latter. */
static size_t head_numbers(const struct pe_plan *plan)
{
    const struct deberta *c = plan->config;
    return pe_relative_table_size(n_rows_of(plan), (size_t)c->relative.head_dim);
}

static double softmax_scale(const struct pe_plan *plan, size_t head_dim)
{
    const struct tables *t = plan->tables;
    return 1 / sqrt((double)head_dim * (1 + t->has[C2P] + t->has[P2C]));
}

static double norm_of(const struct pe_plan *plan, enum term term)
{
    const struct deberta *c = plan->config;
    const struct tables *t = plan->tables;
    size_t n = (size_t)c->relative.num_heads * n_rows_of(plan);
    return t->has[term] ? pe_relative_norm(t->table[term], n, (size_t)c->relative.head_dim) : 0;
}

static double largest(const struct pe_plan *plan, double q_norm, double k_norm)
{
    return q_norm * norm_of(plan, C2P) + k_norm * norm_of(plan, P2C);
}

static struct pe_attend_room room(const struct pe_plan *plan, size_t n_rows)
{
    size_t meeting = pe_relative_meeting_size(plan, n_rows_of(plan));
    return (struct pe_attend_room){.tables = 2 * head_numbers(plan) + meeting,
                                   .scratch = pe_relative_scratch(plan, n_rows, n_rows_of(plan))};
}

static double work(const struct pe_plan *plan)
{
    const struct deberta *c = plan->config;
    const struct tables *t = plan->tables;
    double d = (double)c->relative.head_dim;
    return t->has[C2P] * d * (double)n_rows_of(plan) / (double)plan->seq.k->n + t->has[P2C] * 2 * d;
}

static const void *open_head(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables)
{
    const struct tables *t = plan->tables;
    const struct deberta *c = plan->config;
    for (enum term term = C2P; term <= P2C; term++)
        if (t->has[term])
            pe_relative_table_set(a, t->table[term] + head * table_numbers(plan), n_rows_of(plan),
                                  (size_t)c->relative.head_dim, pe_numbers_at(a, tables, term * head_numbers(plan)));
    return tables;
}

static void open_keys(const struct pe_rows *keys, void *tables)
{
    const struct pe_plan *plan = keys->plan;
    size_t n = head_numbers(plan);
    if (((const struct tables *)plan->tables)->has[P2C] && pe_relative_meeting_size(plan, n_rows_of(plan)))
        pe_relative_meet(keys, pe_numbers_at(keys->a, keys->tables, P2C * n), n_rows_of(plan),
                         pe_numbers_at(keys->a, tables, 2 * n));
}

static void add_term(const struct pe_rows *rows, enum term term, double factor)
{
    const struct tables *t = rows->plan->tables;
    size_t n = head_numbers(rows->plan), n_table = n_rows_of(rows->plan);
    const void *table = pe_numbers_at(rows->a, rows->tables, term * n);
    if (term == C2P)
        pe_relative_add_by_query(rows, &t->index, pe_relative_panels(rows->a, table, n_table, rows->head_dim), n_table,
                                 factor);
    else
        pe_relative_add_by_key(rows, &t->index, table, pe_numbers_at(rows->a, rows->tables, 2 * n), n_table, factor);
}

static bool has_term(const struct pe_plan *plan, size_t term)
{
    return ((const struct tables *)plan->tables)->has[term];
}

static void write_term(const struct pe_rows *rows, size_t term)
{
    for (size_t i = 0; i < rows->n_rows; i++)
        pe_numbers_set(rows->a, pe_numbers_at(rows->a, rows->logits, i * rows->stride), 0, rows->n_keys, 0);
    add_term(rows, (enum term)term, 1);
}

static const char *const parts[] = {"c2c", [1 + C2P] = "c2p", [1 + P2C] = "p2c", NULL};

static bool has_part(const struct pe_plan *plan, size_t part) { return part == 0 || has_term(plan, part - 1); }

static void add_part(const struct pe_rows *rows, size_t part) { add_term(rows, (enum term)(part - 1), rows->scale); }

static const struct pe_attend attend = {
    .softmax_scale = softmax_scale,
    .uses_projections = true,
    .largest = largest,
    .room = room,
    .work = work,
    .open = pe_relative_open,
    .open_head = open_head,
    .open_keys = open_keys,
    .add_scores = pe_relative_add_parts,
    .parts = parts,
    .has_part = has_part,
    .add_part = add_part,
    .terms = term_names,
    .has_term = has_term,
    .write_term = write_term,
};

static const struct pe_formula_line formula[] = {
    {"M = max_relative_positions", "the distance where buckets end"},
    {"M' = { position_buckets if position_buckets > 0; M }", "half of the table's rows"},
    {"i = floor(position_buckets/2)", "so many distances of each side have a bucket each"},
    {"d = { sign(q - k)*min(abs(q - k), M - 1) if clamp_first; q - k }",
     "the distance; Microsoft's code clamps it first"},
    {"b = { d if abs(d) <= i or position_buckets <= 0; sign(d)*(i + ceil(ln(abs(d)/i)/ln((M - 1)/i)*(i - 1))) }",
     "farther ones share a bucket, by their logarithm"},
    {"index[q, k] = min(max(b + M', 0), 2*M' - 1)", "the row of the tables"},
    {"S[m, n] = softmax_scale*sum(c, 0, head_dim - 1, Q[h, m, c]*(K[h, n, c] + pos_key[h, index[q, k], c]) + K[h, n, "
     "c]*pos_query[h, index[q, k], c])",
     "the logit: content to content, content to position, position to content; released code has the same row in both"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_deberta = {
    .info =
        {
            .name = "deberta",
            .family = "relative",
            .about = {"DeBERTa", "content-to-position and position-to-content terms, by buckets of distances"},
            .paper = "He et al. 2020, arXiv 2006.03654; v3: arXiv 2111.09543",
            .formula = formula,
            .example = "{\"scheme\":\"deberta\",\"len\":6,\"position_buckets\":4,\"max_relative_positions\":8}",
            .picture = "len=64&position_buckets=16&max_relative_positions=64",
            .worked = "position_buckets=4&max_relative_positions=8&query=6&key=1",
            .traps = "The softmax scale counts the terms: 1/√(3·head_dim) with both. Position to content has "
                     "the same row as content to position in every released code, where equation 4 of the "
                     "paper has that of the opposite distance. Microsoft's code clamps distances first "
                     "(`clamp_first`), transformers does not.",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
        },
    .config_bytes = sizeof(struct deberta),
    .is_pairwise = true,
    .cost = deberta_cost,
    .plan = deberta_plan,
    .drop = deberta_drop,
    .fill = pe_relative_fill,
    .line = pe_relative_line,
    .derive = derive,
    .table_row = row,
    .attend = &attend,
};
