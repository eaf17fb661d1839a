"""Biases on the logits, from the papers' formulas: T5's buckets with integers, KERPLE and Sandwich in mpmath, FIRE in NumPy.
Nothing here comes from the C code."""
import functools
import math
from fractions import Fraction

import mpmath
import numpy as np
from mpmath import mpf

import truth


def masked(bias, q, k, key_mask=None, causal=False, window=None, window_right=None):
    """[heads, q, k] with -inf where the key is not seen."""
    seen = truth.sees(np.asarray(q)[:, None], np.asarray(k)[None], causal, window, window_right)
    seen &= np.ones(len(k), bool) if key_mask is None else np.asarray(key_mask, bool)
    return np.where(seen, bias, -np.inf)


def exactly(position):
    return int(position) if position == int(position) else Fraction(position)


def distance(q, k):
    """|q - k| of two doubles, exactly."""
    return abs(Fraction(q) - Fraction(k))


def distances(q, k):
    """|q - k| of doubles [q, k]; a difference is rounded once."""
    return np.abs(np.subtract.outer(np.asarray(q), np.asarray(k))).astype(float)


@functools.cache
def log_float32(x):
    return np.float32(truth.nearest(mpmath.log(mpf(x)), "f32"))


# ---- T5 ----------------------------------------------------------------------------------------------------------------


def t5_bucket(rel, num_buckets=32, max_distance=128, bidirectional=True):
    """rel = k - q. The logarithm's floor is the largest s with (n/e)^steps >= (max_distance/e)^s, which integers tell; a
    fraction of a distance is dropped."""
    side, off, n = num_buckets, 0, max(-rel, 0)
    if bidirectional:
        side, off, n = num_buckets // 2, num_buckets // 2 if rel > 0 else 0, abs(rel)
    e, n = side // 2, math.floor(n)
    if n < e:
        return off + n
    steps, s = side - e, 0
    while s < steps - 1 and n ** steps * e ** (s + 1) >= max_distance ** (s + 1) * e ** steps:
        s += 1
    return off + e + s


def t5_bucket_float32(rel, num_buckets=32, max_distance=128, bidirectional=True):
    """transformers' T5Attention._relative_position_bucket in float32: log(n/e) / log(max_distance/e) * (side - e)."""
    side, off, n = num_buckets, 0, max(-rel, 0)
    if bidirectional:
        side, off, n = num_buckets // 2, num_buckets // 2 if rel > 0 else 0, abs(rel)
    e = side // 2
    if n < e:
        return off + n
    f = np.float32
    return off + min(side - 1, e + int(log_float32(float(f(n) / f(e))) / f(math.log(max_distance / e)) * f(side - e)))


def t5_buckets(q, k, arith="exact", **parameters):
    bucket, (q, k) = t5_bucket_float32 if arith == "float32" else t5_bucket, (list(map(exactly, at)) for at in (q, k))
    known = {rel: bucket(rel, **parameters) for rel in {b - a for a in q for b in k}}
    return np.array([[known[b - a] for b in k] for a in q], "i4")


def t5(table, q, k, table_scale=1.0, **parameters):
    """[heads, q, k] float64."""
    return np.asarray(table, float)[t5_buckets(q, k, **parameters)].transpose(2, 0, 1) * table_scale + 0.0


# ---- KERPLE ------------------------------------------------------------------------------------------------------------


def kerple_exact(kind, r1, r2, n):
    n = mpf(n.numerator) / n.denominator
    if n == 0:
        return mpf(0)
    return -mpf(r1) * (mpmath.log1p(mpf(r2) * n) if kind == "log" else mpmath.power(n, mpf(r2)))


def kerple(kind, r1, r2, q, k):
    n = distances(q, k)
    return np.stack([-a * (np.log1p(b * n) if kind == "log" else np.where(n > 0, n, 0.0) ** b) + 0.0 for a, b in zip(r1, r2)])


def kerple_float32(r1, r2, q, k):
    """kind log with each step rounded to float32."""
    f = np.float32
    n = distances(q, k).astype(f)
    logarithm = [np.vectorize(lambda x: log_float32(float(x)))(f(1) + f(b) * n) for b in r2]
    return np.stack([-f(a) * table + f(0) for a, table in zip(r1, logarithm)])


# ---- FIRE --------------------------------------------------------------------------------------------------------------


def fire(w1, b1, w2, b2, q, k, c=0.1, init_l=512.0, l_mult=1.0):
    """[heads, q, k] float64: the paper's appendix; the query's row sets the normaliser."""
    q, k = np.asarray(q, float)[:, None], np.asarray(k, float)[None, :]
    x = np.log1p(np.abs(c * (q - k))) / (np.log1p(np.abs(c * np.maximum(q, abs(l_mult * init_l)))) + 1e-6)
    hidden = np.maximum(x[..., None] @ np.asarray(w1, float).T + np.asarray(b1, float), 0)
    return (hidden @ np.asarray(w2, float).T + np.asarray(b2, float)).transpose(2, 0, 1)


# ---- Sandwich ----------------------------------------------------------------------------------------------------------


def sandwich_sum(n, bar_dim=128, base=10000.0):
    n = mpf(n.numerator) / n.denominator
    return sum(mpmath.cos(n * truth.frequency(base, 2 * t, bar_dim)) for t in range(bar_dim // 2))


def sandwich_exact(h, num_heads, n, bar_dim=128, base=10000.0):
    return sandwich_sum(n, bar_dim, base) * num_heads / (8 * (h + 1))


def sandwich(num_heads, q, k, bar_dim=128, base=10000.0):
    q, k = (list(map(exactly, at)) for at in (q, k))
    n = [[abs(a - b) for b in k] for a in q]
    known, w = sorted({d for row in n for d in row}), [truth.frequency(base, 2 * t, bar_dim) for t in range(bar_dim // 2)]
    sums = dict(zip(known, np.cos(truth.phases(known, w)).sum(-1)))
    return np.array([[sums[d] for d in row] for row in n])[None] * (num_heads / (8 * np.arange(1, num_heads + 1)))[:, None, None]
