/* Accept headers and the formats they choose. */
#include "api/requests/requests.h"
#include "tests/api/ask.h"

static const struct {
    const char *accept, *format; /* NULL: nothing acceptable */
} cases[] = {
    {NULL, "json"},
    {"", "json"},
    {"*/*", "json"},
    {"application/*", "json"},
    {"application/json", "json"},
    {"application/json; charset=utf-8", "json"},
    {"APPLICATION/X-NPY", "npy"},
    {"application/octet-stream", "raw"},
    {"application/vnd.safetensors", "safetensors"},
    {"text/html", NULL},
    {"text/html, */*;q=0.1", "json"},
    {"text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8", "json"},
    {"application/x-npy, */*", "npy"},                      /* the more specific of equals */
    {"application/x-npy, application/octet-stream", "npy"}, /* the earlier of equals */
    {"application/octet-stream, application/x-npy", "raw"},
    {"application/x-npy;q=0.5, application/octet-stream;q=0.6", "raw"},
    {"application/x-npy;q=0.501,application/octet-stream;q=0.5", "npy"},
    {"application/json;q=0, */*", "raw"}, /* q=0 excludes */
    {"application/*;q=0, */*", "png"},
    {"application/*;q=0, image/*;q=0, */*", "text"},
    {"application/*;q=0, image/*;q=0, text/*;q=0, */*", NULL},
    {"image/png", "png"},
    {"text/plain", "text"},
    {"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", "png"}, /* a browser's <img> */
    {"application/json, text/plain, */*", "json"},                               /* axios, Angular */
    {"*/*;q=0", NULL},
    /* the specific range decides, not the best */
    {"application/json;q=0.5, application/*;q=0.2, image/*;q=0.1, text/*;q=0.1, */*;q=0.9", "json"},
    {"application/json;q=0.5, application/*;q=0.2, */*;q=0.9", "png"},
    {"application/json ; q=0.2 , application/x-npy ; q=0.3", "npy"},
    {"application/json;profile=\"a,b;q=0\";q=0.4, application/x-npy;q=0.3", "json"}, /* quoted separators */
    {"application/json;q=2, application/x-npy;q=0.1", "npy"}, /* no such weight: the range is void */
    {"application/json;q=0.1234, application/x-npy;q=0.1", "npy"},
    {"application/json;q=, application/x-npy;q=0.1", "npy"},
    {"application/json;Q=0.0, application/x-npy;q=1.000", "npy"},
    {",, ,application/x-npy,", "npy"},
    {"*", "json"},
    {"*;q=0", NULL},
    {"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "json"}, /* Java's HttpURLConnection */
    {"application/json;q=.2, application/x-npy;q=.25", "npy"},
    {"application/json;q=., application/x-npy;q=0.1", "npy"},
    {"application/json;q=.1234, application/x-npy;q=0.1", "npy"},
    {" , ,", "json"},
    {"application", NULL},
    {"application/jsonx", NULL},
    {"\"", NULL},
};

TEST(test_table)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct api_format *format = api_negotiate(cases[i].accept);
        const char *name = format ? format->name : "nothing", *expected = cases[i].format ? cases[i].format : "nothing";
        if (strcmp(name, expected) != 0)
            fail_msg("%s: %s, not %s", cases[i].accept, name, expected);
    }
}

TEST(test_long_header_is_linear)
{
    enum { N = 1 << 20 };
    char *accept = malloc(N + 1);
    memset(accept, ',', N);
    accept[N] = '\0';
    assert_non_null(api_negotiate(accept)); /* an empty list */
    accept[0] = 'x';
    assert_null(api_negotiate(accept));
    memset(accept, ';', N);
    assert_null(api_negotiate(accept));
    free(accept);
}
