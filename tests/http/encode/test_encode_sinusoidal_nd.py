"""POST /encode with sinusoidal over several axes: every style, where libraries disagree, exactness."""
import random

import numpy as np
import pytest
from hypothesis import given as when, settings
from hypothesis import strategies as st

import truth.absolute as absolute
from asking import check_again, given, refused
from tensors import encode_one, near, nearest_everywhere

laws = settings(max_examples=25)
sizes = st.integers(1, 6)


def sinusoid(server, **fields):
    return encode_one(server, scheme="sinusoidal", **fields)


# ---- Defaults ----------------------------------------------------------------------------------------------------------


def test_axes_are_concatenated_by_default(server):
    table = sinusoid(server, grid=[3, 4], dtype="f64")
    assert table.shape == (12, 512)
    near(table, absolute.table(absolute.axial(512, 2), absolute.grid_coordinates([3, 4])))
    config = server.ask(scheme="sinusoidal", grid=[3, 4]).json()["config"]
    assert config["style"] == "axial" and config["axes_dim"] == [256, 256] and config["axis_order"] == [0, 1]


@pytest.mark.parametrize("dim,axes,widths", [(512, 3, [172, 170, 170]), (16, 3, [8, 4, 4]), (10, 2, [6, 4]), (8, 4, [2] * 4)])
def test_the_rest_goes_to_the_first(server, dim, axes, widths):
    assert absolute.default_axes_dim(dim, axes) == widths
    grid = [3, 2, 4, 2][:axes]
    assert server.ask(scheme="sinusoidal", dim=dim, grid=grid).json()["config"]["axes_dim"] == widths
    expected = absolute.table(absolute.axial(dim, axes), absolute.grid_coordinates(grid))
    near(sinusoid(server, dim=dim, grid=grid, dtype="f64"), expected)


def test_detr_by_default(server):
    """y then x, positions from 1, channels first."""
    table = sinusoid(server, style="detr", grid=[3, 5], dtype="f64")
    assert table.shape == (512, 3, 5)
    expected = absolute.table(absolute.detr(512), absolute.detr_coordinates([3, 5]))
    near(table, expected.T.reshape(512, 3, 5))
    assert abs(table[0, 0, 0] - np.sin(1)) < 1e-15 and abs(table[256, 2, 4] - np.sin(5)) < 1e-15


def test_detr_as_the_model_builds_it(server):
    """256 channels, normalised to 2 pi with 1e-6."""
    fields = dict(style="detr", dim=256, normalize=True, grid=[25, 34], channels_first=False)
    table = sinusoid(server, dtype="f64", **fields)
    coordinates = absolute.detr_coordinates([25, 34], normalize=True)
    near(table, absolute.table(absolute.detr(256), coordinates))
    rows = [0, 1, 33, 34, 849]
    some = sinusoid(server, **fields)[rows][:, ::7]
    nearest_everywhere(some, absolute.detr(256)[::7], [coordinates[r] for r in rows])


# ---- Where libraries disagree ------------------------------------------------------------------------------------------


@laws
@when(h=sizes, w=sizes, quarter=st.integers(1, 9))
def test_orders_of_the_blocks(server, h, w, quarter):
    """Of one grid: V-JEPA 2 row first, MAE column first, timm sines before cosines; the values are the same to the bit."""
    def table(style, **fields):
        return sinusoid(server, style=style, dim=4 * quarter, grid=[h, w], **fields)
    sin_h, cos_h, sin_w, cos_w = np.split(table("vjepa"), 4, 1)
    assert np.array_equal(table("mae"), np.hstack([sin_w, cos_w, sin_h, cos_h]))
    assert np.array_equal(table("timm"), np.hstack([sin_h, sin_w, cos_h, cos_w]))
    assert np.array_equal(table("axial", layout="half"), np.hstack([sin_h, cos_h, sin_w, cos_w]))
    assert np.array_equal(table("multidim")[:, 0:2 * quarter:2], sin_h)
    assert np.array_equal(table("multidim")[:, 2 * quarter + 1::2], cos_w)


@laws
@when(h=sizes, w=sizes, quarter=st.integers(1, 9))
def test_detr_stands_one_further(server, h, w, quarter):
    """Without normalize DETR's table is the interleaved one of positions from 1."""
    detr = sinusoid(server, style="detr", dim=4 * quarter, grid=[h, w], channels_first=False)
    rows, cols = np.indices((h, w)).reshape(2, -1) + 1
    assert np.array_equal(detr, sinusoid(server, dim=4 * quarter, positions=[rows.tolist(), cols.tolist()]))


def test_odd_widths(server):
    """One axis: five columns at position 1 by three rules."""
    def row(odd, **fields):
        return sinusoid(server, dim=5, positions=[1], odd=odd, dtype="f64", **fields)[0]
    w = 10000.0 ** (-2 * np.arange(3) / 5)  # paper: the exponent's denominator is odd, too
    near(row("paper"), np.array([np.sin(1), np.cos(1), np.sin(w[1]), np.cos(w[1]), np.sin(w[2])]))
    near(row("paper", layout="half"), np.concatenate([np.sin(w), np.cos(w[:2])]))
    near(row("pad"), np.array([np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01), 0]))
    near(row("pad", freq_shift=1), np.array([np.sin(1), np.cos(1), np.sin(1e-4), np.cos(1e-4), 0]))
    third = 10000.0 ** (-1 / 3)
    near(row("truncate"), np.array([np.sin(1), np.cos(1), np.sin(third), np.cos(third), np.sin(third ** 2)]))


def test_multidim_cuts_its_last_block(server):
    """tatp22: 7 columns over 3 axes are blocks of 4, the last never reached."""
    table = sinusoid(server, style="multidim", dim=7, grid=[2, 3, 2], dtype="f64")
    near(table, absolute.table(absolute.multidim(7, 3), absolute.grid_coordinates([2, 3, 2])))
    assert np.array_equal(table[0], table[1])  # the last axis has no column


def test_vjepa_in_three_axes(server):
    table = sinusoid(server, style="vjepa", dim=32, grid=[3, 2, 4], dtype="f64")
    near(table, absolute.table(absolute.vjepa(32, 3), absolute.grid_coordinates([3, 2, 4])))
    assert np.array_equal(table[:8, :16], np.tile(table[0, :16], (8, 1)))  # a frame shares its first half


# ---- Parameters, positions, form ---------------------------------------------------------------------------------------


def test_axis_order_moves_blocks(server):
    """axes_dim[k] is axis k's, wherever its block stands."""
    plain = sinusoid(server, dim=16, grid=[3, 4], axes_dim=[6, 10])
    turned = sinusoid(server, dim=16, grid=[3, 4], axes_dim=[6, 10], axis_order=[1, 0])
    assert np.array_equal(turned, np.hstack([plain[:, 6:], plain[:, :6]]))


def test_a_grid_is_its_positions(server):
    grid = [2, 3, 4]
    listed = [axis.ravel().tolist() for axis in np.indices(grid)]
    for style in ("axial", "multidim", "vjepa"):
        assert sinusoid(server, style=style, dim=24, grid=grid).tobytes() == \
            sinusoid(server, style=style, dim=24, positions=listed).tobytes()


@pytest.mark.parametrize("grid", [[3, 4], [2, 3, 4]])
def test_channels_first(server, grid):
    last = sinusoid(server, dim=24, grid=grid)
    first = sinusoid(server, dim=24, grid=grid, channels_first=True)
    assert first.shape == (24, *grid) and np.array_equal(first.reshape(24, -1), last.T)
    detr = sinusoid(server, style="detr", dim=24, grid=[3, 4], channels_first=False)
    assert np.array_equal(detr.T.reshape(24, 3, 4), sinusoid(server, style="detr", dim=24, grid=[3, 4]))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("style", ["axial", "mae", "timm", "multidim", "vjepa"])
def test_every_style_is_exact(server, style, dtype):
    rows = [(0, 0), (1, 2), (-3, 0.1), (2 ** 40, 77), (12345678901, -2 ** 40), (1e-9, 4096)]
    table = sinusoid(server, style=style, dim=16, positions=[list(axis) for axis in zip(*rows)], dtype=dtype)
    nearest_everywhere(table, absolute.STYLES[style](16, 2), rows, dtype)


def random_case(rng):
    """Style, axes, dim, its parameters."""
    style = rng.choice(list(absolute.STYLES))
    axes = {"axial": rng.randint(2, 4), "multidim": rng.randint(2, 4), "vjepa": rng.choice([2, 3])}.get(style, 2)
    dim = {"axial": 2 * rng.randint(axes, 12), "multidim": rng.randint(1, 25)}.get(style, 8 * rng.randint(1, 4))
    base = rng.choice([None, 500.0, 0.5])
    if style == "detr":
        return style, axes, dim, given(temperature=rng.choice([None, 20.0]))
    if style != "axial":
        return style, axes, dim, given(base=base)
    widths = None if rng.random() < 0.5 else [2] * (axes - 1) + [dim - 2 * (axes - 1)]
    order = None if rng.random() < 0.5 else rng.sample(range(axes), axes)
    return style, axes, dim, given(base=base, axes_dim=widths, axis_order=order, layout=rng.choice([None, "half"]),
                                   flip_sin_to_cos=rng.choice([None, True]), angle_scale=rng.choice([None, -2.5]))


@pytest.mark.parametrize("seed", range(60))
def test_random(server, seed):
    rng = random.Random(seed)
    style, axes, dim, parameters = random_case(rng)
    grid = [rng.randint(1, 5) for _ in range(axes)]
    scaled = given(normalize=rng.choice([None, True])) if style == "detr" else {}
    if scaled and rng.random() < 0.5:
        scaled["angle_scale"] = 3.5
    request = dict(scheme="sinusoidal", style=style, dim=dim, grid=grid, dtype="f64", channels_first=False, **parameters,
                   **scaled)
    table = encode_one(server, **request)
    rows = absolute.detr_coordinates(grid, **scaled) if style == "detr" else absolute.grid_coordinates(grid)
    near(table, absolute.table(absolute.STYLES[style](dim, axes, **parameters), rows), 1e-11)
    check_again(server, request, ["grid", "dtype", "channels_first"], {"encoding": table})


# ---- Refusals ----------------------------------------------------------------------------------------------------------

RANK = ("/grid", "/positions", "/style")


@pytest.mark.parametrize("pointers,fields", [
    (("/dim", "/style"), dict(style="mae", dim=10, grid=[2, 2])),
    (("/dim", "/style"), dict(style="timm", dim=6, grid=[2, 2])),
    (("/dim", "/style"), dict(style="detr", dim=10, grid=[2, 2])),
    (("/dim", "/style"), dict(style="detr", dim=7, grid=[2, 2])),
    (("/dim", "/style"), dict(style="vjepa", dim=6, grid=[2, 2])),
    (("/dim", "/style"), dict(style="vjepa", dim=12, grid=[2, 2, 2])),
    (RANK, dict(style="mae", dim=16, grid=[2, 2, 2])),
    (RANK, dict(style="timm", dim=16, grid=[2, 2, 2])),
    (RANK, dict(style="detr", dim=16, grid=[2, 2, 2])),
    (RANK, dict(style="vjepa", dim=16, grid=[2, 2, 2, 2])),
    (RANK, dict(style="mae", dim=16, positions=[[0], [0], [0]])),
    ("/style", dict(style="detre", dim=16, grid=[2, 2])),
    ("/axes_dim", dict(dim=16, grid=[2, 2], axes_dim=[16])),
    ("/axes_dim", dict(dim=16, grid=[2, 2], axes_dim=[4, 4, 8])),
    (("/axes_dim", "/dim"), dict(dim=16, grid=[2, 2], axes_dim=[8, 10])),
    ("/axes_dim", dict(dim=16, grid=[2, 2], axes_dim=[-4, 20])),
    ("/axis_order", dict(dim=16, grid=[2, 2], axis_order=[0])),
    ("/axis_order", dict(dim=16, grid=[2, 2], axis_order=[0, 0])),
    ("/axis_order", dict(dim=16, grid=[2, 2], axis_order=[1, 2])),
    ("/grid", dict(dim=16, grid=[2, 0])),
    ("/grid", dict(dim=16, grid=[])),
    (("/grid", ""), dict(dim=16, grid=[2 ** 41, 1])),
    ("/positions", dict(dim=16, positions=[[0, 1], [0, 2 ** 40 + 1]])),
    ("/positions", dict(dim=16, positions=[[0, 1], [0]])),
    (("/grid", "/len"), dict(dim=16, grid=[2, 2], len=4)),
    ("/temperature", dict(style="axial", dim=16, grid=[2, 2], temperature=100)),
    ("/axes_dim", dict(style="mae", dim=16, grid=[2, 2], axes_dim=[8, 8])),
    (("/angle_scale", "/normalize"), dict(style="detr", dim=16, grid=[2, 2], angle_scale=3.0)),
    ("/channels_first", dict(dim=16, len=4, channels_first=True)),
])
def test_refused(server, pointers, fields):
    refused(server, pointers, scheme="sinusoidal", **fields)
