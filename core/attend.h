/* What a scheme does in attention beyond what it describes anyway: its output `bias` is added to the scaled logits, its
 * rotation turns queries and keys, its encoding is added to x. Schemes whose terms depend on content do it here. */
#ifndef PE_ATTEND_H
#define PE_ATTEND_H

#include "core/numeric/arithmetic.h"
#include "core/scheme.h"

/* A block of logits: queries i0 … of one head against keys j0 … of its key head. Numbers are of the arithmetic. */
struct pe_rows {
    const struct pe_plan *plan;
    const struct pe_arithmetic *a;
    size_t batch, head;
    size_t i0, n_rows, j0, n_keys;
    const void *q;      /* [n_rows, head_dim], before the scale */
    const void *k;      /* [n_keys, head_dim], rows k_stride apart */
    const void *panels; /* the same keys for pe_arithmetic.products, from key 0 on, or NULL */
    size_t head_dim, k_stride;
    double scale; /* softmax_scale: terms are multiplied by it */
    void *logits; /* [n_rows, n_keys], rows stride apart: already scale · q·k */
    size_t stride;
    const void *tables; /* of this head, made by open_head */
    void *scratch;
};

/* Relative position of a pair, k_pos - q_pos. Positions are integers: the scheme has seen to it. */
int64_t pe_rows_rel(const struct pe_rows *rows, size_t row, size_t key);
/* Does the key stand after the query? Positions may be any here. */
bool pe_rows_is_after(const struct pe_rows *rows, size_t row, size_t key);
/* Does it depend on key - row only? */
bool pe_rows_are_runs(const struct pe_plan *plan);

/* What the request brings to attention beside the scheme's own inputs: plan->brought. */
enum pe_projection { PE_W_Q, PE_W_K, PE_W_V, PE_B_Q, PE_B_K, PE_B_V, PE_N_PROJECTIONS };
struct pe_brought {
    struct pe_weights projections[PE_N_PROJECTIONS]; /* w_q, w_k, w_v, b_q, b_k, b_v */
    uint64_t v_dim;                                  /* channels of the values sent; 0: none are */
};

/* How large a scheme's working memory is, in numbers. */
struct pe_attend_room {
    size_t tables;  /* of one head */
    size_t scratch; /* for a block of n_rows × n_keys */
};

struct pe_attend {
    /* The default of softmax_scale; NULL: 1/sqrt(head_dim). */
    double (*softmax_scale)(const struct pe_plan *plan, size_t head_dim);

    /* Bias schemes: biases of one head at the integer distances rel, rel+1, …; false where they are no function of the
     * distance. NULL: they are not. Is the bias multiplied by softmax_scale too (Falcon)? NULL: no. */
    bool (*bias_at)(const struct pe_plan *plan, size_t head, double rel, size_t n, double *out);
    bool (*bias_is_scaled)(const struct pe_plan *plan);

    /* Swin v2: logits are the cosines of the angles between q and k times this factor of the head, instead of scaled
     * products. False: they are not. NULL likewise. */
    bool (*cosine)(const struct pe_plan *plan, size_t head, double *factor);

    bool uses_projections; /* w_q, w_k of the request are welcome beside q and k */

    /* How far to the left queries see because of the scheme itself, or infinity. NULL: no limit. */
    double (*reach_left)(const struct pe_plan *plan);

    /* Content-dependent schemes. About how large their terms get, before the scale, where queries and keys have at most
     * these norms; working memory; multiply-adds for a pair of a query and a key, beyond q·k. */
    double (*largest)(const struct pe_plan *plan, double q_norm, double k_norm);
    struct pe_attend_room (*room)(const struct pe_plan *plan, size_t n_rows);
    double (*work)(const struct pe_plan *plan);
    /* Makes what needs the arithmetic, in the scheme's tables, once. May be NULL. */
    enum pe_status (*open)(const struct pe_plan *plan, const struct pe_arithmetic *a, struct pe_error *err);
    /* The tables of a head: made in the room given, or such as the plan has already. */
    const void *(*open_head)(const struct pe_plan *plan, const struct pe_arithmetic *a, size_t head, void *tables);
    /* Makes, in the same room, what needs all keys of the head too: keys->k are all k_len of them, keys->q none. */
    void (*open_keys)(const struct pe_rows *keys, void *tables);
    /* [head_dim]: added to the queries of a head before they meet its keys. NULL: nothing. */
    const double *(*query_bias)(const struct pe_plan *plan, size_t head);
    void (*add_scores)(const struct pe_rows *rows); /* before cap, bias and mask */
    void (*add_last)(const struct pe_rows *rows);   /* behind the mask; what is -inf stays so */
    /* out [n_rows, v_dim] += the scheme's values, weighted by the probabilities, which stand in rows->logits. */
    void (*add_output)(const struct pe_rows *rows, void *out, size_t out_stride, size_t v_dim);

    /* Outputs of its own, on request: one term of the logits, unscaled, written to rows->logits. */
    const char *const *terms; /* NULL-terminated; NULL: none */
    bool (*has_term)(const struct pe_plan *plan, size_t term);
    void (*write_term)(const struct pe_rows *rows, size_t term);
};

#endif
