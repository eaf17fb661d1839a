"""rope over several axes: the order of expanded tables, and /rotate in every layout."""
import random

import numpy as np
import pytest
from hypothesis import given as when, settings
from hypothesis import strategies as st

import truth.rotary as rotary
from asking import check_again, given, inline, refused
from tensors import encode, from_json, near

laws = settings(max_examples=25)
TURNS = ["interleaved", "half", "half_per_axis", "interleaved_to_half"]


def turned(server, x, **fields):
    """x through /rotate in f64."""
    return from_json(server.ask("/rotate", scheme="rope", q=inline(x), **fields))["q"]


# ---- Layouts, rotation -------------------------------------------------------------------------------------------------

BLOCKS = {"head_dim": 20, "axes_dim": [4, 6, 10], "grid": [2, 2, 3]}


@pytest.mark.parametrize("layout", [*TURNS, "vjepa2"])
def test_layouts(server, layout):
    """The order of expanded tables, and the rotation of q and k."""
    channels, rows = rotary.axial(20, 3, BLOCKS["axes_dim"]), rotary.coordinates(BLOCKS["grid"])
    cos, sin = rotary.tables(channels, rows)
    expanded = encode(server, scheme="rope", layout=layout, form="expanded", dtype="f64", **BLOCKS)
    near(expanded["cos"], rotary.expand(cos, layout, [2, 3, 5]))
    near(expanded["sin"], rotary.expand(sin, layout, [2, 3, 5]))
    q, k = np.random.default_rng(0).standard_normal((2, 2, 3, 12, 20))
    answer = from_json(server.ask("/rotate", scheme="rope", layout=layout, q=inline(q), k=inline(k), **BLOCKS))
    for name, x in (("q", q), ("k", k)):
        near(answer[name], rotary.rotate(x, cos, sin, layout, [2, 3, 5]))


def test_vjepa2_as_published(server):
    """Three blocks of 2*((head_dim//3)//2), each turned on its own, the rest passes."""
    grid, head_dim = [2, 3, 4], 64
    width = 2 * ((head_dim // 3) // 2)
    cos, sin = rotary.tables(rotary.axial(3 * width, 3, [width] * 3), rotary.coordinates(grid))
    x = np.random.default_rng(1).standard_normal((24, head_dim))
    fields = dict(head_dim=head_dim, rotary_dim=3 * width, axes_dim=[width] * 3, layout="vjepa2", grid=grid)
    got = turned(server, x, **fields)
    near(got, rotary.rotate(x, cos, sin, "vjepa2", [width // 2] * 3))
    assert np.array_equal(got[:, 60:], x[:, 60:])
    assert np.abs(np.linalg.norm(got, axis=-1) / np.linalg.norm(x, axis=-1) - 1).max() > 1e-3  # the bug that was kept


def test_interleaved_to_half_permutes_the_interleaved(server):
    x = np.random.default_rng(2).standard_normal((12, 20))
    plain = turned(server, x, layout="interleaved", **BLOCKS)
    assert np.array_equal(turned(server, x, layout="interleaved_to_half", **BLOCKS), np.hstack([plain[:, 0::2], plain[:, 1::2]]))


@laws
@when(grid=st.lists(st.integers(1, 4), min_size=2, max_size=3), layout=st.sampled_from(TURNS), seed=st.integers(0, 99))
def test_rotation_keeps_norms(server, grid, layout, seed):
    x = np.random.default_rng(seed).standard_normal((int(np.prod(grid)), 24))
    near(np.linalg.norm(turned(server, x, grid=grid, layout=layout), axis=-1), np.linalg.norm(x, axis=-1))


points = st.tuples(*[st.integers(-1000, 1000)] * 3)


@laws
@when(m=points, n=points, shift=points, layout=st.sampled_from(TURNS),
      table=st.sampled_from([dict(), dict(axes_dim=[4, 8, 12]), dict(channels="mrope", mrope_section=[2, 4, 6])]))
def test_scores_depend_on_the_distance(server, m, n, shift, layout, table):
    """<R(m) q, R(n) k> = <R(m+s) q, R(n+s) k>, s a shift on three axes."""
    q, k = np.random.default_rng(3).standard_normal((2, 24))
    rows = [m, n, tuple(np.add(m, shift).tolist()), tuple(np.add(n, shift).tolist())]
    out = turned(server, np.stack([q, k, q, k]), positions=[list(axis) for axis in zip(*rows)], layout=layout, **table)
    assert abs(out[0] @ out[1] - out[2] @ out[3]) < 1e-11


# ---- Random combinations -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_random(server, seed):
    rng = random.Random(seed)
    axes, layout = rng.randint(2, 4), rng.choice([None, *TURNS, "vjepa2"])
    grid, widths = [rng.randint(1, 4) for _ in range(axes)], [2 * rng.randint(1, 5) for _ in range(axes)]
    positions = [[rng.choice([rng.randint(-99, 99), rng.uniform(-9, 9)]) for _ in range(4)] for _ in range(axes)]
    base, order = rng.choice([None, 256.0]), rng.choice([None, rng.sample(range(axes), axes)])
    coords = rng.choice([None, "one_based", "normalized", "centered"])
    sequence = {"positions": positions} if coords is None else {"grid": grid}
    width, direction = sum(widths), rng.choice([None, -1])
    request = given(scheme="rope", head_dim=width, axes_dim=widths, axis_order=order, base=base, layout=layout, coords=coords,
                    direction=direction, form="expanded", dtype="f64", **sequence)
    rows = list(zip(*positions)) if coords is None else rotary.coordinates(grid, coords)
    cos, sin = rotary.tables(rotary.axial(width, axes, widths, order, base or 10000.0), rows, direction or 1)
    blocks = [widths[axis] // 2 for axis in order or range(axes)]
    tables = encode(server, **request)
    near(tables["cos"], rotary.expand(cos, layout or "interleaved", blocks), err_msg=str(request))
    near(tables["sin"], rotary.expand(sin, layout or "interleaved", blocks), err_msg=str(request))
    check_again(server, request, ["positions", "grid", "dtype"], tables)


# ---- Refusals ----------------------------------------------------------------------------------------------------------


def test_q_must_fit_the_grid(server):
    q = np.zeros((5, 8)).tolist()
    refused(server, ("/q", "/grid"), path="/rotate", scheme="rope", grid=[2, 3], q=q)
    refused(server, ("/q", "/positions"), path="/rotate", scheme="rope", positions=[[0] * 4, [0] * 4], q=q)
    refused(server, ("/q", "/axes_dim", "/head_dim"), path="/rotate", scheme="rope", grid=[5, 1], axes_dim=[8, 8], q=q)
