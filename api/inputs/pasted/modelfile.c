/* A Modelfile of ollama: FROM a model, PARAMETER name value. About positions are num_ctx, and in older versions
 * rope_frequency_base and rope_frequency_scale, which are llama.cpp's flags. */
#include "api/inputs/pasted/pasted.h"

#include <stdlib.h>
#include <strings.h>

/* The rest of a line that begins with the instruction; NULL: it does not. */
static const char *rest_of(const char *line, size_t n, const char *instruction, size_t *n_rest)
{
    size_t length = strlen(instruction);
    if (n <= length || strncasecmp(line, instruction, length) != 0 || !strchr(" \t", line[length]))
        return NULL;
    while (length < n && strchr(" \t", line[length]))
        length++;
    *n_rest = n - length;
    return line + length;
}

/* A FROM or PARAMETER at the beginning: those of a Dockerfile have no PARAMETER, and name an image; "from x import y"
 * is Python. */
bool pasted_modelfile_looks_so(const char *text)
{
    const char *line;
    size_t n, n_rest = 0;
    bool has_parameter = false, has_from = false, is_docker = false;
    while (pasted_line(&text, &line, &n)) {
        const char *from = rest_of(line, n, "FROM", &n_rest);
        has_from |= from && !memchr(from, ' ', n_rest);
        has_parameter |= rest_of(line, n, "PARAMETER", &n_rest) != NULL;
        is_docker |= rest_of(line, n, "RUN", &n_rest) || rest_of(line, n, "ENTRYPOINT", &n_rest);
    }
    return has_parameter || (has_from && !is_docker);
}

/* A parameter that is there with another value before. */
static bool check_twice(struct pasting *p, const char *name, const char **before, const char *value, size_t n)
{
    bool is_other = *before && !pasted_is(value, n, *before);
    if (is_other)
        return pasted_fail(p, "the Modelfile has %s twice: as %.60s and as %.*s; give one", name, *before,
                           (int)(n < 60 ? n : 60), value);
    *before = api_arena_string(&p->request->arena, value, n);
    return *before || api_fail_memory(p->problem);
}

enum { BASE, SCALE, CONTEXT, N_PARAMETERS };
static const char *const names[] = {"rope_frequency_base", "rope_frequency_scale", "num_ctx"};

static bool put_parameter(struct pasting *p, const char *values[N_PARAMETERS], const char *text, size_t n)
{
    size_t n_name = 0, which = 0;
    while (n_name < n && !strchr(" \t", text[n_name]))
        n_name++;
    size_t at = n_name;
    while (at < n && strchr(" \t", text[at]))
        at++;
    while (which < N_PARAMETERS && !pasted_is(text, n_name, names[which]))
        which++;
    if (which == N_PARAMETERS)
        return pasted_find(text, n_name, "rope") || pasted_find(text, n_name, "yarn") ||
                       pasted_find(text, n_name, "ctx")
                   ? pasted_fail(p,
                                 "PARAMETER %.*s is not known here; about positions are rope_frequency_base, "
                                 "rope_frequency_scale and num_ctx",
                                 (int)(n_name < 60 ? n_name : 60), text)
                   : pasted_skip(p, text, n);
    if (!api_is_json_number(text + at, n - at) || (which == CONTEXT && strspn(text + at, "0123456789") < n - at))
        return pasted_fail(p, "PARAMETER %s is %.*s, which is no number", names[which],
                           (int)(n - at < 60 ? n - at : 60), text + at);
    return check_twice(p, names[which], &values[which], text + at, n - at);
}

static bool read_line(struct pasting *p, const char *values[N_PARAMETERS], const char *line, size_t n)
{
    size_t n_rest;
    const char *from = rest_of(line, n, "FROM", &n_rest);
    if (from) {
        if (n_rest >= sizeof p->model)
            return pasted_fail(p, "the name of the model has %zu bytes; allowed: at most %zu", n_rest,
                               sizeof p->model - 1);
        if (*p->model && !pasted_is(from, n_rest, p->model))
            return pasted_fail(p, "the Modelfile has %s twice: as %.60s and as %.*s; give one", "FROM", p->model,
                               (int)(n_rest < 60 ? n_rest : 60), from);
        memcpy(p->model, from, n_rest);
        p->model[n_rest] = '\0';
        return true;
    }
    const char *parameter = rest_of(line, n, "PARAMETER", &n_rest);
    return parameter ? put_parameter(p, values, parameter, n_rest) : pasted_skip(p, line, n);
}

bool pasted_modelfile_read(struct pasting *p)
{
    const char *text = p->text, *line, *values[N_PARAMETERS] = {NULL};
    size_t n;
    bool is_inside = false; /* of a text in three quotes */
    p->kind = PASTED_WORDS;
    p->tool = "llama.cpp";
    while (pasted_line(&text, &line, &n)) {
        bool was_inside = is_inside;
        /* The last text in three quotes that the line opens goes on behind it. */
        for (size_t i = 0; i + 3 <= n; i++)
            if (memcmp(line + i, "\"\"\"", 3) == 0) {
                is_inside = !is_inside;
                i += 2;
            }
        if (was_inside ? !pasted_skip(p, line, n) : !read_line(p, values, line, n))
            return false;
    }
    api_text_put(&p->json, "{");
    if (values[BASE])
        api_text_format(&p->json, "\"rope-freq-base\":%s", values[BASE]);
    if (values[SCALE])
        api_text_format(&p->json, "%s\"rope-freq-scale\":%s", values[BASE] ? "," : "", values[SCALE]);
    api_text_put(&p->json, "}");
    p->length = values[CONTEXT] ? strtoll(values[CONTEXT], NULL, 10) : 0;
    if (p->json.n == 2 && !p->length && !*p->model)
        return pasted_fail(p, "the Modelfile has nothing about positions: neither FROM nor PARAMETER num_ctx");
    return pasted_done(p);
}
