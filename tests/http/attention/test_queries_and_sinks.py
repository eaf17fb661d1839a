"""What multiplies and takes beside the tables: `query_scale` of /rotate and /attention, `sinks` of /attention. Truth is float64 NumPy."""
import numpy as np
import pytest

import truth.attention as attention_truth
from asking import refused
from attention_asking import attention, one, qkv
from tensors import rotate_files

NONE = {"scheme": "none"}
SINKS = [0.5, -1.0, 3.0, 0.0]


def with_sinks(scores, sinks):
    """probs = e^s/(sum of e^s + e^sink), in float64."""
    e = np.exp(scores)
    return e / (e.sum(-1, keepdims=True) + np.exp(np.asarray(sinks))[:, None, None])


def factor(rule, p, beta=0.1, length=8192):
    p = np.asarray(p, float)
    if rule == "logn":
        return np.maximum(1, np.log(p + 1) / np.log(length))
    return 1 + beta * np.log(1 + np.floor((p + (rule == "llama4")) / length))


# ---- Sinks -------------------------------------------------------------------------------------------------------------------


def test_the_documented_sink(server):
    """Two equal scores 0 and a sink 0: a third each."""
    answer = server.ask("/attention", scheme="none", q=[[0.0, 0]], k=[[0.0, 0], [0, 0]], sinks=[0], dtype="f64").json()
    np.testing.assert_allclose(answer["tensors"]["probs"]["data"], [[1 / 3, 1 / 3]], rtol=1e-15)
    assert answer["config"]["sinks"] == [0]


@pytest.mark.parametrize("dtype,tolerance", [("f8", 1e-14), ("f4", 1e-6)])
@pytest.mark.parametrize("scheme", [NONE, {"scheme": "rope"}, {"scheme": "alibi", "causal": True}])
def test_sinks(server, scheme, dtype, tolerance):
    q, k, v = qkv((2, 4, 7, 8), 2, 9, dtype=dtype)
    got = attention(server, {**scheme, "sinks": SINKS, "outputs": ["probs", "output", "row_entropy", "scores"]}, q=q, k=k, v=v)
    probs = with_sinks(got["scores"].astype(float), SINKS)
    np.testing.assert_allclose(got["probs"], probs, rtol=0, atol=tolerance)
    np.testing.assert_allclose(got["output"], probs @ np.repeat(v.astype(float), 2, 1), rtol=0, atol=8 * tolerance)
    np.testing.assert_allclose(got["row_entropy"], attention_truth.entropy(probs), rtol=0, atol=8 * tolerance)
    assert np.array_equal(got["scores"], one(server, scheme, "scores", q=q, k=k))


def test_a_sink_that_takes_all_and_one_that_takes_nothing(server):
    q, k, _ = qkv((1, 2, 3, 4))
    probs = one(server, {**NONE, "sinks": [1e6, -1e6]}, "probs", q=q, k=k)
    assert (probs[:, 0] == 0).all()
    np.testing.assert_allclose(probs[:, 1], attention_truth.attend(q, k)["probs"][:, 1], atol=1e-15)


def test_a_row_that_sees_nothing_is_zero(server):
    q, k, _ = qkv((1, 2, 3, 4))
    assert (one(server, {**NONE, "sinks": [1, 2], "key_mask": [0, 0, 0]}, "probs", q=q, k=k) == 0).all()


# ---- Queries -----------------------------------------------------------------------------------------------------------------

RULES = {
    "ministral": {"type": "ministral", "original_max_position_embeddings": 8192},
    "llama4": {"type": "llama4", "beta": 0.3},
    "logn": {"type": "logn", "original_max_position_embeddings": 2048},
}
AT = [0, 1, 2047, 2048, 4095, 8190, 8191, 8192, 16383, 40000]


def test_the_documented_factors():
    assert factor("ministral", 8191) == 1 and factor("ministral", 8192) == pytest.approx(1.0693147, abs=5e-8)
    assert factor("llama4", 8191) == pytest.approx(1.0693147, abs=5e-8) and factor("logn", 4095, length=2048) == pytest.approx(1.0909091, abs=5e-8)


def of_rule(rule):
    spec = RULES[rule]
    return factor(rule, AT, spec.get("beta", 0.1), spec.get("original_max_position_embeddings", 8192))[:, None]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype,tolerance", [("f8", 1e-14), ("f4", 6e-7), ("f2", 4e-3)])
@pytest.mark.parametrize("layout", ["bhnd", "bnhd"])
def test_rotated_queries(server, rule, dtype, tolerance, layout):
    """Queries are multiplied, also the channels that are not rotated; keys are not."""
    rng = np.random.default_rng(4)
    q, k = (rng.standard_normal((2, 3, len(AT), 8)).astype(dtype) for _ in range(2))
    if layout == "bnhd":
        q, k = q.swapaxes(1, 2), k.swapaxes(1, 2)
    ask = {"scheme": "rope", "rotary_dim": 4, "positions": AT, "tensor_layout": layout}
    plain = rotate_files(server, {**ask, "dtype": "f64"}, q=q, k=k)
    got = rotate_files(server, {**ask, "query_scale": RULES[rule]}, q=q, k=k)
    factors = of_rule(rule) if layout == "bhnd" else of_rule(rule)[:, None]
    np.testing.assert_allclose(got["q"].astype(float), plain["q"] * factors, rtol=0, atol=tolerance)
    assert np.array_equal(got["k"], rotate_files(server, ask, q=q, k=k)["k"])


def test_each_row_of_a_batch(server):
    q = np.ones((2, 1, 2, 2))
    at = np.array([[0, 8192], [16384, 5]])
    request = {"scheme": "rope", "positions": at.tolist(), "positions_layout": "batch"}
    plain = rotate_files(server, request, q=q)["q"]
    got = rotate_files(server, {**request, "query_scale": RULES["ministral"]}, q=q)["q"]
    np.testing.assert_allclose(got, plain * factor("ministral", at)[:, None, :, None], rtol=1e-14)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scheme", [NONE, {"scheme": "rope"}, {"scheme": "alibi"}])
def test_scores(server, rule, scheme):
    q, k, _ = qkv((2, 4, len(AT), 8), 2)
    where = {} if scheme == NONE else {"q_positions": AT, "k_positions": AT}
    if scheme == NONE:
        where = {"positions": AT}
    request = {**scheme, **where, "query_scale": RULES[rule]}
    plain = one(server, {**scheme, **where}, "scores", q=q, k=k)
    bias = 0 if scheme != {"scheme": "alibi"} else plain - attention_truth.attend(q, k)["scores"]
    np.testing.assert_allclose(one(server, request, "scores", q=q, k=k), (plain - bias) * of_rule(rule) + bias, rtol=0, atol=1e-9)
    got = one(server, request, "probs", q=q.astype("f4"), k=k.astype("f4"))
    np.testing.assert_allclose(got, attention_truth.softmax((plain - bias) * of_rule(rule) + bias), atol=2e-6)


def test_the_config_states_it(server):
    q = np.ones((1, 1, 2, 2), "f4").tolist()
    rule = {"type": "llama4"}
    whole = {"type": "llama4", "beta": 0.1, "original_max_position_embeddings": 8192}
    assert server.ask("/rotate", scheme="rope", q=q, query_scale=rule).json()["config"]["query_scale"] == whole
    assert server.ask("/attention", scheme="rope", q=q, k=q, query_scale=rule).json()["config"]["query_scale"] == whole
    assert server.ask("/attention", scheme="rope", q=q, k=q, query_scale=RULES["logn"]).json()["config"]["query_scale"] == RULES["logn"]
    assert "query_scale" not in server.ask("/rotate", scheme="rope", q=q).json()["config"]


Q2 = [[1.0, 2], [3, 4]]
BAD = [
    ("/attention", "/sinks", ["2", "3"], dict(scheme="none", q=[Q2] * 3, k=[Q2] * 3, sinks=[0, 1])),
    ("/attention", "/sinks", ["linear"], dict(scheme="none", q=Q2, k=Q2, sinks=[0], kernel="linear")),
    ("/attention", "/query_scale", ["linear"], dict(scheme="none", q=Q2, k=Q2, query_scale={"type": "llama4"}, kernel="linear")),
    ("/rotate", "/query_scale/type", ["ministral", "llama4", "logn"], dict(scheme="rope", q=Q2, query_scale={})),
    ("/rotate", "/query_scale/type", ["ministral"], dict(scheme="rope", q=Q2, query_scale={"type": "qwen"})),
    ("/rotate", "/query_scale/original_max_position_embeddings", ["ministral"], dict(scheme="rope", q=Q2, query_scale={"type": "ministral"})),
    ("/rotate", "/query_scale/beta", ["logn"], dict(scheme="rope", q=Q2, query_scale={"type": "logn", "beta": 1, "original_max_position_embeddings": 9})),
    ("/rotate", "/query_scale", ["-1"], dict(scheme="rope", q=Q2, offset=-1, query_scale={"type": "llama4"})),
    ("/rotate", "/query_scale", ["2"], dict(scheme="rope", head_dim=4, q=[[1.0, 2, 3, 4]] * 4, grid=[2, 2], query_scale={"type": "llama4"})),
    ("/encode", "/query_scale", ["attention"], dict(scheme="rope", len=2, query_scale={"type": "llama4"})),
]


@pytest.mark.parametrize("path, pointer, words, fields", BAD)
def test_refused(server, path, pointer, words, fields):
    refused(server, pointer, *words, path=path, **fields)
