/* The words of a command line become a request: options its query, files the parts of its body. What they mean, api/
 * decides; here is only what a shell has beside a URL. */
#include "server/command/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BOUNDARY "posenc-part-7f1d0c5b2e9a4836"

int trouble(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("posenc: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return TROUBLE;
}

/* ---- Commands ---- */

const struct command commands[] = {
    {"encode", NULL, "the encoding itself: tables, cosines and sines, biases", ENDPOINT, PICTURE},
    {"rotate", NULL, "queries and keys, rotated", ENDPOINT, PICTURE},
    {"attention", NULL, "scores, probabilities or output of attention under a scheme", ENDPOINT, PICTURE},
    {"analyze", NULL, "properties of encodings as numbers", ENDPOINT, EITHER},
    {"diagnose", NULL, "the configuration that gives a tensor", ENDPOINT, SENTENCES},
    {"check", NULL, "whether a tensor is what it is believed to be", ENDPOINT, SENTENCES},
    {"explain", "FILE|DIR|PRESET|TEXT", "what the configuration of a model means, for each tool that reads it", MODEL,
     SENTENCES},
    {"translate", "FILE|DIR|PRESET|TEXT", "the same positions in the words of other tools", MODEL, SENTENCES},
    {"golden", NULL, "a few exact tensors of a configuration, for the tests of a port", ENDPOINT, AS_JSON},
    {"derive", NULL, "why a number is what it is: the steps of its formula, and what float32 makes of each", ENDPOINT,
     SENTENCES},
    {"schemes", "[NAME]", "every scheme, or the fields of one", SCHEMES, AS_JSON},
    {"presets", "[WORD …]", "models by name, those with all these words", PRESETS, SENTENCES},
    {"completion", "bash|zsh|fish", "a script that completes commands in this shell", COMPLETION, AS_JSON},
    {.name = NULL},
};
const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i].name; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* ---- Bytes that grow ---- */

static void add_n(struct bytes *b, const char *text, size_t n)
{
    if (b->n + n + 1 > b->room) {
        b->room = 2 * (b->n + n + 1);
        b->p = realloc(b->p, b->room);
        if (!b->p)
            exit(trouble("out of memory"));
    }
    if (n)
        memcpy(b->p + b->n, text, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void bytes_add(struct bytes *b, const char *text) { add_n(b, text, strlen(text)); }

bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Of a model in a .gguf file, which may have hundreds of GB, the beginning is enough. */
static size_t bytes_wanted(const char *path) { return ends_with(path, ".gguf") ? 64 << 20 : SIZE_MAX; }

/* "-" is standard input. */
static int read_file(const char *path, struct bytes *b)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char part[1 << 16];
    size_t n, begin = b->n, most = bytes_wanted(path);
    if (!in)
        return trouble("cannot read %s: %s", path, strerror(errno));
    while (b->n - begin < most && (n = fread(part, 1, sizeof part, in)) > 0)
        add_n(b, part, n);
    int status = ferror(in) ? trouble("cannot read %s: %s", path, strerror(errno)) : DONE;
    if (in != stdin)
        fclose(in);
    return status;
}

/* ---- The query ---- */

static void add_encoded(struct bytes *b, const char *text)
{
    char code[4];
    for (; *text; text++) {
        snprintf(code, sizeof code, "%%%02X", (unsigned char)*text);
        bytes_add(b, code);
    }
}

void line_add(struct bytes *query, const char *name, const char *value)
{
    bytes_add(query, query->n ? "&" : "");
    add_encoded(query, name);
    bytes_add(query, "=");
    add_encoded(query, value);
}

bool line_has(const struct line *line, const char *name)
{
    struct bytes pair = {NULL, 0, 0};
    add_encoded(&pair, name);
    bytes_add(&pair, "=");
    bool is_there = line->query.p && strstr(line->query.p, pair.p);
    free(pair.p);
    is_there =
        is_there || (line->outputs && strcmp(name, "outputs") == 0) || (line->format && strcmp(name, "format") == 0);
    for (size_t i = 0; i < line->n_files && !is_there; i++)
        is_there = strcmp(line->files[i].name, name) == 0;
    return is_there;
}

void line_to_field(char *name)
{
    for (; *name; name++)
        if (*name == '-')
            *name = '_';
}

/* A word is quoted; what JSON reads itself (a number, true, a list) is not. */
static bool is_json(const char *text)
{
    char *end;
    if (strchr("[{\"", *text) || strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || strcmp(text, "null") == 0)
        return *text;
    if (!strchr("-0123456789", *text) || !*text)
        return false;
    strtod(text, &end);
    return !*end && !strpbrk(text, "xXpPnN");
}

static void add_json_text(struct bytes *b, const char *text)
{
    char code[8];
    bytes_add(b, "\"");
    for (; *text; text++) {
        snprintf(code, sizeof code,
                 (unsigned char)*text < 0x20 ? "\\u%04x"
                 : strchr("\"\\", *text)     ? "\\%c"
                                             : "%c",
                 (unsigned char)*text);
        bytes_add(b, code);
    }
    bytes_add(b, "\"");
}

static size_t top_of(const char *path) { return strcspn(path, "."); }

bool line_has_members(const struct line *line, const char *object)
{
    for (size_t i = 0; i < line->n_members; i++) {
        const char *path = line->members[i][0];
        if (path && top_of(path) == strlen(object) && strncmp(path, object, strlen(object)) == 0)
            return true;
    }
    return false;
}

/* The members of one object, from the first of them on. */
static void add_object(struct line *line, size_t first)
{
    struct bytes object = {NULL, 0, 0};
    const char *path = line->members[first][0];
    size_t n = top_of(path);
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)n, path);
    for (size_t i = first; i < line->n_members; i++) {
        const char *other = line->members[i][0], *value = line->members[i][1];
        if (!other || top_of(other) != n || memcmp(other, path, n) != 0)
            continue;
        bytes_add(&object, object.n ? "," : "{");
        add_json_text(&object, other + n + 1);
        bytes_add(&object, ":");
        if (is_json(value))
            bytes_add(&object, value);
        else
            add_json_text(&object, value);
        if (i > first)
            line->members[i][0] = NULL;
    }
    bytes_add(&object, "}");
    line_add(&line->query, name, object.p);
    free(object.p);
}

/* ---- Options ---- */

int line_add_model(struct line *line, const char *path)
{
    struct stat about;
    struct bytes content = {NULL, 0, 0}, inside = {NULL, 0, 0};
    bytes_add(&inside, path);
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        bytes_add(&inside, "/config.json");
    int status = read_file(inside.p, &content);
    if (!status && content.n && strlen(content.p) != content.n)
        status = trouble("cannot read %s: it has a byte 0, so it is no JSON", inside.p);
    if (!status)
        line_add(&line->query, "hf_config", content.n ? content.p : "");
    free(content.p);
    free(inside.p);
    return status;
}

int line_add_file(struct line *line, const char *name, const char *path)
{
    if (line->n_files == LINE_FILES_MAX)
        return trouble("more than %d files", LINE_FILES_MAX);
    line->files[line->n_files].name = name;
    line->files[line->n_files++].path = path;
    return DONE;
}

static int add_field(struct line *line, char *name, const char *value)
{
    line_to_field(name);
    if (ends_with(value, ".npy") || ends_with(value, ".gguf"))
        return line_add_file(line, name, value);
    if (strchr(name, '.')) {
        if (line->n_members == LINE_WORDS_MAX)
            return trouble("more than %d members", LINE_WORDS_MAX);
        line->members[line->n_members][0] = name;
        line->members[line->n_members++][1] = value;
    } else if (strcmp(name, "outputs") == 0 && !line->outputs)
        line->outputs = value;
    else if (strcmp(name, "format") == 0 && !line->format)
        line->format = value;
    else
        line_add(&line->query, name, value);
    return DONE;
}

static int add_set(struct line *line, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals)
        return trouble("--set needs NAME=JSON; found: %s", text);
    *equals = '\0';
    line_to_field(text);
    line_add(&line->query, text, equals + 1);
    return DONE;
}

static int add_option(struct line *line, char *name, char *value)
{
    if (strcmp(name, "output") == 0)
        line->output = strcmp(value, "-") == 0 ? NULL : value;
    else if (strcmp(name, "request") == 0)
        line->request = value;
    else if (strcmp(name, "tensors") == 0)
        line->tensors = value;
    else if (strcmp(name, "hf") == 0)
        return line_add_model(line, value);
    else if (strcmp(name, "set") == 0)
        return add_set(line, value);
    else
        return add_field(line, name, value);
    return DONE;
}

/* An option, whose value may be in the same word or in the next. */
static int read_option(struct line *line, int n, char **words, int *i)
{
    static char output[] = "output";
    char *word = words[*i], *value = strchr(word, '=');
    bool is_short = strcmp(word, "-o") == 0;
    if (!is_short && word[1] != '-')
        return trouble("unknown option %s; options begin with --, but for -o FILE", word);
    if (strcmp(word, "--help") == 0) {
        line->wants_help = true;
        return DONE;
    }
    if (value)
        *value++ = '\0';
    else if (*i + 1 < n)
        value = words[++*i];
    else
        return trouble("%s needs a value", word);
    return add_option(line, is_short ? output : word + 2, value);
}

int line_read(struct line *line, int n, char **words)
{
    bool is_over = false;
    for (int i = 0; i < n; i++) {
        int status = DONE;
        if (!is_over && strcmp(words[i], "--") == 0)
            is_over = true;
        else if (!is_over && words[i][0] == '-' && words[i][1])
            status = read_option(line, n, words, &i);
        else if (line->n_operands == LINE_WORDS_MAX)
            status = trouble("too many words");
        else
            line->operands[line->n_operands++] = words[i];
        if (status)
            return status;
    }
    for (size_t i = 0; i < line->n_members; i++)
        if (line->members[i][0])
            add_object(line, i);
    return DONE;
}

/* ---- The body ---- */

static int add_part(struct bytes *body, const char *name, const char *path)
{
    bytes_add(body, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"");
    bytes_add(body, name);
    bytes_add(body, "\"\r\n\r\n");
    int status = read_file(path, body);
    bytes_add(body, "\r\n");
    return status;
}

int line_body(const struct line *line, struct bytes *body, const char **type)
{
    if (line->tensors && (line->n_files || line->request))
        return trouble("--tensors FILE is the whole body of a request; give --request and single files without it");
    if (line->tensors) {
        *type = "application/octet-stream";
        return read_file(line->tensors, body);
    }
    if (!line->n_files && !line->request)
        return DONE;
    int status = line->request ? add_part(body, "request", line->request) : DONE;
    for (size_t i = 0; i < line->n_files && !status; i++)
        status = add_part(body, line->files[i].name, line->files[i].path);
    bytes_add(body, "--" BOUNDARY "--\r\n");
    *type = "multipart/form-data; boundary=" BOUNDARY;
    return status;
}
