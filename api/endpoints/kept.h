/* What the endpoints of stored weights and of stored presets share. */
#ifndef API_KEPT_H
#define API_KEPT_H

#include "api/replies/reply.h"

struct api_guard api_kept_guard(const struct api_call *call);

/* Adds the digest as entity tag (NULL: none), and no-cache: caches must revalidate, because a PUT may have changed the
 * file. */
struct api_reply *api_kept_headers(struct api_reply *reply, const char *sha256);

/* The 412 of a call whose condition did not hold. */
struct api_reply *api_kept_guarded(struct api_request *request, const struct api_store *store);
/* Any other refusal of a change, of n bytes. */
struct api_reply *api_kept_refused(const struct api_store *store, enum api_stored stored, size_t n);

/* The answer to a DELETE; it may wait for a disk. absent: the 404. */
typedef struct api_reply *api_kept_absent(const struct api_store *store, const char *name);
struct api_reply *api_kept_remove(struct api_request *request, const struct api_store *store, api_kept_absent *absent);

#endif
