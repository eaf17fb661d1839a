/* Faults of biases and buckets: forms, buckets. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Slopes of heads, measured ---- */

/* Lists of ALiBi's slopes. */

#define OF_BIAS PE_EVIDENCE_BIT(BIAS)

/* ---- As a plan gives them ---- */

static enum pe_status plan_slopes(const struct pe_field *fields, size_t n, struct pe_plan **plan,
                                  struct pe_failure *err)
{
    static const char *const outputs[] = {"slopes"};
    const struct pe_request request = {
        .operation = PE_ENCODE, .fields = fields, .n_fields = n, .dtype = PE_F64, .outputs = outputs, .n_outputs = 1};
    return pe_plan_new(&request, plan, err);
}

/* The slopes of n_heads heads as the edit has them ([n_heads] doubles); own: also the list that a request states
 * instead of bias_max. false: no memory, or no such plan. */
static bool read_slopes(struct pe_diagnosis *d, const struct pe_edit *edit, size_t n_heads, bool own, double *slopes)
{
    struct pe_field fields[5] = {
        {"scheme", {.kind = PE_STRING, .string = "alibi"}},
        {"num_heads", {.kind = PE_INTEGER, .integer = (int64_t)n_heads}},
        {"len", {.kind = PE_INTEGER, .integer = 1}},
        {"bias_max", {.kind = PE_REAL, .real = pe_edit_real(d, edit, "bias_max", 8)}},
    };
    const struct pe_value *list = own ? pe_edit_value(d, edit, "slopes") : NULL;
    struct pe_plan *plan;
    struct pe_failure err;
    if (list)
        fields[4] = (struct pe_field){"slopes", *list};
    enum pe_status status = plan_slopes(fields, list ? 5 : 4, &plan, &err);
    d->no_memory |= status == PE_NO_MEMORY;
    if (status)
        return false;
    pe_fill(plan, 0, 0, n_heads, slopes);
    pe_plan_free(plan);
    return true;
}

/* ---- As the tensor has them ---- */

enum { COLUMNS = 256 };

/* Both ends of a row: in causal tensors the last query sees most, else the first queries see farthest. */
static bool read_row(const struct pe_model *unit, uint64_t row, double u, struct pe_ratio *a)
{
    const struct pe_evidence *e = &unit->d->evidence;
    double found[COLUMNS], ones[COLUMNS];
    size_t n = e->row_len < COLUMNS ? (size_t)e->row_len : COLUMNS;
    bool agrees = true;
    for (uint64_t col0 = 0; agrees; col0 = e->row_len - n) {
        pe_evidence_read(e, 0, row, col0, n, found);
        pe_model_fill(unit, 0, row, col0, n, ones);
        agrees = pe_ratio_add(a, found, ones, n, u);
        if (col0 == e->row_len - n)
            break;
    }
    return agrees;
}

static bool read_head(const struct pe_model *unit, size_t head, size_t n_heads, double u, double *slope)
{
    uint64_t q_len = unit->d->evidence.n_rows / n_heads;
    const uint64_t queries[] = {0, q_len / 2, q_len - 1};
    struct pe_ratio a;
    pe_ratio_init(&a);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        if (pe_is_cancelled() || !read_row(unit, head * q_len + queries[i], u, &a))
            return false;
    *slope = 0; /* of a head whose slope nothing depends on */
    return pe_ratio_is_consistent(&a) && (!pe_ratio_is_known(&a) || pe_ratio_choose(&a, slope));
}

static bool read_heads(const struct pe_model *unit, size_t n_heads, double u, double *slopes)
{
    for (size_t h = 0; h < n_heads; h++)
        if (!read_head(unit, h, n_heads, u, &slopes[h]))
            return false;
    return true;
}

static void set_all(struct pe_edit *edit, const char *name, double x, double *room, size_t n)
{
    for (size_t h = 0; h < n; h++)
        room[h] = x;
    pe_edit_set_reals(edit, name, room, n);
}

/* The edit with slopes of 1. Where the two sides have their own slopes, those of the other side are 0. */
static enum pe_status unit_model(struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, double *room,
                                 size_t n_heads, struct pe_model **unit)
{
    struct pe_edit ones = *edit;
    struct pe_failure err;
    ones.n_owned = 0; /* the rest is borrowed */
    ones.transforms.mask_value = (double)NAN;
    if (!pe_same(name, "slopes")) {
        set_all(&ones, "slopes_left", 0, room, n_heads);
        set_all(&ones, "slopes_right", 0, room, n_heads);
    }
    set_all(&ones, name, 1, room, n_heads);
    enum pe_status status = pe_model_new(d, &ones, unit, &err);
    pe_edit_drop(&ones);
    return status;
}

/* Reads the slope of each head from the tensor: [n_heads]. Every number that it looks at must be the product of its
 * head's slope and what the same edit gives with slopes of 1. false: no list explains the tensor. */
static bool fit_slopes(struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, size_t n_heads,
                       double *slopes)
{
    struct pe_model *unit;
    if (unit_model(d, edit, name, slopes, n_heads, &unit))
        return false;
    double u = pe_roundoff(d->evidence.dtype), narrow = pe_roundoff(d->evidence.narrow);
    bool agrees = read_heads(unit, n_heads, u, slopes) ||
                  (d->evidence.narrow != PE_DTYPE_NONE && read_heads(unit, n_heads, narrow, slopes));
    pe_model_free(unit);
    return agrees;
}

/* ---- Slopes of heads ---- */

/* Faults of ALiBi's slopes, one for each head. */

static size_t num_heads(const struct pe_diagnosis *d)
{
    const struct pe_tensor *t = &d->evidence.tensors[0]; /* [heads, queries, keys] or [queries, keys] */
    return t->rank > 2 ? (size_t)t->shape[t->rank - 3] : 1;
}

/* The mistakes found in public ports. h: head; n: the largest power of two that is at most num_heads. */
enum { PAPER, LINEAR, LINEAR_OF_ALL, LINEAR_HALVED, PLAIN, HALVED, LATER, BF16, FITTED, N_SLOPES };

struct slopes {
    size_t n_heads, n;
    double bias_max;
    bool own; /* the configuration lists slopes of its own */
    double paper[PE_HEADS_MAX], right[PE_HEADS_MAX], wrong[PE_HEADS_MAX];
};

/* 2^(-bias_max·(h+1)/n) read as a product, over n heads. */
static double linear(const struct slopes *s, size_t h, size_t n)
{
    return (double)(h + 1) * exp2(-s->bias_max / (double)n);
}

static double wrong_slope(const struct slopes *s, size_t alternative, size_t h)
{
    switch (alternative) {
    case PAPER: return s->paper[h];
    case LINEAR: return linear(s, h, s->n);
    case LINEAR_OF_ALL: return linear(s, h, s->n_heads);
    case LINEAR_HALVED: return h < s->n ? linear(s, h, s->n) : linear(s, h - s->n, s->n) / 2;
    case PLAIN: return exp2(-s->bias_max * (double)(h + 1) / (double)s->n_heads);
    case HALVED: return h < s->n ? s->right[h] : s->right[h - s->n] / 2;
    case LATER: return exp2(-s->bias_max * (double)(h + 2) / (double)s->n_heads); /* h counted from 1 twice */
    default: return pe_bf16_value(pe_bf16_round(s->right[h]));
    }
}

static void set_wrong_slopes(struct slopes *s, size_t alternative)
{
    for (size_t h = 0; h < s->n_heads; h++)
        s->wrong[h] = wrong_slope(s, alternative, h);
}

static bool are_near(const double *a, const double *b, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(a[i] - b[i]) > tolerance * fabs(a[i]))
            return false;
    return true;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Does the configuration list the paper's slopes in another order? That is slopes_order. */
static bool is_reordered(const struct slopes *s)
{
    double right[PE_HEADS_MAX], paper[PE_HEADS_MAX];
    memcpy(right, s->right, s->n_heads * sizeof *right);
    memcpy(paper, s->paper, s->n_heads * sizeof *paper);
    qsort(right, s->n_heads, sizeof *right, by_size);
    qsort(paper, s->n_heads, sizeof *paper, by_size);
    return are_near(paper, right, s->n_heads, 1e-6);
}

/* The paper's are those of a configuration without a list; for a power of two, some mistakes are none. */
static bool is_possible(const struct slopes *s, size_t alternative)
{
    return alternative == PAPER ? s->own && !is_reordered(s)
                                : s->n != s->n_heads || alternative < LINEAR_OF_ALL || alternative > HALVED;
}

static bool differ(const struct slopes *s)
{
    for (size_t h = 0; h < s->n_heads; h++)
        if (s->wrong[h] != s->right[h])
            return true;
    return false;
}

static struct slopes *slopes_new(struct pe_diagnosis *d, const struct pe_edit *edit)
{
    struct slopes *s = calloc(1, sizeof *s);
    d->no_memory |= !s;
    if (!s)
        return NULL;
    s->n_heads = num_heads(d);
    s->bias_max = pe_edit_real(d, edit, "bias_max", 8);
    for (s->n = 1; 2 * s->n <= s->n_heads;)
        s->n *= 2;
    s->own = pe_edit_has(d, edit, "slopes");
    if (read_slopes(d, edit, s->n_heads, true, s->right) && read_slopes(d, edit, s->n_heads, false, s->paper))
        return s;
    free(s);
    return NULL;
}

/* A measured list near a known one is that one: the search has it already. */
static bool is_known(struct pe_diagnosis *d, struct slopes *s)
{
    double u = pe_evidence_noise(&d->evidence), *measured = malloc(s->n_heads * sizeof *measured);
    bool known = !measured;
    d->no_memory |= known;
    for (size_t i = 0; measured && i < s->n_heads; i++)
        measured[i] = s->wrong[i];
    for (size_t a = 0; !known && a < FITTED; a++) {
        if (!is_possible(s, a))
            continue;
        set_wrong_slopes(s, a);
        known = are_near(measured, s->wrong, s->n_heads, 8 * u);
    }
    known = known || are_near(measured, s->right, s->n_heads, 8 * u);
    for (size_t i = 0; measured && i < s->n_heads; i++)
        s->wrong[i] = measured[i];
    free(measured);
    return known;
}

/* In the form asymmetric each side has its own list. */
static bool set_fitted_slopes(struct pe_diagnosis *d, struct slopes *s, struct pe_edit *edit)
{
    bool two_sides = pe_edit_is_word(d, edit, "form", "asymmetric");
    bool fits = fit_slopes(d, edit, two_sides ? "slopes_left" : "slopes", s->n_heads, s->wrong) &&
                (two_sides ? fit_slopes(d, edit, "slopes_right", s->n_heads, s->right) : !is_known(d, s));
    if (fits)
        pe_edit_set_reals(edit, two_sides ? "slopes_left" : "slopes", s->wrong, s->n_heads);
    if (fits && two_sides)
        pe_edit_set_reals(edit, "slopes_right", s->right, s->n_heads);
    return fits;
}

static bool slopes_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    struct slopes *s = slopes_new(d, edit);
    if (!s)
        return false;
    bool applies = is_possible(s, alternative);
    if (applies && alternative == FITTED)
        applies = set_fitted_slopes(d, s, edit);
    else if (applies) {
        set_wrong_slopes(s, alternative);
        applies = differ(s);
        pe_edit_set_reals(edit, "slopes", s->wrong, s->n_heads);
    }
    free(s);
    return applies;
}

enum { REVERSED, DESCENDING, ASCENDING, N_ORDERS };

static void reverse(double *x, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        double kept = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = kept;
    }
}

static bool slopes_order(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    struct slopes *s = slopes_new(d, edit);
    if (!s)
        return false;
    memcpy(s->wrong, s->right, sizeof s->wrong);
    if (alternative != REVERSED)
        qsort(s->wrong, s->n_heads, sizeof *s->wrong, by_size);
    if (alternative != ASCENDING)
        reverse(s->wrong, s->n_heads);
    bool applies = differ(s);
    pe_edit_set_reals(edit, "slopes", s->wrong, s->n_heads);
    free(s);
    return applies;
}

/* One sentence for each alternative, in their order. */
#define LINEAR                                                                                                         \
    "The slopes grow linearly with the head, as (h+1)·2^(-bias_max/n), instead of being powers, "                     \
    "2^(-bias_max·(h+1)/n)."
static const char *const of_slopes[] = {
    "The slopes are those of the paper, 2^(-bias_max·(h+1)/n); the configuration lists others.",
    LINEAR,
    LINEAR,
    LINEAR,
    "The slopes are 2^(-bias_max·(h+1)/H) for all H heads. As H is not a power of two, the paper takes the last heads "
    "from the list for twice as many.",
    "The heads beyond the power of two have halves of the first slopes instead of the odd terms of the list for twice "
    "as many heads.",
    "Every head has the next head's slope: the slopes are 2^(-bias_max·(h+2)/H), h counted from 0.",
    "The slopes were rounded to bfloat16.",
    "The slopes are not those of the configuration; `found` lists them.",
};

#define SORTED                                                                                                         \
    "The slopes are right, but sorted. For a number of heads that is not a power of two, the paper's list is not "     \
    "sorted."
static const char *const of_slopes_order[] = {
    "The slopes are right, but the heads have them in reverse order.",
    SORTED,
    SORTED,
};

const struct pe_fault pe_fault_slopes_other = {
    FAULT_TEXTS("slopes_other", "bias", BIAS, 2, "other slopes", "The heads have other slopes.", of_slopes),
    .schemes = "alibi",
    .evidence = OF_BIAS,
    .n_alternatives = N_SLOPES,
    .apply = slopes_other,
    .n_fits = 1,
    .fit_rank = 1,
    .fit_cost = 3};
const struct pe_fault pe_fault_slopes_order = {
    FAULT_TEXTS("slopes_order", "bias", BIAS, 3, "other order of slopes",
                "The heads have the right slopes in another order.", of_slopes_order),

    .schemes = "alibi", .evidence = OF_BIAS, .n_alternatives = N_ORDERS, .apply = slopes_order};

const struct pe_fault pe_fault_bias_max_other = {
    FAULT_TEXT("bias_max_other", "bias", BIAS, 2, "other bias_max", "The slopes are computed with another bias_max.",
               "bias_max is {found}; the configuration says {believed}."),

    .schemes = "alibi", .evidence = OF_BIAS,
    PE_VALUES(PE_INTEGER_OF("bias_max", 16), PE_INTEGER_OF("bias_max", 4), PE_INTEGER_OF("bias_max", 8))};

/* Named by ../naming/biases.c. */
const struct pe_fault pe_fault_bias_signed = {
    FAULT_TEXT("bias_signed", "bias", BIAS, 2, "sign of the distance",
               "The bias keeps the sign of the distance, so it grows on one side of the query.",
               "The bias keeps the sign of the distance, so it grows on one side of the query."),
    .schemes = "alibi", .evidence = OF_BIAS};

/* Named by ../naming/windows.c. */
const struct pe_fault pe_fault_index_strides = {
    FAULT_TEXT("index_strides", "bias", BIAS, 2, "other index of a window",
               "The relative index of a window has other strides, as where height and width are mixed up.",
               "The relative index of a window has other strides."),
    .pointer = "", .schemes = "swin|beit", .evidence = OF_BIAS | PE_EVIDENCE_BIT(BUCKETS)};

/* ---- Forms and buckets ---- */

#define OF_MAPS (PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(BUCKETS))

/* ---- Forms ---- */

/* `asymmetric` differs from `symmetric` only by lists of slopes. */
const struct pe_fault pe_fault_form_other = {
    FAULT_TEXT("form_other", "bias", BIAS, 3, "other form", "The bias has another form, e.g. key instead of relative.",
               "The form is {found}; the configuration says {believed}."),
    .schemes = "alibi", .evidence = OF_BIAS,
    PE_VALUES(PE_WORD_OF("form", "symmetric"), PE_WORD_OF("form", "relative"), PE_WORD_OF("form", "key"),
              PE_WORD_OF("form", "key_end"), PE_WORD_OF("form", "key_mask")),
    .combines_as = PE_KIND_SINUSOID};

/* ---- Buckets of T5 ---- */

const struct pe_fault pe_fault_bidirectional_other = {
    FAULT_TEXT("bidirectional_other", "bias", BIAS, 3, "other bidirectional",
               "Buckets are computed for an encoder instead of a decoder, or the other way round.",
               "bidirectional is {found}; the configuration says {believed}."),

    .schemes = "t5", .evidence = OF_MAPS,
    PE_VALUES(PE_TRUTH_OF("bidirectional", true), PE_TRUTH_OF("bidirectional", false))};

#define FARTHEST(x) PE_INTEGER_OF("max_distance", x)
const struct pe_fault pe_fault_max_distance_other = {
    FAULT_TEXT("max_distance_other", "bias", BIAS, 3, "other max_distance", "Buckets end at another distance.",
               "max_distance is {found}; the configuration says {believed}."),
    .schemes = "t5", .evidence = OF_MAPS,
    PE_VALUES(FARTHEST(64), FARTHEST(128), FARTHEST(256), FARTHEST(512), FARTHEST(800), FARTHEST(96), FARTHEST(100),
              FARTHEST(160), FARTHEST(192), FARTHEST(200), FARTHEST(224), FARTHEST(300), FARTHEST(320), FARTHEST(384),
              FARTHEST(400), FARTHEST(448), FARTHEST(480), FARTHEST(500), FARTHEST(576), FARTHEST(600), FARTHEST(640),
              FARTHEST(700))};

/* ---- Parameters of the other schemes ---- */

const struct pe_fault pe_fault_kind_other = {
    FAULT_TEXT("kind_other", "bias", BIAS, 3, "other kind", "KERPLE's bias is of the other kind: log or power.",
               "The kind is {found}; the configuration says {believed}."),

    .schemes = "kerple", .evidence = OF_BIAS, PE_VALUES(PE_WORD_OF("kind", "log"), PE_WORD_OF("kind", "power"))};
