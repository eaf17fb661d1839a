/* Who sees whom: from fields to reaches and masks. */
#include "core/sequence/mask.h"

#include <stdlib.h>

static enum pe_status check_mask(const struct pe_reals *mask, uint64_t k_len, uint64_t n_batches, struct pe_error *err)
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

static enum pe_status read_mask(struct pe_sight *sight, const struct pe_reals *mask, struct pe_error *err)
{
    sight->seen = malloc(mask->n);
    if (!sight->seen)
        return pe_no_memory(err);
    for (uint64_t j = 0; j < mask->n; j++) {
        double seen = pe_real_at(mask, j);
        if (seen != 0 && seen != 1)
            return pe_fail(err, "/key_mask", "key_mask has %.10g at index %llu; allowed: 0 and 1", seen,
                           (unsigned long long)j);
        sight->seen[j] = seen != 0;
    }
    return PE_OK;
}

enum pe_status pe_sight_init(struct pe_sight *sight, const struct pe_sight_fields *fields, uint64_t k_len,
                             uint64_t n_batches, struct pe_error *err)
{
    bool windowed = fields->window != PE_UNSET_INT, right = fields->window_right != PE_UNSET_INT;
    *sight = (struct pe_sight){.causal = fields->causal, .n_masks = 1};
    sight->reach_left = windowed ? (double)fields->window : (double)INFINITY;
    sight->reach_right = right ? (double)fields->window_right : sight->reach_left - 1;
    if (!fields->key_mask.n)
        return PE_OK;
    enum pe_status status = check_mask(&fields->key_mask, k_len, n_batches, err);
    if (status)
        return status;
    sight->n_masks = fields->key_mask.n / k_len;
    return read_mask(sight, &fields->key_mask, err);
}

void pe_sight_drop(struct pe_sight *sight) { free(sight->seen); }

bool pe_sight_reaches(const struct pe_sight *sight, double rel)
{
    return -rel < sight->reach_left && rel <= sight->reach_right && !(sight->causal && rel > 0);
}

bool pe_sight_is_far(const struct pe_sight *sight)
{
    return !sight->causal && isinf(sight->reach_left) && isinf(sight->reach_right);
}
