"""/diagnose and what is beside the tables: factors of queries by their positions, and sinks of probabilities. Truth is float64 NumPy."""
import numpy as np
import pytest

from diagnosing import codes_of, diagnose, finding
from wrong_tensors import Tensor, inline

HEADS, N, D = 3, 24, 16
AT = np.concatenate([np.arange(8), 8188 + np.arange(8), 20000 + np.arange(8)])
random = np.random.default_rng(8)
Q, K = (random.standard_normal((1, HEADS, N, D)).astype("f4").astype(float) for _ in range(2))
ROPE = {"scheme": "rope", "layout": "half", "positions": AT.tolist()}
MINISTRAL = {"type": "ministral", "beta": 0.1, "original_max_position_embeddings": 8192}
LLAMA4 = {**MINISTRAL, "type": "llama4"}
LOGN = {"type": "logn", "original_max_position_embeddings": 4096}


def factors(rule, at=AT):
    if rule is None:
        return np.ones(len(at))
    length, at = rule["original_max_position_embeddings"], np.asarray(at, float)
    if rule["type"] == "logn":
        return np.maximum(1, np.log(at + 1) / np.log(length))
    return 1 + rule["beta"] * np.log(1 + np.floor((at + (rule["type"] == "llama4")) / length))


def rotated(x, layout="half"):
    angles = np.outer(AT, 1e4 ** (-np.arange(0, D, 2) / D))
    c, s = np.cos(angles), np.sin(angles)
    first, second = (x[..., :D // 2], x[..., D // 2:]) if layout == "half" else (x[..., ::2], x[..., 1::2])
    pair = first * c - second * s, first * s + second * c
    return np.concatenate(pair, -1) if layout == "half" else np.stack(pair, -1).reshape(x.shape)


def queries(rule, layout="half"):
    return rotated(Q, layout) * factors(rule)[:, None]


def softmax(s, sinks=None):
    e = np.exp(s)
    return e / (e.sum(-1, keepdims=True) + (0 if sinks is None else np.exp(np.asarray(sinks))[:, None, None]))


def map_of(kind, rule, sinks=None):
    s = np.einsum("bhid,bhjd->bhij", queries(rule), rotated(K)) / np.sqrt(D)
    return softmax(s, sinks) if kind == "probs" else s


def asked(server, what, rule, dtype="f32", layout="half", sinks=None, belief_sinks=False, **belief):
    if belief_sinks:
        belief["sinks"] = sinks
    sent = {"q": inline(Tensor(Q, "f32")), "k": inline(Tensor(K, "f32"))}
    if what == "q_out":
        del sent["k"]
        numbers = queries(rule, layout)
    else:
        numbers = map_of(what, rule, sinks)
    at = {"positions": AT.tolist()} if what == "q_out" else {"q_positions": AT.tolist(), "k_positions": AT.tolist()}
    return diagnose(server, {"scheme": "rope", "layout": "half", **at, **belief, **sent, what: inline(Tensor(numbers, dtype))})


EVIDENCE = ["q_out", "scores", "probs"]


@pytest.mark.parametrize("what", EVIDENCE)
@pytest.mark.parametrize("rule", [None, MINISTRAL, LLAMA4, LOGN])
def test_as_believed(server, what, rule):
    answer = asked(server, what, rule, **({"query_scale": rule} if rule else {}))
    assert codes_of(answer) == ["as_believed"] and answer["candidates"][0]["config"].get("query_scale") == rule


@pytest.mark.parametrize("what", EVIDENCE)
@pytest.mark.parametrize("rule", [MINISTRAL, LLAMA4, LOGN])
def test_the_factor_is_missing(server, what, rule):
    answer = asked(server, what, None, query_scale=rule)
    assert codes_of(answer) == ["query_scale_missing"], answer["findings"]
    first = answer["findings"][0]
    assert (first["pointer"], first["found"]) == ("/query_scale", None) and first["believed"]["type"] == rule["type"]


@pytest.mark.parametrize("what", EVIDENCE)
@pytest.mark.parametrize("rule", [MINISTRAL, LLAMA4, LOGN])
def test_a_factor_that_is_not_believed(server, what, rule):
    answer = asked(server, what, rule)
    assert codes_of(answer)[0] == "query_scale_extra", answer["findings"]
    assert answer["findings"][0]["pointer"] == "/query_scale" and answer["findings"][0]["found"] == rule
    assert answer["candidates"][0]["config"]["query_scale"] == rule


@pytest.mark.parametrize("what", EVIDENCE)
def test_another_rule(server, what):
    answer = asked(server, what, LLAMA4, query_scale=MINISTRAL)
    assert codes_of(answer)[0] == "query_scale_other" and answer["candidates"][0]["config"]["query_scale"] == LLAMA4


@pytest.mark.parametrize("what", EVIDENCE)
@pytest.mark.parametrize("beta", [0.25, 0.4])
def test_another_beta_is_fitted(server, what, beta):
    answer = asked(server, what, {**MINISTRAL, "beta": beta}, query_scale=MINISTRAL)
    first = answer["findings"][0]
    assert codes_of(answer)[0] == "query_scale_other", answer["findings"]
    assert (first["pointer"], first["found"], first["believed"]) == ("/query_scale/beta", pytest.approx(beta, rel=1e-5), 0.1)
    assert f"is {beta}" in first["detail"] and "配置写的是 0.1" in first["detail_zh"]


def test_beside_another_mistake(server):
    answer = asked(server, "q_out", MINISTRAL, layout="interleaved")
    assert set(codes_of(answer)) == {"layout_swapped", "query_scale_extra"}, answer["findings"]


def test_keys_are_not_scaled(server):
    body = {**ROPE, "k": inline(Tensor(K, "f32")), "k_out": inline(Tensor(rotated(K), "f32")), "query_scale": MINISTRAL}
    assert codes_of(diagnose(server, body)) == ["as_believed"]


def test_of_both_sides_it_is_of_queries(server):
    body = {**ROPE, "q": inline(Tensor(Q, "f32")), "q_out": inline(Tensor(queries(None), "f32")), "query_scale": MINISTRAL,
            "k": inline(Tensor(K, "f32")), "k_out": inline(Tensor(rotated(K), "f32"))}
    answer = diagnose(server, body)
    assert answer["sides"] == {"q": {"verdict": "exact", "codes": ["query_scale_missing"]}, "k": {"verdict": "exact", "codes": []}}
    assert answer["findings"][0]["side"] == "q"


def test_short_sequences_do_not_show_it(server):
    n = 8
    body = {"scheme": "rope", "layout": "half", "query_scale": MINISTRAL, "q": inline(Tensor(Q[:, :, :n], "f32")),
            "q_out": inline(Tensor(rotated(Q)[:, :, :n], "f32"))}
    answer = diagnose(server, body)
    assert codes_of(answer) == ["as_believed"] and "query_scale_missing" in answer["unseen"]


# ---- Sinks -------------------------------------------------------------------------------------------------------------------

SINKS = [0.5, -1.25, 2.0]


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_sinks_as_believed(server, dtype):
    """Numbers of bf16 are too coarse to show that sinks are missing."""
    believed = asked(server, "probs", None, dtype, sinks=SINKS, belief_sinks=True)
    assert codes_of(believed)[0] == "as_believed"
    if dtype != "bf16":
        assert codes_of(asked(server, "probs", None, dtype, sinks=SINKS))[0] == "sinks_extra"


def test_sinks_are_missing(server):
    body = {"scheme": "rope", "layout": "half", "q_positions": AT.tolist(), "k_positions": AT.tolist(), "sinks": SINKS,
            "q": inline(Tensor(Q, "f32")), "k": inline(Tensor(K, "f32")), "probs": inline(Tensor(map_of("probs", None), "f32"))}
    answer = diagnose(server, body)
    assert codes_of(answer) == ["sinks_missing"]
    first = finding(answer, "sinks_missing")
    assert (first["pointer"], first["found"], first["believed"]) == ("/sinks", None, SINKS)
    assert "sum to 1" in first["detail"] and "sink" in first["detail_zh"]


@pytest.mark.parametrize("sinks", [SINKS, [0.123456, 4.5, -3.0], [-40.0, 1.0, 0.0]])
def test_sinks_are_fitted(server, sinks):
    answer = asked(server, "probs", None, sinks=sinks)
    first = answer["findings"][0]
    assert codes_of(answer)[0] == "sinks_extra" and first["pointer"] == "/sinks", answer["findings"]
    seen = [s for s in sinks if s > -20]
    assert [f for f in first["found"] if f > -20] == pytest.approx(seen, abs=2e-5)


def test_sinks_of_scores_far_below_zero(server):
    """What is not a key adds nothing to the sum of a row."""
    towards = np.zeros((1, 1, 1, D))
    towards[..., [D // 2 - 1, D - 1]] = 1, 1  # the slowest pair hardly turns
    q, k = (np.round(x.astype("f4").astype(float) * 0.3, 3).astype("f4").astype(float) for x in (Q - 40 * towards, K + 10 * towards))
    at = np.arange(N)
    angles = np.outer(at, 1e4 ** (-np.arange(0, D, 2) / D))
    c, s = np.cos(angles), np.sin(angles)

    def turned(x):
        return np.concatenate([x[..., :D // 2] * c - x[..., D // 2:] * s, x[..., :D // 2] * s + x[..., D // 2:] * c], -1)

    scores = np.einsum("bhid,bhjd->bhij", turned(q), turned(k)) / np.sqrt(D)
    assert -30 < scores.mean() < -10, scores.mean()
    sinks = [scores[0, h].mean() + h for h in range(HEADS)]
    answer = diagnose(server, {"scheme": "rope", "layout": "half", "q_positions": at.tolist(), "k_positions": at.tolist(), "q": inline(Tensor(q, "f32")),
                               "k": inline(Tensor(k, "f32")), "probs": inline(Tensor(softmax(scores, sinks), "f32"))})
    first = answer["findings"][0]
    assert first["code"] == "sinks_extra" and first["found"] == pytest.approx(sinks, abs=1e-4), answer["findings"]


def test_sinks_beside_a_scale(server):
    s = 2 * map_of("scores", None)
    body = {"scheme": "rope", "layout": "half", "q_positions": AT.tolist(), "k_positions": AT.tolist(), "softmax_scale": 2 / np.sqrt(D),
            "q": inline(Tensor(Q, "f32")), "k": inline(Tensor(K, "f32")), "probs": inline(Tensor(softmax(s, SINKS), "f32"))}
    assert codes_of(diagnose(server, body))[0] == "sinks_extra"
    swapped = diagnose(server, {**body, "layout": "interleaved"})
    assert set(codes_of(swapped)) == {"layout_swapped", "sinks_extra"}, swapped["findings"]


def test_scores_do_not_show_sinks(server):
    assert codes_of(asked(server, "scores", None)) == ["as_believed"]
    body = {"scheme": "rope", "layout": "half", "q_positions": AT.tolist(), "k_positions": AT.tolist(), "sinks": SINKS,
            "q": inline(Tensor(Q, "f32")), "k": inline(Tensor(K, "f32")), "scores": inline(Tensor(map_of("scores", None), "f32"))}
    assert codes_of(diagnose(server, body)) == ["as_believed"]
