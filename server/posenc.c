/* The command posenc: asks api/ in process, as a request over HTTP would, without a server and without a socket.
 *
 * Options become the query of the request and files the parts of a multipart body, both of which api/ reads already; so
 * there is one reader of fields, one set of refusals, and the bytes of an answer are those of the service. What is
 * printed for a person follows from the rows of core/ and api/. */
#include "api/api.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Exit status, as diff(1) has it. */
enum { DONE, DIFFERS, TROUBLE };

enum { FILES_MAX = 64, MEMBERS_MAX = 64 };

static const char boundary[] = "posenc-part-7f1d0c5b2e9a4836";

static int trouble(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int trouble(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("posenc: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return TROUBLE;
}

/* ---- Bytes that grow ---- */

struct bytes {
    char *p;
    size_t n, room;
};

/* Without memory the command ends: nothing has been written yet. */
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

static void add(struct bytes *b, const char *text) { add_n(b, text, strlen(text)); }

/* Of a query. */
static void add_encoded(struct bytes *b, const char *text)
{
    char code[4];
    for (; *text; text++) {
        snprintf(code, sizeof code, "%%%02X", (unsigned char)*text);
        add(b, code);
    }
}

static void add_pair(struct bytes *query, const char *name, const char *value)
{
    add(query, query->n ? "&" : "");
    add_encoded(query, name);
    add(query, "=");
    add_encoded(query, value);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Of a model in a .gguf file, which may have hundreds of GB, the beginning is enough. */
static size_t bytes_wanted(const char *path) { return ends_with(path, ".gguf") ? 64 << 20 : SIZE_MAX; }

/* False: it cannot be read, and errno has the reason. "-" is standard input. */
static bool read_file(const char *path, struct bytes *b)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char part[1 << 16];
    size_t n, most = bytes_wanted(path);
    if (!in)
        return false;
    while (b->n < most && (n = fread(part, 1, sizeof part, in)) > 0)
        add_n(b, part, n);
    bool is_read = !ferror(in);
    if (in != stdin)
        fclose(in);
    return is_read;
}

/* ---- Commands ---- */

struct command {
    const char *name, *operand; /* operand: what may stand beside its options */
    const char *does;
    enum {
        ENDPOINT, /* /NAME with the options as its fields */
        EXPLAIN,  /* the same, of the model that the operand names */
        SCHEMES,
        PRESETS,
        COMPLETION
    } kind;
    enum { AS_JSON, SENTENCES, PICTURE } shows; /* on a terminal */
};

static const struct command commands[] = {
    {"encode", NULL, "the encoding itself: tables, cosines and sines, biases", ENDPOINT, PICTURE},
    {"rotate", NULL, "queries and keys, rotated", ENDPOINT, PICTURE},
    {"attention", NULL, "scores, probabilities or output of attention under a scheme", ENDPOINT, PICTURE},
    {"analyze", NULL, "properties of encodings as numbers", ENDPOINT, AS_JSON},
    {"diagnose", NULL, "the configuration that gives a tensor", ENDPOINT, SENTENCES},
    {"check", NULL, "whether a tensor is what it is believed to be", ENDPOINT, SENTENCES},
    {"explain", "FILE|DIR|PRESET", "what the configuration of a model means, for each tool that reads it", EXPLAIN,
     SENTENCES},
    {"golden", NULL, "a few exact tensors of a configuration, for the tests of a port", ENDPOINT, AS_JSON},
    {"schemes", "[NAME]", "every scheme, or the fields of one", SCHEMES, AS_JSON},
    {"presets", "[WORD …]", "models by name, those with all these words", PRESETS, AS_JSON},
    {"completion", "bash|zsh|fish", "a script that completes commands in this shell", COMPLETION, AS_JSON},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* Options of the command itself; every other is a field. */
static const struct own_option {
    const char *name, *value, *does;
} own_options[] = {
    {"FIELD", "VALUE",
     "a field of the request, as in the query of the service: --head-dim 128; --scaling.factor 8 is a "
     "member of an object; a value that ends in .npy is the file of a tensor"},
    {"set", "NAME=JSON", "a field whose value is JSON"},
    {"tensors", "FILE", "all tensors of a .npz, .safetensors or .npy file, by their names"},
    {"request", "FILE", "a request as JSON, to which the options add; - is standard input"},
    {"hf", "DIR|FILE", "the configuration of a model, hf_config: config.json or the folder that has it"},
    {"output", "FILE",
     "where the answer goes; its ending is the format: .npy .npz .safetensors .json .raw .png .txt. "
     "Also -o FILE"},
    {"help", "", "this text, or after a command its fields"},
    {"version", "", "the version"},
    {"print-man", "", "the manual page posenc(1)"},
};
enum { N_OWN = sizeof own_options / sizeof *own_options };

/* ---- The request ---- */

struct file {
    const char *name; /* of its field */
    const char *path;
};

struct line {
    const struct command *command;
    struct bytes query;
    struct file files[FILES_MAX];
    size_t n_files;
    const char *members[MEMBERS_MAX][2]; /* "scaling.factor" and its value */
    size_t n_members;
    const char *tensors, *request, *output;
    const char *operands[MEMBERS_MAX];
    size_t n_operands;
    bool has_format, wants_help;
};

/* "head-dim" is head_dim. */
static void to_field(char *name)
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
    add(b, "\"");
    for (; *text; text++) {
        snprintf(code, sizeof code,
                 (unsigned char)*text < 0x20 ? "\\u%04x"
                 : strchr("\"\\", *text)     ? "\\%c"
                                             : "%c",
                 (unsigned char)*text);
        add(b, code);
    }
    add(b, "\"");
}

static size_t top_of(const char *path) { return strcspn(path, "."); }

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
        add(&object, object.n ? "," : "{");
        add_json_text(&object, other + n + 1);
        add(&object, ":");
        if (is_json(value))
            add(&object, value);
        else
            add_json_text(&object, value);
        if (i > first)
            line->members[i][0] = NULL;
    }
    add(&object, "}");
    add_pair(&line->query, name, object.p);
    free(object.p);
}

static int add_hf(struct line *line, const char *path)
{
    struct stat about;
    struct bytes content = {NULL, 0, 0}, inside = {NULL, 0, 0};
    add(&inside, path);
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        add(&inside, "/config.json");
    bool is_read = read_file(inside.p, &content);
    int status = is_read ? DONE : trouble("cannot read %s: %s", inside.p, strerror(errno));
    if (is_read)
        add_pair(&line->query, "hf_config", content.n ? content.p : "");
    free(content.p);
    free(inside.p);
    return status;
}

static int add_field(struct line *line, char *name, const char *value)
{
    to_field(name);
    line->has_format = line->has_format || strcmp(name, "format") == 0;
    if (ends_with(value, ".npy") || ends_with(value, ".gguf")) {
        if (line->n_files == FILES_MAX)
            return trouble("more than %d files", FILES_MAX);
        line->files[line->n_files++] = (struct file){name, value};
    } else if (strchr(name, '.')) {
        if (line->n_members == MEMBERS_MAX)
            return trouble("more than %d members", MEMBERS_MAX);
        line->members[line->n_members][0] = name;
        line->members[line->n_members++][1] = value;
    } else
        add_pair(&line->query, name, value);
    return DONE;
}

static int add_set(struct line *line, char *text)
{
    char *equals = strchr(text, '=');
    if (!equals)
        return trouble("--set needs NAME=JSON; found: %s", text);
    *equals = '\0';
    to_field(text);
    add_pair(&line->query, text, equals + 1);
    return DONE;
}

static int add_option(struct line *line, char *name, char *value)
{
    if (strcmp(name, "output") == 0)
        line->output = value;
    else if (strcmp(name, "request") == 0)
        line->request = value;
    else if (strcmp(name, "tensors") == 0)
        line->tensors = value;
    else if (strcmp(name, "hf") == 0)
        return add_hf(line, value);
    else if (strcmp(name, "set") == 0)
        return add_set(line, value);
    else
        return add_field(line, name, value);
    return DONE;
}

/* ---- The words of the command line ---- */

static int read_words(struct line *line, int n, char **words)
{
    bool is_over = false;
    for (int i = 0; i < n; i++) {
        char *word = words[i];
        if (is_over || word[0] != '-' || !word[1]) {
            if (line->n_operands == MEMBERS_MAX)
                return trouble("too many words");
            line->operands[line->n_operands++] = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            is_over = true;
            continue;
        }
        char *name = strcmp(word, "-o") == 0 ? (char[]){"output"} : word + 2, *value = strchr(word, '=');
        if (strcmp(word, "-o") != 0 && word[1] != '-')
            return trouble("unknown option %s; options begin with --, but for -o FILE", word);
        if (strcmp(word, "--help") == 0) {
            line->wants_help = true;
            continue;
        }
        if (value)
            *value++ = '\0';
        else if (i + 1 < n)
            value = words[++i];
        else
            return trouble("%s needs a value", word);
        int status = add_option(line, name, value);
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
    struct bytes content = {NULL, 0, 0};
    if (!read_file(path, &content))
        return trouble("cannot read %s: %s", path, strerror(errno));
    add(body, "--");
    add(body, boundary);
    add(body, "\r\nContent-Disposition: form-data; name=\"");
    add(body, name);
    add(body, "\"\r\n\r\n");
    add_n(body, content.p, content.n);
    add(body, "\r\n");
    free(content.p);
    return DONE;
}

static int make_body(const struct line *line, struct bytes *body, const char **type)
{
    int status = DONE;
    if (line->tensors && (line->n_files || line->request))
        return trouble("--tensors FILE is the whole body of a request; give --request and single files without it");
    if (line->tensors) {
        *type = "application/octet-stream";
        return read_file(line->tensors, body) ? DONE : trouble("cannot read %s: %s", line->tensors, strerror(errno));
    }
    if (!line->n_files && !line->request)
        return DONE;
    if (!status && line->request)
        status = add_part(body, "request", line->request);
    for (size_t i = 0; i < line->n_files && !status; i++)
        status = add_part(body, line->files[i].name, line->files[i].path);
    add(body, "--");
    add(body, boundary);
    add(body, "--\r\n");
    *type = "multipart/form-data; boundary=posenc-part-7f1d0c5b2e9a4836";
    return status;
}

/* ---- Where the answer goes ---- */

static bool is_plain(void)
{
    const char *terminal = getenv("TERM");
    return getenv("NO_COLOR") || (terminal && strcmp(terminal, "dumb") == 0);
}

static unsigned columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 8 ? size.ws_col : 80;
}

/* The language of texts, from the locale's environment. */
static const char *language(void)
{
    const char *names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strncmp(value, "zh", 2) == 0 ? "zh" : "en";
    }
    return "en";
}

static enum pe_lang spoken(void) { return strcmp(language(), "zh") == 0 ? PE_ZH : PE_EN; }

static int choose_format(struct line *line)
{
    static const char *const endings[][2] = {{".npy", "npy"},   {".npz", "npz"}, {".safetensors", "safetensors"},
                                             {".json", "json"}, {".raw", "raw"}, {".png", "png"},
                                             {".txt", "text"}};
    if (line->has_format)
        return DONE;
    for (size_t i = 0; line->output && i < sizeof endings / sizeof *endings; i++)
        if (ends_with(line->output, endings[i][0])) {
            add_pair(&line->query, "format", endings[i][1]);
            return DONE;
        }
    if (line->output || line->command->shows == AS_JSON || !isatty(STDOUT_FILENO))
        return DONE;
    char number[16];
    snprintf(number, sizeof number, "%u", columns());
    add_pair(&line->query, "format", "text");
    if (line->command->shows == SENTENCES)
        return DONE;
    add_pair(&line->query, "columns", number);
    if (is_plain())
        add_pair(&line->query, "ascii", "true");
    return DONE;
}

/* Writes all pieces. False: errno has the reason. */
static bool write_pieces(const struct api_reply *reply, FILE *out)
{
    char *piece = aligned_alloc(64, (reply->body->piece_max + 64) / 64 * 64);
    bool is_written = piece;
    for (uint64_t i = 0; is_written && i < reply->body->n_pieces; i++) {
        size_t n = api_reply_piece(reply, i, piece);
        if (n == 0 && reply->body->n_pieces == UINT64_MAX)
            break;
        is_written = fwrite(piece, 1, n, out) == n;
    }
    free(piece);
    return is_written && fflush(out) == 0;
}

/* The file appears whole or not at all. */
static int write_file(const struct api_reply *reply, const char *path)
{
    struct bytes beside = {NULL, 0, 0};
    add(&beside, path);
    add(&beside, ".XXXXXX");
    int fd = mkstemp(beside.p);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "wb");
    mode_t mask = umask(0);
    umask(mask);
    bool is_written = out && write_pieces(reply, out) && fchmod(fd, 0666 & ~mask) == 0;
    if (out)
        is_written = fclose(out) == 0 && is_written;
    is_written = is_written && rename(beside.p, path) == 0;
    int status = is_written ? DONE : trouble("cannot write %s: %s", path, strerror(errno));
    if (!is_written && fd >= 0)
        unlink(beside.p);
    free(beside.p);
    return status;
}

/* A reader that has gone ends the command without a word. */
static int write_out(const struct api_reply *reply)
{
    bool is_written = write_pieces(reply, stdout);
    if (is_written && isatty(STDOUT_FILENO) && strcmp(reply->content_type, "application/json") == 0)
        putchar('\n');
    return is_written || errno == EPIPE ? DONE : trouble("cannot write: %s", strerror(errno));
}

static const char *header_of(const struct api_reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->n_headers; i++)
        if (strcmp(reply->headers[i].name, name) == 0)
            return reply->headers[i].value;
    return NULL;
}

/* A check has failed if the belief does not fit; a diagnosis, if it has no explanation. */
static int verdict(const struct line *line, const struct api_reply *reply)
{
    const char *fits = header_of(reply, "Posenc-Fits");
    if (!fits || strcmp(fits, "?1") == 0)
        return DONE;
    if (strcmp(line->command->name, "check") == 0)
        return DIFFERS;
    const char json[] = "{\"explained\":true", text[] = "explained:", *body = reply->body->bytes;
    bool is_explained =
        body && (strncmp(body, json, sizeof json - 1) == 0 || strncmp(body, text, sizeof text - 1) == 0);
    return is_explained ? DONE : DIFFERS;
}

/* ---- Asking ---- */

/* What the service has by default, without what several clients share. */
static const struct api_host host = {.max_body = UINT64_C(1) << 40,
                                     .max_answer = UINT64_C(1) << 40,
                                     .max_pictures = UINT64_C(1) << 30,
                                     .max_work = UINT64_C(10000000000000),
                                     .max_analysis = UINT64_C(1000000000000),
                                     .commit = ""};

static int ask(const struct line *line, const char *method, const char *path)
{
    struct bytes body = {NULL, 0, 0};
    const char *type = NULL;
    int status = make_body(line, &body, &type);
    if (status) {
        free(body.p);
        return status;
    }
    struct api_call call = {.access = API_ACCESS_OPEN,
                            .method = method,
                            .path = path,
                            .query = line->query.p,
                            .content_type = type,
                            .accept_language = language(),
                            .body = body.p,
                            .body_bytes = body.n,
                            .body_is_ours = true};
    struct api_reply *reply = api_head(&host, &call, body.n);
    reply = reply ? reply : api_answer(&host, &call);
    if (reply->status >= 400) {
        char sentence[PE_DETAIL_MAX + PE_POINTER_MAX + 16];
        api_refusal_print(reply, sentence, sizeof sentence);
        status = trouble("%s", sentence);
    } else {
        status = line->output ? write_file(reply, line->output) : write_out(reply);
        status = status ? status : verdict(line, reply);
    }
    api_reply_free(reply);
    free(body.p);
    return status;
}

/* ---- What a person reads: tables made from the rows ---- */

static const char *type_of(const struct pe_param *row)
{
    static const char *const names[] = {
        [PE_T_INT] = "integer",   [PE_T_REAL] = "number",   [PE_T_BOOL] = "true|false", [PE_T_WORD] = "word",
        [PE_T_REALS] = "numbers", [PE_T_OBJECT] = "object", [PE_T_VALUE] = "value"};
    return names[row->type];
}

static void print_flag(const char *prefix, const char *name)
{
    printf("  --%s", prefix);
    for (; *name; name++)
        putchar(*name == '_' ? '-' : *name);
}

static void print_rows(const char *prefix, const struct pe_param *rows)
{
    for (; rows && rows->name; rows++) {
        if (rows->type == PE_T_OBJECT && rows->fields) {
            char inside[128];
            snprintf(inside, sizeof inside, "%s%s.", prefix, rows->name);
            print_rows(inside, rows->fields);
            continue;
        }
        print_flag(prefix, rows->name);
        printf(" %s\n      %s", type_of(rows), pe_summary_in(spoken(), &rows->about));
        for (size_t i = 0; rows->words && rows->words[i]; i++)
            printf("%s%s", i ? ", " : ": ", rows->words[i]);
        printf("\n");
    }
}

static void print_inputs(const struct pe_input_row *rows)
{
    for (; rows && rows->name; rows++) {
        print_flag("", rows->name);
        printf(" FILE.npy [%s]\n      %s\n", rows->shape, pe_summary_in(spoken(), &rows->about));
    }
}

static void print_own_options(void)
{
    for (size_t i = 0; i < N_OWN; i++)
        printf("  --%s %s\n      %s\n", own_options[i].name, own_options[i].value, own_options[i].does);
}

static const struct pe_operation_info *operation_of(const struct command *command)
{
    for (enum pe_operation_id id = 0; command && id < PE_N_OPERATIONS; id++)
        if (strcmp(pe_operation_at(id)->name, command->name) == 0)
            return pe_operation_at(id);
    return NULL;
}

static int help(const struct command *command)
{
    const struct pe_operation_info *operation = operation_of(command);
    printf("Usage: posenc %s%s%s%s\n", command ? command->name : "COMMAND", command && command->operand ? " " : "",
           command && command->operand ? command->operand : "",
           command && command->kind != ENDPOINT && command->kind != EXPLAIN ? "" : " [--FIELD VALUE …] [-o FILE]");
    if (command)
        printf("%s.\n", command->does);
    else {
        puts("Computes the positional encodings of Transformer models.\n");
        for (size_t i = 0; i < N_COMMANDS; i++)
            printf("  %-12s %s\n", commands[i].name, commands[i].does);
        puts(
            "\nThe exit status is 0 if all is well, 1 if a check or a diagnosis finds a difference, 2 for any "
            "trouble.\n"
            "A terminal gets a heat map or a table, a pipe or file the service's JSON, or what the ending of -o says.\n"
            "\nOptions (posenc COMMAND --help lists the fields of a command, posenc schemes NAME those of a scheme):");
    }
    if (command && command->kind != ENDPOINT && command->kind != EXPLAIN)
        return DONE;
    print_own_options();
    if (!command)
        return DONE;
    puts("\nFields of the sequence:");
    print_rows("", pe_sequence_params());
    if (operation && operation->params) {
        printf("\nFields of %s:\n", operation->name);
        print_rows("", operation->params);
    }
    if (operation && operation->inputs) {
        printf("\nTensors of %s:\n", operation->name);
        print_inputs(operation->inputs);
    }
    puts("\nThe form of the answer:");
    print_rows("", api_form_params());
    return DONE;
}

static int schemes(struct line *line)
{
    const char *name = line->n_operands ? line->operands[0] : NULL;
    char path[160] = "/schemes";
    if (name)
        snprintf(path, sizeof path, "/schemes/%.120s", name);
    const struct pe_scheme_info *scheme = name ? pe_scheme_find(name) : NULL;
    if (line->output || !isatty(STDOUT_FILENO) || (name && !scheme))
        return ask(line, "GET", path);
    for (size_t i = 0; !name && i < pe_n_schemes(); i++)
        printf("%-16s %-10s %s\n", pe_scheme_at(i)->name, pe_scheme_at(i)->family,
               pe_summary_in(spoken(), &pe_scheme_at(i)->about));
    if (!scheme)
        return DONE;
    printf("%s: %s\n%s\n", scheme->name, pe_summary_in(spoken(), &scheme->about), scheme->paper);
    print_rows("", scheme->params);
    print_inputs(scheme->inputs);
    return DONE;
}

static bool has_words(const struct pe_preset *preset, const struct line *line)
{
    for (size_t i = 0; i < line->n_operands; i++)
        if (!api_preset_has(preset, preset->name, line->operands[i]))
            return false;
    return true;
}

static int presets(struct line *line)
{
    bool is_any = false;
    struct bytes words = {NULL, 0, 0};
    for (size_t i = 0; i < line->n_operands; i++) {
        add(&words, i ? " " : "");
        add(&words, line->operands[i]);
    }
    if (words.n)
        add_pair(&line->query, "query", words.p);
    free(words.p);
    if (line->output || !isatty(STDOUT_FILENO))
        return ask(line, "GET", "/presets");
    for (size_t i = 0; i < pe_n_presets(); i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        if (!has_words(preset, line))
            continue;
        const char *label = spoken() == PE_ZH && preset->label_zh ? preset->label_zh : preset->label;
        const char *certainty = pe_certainty_name(preset->certainty);
        printf("%-24s %-14s %s\n", preset->name, certainty ? certainty : "", label);
        is_any = true;
    }
    if (is_any)
        return DONE;
    const char *nearest = pe_preset_nearest(line->operands[0]);
    return trouble("no preset has these words%s%s", nearest ? "; nearest: " : "", nearest ? nearest : "");
}

/* ---- Completion ---- */

static int completion(const struct line *line)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {
        {"bash",
         "_posenc() {\n"
         "    local IFS=$'\\n'\n"
         "    COMPREPLY=($(compgen -W \"$(posenc --complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\" -- "
         "\"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -o default -F _posenc posenc\n"},
        {"zsh", "#compdef posenc\n"
                "local -a found\n"
                "found=(${(f)\"$(posenc --complete ${words[2,CURRENT]} 2>/dev/null)\"})\n"
                "compadd -a found || _files\n"},
        {"fish", "complete -c posenc -a '(posenc --complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'\n"},
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (line->n_operands == 1 && strcmp(line->operands[0], scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout);
            return DONE;
        }
    return trouble("completion of which shell? bash, zsh or fish");
}

static void list_fields(const char *prefix, const struct pe_param *rows)
{
    for (; rows && rows->name; rows++) {
        char inside[128];
        snprintf(inside, sizeof inside, "%s%s.", prefix, rows->name);
        if (rows->type == PE_T_OBJECT && rows->fields) {
            list_fields(inside, rows->fields);
            continue;
        }
        snprintf(inside, sizeof inside, "--%s%s", prefix, rows->name);
        for (char *c = inside; *c; c++)
            putchar(*c == '_' ? '-' : *c);
        putchar('\n');
    }
}

static void list_inputs(const struct pe_input_row *rows)
{
    for (; rows && rows->name; rows++)
        printf("--%s\n", rows->name);
}

static const struct pe_param *row_of(const char *name, const struct pe_operation_info *operation,
                                     const struct pe_scheme_info *scheme)
{
    const struct pe_param *lists[] = {scheme ? scheme->params : NULL, operation ? operation->params : NULL,
                                      pe_sequence_params(), api_form_params()};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const struct pe_param *row = lists[i] ? pe_param_find(lists[i], name) : NULL;
        if (row)
            return row;
    }
    return NULL;
}

/* The values that an option can have, one a line: of a scheme, a preset, the words of a row. */
static void list_values(char *name, const struct pe_operation_info *operation, const struct pe_scheme_info *scheme)
{
    to_field(name);
    const struct pe_param *row = row_of(name, operation, scheme);
    for (size_t i = 0; strcmp(name, "scheme") == 0 && i < pe_n_schemes(); i++)
        puts(pe_scheme_at(i)->name);
    for (size_t i = 0; strcmp(name, "preset") == 0 && i < pe_n_presets(); i++)
        puts(pe_preset_at(i)->name);
    for (size_t i = 0; row && row->words && row->words[i]; i++)
        puts(row->words[i]);
    if (row && row->type == PE_T_BOOL)
        puts("true\nfalse");
}

/* words: those after the command's name up to the cursor, the last of which is begun. */
static int complete(int n, char **words)
{
    const struct command *command = n > 1 ? command_find(words[0]) : NULL;
    const struct pe_scheme_info *scheme = NULL;
    for (int i = 1; i + 1 < n; i++)
        if (strcmp(words[i], "--scheme") == 0)
            scheme = pe_scheme_find(words[i + 1]);
    const struct pe_operation_info *operation = operation_of(command);
    if (!command) {
        for (size_t i = 0; i < N_COMMANDS; i++)
            puts(commands[i].name);
        return DONE;
    }
    if (strcmp(command->name, "completion") == 0)
        puts("bash\nzsh\nfish");
    else if (command->kind == SCHEMES)
        list_values((char[]){"scheme"}, NULL, NULL);
    else if (command->kind == PRESETS || command->kind == EXPLAIN)
        list_values((char[]){"preset"}, NULL, NULL);
    else if (n > 2 && strncmp(words[n - 2], "--", 2) == 0)
        list_values(words[n - 2] + 2, operation, scheme);
    else {
        puts("--scheme\n--preset");
        for (size_t i = 1; i < N_OWN; i++) /* the first is a field */
            printf("--%s\n", own_options[i].name);
        list_fields("", scheme ? scheme->params : NULL);
        list_fields("", operation ? operation->params : NULL);
        list_fields("", pe_sequence_params());
        list_fields("", api_form_params());
        list_inputs(operation ? operation->inputs : NULL);
        list_inputs(scheme ? scheme->inputs : NULL);
    }
    return DONE;
}

/* ---- The manual page ---- */

static void print_roff(const char *text)
{
    for (; *text; text++)
        if (*text == '-' || *text == '\\')
            fputs(*text == '-' ? "\\-" : "\\e", stdout);
        else
            putchar(*text);
}

static int print_man(void)
{
    printf(
        ".TH POSENC 1 \"\" \"posenc %s\" \"User Commands\"\n.SH NAME\nposenc \\- positional encodings of Transformer "
        "models\n.SH SYNOPSIS\n.B posenc\n.I COMMAND\n[\\-\\-\\fIFIELD VALUE\\fR ...] [\\-o \\fIFILE\\fR]\n"
        ".SH DESCRIPTION\nComputes in process what the service posencd(8) answers: the same fields, the same bytes, "
        "the same refusals.\nA terminal gets a heat map or a table, a pipe or file JSON.\n.SH COMMANDS\n",
        PE_VERSION);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        printf(".TP\n.B %s", commands[i].name);
        if (commands[i].operand)
            printf(" %s", strcmp(commands[i].operand, "[WORD …]") == 0 ? "[WORD ...]" : commands[i].operand);
        printf("\n");
        print_roff(commands[i].does);
        printf(".\n");
    }
    puts(".SH OPTIONS");
    for (size_t i = 0; i < N_OWN; i++) {
        printf(".TP\n\\fB\\-\\-");
        print_roff(own_options[i].name);
        printf("\\fR \\fI%s\\fR\n", own_options[i].value);
        print_roff(own_options[i].does);
        puts(".");
    }
    puts(".PP\n.B posenc COMMAND \\-\\-help\nlists the fields of a command,\n.B posenc schemes NAME\nthose of a "
         "scheme.\n"
         ".SH EXIT STATUS\n0: done; the tensor fits; it is explained. 1: a check differs; a diagnosis has no "
         "explanation. "
         "2: trouble, with one line on standard error.\n"
         ".SH ENVIRONMENT\n.TP\n.B LANG\nChinese texts if it begins with zh, else English.\n.TP\n.B NO_COLOR\nHeat "
         "maps are "
         "drawn with plain characters, as they are where TERM is dumb.\n"
         ".SH EXAMPLES\n.nf\nposenc encode \\-\\-scheme rope \\-\\-len 2048 \\-o rope.safetensors\nposenc check "
         "\\-\\-hf "
         "Qwen2\\-7B \\-\\-q q.npy \\-\\-q\\-out o.npy\n.fi\n.SH SEE ALSO\nposencd(8)");
    return DONE;
}

/* ---- The start ---- */

/* What is no file is a preset, and if it is none either, api/ names the nearest. */
static int explain(struct line *line)
{
    struct stat about;
    const char *model = line->n_operands ? line->operands[0] : NULL;
    int status = DONE;
    if (line->n_operands > 1)
        return trouble("explain takes one model; found: %s", line->operands[1]);
    if (model && stat(model, &about) != 0 && strcmp(model, "-") != 0)
        add_pair(&line->query, "preset", model);
    else if (model && ends_with(model, ".gguf"))
        line->files[line->n_files++] = (struct file){"gguf", model};
    else if (model)
        status = add_hf(line, model);
    return status ? status : ask(line, "POST", "/explain");
}

static int answer(struct line *line)
{
    const struct command *command = line->command;
    if (line->wants_help)
        return help(command);
    if (command->kind == COMPLETION)
        return completion(line);
    if (command->kind == ENDPOINT && line->n_operands)
        return trouble("%s takes options, no word \"%s\"", command->name, line->operands[0]);
    choose_format(line);
    if (command->kind == EXPLAIN)
        return explain(line);
    if (command->kind == SCHEMES)
        return schemes(line);
    if (command->kind == PRESETS)
        return presets(line);
    char path[32];
    snprintf(path, sizeof path, "/%s", command->name);
    return ask(line, "POST", path);
}

static int no_command(const char *name)
{
    const char *names[N_COMMANDS + 1] = {NULL};
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    const char *nearest = pe_nearest(name, names);
    return trouble("unknown command %s%s%s", name, nearest ? "; nearest: " : "; posenc --help lists them",
                   nearest ? nearest : "");
}

int main(int argc, char **argv)
{
    static struct line line;
    signal(SIGPIPE, SIG_IGN);
    api_setup();
    pe_gemm_setup();
    pe_speak_in(spoken());
    if (argc < 2)
        return help(NULL), TROUBLE;
    if (strcmp(argv[1], "--help") == 0)
        return help(NULL);
    if (strcmp(argv[1], "--version") == 0)
        return printf("posenc %s\n", PE_VERSION), DONE;
    if (strcmp(argv[1], "--print-man") == 0)
        return print_man();
    if (strcmp(argv[1], "--complete") == 0)
        return complete(argc - 2, argv + 2);
    if (!(line.command = command_find(argv[1])))
        return no_command(argv[1]);
    int status = read_words(&line, argc - 2, argv + 2);
    status = status ? status : answer(&line);
    free(line.query.p);
    return fflush(stdout) && errno != EPIPE ? trouble("cannot write: %s", strerror(errno)) : status;
}
