/* Accept: a list of media ranges with weights. For each of our formats the most specific range that covers it decides
 * its weight; the greatest weight wins, and of equals the more specific, then the one named earlier, then the one
 * listed first. */
#include "api/requests/negotiate.h"
#include "api/requests/weighted.h"

#include <string.h>
#include <strings.h>

/* How well a format matches; compared field by field from the top. */
struct score {
    int weight;
    unsigned specificity; /* 0: not covered */
    unsigned place;       /* in the header, from 0 */
};

/* 3: the type itself, 2: type/ *, 1: anything, 0: not covered. */
static unsigned specificity(const struct api_weighted *range, const char *media_type)
{
    size_t slash = (size_t)(strchr(media_type, '/') - media_type);
    if (range->n == strlen(media_type) && strncasecmp(range->name, media_type, range->n) == 0)
        return 3;
    if (range->n == slash + 2 && strncasecmp(range->name, media_type, slash + 1) == 0 && range->name[slash + 1] == '*')
        return 2;
    bool is_bare = range->n == 1 && *range->name == '*'; /* not a media range, but Java's client sends it as one */
    return is_bare || (range->n == 3 && memcmp(range->name, "*/*", 3) == 0);
}

static struct score score_of(const char *accept, const char *media_type)
{
    struct score score = {0};
    struct api_weighted range;
    const char *end = accept + strlen(accept);
    for (unsigned place = 0; api_weighted_next(&accept, end, &range); place++) {
        unsigned s = specificity(&range, media_type);
        if (range.weight >= 0 && s > score.specificity)
            score = (struct score){.weight = range.weight, .specificity = s, .place = place};
    }
    return score;
}

static bool is_better(const struct score *a, const struct score *b)
{
    if (a->weight != b->weight)
        return a->weight > b->weight;
    if (a->specificity != b->specificity)
        return a->specificity > b->specificity;
    return a->place < b->place;
}

const struct api_format *api_negotiate(const char *accept)
{
    if (!accept || accept[strspn(accept, " \t,")] == '\0') /* an empty list accepts anything */
        return api_format_at(0);
    const struct api_format *best = NULL;
    struct score best_score = {0};
    for (size_t i = 0; i < api_n_formats(); i++) {
        struct score score = score_of(accept, api_format_at(i)->media_type);
        if (score.weight == 0 || (best && !is_better(&score, &best_score)))
            continue;
        best = api_format_at(i);
        best_score = score;
    }
    return best;
}

bool api_prefers(const char *accept, const char *media_type, const char *other)
{
    if (!accept)
        return false;
    struct score score = score_of(accept, media_type), score_of_other = score_of(accept, other);
    return score.weight > 0 && is_better(&score, &score_of_other);
}
