/* The rows of all model_types: found by name, and by likeness. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <stdio.h>
#include <string.h>

const struct pe_hf_model *pe_hf_model_find(const char *model_type)
{
    return strchr(model_type, '/') ? NULL : pe_hf_row_find(model_type);
}

const struct pe_hf_model *pe_hf_row_find(const char *name)
{
    for (size_t i = 0; i < pe_n_hf_type_rows; i++)
        if (pe_is_among(pe_hf_type_rows[i].types, name))
            return &pe_hf_type_rows[i];
    return NULL;
}

/* ---- The nearest names ---- */

enum { TYPES_MAX = 1200, TYPES_BYTES = 32768, NEAREST = 3 };

struct names {
    char text[TYPES_BYTES]; /* words with their ends */
    const char *list[TYPES_MAX + 1];
    size_t used, n;
};

static void add_types(struct names *names, const char *types)
{
    size_t n = strlen(types);
    if (names->used + n >= TYPES_BYTES)
        return;
    char *word = memcpy(names->text + names->used, types, n + 1);
    names->used += n + 1;
    for (char *bar = word; bar && names->n < TYPES_MAX; word = bar + 1) {
        bar = strchr(word, '|');
        if (bar)
            *bar = '\0';
        names->list[names->n++] = word;
        if (!bar)
            break;
    }
    names->list[names->n] = NULL;
}

static void drop(struct names *names, const char *name)
{
    size_t i = 0;
    while (names->list[i] != name)
        i++;
    memmove(&names->list[i], &names->list[i + 1], (names->n - i) * sizeof *names->list);
    names->n--;
}

void pe_hf_nearest_types(const char *model_type, char *out, size_t room)
{
    struct names names = {.n = 0};
    size_t used = 0;
    for (size_t i = 0; i < pe_n_hf_type_rows; i++)
        if (!strchr(pe_hf_type_rows[i].types, '/')) /* a part */
            add_types(&names, pe_hf_type_rows[i].types);
    *out = '\0';
    for (int i = 0; i < NEAREST && used < room; i++) {
        const char *nearest = *model_type ? pe_nearest(model_type, names.list) : NULL;
        if (!nearest)
            return;
        used += (size_t)snprintf(out + used, room - used, "%s\"%s\"", i ? ", " : "", nearest);
        drop(&names, nearest);
    }
}
