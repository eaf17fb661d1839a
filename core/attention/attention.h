/* The operation attend: attention maps and outputs of queries and keys under any scheme. The row at the end of
 * attention.c names these functions. */
#ifndef PE_ATTENTION_H
#define PE_ATTENTION_H

#include "core/attend.h"
#include "core/request/request.h"
#include "core/rotate/rotate_rows.h"
#include "core/scheme.h"

#include <stdatomic.h>

/* num_heads, causal, …; q, k, v, x, …; scores, probs, …: each ends with .name = NULL. */
extern const struct pe_param pe_attention_params[];
extern const struct pe_input_row pe_attention_inputs[];
extern const struct pe_output_row pe_attention_outputs[];

/* In the order of planning. */

/* Reads the operation's own fields from the request, before the scheme's, because a field may belong to both.
 * Allocates plan->attention. */
enum pe_status pe_attention_open(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                 struct pe_failure *err);
/* Reads the tensors; their sizes become parameters in the scheme's config. */
enum pe_status pe_attention_read(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                 struct pe_failure *err);
enum pe_sequence_kind pe_attention_kind(const struct pe_plan *plan);
struct pe_sequence_sizes pe_attention_sizes(const struct pe_plan *plan);
/* Fields of the resolved config that the scheme's rows do not have; at most PE_ATTENTION_FIELDS_MAX. */
enum { PE_ATTENTION_FIELDS_MAX = 24 };
size_t pe_attention_print(const struct pe_plan *plan, struct pe_field *fields);

/* Writes elements first … first+n-1 of output i, like pe_fill. */
void pe_attention_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst);

/* Working memory in bytes of the threads that fill at the same time, as many as one stream has. */
double pe_attention_bytes(const struct pe_plan *plan);

/* ---- Between the files ---- */

/* Shared by the files of core/attention: the operation's state. */

enum pe_attention_kernel { PE_SOFTMAX_KERNEL, PE_LINEAR_KERNEL };

struct pe_attention_fields {
    struct pe_mask_fields mask;
    int64_t num_heads, head_dim, dim, seed;
    double softmax_scale, softcap;
    bool softcap_after_bias, rotate_values, unrotate_output;
    struct pe_reals sinks; /* [num_heads]; none: n = 0 */
    struct pe_query_scale query_scale;
    int kernel, tensor_layout;
};

/* The kind of an output. Terms of the scheme are numbered from PE_TERM on. */
enum pe_attention_output {
    PE_SCORES,
    PE_PROBS,
    PE_WEIGHTS,
    PE_OUTPUT,
    PE_ROW_ENTROPY,
    PE_TERMS,
    PE_OUTPUT_TERMS,
    PE_TERM
};

/* Queries or keys: their positions and their rotation. */
struct pe_side {
    struct pe_operand *operand;
    const struct pe_positions *positions; /* [axes] */
    double *cosines;       /* [count of positions, 2 · n_pairs]; NULL: not rotated, or computed while filling */
    const double *factors; /* [count of positions]: of queries that are scaled by theirs; NULL: not */
    size_t id;             /* its row among the scheme's inputs, if the scheme rotates */
};

/* Working memory of one thread at a time. It remembers its last results: keys and values of a head in the form that the
 * arithmetic needs, the head's biases, the last unit. */
struct pe_workspace {
    atomic_bool busy;
    atomic_uint_fast64_t unit; /* the unit it holds, as number · 16 + kind; also read by threads that have not borrowed
                                  the workspace, to choose one */
    uint64_t kv_head, bias_head, table_head, met; /* loaded: batch · heads + head; NONE */
    char *memory;
    char *k, *k_plain, *v; /* [k_len, …]: NULL if the tensors can be used as they are */
    char *panels;          /* of the keys, for products; NULL if they would exceed PE_PANELS_BYTES_MAX */
    char *q, *q_plain;     /* [block_rows, head_dim] */
    char *q_biased;        /* the same, with the scheme's bias; NULL: there is none */
    char *block;           /* [block_rows, k_len]: logits, then probabilities */
    char *second;          /* the same: denominators of the linear kernel */
    double *vector;        /* biases at all distances: [q_len + k_len - 1] */
    double *bias;          /* biases of a row: [k_len] */
    char *near;            /* biases as the arithmetic adds them: [block_rows + k_len] */
    uint8_t *seen;         /* of a row: [k_len] */
    double *entropies;     /* [block_rows] */
    char *out;             /* [block_rows, heads of a unit, v_dim] */
    char *tables, *scratch;
    const void *head_tables; /* tables of the head in table_head: in `tables`, or owned by the plan */
    size_t first, end;       /* keys that the last block sees; the others have no weight */
};

enum { PE_WORKSPACES_MAX = 4 };

/* The embeddings that are projected. */
struct pe_embeddings {
    size_t n_rows, dim;
    size_t encoding;           /* source of the encoding that is added, if the scheme is additive */
    struct pe_output combined; /* x with the encoding, [..., n, dim], f64 */
};

/* The two parts of the embeddings whose products are the terms of an additive scheme's scores. */
enum pe_embedding_part { PE_CONTENT, PE_POSITION, PE_N_EMBEDDING_PARTS };

struct pe_attention {
    struct pe_attention_fields fields;
    struct pe_operand q, k, v; /* sent, or computed from x */
    struct pe_operand given;   /* scores in place of q and k, [batch, heads, q_len, k_len]; no data: not sent */
    struct pe_tensor x;        /* rank 0: q and k were sent */
    bool x_is_text, has_tokens, has_seed, wants_output, wants_terms;
    struct pe_operand parts[PE_N_EMBEDDING_PARTS][2]; /* wants_terms, additive schemes: queries, keys of each part */
    size_t terms[PE_TERMS_MAX];                       /* wants_terms: the scheme's numbers of the terms it has */
    size_t n_terms;
    void *embeddings; /* of tokens; owned */
    struct pe_embeddings embedded;
    struct pe_projections brought;

    uint64_t lead[PE_RANK_MAX]; /* leading axes of the batch, as sent */
    unsigned n_lead;
    bool has_heads; /* the answer has an axis of heads */
    size_t n_batches, n_heads, n_kv_heads, q_len, k_len, head_dim, v_dim;

    const struct pe_arithmetic *a;
    const struct pe_arithmetic *products; /* of embeddings with projections: f64 */
    double scale;                         /* softmax_scale */
    double bias_factor;                   /* on the bias */
    struct pe_mask mask;
    size_t *piece_first; /* packed sequences: first key of each, then k_len; owned. NULL: one sequence */
    bool by_place;       /* masks compare indices in the sequence, not positions */
    size_t bias_id;      /* row of the scheme's output `bias`; SIZE_MAX: none */
    bool turns;
    struct pe_row_rotation turn;
    struct pe_row_rotation value_turn; /* the same of a row of v; borrows from turn */
    struct pe_side sides[2];           /* queries, keys */
    double *tables[2];                 /* owned */
    double *query_factors;             /* owned */
    double largest_factor;             /* of them; 1: there are none */
    bool v_is_finite;
    uint64_t empty_rows;
    double work;

    size_t block_rows;                           /* queries computed together: a unit is this many of one head */
    enum pe_attention_output kinds[PE_TERM + 8]; /* of the outputs */
    struct pe_workspace *workspaces;
    size_t n_workspaces;
};

/* Has `output` the heads after the positions, and the batch too? */
static inline bool pe_attention_heads_inside(const struct pe_attention *t)
{
    return t->fields.tensor_layout != PE_BHND;
}
static inline bool pe_attention_batch_inside(const struct pe_attention *t)
{
    return t->fields.tensor_layout == PE_NBHD;
}

static inline bool pe_attention_is_given(const struct pe_attention *t) { return t->given.tensor.data != NULL; }
/* Are queries and keys, or their scores, sent? Else they are made of x. */
static inline bool pe_attention_is_sent(const struct pe_attention *t)
{
    return t->q.tensor.data || pe_attention_is_given(t);
}

static inline bool pe_attention_is_linear(const struct pe_attention *t) { return t->fields.kernel == PE_LINEAR_KERNEL; }

/* inputs.c: checks the sizes of the projections of x [..., dim], and makes missing ones random. */
enum pe_status pe_attention_need_projections(struct pe_plan *plan, uint64_t dim, struct pe_failure *err);

/* embed.c: opens x, with the scheme's encoding if it is additive. Then computes queries, keys and values from it in
 * dtype; they replace those computed before. */
enum pe_status pe_attention_open_x(struct pe_plan *plan, struct pe_failure *err);
enum pe_status pe_attention_embed(struct pe_plan *plan, enum pe_dtype dtype, struct pe_failure *err);
/* Computes the queries and keys of the parts of x, in the arithmetic's dtype. */
enum pe_status pe_attention_embed_parts(struct pe_plan *plan, struct pe_failure *err);
/* The same before the scheme's plan(): estimates, rather too high. Widths: columns of q, k and v over all heads. */
struct pe_embedding_sizes {
    double n, dim, widths[3];
};
struct pe_embedding_sizes pe_attention_sizes_most(const struct pe_plan *plan);
double pe_attention_embed_ns(const struct pe_plan *plan, const struct pe_embedding_sizes *sizes);

/* precision.c: nanoseconds of reading all numbers of a tensor; embeds x, if there is one, and sets the arithmetic. */
double pe_norms_ns(double n_rows, double width);
enum pe_status pe_attention_choose_arithmetic(struct pe_plan *plan, struct pe_failure *err);

/* outputs.c: chooses the requested outputs, then sets the shape of output i. */
enum pe_status pe_attention_choose_outputs(struct pe_plan *plan, const struct pe_request *request,
                                           struct pe_failure *err);
enum pe_status pe_attention_shape_output(struct pe_plan *plan, size_t i, struct pe_failure *err);

/* view.c: the keys that a query sees. */
struct pe_view {
    size_t first, end;   /* only keys in this range … */
    const uint8_t *seen; /* … whose entry here is 1; NULL: all of them */
    bool is_empty;
};
void pe_view_row(const struct pe_plan *plan, size_t batch, size_t i, uint8_t *scratch, struct pe_view *view);
double pe_view_ns(const struct pe_plan *plan);                                    /* of pe_view_count_empty, at most */
enum pe_status pe_view_count_empty(struct pe_plan *plan, struct pe_failure *err); /* sets empty_rows */

/* workspace.c */
enum pe_status pe_workspaces_init(struct pe_plan *plan, struct pe_failure *err);
void pe_workspaces_drop(struct pe_attention *t);
struct pe_workspace *pe_workspace_borrow(const struct pe_attention *t, uint64_t unit);
void pe_workspace_return(struct pe_workspace *workspace, uint64_t unit);
/* Loads rows from row0 on of one head of a side in the arithmetic's format: rotated, and mapped by phi under the
 * linear kernel. plain: the same without rotation, or NULL. */
void pe_workspace_load_rows(const struct pe_plan *plan, const struct pe_side *side, size_t batch, size_t head,
                            size_t row0, size_t n, void *dst, void *plain);
/* Keys of a key head, rows *stride apart: the keys that the workspace has loaded, or the tensor as it was sent. */
const char *pe_workspace_keys(const struct pe_attention *t, const struct pe_workspace *workspace, size_t batch,
                              size_t kv_head, size_t *stride);
/* Turns rows of the output from query i0 on, out_stride numbers apart, by the inverse of the queries' tables. */
void pe_workspace_unrotate(const struct pe_plan *plan, size_t batch, size_t i0, size_t n, void *out, size_t out_stride);
/* Loads the keys (and values) of the head that query head `head` reads. */
void pe_workspace_load_head(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t head);

/* block.c: writes logits, probabilities or weights, depending on kind, of rows i0 … of a head to block, [n_rows,
 * k_len]. The keys must be loaded. */
void pe_block_make(const struct pe_plan *plan, struct pe_workspace *workspace, enum pe_attention_output kind,
                   size_t batch, size_t head, size_t i0, size_t n_rows, void *block);
/* The same of one term of the scores, with -inf where the mask hides a key. */
void pe_block_make_term(const struct pe_plan *plan, struct pe_workspace *workspace, size_t term, size_t batch,
                        size_t head, size_t i0, size_t n_rows, void *block);
/* What the score of one pair is the sum of beside the product of query and key, for /derive. */
struct pe_pair_terms {
    double parts[PE_TERMS_MAX]; /* of attend->parts, from 1 on; 0: the configuration has it not */
    double bias;                /* times bias_factor; 0: none */
    bool is_hidden, is_empty;   /* the mask hides the key; hides all keys of this query */
};
void pe_block_make_pair(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t head, size_t i,
                        size_t j, struct pe_pair_terms *terms);
/* Writes the values weighted by the probabilities in block to out, rows out_stride apart; the other adds those of the
 * scheme, if it has any. */
void pe_block_output(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t head,
                     size_t n_rows, const void *block, void *out, size_t out_stride);
void pe_block_output_of_scheme(const struct pe_plan *plan, struct pe_workspace *workspace, size_t batch, size_t head,
                               size_t i0, size_t n_rows, const void *block, void *out, size_t out_stride);

#endif
