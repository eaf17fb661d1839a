/* A long answer on its way: a window of pieces made by workers ahead of the reader, in the order of need.
 *
 * All calls from the loop's thread. At most STREAM_WINDOW pieces exist at a time, whatever the length of the answer. */
#ifndef SERVER_HTTP_STREAM_H
#define SERVER_HTTP_STREAM_H

#include "api/api.h"
#include "server/loop/jobs.h"
#include "server/memory/pool.h"

#include <sys/uio.h>

/* Two at work and one ready keep two cores busy; more only takes memory, since pieces leave in order. */
enum { STREAM_WINDOW = 3 };

struct stream;

/* What the stream tells its owner, on the loop, and on workers too what it computes, as it does. */
struct stream_events {
    void *self;
    void (*spend)(void *self, uint64_t ns);
    void (*ready)(void *self); /* the piece the reader waits for is there, or will never be (stream_failed) */
    void (*idle)(void *self);  /* cancelled, and the last worker has let go: the stream may be freed */
};

/* Starts making pieces 0, 1, … of reply (borrowed until stream_free), in turns with other clients. Its first buffer is
 * taken from --max-memory already, any further one the stream takes itself. If the first piece waits for a worker
 * longer than wait_max ns, nothing is made: stream_is_stale. NULL: no memory. */
struct stream *stream_new(struct jobs *jobs, uint64_t client, struct pool *pool, const struct api_reply *reply,
                          struct stream_events events, uint64_t wait_max);

/* Before the first read: is the first piece made, and are all if they fit the window? If not, events.ready will be
 * called. */
bool stream_await(struct stream *stream);
bool stream_is_stale(const struct stream *stream); /* after stream_await: nothing will come of it */
bool stream_is_made(const struct stream *stream);  /* every piece: its times are final */

/* Copies the next bytes, as many as are ready, at most room. 0: nothing ready; events.ready will be called. dst is
 * aligned to 8: where there is room for a whole piece and making one is quick, it is made there. */
size_t stream_read(struct stream *stream, char *dst, size_t room);
/* The same without copying: bytes that are ready, 0 for none; they stay until stream_skip has passed over them. The two
 * kinds of reading do not mix. */
size_t stream_look(struct stream *stream, const char **bytes);
void stream_skip(struct stream *stream, size_t n);
/* Instead of the first read, where all pieces are ready at once, in the window: their places, which stay until
 * stream_cancel; there is nothing left to read then. Returns how many, 0 where they are not. */
unsigned stream_parts(struct stream *stream, struct iovec parts[STREAM_WINDOW]);
bool stream_at_end(const struct stream *stream);
bool stream_failed(const struct stream *stream); /* there was no memory for even one buffer */

/* Time its workers have spent and its first piece has waited for a worker. */
uint64_t stream_work_ns(const struct stream *stream);
uint64_t stream_queue_ns(const struct stream *stream);

/* No further piece is begun, running ones finish. True: none runs, free it now; false: events.idle will be called. */
bool stream_cancel(struct stream *stream);
void stream_free(struct stream *stream); /* with no piece at work; NULL is accepted */

#endif
