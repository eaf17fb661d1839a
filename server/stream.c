/* Owns the window of a streamed answer: which pieces are at work, ready, or half read. */
#include "server/stream.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum slot_state { SLOT_EMPTY, SLOT_AT_WORK, SLOT_READY };

/* Piece i lives in slot i % STREAM_WINDOW: pieces are begun and read in order, so the slot is always free by then. */
struct slot {
    struct job job; /* first, so that a job's address is its slot's */
    struct stream *stream;
    enum slot_state state;
    uint64_t piece;
    char *buffer;
    size_t n_bytes;
};

struct stream {
    struct jobs *jobs;
    struct pool *pool;
    const struct api_reply *reply;
    struct stream_events events;
    uint64_t next_begun, next_read; /* pieces */
    size_t read_at;                 /* within piece next_read */
    unsigned n_at_work;
    bool is_opening, is_waiting, failed;
    atomic_bool has_begun; /* written by workers */
    atomic_bool cancelled; /* read by workers: a queued piece of a client that left costs nothing */
    uint64_t work_ns, queue_ns;
    struct slot slots[STREAM_WINDOW];
};

static void make_piece(struct job *job) /* worker */
{
    struct slot *slot = (struct slot *)job;
    struct stream *stream = slot->stream;
    atomic_store_explicit(&stream->has_begun, true, memory_order_relaxed);
    if (!atomic_load_explicit(&stream->cancelled, memory_order_relaxed))
        slot->n_bytes = api_reply_piece(stream->reply, slot->piece, slot->buffer);
}

static void release(struct stream *stream, struct slot *slot)
{
    pool_put(stream->pool, slot->buffer, stream->reply->piece_max);
    slot->buffer = NULL;
    slot->state = SLOT_EMPTY;
}

static void begin_pieces(struct stream *stream);

/* What the owner waits for: the next piece. While the stream opens, of a short answer all pieces that are at work: its
 * first bytes (the braces before JSON's numbers) are of no use alone, and then the head can say what all has taken. */
static bool is_there(const struct stream *stream)
{
    bool is_short = stream->is_opening && stream->reply->n_pieces <= STREAM_WINDOW;
    return stream->slots[stream->next_read % STREAM_WINDOW].state == SLOT_READY &&
           (!is_short || stream->n_at_work == 0);
}

static void piece_done(struct job *job)
{
    struct slot *slot = (struct slot *)job;
    struct stream *stream = slot->stream;
    stream->n_at_work--;
    stream->work_ns += job->work_ns;
    if (job->is_first)
        stream->queue_ns = job->queue_ns;
    slot->state = SLOT_READY;
    if (atomic_load_explicit(&stream->cancelled, memory_order_relaxed)) {
        release(stream, slot);
        if (stream->n_at_work == 0)
            stream->events.idle(stream->events.self);
        return;
    }
    begin_pieces(stream); /* the next may have waited for this one */
    if (stream->is_waiting && is_there(stream)) {
        stream->is_waiting = false;
        stream->events.ready(stream->events.self);
    }
}

/* A piece that would repeat the work of others waits until none is at work; those after it wait with it. */
static bool must_wait(const struct stream *stream)
{
    return stream->n_at_work > 0 && api_reply_waits(stream->reply, stream->next_begun);
}

/* Begins pieces until the window is full, the next must wait, or the pool says no. A stream with nothing in its window
 * gets a buffer whatever the budget: otherwise clients that read slowly would keep all others waiting. */
static void begin_pieces(struct stream *stream)
{
    while (stream->next_begun < stream->reply->n_pieces && stream->next_begun < stream->next_read + STREAM_WINDOW &&
           !must_wait(stream)) {
        struct slot *slot = &stream->slots[stream->next_begun % STREAM_WINDOW];
        assert(slot->state == SLOT_EMPTY);
        bool must = stream->next_begun == stream->next_read;
        slot->buffer = pool_get(stream->pool, stream->reply->piece_max, must);
        if (!slot->buffer) {
            stream->failed = stream->failed || must;
            return;
        }
        slot->state = SLOT_AT_WORK;
        slot->piece = stream->next_begun++;
        slot->stream = stream;
        slot->job = (struct job){.work = make_piece, .done = piece_done, .is_first = slot->piece == 0};
        stream->n_at_work++;
        jobs_submit(stream->jobs, &slot->job);
    }
}

struct stream *stream_new(struct jobs *jobs, struct pool *pool, const struct api_reply *reply,
                          struct stream_events events)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->jobs = jobs;
    stream->pool = pool;
    stream->reply = reply;
    stream->events = events;
    begin_pieces(stream);
    if (stream->failed) {
        free(stream);
        return NULL;
    }
    return stream;
}

static size_t read_slot(struct stream *stream, struct slot *slot, char *dst, size_t room)
{
    size_t n = slot->n_bytes - stream->read_at;
    n = n < room ? n : room;
    memcpy(dst, slot->buffer + stream->read_at, n);
    stream->read_at += n;
    if (stream->read_at == slot->n_bytes) {
        release(stream, slot);
        stream->next_read++;
        stream->read_at = 0;
    }
    return n;
}

bool stream_await(struct stream *stream)
{
    stream->is_opening = true;
    stream->is_waiting = !is_there(stream);
    return !stream->is_waiting;
}

bool stream_has_begun(const struct stream *stream)
{
    return atomic_load_explicit(&stream->has_begun, memory_order_relaxed);
}

bool stream_is_made(const struct stream *stream)
{
    return stream->next_begun == stream->reply->n_pieces && stream->n_at_work == 0;
}

size_t stream_read(struct stream *stream, char *dst, size_t room)
{
    size_t n = 0;
    stream->is_opening = false;
    while (n < room && !stream_at_end(stream)) {
        struct slot *slot = &stream->slots[stream->next_read % STREAM_WINDOW];
        if (slot->state != SLOT_READY)
            break;
        n += read_slot(stream, slot, dst + n, room - n);
        begin_pieces(stream);
    }
    stream->is_waiting = n == 0;
    return n;
}

bool stream_at_end(const struct stream *stream) { return stream->next_read == stream->reply->n_pieces; }

bool stream_failed(const struct stream *stream) { return stream->failed; }

uint64_t stream_work_ns(const struct stream *stream) { return stream->work_ns; }

uint64_t stream_queue_ns(const struct stream *stream) { return stream->queue_ns; }

bool stream_cancel(struct stream *stream)
{
    atomic_store_explicit(&stream->cancelled, true, memory_order_relaxed);
    stream->is_waiting = false;
    for (size_t i = 0; i < STREAM_WINDOW; i++)
        if (stream->slots[i].state == SLOT_READY)
            release(stream, &stream->slots[i]);
    return stream->n_at_work == 0;
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    assert(stream->n_at_work == 0);
    for (size_t i = 0; i < STREAM_WINDOW; i++)
        if (stream->slots[i].state == SLOT_READY)
            release(stream, &stream->slots[i]);
    free(stream);
}
