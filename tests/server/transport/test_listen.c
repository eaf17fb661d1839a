/* Sockets to listen on: which congestion control accepted connections will have. */
#include "server/transport/connections.h"
#include "tests/support/cmocka.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NAME_BYTES = 16 };

static void read_name(int fd, char *name)
{
    socklen_t n = NAME_BYTES - 1;
    memset(name, 0, NAME_BYTES);
    assert_return_code(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &n), 0);
}

static void name_of(const char *host, const char *asked, char *name)
{
    char url[HTTP_URL_BYTES], error[256];
    int fd = http_listen(host, 0, false, asked, url, error, sizeof error);
    if (fd < 0)
        fail_msg("%s", error);
    read_name(fd, name);
    close(fd);
}

/* Read of a socket of our own: what the system gives to who asks for nothing. */
static void of_the_system(char *name)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    read_name(fd, name);
    close(fd);
}

/* The system's own, or the one that was asked for. */
TEST(others_have_the_systems_and_who_asks_gets_it)
{
    char system[NAME_BYTES], found[NAME_BYTES];
    of_the_system(system);
    const char *const cases[][3] = {
        {"0.0.0.0", "", system}, {"127.0.0.1", system, system}, {"127.0.0.1", "reno", "reno"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        name_of(cases[i][0], cases[i][1], found);
        assert_string_equal(found, cases[i][2]);
    }
}

TEST(loopback_is_not_paced)
{
    char system[NAME_BYTES], found[NAME_BYTES];
    of_the_system(system);
    name_of("127.0.0.1", "", found);
    if (strncmp(system, "bbr", 3) == 0)
        assert_true(strcmp(found, "cubic") == 0 || strcmp(found, "reno") == 0);
    else
        assert_string_equal(found, system);
}
