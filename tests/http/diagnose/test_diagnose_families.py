"""Four families of wrong tensors (wrong_ports.py and ../../field/mistakes.py): every mistake is named by the first finding, and the first
candidate gives the tensor back; what is right is as believed; two mistakes at once are both named."""
import sys

import numpy as np
import pytest

import diagnosing
import wrong_ports
from believed import inline
from conftest import ROOT
from diagnosing import NO_FAULTS, codes_of, diagnose, named
from truth import evidence

sys.path.append(str(ROOT / "tests/field"))
import mistakes  # noqa: E402

POINTERS = {"layout_swapped": "/layout", "rotary_offset_other": "/rotary_offset", "base_other": "/base", "section_order": "/mrope_section",
            "rotary_dim_other": "/rotary_dim", "odd_other": "/odd", "freq_shift_other": "/freq_shift", "form_other": "/form"}
DTYPES = ["f32", "f64", "bf16", "f16"]
EACH = [pytest.param(family, name, id=f"{family}-{name}") for family, beliefs in wrong_ports.FAMILIES.items() for name in beliefs]


def told(server, belief, tensors, dtype):
    sent = {name: inline(a, "i64" if name in ("buckets", "position_ids") and (a == np.rint(a)).all() else "f64" if name == "position_ids" else dtype)
            for name, a in tensors.items()}
    expanded = {"form": "expanded"} if "cos" in tensors and tensors["cos"].shape[-1] == belief["head_dim"] else {}
    answer = diagnose(server, {**belief, **expanded, **sent})
    diagnosing.check_form(answer)
    for found in answer["findings"]:
        assert found["code"] in NO_FAULTS or found["pointer"], found
        assert "temperature" in belief or found["pointer"] == POINTERS.get(found["code"], found["pointer"]), found
    return answer


def number_type(family, belief, codes, i):
    """Sums of cosines and of a network's units cancel, so float64 has no four roundings of each."""
    if family in ("buckets", "ids"):
        return "f64"
    some = ["f32", "bf16", "f16"] if belief["scheme"] in ("sandwich", "fire") else DTYPES
    return some[i % len(some)] if codes <= wrong_ports.COARSE else some[0]


@pytest.mark.parametrize("family, name", EACH)
def test_right(server, family, name):
    belief = wrong_ports.FAMILIES[family][name]
    for i, dtype in enumerate(DTYPES if family not in ("buckets", "ids") else ["f64"]):
        sent = wrong_ports.sends(family, belief)
        tensors, may = wrong_ports.made(belief, sent[i % len(sent)], i, dtype)
        answer = told(server, belief, tensors, dtype)
        assert answer["explained"] and "as_believed" in codes_of(answer) and not named(answer), (dtype, answer["findings"])
        first = answer["candidates"][0]
        assert first["verdict"] in ("exact", "rounding") and first["codes"] == [], (dtype, first)
        assert answer["belief"]["first_bad"] is None or dtype == "f64", answer["belief"]
        assert diagnosing.unlike(server, first, tensors, dtype, may) is None


def is_hidden(right, belief, codes, sent):
    """What so few rows of small tensors do not tell; rows of ../../cases ask these of larger ones."""
    style, others = right.get("position_style", ""), ("omni", "videorope")
    if "axes_missing" in codes:
        return any(word in style for word in others) or sent == "q" or sent == "encoding" and right.get("style", "axial") in ("axial", "detr")
    return (belief.get("position_style") == "qwen3_vl" or right["scheme"] == "deberta" and "max_distance_other" in codes
            or "rotary_offset" in right and "rotary_dim_other" in codes)


def wrong_beliefs(family, right, sent):
    """(codes, the wrong belief): the tensor is the right one's."""
    if right["scheme"] in ("kerple", "sandwich", "fire", "shaw") or family == "ids" and "segments" not in right:
        return
    tensors, _ = wrong_ports.made(right, sent, 0, "f32")
    for _, belief, codes in mistakes.mistakes(right, tensors):
        if not is_hidden(right, belief, set(codes), sent) and evidence.apart(belief, tensors, {}) > 0:
            yield set(codes), belief


def judge(answer, tensors, dtype, may, codes, server, case):
    """None, or what is wrong with an answer."""
    found = codes_of(answer)
    if not answer["explained"]:
        return f"{case}: unexplained, not {codes}"
    if found[0] not in codes or len(set(found) - NO_FAULTS) > 1:
        return f"{case}: {found}, not {codes}"
    reason = diagnosing.unlike(server, answer["candidates"][0], tensors, dtype, may)
    return reason and f"{case}: {found}: {reason}"


@pytest.mark.parametrize("family, name", EACH)
def test_a_wrong_belief_is_named(server, family, name):
    right, wrong = wrong_ports.FAMILIES[family][name], []
    for i, sent in enumerate(wrong_ports.sends(family, right)):
        for j, (codes, belief) in enumerate(wrong_beliefs(family, right, sent)):
            dtype = number_type(family, right, codes, i + j)
            tensors, may = wrong_ports.made(right, sent, i, dtype)
            is_asked = not i or j % 3 == i  # every mistake in heads, one in three in tables
            if not is_asked or not evidence.apart(belief, tensors, dict.fromkeys(tensors, dtype)):
                continue
            answer = told(server, belief, tensors, dtype)
            found = codes_of(answer)
            if not answer["explained"] or found[0] not in codes or answer["belief"]["first_bad"] is None:
                wrong.append((sent, dtype, belief, found, codes))
            elif reason := diagnosing.unlike(server, answer["candidates"][0], tensors, dtype, may):
                wrong.append((sent, dtype, belief, reason))
    assert not wrong, wrong


@pytest.mark.parametrize("family, name", EACH)
def test_a_wrong_port_is_named(server, family, name):
    belief, wrong = wrong_ports.FAMILIES[family][name], []
    for i, sent in enumerate(wrong_ports.sends(family, belief)):
        for j, (codes, port, changes) in enumerate(wrong_ports.ports(family, belief, sent)):
            if i and j % 3 != i:
                continue
            dtype = number_type(family, belief, codes, i + j)
            tensors, may = wrong_ports.made(belief, sent, j, dtype, port, changes)
            right, _ = wrong_ports.made(belief, sent, j, dtype)
            if all(np.array_equal(tensors[key], a) for key, a in right.items()):
                continue
            reason = judge(told(server, belief, tensors, dtype), tensors, dtype, may, codes, server, (sent, dtype, port, changes))
            wrong += [reason] if reason else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("code, sent, made", [pytest.param(*one, id="-".join(one[:2])) for one in wrong_ports.NUMBERS])
def test_wrong_numbers_are_named(server, code, sent, made):
    belief, numbers = made
    for dtype in ("f32", "f64"):
        tensors, may = wrong_ports.made(belief, sent, 1, dtype, numbers=numbers)
        may = {name: a * 0 + 1e-5 for name, a in may.items()}
        reason = judge(told(server, belief, tensors, dtype), tensors, dtype, may, {code}, server, dtype)
        assert reason is None, reason


def kinds(server):
    """{code: kind}, in the order in which findings stand."""
    return {fault["code"]: fault["kind"] for fault in server.get("/schemes").json()["faults"]}


PAIRS = 60


def test_two_mistakes_are_both_named(server):
    """A wrong belief of a tensor that is also wrong by its port, of another kind. Another mistake may do as much as both, and
    gives the tensor. A list of positions takes in what others do."""
    rng, kind, missed, asked = np.random.default_rng(7), kinds(server), [], 0
    cases = [(family, belief) for family in ("rotary", "sinusoid", "bias") for belief in wrong_ports.FAMILIES[family].values()]
    while asked < PAIRS:
        family, right = cases[rng.integers(len(cases))]
        sent = wrong_ports.sends(family, right)
        sent = sent[rng.integers(len(sent))]
        beliefs = [one for one in wrong_beliefs(family, right, sent) if len(one[0]) == 1]
        ports = [one for one in wrong_ports.ports(family, right, sent) if len(one[0]) == 1 and one[0] != {"positions_other"}]
        if not beliefs:
            continue
        (one,), belief = beliefs[rng.integers(len(beliefs))]
        (other,), port, changes = ports[rng.integers(len(ports))]
        if kind[one] == kind[other]:
            continue
        asked += 1
        tensors, may = wrong_ports.made(right, sent, asked, "f32", port, changes)
        answer = told(server, belief, tensors, "f32")
        order = [list(kind).index(code) for code in codes_of(answer) if code not in NO_FAULTS]
        assert order == sorted(order), codes_of(answer)
        is_one = len(named(answer)) == 1 and diagnosing.unlike(server, answer["candidates"][0], tensors, "f32", may) is None
        if not answer["explained"] or not (is_one or named(answer) == {one, other}):
            missed.append((sent, belief, {one, other}, codes_of(answer)))
    assert len(missed) <= 0.05 * PAIRS, '\n'.join(map(str, missed))
