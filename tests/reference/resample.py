"""Interpolation of one axis, written once more as a whole matrix: out = matrix @ in, every source index looked at for every
output, so there are no windows, taps or clamped indices to get wrong. Semantics are those of torch.nn.functional.interpolate
(ATen/native/UpSample.h, cpu/UpSampleKernel.cpp), timm's resample_abs_pos_embed and Qwen3-VL's fast_pos_embed_interpolate.

`number` chooses the arithmetic: float gives float64, fractions.Fraction exact rationals; constants in the C tests come from
the latter. Print some: python3 tests/reference/resample.py bicubic 4 7"""
import sys
from fractions import Fraction

import numpy as np

KINDS = ("bicubic", "bicubic_antialias", "bilinear", "bilinear_aligned")


def keys_cubic(x, a):
    """Keys' convolution kernel, expanded in powers of |x|."""
    x = abs(x)
    if x >= 2:
        return 0 * x
    if x >= 1:
        return a * x ** 3 - 5 * a * x ** 2 + 8 * a * x - 4 * a
    return (a + 2) * x ** 3 - (a + 3) * x ** 2 + 1


def triangle(x):
    return max(1 - abs(x), 0 * x)


def source_coordinates(kind, n_in, n_out, number, offset=0):
    """Where each output stands, counted in source indices: sample i is at i. DINO's and DINOv2's code passes (n_out + 0.1)/n_in as
    the scale, which takes the place of n_out/n_in."""
    if kind == "bilinear_aligned":  # linspace(0, n_in - 1, n_out)
        return [number(o * (n_in - 1)) / number(max(n_out - 1, 1)) for o in range(n_out)]
    return [number(2 * o + 1) * number(n_in) / (2 * (number(n_out) + number(offset))) - number(1) / number(2) for o in range(n_out)]


def antialiased_row(x, n_in, n_out, number, offset=0):
    """The kernel of radius 2, stretched when shrinking, over the existing samples and normalised to sum 1."""
    stretch = max(number(n_in) / (number(n_out) + number(offset)), number(1))
    w = [keys_cubic((number(i) - x) / stretch, -number(1) / number(2)) for i in range(n_in)]
    return [v / sum(w) for v in w]


def folded_row(x, n_in, number, kernel):
    """A kernel over samples beyond the border too; those have the border's value."""
    row = [number(0)] * n_in
    for i in range(-3, n_in + 3):
        row[min(max(i, 0), n_in - 1)] += kernel(number(i) - x)
    return row


def matrix(kind, n_in, n_out, number=float, offset=0):
    """[n_out, n_in] weights; a float64 array, or an object array of exact numbers."""
    rows = []
    for x in source_coordinates(kind, n_in, n_out, number, offset):
        if kind == "bicubic_antialias":
            rows.append(antialiased_row(x, n_in, n_out, number, offset))
        elif kind == "bicubic":
            rows.append(folded_row(x, n_in, number, lambda d: keys_cubic(d, -number(3) / number(4))))
        else:
            rows.append(folded_row(max(x, number(0)), n_in, number, triangle))
    return np.array(rows, float if number is float else object).reshape(n_out, n_in)


def resample_grid(kind, grid, h, w, number=float, offset=0):
    """grid [g, g2, dim] read as [h, w, dim]."""
    grid = np.asarray(grid, float) if number is float else np.asarray(grid, object)
    rows, cols = matrix(kind, grid.shape[0], h, number, offset), matrix(kind, grid.shape[1], w, number, offset)
    return np.einsum("ha,wb,abd->hwd", rows, cols, grid) if number is float else \
        np.tensordot(rows, np.tensordot(cols, grid, (1, 1)), (1, 1))


if __name__ == "__main__":
    for line in matrix(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Fraction):
        print("{" + ", ".join(repr(float(v)) for v in line) + "},  // " + ", ".join(str(v) for v in line))
