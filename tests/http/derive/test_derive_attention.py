"""/derive of attention maps: random requests of every scheme. The last step is the very number of /attention, and near that of
truth/answers_attention.py; the contributions add up; the softmax is that of the row."""
import math
import struct

import mpmath
import numpy as np
import pytest

import attention_drawn
import truth.answers
import truth.answers_attention
from tensors import from_raw

MAPS, PLACES, DRAWS = ("scores", "probs"), 4, 6
FORMS = {"f32": "f", "f64": "d"}


def asked(name, dtype, seed):
    rng = np.random.default_rng(seed)
    draw = attention_drawn.drawn_of_x if name in attention_drawn.ABSOLUTE and (name != "none" or seed % 2) else attention_drawn.drawn
    request = draw(rng, name, dtype)
    while request.get("kernel") == "linear":
        request = draw(rng, name, dtype)
    return {**request, "outputs": [*MAPS]}, rng


def bits_of(x, dtype):
    return f"0x{int.from_bytes(struct.pack('>' + FORMS[dtype], x), 'big'):0{2 * struct.calcsize(FORMS[dtype])}x}"


def steps_of(one):
    return {step["symbol"]: float(step["value"]) for step in one["steps"] if "value" in step}


def check_steps(one, tensor, maps, place, tolerance):
    """The contributions are q·k; the probability is e over Z, and Z the sum of the row."""
    steps = steps_of(one)
    if math.isinf(maps["scores"][place]):
        assert steps["s"] == -math.inf and (tensor == "scores" or steps["p"] == 0), one
        return
    parts = [value for symbol, value in steps.items() if symbol.startswith(("pair_", "channel_")) or symbol == "rest"]
    assert len(parts) <= 9 and math.fsum(parts) == pytest.approx(steps["q·k"], rel=1e-12, abs=1e-14), one
    sizes = [abs(value) for symbol, value in steps.items() if symbol.startswith(("pair_", "channel_"))]
    assert sizes == sorted(sizes, reverse=True), one
    assert steps["s"] == pytest.approx(maps["scores"][place], rel=tolerance, abs=tolerance), one
    if tensor == "probs":
        row = maps["scores"][place[:-1]]
        assert steps["max"] == pytest.approx(row.max(), rel=tolerance, abs=tolerance), one
        assert steps["Z"] - steps.get("sink", 0) == pytest.approx(np.exp(row - row.max()).sum(), rel=tolerance), one
        assert steps["p"] == pytest.approx(maps["probs"][place], rel=tolerance, abs=tolerance), one


@pytest.mark.parametrize("dtype", FORMS)
@pytest.mark.parametrize("name", [*attention_drawn.SCHEMES, *attention_drawn.ABSOLUTE])
def test_the_last_step_is_the_number(server, name, dtype):
    for seed in range(DRAWS):
        request, rng = asked(name, dtype, seed)
        maps = from_raw(server.ask("/attention", **request, format="raw"))
        true = truth.answers_attention.answer(request)
        tensor = MAPS[seed % 2]
        places = [[int(rng.integers(n)) for n in maps[tensor].shape] for _ in range(PLACES)]
        answer = server.post("/derive", {key: value for key, value in request.items() if key != "outputs"} | {"tensor": tensor, "index": places})
        assert answer.status == 200, (request, answer)
        for place, one in zip(map(tuple, places), answer.json()["numbers"]):
            number = maps[tensor].dtype.type(one["number"]["value"])
            assert number == maps[tensor][place] and one["number"]["bits"] == bits_of(number, dtype), (place, one)
            check_steps(one, tensor, true, place, 1e-9 if dtype == "f64" else 2e-5)


def exact(q, k, i, j, base):
    """q_i·k_j, turned by rope of layout half, with 40 digits: contributions of its pairs."""
    mpmath.mp.dps, d = 40, len(q[0])
    out = []
    for c in range(d // 2):
        w = mpmath.mpf(base) ** (-mpmath.mpf(2 * c) / d)
        turn = [mpmath.mpc(row[c], row[c + d // 2]) * mpmath.expj(p * w) for row, p in ((q[i], i), (k[j], j))]
        out.append(mpmath.re(turn[0] * mpmath.conj(turn[1])))
    return out


def test_twenty_digits(server):
    """rope by mpmath: the eight largest pairs in their order, the rest, the score; f64 and f32 answers have the same steps."""
    rng = np.random.default_rng(5)
    q, k = (rng.standard_normal((12, 32)).astype("f4").astype(float).tolist() for _ in "qk")
    one = server.post("/derive", {"scheme": "rope", "layout": "half", "q": q, "k": k, "tensor": "scores", "query": 11, "key": 3}).json()
    parts = exact(q, k, 11, 3, 10000)
    order = sorted(range(16), key=lambda c: -abs(parts[c]))
    steps = [(step["symbol"], step["value"]) for step in one["steps"]]
    true = [(f"pair_{c}", parts[c]) for c in order[:8]] + [("rest", mpmath.fsum(parts[c] for c in order[8:])), ("q·k", mpmath.fsum(parts))]
    true += [(symbol, mpmath.fsum(parts) / mpmath.sqrt(32)) for symbol in ("l", "s")]
    for (symbol, value), (name, x) in zip(steps, true, strict=True):
        assert symbol == name, steps
        assert abs(mpmath.mpf(value) - x) <= abs(x) * mpmath.mpf(10) ** (-15 if symbol in ("l", "s") else -19), (symbol, value, x)
    assert one["number"]["index"] == [11, 3] and float(one["steps"][-1]["rounded"]) == one["number"]["value"], one
