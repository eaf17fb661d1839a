/* The faults: mistakes that give another tensor than the one expected.
 *
 * How to add one: a row pe_fault_NAME in the file of its kind, which begins with FAULT_TEXT, and the line FAULT(NAME)
 * in list.h at its place in the order of findings. The Chinese of its texts is in core/zh.po.
 *
 * The placeholders of a sentence are members of its finding: {pointer}, {found} and {believed}, {largest} and {row} of
 * `angles_f32` and `coordinates_f32`, {position} and {candidate} of `undecided`, {nearest} and {worst} of
 * `unexplained`, {nearest} of `inv_freq_other`, {meaning} of `scaled`, {heads} of `channels_permuted`, members of
 * {found} that is an object. A value that may be a list or an object is not named in a sentence. A fault with
 * several sentences has one for each alternative; `scaled` has one for a factor that has a meaning. */
#ifndef PE_FAULTS_H
#define PE_FAULTS_H

#include "core/diagnosis/evidence/model.h"

#include <math.h>

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
    PE_KIND_PARAMETER,
    PE_KIND_IDS,
    PE_KIND_FINDING, /* no fault */
    PE_N_FAULT_KINDS
};

/* What a fault is to code that states it without a hypothesis, or relates something to it: no file but that of its row
 * knows it by its name (tests/lint/faults.py). */
enum pe_role {
    PE_ROLE_NONE,
    PE_ROLE_AS_BELIEVED,
    PE_ROLE_IDENTIFIED,
    PE_ROLE_UNDECIDED,
    PE_ROLE_SIDES_DIFFER,
    PE_ROLE_UNINITIALISED,
    PE_ROLE_UNEXPLAINED,
    PE_ROLE_AXES_MOVED,     /* of the tensor, whatever is believed */
    PE_ROLE_SIGNED_SINES,   /* the first of each pair has a minus */
    PE_ROLE_NARROW,         /* numbers that are rounded to fewer bits */
    PE_ROLE_NARROW_PLACES,  /* places in a table that are rounded */
    PE_ROLE_NARROW_ANGLES,  /* angles that are: no mistake */
    PE_ROLE_PAIRING,        /* which channels are a pair */
    PE_ROLE_AXES_EXCHANGED, /* axes, or sides, have changed places */
    PE_ROLE_AXES_FORGOTTEN, /* several axes are believed to be one */
    PE_ROLE_BASE,
    PE_ROLE_RUNG_HIGHER,      /* each pair has the frequency of the one before it */
    PE_ROLE_RUNG_LOWER,       /* … of the next one */
    PE_ROLE_PLACE_OF_QUERIES, /* beside the keys */
    PE_ROLE_DIRECTION,        /* of the rotation */
    PE_ROLE_NOT_RESIZED,      /* a table */
    PE_ROLE_ANY_FIELD         /* a field that has no fault of its own */
};

/* A transform that an alternative is, as data. */
struct pe_transformed {
    enum {
        PE_NO_TRANSFORM,
        PE_TO_RECIPE,
        PE_TO_TURN,
        PE_TO_BIAS,
        PE_TO_SINUSOID,
        PE_TO_STILL,
        PE_TO_REVERSED,
        PE_TO_TILED,
        PE_TO_INVERTED,
        PE_TO_NEGATED
    } what;
    int to;
};

/* A rule of positions, as data: row i is at scale·position(row) + shift + first·(the first position), where row is i or
 * counted from the end. */
struct pe_position_map {
    double scale, shift, first;
    bool is_reversed;
    enum { PE_ANY_POSITIONS, PE_OF_A_RUN, PE_OF_NO_RUN, PE_OF_A_MOVED_RUN } of; /* moved: it does not begin at 0 */
};

/* Lines of Python that mend what the fault is; of a row's, the first that applies (cures.c). */
struct pe_cure {
    unsigned evidence;         /* PE_EVIDENCE_BIT; 0: any */
    const char *layout;        /* the believed one; NULL: any */
    const char *torch, *numpy; /* torch NULL: the end; numpy NULL: there is none */
};
extern const struct pe_cure pe_cures_positions[], pe_cures_ladder[], pe_cures_scaling[], pe_cures_layout[],
    pe_cures_rotation[], pe_cures_twice[], pe_cures_direction[], pe_cures_exchanged[], pe_cures_negated[],
    pe_cures_factor[], pe_cures_scaled[], pe_cures_axes[], pe_cures_transposed[], pe_cures_shifted[],
    pe_cures_stretched[], pe_cures_reversed[], pe_cures_inverted[], pe_cures_columns[], pe_cures_mask[],
    pe_cures_softmax_scale[];

/* One fault. Evaluation: the faults of a hypothesis are applied to one edit, those that are not fitted first, in the
 * order of list.h, then the fitted ones by their fit_rank; so apply() reads the values in use by pe_edit_value, which
 * include the other faults, and a fit may measure the evidence under the edit so far. It must give the same edit every
 * time, because only (fault, alternative) is kept. */
struct pe_fault {
    struct pe_fault_info info; /* the texts; its kind has another name than `kind` where two kinds have one mistake */
    enum pe_fault_kind kind;
    enum pe_role role;
    int surprise;        /* how surprising it is: list.h */
    const char *schemes; /* "rope|xpos"; NULL: any */
    unsigned evidence;   /* PE_EVIDENCE_BIT of those it applies to, and of those like them; 0: any */
    unsigned not_of;     /* of those it does not apply to */
    const char *pointer; /* of the field that it would be, where it sets none; "": the tensor, whatever it sets; NULL:
                            the field that it sets */
    bool is_of_tensor;   /* it changes the tensor rather than the plan, or reads it whatever the alternative */
    bool is_no_rotation; /* what it gives is no rotation: it is combined with one more mistake at most */
    bool is_factor;      /* its value is a factor, which may have a meaning */
    bool is_free_list;   /* a list of free numbers, which explains anything */
    bool is_of_masks;    /* which keys are seen */
    bool reads_typed;    /* its fits read numbers that were typed, too */
    size_t n_alternatives;
    const struct pe_field *values; /* of each alternative a field and its other value, PE_NULL: none; or NULL: … */
    const struct pe_transformed *transforms; /* … the transform that it is; or NULL: … */
    const struct pe_position_map *maps; /* … the rule of positions, n_maps; any alternative behind them is the fit */
    size_t n_maps;
    bool (*fit)(struct pe_diagnosis *d, struct pe_edit *edit); /* or NULL: … */
    size_t (*count)(const struct pe_diagnosis *d); /* those that are tried, if that depends on the belief; else NULL */
    /* Changes the edit as the alternative states. false: it does not apply, or changes nothing. */
    bool (*apply)(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit);
    /* The last n_fits alternatives are fitted: they compute their value from the evidence. */
    size_t n_fits;
    unsigned fit_rank; /* 0 frequencies, 1 positions, 2 sizes */
    unsigned fit_cost; /* of a fitted alternative: 3 for a list of free numbers, 0 means 1 */
    /* Faults of one kind are not combined, unless one of them counts as another kind then; 0: as its own. */
    enum pe_fault_kind combines_as;
    const struct pe_cure *cures; /* NULL: nothing short mends it */
    /* By how much an alternative is more (or less) surprising than the fault's row; NULL: 0. */
    int (*surprise_of)(const struct pe_diagnosis *d, size_t alternative);
};

/* Alternatives of one field each, as data. */
#define PE_VALUES(...)                                                                                                 \
    .values = (const struct pe_field[]){__VA_ARGS__},                                                                  \
    .n_alternatives = sizeof((const struct pe_field[]){__VA_ARGS__}) / sizeof(struct pe_field)
#define PE_TRANSFORMS(...)                                                                                             \
    .transforms = (const struct pe_transformed[]){__VA_ARGS__},                                                        \
    .n_alternatives = sizeof((const struct pe_transformed[]){__VA_ARGS__}) / sizeof(struct pe_transformed)
#define PE_MAPS(...)                                                                                                   \
    .maps = (const struct pe_position_map[]){__VA_ARGS__},                                                             \
    .n_maps = sizeof((const struct pe_position_map[]){__VA_ARGS__}) / sizeof(struct pe_position_map),                  \
    .n_alternatives = sizeof((const struct pe_position_map[]){__VA_ARGS__}) / sizeof(struct pe_position_map)
#define PE_WORD_OF(name, word)                                                                                         \
    {                                                                                                                  \
        name, { .kind = PE_STRING, .string = word }                                                                    \
    }
#define PE_REAL_OF(name, x)                                                                                            \
    {                                                                                                                  \
        name, { .kind = PE_REAL, .real = x }                                                                           \
    }
#define PE_INTEGER_OF(name, x)                                                                                         \
    {                                                                                                                  \
        name, { .kind = PE_INTEGER, .integer = x }                                                                     \
    }
#define PE_TRUTH_OF(name, x)                                                                                           \
    {                                                                                                                  \
        name, { .kind = PE_BOOLEAN, .boolean = x }                                                                     \
    }
#define PE_NONE_OF(name)                                                                                               \
    {                                                                                                                  \
        name, { .kind = PE_NULL }                                                                                      \
    }
#define PE_LIST_OF(name, ...)                                                                                          \
    {                                                                                                                  \
        name,                                                                                                          \
        {                                                                                                              \
            .kind = PE_ARRAY, .array = {                                                                               \
                .dtype = PE_F64,                                                                                       \
                .rank = 1,                                                                                             \
                .shape = {sizeof((const double[]){__VA_ARGS__}) / sizeof(double)},                                     \
                .data = (const double[]){__VA_ARGS__}                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }

/* parameters.c: changes the edit as an alternative of a row states. false: it does not apply, or changes nothing. */
bool pe_fault_apply(struct pe_diagnosis *d, const struct pe_fault *fault, size_t alternative, struct pe_edit *edit);

/* The table, in the order of list.h (pe_n_faults rows). */
const struct pe_fault *pe_fault_row(size_t i);
/* The one of a role. */
const struct pe_fault *pe_fault_of(enum pe_role role);
/* The one that is this transform. */
const struct pe_fault *pe_fault_that_is(struct pe_transformed transform);
enum pe_fault_kind pe_fault_kind_of(size_t i);
extern const char *const pe_fault_kind_names[PE_N_FAULT_KINDS];
bool pe_fault_applies(const struct pe_diagnosis *d, size_t i);

#define FAULT(name) extern const struct pe_fault pe_fault_##name;
#include "core/diagnosis/faults/list.h"
#undef FAULT

/* Evidence that shows positions. */
#define PE_OF_POSITIONS                                                                                                \
    (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ENCODING) | PE_EVIDENCE_BIT(IDS))

/* The beginning of a row: code, name of the kind, kind, surprise, label, summary, and one sentence or an array. */
#define FAULT_TEXTS(code_, kind_name_, kind_, surprise_, label_, summary_, details_)                                   \
    .info = {.code = code_,                                                                                            \
             .kind = kind_name_,                                                                                       \
             .about = {label_, summary_},                                                                              \
             .details = details_,                                                                                      \
             .n_details = sizeof(details_) / sizeof *(details_)},                                                      \
    .kind = PE_KIND_##kind_, .surprise = surprise_
#define FAULT_TEXT(code_, kind_name_, kind_, surprise_, label_, summary_, detail_)                                     \
    FAULT_TEXTS(code_, kind_name_, kind_, surprise_, label_, summary_, ((const char *const[]){detail_}))

/* ---- Positions ---- */

/* Sequences of hypotheses: positions changed by a rule, written as `offset` where the belief is a run, else as a list.
 */

/* Is the belief's sequence given by len, with an offset? */
bool pe_belief_is_run(const struct pe_diagnosis *d);
/* masks.c: are the positions of queries and keys runs, so that q_offset may be set? */
bool pe_is_run_of_maps(const struct pe_diagnosis *d, const struct pe_edit *edit);
/* The belief's position of row i on the first axis. */
double pe_belief_position(const struct pe_diagnosis *d, uint64_t i);

/* Moves all positions. */
bool pe_edit_shift(const struct pe_diagnosis *d, struct pe_edit *edit, double by);
/* Row i is at scale·position(row) + shift, where row is i or counted from the end: on every axis. */
bool pe_edit_map(const struct pe_diagnosis *d, struct pe_edit *edit, double scale, double shift, bool reversed);
/* Axis a has the positions of axis order[a] of a plan, which other faults of the edit have changed. */
bool pe_edit_reorder(const struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_plan *plan,
                     const unsigned *order);
/* The believed positions for each row of a batch of `levels`, to be changed: [levels, count]. NULL: the belief has
 * another number of them, several axes, or no memory is left. */
double *pe_edit_positions_by_row(const struct pe_diagnosis *d, struct pe_edit *edit, uint64_t levels, uint64_t count);
/* Gives some axes (bits) the coordinates of [axes, count], copied; the others keep those of the edit so far. */
bool pe_edit_coordinates(const struct pe_diagnosis *d, struct pe_edit *edit, unsigned axes, const double *coordinates);
/* A list for one axis, copied. */
bool pe_edit_positions(const struct pe_diagnosis *d, struct pe_edit *edit, const double *positions);
/* As an alternative that is such a rule. false: it is none of these positions, or changes nothing. */
bool pe_edit_by_map(const struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_position_map *map);
/* A run from first on; false if first is not an integer. */
bool pe_edit_run(const struct pe_diagnosis *d, struct pe_edit *edit, double first);

/* several_axes.c: may the positions be on so many axes, where the belief is a run on one? */
bool pe_axes_are_forgotten(const struct pe_diagnosis *d, unsigned n_axes);

/* ---- Scalings ---- */

/* The scalings that hypotheses try: those of public models, and the common ones with common parameters. */

/* How many alternatives of the believed type (scaling_parameter), or of others (scaling_other). */
size_t pe_scalings_count(const struct pe_diagnosis *d, bool of_believed_type);
bool pe_scalings_apply(const struct pe_diagnosis *d, bool of_believed_type, size_t i, struct pe_edit *edit);
/* Removes an attention_factor that the believed scaling states itself. */
void pe_scalings_drop_factor(const struct pe_diagnosis *d, struct pe_edit *edit);
/* The scaling in use with another seq_len, owned by the edit; NULL: the edit has failed. */
const struct pe_value *pe_scaling_of_length(const struct pe_diagnosis *d, struct pe_edit *edit, double seq_len);
/* The scaling in use with these members, owned by the edit, of another type, or of that in use (NULL). NULL: the edit
 * has failed. */
const struct pe_value *pe_scaling_with(const struct pe_diagnosis *d, struct pe_edit *edit, const char *type,
                                       const struct pe_field *members, size_t n);
/* Lists them: in pe_search, before faults are counted. */
enum pe_status pe_scalings_open(struct pe_diagnosis *d, struct pe_failure *err);

/* layers.c: lists the kinds of layers that the model has, before faults are counted. */
void pe_layers_open(struct pe_diagnosis *d);
/* The kind that the request asks for; name has room for the first one, which is meant where it names none. NULL: the
 * model has none. */
const char *pe_layers_believed(const struct pe_diagnosis *d, char *name, size_t size);

/* ---- Measurements ---- */

/* What the numbers themselves show, under the pairing of an edit. */

/* The x that phases show. score: the weighted mean cosine of what remains, 1 for a perfect agreement. error: its
 * standard error, for phases of standard error `noise` at weight 1. */
struct pe_solved {
    double x, score, error;
};

/* The waves found in rotary or sinusoidal evidence: wave k at row (position number) i is the complex number
 * z = amplitude·e^(i·angle). For tables z = cos + i sin of a column, for rotated tensors out·conj(in) / |in|² of a
 * pair, summed over some heads, for encodings cos + i sin of two columns. Transforms and the direction of the model are
 * undone, so that the expected angle is +position·frequency. */
struct pe_reading {
    uint64_t key;
    size_t n, n_waves;
    float *re, *im, *weight; /* [n_waves, n]; weight: |in|², else 1 */
    double noise;            /* of a phase at weight 1, radians */
    double farthest;         /* the largest |position| */
    double *step, *error;    /* [n_waves]: phase from row to row, radians in (-pi, pi], and its standard error; NaN:
                                unknown (rows are not equally far apart, or there is one) */
    double *mean_weight;     /* [n_waves] */
    bool *no_memory;         /* where to say that an allocation failed */
    double *work;            /* of the diagnosis: where measurements count theirs */
    uint32_t *piece;         /* [n]: rows whose steps are the usual ones have the same number */
    struct pe_solved
        *rows;         /* [n]: what pe_shift_at gave for single rows at the frequencies w_of_rows; error < 0: nothing */
    double *w_of_rows; /* [n_waves] */
};

/* The reading under a model's pairing, computed once for each pairing; NULL: the evidence has no waves, or memory is
 * short. Borrowed until some later calls. */
const struct pe_reading *pe_read_waves(struct pe_diagnosis *d, const struct pe_model *model);
/* Has row i no phase at all, as one that is set aside? */
bool pe_reading_is_unknown(const struct pe_reading *r, size_t i);
/* Multiply-adds of one reading. */
double pe_reading_work(double n, double n_waves);
/* Radians per position of the first n waves of the model (0 beyond them); and how many it has. */
void pe_wave_frequencies(const struct pe_model *model, size_t n, double *w);
size_t pe_wave_count(const struct pe_model *model);
/* The axis that each of them follows. */
void pe_wave_axes(const struct pe_model *model, size_t n, unsigned char *axis);

/* The x with phase[k] = x·w[k] (mod 2pi) for all k, in the sense of weighted least squares, |x| up to about `most`;
 * n waves in any order. */
struct pe_solved pe_solve_phases(const double *w, const double *phase, const double *weight, size_t n, double noise,
                                 double most);

/* The multiple of the model's frequencies by which the phase steps from row to row. */
struct pe_solved pe_measured_stride(const struct pe_reading *r, const struct pe_model *model);
/* The x by which row i is beyond position[i], common to all n rows: n = 1 is the position of one row. */
struct pe_solved pe_measured_shift(const struct pe_reading *r, const struct pe_model *model, const double *position,
                                   size_t first, size_t n);

/* Does no wave turn evenly from row to row? Then rows that are equally far apart do not explain the evidence, whatever
 * the frequencies are. */
bool pe_is_uneven(const struct pe_reading *r);
/* By how much rows are beyond position[i], at frequencies w [n_waves] that no model has yet. */
struct pe_solved pe_shift_at(const struct pe_reading *r, const double *w, const double *position, size_t first,
                             size_t n);

/* Do the frequencies w [n_waves] agree with the measured steps? stride: positions from row to row; relative: how far
 * frequencies may be off, as those of 16 bits are. */
bool pe_agrees(const struct pe_reading *r, const double *w, double stride, double relative);

/* Are the lengths of pairs, some rows of them, those of a rotation under the model's pairing? A rotation keeps every
 * length but for one factor, and xPos' scale is one more number for each row; noise, pairs of other channels and
 * columns that are scaled apart have others. So are channels that are not rotated: they have not changed. true also
 * where the evidence does not decide it. */
bool pe_lengths_agree(const struct pe_model *model);

/* ---- Positions that are fitted ---- */

/* A model of the edit so far and its reading. Position ids are themselves what the phases of other evidence show. */
struct pe_fit {
    struct pe_model *model;
    const struct pe_reading *reading; /* NULL: of ids */
    double *position;                 /* [n]: believed positions */
    double *found;                    /* [n]: ids, or positions by comparison */
    size_t n;
};

/* A fit whose phases agree less with it than this is none. */
#define PE_FIT_SCORE_MIN 0.9

/* Call pe_fit_close afterwards, also where it gives false: there are no phases. */
bool pe_fit_open(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_fit *fit);
void pe_fit_close(struct pe_fit *fit);
/* By how much row `first` and the n - 1 after it are beyond position[i] (NULL: beyond 0). */
struct pe_solved pe_fit_shift(const struct pe_fit *fit, const double *position, size_t first, size_t n);
/* positions.c: fits of rows of faults (../naming/coordinates.c). The first position; the position of each
 * row; runs that begin again at the first. */
bool pe_fit_offset(struct pe_diagnosis *d, struct pe_edit *edit);
bool pe_fit_rows(struct pe_diagnosis *d, struct pe_edit *edit);
bool pe_fit_lens(struct pe_diagnosis *d, struct pe_edit *edit);
/* The nearest integer if x is one within its error; else x. */
double pe_fit_tidy(struct pe_solved s);
/* The position of row i. One that is set aside has no phases: it stays where it is believed. */
bool pe_fit_row(const struct pe_fit *fit, size_t i, double *position);

/* faults.c: the field that fault i of an edit changes; value NULL: unset. */
struct pe_change {
    char pointer[PE_POINTER_MAX];
    const struct pe_value *found, *believed;
};
void pe_fault_change(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_fault *fault, unsigned i,
                     struct pe_change *change);

/* How far the frequencies of a model's recipe may be off, relatively. */
double pe_wave_tolerance(const struct pe_model *model);
/* Positions from row 0 to row 1 of a model on one axis. */
double pe_model_stride(const struct pe_model *model);

/* The decimal with the fewest digits within a relative tolerance of x. */
double pe_shortest_decimal(double x, double tolerance);
/* What a factor between found and believed numbers is, e.g. "1/sqrt(head_dim)"; NULL: it is none that is known. */
const char *pe_factor_meaning(const struct pe_diagnosis *d, double factor);
/* The same where these are known (NaN: not), within a relative tolerance. */
const char *pe_factor_name(double factor, double head_dim, double attention_factor, double tolerance);

/* ---- Readings of waves ---- */

/* How a reading is made: its waves, then the steps of their phases. Only for the files of this folder. */

enum { PE_LAG_ROWS = 512 };                   /* that are multiplied where not all are needed */
enum { PE_WAVES_READ = PE_HEAD_DIM_MAX / 2 }; /* as many pairs as a head can have; tables may have more columns */

/* What 16 bits and a near fit leave of a length, relatively. */
#define PE_LENGTH_TOLERANCE 0x1p-4

#define PI 3.14159265358979323846

/* Of tables and rotated tensors of n positions: re, im and |in|², which is not divided out yet, of the first waves at
 * position number i, [PE_WAVES_READ, 3]. */
void pe_reading_row(const struct pe_model *model, size_t n, size_t i, double *z);
/* Of rotated tensors: adds |in|² of the channels that are not rotated, at position number i; and, to `others`, of
 * those that have changed all the same. */
void pe_reading_passed(const struct pe_model *model, size_t n, size_t i, double *all, double *others);
/* steps.c: writes step, error, mean_weight and piece. false: no memory. */
bool pe_reading_steps(struct pe_reading *r);

/* A phase in [-pi, pi]. */
static inline double pe_wrap(double x) { return x - 2 * PI * nearbyint(x / (2 * PI)); }

#endif
