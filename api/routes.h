/* The endpoints, and the handlers behind them. */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "api/operations.h"
#include "api/replies/reply.h"

/* Any operation. compute.c */
struct api_reply *api_operate(const struct api_asked *asked, enum pe_operation_id operation);
struct api_reply *api_analyze(const struct api_asked *asked);     /* analyze.c */
struct api_reply *api_diagnose(const struct api_asked *asked);    /* diagnose.c */
struct api_reply *api_experiments(const struct api_asked *asked); /* experiments.c */
struct api_reply *api_zarr(const struct api_asked *asked);        /* zarr.c */
struct api_reply *api_schemes(const struct api_asked *asked);     /* catalogue.c */
struct api_reply *api_scheme(const struct api_asked *asked);
struct api_reply *api_presets(const struct api_asked *asked); /* presets.c */
struct api_reply *api_preset(const struct api_asked *asked);
struct api_reply *api_cmaps(const struct api_asked *asked);        /* cmaps.c */
struct api_reply *api_limits(const struct api_asked *asked);       /* limits.c */
struct api_reply *api_openapi(const struct api_asked *asked);      /* openapi.c */
struct api_reply *api_weights_list(const struct api_asked *asked); /* weights.c */
struct api_reply *api_weights_one(const struct api_asked *asked);
struct api_reply *api_healthz(const struct api_asked *asked); /* status.c */
struct api_reply *api_readyz(const struct api_asked *asked);
struct api_reply *api_metrics(const struct api_asked *asked);
struct api_reply *api_version(const struct api_asked *asked);
struct api_reply *api_front(const struct api_asked *asked); /* pages.c */
struct api_reply *api_page_file(const struct api_asked *asked);
struct api_reply *api_client_file(const struct api_asked *asked);

/* The table of endpoints, for the OpenAPI document. */
struct api_route_info {
    const char *pattern, *summary;
    const char *group;      /* "compute", "catalogue", "operation": the sections (tags) of the OpenAPI document */
    const char *name;       /* an example of {name}, NULL: the pattern has none */
    const char *new_name;   /* … in PUT and DELETE */
    const char *example;    /* a request as JSON; NULL: it takes none */
    const char *media_type; /* of the answer, for an endpoint that computes nothing */
    const char *methods[8]; /* NULL-terminated */
    bool computes;          /* its body is a posenc request, with the fields of */
    const char *component;  /* this schema; NULL: none */
    const char *answer;     /* and its JSON answer is of this one */
    const char *instead;    /* the field that may stand instead of a scheme; NULL: none, "": it needs no scheme */
    bool keeps_files;       /* its PUT stores a file of tensors, its GET returns it */
    bool keeps_entries;     /* its PUT stores an entry, which its GET returns */
    const char *entry; /* its answer consists of entries of this schema, with texts in the language that the query's
                          lang chooses; NULL: it has no such texts */
    const char *const *lists; /* its further lists of entries, NULL-terminated; NULL: none */
    bool is_open;             /* open to everybody, even if the server requires tokens */
    bool is_page;             /* its answer is a file of the web page */
    bool is_live;             /* its answer is computed while it is sent, as lines or as server-sent events */
    bool is_store;            /* a request stands in its path, and its answers may be kept */
    bool is_protocol;         /* belongs to the Open Inference Protocol */
    enum pe_operation_id operation;
};
struct api_routes {
    size_t n;
    struct api_route_info (*at)(size_t i);
};

#endif
