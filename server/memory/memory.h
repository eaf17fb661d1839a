/* Memory of requests: what each client may hold, what all may reserve, and the buffers that use it. Lowest file first.
 */
#ifndef SERVER_MEMORY_H
#define SERVER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- shares.c ---------------------------------------------------------------------------------------------------- */

/* Each client's part of the shared resources, and the rule that limits it.
 *
 * A client may hold at most four times the amount that is left free after it: four fifths while it is alone, four
 * ninths beside another such client, and so on. So with any number of clients, something is left for the next one. */

enum share { SHARE_MEMORY, SHARE_STREAMS, SHARE_PICTURES, N_SHARES };

/* Adds n to the amount the client holds, if the rule allows it. n_free: the amount that would then be left for all
 * clients. Any thread. A client without a number (0: the server itself) has no limit. */
bool shares_take(enum share share, uint64_t client, uint64_t n, uint64_t n_free);
void shares_give(enum share share, uint64_t client, uint64_t n);

/* The same for an object, counted once per client while any of its requests uses it: several requests may share one
 * answer; the first one takes n and the last one returns it. */
bool shares_take_object(enum share share, uint64_t client, const void *object, uint64_t n, uint64_t n_free);
void shares_give_object(enum share share, uint64_t client, const void *object);

uint64_t shares_held(enum share share, uint64_t client);
/* How much of n_free, the amount free now, the client may still take. */
uint64_t shares_left(enum share share, uint64_t client, uint64_t n_free);

/* ---- admission.c ------------------------------------------------------------------------------------------------- */

/* Limits on all running requests together: memory and streams. There is one account for the process; every function may
 * be called from any thread.
 *
 * Large memory is reserved here before it is allocated. So a request is refused, with the name of the limit, before
 * anything is allocated, and the kernel does not have to kill the process. Memory that a client can make the server
 * hold for long also counts for that client (shares.c). Bodies, which arrive as slowly as their senders choose, may use
 * at most seven eighths of the memory together, so that small requests, planning and streams always find some. */

/* Call before any thread runs. */
void admission_setup(uint64_t max_memory, uint64_t max_streams);

/* Reserves bytes, which admission_give releases. False: they would exceed --max-memory, and nothing is reserved. */
bool admission_take(uint64_t n_bytes);
/* The same for api/, which refuses the request if it returns false. A request that exceeds the total can never be
 * served, so it is counted as a limit, not as a lack of memory, here and elsewhere. */
bool admission_take_counted(uint64_t n_bytes);
void admission_give(uint64_t n_bytes);
uint64_t admission_memory(void);          /* bytes reserved now */
bool admission_may_fit(uint64_t n_bytes); /* whether n_bytes could be reserved if no other request held memory */

/* The same for a client (its number as in struct job; 0: no client), within its share. */
bool admission_take_for(uint64_t client, uint64_t n_bytes);
void admission_give_for(uint64_t client, uint64_t n_bytes);
/* Counts memory, which the request has reserved by admission_take, for a client that will hold it for long: see
 * shares_take_object. False: the client's share would be exceeded. */
bool admission_hold(uint64_t client, const void *object, uint64_t n_bytes);
void admission_let_go(uint64_t client, const void *object);
/* Reserves memory that the server can do without: succeeds only if half of --max-memory is still free afterwards.
 * admission_give_for releases it. */
bool admission_take_spare(uint64_t client, uint64_t n_bytes);
/* The same for bodies. admission_fits_body returns whether n_bytes could be reserved now. */
bool admission_take_body(uint64_t client, uint64_t n_bytes);
void admission_give_body(uint64_t client, uint64_t n_bytes);
bool admission_fits_body(uint64_t client, uint64_t n_bytes);

/* Counts one answer being streamed to the client. False: --max-streams are in progress, or the client has its share of
 * them. */
bool admission_begin_stream(uint64_t client);
void admission_end_stream(uint64_t client);

/* The reason for a refusal: a status and a sentence for the client. */
struct admission_refusal {
    int status; /* 413: more than a single client can ever get; 503: a temporary lack; 429: too many streams */
    char detail[384];
};
/* what: the words that name the object, "the body" or "the answer's stream". */
struct admission_refusal admission_refuse_memory(uint64_t client, const char *what, uint64_t n_bytes);
struct admission_refusal admission_refuse_stream(uint64_t client);

/* ---- disposal.c -------------------------------------------------------------------------------------------------- */

/* Frees large memory on a separate thread. Freeing a quarter of a gigabyte takes tens of milliseconds; meanwhile the
 * loop has other clients to serve, and the workers may be busy for minutes while the memory is needed. */

/* Calls drop(object) soon, on a thread that the first call starts. Any thread. Without memory, or without a thread,
 * drop is called at once. */
void disposal_later(void (*drop)(void *object), void *object);

/* Waits until all is freed and ends the thread. Call it at the end of the process, when no thread calls disposal_later
 * any more. */
void disposal_finish(void);

/* ---- body.c ------------------------------------------------------------------------------------------------------ */

/* The body of a request while it arrives: one contiguous buffer with a maximum size. */

struct body {
    char *bytes; /* NULL while empty */
    size_t n_bytes, room;
    size_t n_declared; /* 0: unknown */
    uint64_t client;   /* the client that the body belongs to (shares.c); the owner sets it before the first byte */
    uint64_t n_taken;  /* bytes reserved of --max-memory (admission.c): those that have arrived, and a little more */
};

/* Whether memory for a body of this length could be reserved, if nothing else were. Call it before the first byte. */
bool body_may_come(const struct body *body, uint64_t n_bytes);
/* Reserves addresses, but no memory yet, for n_bytes. A body of known length then never moves. False: no memory. */
bool body_reserve(struct body *body, size_t n_bytes);
/* Appends bytes; the buffer grows geometrically, but not past n_max unless the bytes need it. False: no memory, or
 * --max-memory would be exceeded. */
bool body_add(struct body *body, const char *bytes, size_t n_bytes, uint64_t n_max);
bool body_is_large(const struct body *body); /* whether freeing it takes long */
void body_drop(struct body *body);           /* frees the buffer and sets all to zero */

/* ---- pool.c ------------------------------------------------------------------------------------------------------ */

/* Buffers for the pieces of streamed answers: few, large, reused (a fresh page costs more than filling it), and limited
 * by one budget. Used by one loop only; not locked. */

struct pool;

/* budget_bytes: the total size of all buffers above which pool_get refuses a caller that can wait. NULL: no memory. */
struct pool *pool_new(uint64_t budget_bytes);
void pool_free(struct pool *pool); /* call it when every buffer has been returned; NULL is accepted */

/* A page-aligned buffer of at least n_bytes; return it by pool_put with the same n_bytes. must: the caller holds no
 * buffer and cannot continue without one, so the budget is ignored (otherwise a stream could wait for another stream's
 * client). NULL: budget used up, or no memory. */
char *pool_get(struct pool *pool, size_t n_bytes, bool must);
void pool_put(struct pool *pool, char *buffer, size_t n_bytes);

uint64_t pool_bytes(const struct pool *pool); /* bytes of buffers handed out and of those kept for reuse */

#endif
