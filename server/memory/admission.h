/* What all requests at hand may take together: memory and streams. One account for the process; every function may be
 * called from any thread.
 *
 * Who wants much takes it here first, in its full size, and only then from the system: so what is refused is refused
 * before anything has been allocated, and by name, instead of by the kernel and by killing the process. */
#ifndef SERVER_MEMORY_ADMISSION_H
#define SERVER_MEMORY_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

/* Before any thread. */
void admission_setup(uint64_t max_memory, uint64_t max_streams);

/* Bytes, to be given back by admission_give. False: they would pass --max-memory, and nothing is taken. */
bool admission_take(uint64_t n_bytes);
void admission_give(uint64_t n_bytes);
uint64_t admission_memory(void); /* bytes taken now */
/* The same for what one can do without: only while half of --max-memory is free after it. */
bool admission_take_spare(uint64_t n_bytes);
bool admission_may_fit(uint64_t n_bytes); /* once others have given theirs back */

/* One answer being streamed; false: there are --max-streams already. */
bool admission_begin_stream(void);
void admission_end_stream(void);

/* Why something has been refused: a status and a sentence for the client. */
struct admission_refusal {
    int status; /* 413: more than --max-memory alone; 503: it will pass; 429: too many of a kind */
    char detail[256];
};
/* what: "the body", "the answer's stream". */
struct admission_refusal admission_refuse_memory(const char *what, uint64_t n_bytes);
struct admission_refusal admission_refuse_stream(void);

#endif
