/* Tools whose words have a rope object (object.c): config.json for transformers 4 and 5, flags of vLLM and SGLang that
 * override it, a call of mlx-lm. */
#include "core/models/targets/targets.h"
#include "core/models/readers/readers.h"

#include <math.h>
#include <stdio.h>

struct transformers4 {
    double rope_theta;
    const struct pe_value *rope_scaling;
    int64_t head_dim;
    double partial_rotary_factor;
    int64_t max_position_embeddings, original_max_position_embeddings;
};

static const struct pe_param transformers4_members[] = {
    PE_T_NUMBER(transformers4, rope_theta, "rope_theta", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_ANY(transformers4, rope_scaling, "rope_scaling"),
    PE_T_COUNT(transformers4, head_dim, "head_dim", PE_UNSET, 4096),
    PE_T_NUMBER(transformers4, partial_rotary_factor, "partial_rotary_factor", 1, 0, 1),
    PE_T_COUNT(transformers4, max_position_embeddings, "max_position_embeddings", 0, PE_T_LENGTH_MAX),
    PE_T_COUNT(transformers4, original_max_position_embeddings, "original_max_position_embeddings", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static const struct pe_target_object transformers4_object = {
    .rules = "linear|dynamic|yarn|longrope|llama3", .unread = "attn_factor", .has_sections = true};

static void transformers4_say(struct pe_saying *s)
{
    struct pe_words scaling = pe_words_new(s);
    bool is_none = !pe_is_among(transformers4_object.rules, s->rule) &&
                   !pe_is_among("mrope|mrope_interleaved", pe_config_word(s->config, "channels"));
    pe_say_real(&s->value, "rope_theta", pe_saying_base(s));
    pe_say_rope(&scaling, &transformers4_object);
    if (is_none)
        pe_say_null(&s->value, "rope_scaling");
    else
        pe_say_object(&s->value, "rope_scaling", &scaling);
    pe_say_integer(&s->value, "head_dim", s->head_dim);
    if (s->rotary_dim < s->head_dim && !s->is_latent)
        pe_say_real(&s->value, "partial_rotary_factor", pe_saying_share(s));
    if (pe_saying_max(s) > 0)
        pe_say_number(&s->value, "max_position_embeddings", pe_saying_max(s));
    if (pe_same(s->rule, "longrope"))
        pe_say_number(&s->value, "original_max_position_embeddings", s->original);
}

static enum pe_status transformers4_read(const struct pe_hearing *h, const void *told)
{
    const struct transformers4 *v = told;
    if (v->head_dim != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "head_dim", v->head_dim);
    if (v->partial_rotary_factor != 1)
        pe_hf_put_number(h->out, "partial_rotary_factor", v->partial_rotary_factor);
    return pe_hear_rope(h, "rope_scaling", v->rope_scaling, &transformers4_object, v->rope_theta,
                        (double)v->max_position_embeddings, (double)v->original_max_position_embeddings);
}

const struct pe_target pe_target_transformers4 = {
    .info = {.name = "transformers4",
             .about = {"transformers 4", "fields of a config.json for transformers 4.56 and 4.57"},
             .certainty = "code",
             .source = "transformers 3927ffe",
             .form = PE_TARGET_JSON,
             .members = transformers4_members},
    .label = "transformers 4",
    .bytes = sizeof(struct transformers4),
    .carries = "head_dim|share",
    .say = transformers4_say,
    .read = transformers4_read,
};

/* ---- transformers 5 ---- */

/* transformers 5: rope_parameters, which has the base and the share too, and where kinds of layers differ one object
 * for each. Source: transformers, RotaryEmbeddingConfigMixin of modeling_rope_utils.py (5.0.0.dev0, 23cf3ee4c77e). */

struct transformers5 {
    const struct pe_value *rope_parameters, *layer_types;
    int64_t head_dim, max_position_embeddings;
};

static const struct pe_param transformers5_members[] = {
    PE_T_ANY(transformers5, rope_parameters, "rope_parameters"),
    PE_T_ANY(transformers5, layer_types, "layer_types"),
    PE_T_COUNT(transformers5, head_dim, "head_dim", PE_UNSET, 4096),
    PE_T_COUNT(transformers5, max_position_embeddings, "max_position_embeddings", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static const struct pe_target_object transformers5_object = {.rules =
                                                                 "linear|dynamic|yarn|longrope|llama3|proportional",
                                                             .unread = "attn_factor",
                                                             .has_base = true,
                                                             .has_share = true,
                                                             .has_sections = true,
                                                             .has_length = true};

/* Of objects by kind transformers reads truncate in the outer object, which has none. */
static const struct pe_target_object transformers5_object_of_kind = {
    .rules = "linear|dynamic|yarn|longrope|llama3|proportional",
    .unread = "attn_factor",
    .has_base = true,
    .has_share = true,
    .has_sections = true,
    .has_length = true,
    .rounds_always = true};

static void say_kinds(struct pe_saying *s)
{
    struct pe_words all = pe_words_new(s);
    for (size_t k = 0; k < s->n_kinds; k++) {
        struct pe_saying one = {.target = s->target, .kind = s->kinds[k], .length = s->length, .values = s->values};
        pe_saying_open(&one);
        struct pe_words words = pe_words_new(&one);
        pe_say_rope(&words, &transformers5_object_of_kind);
        pe_say_object(&all, s->kinds[k].layer_type, &words);
        s->failed |= one.failed;
    }
    pe_say_object(&s->value, "rope_parameters", &all);
}

/* The kind of each layer, where all are known. */
static void say_layers(struct pe_saying *s)
{
    size_t n = 0;
    for (size_t k = 0; k < s->n_kinds; k++)
        n += s->kinds[k].n_layers;
    if (n != pe_stated_layers_end(s->kinds, s->n_kinds)) /* others are no attention, and have no object */
        return;
    struct pe_value *types = pe_values_room(s->values, (n + 1) * sizeof *types);
    s->failed |= !types;
    for (size_t k = 0; types && k < s->n_kinds; k++)
        for (size_t i = 0; i < s->kinds[k].n_layers; i++)
            types[s->kinds[k].layers[i]] = (struct pe_value){.kind = PE_STRING, .string = s->kinds[k].layer_type};
    if (types && n)
        pe_say(&s->value, "layer_types", (struct pe_value){.kind = PE_LIST, .list = {types, n}});
}

static void transformers5_say(struct pe_saying *s)
{
    if (s->n_kinds > 1) {
        say_kinds(s);
        say_layers(s);
    } else {
        struct pe_words words = pe_words_new(s);
        pe_say_rope(&words, &transformers5_object);
        pe_say_object(&s->value, "rope_parameters", &words);
    }
    pe_say_integer(&s->value, "head_dim", s->head_dim);
    if (pe_saying_max(s) > 0)
        pe_say_number(&s->value, "max_position_embeddings", pe_saying_max(s));
}

/* The object of the kind that is named, of several. */
static enum pe_status choose_kind(const struct pe_hearing *h, const struct pe_value **chosen)
{
    char known[256] = "";
    const struct pe_value *all = *chosen;
    for (size_t i = 0; i < all->object.n; i++) {
        const char *name = all->object.fields[i].name;
        if (h->layer_type && pe_same(name, h->layer_type)) {
            *chosen = &all->object.fields[i].value;
            return PE_OK;
        }
        if (strlen(known) + strlen(name) + 3 < sizeof known)
            strcat(strcat(known, *known ? ", " : ""), name);
    }
    if (h->layer_type)
        return pe_fail(h->err, "/layer_type", "rope_parameters has no layers of type \"%.64s\"; it has: %s",
                       h->layer_type, known);
    return pe_fail(h->err, "/layer_type", "rope_parameters has an object for each kind of layers; give layer_type: %s",
                   known);
}

static enum pe_status transformers5_read(const struct pe_hearing *h, const void *told)
{
    const struct transformers5 *v = told;
    const struct pe_value *chosen = v->rope_parameters;
    bool is_by_kind = chosen && chosen->kind == PE_OBJECT && pe_rope_is_by_layer(chosen);
    if (is_by_kind && choose_kind(h, &chosen))
        return h->err->status;
    if (v->head_dim != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "head_dim", v->head_dim);
    return pe_hear_rope(h, "rope_parameters", chosen,
                        is_by_kind ? &transformers5_object_of_kind : &transformers5_object, 10000,
                        (double)v->max_position_embeddings, 0);
}

const struct pe_target pe_target_transformers5 = {
    .info = {.name = "transformers5",
             .about = {"transformers 5", "fields of a config.json for transformers 5"},
             .certainty = "code",
             .source = "transformers 23cf3ee",
             .form = PE_TARGET_JSON,
             .members = transformers5_members},
    .label = "transformers 5",
    .bytes = sizeof(struct transformers5),
    .carries = "head_dim|share",
    .has_kinds = true,
    .say = transformers5_say,
    .read = transformers5_read,
};

/* ---- vLLM ---- */

/* vLLM with transformers 5: --hf-overrides. Its code multiplies m(s, 1) by attn_factor and does not read
 * attention_factor; longrope has a factor for each list. Source: vllm, rotary_embedding/__init__.py at 07b12f1b16d5
 * (get_rope), patch_rope_parameters. */

struct vllm {
    const struct pe_value *hf_overrides;
    int64_t max_model_len;
};

static const struct pe_param vllm_members[] = {
    PE_T_ANY(vllm, hf_overrides, "hf_overrides"),
    PE_T_COUNT(vllm, max_model_len, "max_model_len", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static const struct pe_target_object vllm_object = {.rules = "linear|dynamic|yarn|longrope|llama3|proportional",
                                                    .convention = "vllm",
                                                    .unread = "factor|attention_factor",
                                                    .has_base = true,
                                                    .has_share = true,
                                                    .has_sections = true,
                                                    .has_length = true,
                                                    .magnitude = PE_MAGNITUDE_MULTIPLIED};

static void vllm_say(struct pe_saying *s)
{
    struct pe_words overrides = pe_words_new(s), words = pe_words_new(s);
    pe_say_rope(&words, &vllm_object);
    pe_say_object(&overrides, "rope_parameters", &words);
    if (pe_same(s->rule, "dynamic")) /* whose length is the model's */
        pe_say_number(&overrides, "max_position_embeddings", pe_saying_max(s));
    pe_say_object(&s->value, "hf_overrides", &overrides);
    if (pe_saying_max(s) > 0)
        pe_say_number(&s->value, "max_model_len", pe_saying_max(s));
}

static enum pe_status vllm_read(const struct pe_hearing *h, const void *told)
{
    const struct vllm *v = told;
    return pe_hear_overrides(h, "hf_overrides", v->hf_overrides, &vllm_object);
}

const struct pe_target pe_target_vllm = {
    .info = {.name = "vllm",
             .about = {"vLLM", "flags of vLLM with transformers 5"},
             .certainty = "code",
             .source = "vllm 07b12f1",
             .form = PE_TARGET_SHELL,
             .members = vllm_members,
             .reads_text = true},
    .label = "vLLM",
    .bytes = sizeof(struct vllm),
    .carries = "share",
    .say = vllm_say,
    .read = vllm_read,
};

/* ---- vLLM before 0.11.1 ---- */

/* vLLM before 0.11.1: --rope-scaling and --rope-theta, by the same code; the share of a head is the model's. Source:
 * vllm, rotary_embedding/__init__.py at 07b12f1b16d5 (get_rope). */

struct vllm_old {
    const struct pe_value *rope_scaling;
    double rope_theta;
};

static const struct pe_param vllm_old_members[] = {
    PE_T_ANY(vllm_old, rope_scaling, "rope_scaling"),
    PE_T_NUMBER(vllm_old, rope_theta, "rope_theta", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_P_END,
};

static const struct pe_target_object vllm_old_object = {.rules = "linear|dynamic|yarn|longrope|llama3",
                                                        .convention = "vllm",
                                                        .unread = "factor|attention_factor",
                                                        .has_sections = true,
                                                        .has_length = true,
                                                        .magnitude = PE_MAGNITUDE_MULTIPLIED};

static void vllm_old_say(struct pe_saying *s)
{
    struct pe_words words = pe_words_new(s);
    bool is_none = !pe_is_among(vllm_old_object.rules, s->rule) &&
                   !pe_is_among("mrope|mrope_interleaved", pe_config_word(s->config, "channels"));
    pe_say_rope(&words, &vllm_old_object);
    if (pe_same(s->rule, "dynamic")) /* the model's, which the flag does not have */
        pe_say_number(&words, "max_position_embeddings", pe_saying_max(s));
    if (is_none)
        pe_say_null(&s->value, "rope_scaling");
    else
        pe_say_object(&s->value, "rope_scaling", &words);
    pe_say_real(&s->value, "rope_theta", pe_saying_base(s));
}

static enum pe_status vllm_old_read(const struct pe_hearing *h, const void *told)
{
    const struct vllm_old *v = told;
    return pe_hear_rope(h, "rope_scaling", v->rope_scaling, &vllm_old_object, v->rope_theta, 0, 0);
}

const struct pe_target pe_target_vllm_old = {
    .info = {.name = "vllm_old",
             .about = {"vLLM before 0.11.1", "flags of vLLM before 0.11.1"},
             .certainty = "code",
             .source = "vllm 07b12f1",
             .form = PE_TARGET_SHELL,
             .members = vllm_old_members,
             .reads_text = true},
    .label = "vLLM before 0.11.1",
    .bytes = sizeof(struct vllm_old),
    .say = vllm_old_say,
    .read = vllm_old_read,
};

/* ---- SGLang ---- */

/* SGLang: --json-model-override-args with the rope_parameters of transformers 5. Source: the flag in public recipes;
 * what its code reads was not seen. So the object is that of transformers 5. */

struct sglang {
    const struct pe_value *json_model_override_args;
    int64_t context_length;
};

static const struct pe_param sglang_members[] = {
    PE_T_ANY(sglang, json_model_override_args, "json_model_override_args"),
    PE_T_COUNT(sglang, context_length, "context_length", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static void sglang_say(struct pe_saying *s)
{
    struct pe_words overrides = pe_words_new(s), words = pe_words_new(s);
    pe_say_rope(&words, &transformers5_object);
    pe_say_object(&overrides, "rope_parameters", &words);
    if (pe_same(s->rule, "dynamic"))
        pe_say_number(&overrides, "max_position_embeddings", pe_saying_max(s));
    pe_say_object(&s->value, "json_model_override_args", &overrides);
    if (pe_saying_max(s) > 0)
        pe_say_number(&s->value, "context_length", pe_saying_max(s));
}

static enum pe_status sglang_read(const struct pe_hearing *h, const void *told)
{
    const struct sglang *v = told;
    return pe_hear_overrides(h, "json_model_override_args", v->json_model_override_args, &transformers5_object);
}

const struct pe_target pe_target_sglang = {
    .info = {.name = "sglang",
             .about = {"SGLang", "flags of SGLang"},
             .certainty = "unverified",
             .source = "public recipes",
             .form = PE_TARGET_SHELL,
             .members = sglang_members,
             .reads_text = true},
    .label = "SGLang",
    .bytes = sizeof(struct sglang),
    .carries = "share",
    .say = sglang_say,
    .read = sglang_read,
};

/* ---- mlx-lm ---- */

/* mlx-lm: initialize_rope. A factor on cos and sin is stated by mscale and mscale_all_dim, longrope takes its long list
 * at every length. Source: mlx-lm d78bf58e217c, models/rope_utils.py. */

struct mlx {
    int64_t dims, max_position_embeddings;
    double base;
    bool traditional;
    const struct pe_value *scaling_config;
};

static const struct pe_param mlx_members[] = {
    PE_T_COUNT(mlx, dims, "dims", PE_UNSET, 4096),
    PE_T_NUMBER(mlx, base, "base", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_T_FLAG(mlx, traditional, "traditional", false),
    PE_T_ANY(mlx, scaling_config, "scaling_config"),
    PE_T_COUNT(mlx, max_position_embeddings, "max_position_embeddings", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static const struct pe_target_object mlx_object = {.rules = "linear|yarn|longrope|llama3",
                                                   .convention = "mlx",
                                                   .unread =
                                                       "factor|attention_factor|attn_factor|short_mscale|long_mscale",
                                                   .has_length = true,
                                                   .rounds_always = true,
                                                   .magnitude = PE_MAGNITUDE_PAIR};

static void mlx_say(struct pe_saying *s)
{
    struct pe_words words = pe_words_new(s);
    pe_say_integer(&s->value, "dims", s->rotary_dim);
    pe_say_real(&s->value, "base", pe_saying_base(s));
    pe_say_flag(&s->value, "traditional", !s->is_half);
    pe_say_rope(&words, &mlx_object);
    if (pe_is_among(mlx_object.rules, s->rule))
        pe_say_object(&s->value, "scaling_config", &words);
    else
        pe_say_null(&s->value, "scaling_config");
    if (pe_saying_max(s) > 0)
        pe_say_number(&s->value, "max_position_embeddings", pe_saying_max(s));
    s->layout = s->is_half ? "half" : "interleaved";
}

static enum pe_status mlx_read(const struct pe_hearing *h, const void *told)
{
    const struct mlx *v = told;
    if (v->dims != PE_UNSET_INT)
        pe_hf_put_integer(h->out, "rotary_dim", v->dims);
    pe_hf_put_word(h->out, "layout", v->traditional ? "interleaved" : "half");
    return pe_hear_rope(h, "scaling_config", v->scaling_config, &mlx_object, v->base,
                        (double)v->max_position_embeddings, 0);
}

const struct pe_target pe_target_mlx = {
    .info = {.name = "mlx",
             .about = {"mlx-lm", "a call of mlx-lm"},
             .certainty = "code",
             .source = "mlx-lm d78bf58",
             .form = PE_TARGET_PYTHON,
             .called = "initialize_rope",
             .members = mlx_members},
    .label = "mlx-lm",
    .bytes = sizeof(struct mlx),
    .carries = "rotary_dim|layout",
    .say = mlx_say,
    .read = mlx_read,
};

/* ---- transformers 4 ---- */

/* transformers 4.56 and 4.57: fields of a config.json. The base is beside rope_scaling, and so is the original length
 * of longrope. Source: transformers, modeling_rope_utils.py at 3927ffed31e3 (ROPE_INIT_FUNCTIONS). */
