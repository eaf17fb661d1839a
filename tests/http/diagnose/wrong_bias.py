"""Biases and indices of relative positions as public code computes them wrongly: `bias` [heads, q, k] or `buckets` [q, k]."""
import math
from dataclasses import dataclass, field, replace

import numpy as np

import truth
import truth.bias
from wrong_tensors import Tensor, choose, rounded

MAKES = ["direction_reversed", "negated", "transposed", "scaled", "mask_value", "slopes_other", "slopes_order", "bias_max_other",
         "form_other", "alignment_other", "mask_missing", "mask_extra", "window_other", "bidirectional_other", "max_distance_other",
         "kind_other", "parameter_other"]
FORMS = ["symmetric", "relative", "key", "key_end"]


@dataclass(frozen=True)
class Bias:
    scheme: str
    sends: str  # bias, buckets
    dtype: str
    heads: int
    q_len: int
    k_len: int
    q_offset: int = None
    causal: bool = False
    window: int = None
    own: dict = field(default_factory=dict)  # the scheme's parameters
    slopes: tuple = None
    mask_number: float = -np.inf
    factor: float = 1.0
    turned: bool = False

    def request(self):
        out = {"scheme": self.scheme, **self.own}
        if self.q_len == self.k_len and self.q_offset is None:
            out["len"] = self.k_len
        else:
            out.update(q_len=self.q_len, k_len=self.k_len)
        if self.scheme not in ("shaw", "deberta"):
            out["num_heads"] = self.heads
        if self.q_offset is not None:
            out["q_offset"] = self.q_offset
        if self.causal:
            out["causal"] = True
        if self.window is not None:
            out["window"] = self.window
        if self.slopes is not None:
            out["slopes"] = list(self.slopes)
        return out

    def data(self, rng):
        if self.scheme != "t5" or self.sends != "bias":
            return None
        return rounded(rng.standard_normal((self.own.get("num_buckets", 32), self.heads)), self.dtype)

    def sent(self, table):
        return {} if table is None else {"table": Tensor(table, self.dtype)}

    def relative(self):
        """k - q [q, k]."""
        start = self.k_len - self.q_len if self.q_offset is None else self.q_offset
        return np.arange(self.k_len)[None, :] - (start + np.arange(self.q_len))[:, None]

    def seen(self):
        rel, left = self.relative(), math.inf if self.window is None else self.window
        return (-rel < left) & (rel <= (0 if self.causal else left - 1))

    def values(self, table):
        if self.sends == "buckets":
            out = INDICES[self.scheme](self)
            return {"buckets": out.T if self.turned else out}
        out = np.where(self.seen(), SCHEMES[self.scheme](self, table) * self.factor, self.mask_number)
        return {"bias": out.swapaxes(-1, -2) if self.turned else out}

    def tolerance(self, name, values, u):
        return 4 * u * np.abs(np.where(np.isfinite(values[name]), values[name], 0))


# ---- Formulas -----------------------------------------------------------------------------------------------------------------


def official(heads, bias_max=8):
    """Slopes: powers of two; odd terms of the sequence twice as long are appended."""
    return tuple(float(x) for x in truth.alibi_slopes(heads, bias_max))


def alibi(m, _):
    slopes = np.array(m.slopes or official(m.heads, m.own.get("bias_max", 8)))[:, None, None]
    rel, k = m.relative(), np.arange(m.k_len) + 0 * m.relative()
    return slopes * {"symmetric": -np.abs(rel), "relative": np.minimum(rel, 0), "key": k, "key_end": k - (m.k_len - 1)}[m.own.get("form", "symmetric")]


def t5_index(m):
    known = {d: truth.bias.t5_bucket(int(d), m.own.get("num_buckets", 32), m.own.get("max_distance", 128), m.own.get("bidirectional", True))
             for d in np.unique(m.relative())}
    return np.vectorize(known.get)(m.relative())


def shaw_index(m):
    reach = m.own["max_relative"]
    rel = m.relative() * (-1 if m.own.get("direction") == "query_minus_key" else 1)
    return np.clip(rel, -reach, reach) + reach


def deberta_index(m):
    """Buckets grow with the logarithm beyond half of them; the paper's code rounds up."""
    delta, buckets, most = -m.relative(), m.own["position_buckets"], m.own["max_relative_positions"]
    middle = buckets // 2
    far = np.maximum(np.abs(delta), middle)
    log = middle + np.ceil(np.log(far / middle) / np.log((most - 1) / middle) * (middle - 1) - 1e-9)
    return np.clip(np.where(np.abs(delta) <= middle, delta, np.sign(delta) * log).astype(int) + buckets, 0, 2 * buckets - 1)


def kerple(m, _):
    n = np.abs(m.relative()).astype(float)
    r1, r2 = (np.broadcast_to(np.asarray(m.own[r], float), m.heads)[:, None, None] for r in ("r1", "r2"))
    return -r1 * np.log1p(r2 * n) if m.own["kind"] == "log" else -r1 * np.where(n > 0, n, 0.0) ** r2


def sandwich(m, _):
    width = m.own["bar_dim"]
    w = float(m.own.get("base", 10000.0)) ** (-2.0 * np.arange(width // 2) / width)
    return np.cos(m.relative()[..., None] * w).sum(-1)[None] * (m.heads / (8 * np.arange(1, m.heads + 1)))[:, None, None]


SCHEMES = {"alibi": alibi, "kerple": kerple, "sandwich": sandwich, "t5": lambda m, table: table.T[:, t5_index(m)]}
INDICES = {"t5": t5_index, "shaw": shaw_index, "deberta": deberta_index}

# ---- Beliefs and faults -------------------------------------------------------------------------------------------------------

OF_SCHEME = {"slopes_other": ["alibi"], "slopes_order": ["alibi"], "bias_max_other": ["alibi"], "form_other": ["alibi"],
             "bidirectional_other": ["t5"], "max_distance_other": ["t5"], "kind_other": ["kerple"],
             "parameter_other": ["kerple", "sandwich"], "direction_reversed": ["shaw"]}
RECTANGLES = {"alignment_other", "transposed", "max_distance_other"}


def believe(rng, code):
    scheme = choose(rng, *OF_SCHEME.get(code, ["alibi", "alibi", "t5", "kerple", "sandwich"]))
    sends = "buckets" if scheme in ("shaw", "deberta") or (scheme == "t5" and code in (
        "bidirectional_other", "max_distance_other", "alignment_other", "transposed") and rng.random() < 0.5) else "bias"
    dtype = "i64" if sends == "buckets" else choose(rng, "f64", "f32", "f32", "f16", "bf16")
    if scheme == "sandwich" and code == "scaled":
        dtype = choose(rng, "f32", "f16", "bf16")
    heads = choose(rng, 3, 6, 12) if code == "slopes_order" else choose(rng, 2, 3, 4, 6, 8, 12)
    q_len = k_len = int(rng.integers(5, 13))
    if code in RECTANGLES or rng.random() < 0.3:
        q_len = int(rng.integers(2, k_len))
    if code in ("max_distance_other", "bidirectional_other") and scheme == "t5":
        q_len, k_len = int(rng.integers(3, 6)), int(rng.integers(150, 250))
    causal = code in ("mask_missing", "mask_value") or (code not in ("mask_extra", "form_other") and rng.random() < 0.4)
    if sends == "buckets":
        causal = False
    window = int(rng.integers(2, 5)) if code == "window_other" else None
    return Bias(scheme, sends, dtype, heads, q_len, k_len, None, causal, window, believe_own(rng, scheme, heads, code))


def believe_own(rng, scheme, heads, code):
    if scheme == "alibi":
        return choose(rng, {}, {"form": choose(rng, *FORMS)}) if code != "transposed" else {"form": choose(rng, "relative", "key")}
    if scheme == "t5":
        return {"bidirectional": bool(rng.integers(2)), **choose(rng, {}, {"max_distance": choose(rng, 64, 256)})}
    if scheme == "shaw":
        return {"max_relative": int(rng.integers(2, 7)), "direction": choose(rng, "key_minus_query", "query_minus_key")}
    if scheme == "sandwich":
        return {"bar_dim": choose(rng, 128, 64)}
    r1, r2 = (round(float(rng.uniform(0.2, 1.8)), 2) for _ in range(2))
    return {"kind": choose(rng, "log", "power"), "r1": r1, "r2": r2}


def faults(m, rng, kind):
    out = [("transposed", replace(m, turned=True)), *of_alignment(m)]
    if m.scheme == "shaw":
        other = {"key_minus_query": "query_minus_key", "query_minus_key": "key_minus_query"}[m.own["direction"]]
        out += [("direction_reversed", own(m, direction=other))]
    if m.scheme == "t5":
        out += [("bidirectional_other", own(m, bidirectional=not m.own["bidirectional"]))]
        out += [("max_distance_other", own(m, max_distance=x)) for x in (64, 128, 256, 512, 800) if x != m.own.get("max_distance", 128)]
    if m.sends == "bias":
        out += [("negated", replace(m, factor=-1.0)), *of_mask(m)]
        out += [("scaled", replace(m, factor=f)) for f in (0.125, 64 ** 0.5, round(float(rng.uniform(0.05, 5)), 3))]
    return out + {"alibi": of_alibi, "kerple": of_kerple, "sandwich": of_sandwich}.get(m.scheme, lambda m, rng: [])(m, rng)


def fitted(right, wrong):
    """Slopes take in a factor."""
    if right.scheme != "alibi" or not (wrong.slopes or "bias_max" in wrong.own):
        return []
    slopes = wrong.slopes or official(wrong.heads, wrong.own["bias_max"])
    return [("slopes_other", replace(right, slopes=tuple(x * wrong.factor for x in slopes)))]


def own(m, **fields):
    return replace(m, own={**m.own, **fields})


def of_alignment(m):
    start = m.k_len - m.q_len
    return [("alignment_other", replace(m, q_offset=x)) for x in (0, start - 1, start + 1) if x not in (start, m.q_offset) and m.q_len != m.k_len]


def of_mask(m):
    out = []
    if m.causal:
        out += [("mask_missing", replace(m, causal=False))]
    else:
        out += [("mask_extra", replace(m, causal=True))]
    if m.window is not None:
        out += [("mask_missing", replace(m, window=None)), *[("window_other", replace(m, window=m.window + k)) for k in (-1, 1)]]
    if m.causal or m.window is not None:
        numbers = {"f16": [-1e4, -65504.0], "bf16": [-1e4, -1e9], "f32": [-1e4, -1e9, float(np.finfo("f4").min)], "f64": [-1e4, -1e9]}
        out += [("mask_value", replace(m, mask_number=x)) for x in numbers[m.dtype]]
    return out


def of_alibi(m, rng):
    h = np.arange(1, m.heads + 1)
    power, right = 2 ** int(math.log2(m.heads)), np.array(official(m.heads, m.own.get("bias_max", 8)))
    lists = [h * 2.0 ** (-8 / power), 2.0 ** (-8 * h / m.heads), np.concatenate([right[:power], right[:m.heads - power] / 2]),
             rounded(right, "bf16"), np.round(rng.uniform(0.01, 1, m.heads), 4)]
    out = [("slopes_other", replace(m, slopes=tuple(float(x) for x in some))) for some in lists if not np.array_equal(some, right)]
    orders = [right[::-1], np.sort(right)[::-1]]
    out += [("slopes_order", replace(m, slopes=tuple(float(x) for x in some))) for some in orders if not np.array_equal(some, right)]
    out += [("bias_max_other", own(m, bias_max=b)) for b in (16, 4) if b != m.own.get("bias_max", 8)]
    return out + [("form_other", own(m, form=form)) for form in FORMS if form != m.own.get("form", "symmetric")]


def of_kerple(m, rng):
    kind = "power" if m.own["kind"] == "log" else "log"
    return [("kind_other", own(m, kind=kind)), ("parameter_other", own(m, r1=m.own["r2"], r2=m.own["r1"]))]


def of_sandwich(m, rng):
    return [("parameter_other", own(m, bar_dim=b)) for b in (32, 64, 128, 256) if b != m.own["bar_dim"]]
