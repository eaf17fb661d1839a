/* Shared by the two files of the sinusoidal scheme: its config, and an encoding as blocks of sines and cosines. */
#ifndef PE_SINUSOIDAL_AXES_H
#define PE_SINUSOIDAL_AXES_H

#include "core/scheme.h"

enum sinusoidal_layout { PE_SINES_INTERLEAVED, PE_SINES_HALF };
enum sinusoidal_odd { PE_ODD_PAPER, PE_ODD_PAD, PE_ODD_TRUNCATE };
enum sinusoidal_style { PE_AXIAL, PE_DETR, PE_MAE, PE_TIMM, PE_MULTIDIM, PE_VJEPA };
extern const char *const pe_sinusoidal_styles[];

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
    int arith;
    int64_t widths[PE_AXES_MAX], order[PE_AXES_MAX];
};

/* How one axis is encoded: the parameters of the 1-D encoding. */
struct pe_sinusoid {
    double base, freq_shift;
    enum sinusoidal_layout layout;
    enum sinusoidal_odd odd;
    bool flip;
    struct pe_dd scale; /* factor on the angle, radians */
};

/* Sine i is in column sine0 + i·step and cosine i in column cosine0 + i·step, but never after `last`; columns from
 * `end` on are cut. w_i = scale · base^(-i/denominator). */
struct pe_sinusoid_block {
    unsigned axis;
    size_t n_sines, n_cosines, sine0, cosine0, step, last, end;
    double base, denominator;
    struct pe_dd scale;
};

/* The 1-D encoding of `width` columns from column `first` on. */
struct pe_sinusoid_block pe_sinusoid_block(const struct pe_sinusoid *how, unsigned axis, size_t first, size_t width);

/* For a sequence of several axes, or a grid: checks the style's rules, resolves derived parameters, shifts the
 * positions as the style requires, and describes at most PE_AXES_MAX blocks. */
enum pe_status pe_sinusoidal_axes(struct pe_plan *plan, struct pe_sinusoid_block *blocks, size_t *n_blocks,
                                  struct pe_error *err);

#endif
