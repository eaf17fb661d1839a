"""What several parameters must fulfil together, and weights that fit: by scheme and parameter, a function of the draw that gives a value or None,
which leaves the parameter out. What is not here is drawn from the row of GET /schemes alone."""
import truth.window
from truth.draw.sequences import OF


def often(*values, chance=0.4):
    """One of these, or nothing."""
    return lambda d: d.one_of(*values) if d.maybe(chance) else None


def sometimes(low, high, if_=lambda d: True):
    """A whole number, or nothing."""
    return lambda d: d.whole(low, high) if if_(d) and d.maybe() else None


def never(*names):
    return dict.fromkeys(names, lambda d: None)


def has(d, *names):
    return bool(set(names) & set(d.request))


# ---- Absolute ----------------------------------------------------------------------------------------------------------


def parts(d, width):
    """Even widths of the axes, whose sum is width."""
    cuts = sorted(d.rng.sample(range(1, width // 2), d.n_axes - 1))
    return [2 * (b - a) for a, b in zip([0, *cuts], [*cuts, width // 2])] if cuts and d.maybe() else None


def order(d):
    return d.rng.sample(range(d.n_axes), d.n_axes) if d.n_axes > 1 and d.maybe() else None


def style_of_features(d):
    is_spread = not has(d, "offset") and not (d.n_axes > 1 and has(d, "positions"))
    return d.one_of("nerf", "gaussian", *["perceiver"] * is_spread)


SINUSOIDAL = {
    "dim": lambda d: 24 if d.n_axes > 1 else d.whole(1, 33), "axis_order": order, "axes_dim": lambda d: parts(d, 24) if d.n_axes > 1 else None,
    "style": lambda d: d.one_of("axial", "multidim", "vjepa", *["detr", "mae", "timm"] * (d.n_axes == 2)) if d.n_axes > 1 else None,
    "uniform_power": lambda d: d.n_axes == 3, "normalize": lambda d: True if has(d, "grid") and d.maybe(0.5) else None,
    "angle_scale": lambda d: d.one_of(-2.5, 100, 0.3) if d.maybe() and d.request.get("style") != "detr" else None,
    "freq_shift": lambda d: d.one_of(0, 0.5, 1) if d.request["dim"] > 4 and d.n_axes == 1 and d.maybe() else None,
    **never("num_prefix"),
}
FOURIER = {
    "style": style_of_features, "num_freqs": lambda d: d.whole(1, 12), "seed": sometimes(0, 99, lambda d: d.request["style"] == "gaussian"),
    "max_resolution": lambda d: [d.whole(2, 99) for _ in range(d.n_axes)] if d.maybe() else None,
}


def directions(d):
    """b of Gaussian features, which seed, sigma and num_freqs would make."""
    d.request.pop("sigma", None)
    return {"b": d.normal(d.request.pop("num_freqs"), d.n_axes)}


def network(d):
    """p0 and layers that neither explode nor die; time is the last input of every layer of floater."""
    is_floater, width = d.row["name"] == "floater", d.whole(1, 8)
    sizes, timed = [width, *[d.whole(1, 9) for _ in range(1 if is_floater else d.whole(0, 3))], width], is_floater * d.whole(0, 1)
    if is_floater:
        d.request["time_input"] = bool(timed)
    layers = {"p0": d.normal(width)}
    for i, (n_in, n_out) in enumerate(zip(sizes, sizes[1:]), 1):
        layers |= {f"w{i}": d.normal(n_out, n_in + timed, size=0.5 / (n_in + 1) ** 0.5), f"b{i}": d.normal(n_out, size=0.5)}
    return layers


def learned(d):
    """A table that is looked up, that is resized to the grid, or one of rows and one of columns."""
    width = d.whole(1, 9)
    if not has(d, "grid"):
        rule = d.one_of("error", "clamp", "wrap", "zero", "interpolate")
        d.request |= {"out_of_range": rule, "row_offset": d.whole(0 if rule in ("error", "interpolate") else -3, 3)}
        return {"table": d.normal(99 if rule == "error" else d.whole(4, 50), width)}
    if d.maybe(0.3):
        return {"row_table": d.normal(9, width), "col_table": d.normal(9, width)}
    h, w, prefix = d.whole(1, 5), d.whole(1, 5), d.whole(0, 2)
    kind = d.one_of("bicubic", "bicubic_antialias", "bilinear", "bilinear_aligned", "bilinear_antialias")
    more = {"interpolate_offset": 0.1} if kind != "bilinear_aligned" and d.maybe() else {}
    more |= {"cubic_a": d.one_of(-0.75, -0.5, -0.6)} if kind.startswith("bicubic") and d.maybe() else {}
    d.request |= {"table_grid": [h, w], "num_prefix": prefix, "interpolate": kind, "channels_first": False, **more}
    window = {"window_table": d.normal(d.whole(1, 3), d.whole(1, 3), width)} if d.maybe(0.3) else {}
    stored = [(prefix + h * w, width), (1, prefix + h * w, width), *([] if prefix else [(1, h, w, width), (h, w, width), (width, h, w)])]
    return {"table": d.normal(*d.one_of(*stored)), **window}


# ---- Rotary ------------------------------------------------------------------------------------------------------------


def channels(d):
    """Of those that the number of axes and the layout, which stands before, allow."""
    if d.request["layout"] in ("half_per_axis", "vjepa2") or has(d, "axes_dim", "inv_freq") or not d.maybe():
        return None
    return d.one_of("pixtral", "dinov3") if d.n_axes == 2 else d.one_of("mrope", "mrope_interleaved", "videorope", "imrope")


def sections(d):
    """Of time, height, width: their sum is the number of pairs; videorope alternates the last two."""
    n, name = width_of(d) // 2, d.request.get("channels")
    space = d.whole(0, (n - 1) // 2)
    height = space if name == "videorope" else d.whole(0, 2 * space)
    time = d.whole(0, n - 2 * space) if name == "mrope_interleaved" else n - 2 * space
    return [time, height, 2 * space - height] if name and d.maybe() else None


def width_of(d):
    return d.request.get("rotary_dim", d.request["head_dim"])


def coords(d):
    if not has(d, "grid") or d.request.get("channels") in ("pixtral", "dinov3") or not d.maybe(0.6):
        return None
    is_free = not has(d, "channels", "base", "axis_order", "channel_axis", "ladder", "axis_base")
    return d.one_of("index", "one_based", "normalized", "centered", "resized", "resized_floor", "window", "half_centered", *["cropped"] * (d.n_axes > 1), *["pixel"] * is_free)


def coords_of_sines(d):
    return d.one_of("index", "one_based", "resized", "window", "half_centered") if has(d, "grid") and d.maybe() else None


def ref_grid(d):
    rule, grid = d.request.get("coords"), d.request.get("grid")
    if rule == "window":
        return [n + d.whole(0, 9) for n in grid]
    return [d.whole(1, 20) for _ in range(2 if rule == "cropped" else d.n_axes)]


def of_axes(*values):
    """A number for each of several axes, or nothing."""
    return lambda d: [d.one_of(*values) for _ in range(d.n_axes)] if d.n_axes > 1 and not has(d, "segments") and d.maybe(0.2) else None


def shift(d):
    """Beside positions that leave it exact."""
    return of_axes(0, 1, 0.5, -65536)(d) if has(d, "grid", "grid_coords") and not has(d, "axis_scale", "axis_divisor") else None


COORDS = {"ref_grid": ref_grid, "crop_end": lambda d: d.one_of("open", "shrunk") if d.request.get("coords") == "cropped" else None,
          "axis_scale": of_axes(1, 24, 0.5, -3), "axis_divisor": of_axes(1, 3, 16, 1.875), "axis_shift": shift}


def channel_axis(d):
    """Any axis for each pair, or none."""
    if d.n_axes == 1 or has(d, "axes_dim", "channels", "segments", "inv_freq") or d.request["layout"] in ("half_per_axis", "vjepa2") or not d.maybe(0.3):
        return None
    return [d.n_axes - 1, *(d.whole(-1, d.n_axes - 1) for _ in range(width_of(d) // 2 - 1))]


def ladder(d):
    return d.one_of("shared", "own") if d.n_axes > 1 and not has(d, "channels", "segments", "inv_freq") and d.maybe(0.3) else None


def axis_base(d):
    n = max(d.request.get("channel_axis", [d.n_axes - 1])) + 1
    return [d.one_of(100, 1e4, 5e5) for _ in range(n)] if d.request.get("ladder") == "own" and not has(d, "base") and d.maybe() else None


def scaling(d):
    """The object of a context scaling, in its own words or ggml's."""
    if d.n_axes > 1 or has(d, "inv_freq", "rotary_dim") or not d.maybe(0.6):
        return None
    pairs, original, factor = d.request["head_dim"] // 2, {"original_max_position_embeddings": d.one_of(128, 4096, 8192)}, d.one_of(0.5, 1, 2, 3.7, 8, 32)
    lists = {name: [d.rng.uniform(0.5, 60) for _ in range(pairs)] for name in ("short_factor", "long_factor")}
    divisors = d.one_of({}, {"divisors": [d.one_of(1, d.rng.uniform(0.5, 60), 1e30) for _ in range(pairs)]})
    ramp = d.one_of({}, {"mscale": 0.707, "mscale_all_dim": 0.707}, {"mscale": 1.5}, {"beta_fast": 20, "beta_slow": 2}, {"extrapolation_factor": 0.5})
    yarn = {"type": "yarn", "factor": factor, **original, **ramp}
    dynamic = {"type": "dynamic", "factor": max(1, factor), "max_position_embeddings": 4096}
    of_ggml = [{"type": "default", **divisors}, {"type": "linear", "convention": "ggml", "factor": factor, **divisors}, {**yarn, "convention": "ggml", **divisors},
               {"type": "longrope", "convention": "ggml", "factor": factor, **original, **lists}]
    return d.one_of(
        {"rope_type": "linear", "factor": factor}, {"type": "linear", "factor": factor, "convention": "tgi"}, {"rope_type": "ntk", "factor": factor},
        {"type": "ntk_fixed", "factor": factor, **d.one_of({}, {"mixed_b": 0.625}, {"mixed_b": 2})}, {"type": "riflex", "k": d.whole(1, width_of(d) // 2), "seq_len": 99},
        yarn, yarn, {**yarn, "truncate": False}, {**yarn, "convention": "vllm"}, dynamic, {**dynamic, "convention": "vllm"},
        {"type": "proportional", "partial_rotary_factor": d.one_of(0.25, 0.5, 1.0), "factor": factor},
        {"type": "llama3", "factor": factor, "low_freq_factor": 1, "high_freq_factor": d.one_of(1, 4, 5.5), **original},
        {"type": "longrope", "factor": factor, **original, **lists, "convention": d.one_of("transformers", "vllm", "mlx")},
        *of_ggml * (d.row["name"] == "rope"))


def are_whole(d):
    """Are the positions whole numbers that float32's steps know?"""
    lists = (d.request.get(name, []) for name in ("positions", "q_positions", "k_positions"))
    return all(isinstance(p, int) and abs(p) < 2 ** 31 for places in lists for p in places)


def rotary_arith(d):
    """Steps of float32 on one axis: the frameworks', or ggml's, which is of whole positions."""
    scaled = d.request.get("scaling", {})
    if d.row["name"] != "rope" or d.n_axes > 1 or has(d, "inv_freq", "channels", "positions_layout") or not d.maybe():
        return None
    if scaled.get("convention") != "ggml" and "divisors" not in scaled and (scaled or d.maybe(0.5)):
        return "float32"
    return "ggml" if are_whole(d) else None


def center(d):
    counts = has(d, "len") and d.request.get("offset", 0) >= 0
    return d.one_of(2.5, -3, "lucidrains", *["torchscale"] * counts) if d.maybe() else None


ROTARY = {
    **never("partial_rotary_factor"), "head_dim": lambda d: 24 if d.n_axes > 1 else 2 * d.whole(2, 16),
    "rotary_dim": lambda d: 2 * d.whole(1, d.request["head_dim"] // 2) if d.maybe() and d.n_axes == 1 else None,
    "rotary_offset": lambda d: d.whole(0, d.request["head_dim"] - d.request["rotary_dim"]) if has(d, "rotary_dim") else None,
    "layout": lambda d: d.one_of("interleaved", "half", "interleaved_to_half", *["half_per_axis", "vjepa2"] * (d.n_axes > 1 and not has(d, "segments"))),
    "direction": often(1, -1), "channels": channels, "mrope_section": sections, "coords": coords, "scaling": scaling, "arith": rotary_arith, "center": center,
    "inv_freq": lambda d: [d.rng.uniform(-2, 2) for _ in range(width_of(d) // 2)] if d.n_axes == 1 and d.maybe(0.2) else None,
    "axes_dim": lambda d: parts(d, 24) if d.n_axes > 1 and not has(d, "segments") else None,
    "axis_order": lambda d: None if has(d, "channels", "segments", "channel_axis") else order(d), "channel_axis": channel_axis, "ladder": ladder,
    "axis_base": axis_base, **never("axis_scaling"), **COORDS,
    "max_freq": sometimes(3, 40, lambda d: d.request.get("coords") == "pixel"),
}


SINUSOIDAL |= {"coords": coords_of_sines, **COORDS}


# ---- Biases, relative schemes ------------------------------------------------------------------------------------------


def of_heads(low, high):
    return lambda d: [d.rng.uniform(low, high) for _ in range(d.request["num_heads"])] if d.maybe() else None


def of_heads_or_one(d):
    return of_heads(0.05, 2)(d) or (d.rng.uniform(0.05, 2) if d.maybe() else None)


def window_of(d):
    return d.request.get("grid") or (1, d.request["len"])


def key_mask(d):
    n = truth.window.tokens(d.row["name"], *window_of(d)) if d.row["name"] in truth.window.INDEX else d.n
    return [d.whole(0, 1) for _ in range(n)] if d.maybe() and not has(d, "attention_mask") else None


def of_window(d):
    heads, scheme, hidden = d.whole(1, 5), d.row["name"], d.one_of(1, 3, 7, 64)
    if scheme == "swinv2":
        return {"w1": d.normal(hidden, 2), "b1": d.normal(hidden), "w2": d.normal(heads, hidden, size=hidden ** -0.5)}
    return {"table": d.normal(truth.window.rows(scheme, *window_of(d)), heads)}


def fire(d):
    heads, hidden = d.whole(1, 5), d.one_of(1, 7, 32)
    return {"w1": d.normal(hidden, 1), "b1": d.normal(hidden), "w2": d.normal(heads, hidden), "b2": d.normal(heads)}


COMMON = {
    **never("arith", "combine", "x_scale", "pe_scale", "seed", "std"), "causal": often(True, False), "window": often(1, 2, 5), "window_right": often(0, 3),
    "key_mask": key_mask, "channels_first": lambda d: d.maybe(0.5) if has(d, "grid") else None,
}
DISTANCES = {**never("same_length", "token_type_ids"), "head_dim": lambda d: 2 * d.whole(1, 6), "d_model": often(2, 6, 16), "clamp_len": often(-1, 0, 1, 3, 9),
             "mem_len": sometimes(0, 6, lambda d: has(d, "len"))}
OF_SCHEME = {
    "integer": {"pe_scale": often(0.1, -3, "sqrt_dim")}, "binary": {"dim": lambda d: d.whole(7, 40), "bits": lambda d: d.whole(7, d.request["dim"])},
    "sinusoidal": SINUSOIDAL, "fourier": FOURIER, "recursive": never("dim", "hidden"), "floater": {**never("dim", "hidden", "time_input"), "dt": often(0.05, 0.2, -0.1)},
    "learned": never("dim", "rows", "row_offset", "out_of_range", "interpolate", "cubic_a", "interpolate_offset", "table_grid", "num_prefix"),
    "rope": ROTARY, "xpos": {**ROTARY, "layout": often("interleaved", "half")},
    "alibi": dict.fromkeys(("slopes", "slopes_left", "slopes_right"), of_heads(-2, 2)),
    "t5": {**never("num_heads", "num_buckets"), "max_distance": lambda d: d.whole(21, 300), "arith": lambda d: "float32" if are_whole(d) and d.maybe() else None},
    "kerple": {"r1": of_heads_or_one, "r2": of_heads_or_one, "arith": lambda d: "float32" if d.request.get("kind") != "power" and d.maybe() else None},
    "fire": {**never("num_heads", "hidden"), "c": often(-0.3, 2), "init_l": often(0, 7.5), "l_mult": often(-0.5, 3)},
    "sandwich": {"bar_dim": lambda d: 2 * d.whole(1, 20)}, "swin": never("num_heads", "table_grid", "interpolate"),
    "beit": never("num_heads", "table_grid", "interpolate"),
    "swinv2": {**never("num_heads", "hidden"), "pretrained_grid": lambda d: [d.whole(0, 20), d.whole(0, 20)] if d.maybe() else None},
    "shaw": {**never("table_style"), "p_min": sometimes(-9, 1), "p_max": sometimes(2, 9), "max_relative": sometimes(1, 9)},
    "deberta": {**never("pos_att_type", "norm_rel_ebd", "share_att_key"), "max_relative_positions": lambda d: d.whole(20, 99),
                "position_buckets": often(-1, 0, 2, 5, 8, 19)},
    "decomposed": {}, **dict.fromkeys(("transformer_xl", "xlnet", "conformer"), DISTANCES),
}
TENSORS = {"recursive": network, "floater": network, "learned": learned, "t5": lambda d: {"table": d.normal(d.whole(4, 40), d.whole(1, 5))}, "fire": fire,
           "swin": of_window, "swinv2": of_window, "beit": of_window, "fourier": directions}
OPTIONAL = {"t5", "swin", "swinv2", "beit"}  # which answer an index without weights
assert set(OF_SCHEME) | {"none"} == set(OF)
