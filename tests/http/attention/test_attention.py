"""POST /attention without positions: softmax, masks, heads, layouts, inputs, outputs, precision, formats, refusals."""
import http.client
import json
import time

import numpy as np
import pytest

import truth.attention as attention_truth
from asking import refused
from attention_asking import attention, bottom_right, one, qkv
from conftest import SANITIZED, start_server
from truth.absolute import seeded
from tensors import from_json, from_npy, from_raw, from_safetensors, multipart, npy

NONE = {"scheme": "none"}
SHAPES = [((2, 4, 5, 8), 2, 9), ((1, 1, 1, 1), 1, 1), ((1, 3, 7, 16), 3, 1), ((1, 2, 9, 4), 1, 3), ((1, 6, 1, 64), 2, 300),
          ((1, 1, 300, 32), 1, 300), ((1, 5, 131, 3), 5, 129)]


@pytest.mark.parametrize("shape,kv_heads,k_len", SHAPES)
@pytest.mark.parametrize("dtype,tolerance", [("f8", 1e-13), ("f4", 1e-6)])
def test_every_output(server, shape, kv_heads, k_len, dtype, tolerance):
    q, k, v = qkv(shape, kv_heads, k_len, v_dim=shape[3] + 1, dtype=dtype)
    expected = attention_truth.attend(q, k, v)
    got = attention(server, {**NONE, "outputs": ["output", "row_entropy", "probs", "scores"]}, q=q, k=k, v=v)
    assert list(got) == ["output", "row_entropy", "probs", "scores"]
    for name in got:
        assert got[name].dtype == q.dtype and got[name].shape == expected[name].shape
        np.testing.assert_allclose(got[name], expected[name], rtol=0, atol=tolerance * (8 if name != "probs" else 1))
    assert abs(got["probs"].sum(-1, dtype="f8") - 1).max() <= 1e-6


@pytest.mark.parametrize("size", [3.0, 5.0])
def test_logits_up_to_a_hundred(server, size):
    q, k, _ = qkv((1, 2, 150, 64), size=size, dtype="f4", seed=3)
    expected = attention_truth.attend(q, k)
    assert np.abs(expected["scores"]).max() > 25
    probs = one(server, NONE, "probs", q=q, k=k)
    assert np.abs(probs - expected["probs"]).max() <= 1e-6
    assert abs(probs.sum(-1, dtype="f8") - 1).max() <= 1e-6


def test_two_large_logits_that_nearly_agree(server):
    """Logits that f32 cannot distinguish: 100 and 100 + 1e-5."""
    q = np.array([[10.0, 1.0]], "f4")
    k = np.array([[10.0, 0.0], [10.0, 1e-5], [9.0, 0]], "f4")
    expected = attention_truth.attend(q[None, None], k[None, None], scale=1)["probs"][0, 0]
    assert np.abs(one(server, {**NONE, "softmax_scale": 1}, "probs", q=q, k=k) - expected).max() <= 1e-7


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_the_answer_has_the_dtype_of_q(server, dtype):
    q, k, v = qkv((1, 2, 6, 8), dtype=dtype)
    got = one(server, NONE, "output", q=q, k=k, v=v)
    assert got.dtype == q.dtype
    np.testing.assert_allclose(got, attention_truth.attend(q, k, v)["output"], atol={"f2": 2e-3, "f4": 1e-6, "f8": 1e-14}[dtype])
    assert one(server, {**NONE, "dtype": "f64"}, "probs", q=q, k=k).dtype == np.float64


def test_integers_are_numbers(server):
    q = np.array([[1, 2], [3, 4]])
    np.testing.assert_allclose(one(server, NONE, "probs", q=q, k=q), attention_truth.attend(q[None, None], q[None, None])["probs"][0, 0],
                               atol=1e-6)


# ---- Masks -----------------------------------------------------------------------------------------------------------------

MASKS = [{"causal": True}, {"window": 3}, {"window": 1}, {"causal": True, "window": 2}, {"window": 4, "window_right": 1},
         {"window_right": 0}, {"causal": True, "window_right": 5}, {"key_mask": [0, 1, 1, 0, 1, 1, 1, 1, 0]},
         {"key_mask": [0] * 9}, {"key_mask": [[1] * 9, [0, 0, 0, 0, 0, 1, 1, 1, 1]], "causal": True},
         {"key_mask": [0, 0, 0, 0, 0, 0, 1, 1, 1], "causal": True, "window": 2}]
PLACES = [(5, {}, None), (9, {}, None), (5, {"q_offset": 0}, range(5)), (3, {"q_offset": -2}, range(-2, 1)),
          (4, {"q_offset": 30}, range(30, 34)), (1, {}, None)]


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("q_len,place,q_pos", PLACES)
def test_masks(server, mask, q_len, place, q_pos):
    q, k, v = qkv((2, 2, q_len, 4), 1, 9)
    visible = attention_truth.seen(q_pos or bottom_right(q_len, 9)[0], range(9), **mask)
    expected = attention_truth.attend(q, k, v, visible=visible)
    got = attention(server, {**NONE, **mask, **place, "outputs": ["scores", "probs", "output", "row_entropy"]}, q=q, k=k, v=v)
    for name in got:
        hidden = np.isneginf(expected[name])
        assert np.array_equal(np.isneginf(got[name]), hidden)
        np.testing.assert_allclose(got[name][~hidden], expected[name][~hidden], atol=1e-13)
    body = server.post("/attention", {**NONE, **mask, **place, "q": q.tolist(), "k": k.tolist(), "data": False}).json()
    assert body["empty_rows"] == expected["empty_rows"]


@pytest.mark.parametrize("mask", MASKS[:7], ids=str)
def test_masks_of_listed_positions(server, mask):
    q, k, _ = qkv((1, 2, 4, 4), 2, 6)
    q_pos, k_pos = [3, 0.5, 9, -2], [1, 7, 2.25, 3, -5, 0]
    expected = attention_truth.attend(q, k, visible=attention_truth.seen(q_pos, k_pos, **mask))
    request = {**NONE, **mask, "q_positions": q_pos, "k_positions": k_pos}
    np.testing.assert_allclose(one(server, request, "probs", q=q, k=k), expected["probs"], atol=1e-13)
    assert server.post("/attention", {**request, "q": q.tolist(), "k": k.tolist()}).json()["empty_rows"] == expected["empty_rows"]


@pytest.mark.parametrize("lens", [[3, 4], [1, 1, 5], [7], [2, 2, 2, 1]])
@pytest.mark.parametrize("mask", [{}, {"causal": True}, {"window": 2}, {"key_mask": [1, 0, 1, 1, 1, 0, 1]}], ids=str)
def test_packed_sequences_do_not_see_each_other(server, lens, mask):
    q, k, v = qkv((2, 2, 7, 4))
    places = [i for n in lens for i in range(n)]
    expected = attention_truth.attend(q, k, v, visible=attention_truth.seen(places, places, lens=lens, **mask))
    got = attention(server, {**NONE, **mask, "lens": lens, "outputs": ["probs", "output"]}, q=q, k=k, v=v)
    np.testing.assert_allclose(got["probs"], expected["probs"], atol=1e-13)
    np.testing.assert_allclose(got["output"], expected["output"], atol=1e-13)


def test_a_mask_may_be_a_file(server):
    q, k, _ = qkv((2, 1, 3, 4))
    mask = np.array([[1, 0, 1], [0, 1, 1]], bool)
    np.testing.assert_allclose(attention(server, NONE, q=q, k=k, key_mask=mask)["probs"],
                               attention_truth.attend(q, k, visible=attention_truth.seen(range(3), range(3), key_mask=mask))["probs"], atol=1e-13)


def test_values_that_are_no_numbers_do_not_leak(server):
    q, k, v = qkv((1, 1, 3, 2))
    v[0, 0, 2] = np.nan, np.inf
    got = one(server, {**NONE, "causal": True}, "output", q=q, k=k, v=v)
    assert np.isfinite(got[0, 0, :2]).all() and np.isnan(got[0, 0, 2, 0])


# ---- Scale, cap --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{"softmax_scale": 1.0}, {"softmax_scale": -0.3}, {"softcap": 2.5}, {"softcap": 50.0, "softmax_scale": 3.0}])
def test_scale_and_cap(server, fields):
    q, k, _ = qkv((1, 2, 40, 8))
    for dtype, tolerance in (("f8", 1e-13), ("f4", 1e-6)):
        expected = attention_truth.attend(q.astype(dtype), k.astype(dtype), scale=fields.get("softmax_scale"), softcap=fields.get("softcap"))
        for name in ("scores", "probs"):
            got = one(server, {**NONE, **fields}, name, q=q.astype(dtype), k=k.astype(dtype))
            np.testing.assert_allclose(got, expected[name], atol=tolerance * (1 if name == "probs" else 20))


# ---- Shapes and layouts --------------------------------------------------------------------------------------------------------


def test_leading_axes_that_are_missing_are_missing_in_the_answer(server):
    q, k, v = qkv((1, 1, 3, 4))
    whole = attention(server, {**NONE, "outputs": ["probs", "output", "row_entropy"]}, q=q, k=k, v=v)
    for missing in (1, 2):
        cut = [a.reshape(a.shape[missing:]) for a in (q, k, v)]
        part = attention(server, {**NONE, "outputs": ["probs", "output", "row_entropy"]}, q=cut[0], k=cut[1], v=cut[2])
        for name, array in part.items():
            assert array.shape == whole[name].shape[missing:] and np.array_equal(array, whole[name].reshape(array.shape))


@pytest.mark.parametrize("rank", [4, 3])
def test_layout_bnhd(server, rank):
    q, k, v = qkv((2 if rank == 4 else 1, 4, 150, 8), 2, 70, dtype="f4")
    turn = lambda a: np.ascontiguousarray(a.swapaxes(1, 2)).reshape(a.swapaxes(1, 2).shape[4 - rank:])
    names = ["probs", "output", "row_entropy"]
    plain = attention(server, {**NONE, "outputs": names}, q=q, k=k, v=v)
    other = attention(server, {**NONE, "outputs": names, "tensor_layout": "bnhd"}, q=turn(q), k=turn(k), v=turn(v))
    for name in names:
        expected = turn(plain[name]) if name == "output" else plain[name].reshape(plain[name].shape[4 - rank:])
        np.testing.assert_allclose(other[name], expected, atol=1e-6)


@pytest.mark.parametrize("memory", ["nbhd", "nhd", "flat", "bflat"])
def test_memory_layouts(server, memory):
    """70 queries of 4 heads, 150 keys of 2; the maps have [batch, heads, q, k] in every layout, the output the layout that came."""
    q, k, v = qkv((2 if memory in ("nbhd", "bflat") else 1, 4, 150, 8), 2, 70, dtype="f4")
    turn = {"nbhd": lambda a: a.transpose(2, 0, 1, 3), "nhd": lambda a: a[0].transpose(1, 0, 2),
            "flat": lambda a: a[0].transpose(1, 0, 2).reshape(a.shape[2], -1),
            "bflat": lambda a: a.transpose(0, 2, 1, 3).reshape(len(a), a.shape[2], -1)}[memory]
    names = ["probs", "output", "row_entropy"]
    request = {"scheme": "rope", "causal": True, "outputs": names, "head_dim": 8}
    plain = attention(server, request, q=q, k=k, v=v)
    other = attention(server, {**request, "tensor_layout": memory}, **{name: np.ascontiguousarray(turn(a)) for name, a in (("q", q), ("k", k), ("v", v))})
    for name in names:
        expected = turn(plain[name]) if name == "output" else plain[name] if memory in ("nbhd", "bflat") else plain[name][0]
        assert other[name].shape == expected.shape
        np.testing.assert_allclose(other[name], expected, atol=1e-6)


def test_formats_agree(server):
    q, k, _ = qkv((1, 2, 5, 4), dtype="f4")
    request = {**NONE, "causal": True, "key_mask": [0, 1, 1, 1, 1], "q": q.tolist(), "k": k.tolist()}
    ask = lambda form: server.ask("/attention", **request, format=form)
    raw = from_raw(ask("raw"))["probs"]
    assert np.array_equal(from_npy(ask("npy")), raw)
    assert np.array_equal(from_json(ask("json"))["probs"], raw)
    assert np.array_equal(from_safetensors(ask("safetensors"))["probs"], raw)
    assert b'"empty_rows":"2"' in ask("safetensors").body and ask("json").json()["empty_rows"] == 2


def test_the_config_posted_again_is_the_same(server):
    q, k, _ = qkv((2, 2, 5, 4), dtype="f4")
    request = {**NONE, "causal": True, "window": 3, "softcap": 4.0, "softmax_scale": 0.7, "key_mask": [[1, 1, 0, 1, 1], [1, 0, 1, 1, 1]]}
    config = server.ask("/attention", **request, q=q.tolist(), k=k.tolist(), data=False).json()["config"]
    assert config["softmax_scale"] == 0.7 and config["num_heads"] == 2 and config["head_dim"] == 4
    assert np.array_equal(attention(server, config, q=q, k=k)["probs"], attention(server, request, q=q, k=k)["probs"])


def test_published_example(server):
    """The example of two queries, to the letter but for the config."""
    answer = server.ask("/attention", scheme="none", q=[[1, 0], [0, 1]], k=[[1, 0], [0, 1]], softmax_scale=1).json()
    assert answer["tensors"] == {"probs": {"dtype": "f32", "shape": [2, 2], "data": [[0.7310586, 0.26894143], [0.26894143, 0.7310586]]}}
    assert answer["scheme"] == "none" and answer["empty_rows"] == 0


def test_any_cut_of_a_long_answer_is_the_same(server):
    """JSON comes in other pieces than raw bytes, one output in others than four."""
    q, k, v = qkv((2, 2, 300, 16), 1, 513, dtype="f4")
    names = ["scores", "output", "probs", "row_entropy"]
    together = attention(server, {**NONE, "outputs": names}, q=q, k=k, v=v)
    for name in names:
        assert np.array_equal(one(server, NONE, name, q=q, k=k, v=v), together[name])
    body, headers = multipart(request=json.dumps({**NONE, "format": "json"}), q=npy(q), k=npy(k))
    assert np.array_equal(from_json(server.post("/attention", body, headers))["probs"], together["probs"])


# ---- Embeddings ----------------------------------------------------------------------------------------------------------------


def projected(x, w, b, heads):
    y = x @ w.T.astype(float) + (0 if b is None else b)
    return y.reshape(*x.shape[:-1], heads, -1).swapaxes(-3, -2)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("kv_heads,bias", [(4, False), (2, True), (1, True)])
@pytest.mark.parametrize("dtype,tolerance", [("f8", 1e-12), ("f4", 2e-6)])
def test_x_is_projected(server, lead, kv_heads, bias, dtype, tolerance):
    rng = np.random.default_rng(2)
    draw = lambda *s: rng.standard_normal(s).astype(dtype)
    x, w_q, w_k, w_v = draw(*lead, 7, 12), draw(4 * 6, 12), draw(kv_heads * 6, 12), draw(kv_heads * 6, 12)
    b = {"b_q": draw(24), "b_k": draw(kv_heads * 6), "b_v": draw(kv_heads * 6)} if bias else {}
    q, k, v = (projected(x.astype(float), w, b.get(n), h).reshape(-1, h, 7, 6)
               for w, n, h in ((w_q, "b_q", 4), (w_k, "b_k", kv_heads), (w_v, "b_v", kv_heads)))
    expected = attention_truth.attend(q, k, v)
    request = {**NONE, "num_heads": 4, "outputs": ["probs", "output"]}
    got = attention(server, request, x=x, w_q=w_q, w_k=w_k, w_v=w_v, **b)
    for name in got:
        np.testing.assert_allclose(got[name], expected[name].reshape(*lead, *expected[name].shape[1:]), atol=tolerance * 4)


def test_projections_of_a_seed(server):
    x = np.random.default_rng(0).standard_normal((5, 16))
    w_q, w_k = (seeded(name, (16, 16), 7, 0.1).astype(float) for name in ("w_q", "w_k"))
    expected = attention_truth.attend(projected(x, w_q, None, 2)[None], projected(x, w_k, None, 2)[None])["probs"][0]
    np.testing.assert_allclose(attention(server, {**NONE, "num_heads": 2, "seed": 7}, x=x)["probs"], expected, atol=1e-13)


# ---- Refusals ---------------------------------------------------------------------------------------------------------------------

Q2 = [[1, 0], [0, 1]]
REFUSED = [
    (dict(q=Q2), "/k", "missing"), (dict(k=Q2), "/q", "missing"), (dict(), "/q", "tokens"),
    (dict(q=Q2, k=[[1, 2, 3]]), "/k", "[1,3], q [2,2]"), (dict(q=[Q2, Q2, Q2], k=[Q2, Q2]), "/k", "[2,2,2], q [3,2,2]"),
    (dict(q=[[Q2], [Q2]], k=[[Q2]]), "/k", "[1,1,2,2], q [2,1,2,2]"), (dict(q=[Q2], k=Q2), "/k", "[2,2], q [1,2,2]"),
    (dict(q=Q2, k=Q2, v=[[1]]), "/v", "[1,1], k [2,2]"), (dict(q=Q2, k=Q2, outputs=["output"]), "/outputs", "v"),
    (dict(q=Q2, k=Q2, outputs=["probz"]), "/outputs/0", 'nearest: "probs"'), (dict(q=Q2, k=Q2, window=0), "/window", "1"),
    (dict(q=Q2, k=Q2, window=-3), "/window", "1"), (dict(q=Q2, k=Q2, lens=[1, 2]), "/lens", "3"), (dict(q=Q2, k=Q2, lens=[2, 0]), "/lens", "1"),
    (dict(q=Q2, k=Q2, key_mask=[1, 1, 1]), "/key_mask", "2"), (dict(q=[[Q2], [Q2]], k=[[Q2], [Q2]], key_mask=[[1, 1]]), "/key_mask", "[2,2]"),
    (dict(q=Q2, k=Q2, num_heads=2), "/num_heads", "1"), (dict(q=Q2, k=Q2, len=3), "/len", "2"), (dict(q=Q2, k=Q2, softcap=0), "/softcap", "softcap"),
    (dict(q=Q2, k=Q2, kernel="linear", outputs=["scores"]), "/outputs/0", "weights"), (dict(q=Q2, k=Q2, kernel="linear", softmax_scale=1), "/softmax_scale", "linear"),
    (dict(x=Q2, num_heads=1, w_q=Q2 + [[1, 1]], w_k=Q2), "/w_k", "divide"), (dict(x=Q2, num_heads=2, w_q=Q2 + [[1, 1]], w_k=Q2), "/w_q", "3 rows"), (dict(x=Q2), "/num_heads", "divide"), (dict(tokens=["a"], num_heads=7), "/num_heads", "512"), (dict(x=Q2, num_heads=1), "/w_q", "seed"), (dict(x=Q2, num_heads=1, w_q=Q2, w_k=[[1, 2], [3, 4], [5, 6]]), "/w_k", "[3,2]"),
    (dict(x=Q2, num_heads=1, w_q=[[1, 2, 3]] * 2, w_k=Q2), "/w_q", "[2,2]"), (dict(x=Q2, q=Q2, k=Q2), "/x", "one of"),
    (dict(tokens=["a"], q=Q2, k=Q2), "/tokens", "one of"), (dict(q=Q2, k=Q2, w_q=Q2), "/w_q", "not used"), (dict(q=Q2, k=Q2, table=Q2), "/table", "unknown"),
    (dict(q=Q2, k=Q2, seed=1), "/seed", "random"), (dict(x=Q2, num_heads=1, w_q=Q2, w_k=Q2, seed=1), "/seed", "random"),
    (dict(q="abc", k=Q2), "/q", "tensor"), (dict(q=[], k=Q2), "/q", ""), (dict(tokens=[]), "/tokens", "word"), (dict(tokens=[1]), "/tokens", "word"),
    (dict(q=Q2, k=Q2, softmax_scal=1), "/softmax_scal", "softmax_scale"),
]


@pytest.mark.parametrize("fields,pointer,word", REFUSED, ids=str)
def test_refused(server, fields, pointer, word):
    refused(server, pointer, word, path="/attention", scheme="none", **fields)


def test_too_much_work_is_413(server):
    """Ten million queries and keys would be 10^14 pairs; sizes alone say so."""
    q = np.zeros((1 << 20, 16), "f2")
    body, headers = multipart(request=json.dumps(NONE), q=npy(q), k=npy(q))
    response = server.post("/attention", body, headers)
    assert response.status == 413 and ("--max-work" in response.json()["detail"] or "--max-answer" in response.json()["detail"])
    response = server.post("/attention", *multipart(request=json.dumps({**NONE, "outputs": ["row_entropy"]}), q=npy(q), k=npy(q)))
    assert response.status == 413 and "--max-work" in response.json()["detail"] and "multiplications" in response.json()["detail"]


def test_too_much_projecting_is_413(server):
    """Refused before it is done: 2^13 · 2^12 · 2^13 · 2 products."""
    x, w = np.zeros((1 << 13, 1 << 12), "f2"), np.zeros((1 << 13, 1 << 12), "f2")
    before = sum(server.threads().values())
    response = server.post("/attention", *multipart(request=json.dumps({**NONE, "num_heads": 64}), x=npy(x), w_q=npy(w), w_k=npy(w)))
    assert response.status == 413 and "multiplications" in response.json()["detail"] and response.json()["pointer"] == "/x"
    assert sum(server.threads().values()) - before < 5


# ---- Large ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is not the server's")
def test_output_alone_keeps_no_map():
    """N = 16384: a map of one head would be 1 GiB; inputs are 12 MiB."""
    q, k, v = qkv((1, 1, 16384, 64), dtype="f4")
    with start_server() as server:
        got = one(server, {**NONE, "causal": True}, "output", q=q, k=k, v=v)
        assert server.memory() < 96 << 20
    for i in (0, 1, 5000, 16383):
        expected = attention_truth.attend(q[:, :, i:i + 1], k[:, :, :i + 1], v[:, :, :i + 1])["output"]
        assert np.abs(got[:, :, i:i + 1] - expected).max() < 1e-5


def test_any_number_of_workers_gives_the_same_bytes():
    q, k, v = qkv((2, 3, 300, 16), 1, 513, dtype="f4")
    request = {"scheme": "alibi", "causal": True, "outputs": ["probs", "output"]}
    answers = []
    for workers in ("1", "2", "5"):
        with start_server("--workers", workers) as server:
            answers.append(attention(server, request, q=q, k=k, v=v))
    for other in answers[1:]:
        assert all(other[name].tobytes() == array.tobytes() for name, array in answers[0].items())


def stream_map(server, n_bytes):
    """Reads the first bytes of a map of 16 GiB, [1, 16, 16384, 16384], and compares its first rows."""
    q, k, _ = qkv((1, 16, 16384, 64), dtype="f4")
    body, headers = multipart(request=json.dumps({"scheme": "alibi", "causal": True, "format": "raw"}), q=npy(q), k=npy(k))
    connection = http.client.HTTPConnection(server.host, server.port, timeout=120)
    connection.request("POST", "/attention", body, headers)
    answer = connection.getresponse()
    assert answer.status == 200 and int(answer.headers["Content-Length"]) == 16 << 30
    first, read = answer.read(40 * 16384 * 4), 40 * 16384 * 4
    while read < n_bytes:
        piece = answer.read(4 << 20)
        assert piece
        read += len(piece)
    connection.close()
    got = np.frombuffer(first, "<f4").reshape(40, 16384)
    bias = -2.0 ** -0.5 * np.abs(np.subtract.outer(range(40), range(16384)))
    visible = np.tril(np.ones((40, 16384), bool))
    expected = attention_truth.attend(q[:, :1, :40], k[:, :1], bias=bias, visible=visible)["probs"][0, 0]
    assert np.abs(got - expected).max() <= 1e-6


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is not the server's")
def test_a_map_of_16_gib_streams_in_little_memory():
    """Its first gigabyte; inputs of 128 MiB included. The whole of it: the test below."""
    with start_server() as server:
        stream_map(server, 1 << 30)
        assert server.memory() < 256 << 20


@pytest.mark.slow
def test_all_of_a_map_of_16_gib():
    with start_server() as server:
        stream_map(server, 16 << 30)
        assert server.memory() < 256 << 20
