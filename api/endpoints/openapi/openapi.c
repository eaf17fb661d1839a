/* GET /openapi.json: the endpoints and every parameter as OpenAPI 3.1, from the same tables that read the requests.
 * The schemas are in schemas.c. */
#include "api/endpoints/openapi/openapi.h"
#include "api/formats/format.h"
#include "api/requests/requests.h"
#include "api/statuses.h"

#include <assert.h>
#include <string.h>

/* ---- Bodies and queries of requests ---- */

static void add_request_schema(struct api_text *text, const struct api_route *route)
{
    api_text_put(text, "{\"allOf\":[{\"$ref\":\"#/components/schemas/Request\"}");
    if (route->component)
        api_text_format(text, ",{\"$ref\":\"#/components/schemas/%s\"}", route->component);
    if (!route->instead || *route->instead) {
        /* Every scheme that has the operation, or a field that denotes one. */
        api_text_put(text,
                     ",{\"anyOf\":[{\"required\":[\"preset\"]},{\"required\":[\"hf_config\"]},{\"required\":[\"gguf\"]}"
                     ",{\"required\":[\"said\"]}");
        if (route->instead)
            api_text_format(text, ",{\"required\":[\"%s\"]}", route->instead);
        for (size_t i = 0; i < pe_n_schemes(); i++)
            if (pe_scheme_can(pe_scheme_at(i), route->operation))
                api_text_format(text, ",{\"$ref\":\"#/components/schemas/scheme.%s\"}", pe_scheme_at(i)->name);
        api_text_put(text, "]}");
    }
    api_text_put(text, "]}");
}

static void add_body(struct api_text *text, const struct api_route *route)
{
    api_text_put(text, ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":");
    add_request_schema(text, route);
    api_text_format(text, ",\"example\":%s", route->example);
    api_text_put_described(
        text, "},\"multipart/form-data\":{\"schema\":{\"type\":\"object\",\"description\":\"part request: the "
              "JSON; other parts: .npy files named after tensors\"}},\"application/vnd.safetensors\":{},"
              "\"application/x-npy\":{},\"application/zip\":{},\"application/x-gguf\":{}");
    if (route->takes_text)
        api_text_put_described(text, ",\"text/plain\":{\"schema\":{\"type\":\"string\",\"description\":\"a text as it "
                                     "was pasted: a log, a command, a config that was printed\"}}");
    api_text_put(text, "}}");
}

static void add_query(struct api_text *text, const struct api_route *route)
{
    api_text_put_described(
        text, ",\"parameters\":[{\"name\":\"request\",\"in\":\"query\",\"description\":\"the whole request as "
              "JSON\",\"content\":{\"application/json\":{\"schema\":");
    add_request_schema(text, route);
    api_text_format(text, ",\"example\":%s", route->example);
    api_text_put_described(
        text, "}}},{\"name\":\"fields\",\"in\":\"query\",\"style\":\"form\",\"explode\":true,\"description\":"
              "\"the request's fields by name: text, numbers and booleans as they are, lists with commas, the "
              "rest as JSON\",\"schema\":{\"type\":\"object\"}}]");
}

/* The protocol's own specification describes the rest. */
static void add_inference_body(struct api_text *text, const char *example)
{
    api_text_put_described(
        text,
        ",\"requestBody\":{\"content\":{\"application/"
        "json\":{\"schema\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},\"parameters\":{\"type\":"
        "\"object\",\"description\":\"the request's fields as strings, numbers and booleans; lists and objects as JSON "
        "text\",\"properties\":{\"timeout\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"microseconds from "
        "the last byte of the request, as header X-Request-Timeout states them in seconds; 0: any "
        "time\"}}},\"inputs\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\",\"shape\","
        "\"datatype\"],\"properties\":{\"name\":{\"type\":\"string\"},\"shape\":{\"type\":\"array\"},\"datatype\":{"
        "\"type\":\"string\"},\"parameters\":{\"type\":\"object\"},\"data\":{\"type\":\"array\"}}}},\"outputs\":{"
        "\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{\"name\":{\"type\":"
        "\"string\"},\"parameters\":{\"type\":\"object\"}}}}}}");
    api_text_format(text, ",\"example\":%s},\"application/octet-stream\":{}}}", example);
}

/* ---- Responses ---- */

/* Also writes the end of the responses. */
static void add_other_responses(struct api_text *text, const struct api_route *route, const char *method)
{
    api_statuses_refer(text, route, method);
    api_text_put_described(text, ",\"default\":{\"description\":\"what was wrong, in words\",\"content\":{");
    api_text_format(text, "\"application/%sjson\":{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}}}",
                    route->kind == API_PROTOCOL ? "" : "problem+");
}

static void add_entries(struct api_text *text, const char *name, const char *entry)
{
    api_text_name(text, name);
    api_text_format(text, "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/%s\"}}", entry);
}

/* One thing of the catalogue, or lists of them: one under the path's own name, and others beside it. */
static void add_catalogue_schema(struct api_text *text, const struct api_route *route)
{
    const char *name = route->pattern + 1;
    if (route->name) {
        api_text_format(text, "\"schema\":{\"$ref\":\"#/components/schemas/%s\"}", route->entry);
        return;
    }
    api_text_format(text, "\"schema\":{\"type\":\"object\",\"required\":[\"%s\"],\"properties\":{", name);
    add_entries(text, name, route->entry);
    for (const char *const *list = route->lists; list && *list; list++)
        add_entries(text, *list, route->entry);
    api_text_put(text, "}}");
}

static void add_responses(struct api_text *text, const struct api_route *route, const char *method)
{
    bool computes = api_route_computes(route), is_live = route->kind == API_LIVE;
    api_text_put_described(text, ",\"responses\":{\"200\":{\"description\":\"the answer\",\"content\":{");
    api_text_format(text, "\"%s\":{", route->media_type ? route->media_type : api_json_type);
    if (computes)
        api_text_format(text, "\"schema\":{\"$ref\":\"#/components/schemas/%s\"}",
                        route->answer ? route->answer : "Answer");
    else if (route->entry)
        add_catalogue_schema(text, route);
    api_text_put(text, "}");
    if (is_live || route->kind == API_MESSAGES)
        api_text_put(text, ",\"text/event-stream\":{}");
    for (size_t i = 0; computes && !is_live && i < api_n_formats(); i++)
        if (strcmp(api_format_at(i)->media_type, api_json_type) != 0)
            api_text_format(text, ",\"%s\":{}", api_format_at(i)->media_type);
    api_text_put(text, "}}");
    add_other_responses(text, route, method);
}

/* ---- Methods that store files and entries ---- */

/* PUT takes the same file that GET returns. */
static void add_file_method(struct api_text *text, const struct api_route *route, const char *method)
{
    bool is_put = strcmp(method, "PUT") == 0, is_delete = strcmp(method, "DELETE") == 0;
    if (is_put)
        api_text_put(text, ",\"requestBody\":{\"required\":true,\"content\":{\"application/vnd.safetensors\":{}}}");
    api_text_put(text, ",\"responses\":{");
    if (is_delete)
        api_text_put_described(text, "\"204\":{\"description\":\"it is no longer stored\"}");
    else if (is_put)
        api_text_put_described(text, "\"201\":{\"description\":\"stored: its bytes, sha256 and tensors\",\"content\":{"
                                     "\"application/json\":{}}},\"200\":{\"description\":\"replaced\",\"content\":{"
                                     "\"application/json\":{}}}");
    else
        api_text_put_described(
            text, "\"200\":{\"description\":\"the file\",\"content\":{\"application/vnd.safetensors\":{}}}");
    add_other_responses(text, route, method);
}

static void add_entry_response(struct api_text *text, const char *status, const char *about, const char *entry)
{
    api_text_format(text, "\"%s\":{\"description\":", status);
    api_text_string(text, pe_text(about));
    api_text_format(text, ",\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}}}",
                    entry);
}

/* PUT takes what GET returns; what the server sets itself may be left out. */
static void add_entry_change(struct api_text *text, const struct api_route *route, const char *method)
{
    bool is_put = strcmp(method, "PUT") == 0;
    if (is_put)
        api_text_put_described(
            text, ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":{\"type\":"
                  "\"object\",\"required\":[\"config\"],\"properties\":{\"config\":{\"type\":\"object\","
                  "\"description\":\"a request without its sequence\"},\"source\":{\"type\":\"string\"},"
                  "\"note\":{\"type\":\"string\"}}},\"example\":{\"config\":{\"scheme\":\"rope\",\"base\":500000}}}}}");
    api_text_put(text, ",\"responses\":{");
    if (is_put) {
        add_entry_response(text, "201", "stored", route->entry);
        api_text_put(text, ",");
        add_entry_response(text, "200", "replaced", route->entry);
    } else
        api_text_put_described(text, "\"204\":{\"description\":\"it is no longer stored\"}");
    add_other_responses(text, route, method);
}

/* ---- Parameters ---- */

/* Those in the path, the language, and how much of it. build: of this program's page, as an example. */
static void add_parameters(struct api_text *text, const struct api_route *route, const char *build, bool is_change)
{
    static const char *const names[] = {"name", "preset", "version", "build", "file", "query", "key"};
    static const char *const steps[] = {"{name}", "{preset}", "{version}", "{build}", "{file}", "{query}", "{key}"};
    const char *const examples[] = {is_change && route->new_name ? route->new_name : route->name,
                                    route->name,
                                    "1",
                                    build,
                                    route->name,
                                    route->name,
                                    ".zmetadata"};
    api_text_open(text, "parameters", '[');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!strstr(route->pattern, steps[i]))
            continue;
        api_text_name(text, NULL);
        api_text_format(text,
                        "{\"name\":\"%s\",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"},"
                        "\"example\":\"%s\"}",
                        names[i], examples[i]);
    }
    if (route->lang) {
        api_text_name(text, NULL);
        api_text_put(text, "{\"name\":\"lang\",\"in\":\"query\"");
        api_text_description(text, route->lang);
        api_text_put(text, ",\"schema\":{\"type\":\"string\",\"enum\":[\"en\",\"zh\"]}}");
    }
    if (route->lists) {
        api_text_put(text, ",{\"name\":\"view\",\"in\":\"query\"");
        api_text_description(text, "page: names, labels and ranges alone, which the web page needs first; default all");
        api_text_put(text, ",\"schema\":{\"type\":\"string\",\"enum\":[\"page\"]}}");
    }
    api_text_put(text, "]");
}

/* ---- All of a path ---- */

/* The sections of the document. */
static const char *const tags[] = {
    [API_COMPUTES] = "compute",   [API_LIVE] = "compute",      [API_STORE] = "compute",   [API_CATALOGUE] = "catalogue",
    [API_ENTRIES] = "catalogue",  [API_FILES] = "weights",     [API_STATE] = "operation", [API_PAGE] = "operation",
    [API_PROTOCOL] = "inference", [API_MESSAGES] = "operation"};

static const char *lower(const char *method)
{
    static const char *const words[] = {"GET", "get", "HEAD", "head", "POST", "post", "PUT", "put", "DELETE", "delete"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i += 2)
        if (strcmp(method, words[i]) == 0)
            return words[i + 1];
    return "x-query"; /* OpenAPI 3.1 does not know the method QUERY */
}

static void add_method(struct api_text *text, const struct api_route *route, const char *build, const char *method)
{
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    bool is_change = strcmp(method, "PUT") == 0 || strcmp(method, "DELETE") == 0;
    api_text_open(text, lower(method), '{');
    api_text_member(text, "summary", pe_text(route->summary));
    api_text_format(text, ",\"tags\":[\"%s\"]", tags[route->kind]);
    if (strchr(route->pattern, '{') || route->lang)
        add_parameters(text, route, build, is_change);
    else if (api_route_computes(route) && is_get)
        add_query(text, route);
    if (api_route_computes(route) && !is_get)
        add_body(text, route);
    if (route->kind == API_MESSAGES)
        api_text_format(
            text,
            ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\"},"
            "\"example\":%s}}}",
            route->example);
    if (route->kind == API_PROTOCOL && route->example)
        add_inference_body(text, route->example);
    if (api_route_keeps(route, API_FILES))
        add_file_method(text, route, method);
    else if (api_route_keeps(route, API_ENTRIES) && is_change)
        add_entry_change(text, route, method);
    else
        add_responses(text, route, method);
    api_text_put(text, "}");
}

/* ---- The document ---- */

/* Header parameters of every operation: the time limit of the answer, and the name of the request. */
static const char common_parameters[] =
    "\"RequestTimeout\":{\"name\":\"X-Request-Timeout\",\"in\":\"header\",\"description\":\"seconds, as 2.5, from the "
    "last "
    "byte of the request: an answer that has not begun by then is 503, one that has is cut\",\"schema\":{\"type\":"
    "\"number\",\"exclusiveMinimum\":0,\"maximum\":1000000}},\"RequestId\":{\"name\":\"X-Request-Id\",\"in\":"
    "\"header\","
    "\"description\":\"the request's name in the answer and in the log; without it, or with another, one is made\","
    "\"schema\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9._-]{1,128}$\"}}";

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
        api_text_open(text, route->pattern, '{');
        api_text_put(text, "\"parameters\":[{\"$ref\":\"#/components/parameters/RequestTimeout\"},{\"$ref\":"
                           "\"#/components/parameters/RequestId\"}]");
        for (const struct api_method_row *row = api_methods; row->name; row++)
            if (row->method & route->methods)
                add_method(text, route, build, row->name);
        api_text_put(text, "}");
    }
    api_text_put(text, "},");
    api_text_put(text, "\"security\":[{},{\"bearer\":[]}],\"components\":{\"securitySchemes\":{\"bearer\":{\"type\":"
                       "\"http\",\"scheme\":\"bearer\"}},\"schemas\":{");
    api_openapi_schemas(text);
    api_text_put(text, "},");
    api_statuses_describe(text);
    api_text_put(text, ",\"parameters\":{");
    api_text_put_described(text, common_parameters);
    api_text_put(text, "}}");
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
