/* What api/, server/ and the rooms of core/ know of the library beside posenc.h: requests as plain C values, rows, the
 * catalogue, plans. It is never installed: a program sees posenc.h alone, so everything here may change.
 *
 * Three calls are enough: pe_plan_new() checks a request and fixes everything that a number depends on; pe_fill()
 * writes any elements of any output of the plan; pe_plan_free() frees it. A caller whose thread must not be kept
 * waiting plans in two calls, pe_plan_check() and pe_plan_build(). Ownership has the words of posenc.h. */
#ifndef PE_INSIDE_H
#define PE_INSIDE_H

#include "core/posenc.h"

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

enum { PE_LAYER_TYPES_MAX = 400 };

/* What a caller can add to the sentence of an error: where it lists the valid names, what it calls its limit. Core
 * knows neither its endpoints nor its flags. */
enum pe_advice {
    PE_NO_ADVICE,
    PE_LIST_FIELDS, /* of the scheme about */
    PE_LIST_PRESETS,
    PE_LIST_METRICS,
    PE_LIST_TENSORS,
    PE_ASK_OTHER, /* the operation about takes this field */
    PE_ASK_ATTENTION,
    PE_STORE_WEIGHTS,
    PE_RAISE_ANALYSIS,
    PE_RAISE_DIAGNOSIS, /* the request's max_work */
    PE_RAISE_WORK,      /* of attention maps */
    PE_N_ADVICES
};

/* struct pe_error, and what api/ adds to its sentence. */
struct pe_failure {
    enum pe_status status;
    char pointer[PE_POINTER_MAX];
    char detail[PE_DETAIL_MAX];
    char layer_types[PE_LAYER_TYPES_MAX]; /* of /layer_type: the model's, "a|b"; "": the error is another one */
    enum {
        PE_NO_NEEDS,
        PE_NEEDS,
        PE_NEEDS_UNKNOWN
    } needs;         /* of a file that was sent in part: bytes that are missing */
    int64_t need[2]; /* the first and the last of them */
    enum pe_advice advice;
    size_t advice_at;  /* the byte of detail before which the advice belongs */
    size_t leave_at;   /* the byte of detail from which it advises to leave the field out; 0: it does not */
    const char *about; /* the name that the advice is about, static; or NULL */
};

/* A number as a client may have written it: in the fewest digits that are read as this double. */
struct pe_shown {
    char text[32];
};
struct pe_shown pe_shown(double x);

/* Fill *err and return its status: a failing function ends with `return pe_fail(err, …)`. pe_fail names the field by
 * its pointer; the others need none. The format is English, and printed in the language of pe_speak_in. */
enum pe_status pe_fail(struct pe_failure *err, const char *pointer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same at a member of the object whose pointer is `at`. */
enum pe_status pe_fail_at(struct pe_failure *err, const char *at, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds advice to an error that pe_fail has filled; about is static, or NULL. Returns its status. */
enum pe_status pe_advise(struct pe_failure *err, enum pe_advice advice, const char *about);
enum pe_status pe_no_memory(struct pe_failure *err);
enum pe_status pe_cancelled(struct pe_failure *err); /* for work that was cancelled: see pe_watch */

/* The entry of names (NULL-terminated) nearest to word by edit distance; NULL if none is near enough to suggest. */
const char *pe_nearest(const char *word, const char *const *names);
/* However far it is, unless there is none. */
const char *pe_nearest_of_all(const char *text, const char *const *names);

/* ---- Texts in two languages ------------------------------------------------------------------------------------
 *
 * Rows have their texts in English. The Chinese ones are in zh.po, which the build converts to a table; a text that is
 * not in it remains English. */

enum pe_lang { PE_EN, PE_ZH, PE_N_LANGS };

/* How the catalogue presents a thing: a short name for a control, and its meaning in one sentence. */
struct pe_about {
    const char *label, *summary;
};

/* A row of a table of translations. Tables are sorted by English, then by context. */
struct pe_translation {
    const char *english;
    const char *context; /* "label: " and the summary beside it, or the reverse; "": every other place of this text */
    const char *chinese;
};

/* Adds a table, sorted, of a layer above; at most one. */
void pe_texts_add(const struct pe_translation *rows, size_t n);

const char *pe_text_in(enum pe_lang lang, const char *english) __attribute__((format_arg(2)));

/* The language of this thread's texts from now on, English at the beginning: of the errors that pe_fail fills in, and
 * of pe_text. */
void pe_speak_in(enum pe_lang lang);
enum pe_lang pe_spoken(void);
const char *pe_text(const char *english) __attribute__((format_arg(1))); /* for a part of an error's sentence */

const char *pe_label_in(enum pe_lang lang, const struct pe_about *about);
const char *pe_summary_in(enum pe_lang lang, const struct pe_about *about);

/* The Chinese of a text; NULL if the table does not have it. kind and of are the two parts of its context. */
const char *pe_translation_find(const struct pe_translation *rows, size_t n, const char *english, const char *kind,
                                const char *of);

/* ---- Tensors --------------------------------------------------------------------------------------------------- */

/* A view of a row-major little-endian tensor; data is aligned only to the size of an element. */
struct pe_tensor {
    enum pe_dtype dtype;
    unsigned rank;
    uint64_t shape[PE_RANK_MAX];
    const void *data;
};

bool pe_dtype_is_real(enum pe_dtype dtype);  /* no integers, no bool */
extern const char *const pe_answer_dtypes[]; /* the names of the real ones, then NULL */
enum pe_dtype pe_answer_dtype(int word);     /* of one of these; PE_DTYPE_NONE: of a word that is not given, -1 */
/* Elements of a shape; false if the product passes 2^63. */
bool pe_shape_count(const uint64_t *shape, unsigned rank, uint64_t *count);
/* dst[i] = src[i] in another dtype, i < n, one rounding (to nearest, ties to even). Integers saturate. NaN becomes 0 in
 * an integer. src and dst may not overlap. */
void pe_convert(enum pe_dtype to, void *dst, enum pe_dtype from, const void *src, size_t n);

/* Writes elements first … first+n-1 of the tensor called name that is drawn from a seed: independent, of the normal
 * distribution N(0, std^2), f32. An element depends on seed, name, std and its own number only, and is the same on
 * every machine (core/request/request.h has the formula). About 50 ns each. */
void pe_seed_fill(int64_t seed, const char *name, double std, uint64_t first, size_t n, float *out);

/* How numbers were printed that came as text: each is within `half` of the one that is meant. */
struct pe_print {
    double half;        /* of a unit of the last digit; 0: all digits are there */
    bool is_scientific; /* half is that of the digits before the exponent: it is times each number's power of ten */
    bool has_gaps;
    struct {
        uint64_t from, to;
    } gaps[PE_RANK_MAX]; /* indices of each axis that "..." leaves out, whose numbers are not known */
};

/* ---- Values: a request without its JSON ------------------------------------------------------------------------ */

enum pe_kind { PE_NULL, PE_BOOLEAN, PE_INTEGER, PE_REAL, PE_STRING, PE_LIST, PE_OBJECT, PE_ARRAY, PE_PRESET };

struct pe_field;
struct pe_preset;

struct pe_value {
    enum pe_kind kind;
    bool from_text; /* PE_ARRAY: f64 numbers read from JSON text with no dtype stated; a tensor of them is f32 */
    const struct pe_print *print; /* PE_ARRAY: how its numbers were printed; NULL: they are as they were sent */
    union {
        bool boolean;
        int64_t integer;
        double real;        /* the double nearest the number's text */
        const char *string; /* UTF-8, NUL-terminated */
        struct {
            const struct pe_value *items;
            size_t n;
        } list; /* a list that is not all numbers */
        struct {
            const struct pe_field *fields;
            size_t n;
        } object;
        struct pe_tensor array;         /* any list (of lists …) of numbers, and any tensor sent */
        const struct pe_preset *preset; /* only of the field `preset`: one that is not built in (pe_preset_find) */
    };
};

struct pe_field {
    const char *name;
    struct pe_value value;
};

/* ---- Parameter rows: one table row is a parameter's name, type, default, range and text ------------------------ */

enum pe_type { PE_T_INT, PE_T_REAL, PE_T_BOOL, PE_T_WORD, PE_T_REALS, PE_T_OBJECT, PE_T_VALUE };

#define PE_UNSET_INT INT64_MIN /* an integer that was not given and has no constant default; a real is NaN then */

/* A list of numbers of any dtype, borrowed from the request; pe_real_at() reads it. n = 0: not given. */
struct pe_reals {
    struct pe_tensor array;
    uint64_t n;
};
double pe_real_at(const struct pe_reals *list, uint64_t i); /* element i, counted flat */

/* The section of a form to which a parameter belongs. */
enum pe_group {
    PE_G_SCHEME, /* what is particular to one scheme; every row that does not say otherwise */
    PE_G_SEQUENCE,
    PE_G_SEGMENTS,
    PE_G_SIZE,
    PE_G_FREQUENCIES,
    PE_G_SCALING,
    PE_G_LAYOUT,
    PE_G_AXES,
    PE_G_MASK,
    PE_G_WEIGHTS,
    PE_G_COMBINATION,
    PE_G_ATTENTION,
    PE_G_NUMBERS,
    PE_G_ANSWER,
    PE_G_PICTURE,
    PE_N_GROUPS
};

/* Does a form show a parameter at once, or only when more is asked for? */
enum pe_level { PE_LEVEL_OF_ROW, PE_BASIC, PE_MORE };

struct pe_interval {
    double lo, hi; /* both 0: not stated */
};

struct pe_param {
    const char *name;  /* the JSON key and the config struct's field */
    const char *alias; /* other accepted names, "a|b", or NULL */
    enum pe_type type;
    size_t offset; /* of the field in its config struct: int64_t, double, bool, int (index into words), struct pe_reals,
                      const struct pe_value * (PE_T_VALUE: any value, borrowed from the request; NULL: not given) */
    double fallback;          /* default; NaN: none, so the field stays unset and the plan may derive it */
    double min, max;          /* inclusive; for PE_T_REALS of each element */
    const char *const *words; /* PE_T_WORD: the allowed words, NULL-terminated */
    const char *when; /* the condition of its use, e.g. "form=asymmetric|key" (a word parameter of the same rows); an
                         empty alternative, "style=axial|", means that the word is not given */
    const char *excludes; /* parameters that may not be given beside it, e.g. "base|scaling"; they are unused then */
    const char *used_by;  /* in an object of several kinds those that use it, "dynamic|longrope"; NULL: all */
    const struct pe_param *fields; /* PE_T_OBJECT: rows of its fields; their offsets count from the outer struct */
    struct pe_about about;         /* its meaning, its unit, and its default if that is derived */
    /* Its control in a form. Left out, the rest of the row decides: pe_param_is_basic, pe_param_usual. */
    enum pe_level level;
    enum pe_group group;
    struct pe_interval usual; /* the values that a slider runs over */
};

/* The row of that name or alias; NULL if none. */
const struct pe_param *pe_param_find(const struct pe_param *rows, const char *name);

/* Basic are the sizes, the frequencies and what is particular to a scheme, if the row has a constant default and no
 * condition. A row may state otherwise. */
bool pe_param_is_basic(const struct pe_param *row);
/* The values of its slider: stated, or all that are allowed if those are few, or some around the default. False: it is
 * no number. */
bool pe_param_usual(const struct pe_param *row, struct pe_interval *usual);
/* Should a slider over these values step by factors? */
bool pe_interval_is_log(const struct pe_interval *usual);

/* Reads those fields of an object that rows name into config, and sets the config field of every other row to its
 * default. Sets taken[i] to true for every fields[i] that a row has used. The pointers of errors begin with prefix (""
 * at the top). Rows end with .name = NULL. A field that is marked as taken before the call may also name a row that is
 * not in use. */
enum pe_status pe_params_read(const struct pe_param *rows, void *config, const struct pe_field *fields, size_t n_fields,
                              bool *taken, const char *prefix, struct pe_failure *err);

/* ---- Schemes: the catalogue ------------------------------------------------------------------------------------ */

/* PE_ENCODE, PE_ROTATE, PE_ATTEND */
enum pe_operation_id {
#define OPERATION(name, id) PE_##id,
#include "core/operation_list.h"
#undef OPERATION
    PE_N_OPERATIONS
};

struct pe_output_row {
    const char *name;
    const char *shape;   /* expression over n, q_len, k_len, integer parameters and, if the scheme has one, width:
                            "n,rotary_dim/2"; "" is a scalar */
    unsigned row_axes;   /* number of trailing axes in one row: 1, or more if each position has a small block */
    enum pe_dtype dtype; /* PE_DTYPE_NONE: the dtype that the request chooses */
    bool on_request;     /* answered only if the request names it */
    const char *when;    /* as in struct pe_param; "weights": only if the plan has weights. If no other output is
                            left, those on request become the default. */
    struct pe_about about;
    struct pe_interval range; /* all its values lie in it, whatever the request; both 0: not known */
    const char *families;     /* of schemes that have it, "absolute|relative"; NULL: all */
    const char *axes;         /* names of the axes, "distance,dim"; NULL: they follow from the shape (pe_output_axis) */
};

/* The name of axis i of the output: position, query, key, head, batch, pair, dim, axis, distance or component. Returns
 * its length, and borrows it from constant text; 0: there are no more axes. */
size_t pe_output_axis(const struct pe_output_row *row, unsigned i, const char **name);

/* Can the scheme have an output of this row of an operation? */
struct pe_scheme_info;
bool pe_output_suits(const struct pe_output_row *row, const struct pe_scheme_info *scheme);

struct pe_input_row {
    const char *name;
    const char *shape;
    enum pe_operation_id operation; /* the operation that uses it; others may too: see uses_encoding */
    bool is_operand;                /* a tensor that the operation transforms (q, k); else a weight */
    struct pe_about about;
};

/* A line of a formula in the language of core/formula.c, "w_c = base^(-2*c/r)", and in English what it means. Tables of
 * lines end with .line = NULL. Only the file of a scheme or scaling writes lines, so they are of the language; a test
 * reads them all. */
struct pe_formula_line {
    const char *line, *says;
};

/* Symbols that no line defines: those of every request. */
extern const struct pe_formula_line pe_formula_symbols[];

enum pe_notation { PE_PLAIN, PE_TEX, PE_MATHML, PE_N_NOTATIONS };

/* Prints a line in a notation, in pieces that put takes. Returns NULL, or where the line is not of the language. */
const char *pe_formula_print(const char *line, enum pe_notation notation,
                             void (*put)(void *to, const char *bytes, size_t n), void *to);
/* Calls each once for every name in the line, but the symbol itself, that is no function and no variable of a sum. */
void pe_formula_names(const char *line, void (*each)(void *to, const char *name, size_t n), void *to);
size_t pe_formula_symbol(const char *line); /* the length of the symbol that begins it */

/* A rule of the parameter `scaling`: its name and its lines, which take the place of the scheme's lines of the same
 * symbol. */
struct pe_formula {
    const char *name;
    const struct pe_formula_line *lines;
};
size_t pe_n_scalings(void);
struct pe_formula pe_scaling_formula(size_t i);

struct pe_scheme_info {
    const char *name, *family;
    struct pe_about about;
    const char *paper; /* the publication with the formula */
    const struct pe_formula_line *formula;
    const char *example; /* a whole request as JSON text, whose status is 200 */
    const char *picture; /* other fields of a PE_ENCODE request whose first output shows the scheme as a heat map,
                            "len=64&dim=64"; NULL: it has no such output */
    const char *worked;  /* other fields of a request for the steps of one number, as small as shows the formula:
                            "dim=8&position=3&channel=3"; percent-encoded; the example of core/schemes/SCHEMES.md */
    const char *traps;   /* in what implementations differ or fail without a refusal: sentences of that page */
    const struct pe_param *params;       /* end with .name = NULL, like the two below */
    const struct pe_output_row *outputs; /* of PE_ENCODE */
    const struct pe_input_row *inputs;   /* tensors of requests, NULL if none */
    bool is_additive;                    /* an encoding that is added to embeddings: /encode also accepts x */
    bool is_of_machine; /* values come from a network by the C library's functions: see pe_machine_fuses */
};

size_t pe_n_schemes(void);
const struct pe_scheme_info *pe_scheme_at(size_t i);
const struct pe_scheme_info *pe_scheme_find(const char *name); /* NULL if none */
const struct pe_param *pe_sequence_params(void);               /* len, offset, positions, … common to all schemes */
const struct pe_param *pe_padding_params(void);                /* attention_mask, … of q and k in a padded batch */
const struct pe_param *pe_absolute_params(void);               /* combine, x_scale, … common to additive schemes */
bool pe_absolute_needs_x(const struct pe_scheme_info *scheme, const char *name); /* refused without embeddings */

/* A family of schemes, or a section of a form. */
struct pe_heading {
    const char *name;
    struct pe_about about;
};
size_t pe_n_families(void);
const struct pe_heading *pe_family_at(size_t i);
const struct pe_heading *pe_group_at(enum pe_group group);

/* What an operation takes and answers beside what the scheme's rows say; NULL: nothing. */
struct pe_operation_info {
    const char *name;                    /* of its endpoint: "encode", "rotate", "attention" */
    const struct pe_param *params;       /* num_heads, causal, … of PE_ATTEND */
    const struct pe_input_row *inputs;   /* q, k, v, x, … of PE_ATTEND */
    const struct pe_output_row *outputs; /* scores, probs, … of PE_ATTEND */
    bool uses_encoding;                  /* it takes the weights that PE_ENCODE takes */
};
const struct pe_operation_info *pe_operation_at(enum pe_operation_id id);
bool pe_scheme_can(const struct pe_scheme_info *scheme, enum pe_operation_id id);

/* ---- Presets: public models by name ----------------------------------------------------------------------------- */

/* How reliable the numbers of a row are. */
enum pe_certainty {
    PE_SEEN_CHECKPOINT, /* read in the checkpoint's config or the vendor's code */
    PE_CLASS_DEFAULT,   /* read as the class default of a library */
    PE_UNVERIFIED,      /* from memory; confirm before relying on it */
    PE_UNSTATED         /* a preset that is not built in */
};
/* "checkpoint", "class default", "unverified"; NULL: unstated */
const char *pe_certainty_name(enum pe_certainty certainty);

/* A model whose layers differ has one of these for each layer type, the default first. */
struct pe_preset_layer {
    /* A word of transformers' layer_types ("full_attention", "sliding_attention") or, for models with several tables,
     * of the model's own code ("encoder", "decoder", "stage1" …); NULL: all layers. */
    const char *layer_type;
    const struct pe_field *fields; /* scheme and its parameters, as a request would write them */
    size_t n_fields;
};

struct pe_preset {
    const char *name;    /* "llama-3.1" */
    const char *aliases; /* names of single checkpoints, "llama-3.1-8b|llama-3.1-70b", or NULL */
    const char *source;  /* where the numbers were read; NULL: unstated */
    enum pe_certainty certainty;
    const char *label, *label_zh; /* the model as people write it, "Llama 3.1"; label_zh NULL: the same in Chinese */
    const char *note,
        *note_zh; /* other facts for porting (layout of other weights, layers without position, …), or NULLs */
    const struct pe_preset_layer *layers;
    size_t n_layers;
    struct {
        const struct pe_field *fields;
        size_t n;
    } config; /* the fields of its config.json that are about positions; none: there is no class, or it is not known */
    const char *inside; /* … of which object of that file they are, "text_config"; NULL: of the file itself */
};

size_t pe_n_presets(void);
const struct pe_preset *pe_preset_at(size_t i);
const struct pe_preset *pe_preset_find(const char *name); /* by name or alias; NULL if none */
const char *pe_preset_nearest(const char *name);          /* for "nearest: …"; NULL: none is near */

/* A preset by the name that people have for a model: an id of Hugging Face, a file, the folder of a snapshot, a name of
 * ollama (core/models/names.c). */
enum { PE_NAME_MAX = 512, PE_NAME_DROPPED_MAX = 64 };
struct pe_name_word {
    const char *text; /* of the name, borrowed */
    size_t n;
};
struct pe_preset_name {
    const char *asked; /* the name, borrowed */
    const struct pe_preset *preset;
    bool is_resolved; /* the name is not the preset's own, and no alias: dropped lists words that are not the model's */
    bool is_foreign;  /* of a refused name: no word of it begins the name of a preset */
    struct pe_name_word dropped[PE_NAME_DROPPED_MAX];
    size_t n_dropped;
};
/* PE_INVALID: no preset is meant, or more than one; the pointer of the refusal is "/preset". */
enum pe_status pe_preset_name(const char *asked, struct pe_preset_name *out, struct pe_failure *err);
/* Is there a number, a word or a list in the value of `said` that is about positions? Sizes of a model are not. */
bool pe_said_states(const struct pe_value *value);
/* Is the size in the name, "12b", that of the source of the preset's numbers? A name without one has it. */
bool pe_preset_is_of_size(const struct pe_preset *preset, const char *asked);
const struct pe_preset *pe_preset_named(const char *asked); /* the same; NULL: none, or more than one */
const char *pe_preset_nearest_of_all(const char *text);     /* one of its family, else by letters, however far */

/* ---- Plans ----------------------------------------------------------------------------------------------------- */

/* One axis of a slice: an index, which drops the axis, or a range by Python's rules; PE_UNSET_INT: open. */
struct pe_cut {
    bool is_index;             /* only start is used */
    int64_t start, stop, step; /* step ≥ 1 */
};

struct pe_slice {
    const char *output; /* NULL: all outputs */
    struct pe_cut cuts[PE_RANK_MAX];
    unsigned n_cuts; /* further axes are whole */
};

/* A slice's step replaces each block of numbers by its first number, or by one computed from its finite numbers. */
enum pe_reduce { PE_REDUCE_SAMPLE, PE_REDUCE_MEAN, PE_REDUCE_MIN, PE_REDUCE_MAX, PE_REDUCE_ABSMAX };

struct pe_request {
    enum pe_operation_id operation;
    const struct pe_field *fields; /* scheme, its parameters, the sequence, tensors; borrowed until pe_plan_free */
    size_t n_fields;
    enum pe_dtype dtype;           /* of real outputs; PE_DTYPE_NONE: that of the tensor sent, else f32 */
    const char *const *outputs;    /* names of outputs wanted, in order; borrowed until the plan is built */
    size_t n_outputs;              /* 0: the scheme's default outputs */
    const struct pe_slice *slices; /* an output uses the first that matches it; borrowed until the plan is built */
    size_t n_slices;
    enum pe_reduce reduce;
    const char *const
        *caller_fields; /* fields that the caller itself reads, only for suggestions; NULL-terminated or NULL */
    /* Called before each step of planning that may allocate much, with the bytes that planning allocates and keeps up
     * to the end of that step: estimated, and rather too high. If it returns anything but PE_OK, planning fails with
     * that status, and *err as the callback filled it. NULL: every step is allowed. Used until the plan is built. */
    enum pe_status (*admit)(void *caller, double bytes, struct pe_failure *err);
    void *caller;
    uint64_t positions_max; /* most positions of its sequence, refused with PE_TOO_LARGE; 0: any number */
};

/* One tensor of a plan: n_rows × row_len elements. A row is the last axis; where a position owns a small block of
 * trailing axes (complex pairs, 2×2 matrices) the row is that block. */
struct pe_output {
    const char *name;
    enum pe_dtype dtype;
    unsigned rank;
    uint64_t shape[PE_RANK_MAX];
    uint64_t n_rows, row_len;
    /* Some outputs compute their elements in units: a unit is so many elements, the first unit begins at each multiple
     * of period, and the last before the next multiple may be shorter. Filling whole units is the fast case. 0: none.
     */
    uint64_t unit, period;
    uint64_t most; /* elements that one pe_fill can write without taking long; 0: any number */
};

/* A weight that a request can use: its field's name, and the endings of its names in public checkpoints
 * ("a.weight|b.weight", each begins after a dot; NULL: no checkpoint known). For a caller that stores weights and finds
 * them by name. */
struct pe_weight_name {
    const char *name, *elsewhere;
};
enum { PE_WEIGHT_NAMES_MAX = 40 };
/* Writes *n of them to names (room for PE_WEIGHT_NAMES_MAX), and the scheme; fails if the request names no scheme. */
enum pe_status pe_request_weights(const struct pe_request *request, const struct pe_scheme_info **scheme,
                                  struct pe_weight_name *names, size_t *n, struct pe_failure *err);

/* Makes *plan (free with pe_plan_free) from a request, or describes in *err what is wrong with it: pe_plan_check and
 * pe_plan_build in one call. Its time has no bound but that of the request's admit(). */
enum pe_status pe_plan_new(const struct pe_request *request, struct pe_plan **plan, struct pe_failure *err);

/* The first half: makes *plan from a request that breaks none of the rules that can be checked before the scheme
 * computes anything: names, types and ranges of fields, which fields go together, shapes [axes] of the tensors sent,
 * numbers of positions. It waits for nothing, draws no numbers, and reads no element of a tensor for an input row
 * (struct pe_input_row) but of those from_text: the others may be written until pe_plan_build is called, with .data set
 * before. It reads the lists of numbers of parameters and of the sequence.
 *
 * Memory: at most 64 KiB, plus 8 bytes for each number that the request sends and 64 for each of its segments. Time: a
 * tenth of a millisecond, plus some 10 ns for each such number and a microsecond for each segment, whatever sizes the
 * request asks for. A plan that is only checked may be given to pe_plan_scheme, pe_plan_preset, pe_plan_builder,
 * pe_plan_build and pe_plan_free, and to no other function. */
enum pe_status pe_plan_check(const struct pe_request *request, struct pe_plan **plan, struct pe_failure *err);

/* Which thread should build a checked plan? PE_READY: any thread, even one that serves others: building takes a
 * millisecond of a slow machine at most, estimated, and rather too high. PE_WORKER: a thread that may take longer. */
enum pe_builder { PE_READY, PE_WORKER };
enum pe_builder pe_plan_builder(const struct pe_plan *plan);

/* The second half, once for each plan: the positions of packed sequences and segments, what the scheme computes in
 * advance, numbers from a seed, projections, tables, working memory. It fails without memory, if admit() refuses, if
 * the work was cancelled (pe_watch), or by a rule that only the scheme can check. The plan is not freed then, and may
 * only be given to pe_plan_free. */
enum pe_status pe_plan_build(struct pe_plan *plan, struct pe_failure *err);
/* pe_plan_free also frees a plan that is only checked. */

const struct pe_scheme_info *pe_plan_scheme(const struct pe_plan *plan);
/* The preset that the request names, NULL if none. */
const struct pe_preset *pe_plan_preset(const struct pe_plan *plan);
const struct pe_output *pe_plan_output(const struct pe_plan *plan, size_t i); /* borrowed until pe_plan_free */
/* The time to fill one element: nanoseconds (quick), microseconds (slow), or any time (heavy), because each row is
 * computed from the rows before it. Fill a heavy plan on a thread that nothing else waits for. */
enum pe_pace { PE_QUICK, PE_SLOW, PE_HEAVY };
enum pe_pace pe_plan_pace(const struct pe_plan *plan);
/* The approximate work of filling all outputs once, in multiply-adds; other work counts as four of them per nanosecond.
 */
double pe_plan_work(const struct pe_plan *plan);
/* The approximate memory in bytes that planning only reserved and that filling threads write to. */
double pe_plan_bytes(const struct pe_plan *plan);
/* PE_ATTEND: writes the number of queries, over batch and heads, that see no key. False for other operations. */
bool pe_plan_empty_rows(const struct pe_plan *plan, uint64_t *n);
/* PE_ATTEND with the output `terms`: writes the names along its first axis (constant strings) and returns their number.
 * 0: it has no such output. */
enum { PE_TERMS_MAX = 8 };
size_t pe_plan_terms(const struct pe_plan *plan, const char *names[PE_TERMS_MAX]);
/* Every parameter with its resolved value, as an object. A request with this object and the same sequence gives the
 * same bytes. Borrowed until pe_plan_free. */
const struct pe_value *pe_plan_config(const struct pe_plan *plan);

/* For Toeplitz outputs: element [row, column] of each matrix (the last two axes) depends only on column - row. The line
 * of such a matrix has rows + columns - 1 elements, and row r of the matrix begins at element rows-1-r of the line.
 * Writes elements first … first+n-1 of the line. Returns false and writes nothing for other outputs; with n = 0 it only
 * reports whether output i is Toeplitz. */
bool pe_fill_line(const struct pe_plan *plan, size_t i, uint64_t matrix, uint64_t first, size_t n, void *dst);

/* ---- Cancelled work --------------------------------------------------------------------------------------------- */

/* For the caller's own long loops: calls is_gone as the core does. */
bool pe_is_cancelled(void);
/* The same at every 65536th short step of a loop: these take less than a millisecond. */
static inline bool pe_is_cancelled_at(uint64_t step) { return step % 65536 == 65535 && pe_is_cancelled(); }

/* ---- The machine ------------------------------------------------------------------------------------------------- */

#define PE_N_ISAS (PE_ISA_AVX512 + 1)
/* Does this machine fuse multiplication and addition? The C library's exp, tanh and others then do, whichever kernels
 * are in use, and their last bits may differ from those of another machine. */
bool pe_machine_fuses(void);

/* Number of values since the process began that were too near a rounding boundary for double-double arithmetic. */
uint64_t pe_undecided_count(void);

/* Reserves address space for n matrix products at a time, PE_GEMM_BYTES each. Called where address space is limited and
 * there is room for it: the BLAS asks again without end for what it does not get, later as well. */
#define PE_GEMM_BYTES (UINT64_C(128) << 20)
void pe_gemm_reserve(size_t n);

#include "core/studies.h"

#endif
