/* Tensors that an operation transforms, [batch, heads, n, width], whose leading axes may be missing. */
#ifndef PE_OPERAND_H
#define PE_OPERAND_H

#include "core/posenc.h"

enum pe_tensor_layout { PE_BHND, PE_BNHD, PE_NBHD, PE_NHD, PE_FLAT, PE_BFLAT, PE_N_TENSOR_LAYOUTS };
extern const char *const pe_tensor_layout_words[];
/* The axes of a layout: "[batch, n, heads, head_dim]". */
extern const char *const pe_tensor_layout_axes[];

/* The description of the parameter, for every operation that has it. */
#define PE_TENSOR_LAYOUT_ABOUT                                                                                         \
    "order of the axes of q, k, v: batch b, heads h, positions n, head_dim d; flat is [tokens, heads*head_dim], "      \
    "bflat "                                                                                                           \
    "[batch, n, heads*head_dim], both with head_dim given"

struct pe_operand {
    const char *name;
    struct pe_tensor tensor; /* as sent; numbers from JSON text without a dtype are f32; no data: not sent */
    void *owned;             /* its data if it was converted */
    uint64_t n_batches, n_heads, n, width;
    uint64_t batch_step, head_step, row_step; /* elements from one to the next */
    bool has_batch, has_heads;                /* as axes of their own, or together with the channels */
};

/* Finds the axes of op->tensor in a layout, the only place where a layout becomes steps. head_dim: as given, 0: it is
 * not (flat and bflat need it; in the others the last axis is it). false: a tensor of this shape has not this layout.
 */
bool pe_operand_place(struct pe_operand *op, enum pe_tensor_layout layout, uint64_t head_dim);

/* Reads the tensor called name (a literal) from the request; leaves *op empty if there is none. Call pe_operand_drop
 * afterwards, also after a failure. */
enum pe_status pe_operand_take(struct pe_operand *op, const struct pe_request *request, const char *name,
                               enum pe_tensor_layout layout, uint64_t head_dim, bool *taken, struct pe_error *err);
void pe_operand_drop(struct pe_operand *op);

/* Writes a shape as "[2,3]". */
void pe_shape_print(const uint64_t *shape, unsigned rank, char *out, size_t room);

#endif
