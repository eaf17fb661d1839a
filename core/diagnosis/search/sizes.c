/* More and fewer rows than the belief has, in the answer: how many there are, which are compared, and what is left out.
 */
#include "core/diagnosis/diagnosis.h"

#include <stdio.h>
#include <string.h>

/* Their sentences state what is measured. */
#define SIZE(name, label, summary)                                                                                     \
    const struct pe_fault pe_fault_##name = {FAULT_TEXT(#name, "finding", FINDING, 0, label, summary, summary)}
SIZE(rows_extra, "more than believed",
     "The tensor has more rows, batch rows, heads or channels than the configuration.");
SIZE(rows_missing, "fewer than believed",
     "The tensor has fewer rows, batch rows, heads or channels than the configuration.");

/* What is left out of the longer one, before and behind what is compared. */
static void put_left(struct pe_node *node, const struct pe_size *s, uint64_t n, uint64_t n_longer)
{
    static const char *const lists[] = {"rows", "batch_rows", "channels", "heads", "keys"};
    struct pe_node *list = pe_put_list(node, lists[s->of]);
    uint64_t end = s->first + n;
    if (s->first)
        pe_put_integers(list, NULL, (const int64_t[]){0, (int64_t)s->first - 1}, 2);
    if (end < n_longer)
        pe_put_integers(list, NULL, (const int64_t[]){(int64_t)end, (int64_t)n_longer - 1}, 2);
}

/* A tensor that is longer, by what is left; a size that is taken over; a belief that is longer. */
enum { MISSING = PE_LEFT_NONE + 1 };
static const char *const of_sizes[] = {
    "The tensor has %s %s, the configuration gives %s: %s %s to %s of the tensor are compared.",
    "The tensor has %s %s, the configuration gives %s: %s %s to %s of the tensor are compared, the others are zero.",
    "The tensor has %s %s, the configuration gives %s: %s %s to %s of the tensor are compared, the others are the same "
    "again (repeated).",
    "The tensor has %s %s, the configuration gives %s: %s %s to %s of the tensor are compared, the others go on from "
    "there.",
    "The tensor has %s %s, the configuration gives %s: it is compared with as many as the tensor has.",
    "The tensor has %s %s, the configuration gives %s: they are compared with %s %s to %s of the configuration.",
};

/* What there are more of, or fewer. */
static const char *const of_nouns[] = {"rows", "batch rows", "rotated channels", "heads", "keys"};

/* Of a config: head_dim as it is where it is not read. */
static bool is_of_hidden_size(const struct pe_diagnosis *d, uint64_t width)
{
    const struct pe_value *config = pe_field_find(d->request->fields, d->request->n_fields, "hf_config"),
                          *text = pe_stated(config, "text_config");
    const struct pe_value *hidden = pe_stated(text ? text : config, "hidden_size"),
                          *heads = pe_stated(text ? text : config, "num_attention_heads");
    return hidden && heads && pe_value_number(hidden) == (double)width * pe_value_number(heads);
}

static void write_size(enum pe_lang lang, const struct pe_size *s, bool is_of_hidden, char *text)
{
    bool is_more = s->n_found > s->n_believed, is_taken = s->left == PE_LEFT_NONE;
    uint64_t n = is_more ? s->n_believed : s->n_found,
             numbers[] = {s->n_found, s->n_believed, s->first, s->first + n - 1};
    char digits[4][24];
    for (size_t i = 0; i < 4; i++)
        snprintf(digits[i], sizeof digits[i], "%llu", (unsigned long long)numbers[i]);
    const char *noun = pe_text_in(lang, of_nouns[s->of]);
    const char *const parts[] = {digits[0], noun, digits[1], noun, digits[2], digits[3]};
    pe_part_write(text, pe_text_in(lang, of_sizes[is_more || is_taken ? (size_t)s->left : MISSING]), parts);
    size_t length = strlen(text);
    if (s->of == PE_SIZE_OF_CHANNELS && is_of_hidden)
        snprintf(text + length, PE_PART_SENTENCE - length,
                 pe_text_in(lang, " %llu is hidden_size / num_attention_heads: head_dim was not read."),
                 (unsigned long long)s->n_found);
}

/* "[1,4,6]" */
static void write_sides(const double *sides, unsigned n, char *text, size_t room)
{
    size_t at = (size_t)snprintf(text, room, "[");
    for (unsigned a = 0; a < n && at < room; a++)
        at += (size_t)snprintf(text + at, room - at, "%s%.0f", a ? "," : "", sides[a]);
    snprintf(text + at, room - at, "]");
}

static void put_sides(struct pe_node *node, const char *name, const double *sides, unsigned n)
{
    int64_t x[3] = {0};
    for (unsigned a = 0; a < n && a < 3; a++)
        x[a] = (int64_t)sides[a];
    pe_put_integers(node, name, x, n);
}

/* A grid, or a map, of other sides. */
static const char *const of_grid =
    "The tensor has %s rows, %s times the %s of the configuration: its grid is %s, that of the configuration %s.";
static const char *const of_table =
    "The table was not resized: the tensor has its %s rows, a grid of %s; the configuration resizes it to %s, %s rows.";
static const char *const of_map =
    "The tensor has %s queries and keys, the configuration gives %s: as many as the tensor has are compared.";

static void put_grid(struct pe_diagnosis *d, const struct pe_size *s, struct pe_node *list)
{
    enum { DIGITS = 64 };
    char text[PE_N_LANGS][PE_PART_SENTENCE], found[DIGITS], believed[DIGITS], n[DIGITS], times[DIGITS],
        n_believed[DIGITS];
    const char *const of_rows[] = {n, times, n_believed, found, believed}, *const of_sides[] = {n, found, believed,
                                                                                                n_believed};
    const char *const *parts = s->of == PE_SIZE_OF_TABLE ? of_sides : s->of == PE_SIZE_OF_GRID ? of_rows : of_rows + 3;
    const char *sentence = s->of == PE_SIZE_OF_TABLE ? of_table : s->of == PE_SIZE_OF_GRID ? of_grid : of_map;
    const struct pe_fault *fault = s->of == PE_SIZE_OF_TABLE    ? pe_fault_of(PE_ROLE_NOT_RESIZED)
                                   : s->n_found > s->n_believed ? &pe_fault_rows_extra
                                                                : &pe_fault_rows_missing;
    struct pe_node *node = pe_part_finding(d, list, fault, 0);
    put_sides(node, "found", s->sides, s->n_sides);
    put_sides(node, "believed", s->believed_sides, s->n_sides);
    pe_put_null(node, "meaning");
    write_sides(s->sides, s->n_sides, found, sizeof found);
    write_sides(s->believed_sides, s->n_sides, believed, sizeof believed);
    snprintf(n, sizeof n, "%llu", (unsigned long long)s->n_found);
    snprintf(times, sizeof times, "%.4g", (double)s->n_found / (double)s->n_believed);
    snprintf(n_believed, sizeof n_believed, "%llu", (unsigned long long)s->n_believed);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++)
        pe_part_write(text[lang], pe_text_in(lang, sentence), parts);
    pe_part_sentence(d, node, text);
}

static void put_size(struct pe_diagnosis *d, const struct pe_size *s, struct pe_node *list)
{
    if (s->of >= PE_SIZE_OF_MAP) {
        put_grid(d, s, list);
        return;
    }
    static const char *const lefts[] = {"other", "zero", "repeated", "going_on", "other"};
    char text[PE_N_LANGS][PE_PART_SENTENCE];
    bool is_more = s->n_found > s->n_believed;
    struct pe_node *node = pe_part_finding(d, list, is_more ? &pe_fault_rows_extra : &pe_fault_rows_missing, 0),
                   *found = pe_put_object(node, "found");
    pe_put_integer(found, "n", (int64_t)s->n_found);
    put_left(found, s, is_more ? s->n_believed : s->n_found, is_more ? s->n_found : s->n_believed);
    pe_put_string(found, "are", is_more ? lefts[s->left] : "missing");
    pe_put_integer(node, "believed", (int64_t)s->n_believed);
    pe_put_null(node, "meaning");
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++)
        write_size(lang, s, is_of_hidden_size(d, s->n_found), text[lang]);
    pe_part_sentence(d, node, text);
}

void pe_answer_sizes(struct pe_diagnosis *d, struct pe_node *list)
{
    for (size_t i = 0; !d->as_believed && i < d->evidence.n_sizes; i++)
        put_size(d, &d->evidence.sizes[i], list);
}
