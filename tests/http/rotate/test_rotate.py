"""POST /rotate: every input and output format, layouts, partial rotation, shapes, dtypes."""
import io
import json
import subprocess

import numpy as np
import pytest

import truth
import safetensors_reader
from tensors import from_json, from_npy, from_raw, from_safetensors, multipart, npy, rotate_files

LAYOUTS = ["interleaved", "half"]


def normal(*shape, seed=0, dtype="f4"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def rotated(server, **fields):
    return from_json(server.ask("/rotate", **fields))


def near(got, expected, tolerance=1e-6):
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.astype(float), expected, rtol=0, atol=tolerance)


# ---- Reference values --------------------------------------------------------------------------------------------------


def test_the_documented_answer(server):
    """One pair rotated by one radian."""
    answer = server.ask("/rotate", scheme="rope", offset=1, q=[[1, 0]]).json()
    assert answer["tensors"] == {"q": {"dtype": "f32", "shape": [1, 2], "data": [[0.5403023, 0.84147096]]}}
    assert answer["config"]["head_dim"] == 2


@pytest.mark.parametrize("layout,expected", [
    ("interleaved", [2.20151073479, -0.391599903737, 2.7963341041, 4.14493854939]),
    ("half", [3.16043500945, 1.79758384371, -0.107937718273, 4.09495938012])])
def test_reference_values(server, layout, expected):
    q = {"dtype": "f64", "shape": [1, 4], "data": [1, 2, 3, 4]}
    near(rotated(server, scheme="rope", layout=layout, offset=5, q=q)["q"], np.array([expected]), 6e-12)


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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_tensors_by_curl(server, layout, tmp_path):
    """q of 33 MB and k of 8, as where four heads share their keys, as .npy files; back as safetensors."""
    q, k = normal(1, 32, 2048, 128, seed=1), normal(1, 8, 2048, 128, seed=2)
    np.save(tmp_path / "q.npy", q)
    np.save(tmp_path / "k.npy", k)
    request = json.dumps({"scheme": "rope", "layout": layout, "format": "safetensors"})
    subprocess.run(["curl", "-sS", "--fail", "-F", f"request={request}", "-F", f"q=@{tmp_path}/q.npy",
                    "-F", f"k=@{tmp_path}/k.npy", server.url + "/rotate", "-o", tmp_path / "out"], check=True, timeout=100)
    out = safetensors_reader.loads((tmp_path / "out").read_bytes())[0]
    for name, sent in (("q", q), ("k", k)):
        assert out[name].dtype == np.float32
        near(out[name], truth.rotate(sent, np.arange(2048), layout=layout))


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


def test_fortran_order_and_old_versions_of_npy(server, small):
    expected = rotate_files(server, {"scheme": "rope"}, q=small["q"])
    got = rotate_files(server, {"scheme": "rope"}, q=np.asfortranarray(small["q"]))
    assert got["q"].tobytes() == expected["q"].tobytes()
    for version in ((1, 0), (2, 0), (3, 0)):
        body, headers = multipart(request='{"scheme":"rope","format":"safetensors"}', q=npy_of_version(small["q"], version))
        same_everywhere(server, "/rotate", body, headers, expected)


def npy_of_version(array, version):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def test_lists_as_parts(server):
    """A numeric list field may come as a part too."""
    q = normal(4, 8)
    positions = np.array([3, 1, 4, 1], "i8")
    got = rotate_files(server, {"scheme": "rope"}, q=q, positions=positions)
    near(got["q"], truth.rotate(q, positions))


def test_chunked_upload(server, small):
    """A body whose length is not declared."""
    body, headers = multipart(request='{"scheme":"rope","format":"safetensors"}', **{n: npy(a) for n, a in small.items()})
    blocks = [body[i:i + 100] for i in range(0, len(body), 100)]
    response = server.request("POST", "/rotate", iter(blocks), headers)
    assert response.status == 200, response
    expected = rotate_files(server, {"scheme": "rope"}, **small)
    assert all(from_safetensors(response)[n].tobytes() == expected[n].tobytes() for n in small)


# ---- Ways out ----------------------------------------------------------------------------------------------------------


def test_every_way_out(server, small):
    expected = rotate_files(server, {"scheme": "rope"}, **small)
    sent = {name: a.tolist() for name, a in small.items()}
    for name in small:
        assert from_json(server.ask("/rotate", scheme="rope", **sent))[name].tobytes() == expected[name].tobytes()
        assert from_raw(server.ask("/rotate", scheme="rope", format="raw", **sent))[name].tobytes() == expected[name].tobytes()
        one = server.ask("/rotate", scheme="rope", format="npy", outputs=[name], **sent)
        assert from_npy(one).tobytes() == expected[name].tobytes()


# ---- Parameters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim,rotary_offset", [(16, 0), (8, 0), (8, 8), (6, 3), (2, 14)])
def test_partial_rotation(server, layout, rotary_dim, rotary_offset):
    q = normal(3, 7, 16)
    parameters = dict(layout=layout, rotary_dim=rotary_dim, rotary_offset=rotary_offset)
    got = rotate_files(server, {"scheme": "rope", **parameters}, q=q)["q"]
    near(got, truth.rotate(q, np.arange(7), **parameters))
    untouched = np.r_[0:rotary_offset, rotary_offset + rotary_dim:16].astype(int)
    assert got[..., untouched].tobytes() == q[..., untouched].tobytes()  # passes through bit for bit


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_other_direction_undoes(server, layout):
    q = normal(2, 4, 33, 64, dtype="f8")
    there = rotate_files(server, {"scheme": "rope", "layout": layout, "offset": 100}, q=q)["q"]
    assert there.dtype == np.float64 and np.abs(there - q).max() > 0.1
    back = rotate_files(server, {"scheme": "rope", "layout": layout, "offset": 100, "direction": -1}, q=there)["q"]
    near(back, q, 1e-14)


def test_base_and_positions(server):
    q = normal(2, 5, 32)
    positions = [0, -3, 2.5, 100, 7]
    got = rotate_files(server, {"scheme": "rope", "base": 500000, "positions": positions}, q=q)["q"]
    near(got, truth.rotate(q, positions, base=500000.0))


def test_attention_factor_scales_only_what_turns(server):
    q = normal(4, 8)
    got = rotate_files(server, {"scheme": "rope", "rotary_dim": 4, "attention_factor": 2}, q=q)["q"]
    plain = truth.rotate(q, np.arange(4), rotary_dim=4)
    near(got, np.concatenate([2 * plain[:, :4], plain[:, 4:]], -1))


# ---- Shapes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 8), (3, 5, 8), (2, 3, 5, 8), (1, 1, 1, 2)])
def test_leading_axes_may_be_missing(server, shape):
    q = normal(*shape)
    near(rotate_files(server, {"scheme": "rope"}, q=q)["q"], truth.rotate(q, np.arange(shape[-2])))


@pytest.mark.parametrize("shape", [(2, 5, 3, 8), (5, 3, 8)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_positions_before_heads(server, shape, layout):
    q = normal(*shape)
    got = rotate_files(server, {"scheme": "rope", "layout": layout, "tensor_layout": "bnhd"}, q=q)["q"]
    near(got, np.swapaxes(truth.rotate(np.swapaxes(q, -3, -2), np.arange(5), layout=layout), -3, -2))


# From [batch, heads, n, d], or from [heads, n, d] where there is no batch.
MEMORY = {
    "bnhd": lambda q: q.transpose(0, 2, 1, 3),
    "nbhd": lambda q: q.transpose(2, 0, 1, 3),
    "nhd": lambda q: q[0].transpose(1, 0, 2),
    "flat": lambda q: q[0].transpose(1, 0, 2).reshape(q.shape[2], -1),
    "bflat": lambda q: q.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1),
}


@pytest.mark.parametrize("n", [5, 130])
@pytest.mark.parametrize("memory", MEMORY)
def test_memory_layouts(server, memory, n):
    """The answer has the layout that came; 3 heads of keys beside 6 of queries, partial rotary."""
    q, k = normal(2, 6, n, 16), normal(2, 3, n, 16, seed=4)
    request = {"scheme": "rope", "rotary_dim": 8, "head_dim": 16, "offset": 7, "tensor_layout": memory}
    got = rotate_files(server, request, q=np.ascontiguousarray(MEMORY[memory](q)), k=np.ascontiguousarray(MEMORY[memory](k)))
    for name, a in (("q", q), ("k", k)):
        wanted = MEMORY[memory](truth.rotate(a, np.arange(7, 7 + n), rotary_dim=8))
        assert got[name].shape == wanted.shape
        near(got[name], wanted)


@pytest.mark.parametrize("memory", ["bhnd", "bnhd", "nbhd", "bflat"])
@pytest.mark.parametrize("n", [5, 300])
def test_positions_of_each_row_of_the_batch(server, memory, n):
    hold = MEMORY.get(memory, lambda a: a)
    q, k = normal(3, 4, n, 16), normal(3, 1, n, 16, seed=4)
    positions = np.asarray([0, 9, -4])[:, None] + np.arange(n)
    request = {"scheme": "rope", "layout": "half", "head_dim": 16, "tensor_layout": memory, "positions": positions.tolist(), "positions_layout": "batch"}
    got = rotate_files(server, request, q=np.ascontiguousarray(hold(q)), k=np.ascontiguousarray(hold(k)))
    for name, a in (("q", q), ("k", k)):
        near(got[name], hold(np.stack([truth.rotate(row, p, layout="half") for row, p in zip(a, positions)])))
    one = rotate_files(server, {**request, "positions": [list(range(n))]}, q=np.ascontiguousarray(hold(q)))["q"]
    near(one, hold(truth.rotate(q, np.arange(n), layout="half")))


@pytest.mark.parametrize("fields, words", [
    ({"positions": [[0, 1, 2, 3]] * 2}, ["2 lists", "batch of 3"]), ({"positions": [0, 1, 2, 3]}, ["two levels"]), ({}, ["two levels"]),
    ({"positions": [[0, 1, 2]] * 3}, ["9", "12"])])
def test_positions_of_another_batch(server, fields, words):
    answer = server.post("/rotate", {"scheme": "rope", "positions_layout": "batch", **fields, "q": normal(3, 2, 4, 8).tolist()})
    problem = answer.json()
    assert answer.status == 422 and problem["pointer"] == "/positions" and all(word in problem["detail"] for word in words), problem


@pytest.mark.parametrize("memory", ["nbhd", "flat", "bflat"])
def test_slices_of_memory_layouts(server, memory):
    """Columns 5 to 38 of flat rows are parts of three heads."""
    q = np.ascontiguousarray(MEMORY[memory](normal(2, 3, 7, 16)))
    request = {"scheme": "rope", "head_dim": 16, "tensor_layout": memory}
    whole = rotate_files(server, request, q=q)["q"]
    columns = [None, [5, 39]] if memory == "flat" else [None, [1, 3], [5, 39]] if memory == "bflat" else [[2, 6], None, [1, 3], [3, 11]]
    part = rotate_files(server, {**request, "slice": {"q": columns}}, q=q)["q"]
    index = tuple(slice(None) if c is None else slice(*c) for c in columns)
    assert np.array_equal(part, whole[index])


@pytest.mark.parametrize("fields, shape, pointer, words", [
    ({"tensor_layout": "flat"}, (4, 16), "/head_dim", ["flat needs head_dim"]),
    ({"tensor_layout": "flat", "head_dim": 6}, (4, 16), "/q", ["[4,16]", "[tokens, heads*head_dim]"]),
    ({"tensor_layout": "nbhd"}, (4, 2, 16), "/q", ["[4,2,16]", "[n, batch, heads, head_dim]"]),
    ({"tensor_layout": "nhd"}, (4, 16), "/q", ["[4,16]", "[tokens, heads, head_dim]"]),
    ({"tensor_layout": "bflat", "head_dim": 8}, (1, 2, 4, 16), "/q", ["[1,2,4,16]", "[batch, n, heads*head_dim]"]),
])
def test_shapes_that_a_memory_layout_cannot_have(server, fields, shape, pointer, words):
    answer = server.post("/rotate", {"scheme": "rope", **fields, "q": normal(*shape).tolist()})
    problem = answer.json()
    assert answer.status == 422 and problem["pointer"] == pointer and all(word in problem["detail"] for word in words), problem


def test_keys_with_fewer_heads(server):
    q, k = normal(2, 8, 5, 16), normal(2, 2, 5, 16, seed=9)
    got = rotate_files(server, {"scheme": "rope"}, q=q, k=k)
    near(got["q"], truth.rotate(q, np.arange(5)))
    near(got["k"], truth.rotate(k, np.arange(5)))


def test_decoding_with_a_cache(server):
    """Keys from 0 on, the queries are the last."""
    q, k = normal(4, 2, 16), normal(4, 9, 16, seed=5)
    got = rotate_files(server, {"scheme": "rope"}, q=q, k=k)
    near(got["q"], truth.rotate(q, np.arange(7, 9)))
    near(got["k"], truth.rotate(k, np.arange(9)))
    cross = rotate_files(server, {"scheme": "rope", "q_offset": 0, "offset": 3}, q=q, k=k)
    near(cross["q"], truth.rotate(q, np.arange(3, 5)))
    near(cross["k"], truth.rotate(k, np.arange(3, 12)))


def test_one_alone(server):
    k = normal(3, 4, 8)
    got = rotate_files(server, {"scheme": "rope", "offset": 11}, k=k)
    assert list(got) == ["k"]
    near(got["k"], truth.rotate(k, np.arange(11, 15)))


# ---- Dtypes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype,tolerance", [("f8", 1e-14), ("f4", 1e-6), ("f2", 4e-3)])
def test_the_answer_has_the_dtype_sent(server, dtype, tolerance):
    q = normal(2, 6, 32, dtype=dtype)
    got = rotate_files(server, {"scheme": "rope", "layout": "half"}, q=q)["q"]
    assert got.dtype == np.dtype(dtype)
    near(got, truth.rotate(q, np.arange(6), layout="half"), tolerance)


def test_bf16_comes_and_goes(server):
    q = safetensors_reader.widen_bf16(safetensors_reader.narrow_bf16(normal(2, 6, 32)))
    file = safetensors_reader.dumps({"q": q}, {"request": '{"scheme":"rope","format":"safetensors"}'}, bf16=["q"])
    response = server.post("/rotate", file, {"Content-Type": "application/vnd.safetensors"})
    assert response.status == 200, response
    tensors, _, dtypes = safetensors_reader.loads(response.body)
    assert dtypes == {"q": "BF16"}
    exact = truth.rotate(q, np.arange(6))
    assert np.all(np.abs(tensors["q"] - exact) <= np.abs(exact) * 2.0 ** -8 + 1e-30)


def test_another_dtype_may_be_asked_for(server):
    q = normal(6, 8)
    got = rotate_files(server, {"scheme": "rope", "dtype": "f64"}, q=q)["q"]
    assert got.dtype == np.float64
    near(got, truth.rotate(q, np.arange(6)), 1e-15)
    narrow = rotate_files(server, {"scheme": "rope", "dtype": "f16"}, q=q)["q"]
    near(narrow, truth.rotate(q, np.arange(6)), 2e-3)


def test_integers_are_tensors_too(server):
    q = np.arange(12, dtype="i4").reshape(3, 4)
    got = rotate_files(server, {"scheme": "rope"}, q=q)["q"]
    assert got.dtype == np.float32
    near(got, truth.rotate(q, np.arange(3)), 2e-6)


def test_infinities_and_nan_pass_through(server):
    q = normal(2, 8)
    q[0, 6], q[1, 7] = np.inf, np.nan
    got = rotate_files(server, {"scheme": "rope", "rotary_dim": 4}, q=q)["q"]
    assert np.isposinf(got[0, 6]) and np.isnan(got[1, 7])
    answer = server.ask("/rotate", scheme="rope", rotary_dim=2, q=[[1, 0, "Infinity", "-Infinity", "NaN", 2]])
    assert answer.json()["tensors"]["q"]["data"][0][2:] == ["Infinity", "-Infinity", "NaN", 2.0]


def test_scores_depend_on_the_distance_only(server):
    q, k = normal(1, 64, dtype="f8"), normal(1, 64, seed=8, dtype="f8")
    scores = []
    for m, n in ((0, 5), (17, 22), (1000, 1005), (-40, -35)):
        a = rotate_files(server, {"scheme": "rope", "positions": [m]}, q=q)["q"]
        b = rotate_files(server, {"scheme": "rope", "positions": [n]}, k=k)["k"]
        scores.append(float((a * b).sum()))
    assert max(scores) - min(scores) < 1e-12
