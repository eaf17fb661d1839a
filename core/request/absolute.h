/* Shared by all absolute schemes: the embeddings `x` that the encoding is combined with, and grids with the channels
 * first. */
#ifndef PE_ABSOLUTE_H
#define PE_ABSOLUTE_H

#include "core/posenc.h"

struct pe_plan;

enum pe_combine { PE_ADD, PE_MULTIPLY, PE_MULTIPLY_RESIDUAL, PE_CONCAT };

struct pe_absolute_fields {
    int combine;
    const struct pe_value *x_scale, *pe_scale;
    bool channels_first;
};

/* How an encoding is combined with the embeddings; plan->absolute of additive schemes. */
struct pe_absolute {
    struct pe_absolute_fields fields;
    struct pe_tensor x; /* [..., n, width]; rank 0: none */
    bool x_from_text;
    double x_scale, pe_scale; /* known once `combined` is shaped */
    bool prefers_channels_first;
};

/* Reads the fields and the tensor x of the request; the width of x becomes dim. */
enum pe_status pe_absolute_read(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                struct pe_error *err);
uint64_t pe_absolute_n(const struct pe_plan *plan); /* positions that x fixes; 0: none */

/* Checks the fields together, once the scheme has planned. */
enum pe_status pe_absolute_check(struct pe_plan *plan, struct pe_error *err);

/* The dtype of real outputs: the one requested, else that of x, else f32. */
enum pe_dtype pe_absolute_dtype(const struct pe_plan *plan, enum pe_dtype asked);

bool pe_absolute_has_x(const struct pe_plan *plan);
void pe_absolute_give_x(struct pe_plan *plan, const struct pe_tensor *x); /* x computed by the operation; borrowed */
bool pe_absolute_channels_first(const struct pe_plan *plan);
void pe_absolute_prefer_channels_first(struct pe_plan *plan); /* DETR's default; call it before the check */

/* Writes the resolved fields for the config; returns their number (at most PE_ABSOLUTE_FIELDS_MAX). */
enum { PE_ABSOLUTE_FIELDS_MAX = 4 };
size_t pe_absolute_print(const struct pe_plan *plan, struct pe_field *fields);

void pe_absolute_drop(struct pe_plan *plan);

#endif
