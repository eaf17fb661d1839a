/* POST /encode, /rotate and /attention, from the received bytes to the reply: fields, form, plan, format, in this
 * order. Every refusal happens here; the pieces of the reply cannot fail. */
#include "api/endpoints/compute.h"
#include "api/inputs/input.h"
#include "api/inputs/preset_in.h"
#include "api/requests/memory.h"
#include "api/requests/negotiate.h"
#include "api/requests/query.h"
#include "api/routes.h"
#include "api/inputs/weights_in.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool fail_empty(const struct api_computation *c)
{
    return api_fail(c->problem, 400, "",
                    "the request is empty; send a JSON object, as in curl -d '{\"scheme\":\"rope\",\"len\":8}', or "
                    "names in the query");
}

bool api_compute_read(struct api_computation *c)
{
    const struct api_call *call = c->call;
    bool has_query = call->query && *call->query;
    if (!call->body_bytes && !has_query)
        return fail_empty(c);
    struct api_request *request = c->request;
    request->max_json = c->host->max_json;
    request->body_is_ours =
        call->body_is_ours && !call->must_not_block; /* a call with must_not_block may be repeated */
    request->must_not_block = call->must_not_block;
    request->presets = c->host->presets;
    if (!api_memory_for_reading(c->request, c->host, call, c->problem))
        return false;
    if (call->body_bytes && !api_input_read(request, call->content_type, call->body, call->body_bytes, c->problem))
        return false;
    if (!api_preset_take(request, c->problem))
        return false;
    return !has_query || api_query_read(request, call->query, c->problem);
}

static bool read_fields(struct api_computation *c)
{
    return api_compute_read(c) && api_weights_add(c->host->store, c->request, &c->stored_bytes, c->problem);
}

bool api_compute_format(struct api_computation *c)
{
    c->format = api_form_format(&c->form);
    if (!c->format)
        c->format = api_negotiate(c->call->accept);
    if (c->format)
        return api_form_check(&c->form, c->format, c->problem);
    char offered[256];
    api_formats_print(offered, sizeof offered);
    return api_fail(c->problem, 406, "", "no type that Accept names is available; offered: %s", offered);
}

static struct pe_request core_request(const struct api_computation *c)
{
    const struct api_request *request = c->request;
    return (struct pe_request){
        .operation = request->operation,
        .fields = request->fields,
        .n_fields = request->n_fields,
        .dtype = (enum pe_dtype)c->form.dtype,
        .outputs = c->form.outputs,
        .n_outputs = c->form.n_outputs,
        .slices = c->form.slices,
        .n_slices = c->form.n_slices,
        .reduce = (enum pe_reduce)c->form.reduce,
        .caller_fields = api_form_names(),
    };
}

/* Limits that apply to every plan. */
static bool takes_long(const struct api_computation *c)
{
    return c->call->must_not_block && (c->format->is_picture || c->stored_bytes > API_HURRIED_WEIGHTS_MAX);
}

/* Planning continues only if its caller has the time and the host has the memory. */
struct planning {
    const struct api_computation *computation;
    bool is_late, is_refused; /* is_late: call again from a worker; is_refused: the problem is set */
};

static enum pe_status admit(void *caller, const struct pe_cost *cost, struct pe_error *err)
{
    struct planning *p = caller;
    const struct api_computation *c = p->computation;
    p->is_late = c->call->must_not_block && cost->ns > API_HURRIED_NS_MAX;
    p->is_refused = !p->is_late && !api_memory_for_planning(c->request, c->host, cost->bytes, c->problem);
    return p->is_late || p->is_refused ? err->status = PE_CANCELLED : PE_OK;
}

bool api_compute_plan(struct api_computation *c, bool *later)
{
    struct pe_error err;
    struct planning planning = {.computation = c};
    struct pe_request core = core_request(c);
    core.admit = admit;
    core.caller = &planning;
    api_memory_settle(c->request);
    if (pe_plan_new(&core, &c->request->plan, &err) == PE_OK)
        return true;
    *later = planning.is_late;
    return !planning.is_late && !planning.is_refused && api_fail_core(c->problem, &err);
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

bool api_compute_size(const struct api_computation *c, const struct api_source *source)
{
    uint64_t bytes = 0;
    if (!c->form.data)
        return true;
    for (size_t i = 0; i < api_source_count(source); i++)
        if (__builtin_add_overflow(bytes, output_bytes(api_source_output(source, i)), &bytes))
            bytes = UINT64_MAX;
    if (bytes <= c->host->max_answer)
        return true;
    return api_fail(c->problem, 413, "",
                    "the tensors of the answer have %s%" PRIu64 " bytes; allowed: at most %" PRIu64
                    " (the limit --max-answer of this server)",
                    bytes == UINT64_MAX ? "more than " : "", bytes, c->host->max_answer);
}

static bool check_size(const struct api_computation *c)
{
    struct api_source source = {.plan = c->request->plan};
    if (api_source_count(&source) > API_OUTPUTS_MAX)
        return api_fail(c->problem, 413, "/outputs", "the answer has more than %d tensors", API_OUTPUTS_MAX);
    return api_compute_size(c, &source);
}

/* Choosing a colour for each number and compressing it. */
static double picture_work(const struct pe_plan *plan)
{
    enum { WORK_OF_PIXEL = 256 };
    double n = 0;
    for (size_t i = 0; i < pe_plan_n_outputs(plan); i++)
        n += (double)pe_plan_output(plan, i)->n_rows * (double)pe_plan_output(plan, i)->row_len;
    return n * WORK_OF_PIXEL;
}

/* A picture's values are computed once more for its range, unless the request states both ends. */
static double work_of(const struct api_computation *c)
{
    double work = pe_plan_work(c->request->plan);
    if (!c->format->is_picture)
        return work;
    bool is_measured = isnan(c->form.vmin) || isnan(c->form.vmax);
    return work * (is_measured ? 2 : 1) + picture_work(c->request->plan);
}

static bool check_work(const struct api_computation *c)
{
    double work = work_of(c);
    if (work <= (double)c->host->max_work || !c->form.data)
        return true;
    return api_fail(
        c->problem, 413, "",
        "the answer takes %.3g multiplications; allowed: at most %.3g (the limit --max-work of this server)", work,
        (double)c->host->max_work);
}

/* Whether the client names this answer's tag. "*" does not count here: it matches any existing answer, and this request
 * may still be refused. */
static bool names_it(const struct api_computation *c)
{
    const char *tags = c->call->if_none_match;
    return tags && !strchr(tags, '*') && api_etag_is_among(tags, c->etag);
}

void api_compute_name(struct api_computation *c, const struct api_named *named)
{
    if (!c->is_kept)
        return;
    api_etag_print(named, c->etag);
    c->is_unchanged = names_it(c);
}

/* What was read of a model's config.json, for the formats that say more than tensors. */
static bool add_hf_about(struct api_computation *c, struct api_text *text, struct api_member *member)
{
    struct pe_hf_about *about;
    struct pe_error err;
    struct pe_request core = core_request(c);
    *member = (struct api_member){.name = NULL};
    if (pe_hf_about_new(&core, &about, &err))
        return api_fail_core(c->problem, &err);
    if (about) {
        api_text_value(text, pe_hf_about_value(about));
        *member = (struct api_member){"hf_config", text->bytes, text->n};
    }
    pe_hf_about_free(about);
    return !text->state || api_fail_text(c->problem, text);
}

static bool open_with_members(struct api_computation *c, struct api_opening *opening)
{
    struct api_text text;
    struct api_member member;
    api_text_init(&text, API_TEXT_MAX);
    bool fine = add_hf_about(c, &text, &member);
    opening->members = &member;
    opening->n_members = member.name != NULL;
    fine = fine && api_body_open(c->format, opening, c->problem);
    opening->members = NULL;
    opening->n_members = 0;
    api_text_drop(&text);
    return fine;
}

static bool open_stream(struct api_computation *c, struct api_opening *opening)
{
    struct api_text config;
    api_text_init(&config, API_TEXT_MAX);
    api_text_value(&config, pe_plan_config(c->request->plan));
    *opening = (struct api_opening){.source = {.plan = c->request->plan},
                                    .form = &c->form,
                                    .request = c->request,
                                    .arena = &c->request->arena,
                                    .max_kept = c->host->max_pictures,
                                    .config = config.bytes,
                                    .config_bytes = config.n,
                                    .about = c->about};
    bool fine = !config.state || api_fail_text(c->problem, &config);
    struct api_named named = {.request = c->request,
                              .form = &c->form,
                              .format = c->format,
                              .is_of_machine = pe_plan_scheme(c->request->plan)->is_of_machine,
                              .commit = c->host->commit,
                              .config = config.bytes,
                              .config_bytes = config.n,
                              .route = c->key};
    if (fine)
        api_compute_name(c, &named);
    fine = fine && (c->is_unchanged || open_with_members(c, opening));
    api_text_drop(&config);
    return fine;
}

/* ---- Answers that may be kept ---- */

bool api_may_be_kept(const struct api_call *call)
{
    return strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0 || strcmp(call->method, "QUERY") == 0;
}

/* Vary stands only where Accept decided the format: many caches keep nothing that varies. */
static struct api_reply *with_headers(struct api_reply *reply, const struct api_computation *c,
                                      const char *cache_control)
{
    bool fine = api_reply_header(reply, "ETag", c->etag) && api_reply_header(reply, "Cache-Control", cache_control) &&
                (c->key || api_form_format(&c->form) || api_reply_header(reply, "Vary", "Accept"));
    return fine ? reply : api_reply_without_memory(reply);
}

/* Ranges are served only of bodies whose layout follows by arithmetic. A part of a picture would need the whole
 * picture, and the end of an archive needs the checksums of all data before it, which may be 64 GiB, computed in one
 * piece that cannot be interrupted. */
static bool may_have_ranges(const struct api_computation *c)
{
    bool asks_by_name = strcmp(c->call->method, "QUERY") != 0;
    return asks_by_name && !c->format->is_text && !c->format->is_picture && !c->format->waits;
}

static struct api_reply *unsatisfiable(struct api_computation *c, uint64_t length)
{
    api_request_free(c->request);
    return api_range_refusal(length);
}

/* The whole answer, or the part that Range requests. */
static struct api_reply *send_kept(struct api_computation *c, const struct api_opening *opening)
{
    struct api_plan_body *stream = opening->stream;
    struct api_range range = {0, 0};
    uint64_t length = stream->body.length;
    const char *cache_control = api_cache_control(c->request, c->call->access);
    bool has_ranges = may_have_ranges(c);
    enum api_range_kind kind = has_ranges ? api_range_asked(c->call, c->etag, length, &range) : API_RANGE_NONE;
    if (kind == API_RANGE_UNSATISFIABLE)
        return unsatisfiable(c, length);
    if (kind == API_RANGE_PART)
        api_body_cut(stream, range.first, range.last);
    struct api_reply *reply = api_reply_stream(opening->stream, opening->header, opening->header_value);
    if (reply->status != 200)
        return reply;
    if (!has_ranges || api_range_add(reply, kind, &range, length))
        return with_headers(reply, c, cache_control);
    return api_reply_without_memory(reply);
}

static struct api_reply *answer_kept(struct api_computation *c, const struct api_opening *opening)
{
    if (!c->is_unchanged && !api_etag_is_among(c->call->if_none_match, c->etag))
        return send_kept(c, opening);
    const char *cache_control = api_cache_control(c->request, c->call->access);
    const char *scheme = c->request->plan ? pe_plan_scheme(c->request->plan)->name : "";
    api_request_free(c->request);
    return with_headers(api_reply_set_scheme(api_reply_empty(304), scheme), c, cache_control);
}

struct api_reply *api_compute_text(struct api_computation *c, struct api_text *text)
{
    struct api_named named = {.request = c->request,
                              .form = &c->form,
                              .format = c->format,
                              .commit = c->host->commit,
                              .config = text->bytes,
                              .config_bytes = text->n,
                              .route = c->key};
    api_compute_name(c, &named);
    const char *cache_control = api_cache_control(c->request, c->call->access);
    const char *scheme = pe_plan_scheme(c->request->plan)->name;
    bool is_unchanged = !text->state && (c->is_unchanged || api_etag_is_among(c->call->if_none_match, c->etag));
    if (is_unchanged)
        api_text_drop(text);
    struct api_reply *reply = is_unchanged ? api_reply_empty(304) : api_reply_text(200, api_json_type, text);
    api_request_free(c->request);
    reply = api_reply_set_scheme(reply, scheme);
    return reply->status >= 400 ? reply : with_headers(reply, c, cache_control);
}

struct api_reply *api_compute_reply(struct api_computation *c, const struct api_opening *opening)
{
    return c->is_kept ? answer_kept(c, opening)
                      : api_reply_stream(opening->stream, opening->header, opening->header_value);
}

bool api_compute(struct api_computation *c, struct api_opening *opening, bool *later)
{
    *later = takes_long(c);
    return !*later && api_compute_plan(c, later) && check_size(c) && check_work(c) &&
           api_memory_for_answering(c->request, c->host, &(struct api_source){.plan = c->request->plan}, c->format,
                                    c->problem) &&
           open_stream(c, opening);
}

struct api_reply *api_operate(const struct api_asked *asked)
{
    struct api_problem problem;
    struct api_opening opening;
    struct api_computation c = {.host = asked->host,
                                .call = asked->call,
                                .request = api_request_new(asked->route->operation),
                                .problem = &problem};
    c.is_kept = api_may_be_kept(asked->call);
    bool later = false;
    if (!c.request)
        api_fail_memory(&problem);
    else if (read_fields(&c) && api_form_read(c.request, &c.form, &problem) && api_compute_format(&c) &&
             api_compute(&c, &opening, &later))
        return api_compute_reply(&c, &opening);
    api_memory_refusal(c.request, &problem);
    later |= c.request && (c.request->is_late || c.request->drawing.is_late);
    api_request_free(c.request);
    return later ? NULL : api_reply_problem(&problem);
}
