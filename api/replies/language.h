/* The headers of an answer that exists in several languages. */
#ifndef API_LANGUAGE_H
#define API_LANGUAGE_H

#include "api/replies/reply.h"

/* Adds the name of a request header to the reply's Vary, which may have names already. If memory runs out, returns
 * false and changes nothing. */
bool api_reply_vary(struct api_reply *reply, const char *name);

/* States the language of the reply's texts: Content-Language, and Accept-Language in Vary. A refusal stays as it is,
 * because its text is English. Returns reply, or the reply for a lack of memory. */
struct api_reply *api_reply_set_language(struct api_reply *reply, enum pe_lang lang);

#endif
