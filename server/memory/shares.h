/* Each client's part of the shared resources, and the rule that limits it.
 *
 * A client may hold at most four times what is left free after it: four fifths while it is alone, four ninths
 * beside another such client, and so on. So however many clients there are, something is left for the next one. */
#ifndef SERVER_MEMORY_SHARES_H
#define SERVER_MEMORY_SHARES_H

#include <stdbool.h>
#include <stdint.h>

enum share { SHARE_MEMORY, SHARE_STREAMS, SHARE_PICTURES, N_SHARES };

/* Adds n to what the client holds, if the rule allows that; n_free: what would be left for all after it. Any thread.
 * A client without a number (0: the server itself) has no share to keep to. */
bool shares_take(enum share share, uint64_t client, uint64_t n, uint64_t n_free);
void shares_give(enum share share, uint64_t client, uint64_t n);

/* The same of an object, as long as the client has any use of it: several of its requests may share one answer, of
 * which the first takes n and the last gives it back. */
bool shares_take_object(enum share share, uint64_t client, const void *object, uint64_t n, uint64_t n_free);
void shares_give_object(enum share share, uint64_t client, const void *object);

uint64_t shares_held(enum share share, uint64_t client);
/* How much of n_free, which are free now, the client may still take. */
uint64_t shares_left(enum share share, uint64_t client, uint64_t n_free);

#endif
