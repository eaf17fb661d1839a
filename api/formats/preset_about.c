/* The source of a preset, and how certain it is. */
#include "api/formats/format.h"

static void add_source(struct api_text *text, const struct pe_preset *preset)
{
    api_text_put(text, "\"name\":");
    api_text_string(text, preset->name);
    if (preset->source)
        api_text_member(text, "source", preset->source);
    if (pe_certainty_name(preset->certainty))
        api_text_member(text, "certainty", pe_certainty_name(preset->certainty));
}

void api_preset_about(struct api_text *text, const struct pe_preset *preset)
{
    add_source(text, preset);
    if (preset->note)
        api_text_member(text, "note", preset->note);
}

void api_preset_about_in(struct api_text *text, const struct pe_preset *preset, enum pe_lang lang)
{
    const char *zh = preset->label_zh ? preset->label_zh : preset->label;
    add_source(text, preset);
    api_text_pair(text, "label", preset->label, zh, lang);
    if (preset->note)
        api_text_pair(text, "note", preset->note, preset->note_zh, lang);
}
