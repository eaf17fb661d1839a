"""/check, a diagnosis as yes or no, and the header Posenc-Fits of both: what passes (as posenc.py decides it), and what is refused."""
import json

import numpy as np
import pytest

from tensors import multipart, npy

BELIEF = {"scheme": "rope", "head_dim": 8, "layout": "half"}


def tables(dtype="f4", n=16, base=10000.0, angle="f8"):
    """cos and sin of positions 0 … n-1, their angles computed in the type `angle`."""
    inv_freq = (1 / base ** (np.arange(0, 8, 2) / 8)).astype(angle)
    angles = (np.arange(n).astype(angle)[:, None] * inv_freq).astype(angle).astype("f8")
    return {"cos": np.cos(angles).astype(dtype).tolist(), "sin": np.sin(angles).astype(dtype).tolist()}


def check(server, body):
    answer = server.post("/check", body)
    assert answer.status == 200, answer
    assert answer.headers["Posenc-Fits"] == ("?1" if answer.json()["fits"] else "?0")
    return answer.json()


def passes(answer, strict):
    """the guide's rule, written once more."""
    allowed = {"as_believed", "undecided"} | (set() if strict else {"angles_f32", "coordinates_f32", "table_dtype"})
    return answer["explained"] and {one["code"] for one in answer["findings"]} <= allowed


def test_a_right_table_fits(server):
    answer = check(server, {**BELIEF, **tables()})
    assert answer["fits"] is True and answer["verdict"] == "exact" and answer["max_error"] <= 1e-7
    assert set(answer) == {"fits", "verdict", "findings", "max_error"}


def test_another_base_differs(server):
    answer = check(server, {**BELIEF, **tables(base=500000.0)})
    assert answer["fits"] is False and answer["verdict"] == "differs" and answer["max_error"] > 0.1
    assert [one["code"] for one in answer["findings"]] == ["base_other"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("case", [tables(), tables(n=4096, angle="f4"), tables("f2"), tables(base=77.0), {"cos": [[1.0] * 4], "sin": [[0.0] * 4]}])
def test_check_is_the_diagnosis_of_the_same_request(server, case, strict):
    body = {**BELIEF, **case, "strict": strict}
    whole = server.post("/diagnose", body)
    answer = check(server, body)
    assert answer["fits"] == passes(whole.json(), strict) and answer["findings"] == whole.json()["findings"]
    assert answer["max_error"] == whole.json()["belief"]["max_error"]
    assert whole.headers["Posenc-Fits"] == ("?1" if answer["fits"] else "?0")


def test_strict_refuses_roundings(server):
    rounded = {**BELIEF, **tables(n=4096, angle="f4")}
    assert check(server, rounded)["fits"] and not check(server, {**rounded, "strict": True})["fits"]


def test_strict_in_the_query_of_a_file(server):
    parts = {name: npy(np.array(values, "f4")) for name, values in tables().items()}
    answer = server.post("/check?strict=true", *multipart(request=json.dumps(BELIEF), **parts))
    assert answer.status == 200 and answer.json()["fits"] is True


def test_a_check_needs_a_belief(server):
    answer = server.post("/check", tables())
    assert answer.status == 422 and answer.json()["detail"] == (
        "check needs what the tensor is believed to be: a scheme, preset or hf_config; diagnose identifies a tensor")
    assert "Posenc-Fits" not in answer.headers
    assert server.post("/diagnose", tables()).status == 200


def test_what_diagnose_refuses_is_refused_in_the_same_words(server):
    for body in ({**BELIEF, "cos": [[1.0]]}, {**BELIEF, **tables(), "lenn": 3}, {**BELIEF, **tables(), "strict": 1}, {**BELIEF, **tables(), "format": "npy"}):
        check, whole = server.post("/check", body), server.post("/diagnose", body)
        assert check.status == whole.status and check.status in (406, 422) and check.json() == whole.json(), body


def test_sentences_for_a_person(server):
    answer = server.post("/check", {**BELIEF, **tables()}, {"Accept": "text/plain"})
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain") and answer.headers["Posenc-Fits"] == "?1"
    findings = server.post("/check", {**BELIEF, **tables()}).json()["findings"]
    assert answer.body.decode() == f"fits: {findings[0]['detail']}\n" and len(findings) == 1 and ". " not in findings[0]["detail"]
    wrong = tables()
    wrong["cos"][3][1] = 0.5
    answer = server.post("/check", {**BELIEF, **wrong, "format": "text"})
    bad = server.post("/diagnose", {**BELIEF, **wrong}).json()["belief"]["first_bad"]
    first, second = answer.body.decode().splitlines()
    assert answer.headers["Posenc-Fits"] == "?0" and first.startswith("differs: ") and bad["output"] == "cos" and bad["found"] == 0.5
    assert second == f"first difference: cos[{','.join(map(str, bad['index']))}] is 0.5, expected {bad['expected']:.4g}"
    q, q_out = np.ones((2, 8), "f4"), np.ones((2, 8), "f4")
    q_out[0, 0] = np.inf
    body, headers = multipart(request=json.dumps({**BELIEF, "format": "text"}), q=npy(q), q_out=npy(q_out))
    told = server.post("/check", body, headers).body.decode().splitlines()[1]
    assert told == "first difference: q_out[0,0] is Infinity, expected 1", "position 0 is not rotated"
    answer = server.post("/diagnose?lang=zh", {**BELIEF, **tables(), "format": "text"})
    assert answer.body.decode() == "explained:" + "".join(f" {finding['detail_zh']}\n" for finding in findings)
