/* What the machine is for api/: limits, memory, clock, stored files, metrics, experiments. */
#ifndef SERVER_HOST_H
#define SERVER_HOST_H

#include "api/api.h"
#include "server/shutdown.h"
#include "server/store/weights/stored.h"

/* Options, stored files and shutdown are borrowed while the host is used. The caller sets page, clients and commit. */
void host_init(struct api_host *host, const struct options *options, const struct stored *stored,
               struct shutdown *shutdown);

#endif
