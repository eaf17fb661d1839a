/* A scheme's own part of attention. Most schemes need none: the core adds their output `bias` to the scaled logits,
 * rotates queries and keys by their rotation, or adds their encoding to x. Schemes whose terms depend on content use
 * the functions below. */
#ifndef PE_ATTEND_H
#define PE_ATTEND_H

#include "core/numeric/numeric.h"
#include "core/scheme.h"

/* A block of logits: queries from i0 of one head against keys from j0 of its key head. Numbers are floats or doubles,
 * as a decides. */
struct pe_rows {
    const struct pe_plan *plan;
    const struct pe_arithmetic *a;
    size_t batch, head;
    size_t i0, n_rows, j0, n_keys;
    const void *q;      /* [n_rows, head_dim], before the scale */
    const void *k;      /* [n_keys, head_dim], rows k_stride apart */
    const void *panels; /* all keys from key 0, laid out for pe_arithmetic.products, or NULL */
    size_t head_dim, k_stride;
    double scale; /* softmax_scale: terms are multiplied by it */
    void *logits; /* [n_rows, n_keys], rows stride apart: already scale · q·k */
    size_t stride;
    const void *tables; /* of this head, computed by open_head */
    void *scratch;
};

/* Relative position of a pair, k_pos - q_pos. Positions must be integers; the scheme checks this when it plans. */
int64_t pe_rows_rel(const struct pe_rows *rows, size_t row, size_t key);
/* Is the key after the query? Positions may be fractional here. */
bool pe_rows_is_after(const struct pe_rows *rows, size_t row, size_t key);
/* Does the relative position depend only on key - row? */
bool pe_rows_are_runs(const struct pe_plan *plan);

/* Tensors of an attention request that are not the scheme's own inputs: plan->brought. */
enum pe_projection { PE_W_Q, PE_W_K, PE_W_V, PE_B_Q, PE_B_K, PE_B_V, PE_N_PROJECTIONS };
struct pe_projections {
    struct pe_weights projections[PE_N_PROJECTIONS]; /* w_q, w_k, w_v, b_q, b_k, b_v */
    uint64_t v_dim;                                  /* channels of the values sent; 0: no values */
};

/* Size of a scheme's working memory, as a count of numbers. */
struct pe_attend_room {
    size_t tables;  /* of one head */
    size_t scratch; /* for a block of n_rows × n_keys */
};

struct pe_attend {
    /* The default of softmax_scale; NULL: 1/sqrt(head_dim). */
    double (*softmax_scale)(const struct pe_plan *plan, size_t head_dim);

    /* Bias schemes: writes the biases of one head at the integer distances rel, rel+1, …; returns false if the bias is
     * not a function of the distance, NULL if it never is. bias_is_scaled: is the bias also multiplied by softmax_scale
     * (Falcon)? NULL: no. */
    bool (*bias_at)(const struct pe_plan *plan, size_t head, double rel, size_t n, double *out);
    bool (*bias_is_scaled)(const struct pe_plan *plan);

    /* Swin v2: logits are the cosines of the angles between q and k, times this factor of the head, instead of scaled
     * products. False or NULL: logits are scaled products. */
    bool (*cosine)(const struct pe_plan *plan, size_t head, double *factor);

    bool uses_projections; /* the request may give w_q and w_k beside q and k */

    /* The largest distance to the left that the scheme lets queries see, or infinity. NULL: no limit. */
    double (*reach_left)(const struct pe_plan *plan);

    /* Content-dependent schemes. largest: a bound on their terms before the scale, if queries and keys have at most
     * these norms. room: working memory. work: multiply-adds for a pair of a query and a key, besides q·k. */
    double (*largest)(const struct pe_plan *plan, double q_norm, double k_norm);
    struct pe_attend_room (*room)(const struct pe_plan *plan, size_t n_rows);
    double (*work)(const struct pe_plan *plan);
    /* Computes the tables of the scheme that depend on the arithmetic, once. May be NULL. */
    enum pe_status (*open)(const struct pe_plan *plan, const struct pe_arithmetic *a, struct pe_failure *err);
    /* Returns the tables of a head: computed in the memory given, or those that the plan already has. */
    const void *(*open_head)(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables);
    /* Computes, in the same memory, tables that also depend on the keys of the head: keys->k has all k_len keys,
     * keys->q is NULL. */
    void (*open_keys)(const struct pe_rows *keys, void *tables);
    /* [head_dim]: added to the queries of a head before the products with its keys. NULL: nothing. */
    const double *(*query_bias)(const struct pe_plan *plan, size_t head);
    void (*add_scores)(const struct pe_rows *rows); /* before cap, bias and mask */
    void (*add_last)(const struct pe_rows *rows);   /* after the mask; entries of -inf stay -inf */
    /* out [n_rows, v_dim] += the scheme's values, weighted by the probabilities in rows->logits. */
    void (*add_output)(const struct pe_rows *rows, void *out, size_t out_stride, size_t v_dim);

    /* What the scores are the sum of, for the output `terms`: names, NULL-terminated, of which the first is the scaled
     * product of queries and keys. NULL: the scheme has no such output. has_part: does the configuration have it? NULL:
     * all. add_part adds a part after the first to rows->logits, scaled as in the scores; NULL: the only one is what
     * add_last adds. */
    const char *const *parts;
    bool (*has_part)(const struct pe_plan *plan, size_t part);
    void (*add_part)(const struct pe_rows *rows, size_t part);

    /* The scheme's own outputs, on request: one term of the logits, unscaled, written to rows->logits. */
    const char *const *terms; /* NULL-terminated; NULL: none */
    bool (*has_term)(const struct pe_plan *plan, size_t term);
    void (*write_term)(const struct pe_rows *rows, size_t term);
};

#endif
