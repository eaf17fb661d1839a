/* The evidence: the tensor sent, what kind of tensor it is, and the sample of its numbers. */
#ifndef PE_EVIDENCE_H
#define PE_EVIDENCE_H

#include "core/numeric/numeric.h"
#include "core/request/request.h"
#include "core/rotate/rotate_rows.h"
#include "core/scheme.h"
#include "core/sequence/sequence.h"

#include <string.h>

struct pe_model;
struct pe_diagnosis;
struct pe_evidence;
struct pe_sample;
struct pe_judge;

enum {
    PE_EVIDENCE_TENSORS_MAX = 4,
    PE_SAMPLE_MAX = 1 << 14 /* numbers that each hypothesis is compared with, unless one row has more */
};
#define PE_EVIDENCE_BYTES_MAX (64ULL << 20)

enum pe_evidence_id {
    PE_OF_ENCODING,
    PE_OF_TABLES,  /* cos and sin, whatever their arrangement */
    PE_OF_ROTATED, /* q and q_out, k and k_out */
    PE_OF_BIAS,
    PE_OF_BUCKETS,
    PE_OF_IDS,    /* position_ids */
    PE_OF_ANGLES, /* the angles of tables */
    PE_OF_LADDER, /* inv_freq, rope_freqs */
    PE_OF_MAPS,   /* scores, probs, of q and k */
    PE_N_EVIDENCES
};
#define PE_EVIDENCE_BIT(name) (1U << PE_OF_##name)

/* The tensors that maps are computed from, fields of the belief's request. */
enum pe_operand_id { PE_QUERIES, PE_KEYS, PE_N_OPERANDS };
extern const char *const pe_operand_names[PE_N_OPERANDS];

/* A kind of evidence. */
struct pe_evidence_kind {
    enum pe_evidence_id id;
    enum pe_operation_id operation; /* of the belief's request: PE_OF_MAPS attends, others encode */
    unsigned like;                  /* PE_EVIDENCE_BIT of kinds whose faults it has too */
    bool is_key;                    /* PE_OF_ROTATED: keys, not queries */
    bool is_parameter;              /* its name is a parameter too: beside other evidence it is the belief's */
    const char *tensors[PE_EVIDENCE_TENSORS_MAX + 1]; /* names of the fields compared: "cos", "sin", NULL */
    const char *input;                                /* a tensor that is not compared, "q"; NULL: none */
    const char *scheme;                               /* of a belief without one */
    const char *outputs[PE_EVIDENCE_TENSORS_MAX + 1]; /* of the plan, in the order of tensors; read() may change the
                                                         form of rotary tables by pe_belief_set */
    /* Sets the view of the one tensor sent, and the tensors seen. NULL: they are the tensors sent. */
    enum pe_status (*view)(struct pe_evidence *e, struct pe_failure *err);
    /* Checks the shapes and gives the belief the sizes that they fix (pe_belief_fix): before anything is allocated. */
    enum pe_status (*read)(struct pe_diagnosis *d, struct pe_failure *err);
    /* Prepares a model: may set model->state. NULL: nothing. */
    enum pe_status (*prepare)(struct pe_model *model, struct pe_failure *err);
    /* Writes n predicted numbers, f64, from element col0 of a row on, without transforms that pe_model_fill applies
     * itself (negated, transposed, scaled, mask_value, zero_row, exchanged tensors of cos and sin). NULL: pe_fill of
     * output t. Rows are the last axis of the tensor as sent. */
    void (*fill)(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
    /* Writes numbers of positions that the evidence does not have, so that hypotheses which differ only there keep
     * different signatures: at most n_max, 0 if there are none. NULL: the frequencies decide. */
    size_t (*fill_beyond)(const struct pe_model *model, size_t n_max, double *out);
    /* Writes what right f32 code may lose of each number (pe_rounding_tolerance): of the angle, or the head. NULL: 0.
     */
    void (*phases)(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
};
extern const struct pe_evidence_kind pe_evidence_encoding, pe_evidence_tables, pe_evidence_rotated, pe_evidence_keys,
    pe_evidence_bias, pe_evidence_buckets, pe_evidence_ids, pe_evidence_freqs_cis, pe_evidence_cos_sin,
    pe_evidence_matrix, pe_evidence_angles, pe_evidence_freqs, pe_evidence_inv_freq, pe_evidence_rope_freqs,
    pe_evidence_scores, pe_evidence_probs;

/* Tensors that are parts of one tensor sent: number [row, col] of tensor t is number first[t] + row·row_step +
 * col·col_step of it, counted flat, with the opposite sign where is_negative. */
struct pe_tensor_view {
    struct pe_tensor sent; /* rank 0: there is no view, the tensors are as sent */
    uint64_t first[PE_EVIDENCE_TENSORS_MAX], row_step, col_step;
    bool is_negative[PE_EVIDENCE_TENSORS_MAX];
    const char *form; /* the configuration's word for the arrangement; NULL: that of the tables */
};

/* A number that somebody typed, and its place as it is given. */
struct pe_typed {
    const struct pe_value *tensor, *number;
    double position, query, key;
    int64_t channel, head;
    size_t t;           /* tensor of the kind */
    uint64_t row, col;  /* where it is in the tensor that was not sent */
    double value, half; /* half: of a unit of its last digit */
};
enum {
    PE_TYPED_MAX = 64,
    PE_PROBED_ROWS = 64,     /* that a probe looks at */
    PE_PROBED_NUMBERS = 8192 /* at most, so that a wide table has fewer rows */
};

/* What the request for a probe, or with `values`, states beside the belief. */
struct pe_typed_fields {
    int of;
    int64_t count, decimals;
};

/* The axes of the tensor in another order: axis i is axis order[i] of the one sent (moved.c). n = 0: they are not. */
struct pe_moved {
    unsigned n;
    unsigned char order[PE_RANK_MAX];
    uint64_t shape[PE_RANK_MAX], step[PE_RANK_MAX]; /* of axis i: its length; elements of the tensor sent */
    void *owned[2];                                 /* the numbers, and those of the input */
};

struct pe_evidence {
    const struct pe_evidence_kind *kind;
    struct pe_tensor tensors[PE_EVIDENCE_TENSORS_MAX]; /* data borrowed from the request; axes: pe_evidence_fold */
    struct pe_tensor sent;                             /* the first of them, with the axes that came */
    struct pe_tensor_view view;
    size_t n_tensors;
    uint64_t n_rows, row_len; /* of each tensor; a row is the last axis, of a rotated tensor one head of it */
    struct pe_tensor input;   /* PE_OF_ROTATED: q, of the same shape */
    struct pe_operand axes; /* PE_OF_ROTATED: as the believed tensor_layout has them; n = 0: it cannot be this shape */
    struct pe_tensor operands[PE_N_OPERANDS]; /* PE_OF_MAPS: q and k, before rotation */
    bool operand_is_text[PE_N_OPERANDS];
    double *norms[PE_N_OPERANDS]; /* PE_OF_MAPS: of their rows; owned */
    double turning;               /* PE_OF_MAPS: what float32's angles lose, as a share of a score */
    struct pe_value tiled_keys;   /* pe_tiled_keys; owned */
    bool is_text[PE_EVIDENCE_TENSORS_MAX], input_is_text; /* from JSON text: each number counts as rounded to f32 */
    enum pe_dtype dtype;    /* of the numbers compared; integers of buckets and ids: i64 */
    enum pe_dtype narrow;   /* bf16 or f16 if every number of a wider dtype is one; else PE_DTYPE_NONE */
    double largest;         /* the largest finite magnitude, called S */
    bool is_channels_first; /* as believed: the channel is the slowest axis, a row is spread over the tensor */
    bool is_turned;         /* its last two axes, exchanged, are what the belief gives: [dim, n] */
    int64_t zero_row;       /* the first position whose row is 0, -1: none (encoding, cos and sin) */
    bool has_infinity;
    const struct pe_padding *padding; /* rows of padding, and keys, are not compared; NULL: there is none */
    bool is_typed;          /* no tensor was sent: of its numbers those typed are known; a probe has none of them */
    struct pe_typed *typed; /* [n_typed]; owned */
    size_t n_typed;
    double half;    /* of a unit of the last digit, where a probe is asked for */
    double *places; /* positions of the belief; owned */
    struct pe_moved moved;
};

/* Writes numbers col0 … col0+n-1 of a row of tensor t as doubles (JSON numbers rounded to f32). */
void pe_evidence_read(const struct pe_evidence *e, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
/* Are its numbers integers, whatever the dtype? */
bool pe_evidence_is_whole(const struct pe_evidence *e);
/* Is a row 0 in every tensor? */
bool pe_evidence_is_zero(const struct pe_evidence *e, uint64_t row);
/* Is it a row of padding, of which nothing is known? */
bool pe_evidence_is_padding(const struct pe_evidence *e, uint64_t row);
/* A row of the input q. */
void pe_evidence_input(const struct pe_evidence *e, uint64_t row, double *out);

/* Gives the axes that the numbers have, as many as came: the number of rows and their length follow. */
void pe_evidence_fold(struct pe_evidence *e, unsigned rank, const uint64_t *shape);
/* In read(): the last `rank` axes, where all before them have length 1; or else, of two axes, where all but one of the
 * leading ones have length 1. false: the axes stay. */
bool pe_evidence_squeeze(struct pe_evidence *e, unsigned rank);
/* PE_OF_ROTATED: its axes in a tensor_layout (NULL: the usual one), leading axes of length 1 left out where there are
 * too many. false: it cannot have this layout. */
bool pe_evidence_axes(const struct pe_evidence *e, const char *layout, struct pe_operand *axes);
/* The row of head `head`, counted through the batch, at position number i. */
uint64_t pe_axes_row(const struct pe_operand *axes, uint64_t head, uint64_t i);

/* moved.c: gives the tensor, and the input, its axes in this order; before anything is read of it. */
enum pe_status pe_evidence_move(struct pe_diagnosis *d, const unsigned char *order, struct pe_failure *err);
/* The element of the tensor sent that is number i of the tensor in the order of the belief. */
uint64_t pe_moved_element(const struct pe_evidence *e, uint64_t i);
/* The first order, not that of the tensor, in which its axes have this shape; false: there is none. And the one that
 * takes an axis to another place. */
bool pe_order_of(const struct pe_tensor *t, const uint64_t *shape, unsigned rank, unsigned char *order);
void pe_order_to(unsigned rank, unsigned from, unsigned to, unsigned char *order);

/* Has the believed scheme an output of this name? */
bool pe_evidence_is_output(const struct pe_diagnosis *d, const char *name);
/* The tensor sent in which tensor t is, with the axes that came, and its name. */
const struct pe_tensor *pe_evidence_sent(const struct pe_evidence *e);
const char *pe_evidence_name(const struct pe_evidence *e, size_t t);

/* Its last two axes as the belief has them. */
uint64_t pe_evidence_length(const struct pe_evidence *e);
uint64_t pe_evidence_width(const struct pe_evidence *e);
/* Tables and angles: has it n rows, or n in each row of a batch that shares its positions? */
bool pe_evidence_has_rows(const struct pe_evidence *e, uint64_t n);
/* Relative standard error of its numbers: the unit roundoff of the narrowest dtype that they fit. */
double pe_evidence_noise(const struct pe_evidence *e);

/* Half a unit of the last digit of number i that was typed. */
double pe_typed_half(const struct pe_evidence *e, size_t i);

/* The element of the tensor sent where a number of tensor t is, counted flat. */
uint64_t pe_evidence_element(const struct pe_evidence *e, size_t t, uint64_t row, uint64_t col);

/* A stretch of a row. */
struct pe_piece {
    size_t t;
    uint64_t row, col0;
    size_t n, at; /* the place of its numbers in the sample */
};

/* The numbers that hypotheses are compared with. The first n_first pieces are spread over the tensor too, so that most
 * hypotheses end there. */
struct pe_sample {
    struct pe_piece *pieces;
    size_t n_pieces, n_first;
    size_t n, n_first_numbers, longest;
    double *found;            /* [n] */
    double *expected, *phase; /* [n]: scratch of the hypothesis under evaluation */
};

/* Why a list inv_freq is no ladder, at its first pair: "not_finite", "negative", "zero", "above_one", "not_falling";
 * NULL: it may be one, or the evidence is another. */
struct pe_oddity {
    const char *why;
    uint64_t pair;
    double value;
};
struct pe_oddity pe_ladder_oddity(const struct pe_evidence *e);

/* rotary.c: the sizes of tables and of what else has a column for each pair; |position|·frequency of its numbers. */
enum pe_status pe_tables_read(struct pe_diagnosis *d, struct pe_failure *err);
void pe_tables_phases(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);

/* views.c: the views of rotary tables in one tensor. */
enum pe_status pe_view_freqs_cis(struct pe_evidence *e, struct pe_failure *err);
enum pe_status pe_view_cos_sin(struct pe_evidence *e, struct pe_failure *err);
enum pe_status pe_view_matrix(struct pe_evidence *e, struct pe_failure *err);

/* typed.c: numbers that were typed, in place of the three steps of a tensor: found, read, sampled. */
bool pe_typed_is_sent(const struct pe_diagnosis *d);
enum pe_status pe_typed_find(struct pe_diagnosis *d, struct pe_failure *err);
enum pe_status pe_typed_read(struct pe_diagnosis *d, struct pe_failure *err);
enum pe_status pe_typed_sample(struct pe_diagnosis *d, struct pe_failure *err);
/* The places that a probe looks at, as a sample without numbers found (pe_sample_drop, also after a failure). */
enum pe_status pe_probed_open(struct pe_diagnosis *d, struct pe_sample *s, struct pe_failure *err);
void pe_sample_drop(struct pe_sample *s);
/* Writes what a model predicts for a sample, [s->n]. */
void pe_sample_fill(const struct pe_sample *s, const struct pe_model *model, double *out);

/* maps.c: is a row of a map that of a query which is padding? */
bool pe_map_is_padding(const struct pe_evidence *e, uint64_t row);
/* Multiply-adds of a number of a map. */
double pe_map_number_work(const struct pe_plan *plan);
/* The keys that query head h reads as key head h modulo their number; NULL: that is no other way. */
const struct pe_value *pe_tiled_keys(struct pe_diagnosis *d);

/* find.c: finds the tensors in the request and checks them before anything is allocated. */
enum pe_status pe_evidence_find(struct pe_diagnosis *d, struct pe_failure *err);
/* Their figures and the sample. */
enum pe_status pe_evidence_sample(struct pe_diagnosis *d, struct pe_failure *err);
void pe_evidence_drop(struct pe_diagnosis *d);

/* ---- The belief ---- */

/* The belief: the configuration that the client expects. */

/* The belief as fields of a request, flat (a model's name is replaced by its fields). */
struct pe_belief {
    bool is_given;                        /* the request states more than the tensors and where they are */
    struct pe_field asked[PE_FIELDS_MAX]; /* as given, without the tensors; then the sizes that tensors fix */
    size_t n_asked;
    size_t n_stated; /* of the inheritance: fields that the request or its model states; sizes of tensors follow */
    struct pe_inheritance *inheritance;    /* the same merged with the model it names */
    struct pe_field fields[PE_FIELDS_MAX]; /* resolved parameters, the sequence and the weights as given */
    size_t n_fields;
    struct pe_plan *plan;      /* as given: owns what the resolved fields point to */
    struct pe_model *model;    /* of no edit */
    uint64_t n;                /* positions (of keys) */
    const char *tensor_layout; /* as given, else NULL */
    bool is_len_fixed;         /* len follows from the axes, so another tensor_layout has another */
    /* For each row of the batch, [batch, n] or [axes, batch, n]; NULL: they are common. */
    const struct pe_value *positions;
    bool has_mask; /* the positions are those of a padded batch: */
    struct pe_padding_fields padding_fields;
    struct pe_padding padding;
    double *padded[2];        /* by its mask: skipped, counted; else [0] is of by_batch. Owned. */
    struct pe_value by_batch; /* positions that are computed here: by the mask, or in another order of axes */
    struct pe_value ids;      /* position_ids beside the evidence, which are positions; PE_NULL: there are none */
    const char *ids_layout;   /* their positions_layout, where none is given; NULL: they have one level */
    bool is_misfit;           /* its plan has not the shape of the evidence: it explains nothing as it is */
    struct pe_query_scale query_scale; /* PE_OF_ROTATED, of queries: no table has it */
};

/* pe_inherit_blame for an error of any step. */
void pe_belief_blame(const struct pe_diagnosis *d, struct pe_failure *err);

/* A size that a tensor fixes: sets the field where the belief does not give it; else both must agree (422 naming both).
 * In read() of a kind of evidence, before the belief is planned. */
enum pe_status pe_belief_fix(struct pe_diagnosis *d, const char *name, uint64_t size, const char *tensor,
                             struct pe_failure *err);
/* The field as given (under any alias), also by the model that the belief names; NULL if it is not. */
const struct pe_value *pe_belief_given(const struct pe_diagnosis *d, const char *name);
/* The same without the sizes that tensors fix. */
bool pe_belief_states(const struct pe_diagnosis *d, const char *name);
/* In read(): a field that is not given. */
void pe_belief_set(struct pe_diagnosis *d, const char *name, struct pe_value value);
/* The same, also where it is given. */
void pe_belief_replace(struct pe_diagnosis *d, const char *name, struct pe_value value);
bool pe_belief_has_sequence(const struct pe_diagnosis *d);
bool pe_belief_is_sequence(const char *name); /* a field that gives positions, not a rule for counting them */

/* Positions of a batch as one list for each axis, as a plan takes them; and their positions_layout. */
struct pe_value pe_flat_positions(const struct pe_value *by_batch);
const char *pe_layout_of(const struct pe_value *by_batch);

/* In read(): the plan of the belief with no size but a missing length, which is n; NULL if there is none. */
struct pe_plan *pe_belief_try(struct pe_diagnosis *d, uint64_t n);

enum pe_status pe_belief_open(struct pe_diagnosis *d, struct pe_failure *err); /* fields, without a plan */
enum pe_status pe_belief_plan(struct pe_diagnosis *d, struct pe_failure *err); /* d->belief.model */
void pe_belief_drop(struct pe_diagnosis *d);

/* ---- Edits ---- */

/* Edits: fields of the request that replace the belief's, and transforms of the numbers. A fault writes into one. */

/* Of those divided, base and power are rounded before 1 is divided by them: w = fl(1/fl(fl(base)^e)). */
enum pe_recipe {
    PE_RECIPE_NONE,
    PE_RECIPE_F32,
    PE_RECIPE_BF16_INV_FREQ,
    PE_RECIPE_F16_INV_FREQ,
    PE_RECIPE_BF16,
    PE_RECIPE_BF16_INV_FREQ_DIVIDED,
    PE_RECIPE_BF16_DIVIDED,
    PE_RECIPE_F16,
    PE_RECIPE_TF32
};

/* To 11 significant bits, as the inputs of a product in TF32 are. */
double pe_round_to_tf32(double x);
enum pe_sinusoid_change {
    PE_SINUSOID_AS_IS,
    PE_EXPONENT_PER_COLUMN,
    PE_EXPONENT_DOUBLED,
    PE_LADDER_FROM_ONE,
    PE_SINE_ONLY
};

/* What is done with the bias of a map, and where a map was taken. The last three are requests as well; the word names
 * them. */
enum pe_bias_change { PE_BIAS_AS_IS, PE_BIAS_MISSING, PE_BIAS_BEFORE_SCALE, PE_BIAS_TWICE, PE_BIAS_UNSIGNED };
enum pe_stage {
    PE_STAGE_AS_IS,
    PE_STAGE_OTHER, /* probabilities in place of scores, or the reverse */
    PE_STAGE_LOG_PROBS,
    PE_STAGE_RAW, /* q·k */
    PE_STAGE_SCALED,
    PE_STAGE_UNMASKED
};

extern const char *const pe_stage_words[];

/* Channels in another order: channel j of head h is channel order[h·head_dim + j], counted through as many heads as the
 * order has. */
struct pe_channels {
    const uint32_t *order; /* [n]; NULL: not */
    size_t n;              /* head_dim, or that of all heads */
    bool is_after;         /* the rotated vector's; else q's, before it is rotated */
    int times;             /* of the conversion interleaved to half, negative: of its inverse; 0: another order */
    int64_t heads;         /* in so many heads */
};

/* Applied to the numbers of a plan, in this order. */
struct pe_transforms {
    struct pe_channels channels;
    enum pe_recipe recipe;
    enum pe_sinusoid_change sinusoid;
    enum pe_bias_change bias; /* of maps, as the next three */
    enum pe_stage stage;
    bool is_still[PE_N_OPERANDS]; /* rotated to position 0 */
    bool is_tiled;                /* pe_tiled_keys */
    bool inverted;                /* 1/x: timescales in place of frequencies */
    bool sin_cos_swapped, negated, transposed;
    double wrapped_from;                   /* angles are reduced modulo 2pi, the smallest is this; NaN: not */
    double scaled;                         /* 1: not */
    double mask_value;                     /* in place of -infinity; NaN: not */
    const struct pe_value *scaling_behind; /* of rows from switched_at on; NULL: there are none. Of the edit */
    int64_t switched_at;                   /* number of the position */
    bool is_growing;                       /* each of these rows has the length of the sequence up to it */
    int64_t zero_row;                      /* this row is 0 (the position, for every head); -1: none */
    unsigned n_axes;                       /* `axes`: axis i of the ids is axis order[i] of the plan's; 0: not */
    unsigned char order[PE_AXES_MAX];
};

enum { PE_EDIT_FIELDS_MAX = 48, PE_EDIT_ROOMS_MAX = 16 };

struct pe_edit {
    struct pe_field fields[PE_EDIT_FIELDS_MAX]; /* replace the belief's of the same name; PE_NULL: removed */
    size_t n_fields;
    unsigned char by[PE_EDIT_FIELDS_MAX]; /* which fault of the hypothesis set the field last */
    unsigned char now;                    /* the fault that is being applied */
    struct pe_transforms transforms;
    const char *presets[1]; /* a preset that this edit copies, else NULL */
    void *owned[PE_EDIT_ROOMS_MAX];
    size_t n_owned;
    bool failed;      /* no memory */
    bool is_hopeless; /* a fit has found that no angles make it fit: such pairs are not rotated, or have no such rule */
};

void pe_edit_init(struct pe_edit *edit); /* of nothing: the belief itself */
void pe_edit_drop(struct pe_edit *edit);
void *pe_edit_room(struct pe_edit *edit, size_t n_bytes); /* zeros, freed with the edit; NULL: edit->failed */

/* Replaces a field; a later one of the same name wins. Names are literals. */
void pe_edit_set(struct pe_edit *edit, const char *name, struct pe_value value);
void pe_edit_set_integer(struct pe_edit *edit, const char *name, int64_t x);
void pe_edit_set_real(struct pe_edit *edit, const char *name, double x);
void pe_edit_set_word(struct pe_edit *edit, const char *name, const char *word);
void pe_edit_set_boolean(struct pe_edit *edit, const char *name, bool x);
void pe_edit_set_reals(struct pe_edit *edit, const char *name, const double *x, size_t n); /* copied */
void pe_edit_remove(struct pe_edit *edit, const char *name);
/* Removes every field of the sequence (len, offset, positions, …); then set those of the new one. */
void pe_edit_remove_sequence(const struct pe_diagnosis *d, struct pe_edit *edit);

/* The value in use under an edit: the edit's field, else the belief's resolved value; NULL: unset. Names as in the
 * resolved config; a member of an object is "scaling.factor". */
const struct pe_value *pe_edit_value(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name);
double pe_edit_real(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, double fallback);
int64_t pe_edit_integer(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, int64_t fallback);
bool pe_edit_has(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name);
bool pe_edit_is_true(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, bool fallback);
bool pe_edit_is_word(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, const char *word);

/* ---- Models ---- */

/* Models: an edit as a real plan, and the numbers that it predicts. */

/* Multiply-adds that take a nanosecond, as pe_plan_work counts them. */
enum { PE_WORK_OF_A_NS = 4 };

enum { PE_DIAGNOSED_POSITIONS_MAX = 16384 };

struct pe_model {
    const struct pe_diagnosis *d;
    struct pe_plan *plan; /* PE_ENCODE, f64, the outputs of the kind of evidence */
    struct pe_transforms transforms;
    void *state;             /* of the kind of evidence, freed with free() */
    struct pe_wave *columns; /* the waves of output 0, if it has waves, in quarter turns whatever the arithmetic; else
                                NULL. Owned. */
    double *losses;          /* behind the columns: what right f32 code loses of an angle, by each unit of position */
    size_t n_columns;
    uint64_t scale;  /* of a scheme that scales rows: what decides by how much, as one number; 0: unknown */
    double *kept;    /* pe_model_keep: [n, n_columns] */
    bool *no_memory; /* of the diagnosis: where to say that an allocation failed */
    double *work;    /* of the diagnosis: where predicted numbers count theirs */
    double number_work;
    struct pe_operand
        axes;         /* PE_OF_ROTATED: of the evidence, under the edit's tensor_layout; n = 0: it cannot have it */
    bool is_by_batch; /* each row of the batch has its own positions */
    bool has_shape;   /* of the evidence; a model of other positions has another number of rows, and is no hypothesis */
    bool is_misfit;   /* the belief, where it has not the shape: its numbers are infinities */
    struct pe_query_scale query_scale; /* PE_OF_ROTATED, of queries */
    struct pe_pieces *pieces;          /* of rows with another scaling; NULL: there are none */
};

/* Makes the model of an edit, whose memory the plan borrows until pe_model_free. PE_INVALID: such a request cannot be
 * planned, so it is no hypothesis. */
enum pe_status pe_model_new(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model,
                            struct pe_failure *err);
void pe_model_free(struct pe_model *model);
/* Are its frequencies rounded to 16 bits, and is that what the evidence shows? Then they are judged in these. */
bool pe_model_is_cast(const struct pe_model *model);
/* The same for a fault that measures under the edit so far: false: there is no such model. Without memory the edit has
 * failed. */
bool pe_edit_model(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_model **model);
/* n predicted numbers of a row of tensor t, all transforms applied; and what right f32 code may lose of each, as
 * pe_rounding_tolerance takes it. */
void pe_model_fill(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
void pe_model_phases(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
/* PE_OF_ROTATED, of a model that has the shape: the number of a row's position among those of the plan; and the row of
 * a head, which counts through the batch where its rows share their positions. Of other evidence: row modulo positions.
 */
uint64_t pe_model_position(const struct pe_model *model, uint64_t row);
/* By what a rotated row at position number i is multiplied afterwards. */
double pe_model_query_factor(const struct pe_model *model, uint64_t i);
uint64_t pe_model_row(const struct pe_model *model, uint64_t head, uint64_t place);
/* Before many rows: keeps the cosines and sines of every position (PE_OF_ROTATED), so that heads share them. Their
 * memory, so many bytes, is admitted by the caller; pe_model_forget frees it. */
double pe_model_kept_bytes(const struct pe_model *model);
enum pe_status pe_model_keep(struct pe_model *model, struct pe_failure *err);
void pe_model_forget(struct pe_model *model);
/* The plan of position number i and the row of that position in it; NULL: such a request cannot be planned, or memory
 * is short. */
const struct pe_plan *pe_model_plan_at(const struct pe_model *model, uint64_t i, uint64_t *row);
/* Multiply-adds of planning. */
double pe_model_plan_work(const struct pe_model *model);
/* Two hypotheses with the same signature are equal at every position. */
uint64_t pe_model_signature(const struct pe_model *model);

/* ---- Waves of a model ---- */

/* Numbers of rotary tables and sinusoidal encodings that no configuration gives: computed in few bits, or with other
 * exponents. */

/* Writes columns col0 … col0+n-1 of the model's waves at position number i, as its transforms `recipe` and `sinusoid`
 * say. The model has waves. */
void pe_wave_row(const struct pe_model *model, uint64_t i, uint64_t col0, size_t n, double *out);
/* The frequencies of the columns under transform `sinusoid`, which becomes the model's state; NULL: no memory. */
double *pe_wave_other_frequencies(const struct pe_model *model);
/* Columns of a model under transform `sinusoid` at any position of one axis. */
void pe_wave_row_at(const struct pe_model *model, double position, size_t col0, size_t n, double *out);
/* Column j at any position of one axis, as its transforms say; behind: quarter turns less, so that a cosine becomes a
 * sine. */
double pe_wave_at(const struct pe_model *model, size_t j, double position, int behind);
/* The same of cos (t 0) and sin (1), where the model's waves are the cosines. */
void pe_wave_tables(const struct pe_model *model, size_t t, uint64_t i, uint64_t col0, size_t n, double *out);
/* Completes the columns that a plan gave: quarter turns, whatever the arithmetic; the losses. */
void pe_wave_columns(struct pe_model *model);
/* Angles of the columns at position number i, with their sign; and frequencies, or by how much they are divided. */
void pe_wave_angles(const struct pe_model *model, uint64_t i, uint64_t col0, size_t n, double *out);
void pe_wave_ladder(const struct pe_model *model, bool as_divisors, uint64_t col0, size_t n, double *out);
/* What right f32 code may lose of the angles of the columns: |position|·loss. */
void pe_wave_phases(const struct pe_model *model, uint64_t i, uint64_t col0, size_t n, double *out);
/* The same as a share of the frequency of each column. */
void pe_wave_losses(const struct pe_model *model, size_t col0, size_t n, double *out);

/* Before any row: keeps the factors of rows, where the scheme scales them, and states what decides them.
 */
enum pe_status pe_factors_open(struct pe_diagnosis *d, struct pe_model *model, struct pe_failure *err);
/* Cosines, then sines, of position number i, [n_columns]. */
void pe_rotary_row(const struct pe_model *model, uint64_t i, double *out);

/* rotary.c: the row `in` rotated to position number i by a model of PE_OF_ROTATED, and the phases of its
 * channels. */
void pe_rotated_at(const struct pe_model *model, uint64_t i, const double *in, double *out, double *phase);

/* rotary.c: channel j of a row that is rotated to any position; the others are not computed. out: [3, row_len], the
 * first row_len of it the row. Returns what float32 loses of its angle by each unit of position. */
double pe_rotated_alone(const struct pe_model *model, size_t j, double position, double *out);
/* rotary.c: a row of q as it is rotated, its channels in this order (an order of the rotated vector is none of
 * q). */
void pe_input_in_order(const struct pe_diagnosis *d, const struct pe_channels *channels, uint64_t row, double *out);
/* rotary.c: 1 for each rotated channel of a model of PE_OF_ROTATED, 0 for one that passes by. */
void pe_rotated_channels(const struct pe_model *model, uint64_t col0, size_t n, double *out);

/* ---- Judging: how near a predicted number must be to the number found (judge.c has the bounds) ---- */

#define PE_NEAR_SHARE 0.05

enum pe_verdict { PE_EXACT, PE_ROUNDING, PE_NEAR, PE_NO_FIT, PE_NOT_JUDGED };
static inline bool pe_fits(enum pe_verdict v) { return v <= PE_ROUNDING; }

struct pe_judge {
    enum pe_evidence_id id;
    enum pe_dtype dtype; /* in which it is judged */
    double u, largest;
    bool are_probs; /* PE_OF_MAPS */
    double turning; /* PE_OF_MAPS */
    double n;       /* numbers of the evidence, of which a few may be beyond the limit of rounding */
    double half;    /* half a unit of the last digit that was typed; 0: the number was not typed */
};

/* As the evidence is sent; narrow: as the bf16 or f16 numbers that it holds (table_dtype). */
struct pe_judge pe_judge_of(const struct pe_evidence *e, bool narrow);
struct pe_judge pe_typed_judge(const struct pe_evidence *e, size_t i); /* of number i that was typed */
double pe_roundoff(enum pe_dtype dtype);                               /* u; 0 for integers */

/* Sign and magnitude of an f32 as an integer that counts steps; steps between two of them. Inline, because every number
 * of a tensor is compared, and most are f32. */
static inline int64_t pe_step_of_f32(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? -(int64_t)(bits & INT32_MAX) : bits;
}

static inline int64_t pe_steps_f32(float a, float b)
{
    int64_t steps = pe_step_of_f32(a) - pe_step_of_f32(b);
    return steps < 0 ? -steps : steps;
}

/* Steps between two numbers of the dtype; ±infinity follow the largest. */
double pe_steps_between(enum pe_dtype dtype, double a, double b);

/* Equal infinities are exact. phase: of a map, E of the number (maps.c); else it is not used. */
bool pe_is_exact(const struct pe_judge *j, double found, double expected, double phase);
/* Largest |found - expected| that is exact, of any number (not of angles). */
double pe_exact_most(const struct pe_judge *j);
/* What right f32 code loses of pair c's frequency, a share of it: g. */
double pe_float32_loss(double frequency, size_t c);
/* Largest |found - expected| of verdict rounding; phase: g·|p|w of the number; of a bias its head, from 1; of a map E.
 */
double pe_rounding_tolerance(const struct pe_judge *j, double found, double phase);
/* Beyond this error, no number is within rounding, whatever its phase (not of biases). */
double pe_rounding_most(const struct pe_judge *j);

/* Is each number judged by its own size? */
bool pe_judge_is_relative(const struct pe_judge *j);
/* Is some number so far off that its verdict depends on its phase? If not, phases may be NULL in pe_tally_add. */
bool pe_judge_needs_phases(const struct pe_judge *j, const double *found, const double *expected, size_t n);

/* Running verdict over numbers. */
struct pe_tally {
    struct pe_judge judge;
    bool is_exact, has_infinity_elsewhere;
    bool is_rounding; /* no number is too far off; n_beyond may still be too many */
    double max_error, sum_error2, sum_found2;
    uint64_t n_beyond; /* numbers beyond the limit of rounding */
};
void pe_tally_init(struct pe_tally *t, const struct pe_judge *judge);
void pe_tally_add(struct pe_tally *t, const double *found, const double *expected, const double *phase, size_t n);
enum pe_verdict pe_tally_verdict(const struct pe_tally *t);

#endif
