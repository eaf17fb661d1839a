/* Owns parsing and comparing of addresses. */
#define _GNU_SOURCE /* struct ucred */
#include "server/process/process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = INET6_ADDRSTRLEN + 4 }; /* an address and its prefix length */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static void map(const void *ipv4, struct address *address)
{
    memcpy(address->bytes, mapped, sizeof mapped);
    memcpy(address->bytes + sizeof mapped, ipv4, 4);
}

static bool is_mapped(const struct address *address) { return memcmp(address->bytes, mapped, sizeof mapped) == 0; }

bool address_parse(const char *text, size_t n, struct address *address)
{
    char copy[TEXT_BYTES];
    struct in_addr ipv4;
    if (n >= sizeof copy || memchr(text, '\0', n))
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    *address = (struct address){0};
    if (inet_pton(AF_INET, copy, &ipv4) != 1)
        return inet_pton(AF_INET6, copy, address->bytes) == 1;
    map(&ipv4, address);
    return true;
}

bool address_of_peer(int fd, struct address *address)
{
    struct sockaddr_storage peer = {0};
    struct ucred user = {0};
    socklen_t n = sizeof peer, n_user = sizeof user;
    *address = (struct address){0};
    if (getpeername(fd, (struct sockaddr *)&peer, &n))
        return false;
    if (peer.ss_family == AF_INET6)
        memcpy(address->bytes, &((struct sockaddr_in6 *)(void *)&peer)->sin6_addr, sizeof address->bytes);
    else if (peer.ss_family == AF_INET)
        map(&((struct sockaddr_in *)(void *)&peer)->sin_addr, address);
    else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &n_user) == 0)
        address->user = user.uid;
    address->is_unix = peer.ss_family == AF_UNIX;
    return true;
}

/* Every request's log line has one, and inet_ntop takes longer for it (sprintf) than the rest of the line takes. */
static void print_ipv4(const uint8_t *octets, char *dst)
{
    for (int i = 0; i < 4; i++) {
        if (octets[i] >= 100)
            *dst++ = (char)('0' + octets[i] / 100);
        if (octets[i] >= 10)
            *dst++ = (char)('0' + octets[i] / 10 % 10);
        *dst++ = (char)('0' + octets[i] % 10);
        *dst++ = i < 3 ? '.' : '\0';
    }
}

void address_print(const struct address *address, char *dst)
{
    if (address->is_unix)
        snprintf(dst, ADDRESS_TEXT_BYTES, "unix:%llu", (unsigned long long)address->user);
    else if (is_mapped(address))
        print_ipv4(address->bytes + sizeof mapped, dst);
    else if (!inet_ntop(AF_INET6, address->bytes, dst, ADDRESS_TEXT_BYTES))
        *dst = '\0';
}

uint64_t address_number(const struct address *address)
{
    enum { USER = 1, IPV4, IPV6 };
    uint64_t own = address->user, kind = address->is_unix ? USER : is_mapped(address) ? IPV4 : IPV6;
    if (kind != USER)
        memcpy(&own, address->bytes + (kind == IPV4 ? 8 : 0), sizeof own);
    own = (own ^ kind << 56) * 0x9e3779b97f4a7c15u;
    return own ? own : 1;
}

/* ---- Networks -------------------------------------------------------------------------------------------------- */

static bool is_within(const uint8_t bytes[16], const struct network *network)
{
    size_t n = network->n_bits / 8, rest = network->n_bits % 8;
    if (memcmp(bytes, network->bytes, n) != 0)
        return false;
    return !rest || (bytes[n] ^ network->bytes[n]) >> (8 - rest) == 0;
}

/* Parses a prefix length of up to three digits. */
static bool bits_parse(const char *text, size_t n, unsigned most, unsigned *n_bits)
{
    *n_bits = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *n_bits = *n_bits * 10 + (unsigned)(text[i] - '0');
    }
    return n >= 1 && n <= 3 && *n_bits <= most;
}

static bool network_parse(const char *text, size_t n, struct network *network)
{
    const char *slash = memchr(text, '/', n);
    size_t n_address = slash ? (size_t)(slash - text) : n;
    struct address address;
    if (!address_parse(text, n_address, &address))
        return false;
    unsigned n_before = memchr(text, ':', n_address) ? 0 : 96, most = 128 - n_before;
    memcpy(network->bytes, address.bytes, sizeof network->bytes);
    network->n_bits = most;
    bool fine = !slash || bits_parse(slash + 1, n - n_address - 1, most, &network->n_bits);
    network->n_bits += n_before;
    if (!fine)
        return false;
    /* Whether no bits are set beyond the prefix. Such bits are most likely a mistake: 10.0.0.1/8 may mean one machine
     * or sixteen million. */
    struct network whole = *network;
    for (unsigned i = whole.n_bits; i < 128; i++)
        whole.bytes[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
    return memcmp(whole.bytes, network->bytes, sizeof whole.bytes) == 0;
}

static bool add_network(struct networks *networks, const char *text, size_t n, char *error, size_t n_error)
{
    if (n == 4 && memcmp(text, "unix", 4) == 0) {
        networks->has_unix = true;
        return true;
    }
    if (networks->n == NETWORKS_MAX) {
        snprintf(error, n_error, "more than %d addresses", (int)NETWORKS_MAX);
        return false;
    }
    if (network_parse(text, n, &networks->of[networks->n])) {
        networks->n++;
        return true;
    }
    snprintf(error, n_error,
             "\"%.*s\" is not an address, a network (as 10.0.0.0/8 or 2001:db8::/32, no bits set behind it) or unix",
             n < 60 ? (int)n : 60, text);
    return false;
}

bool networks_parse(const char *text, struct networks *networks, char *error, size_t n_error)
{
    static const char between[] = " ,\t";
    *networks = (struct networks){0};
    for (text += strspn(text, between); *text; text += strspn(text, between)) {
        size_t n = strcspn(text, between);
        if (!add_network(networks, text, n, error, n_error))
            return false;
        text += n;
    }
    return true;
}

bool networks_have(const struct networks *networks, const struct address *address)
{
    if (address->is_unix)
        return networks->has_unix;
    for (size_t i = 0; i < networks->n; i++)
        if (is_within(address->bytes, &networks->of[i]))
            return true;
    return false;
}
