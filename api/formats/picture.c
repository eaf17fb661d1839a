/* Maps elements to colour indices. */
#include "api/formats/format.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Chunks ---- */

/* Columns at least this far apart are computed one by one. */
enum { SPARSE_STEP = 64 };

static uint64_t count(const struct api_picture *p) { return p->height * p->width; }

static void load(struct api_picture *p, uint64_t element)
{
    uint64_t base = element / p->within * p->within, at = (element - base) / p->step * p->step;
    uint64_t left = p->within - at < count(p) - base - at ? p->within - at : count(p) - base - at;
    p->chunk_first = base + at;
    p->chunk_n = left < p->step ? left : p->step;
    p->is_left = p->is_left || pe_is_cancelled();
    if (!p->is_left)
        api_source_fill(&p->source, 0, p->chunk_first, (size_t)p->chunk_n, p->chunk);
}

/* values = the row's elements at each column step. */
static void read_row(struct api_picture *p, size_t row)
{
    uint64_t element = row * p->row_step * p->width;
    size_t size = pe_dtype_size(p->output->dtype);
    for (size_t done = 0, n = 1; done < p->n_cols; done += n, element += n * p->col_step) {
        if (element - p->chunk_first >= p->chunk_n) /* huge also for an element before the chunk */
            load(p, element);
        if (p->is_left)
            return;
        uint64_t at = element - p->chunk_first, left = p->chunk_n - at;
        if (p->col_step == 1)
            n = left < p->n_cols - done ? (size_t)left : p->n_cols - done;
        pe_convert(PE_F64, p->values + done, p->output->dtype, p->chunk + at * size, n);
    }
}

/* ---- Its life ---- */

bool api_picture_init(struct api_picture *picture, struct api_request *request)
{
    const struct api_source *source = &request->opening.source;
    if (api_source_count(source) == 0)
        return api_fail(&request->problem, 406, "",
                        "the answer has no tensor, so there is no picture of it; use format json");
    const struct pe_output *output = api_source_output(source, 0);
    *picture = (struct api_picture){.source = *source, .output = output, .row_step = 1, .col_step = 1};
    picture->height = output->rank > 1 ? output->shape[output->rank - 2] : 1;
    picture->width = output->rank > 0 ? output->shape[output->rank - 1] : 1;
    if (output->n_rows && output->row_len)
        return true;
    return api_fail(&request->problem, 406, "", "%s has no elements, so there is no picture of it; use format json",
                    output->name);
}

void api_picture_drop(struct api_picture *picture)
{
    free(picture->values);
    free(picture->chunk);
}

bool api_picture_shrink(struct api_picture *picture, uint64_t row_step, uint64_t col_step, struct api_problem *problem)
{
    struct api_picture *p = picture;
    p->row_step = row_step;
    p->col_step = col_step;
    p->n_rows = (size_t)((p->height - 1) / row_step + 1);
    p->n_cols = (size_t)((p->width - 1) / col_step + 1);
    /* Elements that are computed as one unit stay in one chunk, however few of them are visible. Otherwise a chunk
     * contains only visible elements: a part of a row, or many whole rows if every row is visible. */
    size_t size = pe_dtype_size(p->output->dtype), fits = API_PIECE_BYTES / size;
    uint64_t rows = fits / p->width;
    rows -= rows > API_ROWS_UNIT ? rows % API_ROWS_UNIT : 0;
    p->step = p->width < fits ? p->width : fits;
    p->within = p->width;
    if (p->output->unit && p->output->unit <= API_UNIT_BYTES_MAX / size) {
        p->step = p->output->unit;
        p->within = p->output->period;
    } else if (!p->output->unit && p->col_step >= SPARSE_STEP) {
        p->step = 1;
    } else if (p->row_step == 1 && rows > 1) {
        p->step = rows * p->width;
        p->within = count(p);
    }
    if (!p->output->unit && p->output->most &&
        p->output->most < p->step) { /* so that a client that disconnects is noticed soon */
        p->step = p->output->most < p->width ? p->output->most : p->width;
        p->within = p->width;
    }
    uint64_t most = p->step < count(p) ? p->step : count(p);
    p->values = malloc(p->n_cols * sizeof *p->values);
    p->chunk = malloc((size_t)most * pe_dtype_size(p->output->dtype));
    return (p->values && p->chunk) || api_fail_memory(problem);
}

/* ---- Range and rows ---- */

/* A limit from the request may lie beyond all values; then the other limit is set to it. */
void api_picture_measure(struct api_picture *picture, const struct api_form *form)
{
    bool has_low = !isnan(form->vmin), has_high = !isnan(form->vmax);
    double least = HUGE_VAL, greatest = -HUGE_VAL;
    if (!has_low || !has_high) {
        for (size_t i = 0; i < picture->n_rows; i++) {
            read_row(picture, i);
            for (size_t j = 0; j < picture->n_cols && !picture->is_left; j++) {
                if (!isfinite(picture->values[j]))
                    continue;
                least = picture->values[j] < least ? picture->values[j] : least;
                greatest = picture->values[j] > greatest ? picture->values[j] : greatest;
            }
        }
    }
    picture->has_range = (has_low && has_high) || least <= greatest;
    if (least > greatest)
        least = greatest = has_low ? form->vmin : has_high ? form->vmax : 0;
    picture->low = has_low ? form->vmin : has_high && form->vmax < least ? form->vmax : least;
    picture->high = has_high ? form->vmax : greatest > picture->low ? greatest : picture->low;
}

/* 1 + round(254 (value - low) / (high - low)), ties to even. No product is followed by an addition, so machines that
 * fuse the two round alike. If the span of the two doubles overflows, everything is halved first. */
static uint8_t index_of(const struct api_picture *p, double value)
{
    if (!isfinite(value))
        return 0;
    if (value <= p->low)
        return 1;
    if (value >= p->high)
        return API_COLOURS;
    double share = (value - p->low) / (p->high - p->low);
    if (isinf(p->high - p->low))
        share = (value / 2 - p->low / 2) / (p->high / 2 - p->low / 2);
    return (uint8_t)(1 + (int)nearbyint(share * (API_COLOURS - 1)));
}

void api_picture_row(struct api_picture *picture, size_t i, uint8_t *indices)
{
    picture->is_left = picture->is_left || pe_is_cancelled(); /* compressing rows takes long too */
    read_row(picture, i);
    for (size_t j = 0; j < picture->n_cols && !picture->is_left; j++)
        indices[j] = index_of(picture, picture->values[j]);
}

bool api_picture_check(const struct api_picture *picture, struct api_problem *problem)
{
    return (!picture->is_left && !pe_was_cancelled()) || api_fail_left(problem);
}

/* ---- Colour maps ---- */

/* Colour maps as piecewise linear curves in sRGB: a few knots and integer interpolation, so the same on every
 * machine. */

/* Computed by tests/tools/colour_knots.py. viridis and magma by N. J. Smith, S. van der Walt and E. Firing (CC0;
 * matplotlib): least squares, off by one level at most. coolwarm by K. Moreland, "Diverging Color Maps for Scientific
 * Visualization", ISVC 2009: his formula at each knot. */
static const uint32_t viridis[] = {
    0x440154, 0x470d60, 0x48186a, 0x482374, 0x472d7b, 0x453681, 0x424086, 0x3f4989, 0x3b528b, 0x375a8d, 0x33638d,
    0x2f6a8e, 0x2c728e, 0x297a8e, 0x26818e, 0x23898e, 0x21908d, 0x1f988b, 0x1e9f88, 0x21a685, 0x27ae80, 0x31b57b,
    0x3dbc74, 0x4cc26c, 0x5cc963, 0x6ece58, 0x81d44c, 0x96d840, 0xabdc32, 0xc0df24, 0xd5e219, 0xeae519, 0xfde724};

static const uint32_t magma[] = {
    0x000003, 0x030311, 0x0a0822, 0x130d33, 0x1d1146, 0x28125a, 0x36106b, 0x430f76, 0x50127c, 0x5d177f, 0x691c81,
    0x762181, 0x822682, 0x8f2a81, 0x9c2e7f, 0xa9327d, 0xb6377a, 0xc33b75, 0xd04170, 0xdb486a, 0xe65063, 0xef5c5e,
    0xf5695b, 0xf9785c, 0xfc8761, 0xfd9668, 0xfea571, 0xfeb47b, 0xfec387, 0xfed194, 0xfde0a1, 0xfceeb0, 0xfcfdbf};

static const uint32_t coolwarm[] = {
    0x3b4cc0, 0x445acc, 0x4e68d7, 0x5875e1, 0x6282ea, 0x6c8ef1, 0x779af7, 0x82a5fb, 0x8db0fe, 0x98b9ff, 0xa3c2fe,
    0xaec9fd, 0xb8d0f9, 0xc2d5f4, 0xccd9ee, 0xd5dbe6, 0xdddddd, 0xe5d8d1, 0xecd3c6, 0xf1ccb9, 0xf5c4ad, 0xf7bba0,
    0xf7b194, 0xf7a687, 0xf49a7b, 0xf18d6f, 0xec7f63, 0xe57057, 0xde614c, 0xd55042, 0xcb3e38, 0xc0282f, 0xb40426};
static const uint32_t gray[] = {0x000000, 0xffffff};

#define MAP(name)                                                                                                      \
    {                                                                                                                  \
        name, sizeof name / sizeof name[0]                                                                             \
    }
static const struct {
    const uint32_t *knots;
    unsigned n;
} maps[] = {MAP(viridis), MAP(magma), MAP(coolwarm), MAP(gray)};

const char *const api_cmap_names[] = {"viridis", "magma", "coolwarm", "gray", NULL};

/* One channel, interpolated from a to b at rest/parts, rounded to nearest. */
static uint8_t between(uint32_t a, uint32_t b, unsigned shift, unsigned rest, unsigned parts)
{
    uint32_t low = a >> shift & 0xff, high = b >> shift & 0xff;
    return (uint8_t)((low * (parts - rest) + high * rest + parts / 2) / parts);
}

struct api_colour api_colour(int cmap, unsigned i)
{
    enum { LAST = API_COLOURS - 1 };
    unsigned at = i * (maps[cmap].n - 1), knot = at / LAST, rest = at % LAST;
    uint32_t a = maps[cmap].knots[knot], b = rest ? maps[cmap].knots[knot + 1] : a;
    return (struct api_colour){between(a, b, 16, rest, LAST), between(a, b, 8, rest, LAST),
                               between(a, b, 0, rest, LAST)};
}

/* ---- The legend: a colour bar and two numbers in a font of 5 by 7 dots ---- */

/* ---- The font: what "%.4g" writes of finite numbers ---- */

enum { GLYPH_WIDTH = 5, GLYPH_HEIGHT = 7, PITCH = GLYPH_WIDTH + 1 };

static const char characters[] = "0123456789-+.e";

/* A row of dots in five bits, the leftmost the highest. */
static const uint8_t glyphs[][GLYPH_HEIGHT] = {
    {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}, /* 0 */
    {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e}, /* 1 */
    {0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f}, /* 2 */
    {0x0e, 0x11, 0x01, 0x06, 0x01, 0x11, 0x0e}, /* 3 */
    {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}, /* 4 */
    {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e}, /* 5 */
    {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e}, /* 6 */
    {0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08}, /* 7 */
    {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}, /* 8 */
    {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c}, /* 9 */
    {0x00, 0x00, 0x00, 0x0e, 0x00, 0x00, 0x00}, /* - */
    {0x00, 0x04, 0x04, 0x1f, 0x04, 0x04, 0x00}, /* + */
    {0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c}, /* . */
    {0x00, 0x00, 0x0e, 0x11, 0x1f, 0x10, 0x0e}, /* e */
};

_Static_assert(sizeof glyphs / sizeof glyphs[0] == sizeof characters - 1, "a glyph for each character");

/* Draws row i of the text's dots, starting at dots[0]. */
static void draw_text(const struct api_legend *legend, const char *text, unsigned i, uint8_t *indices)
{
    for (size_t k = 0; text[k]; k++) {
        const char *found = strchr(characters, text[k]);
        unsigned row = found ? glyphs[found - characters][i] : 0;
        for (unsigned j = 0; j < GLYPH_WIDTH * legend->scale; j++)
            if (row >> (GLYPH_WIDTH - 1 - j / legend->scale) & 1)
                indices[k * PITCH * legend->scale + j] = legend->ink;
    }
}

/* ---- The strip ---- */

/* From top to bottom: a gap, the bar, and the numbers on the background between two margins. */
enum { GAP = 4, BAR = 8, MARGIN = 1, TEXT_AT = GAP + BAR + MARGIN };

_Static_assert(TEXT_AT + GLYPH_HEIGHT + MARGIN == API_LEGEND_DOTS, "the strip's parts are its whole");

static unsigned brightness(struct api_colour colour) { return colour.red + 2U * colour.green + colour.blue; }

size_t api_legend_scale(uint64_t side) { return 1 + (size_t)(side / 1024); }

void api_legend_init(struct api_legend *legend, int cmap, double low, double high, size_t scale)
{
    *legend = (struct api_legend){.paper = 1, .ink = 1, .scale = scale};
    snprintf(legend->low, sizeof legend->low, "%.4g", low);
    snprintf(legend->high, sizeof legend->high, "%.4g", high);
    for (unsigned i = 0; i < API_COLOURS; i++) {
        if (brightness(api_colour(cmap, i)) > brightness(api_colour(cmap, legend->paper - 1U)))
            legend->paper = (uint8_t)(1 + i);
        if (brightness(api_colour(cmap, i)) < brightness(api_colour(cmap, legend->ink - 1U)))
            legend->ink = (uint8_t)(1 + i);
    }
}

static size_t text_width(const struct api_legend *legend, const char *text)
{
    return (strlen(text) * PITCH - 1) * legend->scale;
}

size_t api_legend_width(const struct api_legend *legend)
{
    size_t around = (2 * MARGIN + PITCH) * legend->scale;
    return text_width(legend, legend->low) + text_width(legend, legend->high) + around;
}

void api_legend_row(const struct api_legend *legend, unsigned i, uint8_t *indices, size_t width)
{
    memset(indices, i < GAP ? 0 : legend->paper, width);
    if (i >= GAP && i < GAP + BAR)
        for (size_t j = 0; j < width; j++)
            indices[j] = (uint8_t)(1 + j * API_COLOURS / width);
    if (i < TEXT_AT || i >= TEXT_AT + GLYPH_HEIGHT)
        return;
    size_t margin = MARGIN * legend->scale;
    draw_text(legend, legend->low, i - TEXT_AT, indices + margin);
    draw_text(legend, legend->high, i - TEXT_AT, indices + width - margin - text_width(legend, legend->high));
}
