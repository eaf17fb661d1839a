"""POST /encode with integer and binary: defaults, every parameter, exactness, laws, refusals."""
import random

import numpy as np
import pytest
from hypothesis import given as when, settings
from hypothesis import strategies as st

import truth
import truth.absolute as absolute
from asking import check_again, given, refused
from tensors import encode_one

laws = settings(max_examples=30)

# ---- integer -----------------------------------------------------------------------------------------------------------


def integer(server, **fields):
    return encode_one(server, scheme="integer", **fields)


def test_the_position_in_every_column(server):
    table = integer(server, len=5)
    assert table.dtype == np.float32 and table.shape == (5, 512)
    assert np.array_equal(table, np.tile(np.arange(5.0)[:, None], 512))
    assert not np.signbit(table).any()


def test_normalized_by_the_length(server):
    """Seed 000's 1/N: in [0, 1), or up to 1; a single position is 0 under length_minus_one."""
    assert integer(server, len=4, dim=1, normalize="length").ravel().tolist() == [0, 0.25, 0.5, 0.75]
    assert integer(server, len=5, dim=1, normalize="length_minus_one").ravel().tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert integer(server, len=1, dim=3, normalize="length_minus_one").tolist() == [[0, 0, 0]]
    assert integer(server, positions=[7], dim=2, normalize="length_minus_one").tolist() == [[0, 0]]
    assert integer(server, positions=[7], dim=2, normalize="length").tolist() == [[7, 7]]


def test_the_length_is_the_request_s(server):
    """N counts the rows, wherever they stand."""
    assert integer(server, len=4, offset=8, dim=1, normalize="length").ravel().tolist() == [2, 2.25, 2.5, 2.75]
    assert integer(server, positions=[9, -3, 0.5], dim=1, normalize="length").ravel().tolist() == \
        [3, -1, truth.nearest(absolute.mpf(0.5) / 3, "f32")]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("normalize", ["none", "length", "length_minus_one"])
def test_integer_is_rounded_once(server, dtype, normalize):
    positions = [0, 1, 2, -7, 0.1, 4099, 33333.25]
    for pe_scale in (1.0, 0.3, -2.5):
        table = integer(server, positions=positions, dim=2, dtype=dtype, normalize=normalize, pe_scale=pe_scale)
        expected = absolute.integer(positions, normalize, pe_scale)
        for i in range(len(positions)):
            assert table[i].tolist() == [truth.nearest(expected[i], dtype)] * 2, (positions[i], pe_scale)


def test_far_integers_are_exact(server):
    far = [2 ** 40, -2 ** 40, 2 ** 40 - 1, 2 ** 39 + 2 ** 15 + 1]
    assert integer(server, positions=far, dim=1, dtype="f64").ravel().tolist() == far
    assert integer(server, positions=far, dim=1).ravel().tolist() == [truth.nearest(p, "f32") for p in far]


def test_seed_000_s_counter_example(server):
    """Under normalisation a position has another code in another length; without, it has not."""
    def row(n, normalize):
        return integer(server, len=n, dim=4, normalize=normalize)[3].tolist()
    assert row(10, "none") == row(20, "none")
    assert row(10, "length") != row(20, "length")


@pytest.mark.parametrize("seed", range(25))
def test_random_integer(server, seed):
    rng = random.Random(seed)
    positions = [rng.choice([rng.randint(-10 ** 6, 10 ** 6), rng.uniform(-9, 9)]) for _ in range(rng.randint(1, 6))]
    parameters = given(normalize=rng.choice([None, "none", "length", "length_minus_one"]), pe_scale=rng.choice([None, 0.1, -3]))
    request = dict(scheme="integer", dim=rng.randint(1, 9), positions=positions, dtype="f64", **parameters)
    table = encode_one(server, **request)
    expected = np.array([float(v) for v in absolute.integer(positions, **parameters)])
    np.testing.assert_allclose(table, np.tile(expected[:, None], request["dim"]), rtol=3e-16, err_msg=str(request))
    check_again(server, request, ["positions", "dtype"], {"encoding": table})


# ---- binary ------------------------------------------------------------------------------------------------------------


def binary(server, **fields):
    return encode_one(server, scheme="binary", **fields)


def test_seed_000_s_252(server):
    assert binary(server, positions=[252], dim=8).tolist() == [[1, 1, 1, 1, 1, 1, 0, 0]]
    assert binary(server, positions=[252], dim=8, bit_order="lsb").tolist() == [[0, 0, 1, 1, 1, 1, 1, 1]]


def test_binary_by_default(server):
    """min(dim, 32) bits, the highest first, each over 16 columns."""
    table = binary(server, len=6)
    assert table.dtype == np.float32 and table.shape == (6, 512)
    assert np.array_equal(table, absolute.binary(range(6), 512))
    assert np.array_equal(table[5], np.repeat([0.0] * 29 + [1, 0, 1], 16))
    config = server.ask(scheme="binary", len=6).json()["config"]
    expected = {"scheme": "binary", "dim": 512, "bits": 32, "bit_order": "msb", "low": 0.0, "high": 1.0}
    assert expected.items() <= config.items()
    assert server.ask(scheme="binary", len=6, dim=8).json()["config"]["bits"] == 8


def test_bits_stretch_over_the_columns(server):
    """k(j) = j*B // d: columns share a bit as evenly as whole numbers can."""
    assert binary(server, positions=[5], dim=7, bits=3).tolist() == [[1, 1, 1, 0, 0, 1, 1]]
    assert binary(server, positions=[6], dim=5, bits=4, bit_order="lsb").tolist() == [[0, 0, 1, 1, 0]]


def test_far_positions_have_their_bits(server):
    positions = [0, 2 ** 40 - 1, 2 ** 39, 2 ** 32 + 1, 123456789012]
    table = binary(server, positions=positions, dim=40, bits=40, low=-1, high=1)
    assert np.array_equal(table, absolute.binary(positions, 40, 40, low=-1, high=1))


def test_bit_b_toggles_every_2_to_the_b(server):
    table = binary(server, len=64, dim=6, bit_order="lsb")
    for b in range(6):
        toggles = np.flatnonzero(np.diff(table[:, b])) + 1
        assert np.array_equal(toggles, np.arange(2 ** b, 64, 2 ** b))


@laws
@when(dim=st.integers(1, 10), order=st.sampled_from(["msb", "lsb"]))
def test_rows_are_unique(server, dim, order):
    table = binary(server, len=2 ** dim, dim=dim, bit_order=order)
    assert len(np.unique(table, axis=0)) == 2 ** dim


@laws
@when(p=st.integers(0, 2 ** 20), n=st.integers(1, 50))
def test_the_code_knows_nothing_of_the_length(server, p, n):
    alone = binary(server, positions=[p], dim=24)
    assert np.array_equal(binary(server, offset=p, len=n, dim=24)[0], alone[0])


@pytest.mark.parametrize("seed", range(25))
def test_random_binary(server, seed):
    rng = random.Random(seed)
    dim = rng.randint(1, 40)
    bits = rng.choice([None, rng.randint(1, dim)])
    positions = [rng.randrange(2 ** (bits or min(dim, 32))) for _ in range(rng.randint(1, 9))]
    parameters = given(bits=bits, bit_order=rng.choice([None, "msb", "lsb"]), low=rng.choice([None, -1, 0.1]),
                       high=rng.choice([None, 1, 0.7]))
    dtype = rng.choice(["f32", "f64", "f16", "bf16"])
    request = dict(scheme="binary", dim=dim, positions=positions, dtype=dtype, **parameters)
    table = encode_one(server, **request)
    expected = absolute.binary(positions, dim, **parameters)
    assert np.array_equal(table, np.vectorize(lambda v: truth.nearest(v, dtype))(expected)), request
    check_again(server, request, ["positions", "dtype"], {"encoding": table})


# ---- Refusals ----------------------------------------------------------------------------------------------------------

SEQUENCE = ("/len", "/offset", "/positions", "/bits", "/dim", "")


@pytest.mark.parametrize("pointers,fields", [
    ("/normalize", dict(scheme="integer", len=3, normalize="lenght")),
    ("/pe_scale", dict(scheme="integer", len=3, pe_scale="2")),
    ("/dim", dict(scheme="integer", len=3, dim=0)),
    ("/grid", dict(scheme="integer", grid=[2, 3])),
    ("/positions", dict(scheme="integer", positions=[[0, 1], [0, 1]])),
    ("/positions", dict(scheme="integer", positions=[2 ** 40 + 1])),
    ("/positions", dict(scheme="integer", positions=[-2 ** 40 - 1])),
    ("/offset", dict(scheme="integer", offset=2 ** 40, len=2)),
    ("/base", dict(scheme="integer", len=3, base=100)),
    ("/bits", dict(scheme="binary", len=3, bits=0)),
    ("/bits", dict(scheme="binary", len=3, bits=2.5)),
    ("/bit_order", dict(scheme="binary", len=3, bit_order="big")),
    ("/grid", dict(scheme="binary", grid=[2, 3])),
    (SEQUENCE, dict(scheme="binary", positions=[0.5])),
    (SEQUENCE, dict(scheme="binary", positions=[-1])),
    (SEQUENCE, dict(scheme="binary", len=3, offset=-1)),
    (SEQUENCE, dict(scheme="binary", positions=[256], dim=8)),
    (SEQUENCE, dict(scheme="binary", len=257, dim=8)),
    (SEQUENCE, dict(scheme="binary", len=1, offset=2 ** 32)),
    (SEQUENCE, dict(scheme="binary", positions=[2 ** 40 + 1], dim=64, bits=41)),
])
def test_refused(server, pointers, fields):
    refused(server, pointers, **fields)


def test_the_last_position_that_fits(server):
    assert binary(server, len=256, dim=8)[255].tolist() == [1] * 8
    assert binary(server, positions=[2 ** 32 - 1], dim=32)[0].tolist() == [1] * 32
