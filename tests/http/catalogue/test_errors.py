"""Bad requests that are made here: every scheme's name beside one that is none, how many tensors there may be, cuts of a whole request.
Fields, texts, paths, methods, files and forms that are refused are rows of tests/cases/refused.jsonl and refused_api.jsonl."""
import json
import struct

import numpy as np
import pytest

import run
import safetensors_reader
from conftest import start_server
from tensors import multipart, npy


def check_problem(response, status, pointer, words):
    assert response.status == status, response
    run.check_problem(response)
    problem = response.json()
    assert problem.get("pointer", "") == pointer, problem
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


# ---- How many there may be, and cuts ---------------------------------------------------------------------------------------

GOOD = npy(np.ones((2, 4), "f4"))
REQUEST = '{"scheme":"rope"}'


def safetensors_with(header, data=b"\0" * 32):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


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
