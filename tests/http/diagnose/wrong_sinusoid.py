"""Sinusoidal encodings as public code computes them wrongly: one tensor `encoding`."""
from dataclasses import dataclass, replace

import numpy as np

from wrong_rotary import RECIPES, of_positions, of_run
from wrong_tensors import LD, choose, float32_loss, largest

MAKES = ["layout_swapped", "sin_cos_swapped", "negated", "transposed", "off_by_one", "offset_other",
         "positions_reversed", "position_stride", "positions_constant", "position_reset", "position_no_reset", "positions_other",
         "scaled", "zero_row",
         "ladder_from_one", "base_other", "inv_freq_bf16", "inv_freq_f16", "angles_bf16", "axes_swapped", "freq_shift_other",
         "odd_other", "style_other", "exponent_per_column", "exponent_doubled", "sine_only"]
BASES = [1e4, 5e5, 1e6, 1e7, 150000.0, 160000.0, 100.0, 256.0, 500.0, 1000.0, 2000.0, 25000.0, 5e4, 1e5, 2e6, 5e6, 8e6, 5e7]
STYLES = ["axial", "detr", "mae", "timm", "multidim", "vjepa"]


@dataclass(frozen=True)
class Column:
    """sin or cos of position[axis] times w; a padded column has no function."""
    function: str
    axis: int
    w: object


@dataclass(frozen=True)
class Sinusoid:
    dtype: str
    at: np.ndarray  # [axes, n]
    sequence: dict
    dim: int
    base: float = 10000.0
    layout: str = "interleaved"
    freq_shift: int = 0
    odd: str = "paper"
    flip: bool = False
    style: str = None  # of a grid
    way: str = "plain"  # exponent_per_column, exponent_doubled, ladder_from_one, sine_only
    direction: int = 1  # no fault: the sign of angle_scale
    recipe: str = None
    factor: float = 1.0
    zero: int = None
    turned: bool = False
    channels = None  # as a rotary belief of one axis, to share its positions
    sends = "encoding"

    @property
    def n(self):
        return self.at.shape[1]

    def request(self):
        out = {"scheme": "sinusoidal", "dim": self.dim, "base": self.base, **self.sequence}
        if self.style:
            if self.style != "axial":
                out["style"] = self.style
            if self.style == "detr":
                out.update(temperature=out.pop("base"), channels_first=False)
            return out
        out["layout"] = self.layout
        if self.freq_shift:
            out["freq_shift"] = self.freq_shift
        if self.odd != "paper":
            out["odd"] = self.odd
        if self.flip:
            out["flip_sin_to_cos"] = True
        return out

    def data(self, rng):
        return None

    def sent(self, data):
        return {}

    def columns(self):
        return grid_columns(self) if self.style else line_columns(self)

    def values(self, data):
        columns, out = self.columns(), np.zeros((self.n, self.dim), LD if self.dtype == "f64" else float)
        start = 1 if self.style == "detr" else 0  # its cumulative sum of ones starts at 1
        for j, column in enumerate(columns):
            if column:
                out[:, j] = self.wave(column, self.direction * (self.at[column.axis] + start))
        if self.zero is not None:
            out[self.zero] = 0
        out = out * self.factor
        return {"encoding": out.T if self.turned else out}

    def wave(self, column, p):
        function = {"sin": np.sin, "cos": np.cos}[column.function]
        if not self.recipe:
            real = LD if self.dtype == "f64" else float
            return function(p.astype(real) * real(column.w))
        of_w, of_p, of_product, of_result = RECIPES[self.recipe]
        return of_result(function(of_product(of_p(p) * of_w(column.w)).astype(float)))

    def tolerance(self, name, values, u):
        columns = self.columns()
        w = np.array([float(c.w) if c else 0.0 for c in columns])
        ladders = {axis: np.unique([-float(c.w) for c in columns if c and c.axis == axis]) for axis in {c.axis for c in columns if c}}
        number = [np.searchsorted(ladders[c.axis], -float(c.w)) if c else 0 for c in columns]  # of higher frequencies on its axis
        p = np.max(np.abs(self.at.astype(float)), 0) + 1
        out = (4 * u + np.minimum(p[:, None] * w * float32_loss(w, number), 1 / 8)) * largest(values[name])
        return out.T if self.turned else out


def power(base, exponent):
    return LD(base) ** LD(exponent)


def line_columns(m):
    """1-D: sines and cosines of a ladder, interleaved or in halves; three ways for an odd width."""
    width = m.dim + 1 if m.dim % 2 and m.odd == "truncate" else m.dim
    half = width // 2
    n_sines, n_cosines = (half + 1, half) if width % 2 and m.odd == "paper" else (half, half)
    by = LD(half) - m.freq_shift if m.freq_shift else (LD(width) / 2 if m.odd == "paper" else LD(half))
    ladder = [power(m.base, -LD(i + (m.way == "ladder_from_one")) / by) for i in range(n_sines)]
    parts = [[Column("sin", 0, w) for w in ladder], [Column("sin" if m.way == "sine_only" else "cos", 0, w) for w in ladder[:n_cosines]]]
    if m.flip:
        parts = parts[::-1]
    if m.layout == "interleaved":
        columns = [part[i] for i in range(n_sines) for part in parts if i < len(part)]
    else:
        columns = parts[0] + parts[1]
    if m.way in ("exponent_per_column", "exponent_doubled"):
        k = 1 if m.way == "exponent_per_column" else 2
        columns = [Column(c.function, 0, power(m.base, -LD(k * j) / m.dim)) for j, c in enumerate(columns)]
    return (columns + [None] * m.dim)[:m.dim]


def one_axis(axis, width, base, layout="half"):
    ladder = [power(base, -LD(2 * i) / width) for i in range(width // 2)]
    if layout == "half":
        return [Column("sin", axis, w) for w in ladder] + [Column("cos", axis, w) for w in ladder]
    return [Column(f, axis, w) for w in ladder for f in ("sin", "cos")]


def grid_columns(m):
    """Grids of two axes, dim a multiple of 8, as each library lays out its columns."""
    half, quarter = m.dim // 2, m.dim // 4
    if m.style == "timm":
        ladder = [power(m.base, -LD(i) / quarter) for i in range(quarter)]
        return [Column(f, axis, w) for f in ("sin", "cos") for axis in (0, 1) for w in ladder]
    order = (1, 0) if m.style == "mae" else (0, 1)
    layout = "half" if m.style in ("mae", "vjepa") else "interleaved"
    return [column for axis in order for column in one_axis(axis, half, m.base, layout)]


# ---- Beliefs and faults -------------------------------------------------------------------------------------------------------


def believe(rng, code):
    dtype = choose(rng, "f64", "f32", "f32", "f16", "bf16")
    if code in RECIPES:
        dtype = choose(rng, "f64", "f32")
    if code in ("style_other", "axes_swapped"):
        h, w = choose(rng, (3, 5), (4, 6), (7, 2))
        at = np.indices((h, w)).reshape(2, -1).astype(float)
        return Sinusoid(dtype, at, {"grid": [h, w]}, 8 * int(rng.integers(1, 9)), choose(rng, 1e4, 1e4, 1e3),
                        style=choose(rng, *STYLES[:4], "vjepa"))
    n, offset = int(rng.integers(8, 25)), choose(rng, 0, 0, int(rng.integers(1, 500)))
    if code in RECIPES:
        offset = int(rng.integers(500, 5000))
    if code == "position_reset":
        offset = 0
    sequence, at = ({"len": n, "offset": offset} if offset else choose(rng, {"len": n}, {})), offset + np.arange(n)
    if code == "position_no_reset":
        first = int(rng.integers(2, n - 2))
        sequence, at = {"lens": [first, n - first]}, np.concatenate([np.arange(first), np.arange(n - first)])
    dim = 2 * int(rng.integers(4, 65))
    if code == "odd_other":
        dim += 1
    layout = "interleaved" if code in ("exponent_per_column", "exponent_doubled") else choose(rng, "interleaved", "half")
    odd = choose(rng, "paper", "pad", "truncate") if dim % 2 else "paper"
    plain = code in ("exponent_per_column", "exponent_doubled", "ladder_from_one", "sine_only", "odd_other")
    return Sinusoid(dtype, at[None].astype(float), sequence, dim, choose(rng, 1e4, 1e4, 1e5), layout,
                    0 if plain else choose(rng, 0, 0, 1), odd, False if plain else choose(rng, False, False, True))


def faults(m, rng, kind):
    out = [("negated", replace(m, factor=-1.0)), *([("transposed", replace(m, turned=True))] if m.zero is None else []),
           *[("scaled", replace(m, factor=f)) for f in (m.dim ** 0.5, m.dim ** -0.5, round(float(rng.uniform(0.1, 9)), 3))],
           *[("zero_row", replace(m, zero=r)) for r in (0, 1, m.n - 1) if not m.turned],
           *[("base_other", replace(m, base=b)) for b in [*BASES, float(rng.integers(200, 90000) * 10)] if b != m.base],
           *[(code, replace(m, recipe=code)) for code in RECIPES]]
    return out + (of_grid(m) if m.style else of_line(m, rng))


def fitted(right, wrong):
    out = [("scaled", replace(right, factor=wrong.factor)), ("base_other", replace(right, base=wrong.base))]
    if right.freq_shift != wrong.freq_shift:  # another base to the same exponents
        half = right.dim // 2
        base = wrong.base ** ((half - right.freq_shift) / (half - wrong.freq_shift))
        out.append(("base_other", replace(right, base=float(f"{base:.6g}"))))
    return out if right.style else out + of_run(right, wrong.at)


def of_grid(m):
    halves = [("layout_swapped", replace(m, style="vjepa"))] if m.style == "axial" else []
    return [*halves, *[("off_by_one", replace(m, at=m.at + k)) for k in (-1, 1)], ("axes_swapped", replace(m, at=m.at[::-1])), *[("style_other", replace(m, style=s)) for s in STYLES if s != m.style]]


def of_line(m, rng):
    out = of_positions(m, rng)
    out += [("layout_swapped", replace(m, layout="half" if m.layout == "interleaved" else "interleaved")),
            ("sin_cos_swapped", replace(m, flip=not m.flip)), ("freq_shift_other", replace(m, freq_shift=1 - m.freq_shift))]
    if m.dim % 2:
        out += [("odd_other", replace(m, odd=odd)) for odd in ("paper", "pad", "truncate") if odd != m.odd]
    if not m.freq_shift and m.dim % 2 == 0:
        ways = ["ladder_from_one", "sine_only"] + (["exponent_per_column", "exponent_doubled"] if m.layout == "interleaved" else [])
        out += [(way, replace(m, way=way)) for way in ways]
    return out
