/* The sequence of a request: which positions its tokens, queries and keys stand at (wire contract §2.2). */
#ifndef PE_SEQUENCE_H
#define PE_SEQUENCE_H

#include "core/params.h"
#include "core/waves.h"

/* The fields as given. */
struct pe_sequence_fields {
    int64_t len, offset;
    struct pe_reals positions;
    int64_t q_len, k_len, q_offset;
    struct pe_reals q_positions, k_positions;
};

/* What the operation makes of them. */
enum pe_sequence_kind {
    PE_ONE_SEQUENCE, /* one run or list of n positions; queries and keys cannot differ */
    PE_TWO_SEQUENCES /* queries and keys, which may be the same */
};

/* Sizes that tensors fix; 0: not fixed. */
struct pe_sequence_sizes {
    uint64_t q, k;
};

struct pe_sequence {
    struct pe_positions q, k; /* the same where there is one sequence; k is then the one to use */
    double *owned[2];         /* lists that had to be converted to doubles; freed by pe_sequence_drop */
};

/* Resolves fields into *seq (pe_sequence_drop afterwards, also after a failure). Lists of doubles are borrowed from the
 * request, others converted. */
enum pe_status pe_sequence_init(struct pe_sequence *seq, const struct pe_sequence_fields *fields,
                                enum pe_sequence_kind kind, struct pe_sequence_sizes sizes, struct pe_error *err);
void pe_sequence_drop(struct pe_sequence *seq);

bool pe_positions_are_integers(const struct pe_positions *positions);
double pe_positions_largest(const struct pe_positions *positions); /* the largest magnitude */

#endif
