"""`unseen`: the mistakes that a tensor which is as believed could not have shown. Each mistake is made here with NumPy: it is unseen if
the tensor stays the same to float32 under all its alternatives, though a vector is rotated otherwise where the sequence goes on. Other schemes:
../../cases/diagnose_unseen.jsonl."""
import re

import numpy as np
import pytest

import truth
from asking import inline
from conftest import start_server
from diagnosing import diagnose

R, FAR = 16, np.r_[0:32, 2.0 ** np.arange(5, 21)]  # channels; rows of the continued sequence
BASES = [1e4, 5e5, 1e6, 1e7, 150000, 160000, 100, 256, 500, 1e3, 2000, 25e3, 5e4, 1e5, 2e6, 5e6, 8e6, 5e7]
RIGHT = {"layout": "half", "direction": 1, "first": 0, "step": 1, "base": 1e4, "factor": 1, "linear": 1, "power": 0, "reversed": False}

# code: what one who makes the mistake has in place of the belief; {} changes nothing
MISTAKES = {
    "layout_swapped": lambda s, n: [{"layout": "half"}, {"layout": "interleaved"}, {"layout": "interleaved_to_half"}],
    "direction_reversed": lambda s, n: [{"direction": -s["direction"]}],
    "off_by_one": lambda s, n: [{"first": s["first"] + 1}, {"first": s["first"] - 1}],
    "offset_other": lambda s, n: [{"first": s["first"] + k} for k in (2, -2, 3, -3, -s["first"])],
    "not_rotated": lambda s, n: [{"first": 0, "step": 0}],
    "rotated_twice": lambda s, n: [{"first": 2 * s["first"], "step": 2}],
    "positions_reversed": lambda s, n: [{"first": s["first"] + n - 1, "step": -1}] if n > 1 else [],
    "position_stride": lambda s, n: [{"step": k} for k in (2, 3, 4, 8)],
    "positions_constant": lambda s, n: [{"step": 0}] if n > 1 and s["first"] else [],
    "base_other": lambda s, n: [{"base": base} for base in BASES],
    "ladder_from_one": lambda s, n: [{"power": 1}],
    "ladder_reversed": lambda s, n: [{"reversed": True}],
    "scaling_missing": lambda s, n: [{"linear": 1}],
    "attention_factor_missing": lambda s, n: [{"factor": 1}] if s["factor"] != 1 else [],
}


def ladder(s):
    w = s["base"] ** (-(2 * np.arange(R // 2) + 2 * s["power"]) / R) / s["linear"]
    return w[::-1] if s["reversed"] else w


def places(s, rows):
    return s["first"] + s["step"] * np.asarray(rows, float)


def turned(s, x, p):
    return truth.turned(x, s["direction"] * np.outer(p, ladder(s)), s["layout"], s["factor"])


def queries(n):
    return np.random.default_rng(1).standard_normal((n, R)).astype("f4").astype(float)


def expanded(s, x):
    return np.repeat(x, 2, -1) if s["layout"] == "interleaved" else np.concatenate([x, x], -1)


def tables(s, n, spread=lambda s, x: x):
    angle = s["direction"] * np.outer(places(s, range(n)), ladder(s))
    return {"cos": spread(s, s["factor"] * np.cos(angle)), "sin": spread(s, s["factor"] * np.sin(angle))}


EVIDENCE = {
    "pairs": tables,
    "expanded": lambda s, n: tables(s, n, expanded),
    "rotated": lambda s, n: {"q": queries(n), "q_out": turned(s, queries(n), places(s, range(n)))},
    "freqs_cis": lambda s, n: {"freqs_cis": np.stack(list(tables(s, n).values()), -1)},
    "angles": lambda s, n: {"angles": s["direction"] * np.outer(places(s, range(n)), ladder(s))},
    "inv_freq": lambda s, n: {"inv_freq": ladder(s)},
    "position_ids": lambda s, n: {"position_ids": places(s, range(n)).astype("i8")},
}
BELIEFS = {
    "six rows": ({}, 6), "row 0": ({}, 1), "row 3": ({"first": 3}, 1), "from 3": ({"first": 3}, 6), "interleaved": ({"layout": "interleaved"}, 6),
    "scaled": ({"linear": 4, "factor": 1.5}, 6), "scaled, row 0": ({"linear": 4, "factor": 1.5}, 1), "backwards": ({"direction": -1}, 6),
}


def is_same(a, b):
    """To a float32 or two of each number; small sums of products differ by those of their terms."""
    return all(np.allclose(a[k].astype("f4"), b[k].astype("f4"), rtol=2.5e-7, atol=1e-6 if k == "q_out" else 1e-30) for k in a)


def asked(kind, s, n):
    sent = {name: inline(x if x.dtype == "i8" else x.astype("f4"), "i64" if x.dtype == "i8" else "f32") for name, x in EVIDENCE[kind](s, n).items()}
    scaling = {"scaling": {"type": "linear", "factor": s["linear"]}} if s["linear"] != 1 else {}
    factor = {"attention_factor": s["factor"]} if s["factor"] != 1 else {}
    return {"scheme": "rope", "head_dim": R, "base": s["base"], "layout": s["layout"], "direction": s["direction"], "len": n, "offset": s["first"],
            **scaling, **factor, **sent}


@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("kind", EVIDENCE)
def test_a_mistake_is_unseen_if_no_number_changes(server, kind, belief):
    more, n = BELIEFS[belief]
    s = {**RIGHT, **more}
    answer = diagnose(server, asked(kind, s, n))
    assert answer["explained"] and answer["findings"][0]["code"] == "as_believed", answer["findings"]
    x, believed = queries(len(FAR)), EVIDENCE[kind](s, n)
    for code, alternatives in MISTAKES.items():
        others = [{**s, **change} for change in alternatives(s, n)]
        others = [o for o in others if np.abs(turned(o, x, places(o, FAR)) - turned(s, x, places(s, FAR))).max() > 1e-6]
        unseen = len(others) > 0 and all(is_same(EVIDENCE[kind](o, n), believed) for o in others)
        assert (code in answer["unseen"]) == unseen, (code, unseen, answer["unseen"])


def test_examples_of_the_law(server):
    def unseen(kind, **more):
        return diagnose(server, asked(kind, {**RIGHT, **more}, 6))["unseen"]

    assert "layout_swapped" in unseen("pairs") and "layout_swapped" not in unseen("expanded") + unseen("rotated")
    assert unseen("rotated") == []
    one = diagnose(server, asked("pairs", RIGHT, 1))["unseen"]
    assert {"layout_swapped", "direction_reversed", "rotated_twice", "position_stride", "base_other", "ladder_reversed"} <= set(one)
    assert "off_by_one" not in one and "off_by_one" in unseen("inv_freq")
    order = [f["code"] for f in server.get("/schemes").json()["faults"]]
    assert one == sorted(one, key=order.index) and len(one) == len(set(one)) <= 32


def test_what_does_not_fit_says_nothing(server):
    body = asked("pairs", RIGHT, 6)
    assert diagnose(server, {**body, "base": 500000})["unseen"] == []
    assert diagnose(server, {**body, "cos": inline(np.ones((6, 8), "f4") / 3, "f32")})["unseen"] == []
    without = {name: body[name] for name in ("cos", "sin")}
    assert diagnose(server, without)["findings"][0]["code"] == "identified" and diagnose(server, without)["unseen"] == []


def test_angles_in_float32_hide_what_exact_ones_hide(server):
    """The verdict is rounding, and the numbers are compared by it; one that is narrower is compared in its dtype."""
    w = 1 / np.float32(1e4) ** (np.arange(0, R, 2, dtype="f4") / np.float32(R))
    angle = np.arange(4000, 4006, dtype="f4")[:, None] * w
    body = {"scheme": "rope", "head_dim": R, "base": 10000, "offset": 4000, "cos": inline(np.cos(angle), "f32"), "sin": inline(np.sin(angle), "f32")}
    answer = diagnose(server, body)
    assert answer["candidates"][0]["verdict"] == "rounding"
    assert {"layout_swapped"} <= set(answer["unseen"]) and not {"off_by_one", "base_other", "direction_reversed"} & set(answer["unseen"])


def test_work_that_ends_early_is_said_to(server):
    """What is left of --max-analysis after the search is spent: then some codes may be missing, and used_all says so."""
    body = asked("pairs", RIGHT, 1)
    whole = diagnose(server, body)
    with start_server("--max-analysis", "1") as small:
        least = float(re.search(r"about (\d+) multiply-adds for single", small.post("/diagnose", body).json()["detail"])[1])
    with start_server("--max-analysis", str(int(least) + 1), "--answer-cache", "0") as small:
        cut = [diagnose(small, body) for _ in range(2)]
    assert cut[0] == cut[1] and "used_all" not in whole
    assert cut[0]["findings"][0]["code"] == "as_believed" and set(cut[0]["unseen"]) <= set(whole["unseen"])
    assert cut[0].get("used_all") is True or cut[0]["unseen"] == whole["unseen"]
