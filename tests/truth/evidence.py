"""What a belief predicts for the tensors that /diagnose takes: numbers in float64 by the formulas of this folder, and what right float32
code may differ from them. `predicted` gives both for tensors that are there, `tensor` the numbers of one; `agrees` and `apart` judge
tensors of public code (../field)."""
import functools
import json

import numpy as np

import truth
import truth.absolute
import truth.answers.bias
import truth.rotary
import truth.scaling
import truth.window
from truth.answers import relative, sequences
from truth.answers.rotate import query_factor

PRESETS = {
    "llama-2": {"scheme": "rope", "head_dim": 128, "base": 1e4, "layout": "half"},
    "llama-3": {"scheme": "rope", "head_dim": 128, "base": 5e5, "layout": "half"},
    "llama-3.1": {"scheme": "rope", "head_dim": 128, "base": 5e5, "layout": "half", "scaling": {
        "type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}},
    "gpt-oss": {"scheme": "rope", "head_dim": 64, "base": 150000, "layout": "half", "scaling": {
        "type": "yarn", "factor": 32, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "truncate": False}},
    "qwen2": {"scheme": "rope", "head_dim": 128, "base": 1e6, "layout": "half"},
}
UNIT = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}


def resolved(belief):
    """The belief without a preset, whose fields stand in it."""
    fields = {**PRESETS[belief["preset"]], **belief} if "preset" in belief else dict(belief)
    return {name: value for name, value in fields.items() if value is not None and name != "preset"}


# ---- The sequence ---------------------------------------------------------------------------------------------------------------


def coordinates(f, n):
    """[axes, n]; of a batch of positions [axes, B, n]."""
    if "positions" in f:
        at, levels = np.array(f["positions"], float), f.get("positions_layout")
        if levels == "batch_axes":
            return at.swapaxes(0, 1)
        return at[None] if levels == "batch" or at.ndim == 1 else at
    return np.array(sequences.axes({**f, "len": n}, coords=f.get("coords", "index")), float)


def of_mask(f, mask):
    """Positions [n], or [B, n] of a padded batch: those of its tokens, or its columns."""
    rows = np.array([sequences.positions_of_mask(row, f) for row in np.atleast_2d(mask)])
    return rows.reshape(mask.shape)


# ---- Rotary ---------------------------------------------------------------------------------------------------------------------


def powers(base, r):
    return float(base) ** (-np.arange(0, r, 2) / r)


@functools.lru_cache(maxsize=512)
def frequencies(scaling, base, r, length):
    """Frequencies of r/2 pairs and the attention factor; scaling: its JSON."""
    config = {"factor": 1, **json.loads(scaling)} if "short_factor" in scaling else json.loads(scaling)
    w = [float(x) for x in truth.scaling.inv_freq(config, base, r, length)]
    return np.array(w), float(truth.scaling.attention_factor(config, length))


def ladder(f, r, last):
    """Frequencies of r/2 pairs, attention factor; last: the largest position."""
    if "inv_freq" in f:
        return np.array(f["inv_freq"], float), f.get("attention_factor", 1.0)
    w, m = frequencies(json.dumps(f.get("scaling") or {}), float(f.get("base", f.get("rope_theta", 1e4))), r, int(np.floor(last)) + 1)
    return w, f.get("attention_factor", m)


def channels(f, axes, r, last):
    """Axis and frequency of each pair, its number in its ladder, and the attention factor."""
    rule = f.get("channels")
    if axes == 1 or rule in ("mrope", "mrope_interleaved"):
        w, m = ladder(f, r, last)
        of = {"mrope": truth.rotary.mrope, "mrope_interleaved": truth.rotary.mrope_interleaved}
        axis = np.zeros(len(w), int) if axes == 1 else np.array([c.axis for c in of[rule](r, f["mrope_section"])])
        return axis, w, np.arange(len(w)), m
    if rule == "pixtral":
        w, m = ladder(f, r, last)
        return np.repeat([0, 1], r // 4), np.concatenate([w[0::2], w[1::2]]), np.tile(np.arange(r // 4), 2) * 2, m
    if rule == "dinov3":
        w = 2 * np.pi * float(f.get("base", 100)) ** (-4 * np.arange(r // 4) / r)
        return np.repeat([0, 1], r // 4), np.tile(w, 2), np.tile(np.arange(r // 4), 2), 1.0
    widths = f.get("axes_dim") or truth.absolute.default_axes_dim(r, axes)
    parts = [(k, *ladder(f, widths[k], last)) for k in f.get("axis_order", range(axes))]
    return (np.concatenate([np.full(len(w), k) for k, w, _ in parts]), np.concatenate([w for _, w, _ in parts]),
            np.concatenate([np.arange(len(w)) for _, w, _ in parts]), parts[0][2])


def widths_of(f, width):
    d = f.get("head_dim", width)
    r = f.get("rotary_dim", int(d * f.get("partial_rotary_factor", 1)))
    return d, d if (f.get("scaling") or {}).get("type") == "proportional" else r


def turn(f, n, r):
    """Angles [..., n, C] in f64, what float32 may lose of each, and the attention factor."""
    at = coordinates(f, n)
    axis, w, c, m = channels(f, len(at), r, at.max())
    p = np.moveaxis(at[axis], 0, -1)
    return p * w * f.get("direction", 1), np.abs(p) * np.abs(w) * loss(w, c), m


def loss(w, c):
    """The share of an angle; c: the pair's number in its ladder."""
    with np.errstate(divide="ignore"):
        return np.where(w == 0, 0, np.maximum(6 + 3 * np.abs(np.log(np.abs(w))), 2 * c)) * 2.0**-24


def spread(f, a):
    """Of each pair to both of its channels."""
    return np.repeat(a, 2, -1) if f.get("layout", "interleaved") == "interleaved" else np.concatenate([a, a], -1)


def tables(f, n, r, doubled):
    angle, lost, m = turn(f, n, r)
    parts = np.cos(angle) * m, np.sin(angle) * m, np.minimum(lost, 1 / 8) * m + 4 * UNIT["f32"] * m
    return [spread(f, a) for a in parts] if doubled else parts


def rotate(f, q, is_key=False):
    """q [..., n, d] turned, and what it may be off by."""
    n, (_, r) = q.shape[-2], widths_of(f, q.shape[-1])
    angle, lost, m = turn(f, n, r)
    if angle.ndim == 3:  # a batch
        angle, lost = angle[:, None], lost[:, None]
    at = coordinates(f, n)
    blocks = [r // 2] if len(at) == 1 else [width // 2 for width in f.get("axes_dim") or truth.absolute.default_axes_dim(r, len(at))]
    size = m * (scale_of(f, at, r, is_key) if f.get("scheme") == "xpos" else 1.0)
    out = truth.rotary.rotate(q, size * np.cos(angle), size * np.sin(angle), f.get("layout", "interleaved"), blocks, f.get("rotary_offset", 0))
    if f.get("query_scale") and not is_key:
        out = out * query_factor(f["query_scale"], at[0])[..., None]
    return out, np.broadcast_to((np.minimum(lost.max(-1, keepdims=True), 1 / 8) + 16 * UNIT["f32"]) * np.abs(out).max(), out.shape)


def scale_of(f, at, r, is_key):
    center = truth.rotary.xpos_center(f.get("center", 0), at.shape[-1], f.get("offset", 0))
    return truth.rotary.xpos_scale(at[0], r, f.get("scale_base", 512), f.get("gamma", 0.4), center) ** (-1 if is_key else 1)


# ---- Absolute -------------------------------------------------------------------------------------------------------------------

LINE = ("base", "layout", "freq_shift", "odd", "flip_sin_to_cos", "angle_scale")
NERF = ("num_freqs", "include_input", "log_sampling", "multiply_pi")


def chosen(f, names):
    return {name: f[name] for name in names if name in f}


def columns(f, n, d):
    """The columns of an encoding, and the coordinates [n, axes] of its rows."""
    if f["scheme"] == "fourier":
        at = coordinates(f, n)
        return truth.absolute.nerf(len(at), **chosen(f, NERF)), at.T
    if "grid" not in f:
        return truth.absolute.one_axis(0, d, **chosen(f, LINE)), coordinates(f, n).T
    style, axes = f.get("style", "axial"), len(f["grid"])
    names = {"axial": (*LINE, "axes_dim", "axis_order"), "detr": ("temperature",)}.get(style, ("base",))
    rows = truth.absolute.detr_coordinates(f["grid"], **chosen(f, ("normalize", "angle_scale"))) if style == "detr" else coordinates({"grid": f["grid"]}, 0).T
    return truth.absolute.STYLES[style](d, axes, **chosen(f, names)), np.array([[float(x) for x in row] for row in rows])


def waves(wanted, rows):
    """Their numbers [n, d], and the part of each that float32 may lose."""
    out, lost, ladders = truth.absolute.table(wanted, rows), np.zeros((len(rows), len(wanted))), {}
    for column in wanted:
        if column:
            ladders.setdefault(column.axis, set()).add(-float(column.frequency))
    order = {axis: sorted(ladder) for axis, ladder in ladders.items()}
    for j, column in enumerate(wanted):
        if column:
            w = float(column.frequency)
            lost[:, j] = np.abs(rows[:, column.axis] * w) * loss(w, order[column.axis].index(-w))
    return out, lost


def encoding(f, shape):
    first = "grid" in f and f.get("channels_first", f.get("style") == "detr")
    a, lost = waves(*columns(f, shape[-2], shape[-1 - len(f["grid"])] if first else shape[-1]))
    if f["scheme"] == "fourier":
        lost = np.full(a.shape, np.abs(np.array(f["positions"])).max() * 2.0 ** f.get("num_freqs", 10) * 16 * UNIT["f32"])
    a, lost = (x.T * f.get("pe_scale", 1) if first else x * f.get("pe_scale", 1) for x in (a, lost))
    return a.reshape(shape), (np.minimum(lost, 1 / 8) + 4 * UNIT["f32"] * np.abs(a).max()).reshape(shape)


# ---- Biases ---------------------------------------------------------------------------------------------------------------------


def distances(f, Q, K):
    """Positions of queries and keys."""
    return np.arange(Q) + f.get("q_offset", K - Q), np.arange(K)


def hidden(f, a, q, k):
    return truth.bias.masked(a, q, k, **chosen(f, ("causal", "window", "key_mask")))


def of_pairs(f, arrays, H, q, k):
    """As float32 code has T5's buckets."""
    weights = {name: arrays[name] for name in ("table", "w1", "b1", "w2", "b2") if name in arrays}
    arith = {"arith": "float32"} if f["scheme"] == "t5" else {}
    return truth.answers.bias.PAIRS[f["scheme"]]({**f, **arith, **weights, "num_heads": f.get("num_heads", H)}, q.tolist(), k.tolist())


def bias(f, arrays, shape):
    at = distances(f, *shape[-2:])
    return hidden(f, of_pairs(f, arrays, shape[-3], *at)["bias"], *at)


SHAPE = ("num_buckets", "max_distance", "bidirectional")
INDICES = {"t5": lambda f, q, k: truth.bias.t5_buckets(q, k, "float32", **chosen(f, SHAPE)), "deberta": lambda f, q, k: relative.deberta(f, q, k)[0],
           "shaw": lambda f, q, k: relative.shaw(f, q, k)[0], "swin": lambda f, q, k: truth.window.swin_index(*f["grid"])}


# ---- Maps -----------------------------------------------------------------------------------------------------------------------


def of_side(f, side, offset):
    """The belief of queries or of keys, where each has its positions."""
    name = f"{side}_positions"
    return {**f, "positions": f[name]} if name in f else {**f, "offset": f.get("offset", 0) + offset}


def attend(f, arrays):
    """Scores and probabilities of q and k [..., heads, n, d], and what each may be off by."""
    q, k = arrays["q"].astype(float), arrays["k"].astype(float)
    d, (Q, K) = q.shape[-1], (q.shape[-2], k.shape[-2])
    if f["scheme"] in ("rope", "xpos"):
        q, k = rotate(of_side(f, "q", K - Q), q)[0], rotate(of_side(f, "k", 0), k, True)[0]
    k = np.repeat(k, q.shape[-3] // k.shape[-3], -3)
    scale, turning = f.get("softmax_scale", d**-0.5), min(2.0**-21 * K, 1 / 8) if f["scheme"] == "rope" else 0
    e = scale * q @ k.swapaxes(-1, -2)
    size = scale * np.linalg.norm(q, axis=-1)[..., :, None] * np.linalg.norm(k, axis=-1)[..., None, :]
    if f.get("softcap"):
        e = f["softcap"] * np.tanh(e / f["softcap"])
    lost = (24 * UNIT["f32"] + turning) * np.abs(size)
    at = distances(f, Q, K)
    if f["scheme"] == "alibi":
        b = f.get("bias_factor", 1) * of_pairs(f, {}, e.shape[-3], *at)["bias"]
        e, lost = e + b, lost + 16 * UNIT["f32"] * np.abs(b)
    e = hidden(f, e, *at)
    lost = lost + 4 * UNIT["f32"] * np.where(np.isfinite(e), np.abs(e), 0)
    top = e.max(-1, keepdims=True)
    p = np.exp(e - top)
    p = p / (p.sum(-1, keepdims=True) + (np.exp(np.array(f["sinks"])[:, None, None] - top) if "sinks" in f else 0))
    return {"scores": (e, lost), "probs": (p, p * np.expm1(2 * lost.max(-1, keepdims=True)) + 4 * UNIT["f32"])}


# ---- Two checkpoints ------------------------------------------------------------------------------------------------------------


# ---- Tensors --------------------------------------------------------------------------------------------------------------------

LAYOUTS = {"bhnd": None, "bnhd": "bnhd->bhnd", "nbhd": "nbhd->bhnd", "nhd": "nhd->hnd"}
FLAT = {"flat": "nhd", "bflat": "bnhd"}  # heads beside each other


def to_heads(a, layout, head_dim=None):
    """The axes [..., n, head_dim]."""
    if layout in FLAT:
        return to_heads(a.reshape(*a.shape[:-1], -1, head_dim), FLAT[layout])
    return a if LAYOUTS[layout] is None else np.einsum(LAYOUTS[layout], a)


def from_heads(a, layout):
    if layout in FLAT:
        a = from_heads(a, FLAT[layout])
        return a.reshape(*a.shape[:-2], -1)
    return a if LAYOUTS[layout] is None else np.einsum("->".join(reversed(LAYOUTS[layout].split("->"))), a)


def predicted(belief, arrays):
    """{name: (numbers, what they may be off by)} for the arrays that a formula gives; inputs (q, k, table) have none."""
    f = resolved(belief)
    layout, out = f.pop("tensor_layout", "bhnd"), {}
    if {"scores", "probs"} & set(arrays):
        return {name: one for name, one in attend(f, arrays).items() if name in arrays}
    mask = arrays.get("attention_mask")
    if mask is not None:
        f = {**f, "positions": of_mask(f, mask).tolist(), **({"positions_layout": "batch"} if mask.ndim == 2 else {})}
    for name, a in arrays.items():
        if name in ("q_out", "k_out"):
            values, may = rotate(f, to_heads(arrays[name[0]], layout, f.get("head_dim")), name == "k_out")
            may = np.where((mask if mask.ndim == 2 else mask[None])[:, None, :, None] == 1, may, np.inf) if mask is not None else may
            out[name] = from_heads(values, layout), from_heads(may, layout)
        elif name == "encoding":
            out[name] = encoding(f, a.shape)
        elif name == "bias":
            b = bias(f, arrays, a.shape)
            may = np.where(np.isfinite(b), np.abs(b), 0) * 2 * max(b.shape[-3], 8) * UNIT["f32"]
            out[name] = b.reshape(a.shape), may.reshape(a.shape)
        elif name == "buckets":
            usual = {"q_offset": 0} if f["scheme"] == "deberta" else {}
            at = distances({**usual, **f}, *a.shape[-2:])
            out[name] = INDICES[f["scheme"]](f, *at).reshape(a.shape), np.zeros(a.shape)
        elif name == "position_ids":
            at = coordinates(f, a.shape[-1])
            out[name] = np.broadcast_to(at if a.ndim > 1 else at[0], a.shape), np.zeros(a.shape)
        elif name in ARRANGED:
            out.update(rotary_tables(f, name, a))
    return out


ARRANGED = {  # the axis that counts pairs from the end, and channels for each of its entries; then the numbers of cos, sin, lost
    "cos": (-1, 1, None), "angles": (-1, 1, None), "inv_freq": (-1, 2, None), "rope_freqs": (-1, 2, None),
    "freqs_cis": (-2, 2, lambda c, s, l: (np.stack([c, s], -1), np.stack([l, l], -1))),
    "cos_sin": (-1, 1, lambda c, s, l: (np.concatenate([c, s], -1), np.concatenate([l, l], -1))),
    "matrix": (-3, 2, lambda c, s, l: (np.stack([c, -s, s, c], -1), np.stack([l] * 4, -1)))}


def rotary_tables(f, name, a):
    pair, times, join = ARRANGED[name]
    width = a.shape[pair] * times
    n = 1 if times == 2 and join is None else a.size // np.prod(a.shape[pair:])
    r = widths_of(f, 2 * width if name in ("cos", "angles") and "head_dim" not in f else width)[1]
    shaped = lambda *parts: tuple(x.reshape(a.shape) for x in parts)
    if name in ("inv_freq", "rope_freqs"):
        w = ladder(f, r, coordinates(f, 1).max())[0]
        may = np.maximum(2.0**-20, loss(w, np.arange(len(w))))
        w = powers(f.get("base", 1e4), r) / w if name == "rope_freqs" else w
        return {name: shaped(w, may * w)}
    if name == "angles":
        angle, lost, _ = turn(f, n, r)
        parts = angle, lost + 4 * UNIT["f32"] * np.abs(angle)
        return {name: shaped(*(parts if width == r // 2 else (spread(f, x) for x in parts)))}
    cos, sin, lost = tables(f, n, r, name == "cos" and width == r)
    return {"cos": shaped(cos, lost), "sin": shaped(sin, lost)} if join is None else {name: shaped(*join(cos, sin, lost))}


def tensor(name, belief, shape=None, **arrays):
    """The numbers of one: its shape is given, or that of what is rotated."""
    like = np.zeros(shape if shape is not None else arrays[{"q_out": "q", "k_out": "k"}.get(name, "q")].shape)
    return predicted(belief, {**arrays, "cos" if name == "sin" else name: like})[name][0]


def off(values, found, may, dtype):
    """How many times what it may be off by each number is."""
    most = np.abs(values[np.isfinite(values)]).max(initial=0)
    same = (values == found) | (np.isneginf(values) & np.isneginf(found))
    with np.errstate(invalid="ignore", divide="ignore"):
        far = np.abs(values - found) / (may + (4 * UNIT[dtype] * most if dtype in ("f16", "bf16") else 1e-300))
    return np.where(same, 0, np.nan_to_num(far, nan=np.inf, posinf=np.inf))


def agrees(belief, arrays, dtypes):
    """The largest error, in units of what right float32 code may be off by."""
    return max(float(off(a, arrays[name].astype(float), may, dtypes.get(name, "f32")).max()) for name, (a, may) in predicted(belief, arrays).items())


def apart(belief, arrays, dtypes, times=4.0):
    """The share of numbers that tell this wrong belief from the tensor beyond any rounding; 1 where shapes cannot fit."""
    try:
        parts = [off(a, arrays[name].astype(float), may, dtypes.get(name, "f32")) for name, (a, may) in predicted(belief, arrays).items()]
    except (ValueError, IndexError):
        return 1.0
    return float(np.mean(np.concatenate([p.ravel() for p in parts]) > times))
