/* Sinusoidal encoding (Vaswani et al. 2017, arXiv 1706.03762, section 3.5), in the conventions of several libraries.
 *
 *     PE(p, sin i) = sin(angle_scale · p · w_i),   PE(p, cos i) = cos(angle_scale · p · w_i)
 *     w_i = base^(-2i/dim)                     freq_shift 0: the paper
 *     w_i = base^(-i/(h - freq_shift))         h = ⌊dim/2⌋; freq_shift 1: fairseq, tensor2tensor, Whisper, diffusers
 *
 * Columns: interleaved s0 c0 s1 c1 …, or half s0 s1 … c0 c1 …. The libraries disagree on odd widths (`odd`).
 *
 * Several axes, or a grid: the styles of the libraries, each a list of blocks of one axis.
 *
 *     axial     block k is the 1-D encoding of axis axis_order[k], axes_dim[axis] wide
 *     detr      y block, x block, interleaved; positions from 1, with `normalize` (i + 1)/(length + 1e-6)·angle_scale
 *               (Carion et al. 2020, arXiv 2005.12872; models/position_encoding.py, PositionEmbeddingSine)
 *     mae       column block, then row block, half layout: numpy.meshgrid(w, h) puts x first, whatever the code's
 *               names say (He et al. 2021, arXiv 2111.06377; util/pos_embed.py)
 *     timm      sin(h) sin(w) cos(h) cos(w) of dim/4 frequencies (timm build_sincos2d_pos_embed)
 *     multidim  blocks of 2·⌈dim/(2·axes)⌉, interleaved, cut to dim (tatp22/multidim-positional-encoding)
 *     vjepa     halves of row, column; or half time, quarters of row and column (V-JEPA 2, arXiv 2506.09985)
 *     cogvideox a quarter time, 3/8 column, 3/8 row, each half layout (diffusers, get_3d_sincos_pos_embed) */
#include "core/schemes/absolute/absolute.h"

#include <stdlib.h>
#include <string.h>

enum sinusoidal_layout { SINES_INTERLEAVED, SINES_HALF };
enum sinusoidal_odd { ODD_PAPER, ODD_PAD, ODD_TRUNCATE };
enum sinusoidal_style { AXIAL, DETR, MAE, TIMM, MULTIDIM, VJEPA, COGVIDEOX };

struct sinusoidal {
    int64_t dim;
    int style; /* PE_UNSET_WORD after planning for one axis, which has no styles */
    double base, temperature;
    int layout;
    double freq_shift;
    int odd;
    bool flip_sin_to_cos;
    double angle_scale;
    struct pe_reals axes_dim, axis_order; /* once planned, the lists below */
    bool normalize, interleave_sin_cos, uniform_power;
    struct pe_reals valid; /* n = 0: all rows and columns are real */
    struct pe_coord_fields at;
    int64_t num_prefix;
    int arith;
    int64_t widths[PE_AXES_MAX], order[PE_AXES_MAX];
};

/* How one axis is encoded: the parameters of the 1-D encoding. */
struct sinusoid {
    double base, freq_shift;
    enum sinusoidal_layout layout;
    enum sinusoidal_odd odd;
    bool flip;
    struct pe_dd scale; /* factor on the angle, radians */
};

/* Sine i is in column sine0 + i·step and cosine i in column cosine0 + i·step, but never after `last`; columns from
 * `end` on are cut. w_i = scale · base^(-i/denominator). */
struct block {
    unsigned axis;
    size_t n_sines, n_cosines, sine0, cosine0, step, last, end;
    double base, denominator;
    struct pe_dd scale;
};

static const char *const styles[] = {
    [AXIAL] = "axial", [DETR] = "detr",           [MAE] = "mae", [TIMM] = "timm", [MULTIDIM] = "multidim",
    [VJEPA] = "vjepa", [COGVIDEOX] = "cogvideox", NULL};

static const char *const layout_words[] = {[SINES_INTERLEAVED] = "interleaved", [SINES_HALF] = "half", NULL};
static const char *const odd_words[] = {[ODD_PAPER] = "paper", [ODD_PAD] = "pad", [ODD_TRUNCATE] = "truncate", NULL};

/* A parameter of some styles. "axial|" also covers the encoding of one axis, which has no style. */
#define OF_STYLE(name_, TYPE, CTYPE, styles, ...)                                                                      \
    {                                                                                                                  \
        .name = #name_, .type = PE_T_##TYPE, .offset = PE_OFFSET(sinusoidal, name_, CTYPE), .when = "style=" styles,   \
        __VA_ARGS__                                                                                                    \
    }

static const struct pe_param params[] = {
    PE_P_INT(sinusoidal, dim, 512, 1, PE_DIM_MAX, "width", "channels of the encoding", .group = PE_G_SIZE,
             .usual = {8, 1024}),
    PE_P_WORD(sinusoidal, style, styles, "style for several axes",
              "for several axes or a grid. axial: the encodings of the axes side by side; detr; mae: column first; "
              "timm: sines before cosines; multidim: tatp22's package; vjepa: V-JEPA 2; cogvideox: a quarter for time, "
              "then columns, then rows",
              .group = PE_G_AXES),
    OF_STYLE(base, REAL, double, "axial|mae|timm|multidim|vjepa|cogvideox|", .fallback = 10000, .min = 1e-3,
             .max = 1e12, .about = {"wavelength base", "wavelength base; not 1"}, .level = PE_BASIC,
             .group = PE_G_FREQUENCIES, .usual = {100, 1e7}),
    OF_STYLE(temperature, REAL, double, "detr|timm", .fallback = PE_UNSET, .min = 1e-3, .max = 1e12, .excludes = "base",
             .about = {"temperature", "the name of base in DETR and timm; default 10000"}, .group = PE_G_FREQUENCIES,
             .usual = {100, 1e7}),
    OF_STYLE(layout, WORD, int, "axial|", .words = layout_words,
             .about = {"channel layout", "interleaved: sin, cos alternate; half: all sines, then all cosines"},
             .level = PE_BASIC, .group = PE_G_LAYOUT),
    OF_STYLE(
        freq_shift, REAL, double, "axial|", .max = PE_DIM_MAX,
        .about = {"frequency shift",
                  "0: frequencies base^(-2i/dim), as in the paper; s: base^(-i/(h-s)) with h = dim/2 rounded down; "
                  "fairseq and Whisper use 1"},
        .group = PE_G_FREQUENCIES, .usual = {0, 1}),
    OF_STYLE(odd, WORD, int, "axial|", .words = odd_words,
             .about = {"odd width",
                       "for an odd dim. paper: one more sine than cosines; pad: dim-1 columns and a zero; truncate: "
                       "dim+1 columns without the last"},
             .group = PE_G_LAYOUT),
    OF_STYLE(flip_sin_to_cos, BOOL, bool, "axial|", .max = 1,
             .about = {"cosines first", "cosines before sines (diffusers has the same option)"}, .group = PE_G_LAYOUT),
    OF_STYLE(angle_scale, REAL, double, "axial|detr|", .fallback = 1, .min = -1e3, .max = 1e3,
             .about = {"angle scale",
                       "multiplies every angle; diffusers calls it scale; detr: only with normalize, default 2 pi (the "
                       "double nearest 2 pi means 2 pi exactly)"},
             .group = PE_G_FREQUENCIES, .usual = {0.1, 10}),
    OF_STYLE(axes_dim, REALS, struct pe_reals, "axial", .max = PE_DIM_MAX,
             .about = {"width of each axis",
                       "number of columns of each axis, whose sum is dim; default 2·floor(dim/(2·axes)) each, and the "
                       "first axis gets the rest"},
             .group = PE_G_AXES),
    OF_STYLE(axis_order, REALS, struct pe_reals, "axial", .max = PE_AXES_MAX - 1,
             .about = {"axis order", "the axis of each block, every axis once; default 0, 1, …"}, .group = PE_G_AXES),
    OF_STYLE(normalize, BOOL, bool, "detr", .max = 1,
             .about = {"normalisation",
                       "divide the positions of a grid by the last one and multiply them by angle_scale. A grid's "
                       "positions begin at 1; explicit positions are used unchanged"},
             .group = PE_G_AXES),
    OF_STYLE(
        valid, REALS, struct pe_reals, "detr", .min = 1, .max = PE_POSITION_MAX,
        .about = {"real rows and columns",
                  "[h,w] of an image that a batch pads to the grid: padding has the last real row and column, or a "
                  "count of 0 where its whole line is padding, and normalize divides by these; coords one_based (DETR) "
                  "or half_centered (Deformable DETR, which subtracts 1/2 from the count)"},
        .level = PE_MORE, .group = PE_G_AXES),
    OF_STYLE(interleave_sin_cos, BOOL, bool, "timm", .max = 1,
             .about = {"interleave the axes", "sin(h) cos(h) sin(w) cos(w) instead of sin(h) sin(w) cos(h) cos(w)"},
             .group = PE_G_LAYOUT),
    OF_STYLE(
        uniform_power, BOOL, bool, "vjepa", .max = 1,
        .about = {"equal blocks",
                  "for three axes. true: equal blocks of 2·ceil(dim/6), cut to dim; false: half of dim is for time"},
        .group = PE_G_AXES),
    PE_COORD_PARAMS(sinusoidal),
    OF_STYLE(num_prefix, INT, int64_t, "axial|detr|mae|timm|multidim|vjepa|cogvideox", .max = 65536,
             .about = {"prefix rows", "rows of zeros in front of those of a grid, as for text or a class token"},
             .level = PE_MORE, .group = PE_G_AXES, .usual = {0, 8}),
    PE_P_ARITH(sinusoidal),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    PE_OUTPUT("encoding", "n+num_prefix,dim", 1, PE_DTYPE_NONE, false, NULL, "encoding", "a row per position",
              .range = {-1, 1}),
    {.name = NULL},
};

/* ---- One axis ---- */

static struct block block_of(const struct sinusoid *how, unsigned axis, size_t first, size_t width)
{
    /* truncate computes one column more and cuts it. */
    bool odd = width % 2, half = how->layout == SINES_HALF;
    size_t computed = width + (odd && how->odd == ODD_TRUNCATE), h = computed / 2;
    struct block b = {.axis = axis, .n_sines = h, .n_cosines = h, .base = how->base, .scale = how->scale};
    if (odd && how->odd == ODD_PAPER)
        b.n_sines = h + 1;
    b.step = half ? 1 : 2;
    b.sine0 = b.cosine0 = first;
    *(how->flip ? &b.sine0 : &b.cosine0) += !half ? 1 : how->flip ? b.n_cosines : b.n_sines;
    b.last = first + computed - 1; /* the place of the paper's last sine when flipped: it has no cosine before it */
    b.end = first + width;
    /* The paper's exponent 2i/dim keeps the odd dim; the others count from the even width they compute. */
    b.denominator = how->freq_shift > 0            ? (double)h - how->freq_shift
                    : odd && how->odd == ODD_PAPER ? (double)width / 2
                                                   : (double)h;
    return b;
}

static struct sinusoid how_of(const struct sinusoidal *c)
{
    return (struct sinusoid){c->base,
                             c->freq_shift,
                             (enum sinusoidal_layout)c->layout,
                             (enum sinusoidal_odd)c->odd,
                             c->flip_sin_to_cos,
                             dd(c->angle_scale)};
}

static enum pe_status one_axis(struct pe_plan *p, struct block *block, struct pe_failure *err)
{
    struct sinusoidal *c = p->config;
    struct sinusoid how = how_of(c);
    if (c->style != AXIAL && !pe_plan_gave_itself(p, "style"))
        return pe_plan_wrong_axes(p, c->style == COGVIDEOX ? 3 : 2, err);
    if (c->style != AXIAL)
        return pe_fail(err, "/style", "style %s encodes several axes; give a grid, or positions [axes][n]",
                       styles[c->style]);
    const char *unused = c->axes_dim.n     ? "/axes_dim"
                         : c->axis_order.n ? "/axis_order"
                         : c->num_prefix   ? "/num_prefix"
                                           : NULL;
    if (unused)
        return pe_fail(err, unused, "%s is for several axes; give a grid, or positions [axes][n]", unused + 1);
    c->style = PE_UNSET_WORD;
    *block = block_of(&how, 0, 0, (size_t)c->dim);
    return PE_OK;
}

/* ---- Several axes ---- */

struct blocks {
    struct block *list;
    size_t n;
};

/* ---- Rules that several styles share ---- */

static const char *style_name(const struct sinusoidal *c) { return styles[c->style]; }

static enum pe_status need_axes(const struct pe_plan *p, unsigned least, unsigned most, struct pe_failure *err)
{
    unsigned n = p->seq.n_axes;
    if (n >= least && n <= most)
        return PE_OK;
    if (!pe_plan_gave_itself(p, "style"))
        return pe_plan_wrong_axes(p, least, err);
    return pe_fail(err, "/style", "style %s encodes %s axes, the sequence has %u; style axial takes any number",
                   style_name(p->config), least == most ? "2" : pe_text("2 or 3"), n);
}

static enum pe_status need_multiple(const struct sinusoidal *c, int64_t of, const char *why, struct pe_failure *err)
{
    if (c->dim % of == 0)
        return PE_OK;
    return pe_fail(err, "/dim", "dim is %lld; style %s needs a multiple of %lld: %s", (long long)c->dim, style_name(c),
                   (long long)of, pe_text(why));
}

static void add_block(struct blocks *b, struct block block) { b->list[b->n++] = block; }

/* ---- axial ---- */

static enum pe_status set_widths(struct sinusoidal *c, unsigned n, struct pe_failure *err)
{
    int64_t sum = 0;
    enum pe_status status = PE_OK;
    if (c->axes_dim.n)
        status = pe_reals_whole(&c->axes_dim, n, "axes_dim", "one for each axis", c->widths, err);
    else {
        /* 2·⌊dim/(2·axes)⌋ channels for each axis, and the remainder for the first. */
        int64_t each = c->dim / (2 * (int64_t)n) * 2;
        for (unsigned a = 0; a < n; a++)
            c->widths[a] = a ? each : c->dim - each * (n - 1);
    }
    for (unsigned a = 0; !status && a < n; a++)
        sum += c->widths[a];
    if (!status && sum != c->dim)
        return pe_fail(err, "/axes_dim", "axes_dim adds up to %lld, dim is %lld; give dim %lld", (long long)sum,
                       (long long)c->dim, (long long)sum);
    pe_reals_set(&c->axes_dim, c->widths, n);
    return status;
}

static enum pe_status set_order(struct sinusoidal *c, unsigned n, struct pe_failure *err)
{
    bool seen[PE_AXES_MAX] = {false};
    enum pe_status status = PE_OK;
    for (unsigned a = 0; a < n; a++)
        c->order[a] = a;
    if (c->axis_order.n)
        status = pe_reals_whole(&c->axis_order, n, "axis_order", "one for each axis", c->order, err);
    for (unsigned a = 0; !status && a < n; a++) {
        int64_t axis = c->order[a];
        if (axis >= n || seen[axis])
            return pe_fail(err, "/axis_order", "axis_order has %lld at index %u; allowed: each of 0 to %u once",
                           (long long)axis, a, n - 1);
        seen[axis] = true;
    }
    pe_reals_set(&c->axis_order, c->order, n);
    return status;
}

static enum pe_status axial(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    struct sinusoidal *c = p->config;
    struct sinusoid how = how_of(c);
    enum pe_status status = set_widths(c, p->seq.n_axes, err);
    if (!status)
        status = set_order(c, p->seq.n_axes, err);
    size_t first = 0;
    for (unsigned k = 0; !status && k < p->seq.n_axes; k++) {
        unsigned axis = (unsigned)c->order[k];
        size_t width = (size_t)c->widths[axis];
        add_block(b, block_of(&how, axis, first, width));
        first += width;
    }
    return status;
}

/* ---- detr ---- */

/* The double nearest to 2π denotes 2π itself. The resolved config has this double if angle_scale was not given,
 * and a request with that config must give the same bytes. */
static struct pe_dd exact_scale(double given) { return given == pe_dd_two_pi().hi ? pe_dd_two_pi() : dd(given); }

static enum pe_status check_detr(struct pe_plan *p, struct pe_failure *err)
{
    struct sinusoidal *c = p->config;
    bool gave = pe_plan_gave(p, "angle_scale");
    if (!c->normalize && gave)
        return pe_fail(err, "/angle_scale", "angle_scale is not used here: in style detr it needs normalize true");
    if (c->normalize && !p->seq.n_grid)
        return pe_fail(err, "/normalize",
                       "normalize divides by the lengths of a grid; give a grid, or positions scaled already");
    /* DETR counts with a cumulative sum of ones, so a grid begins at 1. Positions in the request are not moved. */
    if (p->seq.n_grid && !pe_plan_gave(p, "coords"))
        c->at.coords = PE_COORDS_one_based;
    if (!gave)
        c->angle_scale = c->normalize ? 0x1.921fb54442d18p+2 : PE_UNSET;
    return PE_OK;
}

static enum pe_status check_valid(const struct pe_plan *p, struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    if (!c->valid.n)
        return PE_OK;
    if (!p->seq.n_grid || (c->at.coords != PE_COORDS_one_based && c->at.coords != PE_COORDS_half_centered))
        return pe_fail(err, "/valid",
                       "valid is for a grid [h,w] with coords one_based or half_centered, whose places are counted");
    if (c->at.axis_scale.n || c->at.axis_divisor.n || c->at.axis_shift.n)
        return pe_fail(err, "/valid", "valid counts places, which axis_scale, axis_divisor and axis_shift would move");
    enum pe_status status = pe_reals_expect(&c->valid, 2, "valid", "rows and columns", err);
    for (uint64_t a = 0; a < 2 && !status; a++) {
        double side = pe_real_at(&c->valid, a);
        if (side != floor(side) || side > (double)p->seq.grid[a])
            return pe_fail(err, "/valid",
                           "valid has %s at index %llu; allowed: integers from 1 to those of the grid, %llu",
                           pe_shown(side).text, (unsigned long long)a, (unsigned long long)p->seq.grid[a]);
    }
    return status;
}

static enum pe_status detr(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    struct sinusoidal *c = p->config;
    struct sinusoid how = {.base = c->temperature, .scale = {1, 0}};
    size_t width = (size_t)c->dim / 2;
    enum pe_status status = need_axes(p, 2, 2, err);
    if (!status)
        status = need_multiple(c, 4, "half of it for each axis, in pairs of sine and cosine", err);
    if (!status)
        status = check_detr(p, err);
    if (!status)
        status = check_valid(p, err);
    for (unsigned a = 0; !status && a < 2; a++) {
        double last = c->valid.n ? pe_real_at(&c->valid, a) : p->seq.n_grid ? (double)p->seq.grid[a] : 0;
        if (c->normalize)
            how.scale = dd_div(exact_scale(c->angle_scale), dd_add(dd(last), dd(1e-6)));
        add_block(b, block_of(&how, a, a * width, width));
    }
    pe_absolute_prefer_channels_first(p);
    return status;
}

/* ---- mae, timm, multidim, vjepa ---- */

static struct sinusoid plain(const struct sinusoidal *c, enum sinusoidal_layout layout)
{
    return (struct sinusoid){.base = c->base, .layout = layout, .scale = {1, 0}};
}

/* Blocks of some axes one after the other, of so many eighths of dim each; half layout. */
struct parts {
    int64_t multiple; /* of which dim must be one */
    const char *why;
    size_t n;
    struct {
        unsigned axis, eighths;
    } of[3];
};

static const struct parts column_and_row = {4, "half of it for each axis, half of that sines", 2, {{1, 4}, {0, 4}}},
                          row_and_column = {4, "half of it for each axis, half of that sines", 2, {{0, 4}, {1, 4}}},
                          half_for_time = {8,
                                           "half of it for time, a quarter for row and column, half of each sines",
                                           3,
                                           {{0, 4}, {1, 2}, {2, 2}}},
                          quarter_for_time = {16,
                                              "a quarter for time, 3/8 for column and row, half of each sines",
                                              3,
                                              {{0, 2}, {2, 3}, {1, 3}}};

static enum pe_status add_parts(const struct pe_plan *p, const struct parts *parts, struct blocks *b,
                                struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    struct sinusoid how = plain(c, SINES_HALF);
    enum pe_status status = need_multiple(c, parts->multiple, parts->why, err);
    for (size_t k = 0, first = 0, width; !status && k < parts->n; k++, first += width) {
        width = (size_t)c->dim * parts->of[k].eighths / 8;
        add_block(b, block_of(&how, parts->of[k].axis, first, width));
    }
    return status;
}

static enum pe_status mae(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    return need_axes(p, 2, 2, err) ? err->status : add_parts(p, &column_and_row, b, err);
}

static enum pe_status timm(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    struct sinusoid how = plain(c, SINES_HALF);
    size_t quarter = (size_t)c->dim / 4;
    enum pe_status status = need_axes(p, 2, 2, err);
    if (!status)
        status = need_multiple(c, 4, "a quarter for each axis's sines and cosines", err);
    if (!isnan(c->temperature))
        how.base = c->temperature;
    for (unsigned a = 0; !status && a < 2; a++) {
        struct block block = block_of(&how, a, 2 * a * quarter, 2 * quarter);
        if (!c->interleave_sin_cos) {
            block.sine0 = a * quarter;
            block.cosine0 = block.sine0 + 2 * quarter;
            block.last = block.end = 4 * quarter;
        }
        add_block(b, block);
    }
    return status;
}

/* Blocks of 2·⌈dim/(2·axes)⌉ columns, cut to dim. */
static void equal_blocks(const struct pe_plan *p, const struct sinusoid *how, struct blocks *b)
{
    const struct sinusoidal *c = p->config;
    size_t dim = (size_t)c->dim, width = 2 * ((dim + 2 * p->seq.n_axes - 1) / (2 * p->seq.n_axes));
    for (unsigned a = 0; a < p->seq.n_axes; a++) {
        struct block block = block_of(how, a, a * width, width);
        block.end = block.end < dim ? block.end : dim;
        add_block(b, block);
    }
}

static enum pe_status multidim(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    struct sinusoid how = plain(p->config, SINES_INTERLEAVED);
    (void)err;
    equal_blocks(p, &how, b);
    return PE_OK;
}

static enum pe_status vjepa(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    struct sinusoid how = plain(c, SINES_HALF);
    unsigned n = p->seq.n_axes;
    if (need_axes(p, 2, 3, err))
        return err->status;
    if (!c->uniform_power)
        return add_parts(p, n == 2 ? &row_and_column : &half_for_time, b, err);
    if (n != 3)
        return pe_fail(err, "/uniform_power", "uniform_power shares dim among 3 axes, the sequence has %u", n);
    equal_blocks(p, &how, b);
    return PE_OK;
}

static enum pe_status cogvideox(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    if (p->seq.n_axes == 3)
        return add_parts(p, &quarter_for_time, b, err);
    if (!pe_plan_gave_itself(p, "style"))
        return pe_plan_wrong_axes(p, 3, err);
    return pe_fail(err, "/style", "style cogvideox encodes 3 axes, the sequence has %u", p->seq.n_axes);
}

/* ---- All ---- */

static enum pe_status several_axes(struct pe_plan *plan, struct block *blocks, size_t *n_blocks, struct pe_failure *err)
{
    static enum pe_status (*const planners[])(struct pe_plan *, struct blocks *, struct pe_failure *) = {
        [AXIAL] = axial, [DETR] = detr,          [MAE] = mae, [TIMM] = timm, [MULTIDIM] = multidim,
        [VJEPA] = vjepa, [COGVIDEOX] = cogvideox};
    struct sinusoidal *c = plan->config;
    struct blocks b = {.list = blocks};
    if (c->style == DETR && isnan(c->temperature))
        c->temperature = 10000;
    enum pe_status status = planners[c->style](plan, &b, err);
    *n_blocks = b.n;
    return status;
}

/* ---- The plan: all columns ---- */

/* plan->tables */
struct tables {
    struct pe_coords at;
    double *padded; /* [2, n]: coordinates of a padded image; owned */
    struct block blocks[PE_AXES_MAX];
    size_t n_blocks;
    struct pe_wave columns[]; /* [dim] */
};

static enum pe_status check_bases(const struct sinusoidal *c, struct pe_failure *err)
{
    const char *name = c->base == 1 ? "base" : "temperature";
    if (c->base != 1 && c->temperature != 1)
        return PE_OK;
    return pe_fail(err, c->base == 1 ? "/base" : "/temperature",
                   "%s is 1, which gives every channel the same frequency; allowed: any other number from 0.001 to "
                   "1e12",
                   name);
}

/* One frequency is base^0 whatever the denominator: tensor2tensor's rule for dim 2, where others divide by zero. */
static enum pe_status check_block(const struct sinusoidal *c, const struct block *b, struct pe_failure *err)
{
    long long h = (long long)(b->n_cosines);
    if (b->n_sines <= 1 || b->denominator > 0)
        return PE_OK;
    return pe_fail(err, "/freq_shift",
                   "freq_shift is %.10g with %lld columns, so the exponent's denominator dim/2 - freq_shift is %.10g; "
                   "allowed: freq_shift below %lld",
                   c->freq_shift, h + (long long)b->n_sines, b->denominator, h);
}

/* A small base with a freq_shift near dim/2 overflows any double. In other cases the phases are checked with the
 * positions. */
static enum pe_status check_fastest(const struct sinusoidal *c, const struct pe_dd *freq, size_t n,
                                    struct pe_failure *err)
{
    if (n == 0 || freq[n - 1].hi < PE_PHASE_MAX)
        return PE_OK;
    return pe_fail(err, "/base", "base %.10g with freq_shift %.10g gives frequencies beyond 2^51; choose a larger base",
                   c->base, c->freq_shift);
}

static void put_wave(const struct block *b, size_t column, struct pe_dd f, int quarter, struct pe_wave *columns)
{
    size_t at = column < b->last ? column : b->last;
    if (at < b->end)
        columns[at] = (struct pe_wave){.fh = f.hi, .fl = f.lo, .ah = 1, .quarter = quarter, .axis = b->axis};
}

static enum pe_status make_block(struct pe_plan *p, const struct block *b, struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    struct tables *t = p->tables;
    bool float32 = c->arith == PE_ARITH_FLOAT32;
    enum pe_status status = check_block(c, b, err);
    struct pe_dd *freq = status ? NULL : calloc(b->n_sines + 1, sizeof *freq);
    if (!freq)
        return status ? status : pe_no_memory(err);
    (float32 ? pe_ladder_float32 : pe_ladder)(b->base, b->denominator, b->n_sines, freq);
    status = check_fastest(c, freq, b->n_sines, err);
    if (!status) {
        /* The unit of the axis's coordinates is multiplied into the frequency; in float32 it is 1. */
        for (size_t i = 0; i < b->n_sines; i++) {
            struct pe_dd f = float32 ? dd((double)((float)freq[i].hi * (float)b->scale.hi))
                                     : pe_quarter_turns(dd_mul(dd_mul(freq[i], b->scale), t->at.unit[b->axis]));
            put_wave(b, b->sine0 + i * b->step, f, 0, t->columns);
            if (i < b->n_cosines)
                put_wave(b, b->cosine0 + i * b->step, f, 1, t->columns);
        }
    }
    free(freq);
    return status;
}

/* Columns that no block fills are the padding of an odd width: sin(0·p) = 0. */
static enum pe_status make_columns(struct pe_plan *p, struct pe_failure *err)
{
    struct sinusoidal *c = p->config;
    size_t dim = (size_t)c->dim;
    struct tables *t = p->tables = calloc(1, sizeof *t + dim * sizeof *t->columns);
    if (!t)
        return pe_no_memory(err);
    for (size_t j = 0; j < dim; j++)
        t->columns[j].ah = 1;
    return pe_coords_set(&c->at, &p->seq, c->arith == PE_ARITH_FLOAT32, &t->at, err);
}

/* What Deformable DETR has where a whole line is padding: a count of 0 less 1/2, and with `normalize` divided by that
 * line's own last count, (0 - 1/2)/(0 + 1e-6). The block divides by length + 1e-6, which is undone here. */
static double no_count(const struct sinusoidal *c, double length)
{
    if (c->at.coords == PE_COORDS_one_based)
        return 0;
    return c->normalize ? -(length * 1e6 + 1) / 2 : -0.5;
}

/* DETR counts real rows above a place in its column, and real columns before it in its row. */
static enum pe_status pad(struct pe_plan *p, struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    struct tables *t = p->tables;
    struct pe_positions *k = p->seq.k;
    uint64_t n = k->n;
    double *list = c->valid.n ? t->padded = malloc(2 * n * sizeof *list) : NULL;
    if (!list)
        return c->valid.n ? pe_no_memory(err) : PE_OK;
    double h = pe_real_at(&c->valid, 0), w = pe_real_at(&c->valid, 1);
    double before = c->at.coords == PE_COORDS_half_centered ? 0.5 : 0;
    for (uint64_t i = 0; i < n && !pe_is_cancelled_at(i); i++) {
        double row = pe_position_at(&k[0], i), column = pe_position_at(&k[1], i); /* from 1 or 1/2 on */
        list[i] = column <= w ? fmin(row, h - before) : no_count(c, h);
        list[n + i] = row <= h ? fmin(column, w - before) : no_count(c, w);
    }
    for (unsigned a = 0; a < 2; a++)
        k[a] = (struct pe_positions){.n = n, .list = list + a * n};
    return PE_OK;
}

static void sinusoidal_cost(const struct pe_plan *p, struct pe_cost *cost)
{
    const struct sinusoidal *c = p->config;
    pe_cost_ladder(cost, (double)c->dim / 2 + 2 * PE_AXES_MAX, c->arith == PE_ARITH_FLOAT32);
    pe_cost_each(cost, (double)c->dim, sizeof(struct pe_wave), 50);
    pe_coords_cost(&c->at, &p->seq, cost);
    if (c->valid.n)
        pe_cost_each(cost, 2 * (double)p->seq.k->n, sizeof(double), PE_NS_PLACE);
}

/* Coordinates as the style counts them; those of a sequence that is no grid have no rule. */
static enum pe_status check_coords(struct pe_plan *p, struct pe_failure *err)
{
    struct sinusoidal *c = p->config;
    if (c->at.coords == PE_COORDS_pixel)
        return pe_fail(err, "/coords", "coords pixel has frequencies of its own, which scheme rope computes");
    if (c->num_prefix && pe_sequence_n_batches(&p->seq))
        return pe_fail(err, "/num_prefix", "num_prefix is not used with positions for each row of a batch");
    if (pe_coords_check(&c->at, &p->seq, p->seq.n_axes, err))
        return err->status;
    if (!p->seq.n_grid)
        c->at.coords = PE_UNSET_WORD;
    return PE_OK;
}

static enum pe_status sinusoidal_plan(struct pe_plan *p, struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    struct block blocks[PE_AXES_MAX];
    size_t n = 1;
    enum pe_status status = check_bases(c, err);
    if (!status)
        status = p->seq.n_axes > 1 || p->seq.n_grid ? several_axes(p, blocks, &n, err) : one_axis(p, blocks, err);
    if (!status)
        status = check_coords(p, err);
    if (!status)
        status = make_columns(p, err);
    if (!status)
        status = pad(p, err);
    for (size_t i = 0; !status && i < n; i++)
        status = make_block(p, &blocks[i], err);
    struct tables *t = p->tables;
    for (size_t i = 0; !status && i < n; i++)
        t->blocks[t->n_blocks++] = blocks[i];
    return status;
}

/* ---- One number ---- */

/* The block and the sine or cosine of a column; false: it is the padding of an odd width. */
static bool find_column(const struct tables *t, size_t column, const struct block **block, size_t *i, int *quarter)
{
    for (size_t k = 0; k < t->n_blocks; k++) {
        const struct block *b = *block = &t->blocks[k];
        for (*i = 0; column < b->end && *i < b->n_sines; (*i)++)
            for (*quarter = 0; *quarter < 2 && (*quarter == 0 || *i < b->n_cosines); (*quarter)++) {
                size_t at = (*quarter ? b->cosine0 : b->sine0) + *i * b->step;
                if ((at < b->last ? at : b->last) == column)
                    return true;
            }
    }
    return false;
}

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct sinusoidal *c = plan->config;
    const struct tables *t = plan->tables;
    const struct block *b;
    size_t i;
    int quarter;
    (void)id;
    (void)err;
    if (at->row < (uint64_t)c->num_prefix || !find_column(t, (size_t)at->col, &b, &i, &quarter)) {
        pe_derived(d, "x", dd(0), "0");
        pe_derived_says(d, "padding: rows in front, or the column that an odd width leaves");
        d->is_looked_up = true;
        return PE_OK;
    }
    pe_derived_case(d, "%llu → %s %zu", (unsigned long long)at->col, quarter ? "cos" : "sin", i);
    pe_derived_says(d, quarter ? "the column has the cosine of pair %zu" : "the column has the sine of pair %zu", i);
    if (plan->seq.n_axes > 1)
        pe_derived_says(d, "the column belongs to pair %zu of axis %u", i, b->axis);
    double p = pe_position_at(&plan->seq.k[b->axis], at->row - (uint64_t)c->num_prefix);
    struct pe_dd w = pe_derived_frequency(d, b->base, b->denominator, i), unit = t->at.unit[b->axis],
                 x = dd_mul_d(unit, p);
    if (b->scale.hi != 1 || b->scale.lo != 0)
        w = pe_derived(d, "w'", pe_derived_round(d, PE_F32, dd_mul(w, pe_derived_round(d, PE_F32, b->scale))),
                       "angle_scale·w = %s·w", pe_brief(b->scale, 10).text);
    if (unit.hi != 1 || unit.lo != 0) {
        x = pe_derived(d, "x", pe_derived_round(d, PE_F32, x), "%s·%s", pe_shown(p).text, pe_brief(unit, 7).text);
        pe_derived_says(d, "the coordinate of this position");
    }
    enum pe_rungs rungs = pe_recipes[d->recipe].rungs;
    struct pe_dd angle = pe_derived(d, "θ", pe_derived_angle(d, x, w, i), rungs == PE_RUNGS_DIVISOR ? "%s/%s" : "%s·%s",
                                    pe_brief(x, 15).text, d->at[d->n - 1].symbol);
    pe_derived(d, quarter ? "cos θ" : "sin θ", pe_derived_sine(d, angle, quarter), "%s", "");
    return PE_OK;
}

static bool columns(const struct pe_plan *plan, size_t id, struct pe_wave *columns)
{
    const struct sinusoidal *c = plan->config;
    (void)id;
    memcpy(columns, ((const struct tables *)plan->tables)->columns, (size_t)c->dim * sizeof *columns);
    return true;
}

static const struct pe_coords *coords(const struct pe_plan *plan) { return &((const struct tables *)plan->tables)->at; }

static void sinusoidal_drop(struct pe_plan *plan)
{
    struct tables *t = plan->tables;
    free(t->at.lists);
    free(t->padded);
}

static const struct pe_formula_line formula[] = {
    {"D = { dim + 1 if odd is truncate and dim mod 2 = 1; dim }", "truncate computes one channel more and cuts it"},
    {"C = floor(D/2)", "the number of cosines"},
    {"S = { C + 1 if odd is paper and dim mod 2 = 1; C }",
     "the number of sines: in an odd width the paper has one more"},
    {"e = { C - freq_shift if freq_shift > 0; dim/2 if odd is paper; C }",
     "the exponent's denominator; a shift of 1 makes the last frequency exactly 1/base"},
    {"w_i = { 1 if i = 0; base^(-i/e) }", "frequencies fall geometrically from 1 to about 1/base"},
    {"f = { 1 if flip_sin_to_cos; 0 }", "1: cosines come first"},
    {"i = { floor(j/2) if layout is interleaved; j - f*C if j >= f*C and j < f*C + S; j - (1 - f)*S }",
     "the frequency of channel j"},
    {"u = { 0 if layout is interleaved and (j mod 2 = f or j >= 2*C); 0 if layout is half and j >= f*C and j < f*C + "
     "S; 1 }",
     "0: channel j is a sine; 1: a cosine"},
    {"PE[p, j] = { 0 if j >= S + C; sin(angle_scale*p*w_i) if u = 0; cos(angle_scale*p*w_i) }",
     "a shift of the position rotates each pair of sine and cosine; with several axes each has such channels of its "
     "own"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_sinusoidal = {
    .info =
        {
            .name = "sinusoidal",
            .family = "absolute",
            .about = {"sinusoidal encoding",
                      "sines and cosines of geometrically spaced frequencies, added to the embeddings"},
            .paper = "Vaswani et al. 2017, arXiv 1706.03762, section 3.5",
            .formula = formula,
            .example = "{\"scheme\":\"sinusoidal\",\"len\":8,\"dim\":16}",
            .picture = "len=128&dim=128",
            .worked = "dim=8&position=3&channel=3",
            .traps = "Libraries differ in the order of the columns (`layout`, `flip_sin_to_cos`), in the "
                     "divisor of the exponent (`freq_shift` is 1 in fairseq and Whisper), in the last column "
                     "of an odd width (`odd`) and in the order of the axes of a grid (`style`). The shape is "
                     "the same in each case, so only the numbers show it.",
            .params = params,
            .outputs = outputs,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct sinusoidal),
    .has_axes = true,
    .cost = sinusoidal_cost,
    .plan = sinusoidal_plan,
    .drop = sinusoidal_drop,
    .columns = columns,
    .derive = derive,
    .coords = coords,
};
