/* A kind's configuration in words. Of a language model that is its rotation; of an image or a video what its users get
 * wrong: which axes there are and in which order, what replaces a row's number, rows in front, the grid of a table.
 */
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

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...)
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
        add(text, "%s%.10g", i ? between : "", item(config, name, i));
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
    add(text, "%s", pe_text_in(text->lang, "; channels of "));
    for (size_t i = 0; i < n; i++) {
        size_t axis = is_ordered ? (size_t)item(config, "axis_order", i) : i;
        const char *name = axis < n ? axis_name(axis, n, reading->style) : "";
        add(text, "%s%s %.10g", i ? pe_text_in(text->lang, ", ") : "", pe_text_in(text->lang, name),
            item(config, "axes_dim", axis));
    }
}

static void add_channels(struct text *text, const struct pe_value *config)
{
    const char *channels = pe_config_word(config, "channels");
    if (*channels)
        add(text, "; channels %s", channels);
    if (count(config, "mrope_section")) {
        add(text, "; mrope_section ");
        add_numbers(text, config, "mrope_section", ", ");
    }
    if (count(config, "channel_axis"))
        add(text, "%s", pe_text_in(text->lang, "; an axis listed for each pair"));
    struct pe_value scaling = member(config, "axis_scaling");
    for (size_t i = 0; scaling.kind == PE_LIST && i < scaling.list.n; i++) {
        const struct pe_value *one = &scaling.list.items[i];
        const char *type = pe_config_word(one, "type");
        add(text, "%s%s %.10g", i ? ", " : "; axis_scaling ", *type ? type : "default",
            pe_config_number(one, "factor", 1));
    }
}

/* ---- Coordinates ---- */

static void add_list(struct text *text, const struct pe_value *config, const char *name)
{
    if (!count(config, name))
        return;
    add(text, "; %s ", name);
    add_numbers(text, config, name, ", ");
}

/* A grid whose model names no rule counts from 0. */
static void add_coordinates(struct text *text, const struct pe_value *config, bool has_axes)
{
    const char *coords = pe_config_word(config, "coords");
    if (*coords || has_axes)
        add(text, "; coords %s", *coords ? coords : "index");
    add_list(text, config, "ref_grid");
    if (*pe_config_word(config, "crop_end"))
        add(text, "; crop_end %s", pe_config_word(config, "crop_end"));
    add_list(text, config, "axis_scale");
    add_list(text, config, "axis_divisor");
    add_list(text, config, "axis_shift");
}

/* ---- Tables ---- */

static void add_table(struct text *text, const struct pe_value *config)
{
    double prefix = pe_config_number(config, "num_prefix", 0), rows = pe_config_number(config, "rows", 0),
           offset = pe_config_number(config, "row_offset", 0);
    if (rows > 0)
        add(text, pe_text_in(text->lang, ", %.0f rows"), rows);
    if (offset > 0)
        add(text, pe_text_in(text->lang, "; positions begin at row %.0f"), offset);
    if (prefix > 0)
        add(text,
            pe_text_in(text->lang, pe_same(pe_config_word(config, "scheme"), "sinusoidal")
                                       ? "; rows of zeros in front: %.0f"
                                       : "; rows in front of the grid: %.0f"),
            prefix);
    if (count(config, "table_grid")) {
        add(text, "%s", pe_text_in(text->lang, "; a grid of "));
        add_numbers(text, config, "table_grid", "×");
    }
    if (*pe_config_word(config, "interpolate"))
        add(text, pe_text_in(text->lang, "; another grid resizes it, %s"), pe_config_word(config, "interpolate"));
    if (count(config, "grid")) {
        add(text, "%s", pe_text_in(text->lang, "; a window of "));
        add_numbers(text, config, "grid", "×");
    }
    if (count(config, "pretrained_grid")) {
        add(text, "; pretrained_grid ");
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
        add(text, ", base %.10g", base);
    if (*type && !pe_same(type, "default"))
        add(text, ", %s", type);
    if (factor > 0)
        add(text, pe_text_in(text->lang, " factor %.10g"), factor);
    add(text, ", ");
    add(text, pe_text_in(text->lang, "%.0f of %.0f channels"), pe_config_number(config, "rotary_dim", 0),
        pe_config_number(config, "head_dim", 0));
    add(text, ", %s", pe_config_word(config, "layout"));
    add_axes(text, reading);
    add_channels(text, config);
    add_coordinates(text, config,
                    count(config, "axes_dim") || pe_same(pe_config_word(config, "channels"), "alternating"));
    if (*reading->style)
        add(text, "; position_style %s", reading->style);
}

static void add_other(struct text *text, const struct pe_value *config)
{
    double dim = pe_config_number(config, "dim", 0), base = pe_config_number(config, "base", 0);
    if (*pe_config_word(config, "style"))
        add(text, ", style %s", pe_config_word(config, "style"));
    if (dim > 0)
        add(text, pe_text_in(text->lang, ", %.0f channels"), dim);
    if (base > 0)
        add(text, ", base %.10g", base);
    add_coordinates(text, config, pe_is_among("mae|cogvideox", pe_config_word(config, "style")));
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
