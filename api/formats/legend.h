/* The strip below a picture that explains its colours: all colours from left to right, and under the two ends the least
 * and the greatest value in digits. */
#ifndef API_FORMATS_LEGEND_H
#define API_FORMATS_LEGEND_H

#include <stddef.h>
#include <stdint.h>

struct api_legend {
    char low[16], high[16];
    uint8_t paper, ink; /* indices of colours: the map's lightest and its darkest, so that digits show on any page */
    size_t scale;       /* pixels of a dot along each side */
};

/* Dots high, with the gap above. */
enum { API_LEGEND_DOTS = 21 };

/* A size that is readable beside a picture whose longer side is this. */
size_t api_legend_scale(uint64_t side);

void api_legend_init(struct api_legend *legend, int cmap, double low, double high, size_t scale);

/* The least width in pixels. */
size_t api_legend_width(const struct api_legend *legend);

/* Row i < API_LEGEND_DOTS of dots as width colour indices, 0 for an empty dot. */
void api_legend_row(const struct api_legend *legend, unsigned i, uint8_t *indices, size_t width);

#endif
