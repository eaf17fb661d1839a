"""/v2: refusals with their status, field and text; wrong lengths; none of these requests ends the server."""
import json
import struct

import numpy as np
import pytest

from oip_client import Client, Input, Output, body_of

ONE = {"shape": [1], "datatype": "FP64", "data": [1]}
Q = {"name": "q", "shape": [1, 2], "datatype": "FP32", "data": [1, 0]}


@pytest.fixture
def client(server):
    return Client(server)


def refused(response, status, pointer="", *words):
    assert response.status == status, response
    assert response.headers["Content-Type"] == "application/json"
    problem = response.json()
    assert problem["error"] == problem["detail"] and problem["status"] == status and problem.get("pointer", "") == pointer, problem
    for word in words:
        assert word in problem["error"], problem


def q(**changes):
    return {"inputs": [{name: value for name, value in {**Q, **changes}.items() if value is not ...}]}


# ---- JSON that says something impossible ------------------------------------------------------------------------------------


@pytest.mark.parametrize("document,status,pointer,words", [
    ([], 422, "", ["not an object"]),
    ({"id": 7}, 422, "/id", ["string"]),
    ({"input": []}, 422, "/input", ['nearest: "inputs"']),
    ({"inputs": {}}, 422, "/inputs", ["list"]),
    ({"inputs": [1, 2]}, 422, "/inputs", ["list"]),
    ({"inputs": [[{}]]}, 422, "/inputs/0", ["object"]),
    ({"inputs": "q"}, 422, "/inputs", ["list"]),
    (q(name=...), 422, "/inputs/0/name", ["missing"]),
    (q(name=""), 422, "/inputs/0/name", ["empty"]),
    (q(name=4), 422, "/inputs/0/name", ["string"]),
    (q(datatype=...), 422, "/inputs/0/datatype", ["missing"]),
    (q(datatype="fp32"), 422, "/inputs/0/datatype", ["unknown datatype", "FP32"]),
    (q(datatype="COMPLEX64"), 422, "/inputs/0/datatype", ["unknown datatype"]),
    (q(datatype="BYTES"), 422, "/inputs/0/datatype", ["tokens"]),
    (q(shape=...), 422, "/inputs/0/shape", ["list"]),
    (q(shape=[-1, 2]), 422, "/inputs/0/shape", ["at least 0"]),
    (q(shape=[0.5, 4]), 422, "/inputs/0/shape", ["at least 0"]),
    (q(shape=["NaN"]), 422, "/inputs/0/shape", ["at least 0"]),
    (q(shape=[[1, 2]]), 422, "/inputs/0/shape", ["list"]),
    (q(shape=[1] * 9), 422, "/inputs/0/shape", ["at most 8"]),
    (q(shape=[1, 2, "x"]), 422, "/inputs/0/shape", ["list"]),
    (q(shape=[2 ** 32, 2 ** 32]), 422, "/inputs/0/shape", ["2^63"]),
    (q(shape=[2, 2]), 422, "/inputs/0/shape", ["4 elements", "2"]),
    (q(shape=[]), 422, "/inputs/0/shape", ["1 elements"]),
    (q(data=...), 422, "/inputs/0/data", ["missing"]),
    (q(data=None), 422, "/inputs/0/data", ["missing"]),
    (q(data=1), 422, "/inputs/0/data", ["list"]),
    (q(data="1,0"), 422, "/inputs/0/data", ["list"]),
    (q(data=[1, "x"]), 422, "/inputs/0/data", ["numbers"]),
    (q(data=[1, None]), 422, "/inputs/0/data", ["numbers"]),
    (q(data=[True, False]), 422, "/inputs/0/data", ["numbers"]),
    (q(data=[1, True]), 422, "/inputs/0/data", ["numbers"]),
    (q(data=[[1], [2, 3]]), 422, "/inputs/0/data", ["ragged"]),
    (q(datatype="UINT8", data=[256, 0]), 422, "/inputs/0/data", ["256"]),
    (q(datatype="INT8", data=[-129, 0]), 422, "/inputs/0/data", ["-129"]),
    (q(datatype="INT32", data=[0.5, 0]), 422, "/inputs/0/data", ["0.5"]),
    (q(datatype="BOOL", data=[2, 0]), 422, "/inputs/0/data", ["2"]),
    (q(dat=[1]), 422, "/inputs/0/dat", ['nearest: "data"']),
    (q(parameters=[1]), 422, "/inputs/0/parameters", ["object"]),
    (q(parameters={"binary_data_size": 8}), 422, "/inputs/0/data", ["give one"]),
    (q(data=..., parameters={"binary_data_size": "8"}), 422, "/inputs/0/parameters/binary_data_size", ["integer"]),
    (q(data=..., parameters={"binary_data_size": -8}), 422, "/inputs/0/parameters/binary_data_size", ["integer"]),
    (q(data=..., parameters={"binary_data_size": 8.5}), 422, "/inputs/0/parameters/binary_data_size", ["integer"]),
    (q(parameters={"shared_memory_region": "x"}), 422, "/inputs/0/parameters/shared_memory_region", ["shared memory"]),
    ({"inputs": [Q, Q]}, 422, "/inputs/1/name", ["another"]),
    (q(name="qq"), 422, "/inputs/0", ["qq"]),
    ({"inputs": [Q, {**Q, "name": "w"}]}, 422, "/inputs/1", ["w"]),
    ({**q(), "outputs": {}}, 422, "/outputs", ["list"]),
    ({**q(), "outputs": [{"name": 1}]}, 422, "/outputs/0/name", ["string"]),
    ({**q(), "outputs": [{}]}, 422, "/outputs/0/name", ["missing"]),
    ({**q(), "outputs": [{"name": "q_out", "data": []}]}, 422, "/outputs/0/data", ["unknown member"]),
    ({**q(), "outputs": [{"name": "q_out"}, {"name": "q_out"}]}, 422, "/outputs/1/name", ["another"]),
    ({**q(), "outputs": [{"name": "q_oot"}]}, 422, "/outputs/0/name", ["q_out"]),
    ({**q(), "outputs": [{"name": "q"}]}, 422, "/outputs/0/name", ["q_out"]),
    ({**q(), "outputs": [{"name": "q_out"}, {"name": "cos"}]}, 422, "/outputs/1/name", ["one by one"]),
    ({**q(), "outputs": [{"name": "k_out"}]}, 422, "/outputs/0/name", ["input k"]),
    ({**q(), "outputs": [{"name": "q_out", "parameters": {"binary_data": "true"}}]}, 422, "/outputs/0/parameters/binary_data", ["true or false"]),
    ({**q(), "outputs": [{"name": "q_out", "parameters": {"classification": 3}}]}, 422, "/outputs/0/parameters/classification", ["classification"]),
    ({**q(), "outputs": [{"name": "q_out"}] * 33}, 422, "/outputs", ["32"]),
    ({**q(), "parameters": [1]}, 422, "/parameters", ["object"]),
    ({**q(), "parameters": {"bas": 5}}, 422, "/parameters/bas", ['"base"']),
    ({**q(), "parameters": {"base": "5"}}, 422, "/parameters/base", []),
    ({**q(), "parameters": {"base": -5}}, 422, "/parameters/base", []),
    ({**q(), "parameters": {"scaling": {"type": "linear", "factor": 2}}}, 422, "/parameters/scaling", ["JSON text"]),
    ({**q(), "parameters": {"positions": [0]}}, 422, "/parameters/positions", ["JSON text"]),
    ({**q(), "parameters": {"scaling": '{"type":"liner"}'}}, 422, "/parameters/scaling/type", ["linear"]),
    ({**q(), "parameters": {"scaling": '{"type":"linear","factor":2},"base":{}'}}, 400, "", ["scaling"]),
    ({**q(), "parameters": {"scaling": "{"}}, 400, "", ["scaling"]),
    ({**q(), "parameters": {"scheme": "rope"}}, 422, "/parameters/scheme", ["model"]),
    ({**q(), "parameters": {"format": "npy"}}, 422, "/parameters/format", ["only dtype"]),
    ({**q(), "parameters": {"digits": 3}}, 422, "/parameters/digits", ["only dtype"]),
    ({**q(), "parameters": {"outputs": '["q_out"]'}}, 422, "/parameters/outputs", ["only dtype"]),
    ({**q(), "parameters": {"slice": "[0]"}}, 422, "/parameters/slice", ["only dtype"]),
    ({**q(), "parameters": {"dtype": "f8"}}, 422, "/parameters/dtype", ["f32"]),
    ({**q(), "parameters": {"dtype": "FP16"}}, 422, "/parameters/dtype", ["f16"]),
    ({**q(), "parameters": {"preset": "t5-small"}}, 422, "/parameters", ["rope"]),
    ({**q(), "parameters": {"timeout": -1}}, 422, "/parameters/timeout", ["integer"]),
    ({**q(), "parameters": {"timeout": "1"}}, 422, "/parameters/timeout", ["integer"]),
    ({**q(), "parameters": {"binary_data_output": 1}}, 422, "/parameters/binary_data_output", ["true or false"]),
    ({"inputs": [Q, {"name": "positions", "shape": [1], "datatype": "INT64", "data": [1]}], "parameters": {"positions": "[2]"}}, 400, "/inputs/1/name", ["positions", "parameter"]),
    ({"inputs": [Q, {"name": "slice", "shape": [2, 2], "datatype": "INT64", "data": [0, 1, 0, 1]}]}, 422, "/inputs/1/name", ["slice", "form"]),
    *(({"inputs": [Q, {**ONE, "name": name}]}, 422, "/inputs/1/name", [f'"{name}"', "no input"]) for name in ("dtype", "format", "outputs", "data", "digits", "scheme")),
    ({"inputs": [{**ONE, "name": "a/b"}], "parameters": {"len": 2}}, 422, "/inputs/0", ["a/b"]),
    ({"parameters": {"hf_config": "[" * 20 + "1" + "]" * 20}}, 422, "/parameters/hf_config", ["8 levels"]),
    ({"inputs": [{"name": "tokens", "shape": [2], "datatype": "BYTES", "data": ["a"]}]}, 422, "/inputs/0/shape", ["words"]),
    ({"inputs": [{"name": "tokens", "shape": [1], "datatype": "BYTES", "data": "a"}]}, 422, "/inputs/0/data", ["words"]),
    ({}, 422, None, []),
], ids=lambda value: json.dumps(value)[:60] if isinstance(value, (dict, list)) else None)
def test_refused(client, document, status, pointer, words):
    response = client.post("rope", json.dumps(document).encode())
    refused(response, status, response.json().get("pointer", "") if pointer is None else pointer, *words)


@pytest.mark.parametrize("model,document,pointer,word", [
    ("alibi", {"parameters": {"len": 2}, "outputs": [{"name": "q_out"}]}, "/outputs/0/name", "does not do"),
    ("encode-rope", {"parameters": {"len": 2}, "outputs": [{"name": "q_out"}]}, "/outputs/0/name", "does not do"),
    ("encode-rope", {"parameters": {"len": 2}, "outputs": [{"name": "cosine"}]}, "/outputs/0", '"cos"'),
    ("sinusoidal", {"inputs": [Q, {**Q, "name": "k"}]}, "/inputs/0", "embeddings"),
    ("rope", {"outputs": [{"name": "q_out"}]}, "/outputs/0/name", "input q"),
    ("rotate-rope", {"parameters": {"len": 2}}, "/parameters/q", "nothing to rotate"),
    ("learned", {"parameters": {"len": 2}}, "/parameters/table", "seed"),
    ("attention-rope", {"inputs": [Q]}, "/parameters/k", "missing")])
def test_what_a_model_cannot(client, model, document, pointer, word):
    refused(client.post(model, json.dumps(document).encode()), 422, pointer, word)


# ---- Bytes that lie ---------------------------------------------------------------------------------------------------------


HEAD, TAIL = body_of([Input("q", np.array([[1, 0]], "f4"))])


@pytest.mark.parametrize("length", ["", "12x", "-1", "+5", "1.5", "0x10", "9" * 19, "9" * 20, "9" * 400, str(len(HEAD + TAIL) + 1), " ", "1 2", "1,2"])
def test_headers_that_are_no_length(client, length):
    refused(client.post("rope", HEAD, TAIL, length=length), 400, "", "Inference-Header-Content-Length")


def test_two_headers(server):
    import http.client
    connection = http.client.HTTPConnection(server.host, server.port, timeout=20)
    connection.putrequest("POST", "/v2/models/rope/infer")
    for name, value in (("Content-Length", len(HEAD)), ("Inference-Header-Content-Length", len(HEAD)), ("inference-header-content-length", 0)):
        connection.putheader(name, value)
    connection.endheaders(HEAD)
    assert connection.getresponse().status == 400
    connection.close()


@pytest.mark.parametrize("length", [1, len(HEAD) - 1, len(HEAD) + 1, len(HEAD + TAIL)])
def test_headers_that_cut_elsewhere(client, length):
    response = client.post("rope", HEAD, TAIL, length=str(length))
    assert response.status == 400, response


def test_without_header_the_tail_is_no_json(server):
    refused(server.request("POST", "/v2/models/rope/infer", HEAD + TAIL), 400, "", "not JSON")


@pytest.mark.parametrize("body", [b"", b" ", b"{", b'{"inputs":[', b"\0", b"{}{}", b'{"id":"a","id":"b"}', b'{"id":"\xff"}', b"[" * 100 + b"]" * 100, b'{"a":' * 70 + b"1" + b"}" * 70])
def test_not_json(server, body):
    response = server.request("POST", "/v2/models/rope/infer", body)
    assert response.status in (400, 422) and response.json()["error"], response
    assert response.status == 400 or body.startswith(b"[[")


@pytest.mark.parametrize("size,tail,pointer,word", [
    (8, 7, "/inputs/0/parameters/binary_data_size", "7 bytes left"), (8, 0, "/inputs/0/parameters/binary_data_size", "0 bytes left"), (8, 9, "", "1 bytes are left"),
    (7, 7, "/inputs/0/parameters/binary_data_size", "need 8"), (16, 16, "/inputs/0/parameters/binary_data_size", "need 8"),
    (2 ** 63 - 1, 8, "/inputs/0/parameters/binary_data_size", "need 8"), (0, 0, "/inputs/0/parameters/binary_data_size", "need 8")])
def test_sizes_that_lie(client, size, tail, pointer, word):
    head = json.dumps(q(data=..., parameters={"binary_data_size": size})).encode()
    refused(client.post("rope", head, b"\0" * tail, length=str(len(head))), 400, pointer, word)


@pytest.mark.parametrize("shape", [[2 ** 53, 2 ** 53], [2 ** 31, 2 ** 31, 2], [2 ** 53, 2 ** 10], [2 ** 20] * 4])
def test_shapes_that_overflow(client, shape):
    head = json.dumps(q(data=..., shape=shape, parameters={"binary_data_size": 8})).encode()
    response = client.post("rope", head, b"\0" * 8)
    assert response.status in (400, 422) and response.json()["pointer"].startswith("/inputs/0"), response


def test_a_second_input_too_long(client):
    head, tail = body_of([Input("q", np.zeros((1, 2), "f4")), Input("k", np.zeros((1, 2), "f4"))])
    refused(client.post("rope", head, tail[:-1]), 400, "/inputs/1/parameters/binary_data_size", "7 bytes left")


@pytest.mark.parametrize("raw", [b"\1", b"\1\0\0\0", b"\2\0\0\0a", struct.pack("<I", 2 ** 32 - 1) + b"a", b"\1\0\0\0\0", b"\1\0\0\0a\1"])
def test_words_that_lie(client, raw):
    head = json.dumps({"inputs": [{"name": "tokens", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": len(raw)}}]}).encode()
    refused(client.post("none", head, raw), 400, "/inputs/0", "words")


def test_words_have_a_ceiling(client):
    """As bytes no less than as JSON: a word of none takes thirty times its four bytes."""
    n = (1 << 20) // 4 + 1
    head = json.dumps({"inputs": [{"name": "tokens", "shape": [n], "datatype": "BYTES", "parameters": {"binary_data_size": 4 * n}}]}).encode()
    refused(client.post("attention-none", head, bytes(4 * n)), 413, "/inputs/0/parameters/binary_data_size", "1048576")


@pytest.mark.parametrize("document,place", [
    ({"id": 7}, "/id"), (q(name=...), "/inputs/0/name"), (q(shape="1"), "/inputs/0/shape"), (q(data=...), "/inputs/0/data"), ({"inputs": [Q, Q]}, "/inputs/1/name"),
    ({**q(), "outputs": [{"name": "q_out", "parameters": {"binary_data": 1}}]}, "/outputs/0/parameters/binary_data"), ({**q(), "parameters": {"timeout": "1"}}, "/parameters/timeout")])
def test_the_words_alone_say_where(client, document, place):
    """Triton's clients show `error` and nothing else of a refusal."""
    refused(client.post("rope", json.dumps(document).encode()), 422, place, place + ": ")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_no_json(client, number):
    """The writers of Python and rapidjson do not quote them; the refusal states how to write them."""
    refused(client.post("rope", json.dumps(q()).replace("[1, 0]", f"[1,{number}]").encode()), 400, "", "not JSON", f'"{number}"')


def test_an_empty_tensor(client):
    head = json.dumps(q(shape=[0, 2], data=..., parameters={"binary_data_size": 0})).encode()
    assert client.post("rope", head).status == 422
    assert client.post("rope", json.dumps(q(shape=[0, 2], data=[])).encode()).status == 422
    for binary in (False, True):
        head = body_of([Input("positions", np.zeros(0, "i8"), "INT64", binary)])[0]
        refused(client.post("rope", head, length=str(len(head))), 422, "/inputs/0", "positions is empty")


def test_json_beside_bytes_has_a_ceiling(client):
    head = body_of(outputs=[Output("cos", False), Output("sin")], parameters={"len": 200000})[0]
    refused(client.post("rope", head), 413, "/outputs", "binary_data")
    q = Input("q", np.zeros((1, 16, 8192, 64), "f4"))
    k = Input("k", np.zeros((1, 16, 8192, 64), "f4"))
    head, tail = body_of([q, k], [Output("row_entropy", False), Output("probs")])
    refused(client.post("attention-rope", head, tail), 413, "/outputs", "row_entropy")


def test_codings_are_refused(server):
    response = server.request("POST", "/v2/models/rope/infer", HEAD, {"Content-Encoding": "gzip"})
    assert response.status == 415 and response.headers["Accept-Encoding"] == "identity" and response.json()["error"]


def test_any_prefix_and_any_header(client):
    """Every cut of a good body, and every header of one: an answer, never silence."""
    for n in range(0, len(HEAD + TAIL), 7):
        assert client.post("rope", (HEAD + TAIL)[:n], length=str(min(n, len(HEAD)))).status == 400
    for length in range(0, len(HEAD + TAIL) + 3, 5):
        assert client.post("rope", HEAD, TAIL, length=str(length)).status == (200 if length == len(HEAD) else 400)
