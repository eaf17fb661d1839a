/* Public models in the catalogue, and in answers that were made from one. */
#ifndef API_PRESETS_H
#define API_PRESETS_H

#include "api/json/text.h"

/* The members name, source, certainty and note of a preset, without the braces around them. */
void api_preset_about(struct api_text *text, const struct pe_preset *preset);

#endif
