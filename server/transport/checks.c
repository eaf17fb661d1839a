/* Owns the checks of a request's head. The HTTP library accepts more than it should (several lengths, unknown codings,
 * zero bytes in paths, a missing Host); these checks refuse such requests.
 *
 * head.c has the grammar of bytes; here is what a well-formed head must not mean: a Host that is not ours (a page of
 * another site may name 127.0.0.1, which is DNS rebinding), two Hosts, a body on a GET whose answer a cache would store
 * for others (RFC 9110, 9.3.1), a path with a zero byte, which would end the C string before the program has seen the
 * rest. Each refusal names the rule. */
#define _GNU_SOURCE /* strchrnul */
#include "server/transport/heads.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const header_names[HTTP_N_HEADERS] = {
    [HTTP_HOST] = "Host",
    [HTTP_CONTENT_LENGTH] = "Content-Length",
    [HTTP_TRANSFER_ENCODING] = "Transfer-Encoding",
    [HTTP_CONTENT_TYPE] = "Content-Type",
    [HTTP_CONTENT_ENCODING] = "Content-Encoding",
    [HTTP_ACCEPT] = "Accept",
    [HTTP_ACCEPT_LANGUAGE] = "Accept-Language",
    [HTTP_ACCEPT_ENCODING] = "Accept-Encoding",
    [HTTP_LAST_EVENT_ID] = "Last-Event-ID",
    [HTTP_FORWARDED_PROTO] = "X-Forwarded-Proto",
    [HTTP_MCP_VERSION] = "MCP-Protocol-Version",
    [HTTP_MCP_METHOD] = "Mcp-Method",
    [HTTP_MCP_NAME] = "Mcp-Name",
    [HTTP_IF_MATCH] = "If-Match",
    [HTTP_IF_NONE_MATCH] = "If-None-Match",
    [HTTP_IF_RANGE] = "If-Range",
    [HTTP_RANGE] = "Range",
    [HTTP_ORIGIN] = "Origin",
    [HTTP_ACCESS_METHOD] = "Access-Control-Request-Method",
    [HTTP_ACCESS_HEADERS] = "Access-Control-Request-Headers",
    [HTTP_INFERENCE_HEADER] = "Inference-Header-Content-Length",
    [HTTP_REQUEST_ID] = "X-Request-Id",
    [HTTP_TRACEPARENT] = "traceparent",
    [HTTP_AUTHORIZATION] = "Authorization",
    [HTTP_REQUEST_TIMEOUT] = "X-Request-Timeout",
    [HTTP_FETCH_SITE] = "Sec-Fetch-Site",
    [HTTP_FETCH_PURPOSE] = "Sec-Purpose",
    [HTTP_PURPOSE] = "Purpose",
};

void http_head_take(struct http_head *head, const char *name, const char *value)
{
    for (size_t i = 0; i < HTTP_N_HEADERS; i++) {
        /* most names differ in their first letter; bit 32 is the difference between upper and lower case */
        if (((*name ^ *header_names[i]) & ~32) || strcasecmp(name, header_names[i]) != 0)
            continue;
        if (head->n[i]++ == 0)
            head->first[i] = value ? value : "";
        return;
    }
}

static bool are_digits(const char *text) { return *text && text[strspn(text, "0123456789")] == '\0'; }

/* A host is a name, an IPv4 address or [IPv6], optionally with a port; RFC 9110 allows an empty one where there is no
 * authority. Only the alphabet is checked here; see http_head_names_us. */
static bool is_host(const char *text)
{
    static const char marks[] =
        ".:-_~%!$&'()*+,;=[]"; /* strspn would build a table of the whole alphabet for each request */
    for (; *text; text++)
        if (!(*text >= '0' && *text <= '9') && !((*text | 32) >= 'a' && (*text | 32) <= 'z') && !strchr(marks, *text))
            return false;
    return true;
}

static struct http_refusal check_framing(const struct http_head *head)
{
    const char *coding = head->first[HTTP_TRANSFER_ENCODING], *length = head->first[HTTP_CONTENT_LENGTH];
    if (coding && length)
        return (struct http_refusal){400, "the request has both Transfer-Encoding and Content-Length; send one"};
    if (coding && (head->n[HTTP_TRANSFER_ENCODING] > 1 || strcasecmp(coding, "chunked") != 0))
        return (struct http_refusal){501, "Transfer-Encoding may only be \"chunked\""};
    if (coding && strcmp(head->version, "HTTP/1.0") == 0)
        return (struct http_refusal){400, "HTTP/1.0 has no Transfer-Encoding; send Content-Length"};
    if (head->n[HTTP_CONTENT_LENGTH] > 1)
        return (struct http_refusal){400, "the request has more than one Content-Length"};
    if (length && (!are_digits(length) || strlen(length) > 19))
        return (struct http_refusal){400, "Content-Length is not a number of bytes"};
    return (struct http_refusal){0, NULL};
}

/* A cache stores the answer to a GET under its URL and the headers that Vary names, and ignores the rest of the
 * request: an answer that depends on a body would be served to every client (RFC 9110, 9.3.1). */
static struct http_refusal check_bodiless(const struct http_head *head)
{
    bool may_not = head->method && (strcmp(head->method, "GET") == 0 || strcmp(head->method, "HEAD") == 0);
    if (may_not && http_head_has_body(head))
        return (struct http_refusal){
            400,
            "a GET or HEAD request has no body; send it by POST or QUERY, or put its fields into the query string"};
    return (struct http_refusal){0, NULL};
}

struct http_refusal http_head_check(const struct http_head *head)
{
    const char *host = head->first[HTTP_HOST];
    if (!host && strcmp(head->version, "HTTP/1.0") != 0)
        return (struct http_refusal){400, "the request has no Host header"};
    if (head->n[HTTP_HOST] > 1 || (host && !is_host(host)))
        return (struct http_refusal){400, "the Host header is not one host name with an optional port"};
    if (head->n[HTTP_CONTENT_TYPE] > 1 || head->n[HTTP_CONTENT_ENCODING] > 1)
        return (struct http_refusal){400, "the request has more than one Content-Type or Content-Encoding"};
    if (head->n[HTTP_INFERENCE_HEADER] > 1)
        return (struct http_refusal){400, "the request has more than one Inference-Header-Content-Length"};
    if (head->n[HTTP_AUTHORIZATION] > 1)
        return (struct http_refusal){400, "the request has more than one Authorization"};
    struct http_refusal refusal = check_framing(head);
    return refusal.status ? refusal : check_bodiless(head);
}

/* ---- Whose request it is --------------------------------------------------------------------------------------- */

/* Of "host:port" or "[v6]:port". */
struct authority {
    const char *name; /* without brackets and the dot at the end */
    size_t n;
    const char *port; /* digits; "": none */
};

static struct authority authority_parse(const char *text)
{
    const char *close = *text == '[' ? strchr(text, ']') : NULL, *end = close ? close + 1 : strchrnul(text, ':');
    struct authority a = {.name = text + (close != NULL), .port = *end ? end + 1 : end};
    a.n = (size_t)((close ? close : end) - a.name);
    if (*end && (*end != ':' || !are_digits(a.port)))
        a.n = 0; /* names nothing */
    a.n -= !close && a.n > 1 && a.name[a.n - 1] == '.';
    return a;
}

static unsigned long port_of(const struct authority *a, unsigned long usual)
{
    return *a->port ? strtoul(a->port, NULL, 10) : usual;
}

static bool is_named(const struct authority *a, const char *name, size_t n)
{
    return n && a->n == n && strncasecmp(a->name, name, n) == 0;
}

/* An address cannot be bound to another machine as a name can, and these are always this machine. */
static bool is_own_address(const struct authority *a)
{
    static const uint8_t mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127}, one[16] = {[15] = 1};
    struct address address;
    return address_parse(a->name, a->n, &address) &&
           (memcmp(address.bytes, mapped, sizeof mapped) == 0 || memcmp(address.bytes, one, sizeof one) == 0);
}

/* Labels of letters, digits, _ and -, which neither begin nor end with - (RFC 952, RFC 1123). */
static bool is_host_name(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool is_edge = i == 0 || i == n - 1 || name[i - 1] == '.' || name[i + 1] == '.';
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && (is_edge || (name[i] != '-' && name[i] != '.')))
            return false;
    }
    return true;
}

static bool is_listed(const struct authority *a, const char *names)
{
    for (const char *p = names; *p;) {
        p += strspn(p, " ,");
        size_t n = strcspn(p, " ,");
        if (is_named(a, p, n))
            return true;
        p += n;
    }
    return false;
}

bool http_head_names_us(const struct http_head *head, const char *own, const char *names)
{
    const char *host = head->first[HTTP_HOST];
    if (!host || !*host)
        return true;
    struct authority a = authority_parse(host);
    /* Browsers resolve names under .localhost without asking a DNS server (RFC 6761, 6.3). */
    static const char end[] = ".localhost";
    size_t n = sizeof end - 1;
    return is_named(&a, end + 1, n - 1) ||
           (a.n > n && strncasecmp(a.name + a.n - n, end, n) == 0 && is_host_name(a.name, a.n)) || is_own_address(&a) ||
           is_named(&a, own, strlen(own)) || is_listed(&a, names);
}

bool http_head_is_foreign(const struct http_head *head)
{
    const char *origin = head->first[HTTP_ORIGIN], *host = head->first[HTTP_HOST];
    if (!origin || !*origin)
        return false;
    const char *mark = strstr(origin, "://");
    if (!mark || !host || head->n[HTTP_ORIGIN] > 1)
        return true;
    unsigned long usual = strncasecmp(origin, "https:", 6) == 0 ? 443 : 80;
    struct authority page = authority_parse(mark + 3), here = authority_parse(host);
    return !is_named(&page, here.name, here.n) || port_of(&page, usual) != port_of(&here, usual);
}

/* "prefetch", or "prefetch;prerender" */
static bool is_prefetch(const char *purpose) { return purpose && strncasecmp(purpose, "prefetch", 8) == 0; }

bool http_head_is_unasked(const struct http_head *head)
{
    const char *site = head->first[HTTP_FETCH_SITE];
    return (site && (strcasecmp(site, "cross-site") == 0 || strcasecmp(site, "same-site") == 0)) ||
           is_prefetch(head->first[HTTP_FETCH_PURPOSE]) || is_prefetch(head->first[HTTP_PURPOSE]);
}

uint64_t http_head_length(const struct http_head *head)
{
    const char *length = head->first[HTTP_CONTENT_LENGTH];
    return length ? strtoull(length, NULL, 10) : UINT64_MAX;
}

bool http_head_has_body(const struct http_head *head)
{
    return head->first[HTTP_TRANSFER_ENCODING] || (head->first[HTTP_CONTENT_LENGTH] && http_head_length(head) > 0);
}

/* ---- First bytes ----------------------------------------------------------------------------------------------- */

enum { BULKY_BODY_MIN = 64 * 1024 };

/* If the line of n bytes begins with "name:", returns the text that follows; NULL otherwise. */
static const char *value_of(const char *line, size_t n, const char *name)
{
    size_t n_name = strlen(name);
    return n > n_name && strncasecmp(line, name, n_name) == 0 ? line + n_name : NULL;
}

/* Parses decimal digits after blanks, up to the end of the received bytes. */
static uint64_t number_at(const char *at, const char *end)
{
    uint64_t value = 0;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    for (; at < end && *at >= '0' && *at <= '9' && value < UINT64_MAX / 16; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return value;
}

bool http_begins_bulky(const char *bytes, size_t n)
{
    const char *end = bytes + n, *line = bytes;
    while ((line = memchr(line, '\n', (size_t)(end - line))) && ++line < end && *line != '\r') {
        size_t rest = (size_t)(end - line);
        const char *length = value_of(line, rest, "Content-Length:");
        if (length)
            return number_at(length, end) > BULKY_BODY_MIN;
        if (value_of(line, rest, "Transfer-Encoding:"))
            return true;
    }
    return false;
}

/* ---- Its time -------------------------------------------------------------------------------------------------- */

bool http_timeout_parse(const char *text, uint64_t *us)
{
    static const char digits[] = "0123456789";
    size_t n_whole = strspn(text, digits), point = text[n_whole] == '.', n = strspn(text + n_whole + point, digits);
    if (!n_whole || n_whole > 7 || (point && !n) || text[n_whole + point + n] != '\0')
        return false;
    *us = strtoull(text, NULL, 10) * 1000000;
    for (uint64_t i = 0, unit = 100000; i < n; i++, unit /= 10)
        *us += (uint64_t)(text[n_whole + 1 + i] - '0') * unit;
    return *us > 0 && *us <= UINT64_C(1000000000000);
}

/* ---- Names of requests ----------------------------------------------------------------------------------------- */

bool http_id_is_valid(const char *id)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strspn(id, alphabet);
    return n >= 1 && n <= 128 && id[n] == '\0';
}

static bool is_hex_field(const char *text, size_t n)
{
    return strspn(text, "0123456789abcdef") >= n && strspn(text, "0") < n;
}

/* version-trace-parent-flags. An id of only zeros means "none"; a later version may add fields after the four. */
bool http_traceparent_is_valid(const char *text)
{
    size_t n = strlen(text);
    if (n < 55 || n > 128 || text[2] != '-' || text[35] != '-' || text[52] != '-')
        return false;
    bool is_version_0 = strncmp(text, "00", 2) == 0;
    if (strncmp(text, "ff", 2) == 0 || strspn(text, "0123456789abcdef-") != n ||
        (n > 55 && (is_version_0 || text[55] != '-')))
        return false;
    return is_hex_field(text + 3, 32) && is_hex_field(text + 36, 16) && strcspn(text, "-") == 2 &&
           strspn(text + 53, "0123456789abcdef") >= 2;
}

/* ---- X-Forwarded-For --------------------------------------------------------------------------------------------- */

/* Some proxies add the port: 192.0.2.1:5678, [2001:db8::1]:5678; others write [2001:db8::1]. */
static bool is_port(const char *text, size_t n)
{
    return n > 1 && n <= 6 && *text == ':' && strspn(text + 1, "0123456789") >= n - 1;
}

static bool element_parse(const char *text, size_t n, struct address *address)
{
    const char *end = memchr(text, *text == '[' ? ']' : ':', n);
    bool is_bracketed = *text == '[';
    if (is_bracketed && (!end || !memchr(text, ':', (size_t)(end - text))))
        return false;
    if (is_bracketed) {
        size_t rest = n - (size_t)(end + 1 - text);
        return (!rest || is_port(end + 1, rest)) && address_parse(text + 1, (size_t)(end - text) - 1, address);
    }
    bool has_port = end && !memchr(end + 1, ':', n - (size_t)(end + 1 - text)); /* IPv6 has more than one colon */
    if (has_port && !is_port(end, n - (size_t)(end - text)))
        return false;
    return address_parse(text, has_port ? (size_t)(end - text) : n, address);
}

static void take_element(struct forwarded *forwarded, const char *text, size_t n)
{
    struct address address;
    if (!element_parse(text, n, &address)) {
        forwarded->kind = FORWARDED_JUNK;
        return;
    }
    bool is_proxy = networks_have(forwarded->proxies, &address);
    if (is_proxy && forwarded->kind != FORWARDED_NOBODY)
        return;
    forwarded->kind = is_proxy ? FORWARDED_PROXIES : FORWARDED_CLIENT;
    forwarded->client = address;
}

void forwarded_take(struct forwarded *forwarded, const char *line)
{
    for (size_t n; *line; line += n + (line[n] == ',')) {
        static const char blanks[] = " \t";
        line += strspn(line, blanks);
        n = strcspn(line, ",");
        size_t n_element = n;
        while (n_element && strchr(blanks, line[n_element - 1]))
            n_element--;
        if (n_element)
            take_element(forwarded, line, n_element);
    }
}

bool forwarded_client(const struct forwarded *forwarded, struct address *client)
{
    bool is_known = forwarded->kind == FORWARDED_PROXIES || forwarded->kind == FORWARDED_CLIENT;
    if (is_known)
        *client = forwarded->client;
    return is_known;
}
