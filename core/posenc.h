/* libposenc: what a caller of the mathematics sees. Values in, plans, rows out.
 *
 * In three calls: pe_plan_new() checks a request and decides everything that decides a number; pe_fill() writes any
 * elements of any output of the plan; pe_plan_free() ends it. Nothing here knows JSON, HTTP, threads, files or clocks.
 *
 * Ownership is said in three words: "makes" (the caller frees it with the named function), "borrowed until …" (the
 * pointed-to memory must outlive that moment) and "takes" (the callee frees it). A function that fails leaves its
 * outputs untouched and fills *err. */
#ifndef PE_POSENC_H
#define PE_POSENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PE_VERSION "0.1.0"

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

enum pe_status {
    PE_OK = 0,
    PE_INVALID,   /* the request is wrong; err says where, what was found and what is allowed */
    PE_TOO_LARGE, /* the request is right but passes a ceiling; err names it */
    PE_NO_MEMORY, /* an allocation failed; nothing was changed */
    PE_CANCELLED  /* nobody wants it any more: see pe_watch */
};

enum { PE_POINTER_MAX = 160, PE_DETAIL_MAX = 640 };

struct pe_error {
    enum pe_status status;
    char pointer[PE_POINTER_MAX]; /* JSON pointer (RFC 6901) of the field at fault, "" for the whole request */
    char detail[PE_DETAIL_MAX];   /* one sentence for the user: found, allowed, nearest right name */
};

/* Fill *err and return its status: a failing function ends with `return pe_fail(err, …)`. pe_fail names the field by
 * its pointer; pe_no_memory needs none. */
enum pe_status pe_fail(struct pe_error *err, const char *pointer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum pe_status pe_no_memory(struct pe_error *err);

/* The entry of names (NULL-terminated) nearest to word by edit distance, or NULL if none is near enough to be meant. */
const char *pe_nearest(const char *word, const char *const *names);

/* ---- Tensors --------------------------------------------------------------------------------------------------- */

enum pe_dtype {
    PE_F32,
    PE_F64,
    PE_F16,
    PE_BF16, /* the four an answer may be asked in */
    PE_I32,
    PE_I64,
    PE_I16,
    PE_I8,
    PE_U8,
    PE_U16,
    PE_U32,
    PE_U64,
    PE_BOOL,
    PE_N_DTYPES,
    PE_DTYPE_NONE = -1
};

enum { PE_RANK_MAX = 8 };

/* A view of a row-major little-endian tensor; data is aligned to its element only. */
struct pe_tensor {
    enum pe_dtype dtype;
    unsigned rank;
    uint64_t shape[PE_RANK_MAX];
    const void *data;
};

size_t pe_dtype_size(enum pe_dtype dtype);      /* bytes of one element */
const char *pe_dtype_name(enum pe_dtype dtype); /* "f32", … as on the wire */
enum pe_dtype pe_dtype_find(const char *name);  /* PE_DTYPE_NONE if there is none of that name */
bool pe_dtype_is_real(enum pe_dtype dtype);     /* f32, f64, f16, bf16 */
/* Elements of a shape; false if the product passes 2^63. */
bool pe_shape_count(const uint64_t *shape, unsigned rank, uint64_t *count);
/* dst[i] = src[i] in another dtype, i < n, one rounding (to nearest, ties to even). Integers saturate. NaN becomes 0 in
 * an integer. src and dst may not overlap. */
void pe_convert(enum pe_dtype to, void *dst, enum pe_dtype from, const void *src, size_t n);

/* ---- Values: a request without its JSON ------------------------------------------------------------------------ */

enum pe_kind { PE_NULL, PE_BOOLEAN, PE_INTEGER, PE_REAL, PE_STRING, PE_LIST, PE_OBJECT, PE_ARRAY };

struct pe_field;

struct pe_value {
    enum pe_kind kind;
    bool from_text; /* PE_ARRAY: f64 numbers read from JSON text with no dtype stated; a tensor of them is f32 */
    union {
        bool boolean;
        int64_t integer;
        double real;        /* the double nearest the number's text */
        const char *string; /* UTF-8, NUL-terminated */
        struct {
            const struct pe_value *items;
            size_t n;
        } list; /* what is not all numbers */
        struct {
            const struct pe_field *fields;
            size_t n;
        } object;
        struct pe_tensor array; /* any list (of lists …) of numbers, and any tensor sent */
    };
};

struct pe_field {
    const char *name;
    struct pe_value value;
};

/* ---- Parameter rows: one table row is a parameter's name, type, default, range and text ------------------------ */

enum pe_type { PE_T_INT, PE_T_REAL, PE_T_BOOL, PE_T_WORD, PE_T_REALS, PE_T_OBJECT, PE_T_VALUE };

#define PE_UNSET_INT INT64_MIN /* an integer that was not given and has no constant default; a real is NaN then */

/* A list of numbers: borrowed from the request. For lists of any dtype; read by pe_real_at(). v.n = 0: not given. */
struct pe_reals {
    struct pe_tensor array;
    uint64_t n;
};
double pe_real_at(const struct pe_reals *list, uint64_t i); /* element i, counted flat */

struct pe_param {
    const char *name;  /* the JSON key and the config struct's field */
    const char *alias; /* other words accepted for it, "a|b", or NULL */
    enum pe_type type;
    size_t offset; /* of the field in its config struct: int64_t, double, bool, int (index into words), struct pe_reals,
                      const struct pe_value * (PE_T_VALUE: any value, borrowed from the request; NULL: not given) */
    double fallback;          /* default; NaN: none, the field stays unset and the plan may derive it */
    double min, max;          /* inclusive; for PE_T_REALS of each element */
    const char *const *words; /* PE_T_WORD: the allowed words, NULL-terminated */
    const char *when;     /* used only when, as in "form=asymmetric|key" (a word parameter of the same rows); an empty
                             alternative, "style=axial|", is that word unset */
    const char *excludes; /* may not stand beside these, as in "base|scaling"; where it is set, they are not used */
    const struct pe_param *fields; /* PE_T_OBJECT: rows of its fields; their offsets count from the outer struct */
    const char *text;              /* what it means, unit, and its default where that is derived */
};

/* The row of that name or alias; NULL if none. */
const struct pe_param *pe_param_find(const struct pe_param *rows, const char *name);

/* Reads the fields of an object that rows name into config (of which every row's field is set: to its default or to the
 * value given). taken[i] is set to true for every fields[i] that a row has used. prefix starts the pointers of
 * errors ("" at the top). Rows end with .name = NULL. A field that somebody else has taken before may be given to a row
 * that is not in use. */
enum pe_status pe_params_read(const struct pe_param *rows, void *config, const struct pe_field *fields, size_t n_fields,
                              bool *taken, const char *prefix, struct pe_error *err);

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
    const char *shape;   /* expression over n, q_len, k_len, integer parameters and, for a scheme that says it, width:
                            "n,rotary_dim/2"; "" is a scalar */
    unsigned row_axes;   /* how many trailing axes make one row: 1, or more where a position owns a small block */
    enum pe_dtype dtype; /* PE_DTYPE_NONE: the dtype asked for */
    bool on_request;     /* answered only if asked for by name */
    const char *when; /* as in struct pe_param; "weights": where there are any. What is on request becomes the default
                         where nothing else is left. */
    const char *text;
};

struct pe_input_row {
    const char *name;
    const char *shape;
    enum pe_operation_id operation; /* which operation takes it; others may too: see uses_encoding */
    bool is_operand;                /* what the operation works on (q, k); else weights */
    const char *text;
};

struct pe_scheme_info {
    const char *name, *family, *summary;
    const char *paper;                   /* where the formula stands */
    const char *example;                 /* a whole request as JSON text that answers 200 */
    const struct pe_param *params;       /* end with .name = NULL, like the two below */
    const struct pe_output_row *outputs; /* of PE_ENCODE */
    const struct pe_input_row *inputs;   /* tensors, NULL if none */
    bool is_additive;                    /* an encoding that is added to embeddings: /encode takes x as well */
    bool is_of_machine; /* values pass through weights or long sums: the same bytes on one machine only */
};

size_t pe_n_schemes(void);
const struct pe_scheme_info *pe_scheme_at(size_t i);
const struct pe_scheme_info *pe_scheme_find(const char *name); /* NULL if none */
const struct pe_param *pe_sequence_params(void);               /* len, offset, positions, … common to all schemes */
const struct pe_param *pe_absolute_params(void);               /* combine, x_scale, … common to additive schemes */

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

/* How sure a row is. */
enum pe_certainty {
    PE_SEEN_CHECKPOINT, /* read in the checkpoint's config or the vendor's code */
    PE_CLASS_DEFAULT,   /* read as the class default of a library */
    PE_UNVERIFIED       /* from memory; confirm before relying on it */
};
const char *pe_certainty_name(enum pe_certainty certainty); /* "checkpoint", "class default", "unverified" */

/* Models whose layers differ have one of these for each layer type, the default first. */
struct pe_preset_layer {
    /* As in transformers' layer_types, "full_attention", "sliding_attention", or a word of the model's own code where
     * it has several tables, "encoder", "decoder", "stage1" …; NULL: all layers. */
    const char *layer_type;
    const struct pe_field *fields; /* scheme and its parameters, as a request would write them */
    size_t n_fields;
};

struct pe_preset {
    const char *name;    /* "llama-3.1" */
    const char *aliases; /* names of single checkpoints, "llama-3.1-8b|llama-3.1-70b", or NULL */
    const char *source;  /* where the numbers were read */
    enum pe_certainty certainty;
    const char *note; /* what else a porter must know (layout of other weights, layers without position, …), or NULL */
    const struct pe_preset_layer *layers;
    size_t n_layers;
};

size_t pe_n_presets(void);
const struct pe_preset *pe_preset_at(size_t i);
const struct pe_preset *pe_preset_find(const char *name); /* by name or alias; NULL if none */

/* ---- Plans ----------------------------------------------------------------------------------------------------- */

/* One axis of a slice: an index, which drops the axis, or a range by Python's rules; PE_UNSET_INT: open. */
struct pe_cut {
    bool is_index;             /* start alone counts */
    int64_t start, stop, step; /* step ≥ 1 */
};

struct pe_slice {
    const char *output; /* NULL: all outputs */
    struct pe_cut cuts[PE_RANK_MAX];
    unsigned n_cuts; /* further axes are whole */
};

/* What a slice's step does with the block it passes over: its first number, or one made of its finite numbers. */
enum pe_reduce { PE_REDUCE_SAMPLE, PE_REDUCE_MEAN, PE_REDUCE_MIN, PE_REDUCE_MAX, PE_REDUCE_ABSMAX };

/* What planning takes: bytes that it allocates and keeps or writes, and nanoseconds of a slow machine. Both are counted
 * before anything is done, and rather too high. */
struct pe_cost {
    double bytes, ns;
};

struct pe_request {
    enum pe_operation_id operation;
    const struct pe_field *fields; /* scheme, its parameters, the sequence, tensors; borrowed until pe_plan_free */
    size_t n_fields;
    enum pe_dtype dtype;           /* of real outputs; PE_DTYPE_NONE: that of the tensor sent, else f32 */
    const char *const *outputs;    /* names of outputs wanted, in order; borrowed until pe_plan_new returns */
    size_t n_outputs;              /* 0: the scheme's own */
    const struct pe_slice *slices; /* the first that fits an output counts; borrowed until pe_plan_new returns */
    size_t n_slices;
    enum pe_reduce reduce;
    const char *const
        *caller_fields; /* names the caller understands itself, for "nearest" only; NULL-terminated or NULL */
    /* Asked before each step of planning that may allocate or compute much, with what planning takes up to the end of
     * that step. Any other answer than PE_OK ends planning with it, and with the *err it has filled in. NULL: all may
     * be done. */
    enum pe_status (*admit)(void *caller, const struct pe_cost *cost, struct pe_error *err);
    void *caller;
};

/* One tensor of a plan: n_rows × row_len elements. A row is the last axis; where a position owns a small block of
 * trailing axes (complex pairs, 2×2 matrices) the row is that block. */
struct pe_output {
    const char *name;
    enum pe_dtype dtype;
    unsigned rank;
    uint64_t shape[PE_RANK_MAX];
    uint64_t n_rows, row_len;
    /* Elements that are made together, where there are such: from each multiple of period on, units of so many (the
     * last one shorter). Whole units are the fast case. 0: there are none. */
    uint64_t unit, period;
    uint64_t most; /* elements that may be asked for at one go without taking long; 0: any number */
};

struct pe_plan; /* immutable once made; any number of threads may fill from it at once */

/* Weights that a request can take: the field's name, and the endings, each from a dot on, of what public checkpoints
 * call it ("a.weight|b.weight"; NULL: no checkpoint known). For who keeps weights and finds them by name. */
struct pe_weight_name {
    const char *name, *elsewhere;
};
enum { PE_WEIGHT_NAMES_MAX = 40 };
/* Writes n of them to names (room for PE_WEIGHT_NAMES_MAX), and the scheme; or says that the request names no scheme.
 */
enum pe_status pe_request_weights(const struct pe_request *request, const struct pe_scheme_info **scheme,
                                  struct pe_weight_name *names, size_t *n, struct pe_error *err);

/* Makes *plan (free with pe_plan_free) from a request, or says in *err what is wrong with it. */
enum pe_status pe_plan_new(const struct pe_request *request, struct pe_plan **plan, struct pe_error *err);
void pe_plan_free(struct pe_plan *plan); /* NULL is accepted */

const struct pe_scheme_info *pe_plan_scheme(const struct pe_plan *plan);
/* The preset that the request named, NULL if none. */
const struct pe_preset *pe_plan_preset(const struct pe_plan *plan);
size_t pe_plan_n_outputs(const struct pe_plan *plan);
const struct pe_output *pe_plan_output(const struct pe_plan *plan, size_t i); /* borrowed until pe_plan_free */
/* How long filling takes: nanoseconds an element; microseconds; or however long it takes to reach them, because rows
 * follow from the rows before them (fill from a thread that nobody waits for). */
enum pe_pace { PE_QUICK, PE_SLOW, PE_HEAVY };
enum pe_pace pe_plan_pace(const struct pe_plan *plan);
/* About how many multiply-adds filling all outputs once takes, or takes as long as: a nanosecond is four of them. */
double pe_plan_work(const struct pe_plan *plan);
/* About how much memory those who fill write to at a time, bytes, as far as it was only put aside by planning. */
double pe_plan_bytes(const struct pe_plan *plan);
/* PE_ATTEND: how many queries, over batch and heads, see no key. False for other operations. */
bool pe_plan_empty_rows(const struct pe_plan *plan, uint64_t *n);
/* Every parameter resolved, as an object: posted again with the sequence it gives the same bytes. Borrowed likewise. */
const struct pe_value *pe_plan_config(const struct pe_plan *plan);

/* Writes elements first … first+n-1 of output i, counted flat in row-major order, to dst (n elements of its dtype,
 * aligned to 8 bytes). Cannot fail. The bytes depend on plan, output and element only: any split of a tensor into calls
 * gives the same. Whole rows, in multiples of 32, are the fast case. PE_ROTATE without slices, to the dtype that was
 * sent: dst may be these elements' own place in the tensor, if they are whole rows. */
void pe_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst);

/* Where element [row, column] of each matrix of output i (its last two axes) depends on column - row alone (Toeplitz):
 * writes elements first … first+n-1 of the line of such a matrix, which has rows + columns - 1 and of which row r
 * begins with element rows-1-r. False, and nothing written, for other outputs; n = 0 only asks. */
bool pe_fill_line(const struct pe_plan *plan, size_t i, uint64_t matrix, uint64_t first, size_t n, void *dst);

/* ---- Work that nobody wants any more ---------------------------------------------------------------------------- */

/* From here on the calling thread asks is_gone(caller) now and then while it plans or fills: does nobody want the
 * result any more? After the first yes, which must stand, it asks no more; planning fails with PE_CANCELLED, and
 * filling returns soon, with anything in dst. The plan stays right for others. NULL, as at a thread's start: all is
 * wanted. */
void pe_watch(bool (*is_gone)(void *caller), void *caller);
/* Has there been a yes since? Then what has been filled is not to be used. */
bool pe_was_cancelled(void);
/* For the caller's own long loops: asks as the core does. */
bool pe_is_cancelled(void);

/* Has wait() called, on any thread that fills, for as long as it cannot go on before another thread that fills from the
 * same plan has: which may itself be within is_gone(). For the whole process, before any thread; NULL, as at first: it
 * goes round in a loop. */
void pe_on_wait(void (*wait)(void));
void pe_wait(void); /* once round: what the core calls then */

/* ---- The instruction set the kernels use ------------------------------------------------------------------------ */

enum pe_isa { PE_ISA_BASE, PE_ISA_AVX2, PE_ISA_AVX512, PE_N_ISAS }; /* base: plain x86-64, or arm64 with NEON */
enum pe_isa pe_isa(void);                 /* the one in use; the best of the machine unless pe_isa_use() chose */
bool pe_isa_use(enum pe_isa isa);         /* false, and no change, if the machine lacks it. Before any thread fills. */
const char *pe_isa_name(enum pe_isa isa); /* "base", "avx2", "avx512" */

/* Values so near a rounding boundary that double-double arithmetic could not decide them, since the process began. */
uint64_t pe_undecided_count(void);

/* ---- The one door to BLAS --------------------------------------------------------------------------------------- */

/* Makes the BLAS library run on the calling thread only: our workers are the parallelism. Call once, before any thread.
 */
void pe_gemm_setup(void);

#endif
