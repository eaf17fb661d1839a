/* libposenc: computes positional encodings of Transformer models. This header is the whole interface of the library.
 *
 *     struct pe_error err;
 *     struct pe_plan *plan;
 *     struct pe_ask *ask = pe_ask_new("encode");
 *     pe_ask_text(ask, "scheme", "rope");
 *     pe_ask_integer(ask, "head_dim", 128);
 *     pe_ask_integer(ask, "len", 4096);
 *     if (pe_ask_plan(ask, &plan, &err) != PE_OK)
 *         return fprintf(stderr, "%s\n", err.detail), 2;
 *     float *cosines = malloc((size_t)pe_output_bytes(plan, 0));
 *     pe_fill(plan, 0, 0, (size_t)pe_output_bytes(plan, 0) / sizeof *cosines, cosines);
 *     pe_plan_free(plan);
 *     pe_ask_free(ask);
 *
 * Three steps: put a request together by calls, plan it, fill from the plan. Planning checks the request and fixes
 * everything that a number depends on; it may fail. Filling writes any elements of any output and cannot fail. The
 * fields of a request are those of the service's endpoints: `posenc schemes` lists the schemes, `posenc schemes rope`
 * the fields of one. What the service answers beside tables, e.g. a diagnosis, is one call: pe_call.
 *
 * Three words state ownership: "makes" (the caller frees it with the named function), "borrowed until …" (the
 * pointed-to memory must stay valid until then) and "takes" (the callee frees it). A function that fails leaves its
 * outputs untouched and fills *err.
 *
 * Threads and the process:
 * - Nothing runs when the library is loaded. Any thread may call any function. One struct pe_ask belongs to one thread
 * at a time; a plan never changes, and any number of threads may fill from it at once, also after fork().
 * - pe_watch() is of the calling thread. pe_isa_use(), pe_on_wait() and pe_gemm_setup() are of the process; they are
 * for the beginning of main().
 * - pe_call() reads JSON with jansson, whose allocation functions it replaces (json_set_alloc_funcs) by its own; they
 *   pass every call of the program on to those that were set before.
 * - There is no other state. The library reads no locale, environment, file or clock; it sets no signal handler, never
 *   exits and prints nothing. It expects rounding to nearest, and leaves the caller's floating-point flags as they
 * were.
 * - The BLAS library keeps the threads that the program gave it, unless pe_gemm_setup() is called. OpenBLAS starts a
 *   thread for each processor when it is loaded, and each asks without end for a buffer of 128 MiB. So where address
 *   space is limited (ulimit -v), start the program with OPENBLAS_NUM_THREADS=1 in its environment; otherwise it may
 *   not end. A product of matrices needs one such buffer.
 * - Memory is allocated with malloc(). An allocation that fails is PE_NO_MEMORY; pe_ask_limit() refuses large requests
 *   before anything large is allocated.
 *
 * Within one number of the soname (libposenc.so.0) functions and values of enums are only added. What will go is marked
 * as deprecated for at least one minor version before. */
#ifndef PE_POSENC_H
#define PE_POSENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of this header are visible in the shared library, everything else is hidden. */
#ifdef __GNUC__
#define PE_API __attribute__((visibility("default")))
#else
#define PE_API
#endif

/* ---- Version --------------------------------------------------------------------------------------------------- */

#define PE_VERSION "0.2.0"
#define PE_VERSION_MAJOR 0
#define PE_VERSION_MINOR 2
#define PE_VERSION_PATCH 0

/* PE_VERSION of the library that runs, which may be newer than this header. */
PE_API const char *pe_version(void);

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

enum pe_status {
    PE_OK = 0,
    PE_INVALID = 1,   /* the request is wrong; err names the field, the value found and the values allowed */
    PE_TOO_LARGE = 2, /* the request is valid but exceeds a limit; err names it */
    PE_NO_MEMORY = 3, /* an allocation failed; nothing has changed */
    PE_CANCELLED = 4  /* the caller no longer wants the result: see pe_watch */
};

enum { PE_POINTER_MAX = 160, PE_DETAIL_MAX = 640 };

/* The only struct that a program lays out itself. It has 804 bytes, and never other ones. */
struct pe_error {
    int status;                   /* an enum pe_status */
    char pointer[PE_POINTER_MAX]; /* JSON pointer (RFC 6901) of the field at fault, "" for the whole request */
    char detail[PE_DETAIL_MAX];   /* one English sentence: value found, values allowed, nearest valid name */
};

/* ---- Elements of tensors --------------------------------------------------------------------------------------- */

enum pe_dtype {
    PE_DTYPE_NONE = -1,
    PE_F32 = 0,
    PE_F64 = 1,
    PE_F16 = 2,
    PE_BF16 = 3,
    PE_I32 = 4,
    PE_I64 = 5,
    PE_I16 = 6,
    PE_I8 = 7,
    PE_U8 = 8,
    PE_U16 = 9,
    PE_U32 = 10,
    PE_U64 = 11,
    PE_BOOL = 12,    /* a byte, 0 or 1 */
    PE_F8_E4M3 = 13, /* e4m3fn: no infinities; what rounds beyond 448 is NaN */
    PE_F8_E5M2 = 14, /* as IEEE 754's formats: infinities */
    PE_N_DTYPES      /* those of this version; the field dtype chooses one of the real ones for the outputs */
};

enum { PE_RANK_MAX = 8 };

PE_API size_t pe_dtype_size(enum pe_dtype dtype);      /* bytes of one element */
PE_API const char *pe_dtype_name(enum pe_dtype dtype); /* "f32", "bf16", "i64", "bool" … */
PE_API enum pe_dtype pe_dtype_find(const char *name);  /* PE_DTYPE_NONE: there is none of that name */

/* ---- A request by calls ---------------------------------------------------------------------------------------- */

struct pe_ask;  /* used by one thread at a time */
struct pe_plan; /* immutable */

/* Makes a request (free with pe_ask_free) of an operation: "encode", "rotate" or "attention". NULL: no memory. An
 * unknown operation is reported by pe_ask_plan. */
PE_API struct pe_ask *pe_ask_new(const char *operation);

/* Set a field, or a member of one ("scaling.factor"); a second call for the same path replaces the first. Texts are
 * copied. These calls never fail: the first mistake (a malformed or NULL path, a value that cannot be) is kept for
 * pe_ask_plan, so that many calls need one check. ask may be NULL.
 *
 * A text is a word or a name, never a number. dtype is a word ("f16"); outputs are words with commas ("cos,sin"), by
 * default those that the scheme has by default. */
PE_API void pe_ask_text(struct pe_ask *ask, const char *path, const char *value);
PE_API void pe_ask_integer(struct pe_ask *ask, const char *path, int64_t value);
PE_API void pe_ask_real(struct pe_ask *ask, const char *path, double value);
PE_API void pe_ask_bool(struct pe_ask *ask, const char *path, bool value);

/* A row-major little-endian tensor (q, k, a weight), or a list of numbers such as positions: rank at most PE_RANK_MAX,
 * shape [rank]. data is borrowed until pe_plan_free of every plan that is made from the request; NULL is accepted where
 * the shape has no elements. It need not be aligned beyond its element. shape is copied. */
PE_API void pe_ask_tensor(struct pe_ask *ask, const char *path, enum pe_dtype dtype, unsigned rank,
                          const uint64_t *shape, const void *data);

/* From now on plans that need more memory, or whose outputs take more multiply-adds, are refused with PE_TOO_LARGE,
 * before anything large is allocated. 0: no limit, as at the beginning. */
PE_API void pe_ask_limit(struct pe_ask *ask, double max_bytes, double max_work);

/* Makes *plan (free with pe_plan_free), or describes in *err what is wrong. The request may be changed, planned again
 * or freed then; the plan needs only its tensors. ask NULL: PE_NO_MEMORY. */
PE_API enum pe_status pe_ask_plan(struct pe_ask *ask, struct pe_plan **plan, struct pe_error *err);

PE_API void pe_ask_free(struct pe_ask *ask); /* NULL is accepted; plans that were made from it live on */

/* ---- A plan and its outputs ------------------------------------------------------------------------------------- */

PE_API void pe_plan_free(struct pe_plan *plan); /* NULL is accepted */
PE_API size_t pe_plan_n_outputs(const struct pe_plan *plan);

/* Of output i, which is less than pe_plan_n_outputs. What they return is borrowed until pe_plan_free. */
PE_API int pe_output_find(const struct pe_plan *plan, const char *name); /* the output's number; -1: there is none */
PE_API const char *pe_output_name(const struct pe_plan *plan, size_t i);
PE_API enum pe_dtype pe_output_dtype(const struct pe_plan *plan, size_t i);
PE_API unsigned pe_output_rank(const struct pe_plan *plan, size_t i);
PE_API const uint64_t *pe_output_shape(const struct pe_plan *plan, size_t i); /* [rank] */
PE_API uint64_t pe_output_bytes(const struct pe_plan *plan, size_t i);        /* of all its elements */

/* Writes elements first … first+n-1 of output i, counted flat in row-major order, to dst (n elements of its dtype,
 * aligned to 8 bytes). Cannot fail. The bytes depend only on plan, output and element, so a tensor may be split into
 * calls in any way, and among threads. Whole rows (of the last axis), in multiples of 32, are the fast case. For
 * "rotate" with the dtype of the tensor sent, dst may be the place of these elements in that tensor, if they are whole
 * rows. */
PE_API void pe_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst);

/* ---- The whole service in this process -------------------------------------------------------------------------- */

/* Every request of the service (api/USING.md), answered here with the bytes that the service gives: diagnoses, checks,
 * explanations of a config.json, analyses, golden files, pictures, the catalogue.
 *
 *     struct pe_reply *reply = pe_call("POST", "/check", "application/json", json, strlen(json), 0, 0);
 *     for (ptrdiff_t n; (n = pe_reply_read(reply, piece, sizeof piece)) > 0;)
 *         fwrite(piece, 1, (size_t)n, stdout);
 *     pe_reply_free(reply);
 *
 * What stores something (PUT, DELETE) or needs a clock or the server itself (/experiments, /metrics, /healthz, the
 * page) is 404, and no weights and presets are stored. A refusal is a reply too: its status is 400 or more, its body a
 * problem (RFC 9457) whose member detail is the sentence. */
struct pe_reply; /* used by one thread at a time; any number of threads may call */

/* Makes a reply (free with pe_reply_free). method is "GET" or "POST"; target a path with its query, percent-encoded
 * ("/encode?scheme=rope&len=8"); content_type that of the body: application/json, a .npy or .safetensors file, a form
 * (NULL: none). These are copied; body, of n_body bytes, is borrowed until pe_reply_free, and NULL if n_body is 0.
 * Requests that need more memory than max_bytes beside their body, or whose answer takes more multiply-adds than
 * max_work, are refused with 413, as by --max-memory and --max-analysis; 0: no limit. NULL: no memory; an allocation
 * that fails on the way is a reply with status 503. */
PE_API struct pe_reply *pe_call(const char *method, const char *target, const char *content_type, const void *body,
                                size_t n_body, double max_bytes, double max_work);

/* Of a reply, which is not NULL. Texts are borrowed until pe_reply_free. */
PE_API int pe_reply_status(const struct pe_reply *reply);       /* 200; 422 … for a refusal */
PE_API const char *pe_reply_type(const struct pe_reply *reply); /* "application/json" … */
/* "Content-Length" (of the whole body), "Posenc-Fits", "ETag" … in any case. NULL: it has none of this name. */
PE_API const char *pe_reply_header(const struct pe_reply *reply, const char *name);

/* Writes the next bytes of the body to dst, at most n, and returns how many; 0: the body has ended. They are computed
 * now, in memory that does not grow with the answer; where n is a megabyte or more and dst is aligned to 8 bytes,
 * without a copy. Less than 0: the work was cancelled (pe_watch), and no more bytes come. Nothing else can fail. */
PE_API ptrdiff_t pe_reply_read(struct pe_reply *reply, void *dst, size_t n);

PE_API void pe_reply_free(struct pe_reply *reply); /* NULL is accepted */

/* ---- Advanced: work that is cancelled, waiting threads ---------------------------------------------------------- */

/* From now on the calling thread calls is_gone(caller) now and then while it plans or fills. is_gone returns true when
 * the result is no longer wanted, and must not change its mind. Then planning fails with PE_CANCELLED, and filling
 * returns soon, with arbitrary bytes in dst. The plan stays valid for other threads. NULL, the default of each thread:
 * work is never cancelled. */
PE_API void pe_watch(bool (*is_gone)(void *caller), void *caller);
/* Has is_gone returned true since pe_watch? Then do not use the filled bytes. */
PE_API bool pe_was_cancelled(void);

/* A filling thread calls wait() repeatedly while it cannot continue before another thread that fills from the same
 * plan; that other thread may be inside is_gone(). For the whole process; false, and no change, after the first plan.
 * NULL, the default: the thread spins. */
PE_API bool pe_on_wait(void (*wait)(void));

/* ---- Advanced: the machine --------------------------------------------------------------------------------------- */

/* The instruction set of the inner loops. base is plain x86-64, or arm64 with NEON. */
enum pe_isa { PE_ISA_BASE = 0, PE_ISA_AVX2 = 1, PE_ISA_AVX512 = 2 };

PE_API enum pe_isa pe_isa(void); /* the one in use: the machine's best, unless pe_isa_use() chose another */
/* Chooses one for the whole process. False, and no change, if the machine lacks it, and after the first plan. */
PE_API bool pe_isa_use(enum pe_isa isa);
PE_API const char *pe_isa_name(enum pe_isa isa); /* "base", "avx2", "avx512" */

/* Makes the BLAS library use only the calling thread, for a program whose own threads fill in parallel. Before any of
 * them starts. */
PE_API void pe_gemm_setup(void);

#ifdef __cplusplus
}
#endif

#endif
