"""Laws rather than samples: the defining properties of positional encodings, on randomly generated requests."""
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensors import encode, encode_one

# A request takes a millisecond; the server outlives the examples, which is what a function-scoped fixture is warned about.
laws = settings(max_examples=40)
positions = st.integers(-2 ** 20, 2 ** 20)
layouts = st.sampled_from(["interleaved", "half"])
widths = st.integers(1, 32).map(lambda c: 2 * c)


def vector(n, seed):
    return np.random.default_rng(seed).standard_normal(n)


def turn(server, x, p, **fields):
    """x turned to position p, in f64 throughout."""
    q = {"dtype": "f64", "shape": [1, len(x)], "data": x.tolist()}
    answer = server.ask("/rotate", scheme="rope", positions=[p], q=q, **fields).json()
    return np.array(answer["tensors"]["q"]["data"][0])


@laws
@given(p=positions, n=widths, layout=layouts, seed=st.integers(0, 99))
def test_rotation_keeps_norms(server, p, n, layout, seed):
    x = vector(n, seed)
    assert abs(np.linalg.norm(turn(server, x, p, layout=layout)) - np.linalg.norm(x)) < 1e-13 * max(1, np.linalg.norm(x))


@laws
@given(a=positions, b=positions, n=widths, layout=layouts)
def test_rotations_add(server, a, b, n, layout):
    """R(a) R(b) = R(a + b)"""
    x = vector(n, 1)
    twice = turn(server, turn(server, x, b, layout=layout), a, layout=layout)
    np.testing.assert_allclose(twice, turn(server, x, a + b, layout=layout), rtol=0, atol=1e-13)


@laws
@given(p=positions, n=widths, layout=layouts)
def test_the_inverse_is_the_negative_position(server, p, n, layout):
    x = vector(n, 2)
    np.testing.assert_array_equal(turn(server, x, p, layout=layout, direction=-1), turn(server, x, -p, layout=layout))


@laws
@given(m=positions, n=positions, shift=positions, width=widths, layout=layouts)
def test_scores_depend_on_the_distance(server, m, n, shift, width, layout):
    """<R(m) q, R(n) k> = <R(m+s) q, R(n+s) k>"""
    q, k = vector(width, 3), vector(width, 4)
    here = turn(server, q, m, layout=layout) @ turn(server, k, n, layout=layout)
    there = turn(server, q, m + shift, layout=layout) @ turn(server, k, n + shift, layout=layout)
    assert abs(here - there) < 1e-12 * width


@laws
@given(k=st.integers(-1000, 1000), start=positions, dim=st.integers(1, 32).map(lambda c: 2 * c))
def test_a_shift_of_sinusoids_is_a_fixed_linear_map(server, k, start, dim):
    """PE(p + k) = M(k) PE(p), M the same for every p: blocks [[cos, sin], [-sin, cos]] at the angle k·w."""
    here = encode_one(server, scheme="sinusoidal", dim=dim, offset=start, len=9, dtype="f64")
    there = encode_one(server, scheme="sinusoidal", dim=dim, offset=start + k, len=9, dtype="f64")
    step = encode_one(server, scheme="sinusoidal", dim=dim, positions=[k], dtype="f64")[0]
    sin, cos = step[0::2], step[1::2]
    np.testing.assert_allclose(there[:, 0::2], here[:, 0::2] * cos + here[:, 1::2] * sin, rtol=0, atol=1e-13)
    np.testing.assert_allclose(there[:, 1::2], here[:, 1::2] * cos - here[:, 0::2] * sin, rtol=0, atol=1e-13)


@laws
@given(a=positions, b=positions, dim=st.integers(1, 32).map(lambda c: 2 * c))
def test_similarity_of_sinusoids_depends_on_the_distance(server, a, b, dim):
    rows = encode_one(server, scheme="sinusoidal", dim=dim, positions=[a, b, a + 7, b + 7], dtype="f64")
    assert abs(rows[0] @ rows[1] - rows[2] @ rows[3]) < 1e-12 * dim


@laws
@given(num_heads=st.integers(1, 20), n=st.integers(2, 40), offset=positions,
       form=st.sampled_from(["symmetric", "relative", "asymmetric"]))
def test_a_bias_depends_on_the_distance_only(server, num_heads, n, offset, form):
    fields = dict(scheme="alibi", num_heads=num_heads, form=form, outputs=["bias"])
    bias = encode_one(server, len=n, **fields)
    assert np.array_equal(bias[:, 1:, 1:], bias[:, :-1, :-1])  # Toeplitz
    assert np.array_equal(encode_one(server, len=n, offset=offset, **fields), bias)
    assert np.array_equal(np.diagonal(bias, axis1=1, axis2=2), np.zeros((num_heads, n)))


@laws
@given(num_heads=st.integers(1, 8), n=st.integers(1, 30))
def test_keyed_forms_differ_by_a_constant_per_row(server, num_heads, n):
    """Under a causal mask all forms give the same attention: a row's softmax does not see a constant."""
    def rows(form):
        return encode_one(server, scheme="alibi", num_heads=num_heads, form=form, len=n, causal=True, outputs=["bias"],
                          dtype="f64")
    relative = rows("relative")
    seen = np.isfinite(relative)
    for form in ("key", "key_end", "key_mask"):
        difference = np.where(seen, rows(form) - np.where(seen, relative, 0), np.nan)
        assert np.nanmax(np.nanmax(difference, -1) - np.nanmin(difference, -1)) < 1e-12


@laws
@given(first=positions, n=st.integers(1, 200), cut=st.integers(0, 199), dim=st.integers(1, 64),
       dtype=st.sampled_from(["f32", "f64", "f16", "bf16"]))
def test_a_row_knows_nothing_of_the_others(server, first, n, cut, dim, dtype):
    """A part of a sequence is that part of its table, to the bit."""
    cut = cut % n
    whole = encode_one(server, scheme="sinusoidal", dim=dim, offset=first, len=n, dtype=dtype)
    part = encode_one(server, scheme="sinusoidal", dim=dim, offset=first + cut, len=n - cut, dtype=dtype)
    alone = encode_one(server, scheme="sinusoidal", dim=dim, positions=[first + cut, 0.5], dtype=dtype)
    assert whole[cut:].tobytes() == part.tobytes()
    assert whole[cut].tobytes() == alone[0].tobytes()


@laws
@given(p=st.lists(st.floats(-2 ** 40, 2 ** 40), min_size=1, max_size=8), head_dim=widths)
def test_every_pair_is_a_point_of_the_circle(server, p, head_dim):
    t = encode(server, scheme="rope", head_dim=head_dim, positions=p, dtype="f64")
    np.testing.assert_allclose(t["cos"] ** 2 + t["sin"] ** 2, 1, rtol=0, atol=1e-15)
