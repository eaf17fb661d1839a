/* GET /presets and /presets/{name}: public models by name, as requests that a client can send with POST, with notes in
 * two languages. */
#include "api/formats/preset_about.h"
#include "api/replies/language.h"
#include "api/requests/lang.h"
#include "api/routes.h"

#include <string.h>

static void add_config(struct api_text *text, const struct pe_preset_layer *layer)
{
    struct pe_value config = {.kind = PE_OBJECT, .object = {layer->fields, layer->n_fields}};
    api_text_put(text, "\"config\":");
    api_text_value(text, &config);
}

/* The layers of other types than the first; `config` shows the first. */
static void add_layers(struct api_text *text, const struct pe_preset *preset)
{
    api_text_put(text, ",\"layers\":[");
    for (size_t i = 0; i < preset->n_layers; i++) {
        api_text_put(text, i ? ",{\"layer_type\":" : "{\"layer_type\":");
        api_text_string(text, preset->layers[i].layer_type);
        api_text_put(text, ",");
        add_config(text, &preset->layers[i]);
        api_text_put(text, "}");
    }
    api_text_put(text, "]");
}

static void add_preset(struct api_text *text, const struct pe_preset *preset, enum pe_lang lang)
{
    api_text_put(text, "{");
    api_preset_about_in(text, preset, lang);
    api_text_aliases(text, preset->aliases);
    api_text_put(text, ",");
    add_config(text, preset->layers);
    if (preset->n_layers > 1)
        add_layers(text, preset);
    api_text_put(text, "}");
}

static void print_presets(struct api_text *text, const void *about)
{
    enum pe_lang lang = *(const enum pe_lang *)about;
    api_text_put(text, "{\"presets\":[");
    for (size_t i = 0; i < pe_n_presets(); i++) {
        api_text_add(text, ",", i > 0);
        add_preset(text, pe_preset_at(i), lang);
    }
    api_text_put(text, "]}");
}

struct api_reply *api_presets(const struct api_asked *asked)
{
    static struct api_document documents[PE_N_LANGS] = {
        [PE_EN] = {.print = print_presets}, [PE_ZH] = {.print = print_presets}};
    struct api_problem problem;
    enum pe_lang lang;
    if (!api_lang_of_query(asked->call, &lang, &problem))
        return api_reply_problem(&problem);
    return api_reply_set_language(api_reply_document(&documents[lang], &lang), lang);
}

enum { NAMES_MAX = 256 };

static struct api_reply *unknown_preset(const char *name)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (; n < pe_n_presets() && n + 1 < NAMES_MAX; n++)
        names[n] = pe_preset_at(n)->name;
    names[n] = NULL;
    const char *nearest = pe_nearest(name, names);
    struct api_problem problem;
    if (nearest)
        api_fail(&problem, 404, "", "unknown preset \"%.64s\"; nearest: \"%s\"", name, nearest);
    else
        api_fail(&problem, 404, "", "unknown preset \"%.64s\"; GET /presets lists them", name);
    return api_reply_problem(&problem);
}

struct api_reply *api_preset(const struct api_asked *asked)
{
    const struct pe_preset *preset = pe_preset_find(asked->name);
    struct api_problem problem;
    struct api_text text;
    enum pe_lang lang;
    if (!preset)
        return unknown_preset(asked->name);
    if (!api_lang_of_query(asked->call, &lang, &problem))
        return api_reply_problem(&problem);
    api_text_init(&text, API_TEXT_MAX);
    add_preset(&text, preset, lang);
    return api_reply_set_language(api_reply_text(200, api_json_type, &text), lang);
}
