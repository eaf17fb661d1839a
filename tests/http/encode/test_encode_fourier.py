"""POST /encode with fourier: nerf, perceiver, gaussian."""
import random

import numpy as np
import pytest
from hypothesis import given as when, settings
from hypothesis import strategies as st

import truth.absolute as absolute
from asking import check_again, given, inline, refused
from tensors import encode_one, near, nearest_everywhere

laws = settings(max_examples=25)


def fourier(server, **fields):
    return encode_one(server, scheme="fourier", **fields)


# ---- nerf --------------------------------------------------------------------------------------------------------------


def test_nerf_by_default(server):
    """The code's: the input itself, ten octaves from 1, no pi: 21 columns."""
    table = fourier(server, positions=[0.5, -0.25, 3], dtype="f64")
    x = np.array([0.5, -0.25, 3])
    parts = [x] + [f(2.0 ** k * x) for k in range(10) for f in (np.sin, np.cos)]
    near(table, np.stack(parts, -1))
    assert np.array_equal(fourier(server, len=3), fourier(server, style="nerf", positions=[0, 1, 2]))


def test_nerf_of_points(server):
    """Three coordinates, multires 4: blocks x y z, sin x y z, cos x y z, 27 columns."""
    points = np.random.default_rng(0).uniform(-1, 1, (5, 3))
    table = fourier(server, positions=points.T.tolist(), num_freqs=4, dtype="f64")
    parts = [points] + [f(2.0 ** k * points) for k in range(4) for f in (np.sin, np.cos)]
    near(table, np.concatenate(parts, -1))


def test_the_paper_multiplies_by_pi(server):
    """And has no input columns. Whole multiples of pi are exact: sines are 0, cosines 1 or -1."""
    table = fourier(server, positions=[0, 1, 0.5, -3, 0.125, 2 ** 40 - 1], num_freqs=3, include_input=False, multiply_pi=True)
    assert table.shape == (6, 6)
    assert table[1].tolist() == [0, -1, 0, 1, 0, 1]
    assert table[2].tolist() == [1, 0, 0, -1, 0, 1]
    assert table[5].tolist() == [0, -1, 0, 1, 0, 1]


def test_linear_frequencies(server):
    """linspace(1, 2^(L-1), L)"""
    table = fourier(server, positions=[0.3], num_freqs=5, log_sampling=False, include_input=False, dtype="f64")
    near(table[0, 0::2], np.sin(0.3 * np.array([1, 4.75, 8.5, 12.25, 16])))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("parameters", [{}, dict(multiply_pi=True), dict(log_sampling=False), dict(include_input=False)])
def test_nerf_is_exact(server, parameters, dtype):
    rows = [(0, 0), (0.1, -0.7), (3, 1e-9), (2 ** 40, -12345.678), (65535, 0.5)]
    table = fourier(server, positions=[list(a) for a in zip(*rows)], num_freqs=6, dtype=dtype, **parameters)
    nearest_everywhere(table, absolute.nerf(2, 6, **parameters), rows, dtype)


# ---- perceiver ---------------------------------------------------------------------------------------------------------


def test_perceiver_by_default(server):
    """Perceiver for ImageNet (arXiv 2103.03206): 64 bands, 224 x 224, 258 columns."""
    fields = dict(style="perceiver", grid=[224, 224])
    table = fourier(server, dtype="f64", **fields)
    columns, rows = absolute.perceiver([224, 224]), absolute.perceiver_coordinates([224, 224])
    assert table.shape == (224 * 224, 258)
    some = [0, 1, 223, 224, 30000, 224 * 224 - 1]
    near(table[some], absolute.table(columns, [rows[i] for i in some]))
    assert table[0, :2].tolist() == [-1, -1] and table[-1, :2].tolist() == [1, 1]
    nearest_everywhere(fourier(server, **fields)[some][:, ::11], columns[::11], [rows[i] for i in some])


def test_perceiver_lies_dimension_by_dimension(server):
    """All bands of y, all of x, sines before cosines: f = linspace(1, res/2, bands)."""
    table = fourier(server, style="perceiver", grid=[3, 5], num_bands=2, max_resolution=[8, 20], concat_pos=False, dtype="f64")
    y, x = (a.ravel() for a in np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 5), indexing="ij"))
    angles = np.pi * np.stack([y, 4 * y, x, 10 * x], -1)
    near(table, np.hstack([np.sin(angles), np.cos(angles)]))


def test_perceiver_in_one_axis(server):
    table = fourier(server, style="perceiver", len=9, num_bands=4, dtype="f64")
    near(table, absolute.table(absolute.perceiver([9], 4), absolute.perceiver_coordinates([9])))


# ---- gaussian ----------------------------------------------------------------------------------------------------------


def test_gaussian_of_a_matrix_sent(server):
    """[cos(2 pi B x), sin(2 pi B x)]"""
    rng = np.random.default_rng(1)
    b, x = rng.standard_normal((7, 3)), rng.uniform(-1, 1, (4, 3))
    table = fourier(server, style="gaussian", num_freqs=7, positions=x.T.tolist(), b=inline(b), dtype="f64")
    near(table, np.hstack([np.cos(2 * np.pi * x @ b.T), np.sin(2 * np.pi * x @ b.T)]))
    near(table, absolute.table(absolute.gaussian(b), x))


def test_gaussian_by_default(server):
    """256 frequencies of seed 0: tensor b [256, axes], sigma 1."""
    x = np.random.default_rng(2).uniform(-1, 1, (5, 2))
    table = fourier(server, style="gaussian", positions=x.T.tolist(), dtype="f64")
    assert table.shape == (5, 512)
    near(table, absolute.table(absolute.gaussian(absolute.seeded("b", (256, 2), 0, 1.0)), x), 1e-11)


@pytest.mark.parametrize("seed,sigma", [(0, 2.5), (7, 1.0), (2 ** 40 + 3, 10.0)])
def test_gaussian_of_a_seed(server, seed, sigma):
    table = fourier(server, style="gaussian", positions=[0.1, 0.9], num_freqs=8, seed=seed, sigma=sigma, dtype="f64")
    near(table, absolute.table(absolute.gaussian(absolute.seeded("b", (8, 1), seed, sigma)), [(0.1,), (0.9,)]), 1e-11)


@laws
@when(shift=st.floats(-2, 2), seed=st.integers(0, 99))
def test_similarity_depends_on_the_difference(server, shift, seed):
    """gamma(x) . gamma(y) is a sum of cos(2 pi B (x - y)): the reason for the features (Tancik et al.)."""
    rows = fourier(server, style="gaussian", num_freqs=16, seed=seed, dtype="f64",
                   positions=[[0.25, 0.75, 0.25 + shift, 0.75 + shift], [0.5, -0.5, 0.5 - shift, -0.5 - shift]])
    assert abs(rows[0] @ rows[1] - rows[2] @ rows[3]) < 1e-11
    np.testing.assert_allclose(np.sum(rows * rows, -1), 16, atol=1e-12)


# ---- Random combinations -----------------------------------------------------------------------------------------------


def random_case(rng, axes):
    if rng.random() < 0.5:
        parameters = given(num_freqs=rng.randint(1, 8), include_input=rng.choice([None, False]),
                           log_sampling=rng.choice([None, False]), multiply_pi=rng.choice([None, True]))
        return "nerf", parameters, absolute.nerf(axes, **parameters)
    parameters = given(num_bands=rng.randint(1, 8), concat_pos=rng.choice([None, False]),
                       max_resolution=rng.choice([None, [rng.randint(2, 300) for _ in range(axes)]]))
    return "perceiver", parameters, None


@pytest.mark.parametrize("seed", range(40))
def test_random(server, seed):
    rng = random.Random(seed)
    grid = [rng.randint(2, 5) for _ in range(rng.randint(2, 3))]
    style, parameters, columns = random_case(rng, len(grid))
    request = dict(scheme="fourier", style=style, grid=grid, dtype="f64", **parameters)
    table = encode_one(server, **request)
    rows = absolute.grid_coordinates(grid) if style == "nerf" else absolute.perceiver_coordinates(grid)
    near(table, absolute.table(columns or absolute.perceiver(grid, **parameters), rows), 1e-11)
    check_again(server, request, ["grid", "dtype"], {"encoding": table})


# ---- Refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pointers,fields", [
    ("/dim", dict(len=4, dim=64)),
    ("/style", dict(len=4, style="nerv")),
    ("/num_freqs", dict(len=4, num_freqs=0)),
    ("/num_freqs", dict(len=4, num_freqs=2.5)),
    ("/num_bands", dict(len=4, style="perceiver", num_bands=0)),
    ("/num_bands", dict(len=4, style="nerf", num_bands=4)),
    ("/num_freqs", dict(len=4, style="perceiver", num_freqs=4)),
    ("/sigma", dict(len=4, style="nerf", sigma=2)),
    ("/max_resolution", dict(grid=[4, 4], style="perceiver", max_resolution=[8])),
    ("/max_resolution", dict(grid=[4, 4], style="perceiver", max_resolution=[8, 8, 8])),
    ("/max_resolution", dict(grid=[4, 4], style="perceiver", max_resolution=[8, -1])),
    ("/b", dict(positions=[[0], [1]], style="gaussian", num_freqs=2, b=[[1], [2]])),
    (("/b", "/num_freqs"), dict(positions=[0], style="gaussian", num_freqs=3, b=[[1], [2]])),
    ("/b", dict(positions=[0], style="gaussian", num_freqs=2, b=[1, 2])),
    (("/b", "/seed"), dict(positions=[0], style="gaussian", num_freqs=2, b=[[1], [2]], seed=3)),
    ("/b", dict(positions=[0], style="nerf", b=[[1]])),
    ("/positions", dict(positions=[2 ** 40 + 1])),
    ("/positions", dict(positions=[[0], [2 ** 41]])),
    ("/offset", dict(offset=2 ** 40, len=2)),
    ("/layout", dict(len=4, layout="half")),
])
def test_refused(server, pointers, fields):
    refused(server, pointers, scheme="fourier", **fields)
