/* What multiplies and caps the scores of a class, from a config: the row's scale, cap and sinks, and traits.
 *
 * Each is read in the class's attention code. Where that was not read, the answer has a note and the usual 1/sqrt of a
 * head's width, unless the config has a field by which some class scales or caps: that may change every score, so
 * scores are refused. */
#include "core/models/hf/hf.h"
#include "core/params.h"
#include "core/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields by which some class multiplies or caps scores. */
static const char telling[] =
    "query_pre_attn_scalar|attention_multiplier|softmax_scale|attn_scale|attention_scale|qk_scale|attn_output_"
    "multiplier|"
    "mup_attn_multiplier|scale_attn_weights|scale_attn_by_inverse_layer_idx|attn_logit_softcapping|attn_logit_softcap|"
    "attention_logit_softcapping|attention_logits_soft_cap|attention_logit_cap|logits_soft_cap|attn_softcap|"
    "attn_temperature_tuning|use_logn_attn|max_attn_val";

char *pe_hf_note(struct pe_hf_reader *r)
{
    struct pe_model_scores *scores = &r->out->scores;
    return scores->notes[scores->n_notes < PE_SCORE_NOTES_MAX ? scores->n_notes++ : PE_SCORE_NOTES_MAX - 1];
}

void pe_hf_put_scale(struct pe_hf_reader *r, double scale)
{
    size_t i = 0;
    while (i < r->out->n && !pe_same(r->out->fields[i].name, "softmax_scale"))
        i++;
    r->out->n -= i < r->out->n;
    pe_hf_put_number(r->out, "softmax_scale", scale);
}

/* ---- Classes that were not read ---- */

/* The first of names that place has, and that is neither null nor false; NULL if there is none. */
static const struct pe_field *find_telling(const struct pe_hf_place *place, const char *names)
{
    struct pe_hf_place bare = {.object = place->object}; /* nothing of the class, and nothing is marked as read */
    const char *name;
    char one[48];
    size_t n;
    while (pe_hf_next_name(&names, &name, &n)) {
        snprintf(one, sizeof one, "%.*s", (int)n, name);
        const struct pe_field *field = pe_hf_find(&bare, one);
        if (field && !(field->value.kind == PE_BOOLEAN && !field->value.boolean))
            return field;
    }
    return NULL;
}

static enum pe_status not_read(struct pe_hf_reader *r)
{
    const struct pe_hf_place *place = &r->config;
    const struct pe_field *field = find_telling(place, telling);
    if (!field) {
        place = &r->rope;
        field = find_telling(place, pe_hf_says(&r->config, "qk_rope_head_dim") ? "llama_4_scaling_beta|mscale_all_dim"
                                                                               : "llama_4_scaling_beta");
    }
    if (!field) {
        snprintf(pe_hf_note(r), PE_DETAIL_MAX,
                 pe_text("How model_type \"%.64s\" scales and caps its scores was not read in its code (unverified): "
                         "1/sqrt(head_dim) and no cap are used."),
                 r->model_type);
        return PE_OK;
    }
    pe_fail_at(&r->out->scores.refusal, place->at, field->name,
               "%.48s may scale or cap the scores, and the attention code of model_type \"%.64s\" was not read here; "
               "give softmax_scale, and softcap if there is one, to state what it does",
               field->name, r->model_type);
    return PE_OK;
}

/* ---- Classes that were ---- */

/* 1/sqrt of a head's width, times a factor; most schemes have that as their default. */
static void put_usual(struct pe_hf_reader *r, double times)
{
    const struct pe_value *scheme = pe_field_find(r->out->fields, r->out->n, "scheme"),
                          *head_dim = pe_field_find(r->out->fields, r->out->n, "head_dim");
    bool is_default = times == 1 && !pe_same(scheme->string, "t5"); /* whose default is 1 */
    if (!is_default && head_dim)
        pe_hf_put_scale(r, times / sqrt(pe_value_number(head_dim)));
}

/* "field", "object.field" or "field^-0.5"; the usual scale where the config and the class have none. */
static enum pe_status put_of_field(struct pe_hf_reader *r, const char *scale)
{
    char name[64];
    struct pe_hf_place place = r->config;
    const char *dot = strchr(scale, '.'), *power = strchr(scale, '^');
    double x = PE_UNSET;
    if (dot && (!power || dot < power)) {
        snprintf(name, sizeof name, "%.*s", (int)(dot - scale), scale);
        if (pe_hf_object(&r->config, name, &place, r->err))
            return r->err->status;
        scale = dot + 1;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(scale, "^"), scale);
    if (pe_hf_number(&place, name, &x, r->err))
        return r->err->status;
    if (power && x <= 0)
        return pe_hf_wrong_value(&place, name, "a number above 0", r->err);
    if (isnan(x))
        put_usual(r, 1);
    else
        pe_hf_put_scale(r, power ? pow(x, strtod(power + 1, NULL)) : x);
    return PE_OK;
}

static enum pe_status put_scale(struct pe_hf_reader *r, const char *scale)
{
    if (strspn(scale, "0123456789."))
        pe_hf_put_scale(r, strtod(scale, NULL));
    else if (strncmp(scale, "usual", 5) == 0)
        put_usual(r, scale[5] ? strtod(scale + 6, NULL) : 1);
    else if (pe_same(scale, "other")) {
        pe_fail_at(&r->out->scores.refusal, r->config.at, "model_type",
                   "model_type \"%.64s\" multiplies its scores by what no field states; give softmax_scale",
                   r->model_type);
    } else if (!pe_is_among("magnitude|none", scale))
        return put_of_field(r, scale);
    return PE_OK;
}

/* "tensor", or "kind:tensor" if other kinds of layers have none. */
static void put_sinks(struct pe_hf_reader *r, const char *sinks)
{
    const char *colon = sinks ? strchr(sinks, ':') : NULL, *kind = pe_hf_layer_type(r);
    bool has = !colon || (strlen(kind) == (size_t)(colon - sinks) && strncmp(kind, sinks, strlen(kind)) == 0);
    r->out->scores.sinks = has ? colon ? colon + 1 : sinks : NULL;
}

bool pe_hf_has_magnitude(const struct pe_hf_reader *r)
{
    const char *scale = r->class ? r->class->scale : NULL;
    return scale ? pe_same(scale, "magnitude") : pe_hf_find(&r->config, "qk_rope_head_dim") != NULL;
}

enum pe_status pe_hf_scores(struct pe_hf_reader *r)
{
    const struct pe_hf_model *row = r->class;
    double cap = PE_UNSET;
    if (!row || !row->scale)
        return not_read(r);
    put_sinks(r, row->sinks);
    if (put_scale(r, row->scale) || (row->cap && pe_hf_number(&r->config, row->cap, &cap, r->err)))
        return r->err->status;
    if (cap > 0)
        pe_hf_put_number(r->out, "softcap", cap);
    return row->scores ? row->scores(r) : PE_OK;
}

/* ---- Traits: what the code of some types does in its own way ---- */

/* GPT-2 may leave the scale out, and divide by the number of the layer. */
enum pe_status pe_hf_gpt2_flags(struct pe_hf_reader *r)
{
    bool scales = true, by_layer = false;
    if (pe_hf_flag(&r->config, "scale_attn_weights", &scales, r->err) ||
        pe_hf_flag(&r->config, "scale_attn_by_inverse_layer_idx", &by_layer, r->err))
        return r->err->status;
    if (!scales)
        pe_hf_put_scale(r, 1);
    if (by_layer)
        pe_fail_at(&r->out->scores.refusal, r->config.at, "scale_attn_by_inverse_layer_idx",
                   "scale_attn_by_inverse_layer_idx divides the scores of layer l, counted from 0, by l + 1, so each "
                   "layer has "
                   "another scale; give softmax_scale, %s/(l + 1)",
                   scales ? "1/sqrt(head_dim)" : "1");
    return PE_OK;
}

void pe_hf_put_query_scale(struct pe_model_fields *out, const char *type, double beta, double length)
{
    struct pe_field *members = out->scores.query_scale;
    members[0] = (struct pe_field){"type", {.kind = PE_STRING, .string = type}};
    members[1] = (struct pe_field){"beta", {.kind = PE_REAL, .real = beta}};
    members[2] = (struct pe_field){"original_max_position_embeddings", {.kind = PE_REAL, .real = length}};
    pe_hf_put(out, "query_scale", pe_object(members, 3));
}

/* Llama 4 multiplies queries of its layers without positions. Released files state the flag as a number. */
enum pe_status pe_hf_temperature(struct pe_hf_reader *r)
{
    double beta = 0.1, length = 8192;
    const struct pe_field *flag = pe_hf_find(&r->config, "attn_temperature_tuning");
    const struct pe_value *scheme = pe_field_find(r->out->fields, r->out->n, "scheme");
    bool is_off = flag && (flag->value.kind == PE_BOOLEAN ? !flag->value.boolean : pe_value_number(&flag->value) == 0);
    if (pe_hf_number(&r->config, "attn_scale", &beta, r->err) ||
        pe_hf_number(&r->config, "floor_scale", &length, r->err))
        return r->err->status;
    if (!is_off && pe_same(scheme->string, "none"))
        pe_hf_put_query_scale(r->out, "llama4", beta, length);
    return PE_OK;
}

/* Ministral 3 and Mistral Small 4 multiply the queries of every layer, by two numbers of the rope object. */
enum pe_status pe_hf_llama_4_beta(struct pe_hf_reader *r)
{
    double beta = 0, length = 0;
    if (pe_hf_number(&r->rope, "llama_4_scaling_beta", &beta, r->err) ||
        pe_hf_number(&r->rope, "original_max_position_embeddings", &length, r->err))
        return r->err->status;
    if (beta != 0 && length > 0)
        pe_hf_put_query_scale(r->out, "ministral", beta, length);
    return PE_OK;
}

/* DeepSeek-V2's vendor multiplies by the square of YaRN's magnitude; the class of transformers did not. */
enum pe_status pe_hf_magnitude_differs(struct pe_hf_reader *r)
{
    double all = 0, factor = 1;
    const char *type = "default";
    const struct pe_value *head_dim = pe_field_find(r->out->fields, r->out->n, "head_dim");
    if (pe_hf_word(&r->rope, "rope_type|type", &type, r->err) ||
        pe_hf_number(&r->rope, "mscale_all_dim", &all, r->err) || pe_hf_number(&r->rope, "factor", &factor, r->err))
        return r->err->status;
    if (!pe_same(type, "yarn") || all == 0 || factor <= 1 || !head_dim)
        return PE_OK;
    double usual = 1 / sqrt(pe_value_number(head_dim)), m = 0.1 * all * log(factor) + 1;
    snprintf(
        pe_hf_note(r), PE_DETAIL_MAX,
        pe_text("The softmax scale is 1/sqrt(head_dim), %.8g, as in transformers' class of this model; the vendor's "
                "code, vLLM and newer versions of transformers multiply it by YaRN's magnitude squared: %.8g."),
        usual, usual * m * m);
    return PE_OK;
}
