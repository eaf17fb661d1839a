/* X-Forwarded-For: who has asked, by header lines as proxies write them and as nobody should. */
#include "server/transport/heads.h"
#include "tests/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

/* NULL: nobody, so that the peer counts. */
static const struct {
    const char *lines[4], *client;
} cases[] = {
    {{"192.0.2.1"}, "192.0.2.1"},
    {{"2001:db8::7"}, "2001:db8::7"},
    {{"::ffff:192.0.2.1"}, "192.0.2.1"},
    {{"192.0.2.1:5678"}, "192.0.2.1"},
    {{"[2001:db8::7]:443"}, "2001:db8::7"},
    {{"[2001:db8::7]"}, "2001:db8::7"},
    /* The last that is no proxy: what stands before it the client may have written. */
    {{"203.0.113.9, 192.0.2.1"}, "192.0.2.1"},
    {{"203.0.113.9", "192.0.2.1"}, "192.0.2.1"},
    {{"192.0.2.1, 10.0.0.1"}, "192.0.2.1"},
    {{"203.0.113.9, 192.0.2.1, 10.0.0.1", "10.9.9.9,fd00::1"}, "192.0.2.1"},
    {{"10.0.0.7,10.0.0.1"}, "10.0.0.7"},
    {{"unknown, 192.0.2.1"}, "192.0.2.1"},
    {{"<script>, 192.0.2.1, 10.0.0.1"}, "192.0.2.1"},
    {{" \t192.0.2.1\t ,\t10.0.0.1 "}, "192.0.2.1"},
    {{",, 192.0.2.1 , ,"}, "192.0.2.1"},
    {{"192.0.2.1", "", ","}, "192.0.2.1"},
    /* What cannot be understood, where the client should stand. */
    {{""}, NULL},
    {{" , "}, NULL},
    {{"unknown"}, NULL},
    {{"_hidden"}, NULL},
    {{"192.0.2.1, unknown"}, NULL},
    {{"192.0.2.1, unknown, 10.0.0.1"}, NULL},
    {{"192.0.2.1", "_x"}, NULL},
    {{"192.0.2.1 203.0.113.9"}, NULL},
    {{"192.0.2.1;10.0.0.1"}, NULL},
    {{"192.0.2"}, NULL},
    {{"192.0.2.1:"}, NULL},
    {{"192.0.2.1:80x"}, NULL},
    {{"192.0.2.1:123456"}, NULL},
    {{"[192.0.2.1]"}, NULL},
    {{"[2001:db8::7"}, NULL},
    {{"[2001:db8::7]443"}, NULL},
    {{"2001:db8::7]"}, NULL},
    {{"[]"}, NULL},
    {{"["}, NULL},
    {{":"}, NULL},
    {{"::1%lo"}, NULL},
    {{"\"192.0.2.1\""}, NULL},
    {{"for=192.0.2.1"}, NULL},
    {{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, NULL},
};

TEST(clients)
{
    struct networks proxies;
    char error[160];
    assert_true(networks_parse("10.0.0.0/8 fd00::/8", &proxies, error, sizeof error));
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct forwarded forwarded = {.proxies = &proxies};
        struct address client, expected;
        for (size_t k = 0; cases[i].lines[k]; k++) {
            char *line = strdup(cases[i].lines[k]); /* of its exact length: a sanitizer sees what is read behind it */
            forwarded_take(&forwarded, line);
            free(line);
        }
        bool is_known = forwarded_client(&forwarded, &client);
        if (is_known != (cases[i].client != NULL))
            fail_msg("case %zu, \"%s\": %d", i, cases[i].lines[0], is_known);
        if (is_known) {
            assert_true(address_parse(cases[i].client, strlen(cases[i].client), &expected));
            assert_memory_equal(client.bytes, expected.bytes, sizeof client.bytes);
        }
    }
}
