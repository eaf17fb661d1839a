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

static bool put_parameter(struct pasting *p, const char *text, size_t n)
{
    static const char *const flags[][2] = {{"rope_frequency_base", "rope-freq-base"},
                                           {"rope_frequency_scale", "rope-freq-scale"}};
    size_t n_name = 0;
    while (n_name < n && !strchr(" \t", text[n_name]))
        n_name++;
    size_t at = n_name;
    while (at < n && strchr(" \t", text[at]))
        at++;
    if (!api_is_json_number(text + at, n - at))
        return pasted_skip(p, text, n);
    if (pasted_is(text, n_name, "num_ctx")) {
        p->length = strtoll(text + at, NULL, 10);
        return true;
    }
    for (size_t i = 0; i < 2; i++) {
        if (!pasted_is(text, n_name, flags[i][0]))
            continue;
        api_text_format(&p->json, "%s\"%s\":", p->json.n > 1 ? "," : "", flags[i][1]);
        api_text_add(&p->json, text + at, n - at);
        return true;
    }
    return pasted_skip(p, text, n);
}

bool pasted_modelfile_read(struct pasting *p)
{
    const char *text = p->text, *line;
    size_t n;
    p->kind = PASTED_WORDS;
    p->tool = "llama.cpp";
    api_text_put(&p->json, "{");
    while (pasted_line(&text, &line, &n)) {
        size_t n_rest;
        const char *from = rest_of(line, n, "FROM", &n_rest);
        if (from && n_rest < sizeof p->model) {
            memcpy(p->model, from, n_rest);
            p->model[n_rest] = '\0';
            continue;
        }
        const char *parameter = rest_of(line, n, "PARAMETER", &n_rest);
        if (parameter ? !put_parameter(p, parameter, n_rest) : !pasted_skip(p, line, n))
            return false;
    }
    api_text_put(&p->json, "}");
    if (p->json.n == 2 && !p->length && !*p->model)
        return pasted_fail(p, "the Modelfile says nothing about positions: neither FROM nor PARAMETER num_ctx");
    return pasted_done(p);
}
