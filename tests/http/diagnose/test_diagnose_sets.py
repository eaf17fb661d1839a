"""/diagnose and sets of tensors that are drawn: mistakes in bfloat16, in few rows, three at once, and what no configuration gives. Scalings that are
drawn: test_diagnose_ladders.py. A set has a share that must be named right; SETS=20 draws twenty times as many of each. Truth is NumPy by the papers' formulas,
angles in float32 as most code computes them."""
import os

import numpy as np
import pytest

from diagnosing import ask, codes_of
from tensors import to_bf16
from truth import evidence, rotary

f4 = np.float32
TIMES = int(os.environ.get("SETS", "1"))
HEAD = 64
BELIEF = {"scheme": "rope", "head_dim": HEAD, "layout": "half", "base": 10000}


def rotated(q, at, w, layout="half", direction=1):
    return rotary.at_angles(q, direction * np.outer(at, w).astype(f4), layout).astype(f4)


def drawn(rng, n, heads=2, width=HEAD):
    return rng.standard_normal((1, heads, n, width)).astype(f4)


# A mistake: its codes, and what becomes of positions, frequencies, layout and direction. Of each kind there is one in a hypothesis.
MISTAKES = {
    "positions": [({"off_by_one"}, {"at": lambda p: p + 1}), ({"offset_other"}, {"at": lambda p: p + 7}),
                  ({"positions_reversed"}, {"at": lambda p: p[::-1]}), ({"position_stride"}, {"at": lambda p: 3 * p})],
    "layout": [({"layout_swapped"}, {"layout": "interleaved"})],
    "direction": [({"direction_reversed"}, {"direction": -1})],
    "ladder": [({"base_other"}, {"w": evidence.powers(5e5, HEAD)}), ({"base_other"}, {"w": evidence.powers(1e6, HEAD)}),
               ({"scaling_other", "positions_scaled"}, {"w": evidence.powers(1e4, HEAD) / 4})]}


def made(rng, n, mistakes, offset=0):
    at, q, changed = offset + np.arange(float(n)), drawn(rng, n), {"w": evidence.powers(1e4, HEAD)}
    for _, change in mistakes:
        changed |= change
    rule = changed.pop("at", lambda p: p)
    return q, rotated(q, rule(at), **changed)


def told(server, q, out, mistakes, **belief):
    answer = ask(server, {**BELIEF, **belief}, q=q, q_out=out)
    found = set(codes_of(answer))
    fewer = len(found - {"angles_f32"}) < len(mistakes)  # two that undo each other: backwards, and the other direction
    return answer["explained"] and (fewer or all(found & codes for codes, _ in mistakes)), (answer["explained"], codes_of(answer))


def singles():
    return [one for several in MISTAKES.values() for one in several]


@pytest.mark.parametrize("name, n, narrow, share", [("bf16", 32, True, 42 / 46), ("few rows", 4, False, 50 / 51)])
def test_single_mistakes(server, name, n, narrow, share):
    rng, missed, asked = np.random.default_rng(11), [], 0
    for _ in range(TIMES):
        for mistake in singles():
            q, out = made(rng, n, [mistake])
            if narrow:
                q = to_bf16(q.astype(float))
                out = to_bf16(rotated_again(q, n, mistake))
                q, out = q.astype(f4), out.astype(f4)
            good, said = told(server, q, out, [mistake])
            asked += 1
            missed += [] if good else [(mistake[0], said)]
    assert asked - len(missed) >= np.floor(share * asked), (name, missed)


def rotated_again(q, n, mistake):
    """Of queries in bfloat16."""
    changed = {"w": evidence.powers(1e4, HEAD), **mistake[1]}
    rule = changed.pop("at", lambda p: p)
    return rotated(q.astype(f4), rule(np.arange(float(n))), **changed).astype(float)


def test_three_mistakes_at_once(server):
    rng, missed = np.random.default_rng(12), []
    for _ in range(5 * TIMES):
        kinds = rng.choice(list(MISTAKES), 3, replace=False)
        mistakes = [MISTAKES[kind][rng.integers(len(MISTAKES[kind]))] for kind in kinds]
        q, out = made(rng, 24, mistakes, 3)
        good, said = told(server, q, out, mistakes, offset=3)
        missed += [] if good else [([codes for codes, _ in mistakes], said)]
    assert not missed, missed


def negatives(rng, n, width):
    """(request, tensors) of random angles, an orthogonal map, noise of 1e-4, one number off by 0.01."""
    angles = np.outer(np.arange(n), evidence.powers(1e4, width)).astype(f4)
    cos, sin = np.cos(angles), np.sin(angles)
    random = rng.uniform(-np.pi, np.pi, angles.shape).astype(f4)
    q = drawn(rng, n, width=width)
    off = cos.copy()
    off[rng.integers(n), rng.integers(width // 2)] += f4(0.01)
    noise = [(x + 1e-4 * rng.standard_normal(x.shape)).astype(f4) for x in (cos, sin)]
    yield "angles", {"cos": np.cos(random), "sin": np.sin(random)}
    yield "orthogonal", {"q": q, "q_out": (q @ np.linalg.qr(rng.standard_normal((width, width)))[0]).astype(f4)}
    yield "noise", {"cos": noise[0], "sin": noise[1]}
    yield "one number", {"cos": off, "sin": sin}


def test_what_no_configuration_gives(server):
    rng, wrong = np.random.default_rng(14), []
    for _ in range(2 * TIMES):
        n, width = int(rng.integers(1, 41)), int(rng.choice([4, 8, 16, 32, 64, 128] if TIMES > 1 else [4, 8, 16]))
        for name, tensors in negatives(rng, n, width):
            answer = ask(server, {"scheme": "rope", "head_dim": width, "layout": "half"}, **tensors)
            wrong += [(name, n, width, answer["findings"])] if answer["explained"] else []
    assert not wrong, wrong


def test_random_maps(server):
    """Probabilities in bfloat16, whose limits grow with the vectors: 7 of 80 were explained once."""
    rng, wrong = np.random.default_rng(15), []
    for _ in range(3 * TIMES):
        q, k = (to_bf16(rng.standard_normal((1, 1, n, 8))).astype(f4) for n in (3, 5))
        p = rng.uniform(size=(1, 1, 3, 5))
        probs = to_bf16(p / p.sum(-1, keepdims=True)).astype(f4)
        answer = ask(server, {"scheme": "rope", "layout": "half"}, probs=probs, q=q, k=k)
        wrong += [answer["findings"]] if answer["explained"] else []
    assert not wrong, wrong
