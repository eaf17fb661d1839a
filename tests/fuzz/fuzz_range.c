/* Conditions and ranges: lines of If-None-Match, Range, If-Range and If-Match ("-": no such header), sent for a stored
 * file or (for one input size in eight, because it costs more) for an answer of /encode, whose bytes and entity tag are
 * known. "@" in a line stands for that tag. A partial answer equals that part of the whole, and no condition that
 * applies is ignored. */
#include "tests/fuzz/answers.h"
#include "server/process/process.h"
#include "server/store/weights/weights.h"

#include <fcntl.h>

enum { FILE_BYTES = 8 + 56 + 16, ROOM = 2048 };

/* The resources that can be requested, in full. */
struct resource {
    const char *path, *query;
    struct answer whole;
    const char *etag;
};

static struct api_host host;
static struct resource resources[2] = {{.path = "/encode", .query = "scheme=sinusoidal&len=4&dim=2"},
                                       {.path = "/weights/w", .query = NULL}};

static void store_file(void)
{
    char file[FILE_BYTES + 1] = "\x38\0\0\0\0\0\0\0";
    snprintf(file + 8, FILE_BYTES - 8, "%-56s", "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}");
    struct api_call call = {.method = "PUT", .path = "/weights/w", .body = file, .body_bytes = FILE_BYTES};
    struct answer a;
    REQUIRE(ask_once(&host, &call, &a) && a.reply->status == 201);
    answer_drop(&a);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    char error[WEIGHTS_ERROR_BYTES];
    log_setup(LOG_FORMAT_TEXT, LOG_ERROR, open("/dev/null", O_WRONLY));
    host = small_host();
    host.store = weights_store(weights_new(&(struct weights_settings){.contents = &api_contents_weights,
                                                                      .bytes_max = 1 << 20,
                                                                      .files_max = WEIGHTS_FILES_MAX},
                                           error));
    store_file();
    for (size_t i = 0; i < 2; i++) {
        struct resource *r = &resources[i];
        struct api_call call = {.method = "GET", .path = r->path, .query = r->query};
        REQUIRE(ask(&host, &call, &r->whole) && r->whole.reply->status == 200);
        r->etag = header_of(&r->whole, "ETag");
        REQUIRE(r->etag);
    }
    return 0;
}

/* The line in dst, with the tag in place of each "@"; NULL if there is no line, or no room. */
static const char *expand(char *dst, const char *line, const char *etag)
{
    size_t n = 0, n_tag = strlen(etag);
    if (!line)
        return NULL;
    for (; *line; line++) {
        if (n + n_tag + 1 > ROOM)
            return NULL;
        memcpy(dst + n, *line == '@' ? etag : line, *line == '@' ? n_tag : 1);
        n += *line == '@' ? n_tag : 1;
    }
    dst[n] = '\0';
    return dst;
}

static void check_part(const struct resource *r, const struct api_call *call, const struct answer *a)
{
    unsigned long long first, last, length;
    const char *where = header_of(a, "Content-Range");
    REQUIRE(call->range && where && sscanf(where, "bytes %llu-%llu/%llu", &first, &last, &length) == 3);
    REQUIRE(first <= last && last < length && length == r->whole.n && a->n == last - first + 1);
    REQUIRE(memcmp(a->body, r->whole.body + first, a->n) == 0);
    REQUIRE(!call->if_range || strcmp(call->if_range, r->etag) == 0);
}

static void check(const struct resource *r, const struct api_call *call, const struct answer *a)
{
    const char *none = call->if_none_match;
    char unsatisfied[64];
    snprintf(unsatisfied, sizeof unsatisfied, "bytes */%zu", r->whole.n);
    switch (a->reply->status) {
    case 200: REQUIRE(a->n == r->whole.n && memcmp(a->body, r->whole.body, a->n) == 0); break;
    case 206: check_part(r, call, a); break;
    case 304: REQUIRE(none && (strstr(none, r->etag) || strchr(none, '*'))); break;
    case 412: REQUIRE(call->if_match && strcmp(call->if_match, r->etag) != 0); break;
    case 416: REQUIRE(call->range && strcmp(header_of(a, "Content-Range"), unsatisfied) == 0); break;
    default: REQUIRE(a->reply->status == 200); /* or one of those above */
    }
    bool is_named = none && (strcmp(none, r->etag) == 0 || strcmp(none, "*") == 0);
    REQUIRE(!is_named || a->reply->status == 304 || a->reply->status == 412);
    if (a->reply->status < 400)
        REQUIRE(header_of(a, "ETag") && strcmp(header_of(a, "ETag"), r->etag) == 0);
}

TEXT_TARGET(text, size)
{
    static char lines[4][ROOM];
    const struct resource *r = &resources[size % 8 != 0];
    char *rest = text;
    struct api_call call = {.method = "GET", .path = r->path, .query = r->query};
    call.if_none_match = expand(lines[0], next_line(&rest), r->etag);
    call.range = expand(lines[1], next_line(&rest), r->etag);
    call.if_range = expand(lines[2], next_line(&rest), r->etag);
    call.if_match = expand(lines[3], next_line(&rest), r->etag);
    struct answer a;
    REQUIRE(ask_once(&host, &call, &a));
    check(r, &call, &a);
    answer_drop(&a);
}
