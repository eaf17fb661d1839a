/* T5's relative bias (Raffel et al. 2019, arXiv 1910.10683): each short distance has its own learned number; long
 * distances of similar size share one.
 *
 *     both sides:  side = ⌊num_buckets/2⌋; off = side where the key comes after the query, else 0; n = |k - q|
 *     causal:      side = num_buckets;     off = 0;                                     n = max(q - k, 0)
 *     e = ⌊side/2⌋
 *     bucket = off + n                                                                   where n < e
 *     bucket = off + min(side - 1, e + ⌊ln(n/e)/ln(max_distance/e) · (side - e)⌋)         else
 *     bias[h, i, j] = table[bucket, h] · table_scale
 *
 * Where the logarithm is an integer, rounding differs between libraries, so the first distance of every bucket is
 * computed once, exactly (arith float32: as the frameworks' floats give it). */
#include "core/schemes/bias/bias.h"

#include <stdlib.h>

enum { TABLE };

struct t5 {
    struct pe_mask_fields bias;
    int64_t num_heads, num_buckets, max_distance;
    bool bidirectional;
    double table_scale;
    int arith;
    int64_t seed;
    double std;
};

/* First distances are stored, and resolving a tie factors three numbers. The largest published model has 320
 * buckets. */
enum { BUCKETS_MAX = 4096 };
#define DISTANCE_MAX 0x1p31

static const struct pe_param params[] = {
    PE_P_INT(t5, num_heads, 8, 1, PE_HEADS_MAX, "heads", "attention heads; if a table is sent, its own",
             .group = PE_G_SIZE, .usual = {1, 32}),
    PE_P_INT(t5, num_buckets, 32, 2, BUCKETS_MAX, "buckets", "rows of the table; if a table is sent, its own",
             .usual = {2, 128}),
    PE_P_INT(t5, max_distance, 128, 2, DISTANCE_MAX, "largest distance", "distances from here on share the last bucket",
             .usual = {8, 1024}),
    PE_P_BOOL(t5, bidirectional, true, "bidirectional",
              "true: half of the buckets are for keys after the query (encoders); false: those keys have bucket 0 "
              "(decoders)"),
    PE_P_REAL(t5, table_scale, 1, -1e12, 1e12, "table scale",
              "factor on the numbers of the table; x-transformers: sqrt(head_dim)", .level = PE_MORE,
              .usual = {0.1, 10}),
    PE_P_WORD(t5, arith, pe_arith_words, "arithmetic",
              "where buckets begin. exact: by the formula; float32: as transformers' float32 logarithm rounds",
              .group = PE_G_NUMBERS),
    PE_P_SEED(t5),
    PE_MASK_PARAMS,
    PE_P_END,
};

enum output { BIAS, BUCKETS };

static const struct pe_output_row outputs[] = {
    [BIAS] = PE_OUTPUT("bias", "num_heads,q_len,k_len", 1, PE_DTYPE_NONE, false, PE_WHEN_WEIGHTS, "bias",
                       "added to the logits"),
    [BUCKETS] = PE_OUTPUT("buckets", "q_len,k_len", 1, PE_I32, true, NULL, "buckets",
                          "row of the table; a fractional distance is rounded down"),
    {.name = NULL},
};

static const struct pe_input_row inputs[] = {
    [TABLE] = PE_INPUT("table", "num_buckets,num_heads", PE_ENCODE, false, "table", "relative_attention_bias.weight"),
    {.name = NULL},
};

struct tables {
    struct pe_bias bias;
    int32_t side;
    bool bidirectional;
    double first[]; /* [side]: the smallest distance of each bucket; never decreases */
};

/* ---- Where buckets begin ---- */

/* The formula's constants, with their logarithms. */
struct ladder {
    int64_t e, m, l; /* m = max_distance, l = side - e */
    struct pe_dd log_e, log_m;
};

/* Returns the exponent of p in *n, and divides *n by that power. */
static int64_t take_prime(int64_t *n, int64_t p)
{
    int64_t power = 0;
    for (; *n % p == 0; *n /= p)
        power++;
    return power;
}

/* Is n^l = m^k · e^(l-k), 0 < k < l? Compares prime by prime. A prime above the root of DISTANCE_MAX divides m at
 * most once and e (at most BUCKETS_MAX/2) not at all, so such a prime makes the powers differ. */
static bool powers_are_equal(const struct ladder *s, int64_t n, int64_t k)
{
    int64_t m = s->m, e = s->e;
    for (int64_t p = 2; (double)(p * p) <= DISTANCE_MAX && (n > 1 || m > 1 || e > 1); p++)
        if (s->l * take_prime(&n, p) != k * take_prime(&m, p) + (s->l - k) * take_prime(&e, p))
            return false;
    return n == 1 && m == 1 && e == 1;
}

/* Has distance n ≥ e climbed k of the l steps: (n/e)^l ≥ (m/e)^k? Logarithms decide if they differ clearly. If they
 * agree to 2^-88, the powers may be equal, and integers decide. */
static bool has_climbed(const struct ladder *s, int64_t n, int64_t k)
{
    struct pe_dd right = dd_add(dd_mul_d(s->log_m, (double)k), dd_mul_d(s->log_e, (double)(s->l - k)));
    struct pe_dd left = dd_mul_d(pe_dd_fast_log(dd((double)n)), (double)s->l);
    double difference = dd_sub(left, right).hi;
    if (fabs(difference) > right.hi * 0x1p-50)
        return difference > 0;
    difference = dd_sub(dd_mul_d(pe_dd_log(dd((double)n)), (double)s->l), right).hi;
    return difference > 0 || (fabs(difference) <= right.hi * 0x1p-88 && powers_are_equal(s, n, k));
}

/* The same in floats, in the order of transformers: log(n/e) / log(m/e) · (side - e), each step rounded. */
static bool has_climbed_float32(const struct ladder *s, int64_t n, int64_t k)
{
    float ratio = (float)n / (float)s->e;
    float log_ratio = (float)dd_round_odd(pe_dd_fast_log(dd((double)ratio)));
    float log_all = (float)dd_round_odd(dd_sub(s->log_m, s->log_e));
    return log_ratio / log_all * (float)s->l >= (float)k;
}

/* The smallest distance from e on that has climbed k steps; max_distance always has. */
static int64_t first_of_step(const struct ladder *s, int64_t k, bool float32)
{
    int64_t low = s->e, high = s->m;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((float32 ? has_climbed_float32 : has_climbed)(s, middle, k))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- Buckets ---- */

/* A bucket, and the number of consecutive distances upwards that share it. */
struct stretch {
    int32_t bucket;
    double n;
};

/* The stretch that begins at an integer rel = k - q. */
static struct stretch stretch_at(const struct tables *t, double rel)
{
    if (rel > 0 && !t->bidirectional)
        return (struct stretch){0, (double)INFINITY};
    int32_t low = 0, high = t->side; /* first[low] ≤ |rel| < first[high] */
    double n = fabs(rel);
    while (high - low > 1) {
        int32_t middle = (low + high) / 2;
        if (t->first[middle] <= n)
            low = middle;
        else
            high = middle;
    }
    if (rel <= 0)
        return (struct stretch){low, n - t->first[low] + 1};
    return (struct stretch){low + t->side, high < t->side ? t->first[high] - n : (double)INFINITY};
}

/* |x|, rounded down. */
static double whole_of(struct pe_dd x)
{
    struct pe_dd size = x.hi < 0 ? dd_neg(x) : x;
    double n = floor(size.hi);
    return n - (n == size.hi && size.lo < 0);
}

/* The stretch of k - q rounded towards 0 to an integer, but never from above to 0: the key stays after the query. */
static struct stretch stretch_of_pair(const struct tables *t, double q_pos, double k_pos)
{
    struct pe_dd rel = dd_two_sum(k_pos, -q_pos);
    double n = whole_of(rel);
    if (rel.hi > 0 && n == 0)
        return (struct stretch){t->bidirectional ? t->side : 0, 1};
    return stretch_at(t, rel.hi > 0 ? n : -n);
}

/* Distances that share a bucket are stored together. */
static void buckets_of(const struct pe_plan *plan, const void *unused, double rel, size_t n, void *out)
{
    int32_t *bucket = out;
    (void)unused;
    for (size_t i = 0; i < n;) {
        struct stretch s = stretch_at(plan->tables, rel + (double)i);
        size_t end = s.n < (double)(n - i) ? i + (size_t)s.n : n;
        while (i < end)
            bucket[i++] = s.bucket;
    }
}

static void fill_buckets(const struct pe_plan *plan, const struct pe_block *b, int32_t *out)
{
    const struct pe_positions *q = plan->seq.q, *k = plan->seq.k;
    if (pe_toeplitz_fits(plan)) {
        pe_toeplitz_fill(plan, buckets_of, NULL, sizeof *out, b, out);
        return;
    }
    for (uint64_t i = 0; i < b->n_rows; i++)
        for (uint64_t j = 0; j < b->n_cols; j++)
            *out++ =
                stretch_of_pair(plan->tables, pe_position_at(q, b->row0 + i), pe_position_at(k, b->col0 + j)).bucket;
}

/* ---- The bias ---- */

static struct pe_dd bias_of(const struct pe_plan *plan, size_t head, int32_t bucket)
{
    const struct t5 *c = plan->config;
    double v;
    pe_weights_read(&plan->weights[TABLE], (uint64_t)bucket * (uint64_t)c->num_heads + head, 1, &v);
    return c->table_scale == 1 ? dd(v) : dd_two_prod(v, c->table_scale);
}

static void distance(const struct pe_plan *plan, size_t head, double rel, size_t n, enum pe_dtype dtype, void *out)
{
    for (size_t i = 0; i < n;) {
        struct stretch s = stretch_at(plan->tables, rel + (double)i);
        struct pe_dd v = bias_of(plan, head, s.bucket);
        size_t end = s.n < (double)(n - i) ? i + (size_t)s.n : n;
        pe_bias_store(dtype, out, i, v);
        pe_bias_repeat(dtype, out, i, end - i);
        i = end;
    }
}

static struct pe_dd pair(const struct pe_plan *plan, const struct pe_pair *g)
{
    return bias_of(plan, g->head, stretch_of_pair(plan->tables, g->q_pos, g->k_pos).bucket);
}

/* ---- One number ---- */

/* Is that logarithm of n the whole number k? Near one, the powers decide. */
static bool is_whole(const struct ladder *s, double n, struct pe_dd l, double k)
{
    if (k < 1 || fabs(dd_sub(l, dd(k)).hi) > k * 0x1p-88)
        return false;
    return k < (double)s->l ? powers_are_equal(s, (int64_t)n, (int64_t)k) : n == (double)s->m;
}

/* The steps of the ladder that a far distance has climbed, as a logarithm. */
static struct pe_dd state_climbing(const struct pe_plan *plan, double n, struct pe_derivation *d)
{
    const struct t5 *c = plan->config;
    const struct tables *t = plan->tables;
    struct ladder s = {.e = t->side / 2, .m = c->max_distance, .l = t->side - t->side / 2};
    struct pe_shown e = pe_shown((double)s.e), width = pe_shown((double)s.l);
    s.log_e = s.e > 1 ? pe_dd_log(dd((double)s.e)) : dd(0);
    s.log_m = pe_dd_log(dd((double)s.m));
    struct pe_dd ratio = pe_derived_round(d, PE_F32, dd_div(dd(n), dd((double)s.e))),
                 whole = pe_derived_round(d, PE_F32, dd_sub(s.log_m, s.log_e));
    struct pe_dd x = pe_derived(d, "x", pe_derived_round(d, PE_F32, pe_dd_log(ratio)), "ln(n/e) = ln(%s/%s)",
                                pe_shown(n).text, e.text);
    struct pe_dd share = pe_derived_round(d, PE_F32, dd_div(x, whole)),
                 l = pe_derived_round(d, PE_F32, dd_mul_d(share, (double)s.l));
    l = is_whole(&s, n, l, nearbyint(l.hi)) ? dd(nearbyint(l.hi)) : l;
    return pe_derived(d, "l", l, "x/ln(max_distance/e)·(side − e) = x/ln(%lld/%s)·%s", (long long)s.m, e.text,
                      width.text);
}

/* The bucket, in the formula's own steps. */
static int32_t state_bucket(const struct pe_plan *plan, const struct pe_pair *g, struct pe_derivation *d)
{
    const struct tables *t = plan->tables;
    double rel = g->k_pos - g->q_pos, e = t->side / 2, n = whole_of(dd_two_sum(g->k_pos, -g->q_pos)),
           off = t->bidirectional && rel > 0 ? t->side : 0;
    d->is_looked_up = true;
    if (rel > 0 && !t->bidirectional) {
        pe_derived(d, "bucket", dd(0), "0");
        pe_derived_says(d, "the key is after the query: bucket 0");
        return 0;
    }
    pe_derived(d, "n", dd(n), "|%s − %s|", pe_shown(g->k_pos).text, pe_shown(g->q_pos).text);
    if (n < e) {
        pe_derived_case(d, "n < e = %s", pe_shown(e).text);
        pe_derived_says(d, "short distances have a bucket each");
        return (int32_t)pe_derived(d, "bucket", dd(off + n), "%s + n", pe_shown(off).text).hi;
    }
    d->is_looked_up = false; /* the logarithm is computed, and in float32 it may miss an integer */
    pe_derived_case(d, "n ≥ e = %s", pe_shown(e).text);
    pe_derived_says(d, "long distances share buckets");
    double step = fmin(whole_of(state_climbing(plan, n, d)), t->side - e - 1);
    return (int32_t)pe_derived(d, "bucket", dd(off + e + step), "%s + min(side − 1, e + ⌊l⌋) = %s + min(%d, %s + ⌊l⌋)",
                               pe_shown(off).text, pe_shown(off).text, t->side - 1, pe_shown(e).text)
        .hi;
}

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct t5 *c = plan->config;
    struct pe_pair g;
    (void)err;
    if (id == BUCKETS) {
        g = (struct pe_pair){0, 0, pe_position_at(plan->seq.q, at->row), pe_position_at(plan->seq.k, at->col), at->col};
        state_bucket(plan, &g, d);
        return PE_OK;
    }
    if (pe_bias_derive_mask(plan, at, &g, d))
        return PE_OK;
    int32_t bucket = state_bucket(plan, &g, d);
    double v;
    pe_weights_read(&plan->weights[TABLE], (uint64_t)bucket * (uint64_t)c->num_heads + g.head, 1, &v);
    struct pe_dd x = pe_derived(d, c->table_scale == 1 ? "bias" : "v", pe_derived_round(d, PE_F32, dd(v)),
                                "table[%d, %zu]", bucket, g.head);
    if (c->table_scale == 1)
        return PE_OK;
    d->is_looked_up = false;
    pe_derived(d, "bias", pe_derived_round(d, PE_F32, dd_mul_d(x, c->table_scale)), "table_scale·v = %s·v",
               pe_shown(c->table_scale).text);
    return PE_OK;
}

/* ---- The plan ---- */

static enum pe_status check(const struct t5 *c, struct pe_failure *err)
{
    int64_t side = c->bidirectional ? c->num_buckets / 2 : c->num_buckets;
    if (side < 2)
        return pe_fail(err, "/num_buckets", "num_buckets is %lld; allowed: at least %d, two for each side",
                       (long long)c->num_buckets, 4);
    if (c->max_distance <= side / 2)
        return pe_fail(err, "/max_distance",
                       "max_distance is %lld; allowed: above %lld, the distances that have a bucket each",
                       (long long)c->max_distance, (long long)side / 2);
    return PE_OK;
}

/* A logarithm for each step of the search for each bucket, and for a tie, trial division up to a square root. */
static void t5_cost(const struct pe_plan *plan, struct pe_cost *cost)
{
    const struct t5 *c = plan->config;
    double buckets = fmin(pe_size_most(plan, "num_buckets"), BUCKETS_MAX);
    double side = c->bidirectional ? buckets / 2 : buckets, distance = (double)c->max_distance;
    pe_cost_each(cost, side, sizeof(double), (log2(distance) + 1) * PE_NS_NEAR);
    pe_cost_add(cost, 0, 100 * sqrt(distance));
    pe_bias_cost(plan, pe_size_most(plan, "num_heads"), cost);
}

static enum pe_status t5_plan(struct pe_plan *plan, struct pe_failure *err)
{
    const struct t5 *c = plan->config;
    static const char *const sizes[] = {"num_buckets", "num_heads", NULL};
    enum pe_status status = pe_fix_sizes(plan, sizes, err);
    if (!status && pe_weights_wanted(plan))
        status = pe_weights_need(plan, TABLE, err);
    if (!status)
        status = check(c, err);
    if (status)
        return status;
    int64_t side = c->bidirectional ? c->num_buckets / 2 : c->num_buckets;
    struct tables *t = plan->tables = calloc(1, sizeof *t + (size_t)side * sizeof *t->first);
    if (!t)
        return pe_no_memory(err);
    if (plan->seq.q->list || plan->seq.k->list)
        plan->pace = PE_SLOW; /* a table lookup, or a number from the seed, for each element */
    t->side = (int32_t)side;
    t->bidirectional = c->bidirectional;
    t->bias.rule = (struct pe_bias_rule){.distance = distance, .pair = pair};
    struct ladder s = {.e = t->side / 2, .m = c->max_distance, .l = t->side - t->side / 2};
    s.log_e = s.e > 1 ? pe_dd_log(dd((double)s.e)) : dd(0);
    s.log_m = pe_dd_log(dd((double)s.m));
    for (int64_t b = 0; b < t->side; b++)
        t->first[b] = (double)(b <= s.e ? b : first_of_step(&s, b - s.e, c->arith == PE_ARITH_FLOAT32));
    return pe_bias_init(&t->bias, plan, &c->bias, err);
}

static void t5_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id, const struct pe_block *b,
                    void *dst)
{
    if (id == BUCKETS)
        fill_buckets(plan, b, dst);
    else
        pe_bias_fill(plan, output, id, b, dst);
}

static bool line(const struct pe_plan *plan, const struct pe_output *output, size_t id, uint64_t head, uint64_t first,
                 size_t n, void *dst)
{
    if (id == BUCKETS)
        return pe_toeplitz_line(plan, buckets_of, NULL, first, n, dst);
    return pe_bias_fill_line(plan, output, id, head, first, n, dst);
}

/* T5 was trained with unscaled logits. */
static double softmax_scale(const struct pe_plan *plan, size_t head_dim)
{
    (void)plan;
    (void)head_dim;
    return 1;
}

static const struct pe_attend attend = {.softmax_scale = softmax_scale, .bias_at = pe_bias_at};

static const struct pe_formula_line formula[] = {
    {"B = { floor(num_buckets/2) if bidirectional; num_buckets }", "the buckets of one side"},
    {"o = { B if bidirectional and k > q; 0 }", "later keys have the second half of the buckets"},
    {"d = floor({ abs(k - q) if bidirectional; max(q - k, 0) })",
     "the distance; later keys count as 0 without bidirectional"},
    {"e = floor(B/2)", "so many distances have a bucket each"},
    {"b = o + { d if d < e; min(B - 1, e + floor(ln(d/e)/ln(max_distance/e)*(B - e))) }",
     "farther ones share a bucket, by their logarithm"},
    {"buckets[q, k] = b", "the row of the table"},
    {"bias[h, q, k] = table_scale*table[b, h]", "added to the logits: a learned number for each bucket and head"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_t5 = {
    .info =
        {
            .name = "t5",
            .family = "bias",
            .about = {"T5 buckets",
                      "a learned bias for each bucket of distances; buckets are wider for larger distances"},
            .paper = "Raffel et al. 2019, arXiv 1910.10683",
            .formula = formula,
            .example = "{\"scheme\":\"t5\",\"num_heads\":2,\"len\":4,\"seed\":0}",
            .picture = "len=64&outputs=buckets",
            .worked = "num_heads=2&seed=0&head=1&query=20&key=3",
            .traps = "Encoders have half of the buckets for keys after the query, decoders have all of them "
                     "for keys before it (`bidirectional`); the table has the same shape. Where the logarithm "
                     "is a whole number, rounding decides the bucket, and libraries differ. "
                     "The model's logits are not divided by √head_dim: its `softmax_scale` is 1.",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
        },
    .config_bytes = sizeof(struct t5),
    .is_pairwise = true,
    .cost = t5_cost,
    .plan = t5_plan,
    .drop = pe_bias_drop,
    .fill = t5_fill,
    .line = line,
    .derive = derive,
    .attend = &attend,
};
