/* SipHash-1-3 (Aumasson, Bernstein 2012), a hash under a secret key: without the key, a client cannot choose values
 * that collide, however many answers it times. Used for tables whose keys come from clients. */
#ifndef SERVER_PROCESS_SIPHASH_H
#define SERVER_PROCESS_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* The first eight bytes of the key as a little-endian number, then the others. */
struct siphash_key {
    uint64_t low, high;
};

uint64_t siphash(struct siphash_key key, const void *bytes, size_t n);

/* The same under this process's own key, which is drawn at random at first use. Any thread. */
uint64_t siphash_secret(const void *bytes, size_t n);

#endif
