/* The sequence of a request: the positions of its tokens, queries and keys. It is resolved in two steps: numbers of
 * positions, whose time follows from the numbers that are sent; and the positions of packed sequences and segments,
 * which may be many thousands from a few bytes. */
#ifndef PE_SEQUENCE_H
#define PE_SEQUENCE_H

#include "core/waves/positions.h"
#include "core/sequence/segments.h"

/* The fields as given. */
struct pe_sequence_fields {
    int64_t len, offset;
    struct pe_reals positions, grid, lens;
    const struct pe_value *segments, *tokens;
    int64_t q_len, k_len, q_offset;
    struct pe_reals q_positions, k_positions;
    /* Rules of grids and segments; the resolved config includes them. */
    int order, position_style;
    int64_t spatial_merge_size;
    double tokens_per_second, position_id_per_seconds, seconds_per_chunk, temporal_scale;
};

/* How the operation uses the fields. */
enum pe_sequence_kind {
    PE_ONE_SEQUENCE, /* one run or list of n positions; queries and keys cannot differ */
    PE_TWO_SEQUENCES /* queries and keys, which may be the same */
};

/* Sizes that tensors fix; 0: not fixed. */
struct pe_sequence_sizes {
    uint64_t q, k;
    const char *k_tensor; /* the name of the tensor that fixes k; NULL: "k" */
};

struct pe_sequence {
    unsigned n_axes;
    struct pe_positions q[PE_AXES_MAX], k[PE_AXES_MAX]; /* [n_axes]; where there is one sequence, k is the one to use */
    unsigned n_grid;                                    /* axes of the grid the positions come from; 0: none */
    uint64_t grid[PE_AXES_MAX];
    bool is_counted; /* packed sequences and segments before pe_sequence_lay_out: .n is known, and no position */
    bool has_segments;
    struct pe_segment_list blocks; /* before they are laid out */
    struct pe_segments segments;
    uint32_t *piece;  /* [n]: which of several packed sequences a position belongs to; NULL: there is one. Owned. */
    double *owned[2]; /* converted lists; pe_sequence_drop frees them */
};

/* The parameter rows of the rules alone. After pe_sequence_init, the fields of the rules in use are set. */
const struct pe_param *pe_sequence_rules(void);

/* Resolves fields into *seq (call pe_sequence_drop afterwards, also after a failure). Lists of doubles are borrowed
 * from the request, others are converted. Sets rules that are in use but not given to their defaults in *fields. */
enum pe_status pe_sequence_init(struct pe_sequence *seq, struct pe_sequence_fields *fields, enum pe_sequence_kind kind,
                                struct pe_sequence_sizes sizes, struct pe_error *err);
/* Computes the positions of a sequence that is only counted; does nothing with another. */
enum pe_status pe_sequence_lay_out(struct pe_sequence *seq, const struct pe_sequence_fields *fields,
                                   struct pe_error *err);
void pe_sequence_drop(struct pe_sequence *seq);

/* Copies a sequence of one axis to n_axes axes. */
void pe_sequence_spread(struct pe_sequence *seq, unsigned n_axes);

/* floor(largest position) + 1 over all axes: the length of the sequence for dynamic scalings. */
double pe_sequence_reach(const struct pe_sequence *seq);

#endif
