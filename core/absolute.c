/* Combining an absolute encoding with embeddings: combined = f(x · x_scale, encoding · pe_scale). */
#include "core/absolute.h"
#include "core/scheme.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum combine { ADD, MULTIPLY, MULTIPLY_RESIDUAL, CONCAT };
static const char *const combine_words[] = {
    [ADD] = "add", [MULTIPLY] = "multiply", [MULTIPLY_RESIDUAL] = "multiply_residual", [CONCAT] = "concat", NULL};

struct fields {
    int combine;
    const struct pe_value *x_scale, *pe_scale;
    bool channels_first;
};

struct pe_absolute {
    struct fields fields;
    struct pe_tensor x; /* [..., n, width]; rank 0: none */
    bool x_from_text;
    double x_scale, pe_scale;
    bool prefers_channels_first;
};

static const struct pe_param rows[] = {
    PE_P_WORD(
        fields, combine, combine_words,
        "with x: add; multiply; multiply_residual: x·(1 + encoding); concat: the encoding's channels behind those "
        "of x"),
    PE_P_VALUE(fields, x_scale, "with x: factor on x, a number or \"sqrt_dim\" (the original Transformer); default 1"),
    PE_P_VALUE(fields, pe_scale, "with x: factor on the encoding, a number or \"sqrt_dim\"; default 1"),
    PE_P_BOOL(fields, channels_first, false,
              "over a grid: [dim, …grid] instead of [n, dim]; default true for DETR's two encodings"),
    PE_P_END,
};

const struct pe_param *pe_absolute_params(void) { return rows; }

/* ---- Reading ---- */

static enum pe_status read_x(struct pe_plan *plan, const struct pe_field *field, struct pe_error *err)
{
    struct pe_absolute *a = plan->absolute;
    const struct pe_tensor *x = &field->value.array;
    uint64_t count;
    if (field->value.kind != PE_ARRAY || x->rank < 2)
        return pe_fail(err, "/x", "x is not a tensor of at least two axes; needed: [..., n, dim]");
    if (!pe_shape_count(x->shape, x->rank, &count) || count == 0)
        return pe_fail(err, "/x", "x has no elements");
    a->x = *x;
    a->x_from_text = field->value.from_text;
    return PE_OK;
}

/* A scheme's own pe_scale (integer) is its encoding's, so it is not applied again. */
static bool scheme_owns(const struct pe_plan *plan, const char *name)
{
    return pe_param_find(plan->scheme->info.params, name) != NULL;
}

enum pe_status pe_absolute_read(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                struct pe_error *err)
{
    struct pe_absolute *a = plan->absolute = calloc(1, sizeof *a);
    if (!a)
        return pe_no_memory(err);
    enum pe_status status = pe_params_read(rows, &a->fields, request->fields, request->n_fields, taken, "", err);
    for (size_t i = 0; !status && i < request->n_fields; i++)
        if (strcmp(request->fields[i].name, "x") == 0) {
            taken[i] = true;
            status = read_x(plan, &request->fields[i], err);
        }
    if (scheme_owns(plan, "pe_scale"))
        a->fields.pe_scale = NULL;
    bool is_free = a->fields.combine == CONCAT && pe_plan_gave(plan, "dim");
    if (status || !a->x.rank || is_free || !pe_param_find(plan->scheme->info.params, "dim"))
        return status;
    return pe_fix_size(plan, "dim", a->x.shape[a->x.rank - 1], "x", err);
}

/* Rows in front of the sequence's, where a scheme keeps some: class tokens. */
static uint64_t n_prefix(const struct pe_plan *plan)
{
    int64_t n = 0;
    pe_param_integer(plan->scheme->info.params, plan->config, "num_prefix", strlen("num_prefix"), &n);
    return (uint64_t)n;
}

uint64_t pe_absolute_n(const struct pe_plan *plan)
{
    const struct pe_absolute *a = plan->absolute;
    uint64_t n = a && a->x.rank ? a->x.shape[a->x.rank - 2] : 0, prefix = n_prefix(plan);
    return n > prefix ? n - prefix : 0;
}

bool pe_absolute_has_x(const struct pe_plan *plan) { return plan->absolute && plan->absolute->x.rank; }

void pe_absolute_give_x(struct pe_plan *plan, const struct pe_tensor *x)
{
    plan->absolute->x = *x;
    plan->absolute->x_from_text = false;
}

void pe_absolute_prefer_channels_first(struct pe_plan *plan) { plan->absolute->prefers_channels_first = true; }

/* ---- Judging ---- */

static enum pe_status scale(const char *name, const struct pe_value *v, double dim, double *out, struct pe_error *err)
{
    char pointer[16] = "/";
    strncat(pointer, name, sizeof pointer - 2);
    *out = 1;
    if (!v)
        return PE_OK;
    if (v->kind == PE_STRING && strcmp(v->string, "sqrt_dim") == 0)
        *out = sqrt(dim);
    else if (v->kind == PE_INTEGER)
        *out = (double)v->integer;
    else if (v->kind == PE_REAL && isfinite(v->real))
        *out = v->real;
    else
        return pe_fail(err, pointer, "%s is neither a number nor \"sqrt_dim\"", name);
    return PE_OK;
}

/* A field that needs x, given by the request itself: a preset's is only not used. */
static enum pe_status check_unused(const struct pe_plan *plan, struct pe_error *err)
{
    static const char *const names[] = {"combine", "x_scale", "pe_scale"};
    for (size_t i = 0; i < 3; i++) {
        char pointer[16] = "/";
        strncat(pointer, names[i], sizeof pointer - 2);
        if (!scheme_owns(plan, names[i]) && pe_plan_gave_itself(plan, names[i]))
            return pe_fail(err, pointer, "%s is not used here: it needs the embeddings x", names[i]);
    }
    return PE_OK;
}

enum pe_status pe_absolute_check(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_absolute *a = plan->absolute;
    bool gave = pe_plan_gave_itself(plan, "channels_first");
    if (gave && a->fields.channels_first && !plan->seq.n_grid)
        return pe_fail(err, "/channels_first", "channels_first needs a grid");
    if (gave && a->fields.channels_first && a->x.rank)
        return pe_fail(err, "/channels_first", "channels_first and x exclude each other; give one");
    if (gave && a->fields.channels_first && n_prefix(plan))
        return pe_fail(err, "/channels_first", "channels_first is not used with num_prefix: those rows are on no grid");
    if (!pe_plan_gave(plan, "channels_first"))
        a->fields.channels_first = a->prefers_channels_first;
    if (!plan->seq.n_grid || a->x.rank)
        a->fields.channels_first = false;
    return a->x.rank || plan->operation == PE_ATTEND ? PE_OK : check_unused(plan, err);
}

bool pe_absolute_channels_first(const struct pe_plan *plan)
{
    return plan->absolute && plan->absolute->fields.channels_first;
}

/* ---- The output `combined` ---- */

enum pe_status pe_absolute_shape(struct pe_plan *plan, struct pe_output *combined, const struct pe_output *encoding,
                                 struct pe_error *err)
{
    struct pe_absolute *a = plan->absolute;
    uint64_t x_width = a->x.shape[a->x.rank - 1], width = encoding->row_len;
    if (a->x.shape[a->x.rank - 2] != encoding->n_rows)
        return pe_fail(err, "/x", "x has %llu rows, the encoding %llu; give the same number",
                       (unsigned long long)a->x.shape[a->x.rank - 2], (unsigned long long)encoding->n_rows);
    bool concat = a->fields.combine == CONCAT;
    if (!concat && x_width != width)
        return pe_fail(err, "/x", "x has %llu channels, the encoding %llu; give the same number, or combine: concat",
                       (unsigned long long)x_width, (unsigned long long)width);
    enum pe_status status = scale("x_scale", a->fields.x_scale, (double)x_width, &a->x_scale, err);
    if (!status)
        status = scale("pe_scale", a->fields.pe_scale, (double)width, &a->pe_scale, err);
    combined->rank = a->x.rank;
    memcpy(combined->shape, a->x.shape, sizeof combined->shape);
    combined->row_len = combined->shape[combined->rank - 1] = concat ? x_width + width : width;
    pe_shape_count(a->x.shape, a->x.rank - 1, &combined->n_rows);
    return status;
}

enum pe_dtype pe_absolute_dtype(const struct pe_plan *plan, enum pe_dtype asked)
{
    const struct pe_absolute *a = plan->absolute;
    if (asked != PE_DTYPE_NONE || !a || !a->x.rank || a->x_from_text || !pe_dtype_is_real(a->x.dtype))
        return asked == PE_DTYPE_NONE ? PE_F32 : asked;
    return a->x.dtype;
}

static double meet(const struct pe_absolute *a, double x, double pe)
{
    double left = x * a->x_scale, right = pe * a->pe_scale;
    switch ((enum combine)a->fields.combine) {
    case MULTIPLY: return left * right;
    case MULTIPLY_RESIDUAL: return left * (1 + right);
    default: return left + right;
    }
}

/* Numbers of JSON text are a tensor of f32, like q and k. */
static double x_at(const struct pe_absolute *a, uint64_t i)
{
    double x = pe_element(a->x.dtype, a->x.data, i);
    return a->x_from_text ? (double)(float)x : x;
}

enum { TILE = PE_SCRATCH_BYTES / sizeof(double) };

/* Columns col0 … col0+n-1 of n_rows rows at consecutive positions, meeting the encoding's columns pe_col0 …. */
static void combine_tile(const struct pe_plan *plan, size_t source, const struct pe_output *out,
                         const struct pe_block *b, uint64_t row, size_t n_rows, uint64_t col, size_t n, void *dst)
{
    const struct pe_absolute *a = plan->absolute;
    double pe[TILE];
    uint64_t x_width = a->x.shape[a->x.rank - 1], shift = a->fields.combine == CONCAT ? x_width : 0;
    struct pe_block from = {
        .row0 = row % plan->outputs[source].n_rows, .n_rows = n_rows, .col0 = col - shift, .n_cols = n};
    pe_plan_fill_source(plan, source, PE_F64, &from, pe);
    for (size_t i = 0; i < n_rows; i++)
        for (size_t j = 0; j < n; j++) {
            uint64_t to = (row - b->row0 + i) * b->n_cols + (col - b->col0 + j);
            double v =
                shift ? pe[i * n + j] * a->pe_scale : meet(a, x_at(a, (row + i) * x_width + col + j), pe[i * n + j]);
            pe_store(out->dtype, dst, (size_t)to, v);
        }
}

/* concat: the columns of x itself. */
static void copy_x(const struct pe_plan *plan, const struct pe_output *out, const struct pe_block *b, uint64_t end,
                   void *dst)
{
    const struct pe_absolute *a = plan->absolute;
    uint64_t width = a->x.shape[a->x.rank - 1];
    for (uint64_t i = 0; i < b->n_rows; i++)
        for (uint64_t col = b->col0; col < end; col++)
            pe_store(out->dtype, dst, (size_t)(i * b->n_cols + col - b->col0),
                     x_at(a, (b->row0 + i) * width + col) * a->x_scale);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

void pe_absolute_combine(const struct pe_plan *plan, size_t source, const struct pe_output *out,
                         const struct pe_block *b, void *dst)
{
    const struct pe_absolute *a = plan->absolute;
    uint64_t first = b->col0, end = b->col0 + b->n_cols, n = plan->outputs[source].n_rows;
    if (a->fields.combine == CONCAT) {
        uint64_t width = a->x.shape[a->x.rank - 1];
        copy_x(plan, out, b, least(width, end), dst);
        first = first > width ? first : width;
    }
    for (uint64_t col = first, n_cols; col < end; col += n_cols) {
        n_cols = least(end - col, TILE);
        for (uint64_t row = b->row0, m; row < b->row0 + b->n_rows; row += m) {
            m = least(least(b->row0 + b->n_rows - row, n - row % n), TILE / n_cols);
            combine_tile(plan, source, out, b, row, (size_t)m, col, (size_t)n_cols, dst);
        }
    }
}

/* ---- The config ---- */

size_t pe_absolute_print(const struct pe_plan *plan, struct pe_field *fields)
{
    const struct pe_absolute *a = plan->absolute;
    size_t n = 0;
    if (!a)
        return 0;
    if (a->x.rank) {
        fields[n++] = (struct pe_field){"combine", {.kind = PE_STRING, .string = combine_words[a->fields.combine]}};
        fields[n++] = (struct pe_field){"x_scale", {.kind = PE_REAL, .real = a->x_scale}};
        if (!scheme_owns(plan, "pe_scale"))
            fields[n++] = (struct pe_field){"pe_scale", {.kind = PE_REAL, .real = a->pe_scale}};
    }
    if (plan->seq.n_grid && !a->x.rank)
        fields[n++] = (struct pe_field){"channels_first", {.kind = PE_BOOLEAN, .boolean = a->fields.channels_first}};
    return n;
}

void pe_absolute_drop(struct pe_plan *plan) { free(plan->absolute); }
