/* Tensors of a plan, or in memory. */
#include "api/formats/source.h"

#include <string.h>

struct pe_output api_held_output(const char *name, const struct pe_tensor *tensor)
{
    uint64_t count = 0;
    struct pe_output output = {.name = name, .dtype = tensor->dtype, .rank = tensor->rank, .row_len = 1};
    memcpy(output.shape, tensor->shape, sizeof output.shape);
    pe_shape_count(tensor->shape, tensor->rank, &count); /* the product fits: the elements are in memory */
    if (tensor->rank > 0)
        output.row_len = tensor->shape[tensor->rank - 1];
    output.n_rows = output.row_len ? count / output.row_len : 0;
    return output;
}

size_t api_source_count(const struct api_source *source)
{
    return source->plan ? pe_plan_n_outputs(source->plan) : source->n_held;
}

const struct pe_output *api_source_output(const struct api_source *source, size_t i)
{
    return source->plan ? pe_plan_output(source->plan, i) : &source->held[i].output;
}

enum pe_pace api_source_pace(const struct api_source *source)
{
    return source->plan ? pe_plan_pace(source->plan) : PE_QUICK;
}

double api_source_work(const struct api_source *source) { return source->plan ? pe_plan_work(source->plan) : 0; }

double api_source_bytes(const struct api_source *source) { return source->plan ? pe_plan_bytes(source->plan) : 0; }

void api_source_fill(const struct api_source *source, size_t i, uint64_t first, size_t n, void *dst)
{
    if (source->plan) {
        pe_fill(source->plan, i, first, n, dst);
        return;
    }
    size_t size = pe_dtype_size(source->held[i].output.dtype);
    memcpy(dst, (const char *)source->held[i].elements + first * size, n * size);
}
