/* NumPy's .npz files as np.savez writes them: a zip archive (PKWARE APPNOTE 6.3.10) of NAME.npy, stored. The directory
 * at the end lists the place of every entry, and is checked against the local headers; the request is in the query. */
#include "api/inputs/inputs.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum {
    END_BYTES = 22,
    END_COMMENT_MAX = 65535,
    CENTRAL_BYTES = 46,
    LOCAL_BYTES = 30,
    FLAG_ENCRYPTED = 1,
    METHOD_STORED = 0,
};

/* A field with this value has its real value in the zip64 extra field. */
#define ZIP64_MARK UINT32_MAX

struct entry {
    const char *name; /* of the tensor, in the arena */
    const char *bytes;
    size_t n, crc;
    size_t begin, end; /* of header and data within the body */
};

struct archive {
    const char *bytes; /* borrowed */
    size_t n;
    size_t directory, directory_end; /* within the body */
    size_t n_entries;
    struct entry entries[API_PARTS_MAX];
    struct api_problem *problem;
};

static bool fail_archive(const struct archive *a, const char *what)
{
    return api_fail(a->problem, 400, "", "not a .npz file: %s", pe_text(what));
}

static bool fail_entry(const struct archive *a, int status, const struct entry *entry, const char *what)
{
    return api_fail_at(a->problem, status, "", entry->name, "\"%.64s.npy\" in the .npz file %s", entry->name,
                       pe_text(what));
}

static uint32_t load(const char *p, unsigned n_bytes) { return (uint32_t)api_little_endian(p, n_bytes); }

/* ---- The directory ---- */

/* The record whose comment ends at the end of the file; a comment may contain a signature, so the last record that fits
 * counts. */
static const char *find_end(const struct archive *a)
{
    if (a->n < END_BYTES)
        return NULL;
    size_t first = a->n > END_BYTES + END_COMMENT_MAX ? a->n - END_BYTES - END_COMMENT_MAX : 0;
    for (size_t i = a->n - END_BYTES + 1; i-- > first;)
        if (memcmp(a->bytes + i, "PK\5\6", 4) == 0 && load(a->bytes + i + 20, 2) == a->n - END_BYTES - i)
            return a->bytes + i;
    return NULL;
}

static bool find_directory(struct archive *a)
{
    const char *end = find_end(a);
    if (!end)
        return fail_archive(a, "it has no zip directory at its end");
    size_t bytes = load(end + 12, 4), offset = load(end + 16, 4);
    a->n_entries = load(end + 10, 2);
    if (load(end + 4, 4) != 0 || load(end + 8, 2) != a->n_entries)
        return fail_archive(a, "it is one part of a split archive");
    if (a->n_entries > API_PARTS_MAX)
        return api_fail(a->problem, 413, "", "the .npz file has %zu entries; at most %d", a->n_entries, API_PARTS_MAX);
    a->directory_end = (size_t)(end - a->bytes);
    if (offset > a->directory_end || bytes != a->directory_end - offset)
        return fail_archive(a, "its directory is not where its end record states");
    a->directory = offset;
    return true;
}

static bool read_entry(struct api_request *request, const struct archive *a, const char *central, struct entry *entry)
{
    /* The tensor's name, without the ".npy". */
    const char *name = central + CENTRAL_BYTES;
    size_t n = load(central + 28, 2);
    if (n <= 4 || memcmp(name + n - 4, ".npy", 4) != 0 || memchr(name, '\0', n))
        return api_fail(a->problem, 415, "", "\"%.*s\" in the .npz file is not a .npy file", n < 64 ? (int)n : 64,
                        name);
    entry->name = api_arena_string(&request->arena, name, n - 4);
    if (!entry->name)
        return api_fail_memory(a->problem);
    if (load(central + 8, 2) & FLAG_ENCRYPTED)
        return fail_entry(a, 415, entry, "is encrypted");
    if (load(central + 10, 2) != METHOD_STORED)
        return fail_entry(a, 415, entry, "is compressed; np.savez stores it as it is, np.savez_compressed does not");
    entry->crc = load(central + 16, 4);
    /* Header and data come before the directory, and the header must repeat the directory's name. */
    size_t size = load(central + 24, 4), n_name = load(central + 28, 2), at = load(central + 42, 4);
    if (size == ZIP64_MARK || at == ZIP64_MARK)
        return fail_entry(a, 415, entry, "has a zip64 size; below 4 GiB none is needed");
    if (load(central + 20, 4) != size)
        return fail_entry(a, 400, entry, "is stored but has two sizes");
    if (at > a->directory || a->directory - at < LOCAL_BYTES || memcmp(a->bytes + at, "PK\3\4", 4) != 0)
        return fail_entry(a, 400, entry, "has no header where the directory states");
    const char *local = a->bytes + at;
    size_t n_head = LOCAL_BYTES + load(local + 26, 2) + load(local + 28, 2);
    if (n_head > a->directory - at || size > a->directory - at - n_head)
        return fail_entry(a, 400, entry, "reaches into the directory");
    if (load(local + 26, 2) != n_name || memcmp(local + LOCAL_BYTES, central + CENTRAL_BYTES, n_name) != 0)
        return fail_entry(a, 400, entry, "has another name in its own header");
    entry->bytes = local + n_head;
    entry->n = size;
    entry->begin = at;
    entry->end = at + n_head + size;
    return true;
}

static bool read_directory(struct api_request *request, struct archive *a)
{
    size_t at = a->directory;
    for (size_t i = 0; i < a->n_entries; i++) {
        const char *central = a->bytes + at;
        size_t left = a->directory_end - at;
        if (left < CENTRAL_BYTES || memcmp(central, "PK\1\2", 4) != 0)
            return fail_archive(a, "its directory is cut off");
        size_t n = (size_t)CENTRAL_BYTES + load(central + 28, 2) + load(central + 30, 2) + load(central + 32, 2);
        if (n > left)
            return fail_archive(a, "its directory is cut off");
        if (!read_entry(request, a, central, &a->entries[i]))
            return false;
        at += n;
    }
    return at == a->directory_end || fail_archive(a, "its directory has more than it counts");
}

/* Tensors may be moved inside the body, so no two may share bytes of it. */
static bool check_overlap(const struct archive *a)
{
    for (size_t i = 0; i < a->n_entries; i++)
        for (size_t j = 0; j < i; j++)
            if (a->entries[i].begin < a->entries[j].end && a->entries[j].begin < a->entries[i].end)
                return fail_entry(a, 400, &a->entries[i], "shares bytes with another entry");
    return true;
}

/* ---- Tensors ---- */

static bool add_tensor(struct api_request *request, const struct archive *a, const struct entry *entry)
{
    char what[160], pointer[PE_POINTER_MAX] = "";
    if (crc32_z(0, (const Bytef *)entry->bytes, entry->n) != entry->crc)
        return fail_entry(a, 400, entry, "has another CRC-32 than its directory states: it was damaged");
    snprintf(what, sizeof what, pe_text("\"%.64s.npy\" in the .npz file"), entry->name);
    api_pointer_push(pointer, entry->name, strlen(entry->name));
    struct api_npy_file file = {.bytes = entry->bytes, .n = entry->n, .what = what, .pointer = pointer};
    struct pe_tensor tensor;
    if (!api_npy_parse(&request->arena, &file, &tensor, a->problem))
        return false;
    size_t n_spare = (size_t)((const char *)tensor.data - entry->bytes);
    return api_request_add_tensor(request, entry->name, &tensor, n_spare, a->problem);
}

bool api_npz_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    struct archive a = {.bytes = body->bytes, .n = body->n, .problem = problem};
    if (!find_directory(&a) || !read_directory(request, &a) || !check_overlap(&a))
        return false;
    for (size_t i = 0; i < a.n_entries; i++)
        if (!add_tensor(request, &a, &a.entries[i]))
            return false;
    return true;
}
