"""xpos: rotation with a scale that decays with the distance, from /encode and /rotate (arXiv 2212.10554)."""
import random

import numpy as np
import pytest
from hypothesis import given as when, settings
from hypothesis import strategies as st

import truth
import truth.rotary as rotary
from asking import check_again, given, inline, refused
from tensors import encode, encode_one, from_json

laws = settings(max_examples=25)


def scale(server, **fields):
    return encode_one(server, scheme="xpos", outputs=["scale"], **fields)


def turned(server, q, k, **fields):
    answer = from_json(server.ask("/rotate", scheme="xpos", q=inline(q), k=inline(k), **fields))
    return answer["q"], answer["k"]


def near(got, expected, tolerance=1e-12, err_msg=""):
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=err_msg)


# ---- Values ------------------------------------------------------------------------------------------------------------


def test_reference_values(server):
    """64 channels, position 100."""
    row = scale(server, positions=[100], dtype="f64")[0]
    near(row[[0, 31]], np.array([0.782954834501, 0.995600658306]), 6e-13)


def test_by_default(server):
    """64 channels, centred on 0; cos and sin are rope's."""
    assert np.array_equal(scale(server, len=1), np.ones((1, 32)))
    near(scale(server, len=200, dtype="f64"), rotary.xpos_scale(range(200)))
    plain = encode(server, scheme="rope", len=200)
    tables = encode(server, scheme="xpos", len=200, outputs=["cos", "sin", "scale"])
    assert list(tables) == ["cos", "sin", "scale"] and tables["scale"].shape == (200, 32)
    assert all(tables[name].tobytes() == plain[name].tobytes() for name in plain)
    config = server.ask(scheme="xpos", len=2).json()["config"]
    assert {"head_dim": 64, "scale_base": 512.0, "gamma": 0.4, "layout": "interleaved", "base": 10000.0}.items() <= config.items()
    assert config["center"] == 0


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("parameters", [{}, dict(scale_base=64, gamma=1.5), dict(center=100.5), dict(rotary_dim=8)])
def test_scale_is_exact(server, parameters, dtype):
    positions = [0, 1, -3, 0.25, 777, 2048]
    table = scale(server, head_dim=16, positions=positions, dtype=dtype, **parameters)
    others = {name: value for name, value in parameters.items() if name != "rotary_dim"}
    for i, p in enumerate(positions):
        for c in range(table.shape[1]):
            exact = rotary.xpos_exact(p, c, parameters.get("rotary_dim", 16), **others)
            assert float(table[i, c]) == truth.nearest(exact, dtype), (p, c)


# ---- The centre, where libraries disagree --------------------------------------------------------------------------------


@pytest.mark.parametrize("n,offset,torchscale,lucidrains",
                         [(10, 0, 5, 5), (11, 0, 6, 5), (1, 0, 1, 0), (7, 4, 6, 3), (4, 7, 6, 2)])
def test_centers(server, n, offset, torchscale, lucidrains):
    """torchscale: ceil((length + offset)/2); lucidrains: length // 2. For odd lengths single tensors differ."""
    for center, number in (("torchscale", torchscale), ("lucidrains", lucidrains)):
        assert rotary.xpos_center(center, n, offset) == number
        table = scale(server, len=n, offset=offset, center=center, dtype="f64")
        near(table, rotary.xpos_scale(range(offset, offset + n), center=number))
        assert table.tobytes() == scale(server, len=n, offset=offset, center=number, dtype="f64").tobytes()


def test_scores_know_no_centre(server):
    """They differ in q and in k, not in q.k."""
    q, k = np.random.default_rng(0).standard_normal((2, 11, 64))
    scores = []
    for center in (0, "torchscale", "lucidrains", -7.5):
        a, b = turned(server, q, k, center=center)
        scores.append(a @ b.T)
        near(scores[-1], scores[0], 1e-12)
    one, other = (turned(server, q, k, center=c)[0] for c in ("torchscale", "lucidrains"))
    assert np.abs(one - other).max() > 1e-4


def test_only_the_scale_is_centred(server):
    """Rotation starts at 0 for every centre."""
    tables = [encode(server, scheme="xpos", len=9, center=center, outputs=["cos", "sin"]) for center in (0, 4, "torchscale")]
    for t in tables[1:]:
        assert t["cos"].tobytes() == tables[0]["cos"].tobytes() and t["sin"].tobytes() == tables[0]["sin"].tobytes()


# ---- Rotation ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("rotary_dim", [None, 8])
def test_q_up_k_down(server, layout, rotary_dim):
    """The channels that are not rotated are not scaled."""
    q, k = np.random.default_rng(1).standard_normal((2, 2, 3, 9, 16))
    a, b = turned(server, q, k, offset=100, **given(layout=layout, rotary_dim=rotary_dim))
    for got, x, is_key in ((a, q, False), (b, k, True)):
        near(got, rotary.xpos_rotate(x, range(100, 109), is_key, rotary_dim, layout=layout))
    if rotary_dim:
        assert np.array_equal(a[..., 8:], q[..., 8:]) and np.array_equal(b[..., 8:], k[..., 8:])


def test_one_of_them_alone(server):
    x = np.random.default_rng(2).standard_normal((5, 8))
    q = from_json(server.ask("/rotate", scheme="xpos", q=inline(x), offset=3))
    k = from_json(server.ask("/rotate", scheme="xpos", k=inline(x), offset=3))
    assert list(q) == ["q"] and list(k) == ["k"]
    near(q["q"], rotary.xpos_rotate(x, range(3, 8), False))
    near(k["k"], rotary.xpos_rotate(x, range(3, 8), True))


positions = st.integers(-500, 500)


@laws
@when(m=positions, n=positions, shift=positions, layout=st.sampled_from(["interleaved", "half"]))
def test_scores_depend_on_the_distance(server, m, n, shift, layout):
    """q.k at (m, n) is q.k at (m + s, n + s)."""
    q, k = np.random.default_rng(3).standard_normal((2, 1, 16))
    a, b = turned(server, np.repeat(q, 4, 0), np.repeat(k, 4, 0), positions=[m, n, m + shift, n + shift], layout=layout)
    assert abs(a[0] @ b[1] - a[2] @ b[3]) <= 1e-11 * max(1, np.linalg.norm(a[0]) * np.linalg.norm(b[1]))


def test_scores_decay(server):
    """Equal q and k: the envelope of the score falls with the distance to keys that came before."""
    x = np.tile(np.random.default_rng(4).standard_normal(64), (2000, 1))
    a, b = turned(server, x, x)
    back = np.abs(b[:1500] @ a[1500])[::-1]
    assert back[:100].max() > back[400:700].max() > back[1200:].max()


@pytest.mark.parametrize("seed", range(40))
def test_random(server, seed):
    rng = random.Random(seed)
    head_dim, n, offset = 2 * rng.randint(1, 12), rng.randint(1, 9), rng.randint(-50, 50)
    rotary_dim = rng.choice([None, 2 * rng.randint(1, head_dim // 2)])
    shape = given(base=rng.choice([None, 500.0]), layout=rng.choice([None, "half"]), direction=rng.choice([None, -1]))
    decay = given(scale_base=rng.choice([None, 64.0]), gamma=rng.choice([None, 1.2]))
    center = rng.choice([None, 2.5, "lucidrains"] + ["torchscale"] * (offset >= 0))
    q, k = np.random.default_rng(seed).standard_normal((2, n, head_dim))
    fields = given(offset=offset, rotary_dim=rotary_dim, center=center, **shape, **decay)
    number = rotary.xpos_center(center or 0, n, offset)
    a, b = turned(server, q, k, **fields)
    for got, x, is_key in ((a, q, False), (b, k, True)):
        expected = rotary.xpos_rotate(x, range(offset, offset + n), is_key, rotary_dim, center=number, **shape, **decay)
        near(got, expected, err_msg=str(fields))
    request = dict(scheme="xpos", head_dim=head_dim, len=n, dtype="f64", outputs=["scale"], **fields)
    table = encode_one(server, **request)
    near(table, rotary.xpos_scale(range(offset, offset + n), rotary_dim or head_dim, center=number, **decay))
    check_again(server, request, ["len", "offset", "dtype", "outputs"], {"scale": table})


# ---- Refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pointers,fields", [
    ("/scale_base", dict(len=4, scale_base=0)),
    ("/scale_base", dict(len=4, scale_base="512")),
    ("/gamma", dict(len=4, gamma=0)),
    ("/gamma", dict(len=4, gamma=-0.4)),
    ("/center", dict(len=4, center="torch")),
    ("/center", dict(len=4, center=True)),
    ("/head_dim", dict(len=4, head_dim=7)),
    ("/rotary_dim", dict(len=4, rotary_dim=7)),
    ("/rotary_dim", dict(len=4, rotary_dim=66)),
    ("/positions", dict(positions=[2 ** 40 + 1])),
    ("/offset", dict(offset=2 ** 40, len=2)),
])
def test_refused(server, pointers, fields):
    refused(server, pointers, scheme="xpos", **fields)


def test_rope_has_no_scale(server):
    refused(server, ("/outputs", "/outputs/0"), scheme="rope", len=4, outputs=["scale"])
    refused(server, "/gamma", "gamma", scheme="rope", len=4, gamma=0.4)
