/* SipHash-1-3 (Aumasson, Bernstein 2012), a hash under a secret key: a client that does not know the key cannot choose
 * values that fall together, however many answers it times. For tables of what clients send. */
#ifndef SERVER_SIPHASH_H
#define SERVER_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* The first eight bytes of the key as a little-endian number, then the others. */
struct siphash_key {
    uint64_t low, high;
};

uint64_t siphash(struct siphash_key key, const void *bytes, size_t n);

/* The same under this process's own key, drawn at random when it is first needed. Any thread. */
uint64_t siphash_secret(const void *bytes, size_t n);

#endif
