/* Tensors that an operation transforms: reads them and finds their axes. */
#include "core/request/operand.h"
#include "core/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pe_tensor_layout_words[] = {[PE_BHND] = "bhnd", [PE_BNHD] = "bnhd", NULL};

void pe_shape_print(const uint64_t *shape, unsigned rank, char *out, size_t room)
{
    size_t used = (size_t)snprintf(out, room, "[");
    for (unsigned i = 0; i < rank && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%llu", i ? "," : "", (unsigned long long)shape[i]);
    if (used < room)
        snprintf(out + used, room - used, "]");
}

static enum pe_status wrong_rank(const struct pe_tensor *t, const char *name, const char *pointer, struct pe_error *err)
{
    char shape[128];
    pe_shape_print(t->shape, t->rank, shape, sizeof shape);
    return pe_fail(
        err, pointer,
        "%s has the shape %s, %u dimensions; allowed: [batch, heads, n, head_dim], where leading axes may be "
        "missing",
        name, shape, t->rank);
}

static enum pe_status check_tensor(const struct pe_field *field, const char *pointer, struct pe_error *err)
{
    const struct pe_tensor *t = &field->value.array;
    uint64_t count;
    if (field->value.kind != PE_ARRAY)
        return pe_fail(err, pointer, "%s is not a tensor; send nested lists of numbers, a .npy part or safetensors",
                       field->name);
    if (t->rank < 2 || t->rank > 4)
        return wrong_rank(t, field->name, pointer, err);
    if (!pe_shape_count(t->shape, t->rank, &count) || count == 0)
        return pe_fail(err, pointer, "%s has no elements", field->name);
    if (t->shape[t->rank - 1] > PE_HEAD_DIM_MAX)
        return pe_fail(err, pointer, "%s has head_dim %llu; allowed: up to %d", field->name,
                       (unsigned long long)t->shape[t->rank - 1], PE_HEAD_DIM_MAX);
    return PE_OK;
}

/* Numbers from JSON text without a dtype count as a tensor of f32. */
static enum pe_status text_to_f32(struct pe_operand *op, struct pe_error *err)
{
    uint64_t n;
    pe_shape_count(op->tensor.shape, op->tensor.rank, &n);
    op->owned = malloc(n * sizeof(float));
    if (!op->owned)
        return pe_no_memory(err);
    pe_convert(PE_F32, op->owned, op->tensor.dtype, op->tensor.data, n);
    op->tensor.dtype = PE_F32;
    op->tensor.data = op->owned;
    return PE_OK;
}

static void place_axes(struct pe_operand *op, enum pe_tensor_layout layout)
{
    const struct pe_tensor *t = &op->tensor;
    uint64_t shape[4] = {1, 1, 1, 1}; /* missing leading axes have length 1 */
    memcpy(shape + (4 - t->rank), t->shape, t->rank * sizeof *shape);
    bool heads_inside = layout == PE_BNHD && t->rank > 2;
    op->n_batches = layout == PE_BNHD && t->rank == 3 ? 1 : shape[0];
    op->n_heads = heads_inside ? shape[2] : shape[1];
    op->n = heads_inside ? shape[1] : shape[2];
    op->width = shape[3];
    op->row_step = heads_inside ? op->n_heads * op->width : op->width;
    op->head_step = heads_inside ? op->width : op->n * op->width;
    op->batch_step = op->n_heads * op->n * op->width;
}

enum pe_status pe_operand_take(struct pe_operand *op, const struct pe_request *request, const char *name,
                               enum pe_tensor_layout layout, bool *taken, struct pe_error *err)
{
    char pointer[16] = "/";
    strncat(pointer, name, sizeof pointer - 2);
    *op = (struct pe_operand){.name = name};
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct pe_field *field = &request->fields[i];
        if (strcmp(field->name, name) != 0)
            continue;
        taken[i] = true;
        enum pe_status status = check_tensor(field, pointer, err);
        if (status)
            return status;
        op->tensor = field->value.array;
        place_axes(op, layout);
        return field->value.from_text ? text_to_f32(op, err) : PE_OK;
    }
    return PE_OK;
}

void pe_operand_drop(struct pe_operand *op) { free(op->owned); }
