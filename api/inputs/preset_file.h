/* A stored preset, as the store keeps it: {"config":{"scheme":…},"source":"…","note":"…","stored_by":"…",
 * "stored_at":"…"}, all but config optional. Its name is that of its file. */
#ifndef API_PRESET_FILE_H
#define API_PRESET_FILE_H

#include "api/api.h"

struct api_text;

/* One that has been read. */
struct api_kept_preset {
    struct pe_preset preset; /* without its name */
    const char *members;     /* as api_preset_members writes them */
};

/* The members that a file has. config is an object; the texts may be NULL. */
struct api_preset_members {
    const struct pe_value *config;
    const char *source, *note, *stored_by, *stored_at;
};
/* Writes them as members, without the braces around them. */
void api_preset_members(struct api_text *text, const struct api_preset_members *members);

/* The members of one that is stored, under a name: an entry of GET /presets. */
void api_preset_kept(struct api_text *text, const char *name, const struct api_kept_preset *kept);

/* The name that is nearest, built in or stored; buffer has API_WEIGHT_NAME_MAX + 1 bytes. NULL: none is near. presets
 * may be NULL. */
const char *api_preset_nearest(const struct api_store *presets, const char *name, char *buffer);

#endif
