"""NaN and infinities in the tensor under test are a finding, not a refusal, and what is finite is judged. Truth is NumPy: the tables and
rotations of the formula, with numbers replaced here."""
import json

import numpy as np
import pytest

from diagnosing import codes_of, diagnose, finding
from tensors import multipart, npy

N, D, BASE = 24, 16, 500.0
W = BASE ** (-2 * np.arange(D // 2) / D)
ANGLES = np.arange(N)[:, None] * W
BELIEF = {"scheme": "rope", "head_dim": D, "base": BASE, "layout": "half"}
random = np.random.default_rng(53)
Q = random.normal(size=(2, 3, N, D)).astype("f4")


def rotated(q, angles=ANGLES):
    a, b = q[..., :D // 2].astype(float), q[..., D // 2:].astype(float)
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1).astype("f4")


def asked(server, belief, **tensors):
    return diagnose(server, *multipart(request=json.dumps(belief), **{name: npy(x) for name, x in tensors.items()}))


def tables(bad=(), value=np.nan, angles=ANGLES):
    cos, sin = np.cos(angles).astype("f4"), np.sin(angles).astype("f4")
    for row, column in bad:
        sin[row, column] = value
    return {"cos": cos, "sin": sin}


def test_what_is_finite_is_as_believed(server):
    answer = asked(server, BELIEF, **tables([(20, 3), (20, 4), (21, 0), (5, 7)]))
    assert answer["explained"] and codes_of(answer) == ["not_finite"]
    one = answer["findings"][0]
    assert one["pointer"] == "/sin"
    assert one["found"] == {"count": 4, "value": "NaN", "index": [5, 7], "first": 5, "n_rows": 3, "of_rows": N, "rows": [[5, 5], [20, 21]],
                            "batch_rows": None, "heads": None}
    assert one["detail"].startswith("Numbers that are NaN or infinite: 4, in 3 of 24 rows, the first in row 5")
    assert answer["candidates"][0]["verdict"] in ("exact", "rounding") and answer["candidates"][0]["codes"] == []


def test_it_does_not_fit(server, client, posenc):
    body = multipart(request=json.dumps(BELIEF), **{name: npy(x) for name, x in tables([(20, 3)]).items()})
    assert server.post("/check", *body).json()["fits"] is False
    with pytest.raises(posenc.Mismatch, match="NaN or infinite"):
        client.check(**tables([(20, 3)]), **BELIEF)


@pytest.mark.parametrize("value, word", [(np.nan, "NaN"), (np.inf, "Infinity"), (-np.inf, "-Infinity")])
def test_the_mistake_beside_it_is_named(server, value, word):
    answer = asked(server, {**BELIEF, "base": 10000.0}, **tables([(9, 1)], value))
    assert codes_of(answer) == ["not_finite", "base_other"] and finding(answer, "base_other")["found"] == pytest.approx(BASE)
    assert finding(answer, "not_finite")["found"]["value"] == word


def test_it_is_identified_without_a_belief(server):
    answer = asked(server, {}, **tables([(9, 1)]))
    assert codes_of(answer) == ["not_finite", "identified"] and answer["candidates"][0]["config"]["base"] == pytest.approx(BASE)


def test_a_batch_row_and_heads(server):
    """A batch row that an overflow spoilt, of two heads of three; rows 16 to 23."""
    q_out = rotated(Q)
    q_out[1, 1:, 16:] = np.nan
    answer = asked(server, BELIEF, q=Q, q_out=q_out)
    assert codes_of(answer) == ["not_finite"]
    found = answer["findings"][0]["found"]
    assert found == {"count": 2 * 8 * D, "value": "NaN", "index": [1, 1, 16, 0], "first": 16, "n_rows": 8, "of_rows": N, "rows": [[16, 23]],
                     "batch_rows": [[1, 1]], "heads": [[1, 2]]}
    swapped = asked(server, {**BELIEF, "layout": "interleaved"}, q=Q, q_out=q_out)
    assert codes_of(swapped) == ["not_finite", "layout_swapped"]


def test_both_sides(server):
    k_out = rotated(Q)
    k_out[0, 0, 3, 5] = np.inf
    answer = asked(server, BELIEF, q=Q, q_out=rotated(Q), k=Q, k_out=k_out)
    assert "not_finite" in codes_of(answer) and finding(answer, "not_finite")["side"] == "k"
    assert {one["verdict"] for one in answer["sides"].values()} <= {"exact", "rounding"}


def test_nothing_but_nan(server):
    answer = asked(server, BELIEF, **tables([(row, 0) for row in range(N)]))
    assert not answer["explained"] and codes_of(answer) == ["not_finite", "unexplained"]
    assert "nothing could be compared" in answer["findings"][0]["detail"]


def test_json_and_one_tensor_of_both(server):
    both = np.stack([np.cos(ANGLES), np.sin(ANGLES)], -1).round(7).tolist()
    both[2][1][1] = "NaN"
    answer = diagnose(server, {**BELIEF, "freqs_cis": both})
    assert codes_of(answer) == ["not_finite"] and answer["findings"][0]["found"]["index"] == [2, 1, 1]


def test_a_mask_stays_a_mask(server):
    """-inf hides a key of a map; NaN does not."""
    distance = np.arange(8)[None, :] - np.arange(8)[:, None]
    slopes = 2.0 ** -np.arange(1, 9)
    bias = np.where(distance > 0, -np.inf, slopes[:, None, None] * np.minimum(distance, 0)).astype("f4")
    belief = {"scheme": "alibi", "num_heads": 8, "causal": True}
    assert codes_of(asked(server, belief, bias=bias)) == ["as_believed"]
    bias[2, 7, 7] = np.nan
    answer = asked(server, belief, bias=bias)
    assert codes_of(answer) == ["not_finite"] and answer["findings"][0]["found"]["heads"] == [[2, 2]]


def test_queries_before_the_rotation_are_finite(server):
    bad = Q.copy()
    bad[0, 0, 0, 0] = np.nan
    response = server.post("/diagnose", *multipart(request=json.dumps(BELIEF), q=npy(bad), q_out=npy(rotated(Q))))
    assert response.status == 422 and response.json()["pointer"] == "/q"


def test_padding_may_hold_nan(server):
    """Positions of padding are not looked at, whatever they hold."""
    mask = [[0] * 4 + [1] * (N - 4)]
    angles = np.concatenate([np.zeros((4, D // 2)), ANGLES[:N - 4]])
    q_out = rotated(Q[:1], angles)
    q_out[:, :, :4] = np.nan
    assert codes_of(asked(server, {**BELIEF, "attention_mask": mask}, q=Q[:1], q_out=q_out)) == ["as_believed"]
