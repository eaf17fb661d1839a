/* Owns what is read of an object store's answers: lists of names, the code of an error, and the small objects that are
 * our own names.
 *
 * The problem: S3 answers in XML, and of it four things are needed: key and tag of each entry of a list, whether and
 * where the list goes on, and the code of an error. A parser with a tree would be a library, its memory and its history
 * of entity attacks, for a few hundred bytes of each answer.
 *
 * The idea: elements are found as text between <Name> and </Name>. That is enough because the elements that are read
 * nest none of their own name, and because S3 and the stores that follow it write them without attributes and prefixes.
 * The predefined entities are replaced, and three numeric ones that S3 writes; others stay as they are, and a key with
 * one is no name of ours.
 *
 * Invariant: a list that is not understood as a whole is refused, never shortened, since a missing name would look like
 * a deleted one. So it must end with its closing tag (an answer that breaks off may look whole to libcurl), state
 * whether it goes on, and where, and each entry must have a key; a key that is no name of ours is passed over.
 *
 * Amazon S3 API Reference: ListObjectsV2, and the error responses. */
#include "server/store/store.h"

#include "api/api.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- XML ------------------------------------------------------------------------------------------------------- */

/* The text of the next element of this name in [at, end): its begin and length. NULL: there is none. */
static const char *element(const char *at, const char *end, const char *name, size_t *n)
{
    char open[40], close[40];
    snprintf(open, sizeof open, "<%s>", name);
    snprintf(close, sizeof close, "</%s>", name);
    const char *begin = strstr(at, open);
    begin = begin ? begin + strlen(open) : NULL;
    const char *last = begin ? strstr(begin, close) : NULL;
    if (!last || last > end)
        return NULL;
    *n = (size_t)(last - begin);
    return begin;
}

static const struct entity {
    const char *name;
    char c;
} entities[] = {{"&amp;", '&'},   {"&lt;", '<'},  {"&gt;", '>'},   {"&quot;", '"'},
                {"&apos;", '\''}, {"&#34;", '"'}, {"&#x22;", '"'}, {"&#38;", '&'}};

/* Copies n bytes of text with its entities replaced. False: they do not fit. */
static bool copy(char *dst, size_t room, const char *text, size_t n)
{
    const char *end = text + n;
    size_t used = 0;
    while (text < end && used + 1 < room) {
        const struct entity *entity = NULL;
        for (size_t i = 0; *text == '&' && i < sizeof entities / sizeof *entities && !entity; i++)
            if (strncmp(text, entities[i].name, strlen(entities[i].name)) == 0)
                entity = &entities[i];
        dst[used++] = entity ? entity->c : *text;
        text += entity ? strlen(entity->name) : 1;
    }
    dst[used] = '\0';
    return text >= end;
}

static bool copy_element(const char *at, const char *end, const char *name, char *dst, size_t room)
{
    size_t n;
    const char *text = element(at, end, name, &n);
    *dst = '\0';
    return text && copy(dst, room, text, n);
}

/* "abc" → abc */
static void unquote(char *etag)
{
    size_t n = strlen(etag);
    if (n >= 2 && etag[0] == '"' && etag[n - 1] == '"') {
        memmove(etag, etag + 1, n - 2);
        etag[n - 2] = '\0';
    }
}

/* ---- Lists ----------------------------------------------------------------------------------------------------- */

/* One element Contents. */
static bool add_contents(const char *at, const char *end, const char *prefix, size_t n_max, struct store_list *list)
{
    char key[1100];
    size_t n_prefix = strlen(prefix);
    size_t n;
    const char *text = element(at, end, "Key", &n);
    bool is_name = text && copy(key, sizeof key, text, n) && strncmp(key, prefix, n_prefix) == 0 &&
                   api_weight_name_is_valid(key + n_prefix);
    struct store_entry *entry = is_name && list->n < n_max ? store_list_add(list, key + n_prefix) : NULL;
    if (!entry)
        return text && !is_name;
    if (copy_element(at, end, "ETag", entry->version, sizeof entry->version))
        unquote(entry->version);
    return true;
}

/* Whether the text ends with the end of a list. An answer without Content-Length that breaks off looks like a whole one
 * to libcurl, and half a list would be a list of names that were deleted. */
static bool is_whole(const char *xml)
{
    static const char close[] = "</ListBucketResult>";
    size_t n = strlen(xml);
    while (n > 0 && isspace((unsigned char)xml[n - 1]))
        n--;
    return strstr(xml, "<ListBucketResult") && n >= strlen(close) &&
           strncmp(xml + n - strlen(close), close, strlen(close)) == 0;
}

bool answers_list(const char *xml, const char *prefix, size_t n_max, struct store_list *list,
                  char next[ANSWERS_TOKEN_BYTES])
{
    const char *end = xml + strlen(xml), *at = xml;
    char truncated[8];
    size_t n;
    *next = '\0';
    if (!is_whole(xml) || !copy_element(xml, end, "IsTruncated", truncated, sizeof truncated))
        return false;
    while ((at = element(at, end, "Contents", &n))) {
        if (!add_contents(at, at + n, prefix, n_max, list))
            return false;
        at += n;
    }
    if (strcmp(truncated, "true") != 0)
        return strcmp(truncated, "false") == 0;
    return copy_element(xml, end, "NextContinuationToken", next, ANSWERS_TOKEN_BYTES) && *next;
}

void answers_code(const char *text, char code[ANSWERS_CODE_BYTES])
{
    *code = '\0';
    if (text)
        copy_element(text, text + strlen(text), "Code", code, ANSWERS_CODE_BYTES);
    for (char *c = code; *c; c++)
        if (!isalnum((unsigned char)*c)) /* it goes into the log */
            *c = '?';
}

/* ---- Our names ------------------------------------------------------------------------------------------------- */

bool answers_name(const char *text, char sha256[STORE_DIGEST_BYTES], uint64_t *n_bytes)
{
    static const char before[] = "{\"sha256\":\"", between[] = "\",\"bytes\":";
    enum { N_DIGITS = STORE_DIGEST_BYTES - 1, SIZE_DIGITS_MAX = 18 };
    if (strncmp(text, before, sizeof before - 1) != 0)
        return false;
    text += sizeof before - 1;
    if (strspn(text, "0123456789abcdef") != N_DIGITS || strncmp(text + N_DIGITS, between, sizeof between - 1) != 0)
        return false;
    memcpy(sha256, text, N_DIGITS);
    sha256[N_DIGITS] = '\0';
    text += N_DIGITS + sizeof between - 1;
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > SIZE_DIGITS_MAX || (text[n] != '}' && text[n] != ','))
        return false;
    *n_bytes = strtoull(text, NULL, 10);
    return true;
}

size_t answers_print_name(char text[ANSWERS_NAME_BYTES], const char *sha256, uint64_t n_bytes)
{
    return (size_t)snprintf(text, ANSWERS_NAME_BYTES, "{\"sha256\":\"%s\",\"bytes\":%" PRIu64 "}\n", sha256, n_bytes);
}
