/* Prints a hash of some tables of every scheme and dtype, and of rotated tensors; two machines must print the same.
 * `hashes 1 3` prints the second of three shares of the lines. Used by arm64_check.sh. */
#include "core/inside.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* FNV-1a */
static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}

static uint64_t add_outputs(uint64_t hash, const struct pe_plan *plan)
{
    for (size_t i = 0; i < pe_plan_n_outputs(plan); i++) {
        const struct pe_output *output = pe_plan_output(plan, i);
        size_t n = (size_t)(output->n_rows * output->row_len), size = n * pe_dtype_size(output->dtype);
        void *values = malloc(size);
        if (!values)
            exit(1);
        pe_fill(plan, i, 0, n, values);
        hash = add_bytes(hash, values, size);
        free(values);
    }
    return hash;
}

/* Plans a request and hashes its whole answer; 0 if the request is refused. */
static uint64_t answer(uint64_t hash, const struct pe_request *request)
{
    struct pe_plan *plan;
    struct pe_failure err;
    if (pe_plan_new(request, &plan, &err))
        return 0;
    hash = add_outputs(hash, plan);
    pe_plan_free(plan);
    return hash;
}

#define TEXT(name, s)                                                                                                  \
    {                                                                                                                  \
        name, { .kind = PE_STRING, .string = s }                                                                       \
    }
#define INTEGER(name, i)                                                                                               \
    {                                                                                                                  \
        name, { .kind = PE_INTEGER, .integer = i }                                                                     \
    }
#define LIST(name, n, values)                                                                                          \
    {                                                                                                                  \
        name,                                                                                                          \
        {                                                                                                              \
            .kind = PE_ARRAY, .array = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = values }                     \
        }                                                                                                              \
    }

enum { BASIS = 2 };

static unsigned long share = 0, n_shares = 1, n_lines = 0;

/* Is the next line in this process' share? */
static bool is_ours(void) { return n_lines++ % n_shares == share; }

/* Far, negative and fractional positions if the scheme accepts them; seeded weights if it needs weights. */
static void print_scheme(const char *scheme, enum pe_dtype dtype)
{
    static const int64_t offsets[] = {0, -300, 1000000, 1099511627000};
    uint64_t hash = BASIS;
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        struct pe_field fields[] = {TEXT("scheme", scheme), INTEGER("len", 211), INTEGER("offset", offsets[i]),
                                    INTEGER("seed", 1)};
        for (size_t n = 3; n <= 4; n++) {
            uint64_t next = answer(hash, &(struct pe_request){.fields = fields, .n_fields = n, .dtype = dtype});
            hash = next ? next : hash;
        }
    }
    printf("%s %s %016" PRIx64 "\n", scheme, pe_dtype_name(dtype), hash);
}

/* Enough rows for blocks around anchors by every dtype's method (core/waves/run_bf16.c). */
static void print_long(const char *scheme, enum pe_dtype dtype)
{
    struct pe_field fields[] = {TEXT("scheme", scheme), INTEGER("len", 1200), INTEGER("offset", 123456789)};
    uint64_t hash = answer(BASIS, &(struct pe_request){.fields = fields, .n_fields = 3, .dtype = dtype});
    printf("%s long %s %016" PRIx64 "\n", scheme, pe_dtype_name(dtype), hash);
}

/* More heads than one group rotated together, and pairs that do not fill a whole number of registers. */
static void print_rotation(const char *scheme, enum pe_dtype dtype)
{
    enum { HEADS = 6, N = 80, D = 44 };
    static const char *const layouts[] = {"interleaved", "half"};
    static float q[HEADS * N * D];
    uint64_t hash = BASIS;
    for (uint32_t i = 0; i < HEADS * N * D; i++)
        q[i] = (float)(i * 2654435761u >> 8) / 0x1p23f - 1;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        struct pe_field fields[] = {
            TEXT("scheme", scheme),
            TEXT("layout", layouts[i]),
            {"q", {.kind = PE_ARRAY, .array = {.dtype = PE_F32, .rank = 3, .shape = {HEADS, N, D}, .data = q}}}};
        hash =
            answer(hash, &(struct pe_request){.operation = PE_ROTATE, .fields = fields, .n_fields = 3, .dtype = dtype});
    }
    printf("%s rotated %s %016" PRIx64 "\n", scheme, pe_dtype_name(dtype), hash);
}

/* Every model on each sequence that it accepts: a run, fractions, a window of two axes, a clip of three. */
static void print_preset(const char *name)
{
    static const double places[] = {0.25, 7, 100000.5}, window[] = {6, 10}, clip[] = {2, 4, 6};
    const struct pe_field sequences[] = {INTEGER("len", 77), LIST("positions", 3, places), LIST("grid", 2, window),
                                         LIST("grid", 3, clip)};
    uint64_t hash = BASIS;
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
        for (size_t n = 2; n <= 3; n++) {
            struct pe_field fields[] = {TEXT("preset", name), sequences[i], INTEGER("seed", 1)};
            uint64_t next = answer(hash, &(struct pe_request){.fields = fields, .n_fields = n, .dtype = PE_F32});
            hash = next ? next : hash;
        }
    printf("%s %016" PRIx64 "\n", name, hash);
    if (hash == BASIS) {
        fprintf(stderr, "%s answers none of the sequences\n", name);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        share = strtoul(argv[1], NULL, 10);
        n_shares = strtoul(argv[2], NULL, 10);
    }
    for (size_t s = 0; s < pe_n_schemes(); s++)
        for (enum pe_dtype dtype = PE_F32; dtype <= PE_BF16; dtype++) {
            if (is_ours())
                print_scheme(pe_scheme_at(s)->name, dtype);
            if (pe_scheme_can(pe_scheme_at(s), PE_ROTATE) && is_ours())
                print_rotation(pe_scheme_at(s)->name, dtype);
        }
    for (size_t i = 0; i < pe_n_presets(); i++)
        if (is_ours())
            print_preset(pe_preset_at(i)->name);
    static const char *const waves[] = {"sinusoidal", "rope"};
    for (size_t i = 0; i < sizeof waves / sizeof *waves; i++)
        for (enum pe_dtype dtype = PE_F32; dtype <= PE_BF16; dtype++)
            if (is_ours())
                print_long(waves[i], dtype);
    return 0;
}
