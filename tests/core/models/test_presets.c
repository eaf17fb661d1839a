/* Presets: what every row must have. The numbers of the models are rows of tests/cases/presets.jsonl. */
#include "core/models/models.h"
#include "core/params.h"
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

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
    if (!scheme || scheme->value.kind != PE_STRING || !pe_scheme_find(scheme->value.string))
        fail_msg("%s: no scheme that is known", preset->name);
    for (size_t i = 0; i < layer->n_fields; i++)
        if (field_of(layer->fields, layer->n_fields, layer->fields[i].name) != &layer->fields[i])
            fail_msg("%s: %s stands twice", preset->name, layer->fields[i].name);
}

/* The default comes first. */
static bool is_first_type(const char *type)
{
    static const char *const first[] = {"full_attention", "encoder", "stage1", "rel_pos", "visual", "spatial"};
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
    assert_in_range(pe_n_presets(), 180, 510); /* lists of names for "nearest" hold 511 */
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
                                              "mistral-7b-v0.3",
                                              "command-a",
                                              "deepseek-r1-0528-qwen3-8b",
                                              "falcon-h1",
                                              "hunyuan-7b",
                                              "qwen3-coder-next",
                                              "bart-base",
                                              "hidream-i1",
                                              "latte"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof from_memory / sizeof *from_memory; i++)
        assert_int_equal(pe_preset_find(from_memory[i])->certainty, PE_UNVERIFIED);
    for (size_t i = 0; i < pe_n_presets(); i++)
        n += pe_preset_at(i)->certainty == PE_UNVERIFIED;
    assert_int_equal(n, sizeof from_memory / sizeof *from_memory);
}

/* What a name can mean are presets, and one that several can mean is refused whatever its words are. */
TEST(unclear_names_are_of_presets)
{
    for (size_t i = 0; i < pe_n_name_rows; i++) {
        const struct pe_name_row *row = &pe_name_rows[i];
        char names[512], asked[128], *rest = names;
        struct pe_preset_name name;
        struct pe_failure err;
        assert_true((row->words != NULL) != (row->means != NULL));
        snprintf(names, sizeof names, "%s", row->means ? row->means : "");
        snprintf(asked, sizeof asked, "Org/%s-AWQ", row->name);
        for (char *word = strtok_r(names, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
            assert_non_null(pe_preset_find(word));
        if (row->means)
            assert_int_equal(pe_preset_name(asked, &name, &err), PE_INVALID);
    }
}
