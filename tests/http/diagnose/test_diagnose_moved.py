"""/diagnose and axes in an order without a name: maps, biases and rotated tensors, transposed here by NumPy. `found` is what numpy.transpose
needs to give the tensor the configuration's axes."""
import numpy as np
import pytest

from diagnosing import codes_of, diagnose, finding
from test_errors import check_problem
from wrong_tensors import Tensor, inline

HEADS, N, D = 3, 10, 16
random = np.random.default_rng(11)
Q, K = (random.standard_normal((2, HEADS, N, D)).astype("f4").astype(float) for _ in range(2))


def rotated(x, base=1e4):
    angles = np.outer(np.arange(N), base ** (-np.arange(0, D, 2) / D))
    c, s = np.cos(angles), np.sin(angles)
    first, second = x[..., :D // 2], x[..., D // 2:]
    return np.concatenate([first * c - second * s, first * s + second * c], -1)


def scores(base=1e4):
    return np.einsum("bhid,bhjd->bhij", rotated(Q, base), rotated(K, base)) / np.sqrt(D)


def sent(x, order):
    """The tensor whose transposition by `order` is x."""
    return inline(Tensor(np.transpose(x, np.argsort(order)), "f32"))


def alibi(heads=4, causal=False):
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    bias = -slopes[:, None, None] * abs(np.arange(N)[:, None] - np.arange(N))
    return np.where(np.tri(N, dtype=bool), bias, -np.inf) if causal else bias


ROPE = {"scheme": "rope", "layout": "half"}


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (1, 2, 0, 3)])
@pytest.mark.parametrize("kind", ["scores", "probs"])
def test_maps(server, order, kind):
    s = scores()
    e = np.exp(s)
    numbers = s if kind == "scores" else e / e.sum(-1, keepdims=True)
    body = {**ROPE, "q": inline(Tensor(Q, "f32")), "k": inline(Tensor(K, "f32")), kind: sent(numbers, order)}
    response = server.post("/diagnose", body)
    answer, first = response.json(), response.json()["findings"][0]
    assert codes_of(answer) == ["axes_moved"] and answer["explained"], answer["findings"]
    assert first["pointer"] == f"/{kind}" and first["found"] == list(order)
    assert answer["candidates"][0]["transforms"] == [{"name": "axes_moved", "order": list(order)}]
    assert response.headers["Posenc-Fits"] == "?0"


def test_a_map_with_another_mistake(server):
    answer = diagnose(server, {**ROPE, "q": inline(Tensor(Q, "f32")), "k": inline(Tensor(K, "f32")), "scores": sent(scores(5e5), (0, 2, 1, 3))})
    assert codes_of(answer) == ["axes_moved", "base_other"] and finding(answer, "base_other")["found"] == 5e5


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 0, 2)])
def test_biases(server, order):
    body = {"scheme": "alibi", "num_heads": 4, "causal": True, "bias": sent(alibi(causal=True), order)}
    answer = diagnose(server, body)
    assert codes_of(answer) == ["axes_moved"] and answer["findings"][0]["found"] == list(order), answer["findings"]


def test_indices_are_those_of_the_tensor(server):
    bias = alibi()
    bias[1, 7, 2] = 5
    answer = diagnose(server, {"scheme": "alibi", "num_heads": 4, "bias": sent(bias, (2, 0, 1))})
    assert codes_of(answer) == ["axes_moved", "unexplained"] and answer["belief"]["first_bad"]["index"] == [7, 2, 1], answer["belief"]


@pytest.mark.parametrize("axes, order", [("bhdn", (0, 1, 3, 2)), ("bdhn", (0, 2, 3, 1)), ("dhn", (1, 2, 0))])
def test_rotated_tensors(server, axes, order):
    q, out = (x[0] if len(axes) == 3 else x for x in (Q, rotated(Q)))
    answer = diagnose(server, {**ROPE, "head_dim": D, "q": sent(q, order), "q_out": sent(out, order)})
    assert codes_of(answer) == ["axes_moved"] and answer["findings"][0]["found"] == list(order), answer["findings"]
    other = diagnose(server, {**ROPE, "layout": "interleaved", "head_dim": D, "q": sent(q, order), "q_out": sent(out, order)})
    assert codes_of(other) == ["axes_moved", "layout_swapped"]


def test_it_is_said_in_words(server):
    said = diagnose(server, {"scheme": "alibi", "num_heads": 4, "bias": sent(alibi(), (2, 0, 1))})["findings"][0]
    assert said["detail"] == "The axes of the tensor are in another order: axis i of what the configuration gives is axis found[i] of the tensor."
    assert "found[i]" in said["detail_zh"] and "轴" in said["detail_zh"]


@pytest.mark.parametrize("shape", [(2, 4, N, N), (2, HEADS, N, N + 1)])
def test_sizes_that_no_order_has_are_refused(server, shape):
    body = {**ROPE, "q": inline(Tensor(Q, "f32")), "k": inline(Tensor(K, "f32")), "scores": inline(Tensor(np.zeros(shape), "f32"))}
    check_problem(server.post("/diagnose", body), 422, "/scores", ["q and k give"])


def test_a_wrong_head_dim_is_no_order_of_axes(server):
    """The positions have an axis of their own, so the last one is the channels: 10 positions of 16 channels, believed 10."""
    x = inline(Tensor(Q, "f32"))
    check_problem(server.post("/diagnose", {**ROPE, "head_dim": N, "len": N, "q": x, "q_out": x}), 422, "/head_dim", ["16"])
