"""Absolute encodings, implemented independently from the papers. A closed formula is a list of columns: exact()
evaluates one column with mpmath, table() evaluates all of them with NumPy in float64. Encodings that use weights are
NumPy in float64."""
import math
from statistics import NormalDist
from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mpf

import truth

# ---- Columns -----------------------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """function(coordinate[axis] * frequency); axis None: function(sum over the axes of coordinate times frequencies)."""
    function: str  # sin, cos, of pi times the argument: sinpi, cospi; x: the coordinate itself
    axis: int
    frequency: mpf


EXACT = {"sin": mpmath.sin, "cos": mpmath.cos, "sinpi": mpmath.sinpi, "cospi": mpmath.cospi, "x": lambda x: x}
FLOAT = {"sin": np.sin, "cos": np.cos, "sinpi": np.sin, "cospi": np.cos}


def exact(column, coordinates):
    """One value as a real; coordinates: of one row, a number per axis. None is a column of zeros."""
    if column is None:
        return mpf(0)
    if column.axis is None:
        return EXACT[column.function](mpmath.fdot(map(mpf, coordinates), column.frequency))
    return EXACT[column.function](mpf(coordinates[column.axis]) * column.frequency)


def table(columns, coordinates):
    """[n, dim] in float64; coordinates: rows of numbers per axis. Whole turns of angles are taken away exactly."""
    out = np.zeros((len(coordinates), len(columns)))
    for j, column in enumerate(columns):
        if column is None:
            continue
        axes = [(column.axis, column.frequency)] if column.axis is not None else list(enumerate(column.frequency))
        if column.function == "x":
            out[:, j] = [float(row[column.axis]) * float(column.frequency) for row in coordinates]
            continue
        angle = sum(truth.phases([row[axis] for row in coordinates], [w], column.function[3:] == "pi") for axis, w in axes)
        out[:, j] = FLOAT[column.function](angle[:, 0])
    return out


def grid_coordinates(grid):
    """Row-major, last axis fastest, from 0 on each axis."""
    return [tuple(int(i) for i in index) for index in np.ndindex(*grid)]


# ---- Sinusoids over several axes -------------------------------------------------------------------------------------


def default_axes_dim(width, axes):
    each = 2 * (width // (2 * axes))
    return [width - each * (axes - 1)] + [each] * (axes - 1)


def one_axis(axis, width, **parameters):
    """The 1-D encoding's columns of this axis."""
    columns = truth.sinusoidal_columns(width, **parameters)
    return [column and Column(column[0], axis, column[1]) for column in columns]


def axial(dim, axes, axes_dim=None, axis_order=None, **parameters):
    """axes_dim[k] is the width of axis k, wherever axis_order puts its block."""
    widths = axes_dim or default_axes_dim(dim, axes)
    return [column for axis in axis_order or range(axes) for column in one_axis(axis, widths[axis], **parameters)]


def detr(dim, axes=2, temperature=10000.0):
    """y then x, F = dim/2 columns each: temperature^(-2(j//2)/F), sine at even j."""
    width = dim // 2
    return [Column("cos" if j % 2 else "sin", axis, truth.frequency(temperature, 2 * (j // 2), width))
            for axis in (0, 1) for j in range(width)]


def detr_coordinates(grid, normalize=False, angle_scale=2 * math.pi, rows=None):
    """cumsum of ones starts at 1, unless other rows are given; normalised by the last one + 1e-6."""
    rows = rows or [tuple(i + 1 for i in row) for row in grid_coordinates(grid)]
    return [tuple(mpf(x) / (mpf(length) + mpf("1e-6")) * mpf(angle_scale) if normalize else mpf(x) for x, length in zip(row, grid)) for row in rows]


def mae(dim, axes=2, base=10000.0):
    """The column's (w) block first."""
    return one_axis(1, dim // 2, layout="half", base=base) + one_axis(0, dim // 2, layout="half", base=base)


def timm(dim, axes=2, base=10000.0, interleave_sin_cos=False):
    """sin(h) sin(w) cos(h) cos(w), or sin(h) cos(h) sin(w) cos(w); q = dim/4 frequencies base^(-i/q) each."""
    quarter, blocks = dim // 4, [(function, axis) for function in ("sin", "cos") for axis in (0, 1)]
    if interleave_sin_cos:
        blocks.sort(key=lambda block: block[1])
    return [Column(function, axis, truth.frequency(base, i, quarter)) for function, axis in blocks for i in range(quarter)]


def multidim(dim, axes, base=10000.0):
    """tatp22: blocks of 2*ceil(d/(2n)) by axis, interleaved, cut to d."""
    width = 2 * -(-dim // (2 * axes))
    return [column for axis in range(axes) for column in one_axis(axis, width, base=base)][:dim]


def vjepa(dim, axes, base=10000.0, uniform_power=False):
    """Row first; in three axes time has half, row and column a quarter, or all have the same, cut to dim."""
    widths = [dim // 2, dim // 2] if axes == 2 else [2 * -(-dim // 6)] * 3 if uniform_power else [dim // 2, dim // 4, dim // 4]
    return [column for axis in range(axes) for column in one_axis(axis, widths[axis], layout="half", base=base)][:dim]


def cogvideox(dim, axes=3, base=10000.0):
    """A quarter of time, then 3/8 of the column, 3/8 of the row."""
    return [column for axis, eighths in ((0, 2), (2, 3), (1, 3)) for column in one_axis(axis, dim // 8 * eighths, layout="half", base=base)]


STYLES = {"axial": axial, "detr": detr, "mae": mae, "timm": timm, "multidim": multidim, "vjepa": vjepa, "cogvideox": cogvideox}


# ---- Fourier features --------------------------------------------------------------------------------------------------


def evenly(start, stop, n):
    """n points from start to stop, both ends included; one point is the start, as torch.linspace has it."""
    return [mpf(start) + (mpf(stop) - mpf(start)) * i / max(n - 1, 1) for i in range(n)]


def nerf(axes, num_freqs=10, include_input=True, log_sampling=True, multiply_pi=False):
    """[x, sin(f0 x), cos(f0 x), sin(f1 x), ..], each part as wide as x."""
    powers = [mpf(2) ** k for k in range(num_freqs)]
    frequencies = powers if log_sampling else evenly(1, powers[-1], num_freqs)
    functions = ("sinpi", "cospi") if multiply_pi else ("sin", "cos")
    inputs = [Column("x", axis, mpf(1)) for axis in range(axes)] if include_input else []
    return inputs + [Column(f, axis, w) for w in frequencies for f in functions for axis in range(axes)]


def perceiver(lengths, num_bands=64, max_resolution=None, concat_pos=True, sine_only=False):
    """[x, sines dimension by dimension, cosines likewise] of pi f x, f from 1 to res/2."""
    waves = [(axis, w) for axis, res in enumerate(max_resolution or lengths) for w in evenly(1, mpf(res) / 2, num_bands)]
    inputs = [Column("x", axis, mpf(1)) for axis in range(len(lengths))] if concat_pos else []
    return inputs + [Column(f, axis, w) for f in ("sinpi", "cospi")[:1 if sine_only else 2] for axis, w in waves]


def perceiver_coordinates(lengths):
    """Every axis spread over [-1, 1]."""
    axes = [evenly(-1, 1, n) for n in lengths]
    return [tuple(axis[i] for axis, i in zip(axes, row)) for row in grid_coordinates(lengths)]


def gaussian(b):
    """[cos(2 pi B x), sin(2 pi B x)]; b [num_freqs, axes]."""
    rows = [[2 * mpf(float(v)) for v in row] for row in b]
    return [Column(f, None, row) for f in ("cospi", "sinpi") for row in rows]


# ---- integer, binary ---------------------------------------------------------------------------------------------------


def integer(positions, normalize="none", pe_scale=1.0):
    """The one value of each row, as reals."""
    n = len(positions)
    divisor = {"none": 1, "length": n, "length_minus_one": max(n - 1, 1)}[normalize]
    at = [0 if normalize == "length_minus_one" and n == 1 else p for p in positions]
    return [mpf(pe_scale) * mpf(p) / divisor for p in at]


def binary(positions, dim, bits=None, bit_order="msb", low=0.0, high=1.0):
    bits = bits or min(dim, 32)
    stretched = [j * bits // dim for j in range(dim)]
    shifts = [bits - 1 - k if bit_order == "msb" else k for k in stretched]
    return np.array([[high if int(p) >> b & 1 else low for b in shifts] for p in positions], float)


# ---- combine -----------------------------------------------------------------------------------------------------------


def combine(x, pe, how="add", x_scale=1.0, pe_scale=1.0):
    """x [..., n, dim], pe [n, dim]; scales may be "sqrt_dim". multiply_residual takes its factor from the scaled parts too."""
    x_scale, pe_scale = (math.sqrt(x.shape[-1]) if s == "sqrt_dim" else s for s in (x_scale, pe_scale))
    x, pe = np.asarray(x, float) * x_scale, np.asarray(pe, float) * pe_scale
    if how == "concat":
        return np.concatenate([x, np.broadcast_to(pe, x.shape[:-1] + pe.shape[-1:])], -1)
    return {"add": lambda: x + pe, "multiply": lambda: x * pe, "multiply_residual": lambda: x * (1 + pe)}[how]()


# ---- Seeded weights (core/schemes/SCHEMES.md) --------------------------------------------------------------------------

WORD = 2 ** 64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def fnv1a64(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & WORD
    return value


def splitmix64(z):
    """The finalizer."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def seeded(name, shape, seed=0, std=0.02):
    """float32: std times the normal quantile of 53 bits hashed from seed, tensor name and flat index."""
    start = seed * GOLDEN & WORD ^ fnv1a64(name)
    high = [splitmix64(start + (i + 1) * GOLDEN & WORD) >> 11 for i in range(math.prod(shape))]
    quantile = NormalDist().inv_cdf
    return np.array([std * quantile((k + 0.5) / 2 ** 53) for k in high], float).astype("f4").reshape(shape)
