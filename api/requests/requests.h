/* What a request asks for beside its fields: the query string, lists of configurations, the form of the answer, headers
 * that choose among answers; and the memory that it reserves. Lowest file first. */
#ifndef API_REQUESTS_H
#define API_REQUESTS_H

#include "api/api.h"
#include "api/formats/format.h"
#include "api/inputs/inputs.h"
#include "api/problem.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- form.c: lists ----------------------------------------------------------------------------------------------- */

/* Lists of ranges with weights, "a;q=0.5, b": the values of Accept and Accept-Language (RFC 9110 §12.4.2). */

/* An element of the list: a range as bytes, with its weight in thousandths. */
struct api_weighted {
    const char *name; /* borrowed from the list */
    size_t n;         /* 0: an empty element */
    int weight;       /* 1000 if none is stated; -1: not a number from 0 to 1 with at most three decimals */
};

/* Reads the next element of the list that ends at end, and moves *list behind it; false if there is none. */
bool api_weighted_next(const char **list, const char *end, struct api_weighted *range);

/* ---- form.c: Accept ---------------------------------------------------------------------------------------------- */

/* Which format an Accept header asks for (RFC 9110 §12.5.1). */

/* The format that accept prefers; NULL if it accepts none of ours. No header (NULL or empty) accepts anything, and
 * anything means JSON. */
const struct api_format *api_negotiate(const char *accept);

/* Is this type acceptable? */
bool api_accepts(const char *accept, const char *media_type);

/* Does accept prefer one type to another? No header prefers none. */
bool api_prefers(const char *accept, const char *media_type, const char *other);

/* ---- form.c: Accept-Encoding ------------------------------------------------------------------------------------- */

/* Which content coding an Accept-Encoding header asks for (RFC 9110 §12.5.3). */

enum api_coding { API_IDENTITY, API_GZIP, API_NO_CODING };

/* The coding that accept_encoding prefers; API_NO_CODING if it excludes both of ours. No header (NULL) means identity:
 * a client that decompresses states that it does. */
enum api_coding api_coding_choose(const char *accept_encoding);

/* ---- lang.c ------------------------------------------------------------------------------------------------------ */

/* The language of an answer's texts: the one that the request names, else the one that its Accept-Language prefers
 * (RFC 9110 §12.5.4), else English. Names and codes are the same in every language. */

/* "en", "zh" by enum pe_lang: the words of the field `lang` and the values of Content-Language; NULL ends them. */
extern const char *const api_lang_words[PE_N_LANGS + 1];

/* Chooses the language. asked is the value of the request's `lang`, NULL if it has none. Fails if it is no word of
 * ours. */
bool api_lang_choose(const char *asked, const struct api_call *call, enum pe_lang *lang, struct api_problem *problem);

/* The same for an endpoint that reads no other field: `lang` is a name of the query, and other names are ignored. */
bool api_lang_of_query(const struct api_call *call, enum pe_lang *lang, struct api_problem *problem);

/* The language of errors: the same choice, but a `lang` that is no word of ours counts as none. */
enum pe_lang api_lang_of(const struct api_call *call);

/* The language of a request whose fields have been read, from which it removes `lang`: request->lang, in which this
 * thread's errors are from now on. */
struct api_request;
bool api_lang_take(struct api_request *request);

/* ---- slices.c ---------------------------------------------------------------------------------------------------- */

/* The field slice of a request: a list for all outputs, or one for each output by name. */

/* Reads the field's value into *slices (in the request's arena). */
bool api_slices_read(struct api_request *request, const struct pe_value *value, struct pe_slice **slices,
                     size_t *n_slices, struct api_problem *problem);

/* ---- form.c ------------------------------------------------------------------------------------------------------ */

/* The fields of struct api_form: how to answer, not what to compute. */

/* Reads the form's fields from request and removes them from it. */
bool api_form_read(struct api_request *request, struct api_form *form, struct api_problem *problem);

/* Checks that the form suits the chosen format and is consistent in itself. */
bool api_form_check(const struct api_form *form, const struct api_format *format, struct api_problem *problem);

/* Sets request->format, by the form or by Accept, and checks the form against it. */
bool api_form_choose(struct api_request *request);

/* The format that the request names; NULL: none, Accept decides. */
const struct api_format *api_form_format(const struct api_form *form);

const struct pe_param *api_form_lists(void);      /* the same of `outputs` and `slice`, which no row reads */
size_t api_form_size(const struct pe_param *row); /* bytes of a row's field */
extern const char *const api_form_names[];        /* its field names, NULL-terminated: for guesses at misspelt ones */

/* ---- query.c ----------------------------------------------------------------------------------------------------- */

/* The query of a URL as fields: the same names as in a body. */

/* Adds the names of an encoded query (without the ?) to request. Text is taken literally, numbers and booleans as JSON,
 * flat lists as JSON or separated by commas, everything else as JSON; for a known name the parameter row states the
 * type. */
bool api_query_read(struct api_request *request, bool names_scheme);

/* Sets *value to the decoded value of the query's first pair of that name (made; freed with free), NULL if there is
 * none; other pairs are not checked. query may be NULL. */
bool api_query_find(const char *query, const char *name, char **value, struct api_problem *problem);

/* ---- entries.c --------------------------------------------------------------------------------------------------- */

/* The configurations of a request that compares several: its field `configs`, a list of objects. All other fields are
 * defaults of every one of them; a configuration's own field wins, a nested object as a whole. */

struct api_entries {
    struct pe_entry at[PE_ENTRIES_MAX];
    struct api_request *requests[PE_ENTRIES_MAX]; /* whose fields they are, with stored weights in place */
    size_t n;
};

/* Moves everything but the endpoint's own fields (request->taking->params()) out of request, which owns the entries. A
 * request without `configs` is one entry. A field that both the endpoint and an entry's scheme have goes to both. */
bool api_entries_read(struct api_request *request, const struct api_store *store, struct api_entries *entries,
                      struct api_problem *problem);

/* The names of a request that are not fields of a configuration: for suggestions, NULL-terminated, in the request's
 * arena. NULL: no memory. */
const char *const *api_entries_names(struct api_request *request);

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

/* The memory of one request, reserved from the memory that all requests share (api_host.take_memory) before it is used.
 */

/* Reserves the most that reading the body of the call may take; called before the body is read. False, here and below:
 * request->problem is set. */
bool api_memory_for_reading(struct api_request *request);
/* The same for a body of which n bytes are JSON and the rest are tensors that stay in place. Call one of the two first:
 * from then on, memory that the request's arena takes beyond that is reserved from the host too. */
bool api_memory_for_json(struct api_request *request, size_t n);
/* Reserves the most that the tree of a safetensors file's header may take; the caller returns it. 0: so much is not
 * available. */
uint64_t api_memory_for_head(const struct api_host *host, const struct api_call *call, struct api_problem *problem);
/* If the arena was refused memory, *problem becomes the reason. NULL is accepted. */
void api_memory_refusal(const struct api_request *request, struct api_problem *problem);
/* Returns everything except the memory of the request's fields. */
void api_memory_settle(struct api_request *request);
/* The admit() of a struct pe_request whose caller is a request: reserves `bytes` in all for planning; called again with
 * more as planning goes on. */
enum pe_status api_memory_admit(void *request, double bytes, struct pe_failure *err);
/* An error of a call that was given it: the refusal, if it was refused, or the core's error. Returns false. */
bool api_memory_fail(struct api_request *request, const struct pe_failure *err);
/* Reserves the memory for filling from the source and, if the request's format is a picture, for drawing it. */
bool api_memory_for_answering(struct api_request *request, const struct api_source *source);

#endif
