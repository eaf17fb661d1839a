/* Values of a GGUF file, once the walk of gguf.c has found that all their bytes were sent: what type they have, whether
 * llama.cpp reads a key as that type, and the value as a request would have it.
 *
 * A file states types and counts itself, so nothing here may be called before the walk has compared them with what was
 * sent. Numbers become doubles, which hold every u32 and f32; 64-bit integers above 2^53 are rounded, and no key that
 * is read is one. */
#include "api/inputs/inputs.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned char n_bytes; /* 0: of no fixed size */
} types[] = {{"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
             {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8}};

unsigned api_gguf_size(uint64_t type) { return types[type].n_bytes; }

uint64_t api_little_endian(const char *bytes, unsigned n)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < n; i++)
        x |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
    return x;
}

bool api_gguf_is_text(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + n;
    while (p < end) {
        unsigned more = *p < 0x80                 ? 0
                        : *p >= 0xc2 && *p < 0xe0 ? 1
                        : *p >= 0xe0 && *p < 0xf0 ? 2
                        : *p >= 0xf0 && *p < 0xf5 ? 3
                                                  : 4;
        if (more == 4 || (size_t)(end - p) <= more || *p == 0)
            return false;
        if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
            (*p == 0xf4 && p[1] > 0x8f))
            return false;
        for (unsigned i = 1; i <= more; i++)
            if ((p[i] & 0xc0) != 0x80)
                return false;
        p += 1 + more;
    }
    return true;
}

/* ---- The type that is read ---- */

static const struct {
    uint64_t type;
    bool is_array;
    unsigned bit;
} readable[] = {
    {API_GGUF_U32, false, PE_GGUF_U32},        {API_GGUF_F32, false, PE_GGUF_F32},
    {API_GGUF_BOOL, false, PE_GGUF_BOOL},      {API_GGUF_STRING, false, PE_GGUF_STRING},
    {API_GGUF_U32, true, PE_GGUF_ARRAY_U32},   {API_GGUF_I32, true, PE_GGUF_ARRAY_I32},
    {API_GGUF_BOOL, true, PE_GGUF_ARRAY_BOOL},
};

static void print_type(uint64_t type, bool is_array, char out[API_GGUF_TYPE_BYTES])
{
    snprintf(out, API_GGUF_TYPE_BYTES, "%s%s", types[type].name, is_array ? "[]" : "");
}

bool api_gguf_is_stored_as(const char *value, unsigned allowed, char is[API_GGUF_TYPE_BYTES],
                           char names[API_GGUF_TYPES_BYTES])
{
    uint64_t type = api_little_endian(value, 4);
    bool is_array = type == API_GGUF_ARRAY, fits = false;
    size_t used = 0;
    type = is_array ? api_little_endian(value + 4, 4) : type;
    print_type(type, is_array, is);
    names[0] = '\0';
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        char name[API_GGUF_TYPE_BYTES];
        if (!(allowed & readable[i].bit))
            continue;
        fits = fits || (readable[i].type == type && readable[i].is_array == is_array);
        print_type(readable[i].type, readable[i].is_array, name);
        used += (size_t)snprintf(names + used, API_GGUF_TYPES_BYTES - used, "%s%s", used ? ", " : "", name);
    }
    return fits;
}

/* ---- Values ---- */

static double real_at(const char *bytes, uint64_t type)
{
    uint64_t bits = api_little_endian(bytes, api_gguf_size(type));
    uint32_t low = (uint32_t)bits;
    float single;
    double x;
    switch (type) {
    case API_GGUF_F32: memcpy(&single, &low, sizeof single); return (double)single;
    case API_GGUF_F64: memcpy(&x, &bits, sizeof x); return x;
    case API_GGUF_I8: return (double)(int8_t)bits;
    case API_GGUF_I16: return (double)(int16_t)bits;
    case API_GGUF_I32: return (double)(int32_t)bits;
    case API_GGUF_I64: return (double)(int64_t)bits;
    default: return (double)bits;
    }
}

static struct pe_value scalar_at(const char *bytes, uint64_t type)
{
    if (type == API_GGUF_BOOL)
        return (struct pe_value){.kind = PE_BOOLEAN, .boolean = *bytes != 0};
    if (type == API_GGUF_U32)
        return (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)api_little_endian(bytes, 4)};
    return (struct pe_value){.kind = PE_REAL, .real = real_at(bytes, type)};
}

static bool array_at(struct api_arena *arena, const char *bytes, struct pe_value *value, struct api_problem *problem)
{
    uint64_t type = api_little_endian(bytes, 4), count = api_little_endian(bytes + 4, 8);
    *value = (struct pe_value){.kind = PE_NULL};
    if (type == API_GGUF_STRING) /* no key is one */
        return true;
    double *numbers = api_arena_array(arena, (size_t)count + 1, sizeof *numbers);
    if (!numbers)
        return api_fail_memory(problem);
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = real_at(bytes + 12 + i * api_gguf_size(type), type);
    struct pe_tensor array = {.dtype = PE_F64, .rank = 1, .shape = {count}, .data = numbers};
    *value = (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = array};
    return true;
}

bool api_gguf_value(struct api_arena *arena, const char *bytes, struct pe_value *value, struct api_problem *problem)
{
    uint64_t type = api_little_endian(bytes, 4);
    if (type == API_GGUF_ARRAY)
        return array_at(arena, bytes + 4, value, problem);
    if (type != API_GGUF_STRING) {
        *value = scalar_at(bytes + 4, type);
        return true;
    }
    *value = (struct pe_value){.kind = PE_STRING};
    value->string = api_arena_string(arena, bytes + 12, (size_t)api_little_endian(bytes + 4, 8));
    return value->string || api_fail_memory(problem);
}

/* ---- Tensors ---- */

bool api_gguf_needs(struct api_arena *arena, uint64_t first, uint64_t n_bytes, struct pe_value *value,
                    struct api_problem *problem)
{
    struct pe_field *needs = api_arena_array(arena, 1, sizeof *needs);
    struct pe_value *items = api_arena_array(arena, 2, sizeof *items);
    if (!needs || !items)
        return api_fail_memory(problem);
    items[0] = (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)first};
    items[1] = (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)(first + n_bytes - 1)};
    *needs = (struct pe_field){"needs", {.kind = PE_NULL}};
    if (n_bytes)
        needs->value = (struct pe_value){.kind = PE_LIST, .list = {items, 2}};
    *value = (struct pe_value){.kind = PE_OBJECT, .object = {needs, 1}};
    return true;
}

bool api_gguf_numbers(struct api_arena *arena, const char *bytes, uint64_t count, struct pe_value *value,
                      struct api_problem *problem)
{
    float *numbers = api_arena_array(arena, (size_t)count + 1, sizeof *numbers);
    if (!numbers)
        return api_fail_memory(problem);
    memcpy(numbers, bytes, (size_t)count * sizeof *numbers);
    struct pe_tensor array = {.dtype = PE_F32, .rank = 1, .shape = {count}, .data = numbers};
    *value = (struct pe_value){.kind = PE_ARRAY, .array = array};
    return true;
}
