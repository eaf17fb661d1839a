/* Files that name a model, but whose fields say nothing of its positions: config.json of timm, whose positions stand in
 * its Python code alone; model_index.json of diffusers' pipelines, and its classes that have no positions. They are
 * refused with what to send in their place. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By the beginning of the architecture's name; type: the model_type of transformers that has such positions. */
static const struct family {
    const char *prefix, *type, *summary, *with; /* with: what else is in the name; NULL: anything */
} families[] = {
    {"swinv2_", "swinv2", .summary = "scheme swinv2 with grid (the window), w1, b1, w2"},
    {"swin_", "swin", .summary = "scheme swin with grid (the window) and table"},
    {"beit", "beit", .summary = "scheme beit with grid (rows and columns of patches) and table"},
    {"samvit_", NULL, .summary = "scheme decomposed with grid, rel_h and rel_w"},
    {"mvitv2_", NULL, .summary = "scheme decomposed with grid, rel_h and rel_w"},
    {"eva02_", NULL, .summary = "scheme rope with grid, head_dim and channels or axes_dim, beside a learned table"},
    {"vit_", "siglip_vision_model",
     .summary = "scheme learned with table, table_grid and interpolate, in timm bicubic_antialias; it has no class row",
     .with = "siglip"},
    {"vit_", NULL,
     .summary = "scheme learned with table, table_grid and interpolate, in timm bicubic_antialias; it has no class row",
     .with = "_gap_"},
    {"deit", "deit",
     .summary = "scheme learned with table, table_grid, num_prefix and interpolate, in timm bicubic_antialias"},
    {"vit_", "vit",
     .summary = "scheme learned with table, table_grid, num_prefix and interpolate, in timm bicubic_antialias"},
    {"", NULL,
     .summary = "the scheme that its code has: learned with table, table_grid; swin with grid, table; rope with grid, "
                "channels; none"},
};

static const struct family *family_of(const char *architecture)
{
    const struct family *f = families;
    while (strncmp(architecture, f->prefix, strlen(f->prefix)) != 0 || (f->with && !strstr(architecture, f->with)))
        f++;
    return f;
}

/* The grid of patches, from pretrained_cfg.input_size [channels, h, w] and "patch16" in the name; 0: neither has it.
 */
static void read_grid(const char *architecture, const struct pe_value *config, double *grid)
{
    const struct pe_value *size = pe_stated(pe_stated(config, "pretrained_cfg"), "input_size");
    const char *patch = strstr(architecture, "patch");
    double side = patch ? strtod(patch + strlen("patch"), NULL) : 0;
    grid[0] = grid[1] = 0;
    if (!size || size->kind != PE_ARRAY || size->array.rank != 1 || size->array.shape[0] != 3 ||
        !(side >= 1 && side <= PE_HF_SIDE_MAX))
        return;
    struct pe_reals list = {.array = size->array, .n = 3};
    for (uint64_t a = 0; a < 2; a++)
        grid[a] = floor(pe_real_at(&list, a + 1) / side);
}

bool pe_hf_is_timm(const struct pe_hf_place *config)
{
    const struct pe_value *name = pe_stated(config->object, "architecture");
    return name && name->kind == PE_STRING &&
           pe_field_find(config->object->object.fields, config->object->object.n, "pretrained_cfg");
}

enum pe_status pe_hf_refuse_timm(const struct pe_hf_place *config, struct pe_failure *err)
{
    const char *architecture = pe_stated(config->object, "architecture")->string;
    const struct family *f = family_of(architecture);
    char type[96] = "", patches[96] = "";
    double grid[2];
    read_grid(architecture, config->object, grid);
    if (f->type)
        snprintf(type, sizeof type, pe_text("\"hf_config\":{\"model_type\":\"%s\", …} with its fields, or "), f->type);
    if (grid[0] >= 1 && grid[1] >= 1)
        snprintf(patches, sizeof patches, pe_text("; its patches are a grid of [%.0f,%.0f]"), grid[0], grid[1]);
    return pe_fail_at(
        err, config->at, "architecture",
        "architecture \"%.64s\" is a model of timm, whose config.json has nothing about positions; send %s%s%s",
        architecture, type, pe_text(f->summary), patches);
}

/* ---- Classes of diffusers that are no transformer ---- */

/* By the beginning of the name. */
static const char *const convolutional[] = {
    "AutoencoderKL", "AsymmetricAutoencoderKL", "AutoencoderTiny", "AutoencoderOobleck", "VQModel", "UNet1DModel",
    "UNet2DModel",   "UNet2DConditionModel",    "ControlNetModel"};

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static bool is_convolutional(const char *class)
{
    for (size_t i = 0; i < sizeof convolutional / sizeof *convolutional; i++)
        if (strncmp(class, convolutional[i], strlen(convolutional[i])) == 0)
            return true;
    return false;
}

/* model_index.json has its parts as ["diffusers", "FluxTransformer2DModel"]. */
static enum pe_status refuse_pipeline(const struct pe_hf_place *config, const char *class, struct pe_failure *err)
{
    const struct pe_value *part = pe_stated(config->object, "transformer");
    bool has_name = part && part->kind == PE_LIST && part->list.n == 2 && part->list.items[1].kind == PE_STRING;
    if (!part && pe_stated(config->object, "unet"))
        return pe_fail_at(
            err, config->at, "_class_name",
            "\"%.64s\" is a pipeline whose unet is a convolutional network: it has no positions of tokens", class);
    return pe_fail_at(err, config->at, "_class_name",
                      "\"%.64s\" is a pipeline, whose model_index.json has nothing about positions; send the "
                      "config.json of its folder transformer%s%.64s",
                      class, has_name ? pe_text(", of the class ") : "", has_name ? part->list.items[1].string : "");
}

enum pe_status pe_hf_refuse_class(const struct pe_hf_place *config, const char *class, struct pe_failure *err)
{
    char nearest[192];
    if (ends_with(class, "Pipeline"))
        return refuse_pipeline(config, class, err);
    if (ends_with(class, "Scheduler"))
        return pe_fail_at(err, config->at, "_class_name",
                          "\"%.64s\" is a schedule of noise, which has no positions; send transformer/config.json",
                          class);
    if (is_convolutional(class))
        return pe_fail_at(
            err, config->at, "_class_name",
            "\"%.64s\" is a convolutional network, no transformer: it has no positions of tokens. In a model "
            "of diffusers transformer/config.json has them",
            class);
    pe_hf_nearest_types(class, nearest, sizeof nearest);
    if (*nearest)
        return pe_fail_at(err, config->at, "_class_name", "unknown class \"%.64s\"; nearest: %s", class, nearest);
    return pe_fail_at(err, config->at, "_class_name",
                      "unknown class \"%.64s\"; allowed: the transformers of diffusers that MODELS.md lists, as "
                      "\"FluxTransformer2DModel\", \"WanTransformer3DModel\", \"SD3Transformer2DModel\"",
                      class);
}
