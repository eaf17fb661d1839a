"""The formulas, implemented independently from the papers: mpmath where a value must be the nearest one, NumPy in
float64 where many values must be close. Nothing here comes from the C code."""
import functools
import math
from fractions import Fraction

import mpmath
import numpy as np
from mpmath import mpf

mpmath.mp.prec = 220  # positions of 41 bits, frequencies and angles of 2^-160 error: enough to round to 53 bits and know it

# significant bits, exponent of the smallest subnormal, of the largest power of two
FORMATS = {"f16": (11, -24, 15), "bf16": (8, -133, 127), "f32": (24, -149, 127), "f64": (53, -1074, 1023)}


def nearest(x, dtype):
    """The value of a dtype nearest to a real, ties to even, as a Python float (which holds all of them)."""
    bits, smallest, largest = FORMATS[dtype]
    x = mpf(x)
    if x == 0:
        return 0.0
    _, _, e, n_bits = x._mpf_
    exponent = e + n_bits - 1  # the floor of its logarithm
    quantum = max(exponent - bits + 1, smallest)
    value = mpmath.nint(x / mpf(2) ** quantum) * mpf(2) ** quantum
    if abs(value) >= mpf(2) ** (largest + 1):
        return math.copysign(math.inf, float(mpmath.sign(x)))
    return float(value)


def to_bf16(doubles):
    """The nearest bf16 of each double, ties to even, as f32; one rounding, so not by way of f32."""
    with np.errstate(invalid="ignore"):
        quantum = 2.0 ** np.maximum(np.frexp(doubles)[1] - 8, -133)
        return np.where(np.isfinite(doubles), np.rint(doubles / quantum) * quantum, doubles).astype("<f4")


def ulp(x, dtype="f64"):
    bits, smallest, _ = FORMATS[dtype]
    return 2.0 ** max(math.frexp(x)[1] - bits, smallest)


# ---- Sinusoids and rotary angles -------------------------------------------------------------------------------------


def frequency(base, i, denominator):
    """base^(-i/denominator), exact but for 2^-200."""
    return mpmath.power(mpf(base), -mpf(i) / mpf(denominator))


def rope_frequency(c, rotary_dim=64, base=10000.0):
    return frequency(base, 2 * c, rotary_dim)


def rope_angle(p, c, rotary_dim=64, base=10000.0, direction=1):
    return direction * mpf(p) * rope_frequency(c, rotary_dim, base)


def sinusoidal_columns(dim, base=10000.0, layout="interleaved", freq_shift=0, odd="paper", flip_sin_to_cos=False,
                       angle_scale=1.0):
    """The contents of each column: ("sin" or "cos", frequency), or None for the zero column that pads an odd width."""
    width = dim + 1 if dim % 2 and odd == "truncate" else dim
    half = width // 2
    n_sines, n_cosines = (half + 1, half) if width % 2 and odd == "paper" else (half, half)
    if freq_shift:
        denominator = mpf(half) - mpf(freq_shift)
    else:
        denominator = mpf(width) / 2 if odd == "paper" else mpf(half)
    sines = [("sin", mpf(angle_scale) * (frequency(base, i, denominator) if i else mpf(1))) for i in range(n_sines)]
    cosines = [("cos", w) for _, w in sines[:n_cosines]]
    columns = interleave(sines, cosines, flip_sin_to_cos) if layout == "interleaved" else \
        (cosines + sines if flip_sin_to_cos else sines + cosines)
    return (columns + [None] * dim)[:dim]


def interleave(sines, cosines, flip):
    out = []
    for i, sine in enumerate(sines):
        pair = [sine, cosines[i]] if i < len(cosines) else [sine]
        out += pair[::-1] if flip else pair
    return out


def wave(column, p):
    if column is None:
        return mpf(0)
    function = mpmath.sin if column[0] == "sin" else mpmath.cos
    return function(mpf(p) * column[1])


@functools.lru_cache(1 << 16)
def dyadic(x):
    """(m, e) with x = m 2^e, exactly; x is a whole number, a double, a Fraction of a power of two or an mpf."""
    if isinstance(x, int):
        return x, 0
    if isinstance(x, mpf):
        sign, m, e, _ = x._mpf_
        return -m if sign else m, e
    m, denominator = (x if isinstance(x, Fraction) else float(x)).as_integer_ratio()
    return m, 1 - denominator.bit_length()


FINE = 320  # bits after the point of turns


def phases(places, frequencies, times_pi=False):
    """[n, C] in float64: place times frequency (radians; half turns if times_pi) without its whole turns, which are taken away exactly."""
    turn = mpf(2) ** FINE / (2 if times_pi else 2 * mpmath.pi)
    steps, half, whole = [int(mpmath.nint(mpf(w) * turn)) for w in frequencies], 1 << FINE - 1, 1 << FINE
    out = np.empty((len(places), len(steps)))
    for i, (m, e) in enumerate(map(dyadic, places)):
        for c, step in enumerate(steps):
            turns = m * step << e if e >= 0 else m * step >> -e
            out[i, c] = ((turns + half & whole - 1) - half) / whole
    return 2 * np.pi * out


# ---- ALiBi -------------------------------------------------------------------------------------------------------------


def alibi_slopes(num_heads, bias_max=8):
    """As reals: powers of two of exact exponents; the odd terms of the sequence twice as long are appended."""
    n = 1 << (num_heads.bit_length() - 1)
    exponents = [mpf(bias_max) * (h + 1) / n for h in range(n)]
    exponents += [mpf(bias_max) * (2 * t + 1) / (2 * n) for t in range(num_heads - n)]
    return [mpf(2) ** -e for e in exponents]


def sees(q, k, causal=False, window=None, window_right=None):
    """Whether the query at q sees the key at k; arrays of them too."""
    left = math.inf if window is None else window
    right = window_right if window_right is not None else left - 1
    return (q - k < left) & (k - q <= (min(right, 0) if causal else right))


def alibi(form, slope, q_positions, k_positions, key_mask=None, slope_right=None):
    """One head's bias [q, k] in float64, without what hides keys."""
    q, k = np.asarray(q_positions, float)[:, None], np.asarray(k_positions, float)[None, :]
    keep = np.ones(k.shape[1], bool) if key_mask is None else np.asarray(key_mask, bool)
    rel = k - q
    return 0.0 + {
        "symmetric": lambda: -slope * np.abs(rel),
        "relative": lambda: np.where(rel <= 0, slope * rel, 0.0),
        "asymmetric": lambda: np.where(rel <= 0, slope * rel, -(slope if slope_right is None else slope_right) * rel),
        "key": lambda: slope * k + 0 * q,
        "key_end": lambda: slope * (k - k[0, -1]) + 0 * q,
        "key_mask": lambda: slope * ((np.cumsum(keep) - 1) * keep)[None, :] + 0 * q,
    }[form]()


from truth.rotary import at_angles as turned, at_positions as rotate  # noqa: E402, F401  (rotary needs what is above)
