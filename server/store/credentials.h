/* The keys with which requests to a store are signed: from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 * AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION), or from a file with the same names in lower case, as in
 * ~/.aws/credentials, which is read again when it changes. */
#ifndef SERVER_STORE_CREDENTIALS_H
#define SERVER_STORE_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

enum { CREDENTIALS_ERROR_BYTES = 512 };

struct credentials {
    char access_key[256]; /* "": requests are not signed */
    char secret_key[256];
    char session_token[4096]; /* "": none */
    char region[64];
};

struct credential_source;

/* file "": the environment. NULL: error[] of CREDENTIALS_ERROR_BYTES gives the reason. */
struct credential_source *credential_source_new(const char *file, char *error);
void credential_source_free(struct credential_source *source); /* NULL is accepted */

/* Copies the keys of now; the caller wipes them with credentials_wipe. If the file cannot be read, those that it had.
 * Any thread. */
void credentials_get(struct credential_source *source, struct credentials *credentials);
void credentials_wipe(struct credentials *credentials);

#endif
