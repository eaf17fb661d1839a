"""Rotary tables and rotated heads as public code computes them wrongly: cos and sin (pairs, expanded) or q and q_out."""
import math
from dataclasses import dataclass, field, replace

import numpy as np

from truth.rotary import expand, members
from wrong_scaling import factor_of, other_scalings, powers, random_scaling, stretched
from wrong_tensors import LD, choose, float32_loss, largest, rounded

MAKES = ["layout_swapped", "direction_reversed", "sin_cos_swapped", "negated", "off_by_one", "offset_other", "not_rotated",
         "rotated_twice", "positions_reversed", "position_stride", "positions_constant", "position_reset", "position_no_reset",
         "positions_other",
         "rotary_dim_other", "rotary_offset_other", "attention_factor_missing", "attention_factor_other", "scaled",
         "scaling_missing", "ladder_width", "ladder_from_one", "ladder_reversed", "scaling_parameter", "scaling_other", "base_other",
         "angles_f32", "inv_freq_bf16", "inv_freq_f16", "angles_bf16", "axes_swapped", "section_order", "channels_other"]

BASES = [1e4, 5e5, 1e6, 1e7, 150000.0, 160000.0, 100.0, 256.0, 500.0, 1000.0, 2000.0, 25000.0, 5e4, 1e5, 2e6, 5e6, 8e6, 5e7]

# ---- The model ----------------------------------------------------------------------------------------------------------------


def f32(x):
    return np.asarray(x).astype("f4")


def narrow(dtype):
    return lambda x: f32(rounded(np.asarray(x, float), dtype))


RECIPES = {  # how w, the position, their product and the result are rounded
    "angles_f32": (f32, f32, f32, f32),
    "inv_freq_bf16": (narrow("bf16"), f32, f32, f32),
    "inv_freq_f16": (narrow("f16"), f32, f32, f32),
    "angles_bf16": (narrow("bf16"), narrow("bf16"), narrow("bf16"), narrow("bf16")),
}


@dataclass(frozen=True)
class Rotary:
    sends: str  # pairs, expanded, q
    dtype: str
    at: np.ndarray  # [axes, n]
    sequence: dict
    head_dim: int
    rotary_dim: int
    rotary_offset: int = 0
    base: float = 10000.0
    layout: str = "interleaved"
    direction: int = 1
    scaling: dict = field(default_factory=dict)
    attention_factor: float = None
    channels: str = None  # mrope, mrope_interleaved, axial (a grid of two axes, each with a ladder of its own)
    section: tuple = ()
    q_shape: tuple = ()  # axes before n
    ladder: str = "plain"
    recipe: str = None
    swapped: bool = False
    factor: float = 1.0  # on what is sent

    @property
    def n(self):
        return self.at.shape[1]

    def request(self):
        out = {"scheme": "rope", "head_dim": self.head_dim, "base": self.base, "layout": self.layout, **self.sequence}
        if self.direction != 1:
            out["direction"] = self.direction
        if self.sends != "q":
            out["form"] = self.sends
        if self.rotary_dim != self.head_dim:
            out.update(rotary_dim=self.rotary_dim)
        if self.rotary_offset:
            out.update(rotary_offset=self.rotary_offset)
        if self.scaling:
            out["scaling"] = self.scaling
        if self.attention_factor is not None:
            out["attention_factor"] = self.attention_factor
        if self.ladder != "plain":
            out["inv_freq"] = [float(w) for w in self.frequencies()]
            del out["base"]
        if self.section:
            out.update(channels=self.channels, mrope_section=list(self.section))
        return out

    def data(self, rng):
        if self.sends != "q":
            return None
        q = rng.standard_normal((*self.q_shape, self.n, self.head_dim))
        return rounded(q, self.dtype)

    def sent(self, data):
        from wrong_tensors import Tensor
        return {} if data is None else {"q": Tensor(data, self.dtype)}

    def blocks(self):
        """Pairs of each axis that has its own ladder."""
        return [self.rotary_dim // 4] * 2 if self.channels == "axial" else [self.rotary_dim // 2]

    def frequencies(self):
        if self.channels == "axial":
            return np.tile(powers(self.base, self.rotary_dim // 2), 2)
        width = self.head_dim if self.ladder == "head_dim" else self.rotary_dim
        if self.ladder == "from_one":
            return powers(self.base, self.rotary_dim, 1)
        w = stretched(self.scaling, self.base, width, float(np.floor(self.at.max())) + 1)[:self.rotary_dim // 2]
        return w[::-1] if self.ladder == "reversed" else w

    def axis_of(self):
        """The axis of each pair."""
        count = self.rotary_dim // 2
        if self.channels == "axial":
            return np.repeat(np.arange(2), count // 2)
        if self.channels == "mrope":
            return np.repeat(np.arange(3), self.section)
        if self.channels == "mrope_interleaved":
            return np.array([c % 3 if c % 3 and c < 3 * self.section[c % 3] else 0 for c in range(count)])
        return np.zeros(count, int)

    def tables(self):
        """cos, sin [n, C]."""
        real = LD if self.dtype == "f64" else float
        w, p = self.frequencies().astype(real), self.at[self.axis_of()].T.astype(real)
        factor = factor_of(self.scaling) if self.attention_factor is None else self.attention_factor
        if self.recipe:
            of_w, of_p, of_product, of_result = RECIPES[self.recipe]
            angle = self.direction * of_product(of_p(p) * of_w(w)).astype(float)
            cos, sin = (of_result(f(angle)).astype(real) for f in (np.cos, np.sin))
        else:
            angle = self.direction * p * w
            cos, sin = np.cos(angle), np.sin(angle)
        cos, sin = cos * factor, sin * factor
        return (sin, cos) if self.swapped else (cos, sin)

    def values(self, q):
        cos, sin = self.tables()
        if self.sends == "q":
            return {"q_out": self.rotated(q, cos, sin) * self.factor}
        if self.sends == "expanded":
            cos, sin = (self.expanded(x) for x in (cos, sin))
        return {"cos": cos * self.factor, "sin": sin * self.factor}

    def expanded(self, pairs):
        return expand(pairs, {"interleaved_to_half": "half"}.get(self.layout, self.layout), self.blocks())

    def rotated(self, q, cos, sin):
        x = np.asarray(q, LD if self.dtype == "f64" else float)
        out, inside = x.copy(), slice(self.rotary_offset, self.rotary_offset + self.rotary_dim)
        out[..., inside] = turned(x[..., inside], cos, sin, self.layout, self.blocks())
        return out

    def tolerance(self, name, values, u):
        """What float32 angles cost, for each entry."""
        w, number = self.frequencies().astype(float), np.concatenate([np.arange(n) for n in self.blocks()])
        of_angles = np.minimum(np.abs(self.at[self.axis_of()].T.astype(float)) * w * float32_loss(w, number), 1 / 8)
        s = max(largest(v) for v in values.values())
        if name == "q_out":
            out = np.zeros(values[name].shape[-2:])
            for some in members(self.rotary_dim, "half" if self.layout == "interleaved_to_half" else self.layout, self.blocks()):
                out[:, self.rotary_offset + some] = of_angles
            return (12 * u + out) * s
        if self.sends == "expanded":
            of_angles = self.expanded(of_angles)
        return (4 * u + of_angles) * s


def turned(x, cos, sin, layout, blocks):
    """Pairs turned; vjepa2 tiles its tables as half while it pairs neighbours."""
    width = x.shape[-1]
    first, second = members(width, layout, blocks)
    out = np.empty_like(x)
    if layout == "vjepa2":
        out[..., first], out[..., second] = -x[..., second], x[..., first]
        return x * expand(cos, layout, blocks) + out * expand(sin, layout, blocks)
    to_first, to_second = members(width, "half") if layout == "interleaved_to_half" else (first, second)
    out[..., to_first] = x[..., first] * cos - x[..., second] * sin
    out[..., to_second] = x[..., second] * cos + x[..., first] * sin
    return out


# ---- Beliefs ------------------------------------------------------------------------------------------------------------------

WANTS_Q = {"not_rotated", "rotary_dim_other", "rotary_offset_other"}
WANTS_PARTIAL = {"rotary_dim_other", "rotary_offset_other", "ladder_width"}
WANTS_SCALING = {"scaling_missing", "scaling_parameter"}
WANTS_FACTOR = {"attention_factor_missing", "attention_factor_other"}
WANTS_AXES = {"axes_swapped", "section_order", "channels_other"}
WANTS_LONG = {"inv_freq_f16", "inv_freq_bf16", "angles_bf16", "angles_f32"}


def random_run(rng, code):
    """Positions [1, n] and the fields that give them."""
    n = int(rng.integers(8, 25))
    if code == "position_no_reset":
        first = int(rng.integers(2, n - 2))
        lens = [first, n - first]
        return np.concatenate([np.arange(k) for k in lens])[None].astype(float), {"lens": lens}
    offset = choose(rng, 0, 0, int(rng.integers(1, 64)), int(rng.integers(64, 4096)))
    if code in WANTS_LONG:
        offset = int(rng.integers(2000, 8000))
    if code == "position_reset":
        offset = 0
    if code in ("offset_other", "off_by_one", "base_other") and rng.random() < 0.3:
        at = np.sort(rng.choice(300, n, replace=False)).astype(float)
        return at[None], {"positions": [int(p) for p in at]}
    sequence = choose(rng, {"len": n, "offset": offset}, {"len": n, "offset": offset}, {"offset": offset}) if offset else choose(rng, {"len": n}, {})
    return (offset + np.arange(n))[None].astype(float), sequence


def believe(rng, code):
    sends = "q" if code in WANTS_Q else choose(rng, "pairs", "expanded", "q")
    if code == "layout_swapped":
        sends = choose(rng, "expanded", "q", "q")
    dtype = choose(rng, "f64", "f32", "f32", "f16", "bf16")
    if code in ("angles_f32", "inv_freq_f16", "inv_freq_bf16"):
        dtype = choose(rng, "f32", "f64") if code != "angles_f32" else "f64"
    if code in WANTS_AXES or (code == "layout_swapped" and rng.random() < 0.2):
        return believe_axes(rng, code, sends if sends != "pairs" else "expanded", dtype)
    head_dim = choose(rng, 16, 32, 64, 128) if sends != "q" else choose(rng, 16, 32, 64)
    rotary_dim = head_dim
    if code in WANTS_PARTIAL or (sends == "q" and rng.random() < 0.25):
        rotary_dim = head_dim // choose(rng, 2, 4)
    rotary_offset = choose(rng, 0, head_dim - rotary_dim) if sends == "q" else 0
    base = choose(rng, 1e4, 1e4, 5e5, 1e6)
    scaling = {}
    if code in WANTS_SCALING or (code not in ("scaling_other", "ladder_from_one", "ladder_reversed") and rng.random() < 0.2):
        scaling = random_scaling(rng, rotary_dim)
    if code in WANTS_FACTOR:
        scaling = {"type": "yarn", "factor": choose(rng, 4.0, 16.0, 40.0), "original_max_position_embeddings": 4096}
    at, sequence = random_run(rng, code)
    if scaling.get("type") in ("dynamic", "longrope") and at.max() > 2000:
        scaling = {"type": "linear", "factor": 4.0}
    if code in ("ladder_width", "ladder_from_one", "ladder_reversed") or code in RECIPES and factor_of(scaling) != 1:
        scaling = {}
    return Rotary(sends, dtype, at, sequence, head_dim, rotary_dim, rotary_offset, base, choose(rng, "interleaved", "half"),
                  scaling=scaling, q_shape=choose(rng, (), (2,), (2, 2)) if sends == "q" else ())


def believe_axes(rng, code, sends, dtype):
    """A grid, or multimodal positions: a picture of h x w patches after some text."""
    head_dim = choose(rng, 32, 64)
    if code in ("layout_swapped", "axes_swapped") and rng.random() < 0.6:
        h, w = choose(rng, (2, 5), (3, 4), (5, 3))
        at = np.indices((h, w)).reshape(2, -1).astype(float)
        return Rotary(sends, dtype, at, {"grid": [h, w]}, head_dim, head_dim, 0, choose(rng, 1e4, 100.0),
                      choose(rng, "interleaved", "half"), channels="axial", q_shape=(2,) if sends == "q" else ())
    count = head_dim // 2
    hw = 3 * count // 8
    section = (count - 2 * hw, hw, hw)
    text, h, w = int(rng.integers(1, 5)), int(rng.integers(2, 4)), int(rng.integers(3, 5))
    picture = np.stack(np.broadcast_arrays(text, text + np.arange(h)[:, None], text + np.arange(w)[None, :])).reshape(3, -1)
    at = np.concatenate([np.tile(np.arange(text), (3, 1)), picture], 1).astype(float)
    return Rotary(sends, dtype, at, {"positions": at.astype(int).tolist()}, head_dim, head_dim, 0, choose(rng, 1e4, 1e6),
                  choose(rng, "interleaved", "half"), channels=choose(rng, "mrope", "mrope_interleaved"), section=section,
                  q_shape=(2,) if sends == "q" else ())


# ---- Faults -------------------------------------------------------------------------------------------------------------------


def faults(m, rng, kind):
    """(code, model) for every single fault of the belief m; fitted values are drawn at random."""
    out = [*of_sense(m), *of_positions(m, rng), *of_width(m), *of_size(m, rng), *of_ladder(m, rng)]
    if kind == "ladder" and not m.channels:
        out += [(code, replace(m, scaling=s)) for code, s in other_scalings(m.scaling, m.rotary_dim)]
    out += [(code, replace(m, recipe=code)) for code in RECIPES]
    return out + (of_axes(m) if m.channels else [])


def of_sense(m):
    layouts = {"pairs": [], "expanded": ["interleaved", "half"], "q": ["interleaved", "half", "interleaved_to_half", "vjepa2"]}
    if m.section:  # its blocks would be those of a model that does not exist
        layouts["q"].remove("vjepa2")
    per_axis = ["half_per_axis"] if m.channels == "axial" and m.sends != "pairs" else []
    out = [("layout_swapped", replace(m, layout=layout)) for layout in layouts[m.sends] + per_axis if layout != m.layout]
    return out + [("direction_reversed", replace(m, direction=-m.direction)), ("sin_cos_swapped", replace(m, swapped=True)),
                  ("negated", replace(m, factor=-1.0))]


def of_positions(m, rng):
    if m.channels:
        return []
    p, n = m.at, m.n
    at = {"off_by_one": [p - 1, p + 1], "offset_other": [p + k for k in (-3, -2, 2, 3)] + [p - p[0, 0], p + int(rng.integers(10, 3000))],
          "not_rotated": [0 * p], "rotated_twice": [2 * p], "positions_reversed": [p[:, ::-1]],
          "positions_other": [rng.permutation(150)[:n][None].astype(float)],
          "positions_constant": [0 * p + p[0, 0], 0 * p + p[0, -1], 0 * p + int(rng.integers(1, 500))]}
    if "positions" not in m.sequence and "lens" not in m.sequence:
        at["position_stride"] = [p[0, 0] + s * (p - p[0, 0]) for s in (2, 3, 4, 8)]
        cut = int(rng.integers(2, n - 2))
        if p[0, 0] == 0:
            at["position_reset"] = [np.concatenate([np.arange(cut), np.arange(n - cut)])[None].astype(float)]
    if "lens" in m.sequence:
        at["position_no_reset"] = [np.arange(n)[None].astype(float)]
    return [(code, replace(m, at=x)) for code, many in at.items() for x in many if not np.array_equal(x, p)]


def of_width(m):
    if m.sends != "q" or m.channels or m.scaling.get("type") == "longrope":
        return []
    widths = {m.head_dim, m.head_dim // 2, m.head_dim // 4, 16, 32, 64}
    out = [("rotary_dim_other", replace(m, rotary_dim=r)) for r in sorted(widths) if r != m.rotary_dim and r + m.rotary_offset <= m.head_dim]
    places = {0, m.head_dim - m.rotary_dim} - {m.rotary_offset}
    return out + [("rotary_offset_other", replace(m, rotary_offset=o)) for o in sorted(places)]


def of_size(m, rng):
    out = [("scaled", replace(m, factor=f)) for f in (m.head_dim ** -0.5, m.head_dim ** 0.5, m.head_dim ** -0.25)]
    own = factor_of(m.scaling)
    if own != 1.0:
        out += [("attention_factor_missing", replace(m, attention_factor=1.0))]
        out += [("attention_factor_other", replace(m, attention_factor=x)) for x in (own * own, math.sqrt(own), round(float(rng.uniform(1.05, 2)), 3))]
    return out


def whole_factor(m):
    return m.factor * (factor_of(m.scaling) if m.attention_factor is None else m.attention_factor)


def fitted(right, wrong):
    """Faults of the belief whose fitted values are the faulty model's own."""
    out = [("attention_factor_other", replace(right, attention_factor=whole_factor(wrong))),
           ("scaled", replace(right, factor=right.factor * whole_factor(wrong) / whole_factor(right))),
           ("base_other", replace(right, base=wrong.base)), ("scaling_other", replace(right, scaling=wrong.scaling))]
    if not right.channels and right.n == wrong.n:
        at = wrong.at * wrong.direction * right.direction
        out += of_run(right, at)
        if {right.scaling.get("type", "linear"), wrong.scaling.get("type", "linear")} == {"linear"}:  # steps undo a factor
            out += of_run(right, at * right.scaling.get("factor", 1.0) / wrong.scaling.get("factor", 1.0))
    return out


def of_run(right, at):
    """One position, a run elsewhere, or one with larger steps."""
    steps = np.unique(np.diff(at))
    out = [("offset_other", replace(right, at=at))] if np.ptp(at - right.at) == 0 else []
    out += [("positions_constant", replace(right, at=at))] if np.ptp(at) == 0 else []
    is_run = not {"positions", "lens"} & set(right.sequence) and len(steps) == 1 and abs(steps[0]) >= 2
    return out + ([("position_stride", replace(right, at=at))] if is_run else [])


def of_ladder(m, rng):
    out = [("base_other", replace(m, base=b)) for b in [*BASES, float(rng.integers(200, 90000) * 10)] if b != m.base]
    if m.rotary_dim != m.head_dim and not m.scaling:
        out += [("ladder_width", replace(m, ladder="head_dim"))]
    if not m.scaling and m.channels != "axial":
        out += [("ladder_from_one", replace(m, ladder="from_one")), ("ladder_reversed", replace(m, ladder="reversed"))]
    return out + ([("scaling_missing", replace(m, scaling={}))] if m.scaling else [])


def of_axes(m):
    other = {"mrope": "mrope_interleaved", "mrope_interleaved": "mrope"}
    if m.channels == "axial":
        return [("axes_swapped", replace(m, at=m.at[::-1]))]
    t, h, w = m.section
    out = [("axes_swapped", replace(m, at=m.at[[0, 2, 1]]))]
    out += [("section_order", replace(m, section=s)) for s in sorted({(h, t, w), (h, w, t)} - {m.section})]
    return out + [("channels_other", replace(m, channels=other[m.channels]))]
