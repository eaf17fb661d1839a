/* Classes of diffusers (core/models/classes.txt): rotary positions of grids, whose axes have blocks of the head; and
 * sine tables that are added to patches. A class gives fields, not a sequence: the caller sends the grid, in patches.
 * What the pipeline decides and not the config is the pipeline's default, and is named in `defaults`. */
#include "core/models/hf/hf.h"
#include "core/params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Widths of the axes ---- */

struct widths {
    double *w; /* in r->out->numbers */
    size_t n;
    double head_dim;
};

static double *room(struct pe_hf_reader *r, size_t at) { return r->out->numbers + PE_MODEL_ITEMS_MAX * at; }

static void set3(struct widths *w, double a, double b, double c)
{
    w->w[0] = a;
    w->w[1] = b;
    w->w[2] = c;
    w->n = 3;
}

static bool is_width(double x) { return x >= 2 && x == 2 * floor(x / 2); }
static bool is_length(double x) { return x >= 1 && x == floor(x); }
static bool is_factor(double x) { return x > 0; }

/* What the numbers of a list are. */
struct numbers {
    size_t n;
    bool (*is_right)(double x);
    const char *what; /* "widths, one for each axis" */
    const char *each; /* "even integers of at least 2" */
};

/* A list that the class needs, its own or the class's. */
static enum pe_status read_list(struct pe_hf_reader *r, const char *name, const struct numbers *of,
                                struct pe_reals *list)
{
    const struct pe_field *field = pe_hf_find(&r->config, name);
    *list = pe_hf_numbers(&r->config, name);
    if (!field)
        return pe_fail_at(r->err, r->config.at, name, "%s is missing; needed: %zu %s", name, of->n, pe_text(of->what));
    if (field->value.kind != PE_ARRAY || list->array.rank != 1)
        return pe_hf_wrong_list(&r->config, field, "a list of numbers", r->err);
    if (list->n != of->n)
        return pe_fail_at(r->err, r->config.at, name, "%s has %llu numbers; needed: %zu %s", name,
                          (unsigned long long)list->n, of->n, pe_text(of->what));
    for (size_t i = 0; i < of->n; i++)
        if (!of->is_right(pe_real_at(list, i)))
            return pe_fail_at(r->err, r->config.at, name, "%s has %.10g at index %zu; allowed: %s", name,
                              pe_real_at(list, i), i, pe_text(of->each));
    return PE_OK;
}

/* The list that a field has, "axes_dims_rope:3". */
static enum pe_status listed(struct pe_hf_reader *r, struct widths *w)
{
    char name[48];
    const char *colon = strchr(r->model->axes, ':');
    snprintf(name, sizeof name, "%.*s", (int)(colon - r->model->axes), r->model->axes);
    struct numbers of = {strtoul(colon + 1, NULL, 10), is_width, "widths, one for each axis",
                         "even integers of at least 2"};
    struct pe_reals list;
    double sum = 0;
    if (read_list(r, name, &of, &list))
        return r->err->status;
    for (size_t a = 0; a < of.n; a++)
        sum += w->w[a] = pe_real_at(&list, a);
    w->n = of.n;
    if (sum == w->head_dim)
        return PE_OK;
    return pe_fail_at(r->err, r->config.at, name, "%s adds up to %.10g; the class needs the width of a head, %.0f",
                      name, sum, w->head_dim);
}

static enum pe_status doubled(struct pe_hf_reader *r, struct widths *w)
{
    int64_t n = 0;
    if (pe_hf_needed(&r->config, "rope_freq_dim", "pairs of each axis", &n, r->err))
        return r->err->status;
    set3(w, 2 * (double)n, 2 * (double)n, 2 * (double)n);
    pe_hf_put_integer(r->out, "rotary_dim", 6 * n);
    return PE_OK;
}

static enum pe_status put_axes(struct pe_hf_reader *r, double head_dim)
{
    const char *axes = r->model->axes;
    struct widths w = {.w = room(r, 0), .head_dim = head_dim};
    double sixth = 2 * floor(head_dim / 6), eighth = 3 * floor(head_dim / 8);
    enum pe_status status = PE_OK;
    if (strchr(axes, ':'))
        status = listed(r, &w);
    else if (strcmp(axes, "thirds") == 0)
        set3(&w, head_dim - 2 * sixth, sixth, sixth);
    else if (strcmp(axes, "quarters") == 0)
        set3(&w, floor(head_dim / 4), eighth, eighth);
    else if (strcmp(axes, "halves") == 0) {
        w.w[0] = w.w[1] = floor(head_dim / 2);
        w.n = 2;
    } else if (strcmp(axes, "doubled") == 0)
        status = doubled(r, &w);
    if (!status && w.n)
        pe_hf_put_list(r->out, "axes_dim", w.w, w.n);
    return status;
}

/* Pairs that are not in blocks. */
static enum pe_status put_channels(struct pe_hf_reader *r)
{
    static const struct numbers sections = {3, is_length, "numbers of pairs, one for each axis",
                                            "integers of at least 1"};
    const char *axes = r->model->axes;
    struct pe_reals list;
    if (strcmp(axes, "alternating") == 0) {
        pe_hf_put_word(r->out, "channels", "alternating");
        pe_hf_put_word(r->out, "ladder", "own");
    }
    if (strcmp(axes, "sections") != 0)
        return PE_OK;
    if (read_list(r, "mrope_section", &sections, &list))
        return r->err->status;
    pe_hf_put_word(r->out, "channels", "mrope_interleaved");
    pe_hf_put(r->out, "mrope_section", pe_hf_find(&r->config, "mrope_section")->value);
    return PE_OK;
}

/* ---- Rotary grids ---- */

/* A head's width: stated, or that of the model divided by the heads, or what its axes add up to. */
static enum pe_status put_head_dim(struct pe_hf_reader *r, double *head_dim)
{
    int64_t d = 0;
    bool is_sum = strcmp(r->model->axes, "sum") == 0 || pe_is_among("axes_dims:3", r->model->axes);
    struct pe_reals list = is_sum ? pe_hf_numbers(&r->config, "axes_dims") : (struct pe_reals){.n = 0};
    for (uint64_t a = 0; a < list.n; a++)
        d += (int64_t)pe_real_at(&list, a);
    bool is_stated = pe_hf_find(&r->config, "attention_head_dim|n_heads|num_attention_heads") != NULL;
    if ((is_stated || !is_sum) && pe_hf_head_dim(r, &d))
        return r->err->status;
    *head_dim = (double)d;
    pe_hf_put_integer(r->out, "head_dim", d);
    return PE_OK;
}

enum pe_status pe_hf_grid(struct pe_hf_reader *r)
{
    double head_dim = 0, base = 10000;
    pe_hf_put_word(r->out, "scheme", "rope");
    if (put_head_dim(r, &head_dim) || put_axes(r, head_dim) ||
        pe_hf_number(&r->config, r->model->base ? r->model->base : "rope_theta", &base, r->err) || put_channels(r))
        return r->err->status;
    pe_hf_put_number(r->out, "base", base);
    pe_hf_put_word(r->out, "layout", r->model->layout);
    pe_hf_give(r);
    if (r->model->position_style)
        pe_hf_put_word(r->out, "position_style", r->model->position_style);
    return PE_OK;
}

/* CogView4: the grid stretched over rope_axes_dim. */
enum pe_status pe_hf_resized_to_axes(struct pe_hf_reader *r)
{
    static const struct numbers lengths = {2, is_length, "lengths, of rows and of columns", "integers of at least 1"};
    struct pe_reals list;
    if (read_list(r, "rope_axes_dim", &lengths, &list))
        return r->err->status;
    pe_hf_put_word(r->out, "coords", "resized_floor");
    pe_hf_put(r->out, "ref_grid", pe_hf_find(&r->config, "rope_axes_dim")->value);
    return PE_OK;
}

/* Frames at so many a second stand as if they were 24 a second; without a rate, which the pipeline decides, at 0, 1, …
 */
static enum pe_status put_clock(struct pe_hf_reader *r)
{
    enum { BASE_FPS = 24 };
    double fps = r->fps ? pe_value_number(r->fps) : 0, *scale = room(r, 1), *divisor = room(r, 2);
    if (r->fps && !(fps > 0 && isfinite(fps)))
        return pe_fail(r->err, "/fps", "fps is not a number above 0");
    if (!r->fps)
        pe_hf_mark_default(r->config.marks, "fps", (struct pe_value){.kind = PE_NULL});
    for (size_t a = 0; a < 3; a++) {
        scale[a] = a == 0 ? BASE_FPS : 1;
        divisor[a] = a == 0 ? fps : 1;
    }
    if (r->fps) {
        pe_hf_put_list(r->out, "axis_scale", scale, 3);
        pe_hf_put_list(r->out, "axis_divisor", divisor, 3);
    }
    r->fps = NULL;
    return PE_OK;
}

/* Cosmos: an NTK-aware factor for each axis. */
enum pe_status pe_hf_scaled_by_axis(struct pe_hf_reader *r)
{
    static const struct numbers factors = {3, is_factor, "factors, one for each axis", "numbers above 0"};
    struct pe_reals list;
    if (read_list(r, "rope_scale", &factors, &list))
        return r->err->status;
    for (size_t a = 0; a < 3; a++) {
        struct pe_field *of = &r->out->scaling[2 * a];
        of[0] = (struct pe_field){"type", pe_word("ntk")};
        of[1] = (struct pe_field){"factor", pe_real(pe_real_at(&list, a))};
        r->out->items[a] = pe_object(of, 2);
    }
    pe_hf_put(r->out, "axis_scaling", (struct pe_value){.kind = PE_LIST, .list = {r->out->items, 3}});
    return put_clock(r);
}

/* ---- Grids that are cropped ---- */

static enum pe_status read_patch(struct pe_hf_reader *r, int64_t *side)
{
    enum pe_status status = pe_hf_needed(&r->config, "patch_size", "side of a patch", side, r->err);
    if (!status && *side < 1)
        return pe_hf_wrong_value(&r->config, "patch_size", "an integer of at least 1", r->err);
    return status;
}

static enum pe_status put_crop(struct pe_hf_reader *r, double height, double width)
{
    int64_t patch = 1;
    double *ref = room(r, 1);
    if (read_patch(r, &patch))
        return r->err->status;
    ref[0] = floor(height / (double)patch);
    ref[1] = floor(width / (double)patch);
    pe_hf_put_word(r->out, "coords", "cropped");
    pe_hf_put_list(r->out, "ref_grid", ref, 2);
    pe_hf_put_word(r->out, "crop_end", "open");
    pe_hf_mark_default(r->config.marks, "crop_end", pe_word("open"));
    return PE_OK;
}

enum pe_status pe_hf_cropped_to_video(struct pe_hf_reader *r) { return put_crop(r, 60, 90); }

/* ---- Sine tables ---- */

static enum pe_status put_sines(struct pe_hf_reader *r)
{
    int64_t head_dim = 0, heads = 0;
    pe_hf_put_word(r->out, "scheme", "sinusoidal");
    if (pe_hf_needed(&r->config, "attention_head_dim", "head_dim", &head_dim, r->err) ||
        pe_hf_needed(&r->config, PE_HF_HEADS, "heads", &heads, r->err))
        return r->err->status;
    pe_hf_put_integer(r->out, "dim", head_dim * heads);
    pe_hf_give(r);
    return PE_OK;
}

enum pe_status pe_hf_sines(struct pe_hf_reader *r)
{
    if (r->model->rope_if && !pe_hf_says(&r->config, r->model->rope_if)) {
        snprintf(pe_hf_note(r), PE_DETAIL_MAX, pe_text("Without %s the class adds no positions."), r->model->rope_if);
        return pe_hf_nothing(r);
    }
    return put_sines(r);
}

/* Patches along a side of the sample that the class was trained on. */
static enum pe_status base_size(struct pe_hf_reader *r, double *sample, double *base)
{
    int64_t side = 0, patch = 1;
    if (pe_hf_needed(&r->config, "sample_size", "side of the sample", &side, r->err) || read_patch(r, &patch))
        return r->err->status;
    if (side < patch)
        return pe_fail_at(r->err, r->config.at, "sample_size",
                          "sample_size is %lld and patch_size %lld; needed: a sample of at least one patch",
                          (long long)side, (long long)patch);
    *sample = (double)side;
    *base = (double)(side / patch);
    return PE_OK;
}

static void put_pair(struct pe_hf_reader *r, size_t at, const char *name, double x)
{
    double *pair = room(r, at);
    pair[0] = pair[1] = x;
    pe_hf_put_list(r->out, name, pair, 2);
}

enum pe_status pe_hf_resized_from_sample(struct pe_hf_reader *r)
{
    double sample = 0, base = 0;
    if (base_size(r, &sample, &base))
        return r->err->status;
    pe_hf_put_word(r->out, "coords", "resized");
    put_pair(r, 1, "ref_grid", base);
    return PE_OK;
}

/* PixArt: interpolation_scale, or what the sample gives, max(sample_size div 64, 1). */
enum pe_status pe_hf_resized_by_scale(struct pe_hf_reader *r)
{
    double sample = 0, base = 0, scale;
    const struct pe_value *scheme = pe_field_find(r->out->fields, r->out->n, "scheme");
    if (scheme->kind == PE_STRING && strcmp(scheme->string, "none") == 0) /* Sana without a scale */
        return PE_OK;
    if (base_size(r, &sample, &base) || pe_hf_resized_from_sample(r))
        return r->err->status;
    scale = fmax(floor(sample / 64), 1);
    if (pe_hf_number(&r->config, "interpolation_scale", &scale, r->err))
        return r->err->status;
    if (!(scale > 0))
        return pe_hf_wrong_value(&r->config, "interpolation_scale", "a number above 0", r->err);
    put_pair(r, 2, "axis_divisor", scale);
    return PE_OK;
}

/* SD3: the middle of a table of m × m patches, whose coordinates are i·b/m. */
enum pe_status pe_hf_windowed(struct pe_hf_reader *r)
{
    double sample = 0, base = 0;
    int64_t most = 0;
    if (base_size(r, &sample, &base) ||
        pe_hf_needed(&r->config, "pos_embed_max_size", "side of the table", &most, r->err))
        return r->err->status;
    pe_hf_put_word(r->out, "coords", "window");
    put_pair(r, 1, "ref_grid", (double)most);
    put_pair(r, 2, "axis_scale", base);
    put_pair(r, 3, "axis_divisor", (double)most);
    return PE_OK;
}

/* ---- CogVideoX, which is both ---- */

static enum pe_status cogvideox_sines(struct pe_hf_reader *r)
{
    double time = 1, space = 1, *divisor = room(r, 1);
    int64_t text = 0;
    if (put_sines(r) || pe_hf_number(&r->config, "temporal_interpolation_scale", &time, r->err) ||
        pe_hf_number(&r->config, "spatial_interpolation_scale", &space, r->err) ||
        pe_hf_integer(&r->config, "max_text_seq_length", &text, r->err))
        return r->err->status;
    divisor[0] = time;
    divisor[1] = divisor[2] = space;
    pe_hf_put_word(r->out, "style", "cogvideox");
    pe_hf_put_list(r->out, "axis_divisor", divisor, 3);
    pe_hf_put_integer(r->out, "num_prefix", text);
    return PE_OK;
}

/* The first models crop their grid into that of training; 1.5, whose patches have a length in time, take the index. */
static enum pe_status cogvideox_rope(struct pe_hf_reader *r)
{
    double height = 60, width = 90;
    if (pe_hf_grid(r) || pe_hf_number(&r->config, "sample_height", &height, r->err) ||
        pe_hf_number(&r->config, "sample_width", &width, r->err))
        return r->err->status;
    return pe_hf_find(&r->config, "patch_size_t") ? PE_OK : put_crop(r, height, width);
}

enum pe_status pe_hf_cogvideox(struct pe_hf_reader *r)
{
    bool is_rotary = false;
    if (pe_hf_flag(&r->config, "use_rotary_positional_embeddings", &is_rotary, r->err))
        return r->err->status;
    return is_rotary ? cogvideox_rope(r) : cogvideox_sines(r);
}
