/* A long answer while it is sent: a window of pieces that workers compute ahead of the reader, in the order in which
 * they are needed.
 *
 * Call everything on the loop's thread. At most STREAM_WINDOW pieces exist at a time, whatever the length of the
 * answer. */
#ifndef SERVER_EXCHANGE_STREAM_H
#define SERVER_EXCHANGE_STREAM_H

#include "api/api.h"
#include "server/loop/loop.h"
#include "server/memory/pool.h"

#include <sys/uio.h>

/* Two pieces being computed and one ready keep two cores busy. More would only take memory, since pieces are sent in
 * order. */
enum { STREAM_WINDOW = 3 };

struct stream;

/* Callbacks to the stream's owner, on the loop; spend also on workers, as the computing is done. */
struct stream_events {
    void *self;
    void (*spend)(void *self, uint64_t ns);
    void (*ready)(void *self); /* the piece the reader waits for is ready, or never will be (stream_failed) */
    void (*idle)(void *self);  /* cancelled, and no worker uses it any more: the stream may be freed */
};

/* Starts computing pieces 0, 1, … of reply (borrowed until stream_free), in turns with other clients. The caller has
 * reserved its first buffer of --max-memory; the stream reserves any further one itself. If the first piece waits for a
 * worker longer than wait_max ns, nothing is computed: stream_is_stale. NULL: no memory. */
struct stream *stream_new(struct loop *loop, uint64_t client, struct pool *pool, const struct api_reply *reply,
                          struct stream_events events, uint64_t wait_max);

/* Before the first read: is the first piece ready, and if all pieces fit into the window, are all ready? If not,
 * events.ready will be called. */
bool stream_await(struct stream *stream);
bool stream_is_stale(const struct stream *stream);   /* after stream_await: it will deliver nothing */
bool stream_is_made(const struct stream *stream);    /* every piece is computed: its times are final */
bool stream_is_waiting(const struct stream *stream); /* its reader has all that is computed, and waits for more */

/* Copies the next bytes: as many as are ready, at most room. 0: none are ready; events.ready will be called. dst is
 * aligned to 8. If there is room for a whole piece that is quick to compute, the piece is computed directly in dst. */
size_t stream_read(struct stream *stream, char *dst, size_t room);
/* The same without copying: bytes that are ready, 0 for none; they stay valid until stream_skip has passed them. Do not
 * mix the two kinds of reading. */
size_t stream_look(struct stream *stream, const char **bytes);
void stream_skip(struct stream *stream, size_t n);
/* Replaces the first read if all pieces are ready in the window: returns their number and their addresses, which stay
 * valid until stream_cancel; nothing is left to read then. Returns 0 if they are not ready. */
unsigned stream_parts(struct stream *stream, struct iovec parts[STREAM_WINDOW]);
bool stream_at_end(const struct stream *stream);
bool stream_failed(const struct stream *stream); /* there was not enough memory for even one buffer */

/* Time that its workers have spent; time that its first piece has waited for a worker. */
uint64_t stream_work_ns(const struct stream *stream);
uint64_t stream_queue_ns(const struct stream *stream);

/* No further piece is begun; those in progress are finished. True: none is in progress, free the stream now; false:
 * events.idle will be called. */
bool stream_cancel(struct stream *stream);
void stream_free(struct stream *stream); /* call it when no piece is in progress; NULL is accepted */

#endif
