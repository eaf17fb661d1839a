/* Owns the parsing of X-Forwarded-For. */
#include "server/transport/heads.h"

#include <string.h>

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
