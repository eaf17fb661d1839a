/* Colour maps as piecewise linear curves in sRGB: a few knots and integer interpolation, so the same on every
 * machine. */
#include "api/formats/format.h"

#include <stddef.h>

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
