/* The content coding that Accept-Encoding chooses. */
#include "api/requests/requests.h"
#include "tests/support/cmocka.h"

static const struct {
    const char *header;
    enum api_coding coding;
} headers[] = {
    {NULL, API_IDENTITY},
    {"", API_IDENTITY},
    {"gzip", API_GZIP},
    {"GZip", API_GZIP},
    {"x-gzip", API_GZIP},
    {"gzip, deflate, br, zstd", API_GZIP}, /* browsers */
    {"deflate, br", API_IDENTITY},
    {"identity", API_IDENTITY},
    {"compress, gzip", API_GZIP}, /* the examples of RFC 9110 */
    {"*", API_GZIP},
    {"compress;q=0.5, gzip;q=1.0", API_GZIP},
    {"gzip;q=1.0, identity; q=0.5, *;q=0", API_GZIP},
    {"gzip;q=0", API_IDENTITY},
    {"gzip;q=0.001", API_GZIP}, /* the identity is not named, so it is wanted less */
    {"gzip;q=0.5, identity", API_IDENTITY},
    {"gzip;q=0.5, identity;q=0.5", API_GZIP},
    {"gzip;q=0.5, identity;q=0.6", API_IDENTITY},
    {"gzip;q=0.5, *", API_IDENTITY},
    {"*;q=0.5, identity", API_IDENTITY},
    {"*;q=0, gzip", API_GZIP},
    {"*;q=0", API_NO_CODING},
    {"identity;q=0", API_NO_CODING},
    {"identity;q=0, gzip", API_GZIP},
    {"identity;q=0, *;q=0.1", API_GZIP},
    {"gzip;q=0, identity;q=0", API_NO_CODING},
    {"gzip;q=0, *", API_IDENTITY},
    {"gzip;q=0, *;q=0", API_NO_CODING},
    {"gzip;q=0, identity, *;q=0", API_IDENTITY},
    {"br;q=1, *;q=0", API_NO_CODING},
    {"gzip;q=0, x-gzip;q=0.1", API_GZIP},
    {"gzip;q=2", API_IDENTITY}, /* no such weight: the element is void */
    {"gzip;q=0.1234", API_IDENTITY},
    {"gzip;q=", API_IDENTITY},
    {" , ,gzip ; q=0.2 ,", API_GZIP},
    {"gzipped", API_IDENTITY},
    {"gz", API_IDENTITY},
    {"\"gzip\"", API_IDENTITY},
    {";;;", API_IDENTITY},
    {"**", API_IDENTITY},
};

TEST(the_header_chooses)
{
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (api_coding_choose(headers[i].header) != headers[i].coding)
            fail_msg("\"%s\": not %d", headers[i].header, (int)headers[i].coding);
}
