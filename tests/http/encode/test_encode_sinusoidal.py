"""POST /encode with sinusoidal in one axis: every parameter, odd widths, exactness."""
import itertools

import numpy as np
import pytest

import truth
from tensors import encode_one


def nearest_everywhere(table, positions, columns, dtype="f32"):
    for i, p in enumerate(positions):
        for j, column in enumerate(columns):
            expected = truth.nearest(truth.wave(column, p), dtype)
            assert float(table[i, j]) == expected, (p, j, float(table[i, j]), expected)


def test_a_million_positions_out_is_correctly_rounded(server):
    table = encode_one(server, scheme="sinusoidal", dim=512, positions=[1048576])
    nearest_everywhere(table, [1048576], truth.sinusoidal_columns(512))


def test_reference_values(server):
    row = encode_one(server, scheme="sinusoidal", dim=512, positions=[1], dtype="f64")[0]
    expected = [0.841470984808, 0.540302305868, 0.821856190018, 0.569695008693, 0.000103663292658, 0.999999994627]
    np.testing.assert_allclose(row[[0, 1, 2, 3, 510, 511]], expected, rtol=0, atol=6e-13)
    five = encode_one(server, scheme="sinusoidal", dim=5, positions=[1], dtype="f64")[0]
    np.testing.assert_allclose(five, [0.841470985, 0.540302306, 0.025116223, 0.999684538, 0.000630957], rtol=0, atol=6e-10)


def test_defaults(server):
    config = server.ask(scheme="sinusoidal", len=2).json()["config"]
    assert config == {"scheme": "sinusoidal", "dim": 512, "base": 10000.0, "layout": "interleaved", "freq_shift": 0.0,
                      "odd": "paper", "flip_sin_to_cos": False, "angle_scale": 1.0, "arith": "exact"}


PARAMETERS = [dict(layout=layout, freq_shift=shift, odd=odd, flip_sin_to_cos=flip)
              for layout, shift, odd, flip in itertools.product(["interleaved", "half"], [0, 1, 0.5], ["paper", "pad", "truncate"],
                                                                [False, True])]


@pytest.mark.parametrize("dim", [6, 7, 8, 9])
def test_every_combination(server, dim):
    positions = [0, 1, 2, -5, 0.75, 1000]
    for parameters in PARAMETERS:
        table = encode_one(server, scheme="sinusoidal", dim=dim, positions=positions, dtype="f64", **parameters)
        expected = truth.sinusoidal(positions, dim, **parameters)
        np.testing.assert_allclose(table, expected, rtol=0, atol=1e-12, err_msg=str((dim, parameters)))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_smallest_widths(server, dim):
    for odd in ("paper", "pad", "truncate"):
        for layout in ("interleaved", "half"):
            table = encode_one(server, scheme="sinusoidal", dim=dim, len=4, odd=odd, layout=layout)
            expected = truth.sinusoidal(range(4), dim, odd=odd, layout=layout)
            assert table.shape == (4, dim)
            np.testing.assert_allclose(table, expected, rtol=0, atol=1e-7)


def test_one_frequency_with_a_shift(server):
    """tensor2tensor's rule, where others divide by zero."""
    table = encode_one(server, scheme="sinusoidal", dim=2, len=3, freq_shift=1)
    np.testing.assert_allclose(table, np.stack([np.sin(np.arange(3.0)), np.cos(np.arange(3.0))], -1), rtol=0, atol=1e-7)


@pytest.mark.parametrize("parameters", [dict(base=100.0), dict(base=2.5, layout="half"), dict(angle_scale=1000.0),
                                        dict(angle_scale=-0.5, flip_sin_to_cos=True), dict(base=500000, freq_shift=1)])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_every_parameter_is_exact(server, parameters, dtype):
    positions = [0, 3, -17, 4097, 2 ** 31 + 7, 0.1]
    table = encode_one(server, scheme="sinusoidal", dim=24, positions=positions, dtype=dtype, **parameters)
    nearest_everywhere(table, positions, truth.sinusoidal_columns(24, **parameters), dtype)


def test_far_positions_are_exact(server):
    positions = [2 ** 40, -2 ** 40, 2 ** 39 + 12345, 1099511627775]
    table = encode_one(server, scheme="sinusoidal", dim=64, positions=positions)
    nearest_everywhere(table, positions, truth.sinusoidal_columns(64))


def test_a_long_run_is_exact(server):
    """Recurrences must not drift: rows all along a run of a hundred thousand."""
    start, n = 123456789, 100_000
    table = encode_one(server, scheme="sinusoidal", dim=16, offset=start, len=n)
    rows = [0, 1, 15, 16, 17, 31, 32, 33, 1000, 54321, n - 2, n - 1]
    nearest_everywhere(table[rows], [start + r for r in rows], truth.sinusoidal_columns(16))
    expected = truth.sinusoidal(np.arange(start, start + n), 16)
    np.testing.assert_allclose(table, expected, rtol=0, atol=5e-7)  # float64 angles are off by 1e-7 out there


def test_none_is_zero(server):
    table = encode_one(server, scheme="none", len=5, dim=7)
    assert table.shape == (5, 7) and not table.any() and not np.signbit(table).any()
