"""The lines that mend a mistake are executed: what a wrong port has, and then its `cure`, is what the formulas give. Truth is NumPy."""
import numpy as np
import pytest

from diagnosing import ask, finding
import test_diagnose_measured as measured
from truth import rotary

N, D = 24, 32
Q = np.random.default_rng(4).normal(size=(2, 3, N, D))
PLAIN = 10000.0 ** (-np.arange(0, D, 2) / D)


def port(positions=np.arange(N), w=PLAIN, factor=1.0, change=lambda cos, sin: (cos, sin), layout="half", times=1, out=lambda x: x):
    """A port's variables; what it does wrong is an argument."""
    angles = np.asarray(positions, float)[:, None] * w
    cos, sin = change(np.cos(angles) * factor, np.sin(angles) * factor)
    q_out = Q
    for _ in range(times if 2 * len(w) == D else 0):
        q_out = rotary.rotate(q_out, cos, sin, layout)
    return {"position_ids": np.asarray(positions), "inv_freq": w, "cos": cos, "sin": sin, "q": Q, "q_out": out(q_out), "np": np}


def go_on(before, after, factor, change, layout):
    """The port behind the line: whatever depends on the variables that it has set."""
    changed = {name for name in before if before[name] is not after[name]}
    if changed & {"position_ids", "inv_freq"}:
        angles = after["position_ids"][:, None] * after["inv_freq"]
        after["cos"], after["sin"] = change(np.cos(angles) * factor, np.sin(angles) * factor)
    if changed & {"position_ids", "inv_freq", "cos", "sin"} and "q_out" not in changed:
        after["q_out"] = rotary.rotate(Q, after["cos"], after["sin"], layout)
    return after


LINEAR = {"scaling": {"type": "linear", "factor": 4}}
YARN = {"scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 64}}
MISTAKES = {  # code: the belief's fields, what the port does wrong, what the right one does
    "layout_swapped": ({}, {"layout": "interleaved"}, {}, "q"),
    "layout_swapped interleaved": ({"layout": "interleaved"}, {"layout": "half"}, {"layout": "interleaved"}, "q"),
    "sin_cos_swapped": ({}, {"change": lambda cos, sin: (sin, cos)}, {}, "tables q"),
    "direction_reversed": ({}, {"change": lambda cos, sin: (cos, -sin)}, {}, "tables q"),
    "negated": ({}, {"change": lambda cos, sin: (-cos, -sin)}, {}, "tables"),
    "off_by_one": ({}, {"positions": np.arange(1, N + 1)}, {}, "tables q"),
    "offset_other": ({"offset": 9}, {"positions": np.arange(700, 700 + N)}, {"positions": np.arange(9, 9 + N)}, "tables q"),
    "not_rotated": ({}, {"positions": np.zeros(N)}, {}, "q"),
    "positions_reversed": ({}, {"positions": np.arange(N)[::-1]}, {}, "tables q"),
    "positions_scaled": ({}, {"positions": np.arange(N) * 1.3}, {}, "tables"),
    "rotated_twice": ({}, {"times": 2}, {}, "q"),
    "base_other": ({}, {"w": 500000.0 ** (-np.arange(0, D, 2) / D)}, {}, "tables q"),
    "scaling_missing": (LINEAR, {}, {"w": PLAIN / 4}, "tables q"),
    "ladder_reversed": ({}, {"w": PLAIN[::-1].copy()}, {}, "tables q"),
    "attention_factor_other": ({}, {"factor": 0.3}, {}, "tables q"),
    "attention_factor_missing": ({"attention_factor": 1.25}, {}, {"factor": 1.25}, "tables q"),
    "tensor_layout_other": ({"tensor_layout": "bnhd"}, {}, {"out": lambda x: np.swapaxes(x, 1, 2)}, "axes"),
}


@pytest.mark.parametrize("name, what", [(name, what) for name, row in MISTAKES.items() for what in row[3].split()])
def test_the_lines_mend_it(server, name, what):
    fields, mistake, right, _ = MISTAKES[name]
    wrong, belief = port(**mistake), {"scheme": "rope", "head_dim": D, "layout": "half", **fields}
    sent = {"cos": wrong["cos"], "sin": wrong["sin"]} if what == "tables" else {"q": Q, "q_out": wrong["q_out"]}
    answer = ask(server, belief | ({"form": "pairs"} if what == "tables" else {}), **{key: x.astype("f4") for key, x in sent.items()})
    cure = finding(answer, name.split()[0])["cure"]
    compile(cure["torch"], "torch", "exec")
    after = dict(wrong)
    exec(cure["numpy"], after)  # pylint: disable=exec-used
    after.pop("__builtins__")
    after = go_on(wrong, after, right.get("factor", 1.0) if "factor" in mistake else 1.0, mistake.get("change", lambda cos, sin: (cos, sin)),
                  mistake.get("layout", "half"))
    truth = port(**right)
    for key in sent:
        assert np.abs(after[key] - truth[key]).max() < 1e-6, (cure, key)


P = np.array([3, 9, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4])
LISTS = {"off_by_one": P + 1, "offset_other": P + 400, "offset_other real": P - 3.5, "positions_reversed": P[::-1], "positions_scaled": P * 1.3,
         "rotated_twice": P * 2, "position_stride": P * 3}


def mends_positions(cure, wrong, right):
    compile(cure["torch"], "torch", "exec")
    after = {"position_ids": np.array(wrong), "np": np}
    exec(cure["numpy"], after)  # pylint: disable=exec-used
    assert np.abs(after["position_ids"] - right).max() < 1e-9, cure


@pytest.mark.parametrize("name", LISTS)
def test_positions_that_are_no_run(server, name):
    tables = {key: x.astype("f4") for key, x in port(LISTS[name]).items() if key in ("cos", "sin")}
    answer = ask(server, {"scheme": "rope", "head_dim": D, "layout": "half", "form": "pairs", "positions": P.tolist()}, **tables)
    mends_positions(finding(answer, name.split()[0])["cure"], LISTS[name], P)


@pytest.mark.parametrize("belief", ["mrope", "video"])
@pytest.mark.parametrize("change", ["24/16", "half", "twice", "next", "-3.5", "backwards"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_positions_of_one_axis(server, belief, change, axis):
    fields, right, w, of_pair = measured.BELIEFS[belief]
    wrong, (changed, codes) = right.copy(), measured.CHANGES[change]
    wrong[axis] = changed(right[axis])
    cos, sin = measured.tables(wrong, w, of_pair)
    found = ask(server, {"scheme": "rope", "form": "pairs", **fields}, cos=cos, sin=sin)["findings"]  # angles_f32 may follow
    assert found[0]["code"] in codes | measured.ALSO
    if found[0]["code"] in codes:
        mends_positions(found[0]["cure"], wrong, right)


def test_a_shift_beside_a_factor_has_no_line(server):
    """Its factor alone does not mend it."""
    fields, right, w, of_pair = measured.BELIEFS["mrope"]
    wrong = np.concatenate([right[:1], 1.5 * right[1:2] + 2, right[2:]])
    cos, sin = measured.tables(wrong, w, of_pair)
    assert finding(ask(server, {"scheme": "rope", "form": "pairs", **fields}, cos=cos, sin=sin), "positions_scaled")["cure"] is None


ANGLES = np.arange(N)[:, None] * PLAIN
COLUMNS = {"half": np.concatenate([np.sin(ANGLES), np.cos(ANGLES)], -1), "interleaved": np.stack([np.sin(ANGLES), np.cos(ANGLES)], -1).reshape(N, D)}
FAR = np.subtract.outer(np.arange(12.0), np.arange(12.0))
ALIBI = np.where(FAR < 0, -np.inf, -(2.0 ** -np.arange(2, 10, 2))[:, None, None] * FAR)
SCORES = rotary.rotate(Q, np.cos(ANGLES), np.sin(ANGLES), "half") @ np.swapaxes(rotary.rotate(Q, np.cos(ANGLES), np.sin(ANGLES), "half"), -1, -2)
OTHERS = {  # code: belief, the tensor under its name, what the line makes of it
    "layout_swapped half": ({"scheme": "sinusoidal", "dim": D, "layout": "half"}, {"encoding": COLUMNS["interleaved"]}, COLUMNS["half"]),
    "layout_swapped interleaved": ({"scheme": "sinusoidal", "dim": D, "layout": "interleaved"}, {"encoding": COLUMNS["half"]}, COLUMNS["interleaved"]),
    "inverted": ({"scheme": "rope", "head_dim": D}, {"inv_freq": 1 / PLAIN}, PLAIN),
    "inv_freq_f16": ({"scheme": "rope", "head_dim": D}, {"inv_freq": PLAIN.astype("f2").astype(float)}, PLAIN),
    "mask_value": ({"scheme": "alibi", "num_heads": 4, "causal": True}, {"bias": np.maximum(ALIBI, -1e9)}, ALIBI),
    "softmax_scale_missing": ({"scheme": "rope", "head_dim": D, "layout": "half"}, {"scores": SCORES, "q": Q, "k": Q}, D ** -0.5),
    "softmax_scale_twice": ({"scheme": "rope", "head_dim": D, "layout": "half"}, {"scores": SCORES / D, "q": Q, "k": Q}, D ** -0.5),
    "softmax_scale_other": ({"scheme": "rope", "head_dim": D, "layout": "half"}, {"scores": SCORES / 3, "q": Q, "k": Q}, D ** -0.5),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_lines_mend_other_tensors(server, name):
    belief, sent, right = OTHERS[name]
    said = ask(server, belief, **{key: x.astype("f4") for key, x in sent.items()})
    cure = finding(said, name.split()[0])["cure"]
    compile(cure["torch"], "torch", "exec")
    after = {**sent, "np": np}
    exec(cure["numpy"], after)  # pylint: disable=exec-used
    assert np.allclose(after["softmax_scale" if "scores" in sent else next(iter(sent))], right, 1e-12, 0), cure


def test_every_finding_has_the_member(server):
    """Of a scaling by YaRN there is no short line of NumPy, of what is right none at all."""
    tables = {name: port()[name].astype("f4") for name in ("cos", "sin")}
    belief = {"scheme": "rope", "head_dim": D, "layout": "half", "form": "pairs"}
    said = finding(ask(server, belief | YARN, **tables), "scaling_missing")
    assert said["cure"]["numpy"] is None and "ROPE_INIT_FUNCTIONS" in said["cure"]["torch"]
    assert finding(ask(server, belief, **tables), "as_believed")["cure"] is None
    expanded = {name: np.repeat(x, 2, -1) for name, x in tables.items()}
    cure = finding(ask(server, belief | {"form": "expanded"}, **expanded), "layout_swapped")["cure"]
    after = {**expanded, "np": np}
    exec(cure["numpy"], after)  # pylint: disable=exec-used
    assert all(np.array_equal(after[name], np.concatenate([x, x], -1)) for name, x in tables.items())


def test_texts_have_the_lines_below_the_sentence(server):
    """Indented, as PyTorch has them, for the command and for a log; where there is nothing to mend, none."""
    body = {"scheme": "rope", "head_dim": D, "layout": "half", "format": "text"}
    wrong = port(layout="interleaved")["q_out"]
    for q_out, n_lines in ((wrong, 2), (port()["q_out"], 0)):
        sent = {"q": Q.astype("f4").tolist(), "q_out": q_out.astype("f4").tolist()}
        said = finding(server.post("/diagnose", {**body, **sent, "format": "json"}).json(), "layout_swapped" if n_lines else "as_believed")
        lines = [f"    {line}" for line in (said["cure"] or {"torch": ""})["torch"].splitlines()]
        assert len(lines) == n_lines
        assert server.post("/diagnose", {**body, **sent}).body.decode().splitlines() == [f"explained: {said['detail']}", *lines]
        assert server.post("/check", {**body, **sent}).body.decode().splitlines()[1:1 + n_lines] == lines


def test_identified_says_what_it_is(server):
    tables = {name: port(w=500000.0 ** (-np.arange(0, 128, 2) / 128))[name].astype("f4") for name in ("cos", "sin")}
    found = finding(ask(server, {}, **tables), "identified")
    assert found["found"]["summary"].startswith("rope") and "base 500000" in found["found"]["summary"] and found["found"]["summary"] in found["detail"]
    assert found["found"]["config"]["base"] == 500000 and found["found"]["presets"]
