/* The head of a GGUF file (versions 2 and 3, little-endian): header, keys, table of tensors.
 *
 *     "GGUF", u32 version, u64 number of tensors, u64 number of keys
 *     a key: string, u32 type, value;  a string: u64 length, bytes;  an array: u32 type, u64 count, elements
 *     a tensor: string, u32 number of dimensions, u64 each, u32 type, u64 offset
 *     padding to the alignment; data of the tensors, whose offsets count from here
 *
 * The problem: a file has thousands of tokens and merges among some twenty keys about positions, its head may be sent
 * cut, and it may lie about every count and length. The idea: one walk with a cursor, which compares each length with
 * the bytes that are left before it moves, and never allocates by a count of the file. What is about positions is
 * remembered by its place (16 bytes a key, at most 65536 keys); values are converted once the architecture is known,
 * some hundred at most. An array of strings is walked length by length, so the time is that of the head; long loops ask
 * whether the client has disconnected, where a worker also ends its turn. A head that is cut behind its keys is
 * answered, unless the tensors that are missing divide the frequencies: then the refusal states their bytes. */
#include "api/inputs/inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS_MAX = 65536,
    TENSORS_MAX = 1048576,
    KEY_BYTES_MAX = 65535,
    STRING_MAX = 1024,    /* bytes of a string that is kept */
    ELEMENTS_MAX = 65536, /* of an array that is kept, and of a tensor */
    OTHERS_MAX = 64,      /* keys without effect that an answer names */
    FIELDS_MAX = 256,     /* all keys of the table, others, the architecture and tensors */
    TENSORS = 3,
    DIMENSIONS_MAX = 4
};

/* A key about positions: where it begins in the body. */
struct kept {
    const char *name;
    uint32_t n, hash;
};

struct found {
    bool is_there;
    uint64_t count, offset; /* offset: within the data */
};

struct head {
    struct api_arena *arena;
    const char *bytes;
    size_t n, at;
    const char *item; /* being read, of n_item bytes; NULL: the header */
    size_t n_item;
    struct kept *kept;
    size_t n_kept;
    uint32_t alignment;
    uint64_t n_keys, n_tensors;
    struct found tensors[TENSORS];
    bool is_cut; /* in the table of tensors */
    const char *pointer;
    struct api_problem *problem;
};

/* ---- The cursor ---- */

static bool fail(struct head *h, const char *what)
{
    return api_fail(h->problem, 400, h->pointer, "not a GGUF file that can be read: %s", pe_text(what));
}

/* About a key or tensor by name. */
static bool fail_item(struct head *h, const char *what)
{
    return api_fail(h->problem, 400, h->pointer, "the GGUF file cannot be read: \"%.*s\" %s",
                    (int)(h->n_item < 64 ? h->n_item : 64), h->item, pe_text(what));
}

static bool fail_cut(struct head *h, uint64_t needed)
{
    if (!h->item)
        return api_fail(h->problem, 400, h->pointer,
                        "the GGUF file ends at byte %zu inside its header; at least %" PRIu64 " more are needed", h->n,
                        needed - (h->n - h->at));
    return api_fail(h->problem, 400, h->pointer,
                    "the GGUF file ends at byte %zu inside \"%.*s\"; at least %" PRIu64 " more are needed", h->n,
                    (int)(h->n_item < 64 ? h->n_item : 64), h->item, needed - (h->n - h->at));
}

static bool has(const struct head *h, uint64_t n) { return n <= h->n - h->at; }

static bool need(struct head *h, uint64_t n) { return has(h, n) || fail_cut(h, n); }

static uint64_t read_number(struct head *h, unsigned n)
{
    uint64_t x = api_little_endian(h->bytes + h->at, n);
    h->at += n;
    return x;
}

static bool is_word(const char *name, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(name, word, n) == 0;
}

/* ---- Keys ---- */

static const char architecture[] = "general.architecture", alignment[] = "general.alignment";

/* The row of a key, whatever the architecture before its first dot is; NULL: there is none. */
static const struct pe_gguf_key *row_of(const char *name, size_t n)
{
    char behind[64];
    const char *dot = memchr(name, '.', n);
    size_t rest = dot ? n - (size_t)(dot + 1 - name) : sizeof behind;
    if (rest >= sizeof behind)
        return NULL;
    memcpy(behind, dot + 1, rest);
    behind[rest] = '\0';
    return pe_gguf_key_find(behind);
}

/* Is it about positions, whatever the architecture? */
static bool is_wanted(const char *name, size_t n)
{
    if (is_word(name, n, architecture) || is_word(name, n, alignment) || row_of(name, n))
        return true;
    const char *dot = memchr(name, '.', n);
    return dot && n - (size_t)(dot + 1 - name) > 5 && memcmp(dot + 1, "rope.", 5) == 0;
}

/* The client has disconnected, so this refusal is not sent. */
static bool is_left_at(struct head *h, uint64_t step) { return pe_is_cancelled_at(step) && !fail_cut(h, UINT64_MAX); }

static bool check_booleans(struct head *h, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if ((unsigned char)h->bytes[h->at + i] > 1)
            return fail_item(h, "has a boolean other than 0 and 1");
    return true;
}

static bool skip_array(struct head *h, bool is_kept)
{
    if (!need(h, 12))
        return false;
    uint64_t type = read_number(h, 4), count = read_number(h, 8);
    if (type >= API_GGUF_N_TYPES)
        return fail_item(h, "has a type above 12");
    if (type == API_GGUF_ARRAY)
        return fail_item(h, "is an array of arrays");
    if (type == API_GGUF_STRING) {
        if (!need(h, count > UINT64_MAX / 8 ? UINT64_MAX : 8 * count))
            return false;
        for (uint64_t i = 0; i < count; i++) {
            if (!need(h, 8) || is_left_at(h, i))
                return false;
            uint64_t n = read_number(h, 8);
            if (!need(h, n))
                return false;
            h->at += (size_t)n;
        }
        return true;
    }
    if (!need(h, count > UINT64_MAX / 8 ? UINT64_MAX : count * api_gguf_size(type)))
        return false;
    if (is_kept && count > ELEMENTS_MAX)
        return fail_item(h, "has more than 65536 elements");
    if (type == API_GGUF_BOOL && is_kept && !check_booleans(h, count))
        return false;
    h->at += (size_t)(count * api_gguf_size(type));
    return true;
}

static bool skip_string(struct head *h, bool is_kept)
{
    if (!need(h, 8))
        return false;
    uint64_t n = read_number(h, 8);
    if (!need(h, n))
        return false;
    if (is_kept && n > STRING_MAX)
        return fail_item(h, "is a string of more than 1024 bytes");
    if (is_kept && !api_gguf_is_text(h->bytes + h->at, (size_t)n))
        return fail_item(h, "is a string that is not UTF-8");
    h->at += (size_t)n;
    return true;
}

static uint32_t hash_of(const char *name, size_t n)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619U;
    return hash;
}

static bool walk_key(struct head *h)
{
    if (!need(h, 8))
        return false;
    uint64_t n = read_number(h, 8);
    if (!need(h, n))
        return false;
    const char *name = h->bytes + h->at;
    h->at += (size_t)n;
    h->item = name;
    h->n_item = (size_t)n;
    if (n == 0 || n > KEY_BYTES_MAX)
        return fail(h, n ? "a key has more than 65535 bytes" : "a key is empty");
    bool is_kept = is_wanted(name, (size_t)n);
    if (is_kept && !api_gguf_is_text(name, (size_t)n))
        return fail(h, "a key is not UTF-8");
    if (is_kept)
        h->kept[h->n_kept++] = (struct kept){name, (uint32_t)n, hash_of(name, (size_t)n)};
    if (!need(h, 4))
        return false;
    uint64_t type = read_number(h, 4);
    if (type >= API_GGUF_N_TYPES)
        return fail_item(h, "has a type above 12");
    if (type == API_GGUF_STRING)
        return skip_string(h, is_kept);
    if (type == API_GGUF_ARRAY)
        return skip_array(h, is_kept);
    if (!need(h, api_gguf_size(type)) || (type == API_GGUF_BOOL && !check_booleans(h, 1)))
        return false;
    h->at += api_gguf_size(type);
    return true;
}

static int by_name(const void *left, const void *right)
{
    const struct kept *a = left, *b = right;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->n != b->n ? (a->n < b->n ? -1 : 1) : memcmp(a->name, b->name, a->n);
}

static int by_place(const void *left, const void *right)
{
    const struct kept *a = left, *b = right;
    return (a->name > b->name) - (a->name < b->name);
}

static bool walk_keys(struct head *h)
{
    enum { KEY_BYTES_MIN = 8 + 1 + 4 + 1 };
    uint64_t most = (h->n - h->at) / KEY_BYTES_MIN + 1;
    h->kept = api_arena_array(h->arena, (size_t)(h->n_keys < most ? h->n_keys : most) + 1, sizeof *h->kept);
    if (!h->kept)
        return api_fail_memory(h->problem);
    for (uint64_t i = 0; i < h->n_keys; i++)
        if (!walk_key(h))
            return false;
    qsort(h->kept, h->n_kept, sizeof *h->kept, by_name);
    for (size_t i = 1; i < h->n_kept; i++)
        if (by_name(&h->kept[i - 1], &h->kept[i]) == 0) {
            h->item = h->kept[i].name;
            h->n_item = h->kept[i].n;
            return fail_item(h, "is there twice");
        }
    qsort(h->kept, h->n_kept, sizeof *h->kept, by_place);
    return true;
}

static const struct kept *find_key(const struct head *h, const char *name)
{
    for (size_t i = 0; i < h->n_kept; i++)
        if (is_word(h->kept[i].name, h->kept[i].n, name))
            return &h->kept[i];
    return NULL;
}

static bool read_alignment(struct head *h)
{
    const struct kept *key = find_key(h, alignment);
    h->alignment = 32;
    if (!key)
        return true;
    const char *value = key->name + key->n;
    h->item = key->name;
    h->n_item = key->n;
    if (api_little_endian(value, 4) != API_GGUF_U32)
        return fail_item(h, "is not a u32");
    h->alignment = (uint32_t)api_little_endian(value + 4, 4);
    bool is_power = h->alignment && !(h->alignment & (h->alignment - 1));
    return is_power || fail_item(h, "is no power of two");
}

/* ---- The header ---- */

static bool read_header(struct head *h)
{
    if (h->n < 4 || memcmp(h->bytes, "GGUF", 4) != 0)
        return fail(h, "it does not begin with GGUF");
    h->at = 4;
    if (!need(h, 20))
        return false;
    uint64_t version = read_number(h, 4);
    h->n_tensors = read_number(h, 8);
    h->n_keys = read_number(h, 8);
    if (version && (version & 0xffff) == 0)
        return fail(h, "it was written big-endian; convert it on a little-endian machine");
    if (version == 1)
        return fail(h, "version 1 has 32-bit lengths; convert it again");
    if (version != 2 && version != 3)
        return api_fail(h->problem, 400, h->pointer, "the GGUF file has version %" PRIu64 "; allowed: 2 and 3",
                        version);
    if (h->n_keys > KEYS_MAX)
        return fail(h, "it has more than 65536 keys");
    return h->n_tensors <= TENSORS_MAX || fail(h, "it has more than 1048576 tensors");
}

/* ---- The table of tensors ---- */

static int tensor_of(const char *name, size_t n)
{
    static const char block[] = "blk.0.";
    size_t skip = n > strlen(block) && memcmp(name, block, strlen(block)) == 0 ? strlen(block) : 0;
    for (int i = 0; i < TENSORS; i++)
        if (is_word(name + skip, n - skip, pe_gguf_tensor_names[i]))
            return i;
    return -1;
}

static bool fail_tensor(struct head *h, int i, const char *what)
{
    char pointer[PE_POINTER_MAX];
    snprintf(pointer, sizeof pointer, "%s", h->pointer);
    api_pointer_push(pointer, "tensors", 7);
    return api_fail_at(h->problem, 422, pointer, pe_gguf_tensor_names[i], "%s %s", pe_gguf_tensor_names[i],
                       pe_text(what));
}

/* False also where it is cut, which is no failure: h->is_cut. */
static bool walk_tensor(struct head *h)
{
    uint64_t count = 1;
    h->is_cut = !has(h, 8);
    uint64_t n = h->is_cut ? 0 : read_number(h, 8);
    h->is_cut = h->is_cut || n > h->n - h->at || h->n - h->at - n < 4;
    if (h->is_cut)
        return false;
    h->item = h->bytes + h->at;
    h->n_item = (size_t)n;
    h->at += (size_t)n;
    uint64_t n_dimensions = read_number(h, 4);
    if (n_dimensions > DIMENSIONS_MAX)
        return fail_item(h, "has more than 4 dimensions");
    h->is_cut = !has(h, 8 * n_dimensions + 12);
    if (h->is_cut)
        return false;
    for (uint64_t d = 0; d < n_dimensions; d++)
        count = read_number(h, 8);
    uint64_t type = read_number(h, 4), offset = read_number(h, 8);
    int i = tensor_of(h->item, h->n_item);
    if (i < 0)
        return true;
    struct found *found = &h->tensors[i];
    if (found->is_there)
        return fail_item(h, "is there twice");
    if (n_dimensions != 1)
        return fail_tensor(h, i, "has not one dimension");
    if (type != 0)
        return fail_tensor(h, i, "is not stored as f32");
    if (count > ELEMENTS_MAX)
        return fail_tensor(h, i, "has more than 65536 numbers");
    *found = (struct found){true, count, offset};
    return true;
}

static bool walk_tensors(struct head *h)
{
    for (uint64_t i = 0; i < h->n_tensors; i++) {
        if (is_left_at(h, i))
            return false;
        if (!walk_tensor(h))
            return h->is_cut;
    }
    return true;
}

/* ---- The fields of the answer ---- */

static bool check_type(struct head *h, const struct kept *key, unsigned stored)
{
    char pointer[PE_POINTER_MAX], type[API_GGUF_TYPE_BYTES], allowed[API_GGUF_TYPES_BYTES];
    if (api_gguf_is_stored_as(key->name + key->n, stored, type, allowed))
        return true;
    snprintf(pointer, sizeof pointer, "%s", h->pointer);
    api_pointer_push(pointer, key->name, key->n);
    return api_fail(h->problem, 422, pointer, "%.*s is stored as %s; llama.cpp reads %s and refuses the file",
                    (int)key->n, key->name, type, allowed);
}

static bool add_field(struct head *h, const struct kept *key, struct pe_field *fields, size_t *n)
{
    struct pe_field *field = &fields[*n];
    field->name = api_arena_string(h->arena, key->name, key->n);
    if (!field->name)
        return api_fail_memory(h->problem);
    ++*n;
    return api_gguf_value(h->arena, key->name + key->n, &field->value, h->problem);
}

/* The keys of the architecture with their values, and some others, which the answer names as without effect. */
static bool add_keys(struct head *h, struct pe_field *fields, size_t *n)
{
    const struct kept *named = find_key(h, architecture);
    size_t n_others = 0;
    if (!named)
        return true;
    if (!check_type(h, named, PE_GGUF_STRING) || !add_field(h, named, fields, n))
        return false;
    const char *prefix = fields[0].value.string;
    size_t n_prefix = strlen(prefix);
    for (size_t i = 0; i < h->n_kept; i++) {
        const struct kept *key = &h->kept[i];
        bool is_own = key->n > n_prefix && memcmp(key->name, prefix, n_prefix) == 0 && key->name[n_prefix] == '.' &&
                      memchr(key->name, '.', key->n) == key->name + n_prefix;
        const struct pe_gguf_key *row = is_own ? row_of(key->name, key->n) : NULL;
        bool is_of_file = is_word(key->name, key->n, architecture) || is_word(key->name, key->n, alignment);
        if (is_of_file || (!row && n_others++ >= OTHERS_MAX))
            continue;
        if ((row && !check_type(h, key, row->stored)) || !add_field(h, key, fields, n))
            return false;
    }
    return true;
}

/* The tensor's numbers, or the bytes of the file that were not sent. */
static bool put_tensor(struct head *h, const struct found *found, uint64_t start, struct pe_value *value)
{
    uint64_t first = start + found->offset, bytes = 4 * found->count;
    bool is_placed = found->is_there && !h->is_cut && found->offset <= UINT64_C(1) << 62;
    if (is_placed && first <= h->n && bytes <= h->n - first)
        return api_gguf_numbers(h->arena, h->bytes + first, found->count, value, h->problem);
    return api_gguf_needs(h->arena, first, is_placed ? bytes : 0, value, h->problem);
}

static bool add_tensors(struct head *h, struct pe_field *fields, size_t *n)
{
    struct pe_field *members = api_arena_array(h->arena, TENSORS, sizeof *members);
    uint64_t start = ((uint64_t)h->at + h->alignment - 1) / h->alignment * h->alignment;
    size_t n_members = 0;
    if (!members)
        return api_fail_memory(h->problem);
    for (int i = 0; i < TENSORS; i++) {
        const struct found *found = &h->tensors[i];
        if (!found->is_there && !h->is_cut)
            continue;
        struct pe_field *member = &members[n_members++];
        member->name = pe_gguf_tensor_names[i];
        if (!put_tensor(h, found, start, &member->value))
            return false;
    }
    fields[(*n)++] = (struct pe_field){"tensors", {.kind = PE_OBJECT, .object = {members, n_members}}};
    return true;
}

bool api_gguf_parse(struct api_arena *arena, const char *bytes, size_t n, const char *pointer, struct pe_value *value,
                    struct api_problem *problem)
{
    struct head h = {.arena = arena, .bytes = bytes, .n = n, .pointer = pointer, .problem = problem};
    size_t n_fields = 0;
    if (!read_header(&h) || !walk_keys(&h) || !read_alignment(&h) || !walk_tensors(&h))
        return false;
    struct pe_field *fields = api_arena_array(arena, FIELDS_MAX, sizeof *fields);
    if (!fields)
        return api_fail_memory(problem);
    if (!add_keys(&h, fields, &n_fields) || !add_tensors(&h, fields, &n_fields))
        return false;
    *value = (struct pe_value){.kind = PE_OBJECT, .object = {fields, n_fields}};
    return true;
}

/* A body of one file: the rest of the request is in the query. */
bool api_gguf_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    struct pe_value value;
    return api_gguf_parse(&request->arena, body->bytes, body->n, "/gguf", &value, problem) &&
           api_request_add(request, "gguf", &value, problem);
}
