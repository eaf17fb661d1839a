/* A colour bar and two numbers in a font of 5 by 7 dots. */
#include "api/formats/format.h"

#include <stdio.h>
#include <string.h>

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
