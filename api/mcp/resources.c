/* Resources: a scheme or a preset as Markdown, written from the rows of the catalogue. A URI is compared as it is
 * written: nothing of it is decoded, and no file is opened. */
#include "api/inputs/inputs.h"
#include "api/mcp/mcp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SCHEMES "posenc://schemes/"
#define PRESETS "posenc://presets/"

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

void api_mcp_scheme_text(struct api_text *text, const struct pe_scheme_info *info)
{
    api_text_format(text, "# %s\n\n%s\n\nFamily: %s.", info->name, pe_summary_in(PE_EN, &info->about), info->family);
    if (info->paper)
        api_text_format(text, " Paper: %s.", info->paper);
    api_text_put(text, "\n\n## Parameters\n\n");
    for (const struct pe_param *row = info->params; row->name; row++)
        put_param(text, row);
    api_text_put(text, "\n## Outputs\n\n");
    for (const struct pe_output_row *row = info->outputs; row && row->name; row++)
        if (pe_output_suits(row, info))
            api_text_format(text, "- `%s` `[%s]`: %s\n", row->name, row->shape, pe_summary_in(PE_EN, &row->about));
    api_text_format(text, "\n## Example\n\n```json\n%s\n```\n", info->example);
}

static void put_config(struct api_text *text, const struct pe_preset_layer *layer)
{
    struct pe_value config = {.kind = PE_OBJECT, .object = {layer->fields, layer->n_fields}};
    if (layer->layer_type)
        api_text_format(text, "\nLayers `%s`:\n", layer->layer_type);
    api_text_put(text, "\n```json\n");
    api_text_value(text, &config);
    api_text_put(text, "\n```\n");
}

static void put_preset(struct api_text *text, const char *name, const struct pe_preset *preset)
{
    api_text_format(text, "# %s\n", name);
    if (preset->label)
        api_text_format(text, "\n%s\n", preset->label);
    for (size_t i = 0; i < preset->n_layers; i++)
        put_config(text, &preset->layers[i]);
    if (preset->source)
        api_text_format(text, "\nSource: %s\n", preset->source);
    if (pe_certainty_name(preset->certainty) && preset->label)
        api_text_format(text, "\nCertainty: %s\n", pe_certainty_name(preset->certainty));
    if (preset->note)
        api_text_format(text, "\n%s\n", preset->note);
}

/* ---- The list ---- */

static void put_entry(struct api_text *text, const char *place, const char *name, const char *title, bool *first)
{
    api_text_put(text, *first ? "{\"uri\":\"" : ",{\"uri\":\"");
    api_text_format(text, "%s%s\"", place, name);
    api_text_member(text, "name", name);
    if (title)
        api_text_member(text, "title", title);
    api_text_put(text, ",\"mimeType\":\"text/markdown\"}");
    *first = false;
}

static void put_stored(struct api_text *text, const struct api_store *store, bool *first)
{
    const struct api_weights **cards = store ? malloc(store->files_max * sizeof *cards) : NULL;
    size_t n = cards ? store->list(store->self, cards) : 0;
    if (store && !cards)
        text->state = API_TEXT_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        if (!pe_preset_find(cards[i]->name))
            put_entry(text, PRESETS, cards[i]->name, NULL, first);
        store->drop_card(store->self, cards[i]);
    }
    free(cards);
}

void api_mcp_resources_print(struct api_text *text, const struct api_request *request)
{
    bool first = true;
    api_text_put(text, "\"resources\":[");
    for (size_t i = 0; i < pe_n_schemes(); i++)
        put_entry(text, SCHEMES, pe_scheme_at(i)->name, pe_label_in(PE_EN, &pe_scheme_at(i)->about), &first);
    for (size_t i = 0; i < pe_n_presets(); i++)
        put_entry(text, PRESETS, pe_preset_at(i)->name, pe_preset_at(i)->label, &first);
    put_stored(text, request->host->presets, &first);
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
    const struct api_weights *file = NULL;
    struct api_wanted wanted = {.name = name};
    if (!store || !api_weight_name_is_valid(name) || store->find(store->self, &wanted, &file) != API_FOUND)
        return false;
    put_preset(text, file->name, &file->preset->preset);
    store->release(store->self, file);
    return true;
}

static bool put_text(struct api_text *text, const struct api_request *request, const char *uri, bool *is_private)
{
    const char *scheme = after(uri, SCHEMES), *preset = after(uri, PRESETS);
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
    const char *scheme = after(uri, SCHEMES), *preset = after(uri, PRESETS), *names[128];
    char buffer[API_WEIGHT_NAME_MAX + 1];
    const char *nearest = preset ? api_preset_nearest(request->host->presets, preset, buffer) : NULL;
    size_t n = 0;
    for (; scheme && n < pe_n_schemes() && n + 1 < sizeof names / sizeof *names; n++)
        names[n] = pe_scheme_at(n)->name;
    names[n] = NULL;
    if (scheme)
        nearest = pe_nearest(scheme, names);
    if (nearest)
        return api_mcp_fail(message, API_MCP_NO_PARAMS, "nothing is at %.160s; nearest: %s%s", uri,
                            scheme ? SCHEMES : PRESETS, nearest);
    return api_mcp_fail(message, API_MCP_NO_PARAMS, "nothing is at %.160s; resources/list lists what there is", uri);
}

bool api_mcp_resource_read(struct api_text *text, const struct api_request *request, struct api_mcp_message *message)
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
    api_text_put(text, "\"contents\":[{\"uri\":");
    api_text_string(text, uri);
    api_text_put(text, ",\"mimeType\":\"text/markdown\",\"text\":");
    api_text_string_n(text, markdown.bytes, markdown.n);
    api_text_put(text, "}]");
    api_mcp_cache(text, message, 60, is_private || request->call->access != API_ACCESS_OPEN);
    text->state = markdown.state ? markdown.state : text->state;
    api_text_drop(&markdown);
    return true;
}
