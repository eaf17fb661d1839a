/* Prompts: three ways through the tools. Text that the caller gives is quoted, apart from the instructions. */
#include "api/mcp/mcp.h"

#include <stdio.h>

enum { ARGUMENTS_MAX = 3 };

static const struct prompt {
    const char *name, *title, *description;
    struct {
        const char *name, *about;
        bool is_needed;
    } arguments[ARGUMENTS_MAX + 1];
    const char *text; /* of the message, behind the quoted arguments */
} prompts[] = {
    {"port_differs",
     "A port gives other numbers",
     "Finds why a port of a model differs in its positional encoding, and pins the right numbers in a test.",
     {{"model", "the model, or where its config.json is", true},
      {"framework", "what the port is written in", false},
      {"symptom", "what is seen", false}},
     "My port of this model gives other numbers than the original. Find the mistake in its positional encoding:\n"
     "1. Call explain with the model's config.json, or presets to find its preset.\n"
     "2. Let the port print a few rows of cos and sin, and one head of q before and after the rotation, at positions "
     "0, 1, 2 and one beyond the original "
     "length.\n"
     "3. Call diagnose with these tensors and the configuration as the belief.\n"
     "4. Mend what the finding names: its pointer is the field.\n"
     "5. Put check with the same tensors into the port's test."},
    {"extend_context",
     "Extend the context of a model",
     "Chooses a scaling of RoPE for a longer context from measured properties and a short experiment.",
     {{"preset", "the model's preset", true}, {"target_len", "the required length", true}},
     "I want this model to read sequences of this length. Choose a scaling of its positions:\n"
     "1. Call explain with the preset: the original length, base and scaling.\n"
     "2. Call analyze with configs, one for each scaling, and the metrics wavelengths, extrapolation and difference.\n"
     "3. Call experiment with the two best, 300 steps.\n"
     "4. Write the rope_scaling for the model's config.json, with the numbers that speak for it."},
    {"teach_scheme",
     "Teach a scheme",
     "Explains a positional encoding with its formula, a picture and an attention map.",
     {{"scheme", "the scheme", true}, {"audience", "who reads it", false}},
     "Explain this positional encoding from the resource that follows:\n1. State its formula and what each symbol "
     "is.\n2. Call picture for a heat map of the scheme, and explain its stripes.\n3. Call attention with tokens The, "
     "dog, chased, another, dog, and show how the two dogs differ by their places."},
};

enum { N_PROMPTS = sizeof prompts / sizeof *prompts };

void api_mcp_prompts_print(struct api_text *text)
{
    api_text_open(text, "prompts", '[');
    for (size_t i = 0; i < N_PROMPTS; i++) {
        const struct prompt *p = &prompts[i];
        api_text_open(text, NULL, '{');
        api_text_member(text, "name", p->name);
        api_text_member(text, "title", p->title);
        api_text_member(text, "description", p->description);
        api_text_open(text, "arguments", '[');
        for (size_t k = 0; p->arguments[k].name; k++) {
            api_text_open(text, NULL, '{');
            api_text_member(text, "name", p->arguments[k].name);
            api_text_member(text, "description", p->arguments[k].about);
            api_text_flag(text, "required", p->arguments[k].is_needed);
            api_text_close(text, '}');
        }
        api_text_put(text, "]}");
    }
    api_text_put(text, "]");
}

static const struct prompt *find_prompt(struct api_mcp_message *message)
{
    const char *name = api_mcp_word(message, "name"), *names[N_PROMPTS + 1];
    for (size_t i = 0; i < N_PROMPTS; i++) {
        names[i] = prompts[i].name;
        if (name && strcmp(name, prompts[i].name) == 0)
            return &prompts[i];
    }
    names[N_PROMPTS] = NULL;
    const char *nearest = name ? pe_nearest(name, names) : NULL;
    api_mcp_fail(message, API_MCP_NO_PARAMS,
                 nearest ? "unknown prompt \"%.64s\"; nearest: \"%s\""
                         : "unknown prompt \"%.64s\"; prompts/list lists them",
                 name ? name : "", nearest);
    return NULL;
}

static void put_message(struct api_text *text, const struct prompt *p, const json_t *arguments)
{
    struct api_text words;
    api_text_init(&words, API_TEXT_MAX);
    for (size_t k = 0; p->arguments[k].name; k++) {
        const json_t *value = json_object_get(arguments, p->arguments[k].name);
        if (!value)
            continue;
        api_text_format(&words, "%s: ", p->arguments[k].name);
        api_text_string_n(&words, json_string_value(value), json_string_length(value));
        api_text_put(&words, "\n");
    }
    api_text_put(&words, "\n");
    api_text_put(&words, p->text);
    api_text_put(text, "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":");
    api_text_string_n(text, words.bytes, words.n);
    api_text_put(text, "}}");
    text->state = words.state ? words.state : text->state;
    api_text_drop(&words);
}

static bool put_scheme(struct api_text *text, const json_t *arguments, struct api_mcp_message *message)
{
    const char *name = json_string_value(json_object_get(arguments, "scheme"));
    const struct pe_scheme_info *info = pe_scheme_find(name);
    struct api_text markdown;
    if (!info)
        return api_mcp_fail(message, API_MCP_NO_PARAMS, "unknown scheme \"%.64s\"; GET /schemes lists them", name);
    api_text_init(&markdown, API_TEXT_MAX);
    api_mcp_scheme_text(&markdown, info);
    api_text_format(
        text,
        ",{\"role\":\"user\",\"content\":{\"type\":\"resource\",\"resource\":{\"uri\":\"posenc://schemes/%s\","
        "\"mimeType\":\"text/markdown\",\"text\":",
        info->name);
    api_text_string_n(text, markdown.bytes, markdown.n);
    api_text_put(text, "}}}");
    text->state = markdown.state ? markdown.state : text->state;
    api_text_drop(&markdown);
    return true;
}

/* The arguments have at most API_MCP_WHOLE_MAX bytes. */
bool api_mcp_prompt_get(struct api_text *text, struct api_request *request, struct api_mcp_message *message)
{
    const struct prompt *p = find_prompt(message);
    struct api_json_error error;
    if (!p)
        return false;
    const json_t *arguments = api_json_load(&request->arena, message->arguments, message->arguments_bytes, 0, &error);
    if (!arguments && error.no_memory)
        return api_fail_memory(&request->problem);
    bool fine = !message->has_wrong_arguments && json_is_object(arguments);
    if (!fine)
        api_mcp_fail(message, API_MCP_NO_PARAMS, "arguments is no object");
    for (size_t k = 0; fine && p->arguments[k].name; k++) {
        const json_t *value = json_object_get(arguments, p->arguments[k].name);
        if (value && !json_is_string(value))
            fine = api_mcp_fail(message, API_MCP_NO_PARAMS, "the argument %s is no string", p->arguments[k].name);
        if (!value && p->arguments[k].is_needed)
            fine = api_mcp_fail(message, API_MCP_NO_PARAMS, "the prompt %s needs the argument %s", p->name,
                                p->arguments[k].name);
    }
    if (fine) {
        api_text_member(text, "description", p->description);
        api_text_open(text, "messages", '[');
        put_message(text, p, arguments);
        if (strcmp(p->arguments[0].name, "scheme") == 0)
            fine = put_scheme(text, arguments, message);
        api_text_put(text, "]");
    }
    return fine;
}
