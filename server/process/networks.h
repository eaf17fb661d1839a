/* Addresses of machines and networks, as text and as numbers. */
#ifndef SERVER_PROCESS_NETWORKS_H
#define SERVER_PROCESS_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* An IPv6 address; IPv4 is written as ::ffff:a.b.c.d. For a Unix socket, the user ID of the peer. */
struct address {
    bool is_unix;
    uint8_t bytes[16];
    uint64_t user;
};

/* Parses "192.0.2.1", "2001:db8::1" or "::ffff:192.0.2.1": all n bytes of text must be the address. */
bool address_parse(const char *text, size_t n, struct address *address);
bool address_of_peer(int fd, struct address *address); /* false: the peer is gone */
/* Writes the address as text, "192.0.2.1", "2001:db8::1", "unix:1000" (the user), to dst. */
enum { ADDRESS_TEXT_BYTES = 48 };
void address_print(const struct address *address, char *dst);
/* A number that identifies the client: an IPv4 address, the 64 bits of an IPv6 address that a provider gives to one
 * customer, or a user of this machine. Never 0. */
uint64_t address_number(const struct address *address);

enum { NETWORKS_MAX = 256 };

struct networks {
    bool has_unix;
    size_t n;
    struct network {
        uint8_t bytes[16];
        unsigned n_bits;
    } of[NETWORKS_MAX];
};

/* Parses "10.0.0.0/8 192.0.2.1,2001:db8::/32 unix": addresses, networks, and "unix" for every client of a Unix socket.
 * False: error[] of n_error bytes gives the reason. */
bool networks_parse(const char *text, struct networks *networks, char *error, size_t n_error);
bool networks_have(const struct networks *networks, const struct address *address);

#endif
