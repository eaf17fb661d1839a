"""/analyze on the wire: how a request comes in, in which forms its answer goes out, tags, languages, limits. The values of metrics
are in test_analyze.py; here one curve that NumPy computes in a line stands for all."""
import io
import json
import urllib.parse

import jsonschema
import numpy as np
import pytest

import safetensors_reader
from asking import inline, refused
from conftest import SANITIZED, Stopwatch, start_server
from png_reader import Picture
from tensors import from_json, from_npy, from_npz, from_raw, from_safetensors, multipart, npy
from test_fairness import metric
from connection import Client

PAIR = {"configs": [{"base": 500.0, "head_dim": 8}, {"scheme": "sinusoidal", "dim": 6}], "scheme": "rope", "len": 12}


def curve(name, n=12):
    """The decay of the two configurations of PAIR: B(d) = (1/C) sum over j of |sum of exp(i d w_c) over c < j|, j = 1 ... C."""
    w = 500.0 ** (-np.arange(0, 8, 2) / 8) if name == "decay.0" else 10000.0 ** (-np.arange(0, 6, 2) / 6)
    waves = np.exp(1j * np.outer(np.arange(n), w))
    return np.abs(np.cumsum(waves, axis=1)).mean(axis=1)


def check_curves(tensors, names=("decay.0", "decay.1")):
    assert set(tensors) == set(names)
    for name in names:
        assert tensors[name].dtype == np.float64 and tensors[name].shape == (12,)
        np.testing.assert_allclose(tensors[name], curve(name), rtol=0, atol=1e-14)


def analyze(server, headers=None, **fields):
    return server.ask("/analyze", headers, **fields)


# ---- Forms of the answer --------------------------------------------------------------------------------------------------


def test_json(server):
    answer = analyze(server, **PAIR, metrics=["decay", "bounds"])
    whole = answer.json()
    assert list(whole) == ["configs", "results", "tensors"]
    assert [config["scheme"] for config in whole["configs"]] == ["rope", "sinusoidal"] and whole["configs"][0]["base"] == 500.0
    for i, result in enumerate(whole["results"]):
        assert set(result) == {"decay", "bounds"}
        assert {"value", "witness", "detail", "detail_zh"} <= set(result["decay"])
        assert abs(result["decay"]["value"] - curve(f"decay.{i}")[-1] / curve(f"decay.{i}")[0]) < 1e-14
    check_curves(from_json(answer))
    bare = analyze(server, **PAIR, metrics=["decay", "bounds"], data=False).json()
    assert bare["results"] == whole["results"] and bare["tensors"] == {name: {"dtype": "f64", "shape": [12]} for name in ("decay.0", "decay.1")}


@pytest.mark.parametrize("format_, read", [("raw", from_raw), ("npz", from_npz), ("safetensors", from_safetensors)])
def test_tensors_in_every_format(server, format_, read):
    answer = analyze(server, **PAIR, metrics=["decay"], format=format_)
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    check_curves(read(answer))
    by_type = {"raw": "application/octet-stream", "npz": "application/zip", "safetensors": "application/vnd.safetensors"}[format_]
    assert analyze(server, {"Accept": by_type}, **PAIR, metrics=["decay"]).body == answer.body


def test_sentences_where_no_tensor_is_wanted(server):
    fields = {"configs": [{"scheme": "sinusoidal", "dim": 16, "len": 16}, {"scheme": "rope", "head_dim": 8, "len": 16}], "metrics": ["unique", "bounds"]}
    for lang in "en", "zh":
        results = server.ask("/analyze", **fields, outputs=[], lang=lang).json()["results"]
        answer = server.ask("/analyze", **fields, outputs=[], lang=lang, format="text")
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8" and answer.headers["Content-Language"].startswith(lang)
        assert answer.body.decode() == "".join(f"{i} {name}: {result['detail']}\n" for i, one in enumerate(results) for name, result in one.items())
    url = "/analyze?scheme=sinusoidal&dim=16&len=16&metrics=unique&outputs=[]&format=text"
    first = server.get(url)
    assert first.status == 200 and first.body.decode().count("\n") == 1 and server.get(url, {"If-None-Match": first.headers["ETag"]}).status == 304


def test_safetensors_has_the_results_as_text(server):
    asked = {**PAIR, "metrics": ["decay", "bounds"]}
    metadata = safetensors_reader.loads(analyze(server, **asked, format="safetensors").body)[1]
    whole = analyze(server, **asked).json()
    assert set(metadata) == {"format", "configs", "results"} and metadata["format"] == "pt"
    assert json.loads(metadata["configs"]) == whole["configs"] and json.loads(metadata["results"]) == whole["results"]


def test_npy_is_one_tensor(server):
    alone = {"scheme": "sinusoidal", "dim": 6, "len": 12, "metrics": ["decay"]}
    np.testing.assert_allclose(from_npy(analyze(server, **alone, format="npy")), curve("decay.1"), rtol=0, atol=1e-14)
    several = server.post("/analyze", {**PAIR, "metrics": ["decay"], "format": "npy"})
    assert several.status == 406 and "decay.0, decay.1" in several.json()["detail"]


def test_outputs_choose_tensors_by_name_without_index(server):
    assert analyze(server, **PAIR, metrics=["decay", "bounds"], outputs=[]).json()["tensors"] == {}
    assert from_npz(analyze(server, **PAIR, metrics=["decay"], outputs=[], format="npz")) == {}
    check_curves(from_raw(analyze(server, **PAIR, metrics=["decay", "bounds"], outputs=["decay"], format="raw")))
    refused(server, "/outputs", "decay", path="/analyze", **PAIR, metrics=["decay"], outputs=["decai"])


def test_picture_of_the_first_curve(server):
    alone = {"scheme": "sinusoidal", "dim": 6, "len": 12, "metrics": ["decay"]}
    picture = Picture(analyze(server, **alone, format="png", zoom=3, vmin=0.0, vmax=3.0).body)
    assert (picture.width, picture.height, picture.texts) == (36, 3, {})
    expected = 1 + np.rint(254 * np.clip(curve("decay.1") / 3.0, 0, 1)).astype(int)
    assert (picture.pixels[0, ::3] == expected).all()
    text = analyze(server, **alone, format="text", ascii=True).body.decode()
    line, legend, rest = text.split("\n")
    assert len(line) == 12 and rest == "" and legend.startswith("decay.0 [12], f64, from ")
    none = server.post("/analyze", {**alone, "format": "png", "outputs": []})
    assert none.status == 406


def test_digits_are_of_tensors(server):
    answer = analyze(server, scheme="sinusoidal", dim=6, len=12, metrics=["decay"], digits=2).json()
    assert answer["tensors"]["decay.0"]["data"] == [round(x, 2) for x in curve("decay.1")]


# ---- Ways in --------------------------------------------------------------------------------------------------------------


TABLE = np.array([[3.0, 4.0], [0.0, 0.5], [1.0, 1.0]], "f4")
LEARNED = {"scheme": "learned", "len": 3, "metrics": ["bounds"]}


def ways(server):
    body, headers = multipart(request=json.dumps(LEARNED), table=npy(TABLE))
    yield server.post("/analyze", body, headers)
    yield server.post("/analyze", safetensors_reader.dumps({"table": TABLE}, {"request": json.dumps(LEARNED)}), {"Content-Type": "application/vnd.safetensors"})
    packed = io.BytesIO()
    np.savez(packed, table=TABLE)
    yield server.post("/analyze?scheme=learned&len=3&metrics=bounds", packed.getvalue(), {"Content-Type": "application/zip"})
    yield server.post("/analyze", {**LEARNED, "table": inline(TABLE, "f32")})
    yield server.post("/analyze", {"configs": [{"table": inline(TABLE, "f32"), "len": 3}], "scheme": "learned", "metrics": ["bounds"]})
    yield server.request("QUERY", "/analyze", json.dumps({**LEARNED, "table": TABLE.tolist()}).encode())
    yield server.get("/analyze?" + urllib.parse.urlencode({"scheme": "learned", "len": "3", "metrics": "bounds", "table": json.dumps(TABLE.tolist())}))


def test_every_way_a_tensor_comes_in(server):
    answers = list(ways(server))
    for answer in answers:
        assert answer.status == 200, answer
        assert answer.body == answers[0].body
    result = answers[0].json()["results"][0]["bounds"]
    assert result["value"] == 4.0 and result["witness"] == {"row": 0, "column": 1} and result["norm_max"] == 5.0


def test_a_lone_npy_has_no_place(server):
    answer = server.post("/analyze?scheme=rope&len=4", npy(TABLE), {"Content-Type": "application/x-npy"})
    assert answer.status == 422 and answer.json()["pointer"] == "/q"


def test_stored_weights_of_one_configuration(server):
    stored = safetensors_reader.dumps({"table": TABLE}, {})
    assert server.request("PUT", "/weights/for-analysis", stored).status == 201
    try:
        own = {"configs": [{"scheme": "learned", "weights": "for-analysis"}, {"scheme": "integer"}], "len": 3, "metrics": ["bounds"]}
        assert [r["bounds"]["value"] for r in analyze(server, **own).json()["results"]] == [4.0, 2.0]
        answer = server.get("/analyze?scheme=learned&len=3&metrics=bounds&weights=for-analysis")
        assert answer.status == 200 and answer.headers["Cache-Control"] == "private, no-cache"
        refused(server, "/configs/1/weights", "uses no weights", path="/analyze", configs=[{"scheme": "learned", "weights": "for-analysis"}, {"scheme": "integer", "weights": "for-analysis"}], len=3)
    finally:
        server.request("DELETE", "/weights/for-analysis")


# ---- Tags and languages ----------------------------------------------------------------------------------------------------


QUERY = "/analyze?scheme=rope&head_dim=8&len=12&metrics=decay"


def test_tags(server):
    answer = server.get(QUERY)
    tag = answer.headers["ETag"]
    assert answer.status == 200 and answer.headers["Cache-Control"] == "public, max-age=86400"
    assert {name.strip() for name in answer.headers["Vary"].split(",")} == {"Accept", "Accept-Language"}
    same = server.request("QUERY", "/analyze", json.dumps({"scheme": "rope", "head_dim": 8, "len": 12, "metrics": ["decay"]}).encode())
    assert same.headers["ETag"] == tag and same.body == answer.body
    head = server.request("HEAD", QUERY)
    assert head.status == 200 and head.headers["ETag"] == tag and head.body == b""
    unchanged = server.get(QUERY, {"If-None-Match": f'"x", {tag}'})
    assert unchanged.status == 304 and unchanged.body == b"" and unchanged.headers["ETag"] == tag
    assert unchanged.headers["Vary"] == answer.headers["Vary"]
    assert server.get(QUERY, {"If-None-Match": '"x"'}).body == answer.body
    assert "ETag" not in server.post("/analyze", {"scheme": "rope", "len": 4, "metrics": ["decay"]}).headers
    others = [server.get(QUERY + more).headers["ETag"] for more in ("&lang=zh", "&format=npz", "&dtype=f64", "&base=500.0", "&outputs=[]")]
    others += [server.get(QUERY.replace("decay", "bounds")).headers["ETag"], server.get(QUERY, {"Accept": "application/zip"}).headers["ETag"], server.get(QUERY, {"Accept-Language": "zh"}).headers["ETag"]]
    assert len({tag, *others}) == 1 + len(others) - 2, "a language or a format by header is the same as by name"


def test_no_tag_without_the_computing(server):
    """A 304 is known before anything is computed."""
    slow = "/analyze?scheme=sinusoidal&dim=512&len=8192&metrics=unique"
    tag = server.get(slow.replace("8192", "8")).headers["ETag"]
    assert tag
    with start_server("--max-analysis", str(10**12)) as other:
        text = f"GET {slow} HTTP/1.1\r\nHost: localhost\r\nX-Request-Timeout: 0.05\r\n\r\n"
        client = Client(other)
        client.send(text.encode())
        assert client.answer()[0] == 503, "it takes longer than that to compute"


def test_ranges(server):
    whole = server.get(QUERY + "&format=raw")
    part = server.get(QUERY + "&format=raw", {"Range": "bytes=8-23"})
    assert part.status == 206 and part.body == whole.body[8:24] and part.headers["ETag"] == whole.headers["ETag"]


def test_languages(server):
    def details(headers=None, **fields):
        answer = analyze(server, headers, **PAIR, metrics=["decay"], **fields)
        assert "Accept-Language" in answer.headers["Vary"]
        results = [result["decay"] for result in answer.json()["results"]]
        return answer.headers["Content-Language"], [r["detail"] for r in results], [r["detail_zh"] for r in results]
    english, chinese = details(), details(lang="zh")
    assert english[0] == "en" and chinese[0] == "zh" and english[2] == chinese[2] == chinese[1] != english[1]
    assert details({"Accept-Language": "zh-CN, en;q=0.5"}) == chinese and details({"Accept-Language": "zh"}, lang="en") == english
    assert server.get(QUERY + "&lang=zh").headers["Content-Language"] == "zh"
    refused(server, "/lang", "zh", path="/analyze", **PAIR, lang="fr")
    assert server.post("/analyze", {"len": 3}, {"Accept-Language": "zh"}).headers["Content-Language"] == "zh"
    assert "Content-Language" not in server.post("/analyze", {"len": 3}).headers, "English refusals name no language"


# ---- Refusals and limits ---------------------------------------------------------------------------------------------------


BAD = [
    ({"configs": [], "len": 3}, "/configs"),
    ({"configs": [{"scheme": "rope"}] * 9, "len": 3}, "/configs"),
    ({"configs": [{"scheme": "rope"}, {"scheme": "rope", "layout": "thirds"}], "len": 3}, "/configs/1/layout"),
    ({"configs": [{"scheme": "rope"}, {"scheme": "rop"}], "len": 3}, "/configs/1/scheme"),
    ({"configs": [{"scheme": "rope", "digits": 3}], "len": 3}, "/configs/0/digits"),
    ({"scheme": "rope", "len": 3, "metrics": []}, "/metrics"),
    ({"scheme": "rope", "len": 3, "metrics": ["bounds", "bounds"]}, "/metrics/1"),
    ({"scheme": "rope", "len": 3, "metrics": "bounds"}, "/metrics"),
    ({"scheme": "rope", "len": 3, "slice": [0]}, "/slice"),
    ({"scheme": "rope", "len": 3, "reduce": "mean"}, "/reduce"),
    ({"scheme": "rope", "len": 3, "metric": ["bounds"]}, "/metric"),
    ({"scheme": "rope", "len": 3, "format": "xml"}, "/format"),
]


@pytest.mark.parametrize("request_, pointer", BAD, ids=str)
def test_refusals_name_the_field(server, request_, pointer):
    problem = server.post("/analyze", request_)
    assert problem.status == 422 and problem.json()["pointer"] == pointer, problem


def test_refused_before_anything_is_made():
    with start_server("--max-analysis", "27000000", "--workers", "1") as server:
        before = server.memory("VmRSS")
        for asked, words in (({"scheme": "sinusoidal", "dim": 64, "len": 16384, "metrics": ["bounds"]}, ("--max-analysis", "2.77e+07", "2.7e+07")),
                             ({"scheme": "sinusoidal", "dim": 64, "len": 2**40, "metrics": ["bounds"]}, ("16384", "1099511627776"))):
            taken = []
            for _ in range(5):
                begun = server.processor()
                answer = server.post("/analyze", asked)
                taken.append(server.processor() - begun)
                assert answer.status == 413 and all(word in answer.json()["detail"] for word in words), answer
            assert min(taken) < (0.05 if not SANITIZED else 2), asked
        assert SANITIZED or server.memory("VmRSS") < before + 4 * 1024 * 1024, "a table of it has 8 MiB"
        assert analyze(server, scheme="sinusoidal", dim=60, len=16384, metrics=["bounds"]).status == 200
    with start_server("--max-memory", "8MiB") as server:
        answer = server.post("/analyze", {"scheme": "sinusoidal", "dim": 512, "len": 16384, "metrics": ["bounds"]})
        assert answer.status == 413 and "--max-memory" in answer.json()["detail"]


def test_json_has_its_limit():
    with start_server("--max-json", "4KiB") as server:
        for path in ("/analyze", "/diagnose"):
            answer = server.post(path, {"scheme": "rope", "positions": list(range(2000))})
            assert answer.status == 413 and "--max-json" in answer.json()["detail"]
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n"
            client = Client(server)
            client.send(head.encode())
            assert client.answer()[0] == 413, "refused before its body is received"


def test_a_request_has_its_time(server):
    slow = {"scheme": "sinusoidal", "dim": 1024, "len": 16384, "metrics": ["unique"]}
    watch = Stopwatch(server)
    answer = server.post("/analyze", slow, {"X-Request-Timeout": "0.3"})
    assert answer.status == 503 and watch.seconds() < 2


# ---- Figures and descriptions ----------------------------------------------------------------------------------------------


def test_time_by_metric(server):
    names = ['posenc_analysis_seconds_count{metric="decay"}', 'posenc_analysis_seconds_count{metric="bounds"}', 'posenc_analysis_seconds_sum{metric="decay"}']
    analyze(server, scheme="rope", len=4, metrics=["bounds", "decay"])
    before = [metric(server, name) for name in names]
    analyze(server, **PAIR, metrics=["decay", "bounds"], lang="zh", seed=None)
    after = [metric(server, name) for name in names]
    assert [b - a for a, b in zip(before, after)][:2] == [2, 2] and 0 < after[2] - before[2] < 1


def test_the_catalogue_has_the_metrics(server):
    english, chinese = (server.get(f"/schemes?lang={lang}").json()["metrics"] for lang in ("en", "zh"))
    assert {"bounds", "decay"} <= {row["name"] for row in english} and [row["name"] for row in english] == [row["name"] for row in chinese]
    for row, other in zip(english, chinese):
        assert set(row) == {"name", "label", "label_zh", "summary", "summary_zh", "applies_to", "applies_to_zh", "parameters", "work", "tensors"}
        assert row["summary_zh"] == other["summary"] and row["applies_to_zh"] == other["applies_to"] != row["applies_to"]
        assert all(tensor["dtype"] == "f64" and tensor["shape"] is not None for tensor in row["tensors"])


def test_the_description_has_the_endpoint(server):
    document, metrics = server.get("/openapi.json").json(), [row for row in server.get("/schemes").json()["metrics"]]
    schemas = document["components"]["schemas"]
    assert set(document["paths"]["/analyze"]) >= {"get", "head", "post", "x-query"}
    assert {p["name"] for row in metrics for p in row["parameters"]} | {"configs", "lang", "metrics"} <= set(schemas["Analysis"]["properties"])
    assert list(schemas["AnalysisAnswer"]["properties"]["results"]["items"]["properties"]) == [row["name"] for row in metrics]

    def fits(value, schema):
        resolver = jsonschema.RefResolver("", document)
        return jsonschema.Draft202012Validator(schema, resolver=resolver).is_valid(value)
    body = document["paths"]["/analyze"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert fits({**PAIR, "metrics": ["decay"]}, body) and fits({"configs": [{"scheme": "rope"}], "len": 3}, body)
    assert not fits({"len": 3}, body) and not fits({"scheme": "rope", "len": 3, "metrics": ["decai"]}, body)
    assert fits(analyze(server, **PAIR).json(), schemas["AnalysisAnswer"])
    assert not fits({"configs": [], "results": [{"decay": {"value": 1}}], "tensors": {}}, schemas["AnalysisAnswer"])
