/* The two calls that begin every answer: the check of the request's head, and the answer itself, by the steps of its
 * route.
 *
 * Everything is answered by the same few steps, read, check and build, each in a function of the endpoint's row; the
 * server may run them on different threads, or stop between them when the client has disconnected. An answer whose
 * client has disconnected may be incomplete; it is thrown away here, in one place, for all formats. */
#include "api/routes.h"
#include "api/inputs/inputs.h"
#include "api/mcp/mcp.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"

#include <inttypes.h>
#include <string.h>

/* ---- The two calls ---- */

/* The catalogue is constant; an endpoint that computes states itself whether its answer is repeatable. */
static bool is_constant(const struct api_reply *reply, const struct api_route *route)
{
    return reply && route && reply->status == 200 && route->kind == API_CATALOGUE;
}

static struct api_reply *finish(struct api_reply *reply, const struct api_route *route, const struct api_host *host,
                                const struct api_call *call)
{
    if (is_constant(reply, route))
        reply->is_repeatable = true;
    pe_speak_in(PE_EN);
    return api_cors(api_reply_set_route(reply, route ? route->pattern : ""), host, call);
}

static struct api_reply *refuse(const struct api_problem *problem, const struct api_route *route,
                                const struct api_host *host, const struct api_call *call)
{
    if (route && route->kind == API_MESSAGES && problem->status == 403)
        return finish(api_mcp_foreign(problem->error.detail), route, host, call);
    return finish(api_reply_problem(problem), route, host, call);
}

struct api_reply *api_head(const struct api_host *host, struct api_call *call, uint64_t declared_bytes)
{
    struct api_path parts;
    const struct api_route *route = api_route_find(call->path, &parts);
    struct api_problem problem;
    call->lang = api_lang_of(call);
    pe_speak_in(call->lang);
    if (!api_check_head(host, call, route, declared_bytes, &problem))
        return refuse(&problem, route, host, call);
    pe_speak_in(PE_EN);
    call->route = route;
    return NULL;
}

struct api_reply *api_refuse_quota(const struct api_host *host, const struct api_call *call, const char *detail,
                                   uint64_t retry_s)
{
    struct api_path parts;
    struct api_problem problem;
    char seconds[24];
    api_speak(call);
    snprintf(seconds, sizeof seconds, "%" PRIu64, retry_s);
    api_fail(&problem, 429, "", "%s", detail);
    api_problem_header(&problem, "Retry-After", seconds);
    return finish(api_reply_problem(&problem), api_route_find(call->path, &parts), host, call);
}

struct api_reply *api_refuse(const struct api_host *host, const struct api_call *call, int status, const char *detail)
{
    api_speak(call);
    struct api_reply *reply = api_cors(api_refusal(status, detail), host, call);
    pe_speak_in(PE_EN);
    return reply;
}

bool api_is_open(const char *path)
{
    struct api_path parts;
    const struct api_route *route = api_route_find(path, &parts);
    return route && route->is_open;
}

/* ---- The steps ---- */

/* Those of an endpoint that reads a request. */
static const struct api_steps *steps_of(const struct api_route *route)
{
    return route->steps ? route->steps : &api_operate;
}

static void begin(struct api_request *request, const struct api_host *host, const struct api_call *call,
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
    request->body_is_ours = call->body_is_ours && !call->must_not_block; /* else the call may be repeated */
    request->lang = pe_spoken();
    pe_watch(call->is_gone, call->caller);
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
    pe_watch(NULL, NULL);
    reply = reply ? reply : api_reply_problem(&request->problem);
    return finish(reply, request->route, request->host, request->call);
}

/* A step found that it may wait or take long, which this thread must not: a worker reads the request again. */
static struct api_reply *leave(void)
{
    pe_watch(NULL, NULL);
    pe_speak_in(PE_EN);
    return NULL;
}

static struct api_reply *options(const struct api_request *request)
{
    char allowed[API_ALLOWED_BYTES];
    api_print_allowed(request->route, allowed);
    return api_options(request->call, allowed);
}

/* Of an endpoint that reads no request; nothing of it is allocated. */
static struct api_reply *answer_at_once(const struct api_host *host, const struct api_call *call,
                                        const struct api_route *route, const struct api_path *parts)
{
    struct api_request request;
    api_request_init(&request, route->operation);
    begin(&request, host, call, route, parts);
    struct api_reply *reply = api_is_options(call) ? options(&request) : route->handle(&request);
    reply = !reply && request.is_late ? leave() : conclude(&request, reply);
    api_request_drop(&request);
    return reply;
}

/* The route that api_head has found, or finds it and checks the head now. */
static bool find_checked(const struct api_host *host, const struct api_call *call, const struct api_route **route,
                         struct api_path *parts, struct api_problem *problem)
{
    if (call->route && api_route_matches(call->route->pattern, call->path, parts)) {
        *route = call->route;
        return true;
    }
    *route = api_route_find(call->path, parts);
    return api_check_head(host, call, *route, call->body_bytes, problem);
}

struct api_reply *api_read(const struct api_host *host, const struct api_call *call, struct api_request **request)
{
    struct api_path parts;
    const struct api_route *route;
    struct api_problem problem;
    *request = NULL;
    pe_speak_in(call->route ? call->lang : api_lang_of(call));
    if (!find_checked(host, call, &route, &parts, &problem))
        return refuse(&problem, route, host, call);
    if (api_is_options(call))
        return answer_at_once(host, call, route, &parts);
    if (call->must_not_block && (route->is_slow || api_changes(call))) /* a change may wait for a disk */
        return leave();
    if (route->handle)
        return answer_at_once(host, call, route, &parts);
    const struct api_steps *steps = steps_of(route);
    struct api_request *r = api_request_new(route->operation, steps->own_bytes);
    if (!r) {
        api_fail_memory(&problem);
        return refuse(&problem, route, host, call);
    }
    begin(r, host, call, route, &parts);
    bool fine = steps->read(r) && (!steps->check || steps->check(r));
    if (fine && !pe_was_cancelled()) {
        *request = r;
        return leave();
    }
    struct api_reply *reply = !fine && r->is_late ? leave() : conclude(r, NULL);
    api_request_free(r);
    return reply;
}

bool api_is_long(const struct api_request *request) { return request->is_long; }

struct api_reply *api_build(struct api_request *request)
{
    pe_watch(request->call->is_gone, request->call->caller);
    pe_speak_in(request->lang);
    struct api_reply *reply = conclude(request, steps_of(request->route)->build(request));
    api_request_free(request);
    return reply;
}

struct api_reply *api_answer(const struct api_host *host, const struct api_call *call)
{
    struct api_request *request;
    struct api_reply *reply = api_read(host, call, &request);
    if (!request)
        return reply;
    if (!call->must_not_block || !request->is_long)
        return api_build(request);
    api_request_free(request);
    return NULL;
}
