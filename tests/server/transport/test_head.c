/* Heads and chunks, whole and cut anywhere: the verdict must not depend on how the bytes came, and bytes nobody chose
 * must not be read beyond their end. What is refused with which status is the table tests/cases/heads.jsonl, which
 * tests/http/transport/test_hostile_heads.py sends over a socket. */
#include "server/transport/heads.h"
#include "tests/support/rows.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

/* ---- The table --------------------------------------------------------------------------------------------------- */

struct row {
    const char *id;
    char *head;
    size_t n;
    int status; /* of its refusal; 0: it is served, or what a proxy would make of it decides */
    bool is_known;
};

/* Each character of the table is a byte. Another request follows, as it does over the socket. */
static void add_text(struct row *row, json_t *text, json_int_t times)
{
    const char *from = json_string_value(text);
    size_t n = json_string_length(text);
    for (json_int_t k = 0; k < times; k++) {
        row->head = realloc(row->head, row->n + n + 1);
        for (size_t i = 0; i < n; i++) {
            bool is_wide = (from[i] & 0xe0) == 0xc0;
            row->head[row->n++] = is_wide ? (char)((from[i] & 3) << 6 | (from[i + 1] & 0x3f)) : from[i];
            i += is_wide;
        }
    }
}

static struct row row_of(json_t *json)
{
    json_t *head = json_object_get(json, "head"), *expect = json_object_get(json, "expect"), *part;
    struct row row = {.id = json_string_value(json_object_get(json, "id"))};
    size_t i;
    if (json_is_string(head))
        add_text(&row, head, 1);
    json_array_foreach(head, i, part)
    {
        json_t *repeated = json_object_get(part, "$repeat");
        add_text(&row, repeated ? repeated : part, repeated ? json_integer_value(json_object_get(part, "times")) : 1);
    }
    json_t *behind = json_string("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    add_text(&row, behind, 1);
    json_decref(behind);
    row.is_known = json_object_get(expect, "status");
    if (!json_object_get(expect, "goes_on"))
        row.status = (int)json_integer_value(json_object_get(expect, "status"));
    return row;
}

static void each_row(void (*check)(const struct row *row))
{
    json_t *rows = rows_of("heads"), *json;
    size_t i;
    json_array_foreach(rows, i, json)
    {
        struct row row = row_of(json);
        check(&row);
        free(row.head);
    }
    json_decref(rows);
}

/* ---- The whole way of a head ------------------------------------------------------------------------------------- */

/* A copy without what follows, so that a sanitizer sees every step too far. */
static char *copy_of(const char *text, size_t n)
{
    char *copy = malloc(n + !n);
    assert_non_null(copy);
    memcpy(copy, text, n);
    return copy;
}

/* Shows the head in steps, each time in a copy as long as what has come. The bytes, as the scan leaves them. */
static char *scan_in_steps(struct head_scan *scan, const char *text, size_t n, size_t step)
{
    char *held = copy_of(text, 0);
    *scan = (struct head_scan){0};
    for (size_t have = 0; have < n;) {
        size_t more = step < n - have ? step : n - have;
        char *longer = malloc(have + more);
        assert_non_null(longer);
        memcpy(longer, held, have);
        memcpy(longer + have, text + have, more);
        free(held);
        held = longer;
        have += more;
        if (head_scan(scan, held, have))
            break;
    }
    return held;
}

/* The number of bytes that chunk_scan lets through, shown in steps of which it sees again what it did not take. */
static size_t chunks_in_steps(struct chunk_scan *scan, const char *text, size_t n, size_t step)
{
    size_t taken = 0;
    *scan = (struct chunk_scan){.n_room = 1000};
    for (size_t have = 0; have < n && !scan->refusal.status && scan->at != CHUNK_DONE;) {
        have = have + step < n ? have + step : n;
        char *copy = copy_of(text + taken, have - taken);
        taken += chunk_scan(scan, copy, have - taken);
        free(copy);
    }
    return taken;
}

/* The checks behind the grammar, of a complete head. */
static int status_of_checks(char *text)
{
    char *line = strtok(text, "\r\n"), *target = strchr(line, ' ') + 1, *version = strchr(target, ' ') + 1;
    struct http_head head = {.version = version, .method = line};
    const char *host, *path, *query;
    target[-1] = version[-1] = '\0';
    while ((line = strtok(NULL, "\r\n"))) {
        char *colon = strchr(line, ':');
        *colon = '\0';
        http_head_take(&head, line, colon + 1 + strspn(colon + 1, " \t"));
    }
    int status = http_head_check(&head).status;
    return status ? status : api_target_split(target, &host, &path, &query) ? 400 : 0;
}

/* What a server says of these bytes before it looks at what is asked; 0: nothing. It passes over one empty line. */
static int verdict(const struct row *row, size_t step)
{
    size_t n_blank = row->n > 2 && memcmp(row->head, "\r\n", 2) == 0 ? 2 : 0, n = row->n - n_blank;
    const char *text = row->head + n_blank;
    struct head_scan scan;
    struct chunk_scan chunks = {.refusal = {.status = 0}};
    char *held = scan_in_steps(&scan, text, n, step);
    int status = scan.refusal.status;
    if (!status && scan.is_chunked)
        chunks_in_steps(&chunks, text + scan.n_judged, n - scan.n_judged, step);
    if (!status) {
        held[scan.n_judged - 1] = '\0';
        status = status_of_checks(held);
    }
    free(held);
    return status ? status : chunks.refusal.status;
}

/* What is refused with which status, and that the verdict does not depend on how the bytes come. */
static void check_verdicts(const struct row *row)
{
    static const size_t steps[] = {1, 2, 3, 7, 50};
    int whole = verdict(row, row->n);
    if (row->is_known && whole != row->status)
        fail_msg("%s: %d, not %d", row->id, whole, row->status);
    for (size_t i = 0; i < N_OF(steps) && row->n < 1000; i++)
        if (verdict(row, steps[i]) != whole)
            fail_msg("%s: %d in steps of %zu", row->id, verdict(row, steps[i]), steps[i]);
}

TEST(each_row_has_its_verdict) { each_row(check_verdicts); }

/* Rows with a few bytes changed: whole and in steps alike. */
static void check_changed(const struct row *row)
{
    static uint64_t seed = 1;
    for (int round = 0; round < 60 && row->n > 0 && row->n < 400; round++) {
        char text[400];
        memcpy(text, row->head, row->n);
        for (int change = 0; change < 2; change++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[(seed >> 33) % row->n] = "\r\n\0 \t:,0Aa;\x80"[(seed >> 20) % 12];
        }
        struct head_scan whole, parts;
        free(scan_in_steps(&whole, text, row->n, row->n));
        free(scan_in_steps(&parts, text, row->n, 1 + (seed >> 40) % 9));
        assert_int_equal(parts.refusal.status, whole.refusal.status);
        assert_int_equal(parts.n_judged, whole.n_judged);
        assert_int_equal(parts.length, whole.length);
        assert_int_equal(parts.is_chunked, whole.is_chunked);
    }
}

TEST(changed_bytes) { each_row(check_changed); }

TEST(what_a_head_says)
{
    static const char counted[] = "POST /a?b=c&d HTTP/1.1\r\nHost: x\r\nContent-Length: 12 \t\r\n\r\n{\"a\":1}";
    static const char chunked[] =
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:chunked \r\nCookie: a=b; c=d\r\n\r\n";
    struct head_scan scan;
    free(scan_in_steps(&scan, counted, sizeof counted - 1, 7));
    assert_int_equal(scan.refusal.status, 0);
    assert_int_equal(scan.length, 12);
    assert_false(scan.is_chunked);
    assert_int_equal(scan.n_judged, sizeof counted - 1 - 7);
    assert_int_equal(scan.n_extra, (2 + 2) * HEAD_ENTRY_COST); /* two parameters, two fields */
    free(scan_in_steps(&scan, chunked, sizeof chunked - 1, 7));
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

/* What is bulky is not read on the loop: by the bytes that have come. */
TEST(first_bytes)
{
    static const struct {
        bool is_bulky;
        const char *bytes;
    } cases[] = {
        {false, ""},
        {false, "\n"},
        {false, "GET / HTTP/1.1"},
        {false, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
        {false, "POST / HTTP/1.1\r\nContent-Length: 65536\r\n\r\n"},
        {true, "POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n"},
        {true, "PUT / HTTP/1.1\r\nHost: a\r\ncontent-length:\t 99999999999999999999999999\r\n\r\n"},
        {true, "POST / HTTP/1.1\nTRANSFER-ENCODING: chunked\n\n"},
        {false, "POST / HTTP/1.1\r\nX-Content-Length: 99999999\r\n\r\n"},
        {false, "POST / HTTP/1.1\r\n\r\nContent-Length: 99999999\r\n\r\n"}, /* that is the body */
        {false, "POST / HTTP/1.1\r\nContent-Length:"},
        {false, "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"},
        {false, "POST / HTTP/1.1\r\nTransfer-Encodin"},
    };
    for (size_t i = 0; i < N_OF(cases); i++) {
        size_t n = strlen(cases[i].bytes);
        char *bytes = malloc(n); /* without an end, so that reading too far is seen */
        memcpy(bytes, cases[i].bytes, n);
        if (http_begins_bulky(bytes, n) != cases[i].is_bulky)
            fail_msg("case %zu: %s", i, cases[i].bytes);
        free(bytes);
    }
}
