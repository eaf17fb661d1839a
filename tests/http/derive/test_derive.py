"""/derive beside /encode: the last step of a derivation is the very number of the tensor, at drawn places of every scheme that it has. The
steps themselves, by mpmath, are rows: ../cases/derive.jsonl."""
import random

import numpy as np
import pytest

from tensors import encode

PAIRS = 24
DIVISORS = [1 + 0.25 * c for c in range(PAIRS)]
SCALINGS = [
    {"type": "default"},
    {"type": "linear", "factor": 3},
    {"type": "ntk", "factor": 3},
    {"type": "ntk_fixed", "factor": 3},
    {"type": "ntk_fixed", "factor": 3, "mixed_b": 0.625},
    {"type": "dynamic", "factor": 2, "max_position_embeddings": 512},
    {"type": "yarn", "factor": 8, "original_max_position_embeddings": 512},
    {"type": "yarn", "factor": 8, "original_max_position_embeddings": 512, "truncate": False, "extrapolation_factor": 0.5},
    {"type": "llama3", "factor": 8, "original_max_position_embeddings": 512, "low_freq_factor": 1, "high_freq_factor": 4},
    {"type": "longrope", "factor": 8, "original_max_position_embeddings": 512, "short_factor": [1] * PAIRS, "long_factor": DIVISORS},
    {"type": "proportional", "partial_rotary_factor": 0.25},
    {"type": "riflex", "k": 4, "seq_len": 2000},
    {"type": "default", "divisors": DIVISORS},
]
ROPE = [{"scheme": "rope", "head_dim": 2 * PAIRS, "len": 1024, "scaling": scaling} for scaling in SCALINGS]
GRID = {"scheme": "rope", "head_dim": 2 * PAIRS, "grid": [12, 20]}
OTHERS = [
    {"scheme": "rope", "head_dim": 64, "rotary_dim": 48, "form": "expanded", "layout": "interleaved", "len": 512},
    {"scheme": "rope", "head_dim": 48, "form": "concat", "direction": -1, "len": 512},
    {"scheme": "rope", "head_dim": 48, "form": "complex", "len": 512},
    {"scheme": "rope", "head_dim": 48, "form": "matrix", "direction": -1, "len": 512},
    {"scheme": "rope", "inv_freq": [2 ** -c for c in range(8)], "head_dim": 16, "len": 512},
    {"scheme": "rope", "head_dim": 48, "positions": [0.5 * i - 7 for i in range(100)]},
    {"scheme": "rope", "head_dim": 48, "channels": "mrope", "positions": [[*range(50)], [i // 5 for i in range(50)], [i % 5 for i in range(50)]]},
    {**GRID, "axes_dim": [16, 32]}, {**GRID, "axes_dim": [24, 24], "axis_base": [100, 10000]}, {**GRID, "channels": "pixtral"},
    {**GRID, "channels": "dinov3"}, {**GRID, "coords": "centered"}, {**GRID, "coords": "pixel"},
    {"scheme": "xpos", "head_dim": 48, "len": 512}, {"scheme": "xpos", "head_dim": 48, "len": 512, "outputs": ["scale"]},
    {"scheme": "sinusoidal", "dim": 48, "len": 512}, {"scheme": "sinusoidal", "dim": 49, "len": 512, "layout": "half", "odd": "pad"},
    {"scheme": "sinusoidal", "dim": 49, "len": 512, "odd": "truncate", "flip_sin_to_cos": True, "angle_scale": 0.3},
    {"scheme": "sinusoidal", "dim": 48, "grid": [12, 20], "num_prefix": 2},
    *({"scheme": "sinusoidal", "dim": 48, "grid": [12, 20], "style": style} for style in ("detr", "mae", "timm", "multidim", "vjepa")),
    {"scheme": "alibi", "num_heads": 12, "len": 100}, {"scheme": "alibi", "num_heads": 12, "len": 100, "causal": True, "window": 40},
    *({"scheme": "alibi", "num_heads": 12, "len": 100, "form": form} for form in ("relative", "key", "key_end", "key_mask")),
    {"scheme": "alibi", "num_heads": 12, "len": 2, "outputs": ["slopes"]},
    {"scheme": "kerple", "num_heads": 2, "r1": [1, 3], "r2": [1, 0.5], "len": 100}, {"scheme": "kerple", "kind": "power", "r2": 1.25, "len": 100},
    {"scheme": "sandwich", "len": 100}, {"scheme": "binary", "dim": 7, "len": 100}, {"scheme": "integer", "dim": 3, "len": 100, "normalize": "length", "pe_scale": 3},
    {"scheme": "t5", "num_heads": 4, "seed": 3, "len": 200}, {"scheme": "t5", "num_heads": 4, "seed": 3, "len": 200, "table_scale": 0.7},
    {"scheme": "t5", "num_heads": 4, "bidirectional": False, "len": 200, "outputs": ["buckets"]},
    {"scheme": "learned", "seed": 3, "dim": 16, "len": 100}, {"scheme": "learned", "seed": 3, "dim": 16, "len": 100, "rows": 40, "out_of_range": "wrap"},
    {"scheme": "learned", "seed": 3, "dim": 16, "len": 100, "rows": 40, "out_of_range": "interpolate"},
    {"scheme": "learned", "seed": 3, "dim": 16, "grid": [12, 20]},
    {"scheme": "none", "dim": 3, "len": 9}, {"scheme": "t5", "num_heads": 2, "num_buckets": 48, "max_distance": 81, "seed": 3, "len": 200},
    {"scheme": "fourier", "len": 300, "num_freqs": 6}, {"scheme": "fourier", "multiply_pi": True, "positions": [[0.1 * i for i in range(50)], [3 - i for i in range(50)]]},
    {"scheme": "fourier", "len": 50, "log_sampling": False, "multiply_pi": True}, {"scheme": "fourier", "style": "gaussian", "sigma": 3, "seed": 1, "grid": [12, 20]},
    {"scheme": "fourier", "style": "perceiver", "grid": [12, 20], "num_bands": 8}, {"scheme": "fourier", "style": "perceiver", "len": 50, "sine_only": True},
    {"scheme": "fourier", "style": "perceiver", "positions": [i / 25 - 1 for i in range(50)], "max_resolution": [20]},
    {"scheme": "shaw", "len": 50}, {"scheme": "shaw", "len": 50, "direction": "query_minus_key", "max_relative": 9, "table_style": "sinusoidal"},
    *({"scheme": scheme, "num_heads": 2, "head_dim": 12, "len": 50, "clamp_len": clamp} for scheme in ("transformer_xl", "xlnet", "conformer") for clamp in (-1, 20)),
    {"scheme": "transformer_xl", "num_heads": 2, "head_dim": 12, "len": 50, "mem_len": 30}, {"scheme": "xlnet", "len": 50, "outputs": ["distances"]},
    {"scheme": "deberta", "len": 600}, {"scheme": "deberta", "len": 600, "position_buckets": 64, "max_relative_positions": 128},
    {"scheme": "deberta", "len": 600, "position_buckets": 33, "max_relative_positions": 512, "clamp_first": True, "pos_att_type": ["p2c"]},
    *({"scheme": "decomposed", "grid": [7, 9], "outputs": [name]} for name in ("index_h", "index_w")),
    *({"scheme": scheme, "grid": grid, "outputs": ["index"]} for scheme, grid in (("swin", [5, 6]), ("swin", [2, 5, 6]), ("beit", [5, 6]), ("swinv2", [5, 6]))),
    {"scheme": "learned", "seed": 3, "dim": 16, "grid": [12, 20], "table_grid": [7, 7], "num_prefix": 1},
]
# Those that a table, or a network in double, has: the bits of /encode, of every type.
WEIGHTS = [
    {"scheme": "swin", "grid": [5, 6], "num_heads": 2}, {"scheme": "swin", "grid": [5, 6], "num_heads": 2, "table_grid": [3, 4]}, {"scheme": "swin", "grid": [2, 5, 6], "num_heads": 2},
    {"scheme": "beit", "grid": [5, 6], "num_heads": 2}, {"scheme": "beit", "grid": [5, 6], "num_heads": 2, "table_grid": [7, 7], "interpolate": "bilinear", "causal": True},
    {"scheme": "swinv2", "grid": [5, 6], "num_heads": 2, "std": 1}, {"scheme": "swinv2", "grid": [5, 6], "num_heads": 2, "std": 1, "arith": "float32", "pretrained_grid": [1, 9]},
    {"scheme": "fire", "num_heads": 2, "len": 300, "init_l": 60, "l_mult": 2}, {"scheme": "fire", "num_heads": 2, "positions": [0.5 * i for i in range(99)], "causal": True},
    {"scheme": "recursive", "dim": 12, "len": 40, "std": 0.3}, {"scheme": "recursive", "dim": 12, "len": 40, "std": 0.1, "residual": True, "activation": "gelu", "arith": "float32"},
    *({"scheme": "floater", "dim": 12, "len": 20, "std": 0.3, "dt": 0.1, "method": method} for method in ("rk4_38", "rk4", "midpoint", "euler")),
    {"scheme": "floater", "dim": 12, "len": 20, "std": 0.3, "dt": 0.1, "substeps": 1, "activation": "tanh", "arith": "float32", "time_input": False},
]
NUMBERS = 16


def name_of(fields):
    return "-".join(str(value["type"] if isinstance(value, dict) else value) for value in fields.values())[:60]


def encoded(server, **fields):
    """The first tensor of /encode, with its name."""
    return next(iter(encode(server, **fields).items()))


def derived(server, tensor, name, fields, seed):
    """Some drawn numbers of a tensor: their places, and their derivations."""
    draw = random.Random(seed)
    places = [[draw.randrange(n) for n in tensor.shape] for _ in range(NUMBERS)]
    asked = {key: value for key, value in fields.items() if key != "outputs"}
    answer = server.post("/derive", {**asked, "tensor": name, "index": places})
    assert answer.status == 200, (fields, answer)
    return zip(map(tuple, places), answer.json()["numbers"])


@pytest.mark.parametrize("fields", ROPE + OTHERS, ids=name_of)
def test_the_last_step_is_the_number(server, fields):
    name, tensor = encoded(server, **fields)
    for place, one in derived(server, tensor, name, fields, 1):
        number = one["number"]["value"]
        assert tensor[place] == tensor.dtype.type(float(number)), (place, one)
        value = [step["value"] for step in one["steps"] if "value" in step][-1]
        if one["number"]["dtype"] == "f32":
            found = np.float32(float(value))
            assert found == tensor[place] or abs(found - tensor[place]) <= 2e-7 * abs(tensor[place]) and one["float32"] is None, (place, one)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("fields", WEIGHTS, ids=name_of)
def test_weights_give_the_bits(server, fields, dtype):
    fields = {**fields, "seed": 7, "dtype": dtype}
    name, tensor = encoded(server, **fields)
    for place, one in derived(server, tensor, name, fields, 3):
        value = [step["value"] for step in one["steps"] if "value" in step][-1]
        assert tensor.dtype.type(float(value)).tobytes() == tensor[place].tobytes(), (place, one)
        assert int(one["number"]["bits"], 16) == int.from_bytes(tensor[place].tobytes(), "little") and one["float32"] is None, (place, one)


@pytest.mark.parametrize("fields", [f for f in ROPE + OTHERS if f["scheme"] in ("rope", "sinusoidal", "fourier") and "inv_freq" not in f and f.get("coords") != "pixel"
                                    and f.get("axis_base") is None and f.get("channels") not in ("dinov3", )], ids=name_of)
def test_arith_float32_is_the_last_rounded_step(server, fields):
    """The recipe that /derive takes by default is the arithmetic of `arith: float32`."""
    name, tensor = encoded(server, **fields, arith="float32")
    for place, one in derived(server, tensor, name, {**fields, "arith": "float32"}, 2):
        if one["float32"]:
            assert np.float32(float(one["float32"][-1]["value"])) == tensor[place], (place, one)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_other_types(server, dtype):
    """Neighbours of a number are those of its type."""
    answer = server.post("/derive", {"scheme": "rope", "head_dim": 16, "position": 37, "pair": 3, "dtype": dtype}).json()
    number, step = answer["number"], {"f16": 2 ** -11, "bf16": 2 ** -8, "f64": 2 ** -53}[dtype]
    assert number["dtype"] == dtype and len(number["bits"]) == 2 + {"f64": 16}.get(dtype, 4)
    assert number["below"] < number["value"] < number["above"]
    assert (number["above"] - number["below"]) / 2 == pytest.approx(step * 2 ** np.floor(np.log2(abs(number["value"])) + 1), rel=0.2)
