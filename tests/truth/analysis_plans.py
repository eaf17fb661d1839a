"""What is analysed: a configuration with its sequence as positions, frequencies, rows and biases in float64, by the functions of answers/.
Angles of one axis are extended precision here, so that a position of 2^24 costs no digit and long runs are quick."""
import functools
import math

import mpmath
import numpy as np

import truth
import truth.rotary as formulas
import truth.scaling as scalings
from truth.answers import absolute, bias, rotary, sequences

SEQUENCE = ("len", "offset", "positions", "grid", "lens", "q_len", "k_len", "q_offset")
FAMILIES = {"absolute": ("none", "integer", "binary", "sinusoidal", "fourier", "learned", "recursive", "floater"),
            "rotary": ("rope", "xpos"), "bias": ("alibi", "t5", "kerple", "fire", "sandwich"),
            "relative": ("shaw", "transformer_xl", "xlnet", "conformer", "deberta", "cope", "decomposed")}
FAMILY = {scheme: family for family, schemes in FAMILIES.items() for scheme in schemes}
LADDERS = ("sinusoidal", "rope", "xpos")
WAVE = ("base", "layout", "freq_shift", "odd", "flip_sin_to_cos", "angle_scale")


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
        is_of_pairs = "q_len" in config or "k_len" in config
        self.coordinates = np.array([sequences.pairs(config)[1]] if is_of_pairs else sequences.axes(config), float)
        self.axes, self.n = self.coordinates.shape
        self.positions = self.coordinates[0]

    def get(self, name, default=None):
        value = self.config.get(name)
        return default if value is None else value

    # ---- The sequence ----

    @property
    def queries(self):
        return np.array(sequences.pairs(self.config)[0], float)

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
        """A key_mask belongs to the given sequence only."""
        kept = {name: value for name, value in self.config.items() if name not in (*SEQUENCE, "key_mask")}
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

    @functools.cached_property
    def turns(self):
        return rotary.Turns(self.config)

    @property
    def width(self):
        """Rotary: rotated channels; else columns."""
        return self.turns.width if self.family == "rotary" else absolute.width_of(self.config)

    @property
    def seq_len(self):
        return math.floor(self.positions.max()) + 1

    def columns(self):
        return truth.sinusoidal_columns(self.width, **absolute.some(self.config, *WAVE))

    def frequencies(self, is_scaled=True):
        """w, or the unscaled w, of each pair as mpf."""
        if self.scheme == "sinusoidal":
            return [column[1] for column in self.columns() if column and column[0] == "sin"]
        if is_scaled or "inv_freq" in self.config:
            return [channel.frequency for channel in self.turns.channels]
        return formulas.ladder(self.width, self.get("base", 10000.0))

    @property
    def attention_factor(self):
        return 1.0 if self.scheme == "sinusoidal" else self.turns.factor

    @property
    def train_len(self):
        """The scaling's original length, else that of the sequence."""
        if scalings.rule(self.scaling) == "dynamic":
            return self.scaling["max_position_embeddings"]
        return self.scaling.get("original_max_position_embeddings", self.n)

    # ---- Rotary ----

    @property
    def blocks(self):
        """Pairs of each axis."""
        return self.turns.blocks

    def tables(self):
        """cos, sin [n, C] with the attention factor."""
        if self.axes > 1:
            return self.turns.tables()
        cos, sin = turned(self.positions, self.frequencies())
        return self.attention_factor * cos, self.attention_factor * sin * self.get("direction", 1)

    def scale(self):
        """[n, C]; 1 but for xpos."""
        return self.turns.scale(self.n) if self.scheme == "xpos" else np.ones((self.n, self.width // 2))

    def rotate(self, x, is_key=False, at=slice(None)):
        """x [..., n, head_dim] turned to the positions, or to some of them."""
        scale = self.scale() ** (-1 if is_key else 1)
        cos, sin = ((table * scale)[at] for table in self.tables())
        return formulas.rotate(x, cos, sin, self.turns.layout, self.blocks, self.get("rotary_offset", 0))

    # ---- Absolute ----

    @property
    def table(self):
        needed = int(self.positions.max()) + 1 + self.get("row_offset", 0)
        return absolute.weights(self.config, table=(self.get("rows", needed), self.width))["table"]

    def is_beyond(self):
        """Whether a position has more bits than there are, or no row."""
        if self.scheme == "binary":
            return self.positions.max() >= 2 ** self.get("bits", min(self.width, 32))
        at = self.positions + self.get("row_offset", 0)
        return self.scheme == "learned" and self.get("out_of_range", "error") == "error" and not 0 <= at.min() <= at.max() < len(self.table)

    def encoding(self):
        if self.is_ladder:
            return waves(self.columns(), self.positions)
        if self.is_beyond():
            raise Undefined
        return absolute.outputs({**self.config, "channels_first": False})[0]["encoding"]

    # ---- Bias ----

    @property
    def num_heads(self):
        return self.get("num_heads", 8)

    def bias(self, queries=slice(None)):
        """[H, Q, K] with -inf where the key is not seen; or of a slice of the queries."""
        return bias.of_pairs(self.config, queries)[0]["bias"]

    def t5_parameters(self):
        return absolute.some(self.config, "num_buckets", "max_distance", "bidirectional")

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


def waves(columns, positions):
    """[n, columns]: sines and cosines of a sinusoidal encoding, zeros for None."""
    out = np.zeros((len(positions), len(columns)))
    for j, column in enumerate(columns):
        if column:
            cos, sin = turned(positions, [column[1]])
            out[:, j] = (sin if column[0] == "sin" else cos)[:, 0]
    return out
