"""/analyze through the socket: published values, every metric of every scheme against the reference, laws, forms of the answer."""
import json
import re

import mpmath
import numpy as np
import pytest

import truth
import truth.analysis_plans as plans
import truth.scaling as scalings
from analysis_asking import ask, by_name, check
from truth.analysis import METRICS
from tensors import from_json, from_npy, from_npz, from_raw, from_safetensors, multipart, npy

ROPE = {"scheme": "rope", "head_dim": 8, "len": 12}
LLAMA3 = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32}


def one(server, metric, config, **fields):
    """One metric of one configuration, given as the request itself."""
    document = server.ask("/analyze", **config, metrics=[metric], **fields).json()
    (result,) = document["results"]
    assert list(result) == [metric]
    return result[metric]


# ---- Published values --------------------------------------------------------------------------------------------------------


def test_unique(server):
    found = one(server, "unique", {"scheme": "sinusoidal", "dim": 64, "len": 128})
    assert found["value"] == pytest.approx(1.4718480481, abs=5e-11) and found["witness"] == {"rows": [0, 1]}
    found = one(server, "unique", {"scheme": "sinusoidal", "dim": 4, "len": 4096})
    assert found["value"] == pytest.approx(0.0444064, abs=5e-8) and found["witness"] == {"rows": [0, 1885]}
    found = one(server, "unique", {"scheme": "alibi", "len": 8})
    assert found["value"] == 0 and found["witness"] == {"distances": [-1, 1]}
    found = one(server, "unique", {"scheme": "none", "len": 8})
    assert found["value"] == 0 and found["witness"] == {"rows": [0, 1]}


def test_similarity(server):
    answer = server.ask("/analyze", scheme="sinusoidal", dim=128, len=512, metrics=["similarity"])
    means, found = from_json(answer)["similarity.0"] / 64, answer.json()["results"][0]["similarity"]
    for distance, value in {0: 1, 1: .9702, 2: .8966, 4: .7592, 8: .7144, 16: .6203, 32: .5575, 64: .4769, 128: .3328, 256: .3207}.items():
        assert means[distance] == pytest.approx(value, abs=5e-5)
    assert means[1] == pytest.approx(.97021, abs=5e-6) and found["minimum"]["distance"] == 468


def test_decay(server):
    answer = server.ask("/analyze", scheme="rope", head_dim=128, len=513, metrics=["decay"])
    curve = from_json(answer)["decay.0"]
    for distance, value in {0: 32.5, 1: 31.538, 2: 28.956, 4: 22.604, 8: 19.817, 64: 10.090, 256: 6.543, 512: 5.311}.items():
        assert curve[distance] == pytest.approx(value, abs=6e-4)
    assert answer.json()["results"][0]["decay"]["rises"] == 241


def test_norms(server):
    dtypes = one(server, "norms", {"scheme": "rope", "head_dim": 128, "len": 64})["dtypes"]
    for dtype, change in (("f32", "4.0e-08"), ("f16", "3.3e-04"), ("bf16", "2.7e-03")):
        entry = by_name(dtypes, dtype)
        assert f"{entry['value'] if isinstance(entry, dict) else entry:.1e}" == change


@pytest.mark.parametrize("power,error", [(10, 1.76e-5), (13, 1.41e-4), (17, 2.33e-3), (20, 1.83e-2)])
def test_precision(server, power, error):
    found = one(server, "precision", {"scheme": "rope", "base": 5e5, "head_dim": 128, "positions": [2 ** power]})
    assert found["value"] == pytest.approx(error, rel=3e-3)


def test_collisions(server):
    assert one(server, "collisions", {"scheme": "integer", "len": 600}, dtypes=["bf16"])["witness"] == {"rows": [256, 257]}
    found = one(server, "collisions", {"scheme": "alibi", "num_heads": 8, "causal": True, "len": 2048}, dtypes=["bf16"])
    assert found["value"] == 1407 and found["witness"] == {"distances": [-256, -257]}


def test_receptive(server):
    found = one(server, "receptive", {"scheme": "alibi", "num_heads": 8, "causal": True, "len": 2048})
    assert found["ninety"] == [4, 9, 18, 36, 73, 147, 294, 588] and found["value"] == 588 and found["witness"] == {"head": 7}


def test_wavelengths(server):
    found = one(server, "wavelengths", {"preset": "llama-3.1", "len": 16})
    assert found["value"] == .5 and found["witness"]["pair"] == 32 and found["kept"] == 29 and found["train_len"] == 8192


def test_extrapolation(server):
    reach = {"train_len": 128, "eval_len": 1024}
    found = one(server, "extrapolation", {"scheme": "alibi", "causal": True, "len": 128}, **reach)
    assert found["value"] == found["attention"]["mass_beyond"] == pytest.approx(.1418, abs=5e-5)
    assert found["attention"]["entropy"] == pytest.approx([3.276, 3.717], abs=5e-4)
    rope = {"scheme": "rope", "len": 128}
    assert one(server, "extrapolation", rope, **reach)["value"] == pytest.approx(.5726, abs=5e-5)
    ntk = one(server, "extrapolation", {**rope, "scaling": {"type": "ntk", "factor": 8}}, **reach)
    assert ntk["value"] == pytest.approx(.2860, abs=1e-4)  # one distance has just reached an angle


@pytest.mark.parametrize("config,count", [
    ({"scheme": "sinusoidal"}, 5), ({"scheme": "rope"}, 5), ({"scheme": "binary", "dim": 8}, 2), ({"scheme": "learned", "seed": 0}, 2),
    ({"scheme": "alibi"}, 3), ({"scheme": "alibi", "causal": True}, 4)])
def test_properties(server, config, count):
    assert one(server, "properties", {**config, "len": 64})["value"] == count


# ---- Every scheme, every metric that it has --------------------------------------------------------------------------------------

SINE, SEEDED = {"scheme": "sinusoidal", "dim": 8}, {"seed": 3, "std": 0.5}
LISTS = {"short_factor": [1.0, 1.1, 1.5, 2.0], "long_factor": [1.0, 2.0, 4.0, 8.0], "original_max_position_embeddings": 16}
ABSOLUTE = [
    {"scheme": "none", "dim": 6, "len": 7},
    {"scheme": "integer", "dim": 3, "len": 9, "offset": 5}, {"scheme": "integer", "dim": 2, "len": 9, "normalize": "length"},
    {"scheme": "integer", "dim": 2, "len": 6, "normalize": "length_minus_one", "pe_scale": 3.0},
    {"scheme": "binary", "dim": 8, "len": 20}, {"scheme": "binary", "dim": 12, "bits": 9, "bit_order": "lsb", "low": -1.0, "len": 33},
    {**SINE, "len": 20}, {**SINE, "len": 11, "offset": 1000, "layout": "half"}, {**SINE, "len": 10, "flip_sin_to_cos": True},
    {**SINE, "len": 10, "freq_shift": 1, "base": 500.0}, {**SINE, "dim": 9, "len": 21}, {**SINE, "dim": 9, "odd": "pad", "len": 12},
    {**SINE, "dim": 9, "odd": "truncate", "len": 23}, {**SINE, "len": 2}, {**SINE, "positions": [3, 4, 5, 6]},
    {**SINE, "positions": [0, 7, 2.5, 7, 100]}, {**SINE, "grid": [3, 4]}, {**SINE, "dim": 12, "grid": [2, 3, 2]},
    {**SINE, "positions": [[0, 1, 2, 2], [5, 0, 0, 1]]}, {**SINE, "lens": [3, 4]},
    {"scheme": "fourier", "len": 9}, {"scheme": "fourier", "num_freqs": 3, "include_input": False, "multiply_pi": True, "len": 8},
    {"scheme": "fourier", "style": "perceiver", "num_bands": 4, "len": 10}, {"scheme": "fourier", "style": "gaussian", "num_freqs": 6, "len": 9},
    {"scheme": "learned", "dim": 5, "len": 14, **SEEDED}, {"scheme": "learned", "dim": 5, "rows": 9, "len": 14, "out_of_range": "clamp", **SEEDED},
    {"scheme": "learned", "dim": 4, "len": 9, "row_offset": 2, **SEEDED},
    {"scheme": "learned", "dim": 4, "rows": 7, "len": 9, "out_of_range": "wrap", **SEEDED},
    {"scheme": "recursive", "dim": 4, "len": 9, **SEEDED}, {"scheme": "floater", "dim": 4, "len": 9, **SEEDED},
]
ROTARY = [
    ROPE, {**ROPE, "len": 21, "layout": "half", "base": 500.0}, {**ROPE, "offset": 70000}, {**ROPE, "direction": -1},
    {**ROPE, "head_dim": 16, "rotary_dim": 8, "rotary_offset": 8}, {**ROPE, "head_dim": 16, "partial_rotary_factor": 0.5},
    {**ROPE, "layout": "vjepa2"}, {**ROPE, "layout": "interleaved_to_half"}, {**ROPE, "attention_factor": 1.25},
    {**ROPE, "inv_freq": [1.0, 0.5, 0.125, 0.01]}, {"scheme": "rope", "head_dim": 8, "positions": [0, 2, 9, 9]},
    {"scheme": "rope", "head_dim": 8, "lens": [5, 3]}, {"scheme": "rope", "head_dim": 8, "grid": [3, 4]},
    {**ROPE, "scaling": {"type": "linear", "factor": 3}}, {**ROPE, "scaling": {"type": "ntk", "factor": 4}},
    {**ROPE, "scaling": {"type": "dynamic", "factor": 2, "max_position_embeddings": 9}},
    {**ROPE, "scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 24}},
    {**ROPE, "len": 20, "scaling": {"type": "longrope", "factor": 4, **LISTS}}, {**ROPE, "scaling": {"type": "longrope", "factor": 4, **LISTS}},
    {**ROPE, "base": 5e5, "scaling": LLAMA3}, {**ROPE, "scaling": {"type": "proportional", "partial_rotary_factor": 0.5}},
    {"scheme": "xpos", "head_dim": 8, "len": 15}, {"scheme": "xpos", "head_dim": 8, "len": 10, "scale_base": 16.0, "gamma": 1.0, "center": 4},
    {"scheme": "xpos", "head_dim": 8, "len": 9, "center": "torchscale", "layout": "half"},
]
BIAS = [
    {"scheme": "alibi", "len": 12}, {"scheme": "alibi", "num_heads": 3, "len": 9, "causal": True},
    {"scheme": "alibi", "num_heads": 2, "len": 9, "form": "relative"}, {"scheme": "alibi", "num_heads": 2, "len": 9, "form": "key"},
    {"scheme": "alibi", "num_heads": 2, "len": 9, "form": "key_end", "causal": True},
    {"scheme": "alibi", "num_heads": 2, "len": 10, "window": 4}, {"scheme": "alibi", "num_heads": 2, "len": 10, "window": 4, "causal": True},
    {"scheme": "alibi", "num_heads": 2, "len": 10, "form": "asymmetric", "slopes_left": [0.5, 0.25], "slopes_right": [0.25, 0.0]},
    {"scheme": "t5", "num_heads": 2, "len": 20, **SEEDED},
    {"scheme": "t5", "num_heads": 2, "len": 20, "bidirectional": False, "causal": True, **SEEDED},
    {"scheme": "t5", "num_heads": 2, "len": 12, "num_buckets": 8, "max_distance": 10, **SEEDED},
    {"scheme": "kerple", "num_heads": 2, "len": 12}, {"scheme": "kerple", "num_heads": 2, "len": 12, "kind": "power", "r1": 0.5, "r2": 1.5},
    {"scheme": "fire", "num_heads": 2, "len": 9, **SEEDED}, {"scheme": "fire", "num_heads": 2, "len": 12, "init_l": 4.0, "causal": True, **SEEDED},
    {"scheme": "sandwich", "num_heads": 2, "len": 12}, {"scheme": "sandwich", "num_heads": 2, "bar_dim": 6, "len": 12, "causal": True},
]
RELATIVE = [{"scheme": "shaw", "len": 9}, {"scheme": "shaw", "max_relative": 2, "len": 9}, {"scheme": "deberta", "len": 9},
            {"scheme": "deberta", "position_buckets": 8, "max_relative_positions": 12, "len": 9}, {"scheme": "transformer_xl", "len": 5}]


def said(config):
    return " ".join(str(v if not isinstance(v, dict) else v.get("type", v.get("rope_type"))) for v in config.values())


@pytest.mark.parametrize("config", ABSOLUTE + ROTARY + BIAS + RELATIVE, ids=said)
def test_every_scheme(server, config):
    check(server, config)


MORE = [  # rows that end inside a block of any kernel, and distances that the sequence gives in its own way
    {"scheme": "sinusoidal", "dim": 131, "len": 1101, "offset": 17}, {"scheme": "rope", "head_dim": 66, "len": 705, "base": 100.0},
    {"scheme": "rope", "head_dim": 128, "len": 259, "layout": "vjepa2"}, {"scheme": "xpos", "head_dim": 32, "len": 517},
    {"scheme": "learned", "dim": 97, "len": 513, **SEEDED}, {"scheme": "binary", "dim": 33, "len": 1030}, {"scheme": "integer", "dim": 2, "len": 2100},
    {"scheme": "alibi", "num_heads": 5, "len": 703, "causal": True}, {"scheme": "t5", "num_heads": 3, "len": 601, **SEEDED},
    {"scheme": "kerple", "num_heads": 3, "len": 300}, {"scheme": "alibi", "num_heads": 2, "q_len": 3, "k_len": 9},
    {"scheme": "alibi", "num_heads": 2, "q_len": 6, "k_len": 6, "q_offset": 2}, {"scheme": "alibi", "num_heads": 2, "len": 8, "key_mask": [0, 1, 1, 1, 0, 1, 1, 1]},
    {"scheme": "alibi", "num_heads": 2, "positions": [0, 1, 4, 10]}, {"scheme": "kerple", "num_heads": 2, "positions": [0, 0.5, 2, 2.25]},
    {"scheme": "alibi", "num_heads": 2, "lens": [3, 4]}, {"scheme": "sinusoidal", "dim": 8, "positions": [0.5, 1.5, 2.5]},
]


@pytest.mark.parametrize("config", MORE, ids=said)
def test_more_rows(server, config):
    known = [name for name in METRICS if name not in ("extrapolation", "properties", "difference") and METRICS[name][1](plans.Plan(config))]
    check(server, config, known)


@pytest.mark.parametrize("config,metric,fields", [
    (SINE, "shift", {"k": [1, 5, 7]}), ({**SINE, "dim": 5}, "shift", {"k": [3, 1]}), (ROPE, "shift", {"k": [2]}),
    (ROPE, "wavelengths", {"train_len": 7}), (ROPE, "wavelengths", {"train_len": 100000}),
    (ROPE, "extrapolation", {"train_len": 9, "eval_len": 31, "seed": 5}), (SINE, "extrapolation", {"train_len": 9, "eval_len": 9}),
    ({"scheme": "learned", "dim": 4, "table": [[1, 2, 3, 4]] * 16}, "extrapolation", {"eval_len": 64}),
    ({"scheme": "alibi", "num_heads": 2, "causal": True}, "extrapolation", {"eval_len": 50, "seed": 9}),
    (ROPE, "precision", {"recipes": ["bf16", "f32"]}), ({**ROPE, "offset": 5000}, "precision", {"recipes": ["f16_inv_freq"]}),
    (SINE, "precision", {}), (ROPE, "collisions", {"dtypes": ["bf16", "f16"]}), (SINE, "collisions", {"dtypes": ["f16"]}),
    (SINE, "similarity", {"pairing": "sin"}), (SINE, "similarity", {"pairing": "cos"}),
    (SINE, "similarity", {"pairing": "mismatched", "other_base": 100.0}), ({**SINE, "layout": "half"}, "similarity", {"pairing": "paired"}),
])
def test_parameters(server, config, metric, fields):
    check(server, {"len": 13, **config}, [metric], **fields)


def test_channels_first_are_the_same_rows(server):
    grid = {"scheme": "sinusoidal", "dim": 8, "grid": [3, 4], "metrics": ["unique", "bounds"]}
    first, last = (server.ask("/analyze", **grid, channels_first=first).json()["results"] for first in (True, False))
    rows = np.array(from_json(server.ask("/encode", scheme="sinusoidal", dim=8, grid=[3, 4]))["encoding"], float).reshape(12, 8)
    apart = min(np.linalg.norm(rows[i] - rows[j]) for i in range(12) for j in range(i))
    assert first == last and first[0]["unique"]["value"] == pytest.approx(apart, abs=1e-6)


def test_a_bias_that_hides_every_key_has_no_rows(server):
    [found] = server.ask("/analyze", scheme="alibi", num_heads=2, len=4, key_mask=[0] * 4, metrics=["unique"]).json()["results"]
    assert found["unique"]["value"] is None and found["unique"]["witness"] is None and "no rows" in found["unique"]["detail"]


def test_tensors_on_request(server):
    config = {**SINE, "len": 9}
    results, tensors = ask(server, config, ["shift", "similarity"], k=[1, 3], outputs=["shift_matrix", "gram"])
    rows = plans.Plan(config).rows()
    assert list(tensors) == ["shift_matrix.0", "gram.0"]
    np.testing.assert_allclose(tensors["gram.0"], rows @ rows.T, atol=1e-13)
    for matrix, k in zip(tensors["shift_matrix.0"], (1, 3)):
        np.testing.assert_allclose(rows[:-k] @ matrix.T, rows[k:], atol=1e-13)
    assert ask(server, config, outputs=[])[1] == {}


def test_tables_of_presets(server):
    """What is resolved is analysed: the presets have nothing that the reference does not know."""
    config = server.ask("/encode", preset="llama-3.1", len=3, data=False).json()["config"]
    kept = {name: config[name] for name in ("scheme", "head_dim", "base", "layout", "scaling")}
    results, _ = ask(server, {"preset": "llama-3.1", "len": 40}, ["wavelengths", "precision", "decay", "norms", "step"])
    again, _ = check(server, {**kept, "len": 40}, ["wavelengths", "precision", "decay", "norms", "step"])
    assert results == again


@pytest.mark.parametrize("config", [SINE, ROPE, {"scheme": "alibi"}, {"scheme": "binary", "dim": 8}, {"scheme": "t5", "seed": 0}])
def test_one_position(server, config):
    """It has no neighbour."""
    (found,), _ = ask(server, {**config, "len": 1}, ["unique", "bounds", "collisions"])
    assert found["unique"]["value"] is None and found["unique"]["witness"] is None and found["collisions"]["value"] == 0
    assert ask(server, {**config, "len": 1})


def test_far_away(server):
    """Angles beyond float64: the library's float32 angles against mpmath."""
    p, bases = 2 ** 39 + 12345, {"scheme": "rope", "head_dim": 8, "base": 500000.0, "positions": [2 ** 39 + 12345]}
    worst = 0
    for c in range(4):
        w = truth.rope_frequency(c, 8, 500000.0)
        angle = float(np.float32(p) * np.float32(float(w)))
        for rounded, exact in ((np.cos(angle), mpmath.cos(p * w)), (np.sin(angle), mpmath.sin(p * w))):
            worst = max(worst, abs(float(np.float32(rounded)) - float(exact)))
    assert one(server, "precision", bases, recipes=["f32"])["value"] == pytest.approx(worst, abs=1e-9)
    run = {"scheme": "rope", "head_dim": 8, "offset": 2 ** 39, "len": 9}
    found, near = (one(server, "step", c) for c in (run, {**run, "offset": 0}))  # equal angles lie between neighbours
    assert found["value"] == pytest.approx(near["value"], abs=1e-12) and found["witness"] == {"rows": [0, 1]}


def test_every_example(server):
    for scheme in server.get("/schemes").json()["schemes"]:
        response = server.post("/analyze", scheme["example"])
        if scheme["name"] == "cope":  # it is content throughout
            assert response.status == 422
        else:
            assert response.status == 200 and response.json()["results"][0], (scheme["name"], response)


@pytest.mark.parametrize("fields", [{"form": "matrix"}, {"form": "expanded", "layout": "half"}, {"form": "concat"}])
def test_rows_are_those_of_pairs(server, fields):
    """Whatever form is asked for."""
    asked = ["unique", "shift", "norms", "collisions"]
    pairs = {**ROPE, **fields, "form": "pairs"}
    assert ask(server, {**ROPE, **fields}, asked)[0] == ask(server, pairs, asked)[0]


def test_a_table_that_is_sent(server):
    table = np.random.default_rng(0).standard_normal((9, 5)).astype("f4")
    body, headers = multipart(request='{"scheme":"learned","len":9,"metrics":["unique","shift","bounds"]}', table=npy(table))
    response = server.post("/analyze", body, headers)
    assert response.status == 200, response
    inline, _ = check(server, {"scheme": "learned", "dim": 5, "len": 9, "table": table.tolist()}, ["unique", "shift", "bounds"])
    assert response.json()["results"] == inline


# ---- Differences -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", ABSOLUTE + ROTARY + BIAS, ids=said)
def test_no_difference_from_itself(server, config):
    found = ask(server, [config, config], ["difference"])[0]
    assert list(found[0]) == [] and list(found[1]) == ["difference"]
    found = found[1]["difference"]
    assert found["value"] == 0 and found["witness"] is None and found["max_ulp"] == 0 and found["equal"] == 1 and found["first"] is None


@pytest.mark.parametrize("configs,fields", [
    ([ROPE, {**ROPE, "layout": "half"}], {}), ([ROPE, {**ROPE, "base": 10001.0}], {}), ([ROPE, {**ROPE, "direction": -1}], {"dtype": "f16"}),
    ([ROPE, {**ROPE, "scaling": {"type": "linear", "factor": 2}}], {"dtype": "bf16", "tolerance": 0.5}),
    ([ROPE, {**ROPE, "offset": 1}, {**ROPE, "base": 9999.0}], {"tolerance": 1e-3}),
    ([{**SINE, "len": 9}, {**SINE, "len": 9, "layout": "half"}], {}), ([{**SINE, "len": 9}, {**SINE, "len": 8}], {}),
    ([{**ROPE, "scheme": "xpos"}, ROPE], {}), ([ROPE, {"scheme": "alibi", "len": 12}], {}),
    ([{"scheme": "alibi", "len": 5}, {"scheme": "alibi", "len": 5, "causal": True}], {}),
    ([{"scheme": "alibi", "len": 5}, {"scheme": "kerple", "len": 5}], {"dtype": "f16"}),
])
def test_difference(server, configs, fields):
    check(server, configs, ["difference"], **fields)


def test_float32_angles_are_seen(server):
    """What a framework's float32 angles cost at 100 000."""
    rope = {"scheme": "rope", "head_dim": 128, "base": 500000.0, "offset": 100000, "len": 4}
    w = scalings.inv_freq_float32({"type": "default"}, 500000.0, 128, 100004)
    angle = (np.arange(100000, 100004, dtype="f4")[:, None] * w).astype(float)
    exact = plans.Plan(rope).tables()
    gap = max(np.abs(np.float32(f(angle)) - np.float32(t)).max() for f, t in ((np.cos, exact[0]), (np.sin, exact[1])))
    found = ask(server, [rope, {**rope, "arith": "float32"}], ["difference"])[0][1]["difference"]
    assert 1e-3 < gap < 2e-2 and found["first"] == {"output": "cos", "row": 0} and found["value"] >= gap * .99
    assert found["equal"] < .9 and found["max_ulp"] > 1000


# ---- Laws -----------------------------------------------------------------------------------------------------------------------------


def test_several_are_each_alone(server):
    configs = [ROPE, {**SINE, "len": 12}, {"scheme": "alibi", "len": 6, "causal": True}, {"scheme": "learned", "dim": 4, "len": 8, **SEEDED}]
    answer = server.ask("/analyze", configs=configs)
    together, tensors = answer.json(), from_json(answer)
    found = {}
    for i, config in enumerate(configs):
        alone = server.ask("/analyze", configs=[config])
        assert together["configs"][i] == alone.json()["configs"][0]
        got = {name: value for name, value in together["results"][i].items() if name != "difference"}
        assert got == alone.json()["results"][0]
        found.update({name.replace(".0", f".{i}"): values for name, values in from_json(alone).items()})
    assert {name for name in tensors if not name.startswith("difference.")} == set(found)
    assert all(np.array_equal(tensors[name], values, equal_nan=True) for name, values in found.items())


def test_fields_beside_are_defaults(server):
    """Nested objects as a whole."""
    scaling = {"type": "linear", "factor": 2}
    request = {"scheme": "rope", "head_dim": 8, "len": 9, "scaling": {"type": "ntk", "factor": 4},
               "configs": [{}, {"len": 5}, {"scaling": scaling, "base": 500.0}]}
    spelled = [{**ROPE, "len": 9, "scaling": request["scaling"]}, {**ROPE, "len": 5, "scaling": request["scaling"]},
               {**ROPE, "len": 9, "scaling": scaling, "base": 500.0}]
    assert server.ask("/analyze", **request).body == server.ask("/analyze", configs=spelled).body
    assert server.ask("/analyze", **ROPE).body == server.ask("/analyze", configs=[ROPE]).body


def test_one_seed_for_weights_and_content(server):
    """Beside the metrics it is both; inside an entry it is the weights' alone."""
    t5 = {"scheme": "t5", "num_heads": 2, "len": 8}
    both = one(server, "extrapolation", {**t5, "seed": 3})
    assert both == ask(server, {**t5, "seed": 3}, ["extrapolation"], seed=3)[0][0]["extrapolation"]
    weights = ask(server, {**t5, "seed": 3}, ["extrapolation"])[0][0]["extrapolation"]
    assert weights["attention"] != both["attention"]
    check(server, {**t5, "seed": 3}, ["extrapolation"], seed=3)
    check(server, {**t5, "seed": 3}, ["extrapolation"])


def test_configs_are_resolved(server):
    for config in (ROPE, {"preset": "llama-3.1", "len": 4}, {"scheme": "alibi", "len": 3}):
        alone = server.ask("/encode", **config, data=False).json()["config"]
        assert server.ask("/analyze", configs=[config], metrics=["bounds"]).json()["configs"] == [alone]


def test_a_turned_shift_is_noise(server):
    for config in ROTARY:
        if plans.Plan(config).is_run:
            found = ask(server, config, ["shift"], k=[1, 7])[0][0]["shift"]
            assert found["method"] == "exact" and found["value"] < 1e-9 and found["witness"] is None


def test_the_same_bytes(server):
    request = {"configs": [ROPE, {**SINE, "len": 12}]}
    first = server.ask("/analyze", **request)
    assert server.ask("/analyze", **request).body == first.body


def test_get_and_query(server):
    posted = server.ask("/analyze", **ROPE)
    got = server.get("/analyze?scheme=rope&head_dim=8&len=12")
    assert got.status == 200 and got.body == posted.body and got.headers["ETag"]
    again = server.get("/analyze?scheme=rope&head_dim=8&len=12", {"If-None-Match": got.headers["ETag"]})
    assert again.status == 304 and again.body == b""
    query = server.request("QUERY", "/analyze", json.dumps(ROPE), {"Content-Type": "application/json"})
    assert query.status == 200 and query.body == posted.body and query.headers["ETag"]
    listed = server.get("/analyze?scheme=rope&head_dim=8&len=12&metrics=unique,step")
    assert list(listed.json()["results"][0]) == ["unique", "step"]


def test_the_order_is_the_tables(server):
    asked = ["step", "unique", "bounds"]
    assert list(ask(server, ROPE, asked)[0][0]) == ["unique", "bounds", "step"]
    both, _ = ask(server, [ROPE, {"scheme": "alibi", "len": 4}], ["receptive", "norms"])
    assert [list(result) for result in both] == [["norms"], ["receptive"]]
    everything = [name for result in ask(server, [ROPE, {"scheme": "alibi", "len": 4}])[0] for name in result]
    assert set(everything) | {"difference"} == set(METRICS)


# ---- Languages ----------------------------------------------------------------------------------------------------------------------------

HAN = re.compile("[一-鿿]")


def test_pairs_of_sentences(server):
    for configs in ([ROPE, ROPE], [{"scheme": "alibi", "len": 6}], [{"scheme": "learned", "dim": 4, "len": 6, "seed": 0}]):
        for result in ask(server, configs)[0]:
            for name, found in result.items():
                assert found["detail"].strip() and not HAN.search(found["detail"]), (name, found["detail"])
                assert HAN.search(found["detail_zh"]), (name, found["detail_zh"])
                assert "{" not in found["detail"] + found["detail_zh"], (name, found)


def test_the_first_of_a_pair(server):
    plain = server.ask("/analyze", **ROPE, metrics=["unique"])
    asked = server.ask("/analyze", **ROPE, metrics=["unique"], lang="zh")
    accepted = server.ask("/analyze", **ROPE, metrics=["unique"], headers={"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"})
    assert plain.headers["Content-Language"] == "en"
    for response in (asked, accepted):
        assert response.headers["Content-Language"].startswith("zh")
        assert HAN.search(response.json()["results"][0]["unique"]["detail"])
    assert "Accept-Language" in accepted.headers["Vary"]
    over = server.ask("/analyze", **ROPE, metrics=["unique"], lang="en", headers={"Accept-Language": "zh"})
    assert over.body == plain.body
    tags = [server.get(f"/analyze?scheme=rope&len=4&lang={lang}").headers["ETag"] for lang in ("en", "zh")]
    assert tags[0] != tags[1]


# ---- Forms --------------------------------------------------------------------------------------------------------------------------------------


def test_binary_forms_agree(server):
    request = {"configs": [ROPE, {"scheme": "sinusoidal", "dim": 8, "grid": [3, 4]}], "metrics": ["step", "decay", "wavelengths", "similarity"]}
    plain = server.ask("/analyze", **request)
    wanted = from_json(plain)
    assert all(values.dtype == np.float64 for values in wanted.values()) and np.isnan(wanted["step.1"]).any()
    for form, read in (("npz", from_npz), ("raw", from_raw), ("safetensors", from_safetensors)):
        found = read(server.ask("/analyze", **request, format=form))
        assert list(found) == list(wanted) or set(found) == set(wanted)
        assert all(found[name].dtype == np.float64 and np.array_equal(found[name], values, equal_nan=True) for name, values in wanted.items())
    single = server.ask("/analyze", **ROPE, metrics=["decay"], format="npy")
    assert np.array_equal(from_npy(single), wanted["decay.0"])
    assert server.post("/analyze", {**request, "format": "npy"}).status == 406


def test_safetensors_have_the_results(server):
    import safetensors_reader
    blob = server.ask("/analyze", **ROPE, format="safetensors").body
    _, metadata, dtypes = safetensors_reader.loads(blob)
    plain = server.ask("/analyze", **ROPE).json()
    assert json.loads(metadata["results"]) == plain["results"] and json.loads(metadata["configs"]) == plain["configs"]
    assert set(dtypes.values()) == {"F64"}


def test_pictures_of_the_first(server):
    for fields in (dict(metrics=["similarity"], outputs=["gram"]), dict(metrics=["precision"]), {}):
        png = server.ask("/analyze", **ROPE, **fields, format="png")
        assert png.headers["Content-Type"] == "image/png" and png.body.startswith(b"\x89PNG")
        text = server.ask("/analyze", **ROPE, **fields, format="text")
        assert text.headers["Content-Type"].startswith("text/plain") and text.body.strip()


def test_digits_and_data(server):
    short = server.ask("/analyze", **ROPE, metrics=["step"], digits=3).body.decode()
    assert not re.search(r"\d\.\d{4,}", re.search(r'"data":\[[^\]]*\]', short)[0])
    bare = server.ask("/analyze", **ROPE, metrics=["step"], data=False).json()
    assert "data" not in bare["tensors"]["step.0"] and bare["tensors"]["step.0"]["shape"] == [11]
