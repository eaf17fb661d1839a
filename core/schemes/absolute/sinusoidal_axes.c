/* Sinusoidal encodings of several axes: the styles of the libraries, each as a list of blocks of one axis.
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

const char *const pe_sinusoidal_styles[] = {[PE_AXIAL] = "axial",
                                            [PE_DETR] = "detr",
                                            [PE_MAE] = "mae",
                                            [PE_TIMM] = "timm",
                                            [PE_MULTIDIM] = "multidim",
                                            [PE_VJEPA] = "vjepa",
                                            [PE_COGVIDEOX] = "cogvideox",
                                            NULL};

struct blocks {
    struct pe_sinusoid_block *list;
    size_t n;
};

/* ---- Rules that several styles share ---- */

static const char *style_name(const struct sinusoidal *c) { return pe_sinusoidal_styles[c->style]; }

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

static void add(struct blocks *b, struct pe_sinusoid_block block) { b->list[b->n++] = block; }

/* ---- axial ---- */

static void set_list(struct pe_reals *list, const int64_t *numbers, unsigned n)
{
    list->array = (struct pe_tensor){.dtype = PE_I64, .rank = 1, .shape = {n}, .data = numbers};
    list->n = n;
}

static enum pe_status read_list(struct pe_reals *list, const char *name, const char *pointer, unsigned n,
                                int64_t *numbers, struct pe_failure *err)
{
    enum pe_status status = pe_reals_expect(list, n, name, "one for each axis", err);
    for (unsigned a = 0; !status && a < n; a++) {
        double x = pe_real_at(list, a);
        if (x != floor(x))
            return pe_fail(err, pointer, "%s has %s at index %u; allowed: integers", name, pe_shown(x).text, a);
        numbers[a] = (int64_t)x;
    }
    return status;
}

/* 2·⌊dim/(2·axes)⌋ channels for each axis, and the remainder for the first. */
static void share_out(struct sinusoidal *c, unsigned n)
{
    int64_t each = c->dim / (2 * (int64_t)n) * 2;
    for (unsigned a = 0; a < n; a++)
        c->widths[a] = a ? each : c->dim - each * (n - 1);
}

static enum pe_status set_widths(struct sinusoidal *c, unsigned n, struct pe_failure *err)
{
    int64_t sum = 0;
    enum pe_status status = PE_OK;
    if (c->axes_dim.n)
        status = read_list(&c->axes_dim, "axes_dim", "/axes_dim", n, c->widths, err);
    else
        share_out(c, n);
    for (unsigned a = 0; !status && a < n; a++)
        sum += c->widths[a];
    if (!status && sum != c->dim)
        return pe_fail(err, "/axes_dim", "axes_dim adds up to %lld, dim is %lld; give dim %lld", (long long)sum,
                       (long long)c->dim, (long long)sum);
    set_list(&c->axes_dim, c->widths, n);
    return status;
}

static enum pe_status set_order(struct sinusoidal *c, unsigned n, struct pe_failure *err)
{
    bool seen[PE_AXES_MAX] = {false};
    enum pe_status status = PE_OK;
    for (unsigned a = 0; a < n; a++)
        c->order[a] = a;
    if (c->axis_order.n)
        status = read_list(&c->axis_order, "axis_order", "/axis_order", n, c->order, err);
    for (unsigned a = 0; !status && a < n; a++) {
        int64_t axis = c->order[a];
        if (axis >= n || seen[axis])
            return pe_fail(err, "/axis_order", "axis_order has %lld at index %u; allowed: each of 0 to %u once",
                           (long long)axis, a, n - 1);
        seen[axis] = true;
    }
    set_list(&c->axis_order, c->order, n);
    return status;
}

static enum pe_status axial(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    struct sinusoidal *c = p->config;
    struct pe_sinusoid how = pe_sinusoid_of(c);
    enum pe_status status = set_widths(c, p->seq.n_axes, err);
    if (!status)
        status = set_order(c, p->seq.n_axes, err);
    size_t first = 0;
    for (unsigned k = 0; !status && k < p->seq.n_axes; k++) {
        unsigned axis = (unsigned)c->order[k];
        size_t width = (size_t)c->widths[axis];
        add(b, pe_sinusoid_block(&how, axis, first, width));
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
    struct pe_sinusoid how = {.base = c->temperature, .scale = {1, 0}};
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
        add(b, pe_sinusoid_block(&how, a, a * width, width));
    }
    pe_absolute_prefer_channels_first(p);
    return status;
}

/* ---- mae, timm, multidim, vjepa ---- */

static struct pe_sinusoid plain(const struct sinusoidal *c, enum sinusoidal_layout layout)
{
    return (struct pe_sinusoid){.base = c->base, .layout = layout, .scale = {1, 0}};
}

static enum pe_status mae(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    struct pe_sinusoid how = plain(c, PE_SINES_HALF);
    size_t width = (size_t)c->dim / 2;
    enum pe_status status = need_axes(p, 2, 2, err);
    if (!status)
        status = need_multiple(c, 4, "half of it for each axis, half of that sines", err);
    if (status)
        return status;
    add(b, pe_sinusoid_block(&how, 1, 0, width));
    add(b, pe_sinusoid_block(&how, 0, width, width));
    return PE_OK;
}

static enum pe_status timm(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    struct pe_sinusoid how = plain(c, PE_SINES_HALF);
    size_t quarter = (size_t)c->dim / 4;
    enum pe_status status = need_axes(p, 2, 2, err);
    if (!status)
        status = need_multiple(c, 4, "a quarter for each axis's sines and cosines", err);
    if (!isnan(c->temperature))
        how.base = c->temperature;
    for (unsigned a = 0; !status && a < 2; a++) {
        struct pe_sinusoid_block block = pe_sinusoid_block(&how, a, 2 * a * quarter, 2 * quarter);
        if (!c->interleave_sin_cos) {
            block.sine0 = a * quarter;
            block.cosine0 = block.sine0 + 2 * quarter;
            block.last = block.end = 4 * quarter;
        }
        add(b, block);
    }
    return status;
}

/* Blocks of 2·⌈dim/(2·axes)⌉ columns, cut to dim. */
static void equal_blocks(const struct pe_plan *p, const struct pe_sinusoid *how, struct blocks *b)
{
    const struct sinusoidal *c = p->config;
    size_t dim = (size_t)c->dim, width = 2 * ((dim + 2 * p->seq.n_axes - 1) / (2 * p->seq.n_axes));
    for (unsigned a = 0; a < p->seq.n_axes; a++) {
        struct pe_sinusoid_block block = pe_sinusoid_block(how, a, a * width, width);
        block.end = block.end < dim ? block.end : dim;
        add(b, block);
    }
}

static enum pe_status multidim(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    struct pe_sinusoid how = plain(p->config, PE_SINES_INTERLEAVED);
    (void)err;
    equal_blocks(p, &how, b);
    return PE_OK;
}

static enum pe_status vjepa(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    const struct sinusoidal *c = p->config;
    struct pe_sinusoid how = plain(c, PE_SINES_HALF);
    unsigned n = p->seq.n_axes;
    enum pe_status status = need_axes(p, 2, 3, err);
    if (!status && c->uniform_power && n != 3)
        return pe_fail(err, "/uniform_power", "uniform_power shares dim among 3 axes, the sequence has %u", n);
    if (!status && c->uniform_power)
        equal_blocks(p, &how, b);
    if (!status && !c->uniform_power)
        status =
            n == 2 ? need_multiple(c, 4, "half of it for each axis, half of that sines", err)
                   : need_multiple(c, 8, "half of it for time, a quarter for row and column, half of each sines", err);
    if (status || c->uniform_power)
        return status;
    size_t first = 0;
    for (unsigned a = 0; a < n; a++) {
        size_t width = (size_t)c->dim / (n == 3 && a > 0 ? 4 : 2);
        add(b, pe_sinusoid_block(&how, a, first, width));
        first += width;
    }
    return PE_OK;
}

static enum pe_status cogvideox(struct pe_plan *p, struct blocks *b, struct pe_failure *err)
{
    static const unsigned order[] = {0, 2, 1};
    const struct sinusoidal *c = p->config;
    struct pe_sinusoid how = plain(c, PE_SINES_HALF);
    size_t first = 0;
    if (p->seq.n_axes != 3 && !pe_plan_gave_itself(p, "style"))
        return pe_plan_wrong_axes(p, 3, err);
    if (p->seq.n_axes != 3)
        return pe_fail(err, "/style", "style cogvideox encodes 3 axes, the sequence has %u", p->seq.n_axes);
    if (need_multiple(c, 16, "a quarter for time, 3/8 for column and row, half of each sines", err))
        return err->status;
    for (unsigned k = 0; k < 3; k++) {
        size_t width = (size_t)c->dim / 8 * (k == 0 ? 2 : 3);
        add(b, pe_sinusoid_block(&how, order[k], first, width));
        first += width;
    }
    return PE_OK;
}

/* ---- All ---- */

enum pe_status pe_sinusoidal_axes(struct pe_plan *plan, struct pe_sinusoid_block *blocks, size_t *n_blocks,
                                  struct pe_failure *err)
{
    static enum pe_status (*const styles[])(struct pe_plan *, struct blocks *, struct pe_failure *) = {
        [PE_AXIAL] = axial, [PE_DETR] = detr,          [PE_MAE] = mae, [PE_TIMM] = timm, [PE_MULTIDIM] = multidim,
        [PE_VJEPA] = vjepa, [PE_COGVIDEOX] = cogvideox};
    struct sinusoidal *c = plan->config;
    struct blocks b = {.list = blocks};
    if (c->style == PE_DETR && isnan(c->temperature))
        c->temperature = 10000;
    enum pe_status status = styles[c->style](plan, &b, err);
    *n_blocks = b.n;
    return status;
}
