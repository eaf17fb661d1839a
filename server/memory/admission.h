/* Limits on all running requests together: memory and streams. There is one account for the process; every function may
 * be called from any thread.
 *
 * Large memory is reserved here before it is allocated. So a request is refused, with the name of the limit, before
 * anything is allocated, and the kernel does not have to kill the process. Memory that a client can make the server
 * hold for long also counts for that client (shares.h). Bodies, which arrive as slowly as their senders choose, may use
 * at most seven eighths of the memory together, so that small requests, planning and streams always find some. */
#ifndef SERVER_MEMORY_ADMISSION_H
#define SERVER_MEMORY_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

/* Call before any thread runs. */
void admission_setup(uint64_t max_memory, uint64_t max_streams);

/* Reserves bytes, which admission_give releases. False: they would exceed --max-memory, and nothing is reserved. */
bool admission_take(uint64_t n_bytes);
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

#endif
