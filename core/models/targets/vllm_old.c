/* vLLM before 0.11.1: --rope-scaling and --rope-theta, by the same code; the share of a head is the model's. Source:
 * vllm, rotary_embedding/__init__.py at 07b12f1b16d5 (get_rope). */
#include "core/models/targets/targets.h"

struct vllm_old {
    const struct pe_value *rope_scaling;
    double rope_theta;
};

static const struct pe_param members[] = {
    PE_T_ANY(vllm_old, rope_scaling, "rope_scaling"),
    PE_T_NUMBER(vllm_old, rope_theta, "rope_theta", 10000, PE_T_BASE_MIN, PE_T_BASE_MAX),
    PE_P_END,
};

static const struct pe_target_object object = {.rules = "linear|dynamic|yarn|longrope|llama3",
                                               .convention = "vllm",
                                               .unread = "factor|attention_factor",
                                               .has_sections = true,
                                               .has_length = true,
                                               .magnitude = PE_MAGNITUDE_MULTIPLIED};

static void vllm_old_say(struct pe_saying *s)
{
    struct pe_words words = pe_words_new(s);
    bool is_none = !pe_is_among(object.rules, s->rule) &&
                   !pe_is_among("mrope|mrope_interleaved", pe_config_word(s->config, "channels"));
    pe_say_rope(&words, &object);
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
    return pe_hear_rope(h, "rope_scaling", v->rope_scaling, &object, v->rope_theta, 0, 0);
}

const struct pe_target pe_target_vllm_old = {
    .info = {.name = "vllm_old",
             .about = {"vLLM before 0.11.1", "flags of vLLM before 0.11.1"},
             .certainty = "code",
             .source = "vllm 07b12f1",
             .form = PE_TARGET_SHELL,
             .members = members,
             .reads_text = true},
    .label = "vLLM before 0.11.1",
    .bytes = sizeof(struct vllm_old),
    .say = vllm_old_say,
    .read = vllm_old_read,
};
