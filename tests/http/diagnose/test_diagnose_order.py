"""Which of several explanations with the same numbers /diagnose names first, and which others it lists: `also` of a candidate. Tensors are
computed by NumPy in float64 and rounded to float32, or with angles computed in float32."""
import numpy as np
import pytest

import truth
from asking import inline
from diagnosing import diagnose, fetch

N, R = 64, 128
LLAMA_3_1 = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}


def ladder(r=R, base=1e4, over=None):
    return float(base) ** (-np.arange(0, r, 2) / (over or r))


def llama3(w, factor=8, low=1, high=4, length=8192):
    """The published rule: long wavelengths are divided, short ones stay, those between are blended."""
    turns = length * w / (2 * np.pi)
    blend = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - blend) * w / factor + blend * w


def at(p, w, single=False):
    """Angles, rounded to float32 as frameworks compute them if single."""
    return np.outer(p, w) if not single else (np.asarray(p, "f4")[:, None] * w.astype("f4")).astype(float)


def tables(angle, belief, **more):
    return {"scheme": "rope", "head_dim": 2 * angle.shape[1], "cos": inline(np.cos(angle).astype("f4"), "f32"),
            "sin": inline(np.sin(angle).astype("f4"), "f32"), **belief, **more}


def rotated(angle, belief, **more):
    """Halves are pairs."""
    n, half = angle.shape
    x = np.random.default_rng(7).standard_normal((n, 2 * half)).astype("f4").astype(float)
    y = truth.turned(x, angle)
    return {"scheme": "rope", "layout": "half", "q": inline(x.astype("f4"), "f32"), "q_out": inline(y.astype("f4"), "f32"), **belief, **more}


def codes_of(answer):
    return [f["code"] for f in answer["findings"] if f["code"] not in ("angles_f32", "undecided")]


def others(answer, everywhere):
    return [tuple(other["codes"]) for other in answer["candidates"][0]["also"] if other["everywhere"] is everywhere]


P = np.arange(N)
W = ladder()
LINEAR = {"scaling": {"type": "linear", "factor": 4}, "base": 10000}
# sent as, angles, belief, first, everywhere in also
ROWS = {
    "linear 4 believed": (tables, (P, W), LINEAR, "scaling_missing", ["position_stride"]),
    "linear 4 believed of q": (rotated, (P, W), LINEAR, "scaling_missing", ["position_stride"]),
    "linear 4 for 2": (tables, (P, W / 2), LINEAR, "scaling_parameter", ["position_stride"]),
    "linear 4 for 2 of q": (rotated, (P, W / 2), LINEAR, "scaling_parameter", ["rotated_twice", "position_stride"]),
    "linear 4 unknown": (tables, (P, W / 4), {"base": 10000}, "scaling_other", ["positions_other"]),
    "twice in q": (rotated, (2 * P, W), {}, "rotated_twice", ["position_stride"]),
    "twice in tables": (tables, (2 * P, W), {}, "position_stride", ["rotated_twice"]),
    "twice from 5": (rotated, (2 * (P + 5), W), {"offset": 5}, "rotated_twice", ["position_stride"]),
    "twice from 5 in tables": (tables, (2 * (P + 5), W), {"offset": 5}, "rotated_twice", ["position_stride"]),
    "ntk 4 unknown": (tables, (P, ladder(base=1e4 * 4 ** (128 / 126))), {"base": 10000}, "scaling_other", ["base_other"]),
    "ntk 4 believed": (tables, (P, W), {"scaling": {"type": "ntk", "factor": 4}, "base": 10000}, "scaling_missing", ["base_other"]),
    "exponents over the head": (rotated, (P, ladder(32, over=64)), {"base": 10000}, "ladder_width", ["base_other"]),
    "sines negated": (tables, (P, -W), {}, "direction_reversed", ["positions_other"]),
    "sines negated in q": (rotated, (P, -W), {}, "direction_reversed", ["positions_other"]),
}


@pytest.mark.parametrize("single", [False, True], ids=["exact", "f32"])
@pytest.mark.parametrize("name", ROWS)
def test_the_least_surprising_is_named_and_the_others_are_listed(server, name, single):
    send, (p, w), belief, first, also = ROWS[name]
    angle = at(p, w, single)
    if name == "exponents over the head":  # channels 32 to 63 pass by
        body = rotated(angle, {"rotary_dim": 32, **belief})
        for tensor in ("q", "q_out"):
            whole = np.zeros((N, 64), "f4")
            whole[:, :32] = np.asarray(body[tensor]["data"]).reshape(N, 32)
            body[tensor] = inline(whole, "f32")
    else:
        body = send(angle, belief)
    answer = diagnose(server, body)
    assert codes_of(answer) == [first], (codes_of(answer), [c["codes"] for c in answer["candidates"]])
    assert answer["candidates"][0]["codes"] == [first]
    assert [c for c in others(answer, True) if c[0] in also] == [(c,) for c in also], answer["candidates"][0]["also"]


def test_bases_of_the_table(server):
    def base_of(body):
        also = diagnose(server, body)["candidates"][0]["also"]
        return next(other["config"]["base"] for other in also if other["codes"] == ["base_other"])
    for name, base in (("ntk 4 unknown", 40889.9424), ("ntk 4 believed", 2445.58916)):
        send, (p, w), belief = ROWS[name][:3]
        assert abs(base_of(send(at(p, w), belief)) / base - 1) < 3e-6


@pytest.mark.parametrize("single", [False, True], ids=["exact", "f32"])
@pytest.mark.parametrize("send", [tables, rotated])
def test_base_and_scaling_are_both_wrong(server, send, single):
    """The tables of Llama 2 where Llama 3.1 is believed, and other pairs."""
    for belief, w, codes in (({"preset": "llama-3.1"}, W, {"scaling_missing", "base_other"}),
                             ({"base": 500000, "scaling": LLAMA_3_1}, W / 4, {"scaling_other", "base_other"}),
                             ({"base": 500000, "scaling": {"type": "linear", "factor": 8}}, W / 4, {"scaling_parameter", "base_other"}),
                             ({"base": 500000, "scaling": LLAMA_3_1}, ladder(base=30527), {"scaling_missing", "base_other"})):
        answer = diagnose(server, send(at(P, w, single), {"scheme": "rope", **belief}))
        assert set(codes_of(answer)) == codes, (belief, answer["findings"])
        assert answer["candidates"][0]["also"] == [] or "preset" not in belief
        found = answer["candidates"][0]["config"]["base"]
        assert found == (30527 if w[1] < W[1] and w[0] == 1 else 10000)


@pytest.mark.parametrize("send", [tables, rotated])
def test_a_base_alone_is_no_other_scaling(server, send):
    """A model that has the scaling too brings its base; only the base differs."""
    answer = diagnose(server, send(at(P, llama3(ladder(base=5e5))), {"base": 10000, "scaling": LLAMA_3_1}))
    assert codes_of(answer) == ["base_other"]
    first = answer["findings"][0]
    assert (first["pointer"], first["found"], first["believed"]) == ("/base", 500000, 10000)


@pytest.mark.parametrize("send", [tables, rotated])
def test_a_fitted_base_of_many_digits(server, send):
    """A ladder whose base no decimal of six digits gives: dynamic NTK at a length."""
    p = np.arange(2048)
    base = 1e4 * (3.0 * 2048 / 1536 - 2) ** (128 / 126)
    answer = diagnose(server, send(at(p, ladder(base=base)), {"base": 500000}))
    assert codes_of(answer) == ["base_other"]
    assert abs(answer["candidates"][0]["config"]["base"] / base - 1) < 1e-6


def test_one_row_is_equal_here_only(server):
    def ask(p, offset, send=tables):
        return diagnose(server, send(at([p], W), {"offset": offset, "len": 1}))
    answer = ask(0, 8)
    assert answer["candidates"][0]["codes"] == ["offset_other"] and ("not_rotated",) in others(answer, False)
    for send in (tables, rotated):
        answer = ask(2, 1, send)
        assert answer["candidates"][0]["codes"] == ["off_by_one"] and ("rotated_twice",) in others(answer, False)
    assert ["rotated_twice"] in [c["codes"] for c in answer["candidates"]], "what is equal here only stays a candidate"


def test_slopes_halved(server):
    q = np.arange(12)
    bias = 2.0 ** -(np.arange(1, 9) + 1)[:, None, None] * -np.abs(q - q[:, None])
    answer = diagnose(server, {"scheme": "alibi", "bias": inline(bias.astype("f4"), "f32")})
    assert codes_of(answer) == ["slopes_other"] and ("scaled",) in others(answer, True)


def test_the_same_request_twice(server):
    """A shift by one is an offset, too."""
    answer = diagnose(server, tables(at(P + 1, W), {"scheme": "rope"}))
    assert codes_of(answer) == ["off_by_one"] and ("offset_other",) in others(answer, True)
    assert ["offset_other"] not in [c["codes"] for c in answer["candidates"]], "equal everywhere is one candidate"


def test_what_also_holds(server):
    answer = diagnose(server, tables(at(P, W), LINEAR))
    for candidate in answer["candidates"]:
        assert len(candidate["also"]) <= 8
        for other in candidate["also"]:
            assert list(other) == ["codes", "everywhere", "detail", "detail_zh", "config", "sequence", "transforms"]
            assert other["detail"] and other["detail_zh"] and other["codes"] != candidate["codes"]
    other = next(o for o in answer["candidates"][0]["also"] if o["codes"] == ["position_stride"])
    encoded = fetch(server, "/encode", {**other["config"], **other["sequence"]}, ["cos"])
    assert np.allclose(encoded["cos"], np.cos(at(P, W)), atol=1e-12)
    assert list(answer["candidates"][0])[-1] == "also"


def test_the_belief_has_no_others_and_neither_has_an_exchange(server):
    assert diagnose(server, tables(at(P, W / 4), LINEAR))["candidates"][0]["also"] == []
    body = tables(at(P, W), {})
    body["cos"], body["sin"] = body["sin"], body["cos"]
    answer = diagnose(server, body)
    assert codes_of(answer) == ["sin_cos_swapped"] and answer["candidates"][0]["also"] == []


@pytest.mark.parametrize("believed", [0, 1])
def test_freq_shift_with_float32_angles(server, believed):
    """Ladders over h and h - 1 pairs are those of another base, which no porter would have typed."""
    h, p = 32, np.arange(200)
    w = (np.exp(np.arange(h, dtype="f4") * np.float32(-np.log(1e4) / (h - (1 - believed))))).astype("f4")
    angle = (p[:, None].astype("f4") * w).astype(float)
    encoding = np.concatenate([np.sin(angle), np.cos(angle)], 1).astype("f4")
    answer = diagnose(server, {"scheme": "sinusoidal", "layout": "half", "freq_shift": believed, "encoding": inline(encoding, "f32")})
    assert codes_of(answer) == ["freq_shift_other"] and ("base_other",) in others(answer, True), answer["findings"]
