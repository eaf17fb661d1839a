/* Which keys a query sees: causal masks, windows, padding. A hidden key gets the bias -inf, and no attention. */
#ifndef PE_MASK_H
#define PE_MASK_H

#include "core/params.h"

struct pe_mask_fields {
    bool causal;
    int64_t window, window_right;
    struct pe_reals key_mask;
};

#define PE_MASK_PARAMS                                                                                                 \
    PE_P_BOOL(pe_mask_fields, causal, false, "causal mask", "true: a query does not see keys after it (-inf)",         \
              .level = PE_BASIC, .group = PE_G_MASK),                                                                  \
        PE_P_INT(pe_mask_fields, window, PE_UNSET, 1, PE_POSITION_MAX, "window",                                       \
                 "number of keys seen to the left, including the query's own position; default all",                   \
                 .group = PE_G_MASK, .usual = {1, 512}),                                                               \
        PE_P_INT(pe_mask_fields, window_right, PE_UNSET, 0, PE_POSITION_MAX, "window to the right",                    \
                 "number of keys seen to the right; default window - 1, with causal 0", .group = PE_G_MASK,            \
                 .usual = {0, 512}),                                                                                   \
        PE_P_REALS(pe_mask_fields, key_mask, 0, 1, "key mask",                                                         \
                   "1 for keys that may be seen, 0 for padding: [k_len]; for /attention also [batch, k_len]",          \
                   .group = PE_G_MASK)

struct pe_mask {
    double reach_left, reach_right; /* a key is seen if q - k < reach_left and k - q ≤ reach_right … */
    bool causal;                    /* … and, if causal, k <= q … */
    uint8_t *seen;                  /* … and seen[batch % n_masks, key] is 1; NULL: all are seen. Owned. */
    uint64_t n_masks;               /* 1, or one for each sequence of a batch */
};

/* Fills *mask (pe_mask_drop afterwards, also after a failure). Each of n_batches may have its own mask. */
enum pe_status pe_mask_init(struct pe_mask *mask, const struct pe_mask_fields *fields, uint64_t k_len,
                            uint64_t n_batches, struct pe_error *err);
void pe_mask_drop(struct pe_mask *mask);

/* Is a key at the distance rel = k_pos - q_pos visible, apart from padding? */
bool pe_mask_reaches(const struct pe_mask *mask, double rel);

/* Is padding the only reason to hide a key? */
bool pe_mask_is_far(const struct pe_mask *mask);

#endif
