/* The tensors of golden vectors: their names and shapes, and their numbers.
 *
 * Tables are those of a plan, correctly rounded. Queries and keys are drawn from the seed and rounded to the dtype;
 * they are rotated in double with correctly rounded cosines and rounded once, so what a port computes may differ from
 * them by its own roundings only. */
#include "core/golden/golden.h"
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names and shapes ---- */

static const char *suffix_of(const struct pe_golden *golden, size_t kind, char text[80])
{
    const char *name = golden->kinds[kind].name;
    snprintf(text, 80, "%s%s", *name ? "." : "", name);
    return text;
}

static struct pe_golden_tensor *add_tensor(struct pe_golden *golden, enum pe_golden_role role, size_t kind)
{
    struct pe_golden_tensor *t = &golden->tensors[golden->n_tensors++];
    *t = (struct pe_golden_tensor){.role = role, .kind = kind, .named.tensor.dtype = golden->dtype};
    return t;
}

static bool is_whole(const struct pe_golden_places *places)
{
    for (size_t i = 0; i < places->n_axes * places->n; i++)
        if (places->at[i] != floor(places->at[i]))
            return false;
    return true;
}

static void add_places(struct pe_golden *golden, enum pe_golden_role role, const char *name,
                       const struct pe_golden_places *places)
{
    struct pe_golden_tensor *t = add_tensor(golden, role, 0);
    struct pe_tensor *tensor = &t->named.tensor;
    snprintf(t->name, sizeof t->name, "%s", name);
    tensor->dtype = is_whole(places) ? PE_I64 : PE_F64;
    if (places->n_axes > 1)
        tensor->shape[tensor->rank++] = places->n_axes;
    tensor->shape[tensor->rank++] = places->n;
}

static uint64_t head_dim_of(const struct pe_golden *golden, size_t kind)
{
    const struct pe_value *d = pe_golden_config_find(&golden->kinds[kind], "head_dim");
    return d && d->kind == PE_INTEGER ? (uint64_t)d->integer : 0;
}

static void add_operand(struct pe_golden *golden, enum pe_golden_role role, char side, size_t kind, const char *suffix)
{
    struct pe_golden_tensor *t = add_tensor(golden, role, kind);
    struct pe_tensor *tensor = &t->named.tensor;
    t->side = side;
    snprintf(t->name, sizeof t->name, "%c%s%s", side, role == PE_GOLDEN_ROTATED ? "_out" : "", suffix);
    tensor->rank = 4; /* [1, heads, n, head_dim] */
    tensor->shape[0] = 1;
    tensor->shape[1] = side == 'q' ? golden->n_heads : 1;
    tensor->shape[2] = golden->q.n;
    tensor->shape[3] = head_dim_of(golden, kind);
}

static void add_kind(struct pe_golden *golden, size_t kind)
{
    char suffix[80];
    suffix_of(golden, kind, suffix);
    if (golden->family == PE_GOLDEN_ROTARY) {
        if (golden->has_widths || kind == 0) {
            add_operand(golden, PE_GOLDEN_DRAWN, 'q', kind, golden->has_widths ? suffix : "");
            add_operand(golden, PE_GOLDEN_DRAWN, 'k', kind, golden->has_widths ? suffix : "");
        }
        add_operand(golden, PE_GOLDEN_ROTATED, 'q', kind, suffix);
        add_operand(golden, PE_GOLDEN_ROTATED, 'k', kind, suffix);
    }
    /* The plan of one position has the shape, but for the number of positions. */
    const struct pe_plan *plan = golden->kinds[kind].plan;
    for (size_t i = 0; i < pe_plan_n_outputs(plan); i++) {
        const struct pe_output *output = pe_plan_output(plan, i);
        struct pe_golden_tensor *t = add_tensor(golden, PE_GOLDEN_TABLE, kind);
        struct pe_tensor *tensor = &t->named.tensor;
        snprintf(t->name, sizeof t->name, "%.40s%s", output->name, suffix);
        t->output = i;
        tensor->dtype = output->dtype;
        tensor->rank = output->rank;
        memcpy(tensor->shape, output->shape, sizeof tensor->shape);
        if (golden->family == PE_GOLDEN_BIAS && !golden->has_window) {
            tensor->shape[output->rank - 2] = golden->q.n;
            tensor->shape[output->rank - 1] = golden->keys.n;
        } else if (output->rank == 2) {
            tensor->shape[0] = golden->q.n;
        }
    }
}

enum pe_status pe_golden_lay_out(struct pe_golden *golden, struct pe_failure *err)
{
    enum { OF_PLACES = 2, OF_KIND = 7 };
    bool is_bias = golden->family == PE_GOLDEN_BIAS;
    if (!golden->tensors)
        golden->tensors = calloc(OF_PLACES + OF_KIND * golden->n_kinds, sizeof *golden->tensors);
    if (!golden->tensors)
        return pe_no_memory(err);
    golden->n_tensors = 0;
    if (!golden->has_window)
        add_places(golden, PE_GOLDEN_POSITIONS, is_bias ? "q_positions" : "position_ids", &golden->q);
    if (is_bias && !golden->has_window)
        add_places(golden, PE_GOLDEN_KEY_POSITIONS, "k_positions", &golden->keys);
    for (size_t i = 1; i < golden->n_kinds; i++)
        golden->has_widths |= head_dim_of(golden, i) != head_dim_of(golden, 0);
    for (size_t i = 0; i < golden->n_kinds; i++)
        add_kind(golden, i);
    for (size_t i = 0; i < golden->n_tensors; i++)
        golden->tensors[i].named.name = golden->tensors[i].name;
    return PE_OK;
}

static uint64_t count_of(const struct pe_tensor *tensor)
{
    uint64_t n = 0;
    pe_shape_count(tensor->shape, tensor->rank, &n);
    return n;
}

size_t pe_golden_bytes(const struct pe_golden_tensor *tensor)
{
    return (size_t)count_of(&tensor->named.tensor) * pe_dtype_size(tensor->named.tensor.dtype);
}

/* ---- Numbers ---- */

static void *data_of(struct pe_golden_tensor *t) { return (void *)(uintptr_t)t->named.tensor.data; }

static void fill_places(struct pe_golden_tensor *t, const struct pe_golden_places *places)
{
    pe_convert(t->named.tensor.dtype, data_of(t), PE_F64, places->at, places->n_axes * places->n);
}

/* The numbers that {"shape":…,"seed":…,"std":1} has under the name q or k. */
static enum pe_status draw(const struct pe_golden *golden, struct pe_golden_tensor *t, struct pe_failure *err)
{
    size_t n = (size_t)count_of(&t->named.tensor);
    float *drawn = malloc((n + !n) * sizeof *drawn);
    if (!drawn)
        return pe_no_memory(err);
    pe_seed_fill(golden->fields.seed, (char[]){t->side, '\0'}, 1, 0, n, drawn);
    pe_convert(t->named.tensor.dtype, data_of(t), PE_F32, drawn, n);
    free(drawn);
    return PE_OK;
}

static struct pe_golden_tensor *find_tensor(const struct pe_golden *golden, enum pe_golden_role role, char side,
                                            size_t kind)
{
    for (size_t i = 0; i < golden->n_tensors; i++)
        if (golden->tensors[i].role == role && golden->tensors[i].side == side && golden->tensors[i].kind == kind)
            return &golden->tensors[i];
    return NULL;
}

/* values: room for the numbers of both, before and after the rotation. */
static enum pe_status rotate(struct pe_golden *golden, struct pe_golden_tensor *out, double *values,
                             struct pe_failure *err)
{
    struct pe_golden_tensor *in = find_tensor(golden, PE_GOLDEN_DRAWN, out->side, golden->has_widths ? out->kind : 0);
    size_t n = (size_t)count_of(&in->named.tensor);
    struct pe_tensor before = in->named.tensor;
    struct pe_plan *plan = NULL;
    pe_convert(PE_F64, values, before.dtype, before.data, n);
    before.dtype = PE_F64;
    before.data = values;
    const char name[] = {out->side, '\0'};
    struct pe_golden_ask ask = {.operation = PE_ROTATE, .dtype = PE_F64, .n_extra = 2};
    ask.extra[0] = (struct pe_field){"positions", pe_golden_places_value(&golden->q)};
    ask.extra[1] = (struct pe_field){name, {.kind = PE_ARRAY, .array = before}};
    if (out->side == 'q' && golden->fields.query_scale.is_given)
        ask.extra[ask.n_extra++] = (struct pe_field){"query_scale", pe_query_scale_value(&golden->fields.query_scale)};
    if (pe_golden_plan(golden, &golden->kinds[out->kind], &ask, &plan, err))
        return err->status;
    pe_fill(plan, 0, 0, n, values + n);
    pe_plan_free(plan);
    pe_convert(out->named.tensor.dtype, data_of(out), PE_F64, values + n, n);
    return PE_OK;
}

static enum pe_status rotate_both(struct pe_golden *golden, size_t kind, struct pe_failure *err)
{
    struct pe_golden_tensor *q = find_tensor(golden, PE_GOLDEN_ROTATED, 'q', kind);
    struct pe_golden_tensor *k = find_tensor(golden, PE_GOLDEN_ROTATED, 'k', kind);
    double *values = malloc((2 * (size_t)count_of(&q->named.tensor) + 1) * sizeof *values); /* k has no more heads */
    if (!values)
        return pe_no_memory(err);
    enum pe_status status = rotate(golden, q, values, err);
    if (!status)
        status = rotate(golden, k, values, err);
    free(values);
    return status;
}

static enum pe_status check_work(const struct pe_golden *golden, const struct pe_plan *plan, struct pe_failure *err)
{
    double work = pe_plan_work(plan), most = golden->request->max_work;
    if (work <= most)
        return PE_OK;
    pe_fail(err, "", "these vectors need %.3g multiply-adds; allowed: at most %.3g", work, most);
    err->status = PE_TOO_LARGE;
    return pe_advise(err, PE_RAISE_ANALYSIS, NULL);
}

static enum pe_status fill_tables(struct pe_golden *golden, size_t kind, struct pe_failure *err)
{
    struct pe_golden_ask ask;
    struct pe_plan *plan = NULL;
    pe_golden_ask_tables(golden, &golden->q, &golden->keys, &ask);
    enum pe_status status = pe_golden_plan(golden, &golden->kinds[kind], &ask, &plan, err);
    if (!status)
        status = check_work(golden, plan, err);
    for (size_t i = 0; !status && i < golden->n_tensors; i++) {
        struct pe_golden_tensor *t = &golden->tensors[i];
        if (t->role == PE_GOLDEN_TABLE && t->kind == kind)
            pe_fill(plan, t->output, 0, (size_t)count_of(&t->named.tensor), data_of(t));
    }
    pe_plan_free(plan);
    return status;
}

static enum pe_status measure(struct pe_golden_tensor *t, struct pe_failure *err)
{
    size_t n = (size_t)count_of(&t->named.tensor);
    double *values = malloc((n + !n) * sizeof *values);
    if (!values)
        return pe_no_memory(err);
    pe_convert(PE_F64, values, t->named.tensor.dtype, t->named.tensor.data, n);
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i])) /* a bias may hide keys */
            t->largest = fmax(t->largest, fabs(values[i]));
    free(values);
    return PE_OK;
}

/* One allocation for all; each begins at a multiple of eight bytes. */
static enum pe_status allocate(struct pe_golden *golden, struct pe_failure *err)
{
    size_t n = 0;
    for (size_t i = 0; i < golden->n_tensors; i++)
        n += (pe_golden_bytes(&golden->tensors[i]) + 7) / 8 * 8;
    golden->room = calloc(n + !n, 1);
    if (!golden->room)
        return pe_no_memory(err);
    char *at = golden->room;
    for (size_t i = 0; i < golden->n_tensors; at += (pe_golden_bytes(&golden->tensors[i++]) + 7) / 8 * 8)
        golden->tensors[i].named.tensor.data = at;
    return PE_OK;
}

enum pe_status pe_golden_fill(struct pe_golden *golden, struct pe_failure *err)
{
    enum pe_status status = allocate(golden, err);
    for (size_t i = 0; !status && i < golden->n_tensors; i++) {
        struct pe_golden_tensor *t = &golden->tensors[i];
        if (t->role == PE_GOLDEN_POSITIONS || t->role == PE_GOLDEN_KEY_POSITIONS)
            fill_places(t, t->role == PE_GOLDEN_POSITIONS ? &golden->q : &golden->keys);
        else if (t->role == PE_GOLDEN_DRAWN)
            status = draw(golden, t, err);
    }
    for (size_t kind = 0; !status && kind < golden->n_kinds; kind++) {
        status = fill_tables(golden, kind, err);
        if (!status && golden->family == PE_GOLDEN_ROTARY)
            status = rotate_both(golden, kind, err);
    }
    for (size_t i = 0; !status && i < golden->n_tensors; i++)
        status = measure(&golden->tensors[i], err);
    return status;
}

double pe_golden_tolerance(const struct pe_golden_tensor *tensor)
{
    bool is_rotated = tensor->role == PE_GOLDEN_ROTATED;
    struct pe_judge judge = {.id = is_rotated ? PE_OF_ROTATED : PE_OF_TABLES,
                             .dtype = tensor->named.tensor.dtype,
                             .u = pe_roundoff(tensor->named.tensor.dtype),
                             .largest = tensor->largest};
    return pe_exact_most(&judge);
}
