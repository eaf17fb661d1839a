/* Tensors in a format, cut into pieces that can be computed in any order, by any thread.
 *
 * An answer is a list of segments: a text, or the elements of a tensor at a fixed width. The start of each piece
 * follows from its number by arithmetic, so Range, HEAD, parallel workers and a restart in the middle need no state;
 * where elements have no fixed width (JSON), a piece still begins at a known element, and the length of the whole is
 * not stated.
 *
 * Pieces are some hundred KiB, which stay in the second-level cache from their computation to the socket, and end at
 * rows or at units that a scheme computes whole (attention), so nothing is computed twice. Invariant: the bytes of
 * piece i depend on the plan and i alone. */
#include "api/formats/format.h"
#include "api/numbers/numbers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tensors ---- */

struct pe_output api_held_output(const char *name, const struct pe_tensor *tensor)
{
    uint64_t count = 0;
    struct pe_output output = {.name = name, .dtype = tensor->dtype, .rank = tensor->rank, .row_len = 1};
    memcpy(output.shape, tensor->shape, sizeof output.shape);
    pe_shape_count(tensor->shape, tensor->rank, &count); /* the product fits: the elements are in memory */
    if (tensor->rank > 0)
        output.row_len = tensor->shape[tensor->rank - 1];
    output.n_rows = output.row_len ? count / output.row_len : 0;
    return output;
}

/* ---- Segments ---- */

/* Bytes that print() may use beyond n × width, to align its scratch. */
enum { SLACK = 64 };

static size_t room_of(const struct api_segment *segment, size_t n)
{
    return n * segment->width + (segment->text ? 0 : SLACK);
}

static uint64_t pieces_of_period(const struct api_segment *segment)
{
    return (segment->period - 1) / segment->step + 1;
}

/* Adds the segment and numbers its pieces, unless it is empty. */
static void add_segment(struct api_plan_body *stream, struct api_segment segment)
{
    assert(stream->n_segments < stream->max_segments);
    if (segment.count == 0)
        return;
    size_t room = room_of(&segment, segment.count < segment.step ? (size_t)segment.count : segment.step);
    segment.first_piece = stream->body.n_pieces;
    segment.n_pieces = segment.count / segment.period * pieces_of_period(&segment);
    stream->body.n_pieces += segment.n_pieces;
    stream->body.piece_max = room > stream->body.piece_max ? room : stream->body.piece_max;
    stream->segments[stream->n_segments++] = segment;
}

void api_body_text(struct api_plan_body *stream, const char *text, size_t n)
{
    add_segment(stream,
                (struct api_segment){.text = text, .count = n, .width = 1, .step = API_PIECE_BYTES, .period = n});
}

void api_body_made(struct api_plan_body *stream, size_t index, size_t n)
{
    add_segment(stream, (struct api_segment){.index = index, .count = n, .width = 1, .step = n, .period = n});
}

void api_body_filled(struct api_plan_body *stream, size_t index, size_t n)
{
    add_segment(stream,
                (struct api_segment){.index = index, .count = n, .width = 1, .step = API_PIECE_BYTES, .period = n});
}

/* Whole rows in multiples of API_ROWS_UNIT if they fit a piece, else whole rows, else a part of a row. */
static size_t elements_step(const struct pe_output *output, size_t width)
{
    size_t fits = API_PIECE_BYTES / width;
    if (output->most && output->most < fits)
        return (size_t)output->most;
    size_t rows = output->row_len <= fits ? fits / (size_t)output->row_len : 0;
    if (rows >= API_ROWS_UNIT)
        rows -= rows % API_ROWS_UNIT;
    return rows ? rows * (size_t)output->row_len : fits;
}

void api_body_output(struct api_plan_body *stream, size_t index)
{
    const struct pe_output *output = api_source_output(&stream->source, index);
    uint64_t count = output->n_rows * output->row_len;
    if (count == 0)
        return;
    size_t width = stream->format->width(stream, output);
    struct api_segment segment = {.output = output, .index = index, .count = count, .width = width, .period = count};
    segment.step = elements_step(output, width);
    if (output->unit) {
        /* Elements that are computed as one unit stay in one piece; a piece holds as many such units as fit, or several
         * periods of them. */
        size_t fits = API_PIECE_BYTES / segment.width;
        if (output->most && output->most < fits)
            fits = (size_t)output->most;
        if (output->period <= fits) {
            segment.step = (size_t)(fits / output->period * output->period);
        } else if (output->unit <= API_UNIT_BYTES_MAX / segment.width) {
            segment.step = (size_t)(output->unit < fits ? fits / output->unit * output->unit : output->unit);
            segment.period = output->period;
        }
    }
    add_segment(stream, segment);
}

/* A short text is copied. A long text stays where it is, and its unused capacity is freed. */
static char *keep_text(struct api_arena *arena, struct api_text *text)
{
    size_t n = text->n;
    if (n <= API_LIGHT_BYTES)
        return api_arena_string(arena, text->bytes, n);
    char *bytes = realloc(text->bytes, n), *owned = bytes ? bytes : text->bytes;
    text->bytes = NULL;
    return api_arena_adopt(arena, owned, n);
}

bool api_body_take(struct api_request *request, struct api_text *text)
{
    size_t n = text->n;
    char *bytes = text->state ? NULL : keep_text(&request->arena, text);
    bool fine = bytes || (text->state ? api_fail_text(&request->problem, text) : api_fail_memory(&request->problem));
    if (fine)
        api_body_text(request->opening.stream, bytes, n);
    api_text_drop(text);
    return fine;
}

/* ---- Pictures ---- */

/* A picture is complete before it is sent, and stays in memory until it is read. The bytes of all of them in the
 * process are counted together, so that many slow readers of pictures cannot fill the memory. */
static _Atomic uint64_t bytes_unread;

uint64_t api_pictures_bytes(void) { return atomic_load(&bytes_unread); }

struct picture {
    char *bytes;
    size_t n;
};

static void picture_drop(void *self)
{
    struct picture *picture = self;
    atomic_fetch_sub(&bytes_unread, picture->n);
    free(picture->bytes);
}

static bool fail_room(struct api_request *request)
{
    return api_fail(&request->problem, 503, "",
                    "pictures that others have not read yet fill the %" PRIu64
                    " bytes for them (--buffer-memory); try again later",
                    request->host->max_pictures);
}

/* Called before a picture is drawn, to avoid drawing one that would be refused. */
static bool pictures_have_room(struct api_request *request)
{
    uint64_t kept = atomic_load(&bytes_unread);
    return kept == 0 || kept < request->host->max_pictures || fail_room(request);
}

/* A single picture is never too large; otherwise a server with little memory could not send any. */
static bool picture_count(struct api_request *request, struct picture *picture)
{
    uint64_t before = atomic_fetch_add(&bytes_unread, picture->n);
    if (before == 0 || (before < request->host->max_pictures && picture->n <= request->host->max_pictures - before))
        return true;
    picture_drop(picture);
    return fail_room(request);
}

static bool picture_keep(struct api_request *request, char *bytes, size_t n)
{
    struct picture *picture = api_arena_alloc(&request->arena, sizeof *picture);
    if (!picture) {
        free(bytes);
        return api_fail_memory(&request->problem);
    }
    *picture = (struct picture){bytes, n};
    if (!picture_count(request, picture))
        return false;
    if (!api_arena_own(&request->arena, picture, picture_drop))
        return api_fail_memory(&request->problem);
    api_body_text(request->opening.stream, bytes, n);
    return true;
}

bool api_body_keep(struct api_request *request, struct api_text *text)
{
    if (text->state) {
        api_fail_text(&request->problem, text);
        api_text_drop(text);
        return false;
    }
    char *bytes = realloc(text->bytes, text->n); /* growth leaves up to as much again unused */
    return picture_keep(request, bytes ? bytes : text->bytes, text->n);
}

/* ---- Pieces ---- */

/* Bodies of at most this many bytes are computed by the calling thread. */
static const size_t light_bytes[] = {[PE_QUICK] = API_LIGHT_BYTES, [PE_SLOW] = API_LIGHT_SLOW_BYTES, [PE_HEAVY] = 0};

/* An upper bound of the body's bytes, or anything above API_LIGHT_BYTES if it is above. */
static size_t light_bound(const struct api_plan_body *stream)
{
    size_t bound = 0;
    for (size_t i = 0; i < stream->n_segments; i++) {
        const struct api_segment *segment = &stream->segments[i];
        if (segment->count > API_LIGHT_BYTES)
            return API_LIGHT_BYTES + 1;
        bound += room_of(segment, (size_t)segment->count);
    }
    return bound;
}

static uint64_t exact_length(const struct api_plan_body *stream)
{
    uint64_t length = 0;
    for (size_t i = 0; i < stream->n_segments; i++) {
        const struct api_segment *segment = &stream->segments[i];
        if (!segment->text && stream->format->is_text)
            return API_LENGTH_UNKNOWN;
        length += segment->count * segment->width;
    }
    return length;
}

static size_t segment_print(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first,
                            size_t n, char *dst)
{
    if (!segment->text)
        return stream->format->print(stream, segment, first, n, dst);
    memcpy(dst, segment->text + first, n);
    return n;
}

static size_t whole_body(const struct api_plan_body *stream, char *dst)
{
    size_t used = 0;
    for (size_t i = 0; i < stream->n_segments; i++)
        used += segment_print(stream, &stream->segments[i], 0, (size_t)stream->segments[i].count, dst + used);
    return used;
}

uint64_t api_segment_first(const struct api_segment *segment, uint64_t i, size_t *n)
{
    uint64_t in_period = pieces_of_period(segment), number = i - segment->first_piece;
    uint64_t begin = number / in_period * segment->period, at = number % in_period * segment->step;
    uint64_t left = segment->period - at;
    *n = left < segment->step ? (size_t)left : segment->step;
    return begin + at;
}

uint64_t api_segment_piece(const struct api_segment *segment, uint64_t first)
{
    return segment->first_piece + first / segment->period * pieces_of_period(segment) +
           first % segment->period / segment->step;
}

/* The segment that contains piece i of the whole body. */
static const struct api_segment *segment_of(const struct api_plan_body *stream, uint64_t i)
{
    const struct api_segment *segment = stream->segments;
    while (i >= segment->first_piece + segment->n_pieces)
        segment++;
    return segment;
}

static size_t whole_piece(const struct api_plan_body *stream, uint64_t i, char *dst)
{
    if (stream->joined)
        return whole_body(stream, dst);
    const struct api_segment *segment = segment_of(stream, i);
    size_t n;
    uint64_t first = api_segment_first(segment, i, &n);
    return segment_print(stream, segment, first, n, dst);
}

size_t api_body_piece(const struct api_plan_body *stream, uint64_t i, char *dst)
{
    size_t n = whole_piece(stream, stream->part_piece + i, dst);
    if (i + 1 == stream->body.n_pieces)
        n -= stream->dropped;
    if (i > 0 || !stream->skipped)
        return n;
    memmove(dst, dst + stream->skipped, n - stream->skipped);
    return n - stream->skipped;
}

static size_t plan_piece(struct api_body *body, uint64_t i, char *dst)
{
    return api_body_piece((const struct api_plan_body *)body, i, dst);
}

/* Only of formats that have pieces that wait. */
static bool plan_waits(const struct api_body *body, uint64_t i)
{
    const struct api_plan_body *stream = (const struct api_plan_body *)body;
    return stream->format->waits(stream, segment_of(stream, stream->part_piece + i));
}

/* The body is part of its request. */
size_t api_reply_tensors(const struct api_reply *reply, const char **names, size_t n_max)
{
    if (reply->body->piece != plan_piece)
        return 0;
    const struct api_source *source = &((const struct api_plan_body *)reply->body)->source;
    size_t n = api_source_count(source);
    for (size_t i = 0; i < n && i < n_max; i++)
        names[i] = api_source_output(source, i)->name;
    return n;
}

static void plan_drop(struct api_body *body) { api_request_free(((struct api_plan_body *)body)->request); }

/* ---- Opening ---- */

/* Each tensor has a text before it, and the last one a text behind it. */
static bool take_segments(struct api_request *request)
{
    struct api_plan_body *stream = request->opening.stream;
    stream->max_segments = 2 * api_source_count(&request->opening.source) + 1;
    stream->segments = api_arena_array(&request->arena, stream->max_segments, sizeof *stream->segments);
    return stream->segments || api_fail_memory(&request->problem);
}

bool api_body_open(struct api_request *request)
{
    const struct api_format *format = request->format;
    struct api_plan_body *stream = request->opening.stream = api_arena_alloc(&request->arena, sizeof *stream);
    if (!stream)
        return api_fail_memory(&request->problem);
    *stream = (struct api_plan_body){
        .body = {.piece = plan_piece, .waits = format->waits ? plan_waits : NULL, .drop = plan_drop},
        .request = request,
        .format = format,
        .source = request->opening.source,
        .digits = (int)api_form_integer(request->form.digits, API_DIGITS_SHORTEST)};
    if (!take_segments(request))
        return false;
    if ((format->is_picture && !pictures_have_room(request)) || !format->open(request))
        return false;
    if (pe_was_cancelled()) /* numbers that are already text may be incomplete */
        return api_fail_left(&request->problem);
    size_t bound = light_bound(stream);
    stream->is_light = bound <= light_bytes[format->is_picture ? PE_QUICK : api_source_pace(&request->opening.source)];
    stream->body.length = exact_length(stream);
    if (stream->is_light && format->is_text) { /* text needs no alignment */
        stream->joined = true;
        stream->body.n_pieces = 1;
        stream->body.piece_max = bound;
    }
    return true;
}

/* ---- Parts ---- */

/* The offset of piece i in the body; *n_bytes is its length. */
static uint64_t byte_of(const struct api_plan_body *stream, uint64_t i, uint64_t *n_bytes)
{
    const struct api_segment *segment = segment_of(stream, i);
    size_t n;
    uint64_t at = api_segment_first(segment, i, &n) * segment->width;
    for (const struct api_segment *s = stream->segments; s < segment; s++)
        at += s->count * s->width;
    *n_bytes = (uint64_t)n * segment->width;
    return at;
}

/* The piece that contains the given byte of the body. */
static uint64_t piece_of(const struct api_plan_body *stream, uint64_t byte)
{
    uint64_t low = 0, high = stream->body.n_pieces, n; /* low begins at or before the byte, high behind it */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (byte_of(stream, middle, &n) <= byte)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void api_body_cut(struct api_plan_body *stream, uint64_t first, uint64_t last)
{
    assert(!stream->joined && first <= last && last < stream->body.length);
    uint64_t from = piece_of(stream, first), to = piece_of(stream, last), n;
    stream->skipped = (size_t)(first - byte_of(stream, from, &n));
    uint64_t end = byte_of(stream, to, &n);
    stream->dropped = (size_t)(end + n - 1 - last);
    stream->part_piece = from;
    stream->body.n_pieces = to - from + 1;
    stream->body.length = last - first + 1;
}

/* ---- Elements as bytes ---- */

size_t api_bytes_width(const struct api_plan_body *stream, const struct pe_output *output)
{
    (void)stream;
    return pe_dtype_size(output->dtype);
}

size_t api_bytes_print(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first, size_t n,
                       char *dst)
{
    api_source_fill(&stream->source, segment->index, first, n, dst);
    return n * segment->width;
}
