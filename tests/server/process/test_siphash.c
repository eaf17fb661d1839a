/* SipHash-1-3 by the vectors that Rust's library publishes (its tests of core::hash::SipHasher13); and requests that
 * once shared one hash under every seed. */
#include "server/process/process.h"
#include "server/exchange/exchange.h"
#include "tests/support/cmocka.h"

#include <stdlib.h>

/* Of the bytes 0, 1, …, n-1 under the key 0, 1, …, 15. */
static const uint64_t vectors[64] = {
    0xabac0158050fc4dc, 0xc9f49bf37d57ca93, 0x82cb9b024dc7d44d, 0x8bf80ab8e7ddf7fb, 0xcf75576088d38328,
    0xdef9d52f49533b67, 0xc50d2b50c59f22a7, 0xd3927d989bb11140, 0x369095118d299a8e, 0x25a48eb36c063de4,
    0x79de85ee92ff097f, 0x70c118c1f94dc352, 0x78a384b157b4d9a2, 0x306f760c1229ffa7, 0x605aa111c0f95d34,
    0xd320d86d2a519956, 0xcc4fdd1a7d908b66, 0x9cf2689063dbd80c, 0x8ffc389cb473e63e, 0xf21f9de58d297d1c,
    0xc0dc2f46a6cce040, 0xb992abfe2b45f844, 0x7ffe7b9ba320872e, 0x525a0e7fdae6c123, 0xf464aeb267349c8c,
    0x45cd5928705b0979, 0x3a3e35e3ca9913a5, 0xa91dc74e4ade3b35, 0xfb0bed02ef6cd00d, 0x88d93cb44ab1e1f4,
    0x540f11d643c5e663, 0x2370dd1f8c21d1bc, 0x81157b6c16a7b60d, 0x4d54b9e57a8ff9bf, 0x759f12781f2a753e,
    0xcea1a3bebf186b91, 0x2cf508d3ada26206, 0xb6101c2da3c33057, 0xb3f47496ae3a36a1, 0x626b57547b108392,
    0xc1d2363299e41531, 0x667cc1923f1ad944, 0x65704ffec8138825, 0x24f280d1c28949a6, 0xc2ca1cedfaf8876b,
    0xc2164bfc9f042196, 0xa16e9c9368b1d623, 0x49fb169c8b5114fd, 0x9f3143f8df074c46, 0xc6fdaf2412cc86b3,
    0x7eaf49d10a52098f, 0x1cf313559d292f9a, 0xc44a30dda2f41f12, 0x36fae98943a71ed0, 0x318fb34c73f0bce6,
    0xa27abf3670a7e980, 0xb4bcc0db243c6d75, 0x23f8d852fdb71513, 0x8f035f4da67d8a08, 0xd89cd0e5b7e8f148,
    0xf6f4e6bcf7a644ee, 0xaec59ad80f1837f2, 0xc3b2f6154b6694e0, 0x9d199062b7bbb3a8,
};

static const struct siphash_key key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

TEST(published_vectors)
{
    unsigned char bytes[65];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i - 1);
    for (size_t n = 0; n < 64; n++)
        assert_int_equal(siphash(key, bytes + 1, n), vectors[n]); /* at an odd address */
}

TEST(every_bit_of_the_key_counts)
{
    uint64_t hash = siphash(key, "host", 4);
    for (unsigned bit = 0; bit < 64; bit++) {
        struct siphash_key low = {key.low ^ UINT64_C(1) << bit, key.high},
                           high = {key.low, key.high ^ UINT64_C(1) << bit};
        assert_int_not_equal(siphash(low, "host", 4), hash);
        assert_int_not_equal(siphash(high, "host", 4), hash);
    }
}

/* The secret is one for the process, and is not a key that is known. */
TEST(the_secret_stays)
{
    uint64_t hash = siphash_secret("host", 4);
    assert_int_equal(siphash_secret("host", 4), hash);
    assert_int_not_equal(siphash((struct siphash_key){0, 0}, "host", 4), hash);
}

/* ---- Requests ---- */

static int compare(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

enum { N_PAIRS = 12, N_VARIANTS = 1 << N_PAIRS };

/* A product of 64 bits carries the highest bit of a word nowhere: in a hash of (h ^ word) * odd, h ^= h >> 29, bit 63
 * of one word is undone by bits 63 and 34 of the next. Each pair of words is flipped so, or not. */
static uint64_t hash_of_variant(unsigned i)
{
    unsigned char body[N_PAIRS * 16 + 8] = {0};
    struct api_call call = {.method = "POST", .path = "/rotate", .body = (const char *)body, .body_bytes = sizeof body};
    struct call_key made;
    assert_true(call_key_make(&call, &made));
    size_t shift = (8 - (made.n - sizeof body) % 8) % 8; /* where a word of the key begins in the body */
    for (unsigned p = 0; p < N_PAIRS; p++)
        if (i >> p & 1) {
            unsigned char *word = body + shift + 16 * p;
            word[7] ^= 0x80;
            word[15] ^= 0x80;
            word[12] ^= 0x04;
        }
    assert_true(call_key_make(&call, &made));
    return call_key_hash(&made);
}

TEST(chosen_requests_do_not_meet)
{
    uint64_t *hashes = malloc(N_VARIANTS * sizeof *hashes);
    for (unsigned i = 0; i < N_VARIANTS; i++)
        hashes[i] = hash_of_variant(i);
    qsort(hashes, N_VARIANTS, sizeof *hashes, compare);
    for (unsigned i = 1; i < N_VARIANTS; i++)
        assert_true(hashes[i] != hashes[i - 1]);
    free(hashes);
}
