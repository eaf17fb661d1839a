"""Evidence of other arrangements: frequencies, divisors, angles, and cosines and sines in one tensor. Truth is float64 NumPy."""
import math
import json

import numpy as np
import pytest

import truth
import safetensors_reader
from diagnosing import codes_of, diagnose
from tensors import multipart, npy
from test_errors import check_problem
from wrong_tensors import Tensor, inline

LLAMA = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
ROPE = {"scheme": "rope", "head_dim": 32, "base": 5e5}


def ladder(r=32, base=5e5):
    return base ** (-np.arange(0, r, 2) / r)


def scaled(w):
    """Llama 3.1's rule."""
    turns = 8192 * w / (2 * np.pi)
    smooth = np.clip((turns - 1) / 3, 0, 1)
    return w * (smooth + (1 - smooth) / 8)


def angles(n=24, r=32, base=5e5, first=0):
    return np.outer(first + np.arange(float(n)), ladder(r, base))


def cis(a):
    return np.stack([np.cos(a), np.sin(a)], -1)


def matrices(a):
    return np.stack([np.stack([np.cos(a), -np.sin(a)], -1), np.stack([np.sin(a), np.cos(a)], -1)], -2)


ARRANGED = {
    # kind and shape: (name, the tensor of angles [n, C])
    "angles": ("angles", lambda a: a),
    "freqs": ("freqs", lambda a: a),
    "angles [n,1,1,C]": ("angles", lambda a: a[:, None, None]),
    "angles [1,n,C]": ("angles", lambda a: a[None]),
    "freqs_cis": ("freqs_cis", cis),
    "freqs_cis [1,n,1,C,2]": ("freqs_cis", lambda a: cis(a)[None, :, None]),
    "cos_sin [n,r]": ("cos_sin", lambda a: np.concatenate([np.cos(a), np.sin(a)], -1)),
    "cos_sin [2,n,C]": ("cos_sin", lambda a: np.stack([np.cos(a), np.sin(a)])),
    "cos_sin [n,C,2]": ("cos_sin", cis),
    "matrix": ("matrix", matrices),
    "matrix [1,n,C,2,2]": ("matrix", lambda a: matrices(a)[None]),
}


def asked(server, name, values, dtype="f32", **belief):
    return diagnose(server, {**belief, name: inline(Tensor(np.asarray(values), dtype))})


@pytest.mark.parametrize("kind", ARRANGED)
def test_the_right_belief(server, kind):
    name, arrange = ARRANGED[kind]
    answer = asked(server, name, arrange(angles()), **ROPE)
    assert codes_of(answer) == ["as_believed"] and answer["candidates"][0]["verdict"] == "exact", answer["findings"]


@pytest.mark.parametrize("kind", ARRANGED)
def test_found_without_a_belief(server, kind):
    name, arrange = ARRANGED[kind]
    answer = asked(server, name, arrange(angles(first=3)))
    config, sequence = answer["candidates"][0]["config"], answer["candidates"][0]["sequence"]
    assert codes_of(answer)[0] == "identified" and (config["base"], config["head_dim"], sequence["offset"]) == (5e5, 32, 3)


WRONG = {
    "base_other": angles(base=1e4),
    "off_by_one": angles(first=1),
    "direction_reversed": -angles(),
    "positions_reversed": angles()[::-1],
    "ladder_reversed": angles()[:, ::-1],
}


@pytest.mark.parametrize("code", WRONG)
@pytest.mark.parametrize("kind", ARRANGED)
def test_the_mistakes_of_cos_and_sin(server, kind, code):
    name, arrange = ARRANGED[kind]
    answer = asked(server, name, arrange(WRONG[code]), **ROPE)
    assert codes_of(answer)[0] == code and answer["explained"], answer["findings"]


@pytest.mark.parametrize("kind", ARRANGED)
def test_one_wrong_number_is_found_in_its_place(server, kind):
    """The index is that of the tensor sent, and no number is left out of the comparison."""
    name, arrange = ARRANGED[kind]
    whole = arrange(angles())
    for at in (0, np.random.default_rng(5).integers(1, whole.size - 1), whole.size - 1):
        wrong = whole.copy()
        wrong.flat[at] += 0.25
        answer = asked(server, name, wrong, **ROPE)
        assert not answer["explained"]
        bad = answer["belief"]["first_bad"]
        assert (bad["output"], bad["index"]) == (name, [int(i) for i in np.unravel_index(at, whole.shape)])
        assert bad["found"] == pytest.approx(wrong.flat[at], rel=1e-6) and bad["expected"] == pytest.approx(whole.flat[at], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name, values", [
    ("freqs_cis", cis(angles())[..., ::-1]),
    ("cos_sin", np.concatenate([np.sin(angles()), np.cos(angles())], -1)),
    ("matrix", np.stack([np.stack([np.sin(angles()), -np.cos(angles())], -1), np.stack([np.cos(angles()), np.sin(angles())], -1)], -2))])
def test_sines_first(server, name, values):
    assert codes_of(asked(server, name, values, **ROPE))[0] == "sin_cos_swapped"


def test_a_matrix_transposed_turns_the_other_way(server):
    assert codes_of(asked(server, "matrix", np.swapaxes(matrices(angles()), -1, -2), **ROPE))[0] == "direction_reversed"


@pytest.mark.parametrize("offset", [7, 4096])
def test_runs_begin_again_at_the_offset(server, offset):
    """Each run begins at the believed offset, not at 0."""
    at = np.outer([*range(offset, offset + 5), *range(offset, offset + 7)], ladder())
    answer = diagnose(server, {**ROPE, "offset": offset, "len": 12, "cos": inline(Tensor(np.cos(at), "f32")), "sin": inline(Tensor(np.sin(at), "f32"))})
    assert [(one["code"], one["found"]) for one in answer["findings"]] == [("position_reset", [5, 7])]
    assert answer["candidates"][0]["sequence"] == {"offset": offset, "lens": [5, 7]}


def test_a_row_alone_has_no_phases(server):
    """Neither a step nor the fastest wave can be read of one row."""
    at = 3 * scaled(ladder())
    answer = diagnose(server, {**ROPE, "base": 1e4, "len": 1, "cos": inline(Tensor(np.cos(at)[None], "f32")), "sin": inline(Tensor(np.sin(at)[None], "f32"))})
    assert codes_of(answer) == ["unexplained"]


@pytest.mark.parametrize("first", [0, 3])
def test_cosines_before_a_padded_channel(server, first):
    """Seven sines, seven cosines, and a zero: a cosine's partner is seven before it."""
    at = np.outer(first + np.arange(40.0), 7321.5 ** (-np.arange(7) / 7))
    padded = np.concatenate([np.sin(at), np.cos(at), np.zeros((40, 1))], -1)
    answer = diagnose(server, {"scheme": "sinusoidal", "dim": 15, "layout": "half", "odd": "pad", "len": 40, "encoding": inline(Tensor(padded, "f32"))})
    found = {one["code"]: one["found"] for one in answer["findings"]}
    assert found == {"base_other": 7321.5, **({"offset_other": first} if first else {})}


@pytest.mark.parametrize("layout, columns", [("half", lambda a: np.tile(a, 2)), ("interleaved", lambda a: np.repeat(a, 2, -1))])
def test_doubled_angles_tell_the_layout(server, layout, columns):
    other = {"half": "interleaved", "interleaved": "half"}[layout]
    assert codes_of(asked(server, "angles", columns(angles()), **ROPE, layout=layout)) == ["as_believed"]
    answer = asked(server, "angles", columns(angles())[:, None, None], **ROPE, layout=other)
    assert codes_of(answer)[0] == "layout_swapped" and answer["findings"][0]["pointer"] == "/layout" and answer["findings"][0]["found"] == layout


def test_angles_modulo_a_turn(server):
    a = angles(n=64)
    for low, wrapped in ((0, np.mod(a, 2 * np.pi)), (-np.pi, np.mod(a + np.pi, 2 * np.pi) - np.pi)):
        answer = asked(server, "angles", wrapped, **ROPE)
        assert codes_of(answer)[0] == "angles_wrapped"
        assert answer["candidates"][0]["transforms"] == [{"name": "wrapped", "low": pytest.approx(low)}]


def test_float32_angles_are_as_believed(server):
    """What right f32 code loses is no finding of angles."""
    w = np.float32(1) / np.float32(5e5) ** (np.arange(0, 32, 2, dtype="f4") / np.float32(32))
    answer = asked(server, "angles", np.outer(np.arange(4096, dtype="f4"), w), **ROPE)
    assert codes_of(answer) == ["as_believed"] and answer["candidates"][0]["verdict"] == "rounding"


def test_angles_have_no_attention_factor(server):
    yarn = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 4096}
    answer = asked(server, "angles", angles(), **ROPE, scaling=yarn)
    assert codes_of(answer)[0] in ("scaling_missing", "base_other") and "attention_factor_missing" not in answer["candidates"][0]["codes"]


# ---- Frequencies ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(16,), (1, 16), (1, 1, 16)])
def test_frequencies_as_believed(server, shape):
    answer = asked(server, "inv_freq", ladder().reshape(shape), **ROPE)
    assert codes_of(answer) == ["as_believed"]
    assert answer["candidates"][0]["sequence"] == {"len": 1}


@pytest.mark.parametrize("base", [1e4, 5e5, 1e6, 54321])
def test_frequencies_identify_their_base(server, base):
    answer = asked(server, "inv_freq", ladder(128, base))
    config = answer["candidates"][0]["config"]
    assert codes_of(answer) == ["identified"] and config["head_dim"] == 128 and config["base"] == pytest.approx(base, rel=1e-6)


def test_frequencies_identify_a_preset(server):
    answer = asked(server, "inv_freq", scaled(ladder(128)))
    first = answer["candidates"][0]
    assert first["config"]["base"] == 5e5 and first["config"]["scaling"]["type"] == "llama3" and "llama-3.1" in first["presets"]


FREQUENCIES = {
    "base_other": ladder(base=1e4),
    "scaling_other": ladder() / 4,
    "ladder_reversed": ladder()[::-1],
    "inverted": 1 / ladder(),
    "scaled": ladder() / (2 * np.pi),
    "inv_freq_other": np.sort(np.random.default_rng(3).uniform(0.01, 1, 16))[::-1],
}


@pytest.mark.parametrize("code", FREQUENCIES)
def test_mistakes_of_frequencies(server, code):
    answer = asked(server, "inv_freq", FREQUENCIES[code], **ROPE)
    assert codes_of(answer)[0] == code and answer["explained"]


# By its name: the ladder that two pairs leave, and what is believed.
NEAREST = {
    "base 10000": (ladder(base=1e4), ROPE), "base 10000, scaling linear, factor 8": (ladder(base=1e4) / 8, {**ROPE, "base": 10000}),
    "ladder_reversed": (ladder()[::-1], ROPE),
}


@pytest.mark.parametrize("name, as_tables", [(name, as_tables) for name in NEAREST for as_tables in (False, True) if as_tables or name != "ladder_reversed"])
def test_other_frequencies_are_named_by_what_is_nearest(server, name, as_tables):
    """A list that rises is no ladder at all, so that one is of tables alone."""
    known, belief = NEAREST[name]
    w = known * np.where(np.isin(np.arange(len(known)), [3, 5]), 0.95, 1)
    angle = np.outer(np.arange(64), w)
    tables = {"cos": inline(Tensor(np.cos(angle), "f32")), "sin": inline(Tensor(np.sin(angle), "f32"))}
    answer = diagnose(server, {**belief, **tables}) if as_tables else asked(server, "inv_freq", w, **belief)
    found = next(f for f in answer["findings"] if f["code"] == "inv_freq_other")
    assert found["nearest"]["name"] == name and (found["nearest"]["pairs"], found["nearest"]["of"]) == (2, len(w)), found["nearest"]
    assert abs(found["nearest"]["largest"] * 0.95 - 1) < 1e-3
    assert name in found["detail"] and name in found["detail_zh"]


def test_a_pair_off_by_more_than_float32_is_no_fit(server):
    """Two thirds of 2^-20 is what pow loses, 2^-18 is not."""
    for share, fits in ((2 ** -20 * 0.66, True), (2 ** -18, False)):
        w = ladder()
        w[7] *= 1 + share
        assert (codes_of(asked(server, "inv_freq", w, "f64", **ROPE)) == ["as_believed"]) == fits


BITS = [("bf16", lambda x: (np.asarray(x, "f4").view("u4") + 0x7FFF + (np.asarray(x, "f4").view("u4") >> 16 & 1) & 0xFFFF0000).astype("u4").view("f4")),
        ("f16", lambda x: np.asarray(x, "f2").astype("f4"))]


@pytest.mark.parametrize("dtype, few", BITS)
@pytest.mark.parametrize("wide", [True, False])
def test_frequencies_of_sixteen_bits(server, dtype, few, wide):
    """Whatever the dtype sent, these bits move angles: never table_dtype."""
    w = 1e4 ** (-np.arange(0, 8, 2) / 8) if dtype == "bf16" else ladder(8, 1e4)
    answer = asked(server, "inv_freq", few(w), "f32" if wide else dtype, scheme="rope", head_dim=8)
    assert codes_of(answer) == [f"inv_freq_{dtype}"]
    if dtype == "bf16":
        assert few(w).tolist() == [1, 0.10009765625, 0.010009765625, 0.00099945068359375]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_powers_of_two_have_few_bits_anyway(server, dtype):
    assert codes_of(asked(server, "inv_freq", [1, 0.5, 0.25, 0.125], dtype, scheme="rope", head_dim=8, base=16)) == ["as_believed"]


GARBAGE = {
    # what is written into the right list: why, pair, value
    "infinite": ({5: np.nan, 2: -1.0}, "not_finite", 5, "NaN"),
    "denormal": ({3: 1e-39, 2: -1.0}, "denormal", 3, pytest.approx(1e-39, rel=1e-6)),
    "negative": ({3: -1e-30, 6: 0.0}, "not_smooth", 3, pytest.approx(-1e-30, rel=1e-6)),
    "zero": ({4: 0.0, 9: 3.0}, "not_smooth", 4, 0),
    "huge": ({6: 1e30, 8: 0.9}, "not_smooth", 6, pytest.approx(1e30, rel=1e-6)),
    "a jump": ({8: 0.9}, "not_smooth", 8, pytest.approx(0.9, rel=1e-6)),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_uninitialised_memory(server, name):
    written, why, pair, value = GARBAGE[name]
    w = ladder()
    for at, x in written.items():
        w[at] = x
    for belief in (ROPE, {}):
        answer = asked(server, "inv_freq", w, **belief)
        first = answer["findings"][0]
        assert not answer["explained"] and (first["code"], first["pointer"]) == ("uninitialised", "/inv_freq")
        assert (first["found"]["pair"], first["found"]["value"], first["found"]["why"]) == (pair, value, why)
    assert asked(server, "inv_freq", w, **ROPE)["findings"][0]["found"]["pairs"] == len(written)


EXCHANGED = {"type": "yarn", "factor": 16, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1}


def exchanged():
    """The ramp of YaRN (Peng 2023, equation 22) with beta_fast for beta_slow and the reverse; it rises in its middle."""
    w, r, span = ladder(64), 64, {}
    for beta in (32, 1):
        span[beta] = r * math.log(4096 / (beta * 2 * math.pi)) / (2 * math.log(5e5))
    low, high = math.floor(span[1]), math.ceil(span[32])
    ramp = np.clip((np.arange(r // 2) - low) / (high - low), 0, 1)
    return w / 16 * ramp + w * (1 - ramp)


@pytest.mark.parametrize("w, belief", [
    (np.ones(16), ROPE), (np.full(16, 0.3), ROPE), (-ladder(), ROPE), (ladder() * 7, ROPE), (exchanged(), {**ROPE, "head_dim": 64, "scaling": EXCHANGED}),
    (np.linspace(0.1, 1, 16), ROPE)])
def test_a_wrong_list_of_a_smooth_course_was_written(server, w, belief):
    for fields in (belief, {}):
        assert "uninitialised" not in codes_of(asked(server, "inv_freq", w, **fields))


def test_zeros_at_the_end_are_no_garbage(server):
    """Pairs of a proportional ladder that do not turn."""
    w = np.where(np.arange(16) < 4, ladder(), 0)
    belief = {**ROPE, "scaling": {"type": "proportional", "partial_rotary_factor": 0.25, "factor": 1}}
    assert codes_of(asked(server, "inv_freq", w, **belief)) == ["as_believed"]


def test_a_list_beside_tables_is_the_belief(server):
    a = angles()
    answer = diagnose(server, {"scheme": "rope", "head_dim": 32, "inv_freq": ladder().tolist(),
                               "cos": inline(Tensor(np.cos(a), "f32")), "sin": inline(Tensor(np.sin(a), "f32"))})
    assert codes_of(answer) == ["as_believed"]


def test_divisors(server):
    belief = {"scheme": "rope", "head_dim": 128, "base": 5e5, "scaling": LLAMA}
    w = ladder(128)
    assert codes_of(asked(server, "rope_freqs", w / scaled(w), **belief)) == ["as_believed"]
    assert (w / scaled(w))[[28, 29, 32, 35]] == pytest.approx([1, 1.207484, 2.694530, 8], rel=1e-5)
    assert codes_of(asked(server, "rope_freqs", np.ones(64), **belief))[0] == "scaling_missing"
    assert codes_of(asked(server, "rope_freqs", np.ones(64), scheme="rope", head_dim=128, base=5e5)) == ["as_believed"]


@pytest.mark.parametrize("base", [1e4, 5e5, 1e6, 2e6])
@pytest.mark.parametrize("factor, length", [(8, 8192), (16, 16384)])
def test_divisors_identify_base_and_scaling(server, base, factor, length):
    """Llama 3.1's rule with the bases that are common: the ends of its ramp follow from the base, and no belief is needed."""
    w = ladder(128, base)
    smooth = np.clip((length * w / (2 * np.pi) - 1) / 3, 0, 1)
    answer = asked(server, "rope_freqs", 1 / (smooth + (1 - smooth) / factor))
    config = answer["candidates"][0]["config"]
    assert codes_of(answer) == ["identified"] and config["base"] == base
    assert [config["scaling"][name] for name in ("type", "factor", "original_max_position_embeddings")] == ["llama3", factor, length]


OF_ENCODINGS = {
    # the first code: (what the configuration says beside the scheme, the frequencies)
    "as_believed": ({}, 1e4 ** (-np.arange(32) / 32)),
    "freq_shift_other": ({}, 1e4 ** (-np.arange(32) / 31)),
    "base_other": ({"dim": 64}, 777.0 ** (-np.arange(32) / 32)),
    "inverted": ({}, 1e4 ** (np.arange(32) / 32)),
    "scaled": ({}, 1e4 ** (-np.arange(32) / 32) / (2 * np.pi)),
}


@pytest.mark.parametrize("code", OF_ENCODINGS)
def test_frequencies_of_an_encoding(server, code):
    belief, w = OF_ENCODINGS[code]
    answer = asked(server, "inv_freq", w, scheme="sinusoidal", **belief)
    assert codes_of(answer)[0] == code and answer["explained"], answer["findings"]
    assert answer["candidates"][0]["config"]["dim"] == 64


@pytest.mark.parametrize("dim, odd, w", [(127, "pad", 1e4 ** (-np.arange(63) / 63)), (127, "paper", 1e4 ** (-np.arange(64) / 63.5))])
def test_frequencies_of_an_odd_width(server, dim, odd, w):
    assert codes_of(asked(server, "inv_freq", w, scheme="sinusoidal", dim=dim, odd=odd)) == ["as_believed"]


def test_frequencies_of_another_width_are_refused(server):
    response = server.post("/diagnose", {"scheme": "sinusoidal", "dim": 128, "inv_freq": ladder(64).tolist()})
    assert response.status == 422 and response.json()["pointer"] == "/dim" and "inv_freq gives 64" in response.json()["detail"]


@pytest.mark.parametrize("name, values", [("angles", angles()), ("inv_freq", ladder())])
def test_exact_angles_believed_in_float32(server, name, values):
    assert codes_of(asked(server, name, values, **ROPE, arith="float32")) == ["as_believed"]


@pytest.mark.parametrize("r", [4, 8, 64])
def test_two_by_two_is_told_by_the_numbers(server, r):
    """[2, C, 2] is two rows of pairs, or two tables of C rows and two columns, whose squares sum to one."""
    pairs, stack = angles(2, r), angles(r // 2, 4)
    assert codes_of(asked(server, "cos_sin", cis(pairs), scheme="rope", base=5e5)) == ["as_believed"]
    assert codes_of(asked(server, "cos_sin", np.stack([np.cos(stack), np.sin(stack)]), scheme="rope", base=5e5)) == ["as_believed"]


# ---- Keys -------------------------------------------------------------------------------------------------------------------------


def test_keys(server):
    k = np.random.default_rng(8).standard_normal((1, 2, 12, 16))
    a = np.concatenate([np.outer(np.arange(12), ladder(16, 1e4))] * 2, -1)
    turned = k * np.cos(a) + np.concatenate([-k[..., 8:], k[..., :8]], -1) * np.sin(a)
    ask = lambda **belief: codes_of(diagnose(server, {"scheme": "rope", **belief, "k": inline(Tensor(k, "f32")), "k_out": inline(Tensor(turned, "f32"))}))
    assert ask(layout="half") == ["as_believed"] and ask(layout="interleaved") == ["layout_swapped"]


@pytest.mark.parametrize("names, out", [(("q", "q_out"), "q"), (("k", "k_out"), "k")])
def test_keys_have_their_own_part_of_xpos(server, names, out):
    """Queries grow where keys shrink."""
    x = np.random.default_rng(9).standard_normal((1, 1, 40, 16)).astype("f4")
    turned = server.ask("/rotate", scheme="xpos", **{name: inline(Tensor(x, "f64")) for name in "qk"}, outputs=["q", "k"], dtype="f64").json()
    sent = {names[0]: inline(Tensor(x, "f32")), names[1]: inline(Tensor(np.array(turned["tensors"][out]["data"], "f4"), "f32"))}
    assert codes_of(diagnose(server, {"scheme": "xpos", **sent})) == ["as_believed"]
    assert "as_believed" not in codes_of(diagnose(server, {"scheme": "xpos", "k" if out == "q" else "q": sent[names[0]], ("k_out" if out == "q" else "q_out"): sent[names[1]]}))


# ---- Queries and keys together -----------------------------------------------------------------------------------------------------


def drawn_heads(heads, n, seed):
    return np.random.default_rng(seed).standard_normal((1, heads, n, 32))


def turned(x, positions, base=1e4, layout="half"):
    return truth.turned(x, np.outer(positions, ladder(32, base)), layout)


AT = np.arange(12.0)
Q, K = drawn_heads(4, 12, 21), drawn_heads(2, 12, 22)  # fewer heads of keys


def both(server, q, q_out, k, k_out, **belief):
    sent = {name: inline(Tensor(a, "f32")) for name, a in {"q": q, "q_out": q_out, "k": k, "k_out": k_out}.items()}
    return diagnose(server, {"scheme": "rope", "layout": "half", **belief, **sent})


def told(answer):
    return [(finding["code"], finding["side"]) for finding in answer["findings"]], {side: one["codes"] for side, one in answer["sides"].items()}


BOTH = {  # what was done to q and to k: the findings with their sides, and the codes of each side
    "as believed": ({}, {}, [("as_believed", None)], [], []),
    "another base": ({"base": 5e5}, {"base": 5e5}, [("base_other", None)], ["base_other"], ["base_other"]),
    "the other layout": ({"layout": "interleaved"}, {"layout": "interleaved"}, [("layout_swapped", None)], ["layout_swapped"], ["layout_swapped"]),
    "k twice": ({}, {"positions": 2 * AT}, [("rotated_twice", "k"), ("sides_differ", None)], [], ["rotated_twice"]),
    "q not at all": ({"positions": 0 * AT}, {}, [("not_rotated", "q"), ("sides_differ", None)], ["not_rotated"], []),
    "k interleaved": ({}, {"layout": "interleaved"}, [("layout_swapped", "k"), ("sides_differ", None)], [], ["layout_swapped"]),
    "two bases": ({"base": 5e5}, {"base": 1e6}, [("base_other", "k"), ("base_other", "q"), ("sides_differ", None)], ["base_other"], ["base_other"]),
    "one later, one earlier": ({"positions": AT + 1}, {"positions": AT - 1}, [("off_by_one", "k"), ("off_by_one", "q"), ("sides_differ", None)],
                               ["off_by_one"], ["off_by_one"]),
}


@pytest.mark.parametrize("what", BOTH)
def test_queries_and_keys_have_one_belief(server, what):
    of_q, of_k, findings, q_codes, k_codes = BOTH[what]
    answer = both(server, Q, turned(Q, **{"positions": AT, **of_q}), K, turned(K, **{"positions": AT, **of_k}))
    assert told(answer) == (findings, {"q": q_codes, "k": k_codes}) and answer["explained"]
    assert {c["side"] for c in answer["candidates"]} == {findings[0][1]}


def test_a_factor_of_one_side_keeps_distances(server):
    """No sides_differ: scores are multiplied by one number."""
    answer = both(server, Q, turned(Q, AT) / np.sqrt(32), K, turned(K, AT))
    codes_of_q, sides = told(answer)[0], told(answer)[1]
    assert sides["k"] == [] and len(sides["q"]) == 1 and {side for _, side in codes_of_q} == {"q"}


def test_noise_on_one_side_is_not_explained(server):
    answer = both(server, Q, turned(Q, AT), K, drawn_heads(2, 12, 5))
    assert not answer["explained"] and answer["sides"]["q"] == {"verdict": "exact", "codes": []} and answer["sides"]["k"]["verdict"] == "none"
    assert told(answer)[0] == [("unexplained", "k"), ("sides_differ", None)]


def test_fewer_queries_are_the_last_ones(server):
    q = Q[:, :, :5]
    assert told(both(server, q, turned(q, AT[7:]), K, turned(K, AT)))[0] == [("as_believed", None)]
    assert told(both(server, q, turned(q, AT[:5]), K, turned(K, AT)))[0] == [("offset_other", "q"), ("sides_differ", None)]
    assert told(both(server, q, turned(q, AT[7:], base=31337), K, turned(K, AT, base=31337)))[0] == [("base_other", None)]


def test_both_sides_of_xpos(server):
    sent = {"q": Q, "k": K}
    out = server.ask("/rotate", scheme="xpos", **{name: inline(Tensor(x, "f64")) for name, x in sent.items()}, outputs=["q", "k"], dtype="f64").json()["tensors"]
    answer = both(server, Q, np.array(out["q"]["data"]), K, np.array(out["k"]["data"]), scheme="xpos", layout="interleaved")
    assert told(answer)[0] == [("as_believed", None)]


@pytest.mark.parametrize("missing", ["q", "q_out", "k", "k_out"])
def test_three_of_four_are_refused(server, missing):
    body = {name: [[1, 2], [3, 4]] for name in ("q", "q_out", "k", "k_out") if name != missing}
    response = server.post("/diagnose", {"scheme": "rope", **body})
    assert response.status == 422 and response.json()["pointer"] == "/" + missing and "or all four" in response.json()["detail"]


def test_sides_are_null_elsewhere(server):
    assert asked(server, "inv_freq", ladder(), **ROPE)["sides"] is None


# ---- Complex numbers --------------------------------------------------------------------------------------------------------------


def as_part(name, array):
    return multipart(request=json.dumps(ROPE), **{name: npy(array)})


def as_safetensors(name, array):
    """C64: the reader of our tests writes pairs of F32, and the header is changed."""
    pairs = np.stack([array.real, array.imag], -1).astype("f4")
    blob = safetensors_reader.dumps({name: pairs}, {"request": json.dumps(ROPE)})
    old, new = f'"F32","shape":{list(pairs.shape)}'.replace(" ", ""), f'"C64","shape":{list(array.shape)}'.replace(" ", "")
    size = int.from_bytes(blob[:8], "little")
    head = blob[8:8 + size].decode().replace(" ", "").replace(old, new)
    assert new in head, head
    return len(head).to_bytes(8, "little") + head.encode() + blob[8 + size:], {"Content-Type": "application/vnd.safetensors"}


SENT = {"part": as_part, "safetensors": as_safetensors}
TURNS = np.exp(1j * angles())


@pytest.mark.parametrize("dtype", ["<c8", "<c16", ">c8", ">c16"])
@pytest.mark.parametrize("order", "CF")
def test_complex_files(server, dtype, order):
    turns = np.asarray(TURNS.astype(dtype), order=order)
    for array, code in ((turns, "as_believed"), (turns.conj(), "direction_reversed")):
        answer = server.post("/diagnose", *as_part("freqs_cis", np.asarray(array, dtype, order=order))).json()
        assert codes_of(answer)[0] == code, answer["findings"]


def test_complex_safetensors(server):
    for array, code in ((TURNS, "as_believed"), (TURNS.conj(), "direction_reversed")):
        assert codes_of(server.post("/diagnose", *as_safetensors("freqs_cis", array)).json())[0] == code


@pytest.mark.parametrize("form", SENT)
def test_complex_numbers_are_only_for_freqs_cis(server, form):
    check_problem(server.post("/diagnose", *SENT[form]("cos", TURNS)), 422, "/cos", ["complex numbers are only for freqs_cis; send [...,2]"])


# ---- Refused ----------------------------------------------------------------------------------------------------------------------


def of(shape):
    return inline(Tensor(np.ones(shape), "f32"))


REFUSED = {
    "angles of too many pairs": ({"angles": of([2, 4098])}, "/angles", ["[2,4098]", "[n, rotary_dim/2]"]),
    "a list of two rows": ({"inv_freq": of([2, 4])}, "/inv_freq", ["[2,4]", "[rotary_dim/2]"]),
    "complex numbers of three parts": ({"freqs_cis": of([4, 8, 3])}, "/freqs_cis", ["[4,8,3]", "[n, rotary_dim/2, 2]"]),
    "an odd cache": ({"cos_sin": of([4, 7])}, "/cos_sin", ["[4,7]", "[2, n, columns]"]),
    "a matrix of three rows": ({"matrix": of([4, 8, 3, 2])}, "/matrix", ["[4,8,3,2]", "[n, rotary_dim/2, 2, 2]"]),
    "another width": ({"head_dim": 64, "freqs_cis": of([4, 8, 2])}, "/head_dim", ["64", "8", "freqs_cis"]),
    "a list of another width": ({"head_dim": 64, "inv_freq": of([8])}, "/head_dim", ["64", "8", "inv_freq"]),
    "another form": ({"form": "expanded", "matrix": of([4, 8, 2, 2])}, "/form", ["matrix"]),
    "k alone": ({"k": of([4, 8])}, "/k_out", ["k_out"]),
    "k_out alone": ({"k_out": of([4, 8])}, "/k", ["k and k_out"]),
    "two kinds": ({"angles": of([4, 8]), "freqs_cis": of([4, 8, 2])}, "/freqs_cis", ["angles", "freqs_cis"]),
    "NaN in angles": ({"angles": [["NaN", 1.0]]}, "/angles", ["NaN"]),
    "buckets of another scheme": ({"scheme": "alibi", "num_heads": 2, "buckets": [[1, 2], [1, 2]]}, "/buckets", ["alibi", "t5"]),
    "ids of another scheme": ({"scheme": "alibi", "num_heads": 2, "position_ids": [1, 2]}, "/position_ids", ["rope"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(server, name):
    body, pointer, words = REFUSED[name]
    check_problem(server.post("/diagnose", body), 422, pointer, words)
