/* The server's own checks of a head: the first line is "target version", then lines "Name: value". An accepted head has
 * only one interpretation: one host, one length or one coding, a path without a NUL; request names are plain words, and
 * X-Request-Timeout is a number. */
#include "tests/fuzz/laws.h"
#include "server/transport/heads.h"

#include <math.h>
#include <strings.h>

/* The number of lines with this name, and the value of the last one. */
struct found {
    const char *name;
    unsigned n;
    const char *value;
};

static void take(struct http_head *head, char *line, struct found *found, size_t n_found)
{
    char *colon = strchr(line, ':');
    if (!colon)
        return;
    *colon = '\0';
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    http_head_take(head, line, value);
    for (size_t i = 0; i < n_found; i++)
        if (strcasecmp(found[i].name, line) == 0) {
            found[i].n++;
            found[i].value = value;
        }
}

static void check_framing(const struct http_head *head, const struct found *host, const struct found *length,
                          const struct found *coding)
{
    REQUIRE(host->n == 1 || (host->n == 0 && strcmp(head->version, "HTTP/1.0") == 0));
    REQUIRE(length->n + coding->n <= 1);
    REQUIRE(!coding->n || strcasecmp(coding->value, "chunked") == 0);
    uint64_t n = http_head_length(head);
    if (!length->n) {
        REQUIRE(n == UINT64_MAX);
        return;
    }
    char again[32];
    const char *digits = length->value + strspn(length->value, "0");
    snprintf(again, sizeof again, "%llu", (unsigned long long)n);
    REQUIRE(strcmp(again, *digits ? digits : "0") == 0);
}

static void check_names(const struct http_head *head)
{
    const char *id = head->first[HTTP_REQUEST_ID], *trace = head->first[HTTP_TRACEPARENT];
    if (id && http_id_is_valid(id))
        REQUIRE(strspn(id, LETTERS_AND_DIGITS "._-") == strlen(id));
    if (trace && http_traceparent_is_valid(trace))
        REQUIRE(strlen(trace) >= 55 && strlen(trace) <= 128 && strspn(trace, "0123456789abcdef-") == strlen(trace));
}

/* The time limit is the number that strtod reads, in microseconds, and within the bounds that the server documents. */
static void check_timeout(const struct http_head *head)
{
    const char *text = head->first[HTTP_REQUEST_TIMEOUT];
    uint64_t us = 0;
    if (!text)
        return;
    size_t n = strspn(text, "0123456789."), n_points = 0;
    for (const char *c = text; *c; c++)
        n_points += *c == '.';
    double x = strtod(text, NULL) * 1e6;
    bool is_number = n > 0 && !text[n] && n_points <= 1 && text[0] != '.' && text[n - 1] != '.';
    if (http_timeout_parse(text, &us))
        REQUIRE(is_number && us > 0 && us <= 1000000000000 && fabs((double)us - x) < 1.001);
    else
        REQUIRE(!is_number || x < 1 || x > 999999999999.5 || strcspn(text, ".") > 7);
}

/* A path encoded byte by byte is the same path, and has no query. */
static void check_target(char *target)
{
    const char *host, *path, *query;
    if (api_target_split(target, &host, &path, &query))
        return;
    REQUIRE(*path == '/');
    char *encoded = malloc(3 * strlen(path) + 2), *end = encoded;
    for (const char *c = path; *c; c++)
        end += sprintf(end, c == path ? "%c" : "%%%02X", (unsigned char)*c);
    const char *again, *no_query;
    REQUIRE(!api_target_split(encoded, &host, &again, &no_query));
    REQUIRE(strcmp(again, path) == 0 && !no_query && !host);
    free(encoded);
}

TEXT_TARGET(text, size)
{
    char *rest = text, *target = next_line(&rest), *line;
    struct found found[] = {{"Host", 0, NULL}, {"Content-Length", 0, NULL}, {"Transfer-Encoding", 0, NULL}};
    char *space = target ? strchr(target, ' ') : NULL;
    struct http_head head = {.version = space ? space + 1 : "HTTP/1.1"};
    if (space)
        *space = '\0';
    while (rest)
        if ((line = next_line(&rest)))
            take(&head, line, found, sizeof found / sizeof *found);
    struct http_refusal refusal = http_head_check(&head);
    REQUIRE(!refusal.status == !refusal.detail);
    if (!refusal.status)
        check_framing(&head, &found[0], &found[1], &found[2]);
    check_names(&head);
    check_timeout(&head);
    if (target)
        check_target(target);
}
