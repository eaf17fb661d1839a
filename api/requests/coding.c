/* Accept-Encoding: a list of content codings with weights. "*" is about the codings that no other element names; the
 * identity is acceptable unless the list excludes it, and then the least wanted. */
#include "api/requests/coding.h"
#include "api/requests/weighted.h"

#include <string.h>
#include <strings.h>

static bool is(const struct api_weighted *range, const char *word)
{
    return range->n == strlen(word) && strncasecmp(range->name, word, range->n) == 0;
}

/* x-gzip is gzip (RFC 9110 §8.4.1.3). */
static bool is_about(const struct api_weighted *range, const char *coding)
{
    return is(range, coding) || (strcmp(coding, "gzip") == 0 && is(range, "x-gzip"));
}

/* The greatest weight that the list gives a coding, in thousandths; unnamed if it gives none. */
static int weight_of(const char *list, const char *coding, int unnamed)
{
    int named = -1, any = -1;
    struct api_weighted range;
    const char *end = list + strlen(list);
    while (api_weighted_next(&list, end, &range)) {
        if (is_about(&range, coding) && range.weight > named)
            named = range.weight;
        if (is(&range, "*") && range.weight > any)
            any = range.weight;
    }
    return named >= 0 ? named : any >= 0 ? any : unnamed;
}

enum api_coding api_coding_choose(const char *accept_encoding)
{
    const char *list = accept_encoding ? accept_encoding : "";
    int gzip = weight_of(list, "gzip", 0);
    int identity = weight_of(list, "identity", -1); /* -1: acceptable, after everything that is named */
    if (gzip > 0 && gzip >= identity)
        return API_GZIP;
    return identity != 0 ? API_IDENTITY : API_NO_CODING;
}
