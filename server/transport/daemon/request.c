/* Owns the queries to the daemon about a current request. */
#include "server/transport/daemon/daemon.h"

#include <microhttpd.h>

struct taking {
    daemon_header *take;
    void *self;
};

static enum MHD_Result take_one(void *self, enum MHD_ValueKind kind, const char *name, const char *value)
{
    const struct taking *taking = self;
    (void)kind;
    taking->take(taking->self, name, value);
    return MHD_YES;
}

void daemon_headers(struct MHD_Connection *mhd, daemon_header *take, void *self)
{
    struct taking taking = {take, self};
    MHD_get_connection_values(mhd, MHD_HEADER_KIND, take_one, &taking);
}

bool daemon_has_trailer(struct MHD_Connection *mhd, const char *name)
{
    return MHD_lookup_connection_value(mhd, MHD_FOOTER_KIND, name);
}

void daemon_suspend(struct MHD_Connection *mhd) { MHD_suspend_connection(mhd); }

void daemon_resume(struct MHD_Connection *mhd) { MHD_resume_connection(mhd); }

bool daemon_send(struct MHD_Connection *mhd, int status, struct MHD_Response *response)
{
    return MHD_queue_response(mhd, (unsigned)status, response) == MHD_YES;
}
