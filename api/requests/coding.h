/* Which content coding an Accept-Encoding header asks for (RFC 9110 §12.5.3). */
#ifndef API_CODING_H
#define API_CODING_H

enum api_coding { API_IDENTITY, API_GZIP, API_NO_CODING };

/* The coding that accept_encoding prefers; API_NO_CODING if it excludes both of ours. No header (NULL) means identity:
 * a client that decompresses states that it does. */
enum api_coding api_coding_choose(const char *accept_encoding);

#endif
