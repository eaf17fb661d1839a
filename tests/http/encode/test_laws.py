"""Laws rather than samples: the defining properties of positional encodings, on generated requests. That every number is the formula's is in
test_random.py; here is what two answers have to do with each other."""
import http.client
import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truth
import truth.bias
from asking import given as given_fields
from conftest import SANITIZED, Stopwatch, start_server
from tensors import encode_one, from_json

# A request takes a millisecond; the server outlives the examples, which is what a function-scoped fixture is warned about.
laws = settings(max_examples=30)
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


# ---- Rotation ----------------------------------------------------------------------------------------------------------


@laws
@given(a=positions, b=positions, n=widths, layout=layouts)
def test_rotations_add_and_keep_norms(server, a, b, n, layout):
    """R(a) R(b) = R(a + b)"""
    x = vector(n, 1)
    once = turn(server, x, b, layout=layout)
    np.testing.assert_allclose(turn(server, once, a, layout=layout), turn(server, x, a + b, layout=layout), rtol=0, atol=1e-13)
    assert abs(np.linalg.norm(once) - np.linalg.norm(x)) < 1e-13 * max(1, np.linalg.norm(x))


points = st.tuples(*[st.integers(-1000, 1000)] * 3)
TABLES = [{"scheme": "rope"}, {"scheme": "rope", "axes_dim": [4, 8, 12]}, {"scheme": "rope", "channels": "mrope", "mrope_section": [2, 4, 6]},
          {"scheme": "xpos"}, {"scheme": "xpos", "center": "lucidrains"}, {"scheme": "xpos", "center": -7.5}]


@laws
@given(m=points, n=points, shift=points, layout=st.sampled_from(["interleaved", "half", "interleaved_to_half"]), table=st.sampled_from(TABLES))
def test_scores_depend_on_the_distance(server, m, n, shift, layout, table):
    """<R(m) q, R(n) k> = <R(m+s) q, R(n+s) k>, s a shift on every axis; xPos, whose scale grows in q and falls in k, does so from any centre."""
    rows = [list(axis) for axis in zip(m, n, np.add(m, shift).tolist(), np.add(n, shift).tolist())]
    sequence = {"positions": rows[0]} if table["scheme"] == "xpos" else {"positions": rows, "layout": layout}
    x = {"dtype": "f64", "shape": [4, 24], "data": np.tile(vector(24, 3), 4).tolist()}
    answer = from_json(server.ask("/rotate", **table, **sequence, q=x, k=x))
    scores = answer["q"] @ answer["k"].T
    assert abs(scores[0, 1] - scores[2, 3]) <= 1e-10 * max(1, abs(scores[0, 1]))


# ---- Digits ------------------------------------------------------------------------------------------------------------


def of_rope(p):
    return [mpmath.cos(truth.rope_angle(p, c, 32)) for c in range(16)]


def of_kerple(kind, r1, r2):
    return lambda p: [truth.bias.kerple_exact(kind, r1, r2, truth.bias.distance(0, p))]


CANCEL = [p for p in range(4000) if abs(math.cos(p) + math.cos(p / 100)) < 2e-3]
SMALL = [*range(0, 600, 7), 4096, 66049, 2 ** 24 + 1, 2 ** 40, 1e-9, 0.7, 1e-30]


@pytest.mark.parametrize("fields, places, exact", [
    ({"scheme": "rope", "head_dim": 32, "outputs": ["cos"]}, [0, 1, 2, -3, 100.5, 65537, 2 ** 24 - 1, 2 ** 24], of_rope),
    *[({"scheme": "kerple", "num_heads": 1, "kind": kind, "r1": r1, "r2": r2}, SMALL, of_kerple(kind, r1, r2))
      for kind, r1, r2 in (("log", 0.3, 12.7), ("log", 2.0, 1e-6), ("power", 1.7, 0.3), ("power", 1.0, 0.25))],
    ({"scheme": "sandwich", "num_heads": 1, "bar_dim": 4}, CANCEL, lambda p: [truth.bias.sandwich_exact(0, 1, truth.bias.distance(0, p), 4)])],
    ids=lambda x: x["scheme"] if isinstance(x, dict) else "")
def test_f64_is_within_an_ulp(server, fields, places, exact):
    """Also where two cosines of Sandwich nearly cancel: the difference has all its digits."""
    sequence = {"positions": places} if fields["scheme"] == "rope" else {"q_positions": [0], "k_positions": places}
    got = encode_one(server, **fields, **sequence, dtype="f64").reshape(len(places), -1)
    for row, p in zip(got.tolist(), places):
        for found, right in zip(row, exact(p), strict=True):
            assert abs(found - right) <= truth.ulp(float(right)), p


# ---- Parts of a whole --------------------------------------------------------------------------------------------------


@laws
@given(first=positions, n=st.integers(1, 200), cut=st.integers(0, 199), dim=st.integers(1, 64), dtype=st.sampled_from(["f32", "f64", "f16", "bf16"]))
def test_a_row_knows_nothing_of_the_others(server, first, n, cut, dim, dtype):
    """A part of a sequence is that part of its table, to the bit."""
    cut = cut % n
    whole = encode_one(server, scheme="sinusoidal", dim=dim, offset=first, len=n, dtype=dtype)
    part = encode_one(server, scheme="sinusoidal", dim=dim, offset=first + cut, len=n - cut, dtype=dtype)
    alone = encode_one(server, scheme="sinusoidal", dim=dim, positions=[first + cut, 0.5], dtype=dtype)
    assert whole[cut:].tobytes() == part.tobytes()
    assert whole[cut].tobytes() == alone[0].tobytes()


LONG = 30000
NETWORK = {"seed": 9, "std": 0.2, "dim": 12}


@pytest.mark.parametrize("fields, n", [({"scheme": "sinusoidal", "dim": 16, "offset": 123456789}, 100_000), ({"scheme": "recursive", **NETWORK}, LONG),
                                       ({"scheme": "floater", **NETWORK}, LONG)], ids=lambda x: x["scheme"] if isinstance(x, dict) else None)
def test_rows_all_along_a_run(server, fields, n):
    """A recurrence does not drift, and an answer comes in chunks: rows have their positions' values, to the bit."""
    whole, start = encode_one(server, **fields, len=n), fields.get("offset", 0)
    rest = {name: value for name, value in fields.items() if name != "offset"}
    for first, rows in ((1, 3), (255, 4), (4095, 3), (16383, 700), (n - 5, 5)):
        part = encode_one(server, **rest, offset=start + first, len=rows)
        assert part.tobytes() == whole[first:first + rows].tobytes(), (first, rows)
    listed = [n - 1, 0, 15, 16, 33, 777, 777, 12345]
    assert encode_one(server, **rest, positions=[start + p for p in listed]).tobytes() == whole[listed].tobytes()


def test_many_heads_share_the_table(server):
    """Several threads make it; 86 MB of map out of 0.6 MB."""
    fields = dict(scheme="swin", grid=[24, 24], num_heads=130, seed=3, dtype="f16")
    whole = encode_one(server, **fields)
    assert whole.shape == (130, 576, 576)
    for head in (0, 64, 129):
        assert np.array_equal(whole[head], encode_one(server, **fields, slice=[head, None, None]))


def test_a_long_answer_starts_at_once():
    """32768 positions, 32 heads: 128 GiB of which the first rows are read, in little memory."""
    with start_server("--max-answer", "256GiB", "--max-work", "1000000000000000000") as server:
        for scheme, seed in (("t5", 0), ("kerple", None), ("fire", 0), ("sandwich", None)):
            body = json.dumps(given_fields(scheme=scheme, num_heads=32, len=32768, format="raw", seed=seed))
            before, watch = server.memory(), Stopwatch(server)
            connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
            connection.request("POST", "/encode", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            assert answer.status == 200 and int(answer.headers["Content-Length"]) == 4 * 32 * 32768 ** 2
            assert len(answer.read(1 << 20)) == 1 << 20
            connection.close()
            assert SANITIZED or watch.seconds() < 5, scheme
            assert SANITIZED or server.memory() - before < 64 << 20, scheme


# ---- Arithmetic, seeds -------------------------------------------------------------------------------------------------


def test_float32_rounds_each_step(server):
    for fields, apart in ((dict(scheme="swinv2", grid=[8, 8], seed=1, std=1), 2e-4), (dict(scheme="sinusoidal", dim=16, len=5000), 1e-3)):
        exact, rough = (encode_one(server, **fields, dtype="f64", arith=arith) for arith in ("exact", "float32"))
        assert np.array_equal(rough, rough.astype("f4").astype("f8"))
        assert 0 < np.abs(rough - exact).max() < apart


def test_the_generator_itself():
    """Published values: FNV-1a of "" and "a"; SplitMix64 from seed 0 begins E220A8397B1DCDAF."""
    from truth.absolute import GOLDEN, WORD, fnv1a64, splitmix64
    assert fnv1a64("") == 0xCBF29CE484222325 and fnv1a64("a") == 0xAF63DC4C8601EC8C
    assert splitmix64(GOLDEN) == 0xE220A8397B1DCDAF and splitmix64(2 * GOLDEN & WORD) == 0x6E789E6AA1B965F4


def test_seeded_weights_are_normal(server):
    """A million of them: mean, deviation, skewness, tails, and no correlation of neighbours, rows or seeds."""
    a, b = (encode_one(server, scheme="learned", seed=s, std=1.0, len=1000, dim=1000).astype(float) for s in (0, 1))
    assert abs(a.mean()) < 4e-3 and abs(a.std() - 1) < 3e-3
    assert abs((a ** 3).mean()) < 1e-2 and abs((a ** 4).mean() - 3) < 3e-2
    assert abs((np.abs(a) < 1.959964).mean() - 0.95) < 1e-3
    for pair in ((a[:, 1:], a[:, :-1]), (a[1:], a[:-1]), (a, b)):
        assert abs((pair[0] * pair[1]).mean()) < 5e-3
