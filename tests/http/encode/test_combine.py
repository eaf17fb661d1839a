"""POST /encode with input x: combined."""
import json
import random

import numpy as np
import pytest

import truth
import truth.absolute as absolute
from asking import check_again, given, inline, refused
from tensors import encode, encode_one, from_npy, multipart, npy

HOW = ["add", "multiply", "multiply_residual", "concat"]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def near(got, expected, dtype="f64", err_msg=""):
    """A few units in the last place of the largest value, or the reference's own error."""
    assert got.shape == expected.shape
    atol = max(4 * 2.0 ** -truth.FORMATS[dtype][0] * np.abs(expected).max(), 1e-13)
    np.testing.assert_allclose(got.astype(float), expected, rtol=0, atol=atol, err_msg=err_msg)


# ---- The rules ---------------------------------------------------------------------------------------------------------


def test_added_by_default(server):
    """x fixes n and dim; the answer is `combined` alone, in x's dtype."""
    x = normal(5, 8)
    tensors = encode(server, scheme="sinusoidal", x=inline(x))
    assert list(tensors) == ["combined"] and tensors["combined"].dtype == np.float64
    near(tensors["combined"], x + truth.sinusoidal(range(5), 8))
    config = server.ask(scheme="sinusoidal", x=inline(x), data=False).json()["config"]
    assert {"dim": 8, "combine": "add", "x_scale": 1.0, "pe_scale": 1.0}.items() <= config.items()


def test_plain_lists_are_f32(server):
    combined = encode_one(server, scheme="integer", x=[[0.5, 1], [2, 3], [4, 5]])
    assert combined.dtype == np.float32 and combined.tolist() == [[0.5, 1], [3, 4], [6, 7]]


@pytest.mark.parametrize("how", HOW)
def test_each_rule(server, how):
    x = normal(2, 3, 5, 8, seed=1)
    combined = encode_one(server, scheme="sinusoidal", combine=how, x=inline(x), offset=3)
    near(combined, absolute.combine(x, truth.sinusoidal(range(3, 8), 8), how))


def test_each_rule_by_hand(server):
    """Position 2 in every column."""
    def row(how):
        return encode_one(server, scheme="integer", offset=2, x=[[3, -1]], combine=how).tolist()
    assert row("add") == [[5, 1]]
    assert row("multiply") == [[6, -2]]
    assert row("multiply_residual") == [[9, -3]]
    assert row("concat") == [[3, -1, 2, 2]]


def test_nothing_added_is_x(server):
    x = normal(4, 6).astype("f4")
    assert encode_one(server, scheme="none", x=inline(x, "f32")).tobytes() == x.tobytes()
    assert encode_one(server, scheme="none", x=inline(x, "f32"), combine="multiply_residual").tobytes() == x.tobytes()


def test_the_transformer_s_scale(server):
    """x sqrt(d) + pe"""
    x = normal(7, 12, seed=2)
    combined = encode_one(server, scheme="sinusoidal", x_scale="sqrt_dim", x=inline(x))
    near(combined, x * np.sqrt(12) + truth.sinusoidal(range(7), 12))
    scaled = encode_one(server, scheme="sinusoidal", x_scale=0.5, pe_scale="sqrt_dim", x=inline(x))
    near(scaled, 0.5 * x + np.sqrt(12) * truth.sinusoidal(range(7), 12))


@pytest.mark.parametrize("how", ["add", "multiply", "concat"])
def test_both_scales(server, how):
    x, pe = normal(3, 4, 6, seed=3), truth.sinusoidal(range(4), 6)
    combined = encode_one(server, scheme="sinusoidal", combine=how, x_scale=-1.5, pe_scale=0.25, x=inline(x))
    near(combined, absolute.combine(x, pe, how, -1.5, 0.25))


def test_encoding_on_request(server):
    x = normal(2, 5, 8, seed=4)
    fields = dict(scheme="sinusoidal", x=inline(x))
    both = encode(server, outputs=["encoding", "combined"], **fields)
    assert list(both) == ["encoding", "combined"]
    assert both["encoding"].tobytes() == encode_one(server, scheme="sinusoidal", len=5, dim=8, dtype="f64").tobytes()
    assert both["combined"].tobytes() == encode_one(server, **fields).tobytes()
    assert list(encode(server, outputs=["encoding"], **fields)) == ["encoding"]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_dtypes(server, dtype):
    """The answer has the dtype of x, or another one on request."""
    x = np.vectorize(lambda v: truth.nearest(v, dtype))(normal(6, 10, seed=5))
    expected = x + truth.sinusoidal(range(6), 10)
    answer = server.ask(scheme="sinusoidal", x=inline(x, dtype)).json()["tensors"]["combined"]
    assert answer["dtype"] == dtype
    near(np.array(answer["data"], float), expected, dtype)
    near(encode_one(server, scheme="sinusoidal", x=inline(x, dtype), dtype="f64"), expected)


def test_scheme_after_scheme(server):
    """Every absolute scheme that has a table has `combined`."""
    x = normal(6, 8, seed=6)
    grid = {"grid": [2, 3]}
    for fields, pe in [
            (dict(scheme="binary"), absolute.binary(range(6), 8)),
            (dict(scheme="sinusoidal", **grid), absolute.table(absolute.axial(8, 2), absolute.grid_coordinates([2, 3]))),
            (dict(scheme="sinusoidal", style="mae", **grid), absolute.table(absolute.mae(8), absolute.grid_coordinates([2, 3]))),
            (dict(scheme="learned", table=inline(normal(9, 8, seed=7))), normal(9, 8, seed=7)[:6])]:
        near(encode_one(server, x=inline(x), **fields), x + pe)


def test_recursive_and_floater(server):
    x, zeros = normal(4, 2, seed=8), np.zeros
    line = dict(p0=inline(zeros(2)), w1=inline(zeros((2, 2))), b1=inline([1, 2]))
    near(encode_one(server, scheme="recursive", residual=True, x=inline(x), **line), x + np.arange(4)[:, None] * [1, 2])
    drift = dict(p0=inline(zeros(2)), w1=inline(zeros((2, 3))), b1=inline(zeros(2)), w2=inline(zeros((2, 3))), b2=inline([1, 2]))
    near(encode_one(server, scheme="floater", dt=0.5, x=inline(x), **drift), x + 0.5 * np.arange(4)[:, None] * [1, 2])


# ---- Ways in -----------------------------------------------------------------------------------------------------------


def test_files(server):
    x = normal(3, 50, 16, seed=9).astype("f4")
    expected = encode_one(server, scheme="sinusoidal", x=inline(x, "f32"), x_scale="sqrt_dim")
    body, headers = multipart(request=json.dumps({"scheme": "sinusoidal", "x_scale": "sqrt_dim", "format": "npy"}), x=npy(x))
    assert from_npy(server.post("/encode", body, headers)).tobytes() == expected.tobytes()
    query = "/encode?scheme=sinusoidal&x_scale=sqrt_dim&format=npy"  # text as it stands
    one = server.post(query, npy(x), {"Content-Type": "application/x-npy"})
    assert one.status == 200, one
    assert from_npy(one).tobytes() == expected.tobytes()


@pytest.mark.parametrize("seed", range(40))
def test_random(server, seed):
    rng = random.Random(seed)
    n, dim = rng.randint(1, 9), 2 * rng.randint(1, 9)
    x = normal(*[rng.randint(1, 3) for _ in range(rng.randint(0, 2))], n, dim, seed=seed)
    how = rng.choice(HOW)
    scales = given(x_scale=rng.choice([None, 2, "sqrt_dim"]), pe_scale=rng.choice([None, -0.1]))
    scales = {} if how == "multiply_residual" else scales  # its formula has no scales
    positions = rng.choice([None, [rng.uniform(-50, 50) for _ in range(n)]])
    parameters = given(layout=rng.choice([None, "half"]))
    request = given(scheme="sinusoidal", combine=how, positions=positions, x=inline(x), **parameters, **scales)
    pe = truth.sinusoidal(range(n) if positions is None else positions, dim, **parameters)
    combined = encode_one(server, **request)
    near(combined, absolute.combine(x, pe, how, **scales), err_msg=str(request))
    check_again(server, request, ["positions", "x"], {"combined": combined})


# ---- Refusals ----------------------------------------------------------------------------------------------------------

X = [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("pointers,fields", [
    (("/x", "/len"), dict(len=4, x=X)),
    (("/x", "/positions"), dict(positions=[0, 1], x=X)),
    (("/x", "/dim"), dict(dim=4, x=X)),
    (("/x", "/grid"), dict(grid=[2, 2], x=X)),
    ("/x", dict(x=[1, 2, 3])),
    ("/x", dict(x=5)),
    ("/combine", dict(x=X, combine="plus")),
    ("/x_scale", dict(x=X, x_scale="sqrt")),
    ("/pe_scale", dict(x=X, pe_scale=[1])),
    (("/outputs", "/x", "/outputs/0"), dict(len=3, outputs=["combined"])),
    ("/q", dict(q=X)),
    ("/offset", dict(x=X, offset=2 ** 40)),
])
def test_refused(server, pointers, fields):
    refused(server, pointers, scheme="sinusoidal", **fields)


def test_x_is_for_absolute_schemes(server):
    refused(server, ("/x", "/scheme"), scheme="rope", x=X)
    refused(server, ("/x", "/scheme"), scheme="alibi", x=X)


def test_x_must_fit_the_weights(server):
    refused(server, ("/x", "/table", "/dim"), scheme="learned", table=[[1, 2, 3]] * 4, x=X)
    refused(server, ("/x", "/p0", "/dim"), scheme="recursive", p0=[1, 2, 3], w1=np.eye(3).tolist(), b1=[0, 0, 0], x=X)
    refused(server, ("/bits", "/dim", "/x", "/len", ""), scheme="binary", x=[[0] * 2] * 5)  # five rows, two bits
