/* Presets by name: the rows of presets.txt. */
#include "core/models/models.h"
#include "core/params.h"

#include <string.h>

enum { NAMES_MAX = 512 };

size_t pe_n_presets(void) { return pe_n_preset_rows; }

const struct pe_preset *pe_preset_at(size_t i) { return &pe_preset_rows[i]; }

const struct pe_preset *pe_preset_find(const char *name)
{
    if (strchr(name, '|')) /* it would match a piece of a list of aliases */
        return NULL;
    for (size_t i = 0; i < pe_n_presets(); i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        if (strcmp(preset->name, name) == 0 || pe_is_among(preset->aliases, name))
            return preset;
    }
    return NULL;
}

static void list_names(const char *names[NAMES_MAX])
{
    size_t n = 0;
    for (; n < pe_n_presets() && n + 1 < NAMES_MAX; n++)
        names[n] = pe_preset_at(n)->name;
    names[n] = NULL;
}

const char *pe_preset_nearest(const char *name)
{
    const char *names[NAMES_MAX];
    list_names(names);
    return pe_nearest(name, names);
}

const char *pe_preset_nearest_of_all(const char *text)
{
    const char *names[NAMES_MAX], *relative = pe_preset_relative(text);
    list_names(names);
    return relative ? relative : pe_nearest_of_all(text, names);
}

const char *pe_certainty_name(enum pe_certainty certainty)
{
    static const char *const names[] = {[PE_SEEN_CHECKPOINT] = "checkpoint",
                                        [PE_CLASS_DEFAULT] = "class default",
                                        [PE_UNVERIFIED] = "unverified",
                                        [PE_UNSTATED] = NULL};
    return names[certainty];
}
