"""What /diagnose refuses, and what bounds it: time, sizes, memory. Single refusals are rows (../../cases/refused_diagnose.jsonl)."""
import numpy as np
import pytest

from conftest import SANITIZED, Stopwatch, start_server
from tensors import multipart, npy
from test_errors import check_problem
from believed import inline


@pytest.mark.parametrize("body", [{"scheme": "rope", "head_dim": 2**40}, {"scheme": "rope", "positions": [2**41]}, {"scheme": "rope", "positions": [2**40]}, {"base": -1}])
def test_nothing_is_computed_first(server, body):
    watch = Stopwatch(server)
    assert server.post("/diagnose", {**body, "cos": [[1.0, 1.0]], "sin": [[0.0, 0.0]]}).status in (200, 422)
    assert watch.seconds() < 0.5


def test_a_tensor_beyond_64_mib(server):
    body = npy(np.zeros((4, 1024, 4100), "f4"))
    response = server.post("/diagnose?scheme=alibi", body, {"Content-Type": "application/x-npy"})
    check_problem(response, 413, "", ["67108864", "Some rows are enough", "first 256 positions"])


# ---- Beliefs of odd kinds -----------------------------------------------------------------------------------------------------

ODD = [5, -1, 1e300, True, "", "x", [], [[]], {}, {"type": 5}, [1, "a"]]
EVIDENCE = {
    "rope": {"q": [[1.0, 2.0]], "q_out": [[1.0, 2.0]]},
    "xpos": {"cos": [[1.0]], "sin": [[0.0]]},
    "sinusoidal": {"encoding": [[0.0, 1.0], [0.8, 0.5]]},
    "alibi": {"bias": [[[0.0, "-Infinity"], [-0.5, 0.0]]]},
    "t5": {"buckets": [[0, 1], [17, 0]]},
}


@pytest.mark.parametrize("scheme", EVIDENCE)
def test_a_field_of_another_kind_is_refused(server, scheme):
    """Every parameter with values that it does not take: never a dropped connection, never a 500."""
    names = [p["name"] for p in server.get(f"/schemes/{scheme}").json()["parameters"]]
    for name in names + ["len", "offset", "positions", "grid", "lens", "segments", "q_len", "q_offset", "form", "weights", "preset"]:
        for value in ODD:
            response = server.post("/diagnose", {"scheme": scheme, **EVIDENCE[scheme], name: value})
            assert response.status in (200, 404, 413, 422), (name, value, response)


def test_a_transposed_bias_with_masked_keys(server):
    """[heads, k_len, q_len] with far more keys than queries: nothing outside the tensor is read."""
    bias = np.zeros((1, 2, 4000), "f4")
    bias[0, 0, 1] = -np.inf
    response = server.post("/diagnose", {"scheme": "alibi", "num_heads": 1, "q_len": 4000, "k_len": 2, "bias": inline(bias, "f32")})
    assert response.status == 200 and not response.json()["explained"]


# ---- Memory -------------------------------------------------------------------------------------------------------------------


def tables_of(n, pairs, base):
    angles = np.outer(np.arange(n), base ** (-np.arange(pairs) / pairs))
    return {"cos": np.cos(angles).astype("f2"), "sin": np.sin(angles).astype("f2")}


def test_little_memory_gives_the_same_answer_or_none(server):
    """What a diagnosis cannot allocate must not look like a hypothesis that does not fit."""
    body, headers = multipart(request='{"scheme":"rope","head_dim":256}', **{name: npy(a) for name, a in tables_of(4096, 128, 12345.0).items()})
    whole = server.post("/diagnose", body, headers)
    assert whole.status == 200 and whole.json()["explained"]
    statuses = set()
    for limit in (8, 12, 16, 20, 24, 32, 64, 400):
        with start_server("--max-memory", str(limit << 20)) as small:
            answer = small.post("/diagnose", body, headers)
            statuses.add(answer.status)
            assert answer.status in (413, 503) or answer.body == whole.body, (limit, answer)
    assert 200 in statuses and len(statuses) > 1, statuses


@pytest.mark.skipif(SANITIZED, reason="sanitizers keep what was freed, 256 MiB of it")
def test_rotated_heads_of_many_channels_stay_within_the_limit():
    """f16 [2048, 1024]: tables of every position are kept for one candidate at a time."""
    q = np.ones((2048, 1024), "f2")
    body, headers = multipart(request='{"scheme":"rope","layout":"half"}', q=npy(q), q_out=npy(q))
    with start_server("--max-memory", "100000000") as small:
        assert small.post("/diagnose", body, headers).status in (200, 413, 503)
        assert small.memory() < 250e6
