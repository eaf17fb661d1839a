/* The endpoints, and the handlers behind them. */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "api/operations.h"
#include "api/replies/reply.h"

/* Any operation. compute.c */
struct api_reply *api_operate(struct api_request *request);
struct api_reply *api_analyze(struct api_request *request);     /* analyze.c */
struct api_reply *api_diagnose(struct api_request *request);    /* diagnose.c */
struct api_reply *api_experiments(struct api_request *request); /* experiments.c */
struct api_reply *api_zarr(struct api_request *request);        /* zarr.c */
struct api_reply *api_schemes(struct api_request *request);     /* catalogue.c */
struct api_reply *api_scheme(struct api_request *request);
struct api_reply *api_presets(struct api_request *request); /* presets.c */
struct api_reply *api_preset(struct api_request *request);
struct api_reply *api_cmaps(struct api_request *request);        /* cmaps.c */
struct api_reply *api_limits(struct api_request *request);       /* limits.c */
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
