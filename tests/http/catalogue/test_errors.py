"""Many kinds of bad requests: each gets a problem that states how to correct it, and none harms the server.

A row: the request → status, JSON pointer of the wrong field, words that the detail must contain."""
import json
import struct

import numpy as np
import pytest

import safetensors_reader
from conftest import start_server
from tensors import BOUNDARY, multipart, npy

ROPE, SINE, ALIBI = {"scheme": "rope", "len": 4}, {"scheme": "sinusoidal", "len": 4}, {"scheme": "alibi", "len": 4}
AXES = {"scheme": "rope", "axes_dim": [4, 4]}


def check_problem(response, status, pointer, words):
    """RFC 9457 with our members."""
    assert response.status == status, response
    assert response.headers["Content-Type"].split(";")[0] == "application/problem+json"
    problem = response.json()
    assert problem["type"] == "about:blank" and problem["title"] and problem["status"] == status
    assert problem["error"] == problem["detail"]
    pointers = pointer if isinstance(pointer, tuple) else (pointer,)
    assert problem.get("pointer", "") in pointers, problem
    for word in words:
        assert word in problem["detail"], f"{word!r} is missing in: {problem['detail']}"


# ---- Fields ------------------------------------------------------------------------------------------------------------

FIELDS = [
    # the scheme
    ({"scheme": "rop", "len": 4}, "/scheme", ["rop", "rope"]),
    ({"scheme": "sinusodial", "len": 4}, "/scheme", ["sinusoidal"]),
    ({"scheme": "qqqqqq", "len": 4}, "/scheme", ["rope", "alibi"]),
    ({"len": 4}, "/scheme", ["scheme"]),
    ({"scheme": 3, "len": 4}, "/scheme", []),
    ({"scheme": ["rope"], "len": 4}, "/scheme", []),
    ({}, "/scheme", ["scheme"]),
    # unknown names, and names of other schemes
    ({**ROPE, "headdim": 64}, "/headdim", ["head_dim"]),
    ({**ROPE, "dim": 64}, "/dim", ["dim"]),
    ({**SINE, "num_heads": 4}, "/num_heads", ["num_heads"]),
    ({**ALIBI, "layout": "half"}, "/layout", ["layout"]),
    ({**ROPE, "Base": 5}, "/Base", ["base"]),
    ({**ROPE, "a/b~c": 5}, "/a~1b~0c", []),
    ({**ROPE, "causal": True}, "/causal", []),
    ({**ROPE, "": 1}, "/", []),
    # the sequence
    ({"scheme": "rope"}, ("/len", ""), ["len"]),
    ({"scheme": "rope", "len": -1}, "/len", ["-1", "1"]),
    ({"scheme": "rope", "len": 0}, "/len", ["0"]),
    ({"scheme": "rope", "len": "4"}, "/len", ["integer"]),
    ({"scheme": "rope", "len": 4.5}, "/len", ["4.5", "integer"]),
    ({"scheme": "rope", "len": True}, "/len", ["integer"]),
    ({"scheme": "rope", "len": [4]}, "/len", ["integer"]),
    ({"scheme": "rope", "len": 2 ** 41}, "/len", []),
    ({"scheme": "rope", "len": 10 ** 30}, ("/len", ""), []),
    ({**ROPE, "positions": [1]}, ("/positions", "/len"), ["one"]),
    ({**ROPE, "offset": 0.5}, "/offset", ["integer"]),
    ({**ROPE, "offset": 2 ** 40}, "/offset", ["2^40"]),
    ({"scheme": "rope", "positions": []}, "/positions", []),
    ({"scheme": "rope", "positions": 3}, "/positions", ["list"]),
    ({"scheme": "rope", "positions": ["a"]}, ("/positions", "/positions/0"), []),
    ({"scheme": "rope", "positions": [[1, 2], [3]]}, ("/positions", "/positions/1"), []),
    ({"scheme": "rope", "positions": [2 ** 41]}, ("/positions", "/positions/0"), []),
    ({"scheme": "rope", "positions": [0, "NaN"]}, ("/positions", "/positions/1"), []),
    ({"scheme": "rope", "positions": ["Infinity"]}, ("/positions", "/positions/0"), []),
    ({"scheme": "rope", "positions": [1], "offset": 2}, ("/offset", "/positions"), ["offset"]),
    ({**ROPE, "q_len": 3}, "/q_len", ["q_len"]),
    ({**ALIBI, "q_len": 3}, ("/q_len", "/len"), ["q_len"]),
    ({"scheme": "alibi", "q_len": 0}, "/q_len", ["0"]),
    # the answer's form
    ({**ROPE, "dtype": "float32"}, "/dtype", ["f32"]),
    ({**ROPE, "dtype": "i32"}, "/dtype", ["f32"]),
    ({**ROPE, "format": "numpy"}, "/format", ["npy"]),
    ({**ROPE, "format": 1}, "/format", []),
    ({**ROPE, "digits": 18}, "/digits", ["17"]),
    ({**ROPE, "digits": -1}, "/digits", ["-1"]),
    ({**ROPE, "digits": 3, "format": "raw"}, "/digits", ["json"]),
    ({**ROPE, "data": "no"}, "/data", []),
    ({**ROPE, "outputs": ["cosine"]}, ("/outputs", "/outputs/0"), ["cos"]),
    ({**ROPE, "outputs": ["cos", "cos"]}, ("/outputs", "/outputs/1"), ["cos"]),
    ({**ROPE, "outputs": []}, "/outputs", []),
    ({**ROPE, "outputs": "cos"}, "/outputs", []),
    ({**ROPE, "outputs": [1]}, ("/outputs", "/outputs/0"), []),
    ({**ROPE, "outputs": ["cos_sin"]}, ("/outputs", "/outputs/0"), ["form"]),
    # rope
    ({**ROPE, "head_dim": 63}, "/head_dim", ["63", "62", "64"]),
    ({**ROPE, "head_dim": 0}, "/head_dim", ["0"]),
    ({**ROPE, "head_dim": 10 ** 9}, "/head_dim", []),
    ({**ROPE, "rotary_dim": 7}, "/rotary_dim", ["7"]),
    ({**ROPE, "rotary_dim": 66}, "/rotary_dim", ["66", "64"]),
    ({**ROPE, "rotary_dim": 32, "rotary_offset": 33}, "/rotary_offset", ["64"]),
    ({**ROPE, "rotary_dim": 32, "partial_rotary_factor": 0.5}, ("/partial_rotary_factor", "/rotary_dim"), []),
    ({**ROPE, "partial_rotary_factor": 1.5}, "/partial_rotary_factor", ["1.5"]),
    ({**ROPE, "partial_rotary_factor": 0.01}, "/partial_rotary_factor", []),
    ({**ROPE, "base": 0}, "/base", ["0"]),
    ({**ROPE, "base": 1}, "/base", ["1"]),
    ({**ROPE, "base": -5}, "/base", ["-5"]),
    ({**ROPE, "base": "10000"}, "/base", ["number"]),
    ({**ROPE, "base": "Infinity"}, "/base", []),
    ({**ROPE, "base": 10, "rope_theta": 10}, ("/rope_theta", "/base"), []),
    ({**ROPE, "layout": "interleave"}, "/layout", ["interleaved"]),
    ({**ROPE, "layout": "neox"}, "/layout", ["half"]),
    ({**ROPE, "layout": 1}, "/layout", []),
    ({**ROPE, "direction": 0}, "/direction", ["1", "-1"]),
    ({**ROPE, "direction": 2}, "/direction", ["1"]),
    ({**ROPE, "form": "pair"}, "/form", ["pairs"]),
    ({**ROPE, "arith": "f32"}, "/arith", ["float32"]),
    ({**ROPE, "inv_freq": [1, 2]}, "/inv_freq", ["32"]),
    ({**ROPE, "inv_freq": [1] * 32, "base": 100}, ("/inv_freq", "/base"), []),
    ({**ROPE, "scaling": {"type": "yarm"}}, "/scaling/type", []),
    ({**ROPE, "scaling": {"kind": "default"}}, ("/scaling/kind", "/scaling"), []),
    ({**ROPE, "scaling": 3}, "/scaling", ["object"]),
    ({**ROPE, "attention_factor": 0}, "/attention_factor", ["0"]),
    ({**ROPE, "q": [[1, 2]]}, "/q", []),
    # sinusoidal
    ({**SINE, "dim": 0}, "/dim", ["0"]),
    ({**SINE, "dim": 2.5}, "/dim", ["2.5"]),
    ({**SINE, "odd": "papr"}, "/odd", ["paper"]),
    ({**SINE, "dim": 8, "freq_shift": 4}, "/freq_shift", ["4"]),
    ({**SINE, "flip_sin_to_cos": 1}, "/flip_sin_to_cos", ["true"]),
    # alibi
    ({**ALIBI, "num_heads": 0}, "/num_heads", ["0"]),
    ({**ALIBI, "num_head": 8}, "/num_head", ["num_heads"]),
    ({**ALIBI, "form": "symetric"}, "/form", ["symmetric"]),
    ({**ALIBI, "slopes": [1, 2]}, "/slopes", ["8"]),
    ({**ALIBI, "slopes_left": [1] * 8}, "/slopes_left", ["asymmetric"]),
    ({**ALIBI, "key_mask": [1, 0]}, "/key_mask", ["4"]),
    ({**ALIBI, "key_mask": [1, 0, 2, 1]}, ("/key_mask", "/key_mask/2"), ["2"]),
    ({**ALIBI, "window": 0}, "/window", ["0"]),
    ({**ALIBI, "causal": "yes"}, "/causal", ["true"]),
    ({**ALIBI, "bias_max": -8}, "/bias_max", ["-8"]),
    # sequences
    ({"scheme": "rope", "positions": [[1, 2]] * 9}, "/positions", ["9", "8"]),
    ({"scheme": "rope", "positions": [[[1, 2]]]}, "/positions", ["3 dimensions"]),
    ({"scheme": "rope", "lens": [1.5, 2]}, "/lens", ["1.5", "index 0"]),
    ({"scheme": "rope", "tokens": ["a", 3]}, "/tokens", ["index 1"]),
    ({"scheme": "rope", "cu_seqlens": [[0, 2], [2, 4]]}, "/cu_seqlens", ["2 dimensions"]),
    ({**ROPE, "shard": {"rank": 0}}, "/shard/of", ["of"]),
    ({**AXES, "grid": [[2, 2]]}, "/grid", ["2 dimensions"]),
    ({**AXES, "grid": [1 << 21, 1 << 21]}, "/grid", ["2^40"]),
    ({**AXES, "grid": [4], "order": "merge"}, "/order", ["two axes"]),
    # several axes
    ({**AXES, "axes_dim": [[4, 4]], "grid": [2, 2]}, "/axes_dim", ["one list"]),
    ({**AXES, "grid": [300_000, 2], "coords": "normalized", "arith": "float32"}, "/grid", ["300002", "262144"]),
    ({**ROPE, "axis_order": [1, 0]}, "/axis_order", ["one axis"]),
    ({**ROPE, "channels": "mrope", "mrope_section": [15.5, 0, 16.5]}, "/mrope_section", ["15.5", "index 0"]),
    # tensors
    ({"scheme": "sinusoidal", "x": [[1, 2]], "channels_first": True}, "/channels_first", ["grid"]),
    ({"hf_config": 3, "len": 2}, "/hf_config", ["object"]),
]

XL = {"scheme": "transformer_xl", "q": [[[[1] * 4]] * 2], "k": [[[[1] * 4] * 2] * 2]}
ATTENTION = [
    ({"x": 5}, "/x", ["not a tensor"]),
    ({"x": [1, 2]}, "/x", ["[2]"]),
    ({"tokens": ["a"] * 4097, "dim": 8}, "/tokens", ["4097", "4096"]),
    ({"tokens": ["a"], "dim": 8, "outputs": ["probz"]}, "/outputs/0", ["probs"]),
    ({**XL, "q_positions": [5], "k_positions": [0, 300_000]}, "/k_positions", ["300001", "262144"]),
    ({**XL, "q_positions": [[5]], "k_positions": [[0, 1], [0, 1]]}, "/q_positions", ["axes"]),
    ({**XL, "scheme": "xlnet", "seed": 1, "seg_embed": [[[1] * 4] * 2] * 2}, "/token_type_ids", ["each key"]),
    ({**XL, "scheme": "shaw", "table_style": "sinusoidal", "q": [[[[1] * 3]] * 2], "k": [[[[1] * 3]] * 2]}, "/head_dim", ["3", "even"]),
    ({**XL, "scheme": "deberta", "rel_embeddings": [[1] * 6] * 8, "max_relative_positions": 4}, "/w_k", ["[8,6]"]),
]

ANALYZE = [
    ({"metrics": 3}, "/metrics", ["list"]),
    ({"metrics": ["uniqe"]}, "/metrics/0", ["unique"]),
    ({"metrics": ["qqqqqqqqqq"]}, "/metrics/0", ["GET /schemes"]),
    ({"outputs": "q"}, "/outputs", ["list"]),
]

ROTATE = [
    (ROPE, "/q", ["q"]),
    ({"scheme": "sinusoidal", "q": [[1, 0]]}, "/scheme", ["rotate"]),
    ({"scheme": "rope", "q": [1, 2]}, "/q", ["dimension"]),
    ({"scheme": "rope", "q": [[1, 2], [3]]}, ("/q", "/q/1"), []),
    ({"scheme": "rope", "q": [[1, 2, 3]]}, ("/q", "/head_dim"), ["3"]),
    ({"scheme": "rope", "q": [[[[[1, 2]]]]]}, "/q", []),
    ({"scheme": "rope", "q": "abc"}, "/q", []),
    ({"scheme": "rope", "q": []}, "/q", []),
    ({"scheme": "rope", "q": {"data": 1.5}}, "/q", ["[]", "0 dimensions"]),
    ({"scheme": "rope", "q": {"data": 1.5, "shape": [2]}}, "/q/shape", ["2"]),
    ({"scheme": "rope", "q": {"data": 1.5, "shape": [1, 1]}}, ("/q", "/head_dim"), ["1"]),
    ({"scheme": "rope", "head_dim": 4, "q": [[1, 2]]}, "/head_dim", ["4", "2"]),
    ({"scheme": "rope", "len": 3, "q": [[1, 2]]}, "/len", ["3", "1"]),
    ({"scheme": "rope", "positions": [1, 2], "q": [[1, 2]]}, "/positions", ["2", "1"]),
    ({"scheme": "rope", "q": [[1, 2]], "k": [[1, 2, 3, 4]]}, ("/k", "/q"), []),
    ({"scheme": "rope", "q": [[1, 2]], "v": [[1, 2]]}, "/v", []),
    ({"scheme": "rope", "q": [[1, 2]], "tensor_layout": "bhdn"}, "/tensor_layout", ["bhnd"]),
    ({"scheme": "rope", "q": {"dtype": "f32", "shape": [2, 2], "data": [1, 2, 3]}}, ("/q", "/q/data", "/q/shape"), ["3", "4"]),
    ({"scheme": "rope", "q": {"dtype": "f31", "shape": [1, 2], "data": [1, 2]}}, "/q/dtype", ["f32"]),
    ({"scheme": "rope", "q": {"dtype": "f32", "shape": [-1, 2], "data": [1, 2]}}, ("/q/shape", "/q/shape/0"), []),
    ({"scheme": "rope", "q": {"dtype": "f32", "data": [1, 2]}}, ("/q", "/q/shape", "/q/data"), []),
    ({"scheme": "rope", "q": [[1, 2]], "outputs": ["k"]}, ("/outputs", "/outputs/0"), ["q"]),
]


@pytest.mark.parametrize("fields,pointer,words", FIELDS, ids=lambda v: json.dumps(v)[:60] if isinstance(v, dict) else None)
def test_fields(server, fields, pointer, words):
    check_problem(server.post("/encode", fields), 422, pointer, words)


@pytest.mark.parametrize("path", ["/encode", "/rotate", "/attention"])
@pytest.mark.parametrize("fields", [{}, {"scheme": None}, {"scheme": "rop"}, {"scheme": "xyz"}, {"scheme": "w" * 300}],
                         ids=lambda v: json.dumps(v)[:20])
def test_a_scheme_that_is_not_there_is_answered_with_all_names(server, path, fields):
    names = [s["name"] for s in server.get("/schemes").json()["schemes"]]
    asked = [server.post(path, {"len": 4, **fields})]
    if path == "/encode":
        query = "&".join(["len=4", *(f"{k}={v}" for k, v in fields.items() if v)])
        asked += [server.get("/encode?" + query), server.request("QUERY", "/encode?" + query)]
    for response in asked:
        check_problem(response, 422, "/scheme", ["missing"] if not fields.get("scheme") else ["unknown scheme"])
        detail = response.json()["detail"]
        assert detail.split("one of: ")[1].split(", ") == names, detail
        assert ('nearest: "rope"' in detail) == (fields.get("scheme") == "rop")


@pytest.mark.parametrize("fields,pointer,words", ROTATE, ids=lambda v: json.dumps(v)[:60] if isinstance(v, dict) else None)
def test_rotate_fields(server, fields, pointer, words):
    check_problem(server.post("/rotate", fields), 422, pointer, words)


@pytest.mark.parametrize("fields,pointer,words", ATTENTION, ids=lambda v: json.dumps(v)[:40] if isinstance(v, dict) else None)
def test_attention_fields(server, fields, pointer, words):
    check_problem(server.post("/attention", {"scheme": "rope", **({"num_heads": 2, "seed": 1} if "q" not in fields else {}), **fields}), 422, pointer, words)


@pytest.mark.parametrize("fields,pointer,words", ANALYZE, ids=lambda v: json.dumps(v)[:40] if isinstance(v, dict) else None)
def test_analyze_fields(server, fields, pointer, words):
    check_problem(server.post("/analyze", {"metrics": ["unique"], **ROPE, **fields}), 422, pointer, words)


# ---- Bytes that are no request -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("body,status,words", [
    (b'{"scheme":"rope","len":20', 400, ["line 1", "column"]),   # truncated
    (b'{"scheme":"rope",\n"len":}', 400, ["line 2", "column"]),
    (b'{"scheme":"rope" "len":2}', 400, ["line 1"]),
    (b'{"scheme":"rope","len":2} x', 400, []),
    (b'{"scheme":"rope","len":02}', 400, []),
    (b'{"scheme":"rope","positions":[1,2,}', 400, ["line"]),
    (b'{"scheme":"rope","positions":[1,2', 400, ["line"]),
    (b'{"scheme":"rope","positions":[.5]}', 400, ["line"]),
    (b'{"scheme":"rope","positions":[+1]}', 400, ["line"]),
    (b'{"scheme":"rope","positions":[NaN]}', 400, ["line"]),
    (b'{"scheme":"rope","len":2,"len":3}', 400, ["len"]),
    (b'{"scheme":"rope","scaling":{"type":"default","type":"default"},"len":2}', 400, ["type"]),
    (b"", 400, []),
    (b"   ", 400, []),
    (b"scheme=rope&len=4", 400, ["line 1"]),
    (b'{"scheme":"r\xff","len":2}', 400, []),
    (b'{"scheme":"rope\\u0000","len":2}', (400, 422), []),
    (b"\x00\x01\x02", 400, []),
    (b'{"scheme":"rope","len":2\x00}', 400, ["line 1, column 25", "NUL"]),   # jansson alone would take it
    (b'{"scheme":"rope","positions":[3\x00,1]}', 400, ["NUL"]),
    (b"[1,2]", 422, ["object"]),
    (b'["a"]', 422, ["object"]),
    (b'"rope"', (400, 422), []),
    (b"{'scheme':'rope'}", 400, []),
    (b"[" * 100_000, (400, 413, 422), []),
    (b'{"a":' * 10_000, (400, 413, 422), []),
    (b'{"positions":' + b"[" * 65 + b"1" + b"]" * 65 + b"}", (400, 413, 422), []),
    (b'{"scheme":"rope","positions":[' + b"[1],[2,3]," * 50_000 + b"[1]]}", (400, 422), []),
], ids=lambda v: repr(v[:40]) if isinstance(v, bytes) else None)
def test_bodies(server, body, status, words):
    response = server.post("/encode", body)
    statuses = status if isinstance(status, tuple) else (status,)
    assert response.status in statuses, response
    check_problem(response, response.status, tuple({response.json().get("pointer", "")}), words)


def test_a_name_in_query_and_body(server):
    check_problem(server.post("/encode?len=3", {"scheme": "rope", "len": 3}), 400, "/len", ["len", "twice"])


def test_a_query_with_nonsense(server):
    assert server.post("/encode?len=abc", {"scheme": "rope"}).status == 422
    assert server.post("/encode?len=%zz", {"scheme": "rope"}).status in (400, 422)
    assert server.post("/encode?lenn=4", {"scheme": "rope"}).status == 422


# ---- Tensors that are no tensors ---------------------------------------------------------------------------------------

GOOD = npy(np.ones((2, 4), "f4"))
REQUEST = '{"scheme":"rope"}'


def npy_with(header):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + b"\0" * 32


@pytest.mark.parametrize("file", [
    GOOD[:-1], GOOD + b"x", GOOD[:40], GOOD[:9], b"", b"not a file", b"\x93NUMPY\x09\x00" + GOOD[8:],
    npy_with("{'descr': '|O', 'fortran_order': False, 'shape': (2, 4), }"),
    npy_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -4), }"),
    npy_with("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
    npy_with("{'descr': '<f4', 'fortran_order': False}"),
    npy_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4"),
    npy_with("import os"),
    npy_with("{'descr': '<f4\0', 'fortran_order': False, 'shape': (2, 4), }"),
    npy_with("{'descr': '<f4', 'fortran_order\0x': False, 'shape': (2, 4), }"),
], ids=range(15))
def test_npy_files_that_lie(server, file):
    body, headers = multipart(request=REQUEST, q=file)
    response = server.post("/rotate", body, headers)
    assert response.status in (400, 415, 422), response
    check_problem(response, response.status, tuple({response.json().get("pointer", "")}), [])
    assert "q" in response.json()["detail"] or response.json()["pointer"] == "/q"


def safetensors_with(header, data=b"\0" * 32):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


ENTRY = {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]}
META = {"request": REQUEST}


@pytest.mark.parametrize("file", [
    b"", b"1234567", struct.pack("<Q", 2 ** 63), struct.pack("<Q", 100) + b"{}",
    safetensors_with(b"not json"), safetensors_with(b"[]"),
    safetensors_with({"__metadata__": META, "q": ENTRY}, b"\0" * 31),
    safetensors_with({"__metadata__": META, "q": ENTRY}, b"\0" * 33),
    safetensors_with({"__metadata__": META, "q": {**ENTRY, "data_offsets": [4, 36]}}, b"\0" * 36),
    safetensors_with({"__metadata__": META, "q": {**ENTRY, "data_offsets": [32, 0]}}),
    safetensors_with({"__metadata__": META, "q": {**ENTRY, "shape": [2, 5]}}),
    safetensors_with({"__metadata__": META, "q": {**ENTRY, "shape": [2 ** 62, 8]}}),
    safetensors_with({"__metadata__": META, "q": {**ENTRY, "dtype": "F33"}}),
    safetensors_with({"__metadata__": META, "q": ENTRY, "k": ENTRY}),
    safetensors_with({"__metadata__": {"request": "{"}, "q": ENTRY}),
    safetensors_with({"__metadata__": {"request": 1}, "q": ENTRY}),
    safetensors_with({"q": ENTRY}),
], ids=range(17))
def test_safetensors_files_that_lie(server, file):
    response = server.post("/rotate", file, {"Content-Type": "application/vnd.safetensors"})
    assert response.status in (400, 422), response
    check_problem(response, response.status, tuple({response.json().get("pointer", "")}), [])


def test_multipart_that_is_none(server):
    good, headers = multipart(request=REQUEST, q=GOOD)
    assert server.post("/rotate", good, headers).status == 200
    form = "multipart/form-data"
    for body, content_type in [(good, form), (good, f"{form}; boundary=other"), (good[:-10], headers["Content-Type"]),
                               (good[:200], headers["Content-Type"]), (b"", headers["Content-Type"]),
                               (good.replace(b'name="q"', b'name="q\0x"'), headers["Content-Type"]),
                               (good.replace(b'name="q"', b'name="q\\\0x"'), headers["Content-Type"]),
                               (good.replace(b'name="q"', b'name=q\0x'), headers["Content-Type"]),
                               (good, f"{form}; boundary="), (good.replace(b"name=", b"nam="), headers["Content-Type"])]:
        response = server.post("/rotate", body, {"Content-Type": content_type})
        assert response.status == 400, (content_type, response)
        check_problem(response, 400, tuple({response.json().get("pointer", "")}), [])


def test_parts(server):
    twice, headers = multipart(request=REQUEST, q=GOOD)
    twice = twice.replace(f"--{BOUNDARY}--".encode(), multipart(q=GOOD)[0])
    check_problem(server.post("/rotate", twice, headers), 400, "/q", ["q", "twice"])
    body, headers = multipart(request=REQUEST, q=GOOD, quux=GOOD)
    check_problem(server.post("/rotate", body, headers), 422, "/quux", ["quux"])
    body, headers = multipart(q=GOOD)
    assert server.post("/rotate", body, headers).status in (400, 422)
    body, headers = multipart(request='{"scheme":', q=GOOD)
    assert server.post("/rotate", body, headers).status == 400


@pytest.mark.parametrize("kind, status, pointer, words", [
    ("64 parts", 422, "/q", ["nothing to rotate"]), ("65 parts", 413, "", ["multipart body", "more than 64 parts"]),
    ("255 tensors", 422, "/q", ["nothing to rotate"]), ("257 tensors", 422, "", ["more than 256 tensors"]),
    ("7 axes", 422, "/q", ["nothing to rotate"]), ("8 axes", 422, "/freqs_cis", ["complex", "at most 7 axes"])])
def test_how_many_there_may_be(server, kind, status, pointer, words):
    n, what = int(kind.split()[0]), kind.split()[1]
    if what == "tensors":
        empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
        header = {f"p{i}": empty for i in range(n)}
        body, headers = safetensors_with(header, b""), {"Content-Type": "application/vnd.safetensors"}
    elif what == "parts":
        body, headers = multipart(request=REQUEST, **{f"p{i}": GOOD for i in range(n - 1)})
    else:
        body, headers = multipart(request=REQUEST, freqs_cis=npy(np.ones((1,) * n, "c8")))
    path = "/rotate?scheme=rope" if what == "tensors" else "/rotate"
    check_problem(server.post(path, body, headers), status, pointer, words)


@pytest.mark.parametrize("path, name, words", [
    ("/golden?preset=llama-3.1", "x", "unknown field"), ("/encode?scheme=rope", "x", "unknown field"),
    ("/experiments?scheme=rope", "q", "not used"), ("/analyze?scheme=rope&metrics=bounds", "q", "not used")])
def test_a_tensor_alone_has_the_name_that_is_usual(server, path, name, words):
    response = server.post(path, npy(np.ones((2, 4), "f4")), {"Content-Type": "application/x-npy"})
    check_problem(response, 422, f"/{name}", [words])


def test_content_codings_are_refused(server):
    response = server.post("/encode", b"x", {"Content-Encoding": "gzip"})
    check_problem(response, 415, "", ["gzip"])
    assert response.headers["Accept-Encoding"] == "identity"
    assert server.post("/encode", ROPE, {"Content-Encoding": "identity"}).status == 200


# ---- Paths and methods -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method,path,status,words", [
    ("GET", "/encod", 404, ["/encode"]), ("GET", "/nothing/here", 404, []), ("GET", "/schemes/rop", 404, ["rope"]),
    ("GET", "/schemes/", 404, []), ("POST", "/Encode", 404, ["/encode"]), ("GET", "/%00", (400, 404), []),
    ("PUT", "/encode", 405, ["POST"]), ("GET", "/rotate", 405, ["POST"]), ("POST", "/schemes", 405, ["GET"]),
    ("DELETE", "/schemes/rope", 405, ["GET"]), ("POST", "/healthz", 405, ["GET"])])
def test_paths_and_methods(server, method, path, status, words):
    response = server.request(method, path, b"{}" if method in ("POST", "PUT") else None)
    assert response.status in (status if isinstance(status, tuple) else (status,)), response
    check_problem(response, response.status, tuple({response.json().get("pointer", "")}), words)
    if status == 405:
        assert words[0] in response.headers["Allow"]


def test_errors_are_not_cached(server):
    assert server.post("/encode", {"scheme": "rop"}).headers["Cache-Control"] == "no-store"


# ---- Limits ------------------------------------------------------------------------------------------------------------


def test_an_answer_over_the_limit(server):
    response = server.post("/encode", {"scheme": "alibi", "num_heads": 4096, "len": 10 ** 6})
    check_problem(response, 413, ("", "/len"), ["--max-answer"])
    response = server.post("/encode", {"scheme": "alibi", "num_heads": 4096, "len": 2 ** 40})
    check_problem(response, 413, ("", "/len"), [])


def test_limits_are_options():
    with start_server("--max-body", "64KiB", "--max-answer", "1MiB") as server:
        big = {"scheme": "rope", "positions": list(range(30_000))}
        check_problem(server.post("/encode", big), 413, "", ["--max-body", "65536"])
        check_problem(server.post("/encode", {"scheme": "rope", "len": 100_000}), 413, ("", "/len"), ["--max-answer"])
        blocks = iter([b" " * 10_000] * 20)
        response = server.request("POST", "/encode", blocks)  # chunked: found out on the way
        check_problem(response, 413, "", ["--max-body"])
        assert server.post("/encode", {"scheme": "rope", "len": 100}).status == 200


# ---- The server continues ----------------------------------------------------------------------------------------------


def test_the_server_goes_on(server):
    for fields, _, _ in FIELDS + ROTATE:
        for path in ("/encode", "/rotate"):
            assert server.post(path, fields).status in (200, 406, 413, 422)
    assert server.get("/healthz").json() == {"status": "ok"}
    assert server.post("/encode", ROPE).status == 200


def test_every_prefix_of_a_request(server):
    """No cut of a valid body is a crash, and only the whole is answered."""
    bodies = [(b'{"scheme":"rope","len":3,"head_dim":8,"outputs":["cos"]}', {}),
              (safetensors_reader.dumps({"q": np.ones((2, 4), "f4")}, {"request": REQUEST}),
               {"Content-Type": "application/vnd.safetensors"}), multipart(request=REQUEST, q=GOOD)]
    for path, (body, headers) in zip(("/encode", "/rotate", "/rotate"), bodies):
        assert server.post(path, body, headers).status == 200
        for n in range(0, len(body) - 2, 1 if len(body) < 100 else 7):
            assert server.post(path, body[:n], headers).status in (400, 422), (path, n)
