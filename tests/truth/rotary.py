"""Rotary tables over several axes and xPos, written independently from the papers. A channel table is a
list of Channel, one per pair; coordinates are rows with a number per axis: angle[n, c] = coordinate[axis(c)] * w(c)."""
from typing import NamedTuple

import mpmath
import numpy as np
from mpmath import mpf

import truth
from truth.absolute import default_axes_dim, evenly, grid_coordinates


class Channel(NamedTuple):
    axis: int
    frequency: mpf
    times_pi: bool = False  # kept apart, so that multiples of pi are exact


# ---- Channel tables ----------------------------------------------------------------------------------------------------


def ladder(width, base):
    return [truth.frequency(base, 2 * i, width) for i in range(width // 2)]


def axial(width, axes, axes_dim=None, axis_order=None, base=10000.0):
    """Each axis its own ladder; axes_dim[k] is the width of axis k, wherever axis_order puts its block."""
    widths = axes_dim or default_axes_dim(width, axes)
    return [Channel(axis, w) for axis in axis_order or range(axes) for w in ladder(widths[axis], base)]


def pixel(width, axes, axes_dim=None, max_freq=10):
    """lucidrains: pi * linspace(1, max_freq/2, pairs of the axis)."""
    widths = axes_dim or default_axes_dim(width, axes)
    return [Channel(axis, w, True) for axis in range(axes) for w in evenly(1, mpf(max_freq) / 2, widths[axis] // 2)]


def pixtral(width, base=10000.0):
    """One ladder over the head: its even entries on rows, then its odd ones on columns."""
    rungs = ladder(width, base)
    return [Channel(0, w) for w in rungs[0::2]] + [Channel(1, w) for w in rungs[1::2]]


def on_one_ladder(axes_of_channels, base):
    rungs = ladder(2 * len(axes_of_channels), base)
    return [Channel(axis, w) for axis, w in zip(axes_of_channels, rungs)]


def mrope(width, mrope_section, base=10000.0):
    """Contiguous: t, then h, then w."""
    assert sum(mrope_section) == width // 2
    return on_one_ladder([axis for axis, n in enumerate(mrope_section) for _ in range(n)], base)


def mrope_interleaved(width, mrope_section, base=10000.0):
    """t h w t h w .. up to three times the section, t elsewhere; the sum is not checked."""
    axes = [c % 3 if c % 3 and c < 3 * mrope_section[c % 3] else 0 for c in range(width // 2)]
    return on_one_ladder(axes, base)


def openpangu(sections):
    """Axes take turns, the one with the smallest part of its pairs placed first, none twice in a row while another has pairs left;
    of three sections the first keeps a pair for the end."""
    left = [n - (axis == 0 and len(sections) == 3) for axis, n in enumerate(sections)]
    placed, axes = [0] * len(left), []
    while sum(left) > sum(placed):
        open_ = [a for a in range(len(left)) if placed[a] < left[a]]
        axes.append(min([a for a in open_ if [a] != axes[-1:]] or open_, key=lambda a: (placed[a] / left[a], a)))
        placed[axes[-1]] += 1
    return axes + [0] * (len(sections) == 3)


def on_own_ladders(axes_of_channels, bases):
    """The k-th of an axis's m pairs has base^(-2k/2m)."""
    count = {axis: axes_of_channels.count(axis) for axis in axes_of_channels}
    return [Channel(axis, truth.frequency(bases[axis], 2 * axes_of_channels[:c].count(axis), 2 * count[axis])) if axis >= 0 else Channel(0, mpf(0))
            for c, axis in enumerate(axes_of_channels)]


def videorope(width, mrope_section, base=10000.0):
    """h w h w .. first, t last."""
    n_time, n_space = mrope_section[0], mrope_section[1] + mrope_section[2]
    return on_one_ladder([1 + c % 2 for c in range(n_space)] + [0] * n_time, base)


def dinov3(head_dim, base=10000.0):
    """2 pi base^(-4i/head_dim), i < head_dim/4, for y, then for x."""
    return [Channel(axis, 2 * truth.frequency(base, 4 * i, head_dim), True)
            for axis in (0, 1) for i in range(head_dim // 4)]


# ---- Coordinates, order of the rows ------------------------------------------------------------------------------------


RULES = {
    "index": lambda i, n, ref: mpf(i),
    "one_based": lambda i, n, ref: mpf(i + 1),
    "normalized": lambda i, n, ref: 2 * (i + mpf(1) / 2) / n - 1,
    "centered": lambda i, n, ref: mpf(i - (n - n // 2)),
    "resized": lambda i, n, ref: mpf(i) / n * ref,
    "resized_floor": lambda i, n, ref: mpf(i * ref // n),
    "window": lambda i, n, ref: mpf(i + (ref - n) // 2),
    "half_centered": lambda i, n, ref: i + mpf(1) / 2,
    "pixel": lambda i, n, ref: evenly(-1, 1, n)[i],
}


def cropped(grid, ref_grid, crop_end="open"):
    """Rows and columns fitted into ref_grid with the same ratio of sides, in its middle (Python's round)."""
    sides, fitted = grid[-2:], list(ref_grid)
    tall = sides[0] / sides[1] > ref_grid[0] / ref_grid[1]
    fitted[tall] = round(ref_grid[1 - tall] / sides[1 - tall] * sides[tall])
    space = []
    for g, ref, size in zip(sides, ref_grid, fitted):
        start = round((ref - size) / 2)
        end, steps = mpf(start + size), g if crop_end == "open" else max(g - 1, 1)
        last = end if crop_end == "open" else end * (g - 1) / g
        space.append([start + i * (last - start) / steps if g > 1 else mpf(start) for i in range(g)])
    return [*([mpf(i) for i in range(n)] for n in grid[:-2]), *space]


def last_step(axes, axis_scale=None, axis_divisor=None, axis_shift=None):
    """x ← x·scale/divisor + shift on each axis."""
    ones = [1] * len(axes)
    return [[mpf(x) * mpf(s) / mpf(d) + mpf(t) for x in axis]
            for axis, s, d, t in zip(axes, axis_scale or ones, axis_divisor or ones, axis_shift or [0] * len(axes))]


def coordinates(grid, coords="index", ref_grid=None, order="row_major", spatial_merge_size=2, crop_end="open"):
    """Qwen-Image centers rows and columns; its frames count from 0."""
    if coords == "cropped":
        axes = cropped(grid, ref_grid, crop_end)
        rows = [tuple(axis[i] for axis, i in zip(axes, row)) for row in grid_coordinates(grid)]
        return rows if order == "row_major" else [rows[i] for i in merge_order(grid, spatial_merge_size)]
    rules = [RULES["index" if coords == "centered" and len(grid) > 2 and axis == 0 else coords] for axis in range(len(grid))]
    rows = [tuple(rule(i, n, ref) for rule, i, n, ref in zip(rules, row, grid, ref_grid or grid)) for row in grid_coordinates(grid)]
    return rows if order == "row_major" else [rows[i] for i in merge_order(grid, spatial_merge_size)]


def merge_order(grid, size):
    """Row-major indices in the order of vision towers: frame by frame, block by block, row by row inside a block."""
    height, width = grid[-2:]
    blocks = [(y, x) for y in range(0, height, size) for x in range(0, width, size)]
    frame = [(y + i) * width + x + j for y, x in blocks for i in range(size) for j in range(size)]
    n_frames = int(np.prod(grid[:-2]))
    return [f * height * width + i for f in range(n_frames) for i in frame]


# ---- Values ------------------------------------------------------------------------------------------------------------


def exact(function, channel, row, direction=1):
    """cos or sin of one angle as a real."""
    angle = direction * mpf(row[channel.axis]) * channel.frequency
    return getattr(mpmath, function + "pi" * channel.times_pi)(angle)


def tables(channels, rows, direction=1, attention_factor=1.0):
    """cos, sin [n, C] in float64."""
    angle = np.hstack([truth.phases([row[c.axis] for row in rows], [c.frequency], c.times_pi) for c in channels])
    return attention_factor * np.cos(angle), direction * attention_factor * np.sin(angle)


# ---- Layouts: blocks are the numbers of pairs per axis -----------------------------------------------------------------

IN_BLOCKS = ("half_per_axis", "vjepa2")


def spread(width, layout, blocks):
    """Blocks that hold a half layout of their own: of each axis, or the whole width."""
    return blocks if layout in IN_BLOCKS else [width // 2]


def expand(pairs, layout, blocks=()):
    """[n, C] to [n, r], a value for each member of a pair; vjepa2 keeps its tiling, which fits no pair."""
    if layout == "interleaved":
        return np.repeat(pairs, 2, -1)
    ends = np.cumsum(spread(2 * pairs.shape[-1], layout, blocks))[:-1]
    return np.concatenate([np.tile(part, 2) for part in np.split(pairs, ends, -1)], -1)


def members(width, layout, blocks=()):
    """First and second channel of each pair."""
    if layout in ("interleaved", "interleaved_to_half", "vjepa2"):
        return np.arange(0, width, 2), np.arange(1, width, 2)
    starts = np.cumsum([0, *spread(width, layout, blocks)[:-1]])
    first = np.concatenate([2 * start + np.arange(n) for start, n in zip(starts, spread(width, layout, blocks))])
    return first, first + np.repeat(spread(width, layout, blocks), spread(width, layout, blocks))


def rotate(x, cos, sin, layout="interleaved", blocks=(), rotary_offset=0):
    """x [..., n, head_dim] in float64; cos, sin [n, C]. Channels outside offset .. offset + 2C pass through."""
    x, width = np.asarray(x, float), 2 * cos.shape[-1]
    inside = slice(rotary_offset, rotary_offset + width)
    out, part = x.copy(), x[..., inside]
    first, second = members(width, layout, blocks)
    turned = np.empty_like(part)
    if layout == "vjepa2":
        swapped = np.stack([-part[..., second], part[..., first]], -1).reshape(part.shape)
        turned = part * expand(cos, layout, blocks) + swapped * expand(sin, layout, blocks)
    else:
        to_first, to_second = members(width, "half") if layout == "interleaved_to_half" else (first, second)
        turned[..., to_first] = part[..., first] * cos - part[..., second] * sin
        turned[..., to_second] = part[..., second] * cos + part[..., first] * sin
    out[..., inside] = turned
    return out


def at_angles(x, angle, layout="half", factor=1.0):
    """x [..., n, r]: each pair turned by its angle [..., n, r/2], and multiplied by factor."""
    return rotate(x, factor * np.cos(angle), factor * np.sin(angle), layout, (np.shape(x)[-1] // 2,))


def at_positions(x, positions, base=10000.0, layout="interleaved"):
    """x [..., n, head_dim]: pairs turned counter-clockwise by position times frequency."""
    return at_angles(x, np.asarray(positions, float)[:, None] * base ** (-2.0 * np.arange(np.shape(x)[-1] // 2) / np.shape(x)[-1]), layout)


# ---- xPos (arXiv 2212.10554) -------------------------------------------------------------------------------------------


def xpos_center(center, n, offset=0):
    """torchscale: half of the positions so far, rounded up; lucidrains: half of the rows."""
    return {"torchscale": -(-(n + offset) // 2), "lucidrains": n // 2}.get(center, center)


def xpos_exact(p, c, width=64, scale_base=512.0, gamma=0.4, center=0):
    """zeta(c)^((p - center)/scale_base), zeta(c) = (2c + gamma d)/((1 + gamma) d)."""
    gamma = mpf(gamma)
    zeta = (2 * c + gamma * width) / ((1 + gamma) * width)
    return mpmath.power(zeta, (mpf(p) - mpf(center)) / mpf(scale_base))


def xpos_scale(positions, width=64, scale_base=512.0, gamma=0.4, center=0):
    """[n, C] in float64."""
    zeta = (2 * np.arange(width // 2) + gamma * width) / ((1 + gamma) * width)
    return zeta ** ((np.asarray(positions, float)[:, None] - center) / scale_base)
