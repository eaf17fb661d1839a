/* What all requests at hand may take together: memory and streams. One account for the process; every function may be
 * called from any thread.
 *
 * Whatever is large is taken here first and only then from the system: so what is refused is refused before anything
 * has been allocated, and by name, instead of by the kernel and by killing the process. What a client can make the
 * server hold for long is counted for that client too (shares.h), and bodies, which come as slowly as their senders
 * like, get seven eighths of the memory together: small requests, planning and streams always find some. */
#ifndef SERVER_MEMORY_ADMISSION_H
#define SERVER_MEMORY_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

/* Before any thread. */
void admission_setup(uint64_t max_memory, uint64_t max_streams);

/* Bytes, to be given back by admission_give. False: they would pass --max-memory, and nothing is taken. */
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
/* Of what one can do without: only while half of --max-memory is free after it. Given back by admission_give_for. */
bool admission_take_spare(uint64_t client, uint64_t n_bytes);
/* Of bodies. admission_fits_body: whether as much could be taken now. */
bool admission_take_body(uint64_t client, uint64_t n_bytes);
void admission_give_body(uint64_t client, uint64_t n_bytes);
bool admission_fits_body(uint64_t client, uint64_t n_bytes);

/* One answer being streamed to the client; false: there are --max-streams already, or it has its share of them. */
bool admission_begin_stream(uint64_t client);
void admission_end_stream(uint64_t client);

/* Why something has been refused: a status and a sentence for the client. */
struct admission_refusal {
    int status; /* 413: more than one client ever gets; 503: it will pass; 429: too many streams */
    char detail[384];
};
/* what: "the body", "the answer's stream". */
struct admission_refusal admission_refuse_memory(uint64_t client, const char *what, uint64_t n_bytes);
struct admission_refusal admission_refuse_stream(uint64_t client);

#endif
