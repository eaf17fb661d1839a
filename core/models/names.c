/* A preset by the name that people have for a model: an id of Hugging Face (`org/Name-7B-Instruct-AWQ`), a file
 * (`Name-Q4_K_M.gguf`), the folder of a snapshot (`models--org--Name/snapshots/<hash>`), a name of ollama (`name:7b`).
 *
 * A name is cut into words at - : / and the like, where a digit follows a letter ("llama3.1" is "llama", "3.1"), and
 * where two letters follow a digit. Those of names.txt may be dropped, and those before the last part of a path are. A
 * preset's name, or alias, must then be all that is left, in this order. So a name is never near: a size, a version or
 * a date that no preset has is left over, and the name is refused, with the presets of its family. Of several that fit,
 * the one for which fewest words are dropped is meant (`glm-4-9b-chat` is not `glm-4-9b`). */
#define _GNU_SOURCE /* memmem */
#include "core/models/models.h"
#include "core/params.h"
#include "core/values.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { WORDS_MAX = 64, HASH_MIN = 32, FITTING_MAX = 32, LIST_BYTES = 320 };

/* One word of a text; dropped ones may be several words as others count them ("Q4_K_M"). */
struct word {
    const char *text;
    size_t n;
    bool may_drop;
};

struct words {
    struct word at[WORDS_MAX];
    size_t n, n_kept;
    bool is_full; /* there are more, so nothing fits */
};

/* ---- The words of names.txt ---- */

static bool is_char(char c, const char *among) { return c && strchr(among, c); }

/* Does the word fit the n bytes of a pattern? # is digits and dots, @ a digit. */
static bool fits(const char *pattern, size_t n, const struct word *word)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t before = at;
        if (pattern[i] == '#')
            while (at < word->n && is_char(word->text[at], "0123456789."))
                at++;
        else if (at < word->n && (pattern[i] == '@' ? isdigit((unsigned char)word->text[at])
                                                    : tolower((unsigned char)word->text[at]) == pattern[i]))
            at++;
        if (at == before)
            return false;
    }
    return at == word->n;
}

static bool is_of(const char *name, const struct word *word)
{
    for (size_t i = 0; i < pe_n_name_rows; i++) {
        const char *words = pe_name_rows[i].words;
        if (!pe_same(pe_name_rows[i].name, name))
            continue;
        for (size_t n; *words; words += n + (words[n] == '|')) {
            n = strcspn(words, "|");
            if (fits(words, n, word))
                return true;
        }
    }
    return false;
}

static bool is_hash(const struct word *word)
{
    size_t n = 0;
    while (n < word->n && isxdigit((unsigned char)word->text[n]))
        n++;
    return n == word->n && n >= HASH_MIN;
}

/* ---- Words ---- */

static void add_word(struct words *words, const char *text, size_t n, bool drop)
{
    if (n && words->n == WORDS_MAX)
        words->is_full = true;
    else if (n)
        words->at[words->n++] = (struct word){text, n, drop};
    words->n_kept += n && !drop;
}

/* A dot is inside a number, or it separates: "v0.2.Q4_K_M", "FLUX.1". */
static bool separates(const char *text, size_t i, size_t n)
{
    if (text[i] != '.')
        return is_char(text[i], "-: ,()+=~");
    return !i || i + 1 == n || !isdigit((unsigned char)text[i - 1]) || !isdigit((unsigned char)text[i + 1]);
}

static bool add_dropped(struct words *words, const char *text, size_t n)
{
    struct word word = {text, n, true};
    bool drops = is_of("quantisation", &word) || is_of("tuning", &word) || is_of("file", &word) || is_hash(&word) ||
                 (!words->n_kept && is_of("maker", &word));
    if (drops)
        add_word(words, text, n, true);
    return drops;
}

/* Up to a digit behind a letter, or two letters behind a digit. */
static size_t part_length(const char *text, size_t n)
{
    size_t i = 1;
    for (; i < n; i++) {
        bool was_digit = isdigit((unsigned char)text[i - 1]), is_digit = isdigit((unsigned char)text[i]);
        bool begins_number = is_digit && !was_digit && text[i - 1] != '.';
        bool has_letters = i + 1 < n && isalpha((unsigned char)text[i]) && isalpha((unsigned char)text[i + 1]);
        if (begins_number || (was_digit && has_letters))
            break;
    }
    return i;
}

static void add_parts(struct words *words, const char *text, size_t n)
{
    for (size_t i = 0, part; i < n; i += part) {
        part = part_length(text + i, n - i);
        add_word(words, text + i, part, false);
    }
}

/* What no sign but _ separates. */
static void cut_unit(const char *text, size_t n, struct words *words)
{
    if (add_dropped(words, text, n))
        return;
    for (size_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && text[end] != '_';)
            end++;
        if (!add_dropped(words, text + i, end - i))
            add_parts(words, text + i, end - i);
    }
}

/* A preset's name, of which nothing is dropped. */
static void cut_name(const char *text, size_t n, struct words *words)
{
    words->n = words->n_kept = 0;
    words->is_full = false;
    for (size_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && text[end] != '_' && !separates(text, end, n);)
            end++;
        add_parts(words, text + i, end - i);
    }
}

/* One part of a path. */
static void cut(const char *text, size_t n, struct words *words)
{
    words->n = words->n_kept = 0;
    words->is_full = false;
    for (size_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && !separates(text, end, n);)
            end++;
        if (end > i)
            cut_unit(text + i, end - i, words);
    }
}

/* The parts of a path; "models--org--Name" is a path too. */
static void cut_path(const char *text, struct words *parts)
{
    *parts = (struct words){.n = 0};
    while (*text && *text != '?') {
        size_t n = strcspn(text, "/\\?");
        bool is_of_hub = strncmp(text, "models--", 8) == 0;
        for (const char *end; is_of_hub && (end = memmem(text, n, "--", 2)); text = end + 2) {
            add_word(parts, text, (size_t)(end - text), true);
            n -= (size_t)(end + 2 - text);
        }
        /* "Qwen_Qwen3-8B.gguf" is a path of two parts. */
        struct word organisation = {text, strcspn(text, "_"), true};
        bool has_two = organisation.n + 1 < n && is_of("organisation", &organisation);
        size_t rest = has_two ? organisation.n + 1 : 0;
        add_word(parts, text, has_two ? organisation.n : 0, true);
        add_word(parts, text + rest, n - rest, true);
        text += n + (text[n] == '/' || text[n] == '\\');
    }
}

/* Cuts the last part that has a word which is not dropped; its number. parts->n: there is none. */
static size_t cut_last(const struct words *parts, struct words *words)
{
    for (size_t i = parts->n; i-- > 0;) {
        cut(parts->at[i].text, parts->at[i].n, words);
        if (words->n_kept)
            return i;
    }
    return parts->n;
}

static bool is_same(const struct word *a, const struct word *b)
{
    return a->n == b->n && strncasecmp(a->text, b->text, a->n) == 0;
}

/* ---- Presets that fit ---- */

/* How many of the words are dropped for this name; SIZE_MAX: it does not fit. */
static size_t n_dropped(const struct words *words, const struct words *name)
{
    size_t n = 0, k = 0;
    for (size_t i = 0; i < words->n; i++)
        if (k < name->n && is_same(&words->at[i], &name->at[k]))
            k++;
        else if (words->at[i].may_drop)
            n++;
        else
            return SIZE_MAX;
    return k == name->n ? n : SIZE_MAX;
}

/* The names of a preset one after the other: its own, then its aliases; NULL behind the last. *n is the length. */
static const char *next_name(const struct pe_preset *preset, const char *before, size_t *n)
{
    const char *next = !before                  ? preset->name
                       : before == preset->name ? preset->aliases
                                                : before + *n + (before[*n] == '|');
    if (!next || !*next)
        return NULL;
    *n = strcspn(next, "|");
    return next;
}

/* The presets for which fewest words are dropped (*least; SIZE_MAX: there is none), n_max at most; their number. */
static size_t find_fitting(const struct words *words, const struct pe_preset **found, size_t n_max, size_t *least)
{
    size_t n_found = 0, n;
    *least = SIZE_MAX;
    struct words name;
    for (size_t i = 0; i < pe_n_presets() && !words->is_full; i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        for (const char *text = NULL; (text = next_name(preset, text, &n));) {
            cut_name(text, n, &name);
            size_t dropped = n_dropped(words, &name);
            bool is_again = n_found && dropped == *least && found[n_found - 1] == preset;
            if (dropped == SIZE_MAX || dropped > *least || is_again)
                continue;
            n_found = dropped < *least ? 0 : n_found;
            *least = dropped;
            if (n_found < n_max)
                found[n_found++] = preset;
        }
    }
    return n_found;
}

/* ---- Refusals ---- */

static void list_name(char list[LIST_BYTES], const char *name, size_t n)
{
    size_t used = strlen(list);
    if (used + n + 8 < LIST_BYTES)
        snprintf(list + used, LIST_BYTES - used, "%s%.*s", used ? ", " : "", (int)n, name);
    else if (used && list[used - 1] != '.')
        snprintf(list + used, LIST_BYTES - used, ", ...");
}

/* A row of names.txt that fits no worse than the presets do: what it can mean. One with a colon is only for names that
 * have a colon. */
static bool is_unclear(const struct words *words, const char *asked, size_t least, char list[LIST_BYTES])
{
    struct words name;
    const char *found = NULL;
    for (size_t i = 0; i < pe_n_name_rows; i++) {
        const struct pe_name_row *row = &pe_name_rows[i];
        cut_name(row->name, strlen(row->name), &name);
        size_t n = row->means && (strchr(asked, ':') || !strchr(row->name, ':')) ? n_dropped(words, &name) : SIZE_MAX;
        if (n == SIZE_MAX || n > least)
            continue;
        found = row->means;
        least = n;
    }
    for (size_t n; found && *found; found += n + (found[n] == '|')) {
        n = strcspn(found, "|");
        list_name(list, found, n);
    }
    return *list;
}

static void keep(const struct words *words, struct words *kept)
{
    *kept = (struct words){.n = 0};
    for (size_t i = 0; i < words->n; i++)
        if (!words->at[i].may_drop)
            add_word(kept, words->at[i].text, words->at[i].n, false);
}

/* How many words from first on begin a name of the preset, of those that are not dropped. */
static size_t n_alike(const struct words *kept, size_t first, const struct pe_preset *preset)
{
    struct words name;
    size_t most = 0, n;
    for (const char *text = NULL; (text = next_name(preset, text, &n));) {
        size_t k = 0;
        if (tolower((unsigned char)*text) != tolower((unsigned char)*kept->at[first].text))
            continue; /* most end here */
        cut_name(text, n, &name);
        while (k < name.n && first + k < kept->n && is_same(&kept->at[first + k], &name.at[k]))
            k++;
        most = k > most ? k : most;
    }
    return most;
}

/* A family: presets whose names begin with the same words. */
struct family {
    const struct word *first;
    size_t n; /* words */
    char list[LIST_BYTES];
};

/* The first of the presets that have most words from first on; *most is how many. NULL: none has one. */
static const struct pe_preset *find_alike(const struct words *kept, size_t first, size_t *most)
{
    const struct pe_preset *found = NULL;
    *most = 0;
    for (size_t i = 0; i < pe_n_presets(); i++) {
        size_t n = n_alike(kept, first, pe_preset_at(i));
        found = n > *most ? pe_preset_at(i) : found;
        *most = n > *most ? n : *most;
    }
    return found;
}

static size_t find_families(const struct words *kept, struct family families[2], const struct word **other)
{
    size_t n_families = 0;
    for (size_t first = 0, most; first < kept->n; first += most ? most : 1) {
        find_alike(kept, first, &most);
        if (!most && !*other)
            *other = &kept->at[first];
        if (!most || n_families == 2 || (n_families && is_same(families[0].first, &kept->at[first])))
            continue;
        struct family *family = &families[n_families++];
        *family = (struct family){&kept->at[first], most, ""};
        for (size_t i = 0; i < pe_n_presets(); i++)
            if (n_alike(kept, first, pe_preset_at(i)) == most)
                list_name(family->list, pe_preset_at(i)->name, strlen(pe_preset_at(i)->name));
    }
    return n_families;
}

static enum pe_status refuse_unknown(const char *asked, struct pe_failure *err)
{
    const char *nearest = pe_preset_nearest(asked);
    if (nearest)
        pe_fail(err, "/preset", "unknown preset \"%.64s\"; nearest: \"%s\"", asked, nearest);
    else
        pe_fail(err, "/preset", "unknown preset \"%.64s\"", asked);
    return pe_advise(err, PE_LIST_PRESETS, NULL);
}

/* At most half of it, so that two are in one sentence. */
static const char *shorten(char list[LIST_BYTES])
{
    enum { ROOM = LIST_BYTES * 5 / 8 };
    if (strlen(list) < ROOM)
        return list;
    list[ROOM] = '\0';
    char *comma = strrchr(list, ',');
    snprintf(comma ? comma : list, sizeof ", ...", ", ...");
    return list;
}

static bool is_end(char c) { return !c || is_char(c, "-: ,()+=~_/\\?"); }

/* Bytes of a family's name in the text that was asked: without the beginning of a word as "v" of "v0.4", unless nothing
 * else is left. */
static size_t whole_length(const struct family *family)
{
    const struct word *last = &family->first[family->n - 1];
    const char *begin = family->first->text;
    size_t n = (size_t)(last->text + last->n - begin), whole = n;
    while (whole && !is_end(begin[whole]))
        whole--;
    return whole ? whole : n;
}

/* What the family does not have, as a whole word: "v0.4". *other may begin earlier, behind the family's name. */
static size_t rest_length(const char *family, size_t n_family, const char **other)
{
    const char *end = family + n_family;
    size_t n = 0;
    while (*other > end && !is_end((*other)[-1]))
        --*other;
    while (!is_end((*other)[n]))
        n++;
    return n;
}

static enum pe_status refuse(const char *asked, const struct words *words, bool *is_foreign, struct pe_failure *err)
{
    struct words kept;
    struct family families[2];
    const struct word *unknown = NULL;
    keep(words, &kept);
    size_t n = find_families(&kept, families, &unknown);
    const char *other = unknown ? unknown->text : NULL;
    *is_foreign = !n;
    if (!n)
        return refuse_unknown(asked, err);
    const char *family = families[0].first->text;
    size_t n_family = whole_length(&families[0]), n_other = other ? rest_length(family, n_family, &other) : 0;
    if (n == 2)
        pe_fail(err, "/preset", "unknown preset \"%.64s\": two families have words of it; name one: %s; or: %s", asked,
                shorten(families[0].list), shorten(families[1].list));
    else if (other)
        pe_fail(err, "/preset", "unknown preset \"%.64s\": no preset of \"%.*s\" has \"%.*s\"; there are: %s", asked,
                (int)(n_family < 48 ? n_family : 48), family, (int)(n_other < 32 ? n_other : 32), other,
                families[0].list);
    else
        pe_fail(err, "/preset", "unknown preset \"%.64s\"; of its family there are: %s", asked, families[0].list);
    return pe_advise(err, PE_LIST_PRESETS, NULL);
}

/* ---- The name ---- */

static void put_dropped(struct pe_preset_name *out, const struct word *word)
{
    if (out->n_dropped < PE_NAME_DROPPED_MAX)
        out->dropped[out->n_dropped++] = (struct pe_name_word){word->text, word->n};
}

/* What is not the preset's: words of the part, the other parts whole. */
static void list_dropped(struct pe_preset_name *out, const struct words *parts, size_t part, const struct words *words)
{
    struct words name, best = {.n = 0};
    size_t least = SIZE_MAX, n, k = 0;
    for (const char *text = NULL; (text = next_name(out->preset, text, &n));) {
        cut_name(text, n, &name);
        size_t dropped = n_dropped(words, &name);
        if (dropped < least)
            best = name;
        least = dropped < least ? dropped : least;
    }
    for (size_t i = 0; i < part; i++)
        put_dropped(out, &parts->at[i]);
    for (size_t i = 0; i < words->n; i++)
        if (k < best.n && is_same(&words->at[i], &best.at[k]))
            k++;
        else
            put_dropped(out, &words->at[i]);
    for (size_t i = part + 1; i < parts->n; i++)
        put_dropped(out, &parts->at[i]);
}

enum pe_status pe_preset_name(const char *asked, struct pe_preset_name *out, struct pe_failure *err)
{
    const struct pe_preset *found[FITTING_MAX];
    struct words parts, words;
    char list[LIST_BYTES] = "";
    *out = (struct pe_preset_name){.asked = asked, .preset = pe_preset_find(asked)};
    if (out->preset)
        return PE_OK;
    out->is_foreign = true;
    if (strlen(asked) > PE_NAME_MAX)
        return refuse_unknown(asked, err);
    cut_path(asked, &parts);
    size_t part = cut_last(&parts, &words);
    if (part == parts.n)
        return refuse_unknown(asked, err);
    out->is_foreign = false;
    size_t least, n = find_fitting(&words, found, FITTING_MAX, &least);
    bool unclear = is_unclear(&words, asked, least, list);
    for (size_t i = 0; !unclear && n > 1 && i < n; i++)
        list_name(list, found[i]->name, strlen(found[i]->name));
    if (unclear || n > 1)
        return pe_fail(err, "/preset", "\"%.64s\" can mean several presets; name one of: %s", asked, list);
    if (!n)
        return refuse(asked, &words, &out->is_foreign, err);
    out->preset = found[0];
    out->is_resolved = true;
    list_dropped(out, &parts, part, &words);
    return PE_OK;
}

/* The first size in a text, "8b", "0.6B", "270m": its bytes; 0: there is none. */
static size_t size_in(const char **text)
{
    for (size_t n; **text; *text += n ? n : 1) {
        n = strspn(*text, "0123456789.");
        if (n && isdigit((unsigned char)**text) && (*text)[n] && strchr("bBmM", (*text)[n]) &&
            !isalnum((unsigned char)(*text)[n + 1]))
            return n + 1;
    }
    return 0;
}

bool pe_preset_is_of_size(const struct pe_preset *preset, const char *asked)
{
    const char *source = preset->source ? preset->source : "";
    size_t n = size_in(&asked);
    return !n || (size_in(&source) == n && strncasecmp(asked, source, n) == 0);
}

const struct pe_preset *pe_preset_named(const char *asked)
{
    struct pe_preset_name name;
    struct pe_failure ignored;
    return pe_preset_name(asked, &name, &ignored) == PE_OK ? name.preset : NULL;
}

const char *pe_preset_relative(const char *asked)
{
    struct words parts, words, kept;
    const struct pe_preset *preset = NULL;
    cut_path(asked, &parts);
    if (cut_last(&parts, &words) == parts.n)
        return NULL;
    keep(&words, &kept);
    for (size_t first = 0, most; !preset && first < kept.n; first++)
        preset = find_alike(&kept, first, &most);
    return preset ? preset->name : NULL;
}

void pe_preset_put_name(const struct pe_preset_name *name, struct pe_node *node)
{
    char text[PE_NAME_MAX + 1];
    if (!name->is_resolved)
        return;
    pe_put_string(node, "asked", name->asked);
    pe_put_string(node, "resolved", name->preset->name);
    struct pe_node *list = pe_put_list(node, "dropped");
    for (size_t i = 0; i < name->n_dropped; i++) {
        snprintf(text, sizeof text, "%.*s", (int)name->dropped[i].n, name->dropped[i].text);
        pe_put_string(list, NULL, text);
    }
}
