"""/analyze beyond one answer: the ways a request comes in, pictures, what is refused before it is made, figures. Values, forms, tags and
refusals are rows (../cases/analyze*.jsonl, refused_analyze.jsonl); random configurations are in test_analyze_random.py."""
import io
import json
import urllib.parse

import numpy as np

import safetensors_reader
from asking import inline
from conftest import SANITIZED, Stopwatch, start_server
from connection import metric
from pictures import level
from png_reader import Picture
from tensors import from_npy, from_raw, multipart, npy

PAIR = {"configs": [{"base": 500.0, "head_dim": 8}, {"scheme": "sinusoidal", "dim": 6}], "scheme": "rope", "len": 12}


def analyze(server, headers=None, **fields):
    return server.ask("/analyze", headers, **fields)


def test_pictures_are_of_the_first_tensor(server):
    alone = {"scheme": "sinusoidal", "dim": 6, "len": 12, "metrics": ["decay"]}
    curve = from_npy(analyze(server, **alone, format="npy"))
    picture = Picture(analyze(server, **alone, format="png", zoom=3, vmin=0.0, vmax=3.0).body)
    assert (picture.width, picture.height, picture.texts) == (36, 3, {})
    assert (picture.pixels[0, ::3] == 1 + level(curve, 0.0, 3.0)).all()
    line, legend, rest = analyze(server, **alone, format="text", ascii=True).body.decode().split("\n")
    assert len(line) == 12 and rest == "" and legend.startswith("decay.0 [12], f64, from ")
    matrix = from_raw(analyze(server, scheme="rope", head_dim=8, len=12, metrics=["similarity"], outputs=["gram"], format="raw"))["gram.0"]
    picture = Picture(analyze(server, scheme="rope", head_dim=8, len=12, metrics=["similarity"], outputs=["gram"], format="png", zoom=1).body)
    assert (picture.pixels == 1 + level(matrix)).all()


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


# ---- Limits ---------------------------------------------------------------------------------------------------------------


def test_refused_before_anything_is_made():
    with start_server("--max-analysis", "27000000", "--workers", "1") as server:
        before = server.memory("VmRSS")
        for asked, words in (({"scheme": "sinusoidal", "dim": 64, "len": 16384, "metrics": ["bounds"]}, ("--max-analysis", "2.77e+07", "2.7e+07")),
                             ({"scheme": "sinusoidal", "dim": 64, "len": 2**40, "metrics": ["bounds"]}, ("131072", "1099511627776"))):
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


def test_what_is_too_much_is_not_allocated(server):
    before, watch = server.memory("VmRSS"), Stopwatch(server)
    for request in ({"scheme": "rope", "len": 2 ** 40}, {"scheme": "alibi", "q_len": 2 ** 30, "k_len": 2 ** 30},
                    {"scheme": "sinusoidal", "len": 16384, "dim": 4096, "metrics": ["shift"], "outputs": ["shift_matrix"]}):
        assert server.post("/analyze", request).status == 413, request
    assert server.memory("VmRSS") - before < 8 << 20 and watch.seconds() < 5


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
