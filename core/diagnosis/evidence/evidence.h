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
struct pe_piece;

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
     * itself (negated, transposed, scaled, mask_value, exchanged tensors of cos and sin). NULL: pe_fill of
     * output t. Rows are the last axis of the tensor as sent. */
    void (*fill)(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
    /* Writes numbers of positions that the evidence does not have, so that hypotheses which differ only there keep
     * different signatures: at most n_max, 0 if there are none. NULL: the frequencies decide. */
    size_t (*fill_beyond)(const struct pe_model *model, size_t n_max, double *out);
    /* Writes what right f32 code may lose of each number (pe_rounding_tolerance): of the angle, the head, or
     * the coordinates at which a table is read, as a share of the largest number. NULL: 0. */
    void (*phases)(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
};
extern const struct pe_evidence_kind pe_evidence_encoding, pe_evidence_tables, pe_evidence_cosines, pe_evidence_sines,
    pe_evidence_rotated, pe_evidence_keys, pe_evidence_bias, pe_evidence_buckets, pe_evidence_index,
    pe_evidence_index_h, pe_evidence_index_w, pe_evidence_ids, pe_evidence_freqs_cis, pe_evidence_cos_sin,
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

/* A rotation as one matrix a row, [n, width, width]: which of its channels are pairs. */
struct pe_whole {
    uint64_t width, offset, n_pairs; /* width 0: the evidence is none; offset: channels that pass by before the pairs */
    bool is_half;                    /* partners are n_pairs apart, else neighbours */
    const char *layout;              /* what the numbers show; NULL: no channel turns */
    const char *believed;            /* another one; NULL: it is the same, or none is given */
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
    PE_TYPED_LEN = 32,       /* positions of a belief that gives none; a probe looks at so many of the first */
    PE_PROBED_ROWS = 64,     /* that a probe looks at */
    PE_PROBED_NUMBERS = 8192 /* at most, so that a wide table has fewer rows */
};

/* What the request for a probe, or with `values`, states beside the belief. */
struct pe_typed_fields {
    int of;
    int64_t count, decimals;
};

/* A copy of the tensor in place of it: its axes in another order, axis i is axis order[i] of the one sent, or some
 * indices of one axis (moved.c). n = 0: there is none. */
struct pe_moved {
    unsigned n;
    bool is_other_order;
    unsigned char order[PE_RANK_MAX];
    uint64_t shape[PE_RANK_MAX], step[PE_RANK_MAX]; /* of axis i: its length; elements of the tensor sent */
    uint64_t first;                                 /* the element of the tensor sent that is the first one */
    void *owned[PE_EVIDENCE_TENSORS_MAX + 1];       /* the numbers, and those of the input */
};

/* More rows than the belief has, or fewer (sizes.c). */
enum pe_left_is { PE_LEFT_OTHER, PE_LEFT_ZERO, PE_LEFT_REPEATED, PE_LEFT_GOING_ON, PE_LEFT_NONE };
enum pe_size_of {
    PE_SIZE_OF_ROWS,
    PE_SIZE_OF_BATCH,
    PE_SIZE_OF_CHANNELS,
    PE_SIZE_OF_HEADS,
    PE_SIZE_OF_KEYS,
    PE_SIZE_OF_MAP,
    PE_SIZE_OF_GRID,
    PE_SIZE_OF_TABLE /* the grid is that of the table, which is not resized */
};
struct pe_size {
    enum pe_size_of of;
    uint64_t n_found, n_believed;
    uint64_t first;       /* the row of the longer one that the first row of the shorter one is compared with */
    enum pe_left_is left; /* what is left out of a tensor; NONE: the belief has taken its size over */
    bool is_padded;       /* a tensor that is shorter has got as many as the belief, which are not compared */
    double sides[3], believed_sides[3]; /* PE_SIZE_OF_GRID, PE_SIZE_OF_MAP: of so many axes */
    unsigned n_sides;
};
enum { PE_SIZES_MAX = 2 };

/* Rows that are not compared, as those of padding are not, and why. */
enum {
    PE_ASIDE_NOT_FINITE = 1, /* it has such a number, which reads as 0, so that no measurement meets it */
    PE_ASIDE_ZERO = 2,       /* it is 0, which shows nothing of a rotation or a wave: whatever predicts 0 there fits */
    PE_ASIDE_MISSING = 8,    /* the tensor has no such row, where fewer heads came than are believed */
    PE_ASIDE_FITS = 4        /* of the diagnosis of a rest: it is as believed */
};

/* NaN and infinities, of which maps and biases may have infinities. */
struct pe_not_finite {
    uint64_t n; /* numbers; 0: every one is finite */
    size_t t;   /* the first */
    uint64_t row, col;
    double value;
};

/* What digits leave open, and what "..." leaves out (printed.c). */
struct pe_printed {
    const struct pe_print *of[PE_EVIDENCE_TENSORS_MAX], *input; /* NULL: not as text, or with all of its digits */
    const struct pe_print *operands[PE_N_OPERANDS];             /* PE_OF_MAPS */
    struct pe_print stated[PE_EVIDENCE_TENSORS_MAX + 1];        /* by the field `decimals` */
    const char *name;  /* of the first tensor whose digits leave something open */
    double half, more; /* what digits leave open of a number, of the tensors and then of the input */
    unsigned rank;     /* of the tensors as they came */
    uint64_t shape[PE_RANK_MAX];
    bool has_gaps;
    unsigned char *left_out; /* [n_rows]: are all numbers of the row? owned; NULL: no row is */
};

struct pe_evidence {
    const struct pe_evidence_kind *kind;
    struct pe_tensor tensors[PE_EVIDENCE_TENSORS_MAX]; /* data borrowed from the request; axes: pe_evidence_fold */
    struct pe_tensor sent;                             /* the first of them, with the axes that came */
    unsigned first_table;                              /* PE_OF_TABLES: 1 where the sines alone came */
    struct pe_tensor_view view;
    struct pe_whole whole;
    size_t n_tensors;
    uint64_t n_rows, row_len; /* of each tensor; a row is the last axis, of a rotated tensor one head of it */
    struct pe_tensor input;   /* PE_OF_ROTATED: q, of the same shape */
    struct pe_operand axes; /* PE_OF_ROTATED: as the believed tensor_layout has them; n = 0: it cannot be this shape */
    struct pe_tensor operands[PE_N_OPERANDS]; /* PE_OF_MAPS: q and k, before rotation */
    bool operand_is_text[PE_N_OPERANDS];
    double *norms[PE_N_OPERANDS]; /* PE_OF_MAPS: of their rows; owned */
    double turning;               /* PE_OF_MAPS: what float32's angles, and digits, lose, as a share of a score */
    struct pe_value tiled_keys;   /* pe_tiled_keys; owned */
    bool is_text[PE_EVIDENCE_TENSORS_MAX], input_is_text; /* from JSON text: each number counts as rounded to f32 */
    enum pe_dtype dtype;  /* of the numbers compared; integers of buckets and ids: i64 */
    enum pe_dtype narrow; /* bf16 or f16 if every number of a wider dtype is one; else PE_DTYPE_NONE */
    double largest;       /* the largest finite magnitude, called S */
    uint64_t folded; /* of tables: sines of columns j and j + folded, a pair, have opposite signs, and the first is read
                        with the other one's; 0: not so */
    bool is_channels_first; /* as believed: the channel is the slowest axis, a row is spread over the tensor */
    bool is_turned;         /* its last two axes, exchanged, are what the belief gives: [dim, n] */
    bool has_infinity;
    unsigned char *aside; /* [n_rows] PE_ASIDE_…, 0: compared; owned; NULL: every row is */
    uint64_t n_zero;      /* rows that are 0 and set aside */
    struct pe_not_finite not_finite;
    const struct pe_padding *padding; /* rows of padding, and keys, are not compared; NULL: there is none */
    bool is_typed;          /* no tensor was sent: of its numbers those typed are known; a probe has none of them */
    struct pe_typed *typed; /* [n_typed]; owned */
    size_t n_typed;
    double half;    /* of a unit of the last digit, where a probe is asked for */
    double *places; /* positions of the belief; owned */
    struct pe_moved moved;
    struct pe_printed printed;
    struct pe_size sizes[PE_SIZES_MAX];
    size_t n_sizes;
};

/* Writes numbers col0 … col0+n-1 of a row of tensor t as doubles (JSON numbers rounded to f32). */
void pe_evidence_read(const struct pe_evidence *e, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
/* PE_OF_TABLES: are its tensor t cosines, 0, or sines, 1? One of both may be missing, and is not compared then. */
static inline size_t pe_evidence_table(const struct pe_evidence *e, size_t t) { return (t + e->first_table) % 2; }
bool pe_evidence_is_lone(const struct pe_evidence *e);
/* -1: the number is read with the opposite sign of the one that came. */
static inline double pe_evidence_sign(const struct pe_evidence *e, size_t t, uint64_t col)
{
    bool is_folded = e->folded && pe_evidence_table(e, t) == 1 && (e->folded == 1 ? col % 2 == 0 : col < e->folded);
    return e->view.is_negative[t] != is_folded ? -1 : 1;
}
/* Numbers of JSON text that tell one wave from another: not 0 or ±1, with three digits or more. At most
 * PE_INFORMATIVE_MIN are counted, and so many is the answer for tensors that are binary or no waves. Many
 * configurations give the same few numbers, so fewer identify none. */
enum { PE_INFORMATIVE_MIN = 8 };
size_t pe_evidence_informative(const struct pe_evidence *e);
/* Are its numbers integers, whatever the dtype? */
bool pe_evidence_is_whole(const struct pe_evidence *e);
/* Is a row 0 in every tensor? */
bool pe_evidence_is_zero(const struct pe_evidence *e, uint64_t row);
/* Is it a row of padding, or one that is set aside? */
bool pe_evidence_is_padding(const struct pe_evidence *e, uint64_t row);

/* Where a row of the evidence is: its place in the sequence, in the batch, and its head. */
struct pe_place {
    uint64_t row, batch, head;
};
/* How many of each there are. 1: there is no such axis, or one of length 1. */
struct pe_place pe_evidence_places(const struct pe_evidence *e);
struct pe_place pe_evidence_place(const struct pe_evidence *e, const struct pe_place *sizes, uint64_t row);
/* Is a place one that the tensor has not, though the belief has it? */
static inline bool pe_place_is_missing(const struct pe_evidence *e, const struct pe_place *at)
{
    bool is_missing = false;
    for (size_t i = 0; i < e->n_sizes; i++) {
        const struct pe_size *s = &e->sizes[i];
        uint64_t n = s->of == PE_SIZE_OF_HEADS ? at->head : s->of == PE_SIZE_OF_BATCH ? at->batch : at->row;
        is_missing |= s->is_padded && s->of != PE_SIZE_OF_KEYS && (n < s->first || n >= s->first + s->n_found);
    }
    return is_missing;
}
/* A row of the input q. */
void pe_evidence_input(const struct pe_evidence *e, uint64_t row, double *out);

/* printed.c: of tensors that came as text. state: their digits, by the request; open: once their rows are known. */
void pe_printed_state(struct pe_evidence *e, double half);
enum pe_status pe_printed_open(struct pe_diagnosis *d, struct pe_failure *err);
/* Of what is rotated: refused if something of it is left out. print may be NULL. */
enum pe_status pe_printed_is_whole(const struct pe_print *print, const char *name, struct pe_failure *err);
/* Is the evidence less exact than its dtype? Then bits tell nothing of the arithmetic. */
static inline bool pe_is_printed(const struct pe_evidence *e) { return e->printed.name != NULL; }
/* Moves n numbers found towards those predicted, as far as their digits leave open; what was left out is as predicted.
 * Returns how many were left out. */
size_t pe_printed_settle(const struct pe_evidence *e, const struct pe_piece *at, const double *expected, double *found);

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
/* The same with indices first … first+n-1 of an axis alone. */
enum pe_status pe_evidence_cut(struct pe_diagnosis *d, unsigned axis, uint64_t first, uint64_t n,
                               struct pe_failure *err);
/* The same with so many indices of an axis, of which those from `first` on are the tensor's. */
enum pe_status pe_evidence_pad(struct pe_diagnosis *d, unsigned axis, uint64_t first, uint64_t n,
                               struct pe_failure *err);
/* sizes.c: after the belief's plan has another shape: leaves out what one of both has more. Else err as it is. */
enum pe_status pe_sizes_mend(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_failure *err);
/* map_sizes.c: the same of scores and probabilities; which heads, or queries, one with fewer of them has, with the
 * belief's model. */
enum pe_status pe_sizes_mend_attention(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_failure *err);
enum pe_status pe_sizes_place(struct pe_diagnosis *d, struct pe_failure *err);
/* The tensor has another number of rotated channels than the belief, which takes it over. */
void pe_sizes_take_width(struct pe_diagnosis *d, const char *field, uint64_t value, uint64_t n_found,
                         uint64_t n_believed);
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
/* May its rows be those of a batch that shares its positions? */
bool pe_evidence_is_shared(const struct pe_evidence *e);
/* Tables, angles and encodings: has it n rows, or n in each row of a batch that shares its positions? */
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
    double *settled; /* [n]: likewise, of a tensor that was printed: what is found, as near as its digits allow */
};

/* Does the list inv_freq fall, in (0, 1], but for zeros at its end? */
bool pe_ladder_falls(const struct pe_evidence *e);

/* Why a list inv_freq is uninitialised memory, and at which pair: "not_finite", "denormal" (of f32), "not_smooth"
 * (another sign, a zero before other numbers, or a jump); NULL: it is not, or the evidence is another. */
struct pe_oddity {
    const char *why;
    uint64_t pair;
    double value;
};
struct pe_oddity pe_ladder_oddity(const struct pe_evidence *e);

/* rotary.c: refuses a scheme that does not rotate; the sentence of a shape that cannot be; a form where none is given.
 */
enum pe_status pe_rotary_check_scheme(const struct pe_diagnosis *d, struct pe_failure *err);
enum pe_status pe_rotary_wrong_shape(const struct pe_diagnosis *d, const char *needed, struct pe_failure *err);
void pe_rotary_set_form(struct pe_diagnosis *d, const char *form);
/* The sizes of tables and of what else has a column for each pair; |position|·frequency of its numbers. */
enum pe_status pe_tables_read(struct pe_diagnosis *d, struct pe_failure *err);
void pe_tables_phases(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);

/* views.c: the views of rotary tables in one tensor. */
enum pe_status pe_view_freqs_cis(struct pe_evidence *e, struct pe_failure *err);
enum pe_status pe_view_cos_sin(struct pe_evidence *e, struct pe_failure *err);
enum pe_status pe_view_matrix(struct pe_evidence *e, struct pe_failure *err);
/* whole_matrix.c: of matrices [n, d, d]. PE_INVALID: a number is of no pair. */
bool pe_is_whole_matrix(const struct pe_tensor *t);
enum pe_status pe_view_whole_matrix(struct pe_evidence *e, struct pe_failure *err);
enum pe_status pe_matrix_read(struct pe_diagnosis *d, struct pe_failure *err);

/* typed.c: numbers that were typed, in place of the three steps of a tensor: found, read, sampled. */
bool pe_typed_is_sent(const struct pe_diagnosis *d);
enum pe_status pe_typed_find(struct pe_diagnosis *d, struct pe_failure *err);
enum pe_status pe_typed_read(struct pe_diagnosis *d, struct pe_failure *err);
enum pe_status pe_typed_sample(struct pe_diagnosis *d, struct pe_failure *err);
/* sample.c: the first position of an axis that is p; n: there is none. */
uint64_t pe_typed_index(const struct pe_positions *positions, double p);
/* The places that a probe looks at, as a sample without numbers found (pe_sample_drop, also after a failure). */
enum pe_status pe_probed_open(struct pe_diagnosis *d, struct pe_sample *s, struct pe_failure *err);
void pe_sample_drop(struct pe_sample *s);
/* Writes what a model predicts for a sample, [s->n]. */
void pe_sample_fill(const struct pe_sample *s, const struct pe_model *model, double *out);

/* resized.c: an encoding whose table is resized by a kernel of the model's transforms. */
enum pe_status pe_resized_prepare(struct pe_model *model, struct pe_failure *err);
void pe_resized_fill(const struct pe_model *model, uint64_t row, uint64_t col0, size_t n, double *out);
/* The sides of a resized table, and of its grid, of a plan; false: it has none. */
bool pe_resized_sides(const struct pe_plan *plan, uint64_t *from, uint64_t *to, uint64_t *n_prefix);
/* Are the rows, as far as some of them and of the channels show, the first ones of a table that the plan resizes? */
bool pe_resized_is_table(const struct pe_diagnosis *d, const struct pe_plan *plan);

/* bias.c: the sides of a plan's window, and how many class tokens are before it; false: it has none. */
bool pe_window_of(const struct pe_plan *plan, uint64_t *sides, uint64_t *n_class);
/* maps.c: is a row of a map that of a query which is padding? */
bool pe_map_is_padding(const struct pe_evidence *e, uint64_t row);
/* The larger |position| of the query of a row and of a key. */
double pe_map_reach(const struct pe_model *model, uint64_t row, uint64_t key);
/* Multiply-adds of a number of a map. */
double pe_map_number_work(const struct pe_plan *plan);
/* The keys that query head h reads as key head h modulo their number; NULL: that is no other way. */
const struct pe_value *pe_tiled_keys(struct pe_diagnosis *d);

/* find.c: finds the tensors in the request and checks them before anything is allocated. */
enum pe_status pe_evidence_find(struct pe_diagnosis *d, struct pe_failure *err);
/* evidence.c: what every judgement needs of all numbers. sample.c: the same, then the sample. */
enum pe_status pe_evidence_look_over(struct pe_diagnosis *d, struct pe_failure *err);
enum pe_status pe_evidence_sample(struct pe_diagnosis *d, struct pe_failure *err);
void pe_evidence_drop(struct pe_diagnosis *d);

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
    double bits;       /* PE_OF_MAPS: what the numbers tell beyond their limits; of other evidence infinite */
};
void pe_tally_init(struct pe_tally *t, const struct pe_judge *judge);
void pe_tally_add(struct pe_tally *t, const double *found, const double *expected, const double *phase, size_t n);
enum pe_verdict pe_tally_verdict(const struct pe_tally *t);

#endif
