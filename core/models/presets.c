/* Presets by name: the tables of rows, one after the other. */
#include "core/models/field.h"
#include "core/params.h"

#include <string.h>

/* In the order of GET /presets. */
static const struct pe_preset_table *const tables[] = {
    &pe_presets_llama,      &pe_presets_qwen,     &pe_presets_phi,  &pe_presets_others,
    &pe_presets_multimodal, &pe_presets_absolute, &pe_presets_bias, &pe_presets_relative,
};

enum { N_TABLES = sizeof tables / sizeof *tables, NAMES_MAX = 256 };

size_t pe_n_presets(void)
{
    size_t n = 0;
    for (size_t i = 0; i < N_TABLES; i++)
        n += tables[i]->n;
    return n;
}

const struct pe_preset *pe_preset_at(size_t i)
{
    size_t t = 0;
    while (i >= tables[t]->n)
        i -= tables[t++]->n;
    return &tables[t]->rows[i];
}

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

const char *pe_preset_nearest(const char *name)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (; n < pe_n_presets() && n + 1 < NAMES_MAX; n++)
        names[n] = pe_preset_at(n)->name;
    names[n] = NULL;
    return pe_nearest(name, names);
}

const char *pe_certainty_name(enum pe_certainty certainty)
{
    static const char *const names[] = {[PE_SEEN_CHECKPOINT] = "checkpoint",
                                        [PE_CLASS_DEFAULT] = "class default",
                                        [PE_UNVERIFIED] = "unverified",
                                        [PE_UNSTATED] = NULL};
    return names[certainty];
}
