/* Presets: the fields that every row must have, and the numbers of the models themselves, written here from the sources
 * that the rows name. */
#include "core/params.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- The rows as a whole ---- */

static bool is_known_scheme(const char *name)
{
    static const char *const known[] = {"rope",  "sinusoidal", "learned",   "fourier",       "alibi",
                                        "t5",    "swin",       "swinv2",    "beit",          "shaw",
                                        "xlnet", "deberta",    "conformer", "transformer_xl"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], name) == 0)
            return true;
    return false;
}

static const struct pe_field *field_of(const struct pe_field *fields, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static void check_layer(const struct pe_preset *preset, const struct pe_preset_layer *layer)
{
    const struct pe_field *scheme = field_of(layer->fields, layer->n_fields, "scheme");
    if (!scheme || scheme->value.kind != PE_STRING || !is_known_scheme(scheme->value.string))
        fail_msg("%s: no scheme that is known", preset->name);
    for (size_t i = 0; i < layer->n_fields; i++)
        if (field_of(layer->fields, layer->n_fields, layer->fields[i].name) != &layer->fields[i])
            fail_msg("%s: %s stands twice", preset->name, layer->fields[i].name);
}

/* The default comes first. */
static bool is_first_type(const char *type)
{
    static const char *const first[] = {"full_attention", "encoder", "stage1", "rel_pos"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (strcmp(first[i], type) == 0)
            return true;
    return false;
}

static void check_types(const struct pe_preset *preset)
{
    const struct pe_preset_layer *layers = preset->layers;
    if (preset->n_layers == 1) {
        assert_null(layers[0].layer_type);
        return;
    }
    assert_true(is_first_type(layers[0].layer_type));
    for (size_t i = 0; i < preset->n_layers; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(layers[i].layer_type, layers[j].layer_type);
}

static void check_preset(const struct pe_preset *preset)
{
    assert_true(preset->name && preset->name[0]);
    assert_true(preset->source && preset->source[0]);
    assert_int_equal(strcspn(preset->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ |/"), strlen(preset->name));
    assert_true(preset->n_layers > 0);
    assert_non_null(pe_certainty_name(preset->certainty));
    for (size_t j = 0; j < preset->n_layers; j++)
        check_layer(preset, &preset->layers[j]);
    check_types(preset);
}

TEST(every_row_is_whole)
{
    assert_in_range(pe_n_presets(), 130, 254); /* lists of names for "nearest" hold 255 */
    for (size_t i = 0; i < pe_n_presets(); i++)
        check_preset(pe_preset_at(i));
}

/* Every name and alias leads to its own row, so none occurs in two rows. */
TEST(names_are_found_and_stand_once)
{
    for (size_t i = 0; i < pe_n_presets(); i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        char names[512], *rest = names;
        snprintf(names, sizeof names, "%s|%s", preset->name, preset->aliases ? preset->aliases : "");
        for (char *name = strtok_r(names, "|", &rest); name; name = strtok_r(NULL, "|", &rest))
            if (pe_preset_find(name) != preset)
                fail_msg("%s: \"%s\" leads elsewhere", preset->name, name);
    }
    assert_null(pe_preset_find(""));
    assert_null(pe_preset_find("llama"));
    assert_null(pe_preset_find("llama-3.1-8b|llama-3.1-70b"));
    assert_ptr_equal(pe_preset_find("llama-3.1"), pe_preset_find("llama-3.1-8b"));
    assert_string_equal(pe_certainty_name(PE_UNVERIFIED), "unverified");
}

/* ---- Numbers of single models ---- */

/* name, layer type (NULL: all layers), fields: all of them. ' stands for ". */
static const char *const models[][3] = {
    {"llama-1", NULL, "{'scheme':'rope','head_dim':128,'base':10000,'layout':'half'}"},
    {"llama-2-7b", NULL, "{'scheme':'rope','head_dim':128,'base':10000,'layout':'half'}"},
    {"llama-3", NULL, "{'scheme':'rope','head_dim':128,'base':500000,'layout':'half'}"},
    {"llama-3.1-8b", NULL,
     "{'scheme':'rope','head_dim':128,'base':500000,'layout':'half','scaling':{'type':'llama3','factor':8,"
     "'low_freq_factor':1,'high_freq_factor':4,'original_max_position_embeddings':8192}}"},
    {"llama-3.2-1b", NULL,
     "{'scheme':'rope','head_dim':64,'base':500000,'layout':'half','scaling':{'type':'llama3','factor':32,"
     "'low_freq_factor':1,'high_freq_factor':4,'original_max_position_embeddings':8192}}"},
    {"llama-3.2-3b", NULL,
     "{'scheme':'rope','head_dim':128,'base':500000,'layout':'half','scaling':{'type':'llama3','factor':32,"
     "'low_freq_factor':1,'high_freq_factor':4,'original_max_position_embeddings':8192}}"},
    {"llama-4-scout", NULL,
     "{'scheme':'rope','head_dim':128,'base':500000,'layout':'interleaved','scaling':{'type':'llama3','factor':16,"
     "'low_freq_factor':1,'high_freq_factor':1,'original_max_position_embeddings':8192}}"},
    {"mistral-7b-v0.1", NULL, "{'scheme':'rope','head_dim':128,'base':10000,'layout':'half'}"},
    {"mistral-7b-v0.2", NULL, "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half'}"},
    {"mixtral-8x7b", NULL, "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half'}"},
    {"ministral-3", NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','scaling':{'type':'yarn','factor':16,"
     "'original_max_position_embeddings':16384,'beta_fast':32,'beta_slow':1,'attention_factor':1},"
     "'query_scale':{'type':'ministral','beta':0.1,'original_max_position_embeddings':16384}}"},
    {"qwen2.5-0.5b", NULL, "{'scheme':'rope','head_dim':64,'base':1000000,'layout':'half'}"},
    {"qwen2.5-7b", NULL, "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half'}"},
    {"qwen2.5-yarn-128k", NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','scaling':{'type':'yarn','factor':4,"
     "'original_max_position_embeddings':32768,'beta_fast':32,'beta_slow':1}}"},
    {"qwen3", NULL, "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half'}"},
    {"qwen3-next", NULL, "{'scheme':'rope','head_dim':256,'base':10000000,'layout':'half','rotary_dim':64}"},
    {"phi-2", NULL, "{'scheme':'rope','head_dim':80,'base':10000,'layout':'half','rotary_dim':32}"},
    {"phi-3-mini-4k", NULL, "{'scheme':'rope','head_dim':96,'base':10000,'layout':'half'}"},
    {"gemma-2", NULL, "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half','softcap':50}"},
    {"gemma-3-270m", "full_attention", "{'scheme':'rope','head_dim':256,'base':1000000,'layout':'half'}"},
    {"gemma-3-1b", "sliding_attention", "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half'}"},
    {"gemma-3-12b", "full_attention",
     "{'scheme':'rope','head_dim':256,'base':1000000,'layout':'half','scaling':{'type':'linear','factor':8}}"},
    {"gemma-3-12b", "sliding_attention", "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half'}"},
    {"gemma-3-27b", "full_attention",
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','scaling':{'type':'linear','factor':8},'softmax_"
     "scale':0.07715167498104596}"},
    {"gemma-4", "full_attention",
     "{'scheme':'rope','head_dim':512,'base':1000000,'layout':'half',"
     "'scaling':{'type':'proportional','partial_rotary_factor':0.25},'softmax_scale':1}"},
    {"gemma-4", "sliding_attention", "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half','softmax_scale':1}"},
    {"deepseek-r1", NULL,
     "{'scheme':'rope','head_dim':192,'base':10000,'layout':'interleaved','rotary_dim':64,'rotary_offset':128,"
     "'scaling':{'type':'yarn','factor':40,'original_max_position_embeddings':4096,'beta_fast':32,'beta_slow':1,"
     "'mscale':1,'mscale_all_dim':1}}"},
    {"deepseek-v2-lite", NULL,
     "{'scheme':'rope','head_dim':192,'base':10000,'layout':'interleaved','rotary_dim':64,'rotary_offset':128,"
     "'scaling':{'type':'yarn','factor':40,'original_max_position_embeddings':4096,'beta_fast':32,'beta_slow':1,"
     "'mscale':0.707,'mscale_all_dim':0.707}}"},
    {"gpt-oss-20b", NULL,
     "{'scheme':'rope','head_dim':64,'base':150000,'layout':'half','scaling':{'type':'yarn','factor':32,"
     "'original_max_position_embeddings':4096,'beta_fast':32,'beta_slow':1,'truncate':false}}"},
    {"internlm3-8b", NULL,
     "{'scheme':'rope','head_dim':128,'base':50000000,'layout':'half','scaling':{'type':'dynamic','factor':6,"
     "'max_position_embeddings':32768}}"},
    {"gpt-j-6b", NULL, "{'scheme':'rope','head_dim':256,'base':10000,'layout':'interleaved','rotary_dim':64}"},
    {"gpt-neox-20b", NULL, "{'scheme':'rope','head_dim':96,'base':10000,'layout':'half','rotary_dim':24}"},
    {"glm-4-9b", NULL, "{'scheme':'rope','head_dim':128,'base':10000,'layout':'interleaved','rotary_dim':64}"},
    {"command-r", NULL, "{'scheme':'rope','head_dim':128,'base':8000000,'layout':'interleaved'}"},
    {"ernie-4.5", NULL, "{'scheme':'rope','head_dim':128,'base':500000,'layout':'interleaved'}"},
    {"persimmon-8b", NULL, "{'scheme':'rope','head_dim':64,'base':25000,'layout':'half','rotary_dim':32}"},
    {"stablelm-3b", NULL, "{'scheme':'rope','head_dim':80,'base':10000,'layout':'half','rotary_dim':20}"},
    {"modernbert", "full_attention", "{'scheme':'rope','head_dim':64,'base':160000,'layout':'half'}"},
    {"modernbert-base", "sliding_attention", "{'scheme':'rope','head_dim':64,'base':10000,'layout':'half'}"},
    {"roformer", NULL, "{'scheme':'rope','head_dim':64,'base':10000,'layout':'interleaved'}"},
    {"qwen2-vl", NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','channels':'mrope','mrope_section':[16,24,24],"
     "'position_style':'qwen2_vl','spatial_merge_size':2}"},
    {"qwen2.5-vl-7b", NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','channels':'mrope','mrope_section':[16,24,24],"
     "'position_style':'qwen2_5_vl','spatial_merge_size':2,'tokens_per_second':2}"},
    {"qwen2.5-omni", NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','channels':'mrope','mrope_section':[16,24,24],"
     "'position_style':'qwen2_5_omni','spatial_merge_size':2,'position_id_per_seconds':25,'seconds_per_chunk':2}"},
    {"qwen3-vl", NULL,
     "{'scheme':'rope','head_dim':128,'base':5000000,'layout':'half','channels':'mrope_interleaved',"
     "'mrope_section':[24,20,20],'position_style':'qwen3_vl','spatial_merge_size':2}"},
    {"qwen3-omni", NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','channels':'mrope_interleaved',"
     "'mrope_section':[24,20,20],'position_style':'qwen3_omni','spatial_merge_size':2,'position_id_per_seconds':13}"},
    {"qwen3.5", NULL,
     "{'scheme':'rope','head_dim':256,'rotary_dim':64,'base':10000000,'layout':'half','channels':'mrope_interleaved',"
     "'mrope_section':[11,11,10],'position_style':'qwen3_vl','spatial_merge_size':2}"},
    {"qwen2.5-vl-vision", NULL,
     "{'scheme':'rope','head_dim':80,'base':10000,'layout':'half','axes_dim':[40,40],'order':'merge',"
     "'spatial_merge_size':2}"},
    {"qwen3-vl-vision", NULL,
     "{'scheme':'rope','head_dim':72,'base':10000,'layout':'half','axes_dim':[36,36],'order':'merge',"
     "'spatial_merge_size':2}"},
    {"pixtral-vision", NULL, "{'scheme':'rope','head_dim':64,'base':10000,'layout':'half','channels':'pixtral'}"},
    {"flux.1", NULL, "{'scheme':'rope','head_dim':128,'base':10000,'layout':'interleaved','axes_dim':[16,56,56]}"},
    {"dinov3", NULL,
     "{'scheme':'rope','head_dim':64,'base':100,'layout':'half','channels':'dinov3','coords':'normalized'}"},
    {"eva-02", NULL,
     "{'scheme':'rope','head_dim':64,'base':10000,'layout':'interleaved','axes_dim':[32,32],'coords':'resized',"
     "'ref_grid':[16,16]}"},
    {"transformer-big", NULL,
     "{'scheme':'sinusoidal','dim':1024,'base':10000,'layout':'interleaved','x_scale':'sqrt_dim'}"},
    {"whisper-small", NULL, "{'scheme':'sinusoidal','dim':768,'base':10000,'layout':'half','freq_shift':1}"},
    {"bert-base", NULL, "{'scheme':'learned','rows':512,'dim':768}"},
    {"gpt-2", NULL, "{'scheme':'learned','rows':1024,'dim':768}"},
    {"roberta-base", NULL, "{'scheme':'learned','rows':514,'dim':768,'row_offset':2}"},
    {"opt-125m", NULL, "{'scheme':'learned','rows':2050,'dim':768,'row_offset':2}"},
    {"bart", NULL, "{'scheme':'learned','rows':1026,'dim':1024,'row_offset':2}"},
    {"vit-b-16", NULL,
     "{'scheme':'learned','rows':197,'dim':768,'interpolate':'bicubic','table_grid':[14,14],'num_prefix':1}"},
    {"clip-text", NULL, "{'scheme':'learned','rows':77,'dim':512}"},
    {"mae", NULL, "{'scheme':'sinusoidal','dim':768,'style':'mae','base':10000}"},
    {"perceiver", NULL,
     "{'scheme':'fourier','style':'perceiver','num_bands':64,'max_resolution':[224,224],'concat_pos':true}"},
};

static const struct pe_preset_layer *layer_of(const char *name, const char *type)
{
    const struct pe_preset *preset = pe_preset_find(name);
    if (!preset)
        fail_msg("no preset \"%s\"", name);
    for (size_t i = 0; i < preset->n_layers; i++)
        if (!type || (preset->layers[i].layer_type && strcmp(preset->layers[i].layer_type, type) == 0))
            return &preset->layers[i];
    fail_msg("preset \"%s\" has no layers of type \"%s\"", name, type);
    return NULL;
}

TEST(models_have_their_numbers)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const struct pe_preset_layer *layer = layer_of(models[i][0], models[i][1]);
        test_fields_equal(models[i][0], layer->fields, layer->n_fields, models[i][2]);
    }
}

/* ---- Models with biases and relative attention: the numbers of their published configs, a line each ---- */

#define REST 400 /* room for the fields */

struct headed {
    const char *names; /* of one preset, "a|b" */
    int heads, head_dim;
    const char *rest;
};

#define KEY_MASK "'scheme':'alibi','form':'key_mask','bias_max':8"
#define KEY_END "'scheme':'alibi','form':'key_end','bias_max':8"
#define SYMMETRIC "'scheme':'alibi','form':'symmetric','bias_max':8"
#define T5_32_128 "'scheme':'t5','num_buckets':32,'max_distance':128"
#define T5_320_800 "'scheme':'t5','num_buckets':320,'max_distance':800,'bidirectional':true"
#define BEIT(side) "'scheme':'beit','grid':[" side "," side "]"
#define DEBERTA_V1                                                                                                     \
    "'scheme':'deberta','position_buckets':-1,'max_relative_positions':512,'pos_att_type':['c2p','p2c'],"              \
    "'share_att_key':false,'norm_rel_ebd':false"
#define DEBERTA_V2                                                                                                     \
    "'scheme':'deberta','position_buckets':256,'max_relative_positions':512,'pos_att_type':['c2p','p2c'],"             \
    "'share_att_key':true,'norm_rel_ebd':true"
#define NEZHA "'scheme':'shaw','table_style':'sinusoidal','max_relative':64,'direction':'key_minus_query'"

static const struct headed of_all_layers[] = {
    {"bloom-560m", 16, 1024 / 16, KEY_MASK},
    {"bloom-1b1", 16, 1536 / 16, KEY_MASK},
    {"bloom-1b7", 16, 2048 / 16, KEY_MASK},
    {"bloom-3b", 32, 2560 / 32, KEY_MASK},
    {"bloom-7b1", 32, 4096 / 32, KEY_MASK},
    {"bloom-176b|bloom", 112, 14336 / 112, KEY_MASK},
    {"mpt-7b", 32, 128, KEY_END},
    {"mpt-30b", 64, 112, KEY_END},
    {"mpt-7b-storywriter", 32, 128, "'scheme':'alibi','form':'key_end','bias_max':16"},
    {"falcon-rw-1b", 32, 64, KEY_MASK ",'bias_scaled':true"},
    {"falcon-rw-7b", 64, 64, KEY_MASK ",'bias_scaled':true"},
    {"baichuan-13b", 40, 128, "'scheme':'alibi','form':'key','bias_max':8"},
    {"jina-embeddings-v2-small-en", 8, 512 / 8, SYMMETRIC},
    {"jina-embeddings-v2-base-en", 12, 768 / 12, SYMMETRIC},
    {"mpnet-base", 12, 64, T5_32_128 ",'bidirectional':true,'softmax_scale':0.125"},
    {"wavlm-base", 12, 64, T5_320_800 ",'softmax_scale':0.125"},
    {"wavlm-large", 16, 64, T5_320_800 ",'softmax_scale':0.125"},
    {"beit-base-patch16-224", 12, 64, BEIT("14")},
    {"beit-base-patch16-384", 12, 64, BEIT("24")},
    {"beit-large-patch16-224", 16, 64, BEIT("14")},
    {"beit-large-patch16-384", 16, 64, BEIT("24")},
    {"deberta-base", 12, 768 / 12, DEBERTA_V1},
    {"deberta-large|deberta-xlarge", 16, 1024 / 16, DEBERTA_V1},
    {"deberta-v2-xlarge|deberta-v2-xxlarge", 24, 1536 / 24, DEBERTA_V2},
    {"deberta-v3-xsmall", 6, 384 / 6, DEBERTA_V2},
    {"deberta-v3-small|deberta-v3-base|mdeberta-v3-base", 12, 768 / 12, DEBERTA_V2},
    {"deberta-v3-large", 16, 1024 / 16, DEBERTA_V2},
    {"transfo-xl-wt103", 16, 64,
     "'scheme':'transformer_xl','d_model':1024,'mem_len':1600,'clamp_len':1000,'same_length':true,'causal':true"},
    {"xlnet-base-cased", 12, 64, "'scheme':'xlnet','d_model':768,'clamp_len':-1"},
    {"xlnet-large-cased", 16, 64, "'scheme':'xlnet','d_model':1024,'clamp_len':-1"},
    {"wav2vec2-conformer-rel-pos-large", 16, 64, "'scheme':'conformer','d_model':1024"},
    {"nezha-cn-base", 12, 64, NEZHA},
    {"nezha-cn-large", 16, 64, NEZHA},
};

static void check_headed(const char *name, const char *type, int heads, int head_dim, const char *rest)
{
    char expected[REST];
    snprintf(expected, sizeof expected, "{'num_heads':%d,'head_dim':%d,%s}", heads, head_dim, rest);
    const struct pe_preset_layer *layer = layer_of(name, type);
    test_fields_equal(name, layer->fields, layer->n_fields, expected);
}

TEST(models_of_one_kind_of_layers)
{
    for (size_t i = 0; i < sizeof of_all_layers / sizeof *of_all_layers; i++) {
        const struct headed *m = &of_all_layers[i];
        char names[128], *rest = names;
        snprintf(names, sizeof names, "%s", m->names);
        for (char *name = strtok_r(names, "|", &rest); name; name = strtok_r(NULL, "|", &rest))
            check_headed(name, NULL, m->heads, m->head_dim, m->rest);
    }
}

/* Both stacks of T5: heads, d_kv. */
static const struct headed t5_sizes[] = {
    {"t5-small", 8, 64, NULL},      {"t5-base", 12, 64, NULL},       {"t5-large", 16, 64, NULL},
    {"t5-3b", 32, 128, NULL},       {"t5-11b", 128, 128, NULL},      {"t5-v1.1-small", 6, 64, NULL},
    {"t5-v1.1-base", 12, 64, NULL}, {"t5-v1.1-large", 16, 64, NULL}, {"t5-v1.1-xl", 32, 64, NULL},
    {"t5-v1.1-xxl", 64, 64, NULL},  {"mt5-small", 6, 64, NULL},      {"mt5-base", 12, 64, NULL},
    {"mt5-large", 16, 64, NULL},    {"mt5-xl", 32, 64, NULL},        {"mt5-xxl", 64, 64, NULL},
    {"flan-t5-small", 6, 64, NULL}, {"flan-t5-base", 12, 64, NULL},  {"flan-t5-large", 16, 64, NULL},
    {"flan-t5-xl", 32, 64, NULL},   {"flan-t5-xxl", 64, 64, NULL},
};

TEST(tables_of_single_stacks)
{
    for (size_t i = 0; i < sizeof t5_sizes / sizeof *t5_sizes; i++) {
        const struct headed *m = &t5_sizes[i];
        check_headed(m->names, "encoder", m->heads, m->head_dim, T5_32_128 ",'bidirectional':true,'softmax_scale':1");
        check_headed(m->names, "decoder", m->heads, m->head_dim, T5_32_128 ",'bidirectional':false,'softmax_scale':1");
    }
    static const char flat[] = "'scheme':'t5','num_buckets':64,'max_distance':256,'bidirectional':true,'softmax_scale':"
                               "0.125,'table_scale':0.125";
    check_headed("layoutlmv3-base", "rel_pos", 12, 64,
                 T5_32_128 ",'bidirectional':true,'softmax_scale':0.125,'table_scale':0.125");
    check_headed("layoutlmv3-base", "rel_pos_x", 12, 64, flat);
    check_headed("layoutlmv3-base", "rel_pos_y", 12, 64, flat);
}

/* Swin's stages: heads, the windows of the first three and of the last, the pretrained ones (0: none). */
struct staged {
    const char *name;
    int heads[4], window, last_window, pretrained, last_pretrained;
};
static const struct staged stages[] = {
    {"swin-tiny", {3, 6, 12, 24}, 7, 7, 0, 0},
    {"swin-small", {3, 6, 12, 24}, 7, 7, 0, 0},
    {"swin-base", {4, 8, 16, 32}, 7, 7, 0, 0},
    {"swin-base-384", {4, 8, 16, 32}, 12, 12, 0, 0},
    {"swin-large", {6, 12, 24, 48}, 7, 7, 0, 0},
    {"swin-large-384", {6, 12, 24, 48}, 12, 12, 0, 0},
    {"swinv2-tiny-w8", {3, 6, 12, 24}, 8, 8, 0, 0},
    {"swinv2-small-w8", {3, 6, 12, 24}, 8, 8, 0, 0},
    {"swinv2-base-w8", {4, 8, 16, 32}, 8, 8, 0, 0},
    {"swinv2-tiny-w16", {3, 6, 12, 24}, 16, 8, 0, 0},
    {"swinv2-small-w16", {3, 6, 12, 24}, 16, 8, 0, 0},
    {"swinv2-base-w16", {4, 8, 16, 32}, 16, 8, 0, 0},
    {"swinv2-base-w12to16", {4, 8, 16, 32}, 16, 8, 12, 6},
    {"swinv2-large-w12to16", {6, 12, 24, 48}, 16, 8, 12, 6},
    {"swinv2-base-w12to24", {4, 8, 16, 32}, 24, 12, 12, 6},
    {"swinv2-large-w12to24", {6, 12, 24, 48}, 24, 12, 12, 6},
};

TEST(stages_of_swin)
{
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        for (int stage = 0; stage < 4; stage++) {
            const struct staged *m = &stages[i];
            bool v2 = strncmp(m->name, "swinv2", 6) == 0;
            int window = stage < 3 ? m->window : m->last_window,
                pretrained = stage < 3 ? m->pretrained : m->last_pretrained;
            char type[8], rest[REST / 2];
            snprintf(type, sizeof type, "stage%d", stage + 1);
            int n = snprintf(rest, sizeof rest, "'scheme':'%s','grid':[%d,%d]%s", v2 ? "swinv2" : "swin", window,
                             window, v2 ? ",'hidden':512" : "");
            if (pretrained)
                snprintf(rest + n, sizeof rest - (size_t)n, ",'pretrained_grid':[%d,%d]", pretrained, pretrained);
            check_headed(m->name, type, m->heads[stage], 32, rest);
        }
}

/* Exactly the presets whose numbers have not been verified in a checkpoint or a vendor's code. */
TEST(certainty_is_what_was_seen)
{
    static const char *const from_memory[] = {"mpt-30b",
                                              "falcon-rw-1b",
                                              "falcon-rw-7b",
                                              "baichuan-13b",
                                              "jina-embeddings-v2-small-en",
                                              "wav2vec2-conformer-rel-pos-large",
                                              "nezha-cn-large",
                                              "esm-2",
                                              "mistral-7b-v0.3"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof from_memory / sizeof *from_memory; i++)
        assert_int_equal(pe_preset_find(from_memory[i])->certainty, PE_UNVERIFIED);
    for (size_t i = 0; i < pe_n_presets(); i++)
        n += pe_preset_at(i)->certainty == PE_UNVERIFIED;
    assert_int_equal(n, sizeof from_memory / sizeof *from_memory);
}

/* ---- What a preset brings to a request ---- */

/* A preset's field that only attention uses is ignored elsewhere; the request's own fields are not. */
TEST(fields_of_attention_are_idle)
{
    struct test_request r;
    pe_plan_free(test_plan(&r, "{'preset':'t5-small','layer_type':'decoder','len':3}"));
    test_request_drop(&r);
    pe_plan_free(test_plan(&r, "{'preset':'bloom-560m','num_heads':2,'len':3}"));
    test_request_drop(&r);
    test_refused("{'preset':'t5-small','head_dim':64,'len':3}", "/head_dim", "head_dim");
    test_refused("{'preset':'bloom-560m','softmax_scale':1,'len':3}", "/softmax_scale", "unknown field");
}

static void check_tokens(const char *json, uint64_t tokens)
{
    struct test_request r;
    struct pe_plan *plan = test_plan(&r, json);
    const struct pe_output *index = pe_plan_output(plan, 0);
    assert_string_equal(index->name, "index");
    assert_int_equal(index->shape[0], tokens);
    pe_plan_free(plan);
    test_request_drop(&r);
}

/* The model's window is the sequence where the request has none. */
TEST(windows_bring_their_grid)
{
    check_tokens("{'preset':'swin-tiny'}", 49);
    check_tokens("{'preset':'swin-tiny','grid':[3,5]}", 15);
    check_tokens("{'preset':'swin-tiny','len':6}", 6);
    check_tokens("{'preset':'swinv2-base-w12to24','layer_type':'stage4'}", 144);
    check_tokens("{'preset':'beit-base'}", 197);
    test_refused("{'preset':'swin-tiny','positions':[1,2]}", "/positions", "one window");
    test_refused("{'preset':'swin-tiny','layer_type':'stage5'}", "/layer_type", "stage4");
}

/* ---- Lists: their length, ends and sums (of the published decimals, added exactly) ---- */

struct list {
    const char *preset, *name;
    size_t n;
    double first, last, sum;
};
static const struct list lists[] = {
    {"phi-3-mini-128k", "short_factor", 48, 1.05, 3.05, 96.05},
    {"phi-3-mini-128k", "long_factor", 48, 1.03, 64.81, 1513.02},
    {"phi-4-mini", "short_factor", 48, 1, 1, 48},
    {"phi-4-mini", "long_factor", 48, 1, 47.77, 844.763412405},
    {"minicpm4-8b", "short_factor", 64, 0.9977997200264581, 124.09569231686116, 3164.6659163917093},
    {"minicpm4-8b", "long_factor", 64, 0.9977997200264581, 124.09569231686116, 3164.6659163917093},
};

static const struct pe_field *scaling_field(const char *preset, const char *name)
{
    const struct pe_preset_layer *layer = layer_of(preset, NULL);
    const struct pe_field *scaling = field_of(layer->fields, layer->n_fields, "scaling");
    assert_non_null(scaling);
    return field_of(scaling->value.object.fields, scaling->value.object.n, name);
}

TEST(lists_are_copied_right)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const struct pe_field *field = scaling_field(lists[i].preset, lists[i].name);
        assert_non_null(field);
        assert_int_equal(field->value.array.shape[0], lists[i].n);
        const double *x = field->value.array.data;
        double sum = 0;
        for (size_t j = 0; j < lists[i].n; j++) {
            sum += x[j];
            assert_true(j == 0 || x[j] >= x[j - 1]);
        }
        assert_true(x[0] == lists[i].first && x[lists[i].n - 1] == lists[i].last);
        assert_true(fabs(sum - lists[i].sum) < 1e-9);
    }
    assert_int_equal(scaling_field("phi-4-mini", "original_max_position_embeddings")->value.integer, 4096);
    assert_int_equal(scaling_field("phi-3-mini-128k", "max_position_embeddings")->value.integer, 131072);
    assert_int_equal(scaling_field("minicpm4-8b", "max_position_embeddings")->value.integer, 32768);
}
