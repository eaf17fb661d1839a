/* Translations: binary search in the table that the build makes of zh.po. */
#include "core/params.h"

#include <assert.h>
#include <string.h>

extern const struct pe_translation pe_zh_rows[];
extern const size_t pe_n_zh_rows;

/* Texts of several parts that are put together before main, so that no table has them. */
static struct pe_translation joined[8];
static size_t n_joined;

void pe_text_add(const char *english, const char *chinese)
{
    assert(n_joined < sizeof joined / sizeof *joined);
    joined[n_joined++] = (struct pe_translation){english, "", chinese};
}

/* Before main, too. */
static const struct pe_translation *more_rows;
static size_t n_more_rows;

void pe_texts_add(const struct pe_translation *rows, size_t n)
{
    more_rows = rows;
    n_more_rows = n;
}

/* The first row whose English is not less than the text. */
static size_t first_of(const struct pe_translation *rows, size_t n, const char *english)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(rows[middle].english, english) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_context(const char *context, const char *kind, const char *of)
{
    size_t n = strlen(kind);
    return strncmp(context, kind, n) == 0 && strcmp(context + n, of) == 0;
}

/* Without a context sorts before every context, so it is found first and kept unless a row has the very context. */
const char *pe_translation_find(const struct pe_translation *rows, size_t n, const char *english, const char *kind,
                                const char *of)
{
    const char *found = NULL;
    for (size_t i = first_of(rows, n, english); i < n && strcmp(rows[i].english, english) == 0; i++)
        if (*rows[i].context == '\0' || is_context(rows[i].context, kind, of))
            found = rows[i].chinese;
    return found;
}

static const char *find_text(enum pe_lang lang, const char *english, const char *kind, const char *of)
{
    for (size_t i = 0; lang == PE_ZH && i < n_joined; i++)
        if (joined[i].english == english)
            return joined[i].chinese;
    const char *found = lang == PE_ZH ? pe_translation_find(pe_zh_rows, pe_n_zh_rows, english, kind, of) : NULL;
    if (lang == PE_ZH && !found)
        found = pe_translation_find(more_rows, n_more_rows, english, kind, of);
    return found ? found : english;
}

const char *pe_text_in(enum pe_lang lang, const char *english) { return find_text(lang, english, "", ""); }

static _Thread_local enum pe_lang spoken = PE_EN;

void pe_speak_in(enum pe_lang lang) { spoken = lang; }

enum pe_lang pe_spoken(void) { return spoken; }

const char *pe_text(const char *english) { return pe_text_in(pe_spoken(), english); }

const char *pe_label_in(enum pe_lang lang, const struct pe_about *about)
{
    return find_text(lang, about->label, "label: ", about->summary);
}

const char *pe_summary_in(enum pe_lang lang, const struct pe_about *about)
{
    return find_text(lang, about->summary, "summary: ", about->label);
}
