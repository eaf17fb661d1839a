/* Owns the daemon's responses. */
#include "server/transport/daemon/daemon.h"

#include <microhttpd.h>

_Static_assert(MHD_CONTENT_READER_END_OF_STREAM == DAEMON_END && MHD_CONTENT_READER_END_WITH_ERROR == DAEMON_CUT &&
                   MHD_SIZE_UNKNOWN == DAEMON_LENGTH_UNKNOWN,
               "what a reader returns goes to the library as it is");

struct MHD_Response *daemon_response_of_bytes(const char *bytes, size_t n)
{
    return MHD_create_response_from_buffer(n, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
}

_Static_assert(sizeof(struct iovec) == sizeof(struct MHD_IoVec) &&
                   offsetof(struct iovec, iov_len) == offsetof(struct MHD_IoVec, iov_len),
               "the library's list of parts is the system's");

struct MHD_Response *daemon_response_of_parts(const struct iovec *parts, unsigned n)
{
    return MHD_create_response_from_iovec((const struct MHD_IoVec *)parts, n, NULL, NULL);
}

struct MHD_Response *daemon_response_of_reader(uint64_t length, size_t block, daemon_reader *read, void *self)
{
    return MHD_create_response_from_callback(length, block, read, self, NULL);
}

void daemon_response_without_chunks(struct MHD_Response *response)
{
    MHD_set_response_options(response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
}

void daemon_response_free(struct MHD_Response *response)
{
    if (response)
        MHD_destroy_response(response);
}

bool daemon_response_add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

bool daemon_response_remove(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_del_response_header(response, name, value) == MHD_YES;
}

char *daemon_response_header(struct MHD_Response *response, const char *name)
{
    return (char *)(uintptr_t)MHD_get_response_header(response, name);
}

const char *daemon_reason(int status) { return MHD_get_reason_phrase_for((unsigned)status); }
