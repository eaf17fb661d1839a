/* Resources: a scheme or a preset as Markdown, written from the rows of the catalogue; a story of the page, whose text
 * is Markdown already. A URI is compared as it is written: nothing of it is decoded, and no name of a file is made of
 * it that is not in the list. */
#define _GNU_SOURCE /* memmem */
#include "api/inputs/inputs.h"
#include "api/mcp/mcp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SCHEMES "posenc://schemes/"
#define PRESETS "posenc://presets/"
#define STORIES "posenc://stories/"

/* ---- Texts ---- */

static void put_param(struct api_text *text, const struct pe_param *row)
{
    api_text_format(text, "- `%s`", row->name);
    if (row->type == PE_T_WORD) {
        for (size_t i = 0; row->words[i]; i++)
            api_text_format(text, "%s`%s`", i ? ", " : " (", row->words[i]);
        api_text_put(text, ")");
        if (row->fallback >= 0)
            api_text_format(text, ", default `%s`", row->words[(int)row->fallback]);
    } else if (row->type == PE_T_BOOL) {
        api_text_format(text, ", default %s", row->fallback != 0 ? "true" : "false");
    } else if ((row->type == PE_T_INT || row->type == PE_T_REAL) && !isnan(row->fallback)) {
        api_text_format(text, ", default %g", row->fallback);
    }
    api_text_format(text, ": %s\n", pe_summary_in(PE_EN, &row->about));
    for (const struct pe_param *field = row->type == PE_T_OBJECT ? row->fields : NULL; field && field->name; field++)
        api_text_format(text, "  - `%s.%s`: %s\n", row->name, field->name, pe_summary_in(PE_EN, &field->about));
}

static void put_piece(void *to, const char *bytes, size_t n) { api_text_add(to, bytes, n); }

static void put_lines(struct api_text *text, const char *title, const struct pe_formula_line *lines)
{
    api_text_format(text, "\n%s\n\n", title);
    for (; lines->line; lines++) {
        api_text_put(text, "- `");
        pe_formula_print(lines->line, PE_PLAIN, put_piece, text);
        api_text_format(text, "`: %s\n", pe_text_in(PE_EN, lines->says));
    }
}

void api_mcp_scheme_text(struct api_text *text, const struct pe_scheme_info *info)
{
    api_text_format(text, "# %s\n\n%s\n\nFamily: %s.", info->name, pe_summary_in(PE_EN, &info->about), info->family);
    if (info->paper)
        api_text_format(text, " Paper: %s.", info->paper);
    api_text_put(text, "\n");
    put_lines(text, "## Formula", info->formula);
    for (size_t i = 0; pe_param_find(info->params, "scaling") && i < pe_n_scalings(); i++) {
        char title[64];
        snprintf(title, sizeof title, "With scaling `%s`", pe_scaling_formula(i).name);
        put_lines(text, title, pe_scaling_formula(i).lines);
    }
    api_text_put(text, "\n## Parameters\n\n");
    for (const struct pe_param *row = info->params; row->name; row++)
        put_param(text, row);
    api_text_put(text, "\n## Outputs\n\n");
    for (const struct pe_output_row *row = info->outputs; row && row->name; row++)
        if (pe_output_suits(row, info))
            api_text_format(text, "- `%s` `[%s]`: %s\n", row->name, row->shape, pe_summary_in(PE_EN, &row->about));
    api_text_format(text, "\n## Example\n\n```json\n%s\n```\n", info->example);
}

static void put_preset(struct api_text *text, const char *name, const struct pe_preset *preset)
{
    api_text_format(text, "# %s\n", name);
    if (preset->label)
        api_text_format(text, "\n%s\n", preset->label);
    for (size_t i = 0; i < preset->n_layers; i++) {
        struct pe_value config = {.kind = PE_OBJECT, .object = {preset->layers[i].fields, preset->layers[i].n_fields}};
        if (preset->layers[i].layer_type)
            api_text_format(text, "\nLayers `%s`:\n", preset->layers[i].layer_type);
        api_text_put(text, "\n```json\n");
        api_text_value(text, &config);
        api_text_put(text, "\n```\n");
    }
    if (preset->source)
        api_text_format(text, "\nSource: %s\n", preset->source);
    if (pe_certainty_name(preset->certainty) && preset->label)
        api_text_format(text, "\nCertainty: %s\n", pe_certainty_name(preset->certainty));
    if (preset->note)
        api_text_format(text, "\n%s\n", preset->note);
}

/* ---- Stories ---- */

enum { STORY_NAME_MAX = 64, STORIES_MAX = 32 };

/* The name of a story whose English text is file i of the page. */
static bool story_at(const struct api_page *page, size_t i, char name[STORY_NAME_MAX])
{
    static const char folder[] = "stories/", ending[] = ".en.md";
    const char *file = page->files[i].name;
    size_t n = strlen(file), n_around = sizeof folder - 1 + sizeof ending - 1;
    if (n <= n_around || n - n_around >= STORY_NAME_MAX || strncmp(file, folder, sizeof folder - 1) != 0 ||
        strcmp(file + n - (sizeof ending - 1), ending) != 0)
        return false;
    snprintf(name, STORY_NAME_MAX, "%.*s", (int)(n - n_around), file + sizeof folder - 1);
    return true;
}

static bool has_story(const struct api_page *page, const char *wanted)
{
    char name[STORY_NAME_MAX];
    for (size_t i = 0; page && i < page->n_files; i++)
        if (story_at(page, i, name) && strcmp(name, wanted) == 0)
            return true;
    return false;
}

/* The text begins with a list of names of the page's controls, which ends at the first empty line. A figure is a line
 * ![name]. */
static void put_story_text(struct api_text *text, const char *bytes, size_t n)
{
    const char *end = bytes + n, *p = memmem(bytes, n, "\n\n", 2);
    for (p = p ? p + 1 : bytes; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n_line = stop ? (size_t)(stop - p) : (size_t)(end - p);
        if (n_line > 3 && strncmp(p, "![", 2) == 0 && p[n_line - 1] == ']')
            api_text_format(text, "**`%.*s`**\n", (int)n_line - 3, p + 2);
        else
            api_text_add(text, p, n_line);
        api_text_put(text, "\n");
        p += n_line + 1;
    }
}

static bool put_file(struct api_text *text, const struct api_page *page, const char *name, const char *ending,
                     void (*put)(struct api_text *, const char *, size_t))
{
    char *owned, path[STORY_NAME_MAX + 32];
    size_t n;
    snprintf(path, sizeof path, "stories/%s%s", name, ending);
    const char *bytes = api_page_text(page, path, &owned, &n);
    if (bytes)
        put(text, bytes, n);
    free(owned);
    return bytes;
}

/* The requests of a story's figures are in its module. */
static bool put_story(struct api_text *text, const struct api_page *page, const char *name, bool is_chinese)
{
    api_text_put(text, "# ");
    /* As the page calls it: one short text of those of the page. */
    char *owned, key[STORY_NAME_MAX + 8], path[16];
    size_t n;
    struct api_arena arena = {0};
    struct api_json_error error;
    struct api_json_member member;
    snprintf(key, sizeof key, "story.%s", name);
    snprintf(path, sizeof path, "text/%s.json", is_chinese ? "zh" : "en");
    const char *bytes = api_page_text(page, path, &owned, &n);
    bool is_there = bytes && api_json_find(bytes, n, key, &member);
    const char *title =
        is_there ? json_string_value(api_json_load(&arena, member.value, member.value_bytes, JSON_DECODE_ANY, &error))
                 : NULL;
    api_text_put(text, title ? title : name);
    api_arena_drop(&arena);
    free(owned);
    api_text_put(text, "\n");
    bool fine = put_file(text, page, name, is_chinese ? ".zh.md" : ".en.md", put_story_text);
    api_text_format(text, "\n## %s\n\n```js\n", pe_text_in(is_chinese ? PE_ZH : PE_EN, "The requests of the figures"));
    fine = put_file(text, page, name, ".js", api_text_add) && fine;
    api_text_put(text, "```\n");
    return fine;
}

/* ---- The list ---- */

static void put_entry(struct api_text *text, const char *place, const char *name, const char *title)
{
    api_text_name(text, NULL);
    api_text_format(text, "{\"uri\":\"%s%s\"", place, name);
    api_text_member(text, "name", name);
    if (title)
        api_text_member(text, "title", title);
    api_text_put(text, ",\"mimeType\":\"text/markdown\"}");
}

void api_mcp_resources_print(struct api_text *text, const struct api_request *request)
{
    const struct api_page *page = request->host->page;
    char story[STORY_NAME_MAX];
    api_text_open(text, "resources", '[');
    for (size_t i = 0; i < pe_n_schemes(); i++)
        put_entry(text, SCHEMES, pe_scheme_at(i)->name, pe_label_in(PE_EN, &pe_scheme_at(i)->about));
    for (size_t i = 0; i < pe_n_presets(); i++)
        put_entry(text, PRESETS, pe_preset_at(i)->name, pe_preset_at(i)->label);
    const struct api_stored_file **cards =
        request->host->presets ? malloc(request->host->presets->files_max * sizeof *cards) : NULL;
    size_t n = cards ? request->host->presets->list(request->host->presets->self, cards) : 0;
    if (request->host->presets && !cards)
        text->state = API_TEXT_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        if (!pe_preset_find(cards[i]->name))
            put_entry(text, PRESETS, cards[i]->name, NULL);
        request->host->presets->drop_card(request->host->presets->self, cards[i]);
    }
    free(cards);
    for (size_t i = 0; page && i < page->n_files; i++)
        if (story_at(page, i, story))
            put_entry(text, STORIES, story, NULL);
    api_text_put(text, "]");
}

/* ---- One ---- */

static const char *after(const char *uri, const char *place)
{
    size_t n = strlen(place);
    return strncmp(uri, place, n) == 0 ? uri + n : NULL;
}

static bool put_kept(struct api_text *text, const struct api_store *store, const char *name)
{
    const struct api_stored_file *file = NULL;
    struct api_wanted wanted = {.name = name};
    if (!store || !api_weight_name_is_valid(name) || store->find(store->self, &wanted, &file) != API_FOUND)
        return false;
    put_preset(text, file->name, &file->preset->preset);
    store->release(store->self, file);
    return true;
}

static bool put_text(struct api_text *text, const struct api_request *request, const char *uri, bool *is_private)
{
    const char *scheme = after(uri, SCHEMES), *preset = after(uri, PRESETS), *story = after(uri, STORIES);
    if (story) {
        /* "NAME", or with the language of the text: "NAME?lang=zh". */
        char name[STORY_NAME_MAX];
        size_t n = strcspn(story, "?");
        bool is_chinese = strcmp(story + n, "?lang=zh") == 0,
             is_english = !story[n] || strcmp(story + n, "?lang=en") == 0;
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : 0), story);
        return (is_chinese || is_english) && has_story(request->host->page, name) &&
               put_story(text, request->host->page, name, is_chinese);
    }
    const struct pe_scheme_info *info = scheme ? pe_scheme_find(scheme) : NULL;
    const struct pe_preset *known = preset ? pe_preset_find(preset) : NULL;
    if (info)
        api_mcp_scheme_text(text, info);
    else if (known)
        put_preset(text, known->name, known);
    else
        return preset && (*is_private = put_kept(text, request->host->presets, preset));
    return true;
}

static bool fail_uri(const struct api_request *request, const char *uri, struct api_mcp_message *message)
{
    const char *scheme = after(uri, SCHEMES), *preset = after(uri, PRESETS), *story = after(uri, STORIES), *names[128];
    const struct api_page *page = request->host->page;
    char stories[STORIES_MAX][STORY_NAME_MAX];
    char buffer[API_WEIGHT_NAME_MAX + 1];
    const char *nearest = preset ? api_preset_nearest(request->host->presets, preset, buffer) : NULL;
    size_t n = 0;
    for (; scheme && n < pe_n_schemes() && n + 1 < sizeof names / sizeof *names; n++)
        names[n] = pe_scheme_at(n)->name;
    for (size_t i = 0; story && page && i < page->n_files && n < STORIES_MAX; i++)
        if (story_at(page, i, stories[n])) {
            names[n] = stories[n];
            n++;
        }
    names[n] = NULL;
    if (scheme || story)
        nearest = pe_nearest(scheme ? scheme : story, names);
    if (nearest)
        return api_mcp_fail(message, API_MCP_NO_PARAMS, "nothing is at %.160s; nearest: %s%s", uri,
                            scheme  ? SCHEMES
                            : story ? STORIES
                                    : PRESETS,
                            nearest);
    return api_mcp_fail(message, API_MCP_NO_PARAMS, "nothing is at %.160s; resources/list lists what there is", uri);
}

bool api_mcp_resource_read(struct api_text *text, struct api_request *request, struct api_mcp_message *message)
{
    const char *uri = api_mcp_word(message, "uri");
    struct api_text markdown;
    bool is_private = false;
    if (!uri)
        return api_mcp_fail(message, API_MCP_NO_PARAMS, "resources/read needs uri, a string");
    api_text_init(&markdown, API_TEXT_MAX);
    if (!put_text(&markdown, request, uri, &is_private)) {
        api_text_drop(&markdown);
        return fail_uri(request, uri, message);
    }
    api_text_open(text, "contents", '[');
    api_text_named(text, "{\"uri\":", uri);
    api_text_put(text, ",\"mimeType\":\"text/markdown\",\"text\":");
    api_text_string_n(text, markdown.bytes, markdown.n);
    api_text_put(text, "}]");
    api_mcp_cache(text, message, 60, is_private || request->call->access != API_ACCESS_OPEN);
    text->state = markdown.state ? markdown.state : text->state;
    api_text_drop(&markdown);
    return true;
}
