"""Interpolation of one axis, written once more as a whole matrix: out = matrix @ in, every source index looked at for every
output, so there are no windows, taps or clamped indices to get wrong. Semantics are those of torch.nn.functional.interpolate
(ATen/native/UpSample.h, cpu/UpSampleKernel.cpp), timm's resample_abs_pos_embed and Qwen3-VL's fast_pos_embed_interpolate.

`number` chooses the arithmetic: float gives float64, fractions.Fraction exact rationals; constants in the C tests come from
the latter. Print some: python3 tests/truth/resample.py bicubic 4 7"""
import sys
from fractions import Fraction

import numpy as np

KINDS = ("bicubic", "bicubic_antialias", "bilinear", "bilinear_aligned", "bilinear_antialias")


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


def antialiased_row(x, n_in, n_out, number, offset, kernel):
    """The kernel, stretched when shrinking, over the existing samples and normalised to sum 1."""
    stretch = max(number(n_in) / (number(n_out) + number(offset)), number(1))
    w = [kernel((number(i) - x) / stretch) for i in range(n_in)]
    return [v / sum(w) for v in w]


def folded_row(x, n_in, number, kernel):
    """A kernel over samples beyond the border too; those have the border's value."""
    row = [number(0)] * n_in
    for i in range(-3, n_in + 3):
        row[min(max(i, 0), n_in - 1)] += kernel(number(i) - x)
    return row


def matrix(kind, n_in, n_out, number=float, offset=0, cubic_a=None):
    """[n_out, n_in] weights; a float64 array, or an object array of exact numbers."""
    rows = []
    a = number(cubic_a) if cubic_a is not None else -number(1) / number(2) if kind == "bicubic_antialias" else -number(3) / number(4)
    for x in source_coordinates(kind, n_in, n_out, number, offset):
        if kind.endswith("_antialias"):
            kernel = triangle if kind == "bilinear_antialias" else lambda d: keys_cubic(d, a)
            rows.append(antialiased_row(x, n_in, n_out, number, offset, kernel))
        elif kind == "bicubic":
            rows.append(folded_row(x, n_in, number, lambda d: keys_cubic(d, a)))
        else:
            rows.append(folded_row(max(x, number(0)), n_in, number, triangle))
    return np.array(rows, float if number is float else object).reshape(n_out, n_in)


def resample_grid(kind, grid, h, w, number=float, offset=0, cubic_a=None):
    """grid [g, g2, dim] read as [h, w, dim]."""
    grid = np.asarray(grid, float) if number is float else np.asarray(grid, object)
    rows, cols = (matrix(kind, *sizes, number, offset, cubic_a) for sizes in ((grid.shape[0], h), (grid.shape[1], w)))
    return np.einsum("ha,wb,abd->hwd", rows, cols, grid) if number is float else \
        np.tensordot(rows, np.tensordot(cols, grid, (1, 1)), (1, 1))


# ---- In float32 ---------------------------------------------------------------------------------------------------------------


def horner(x, *factors):
    """Of decreasing powers."""
    y = np.zeros_like(x)
    for c in factors:
        y = y * x + np.float32(c)
    return y


def cubic_f32(d, a):
    """In the steps of torch's cubic_convolution1 and 2."""
    d = np.abs(d)
    far = horner(d, a, -5 * a, 8 * a, -4 * a)
    return np.where(d >= 2, np.float32(0), np.where(d < 1, horner(d, a + 2, -(a + 3), 0, 1), far))


def matrix_f32(kind, n_in, n_out, offset=0, is_fused=False):
    """[n_out, n_in] weights in the steps of torch's CPU kernels, which compute the scale and the coordinates in float32. is_fused: the
    product of both is not rounded before something is subtracted, as where a compiler contracts the two to one instruction. So is torch
    1.13 on x86: in 27 sizes its bilinear tables are within 4 roundings of these, cubic ones, whose polynomials it contracts too, within
    40; the exact ones are 100 away."""
    f, product = np.float32, np.float64 if is_fused else np.float32
    row, i = np.arange(n_out)[:, None], np.arange(n_in, dtype=f)
    o = row.astype(product)
    if kind == "bilinear_aligned":
        x = product(f(n_in - 1) / f(max(n_out - 1, 1))) * o
    else:
        scale = f(n_in / (n_out + offset))
        x = product(scale) * (o + product(0.5)) - product(0.5)
    if kind.endswith("_antialias"):
        distance = (i - (x.astype(f) + f(0.5)) + f(0.5)) * (f(1) / max(scale, f(1)))
        weights = cubic_f32(distance, -0.5) if kind == "bicubic_antialias" else np.maximum(f(1) - np.abs(distance), f(0))
        return weights / weights.sum(1, keepdims=True)
    x = x if kind == "bicubic" else np.maximum(x, 0)
    first, out = np.floor(x).astype(int), np.zeros((n_out, n_in), f)
    t = (x - first).astype(f)
    taps = [f(1) - t, t] if kind != "bicubic" else [cubic_f32(d, -0.75) for d in (t + f(1), t, f(1) - t, f(2) - t)]
    for k, weights in enumerate(taps, 1 - len(taps) // 2):
        np.add.at(out, (row, np.clip(first + k, 0, n_in - 1)), weights)
    return out


def resample_grid_f32(kind, grid, h, w, offset=0, is_fused=False):
    """grid [g, g2, dim] of float32 read as [h, w, dim], columns first."""
    rows, cols = (matrix_f32(kind, grid.shape[axis], n, offset, is_fused) for axis, n in enumerate((h, w)))
    return np.einsum("ha,awd->hwd", rows, np.einsum("wb,abd->awd", cols, grid))


if __name__ == "__main__":
    for line in matrix(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Fraction):
        print("{" + ", ".join(repr(float(v)) for v in line) + "},  // " + ", ".join(str(v) for v in line))
