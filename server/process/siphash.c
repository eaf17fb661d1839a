/* Owns the keyed hash and this process's secret key. */
#include "server/process/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct state {
    uint64_t a, b, c, d;
};

static uint64_t turn(uint64_t x, unsigned n) { return x << n | x >> (64 - n); }

static inline void mix(struct state *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = turn(s->b, 13) ^ s->a;
    s->d = turn(s->d, 16) ^ s->c;
    s->a = turn(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = turn(s->b, 17) ^ s->c;
    s->d = turn(s->d, 21) ^ s->a;
    s->c = turn(s->c, 32);
}

static inline void absorb(struct state *s, uint64_t word)
{
    s->d ^= word;
    mix(s);
    s->a ^= word;
}

/* Loads n bytes at `bytes` as a little-endian number. */
static inline uint64_t load(const unsigned char *bytes, size_t n)
{
    uint64_t word = 0;
    memcpy(&word, bytes, n);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The constants are "somepseudorandomlygeneratedbytes". */
uint64_t siphash(struct siphash_key key, const void *bytes, size_t n)
{
    struct state s = {key.low ^ 0x736f6d6570736575u, key.high ^ 0x646f72616e646f6du, key.low ^ 0x6c7967656e657261u,
                      key.high ^ 0x7465646279746573u};
    const unsigned char *at = bytes;
    for (size_t rest = n; rest >= 8; rest -= 8, at += 8)
        absorb(&s, load(at, 8));
    absorb(&s, (n % 8 ? load(at, n % 8) : 0) | (uint64_t)n << 56);
    s.c ^= 0xff;
    mix(&s);
    mix(&s);
    mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

static struct siphash_key secret;

/* Every kernel since 3.17 provides random numbers; there is no fallback, because a guessable key would not protect
 * anything. */
static void draw(void)
{
    if (getentropy(&secret, sizeof secret) != 0)
        abort();
}

uint64_t siphash_secret(const void *bytes, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw);
    return siphash(secret, bytes, n);
}
