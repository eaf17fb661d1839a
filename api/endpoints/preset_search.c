/* GET /presets, the list, and GET /presets?query=…&scheme=…&limit=…: the presets that have every word of the query, as
 * a word or the beginning of one: "wan" is not in "Vaswani". There are some hundred of the program and at most a
 * thousand stored ones, so each is looked at; nothing is indexed.
 *
 * The preset that the whole query names comes first, as a preset or as people name its model (core/models/names.c);
 * then names that begin with the first word, then those that have whole words, then the others, each in the order of
 * the catalogue. If there are none, the nearest name is stated. With format=text, or Accept: text/plain, a line each
 * for a person: name, certainty, label. */
#define _GNU_SOURCE /* strcasestr */
#include "api/endpoints/endpoints.h"
#include "api/inputs/inputs.h"
#include "api/replies/replies.h"
#include "api/requests/requests.h"
#include "api/routes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LIMIT_MAX = 1000, WORDS_MAX = 16 };

struct search {
    struct api_request *request;
    enum pe_lang lang;
    struct api_text *out;
    char *query, *scheme, *limit, *format; /* of the call; NULL: not given */
    const char *words[WORDS_MAX];          /* of query, which is cut at its spaces */
    size_t n_words;
    char *whole;                    /* the query as it was given */
    const struct pe_preset *wanted; /* of the program, which it names; NULL: none */
    bool is_text;
    size_t n_most, n_found, n_printed;
    const struct api_stored_file **cards; /* of the stored presets, held */
    size_t n_cards;
};

/* One preset, of the program or stored. */
struct entry {
    const char *name;
    const struct pe_preset *preset;
    const struct api_stored_preset *kept; /* NULL: of the program */
};

/* ---- What is asked ---- */

static bool read_limit(struct search *s)
{
    char *end = s->limit;
    unsigned long n = s->limit && *s->limit >= '0' && *s->limit <= '9' ? strtoul(s->limit, &end, 10) : 0;
    s->n_most = s->limit ? n : SIZE_MAX;
    if (!s->limit || (end > s->limit && !*end && n <= LIMIT_MAX))
        return true;
    return api_fail(&s->request->problem, 422, "/limit", "limit is \"%.32s\"; allowed: an integer from 0 to %d",
                    s->limit, LIMIT_MAX);
}

static bool read_scheme(struct search *s)
{
    if (!s->scheme || pe_scheme_find(s->scheme))
        return true;
    return api_scheme_absent(422, "/scheme", s->scheme, &s->request->problem);
}

static bool read_words(struct search *s)
{
    char *rest = NULL;
    s->whole = s->query ? strdup(s->query) : NULL;
    if (s->query && !s->whole)
        return api_fail_memory(&s->request->problem);
    s->wanted = s->whole && *s->whole ? pe_preset_named(s->whole) : NULL;
    for (char *word = s->query ? strtok_r(s->query, " \t\r\n", &rest) : NULL; word;
         word = strtok_r(NULL, " \t\r\n", &rest)) {
        if (s->n_words == WORDS_MAX)
            return api_fail(&s->request->problem, 422, "/query", "query has more than %d words", WORDS_MAX);
        s->words[s->n_words++] = word;
    }
    return true;
}

/* ---- What matches ---- */

/* A letter and a digit are of two words, as "qwen3" is of qwen and 3. What is not ASCII has no words. */
static bool is_between(char before, char after)
{
    bool is_letter = isalpha((unsigned char)before), is_digit = isdigit((unsigned char)before);
    return !(isalnum((unsigned char)after) && (is_letter || is_digit)) ||
           is_letter != (isalpha((unsigned char)after) != 0);
}

/* Whether text has the word, in upper or lower case of ASCII: 0 not, 1 at the beginning of a word, 2 as a word. */
static int has(const char *text, const char *word)
{
    size_t n = strlen(word);
    int best = 0;
    for (const char *at = text; at && best < 2 && (at = strcasestr(at, word)); at++)
        if (at == text || is_between(at[-1], *at)) {
            int found = !at[n] || is_between(at[n - 1], at[n]) ? 2 : 1;
            best = found > best ? found : best;
        }
    return best;
}

static int has_word(const struct pe_preset *p, const char *name, const char *word)
{
    const char *const texts[] = {name, p->aliases, p->label, p->label_zh, p->source, p->note, p->note_zh};
    int best = 0;
    for (size_t i = 0; best < 2 && i < sizeof texts / sizeof *texts; i++) {
        int found = has(texts[i], word);
        best = found > best ? found : best;
    }
    return best;
}

static const char *scheme_of(const struct pe_preset_layer *layer)
{
    for (size_t i = 0; i < layer->n_fields; i++)
        if (strcmp(layer->fields[i].name, "scheme") == 0)
            return layer->fields[i].value.string;
    return "";
}

static bool has_scheme(const struct pe_preset *preset, const char *scheme)
{
    for (size_t i = 0; i < preset->n_layers; i++)
        if (strcmp(scheme_of(&preset->layers[i]), scheme) == 0)
            return true;
    return false;
}

/* 0: the one that is named, 1: a name that begins with the first word, 2: it has all as whole words, 3: any other. */
enum { N_RANKS = 4 };

/* N_RANKS: it does not match. */
static int rank_of(const struct search *s, const struct entry *entry)
{
    int least = 2;
    if (s->scheme && !has_scheme(entry->preset, pe_scheme_find(s->scheme)->name))
        return N_RANKS;
    if (s->wanted == entry->preset || (s->n_words == 1 && strcasecmp(entry->name, s->words[0]) == 0))
        return 0;
    for (size_t i = 0; i < s->n_words; i++) {
        int found = has_word(entry->preset, entry->name, s->words[i]);
        least = found < least ? found : least;
    }
    if (!least)
        return N_RANKS;
    if (s->n_words && strncasecmp(entry->name, s->words[0], strlen(s->words[0])) == 0)
        return 1;
    return s->n_words && least == 2 ? 2 : 3;
}

/* ---- The answer ---- */

static void print_line(struct search *s, const struct entry *entry)
{
    const struct pe_preset *preset = entry->preset;
    const char *label = s->lang == PE_ZH && preset->label_zh ? preset->label_zh : preset->label;
    const char *certainty = pe_certainty_name(preset->certainty);
    api_text_format(s->out, "%-24s %-14s %s\n", entry->name, certainty ? certainty : "", label ? label : "");
    s->n_printed++;
}

static void print_entry(struct search *s, const struct entry *entry)
{
    s->n_printed++;
    api_text_open(s->out, NULL, '{');
    if (entry->kept)
        api_preset_stored(s->out, entry->name, entry->kept);
    else
        api_preset_print(s->out, entry->preset, s->lang);
    api_text_member(s->out, "scheme", scheme_of(entry->preset->layers));
    api_text_close(s->out, '}');
}

static void try_entry(struct search *s, const struct entry *entry, int rank)
{
    if (pe_is_cancelled() || rank_of(s, entry) != rank)
        return;
    s->n_found++;
    if (s->n_printed < s->n_most && s->is_text)
        print_line(s, entry);
    else if (s->n_printed < s->n_most)
        print_entry(s, entry);
}

/* By meaning: a preset of the scheme that is meant, one of the same family; else by letters. */
static const char *nearest_of(const struct search *s, char *buffer)
{
    const char *nearest = api_preset_nearest(s->request->host->presets, s->words[0], buffer);
    return nearest ? nearest : pe_preset_nearest_of_all(s->whole);
}

static void print(struct search *s)
{
    char buffer[API_WEIGHT_NAME_MAX + 1];
    const char *nearest = NULL;
    if (!s->is_text)
        api_text_put(s->out, "{\"presets\":[");
    for (int rank = 0; rank < N_RANKS; rank++) {
        for (size_t i = 0; i < pe_n_presets(); i++)
            try_entry(s, &(struct entry){pe_preset_at(i)->name, pe_preset_at(i), NULL}, rank);
        for (size_t i = 0; i < s->n_cards; i++) {
            const struct api_stored_file *card = s->cards[i];
            if (!pe_preset_find(card->name)) /* a release may bring a preset of the same name: the program's wins */
                try_entry(s, &(struct entry){card->name, &card->preset->preset, card->preset}, rank);
        }
    }
    if (!s->n_found && s->n_words)
        nearest = nearest_of(s, buffer);
    if (s->is_text) {
        if (nearest)
            api_text_format(s->out, pe_text("no preset has these words; nearest: %s"), nearest);
        else if (!s->n_found) /* of this scheme */
            api_text_put(s->out, pe_text("no preset has these words"));
        api_text_add(s->out, "\n", !s->n_found);
        return;
    }
    api_text_close(s->out, ']');
    api_text_count(s->out, "total", (int64_t)s->n_found);
    if (nearest)
        api_text_member(s->out, "nearest", nearest);
    api_text_close(s->out, '}');
}

static bool hold_cards(struct search *s)
{
    const struct api_store *store = s->request->host->presets;
    if (!store)
        return true;
    s->cards = malloc(store->files_max * sizeof *s->cards);
    if (!s->cards)
        return api_fail_memory(&s->request->problem);
    s->n_cards = store->list(store->self, s->cards);
    return true;
}

/* With `query`, `scheme` or `limit`, or as text: those that match, the nearest name first. *type is the text's, NULL if
 * it is none of these. False: refused. */
static bool search(struct api_request *request, const char **type, struct api_text *text)
{
    struct search s = {.request = request, .lang = request->lang, .out = text};
    const char *query = s.request->call->query;
    struct api_problem *problem = &s.request->problem;
    bool fine =
        api_query_find(query, "query", &s.query, problem) && api_query_find(query, "scheme", &s.scheme, problem) &&
        api_query_find(query, "limit", &s.limit, problem) && api_query_find(query, "format", &s.format, problem) &&
        read_limit(&s) && read_scheme(&s) && read_words(&s);
    s.is_text =
        s.format ? strcmp(s.format, "text") == 0 : api_prefers(request->call->accept, "text/plain", api_json_type);
    bool is_search = s.is_text || s.query || s.scheme || s.limit;
    *type = !is_search ? NULL : s.is_text ? "text/plain; charset=utf-8" : api_json_type;
    api_text_init(text, API_TEXT_MAX);
    fine = fine && (!is_search || hold_cards(&s));
    if (fine && is_search)
        print(&s);
    const struct api_store *store = s.request->host->presets;
    for (size_t i = 0; i < s.n_cards; i++)
        store->drop_card(store->self, s.cards[i]);
    free(s.cards);
    free(s.query);
    free(s.whole);
    free(s.scheme);
    free(s.limit);
    free(s.format);
    return fine;
}

/* ---- All of them ---- */

static void print_presets(struct api_text *text, const void *about)
{
    api_text_put(text, "{\"presets\":[");
    for (size_t i = 0; i < pe_n_presets(); i++) {
        api_text_open(text, NULL, '{');
        api_preset_print(text, pe_preset_at(i), *(const enum pe_lang *)about);
        api_text_close(text, '}');
    }
    api_text_put(text, "]}");
}

static struct api_reply *list_of_program(enum pe_lang lang, const struct api_call *call)
{
    static struct api_document documents[PE_N_LANGS] = {
        [PE_EN] = {.print = print_presets}, [PE_ZH] = {.print = print_presets}};
    return api_reply_document(&documents[lang], &lang, call, "private, no-cache");
}

/* Those of the program are in one text, which is shared. */
static struct api_reply *list_of_all(const struct api_store *store, enum pe_lang lang, const struct api_call *call)
{
    enum { END = sizeof "]}" - 1 };
    struct api_reply *known = list_of_program(lang, NULL);
    if (known->status != 200)
        return known;
    uint64_t length = known->body->length;
    struct api_body *list = api_list_body_presets(store, known->body->bytes, (size_t)length - END);
    api_reply_free(known);
    if (!list || list->length > length)
        return api_stored_headers(api_reply_packed(list, call), NULL);
    list->drop(list); /* nothing is stored */
    return list_of_program(lang, call);
}

struct api_reply *api_presets(struct api_request *request)
{
    struct api_text text;
    const char *type; /* of a search */
    if (!api_lang_of_query(request->call, &request->lang, &request->problem) || !search(request, &type, &text))
        return NULL;
    const struct api_store *store = request->host->presets;
    enum pe_lang lang = request->lang;
    if (type)
        return api_stored_headers(api_reply_set_language(api_reply_text(200, type, &text), lang), NULL);
    struct api_reply *reply = store ? list_of_all(store, lang, request->call) : list_of_program(lang, request->call);
    return api_reply_set_language(reply, lang);
}
