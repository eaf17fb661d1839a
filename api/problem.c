/* Errors as values, and their form on the wire (RFC 9457). */
#include "api/problem.h"
#include "api/statuses.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool api_fail(struct api_problem *problem, int status, const char *pointer, const char *format, ...)
{
    struct pe_failure error = {.status = PE_INVALID};
    va_list args;
    va_start(args, format);
    vsnprintf(error.detail, sizeof error.detail, pe_text(format), args);
    va_end(args);
    snprintf(error.pointer, sizeof error.pointer, "%s", pointer);
    *problem = (struct api_problem){.status = status, .error = error};
    return false;
}

bool api_fail_at(struct api_problem *problem, int status, const char *pointer, const char *name, const char *format,
                 ...)
{
    va_list args;
    va_start(args, format);
    api_fail(problem, status, pointer, "%s", "");
    vsnprintf(problem->error.detail, sizeof problem->error.detail, pe_text(format), args);
    va_end(args);
    api_pointer_push(problem->error.pointer, name, strlen(name));
    return false;
}

bool api_fail_memory(struct api_problem *problem)
{
    return api_fail(problem, 503, "", "not enough memory for this request; try again later");
}

bool api_fail_left(struct api_problem *problem)
{
    return api_fail(problem, 503, "", "cancelled: the client left before its answer was ready");
}

bool api_fail_core(struct api_problem *problem, const struct pe_failure *err)
{
    if (err->status == PE_NO_MEMORY)
        return api_fail_memory(problem);
    if (err->status == PE_CANCELLED)
        return api_fail(problem, 503, "", "%s", err->detail);
    char advice[160];
    /* The half of a sentence that core leaves to its caller: endpoints, and flags of the server. */
    static const char *const plain[PE_N_ADVICES] = {
        [PE_LIST_PRESETS] = "; GET /presets lists them",
        [PE_LIST_METRICS] = "; GET /schemes lists the metrics",
        [PE_LIST_TENSORS] = "; GET /schemes lists the tensors of each metric",
        [PE_ASK_ATTENTION] = "; POST /attention computes it",
        [PE_STORE_WEIGHTS] = " after PUT /weights/NAME",
        [PE_RAISE_ANALYSIS] = " (the limit --max-analysis of this server)",
        [PE_RAISE_DIAGNOSIS] = " (--max-analysis)",
        [PE_RAISE_WORK] = " (the limit --max-work of this server)",
    };
    if (err->advice == PE_LIST_FIELDS)
        snprintf(advice, sizeof advice, pe_text("; GET /schemes/%s lists the fields of %s"), err->about, err->about);
    else if (err->advice == PE_ASK_OTHER)
        snprintf(advice, sizeof advice, pe_text(" to this endpoint; POST /%s accepts it"), err->about);
    else
        snprintf(advice, sizeof advice, "%s", plain[err->advice] ? pe_text(plain[err->advice]) : "");
    size_t n = strlen(err->detail), at = err->advice && err->advice_at < n ? err->advice_at : n;
    api_fail(problem, err->status == PE_TOO_LARGE ? 413 : 422, err->pointer, "%.*s%s%s", (int)at, err->detail, advice,
             err->detail + at);
    memcpy(problem->error.layer_types, err->layer_types, sizeof err->layer_types);
    problem->error.needs = err->needs;
    memcpy(problem->error.need, err->need, sizeof err->need);
    return false;
}

bool api_fail_text(struct api_problem *problem, const struct api_text *text)
{
    if (text->state == API_TEXT_NO_MEMORY)
        return api_fail_memory(problem);
    return api_fail(problem, 413, "", "the text of the answer beside its tensors is over %zu bytes", text->max);
}

void api_problem_header(struct api_problem *problem, const char *name, const char *value)
{
    problem->header = name;
    int n = snprintf(problem->header_value, sizeof problem->header_value, "%s", value);
    char *comma = n >= (int)sizeof problem->header_value ? strrchr(problem->header_value, ',') : NULL;
    if (comma)
        *comma = '\0';
}

void api_pointer_push(char *pointer, const char *name, size_t n)
{
    size_t used = strlen(pointer);
    if (used + 1 < PE_POINTER_MAX)
        pointer[used++] = '/';
    for (size_t i = 0; i < n && used + 2 < PE_POINTER_MAX; i++) {
        if (name[i] == '~' || name[i] == '/') {
            pointer[used++] = '~';
            pointer[used++] = name[i] == '~' ? '0' : '1';
        } else {
            pointer[used++] = name[i];
        }
    }
    pointer[used] = '\0';
}

/* "a|b" as ["a","b"]. */
static void add_layer_types(struct api_text *text, const char *words)
{
    char word[PE_LAYER_TYPES_MAX];
    api_text_open(text, "layer_types", '[');
    for (size_t n; *words; words += n + (words[n] == '|')) {
        n = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, words);
        api_text_member(text, NULL, word);
    }
    api_text_close(text, ']');
}

/* A pointer names a member of the request, so transport errors have none. */
void api_problem_print(struct api_text *text, const struct api_problem *problem)
{
    api_text_put(text, "{\"type\":\"about:blank\"");
    api_text_member(text, "title", pe_text(api_status_title(problem->status)));
    api_text_count(text, "status", problem->status);
    api_text_member(text, "detail", problem->error.detail);
    if (problem->error.pointer[0])
        api_text_member(text, "pointer", problem->error.pointer);
    if (problem->error.layer_types[0])
        add_layer_types(text, problem->error.layer_types);
    if (problem->error.needs == PE_NEEDS)
        api_text_format(text, ",\"needs\":[[%lld,%lld]]", (long long)problem->error.need[0],
                        (long long)problem->error.need[1]);
    if (problem->error.needs == PE_NEEDS_UNKNOWN)
        api_text_put(text, ",\"needs\":null");
    api_text_member(text, "error", problem->error.detail);
    api_text_put(text, "}");
}
