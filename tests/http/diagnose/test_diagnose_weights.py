"""Two checkpoints: rows of a projection that a conversion moved. Truth is NumPy's fancy indexing; the permutations are written out here."""
import json

import numpy as np
import pytest

import safetensors_reader
from diagnosing import codes_of, diagnose, finding
from tensors import multipart, npy
from believed import rounded

HEADS, D, IN = 8, 16, 24
random = np.random.default_rng(15)
W = random.normal(size=(HEADS * D, IN)).astype("f4")


def to_half(heads=HEADS, rows=HEADS * D, rotated=None):
    """Rows 0, 2, 4, … of each head, then 1, 3, 5, …, of its first rows; as an index of the old rows."""
    d = rows // heads
    r = rotated or d
    one = np.r_[np.arange(0, r, 2), np.arange(1, r, 2), np.arange(r, d)]
    return (np.arange(heads)[:, None] * d + one).ravel()


def to_interleaved(*sizes):
    return np.argsort(to_half(*sizes))


def sent(server, believed, found, bf16=(), **fields):
    body = safetensors_reader.dumps({"w_believed": believed, "w_found": found}, {"request": json.dumps(fields)}, list(bf16))
    response = server.post("/diagnose", body, {"Content-Type": "application/vnd.safetensors"})
    assert response.status == 200, response
    return response.json()


def moved(conversion, heads=HEADS, times=1):
    return {"name": "rows", "conversion": conversion, "heads": heads, "times": times}


def test_the_conversion_of_eight_rows():
    """The law's own numbers."""
    assert to_half(1, 8).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]


CONVERTED = {
    # name: (rows of w_found, fields, code, found, transforms)
    "equal": (np.arange(HEADS * D), {}, "as_believed", None, []),
    "as believed": (to_half(), {"conversion": "interleaved_to_half"}, "as_believed", None, []),
    "back, as believed": (to_interleaved(), {"conversion": "half_to_interleaved"}, "as_believed", None, []),
    "meta to hf": (to_half(), {}, "rows_permuted", "interleaved_to_half", [moved("interleaved_to_half")]),
    "hf to meta": (to_interleaved(), {}, "rows_permuted", "half_to_interleaved", [moved("half_to_interleaved")]),
    "forgotten": (np.arange(HEADS * D), {"conversion": "interleaved_to_half"}, "rows_permuted", "half_to_interleaved",
                  [moved("half_to_interleaved")]),
    "twice": (to_half()[to_half()], {"conversion": "interleaved_to_half"}, "rows_permuted", "interleaved_to_half",
              [moved("interleaved_to_half")]),
    "twice, none believed": (to_half()[to_half()], {}, "rows_permuted_twice", "interleaved_to_half",
                             [moved("interleaved_to_half", times=2)]),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_a_conversion_is_named(server, name):
    rows, fields, code, conversion, transforms = CONVERTED[name]
    answer = sent(server, W, W[rows], num_heads=HEADS, **fields)
    assert answer["explained"] and codes_of(answer) == [code], answer["findings"]
    first = answer["candidates"][0]
    assert first["transforms"] == transforms and first["config"] is None and first["verdict"] == "exact"
    found = answer["findings"][0]["found"]
    assert found == (conversion and {key: transforms[0][key] for key in ("conversion", "heads", "times")})
    in_place = np.all(W[rows] == W[{"interleaved_to_half": to_half(), "half_to_interleaved": to_interleaved()}.get(
        fields.get("conversion"), np.arange(HEADS * D))], axis=1)
    assert answer["belief"]["equal"] == in_place.mean()


def test_keys_converted_with_the_heads_of_queries(server):
    """The GQA bug: wk of 2 heads, 8 query heads."""
    wk = W[:2 * D]
    answer = sent(server, wk, wk[to_half(8, 2 * D)], num_heads=8, num_kv_heads=2, conversion="interleaved_to_half")
    [one] = answer["findings"]
    assert (one["code"], one["pointer"], one["found"], one["believed"]) == ("rows_heads_other", "/num_kv_heads", {"heads": 8}, 2)
    assert answer["candidates"][0]["transforms"] == [moved("interleaved_to_half", 8)]
    assert "8 heads" in one["detail"] and "2" in one["detail"] and "8" in one["detail_zh"]


@pytest.mark.parametrize("heads", [1, 2, 4, 16, 32])
def test_any_other_number_of_heads(server, heads):
    answer = sent(server, W, W[to_half(heads)], num_heads=HEADS, conversion="interleaved_to_half")
    assert answer["findings"][0]["found"] == {"heads": heads}


@pytest.mark.parametrize("width, conversion, times", [(4, "interleaved_to_half", 1), (8, "half_to_interleaved", 1)])
def test_the_smallest_number_of_times(server, width, conversion, times):
    """Of four rows both directions are the same, and of eight twice one way is once the other."""
    rows = to_half(4, 4 * width)
    moves = rows if width == 4 else rows[rows]
    answer = sent(server, W[:4 * width], W[:4 * width][moves], head_dim=width)
    assert answer["findings"][0]["found"] == {"conversion": conversion, "heads": 4, "times": times}
    if width == 8:
        assert ["rows_permuted_twice"] in [other["codes"] for other in answer["candidates"][0]["also"]]


def test_a_part_of_each_head(server):
    answer = sent(server, W, W[to_half(rotated=8)], num_heads=HEADS, rotary_dim=8, conversion="interleaved_to_half")
    assert codes_of(answer) == ["as_believed"]
    assert codes_of(sent(server, W, W[to_half()], num_heads=HEADS, rotary_dim=8, conversion="interleaved_to_half")) != ["as_believed"]


def test_heads_in_another_order(server):
    order = [3, 0, 1, 2, 7, 6, 5, 4]
    answer = sent(server, W, W.reshape(HEADS, D, IN)[order].reshape(W.shape), num_heads=HEADS)
    assert codes_of(answer) == ["heads_order"] and answer["findings"][0]["found"] == {"order": order}
    both = sent(server, W, W[to_half()].reshape(HEADS, D, IN)[order].reshape(W.shape), num_heads=HEADS)
    assert codes_of(both) == ["rows_permuted", "heads_order"]


def test_a_projection_in_a_fused_matrix(server):
    """q, k, v one after another; then for each group of two query heads, as Megatron has them."""
    k = random.normal(size=(4 * D, IN)).astype("f4")
    v = random.normal(size=(4 * D, IN)).astype("f4")
    answer = sent(server, k, np.concatenate([W, k, v]), num_heads=8, num_kv_heads=4)
    assert codes_of(answer) == ["rows_fused"]
    assert answer["findings"][0]["found"] == {"first": HEADS * D, "block": 4 * D, "every": 16 * D}
    groups = np.concatenate([W.reshape(4, 2 * D, IN), k.reshape(4, D, IN), v.reshape(4, D, IN)], 1).reshape(-1, IN)
    assert sent(server, k, groups, num_heads=8, num_kv_heads=4)["findings"][0]["found"] == {"first": 2 * D, "block": D, "every": 4 * D}
    assert sent(server, W, groups, num_heads=8)["findings"][0]["found"] == {"first": 0, "block": 2 * D, "every": 4 * D}
    permuted = sent(server, k[to_interleaved(4, 4 * D)], np.concatenate([W, k, v]), num_heads=8, num_kv_heads=4)
    assert codes_of(permuted) == ["rows_permuted", "rows_fused"]


def test_numbers_that_changed_too(server):
    assert codes_of(sent(server, W, W[to_half()].T.copy(), num_heads=HEADS)) == ["rows_permuted", "transposed"]
    assert codes_of(sent(server, W, -W, num_heads=HEADS)) == ["negated"]
    eighth = sent(server, W, W * np.float32(0.25), num_heads=HEADS)
    assert codes_of(eighth) == ["scaled"] and finding(eighth, "scaled")["found"] == 0.25
    assert finding(eighth, "scaled")["meaning"] == "1/sqrt(head_dim)"
    odd = sent(server, W, (W[to_half()].astype(float) * 1.0371).astype("f4"), num_heads=HEADS)
    assert codes_of(odd) == ["rows_permuted", "scaled"] and finding(odd, "scaled")["found"] == pytest.approx(1.0371, rel=1e-6)
    assert finding(odd, "scaled")["meaning"] is None and odd["candidates"][0]["max_error"] < 1e-6


def test_fewer_bits(server):
    """A checkpoint saved in bf16: its rows are those of float32, rounded."""
    short = rounded(W, "bf16").astype("f4")
    answer = sent(server, W, short[to_half()], bf16=["w_found"], num_heads=HEADS, conversion="interleaved_to_half")
    assert codes_of(answer) == ["table_dtype"] and answer["findings"][0]["found"] == "bf16"
    assert answer["candidates"][0]["codes"] == []
    wide = sent(server, W, short, num_heads=HEADS)  # the same numbers in float32
    assert codes_of(wide) == ["table_dtype"]
    back = sent(server, short, short[to_half()], bf16=["w_believed"], num_heads=HEADS)
    assert codes_of(back) == ["rows_permuted"]  # nothing was lost


def test_equal_rows_match_in_any_order(server):
    same = W.copy()
    same[5] = same[4]
    same[20:24] = 0
    assert codes_of(sent(server, same, same[to_half()], num_heads=HEADS)) == ["rows_permuted"]
    swapped = same.copy()
    swapped[[4, 5]] = swapped[[5, 4]]
    assert codes_of(sent(server, same, swapped, num_heads=HEADS)) == ["as_believed"]
    assert codes_of(sent(server, np.ones((64, 2), "f4"), np.ones((64, 2), "f4"), num_heads=4)) == ["as_believed"]


def test_an_order_without_a_name(server):
    order = random.permutation(HEADS * D)
    answer = sent(server, W, W[order], num_heads=HEADS)
    assert codes_of(answer) == ["rows_other"] and answer["findings"][0]["found"] == {"rows": order[:64].tolist()}
    assert answer["candidates"][0]["transforms"] == [{"name": "rows", "order": order.tolist()}]


def test_rows_that_are_nowhere(server):
    other = W[to_half()].copy()
    other[[3, 50, 77]] += 1
    answer = sent(server, W, other, num_heads=HEADS)
    assert not answer["explained"] and answer["candidates"] == []
    assert codes_of(answer) == ["unexplained"] and answer["findings"][0]["found"] == {"missing": 3}
    assert answer["belief"]["first_bad"]["output"] == "w_found" and answer["belief"]["first_bad"]["index"] == [1, 0]


def test_few_columns_tell_and_json_too(server):
    answer = diagnose(server, {"w_believed": W[:, :3].tolist(), "w_found": W[to_half(), :3].tolist(), "num_heads": HEADS})
    assert codes_of(answer) == ["rows_permuted"]
    files = multipart(request=json.dumps({"num_heads": HEADS}), w_believed=npy(W), w_found=npy(W[to_half()]))
    assert codes_of(diagnose(server, *files)) == ["rows_permuted"]


def test_the_members_are_those_of_every_diagnosis(server):
    other = diagnose(server, {"scheme": "rope", "cos": [[1.0]], "sin": [[0.0]]})
    answer = sent(server, W, W, num_heads=HEADS)
    assert list(answer) == list(other) and list(answer["candidates"][0]) == list(other["candidates"][0])
    assert answer["sides"] is answer["arithmetic"] is answer["next"] is answer["undecided"] is None


def test_check_answers_yes_or_no(server):
    body = {"w_believed": W[:, :4].tolist(), "w_found": W[to_half(), :4].tolist(), "num_heads": HEADS, "conversion": "interleaved_to_half"}
    answer = server.post("/check", body).json()
    assert answer["fits"] is True and answer["verdict"] == "exact" and codes_of(answer) == ["as_believed"]
    assert server.post("/check", {**body, "conversion": "none"}).json()["fits"] is False
