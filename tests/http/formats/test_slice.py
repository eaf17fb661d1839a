"""slice and reduce: every part equals NumPy's slice of the whole, for every scheme and output; refusals and forms are rows of ../cases."""
import itertools
import random

import numpy as np
import pytest

from tensors import encode, from_raw

WHOLES = [
    {"scheme": "sinusoidal", "dim": 24, "len": 300, "offset": 5}, {"scheme": "sinusoidal", "dim": 24, "len": 70, "dtype": "f16"},
    {"scheme": "rope", "head_dim": 20, "len": 130, "outputs": ["cos", "sin", "positions", "inv_freq"]},
    {"scheme": "rope", "head_dim": 8, "len": 9, "form": "matrix"}, {"scheme": "alibi", "num_heads": 3, "q_len": 7, "k_len": 11, "causal": True, "outputs": ["bias"]},
    {"scheme": "t5", "len": 20, "outputs": ["buckets"]}, {"scheme": "t5", "num_heads": 2, "len": 20, "seed": 1},
    {"scheme": "sinusoidal", "style": "detr", "dim": 8, "grid": [5, 6]}, {"scheme": "swin", "grid": [3, 4], "seed": 2, "num_heads": 2},
    {"scheme": "integer", "len": 40, "dim": 3, "dtype": "f64"}, {"scheme": "recursive", "dim": 6, "len": 15, "seed": 1},
    {"scheme": "rope", "segments": [{"type": "text", "len": 3}, {"type": "image", "grid": [1, 4, 4]}], "channels": "mrope", "outputs": ["positions", "rope_delta", "cos"]},
]


def random_cut(rng, n):
    kind = rng.randrange(6)
    if kind == 0:
        return None
    if kind == 1:
        return rng.randrange(-n, n)
    ends = [rng.choice([None, rng.randrange(-n - 3, n + 4)]) for _ in range(2)]
    return ends if kind < 4 else [*ends, rng.choice([None, 1, 2, 3, n, n + 5])]


def as_numpy(cuts):
    return tuple(slice(*c) if isinstance(c, list) else slice(None) if c is None else c for c in cuts)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("request_", WHOLES, ids=lambda r: f"{r['scheme']}-{sorted(r)}")
def test_parts_are_numpys(server, request_, seed):
    rng = random.Random(seed)
    whole = encode(server, **request_)
    for _ in range(6):
        cuts = {name: [random_cut(rng, n) for n in array.shape[:rng.randrange(array.ndim + 1)]] for name, array in whole.items() if rng.random() < 0.9}
        if not cuts:
            continue
        got = encode(server, **request_, slice=cuts)
        for name, array in whole.items():
            expected = array[as_numpy(cuts[name])] if name in cuts else array
            assert got[name].dtype == array.dtype and got[name].shape == np.shape(expected), (cuts, name)
            assert got[name].tobytes() == np.ascontiguousarray(expected).tobytes(), (cuts, name)


def reduced(array, cuts, how):
    """Blocks of each axis' step, over what start and stop leave; finite numbers only, the first where there are none."""
    axes, dropped = [], []
    for axis, n in enumerate(array.shape):
        cut = cuts[axis] if axis < len(cuts) else None
        if isinstance(cut, int):
            axes.append([[range(n)[cut]]])
            dropped.append(axis)
            continue
        start, stop, step = slice(*(cut or [None])).indices(n)
        axes.append([list(range(i, min(i + step, stop))) for i in range(start, stop, step)])
    out = np.empty([len(a) for a in axes])
    for place in itertools.product(*(range(len(a)) for a in axes)):
        block = array[np.ix_(*(a[i] for a, i in zip(axes, place)))].astype(float).ravel()
        finite = block[np.isfinite(block)]
        make = {"sample": lambda x: block[0], "mean": np.mean, "min": np.min, "max": np.max, "absmax": lambda x: np.abs(x).max()}[how]
        out[place] = make(finite) if len(finite) else block[0]
    return out.reshape([len(a) for i, a in enumerate(axes) if i not in dropped])


@pytest.mark.parametrize("how", ["sample", "mean", "min", "max", "absmax"])
@pytest.mark.parametrize("request_,cuts", [
    ({"scheme": "sinusoidal", "dim": 10, "len": 45, "dtype": "f64"}, [[3, None, 7], [None, None, 3]]), ({"scheme": "sinusoidal", "dim": 10, "len": 45, "dtype": "f64"}, [[None, None, 45]]),
    ({"scheme": "alibi", "num_heads": 2, "len": 12, "causal": True, "outputs": ["bias"], "dtype": "f64"}, [1, [None, None, 5], [None, None, 4]]),
    ({"scheme": "alibi", "num_heads": 2, "len": 12, "window": 1, "outputs": ["bias"], "dtype": "f64"}, [[None, None, 2], 0]), ({"scheme": "integer", "len": 3000, "dim": 2, "dtype": "f64"}, [[10, 2990, 1000]]),
    ({"scheme": "t5", "len": 20, "outputs": ["buckets"]}, [[None, None, 4], [None, None, 5]]), ({"scheme": "sinusoidal", "dim": 2000, "len": 3, "dtype": "f64"}, [None, [5, None, 3]]), ({"scheme": "sinusoidal", "dim": 4, "len": 9, "dtype": "f64"}, [[5, 5, 2]]),
], ids=str)
def test_reduce(server, request_, cuts, how):
    whole = encode(server, **request_)
    (name, array), = whole.items()
    if array.dtype.kind == "i" and how == "mean":
        return  # refused: ../cases/formats.jsonl
    got = encode(server, **request_, slice=cuts, reduce=how)[name]
    expected = reduced(array, cuts, how)
    assert got.shape == expected.shape
    finite = np.isfinite(expected)
    assert np.array_equal(got[~finite], expected[~finite])
    np.testing.assert_allclose(got[finite], expected[finite], rtol=1e-14, atol=1e-15)


def test_attention_and_rotation(server):
    q = np.random.default_rng(0).standard_normal((2, 3, 40, 4)).astype("f4")
    ask = lambda path, **f: from_raw(server.ask(path, **f, format="raw"))
    request = {"scheme": "alibi", "q": q.tolist(), "k": q.tolist(), "v": q.tolist(), "outputs": ["probs", "output"]}
    whole, part = ask("/attention", **request), ask("/attention", **request, slice=[1, [0, None, 2], [5, 30, 7]])
    for name in whole:
        assert part[name].tobytes() == np.ascontiguousarray(whole[name][1, 0::2, 5:30:7]).tobytes()
    shaw = {"scheme": "shaw", "max_relative": 2, "rel_k": q[0, 0, :5].tolist(), "q": q.tolist(), "k": q.tolist(), "outputs": ["terms"]}
    whole, part = ask("/attention", **shaw)["terms"], ask("/attention", **shaw, slice=[1, [1, 2], [0, 2], [30, 40], [0, 40, 7]])["terms"]
    assert part.tobytes() == np.ascontiguousarray(whole[1, 1:2, 0:2, 30:40, 0:40:7]).tobytes()
    whole, part = (ask("/rotate", scheme="rope", q=q.tolist(), **f)["q"] for f in ({}, {"slice": [0, None, -1]}))
    assert np.array_equal(part, whole[0, :, -1])


def test_a_long_table_zoomed_out(server):
    """A million rows to a thousand; the mean of a sine is small."""
    got = encode(server, scheme="sinusoidal", dim=16, len=1 << 20, slice=[[None, None, 1024]], reduce="mean")["encoding"]
    assert got.shape == (1024, 16) and np.abs(got[:, 0]).max() < 0.01
    middle = encode(server, scheme="sinusoidal", dim=16, positions=list(range(1024)), dtype="f64")["encoding"].mean(0)
    np.testing.assert_allclose(got[0], middle, atol=1e-7)
