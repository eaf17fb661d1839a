/* Rope objects, the rope_scaling and rope_parameters of a config.json, which several tools take: each has its rules of
 * scaling, and of each the members that it reads. The members of a rule are those of the scaling's row. */
#include "core/tools/lens.h"
#include "core/numeric/numeric.h"

#include <math.h>
#include <stdio.h>

static const char original_name[] = "original_max_position_embeddings", length_name[] = "max_position_embeddings";

const struct pe_rope_rule *pe_rope_rule_find(const struct pe_tool *tool, const char *rule)
{
    for (const struct pe_rope_rule *r = tool->rules; r->name; r++)
        if (pe_same(r->name, rule))
            return r;
    return NULL;
}

/* Is this word for a rule one that only other tools have? */
static bool is_foreign(const struct pe_tool *tool, const char *word)
{
    const struct pe_scaling_rule *rule = pe_scaling_find(word);
    return rule && rule->alias_is_of_tools && pe_same(rule->alias, word) && !pe_is_among(tool->words, word);
}

const struct pe_rope_rule *pe_rope_rule_of_type(const struct pe_tool *tool, const struct pe_value *type)
{
    const char *word = type && type->kind == PE_STRING ? type->string : "default";
    for (const struct pe_rope_rule *r = tool->rules; r->name; r++)
        if (r->word && pe_same(r->word, word))
            return r;
    const struct pe_rope_rule *row = is_foreign(tool, word) ? NULL : pe_rope_rule_find(tool, pe_rope_rule_word(type));
    return row && !row->word ? row : NULL;
}

const struct pe_value *pe_rope_type(const struct pe_value *rope)
{
    const struct pe_value *type = pe_stated(rope, "rope_type");
    return type ? type : pe_stated(rope, "type");
}

const char *pe_rope_rule_word(const struct pe_value *type)
{
    const char *word = type && type->kind == PE_STRING ? type->string : "default";
    const struct pe_scaling_rule *rule = pe_scaling_find(word);
    return rule ? rule->name : word;
}

bool pe_rope_is_unread(const struct pe_tool *tool, const struct pe_rope_rule *rule, const char *member, bool is_latent,
                       bool is_by_layer)
{
    const char *of_rule = is_latent && rule->unread_latent ? rule->unread_latent : rule->unread;
    return pe_is_among(of_rule, member) || (is_by_layer && pe_is_among(tool->unread_by_layer, member));
}

/* A rule that its words have. */
static const struct pe_rope_rule *rule_of_words(const struct pe_tool *tool, const char *name)
{
    const struct pe_rope_rule *rule = pe_rope_rule_find(tool, name);
    return rule && !rule->is_of_config ? rule : NULL;
}

/* ---- Export ---- */

/* A rule that is exported, of an object for all layers or for a kind of them. */
struct rule {
    struct pe_export *e;
    const struct pe_rope_rule *row;
    const struct pe_scaling_rule *scaling;
    bool is_by_layer;
};

static bool is_read(const struct rule *r, const char *member)
{
    return !pe_is_among(r->e->tool->unread, member) &&
           !pe_rope_is_unread(r->e->tool, r->row, member, r->e->is_latent, r->is_by_layer);
}

/* Does the value change nothing? */
static bool is_usual(const struct rule *r, const char *name, const struct pe_value *v)
{
    const struct pe_param *row = r->scaling->fields ? pe_param_find(r->scaling->fields, name) : NULL;
    if (pe_same(name, "factor"))
        return pe_value_number(v) == 1 && !r->scaling->factor_is_ratio && !pe_scaling_needs(r->scaling, name);
    return row && (v->kind == PE_BOOLEAN ? v->boolean == (row->fallback != 0) : pe_value_number(v) == row->fallback);
}

/* Also what the tool does not read of latent attention only: reading it back states that. */
static void export_member(const struct rule *r, struct pe_words *words, const char *name)
{
    char path[96];
    bool is_original = pe_same(name, original_name);
    bool is_unread =
        pe_is_among(r->e->tool->unread, name) || pe_rope_is_unread(r->e->tool, r->row, name, false, r->is_by_layer);
    snprintf(path, sizeof path, "scaling.%s", name);
    struct pe_value v = pe_config_at(r->e->config, path);
    if (v.kind == PE_NULL || is_unread || is_usual(r, name, &v) || (is_original && r->row->original == PE_OUTSIDE))
        return;
    if (is_original)
        pe_word_number(words, name, pe_value_number(&v));
    else
        pe_word_put(words, name, v);
}

/* sqrt(1 + ln s/ln O), what longrope has if nothing is given. */
static double usual_of_lists(double s, double original)
{
    if (s <= 1 || original <= 1)
        return 1;
    struct pe_dd square = dd_add(dd(1), dd_div(pe_dd_log(dd(s)), pe_dd_log(dd(original))));
    return pe_dd_exp(dd_mul_d(pe_dd_log(square), 0.5)).hi;
}

/* The factor on cos and sin: of two lists one for each, where the configuration or the tool has that; else as it is,
 * where it is not what the other members give. */
static void export_factor_of_lists(const struct rule *r, struct pe_words *words)
{
    const struct pe_export *e = r->e;
    double factor = pe_export_number(e, "scaling.factor", (double)NAN);
    bool takes_factor = is_read(r, "factor"), has_factor = takes_factor && factor > 0;
    if (pe_config_at(e->config, "scaling.short_mscale").kind != PE_NULL || !takes_factor) {
        pe_word_put(words, "short_mscale", pe_real(pe_export_number(e, "scaling.short_mscale", e->attention)));
        pe_word_put(words, "long_mscale", pe_real(pe_export_number(e, "scaling.long_mscale", e->attention)));
    } else if (!has_factor || usual_of_lists(factor, e->original) != e->attention) {
        pe_word_put(words, "attention_factor", pe_real(e->attention));
    }
}

/* … of yarn by the members that the tool reads: as it is, m(s, mscale)/m(s, mscale_all_dim), or m(s, 1) times
 * attn_factor. */
static void export_magnitude(const struct rule *r, struct pe_words *words)
{
    struct pe_export *e = r->e;
    double usual = pe_magnitude_ratio(e->factor, 1, 0), k = pe_export_number(e, "scaling.mscale", 0),
           l = pe_export_number(e, "scaling.mscale_all_dim", 0);
    if (is_read(r, "attention_factor")) {
        export_member(r, words, "mscale");
        export_member(r, words, "mscale_all_dim");
        if ((k > 0 && l > 0 ? pe_magnitude_ratio(e->factor, k, l) : usual) != e->attention)
            pe_word_put(words, "attention_factor", pe_real(e->attention));
    } else if (is_read(r, "mscale")) {
        pe_export_magnitudes(e, &k, &l);
        if (k != 1 || l != 0) {
            pe_word_put(words, "mscale", pe_real(k));
            pe_word_put(words, "mscale_all_dim", pe_real(l));
        }
    } else if (usual != e->attention) {
        pe_word_put(words, "attn_factor", pe_real(dd_div(dd(e->attention), dd(usual)).hi));
    }
}

static void export_rule(const struct rule *r, struct pe_words *words)
{
    for (const char *const *name = r->scaling->object; *name; name++)
        export_member(r, words, *name);
    if (pe_is_among(r->scaling->attention, "mscale"))
        export_magnitude(r, words);
    if (pe_is_among(r->scaling->attention, "short_mscale"))
        export_factor_of_lists(r, words);
}

static void export_sections(const struct pe_export *e, struct pe_words *words)
{
    const char *channels = pe_config_word(e->config, "channels");
    if (!pe_is_among("mrope|mrope_interleaved", channels) || pe_is_among(e->tool->unread, "mrope_section"))
        return;
    pe_word_put(words, "mrope_section", pe_config_at(e->config, "mrope_section"));
    if (pe_same(channels, "mrope_interleaved"))
        pe_word_put(words, "mrope_interleaved", pe_flag(true));
}

static struct pe_words export_rope(struct pe_export *e, bool is_by_layer)
{
    struct pe_words words = pe_words_new(e);
    struct rule r = {e, rule_of_words(e->tool, e->rule), pe_scaling_find(e->rule), is_by_layer};
    bool has_length = false;
    pe_word_put(&words, "rope_type", pe_word(r.row ? pe_rope_word_of(r.row) : "default"));
    if (e->tool->base != PE_OUTSIDE)
        pe_word_put(&words, "rope_theta", pe_real(pe_export_base(e)));
    if (r.row)
        export_rule(&r, &words);
    if (e->tool->share != PE_OUTSIDE && pe_export_share(e) < 1)
        pe_word_put(&words, "partial_rotary_factor", pe_real(pe_export_share(e)));
    export_sections(e, &words);
    for (const struct pe_lens *lens = e->tool->lenses; pe_lens_is(lens); lens++)
        has_length |= pe_is_among("length|overrides", lens->ours);
    if (r.row && pe_scaling_needs(r.scaling, length_name) && !has_length)
        pe_word_number(&words, length_name, pe_export_max(e));
    return words;
}

/* An object for each kind of layers. */
static struct pe_words export_kinds(struct pe_export *e)
{
    struct pe_words all = pe_words_new(e);
    for (size_t k = 0; k < e->n_kinds; k++) {
        struct pe_export one = {.tool = e->tool, .kind = e->kinds[k], .length = e->length, .values = e->values};
        pe_export_open(&one);
        struct pe_words words = export_rope(&one, true);
        pe_word_object(&all, e->kinds[k].layer_type, &words);
        e->failed |= one.failed;
    }
    return all;
}

/* The kind of each layer, where all are known. */
static void export_layers(struct pe_export *e, const char *member)
{
    size_t n = 0;
    for (size_t k = 0; k < e->n_kinds; k++)
        n += e->kinds[k].n_layers;
    if (e->n_kinds < 2 || n != pe_stated_layers_end(e->kinds, e->n_kinds)) /* others are no attention: no object */
        return;
    struct pe_value *types = pe_values_room(e->values, (n + 1) * sizeof *types);
    e->failed |= !types;
    for (size_t k = 0; types && k < e->n_kinds; k++)
        for (size_t i = 0; i < e->kinds[k].n_layers; i++)
            types[e->kinds[k].layers[i]] = pe_word(e->kinds[k].layer_type);
    if (types && n)
        pe_word_put(&e->value, member, (struct pe_value){.kind = PE_LIST, .list = {types, n}});
}

void pe_export_object(struct pe_export *e, const struct pe_lens *lens)
{
    const struct pe_rope_rule *row = rule_of_words(e->tool, e->rule);
    const struct pe_scaling_rule *scaling = pe_scaling_find(e->rule);
    bool has_rule = row && row != e->tool->rules, is_by_layer = e->tool->has_kinds && e->n_kinds > 1;
    if (pe_same(lens->ours, "layer_types")) {
        export_layers(e, lens->theirs);
        return;
    }
    struct pe_words words = is_by_layer ? export_kinds(e) : export_rope(e, false);
    if (pe_same(lens->ours, "overrides")) {
        struct pe_words overrides = pe_words_new(e), whole = pe_words_new(e);
        pe_word_object(&overrides, "rope_parameters", &words);
        if (scaling && pe_scaling_needs(scaling, length_name)) /* the model's */
            pe_word_number(&overrides, length_name, pe_export_max(e));
        if (e->within && *e->within)
            pe_word_object(&whole, e->within, &overrides);
        words = e->within && *e->within ? whole : overrides;
    } else if (e->tool->base == PE_OUTSIDE && !has_rule && !pe_field_find(words.fields, words.n, "mrope_section")) {
        pe_word_put(&e->value, lens->theirs, pe_null());
        return;
    }
    pe_word_object(&e->value, lens->theirs, &words);
}

/* ---- Import ---- */

/* Members of a rope object are fields of a scaling but for these, which are ours alone; of them those below are read
 * apart, or have no effect. */
static const char ours_alone[] = "convention|seq_len|softmax_scale_factor|divisors|list";
static const char apart[] = "rope_type|type|rope_theta|original_max_position_embeddings|max_position_embeddings|"
                            "partial_rotary_factor|mrope_section|mrope_interleaved|finetuned";

static enum pe_status wrong_inside(const struct pe_import *m, const char *member, const char *name,
                                   const char *sentence)
{
    char within[PE_POINTER_MAX];
    pe_pointer_join(within, sizeof within, "/said/value", member);
    return pe_fail_at(m->err, within, name, "%s %s", name, pe_text(sentence));
}

static enum pe_status number_inside(const struct pe_import *m, const char *member, const struct pe_value *object,
                                    const char *name, double *x)
{
    const struct pe_value *v = pe_stated(object, name);
    if (!v)
        return PE_OK;
    *x = pe_value_number(v);
    return isnan(*x) ? wrong_inside(m, member, name, "is not a number") : PE_OK;
}

static enum pe_status check_members(const struct pe_import *m, const char *member, const struct pe_value *object)
{
    if (object->kind != PE_OBJECT)
        return pe_import_wrong(m, member, "%s is not an object", member);
    if (object->object.n > PE_MODEL_FIELDS_MAX - 8)
        return pe_import_wrong(m, member, "%s has %zu members; allowed: at most %d", member, object->object.n,
                               PE_MODEL_FIELDS_MAX - 8);
    for (size_t i = 0; i < object->object.n; i++)
        if (!pe_param_find(pe_scaling_params, object->object.fields[i].name) ||
            pe_is_among(ours_alone, object->object.fields[i].name))
            return wrong_inside(m, member, object->object.fields[i].name, "is not a member of a rope object");
    return PE_OK;
}

/* The rule, by rope_type or type; one that the tool has. */
static enum pe_status find_rule(const struct pe_import *m, const char *member, const struct pe_value *object,
                                const struct pe_rope_rule **rule)
{
    const struct pe_value *v = pe_stated(object, "rope_type");
    const char *name = v ? "rope_type" : "type";
    v = v ? v : pe_stated(object, "type");
    *rule = m->tool->rules;
    if (!v)
        return PE_OK;
    if (v->kind != PE_STRING)
        return wrong_inside(m, member, name, "is not a string; write a name");
    *rule = pe_rope_rule_of_type(m->tool, v);
    if (*rule && !(*rule)->is_of_config)
        return PE_OK;
    char within[PE_POINTER_MAX], rules[160] = "";
    for (const struct pe_rope_rule *r = m->tool->rules + 1; r->name; r++)
        if (!r->is_of_config)
            strcat(strcat(rules, *rules ? ", " : ""), pe_rope_word_of(r));
    pe_pointer_join(within, sizeof within, "/said/value", member);
    return pe_fail_at(m->err, within, name, "%s is \"%.40s\", which %s does not have; allowed: default, %s", name,
                      v->string, m->tool->label, rules);
}

static void import_sections(const struct pe_import *m, const struct pe_value *object)
{
    const struct pe_value *sections = pe_stated(object, "mrope_section"),
                          *interleaved = pe_stated(object, "mrope_interleaved");
    if (!sections || pe_is_among(m->tool->unread, "mrope_section"))
        return;
    bool is_mixed = interleaved && interleaved->kind == PE_BOOLEAN && interleaved->boolean;
    pe_hf_put(m->out, "mrope_section", *sections);
    pe_hf_put_word(m->out, "channels", is_mixed ? "mrope_interleaved" : "mrope");
}

/* A number beside the object, by the field that it is; 0: there is none. */
static double beside(const struct pe_import *m, const char *ours)
{
    for (const struct pe_lens *lens = m->tool->lenses; pe_lens_is(lens); lens++)
        if (lens->ours && pe_same(lens->ours, ours) && lens->direction != PE_EXPORT_ONLY)
            return pe_import_number(m, lens->theirs);
    return 0;
}

/* Of a tool that chooses between two lists once, by the length that it is started for, else by the model's. */
static void import_list(struct pe_import *m, double original, double length)
{
    for (const struct pe_lens *lens = m->tool->lenses; pe_lens_is(lens); lens++)
        if (lens->ours && pe_same(lens->ours, "length") && pe_import_number(m, lens->theirs) > 0)
            length = pe_import_number(m, lens->theirs);
    if (original > 0 && length > 0)
        pe_import_scaling(m, "list", pe_rope_list(length, original));
}

/* Lengths that the rule needs: inside, else beside the object. */
static enum pe_status import_lengths(struct pe_import *m, const char *member, const struct pe_value *object,
                                     const struct pe_rope_rule *row, const struct pe_scaling_rule *rule, double length)
{
    bool needs_original = pe_scaling_needs(rule, original_name);
    bool has_factor = pe_stated(object, "factor") && !pe_is_among(row->unread, "factor");
    bool is_ratio = needs_original && rule->factor_is_ratio && !has_factor;
    double original = beside(m, "scaling.original_max_position_embeddings");
    if (number_inside(m, member, object, length_name, &length) ||
        (row->original != PE_OUTSIDE && number_inside(m, member, object, original_name, &original)))
        return m->err->status;
    if (needs_original && original == 0 && row->words_need_original)
        return pe_import_wrong(m, member, "%s has no original_max_position_embeddings, without which %s stops", member,
                               m->tool->label);
    if (needs_original && rule->factor_is_ratio && original == 0)
        original = length;
    if (needs_original && original > 0)
        pe_import_scaling(m, original_name, pe_real(original));
    if (row->has_one_list)
        import_list(m, original, length);
    if (length > 0 && (is_ratio || pe_scaling_needs(rule, length_name)))
        pe_import_scaling(m, length_name, pe_real(length));
    return PE_OK;
}

static enum pe_status import_rope(struct pe_import *m, const char *member, const struct pe_value *object, double length,
                                  bool is_by_layer)
{
    const struct pe_rope_rule *row;
    const struct pe_value *latent = pe_field_find(m->beside, m->n_beside, "rotary_offset");
    bool is_latent = latent && pe_value_number(latent) > 0;
    double share = (double)NAN, base = m->tool->base == PE_OUTSIDE ? beside(m, "base") : 10000;
    if (object && check_members(m, member, object))
        return m->err->status;
    if (find_rule(m, member, object, &row) ||
        (m->tool->base != PE_OUTSIDE && number_inside(m, member, object, "rope_theta", &base)) ||
        (m->tool->share != PE_OUTSIDE && number_inside(m, member, object, "partial_rotary_factor", &share)))
        return m->err->status;
    if (m->tool->words_need_base && object && !pe_stated(object, "rope_theta"))
        return pe_import_wrong(m, member, "%s has no rope_theta, without which %s stops", member, m->tool->label);
    const struct pe_scaling_rule *rule = pe_scaling_find(row->name);
    pe_hf_put_number(m->out, "base", base);
    if (!isnan(share) && share != 1 && !rule->has_whole_head)
        pe_hf_put_number(m->out, "partial_rotary_factor", share);
    import_sections(m, object);
    if (row == m->tool->rules)
        return PE_OK;
    pe_import_scaling(m, "type", pe_word(rule->name));
    for (size_t i = 0; i < object->object.n; i++) {
        const struct pe_field *field = &object->object.fields[i];
        if (field->value.kind != PE_NULL && !pe_is_among(apart, field->name) &&
            !pe_is_among(m->tool->unread, field->name) &&
            !pe_rope_is_unread(m->tool, row, field->name, is_latent, is_by_layer))
            pe_import_scaling(m, field->name, field->value);
    }
    if (rule->has_whole_head && !isnan(share))
        pe_import_scaling(m, "partial_rotary_factor", pe_real(share));
    if (m->tool->convention && pe_scaling_takes(rule, "convention"))
        pe_import_scaling(m, "convention", pe_word(m->tool->convention));
    return import_lengths(m, member, object, row, rule, length);
}

static enum pe_status choose_kind(const struct pe_import *m, const struct pe_value **chosen);

/* Perhaps inside the object of the language model. */
static enum pe_status import_overrides(struct pe_import *m, const char *member, const struct pe_value *overrides)
{
    double length = 0, width = 0;
    if (overrides && overrides->kind != PE_OBJECT)
        return pe_import_wrong(m, member, "%s is not an object", member);
    if (overrides && pe_overrides_are_nested(overrides))
        return import_overrides(m, member, &overrides->object.fields->value);
    for (size_t i = 0; overrides && i < overrides->object.n; i++)
        if (!pe_is_among("rope_parameters|max_position_embeddings|head_dim", overrides->object.fields[i].name))
            return wrong_inside(m, member, overrides->object.fields[i].name,
                                "is not read here; allowed: rope_parameters, max_position_embeddings, head_dim");
    if (number_inside(m, member, overrides, length_name, &length) ||
        number_inside(m, member, overrides, "head_dim", &width))
        return m->err->status;
    if (width > 0)
        pe_hf_put_number(m->out, "head_dim", width);
    const struct pe_value *rope = pe_stated(overrides, "rope_parameters");
    bool is_by_layer = m->tool->has_kinds && pe_value_has_objects(rope);
    if (is_by_layer && choose_kind(m, &rope))
        return m->err->status;
    return import_rope(m, member, rope, length, is_by_layer);
}

/* The object of the kind that is named, of several. */
static enum pe_status choose_kind(const struct pe_import *m, const struct pe_value **chosen)
{
    char known[256] = "";
    const struct pe_value *all = *chosen;
    for (size_t i = 0; i < all->object.n; i++) {
        const char *name = all->object.fields[i].name;
        if (m->layer_type && pe_same(name, m->layer_type)) {
            *chosen = &all->object.fields[i].value;
            return PE_OK;
        }
        if (strlen(known) + strlen(name) + 3 < sizeof known)
            strcat(strcat(known, *known ? ", " : ""), name);
    }
    if (m->layer_type)
        return pe_fail(m->err, "/layer_type", "rope_parameters has no layers of type \"%.64s\"; it has: %s",
                       m->layer_type, known);
    return pe_fail(m->err, "/layer_type", "rope_parameters has an object for each kind of layers; give layer_type: %s",
                   known);
}

enum pe_status pe_import_object(struct pe_import *m, const struct pe_lens *lens)
{
    const struct pe_value *object = pe_import_member(m, lens->theirs)->value;
    bool is_by_layer = m->tool->has_kinds && pe_value_has_objects(object);
    if (pe_same(lens->ours, "overrides"))
        return import_overrides(m, lens->theirs, object);
    if (is_by_layer && choose_kind(m, &object))
        return m->err->status;
    return import_rope(m, lens->theirs, object, beside(m, "length"), is_by_layer);
}
