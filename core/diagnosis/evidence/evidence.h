/* The evidence: the tensor sent, what kind of tensor it is, and the sample of its numbers. */
#ifndef PE_EVIDENCE_H
#define PE_EVIDENCE_H

#include "core/scheme.h"

struct pe_model;
struct pe_diagnosis;

enum {
    PE_EVIDENCE_TENSORS_MAX = 2,
    PE_SAMPLE_MAX = 1 << 14 /* numbers that each hypothesis is compared with, unless one row has more */
};
#define PE_EVIDENCE_BYTES_MAX (64ULL << 20)

enum pe_evidence_id {
    PE_OF_ENCODING,
    PE_OF_TABLES,  /* cos and sin */
    PE_OF_ROTATED, /* q and q_out */
    PE_OF_BIAS,
    PE_OF_BUCKETS,
    PE_OF_IDS, /* position_ids */
    PE_N_EVIDENCES
};
#define PE_EVIDENCE_BIT(name) (1U << PE_OF_##name)

/* A kind of evidence. */
struct pe_evidence_kind {
    enum pe_evidence_id id;
    const char *tensors[PE_EVIDENCE_TENSORS_MAX + 1]; /* names of the fields compared: "cos", "sin", NULL */
    const char *input;                                /* a tensor that is not compared, "q"; NULL: none */
    const char *scheme;                               /* of a belief without one */
    const char *outputs[PE_EVIDENCE_TENSORS_MAX + 1]; /* of the plan, in the order of tensors; read() may change the
                                                         form of rotary tables by pe_belief_set */
    /* Checks the shapes and tells the belief the sizes that they fix (pe_belief_fix): before anything is allocated. */
    enum pe_status (*read)(struct pe_diagnosis *d, struct pe_error *err);
    /* Prepares a model: may set model->state. NULL: nothing. */
    enum pe_status (*prepare)(struct pe_model *model, struct pe_error *err);
    /* Writes n predicted numbers, f64, from element col0 of a row on, without transforms that pe_model_fill applies
     * itself (negated, transposed, scaled, mask_value, zero_row, exchanged tensors of cos and sin). NULL: pe_fill of
     * output t. Rows are the last axis of the tensor as sent. */
    void (*fill)(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
    /* Writes numbers of positions that the evidence does not have, so that hypotheses which differ only there keep
     * different signatures: at most n_max, 0 if there are none. NULL: the frequencies tell. */
    size_t (*fill_beyond)(const struct pe_model *model, size_t n_max, double *out);
    /* Writes |position|·frequency of each number, which decides what angles in f32 cost. NULL: 0. */
    void (*phases)(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
};
extern const struct pe_evidence_kind pe_evidence_encoding, pe_evidence_tables, pe_evidence_rotated, pe_evidence_bias,
    pe_evidence_buckets, pe_evidence_ids;

struct pe_evidence {
    const struct pe_evidence_kind *kind;
    struct pe_tensor tensors[PE_EVIDENCE_TENSORS_MAX]; /* as sent; their data is borrowed from the request */
    size_t n_tensors;
    uint64_t n_rows, row_len;                             /* of each tensor; a row is the last axis */
    struct pe_tensor input;                               /* PE_OF_ROTATED: q, of the same shape */
    bool is_text[PE_EVIDENCE_TENSORS_MAX], input_is_text; /* from JSON text: each number counts as rounded to f32 */
    enum pe_dtype dtype;  /* of the numbers compared; integers of buckets and ids: i64 */
    enum pe_dtype narrow; /* bf16 or f16 if every number of a wider dtype is one; else PE_DTYPE_NONE */
    double largest;       /* the largest finite magnitude, called S */
    bool is_turned;       /* its last two axes, exchanged, are what the belief gives: [dim, n] */
    int64_t zero_row;     /* the first position whose row is 0, -1: none (encoding, cos and sin) */
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

/* Its last two axes as the belief has them. */
uint64_t pe_evidence_length(const struct pe_evidence *e);
uint64_t pe_evidence_width(const struct pe_evidence *e);
/* Relative standard error of its numbers: the unit roundoff of the narrowest dtype that they fit. */
double pe_evidence_noise(const struct pe_evidence *e);

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

/* find.c: finds the tensors in the request and checks them before anything is allocated. */
enum pe_status pe_evidence_find(struct pe_diagnosis *d, struct pe_error *err);
/* Their figures and the sample. */
enum pe_status pe_evidence_sample(struct pe_diagnosis *d, struct pe_error *err);
void pe_evidence_drop(struct pe_diagnosis *d);

#endif
