/* Accept-Language: a list of language ranges with weights. A range speaks for a language of ours if its first subtag is
 * that language: en-GB accepts English, and zh-TW accepts our Chinese rather than none (the lookup of RFC 4647 §3.4).
 * The greatest weight wins, and of equals the range named earlier. */
#include "api/requests/requests.h"
#include "api/inputs/inputs.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const api_lang_words[PE_N_LANGS + 1] = {[PE_EN] = "en", [PE_ZH] = "zh"};

/* How much a header wants a language. */
struct wish {
    int weight;     /* in thousandths; 0: the header does not say; -1: it excludes the language */
    unsigned place; /* of the range, from 0 */
};

static bool is_about(const struct api_weighted *range, const char *word)
{
    size_t n = strlen(word);
    return range->n >= n && strncasecmp(range->name, word, n) == 0 && (range->n == n || range->name[n] == '-');
}

/* The greatest weight of the ranges about a language; those of another region do not exclude it while one accepts it.
 * "*" is about the languages that no other range names. */
static struct wish wish_for(const char *header, const char *word)
{
    struct wish named = {.weight = 0}, any = {.weight = 0};
    struct api_weighted range;
    const char *end = header + strlen(header);
    for (unsigned place = 0; api_weighted_next(&header, end, &range); place++) {
        bool is_any = range.n == 1 && *range.name == '*';
        struct wish *wish = is_any ? &any : &named;
        int weight = range.weight == 0 ? -1 : range.weight;
        if (range.weight >= 0 && (is_any || is_about(&range, word)) && (wish->weight == 0 || weight > wish->weight))
            *wish = (struct wish){weight, place};
    }
    return named.weight ? named : any;
}

/* No request is refused for its language: if the header accepts none of ours, the first that it does not exclude is
 * used. */
static enum pe_lang negotiate(const char *header)
{
    enum pe_lang best = PE_EN;
    struct wish greatest = wish_for(header, api_lang_words[best]);
    for (enum pe_lang lang = best + 1; lang < PE_N_LANGS; lang++) {
        struct wish wish = wish_for(header, api_lang_words[lang]);
        if (wish.weight < greatest.weight || (wish.weight == greatest.weight && wish.place >= greatest.place))
            continue;
        best = lang;
        greatest = wish;
    }
    return best;
}

bool api_lang_choose(const char *asked, const struct api_call *call, enum pe_lang *lang, struct api_problem *problem)
{
    if (!asked) {
        *lang = call->accept_language ? negotiate(call->accept_language) : PE_EN;
        return true;
    }
    for (*lang = 0; *lang < PE_N_LANGS; ++*lang)
        if (strcmp(asked, api_lang_words[*lang]) == 0)
            return true;
    return api_fail(problem, 422, "/lang", "lang is \"%.32s\"; allowed: \"en\", \"zh\"", asked);
}

bool api_lang_of_query(const struct api_call *call, enum pe_lang *lang, struct api_problem *problem)
{
    char *asked;
    if (!api_query_find(call->query, "lang", &asked, problem))
        return false;
    bool fine = api_lang_choose(asked, call, lang, problem);
    free(asked);
    return fine;
}

enum pe_lang api_lang_of(const struct api_call *call)
{
    char *asked;
    enum pe_lang lang;
    struct api_problem problem;
    bool is_known =
        api_query_find(call->query, "lang", &asked, &problem) && api_lang_choose(asked, call, &lang, &problem);
    if (!is_known)
        api_lang_choose(NULL, call, &lang, &problem);
    free(asked);
    return lang;
}

void api_speak(struct api_call *call)
{
    if (call && !call->has_lang) {
        call->lang = api_lang_of(call);
        call->has_lang = true;
    }
    pe_speak_in(call ? call->lang : PE_EN);
}

bool api_lang_take(struct api_request *request)
{
    const char *asked = NULL;
    size_t n_kept = 0;
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct pe_field *field = &request->fields[i];
        bool is_lang = api_is(field->name, "lang");
        if (is_lang && field->value.kind != PE_STRING)
            return api_fail(&request->problem, 422, "/lang", "lang is no word; allowed: \"en\", \"zh\"");
        if (is_lang)
            asked = field->value.string;
        else
            request->fields[n_kept++] = *field;
    }
    request->n_fields = n_kept;
    if (!api_lang_choose(asked, request->call, &request->lang, &request->problem))
        return false;
    pe_speak_in(request->lang);
    return true;
}
