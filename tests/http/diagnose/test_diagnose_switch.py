"""/diagnose and caches of two ladders: LongRoPE's lists and dynamic NTK, changed inside one sequence. Truth is float64 NumPy by the papers' formulas."""
import numpy as np
import pytest

import truth
from diagnosing import codes_of, diagnose
from tensors import from_safetensors
from believed import inline
from truth.evidence import powers

D, N, O, FACTOR = 16, 40, 24, 4.0
AT = np.arange(N)
SHORT = [1.0, 1.0, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5]
LONG = [1.0, 1.2, 2.0, 3.0, 4.0, 6.0, 8.0, 9.0]
LONGROPE = {"type": "longrope", "factor": FACTOR, "original_max_position_embeddings": O, "short_factor": SHORT, "long_factor": LONG}
DYNAMIC = {"type": "dynamic", "factor": FACTOR, "max_position_embeddings": O}
MAGNITUDE = np.sqrt(1 + np.log(FACTOR) / np.log(O))  # of both lists
random = np.random.default_rng(3)
K = random.standard_normal((1, 2, N, D)).astype("f4").astype(float)


def dynamic(n):
    """Base for a sequence of n positions (transformers)."""
    stretch = FACTOR * max(n, O) / O - (FACTOR - 1)
    return powers(1e4 * stretch ** (D / (D - 2)), D)


def switched(before, after, x):
    """Angles of all rows: the first x by one ladder."""
    return np.where(AT[:, None] < x, np.outer(AT, before), np.outer(AT, after))


def growing():
    return np.stack([p * dynamic(p + 1) for p in AT])


def tables(angles, magnitude=1.0, dtype="f32"):
    return {"cos": inline(np.cos(angles) * magnitude, dtype), "sin": inline(np.sin(angles) * magnitude, dtype)}


def keys(angles, magnitude=1.0):
    return {"k": inline(K, "f32"), "k_out": inline(truth.turned(K, angles, factor=magnitude), "f32")}


def belief(scaling, **more):
    return {"scheme": "rope", "layout": "half", "head_dim": D, "scaling": scaling, **more}


def lists(x, first=SHORT, second=LONG):
    return switched(powers(1e4, D) / first, powers(1e4, D) / second, x)


EVIDENCE = {"tables": tables, "keys": keys}


@pytest.mark.parametrize("what", EVIDENCE)
@pytest.mark.parametrize("x", [2, 24, 39])
def test_a_cache_of_both_lists(server, what, x):
    answer = diagnose(server, {**belief(LONGROPE), **EVIDENCE[what](lists(x), MAGNITUDE)})
    first = answer["findings"][0]
    assert codes_of(answer)[0] == "scaling_switch" and first["pointer"] == "/scaling", answer["findings"]
    assert first["found"] == {"row": x, "before": {"seq_len": O}, "after": {"seq_len": 2 * O}}
    assert f"before row {x} " in first["detail"] and f"第 {x} 行" in first["detail_zh"]


@pytest.mark.parametrize("what", EVIDENCE)
def test_the_long_list_first(server, what):
    answer = diagnose(server, {**belief(LONGROPE), **EVIDENCE[what](lists(20, LONG, SHORT), MAGNITUDE)})
    assert answer["findings"][0]["code"] == "scaling_switch", answer["findings"]
    assert answer["findings"][0]["found"] == {"row": 20, "before": {"seq_len": 2 * O}, "after": {"seq_len": O}}


@pytest.mark.parametrize("what", EVIDENCE)
def test_dynamic_that_changed_once(server, what):
    answer = diagnose(server, {**belief(DYNAMIC), **EVIDENCE[what](switched(powers(1e4, D), dynamic(N), 30))})
    assert answer["findings"][0]["code"] == "scaling_switch", answer["findings"]
    assert answer["findings"][0]["found"] == {"row": 30, "before": {"seq_len": O}, "after": {"seq_len": N}}


@pytest.mark.parametrize("what", EVIDENCE)
def test_dynamic_that_grew_with_every_row(server, what):
    answer = diagnose(server, {**belief(DYNAMIC), **EVIDENCE[what](growing())})
    first = answer["findings"][0]
    assert first["code"] == "scaling_switch" and first["found"] == {"row": O, "before": {"seq_len": O}, "growing": True}, answer["findings"]
    assert answer["candidates"][0]["pieces"][1]["growing"] is True


def test_each_piece_is_a_request(server):
    sent = lists(24)
    candidate = diagnose(server, {**belief(LONGROPE), **tables(sent, MAGNITUDE)})["candidates"][0]
    assert [piece["rows"] for piece in candidate["pieces"]] == [[0, 24], [24, N]] and candidate["verdict"] == "exact"
    assert candidate["config"] == candidate["pieces"][0]["config"]
    got = [from_safetensors(server.ask("/encode", **piece["config"], **piece["sequence"], outputs=["cos"], format="safetensors", dtype="f64"))["cos"]
           for piece in candidate["pieces"]]
    np.testing.assert_allclose(np.concatenate(got), np.cos(sent) * MAGNITUDE, atol=1e-12)


@pytest.mark.parametrize("scaling, angles, magnitude", [
    (LONGROPE, np.outer(AT, powers(1e4, D) / LONG), MAGNITUDE), (DYNAMIC, np.outer(AT, dynamic(N)), 1.0)])
def test_one_ladder_is_as_believed(server, scaling, angles, magnitude):
    answer = diagnose(server, {**belief(scaling), **tables(angles, magnitude)})
    assert codes_of(answer) == ["as_believed"] and "pieces" not in answer["candidates"][0]


def test_queries_have_no_cache(server):
    sent = keys(lists(24), MAGNITUDE)
    answer = diagnose(server, {**belief(LONGROPE), "q": sent["k"], "q_out": sent["k_out"]})
    assert "scaling_switch" not in codes_of(answer)
