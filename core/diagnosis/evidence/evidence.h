/* The evidence: the tensor sent, what kind of tensor it is, and the sample of its numbers. */
#ifndef PE_EVIDENCE_H
#define PE_EVIDENCE_H

#include "core/request/operand.h"
#include "core/scheme.h"

struct pe_model;
struct pe_diagnosis;
struct pe_evidence;

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
    PE_N_EVIDENCES
};
#define PE_EVIDENCE_BIT(name) (1U << PE_OF_##name)

/* A kind of evidence. */
struct pe_evidence_kind {
    enum pe_evidence_id id;
    unsigned like;     /* PE_EVIDENCE_BIT of kinds whose faults it has too */
    bool is_key;       /* PE_OF_ROTATED: keys, not queries */
    bool is_parameter; /* its name is a parameter too: beside other evidence it is the belief's */
    const char *tensors[PE_EVIDENCE_TENSORS_MAX + 1]; /* names of the fields compared: "cos", "sin", NULL */
    const char *input;                                /* a tensor that is not compared, "q"; NULL: none */
    const char *scheme;                               /* of a belief without one */
    const char *outputs[PE_EVIDENCE_TENSORS_MAX + 1]; /* of the plan, in the order of tensors; read() may change the
                                                         form of rotary tables by pe_belief_set */
    /* Sets the view of the one tensor sent, and the tensors seen. NULL: they are the tensors sent. */
    enum pe_status (*view)(struct pe_evidence *e, struct pe_error *err);
    /* Checks the shapes and gives the belief the sizes that they fix (pe_belief_fix): before anything is allocated. */
    enum pe_status (*read)(struct pe_diagnosis *d, struct pe_error *err);
    /* Prepares a model: may set model->state. NULL: nothing. */
    enum pe_status (*prepare)(struct pe_model *model, struct pe_error *err);
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
    pe_evidence_matrix, pe_evidence_angles, pe_evidence_freqs, pe_evidence_inv_freq, pe_evidence_rope_freqs;

/* Tensors that are parts of one tensor sent: number [row, col] of tensor t is number first[t] + row·row_step +
 * col·col_step of it, counted flat, with the opposite sign where is_negative. */
struct pe_view {
    struct pe_tensor sent; /* rank 0: there is no view, the tensors are as sent */
    uint64_t first[PE_EVIDENCE_TENSORS_MAX], row_step, col_step;
    bool is_negative[PE_EVIDENCE_TENSORS_MAX];
    const char *form; /* the configuration's word for the arrangement; NULL: that of the tables */
};

struct pe_evidence {
    const struct pe_evidence_kind *kind;
    struct pe_tensor tensors[PE_EVIDENCE_TENSORS_MAX]; /* data borrowed from the request; axes: pe_evidence_fold */
    struct pe_tensor sent;                             /* the first of them, with the axes that came */
    struct pe_view view;
    size_t n_tensors;
    uint64_t n_rows, row_len; /* of each tensor; a row is the last axis, of a rotated tensor one head of it */
    struct pe_tensor input;   /* PE_OF_ROTATED: q, of the same shape */
    struct pe_operand axes; /* PE_OF_ROTATED: as the believed tensor_layout has them; n = 0: it cannot be this shape */
    bool is_text[PE_EVIDENCE_TENSORS_MAX], input_is_text; /* from JSON text: each number counts as rounded to f32 */
    enum pe_dtype dtype;    /* of the numbers compared; integers of buckets and ids: i64 */
    enum pe_dtype narrow;   /* bf16 or f16 if every number of a wider dtype is one; else PE_DTYPE_NONE */
    double largest;         /* the largest finite magnitude, called S */
    bool is_channels_first; /* as believed: the channel is the slowest axis, a row is spread over the tensor */
    bool is_turned;         /* its last two axes, exchanged, are what the belief gives: [dim, n] */
    int64_t zero_row;       /* the first position whose row is 0, -1: none (encoding, cos and sin) */
    bool has_infinity;
};

/* Writes numbers col0 … col0+n-1 of a row of tensor t as doubles (JSON numbers rounded to f32). */
void pe_evidence_read(const struct pe_evidence *e, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
/* Are its numbers integers, whatever the dtype? */
bool pe_evidence_is_whole(const struct pe_evidence *e);
/* Is a row 0 in every tensor? */
bool pe_evidence_is_zero(const struct pe_evidence *e, uint64_t row);
/* A row of the input q. */
void pe_evidence_input(const struct pe_evidence *e, uint64_t row, double *out);

/* Gives the axes that the numbers have, as many as came: the number of rows and their length follow. */
void pe_evidence_fold(struct pe_evidence *e, unsigned rank, const uint64_t *shape);
/* In read(): the last `rank` axes, where all before them have length 1; or else, of two axes, where all but one of the
 * leading ones have length 1. false: the axes stay. */
bool pe_evidence_squeeze(struct pe_evidence *e, unsigned rank);
/* PE_OF_ROTATED: its axes in a tensor_layout (NULL: the usual one), leading axes of length 1 left out where there are
 * too many. false: it cannot have this layout. */
bool pe_evidence_place(const struct pe_evidence *e, const char *layout, struct pe_operand *axes);
/* The row of head `head`, counted through the batch, at position number i. */
uint64_t pe_axes_row(const struct pe_operand *axes, uint64_t head, uint64_t i);

/* Has the believed scheme an output of this name? */
bool pe_evidence_is_output(const struct pe_diagnosis *d, const char *name);
/* The tensor sent in which tensor t is, with the axes that came, and its name. */
const struct pe_tensor *pe_evidence_sent(const struct pe_evidence *e);
const char *pe_evidence_name(const struct pe_evidence *e, size_t t);

/* Its last two axes as the belief has them. */
uint64_t pe_evidence_length(const struct pe_evidence *e);
uint64_t pe_evidence_width(const struct pe_evidence *e);
/* Relative standard error of its numbers: the unit roundoff of the narrowest dtype that they fit. */
double pe_evidence_noise(const struct pe_evidence *e);

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
enum pe_status pe_tables_read(struct pe_diagnosis *d, struct pe_error *err);
void pe_tables_phases(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);

/* views.c: for kinds of evidence. Rows of columns, where at most one other axis is larger than 1. */
enum pe_status pe_view_rows(struct pe_evidence *e, struct pe_error *err);
enum pe_status pe_view_freqs_cis(struct pe_evidence *e, struct pe_error *err);
enum pe_status pe_view_cos_sin(struct pe_evidence *e, struct pe_error *err);
enum pe_status pe_view_matrix(struct pe_evidence *e, struct pe_error *err);

/* find.c: finds the tensors in the request and checks them before anything is allocated. */
enum pe_status pe_evidence_find(struct pe_diagnosis *d, struct pe_error *err);
/* Their figures and the sample. */
enum pe_status pe_evidence_sample(struct pe_diagnosis *d, struct pe_error *err);
void pe_evidence_drop(struct pe_diagnosis *d);

#endif
