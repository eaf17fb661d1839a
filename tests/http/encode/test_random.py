"""Random combinations of every parameter, compared with the reference formulas; each resolved config is posted again.
Seeds are fixed: a failure names its request."""
import random

import numpy as np
import pytest

import truth
from tensors import encode, encode_one

ROUNDS = 100


def given(**fields):
    return {name: value for name, value in fields.items() if value is not None}


def check_again(server, request, sequence, answer):
    """The config of an answer, with the sequence, gives the same bytes."""
    config = server.ask("/encode", **request, data=False).json()["config"]
    again = encode_one(server, **config, **sequence, dtype=request["dtype"], outputs=request["outputs"])
    assert again.tobytes() == answer.tobytes(), request


def random_positions(rng, n):
    return [rng.choice([rng.randint(-20, 20), rng.uniform(-20, 20)]) for _ in range(n)]


def random_pairwise(rng):
    """Fields of the sequence, positions of the queries, positions of the keys."""
    kind = rng.choice(["len", "lengths", "lists", "positions"])
    if kind == "positions":
        p = random_positions(rng, rng.randint(1, 9))
        return {"positions": p}, p, p
    if kind == "lists":
        q, k = random_positions(rng, rng.randint(1, 9)), random_positions(rng, rng.randint(1, 9))
        return {"q_positions": q, "k_positions": k}, q, k
    offset, q_offset = rng.choice([None, 0, 5, -7, 10**9]), rng.choice([None, 0, 2, -4])
    if kind == "len":
        q_len = k_len = rng.randint(1, 40)
        fields = given(len=k_len, offset=offset, q_offset=q_offset)
    else:
        q_len, k_len = rng.randint(1, 40), rng.randint(1, 40)
        fields = given(q_len=q_len, k_len=k_len, offset=offset, q_offset=q_offset)
    first = offset or 0
    shift = k_len - q_len if q_offset is None else q_offset
    return fields, [first + shift + i for i in range(q_len)], [first + j for j in range(k_len)]


def random_slopes(rng, n):
    return [rng.uniform(-2, 2) for _ in range(n)]


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_alibi(server, seed):
    rng = random.Random(seed)
    sequence, q, k = random_pairwise(rng)
    heads = rng.choice([1, 2, 3, 5, 8, 12])
    form = rng.choice(["symmetric", "relative", "asymmetric", "key", "key_end", "key_mask"])
    bias_max = rng.choice([None, 8, 16, 5.5])
    slopes = random_slopes(rng, heads) if rng.random() < 0.3 else None
    left, right = (random_slopes(rng, heads) if form == "asymmetric" and rng.random() < 0.7 else None for _ in range(2))
    key_mask = [rng.randint(0, 1) for _ in k] if rng.random() < 0.4 else None
    mask = given(causal=rng.random() < 0.4, window=rng.choice([None, 1, 2, 5]), window_right=rng.choice([None, 0, 3]))
    request = given(scheme="alibi", num_heads=heads, form=form, bias_max=bias_max, slopes=slopes, slopes_left=left,
                    slopes_right=right, key_mask=key_mask, dtype="f64", outputs=["bias"], **mask, **sequence)
    usual = slopes or [float(m) for m in truth.alibi_slopes(heads, bias_max or 8)]
    expected = np.stack([truth.alibi(form, (left or usual)[h], q, k, key_mask, (right or usual)[h], **mask)
                         for h in range(heads)])
    bias = encode_one(server, **request)
    assert bias.shape == expected.shape
    assert np.array_equal(np.isinf(bias), np.isinf(expected)), request
    np.testing.assert_allclose(bias, expected, rtol=1e-12, atol=1e-12, err_msg=str(request))
    check_again(server, request, sequence, bias)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_sinusoidal(server, seed):
    rng = random.Random(seed)
    dim = rng.randint(1, 33)
    parameters = given(layout=rng.choice(["interleaved", "half"]), odd=rng.choice(["paper", "pad", "truncate"]),
                       freq_shift=rng.choice([None, 0, 0.5, 1]) if dim > 4 else None, flip_sin_to_cos=rng.random() < 0.5,
                       angle_scale=rng.choice([None, -2.5, 100]), base=rng.choice([None, 500.0, 0.5, 1e6]))
    sequence = {"positions": random_positions(rng, 5)}
    request = given(scheme="sinusoidal", dim=dim, dtype="f64", outputs=["encoding"], **parameters, **sequence)
    encoding = encode_one(server, **request)
    expected = truth.sinusoidal(sequence["positions"], dim, **parameters)
    np.testing.assert_allclose(encoding, expected, rtol=0, atol=1e-11, err_msg=str(request))
    check_again(server, request, sequence, encoding)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_rope(server, seed):
    """Rotating the unit vectors of a table's positions by hand with its cos and sin is the reference's rotation."""
    rng = random.Random(seed)
    head_dim = 2 * rng.randint(1, 20)
    rotary_dim = 2 * rng.randint(1, head_dim // 2)
    offset = rng.randint(0, head_dim - rotary_dim)
    parameters = given(layout=rng.choice(["interleaved", "half"]), direction=rng.choice([1, -1]), rotary_offset=offset,
                       rotary_dim=rotary_dim, base=rng.choice([None, 500000.0, 0.5]))
    sequence = {"positions": random_positions(rng, 4)}
    request = given(scheme="rope", head_dim=head_dim, form="expanded", dtype="f64", attention_factor=rng.choice([None, 1.25]),
                    **parameters, **sequence)
    tensors = encode(server, **request)
    x = np.random.default_rng(seed).standard_normal((4, head_dim))
    rotated = truth.rotate(x, sequence["positions"], **parameters)
    first, second = (offset + c for c in truth.pairs(rotary_dim, parameters["layout"]))
    cos, sin = (np.zeros((4, head_dim)) for _ in range(2))
    cos[:, offset:offset + rotary_dim], sin[:, offset:offset + rotary_dim] = tensors["cos"], tensors["sin"]
    factor = request.get("attention_factor", 1.0)
    np.testing.assert_allclose(x[:, first] * cos[:, first] - x[:, second] * sin[:, first], factor * rotated[:, first],
                               atol=1e-12, err_msg=str(request))
    np.testing.assert_allclose(x[:, second] * cos[:, second] + x[:, first] * sin[:, second], factor * rotated[:, second],
                               atol=1e-12, err_msg=str(request))
