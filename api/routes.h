/* The endpoints, and the handlers behind them. */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "api/operations.h"
#include "api/replies/reply.h"

/* Any operation. compute.c */
struct api_reply *api_operate(const struct api_asked *asked, enum pe_operation_id operation);
struct api_reply *api_schemes(const struct api_asked *asked); /* catalogue.c */
struct api_reply *api_scheme(const struct api_asked *asked);
struct api_reply *api_presets(const struct api_asked *asked); /* presets.c */
struct api_reply *api_preset(const struct api_asked *asked);
struct api_reply *api_openapi(const struct api_asked *asked);      /* openapi.c */
struct api_reply *api_weights_list(const struct api_asked *asked); /* weights.c */
struct api_reply *api_weights_one(const struct api_asked *asked);
struct api_reply *api_healthz(const struct api_asked *asked); /* status.c */
struct api_reply *api_readyz(const struct api_asked *asked);
struct api_reply *api_metrics(const struct api_asked *asked);
struct api_reply *api_version(const struct api_asked *asked);
struct api_reply *api_front(const struct api_asked *asked); /* pages.c */
struct api_reply *api_docs(const struct api_asked *asked);
/* The page of /docs as the answer to who asks for it as a page and has no token: it holds nothing but the program's own
 * text, and asks for one. NULL: the problem is the answer. */
struct api_reply *api_docs_door(const struct api_host *host, const struct api_call *call,
                                const struct api_problem *problem);

/* The table, for the description of it. */
struct api_route_info {
    const char *pattern, *summary;
    const char *group;      /* "compute", "catalogue", "operation": the description's sections */
    const char *name;       /* an example of {name}, NULL: the pattern has none */
    const char *example;    /* a request as JSON; NULL: it takes none */
    const char *media_type; /* of the answer, where it does not compute */
    const char *methods[8]; /* NULL-terminated */
    bool computes;          /* takes a request of ours */
    bool keeps_files;       /* its PUT takes a file of tensors, its GET gives it */
    bool is_open;           /* to everybody, whatever tokens there are */
    bool is_protocol;       /* belongs to the Open Inference Protocol */
    enum pe_operation_id operation;
};
struct api_routes {
    size_t n;
    struct api_route_info (*at)(size_t i);
};

#endif
