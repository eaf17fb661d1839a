"""What a belief predicts for the tensors of a row: formulas in float64 NumPy, written from the papers, for the beliefs that rows hold;
and what right float32 code may differ from them. `agrees` and `apart` decide which rows and which wrong beliefs are worth asking."""
import numpy as np

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
        at = np.array(f["positions"], float)
        if f.get("positions_layout") == "batch":
            return at[None]
        return at if at.ndim == 2 else at[None]
    if "grid" in f:
        return over_grid(f)
    if "segments" in f:
        return of_segments(f)
    if "lens" in f:
        return np.concatenate([np.arange(k) for k in f["lens"]])[None] + float(f.get("offset", 0))
    return np.arange(n, dtype=float)[None] + f.get("offset", 0)


def of_mask(f, mask):
    """Positions [B, n] of a padded batch: those of its tokens, or its columns."""
    if f.get("padding") == "counted":
        return np.arange(mask.shape[-1]) + f.get("offset", 0) + 0 * mask
    return np.where(mask == 1, mask.cumsum(-1) - 1 + f.get("offset", 0), f.get("pad_position", 1))


def over_grid(f):
    grid, coords = f["grid"], f.get("coords", "index")
    axes = [np.arange(k, dtype=float) for k in grid]
    if coords == "one_based":
        axes = [a + 1 for a in axes]
    elif coords == "normalized":
        axes = [2 * (a + 0.5) / len(a) - 1 for a in axes]
    elif coords == "pixel":
        axes = [np.linspace(-1, 1, len(a)) for a in axes]
    elif coords == "resized":
        axes = [a * ref / len(a) for a, ref in zip(axes, f["ref_grid"])]
    at = np.stack(np.meshgrid(*axes, indexing="ij"))
    if f.get("order") == "merge":
        m, (h, w) = f.get("spatial_merge_size", 2), grid[-2:]
        at = at.reshape(len(grid), -1, h // m, m, w // m, m).swapaxes(3, 4)
    return at.reshape(len(grid), -1)


def of_segments(f):
    """Position ids of time, height and width, as Qwen-VL counts them."""
    merge, style, start, parts = f.get("spatial_merge_size", 2), f.get("position_style", "qwen2_5_vl"), 0, []
    for segment in f["segments"]:
        if segment["type"] == "text":
            block = np.tile(np.arange(segment["len"]), (3, 1))
        else:
            t, h, w = segment["grid"]
            block = over_grid({"grid": [t, h // merge, w // merge]})
            seconds = segment.get("second_per_grid", 1.0 if segment["type"] == "video" else 0.0)
            seconds = int(seconds) if style == "qwen2_5_vl_int_seconds" else seconds
            if style.startswith("qwen2_5_vl"):
                block[0] = np.trunc(np.float32(np.float32(block[0] * seconds) * np.float32(f.get("tokens_per_second", 2))))
        parts.append(block + start)
        start = parts[-1].max() + 1
    return np.concatenate(parts, -1).astype(float)


# ---- Rotary ---------------------------------------------------------------------------------------------------------------------


def powers(base, r):
    return float(base) ** (-np.arange(0, r, 2) / r)


def ladder(f, r, last):
    """Frequencies of r/2 pairs, attention factor; last: the largest position."""
    scaling, base = f.get("scaling") or {"type": "default"}, float(f.get("base", f.get("rope_theta", 1e4)))
    kind = scaling.get("type") or scaling["rope_type"]
    if "inv_freq" in f:
        return np.array(f["inv_freq"], float), f.get("attention_factor", 1.0)
    w, factor, m = powers(base, r), scaling.get("factor", 1), 1.0
    if kind == "linear":
        w = w / factor
    elif kind == "ntk":
        w = powers(base * factor ** (r / (r - 2)), r)
    elif kind == "dynamic":
        most = scaling["max_position_embeddings"]
        n = max(scaling.get("seq_len", np.floor(last) + 1), most)
        w = powers(base * (factor * n / most - (factor - 1)) ** (r / (r - 2)), r)
    elif kind == "yarn":
        w, m = yarn(scaling, w, base, r)
    elif kind == "llama3":
        w = llama3(scaling, w)
    elif kind == "longrope":
        w, m = longrope(scaling, w, last)
    elif kind == "proportional":
        keep = int(scaling["partial_rotary_factor"] * r // 2)
        w = np.where(np.arange(r // 2) < keep, w, 0) / factor
    return w, f.get("attention_factor", m)


def yarn(s, w, base, r):
    factor, first = s["factor"], s["original_max_position_embeddings"]
    low, high = (r * np.log(first / (2 * np.pi * s.get(name, beta))) / (2 * np.log(base)) for name, beta in (("beta_fast", 32), ("beta_slow", 1)))
    if s.get("truncate", True):
        low, high = np.floor(low), np.ceil(high)
    low, high = max(low, 0), min(high, r - 1)
    ramp = np.clip((np.arange(r // 2) - low) / (high - low if high != low else 0.001), 0, 1)
    keep = (1 - ramp) * s.get("extrapolation_factor", 1)
    grown = lambda k: 1.0 if factor <= 1 else 0.1 * k * np.log(factor) + 1
    both = s.get("mscale") and s.get("mscale_all_dim")
    m = s.get("attention_factor", grown(s["mscale"]) / grown(s["mscale_all_dim"]) if both else grown(1))
    return w / factor * (1 - keep) + w * keep, m


def llama3(s, w):
    first, low, high = s["original_max_position_embeddings"], s["low_freq_factor"], s["high_freq_factor"]
    length = 2 * np.pi / w
    t = (first / length - low) / (high - low) if high != low else 0
    between = (1 - t) * w / s["factor"] + t * w
    return np.where(length > first / low, w / s["factor"], np.where(length < first / high, w, between))


def longrope(s, w, last):
    first = s["original_max_position_embeddings"]
    divide = np.array(s["long_factor" if s.get("seq_len", last + 1) > first else "short_factor"])
    factor = s.get("factor", 1)
    return w / divide, s.get("attention_factor", 1.0 if factor <= 1 else np.sqrt(1 + np.log(factor) / np.log(first)))


def channels(f, axes, r, last):
    """Axis and frequency of each pair, its number in its ladder, and the attention factor."""
    rule = f.get("channels")
    if axes == 1 or rule in ("mrope", "mrope_interleaved"):
        w, m = ladder(f, r, last)
        axis = np.zeros(len(w), int)
        if axes == 1:
            return axis, w, np.arange(len(w)), m
        section = f["mrope_section"]
        if rule == "mrope":
            axis = np.repeat(np.arange(3), section)
        else:
            c = np.arange(len(w))
            axis = np.where((c % 3 == 1) & (c < 3 * section[1]), 1, np.where((c % 3 == 2) & (c < 3 * section[2]), 2, 0))
        return axis, w, np.arange(len(w)), m
    if rule == "pixtral":
        w, m = ladder(f, r, last)
        return np.repeat([0, 1], r // 4), np.concatenate([w[0::2], w[1::2]]), np.tile(np.arange(r // 4), 2) * 2, m
    if rule == "dinov3":
        w = 2 * np.pi * float(f.get("base", 100)) ** (-4 * np.arange(r // 4) / r)
        return np.repeat([0, 1], r // 4), np.tile(w, 2), np.tile(np.arange(r // 4), 2), 1.0
    widths = f.get("axes_dim") or even_widths(r, axes)
    order = f.get("axis_order", range(axes))
    parts = [(k, *ladder(f, widths[k], last)) for k in order]
    return (np.concatenate([np.full(len(w), k) for k, w, _ in parts]), np.concatenate([w for _, w, _ in parts]),
            np.concatenate([np.arange(len(w)) for _, w, _ in parts]), parts[0][2])


def even_widths(d, axes):
    width = 2 * (d // (2 * axes))
    return [d - width * (axes - 1)] + [width] * (axes - 1)


def widths_of(f, width):
    d = f.get("head_dim", width)
    r = f.get("rotary_dim", int(d * f.get("partial_rotary_factor", 1)))
    return d, d if (f.get("scaling") or {}).get("type") == "proportional" else r


def turn(f, n, r):
    """Angles [..., n, C] in f64, what float32 may lose of each, and the attention factor."""
    at = coordinates(f, n)
    axis, w, c, m = channels(f, len(at), r, at.max())
    p = at[axis].swapaxes(0, -2).swapaxes(-1, -2) if at.ndim == 2 else np.moveaxis(at[axis], 0, -1)
    p = at[axis].T if at.ndim == 2 else p
    return p * w * f.get("direction", 1), np.abs(p) * np.abs(w) * loss(w, c), m


def loss(w, c):
    with np.errstate(divide="ignore"):
        return np.where(w == 0, 0, np.maximum(6 + 3 * np.abs(np.log(np.abs(w))), 2 * c)) * 2.0**-24


def tables(f, n, r, doubled):
    angle, lost, m = turn(f, n, r)
    lost = np.minimum(lost, 1 / 8) * m + 4 * UNIT["f32"] * m
    spread = (lambda a: a) if not doubled else (lambda a: np.repeat(a, 2, -1)) if f.get("layout", "interleaved") == "interleaved" else (lambda a: np.concatenate([a, a], -1))
    return spread(np.cos(angle) * m), spread(np.sin(angle) * m), spread(lost)


def rotate(f, q, keys=False):
    """q [..., n, d] turned, and what it may be off by."""
    d, r = widths_of(f, q.shape[-1])
    start, layout, n = f.get("rotary_offset", 0), f.get("layout", "interleaved"), q.shape[-2]
    angle, lost, m = turn(f, n, r)
    if angle.ndim == 3:  # a batch
        angle, lost = angle[:, None], lost[:, None]
    x, C = q[..., start:start + r].astype(float), r // 2
    one, two = pairs_of(layout, C, len(coordinates(f, n)), f)
    if layout == "vjepa2":
        y, wide = np.empty_like(x), np.concatenate([angle, angle], -1)
        y[..., 0::2] = x[..., 0::2] * np.cos(wide[..., 0::2]) - x[..., 1::2] * np.sin(wide[..., 0::2])
        y[..., 1::2] = x[..., 1::2] * np.cos(wide[..., 1::2]) + x[..., 0::2] * np.sin(wide[..., 1::2])
    else:
        grow = scale_of(f, n, C, keys) if f.get("scheme") == "xpos" else 1.0
        a, b = x[..., one], x[..., two]
        y = np.empty_like(x)
        to_one, to_two = (slice(0, C), slice(C, r)) if layout == "interleaved_to_half" else (one, two)
        y[..., to_one] = (a * np.cos(angle) - b * np.sin(angle)) * m * grow
        y[..., to_two] = (b * np.cos(angle) + a * np.sin(angle)) * m * grow
    out = q.astype(float)
    out[..., start:start + r] = y
    most = np.abs(out).max()
    return out, np.broadcast_to((np.minimum(lost.max(-1, keepdims=True), 1 / 8) + 16 * UNIT["f32"]) * most, out.shape)


def pairs_of(layout, C, axes, f):
    c = np.arange(C)
    if layout in ("interleaved", "interleaved_to_half", "vjepa2"):
        return 2 * c, 2 * c + 1
    if layout == "half":
        return c, c + C
    one, at = [], 0
    for width in f.get("axes_dim") or even_widths(2 * C, axes):
        one.append(at + np.arange(width // 2))
        at += width
    half = [np.full(len(o), len(o)) for o in one]
    return np.concatenate(one), np.concatenate(one) + np.concatenate(half)


def scale_of(f, n, C, keys):
    gamma, center = f.get("gamma", 0.4), f.get("center", 0)
    p = coordinates(f, n)[0]
    center = {"torchscale": np.ceil(len(p) / 2), "lucidrains": len(p) // 2}.get(center, center)
    zeta = (2 * np.arange(C) / (2 * C) + gamma) / (1 + gamma)
    grow = zeta ** ((p - center)[:, None] / f.get("scale_base", 512))
    return 1 / grow if keys else grow


# ---- Absolute -------------------------------------------------------------------------------------------------------------------


def sinusoid(f, at, d):
    """One axis: [n, d] and the part of each number that float32 may lose."""
    base, shift, odd = float(f.get("base", 1e4)), f.get("freq_shift", 0), f.get("odd", "paper")
    whole = d + 1 if odd == "truncate" and d % 2 else d
    sines = (whole + 1) // 2 if odd == "paper" else whole // 2
    cosines = whole // 2
    i = np.arange(max(sines, cosines))
    w = base ** (-2.0 * i / whole) if shift == 0 and odd != "pad" else base ** (-i / (whole // 2 - shift))
    angle = np.asarray(at, float)[:, None] * w * f.get("angle_scale", 1)
    lost = np.abs(angle) * loss(w, i)
    s, c = (np.sin(angle), lost), (np.cos(angle), lost)
    if f.get("flip_sin_to_cos"):
        s, c = c, s
    out = [np.zeros((len(angle), whole)) for _ in range(2)]
    to = (slice(0, 2 * sines, 2), slice(1, 2 * cosines, 2)) if f.get("layout", "interleaved") == "interleaved" else (slice(0, sines), slice(sines, sines + cosines))
    for k in range(2):
        out[k][:, to[0]], out[k][:, to[1]] = s[k][:, :sines], c[k][:, :cosines]
    return out[0][:, :d], out[1][:, :d]


def over_axes(f, d):
    """Sinusoids over a grid: [n, d] and what float32 may lose."""
    style, grid = f.get("style", "axial"), f["grid"]
    at = over_grid({"grid": grid})
    half = {**f, "layout": "half"}
    join = lambda *parts: tuple(np.concatenate([p[k] for p in parts], -1) for k in range(2))
    if style == "detr":
        at = at + 1
        if f.get("normalize"):
            at = at / (np.array(grid, float)[:, None] + 1e-6) * f.get("angle_scale", 2 * np.pi)
        one = {"base": f.get("temperature", 1e4)}
        return join(*(sinusoid(one, a, d // 2) for a in at))
    if style == "mae":
        return join(sinusoid(half, at[1], d // 2), sinusoid(half, at[0], d // 2))
    if style == "timm":
        w = float(f.get("temperature", f.get("base", 1e4))) ** (-np.arange(d // 4) / (d // 4 - f.get("freq_shift", 0)))
        y, x = at[0][:, None] * w, at[1][:, None] * w
        lost = loss(w, np.arange(d // 4))
        return np.concatenate([np.sin(y), np.sin(x), np.cos(y), np.cos(x)], -1), np.concatenate([np.abs(y) * lost, np.abs(x) * lost] * 2, -1)
    if style == "multidim":
        width = 2 * -(-d // (2 * len(grid)))
        a, b = join(*(sinusoid({**f, "layout": "interleaved"}, a, width) for a in at))
        return a[:, :d], b[:, :d]
    if style == "vjepa":
        widths = [d // 2, d // 2] if len(grid) == 2 else [d // 2, d // 4, d // 4]
        return join(*(sinusoid(half, a, k) for a, k in zip(at, widths)))
    widths = f.get("axes_dim") or even_widths(d, len(grid))
    return join(*(sinusoid(f, at[k], widths[k]) for k in f.get("axis_order", range(len(grid)))))


def nerf(f, n):
    at = np.array(f["positions"], float)
    at = at[None] if at.ndim == 1 else at
    count = f.get("num_freqs", 10)
    bands = 2.0 ** np.arange(count) if f.get("log_sampling", True) else np.linspace(1, 2.0 ** (count - 1), count)
    bands = bands * (np.pi if f.get("multiply_pi") else 1)
    parts = [at.T] if f.get("include_input", True) else []
    for k in bands:
        parts += [np.sin(at.T * k), np.cos(at.T * k)]
    out = np.concatenate(parts, -1)
    return out, np.broadcast_to(np.abs(at).max() * bands.max() * 8 * UNIT["f32"], out.shape)


def encoding(f, shape):
    if f["scheme"] == "fourier":
        return nerf(f, shape[-2])
    if "grid" in f:
        first = f.get("channels_first", f.get("style") == "detr")
        a, lost = over_axes(f, shape[-1 - len(f["grid"])] if first else shape[-1])
        if first:
            a, lost = a.T, lost.T
    else:
        a, lost = sinusoid(f, coordinates(f, shape[-2])[0], shape[-1])
    if f.get("pe_scale"):
        a, lost = a * f["pe_scale"], lost * f["pe_scale"]
    return a.reshape(shape), (np.minimum(lost, 1 / 8) + 4 * UNIT["f32"] * np.abs(a).max()).reshape(shape)


# ---- Biases ---------------------------------------------------------------------------------------------------------------------


def slopes(H, most):
    n = 2 ** int(np.log2(H))
    return 2.0 ** (-most * np.concatenate([(np.arange(n) + 1) / n, (2 * np.arange(H - n) + 1) / (2 * n)]))


def distances(f, Q, K):
    """Positions of queries and keys as columns and rows."""
    at = f.get("q_offset", K - Q)
    return np.arange(Q)[:, None] + at, np.arange(K)[None]


def hidden(f, a, q, k):
    unseen = np.zeros(a.shape[-2:], bool)
    if f.get("causal"):
        unseen |= k > q
    if f.get("window"):
        unseen |= (q - k >= f["window"]) | (k - q >= (1 if f.get("causal") else f["window"]))
    return np.where(unseen, -np.inf, a)


def alibi(f, shape):
    H, Q, K = shape[-3:]
    q, k = distances(f, Q, K)
    m = np.array(f["slopes"]) if "slopes" in f else slopes(f.get("num_heads", H), f.get("bias_max", 8))
    form = f.get("form", "symmetric")
    far = {"symmetric": -np.abs(q - k), "relative": np.minimum(k - q, 0), "key": k + 0 * q, "key_end": k - (K - 1) + 0 * q}[form]
    return hidden(f, m[:, None, None] * far, q, k)


def t5_buckets(f, Q, K):
    q, k = distances(f, Q, K)
    rel, nb, most = k - q, f.get("num_buckets", 32), f.get("max_distance", 128)
    both = f.get("bidirectional", True)
    side = nb // 2 if both else nb
    n = np.abs(rel) if both else np.maximum(-rel, 0)
    e = side // 2
    far = e + (np.log(np.maximum(n, 1).astype("f4") / np.float32(e)) / np.float32(np.log(most / e)) * np.float32(side - e)).astype(int)
    return np.where(n < e, n, np.minimum(far, side - 1)) + (np.where(rel > 0, side, 0) if both else 0)


def deberta_index(f, Q, K):
    q, k = distances({"q_offset": 0, **f}, Q, K)
    rel, buckets, most = q - k, f.get("position_buckets", -1), f.get("max_relative_positions", 512)
    if buckets > 0:
        rel = np.clip(rel, 1 - most, most - 1) if f.get("clamp_first") else rel
        mid = buckets // 2
        far = np.ceil(np.log(np.maximum(np.abs(rel), 1) / mid) / np.log((most - 1) / mid) * (mid - 1)) + mid
        rel = np.where(np.abs(rel) <= mid, rel, np.sign(rel) * far).astype(int)
    span = buckets if buckets > 0 else most
    return np.clip(rel + span, 0, 2 * span - 1)


def swin_index(grid):
    h, w = grid
    y, x = over_grid({"grid": grid}).astype(int)
    return (y[:, None] - y[None] + h - 1) * (2 * w - 1) + x[:, None] - x[None] + w - 1


# ---- Maps -----------------------------------------------------------------------------------------------------------------------


def attend(f, arrays):
    """Scores and probabilities of q and k [..., heads, n, d], and what each may be off by."""
    q, k = arrays["q"].astype(float), arrays["k"].astype(float)
    d, (Q, K) = q.shape[-1], (q.shape[-2], k.shape[-2])
    if f["scheme"] == "rope":
        q, k = rotate({**f, "offset": K - Q}, q)[0], rotate(f, k, True)[0]
    k = np.repeat(k, q.shape[-3] // k.shape[-3], -3)
    scale, turning = f.get("softmax_scale", d**-0.5), min(2.0**-21 * K, 1 / 8) if f["scheme"] == "rope" else 0
    e = scale * q @ k.swapaxes(-1, -2)
    size = scale * np.linalg.norm(q, axis=-1)[..., :, None] * np.linalg.norm(k, axis=-1)[..., None, :]
    if f.get("softcap"):
        e = f["softcap"] * np.tanh(e / f["softcap"])
    lost = (24 * UNIT["f32"] + turning) * np.abs(size)
    if f["scheme"] == "alibi":
        b = alibi(f, e.shape)
        e, lost = e + b, lost + 16 * UNIT["f32"] * np.nan_to_num(np.abs(b), posinf=0)
    e = hidden(f, e, *distances(f, Q, K))
    lost = lost + 4 * UNIT["f32"] * np.where(np.isfinite(e), np.abs(e), 0)
    p = np.exp(e - e.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    return {"scores": (e, lost), "probs": (p, p * np.expm1(2 * lost.max(-1, keepdims=True)) + 4 * UNIT["f32"])}


# ---- Two checkpoints ------------------------------------------------------------------------------------------------------------


def converted(f, w):
    """Its rows, moved in each head as the conversion says."""
    heads = f.get("num_kv_heads", f.get("num_heads", 8))
    rows = np.arange(len(w)).reshape(heads, -1)
    half = rows.shape[1] // 2
    ways = {"interleaved_to_half": [rows[:, 0::2], rows[:, 1::2]], "half_to_interleaved": [np.stack([rows[:, :half], rows[:, half:]], -1).reshape(heads, -1)]}
    return w[np.concatenate(ways.get(f.get("conversion", "none"), [rows]), -1).ravel()]


# ---- A row ----------------------------------------------------------------------------------------------------------------------

LAYOUTS = {"bhnd": None, "bnhd": "bnhd->bhnd", "nbhd": "nbhd->bhnd", "nhd": "nhd->hnd"}


def to_heads(a, layout):
    """The axes [..., n, head_dim]."""
    way = LAYOUTS[layout]
    return a if way is None else np.einsum(way, a)


def from_heads(a, layout):
    way = LAYOUTS[layout]
    return a if way is None else np.einsum("->".join(reversed(way.split("->"))), a)


def predicted(belief, arrays):
    """{name: (numbers, what they may be off by)} for the arrays that a formula gives; inputs (q, k, table) have none."""
    f = resolved(belief)
    layout = f.pop("tensor_layout", "bhnd")
    out = {}
    if "w_found" in arrays:
        return {"w_found": (converted(f, arrays["w_believed"]).astype(float), np.zeros(arrays["w_found"].shape))}
    if {"scores", "probs"} & set(arrays):
        return {name: one for name, one in attend(f, arrays).items() if name in arrays}
    if "attention_mask" in arrays:
        return padded(f, layout, arrays)
    for name, a in arrays.items():
        if name in ("q_out", "k_out"):
            of, keys = (arrays["q"], False) if name == "q_out" else (arrays["k"], True)
            out[name] = tuple(from_heads(x, layout) for x in rotate(f, to_heads(of, layout), keys))
        elif name == "encoding":
            out[name] = encoding(f, a.shape)
        elif name == "bias":
            H, Q, K = a.shape[-3:]
            b = arrays["table"][t5_buckets(f, Q, K)].transpose(2, 0, 1).astype(float) if f["scheme"] == "t5" else alibi(f, a.shape)
            b = hidden(f, b, *distances(f, Q, K)) if f["scheme"] == "t5" else b
            with np.errstate(invalid="ignore"):
                out[name] = b.reshape(a.shape), np.nan_to_num(np.abs(b), posinf=0).reshape(a.shape) * 2 * max(H, 8) * UNIT["f32"]
        elif name == "buckets":
            Q, K = a.shape[-2:]
            b = {"t5": t5_buckets, "deberta": deberta_index}[f["scheme"]](f, Q, K) if f["scheme"] != "swin" else swin_index(f["grid"])
            out[name] = b.reshape(a.shape), np.zeros(a.shape)
    if "position_ids" in arrays:
        a = arrays["position_ids"]
        out["position_ids"] = np.broadcast_to(coordinates(f, a.shape[-1]), a.shape), np.zeros(a.shape)
    out.update(rotary_tables(f, arrays))
    return out


def padded(f, layout, arrays):
    """q_out of a padded batch; what padding has may be anything."""
    mask = arrays["attention_mask"]
    f = {**f, "positions": of_mask(f, mask).tolist(), "positions_layout": "batch"}
    values, may = rotate(f, to_heads(arrays["q"], layout))
    may = np.where(mask[:, None, :, None] == 1, may, np.inf)
    return {"q_out": (from_heads(values, layout), from_heads(may, layout))}


def rotary_tables(f, arrays):
    out = {}
    for name in {"cos", "angles", "freqs_cis", "cos_sin", "matrix", "inv_freq", "rope_freqs"} & set(arrays):
        a = arrays[name]
        pair, times = {"cos": (-1, 1), "angles": (-1, 1), "freqs_cis": (-2, 2), "cos_sin": (-1, 1), "matrix": (-3, 2), "inv_freq": (-1, 2), "rope_freqs": (-1, 2)}[name]
        width = a.shape[pair] * times
        n = 1 if name in ("inv_freq", "rope_freqs") else a.size // (np.prod(a.shape[pair:]))
        r = widths_of(f, 2 * width if name in ("cos", "angles") and "head_dim" not in f else width)[1]
        if name in ("inv_freq", "rope_freqs"):
            w = ladder(f, r, coordinates(f, 1).max())[0]
            w = powers(f.get("base", 1e4), r) / w if name == "rope_freqs" else w
            out[name] = w.reshape(a.shape), (np.maximum(2.0**-20, loss(w, np.arange(len(w)))) * w).reshape(a.shape)
            continue
        if name == "angles":
            out[name] = angles(f, a.shape, n, r)
            continue
        cos, sin, lost = tables(f, n, r, name == "cos" and width == r)
        if name == "cos":
            out["cos"], out["sin"] = (cos.reshape(a.shape), lost.reshape(a.shape)), (sin.reshape(a.shape), lost.reshape(a.shape))
        elif name == "freqs_cis":
            out[name] = np.stack([cos, sin], -1).reshape(a.shape), np.stack([lost, lost], -1).reshape(a.shape)
        elif name == "cos_sin":
            out[name] = np.concatenate([cos, sin], -1).reshape(a.shape), np.concatenate([lost, lost], -1).reshape(a.shape)
        else:
            out[name] = np.stack([cos, -sin, sin, cos], -1).reshape(a.shape), np.stack([lost] * 4, -1).reshape(a.shape)
    return out


def angles(f, shape, n, r):
    angle, lost, _ = turn(f, n, r)
    spread = (lambda a: a) if shape[-1] == r // 2 else (lambda a: np.repeat(a, 2, -1)) if f.get("layout", "interleaved") == "interleaved" else (lambda a: np.concatenate([a, a], -1))
    return spread(angle).reshape(shape), spread(lost + 4 * UNIT["f32"] * np.abs(angle)).reshape(shape)


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
