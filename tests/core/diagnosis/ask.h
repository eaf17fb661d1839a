/* For tests of the diagnosis: asks about a tensor, looks for codes in the answer, and makes the tensor again from the
 * first candidate by a plan of its own and the transforms, which are written here once more. */
#ifndef TESTS_DIAGNOSIS_ASK_H
#define TESTS_DIAGNOSIS_ASK_H

#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_FIELDS_MAX = 64 };

/* A tensor as somebody sends it. */
struct sent {
    const char *name; /* "bias" */
    enum pe_dtype dtype;
    unsigned rank;
    uint64_t shape[3];
    size_t n;
    double *values; /* [n], rounded to dtype; owned */
    void *raw;      /* the same in dtype; owned */
};

/* Rounds values (taken) to the dtype. */
static inline struct sent sent_new(const char *name, enum pe_dtype dtype, unsigned rank, const uint64_t *shape,
                                   double *values)
{
    struct sent s = {.name = name, .dtype = dtype, .rank = rank, .n = 1, .values = values};
    for (unsigned a = 0; a < rank; a++)
        s.n *= (size_t)(s.shape[a] = shape[a]);
    s.raw = malloc(s.n * 8);
    assert_non_null(s.raw);
    pe_convert(dtype, s.raw, PE_F64, values, s.n);
    pe_convert(PE_F64, values, dtype, s.raw, s.n);
    return s;
}

static inline void sent_free(struct sent *s)
{
    free(s->values);
    free(s->raw);
}

static inline bool sent_equal(const struct sent *a, const struct sent *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->values[i] == b->values[i];
    return same;
}

struct asked {
    struct test_request r;
    struct pe_field fields[ASK_FIELDS_MAX]; /* the belief's, then the tensors: the request points here */
    size_t n_weights;                       /* the last so many fields but one are weights */
    struct pe_diagnosis *diagnosis;
    const struct pe_value *answer;
    struct pe_failure err;
};

/* Asks about a tensor with the belief json; weights: further tensors, given to every candidate's plan too. */
static inline void ask(struct asked *a, const char *json, const struct sent *s, const struct pe_field *weights,
                       size_t n_weights)
{
    memset(a, 0, sizeof *a);
    test_request_parse(&a->r, json);
    memcpy(a->fields, a->r.fields, a->r.n * sizeof *a->fields);
    for (size_t i = 0; i < n_weights; i++)
        a->fields[a->r.n + i] = weights[i];
    struct pe_tensor tensor = {.dtype = s->dtype, .rank = s->rank, .data = s->raw};
    memcpy(tensor.shape, s->shape, sizeof s->shape);
    size_t n = a->r.n + n_weights;
    a->n_weights = n_weights;
    a->fields[n++] = (struct pe_field){s->name, {.kind = PE_ARRAY, .array = tensor}};
    const struct pe_diagnosis_request request = {.fields = a->fields, .n_fields = n, .max_work = 1e12};
    if (pe_diagnosis_new(&request, &a->diagnosis, &a->err) == PE_OK)
        a->answer = pe_diagnosis_answer(a->diagnosis);
}

static inline void asked_drop(struct asked *a)
{
    pe_diagnosis_free(a->diagnosis);
    test_request_drop(&a->r);
}

/* ---- Reading the answer ---- */

static inline const struct pe_value *member(const struct pe_value *object, const char *name)
{
    for (size_t i = 0; object && object->kind == PE_OBJECT && i < object->object.n; i++)
        if (strcmp(object->object.fields[i].name, name) == 0)
            return &object->object.fields[i].value;
    return NULL;
}

static inline const struct pe_value *item(const struct pe_value *list, size_t i)
{
    return list && list->kind == PE_LIST && i < list->list.n ? &list->list.items[i] : NULL;
}

static inline const char *word(const struct pe_value *object, const char *name)
{
    const struct pe_value *v = member(object, name);
    return v && v->kind == PE_STRING ? v->string : "";
}

static inline double number(const struct pe_value *object, const char *name)
{
    const struct pe_value *v = member(object, name);
    return !v ? (double)NAN : v->kind == PE_INTEGER ? (double)v->integer : v->kind == PE_REAL ? v->real : (double)NAN;
}

static inline const struct pe_value *finding(const struct asked *a, const char *code)
{
    const struct pe_value *list = member(a->answer, "findings"), *f;
    for (size_t i = 0; (f = item(list, i)); i++)
        if (strcmp(word(f, "code"), code) == 0)
            return f;
    return NULL;
}

/* All codes found, "a b c". */
static inline const char *codes_of(const struct asked *a)
{
    static char text[512];
    const struct pe_value *list = member(a->answer, "findings"), *f;
    text[0] = '\0';
    for (size_t i = 0; (f = item(list, i)); i++) {
        strncat(text, i ? " " : "", sizeof text - 1 - strlen(text));
        strncat(text, word(f, "code"), sizeof text - 1 - strlen(text));
    }
    return text;
}

/* ---- Making the tensor again ---- */

static inline double unit_roundoff(enum pe_dtype dtype)
{
    return dtype == PE_F64 ? 0x1p-53 : dtype == PE_F32 ? 0x1p-24 : dtype == PE_F16 ? 0x1p-11 : 0x1p-8;
}

static inline void transpose_last(const struct sent *s, double *x)
{
    size_t rows = (size_t)s->shape[s->rank - 2], cols = (size_t)s->shape[s->rank - 1];
    double *old = malloc(s->n * sizeof *old);
    assert_non_null(old);
    memcpy(old, x, s->n * sizeof *old);
    for (size_t m = 0; m < s->n; m += rows * cols) /* what was [cols, rows] becomes [rows, cols] */
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j++)
                x[m + i * cols + j] = old[m + j * rows + i];
    free(old);
}

static inline double integer_at(const struct pe_value *list, size_t i)
{
    if (list->kind == PE_ARRAY) {
        struct pe_reals reals = {list->array, list->array.shape[0]};
        return pe_real_at(&reals, i);
    }
    const struct pe_value *v = item(list, i);
    assert_non_null(v);
    return v->kind == PE_INTEGER ? (double)v->integer : v->real;
}

static inline void reorder_axes(const struct sent *s, const struct pe_value *order, double *x)
{
    size_t n = (size_t)s->shape[1];
    double *old = malloc(s->n * sizeof *old);
    assert_non_null(old);
    memcpy(old, x, s->n * sizeof *old);
    for (size_t a = 0; a < s->shape[0]; a++)
        memcpy(x + a * n, old + (size_t)integer_at(order, a) * n, n * sizeof *x);
    free(old);
}

static inline void transform(const struct sent *s, const struct pe_value *t, double *x)
{
    const char *name = word(t, "name");
    size_t width = (size_t)s->shape[s->rank - 1], rows = s->rank > 1 ? (size_t)s->shape[s->rank - 2] : 1;
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(name, "negated") == 0 && !isinf(x[i]))
            x[i] = -x[i];
        if (strcmp(name, "scaled") == 0 && !isinf(x[i]))
            x[i] *= number(t, "factor");
        if (strcmp(name, "mask_value") == 0 && isinf(x[i]))
            x[i] = number(t, "value");
        if (strcmp(name, "zero_row") == 0 && (double)(i / width % rows) == number(t, "row"))
            x[i] = 0;
    }
    if (strcmp(name, "transposed") == 0)
        transpose_last(s, x);
    if (strcmp(name, "axes") == 0)
        reorder_axes(s, member(t, "order"), x);
}

/* The output of a plan that is compared with the tensor. */
static inline const char *output_of(const struct sent *s)
{
    return strcmp(s->name, "position_ids") == 0 ? "positions" : s->name;
}

/* What candidate i gives: [n] in f64 (free it); NULL: it has another size. */
static inline double *candidate_values(const struct asked *a, const struct sent *s, size_t i)
{
    const struct pe_value *c = item(member(a->answer, "candidates"), i);
    const struct pe_value *config = member(c, "config"), *sequence = member(c, "sequence"), *t;
    if (!config || !sequence)
        fail_msg("no candidate %zu with config and sequence", i);
    struct pe_field fields[ASK_FIELDS_MAX];
    size_t n = 0, n_values;
    for (size_t f = 0; f < config->object.n; f++)
        fields[n++] = config->object.fields[f];
    for (size_t f = 0; f < sequence->object.n; f++)
        fields[n++] = sequence->object.fields[f];
    for (size_t w = 0; w < a->n_weights; w++)
        fields[n++] = a->fields[a->r.n + w];
    const char *const outputs[] = {output_of(s)};
    const struct pe_request request = {
        .fields = fields, .n_fields = n, .dtype = PE_F64, .outputs = outputs, .n_outputs = 1};
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    if (pe_plan_new(&request, &plan, &err))
        fail_msg("candidate %zu: %s: %s", i, err.pointer, err.detail);
    double *x = test_values(plan, 0, &n_values);
    pe_plan_free(plan);
    const struct pe_value *transforms = member(c, "transforms");
    for (size_t k = 0; n_values == s->n && (t = item(transforms, k)); k++)
        transform(s, t, x);
    if (n_values == s->n)
        return x;
    free(x);
    return NULL;
}

/* Does candidate i give the tensor to within 4u of each number, with the same infinities? Where the answer says that
 * the numbers were rounded to 16 bits, u is that dtype's. */
static inline bool reproduces(const struct asked *a, const struct sent *s, size_t i)
{
    const char *narrow = word(finding(a, "table_dtype"), "found");
    double u = 4.01 * unit_roundoff(*narrow ? pe_dtype_find(narrow) : s->dtype);
    double *x = candidate_values(a, s, i);
    bool same = x != NULL, is_integer = !pe_dtype_is_real(s->dtype);
    double tiny = s->dtype == PE_F16 ? 0x1p-24 : 0x1p-149; /* a step of subnormal numbers */
    for (size_t k = 0; same && k < s->n; k++) {
        double y = s->values[k];
        same = x[k] == y ||
               (!is_integer && !isinf(x[k]) && !isinf(y) && fabs(x[k] - y) <= u * fmax(fabs(y), fabs(x[k])) + tiny);
    }
    free(x);
    return same;
}

/* ---- Keeping score ---- */

struct score {
    const char *code;
    size_t asked, named, given, skipped; /* given: the first candidate gives the tensor */
};

#endif
