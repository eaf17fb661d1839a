/* Owns the grammar of request heads: request line, fields, and the framing of the body (RFC 9110, RFC 9112).
 *
 * What differs between two parsers is what an attacker uses (request smuggling, RFC 9112 §11.2), so this one accepts
 * the grammar as written and nothing else: CR LF only, no blank before a colon, no folding, one length, `chunked` as
 * the only coding. It scans a head as it arrives and remembers where it is, so a head that arrives byte by byte costs
 * no more than one that arrives at once.
 *
 * Most heads are some hundred bytes of plain text: eight bytes at a time are tested for control characters, and a table
 * decides only where one is suspected. The refusal is a status and a sentence that names the rule. */
#include "server/transport/heads.h"

#include <string.h>
#include <strings.h>

/* ---- Alphabets (RFC 9110, 5.6.2 and 5.5; RFC 3986) --------------------------------------------------------------- */

enum { TOKEN = 1, TARGET = 2, VALUE = 4, HOST = 8 };

/* A target may contain the characters that RFC 3986 excludes but no program takes for a delimiter: {} | " < > \ ^ `. */
static const uint8_t classes[256] = {
    ['\t'] = VALUE,
    [' '] = VALUE,
    ['!'] = 15,
    ['"'] = TARGET | VALUE,
    ['#'] = TOKEN | VALUE,
    ['$' ... '\''] = 15,
    ['('] = 14,
    [')'] = 14,
    ['*' ... '+'] = 15,
    [','] = 14,
    ['-' ... '.'] = 15,
    ['/'] = TARGET | VALUE,
    ['0' ... '9'] = 15,
    [':' ... ';'] = 14,
    ['<'] = TARGET | VALUE,
    ['='] = 14,
    ['>' ... '@'] = TARGET | VALUE,
    ['A' ... 'Z'] = 15,
    ['['] = 14,
    ['\\'] = TARGET | VALUE,
    [']'] = 14,
    ['^'] = TOKEN | TARGET | VALUE,
    ['_'] = 15,
    ['`'] = TOKEN | TARGET | VALUE,
    ['a' ... 'z'] = 15,
    ['{'] = TARGET | VALUE,
    ['|'] = TOKEN | TARGET | VALUE,
    ['}'] = TARGET | VALUE,
    ['~'] = 15,
    [0x80 ... 0xff] = VALUE,
};

static size_t span(const char *text, size_t n, unsigned class)
{
    size_t i = 0;
    while (i < n && (classes[(unsigned char)text[i]] & class))
        i++;
    return i;
}

/* Tests eight bytes at a time for a byte below 32 or equal to 127. A borrow between bytes may flag the next higher byte
 * by mistake; then the table decides, as it does for tabs. */
static size_t span_value(const char *text, size_t n)
{
    const uint64_t ones = UINT64_MAX / 255, highs = ones * 128;
    size_t i = 0;
    for (uint64_t word; i + 8 <= n; i += 8) {
        memcpy(&word, text + i, 8);
        uint64_t rubout = word ^ (ones * 127);
        if ((((word - ones * 32) & ~word) | ((rubout - ones) & ~rubout)) & highs)
            break;
    }
    while (i < n) {
        size_t sound = span(text + i, n - i < 8 ? n - i : 8, VALUE);
        i += sound;
        if (sound < 8)
            break;
    }
    return i;
}

static bool begins(const char *text, size_t n, const char *with)
{
    size_t n_with = strlen(with);
    return n >= n_with && strncasecmp(text, with, n_with) == 0;
}

static bool is_word(const char *text, size_t n, const char *word) { return n == strlen(word) && begins(text, n, word); }

static bool refuse(struct http_refusal *refusal, int status, const char *detail)
{
    *refusal = (struct http_refusal){status, detail};
    return false;
}

/* ---- Request line ------------------------------------------------------------------------------------------------ */

static bool is_version(struct head_scan *scan, const char *text, size_t n)
{
    bool has_form = n == 8 && memcmp(text, "HTTP/", 5) == 0 && text[5] >= '0' && text[5] <= '9' && text[6] == '.' &&
                    text[7] >= '0' && text[7] <= '9';
    if (!has_form)
        return refuse(&scan->refusal, 400, "the request line does not end with one blank and HTTP/1.1 or HTTP/1.0");
    if (text[5] != '1')
        return refuse(&scan->refusal, 505, "this server speaks HTTP/1.1 and HTTP/1.0");
    scan->is_http_1_0 = text[7] == '0';
    return true;
}

/* "/path?query", or "http://host/path" (RFC 9112, 3.2.2). */
static bool is_target(const char *target, size_t n)
{
    if (*target == '/')
        return true;
    size_t n_scheme = begins(target, n, "http://") ? 7 : begins(target, n, "https://") ? 8 : n;
    size_t n_host = span(target + n_scheme, n - n_scheme, HOST), end = n_scheme + n_host;
    return n_host > 0 && (end == n || target[end] == '/' || target[end] == '?');
}

static bool take_request_line(struct head_scan *scan, const char *line, size_t n)
{
    size_t n_method = span(line, n, TOKEN);
    if (n_method == 0 || n_method == n || line[n_method] != ' ')
        return refuse(&scan->refusal, 400, "the request does not begin with a method and one blank");
    const char *target = line + n_method + 1;
    size_t n_left = n - n_method - 1, n_target = span(target, n_left, TARGET);
    if (n_target == 0 || (n_target < n_left && target[n_target] != ' '))
        return refuse(&scan->refusal, 400, "the request's target is empty or has a character that must be %-encoded");
    if (n_target == n_left)
        return refuse(&scan->refusal, 400, "the request line has no HTTP version");
    scan->is_head = n_method == 4 && memcmp(line, "HEAD", 4) == 0;
    scan->has_request_line = true;
    const char *query = memchr(target, '?', n_target);
    for (size_t i = query ? (size_t)(query - target) : n_target; i < n_target; i++)
        scan->n_extra += target[i] == '?' || target[i] == '&' ? HEAD_ENTRY_COST : 0;
    if (!is_version(scan, target + n_target + 1, n_left - n_target - 1))
        return false;
    return is_target(target, n_target) ||
           refuse(&scan->refusal, 400, "the request's target is not a path that starts with /, nor http://host/path");
}

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

struct field {
    char *value, *end; /* of the value; blanks may follow before the end of the line */
    char *line_end;
    size_t n_name;
};

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Splits a line of the head or of a trailer. */
static bool split_field(struct http_refusal *refusal, char *line, size_t n, struct field *field)
{
    size_t n_name = span(line, n, TOKEN);
    if (is_blank(*line))
        return refuse(refusal, 400, "a line of the head begins with a blank; folded headers are not accepted");
    if (n_name > 0 && n_name < n && is_blank(line[n_name]))
        return refuse(refusal, 400, "a header has a blank between its name and the colon");
    if (n_name == 0 || n_name == n || line[n_name] != ':')
        return refuse(refusal, 400, "a line of the head is not \"Name: value\"");
    char *value = line + n_name + 1;
    field->line_end = field->end = line + n;
    if (span_value(value, n - n_name - 1) != n - n_name - 1)
        return refuse(refusal, 400, "a header's value has a control character, as a zero byte or a lone CR");
    while (value < field->end && is_blank(*value))
        value++;
    while (field->end > value && is_blank(field->end[-1]))
        field->end--;
    field->value = value;
    field->n_name = n_name;
    return true;
}

/* "5  " becomes "  5": the HTTP library would count trailing blanks as part of the value. */
static void blanks_first(struct field *field)
{
    size_t n = (size_t)(field->end - field->value), n_blank = (size_t)(field->line_end - field->end);
    if (n_blank == 0)
        return;
    memmove(field->value + n_blank, field->value, n);
    memset(field->value, ' ', n_blank);
    field->value += n_blank;
    field->end = field->line_end;
}

static bool take_host(struct head_scan *scan, const struct field *field)
{
    size_t n = (size_t)(field->end - field->value);
    if (scan->n_hosts++ > 0 || span(field->value, n, HOST) != n)
        return refuse(&scan->refusal, 400, "the Host header is not one host name with an optional port");
    return true;
}

static void count_cookies(struct head_scan *scan, const struct field *field)
{
    scan->n_extra += HEAD_ENTRY_COST + (size_t)(field->end - field->value);
    for (const char *at = field->value; at < field->end; at++)
        scan->n_extra += *at == ';' || *at == ',' ? HEAD_ENTRY_COST : 0;
}

static bool take_field(struct head_scan *scan, char *line, size_t n)
{
    struct field field;
    if (!split_field(&scan->refusal, line, n, &field))
        return false;
    blanks_first(&field);
    scan->n_extra += HEAD_ENTRY_COST;
    switch (field.n_name) {
    case 4: return !begins(line, n, "Host") || take_host(scan, &field);
    case 6:
        if (begins(line, n, "Cookie"))
            count_cookies(scan, &field);
        scan->has_expect = scan->has_expect || begins(line, n, "Expect");
        return true;
    case 14:
        if (!begins(line, n, "Content-Length"))
            return true;
        if (scan->n_lengths++ > 0)
            return refuse(&scan->refusal, 400, "the request has more than one Content-Length");
        if (field.value == field.end)
            return refuse(&scan->refusal, 400, "Content-Length is not a number of bytes");
        for (const char *at = field.value; at < field.end; at++) {
            if (*at < '0' || *at > '9')
                return refuse(&scan->refusal, 400, "Content-Length is not a number of bytes");
            if (scan->length > INT64_MAX / 10 - 1 || field.end - field.value > 19)
                return refuse(&scan->refusal, 413,
                              "Content-Length has more than 19 digits or is beyond 2^63: --max-body");
            scan->length = scan->length * 10 + (uint64_t)(*at - '0');
        }
        return true;
    case 17:
        if (!begins(line, n, "Transfer-Encoding"))
            return true;
        if (scan->n_codings++ > 0 || !is_word(field.value, (size_t)(field.end - field.value), "chunked"))
            return refuse(&scan->refusal, 501, "Transfer-Encoding may only be \"chunked\", once");
        scan->is_chunked = true;
        return true;
    default: return true;
    }
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static bool take_end(struct head_scan *scan)
{
    if (scan->n_hosts == 0 && !scan->is_http_1_0)
        return refuse(&scan->refusal, 400, "the request has no Host header");
    if (scan->is_chunked && scan->n_lengths > 0)
        return refuse(&scan->refusal, 400, "the request has both Transfer-Encoding and Content-Length; send one");
    if (scan->is_chunked && scan->is_http_1_0)
        return refuse(&scan->refusal, 400, "HTTP/1.0 has no Transfer-Encoding; send Content-Length");
    return true;
}

/* True while the head is within its limit. The request line is the first part that can be too long. */
static bool has_room(struct head_scan *scan, size_t n_bytes)
{
    size_t cost = (n_bytes > HEAD_COST_MIN ? n_bytes : HEAD_COST_MIN) + scan->n_extra;
    if (cost <= HEAD_COST_MAX)
        return true;
    scan->cost = cost;
    if (scan->n_judged == 0)
        return refuse(
            &scan->refusal, 414,
            "the request line costs more than 9216 bytes: its length, or 5120 if that is more, and 64 for every "
            "query parameter");
    return refuse(&scan->refusal, 431,
                  "the request's head costs more than 9216 bytes: its length, or 5120 if that is more, 64 for every "
                  "field, query parameter and cookie, and the length of cookies");
}

/* Checks a line of n bytes, CR LF included. True: continue with the next line. */
static bool take_line(struct head_scan *scan, char *line, size_t n)
{
    if (n < 2 || line[n - 2] != '\r')
        return refuse(&scan->refusal, 400, "a line of the head ends with LF alone; lines end with CR LF");
    bool is_sound = !scan->has_request_line ? take_request_line(scan, line, n - 2)
                    : n > 2                 ? take_field(scan, line, n - 2)
                                            : take_end(scan);
    if (!is_sound || !has_room(scan, scan->n_judged + n))
        return false;
    scan->n_judged += n;
    scan->n_searched = scan->n_judged;
    return n > 2;
}

/* Without a body there is nothing to wait for (RFC 9110, 10.1.1). 0.9.75 sends 100 even then, and reads the next
 * request as the body. So the field is renamed. Always true, since the head is complete. */
static bool hide_expect(const struct head_scan *scan, char *head)
{
    char *end = scan->has_expect && !scan->is_chunked && scan->length == 0 ? head + scan->n_judged : head;
    for (char *line = head; line < end; line = (char *)memchr(line, '\n', (size_t)(end - line)) + 1)
        if (begins(line, (size_t)(end - line), "Expect:"))
            *line = 'X';
    return true;
}

bool head_scan(struct head_scan *scan, char *head, size_t n)
{
    /* bytes that are not HTTP, e.g. TLS, may never contain the end of a line */
    if (n > 0 && !(classes[(unsigned char)*head] & TOKEN))
        return !refuse(&scan->refusal, 400, "the request does not begin with a method and one blank");
    for (char *end; (end = memchr(head + scan->n_searched, '\n', n - scan->n_searched));) {
        size_t n_line = (size_t)(end + 1 - (head + scan->n_judged));
        if (!take_line(scan, head + scan->n_judged, n_line))
            return hide_expect(scan, head);
    }
    scan->n_searched = n;
    return !has_room(scan, n);
}

/* ---- Chunks (RFC 9112, 7.1) -------------------------------------------------------------------------------------- */

enum { CHUNK_LINE_MAX = 256, CHUNK_DIGITS_MAX = 15 };

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* "5" or "5;name=value". */
static bool take_size(struct chunk_scan *scan, const char *line, size_t n)
{
    uint64_t size = 0;
    size_t i = 0;
    for (; i < n && i <= CHUNK_DIGITS_MAX && hex_digit(line[i]) >= 0; i++)
        size = size * 16 + (uint64_t)hex_digit(line[i]);
    if (i == 0 || i > CHUNK_DIGITS_MAX)
        return refuse(&scan->refusal, 400, "a chunk does not begin with its size in one to 15 hexadecimal digits");
    if (i < n && (line[i] != ';' || span_value(line + i, n - i) != n - i))
        return refuse(&scan->refusal, 400, "a chunk's size is followed by something else than CR LF or ;extension");
    scan->n_data = size;
    scan->at = size ? CHUNK_DATA : CHUNK_TRAILER;
    return true;
}

/* A trailer is checked and then ignored. A trailer that would change the framing or routing of the message is
 * refused. */
static bool take_trailer(struct chunk_scan *scan, const char *line, size_t n)
{
    static const char *const forbidden[] = {"Content-Length", "Transfer-Encoding", "Host",         "Connection",
                                            "Authorization",  "Content-Encoding",  "Content-Type", "Trailer"};
    struct field field;
    if (n == 0) {
        scan->at = CHUNK_DONE;
        return true;
    }
    if (!split_field(&scan->refusal, (char *)(uintptr_t)line, n, &field))
        return false;
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (is_word(line, field.n_name, forbidden[i]))
            return refuse(&scan->refusal, 400, "a trailer has a field that belongs into the head");
    if (n + 2 + HEAD_ENTRY_COST > scan->n_room) {
        scan->cost = HEAD_COST_MAX - scan->n_room + n + 2 + HEAD_ENTRY_COST;
        return refuse(&scan->refusal, 431,
                      "head and trailers together cost more than 9216 bytes: their length, and 64 for every field");
    }
    scan->n_room -= n + 2 + HEAD_ENTRY_COST;
    return true;
}

/* Number of bytes of the line consumed; 0: its end has not arrived yet, or it is refused. */
static size_t take_chunk_line(struct chunk_scan *scan, const char *bytes, size_t n)
{
    size_t n_max = scan->at == CHUNK_SIZE ? CHUNK_LINE_MAX : HEAD_COST_MAX;
    const char *end = memchr(bytes, '\n', n < n_max ? n : n_max);
    if (!end && n < n_max)
        return 0;
    size_t n_line = end ? (size_t)(end + 1 - bytes) : 0;
    if (n_line < 2 || bytes[n_line - 2] != '\r')
        return refuse(&scan->refusal, 400, "a line between chunks is too long, or does not end with CR LF");
    bool is_sound = scan->at == CHUNK_SIZE ? take_size(scan, bytes, n_line - 2) : take_trailer(scan, bytes, n_line - 2);
    return is_sound ? n_line : 0;
}

static size_t take_data_end(struct chunk_scan *scan, const char *bytes, size_t n)
{
    if (bytes[0] != '\r' || (n > 1 && bytes[1] != '\n'))
        return refuse(&scan->refusal, 400, "a chunk is longer than its size states: CR LF is missing after it");
    if (n < 2)
        return 0;
    scan->at = CHUNK_SIZE;
    return 2;
}

static size_t take_data(struct chunk_scan *scan, size_t n)
{
    size_t taken = n < scan->n_data ? n : (size_t)scan->n_data;
    scan->n_data -= taken;
    scan->at = scan->n_data ? CHUNK_DATA : CHUNK_DATA_END;
    return taken;
}

size_t chunk_scan(struct chunk_scan *scan, const char *bytes, size_t n)
{
    size_t at = 0;
    for (size_t taken = 1; at < n && taken > 0 && scan->at != CHUNK_DONE; at += taken)
        taken = scan->at == CHUNK_DATA       ? take_data(scan, n - at)
                : scan->at == CHUNK_DATA_END ? take_data_end(scan, bytes + at, n - at)
                                             : take_chunk_line(scan, bytes + at, n - at);
    return at;
}
