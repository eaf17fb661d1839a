/* The other headers that api/ reads: lines of method, path, Content-Type, Content-Encoding, Origin,
 * Access-Control-Request-Method, Access-Control-Request-Headers, Inference-Header-Content-Length and query ("-": none),
 * then the body. Text after the ; of a Content-Type without parameters of ours changes nothing, and a request that is
 * refused from the head alone is refused with the same status together with its body. */
#include "tests/fuzz/answers.h"

#include <strings.h>

/* If the head was refused early, the whole request is refused with the same status. */
static void check_early(const struct api_host *host, const struct api_call *call, const struct answer *a)
{
    struct api_call again = *call;
    struct api_reply *early = api_head(host, &again, call->body_bytes);
    if (!early)
        return;
    struct answer refusal = gather(early);
    check_answer(&refusal);
    REQUIRE(refusal.reply->status == a->reply->status);
    answer_drop(&refusal);
}

/* JSON has no parameters. */
static void check_parameters(const struct api_host *host, struct api_call *call, const struct answer *a)
{
    struct answer b;
    char type[] = "application/json", other[] = "Application/JSON ;charset=\"utf-8\";;x";
    if (!call->content_type || strcmp(call->content_type, type) != 0)
        return;
    call->content_type = other;
    REQUIRE(ask_once(host, call, &b));
    check_same(a, &b);
    answer_drop(&b);
}

TEXT_TARGET(text, size)
{
    const struct api_host host = small_host();
    char *rest = text;
    const char *method = next_line(&rest), *path = next_line(&rest);
    struct api_call call = {.method = method ? method : "GET", .path = path ? path : "/", .must_not_block = true};
    call.content_type = next_line(&rest);
    call.content_encoding = next_line(&rest);
    call.origin = next_line(&rest);
    call.access_method = next_line(&rest);
    call.access_headers = next_line(&rest);
    call.inference_header = next_line(&rest);
    call.query = next_line(&rest);
    call.body = rest && *rest ? rest : NULL;
    call.body_bytes = rest ? (size_t)(text + size - rest) : 0;
    call.body_bytes = call.body ? call.body_bytes : 0;
    struct answer a;
    if (ask(&host, &call, &a)) {
        if (is_one_of(4))
            check_early(&host, &call, &a);
        if (is_one_of(8))
            check_parameters(&host, &call, &a);
        answer_drop(&a);
    }
}
