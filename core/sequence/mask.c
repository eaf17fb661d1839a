/* Which keys a query sees: computes reaches and masks from fields. */
#include "core/sequence/sequence.h"

#include <stdlib.h>

static enum pe_status check_mask(const struct pe_reals *mask, uint64_t k_len, uint64_t n_batches,
                                 struct pe_failure *err)
{
    const struct pe_tensor *t = &mask->array;
    if (n_batches > 0 && t->rank == 2 && t->shape[1] == k_len && t->shape[0] == n_batches)
        return PE_OK;
    if (t->rank != 2 || n_batches == 0)
        return pe_reals_expect(mask, k_len, "key_mask", "one per key", err);
    return pe_fail(err, "/key_mask",
                   "key_mask has the shape [%llu,%llu]; needed: [%llu] or [%llu,%llu], a number for "
                   "each key, or for each key of each sequence in the batch",
                   (unsigned long long)t->shape[0], (unsigned long long)t->shape[1], (unsigned long long)k_len,
                   (unsigned long long)n_batches, (unsigned long long)k_len);
}

enum pe_status pe_mask_init(struct pe_mask *mask, const struct pe_mask_fields *fields, uint64_t k_len,
                            uint64_t n_batches, struct pe_failure *err)
{
    bool windowed = fields->window != PE_UNSET_INT, right = fields->window_right != PE_UNSET_INT;
    *mask = (struct pe_mask){.causal = fields->causal, .n_masks = 1};
    mask->reach_left = windowed ? (double)fields->window : (double)INFINITY;
    mask->reach_right = right ? (double)fields->window_right : mask->reach_left - 1;
    if (!fields->key_mask.n)
        return PE_OK;
    enum pe_status status = check_mask(&fields->key_mask, k_len, n_batches, err);
    if (status)
        return status;
    mask->n_masks = fields->key_mask.n / k_len;
    mask->seen = malloc(fields->key_mask.n);
    if (!mask->seen)
        return pe_no_memory(err);
    for (uint64_t j = 0; j < fields->key_mask.n; j++) {
        double seen = pe_real_at(&fields->key_mask, j);
        if (seen != 0 && seen != 1)
            return pe_fail(err, "/key_mask", "key_mask has %.10g at index %llu; allowed: 0 and 1", seen,
                           (unsigned long long)j);
        mask->seen[j] = seen != 0;
        if (pe_is_cancelled_at(j))
            return pe_cancelled(err);
    }
    return PE_OK;
}

void pe_mask_drop(struct pe_mask *mask) { free(mask->seen); }

bool pe_mask_reaches(const struct pe_mask *mask, double rel)
{
    return -rel < mask->reach_left && rel <= mask->reach_right && !(mask->causal && rel > 0);
}

bool pe_mask_is_far(const struct pe_mask *mask)
{
    return !mask->causal && isinf(mask->reach_left) && isinf(mask->reach_right);
}
