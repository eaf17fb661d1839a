/* Commands of containers, in Compose files and manifests of Kubernetes: each becomes a line of a shell, which the
 * reader of commands reads.
 *
 *     image: vllm/vllm-openai                       a flow or block list: words as they are
 *     command: ["--model", "Qwen/Qwen3-8B"]
 *     args: ["-c", "vllm serve Qwen/Qwen3-8B"]      behind -c, or one word with blanks: a line of a shell
 *     command: >                                    a text: the same
 *     environment: {LLAMA_ARG_ROPE_SCALE: 4}        llama.cpp's flags */
#include "api/inputs/pasted/pasted.h"

#include <jansson.h>

enum { DEPTH_MAX = 24 };

/* Behind "- " of an item. */
static bool is_key(const char *line, size_t n, const char *names)
{
    while (n > 2 && memcmp(line, "- ", 2) == 0) {
        line += 2;
        n -= 2;
    }
    size_t name = pasted_name_in(line, n);
    return name && pasted_is_among(names, line, name);
}

bool pasted_container_looks_so(const char *text)
{
    const char *line;
    size_t n;
    bool has_command = false, has_container = false, has_list = false;
    while (pasted_line(&text, &line, &n)) {
        has_list |= is_key(line, n, "command|args|entrypoint|extraArgs") && line[n - 1] == ']';
        has_command |= is_key(line, n, "command|args|entrypoint|extraArgs|environment|env");
        has_container |= is_key(line, n, "image|services|containers");
    }
    return has_list || (has_command && has_container);
}

static bool has_blank(const char *word) { return strpbrk(word, " \t\n") != NULL; }

/* In quotes, but for what a shell would put in place of variables. */
static void put_word(struct api_text *text, const char *word)
{
    api_text_put(text, " \"");
    for (; *word; word++) {
        api_text_put(text, strchr("\"\\`", *word) ? "\\" : "");
        api_text_add(text, word, 1);
    }
    api_text_put(text, "\"");
}

/* Words of one of the keys; last: the one before them, of this key or of another. */
static void put_words(struct api_text *text, const json_t *value, const char **last)
{
    bool is_alone = json_array_size(value) == 1;
    if (json_is_string(value)) {
        api_text_put(text, " ");
        api_text_put(text, json_string_value(value));
        *last = json_string_value(value);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        char *number = json_is_number(item) ? api_json_text(item, JSON_ENCODE_ANY) : NULL;
        const char *word = json_is_string(item) ? json_string_value(item) : number ? number : "";
        bool is_line = has_blank(word) && (pasted_is_among("-c|-lc|-ec", *last, strlen(*last)) ||
                                           (is_alone && *word != '-' && *word != '{'));
        if (is_line) {
            api_text_put(text, "\n");
            api_text_put(text, word);
            api_text_put(text, "\n");
        } else {
            put_word(text, word);
        }
        *last = number ? "" : word;
        free(number);
    }
}

/* {NAME: value}, ["NAME=value"], [{name: NAME, value: value}]: those that are llama.cpp's flags. */
static void put_variables(struct api_text *text, const json_t *variables)
{
    static const char flags[] = "LLAMA_ARG_ROPE_*|LLAMA_ARG_YARN_*";
    json_t *mutable = (json_t *)(uintptr_t)variables;
    for (size_t i = 0; i < json_array_size(variables); i++) {
        const json_t *item = json_array_get(variables, i);
        const char *word = json_string_value(json_is_object(item) ? json_object_get(item, "name") : item);
        if (word && pasted_is_among(flags, word, strlen(word)))
            put_word(text, word);
    }
    for (void *at = json_object_iter(mutable); at; at = json_object_iter_next(mutable, at))
        if (pasted_is_among(flags, json_object_iter_key(at), strlen(json_object_iter_key(at))))
            put_word(text, json_object_iter_key(at));
}

static bool is_command(const json_t *value)
{
    return json_is_string(value) || (json_is_array(value) && json_array_size(value));
}

/* The image is the program where it is a tool's, or where the first word is a flag. */
static void put_container(struct api_text *text, const json_t *object)
{
    static const char *const keys[] = {"entrypoint", "command", "args", "extraArgs"};
    const char *image = json_string_value(json_object_get(object, "image")), *first = "", *last = "";
    for (size_t i = 4; i-- > 0;) {
        const json_t *value = json_object_get(object, keys[i]), *word = json_array_get(value, 0);
        first = json_is_string(value)  ? json_string_value(value)
                : json_is_string(word) ? json_string_value(word)
                                       : first;
    }
    put_variables(text, json_object_get(object, "environment"));
    put_variables(text, json_object_get(object, "env"));
    if (image && (!*first || *first == '-' || pasted_tool_of_word(image)))
        put_word(text, image);
    for (size_t i = 0; i < 4; i++)
        put_words(text, json_object_get(object, keys[i]), &last);
    api_text_put(text, "\n");
}

/* Whether there is a command, or what changes one. */
static bool walk(struct api_text *text, const json_t *value, unsigned depth)
{
    json_t *mutable = (json_t *)(uintptr_t)value;
    bool is_some = is_command(json_object_get(value, "command")) || is_command(json_object_get(value, "args")) ||
                   is_command(json_object_get(value, "extraArgs")) || is_command(json_object_get(value, "entrypoint"));
    const json_t *image = json_object_get(value, "image");
    is_some |= image && (json_object_get(value, "environment") || json_object_get(value, "env"));
    if (is_some)
        put_container(text, value);
    for (void *at = json_object_iter(mutable); at && depth < DEPTH_MAX; at = json_object_iter_next(mutable, at))
        is_some |= walk(text, json_object_iter_value(at), depth + 1);
    for (size_t i = 0; i < json_array_size(value) && depth < DEPTH_MAX; i++)
        is_some |= walk(text, json_array_get(value, i), depth + 1);
    return is_some;
}

bool pasted_container_read(struct pasting *p)
{
    const json_t *documents = pasted_yaml_documents(p);
    struct api_text text;
    if (!documents)
        return false;
    api_text_init(&text, PASTED_MAX);
    bool is_some = walk(&text, documents, 0);
    p->json.n = 0;
    if (!is_some && !text.state) { /* of a trainer, with such keys */
        api_text_drop(&text);
        return pasted_yaml_read(p);
    }
    p->text = text.state ? NULL : api_arena_string(&p->request->arena, text.bytes ? text.bytes : "", text.n);
    bool is_long = text.state == API_TEXT_FULL;
    api_text_drop(&text);
    if (is_long)
        return api_fail(p->problem, 413, p->pointer, "the values of the text are too long");
    return p->text ? pasted_command_read(p) : api_fail_memory(p->problem);
}
