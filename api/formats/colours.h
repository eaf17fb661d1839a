/* Colours of pictures: 255 of a map, from the lowest value to the highest. */
#ifndef API_FORMATS_COLOURS_H
#define API_FORMATS_COLOURS_H

#include <stdint.h>

/* With one more index for "no number", they fill a palette of one-byte indices. */
enum { API_COLOURS = 255 };

struct api_colour {
    uint8_t red, green, blue; /* sRGB */
};

extern const char *const api_cmap_names[]; /* NULL-terminated; the first is the default */

/* Colour i < API_COLOURS of the map with that index in api_cmap_names. */
struct api_colour api_colour(int cmap, unsigned i);

#endif
