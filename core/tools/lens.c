/* The engine of the rows: members of a tool's value from our configuration, and back. */
#include "core/tools/lens.h"
#include "core/numeric/numeric.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const struct pe_value none = {.kind = PE_NULL};

/* ---- Conversions, each beside its inverse ---- */

static struct pe_value same(struct pe_value v) { return v; }

static struct pe_value whole(struct pe_value v) { return pe_real(fmax(1, round(pe_value_number(&v)))); }

static struct pe_value reciprocal(struct pe_value v) { return pe_real(1 / pe_value_number(&v)); }

static struct pe_value opposite(struct pe_value v) { return v.kind == PE_BOOLEAN ? pe_flag(!v.boolean) : none; }

static struct pe_value flag_of_layout(struct pe_value v) { return pe_flag(!pe_same(v.string, "half")); }

static struct pe_value layout_of_flag(struct pe_value v) { return pe_word(v.boolean ? "interleaved" : "half"); }

static struct pe_value unless_zero(struct pe_value v) { return pe_value_number(&v) != 0 ? v : none; }

const struct pe_conversion_row pe_conversions[PE_N_CONVERSIONS] = {
    [PE_SAME] = {same, same},
    [PE_WHOLE] = {whole, same},
    [PE_RECIPROCAL] = {reciprocal, reciprocal},
    [PE_NOT] = {opposite, opposite},
    [PE_NEIGHBOURS] = {flag_of_layout, layout_of_flag},
    [PE_UNLESS_ZERO] = {same, unless_zero},
};

/* ---- Our configuration ---- */

double pe_export_number(const struct pe_export *e, const char *path, double otherwise)
{
    return pe_config_number(e->config, path, otherwise);
}

/* The form of the configuration's rule, else one of no rule that pairs channels as it does. */
static const struct pe_form *choose_form(const struct pe_export *e)
{
    bool is_rope = pe_same(e->scheme, "rope");
    for (const struct pe_form *f = e->tool->forms; f && f->word; f++)
        if (is_rope ? f->rule && pe_same(f->rule, e->rule) : f->scheme && pe_same(f->scheme, e->scheme))
            return f;
    for (const struct pe_form *f = e->tool->forms; f && f->word; f++)
        if (!f->rule && (!f->layout || pe_same(f->layout, e->is_half ? "half" : "interleaved")))
            return f;
    return NULL;
}

/* Of a tool that states how it pairs channels. */
static bool has_layout_row(const struct pe_tool *tool)
{
    for (const struct pe_lens *lens = tool->lenses; pe_lens_is(lens); lens++)
        if (lens->convert == PE_NEIGHBOURS)
            return true;
    return false;
}

void pe_export_open(struct pe_export *e)
{
    const char *layout;
    e->config = e->kind.config;
    e->scheme = pe_config_word(e->config, "scheme");
    e->rule = pe_config_word(e->config, "scaling.type");
    e->rule = *e->rule ? e->rule : "default";
    e->head_dim = pe_export_number(e, "head_dim", 2 * (double)e->kind.n);
    e->rotary_dim = pe_export_number(e, "rotary_dim", e->head_dim);
    e->factor = pe_export_number(e, "scaling.factor", 1);
    e->original = pe_export_number(e, "scaling.original_max_position_embeddings", 0);
    e->attention = pe_export_number(e, "attention_factor", 1);
    layout = pe_config_word(e->config, "layout");
    e->is_half = pe_same(layout, "half");
    e->is_latent = pe_export_number(e, "rotary_offset", 0) > 0;
    e->form = choose_form(e);
    e->layout = e->form && e->form->layout ? e->form->layout
                : e->tool->layout          ? e->tool->layout
                : has_layout_row(e->tool)  ? (e->is_half ? "half" : "interleaved")
                                           : layout;
    e->value = pe_words_new(e);
}

double pe_export_base(const struct pe_export *e)
{
    double base = pe_export_number(e, "base", 10000);
    return pe_scaling_is_base(pe_scaling_find(e->rule)) && e->rotary_dim > 2
               ? pe_scaling_stretched(base, e->factor, e->rotary_dim)
               : base;
}

double pe_export_max(const struct pe_export *e)
{
    return pe_export_number(e, "scaling.max_position_embeddings", (double)e->length);
}

/* rotary_dim/head_dim, up to the next number if head_dim times it would be below rotary_dim. */
double pe_export_share(const struct pe_export *e)
{
    double share = e->is_latent ? 1 : fmin(1, e->rotary_dim / e->head_dim);
    return !e->is_latent && floor(share * e->head_dim) < e->rotary_dim ? nextafter(share, 1) : share;
}

double pe_magnitude_ratio(double s, double k, double l)
{
    return dd_div(pe_scaling_magnitude(s, k), pe_scaling_magnitude(s, l)).hi;
}

/* The factor k of m(s, k) = m. */
static double solve(double s, struct pe_dd m)
{
    return s <= 1 ? 0 : dd_div(dd_mul_d(dd_sub(m, dd(1)), 10), pe_dd_log(dd(s))).hi;
}

void pe_export_magnitudes(const struct pe_export *e, double *k, double *l)
{
    *k = pe_export_number(e, "scaling.mscale", 0);
    *l = pe_export_number(e, "scaling.mscale_all_dim", 0);
    if (*k > 0 && *l > 0 && pe_magnitude_ratio(e->factor, *k, *l) == e->attention)
        return;
    *k = 1;
    *l = 0;
    if (pe_magnitude_ratio(e->factor, 1, 0) == e->attention)
        return;
    *k = e->attention >= 1 ? solve(e->factor, dd(e->attention)) : 0;
    *l = e->attention >= 1 ? 0 : solve(e->factor, dd_div(dd(1), dd(e->attention)));
}

/* ---- Export ---- */

struct pe_words pe_words_new(struct pe_export *e)
{
    struct pe_words words = {.e = e, .fields = pe_values_room(e->values, PE_WORDS_MAX * sizeof *words.fields)};
    e->failed |= !words.fields;
    return words;
}

void pe_word_put(struct pe_words *words, const char *name, struct pe_value value)
{
    if (words->fields && words->n < PE_WORDS_MAX)
        words->fields[words->n++] = (struct pe_field){name, value};
}

void pe_word_number(struct pe_words *words, const char *name, double x)
{
    bool is_whole = x == floor(x) && fabs(x) < 0x1p53;
    pe_word_put(words, name, is_whole ? pe_integer((int64_t)x) : pe_real(x));
}

void pe_word_object(struct pe_words *words, const char *name, const struct pe_words *object)
{
    pe_word_put(words, name, pe_object(object->fields, object->n));
}

static bool has_rule(const struct pe_tool *tool, const char *rule)
{
    for (const struct pe_lens *lens = tool->lenses; pe_lens_is(lens); lens++)
        if (pe_is_among(lens->when, rule))
            return true;
    return false;
}

static struct pe_value if_positive(double x) { return x > 0 ? pe_real(x) : none; }

/* The field of a row, or what follows from the configuration. */
static struct pe_value ours_of(const struct pe_export *e, const char *ours)
{
    double k, l;
    if (pe_same(ours, "base"))
        return pe_real(has_rule(e->tool, e->rule) ? pe_export_number(e, "base", 10000) : pe_export_base(e));
    if (pe_same(ours, "head_dim"))
        return pe_real(e->head_dim);
    if (pe_same(ours, "rotary_dim"))
        return pe_real(e->rotary_dim);
    if (pe_same(ours, "share"))
        return pe_real(pe_export_share(e));
    if (pe_same(ours, "length"))
        return if_positive(pe_export_max(e));
    if (pe_same(ours, "still_period"))
        return if_positive((double)e->still_period);
    if (pe_is_among("magnitude|magnitude_all_dim", ours)) {
        pe_export_magnitudes(e, &k, &l);
        return pe_real(pe_same(ours, "magnitude") ? k : l);
    }
    return pe_config_at(e->config, ours);
}

static void put_member(struct pe_export *e, const struct pe_lens *lens, struct pe_value v)
{
    if (lens->type == PE_T_BOOL || v.kind == PE_NULL)
        pe_word_put(&e->value, lens->theirs, v);
    else if (lens->type == PE_T_REAL && !lens->is_short)
        pe_word_put(&e->value, lens->theirs, pe_real(pe_value_number(&v)));
    else
        pe_word_number(&e->value, lens->theirs, pe_value_number(&v));
}

static bool holds(const struct pe_lens *lens, const char *rule)
{
    return (!lens->when || pe_is_among(lens->when, rule)) && !pe_is_among(lens->unless, rule);
}

static void export_number(struct pe_export *e, const struct pe_lens *lens)
{
    struct pe_value v = none;
    bool does_hold = holds(lens, e->rule) && !(lens->is_of_file && e->is_local);
    double usual = lens->usual != 0 ? lens->usual : lens->otherwise;
    if (does_hold && lens->ours)
        v = ours_of(e, lens->ours);
    if (v.kind != PE_NULL || (does_hold && !lens->ours))
        v = lens->ours ? pe_conversions[lens->convert].forward(v) : pe_flag(true);
    if (v.kind == PE_NULL && (lens->is_always || lens->is_null))
        put_member(e, lens, lens->is_null ? none : pe_real(lens->otherwise));
    else if (v.kind != PE_NULL &&
             !(lens->is_quiet && (v.kind == PE_BOOLEAN ? !v.boolean : pe_value_number(&v) == usual)))
        put_member(e, lens, v);
}

void pe_export_members(struct pe_export *e)
{
    for (const struct pe_lens *lens = e->tool->lenses; pe_lens_is(lens); lens++) {
        const char *ours = lens->ours ? lens->ours : "";
        if (!lens->theirs || lens->direction == PE_IMPORT_ONLY)
            continue;
        if (pe_same(ours, "kind"))
            pe_word_put(&e->value, lens->theirs, pe_word(e->form->word));
        else if (e->form && e->form->scheme) /* no rotation, and no numbers of one */
            continue;
        else if (lens->type == PE_T_VALUE && !pe_same(ours, "still_period"))
            pe_export_object(e, lens);
        else if (lens->type != PE_T_REALS)
            export_number(e, lens);
    }
    if (e->tool->export)
        e->tool->export(e);
}

/* ---- Import ---- */

const union pe_taken *pe_import_member(const struct pe_import *m, const char *member)
{
    return &m->members[pe_param_find(m->rows, member) - m->rows];
}

/* NaN: not given, and nothing is taken in its place. */
static double number_of(const union pe_taken *v, enum pe_type type)
{
    if (type == PE_T_INT)
        return v->integer == PE_UNSET_INT ? (double)NAN : (double)v->integer;
    return type == PE_T_BOOL ? v->flag : v->real;
}

double pe_import_number(const struct pe_import *m, const char *member)
{
    return number_of(pe_import_member(m, member), pe_param_find(m->rows, member)->type);
}

enum pe_status pe_import_wrong(const struct pe_import *m, const char *member, const char *format, ...)
{
    char pointer[PE_POINTER_MAX], sentence[PE_DETAIL_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, pe_text(format), args);
    va_end(args);
    pe_pointer_join(pointer, sizeof pointer, "/said/value", member);
    return pe_fail(m->err, pointer, "%s", sentence);
}

void pe_import_scaling(struct pe_import *m, const char *name, struct pe_value value)
{
    if (m->n_scaling < PE_MODEL_FIELDS_MAX)
        m->out->scaling[m->n_scaling++] = (struct pe_field){name, value};
}

/* The rule that a row's value is, if it has one: a factor other than 1, a flag. */
static bool is_rule(const struct pe_import *m, const struct pe_lens *lens)
{
    double x = lens->is_rule ? pe_import_number(m, lens->theirs) : (double)NAN;
    return lens->type == PE_T_BOOL ? x == 1 : !isnan(x) && x != 1;
}

static const struct pe_scaling_rule *first_rule(const struct pe_lens *lens)
{
    const struct pe_scaling_rule *rule = NULL;
    for (int i = 0; !rule; i++)
        rule = pe_is_among(lens->when, pe_scaling_at(i)->name) ? pe_scaling_at(i) : NULL;
    return rule;
}

/* The rule by the form or the first row that states one. Two of them are one rule only as a factor of positions beside
 * one of the base: *on_base is then the latter, else NULL. */
static enum pe_status choose_rule(struct pe_import *m, const struct pe_lens **on_base)
{
    const struct pe_lens *first = NULL;
    *on_base = NULL;
    m->rule = m->form && m->form->decides && m->form->rule ? m->form->rule : "default";
    for (const struct pe_lens *lens = m->tool->lenses; pe_lens_is(lens); lens++) {
        if (!is_rule(m, lens))
            continue;
        if (first && pe_scaling_is_base(first_rule(lens)))
            *on_base = lens;
        else if (first && !pe_same(first->ours ? first->ours : "", lens->ours ? lens->ours : ""))
            return pe_import_wrong(m, lens->theirs, "%s and %s are two rules; give one", lens->theirs, first->theirs);
        first = first ? first : lens;
    }
    if (first && !(m->form && m->form->decides))
        m->rule = first_rule(first)->name;
    return PE_OK;
}

/* The scheme takes its default for 0, as transformers does; these tools divide by it. */
static enum pe_status check_divisors(const struct pe_import *m)
{
    for (const struct pe_lens *lens = m->tool->lenses; pe_lens_is(lens); lens++)
        if (lens->is_divisor && holds(lens, m->rule) && pe_import_number(m, lens->theirs) == 0)
            return pe_import_wrong(m, lens->theirs, "%s is 0, by which %s divides the length; give a number above 0",
                                   lens->theirs, m->tool->label);
    return PE_OK;
}

static void put_field(struct pe_import *m, const char *ours, struct pe_value v)
{
    static const char inside[] = "scaling.";
    if (pe_same(ours, "share")) {
        if (pe_value_number(&v) != 1)
            pe_hf_put(m->out, "partial_rotary_factor", v);
    } else if (pe_same(ours, "magnitude")) {
        pe_import_scaling(m, "mscale", v);
    } else if (pe_same(ours, "magnitude_all_dim")) {
        pe_import_scaling(m, "mscale_all_dim", v);
    } else if (strncmp(ours, inside, sizeof inside - 1) == 0) {
        pe_import_scaling(m, ours + sizeof inside - 1, v);
    } else {
        pe_hf_put(m->out, ours, v);
    }
}

static void import_number(struct pe_import *m, const struct pe_lens *lens)
{
    double x = lens->theirs ? pe_import_number(m, lens->theirs) : lens->otherwise;
    if (isnan(x) || (lens->is_none_below_0 && x < 0)) /* the default, where a value below 0 was not taken */
        return;
    struct pe_value v = lens->type == PE_T_BOOL ? pe_flag(x != 0) : pe_real(x);
    if (pe_is_among("head_dim|rotary_dim", lens->ours))
        v = pe_integer((int64_t)x);
    v = pe_conversions[lens->convert].backward(v);
    if (v.kind != PE_NULL)
        put_field(m, lens->ours, v);
}

/* The base with the stretch of a factor that is beside a linear one. */
static enum pe_status import_base(struct pe_import *m, const struct pe_lens *lens, const struct pe_lens *on_base)
{
    const char *width = pe_is_among(m->tool->carries, "rotary_dim") ? "rotary_dim" : "head_dim";
    const struct pe_value *dim = pe_field_find(m->out->fields, m->out->n, width);
    double base = pe_import_number(m, lens->theirs);
    if (!dim && pe_same(width, "head_dim"))
        dim = pe_field_find(m->beside, m->n_beside, width);
    if (isnan(base) && m->form)
        base = m->form->base;
    if (on_base && !(dim && pe_value_number(dim) > 2))
        return pe_fail(m->err, "/head_dim", "head_dim is missing; the exponent of a factor on the base needs it");
    if (on_base)
        base = pe_scaling_stretched(base, pe_import_number(m, on_base->theirs), pe_value_number(dim));
    pe_hf_put_number(m->out, "base", base);
    return PE_OK;
}

/* Numbers beside a rope object count where it has none: rope.c. */
static bool has_rope(const struct pe_tool *tool)
{
    for (const struct pe_lens *lens = tool->lenses; pe_lens_is(lens); lens++)
        if (lens->ours && pe_is_among("rope|overrides", lens->ours))
            return true;
    return false;
}

static enum pe_status import_member(struct pe_import *m, const struct pe_lens *lens, const struct pe_lens *on_base)
{
    bool is_beside_rope = lens->ours && has_rope(m->tool) &&
                          pe_is_among("base|length|scaling.original_max_position_embeddings", lens->ours);
    if (lens->direction == PE_EXPORT_ONLY || !lens->ours || pe_same(lens->ours, "kind") || is_beside_rope ||
        !holds(lens, m->rule))
        return PE_OK;
    if (lens->type == PE_T_VALUE)
        return pe_import_object(m, lens);
    if (pe_same(lens->ours, "base"))
        return import_base(m, lens, on_base);
    if (lens->type != PE_T_REALS)
        import_number(m, lens);
    return PE_OK;
}

static enum pe_status import_rows(struct pe_import *m)
{
    const struct pe_lens *on_base;
    if (choose_rule(m, &on_base) || check_divisors(m))
        return m->err->status;
    if (!pe_same(m->rule, "default")) {
        pe_import_scaling(m, "type", pe_word(m->rule));
        if (m->tool->convention)
            pe_import_scaling(m, "convention", pe_word(m->tool->convention));
    }
    for (const struct pe_lens *lens = m->tool->lenses; pe_lens_is(lens); lens++)
        if (import_member(m, lens, on_base))
            return m->err->status;
    if (m->form && m->form->layout)
        pe_hf_put_word(m->out, "layout", m->form->layout);
    return PE_OK;
}

enum pe_status pe_import_members(struct pe_import *m)
{
    if (m->tool->check && m->tool->check(m))
        return m->err->status;
    for (const struct pe_lens *lens = m->tool->lenses; pe_lens_is(lens); lens++)
        if (lens->ours && pe_same(lens->ours, "kind") && pe_import_member(m, lens->theirs)->word != PE_UNSET_WORD)
            m->form = &m->tool->forms[pe_import_member(m, lens->theirs)->word];
    if (m->form && m->form->scheme)
        pe_hf_put_word(m->out, "scheme", m->form->scheme);
    else if (import_rows(m) || (m->tool->import && m->tool->import(m)))
        return m->err->status;
    if (m->n_scaling)
        pe_hf_put(m->out, "scaling", pe_object(m->out->scaling, m->n_scaling));
    return PE_OK;
}
