"""/attention of random requests of every scheme against truth/answers_attention.py; the laws that need no values of a formula."""
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import attention_drawn
import truth.answers
import truth.answers_attention
from tensors import from_raw

NEAR = {"f64": 1e-12, "f32": 4e-6}
SEEDS, ONCE = st.integers(0, 2 ** 32 - 1), [Phase.explicit, Phase.generate]  # a seed has no simpler one


def check(server, request, dtype):
    got = from_raw(server.ask("/attention", **request, format="raw"))
    size = max((np.abs(got[name][np.isfinite(got[name])]).max(initial=1) for name in ("scores", "terms") if name in got), default=1)
    try:
        truth.answers.compare("/attention", request, got, NEAR[dtype] * float(size))
    except AssertionError as error:
        raise AssertionError(f"{error} of {request}") from None
    if "probs" in got and "sinks" not in request:
        sums = got["probs"].sum(-1, dtype="f8")
        assert np.abs(sums[sums > 0] - 1).max(initial=0) <= 1e-6
    told = server.ask("/attention", **request, data=False).json()
    for name, value in truth.answers_attention.told(request).items():
        assert told.get(name) == value, f"{name}: {told.get(name)}, not {value}, of {request}"


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("name", ["none", *attention_drawn.SCHEMES])
@settings(max_examples=40, phases=ONCE)
@given(seed=SEEDS)
def test_queries_and_keys(server, name, dtype, seed):
    check(server, attention_drawn.drawn(np.random.default_rng(seed), name, dtype), dtype)


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("name", attention_drawn.ABSOLUTE)
@settings(max_examples=12, phases=ONCE)
@given(seed=SEEDS)
def test_embeddings(server, name, dtype, seed):
    check(server, attention_drawn.drawn_of_x(np.random.default_rng(seed), name, dtype), dtype)


def test_every_scheme_is_drawn(server):
    known = {scheme["name"] for scheme in server.get("/schemes").json()["schemes"] if "/attention" in scheme["endpoints"]}
    assert {*attention_drawn.SCHEMES, *attention_drawn.ABSOLUTE} == known
