"""The cost of planning: it is counted before planning starts, reserved from --max-memory, and runs on the event loop
only if it is fast.

Small requests can need large tables: buckets, networks, projections, encodings of all distances. Each of CASES blocked
the loop for 10 to 1800 ms when only some fields were counted, and their sums rather than products. The test measures the
loop's own processor time, which other load on the machine does not lengthen, and takes the minimum of several tries. That
each scheme states enough, whatever is asked, is held by tests/core/request/test_cost.c."""

import json

import pytest
from conftest import SANITIZED, slowness, start_server
from connection import clients, least_loop_ms, post, wait_until

LOOP_MS = 8 * slowness()  # of one request from its first byte to the end of its answer

Q = [[[0.5] * 64]]
CASES = {
    "buckets of deberta": ("/encode", dict(scheme="deberta", position_buckets=64, max_relative_positions=65536, len=1)),
    "buckets and tables": ("/attention", dict(scheme="deberta", position_buckets=64, max_relative_positions=65536, q=Q, k=Q, seed=0)),
    "odd buckets, looked up late": ("/encode", dict(scheme="deberta", position_buckets=255, max_relative_positions=256, q_len=1, k_len=4000, q_offset=100000)),
    "network of fire": ("/encode", dict(scheme="fire", num_heads=2048, hidden=1024, len=8, seed=0)),
    "network of fire in a slice": ("/encode", dict(scheme="fire", num_heads=4096, hidden=1024, len=1, seed=0)),
    "rows of shaw": ("/attention", dict(scheme="shaw", p_min=-65535, p_max=65535, q=Q, k=Q, seed=0)),
    "rows of cope": ("/attention", dict(scheme="cope", npos_max=65536, q=Q, k=Q, seed=0)),
    "distances of transformer_xl": ("/attention", dict(scheme="transformer_xl", d_model=2048, q=[[[0.5] * 32]] * 32, k=[[[0.5] * 32]] * 32, seed=0)),
    "waves of conformer": ("/encode", dict(scheme="conformer", d_model=65536, len=1)),
    "heads of xlnet": ("/encode", dict(scheme="xlnet", num_heads=1024, len=8)),
    "buckets of t5": ("/encode", dict(scheme="t5", num_buckets=4096, max_distance=2147483648, len=1)),
    "random projections": ("/attention", dict(scheme="none", x=[[1.0] * 32], num_heads=1024, head_dim=256, seed=0)),
    "random projections behind an encoding": ("/attention", dict(scheme="sinusoidal", x=[[1.0] * 4], num_heads=512, head_dim=4096, seed=0)),
    "steps of floater": ("/attention", dict(scheme="floater", tokens=["a", "b"] * 100, dim=64, num_heads=1, seed=0)),
    "tables of xpos": ("/rotate", dict(scheme="xpos", q=[[[[0.5] * 64]] * 40] * 2)),
    "packed sequences": ("/encode", dict(scheme="sinusoidal", dim=2, lens=[200000])),
    "a video": ("/encode", dict(scheme="rope", segments=[{"type": "image", "grid": [1, 700, 700]}])),
    "resized table": ("/encode", dict(scheme="learned", dim=4, grid=[65536, 65536], table_grid=[65536, 65536], seed=0)),
}


@pytest.fixture(scope="module")
def one_loop():
    with start_server("--io-threads", "1", "--workers", "1", "--answer-cache", "0") as server:
        yield server


EXTRAS = {"config": dict(data=False), "part": dict(format="raw", slice=[[0, 1]])}
# Three steps of a thousand are a few bytes, and thousands of numbers: a network for each, an exponential for each, many.
MEAN = dict(slice=[[None, None, 1000]], reduce="mean", format="raw")
REDUCED = [dict(scheme="fire", num_heads=1024, len=8, seed=0), dict(scheme="xpos", head_dim=64, len=3000), dict(scheme="alibi", len=100)]
LONG = [*((path, {**fields, **EXTRAS[extra]}, LOOP_MS) for path, fields in CASES.values() for extra in EXTRAS),
        *(("/encode", {**fields, **MEAN}, LOOP_MS / 4) for fields in REDUCED)]
NAMES = [*(f"{name}, {extra}" for name in CASES for extra in EXTRAS), *(f"mean of {fields['scheme']}" for fields in REDUCED)]


@pytest.mark.skipif(SANITIZED, reason="measures time")
@pytest.mark.parametrize("path,fields,most", LONG, ids=NAMES)
def test_long_planning_is_no_work_of_the_loop(one_loop, path, fields, most):
    ms, answer = least_loop_ms(one_loop, post(json.dumps(fields).encode(), path, "Content-Type: application/json"), most, 5)
    assert answer[0] == 200 and ms < most, (ms, answer[0])


def test_planning_waits_for_the_budget():
    """Memory that others hold causes a 503; after it is released, the request succeeds."""
    wave = dict(scheme="sinusoidal", dim=65536, len=10**9, format="raw")
    with start_server("--max-memory", "160MiB", "--max-answer", "1000TiB", "--max-work", str(10**18)) as server:
        projections = dict(scheme="none", x=[[1.0] * 32], num_heads=192, head_dim=1024, seed=0, format="raw")
        with clients(server, 4) as held:
            for client in held:
                client.send(post(json.dumps(wave).encode()))
                assert client.head()[0] == 200
            answer = server.post("/attention", projections)
            assert answer.status == 503 and "--max-memory" in answer.json()["detail"], answer
        assert wait_until(lambda: server.post("/attention", projections).status == 200)
