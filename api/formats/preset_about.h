/* The description of a public model in the catalogue and in the answers computed from it. */
#ifndef API_FORMATS_PRESET_ABOUT_H
#define API_FORMATS_PRESET_ABOUT_H

#include "api/text.h"

/* The members name, source, certainty and note of a preset, without the braces around them. */
void api_preset_about(struct api_text *text, const struct pe_preset *preset);
/* The same for the catalogue, with the note in lang and as note_zh in Chinese. */
void api_preset_about_in(struct api_text *text, const struct pe_preset *preset, enum pe_lang lang);

#endif
