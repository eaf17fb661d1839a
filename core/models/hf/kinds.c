/* Which kinds of layers a config's model has, and which layers are of each kind.
 *
 * The sources, in the order in which transformers' classes read them: the config's own list (layer_types,
 * layers_block_type, DeepSeek-V4's compress_ratios), no_rope_layers or no_rope_layer_interval where the type's code has
 * them, the period of the type's row, the row's stacks (encoder, decoder, stages), and the keys of rope_parameters.
 * Layers without attention (mamba, convolutions) have nothing that positions could be given to: they are counted among
 * the others. Data that the model's class could not use is refused. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <stdio.h>
#include <string.h>

enum { NO_KIND = 255 };

/* Words of transformers' layer_types beside those that a row names. */
static const char usual[] = "full_attention|sliding_attention|chunked_attention|attention|local_attention|"
                            "global_attention|compressed_sparse_attention|heavily_compressed_attention|hybrid|"
                            "hybrid_sliding|parallel";
static const char depth_names[] = "num_hidden_layers|n_layer|n_layers|num_layers|depth|encoder_layers";

/* ---- Names ---- */

/* The index of a name among *count kinds from `first` on; added if it is new; NO_KIND if there is no room. */
static unsigned add_name(struct pe_hf_layers *layers, unsigned first, size_t *count, const char *name, size_t n)
{
    for (unsigned k = first; k < first + *count; k++)
        if (strlen(layers->kinds[k]) == n && strncmp(layers->kinds[k], name, n) == 0)
            return k;
    if (*count == PE_HF_KINDS_MAX || n >= PE_HF_KIND_BYTES) {
        layers->are_too_many = true;
        return NO_KIND;
    }
    snprintf(layers->kinds[first + *count], PE_HF_KIND_BYTES, "%.*s", (int)n, name);
    return first + (unsigned)(*count)++;
}

static unsigned add_kind(struct pe_hf_layers *layers, const char *name, size_t n)
{
    char word[PE_HF_KIND_BYTES];
    snprintf(word, sizeof word, "%.*s", (int)n, name);
    if (pe_hf_is_no_attention(word))
        return add_name(layers, PE_HF_KINDS_MAX, &layers->n_others, name, n);
    return add_name(layers, 0, &layers->n_kinds, name, n);
}

/* The i-th of the words between bars, the last if there are fewer. */
static const char *word_at(const char *words, unsigned i, size_t *n)
{
    for (const char *bar; i > 0 && (bar = strchr(words, '|')); i--)
        words = bar + 1;
    *n = strcspn(words, "|");
    return words;
}

static void add_words(struct pe_hf_layers *layers, const char *names)
{
    const char *name;
    for (size_t n; pe_hf_next_name(&names, &name, &n);)
        add_kind(layers, name, n);
}

/* ---- What no class could use ---- */

static bool is_word(const struct pe_hf_reader *r, const struct pe_value *item)
{
    const struct pe_hf_model *row = r->model;
    const char *word = item->kind == PE_STRING ? item->string : "";
    return *word && (r->scheme_is_given || pe_is_among(usual, word) || pe_is_among(row->layers, word) ||
                     pe_is_among(row->none, word) || pe_is_among(row->mixed, word) || pe_hf_is_no_attention(word));
}

static enum pe_status check_list(const struct pe_hf_reader *r, int64_t n_layers)
{
    char pointer[PE_POINTER_MAX], index[24];
    const struct pe_field *field = pe_hf_find(&r->config, PE_HF_LAYER_LISTS);
    if (!field)
        return PE_OK;
    if (field->value.kind != PE_LIST)
        return pe_hf_wrong(&r->config, field, "a list of words", r->err);
    const struct pe_value *items = field->value.list.items;
    size_t n = field->value.list.n, i = 0;
    pe_pointer_join(pointer, sizeof pointer, r->config.at, field->name);
    while (i < n && is_word(r, &items[i]))
        i++;
    if (n && (int64_t)n < n_layers)
        return pe_fail(r->err, pointer, "%s is of %zu layers, of %lld; allowed: a word for each", field->name, n,
                       (long long)n_layers);
    if (i == n)
        return PE_OK;
    snprintf(index, sizeof index, "/%zu", i);
    strncat(pointer, index, sizeof pointer - strlen(pointer) - 1);
    bool is_text = items[i].kind == PE_STRING;
    return pe_fail(r->err, pointer,
                   "%s has %s%.40s%s; allowed: the class's words, as full_attention, "
                   "sliding_attention",
                   field->name, is_text ? "\"" : "", is_text ? items[i].string : pe_text("no word"),
                   is_text ? "\"" : "");
}

static enum pe_status check_numbers(const struct pe_hf_reader *r, const char *name)
{
    const struct pe_field *field = pe_hf_find(&r->config, name);
    bool is_list = field && field->value.kind == PE_ARRAY && field->value.array.rank == 1;
    bool is_empty = field && field->value.kind == PE_LIST && field->value.list.n == 0;
    return !field || is_list || is_empty ? PE_OK : pe_hf_wrong_list(&r->config, field, "a list of numbers", r->err);
}

/* A period of the row; EXAONE 4 writes it as "LLLG". */
static enum pe_status check_period(const struct pe_hf_reader *r, const char *name)
{
    const struct pe_field *field = pe_hf_find(&r->config, name);
    const struct pe_value *v = field ? &field->value : NULL;
    bool is_count = v && v->kind == PE_INTEGER && v->integer > 0;
    bool is_pattern = v && v->kind == PE_STRING && *v->string && v->string[strspn(v->string, "LG")] == '\0';
    return !v || is_count || is_pattern
               ? PE_OK
               : pe_hf_wrong(&r->config, field, "an integer of at least 1, or a text of L and G", r->err);
}

/* Unmarked: a field counts as read where it is used. */
static enum pe_status check_layers(const struct pe_hf_reader *reader)
{
    struct pe_hf_reader unmarked = *reader, *r = &unmarked;
    int64_t n_layers = 0;
    r->config.marks = NULL;
    bool says_depth = pe_hf_says(&r->config, "num_hidden_layers"), marks = pe_hf_marks_rotation(r->model);
    bool has_list = pe_hf_find(&r->config, PE_HF_LAYER_LISTS) != NULL;
    bool has_period = !has_list && r->model->period;
    if (says_depth && pe_hf_integer(&r->config, "num_hidden_layers", &n_layers, r->err))
        return r->err->status;
    if (!pe_hf_is_by_layer(r->model))
        return PE_OK;
    if (check_list(r, n_layers) || (r->model->by_ratio && check_numbers(r, "compress_ratios")) ||
        (marks && (check_numbers(r, "no_rope_layers") || check_period(r, "no_rope_layer_interval"))) ||
        (has_period && check_period(r, r->model->period)))
        return r->err->status;
    return PE_OK;
}

/* ---- One list of layers ---- */

/* The field that states for each layer what it is. */
struct plan {
    const struct pe_hf_model *row;
    const struct pe_value *listed;  /* words; NULL: none */
    const struct pe_value *pattern; /* "LLLG" */
    struct pe_reals ratios;         /* compress_ratios */
    struct pe_hf_rotations rotations;
    int64_t n, period;
};

static const struct pe_value *list_of(const struct pe_hf_place *place)
{
    const struct pe_field *field = pe_hf_find(place, PE_HF_LAYER_LISTS);
    return field && field->value.kind == PE_LIST ? &field->value : NULL;
}

static struct plan plan_of(const struct pe_hf_reader *r)
{
    struct plan plan = {.row = r->model, .listed = list_of(&r->config)};
    if (!plan.listed && r->model->by_ratio)
        plan.ratios = pe_hf_numbers(&r->config, "compress_ratios");
    if (pe_hf_marks_rotation(r->model)) {
        plan.rotations = pe_hf_rotations_of(r);
    } else if (!plan.listed && r->model->none_if && !pe_hf_holds(&r->config, r->model->none_if)) {
        plan.period = 1; /* EXAONE 4 has no sliding layers then */
    } else if (!plan.listed && r->model->period) {
        const struct pe_field *period = pe_hf_find(&r->config, r->model->period);
        plan.pattern = period && period->value.kind == PE_STRING && *period->value.string ? &period->value : NULL;
        plan.period = pe_hf_count(&r->config, r->model->period);
    }
    uint64_t n_listed = plan.listed ? plan.listed->list.n : plan.ratios.n ? plan.ratios.n : plan.rotations.marks.n;
    bool is_counted = !plan.listed && (n_listed == 0 || pe_hf_says(&r->config, depth_names));
    plan.n = is_counted ? pe_hf_count(&r->config, depth_names) : (int64_t)n_listed;
    if (plan.listed && pe_hf_says(&r->config, depth_names))
        pe_hf_find(&r->config, depth_names); /* the same number once more, which is read too */
    return plan;
}

/* Does the row's rule give layer l the second of its types? */
static bool is_second(const struct plan *p, int64_t l)
{
    if (p->pattern)
        return p->pattern->string[(size_t)l % strlen(p->pattern->string)] == 'G' || l == p->n - 1;
    int64_t period = p->period ? p->period : 1;
    return p->row->second ? p->row->second(l, p->n, period) : (l + 1) % period == 0;
}

static const char *by_rule(const struct plan *p, int64_t l, size_t *n)
{
    const char *mixed = p->row->by_ratio ? p->row->by_ratio(&p->ratios, l) : p->row->mixed;
    return word_at(mixed ? mixed : PE_HF_FULL, mixed && p->row->period && is_second(p, l), n);
}

static const char *name_of(const struct plan *p, int64_t l, size_t *n)
{
    const struct pe_value *word = p->listed ? &p->listed->list.items[l] : NULL;
    const char *mask = word && word->kind == PE_STRING ? word->string : NULL;
    char copy[PE_HF_KIND_BYTES] = "";
    if (mask)
        *n = strlen(mask);
    if (!pe_hf_marks_rotation(p->row))
        return mask ? mask : by_rule(p, l, n);
    bool rotated = pe_hf_is_rotated(&p->rotations, l);
    snprintf(copy, sizeof copy, "%s", mask ? mask : "");
    if (mask && pe_is_among(p->row->none, copy) != rotated)
        return mask;
    /* A mask that the row counts as still, beside a rotation, and the reverse: what the layer's rotation states holds.
     */
    return mask && !rotated ? word_at("nope", 0, n) : word_at(p->row->mixed, !rotated, n);
}

/* Those of a row whose layers differ in their masks only, so that nothing here states which is which, are one kind. */
static void judge_masks(const struct pe_hf_reader *r, struct pe_hf_layers *layers)
{
    bool is_one = layers->n_kinds == 1 && !list_of(&r->config);
    layers->are_certain |= is_one && r->model->masks == PE_HF_MASKS_ALIKE;
    layers->are_merged = is_one && r->model->masks == PE_HF_MASKS_DIFFER;
}

static void list_layers(const struct pe_hf_reader *r, struct pe_hf_layers *layers)
{
    struct plan plan = plan_of(r);
    bool is_ruled =
        plan.listed || plan.ratios.n || plan.rotations.interval || plan.rotations.marks.n || r->model->period;
    for (int64_t l = 0; l < plan.n && l < PE_HF_LAYERS_MAX; l++) {
        size_t n;
        const char *name = name_of(&plan, l, &n);
        layers->kind_of[layers->n++] = (unsigned char)add_kind(layers, name, n);
    }
    if (r->model->mixed && (!is_ruled || layers->n == 0))
        add_words(layers, r->model->mixed);
    /* SmolLM3 calls still layers sliding if it has a window and a flag. */
    bool may_slide = !plan.listed && layers->n_kinds > 1 && pe_is_among(r->model->none, "sliding_attention") &&
                     pe_hf_says(&r->config, "sliding_window");
    layers->are_certain = plan.listed ? plan.n > 0 : r->model->mixed && !may_slide;
}

/* ---- Where nothing lists layers ---- */

/* rope_parameters of one object per layer type, or a base of sliding layers, of a type whose row mixes none: the config
 * has several kinds, but does not say where. */
static void list_rope_keys(const struct pe_hf_reader *r, struct pe_hf_layers *layers)
{
    const struct pe_field *rope = pe_hf_find(&r->config, pe_hf_rope_names(r));
    bool is_object = rope && rope->value.kind == PE_OBJECT;
    struct pe_hf_layers keys = {.n_kinds = 0};
    for (size_t i = 0; is_object && i < rope->value.object.n; i++) {
        const struct pe_field *key = &rope->value.object.fields[i];
        if ((key->value.kind == PE_OBJECT || key->value.kind == PE_NULL) && pe_hf_is_layer(r, key->name))
            add_kind(&keys, key->name, strlen(key->name));
    }
    if (r->scheme_is_given && pe_hf_says(&r->config, "rope_local_base_freq|local_rope_theta"))
        add_words(&keys, "full_attention|sliding_attention");
    if (keys.n_kinds > 1)
        *layers = keys;
}

/* ---- Stacks: encoder and decoder, stages ---- */

static const char *const stack_depths[][2] = {
    {"encoder", "encoder_layers|num_encoder_layers|num_layers|num_hidden_layers"},
    {"decoder", "decoder_layers|num_decoder_layers|num_layers|num_hidden_layers"},
    {"text_encoder", "encoder_layers"},
    {"text_decoder", "decoder_layers"},
    {"speech_encoder", "speech_encoder_layers"},
    {"rel_pos|rel_pos_x|rel_pos_y", "num_hidden_layers"},
};

static int64_t depth_of(const struct pe_hf_place *place, const char *stack)
{
    struct pe_reals depths =
        strncmp(stack, "stage", 5) == 0 ? pe_hf_numbers(place, "depths") : (struct pe_reals){.n = 0};
    uint64_t stage = (uint64_t)(stack[0] ? stack[strlen(stack) - 1] - '1' : 0);
    double x = depths.n > stage ? pe_real_at(&depths, stage) : 0;
    if (x > 0 && x <= PE_HF_LAYERS_MAX)
        return (int64_t)x;
    for (size_t i = 0; i < sizeof stack_depths / sizeof *stack_depths; i++)
        if (pe_is_among(stack_depths[i][0], stack))
            return pe_hf_count(place, stack_depths[i][1]);
    return 0;
}

const char *pe_hf_stack_flags(const struct pe_hf_reader *r)
{
    if (r->model->kind == PE_HF_T5)
        return "is_encoder_decoder=true|is_decoder=true";
    return r->model->kind == PE_HF_LAYOUTLM ? "has_spatial_attention_bias=false|has_relative_attention_bias=false"
                                            : NULL;
}

/* T5's config may be of one stack, LayoutLM's without some of the tables. */
static const char *stacks_of(const struct pe_hf_reader *r)
{
    bool is_t5 = r->model->kind == PE_HF_T5, is_layoutlm = r->model->kind == PE_HF_LAYOUTLM;
    if (is_t5 && !pe_hf_holds(&r->config, "is_encoder_decoder=true"))
        return pe_hf_holds(&r->config, "is_decoder=true") ? "decoder" : "encoder";
    if (is_layoutlm && pe_hf_holds(&r->config, "has_spatial_attention_bias=false"))
        return "rel_pos";
    if (is_layoutlm && pe_hf_holds(&r->config, "has_relative_attention_bias=false"))
        return "rel_pos_x|rel_pos_y";
    return r->model->layers;
}

static void list_stacks(const struct pe_hf_reader *r, struct pe_hf_layers *layers)
{
    add_words(layers, stacks_of(r));
    bool are_stages = r->model->kind == PE_HF_SWIN || r->model->kind == PE_HF_SWINV2;
    size_t n_stages = are_stages ? (size_t)pe_hf_numbers(&r->config, "num_heads").n : layers->n_kinds;
    if (n_stages && n_stages < layers->n_kinds)
        layers->n_kinds = n_stages;
    layers->are_stacks = true;
    for (size_t k = 0; k < layers->n_kinds; k++)
        layers->depths[k] = depth_of(&r->config, layers->kinds[k]);
}

static enum pe_status too_many(const struct pe_hf_reader *r)
{
    const struct pe_field *field = pe_hf_find(&r->config, PE_HF_LAYER_LISTS);
    field = field ? field : pe_hf_find(&r->config, pe_hf_rope_names(r));
    return pe_fail_at(r->err, r->config.at, field ? field->name : "layer_types",
                      "too many kinds of layers; allowed: at most %d, with names of less than %d bytes",
                      PE_HF_KINDS_MAX, PE_HF_KIND_BYTES);
}

enum pe_status pe_hf_list_layers(const struct pe_hf_reader *r, struct pe_hf_layers *layers)
{
    bool by_layer = pe_hf_is_by_layer(r->model);
    layers->n = layers->n_kinds = layers->n_others = 0;
    layers->are_stacks = layers->are_certain = layers->are_merged = layers->are_too_many = false;
    if (check_layers(r))
        return r->err->status;
    if (!by_layer && r->model->layers) {
        list_stacks(r, layers);
    } else if (by_layer) {
        bool mixes = r->model->mixed && strchr(r->model->mixed, '|');
        list_layers(r, layers);
        if (!mixes && !list_of(&r->config))
            list_rope_keys(r, layers);
        if (!mixes && !list_of(&r->config) && pe_hf_has_other_layers(r->model))
            layers->n = 0; /* some layers are no attention, and nothing states which */
    } else {
        add_kind(layers, PE_HF_FULL, strlen(PE_HF_FULL));
        layers->n = (size_t)pe_hf_count(&r->config, depth_names);
        memset(layers->kind_of, 0, layers->n);
    }
    if (layers->n_kinds == 0)
        add_kind(layers, PE_HF_FULL, strlen(PE_HF_FULL));
    judge_masks(r, layers);
    return layers->are_too_many ? too_many(r) : PE_OK;
}

/* ---- What an answer reports of them ---- */

size_t pe_hf_layers_of(const struct pe_hf_layers *layers, const char *kind, int64_t *indices)
{
    size_t n = 0;
    for (size_t k = 0; layers->are_stacks && k < layers->n_kinds; k++)
        if (strcmp(layers->kinds[k], kind ? kind : layers->kinds[0]) == 0)
            for (; (int64_t)n < layers->depths[k]; n++)
                indices[n] = (int64_t)n;
    for (size_t l = 0; !layers->are_stacks && l < layers->n; l++)
        if (kind ? strcmp(layers->kinds[layers->kind_of[l]], kind) == 0 : layers->kind_of[l] < PE_HF_KINDS_MAX)
            indices[n++] = (int64_t)l;
    return n;
}

static bool is_in(const struct pe_hf_layers *layers, size_t first, size_t count, const char *kind)
{
    for (size_t k = first; k < first + count; k++)
        if (strcmp(layers->kinds[k], kind) == 0)
            return true;
    return false;
}

bool pe_hf_has_kind(const struct pe_hf_layers *layers, const char *kind)
{
    return is_in(layers, 0, layers->n_kinds, kind) || is_in(layers, PE_HF_KINDS_MAX, layers->n_others, kind);
}

const char *pe_hf_default_kind(const struct pe_hf_layers *layers)
{
    return is_in(layers, 0, layers->n_kinds, PE_HF_FULL) ? PE_HF_FULL : layers->kinds[0];
}

bool pe_hf_layers_known(const struct pe_hf_layers *layers, const char *kind)
{
    int64_t depth = 0;
    for (size_t k = 0; layers->are_stacks && k < layers->n_kinds; k++)
        if (strcmp(layers->kinds[k], kind ? kind : layers->kinds[0]) == 0)
            depth = layers->depths[k];
    bool is_told_apart = !kind || (pe_hf_has_kind(layers, kind) && !layers->are_merged);
    return layers->are_stacks ? depth > 0 : layers->n > 0 && is_told_apart;
}
