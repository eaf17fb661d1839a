/* What a bucket's names were when they were last seen: name, tag, digest, bytes. As a text it is kept beside the blobs,
 * so that a server that starts without the store knows what its cache holds. Any thread. */
#ifndef SERVER_STORE_S3_INDEX_H
#define SERVER_STORE_S3_INDEX_H

#include "server/store/store.h"

struct s3_index;

struct s3_index *s3_index_new(void);        /* NULL: no memory */
void s3_index_free(struct s3_index *index); /* NULL is accepted */
size_t s3_index_n(struct s3_index *index);

/* These return whether something has changed; without memory, a name is not remembered. */
bool s3_index_put(struct s3_index *index, const char *name, const char *etag, const char *sha256, uint64_t n_bytes);
bool s3_index_remove(struct s3_index *index, const char *name);
bool s3_index_keep_listed(struct s3_index *index, const struct store_list *list); /* removes all others */

/* etag has room for STORE_VERSION_BYTES. False: not found. */
bool s3_index_get(struct s3_index *index, const char *name, char *etag, char *sha256, uint64_t *n_bytes);
bool s3_index_has_blob(struct s3_index *index, const char *sha256);
bool s3_index_list(struct s3_index *index, struct store_list *list); /* False: no memory */

/* As text: a line that states whose names these are, then one line for each name. NULL: no memory (freed with free). */
char *s3_index_print(struct s3_index *index, const char *head, size_t *n);
/* False: the first line is not head, and nothing is taken. Other lines that are wrong are passed over. text is cut up.
 */
bool s3_index_parse(struct s3_index *index, const char *head, char *text);

#endif
