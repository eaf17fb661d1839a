/* Presets: what every row must have, and the numbers of the models themselves (AR §22 and the sources that the rows
 * name), written here from those sources. */
#include "tests/support/request.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- The rows as a whole ---- */

static bool is_known_scheme(const char *name)
{
    static const char *const known[] = {"rope", "sinusoidal", "learned", "fourier"};
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

static void every_row_is_whole(void **unused)
{
    (void)unused;
    assert_true(pe_n_presets() > 60);
    for (size_t i = 0; i < pe_n_presets(); i++) {
        const struct pe_preset *preset = pe_preset_at(i);
        assert_true(preset->name && preset->name[0]);
        assert_true(preset->source && preset->source[0]);
        assert_int_equal(strcspn(preset->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ |/"), strlen(preset->name));
        assert_true(preset->n_layers > 0);
        assert_non_null(pe_certainty_name(preset->certainty));
        for (size_t j = 0; j < preset->n_layers; j++)
            check_layer(preset, &preset->layers[j]);
        if (preset->n_layers == 1)
            assert_null(preset->layers[0].layer_type);
        else
            assert_string_equal(preset->layers[0].layer_type, "full_attention");
    }
}

/* Every name and alias leads to its own row, so none stands in two. */
static void names_are_found_and_stand_once(void **unused)
{
    (void)unused;
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
     "'original_max_position_embeddings':16384,'beta_fast':32,'beta_slow':1,'mscale':1,'mscale_all_dim':1}}"},
    {"qwen2.5-0.5b", NULL, "{'scheme':'rope','head_dim':64,'base':1000000,'layout':'half'}"},
    {"qwen2.5-7b", NULL, "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half'}"},
    {"qwen2.5-yarn-128k", NULL,
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','scaling':{'type':'yarn','factor':4,"
     "'original_max_position_embeddings':32768,'beta_fast':32,'beta_slow':1}}"},
    {"qwen3", NULL, "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half'}"},
    {"qwen3-next", NULL, "{'scheme':'rope','head_dim':256,'base':10000000,'layout':'half','rotary_dim':64}"},
    {"phi-2", NULL, "{'scheme':'rope','head_dim':80,'base':10000,'layout':'half','rotary_dim':32}"},
    {"phi-3-mini-4k", NULL, "{'scheme':'rope','head_dim':96,'base':10000,'layout':'half'}"},
    {"gemma-2", NULL, "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half'}"},
    {"gemma-3-270m", "full_attention", "{'scheme':'rope','head_dim':256,'base':1000000,'layout':'half'}"},
    {"gemma-3-1b", "sliding_attention", "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half'}"},
    {"gemma-3-12b", "full_attention",
     "{'scheme':'rope','head_dim':256,'base':1000000,'layout':'half','scaling':{'type':'linear','factor':8}}"},
    {"gemma-3-12b", "sliding_attention", "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half'}"},
    {"gemma-3-27b", "full_attention",
     "{'scheme':'rope','head_dim':128,'base':1000000,'layout':'half','scaling':{'type':'linear','factor':8}}"},
    {"gemma-4", "full_attention",
     "{'scheme':'rope','head_dim':512,'base':1000000,'layout':'half',"
     "'scaling':{'type':'proportional','partial_rotary_factor':0.25}}"},
    {"gemma-4", "sliding_attention", "{'scheme':'rope','head_dim':256,'base':10000,'layout':'half'}"},
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

static void models_have_their_numbers(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const struct pe_preset_layer *layer = layer_of(models[i][0], models[i][1]);
        test_fields_equal(models[i][0], layer->fields, layer->n_fields, models[i][2]);
    }
}

/* ---- Lists: their length, ends and sums (of the decimals in AR §22, added exactly) ---- */

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

static void lists_are_copied_right(void **unused)
{
    (void)unused;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_whole),
        cmocka_unit_test(names_are_found_and_stand_once),
        cmocka_unit_test(models_have_their_numbers),
        cmocka_unit_test(lists_are_copied_right),
    };
    return cmocka_run_group_tests_name("presets", tests, NULL, NULL);
}
