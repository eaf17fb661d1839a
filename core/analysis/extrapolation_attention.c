/* Attention of random queries and keys at two lengths: entropy that grows with the length means that attention is
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
    struct pe_lengths lengths;
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

static void add(double *x, const double *y, size_t n)
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
            add(q + i * s->dim, s->rows, s->dim);
        if (s->subject->family == PE_ROTARY)
            rotate(s, s->table, q + i * s->dim, 1);
    }
}

/* Keys first … first+n-1 of a head. */
static void place_keys(const struct stage *s, size_t head, uint64_t first, size_t n)
{
    fill_seeded(s->seed_k, (head * s->lengths.eval + first) * s->dim, n * s->dim, s->k);
    if (s->subject->family == PE_ABSOLUTE)
        add(s->k, s->rows, n * s->dim);
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
            add(s->scores + i * s->block, s->bias, n);
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

static void compute(const struct stage *s, struct pe_drift *drift)
{
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

static enum pe_status open_and_compute(struct stage *s, struct pe_drift *drift, struct pe_failure *err)
{
    enum pe_status status = allocate(s, err);
    if (!status && s->subject->family == PE_ROTARY)
        status = pe_turn_init(&s->turn, s->plan, err);
    if (!status)
        compute(s, drift);
    pe_rotate_drop(&s->turn);
    free(s->memory);
    return status;
}

enum pe_status pe_attention_drift(struct pe_analysis *study, const struct pe_subject *subject,
                                  struct pe_lengths lengths, struct pe_drift *drift, struct pe_failure *err)
{
    int64_t seed = study->fields.seed;
    struct stage s = {
        .subject = subject, .lengths = lengths, .seed_q = pe_seed_hash(seed, "q"), .seed_k = pe_seed_hash(seed, "k")};
    *drift = (struct pe_drift){.is_there = false};
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

void pe_attention_cost(const struct pe_subject *subject, struct pe_lengths lengths, struct pe_metric_cost *cost)
{
    if (!has_attention(subject) || pe_positions_without_row(subject, lengths) > 0) /* then there is no longer plan */
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
