"""Tensors as torch, NumPy, a debugger or a log print them, at several precisions. Truth is NumPy: tables by the formulas, printed here in
the way of each program."""
import json

import numpy as np
import pytest

from diagnosing import codes_of, diagnose, finding
from tensors import multipart
from truth import evidence, rotary

N, D = 24, 32
random = np.random.default_rng(12)


def ladder(base=10000.0, width=D):
    return evidence.powers(base, width)


def tables(w, positions=np.arange(N)):
    angles = (np.asarray(positions)[:, None] * w).astype("f4")
    return {"cos": np.cos(angles).astype("f4"), "sin": np.sin(angles).astype("f4")}


# ---- Who prints -----------------------------------------------------------------------------------------------------------------


def nested(x, one, comma=", ", edge=0):
    """Brackets; edge: so many items at each end of an axis, the others left out."""
    if x.ndim == 0:
        return one(x)
    items = [nested(y, one, comma, edge) for y in x]
    if edge and len(items) > 2 * edge:
        items[edge:-edge] = ["..."]
    return "[" + (comma if x.ndim == 1 else comma.rstrip() + "\n ").join(items) + "]"


def torch(x, digits=4, edge=0):
    return f"tensor({nested(x, lambda v: f'{v:{digits + 3}.{digits}f}', edge=edge)}, device='cuda:0')"


def scientific(x):
    return f"tensor({nested(x, lambda v: f'{v:11.4e}')})"


def numpy(x, digits=8, edge=0):
    with np.printoptions(precision=digits, threshold=1 if edge else 10**6, edgeitems=edge or 3, linewidth=75):
        return str(x)


def array(x, digits=8):
    with np.printoptions(precision=digits, threshold=10**6):
        return repr(x)


def log(x, digits=4):
    return "\n".join(f"2026-03-0{1 + i % 9} 12:00:{i:02d},{i * 37 % 1000:03d} INFO [rank{i % 2}] rope.py:41 row {i}: {nested(row, lambda v: f'{v:.{digits}f}')}"
                     for i, row in enumerate(x))


def columns(x, digits=5):
    return "\n".join(" ".join(f"{v: .{digits}f}" for v in row) for row in np.atleast_2d(x))


def factored(x):
    return "1.0e-01 *\n\n" + columns(x * 10, 6)


def rounded(x, digits=4):
    return np.round(x.astype(float), digits).tolist()


PRINTS = {
    "torch": torch, "torch-6": lambda x: torch(x, 6), "torch-3": lambda x: torch(x, 3), "scientific": scientific, "numpy": numpy,
    "numpy-4": lambda x: numpy(x, 4), "array": array, "log": log, "columns": columns, "factor": factored, "json": rounded,
    "json-6": lambda x: rounded(x, 6), "unicode": lambda x: torch(x).replace("-", "\u2212"),
}
EXPANDED = {name: np.concatenate([x, x], -1) for name, x in tables(ladder()).items()}
ROPE = {"scheme": "rope", "head_dim": D, "layout": "half"}
POSITIONS = np.arange(N)[:, None]
WAVES = np.stack([np.sin(POSITIONS * ladder()), np.cos(POSITIONS * ladder())], -1).reshape(N, D)
RIGHT = {  # the belief, the tensors that it gives
    "tables": (ROPE, tables(ladder())),
    "expanded": (ROPE, EXPANDED),
    "linear": ({**ROPE, "scaling": {"type": "linear", "factor": 4}}, tables(ladder() / 4)),
    "offset": ({**ROPE, "offset": 700}, tables(ladder(), np.arange(700, 700 + N))),
    "sinusoidal": ({"scheme": "sinusoidal", "dim": D}, {"encoding": WAVES}),
    "rotated": (ROPE, None),
}
Q = random.normal(size=(N, D))
TURNED = rotary.at_positions(Q, range(N), layout="half")
RIGHT["rotated"] = (ROPE, {"q": Q, "q_out": TURNED})
WRONG = {  # the belief, the tensors of another configuration, the mistake
    "base": (ROPE, tables(ladder(500000.0)), "base_other"),
    "layout": ({**ROPE, "layout": "interleaved"}, EXPANDED, "layout_swapped"),
    "direction": (ROPE, {"cos": tables(ladder())["cos"], "sin": -tables(ladder())["sin"]}, "direction_reversed"),
    "scaling": ({**ROPE, "scaling": {"type": "linear", "factor": 4}}, tables(ladder()), "scaling_missing"),
    "next": (ROPE, tables(ladder(), np.arange(1, N + 1)), "off_by_one"),
    "far": (ROPE, tables(ladder(), np.arange(300, 300 + N)), "offset_other"),
    "rotated": ({**ROPE, "layout": "interleaved"}, {"q": Q, "q_out": TURNED}, "layout_swapped"),
}


def asked(server, belief, tensors, style):
    return diagnose(server, {**belief, **{name: style(x) for name, x in tensors.items()}})


@pytest.mark.parametrize("style", PRINTS)
@pytest.mark.parametrize("name", RIGHT)
def test_right_tables_fit(server, name, style):
    belief, tensors = RIGHT[name]
    answer = asked(server, belief, tensors, PRINTS[style])
    assert codes_of(answer)[0] in ("as_believed", "angles_f32"), (answer["findings"], answer["belief"])
    assert answer["arithmetic"] is None or style in ("array", "numpy"), "few digits do not tell who computed them"


@pytest.mark.parametrize("style", PRINTS)
@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_named(server, name, style):
    belief, tensors, code = WRONG[name]
    answer = asked(server, belief, tensors, PRINTS[style])
    assert answer["explained"] and codes_of(answer)[0] == code, answer["findings"]


def test_a_wrong_number_is_no_rounding(server):
    cos, sin = tables(ladder()).values()
    off = cos.copy()
    off[9, 3] += 0.0003
    noisy = cos + 1e-3 * random.normal(size=cos.shape)
    for wrong in (off, noisy):
        answer = asked(server, ROPE, {"cos": wrong, "sin": sin}, torch)
        assert not answer["explained"], answer["findings"]
    bad = asked(server, ROPE, {"cos": off, "sin": sin}, torch)["belief"]["first_bad"]
    assert bad["index"] == [9, 3] and bad["found"] == pytest.approx(round(float(off[9, 3]), 4)), "as it was printed"


def test_what_is_left_out_is_not_compared(server):
    rows = np.arange(2048)
    for belief, codes in ((ROPE, {"as_believed", "angles_f32"}), ({**ROPE, "base": 500000.0}, {"base_other"}), ({**ROPE, "offset": 1}, {"off_by_one"})):
        cos, sin = tables(ladder(), rows).values()
        shown = {"cos": {"data": torch(cos, edge=3), "shape": [2048, 16]}, "sin": {"data": numpy(sin, 4, edge=3), "shape": [2048, 16]}}
        answer = diagnose(server, {**belief, **shown})
        assert codes & set(codes_of(answer)), answer["findings"]
    cos[5, 5] = 9  # nobody sees it
    assert diagnose(server, {**ROPE, **shown, "cos": {"data": torch(cos, edge=3), "shape": [2048, 16]}})["explained"]
    cos[-1, -1] = 9
    assert not diagnose(server, {**ROPE, **shown, "cos": {"data": torch(cos, edge=3), "shape": [2048, 16]}})["explained"]


def test_a_gap_of_rows_or_of_columns(server):
    cos, sin = tables(ladder(), np.arange(40)).values()
    texts = {name: torch(x[:, :], edge=0).split("\n") for name, x in (("cos", cos), ("sin", sin))}
    cut = {name: "\n".join(lines[:9] + [" ...,"] + lines[-2:]) for name, lines in texts.items()}
    assert codes_of(diagnose(server, {**ROPE, **cut})) == ["as_believed"], "rows behind a gap are dropped"
    shown = {"cos": torch(cos, edge=3), "sin": torch(sin, edge=3)}
    assert codes_of(diagnose(server, {**ROPE, "len": 40, **shown})) == ["as_believed"], "the belief has the places"
    assert "base_other" in codes_of(diagnose(server, {**ROPE, "base": 500000.0, **shown}))
    response = server.post("/diagnose", shown)
    assert response.status == 422 and response.json()["pointer"] == "/cos" and "shape" in response.json()["detail"]
    response = server.post("/diagnose", {**ROPE, "q_out": torch(TURNED), "q": {"data": torch(TURNED, edge=3), "shape": [N, D]}})
    assert response.status == 422 and response.json()["pointer"] == "/q" and "threshold" in response.json()["detail"]


def test_without_a_belief(server):
    answer = asked(server, {}, tables(ladder(500000.0)), torch)
    assert codes_of(answer)[0] == "identified" and answer["candidates"][0]["config"]["base"] == pytest.approx(5e5, rel=1e-3)
    few = {"cos": "tensor([[ 1.0000,  1.0000], [ 0.5403,  1.0000]])", "sin": "tensor([[ 0.0000,  0.0000], [ 0.8415,  0.0100]])"}
    answer = diagnose(server, few)
    assert not answer["explained"] and "/diagnose/probe" in answer["findings"][0]["detail"], answer["findings"]


def test_debuggers_and_other_forms(server):
    w = ladder(width=16).astype("f4")
    gdb = "$1 = {" + ", ".join(f"{x:.9g}" for x in w) + "}"
    lldb = "(float [8]) $0 = {\n" + "\n".join(f"  [{i}] = {x:.6g}" for i, x in enumerate(w)) + "\n}"
    studio = "\n".join(f"[{i}]\t{x:.8f}\tfloat" for i, x in enumerate(w))
    numbered = "\n".join(f"{i} {x:.7f}" for i, x in enumerate(w))
    for text in (gdb, lldb, studio, numbered, columns(w, 7), "\n".join(f"{x:.7f}" for x in w), f"inv_freq = {w.tolist()}"):
        answer = diagnose(server, {"scheme": "rope", "head_dim": 16, "inv_freq": text})
        assert codes_of(answer) == ["as_believed"], (text, answer["findings"])
    answer = diagnose(server, {"scheme": "rope", "head_dim": 16, "base": 500.0, "tensors": {"rope.inv_freq": studio}})
    assert "base_other" in codes_of(answer) and answer["taken"][0]["as"] == "inv_freq"
    cos, sin = tables(ladder()).values()
    parts = multipart(request=json.dumps(ROPE), cos=torch(cos).encode(), sin=numpy(sin).encode())
    assert codes_of(diagnose(server, *parts)) == ["angles_f32"]
    half = np.float16(np.cos(np.arange(N)[:, None] * ladder())), np.float16(np.sin(np.arange(N)[:, None] * ladder()))
    shown = {name: f"tensor({nested(x, lambda v: f'{float(v):.4f}')}, dtype=torch.float16)" for name, x in zip(("cos", "sin"), half)}
    assert diagnose(server, {**ROPE, **shown})["explained"]


def test_decimals_may_be_stated(server):
    cos, sin = tables(ladder()).values()
    coarse = {"cos": np.trunc(cos * 1e4) / 1e4, "sin": np.trunc(sin * 1e4) / 1e4}  # cut, not rounded: off by a whole unit
    assert not asked(server, ROPE, coarse, rounded)["explained"]
    assert asked(server, {**ROPE, "decimals": 3}, coarse, rounded)["explained"]
    assert server.post("/check", {**ROPE, **{name: torch(x) for name, x in tables(ladder()).items()}}).json()["fits"] is True


def test_below_the_digits(server):
    """A base that differs in the ninth digit shows in no number of four decimals."""
    answer = asked(server, {**ROPE, "base": 10000.0001}, tables(ladder()), torch)
    assert finding(answer, "as_believed") and answer["next"] is None
    scaling = {"type": "linear", "factor": 1.00000005}
    angles = POSITIONS * ladder() / scaling["factor"]
    answer = asked(server, {**ROPE, "scaling": scaling}, {"cos": np.cos(angles), "sin": np.sin(angles)}, torch)
    assert "scaling_missing" in answer["unseen"], answer["unseen"]
    believed, other = (one["value"] for one in answer["next"]["values"])
    assert 0 < abs(believed - other) < 1e-5 and answer["next"]["values"][1]["codes"] and server.post("/check", {**ROPE, "cos": "none", "sin": "none"}).status == 422
