"""POST /encode with alibi: forms, slopes, masks, positions, exactness."""
import re

import numpy as np
import pytest

import truth
from tensors import encode, encode_one

FORMS = ["symmetric", "relative", "asymmetric", "key", "key_end", "key_mask"]


def bias_of(server, **fields):
    return encode_one(server, scheme="alibi", outputs=["bias"], **fields)


def slopes_of(server, num_heads, **fields):
    return encode_one(server, scheme="alibi", num_heads=num_heads, len=1, outputs=["slopes"], **fields)


def check(got, form, slopes, q, k, tolerance=1e-6, **rest):
    expected = np.stack([truth.alibi(form, float(m), q, k, **rest) for m in slopes])
    assert got.shape == expected.shape
    assert np.array_equal(np.isneginf(got), np.isneginf(expected))
    seen = np.isfinite(expected)
    np.testing.assert_allclose(got[seen], expected[seen], rtol=tolerance, atol=0)


# ---- Slopes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_heads,expected", [
    (1, [2 ** -8]), (2, [2 ** -4, 2 ** -8]), (3, [2 ** -4, 2 ** -8, 2 ** -2]),
    (6, [.25, .0625, .015625, .00390625, .5, .125]), (8, [2.0 ** -h for h in range(1, 9)]),
    (12, [.5, .25, .125, .0625, .03125, .015625, .0078125, .00390625, .7071067812, .3535533906, .1767766953, .0883883476])])
def test_published_slopes(server, num_heads, expected):
    np.testing.assert_allclose(slopes_of(server, num_heads, dtype="f64"), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("num_heads", [1, 5, 7, 16, 20, 33, 71, 112])
@pytest.mark.parametrize("bias_max", [8, 16, 5.5])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_slopes_are_the_nearest(server, num_heads, bias_max, dtype):
    got = slopes_of(server, num_heads, bias_max=bias_max, dtype=dtype)
    assert got.tolist() == [truth.nearest(m, dtype) for m in truth.alibi_slopes(num_heads, bias_max)]


def test_slopes_given(server):
    assert slopes_of(server, 3, slopes=[1, 0, -0.5]).tolist() == [1.0, 0.0, -0.5]
    got = bias_of(server, num_heads=3, len=4, slopes=[1, 0, -0.5])
    check(got, "symmetric", [1, 0, -0.5], range(4), range(4))
    assert not np.signbit(got[1]).any()


# ---- Forms and masks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mask", [{}, {"causal": True}, {"window": 3}, {"window": 1}, {"causal": True, "window": 2},
                                  {"window": 4, "window_right": 1}, {"window_right": 0}])
def test_every_form_with_every_mask(server, form, mask):
    got = bias_of(server, form=form, num_heads=6, len=9, **mask)
    check(got, form, truth.alibi_slopes(6), range(9), range(9), **mask)


@pytest.mark.parametrize("form", FORMS)
def test_padded_keys(server, form):
    key_mask = [0, 0, 1, 1, 0, 1, 1]
    got = bias_of(server, form=form, num_heads=2, len=7, key_mask=key_mask)
    check(got, form, truth.alibi_slopes(2), range(7), range(7), key_mask=key_mask)


def test_two_sides(server):
    got = bias_of(server, form="asymmetric", num_heads=2, len=5, slopes_left=[1, 2], slopes_right=[0, 0.25])
    for h, (left, right) in enumerate([(1, 0), (2, 0.25)]):
        expected = truth.alibi("asymmetric", left, range(5), range(5), slope_right=right)
        np.testing.assert_array_equal(got[h], expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fields,q,k", [
    (dict(q_len=3, k_len=7), range(4, 7), range(7)),               # decoding with a cache: the last queries
    (dict(q_len=3, k_len=7, q_offset=0), range(3), range(7)),      # cross attention
    (dict(q_len=2, k_len=5, q_offset=-4), range(-4, -2), range(5)),
    (dict(k_len=4), range(4), range(4)), (dict(q_len=4), range(4), range(4)),
    (dict(len=4, offset=100), range(100, 104), range(100, 104)),
    (dict(q_len=1, k_len=4, offset=10), range(13, 14), range(10, 14)),
    (dict(q_positions=[5, 0.5], k_positions=[0, 2, 9.25]), [5, 0.5], [0, 2, 9.25]),
    (dict(positions=[0, 10, 3]), [0, 10, 3], [0, 10, 3])])
def test_queries_and_keys_apart(server, form, fields, q, k):
    for causal in (False, True):
        got = bias_of(server, form=form, num_heads=4, causal=causal, **fields)
        check(got, form, truth.alibi_slopes(4), q, k, causal=causal)


def test_zero_is_never_negative(server):
    for form in FORMS:
        for dtype in ("f32", "f64", "f16", "bf16"):
            got = bias_of(server, form=form, num_heads=3, len=40, dtype=dtype)
            zeros = got == 0
            assert zeros.any() and not np.signbit(got[zeros]).any(), (form, dtype)
    assert re.search(rb"-0\.0[,\]]", server.ask(scheme="alibi", len=3).body) is None


def test_the_default_answer(server):
    t = encode(server, scheme="alibi", len=6)
    assert list(t) == ["bias"] and t["bias"].shape == (8, 6, 6)
    check(t["bias"], "symmetric", truth.alibi_slopes(8), range(6), range(6))


# ---- Exactness ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("num_heads", [8, 12, 20])
def test_every_value_is_the_nearest(server, dtype, num_heads):
    distances = [0, 1, 3, 17, 1023, 4097, 65535]
    got = bias_of(server, num_heads=num_heads, q_positions=[0], k_positions=distances, dtype=dtype)
    for h, m in enumerate(truth.alibi_slopes(num_heads)):
        for j, d in enumerate(distances):
            assert float(got[h, 0, j]) == truth.nearest(-m * d, dtype), (h, d)


def test_far_apart(server):
    far = [2 ** 40, -2 ** 40, 2 ** 40 - 1, 0.1]
    got = bias_of(server, num_heads=12, q_positions=[0.3], k_positions=far)
    for h, m in enumerate(truth.alibi_slopes(12)):
        for j, p in enumerate(far):
            distance = abs(truth.mpf(p) - truth.mpf(0.3))
            assert float(got[h, 0, j]) == truth.nearest(-m * distance, "f32"), (h, p)


def test_a_wide_map_is_exact(server):
    """The fast path against the exact product, over a map wider than any tile."""
    n = 3000
    got = bias_of(server, num_heads=12, q_len=2, k_len=n)
    for h, m in enumerate(truth.alibi_slopes(12)):
        if h in (0, 8, 11):
            row = [truth.nearest(-m * (n - 1 - j), "f32") for j in range(0, n, 7)]
            assert got[h, 1, ::7].tolist() == row
        assert np.array_equal(got[h, 0, :-1], got[h, 1, 1:])


def test_packed_sequences_do_not_see_each_other(server):
    """lens [3, 4]: two maps on the diagonal, -inf beside them; schemes of distances and of pairs alike."""
    for fields in ({"scheme": "alibi"}, {"scheme": "alibi", "form": "key"}, {"scheme": "kerple"}, {"scheme": "fire", "seed": 1}):
        whole = encode_one(server, **fields, num_heads=2, lens=[3, 4], causal=True, outputs=["bias"])
        for first, n in ((0, 3), (3, 4)):
            one = encode_one(server, **fields, num_heads=2, len=n, causal=True, outputs=["bias"])
            assert np.array_equal(whole[:, first:first + n, first:first + n], one), fields
        assert np.all(np.isneginf(whole[:, :3, 3:])) and np.all(np.isneginf(whole[:, 3:, :3])), fields
