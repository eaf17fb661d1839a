/* The endpoints, and the handlers behind them. */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "api/operations.h"
#include "api/replies/replies.h"

/* Those that read a request. */
extern const struct api_steps api_operate;  /* any operation: compute.c */
extern const struct api_steps api_analyze;  /* analyze.c */
extern const struct api_steps api_diagnose; /* diagnose.c */
extern const struct api_steps api_check;
extern const struct api_steps api_probe;
extern const struct api_steps api_explain;     /* explain.c */
extern const struct api_steps api_translate;   /* explain.c */
extern const struct api_steps api_derive;      /* derive.c */
extern const struct api_steps api_golden;      /* golden.c */
extern const struct api_steps api_experiments; /* experiments.c */
extern const struct api_steps api_zarr;        /* zarr.c */

/* Those of an endpoint that reads a request. */
static inline const struct api_steps *api_steps_of(const struct api_route *route)
{
    return route->steps ? route->steps : &api_operate;
}

/* ---- The table (routes.c) ---- */

enum { API_ALLOWED_BYTES = 64 };

const struct api_route *api_route_at(size_t i); /* NULL: there are no more */

/* The route of a path, whose parts are filled in; NULL: none. */
const struct api_route *api_route_find(const char *path, struct api_path *parts);
bool api_route_matches(const char *pattern, const char *path, struct api_path *parts);

bool api_is_options(const struct api_call *call);
bool api_changes(const struct api_call *call); /* what is stored */

/* Whether a head may be answered, of which the body has n bytes; else the problem of the first reason. */
bool api_check_head(const struct api_host *host, const struct api_call *call, const struct api_route *route, uint64_t n,
                    struct api_problem *problem);

/* The methods of a route, as the header Allow has them; allowed: API_ALLOWED_BYTES. */
void api_print_allowed(const struct api_route *route, char *allowed);

/* ---- Endpoints ---- */

/* Those that answer at once. */
struct api_reply *api_schemes(struct api_request *request); /* catalogue.c */
struct api_reply *api_scheme(struct api_request *request);
struct api_reply *api_presets(struct api_request *request);      /* preset_search.c */
struct api_reply *api_preset(struct api_request *request);       /* presets.c */
struct api_reply *api_cmaps(struct api_request *request);        /* catalogue.c */
struct api_reply *api_limits(struct api_request *request);       /* status.c */
struct api_reply *api_openapi(struct api_request *request);      /* openapi.c */
struct api_reply *api_weights_list(struct api_request *request); /* weights.c */
struct api_reply *api_weights_one(struct api_request *request);
struct api_reply *api_healthz(struct api_request *request); /* status.c */
struct api_reply *api_readyz(struct api_request *request);
struct api_reply *api_metrics(struct api_request *request);
struct api_reply *api_version(struct api_request *request);
struct api_reply *api_front(struct api_request *request); /* pages.c */
struct api_reply *api_page_file(struct api_request *request);
struct api_reply *api_client_file(struct api_request *request);

#endif
