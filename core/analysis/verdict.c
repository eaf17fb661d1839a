/* Do two configurations mean the same? The verdict of `difference`, and the fields that it is due to.
 *
 * A config.json and the GGUF file made from it state one rotation in two ways: Llama 3.1's rule, and the divisors that
 * it gives; pairs of halves, and rows of q and k in an order that makes the same pairs of neighbours. So the numbers of
 * the plans are compared, frequencies w and the factor g on cos and sin, within 2^-22, which storing them as f32 may
 * cost. A field whose effect is in these numbers counts only where they differ; all others must be equal. Where a
 * scaling depends on the length of the sequence, the verdict is about sequences as long as this one. */
#include "core/analysis/analysis.h"
#include "core/models/gguf/gguf.h"
#include "core/schemes/rotary/rotary.h"

#include <stdio.h>
#include <string.h>

static const double f32_rounding = 0x1p-22;
/* Of divisors that a file lists: its converter computes them in float32, with a difference of like numbers. */
static const double list_rounding = 0x1p-20;

/* ---- The two sides ---- */

enum { REASONS_MAX = 32, REASON_BYTES = 64 };

struct reason {
    char name[REASON_BYTES]; /* "base", "scaling.factor" */
    struct pe_value of[2];   /* PE_NULL: the configuration has none */
};

struct verdict {
    const struct pe_subject *sides[2];
    const struct pe_value *configs[2];
    size_t permuted;      /* the side whose rows the converter has permuted; 2: none, or both */
    bool has_frequencies; /* both have as many */
    double max_rel;       /* |w' - w| / w at most, w of the first side … */
    size_t pair;          /* … in this pair */
    struct reason reasons[REASONS_MAX];
    size_t n_reasons;
    const struct pe_layers_apart *layers;
};

static const struct pe_value *given(const struct pe_subject *side, const char *name)
{
    return pe_field_find(side->entry->fields, side->entry->n_fields, name);
}

static bool is_number(const struct pe_value *v) { return v->kind == PE_INTEGER || v->kind == PE_REAL; }

static double factor_of(const struct pe_value *config) { return pe_config_number(config, "attention_factor", 1); }

/* Rows that neighbours pair in the file are those that halves pair in the model (core/models/gguf). */
static size_t permuted_side(const struct pe_analysis *study, const struct pe_subject *subject)
{
    const struct pe_subject *const sides[2] = {&study->subjects[0], subject};
    bool is_permuted[2];
    for (size_t s = 0; s < 2; s++) {
        const struct pe_value *keys = given(sides[s], "gguf");
        is_permuted[s] = keys && pe_gguf_is_permuted(keys);
    }
    if (is_permuted[0] == is_permuted[1])
        return 2;
    size_t file = is_permuted[1];
    bool fits = pe_same(pe_config_word(pe_plan_config(sides[file]->plan), "layout"), "interleaved") &&
                pe_same(pe_config_word(pe_plan_config(sides[!file]->plan), "layout"), "half");
    return fits ? file : 2;
}

bool pe_difference_is_permuted(const struct pe_analysis *study, const struct pe_subject *subject, size_t side)
{
    return permuted_side(study, subject) == side;
}

/* ---- Frequencies ---- */

static size_t n_frequencies(const struct pe_subject *side)
{
    const struct pe_rotary *turn = side->plan->tables;
    return side->family == PE_ROTARY ? turn->n_pairs : side->ladder.n;
}

static double frequency(const struct pe_subject *side, size_t c)
{
    const struct pe_rotary *turn = side->plan->tables;
    return side->family == PE_ROTARY ? turn->inv_freq[c].hi : side->ladder.w[c];
}

/* Relative to the first; what does not turn there and turns here is wholly apart. */
static double apart(double first, double other)
{
    if (first == other)
        return 0;
    return first != 0 ? fabs(other - first) / fabs(first) : 1;
}

static bool is_near(double a, double b, double rounding)
{
    return a == b || fabs(a - b) <= rounding * fmax(fabs(a), fabs(b));
}

static double rounding_of(const struct verdict *v)
{
    for (size_t s = 0; s < 2; s++) {
        struct pe_value scaling = pe_config_at(v->configs[s], "scaling");
        if (scaling.kind == PE_OBJECT && pe_config_at(&scaling, "divisors").kind != PE_NULL)
            return list_rounding;
    }
    return f32_rounding;
}

/* Do both rules multiply each frequency by the same? */
static bool are_scaled_alike(const struct verdict *v)
{
    const struct pe_ladder *a = &v->sides[0]->ladder, *b = &v->sides[1]->ladder;
    if (!a->n || a->n != b->n)
        return false;
    for (size_t c = 0; c < a->n; c++)
        if (!is_near(a->w[c] * b->w0[c], b->w[c] * a->w0[c], rounding_of(v)))
            return false;
    return true;
}

/* ---- Fields ---- */

static void add_reason(struct verdict *v, const char *before, const char *name, const struct pe_value *a,
                       const struct pe_value *b)
{
    if (v->n_reasons == REASONS_MAX)
        return;
    struct reason *reason = &v->reasons[v->n_reasons++];
    snprintf(reason->name, sizeof reason->name, "%s%s", before, name);
    reason->of[0] = *a;
    reason->of[1] = *b;
}

static bool are_unequal(const struct pe_value *a, const struct pe_value *b)
{
    if (is_number(a) && is_number(b))
        return !is_near(pe_value_number(a), pe_value_number(b), f32_rounding);
    return !pe_value_same(a, b);
}

/* Calls `unequal` for each member that is not the same in both, in the order of the first. */
static void walk(struct verdict *v, const struct pe_value *a, const struct pe_value *b,
                 void (*unequal)(struct verdict *v, const char *name, const struct pe_value *a,
                                 const struct pe_value *b))
{
    for (size_t i = 0; i < a->object.n; i++) {
        const struct pe_field *field = &a->object.fields[i];
        struct pe_value other = pe_config_at(b, field->name);
        if (are_unequal(&field->value, &other))
            unequal(v, field->name, &field->value, &other);
    }
    for (size_t i = 0; i < b->object.n; i++) {
        const struct pe_field *field = &b->object.fields[i];
        struct pe_value first = pe_config_at(a, field->name);
        if (first.kind == PE_NULL && field->value.kind != PE_NULL)
            unequal(v, field->name, &first, &field->value);
    }
}

/* The convention is where other members come from, so it is named only where no other differs. */
static void add_inner(struct verdict *v, const char *name, const struct pe_value *a, const struct pe_value *b)
{
    if (!pe_same(name, "convention"))
        add_reason(v, "scaling.", name, a, b);
}

static void add_scaling(struct verdict *v, const struct pe_value *a, const struct pe_value *b)
{
    struct pe_value types[2] = {pe_config_at(a, "type"), pe_config_at(b, "type")};
    size_t n = v->n_reasons;
    if (are_scaled_alike(v))
        return;
    if (types[0].kind == PE_STRING && pe_value_same(&types[0], &types[1]))
        walk(v, a, b, add_inner);
    if (v->n_reasons == n)
        add_reason(v, "", "scaling", a, b);
}

static bool are_frequencies_near(const struct verdict *v) { return v->has_frequencies && v->max_rel <= rounding_of(v); }

static bool are_factors_near(const struct verdict *v)
{
    return is_near(factor_of(v->configs[0]), factor_of(v->configs[1]), f32_rounding);
}

static void add_field(struct verdict *v, const char *name, const struct pe_value *a, const struct pe_value *b)
{
    bool has_list = pe_config_at(v->configs[0], "inv_freq").kind || pe_config_at(v->configs[1], "inv_freq").kind;
    if (pe_same(name, "arith") || (pe_same(name, "layout") && v->permuted < 2))
        return;
    if (pe_same(name, "attention_factor") && are_factors_near(v))
        return;
    if (pe_is_among("base|scaling|inv_freq", name) && are_frequencies_near(v))
        return;
    if (pe_is_among("base|scaling", name) && has_list)
        return;
    if (pe_same(name, "scaling"))
        add_scaling(v, a, b);
    else
        add_reason(v, "", name, a, b);
}

static bool are_at_the_same_positions(const struct verdict *v)
{
    const struct pe_sequence *a = &v->sides[0]->plan->seq, *b = &v->sides[1]->plan->seq;
    bool is_same = a->n_axes == b->n_axes;
    for (unsigned axis = 0; is_same && axis < a->n_axes; axis++)
        is_same = pe_positions_same(&a->k[axis], &b->k[axis]) && pe_positions_same(&a->q[axis], &b->q[axis]);
    return is_same;
}

/* Two kinds of layers without positions are equal, whatever their widths. */
static bool have_positions(const struct verdict *v)
{
    return !pe_same(pe_config_word(v->configs[0], "scheme"), "none") ||
           !pe_same(pe_config_word(v->configs[1], "scheme"), "none");
}

/* ---- The verdict ---- */

/* A field that decides nothing at these positions, as the sections of axes with equal coordinates do. */
static bool is_without_effect(const struct reason *reason)
{
    return !pe_is_among("scheme|head_dim|rotary_dim|rotary_offset|layout|direction|base|scaling|inv_freq|"
                        "attention_factor|positions|layers",
                        reason->name) &&
           strncmp(reason->name, "scaling.", strlen("scaling.")) != 0;
}

static const char *verdict_of(struct verdict *v, bool are_equal)
{
    bool is_equal = are_equal && v->max_rel == 0 && factor_of(v->configs[0]) == factor_of(v->configs[1]);
    size_t n = 0;
    while (n < v->n_reasons && is_without_effect(&v->reasons[n]))
        n++;
    if (is_equal && n == v->n_reasons) {
        v->n_reasons = 0;
        return "same";
    }
    return v->n_reasons == 0 && are_frequencies_near(v) && are_factors_near(v) ? "rounding" : "differs";
}

/* ---- Its sentence ---- */

/* A number as people write it, a word in quotes, of a rule its type. */
static void print_value(const struct pe_value *v, enum pe_lang lang, char *out, size_t room)
{
    struct pe_value type = pe_config_at(v, "type"), factor = pe_config_at(v, "factor");
    if (is_number(v))
        snprintf(out, room, "%.10g", pe_value_number(v));
    else if (v->kind == PE_STRING)
        snprintf(out, room, "\"%.40s\"", v->string);
    else if (v->kind == PE_BOOLEAN)
        snprintf(out, room, "%s", v->boolean ? "true" : "false");
    else if (type.kind == PE_STRING && is_number(&factor))
        snprintf(out, room, pe_text_in(lang, "%.40s with factor %.10g"), type.string, pe_value_number(&factor));
    else if (type.kind == PE_STRING)
        snprintf(out, room, "%.40s", pe_config_at(v, "divisors").kind ? "divisors" : type.string);
    else
        snprintf(out, room, "%s", pe_text_in(lang, v->kind == PE_NULL ? "absent" : "another list"));
}

static const char *where_of(const struct verdict *v, size_t side, enum pe_lang lang)
{
    static const char *const names[] = {"gguf", "hf_config", "preset"};
    static const char *const texts[] = {"the .gguf file", "the config.json", "the preset"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (given(v->sides[side], names[i]) && !given(v->sides[!side], names[i]))
            return pe_text_in(lang, texts[i]);
    return pe_text_in(lang, side ? "the other configuration" : "the first configuration");
}

/* Of those without positions a file is said to leave them out. */
static size_t print_layers(const struct verdict *v, enum pe_lang lang, char *out, size_t room)
{
    char layers[2][PE_LAYERS_TEXT];
    pe_layers_name(v->layers->found, lang, layers[0]);
    pe_layers_name(v->layers->taken, lang, layers[1]);
    return (size_t)snprintf(
        out, room,
        have_positions(v) ? pe_text_in(lang, "%s has the kind's positions in %s, %s in %s: %zu of %zu layers differ")
                          : pe_text_in(lang, "%s leaves out %s, %s leaves out %s: %zu of %zu layers differ"),
        where_of(v, 0, lang), layers[0], where_of(v, 1, lang), layers[1], v->layers->n, v->layers->of);
}

static size_t print_reason(const struct verdict *v, const struct reason *reason, enum pe_lang lang, char *out,
                           size_t room)
{
    char values[2][96];
    if (pe_same(reason->name, "positions"))
        return (size_t)snprintf(out, room, "%s", pe_text_in(lang, "the positions are not the same"));
    if (pe_same(reason->name, "layers"))
        return print_layers(v, lang, out, room);
    for (size_t s = 0; s < 2; s++)
        print_value(&reason->of[s], lang, values[s], sizeof values[s]);
    return (size_t)snprintf(out, room, pe_text_in(lang, "%s is %s in %s, %s in %s"), reason->name, values[0],
                            where_of(v, 0, lang), values[1], where_of(v, 1, lang));
}

static const char same[] = "Both mean the same positions, number for number.",
                  rounding[] = "Both mean the same positions: frequencies differ by at most {frequencies.max_rel} of "
                               "each, which is the rounding of what is stored as f32.",
                  of_length[] = " That is so for a sequence of {length} positions, on whose length a scaling depends.",
                  differs[] = "The two do not mean the same.",
                  frequencies[] = " Frequencies differ most in pair {frequencies.pair}: by {frequencies.max_rel} times "
                                  "that of the first.";

static bool is_dialect(const struct pe_subject *side) { return given(side, "hf_config") || given(side, "gguf"); }

/* Of two dialects, the verdict in words; of other configurations, nothing. */
static void print_sentence(const struct verdict *v, const char *word, bool has_length, enum pe_lang lang, char *out,
                           size_t room)
{
    *out = '\0';
    if (!is_dialect(v->sides[0]) && !is_dialect(v->sides[1]))
        return;
    if (!have_positions(v) && !pe_same(word, "differs")) {
        snprintf(out, room, "%s", pe_text_in(lang, "Both have no positions."));
        return;
    }
    if (pe_same(word, "differs")) {
        /* The reasons, at most three, then how far the frequencies are apart. */
        enum { SHOWN_MAX = 3 };
        size_t n = 0;
        for (size_t i = 0; i < v->n_reasons && i < SHOWN_MAX && n < room; i++) {
            n += (size_t)snprintf(out + n, room - n, "%s", i ? pe_text_in(lang, "; ") : "");
            if (n < room)
                n += print_reason(v, &v->reasons[i], lang, out + n, room - n);
        }
        if (n < room)
            n += (size_t)snprintf(out + n, room - n, "%s", n ? pe_text_in(lang, ".") : pe_text_in(lang, differs));
        if (n < room && v->has_frequencies && v->max_rel > rounding_of(v))
            snprintf(out + n, room - n, "%s", pe_text_in(lang, frequencies));
    } else {
        snprintf(out, room, "%s%s", pe_text_in(lang, pe_same(word, "same") ? same : rounding),
                 has_length ? pe_text_in(lang, of_length) : "");
    }
}

/* ---- The answer ---- */

static void put_frequencies(const struct verdict *v, struct pe_node *out)
{
    if (!v->has_frequencies) {
        pe_put_null(out, "frequencies");
        return;
    }
    struct pe_node *node = pe_put_object(out, "frequencies");
    pe_put_real(node, "max_rel", v->max_rel);
    pe_put_integer(node, "pair", (int64_t)v->pair);
}

static void put_layers(const struct verdict *v, struct pe_node *out)
{
    if (!v->layers->n)
        return;
    struct pe_node *node = pe_put_object(out, "layers");
    pe_put_string(node, "found", v->layers->found);
    pe_put_string(node, "taken", v->layers->taken);
    pe_put_integer(node, "differ", (int64_t)v->layers->n);
    pe_put_integer(node, "of", (int64_t)v->layers->of);
}

void pe_difference_put_verdict(const struct pe_analysis *study, const struct pe_subject *subject,
                               const struct pe_layers_apart *layers, bool numbers_equal, bool nothing_differs,
                               struct pe_node *out, char sentences[PE_N_LANGS][PE_DETAIL_MAX])
{
    struct verdict v = {
        .sides = {&study->subjects[0], subject}, .permuted = permuted_side(study, subject), .layers = layers};
    for (size_t s = 0; s < 2; s++)
        v.configs[s] = pe_plan_config(v.sides[s]->plan);
    size_t n = n_frequencies(v.sides[0]);
    v.has_frequencies = n > 0 && n == n_frequencies(v.sides[1]);
    for (size_t c = 0; v.has_frequencies && c < n; c++) {
        double rel = apart(frequency(v.sides[0], c), frequency(v.sides[1], c));
        if (rel > v.max_rel) {
            v.max_rel = rel;
            v.pair = c;
        }
    }
    static const struct pe_value none = {.kind = PE_NULL};
    const struct pe_value *a = v.configs[0], *b = v.configs[1];
    const struct pe_value *kinds[2] = {given(v.sides[0], "layer_type"), given(v.sides[1], "layer_type")};
    struct pe_value schemes[2] = {pe_config_at(a, "scheme"), pe_config_at(b, "scheme")};
    if (!pe_value_same(&schemes[0], &schemes[1]))
        add_reason(&v, "", "scheme", &schemes[0], &schemes[1]);
    else if (have_positions(&v))
        walk(&v, a, b, add_field);
    if (!are_at_the_same_positions(&v))
        add_reason(&v, "", "positions", &none, &none);
    if (v.n_reasons && kinds[0] && kinds[1] && !pe_value_same(kinds[0], kinds[1]))
        add_reason(&v, "", "kind", kinds[0], kinds[1]);
    else if (v.layers->n)
        add_reason(&v, "", "layers", &none, &none);
    const char *word = verdict_of(&v, numbers_equal || (nothing_differs && !have_positions(&v)));
    if (v.permuted < 2)
        pe_put_string(out, "permutation", "half_to_interleaved");
    else
        pe_put_null(out, "permutation");
    put_frequencies(&v, out);
    pe_put_string(out, "verdict", word);
    bool has_length = pe_rotary_lengthless(v.sides[0]->plan) || pe_rotary_lengthless(v.sides[1]->plan);
    if (has_length)
        pe_put_integer(out, "length", (int64_t)pe_sequence_reach(&subject->plan->seq));
    else
        pe_put_null(out, "length");
    struct pe_node *reasons = pe_put_list(out, "reasons");
    for (size_t i = 0; i < v.n_reasons; i++)
        pe_put_string(reasons, NULL, v.reasons[i].name);
    put_layers(&v, out);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++)
        print_sentence(&v, word, has_length, lang, sentences[lang], PE_DETAIL_MAX);
}
