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

static char *joined(const char *before, const char *list, const char *after)
{
    size_t room = strlen(before) + strlen(list) + strlen(after) + 1;
    char *text = malloc(room);
    snprintf(text, room, "%s%s%s", before, list, after);
    return text;
}

static const struct api_format *choose(const char *before, const char *list, const char *after)
{
    char *text = joined(before, list, after);
    const struct api_format *format = api_negotiate(text);
    free(text);
    return format;
}

static enum pe_lang speak(const char *before, const char *list, const char *after)
{
    enum pe_lang lang = PE_N_LANGS;
    char *text = joined(before, list, after);
    REQUIRE(api_lang_choose(NULL, &(struct api_call){.accept_language = text}, &lang, NULL) && lang < PE_N_LANGS);
    free(text);
    return lang;
}

static enum api_coding pack(const char *before, const char *list, const char *after)
{
    char *text = joined(before, list, after);
    enum api_coding coding = api_coding_choose(text);
    free(text);
    return coding;
}

/* A language of the greatest weight that comes first is chosen; one that we do not speak changes nothing; Chinese must
 * be asked for, or English excluded. */
static void check_languages(const char *list, enum pe_lang lang)
{
    REQUIRE(speak(" , \t,", list, "") == lang);
    if (strchr(list, '"'))
        return;
    REQUIRE(speak("", list, ",fr;q=0.5") == lang && speak("fr, ", list, "") == lang);
    REQUIRE(speak("zh, ", list, "") == PE_ZH && speak("en, ", list, "") == PE_EN);
    REQUIRE(lang == PE_EN || strcasestr(list, "zh") || strchr(list, '*') || strcasestr(list, "en"));
}

/* A coding that we do not have changes nothing; gzip must be asked for; none is left only where one is excluded. */
static void check_codings(const char *list, enum api_coding coding)
{
    REQUIRE(pack(" , \t,", list, "") == coding);
    if (strchr(list, '"'))
        return;
    REQUIRE(pack("", list, ",br;q=0.5") == coding && pack("br, ", list, "") == coding);
    REQUIRE(pack("gzip, ", list, "") == API_GZIP && pack("gzip;q=0.5, identity, ", list, "") != API_NO_CODING);
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
    REQUIRE(choose(accept, with_comma, "") == format);
    free(with_comma);
    REQUIRE(choose(accept, ",", "no/thing;q=0.5") == format);
    const struct api_format *one = api_format_at(strlen(accept) % api_n_formats());
    REQUIRE(choose(accept, ",", one->media_type) != NULL || strcasestr(accept, one->media_type));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *accept = text_of(data, size);
    const struct api_format *format = api_negotiate(accept);
    bool is_empty = accept[strspn(accept, " \t,")] == '\0';
    REQUIRE(is_among_ours(format) && (format || !is_empty));
    if (is_one_of(8)) {
        REQUIRE(choose(" , \t,", accept, "") == format);
        if (!strchr(accept, '"') && !is_empty)
            check_list(accept, format);
        enum pe_lang lang = speak("", accept, "");
        check_languages(accept, lang);
        enum api_coding coding = pack("", accept, "");
        check_codings(accept, coding);
        other_case(accept);
        REQUIRE(speak("", accept, "") == lang && pack("", accept, "") == coding);
        REQUIRE(api_negotiate(accept) == format);
    }
    free(accept);
    return 0;
}
