/* Tensors that an operation transforms, [batch, heads, n, width], whose leading axes may be missing. */
#ifndef PE_OPERAND_H
#define PE_OPERAND_H

#include "core/posenc.h"

enum pe_tensor_layout { PE_BHND, PE_BNHD };
extern const char *const pe_tensor_layout_words[];

struct pe_operand {
    const char *name;
    struct pe_tensor tensor; /* as sent; numbers from JSON text without a dtype are f32; no data: not sent */
    void *owned;             /* its data if it was converted */
    uint64_t n_batches, n_heads, n, width;
    uint64_t batch_step, head_step, row_step; /* elements from one to the next */
};

/* Reads the tensor called name (a literal) from the request; leaves *op empty if there is none. Call pe_operand_drop
 * afterwards, also after a failure. */
enum pe_status pe_operand_take(struct pe_operand *op, const struct pe_request *request, const char *name,
                               enum pe_tensor_layout layout, bool *taken, struct pe_error *err);
void pe_operand_drop(struct pe_operand *op);

/* Writes a shape as "[2,3]". */
void pe_shape_print(const uint64_t *shape, unsigned rank, char *out, size_t room);

#endif
