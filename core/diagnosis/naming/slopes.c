/* Relations of ALiBi's slopes: what each head is multiplied by, beside its believed slope. It is measured under any
 * form, mask and alignment; a rule that gives the slope of every head is the finding, else the list itself. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>
#include <stdlib.h>

/* ---- The words ---- */

#define OF_BIAS PE_EVIDENCE_BIT(BIAS)

const struct pe_fault pe_fault_slopes_other = {
    FAULT_TEXT("slopes_other", "bias", BIAS, 2, "other slopes", "The heads have other slopes.",
               "The slopes are not those of the configuration; `found` lists them."),
    .schemes = "alibi", .evidence = OF_BIAS, .fit_rank = 1};
const struct pe_fault pe_fault_slopes_order = {
    FAULT_TEXT("slopes_order", "bias", BIAS, 3, "other order of slopes",
               "The heads have the right slopes in another order.",
               "The slopes are right, but the heads have them in another order."),
    .schemes = "alibi", .evidence = OF_BIAS, .fit_rank = 1};
const struct pe_fault pe_fault_bias_max_other = {
    FAULT_TEXT("bias_max_other", "bias", BIAS, 2, "other bias_max", "The slopes are computed with another bias_max.",
               "bias_max is {found}; the configuration has {believed}."),
    .schemes = "alibi", .evidence = OF_BIAS,
    PE_VALUES(PE_INTEGER_OF("bias_max", 16), PE_INTEGER_OF("bias_max", 4), PE_INTEGER_OF("bias_max", 8))};

/* ---- Slopes ---- */

/* Of each head. n: the largest power of two that is at most n_heads. */
struct slopes {
    struct pe_diagnosis *d;
    const struct pe_edit *edit;
    size_t n_heads, n;
    double bias_max, error; /* error: of what is found, as a share */
    bool has_list;          /* the configuration lists slopes of its own */
    bool is_permuted;       /* each head has the slope of another one, and none twice */
    double found[PE_HEADS_MAX], right[PE_HEADS_MAX], paper[PE_HEADS_MAX], sorted[PE_HEADS_MAX], rule[PE_HEADS_MAX];
};

/* ---- Slopes of a plan ---- */

/* The slopes of the edit, or those of the paper where a list is stated. false: there is no such plan. */
static bool plan_slopes(struct slopes *s, bool with_list, double *out)
{
    static const char *const outputs[] = {"slopes"};
    const struct pe_value *list = with_list ? pe_edit_value(s->d, s->edit, "slopes") : NULL;
    const struct pe_field fields[] = {{"scheme", {.kind = PE_STRING, .string = "alibi"}},
                                      {"num_heads", {.kind = PE_INTEGER, .integer = (int64_t)s->n_heads}},
                                      {"len", {.kind = PE_INTEGER, .integer = 1}},
                                      list ? (struct pe_field){"slopes", *list}
                                           : (struct pe_field){"bias_max", {.kind = PE_REAL, .real = s->bias_max}}};
    const struct pe_request request = {.operation = PE_ENCODE,
                                       .fields = fields,
                                       .n_fields = sizeof fields / sizeof *fields,
                                       .dtype = PE_F64,
                                       .outputs = outputs,
                                       .n_outputs = 1};
    struct pe_plan *plan;
    struct pe_failure err;
    enum pe_status status = pe_plan_new(&request, &plan, &err);
    s->d->no_memory |= status == PE_NO_MEMORY;
    if (status)
        return false;
    pe_fill(plan, 0, 0, s->n_heads, out);
    pe_plan_free(plan);
    return true;
}

static int falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Are two lists equal but for roundings? A head of which nothing is known has any slope. */
static bool are_near(const struct slopes *s, const double *found, const double *list)
{
    for (size_t h = 0; h < s->n_heads; h++)
        if (fabs(found[h] - list[h]) > 8 * s->error * fabs(list[h]))
            return false;
    return true;
}

static bool open_slopes(struct slopes *s, struct pe_diagnosis *d, const struct pe_edit *edit)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    *s = (struct slopes){.d = d,
                         .edit = edit,
                         .n_heads = t->rank > 2 ? (size_t)t->shape[t->rank - 3] : 1,
                         .n = 1,
                         .bias_max = pe_edit_real(d, edit, "bias_max", 8),
                         .has_list = pe_edit_has(d, edit, "slopes")};
    while (2 * s->n <= s->n_heads)
        s->n *= 2;
    if (!plan_slopes(s, true, s->right) || !plan_slopes(s, false, s->paper))
        return false;
    s->error = pe_measure_heads(d, edit, s->found);
    for (size_t h = 0; h < s->n_heads; h++)
        s->found[h] *= s->right[h];
    memcpy(s->sorted, s->right, s->n_heads * sizeof *s->sorted);
    qsort(s->sorted, s->n_heads, sizeof *s->sorted, falling);
    memcpy(s->rule, s->found, s->n_heads * sizeof *s->rule);
    qsort(s->rule, s->n_heads, sizeof *s->rule, falling);
    s->is_permuted = are_near(s, s->rule, s->sorted);
    return !isnan(s->error);
}

/* ---- Rules: the slope of head h ---- */

/* 2^(-bias_max·(h+1)/n) read as a product. */
static double product(const struct slopes *s, size_t h, size_t n)
{
    return (double)(h + 1) * exp2(-s->bias_max / (double)n);
}

static double power(const struct slopes *s, size_t h) { return exp2(-s->bias_max * (double)h / (double)s->n_heads); }

static double reversed(const struct slopes *s, size_t h) { return s->right[s->n_heads - 1 - h]; }
static double descending(const struct slopes *s, size_t h) { return s->sorted[h]; }
static double ascending(const struct slopes *s, size_t h) { return s->sorted[s->n_heads - 1 - h]; }
static double of_paper(const struct slopes *s, size_t h) { return s->paper[h]; }
static double linear(const struct slopes *s, size_t h) { return product(s, h, s->n); }
static double linear_of_all(const struct slopes *s, size_t h) { return product(s, h, s->n_heads); }
static double linear_halved(const struct slopes *s, size_t h)
{
    return h < s->n ? product(s, h, s->n) : product(s, h - s->n, s->n) / 2;
}
static double plain(const struct slopes *s, size_t h) { return power(s, h + 1); }
static double later(const struct slopes *s, size_t h) { return power(s, h + 2); } /* counted from 1 twice */
static double halved(const struct slopes *s, size_t h) { return h < s->n ? s->right[h] : s->right[h - s->n] / 2; }
static double rounded(const struct slopes *s, size_t h) { return pe_round_to(PE_BF16, s->right[h]); }
static double of_one_head(const struct slopes *s, size_t h) { return (void)h, s->right[0]; }
static double permuted(const struct slopes *s, size_t h)
{
    double nearest = 0;
    for (size_t i = 0; s->is_permuted && i < s->n_heads; i++)
        nearest = fabs(s->right[i] - s->found[h]) < fabs(nearest - s->found[h]) ? s->right[i] : nearest;
    return nearest;
}
static double measured(const struct slopes *s, size_t h) { return pe_shortest_decimal(s->found[h], s->error); }

/* ---- The table ---- */

#define LINEAR                                                                                                         \
    "The slopes grow linearly with the head, as (h+1)·2^(-bias_max/n), instead of being powers, "                     \
    "2^(-bias_max·(h+1)/n)."
#define SORTED                                                                                                         \
    "The slopes are right, but sorted. For a number of heads that is not a power of two, the paper's list is not "     \
    "sorted."

/* The plainest first. */
static const struct row {
    double (*slope)(const struct slopes *s, size_t h);
    struct pe_relation relation;
} rows[] = {
    {reversed, {&pe_fault_slopes_order, 1, NULL, "The slopes are right, but the heads have them in reverse order."}},
    {descending, {&pe_fault_slopes_order, 1, NULL, SORTED}},
    {ascending, {&pe_fault_slopes_order, 1, NULL, SORTED}},
    {of_paper,
     {&pe_fault_slopes_other, 1, NULL,
      "The slopes are those of the paper, 2^(-bias_max·(h+1)/n); the configuration lists others."}},
    {linear, {&pe_fault_slopes_other, 1, NULL, LINEAR}},
    {linear_of_all, {&pe_fault_slopes_other, 1, NULL, LINEAR}},
    {linear_halved, {&pe_fault_slopes_other, 1, NULL, LINEAR}},
    {plain,
     {&pe_fault_slopes_other, 1, NULL,
      "The slopes are 2^(-bias_max·(h+1)/H) for all H heads. As H is not a power of two, the paper takes the last "
      "heads "
      "from the list for twice as many."}},
    {halved,
     {&pe_fault_slopes_other, 1, NULL,
      "The heads beyond the power of two have halves of the first slopes instead of the odd terms of the list for "
      "twice "
      "as many heads."}},
    {later,
     {&pe_fault_slopes_other, 1, NULL,
      "Every head has the next head's slope: the slopes are 2^(-bias_max·(h+2)/H), h counted from 0."}},
    {rounded, {&pe_fault_slopes_other, 1, NULL, "The slopes were rounded to bfloat16."}},
    {of_one_head, {&pe_fault_slopes_other, 1, NULL, "Every head has the slope of the first one."}},
    {permuted, {&pe_fault_slopes_order, 2, NULL, NULL}},
    {measured, {&pe_fault_slopes_other, 3, NULL, NULL}},
};

static bool set_slopes(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    (void)d;
    pe_edit_set_reals(edit, "slopes", named->predicted, named->n_pairs);
    return true;
}

static bool keep(struct slopes *s, const struct pe_relation *relation, struct pe_part *parts, size_t *n)
{
    struct pe_named *named = pe_part_add(s->d, relation, (double)NAN, (double)NAN, parts, n);
    if (!named)
        return false;
    named->predicted = malloc(s->n_heads * sizeof *named->predicted);
    s->d->no_memory |= !named->predicted;
    named->n_pairs = s->n_heads;
    named->apply = set_slopes;
    if (named->predicted)
        memcpy(named->predicted, s->rule, s->n_heads * sizeof *named->predicted);
    return named->predicted;
}

/* 2^(-bias_max·e) in each head, whose believed slope shows e: the bias_max that all heads have; NaN: they have not. */
static double other_bias_max(const struct slopes *s)
{
    double most = (double)NAN, error = s->error;
    for (size_t h = 0; !s->has_list && h < s->n_heads; h++) {
        double one = s->bias_max * log(s->found[h]) / log(s->right[h]);
        if (h > 0 && !(fabs(one - most) <= 16 * error * (1 + 1 / fabs(log(s->right[h]))) * fabs(one)))
            return (double)NAN;
        most = one;
    }
    return s->n_heads > 1 && most > 0 ? pe_shortest_decimal(most, 16 * error) : (double)NAN;
}

static size_t relate(struct slopes *s, struct pe_part *parts)
{
    static const struct pe_relation of_bias_max = {&pe_fault_bias_max_other, 1, NULL, NULL};
    double most = other_bias_max(s);
    size_t n = 0;
    if (are_near(s, s->found, s->right))
        return 0;
    if (!isnan(most) && most != s->bias_max) {
        struct pe_named *named = pe_part_add(s->d, &of_bias_max, most, s->bias_max, parts, &n);
        if (named)
            named->field = "bias_max";
        return n;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t h = 0; h < s->n_heads; h++)
            s->rule[h] = rows[i].slope(s, h);
        if (are_near(s, s->found, s->rule) && !are_near(s, s->rule, s->right))
            return keep(s, &rows[i].relation, parts, &n);
    }
    return 0;
}

size_t pe_relate_slopes(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_part *parts)
{
    size_t n = 0;
    if (!pe_same(d->belief.inheritance->scheme->info.name, "alibi") || pe_edit_has(d, edit, "slopes_left"))
        return 0;
    struct slopes *s = malloc(sizeof *s);
    d->no_memory |= !s;
    if (s && open_slopes(s, d, edit))
        n = relate(s, parts);
    free(s);
    return n;
}
