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

const char *const pe_deberta_term_names[] = {[PE_C2P] = "c2p", [PE_P2C] = "p2c", NULL};

enum { SPAN_MAX = 1 << 16 };

static const struct pe_param params[] = {
    PE_P_INT(pe_deberta, position_buckets, -1, -1, SPAN_MAX, "buckets of each side",
             "number of rows for each side, where far distances share rows; -1: each distance has its own row (v1)",
             .usual = {-1, 256}),
    {.name = "max_relative_positions",
     .alias = "max_relative",
     .type = PE_T_INT,
     .offset = PE_OFFSET(pe_deberta, max_relative_positions, int64_t),
     .fallback = 512,
     .min = -1,
     .max = SPAN_MAX,
     .about = {"largest distance",
               "M: the distance where buckets end; without buckets, half of the table; below 1 it means 512, as in "
               "released configs"},
     .usual = {1, 1024}},
    PE_P_VALUE(pe_deberta, pos_att_type, "terms", "terms: a list of \"c2p\" and \"p2c\", or \"c2p|p2c\"; default both"),
    PE_P_BOOL(pe_deberta, share_att_key, true, "shared projections",
              "true: w_q and w_k project rel_embeddings; false: w_pos_q and w_pos_k do"),
    PE_P_VALUE(pe_deberta, norm_rel_ebd, "normalise the table",
               "true or \"layer_norm\": normalise rel_embeddings first, with norm_weight and norm_bias if sent"),
    PE_P_BOOL(pe_deberta, clamp_first, false, "clamp before buckets",
              "true: clamp distances to M - 1 before they get a bucket (Microsoft's code)"),
    PE_RELATIVE_PARAMS,
    PE_P_END,
};

enum output { INDEX };

static const struct pe_output_row outputs[] = {
    [INDEX] = PE_OUTPUT("index", "q_len,k_len", 1, PE_I32, false, NULL, "index", "row of the tables, 0 to 2·span - 1"),
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

static struct pe_deberta_ladder ladder_of(const struct pe_deberta *c)
{
    struct pe_deberta_ladder s = {.mid = c->position_buckets / 2};
    if (c->position_buckets > 0) {
        s.log_mid = pe_dd_log(dd((double)s.mid));
        s.log_m = dd_sub(pe_dd_log(dd((double)(c->max_relative_positions - 1))), s.log_mid);
    }
    return s;
}

/* mid + ⌈ln(n/mid)/ln((M-1)/mid)·(mid-1)⌉, n > mid, or the span if that is less. The search starts from the quotient
 * in double, which is accurate enough to begin one step before the right one. */
static int32_t logarithmic(const struct pe_deberta_ladder *s, int64_t span, int64_t n)
{
    struct pe_dd log_n = dd_sub(pe_dd_log(dd((double)n)), s->log_mid);
    int64_t step = (int64_t)fmin(floor(log_n.hi / s->log_m.hi * (double)(s->mid - 1)), (double)span) - 1;
    step = step > 0 ? step : 0;
    while (s->mid + step < span && has_passed(log_n, s->log_m, s->mid, step))
        step++;
    return (int32_t)(s->mid + step);
}

static int32_t bucket_of(const struct pe_deberta_ladder *s, int64_t span, int64_t n)
{
    if (s->mid > 0 && n > s->mid)
        return logarithmic(s, span, n);
    return (int32_t)(n < span ? n : span);
}

/* Computes the bucket of each distance up to M, or until the last bucket is reached. */
static void set_buckets(const struct pe_deberta *c, struct pe_deberta_tables *t, int64_t room)
{
    t->ladder = ladder_of(c);
    while (t->n_buckets < room && (t->n_buckets == 0 || t->bucket[t->n_buckets - 1] < t->span)) {
        t->bucket[t->n_buckets] = bucket_of(&t->ladder, t->span, t->n_buckets);
        t->n_buckets++;
    }
}

int32_t pe_deberta_row(const struct pe_plan *plan, int64_t rel)
{
    const struct pe_deberta *c = plan->config;
    const struct pe_deberta_tables *t = plan->tables;
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

/* ---- What the request states ---- */

static bool set_term(struct pe_deberta_tables *t, const char *name, size_t n)
{
    for (size_t i = 0; pe_deberta_term_names[i]; i++)
        if (strlen(pe_deberta_term_names[i]) == n && memcmp(pe_deberta_term_names[i], name, n) == 0)
            return t->has[i] = true;
    return false;
}

/* "c2p|p2c" */
static bool read_words(struct pe_deberta_tables *t, const char *words)
{
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, "|");
        if (!set_term(t, p, n))
            return false;
        p += n + (p[n] == '|');
    }
    return true;
}

static bool read_terms(struct pe_deberta_tables *t, const struct pe_value *v)
{
    bool fine = v->kind == PE_STRING ? read_words(t, v->string)
                                     : v->kind == PE_LIST || (v->kind == PE_ARRAY && v->array.shape[0] == 0);
    for (size_t i = 0; v->kind == PE_LIST && i < v->list.n; i++)
        fine = fine && v->list.items[i].kind == PE_STRING && read_words(t, v->list.items[i].string);
    return fine;
}

static enum pe_status check_terms(struct pe_deberta *c, struct pe_deberta_tables *t, struct pe_failure *err)
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

static enum pe_status check_norm(struct pe_deberta *c, struct pe_failure *err)
{
    static const struct pe_value no = {.kind = PE_BOOLEAN}, yes = {.kind = PE_BOOLEAN, .boolean = true};
    const struct pe_value *v = c->norm_rel_ebd ? c->norm_rel_ebd : &no;
    bool word = v->kind == PE_STRING, norm = word && strcmp(v->string, "layer_norm") == 0;
    if (v->kind != PE_BOOLEAN && !norm && !(word && strcmp(v->string, "none") == 0))
        return pe_fail(err, "/norm_rel_ebd", "norm_rel_ebd is none of true, false, \"layer_norm\", \"none\"");
    c->norm_rel_ebd = norm || (!word && v->boolean) ? &yes : &no;
    return PE_OK;
}

static enum pe_status check_buckets(const struct pe_deberta *c, struct pe_failure *err)
{
    int64_t mid = c->position_buckets / 2;
    if (c->position_buckets > 0 && (mid < 1 || c->max_relative_positions - 1 <= mid))
        return pe_fail(
            err, "/position_buckets",
            "position_buckets is %lld and max_relative_positions %lld; allowed: at least 2 buckets, and half "
            "of them below max_relative_positions - 1; -1 for none",
            (long long)c->position_buckets, (long long)c->max_relative_positions);
    return PE_OK;
}

/* ---- The plan ---- */

/* A logarithm for each distance that shares its bucket (with odd buckets also for each lookup); in attention the
 * tables and the index. */
static void deberta_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct pe_deberta *c = plan->config;
    double m = c->max_relative_positions < 1 ? 512 : (double)c->max_relative_positions;
    double buckets = (double)c->position_buckets;
    pe_cost_each(cost, m + 2, sizeof(int32_t), buckets > 0 ? PE_NS_DD : 10);
    if (!plan->attention)
        return;
    pe_deberta_tables_cost(plan, 2 * (buckets > 0 ? buckets : m), cost);
    pe_relative_index_cost(plan, buckets > 0 && c->position_buckets % 2 ? PE_NS_DD : 10, cost);
}

static enum pe_status deberta_plan(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_deberta *c = plan->config;
    if (c->position_buckets == 0)
        c->position_buckets = -1;
    if (c->max_relative_positions < 1)
        c->max_relative_positions = 512;
    enum pe_status status = check_buckets(c, err);
    if (status)
        return status;
    int64_t span = c->position_buckets > 0 ? c->position_buckets : c->max_relative_positions;
    int64_t room = c->max_relative_positions + 2;
    struct pe_deberta_tables *t = plan->tables = calloc(1, sizeof *t + (size_t)room * sizeof *t->bucket);
    if (!t)
        return pe_no_memory(err);
    t->span = span;
    set_buckets(c, t, room);
    if (t->bucket[t->n_buckets - 1] < span)
        plan->pace = PE_SLOW; /* an odd position_buckets: a logarithm for each distance beyond the table */
    status = check_terms(c, t, err);
    if (!status)
        status = check_norm(c, err);
    if (!status)
        status = pe_relative_check(plan, err);
    return status || !plan->attention ? status : pe_deberta_tables_make(plan, t, err);
}

static void deberta_drop(struct pe_plan *plan)
{
    struct pe_deberta_tables *t = plan->tables;
    if (t) {
        free(t->table[PE_C2P]);
        free(t->table[PE_P2C]);
        free(t->index.run);
    }
    free(t);
}

static void deberta_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                         const struct pe_block *b, void *dst)
{
    (void)output;
    (void)id;
    pe_relative_fill_index(plan, pe_deberta_row, b, dst);
}

static bool line(const struct pe_plan *plan, const struct pe_output *output, size_t id, uint64_t matrix, uint64_t first,
                 size_t n, void *dst)
{
    (void)output, (void)id, (void)matrix;
    return pe_relative_fill_line(plan, pe_deberta_row, first, n, dst);
}

/* ---- In attention: what the terms c2p and p2c add to the scores, from the tables of each head ---- */

/* Numbers of one head's table. */
static size_t table_numbers(const struct pe_plan *plan)
{
    const struct pe_deberta *c = plan->config;
    return 2 * (size_t)((const struct pe_deberta_tables *)plan->tables)->span * (size_t)c->relative.head_dim;
}

static size_t n_rows_of(const struct pe_plan *plan)
{
    return 2 * (size_t)((const struct pe_deberta_tables *)plan->tables)->span;
}

/* The tables of a head: the table of c2p, the table of p2c, and the products of the keys with the latter. */
static size_t head_numbers(const struct pe_plan *plan)
{
    const struct pe_deberta *c = plan->config;
    return pe_relative_table_size(n_rows_of(plan), (size_t)c->relative.head_dim);
}

static double softmax_scale(const struct pe_plan *plan, size_t head_dim)
{
    const struct pe_deberta_tables *t = plan->tables;
    return 1 / sqrt((double)head_dim * (1 + t->has[PE_C2P] + t->has[PE_P2C]));
}

static double norm_of(const struct pe_plan *plan, enum pe_deberta_term term)
{
    const struct pe_deberta *c = plan->config;
    const struct pe_deberta_tables *t = plan->tables;
    size_t n = (size_t)c->relative.num_heads * n_rows_of(plan);
    return t->has[term] ? pe_relative_norm(t->table[term], n, (size_t)c->relative.head_dim) : 0;
}

static double largest(const struct pe_plan *plan, double q_norm, double k_norm)
{
    return q_norm * norm_of(plan, PE_C2P) + k_norm * norm_of(plan, PE_P2C);
}

static struct pe_attend_room room(const struct pe_plan *plan, size_t n_rows)
{
    size_t meeting = pe_relative_meeting_size(plan, n_rows_of(plan));
    return (struct pe_attend_room){.tables = 2 * head_numbers(plan) + meeting,
                                   .scratch = pe_relative_scratch(plan, n_rows, n_rows_of(plan))};
}

static double work(const struct pe_plan *plan)
{
    const struct pe_deberta *c = plan->config;
    const struct pe_deberta_tables *t = plan->tables;
    double d = (double)c->relative.head_dim;
    return t->has[PE_C2P] * d * (double)n_rows_of(plan) / (double)plan->seq.k->n + t->has[PE_P2C] * 2 * d;
}

static const void *open_head(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables)
{
    const struct pe_deberta_tables *t = plan->tables;
    const struct pe_deberta *c = plan->config;
    for (enum pe_deberta_term term = PE_C2P; term <= PE_P2C; term++)
        if (t->has[term])
            pe_relative_table_set(a, t->table[term] + head * table_numbers(plan), n_rows_of(plan),
                                  (size_t)c->relative.head_dim, pe_numbers_at(a, tables, term * head_numbers(plan)));
    return tables;
}

static enum pe_status open(const struct pe_plan *plan, const struct pe_arithmetic *a, struct pe_failure *err)
{
    (void)a;
    return pe_relative_index_open(plan, pe_deberta_row, &((struct pe_deberta_tables *)plan->tables)->index, err);
}

static void open_keys(const struct pe_rows *keys, void *tables)
{
    const struct pe_plan *plan = keys->plan;
    size_t n = head_numbers(plan);
    if (((const struct pe_deberta_tables *)plan->tables)->has[PE_P2C] &&
        pe_relative_meeting_size(plan, n_rows_of(plan)))
        pe_relative_meet(keys, pe_numbers_at(keys->a, keys->tables, PE_P2C * n), n_rows_of(plan),
                         pe_numbers_at(keys->a, tables, 2 * n));
}

static void add_term(const struct pe_rows *rows, enum pe_deberta_term term, double factor)
{
    const struct pe_deberta_tables *t = rows->plan->tables;
    size_t n = head_numbers(rows->plan), n_table = n_rows_of(rows->plan);
    const void *table = pe_numbers_at(rows->a, rows->tables, term * n);
    if (term == PE_C2P)
        pe_relative_add_by_query(rows, &t->index, pe_relative_panels(rows->a, table, n_table, rows->head_dim), n_table,
                                 factor);
    else
        pe_relative_add_by_key(rows, &t->index, table, pe_numbers_at(rows->a, rows->tables, 2 * n), n_table, factor);
}

static bool has_term(const struct pe_plan *plan, size_t term)
{
    return ((const struct pe_deberta_tables *)plan->tables)->has[term];
}

static void write_term(const struct pe_rows *rows, size_t term)
{
    for (size_t i = 0; i < rows->n_rows; i++)
        pe_numbers_set(rows->a, pe_numbers_at(rows->a, rows->logits, i * rows->stride), 0, rows->n_keys, 0);
    add_term(rows, (enum pe_deberta_term)term, 1);
}

static const char *const parts[] = {"c2c", [1 + PE_C2P] = "c2p", [1 + PE_P2C] = "p2c", NULL};

static bool has_part(const struct pe_plan *plan, size_t part) { return part == 0 || has_term(plan, part - 1); }

static void add_part(const struct pe_rows *rows, size_t part)
{
    add_term(rows, (enum pe_deberta_term)(part - 1), rows->scale);
}

const struct pe_attend pe_deberta_attend = {
    .softmax_scale = softmax_scale,
    .uses_projections = true,
    .largest = largest,
    .room = room,
    .work = work,
    .open = open,
    .open_head = open_head,
    .open_keys = open_keys,
    .add_scores = pe_relative_add_parts,
    .parts = parts,
    .has_part = has_part,
    .add_part = add_part,
    .terms = pe_deberta_term_names,
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
            .params = params,
            .outputs = outputs,
            .inputs = pe_deberta_inputs,
        },
    .config_bytes = sizeof(struct pe_deberta),
    .is_pairwise = true,
    .cost = deberta_cost,
    .plan = deberta_plan,
    .drop = deberta_drop,
    .fill = deberta_fill,
    .line = line,
    .attend = &pe_deberta_attend,
};
