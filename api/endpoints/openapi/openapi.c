/* GET /openapi.json: the endpoints and every parameter as OpenAPI 3.1, from the same tables that read the requests.
 * This file prints the document around its paths (paths.c) and its schemas (schemas.c). */
#include "api/endpoints/openapi/openapi.h"
#include "api/requests/requests.h"
#include "api/statuses.h"

#include <assert.h>

/* Header parameters of every operation: the time limit of the answer, and the name of the request. */
static const char common_parameters[] =
    "\"RequestTimeout\":{\"name\":\"X-Request-Timeout\",\"in\":\"header\",\"description\":\"seconds, as 2.5, from the "
    "last "
    "byte of the request: an answer that has not begun by then is 503, one that has is cut\",\"schema\":{\"type\":"
    "\"number\",\"exclusiveMinimum\":0,\"maximum\":1000000}},\"RequestId\":{\"name\":\"X-Request-Id\",\"in\":"
    "\"header\","
    "\"description\":\"the request's name in the answer and in the log; without it, or with another, one is made\","
    "\"schema\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9._-]{1,128}$\"}}";

static void add_components(struct api_text *text)
{
    api_text_put(text, "\"security\":[{},{\"bearer\":[]}],\"components\":{\"securitySchemes\":{\"bearer\":{\"type\":"
                       "\"http\",\"scheme\":\"bearer\"}},\"schemas\":{");
    api_openapi_schemas(text);
    api_text_put(text, "},");
    api_statuses_describe(text);
    api_text_put(text, ",\"parameters\":{");
    api_text_put_described(text, common_parameters);
    api_text_put(text, "}}");
}

static void print(struct api_text *text, const void *about)
{
    const struct api_request *request = about;
    const struct api_route *route;
    const char *build = request->host->page ? request->host->page->build : "none";
    api_text_put_described(
        text, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"posenc\",\"version\":\"" PE_VERSION
              "\",\"description\":\"Transformer positional encodings: tables, rotated queries and keys, attention "
              "maps, analyses\"},\"paths\":{");
    for (size_t i = 0; (route = request->route_at(i)); i++) {
        api_text_add(text, ",", i > 0);
        api_openapi_path(text, route, build);
    }
    api_text_put(text, "},");
    add_components(text);
    api_text_put(text, "}");
}

struct api_reply *api_openapi(struct api_request *request)
{
    static struct api_document documents[PE_N_LANGS] = {[PE_EN] = {.print = print}, [PE_ZH] = {.print = print}};
    if (!api_lang_of_query(request->call, &request->lang, &request->problem))
        return NULL;
    assert(request->lang == pe_spoken()); /* it is the call's, so print writes in it */
    return api_reply_set_language(api_reply_document(&documents[request->lang], request, request->call, "no-cache"),
                                  request->lang);
}
