/* The table of gguf-dump (gguf-py's script of that name):
 *
 *     4: STRING     |        1 | general.architecture = 'llama'
 *    25: [INT32]    |        4 | qwen2vl.rope.dimension_sections = [16, 24, 24, 0]
 *     3:         64 |    64,     1,     1,     1 | F32     | rope_freqs.weight
 */
#include "api/inputs/pasted/pasted.h"

/* A line as its columns; a key has three, a tensor four. */
struct row {
    const char *column[4];
    size_t n[4];
    size_t n_columns;
};

static void cut(const char *begin, const char *end, struct row *row)
{
    while (begin < end && *begin == ' ')
        begin++;
    while (end > begin && end[-1] == ' ')
        end--;
    row->column[row->n_columns] = begin;
    row->n[row->n_columns++] = (size_t)(end - begin);
}

/* Of a value only the first bars separate columns. */
static bool is_row(const char *line, size_t n, struct row *row)
{
    const char *end = line + n, *at = line;
    row->n_columns = 0;
    while (at < end && *at == ' ')
        at++;
    const char *digits = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    if (at == digits || at == end || *at++ != ':')
        return false;
    for (const char *bar; row->n_columns < 3 && (bar = memchr(at, '|', (size_t)(end - at))); at = bar + 1) {
        cut(at, bar, row);
        if (row->n_columns == 2 && row->column[0][0] > '9') /* a type: the rest is a key */
            break;
    }
    const char *rest = row->n_columns ? row->column[row->n_columns - 1] + row->n[row->n_columns - 1] : end;
    rest = memchr(rest, '|', (size_t)(end - rest));
    if (!rest)
        return false;
    cut(rest + 1, end, row);
    return row->n_columns >= 3;
}

static bool is_type(const char *word) { return *word == '[' || (*word >= 'A' && *word <= 'Z'); }

bool pasted_dump_looks_so(const char *text)
{
    const char *line;
    struct row row;
    size_t n;
    while (pasted_line(&text, &line, &n))
        if (is_row(line, n, &row) && row.n_columns == 3 && is_type(row.column[0]))
            return true;
    return false;
}

/* "KEY = VALUE"; strings are in single quotes. is_open: the text ends with the line, maybe inside of a word. */
static bool read_key(struct pasting *p, struct pasted_keys *keys, const struct row *row, bool is_open)
{
    const char *text = row->column[2], *end = text + row->n[2];
    const char *equals = pasted_find(text, row->n[2], " = "), *value = equals ? equals + 3 : NULL;
    size_t n = value ? (size_t)(end - value) : 0;
    bool is_short = value && row->column[0][0] == 'F' && (!memchr(value, '.', n) || value[n - 1] == '.');
    bool is_word = value && row->column[0][0] == 'S' && (n < 2 || value[n - 1] != '\'');
    if (is_open && (is_short || is_word))
        value = NULL;
    if (value && n >= 2 && *value == '\'' && value[n - 1] == '\'') {
        value++;
        n -= 2;
    }
    return pasted_key_add(p, keys, text, equals ? (size_t)(equals - text) : row->n[2], row->column[0], row->n[0], value,
                          n);
}

bool pasted_dump_read(struct pasting *p)
{
    struct pasted_keys *keys = api_arena_alloc(&p->request->arena, sizeof *keys);
    const char *text = p->text, *line;
    struct row row;
    size_t n;
    if (!keys)
        return api_fail_memory(p->problem);
    *keys = (struct pasted_keys){.n = 0};
    while (pasted_line(&text, &line, &n)) {
        bool is_read = is_row(line, n, &row), is_key = is_read && is_type(row.column[0]);
        if (is_key && !read_key(p, keys, &row, !*text && text[-1] != '\n'))
            return false;
        if (is_read && !is_key && row.n_columns == 4)
            pasted_key_tensor(keys, row.column[3], row.n[3]);
        if (!is_read && !pasted_skip(p, line, n))
            return false;
    }
    return pasted_keys_put(p, keys);
}
