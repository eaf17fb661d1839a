/* The operation attend: attention maps and outputs of queries and keys under any scheme. The row in operation.c names
 * these functions. */
#ifndef PE_ATTENTION_H
#define PE_ATTENTION_H

#include "core/scheme.h"

/* num_heads, causal, …; q, k, v, x, …; scores, probs, …: each ends with .name = NULL. */
extern const struct pe_param pe_attention_params[];
extern const struct pe_input_row pe_attention_inputs[];
extern const struct pe_output_row pe_attention_outputs[];

/* In the order of planning. */

/* Reads the operation's own fields from the request, before the scheme's, because a field may belong to both.
 * Allocates plan->attention. */
enum pe_status pe_attention_open(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                 struct pe_error *err);
/* Reads the tensors; their sizes become parameters in the scheme's config. */
enum pe_status pe_attention_read(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                 struct pe_error *err);
enum pe_sequence_kind pe_attention_kind(const struct pe_plan *plan);
struct pe_sequence_sizes pe_attention_sizes(const struct pe_plan *plan);
/* Runs when the sequence is known: sets plan->mask and plan->dtype. */
enum pe_status pe_attention_begin(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err);
/* Nanoseconds of the next step at most, and the step: it runs after the scheme's plan(): outputs, tables, working
 * memory. */
double pe_attention_ns(const struct pe_plan *plan);
enum pe_status pe_attention_init(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err);
/* Fields of the resolved config that the scheme's rows do not have; at most PE_ATTENTION_FIELDS_MAX. */
enum { PE_ATTENTION_FIELDS_MAX = 24 };
size_t pe_attention_print(const struct pe_plan *plan, struct pe_field *fields);
void pe_attention_drop(struct pe_plan *plan);

/* Writes elements first … first+n-1 of output i, like pe_fill. */
void pe_attention_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst);

/* Working memory in bytes of the threads that fill at the same time, as many as one stream has. */
double pe_attention_bytes(const struct pe_plan *plan);

#endif
