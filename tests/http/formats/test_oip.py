"""/v2, the Open Inference Protocol: health, names, inferences against the formulas and against /encode, /rotate, /attention."""
import json

import numpy as np
import pytest

import truth
import truth.attention
from conftest import start_server
from oip_client import Client, Input, Output, Result, body_of
from tensors import from_json, from_raw, to_bf16


@pytest.fixture
def client(server):
    return Client(server)


def normal(*shape, seed=0, dtype="f4"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# ---- The server and its models ---------------------------------------------------------------------------------------------


def test_health(server):
    for path, answer in (("/v2/health/live", {"live": True}), ("/v2/health/ready", {"ready": True})):
        response = server.get(path)
        assert response.status == 200 and response.json() == answer and response.headers["Cache-Control"] == "no-store"
        assert server.request("HEAD", path).status == 200


def test_draining_is_not_ready():
    with start_server("--drain-delay", "3") as server:
        server.process.terminate()
        for path in ("/v2/health/ready", "/v2/models/rope/ready"):
            response = server.get(path)
            while response.status == 200:
                response = server.get(path)
            assert response.status == 503 and response.json()["error"] and response.headers["Retry-After"]
        assert server.get("/v2/health/live").status == 200


def test_the_server_says_what_it_is(server):
    about = server.get("/v2").json()
    assert about["name"] == "posenc" and about["version"] == server.get("/version").json()["version"]
    assert {"binary_tensor_data", "parameters"} <= set(about["extensions"])


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


def test_metadata_of_rope(server):
    model = server.get("/v2/models/rope").json()
    inputs, outputs = ({t["name"]: t for t in model[kind]} for kind in ("inputs", "outputs"))
    assert inputs["positions"] == {"name": "positions", "datatype": "INT64", "shape": [-1]}
    assert inputs["q"] == {"name": "q", "datatype": "FP32", "shape": [-1] * 4}
    assert inputs["tokens"] == {"name": "tokens", "datatype": "BYTES", "shape": [-1]}
    config = {t["name"]: t["data_type"] for t in server.get("/v2/models/rope/config").json()["input"]}
    assert config["tokens"] == "TYPE_STRING" and config["q"] == "TYPE_FP32"
    assert "tokens" not in {t["name"] for t in server.get("/v2/models/rotate-rope").json()["inputs"]}
    assert {"q_out", "k_out", "cos", "sin", "probs"} <= set(outputs)
    assert outputs["cos"] == {"name": "cos", "datatype": "FP32", "shape": [-1, -1]}
    assert "q_out" not in {t["name"] for t in server.get("/v2/models/encode-rope").json()["outputs"]}
    assert {t["name"] for t in server.get("/v2/models/rotate-rope").json()["outputs"]} == {"q_out", "k_out"}


def test_loading(server):
    assert server.request("POST", "/v2/repository/models/rope/load").status == 200
    assert server.request("POST", "/v2/repository/models/rope/load", b"{}").status == 200
    assert server.request("POST", "/v2/repository/models/rope/load", b'{"parameters":{"config":"{}"}}').status == 501
    refused = server.request("POST", "/v2/repository/models/rope/unload")
    assert refused.status == 501 and "unloaded" in refused.json()["error"]
    for what in ("load", "unload"):
        assert server.request("POST", f"/v2/repository/models/ropp/{what}").status == 404


@pytest.mark.parametrize("method,path,allow", [
    ("GET", "/v2/models/rope/infer", "POST"), ("POST", "/v2/health/live", "GET, HEAD"), ("GET", "/v2/repository/index", "POST"),
    ("PUT", "/v2/models/rope", "GET, HEAD"), ("GET", "/v2/models/rope/versions/1/infer", "POST")])
def test_wrong_methods(server, method, path, allow):
    response = server.request(method, path)
    assert response.status == 405 and response.headers["Allow"] == allow and response.json()["error"]


@pytest.mark.parametrize("path,word", [
    ("/v2/models/ropp", 'nearest: "rope"'), ("/v2/models/encode-ropp/ready", 'nearest: "encode-rope"'),
    ("/v2/models/rotate-alibi", "cannot do that"), ("/v2/models/rope/versions/2", "it has: 1"),
    ("/v2/models/rope/versions/01/config", "it has: 1"), ("/v2/models/" + "x" * 3000, "unknown model"),
    ("/v2/models/rope/versions/" + "1" * 3000, "no version"), ("/v2/models/rope/", "nothing is at"), ("/v2/", "nothing is at"),
    ("/v2/models/rope%2Fready/x", "nothing is at"), ("/v2/models//ready", "nothing is at")])
def test_unknown_paths(server, path, word):
    response = server.get(path)
    assert response.status == 404 and word in response.json()["error"], response


# ---- The documented example, and JSON alone ---------------------------------------------------------------------------------


def test_the_documented_answer(server):
    """The form of the protocol, to the byte."""
    asked = b'{"inputs":[{"name":"q","shape":[1,1,1,2],"datatype":"FP32","data":[1,0]}],"parameters":{"offset":1}}'
    answer = server.request("POST", "/v2/models/rope/infer", asked)
    assert answer.status == 200 and answer.headers["Inference-Header-Content-Length"] is None
    assert answer.body == (b'{"model_name":"rope","model_version":"1","outputs":[{"name":"q_out","datatype":"FP32",'
                           b'"shape":[1,1,1,2],"data":[0.5403023,0.84147096]}]}')


@pytest.mark.parametrize("data", [[1, 2, 3, 4], [[1, 2], [3, 4]], [[[[1, 2]], [[3, 4]]]], [[1], [2], [3], [4]]])
def test_nesting_says_nothing(client, data):
    asked = Input("q", np.zeros((1, 1, 2, 2)), binary=False)
    asked.json["data"] = data
    got = client.infer("rope", [asked])["q_out"]
    np.testing.assert_allclose(got, truth.rotate(np.array([[[[1, 2], [3, 4]]]], float), [0, 1]), atol=1e-6)


def test_names_of_models_may_be_escaped(server):
    asked = b'{"parameters":{"len":2}}'
    answers = {server.request("POST", f"/v2/models/{name}/infer", asked).body for name in ("encode-alibi", "encode%2Dalib%69", "%65ncode-alibi")}
    assert len(answers) == 1 and b'"bias"' in answers.pop()


@pytest.mark.parametrize("request_id", ["a", "", 'q"\\\u00e9\u4e2d', "x" * 1000])
def test_ids_come_back(client, request_id):
    for outputs in ([Output("cos")], [Output("cos", binary=False)]):
        client.infer("rope", outputs=outputs, request_id=request_id, parameters={"len": 2})


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


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("datatype", ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP32", "FP64", "FP16", "BF16"])
def test_positions_of_every_datatype(client, server, datatype, binary):
    positions = [3, 0, 100, 7]
    got = client.infer("sinusoidal", [Input("positions", np.array(positions), datatype, binary)], parameters={"dim": 16})
    expected = from_raw(server.ask("/encode", scheme="sinusoidal", dim=16, positions=positions, format="raw"))
    assert got.names == ["encoding"] and got.datatype("encoding") == "FP32"
    assert got["encoding"].tobytes() == expected["encoding"].tobytes()


def test_integers_beyond_doubles_need_bytes(client):
    far = 2 ** 53 + 2
    response = client.post("sinusoidal", json.dumps({"inputs": [{"name": "positions", "shape": [1], "datatype": "INT64", "data": [far]}]}).encode())
    assert response.status == 422 and response.json()["pointer"].startswith("/inputs/0")


@pytest.mark.parametrize("sent", [Input("key_mask", np.array([True, False, True]), "BOOL"), Input("key_mask", np.array([True, False, True]), "BOOL", False)])
def test_booleans(client, server, sent):
    got = client.infer("alibi", [sent], parameters={"len": 3, "num_heads": 2})
    expected = from_json(server.ask("/encode", scheme="alibi", len=3, num_heads=2, key_mask=[1, 0, 1]))
    np.testing.assert_array_equal(got["bias"], expected["bias"])
    assert np.isneginf(got["bias"][:, :, 1]).all()


@pytest.mark.parametrize("binary", [False, True])
def test_words(client, server, binary):
    """The textbook's dogs: BYTES are welcome for tokens."""
    words = ["the", "dog", "chased", "another", "d\u00f6g", "dog"]
    got = client.infer("none", [Input("tokens", words, "BYTES", binary)], [Output("probs")])
    expected = from_raw(server.ask("/attention", scheme="none", tokens=words, format="raw"))["probs"]
    assert got["probs"].tobytes() == expected.tobytes()
    as_text = client.infer("none", outputs=[Output("probs")], parameters={"tokens": json.dumps(words)})
    assert as_text["probs"].tobytes() == expected.tobytes()


# ---- Which operation -------------------------------------------------------------------------------------------------------


def test_encode(client, server):
    got = client.infer("rope", [Input("positions", np.array([0, 5, 131071]), "INT64")], [Output("sin", False), Output("cos")],
                       parameters={"head_dim": 8, "scaling": '{"type":"linear","factor":2}'})
    expected = from_raw(server.ask("/encode", scheme="rope", head_dim=8, positions=[0, 5, 131071], scaling={"type": "linear", "factor": 2}, format="raw"))
    assert got.names == ["sin", "cos"] and all(got[n].tobytes() == expected[n].tobytes() for n in expected)
    angle = np.array([0, 2.5, 65535.5])[:, None] * 10000.0 ** (-np.arange(4) / 4)
    np.testing.assert_allclose(got["cos"], np.cos(angle), atol=1e-6)


def test_the_default_outputs_stream_as_bytes(client, server):
    got = client.infer("rope", parameters={"len": 5000, "binary_data_output": True})
    expected = from_raw(server.ask("/encode", scheme="rope", len=5000, format="raw"))
    assert got.names == ["cos", "sin"] and all(got[n].tobytes() == expected[n].tobytes() for n in expected)


def test_one_output_may_differ_from_the_rest(client):
    got = client.infer("rope", outputs=[Output("cos", False), Output("sin")], parameters={"len": 3, "binary_data_output": True})
    asked = [o.get("parameters") for o in got.json["outputs"]]
    assert asked == [None, {"binary_data_size": 3 * 32 * 4}]


@pytest.mark.parametrize("model", ["alibi", "attention-alibi"])
@pytest.mark.parametrize("binary", [False, True])
def test_attention(client, server, model, binary):
    q, k, v = normal(1, 2, 5, 8), normal(1, 2, 5, 8, seed=1), normal(1, 2, 5, 4, seed=2)
    got = client.infer(model, [Input("q", q), Input("k", k, binary=False), Input("v", v)], [Output("output", binary), Output("probs")], parameters={"causal": True})
    slopes = 2.0 ** -np.array([4, 8])
    bias = -slopes[:, None, None] * np.abs(np.arange(5)[:, None] - np.arange(5))
    visible = truth.attention.seen(range(5), range(5), causal=True)
    expected = truth.attention.attend(q, k, v, bias=bias, visible=visible)
    np.testing.assert_allclose(got["probs"], expected["probs"], atol=1e-6)
    np.testing.assert_allclose(got["output"], expected["probs"] @ v, atol=1e-5)
    assert got.json["parameters"] == {"empty_rows": 0}
    same = from_raw(server.ask("/attention", scheme="alibi", causal=True, q=q.tolist(), k=k.tolist(), v=v.tolist(), outputs=["output", "probs"], format="raw"))
    assert all(got[n].tobytes() == same[n].tobytes() for n in same)


def test_tensors_decide_where_no_output_is_named(client):
    q = Input("q", normal(1, 1, 3, 4))
    k = Input("k", normal(1, 1, 3, 4, seed=1))
    assert client.infer("rope", [q]).names == ["q_out"]
    assert client.infer("rope", [k]).names == ["k_out"]
    assert client.infer("rope", [q, k]).names == ["q_out", "k_out"]
    assert client.infer("xpos", [q, k]).names == ["q_out", "k_out"]
    assert client.infer("t5", [q, k], parameters={"seed": 1}).names == ["probs"]
    assert client.infer("rope", [q, k], [Output("scores")]).names == ["scores"]
    assert client.infer("attention-rope", [q, k]).names == ["probs"]
    assert client.infer("rotate-rope", [q, k]).names == ["q_out", "k_out"]
    assert client.infer("encode-rope", parameters={"len": 3}).names == ["cos", "sin"]
    assert client.infer("sinusoidal", [Input("x", normal(2, 3, 8))]).names == ["combined"]
    assert client.infer("deberta", [q, k], [Output("c2p")], parameters={"seed": 1}).names == ["c2p"]


def test_weights_are_inputs(client, server):
    table = normal(32, 4)
    got = client.infer("t5", [Input("table", table)], [Output("bias"), Output("buckets", False)], parameters={"len": 6})
    expected = from_json(server.ask("/encode", scheme="t5", len=6, table=table.tolist(), outputs=["bias", "buckets"]))
    assert got.datatype("buckets") == "INT32" and all((got[n] == expected[n]).all() for n in expected)
    assert (got["bias"] == table[expected["buckets"]].transpose(2, 0, 1)).all()


@pytest.mark.parametrize("dtype,datatype", [("f64", "FP64"), ("f16", "FP16"), ("bf16", "BF16"), ("f32", "FP32")])
def test_dtype(client, server, dtype, datatype):
    for outputs in ([Output("encoding")], [Output("encoding", False)]):
        got = client.infer("sinusoidal", [Input("positions", np.array([1.5, 2.25]), "FP64")], outputs, parameters={"dim": 8, "dtype": dtype})
        expected = from_raw(server.ask("/encode", scheme="sinusoidal", dim=8, positions=[1.5, 2.25], dtype=dtype, format="raw"))["encoding"]
        assert got.datatype("encoding") == datatype and got["encoding"].tobytes() == expected.tobytes()


def test_presets_and_lists_as_text(client, server):
    got = client.infer("rope", parameters={"preset": "llama-3.1", "positions": "[0,1,131071]"})
    expected = from_raw(server.ask("/encode", preset="llama-3.1", positions=[0, 1, 131071], format="raw"))
    assert all(got[n].tobytes() == expected[n].tobytes() for n in expected)


def test_reserved_parameters_say_nothing_here(client):
    plain = client.infer("rope", parameters={"len": 2}).response.body
    reserved = {"sequence_id": 7, "sequence_start": True, "sequence_end": True, "priority": 1, "triton_enable_empty_final_response": True,
                "headers": "x", "timeout": 10 ** 9, "binary_data_output": False, "content_type": "np"}
    assert client.infer("rope", parameters={"len": 2, **reserved}).response.body == plain


def test_content_types_of_mlserver_say_nothing_here(client):
    q = normal(1, 1, 2, 4)
    plain = client.infer("rope", [Input("q", q)], [Output("q_out")]).response.body
    assert client.infer("rope", [Input("q", q, content_type="np")], [Output("q_out", content_type="np")], parameters={"content_type": "np"}).response.body == plain


def test_timeout(client, server):
    """An answer that begins too late is refused; one in time is not."""
    words = json.dumps(["w"] * 3000)
    response = client.post("attention-none", *body_of(parameters={"tokens": words, "timeout": 1}))
    assert response.status == 503 and "timeout" in response.json()["error"] and response.headers["Retry-After"]
    for timeout in (0, 60_000_000, 6e7):
        client.infer("rope", parameters={"len": 2, "timeout": timeout})


def test_whole_numbers_may_have_a_point(client):
    head, tail = body_of([Input("q", np.array([[1, 0]], "f4"))], [Output("q_out")])
    spelled = head.replace(b'"binary_data_size": 8', b'"binary_data_size": 8.0').replace(b"[1, 2]", b"[1.0, 2]")
    assert spelled != head and client.post("rope", spelled, tail).body == client.post("rope", head, tail).body


def test_raw_requests(client, server):
    """Header 0: the body is the positions alone."""
    positions = np.array([5, 0, 9], "<i8")
    response = client.post("rope", b"", positions.tobytes(), length="0")
    expected = from_raw(server.ask("/encode", scheme="rope", positions=positions.tolist(), format="raw"))
    got = Result(response)
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
