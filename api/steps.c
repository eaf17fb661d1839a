/* The two calls that begin every answer: the check of the request's head, and the answer itself, by the steps of its
 * route.
 *
 * Everything is answered by the same few steps, read, check and build, each in a function of the endpoint's row; the
 * server may run them on different threads, or stop between them when the client has disconnected. A thread that must
 * not block stops before the first step for which it would have to, and a worker goes on there. An answer whose client
 * has disconnected may be incomplete; it is thrown away here, in one place, for all formats. */
#include "api/routes.h"
#include "api/inputs/inputs.h"
#include "api/mcp/mcp.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"

#include <inttypes.h>
#include <string.h>

/* ---- The head ---- */

/* The catalogue is constant; an endpoint that computes states itself whether its answer is repeatable. */
static struct api_reply *finish(struct api_reply *reply, const struct api_route *route, const struct api_host *host,
                                const struct api_call *call)
{
    if (route && route->kind == API_CATALOGUE && reply->status == 200)
        reply->is_repeatable = true;
    return api_cors(api_reply_set_route(reply, route ? route->pattern : ""), host, call);
}

static struct api_reply *refuse(const struct api_problem *problem, const struct api_route *route,
                                const struct api_host *host, const struct api_call *call)
{
    bool is_foreign = route && route->kind == API_MESSAGES && problem->status == 403;
    return finish(is_foreign ? api_mcp_foreign(problem->error.detail) : api_reply_problem(problem), route, host, call);
}

struct api_reply *api_head(const struct api_host *host, struct api_call *call, uint64_t declared_bytes)
{
    struct api_path parts;
    const struct api_route *route = api_route_find(call->path, &parts);
    struct api_problem problem;
    if (!api_check_head(host, call, route, declared_bytes, &problem))
        return refuse(&problem, route, host, call);
    call->route = route;
    return NULL;
}

struct api_reply *api_refuse_quota(const struct api_host *host, const struct api_call *call, const char *detail,
                                   uint64_t retry_s)
{
    struct api_path parts;
    struct api_problem problem;
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%" PRIu64, retry_s);
    api_fail(&problem, 429, "", "%s", detail);
    api_problem_header(&problem, "Retry-After", seconds);
    return finish(api_reply_problem(&problem), api_route_find(call->path, &parts), host, call);
}

struct api_reply *api_refuse(const struct api_host *host, const struct api_call *call, int status, const char *detail)
{
    return api_cors(api_refusal(status, detail), host, call);
}

bool api_is_open(const char *path)
{
    struct api_path parts;
    const struct api_route *route = api_route_find(path, &parts);
    return route && route->is_open;
}

/* ---- The answer ---- */

static void set_call(struct api_request *request, const struct api_host *host, const struct api_call *call,
                     const struct api_route *route, const struct api_path *parts)
{
    request->host = host;
    request->call = call;
    request->route = route;
    request->route_at = api_route_at;
    request->check_head = api_check_head;
    request->path = *parts;
    request->presets = host->presets;
    request->max_json = host->max_json;
    request->must_not_block = call->must_not_block;
    request->body_is_ours = call->body_is_ours && !call->must_not_block; /* else its bytes are the key of its answer */
    request->lang = pe_spoken();
}

/* The reply to a request whose last step this was; NULL: the refusal. An answer whose client has disconnected
 * may be incomplete, while other clients may still want the same answer: so nothing of it leaves this function, for any
 * format or handler. The refusal is not repeatable, so it is neither shared nor cached. */
static struct api_reply *conclude(struct api_request *request, struct api_reply *reply)
{
    if (pe_was_cancelled()) {
        api_reply_free(reply);
        reply = NULL;
        api_fail_left(&request->problem);
    } else if (!reply) {
        api_memory_refusal(request, &request->problem);
    }
    reply = reply ? reply : api_reply_problem(&request->problem);
    return finish(reply, request->route, request->host, request->call);
}

/* Of an endpoint that reads no request; nothing of it is allocated. */
static enum api_outcome answer_at_once(const struct api_host *host, const struct api_call *call,
                                       const struct api_route *route, const struct api_path *parts,
                                       struct api_reply **reply)
{
    struct api_request request;
    api_request_init(&request, route->operation);
    set_call(&request, host, call, route, parts);
    if (api_is_options(call)) {
        char allowed[API_ALLOWED_BYTES];
        api_print_allowed(route, allowed);
        *reply = api_options(call, allowed);
    } else {
        *reply = route->handle(&request);
    }
    bool is_late = !*reply && request.is_late;
    if (!is_late)
        *reply = conclude(&request, *reply);
    api_request_drop(&request);
    return is_late ? API_ELSEWHERE : API_ANSWERED;
}

/* Finds the route, unless api_head has done so. API_READ: *request is there, and nothing of it is read. */
static enum api_outcome begin(const struct api_host *host, const struct api_call *call, struct api_request **request,
                              struct api_reply **reply)
{
    struct api_path parts;
    struct api_problem problem;
    const struct api_route *route = call->route;
    if (!route || !api_route_matches(route->pattern, call->path, &parts)) {
        route = api_route_find(call->path, &parts);
        if (!api_check_head(host, call, route, call->body_bytes, &problem)) {
            *reply = refuse(&problem, route, host, call);
            return API_ANSWERED;
        }
    }
    if (api_is_options(call))
        return answer_at_once(host, call, route, &parts, reply);
    if (call->must_not_block && (route->is_slow || api_changes(call))) /* a change may wait for a disk */
        return API_ELSEWHERE;
    if (route->handle)
        return answer_at_once(host, call, route, &parts, reply);
    *request = api_request_new(route->operation, api_steps_of(route)->own_bytes);
    if (!*request) {
        api_fail_memory(&problem);
        *reply = refuse(&problem, route, host, call);
        return API_ANSWERED;
    }
    set_call(*request, host, call, route, &parts);
    return API_READ;
}

/* From the first step that has not been taken. */
static bool take_steps(struct api_request *request)
{
    const struct api_steps *steps = api_steps_of(request->route);
    for (; steps->read[request->n_read_steps]; request->n_read_steps++)
        if (!steps->read[request->n_read_steps](request))
            return false;
    request->is_late = request->must_not_block && request->draws_first;
    if (request->is_late)
        return false;
    if (request->draws_first)
        api_request_fill(request);
    if (!request->is_checked && steps->check && !steps->check(request))
        return false;
    request->is_checked = true;
    request->is_late = request->must_not_block && request->is_long;
    return !request->is_late;
}

enum api_outcome api_read(const struct api_host *host, const struct api_call *call, struct api_request **request,
                          struct api_reply **reply)
{
    enum api_outcome outcome = *request ? API_READ : begin(host, call, request, reply);
    struct api_request *r = *request;
    if (outcome != API_READ)
        return outcome;
    enum pe_lang lang = pe_spoken();
    pe_speak_in(r->lang);
    r->must_not_block = call->must_not_block;
    r->is_late = false;
    bool fine = take_steps(r);
    if (r->is_late) {
        outcome = API_ELSEWHERE;
    } else if (!fine || pe_was_cancelled()) {
        *reply = conclude(r, NULL);
        api_request_free(r);
        *request = NULL;
        outcome = API_ANSWERED;
    }
    pe_speak_in(lang);
    return outcome;
}

struct api_reply *api_build(struct api_request *request)
{
    enum pe_lang lang = pe_spoken();
    pe_speak_in(request->lang);
    struct api_reply *reply = conclude(request, api_steps_of(request->route)->build(request));
    api_request_free(request);
    pe_speak_in(lang);
    return reply;
}

struct api_reply *api_answer(const struct api_host *host, const struct api_call *call)
{
    struct api_call spoken = *call;
    struct api_request *request = NULL;
    struct api_reply *reply = NULL;
    api_speak(&spoken);
    if (api_read(host, call, &request, &reply) == API_READ)
        reply = api_build(request);
    else
        api_request_free(request);
    api_speak(NULL);
    return reply;
}
