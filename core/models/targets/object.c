/* Rope objects, the rope_scaling and rope_parameters of a config.json, which several tools take: each has its rules,
 * its members, and its own way to a factor on cos and sin. */
#include "core/models/targets/targets.h"
#include "core/numeric/numeric.h"
#include "core/schemes/scalings/scaling.h"

#include <math.h>
#include <stdio.h>

/* ---- Saying ---- */

/* sqrt(1 + ln s/ln O), what longrope has if nothing is given. */
static double usual_of_longrope(double s, double original)
{
    if (s <= 1 || original <= 1)
        return 1;
    struct pe_dd square = dd_add(dd(1), dd_div(pe_dd_log(dd(s)), pe_dd_log(dd(original))));
    return pe_dd_exp(dd_mul_d(pe_dd_log(square), 0.5)).hi;
}

static void say_magnitude(struct pe_words *words, const struct pe_target_object *how)
{
    const struct pe_saying *s = words->s;
    bool is_pair = how->magnitude == PE_MAGNITUDE_PAIR || (how->magnitude == PE_MAGNITUDE_MULTIPLIED && s->is_latent);
    double usual = pe_magnitude(s->factor, 1), k = pe_saying_number(s, "scaling.mscale", 0),
           l = pe_saying_number(s, "scaling.mscale_all_dim", 0);
    if (how->magnitude == PE_MAGNITUDE_GIVEN) {
        pe_say_field(words, "mscale", "scaling.mscale");
        pe_say_field(words, "mscale_all_dim", "scaling.mscale_all_dim");
        if ((k > 0 && l > 0 ? pe_magnitude_ratio(s->factor, k, l) : usual) != s->attention)
            pe_say_real(words, "attention_factor", s->attention);
        return;
    }
    pe_saying_magnitudes(s, &k, &l);
    if (is_pair && (k != 1 || l != 0)) {
        pe_say_real(words, "mscale", k);
        pe_say_real(words, "mscale_all_dim", l);
    }
    if (!is_pair && usual != s->attention)
        pe_say_real(words, "attn_factor", dd_div(dd(s->attention), dd(usual)).hi);
}

static void say_yarn(struct pe_words *words, const struct pe_target_object *how)
{
    const struct pe_saying *s = words->s;
    double fast = pe_saying_number(s, "scaling.beta_fast", 32), slow = pe_saying_number(s, "scaling.beta_slow", 1);
    struct pe_value truncate = pe_config_at(s->config, "scaling.truncate");
    pe_say_real(words, "factor", s->factor);
    pe_say_number(words, "original_max_position_embeddings", s->original);
    if (fast != 32)
        pe_say_real(words, "beta_fast", fast);
    if (slow != 1)
        pe_say_real(words, "beta_slow", slow);
    if (!how->rounds_always && truncate.kind == PE_BOOLEAN && !truncate.boolean)
        pe_say_flag(words, "truncate", false);
    say_magnitude(words, how);
}

static void say_longrope(struct pe_words *words, const struct pe_target_object *how)
{
    const struct pe_saying *s = words->s;
    double factor = pe_saying_number(s, "scaling.factor", (double)NAN);
    bool takes_factor = !pe_is_among(how->unread, "factor"), has_factor = takes_factor && factor > 0;
    bool has_two = pe_config_at(s->config, "scaling.short_mscale").kind != PE_NULL;
    if (has_factor)
        pe_say_real(words, "factor", factor);
    if (how->has_length)
        pe_say_number(words, "original_max_position_embeddings", s->original);
    pe_say_field(words, "short_factor", "scaling.short_factor");
    pe_say_field(words, "long_factor", "scaling.long_factor");
    if (has_two || !takes_factor) { /* one for each list */
        pe_say_real(words, "short_mscale", pe_saying_number(s, "scaling.short_mscale", s->attention));
        pe_say_real(words, "long_mscale", pe_saying_number(s, "scaling.long_mscale", s->attention));
    } else if (!has_factor || usual_of_longrope(factor, s->original) != s->attention) {
        pe_say_real(words, "attention_factor", s->attention);
    }
}

static void say_llama3(struct pe_words *words)
{
    const struct pe_saying *s = words->s;
    pe_say_real(words, "factor", s->factor);
    pe_say_real(words, "low_freq_factor", pe_saying_number(s, "scaling.low_freq_factor", 1));
    pe_say_real(words, "high_freq_factor", pe_saying_number(s, "scaling.high_freq_factor", 4));
    pe_say_number(words, "original_max_position_embeddings", s->original);
}

static void say_rule(struct pe_words *words, const char *rule, const struct pe_target_object *how)
{
    const struct pe_saying *s = words->s;
    if (pe_same(rule, "yarn"))
        say_yarn(words, how);
    else if (pe_same(rule, "longrope"))
        say_longrope(words, how);
    else if (pe_same(rule, "llama3"))
        say_llama3(words);
    else if (pe_same(rule, "linear") || pe_same(rule, "dynamic") || (pe_same(rule, "proportional") && s->factor != 1))
        pe_say_real(words, "factor", s->factor);
    if (pe_same(rule, "proportional"))
        pe_say_field(words, "partial_rotary_factor", "scaling.partial_rotary_factor");
}

void pe_say_rope(struct pe_words *words, const struct pe_target_object *how)
{
    const struct pe_saying *s = words->s;
    const char *rule = pe_is_among(how->rules, s->rule) ? s->rule : "default";
    const char *channels = pe_config_word(s->config, "channels");
    pe_say_word(words, "rope_type", rule);
    if (how->has_base)
        pe_say_real(words, "rope_theta", pe_saying_base(s));
    say_rule(words, rule, how);
    if (how->has_share && s->rotary_dim < s->head_dim && !s->is_latent && !pe_same(rule, "proportional"))
        pe_say_real(words, "partial_rotary_factor", pe_saying_share(s));
    if (how->has_sections && pe_is_among("mrope|mrope_interleaved", channels)) {
        pe_say_field(words, "mrope_section", "mrope_section");
        if (pe_same(channels, "mrope_interleaved"))
            pe_say_flag(words, "mrope_interleaved", true);
    }
}

/* ---- Reading ---- */

static const char members[] =
    "rope_type|type|rope_theta|factor|original_max_position_embeddings|max_position_embeddings|attention_factor|"
    "attn_factor|beta_fast|beta_slow|truncate|mscale|mscale_all_dim|short_factor|long_factor|short_mscale|long_mscale|"
    "low_freq_factor|high_freq_factor|partial_rotary_factor|mrope_section|mrope_interleaved|finetuned|"
    "llama_4_scaling_beta|extrapolation_factor";
/* … that are read below, or have no effect. */
static const char apart[] = "rope_type|type|rope_theta|original_max_position_embeddings|max_position_embeddings|"
                            "partial_rotary_factor|mrope_section|mrope_interleaved|finetuned";

static const struct pe_value *member_of(const struct pe_value *object, const char *name)
{
    const struct pe_value *v = object ? pe_field_find(object->object.fields, object->object.n, name) : NULL;
    return v && v->kind != PE_NULL ? v : NULL;
}

static enum pe_status wrong_inside(const struct pe_hearing *h, const char *member, const char *name,
                                   const char *sentence)
{
    char pointer[PE_POINTER_MAX], within[PE_POINTER_MAX];
    pe_pointer_join(within, sizeof within, "/said/value", member);
    pe_pointer_join(pointer, sizeof pointer, within, name);
    return pe_fail(h->err, pointer, "%s %s", name, pe_text(sentence));
}

static enum pe_status number_inside(const struct pe_hearing *h, const char *member, const struct pe_value *object,
                                    const char *name, double *x)
{
    const struct pe_value *v = member_of(object, name);
    if (!v)
        return PE_OK;
    if (v->kind != PE_INTEGER && v->kind != PE_REAL)
        return wrong_inside(h, member, name, "is not a number");
    *x = v->kind == PE_INTEGER ? (double)v->integer : v->real;
    return PE_OK;
}

static enum pe_status check_members(const struct pe_hearing *h, const char *member, const struct pe_value *object)
{
    if (object->kind != PE_OBJECT)
        return pe_hear_wrong(h, member, "%s is not an object", member);
    if (object->object.n > PE_MODEL_FIELDS_MAX - 8)
        return pe_hear_wrong(h, member, "%s has %zu members; allowed: at most %d", member, object->object.n,
                             PE_MODEL_FIELDS_MAX - 8);
    for (size_t i = 0; i < object->object.n; i++)
        if (!pe_is_among(members, object->object.fields[i].name))
            return wrong_inside(h, member, object->object.fields[i].name, "is not a member of a rope object");
    return PE_OK;
}

/* The rule, by rope_type or type; one that the tool has. */
static enum pe_status find_rule(const struct pe_hearing *h, const char *member, const struct pe_value *object,
                                const struct pe_target_object *how, const struct pe_scaling_rule **rule)
{
    const struct pe_value *v = member_of(object, "rope_type");
    const char *name = v ? "rope_type" : "type";
    v = v ? v : member_of(object, "type");
    *rule = pe_scaling_at(0);
    if (!v)
        return PE_OK;
    if (v->kind != PE_STRING)
        return wrong_inside(h, member, name, "is not a string; write a name");
    const struct pe_scaling_rule *found = pe_scaling_find(v->string);
    if (!found || (found != pe_scaling_at(0) && !pe_is_among(how->rules, found->name))) {
        char pointer[PE_POINTER_MAX], within[PE_POINTER_MAX], rules[160];
        pe_pointer_join(within, sizeof within, "/said/value", member);
        pe_pointer_join(pointer, sizeof pointer, within, name);
        pe_hf_spell(how->rules, rules, sizeof rules);
        return pe_fail(h->err, pointer, "%s is \"%.40s\", which %s does not have; allowed: default, %s", name,
                       v->string, h->target->label, rules);
    }
    *rule = found;
    return PE_OK;
}

static enum pe_status hear_sections(const struct pe_hearing *h, const struct pe_value *object)
{
    const struct pe_value *sections = member_of(object, "mrope_section"),
                          *interleaved = member_of(object, "mrope_interleaved");
    if (!sections)
        return PE_OK;
    bool is_mixed = interleaved && interleaved->kind == PE_BOOLEAN && interleaved->boolean;
    pe_hf_put(h->out, "mrope_section", *sections);
    pe_hf_put_word(h->out, "channels", is_mixed ? "mrope_interleaved" : "mrope");
    return PE_OK;
}

static bool is_taken(const struct pe_hearing *h, const struct pe_target_object *how, const struct pe_scaling_rule *rule,
                     const char *name)
{
    bool is_latent = pe_beside(h, "rotary_offset", 0) > 0;
    bool has_pair = how->magnitude != PE_MAGNITUDE_MULTIPLIED || is_latent;
    if (pe_same(rule->name, "yarn") && pe_is_among("mscale|mscale_all_dim", name))
        return has_pair;
    if (pe_same(name, "attention_factor"))
        return how->magnitude == PE_MAGNITUDE_GIVEN;
    if (pe_same(name, "attn_factor"))
        return how->magnitude == PE_MAGNITUDE_MULTIPLIED;
    if (pe_same(name, "truncate"))
        return !how->rounds_always && !(how->magnitude == PE_MAGNITUDE_MULTIPLIED && is_latent);
    if (pe_same(name, "factor") && !pe_same(rule->name, "longrope"))
        return true;
    return !pe_is_among(how->unread, name);
}

/* Lengths that the rule needs: inside, else beside the object. */
static enum pe_status hear_lengths(struct pe_heard *heard, const char *member, const struct pe_value *object,
                                   const struct pe_target_object *how, const struct pe_scaling_rule *rule,
                                   double length, double original)
{
    const struct pe_hearing *h = heard->h;
    bool needs_original = pe_scaling_needs(rule, "original_max_position_embeddings");
    bool has_factor = member_of(object, "factor") && is_taken(h, how, rule, "factor");
    bool is_ratio = needs_original && rule->factor_is_ratio && !has_factor;
    bool is_inside = how->has_length || !pe_same(rule->name, "longrope");
    if (number_inside(h, member, object, "max_position_embeddings", &length) ||
        (is_inside && number_inside(h, member, object, "original_max_position_embeddings", &original)))
        return h->err->status;
    if (needs_original && rule->factor_is_ratio && original == 0)
        original = length;
    if (needs_original && original > 0)
        pe_hear_number(heard, "original_max_position_embeddings", original);
    if (length > 0 && (is_ratio || pe_scaling_needs(rule, "max_position_embeddings")))
        pe_hear_number(heard, "max_position_embeddings", length);
    return PE_OK;
}

enum pe_status pe_hear_rope(const struct pe_hearing *h, const char *member, const struct pe_value *object,
                            const struct pe_target_object *how, double base, double length, double original)
{
    const struct pe_scaling_rule *rule;
    struct pe_heard heard = {.h = h};
    double share = (double)NAN;
    if (object && check_members(h, member, object))
        return h->err->status;
    if (find_rule(h, member, object, how, &rule) ||
        (how->has_base && number_inside(h, member, object, "rope_theta", &base)) ||
        (how->has_share && number_inside(h, member, object, "partial_rotary_factor", &share)))
        return h->err->status;
    pe_hf_put_number(h->out, "base", base);
    if (!isnan(share) && share != 1 && !rule->has_whole_head)
        pe_hf_put_number(h->out, "partial_rotary_factor", share);
    if (how->has_sections)
        hear_sections(h, object);
    if (rule == pe_scaling_at(0))
        return PE_OK;
    pe_hear_word(&heard, "type", rule->name);
    for (size_t i = 0; i < object->object.n; i++) {
        const struct pe_field *field = &object->object.fields[i];
        if (field->value.kind != PE_NULL && !pe_is_among(apart, field->name) && is_taken(h, how, rule, field->name))
            pe_hear_field(&heard, field->name, field->value);
    }
    if (rule->has_whole_head)
        pe_hear_number(&heard, "partial_rotary_factor", share);
    if (how->convention && pe_scaling_takes(rule, "convention"))
        pe_hear_word(&heard, "convention", how->convention);
    if (hear_lengths(&heard, member, object, how, rule, length, original))
        return h->err->status;
    pe_hear_done(&heard);
    return PE_OK;
}

enum pe_status pe_hear_overrides(const struct pe_hearing *h, const char *member, const struct pe_value *overrides,
                                 const struct pe_target_object *how)
{
    const struct pe_value *object = NULL;
    double length = 0;
    if (overrides && overrides->kind != PE_OBJECT)
        return pe_hear_wrong(h, member, "%s is not an object", member);
    for (size_t i = 0; overrides && i < overrides->object.n; i++)
        if (!pe_is_among("rope_parameters|max_position_embeddings", overrides->object.fields[i].name))
            return wrong_inside(h, member, overrides->object.fields[i].name,
                                "is not read here; allowed: rope_parameters, max_position_embeddings");
    if (overrides) {
        object = member_of(overrides, "rope_parameters");
        if (number_inside(h, member, overrides, "max_position_embeddings", &length))
            return h->err->status;
    }
    return pe_hear_rope(h, member, object, how, 10000, length, 0);
}

/* ---- Two factors ---- */

enum pe_status pe_hear_two_factors(const struct pe_hearing *h, double base, double dim, double linear, double ntk)
{
    struct pe_heard heard = {.h = h};
    bool are_both = linear != 1 && ntk != 1;
    if (are_both && dim <= 2)
        return pe_fail(h->err, "/head_dim", "head_dim is missing; the exponent of a factor on the base needs it");
    if (are_both) {
        struct pe_dd power = dd_div(dd(dim), dd(dim - 2));
        base = dd_mul_d(pe_dd_exp(dd_mul(power, pe_dd_log(dd(ntk)))), base).hi;
    }
    pe_hf_put_number(h->out, "base", base);
    if (linear == 1 && ntk == 1)
        return PE_OK;
    pe_hear_word(&heard, "type", linear != 1 ? "linear" : "ntk");
    pe_hear_number(&heard, "factor", linear != 1 ? linear : ntk);
    pe_hear_done(&heard);
    return PE_OK;
}
