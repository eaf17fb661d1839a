/* The endpoints, and the handlers behind them. */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "api/operations.h"
#include "api/replies/reply.h"

/* Any operation. compute.c */
struct api_reply *api_operate(const struct api_asked *asked);
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

#endif
