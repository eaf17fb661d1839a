/* What planning a request will cost, told from its fields alone. */
#include "core/posenc.h"

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

static double size_of(const struct pe_field *field)
{
    double total = 0;
    const struct pe_value *v = &field->value;
    for (size_t i = 0; widths[i]; i++)
        if (strcmp(widths[i], field->name) == 0)
            return number(v);
    for (size_t i = 0; v->kind == PE_ARRAY && sums[i]; i++)
        if (strcmp(sums[i], field->name) == 0)
            return sum(&v->array);
    for (size_t i = 0; strcmp(field->name, "segments") == 0 && v->kind == PE_LIST && i < v->list.n; i++)
        total += tokens(&v->list.items[i]);
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

double pe_request_size(const struct pe_request *request)
{
    double total = 0;
    for (size_t i = 0; request->operation == PE_ATTEND && i < request->n_fields; i++)
        total += attention_size(&request->fields[i]);
    for (size_t i = 0; i < request->n_fields; i++)
        total += fmax(size_of(&request->fields[i]), 0);
    return total;
}
