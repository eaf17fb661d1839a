/* The name of a model and nothing else: "Qwen/Qwen3-8B", "qwen3:8b", "Qwen3-8B-Q4_K_M.gguf". */
#include "api/inputs/pasted/pasted.h"

#include <stdio.h>

/* Without a pair of quotes around it. */
static const char *unquoted(const char *line, size_t *n)
{
    bool is_quoted = *n > 2 && strchr("\"'`", *line) && line[*n - 1] == *line;
    *n -= is_quoted ? 2 : 0;
    return line + is_quoted;
}

/* One word of the signs of names; with one that is in no plain word, since "hello" is no name of a model. */
bool pasted_name_looks_so(const char *text)
{
    const char *line;
    size_t n = 0, n_lines = 0;
    bool has_letter = false, has_sign = false;
    while (pasted_line(&text, &line, &n)) {
        n_lines += n > 0;
        line = unquoted(line, &n);
        for (size_t i = 0; i < n; i++) {
            bool is_letter = (line[i] | 32) >= 'a' && (line[i] | 32) <= 'z';
            if (!pasted_is_of_name(line[i]) && !strchr("/:\\", line[i]))
                return false;
            has_letter |= is_letter;
            has_sign |= !is_letter;
        }
    }
    return n_lines == 1 && has_letter && has_sign;
}

bool pasted_name_read(struct pasting *p)
{
    const char *text = p->text, *line;
    size_t n;
    p->kind = PASTED_NAME;
    while (pasted_line(&text, &line, &n)) {
        line = unquoted(line, &n);
        if (n >= sizeof p->model)
            return pasted_fail(p, "the name of the model has %zu bytes; allowed: at most %zu", n, sizeof p->model - 1);
        if (n)
            snprintf(p->model, sizeof p->model, "%.*s", (int)n, line);
    }
    return true;
}
