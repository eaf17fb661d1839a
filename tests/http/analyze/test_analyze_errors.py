"""Bad requests of /analyze: what is sent → status, pointer, words."""
import re

import pytest

from conftest import Stopwatch, start_server
from test_errors import check_problem

ROPE, SINE, ALIBI = {"scheme": "rope", "len": 4}, {"scheme": "sinusoidal", "len": 4, "dim": 8}, {"scheme": "alibi", "len": 4}
LEARNED = {"scheme": "learned", "len": 4, "dim": 4, "seed": 0}

REFUSED = [
    # configurations
    ({}, 422, ("/scheme", "/configs", ""), ["scheme"]),
    ({"configs": []}, 422, "/configs", ["1", "8"]),
    ({"configs": [ROPE] * 9}, 422, "/configs", ["9", "8"]),
    ({"configs": {}}, 422, "/configs", ["list"]),
    ({"configs": [3]}, 422, ("/configs/0", "/configs"), []),
    ({"configs": [ROPE, {"scheme": "rop", "len": 4}]}, 422, "/configs/1/scheme", ["rop", "rope"]),
    ({"configs": [ROPE, {**ROPE, "headdim": 3}]}, 422, "/configs/1/headdim", ["head_dim"]),
    ({"configs": [ROPE, {**ROPE, "head_dim": 7}]}, 422, "/configs/1/head_dim", ["7"]),
    ({"configs": [ROPE, {"scheme": "rope"}]}, 422, ("/configs/1", "/configs/1/len"), ["len"]),
    ({"configs": [{**ROPE, "metrics": ["unique"]}]}, 422, "/configs/0/metrics", []),
    ({"configs": [{**ROPE, "k": [1]}]}, 422, "/configs/0/k", []),
    ({"configs": [{**ROPE, "format": "npz"}]}, 422, "/configs/0/format", []),
    ({"configs": [LEARNED, {"scheme": "learned", "len": 4}]}, 422, ("/configs/1", "/configs/1/table", "/configs/1/weights", "/configs/1/scheme"), ["seed"]),
    # metrics
    ({**ROPE, "metrics": []}, 422, "/metrics", []),
    ({**ROPE, "metrics": "all of them"}, 422, ("/metrics", "/metrics/0"), []),
    ({**ROPE, "metrics": ["uniqe"]}, 422, "/metrics/0", ["uniqe", "unique"]),
    ({**ROPE, "metrics": ["step", "similarty"]}, 422, "/metrics/1", ["similarity"]),
    ({**ROPE, "metrics": [3]}, 422, ("/metrics/0", "/metrics"), []),
    ({**ROPE, "metrics": ["step", "step"]}, 422, "/metrics/1", ["step"]),
    ({**ROPE, "metrics": ["step", "receptive"]}, 422, "/metrics/1", ["receptive"]),
    ({**SINE, "metrics": ["norms"]}, 422, "/metrics/0", ["norms"]),
    ({**ALIBI, "metrics": ["shift"]}, 422, "/metrics/0", ["shift"]),
    ({"scheme": "xpos", "len": 4, "metrics": ["decay"]}, 422, "/metrics/0", ["decay"]),
    ({"scheme": "integer", "len": 4, "metrics": ["wavelengths"]}, 422, "/metrics/0", ["wavelengths"]),
    ({"scheme": "shaw", "len": 4, "metrics": ["unique"]}, 422, "/metrics/0", ["unique"]),
    ({"scheme": "rope", "positions": [0, 2], "metrics": ["similarity"]}, 422, "/metrics/0", ["similarity"]),
    ({"scheme": "rope", "grid": [2, 2], "metrics": ["properties"]}, 422, "/metrics/0", ["properties"]),
    ({**ROPE, "metrics": ["difference"]}, 422, "/metrics/0", ["difference"]),
    # parameters that no metric asked for uses
    ({**ROPE, "metrics": ["unique"], "k": [1]}, 422, "/k", ["shift"]),
    ({**ROPE, "metrics": ["unique"], "train_len": 4}, 422, "/train_len", []),
    ({**ROPE, "metrics": ["wavelengths"], "eval_len": 64}, 422, "/eval_len", ["extrapolation"]),
    ({**ROPE, "metrics": ["unique"], "seed": 1}, 422, "/seed", []),
    ({**ROPE, "metrics": ["step"], "tolerance": 1e-3}, 422, "/tolerance", ["difference"]),
    ({**ROPE, "metrics": ["step"], "recipes": ["f32"]}, 422, "/recipes", ["precision"]),
    ({**ROPE, "metrics": ["step"], "dtypes": ["f32"]}, 422, "/dtypes", ["collisions"]),
    ({**SINE, "metrics": ["step"], "pairing": "sin"}, 422, "/pairing", ["similarity"]),
    ({**SINE, "metrics": ["step"], "other_base": 100.0}, 422, "/other_base", []),
    ({**ALIBI, "k": [1]}, 422, "/k", []),
    # their ranges
    ({**ROPE, "metrics": ["shift"], "k": [4]}, 422, ("/k/0", "/k"), ["4"]),
    ({**ROPE, "metrics": ["shift"], "k": [1, 9]}, 422, ("/k/1", "/k"), ["9"]),
    ({**ROPE, "metrics": ["shift"], "k": [0]}, 422, ("/k/0", "/k"), ["0"]),
    ({**ROPE, "metrics": ["shift"], "k": []}, 422, "/k", []),
    ({**ROPE, "metrics": ["shift"], "k": [1.5]}, 422, ("/k/0", "/k"), []),
    ({**ROPE, "metrics": ["extrapolation"], "train_len": 9, "eval_len": 8}, 422, ("/eval_len", "/train_len"), ["9", "8"]),
    ({**ROPE, "metrics": ["extrapolation"], "eval_len": 3}, 422, ("/eval_len", "/train_len"), ["3", "4"]),
    ({**ROPE, "metrics": ["wavelengths"], "train_len": 0}, 422, "/train_len", []),
    ({**ROPE, "metrics": ["precision"], "recipes": ["bf17"]}, 422, ("/recipes/0", "/recipes"), ["bf16"]),
    ({**ROPE, "metrics": ["precision"], "recipes": []}, 422, "/recipes", []),
    ({**ROPE, "metrics": ["collisions"], "dtypes": ["float16"]}, 422, ("/dtypes/0", "/dtypes"), ["f16"]),
    ({**ROPE, "metrics": ["collisions"], "dtypes": ["i32"]}, 422, ("/dtypes/0", "/dtypes"), []),
    ({**SINE, "metrics": ["similarity"], "pairing": "sine"}, 422, "/pairing", ["sin"]),
    ({**ROPE, "metrics": ["similarity"], "pairing": "sin"}, 422, "/pairing", []),
    ({**SINE, "dim": 9, "metrics": ["similarity"], "pairing": "sin"}, 422, ("/pairing", "/dim"), []),
    ({"configs": [ROPE, ROPE], "metrics": ["difference"], "tolerance": -1}, 422, "/tolerance", []),
    ({"configs": [ROPE, ROPE], "metrics": ["difference"], "dtype": "f8"}, 422, "/dtype", ["f32"]),
    ({**SINE, "metrics": ["similarity"], "other_base": 1}, 422, "/other_base", []),
    # the answer's form
    ({**ROPE, "slice": [[0, 1]]}, 422, "/slice", []),
    ({**ROPE, "reduce": "mean"}, 422, "/reduce", []),
    ({**ROPE, "lang": "fr"}, 422, "/lang", ["en", "zh"]),
    ({**ROPE, "outputs": ["cos"]}, 422, ("/outputs/0", "/outputs"), []),
    ({**ROPE, "metrics": ["step"], "outputs": ["gram"]}, 422, ("/outputs/0", "/outputs"), ["step"]),
    ({**ROPE, "outputs": ["step", "step"]}, 422, ("/outputs/1", "/outputs"), []),
    ({**ROPE, "digits": 18}, 422, "/digits", ["17"]),
    ({**ROPE, "metric": ["unique"]}, 422, "/metric", ["metrics"]),
    # too much
    ({"scheme": "rope", "len": 16385}, 413, ("/len", ""), ["16385", "16384"]),
    ({"scheme": "rope", "len": 2 ** 40}, 413, ("/len", ""), ["16384"]),
    ({"scheme": "alibi", "len": 2 ** 40}, 413, ("/len", ""), ["16384"]),
    ({"scheme": "sinusoidal", "grid": [1024, 1024], "dim": 8}, 413, ("/grid", ""), ["16384"]),
    ({"configs": [ROPE, {"scheme": "rope", "len": 16385}]}, 413, ("/configs/1/len", "/configs/1", ""), ["16384"]),
    ({**ROPE, "metrics": ["extrapolation"], "eval_len": 65537}, 413, ("/eval_len", ""), ["65537", "65536"]),
    ({"scheme": "rope", "len": 16384, "metrics": ["similarity"], "outputs": ["gram"]}, 413, ("/outputs", "/outputs/0", ""), []),
    ({"scheme": "rope", "len": 4096, "metrics": ["similarity"], "outputs": ["gram"]}, 413, ("/outputs", "/outputs/0", ""), []),
    ({"configs": [{**ROPE, "len": 2048}] * 3, "metrics": ["similarity"], "outputs": ["gram"]}, 413, ("/outputs", "/outputs/0", ""), []),
    ({"scheme": "rope", "len": 4, "offset": 2 ** 40}, 422, "/offset", ["2^40"]),
]


@pytest.mark.parametrize("request_,status,pointer,words", REFUSED, ids=lambda value: str(value)[:90] if isinstance(value, dict) else "")
def test_refused(server, request_, status, pointer, words):
    check_problem(server.post("/analyze", request_), status, pointer, words)


def test_what_is_too_much_is_not_allocated(server):
    before, watch = server.memory("VmRSS"), Stopwatch(server)
    for request in ({"scheme": "rope", "len": 2 ** 40}, {"scheme": "alibi", "q_len": 2 ** 30, "k_len": 2 ** 30},
                    {"scheme": "sinusoidal", "len": 16384, "dim": 4096, "metrics": ["shift"], "outputs": ["shift_matrix"]}):
        assert server.post("/analyze", request).status == 413, request
    assert server.memory("VmRSS") - before < 8 << 20 and watch.seconds() < 5


def test_what_a_metric_applies_to_is_said(server):
    detail = server.post("/analyze", {**ROPE, "metrics": ["receptive"]}).json()["detail"]
    assert "bias" in detail or "alibi" in detail
    detail = server.post("/analyze", {**ALIBI, "metrics": ["decay"]}).json()["detail"]
    assert "rope" in detail and "sinusoidal" in detail


def test_the_work_has_a_limit():
    with start_server("--max-analysis", "10000000") as server:
        assert server.post("/analyze", {**ROPE, "metrics": ["bounds"]}).status == 200
        response = server.post("/analyze", {"scheme": "sinusoidal", "len": 1000, "dim": 64, "metrics": ["unique"]})
        check_problem(response, 413, ("", "/metrics", "/metrics/0", "/len"), ["--max-analysis"])
        numbers = [float(n.strip(".")) for n in re.findall(r"[\d.]+(?:e\+?\d+)?", response.json()["detail"])]
        assert 1e7 in numbers and any(3.2e7 <= n <= 4e7 for n in numbers), response  # n²D/2, the plans and the rows


def test_methods(server):
    assert server.request("PUT", "/analyze", b"{}").status == 405
    assert server.request("GET", "/analyze", b'{"scheme":"rope","len":3}').status == 400
    assert server.post("/analyze", b"[1").status == 400
    assert server.get("/analyze?scheme=rope&len=4&scheme=xpos").status == 400


def test_an_answer_without_tensors_is_not_raw(server):
    """raw is nothing but tensors: without one there is nothing to send."""
    for body in ({"scheme": "rope", "head_dim": 4, "len": 9, "metrics": ["bounds"]}, {"scheme": "shaw", "len": 9}):
        response = server.post("/analyze", {**body, "format": "raw", "outputs": []})
        assert response.status == 406, response
        assert "json" in response.json()["detail"]


def test_a_mask_of_keys_is_of_the_sequence_only(server):
    """extrapolation looks at longer lengths, where the request's own mask has no meaning."""
    answer = server.ask("/analyze", scheme="t5", num_heads=2, len=8, key_mask=[1] * 7 + [0]).json()
    assert "saturated" in answer["results"][0]["extrapolation"]


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
def test_a_table_that_is_not_finite_is_refused(server, value):
    response = server.post("/analyze", {"scheme": "learned", "table": [[1.0, 2.0], [3.0, value]], "len": 2})
    assert response.status == 422, response
    assert "row 1, column 1" in response.json()["detail"]


def test_a_frequency_that_overflows_is_infinitely_wrong(server):
    """100000 is more than f16 holds."""
    answer = server.ask("/analyze", scheme="rope", head_dim=4, inv_freq=[100000, 1], len=8, metrics=["precision"], recipes=["f16_inv_freq"]).json()
    assert answer["results"][0]["precision"]["value"] == "Infinity"


def test_more_shifts_than_positions_are_refused_at_once(server):
    watch = Stopwatch(server)
    response = server.post("/analyze", {"configs": [{"scheme": "rope", "len": 16}] * 8, "metrics": ["shift"], "k": [1] * 1000000})
    assert response.status == 422 and response.json()["pointer"] == "/k", response
    assert watch.seconds() < 2
