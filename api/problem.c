/* Errors as values of the language, and their form on the wire (RFC 9457). */
#include "api/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool api_fail(struct api_problem *problem, int status, const char *pointer, const char *format, ...)
{
    struct pe_error error = {.status = PE_INVALID};
    va_list args;
    va_start(args, format);
    vsnprintf(error.detail, sizeof error.detail, format, args);
    va_end(args);
    snprintf(error.pointer, sizeof error.pointer, "%s", pointer);
    *problem = (struct api_problem){.status = status, .error = error};
    return false;
}

bool api_fail_memory(struct api_problem *problem)
{
    return api_fail(problem, 503, "", "not enough memory for this request; try again later");
}

bool api_fail_core(struct api_problem *problem, const struct pe_error *err)
{
    if (err->status == PE_NO_MEMORY)
        return api_fail_memory(problem);
    if (err->status == PE_CANCELLED)
        return api_fail(problem, 503, "", "%s", err->detail);
    return api_fail(problem, err->status == PE_TOO_LARGE ? 413 : 422, err->pointer, "%s", err->detail);
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

/* The titles of RFC 9110 and RFC 6585. */
static const struct {
    int status;
    const char *title;
} titles[] = {
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

const char *api_status_title(int status)
{
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (titles[i].status == status)
            return titles[i].title;
    return status < 500 ? "Client Error" : "Server Error";
}

static void add_member(struct api_text *text, const char *name, const char *value)
{
    api_text_format(text, ",\"%s\":", name);
    api_text_string(text, value);
}

/* A pointer names a member of the request, so errors of transport have none. */
void api_problem_print(struct api_text *text, const struct api_problem *problem)
{
    api_text_put(text, "{\"type\":\"about:blank\"");
    add_member(text, "title", api_status_title(problem->status));
    api_text_format(text, ",\"status\":%d", problem->status);
    add_member(text, "detail", problem->error.detail);
    if (problem->error.pointer[0])
        add_member(text, "pointer", problem->error.pointer);
    add_member(text, "error", problem->error.detail);
    api_text_put(text, "}");
}
