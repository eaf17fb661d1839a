/* The rules of the list, and the fields of an object `scaling`: the rows that rules share, joined with those of each
 * rule, and which rule uses which. */
#include "core/schemes/scalings/scaling.h"

#include <assert.h>
#include <stdio.h>

/* ---- The rules ---- */

#define SCALING(name) extern const struct pe_scaling_rule pe_scaling_##name;
#include "core/schemes/scalings/list.h"
#undef SCALING

const struct pe_scaling_rule *const pe_scaling_rules[PE_N_SCALINGS] = {
#define SCALING(name) &pe_scaling_##name,
#include "core/schemes/scalings/list.h"
#undef SCALING
};

size_t pe_n_scalings(void) { return PE_N_SCALINGS; }

struct pe_formula pe_scaling_formula(size_t i)
{
    return (struct pe_formula){pe_scaling_rules[i]->name, pe_scaling_rules[i]->formula};
}

const struct pe_scaling_rule *pe_scaling_find(const char *word)
{
    for (int i = 0; i < 2 * PE_N_SCALINGS && pe_scaling_words[i]; i++)
        if (pe_same(pe_scaling_words[i], word))
            return pe_scaling_rule_of_word(i);
    return NULL;
}

int pe_scaling_place(const struct pe_scaling_rule *rule)
{
    int place = 0;
    while (pe_scaling_at(place) != rule)
        place++;
    return place;
}

bool pe_scaling_needs(const struct pe_scaling_rule *rule, const char *field)
{
    for (const struct pe_scaling_need *need = rule->needs; need->name; need++)
        if (pe_same(need->name, field))
            return true;
    return false;
}

bool pe_scaling_takes(const struct pe_scaling_rule *rule, const char *field)
{
    return pe_is_among(rule->takes, field) || pe_scaling_needs(rule, field);
}

/* ---- The words of type: names, then other words ---- */

const char *pe_scaling_words[2 * PE_N_SCALINGS + 1];
unsigned char pe_scaling_of_word[2 * PE_N_SCALINGS];

static void set_words(void)
{
    size_t n = 0;
    for (int i = 0; i < PE_N_SCALINGS; pe_scaling_of_word[n++] = (unsigned char)i++)
        pe_scaling_words[n] = pe_scaling_at(i)->name;
    for (int i = PE_N_SCALINGS; i-- > 0;)
        if (pe_scaling_at(i)->alias) {
            pe_scaling_words[n] = pe_scaling_at(i)->alias;
            pe_scaling_of_word[n++] = (unsigned char)i;
        }
}

/* ---- Common rows ---- */

static const char *const conventions[] = {"transformers", "vllm", "tgi", "mlx", "ggml", NULL};

#define LENGTH_MAX 0x1p40

#define REAL(field, fallback_, min_, max_, ...) PE_P_REAL(pe_scaling, field, fallback_, min_, max_, __VA_ARGS__)

/* In texts, {…} is replaced by what the rules state: marks, below. */
static const struct pe_param first[] = {
    PE_P_WORD(pe_scaling, type, pe_scaling_words, "scaling rule", "rule that stretches the context. {rules}. {words}",
              .fallback = PE_UNSET_WORD, .level = PE_BASIC),
    PE_P_WORD(pe_scaling, rope_type, pe_scaling_words, "scaling rule, newer name",
              "Hugging Face's newer name for type; both may be given if they name the same rule",
              .fallback = PE_UNSET_WORD),
    PE_P_WORD(pe_scaling, convention, conventions, "library convention",
              "which library to follow where they compute differently. {conventions}"),
    REAL(factor, PE_UNSET, PE_SCALING_FACTOR_MIN, PE_SCALING_FACTOR_MAX, "scaling factor",
         "how many times longer the context becomes; default of {ratios}: "
         "max_position_embeddings/original_max_position_embeddings if both are given; of proportional: 1",
         .level = PE_BASIC, .usual = {1, 64}),
    REAL(max_position_embeddings, PE_UNSET, 1, LENGTH_MAX, "stretched length",
         "a number of positions: for dynamic the length where stretching begins, for other types the stretched length, "
         "used only to derive factor",
         .usual = {256, 262144}),
    REAL(original_max_position_embeddings, PE_UNSET, 1, LENGTH_MAX, "training length",
         "number of positions that the model was trained on; {trained} need it", .level = PE_BASIC,
         .usual = {256, 262144}),
    REAL(seq_len, PE_UNSET, 0, PE_SCALING_SEQ_LEN_MAX, "sequence length",
         "number of positions in the sequence, which decides dynamic's base and longrope's list, where the default is "
         "the "
         "largest position + 1, and riflex's frequency",
         .usual = {256, 1048576}),
    PE_P_END,
};

static const struct pe_param middle[] = {
    REAL(partial_rotary_factor, PE_UNSET, 0, 1, "share that keeps a frequency",
         "proportional: share of the head's pairs that keep a frequency, rounded down; the others get 0"),
    REAL(attention_factor, PE_UNSET, 1e-6, 1e6, "attention factor", "factor on cos and sin; default {factors}; else 1",
         .usual = {0.5, 2}),
    REAL(softmax_scale_factor, PE_UNSET, 1e-9, 1e9, "softmax scale factor",
         "the factor by which such models multiply the softmax scale, whose default has it; default for "
         "yarn with mscale_all_dim: m(factor, mscale_all_dim)^2 (DeepSeek-V3: 1.87385)",
         .usual = {0.5, 2}),
    REAL(rope_theta, PE_UNSET, 1e-3, 1e12, "wavelength base", "the base, if a pasted object has it",
         .usual = {100, 1e7}),
    PE_P_REALS(
        pe_scaling, divisors, 1e-6, 1e38, "divisors of frequencies",
        "default, linear and yarn with convention ggml: the rule acts on the frequency divided by this, which is "
        "0 for 1e20 or more: [pairs]. GGUF's rope_freqs"),
    PE_P_REALS(pe_scaling, mrope_section, 0, 65536, "pairs of each axis",
               "pairs of each axis (time, height, width), if a pasted object has them"),
    PE_P_VALUE(pe_scaling, mrope_interleaved, "interleave the axes",
               "true or false, if a pasted object has it: the axes alternate from pair to pair"),
    PE_P_END,
};

static const struct pe_param last[] = {
    PE_P_VALUE(pe_scaling, finetuned, "fine-tuned", "ignored; some pasted objects have it"),
    PE_P_END,
};

/* Common fields that every type may have. */
static const char free_fields[] = "type|rope_type|partial_rotary_factor|softmax_scale_factor|rope_theta|mrope_section|"
                                  "mrope_interleaved|finetuned";
/* … and those that an object may have without effect, as pasted objects often do. */
static const char quiet_fields[] = "convention|max_position_embeddings|original_max_position_embeddings";

/* ---- All rows ---- */

enum { N_ROWS_MAX = 63 };
struct pe_param pe_scaling_params[N_ROWS_MAX + 1];

/* Of each row: bits of the rules that take it (all for free fields), and whether other rules ignore it. */
static struct use {
    unsigned used;
    bool is_quiet;
} uses[N_ROWS_MAX];
static size_t n_rows;
_Static_assert(PE_N_SCALINGS < 32, "bits of an unsigned");

/* rule: whose own they are; -1: common rows. */
static void add_rows(const struct pe_param *rows, int rule, bool is_quiet)
{
    for (; rows && rows->name && n_rows < N_ROWS_MAX; rows++) {
        struct pe_param *row = &pe_scaling_params[n_rows];
        struct use *use = &uses[n_rows++];
        assert(rows->type != PE_T_BOOL && rows->type != PE_T_OBJECT); /* which cannot be unset */
        *row = *rows;
        row->group = PE_G_SCALING;
        row->offset += rule < 0 ? 0 : offsetof(struct pe_scaling, own) + (size_t)rule * sizeof(union pe_scaling_own);
        use->is_quiet = is_quiet || pe_is_among(quiet_fields, row->name);
        use->used = rule >= 0 ? 1U << rule : pe_is_among(free_fields, row->name) ? ~0U : 0;
        for (int i = 0; rule < 0 && i < PE_N_SCALINGS; i++)
            use->used |= pe_scaling_takes(pe_scaling_at(i), row->name) ? 1U << i : 0;
    }
}

static bool has_lists(const struct pe_scaling_rule *rule) { return rule->fields && rule->fields->type == PE_T_REALS; }

/* Lists are placed behind the numbers of all rules. */
static void add_all_rows(void)
{
    add_rows(first, -1, false);
    for (int lists = 0; lists < 2; lists++)
        for (int i = 0; i < PE_N_SCALINGS; i++)
            if (has_lists(pe_scaling_at(i)) == (lists > 0))
                add_rows(pe_scaling_at(i)->fields, i, false);
    add_rows(middle, -1, false);
    for (int i = 0; i < PE_N_SCALINGS; i++)
        add_rows(pe_scaling_at(i)->pasted, i, true);
    add_rows(last, -1, false);
}

/* ---- Texts of what the rules state ---- */

static char texts[1 << 14], *text_end = texts; /* those that are put together */

static void put_bytes(const char *text, size_t n)
{
    size_t left = (size_t)(texts + sizeof texts - 1 - text_end);
    n = n < left ? n : left;
    memcpy(text_end, text, n);
    text_end += n;
}

static void put_word(const char *text) { put_bytes(text, strlen(text)); }

/* "yarn", "yarn and longrope", "linear, ntk and yarn" from bits. */
static const char *names_of(unsigned used, const char *comma, const char *last_comma, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < PE_N_SCALINGS && at < room; i++) {
        unsigned later = used & ((1U << PE_N_SCALINGS) - 1) & ~((2U << i) - 1);
        const char *next = !later ? "" : later & (later - 1) ? comma : last_comma;
        if (used & 1U << i)
            at += (size_t)snprintf(out + at, room - at, "%s%s", pe_scaling_at(i)->name, next);
    }
    return out;
}

static bool has_ratio(const struct pe_scaling_rule *rule) { return rule->factor_is_ratio; }
static bool needs_original(const struct pe_scaling_rule *rule)
{
    return pe_scaling_needs(rule, "original_max_position_embeddings");
}

/* What replaces a mark: the names of some rules, or clauses of all, with or without their names. */
static const struct mark {
    const char *mark;
    bool (*has)(const struct pe_scaling_rule *);
    size_t clause;
    bool is_named;
    char after;        /* punctuation between them */
    bool is_backwards; /* as set_words has other words */
} marks[] = {
    {"{rules}", NULL, offsetof(struct pe_scaling_rule, about), true, '.', false},
    {"{words}", NULL, offsetof(struct pe_scaling_rule, alias_about), false, ',', true},
    {"{conventions}", NULL, offsetof(struct pe_scaling_rule, convention_about), true, '.', false},
    {"{factors}", NULL, offsetof(struct pe_scaling_rule, attention_about), false, ';', false},
    {"{ratios}", has_ratio, 0, false, ',', false},
    {"{trained}", needs_original, 0, false, ',', false},
};

/* Full-width punctuation is in escapes, as it is no text. */
static void put_clauses(const struct mark *mark, enum pe_lang lang)
{
    bool is_zh = lang == PE_ZH, is_first = true;
    const char *zh = mark->after == '.' ? "\u3002" : mark->after == ',' ? "\uFF0C" : "\uFF1B";
    const char *between = is_zh ? zh : (char[]){mark->after, ' ', '\0'};
    for (int i = 0; i < PE_N_SCALINGS; i++) {
        const struct pe_scaling_rule *rule = pe_scaling_at(mark->is_backwards ? PE_N_SCALINGS - 1 - i : i);
        const char *clause = *(const char *const *)(const void *)((const char *)rule + mark->clause);
        if (!clause)
            continue;
        put_word(is_first ? "" : between);
        put_word(mark->is_named ? rule->name : "");
        put_word(!mark->is_named ? "" : is_zh ? "\uFF1A" : ": ");
        put_word(pe_text_in(lang, clause));
        is_first = false;
    }
}

static void put_names(const struct mark *mark, enum pe_lang lang)
{
    char names[192];
    unsigned used = 0;
    for (int i = 0; i < PE_N_SCALINGS; i++)
        used |= mark->has(pe_scaling_at(i)) ? 1U << i : 0;
    put_word(names_of(used, lang == PE_ZH ? "\u3001" : ", ", pe_text_in(lang, " and "), names, sizeof names));
}

static const char *filled(const char *text, enum pe_lang lang)
{
    const char *start = text_end, *brace;
    for (; (brace = strchr(text, '{')); text = strchr(brace, '}') + 1) {
        put_bytes(text, (size_t)(brace - text));
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
            if (strncmp(brace, marks[i].mark, strlen(marks[i].mark)) == 0)
                (marks[i].has ? put_names : put_clauses)(&marks[i], lang);
    }
    put_word(text);
    *text_end++ = '\0';
    return start;
}

/* "yarn|deepseek_yarn": with their other words. */
static const char *joined(unsigned used)
{
    const char *start = text_end;
    for (int i = 0; pe_scaling_words[i]; i++)
        if (used & 1U << pe_scaling_of_word[i]) {
            put_word(text_end > start ? "|" : "");
            put_word(pe_scaling_words[i]);
        }
    *text_end++ = '\0';
    return start;
}

/* Before main: the tables are constant for whoever reads them. */
__attribute__((constructor)) static void join(void)
{
    set_words();
    add_all_rows();
    for (size_t i = 0; i < n_rows; i++)
        if (uses[i].used && uses[i].used != ~0U)
            pe_scaling_params[i].used_by = joined(uses[i].used);
    for (struct pe_param *row = pe_scaling_params; row->name; row++)
        if (strchr(row->about.summary, '{')) {
            const char *zh = filled(pe_summary_in(PE_ZH, &row->about), PE_ZH);
            row->about.summary = filled(row->about.summary, PE_EN);
            pe_text_add(row->about.summary, zh);
        }
}

/* ---- Checks of a request ---- */

/* The end of the refusal of an object without that field. */
static const char *hint_of(const struct pe_scaling_rule *rule, const char *name)
{
    for (const struct pe_scaling_need *need = rule->needs; need->name; need++)
        if (need->hint && pe_same(need->name, name))
            return need->hint;
    if (pe_same(name, "factor") && rule->factor_is_ratio)
        return ", or max_position_embeddings and original_max_position_embeddings, whose ratio it is";
    if (pe_same(name, "max_position_embeddings"))
        return " (a Hugging Face config has it beside the object)";
    if (pe_same(name, "original_max_position_embeddings"))
        return ", the length the model was trained on (a Hugging Face config may have it beside the object)";
    return "";
}

static bool is_set(const struct pe_param *row, const void *field)
{
    switch (row->type) {
    case PE_T_INT: return *(const int64_t *)field != PE_UNSET_INT;
    case PE_T_REAL: return !isnan(*(const double *)field);
    case PE_T_REALS: return ((const struct pe_reals *)field)->n > 0;
    case PE_T_WORD: return *(const int *)field != PE_UNSET_WORD;
    case PE_T_VALUE: return *(const struct pe_value *const *)field != NULL;
    case PE_T_BOOL: /* a flag is PE_P_VALUE, which can be unset */
    case PE_T_OBJECT: break;
    }
    return false;
}

/* The value that changes nothing: a row's default, or a factor of 1. */
static bool is_neutral(const struct pe_param *row, const void *field)
{
    double neutral = isnan(row->fallback) ? 1 : row->fallback;
    bool is_factor = pe_is_among("factor|attention_factor", row->name);
    if (row->type == PE_T_INT)
        return !isnan(row->fallback) && (double)*(const int64_t *)field == neutral;
    if (row->type == PE_T_REAL)
        return *(const double *)field == neutral && (is_factor || !isnan(row->fallback));
    if (row->type == PE_T_WORD)
        return *(const int *)field == (int)row->fallback;
    return row->type == PE_T_VALUE && (*(const struct pe_value *const *)field)->boolean == (row->fallback != 0);
}

static enum pe_status fail_unused(const struct pe_param *row, unsigned used, const void *field, const char *type,
                                  struct pe_failure *err)
{
    char pointer[PE_POINTER_MAX], found[32], names[96];
    snprintf(found, sizeof found, "%s", pe_text("given"));
    pe_scaling_pointer(pointer, row->name);
    if (row->type == PE_T_INT)
        snprintf(found, sizeof found, "%lld", (long long)*(const int64_t *)field);
    if (row->type == PE_T_REAL)
        snprintf(found, sizeof found, "%.10g", *(const double *)field);
    if (row->type == PE_T_VALUE)
        snprintf(found, sizeof found, "%s", row->fallback != 0 ? "false" : "true");
    return pe_fail(err, pointer, "%s is %s, but type is \"%s\"; %s is used by type %s only", row->name, found, type,
                   row->name, names_of(used, ", ", pe_text(" and "), names, sizeof names));
}

static enum pe_status check_flag(const struct pe_scaling *given, const struct pe_param *row, struct pe_failure *err)
{
    const struct pe_value *flag = *(const struct pe_value *const *)(const void *)((const char *)given + row->offset);
    if (!flag || flag->kind == PE_BOOLEAN)
        return PE_OK;
    char pointer[PE_POINTER_MAX], found[48];
    snprintf(found, sizeof found, "%s", pe_text("neither"));
    if (flag->kind == PE_INTEGER)
        snprintf(found, sizeof found, "%lld", (long long)flag->integer);
    else if (flag->kind == PE_REAL)
        snprintf(found, sizeof found, "%.10g", flag->real);
    else if (flag->kind == PE_STRING)
        snprintf(found, sizeof found, "\"%.40s\"", flag->string);
    pe_scaling_pointer(pointer, row->name);
    return pe_fail(err, pointer, "%s is %s; allowed: true or false", row->name, found);
}

/* A field that was given but is not used, or is used but was not given. */
static enum pe_status check_use(const struct pe_scaling *given, size_t i, const struct pe_scaling_rule *rule,
                                bool is_given, double factor, struct pe_failure *err)
{
    const struct pe_param *row = &pe_scaling_params[i];
    const void *field = (const char *)given + row->offset;
    char pointer[PE_POINTER_MAX];
    if (is_given)
        return uses[i].is_quiet || is_neutral(row, field) ? PE_OK
                                                          : fail_unused(row, uses[i].used, field, rule->name, err);
    bool has_value = pe_same(row->name, "factor") && !isnan(factor);
    if (has_value || !pe_scaling_needs(rule, row->name))
        return PE_OK;
    pe_scaling_pointer(pointer, row->name);
    return pe_fail(err, pointer, "%s is missing; type \"%s\" needs it%s", row->name, rule->name,
                   pe_text(hint_of(rule, row->name)));
}

/* The uses of the flags, or of all other fields. Most requests have no scaling: nothing is given and nothing used. */
static enum pe_status check_uses(const struct pe_scaling *given, const struct pe_scaling_rule *rule, bool of_flags,
                                 double factor, struct pe_failure *err)
{
    unsigned place = 1U << pe_scaling_place(rule);
    for (size_t i = 0; i < n_rows; i++) {
        const struct pe_param *row = &pe_scaling_params[i];
        if ((row->type == PE_T_VALUE) != of_flags)
            continue;
        bool is_given = is_set(row, (const char *)given + row->offset), is_used = uses[i].used & place;
        if (is_given != is_used && check_use(given, i, rule, is_given, factor, err))
            return err->status;
    }
    return PE_OK;
}

/* Flags are checked last: first whether they are flags, then their use. */
enum pe_status pe_scaling_check_fields(const struct pe_scaling *given, const struct pe_scaling_rule *rule,
                                       double factor, struct pe_failure *err)
{
    if (check_uses(given, rule, false, factor, err))
        return err->status;
    for (size_t i = 0; i < n_rows; i++)
        if (pe_scaling_params[i].type == PE_T_VALUE && check_flag(given, &pe_scaling_params[i], err))
            return err->status;
    return check_uses(given, rule, true, factor, err);
}

/* ---- The object of an answer ---- */

static void unset(const struct pe_param *row, void *field)
{
    if (row->type == PE_T_INT)
        *(int64_t *)field = PE_UNSET_INT;
    else if (row->type == PE_T_REAL)
        *(double *)field = PE_UNSET;
    else if (row->type == PE_T_WORD)
        *(int *)field = PE_UNSET_WORD;
    else if (row->type == PE_T_VALUE)
        *(const struct pe_value **)field = NULL;
}

void pe_scaling_show(const struct pe_scaling_resolved *resolved, struct pe_scaling *object)
{
    int place = pe_scaling_place(resolved->rule);
    object->type = place;
    object->rope_type = PE_UNSET_WORD;
    object->factor = resolved->factor;
    object->seq_len = resolved->seq_len;
    object->softmax_scale_factor = resolved->softmax_scale_factor;
    object->own[place] = resolved->own;
    object->divisors = resolved->divisors;
    object->finetuned = NULL;
    for (size_t i = 0; i < n_rows; i++)
        if (!(uses[i].used & 1U << place))
            unset(&pe_scaling_params[i], (char *)object + pe_scaling_params[i].offset);
    if (resolved->divisors.n)
        object->convention = resolved->convention;
    object->attention_factor = resolved->attention_factor; /* of every rule */
}
