/* Which format an Accept header asks for (RFC 9110 §12.5.1). */
#ifndef API_NEGOTIATE_H
#define API_NEGOTIATE_H

#include "api/formats/format.h"

/* The format that accept prefers; NULL if it accepts none of ours. No header (NULL or empty) accepts anything, and
 * anything means JSON. */
const struct api_format *api_negotiate(const char *accept);

/* Does accept prefer one type to another? No header prefers none. */
bool api_prefers(const char *accept, const char *media_type, const char *other);

#endif
