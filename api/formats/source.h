/* Where the tensors of an answer come from: a plan that computes their elements on demand, or memory that already holds
 * them (the curves of an analysis). Formats ask only this. */
#ifndef API_FORMATS_SOURCE_H
#define API_FORMATS_SOURCE_H

#include "core/posenc.h"

/* A tensor in memory: its shape, and its elements in row-major order, aligned to one of them. Borrowed as long as the
 * answer is sent. */
struct api_held {
    struct pe_output output;
    const void *elements;
};

struct api_source {
    const struct pe_plan *plan; /* NULL: the tensors are in memory */
    const struct api_held *held;
    size_t n_held;
};

/* The description of a tensor that a caller holds; name is borrowed. */
struct pe_output api_held_output(const char *name, const struct pe_tensor *tensor);

size_t api_source_count(const struct api_source *source);
const struct pe_output *api_source_output(const struct api_source *source, size_t i);
enum pe_pace api_source_pace(const struct api_source *source);
/* Like pe_plan_work, pe_plan_bytes: none for tensors that are in memory. */
double api_source_work(const struct api_source *source);
double api_source_bytes(const struct api_source *source);
/* Like pe_fill. */
void api_source_fill(const struct api_source *source, size_t i, uint64_t first, size_t n, void *dst);

#endif
