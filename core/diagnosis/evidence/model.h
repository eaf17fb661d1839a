/* The belief, what an edit changes in it, and the model that predicts the numbers of the two. */
#ifndef PE_MODEL_H
#define PE_MODEL_H

#include "core/diagnosis/evidence/evidence.h"

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
/* Is it of the tensor and its place, or how it is written: in a request without the belief, too? */
bool pe_belief_is_no_part(const struct pe_diagnosis *d, const char *name);
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

enum pe_sinusoid_change { PE_SINUSOID_AS_IS, PE_EXPONENT_PER_COLUMN, PE_EXPONENT_DOUBLED, PE_SINE_ONLY };

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

/* How a table is resized along each axis, where no word of `interpolate` states it. */
struct pe_kernel {
    enum { PE_KERNEL_NONE, PE_KERNEL_NEAREST, PE_KERNEL_LINEAR, PE_KERNEL_CUBIC } kind;
    /* Row o of g is read from n rows at (o + 1/2)·n/(g + offset) - 1/2; at o·(n - 1)/(g - 1); at o·n/g; at o, or at
     * o + floor((n - g)/2), where there are so many rows. */
    enum { PE_HALF_PIXEL, PE_CORNERS, PE_ASYMMETRIC, PE_FIRST_ROWS, PE_MIDDLE_ROWS } rule;
    bool is_wide;   /* where the grid shrinks as wide as the step; rows beyond the border are left out, not repeated */
    bool by_column; /* the result is column by column … */
    bool table_by_column; /* … the table is read so */
    double a, offset;     /* a: of cubic ones */
};
enum { PE_RESIZED_AXES = 3 }; /* of a table; those that are not there have one row */
enum { PE_KERNEL_WEIGHTS_MAX = 1 << 18 };
/* resized.c: writes the weights of all axes, [to, from] of each one after the other; *at is where each begins. */
void pe_kernel_weights(const struct pe_kernel *kernel, const uint64_t *from, const uint64_t *to, double *weights,
                       double *at[PE_RESIZED_AXES]);
/* How many these are. */
double pe_kernel_weights_count(const uint64_t *from, const uint64_t *to);
/* The row of the table, without its prefix, at a place on each axis. */
uint64_t pe_kernel_cell(const struct pe_kernel *kernel, const uint64_t *from, uint64_t a, uint64_t b, uint64_t c);
/* Can a table of these sides be cut to the grid, where the rule cuts it? */
bool pe_kernel_reaches(const struct pe_kernel *kernel, const uint64_t *from, const uint64_t *to);
/* The place on each axis of a cell of the result. */
void pe_kernel_place(const struct pe_kernel *kernel, const uint64_t *to, uint64_t cell, uint64_t *place);

/* The index of a window of patches, and the row of its table: by[0]·(rows) + by[1]·(columns) between query and key, and
 * `first` where both are at the same place. NaN: as believed; first: as the smallest index 0 has it. */
struct pe_strides {
    double by[2], first;
};

/* What is done with cosines and sines where it is no rotation: of a pair a, b */
enum pe_turn {
    PE_TURN_AS_IS,
    PE_TURN_COSINES,    /* a·cos and b·cos: the sines are lost */
    PE_TURN_UNSIGNED,   /* a·cos + b·sin and b·cos + a·sin: the sign is lost */
    PE_TURN_OTHER_TABLE /* of halves each with the angles of neighbours, or the reverse: the table repeats its columns
                           for the other layout */
};

/* What is done to queries or keys alone. */
enum pe_side_change {
    PE_SIDE_AS_IS,
    PE_SIDE_STILL,   /* rotated to position 0 */
    PE_SIDE_REVERSED /* in the opposite direction */
};

/* Applied to the numbers of a plan, in this order. */
struct pe_transforms {
    struct pe_channels channels;
    enum pe_recipe recipe; /* PE_RECIPE_EXACT: none */
    enum pe_sinusoid_change sinusoid;
    enum pe_bias_change bias; /* of maps, as the next three */
    enum pe_stage stage;
    enum pe_side_change sides[PE_N_OPERANDS];
    bool is_tiled; /* pe_tiled_keys */
    double moved;  /* queries are rotated to so many positions further on; 0: not */
    bool inverted; /* 1/x: timescales in place of frequencies */
    bool sin_cos_swapped, negated, transposed;
    enum pe_turn turn;
    double wrapped_from;                   /* angles are reduced modulo 2pi, the smallest is this; NaN: not */
    double scaled;                         /* 1: not */
    double mask_value;                     /* in place of -infinity; NaN: not */
    const struct pe_value *scaling_behind; /* of rows from switched_at on; NULL: there are none. Of the edit */
    int64_t switched_at;                   /* number of the position */
    bool is_growing;                       /* each of these rows has the length of the sequence up to it */
    struct pe_kernel kernel;               /* PE_KERNEL_NONE: as the plan resizes its table */
    struct pe_strides strides;
    int mirrored; /* distances of an encoding without their sign: 1 all as on the first side, -1 as on the last; 0: not
                   */
    unsigned n_axes; /* `axes`: axis i of the ids is axis order[i] of the plan's; 0: not */
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

/* Writes the fields of the request that an edit is, [PE_FIELDS_MAX]; returns their number. */
size_t pe_edit_fields(const struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_field *fields);

/* ---- Models ---- */

/* Models: an edit as a real plan, and the numbers that it predicts. */

/* Multiply-adds that take a nanosecond, as pe_plan_work counts them. */
enum { PE_WORK_OF_A_NS = 4 };

enum { PE_DIAGNOSED_POSITIONS_MAX = 16384 };

/* What right f32 code may lose of the angles of a wave, by each unit of position: in all; and how much of that is not
 * the frequency's, so that it differs from position to position. */
struct pe_loss {
    double of_angle, of_step;
    bool is_exact; /* the frequency has no rounding: angles that float32 holds are exact */
};

struct pe_model {
    const struct pe_diagnosis *d;
    struct pe_plan *plan; /* PE_ENCODE, f64, the outputs of the kind of evidence */
    struct pe_transforms transforms;
    void *state;             /* of the kind of evidence, freed with free() */
    struct pe_wave *columns; /* the waves of output 0, if it has waves, in quarter turns whatever the arithmetic; else
                                NULL. Owned. */
    struct pe_loss *losses;  /* behind the columns: of each of them */
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
 * planned, so it is no hypothesis. Without memory the whole diagnosis fails. */
enum pe_status pe_model_new(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model,
                            struct pe_failure *err);
void pe_model_free(struct pe_model *model);
/* Are its frequencies rounded to 16 bits, and is that what the evidence shows? Then they are judged in these. */
bool pe_model_is_cast(const struct pe_model *model);
/* The same for a fault that measures under the edit so far. False: there is no such model. */
bool pe_edit_model(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model);
/* The sample of a map as a copy of an edit predicts it, of probabilities the scores; [sample.n]. false: no model. */
bool pe_sample_scores(struct pe_diagnosis *d, struct pe_edit edit, double *out);
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
/* The frequency of a column; and as the model's recipe rounds it. */
double pe_wave_radians(const struct pe_wave *wave);
double pe_wave_by_recipe(const struct pe_model *model, double w);
/* What right f32 code may lose of the angle of column j at a position; how much of it not with its frequency; the first
 * of columns at position number i. */
double pe_wave_loss(const struct pe_model *model, size_t j, double position);
double pe_wave_step_loss(const struct pe_model *model, size_t j, double position);
void pe_wave_phases(const struct pe_model *model, uint64_t i, uint64_t col0, size_t n, double *out);
/* The same as a share of the frequency of each column. */
void pe_wave_losses(const struct pe_model *model, size_t col0, size_t n, double *out);

/* Before any row: keeps the factors of rows, where the scheme scales them, and states what decides them.
 */
enum pe_status pe_factors_open(struct pe_diagnosis *d, struct pe_model *model, struct pe_failure *err);
/* Cosines, then sines, of position number i, [n_columns]. */
void pe_rotary_row(const struct pe_model *model, uint64_t i, double *out);

/* rotated.c: the row `in` rotated to position number i by a model of PE_OF_ROTATED, and the phases of its
 * channels. */
void pe_rotated_at(const struct pe_model *model, uint64_t i, const double *in, double *out, double *phase);

/* rotated.c: channel j of a row that is rotated to any position; the others are not computed. out: [3, row_len], the
 * first row_len of it the row. Returns what float32 loses of its angle. */
double pe_rotated_alone(const struct pe_model *model, size_t j, double position, double *out);
/* rotated.c: a row of q as it is rotated, its channels in this order (an order of the rotated vector is none of
 * q). */
void pe_input_in_order(const struct pe_diagnosis *d, const struct pe_channels *channels, uint64_t row, double *out);
/* rotated.c: the pair that gives channel j of a rotated row, -1: it is not rotated; is each pair turned by one angle?
 */
int pe_rotated_pair(const struct pe_model *model, uint64_t j);
bool pe_rotated_keeps_lengths(const struct pe_model *model);
/* rotated.c: 1 for each rotated channel of a model of PE_OF_ROTATED, 0 for one that passes by. */
void pe_rotated_channels(const struct pe_model *model, uint64_t col0, size_t n, double *out);

#endif
