/* A kind's configuration in words. Of a language model that is its rotation; of an image or a video what its users get
 * wrong: which axes there are and in which order, what replaces a row's number, rows in front, the grid of a table. */
#include "core/dialects/dialects.h"
#include "core/params.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
    char *bytes;
    size_t room;
    enum pe_lang lang;
};

static void add_text(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_text(struct text *text, const char *format, ...)
{
    size_t n = strlen(text->bytes);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text->bytes + n, text->room - n, format, arguments);
    va_end(arguments);
}

static struct pe_value member(const struct pe_value *config, const char *name) { return pe_config_at(config, name); }

static size_t count(const struct pe_value *config, const char *name)
{
    struct pe_value v = member(config, name);
    return v.kind == PE_LIST ? v.list.n : v.kind == PE_ARRAY && v.array.rank == 1 ? (size_t)v.array.shape[0] : 0;
}

static double item(const struct pe_value *config, const char *name, size_t i)
{
    struct pe_value v = member(config, name);
    struct pe_reals list = {v.array, v.array.shape[0]};
    return v.kind == PE_LIST ? pe_value_number(&v.list.items[i]) : pe_real_at(&list, i);
}

/* "14×14", "44, 42, 42". */
static void add_numbers(struct text *text, const struct pe_value *config, const char *name, const char *between)
{
    for (size_t i = 0; i < count(config, name); i++)
        add_text(text, "%s%.10g", i ? between : "", item(config, name, i));
}

bool pe_dialect_is_of_grid(const struct pe_value *config)
{
    const char *scheme = pe_config_word(config, "scheme"), *style = pe_config_word(config, "style");
    return pe_is_among("swin|swinv2|beit", scheme) ||
           pe_is_among("pixtral|dinov3|two_axes", pe_config_word(config, "channels")) ||
           *pe_config_word(config, "coords") || count(config, "axes_dim") || count(config, "table_grid") ||
           (pe_same(scheme, "sinusoidal") && *style);
}

/* ---- Axes ---- */

/* What the axes of a grid are: the last two are rows and columns. */
static const char *axis_name(size_t axis, size_t n, const char *style)
{
    static const char *const of_video[] = {"frames", "rows", "columns"}, *const of_image[] = {"images", "rows",
                                                                                              "columns", "text"};
    return n == 2 ? of_video[axis + 1] : *style || n > 3 ? of_image[axis] : of_video[axis];
}

static void add_axes(struct text *text, const struct pe_reading *reading)
{
    const struct pe_value *config = reading->config;
    size_t n = count(config, "axes_dim");
    bool is_ordered = count(config, "axis_order") == n;
    if (n < 2 || n > 4)
        return;
    add_text(text, "%s", pe_text_in(text->lang, "; channels of "));
    for (size_t i = 0; i < n; i++) {
        size_t axis = is_ordered ? (size_t)item(config, "axis_order", i) : i;
        const char *name = axis < n ? axis_name(axis, n, reading->style) : "";
        add_text(text, "%s%s %.10g", i ? pe_text_in(text->lang, ", ") : "", pe_text_in(text->lang, name),
                 item(config, "axes_dim", axis));
    }
}

/* ---- Where image generators put text and images: segments_images.c in words ---- */

static const struct placement {
    const char *style, *about;
} placements[] = {
    {"flux", "text at 0, image k at (k, y, x)"},
    {"flux2", "text l at (0, 0, 0, l), image k at (10·k, y, x, 0)"},
    {"qwen_image", "image k at (k, y - ⌈h/2⌉, x - ⌈w/2⌉), text from the largest half of a side on"},
    {"lumina2", "text l at (l, 0, 0), the image behind m tokens at (m, y, x)"},
    {"z_image", "text l at (l + 1, 0, 0), the image at (m + 1, y, x), m tokens filled up to a multiple of 32"},
    {"ideogram4", "text l at (l, l, l), the image at (65536, 65536 + y, 65536 + x)"},
    {"ovis_image", "text l at (0, l, l), image k at (k, y, x)"},
    {"longcat_image", "text l at (0, l, l), the image at (1, 512 + y, 512 + x)"},
    {"hunyuan_image_3",
     "text on both axes, an image from token L on at (⌊L + (w·h - h)/2⌋ + y, ⌊L + (w·h - w)/2⌋ + x)"},
};

/* NULL: the style is none of an image generator. */
static const struct placement *placement_of(const char *style)
{
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        if (pe_same(placements[i].style, style))
            return &placements[i];
    return NULL;
}

static void add_channels(struct text *text, const struct pe_reading *reading)
{
    const struct pe_value *config = reading->config;
    const char *channels = pe_config_word(config, "channels");
    if (*channels)
        add_text(text, "; channels %s", channels);
    if (pe_same(channels, "alternating"))
        add_text(text, "%s", pe_text_in(text->lang, ", rows and columns in turn"));
    if (pe_is_among("pixtral|dinov3|two_axes", channels))
        add_text(text, "%s", pe_text_in(text->lang, ", rows before columns"));
    if (pe_same(channels, "mrope_interleaved") && placement_of(reading->style))
        add_text(text, "%s", pe_text_in(text->lang, ", of images, rows, columns"));
    if (count(config, "mrope_section")) {
        add_text(text, "; mrope_section ");
        add_numbers(text, config, "mrope_section", ", ");
    }
    if (count(config, "channel_axis"))
        add_text(text, "%s", pe_text_in(text->lang, "; an axis listed for each pair"));
    struct pe_value scaling = member(config, "axis_scaling");
    for (size_t i = 0; scaling.kind == PE_LIST && i < scaling.list.n; i++) {
        const struct pe_value *one = &scaling.list.items[i];
        const char *type = pe_config_word(one, "type");
        add_text(text, "%s%s %.10g", i ? ", " : "; axis_scaling ", *type ? type : "default",
                 pe_config_number(one, "factor", 1));
    }
}

/* ---- Coordinates ---- */

static void add_list(struct text *text, const struct pe_value *config, const char *name)
{
    if (!count(config, name))
        return;
    add_text(text, "; %s ", name);
    add_numbers(text, config, name, ", ");
}

/* Which axis has which channels of a sum of sines, in order; {axis, channels} of dim / 8. */
static void add_sine_axes(struct text *text, const struct pe_value *config)
{
    static const struct {
        const char *style;
        unsigned n, axis[3], eighths[3];
    } styles[] = {{"mae", 2, {1, 0}, {4, 4}}, {"detr", 2, {0, 1}, {4, 4}}, {"cogvideox", 3, {0, 2, 1}, {2, 3, 3}}};
    const char *style = pe_config_word(config, "style");
    double dim = pe_config_number(config, "dim", 0);
    for (size_t s = 0; s < sizeof styles / sizeof *styles; s++)
        for (unsigned i = 0; i < styles[s].n && pe_same(styles[s].style, style); i++)
            add_text(text, "%s%s %.10g", pe_text_in(text->lang, i ? ", " : "; channels of "),
                     pe_text_in(text->lang, axis_name(styles[s].axis[i], styles[s].n, "")),
                     dim * styles[s].eighths[i] / 8);
    if (pe_is_among("axial|multidim", style) && !count(config, "axes_dim"))
        add_text(text, "%s",
                 pe_text_in(text->lang, "; equal channels for each axis in order, of an image rows, columns"));
    if (pe_same(style, "timm"))
        add_text(text, "%s", pe_text_in(text->lang, "; sines of rows, of columns, then cosines of rows, of columns"));
    if (pe_same(style, "vjepa"))
        add_text(
            text, "%s",
            pe_text_in(
                text->lang,
                "; of an image rows, columns a half each, of a video frames a half, rows, columns a quarter each"));
}

/* DETR counts real places, and divides by how many there are. */
static void add_normalisation(struct text *text, const struct pe_value *config)
{
    double scale = pe_config_number(config, "angle_scale", 0);
    struct pe_value normalize = member(config, "normalize");
    if (!pe_same(pe_config_word(config, "style"), "detr"))
        return;
    add_text(text, "; temperature %.10g", pe_config_number(config, "temperature", 10000));
    if (normalize.kind != PE_BOOLEAN || !normalize.boolean)
        return;
    add_text(text, "%s", pe_text_in(text->lang, "; divided by the last count + 1e-6, times "));
    if (scale > 0 && scale != 0x1.921fb54442d18p+2)
        add_text(text, "%.10g", scale);
    else
        add_text(text, "2π");
}

/* A grid whose model names no rule counts from 0. */
static void add_coordinates(struct text *text, const struct pe_value *config, bool has_axes)
{
    const char *coords = pe_config_word(config, "coords");
    bool is_detr = pe_same(pe_config_word(config, "style"), "detr");
    if (*coords || has_axes || is_detr)
        add_text(text, "; coords %s", *coords ? coords : is_detr ? "one_based" : "index");
    add_list(text, config, "ref_grid");
    if (*pe_config_word(config, "crop_end"))
        add_text(text, "; crop_end %s", pe_config_word(config, "crop_end"));
    add_list(text, config, "axis_scale");
    add_list(text, config, "axis_divisor");
    add_list(text, config, "axis_shift");
}

/* ---- Tables ---- */

/* Distances inside a window, or inside an image: of n places of an axis there are 2n - 1. */
static void add_window(struct text *text, const struct pe_value *config)
{
    const char *scheme = pe_config_word(config, "scheme");
    bool is_table = pe_is_among("swin|beit", scheme);
    add_text(text, "%s",
             pe_text_in(text->lang, pe_is_among("swin|swinv2", scheme) ? "; a window of " : "; a grid of "));
    add_numbers(text, config, "grid", "×");
    if (count(config, "grid") == 2)
        add_text(text, "%s", pe_text_in(text->lang, " (rows, columns)"));
    if (is_table)
        add_text(text, "%s", pe_text_in(text->lang, "; a table of "));
    for (size_t a = 0; is_table && a < count(config, "grid"); a++)
        add_text(text, "%s%.10g", a ? "×" : "", 2 * item(config, "grid", a) - 1);
    if (is_table)
        add_text(text, "%s", pe_text_in(text->lang, " distances"));
    if (pe_same(scheme, "beit"))
        add_text(text, "%s", pe_text_in(text->lang, " and 3 rows for the class token, which is in front of the grid"));
    if (is_table && !count(config, "table_grid"))
        add_text(text, "%s", pe_text_in(text->lang, "; table_grid resizes that of another window, bicubic"));
    if (pe_same(scheme, "swinv2"))
        add_text(text, "%s",
                 pe_text_in(text->lang, "; a network computes the bias of each distance, so no table is resized"));
    if (pe_same(scheme, "decomposed") && count(config, "grid") == 2)
        add_text(text,
                 pe_text_in(text->lang,
                            "; tables rel_h of %.0f rows and rel_w of %.0f; of another length they are resized "
                            "linearly"),
                 2 * item(config, "grid", 0) - 1, 2 * item(config, "grid", 1) - 1);
}

static void add_table(struct text *text, const struct pe_value *config)
{
    double prefix = pe_config_number(config, "num_prefix", 0), rows = pe_config_number(config, "rows", 0),
           offset = pe_config_number(config, "row_offset", 0);
    if (rows > 0)
        add_text(text, pe_text_in(text->lang, ", %.0f rows"), rows);
    if (offset > 0)
        add_text(text, pe_text_in(text->lang, "; positions begin at row %.0f"), offset);
    if (prefix > 0)
        add_text(text,
                 pe_text_in(text->lang, pe_same(pe_config_word(config, "scheme"), "sinusoidal")
                                            ? "; rows of zeros in front: %.0f"
                                            : "; rows in front of the grid: %.0f"),
                 prefix);
    if (count(config, "table_grid")) {
        add_text(text, "%s", pe_text_in(text->lang, "; a grid of "));
        add_numbers(text, config, "table_grid", "×");
        if (count(config, "table_grid") == 2)
            add_text(text, "%s", pe_text_in(text->lang, " (rows, columns)"));
    }
    if (*pe_config_word(config, "interpolate"))
        add_text(text, pe_text_in(text->lang, "; another grid resizes it, %s"), pe_config_word(config, "interpolate"));
    if (count(config, "grid"))
        add_window(text, config);
    if (count(config, "pretrained_grid")) {
        add_text(text, "; pretrained_grid ");
        add_numbers(text, config, "pretrained_grid", "×");
    }
}

/* ---- The whole ---- */

static void add_rotation(struct text *text, const struct pe_reading *reading)
{
    const struct pe_value *config = reading->config;
    const char *type = pe_config_word(config, "scaling.type");
    double factor = pe_config_number(config, "scaling.factor", 0);
    double base = pe_config_number(config, "base", 0); /* 0: frequencies are listed */
    if (base > 0)
        add_text(text, ", base %.10g", base);
    if (*type && !pe_same(type, "default"))
        add_text(text, ", %s", type);
    if (factor > 0)
        add_text(text, pe_text_in(text->lang, " factor %.10g"), factor);
    add_text(text, ", ");
    add_text(text, pe_text_in(text->lang, "%.0f of %.0f channels"), pe_config_number(config, "rotary_dim", 0),
             pe_config_number(config, "head_dim", 0));
    add_text(text, ", %s", pe_config_word(config, "layout"));
    add_axes(text, reading);
    add_channels(text, reading);
    add_coordinates(text, config,
                    count(config, "axes_dim") ||
                        pe_is_among("alternating|pixtral|two_axes", pe_config_word(config, "channels")));
    if (*reading->style)
        add_text(text, "; position_style %s", reading->style);
    if (placement_of(reading->style))
        add_text(text, ": %s", pe_text_in(text->lang, placement_of(reading->style)->about));
}

static void add_other(struct text *text, const struct pe_value *config)
{
    double dim = pe_config_number(config, "dim", 0), base = pe_config_number(config, "base", 0);
    if (*pe_config_word(config, "style"))
        add_text(text, ", style %s", pe_config_word(config, "style"));
    if (dim > 0)
        add_text(text, pe_text_in(text->lang, ", %.0f channels"), dim);
    if (base > 0)
        add_text(text, ", base %.10g", base);
    if (pe_same(pe_config_word(config, "scheme"), "sinusoidal") && *pe_config_word(config, "layout"))
        add_text(text, ", %s", pe_config_word(config, "layout"));
    add_sine_axes(text, config);
    add_coordinates(text, config, *pe_config_word(config, "style") != '\0');
    add_normalisation(text, config);
    add_table(text, config);
}

const char *pe_dialect_summary(const struct pe_reading *reading, enum pe_lang lang, char *out, size_t room)
{
    const char *scheme = pe_config_word(reading->config, "scheme");
    struct text text = {out, room, lang};
    if (pe_same(scheme, "none"))
        return pe_text_in(lang, "no positions");
    snprintf(out, room, "%s", scheme);
    if (reading->turn.n)
        add_rotation(&text, reading);
    else
        add_other(&text, reading->config);
    return out;
}
