"""/v2, the Open Inference Protocol, by a client of its own: inferences against the formulas and against /encode, /rotate, /attention; bytes that
lie. What JSON alone says, and refuses, are the rows ../cases/oip.jsonl."""
import http.client
import json

import numpy as np
import pytest

import truth
from conftest import start_server
from oip_client import Client, Input, Output, Result, body_of
from tensors import from_raw, to_bf16


@pytest.fixture
def client(server):
    return Client(server)


def normal(*shape, seed=0, dtype="f4"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# ---- The server and its models ---------------------------------------------------------------------------------------------


def test_draining_is_not_ready():
    with start_server("--drain-delay", "3") as server:
        server.process.terminate()
        for path in ("/v2/health/ready", "/v2/models/rope/ready"):
            response = server.get(path)
            while response.status == 200:
                response = server.get(path)
            assert response.status == 503 and response.json()["error"] and response.headers["Retry-After"]
        assert server.get("/v2/health/live").status == 200


def test_every_scheme_is_a_model(server):
    schemes = server.get("/schemes").json()["schemes"]
    expected = []
    for scheme in schemes:
        prefixes = {"/encode": "encode-", "/rotate": "rotate-", "/attention": "attention-"}
        expected += [scheme["name"], *(prefixes[e] + scheme["name"] for e in scheme["endpoints"] if e in prefixes)]
    assert server.get("/v2/models").json() == {"models": expected}
    index = server.request("POST", "/v2/repository/index", b'{"ready":true}').json()
    assert index == [{"name": n, "version": "1", "state": "READY", "reason": ""} for n in expected]
    assert [m["name"] for m in server.get("/v2/models/stats").json()["model_stats"]] == expected
    for name in expected:
        for path in (f"/v2/models/{name}", f"/v2/models/{name}/versions/1"):
            model = server.get(path).json()
            assert model["name"] == name and model["versions"] == ["1"] and model["platform"] == "posenc"
            for tensor in model["inputs"] + model["outputs"]:
                assert set(tensor) == {"name", "datatype", "shape"} and all(n == -1 or n > 0 for n in tensor["shape"])
            assert len({t["name"] for t in model["inputs"]}) == len(model["inputs"])
            assert server.get(path + "/ready").json() == {"name": name, "ready": True}
            config = server.get(path + "/config").json()
            assert [t["name"] for t in config["input"]] == [t["name"] for t in model["inputs"]]
            assert [t["dims"] for t in config["output"]] == [t["shape"] for t in model["outputs"]]
            assert server.get(path + "/stats").json()["model_stats"] == [{"name": name, "version": "1"}]


# ---- Every datatype, as JSON and as bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("binary_out", [False, True])
@pytest.mark.parametrize("datatype,tolerance", [("FP32", 1e-6), ("FP64", 1e-14), ("FP16", 2e-3), ("BF16", 2e-2)])
def test_datatypes_follow_q(client, datatype, tolerance, binary_in, binary_out):
    q, k = normal(2, 4, 5, 8), normal(2, 2, 5, 8, seed=1)
    narrow = {"FP16": lambda a: a.astype("f2"), "BF16": lambda a: to_bf16(a.astype(float))}.get(datatype, lambda a: a)
    q, k = narrow(q), narrow(k)
    result = client.infer("rope", [Input("q", q, datatype, binary_in), Input("k", k, datatype, binary_in)],
                          [Output("k_out", binary_out), Output("q_out", binary_out)], parameters={"offset": 3, "layout": "half"})
    assert result.names == ["k_out", "q_out"] and result.datatype("q_out") == result.datatype("k_out") == datatype
    for name, x in (("q_out", q), ("k_out", k)):
        expected = truth.rotate(np.asarray(x, float), range(3, 8), layout="half")
        np.testing.assert_allclose(result[name].astype(float), expected, atol=tolerance, rtol=tolerance)


Q, K, V, TABLE = normal(1, 2, 5, 8), normal(1, 2, 5, 8, seed=1), normal(1, 2, 5, 4, seed=2), normal(32, 4)
WORDS = ["the", "dog", "chased", "another", "d\u00f6g", "dog"]  # the textbook's dogs
NUMBERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP32", "FP64", "FP16", "BF16")
LINEAR = {"head_dim": 8, "scaling": {"type": "linear", "factor": 2}}
ASKED = [  # model, inputs (name, values, datatype), outputs, parameters, path, fields beside the same inputs and parameters
    *(("sinusoidal", [("positions", [3, 0, 100, 7], datatype)], ["encoding"], {"dim": 16}, "/encode", {}) for datatype in NUMBERS),
    *(("sinusoidal", [("positions", [1.5, 2.25], "FP64")], ["encoding"], {"dim": 8, "dtype": dtype}, "/encode", {}) for dtype in ("f64", "f16", "bf16", "f32")),
    ("alibi", [("key_mask", [True, False, True], "BOOL")], ["bias"], {"len": 3, "num_heads": 2}, "/encode", {"key_mask": [1, 0, 1]}),
    ("none", [("tokens", WORDS, "BYTES")], ["probs"], {}, "/attention", {}),
    ("none", [], ["probs"], {"tokens": json.dumps(WORDS)}, "/attention", {"tokens": WORDS}),
    ("rope", [("positions", [0, 5, 131071], "INT64")], ["sin", "cos"], {**LINEAR, "scaling": json.dumps(LINEAR["scaling"])}, "/encode", LINEAR),
    ("rope", [], ["cos", "sin"], {"len": 5000}, "/encode", {}),
    ("rope", [], ["cos", "sin"], {"preset": "llama-3.1", "positions": "[0,1,131071]"}, "/encode", {"positions": [0, 1, 131071]}),
    *((model, [("q", Q, "FP32"), ("k", K, "FP32"), ("v", V, "FP32")], ["output", "probs"], {"causal": True}, "/attention", {}) for model in ("alibi", "attention-alibi")),
    ("t5", [("table", TABLE, "FP32")], ["bias", "buckets"], {"len": 6}, "/encode", {}),
]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("model, inputs, outputs, parameters, path, fields", ASKED)
def test_an_inference_is_the_answer_of_its_endpoint(client, server, model, inputs, outputs, parameters, path, fields, binary):
    """Inputs and parameters are the fields of a request; lists and objects in parameters are texts."""
    given, wanted = [Input(*one, binary) for one in inputs], [Output(name, binary) for name in outputs]
    got = client.infer(model, given, wanted, parameters=parameters)
    sent = {name: np.asarray(values).tolist() for name, values, _ in inputs}
    expected = from_raw(server.ask(path, scheme=model.rpartition("-")[2], **{**sent, **parameters, **fields}, outputs=outputs, format="raw"))
    assert got.names == outputs == list(expected) and all(got[name].tobytes() == expected[name].tobytes() for name in outputs)
    said = {"f4": "FP32", "f8": "FP64", "f2": "FP16", "i4": "INT32"}
    assert all(got.datatype(name) in (said[expected[name].dtype.str[1:]], "BF16" if parameters.get("dtype") == "bf16" else "") for name in outputs)
    assert "probs" not in outputs or got.json["parameters"] == {"empty_rows": 0}


# ---- Which operation -------------------------------------------------------------------------------------------------------


def test_content_types_of_mlserver_say_nothing_here(client):
    q = normal(1, 1, 2, 4)
    plain = client.infer("rope", [Input("q", q)], [Output("q_out")]).response.body
    assert client.infer("rope", [Input("q", q, content_type="np")], [Output("q_out", content_type="np")], parameters={"content_type": "np"}).response.body == plain


def test_whole_numbers_may_have_a_point(client):
    head, tail = body_of([Input("q", np.array([[1, 0]], "f4"))], [Output("q_out")])
    spelled = head.replace(b'"binary_data_size": 8', b'"binary_data_size": 8.0').replace(b"[1, 2]", b"[1.0, 2]")
    assert spelled != head and client.post("rope", spelled, tail).body == client.post("rope", head, tail).body


def test_raw_requests(client, server):
    """Header 0: the body is the positions alone."""
    positions = np.array([5, 0, 9], "<i8")
    got = Result(client.post("rope", b"", positions.tobytes(), length="0"))
    expected = from_raw(server.ask("/encode", scheme="rope", positions=positions.tolist(), format="raw"))
    assert got.names == ["cos", "sin"] and all(got[n].tobytes() == expected[n].tobytes() for n in expected)
    for bad in (b"1234567", b"123456789"):
        refused = client.post("rope", b"", bad, length="0")
        assert refused.status == 400 and "positions" in refused.json()["error"]


def test_a_body_of_sixteen_mebibytes(client, server):
    q = normal(1, 8, 4096, 64)
    text = json.dumps({"inputs": [{"name": "q", "shape": list(q.shape), "datatype": "FP32", "data": np.round(q.ravel(), 6).tolist()}]}).encode()
    assert len(text) > 16 << 20
    got = Result(client.post("rope", text))
    sent = np.round(q.ravel(), 6).reshape(q.shape)
    again = client.infer("rope", [Input("q", sent)], [Output("q_out")])
    assert got["q_out"].tobytes() == again["q_out"].tobytes()


@pytest.mark.parametrize("pad", range(9))
def test_any_alignment(client, pad):
    """The JSON may end at any byte; tensors behind it of several sizes."""
    q, positions, k = normal(1, 1, 3, 4), np.array([4, 5, 6]), normal(1, 1, 3, 4, seed=1)
    got = client.infer("rope", [Input("q", q), Input("positions", positions, "UINT8"), Input("k", k, "FP64")], [Output("q_out"), Output("k_out")], request_id="x" * pad)
    np.testing.assert_allclose(got["q_out"], truth.rotate(q.astype(float), [4, 5, 6]), atol=1e-6)
    np.testing.assert_allclose(got["k_out"], truth.rotate(k.astype(float), [4, 5, 6]), atol=1e-6)


def test_large_bodies_are_moved_in_place(client):
    """Bodies that a worker reads are aligned within themselves: all tensors behind a JSON of odd length."""
    for pad in range(5):
        q, k = normal(1, 4, 200, 64), normal(1, 2, 200, 64, seed=1)
        got = client.infer("rope", [Input("q", q), Input("k", k)], [Output("q_out"), Output("k_out")], request_id="x" * pad)
        np.testing.assert_allclose(got["q_out"], truth.rotate(q.astype(float), range(200)), atol=1e-5)
        np.testing.assert_allclose(got["k_out"], truth.rotate(k.astype(float), range(200)), atol=1e-5)


def test_metrics_name_the_scheme(client, server):
    client.infer("encode-kerple", parameters={"len": 2})
    assert 'posenc_requests_total{route="/v2/models/{name}/infer",scheme="kerple",status="200"} 1' in server.get("/metrics").body.decode()


# ---- Bytes that lie --------------------------------------------------------------------------------------------------------

HEAD, TAIL = body_of([Input("q", np.array([[1, 0]], "f4"))])


def test_two_headers(server):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=20)
    connection.putrequest("POST", "/v2/models/rope/infer")
    for name, value in (("Content-Length", len(HEAD)), ("Inference-Header-Content-Length", len(HEAD)), ("inference-header-content-length", 0)):
        connection.putheader(name, value)
    connection.endheaders(HEAD)
    assert connection.getresponse().status == 400
    connection.close()


def refused(response, pointer, word):
    assert response.status == 413 and response.json()["pointer"] == pointer and word in response.json()["error"], response


def test_words_have_a_ceiling(client):
    """As bytes no less than as JSON: a word of none takes thirty times its four bytes."""
    n = (1 << 20) // 4 + 1
    head = json.dumps({"inputs": [{"name": "tokens", "shape": [n], "datatype": "BYTES", "parameters": {"binary_data_size": 4 * n}}]}).encode()
    refused(client.post("attention-none", head, bytes(4 * n)), "/inputs/0/parameters/binary_data_size", "1048576")


def test_json_beside_bytes_has_a_ceiling(client):
    """Of an output of attention too."""
    q, k = (Input(name, np.zeros((1, 16, 8192, 64), "f4")) for name in "qk")
    head, tail = body_of([q, k], [Output("row_entropy", False), Output("probs")])
    refused(client.post("attention-rope", head, tail), "/outputs", "row_entropy")


def test_any_prefix_and_any_header(client):
    """Every cut of a good body, and every header of one: an answer, never silence."""
    for n in range(0, len(HEAD + TAIL), 7):
        assert client.post("rope", (HEAD + TAIL)[:n], length=str(min(n, len(HEAD)))).status == 400
    for length in range(0, len(HEAD + TAIL) + 3, 5):
        assert client.post("rope", HEAD, TAIL, length=str(length)).status == (200 if length == len(HEAD) else 400)
