"""posenc.check_rows: rows of a projection that a conversion moved between two checkpoints. Truth is NumPy's fancy indexing; the permutations are written out here."""
import hashlib

import numpy as np
import pytest

from believed import rounded

HEADS, D, IN = 8, 16, 24
FITS = [("as_believed", None)]
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


def codes(*matrices, **fields):
    return [code for code, _ in fields.pop("posenc").check_rows(*matrices, **fields)]


def test_the_conversion_of_eight_rows():
    """The law's own numbers."""
    assert to_half(1, 8).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]


CONVERTED = {
    # name: (rows of w_found, fields, code, conversion found, how many times)
    "equal": (np.arange(HEADS * D), {}, "as_believed", None, 0),
    "as believed": (to_half(), {"conversion": "interleaved_to_half"}, "as_believed", None, 0),
    "back, as believed": (to_interleaved(), {"conversion": "half_to_interleaved"}, "as_believed", None, 0),
    "meta to hf": (to_half(), {}, "rows_permuted", "interleaved_to_half", 1),
    "hf to meta": (to_interleaved(), {}, "rows_permuted", "half_to_interleaved", 1),
    "forgotten": (np.arange(HEADS * D), {"conversion": "interleaved_to_half"}, "rows_permuted", "half_to_interleaved",
                  1),
    "twice": (to_half()[to_half()], {"conversion": "interleaved_to_half"}, "rows_permuted", "interleaved_to_half",
              1),
    "twice, none believed": (to_half()[to_half()], {}, "rows_permuted_twice", "interleaved_to_half",
                             2),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_a_conversion_is_named(posenc, name):
    rows, fields, code, conversion, moves = CONVERTED[name]
    found = conversion and {"conversion": conversion, "heads": HEADS, "times": moves}
    assert posenc.check_rows(W, W[rows], num_heads=HEADS, **fields) == [(code, found)]


def test_keys_converted_with_the_heads_of_queries(posenc):
    """The GQA bug: wk of 2 heads, 8 query heads."""
    wk = W[:2 * D]
    found = posenc.check_rows(wk, wk[to_half(8, 2 * D)], num_heads=8, num_kv_heads=2, conversion="interleaved_to_half")
    assert found == [("rows_heads_other", {"heads": 8})]


@pytest.mark.parametrize("heads", [1, 2, 4, 16, 32])
def test_any_other_number_of_heads(posenc, heads):
    found = posenc.check_rows(W, W[to_half(heads)], num_heads=HEADS, conversion="interleaved_to_half")
    assert found == [("rows_heads_other", {"heads": heads})]


@pytest.mark.parametrize("width, conversion, times", [(4, "interleaved_to_half", 1), (8, "half_to_interleaved", 1)])
def test_the_smallest_number_of_times(posenc, width, conversion, times):
    """Of four rows both directions are the same, and of eight twice one way is once the other."""
    rows = to_half(4, 4 * width)
    moves = rows if width == 4 else rows[rows]
    found = posenc.check_rows(W[:4 * width], W[:4 * width][moves], head_dim=width)
    assert found == [("rows_permuted", {"conversion": conversion, "heads": 4, "times": times})]


def test_a_part_of_each_head(posenc):
    fields = {"num_heads": HEADS, "rotary_dim": 8, "conversion": "interleaved_to_half"}
    assert posenc.check_rows(W, W[to_half(rotated=8)], **fields) == FITS
    assert posenc.check_rows(W, W[to_half()], **fields) != FITS


def test_heads_in_another_order(posenc):
    order = [3, 0, 1, 2, 7, 6, 5, 4]
    moved = [("heads_order", {"order": order})]
    assert posenc.check_rows(W, W.reshape(HEADS, D, IN)[order].reshape(W.shape), num_heads=HEADS) == moved
    both = posenc.check_rows(W, W[to_half()].reshape(HEADS, D, IN)[order].reshape(W.shape), num_heads=HEADS)
    assert [code for code, _ in both] == ["rows_permuted", "heads_order"] and both[1:] == moved


def test_a_projection_in_a_fused_matrix(posenc):
    """q, k, v one after another; then for each group of two query heads, as Megatron has them."""
    k = random.normal(size=(4 * D, IN)).astype("f4")
    v = random.normal(size=(4 * D, IN)).astype("f4")
    of_k, of_q = {"num_heads": 8, "num_kv_heads": 4}, {"num_heads": 8}
    whole = np.concatenate([W, k, v])
    assert posenc.check_rows(k, whole, **of_k) == [("rows_fused", {"first": HEADS * D, "block": 4 * D, "every": 16 * D})]
    groups = np.concatenate([W.reshape(4, 2 * D, IN), k.reshape(4, D, IN), v.reshape(4, D, IN)], 1).reshape(-1, IN)
    assert posenc.check_rows(k, groups, **of_k) == [("rows_fused", {"first": 2 * D, "block": D, "every": 4 * D})]
    assert posenc.check_rows(W, groups, **of_q) == [("rows_fused", {"first": 0, "block": 2 * D, "every": 4 * D})]
    permuted = posenc.check_rows(k[to_interleaved(4, 4 * D)], whole, **of_k)
    assert [code for code, _ in permuted] == ["rows_permuted", "rows_fused"]


def test_numbers_that_changed_too(posenc):
    assert codes(W, W[to_half()].T.copy(), num_heads=HEADS, posenc=posenc) == ["rows_permuted", "transposed"]
    assert codes(W, -W, num_heads=HEADS, posenc=posenc) == ["negated"]
    assert posenc.check_rows(W, W * np.float32(0.25), num_heads=HEADS) == [("scaled", 0.25)]
    odd = posenc.check_rows(W, (W[to_half()].astype(float) * 1.0371).astype("f4"), num_heads=HEADS)
    assert [code for code, _ in odd] == ["rows_permuted", "scaled"] and odd[1][1] == pytest.approx(1.0371, rel=1e-6)


def test_fewer_bits(posenc):
    """A checkpoint saved in bf16: its rows are those of float32, rounded."""
    short = rounded(W, "bf16").astype("f4")
    assert posenc.check_rows(W, short[to_half()], num_heads=HEADS, conversion="interleaved_to_half") == [("table_dtype", "bf16")]
    assert posenc.check_rows(W, W.astype("f2"), num_heads=HEADS) == [("table_dtype", "f16")]
    assert codes(short, short[to_half()], num_heads=HEADS, posenc=posenc) == ["rows_permuted"]  # nothing was lost


def test_equal_rows_match_in_any_order(posenc):
    same = W.copy()
    same[5] = same[4]
    same[20:24] = 0
    assert codes(same, same[to_half()], num_heads=HEADS, posenc=posenc) == ["rows_permuted"]
    swapped = same.copy()
    swapped[[4, 5]] = swapped[[5, 4]]
    assert posenc.check_rows(same, swapped, num_heads=HEADS) == FITS
    assert posenc.check_rows(np.ones((64, 2), "f4"), np.ones((64, 2), "f4"), num_heads=4) == FITS


def test_an_order_without_a_name(posenc):
    order = random.permutation(HEADS * D)
    assert posenc.check_rows(W, W[order], num_heads=HEADS) == [("rows_other", {"rows": order.tolist()})]


def test_rows_that_are_nowhere(posenc):
    other = W[to_half()].copy()
    other[[3, 50, 77]] += 1
    assert posenc.check_rows(W, other, num_heads=HEADS) == [("unexplained", {"missing": 3})]


def test_few_columns_tell(posenc):
    assert codes(W[:, :3], W[to_half(), :3], num_heads=HEADS, posenc=posenc) == ["rows_permuted"]
    assert codes(W[:, :3].tolist(), W[to_half(), :3].tolist(), num_heads=HEADS, posenc=posenc) == ["rows_permuted"]


@pytest.mark.parametrize("seed, shape, fields, heads, sha256", [
    (11, (256, 48), {"num_heads": 8}, 8, "fad74fae774604b7aee13bb486ccc96c3884e27102ac6ae87af01fb87d2adfbf"),
    (12, (64, 48), {"num_heads": 8, "num_kv_heads": 2}, 2, "9d26e1853af9afe1dc65c16493e662d53b85a323b1204da52ddb05b317857458")])
def test_what_a_converter_did(posenc, seed, shape, fields, heads, sha256):
    """LlamaModel.permute of llama.cpp (conversion/llama.py at 7bca1fd9ca2a) made rows with this digest of these matrices."""
    w = np.random.RandomState(seed).standard_normal(shape).astype("<f4")
    there = w[to_interleaved(heads, len(w))]
    assert hashlib.sha256(there.tobytes()).hexdigest() == sha256
    assert posenc.check_rows(w, there, conversion="half_to_interleaved", **fields) == FITS
    for other in ("none", "interleaved_to_half"):
        assert codes(w, there, conversion=other, posenc=posenc, **fields)[0] in ("rows_permuted", "rows_permuted_twice")
    for wrong in (2 * heads, heads // 2):
        believed = {**fields, list(fields)[-1]: wrong}
        assert codes(w, there, conversion="half_to_interleaved", posenc=posenc, **believed) == ["rows_heads_other"]


@pytest.mark.parametrize("fields, words", [
    ({}, "num_heads is missing"), ({"num_heads": 3}, "128 rows are not 3 heads"), ({"num_heads": 8, "head_dim": 8}, "8 heads of 8"),
    ({"num_heads": 8, "rotary_dim": 3}, "3 are rotated"), ({"num_heads": 8, "conversion": "meta"}, "interleaved_to_half")])
def test_what_cannot_be_read(posenc, fields, words):
    with pytest.raises(ValueError, match=words):
        posenc.check_rows(W, W, **fields)


def test_matrices_that_are_none(posenc):
    for found, words in ((W[:, :5], "as many columns"), (W[0], "out, in"), (np.full_like(W, np.nan), "NaN")):
        with pytest.raises(ValueError, match=words):
            posenc.check_rows(W, found, num_heads=8)
