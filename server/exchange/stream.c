/* Owns the window of a streamed answer: which pieces are being computed, ready, or partly read.
 *
 * An answer of gigabytes must need the memory of a few pieces, keep two processors busy, and stop within 100 ms when
 * its client disconnects. So at most three pieces exist at a time (exchange.h has the reason for three), computed by
 * workers ahead of the reader and read in order: piece i is in slot i modulo three.
 *
 * If a piece is computed faster than it could be handed over and copied (a table's 512 KiB: 70 us), the reader computes
 * it itself, directly in the memory that is sent. The time of the previous piece decides between the two. An answer
 * that is complete within the window before its head is sent, is sent from the window.
 *
 * Invariants: pieces are begun in order and read in order; a stream with an empty window gets a buffer whatever the
 * budget, so no stream waits for another one's client; a stream is freed only when no worker uses one of its slots. */
#include "server/exchange/exchange.h"

#include "server/memory/memory.h"
#include "server/loop/loop.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A piece that is computed on the loop delays every other connection. If it took longer than this, a worker computes
 * the next one. */
enum { QUICK_PIECE_NS = 250 * 1000 };

enum slot_state { SLOT_EMPTY, SLOT_AT_WORK, SLOT_READY };

/* Piece i is stored in slot i % STREAM_WINDOW: pieces are begun and read in order, so the slot is free by then. */
struct slot {
    struct job job; /* must be first, so that a job's address is its slot's address */
    struct stream *stream;
    enum slot_state state;
    uint64_t piece;
    char *buffer;
    size_t n_bytes;
};

struct stream {
    struct loop *loop;
    uint64_t client;
    struct pool *pool;
    const struct api_reply *reply;
    struct stream_events events;
    uint64_t n_pieces;              /* of a live answer any number, until its end is known */
    uint64_t next_begun, next_read; /* pieces */
    size_t read_at;                 /* within piece next_read */
    size_t room;                    /* the reader's room at the last read */
    bool is_quick;                  /* the previous piece was computed quickly; false before the first */
    bool is_brisk;                  /* the previous piece took less than a turn; false before the first */
    unsigned n_at_work;
    unsigned n_held; /* buffers; the caller of stream_new reserved the first, the stream reserves each further one */
    bool is_opening, is_waiting, failed;
    bool is_in_own;        /* piece next_read is in the reader's own memory, and no slot has it */
    uint64_t wait_max;     /* ns */
    atomic_bool is_stale;  /* set by a worker: the first piece waited too long for it */
    atomic_bool cancelled; /* read by workers: a queued piece for a client that has disconnected is skipped */
    uint64_t work_ns, queue_ns;
    struct slot slots[STREAM_WINDOW];
};

static bool is_cancelled(void *self)
{
    struct stream *stream = self;
    return atomic_load_explicit(&stream->cancelled, memory_order_relaxed);
}

/* api/ calls this while it computes a piece: some take seconds. */
static bool yield_and_ask(void *stream) /* worker */
{
    job_yield();
    return is_cancelled(stream);
}

static void make_piece(struct job *job) /* worker */
{
    struct slot *slot = (struct slot *)job;
    struct stream *stream = slot->stream;
    if (is_cancelled(stream))
        return;
    if (slot->piece == 0 && job_age(job) > stream->wait_max)
        atomic_store_explicit(&stream->is_stale, true, memory_order_relaxed);
    if (stream_is_stale(stream))
        return;
    uint64_t begun_at = clock_now();
    pe_speak_in(stream->reply->lang);
    pe_watch(yield_and_ask, stream);
    slot->n_bytes = api_reply_piece(stream->reply, slot->piece, slot->buffer);
    pe_watch(NULL, NULL);
    pe_speak_in(PE_EN);
    if (stream->reply->pace == API_PACE_LIVE) /* no worker counts its time */
        stream->events.spend(stream->events.self, clock_now() - begun_at);
}

/* NULL: not available now; must as in pool_get. Buffers after the first only let workers compute ahead: without memory
 * the stream continues with fewer. */
static char *take_buffer(struct stream *stream, bool must)
{
    size_t n = stream->reply->body->piece_max;
    bool is_further = stream->n_held > 0;
    if (is_further && !admission_take_spare(stream->client, n))
        return NULL;
    char *buffer = pool_get(stream->pool, n, must);
    stream->n_held += buffer != NULL;
    if (is_further && !buffer)
        admission_give_for(stream->client, n);
    return buffer;
}

static void release(struct stream *stream, struct slot *slot)
{
    pool_put(stream->pool, slot->buffer, stream->reply->body->piece_max);
    if (--stream->n_held > 0)
        admission_give_for(stream->client, stream->reply->body->piece_max);
    slot->buffer = NULL;
    slot->state = SLOT_EMPTY;
}

static void begin_pieces(struct stream *stream);

static void spend(struct job *job, uint64_t ns) /* worker */
{
    const struct stream *stream = ((struct slot *)job)->stream;
    stream->events.spend(stream->events.self, ns);
}

static void note_work(struct stream *stream, uint64_t ns)
{
    stream->work_ns += ns;
    stream->is_brisk = ns < JOB_TURN_NS;
    stream->is_quick = stream->reply->pace == API_PACE_QUICK && ns <= QUICK_PIECE_NS;
}

/* Whether the next piece, for which the owner waits, is ready. Before the first read of a short answer, all pieces
 * being computed must be ready: its first bytes (the braces before JSON's numbers) are of no use alone, and the head
 * can then report the time of all. */
static bool is_there(const struct stream *stream)
{
    bool is_short = stream->is_opening && stream->n_pieces <= STREAM_WINDOW;
    return stream->slots[stream->next_read % STREAM_WINDOW].state == SLOT_READY &&
           (!is_short || stream->n_at_work == 0);
}

/* A live answer ends with an empty piece. */
static void note_end(struct stream *stream, struct slot *slot)
{
    if (stream->reply->pace != API_PACE_LIVE || slot->n_bytes > 0)
        return;
    stream->n_pieces = stream->next_begun = slot->piece;
    release(stream, slot);
}

static void piece_done(struct job *job)
{
    struct slot *slot = (struct slot *)job;
    struct stream *stream = slot->stream;
    stream->n_at_work--;
    note_work(stream, job->work_ns);
    if (job->is_first)
        stream->queue_ns = job->queue_ns;
    slot->state = SLOT_READY;
    if (is_cancelled(stream)) {
        release(stream, slot);
        if (stream->n_at_work == 0)
            stream->events.idle(stream->events.self);
        return;
    }
    note_end(stream, slot);
    begin_pieces(stream); /* the next piece may have waited for this one */
    if (stream->is_waiting && (is_there(stream) || stream_at_end(stream))) {
        stream->is_waiting = false;
        stream->events.ready(stream->events.self);
    }
}

/* A piece that would repeat the work of others waits until none is being computed; later pieces wait too. The same
 * holds for pieces of more than a turn while no worker is free for them: taking turns with each other, all would be
 * ready late. */
static bool must_wait(const struct stream *stream)
{
    bool is_crowded = !stream->is_brisk && !jobs_have_room();
    return stream->n_at_work > 0 &&
           (is_crowded || stream->reply->pace == API_PACE_LIVE || api_reply_waits(stream->reply, stream->next_begun));
}

/* Whether the reader computes pieces itself, once it has read those in the window. At the end of the body it only has
 * room for the remaining bytes: the last piece needs a buffer, like a worker's. */
static bool is_made_by_reader(const struct stream *stream)
{
    bool is_last = stream->next_read + 1 == stream->n_pieces;
    return stream->is_quick && (stream->room >= stream->reply->body->piece_max || is_last);
}

/* Begins pieces until the window is full, the next piece must wait, or the pool refuses a buffer. A stream with an
 * empty window gets a buffer whatever the budget: otherwise clients that read slowly would block all others. */
static void begin_pieces(struct stream *stream)
{
    while (!stream_is_stale(stream) && !is_made_by_reader(stream) && stream->next_begun < stream->n_pieces &&
           stream->next_begun < stream->next_read + STREAM_WINDOW && !must_wait(stream)) {
        struct slot *slot = &stream->slots[stream->next_begun % STREAM_WINDOW];
        assert(slot->state == SLOT_EMPTY);
        bool must = stream->next_begun == stream->next_read;
        slot->buffer = take_buffer(stream, must);
        if (!slot->buffer) {
            stream->failed = stream->failed || must;
            return;
        }
        slot->state = SLOT_AT_WORK;
        slot->piece = stream->next_begun++;
        slot->stream = stream;
        slot->job =
            (struct job){.work = make_piece,
                         .done = piece_done,
                         .spend = stream->reply->pace == API_PACE_LIVE ? NULL : spend, /* make_piece charges it */
                         .is_first = slot->piece == 0,
                         .client = stream->client};
        stream->n_at_work++;
        slot->job.is_low = stream->reply->pace == API_PACE_LIVE;
        if (stream->reply->pace == API_PACE_LIVE)
            job_submit_aside(stream->loop, &slot->job);
        else
            job_submit(stream->loop, &slot->job);
    }
}

/* Computes the next piece, which no worker has begun, immediately. */
static size_t make_here(struct stream *stream, char *dst)
{
    uint64_t begun_at = clock_now();
    size_t n = api_reply_piece(stream->reply, stream->next_begun++, dst);
    uint64_t ns = clock_now() - begun_at;
    note_work(stream, ns);
    stream->events.spend(stream->events.self, ns);
    return n;
}

/* False: no memory; the first piece cannot be computed without it. */
static bool make_slot_here(struct stream *stream)
{
    struct slot *slot = &stream->slots[stream->next_begun % STREAM_WINDOW];
    bool must = stream->next_begun == stream->next_read;
    slot->buffer = take_buffer(stream, must);
    if (!slot->buffer) {
        stream->failed = must;
        return false;
    }
    slot->n_bytes = make_here(stream, slot->buffer);
    slot->state = SLOT_READY;
    return true;
}

struct stream *stream_new(struct loop *loop, uint64_t client, struct pool *pool, const struct api_reply *reply,
                          struct stream_events events, uint64_t wait_max)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->loop = loop;
    stream->client = client;
    stream->pool = pool;
    stream->reply = reply;
    stream->n_pieces = reply->body->n_pieces;
    stream->events = events;
    stream->wait_max = wait_max;
    /* If pieces are quick to compute, the first one, and all of a short answer, are computed at once, so that the head
     * can report their time: waking up a worker would take longer than the work. */
    uint64_t n = stream->n_pieces <= STREAM_WINDOW ? stream->n_pieces : 1;
    stream->is_quick = stream->reply->pace == API_PACE_QUICK;
    while (stream->is_quick && stream->next_begun < n && make_slot_here(stream)) {
    }
    if (!stream->is_quick)
        begin_pieces(stream);
    if (stream->failed) {
        free(stream);
        return NULL;
    }
    return stream;
}

bool stream_await(struct stream *stream)
{
    stream->is_opening = true;
    stream->is_waiting = !is_there(stream) && !stream_at_end(stream);
    return !stream->is_waiting;
}

bool stream_is_waiting(const struct stream *stream) { return stream->is_waiting; }

bool stream_is_stale(const struct stream *stream)
{
    return atomic_load_explicit(&stream->is_stale, memory_order_relaxed);
}

bool stream_is_made(const struct stream *stream)
{
    return stream->next_begun == stream->n_pieces && stream->n_at_work == 0;
}

bool stream_is_whole(const struct stream *stream)
{
    return stream->n_pieces <= STREAM_WINDOW && stream_is_made(stream);
}

unsigned stream_look(struct stream *stream, char *own, size_t room, struct iovec parts[STREAM_WINDOW])
{
    unsigned n = 0;
    /* Whether the reader, which has this much room, is to compute the piece that is read next. */
    stream->is_opening = false;
    stream->room = room;
    bool is_mine = is_made_by_reader(stream) && stream->next_begun == stream->next_read && !stream_at_end(stream);
    stream->is_in_own = is_mine && room >= stream->reply->body->piece_max;
    if (stream->is_in_own) {
        parts[0] = (struct iovec){own, make_here(stream, own)};
        return 1;
    }
    if (is_mine)
        make_slot_here(stream);
    begin_pieces(stream); /* also those that were left to the reader, if they no longer are */
    for (uint64_t i = stream->next_read; i < stream->next_begun; i++, n++) {
        const struct slot *slot = &stream->slots[i % STREAM_WINDOW];
        size_t skipped = i == stream->next_read ? stream->read_at : 0;
        if (slot->state != SLOT_READY)
            break;
        parts[n] = (struct iovec){slot->buffer + skipped, slot->n_bytes - skipped};
    }
    stream->is_waiting = n == 0 && !stream_at_end(stream);
    return n;
}

void stream_skip(struct stream *stream, size_t n)
{
    if (stream->is_in_own) {
        stream->is_in_own = false;
        stream->next_read++;
        return;
    }
    while (n > 0) {
        struct slot *slot = &stream->slots[stream->next_read % STREAM_WINDOW];
        size_t left = slot->n_bytes - stream->read_at;
        if (n < left) {
            stream->read_at += n;
            break;
        }
        n -= left;
        release(stream, slot);
        stream->next_read++;
        stream->read_at = 0;
    }
    begin_pieces(stream);
}

bool stream_at_end(const struct stream *stream) { return stream->next_read == stream->n_pieces; }

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
