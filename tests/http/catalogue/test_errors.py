"""Bad requests that are made of bytes: files, forms and cuts. Each gets a problem that states how to correct it, and none harms the server.
Fields, texts, paths and methods that are refused are rows of tests/cases/refused.jsonl."""
import json
import struct

import numpy as np
import pytest

import run
import safetensors_reader
from conftest import start_server
from tensors import BOUNDARY, multipart, npy


def check_problem(response, status, pointer, words):
    assert response.status == status, response
    run.check_problem(response)
    problem = response.json()
    pointers = pointer if isinstance(pointer, tuple) else (pointer,)
    assert problem.get("pointer", "") in pointers, problem
    for word in words:
        assert word in problem["detail"], f"{word!r} is missing in: {problem['detail']}"


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


def test_a_part_that_is_there_twice(server):
    twice, headers = multipart(request=REQUEST, q=GOOD)
    twice = twice.replace(f"--{BOUNDARY}--".encode(), multipart(q=GOOD)[0])
    check_problem(server.post("/rotate", twice, headers), 400, "/q", ["q", "twice"])


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


def test_a_body_in_chunks_that_is_too_long():
    """Found out on the way."""
    with start_server("--max-body", "64KiB") as server:
        response = server.request("POST", "/encode", iter([b" " * 10_000] * 20))
        check_problem(response, 413, "", ["--max-body"])
        assert server.post("/encode", {"scheme": "rope", "len": 100}).status == 200


def test_every_prefix_of_a_request(server):
    """No cut of a valid body is a crash, and only the whole is answered."""
    bodies = [(b'{"scheme":"rope","len":3,"head_dim":8,"outputs":["cos"]}', {}),
              (safetensors_reader.dumps({"q": np.ones((2, 4), "f4")}, {"request": REQUEST}),
               {"Content-Type": "application/vnd.safetensors"}), multipart(request=REQUEST, q=GOOD)]
    for path, (body, headers) in zip(("/encode", "/rotate", "/rotate"), bodies):
        assert server.post(path, body, headers).status == 200
        for n in range(0, len(body) - 2, 1 if len(body) < 100 else 7):
            assert server.post(path, body[:n], headers).status in (400, 422), (path, n)
