"""A random valid request of any row of GET /schemes: draw.encode(row, rng), draw.rotate(row, rng). Names, types, choices, ranges and conditions
(`when`, `excludes`) of parameters come from the row; what several parameters must fulfil together is in RULES. rng is a random.Random."""
import math

import numpy as np

import truth.segments as segments
import truth.window

SOMETIMES = 0.4  # how often a parameter that may be left out is given
SMALL = {"dim": 24, "hidden": 9, "num_heads": 6, "head_dim": 8, "bar_dim": 40, "num_freqs": 12, "num_bands": 9, "substeps": 3, "max_relative": 9}


class Draw:
    """One request in the making."""

    def __init__(self, row, rng):
        self.row, self.rng, self.request = row, rng, {"scheme": row["name"]}
        self.n_axes, self.n = 1, 0

    def maybe(self, chance=SOMETIMES):
        return self.rng.random() < chance

    def whole(self, low, high):
        return self.rng.randint(low, high)

    def normal(self, *shape, dtype=None, size=1.0):
        """A tensor of the request, of numbers that its type holds."""
        dtype = dtype or self.rng.choice(["f32", "f64"])
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

    def places(self, n):
        """Positions: near and far, whole and not."""
        few = [lambda: self.whole(-20, 20), lambda: self.rng.uniform(-20, 20), lambda: self.whole(-2 ** 16, 2 ** 16), lambda: self.whole(-2 ** 40, 2 ** 40),
               lambda: self.rng.uniform(-1, 1) * 2.0 ** self.whole(-60, 38)]
        return [self.rng.choice(few)() for _ in range(n)]

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
        usual = "" if default is None or name == "style" and self.n_axes == 1 and self.row["name"] == "sinusoidal" else default
        return self.request.get(name, usual) in values.split("|")

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
        rules = RULES.get(self.row["name"], {})
        for p in self.row["parameters"]:
            name = p["name"]
            if name in rules or name in COMMON:
                value = (rules.get(name) or COMMON[name])(self) if self.is_apt(p) else None
            else:
                value = self.value(p) if self.is_apt(p) and (self.maybe() or name in SMALL) else None
            if value is not None:
                self.request[name] = value

    def of_heads(self, draw, chance=SOMETIMES):
        return [draw() for _ in range(self.request["num_heads"])] if self.maybe(chance) else None


def often(values, chance=SOMETIMES):
    """A rule: one of these, or nothing."""
    return lambda d: d.rng.choice(values) if d.maybe(chance) else None


def never(d):
    return None


# ---- Sequences ---------------------------------------------------------------------------------------------------------


def run(d, low=-50, high=50):
    d.n = d.whole(1, 20)
    return {"len": d.n, **({"offset": d.whole(low, high)} if d.maybe() else {})}


def listed(d, place=None):
    d.n = d.whole(1, 9)
    return {"positions": [place(d) for _ in range(d.n)] if place else d.places(d.n)}


def packed(d):
    many = [d.whole(1, 6) for _ in range(d.whole(1, 3))]
    d.n = sum(many)
    return {"lens": many} if d.maybe(0.5) else {"cu_seqlens": [0, *np.cumsum(many).tolist()]}


def sharded(d):
    d.n = 2 * d.whole(1, 6)
    of = d.whole(1, 4)
    split = {"split": d.rng.choice(["zigzag", "contiguous"])} if d.maybe() else {}
    return {"len": d.n, "shard": {"rank": d.whole(0, of - 1), "of": of, **split}}


def masked(d):
    """Of a padded batch: each row has a token."""
    rows = [[d.whole(0, 1) for _ in range(d.whole(3, 3))] for _ in range(d.whole(1, 3))]
    rows = [row if any(row) else [0, 1, 1] for row in rows]
    d.n = 3
    more = [{}, {"padding": "counted"}, {"pad_position": d.whole(0, 5)}, {"offset": d.whole(0, 9)}]
    return {"attention_mask": rows, **d.rng.choice(more)}


def rows_of_a_batch(d):
    d.n = d.whole(1, 5)
    return {"positions": [d.places(d.n) for _ in range(d.whole(1, 3))], "positions_layout": "batch"}


def grid(d, axes=(2, 3), least=1):
    d.n_axes = d.rng.choice(axes)
    sides = [d.whole(least, 4) for _ in range(d.n_axes)]
    d.n = int(np.prod(sides))
    return {"grid": sides}


def axes_of_positions(d):
    d.n_axes, d.n = d.whole(2, 3), d.whole(1, 6)
    return {"positions": [d.places(d.n) for _ in range(d.n_axes)]}


def axes_of_a_batch(d):
    d.n_axes, d.n, layout = 3, d.whole(1, 4), d.rng.choice(["batch_axes", "axes_batch"])
    outer, inner = (d.whole(1, 3), 3) if layout == "batch_axes" else (3, d.whole(1, 3))
    return {"positions": [[d.places(d.n) for _ in range(inner)] for _ in range(outer)], "positions_layout": layout}


def ids_of_segments(d):
    """M-RoPE's: several kinds of segments by the rules of one model family."""
    d.n_axes, style = 3, d.rng.choice(segments.STYLES)
    kinds = ["text", "image", "video"] + ["audio", "audio_in_video"] * ("omni" in style)
    rules = {"qwen2_5_vl": ("tokens_per_second", [2, 4]), "qwen2_5_vl_int_seconds": ("tokens_per_second", [2, 4]), "videorope": ("temporal_scale", [0.5, 1]),
             "qwen2_5_omni": ("seconds_per_chunk", [1, 2]), "qwen3_omni": ("position_id_per_seconds", [13, 25])}
    more = {rules[style][0]: d.rng.choice(rules[style][1])} if style in rules and d.maybe() else {}
    return {"segments": [segment(d, d.rng.choice(kinds), style) for _ in range(d.whole(1, 5))], "position_style": style, **more}


def segment(d, kind, style):
    if kind == "text":
        return {"type": kind, "len": d.whole(1, 9)}
    if kind == "audio":
        return {"type": kind, **({"len": d.whole(1, 40)} if d.maybe(0.5) else {"mel_frames": d.whole(20, 400)})}
    frames = 1 if style == "qwen3_vl" or kind == "image" else d.whole(1, 5)
    sound = {"audio_len": d.whole(1, 60)} if kind == "audio_in_video" else {}
    seconds = {"second_per_grid": d.rng.choice([0.08, 0.3, 0.5, 2.5])} if kind != "image" and d.maybe(0.6) else {}
    return {"type": kind, "grid": [frames, 2 * d.whole(1, 3), 2 * d.whole(1, 6)], **seconds, **sound}


def pairs(d, place=None):
    """Queries and keys apart."""
    if d.maybe(0.4):
        q, k = ([place(d) if place else d.places(1)[0] for _ in range(d.whole(1, 9))] for _ in range(2))
        d.n = len(k)
        return {"q_positions": q, "k_positions": k}
    d.n = d.whole(1, 20)
    more = {name: d.whole(-9, 9) for name in ("offset", "q_offset") if d.maybe()}
    return {"q_len": d.whole(1, 20), "k_len": d.n, **more}


def natural(d):
    return d.whole(0, 40)


def moderate(d):
    return d.rng.choice([d.whole(-600, 600), d.rng.uniform(-600, 600)])


def integral(d):
    return d.whole(-200, 200)


ONE_AXIS = [run, listed, packed, sharded, masked, rows_of_a_batch]
NATURAL = [lambda d: run(d, 0, 30), lambda d: listed(d, natural), packed]
PAIRS = [run, listed, pairs, pairs, packed, masked]
INTEGRAL_PAIRS = [run, lambda d: listed(d, integral), lambda d: pairs(d, integral)]
WINDOW = [lambda d: grid(d, (2,)), lambda d: {"len": d.whole(1, 9)}]
SEQUENCES = {
    "none": ONE_AXIS, "integer": [run, listed], "binary": NATURAL, "recursive": NATURAL, "floater": NATURAL, "learned": [*NATURAL, lambda d: grid(d, (2,))],
    "sinusoidal": [*ONE_AXIS, grid, grid, axes_of_positions], "fourier": [listed, run, grid, axes_of_positions],
    "rope": [*ONE_AXIS, *[grid] * 3, axes_of_positions, axes_of_a_batch, ids_of_segments], "xpos": [run, lambda d: listed(d, moderate)],
    **dict.fromkeys(("alibi", "t5", "kerple", "fire", "sandwich"), PAIRS), **dict.fromkeys(("swin", "swinv2", "beit"), WINDOW),
    **dict.fromkeys(("shaw", "deberta", "transformer_xl", "xlnet", "conformer"), INTEGRAL_PAIRS),
}


# ---- What several parameters must fulfil together ----------------------------------------------------------------------


def parts_of(d, width, even=True):
    """Widths of the axes, whose sum is width."""
    step = 2 if even else 1
    cuts = sorted(d.rng.sample(range(1, width // step), d.n_axes - 1)) if width // step >= d.n_axes else []
    return [step * (b - a) for a, b in zip([0, *cuts], [*cuts, width // step])] if cuts else None


def style_of_axes(d):
    """Of a sinusoid: what the style's columns need of dim stands in dim already."""
    if d.n_axes == 1:
        return None
    apt = ["axial", "multidim"] + ["vjepa"] + (["detr", "mae", "timm"] if d.n_axes == 2 else [])
    return d.rng.choice(apt)


def order_of_axes(d):
    return d.rng.sample(range(d.n_axes), d.n_axes) if d.n_axes > 1 and d.maybe() else None


def bits(d):
    """Enough for the largest position of NATURAL."""
    return d.whole(7, d.request["dim"])


def style_of_features(d):
    return d.rng.choice(["nerf", "gaussian"] if d.n_axes > 1 and "positions" in d.request or d.request.get("offset") else ["nerf", "perceiver", "gaussian"])


def rotary_dim(d):
    return 2 * d.whole(1, d.request["head_dim"] // 2) if d.maybe() and d.n_axes == 1 else None


def rotary_layout(d):
    usual = ["interleaved", "half", "interleaved_to_half"]
    return d.rng.choice(usual + ["half_per_axis", "vjepa2"] * (d.n_axes > 1 and "segments" not in d.request))


def channels(d):
    """Of those that the number of axes and the layout, which stands before, allow."""
    apt = {1: ["mrope", "mrope_interleaved", "videorope", "imrope"], 2: ["pixtral", "dinov3"]}
    apt[3] = apt[1]
    if d.request.get("layout") in ("half_per_axis", "vjepa2") or "axes_dim" in d.request or "inv_freq" in d.request:
        return None
    return d.rng.choice(apt[d.n_axes]) if d.maybe() else None


def sections(d):
    """Of time, height, width: their sum is the number of pairs; videorope alternates the last two."""
    n, name = d.request.get("rotary_dim", d.request["head_dim"]) // 2, d.request.get("channels")
    space = d.whole(0, (n - 1) // 2)
    height = space if name == "videorope" else d.whole(0, 2 * space)
    if not name or not d.maybe():
        return None
    if name == "mrope_interleaved":
        return [d.whole(0, n - 2 * space), height, 2 * space - height]
    return [n - 2 * space, height, 2 * space - height]


def coords(d):
    apt = ["index", "one_based", "normalized", "centered", "resized"]
    if "grid" not in d.request or d.request.get("channels") in ("pixtral", "dinov3"):
        return None
    return d.rng.choice(apt + ["pixel"] * (not {"channels", "base", "axis_order"} & set(d.request))) if d.maybe(0.5) else None


def scaling(d):
    """The object of a context scaling, in its own words or ggml's."""
    if d.n_axes > 1 or {"inv_freq", "rotary_dim", "partial_rotary_factor"} & set(d.request) or d.request["head_dim"] < 4 or not d.maybe(0.6):
        return None
    pairs_, rng = d.request["head_dim"] // 2, d.rng
    factor, original = rng.choice([0.5, 1, 2, 3.7, 8, 32]), rng.choice([128, 4096, 8192])
    lists = {name: [rng.uniform(0.5, 60) for _ in range(pairs_)] for name in ("short_factor", "long_factor")}
    divisors = {"divisors": [rng.choice([1, rng.uniform(0.5, 60), 1e30]) for _ in range(pairs_)]}
    ramp = [{}, {"mscale": 0.707, "mscale_all_dim": 0.707}, {"mscale": 1.5}, {"beta_fast": 20, "beta_slow": 2}, {"extrapolation_factor": 0.5}, {"truncate": False}]
    yarn = {"type": "yarn", "factor": factor, "original_max_position_embeddings": original, **rng.choice(ramp)}
    own = [
        {"type": "default"}, {"rope_type": "linear", "factor": factor}, {"rope_type": "ntk", "factor": factor}, yarn, yarn, {**yarn, "convention": "vllm"},
        {"type": "dynamic", "factor": max(1, factor), "max_position_embeddings": original},
        {"type": "dynamic", "factor": max(1, factor), "max_position_embeddings": original, "convention": "vllm"},
        {"type": "linear", "factor": factor, "convention": "tgi"},
        {"type": "proportional", "partial_rotary_factor": rng.choice([0.25, 0.5, 1.0]), "factor": factor},
        {"type": "llama3", "factor": factor, "low_freq_factor": 1, "high_freq_factor": rng.choice([1, 4, 5.5]), "original_max_position_embeddings": original},
        {"type": "longrope", "factor": factor, "original_max_position_embeddings": original, **lists, "convention": rng.choice(["transformers", "vllm", "mlx"])}]
    ggml = [{"type": "default", **divisors}, {"type": "linear", "convention": "ggml", "factor": factor, **rng.choice([{}, divisors])},
            {**{name: value for name, value in yarn.items() if name != "truncate"}, "convention": "ggml", **rng.choice([{}, divisors])},
            {"type": "longrope", "convention": "ggml", "factor": factor, "original_max_position_embeddings": original, **lists}]
    return rng.choice(own + ggml) if d.row["name"] == "rope" else rng.choice(own)


def rotary_arith(d):
    """Steps of float32 on one axis: the frameworks', or ggml's, which is of whole positions."""
    given, scaled = d.request, d.request.get("scaling", {})
    if d.row["name"] != "rope" or d.n_axes > 1 or {"inv_freq", "channels", "positions_layout"} & set(given) or not d.maybe():
        return None
    if scaled.get("convention") == "ggml" or "divisors" in scaled:
        apt = ["ggml"]
    else:
        apt = ["float32"] if scaled else ["float32", "ggml"]
    apt = [arith for arith in apt if arith != "ggml" or all(isinstance(p, int) and abs(p) < 2 ** 31 for p in given.get("positions", []))]
    return d.rng.choice(apt) if apt else None


def whole_arith(d):
    lists = (d.request.get(name, []) for name in ("positions", "q_positions", "k_positions"))
    return "float32" if all(isinstance(p, int) for places in lists for p in places) and d.maybe() else None


def of_heads_or_one(d):
    return d.of_heads(lambda: d.rng.uniform(0.05, 2)) or (d.rng.uniform(0.05, 2) if d.maybe() else None)


def key_mask(d):
    n = truth.window.tokens(d.row["name"], *window_of(d)) if d.row["name"] in truth.window.INDEX else d.n
    return [d.whole(0, 1) for _ in range(n)] if d.maybe() and "attention_mask" not in d.request else None


def window_of(d):
    return d.request.get("grid") or (1, d.request["len"])


ROTARY = {
    "head_dim": lambda d: 24 if "channels" in d.request or d.n_axes > 1 else 2 * d.whole(2, 16), "rotary_dim": rotary_dim, "layout": rotary_layout,
    "partial_rotary_factor": never, "rotary_offset": lambda d: d.whole(0, d.request["head_dim"] - d.request["rotary_dim"]) if "rotary_dim" in d.request else None,
    "direction": often([1, -1]), "channels": channels, "mrope_section": sections, "coords": coords, "scaling": scaling, "arith": rotary_arith,
    "inv_freq": lambda d: [d.rng.uniform(-2, 2) for _ in range(d.request.get("rotary_dim", d.request["head_dim"]) // 2)] if d.n_axes == 1 and d.maybe(0.2) else None,
    "axes_dim": lambda d: parts_of(d, 24) if d.n_axes > 1 and "segments" not in d.request and d.maybe() else None,
    "axis_order": lambda d: None if {"channels", "segments"} & set(d.request) or d.n_axes == 1 else order_of_axes(d),
    "ref_grid": lambda d: [d.whole(1, 20) for _ in range(d.n_axes)], "max_freq": lambda d: d.whole(3, 40) if d.request.get("coords") == "pixel" and d.maybe() else None,
    "center": lambda d: d.rng.choice([2.5, -3, "lucidrains"] + ["torchscale"] * (d.request.get("offset", 0) >= 0 and "len" in d.request)) if d.maybe() else None,
}
DISTANCES = {"head_dim": lambda d: 2 * d.whole(1, 6), "d_model": often([2, 6, 16]), "mem_len": lambda d: d.whole(0, 6) if "len" in d.request and d.maybe() else None, "same_length": never,
             "token_type_ids": never, "clamp_len": often([-1, 0, 1, 3, 9])}
COMMON = {"arith": never, "combine": never, "x_scale": never, "pe_scale": never, "channels_first": lambda d: d.maybe(0.5) if "grid" in d.request else None,
          "causal": often([True, False]), "window": often([1, 2, 5]), "window_right": often([0, 3]), "key_mask": key_mask, "seed": never, "std": never}
RULES = {
    "integer": {"pe_scale": often([0.1, -3, "sqrt_dim"])}, "binary": {"dim": lambda d: d.whole(7, 40), "bits": bits},
    "sinusoidal": {"dim": lambda d: 24 if d.n_axes > 1 else d.whole(1, 33), "style": style_of_axes, "axis_order": order_of_axes,
                   "axes_dim": lambda d: parts_of(d, d.request["dim"]) if d.n_axes > 1 and d.maybe() else None,
                   "uniform_power": lambda d: d.n_axes == 3, "normalize": lambda d: True if "grid" in d.request and d.maybe(0.5) else None,
                   "angle_scale": lambda d: d.rng.choice([-2.5, 100, 0.3]) if d.maybe() and d.request.get("style") != "detr" else None,
                   "freq_shift": lambda d: d.rng.choice([0, 0.5, 1]) if d.request["dim"] > 4 and d.n_axes == 1 and d.maybe() else None},
    "fourier": {"style": style_of_features, "num_freqs": lambda d: d.whole(1, 12), "sigma": often([0.5, 4]), "seed": lambda d: d.whole(0, 99) if d.request["style"] == "gaussian" else None,
                "max_resolution": lambda d: [d.whole(2, 99) for _ in range(d.n_axes)] if d.maybe() else None},
    "learned": {name: never for name in ("dim", "rows", "row_offset", "out_of_range", "interpolate", "interpolate_offset", "table_grid", "num_prefix")},
    "recursive": {"dim": never, "hidden": never}, "floater": {"dim": never, "hidden": never, "dt": often([0.05, 0.2, -0.1]), "time_input": never},
    "rope": ROTARY, "xpos": {**ROTARY, "layout": often(["interleaved", "half"]), "scale_base": often([64.0, 1000.0])},
    "alibi": {"slopes": lambda d: d.of_heads(lambda: d.rng.uniform(-2, 2)), "slopes_left": lambda d: d.of_heads(lambda: d.rng.uniform(-2, 2)),
              "slopes_right": lambda d: d.of_heads(lambda: d.rng.uniform(-2, 2)), "bias_max": often([8, 16, 5.5])},
    "t5": {"num_heads": never, "arith": whole_arith, "num_buckets": never, "max_distance": lambda d: d.whole(21, 300), "table_scale": often([2.5, -0.5])},
    "kerple": {"r1": of_heads_or_one, "r2": of_heads_or_one, "arith": lambda d: "float32" if d.request.get("kind") != "power" and d.maybe() else None},
    "fire": {"num_heads": never, "hidden": never, "c": often([-0.3, 2]), "init_l": often([0, 7.5]), "l_mult": often([-0.5, 3])}, "sandwich": {"bar_dim": lambda d: 2 * d.whole(1, 20)},
    "swin": {"num_heads": never}, "beit": {"num_heads": never},
    "swinv2": {"num_heads": never, "hidden": never, "pretrained_grid": lambda d: [d.whole(0, 20), d.whole(0, 20)] if d.maybe() else None},
    "shaw": {"p_min": lambda d: d.whole(-9, 1) if d.maybe(0.7) else None, "p_max": lambda d: d.whole(2, 9) if d.maybe(0.7) else None, "max_relative": lambda d: d.whole(1, 9) if d.maybe() else None,
             "table_style": never},
    "deberta": {"max_relative_positions": lambda d: d.whole(20, 99), "position_buckets": often([-1, 0, 2, 5, 8, 19]), "pos_att_type": never, "norm_rel_ebd": never, "share_att_key": never},
    **dict.fromkeys(("transformer_xl", "xlnet", "conformer"), DISTANCES),
}


# ---- Weights and tables ------------------------------------------------------------------------------------------------


def network(d):
    """p0 and layers that neither explode nor die; time is the last input of every layer of floater."""
    width, timed = d.whole(1, 8), 0
    sizes = [width, *[d.whole(1, 9) for _ in range(1 if d.row["name"] == "floater" else d.whole(0, 3))], width]
    if d.row["name"] == "floater":
        timed = d.whole(0, 1)
        d.request["time_input"] = bool(timed)
    layers = {"p0": d.normal(width)}
    for i, (n_in, n_out) in enumerate(zip(sizes, sizes[1:]), 1):
        layers |= {f"w{i}": d.normal(n_out, n_in + timed, size=0.5 / (n_in + 1) ** 0.5), f"b{i}": d.normal(n_out, size=0.5)}
    return layers


def learned(d):
    """A table that is looked up, that is resized to the grid, or one of rows and one of columns."""
    width, sides = d.whole(1, 9), d.request.get("grid")
    if not sides:
        rule = d.rng.choice(["error", "clamp", "wrap", "zero", "interpolate"])
        d.request |= {"out_of_range": rule, "row_offset": d.whole(0, 3) if rule in ("error", "interpolate") else d.whole(-3, 3)}
        return {"table": d.normal(99 if rule == "error" else d.whole(4, 50), width)}
    if d.maybe(0.3):
        return {"row_table": d.normal(9, width), "col_table": d.normal(9, width)}
    trained, prefix, kind = [d.whole(1, 5), d.whole(1, 5)], d.whole(0, 2), d.rng.choice(["bicubic", "bicubic_antialias", "bilinear", "bilinear_aligned"])
    offset = {"interpolate_offset": 0.1} if kind != "bilinear_aligned" and d.maybe() else {}
    d.request |= {"table_grid": trained, "num_prefix": prefix, "interpolate": kind, "channels_first": False, **offset}
    return {"table": d.normal(prefix + trained[0] * trained[1], width)}


def t5(d):
    buckets = d.whole(4, 40)
    return {"table": d.normal(buckets, d.whole(1, 5))}


def of_window(d):
    heads, scheme = d.whole(1, 5), d.row["name"]
    if scheme == "swinv2":
        hidden = d.rng.choice([1, 3, 7, 64])
        return {"w1": d.normal(hidden, 2), "b1": d.normal(hidden), "w2": d.normal(heads, hidden, size=hidden ** -0.5)}
    return {"table": d.normal(truth.window.rows(scheme, *window_of(d)), heads)}


def fire(d):
    heads, hidden = d.whole(1, 5), d.rng.choice([1, 7, 32])
    return {"w1": d.normal(hidden, 1), "b1": d.normal(hidden), "w2": d.normal(heads, hidden), "b2": d.normal(heads)}


def seeded(d):
    return {"seed": d.whole(0, 2 ** 53 - 1), **({"std": d.rng.choice([0.5, 1e-3])} if d.maybe() else {})}


TENSORS = {"recursive": network, "floater": network, "learned": learned, "t5": t5, "fire": fire, "swin": of_window, "swinv2": of_window, "beit": of_window,
           "fourier": lambda d: {"b": d.normal(d.request.pop("num_freqs", 3), d.n_axes)} if d.request["style"] == "gaussian" else {}}
OPTIONAL = {"t5", "swin", "swinv2", "beit"}  # which answer an index without weights


def add_weights(d):
    make, scheme = TENSORS.get(d.row["name"]), d.row["name"]
    if not make or scheme in OPTIONAL and d.maybe(0.15):
        return
    if scheme == "fourier" and ("seed" in d.request or d.request["style"] != "gaussian"):
        return
    d.request |= seeded(d) if scheme not in ("learned", "fourier") and d.maybe(0.25) else make(d)
    if "seed" in d.request and scheme in ("recursive", "floater"):
        d.request["dim"] = d.whole(1, 8)


# ---- Requests ----------------------------------------------------------------------------------------------------------


def add_embeddings(d):
    """x, to which the encoding is added: it gives the number of rows."""
    width = {"learned": lambda: d.request.get("table", {"shape": (0, d.request.get("dim"))})["shape"][1], "fourier": lambda: None}.get(d.row["name"], lambda: d.request.get("dim"))()
    if d.row["family"] != "absolute" or "grid" in d.request or not width or set(d.request) & {"attention_mask", "positions_layout"} or d.maybe(0.7):
        return
    how = d.rng.choice(["add", "multiply", "multiply_residual", "concat"])
    scales = {"x_scale": d.rng.choice([2, "sqrt_dim"])} if how != "multiply_residual" and d.maybe() else {}
    if scales and d.row["name"] != "integer":
        scales["pe_scale"] = d.rng.choice([-0.1, "sqrt_dim"])
    dtype = d.rng.choice(["f32", "f64", "f16", "bf16"])
    d.request |= {"x": d.normal(*[d.whole(1, 3) for _ in range(d.whole(0, 2))], d.n, width, dtype=dtype), "combine": how, **scales}


def add_outputs(d):
    """Some of those of the row that the request has."""
    form = d.request.get("form", "pairs")
    has_weights = bool({"table", "w1", "seed"} & set(d.request))
    names = [o["name"] for o in d.row["outputs"] if o.get("when") in (None, f"form={form}") or o.get("when") == "weights" and has_weights]
    names += ["combined"] if "x" in d.request else []
    if "grid" in d.request and "rope_delta" in names:
        names.remove("rope_delta")  # which is of token ids
    if d.maybe():
        d.request["outputs"] = d.rng.sample(names, d.whole(1, len(names)))


def encode(row, rng):
    d = Draw(row, rng)
    d.request |= rng.choice(SEQUENCES[row["name"]])(d)
    d.parameters()
    add_weights(d)
    add_embeddings(d)
    add_outputs(d)
    if d.maybe(0.8):
        d.request["dtype"] = rng.choice(["f32", "f64", "f16", "bf16"])
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


def cache(d):
    """No sequence but that of the keys, where queries are the last rows or those from q_offset on."""
    d.n = d.whole(1, 12)
    return {"offset": d.whole(0, 30)} if d.maybe() else {}


def rotate(row, rng):
    """q and k, or one of them, in any memory layout and type."""
    d = Draw(row, rng)
    make = cache if d.maybe() else rng.choice([one for one in SEQUENCES[row["name"]] if one is not ids_of_segments])
    d.request |= make(d)
    d.parameters()
    d.request.pop("form", None)
    width, batch = d.request.pop("head_dim"), batch_of(d.request)
    layout = rng.choice([name for name in MEMORY if batch == 1 or name not in ("nhd", "flat")])
    if batch == 1 and layout not in ("nhd", "flat") and "positions_layout" not in d.request:
        batch = d.whole(1, 2)
    dtype, sent = rng.choice(["f32", "f64", "f16", "bf16"]), rng.choice(["q", "k", "qk", "qk"])
    for name in sent:
        rows = d.whole(1, d.n) if sent == "qk" and name == "q" and make is cache else d.n
        d.request[name] = d.normal(*MEMORY[layout](batch, d.whole(1, 4), rows, width), dtype=dtype)
    if layout != "bhnd":
        d.request["tensor_layout"] = layout
    if "flat" in layout:
        d.request["head_dim"] = width
    if sent == "qk" and make is cache and d.maybe():
        d.request["q_offset"] = d.whole(0, 5)
    if make is cache and "channels" not in d.request and d.maybe():
        d.request["query_scale"] = {"type": rng.choice(["ministral", "llama4"]), "original_max_position_embeddings": d.whole(2, 20), "beta": 0.2}
    if d.maybe():
        d.request["dtype"] = rng.choice(["f32", "f64", "f16", "bf16"])
    return d.request
