/* All tensors as a NumPy .npz file: a zip archive of NAME.npy, stored (PKWARE APPNOTE 6.3.10; zip64 where needed).
 *
 * The problem is to stream a zip of any size from pieces that threads compute in no order. A zip file states the CRC-32
 * of each entry after its data and again in the directory at the end of the file, so no CRC must be known before its
 * data is sent. open() lays out everything else: the sizes follow from the shapes, so the length of the whole and the
 * place of each byte are known before a number is computed. The body is part 0, elements 0, part 1, elements 1, … part
 * n where part k is the descriptor of entry k-1, the local header and the .npy head of entry k; part n ends with the
 * directory. Parts are complete text except for the CRCs.
 *
 * Each piece of elements records its CRC when it is computed; a part combines these CRCs (zlib's crc32_combine: a CRC
 * is linear over GF(2)). A thread that begins a part before all of its pieces are recorded computes the missing pieces
 * again, in the part's own buffer: slower, but never wrong. waits() lets the server avoid that. */
#include "api/formats/format.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    LOCAL_SIGNATURE = 0x04034b50,
    DESCRIPTOR_SIGNATURE = 0x08074b50,
    CENTRAL_SIGNATURE = 0x02014b50,
    END64_SIGNATURE = 0x06064b50,
    LOCATOR_SIGNATURE = 0x07064b50,
    END_SIGNATURE = 0x06054b50,
};

/* The versions that a reader needs, the flag "CRC follows the data", the extra field of zip64, and the oldest date that
 * the format can express, so that an answer does not depend on the day. */
enum { VERSION_PLAIN = 20, VERSION_ZIP64 = 45, FLAG_DESCRIPTOR = 8, EXTRA_ZIP64 = 1, DATE_1980_01_01 = 0x21 };

enum { DESCRIPTOR_CRC = 4, CENTRAL_CRC = 16 }; /* offsets of the CRC in them */

/* A value this large or larger is stored in a zip64 field, and this value is in its place. */
#define ZIP64_FROM UINT32_MAX

typedef _Atomic uint32_t crc_note; /* 0: unknown, or really 0 and then computed again each time */

struct entry {
    const struct pe_output *output;
    uint64_t at, bytes; /* of the local header in the body; the .npy file's */
    uint32_t head_crc;  /* of the .npy head */
    size_t segment;     /* of its elements */
    bool is_empty;      /* it has none */
    size_t central_crc; /* offset of the CRC in the last part */
    crc_note crc;
};

struct part {
    const char *text; /* in the arena */
    size_t n;
};

struct npz {
    size_t n_entries;
    uint64_t end;          /* bytes of the body laid out so far */
    struct entry *entries; /* [n_entries] */
    struct part *parts;    /* [n_entries + 1] */
    crc_note *notes;       /* one for each piece: 8 KiB for each GiB of the answer, touched as it is sent */
};

/* ---- Laying out ---- */

static void store(char *dst, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        dst[i] = (char)(value >> 8 * i & 0xff);
}

static void put_number(struct api_text *text, uint64_t value, size_t n_bytes)
{
    char bytes[8];
    store(bytes, value, n_bytes);
    api_text_add(text, bytes, n_bytes);
}

static void put2(struct api_text *text, uint64_t value) { put_number(text, value, 2); }
static void put4(struct api_text *text, uint64_t value) { put_number(text, value, 4); }
static void put8(struct api_text *text, uint64_t value) { put_number(text, value, 8); }

static bool is_long(uint64_t value) { return value >= ZIP64_FROM; }

static uint64_t short_or_mark(uint64_t value) { return is_long(value) ? ZIP64_FROM : value; }

static uint64_t version_of(bool has_zip64) { return has_zip64 ? VERSION_ZIP64 : VERSION_PLAIN; }

static size_t name_bytes(const struct entry *entry) { return strlen(entry->output->name) + strlen(".npy"); }

/* The fields common to local and central header, from the version to the length of the name. */
static void put_common(struct api_text *text, const struct entry *entry, bool has_zip64)
{
    put2(text, version_of(has_zip64));
    put2(text, FLAG_DESCRIPTOR);
    put2(text, 0); /* stored */
    put2(text, 0); /* midnight */
    put2(text, DATE_1980_01_01);
    put4(text, 0); /* CRC: follows the data, or is filled in later */
    put4(text, short_or_mark(entry->bytes));
    put4(text, short_or_mark(entry->bytes));
    put2(text, name_bytes(entry));
}

/* The sizes also are in the local header, though the descriptor repeats them: a streaming reader needs them to find
 * the end of a stored entry. */
static void put_local(struct api_text *text, const struct entry *entry)
{
    bool zip64 = is_long(entry->bytes);
    put4(text, LOCAL_SIGNATURE);
    put_common(text, entry, zip64);
    put2(text, zip64 ? 20 : 0);
    api_text_format(text, "%s.npy", entry->output->name);
    if (!zip64)
        return;
    put2(text, EXTRA_ZIP64);
    put2(text, 16);
    put8(text, entry->bytes);
    put8(text, entry->bytes);
}

static void put_descriptor(struct api_text *text, const struct entry *entry)
{
    size_t width = is_long(entry->bytes) ? 8 : 4;
    put4(text, DESCRIPTOR_SIGNATURE);
    put4(text, 0);
    put_number(text, entry->bytes, width);
    put_number(text, entry->bytes, width);
}

/* Sizes and offset take 8 bytes each in the extra field if they do not fit into the header. */
static void put_central(struct api_text *text, struct entry *entry)
{
    size_t more = (is_long(entry->bytes) ? 16u : 0) + (is_long(entry->at) ? 8u : 0);
    entry->central_crc = text->n + CENTRAL_CRC;
    put4(text, CENTRAL_SIGNATURE);
    put2(text, version_of(more > 0)); /* made by */
    put_common(text, entry, more > 0);
    put2(text, more ? 4 + more : 0);
    put2(text, 0); /* comment */
    put2(text, 0); /* disk */
    put2(text, 0); /* attributes: none */
    put4(text, 0);
    put4(text, short_or_mark(entry->at));
    api_text_format(text, "%s.npy", entry->output->name);
    if (more == 0)
        return;
    put2(text, EXTRA_ZIP64);
    put2(text, more);
    if (is_long(entry->bytes)) {
        put8(text, entry->bytes);
        put8(text, entry->bytes);
    }
    if (is_long(entry->at))
        put8(text, entry->at);
}

static void put_end64(struct api_text *text, size_t n, uint64_t directory, uint64_t directory_bytes)
{
    put4(text, END64_SIGNATURE);
    put8(text, 44); /* bytes that follow in this record */
    put2(text, VERSION_ZIP64);
    put2(text, VERSION_ZIP64);
    put8(text, 0); /* disks */
    put8(text, n);
    put8(text, n);
    put8(text, directory_bytes);
    put8(text, directory);
    put4(text, LOCATOR_SIGNATURE);
    put4(text, 0); /* disk */
    put8(text, directory + directory_bytes);
    put4(text, 1); /* disks in all */
}

static void put_directory(struct api_text *text, struct npz *npz)
{
    size_t begin = text->n;
    uint64_t directory = npz->end + begin;
    for (size_t i = 0; i < npz->n_entries; i++)
        put_central(text, &npz->entries[i]);
    uint64_t directory_bytes = text->n - begin;
    if (is_long(directory))
        put_end64(text, npz->n_entries, directory, directory_bytes);
    put4(text, END_SIGNATURE);
    put4(text, 0); /* disks */
    put2(text, npz->n_entries);
    put2(text, npz->n_entries);
    put4(text, directory_bytes);
    put4(text, short_or_mark(directory));
    put2(text, 0); /* comment */
}

/* Local header and .npy head of entry k. */
static void put_entry(struct api_text *text, struct npz *npz, size_t k)
{
    struct entry *entry = &npz->entries[k];
    struct api_text head;
    api_text_init(&head, API_TEXT_MAX);
    api_npy_head(&head, entry->output);
    entry->at = npz->end + text->n;
    entry->bytes = head.n + entry->output->n_rows * entry->output->row_len * pe_dtype_size(entry->output->dtype);
    put_local(text, entry);
    if (head.state) {
        text->state = head.state;
    } else {
        entry->head_crc = (uint32_t)crc32_z(0, (const Bytef *)head.bytes, head.n);
        api_text_add(text, head.bytes, head.n);
    }
    api_text_drop(&head);
}

static bool add_part(struct api_request *request, struct npz *npz, size_t k)
{
    struct api_text text;
    api_text_init(&text, API_PIECE_BYTES);
    if (k > 0)
        put_descriptor(&text, &npz->entries[k - 1]);
    if (k < npz->n_entries)
        put_entry(&text, npz, k);
    else
        put_directory(&text, npz);
    struct part *part = &npz->parts[k];
    *part = (struct part){.n = text.n};
    part->text = text.state ? NULL : api_arena_string(&request->arena, text.bytes, text.n);
    bool fine =
        part->text || (text.state ? api_fail_text(&request->problem, &text) : api_fail_memory(&request->problem));
    api_text_drop(&text);
    if (fine)
        api_body_made(request->opening.stream, k, part->n);
    npz->end += part->n;
    return fine;
}

static struct npz *npz_new(struct api_arena *arena, size_t n)
{
    struct npz *npz = api_arena_alloc(arena, sizeof *npz);
    struct entry *entries = api_arena_array(arena, n, sizeof *entries);
    struct part *parts = api_arena_array(arena, n + 1, sizeof *parts);
    if (!npz || !entries || !parts)
        return NULL;
    memset(entries, 0, n * sizeof *entries);
    *npz = (struct npz){.n_entries = n, .entries = entries, .parts = parts};
    return npz;
}

static bool open(struct api_request *request)
{
    size_t n = api_source_count(&request->opening.source);
    for (size_t i = 0; i < n; i++)
        if (!api_npy_check(api_source_output(&request->opening.source, i), "npz", &request->problem))
            return false;
    struct npz *npz = npz_new(&request->arena, n);
    if (!npz)
        return api_fail_memory(&request->problem);
    request->opening.stream->own = npz;
    for (size_t i = 0; i < n; i++) {
        npz->entries[i].output = api_source_output(&request->opening.source, i);
        if (!add_part(request, npz, i))
            return false;
        struct entry *entry = &npz->entries[i];
        uint64_t count = entry->output->n_rows * entry->output->row_len;
        entry->segment = request->opening.stream->n_segments;
        entry->is_empty = count == 0;
        api_body_output(request->opening.stream, i);
        npz->end += count * pe_dtype_size(entry->output->dtype);
    }
    if (!add_part(request, npz, n))
        return false;
    /* The system zeroes each page on first use: if an answer is not read to its end, the rest costs nothing. */
    npz->notes = calloc((size_t)request->opening.stream->body.n_pieces, sizeof *npz->notes);
    return (npz->notes && api_arena_own(&request->arena, npz->notes, free)) || api_fail_memory(&request->problem);
}

/* ---- Making ---- */

/* A recorded CRC is independent of all other memory, so relaxed order is enough. */
static uint32_t note_read(const crc_note *note) { return atomic_load_explicit(note, memory_order_relaxed); }

static void note_write(crc_note *note, uint32_t crc) { atomic_store_explicit(note, crc, memory_order_relaxed); }

static size_t print_elements(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first,
                             size_t n, char *dst)
{
    struct npz *npz = stream->own;
    size_t n_bytes = api_bytes_print(stream, segment, first, n, dst);
    if (!pe_was_cancelled()) /* otherwise the CRC would not match the bytes that are sent */
        note_write(&npz->notes[api_segment_piece(segment, first)], (uint32_t)crc32_z(0, (const Bytef *)dst, n_bytes));
    return n_bytes;
}

/* scratch has room for any piece. */
static uint32_t piece_crc(const struct api_plan_body *stream, uint64_t i, char *scratch)
{
    const struct npz *npz = stream->own;
    if (note_read(&npz->notes[i]) == 0)
        api_body_piece(stream, i, scratch);
    return note_read(&npz->notes[i]);
}

/* crc(AB) follows from crc(A), crc(B) and the length of B: one multiplication modulo the polynomial, by a factor that
 * is the same for all pieces of a length. */
static uint32_t combine_pieces(const struct api_plan_body *stream, const struct api_segment *segment, uint32_t crc,
                               char *scratch)
{
    size_t length = 0, n;
    uLong factor = 0;
    for (uint64_t i = segment->first_piece; i < segment->first_piece + segment->n_pieces && !pe_is_cancelled(); i++) {
        api_segment_first(segment, i, &n);
        if (n != length)
            factor = crc32_combine_gen((z_off_t)(n * segment->width));
        length = n;
        crc = (uint32_t)crc32_combine_op(crc, piece_crc(stream, i, scratch), factor);
    }
    return crc;
}

static uint32_t entry_crc(const struct api_plan_body *stream, struct entry *entry, char *scratch)
{
    uint32_t crc = note_read(&entry->crc);
    if (crc)
        return crc;
    crc = entry->head_crc;
    if (!entry->is_empty)
        crc = combine_pieces(stream, &stream->segments[entry->segment], crc, scratch);
    if (!pe_was_cancelled())
        note_write(&entry->crc, crc);
    return crc;
}

/* dst is scratch until all CRCs are known. The last part contains the CRCs of all entries, the first part none. */
static size_t print_part(const struct api_plan_body *stream, size_t k, char *dst)
{
    struct npz *npz = stream->own;
    uint32_t crcs[API_TENSORS_MAX];
    bool is_last = k == npz->n_entries;
    for (size_t i = is_last || k == 0 ? 0 : k - 1; i < k; i++)
        crcs[i] = entry_crc(stream, &npz->entries[i], dst);
    memcpy(dst, npz->parts[k].text, npz->parts[k].n);
    if (k > 0)
        store(dst + DESCRIPTOR_CRC, crcs[k - 1], 4);
    for (size_t i = 0; is_last && i < k; i++)
        store(dst + npz->entries[i].central_crc, crcs[i], 4);
    return npz->parts[k].n;
}

static size_t print(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first, size_t n,
                    char *dst)
{
    return segment->output ? print_elements(stream, segment, first, n, dst) : print_part(stream, segment->index, dst);
}

static bool waits(const struct api_plan_body *stream, const struct api_segment *segment)
{
    (void)stream;
    return !segment->output && segment->index > 0;
}

const struct api_format api_format_npz;
const struct api_format api_format_npz = {
    .name = "npz",
    .media_type = "application/zip",
    .open = open,
    .width = api_bytes_width,
    .print = print,
    .waits = waits,
};
