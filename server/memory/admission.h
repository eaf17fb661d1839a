/* Limits on all running requests together: memory and streams. One account for the process; every function may be
 * called from any thread.
 *
 * Large memory is reserved here before it is allocated. So a request is refused, with the name of the limit, before
 * anything is allocated, and the kernel does not have to kill the process. Memory that a client can make the server
 * hold for long also counts for that client (shares.h). Bodies, which arrive as slowly as their senders like, get seven
 * eighths of the memory together, so small requests, planning and streams always find some. */
#ifndef SERVER_MEMORY_ADMISSION_H
#define SERVER_MEMORY_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

/* Before any thread. */
void admission_setup(uint64_t max_memory, uint64_t max_streams);

/* Reserves bytes, which admission_give releases. False: they would exceed --max-memory, and nothing is reserved. */
bool admission_take(uint64_t n_bytes);
void admission_give(uint64_t n_bytes);
uint64_t admission_memory(void);          /* bytes taken now */
bool admission_may_fit(uint64_t n_bytes); /* once others have given theirs back */

/* The same for a client (its number as for struct job; 0: nobody's), within its share. */
bool admission_take_for(uint64_t client, uint64_t n_bytes);
void admission_give_for(uint64_t client, uint64_t n_bytes);
/* Counts memory that a request has taken by admission_take for its client, who will hold it for long: see
 * shares_take_object. False: that would be more than its share. */
bool admission_hold(uint64_t client, const void *object, uint64_t n_bytes);
void admission_let_go(uint64_t client, const void *object);
/* For memory that the server can do without: succeeds only if half of --max-memory is free afterwards.
 * admission_give_for releases it. */
bool admission_take_spare(uint64_t client, uint64_t n_bytes);
/* Of bodies. admission_fits_body: whether as much could be taken now. */
bool admission_take_body(uint64_t client, uint64_t n_bytes);
void admission_give_body(uint64_t client, uint64_t n_bytes);
bool admission_fits_body(uint64_t client, uint64_t n_bytes);

/* One answer being streamed to the client; false: there are --max-streams already, or it has its share of them. */
bool admission_begin_stream(uint64_t client);
void admission_end_stream(uint64_t client);

/* The reason for a refusal: a status and a sentence for the client. */
struct admission_refusal {
    int status; /* 413: more than one client ever gets; 503: it will pass; 429: too many streams */
    char detail[384];
};
/* what: "the body", "the answer's stream". */
struct admission_refusal admission_refuse_memory(uint64_t client, const char *what, uint64_t n_bytes);
struct admission_refusal admission_refuse_stream(uint64_t client);

#endif
