/* Owns the table of statuses, and their text in the OpenAPI document. */
#include "api/statuses.h"

#include <stdio.h>
#include <string.h>

#define AT(place) API_AT_##place

const struct api_status api_statuses[] = {
    {202, "Accepted", "a notification, which has no answer", AT(MESSAGES)},
    {204, "No Content", "Last-Event-ID is that of an answer that has ended, which does not begin again", AT(LIVE)},
    {206, "Partial Content", "the part that Range asks for", AT(RANGES)},
    {304, "Not Modified", "what If-None-Match names is still the answer", AT(TAGS)},
    {400, "Bad Request", "no HTTP, JSON or file that can be read, or a name given twice", AT(ALL)},
    {401, "Unauthorized", "no token, or one that is not known", AT(CLOSED)},
    {403, "Forbidden",
     "the token may read and not write; a browser sends it for a page of another origin that --cors-origin does not "
     "name",
     AT(CHANGES) | AT(LIVE) | AT(MESSAGES)},
    {404, "Not Found", "nothing of this name; an endpoint that is switched off", AT(NAMES) | AT(LIVE) | AT(MESSAGES)},
    {405, "Method Not Allowed", "the path has other methods: Allow", 0},
    {406, "Not Acceptable", "nothing that Accept, format or Accept-Encoding names can carry the answer",
     AT(REQUESTS) | AT(CODED) | AT(MESSAGES)},
    {408, "Request Timeout", "the request arrived too slowly", AT(ALL)},
    {412, "Precondition Failed", "If-Match, If-None-Match or a sha256 does not hold", AT(FILES) | AT(REQUESTS)},
    {413, "Content Too Large", "the body, its JSON, the answer or its work passes a limit, which is named", AT(ALL)},
    {414, "URI Too Long", "the request line passes its limit", AT(ALL)},
    {415, "Unsupported Media Type", "a content type or coding that is not read", AT(BODIES)},
    {416, "Range Not Satisfiable", "Range begins after the end", AT(RANGES)},
    {421, "Misdirected Request", "Host names no host of this server (--allowed-host)", AT(ALL)},
    {422, "Unprocessable Content", "a request that can be read and is not valid",
     AT(BODIES) | AT(REQUESTS) | AT(TEXTS) | AT(LIVE)},
    {429, "Too Many Requests", "the token's quota, --max-streams or --experiments is used up: Retry-After", AT(CLOSED)},
    {431, "Request Header Fields Too Large", "the head passes its limit", AT(ALL)},
    {501, "Not Implemented",
     "a transfer coding other than chunked; a change of what is part of the program; a guard that the store of weights "
     "and presets cannot hold",
     AT(ALL)},
    {503, "Service Unavailable",
     "a queue, memory or the connections are full, the time of X-Request-Timeout or timeout is over, or the server is "
     "ending: Retry-After",
     AT(ALL)},
    {505, "HTTP Version Not Supported", "neither HTTP/1.1 nor HTTP/1.0", AT(ALL)},
    {0, NULL, NULL, 0},
};

const char *api_status_title(int status)
{
    for (const struct api_status *row = api_statuses; row->status; row++)
        if (row->status == status)
            return row->title;
    return status < 500 ? "Client Error" : "Server Error";
}

static void describe(struct api_text *text, const struct api_status *row)
{
    char status[12];
    snprintf(status, sizeof status, "%d", row->status);
    api_text_open(text, status, '{');
    api_text_description(text, row->when);
    if (row->status == 429 || row->status == 503) {
        api_text_named(text, ",\"headers\":{\"Retry-After\":{\"description\":", pe_text("seconds"));
        api_text_put(text, ",\"schema\":{\"type\":\"integer\"}}}");
    }
    if (row->status >= 400)
        api_text_put(text, ",\"content\":{\"application/problem+json\":{\"schema\":{\"$ref\":"
                           "\"#/components/schemas/Problem\"}},\"application/json\":{\"schema\":{\"$ref\":"
                           "\"#/components/schemas/Problem\"}}}"); /* the second under /v2 */
    api_text_put(text, "}");
}

void api_statuses_describe(struct api_text *text)
{
    api_text_put(text, "\"responses\":{");
    for (const struct api_status *row = api_statuses; row->status; row++)
        describe(text, row);
    api_text_put(text, "}");
}

void api_statuses_refer(struct api_text *text, const struct api_route *route, const char *method)
{
    /* The statuses that the answer of an operation may have. */
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    bool changes = strcmp(method, "PUT") == 0 || strcmp(method, "DELETE") == 0;
    bool keeps_files = api_route_keeps(route, API_FILES), keeps_entries = api_route_keeps(route, API_ENTRIES);
    bool is_live = route->kind == API_LIVE, is_page = route->kind == API_PAGE, is_store = route->kind == API_STORE;
    bool is_inference = route->kind == API_PROTOCOL && route->example;
    bool is_request = route->kind == API_COMPUTES || is_inference || is_store;
    bool is_kept =
        (route->kind == API_COMPUTES && strcmp(method, "POST") != 0) || (keeps_files && !changes) || is_store;
    bool is_document = route->kind == API_CATALOGUE && !route->name;
    bool has_tags = is_kept || is_page || is_document || (keeps_entries && !changes);
    unsigned where = API_AT_ALL | (route->is_open ? 0 : API_AT_CLOSED) | (route->name ? API_AT_NAMES : 0) |
                     (changes ? API_AT_CHANGES : 0) | (is_get || strcmp(method, "DELETE") == 0 ? 0 : API_AT_BODIES) |
                     (is_request ? API_AT_REQUESTS : 0) | (route->lang ? API_AT_TEXTS : 0) |
                     (keeps_files || keeps_entries ? API_AT_FILES : 0) | (has_tags ? API_AT_TAGS : 0) |
                     (is_page ? API_AT_CODED : 0) | (is_live ? API_AT_LIVE : 0) |
                     (route->kind == API_MESSAGES ? API_AT_MESSAGES : 0) | (is_kept && is_get ? API_AT_RANGES : 0);
    for (const struct api_status *row = api_statuses; row->status; row++)
        if (row->where & where)
            api_text_format(text, ",\"%d\":{\"$ref\":\"#/components/responses/%d\"}", row->status, row->status);
}
