/* GET /encode?… and /zarr/…/…: the input is the query, still encoded. Beside the laws of every answer: the order of its
 * pairs does not matter, and the answer to HEAD has the same headers. */
#include "tests/fuzz/answers.h"

/* "a&b&c" becomes "b&c&a"; false: there is only one pair. */
static bool turn(const char *query, char *turned)
{
    const char *rest = strchr(query, '&');
    if (!rest)
        return false;
    sprintf(turned, "%s&%.*s", rest + 1, (int)(rest - query), query);
    return true;
}

/* The same text in the path of a Zarr store; what follows its first slash is the key. */
static void ask_store(const struct api_host *host, const char *query)
{
    static const char before[] = "/zarr/", key[] = "/.zmetadata";
    char *path = malloc(sizeof before + strlen(query) + sizeof key);
    strcat(strcat(strcpy(path, before), query), strchr(query, '/') ? "" : key);
    struct api_call call = {.method = "GET", .path = path, .must_not_block = true};
    struct answer a;
    if (ask(host, &call, &a))
        answer_drop(&a);
    free(path);
}

TEXT_TARGET(query, size)
{
    const struct api_host host = small_host();
    char *turned = malloc(size + 1);
    struct api_call call = {.method = "GET", .path = "/encode", .query = query, .must_not_block = true};
    struct answer a, b;
    if (ask(&host, &call, &a)) {
        call.query = turned;
        if (a.reply->status == 200 && is_one_of(16) && turn(query, turned)) {
            REQUIRE(ask_once(&host, &call, &b));
            check_same(&a, &b);
            answer_drop(&b);
        }
        answer_drop(&a);
    }
    if (is_one_of(4))
        ask_store(&host, query);
    free(turned);
}
