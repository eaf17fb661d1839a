"""/diagnose: what it names, in the cases that people meet; the form of its answers; its laws. The score over random faults is
test_diagnose_score.py, refusals are test_diagnose_refused.py."""
import io
import json

import numpy as np
import pytest

import diagnosing
import truth
import truth.bias
import truth.segments
import wrong_bias
import wrong_ids
import wrong_rotary
import wrong_scaling
import wrong_sinusoid
from diagnosing import array, codes_of, diagnose, finding, named
from tensors import multipart, npy
from wrong_rotary import Rotary
from wrong_tensors import CODES, LD, Case, Tensor, draw, draw_pair, families, inline, rounded, send, unit

FOUR = {"max_error", "max_ulp", "equal", "first_bad"}
FITS = ("exact", "rounding")


# ---- The examples of the guide, and recipes of public code --------------------------------------------------------------------


def test_the_first_example(server):
    """q_out made with pairs of halves where neighbours are believed."""
    answer = diagnose(server, {"scheme": "rope", "layout": "interleaved", "offset": 5, "q": [[1, 2, 3, 4]],
                               "q_out": [[3.160435, 1.7975838, -0.107937716, 4.0949593]]})
    assert answer["explained"] is True and codes_of(answer) == ["layout_swapped"]
    assert finding(answer, "layout_swapped")["pointer"] == "/layout"
    first = answer["candidates"][0]
    assert first["config"]["layout"] == "half" and first["codes"] == ["layout_swapped"] and first["verdict"] in FITS
    bad = answer["belief"]["first_bad"]
    assert bad["output"] == "q_out" and bad["index"] == [0, 0]
    assert abs(bad["expected"] - 2.2015107) < 1e-6 and abs(bad["found"] - 3.160435) < 1e-6


def rotate_half(q, positions, base=10000.0):
    """As transformers' apply_rotary_pos_emb: x * cos + rotate_half(x) * sin, all in float32."""
    half = q.shape[-1] // 2
    inv_freq = np.float32(1) / np.float32(base) ** (np.arange(0, 2 * half, 2, dtype="f4") / np.float32(2 * half))
    angle = np.tile(np.asarray(positions, "f4")[:, None] * inv_freq, 2)
    turned_half = np.concatenate([-q[..., half:], q[..., :half]], -1)
    return q * np.cos(angle) + turned_half * np.sin(angle)


@pytest.mark.parametrize("shape", [(64,), (4, 64), (2, 4, 64)])
def test_transformers_halves_on_interleaved_weights(server, shape):
    q = np.random.default_rng(1).standard_normal((*shape[:-1], 12, shape[-1])).astype("f4")
    out = rotate_half(q, np.arange(12))
    answer = diagnose(server, {"scheme": "rope", "layout": "interleaved", "q": inline(Tensor(q, "f32")), "q_out": inline(Tensor(out, "f32"))})
    assert codes_of(answer) == ["layout_swapped"] and finding(answer, "layout_swapped")["pointer"] == "/layout"
    assert answer["candidates"][0]["config"]["layout"] == "half"


@pytest.mark.parametrize("offset", [0, 8192, 100000])
def test_float32_angles(server, offset):
    """torch's recipe: the belief is right, and a finding says from which position on the angles' rounding shows."""
    n, width, base = 32, 64, np.float32(500000.0)
    inv_freq = np.float32(1) / base ** (np.arange(0, width, 2, dtype="f4") / np.float32(width))
    angle = np.arange(offset, offset + n, dtype="f4")[:, None] * inv_freq
    tables = {"cos": np.cos(angle), "sin": np.sin(angle)}
    answer = diagnose(server, {"scheme": "rope", "head_dim": width, "base": 5e5, "len": n, "offset": offset,
                               **{name: inline(Tensor(a, "f32")) for name, a in tables.items()}})
    first = answer["candidates"][0]
    assert answer["explained"] and first["verdict"] == "rounding" and first["codes"] in ([], ["angles_f32"])
    found = finding(answer, "angles_f32")
    exact = np.arange(offset, offset + n)[:, None].astype(LD) * wrong_scaling.powers(5e5, width)
    beyond = np.maximum(*(np.abs(tables[name] - rounded(f(exact), "f32")).max(1) for name, f in (("cos", np.cos), ("sin", np.sin))))
    first, last = (offset + np.flatnonzero(beyond > k * unit("f32"))[0] for k in (3, 5))  # 4uS, of values rounded or not
    assert first <= found["position"] <= last


SECONDS = [{"type": "text", "len": 4}, {"type": "video", "grid": [4, 4, 6], "second_per_grid": 1.5}, {"type": "text", "len": 3}]


@pytest.mark.parametrize("rules, code", [
    ({"position_style": "qwen2_vl"}, "position_style_other"), ({"position_style": "qwen2_5_vl_int_seconds"}, "position_style_other"),
    ({"position_style": "qwen2_5_vl", "tokens_per_second": 4}, "tokens_per_second_other")])
@pytest.mark.parametrize("sent", ["position_ids", "q_out"])
def test_qwens_temporal_rules(server, rules, code, sent):
    ids, _ = truth.segments.positions(SECONDS, **rules)
    belief = {"scheme": "rope", "head_dim": 32, "segments": SECONDS, "position_style": "qwen2_5_vl", "layout": "half"}
    if sent == "position_ids":
        tensors = {"position_ids": inline(Tensor(ids.astype("i8"), "i64"))}
    else:
        q = np.random.default_rng(2).standard_normal((2, ids.shape[1], 32)).astype("f4")
        model = Rotary("q", "f32", ids, {}, 32, 32, layout="half", channels="mrope", section=(4, 6, 6))
        tensors = {"q": inline(Tensor(q, "f32")), "q_out": inline(Tensor(rounded(model.values(q)["q_out"], "f32"), "f32"))}
    answer = diagnose(server, {**belief, **tensors})
    assert codes_of(answer) == [code], answer["findings"]
    pointer = {"position_style_other": "/position_style", "tokens_per_second_other": "/tokens_per_second"}[code]
    assert finding(answer, code)["pointer"] == pointer
    config = answer["candidates"][0]["config"]
    assert all(config[name] == value for name, value in rules.items()), config


@pytest.mark.parametrize("heads", [6, 12, 20])
def test_alibi_slopes_of_a_count_that_is_no_power_of_two(server, heads):
    """The formula for powers of two, applied to another count."""
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    rel = np.arange(7)[None, :] - np.arange(7)[:, None]
    bias = np.where(rel <= 0, slopes[:, None, None] * rel, -np.inf)
    answer = diagnose(server, {"scheme": "alibi", "num_heads": heads, "causal": True, "bias": inline(Tensor(rounded(bias, "f32"), "f32"))})
    assert named(answer) == {"slopes_other"}
    np.testing.assert_allclose(answer["candidates"][0]["config"]["slopes"], slopes, rtol=1e-7)


@pytest.mark.parametrize("sent", ["buckets", "bias"])
def test_t5_bidirectional_buckets_in_a_decoder(server, sent):
    rel = np.arange(40)[None, :] - np.arange(40)[:, None]
    index = np.vectorize(lambda d: truth.bias.t5_bucket(int(d), bidirectional=True))(rel)
    belief = {"scheme": "t5", "bidirectional": False, "causal": sent == "bias", "num_heads": 4}
    if sent == "buckets":
        tensors = {"buckets": Tensor(index, "i64")}
    else:
        table = np.random.default_rng(3).standard_normal((32, 4)).astype("f4")
        tensors = {"table": Tensor(table, "f32"), "bias": Tensor(np.where(rel <= 0, table.T[:, index], -np.inf), "f32")}
    answer = diagnose(server, {**belief, **{name: inline(t) for name, t in tensors.items()}})
    assert codes_of(answer) == ["bidirectional_other"] and finding(answer, "bidirectional_other")["pointer"] == "/bidirectional"


# ---- Right tensors, noise, garbage --------------------------------------------------------------------------------------------

RIGHT = [(family, code) for family, codes in (
    (wrong_rotary, ["off_by_one", "rotary_dim_other", "scaling_missing", "section_order", "base_other"]),
    (wrong_sinusoid, ["odd_other", "freq_shift_other", "style_other"]),
    (wrong_bias, ["form_other", "max_distance_other", "kind_other", "window_other", "direction_reversed"]),
    (wrong_ids, ["off_by_one", "position_style_other"])) for code in codes]


def right_case(family, code, seed):
    """A belief and its tensor."""
    rng = np.random.default_rng([seed, CODES.index(code), 5])
    right = family.believe(rng, code)
    data = right.data(rng)
    tensors = send(right.values(data), right.dtype)
    return Case((), frozenset(), right.request(), {**right.sent(data), **tensors}, right, right, data)


@pytest.mark.parametrize("family, code", RIGHT, ids=lambda x: x if isinstance(x, str) else x.__name__)
@pytest.mark.parametrize("seed", range(4))
def test_right_tensors_are_as_believed(server, family, code, seed):
    case = right_case(family, code, seed)
    answer = diagnosing.ask(server, case)
    assert answer["explained"] and "as_believed" in codes_of(answer) and not named(answer), (answer["findings"], case.belief)
    first = answer["candidates"][0]
    assert first["verdict"] == "exact" and first["codes"] == [] and first["transforms"] == []
    assert answer["belief"]["first_bad"] is None and answer["ruled_out"] == []
    assert diagnosing.unlike(server, first, case.tensors, case.wrong.tolerance) is None


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_half_precision_is_no_fault(server, dtype, layout):
    """Tables, products and sums each rounded to the dtype, as a model in half precision rotates its heads."""
    rng = np.random.default_rng(8)
    model = Rotary("q", dtype, np.arange(20.0)[None], {"len": 20}, 32, 32, layout=layout, q_shape=(2,))
    q = model.data(rng)
    cos, sin = (rounded(x, dtype) for x in model.tables())
    first, second = truth.pairs(32, layout)
    out = np.empty_like(q)
    out[..., first] = rounded(rounded(q[..., first] * cos, dtype) - rounded(q[..., second] * sin, dtype), dtype)
    out[..., second] = rounded(rounded(q[..., second] * cos, dtype) + rounded(q[..., first] * sin, dtype), dtype)
    answer = diagnose(server, {**model.request(), "q": inline(Tensor(q, dtype)), "q_out": inline(Tensor(out, dtype))})
    assert answer["explained"] and not named(answer)
    assert answer["candidates"][0]["verdict"] in FITS and answer["candidates"][0]["codes"] == []


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("scheme", ["rope", "sinusoidal"])
def test_a_table_of_another_dtype_is_no_fault(server, dtype, scheme):
    """float32 numbers that were rounded to half precision before."""
    if scheme == "rope":
        model = Rotary("pairs", dtype, np.arange(30.0)[None], {"len": 30}, 32, 32)
    else:
        model = wrong_sinusoid.Sinusoid(dtype, np.arange(30.0)[None], {"len": 30}, 32)
    tensors = {name: inline(t._replace(dtype="f32")) for name, t in send(model.values(None), dtype).items()}
    answer = diagnose(server, {**model.request(), **tensors})
    assert "table_dtype" in codes_of(answer) and not named(answer) and answer["explained"]


GARBAGE = {
    "rotary": ({"scheme": "rope", "head_dim": 32, "len": 9}, {"cos": (9, 16), "sin": (9, 16)}),
    "rotated": ({"scheme": "rope", "head_dim": 32}, {"q": (2, 9, 32), "q_out": (2, 9, 32)}),
    "encoding": ({"scheme": "sinusoidal"}, {"encoding": (9, 24)}),
    "bias": ({"scheme": "alibi"}, {"bias": (4, 6, 6)}),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_not_explained(server, name):
    belief, shapes = GARBAGE[name]
    rng = np.random.default_rng(4)
    answer = diagnose(server, {**belief, **{k: inline(Tensor(rounded(rng.standard_normal(s), "f32"), "f32")) for k, s in shapes.items()}})
    assert answer["explained"] is False and codes_of(answer) == ["unexplained"]
    assert "nearest" in answer["findings"][0]
    kinds = [entry["kind"] for entry in answer["ruled_out"]]
    assert len(kinds) == len(set(kinds)) >= 3, kinds
    for entry in answer["ruled_out"]:
        assert set(entry) == {"kind", "code", "max_error"} and entry["max_error"] > 0.1
    assert answer["searched"] > 50
    assert all(c["verdict"] in ("near", "none") for c in answer["candidates"])


def test_infinities_elsewhere_fit_nothing(server):
    bias = np.zeros((2, 4, 4))
    bias[1, 2, 3] = -np.inf
    answer = diagnose(server, {"scheme": "alibi", "bias": inline(Tensor(bias, "f32"))})
    assert not answer["explained"] and all(c["verdict"] == "none" for c in answer["candidates"])


def test_rows_that_are_scaled_are_predicted_again(server):
    """xPos scales rows; hypotheses with other widths of the head in between do not spoil the scales that are kept."""
    q = np.random.default_rng(3).normal(size=(246, 64)).round(3)
    config = {"scheme": "xpos", "head_dim": 64, "layout": "interleaved"}
    out = server.ask("/rotate", **config, q=q.tolist(), outputs=["q"]).json()["tensors"]["q"]["data"]
    answer = diagnose(server, {**config, "scaling": {"type": "linear", "factor": 4}, "q": q.tolist(), "q_out": out})
    assert answer["explained"] and codes_of(answer)[0] == "scaling_missing", answer["findings"]


# ---- Without a belief ---------------------------------------------------------------------------------------------------------

LONE = {
    "sinusoid": wrong_sinusoid.Sinusoid("f32", np.arange(20.0)[None], {}, 48, layout="half", base=1e4),
    "rope": Rotary("pairs", "f32", np.arange(20.0)[None], {}, 64, 64, base=5e5),
    "rope, expanded": Rotary("expanded", "f32", np.arange(20.0)[None], {}, 64, 64, layout="half", base=5e5),
    "alibi": wrong_bias.Bias("alibi", "bias", "f32", 8, 9, 9, causal=True),
    "t5": wrong_bias.Bias("t5", "buckets", "i64", 8, 40, 40, own={"bidirectional": False}),
    "ids": wrong_ids.TextIds(7 + np.arange(12)[None], {}),
}


@pytest.mark.parametrize("name", LONE)
def test_a_lone_tensor_is_identified(server, name):
    model = LONE[name]
    tensors = send(model.values(None), model.dtype)
    answer = diagnose(server, {name: inline(t) for name, t in tensors.items()})
    assert answer["explained"] and "identified" in codes_of(answer), answer["findings"]
    first = answer["candidates"][0]
    assert diagnosing.unlike(server, first, tensors, model.tolerance) is None


def llama3(w, factor=8.0, low=1.0, high=4.0, length=8192):
    """Llama 3.1's scaling of frequencies, by the wavelength."""
    turns = length * w / (2 * np.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return smooth * w + (1 - smooth) * w / factor


SCALED = {
    "llama3": (5e5, llama3, {"type": "llama3", "factor": 8}),
    "linear": (1e4, lambda w: w / 8, {"type": "linear", "factor": 8}),
    "plain": (7e4, lambda w: w, None),
}


def expanded(base, scale, layout, n=24, first=0, width=128):
    """cos, sin [n, width] of every channel, in float32."""
    angle = np.outer(first + np.arange(n), scale(base ** (-np.arange(0, width, 2) / width)))
    angle = np.concatenate([angle, angle], -1) if layout == "half" else np.repeat(angle, 2, -1)
    return {"cos": np.cos(angle).astype("f4"), "sin": np.sin(angle).astype("f4")}


@pytest.mark.parametrize("first", [0, 4096])
@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("name", SCALED)
def test_an_expanded_table_tells_its_layout(server, name, layout, first):
    """So base and scaling are found without a belief, as those of pairs are."""
    base, scale, scaling = SCALED[name]
    tables = {key: a.tolist() for key, a in expanded(base, scale, layout, first=first).items()}
    answer = diagnose(server, {**tables, "offset": first})
    config = answer["candidates"][0]["config"]
    assert answer["explained"] and codes_of(answer)[0] == "identified" and config["layout"] == layout, answer["findings"]
    assert config["base"] == base and (not scaling or scaling.items() <= config["scaling"].items()), config


def test_a_layout_that_is_stated_is_still_judged(server):
    tables = {key: a.tolist() for key, a in expanded(1e4, lambda w: w, "half").items()}
    assert codes_of(diagnose(server, {**tables, "scheme": "rope", "layout": "interleaved"}))[0] == "layout_swapped"
    assert codes_of(diagnose(server, {**tables, "scheme": "rope", "layout": "half"}))[0] == "as_believed"
    assert codes_of(diagnose(server, {**tables, "scheme": "rope"}))[0] == "as_believed"


@pytest.mark.parametrize("n, base", [(3000, 12345.6), (3000, 7e5), (700, 31.5)])
def test_a_base_is_found_in_long_tables(server, n, base):
    angle = np.outer(np.arange(n), base ** (-np.arange(0, 128, 2) / 128))
    body = multipart(request="{}", cos=npy(np.cos(angle).astype("f4")), sin=npy(np.sin(angle).astype("f4")))
    answer = diagnose(server, *body)
    assert answer["explained"] and answer["candidates"][0]["config"]["base"] == base, answer["candidates"][0]


def test_presets_give_the_tensor(server):
    """Llama 3.1 is found from its tables alone, and each preset that is listed gives them."""
    scaling = wrong_scaling.PRESET_SCALINGS[128][0]
    model = Rotary("pairs", "f32", np.arange(48.0)[None], {}, 128, 128, base=5e5, scaling=scaling)
    tensors = send(model.values(None), "f32")
    answer = diagnose(server, {name: inline(t) for name, t in tensors.items()})
    first = answer["candidates"][0]
    assert "llama-3.1" in first["presets"], first
    for preset in first["presets"]:
        candidate = {**first, "config": {"preset": preset}}
        assert diagnosing.unlike(server, candidate, tensors, model.tolerance) is None, preset
    listed = [p["name"] for p in server.get("/presets").json()["presets"]]
    assert set(first["presets"]) <= set(listed)


def test_other_presets_are_not_listed(server):
    model = Rotary("pairs", "f32", np.arange(48.0)[None], {}, 128, 128, base=123450.0)
    answer = diagnose(server, {name: inline(t) for name, t in send(model.values(None), "f32").items()})
    assert answer["explained"] and answer["candidates"][0]["presets"] == []
    assert abs(answer["candidates"][0]["config"]["base"] - 123450) < 1


# ---- Lists, triples -----------------------------------------------------------------------------------------------------------


def test_positions_are_read_from_the_phases(server):
    at = np.random.default_rng(6).permutation(200)[:14].astype(float)
    model = Rotary("pairs", "f32", at[None], {}, 64, 64)
    tensors = send(model.values(None), "f32")
    answer = diagnose(server, {"scheme": "rope", "head_dim": 64, "len": 14, **{k: inline(t) for k, t in tensors.items()}})
    assert codes_of(answer) == ["positions_other"]
    assert np.array_equal(diagnosing.line({**answer["candidates"][0]["sequence"]}), at)


TRIPLES = {
    "q_out": (Rotary("q", "f32", 3.0 + np.arange(12)[None], {}, 32, 32, layout="half", base=5e5, q_shape=(2,)),
              {"scheme": "rope", "offset": 2}, {"layout_swapped", "off_by_one", "base_other"}),
    "reversed": (Rotary("q", "f32", 0.0 + np.arange(12)[None], {}, 32, 32, layout="half", direction=-1, base=1e6, q_shape=(2,)),
                 {"scheme": "rope"}, {"layout_swapped", "direction_reversed", "base_other"}),
    "sinusoid": (wrong_sinusoid.Sinusoid("f32", 1.0 + np.arange(12)[None], {}, 32, layout="half", flip=True, base=1e4),
                 {"scheme": "sinusoidal"}, {"layout_swapped", "sin_cos_swapped", "off_by_one"}),
}


@pytest.mark.parametrize("name", TRIPLES)
def test_three_faults(server, name):
    model, belief, codes = TRIPLES[name]
    q = model.data(np.random.default_rng(7))
    tensors = {**model.sent(q), **send(model.values(q), "f32")}
    answer = diagnose(server, {**belief, **{k: inline(t) for k, t in tensors.items()}})
    assert answer["explained"] and named(answer) == codes, (answer["findings"], answer["searched"])
    assert diagnosing.unlike(server, answer["candidates"][0], tensors, model.tolerance) is None


# ---- Undecided ----------------------------------------------------------------------------------------------------------------


LADDER = [*range(64), *(2 ** k for k in range(6, 41))]  # positions that are asked about, in turn


def row_at(candidate, position):
    """cos, sin of a candidate's configuration at one position, by the tests' own formulas."""
    config = candidate["config"]
    scaling = config.get("scaling", {})
    w = np.array(config["inv_freq"], LD) if "inv_freq" in config else wrong_scaling.stretched(scaling, config["base"], config["rotary_dim"], position + 1)
    angle = LD(position) * w * config["direction"]
    return np.concatenate([np.cos(angle), np.sin(angle)]) * config["attention_factor"]


def apart(pair, position):
    return float(np.abs(row_at(pair[0], position) - row_at(pair[1], position)).max())


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_what_few_rows_cannot_tell_is_undecided(server, dtype):
    """One row at position 0 has the same numbers under all scalings. The named position tells them apart."""
    model = Rotary("pairs", dtype, np.arange(1.0)[None], {}, 64, 64, base=1e4)
    tensors = send(model.values(None), dtype)
    answer = diagnose(server, {"scheme": "rope", "head_dim": 64, **{k: inline(t) for k, t in tensors.items()}})
    assert answer["explained"] and answer["undecided"] is not None, answer
    assert "undecided" in codes_of(answer)
    one, other = answer["undecided"]["candidates"]
    assert one == 0 < other < len(answer["candidates"])
    position = answer["undecided"]["decide"]["position"]
    pair = [answer["candidates"][i] for i in (one, other)]
    for candidate in pair:
        assert candidate["verdict"] in FITS
        assert diagnosing.unlike(server, candidate, tensors, model.tolerance) is None
    bound = 16 * unit(dtype) * max(float(np.abs(t.values).max()) for t in tensors.values())
    assert apart(pair, position) >= 0.99 * bound
    assert all(apart(pair, p) <= 1.01 * bound for p in LADDER[:LADDER.index(position)]), "an earlier position decides as well"


def test_one_more_row_decides(server):
    """With the named position among the rows, one of the two is left out or the question is about others."""
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}

    def answer_for(positions):
        model = Rotary("pairs", "f16", np.array([positions], float), {}, 64, 64, base=1e4, scaling=scaling)
        tensors = send(model.values(None), "f16")
        return diagnose(server, {"scheme": "rope", "head_dim": 64, "positions": positions, **{k: inline(t) for k, t in tensors.items()}})

    positions, answer = [0, 1, 2], None
    for _ in range(12):
        answer = answer_for(positions)
        assert answer["explained"]
        if not answer["undecided"]:
            break
        position = answer["undecided"]["decide"]["position"]
        assert position not in positions
        positions = positions + [position]
    assert answer["undecided"] is None, positions
    config = answer["candidates"][0]["config"]
    w = wrong_scaling.stretched(config["scaling"], config["base"], 64, 1)
    np.testing.assert_allclose(w.astype(float), wrong_scaling.stretched(scaling, 1e4, 64, 1).astype(float), rtol=1e-9)


# ---- Every way in -------------------------------------------------------------------------------------------------------------


def savez(arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def as_query(belief):
    from urllib.parse import urlencode
    return "/diagnose?" + urlencode({k: v if isinstance(v, str) else json.dumps(v) for k, v in belief.items()})


@pytest.mark.parametrize("code", ["layout_swapped", "base_other", "form_other", "position_style_other", "odd_other"])
def test_every_way_in_gives_one_answer(server, code):
    case = next(c for c in (draw(code, seed) for seed in range(40)) if all(t.dtype in ("f32", "f64", "i64") for t in c.tensors.values()))
    plain = diagnosing.ask(server, case)
    for body, headers in (diagnosing.as_files(case), diagnosing.as_safetensors(case)):
        assert diagnose(server, body, headers) == plain
    arrays = {name: array(t) for name, t in case.tensors.items()}
    response = server.post(as_query(case.belief), savez(arrays), {"Content-Type": "application/zip"})
    assert response.status == 200 and response.json() == plain


@pytest.mark.parametrize("code, name", [("odd_other", "encoding"), ("form_other", "bias"), ("position_style_other", "position_ids"),
                                        ("off_by_one", "position_ids")])
def test_a_single_file_is_named_by_its_kind(server, code, name):
    """One .npy: `encoding`; with three axes `bias`; of integers `position_ids`."""
    cases = (draw(code, seed, family) for seed in range(40) for family in families(code))
    case = next(c for c in cases if set(c.tensors) == {name} and c.tensors[name].dtype in ("f32", "f64", "i64"))
    response = server.post(as_query(case.belief), npy(array(case.tensors[name])), {"Content-Type": "application/x-npy"})
    assert response.status == 200, response
    assert response.json() == diagnosing.ask(server, case)


def test_bf16_comes_as_safetensors(server):
    case = next(c for c in (draw("base_other", seed) for seed in range(60)) if any(t.dtype == "bf16" for t in c.tensors.values()))
    body, headers = diagnosing.as_safetensors(case)
    assert diagnose(server, body, headers) == diagnosing.ask(server, case)


def test_the_same_request_gives_the_same_bytes(server):
    for seed in range(3):
        body = draw_pair(seed).body()
        assert server.post("/diagnose", body).body == server.post("/diagnose", body).body


# ---- Laws of the answer -------------------------------------------------------------------------------------------------------

SAMPLE = ["layout_swapped", "sin_cos_swapped", "off_by_one", "rotary_offset_other", "scaled", "base_other", "scaling_other", "inv_freq_bf16",
          "section_order", "exponent_per_column", "slopes_other", "mask_value", "alignment_other", "merge_size_other", "zero_row"]
SEQUENCE_POINTERS = {"/" + name for name in diagnosing.SEQUENCE}
EXACTLY = {"layout_swapped": "/layout", "rotary_offset_other": "/rotary_offset", "base_other": "/base", "section_order": "/mrope_section",
           "rotary_dim_other": "/rotary_dim", "odd_other": "/odd", "freq_shift_other": "/freq_shift", "form_other": "/form"}


@pytest.mark.parametrize("code", SAMPLE)
def test_laws(server, code):
    case = draw(code, 3)
    answer = diagnosing.ask(server, case)
    check_form(answer)
    check_order(answer)
    for found in answer["findings"]:
        check_finding(found, case, answer)
    order = [c for c in codes_of(answer) if c in CODES]
    assert order == sorted(order, key=CODES.index)
    if answer["explained"]:
        assert set(answer["candidates"][0]["codes"]) <= set(codes_of(answer))


def check_form(answer):
    assert {"explained", "belief", "candidates", "findings", "undecided", "ruled_out", "searched"} <= set(answer)
    assert 1 <= answer["searched"] <= 20000
    assert answer["explained"] <= len(answer["candidates"]) <= 5
    assert answer["belief"] is None or FOUR <= set(answer["belief"])
    for candidate in answer["candidates"]:
        assert {"config", "sequence", "transforms", "codes", "presets", "verdict"} | FOUR <= set(candidate)
        assert candidate["verdict"] in ("exact", "rounding", "near", "none")
        assert "scheme" in candidate["config"]
        assert all("name" in t for t in candidate["transforms"])
    assert answer["explained"] == any(c["verdict"] in FITS for c in answer["candidates"])


def check_order(answer):
    """What fits, near, none; then what costs less; then exact before rounding. Slopes may be a known list or a fitted one: left out."""
    fit = {"exact": 0, "rounding": 0, "near": 1, "none": 2}
    keys = [(fit[c["verdict"]], cost(c), c["verdict"] == "rounding") for c in answer["candidates"] if "slopes_other" not in c["codes"]]
    assert keys == sorted(keys), [(c["verdict"], c["codes"]) for c in answer["candidates"]]


def cost(candidate):
    """One a fault, three for a list that was fitted."""
    return sum(3 if code == "positions_other" else 1 for code in candidate["codes"])


def check_finding(found, case, answer):
    assert {"code", "pointer", "detail", "detail_zh", "found", "believed"} <= set(found), found
    assert found["detail"].strip() and any("一" <= c <= "鿿" for c in found["detail_zh"]), found
    assert not any("一" <= c <= "鿿" for c in found["detail"]) and "{" not in found["detail"] + found["detail_zh"]
    head = "/" + found["pointer"].split("/")[1] if found["pointer"] else ""
    known = {"/" + name for c in answer["candidates"][:1] for name in c["config"]} | SEQUENCE_POINTERS | {"/" + n for n in case.tensors}
    assert head in known | {"/" + name for name in case.belief} | {""}, found
    if found["code"] in EXACTLY:
        assert found["pointer"] == EXACTLY[found["code"]], found
    if found["code"] in CODES:
        assert found["pointer"]


def test_texts_in_chinese(server):
    case = draw("layout_swapped", 2)
    english = diagnosing.ask(server, case)
    response = server.post("/diagnose", {**case.body(), "lang": "zh"})
    assert response.status == 200 and response.headers["Content-Language"] == "zh"
    chinese = response.json()
    for one, other in zip(english["findings"], chinese["findings"], strict=True):
        assert other["detail"] == one["detail_zh"] and one["code"] == other["code"]
    assert english["candidates"] == chinese["candidates"]
    accepted = server.post("/diagnose", case.body(), {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"})
    assert accepted.json()["findings"][0]["detail"] == english["findings"][0]["detail_zh"]
    assert "accept-language" in accepted.headers.get("Vary", "").lower()


# ---- Verdicts and figures, computed again -------------------------------------------------------------------------------------


def figures(candidate, tensor, tolerance):
    """max_error, max_ulp, share of equal numbers, index of the first outside `exact`."""
    steps = np.abs(tensor.view("i4").astype("i8") - candidate.view("i4").astype("i8"))
    bad = np.argwhere(steps > 1)
    return np.abs(tensor.astype(float) - candidate).max(), steps.max(), (steps == 0).mean(), bad[0].tolist() if len(bad) else None


@pytest.mark.parametrize("steps, verdict", [(0, "exact"), (1, "exact"), (2, "rounding"), (40, "near")])
def test_figures_of_a_table(server, steps, verdict):
    """One number of cos is moved by some steps of float32."""
    model = Rotary("pairs", "f32", np.arange(12.0)[None], {"len": 12}, 32, 32)
    right = {name: t.values.astype("f4") for name, t in send(model.values(None), "f32").items()}
    sent = {name: a.copy() for name, a in right.items()}
    assert right["cos"][3, 7] > 0.5
    sent["cos"].view("i4")[3, 7] -= steps
    answer = diagnose(server, {**model.request(), **{k: inline(Tensor(a, "f32")) for k, a in sent.items()}})
    errors, most, equal, first = figures(np.concatenate([right["cos"].ravel(), right["sin"].ravel()]),
                                         np.concatenate([sent["cos"].ravel(), sent["sin"].ravel()]), 0)
    found = answer["belief"]
    assert abs(found["max_error"] - errors) <= 1e-12 and found["max_ulp"] == most and abs(found["equal"] - equal) < 1e-12
    if first is None:
        assert found["first_bad"] is None
    else:
        bad = found["first_bad"]
        assert (bad["output"], bad["index"]) == ("cos", [3, 7])
        assert (np.float32(bad["found"]), np.float32(bad["expected"])) == (sent["cos"][3, 7], right["cos"][3, 7])
    first = answer["candidates"][0]
    assert first["verdict"] == verdict and (first["codes"] == [] or verdict == "near")


@pytest.mark.parametrize("share, verdict", [(0.03, "near"), (0.2, "none")])
def test_near_is_an_error_of_five_per_cent(server, share, verdict):
    model = wrong_sinusoid.Sinusoid("f32", np.arange(30.0)[None], {"len": 30}, 32)
    right = model.values(None)["encoding"].astype(float)
    noise = np.random.default_rng(9).standard_normal(right.shape) * share * np.sqrt((right ** 2).mean())
    answer = diagnose(server, {**model.request(), "encoding": inline(Tensor(rounded(right + noise, "f32"), "f32"))})
    assert not answer["explained"] and all(c["verdict"] == verdict for c in answer["candidates"])
    assert answer["candidates"] or verdict == "none"
    assert codes_of(answer) == ["unexplained"]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_rotation_is_exact_within_one_rounding(server, dtype):
    """Of the number, or of float32's products: 6·2^-24 of the length of its own pair. Ten times as much of one number is no rounding, though
    another pair is a thousand times as long."""
    model = Rotary("q", dtype, np.arange(8.0)[None], {"len": 8}, 16, 16)
    q = model.data(np.random.default_rng(10))
    q[..., 3] *= 1000
    out = rounded(model.values(q)["q_out"], dtype)
    i = np.unravel_index(5, out.shape)
    length = np.abs(out[i[:-1]]).min() + np.abs(q[i])
    for units, verdicts in ((0, {"exact"}), (1 if dtype == "bf16" else 2, {"exact"}), (60, {"near", "none"})):
        sent = out.copy()
        sent[i] += units * unit(dtype) * (length if units > 2 else np.abs(out[i]))
        answer = diagnose(server, {**model.request(), "q": inline(Tensor(rounded(q, dtype), dtype)), "q_out": inline(Tensor(rounded(sent, dtype), dtype))})
        assert answer["candidates"][0]["verdict"] in verdicts, (units, answer["candidates"][0])


# ---- Sentences ----------------------------------------------------------------------------------------------------------------


def test_a_default_is_named_by_its_value(server):
    """Tables of positions 1 to 8, and no offset in the request: the sentence says 0, not null."""
    angles = np.outer(np.arange(1.0, 9), 1e4 ** (-np.arange(8) / 8))
    answer = diagnose(server, {"scheme": "rope", "head_dim": 16, "cos": inline(Tensor(np.cos(angles), "f32")), "sin": inline(Tensor(np.sin(angles), "f32"))})
    finding = answer["findings"][0]
    assert (finding["code"], finding["found"], finding["believed"]) == ("off_by_one", 1, 0)
    assert "null" not in finding["detail"] + finding["detail_zh"] and "0" in finding["detail"]


def test_a_factor_of_the_scaling_is_named_by_its_value(server):
    """YaRN's tables without 0.1·ln(factor) + 1, which the request gives by its scaling alone."""
    yarn = {"scheme": "rope", "head_dim": 64, "len": 64, "scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}}
    factor = 0.1 * np.log(4.0) + 1
    answer = server.post("/encode", {**yarn, "dtype": "f64"}).json()["tensors"]
    tables = {name: inline(Tensor(np.array(answer[name]["data"]).reshape(answer[name]["shape"]) / factor, "f32")) for name in ("cos", "sin")}
    found = finding(diagnose(server, {**{key: yarn[key] for key in ("scheme", "head_dim", "scaling")}, **tables}), "attention_factor_missing")
    assert found["found"] == 1 and abs(found["believed"] - factor) < 1e-12, found
    assert "null" not in found["detail"] + found["detail_zh"] and "1.138" in found["detail"], found


@pytest.mark.parametrize("hides, words", [(lambda i, j: j > i, "after the query"), (lambda i, j: (j > i + 2) | (j < i - 2), "window"),
                                          (lambda i, j: (j == 5) | (i < 0), "for every query")])
def test_the_kind_of_an_extra_mask_is_named(server, hides, words):
    i, j = np.mgrid[:12, :12]
    slopes = 2.0 ** -np.arange(1, 9)
    bias = np.where(hides(i, j), -np.inf, -slopes[:, None, None] * abs(i - j))
    answer = diagnose(server, {"scheme": "alibi", "bias": inline(Tensor(bias, "f32"))})
    found = [f for f in answer["findings"] if f["code"] == "mask_extra"]
    assert found and words in found[0]["detail"], answer["findings"]


# ---- Far positions and large numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [150000, 200000, 1000000, 3000000])
def test_a_far_offset_is_fitted(server, offset):
    """float64 tables of a long context, where a request has forgotten its offset."""
    angles = np.outer(offset + np.arange(64.0), 1e4 ** (-np.arange(64) / 64))
    answer = diagnose(server, {"scheme": "rope", "head_dim": 128, "cos": inline(Tensor(np.cos(angles), "f32")), "sin": inline(Tensor(np.sin(angles), "f32"))})
    assert answer["candidates"][0]["codes"] == ["offset_other"] and answer["candidates"][0]["sequence"]["offset"] == offset


def test_numbers_whose_squares_overflow(server):
    table = [[1e200, 2e200], [3e200, 4e200]]
    f64 = {"dtype": "f64", "shape": [2, 2], "data": table}
    assert diagnose(server, {"scheme": "learned", "table": f64, "encoding": f64})["explained"]
