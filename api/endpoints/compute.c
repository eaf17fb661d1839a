/* POST /encode, /rotate and /attention, from the received bytes to the reply: fields, form, plan, format, in this
 * order. Every refusal happens here; the pieces of the reply cannot fail.
 *
 * The order is one of cost. What the client asked and in which form is known from the head and a few fields; a plan's
 * check knows every shape and so the exact length of a binary answer, its tag and its memory, before a number is
 * computed. An answer whose tag the client already has (If-None-Match) ends there. Ranges are served of bodies whose
 * layout follows by arithmetic, and of no others. */
#include "api/endpoints/endpoints.h"
#include "api/inputs/inputs.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool api_take_body(struct api_request *request)
{
    const struct api_call *call = request->call;
    if (!call->body_bytes && !(call->query && *call->query))
        return api_fail(&request->problem, 400, "",
                        "the request is empty; send a JSON object, as in curl -d '{\"scheme\":\"rope\",\"len\":8}', or "
                        "names in the query");
    return api_memory_for_reading(request) &&
           (!call->body_bytes ||
            api_input_read(request, call->content_type, call->body, call->body_bytes, &request->problem));
}

bool api_take_preset(struct api_request *request) { return api_preset_take(request, &request->problem); }

bool api_take_query_scheme(struct api_request *request) { return api_query_read(request, true); }

bool api_take_query(struct api_request *request)
{
    return api_query_read(request, false) && api_pasted_take(request, &request->problem);
}

bool api_take_weights(struct api_request *request)
{
    return api_weights_add(request->host->store, request, &request->stored_bytes, &request->problem);
}

bool api_compute_read(struct api_request *request)
{
    return api_take_body(request) && api_take_preset(request) && api_take_query_scheme(request) &&
           api_take_preset(request) && api_take_query(request);
}

static struct pe_request core_request(const struct api_request *request)
{
    return (struct pe_request){
        .operation = request->operation,
        .fields = request->fields,
        .n_fields = request->n_fields,
        .dtype = pe_answer_dtype(request->form.dtype),
        .outputs = request->form.outputs,
        .n_outputs = request->form.n_outputs,
        .slices = request->form.slices,
        .n_slices = request->form.n_slices,
        .reduce = (enum pe_reduce)request->form.reduce,
        .caller_fields = api_form_names,
    };
}

/* ---- Planning ---- */

bool api_compute_check(struct api_request *request)
{
    struct pe_failure err;
    struct pe_request core = core_request(request);
    core.admit = api_memory_admit;
    core.caller = request;
    api_memory_settle(request);
    if (pe_plan_check(&core, &request->plan, &err))
        return api_memory_fail(request, &err);
    request->is_long = request->format->is_picture || request->stored_bytes > API_HURRIED_WEIGHTS_MAX ||
                       request->drawing.n_waiting > API_DRAWN_AT_ONCE || pe_plan_builder(request->plan) == PE_WORKER;
    return true;
}

bool api_compute_build(struct api_request *request)
{
    struct pe_failure err;
    api_request_fill(request);
    return pe_plan_build(request->plan, &err) == PE_OK || api_memory_fail(request, &err);
}

/* Bytes of an output; UINT64_MAX if the number overflows. */
static uint64_t output_bytes(const struct pe_output *output)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(output->n_rows, output->row_len, &bytes) ||
        __builtin_mul_overflow(bytes, pe_dtype_size(output->dtype), &bytes))
        return UINT64_MAX;
    return bytes;
}

bool api_compute_size(struct api_request *request, const struct api_source *source)
{
    uint64_t bytes = 0;
    if (!request->form.data)
        return true;
    for (size_t i = 0; i < api_source_count(source); i++)
        if (__builtin_add_overflow(bytes, output_bytes(api_source_output(source, i)), &bytes))
            bytes = UINT64_MAX;
    if (bytes <= request->host->max_answer)
        return true;
    return api_fail(&request->problem, 413, "",
                    "the tensors of the answer have %s%" PRIu64 " bytes; allowed: at most %" PRIu64
                    " (the limit --max-answer of this server)",
                    bytes == UINT64_MAX ? pe_text("more than ") : "", bytes, request->host->max_answer);
}

/* A picture's values are computed once more for its range, unless the request states both ends; then a colour is chosen
 * for each number and compressed. */
static bool check_work(struct api_request *request)
{
    enum { WORK_OF_PIXEL = 256 };
    double work = pe_plan_work(request->plan), n = 0;
    bool is_picture = request->format->is_picture;
    for (size_t i = 0; is_picture && i < pe_plan_n_outputs(request->plan); i++)
        n += (double)pe_plan_output(request->plan, i)->n_rows * (double)pe_plan_output(request->plan, i)->row_len;
    if (is_picture && (isnan(request->form.vmin) || isnan(request->form.vmax)))
        work *= 2;
    work += n * WORK_OF_PIXEL;
    if (work <= (double)request->host->max_work || !request->form.data)
        return true;
    return api_fail(
        &request->problem, 413, "",
        "the answer needs %.3g multiplications; allowed: at most %.3g (the limit --max-work of this server)", work,
        (double)request->host->max_work);
}

/* "*" does not count here: it matches any existing answer, and this request may still be refused. */
void api_compute_name(struct api_request *request, const char *config, size_t n)
{
    const char *tags = request->call->if_none_match;
    if (!request->is_cacheable)
        return;
    api_etag_print(request, config, n);
    request->is_unchanged = tags && !strchr(tags, '*') && api_etag_is_among(tags, request->etag);
}

/* Flags of a command line that were not read. */
static void add_said(struct api_request *request, struct api_text *text, struct api_member *member)
{
    const struct pe_value *said = api_request_find(request, "said");
    const struct pe_value *to = said ? api_member_find(said, "to") : NULL;
    const struct pe_value *ignored = said ? api_member_find(said, "ignored") : NULL;
    if (!to || !ignored)
        return;
    const struct pe_field fields[] = {{"to", *to}, {"ignored", *ignored}};
    api_text_value(text, &(struct pe_value){.kind = PE_OBJECT, .object = {fields, 2}});
    *member = (struct api_member){"said", text->bytes, text->n};
}

/* What was read of a model's config.json or GGUF keys, or of flags, for the formats that say more than tensors. */
static bool add_about(struct api_request *request, struct api_text *text, struct api_member *member)
{
    struct pe_model_about *about;
    struct pe_failure err;
    struct pe_request core = core_request(request);
    *member = (struct api_member){.name = NULL};
    if (pe_model_about_new(&core, &about, &err))
        return api_fail_core(&request->problem, &err);
    if (about) {
        api_text_value(text, pe_model_about_value(about));
        *member =
            (struct api_member){api_request_find(request, "hf_config") ? "hf_config" : "gguf", text->bytes, text->n};
    }
    add_said(request, text, member);
    pe_model_about_free(about);
    return !text->state || api_fail_text(&request->problem, text);
}

static bool open_with_members(struct api_request *request)
{
    struct api_text text;
    struct api_member members[2];
    struct api_opening *opening = &request->opening;
    api_text_init(&text, API_TEXT_MAX);
    bool fine = add_about(request, &text, &members[0]);
    opening->members = members;
    opening->n_members = members[0].name != NULL;
    if (request->pasted)
        members[opening->n_members++] = (struct api_member){"pasted", request->pasted, strlen(request->pasted)};
    fine = fine && api_body_open(request);
    opening->n_members = 0;
    api_text_drop(&text);
    return fine;
}

static bool open_stream(struct api_request *request)
{
    struct api_text config;
    api_text_init(&config, API_TEXT_MAX);
    api_text_value(&config, pe_plan_config(request->plan));
    request->opening =
        (struct api_opening){.source = {.plan = request->plan}, .config = config.bytes, .config_bytes = config.n};
    request->is_of_machine = pe_plan_scheme(request->plan)->is_of_machine;
    bool fine = !config.state || api_fail_text(&request->problem, &config);
    if (fine)
        api_compute_name(request, config.bytes, config.n);
    fine = fine && (request->is_unchanged || open_with_members(request));
    api_text_drop(&config);
    return fine;
}

/* ---- Answers that may be kept ---- */

bool api_is_cacheable(const struct api_call *call)
{
    return strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0 || strcmp(call->method, "QUERY") == 0;
}

/* Vary is sent only where Accept decided the format: many caches keep nothing that varies. */
static struct api_reply *with_headers(struct api_reply *reply, const struct api_request *request,
                                      const char *cache_control)
{
    reply = api_reply_header(reply, "ETag", request->etag);
    reply = api_reply_header(reply, "Cache-Control", cache_control);
    return request->key || api_form_format(&request->form) ? reply : api_reply_header(reply, "Vary", "Accept");
}

/* The whole answer, or the part that Range requests. */
static struct api_reply *send_cacheable(struct api_request *request)
{
    struct api_plan_body *stream = request->opening.stream;
    struct api_range range = {0, 0};
    uint64_t length = stream->body.length;
    const char *cache_control = api_cache_control(request, request->call->access);
    /* Ranges are served only of bodies whose layout follows by arithmetic. A part of a picture would need the whole
     * picture, and the end of an archive needs the checksums of all data before it, which may be 64 GiB, computed in
     * one piece that cannot be interrupted. */
    bool asks_by_name = strcmp(request->call->method, "QUERY") != 0;
    bool has_ranges =
        asks_by_name && !request->format->is_text && !request->format->is_picture && !request->format->waits;
    enum api_range_kind kind =
        has_ranges ? api_range_asked(request->call, request->etag, length, &range) : API_RANGE_NONE;
    if (kind == API_RANGE_UNSATISFIABLE)
        return api_range_refusal(length);
    if (kind == API_RANGE_PART)
        api_body_cut(stream, range.first, range.last);
    struct api_reply *reply = api_reply_stream(request);
    if (has_ranges)
        reply = api_range_add(reply, kind, &range, length);
    return reply->status >= 400 ? reply : with_headers(reply, request, cache_control);
}

struct api_reply *api_compute_document(struct api_request *request, const char *type, struct api_text *text)
{
    api_compute_name(request, text->bytes, text->n);
    const char *cache_control = api_cache_control(request, request->call->access);
    bool is_unchanged =
        !text->state && (request->is_unchanged || api_etag_is_among(request->call->if_none_match, request->etag));
    if (is_unchanged)
        api_text_drop(text);
    struct api_reply *reply = is_unchanged ? api_reply_empty(304) : api_reply_text(200, type, text);
    return reply->status >= 400 ? reply : with_headers(reply, request, cache_control);
}

struct api_reply *api_compute_reply(struct api_request *request)
{
    if (!request->is_cacheable)
        return api_reply_stream(request);
    if (!request->is_unchanged && !api_etag_is_among(request->call->if_none_match, request->etag))
        return send_cacheable(request);
    const char *cache_control = api_cache_control(request, request->call->access);
    const char *scheme = request->plan ? pe_plan_scheme(request->plan)->name : "";
    return with_headers(api_reply_set_scheme(api_reply_empty(304), scheme), request, cache_control);
}

bool api_compute(struct api_request *request)
{
    struct api_source source = {.plan = request->plan};
    if (!api_compute_build(request))
        return false;
    if (api_source_count(&source) > API_OUTPUTS_MAX)
        return api_fail(&request->problem, 413, "/outputs", "the answer has more than %d tensors", API_OUTPUTS_MAX);
    return api_compute_size(request, &source) && check_work(request) && api_memory_for_answering(request, &source) &&
           open_stream(request);
}

/* ---- Any operation ---- */

static bool operate_body(struct api_request *request)
{
    request->is_cacheable = api_is_cacheable(request->call);
    request->fills_later = true;
    return api_take_body(request);
}

static bool operate_form(struct api_request *request)
{
    return api_form_read(request, &request->form, &request->problem) && api_form_choose(request);
}

static struct api_reply *operate_build(struct api_request *request)
{
    return api_compute(request) ? api_compute_reply(request) : NULL;
}

const struct api_steps api_operate = {{operate_body, api_take_preset, api_take_query_scheme, api_take_preset,
                                       api_take_query, api_take_weights, operate_form},
                                      api_compute_check,
                                      operate_build,
                                      0};
