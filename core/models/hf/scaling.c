/* The field `scaling` from a config's rope_parameters or rope_scaling. Its fields are passed on unchanged, so that
 * the scheme checks them. Fields that move to the request's own fields are left out, and lengths that some models
 * keep outside the object are added if the type needs them (transformers, modeling_rope_utils.py). */
#include "core/models/hf/hf.h"
#include "core/schemes/scalings/scaling.h"

#include <stdio.h>
#include <string.h>

/* Fields that are read elsewhere or have no effect on cos and sin. */
static const char not_passed[] = "type|rope_type|rope_theta|mrope_section|mrope_interleaved|finetuned|"
                                 "max_position_embeddings|original_max_position_embeddings";

/* The rule of a type; no rule at all if it has none. */
static const struct pe_scaling_rule *rule_of(const char *type)
{
    const struct pe_scaling_rule *rule = pe_scaling_find(type);
    return rule ? rule : pe_scaling_at(0);
}

/* Old words for a type: su anywhere, mrope where axes share the channels. */
static const char *modern(const char *type, const struct pe_hf_reader *r)
{
    const struct pe_scaling_rule *rule = pe_scaling_find(type);
    bool is_known = rule && (rule != pe_scaling_at(0) || r->model->channels || r->scheme_is_given);
    return is_known ? rule->name : type;
}

/* "default, linear, …": the types that transformers' code knows. A scheme may know more, which a model's code does not.
 */
static void spell_types(char *out, size_t room)
{
    size_t used = 0;
    for (int i = 0; i < PE_N_SCALINGS && used < room; i++)
        if (pe_scaling_at(i)->in_transformers)
            used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "", pe_scaling_at(i)->name);
}

/* Is it a type of this model's code? An object that names a library's convention is that library's. */
static enum pe_status check_type(const struct pe_hf_reader *r, const char *type)
{
    char spelled[160];
    const struct pe_field *field = pe_hf_find(&r->rope, "rope_type|type");
    spell_types(spelled, sizeof spelled);
    bool is_known =
        (rule_of(type)->in_transformers || pe_hf_find(&r->rope, "convention")) && pe_same(rule_of(type)->name, type);
    return is_known ? PE_OK : pe_hf_wrong(&r->rope, field, spelled, r->err);
}

enum { SCALING_FIELDS_MAX = PE_MODEL_FIELDS_MAX - 6 }; /* room for type, two lengths, a share, a factor */

void pe_hf_add(struct pe_hf_reader *r, size_t *n, const char *name, struct pe_value value)
{
    r->out->scaling[(*n)++] = (struct pe_field){.name = name, .value = value};
}

static void pass_fields(struct pe_hf_reader *r, bool has_share, size_t *n)
{
    const struct pe_value *rope = r->rope.object;
    for (size_t i = 0; i < rope->object.n; i++) {
        const struct pe_field *field = &rope->object.fields[i];
        bool is_share = strcmp(field->name, "partial_rotary_factor") == 0;
        if (pe_is_among(not_passed, field->name) || (is_share && !has_share) || field->value.kind == PE_NULL)
            continue;
        pe_hf_mark_read(r->rope.marks, field);
        pe_hf_add(r, n, field->name, field->value);
    }
}

/* A length from the rope object or, failing that, the config. Phi-3 keeps both outside. */
static const struct pe_field *length_of(const struct pe_hf_reader *r, const char *names)
{
    const struct pe_field *inside = pe_hf_find(&r->rope, names);
    return inside ? inside : pe_hf_find(&r->config, names);
}

/* max_position_embeddings, if the rule needs it, or instead of a factor, which is then a ratio of two lengths; and
 * original_max_position_embeddings, which of such a rule is max_position_embeddings if the config has none. */
static void add_lengths(struct pe_hf_reader *r, const struct pe_scaling_rule *rule, size_t *n)
{
    bool needs_original = pe_scaling_needs(rule, "original_max_position_embeddings");
    bool has_ratio = needs_original && rule->factor_is_ratio;
    bool needs_length =
        pe_scaling_needs(rule, "max_position_embeddings") || (has_ratio && pe_hf_find(&r->rope, "factor") == NULL);
    const struct pe_field *original = needs_original ? length_of(r, "original_max_position_embeddings") : NULL;
    bool is_length = !original && has_ratio;
    const struct pe_field *length = needs_length || is_length ? length_of(r, PE_HF_LENGTH) : NULL;
    if (is_length && length)
        pe_hf_mark_default(r->config.marks, "original_max_position_embeddings", length->value);
    if (is_length)
        original = length;
    if (length && needs_length)
        pe_hf_add(r, n, "max_position_embeddings", length->value);
    if (original)
        pe_hf_add(r, n, "original_max_position_embeddings", original->value);
}

enum pe_status pe_hf_scaling(struct pe_hf_reader *r)
{
    const char *type = "default";
    enum pe_status status = pe_hf_word(&r->rope, "rope_type|type", &type, r->err);
    type = modern(type, r);
    if (!status && r->model->scaling)
        status = r->model->scaling(r, &type);
    if (status || !type || !r->rope.object)
        return status;
    if (strcmp(type, "default") == 0) {
        if (!pe_hf_find(&r->rope, "rope_type|type") && pe_hf_find(&r->rope, "factor"))
            return pe_fail(r->err, r->rope.at, "a factor but no rope_type; write \"rope_type\": \"linear\" or so");
        return PE_OK;
    }
    if (!r->scheme_is_given && check_type(r, type))
        return r->err->status;
    if (r->rope.object->object.n > SCALING_FIELDS_MAX)
        return pe_fail(r->err, r->rope.at, "%zu fields; allowed: at most %d", r->rope.object->object.n,
                       SCALING_FIELDS_MAX);
    const struct pe_scaling_rule *rule = rule_of(type);
    size_t n = 0;
    pe_hf_add(r, &n, "type", pe_word(type));
    pass_fields(r, rule->has_whole_head, &n);
    if (r->model->scaled)
        r->model->scaled(r, type, &n);
    if (!r->scheme_is_given && pe_hf_says(&r->rope, "mscale_all_dim") && !pe_hf_has_magnitude(r) &&
        !pe_hf_says(&r->rope, "softmax_scale_factor"))
        pe_hf_add(r, &n, "softmax_scale_factor", pe_real(1));
    const struct pe_field *share = pe_hf_find(&r->config, "partial_rotary_factor");
    if (rule->has_whole_head && share && !pe_hf_find(&r->rope, "partial_rotary_factor"))
        pe_hf_add(r, &n, share->name, share->value);
    add_lengths(r, rule, &n);
    pe_hf_put(r->out, "scaling", pe_object(r->out->scaling, n));
    return PE_OK;
}
