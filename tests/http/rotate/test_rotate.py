"""POST /rotate: every input and output format, layouts, partial rotation, shapes, dtypes."""
import json
import subprocess

import numpy as np
import pytest

import truth
import safetensors_reader
from tensors import from_json, from_safetensors, multipart, npy, rotate_files

LAYOUTS = ["interleaved", "half"]


def normal(*shape, seed=0, dtype="f4"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def near(got, expected, tolerance=1e-6):
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.astype(float), expected, rtol=0, atol=tolerance)


# ---- Tables and tensors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("extra", [{}, {"attention_factor": 1.2}, {"arith": "float32"}, {"offset": 100_000}], ids=json.dumps)
def test_f32_is_what_our_own_tables_give(server, layout, extra):
    """cos and sin of /encode, two products and a sum in NumPy's float32: the same bits, for any number of heads."""
    table = from_json(server.ask("/encode", scheme="rope", head_dim=64, len=33, **extra))
    cos, sin = table["cos"].astype("f4"), table["sin"].astype("f4")
    x = normal(6, 33, 64, seed=3)
    a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else (x[..., :32], x[..., 32:])
    first, second = a * cos - b * sin, b * cos + a * sin
    pairs = np.stack([first, second], -1) if layout == "interleaved" else np.stack([first, second], -2)
    out = rotate_files(server, {"scheme": "rope", "layout": layout, **extra}, q=x)["q"]
    assert out.dtype == np.float32 and out.tobytes() == pairs.reshape(x.shape).tobytes()


# ---- The main job ------------------------------------------------------------------------------------------------------


def test_large_tensors_by_curl(server, tmp_path):
    """q of 33 MB and k of 8, as where four heads share their keys, as .npy files; back as safetensors."""
    q, k = normal(1, 32, 2048, 128, seed=1), normal(1, 8, 2048, 128, seed=2)
    np.save(tmp_path / "q.npy", q)
    np.save(tmp_path / "k.npy", k)
    request = json.dumps({"scheme": "rope", "layout": "half", "format": "safetensors"})
    subprocess.run(["curl", "-sS", "--fail", "-F", f"request={request}", "-F", f"q=@{tmp_path}/q.npy",
                    "-F", f"k=@{tmp_path}/k.npy", server.url + "/rotate", "-o", tmp_path / "out"], check=True, timeout=100)
    out = safetensors_reader.loads((tmp_path / "out").read_bytes())[0]
    for name, sent in (("q", q), ("k", k)):
        assert out[name].dtype == np.float32
        near(out[name], truth.rotate(sent, np.arange(2048), layout="half"))


# ---- Ways in -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small():
    return {"q": normal(2, 3, 5, 8, seed=3), "k": normal(2, 3, 5, 8, seed=4)}


def same_everywhere(server, path, body, headers, expected):
    response = server.post(path, body, headers)
    assert response.status == 200, response
    got = from_safetensors(response)
    assert set(got) == set(expected)
    for name in expected:
        assert got[name].tobytes() == expected[name].tobytes(), name


def test_every_way_in_gives_the_same_bytes(server, small):
    request = {"scheme": "rope", "layout": "half", "offset": 7, "format": "safetensors"}
    expected = rotate_files(server, request, **small)
    for name in small:
        near(expected[name], truth.rotate(small[name], np.arange(7, 12), layout="half"))

    inline = {**request, **{name: a.tolist() for name, a in small.items()}}
    same_everywhere(server, "/rotate", inline, None, expected)
    flat = {**request, **{name: {"dtype": "f32", "shape": list(a.shape), "data": a.ravel().tolist()} for name, a in small.items()}}
    same_everywhere(server, "/rotate", flat, None, expected)
    nested = {**request, **{name: {"dtype": "f32", "shape": list(a.shape), "data": a.tolist()} for name, a in small.items()}}
    same_everywhere(server, "/rotate", nested, None, expected)
    file = safetensors_reader.dumps(small, {"request": json.dumps(request)})
    for content_type in ("application/vnd.safetensors", "application/octet-stream"):
        same_everywhere(server, "/rotate", file, {"Content-Type": content_type}, expected)


def test_one_npy_with_the_request_in_the_query(server, small):
    expected = rotate_files(server, {"scheme": "rope", "offset": 2}, q=small["q"])
    query = "/rotate?scheme=rope&offset=2&format=safetensors"
    for content_type in ("application/x-npy", "application/octet-stream"):
        same_everywhere(server, query, npy(small["q"]), {"Content-Type": content_type}, expected)


def test_chunked_upload(server, small):
    """A body whose length is not declared."""
    body, headers = multipart(request='{"scheme":"rope","format":"safetensors"}', **{n: npy(a) for n, a in small.items()})
    blocks = [body[i:i + 100] for i in range(0, len(body), 100)]
    response = server.request("POST", "/rotate", iter(blocks), headers)
    assert response.status == 200, response
    expected = rotate_files(server, {"scheme": "rope"}, **small)
    assert all(from_safetensors(response)[n].tobytes() == expected[n].tobytes() for n in small)


# ---- Dtypes ------------------------------------------------------------------------------------------------------------


def test_bf16_comes_and_goes(server):
    q = safetensors_reader.widen_bf16(safetensors_reader.narrow_bf16(normal(2, 6, 32)))
    file = safetensors_reader.dumps({"q": q}, {"request": '{"scheme":"rope","format":"safetensors"}'}, bf16=["q"])
    response = server.post("/rotate", file, {"Content-Type": "application/vnd.safetensors"})
    assert response.status == 200, response
    tensors, _, dtypes = safetensors_reader.loads(response.body)
    assert dtypes == {"q": "BF16"}
    exact = truth.rotate(q, np.arange(6))
    assert np.all(np.abs(tensors["q"] - exact) <= np.abs(exact) * 2.0 ** -8 + 1e-30)


@pytest.mark.parametrize("dtype", ["i8", "u1", "?", "f4"])
def test_a_mask_may_be_a_file_of_any_type(server, dtype):
    """1 is a token. Its positions are rows of ../../cases/rotate.jsonl."""
    mask, q = np.array([[0, 0, 1], [1, 1, 0]]), normal(2, 4, 3, 8)
    request = {"scheme": "rope", "layout": "half"}
    sent = rotate_files(server, {**request, "attention_mask": mask.tolist()}, q=q)["q"]
    assert rotate_files(server, request, q=q, attention_mask=mask.astype(dtype))["q"].tobytes() == sent.tobytes()
