/* Content-Language and Vary. */
#include "api/replies/replies.h"
#include "api/requests/requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct api_header *find_header(struct api_reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->n_headers; i++)
        if (strcmp(reply->headers[i].name, name) == 0)
            return &reply->headers[i];
    return NULL;
}

bool api_reply_vary(struct api_reply *reply, const char *name)
{
    struct api_header *vary = find_header(reply, "Vary");
    if (!vary)
        return api_reply_header(reply, "Vary", name);
    size_t n = strlen(vary->value) + strlen(name) + sizeof ", ";
    char *joined = malloc(n);
    if (!joined)
        return false;
    snprintf(joined, n, "%s, %s", vary->value, name);
    free(vary->value);
    vary->value = joined;
    return true;
}

struct api_reply *api_reply_set_language(struct api_reply *reply, enum pe_lang lang)
{
    if (reply->status >= 400)
        return reply;
    bool fine =
        api_reply_header(reply, "Content-Language", api_lang_words[lang]) && api_reply_vary(reply, "Accept-Language");
    return fine ? reply : api_reply_without_memory(reply);
}
