/* extrapolation: what a scheme meets beyond the length of training, T, up to the length of evaluation, E. Only what
 * needs no training is measured; a scheme has those of the numbers below that are defined for it.
 *
 * Attention of random queries and keys at two lengths: entropy that grows with the length means that attention is
 * diluted, and mass beyond the length of training goes to distances that were never trained.
 *
 *     s = q·k/sqrt(d) + bias,   q [H, 16, d], k [H, E, d]: the seeded tensors "q" and "k" of standard deviation 1
 *
 * Absolute encodings are added to both, rotary schemes rotate both. Keys are computed in blocks; each query keeps the
 * sums of its softmax so far, and multiplies them when a larger maximum appears (Milakov and Gimelshein 2018, arXiv
 * 1805.02867), so memory does not grow with E. */
#include "core/analysis/analysis.h"
#include "core/numeric/numeric.h"

#include <stdlib.h>
#include <string.h>

/* The lengths T and E, in whole positions. */
struct lengths {
    uint64_t train, eval;
};

/* ---- How far tables reach ---- */

/* Positions without a row, angles and distances that training never showed, and saturated buckets. */

static bool is_scheme(const struct pe_subject *subject, const char *names)
{
    return pe_is_among(names, pe_plan_scheme(subject->plan)->name);
}

/* ---- Positions ---- */

/* The share of positions 0..E-1 without a row of the learned table; NaN: the scheme has no such table. */
static double without_row(const struct pe_subject *subject, struct lengths lengths)
{
    if (!is_scheme(subject, "learned"))
        return (double)NAN;
    double rows = pe_config_number(pe_plan_config(subject->plan), "rows", 0);
    double left = fmax(rows - pe_config_number(pe_plan_config(subject->plan), "row_offset", 0), 0);
    return fmax((double)lengths.eval - left, 0) / (double)lengths.eval;
}

/* ---- Angles ---- */

/* Frequencies of the scheme at length E, as dynamic scalings and LongRoPE have them. */
static enum pe_status read_frequencies(struct pe_analysis *study, const struct pe_subject *subject, uint64_t n,
                                       double *w, struct pe_failure *err)
{
    static const char *const outputs[] = {"inv_freq"};
    struct pe_run run = {.n = n, .outputs = outputs, .n_outputs = 1};
    struct pe_plan *plan;
    memcpy(w, subject->ladder.w, subject->ladder.n * sizeof *w);
    if (subject->family != PE_ROTARY)
        return PE_OK;
    enum pe_status status = pe_subject_plan_run(study, subject, &run, &plan, err);
    if (status)
        return status == PE_INVALID ? PE_OK : status;
    if (pe_plan_output(plan, 0)->row_len == subject->ladder.n)
        pe_fill(plan, 0, 0, subject->ladder.n, w);
    pe_plan_free(plan);
    return PE_OK;
}

/* Training shows the angles from 0 to (T - 1)·w°, as one arc; the angles of longer distances are taken modulo a turn.
 */
static double unseen_of_pair(double w, double w0, struct lengths lengths)
{
    double seen = (double)(lengths.train - 1) * fabs(w0);
    uint64_t unseen = 0;
    if (seen >= 2 * M_PI || lengths.eval == lengths.train)
        return 0;
    for (uint64_t d = lengths.train; d < lengths.eval; d++) {
        if (d % 4096 == 0 && pe_is_cancelled())
            break;
        unseen += fmod((double)d * fabs(w), 2 * M_PI) > seen;
    }
    return (double)unseen / (double)(lengths.eval - lengths.train);
}

/* unseen[c], c < C: the share of distances T..E-1 whose angle is beyond all angles of training. Only with a ladder. */
static enum pe_status find_unseen_angles(struct pe_analysis *study, const struct pe_subject *subject,
                                         struct lengths lengths, double *unseen, struct pe_failure *err)
{
    const struct pe_ladder *ladder = &subject->ladder;
    enum pe_status status = read_frequencies(study, subject, lengths.eval, unseen, err);
    for (size_t c = 0; !status && c < ladder->n && !pe_was_cancelled(); c++)
        unseen[c] = unseen_of_pair(unseen[c], ladder->w0[c], lengths);
    return status;
}

/* ---- Distances ---- */

/* The share of the pairs of E positions that are T or more apart. */
static double share_of_unseen_pairs(const struct pe_subject *subject, struct lengths lengths)
{
    double beyond = (double)(lengths.eval - lengths.train), n = (double)lengths.eval;
    bool is_causal = pe_config_at(pe_plan_config(subject->plan), "causal").boolean;
    return beyond * (beyond + 1) / (is_causal ? n * (n + 1) : n * n);
}

/* ---- Saturation ---- */

/* The buckets or rows that all distances from some distance on share. */
struct last {
    const char *output;
    int32_t left, right; /* right < 0: there is no such bucket */
};

static struct last last_of(const struct pe_plan *plan)
{
    const struct pe_value *config = pe_plan_config(plan);
    const char *name = pe_plan_scheme(plan)->name;
    if (pe_same(name, "t5")) {
        int32_t buckets = (int32_t)pe_config_number(config, "num_buckets", 0);
        bool has_two_sides = pe_config_at(config, "bidirectional").boolean;
        return (struct last){"buckets", (has_two_sides ? buckets / 2 : buckets) - 1, has_two_sides ? buckets - 1 : -1};
    }
    if (pe_same(name, "shaw")) {
        double rows = pe_config_number(config, "p_max", 0) - pe_config_number(config, "p_min", 0),
               both = pe_config_number(config, "max_relative", -1);
        return (struct last){"index", 0, (int32_t)(both < 0 ? rows : 2 * both)};
    }
    double span = pe_config_number(config, "position_buckets", -1);
    span = span > 0 ? span : pe_config_number(config, "max_relative_positions", 512);
    return (struct last){"index", 0, (int32_t)(2 * span - 1)};
}

/* line[i] is the bucket of the distance i - (n - 1); there are n - |distance| such pairs. */
static double share_of(const struct last *last, const int32_t *line, uint64_t n, bool is_causal)
{
    double saturated = 0, all = 0;
    for (uint64_t i = 0; i < (is_causal ? n : 2 * n - 1); i++) {
        double pairs = i < n ? (double)(i + 1) : (double)(2 * n - 1 - i);
        all += pairs;
        saturated += line[i] == last->left || line[i] == last->right ? pairs : 0;
    }
    return saturated / all;
}

/* The share of the pairs of n positions that share the last bucket or row of a side; NaN: the scheme has none. */
static bool has_saturation(const struct pe_subject *subject) { return is_scheme(subject, "t5|shaw|deberta"); }

static enum pe_status find_saturated(struct pe_analysis *study, const struct pe_subject *subject, uint64_t n,
                                     double *share, struct pe_failure *err)
{
    struct last last = last_of(subject->plan);
    static const struct pe_field no_mask = {"key_mask", {.kind = PE_NULL}}; /* the entry's own has another length */
    struct pe_run run = {.n = n, .overrides = &no_mask, .n_overrides = 1, .outputs = &last.output, .n_outputs = 1};
    struct pe_plan *plan;
    enum pe_status status = pe_subject_plan_run(study, subject, &run, &plan, err);
    if (status)
        return status;
    int32_t *line = malloc((2 * n - 1) * sizeof *line);
    if (line && pe_fill_line(plan, 0, 0, 0, 2 * n - 1, line))
        *share = share_of(&last, line, n, pe_config_at(pe_plan_config(plan), "causal").boolean);
    status = line ? PE_OK : pe_no_memory(err);
    free(line);
    pe_plan_free(plan);
    return status;
}

/* ---- Attention of random queries and keys ---- */

/* The attention of queries at T-1 [0] and at E-1 [1], on average. */
struct drift {
    bool is_there; /* the scheme has values at E positions */
    double entropy[2], mean_distance[2];
    double mass_beyond; /* of the queries at E-1, on keys T or more away */
};
/* Queries of a head; numbers of one block of keys; the positions T-1 and E-1. */
enum { QUERIES = 16, BLOCK = 1 << 14, KEYS_MAX = 256, ENDS = 2 };

/* ---- One query ---- */

/* Sums over the keys so far of e = exp(s - max). */
struct softmax {
    double max, sum;
    double weighted; /* of e·(s - max) */
    double distance; /* of e·distance */
    double beyond;   /* of e where the distance is T or more */
};

/* A larger maximum makes all earlier terms smaller. */
static void raise(struct softmax *q, double max)
{
    if (!(max > q->max))
        return;
    double factor = q->sum > 0 ? exp(q->max - max) : 0;
    q->weighted = q->sum > 0 ? factor * (q->weighted + q->sum * (q->max - max)) : 0;
    q->sum *= factor;
    q->distance *= factor;
    q->beyond *= factor;
    q->max = max;
}

/* n scores, whose first key is `distance` before the query; they are overwritten. */
static void add_keys(struct softmax *q, double *scores, size_t n, uint64_t distance, uint64_t train)
{
    const struct pe_kernels *kernels = pe_kernels();
    double weighted, moment = 0, beyond = 0;
    raise(q, kernels->max_f64(scores, n));
    if (q->max == -(double)INFINITY)
        return;
    q->sum += kernels->exp_f64(scores, n, q->max, &weighted);
    q->weighted += weighted;
    for (size_t j = 0; j < n; j++) {
        moment += scores[j] * (double)(distance - j);
        beyond += distance - j >= train ? scores[j] : 0;
    }
    q->distance += moment;
    q->beyond += beyond;
}

/* ---- All queries ---- */

struct stage {
    const struct pe_subject *subject;
    struct pe_plan *plan; /* of E positions from 0 on */
    struct lengths lengths;
    struct pe_row_rotation turn;
    size_t heads, dim, block; /* keys of a block */
    uint64_t seed_q, seed_k;
    double *q;               /* [ENDS, heads, QUERIES, dim] */
    double *k, *rows;        /* [block, dim]: keys, and what is added to them */
    double *table;           /* [block, 2 · pairs] */
    double *scores;          /* [QUERIES, block] */
    double *bias;            /* [block] */
    double *terms;           /* [heads · QUERIES] */
    struct softmax *softmax; /* [ENDS, heads, QUERIES] */
    void *memory;
};

static uint64_t end_of(const struct stage *s, size_t end) { return (end ? s->lengths.eval : s->lengths.train) - 1; }

static size_t heads_of(const struct pe_subject *subject)
{
    enum { ROTARY_HEADS = 8 };
    return subject->family == PE_BIAS ? subject->dim : subject->family == PE_ROTARY ? ROTARY_HEADS : 1;
}

static size_t dim_of(const struct pe_subject *subject)
{
    enum { BIAS_DIM = 64 };
    struct pe_rotation rotation;
    if (subject->family != PE_ROTARY)
        return subject->family == PE_BIAS ? BIAS_DIM : subject->dim;
    subject->plan->scheme->rotate(subject->plan, &rotation, NULL);
    return rotation.head_dim;
}

static size_t block_of(size_t dim)
{
    size_t n = BLOCK / dim;
    return n < 1 ? 1 : n > KEYS_MAX ? KEYS_MAX : n;
}

static size_t table_of(const struct pe_subject *subject) { return subject->family == PE_ROTARY ? subject->dim : 0; }

/* The numbers that memory holds, without the queries' sums. */
static size_t size_of(const struct pe_subject *subject)
{
    size_t heads = heads_of(subject), dim = dim_of(subject), block = block_of(dim);
    return ENDS * heads * QUERIES * dim + 2 * block * dim + block * table_of(subject) + QUERIES * block + block +
           heads * QUERIES;
}

static enum pe_status allocate(struct stage *s, struct pe_failure *err)
{
    size_t n_softmax = ENDS * s->heads * QUERIES;
    s->memory = malloc(size_of(s->subject) * sizeof(double) + n_softmax * sizeof *s->softmax);
    if (!s->memory)
        return pe_no_memory(err);
    s->softmax = s->memory;
    s->q = (double *)(void *)(s->softmax + n_softmax);
    s->k = s->q + n_softmax * s->dim;
    s->rows = s->k + s->block * s->dim;
    s->table = s->rows + s->block * s->dim;
    s->scores = s->table + s->block * table_of(s->subject);
    s->bias = s->scores + QUERIES * s->block;
    s->terms = s->bias + s->block;
    for (size_t i = 0; i < n_softmax; i++)
        s->softmax[i] = (struct softmax){.max = -(double)INFINITY};
    return PE_OK;
}

/* ---- Queries and keys ---- */

/* Numbers of a seeded tensor of f32. */
static void fill_seeded(uint64_t hash, uint64_t first, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (double)(float)pe_seed_normal(hash, first + i);
}

static void add_numbers(double *x, const double *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
}

/* Rows of x at consecutive positions; table: their cosines and sines. */
static void rotate(const struct stage *s, const double *table, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pe_rotate_row(&s->turn, table + i * table_of(s->subject), PE_F64, x + i * s->dim, PE_F64, x + i * s->dim);
}

static void fill_table(const struct stage *s, const char *input, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n && !pe_is_cancelled(); i++)
        pe_rotate_table(&s->turn, s->plan, s->plan->seq.k, pe_turn_input(s->plan, input), first + i, 1,
                        s->table + i * table_of(s->subject));
}

/* The same random queries at one end. */
static void place_queries(const struct stage *s, size_t end)
{
    size_t n = s->heads * QUERIES;
    double *q = s->q + end * n * s->dim;
    if (s->subject->family == PE_ABSOLUTE)
        pe_fill(s->plan, 0, end_of(s, end) * s->dim, s->dim, s->rows);
    if (s->subject->family == PE_ROTARY)
        fill_table(s, "q", end_of(s, end), 1);
    for (size_t i = 0; i < n && !pe_is_cancelled(); i++) {
        fill_seeded(s->seed_q, i * s->dim, s->dim, q + i * s->dim);
        if (s->subject->family == PE_ABSOLUTE)
            add_numbers(q + i * s->dim, s->rows, s->dim);
        if (s->subject->family == PE_ROTARY)
            rotate(s, s->table, q + i * s->dim, 1);
    }
}

/* Keys first … first+n-1 of a head. */
static void place_keys(const struct stage *s, size_t head, uint64_t first, size_t n)
{
    fill_seeded(s->seed_k, (head * s->lengths.eval + first) * s->dim, n * s->dim, s->k);
    if (s->subject->family == PE_ABSOLUTE)
        add_numbers(s->k, s->rows, n * s->dim);
    if (s->subject->family == PE_ROTARY)
        rotate(s, s->table, s->k, n);
}

/* ---- Scores ---- */

static void meet(const struct stage *s, size_t head, size_t end, uint64_t first, size_t n)
{
    uint64_t at = end_of(s, end);
    size_t i0 = (end * s->heads + head) * QUERIES;
    if (first > at)
        return;
    n = at + 1 - first < n ? (size_t)(at + 1 - first) : n;
    pe_gemm_abt_f64(QUERIES, n, s->dim, 1 / sqrt((double)s->dim), s->q + i0 * s->dim, s->dim, s->k, s->dim, 0,
                    s->scores, s->block);
    if (s->subject->family == PE_BIAS)
        pe_fill(s->plan, 0, (head * s->lengths.eval + at) * s->lengths.eval + first, n, s->bias);
    for (size_t i = 0; i < QUERIES; i++) {
        if (s->subject->family == PE_BIAS)
            add_numbers(s->scores + i * s->block, s->bias, n);
        add_keys(&s->softmax[i0 + i], s->scores + i * s->block, n, at - first, s->lengths.train);
    }
}

static void stream(const struct stage *s)
{
    for (uint64_t first = 0; first < s->lengths.eval && !pe_is_cancelled(); first += s->block) {
        uint64_t left = s->lengths.eval - first;
        size_t n = left < s->block ? (size_t)left : s->block;
        if (s->subject->family == PE_ABSOLUTE)
            pe_fill(s->plan, 0, first * s->dim, n * s->dim, s->rows);
        if (s->subject->family == PE_ROTARY)
            fill_table(s, "k", first, n);
        for (size_t head = 0; head < s->heads && !pe_is_cancelled(); head++) {
            place_keys(s, head, first, n);
            for (size_t end = 0; end < ENDS; end++)
                meet(s, head, end, first, n);
        }
    }
}

/* ---- Means ---- */

enum moment { ENTROPY, DISTANCE, BEYOND };

/* A query that sees no key has nothing to report. */
static double moment_of(const struct softmax *q, enum moment moment)
{
    if (!(q->sum > 0))
        return 0;
    return moment == ENTROPY    ? log(q->sum) - q->weighted / q->sum
           : moment == DISTANCE ? q->distance / q->sum
                                : q->beyond / q->sum;
}

static double mean(const struct stage *s, size_t end, enum moment moment)
{
    size_t n = s->heads * QUERIES;
    for (size_t i = 0; i < n; i++)
        s->terms[i] = moment_of(&s->softmax[end * n + i], moment);
    return pe_sum(s->terms, n) / (double)n;
}

/* ---- The whole ---- */

static bool has_attention(const struct pe_subject *subject)
{
    return subject->family != PE_RELATIVE && subject->dim > 0;
}

/* Is the width of the longer sequence's rows that of the given one? */
static bool is_as_wide(const struct stage *s)
{
    return s->subject->family != PE_ABSOLUTE || pe_plan_output(s->plan, 0)->row_len == s->dim;
}

static enum pe_status open_and_compute(struct stage *s, struct drift *drift, struct pe_failure *err)
{
    enum pe_status status = allocate(s, err);
    if (!status && s->subject->family == PE_ROTARY)
        status = pe_turn_init(&s->turn, s->plan, err);
    if (!status) {
        for (size_t end = 0; end < ENDS; end++)
            place_queries(s, end);
        stream(s);
        for (size_t end = 0; end < ENDS; end++) {
            drift->entropy[end] = mean(s, end, ENTROPY);
            drift->mean_distance[end] = mean(s, end, DISTANCE);
        }
        drift->mass_beyond = mean(s, 1, BEYOND);
        drift->is_there = true;
    }
    pe_rotate_drop(&s->turn);
    free(s->memory);
    return status;
}

static enum pe_status measure_drift(struct pe_analysis *study, const struct pe_subject *subject, struct lengths lengths,
                                    struct drift *drift, struct pe_failure *err)
{
    int64_t seed = study->fields.seed;
    struct stage s = {
        .subject = subject, .lengths = lengths, .seed_q = pe_seed_hash(seed, "q"), .seed_k = pe_seed_hash(seed, "k")};
    *drift = (struct drift){.is_there = false};
    if (!has_attention(subject))
        return PE_OK;
    s.heads = heads_of(subject);
    s.dim = dim_of(subject);
    s.block = block_of(s.dim);
    struct pe_run run = {.n = lengths.eval};
    enum pe_status status = pe_subject_plan_rows(study, subject, &run, &s.plan, err);
    if (status) /* it has no values at E positions, as a table with too few rows */
        return status == PE_INVALID || status == PE_TOO_LARGE ? PE_OK : status;
    if (is_as_wide(&s))
        status = open_and_compute(&s, drift, err);
    pe_plan_free(s.plan);
    return status;
}

static void attention_cost(const struct pe_subject *subject, struct lengths lengths, struct pe_metric_cost *cost)
{
    if (!has_attention(subject) || without_row(subject, lengths) > 0) /* then there is no longer plan */
        return;
    size_t heads = heads_of(subject);
    double eval = (double)lengths.eval;
    bool is_bias = subject->family == PE_BIAS;
    cost->work += 64 * eval * (double)heads * (double)dim_of(subject);
    cost->work += pe_planning_work(subject) + pe_reach_work(subject, eval);
    cost->work += pe_numbers_work(subject, (is_bias ? ENDS : 1) * eval * (double)subject->dim);
    cost->work += pe_scale_work(subject, eval * (double)subject->dim / 2);
    cost->bytes +=
        (double)size_of(subject) * sizeof(double) + (double)(ENDS * heads * QUERIES * sizeof(struct softmax));
    if (subject->family == PE_ROTARY)
        cost->bytes += pe_turn_bytes(subject->plan);
}

/* ---- Measuring ---- */

static struct lengths lengths_of(const struct pe_analysis *study, const struct pe_subject *subject)
{
    return (struct lengths){(uint64_t)pe_train_len(study, subject), (uint64_t)pe_eval_len(study, subject)};
}

struct findings {
    double without_row, unseen_angles, unseen_pairs; /* NaN: not defined */
    size_t first_pair;                               /* with unseen angles; C: none */
    double saturated[2];                             /* at T and at E */
    struct drift drift;
};

/* ---- Measuring ---- */

static enum pe_status measure_angles(struct pe_analysis *study, const struct pe_subject *subject,
                                     struct lengths lengths, struct findings *f, struct pe_failure *err)
{
    size_t n = subject->ladder.n;
    double *unseen = malloc((n + 1) * sizeof *unseen), *tensor = pe_study_tensor(study, subject, "unseen");
    enum pe_status status = unseen ? find_unseen_angles(study, subject, lengths, unseen, err) : pe_no_memory(err);
    if (!status) {
        f->unseen_angles = pe_sum(unseen, n) / (double)n;
        f->first_pair = 0;
        while (f->first_pair < n && !(unseen[f->first_pair] > 0))
            f->first_pair++;
    }
    if (!status && tensor)
        memcpy(tensor, unseen, n * sizeof *tensor);
    free(unseen);
    return status;
}

static enum pe_status measure_saturation(struct pe_analysis *study, const struct pe_subject *subject,
                                         struct lengths lengths, struct findings *f, struct pe_failure *err)
{
    enum pe_status status = find_saturated(study, subject, lengths.train, &f->saturated[0], err);
    return status ? status : find_saturated(study, subject, lengths.eval, &f->saturated[1], err);
}

static enum pe_status measure(struct pe_analysis *study, const struct pe_subject *subject, struct findings *f,
                              struct pe_failure *err)
{
    struct lengths lengths = lengths_of(study, subject);
    *f = (struct findings){.without_row = without_row(subject, lengths),
                           .unseen_angles = (double)NAN,
                           .unseen_pairs = share_of_unseen_pairs(subject, lengths)};
    enum pe_status status = PE_OK;
    if (subject->ladder.n)
        status = measure_angles(study, subject, lengths, f, err);
    if (!status && has_saturation(subject))
        status = measure_saturation(study, subject, lengths, f, err);
    return status ? status : measure_drift(study, subject, lengths, &f->drift, err);
}

/* ---- The answer ---- */

enum headline { WITHOUT_ROW, UNSEEN_ANGLES, MASS_BEYOND, UNSEEN_PAIRS };

static const char *const details[] = {
    [WITHOUT_ROW] = "A share of {value} of {eval_len} positions has no row in the table.",
    [UNSEEN_ANGLES] =
        "For distances from {train_len} to below {eval_len}, a share of {value} of the angles does not occur in "
        "training, on average over the pairs.",
    [MASS_BEYOND] = "With {eval_len} positions, a share of {value} of the last query's attention goes to keys that are "
                    "{train_len} or more away.",
    [UNSEEN_PAIRS] =
        "A share of {value} of the pairs of {eval_len} positions is {train_len} or more apart, farther than in "
        "training.",
};

static enum headline put_value(struct pe_node *out, const struct findings *f)
{
    const double values[] = {f->without_row, f->unseen_angles, f->drift.is_there ? f->drift.mass_beyond : (double)NAN,
                             f->unseen_pairs};
    size_t i = 0;
    while (isnan(values[i]))
        i++;
    pe_put_real(out, "value", values[i]);
    return (enum headline)i;
}

static void put_two(struct pe_node *out, const char *name, const double *x)
{
    struct pe_node *list = pe_put_list(out, name);
    pe_put_real(list, NULL, x[0]);
    pe_put_real(list, NULL, x[1]);
}

static void put_drift(struct pe_node *out, const struct drift *drift)
{
    if (!drift->is_there)
        return;
    struct pe_node *attention = pe_put_object(out, "attention");
    put_two(attention, "entropy", drift->entropy);
    put_two(attention, "mean_distance", drift->mean_distance);
    pe_put_real(attention, "mass_beyond", drift->mass_beyond);
}

static void put_saturation(struct pe_node *out, const struct pe_subject *subject, const struct findings *f)
{
    if (!has_saturation(subject))
        return;
    struct pe_node *saturated = pe_put_object(out, "saturated");
    pe_put_real(saturated, "train", f->saturated[0]);
    pe_put_real(saturated, "eval", f->saturated[1]);
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct findings f;
    enum pe_status status = measure(study, subject, &f, err);
    if (!status && !pe_was_cancelled()) {
        struct lengths lengths = lengths_of(study, subject);
        enum headline headline = put_value(out, &f);
        if (isnan(f.unseen_angles) || f.first_pair == subject->ladder.n)
            pe_put_null(out, "witness");
        else
            pe_put_integer(pe_put_object(out, "witness"), "pair", (int64_t)f.first_pair);
        pe_put_integer(out, "train_len", (int64_t)lengths.train);
        pe_put_integer(out, "eval_len", (int64_t)lengths.eval);
        if (!isnan(f.without_row))
            pe_put_real(out, "positions_without_row", f.without_row);
        if (!isnan(f.unseen_angles))
            pe_put_real(out, "unseen_angles", f.unseen_angles);
        pe_put_real(out, "unseen_pairs", f.unseen_pairs);
        put_saturation(out, subject, &f);
        put_drift(out, &f.drift);
        pe_put_detail(out, study->request->lang, details[headline]);
    }
    return status;
}

/* ---- The metric ---- */

/* A model trained on very long contexts is left out, unless the request names the metric or a length: its other metrics
 * should not be refused because of this one. */
static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    const struct pe_analysis_fields *f = &study->fields;
    bool is_asked = f->metrics || f->train_len != PE_UNSET_INT || f->eval_len != PE_UNSET_INT;
    return is_asked || pe_eval_len(study, subject) <= PE_EVAL_LEN_MAX;
}

static enum pe_status check(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_failure *err)
{
    double train = floor(pe_train_len(study, subject)), eval = pe_eval_len(study, subject);
    bool is_given = study->fields.eval_len != PE_UNSET_INT;
    if (is_given && eval < train)
        return pe_fail(err, "/eval_len", "eval_len is %.0f, train_len %.0f; allowed: train_len to %d", eval, train,
                       PE_EVAL_LEN_MAX);
    if (eval <= PE_EVAL_LEN_MAX)
        return PE_OK;
    pe_fail(err, is_given ? "/eval_len" : "/train_len",
            is_given ? "eval_len is %.0f; allowed: at most %d"
                     : "eval_len would be %.0f, twice the length in training, unless it is given; allowed: at most %d",
            eval, PE_EVAL_LEN_MAX);
    return err->status = PE_TOO_LARGE;
}

enum { ANGLE_WORK = 64 }; /* of an angle modulo a turn */

/* Angles, and the lines of buckets at both lengths, beside the attention. */
static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    struct lengths lengths = lengths_of(study, subject);
    double eval = (double)lengths.eval;
    attention_cost(subject, lengths, cost);
    cost->work += eval * (1 + ANGLE_WORK * (double)subject->ladder.n) + 2 * pe_planning_work(subject);
    cost->work += has_saturation(subject) ? 2 * 2 * eval * pe_plan_each(subject->plan) : 0;
    cost->bytes += ((double)subject->ladder.n + eval) * sizeof(double);
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)study;
    (void)i;
    *rank = 1;
    shape[0] = subject->ladder.n;
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("unseen", "rotary_dim/2", 1, PE_F64, false, NULL, "unseen angles",
              "share of the distances between both lengths whose angle does not occur in training, by pair"),
    {.name = NULL},
};

const struct pe_metric pe_metric_extrapolation = {
    .info =
        {
            .name = "extrapolation",
            .about = {"length extrapolation", "what a scheme meets beyond the length of training"},
            .applies_to = "every scheme",
            .params = "train_len|eval_len|seed",
            .work = "64 E H d",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .is_of_kernels = true,
    .applies = applies,
    .check = check,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
