/* Small decoders trained with an encoding: parameters, tasks, what a scheme does in the decoder, the decoder itself,
 * and its evaluation. experiment.c runs them. */
#ifndef PE_TRAINING_H
#define PE_TRAINING_H

#include "core/kernels/kernels.h"
#include "core/inside.h"

/* ---- Parameters ---- */

/* The parameters of the decoder: one row for each tensor, one after the other in one array, so that an optimizer passes
 * over them at once and a gradient has the same shape. */

enum {
    PE_TRAIN_VOCABULARY = 8,
    PE_TRAIN_LAYERS = 2,
    PE_TRAIN_HEADS = PE_TRAIN_WIDTH / PE_TRAIN_HEAD,
    PE_TRAIN_INNER = 4 * PE_TRAIN_WIDTH, /* channels between the two products of a layer's second half */
    PE_TRAIN_BUCKETS = 32,               /* rows of T5's table */
};

/* Parameters of one layer. */
struct pe_layer_at {
    size_t norm_1, norm_1_bias, w_qkv, b_qkv, w_o, b_o, norm_2, norm_2_bias, w_1, b_1, w_2, b_2;
};

/* Where each tensor begins. */
struct pe_parameters_at {
    size_t tok;
    struct pe_layer_at layers[PE_TRAIN_LAYERS];
    size_t norm, norm_bias, w_out, b_out;
    size_t extra; /* `pos` [E, 32] or `rel` [32, 4]; n_fixed where there is none */
    size_t n_fixed, n;
};

/* What the scheme adds to the parameters. */
enum pe_learned { PE_LEARNS_NOTHING, PE_LEARNS_POSITIONS, PE_LEARNS_BUCKETS };

struct pe_parameters {
    struct pe_parameters_at at;
    float *values; /* [at.n] */
    bool *decays;  /* [at.n]: of the matrices called w_… */
};

/* Makes them with their first values: N(0, std²) by the seed and the tensor's name ("tok", "0.w_qkv" …), biases 0,
 * gains 1. n_positions: rows of `pos`. pe_parameters_drop frees them, also after a failure. */
enum pe_status pe_parameters_init(struct pe_parameters *parameters, enum pe_learned learned, size_t n_positions,
                                  double token_std, int64_t seed, struct pe_failure *err);
void pe_parameters_drop(struct pe_parameters *parameters);

/* ---- The optimizer ---- */

/* AdamW (Loshchilov and Hutter, arXiv 1711.05101) with clipped gradients and the experiment's schedule. */

struct pe_adamw {
    size_t n;
    float *first, *second; /* [n]: moments */
};

enum pe_status pe_adamw_init(struct pe_adamw *adamw, size_t n, struct pe_failure *err);
void pe_adamw_drop(struct pe_adamw *adamw);

/* Step m = 1, 2, … of n_steps: clips gradients to norm 1, then changes the parameters' values. Returns the norm that
 * they had. */
double pe_adamw_step(struct pe_adamw *adamw, struct pe_parameters *parameters, float *gradients, size_t m,
                     size_t n_steps);
/* The rate at step m: 5e-3·m/20 up to step 20, then half a cosine down to 0. */
double pe_adamw_rate(size_t m, size_t n_steps);

/* ---- The tasks ---- */

/* The two tasks: sequences of tokens 0 … 7 drawn from a seed, and the loss of a predictor that knows the rule.
 *
 *     U(name, i) = (k + 1/2) / 2^53, k the upper 53 bits of the seed's generator (core/request/request.h)
 *
 * Each token is ⌊8·U("train.token", place)⌋; where U("train.coin", place) < 0.8, the rule replaces it:
 *     local: t[two before][one before], t[a][b] = ⌊8·U("table", 8a + b)⌋;   lag: the token eight before. */

enum pe_task_kind { PE_TASK_LOCAL, PE_TASK_LAG };
enum pe_task_part { PE_TASK_TRAIN, PE_TASK_EVAL };

struct pe_task {
    enum pe_task_kind kind;
    int64_t seed;
    uint8_t table[PE_TRAIN_VOCABULARY][PE_TRAIN_VOCABULARY]; /* of local */
};

void pe_task_init(struct pe_task *task, enum pe_task_kind kind, int64_t seed);

/* Writes sequences first … first+n_seq-1, each of n + 1 tokens. */
void pe_task_sequences(const struct pe_task *task, enum pe_task_part part, uint64_t first, size_t n_seq, size_t n,
                       uint8_t *tokens);

/* The loss in nats of the best predictor for the token that follows place i of a sequence: -ln 0.825 if the rule gave
 * what it states, -ln 0.025 if not, ln 8 where the rule states nothing yet. */
double pe_task_bayes(const struct pe_task *task, const uint8_t *sequence, size_t i);

/* ---- What a scheme does ---- */

/* What a scheme does in the decoder at positions 0 … n-1: rows added to embeddings, a turn of each head of queries and
 * keys, or a bias by distance. All come from plans, as /encode and /rotate fill them; learned numbers come from the
 * parameters. */

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
enum pe_status pe_trained_config_check(struct pe_trained_config *config, struct pe_failure *err);

/* Makes the places of n positions. *plan, if plan is not NULL, is the plan of the configuration at n positions
 * (made; freed with pe_plan_free), which has its resolved fields; a learned table has none. pe_places_drop frees them,
 * also after a failure. */
enum pe_status pe_places_init(struct pe_places *places, const struct pe_trained_config *config, size_t n,
                              enum pe_dtype dtype, struct pe_plan **plan, struct pe_failure *err);
void pe_places_drop(struct pe_places *places);

/* ---- The decoder ---- */

/* A small pre-norm decoder, its loss and its gradients, in f32 for training and, from the same source, in f64 to check
 * the gradients:
 *
 *     h = tok[x] + added                              [R, 32], R = n_seq·n rows
 *     h += attend(norm_1(h)·w_qkvᵀ + b_qkv)·w_oᵀ + b_o  and  h += GELU(norm_2(h)·w_1ᵀ + b_1)·w_2ᵀ + b_2  in each layer
 *     loss = -ln softmax(norm(h)·w_outᵀ + b_out)[next]
 *
 * (Vaswani et al. 2017; norms first: Xiong et al. 2020, arXiv 2002.04745). A pass that is cancelled (pe_watch) returns
 * soon, with arbitrary numbers. */

/* What the decoder reads: n_seq sequences of n tokens, and the token that follows each. */
struct pe_batch {
    size_t n_seq, n;
    const uint8_t *tokens; /* n_seq sequences of n + 1: the last n of each are what follows the first n */
};

struct pe_decoder_f32;
struct pe_decoder_f64;

/* Room for max_rows rows in sequences of at most max_len; for_gradients: with what a backward pass needs. NULL: no
 * memory. */
struct pe_decoder_f32 *pe_decoder_new_f32(size_t max_rows, size_t max_len, bool for_gradients);
struct pe_decoder_f64 *pe_decoder_new_f64(size_t max_rows, size_t max_len, bool for_gradients);
void pe_decoder_free_f32(struct pe_decoder_f32 *decoder); /* NULL is accepted */
void pe_decoder_free_f64(struct pe_decoder_f64 *decoder);
double pe_decoder_bytes(size_t max_rows, size_t max_len, bool for_gradients); /* of the one in f32 */

/* losses [n_seq, n]: of each next token, in nats. places has at least n positions, and the dtype of the decoder. */
void pe_decoder_forward_f32(struct pe_decoder_f32 *decoder, const struct pe_parameters_at *at, const float *values,
                            const struct pe_places *places, const struct pe_batch *batch, float *losses);
void pe_decoder_forward_f64(struct pe_decoder_f64 *decoder, const struct pe_parameters_at *at, const double *values,
                            const struct pe_places *places, const struct pe_batch *batch, double *losses);

/* After forward, with the same arguments: gradients [at->n] of the mean loss. */
void pe_decoder_backward_f32(struct pe_decoder_f32 *decoder, const struct pe_parameters_at *at, const float *values,
                             const struct pe_places *places, const struct pe_batch *batch, float *gradients);
void pe_decoder_backward_f64(struct pe_decoder_f64 *decoder, const struct pe_parameters_at *at, const double *values,
                             const struct pe_places *places, const struct pe_batch *batch, double *gradients);

/* ---- Evaluation ---- */

/* The evaluation of one set of weights at positions 0 … eval_len - 1: excess[i] is the mean over all sequences of the
 * loss of token i + 1 beyond that of the best predictor. */

enum { PE_EVAL_SEQUENCES = 64 };

struct pe_evaluation {
    size_t run;       /* whose weights */
    int64_t override; /* number in the configuration's `eval`; -1: the configuration itself */
    struct pe_places places;
    size_t n_done;  /* sequences */
    double *excess; /* [eval_len] */
    double floor;   /* mean loss of the best predictor over all tokens */
};

/* What all evaluations share, one after the other. */
struct pe_evaluator {
    struct pe_decoder_f32 *decoder;
    size_t n_seq, n; /* sequences at a time; eval_len */
    uint8_t *tokens;
    float *losses;
};

enum pe_status pe_evaluator_init(struct pe_evaluator *evaluator, size_t eval_len, struct pe_failure *err);
void pe_evaluator_drop(struct pe_evaluator *evaluator);
double pe_evaluator_bytes(size_t eval_len);

/* Evaluates the next few sequences. True: the last ones are done. */
bool pe_evaluation_advance(struct pe_evaluation *evaluation, struct pe_evaluator *evaluator,
                           const struct pe_parameters *parameters, const struct pe_task *task);

/* The mean excess of places first … end-1. */
double pe_evaluation_mean(const struct pe_evaluation *evaluation, size_t first, size_t end);

#endif
