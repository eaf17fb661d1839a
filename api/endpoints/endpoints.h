/* What endpoints share. */
#ifndef API_ENDPOINTS_H
#define API_ENDPOINTS_H

#include "api/replies/replies.h"

/* ---- compute.c --------------------------------------------------------------------------------------------------- */

/* The steps from a request's fields to the stream of its answer, also for endpoints with their own request format.
 */

/* The steps that other endpoints share; each fails with the reason in *&request->problem. */
bool api_is_cacheable(const struct api_call *call); /* by its method; sets request->is_cacheable */
/* Body and query as fields of the request: a step each, for endpoints that a loop may answer, and all together. The
 * scheme of the query comes first, because it decides the types of the other names; a stored preset that it or the body
 * names is looked up before. */
bool api_take_body(struct api_request *request);
bool api_take_preset(struct api_request *request);
bool api_take_query_scheme(struct api_request *request);
bool api_take_query(struct api_request *request);
bool api_compute_read(struct api_request *request);
bool api_take_weights(struct api_request *request); /* the stored tensors that it names */
bool api_compute_size(struct api_request *request, const struct api_source *source); /* --max-answer */
/* If the answer is cacheable, sets its tag, and whether the client already has it; then it need not be computed. */
void api_compute_name(struct api_request *request, const char *config, size_t n); /* config: api_etag_print */
/* request->plan in two steps: it is refused if it breaks a rule, and request->is_long states whether a worker should
 * take the next step; then its tables are computed and its numbers drawn. The size of the answer is not checked. */
bool api_compute_check(struct api_request *request);
bool api_compute_build(struct api_request *request);
/* The reply of a text of this media type, or the 304, with the headers of a cacheable answer; takes the text.
 */
struct api_reply *api_compute_document(struct api_request *request, const char *type, struct api_text *text);
/* The reply of request->opening.stream, or the 304. */
struct api_reply *api_compute_reply(struct api_request *request);

/* Builds the checked plan, checks the limits, and opens request->opening.stream in the request's format. */
bool api_compute(struct api_request *request);

/* ---- explain.c --------------------------------------------------------------------------------------------------- */

/* What /explain and /translate differ in: what the core is asked, and how its answer is printed, whole or in sentences.
 */
struct api_explaining {
    enum pe_status (*ask)(const struct pe_explain_request *, struct pe_explain **, struct pe_failure *);
    void (*put)(struct api_text *text, const struct pe_value *answer);
    void (*put_sentences)(struct api_text *text, struct pe_explain *explain);
};
/* Builds the answer of either; NULL: request->problem is set. */
struct api_reply *api_explained(struct api_request *request, const struct api_explaining *how);

/* ---- study.c ----------------------------------------------------------------------------------------------------- */

/* What /analyze, /diagnose and /golden have in common: how their requests are read, what they ask of the host
 * meanwhile, and answers whose tensors are in memory. */

/* Reads the request, its form and its language; leaves the other fields in the request. */
bool api_study_read(struct api_request *request, const struct api_taking *taking);

/* Is the answer to be sentences, which is the format text? … or the JSON document that has them: an answer without
 * tensors has no other format. */
bool api_study_is_sentences(const struct api_request *request);
bool api_study_is_document(const struct api_request *request);
/* The reply of such a text, with a tag if the answer is cacheable; takes the text. has_language: it has sentences. */
struct api_reply *api_study_reply(struct api_request *request, struct api_text *text, bool has_language);

/* any_name.c: tensors whose names are no fields. Takes them, and the fields `tensors` and `kind`, out of the request
 * (*out is in its arena); the fields of an attempt, 0 … attempts - 1, each with a tensor as the next that it may be;
 * the member `taken` of the answer after the others, or a line for each tensor, of the last attempt. */
struct api_any_names;
const struct pe_param *api_any_names_params(void);
bool api_any_names_take(struct api_request *request, struct api_any_names **out);
size_t api_any_names_attempts(const struct api_any_names *any);
const struct pe_field *api_any_names_fill(struct api_any_names *any, size_t attempt, const struct api_request *request,
                                          size_t *n_fields);
void api_any_names_put(struct api_text *text, const struct api_any_names *any);
void api_any_names_print(struct api_text *text, const struct api_any_names *any);

/* For the core, with the request as caller: reports metrics to the host. */
void api_study_step(void *caller, const char *metric);

/* The n tensors of a result, tensor(result, 0 … n - 1), become the source of the opening; they stay where they are. */
typedef const struct pe_named_tensor *api_study_tensor(const void *result, size_t i);
bool api_study_hold(struct api_request *request, api_study_tensor *tensor, const void *result, size_t n);

/* The members of an object become those of the opening: printed as JSON, one after the other, in text, and listed in
 * members. */
enum { API_STUDY_MEMBERS_MAX = 8 };
bool api_study_members(struct api_request *request, const struct pe_value *object, struct api_text *text,
                       struct api_member members[API_STUDY_MEMBERS_MAX]);

/* Opens request->opening.stream in the request's format. */
bool api_study_open(struct api_request *request);

/* ---- diagnose.c -------------------------------------------------------------------------------------------------- */

const struct pe_param *api_diagnose_params(void); /* what /diagnose and /check read themselves: strict */
extern const struct pe_member api_check_members[];

/* ---- kept.c ------------------------------------------------------------------------------------------------------ */

/* What the endpoints of stored weights and of stored presets share. */

struct api_guard api_stored_guard(const struct api_call *call);

/* Adds the digest as entity tag (NULL: none), and no-cache: caches must revalidate, because a PUT may have changed the
 * file. */
struct api_reply *api_stored_headers(struct api_reply *reply, const char *sha256);

/* Refuses a call whose condition did not hold: 412. NULL. */
struct api_reply *api_stored_guarded(struct api_request *request, const struct api_store *store);
/* Refuses a change, of n bytes, for any other reason. NULL. */
struct api_reply *api_stored_refused(struct api_request *request, const struct api_store *store, enum api_stored stored,
                                     size_t n);

/* The answer to a DELETE; it may wait for a disk. absent: the 404; returns false. */
typedef bool api_stored_absent(const struct api_store *store, const char *name, struct api_problem *problem);
struct api_reply *api_stored_remove(struct api_request *request, const struct api_store *store,
                                    api_stored_absent *absent);

/* ---- catalogue.c ---- */

/* The refusal of a scheme's name. Returns false. */
bool api_scheme_absent(int status, const char *pointer, const char *name, struct api_problem *problem);

/* ---- presets.c ---- */

/* The 404 of a preset in a path. store may be NULL. Returns false. */
bool api_preset_absent(const struct api_store *store, const char *name, struct api_problem *problem);

/* One preset of the program as an entry of GET /presets, without the braces around it. */
void api_preset_print(struct api_text *text, const struct pe_preset *preset, enum pe_lang lang);

/* ---- pages.c ---- */

/* The n bytes of one of the page's files; what has to be freed is in *owned. NULL: there is none, or no memory. */
const char *api_page_text(const struct api_page *page, const char *name, char **owned, size_t *n);

/* ---- kept.c: lists ---- */

/* Lists of stored files as JSON. NULL: no memory. */
struct api_body *api_list_body_all(const struct api_store *store); /* store NULL: nothing is stored */
/* One file, without brackets; holds a card of the file. */
struct api_body *api_list_body_one(const struct api_store *store, const struct api_stored_file *weights);
/* The stored presets after others: begin, of n_begin bytes, is a list of at least one without its "]}", and lasts. */
struct api_body *api_list_body_presets(const struct api_store *store, const char *begin, size_t n_begin);
/* Writes the n bytes of a list from `first` on, all of them within it. Any thread; cannot fail. */
void api_list_print(const struct api_body *list, uint64_t first, size_t n, char *dst);

/* ---- experiments.c ---- */

extern const struct pe_member api_live_members[]; /* of an event */

/* ---- Members of descriptors (parameters.c) ---- */

/* In which language texts are, and whether of the rows of a scheme or metric there is more than their label. */
struct api_wording {
    enum pe_lang lang;
    bool is_brief;
};

void api_put_about(struct api_text *text, const struct pe_about *about, struct api_wording wording);
void api_put_optional(struct api_text *text, const char *name, const char *value);
void api_put_interval(struct api_text *text, const char *name, enum pe_type type, const struct pe_interval *interval);
void api_put_param(struct api_text *text, const struct pe_param *row, struct api_wording wording);
void api_put_params(struct api_text *text, const struct pe_param *rows, const struct pe_param *more,
                    struct api_wording wording);

#endif
