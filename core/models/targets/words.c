/* A configuration opened for a target, the members that are said of it, and members that are read. */
#include "core/models/targets/targets.h"
#include "core/numeric/numeric.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- The configuration ---- */

double pe_saying_number(const struct pe_saying *s, const char *path, double otherwise)
{
    return pe_config_number(s->config, path, otherwise);
}

void pe_saying_open(struct pe_saying *s)
{
    s->config = s->kind.config;
    s->scheme = pe_config_word(s->config, "scheme");
    s->rule = pe_config_word(s->config, "scaling.type");
    s->rule = *s->rule ? s->rule : "default";
    s->head_dim = pe_saying_number(s, "head_dim", 2 * (double)s->kind.n);
    s->rotary_dim = pe_saying_number(s, "rotary_dim", s->head_dim);
    s->rotary_offset = pe_saying_number(s, "rotary_offset", 0);
    s->base = pe_saying_number(s, "base", 10000);
    s->factor = pe_saying_number(s, "scaling.factor", 1);
    s->original = pe_saying_number(s, "scaling.original_max_position_embeddings", 0);
    s->attention = pe_saying_number(s, "attention_factor", 1);
    s->is_half = pe_same(pe_config_word(s->config, "layout"), "half");
    s->is_latent = s->rotary_offset > 0;
    s->layout = s->target->layout ? s->target->layout : pe_config_word(s->config, "layout");
    s->value = pe_words_new(s);
}

double pe_saying_base(const struct pe_saying *s)
{
    if (!pe_same(s->rule, "ntk") || s->rotary_dim <= 2)
        return s->base;
    struct pe_dd power = dd_div(dd(s->rotary_dim), dd(s->rotary_dim - 2));
    return dd_mul_d(pe_dd_exp(dd_mul(power, pe_dd_log(dd(s->factor)))), s->base).hi;
}

double pe_saying_share(const struct pe_saying *s)
{
    double share = s->rotary_dim / s->head_dim;
    return floor(share * s->head_dim) < s->rotary_dim ? nextafter(share, 1) : share;
}

double pe_saying_max(const struct pe_saying *s)
{
    return pe_saying_number(s, "scaling.max_position_embeddings", (double)s->length);
}

/* ---- Magnitudes ---- */

static struct pe_dd magnitude(double s, double k)
{
    return s <= 1 ? dd(1) : dd_add(dd(1), dd_div(dd_mul_d(pe_dd_log(dd(s)), k), dd(10)));
}

double pe_magnitude(double s, double k) { return magnitude(s, k).hi; }

double pe_magnitude_ratio(double s, double k, double l) { return dd_div(magnitude(s, k), magnitude(s, l)).hi; }

/* The factor k of m(s, k) = m. */
static double solve(double s, struct pe_dd m)
{
    return s <= 1 ? 0 : dd_div(dd_mul_d(dd_sub(m, dd(1)), 10), pe_dd_log(dd(s))).hi;
}

void pe_saying_magnitudes(const struct pe_saying *s, double *k, double *l)
{
    double of_all = pe_saying_number(s, "scaling.mscale_all_dim", 0);
    *k = pe_saying_number(s, "scaling.mscale", 0);
    *l = of_all;
    if (*k > 0 && *l > 0 && pe_magnitude_ratio(s->factor, *k, *l) == s->attention)
        return;
    *k = 1;
    *l = 0;
    if (pe_magnitude(s->factor, 1) == s->attention)
        return;
    *k = s->attention >= 1 ? solve(s->factor, dd(s->attention)) : 0;
    *l = s->attention >= 1 ? 0 : solve(s->factor, dd_div(dd(1), dd(s->attention)));
}

/* ---- Members ---- */

struct pe_words pe_words_new(struct pe_saying *s)
{
    struct pe_words words = {.s = s, .fields = pe_values_room(s->values, PE_WORDS_MAX * sizeof *words.fields)};
    s->failed |= !words.fields;
    return words;
}

void pe_say(struct pe_words *words, const char *name, struct pe_value value)
{
    if (words->fields && words->n < PE_WORDS_MAX)
        words->fields[words->n++] = (struct pe_field){name, value};
}

void pe_say_null(struct pe_words *words, const char *name) { pe_say(words, name, (struct pe_value){.kind = PE_NULL}); }

void pe_say_real(struct pe_words *words, const char *name, double x)
{
    pe_say(words, name, (struct pe_value){.kind = PE_REAL, .real = x});
}

void pe_say_integer(struct pe_words *words, const char *name, double x)
{
    pe_say(words, name, (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)x});
}

void pe_say_number(struct pe_words *words, const char *name, double x)
{
    if (x == floor(x) && fabs(x) < 0x1p53)
        pe_say_integer(words, name, x);
    else
        pe_say_real(words, name, x);
}

void pe_say_word(struct pe_words *words, const char *name, const char *word)
{
    pe_say(words, name, (struct pe_value){.kind = PE_STRING, .string = word});
}

void pe_say_flag(struct pe_words *words, const char *name, bool flag)
{
    pe_say(words, name, (struct pe_value){.kind = PE_BOOLEAN, .boolean = flag});
}

void pe_say_object(struct pe_words *words, const char *name, const struct pe_words *object)
{
    pe_say(words, name, (struct pe_value){.kind = PE_OBJECT, .object = {object->fields, object->n}});
}

void pe_say_reals(struct pe_words *words, const char *name, const double *numbers, size_t n)
{
    struct pe_tensor array = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = numbers};
    pe_say(words, name, (struct pe_value){.kind = PE_ARRAY, .from_text = true, .array = array});
}

void pe_say_field(struct pe_words *words, const char *name, const char *path)
{
    struct pe_value value = pe_config_at(words->s->config, path);
    if (value.kind != PE_NULL)
        pe_say(words, name, value);
}

/* ---- Reading: fields beside the members, refusals, the scaling object that they become ---- */

double pe_beside(const struct pe_hearing *h, const char *name, double otherwise)
{
    const struct pe_value *v = pe_field_find(h->beside, h->n_beside, name);
    if (!v || (v->kind != PE_INTEGER && v->kind != PE_REAL))
        return otherwise;
    return v->kind == PE_INTEGER ? (double)v->integer : v->real;
}

enum pe_status pe_hear_wrong(const struct pe_hearing *h, const char *member, const char *format, ...)
{
    char pointer[PE_POINTER_MAX], sentence[PE_DETAIL_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, pe_text(format), args);
    va_end(args);
    pe_pointer_join(pointer, sizeof pointer, "/said/value", member);
    return pe_fail(h->err, pointer, "%s", sentence);
}

void pe_hear_field(struct pe_heard *heard, const char *name, struct pe_value value)
{
    if (heard->n < PE_MODEL_FIELDS_MAX)
        heard->h->out->scaling[heard->n++] = (struct pe_field){name, value};
}

void pe_hear_word(struct pe_heard *heard, const char *name, const char *word)
{
    pe_hear_field(heard, name, (struct pe_value){.kind = PE_STRING, .string = word});
}

void pe_hear_number(struct pe_heard *heard, const char *name, double x)
{
    if (!isnan(x))
        pe_hear_field(heard, name, (struct pe_value){.kind = PE_REAL, .real = x});
}

void pe_hear_flag(struct pe_heard *heard, const char *name, bool flag)
{
    pe_hear_field(heard, name, (struct pe_value){.kind = PE_BOOLEAN, .boolean = flag});
}

void pe_hear_done(const struct pe_heard *heard)
{
    pe_hf_put(heard->h->out, "scaling",
              (struct pe_value){.kind = PE_OBJECT, .object = {heard->h->out->scaling, heard->n}});
}
