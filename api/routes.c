/* The table of endpoints, and the two calls that begin every answer: what can be refused from the head alone, and the
 * answer itself. */
#include "api/routes.h"
#include "api/cors.h"
#include "api/json_load.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum method { GET = 1, POST = 2, QUERY = 4, PUT = 8, DELETE = 16 };

static const struct {
    const char *name;
    enum method method;
} methods[] = {{"GET", GET}, {"HEAD", GET}, {"POST", POST}, {"QUERY", QUERY}, {"PUT", PUT}, {"DELETE", DELETE}};

struct route {
    const char *pattern; /* may end in /{name}: one more step of the path */
    unsigned methods;    /* enum method, joined */
    struct api_reply *(*handle)(const struct api_asked *asked);
    const char *group;
    const char *summary;
    const char *example;    /* answers 200: the description has it, the tests ask it */
    const char *media_type; /* NULL: JSON, or the formats' where it computes */
};

#define EXAMPLE_ENCODE "{\"scheme\":\"rope\",\"len\":4,\"head_dim\":8}"
#define EXAMPLE_ROTATE "{\"scheme\":\"rope\",\"layout\":\"half\",\"offset\":3,\"q\":[[1,0,0,1],[1,0,0,1]],\"digits\":4}"
#define EXAMPLE_ATTENTION                                                                                              \
    "{\"scheme\":\"alibi\",\"tokens\":[\"the\",\"cat\",\"saw\",\"the\",\"dog\"],\"num_heads\":1,\"digits\":3}"

static const struct route routes[] = {
    {"/encode", GET | POST | QUERY, api_encode, "compute",
     "a scheme's tensors: tables, cosines and sines, biases, indices", EXAMPLE_ENCODE, NULL},
    {"/rotate", POST, api_rotate, "compute", "queries and keys rotated", EXAMPLE_ROTATE, NULL},
    {"/attention", POST, api_attention, "compute", "attention maps, outputs and entropies under any scheme",
     EXAMPLE_ATTENTION, NULL},
    {"/schemes", GET, api_schemes, "catalogue", "every scheme with its parameters, inputs and outputs", NULL, NULL},
    {"/schemes/{name}", GET, api_scheme, "catalogue", "one scheme", "rope", NULL},
    {"/presets", GET, api_presets, "catalogue", "public models by name", NULL, NULL},
    {"/presets/{name}", GET, api_preset, "catalogue", "one model", "llama-3.1", NULL},
    {"/weights", GET, api_weights_list, "weights", "every stored file of weights with its tensors", NULL, NULL},
    {"/weights/{name}", GET | PUT | DELETE, api_weights_one, "weights", "one stored file of weights, safetensors",
     "t5-small", NULL},
    {"/openapi.json", GET, api_openapi, "catalogue", "this description", NULL, NULL},
    {"/docs", GET, api_docs, "catalogue", "this description as a page to read and try", NULL, "text/html"},
    {"/healthz", GET, api_healthz, "operation", "is the loop turning?", NULL, NULL},
    {"/readyz", GET, api_readyz, "operation", "does it take work?", NULL, NULL},
    {"/metrics", GET, api_metrics, "operation", "figures for Prometheus", NULL, "text/plain"},
    {"/version", GET, api_version, "operation", "version, commit, instruction set", NULL, NULL},
    {"/", GET, api_front, "operation", "the first page", NULL, "text/html"},
};

enum { N_ROUTES = sizeof routes / sizeof routes[0] };

void api_setup(void) { api_json_setup(); }

/* ---- For the description ---- */

size_t api_n_routes(void) { return N_ROUTES; }

struct api_route_info api_route_at(size_t i)
{
    const struct route *route = &routes[i];
    struct api_route_info info = {.pattern = route->pattern,
                                  .summary = route->summary,
                                  .group = route->group,
                                  .example = route->example,
                                  .media_type = route->media_type ? route->media_type : api_json_type};
    size_t n = 0;
    for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++)
        if (methods[m].method & route->methods)
            info.methods[n++] = methods[m].name;
    info.computes = route->methods & POST;
    info.keeps_files = route->methods & PUT;
    info.operation = route->handle == api_rotate ? PE_ROTATE : route->handle == api_attention ? PE_ATTEND : PE_ENCODE;
    return info;
}

/* ---- Finding ---- */

/* The part of path that stands for {name}, "" if the pattern has none; NULL if path does not match. */
static const char *match(const char *pattern, const char *path)
{
    const char *brace = strchr(pattern, '{');
    if (!brace)
        return strcmp(pattern, path) == 0 ? "" : NULL;
    size_t n = (size_t)(brace - pattern);
    return strncmp(pattern, path, n) == 0 && path[n] && !strchr(path + n, '/') ? path + n : NULL;
}

static const struct route *route_find(const char *path, const char **name)
{
    for (size_t i = 0; i < N_ROUTES; i++)
        if ((*name = match(routes[i].pattern, path)))
            return &routes[i];
    return NULL;
}

static bool allows(const struct route *route, const char *method)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, method) == 0)
            return methods[i].method & route->methods;
    return false;
}

/* ---- Refusals ---- */

static bool fail_path(const char *path, struct api_problem *problem)
{
    const char *patterns[N_ROUTES + 1];
    char list[256] = "";
    size_t used = 0, n_patterns = 0;
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (routes[i].pattern[1]) /* "/" is near every short path */
            patterns[n_patterns++] = routes[i].pattern;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", routes[i].pattern);
    }
    patterns[n_patterns] = NULL;
    const char *nearest = pe_nearest(path, patterns);
    if (nearest)
        return api_fail(problem, 404, "", "nothing is at %.128s; nearest: %s", path, nearest);
    return api_fail(problem, 404, "", "nothing is at %.128s; there are: %s", path, list);
}

enum { ALLOWED_BYTES = 64 };

static void print_allowed(const struct route *route, char *allowed)
{
    *allowed = '\0';
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (methods[i].method & route->methods)
            strcat(strcat(allowed, *allowed ? ", " : ""), methods[i].name);
}

static bool fail_method(const struct route *route, const char *method, struct api_problem *problem)
{
    char allowed[ALLOWED_BYTES];
    print_allowed(route, allowed);
    api_fail(problem, 405, "", "%s does not take %.16s; allowed: %s", route->pattern, method, allowed);
    api_problem_header(problem, "Allow", allowed);
    return false;
}

static bool check_coding(const char *coding, struct api_problem *problem)
{
    if (!coding || !*coding || strcasecmp(coding, "identity") == 0)
        return true;
    api_fail(problem, 415, "", "the content coding \"%.32s\" is not read; send the body as it is", coding);
    api_problem_header(problem, "Accept-Encoding", "identity");
    return false;
}

static bool check_length(const struct api_host *host, uint64_t n, struct api_problem *problem)
{
    if (n == API_LENGTH_UNKNOWN || n <= host->max_body)
        return true;
    return api_fail(problem, 413, "",
                    "the body has %" PRIu64 " bytes; allowed: at most %" PRIu64
                    " (the limit --max-body of this server)",
                    n, host->max_body);
}

static bool is_options(const struct api_call *call) { return strcmp(call->method, "OPTIONS") == 0; }

/* What the head decides, in the order in which a client would want to know. */
static bool check_head(const struct api_host *host, const struct api_call *call, const struct route *route, uint64_t n,
                       struct api_problem *problem)
{
    if (!route)
        return fail_path(call->path, problem);
    if (!allows(route, call->method) && !is_options(call))
        return fail_method(route, call->method, problem);
    return check_coding(call->content_encoding, problem) && check_length(host, n, problem);
}

/* ---- The two calls ---- */

static struct api_reply *finish(struct api_reply *reply, const struct route *route, const struct api_host *host,
                                const struct api_call *call)
{
    return api_cors(api_reply_set_route(reply, route ? route->pattern : ""), host, call);
}

struct api_reply *api_refuse_early(const struct api_host *host, const struct api_call *call, uint64_t declared_bytes)
{
    const char *name;
    const struct route *route = route_find(call->path, &name);
    struct api_problem problem;
    if (check_head(host, call, route, declared_bytes, &problem))
        return NULL;
    return finish(api_reply_problem(&problem), route, host, call);
}

static struct api_reply *handle(const struct route *route, const struct api_asked *asked)
{
    char allowed[ALLOWED_BYTES];
    if (!is_options(asked->call))
        return route->handle(asked);
    print_allowed(route, allowed);
    return api_options(asked->call, allowed);
}

struct api_reply *api_answer(const struct api_host *host, const struct api_call *call)
{
    struct api_asked asked = {.host = host, .call = call};
    const struct route *route = route_find(call->path, &asked.name);
    struct api_problem problem;
    if (!check_head(host, call, route, call->body_bytes, &problem))
        return finish(api_reply_problem(&problem), route, host, call);
    struct api_reply *reply = handle(route, &asked);
    return reply ? finish(reply, route, host, call) : NULL;
}
