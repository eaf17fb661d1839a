/* What a request will cost: planning it, told from its fields alone, and filling, told by its plan. */
#include "core/inherit.h"
#include "core/limits.h"
#include "core/reduce.h"
#include "core/scheme.h"
#include "core/slice.h"
#include "core/attention/attention.h"

#include <math.h>
#include <string.h>

/* Parameters that count columns: each is an exponential or a row of weights at plan time. */
static const char *const widths[] = {"dim",    "head_dim", "num_freqs", "num_bands",   "num_heads",
                                     "hidden", "d_model",  "bar_dim",   "num_buckets", NULL};

/* Lists whose numbers add up: positions, or coordinates and taps of each axis. */
static const char *const sums[] = {"lens", "grid", "table_grid", NULL};

/* Three projections of 512 by 512 at random: tens of milliseconds. */
#define SIZE_OF_TOKENS 1e5

static double number(const struct pe_value *v)
{
    return v->kind == PE_INTEGER ? (double)v->integer : v->kind == PE_REAL ? v->real : 0;
}

static double sum(const struct pe_tensor *list)
{
    double total = 0;
    for (uint64_t i = 0; list->rank == 1 && list->dtype == PE_F64 && i < list->shape[0]; i++)
        total += ((const double *)list->data)[i];
    return total;
}

static double product(const struct pe_tensor *list)
{
    double total = 1;
    for (uint64_t i = 0; list->rank == 1 && list->dtype == PE_F64 && i < list->shape[0]; i++)
        total *= ((const double *)list->data)[i];
    return total;
}

/* Tokens of a segment: its lengths and the patches of its grid. */
static double tokens(const struct pe_value *segment)
{
    double total = 0;
    for (size_t i = 0; segment->kind == PE_OBJECT && i < segment->object.n; i++) {
        const struct pe_value *v = &segment->object.fields[i].value;
        total += v->kind == PE_ARRAY ? product(&v->array) : number(v);
    }
    return total;
}

static bool is_among(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (pe_same(*names, name))
            return true;
    return false;
}

static double size_of(const struct pe_field *field)
{
    double total = 0;
    const struct pe_value *v = &field->value;
    if (v->kind == PE_ARRAY)
        return is_among(sums, field->name) ? sum(&v->array) : 0;
    if (v->kind == PE_LIST && pe_same(field->name, "segments"))
        for (size_t i = 0; i < v->list.n; i++)
            total += tokens(&v->list.items[i]);
    else if (number(v) != 0 && is_among(widths, field->name))
        return number(v);
    return total;
}

/* Attention reads its tensors through once to choose a precision; embeddings are projected, words made up. */
static double attention_size(const struct pe_field *field)
{
    const struct pe_value *v = &field->value;
    uint64_t n = 0;
    if (strcmp(field->name, "tokens") == 0)
        return SIZE_OF_TOKENS;
    if (v->kind == PE_ARRAY && v->array.rank > 1)
        pe_shape_count(v->array.shape, v->array.rank, &n);
    return (double)n / (strcmp(field->name, "x") == 0 ? 1 : 32);
}

/* What the request says and what it inherits: the numbers of a model's config are whoever sent it's, like any other. A
 * request that cannot be merged will be refused for that, before anything is made of it. */
struct said {
    const struct pe_field *fields;
    size_t n;
    struct pe_inheritance merged;
};

static void said_by(const struct pe_request *request, struct said *said)
{
    struct pe_error err;
    bool has_model = false;
    said->fields = request->fields;
    said->n = request->n_fields;
    for (size_t i = 0; i < request->n_fields; i++)
        has_model =
            has_model || pe_same(request->fields[i].name, "preset") || pe_same(request->fields[i].name, "hf_config");
    if (!has_model || pe_inherit(&said->merged, request, &err) != PE_OK)
        return;
    said->fields = said->merged.fields;
    said->n = said->merged.n;
}

double pe_request_size(const struct pe_request *request)
{
    double total = 0;
    struct said said;
    said_by(request, &said);
    for (size_t i = 0; request->operation == PE_ATTEND && i < said.n; i++)
        total += attention_size(&said.fields[i]);
    for (size_t i = 0; i < said.n; i++)
        total += fmax(size_of(&said.fields[i]), 0);
    return total;
}

/* ---- Memory of planning ---- */

/* A plan and what it holds whatever is asked. */
enum { BYTES_OF_PLAN = 96 << 10 };

/* A column of a table, all that is laid out for it; a single position on each of its axes; a number of a tensor, as it
 * is kept: widened, and once more while it is read. */
enum { HEADS = 16 }; /* where the request leaves them to the scheme */
enum { BYTES_OF_COLUMN = 768, BYTES_OF_POSITION = 96, BYTES_OF_NUMBER = 16 };

struct extent {
    double columns, heads, width;   /* summed; of the fields that say so; the widest */
    double positions, listed;       /* how long a sequence; of it, positions that are kept one by one */
    double numbers, window;         /* of tensors; biases of a window */
    const struct pe_scheme *scheme; /* NULL: none that is known */
};

static double longest(const struct pe_tensor *tensor)
{
    uint64_t n = 0;
    for (unsigned i = 0; i + 1 < tensor->rank; i++)
        n = tensor->shape[i] > n ? tensor->shape[i] : n;
    return (double)n;
}

static void measure_array(struct extent *e, const char *name, const struct pe_tensor *array)
{
    uint64_t n = 0;
    pe_shape_count(array->shape, array->rank, &n);
    e->listed += array->rank == 1 ? (double)n : 0;
    e->numbers += (double)n;
    if (array->rank > 1) {
        e->positions = fmax(e->positions, longest(array));
        e->width = fmax(e->width, (double)array->shape[array->rank - 1]);
    }
    if (strcmp(name, "grid") == 0 || strcmp(name, "window_size") == 0)
        e->window = fmax(e->window, 4 * product(array)); /* (2h - 1) (2w - 1) */
}

static void measure(struct extent *e, const struct pe_field *field)
{
    static const char *const lengths[] = {"len", "q_len", "k_len", NULL};
    const struct pe_value *v = &field->value;
    const char *name = field->name;
    double x = fmax(number(v), 0);
    if (is_among(widths, name)) {
        e->columns += x;
        e->width = fmax(e->width, x);
    }
    if (is_among(lengths, name))
        e->positions += x;
    if (pe_same(name, "num_heads"))
        e->heads = x;
    if (pe_same(name, "scheme") && v->kind == PE_STRING)
        e->scheme = pe_scheme_get(v->string);
    if (v->kind == PE_ARRAY)
        measure_array(e, name, &v->array);
    else if (v->kind == PE_LIST)
        e->listed += size_of(field);
}

double pe_request_bytes(const struct pe_request *request)
{
    struct extent e = {.heads = HEADS, .width = 1};
    struct said said;
    said_by(request, &said);
    for (size_t i = 0; i < said.n; i++)
        measure(&e, &said.fields[i]);
    if (said.fields == said.merged.fields)
        e.scheme = said.merged.scheme;
    double bytes = BYTES_OF_PLAN + BYTES_OF_COLUMN * fmin(e.columns, PE_DIM_MAX) +
                   BYTES_OF_POSITION * fmin(e.listed, PE_LISTED_POSITIONS_MAX) + BYTES_OF_NUMBER * e.numbers;
    double rows = fmax(e.positions, 1);
    if (!e.scheme || e.scheme->is_pairwise) /* biases of all distances */
        bytes += fmin(2 * rows * e.heads * (request->dtype == PE_F64 ? 8 : 4), PE_BIAS_KEPT_MAX);
    if (!e.scheme || pe_param_find(e.scheme->info.params, "num_heads")) /* or of a window */
        bytes += fmin(e.window * e.heads, PE_WINDOW_BIASES_MAX) * sizeof(double);
    if (!e.scheme || e.scheme->is_stepping)
        bytes += fmin(rows * e.width * sizeof(double), PE_STEPS_KEPT_MAX) +
                 fmin(4 * e.width * e.width, PE_NETWORK_WEIGHTS_MAX) * sizeof(double);
    if (request->operation != PE_ENCODE) /* cosines and sines of queries and of keys, encodings of distances */
        bytes += fmin(2 * rows * e.width * e.heads * sizeof(double), PE_ROTATION_TABLE_MAX);
    return bytes;
}

/* ---- Work of filling ---- */

/* Multiply-adds that take as long as making one element: a nanosecond or some, and microseconds. */
static const double element_work[] = {[PE_QUICK] = 4, [PE_SLOW] = PE_SLOW_WORK, [PE_HEAVY] = 4};

double pe_plan_work(const struct pe_plan *plan)
{
    double work = plan->work, each = plan->element_work > 0 ? plan->element_work : element_work[plan->pace], passes = 1;
    for (size_t i = 0; i < plan->n_outputs; i++) {
        work += pe_slice_work(plan, i, plan->attention ? 0 : each); /* a map is counted whole */
        passes = fmax(passes, pe_reduce_passes(plan, i));
    }
    return work * passes;
}

double pe_plan_bytes(const struct pe_plan *plan)
{
    return (plan->attention ? pe_attention_bytes(plan) : 0) + pe_tallies_bytes(plan);
}
