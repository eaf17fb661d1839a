/* The language of an answer's texts: the one that the request names, else the one that its Accept-Language prefers
 * (RFC 9110 §12.5.4), else English. Names, codes and errors are English in every answer. */
#ifndef API_LANG_H
#define API_LANG_H

#include "api/api.h"
#include "api/problem.h"

/* "en", "zh" by enum pe_lang: the words of the field `lang` and the values of Content-Language; NULL ends them. */
extern const char *const api_lang_words[PE_N_LANGS + 1];

/* Chooses the language. asked is the value of the request's `lang`, NULL if it has none. Fails if it is no word of
 * ours. */
bool api_lang_choose(const char *asked, const struct api_call *call, enum pe_lang *lang, struct api_problem *problem);

/* The same for an endpoint that reads no other field: `lang` is a name of the query, and other names are ignored. */
bool api_lang_of_query(const struct api_call *call, enum pe_lang *lang, struct api_problem *problem);

/* The same for a request whose fields have been read: removes `lang` from them. */
struct api_request;
bool api_lang_take(struct api_request *request, const struct api_call *call, enum pe_lang *lang,
                   struct api_problem *problem);

#endif
