"""What ggml computes for rotary positions, written from the operator's formulas (ggml-cpu, ops.cpp: rope_yarn and the
two caches of rope; ggml.c: the ends of the ramp), not from posenc: frequencies in mpmath, the float32 steps in NumPy.

Letters: r rotated channels, s factor, O original length, d divisors (freq_factors), ext the weight of the ramp.
"""
import numpy as np
from mpmath import ceil, cos, floor, log, mp, mpf, pi, sin

from . import scaling as exact

mp.dps = 60

STILL = 1e20  # a divisor that leaves the pair where it is


def ramp_ends(r, base, original, beta_fast=32, beta_slow=1):
    def pair_of(turns):
        return r * log(mpf(original) / (2 * pi * mpf(turns))) / (2 * log(mpf(base)))
    return max(mpf(0), floor(pair_of(beta_fast))), min(mpf(r - 1), ceil(pair_of(beta_slow)))


def mixed(c, ends, ext):
    """The weight of the frequency that is not divided by s."""
    low, high = ends
    y = (c - low) / max(mpf(0.001), high - low)
    return (1 - min(mpf(1), max(mpf(0), y))) * mpf(ext)


def frequencies(r, base, s=1, divisors=None, yarn=None):
    """yarn: (O, ext, beta_fast, beta_slow); None: every pair is divided by s."""
    divisors = divisors or [1] * (r // 2)
    ends = ramp_ends(r, base, yarn[0], *yarn[2:]) if yarn else None
    out = []
    for c in range(r // 2):
        w = mpf(0) if divisors[c] >= STILL else mpf(base) ** (-mpf(2 * c) / r) / mpf(divisors[c])
        k = mixed(c, ends, yarn[1]) if yarn else 0
        out.append(w / mpf(s) * (1 - k) + w * k)
    return out


def magnitude(s, k):
    return mpf(1) if s <= 1 else 1 + mpf(k) * log(mpf(s)) / 10


def imrope_axis(c, sections):
    """0 time, 1 height, 2 width; 3: the fourth, which is 0 in text and images."""
    t, h, w = sections[:3]
    if c % 3 == 1 and c < 3 * h:
        return 1
    if c % 3 == 2 and c < 3 * w:
        return 2
    return 0 if c % 3 == 0 and c < 3 * t else 3


def nearest_f32(x):
    return exact.nearest_float32(mpf(x))


def angles_f32(r, base, positions, s=1, divisors=None, ends=None, ext=1, axis_of=None):
    """The angles [n, r/2] of ggml-cpu's float32 steps, with powf rounded to nearest. positions: [n], or [axes][n] where
    axis_of gives the axis of each pair (all axes advance by t at each pair). ends: of the ramp; None: no ramp."""
    f = np.float32
    pairs, rows = r // 2, np.array(positions, np.float64).reshape(-1, np.shape(positions)[-1])
    t = nearest_f32(mpf(float(f(base))) ** mpf(float(f(f(-2) / f(r)))))
    divisors = divisors or [1] * pairs
    n = rows.shape[1]
    out = np.empty((n, pairs), f)
    theta = rows.astype(f)
    scale = f(f(1) / f(s))
    for c in range(pairs):
        axis = axis_of(c) if axis_of else 0
        x = theta[axis] / f(divisors[c]) if axis < len(theta) else np.zeros(n, f)
        y = scale * x
        if ends and ext:
            low, high = f(float(ends[0])), f(float(ends[1]))
            step = f(f(c) - low) / max(f(0.001), f(high - low))
            k = f(f(f(1) - min(f(1), max(f(0), step))) * f(ext))
            y = y * f(f(1) - k) + x * k
        out[:, c] = y
        theta = theta * t
    return out


def turns_f32(r, base, positions, s=1, divisors=None, yarn=None, axis_of=None):
    """The angles, with the ends of yarn's ramp."""
    ends = ramp_ends(r, base, yarn[0], *yarn[2:]) if yarn else None
    return angles_f32(r, base, positions, s, divisors, ends, yarn[1] if yarn else 1, axis_of)


def table_f32(r, base, positions, g=1.0, **rules):
    """cos and sin [n, r/2] of those angles, with cosf and sinf rounded to nearest."""
    angles, f = turns_f32(r, base, positions, **rules), np.float32
    return np.array([[[nearest_f32(turn(mpf(float(y)))) * f(g) for y in row] for row in angles] for turn in (cos, sin)])
