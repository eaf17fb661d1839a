"""POST /attention beyond one answer: files as masks, tables that are not kept, the shapes of a model, memory, workers, the list of schemes."""
import http.client
import json

import numpy as np
import pytest

import attention_drawn
import truth.answers_attention  # puts /attention into OF
import truth.attention as attention_truth
from asking import refused
from attention_asking import attention, one, qkv
from conftest import SANITIZED, start_server
from tensors import multipart, npy
from truth.answers import OF

NONE = {"scheme": "none"}


def test_files_may_be_masks_and_whole_numbers(server):
    q, mask = np.array([[[[1, 2], [3, 4], [0, 1]]], [[[5, 1], [2, 2], [1, 0]]]]), np.array([[1, 0, 1], [0, 1, 1]], bool)
    expected = attention_truth.attend(q, q, visible=attention_truth.seen(range(3), range(3), key_mask=mask))["probs"]
    np.testing.assert_allclose(attention(server, NONE, q=q, k=q, key_mask=mask)["probs"], expected, atol=1e-6)


def test_so_many_keys_that_their_angles_are_not_kept(server):
    """Cosines and sines of 70,000 positions and 64 pairs take more than 64 MiB; the scores turn rows as they come."""
    random = np.random.default_rng(4)
    q, k = random.standard_normal((1, 1, 1, 128)), random.standard_normal((1, 1, 70_000, 128)).astype("f2")
    angles = np.arange(70_000)[:, None] * 10000.0 ** (-np.arange(64) / 64)
    z = (k[0, 0, :, :64] + 1j * k[0, 0, :, 64:].astype(float)) * np.exp(1j * angles)
    w = (q[0, 0, 0, :64] + 1j * q[0, 0, 0, 64:]) * np.exp(1j * angles[-1])
    expected = np.concatenate([z.real, z.imag], -1) @ np.concatenate([w.real, w.imag]) / np.sqrt(128)
    request = {"scheme": "rope", "layout": "half", "k_len": 70_000, "q_len": 1}
    np.testing.assert_allclose(one(server, request, "scores", q=q.astype("f4"), k=k)[0, 0, 0], expected, atol=2e-4)


FAST = ("shaw", "cope")


@pytest.mark.skipif(SANITIZED, reason="minutes under a sanitizer")
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in (
    *FAST, "none", "alibi", "t5", "kerple", "sandwich", "transformer_xl", "xlnet", "conformer", "deberta")])
def test_2048_positions_and_16_heads(server, name):
    """[1, 16, 2048, 64] from .npy parts; output and entropies of all rows are computed, some rows are compared."""
    random, rows, n = np.random.default_rng(2), [0, 1, 700, 2047], 2048
    shape = attention_drawn.Shape(random)
    shape.batch, shape.kv, shape.heads, shape.q_len, shape.k_len, shape.d = 1, 16, 16, n, n, 64
    parameters = {} if name == "none" else attention_drawn.SCHEMES[name](random, shape)
    request = {"scheme": name, **{key: value for key, value in parameters.items() if key not in ("same_length", "mem_len", "causal")}, "outputs": ["output", "row_entropy"]}
    q, k, v = qkv((1, 16, n, 64), dtype="f4")
    got = attention(server, request, q=q, k=k, v=v)
    few = {"q": q[:, :, rows], "k": k, "v": v, "q_positions": rows, "k_positions": range(n)}
    expected = OF["/attention"]({**request, **few})
    assert np.abs(got["output"][:, :, rows] - expected["output"]).max() <= 1e-5
    assert np.abs(got["row_entropy"][:, :, rows] - expected["row_entropy"]).max() <= 1e-4


def test_which_schemes_have_terms(server):
    for scheme in server.get("/schemes").json()["schemes"]:
        listed = {output["name"]: output for output in scheme["attention"]["outputs"]}
        assert ("terms" in listed) == (scheme["family"] in ("absolute", "relative")), scheme["name"]
        if "terms" in listed:
            assert listed["terms"]["axes"] == ["term", "batch", "head", "query", "key"] and listed["terms"]["default"] is False
        else:
            rows = [[1.0, 2.0]] * (2 if scheme["name"] == "beit" else 1)  # a class token and one patch
            refused(server, "/outputs", "terms", path="/attention", scheme=scheme["name"], outputs=["terms"], q=rows, k=rows,
                    **({"grid": [1, 1]} if scheme["name"] in ("swin", "swinv2", "beit") else {}), **({"seed": 0} if any(row["name"] == "seed" for row in scheme["parameters"]) else {}))


def test_too_much_projecting_is_refused_before_it_is_done(server):
    """2^13 · 2^12 · 2^13 · 2 products."""
    zeros, before = npy(np.zeros((1 << 13, 1 << 12), "f2")), server.processor()
    response = server.post("/attention", *multipart(request=json.dumps({**NONE, "num_heads": 64}), x=zeros, w_q=zeros, w_k=zeros))
    assert response.status == 413 and "multiplications" in response.json()["detail"] and response.json()["pointer"] == "/x"
    assert server.processor() - before < 5


# ---- Large -----------------------------------------------------------------------------------------------------------------


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


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is not the server's")
@pytest.mark.parametrize("n_bytes", [1 << 30, pytest.param(16 << 30, marks=pytest.mark.slow)])
def test_a_map_of_16_gib_streams_in_little_memory(n_bytes):
    """[1, 16, 16384, 16384]: its first rows are compared; inputs of 128 MiB included."""
    q, k, _ = qkv((1, 16, 16384, 64), dtype="f4")
    body, headers = multipart(request=json.dumps({"scheme": "alibi", "causal": True, "format": "raw"}), q=npy(q), k=npy(k))
    with start_server() as server:
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
        assert server.memory() < 256 << 20
    got, bias = np.frombuffer(first, "<f4").reshape(40, 16384), -2.0 ** -0.5 * np.abs(np.subtract.outer(range(40), range(16384)))
    expected = attention_truth.attend(q[:, :1, :40], k[:, :1], bias=bias, visible=np.tril(np.ones((40, 16384), bool)))["probs"][0, 0]
    assert np.abs(got - expected).max() <= 1e-6
