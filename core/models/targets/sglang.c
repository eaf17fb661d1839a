/* SGLang: --json-model-override-args with the rope_parameters of transformers 5. Source: the flag in public recipes;
 * what its code reads was not seen. */
#include "core/models/targets/targets.h"

struct sglang {
    const struct pe_value *json_model_override_args;
    int64_t context_length;
};

static const struct pe_param members[] = {
    PE_T_ANY(sglang, json_model_override_args, "json_model_override_args"),
    PE_T_COUNT(sglang, context_length, "context_length", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static const struct pe_target_object object = {.rules = "linear|dynamic|yarn|longrope|llama3|proportional",
                                               .unread = "attn_factor",
                                               .has_base = true,
                                               .has_share = true,
                                               .has_sections = true,
                                               .has_length = true};

static void sglang_say(struct pe_saying *s)
{
    struct pe_words overrides = pe_words_new(s), words = pe_words_new(s);
    pe_say_rope(&words, &object);
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
    return pe_hear_overrides(h, "json_model_override_args", v->json_model_override_args, &object);
}

const struct pe_target pe_target_sglang = {
    .info = {.name = "sglang",
             .about = {"SGLang", "flags of SGLang"},
             .certainty = "unverified",
             .source = "public recipes",
             .form = PE_TARGET_SHELL,
             .members = members,
             .reads_text = true},
    .label = "SGLang",
    .bytes = sizeof(struct sglang),
    .carries = "share",
    .say = sglang_say,
    .read = sglang_read,
};
