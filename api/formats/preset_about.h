/* A public model, as the catalogue and the answers computed from it describe it. */
#ifndef API_FORMATS_PRESET_ABOUT_H
#define API_FORMATS_PRESET_ABOUT_H

#include "api/text.h"

/* The members name, source, certainty and note of a preset, without the braces around them. */
void api_preset_about(struct api_text *text, const struct pe_preset *preset);

#endif
