/* multipart/form-data (RFC 7578), split in place: the part "request" is JSON, every other part a .npy file under the
 * name of its tensor, or the head of a GGUF file.
 *
 * A delimiter is found by memmem over the whole body, which runs at the speed of memory on any content; libmicrohttpd's
 * own parser takes 200 ms for 16 MiB of carriage returns. Parts are pointers into the body, so a tensor is not copied.
 * A NUL in a header or a delimiter that is followed by something else than the grammar allows is refused or is no
 * delimiter, so that two readers of one body cannot disagree about its parts. */
#define _GNU_SOURCE /* memmem */
#include "api/inputs/inputs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* "\r\n--boundary" */
struct delimiter {
    char bytes[API_BOUNDARY_MAX + 5];
    size_t n;
};

/* The rest of the body. */
struct rest {
    const char *p, *end;
};

struct part {
    const char *header, *header_end; /* lines, each with its CRLF */
    const char *bytes;
    size_t n;
    const char *name; /* in the request's arena */
};

static bool fail_body(struct api_problem *problem, const char *what)
{
    return api_fail(problem, 400, "", "not multipart/form-data: %s", pe_text(what));
}

/* ---- Parameters: name=value; name="value" ---- */

static bool is_space(char c) { return c == ' ' || c == '\t'; }

/* The content of a quoted string, unescaped. Returns the end of the string; NULL if it has no end, does not fit, or
 * contains a NUL (here and below: a NUL would hide the text behind it). */
static const char *read_quoted(const char *p, const char *end, char *out, size_t room)
{
    size_t n = 0;
    for (p++; p < end && *p != '"' && *p != '\0' && n + 1 < room; p++) {
        if (*p == '\\' && end - p > 1)
            p++;
        if (*p == '\0')
            break;
        out[n++] = *p;
    }
    out[n] = '\0';
    return p < end && *p == '"' ? p + 1 : NULL;
}

static const char *read_token(const char *p, const char *end, char *out, size_t room)
{
    size_t n = 0;
    for (; p < end && *p != ';' && *p != '\0' && !is_space(*p) && *p != '\r' && n + 1 < room; p++)
        out[n++] = *p;
    out[n] = '\0';
    return p == end || *p == ';' || is_space(*p) || *p == '\r' ? p : NULL;
}

static const char *read_value(const char *p, const char *end, char *out, size_t room)
{
    return p < end && *p == '"' ? read_quoted(p, end, out, room) : read_token(p, end, out, room);
}

/* Finds the parameter of this name in a list that ends before end. False: not there, or broken before it is reached. */
static bool find_parameter(const char *p, const char *end, const char *name, char *out, size_t room)
{
    size_t n = strlen(name);
    while (p && p < end) {
        while (p < end && (is_space(*p) || *p == ';'))
            p++;
        const char *equals = memchr(p, '=', (size_t)(end - p));
        if (!equals)
            return false;
        if ((size_t)(equals - p) == n && strncasecmp(p, name, n) == 0)
            return read_value(equals + 1, end, out, room) != NULL;
        char other[API_PART_HEADER_MAX];
        p = read_value(equals + 1, end, other, sizeof other);
    }
    return false;
}

static bool read_boundary(const char *parameters, struct delimiter *delimiter, struct api_problem *problem)
{
    char boundary[API_BOUNDARY_MAX + 1];
    if (!find_parameter(parameters, parameters + strlen(parameters), "boundary", boundary, sizeof boundary) ||
        !boundary[0])
        return fail_body(problem, "its Content-Type has no boundary of 1 to 70 characters");
    delimiter->n = (size_t)snprintf(delimiter->bytes, sizeof delimiter->bytes, "\r\n--%s", boundary);
    return true;
}

/* ---- Splitting ---- */

/* The text after a delimiter: "--" ends the body, spaces and CRLF begin a part; with any other text it is not a
 * delimiter. */
enum mark { MARK_NONE, MARK_PART, MARK_END };

static enum mark read_mark(const char **p, const char *end)
{
    const char *q = *p;
    if (end - q >= 2 && memcmp(q, "--", 2) == 0)
        return MARK_END;
    while (q < end && is_space(*q))
        q++;
    if (end - q < 2 || memcmp(q, "\r\n", 2) != 0)
        return MARK_NONE;
    *p = q + 2;
    return MARK_PART;
}

/* Moves rest behind the next delimiter; *stop is the delimiter's start. */
static enum mark next_mark(struct rest *rest, const struct delimiter *delimiter, const char **stop)
{
    const char *found = rest->p;
    while ((found = memmem(found, (size_t)(rest->end - found), delimiter->bytes, delimiter->n))) {
        const char *p = found + delimiter->n;
        enum mark mark = read_mark(&p, rest->end);
        *stop = found;
        rest->p = p;
        if (mark)
            return mark;
        found += delimiter->n;
    }
    return MARK_NONE;
}

/* The first delimiter may be at the very start, without its CRLF. */
static enum mark first_mark(struct rest *rest, const struct delimiter *delimiter)
{
    size_t n = delimiter->n - 2;
    const char *stop;
    if ((size_t)(rest->end - rest->p) >= n && memcmp(rest->p, delimiter->bytes + 2, n) == 0) {
        const char *p = rest->p + n;
        enum mark mark = read_mark(&p, rest->end);
        if (mark) {
            rest->p = p;
            return mark;
        }
    }
    return next_mark(rest, delimiter, &stop);
}

/* The part's header ends with an empty line; a header without any line is that line alone. */
static bool split_part(const char *p, const char *stop, struct part *part, struct api_problem *problem)
{
    size_t n = (size_t)(stop - p), window = n < API_PART_HEADER_MAX ? n : API_PART_HEADER_MAX;
    const char *blank = n >= 2 && memcmp(p, "\r\n", 2) == 0 ? p : memmem(p, window, "\r\n\r\n", 4);
    if (!blank)
        return fail_body(problem, n > API_PART_HEADER_MAX ? "a part has a header of over 8192 bytes"
                                                          : "a part has no empty line after its header");
    *part = (struct part){.header = p, .header_end = blank == p ? p : blank + 2};
    part->bytes = blank == p ? p + 2 : blank + 4;
    part->n = (size_t)(stop - part->bytes);
    return true;
}

/* ---- Part headers ---- */

/* The value of a header line, NULL if there is no such line. */
static const char *find_line(const struct part *part, const char *name, const char **end)
{
    size_t n = strlen(name);
    for (const char *p = part->header; p < part->header_end;) {
        const char *stop = memmem(p, (size_t)(part->header_end - p), "\r\n", 2);
        if ((size_t)(stop - p) > n && strncasecmp(p, name, n) == 0 && p[n] == ':') {
            *end = stop;
            return p + n + 1;
        }
        p = stop + 2;
    }
    return NULL;
}

static bool read_name(struct api_request *request, struct part *part, struct api_problem *problem)
{
    char name[API_PART_HEADER_MAX];
    const char *end, *line = find_line(part, "content-disposition", &end);
    const char *semicolon = line ? memchr(line, ';', (size_t)(end - line)) : NULL;
    if (!semicolon || !find_parameter(semicolon + 1, end, "name", name, sizeof name))
        return fail_body(problem, "a part has no Content-Disposition: form-data; name=\"…\"");
    part->name = api_arena_string(&request->arena, name, strlen(name));
    return part->name || api_fail_memory(problem);
}

/* RFC 7578 has deprecated transfer encodings of parts; reading base64 as .npy would give a puzzling error. */
static bool check_encoding(const struct part *part, const char *pointer, struct api_problem *problem)
{
    static const char *const identities[] = {"binary", "8bit", "7bit"};
    const char *end, *line = find_line(part, "content-transfer-encoding", &end);
    if (!line)
        return true;
    while (line < end && is_space(*line))
        line++;
    for (size_t i = 0; i < sizeof identities / sizeof identities[0]; i++)
        if ((size_t)(end - line) == strlen(identities[i]) &&
            strncasecmp(line, identities[i], (size_t)(end - line)) == 0)
            return true;
    return api_fail(problem, 415, pointer, "part \"%.64s\" has a Content-Transfer-Encoding; send its bytes as they are",
                    part->name);
}

static bool is_text(const struct part *part)
{
    return part->n && !memchr(part->bytes, '\0', part->n) && api_gguf_is_text(part->bytes, part->n);
}

static bool read_tensor(struct api_request *request, const struct part *part, const char *pointer,
                        struct api_problem *problem)
{
    char what[160];
    snprintf(what, sizeof what, pe_text("part \"%.64s\""), part->name);
    struct api_npy_file file = {.bytes = part->bytes, .n = part->n, .what = what, .pointer = pointer};
    struct pe_tensor tensor;
    if (!api_npy_looks_like(part->bytes, part->n) && api_takes_prints(request) && is_text(part)) {
        /* A tensor as a program prints it, which becomes one when all fields are read. */
        struct pe_value text = {.kind = PE_STRING, .string = api_arena_string(&request->arena, part->bytes, part->n)};
        return text.string ? api_request_add(request, part->name, &text, problem) : api_fail_memory(problem);
    }
    if (!api_npy_looks_like(part->bytes, part->n))
        return api_fail(
            problem, 415, pointer,
            "part \"%.64s\" is not a .npy file; a part is either \"request\", the JSON, or a tensor as .npy",
            part->name);
    if (!api_npy_parse(&request->arena, &file, &tensor, problem))
        return false;
    /* The header before the numbers has been read, so its bytes are spare; a reordered copy is aligned already. */
    size_t n_spare = (size_t)((const char *)tensor.data - part->bytes);
    return api_request_add_tensor(request, part->name, &tensor, n_spare, problem);
}

/* ---- GGUF files ---- */

/* One that a configuration of the field `configs` names. */
struct named_file {
    const struct named_file *next;
    const char *name;
    struct pe_value value;
};

static bool read_gguf(struct api_request *request, const struct part *part, const struct named_file **files,
                      const char *pointer, struct api_problem *problem)
{
    bool is_field = strcmp(part->name, "gguf") == 0;
    struct named_file *file = api_arena_alloc(&request->arena, sizeof *file);
    if (!file)
        return api_fail_memory(problem);
    file->name = part->name;
    file->next = *files;
    if (!api_gguf_parse(&request->arena, part->bytes, part->n, pointer, &file->value, problem))
        return false;
    if (is_field)
        return api_request_add(request, "gguf", &file->value, problem);
    *files = file;
    return true;
}

/* Replaces the name by the file in every configuration. Their fields are in the request's arena, and no step has read
 * them yet. */
static bool place(struct api_request *request, const struct named_file *file, struct api_problem *problem)
{
    const struct pe_value *configs = api_request_find(request, "configs");
    bool is_placed = false;
    for (size_t i = 0; configs && configs->kind == PE_LIST && i < configs->list.n; i++) {
        const struct pe_value *config = &configs->list.items[i];
        for (size_t f = 0; config->kind == PE_OBJECT && f < config->object.n; f++) {
            struct pe_field *field = (struct pe_field *)(uintptr_t)&config->object.fields[f];
            if (strcmp(field->name, "gguf") != 0 || field->value.kind != PE_STRING ||
                strcmp(field->value.string, file->name) != 0)
                continue;
            field->value = file->value;
            is_placed = true;
        }
    }
    return is_placed || api_fail_at(problem, 422, "", file->name,
                                    "part \"%.64s\" is a GGUF file; name it gguf, or in an entry of configs: "
                                    "{\"gguf\":\"%.64s\"}",
                                    file->name, file->name);
}

static bool read_part(struct api_request *request, struct part *part, bool *has_request,
                      const struct named_file **files, struct api_problem *problem)
{
    char pointer[PE_POINTER_MAX] = "";
    if (!read_name(request, part, problem))
        return false;
    bool is_request = strcmp(part->name, "request") == 0;
    if (!is_request)
        api_pointer_push(pointer, part->name, strlen(part->name));
    if (!check_encoding(part, pointer, problem))
        return false;
    if (!is_request && api_gguf_looks_like(part->bytes, part->n))
        return read_gguf(request, part, files, pointer, problem);
    if (!is_request && strcmp(part->name, "gguf") == 0)
        return api_fail(problem, 400, pointer, "part \"gguf\" is not a GGUF file: it does not begin with GGUF");
    if (!is_request)
        return read_tensor(request, part, pointer, problem);
    if (*has_request)
        return fail_body(problem, "it has two parts \"request\"");
    *has_request = true;
    size_t n = request->n_fields;
    bool fine = api_json_read(request, part->bytes, part->n, pe_text("part \"request\": "), problem);
    if (request->call && request->call->is_completed && n == 0) /* it is the first part */
        request->n_completing = request->n_fields;
    return fine;
}

bool api_multipart_read(struct api_request *request, const struct api_received *body, struct api_problem *problem)
{
    struct delimiter delimiter;
    struct rest rest = {.p = body->bytes, .end = body->bytes + body->n};
    const struct named_file *files = NULL;
    bool has_request = false;
    if (!read_boundary(body->parameters, &delimiter, problem))
        return false;
    enum mark mark = first_mark(&rest, &delimiter);
    for (unsigned n = 0; mark == MARK_PART; n++) {
        struct part part;
        const char *start = rest.p, *stop;
        /* The CRLF that ended the delimiter's line may begin the next one: a part of no bytes at all. */
        rest.p -= 2;
        mark = next_mark(&rest, &delimiter, &stop);
        if (mark && stop < start)
            return fail_body(problem, "a part has no empty line after its header");
        if (!mark)
            break;
        if (n == API_PARTS_MAX)
            return api_fail(problem, 413, "", "the multipart body has more than %d parts", API_PARTS_MAX);
        if (!split_part(start, stop, &part, problem) || !read_part(request, &part, &has_request, &files, problem))
            return false;
    }
    if (mark != MARK_END)
        return fail_body(problem, "its closing boundary is missing; the body is cut short or has no CRLF line ends");
    for (const struct named_file *file = files; file; file = file->next)
        if (!place(request, file, problem))
            return false;
    return true;
}
