/* Tensors that an operation transforms: reads them and finds their axes. */
#include "core/request/request.h"
#include "core/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pe_tensor_layout_words[] = {[PE_BHND] = "bhnd",
                                              [PE_BNHD] = "bnhd",
                                              [PE_NBHD] = "nbhd",
                                              [PE_NHD] = "nhd",
                                              [PE_FLAT] = "flat",
                                              [PE_BFLAT] = "bflat",
                                              NULL};
/* The axes of a layout. */
static const char *const layout_axes[] = {
    [PE_BHND] = "[batch, heads, n, head_dim], where leading axes may be missing",
    [PE_BNHD] = "[batch, n, heads, head_dim], where leading axes may be missing",
    [PE_NBHD] = "[n, batch, heads, head_dim]",
    [PE_NHD] = "[tokens, heads, head_dim]",
    [PE_FLAT] = "[tokens, heads*head_dim] with head_dim given",
    [PE_BFLAT] = "[batch, n, heads*head_dim], where batch may be missing, with head_dim given"};

/* Scores are a map, whose rows are as long as there are keys. */
static bool is_map(const char *name) { return strcmp(name, "scores") == 0; }
static const char map_axes[] = "[batch, heads, queries, keys], where leading axes may be missing";

void pe_shape_print(const uint64_t *shape, unsigned rank, char *out, size_t room)
{
    size_t used = (size_t)snprintf(out, room, "[");
    for (unsigned i = 0; i < rank && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%llu", i ? "," : "", (unsigned long long)shape[i]);
    if (used < room)
        snprintf(out + used, room - used, "]");
}

static enum pe_status wrong_shape(const struct pe_operand *op, const char *pointer, enum pe_tensor_layout layout,
                                  struct pe_failure *err)
{
    char shape[128];
    const struct pe_tensor *t = &op->tensor;
    pe_shape_print(t->shape, t->rank, shape, sizeof shape);
    if (layout == PE_BHND)
        return pe_fail(err, pointer, "%s has the shape %s, %u dimensions; allowed: %s", op->name, shape, t->rank,
                       is_map(op->name) ? map_axes : layout_axes[layout]);
    return pe_fail(err, pointer, "%s has the shape %s, %u dimensions; allowed in the tensor_layout %s: %s", op->name,
                   shape, t->rank, pe_tensor_layout_words[layout], layout_axes[layout]);
}

static enum pe_status check_tensor(const struct pe_field *field, const char *pointer, struct pe_failure *err)
{
    const struct pe_tensor *t = &field->value.array;
    uint64_t count;
    if (field->value.kind != PE_ARRAY)
        return pe_fail(err, pointer, "%s is not a tensor; send nested lists of numbers, a .npy part or safetensors",
                       field->name);
    if (!pe_shape_count(t->shape, t->rank, &count) || count == 0)
        return pe_fail(err, pointer, "%s has no elements", field->name);
    return PE_OK;
}

/* Numbers from JSON text without a dtype count as a tensor of f32. */
static enum pe_status text_to_f32(struct pe_operand *op, struct pe_failure *err)
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

/* b batch, h heads, n positions, d channels; c the heads with their channels. */
static const struct order {
    const char *axes;
    unsigned rank_min;
} orders[PE_N_TENSOR_LAYOUTS] = {[PE_BHND] = {"bhnd", 2}, [PE_BNHD] = {"bnhd", 2}, [PE_NBHD] = {"nbhd", 4},
                                 [PE_NHD] = {"nhd", 3},   [PE_FLAT] = {"nc", 2},   [PE_BFLAT] = {"bnc", 2}};

bool pe_operand_place(struct pe_operand *op, enum pe_tensor_layout layout, uint64_t head_dim)
{
    const struct pe_tensor *t = &op->tensor;
    const char *axes = orders[layout].axes;
    size_t most = strlen(axes);
    uint64_t step = 1;
    if (t->rank < orders[layout].rank_min || t->rank > most)
        return false;
    bool is_flat = axes[most - 1] == 'c';
    if (is_flat && (head_dim == 0 || t->shape[t->rank - 1] % head_dim))
        return false;
    op->n_batches = op->n_heads = op->n = 1;
    op->has_batch = op->has_heads = false;
    pe_shape_count(t->shape, t->rank, &op->batch_step);
    op->head_step = op->batch_step;
    axes = t->rank == 2 && !is_flat ? "nd" : axes + (most - t->rank); /* missing leading axes have length 1 */
    for (unsigned a = t->rank; a-- > 0; step *= t->shape[a]) {
        switch (axes[a]) {
        case 'b': op->n_batches = t->shape[a], op->batch_step = step, op->has_batch = true; break;
        case 'h': op->n_heads = t->shape[a], op->head_step = step, op->has_heads = true; break;
        case 'n': op->n = t->shape[a], op->row_step = step; break;
        case 'd': op->width = t->shape[a]; break;
        default: op->n_heads = t->shape[a] / head_dim, op->head_step = op->width = head_dim, op->has_heads = true;
        }
    }
    return true;
}

enum pe_status pe_operand_take(struct pe_operand *op, const struct pe_request *request, const char *name,
                               enum pe_tensor_layout layout, uint64_t head_dim, bool *taken, struct pe_failure *err)
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
        if ((layout == PE_FLAT || layout == PE_BFLAT) && head_dim == 0)
            return pe_fail(err, "/head_dim",
                           "the tensor_layout %s needs head_dim, which the shape of %s does not determine",
                           pe_tensor_layout_words[layout], name);
        if (!pe_operand_place(op, layout, head_dim))
            return wrong_shape(op, pointer, layout, err);
        if (op->width > PE_HEAD_DIM_MAX && !is_map(name))
            return pe_fail(err, pointer, "%s has head_dim %llu; allowed: up to %d", name, (unsigned long long)op->width,
                           PE_HEAD_DIM_MAX);
        return field->value.from_text ? text_to_f32(op, err) : PE_OK;
    }
    return PE_OK;
}

void pe_operand_drop(struct pe_operand *op) { free(op->owned); }
