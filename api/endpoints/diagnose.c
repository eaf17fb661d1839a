/* /diagnose: which configuration gives a tensor; /check: whether the one believed does; /diagnose/probe: which numbers
 * tell. The answer is one JSON document, or as text the sentences of its findings, complete before it is sent. */
#include "api/endpoints/endpoints.h"
#include "api/inputs/inputs.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct own {
    bool strict;               /* roundings count as differences */
    struct api_any_names *any; /* of /diagnose and /check */
};

static const struct pe_param own_rows[] = {
    {.name = "strict",
     .type = PE_T_BOOL,
     .offset = offsetof(struct own, strict),
     .about = {"strict", "true: a belief that differs in roundings only (angles in float32, fewer bits) does not fit"},
     .group = PE_G_ANSWER},
    {.name = NULL},
};

const struct pe_param *api_diagnose_params(void) { return own_rows; }

static const struct api_taking taking = {
    .tensor = pe_kind_alone, .params = api_diagnose_params, .may_answer_nothing = true};

static bool check_format(struct api_request *request)
{
    return api_study_is_document(request) ||
           api_fail(&request->problem, 406, api_form_format(&request->form) ? "/format" : "",
                    "a diagnosis is JSON or text and has no tensor, so %s cannot carry it", request->format->name);
}

static bool take_own(struct api_request *request)
{
    struct pe_failure err;
    bool taken[API_FIELDS_MAX] = {false};
    if (pe_params_read(own_rows, request->own, request->fields, request->n_fields, taken, "", &err))
        return api_fail_core(&request->problem, &err);
    api_request_remove(request, taken);
    return true;
}

/* Rows of two checkpoints were compared here; the client does it without sending them. */
static bool refuse_checkpoints(struct api_request *request)
{
    static const char *const names[] = {"w_believed", "w_found", NULL};
    char pointer[PE_POINTER_MAX];
    return !api_request_first(request, names, pointer) ||
           api_fail(&request->problem, 422, pointer,
                    "two checkpoints are not compared here any more: use posenc.check_rows(w_believed, w_found, "
                    "num_heads=…) of the Python client (/clients/posenc.py)");
}

static bool diagnose_read(struct api_request *request)
{
    return api_study_read(request, &taking) && refuse_checkpoints(request) && check_format(request) &&
           api_printed_take(request, &request->problem) &&
           api_any_names_take(request, &((struct own *)request->own)->any) && take_own(request) &&
           api_take_weights(request);
}

typedef enum pe_status open_diagnosis(const struct pe_diagnosis_request *request, struct pe_diagnosis **diagnosis,
                                      struct pe_failure *err);

/* The form's names, for suggestions. */
static bool open_core(struct api_request *request, const struct pe_field *fields, size_t n_fields, double max_work,
                      open_diagnosis *open, struct pe_diagnosis **diagnosis)
{
    struct pe_failure err;
    struct pe_diagnosis_request core = {.fields = fields,
                                        .n_fields = n_fields,
                                        .lang = request->lang,
                                        .max_work = max_work,
                                        .caller_fields = api_form_names,
                                        .admit = api_memory_admit,
                                        .step = api_study_step,
                                        .caller = request};
    api_memory_settle(request);
    return open(&core, diagnosis, &err) == PE_OK || api_memory_fail(request, &err);
}

static const struct pe_value *member_of(const struct pe_value *object, const char *name)
{
    return object->kind == PE_OBJECT ? api_member_find(object, name) : NULL;
}

/* What the attempts are given of the work: all of them together have that of one request. */
static bool attempt(struct api_request *request, size_t i, struct pe_diagnosis **diagnosis)
{
    struct api_any_names *any = ((struct own *)request->own)->any;
    size_t n_fields;
    const struct pe_field *fields = api_any_names_fill(any, i, request, &n_fields);
    double work = (double)request->host->max_analysis / (double)api_any_names_attempts(any);
    return open_core(request, fields, n_fields, work, pe_diagnosis_new, diagnosis);
}

/* Tensors of other names may be of several kinds: the first that is explained counts, else the first that could be
 * read. */
static bool diagnose(struct api_request *request, struct pe_diagnosis **diagnosis)
{
    size_t n = api_any_names_attempts(((struct own *)request->own)->any), readable = n;
    struct api_problem first = {.status = 0};
    for (size_t i = 0; i < n; i++) {
        *diagnosis = NULL;
        bool is_read = attempt(request, i, diagnosis);
        if (is_read && (n == 1 || member_of(pe_diagnosis_answer(*diagnosis), "explained")->boolean))
            return true;
        if (!is_read && request->problem.status != 422)
            return false;
        if (is_read)
            pe_diagnosis_free(*diagnosis);
        readable = is_read && readable == n ? i : readable;
        first = i == 0 ? request->problem : first;
        request->problem.status = 0;
    }
    if (readable < n)
        return attempt(request, readable, diagnosis);
    request->problem = first;
    return false;
}

static bool is_passing(const struct api_request *request, const struct pe_diagnosis *diagnosis)
{
    return pe_diagnosis_fits(diagnosis, ((const struct own *)request->own)->strict);
}

/* Takes the text. The header is for scripts that read no JSON (RFC 8941, a boolean). */
static struct api_reply *reply_of(struct api_request *request, struct pe_diagnosis *diagnosis, struct api_text *text)
{
    const struct api_host *host = request->host;
    bool is_repeatable = api_request_is_lasting(request), fits = is_passing(request, diagnosis);
    if (host->hypotheses_searched)
        host->hypotheses_searched(pe_diagnosis_searched(diagnosis));
    pe_diagnosis_free(diagnosis);
    struct api_reply *reply = api_reply_text(200, api_format_type(request->format), text);
    if (reply->status != 200)
        return reply;
    reply->is_repeatable = is_repeatable;
    return api_reply_set_language(api_reply_header(reply, "Posenc-Fits", fits ? "?1" : "?0"), request->lang);
}

/* Up to the end of its first sentence. */
static size_t first_sentence(const char *text)
{
    const char *latin = strstr(text, ". "), *chinese = strstr(text, "\xe3\x80\x82"); /* an ideographic full stop */
    if (chinese && (!latin || chinese < latin))
        return (size_t)(chinese - text) + 3;
    return latin ? (size_t)(latin - text) + 1 : strlen(text);
}

static void put_number(struct api_text *text, const struct pe_value *x)
{
    if (x->kind == PE_STRING) /* not finite */
        api_text_put(text, x->string);
    else
        api_text_format(text, "%.4g", x->kind == PE_INTEGER ? (double)x->integer : x->real);
}

/* q_out[0,0,1,0] is 0.3817, expected -0.8402 */
static void put_first_bad(struct api_text *text, const struct pe_value *bad)
{
    const struct pe_value *index = member_of(bad, "index");
    api_text_format(text, pe_text("first difference: %s["), member_of(bad, "output")->string);
    for (size_t i = 0; i < index->list.n; i++)
        api_text_format(text, "%s%lld", i ? "," : "", (long long)index->list.items[i].integer);
    api_text_put(text, pe_text("] is "));
    put_number(text, member_of(bad, "found"));
    api_text_put(text, pe_text(", expected "));
    put_number(text, member_of(bad, "expected"));
    api_text_put(text, "\n");
}

/* The lines of Python that mend a finding, indented, as PyTorch has them; nothing where there are none. */
static void print_cure(struct api_text *text, const struct pe_value *finding)
{
    const struct pe_value *cure = member_of(finding, "cure");
    const struct pe_value *lines = cure && cure->kind == PE_OBJECT ? member_of(cure, "torch") : NULL;
    for (const char *line = lines ? lines->string : ""; *line;) {
        size_t n = strcspn(line, "\n");
        api_text_put(text, "    ");
        api_text_add(text, line, n);
        api_text_put(text, "\n");
        line += n + (line[n] == '\n');
    }
}

static struct api_reply *diagnose_build(struct api_request *request)
{
    struct pe_diagnosis *diagnosis = NULL;
    struct api_text text;
    if (!diagnose(request, &diagnosis))
        return NULL;
    api_text_init(&text, API_TEXT_MAX);
    const struct api_any_names *any = ((const struct own *)request->own)->any;
    const struct pe_value *answer = pe_diagnosis_answer(diagnosis);
    if (api_study_is_sentences(request)) {
        /* For a person: a word of the answer, then the sentence of each finding on a line, and below it what mends it.
         */
        const struct pe_value *findings = member_of(answer, "findings");
        api_text_format(&text, "%s:", member_of(answer, "explained")->boolean ? "explained" : "unexplained");
        for (size_t i = 0; i < findings->list.n; i++) {
            const struct pe_value *detail =
                member_of(&findings->list.items[i], request->lang == PE_ZH ? "detail_zh" : "detail");
            api_text_put(&text, " ");
            api_text_put(&text, detail ? detail->string : "");
            api_text_put(&text, "\n");
            print_cure(&text, &findings->list.items[i]);
        }
        api_text_add(&text, "\n", findings->list.n == 0);
        api_any_names_print(&text, any);
        return reply_of(request, diagnosis, &text);
    }
    api_text_value(&text, answer);
    text.n -= text.n > 0; /* the brace */
    api_any_names_put(&text, any);
    api_text_put(&text, "}");
    return reply_of(request, diagnosis, &text);
}

const struct api_steps api_diagnose = {{diagnose_read}, NULL, diagnose_build, sizeof(struct own)};

/* ---- /check ---- */

static const char *const verdicts[] = {"exact", "rounding", "differs", NULL};

const struct pe_member api_check_members[] = {
    {.name = "fits", .types = "boolean"},
    {.name = "verdict", .words = verdicts},
    {.name = "findings", .types = "array", .items = "object", .members = pe_finding_members},
    {.name = "max_error", .types = "number|null", .summary = "of the numbers believed"},
    {.name = "notes", .types = "array", .summary = "as in /diagnose", .is_optional = true},
    {.name = "taken", .types = "array", .summary = "as in /diagnose", .is_optional = true},
    {.name = NULL},
};

static bool check_read(struct api_request *request)
{
    static const char *const beliefs[] = {"scheme", "preset", "hf_config", "gguf", "said", NULL};
    char pointer[PE_POINTER_MAX];
    if (!diagnose_read(request))
        return false;
    return api_request_first(request, beliefs, pointer) ||
           api_fail(&request->problem, 422, "/scheme",
                    "check needs what the tensor is believed to be: a scheme, preset or hf_config; "
                    "diagnose identifies a tensor");
}

/* A belief that fits is the first candidate, and its verdict tells whether every bit is the same. */
static const char *verdict_of(const struct pe_value *answer, bool fits)
{
    const struct pe_value *candidates = member_of(answer, "candidates");
    const struct pe_value *verdict = candidates->list.n ? member_of(candidates->list.items, "verdict") : NULL;
    return fits && verdict ? verdict->string : "differs";
}

static struct api_reply *check_build(struct api_request *request)
{
    struct pe_diagnosis *diagnosis = NULL;
    struct api_text text;
    if (!diagnose(request, &diagnosis))
        return NULL;
    const struct pe_value *answer = pe_diagnosis_answer(diagnosis), null = {.kind = PE_NULL};
    const struct pe_value *error = member_of(member_of(answer, "belief"), "max_error"),
                          *notes = member_of(answer, "notes");
    bool fits = is_passing(request, diagnosis);
    api_text_init(&text, API_TEXT_MAX);
    if (api_study_is_sentences(request)) {
        /* For a person who reads a log: the verdict with the first sentence of each finding on one line, the lines that
         * mend them, then the first number that differs. */
        const struct pe_value *findings = member_of(answer, "findings"), *belief = member_of(answer, "belief");
        const struct pe_value *bad = belief->kind == PE_OBJECT ? member_of(belief, "first_bad") : NULL;
        api_text_format(&text, "%s:", fits ? "fits" : "differs");
        for (size_t i = 0; i < findings->list.n; i++) {
            const struct pe_value *detail =
                member_of(&findings->list.items[i], request->lang == PE_ZH ? "detail_zh" : "detail");
            const char *sentence = detail ? detail->string : "";
            api_text_put(&text, " ");
            api_text_add(&text, sentence, first_sentence(sentence));
        }
        if (findings->list.n == 0)
            api_text_format(&text, " %s", verdict_of(answer, fits));
        api_text_put(&text, "\n");
        for (size_t i = 0; i < findings->list.n; i++)
            print_cure(&text, &findings->list.items[i]);
        if (bad && bad->kind == PE_OBJECT)
            put_first_bad(&text, bad);
        return reply_of(request, diagnosis, &text);
    }
    api_text_format(&text, "{\"fits\":%s,\"verdict\":\"%s\",\"findings\":", fits ? "true" : "false",
                    verdict_of(answer, fits));
    api_text_value(&text, member_of(answer, "findings"));
    api_text_put(&text, ",\"max_error\":");
    api_text_value(&text, error ? error : &null);
    if (notes) {
        api_text_put(&text, ",\"notes\":");
        api_text_value(&text, notes);
    }
    api_any_names_put(&text, ((const struct own *)request->own)->any);
    api_text_put(&text, "}");
    return reply_of(request, diagnosis, &text);
}

const struct api_steps api_check = {{check_read}, NULL, check_build, sizeof(struct own)};

/* ---- /diagnose/probe ---- */

/* Weights; a tensor without a name is then refused by its name. */
static const struct api_taking probing = {
    .tensor = pe_kind_alone, .params = pe_probe_params, .may_answer_nothing = true};

static bool probe_read(struct api_request *request)
{
    return api_study_read(request, &probing) && check_format(request) && api_take_weights(request);
}

/* For a person: a number on each line, or a sentence if there is none. */
static void print_places(struct api_text *text, const struct pe_value *answer)
{
    const struct pe_value *places = member_of(answer, "probe");
    if (!places->list.n) {
        api_text_put(text, pe_text("there is nothing to look at: no number shows a mistake of this configuration"));
        api_text_put(text, "\n");
    }
    for (size_t i = 0; i < places->list.n; i++) {
        const struct pe_value *place = &places->list.items[i];
        for (size_t k = 0; k < place->object.n; k++) {
            const struct pe_field *field = &place->object.fields[k];
            api_text_add(text, " ", k > 0);
            if (field->value.kind == PE_STRING)
                api_text_put(text, field->value.string);
            else
                api_text_value(text, &field->value);
        }
        api_text_put(text, "\n");
    }
}

static struct api_reply *probe_build(struct api_request *request)
{
    struct pe_diagnosis *probe = NULL;
    struct api_text text;
    if (!open_core(request, request->fields, request->n_fields, (double)request->host->max_analysis, pe_probe_new,
                   &probe))
        return NULL;
    api_text_init(&text, API_TEXT_MAX);
    if (api_study_is_sentences(request))
        print_places(&text, pe_diagnosis_answer(probe));
    else
        api_text_value(&text, pe_diagnosis_answer(probe));
    if (request->host->hypotheses_searched)
        request->host->hypotheses_searched(pe_diagnosis_searched(probe));
    pe_diagnosis_free(probe);
    return api_study_reply(request, &text, api_study_is_sentences(request));
}

const struct api_steps api_probe = {{probe_read}, NULL, probe_build, 0};
