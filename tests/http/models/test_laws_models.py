"""Laws of scalings and of several axes (hypothesis)."""
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from asking import inline
from tensors import encode, encode_one

laws = settings(max_examples=40)
positions = st.integers(-2 ** 20, 2 ** 20)
scalings = st.sampled_from([
    {"type": "linear", "factor": 3}, {"type": "ntk", "factor": 2.5},
    {"type": "yarn", "factor": 16, "original_max_position_embeddings": 512},
    {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 256},
    {"type": "proportional", "partial_rotary_factor": 0.5},
    {"type": "longrope", "list": "long", "factor": 4, "original_max_position_embeddings": 64, "short_factor": [1.0] * 8,
     "long_factor": [1 + i * 1.5 for i in range(8)]}])
grids = st.lists(st.integers(1, 5), min_size=2, max_size=3)


def turn(server, x, p, **fields):
    """x turned to position p, in f64 throughout."""
    answer = server.ask("/rotate", scheme="rope", positions=[p], q=inline([x]), **fields).json()
    return np.array(answer["tensors"]["q"]["data"][0])


@laws
@given(m=positions, n=positions, shift=positions, scaling=scalings, layout=st.sampled_from(["half", "interleaved"]))
def test_scaled_scores_depend_on_the_distance(server, m, n, shift, scaling, layout):
    (q, k), fields = np.random.default_rng(3).standard_normal((2, 16)), dict(scaling=scaling, layout=layout)
    here = turn(server, q, m, **fields) @ turn(server, k, n, **fields)
    there = turn(server, q, m + shift, **fields) @ turn(server, k, n + shift, **fields)
    assert abs(here - there) < 1e-11


@laws
@given(p=positions, scaling=scalings)
def test_every_pair_has_the_attention_factor(server, p, scaling):
    answer = server.ask("/encode", scheme="rope", head_dim=16, positions=[p], scaling=scaling, dtype="f64").json()
    cos, sin = (np.array(answer["tensors"][name]["data"]) for name in ("cos", "sin"))
    np.testing.assert_allclose(np.hypot(cos, sin), answer["config"]["attention_factor"], rtol=1e-15)


@laws
@given(grid=grids, dim=st.integers(1, 6).map(lambda c: 12 * c), layout=st.sampled_from(["half", "interleaved"]))
def test_an_axis_is_its_own_encoding(server, grid, dim, layout):
    """Axial: the block of each axis is the encoding of one axis at that coordinate."""
    table = encode_one(server, scheme="sinusoidal", grid=grid, dim=dim, layout=layout)
    width, cells = dim // len(grid), np.stack(np.unravel_index(range(int(np.prod(grid))), grid))
    for axis, places in enumerate(cells):
        one = encode_one(server, scheme="sinusoidal", positions=places.tolist(), dim=width, layout=layout)
        assert np.array_equal(table[:, axis * width:(axis + 1) * width], one)


@laws
@given(grid=grids, order=st.sampled_from(["row_major", "merge"]))
def test_a_grid_is_its_list_of_positions(server, grid, order):
    grid = [2 * g for g in grid] if order == "merge" else grid
    asked = encode(server, scheme="rope", head_dim=24, grid=grid, order=order, outputs=["positions", "cos", "sin"])
    listed = encode(server, scheme="rope", head_dim=24, positions=asked["positions"].tolist(), outputs=["cos", "sin"])
    assert np.array_equal(asked["cos"], listed["cos"]) and np.array_equal(asked["sin"], listed["sin"])
    cells = {tuple(c) for c in asked["positions"].T.tolist()}
    assert cells == {tuple(c) for c in np.ndindex(*grid)}
