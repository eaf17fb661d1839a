/* Time of the pieces of an answer, made one after the other into one buffer as a worker makes them, beside a physical
 * limit measured in the same rounds: memset or memcpy of as many bytes in blocks as large, memcpy of all that was sent
 * to memory as large, or the bare matrix product. Rows in place fill the very memory of the tensor that is rotated.
 * Thread CPU time, medians of interleaved rounds. Of rows whose operations are counted, the same rounds measure what
 * the units that multiply and add would take for so many (units.h): that share belongs to the code, the others to the
 * machine's memory too.
 *
 *   bench_answers                         every row: rate, time, and the limit's and the units' time as shares of it
 *   bench_answers ROW [ROUNDS]            "ours limit bytes units" of one, seconds and bytes; 0: no such limit
 *   bench_answers /PATH REQUEST ROUNDS    the same of any request, whose limit is 0
 *   bench_answers units THREADS           seconds of the clock of a fixed number of operations in each thread */
#include "api/api.h"
#include "core/numeric/numeric.h"
#include "tests/bench/bench.h"
#include "tests/bench/units.h"

#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum limit { LIMIT_NONE, LIMIT_MEMSET, LIMIT_MEMCPY, LIMIT_COPY, LIMIT_GEMM };

struct row {
    const char *name;
    enum limit limit;
    enum pe_isa isa; /* at most */
    const char *path, *request;
    size_t n_positions, n_heads,
        width;         /* of q and k that are sent with it, as f32 unless the name ends otherwise; 0: none */
    double operations; /* for one value; 0: not counted */
    bool of_floats;    /* not doubles */
};

#define BEST (PE_N_ISAS - 1)
#define TABLE "\"scheme\":\"sinusoidal\",\"dim\":128,\"offset\":1000000,\"format\":\"raw\""
#define RAW "\"format\":\"raw\"}"
#define HALF "{\"scheme\":\"rope\",\"layout\":\"half\"," RAW
#define NEIGHBOURS "{\"scheme\":\"rope\"," RAW

/* Products and sums, fused ones as one, and conversions, for one value. Of a table: the step to the next row, the
 * conversion, the difference from the middle between two floats; f16: the step, the conversion to f32, that to f16;
 * bf16, in floats: a product and two fused sums for two rows, and for each value a difference, and its square less the
 * bound. Of a list, where the two columns of a pair have their phase in common: eight for it and its square, eleven for
 * both polynomials, two conversions. Of a map, in floats: the products of its matrices, of which Transformer-XL's has
 * two; Shaw's and DeBERTa's tables have 129 and twice 512 rows beside 2048 keys. */
static const struct row rows[] = {
    {"table", LIMIT_MEMSET, BEST, "/encode", "{" TABLE ",\"len\":512}", 0, 0, 0, 3, false},
    {"table_avx2", LIMIT_MEMSET, PE_ISA_AVX2, "/encode", "{" TABLE ",\"len\":512}", 0, 0, 0, 3, false},
    {"table_base", LIMIT_MEMSET, PE_ISA_BASE, "/encode", "{" TABLE ",\"len\":512}", 0, 0, 0, 3, false},
    {"table_bf16", LIMIT_MEMSET, BEST, "/encode", "{" TABLE ",\"len\":512,\"dtype\":\"bf16\"}", 0, 0, 0, 3.5, true},
    {"table_f16", LIMIT_MEMSET, BEST, "/encode", "{" TABLE ",\"len\":512,\"dtype\":\"f16\"}", 0, 0, 0, 3, false},
    {"table_f64", LIMIT_MEMSET, BEST, "/encode", "{" TABLE ",\"len\":512,\"dtype\":\"f64\"}", 0, 0, 0, 0, false},
    {"list", LIMIT_MEMSET, BEST, "/encode",
     "{\"scheme\":\"sinusoidal\",\"dim\":128,\"format\":\"raw\",\"positions\":@}", 512, 0, 0, 10.5, false},
    {"alibi", LIMIT_MEMSET, BEST, "/encode",
     "{\"scheme\":\"alibi\",\"num_heads\":8,\"len\":1024,\"outputs\":[\"bias\"]," RAW, 0, 0, 0, 0, false},
    {"t5", LIMIT_MEMSET, BEST, "/encode",
     "{\"scheme\":\"t5\",\"num_heads\":8,\"len\":1024,\"seed\":0,\"outputs\":[\"bias\"]," RAW, 0, 0, 0, 0, false},
    {"rotate", LIMIT_COPY, BEST, "/rotate", HALF, 1024, 8, 128, 0, false},
    {"rotate_interleaved", LIMIT_COPY, BEST, "/rotate", NEIGHBOURS, 1024, 8, 128, 0, false},
    {"rotate_bf16", LIMIT_COPY, BEST, "/rotate", HALF, 1024, 8, 128, 0, false},
    {"rotate_f16", LIMIT_COPY, BEST, "/rotate", HALF, 1024, 8, 128, 0, false},
    {"rotate_32", LIMIT_COPY, BEST, "/rotate", HALF, 2048, 32, 128, 0, false},
    {"rotate_32_bf16", LIMIT_COPY, BEST, "/rotate", HALF, 2048, 32, 128, 0, false},
    {"rotate_in_place", LIMIT_COPY, BEST, NULL, "half", 1024, 8, 128, 0, false},
    {"rotate_in_place_interleaved", LIMIT_COPY, BEST, NULL, "interleaved", 1024, 8, 128, 0, false},
    {"probs", LIMIT_GEMM, BEST, "/attention", "{\"scheme\":\"alibi\"," RAW, 2048, 8, 64, 0, false},
    {"shaw", LIMIT_GEMM, BEST, "/attention", "{\"scheme\":\"shaw\",\"seed\":0,\"max_relative\":64," RAW, 2048, 8, 64,
     64 + 64 * 129 / 2048.0, true},
    {"transformer_xl", LIMIT_GEMM, BEST, "/attention", "{\"scheme\":\"transformer_xl\",\"seed\":0," RAW, 2048, 8, 64,
     64 + 64, true},
    {"deberta", LIMIT_GEMM, BEST, "/attention", "{\"scheme\":\"deberta\",\"seed\":0,\"position_buckets\":256," RAW,
     2048, 8, 64, 64 + 2 * 64 * 512 / 2048.0, true},
    {"json_map", LIMIT_MEMCPY, BEST, "/encode",
     "{\"scheme\":\"alibi\",\"num_heads\":8,\"len\":1024,\"outputs\":[\"bias\"]}", 0, 0, 0, 0, false},
};

enum { N_ROWS = sizeof rows / sizeof *rows, ROUNDS_MAX = 99 };

static enum pe_isa best; /* of this machine */

static const double least_seconds = 2e-3; /* of one sample: below this the clock counts for too much */

/* ---- The answer -------------------------------------------------------------------------------------------------- */

/* Aligned like tensors of a request. */
static float *noise(size_t n)
{
    float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)(state = state * 1664525u + 1013904223u) * 0x1p-31f;
    return x;
}

static enum pe_dtype sent_dtype(const struct row *row)
{
    const char *end = strrchr(row->name, '_');
    return !end ? PE_F32 : strcmp(end, "_bf16") == 0 ? PE_BF16 : strcmp(end, "_f16") == 0 ? PE_F16 : PE_F32;
}

/* Bytes of q, and of k. */
static size_t tensor_bytes(const struct row *row)
{
    return row->n_heads * row->n_positions * row->width * pe_dtype_size(sent_dtype(row));
}

static void *numbers(enum pe_dtype dtype, size_t n)
{
    float *wide = noise(n);
    void *as_sent = malloc(n * pe_dtype_size(dtype));
    pe_convert(dtype, as_sent, PE_F32, wide, n);
    free(wide);
    return as_sent;
}

/* q and k, [heads, n, width] each, as a safetensors file with the request inside. */
static char *tensors_body(const struct row *row, size_t *n_bytes)
{
    size_t size = tensor_bytes(row);
    enum pe_dtype sent = sent_dtype(row);
    const char *dtype = sent == PE_BF16 ? "BF16" : sent == PE_F16 ? "F16" : "F32";
    char header[1024], quoted[512], shape[64], *to = quoted;
    for (const char *p = row->request; *p; p++) {
        if (*p == '"')
            *to++ = '\\';
        *to++ = *p;
    }
    *to = '\0';
    snprintf(shape, sizeof shape, "[%zu,%zu,%zu]", row->n_heads, row->n_positions, row->width);
    uint64_t n = (uint64_t)snprintf(header, sizeof header,
                                    "{\"__metadata__\":{\"request\":\"%s\"},"
                                    "\"q\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%zu]},"
                                    "\"k\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}}",
                                    quoted, dtype, shape, size, dtype, shape, size, 2 * size);
    *n_bytes = 8 + (n + 7) / 8 * 8 + 2 * size;
    char *body = aligned_alloc(64, (*n_bytes + 63) / 64 * 64);
    memset(body, ' ', *n_bytes);
    uint64_t padded = (n + 7) / 8 * 8;
    memcpy(body, &padded, 8);
    memcpy(body + 8, header, n);
    void *x = numbers(sent, 2 * size / pe_dtype_size(sent));
    memcpy(body + 8 + padded, x, 2 * size);
    free(x);
    return body;
}

/* The request's @ as a list of positions in no order. */
static char *list_body(const struct row *row, size_t *n_bytes)
{
    const char *at = strchr(row->request, '@');
    size_t room = strlen(row->request) + row->n_positions * 8;
    char *body = malloc(room), *end = body + (at - row->request);
    memcpy(body, row->request, (size_t)(at - row->request));
    for (size_t i = 0; i < row->n_positions; i++)
        end += sprintf(end, "%c%zu", i ? ',' : '[', i * 7919 % 100003);
    end += sprintf(end, "]%s", at + 1);
    *n_bytes = (size_t)(end - body);
    return body;
}

static struct api_reply *ask(const struct row *row)
{
    static const struct api_host host = {.max_body = 1u << 30, .max_answer = 1ull << 40, .max_work = 1ull << 50};
    struct api_call call = {.method = "POST", .path = row->path, .query = ""};
    char *made = row->n_heads       ? tensors_body(row, &call.body_bytes)
                 : row->n_positions ? list_body(row, &call.body_bytes)
                                    : NULL;
    call.body = made ? made : row->request; /* lives as long as the reply, which is until the end */
    if (!made)
        call.body_bytes = strlen(row->request);
    if (row->n_heads)
        call.content_type = "application/vnd.safetensors";
    struct api_reply *reply = api_answer(&host, &call);
    if (reply->status != 200) {
        char *piece = malloc(reply->body->piece_max + 1);
        piece[api_reply_piece(reply, 0, piece)] = '\0';
        fprintf(stderr, "%s: %d %s\n", row->name, reply->status, piece);
        exit(1);
    }
    return reply;
}

/* A tensor and the plan that rotates it. */
static struct pe_plan *plan_in_place(const struct row *row, float **q)
{
    *q = noise(row->n_heads * row->n_positions * row->width);
    struct pe_tensor tensor = {PE_F32, 3, {row->n_heads, row->n_positions, row->width}, *q};
    struct pe_field fields[] = {{"scheme", {.kind = PE_STRING, .string = "rope"}},
                                {"layout", {.kind = PE_STRING, .string = row->request}},
                                {"q", {.kind = PE_ARRAY, .array = tensor}}};
    struct pe_request request = {.operation = PE_ROTATE, .fields = fields, .n_fields = 3};
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    if (pe_plan_new(&request, &plan, &err)) {
        fprintf(stderr, "%s: %s %s\n", row->name, err.pointer, err.detail);
        exit(1);
    }
    return plan;
}

/* What is measured: a reply, or a plan whose answer goes to the tensor it is made from. */
struct answer {
    struct api_reply *reply;
    char *piece;
    struct pe_plan *plan;
    float *q;
    size_t n; /* elements of q */
};

static struct answer answer_new(const struct row *row)
{
    struct answer a = {.n = row->n_heads * row->n_positions * row->width};
    if (!row->path) {
        a.plan = plan_in_place(row, &a.q);
        return a;
    }
    a.reply = ask(row);
    a.piece = aligned_alloc(64, (a.reply->body->piece_max + 63) / 64 * 64);
    return a;
}

static void answer_drop(struct answer *a)
{
    if (a->reply)
        api_reply_free(a->reply);
    pe_plan_free(a->plan);
    free(a->piece);
    free(a->q);
}

static uint64_t make_all(const struct answer *a)
{
    if (a->plan) {
        pe_fill(a->plan, 0, 0, a->n, a->q);
        return a->n * sizeof *a->q;
    }
    uint64_t n = 0;
    for (uint64_t i = 0; i < a->reply->body->n_pieces; i++)
        n += api_reply_piece(a->reply, i, a->piece);
    return n;
}

/* ---- The limits -------------------------------------------------------------------------------------------------- */

struct limits {
    const struct row *row;
    uint64_t n_bytes;
    size_t n_block;      /* as long as a piece, which each is written over the one before; LIMIT_COPY's: n_bytes */
    char *block, *other; /* of n_block bytes */
    float *q, *k, *scores;
};

static struct limits limits_new(const struct row *row, uint64_t n_bytes, const struct answer *answer)
{
    struct limits l = {.row = row, .n_bytes = n_bytes};
    size_t room = (size_t)n_bytes;
    if (row->limit != LIMIT_COPY && answer->reply && answer->reply->body->piece_max < room)
        room = answer->reply->body->piece_max;
    l.n_block = room;
    l.block = aligned_alloc(64, (room + 63) / 64 * 64);
    l.other = aligned_alloc(64, (room + 63) / 64 * 64);
    memset(l.block, 1, room);
    memset(l.other, 1, room);
    if (row->limit == LIMIT_GEMM) {
        l.q = noise(row->n_positions * row->width);
        l.k = noise(row->n_positions * row->width);
        l.scores = malloc(row->n_positions * row->n_positions * sizeof(float));
    }
    return l;
}

/* Q times K transposed for every head, in blocks of 128 rows, all into the same rows. */
static void multiply(const struct limits *l)
{
    int n = (int)l->row->n_positions, d = (int)l->row->width, block = 128;
    for (size_t head = 0; head < l->row->n_heads; head++)
        for (int row = 0; row < n; row += block)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, block, n, d, 1, l->q + (size_t)row * (size_t)d, d,
                        l->k, d, 0, l->scores, n);
}

static void reach(const struct limits *l, int byte)
{
    if (l->row->limit == LIMIT_GEMM) {
        multiply(l);
        return;
    }
    if (l->row->limit == LIMIT_COPY) {
        memcpy(l->block, l->other, (size_t)l->n_bytes);
        __asm__ volatile("" ::"r"(l->block) : "memory");
        return;
    }
    for (uint64_t done = 0; done < l->n_bytes; done += l->n_block) {
        size_t n = l->n_bytes - done < l->n_block ? (size_t)(l->n_bytes - done) : l->n_block;
        if (l->row->limit == LIMIT_MEMSET)
            memset(l->block, byte, n);
        else
            memcpy(l->block, l->other, n);
        __asm__ volatile("" ::"r"(l->block) : "memory");
    }
}

/* ---- Rounds ------------------------------------------------------------------------------------------------------ */

struct result {
    double ours, limit, units;
    uint64_t n_bytes;
};

/* Seconds in which the units do what a row's values take, by some milliseconds of such operations; 0: not counted. */
static double units_seconds(const struct row *row, uint64_t n_bytes)
{
    const double sample = 1e7, n_values = (double)n_bytes / (double)pe_dtype_size(sent_dtype(row));
    double begun = seconds();
    if (row->operations <= 0)
        return 0;
    units_work(pe_isa(), row->of_floats, sample);
    return (seconds() - begun) / sample * row->operations * n_values;
}

static struct result measure(const struct row *row, size_t n_rounds)
{
    pe_kernels_use(row->isa < best ? row->isa : best);
    double ours[ROUNDS_MAX], limit[ROUNDS_MAX], units[ROUNDS_MAX];
    struct answer answer = answer_new(row);
    uint64_t n_bytes = make_all(&answer);
    struct limits limits = limits_new(row, n_bytes, &answer);
    double begun = seconds();
    make_all(&answer);
    size_t repeat = (size_t)(least_seconds / (seconds() - begun + 1e-9)) + 1;
    for (size_t i = 0; i < n_rounds; i++) {
        begun = seconds();
        for (size_t r = 0; r < repeat; r++)
            make_all(&answer);
        ours[i] = (seconds() - begun) / (double)repeat;
        begun = seconds();
        for (size_t r = 0; row->limit && r < repeat; r++)
            reach(&limits, (int)i + 1);
        limit[i] = (seconds() - begun) / (double)repeat;
        units[i] = units_seconds(row, n_bytes);
    }
    struct result result = {median(ours, n_rounds), row->limit ? median(limit, n_rounds) : 0, median(units, n_rounds),
                            n_bytes};
    answer_drop(&answer);
    return result;
}

static void print_result(const struct row *row, size_t n_rounds)
{
    struct result r = measure(row, n_rounds);
    printf("%.9g %.9g %llu %.9g\n", r.ours, r.limit, (unsigned long long)r.n_bytes, r.units);
}

static void print_row(const struct row *row)
{
    struct result r = measure(row, 9);
    printf("%-27s %8.2f GB/s %10.1f us", row->name, (double)r.n_bytes / r.ours / 1e9, r.ours * 1e6);
    if (row->limit)
        printf(", limit/ours %.3f", r.limit / r.ours);
    printf(r.units > 0 ? ", units/ours %.3f\n" : "\n", r.units / r.ours);
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static void *work_alone(void *unused)
{
    units_work(best, false, 1e9);
    return unused;
}

/* Several threads begin together; the last one to end counts. */
static void print_threads(size_t n)
{
    enum { THREADS_MAX = 64 };
    pthread_t threads[THREADS_MAX];
    struct timespec begun, ended;
    n = n < THREADS_MAX ? n : THREADS_MAX;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (size_t i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, work_alone, NULL))
            exit(1);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%.9g\n", (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec));
}

int main(int argc, char **argv)
{
    bool is_request = argc == 4 && argv[1][0] == '/';
    size_t n_rounds = argc > 2 ? strtoul(argv[argc - 1], NULL, 10) : 9;
    pe_gemm_setup();
    const char *kernels = getenv("POSENC_KERNELS"); /* as the server reads it */
    for (enum pe_isa isa = PE_ISA_BASE; kernels && isa < PE_N_ISAS; isa++)
        if (strcmp(kernels, pe_isa_name(isa)) == 0 && !pe_kernels_use(isa))
            return 1;
    best = pe_isa();
    if (n_rounds < 1 || n_rounds > ROUNDS_MAX)
        return 1;
    if (is_request) {
        print_result(&(struct row){.name = argv[1], .isa = BEST, .path = argv[1], .request = argv[2]}, n_rounds);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "units") == 0) {
        print_threads(n_rounds);
        return 0;
    }
    for (size_t i = 0; i < N_ROWS; i++) {
        if (argc < 2) {
            print_row(&rows[i]);
        } else if (strcmp(argv[1], rows[i].name) == 0) {
            print_result(&rows[i], n_rounds);
            return 0;
        }
    }
    return argc > 1;
}
