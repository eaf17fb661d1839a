/* Heads and chunks, whole and cut anywhere: the verdict must not depend on how the bytes came, and bytes nobody chose
 * must not be read beyond their end. What is refused with which status is tests/http/transport/test_hostile_heads.py's
 * table. */
#include "server/transport/heads.h"
#include "tests/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

/* Shows the head in steps, each time in a copy as long as what has come, so that a sanitizer sees every step too far.
 */
static struct head_scan scan_in_steps(const char *text, size_t n, size_t step)
{
    struct head_scan scan = {0};
    char *held = NULL;
    for (size_t have = 0; have < n;) {
        size_t more = step < n - have ? step : n - have;
        char *longer = malloc(have + more);
        assert_non_null(longer);
        if (held)
            memcpy(longer, held, have);
        memcpy(longer + have, text + have, more);
        free(held);
        held = longer;
        have += more;
        if (head_scan(&scan, held, have))
            break;
    }
    free(held);
    return scan;
}

static const char *const heads[] = {
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /a?b=c&d HTTP/1.1\r\nHost: x\r\nContent-Length: 12 \t\r\n\r\n{\"a\":1}",
    "PUT http://h/ HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:chunked \r\nCookie: a=b; c=d\r\n\r\n",
    "GET / HTTP/1.1\nHost: x\n\n",
    "GET / HTTP/2.0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nX: a long value with \x7f in it, after words\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "\x16\x03\x01",
};

TEST(steps)
{
    for (size_t i = 0; i < N_OF(heads); i++) {
        size_t n = strlen(heads[i]);
        struct head_scan whole = scan_in_steps(heads[i], n, n);
        for (size_t step = 1; step < n; step++) {
            struct head_scan parts = scan_in_steps(heads[i], n, step);
            assert_int_equal(parts.refusal.status, whole.refusal.status);
            assert_int_equal(parts.n_judged, whole.n_judged);
            assert_int_equal(parts.length, whole.length);
            assert_int_equal(parts.is_chunked, whole.is_chunked);
        }
    }
}

TEST(what_a_head_says)
{
    struct head_scan scan = scan_in_steps(heads[1], strlen(heads[1]), 7);
    assert_int_equal(scan.refusal.status, 0);
    assert_int_equal(scan.length, 12);
    assert_false(scan.is_chunked);
    assert_int_equal(scan.n_judged, strlen(heads[1]) - 7);
    assert_int_equal(scan.n_extra, (2 + 2) * HEAD_ENTRY_COST); /* two parameters, two fields */
    scan = scan_in_steps(heads[3], strlen(heads[3]), 7);
    assert_int_equal(scan.refusal.status, 0);
    assert_true(scan.is_chunked);
    assert_int_equal(scan.n_extra, 5 * HEAD_ENTRY_COST + 8); /* three fields, two cookies and their copy */
}

TEST(blanks_go_first)
{
    char head[] = "GET / HTTP/1.1\r\nHost: x\t \r\nContent-Length: 5 \r\n\r\n";
    struct head_scan scan = {0};
    assert_true(head_scan(&scan, head, strlen(head)));
    assert_string_equal(head, "GET / HTTP/1.1\r\nHost:   x\r\nContent-Length:  5\r\n\r\n");
}

enum sound { SOUND_TOKEN = 1, SOUND_VALUE, SOUND_TARGET, SOUND_DIGIT };

#define ALPHANUMERIC "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool is_expected(enum sound sound, int c, char also)
{
    switch (sound) {
    case SOUND_TOKEN: return c && (c == also || strchr(ALPHANUMERIC "!#$%&'*+-.^_`|~", c));
    case SOUND_VALUE: return c == '\t' || (c >= ' ' && c != 0x7f);
    case SOUND_TARGET: return c > ' ' && c < 0x7f && c != '#';
    case SOUND_DIGIT: return c >= '0' && c <= '9';
    }
    return false;
}

/* Each value a byte can have, in the place of the head's \1: at which of them is it sound? */
TEST(alphabets)
{
    static const struct {
        enum sound sound;
        char also;
        const char *head;
    } cases[] = {
        {SOUND_TOKEN, 0, "G\1T / HTTP/1.1\r\nHost: x\r\n\r\n"},
        {SOUND_TOKEN, ':', "GET / HTTP/1.1\r\nHost: x\r\nX\1X: y\r\n\r\n"},
        {SOUND_VALUE, 0, "GET / HTTP/1.1\r\nHost: x\r\nX: y\1z\r\n\r\n"},
        {SOUND_VALUE, 0, "GET / HTTP/1.1\r\nHost: x\r\nX: 0123456789\0010123456789\r\n\r\n"},
        {SOUND_TARGET, 0, "GET /a\1b HTTP/1.1\r\nHost: x\r\n\r\n"},
        {SOUND_DIGIT, 0, "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\0011\r\n\r\n"},
        {SOUND_DIGIT, 0, "GET / HTTP/1.\1\r\nHost: x\r\n\r\n"},
    };
    for (size_t i = 0; i < N_OF(cases); i++)
        for (int c = 0; c < 256; c++) {
            char head[128];
            size_t n = strlen(cases[i].head);
            memcpy(head, cases[i].head, n);
            *(char *)memchr(head, 1, n) = (char)c;
            struct head_scan scan = {0};
            assert_true(head_scan(&scan, head, n));
            if ((scan.refusal.status == 0) != is_expected(cases[i].sound, c, cases[i].also))
                fail_msg("byte %d in case %zu: %d", c, i, scan.refusal.status);
        }
}

/* The number of bytes chunk_scan lets through, shown in steps of which it sees again what it did not take. */
static size_t chunks_in_steps(struct chunk_scan *scan, const char *text, size_t n, size_t step)
{
    size_t taken = 0;
    *scan = (struct chunk_scan){.n_room = 1000};
    for (size_t have = 0; have < n && !scan->refusal.status && scan->at != CHUNK_DONE;) {
        have = have + step < n ? have + step : n;
        char *copy = malloc(have - taken);
        assert_non_null(copy);
        memcpy(copy, text + taken, have - taken);
        taken += chunk_scan(scan, copy, have - taken);
        free(copy);
    }
    return taken;
}

TEST(chunk_steps)
{
    static const struct {
        int status;
        bool is_done;
        const char *text;
    } cases[] = {
        {0, true, "0\r\n\r\nGET"},
        {0, true, "5\r\nab\r\nc\r\n00a;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\nGET / "},
        {0, false, "5\r\nab"},
        {0, false, "5"},
        {400, false, "5\r\nabcde0\r\n\r\n"},
        {400, false, "5\r\nabcdef\r\n0\r\n\r\n"},
        {400, false, "2\r\nab\r\n0\r\nHost: x\r\n\r\n"},
        {400, false, "2\r\nab\r\n0x0\r\n\r\n"},
        {400, false, "7fffffffffffffff\r\n\r\n"},
        {400, false, "\r\n"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        size_t n = strlen(cases[i].text);
        struct chunk_scan whole, parts;
        size_t n_whole = chunks_in_steps(&whole, cases[i].text, n, n);
        assert_int_equal(whole.refusal.status, cases[i].status);
        assert_int_equal(whole.at == CHUNK_DONE, cases[i].is_done);
        for (size_t step = 1; step < n; step++) {
            assert_int_equal(chunks_in_steps(&parts, cases[i].text, n, step), n_whole);
            assert_int_equal(parts.refusal.status, whole.refusal.status);
            assert_int_equal(parts.at, whole.at);
        }
    }
}

/* Sound heads with a few bytes changed: whole and in steps alike. */
TEST(changed_bytes)
{
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        char text[128];
        size_t n = strlen(heads[(size_t)round % N_OF(heads)]);
        memcpy(text, heads[(size_t)round % N_OF(heads)], n);
        for (int change = 0; change < 2; change++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[(seed >> 33) % n] = "\r\n\0 \t:,0Aa;\x80"[(seed >> 20) % 12];
        }
        struct head_scan whole = scan_in_steps(text, n, n), parts = scan_in_steps(text, n, 1 + (seed >> 40) % 9);
        assert_int_equal(parts.refusal.status, whole.refusal.status);
        assert_int_equal(parts.n_judged, whole.n_judged);
        assert_int_equal(parts.length, whole.length);
    }
}
