/* Owns the request at hand of a connection: what the library calls for its first line, head, body and end; reading the
 * head; and setting the request aside while its answer needs time.
 *
 * A suspended connection is out of the daemon's epoll set: its reader is not called, and its end is not noticed. So the
 * loop polls for disconnects itself (connections.c), twenty times a second, which is how work for a client that has
 * gone ends within 100 ms. */
#define _DEFAULT_SOURCE /* explicit_bzero */
#include "server/transport/connections.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* How soon a client that disconnects is detected; checking a hundred connections takes 20 us. */
enum { WATCH_MS = 50 };

/* ---- Suspension ------------------------------------------------------------------------------------------------ */

/* 0.9.75: a connection that is suspended in the turn in which its request was read is read again when it is resumed,
 * and closed if its client has closed its sending side. If it waits for one turn first, the daemon knows that there is
 * nothing to read. So the daemon hears of a suspension in that turn when it calls for the request again. */
void transport_suspend(struct http_connection *connection)
{
    struct http_request *request = &connection->request;
    struct http *http = connection->daemon->http;
    assert(!request->is_suspended);
    request->is_suspended = true;
    if (!request->is_settling)
        daemon_suspend(request->mhd);
    if (http->n_suspended++ == 0)
        loop_timer_start(http->watch, WATCH_MS, WATCH_MS);
}

/* 0.9.75: a daemon without its own threads has nothing that would wake it. */
void transport_resume(struct http_connection *connection)
{
    struct http_request *request = &connection->request;
    if (!request->is_suspended)
        return;
    request->is_suspended = false;
    loop_watch_free(request->chunks.watch); /* returns the socket to the daemon, if chunks.c has used it */
    request->chunks.watch = NULL;
    if (!request->is_settling)
        daemon_resume(request->mhd);
    connection->daemon->http->n_suspended--;
    connection->daemon->driven.wants_run = true;
}

/* ---- The head ---------------------------------------------------------------------------------------------------- */

static void take_header(void *head, const char *name, const char *value) { http_head_take(head, name, value); }

static void wipe(void *self, const char *name, const char *value)
{
    (void)self;
    if (value && strcasecmp(name, "Authorization") == 0)
        explicit_bzero((char *)(uintptr_t)value, strlen(value));
}

/* The header is in the daemon's memory, which the daemon reuses without clearing it. So the secret is wiped as soon as
 * it has been checked, and is not found in a core dump of an idle server. If several such headers are sent, the request
 * is refused, but each of them is still wiped. */
static void authenticate(const struct http_connection *connection, const struct http_head *fields,
                         struct transport_head *head)
{
    struct tokens *tokens = connection->daemon->http->door->tokens;
    const char *value = fields->first[HTTP_AUTHORIZATION];
    if (!tokens)
        return;
    head->access = tokens_find(tokens, value, &head->account);
    if (value)
        daemon_headers(connection->request.mhd, wipe, NULL);
}

static void take_forwarded(void *self, const char *name, const char *value)
{
    if (value && strcasecmp(name, "X-Forwarded-For") == 0)
        forwarded_take(self, value);
}

static struct http_refusal check_host(const struct http *http, const struct transport_head *head)
{
    if (!http->door->checks_host || !head->is_elsewhere)
        return (struct http_refusal){0, NULL};
    return (struct http_refusal){421, "the request names another host; without --token-file, a server that only "
                                      "this machine reaches answers for localhost, 127.0.0.1, [::1], --host and "
                                      "--allowed-host"};
}

/* The guard has refused bytes of a head or a body; see guard.c. */
static struct transport_refusal guard_refusal(const struct http_guard *guard)
{
    return (struct transport_refusal){.status = guard->refusal.status,
                                      .detail = guard->refusal.detail,
                                      .cost = guard->head.cost ? guard->head.cost : guard->chunks.cost};
}

void transport_head(struct http_connection *connection, const char *method, const char *version, char *target,
                    struct transport_head *head)
{
    struct http *http = connection->daemon->http;
    struct http_request *request = &connection->request;
    struct http_head *fields = &http->head;
    *fields = (struct http_head){.method = method, .version = version};
    *head = (struct transport_head){.is_late = connection->is_late, .is_spare = connection->place->is_spare};
    request->is_refused = strcmp(target, HTTP_GUARD_TARGET) == 0;
    daemon_headers(request->mhd, take_header, fields);
    const char *id = fields->first[HTTP_REQUEST_ID], *trace = fields->first[HTTP_TRACEPARENT];
    head->id = id && http_id_is_valid(id) ? id : NULL;
    head->traceparent = trace && http_traceparent_is_valid(trace) ? trace : NULL;
    const char *timeout = fields->first[HTTP_REQUEST_TIMEOUT];
    head->has_wrong_timeout =
        timeout && (fields->n[HTTP_REQUEST_TIMEOUT] > 1 || !http_timeout_parse(timeout, &head->timeout_us));
    /* The client that a trusted proxy names; the proxy itself, if it names none that can be parsed. */
    struct forwarded forwarded = {.proxies = &connection->daemon->http->door->proxies};
    http_know_peer(connection);
    if (connection->is_proxy)
        daemon_headers(connection->request.mhd, take_forwarded, &forwarded);
    head->origin = connection->address;
    head->has_origin = forwarded_client(&forwarded, &head->origin) || connection->has_address;
    authenticate(connection, fields, head);
    const char *host = NULL;
    const char *wrong = api_target_split(target, &host, &head->path, &head->query);
    struct http_refusal refusal = {wrong ? 400 : 0, wrong};
    if (host)
        fields->first[HTTP_HOST] = host; /* the target's wins (RFC 9112, 3.2.2) */
    head->is_foreign = http_head_is_foreign(fields);
    head->is_elsewhere = !http_head_names_us(fields, http->options->host, http->options->allowed_host);
    head->is_unasked = http_head_is_unasked(fields);
    head->n_declared = http_head_length(fields);
    head->has_body = http_head_has_body(fields);
    if (!refusal.status)
        refusal = http_head_check(fields);
    if (!refusal.status)
        refusal = check_host(http, head);
    head->refusal = (struct transport_refusal){.status = refusal.status, .detail = refusal.detail};
    if (request->is_refused) {
        head->path = HTTP_GUARD_TARGET; /* for the log */
        head->refusal = guard_refusal(&connection->guard);
    }
}

/* ---- Its texts --------------------------------------------------------------------------------------------------- */

/* The header of a text of api_call. Several lines of a list header are one list, in order (RFC 9110, 5.3). Of any
 * other header that http_head_check lets appear several times, the first line counts. */
static const struct text {
    enum api_text_id id;
    enum http_header header;
    const char *list_name; /* NULL: not a list */
} texts[] = {
    {API_CONTENT_TYPE, HTTP_CONTENT_TYPE, NULL},
    {API_CONTENT_ENCODING, HTTP_CONTENT_ENCODING, NULL},
    {API_ACCEPT, HTTP_ACCEPT, "Accept"},
    {API_ACCEPT_LANGUAGE, HTTP_ACCEPT_LANGUAGE, "Accept-Language"},
    {API_ACCEPT_ENCODING, HTTP_ACCEPT_ENCODING, "Accept-Encoding"},
    {API_LAST_EVENT_ID, HTTP_LAST_EVENT_ID, "Last-Event-ID"},
    {API_HOST, HTTP_HOST, NULL},
    {API_PROXY_PROTOCOL, HTTP_FORWARDED_PROTO, NULL}, /* of a trusted proxy */
    {API_MCP_VERSION, HTTP_MCP_VERSION, NULL},
    {API_MCP_METHOD, HTTP_MCP_METHOD, NULL},
    {API_MCP_NAME, HTTP_MCP_NAME, NULL},
    {API_IF_MATCH, HTTP_IF_MATCH, "If-Match"},
    {API_IF_NONE_MATCH, HTTP_IF_NONE_MATCH, "If-None-Match"},
    {API_IF_RANGE, HTTP_IF_RANGE, NULL},
    {API_RANGE, HTTP_RANGE, NULL},
    {API_INFERENCE_HEADER, HTTP_INFERENCE_HEADER, NULL},
    {API_ORIGIN, HTTP_ORIGIN, NULL},
    {API_ACCESS_METHOD, HTTP_ACCESS_METHOD, NULL},
    {API_ACCESS_HEADERS, HTTP_ACCESS_HEADERS, "Access-Control-Request-Headers"},
};

_Static_assert(sizeof texts / sizeof *texts == (int)API_N_TEXTS - (int)API_CONTENT_TYPE,
               "a text of api_call that no header fills");

/* The lines of one list, joined at `at`; while that is NULL, their length is only computed. */
struct list {
    const char *name;
    char *at;
    size_t n;
};

static void append(struct list *list, const char *text)
{
    size_t n = strlen(text);
    if (list->at)
        memcpy(list->at + list->n, text, n);
    list->n += n;
}

static void take_line(void *self, const char *name, const char *value)
{
    struct list *list = self;
    if (strcasecmp(name, list->name) != 0)
        return;
    if (list->n)
        append(list, ", ");
    append(list, value ? value : "");
}

static size_t copy_text(const struct http_connection *connection, const struct text *text, char *at)
{
    const struct http_head *fields = &connection->daemon->http->head;
    struct list list = {text->list_name, at, 0};
    if (text->list_name && fields->n[text->header] > 1)
        daemon_headers(connection->request.mhd, take_line, &list);
    else
        append(&list, fields->first[text->header]);
    if (at)
        at[list.n] = '\0';
    return list.n + 1;
}

size_t transport_texts(const struct http_connection *connection, char *at, const char **copies)
{
    const struct http_head *fields = &connection->daemon->http->head;
    size_t n = 0;
    for (const struct text *text = texts; text < texts + sizeof texts / sizeof *texts; text++) {
        if (!fields->first[text->header] || (text->id == API_PROXY_PROTOCOL && !connection->is_proxy))
            continue;
        if (at)
            copies[text->id] = at + n;
        n += copy_text(connection, text, at ? at + n : NULL);
    }
    return n;
}

/* ---- What the daemon calls --------------------------------------------------------------------------------------- */

void *http_begin(void *self, void *context, const char *uri, struct MHD_Connection *mhd)
{
    struct http *http = ((struct http_daemon *)self)->http;
    struct http_connection *connection = context;
    char id[17];
    if (!connection)
        return NULL;
    http_make_id(http, id);
    connection->request = (struct http_request){.mhd = mhd};
    connection->request.exchange = http->events->begin(http->self, connection, uri, id);
    if (!connection->request.exchange)
        return NULL;
    http_phase(http, connection, HTTP_PHASE_HEAD);
    return connection;
}

static bool receive_head(struct http_connection *connection, const char *method, const char *version)
{
    struct http *http = connection->daemon->http;
    struct http_request *request = &connection->request;
    request->is_http_1_0 = strcmp(version, "HTTP/1.0") == 0;
    request->is_head = strcmp(method, "HEAD") == 0;
    http_phase(http, connection, HTTP_PHASE_BODY);
    return http->events->head(request->exchange, method, version);
}

static bool receive_end(struct http_connection *connection)
{
    struct http *http = connection->daemon->http;
    struct http_request *request = &connection->request;
    struct transport_refusal refusal = {0};
    http_phase(http, connection, HTTP_PHASE_ANSWER);
    if (connection->guard.refusal.status && daemon_has_trailer(request->mhd, HTTP_GUARD_TRAILER)) {
        request->is_refused = true;
        refusal = guard_refusal(&connection->guard);
    }
    request->is_settling = true;
    bool goes_on = http->events->whole(request->exchange, request->is_refused ? &refusal : NULL);
    request->is_settling = request->is_suspended;
    return goes_on;
}

/* The daemon calls this once with the head, then for each part of the body, then with no data at its end, and again
 * after a resume. */
bool http_receive(void *self, const char *method, const char *version, const char *bytes, size_t *n_bytes)
{
    struct http_connection *connection = self;
    struct http *http = connection->daemon->http;
    struct http_request *request = &connection->request;
    size_t n = *n_bytes;
    if (http->is_stopping)
        return false;
    switch (connection->phase) {
    case HTTP_PHASE_HEAD: return receive_head(connection, method, version);
    case HTTP_PHASE_BODY:
        *n_bytes = 0;
        if (!n)
            return receive_end(connection);
        request->n_received += n;
        http_received(connection, n);
        return http->events->body(request->exchange, bytes, n);
    case HTTP_PHASE_NEW:
    case HTTP_PHASE_IDLE:
    case HTTP_PHASE_ANSWER: break;
    }
    /* Whether the daemon's call is the one that a suspension was put off to. */
    bool was_settling = request->is_settling;
    request->is_settling = false;
    if (was_settling && request->is_suspended)
        daemon_suspend(request->mhd);
    return request->is_suspended || http->events->go_on(request->exchange);
}

void http_end(void *self, bool is_complete)
{
    struct http_connection *connection = self;
    struct http *http = connection->daemon->http;
    if (connection->request.is_settling) /* its client has reset the connection before the call that suspends it */
        transport_resume(connection);
    assert(!connection->request.is_suspended);
    http->events->end(connection->request.exchange, is_complete);
    connection->request.exchange = NULL;
    http_phase(http, connection, HTTP_PHASE_IDLE);
}
