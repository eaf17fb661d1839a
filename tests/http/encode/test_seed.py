"""Weights from a seed: N(0, std²), the same bytes on every machine (core/schemes/SCHEMES.md).

Value i of a tensor is std * PHI^-1((k + 1/2)/2^53) in float32, where k is the top 53 bits of splitmix64's finalizer of
(seed * 0x9E3779B97F4A7C15 xor fnv1a64(name)) + (i + 1) * 0x9E3779B97F4A7C15."""
import numpy as np
import pytest

import truth.absolute as absolute
import truth.dynamics as dynamics
from asking import refused
from tensors import encode_one


def learned(server, **fields):
    """Rows 0 … n-1 of the seeded `table`."""
    return encode_one(server, scheme="learned", **fields)


def test_the_generator_itself():
    """Published values: FNV-1a of "" and "a"; SplitMix64 from seed 0 begins E220A8397B1DCDAF."""
    assert absolute.fnv1a64("") == 0xCBF29CE484222325 and absolute.fnv1a64("a") == 0xAF63DC4C8601EC8C
    assert absolute.splitmix64(absolute.GOLDEN) == 0xE220A8397B1DCDAF
    assert absolute.splitmix64(2 * absolute.GOLDEN & absolute.WORD) == 0x6E789E6AA1B965F4


@pytest.mark.parametrize("seed", [0, 1, 42, 2 ** 32 + 1, 2 ** 52 + 12345])
def test_values(server, seed):
    table = learned(server, seed=seed, len=60, dim=7)
    assert table.dtype == np.float32
    assert table.tobytes() == absolute.seeded("table", (60, 7), seed).tobytes()


@pytest.mark.parametrize("std", [1.0, 0.5, 1e-3])
def test_std(server, std):
    assert learned(server, seed=3, std=std, len=40, dim=5).tobytes() == absolute.seeded("table", (40, 5), 3, std).tobytes()


def test_they_are_normal(server):
    """A million of them: mean, deviation, skewness, tails, and no correlation of neighbours, rows or seeds."""
    a, b = (learned(server, seed=s, std=1.0, len=1000, dim=1000).astype(float) for s in (0, 1))
    assert abs(a.mean()) < 4e-3 and abs(a.std() - 1) < 3e-3
    assert abs((a ** 3).mean()) < 1e-2 and abs((a ** 4).mean() - 3) < 3e-2
    assert abs((np.abs(a) < 1.959964).mean() - 0.95) < 1e-3
    for pair in ((a[:, 1:], a[:, :-1]), (a[1:], a[:-1]), (a, b)):
        assert abs((pair[0] * pair[1]).mean()) < 5e-3


def test_longer_tables_begin_alike(server):
    short, long = learned(server, seed=5, len=10, dim=16), learned(server, seed=5, len=1000, dim=16)
    assert long[:10].tobytes() == short.tobytes()
    assert learned(server, seed=5, offset=990, len=10, dim=16).tobytes() == long[990:].tobytes()
    assert learned(server, seed=5, len=20, dim=8).tobytes() == short.tobytes()  # only the flat index counts


def test_dtypes_are_roundings_of_the_f32(server):
    f32 = learned(server, seed=9, len=30, dim=6)
    assert np.array_equal(learned(server, seed=9, len=30, dim=6, dtype="f64"), f32.astype(float))
    assert np.array_equal(learned(server, seed=9, len=30, dim=6, dtype="f16"), f32.astype("f2"))


def test_seeds_and_names_make_a_difference(server):
    a = learned(server, seed=0, len=4, dim=8)
    assert not np.array_equal(a, learned(server, seed=1, len=4, dim=8))
    p0 = encode_one(server, scheme="recursive", seed=0, len=1, dim=8)
    assert not np.array_equal(a[0], p0[0])
    assert p0[0].tobytes() == absolute.seeded("p0", (8,)).tobytes()


def test_the_same_request_twice(server):
    fields = dict(scheme="floater", seed=77, len=20, dim=12)
    assert encode_one(server, **fields).tobytes() == encode_one(server, **fields).tobytes()


@pytest.mark.parametrize("seed,std", [(0, 0.02), (6, 0.5)])
def test_floater_of_a_seed(server, seed, std):
    """The published shapes: Linear(d+1 → d), ReLU, Linear(d+1 → d)."""
    dim = 10
    shapes = {"p0": (dim,), "w1": (dim, dim + 1), "b1": (dim,), "w2": (dim, dim + 1), "b2": (dim,)}
    weights = {name: absolute.seeded(name, shape, seed, std) for name, shape in shapes.items()}
    table = encode_one(server, scheme="floater", seed=seed, std=std, len=50, dim=dim, dtype="f64")
    np.testing.assert_allclose(table, dynamics.floater(50, **weights), rtol=0, atol=1e-11)


def test_recursive_of_a_seed(server):
    """Two layers as wide as the rows."""
    dim = 10
    shapes = {"p0": (dim,), "w1": (dim, dim), "b1": (dim,), "w2": (dim, dim), "b2": (dim,)}
    weights = {name: absolute.seeded(name, shape, 4, 0.5) for name, shape in shapes.items()}
    table = encode_one(server, scheme="recursive", seed=4, std=0.5, len=20, dim=dim, dtype="f64")
    np.testing.assert_allclose(table, dynamics.recursive(20, **weights), rtol=0, atol=1e-10)


@pytest.mark.parametrize("pointers,fields", [
    ("/seed", dict(scheme="learned", len=4, seed=-1)),
    ("/seed", dict(scheme="learned", len=4, seed=0.5)),
    ("/seed", dict(scheme="learned", len=4, seed="7")),
    ("/std", dict(scheme="learned", len=4, seed=1, std=-1)),
    ("/std", dict(scheme="learned", len=4, seed=1, std="big")),
    (("/std", "/seed"), dict(scheme="learned", len=4, table=[[1, 2]] * 4, std=1)),
    (("/seed", "/table"), dict(scheme="learned", len=4, table=[[1, 2]] * 4, seed=1)),
    ("/seed", dict(scheme="sinusoidal", len=4, seed=1)),
    ("/seed", dict(scheme="rope", len=4, seed=1)),
    (("", "/table", "/weights", "/scheme"), dict(scheme="learned", len=4)),
])
def test_refused(server, pointers, fields):
    refused(server, pointers, **fields)
