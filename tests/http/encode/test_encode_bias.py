"""POST /encode with t5, kerple, fire, sandwich: formulas, exactness, masks, positions, weights, refusals."""
import http.client
import json
import random

import numpy as np
import pytest

import truth
import truth.absolute as absolute
import truth.bias as bias
from asking import check_again, given, inline, refused
from conftest import SANITIZED, Stopwatch, start_server
from tensors import encode, encode_one
from test_random import random_pairwise

MASKS = [{}, {"causal": True}, {"window": 3}, {"window": 1}, {"causal": True, "window": 2}, {"window": 4, "window_right": 1},
         {"window_right": 0}, {"key_mask": [0, 1, 1, 0, 1, 1, 1, 1, 0]}]
SEQUENCES = [
    (dict(q_len=3, k_len=7), range(4, 7), range(7)), (dict(q_len=3, k_len=7, q_offset=0), range(3), range(7)),
    (dict(q_len=2, k_len=5, q_offset=-4), range(-4, -2), range(5)), (dict(len=4, offset=100), range(100, 104), range(100, 104)),
    (dict(q_len=1, k_len=600), range(599, 600), range(600)), (dict(q_len=600, k_len=1, q_offset=0), range(600), range(1)),
    (dict(q_positions=[5, 0.5], k_positions=[0, 2, 9.25]), [5, 0.5], [0, 2, 9.25]),
    (dict(positions=[0, 10, 3]), [0, 10, 3], [0, 10, 3]), (dict(len=1), [0], [0])]


def random_weights(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


TABLE = random_weights((32, 3))
FIRE = {"w1": random_weights((32, 1)), "b1": random_weights(32, 1), "w2": random_weights((3, 32), 2), "b2": random_weights(3, 3)}
FIRE_SENT = {name: inline(w, "f32") for name, w in FIRE.items()}


def expected_of(scheme, q, k):
    """Fields of a small request with three heads, and its bias."""
    q, k = list(q), list(k)
    return {
        "t5": lambda: ({"table": inline(TABLE, "f32")}, bias.t5(TABLE, q, k)),
        "kerple": lambda: ({"num_heads": 3, "r1": [1, 0.5, 2], "r2": [1, 3, 0.1]}, bias.kerple("log", [1, .5, 2], [1, 3, .1], q, k)),
        "fire": lambda: (FIRE_SENT, bias.fire(**FIRE, q=q, k=k)),
        "sandwich": lambda: ({"num_heads": 3}, bias.sandwich(3, q, k)),
    }[scheme]()


def check(got, expected, tolerance=1e-12, text=""):
    assert got.shape == expected.shape, text
    assert np.array_equal(np.isneginf(got), np.isneginf(expected)), text
    seen = np.isfinite(expected)
    np.testing.assert_allclose(got[seen], expected[seen], rtol=tolerance, atol=tolerance * 10, err_msg=text)
    assert not np.signbit(got[got == 0]).any()


ALL = ["t5", "kerple", "fire", "sandwich"]


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("mask", MASKS)
def test_masks(server, scheme, mask):
    fields, expected = expected_of(scheme, range(9), range(9))
    got = encode_one(server, scheme=scheme, len=9, dtype="f64", **fields, **mask)
    check(got, bias.masked(expected, range(9), range(9), **mask))


@pytest.mark.parametrize("scheme", ALL)
@pytest.mark.parametrize("sequence,q,k", SEQUENCES)
def test_queries_and_keys_apart(server, scheme, sequence, q, k):
    fields, expected = expected_of(scheme, q, k)
    for causal in (False, True):
        got = encode_one(server, scheme=scheme, dtype="f64", causal=causal, **fields, **sequence)
        check(got, bias.masked(expected, q, k, causal=causal))


@pytest.mark.parametrize("scheme", ALL)
def test_runs_are_lists(server, scheme):
    """A map wider than a tile, by vectors of distances and pair by pair."""
    fields, _ = expected_of(scheme, [0], [0])
    for dtype in ("f32", "bf16"):
        run = encode_one(server, scheme=scheme, q_len=2, k_len=3300, dtype=dtype, **fields)
        listed = encode_one(server, scheme=scheme, q_positions=[3298, 3299], k_positions=list(range(3300)), dtype=dtype, **fields)
        assert run.tobytes() == listed.tobytes()


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("scheme", ALL)
def test_random_requests(server, scheme, seed):
    rng = random.Random(seed)
    sequence, q, k = random_pairwise(rng)
    mask = given(causal=rng.random() < 0.4, window=rng.choice([None, 1, 2, 5]), window_right=rng.choice([None, 0, 3]),
                 key_mask=[rng.randint(0, 1) for _ in k] if rng.random() < 0.4 else None)
    heads = rng.choice([1, 2, 3, 5])
    if scheme == "t5":
        buckets = rng.randint(4, 40)
        shape = given(max_distance=rng.randint(buckets // 2 + 1, 300), bidirectional=rng.random() < 0.5)
        scale, table = rng.choice([None, 2.5]), random_weights((buckets, heads), seed)
        fields = given(table=inline(table, "f32"), table_scale=scale, **shape)
        expected = bias.t5(table, q, k, scale or 1.0, num_buckets=buckets, **shape)
    elif scheme == "kerple":
        kind = rng.choice(["log", "power"])
        r1, r2 = ([rng.uniform(0.01, 2) for _ in range(heads)] for _ in range(2))
        if rng.random() < 0.3:
            r1, r2 = [r1[0]] * heads, [r2[0]] * heads
            fields = dict(num_heads=heads, kind=kind, r1=r1[0], r2=r2[0])
        else:
            fields = dict(num_heads=heads, kind=kind, r1=r1, r2=r2)
        expected = bias.kerple(kind, r1, r2, q, k)
    elif scheme == "fire":
        hidden = rng.choice([1, 7, 32])
        w = {"w1": random_weights((hidden, 1), seed), "b1": random_weights(hidden, seed + 1),
             "w2": random_weights((heads, hidden), seed + 2), "b2": random_weights(heads, seed + 3)}
        numbers = given(c=rng.choice([None, -0.3, 2]), init_l=rng.choice([None, 0, 7.5]), l_mult=rng.choice([None, -0.5, 3]))
        fields = {**{name: inline(v, "f32") for name, v in w.items()}, **numbers}
        expected = bias.fire(**w, q=q, k=k, **numbers)
    else:
        fields = given(num_heads=heads, bar_dim=rng.choice([None, 2, 10, 130]), base=rng.choice([None, 50, 0.5]))
        expected = bias.sandwich(heads, q, k, **{n: v for n, v in fields.items() if n != "num_heads"})
    request = dict(scheme=scheme, dtype="f64", **fields, **mask, **sequence)
    got = encode(server, **request)
    assert list(got) == ["bias"]
    check(got["bias"], bias.masked(expected, q, k, **mask), 1e-11, str(request))
    tensors = [name for name in ("table", "w1", "b1", "w2", "b2") if name in fields]
    check_again(server, request, [*sequence, *tensors, "dtype"], got)


@pytest.mark.parametrize("scheme", ["t5", "kerple", "sandwich"])
def test_distance_alone_counts(server, scheme):
    fields, _ = expected_of(scheme, [0], [0])
    near = encode_one(server, scheme=scheme, len=40, **fields)
    far = encode_one(server, scheme=scheme, len=40, offset=2 ** 39, **fields)
    assert near.tobytes() == far.tobytes()


# ---- T5 ----------------------------------------------------------------------------------------------------------------


def test_t5_without_weights_answers_buckets(server):
    got = encode(server, scheme="t5", len=300)
    assert list(got) == ["buckets"] and got["buckets"].dtype == np.int32
    assert np.array_equal(got["buckets"], bias.t5_buckets(range(300), range(300)))
    refused(server, "/table", "seed", "weights", scheme="t5", len=3, outputs=["bias"])
    check_again(server, {"scheme": "t5", "len": 9}, ["len"], encode(server, scheme="t5", len=9))


def test_t5_with_weights_answers_the_bias(server):
    table = absolute.seeded("table", (32, 8), 4)
    got = encode(server, scheme="t5", len=200, seed=4)
    assert list(got) == ["bias"]
    assert np.array_equal(got["bias"], bias.t5(table, range(200), range(200)).astype("f4"))
    both = encode(server, scheme="t5", len=5, seed=4, outputs=["buckets", "bias"])
    assert list(both) == ["buckets", "bias"]
    assert np.array_equal(both["bias"], table[both["buckets"]].transpose(2, 0, 1))


@pytest.mark.parametrize("nb,m,both", [(32, 128, True), (32, 128, False), (320, 800, True), (64, 256, True), (32, 64, True),
                                       (32, 512, True), (16, 128, False), (128, 1024, True)])
def test_t5_published_settings(server, nb, m, both):
    shape = dict(num_buckets=nb, max_distance=m, bidirectional=both)
    k = [*range(-1500, 1501)]
    for arith, bucket in (("exact", bias.t5_bucket), ("float32", bias.t5_bucket_float32)):
        got = encode_one(server, scheme="t5", q_positions=[0], k_positions=k, arith=arith, **shape)
        assert got[0].tolist() == [bucket(rel, **shape) for rel in k]


@pytest.mark.parametrize("nb,m,both", [(8, 81, False), (32, 50, True), (64, 100, True), (96, 81, True), (5, 3, True), (4, 2, True),
                                       (33, 700, True), (2, 9, False), (7, 1000, False), (200, 101, False)])
def test_t5_odd_settings(server, nb, m, both):
    shape = dict(num_buckets=nb, max_distance=m, bidirectional=both)
    k = [*range(-1100, 1101)]
    got = encode_one(server, scheme="t5", q_positions=[0], k_positions=k, **shape)
    assert got[0].tolist() == [bias.t5_bucket(rel, **shape) for rel in k]
    float32 = encode_one(server, scheme="t5", q_positions=[0], k_positions=k, arith="float32", **shape)
    assert float32[0].tolist() == [bias.t5_bucket_float32(rel, **shape) for rel in k]


def test_t5_refusals(server):
    refused(server, "/num_buckets", "4", scheme="t5", len=3, num_buckets=3)
    refused(server, "/max_distance", "above 8", scheme="t5", len=3, max_distance=8)
    refused(server, "/num_heads", "makes it 3", scheme="t5", len=3, num_heads=2, table=TABLE.tolist())
    refused(server, "/num_buckets", "makes it 32", scheme="t5", len=3, num_buckets=16, table=TABLE.tolist())
    refused(server, "/table", scheme="t5", len=3, table=[1, 2])
    refused(server, "/seed", "not used", scheme="t5", len=3, seed=1, table=TABLE.tolist())
    refused(server, ("/grid",), scheme="t5", grid=[2, 3])


@pytest.mark.parametrize("scheme", ALL)
def test_a_long_answer_starts_at_once(scheme):
    """32768 positions, 32 heads: 128 GiB of which the first rows are read, in little memory."""
    body = json.dumps(given(scheme=scheme, num_heads=32, len=32768, format="raw", seed=0 if scheme in ("t5", "fire") else None))
    with start_server("--max-answer", "256GiB", "--max-work", "1000000000000000000") as server:
        before, watch = server.memory(), Stopwatch(server)
        connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        connection.request("POST", "/encode", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200 and int(answer.headers["Content-Length"]) == 4 * 32 * 32768 ** 2
        assert len(answer.read(1 << 20)) == 1 << 20
        connection.close()
        assert SANITIZED or watch.seconds() < 5
        assert SANITIZED or server.memory() - before < 64 << 20


# ---- KERPLE ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind,r1,r2", [("log", 1.0, 1.0), ("log", 0.3, 12.7), ("log", 2.0, 1e-6), ("power", 1.0, 1.0),
                                        ("power", 0.1, 0.5), ("power", 1.7, 0.3), ("power", 1.0, 2.0), ("power", 1.0, 0.25)])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_kerple_is_the_nearest(server, kind, r1, r2, dtype):
    q, k = [0.3, 0], [*range(0, 600), 4096, 66049, 2 ** 24 + 1, 2 ** 40, 1e-9, 0.7, 1e-30]
    got = encode_one(server, scheme="kerple", num_heads=1, kind=kind, r1=r1, r2=r2, dtype=dtype, q_positions=q, k_positions=k)
    for i, a in enumerate(q):
        for j, b in enumerate(k):
            exact = bias.kerple_exact(kind, r1, r2, bias.distance(a, b))
            if dtype == "f64":
                assert abs(float(got[0, i, j]) - exact) <= truth.ulp(float(exact)), (a, b)
            else:
                assert float(got[0, i, j]) == truth.nearest(exact, dtype), (a, b)


def test_kerple_defaults_and_refusals(server):
    got = encode_one(server, scheme="kerple", len=5)
    assert got.shape == (8, 5, 5)
    check(got, bias.kerple("log", [1] * 8, [1] * 8, range(5), range(5)), 1e-6)
    assert server.ask(scheme="kerple", len=2).json()["config"]["r1"] == 1
    alibi = encode_one(server, scheme="alibi", len=50, num_heads=8, outputs=["bias"])
    slopes = [2.0 ** -h for h in range(1, 9)]
    assert encode_one(server, scheme="kerple", kind="power", len=50, r1=slopes).tobytes() == alibi.tobytes()
    refused(server, "/r1", "num_heads", scheme="kerple", len=3, r1=[1, 2])
    refused(server, "/r1", "number", scheme="kerple", len=3, r1="one")
    refused(server, "/r2", "to 2", scheme="kerple", len=3, kind="power", r2=3)
    refused(server, "/r2", "1e-12", scheme="kerple", len=3, r2=0)


def test_kerple_in_float32(server):
    got = encode_one(server, scheme="kerple", num_heads=1, r1=0.7, r2=0.3, q_positions=[0], k_positions=[*range(500)],
                     arith="float32")
    f = np.float32
    for n in range(500):
        logarithm = f(truth.nearest(truth.mpmath.log(truth.mpf(float(f(1) + f(0.3) * f(n)))), "f32"))
        assert got[0, 0, n] == -f(0.7) * logarithm


# ---- FIRE --------------------------------------------------------------------------------------------------------------


def test_fire_needs_weights(server):
    refused(server, "/w1", "seed", "weights", scheme="fire", len=3)
    refused(server, "/hidden", "makes it 32", scheme="fire", len=3, hidden=4, **FIRE_SENT)
    refused(server, "/b2", scheme="fire", len=3, **{**FIRE_SENT, "b2": [1.0]})
    refused(server, "/w1", scheme="fire", len=3, **{**FIRE_SENT, "w1": [1.0] * 32})


def test_fire_of_a_seed(server):
    shapes = {"w1": (32, 1), "b1": (32,), "w2": (8, 32), "b2": (8,)}
    weights = {name: absolute.seeded(name, shape, 7, 0.5) for name, shape in shapes.items()}
    got = encode_one(server, scheme="fire", len=30, offset=500, seed=7, std=0.5, dtype="f64")
    check(got, bias.fire(**weights, q=range(500, 530), k=range(500, 530)), 1e-13)


def test_fire_is_measured_by_the_query(server):
    """Beyond the threshold the same distance weighs less from a later query, and keys do not set the measure."""
    w = dict(w1=[[1]], b1=[0], w2=[[1]], b2=[0])
    got = encode_one(server, scheme="fire", q_positions=[100, 10000], k_positions=[90, 9990], dtype="f64", **w)
    assert got[0, 0, 0] > got[0, 1, 1] > 0
    swapped = encode_one(server, scheme="fire", q_positions=[90], k_positions=[10000], dtype="f64", **w)
    assert abs(swapped[0, 0, 0] - np.log1p(991) / (np.log1p(51.2) + 1e-6)) < 1e-12


# ---- Sandwich ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_sandwich_is_the_nearest(server, dtype):
    q, k = [0.3, 0], [*range(0, 60), 4096, 65535, 2 ** 24 - 1, 1e-9, 0.7]
    k += [] if dtype == "f64" else [2 ** 40]
    got = encode_one(server, scheme="sandwich", num_heads=3, dtype=dtype, q_positions=q, k_positions=k)
    for i, a in enumerate(q):
        for j, b in enumerate(k):
            total = bias.sandwich_sum(bias.distance(a, b))
            for h in range(3):
                exact = total * 3 / (8 * (h + 1))
                if dtype == "f64":
                    assert abs(float(got[h, i, j]) - exact) <= truth.ulp(float(exact)), (a, b)
                else:
                    assert float(got[h, i, j]) == truth.nearest(exact, dtype), (a, b)


def test_sandwich_cancels(server):
    """Two cosines that nearly cancel: the difference has all its digits."""
    k = [p for p in range(4000) if abs(np.cos(p) + np.cos(p / 100)) < 2e-3]
    assert len(k) > 1
    for dtype in ("f32", "f64"):
        got = encode_one(server, scheme="sandwich", num_heads=1, bar_dim=4, q_positions=[0], k_positions=k, dtype=dtype)
        for j, p in enumerate(k):
            exact = bias.sandwich_exact(0, 1, bias.distance(0, p), 4)
            assert abs(float(got[0, 0, j]) - exact) <= (truth.ulp(float(exact), dtype) * (1 if dtype == "f64" else 0.5)), p


def test_sandwich_values_and_refusals(server):
    got = encode_one(server, scheme="sandwich", num_heads=12, q_positions=[0], k_positions=[0, 1, 10, 100], dtype="f64")
    np.testing.assert_allclose(got[0, 0], [96, 93.140525709, 64.230034348, 45.815182052], atol=1e-9)
    refused(server, "/bar_dim", "even", scheme="sandwich", len=3, bar_dim=9)
    refused(server, "/num_heads", scheme="sandwich", len=3, num_heads=0)
