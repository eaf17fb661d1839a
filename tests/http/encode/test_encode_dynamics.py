"""POST /encode with recursive and floater: each row is computed from the row before it (core/schemes/absolute/recursive.c,
floater.c)."""
import random

import numpy as np
import pytest

import truth.dynamics as dynamics
from asking import check_again, given, inline, refused
from tensors import encode_one, near

GENERATE = {"recursive": dynamics.recursive, "floater": dynamics.floater}


def weights(dim, hidden, seed=0, n_layers=2, time_input=False, scale=1.0):
    """Of a network dim → hidden → … → dim that neither explodes nor dies."""
    rng = np.random.default_rng(seed)
    widths = [dim] + [hidden] * (n_layers - 1) + [dim]
    out = {"p0": rng.standard_normal(dim)}
    for i, (n_in, n_out) in enumerate(zip(widths, widths[1:]), 1):
        out[f"w{i}"] = scale * rng.standard_normal((n_out, n_in + time_input)) / np.sqrt(n_in + 1)
        out[f"b{i}"] = 0.5 * rng.standard_normal(n_out)
    return out


def sent(tensors, dtype="f64"):
    return {name: inline(array, dtype) for name, array in tensors.items()}


# ---- recursive ---------------------------------------------------------------------------------------------------------


def test_recursive_by_hand(server):
    """One layer is linear: p, 2p + 1, 4p + 3, …"""
    table = encode_one(server, scheme="recursive", len=5, p0=[1, 0], w1=[[2, 0], [0, 2]], b1=[1, 1])
    assert table.dtype == np.float32
    assert table.tolist() == [[1, 0], [3, 1], [7, 3], [15, 7], [31, 15]]
    residual = encode_one(server, scheme="recursive", len=4, p0=[1, 0], w1=[[1, 0], [0, 1]], b1=[1, 1], residual=True)
    assert residual.tolist() == [[1, 0], [3, 1], [7, 3], [15, 7]]


@pytest.mark.parametrize("n_layers", [1, 2, 3, 4])
@pytest.mark.parametrize("residual", [False, True])
def test_recursive(server, n_layers, residual):
    w = weights(6, 9, seed=n_layers, n_layers=n_layers, scale=0.7)
    expected = dynamics.recursive(40, residual=residual, **w)
    fields = dict(scheme="recursive", len=40, residual=residual)
    near(encode_one(server, dtype="f64", **fields, **sent(w)), expected, 1e-11 * np.abs(expected).max())
    config = server.ask(**fields, **sent(w), data=False).json()["config"]
    assert config["activation"] == "tanh" and config["dim"] == 6


def test_recursive_in_f32(server):
    """A few ulp of the largest term a row; the contraction forgets older ones."""
    w = {name: a.astype("f4") for name, a in weights(8, 8, seed=5, scale=0.5).items()}
    table = encode_one(server, scheme="recursive", len=50, **sent(w, "f32"))
    assert table.dtype == np.float32
    near(table, dynamics.recursive(50, **w), 1e-5)


# ---- floater -----------------------------------------------------------------------------------------------------------


def still(dim, drift):
    """dp/dt = drift, whatever p and t."""
    return {"p0": np.ones(dim), "w1": np.zeros((dim, dim + 1)), "b1": np.zeros(dim), "w2": np.zeros((dim, dim + 1)), "b2": drift}


@pytest.mark.parametrize("method", list(dynamics.METHODS))
def test_a_constant_field_is_a_line(server, method):
    """p(t) = p0 + c t by every method."""
    drift = np.array([1.0, -2.0, 0.5])
    table = encode_one(server, scheme="floater", len=300, method=method, dtype="f64", **sent(still(3, drift)))
    near(table, 1 + 0.01 * np.arange(300)[:, None] * drift, 1e-12)


@pytest.mark.parametrize("method,error", [("rk4_38", 0), ("rk4", 0), ("midpoint", 0), ("euler", 0.5)])
def test_time_is_the_last_input_of_every_layer(server, method, error):
    """dp/dt = t, through the first layer's time or the second's: p0 + t²/2; Euler is behind by t s/2."""
    last = np.array([[0, 0, 1.0], [0, 0, 1.0]])
    first = {**still(2, np.zeros(2)), "w1": last, "w2": np.array([[1.0, 0, 0], [0, 1.0, 0]])}
    second = {**still(2, np.zeros(2)), "w2": last}
    t = 0.1 * np.arange(40)[:, None]
    expected = np.tile(1 + t * t / 2 - error * t * 0.02, 2)
    for w in (first, second):
        near(encode_one(server, scheme="floater", len=40, dt=0.1, method=method, dtype="f64", **sent(w)), expected, 1e-12)


@pytest.mark.parametrize("method", list(dynamics.METHODS))
@pytest.mark.parametrize("time_input", [True, False])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_floater(server, method, time_input, activation):
    w = weights(5, 7, seed=3, time_input=time_input)
    parameters = dict(method=method, time_input=time_input, activation=activation)
    table = encode_one(server, scheme="floater", len=100, dtype="f64", **parameters, **sent(w))
    near(table, dynamics.floater(100, **parameters, **w), 1e-11)


def test_floater_by_default(server):
    """The published model: 3/8 rule, dt 0.01 in five steps, ReLU, time in every layer, 255 rows."""
    w = {name: a.astype("f4") for name, a in weights(16, 16, seed=4, time_input=True).items()}
    expected = dynamics.floater(255, **w)
    near(encode_one(server, scheme="floater", len=255, **sent(w, "f32")), expected, 1e-4 * np.abs(expected).max())
    config = server.ask(scheme="floater", len=2, **sent(w), data=False).json()["config"]
    expected = {"dt": 0.01, "substeps": 5, "method": "rk4_38", "activation": "relu", "time_input": True, "dim": 16}
    assert expected.items() <= config.items()


def test_the_library_s_rk4_is_not_the_classic_one(server):
    """They differ by the order of 1e-8 here: visible in float64."""
    w = weights(6, 6, seed=8, time_input=True, scale=2)
    fields = dict(scheme="floater", len=60, dt=0.1, substeps=2, activation="tanh", dtype="f64", **sent(w))
    difference = np.abs(encode_one(server, method="rk4_38", **fields) - encode_one(server, method="rk4", **fields)).max()
    assert 1e-11 < difference < 1e-4


# ---- Rows far down -----------------------------------------------------------------------------------------------------

LONG = 30000


@pytest.mark.parametrize("scheme,time_input", [("recursive", False), ("floater", True)])
def test_a_run_that_starts_far_down(server, scheme, time_input):
    """Rows have their positions' values, to the bit, whatever rows were computed before: answers come in chunks."""
    w = sent({name: a.astype("f4") for name, a in weights(12, 12, seed=9, time_input=time_input, scale=0.5).items()}, "f32")
    whole = encode_one(server, scheme=scheme, len=LONG, **w)
    for first, n in ((1, 3), (255, 4), (4095, 3), (16383, 700), (LONG - 5, 5)):
        part = encode_one(server, scheme=scheme, offset=first, len=n, **w)
        assert part.tobytes() == whole[first:first + n].tobytes(), (first, n)
    listed = [LONG - 1, 0, 777, 777, 12345]
    assert encode_one(server, scheme=scheme, positions=listed, **w).tobytes() == whole[listed].tobytes()


# ---- Random combinations -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_random(server, seed):
    rng = random.Random(seed)
    scheme, dim, n = rng.choice(["recursive", "floater"]), rng.randint(1, 8), rng.randint(1, 30)
    if scheme == "recursive":
        parameters = given(activation=rng.choice([None, "relu"]), residual=rng.choice([None, True]))
        w = weights(dim, rng.randint(1, 9), seed, n_layers=rng.randint(1, 4), scale=0.5)
    else:
        time_input = rng.choice([None, False])
        parameters = given(method=rng.choice([None, *dynamics.METHODS]), dt=rng.choice([None, 0.2]), time_input=time_input,
                           substeps=rng.choice([None, 1, 3]), activation=rng.choice([None, "tanh"]))
        w = weights(dim, rng.randint(1, 9), seed, time_input=time_input is None)
    request = dict(scheme=scheme, len=n, dtype="f64", **parameters, **sent(w))
    table = encode_one(server, **request)
    expected = GENERATE[scheme](n, **parameters, **w)
    near(table, expected, 1e-11 * max(1, np.abs(expected).max()))
    check_again(server, request, ["len", "dtype", *w], {"encoding": table})


# ---- Refusals ----------------------------------------------------------------------------------------------------------

R = {"scheme": "recursive", "len": 3, "p0": [1, 2], "w1": [[1, 0], [0, 1], [1, 1]], "b1": [0, 0, 0],
     "w2": [[1, 0, 0], [0, 1, 0]], "b2": [0, 0]}
F = {**R, "scheme": "floater", "w1": [[0, 0, 0]] * 3, "w2": [[0, 0, 0, 0]] * 2}


def without(request, *names):
    return {name: value for name, value in request.items() if name not in names}


@pytest.mark.parametrize("request_", [R, F], ids=["recursive", "floater"])
def test_the_rows_below_start_from_good_ones(server, request_):
    assert encode_one(server, **request_).shape == (3, 2)


@pytest.mark.parametrize("pointers,fields", [
    (("/w1", "/p0"), {**R, "w1": [[1], [0], [1]]}),
    (("/w1", "/p0"), {**R, "w1": [1, 0]}),
    (("/b1", "/w1"), {**R, "b1": [0, 0]}),
    (("/w2", "/w1"), {**R, "w2": [[1, 0], [0, 1]]}),
    (("/w2", "/b2", "/p0"), {**R, "w2": [[1, 0, 0]], "b2": [0]}),  # ends in a width it did not start from
    (("/b2", "/w2", ""), without(R, "b2")),
    (("/w2", "/b2", "/w1", ""), without(R, "w2")),
    (("/p0", ""), without(R, "p0")),
    (("/p0", "/dim"), {**R, "dim": 3}),
    ("/p0", {**R, "p0": [[1, 2]]}),
    (("/w4", "/b4", "/w3", "/b3", ""), {**R, "w4": [[1, 0], [0, 1]], "b4": [0, 0]}),
    ("/activation", {**R, "activation": "rleu"}),
    ("/dt", {**R, "dt": 0.1}),
    ("/method", {**F, "method": "rk5"}),
    ("/substeps", {**F, "substeps": 0}),
    ("/w1", {**F, "w1": [[0, 0]] * 3}),  # time has no column
    ("/w2", {**F, "w2": [[0, 0, 0]] * 2}),
    ("/w1", {**F, "time_input": False}),
    ("/residual", {**F, "residual": True}),
    (("/positions", "/len"), {**without(R, "len"), "positions": [0.5]}),
    (("/positions", "/len"), {**without(R, "len"), "positions": [-1]}),
    ("/offset", {**R, "offset": -1}),
    (("/positions", "/len"), {**without(F, "len"), "positions": [-1]}),
    ("/positions", {**without(R, "len"), "positions": [2 ** 40 + 1]}),
    ("/offset", {**R, "offset": 2 ** 40}),
    ("/grid", {**without(R, "len"), "grid": [2, 2]}),
])
def test_refused(server, pointers, fields):
    refused(server, pointers, **fields)


@pytest.mark.parametrize("scheme", ["recursive", "floater"])
def test_no_weights_at_all(server, scheme):
    """The detail lists the three ways to send the weights."""
    refused(server, ("", "/p0", "/weights", "/scheme"), "weights", "seed", scheme=scheme, len=4)
