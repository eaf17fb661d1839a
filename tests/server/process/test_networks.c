/* Addresses and networks, against the kernel's own reading of them and against bit by bit comparison. */
#include "server/process/process.h"
#include "tests/support/cmocka.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

static struct address address_of(const char *text)
{
    struct address address;
    if (!address_parse(text, strlen(text), &address))
        fail_msg("%s", text);
    return address;
}

TEST(addresses)
{
    static const char *const good[][2] = {{"192.0.2.1", "::ffff:192.0.2.1"},
                                          {"::ffff:c000:201", "::ffff:192.0.2.1"},
                                          {"2001:DB8::1", "2001:db8:0:0:0:0:0:1"},
                                          {"::", "::"}};
    for (size_t i = 0; i < N_OF(good); i++) {
        uint8_t bytes[16];
        assert_int_equal(inet_pton(AF_INET6, good[i][1], bytes), 1);
        assert_memory_equal(address_of(good[i][0]).bytes, bytes, 16);
    }
    static const char *const bad[] = {
        "",          " ",          "1.2.3",      "1.2.3.4 ",
        " 1.2.3.4",  "1.2.3.256",  "01.2.3.4x",  "1.2.3.4:80",
        "[::1]",     "fe80::1%lo", "::1::",      "unknown",
        "localhost", "1.2.3.4/8",  "0x7f000001", "1111:2222:3333:4444:5555:6666:7777:8888:9999"};
    struct address address;
    for (size_t i = 0; i < N_OF(bad); i++)
        if (address_parse(bad[i], strlen(bad[i]), &address))
            fail_msg("%s", bad[i]);
    assert_false(address_parse("1.2.3.4\0", 8, &address));
    assert_true(address_parse("1.2.3.45", 7, &address));
}

TEST(numbers)
{
    static const struct {
        const char *a, *b;
        bool are_same;
    } cases[] = {{"192.0.2.1", "::ffff:192.0.2.1", true},
                 {"192.0.2.1", "192.0.2.2", false},
                 {"2001:db8::1", "2001:db8::ffff:1", true},
                 {"2001:db8::1", "2001:db8:0:1::1", false},
                 {"0.0.0.0", "::", false},
                 {"::", "::1", true},
                 {"192.0.2.1", "0:ffff:c000:201::", false}};
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct address a = address_of(cases[i].a), b = address_of(cases[i].b);
        if ((address_number(&a) == address_number(&b)) != cases[i].are_same || !address_number(&a))
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    }
    struct address user = {.is_unix = true, .user = 0}, other = {.is_unix = true, .user = 1000};
    assert_true(address_number(&user) && address_number(&user) != address_number(&other));
}

/* Every length of prefix, and addresses that differ in one bit. */
TEST(prefixes)
{
    char text[128], error[160];
    struct networks networks;
    for (unsigned n_bits = 0; n_bits <= 128; n_bits++) {
        struct address base = {0};
        for (unsigned i = 0; i < n_bits; i++)
            base.bytes[i / 8] |= (uint8_t)((i * 7 % 5 < 2 ? 0x80 : 0) >> i % 8);
        char printed[INET6_ADDRSTRLEN];
        inet_ntop(AF_INET6, base.bytes, printed, sizeof printed);
        snprintf(text, sizeof text, "%s/%u", printed, n_bits);
        if (!networks_parse(text, &networks, error, sizeof error))
            fail_msg("%s: %s", text, error);
        for (unsigned bit = 0; bit < 128; bit++) {
            struct address other = base;
            other.bytes[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
            assert_int_equal(networks_have(&networks, &other), bit >= n_bits);
        }
        assert_true(networks_have(&networks, &base));
    }
}

TEST(lists)
{
    char error[160];
    struct networks networks;
    assert_true(networks_parse(" 10.0.0.0/8,192.0.2.1  ::1\t,2001:db8::/32,", &networks, error, sizeof error));
    assert_int_equal(networks.n, 4);
    static const struct {
        const char *address;
        bool is_in;
    } cases[] = {{"10.255.0.1", true}, {"::ffff:10.1.1.1", true}, {"11.0.0.0", false},
                 {"192.0.2.1", true},  {"192.0.2.2", false},      {"::1", true},
                 {"::2", false},       {"2001:db8:ffff::", true}, {"2001:db9::", false},
                 {"0.0.0.0", false},   {"255.255.255.255", false}};
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct address address = address_of(cases[i].address);
        if (networks_have(&networks, &address) != cases[i].is_in)
            fail_msg("%s", cases[i].address);
    }
    struct address user = {.is_unix = true};
    assert_false(networks_have(&networks, &user));
    assert_true(networks_parse("unix", &networks, error, sizeof error) && networks_have(&networks, &user));
    assert_true(networks_parse("", &networks, error, sizeof error) && networks.n == 0 && !networks.has_unix);
    static const char *const bad[] = {
        "10.0.0.0/33", "10.0.0.0/",  "10.0.0.0/-1",  "10.0.0.0/8/8",  "10.0.0/8",
        "/8",          "10.0.0.1/8", "::1/64",       "::/129",        "::/0x1",
        "proxy",       "Unix",       "10.0.0.0/08x", "10.0.0.0/0000", "10.0.0.1;10.0.0.2"};
    for (size_t i = 0; i < N_OF(bad); i++) {
        *error = '\0';
        if (networks_parse(bad[i], &networks, error, sizeof error) || !strstr(error, "10.0.0.0/8") ||
            !strstr(error, bad[i]))
            fail_msg("%s: %s", bad[i], error);
    }
    char many[(NETWORKS_MAX + 1) * 4 + 1] = "";
    for (size_t i = 0; i <= NETWORKS_MAX; i++)
        memcpy(many + i * 4, "::1 ", 5);
    assert_false(networks_parse(many, &networks, error, sizeof error));
    assert_non_null(strstr(error, "256"));
}

TEST(printed)
{
    static const char *const texts[][2] = {
        {"192.0.2.1", "192.0.2.1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"2001:DB8:0::1", "2001:db8::1"},
        {"::", "::"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}};
    char text[ADDRESS_TEXT_BYTES];
    for (size_t i = 0; i < N_OF(texts); i++) {
        struct address address = address_of(texts[i][0]);
        address_print(&address, text);
        assert_string_equal(text, texts[i][1]);
    }
    for (int octet = 0; octet < 256; octet++) { /* as inet_ntop has it, at either end */
        char expected[INET6_ADDRSTRLEN];
        const uint8_t ipv4[4] = {(uint8_t)octet, 0, 10, (uint8_t)(255 - octet)};
        struct address address = address_of(inet_ntop(AF_INET, ipv4, expected, sizeof expected));
        address_print(&address, text);
        assert_string_equal(text, expected);
    }
    struct address user = {.is_unix = true, .user = 1000};
    address_print(&user, text);
    assert_string_equal(text, "unix:1000");
}
