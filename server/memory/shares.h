/* Each client's part of the shared resources, and the rule that limits it.
 *
 * A client may hold at most four times the amount that is left free after it: four fifths while it is alone, four
 * ninths beside another such client, and so on. So with any number of clients, something is left for the next one. */
#ifndef SERVER_MEMORY_SHARES_H
#define SERVER_MEMORY_SHARES_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
