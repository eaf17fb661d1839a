"""POST /encode with rope: forms, layouts, partial rotation, direction, positions, dtypes, exactness."""
import math
import random

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import truth
from tensors import encode, encode_one, from_json


def angles(positions, rotary_dim=64, base=10000.0, direction=1):
    return direction * np.asarray(positions, float)[:, None] * base ** (-2.0 * np.arange(rotary_dim // 2) / rotary_dim)


def near(got, expected, tolerance=1e-7):
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


# ---- Reference values ------------------------------------------------------------------------------------------------


def test_the_first_thing_a_user_types(server):
    response = server.post("/encode", b'{"scheme":"rope","len":2048}',
                           {"Content-Type": "application/x-www-form-urlencoded"})  # what curl -d sends
    assert response.status == 200
    answer, tensors = response.json(), from_json(response)
    assert answer["scheme"] == "rope"
    assert answer["config"] == {
        "scheme": "rope", "head_dim": 64, "rotary_dim": 64, "rotary_offset": 0, "base": 10000.0, "layout": "interleaved",
        "direction": 1, "scaling": {"type": "default"}, "attention_factor": 1.0, "form": "pairs", "arith": "exact"}
    assert list(answer["tensors"]) == ["cos", "sin"]
    for name, function in (("cos", np.cos), ("sin", np.sin)):
        assert answer["tensors"][name]["dtype"] == "f32"
        near(tensors[name], function(angles(range(2048))))


def test_the_documented_answer_to_the_letter(server):
    """A small answer, byte for byte but for line breaks."""
    assert server.ask(scheme="rope", len=2, head_dim=4).body.decode().replace("\n", "") == (
        '{"scheme":"rope","config":{"scheme":"rope","head_dim":4,"rotary_dim":4,"rotary_offset":0,"base":10000.0,'
        '"layout":"interleaved","direction":1,"scaling":{"type":"default"},"attention_factor":1.0,"form":"pairs","arith":"exact"},'
        '"tensors":{"cos":{"dtype":"f32","shape":[2,2],"data":[[1.0,1.0],[0.5403023,0.99995]]},'
        '"sin":{"dtype":"f32","shape":[2,2],"data":[[0.0,0.0],[0.84147096,0.009999833]]}}}')


def test_reference_frequencies(server):
    """head_dim 128, base 1e4."""
    w = encode_one(server, scheme="rope", head_dim=128, len=1, outputs=["inv_freq"])
    assert w.dtype == "f8" and w.shape == (64,)
    near(w[[1, 31, 63]], np.array([0.86596432336, 0.0115478198469, 0.000115478198469]), 1e-12)
    for c in range(64):
        assert abs(w[c] - float(truth.rope_frequency(c, 128))) <= truth.ulp(w[c])


# ---- Forms, layouts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("rotary_dim", [2, 6, 16])
def test_every_form_holds_the_same_values(server, layout, direction, rotary_dim):
    fields = dict(scheme="rope", head_dim=16, rotary_dim=rotary_dim, layout=layout, direction=direction, offset=-3, len=9)
    t = encode(server, form="pairs", **fields)
    cos, sin = t["cos"], t["sin"]
    near(cos, np.cos(angles(range(-3, 6), rotary_dim, direction=direction)))
    near(sin, np.sin(angles(range(-3, 6), rotary_dim, direction=direction)))

    first, second = truth.pairs(rotary_dim, layout)
    expanded = encode(server, form="expanded", **fields)
    for name, pairs in (("cos", cos), ("sin", sin)):
        assert expanded[name].shape == (9, rotary_dim)
        assert np.array_equal(expanded[name][:, first], pairs) and np.array_equal(expanded[name][:, second], pairs)

    concat = encode(server, form="concat", **fields)
    assert list(concat) == ["cos_sin"] and np.array_equal(concat["cos_sin"], np.hstack([cos, sin]))

    both = encode(server, form="complex", **fields)
    assert list(both) == ["freqs_cis"] and np.array_equal(both["freqs_cis"], np.stack([cos, sin], -1))

    matrix = encode(server, form="matrix", **fields)
    assert list(matrix) == ["matrix"]
    expected = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)
    assert matrix["matrix"].shape == (9, rotary_dim // 2, 2, 2) and np.array_equal(matrix["matrix"], expected)


def test_partial_rotation_has_its_own_ladder(server):
    """The exponent's denominator is rotary_dim, not head_dim."""
    w = encode_one(server, scheme="rope", head_dim=80, partial_rotary_factor=0.3, len=1, outputs=["inv_freq"])
    near(w, 10000.0 ** (-2 * np.arange(12) / 24), 1e-15)
    config = server.ask(scheme="rope", head_dim=80, partial_rotary_factor=0.3, len=1).json()["config"]
    assert config["rotary_dim"] == 24 and "partial_rotary_factor" not in config


def test_words_of_other_libraries(server):
    assert server.ask(scheme="rope", rope_theta=500000, len=3).json()["config"]["base"] == 500000.0


def test_explicit_frequencies(server):
    t = encode(server, scheme="rope", head_dim=6, inv_freq=[1, 0.5, 0.25], positions=[0, 1, 2.5])
    near(t["sin"], np.sin(np.outer([0, 1, 2.5], [1, 0.5, 0.25])))


def test_attention_factor_multiplies_both(server):
    plain = encode(server, scheme="rope", len=50, dtype="f64")
    scaled = encode(server, scheme="rope", len=50, dtype="f64", attention_factor=1.25)
    for name in ("cos", "sin"):
        near(scaled[name], 1.25 * plain[name], 3e-16)


# ---- Positions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", [[0, 1, 2, 3], [5], [-4, -3, -2], [7, 3, 3, -9], [0.5, -0.25, 1e-3],
                                       [1048576, 16777217, 3]])
def test_positions(server, positions):
    t = encode(server, scheme="rope", head_dim=8, positions=positions)
    tolerance = 1e-7 + 1e-15 * max(abs(p) for p in positions)
    near(t["cos"], np.cos(angles(positions, 8)), tolerance)
    near(t["sin"], np.sin(angles(positions, 8)), tolerance)


def test_positions_on_request(server):
    run = encode_one(server, scheme="rope", offset=-2, len=4, outputs=["positions"])
    assert run.dtype == "i8" and run.tolist() == [[-2, -1, 0, 1]]
    fractions = encode_one(server, scheme="rope", positions=[0, 1.5], outputs=["positions"])
    assert fractions.dtype == "f8" and fractions.tolist() == [[0.0, 1.5]]


def test_a_run_and_its_list_are_the_same(server):
    for start in (0, -1000, 2 ** 33):
        run = encode(server, scheme="rope", offset=start, len=300)
        listed = encode(server, scheme="rope", positions=list(range(start, start + 300)))
        turned = encode(server, scheme="rope", positions=list(range(start, start + 300))[::-1])
        for name in run:
            assert run[name].tobytes() == listed[name].tobytes()
            assert run[name].tobytes() == turned[name][::-1].tobytes()


# ---- Exactness ---------------------------------------------------------------------------------------------------------


def some_positions(seed):
    rng = random.Random(seed)
    near_zero = [rng.randint(-4096, 4096) for _ in range(8)]
    far = [rng.choice([-1, 1]) * rng.randint(2 ** 20, 2 ** 40) for _ in range(10)]
    real = [rng.uniform(-1e5, 1e5) for _ in range(6)] + [rng.uniform(-1, 1) * 2.0 ** rng.randint(-60, 38) for _ in range(8)]
    return near_zero + far + real + [0, 2 ** 40, -2 ** 40, 1, -1]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("base,rotary_dim", [(10000.0, 16), (500000.0, 128), (123.456, 10)])
def test_every_value_is_the_nearest(server, dtype, base, rotary_dim):
    positions = some_positions(base)
    t = encode(server, scheme="rope", head_dim=rotary_dim, base=base, positions=positions, dtype=dtype)
    for i, p in enumerate(positions):
        for c in range(0, rotary_dim // 2, 1 if rotary_dim < 32 else 5):
            angle = truth.rope_angle(p, c, rotary_dim, base)
            for name, function in (("cos", mpmath.cos), ("sin", mpmath.sin)):
                expected = truth.nearest(function(angle), dtype)
                assert float(t[name][i, c]) == expected, (name, p, c, t[name][i, c], expected)


def test_attention_factor_is_rounded_once(server):
    positions, factor = [1, 2, 3, 1000, 10 ** 9], 1.13862943611
    t = encode(server, scheme="rope", head_dim=32, positions=positions, attention_factor=factor)
    for i, p in enumerate(positions):
        for c in range(16):
            exact = mpf(factor) * mpmath.sin(truth.rope_angle(p, c, 32))
            assert float(t["sin"][i, c]) == truth.nearest(exact, "f32")


def test_f64_within_an_ulp(server):
    positions = [0, 1, 2, -3, 100.5, 65537, 2 ** 24 - 1, 2 ** 24]
    t = encode(server, scheme="rope", head_dim=32, positions=positions, dtype="f64")
    for i, p in enumerate(positions):
        for c in range(16):
            angle = truth.rope_angle(p, c, 32)
            for name, function in (("cos", mpmath.cos), ("sin", mpmath.sin)):
                got = float(t[name][i, c])
                assert abs(mpf(got) - function(angle)) <= truth.ulp(got), (name, p, c)


def test_f64_far_out(server):
    positions = [2 ** 30 + 1, 2 ** 40 - 3, -2 ** 40, 12345678901.25]
    t = encode(server, scheme="rope", head_dim=16, positions=positions, dtype="f64")
    for i, p in enumerate(positions):
        for c in range(8):
            assert abs(mpf(float(t["cos"][i, c])) - mpmath.cos(truth.rope_angle(p, c, 16))) <= 1e-16 + 2.0 ** -53


def test_zero_is_positive(server):
    """sin(0) and -sin(0) print as 0.0."""
    for form in ("pairs", "matrix"):
        for direction in (1, -1):
            for t in encode(server, scheme="rope", head_dim=8, len=1, form=form, direction=direction).values():
                assert not np.any(np.signbit(t[t == 0]))


def test_float32_recipe_for_parity(server):
    """As frameworks do: frequency, angle and function each in float32."""
    positions = np.arange(0, 5000, 37)
    t = encode(server, scheme="rope", head_dim=64, positions=positions.tolist(), arith="float32")
    # A library's own float32 pow may be several ulp off (NumPy's with AVX-512 is): the power in float64, rounded once.
    power = (10000.0 ** (np.arange(0, 64, 2) / 64)).astype(np.float32)
    angle = (positions.astype(np.float32)[:, None] * (np.float32(1) / power)).astype(float)
    # Frameworks differ by an ulp of the frequency; the cosine itself is rounded to nearest.
    slack = np.abs(angle) * 2.0 ** -23 + 2.0 ** -25
    assert np.all(np.abs(t["cos"] - np.cos(angle)) <= slack)
    exact = encode(server, scheme="rope", head_dim=64, positions=positions.tolist())
    assert np.max(np.abs(t["cos"] - exact["cos"])) > 1e-6  # it is not the exact one


def test_dtypes_are_one_rounding_apart(server):
    """f16 and bf16 are rounded from the exact value, not from the f32."""
    f64 = encode(server, scheme="rope", len=2000, dtype="f64")
    for dtype in ("f32", "f16", "bf16"):
        t = encode(server, scheme="rope", len=2000, dtype=dtype)
        bits = truth.FORMATS[dtype][0]
        for name in t:
            error = np.abs(t[name].astype(float) - f64[name])
            assert np.all(error <= np.maximum(np.abs(f64[name]), 2.0 ** -14) * 2.0 ** -bits * 1.0000001), (dtype, name)


def test_magnitudes_stay_at_one(server):
    t = encode(server, scheme="rope", head_dim=128, offset=2 ** 39, len=64, dtype="f64")
    near(t["cos"] ** 2 + t["sin"] ** 2, np.ones((64, 64)), 1e-15)
    assert math.isfinite(float(t["cos"].sum()))
