/* What a scheme does in the decoder at positions 0 … n-1: rows added to embeddings, a turn of each head of queries and
 * keys, or a bias by distance. All come from plans, as /encode and /rotate fill them; learned numbers come from the
 * parameters. */
#ifndef PE_TRAINING_PLACES_H
#define PE_TRAINING_PLACES_H

#include "core/training/parameters.h"

/* Numbers are of one dtype, f32 or f64. NULL: the scheme has none. */
struct pe_places {
    enum pe_dtype dtype;
    size_t n;
    enum pe_learned learned;
    void *added;      /* [n, 32] */
    void *turns;      /* [n, 8, 8] by columns: column c is what channel c becomes */
    void *turns_back; /* the transposed matrices */
    void *bias;       /* [4, n]: the last of n is distance 0 */
    int32_t *buckets; /* [n], in the same order: rows of the learned table */
};

/* One scheme that can be trained. */
struct pe_trainable {
    const char *name;
    const struct pe_field *fixed; /* what the decoder fixes of its fields */
    size_t n_fixed;
    enum pe_learned learned;
    double token_std; /* of the embeddings' first values */
};

/* A configuration to be trained: the fields of the request, pointers of errors, and the scheme. */
struct pe_trained_config {
    const struct pe_field *fields;    /* borrowed */
    size_t n_fields, n_own;           /* the first n_own are the configuration's own, the others are common to all */
    const struct pe_field *overrides; /* of an evaluation; borrowed, may be NULL */
    size_t n_overrides;
    const char *pointer, *overrides_pointer; /* "/configs/0", "/configs/0/eval/1" */
    const struct pe_trainable *scheme;
    const char *const *caller_fields;
};

/* Finds the scheme and checks that nothing of the fields is what the experiment itself decides: the sequence, tensors,
 * a seed. */
enum pe_status pe_trained_config_check(struct pe_trained_config *config, struct pe_error *err);

/* Makes the places of n positions. *plan, if plan is not NULL, is the plan of the configuration at n positions
 * (made; freed with pe_plan_free), which has its resolved fields; a learned table has none. pe_places_drop frees them,
 * also after a failure. */
enum pe_status pe_places_init(struct pe_places *places, const struct pe_trained_config *config, size_t n,
                              enum pe_dtype dtype, struct pe_plan **plan, struct pe_error *err);
void pe_places_drop(struct pe_places *places);

#endif
