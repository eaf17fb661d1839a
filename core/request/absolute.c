/* The fields that state how an encoding is combined with embeddings, and the tensor x. */
#include "core/request/request.h"
#include "core/scheme.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const combine_words[] = {[PE_ADD] = "add",
                                            [PE_MULTIPLY] = "multiply",
                                            [PE_MULTIPLY_RESIDUAL] = "multiply_residual",
                                            [PE_CONCAT] = "concat",
                                            NULL};

static const struct pe_param rows[] = {
    PE_P_WORD(
        pe_absolute_fields, combine, combine_words, "combination",
        "with x: add; multiply; multiply_residual: x·(1 + encoding); concat: the encoding's channels after those of x",
        .group = PE_G_COMBINATION),
    PE_P_VALUE(pe_absolute_fields, x_scale, "scale of the embeddings",
               "with x: factor on x, a number or \"sqrt_dim\" (the original Transformer); default 1",
               .group = PE_G_COMBINATION),
    PE_P_VALUE(pe_absolute_fields, pe_scale, "scale of the encoding",
               "with x: factor on the encoding, a number or \"sqrt_dim\"; default 1", .group = PE_G_COMBINATION),
    PE_P_BOOL(pe_absolute_fields, channels_first, false, "channels first",
              "over a grid: [dim, …grid] instead of [n, dim]; default true for DETR's two encodings",
              .group = PE_G_COMBINATION),
    PE_P_END,
};

const struct pe_param *pe_absolute_params(void) { return rows; }

/* ---- Reading ---- */

static enum pe_status read_x(struct pe_plan *plan, const struct pe_field *field, struct pe_failure *err)
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

/* A scheme's own pe_scale (integer) is already part of its encoding, so it is not applied again. */
static bool owns(const struct pe_scheme_info *scheme, const char *name)
{
    return pe_param_find(scheme->params, name) != NULL;
}

static bool scheme_owns(const struct pe_plan *plan, const char *name) { return owns(&plan->scheme->info, name); }

bool pe_absolute_needs_x(const struct pe_scheme_info *scheme, const char *name)
{
    return pe_is_among("combine|x_scale|pe_scale", name) && !owns(scheme, name);
}

enum pe_status pe_absolute_read(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                struct pe_failure *err)
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
    bool is_free = a->fields.combine == PE_CONCAT && pe_plan_gave(plan, "dim");
    if (status || !a->x.rank || is_free || !pe_param_find(plan->scheme->info.params, "dim"))
        return status;
    return pe_fix_size(plan, "dim", a->x.shape[a->x.rank - 1], "x", err);
}

/* Rows before the sequence's rows, for schemes with class tokens. */
uint64_t pe_absolute_n_prefix(const struct pe_plan *plan)
{
    int64_t n = 0;
    pe_param_integer(plan->scheme->info.params, plan->config, "num_prefix", strlen("num_prefix"), &n);
    return (uint64_t)n;
}

uint64_t pe_absolute_n(const struct pe_plan *plan)
{
    const struct pe_absolute *a = plan->absolute;
    uint64_t n = a && a->x.rank ? a->x.shape[a->x.rank - 2] : 0, prefix = pe_absolute_n_prefix(plan);
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

enum pe_status pe_absolute_check(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_absolute *a = plan->absolute;
    bool gave = pe_plan_gave_itself(plan, "channels_first");
    if (gave && a->fields.channels_first && !plan->seq.n_grid)
        return pe_fail(err, "/channels_first", "channels_first needs a grid");
    if (gave && a->fields.channels_first && a->x.rank)
        return pe_fail(err, "/channels_first", "channels_first and x exclude each other; give one");
    if (gave && a->fields.channels_first && pe_absolute_n_prefix(plan))
        return pe_fail(err, "/channels_first", "channels_first is not used with num_prefix: those rows are on no grid");
    if (!pe_plan_gave(plan, "channels_first"))
        a->fields.channels_first = a->prefers_channels_first;
    if (!plan->seq.n_grid || a->x.rank)
        a->fields.channels_first = false;
    if (a->x.rank || plan->attention)
        return PE_OK;
    /* Refuses a field that needs x if the request itself gives it; a preset's field is just not used. */
    for (const struct pe_param *row = rows; row->name; row++) {
        char pointer[16] = "/";
        strncat(pointer, row->name, sizeof pointer - 2);
        if (pe_absolute_needs_x(&plan->scheme->info, row->name) && pe_plan_gave_itself(plan, row->name))
            return pe_fail(err, pointer, "%s is not used here: it needs the embeddings x", row->name);
    }
    return PE_OK;
}

bool pe_absolute_channels_first(const struct pe_plan *plan)
{
    return plan->absolute && plan->absolute->fields.channels_first;
}

enum pe_dtype pe_absolute_dtype(const struct pe_plan *plan, enum pe_dtype asked)
{
    const struct pe_absolute *a = plan->absolute;
    if (asked != PE_DTYPE_NONE || !a || !a->x.rank || a->x_from_text || !pe_dtype_is_real(a->x.dtype))
        return asked == PE_DTYPE_NONE ? PE_F32 : asked;
    return a->x.dtype;
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
