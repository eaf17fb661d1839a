/* The endpoints, and the handlers behind them. */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "api/reply.h"

struct api_reply *api_encode(const struct api_asked *asked); /* compute.c */
struct api_reply *api_rotate(const struct api_asked *asked);
struct api_reply *api_attention(const struct api_asked *asked);
struct api_reply *api_schemes(const struct api_asked *asked); /* catalogue.c */
struct api_reply *api_scheme(const struct api_asked *asked);
struct api_reply *api_presets(const struct api_asked *asked); /* presets.c */
struct api_reply *api_preset(const struct api_asked *asked);
struct api_reply *api_healthz(const struct api_asked *asked); /* status.c */
struct api_reply *api_readyz(const struct api_asked *asked);
struct api_reply *api_metrics(const struct api_asked *asked);
struct api_reply *api_version(const struct api_asked *asked);

#endif
