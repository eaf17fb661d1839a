/* transformers 5: rope_parameters, which has the base and the share too, and where kinds of layers differ one object
 * for each. Source: transformers, RotaryEmbeddingConfigMixin of modeling_rope_utils.py (5.0.0.dev0, 23cf3ee4c77e). */
#include "core/models/readers/readers.h"
#include "core/models/targets/targets.h"

#include <stdio.h>

struct transformers5 {
    const struct pe_value *rope_parameters, *layer_types;
    int64_t head_dim, max_position_embeddings;
};

static const struct pe_param members[] = {
    PE_T_ANY(transformers5, rope_parameters, "rope_parameters"),
    PE_T_ANY(transformers5, layer_types, "layer_types"),
    PE_T_COUNT(transformers5, head_dim, "head_dim", PE_UNSET, 4096),
    PE_T_COUNT(transformers5, max_position_embeddings, "max_position_embeddings", 0, PE_T_LENGTH_MAX),
    PE_P_END,
};

static const struct pe_target_object object = {.rules = "linear|dynamic|yarn|longrope|llama3|proportional",
                                               .unread = "attn_factor",
                                               .has_base = true,
                                               .has_share = true,
                                               .has_sections = true,
                                               .has_length = true};

/* Of objects by kind transformers reads truncate in the outer object, which has none. */
static const struct pe_target_object object_of_kind = {.rules = "linear|dynamic|yarn|longrope|llama3|proportional",
                                                       .unread = "attn_factor",
                                                       .has_base = true,
                                                       .has_share = true,
                                                       .has_sections = true,
                                                       .has_length = true,
                                                       .rounds_always = true};

/* ---- Saying ---- */

static void say_kinds(struct pe_saying *s)
{
    struct pe_words all = pe_words_new(s);
    for (size_t k = 0; k < s->n_kinds; k++) {
        struct pe_saying one = {.target = s->target, .kind = s->kinds[k], .length = s->length, .values = s->values};
        pe_saying_open(&one);
        struct pe_words words = pe_words_new(&one);
        pe_say_rope(&words, &object_of_kind);
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
    struct pe_value *types = pe_values_room(s->values, (n + 1) * sizeof *types);
    s->failed |= !types;
    for (size_t k = 0; types && k < s->n_kinds; k++)
        for (size_t i = 0; i < s->kinds[k].n_layers; i++)
            if (s->kinds[k].layers[i] < (int64_t)n)
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
        pe_say_rope(&words, &object);
        pe_say_object(&s->value, "rope_parameters", &words);
    }
    pe_say_integer(&s->value, "head_dim", s->head_dim);
    if (pe_saying_max(s) > 0)
        pe_say_number(&s->value, "max_position_embeddings", pe_saying_max(s));
}

/* ---- Reading ---- */

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
    return pe_hear_rope(h, "rope_parameters", chosen, is_by_kind ? &object_of_kind : &object, 10000,
                        (double)v->max_position_embeddings, 0);
}

const struct pe_target pe_target_transformers5 = {
    .info = {.name = "transformers5",
             .about = {"transformers 5", "fields of a config.json for transformers 5"},
             .certainty = "code",
             .source = "transformers 23cf3ee",
             .form = PE_TARGET_JSON,
             .members = members},
    .label = "transformers 5",
    .bytes = sizeof(struct transformers5),
    .carries = "head_dim|share",
    .has_kinds = true,
    .say = transformers5_say,
    .read = transformers5_read,
};
