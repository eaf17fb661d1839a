/* Analysis: properties of encodings as numbers. A metric is one row at the end of its file, and one line of list.h.
 *
 * A study is one request; a subject is one of its configurations; a metric reads a subject and states its result as
 * members of an object (core/values.h) and as tensors. Everything that may be refused is refused in check() and
 * cost(), before anything is computed; compute() fails only without memory or when it was cancelled. */
#ifndef PE_STUDY_H
#define PE_STUDY_H

#include "core/rotate/rotate_rows.h"
#include "core/scheme.h"
#include "core/values.h"

/* Positions of one configuration: a matrix of all pairs of rows takes 2^27 sums, about a minute for wide rows. */
enum { PE_ANALYSED_POSITIONS_MAX = 16384 };
/* The same where only metrics are asked for that need not compare all pairs. */
enum { PE_UNPAIRED_POSITIONS_MAX = 131072 };
/* Longest length that `extrapolation` looks at. */
enum { PE_EVAL_LEN_MAX = 65536 };

/* Tensors of one answer, bytes: a Gram matrix of 2896 rows. */
#define PE_ANALYSIS_TENSORS_MAX (64ULL << 20)

/* Numbers below this share of the largest entry are rounding noise; what is nearer to an extreme than these tolerances
 * is as extreme. */
#define PE_NOISE 1e-9
#define PE_TIE_OF_EXTREME 1e-9
#define PE_TIE_OF_LARGEST 1e-12

/* The fields of an analysis, as read. */
struct pe_analysis_fields {
    const struct pe_value *metrics, *recipes, *dtypes; /* lists of words, NULL: not given */
    struct pe_reals k;                                 /* n = 0: not given */
    int64_t train_len, eval_len;                       /* PE_UNSET_INT: not given */
    int64_t seed;
    double tolerance, other_base;
    int pairing;
};

/* The rows of a subject: of an encoding by position, of [cos | sin] by position, or of a bias by distance. */
struct pe_rows {
    size_t n, dim;
    double *at;       /* [n, dim] */
    double *distance; /* [n], k_pos - q_pos of each row; NULL: a row is a position */
    double largest;   /* the largest |entry|, called S */
};

enum pe_family { PE_ABSOLUTE, PE_ROTARY, PE_BIAS, PE_RELATIVE };

/* One axis of sampled waves of a ladder of frequencies: sinusoidal (one axis), rope, xpos. */
struct pe_ladder {
    size_t n;        /* C */
    double *w, *w0;  /* [C]: radians per position, with and without scaling */
    double orig_len; /* original length of the scaling; NaN: it has none */
    double attention_factor;
};

struct pe_subject {
    size_t index;
    const struct pe_entry *entry;
    struct pe_plan *plan; /* PE_ENCODE, f64, the outputs by default */
    enum pe_family family;
    uint64_t n;              /* positions (of the keys) */
    bool is_run;             /* consecutive positions of one axis, queries and keys alike */
    size_t n_rows, dim;      /* of its rows, known before they are computed; 0: it has no rows */
    struct pe_rows rows;     /* while its metrics are computed */
    struct pe_ladder ladder; /* n = 0: it has none */
};

struct pe_metric;

/* One tensor of the answer. */
struct pe_study_tensor {
    char name[32]; /* "step.0" */
    const struct pe_metric *metric;
    const struct pe_output_row *row; /* one of the metric's tensors */
    size_t entry;
    unsigned rank;
    uint64_t shape[3];
    double *data; /* NULL until it is computed */
};

struct pe_analysis {
    const struct pe_analysis_request *request;
    struct pe_analysis_fields fields;
    struct pe_subject subjects[PE_ENTRIES_MAX];
    size_t n_subjects;
    uint64_t positions_max;           /* of each configuration, by the metrics that are named */
    uint32_t metrics[PE_ENTRIES_MAX]; /* bit m: metric m is computed for this entry */
    struct pe_study_tensor *tensors;
    struct pe_named_tensor *answered;
    size_t n_tensors, n_answered;
    struct pe_values *values;
    struct pe_values *configs;
    const struct pe_value *answer, *config_list;
    double bytes; /* reserved so far */
};

/* The cost of a metric: multiply-adds, bytes of scratch, beside its tensors. */
struct pe_metric_cost {
    double work, bytes;
};

struct pe_metric {
    struct pe_metric_info info;
    bool needs_rows;        /* compute() reads subject->rows */
    bool is_of_kernels;     /* compute() reads fused sums: dot_f64, apart_f64, products_f64 and others of compare.c */
    uint64_t positions_max; /* 0: PE_ANALYSED_POSITIONS_MAX */
    bool (*applies)(const struct pe_analysis *study, const struct pe_subject *subject);
    /* The rules of its fields (k < n). Pointers as for fields at the top, "/k". NULL: none. */
    enum pe_status (*check)(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_failure *err);
    void (*cost)(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost);
    /* The shape of tensor i of info.tensors; NULL: [rows]. */
    void (*shape)(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape);
    /* Puts `value`, `witness`, further members and `detail` into out, and fills its tensors. */
    enum pe_status (*compute)(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err);
};

/* ---- For metrics ---- */

/* applies() of metrics of all schemes with rows, and of all ladders. */
bool pe_has_rows(const struct pe_analysis *study, const struct pe_subject *subject);
bool pe_has_ladder(const struct pe_analysis *study, const struct pe_subject *subject);

/* Room for the tensor of that name, [shape] as shape() states; NULL: the answer does not have it. */
double *pe_study_tensor(struct pe_analysis *study, const struct pe_subject *subject, const char *name);

/* A plan of the subject's configuration with other fields: each of `overrides` replaces the field of its name (a value
 * of kind PE_NULL removes it; a `len` removes every other field of the sequence). */
struct pe_variant {
    enum pe_operation_id operation;
    enum pe_dtype dtype;
    const struct pe_field *overrides;
    size_t n_overrides;
    const char *const *outputs;
    size_t n_outputs; /* 0: the outputs by default */
    uint64_t positions_max;
};
enum pe_status pe_subject_plan(struct pe_analysis *study, const struct pe_subject *subject,
                               const struct pe_variant *variant, struct pe_plan **plan, struct pe_failure *err);

/* The rows of any plan that has them, all n_rows: frees with pe_rows_drop. In core/analysis/study/rows.c. */
enum pe_status pe_rows_init(struct pe_rows *rows, const struct pe_plan *plan, struct pe_failure *err);
void pe_rows_drop(struct pe_rows *rows);
/* Number and width of the rows of a plan, before they are computed; *n = 0: it has none. */
void pe_rows_size(const struct pe_plan *plan, size_t *n, size_t *dim);

/* ---- Work, in multiply-adds as pe_plan_work counts them (subject.c) ---- */

/* Planning the subject, or a variant of it, once. */
double pe_planning_work(const struct pe_subject *subject);
/* Computing n numbers of rows; the steps to row `reach` if each row needs the one before it; n numbers of xPos' scale.
 */
double pe_numbers_work(const struct pe_subject *subject, double n);
double pe_reach_work(const struct pe_subject *subject, double reach);
double pe_scale_work(const struct pe_subject *subject, double n);
/* Filling a whole output. */
double pe_output_work(const struct pe_plan *plan, size_t output);

/* The sizes of a tie near an extreme: |a - extreme| ≤ pe_tie(extreme, S). */
static inline double pe_tie(double extreme, double largest)
{
    return PE_TIE_OF_EXTREME * fabs(extreme) + PE_TIE_OF_LARGEST * largest;
}

/* The first i < n whose x[i] is as large (sign 1) or as small (-1) as the extreme. NaN is never an extreme. */
size_t pe_first_extreme(const double *x, size_t n, int sign, double largest);

/* rounded[i] = x[i] rounded once to dtype, for real dtypes. */
void pe_round_all(enum pe_dtype dtype, const double *x, size_t n, double *rounded);

/* How far rows i and j are apart. */
double pe_rows_apart(const struct pe_rows *rows, size_t i, size_t j);

/* Pairwise sum. */
double pe_sum(const double *x, size_t n);

/* Puts "row" (an index) or "distance", or "rows"/"distances" of two. */
void pe_put_row(struct pe_node *node, const struct pe_rows *rows, size_t i);
void pe_put_two_rows(struct pe_node *node, const struct pe_rows *rows, size_t i, size_t j);

/* Lists of words, such as recipes: the words of the list, or the usual ones if it is not given; the check of
 * such a list: words of `allowed` (NULL-terminated), each once. */
const char *pe_word_at(const struct pe_value *given, const char *const *usual, size_t i); /* NULL after the last */
enum pe_status pe_words_check(const struct pe_value *given, const char *const *allowed, const char *name,
                              struct pe_failure *err);

/* The smallest distance of two rows; NaN: there is only one. In core/analysis/unique.c. */
enum pe_status pe_unique_of(const struct pe_rows *rows, double *value, struct pe_failure *err);
/* The residual of the best linear map from each row to the k-th after it, on the subject's loaded rows; NaN: there is
 * none. In core/analysis/shift.c. */
enum pe_status pe_shift_of(const struct pe_subject *subject, int64_t k, double *value, struct pe_failure *err);

/* Does a rotation (or the identity) turn each row of this run into the next, to rounding? In core/analysis/shift.c. */
bool pe_is_turned(const struct pe_subject *subject);

/* ---- Steps of an analysis ---- */

const struct pe_metric *pe_metric_get(size_t m);

enum pe_status pe_study_read(struct pe_analysis *study, struct pe_failure *err);   /* the fields */
enum pe_status pe_study_choose(struct pe_analysis *study, struct pe_failure *err); /* which metrics for which entry */
enum pe_status pe_study_check(const struct pe_analysis *study, struct pe_failure *err);
enum pe_status pe_study_tensors(struct pe_analysis *study, struct pe_failure *err); /* names and shapes */
enum pe_status pe_study_allocate(struct pe_analysis *study, struct pe_failure *err);
double pe_study_tensor_bytes(const struct pe_analysis *study);
void pe_study_reshape(struct pe_analysis *study, const struct pe_subject *subject); /* once its rows are loaded */
void pe_study_answer_tensors(struct pe_analysis *study);
void pe_study_drop_tensors(struct pe_analysis *study);

enum pe_status pe_subject_init(struct pe_analysis *study, size_t i, struct pe_failure *err);
void pe_subject_drop(struct pe_subject *subject);
/* Allocates and fills the rows; pe_rows_drop when the metrics of the entry are computed. */
enum pe_status pe_subject_load(struct pe_analysis *study, struct pe_subject *subject, struct pe_failure *err);

/* Fills the ladder of a subject that has one. */
enum pe_status pe_ladder_init(struct pe_analysis *study, struct pe_subject *subject, struct pe_failure *err);

/* Asks the caller whether so many more bytes may be used while plans are made. */
enum pe_status pe_study_admit(struct pe_analysis *study, double bytes, struct pe_failure *err);

/* ---- Lengths of training and evaluation ---- */

/* The two lengths that several metrics compare: that of training and that of evaluation. Plans of other lengths. */

/* `train_len`; if it is not given, the original length of the scaling, else the number of positions. */
double pe_train_len(const struct pe_analysis *study, const struct pe_subject *subject);
/* `eval_len`; if it is not given, twice that. */
double pe_eval_len(const struct pe_analysis *study, const struct pe_subject *subject);

/* Puts a length, an integer unless the scaling's is not. */
void pe_put_length(struct pe_node *node, const char *name, double length);

/* A plan in f64 on other positions, with further overrides (at most PE_RUN_OVERRIDES). A learned table keeps its number
 * of rows: a longer sequence does not make it longer. */
struct pe_run {
    uint64_t n;
    int64_t offset;          /* positions offset, offset + 1 … */
    const double *positions; /* [n], borrowed until the plan is freed; NULL: from offset on */
    const double *grid;      /* [n_grid], borrowed as well; NULL: no grid */
    size_t n_grid;
    const struct pe_field *overrides;
    size_t n_overrides;
    const char *const *outputs;
    size_t n_outputs; /* 0: the outputs by default */
};
enum { PE_RUN_OVERRIDES = 4 };
enum pe_status pe_subject_plan_run(struct pe_analysis *study, const struct pe_subject *subject,
                                   const struct pe_run *run, struct pe_plan **plan, struct pe_failure *err);
/* The same with the outputs that rows are made of, and without padding and embeddings, which belong to the given
 * sequence only. It has no overrides. */
enum pe_status pe_subject_plan_rows(struct pe_analysis *study, const struct pe_subject *subject,
                                    const struct pe_run *run, struct pe_plan **plan, struct pe_failure *err);

/* ---- Waves of a ladder ---- */

/* Cosines and sines of a ladder's angles. */

/* Makes the waves cos(p·w_c) of all C pairs, then sin(p·w_c), without the attention factor (free with pe_waves_free).
 * The frequencies are the plan's exact ones, so that values of positions far away are right. */
enum pe_status pe_ladder_waves(const struct pe_subject *subject, uint64_t n_rows, struct pe_waves **waves,
                               struct pe_failure *err);
/* The memory of these waves, and of making them. */
double pe_ladder_waves_bytes(const struct pe_subject *subject);

/* ---- The rotation of a plan ---- */

/* The rotation of a rotary plan, after planning. */

/* For pe_rotate_table and pe_rotate_row. Call pe_rotate_drop afterwards, also after a failure. */
enum pe_status pe_turn_init(struct pe_row_rotation *turn, const struct pe_plan *plan, struct pe_failure *err);
/* Its memory. */
double pe_turn_bytes(const struct pe_plan *plan);

/* The row of the tensor of that name, "q" or "k", among the scheme's inputs. */
size_t pe_turn_input(const struct pe_plan *plan, const char *name);

#endif
