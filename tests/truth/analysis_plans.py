"""What is analysed: a configuration with its sequence as positions, frequencies, rows and biases in float64. The formulas are those
of the other reference files; angles are extended precision, so that a position of 2^24 costs no digit."""
import math

import mpmath
import numpy as np

import truth
import truth.absolute as absolute
import truth.bias as biases
import truth.dynamics as dynamics
import truth.rotary as rotary
import truth.scaling as scalings

SEQUENCE = ("len", "offset", "positions", "grid", "lens", "q_len", "k_len", "q_offset")
FAMILIES = {"absolute": ("none", "integer", "binary", "sinusoidal", "fourier", "learned", "recursive", "floater"),
            "rotary": ("rope", "xpos"), "bias": ("alibi", "t5", "kerple", "fire", "sandwich"),
            "relative": ("shaw", "transformer_xl", "xlnet", "conformer", "deberta", "cope")}
FAMILY = {scheme: family for family, schemes in FAMILIES.items() for scheme in schemes}
LADDERS = ("sinusoidal", "rope", "xpos")


class Undefined(Exception):
    """The configuration has no values at these positions."""


def extended(x):
    """An mpf as the nearest longdouble but for its last bit."""
    high = float(x)
    return np.longdouble(high) + np.longdouble(float(x - mpmath.mpf(high)))


def turned(positions, frequencies):
    """cos, sin [n, C] in float64 of angles in extended precision."""
    angle = np.asarray(positions, np.longdouble)[:, None] * np.array([extended(w) for w in frequencies], np.longdouble)
    return np.cos(angle).astype(float), np.sin(angle).astype(float)


class Plan:
    def __init__(self, config):
        self.config = config
        self.scheme = config["scheme"]
        self.family = FAMILY[self.scheme]
        self.axes, self.coordinates = self.sequence()
        self.n = self.coordinates.shape[1]
        self.positions = self.coordinates[0]

    def get(self, name, default=None):
        value = self.config.get(name)
        return default if value is None else value

    # ---- The sequence ----

    def sequence(self):
        c, offset = self.config, self.get("offset", 0)
        if "grid" in c:
            return len(c["grid"]), np.array(absolute.grid_coordinates(c["grid"]), float).T
        if "positions" in c:
            at = np.atleast_2d(np.array(c["positions"], float))
            return len(at), at
        if "lens" in c:
            return 1, np.concatenate([offset + np.arange(n, dtype=float) for n in c["lens"]])[None]
        return 1, offset + np.arange(c.get("len", c.get("k_len", c.get("q_len"))), dtype=float)[None]

    @property
    def queries(self):
        c = self.config
        if "q_len" not in c and "k_len" not in c:
            return self.positions
        q_len = c.get("q_len", self.n)
        return self.get("offset", 0) + self.get("q_offset", self.n - q_len) + np.arange(q_len, dtype=float)

    @property
    def is_run(self):
        return self.axes == 1 and "lens" not in self.config and bool(np.all(np.diff(self.positions) == 1))

    def on(self, n, offset=None, **changes):
        """The same configuration on a run of n positions; what was resolved for the given sequence (the rows of a seeded table) stays."""
        offset = self.get("offset", 0) if offset is None else offset
        return self.with_sequence(len=n, **({"offset": offset} if offset else {}), **changes)

    def first(self, n):
        """The same configuration on its first n positions."""
        if "positions" in self.config:
            return self.with_sequence(positions=self.config["positions"][:n])
        if "lens" in self.config:
            ends = np.minimum(np.cumsum(self.config["lens"]), n)
            return self.with_sequence(lens=[int(length) for length in np.diff(ends, prepend=0) if length], offset=self.get("offset", 0))
        return self.on(n)

    def with_sequence(self, **sequence):
        kept = {name: value for name, value in self.config.items() if name not in SEQUENCE}
        if self.scheme == "learned" and "table" not in self.config:
            kept["rows"] = self.table.shape[0]
        return Plan({**kept, **sequence})

    # ---- Ladders ----

    @property
    def is_ladder(self):
        return self.scheme in LADDERS and self.axes == 1

    @property
    def scaling(self):
        return {"type": "default"} if self.scheme == "sinusoidal" else self.get("scaling", {"type": "default"})

    @property
    def width(self):
        """Rotary: rotated channels; else columns."""
        if self.family != "rotary":
            return self.get("dim", 512)
        head_dim = self.get("head_dim", 64)
        factor = self.config.get("partial_rotary_factor")
        return self.get("rotary_dim", head_dim if factor is None else int(factor * head_dim))

    @property
    def seq_len(self):
        return math.floor(self.positions.max()) + 1

    def columns(self):
        names = ("base", "layout", "freq_shift", "odd", "flip_sin_to_cos", "angle_scale")
        return truth.sinusoidal_columns(self.width, **{k: self.config[k] for k in names if self.config.get(k) is not None})

    def frequencies(self, is_scaled=True):
        """w, or the unscaled w, of each pair as mpf."""
        if self.scheme == "sinusoidal":
            return [column[1] for column in self.columns() if column and column[0] == "sin"]
        if "inv_freq" in self.config:
            return [mpmath.mpf(w) for w in self.config["inv_freq"]]
        if not is_scaled:
            return rotary.ladder(self.width, self.get("base", 10000.0))
        return scalings.inv_freq(self.scaling, self.get("base", 10000.0), self.width, self.seq_len, self.get("head_dim", 64))

    @property
    def attention_factor(self):
        if self.scheme == "sinusoidal":
            return 1.0
        given = self.config.get("attention_factor")
        return float(scalings.attention_factor(self.scaling, self.seq_len)) if given is None else given

    @property
    def train_len(self):
        """The scaling's original length, else that of the sequence."""
        if scalings.rule(self.scaling) == "dynamic":
            return self.scaling["max_position_embeddings"]
        return self.scaling.get("original_max_position_embeddings", self.n)

    # ---- Rotary ----

    def channels(self):
        """(axis, w) of each pair."""
        if self.axes == 1:
            return [(0, w) for w in self.frequencies()]
        table = rotary.axial(self.width, self.axes, self.config.get("axes_dim"), self.config.get("axis_order"), self.get("base", 10000.0))
        return [(c.axis, c.frequency) for c in table]

    @property
    def blocks(self):
        """Pairs of each axis."""
        if self.axes == 1:
            return [self.width // 2]
        return [w // 2 for w in self.config.get("axes_dim") or absolute.default_axes_dim(self.width, self.axes)]

    def tables(self):
        """cos, sin [n, C] with the attention factor."""
        cos, sin = np.empty((2, self.n, self.width // 2))
        for i, (axis, w) in enumerate(self.channels()):
            angle = np.asarray(self.coordinates[axis], np.longdouble) * extended(w) * self.get("direction", 1)
            cos[:, i], sin[:, i] = np.cos(angle), np.sin(angle)
        return self.attention_factor * cos, self.attention_factor * sin

    def zeta(self):
        return np.array([(2 * c + self.get("gamma", 0.4) * self.width) / ((1 + self.get("gamma", 0.4)) * self.width)
                         for c in range(self.width // 2)])

    def scale(self):
        """[n, C]; 1 but for xpos."""
        if self.scheme != "xpos":
            return np.ones((self.n, self.width // 2))
        center = rotary.xpos_center(self.get("center", 0), self.n, int(self.get("offset", 0)))
        return self.zeta() ** ((self.positions[:, None] - center) / self.get("scale_base", 512.0))

    def rotate(self, x, is_key=False):
        """x [..., n, head_dim] turned to the positions."""
        cos, sin = self.tables()
        scale = self.scale() ** (-1 if is_key else 1)
        return rotary.rotate(x, cos * scale, sin * scale, self.get("layout", "interleaved"), self.blocks, self.get("rotary_offset", 0))

    # ---- Absolute ----

    @property
    def table(self):
        if "table" in self.config:
            return np.asarray(self.config["table"], np.float32)
        needed = int(self.positions.max()) + 1 + self.get("row_offset", 0)
        return absolute.seeded("table", (self.get("rows", needed), self.get("dim", 512)), self.config["seed"], self.get("std", 0.02))

    def seeded(self, **shapes):
        std = self.get("std", 0.02)
        return {name: absolute.seeded(name, shape, self.config["seed"], std).astype(float) for name, shape in shapes.items()}

    def encoding(self):
        return getattr(self, f"encode_{self.scheme}")()

    def encode_none(self):
        return np.zeros((self.n, self.width))

    def encode_integer(self):
        values = absolute.integer(self.positions, self.get("normalize", "none"), self.get("pe_scale", 1.0))
        return np.repeat(np.array([float(v) for v in values])[:, None], self.width, 1)

    def encode_binary(self):
        bits = self.get("bits", min(self.width, 32))
        if self.positions.max() >= 2 ** bits:
            raise Undefined
        return absolute.binary(self.positions, self.width, bits, self.get("bit_order", "msb"), self.get("low", 0.0), self.get("high", 1.0))

    def encode_sinusoidal(self):
        if self.axes > 1:
            names = ("axes_dim", "axis_order", "base", "layout", "freq_shift", "odd", "flip_sin_to_cos", "angle_scale")
            parameters = {k: self.config[k] for k in names if self.config.get(k) is not None}
            return absolute.table(absolute.axial(self.width, self.axes, **parameters), self.coordinates.T)
        return waves(self.columns(), self.positions)

    def encode_fourier(self):
        c, style = self.config, self.get("style", "nerf")
        if style == "nerf":
            names = ("num_freqs", "include_input", "log_sampling", "multiply_pi")
            columns = absolute.nerf(self.axes, **{k: c[k] for k in names if c.get(k) is not None})
            return exact_table(columns, self.coordinates.T)
        if style == "perceiver":
            names = ("num_bands", "max_resolution", "concat_pos")
            lengths = c.get("grid", [self.n])
            columns = absolute.perceiver(lengths, **{k: c[k] for k in names if c.get(k) is not None})
            return exact_table(columns, absolute.perceiver_coordinates(lengths))
        b = absolute.seeded("b", (self.get("num_freqs", 256), self.axes), self.get("seed", 0), self.get("sigma", 1.0))
        return exact_table(absolute.gaussian(b), self.coordinates.T)

    def encode_learned(self):
        table, policy = self.table.astype(float), self.get("out_of_range", "error")
        at = self.positions.astype(int) + self.get("row_offset", 0)
        inside = (at >= 0) & (at < len(table))
        if policy == "error" and not inside.all():
            raise Undefined
        rows = table[at % len(table) if policy == "wrap" else np.clip(at, 0, len(table) - 1)]
        return np.where(inside[:, None], rows, 0) if policy == "zero" else rows

    def encode_recursive(self):
        d, hidden = self.width, self.get("hidden", self.width)
        weights = self.seeded(p0=(d,), w1=(hidden, d), b1=(hidden,), w2=(d, hidden), b2=(d,))
        return self.stepped(dynamics.recursive, weights, ("activation", "residual"))

    def encode_floater(self):
        d, hidden = self.width, self.get("hidden", self.width)
        extra = 1 if self.get("time_input", True) else 0
        weights = self.seeded(p0=(d,), w1=(hidden, d + extra), b1=(hidden,), w2=(d, hidden + extra), b2=(d,))
        return self.stepped(dynamics.floater, weights, ("activation", "dt", "substeps", "method", "time_input"))

    def stepped(self, function, weights, names):
        given = {k: self.config[k] for k in names if self.config.get(k) is not None}
        return function(self.seq_len, **given, **weights)[self.positions.astype(int)]

    # ---- Bias ----

    @property
    def num_heads(self):
        return self.get("num_heads", 8)

    def seen(self, q, k):
        """[Q, K], but for lens and key_mask, which belong to the given sequence only."""
        left = self.get("window", math.inf)
        right = self.get("window_right", 0 if self.get("causal", False) else left - 1)
        ahead = np.asarray(k)[None, :] - np.asarray(q)[:, None]
        return (-ahead < left) & (ahead <= (min(right, 0) if self.get("causal", False) else right))

    def bias(self, queries=slice(None)):
        """[H, Q, K] with -inf where the key is not seen; or of a slice of the queries."""
        q, k = self.queries[queries], self.positions
        seen = self.seen(q, k)
        if "lens" in self.config:
            piece = np.repeat(np.arange(len(self.config["lens"])), self.config["lens"])
            seen &= piece[queries, None] == piece[None]
        if "key_mask" in self.config:
            seen &= np.asarray(self.config["key_mask"], bool)[None]
        return np.where(seen[None], self.logits(q, k), -np.inf)

    def logits(self, q, k):
        return getattr(self, f"logits_{self.scheme}")(q, k)

    def logits_alibi(self, q, k):
        form, mask = self.get("form", "symmetric"), self.config.get("key_mask")
        left = self.config.get("slopes_left") or self.config.get("slopes")
        left = left or [float(s) for s in truth.alibi_slopes(self.num_heads, self.get("bias_max", 8))]
        right = self.config.get("slopes_right") or left
        return np.stack([unmasked_alibi(form, a, b, q, k, mask) for a, b in zip(left, right)])

    def logits_t5(self, q, k):
        parameters = self.t5_parameters()
        table = self.get("table")
        if table is None:
            table = absolute.seeded("table", (self.get("num_buckets", 32), self.num_heads), self.config["seed"], self.get("std", 0.02))
        return biases.t5(table, q, k, self.get("table_scale", 1.0), **parameters)

    def t5_parameters(self):
        return {name: self.config[name] for name in ("num_buckets", "max_distance", "bidirectional") if self.config.get(name) is not None}

    def logits_kerple(self, q, k):
        r1, r2 = (np.broadcast_to(self.get(name, 1.0), self.num_heads).astype(float) for name in ("r1", "r2"))
        return biases.kerple(self.get("kind", "log"), r1, r2, q, k)

    def logits_fire(self, q, k):
        hidden, heads = self.get("hidden", 32), self.num_heads
        weights = self.seeded(w1=(hidden, 1), b1=(hidden,), w2=(heads, hidden), b2=(heads,))
        return biases.fire(**weights, q=q, k=k, **{name: self.config[name] for name in ("c", "init_l", "l_mult") if name in self.config})

    def logits_sandwich(self, q, k):
        return biases.sandwich(self.num_heads, q, k, self.get("bar_dim", 128), self.get("base", 10000.0))

    # ---- Rows ----

    def rows(self):
        """[n, D]; for a bias [distances, H], with self.distances beside it."""
        if self.family == "bias":
            return self.distance_rows()[1]
        return self.encoding() if self.family == "absolute" else np.concatenate(self.tables(), 1)

    def distance_rows(self):
        """Distances nearest first, and their rows: up to 0 as the last query sees them, above as the first."""
        q, k = self.queries, self.positions
        last, first = self.bias(slice(-1, None))[:, 0], self.bias(slice(0, 1))[:, 0]
        found = [(d, last[:, j]) for j, d in enumerate(k - q[-1]) if d <= 0 and np.isfinite(last[0, j])]
        found += [(d, first[:, j]) for j, d in enumerate(k - q[0]) if d > 0 and np.isfinite(first[0, j])]
        found.sort(key=lambda row: (abs(row[0]), row[0] > 0))
        return [d for d, _ in found], np.array([values for _, values in found]).reshape(len(found), self.num_heads)

    def weights(self):
        """How many numbers the configuration has to learn."""
        d, hidden, heads = self.width, self.get("hidden", self.width), self.num_heads
        extra = 1 if self.get("time_input", True) else 0
        counts = {
            "learned": lambda: self.table.size,
            "t5": lambda: self.get("num_buckets", 32) * heads,
            "fire": lambda: 2 * self.get("hidden", 32) + heads * (self.get("hidden", 32) + 1),
            "recursive": lambda: d + hidden * (d + 1) + d * (hidden + 1),
            "floater": lambda: d + hidden * (d + extra + 1) + d * (hidden + extra + 1),
        }
        return counts.get(self.scheme, lambda: 0)()


def exact_table(columns, coordinates):
    """[n, columns] rounded once: sines of multiples of pi are 0."""
    return np.array([[float(absolute.exact(column, row)) for column in columns] for row in coordinates])


def waves(columns, positions):
    """[n, columns]: sines and cosines of a sinusoidal encoding, zeros for None."""
    out = np.zeros((len(positions), len(columns)))
    for j, column in enumerate(columns):
        if column:
            cos, sin = turned(positions, [column[1]])
            out[:, j] = (sin if column[0] == "sin" else cos)[:, 0]
    return out


def unmasked_alibi(form, left, right, q, k, key_mask):
    """The form's values with every key seen; the mask still counts the keys of key_mask."""
    values = truth.alibi(form, left, q, k, key_mask, right)
    return np.where(np.isfinite(values), values, 0.0) + 0.0
