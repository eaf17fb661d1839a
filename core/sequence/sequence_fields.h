/* Shared by sequence.c and sequence_fields.c: whether a field is given, and which fields it may not contradict. */
#ifndef PE_SEQUENCE_FIELDS_H
#define PE_SEQUENCE_FIELDS_H

#include "core/sequence/sequence.h"

/* The field order, of a grid. */
enum { PE_ROW_MAJOR, PE_MERGE };

static inline bool pe_given(int64_t field) { return field != PE_UNSET_INT; }

/* Refuses a sequence that is given in no way or in several (fixed: tensors give its length, so none is fine), and
 * fields that this way of giving it does not use. */
enum pe_status pe_sequence_check(const struct pe_sequence_fields *f, enum pe_sequence_kind kind, bool fixed,
                                 struct pe_error *err);

/* A length that tensors fix need not be given, but may not be contradicted. fixed = 0: none does. */
enum pe_status pe_sequence_check_size(const char *pointer, uint64_t n, uint64_t fixed, const char *tensor,
                                      struct pe_error *err);

/* The same for a sequence that queries and keys share. */
enum pe_status pe_sequence_check_sizes(const char *pointer, uint64_t n, struct pe_sequence_sizes sizes,
                                       struct pe_error *err);

#endif
