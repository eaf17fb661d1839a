"""A random valid request of any row of GET /schemes: draw.encode(row, rng), draw.rotate(row, rng). Names, types, choices, ranges and conditions
(`when`, `excludes`) of parameters come from the row; what several parameters must fulfil together is in rules.py. rng is a random.Random."""
import math

import numpy as np

from truth.draw import sequences
from truth.draw.rules import COMMON, OF_SCHEME, OPTIONAL, TENSORS

SCHEMES = list(sequences.OF)

DTYPES = ("f32", "f64", "f16", "bf16")
SOMETIMES = 0.4  # how often a parameter that may be left out is given
SMALL = {"dim": 24, "hidden": 9, "num_heads": 6, "head_dim": 8, "bar_dim": 40, "num_freqs": 12, "num_bands": 9, "substeps": 3, "max_relative": 9}


PLACES = [lambda d: d.whole(-20, 20), lambda d: d.rng.uniform(-20, 20), lambda d: d.whole(-2 ** 16, 2 ** 16), lambda d: d.whole(-2 ** 40, 2 ** 40),
          lambda d: d.rng.uniform(-1, 1) * 2.0 ** d.whole(-60, 38)]


class Draw:
    """One request in the making."""

    def __init__(self, row, rng):
        self.row, self.rng, self.request = row, rng, {"scheme": row["name"]}
        self.n_axes, self.n = 1, 0

    def maybe(self, chance=SOMETIMES):
        return self.rng.random() < chance

    def whole(self, low, high):
        return self.rng.randint(low, high)

    def one_of(self, *values):
        return self.rng.choice(values)

    def normal(self, *shape, dtype=None, size=1.0):
        """A tensor of the request, of numbers that its type holds."""
        dtype = dtype or self.one_of("f32", "f64")
        array = size * np.random.default_rng(self.whole(0, 2 ** 32)).standard_normal(shape)
        array = array.astype({"f64": "f8", "f16": "f2"}.get(dtype, "f4"))
        if dtype == "bf16":
            array = (array.view("<u4") & 0xFFFF0000).view("<f4")
        return {"dtype": dtype, "shape": list(shape), "data": array.ravel().tolist()}

    def number(self, low, high):
        """Spread over the orders of magnitude where the range has several."""
        if low > 0 and high > 20 * low:
            return math.exp(self.rng.uniform(math.log(low), math.log(high)))
        return self.rng.choice([low, high, self.rng.uniform(low, high)])

    def places(self, n, place=None):
        """Positions: near and far, whole and not."""
        return [place(self) if place else self.one_of(*PLACES)(self) for _ in range(n)]

    # ---- Parameters ----

    def is_apt(self, p):
        """Its conditions, of parameters that stand before it."""
        condition, excluded = p.get("when"), (p.get("excludes") or "").split("|")
        if any(name in self.request for name in excluded):
            return False
        if not condition:
            return True
        name, _, values = condition.partition("=")
        default = next((q["default"] for q in self.row["parameters"] if q["name"] == name), None)
        has_none = default is None or self.row["name"] == "sinusoidal" and self.n_axes == 1  # whose style is of several axes
        return self.request.get(name, "" if has_none else default) in values.split("|")

    def value(self, p):
        if p["type"] == "boolean":
            return self.maybe(0.5)
        if p.get("values"):
            return self.rng.choice(p["values"])
        if p["type"] not in ("integer", "number"):
            return None
        low, high = p.get("usual") or (p["min"], p["max"])
        if p["type"] == "number":
            return self.number(low, high)
        return self.whole(int(p["min"] if p["name"] in SMALL else low), SMALL.get(p["name"], int(high)))

    def parameters(self):
        rules = {**COMMON, **OF_SCHEME.get(self.row["name"], {})}
        for p in self.row["parameters"]:
            name = p["name"]
            if not self.is_apt(p):
                continue
            if name in rules:
                value = rules[name](self)
            else:
                value = self.value(p) if self.maybe() or name in SMALL else None
            if value is not None:
                self.request[name] = value


def add_weights(d):
    """Tensors, or a seed that draws them, or neither where the scheme answers an index without."""
    scheme = d.row["name"]
    is_other_style = scheme == "fourier" and (d.request["style"] != "gaussian" or "seed" in d.request)
    if scheme not in TENSORS or is_other_style or scheme in OPTIONAL and d.maybe(0.15):
        return
    if scheme in ("learned", "fourier") or d.maybe(0.7):
        d.request |= TENSORS[scheme](d)
        return
    d.request |= {"seed": d.whole(0, 2 ** 53 - 1), "std": d.one_of(0.02, 0.5, 1e-3)}
    if scheme in ("recursive", "floater"):
        d.request["dim"] = d.whole(1, 8)


def add_embeddings(d):
    """x, to which the encoding is added: it gives the number of rows."""
    width = d.request["table"]["shape"][1] if "table" in d.request else d.request.get("dim")
    if d.row["family"] != "absolute" or not width or set(d.request) & {"grid", "attention_mask", "positions_layout"} or d.maybe(0.7):
        return
    how = d.one_of("add", "multiply", "multiply_residual", "concat")
    scales = {"x_scale": d.one_of(2, "sqrt_dim")} if how != "multiply_residual" and d.maybe() else {}
    if scales and d.row["name"] != "integer":
        scales["pe_scale"] = d.one_of(-0.1, "sqrt_dim")
    leading = [d.whole(1, 3) for _ in range(d.whole(0, 2))]
    d.request |= {"x": d.normal(*leading, d.n, width, dtype=d.one_of(*DTYPES)), "combine": how, **scales}


def add_outputs(d):
    """Some of those of the row that the request has."""
    form = d.request.get("form", "pairs")
    has_weights = bool({"table", "w1", "seed"} & set(d.request))
    names = [o["name"] for o in d.row["outputs"] if o.get("when") in (None, f"form={form}") or o.get("when") == "weights" and has_weights]
    names += ["combined"] if "x" in d.request else []
    if {"grid", "axis_scale", "axis_divisor", "axis_shift"} & set(d.request) and "rope_delta" in names:
        names.remove("rope_delta")  # which is of token ids
    if d.maybe():
        d.request["outputs"] = d.rng.sample(names, d.whole(1, len(names)))


def encode(row, rng):
    d = Draw(row, rng)
    d.request |= rng.choice(sequences.OF[row["name"]])(d)
    d.parameters()
    add_weights(d)
    add_embeddings(d)
    add_outputs(d)
    if d.maybe(0.8):
        d.request["dtype"] = d.one_of(*DTYPES)
    return d.request


MEMORY = {  # shapes of q and k: batch, heads, n, head_dim
    "bhnd": lambda b, h, n, d: (b, h, n, d), "bnhd": lambda b, h, n, d: (b, n, h, d), "nbhd": lambda b, h, n, d: (n, b, h, d),
    "nhd": lambda b, h, n, d: (n, h, d), "flat": lambda b, h, n, d: (n, h * d), "bflat": lambda b, h, n, d: (b, n, h * d)}


def batch_of(request):
    """Rows that have positions of their own."""
    layout = request.get("positions_layout")
    if layout == "axes_batch":
        return len(request["positions"][0])
    return len(request["positions"] if layout else request.get("attention_mask", [[]]))


def rotate(row, rng):
    """q and k, or one of them, in any memory layout and type."""
    d = Draw(row, rng)
    make = sequences.cache if d.maybe() else rng.choice([one for one in sequences.OF[row["name"]] if one is not sequences.ids_of_segments])
    d.request |= make(d)
    d.parameters()
    d.request.pop("form", None)
    width, batch = d.request.pop("head_dim"), batch_of(d.request)
    layout = rng.choice([name for name in MEMORY if batch == 1 or name not in ("nhd", "flat")])
    if batch == 1 and layout not in ("nhd", "flat") and "positions_layout" not in d.request:
        batch = d.whole(1, 2)
    dtype, sent = d.one_of(*DTYPES), d.one_of("q", "k", "qk", "qk")
    for name in sent:
        rows = d.whole(1, d.n) if sent == "qk" and name == "q" and make is sequences.cache else d.n
        d.request[name] = d.normal(*MEMORY[layout](batch, d.whole(1, 4), rows, width), dtype=dtype)
    if layout != "bhnd":
        d.request["tensor_layout"] = layout
    if "flat" in layout:
        d.request["head_dim"] = width
    if sent == "qk" and make is sequences.cache and d.maybe():
        d.request["q_offset"] = d.whole(0, 5)
    if make is sequences.cache and "channels" not in d.request and d.maybe():
        d.request["query_scale"] = {"type": d.one_of("ministral", "llama4"), "original_max_position_embeddings": d.whole(2, 20), "beta": 0.2}
    if d.maybe():
        d.request["dtype"] = d.one_of(*DTYPES)
    return d.request
