"""Four families of tensors that are wrong on purpose: rotary, sinusoids, biases, ids. Each has a few beliefs, and a table of mistakes of ports
that no belief could have; those that a belief can have are in ../../field/mistakes.py. A mistake is (the codes that name it, fields that the
port has in place of the belief's, what it did to the numbers). `made` computes the tensors by ../../truth/evidence.py."""
import itertools
import math

import numpy as np

from believed import changed, rounded
from diagnosing import by_recipe, misread, no_rotation, turns
from truth import absolute, evidence, rotary

# ---- Beliefs ----------------------------------------------------------------------------------------------------------------------

ROPE = {"scheme": "rope", "head_dim": 32, "base": 10000, "layout": "half"}
PICTURE = np.concatenate([np.tile(np.arange(3), (3, 1)), 3 + np.stack([np.zeros(12), *np.indices((3, 4)).reshape(2, -1)])], 1)
MULTIMODAL = {**ROPE, "head_dim": 128, "mrope_section": [16, 24, 24], "positions": PICTURE.astype(int).tolist()}
ROTARY = {
    "plain": {**ROPE, "len": 20},
    "neighbours": {**ROPE, "layout": "interleaved", "head_dim": 64, "base": 500000, "offset": 300},
    "a part": {**ROPE, "head_dim": 64, "rotary_dim": 32, "len": 16},
    "the last channels": {**ROPE, "head_dim": 64, "rotary_dim": 32, "rotary_offset": 32, "layout": "interleaved", "len": 16},
    "yarn": {**ROPE, "head_dim": 64, "len": 24, "scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 2048}},
    "llama 3.1": {**ROPE, "head_dim": 64, "base": 500000, "len": 24, "scaling": {
        "type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}},
    "linear": {**ROPE, "len": 24, "offset": 40, "scaling": {"type": "linear", "factor": 8}},
    "ntk": {**ROPE, "head_dim": 64, "len": 24, "scaling": {"type": "ntk", "factor": 8}},
    "dynamic": {**ROPE, "head_dim": 64, "len": 24, "scaling": {"type": "dynamic", "factor": 4, "max_position_embeddings": 16}},
    "a list": {**ROPE, "layout": "interleaved", "positions": [3, 5, 6, 11, 12, 40, 41, 42, 97, 150, 151, 200]},
    "two sequences": {**ROPE, "lens": [7, 12]},
    "a grid": {**ROPE, "layout": "interleaved", "grid": [3, 5]},
    "mrope": {**MULTIMODAL, "channels": "mrope"},
    "mrope_interleaved": {**MULTIMODAL, "channels": "mrope_interleaved"},
}
WAVES = {"scheme": "sinusoidal", "dim": 32, "base": 10000, "layout": "interleaved"}
SINUSOIDS = {
    "plain": {**WAVES, "len": 20},
    "halves": {**WAVES, "layout": "half", "dim": 48, "offset": 70, "len": 16},
    "shifted": {**WAVES, "layout": "half", "freq_shift": 1, "flip_sin_to_cos": True, "len": 20},
    "odd": {**WAVES, "dim": 33, "odd": "paper", "len": 20},
    "padded": {**WAVES, "layout": "half", "dim": 33, "odd": "pad", "len": 20},
    "two sequences": {**WAVES, "lens": [8, 9]},
    "axial": {"scheme": "sinusoidal", "dim": 32, "grid": [3, 5]},
    "mae": {"scheme": "sinusoidal", "dim": 32, "grid": [7, 9], "style": "mae"},
    "timm": {"scheme": "sinusoidal", "dim": 32, "grid": [7, 9], "style": "timm"},
    "detr": {"scheme": "sinusoidal", "dim": 32, "grid": [3, 5], "style": "detr", "channels_first": False},
}
BIASES = {
    "alibi": {"scheme": "alibi", "num_heads": 8, "len": 12},
    "alibi causal": {"scheme": "alibi", "num_heads": 6, "causal": True, "form": "relative", "len": 10},
    "alibi of keys": {"scheme": "alibi", "num_heads": 12, "form": "key", "q_len": 5, "k_len": 11},
    "alibi window": {"scheme": "alibi", "num_heads": 4, "causal": True, "window": 4, "len": 12},
    "alibi padded": {"scheme": "alibi", "num_heads": 4, "key_mask": [0, 0, 0, 1, 1, 1, 1, 1, 1], "len": 9},
    "t5": {"scheme": "t5", "num_heads": 4, "bidirectional": True, "q_len": 40, "k_len": 160},
    "t5 decoder": {"scheme": "t5", "num_heads": 4, "bidirectional": False, "max_distance": 64, "causal": True, "q_len": 6, "k_len": 90},
    "kerple": {"scheme": "kerple", "num_heads": 4, "kind": "log", "r1": 0.6, "r2": 1.3, "len": 11},
    "kerple power": {"scheme": "kerple", "num_heads": 3, "kind": "power", "r1": 0.4, "r2": 1.1, "causal": True, "q_len": 5, "k_len": 11},
    "sandwich": {"scheme": "sandwich", "num_heads": 4, "bar_dim": 64, "len": 11},
    "fire": {"scheme": "fire", "causal": True, "len": 10},
}
BUCKETS = {
    "t5": {"scheme": "t5", "bidirectional": True, "q_len": 30, "k_len": 160},
    "t5 decoder": {"scheme": "t5", "bidirectional": False, "num_buckets": 16, "max_distance": 64, "q_len": 5, "k_len": 120},
    "shaw": {"scheme": "shaw", "max_relative": 4, "direction": "key_minus_query", "q_len": 6, "k_len": 9},
    "deberta": {"scheme": "deberta", "position_buckets": 16, "max_relative_positions": 32, "len": 60},
}
VIDEO = [{"type": "text", "len": 3}, {"type": "video", "grid": [4, 4, 6], "second_per_grid": 1.5}, {"type": "text", "len": 3}]
FRAMES = [{"type": "text", "len": 5}, {"type": "image", "grid": [1, 6, 4]}, {"type": "text", "len": 1},
          {"type": "video", "grid": [3, 2, 8], "second_per_grid": 2.5}]
STYLES = ["qwen2_vl", "qwen2_5_vl", "qwen2_5_vl_int_seconds", "qwen2_5_omni", "qwen3_omni"]
IDS = {f"{style} {i}": {"scheme": "rope", "position_style": style, "segments": segments}
       for style in STYLES for i, segments in enumerate((VIDEO, FRAMES))}
STILLS = [FRAMES[0], {"type": "image", "grid": [1, 6, 4]}, {"type": "text", "len": 2}, {"type": "video", "grid": [1, 2, 8], "second_per_grid": 0.5}]
IDS |= {f"{style} 2": {"scheme": "rope", "position_style": style, "segments": STILLS} for style in ("qwen3_vl", "videorope", "qwen2_vl")}
IDS["text"] = {"scheme": "rope", "len": 15, "offset": 30}
IDS["restarts"] = {"scheme": "rope", "lens": [6, 9]}
FAMILIES = {"rotary": ROTARY, "sinusoid": SINUSOIDS, "bias": BIASES, "buckets": BUCKETS, "ids": IDS}


# ---- Tensors ----------------------------------------------------------------------------------------------------------------------


def count(b):
    return evidence.coordinates(b, b.get("len", 20)).shape[-1]


def sends(family, b):
    """In what a belief may be asked: a part of a head shows in heads only."""
    if family == "rotary":
        return ["q"] if b.get("rotary_dim", 32) != b["head_dim"] and "rotary_dim" in b else ["q", "pairs", "expanded"]
    return [{"sinusoid": "encoding", "ids": "position_ids"}.get(family, family)]


WEIGHTS = {"t5": {"table": (32, 4)}, "fire": {"w1": (6, 1), "b1": (6,), "w2": (3, 6), "b2": (3,)}}


def shapes(b, sent, rng):
    """Arrays of the right shapes, and the inputs drawn."""
    if sent in ("bias", "buckets"):
        size = b.get("q_len", b.get("len")), b.get("k_len", b.get("len"))
        if sent == "buckets":
            return {sent: np.zeros(size)}
        drawn = {name: rng.standard_normal(shape) for name, shape in WEIGHTS.get(b["scheme"], {}).items()}
        return {sent: np.zeros((b.get("num_heads", 3), *size)), **drawn}
    n = count(b)
    if sent == "position_ids":
        return {sent: np.zeros((3, n) if "segments" in b else n)}
    if sent == "encoding":
        return {sent: np.zeros((n, b["dim"]))}
    if sent == "q":
        q = rng.standard_normal((2, n, b["head_dim"]))
        return {"q": q, "q_out": q}
    return {name: np.zeros((n, b["head_dim"] // (2 if sent == "pairs" else 1))) for name in ("cos", "sin")}


def made(b, sent, seed, dtype, port=None, changes=(), numbers=None):
    """The tensors that a port sends, rounded to dtype, and what each number may be off by. numbers: in place of the formulas."""
    rng = np.random.default_rng(seed)
    inputs = {name: rounded(a, dtype) for name, a in shapes({**b, **(port or {})} if sent == "position_ids" else b, sent, rng).items()}
    inputs = {name: inputs[name[0]] if name == "q_out" else a for name, a in inputs.items()}
    both = evidence.predicted({**b, **(port or {})}, inputs)
    values = {name: both[name][0] for name in both} if numbers is None else numbers(b, inputs)
    out = {name: rounded(changed(a, changes), dtype) for name, a in values.items()}
    may = {name: changed(may, [c for c in changes if c[0] in ("axes", "times", "flip")]) for name, (_, may) in both.items()}
    return {**{name: a for name, a in inputs.items() if name not in both}, **out}, {name: np.abs(a) for name, a in may.items()}


# ---- Mistakes of ports --------------------------------------------------------------------------------------------------------------


def of_positions(b, sent):
    """Positions that no rule of the configuration gives."""
    if {"grid", "positions", "segments"} & set(b) or b.get("scaling", {}).get("type") == "dynamic":  # whose frequencies follow the positions
        return
    at = evidence.coordinates(b, count(b))[0]
    n, first = len(at), at[0]
    if "lens" in b:
        yield {"position_no_reset"}, {"positions": range(n)}, []
        return
    whole = sent in ("position_ids", "encoding")
    yield {"off_by_one"}, {"offset": first + 1}, []
    yield {"offset_other"}, {"offset": first + 7}, []
    yield {"positions_reversed"}, {"positions": at[::-1]}, []
    yield {"position_stride"}, {"positions": first + 3 * (at - first)}, []
    yield {"positions_constant"}, {"positions": 0 * at + 17}, []
    if not whole and (b.get("scaling") or {}).get("type") != "linear":
        yield {"rotated_twice"} if sent == "q" else {"rotated_twice", "position_stride"}, {"positions": 2 * at}, []
    if sent == "q":
        yield {"not_rotated"}, {"positions": 0 * at}, []
    if not first:
        yield {"position_reset"}, {"lens": [n // 3, n - n // 3]}, []
    if sent in ("pairs", "expanded"):
        yield {"positions_other"}, {"positions": np.random.default_rng(2).permutation(150)[:n]}, []


SCALINGS = {  # by the type that is believed: what a port has otherwise
    "yarn": [{"beta_fast": 64}, {"beta_slow": 2}, {"truncate": False}, {"original_max_position_embeddings": 8192}],
    "llama3": [{"low_freq_factor": 2}, {"high_freq_factor": 8}, {"factor": 32}],
    "dynamic": [{"seq_len": 64}], "linear": [{"factor": 16}], "ntk": [{"factor": 2}]}


def of_scaling(b):
    believed = b.get("scaling")
    if believed:
        for change in SCALINGS[believed["type"]]:
            yield {"scaling_parameter"}, {"scaling": {**believed, **change}}, []
    elif "head_dim" in b and b["head_dim"] == b.get("rotary_dim", b["head_dim"]) and not {"grid", "positions", "lens"} & set(b):
        yield {"scaling_other"}, {"scaling": {"type": "yarn", "factor": 8, "original_max_position_embeddings": 4096}}, []
        yield {"scaling_other"}, {"scaling": {"type": "llama3", "factor": 8, **SLOW, "original_max_position_embeddings": 8192}}, []
        yield {"scaling_other"}, {"scaling": {"type": "linear", "factor": 8}}, []
    if believed and believed["type"] == "yarn":
        yield {"attention_factor_missing"}, {"attention_factor": 1}, []
        yield {"attention_factor_other"}, {"attention_factor": 1.375}, []


SLOW = {"low_freq_factor": 1, "high_freq_factor": 4}


def of_rotary(b, sent):
    yield from of_scaling(b)
    yield from of_positions(b, sent)
    yield {"negated"}, {}, [["times", -1]]
    yield {"scaled", "attention_factor_other"}, {}, [["times", b["head_dim"] ** -0.5]]
    r = b.get("rotary_dim", b["head_dim"])
    if "grid" in b or "scaling" in b:
        return
    w = evidence.powers(b["base"], r)
    if "mrope_section" not in b:
        yield {"ladder_from_one"}, {"inv_freq": w * w[1]}, []
        yield {"ladder_reversed"}, {"inv_freq": w[::-1]}, []
        if r != b["head_dim"]:
            yield {"ladder_width"}, {"inv_freq": evidence.powers(b["base"], b["head_dim"])[:r // 2]}, []
    for base in (256, 160000, 1e7) if "positions" in b or "lens" in b else (256, 31337):
        yield {"base_other"}, {"base": base}, []


def of_sinusoid(b, sent):
    yield from of_positions(b, sent)
    yield {"negated"}, {}, [["times", -1]]
    yield {"transposed"}, {}, [["axes", [1, 0]]]
    for factor in (b["dim"] ** 0.5, 3.217):
        yield {"scaled"}, {}, [["times", factor]]
    for row in (0, 2, count(b) - 1):
        yield {"rows_zero"}, {}, [["put", [row], 0]]
    if "grid" not in b:
        yield {"base_other"}, {"base": 54320}, []


def power_below(heads):
    return 2 ** int(math.log2(heads))


def slopes_of_ports(right):
    """Of public code, for a count that is no power of two, and others."""
    heads, power = len(right), power_below(len(right))
    h = np.arange(1, heads + 1)
    yield {"slopes_other"}, h * 2.0 ** (-8 / power)
    yield {"slopes_other"}, rounded(right, "bf16")
    yield {"slopes_other"}, np.round(np.random.default_rng(4).uniform(0.01, 1, heads), 4)
    yield {"slopes_order"}, right[::-1]
    if heads != power:
        yield {"slopes_other"}, 2.0 ** (-8 * h / heads)
        yield {"slopes_other"}, np.concatenate([right[:power], right[:heads - power] / 2])
        yield {"slopes_order"}, np.sort(right)[::-1]


def of_bias(b, sent):
    q, k = b.get("q_len", b.get("len")), b.get("k_len", b.get("len"))
    if q == k:
        yield {"transposed"}, {}, [["axes", [0, 2, 1]]]
    yield {"negated"}, {}, [["times", -1]]
    yield {"scaled", "slopes_other"}, {}, [["times", 0.375]]
    yield {"rows_zero"}, {}, [["put", [slice(None), q // 2], 0]]
    yield {"alignment_other"}, {"q_offset": k - q + 1}, []
    if {"causal", "window", "key_mask"} & set(b):
        yield {"mask_value"}, {}, [["hidden", -10000]]
        yield {"mask_value"}, {}, [["hidden", -65504]]
    yield ({"mask_missing"}, {"causal": False, "window": None}, []) if b.get("causal") else ({"mask_extra"}, {"causal": True}, [])
    if "window" in b:
        yield {"window_other"}, {"window": b["window"] + 1}, []
    own = {"alibi": [({"bias_max_other"}, {"bias_max": 16}, []), ({"bias_max_other"}, {"bias_max": 4}, [])],
           "kerple": [({"kind_other"}, {"kind": "power" if b.get("kind") == "log" else "log"}, []),
                      ({"parameters_swapped"}, {"r1": b.get("r2"), "r2": b.get("r1")}, [])],
           "sandwich": [({"parameter_other"}, {"bar_dim": 128}, []), ({"base_other"}, {"base": 500}, [])]}
    yield from own.get(b["scheme"], [])
    if b["scheme"] == "alibi":
        right = np.array([float(x) for x in evidence.truth.alibi_slopes(b["num_heads"])])
        yield from ((codes, {"slopes": slopes}, []) for codes, slopes in slopes_of_ports(right))


def of_buckets(b, sent):
    q, k = b.get("q_len", b.get("len")), b.get("k_len", b.get("len"))
    yield {"transposed"}, {}, [["axes", [1, 0]]]
    yield {"alignment_other"}, {"q_offset": k - q - 1}, []
    if b["scheme"] == "shaw":
        yield {"direction_reversed"}, {"direction": "query_minus_key"}, []


def of_ids(b, sent):
    yield from of_positions(b, sent)
    if "segments" in b:
        yield {"axes_swapped"}, {}, [["take", 0, [0, 2, 1]]]
        yield {"merge_size_other"}, {"spatial_merge_size": 1}, []
        for style in STYLES:
            if style != b["position_style"]:
                yield {"position_style_other"}, {"position_style": style}, []
        if b["position_style"].startswith("qwen2_5_vl"):
            yield {"tokens_per_second_other", "position_style_other"}, {"tokens_per_second": 25}, []


# Mistakes that the numbers of sixteen bits show as well: no value must be fitted.
COARSE = {"layout_swapped", "negated", "scaled", "off_by_one", "direction_reversed", "sin_cos_swapped", "transposed", "rows_zero", "form_other",
          "mask_missing", "mask_extra", "mask_value", "slopes_order", "positions_reversed", "position_reset", "position_no_reset", "not_rotated",
          "rotated_twice", "alignment_other", "bias_max_other", "axes_swapped", "window_other", "kind_other", "ladder_reversed"}


PORTS = {"rotary": of_rotary, "sinusoid": of_sinusoid, "bias": of_bias, "buckets": of_buckets, "ids": of_ids}


def ports(family, b, sent):
    """All of a family that give another tensor."""
    for codes, port, changes in PORTS[family](b, sent):
        port = {name: np.asarray(x).tolist() if isinstance(x, (np.ndarray, range)) else x for name, x in port.items()}
        yield codes, port, changes


# ---- Numbers that no configuration gives ----------------------------------------------------------------------------------------------


def rotary_of(recipe, offset, is_swapped=False):
    """(belief, numbers): tables or heads whose angles are computed in few bits, or whose tables are exchanged."""
    b = {**ROPE, "head_dim": 64, "offset": offset, "len": 16}

    def numbers(b, inputs):
        at, w = b["offset"] + np.arange(16.0), evidence.powers(b["base"], 64)
        cos, sin = turns(recipe, w, at) if recipe else (np.cos(np.outer(at, w)), np.sin(np.outer(at, w)))
        cos, sin = (sin, cos) if is_swapped else (cos, sin)
        return {"q_out": rotary.rotate(inputs["q"], cos, sin, "half", [32])} if "q" in inputs else {"cos": cos, "sin": sin}
    return b, numbers


def turned_of(way, layout, dim=32):
    """(belief, numbers): what is no rotation."""
    b = {**ROPE, "head_dim": dim, "layout": layout, "offset": 3, "len": 16}

    def numbers(b, inputs):
        angles = np.outer(3 + np.arange(16.0), evidence.powers(b["base"], dim))
        cos, sin = np.cos(angles), np.sin(angles)
        return {"q_out": no_rotation(way, inputs["q"], cos, sin, layout)} if "q" in inputs else {"cos": cos, "sin": 0 * sin}
    return b, numbers


def waves_of(recipe, way, offset):
    b = {**WAVES, "dim": 64, "offset": offset, "len": 16}

    def numbers(b, inputs):
        columns, rows = evidence.columns(b, 16, 64)
        columns = misread(columns, way, b["base"]) if way else columns
        return {"encoding": by_recipe(columns, rows, recipe) if recipe else absolute.table(columns, rows)}
    return b, numbers


NUMBERS = [  # code, how it is sent, (belief, numbers)
    *((code, sent, rotary_of(code, 5000)) for code, sent in itertools.product(("inv_freq_bf16", "inv_freq_f16", "angles_bf16"), ("q", "pairs"))),
    *(("sin_cos_swapped", sent, rotary_of(None, 3, True)) for sent in ("q", "pairs")),
    *((code, "encoding", waves_of(code, None, 3000)) for code in ("inv_freq_bf16", "inv_freq_f16", "angles_bf16")),
    *((way, "q", turned_of(way, layout))
      for way in ("imaginary_lost", "sign_lost", "table_layout_other") for layout in ("half", "interleaved")),
    ("imaginary_lost", "pairs", turned_of("imaginary_lost", "half")),
    *((way, "encoding", waves_of(None, way, 2)) for way in ("exponent_per_column", "exponent_doubled", "ladder_from_one", "sine_only")),
]
