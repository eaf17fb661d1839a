/* Diagnosis: the configuration that gives a tensor.
 *
 * The evidence is the tensor sent, the belief is the configuration that the client expects. A hypothesis is the belief
 * with one to three faults. A fault writes into an edit: fields of the request that replace the belief's, and
 * transforms that are applied to the numbers afterwards. A hypothesis is evaluated with a real plan of the edited
 * request (struct pe_model), so no formula stands here twice: its numbers are compared with a sample of the evidence.
 *
 *     evidence_find.c, evidence.c     which tensors came; their numbers, the sample. A kind of evidence is a row of
 *                  evidence_rotary.c, evidence_encoding.c, ...
 *     belief.c, belief_plan.c         the fields of the belief and the sizes that tensors fix; its plan
 *     edit.c       edits and their memory
 *     model.c      an edit as a plan and transforms: predicted numbers of any row
 *     judge.h      how near a number must be
 *     evaluate.c   one hypothesis against the sample
 *     measure.c    what the numbers themselves tell: frequencies, phases and amplitudes of the pairs
 *     faults.c     the table of faults (list.h)
 *     search.c     levels of hypotheses, the best of them
 *     layout.c … sinusoid.c   the faults, one file for each kind
 *
 * How to add a fault: a row pe_fault_NAME in the file of its kind, a row pe_fault_info_NAME with its texts, and the
 * line FAULT(NAME, KIND) in list.h at its place in the order of findings. */
#ifndef PE_DIAGNOSIS_H
#define PE_DIAGNOSIS_H

#include "core/scheme.h"
#include "core/values.h"

enum {
    PE_DIAGNOSED_POSITIONS_MAX = 16384,
    PE_EVIDENCE_TENSORS_MAX = 2,
    PE_FAULTS_MAX = 3,         /* of one hypothesis */
    PE_HYPOTHESES_MAX = 20000, /* that one diagnosis evaluates */
    PE_SAMPLE_MAX = 1 << 14,   /* numbers that each is compared with, unless one row has more */
    PE_BEST_MAX = 16           /* hypotheses that are compared with all numbers */
};
#define PE_EVIDENCE_BYTES_MAX (64ULL << 20)

/* ---- Evidence ---------------------------------------------------------------------------------------------------- */

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

struct pe_model;
struct pe_diagnosis;

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

/* ---- Belief ------------------------------------------------------------------------------------------------------ */

/* The belief as fields of a request, flat (a model's name is replaced by its fields). */
struct pe_belief {
    bool is_given;                        /* the request states more than the tensors and where they stand */
    struct pe_field asked[PE_FIELDS_MAX]; /* as given, without the tensors; then the sizes that tensors fix */
    size_t n_asked;
    struct pe_inheritance *inheritance;    /* the same merged with the model it names */
    struct pe_field fields[PE_FIELDS_MAX]; /* resolved parameters, the sequence and the weights as given */
    size_t n_fields;
    struct pe_plan *plan;   /* as given: owns what the resolved fields point to */
    struct pe_model *model; /* of no edit */
    uint64_t n;             /* positions (of keys) */
    bool is_misfit;         /* its plan has not the shape of the evidence: it explains nothing as it is */
};

/* A size that a tensor fixes: sets the field where the belief does not give it; else both must agree (422 naming both).
 * In read() of a kind of evidence, before the belief is planned. */
enum pe_status pe_belief_fix(struct pe_diagnosis *d, const char *name, uint64_t size, const char *tensor,
                             struct pe_error *err);
/* The field as given (under any alias), also by the model that the belief names; NULL if it is not. */
const struct pe_value *pe_belief_given(const struct pe_diagnosis *d, const char *name);
/* In read(): a field that is not given. */
void pe_belief_set(struct pe_diagnosis *d, const char *name, struct pe_value value);
bool pe_belief_has_sequence(const struct pe_diagnosis *d);
bool pe_belief_is_sequence(const char *name); /* a field that says where positions are, not a rule for counting them */

/* ---- Edits ------------------------------------------------------------------------------------------------------- */

enum pe_recipe { PE_RECIPE_NONE, PE_RECIPE_F32, PE_RECIPE_BF16_INV_FREQ, PE_RECIPE_F16_INV_FREQ, PE_RECIPE_BF16 };
enum pe_sinusoid_change {
    PE_SINUSOID_AS_IS,
    PE_EXPONENT_PER_COLUMN,
    PE_EXPONENT_DOUBLED,
    PE_LADDER_FROM_ONE,
    PE_SINE_ONLY
};

/* Applied to the numbers of a plan, in this order. */
struct pe_transforms {
    enum pe_recipe recipe;
    enum pe_sinusoid_change sinusoid;
    bool sin_cos_swapped, negated, transposed;
    double scaled;     /* 1: not */
    double mask_value; /* in place of -infinity; NaN: not */
    int64_t zero_row;  /* this row is 0 (the position, for every head); -1: none */
    unsigned n_axes;   /* `axes`: axis i of the ids is axis order[i] of the plan's; 0: not */
    unsigned char order[PE_AXES_MAX];
};

enum { PE_EDIT_FIELDS_MAX = 48, PE_EDIT_ROOMS_MAX = 16 };

struct pe_edit {
    struct pe_field fields[PE_EDIT_FIELDS_MAX]; /* replace the belief's of the same name; PE_NULL: removed */
    size_t n_fields;
    struct pe_transforms transforms;
    const char *presets[1]; /* a preset that this edit copies, else NULL */
    void *owned[PE_EDIT_ROOMS_MAX];
    size_t n_owned;
    bool failed; /* no memory */
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
bool pe_edit_is_word(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, const char *word);

/* ---- Models: predicted numbers ----------------------------------------------------------------------------------- */

struct pe_model {
    const struct pe_diagnosis *d;
    struct pe_plan *plan; /* PE_ENCODE, f64, the outputs of the kind of evidence */
    struct pe_transforms transforms;
    void *state;             /* of the kind of evidence, freed with free() */
    struct pe_wave *columns; /* the waves of output 0, if it has waves; else NULL. Owned. */
    size_t n_columns;
    double *kept;   /* pe_model_keep: [n, n_columns] */
    bool has_shape; /* of the evidence; a model of other positions has another number of rows, and is no hypothesis */
    bool is_misfit; /* the belief, where it has not the shape: its numbers are infinities */
};

/* Makes the model of an edit, whose memory the plan borrows until pe_model_free. PE_INVALID: such a request cannot be
 * planned, so it is no hypothesis. */
enum pe_status pe_model_new(const struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model,
                            struct pe_error *err);
void pe_model_free(struct pe_model *model);
/* The same for a fault that measures under the edit so far: false: there is no such model. Without memory the edit has
 * failed. */
bool pe_edit_model(const struct pe_diagnosis *d, struct pe_edit *edit, struct pe_model **model);
/* n predicted numbers of a row of tensor t, all transforms applied; and |position|·frequency of each. */
void pe_model_fill(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
void pe_model_phases(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);
/* Before many rows: keeps the cosines and sines of every position (PE_OF_ROTATED), so that heads share them. */
enum pe_status pe_model_keep(struct pe_model *model, struct pe_error *err);
/* Two hypotheses with the same signature are equal at every position. */
uint64_t pe_model_signature(const struct pe_model *model);

/* ---- Faults ------------------------------------------------------------------------------------------------------ */

enum pe_fault_kind {
    PE_KIND_LAYOUT,
    PE_KIND_SENSE,
    PE_KIND_POSITIONS,
    PE_KIND_WIDTH,
    PE_KIND_SIZE,
    PE_KIND_LADDER,
    PE_KIND_ARITHMETIC,
    PE_KIND_AXES,
    PE_KIND_SINUSOID,
    PE_KIND_BIAS,
    PE_KIND_IDS,
    PE_KIND_FINDING, /* no fault */
    PE_N_FAULT_KINDS
};

/* One fault. Evaluation: the faults of a hypothesis are applied to one edit, those that are not fitted first, in the
 * order of list.h, then the fitted ones by their fit_rank; so apply() reads the values in use by pe_edit_value, which
 * include the other faults, and a fit may measure the evidence under the edit so far. It must give the same edit every
 * time, because only (fault, alternative) is kept. */
struct pe_fault {
    const char *schemes; /* "rope|xpos"; NULL: any */
    unsigned evidence;   /* PE_EVIDENCE_BIT of those it applies to; 0: any */
    size_t n_alternatives;
    size_t (*count)(const struct pe_diagnosis *d); /* if their number depends on the belief; else NULL */
    /* Changes the edit as the alternative says. false: it does not apply, or changes nothing. */
    bool (*apply)(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit);
    /* The last n_fits alternatives are fitted: they compute their value from the evidence. */
    size_t n_fits;
    unsigned fit_rank; /* 0 frequencies, 1 positions, 2 sizes */
    unsigned fit_cost; /* of a fitted alternative: 3 for a list of free numbers, 0 means 1 */
    /* Faults of one kind are not combined, unless one of them counts as another kind then; 0: as its own. */
    enum pe_fault_kind combines_as;
};

/* The table, in the order of list.h (pe_n_faults rows). */
const struct pe_fault *pe_fault_row(size_t i);
enum pe_fault_kind pe_fault_kind_of(size_t i);
extern const char *const pe_fault_kind_names[PE_N_FAULT_KINDS];
bool pe_fault_applies(const struct pe_diagnosis *d, size_t i);

#define FAULT(name, kind) extern const struct pe_fault pe_fault_##name;
#include "core/diagnosis/faults/list.h"
#undef FAULT
#define FAULT(name, kind) extern const struct pe_fault_info pe_fault_info_##name;
#include "core/diagnosis/faults/list.h"
#undef FAULT

/* ---- Search ------------------------------------------------------------------------------------------------------ */

struct pe_hypothesis {
    unsigned n;                                           /* faults; 0: the belief */
    uint16_t fault[PE_FAULTS_MAX], choice[PE_FAULTS_MAX]; /* in the order of list.h; choice: the alternative */
};

enum pe_verdict { PE_EXACT, PE_ROUNDING, PE_NEAR, PE_NO_FIT, PE_NOT_JUDGED };
static inline bool pe_fits(enum pe_verdict v) { return v <= PE_ROUNDING; }

struct pe_score {
    enum pe_verdict verdict;
    double max_error;   /* over the numbers looked at */
    double first_error; /* over the first look: the same numbers for every hypothesis */
};

struct pe_kept {
    struct pe_hypothesis h;
    struct pe_score score;
    unsigned cost;
    uint64_t signature;
};

/* Applies the faults to a new edit (pe_edit_drop afterwards, also after false). false: no such hypothesis. */
bool pe_hypothesis_apply(struct pe_diagnosis *d, const struct pe_hypothesis *h, struct pe_edit *edit);
unsigned pe_hypothesis_cost(const struct pe_diagnosis *d, const struct pe_hypothesis *h);
/* Compares a model with the sample. */
struct pe_score pe_evaluate(struct pe_diagnosis *d, const struct pe_model *model);
/* The order of candidates: fits, near, none; cost; exact, rounding; the table's; max_error. */
int pe_kept_compare(const struct pe_kept *a, const struct pe_kept *b);
/* Fills d->best, d->of_kind, d->searched. */
enum pe_status pe_search(struct pe_diagnosis *d, struct pe_error *err);

/* ---- One diagnosis ----------------------------------------------------------------------------------------------- */

struct pe_measure;
struct pe_answer;

struct pe_diagnosis {
    const struct pe_diagnosis_request *request;
    struct pe_evidence evidence;
    struct pe_belief belief;
    struct pe_sample sample;
    struct pe_measure *measure; /* measure.c: what the numbers tell, computed when it is asked for */
    struct pe_kept of_belief;
    struct pe_kept best[PE_BEST_MAX]; /* sorted, each signature once; the belief (n = 0) may
                                         be among them */
    size_t n_best;
    struct pe_kept nearest;                   /* the smallest max_error of all */
    struct pe_kept of_kind[PE_N_FAULT_KINDS]; /* the best single fault of each kind; PE_NOT_JUDGED: none was tried */
    bool used_all;                            /* the search ended at PE_HYPOTHESES_MAX */
    bool no_memory;                           /* a measurement had none: the search ends */
    uint64_t searched;
    double work, bytes;
    struct pe_answer *answer;      /* answer.h: the candidates, which the tree borrows from */
    struct pe_values *values;      /* the tree of the answer */
    const struct pe_value *stated; /* that tree when it is finished */
    void *cached;                  /* ladder.c: the alternatives of scalings; freed with free() */
};

/* Asks request->admit for more bytes, before they are allocated. */
enum pe_status pe_diagnosis_admit(struct pe_diagnosis *d, double bytes, struct pe_error *err);

/* The steps of pe_diagnosis_new. evidence.c: finds the tensors and checks them before anything is allocated; then the
 * sample. answer.c: compares d->best with all numbers and states the answer in d->values. */
enum pe_status pe_evidence_find(struct pe_diagnosis *d, struct pe_error *err);
enum pe_status pe_evidence_sample(struct pe_diagnosis *d, struct pe_error *err);
void pe_evidence_drop(struct pe_diagnosis *d);
enum pe_status pe_belief_open(struct pe_diagnosis *d, struct pe_error *err); /* fields, without a plan */
enum pe_status pe_belief_plan(struct pe_diagnosis *d, struct pe_error *err); /* d->belief.model */
void pe_belief_drop(struct pe_diagnosis *d);
void pe_measure_drop(struct pe_diagnosis *d);
enum pe_status pe_diagnosis_state(struct pe_diagnosis *d, struct pe_error *err); /* answer.c */
void pe_answer_drop(struct pe_diagnosis *d);                                     /* before pe_values_free */

#endif
