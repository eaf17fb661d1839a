/* Coordinates: the numbers that stand for the positions of a sequence, on each axis.
 *
 * A rule (core/sequence/coords/NAME.c) gives those of a grid; then every coordinate, of grids, lists and segments
 * alike, takes a last step, in which a video model puts its frames per second:
 *
 *     x = (first + step·i)·numerator/denominator              index i on an axis of a grid
 *     x ← x·axis_scale/axis_divisor + axis_shift
 *
 * All are exact reals: 24/16 is three halves, and i/3 is no double. So a position stays a double that is exact, and
 * what is left is a unit that is multiplied into the frequencies (struct pe_coords). */
#ifndef PE_COORDS_H
#define PE_COORDS_H

#include "core/request/request.h"
#include "core/sequence/sequence.h"

/* ---- Rules ---- */

enum {
#define COORDS(name) PE_COORDS_##name,
#include "core/sequence/coords/list.h"
#undef COORDS
    PE_N_COORDS
};

/* A grid of n axes, and where the request has one, the grid that the model knows. */
struct pe_coord_grid {
    unsigned n_axes;
    const uint64_t *size;       /* [n_axes] */
    const struct pe_reals *ref; /* ref_grid; of a rule that needs it as many numbers as it states */
    enum pe_crop_end { PE_CROP_OPEN, PE_CROP_SHRUNK } crop_end;
};

/* The coordinates of one axis. */
struct pe_coord_line {
    double first, step, numerator, denominator;
    bool is_floor; /* whole numbers: each is rounded down */
};

struct pe_coord_rule {
    const char *name;
    enum { PE_REF_NONE, PE_REF_AXES, PE_REF_SPACE } ref; /* does it need ref_grid, of all axes or of the last two? */
    /* *line begins as the index. May refuse, at /ref_grid or /grid. NULL: the index. */
    enum pe_status (*axis)(const struct pe_coord_grid *grid, unsigned axis, struct pe_coord_line *line,
                           struct pe_failure *err);
};
#define COORDS(name) extern const struct pe_coord_rule pe_coords_##name;
#include "core/sequence/coords/list.h"
#undef COORDS

extern const char *const pe_coord_words[], *const pe_crop_ends[]; /* NULL-terminated */

/* ---- Fields ---- */

struct pe_coord_fields {
    int coords;
    struct pe_reals ref_grid;
    int crop_end;
    struct pe_reals axis_scale, axis_divisor, axis_shift;
};

/* Rows of a scheme that has coordinates: its config struct S has a struct pe_coord_fields called `at`. */
#define PE_COORD_PARAMS(S)                                                                                             \
    PE_P_WORD_AT(S, at.coords, "coords", pe_coord_words, "coordinates",                                                \
                 "coordinates on a grid: index; one_based (Llama 4, DETR); normalized: 2(i+1/2)/h - 1 (DINOv3, "       \
                 "default there); resized: i/h·ref_grid (EVA-02, PixArt); resized_floor: the same, rounded down "     \
                 "(CogView4); centered (Qwen-Image; of three axes the first, frames, counts from 0); half_centered: "  \
                 "i+1/2 (Deformable DETR); window: the middle of ref_grid (SD3); cropped: rows and columns fitted "    \
                 "into ref_grid (HunyuanDiT, CogVideoX); pixel: -1 to 1, frequencies to max_freq",                     \
                 .group = PE_G_AXES),                                                                                  \
        {.name = "ref_grid",                                                                                           \
         .type = PE_T_REALS,                                                                                           \
         .offset = PE_OFFSET(S, at.ref_grid, struct pe_reals),                                                         \
         .min = 1,                                                                                                     \
         .max = PE_POSITION_MAX,                                                                                       \
         .when = "coords=resized|resized_floor|window|cropped",                                                        \
         .about = {"training grid",                                                                                    \
                   "the grid the model was trained on, a length for each axis; cropped: rows and columns"},            \
         .group = PE_G_AXES},                                                                                          \
        PE_P_WORD_AT(S, at.crop_end, "crop_end", pe_crop_ends, "end of a crop",                                        \
                     "open: as a linspace without its end point; shrunk: diffusers' torch code, whose last "           \
                     "coordinate is end·(h-1)/h whatever the start",                                                   \
                     .when = "coords=cropped", .level = PE_MORE, .group = PE_G_AXES),                                  \
        PE_COORD_LIST(S, axis_scale, "factor of each axis", "factor on the coordinates of each axis; default 1"),      \
        PE_COORD_LIST(S, axis_divisor, "divisor of each axis",                                                         \
                      "divisor of the coordinates of each axis, as in frames per second: axis_scale 24, "              \
                      "axis_divisor 16; default 1"),                                                                   \
        PE_COORD_LIST(S, axis_shift, "shift of each axis",                                                             \
                      "added to the coordinates of each axis, after axis_scale and axis_divisor; default 0")

#define PE_COORD_LIST(S, name_, ...)                                                                                   \
    {                                                                                                                  \
        .name = #name_, .type = PE_T_REALS, .offset = PE_OFFSET(S, at.name_, struct pe_reals),                         \
        .min = -PE_POSITION_MAX, .max = PE_POSITION_MAX, .about = PE_ABOUT(__VA_ARGS__), .level = PE_MORE,             \
        .group = PE_G_AXES                                                                                             \
    }

/* ---- Use ---- */

/* Coordinates of a sequence once they are set: its positions times these units. */
struct pe_coords {
    struct pe_dd unit[PE_AXES_MAX];
    double *lists; /* of coordinates that are no run; owned, freed with free */
};

/* Refuses what the fields cannot mean for this sequence, whose lists of axes need n_axes numbers; allocates nothing. */
enum pe_status pe_coords_check(const struct pe_coord_fields *fields, const struct pe_sequence *seq, unsigned n_axes,
                               struct pe_failure *err);

/* Changes the positions of seq to the rule's and sets *out (all of it, also on failure). Call it after pe_coords_check;
 * it refuses a grid that a rule cannot have, and coordinates of more than PE_LISTED_POSITIONS_MAX numbers that have to
 * be stored. float32: coordinates are the f32 nearest, and all units 1, as frameworks store them.
 *
 * A shift that is no exact double beside its positions (0.1 beside thirds) is rounded to one, which is off by 2^-53 of
 * the coordinate at most. */
enum pe_status pe_coords_set(const struct pe_coord_fields *fields, struct pe_sequence *seq, bool float32,
                             struct pe_coords *out, struct pe_failure *err);

/* Adds the cost of pe_coords_set, for the scheme's cost(). */
void pe_coords_cost(const struct pe_coord_fields *fields, const struct pe_sequence *seq, struct pe_cost *cost);

bool pe_coords_are_integers(const struct pe_coords *coords, const struct pe_sequence *seq);

/* The coordinate of position i on an axis, rounded once. */
double pe_coords_at(const struct pe_coords *coords, const struct pe_positions *positions, unsigned axis, uint64_t i);

#endif
