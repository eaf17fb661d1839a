/* Prints a hash of some tables of every scheme and dtype, and of rotated tensors, by the instruction set named as
 * argument (default the best): what two machines print must be the same. Used by arm64_check.sh. */
#include "core/posenc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a */
static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}

/* Plans a request and hashes all it answers. */
static uint64_t add_answer(uint64_t hash, const struct pe_request *request)
{
    struct pe_plan *plan;
    struct pe_error err;
    if (pe_plan_new(request, &plan, &err)) {
        fprintf(stderr, "%s: %s\n", err.pointer, err.detail);
        exit(1);
    }
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
    pe_plan_free(plan);
    return hash;
}

static void print_scheme(const char *scheme, enum pe_dtype dtype)
{
    static const int64_t offsets[] = {0, -300, 1000000, 1099511627000};
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        struct pe_field fields[] = {{"scheme", {.kind = PE_STRING, .string = scheme}},
                                    {"len", {.kind = PE_INTEGER, .integer = 211}},
                                    {"offset", {.kind = PE_INTEGER, .integer = offsets[i]}}};
        hash = add_answer(hash, &(struct pe_request){.fields = fields, .n_fields = 3, .dtype = dtype});
    }
    printf("%s %s %016" PRIx64 "\n", scheme, pe_dtype_name(dtype), hash);
}

static void print_rotation(const char *scheme, enum pe_dtype dtype)
{
    enum { HEADS = 3, N = 50, D = 64 };
    static float q[HEADS * N * D];
    for (uint32_t i = 0; i < HEADS * N * D; i++)
        q[i] = (float)(i * 2654435761u >> 8) / 0x1p23f - 1;
    struct pe_field fields[] = {
        {"scheme", {.kind = PE_STRING, .string = scheme}},
        {"q", {.kind = PE_ARRAY, .array = {.dtype = PE_F32, .rank = 3, .shape = {HEADS, N, D}, .data = q}}}};
    struct pe_request request = {.operation = PE_ROTATE, .fields = fields, .n_fields = 2, .dtype = dtype};
    printf("%s rotated %s %016" PRIx64 "\n", scheme, pe_dtype_name(dtype), add_answer(0, &request));
}

int main(int argc, char **argv)
{
    for (enum pe_isa isa = PE_ISA_BASE; argc > 1 && isa < PE_N_ISAS; isa++)
        if (strcmp(argv[1], pe_isa_name(isa)) == 0 && !pe_isa_use(isa))
            return 1;
    for (size_t s = 0; s < pe_n_schemes(); s++)
        for (enum pe_dtype dtype = PE_F32; dtype <= PE_BF16; dtype++) {
            print_scheme(pe_scheme_at(s)->name, dtype);
            if (pe_scheme_at(s)->operations & 1U << PE_ROTATE)
                print_rotation(pe_scheme_at(s)->name, dtype);
        }
    return 0;
}
