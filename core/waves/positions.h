/* Positions of the rows of a table on one axis: a run, a list, or an axis of a grid. */
#ifndef PE_POSITIONS_H
#define PE_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Axes of a sequence: time, height and width are three; Flux has four. */
enum { PE_AXES_MAX = 8 };

/* Row i has index k(i) on its axis and the position start + k, or list[k] if list is not NULL (finite doubles, any
 * order; borrowed). In a run or a plain list k = i. On an axis of a grid (size > 0), row-major, every index is
 * repeated `inner` times, and the whole axis repeats: k = i / inner mod size. In merge order the axis is cut into
 * blocks of `merge`, which are visited one by one: k = (i / inner mod size)·merge + (i / step mod merge), where size
 * counts blocks. */
struct pe_positions {
    uint64_t n;
    double start;
    const double *list;
    uint64_t inner, size, step, merge;
};

double pe_position_at(const struct pe_positions *positions, uint64_t i);

/* How many rows from i on, at least 1 and at most `most`, have positions *step apart, which is 0 or 1. If *step is
 * 1, the positions are integers. */
size_t pe_positions_stretch(const struct pe_positions *positions, uint64_t i, size_t most, int *step);

bool pe_positions_are_integers(const struct pe_positions *positions);
double pe_positions_largest(const struct pe_positions *positions); /* the largest magnitude */
double pe_positions_last(const struct pe_positions *positions);    /* the largest position */
bool pe_positions_same(const struct pe_positions *a, const struct pe_positions *b);

#endif
