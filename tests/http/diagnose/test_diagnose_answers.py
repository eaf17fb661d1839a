"""/diagnose on the wire: the ways a tensor comes in, the form of the answer, languages, figures. What is found in which tensor is in
test_diagnose.py; here one table that NumPy computes in a line stands for all."""
import base64
import io
import json
import urllib.parse

import jsonschema
import numpy as np
import pytest

import safetensors_reader
from asking import inline, refused
from conftest import start_server
from diagnosing import diagnose
from tensors import multipart, npy
from test_fairness import metric
from token_files import bearer, token_server

ANGLES = np.outer(np.arange(5, 13), 10000.0 ** (-np.arange(0, 8, 2) / 8))
COS, SIN = np.cos(ANGLES).astype("f4"), np.sin(ANGLES).astype("f4")
BELIEF = {"scheme": "rope", "head_dim": 8, "offset": 4}  # where offset 5 is right
Q = [[1, 2, 3, 4]]
Q_OUT = [[3.160435, 1.7975838, -0.107937716, 4.0949593]]
ROTATED = {"scheme": "rope", "layout": "interleaved", "offset": 5, "q": Q, "q_out": Q_OUT}


def ways(server):
    text, tensors = json.dumps(BELIEF), {"cos": COS, "sin": SIN}
    body, headers = multipart(request=text, cos=npy(COS), sin=npy(SIN))
    yield server.post("/diagnose", body, headers)
    file = safetensors_reader.dumps(tensors, {"request": text})
    yield server.post("/diagnose", file, {"Content-Type": "application/vnd.safetensors"})
    yield server.post("/diagnose", file, {"Content-Type": "application/octet-stream"})
    packed = io.BytesIO()
    np.savez(packed, **tensors)
    yield server.post("/diagnose?" + urllib.parse.urlencode(BELIEF), packed.getvalue(), {"Content-Type": "application/zip"})
    yield server.post("/diagnose", {**BELIEF, "cos": inline(COS, "f32"), "sin": inline(SIN, "f32")})
    yield server.post("/diagnose?offset=4", {"scheme": "rope", "head_dim": 8, "cos": COS.tolist(), "sin": SIN.tolist()})


def test_every_way_a_tensor_comes_in(server):
    answers = list(ways(server))
    for answer in answers:
        assert answer.status == 200, answer
        assert answer.body == answers[0].body
    found = answers[0].json()
    assert found["explained"] and [finding["code"] for finding in found["findings"]] == ["off_by_one"], found["findings"]
    assert found["candidates"][0]["sequence"]["offset"] == 5


def lone(server, array, query=""):
    return server.post("/diagnose" + query, npy(array), {"Content-Type": "application/x-npy"})


def test_a_lone_tensor_says_by_its_shape_what_it_is(server):
    position = np.arange(12)[:, None] * 10000.0 ** (-np.arange(0, 16, 2) / 16)
    encoding = np.stack([np.sin(position), np.cos(position)], -1).reshape(12, 16).astype("f4")
    distance = np.arange(6) - np.arange(6)[:, None]
    bias = (2.0 ** -np.arange(1, 9))[:, None, None] * -np.abs(distance)
    for array, scheme in ((encoding, "sinusoidal"), (bias.astype("f4"), "alibi")):
        answer = lone(server, array)
        assert answer.status == 200, answer
        assert answer.json()["candidates"][0]["config"]["scheme"] == scheme and answer.json()["belief"] is None
    wrong = lone(server, np.array([[0.5, np.nan]], "f4"))
    assert wrong.status == 422 and wrong.json()["pointer"].startswith("/encoding")
    wrong = lone(server, np.full((1, 2, 2), np.nan, "f4"))
    assert wrong.status == 422 and wrong.json()["pointer"].startswith("/bias")
    wrong = lone(server, np.zeros((2, 2, 2, 2), "i4"))
    assert wrong.status == 422 and wrong.json()["pointer"].startswith("/position_ids")


def test_the_answer_is_json(server):
    whole = server.ask("/diagnose", **ROTATED)
    assert whole.headers["Content-Type"] == "application/json" and int(whole.headers["Content-Length"]) == len(whole.body)
    assert "ETag" not in whole.headers
    for fields, headers in (({"format": "npz"}, {}), ({"format": "png"}, {}), ({}, {"Accept": "application/zip"})):
        answer = server.post("/diagnose", {**ROTATED, **fields}, headers)
        assert answer.status == 406 and answer.json().get("pointer", "") == ("/format" if fields else ""), answer
    assert server.ask("/diagnose", **ROTATED, format="json", outputs=[], data=True).body == whole.body
    for field in ("slice", "reduce"):
        refused(server, f"/{field}", "whole", path="/diagnose", **ROTATED, **{field: "mean" if field == "reduce" else [0]})
    refused(server, "/layuot", "layout", path="/diagnose", q=Q, q_out=Q_OUT, layuot="half")


def test_only_post(server):
    for method in ("GET", "HEAD", "QUERY", "PUT"):
        answer = server.request(method, "/diagnose")
        assert answer.status == 405 and answer.headers["Allow"] == "POST"


def test_languages(server):
    english, chinese = server.ask("/diagnose", **ROTATED), server.ask("/diagnose", **ROTATED, lang="zh")
    assert english.headers["Content-Language"] == "en" and chinese.headers["Content-Language"] == "zh"
    assert "Accept-Language" in english.headers["Vary"]
    for one, other in zip(english.json()["findings"], chinese.json()["findings"]):
        assert one["detail_zh"] == other["detail_zh"] == other["detail"] != one["detail"]
    assert server.ask("/diagnose", {"Accept-Language": "zh"}, **ROTATED).body == chinese.body
    refused(server, "/lang", "zh", path="/diagnose", **ROTATED, lang="fr")


def test_figures(server):
    names = ["posenc_hypotheses_searched_total", 'posenc_analysis_seconds_count{metric="diagnose"}']
    server.ask("/diagnose", **ROTATED)
    before = [metric(server, name) for name in names]
    searched = server.ask("/diagnose", {"Accept-Language": "en;q=0.31"}, **ROTATED).json()["searched"]
    after = [metric(server, name) for name in names]
    assert [b - a for a, b in zip(before, after)] == [searched, 1]


def test_the_description_and_the_catalogue_have_the_codes(server):
    document, faults = server.get("/openapi.json").json(), server.get("/schemes").json()["faults"]
    codes = [fault["code"] for fault in faults]
    assert len({(fault["code"], fault["kind"]) for fault in faults}) == len(faults) and {"layout_swapped", "off_by_one", "angles_f32", "base_other"} <= set(codes)
    for fault in faults:
        assert set(fault) == {"code", "kind", "surprise", "label", "label_zh", "summary", "summary_zh"} and fault["kind"].islower()
        assert fault["surprise"] in range(1, 9) or (fault["kind"], fault["surprise"]) == ("finding", 0), fault
    surprise = {fault["code"]: fault["surprise"] for fault in faults}
    assert [surprise[code] for code in ("layout_swapped", "scaling_other", "position_stride", "negated", "zero_row", "inv_freq_other")] == [1, 2, 3, 4, 5, 8]
    schemas = document["components"]["schemas"]

    def fits(value, schema):
        return jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver("", document)).is_valid(value)
    assert fits(server.ask("/diagnose", **ROTATED).json(), schemas["DiagnosisAnswer"])
    body = document["paths"]["/diagnose"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert fits(ROTATED, body) and fits({"encoding": [[1, 2]]}, body), "no scheme is needed"
    assert list(document["paths"]["/diagnose"]) == ["parameters", "post"]


def test_stored_weights_of_the_belief(server):
    table = np.arange(12, dtype="f4").reshape(4, 3)
    assert server.request("PUT", "/weights/for-diagnosis", safetensors_reader.dumps({"table": table}, {})).status == 201
    try:
        found = server.ask("/diagnose", scheme="learned", weights="for-diagnosis", encoding=table.tolist()).json()
        assert found["belief"]["max_error"] == 0 and [finding["code"] for finding in found["findings"]] == ["as_believed"]
    finally:
        server.request("DELETE", "/weights/for-diagnosis")


def test_limits():
    with start_server("--max-analysis", "1000") as server:
        answer = lone(server, np.random.default_rng(0).standard_normal((2048, 256)).astype("f4"))
        assert answer.status == 413 and "--max-analysis" in answer.json()["detail"], answer


def test_tokens():
    with token_server(["reader reader-token-0123456 read"]) as server:
        assert server.post("/diagnose", ROTATED).status == 401
        assert server.post("/diagnose", ROTATED, bearer("reader-token-0123456")).status == 200


TWO_ROWS = [[0, 1, 0, 1], [0.8415, 0.5403, 0.01, 0.99995]]  # the textbook's, typed


@pytest.mark.parametrize("body, numbers", [
    ({"encoding": TWO_ROWS}, 3), ({"cos": [[1, 1], [0.5403, 0.99995]], "sin": [[0, 0], [0.8415, 0.01]]}, 3), ({"inv_freq": [1, 0.1, 0.01, 0.001]}, 0),
    ({"values": [{"tensor": "cos", "position": 1, "channel": 0, "value": "0.5403"}, {"tensor": "cos", "position": 2, "channel": 0, "value": "-0.4161"}]}, 2)])
def test_a_few_typed_numbers_identify_nothing(server, body, numbers):
    """Of so few many configurations are right: these were explained by base 500000 and position -39978.9."""
    answer = diagnose(server, body)
    assert answer["explained"] is False and answer["candidates"] == []
    [finding] = answer["findings"]
    assert finding["code"] == "unexplained" and finding["found"] == {"numbers": numbers, "needed": 8} and "/diagnose/probe" in finding["detail"]


def test_enough_typed_numbers_identify(server):
    angles = np.outer(np.arange(3), [1, 0.1, 0.01, 0.001])
    table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(3, 8)
    answer = diagnose(server, {"encoding": table.tolist()})
    assert answer["explained"] and answer["candidates"][0]["config"]["base"] == 10000 and answer["candidates"][0]["sequence"] == {"len": 3}
    assert diagnose(server, {"encoding": {"npy": base64.b64encode(npy(table[:2, :2].astype("f4"))).decode()}})["searched"], "binary numbers were not typed"
