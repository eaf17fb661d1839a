/* Accept, Accept-Language and Accept-Encoding: any text selects one format, or none, one language, and one coding, or
 * none. These changes do not affect the choice: the case of letters, empty elements of the list and, outside of quotes,
 * a repeated list or a range of weight 0. */
#define _GNU_SOURCE /* strcasestr */
#include "tests/fuzz/laws.h"
#include "api/requests/requests.h"

#include <ctype.h>

static bool is_among_ours(const struct api_format *format)
{
    for (size_t i = 0; i < api_n_formats(); i++)
        if (api_format_at(i) == format)
            return true;
    return format == NULL;
}

/* What is chosen by a list with more before and after it. */
struct choice {
    const struct api_format *format;
    enum pe_lang lang;
    enum api_coding coding;
};

static struct choice choose(const char *before, const char *list, const char *after)
{
    size_t room = strlen(before) + strlen(list) + strlen(after) + 1;
    char *text = malloc(room);
    snprintf(text, room, "%s%s%s", before, list, after);
    struct choice c = {.format = api_negotiate(text), .lang = PE_N_LANGS, .coding = api_coding_choose(text)};
    REQUIRE(api_lang_choose(NULL, &(struct api_call){.accept_language = text}, &c.lang, NULL) && c.lang < PE_N_LANGS);
    free(text);
    return c;
}

static bool is_same(struct choice a, struct choice b)
{
    return a.format == b.format && a.lang == b.lang && a.coding == b.coding;
}

/* A language of the greatest weight that comes first is chosen; one that we do not speak changes nothing; Chinese must
 * be asked for, or English excluded. */
static void check_languages(const char *list, enum pe_lang lang)
{
    REQUIRE(choose("", list, ",fr;q=0.5").lang == lang && choose("fr, ", list, "").lang == lang);
    REQUIRE(choose("zh, ", list, "").lang == PE_ZH && choose("en, ", list, "").lang == PE_EN);
    REQUIRE(lang == PE_EN || strcasestr(list, "zh") || strchr(list, '*') || strcasestr(list, "en"));
}

/* A coding that we do not have changes nothing; gzip must be asked for; none is left only where one is excluded. */
static void check_codings(const char *list, enum api_coding coding)
{
    REQUIRE(choose("", list, ",br;q=0.5").coding == coding && choose("br, ", list, "").coding == coding);
    REQUIRE(choose("gzip, ", list, "").coding == API_GZIP);
    REQUIRE(choose("gzip;q=0.5, identity, ", list, "").coding != API_NO_CODING);
    REQUIRE(coding != API_GZIP || strcasestr(list, "gzip") || strchr(list, '*'));
    REQUIRE(coding != API_NO_CODING || strchr(list, '0'));
}

static void other_case(char *text)
{
    for (; *text; text++)
        *text = (char)(isupper((unsigned char)*text) ? tolower((unsigned char)*text) : toupper((unsigned char)*text));
}

/* A list that is not empty and contains no quotes. */
static void check_list(const char *accept, const struct api_format *format)
{
    char *with_comma = malloc(strlen(accept) + 2);
    sprintf(with_comma, ",%s", accept);
    REQUIRE(choose(accept, with_comma, "").format == format);
    free(with_comma);
    REQUIRE(choose(accept, ",", "no/thing;q=0.5").format == format);
    const struct api_format *one = api_format_at(strlen(accept) % api_n_formats());
    REQUIRE(choose(accept, ",", one->media_type).format || strcasestr(accept, one->media_type));
}

TEXT_TARGET(accept, size)
{
    const struct choice chosen = choose("", accept, "");
    bool is_empty = accept[strspn(accept, " \t,")] == '\0', is_quoted = strchr(accept, '"');
    REQUIRE(is_among_ours(chosen.format) && (chosen.format || !is_empty));
    if (!is_one_of(8))
        return;
    REQUIRE(is_same(choose(" , \t,", accept, ""), chosen));
    if (!is_quoted && !is_empty)
        check_list(accept, chosen.format);
    if (!is_quoted) {
        check_languages(accept, chosen.lang);
        check_codings(accept, chosen.coding);
    }
    other_case(accept);
    REQUIRE(is_same(choose("", accept, ""), chosen));
}
