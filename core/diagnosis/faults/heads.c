/* Faults of ALiBi's slopes, one for each head. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OF_BIAS PE_EVIDENCE_BIT(BIAS)

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
    if (pe_slopes_read(d, edit, s->n_heads, true, s->right) && pe_slopes_read(d, edit, s->n_heads, false, s->paper))
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
    bool fits = pe_slopes_fit(d, edit, two_sides ? "slopes_left" : "slopes", s->n_heads, s->wrong) &&
                (two_sides ? pe_slopes_fit(d, edit, "slopes_right", s->n_heads, s->right) : !is_known(d, s));
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

/* One sentence for each alternative, in the order of faults/heads.c. */
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

static bool bias_max_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    static const double values[] = {16, 4, 8};
    if (pe_edit_has(d, edit, "slopes") || pe_edit_real(d, edit, "bias_max", 8) == values[alternative])
        return false;
    pe_edit_set_real(edit, "bias_max", values[alternative]);
    return true;
}
const struct pe_fault pe_fault_bias_max_other = {
    FAULT_TEXT("bias_max_other", "bias", BIAS, 2, "other bias_max", "The slopes are computed with another bias_max.",
               "bias_max is {found}; the configuration says {believed}."),

    .schemes = "alibi", .evidence = OF_BIAS, .n_alternatives = 3, .apply = bias_max_other};
