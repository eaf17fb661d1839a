/* vLLM with transformers 5: --hf-overrides. Its code multiplies m(s, 1) by attn_factor and does not read
 * attention_factor; longrope has a factor for each list. Source: vllm, rotary_embedding/__init__.py at 07b12f1b16d5
 * (get_rope), patch_rope_parameters. */
#include "core/models/targets/targets.h"

struct vllm {
    const struct pe_value *hf_overrides;
    int64_t max_model_len;
};

static const struct pe_param members[] = {
    PE_T_ANY(vllm, hf_overrides, "hf_overrides"),
    PE_T_COUNT(vllm, max_model_len, "max_model_len", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static const struct pe_target_object object = {.rules = "linear|dynamic|yarn|longrope|llama3|proportional",
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
    pe_say_rope(&words, &object);
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
    return pe_hear_overrides(h, "hf_overrides", v->hf_overrides, &object);
}

const struct pe_target pe_target_vllm = {
    .info = {.name = "vllm",
             .about = {"vLLM", "flags of vLLM with transformers 5"},
             .certainty = "code",
             .source = "vllm 07b12f1",
             .form = PE_TARGET_SHELL,
             .members = members,
             .reads_text = true},
    .label = "vLLM",
    .bytes = sizeof(struct vllm),
    .carries = "share",
    .say = vllm_say,
    .read = vllm_read,
};
