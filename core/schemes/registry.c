/* All schemes by name: the list is core/schemes/list.h. */
#include "core/scheme.h"

#include <strings.h>

#define SCHEME(name) extern const struct pe_scheme pe_scheme_##name;
#include "core/schemes/list.h"
#undef SCHEME

static const struct pe_scheme *const schemes[] = {
#define SCHEME(name) &pe_scheme_##name,
#include "core/schemes/list.h"
#undef SCHEME
};

size_t pe_n_schemes(void) { return sizeof schemes / sizeof *schemes; }

const struct pe_scheme_info *pe_scheme_at(size_t i) { return &schemes[i]->info; }

const struct pe_scheme *pe_scheme_get(const char *name)
{
    const char *meant = pe_scheme_meant(name);
    for (size_t i = 0; i < pe_n_schemes(); i++)
        if (strcasecmp(schemes[i]->info.name, meant ? meant : name) == 0)
            return schemes[i];
    return NULL;
}

const struct pe_scheme_info *pe_scheme_find(const char *name)
{
    const struct pe_scheme *scheme = pe_scheme_get(name);
    return scheme ? &scheme->info : NULL;
}
