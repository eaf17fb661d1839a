"""Ten numbers in place of a tensor: which ones to look at, and what they say once they are typed. Truth is float64 NumPy. Single numbers:
../../cases/diagnose_typed.jsonl."""
import json
import urllib.parse

import numpy as np
import pytest

import truth
from diagnosing import codes_of, diagnose, finding
from believed import rounded
from truth import evidence

R, BASE = 128, 5e5


def ladder(base=BASE, r=R):
    return evidence.powers(base, r)


def llama3(base=BASE, factor=8):
    scaling = {"type": "llama3", "factor": factor, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
    return evidence.frequencies(json.dumps(scaling), base, R, 1)[0]


def table(w=None, position=lambda p: p, sign=1, factor=1.0, swapped=False, whole=1.0):
    """The number of a place, as a port with this mistake has it."""
    w = llama3() if w is None else w

    def number(tensor, p, channel):
        a = position(p) * w[channel]
        value = np.cos(a) if (tensor == "cos") != swapped else sign * np.sin(a)
        return whole * factor * value
    return number


def ask(server, **fields):
    response = server.post("/diagnose/probe", fields)
    assert response.status == 200, (fields, response)
    return response.json()


def typed(places, number, decimals=4):
    return [{"tensor": place["tensor"], "position": place["position"], "channel": place["channel"],
             "value": f"{number(place['tensor'], place['position'], place['channel']):.{decimals}f}"} for place in places]


@pytest.fixture(scope="module")
def places(session_server):
    return ask(session_server, preset="llama-3.1")


# ---- The probe ----------------------------------------------------------------------------------------------------------------


def test_ten_numbers_tell_llama_31_from_every_single_mistake(places):
    """The figures of the law, for the list of mistakes of today."""
    assert places["of"] == "tables" and places["decimals"] == 4 and len(places["probe"]) <= 10
    n = places["hypotheses"]
    assert n > 100 and places["pairs"] == n * (n - 1) // 2
    assert places["separated"] >= 0.99 * places["pairs"]
    assert not any("as_believed" in pair for pair in places["together"]), places["together"]
    assert "layout_swapped" in places["unseen"] and "off_by_one" not in places["unseen"]


def test_what_is_expected_is_what_the_belief_has(places):
    number = table()
    for place in places["probe"]:
        assert 0 <= place["position"] < 32 and 0 <= place["channel"] < R // 2
        assert place["expected"] == pytest.approx(number(place["tensor"], place["position"], place["channel"]), abs=1e-7)
    assert places["config"]["base"] == BASE and places["config"]["scaling"]["type"] == "llama3"


def test_more_digits_need_fewer_numbers(server, places):
    finer = ask(server, preset="llama-3.1", decimals=6)
    assert len(finer["probe"]) <= len(places["probe"])
    assert finer["separated"] / finer["pairs"] >= places["separated"] / places["pairs"]


def test_one_number_where_one_is_asked_for(server):
    one = ask(server, preset="llama-3.1", count=1)
    assert len(one["probe"]) == 1 and one["separated"] < one["pairs"] and one["together"]


# ---- Back ---------------------------------------------------------------------------------------------------------------------

MISTAKES = {
    # what a port did: (its numbers, the code)
    "right": (table(), "as_believed"),
    "float32 angles": (lambda t, p, c: float((np.cos if t == "cos" else np.sin)(np.float32(p) * np.float32(llama3()[c]))), "as_believed"),
    "no scaling": (table(ladder()), "scaling_missing"),
    "factor of 3.2": (table(llama3(factor=32)), "scaling_parameter"),
    "linear": (table(ladder() / 8), "scaling_other"),
    "llama 2's base": (table(llama3(1e4)), "base_other"),
    "a base of a million": (table(llama3(1e6)), "base_other"),
    "from one": (table(position=lambda p: p + 1), "off_by_one"),
    "two later": (table(position=lambda p: p + 2), "offset_other"),
    "a cache of 1000": (table(position=lambda p: p + 1000), "offset_other"),
    "backwards": (table(position=lambda p: 31 - p), "positions_reversed"),
    "every second": (table(position=lambda p: 2 * p), "position_stride"),
    "other direction": (table(sign=-1), "direction_reversed"),
    "exchanged": (table(swapped=True), "sin_cos_swapped"),
    "negative": (table(whole=-1), "negated"),
    "a factor of yarn": (table(factor=1.2079), "attention_factor_other"),
    "frequencies reversed": (table(llama3()[::-1]), "ladder_reversed"),
    "frequencies in bf16": (table(rounded(llama3(), "bf16")), "inv_freq_bf16"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_typed_is_named(server, places, name):
    number, code = MISTAKES[name]
    answer = diagnose(server, {"preset": "llama-3.1", "values": typed(places["probe"], number)})
    assert answer["explained"] and codes_of(answer)[0] == code, (answer["findings"], answer["candidates"][0]["codes"])


def test_an_offset_beyond_the_list_is_fitted(server, places):
    answer = diagnose(server, {"preset": "llama-3.1", "values": typed(places["probe"], table(position=lambda p: p + 1000))})
    assert finding(answer, "offset_other")["found"] == 1000


def test_two_mistakes_at_once(server):
    more = ask(server, preset="llama-3.1", count=20)["probe"]
    answer = diagnose(server, {"preset": "llama-3.1", "values": typed(more, table(ladder(), position=lambda p: p + 1))})
    assert set(codes_of(answer)) == {"off_by_one", "scaling_missing"}, answer["findings"]


def test_noise_is_explained_by_nothing(server, places):
    random = np.random.default_rng(7)
    noise = [{**place, "value": f"{random.uniform(-1, 1):.4f}"} for place in typed(places["probe"], table())]
    answer = diagnose(server, {"preset": "llama-3.1", "values": noise})
    assert not answer["explained"] and codes_of(answer) == ["unexplained"]
    assert answer["belief"]["first_bad"]["output"] in ("cos", "sin") and answer["belief"]["first_bad"]["index"] == [0]


def test_the_next_number_decides(server):
    """One number fits several readings; typing the one that `next` names leaves fewer."""
    belief = {"scheme": "rope", "head_dim": 64, "layout": "half"}
    values = [{"tensor": "cos", "position": 3, "channel": 0, "value": f"{np.cos(4.0):.4f}"}]
    answer = diagnose(server, {**belief, "values": values})
    assert answer["explained"] and answer["next"], answer["candidates"]
    assert len({entry["value"] for entry in answer["next"]["values"]}) > 1
    place = {key: answer["next"][key] for key in ("tensor", "position", "channel")}
    truth = table(ladder(1e4, 64), position=lambda p: p + 1)
    second = diagnose(server, {**belief, "values": values + typed([place], truth)})
    assert len(second["candidates"]) <= len(answer["candidates"]) and codes_of(second)[0] == "off_by_one"


# ---- Other kinds --------------------------------------------------------------------------------------------------------------


def turned(p, w, layout):
    d = 2 * len(w)
    return truth.turned(1 + np.arange(d) / d, p * w, layout)


@pytest.mark.parametrize("made, code", [("half", "as_believed"), ("interleaved", "layout_swapped")])
def test_a_rotated_query_that_anyone_can_type(server, made, code):
    belief = {"scheme": "rope", "head_dim": 64, "layout": "half"}
    probe = ask(server, **belief, of="rotated")
    assert probe["of"] == "rotated" and "layout_swapped" not in probe["unseen"]
    assert {place["tensor"] for place in probe["probe"]} == {"q_out"}
    values = typed(probe["probe"], lambda t, p, c: turned(p, ladder(1e4, 64), made)[c])
    assert codes_of(diagnose(server, {**belief, "values": values})) == [code]


def test_frequencies_without_positions(server):
    probe = ask(server, preset="llama-3.1", of="inv_freq", decimals=8)
    assert all(set(place) == {"tensor", "channel", "expected"} for place in probe["probe"])
    values = [{"tensor": "inv_freq", "channel": place["channel"], "value": f"{ladder()[place['channel']]:.8f}"} for place in probe["probe"]]
    assert codes_of(diagnose(server, {"preset": "llama-3.1", "values": values})) == ["scaling_missing"]


def test_an_encoding(server):
    probe = ask(server, scheme="sinusoidal", dim=32)
    assert probe["of"] == "encoding"
    w = 1e4 ** (-np.arange(0, 32, 2) / 32)
    cat = lambda t, p, c: np.sin(p * w[c]) if c < 16 else np.cos(p * w[c - 16])
    assert codes_of(diagnose(server, {"scheme": "sinusoidal", "dim": 32, "values": typed(probe["probe"], cat)})) == ["layout_swapped"]


def test_a_bias(server):
    probe = ask(server, scheme="alibi", num_heads=8)
    assert probe["of"] == "bias" and all({"head", "query", "key"} < set(place) for place in probe["probe"])

    def typed_of(slope):
        return [{**{key: place[key] for key in ("tensor", "head", "query", "key")},
                 "value": f"{-slope(place['head']) * abs(place['query'] - place['key']):.4f}"} for place in probe["probe"]]
    right = diagnose(server, {"scheme": "alibi", "num_heads": 8, "values": typed_of(lambda h: 2.0 ** -(h + 1))})
    assert codes_of(right)[0] == "as_believed", right["findings"]
    half = diagnose(server, {"scheme": "alibi", "num_heads": 8, "values": typed_of(lambda h: 2.0 ** -(h + 2))})
    assert "as_believed" not in codes_of(half) and half["explained"]


def test_a_wide_head_has_fewer_rows(server):
    probe = ask(server, scheme="rope", head_dim=512, len=4096)
    assert probe["probe"] and max(place["position"] for place in probe["probe"]) <= 4095


# ---- The endpoint -------------------------------------------------------------------------------------------------------------


def test_get_post_and_query_are_one(server):
    fields = {"scheme": "rope", "head_dim": 16, "count": 3}
    got = server.get("/diagnose/probe?" + urllib.parse.urlencode(fields))
    assert got.status == 200 and got.headers["ETag"] and got.json() == ask(server, **fields)
    assert server.get("/diagnose/probe?" + urllib.parse.urlencode(fields), {"If-None-Match": got.headers["ETag"]}).status == 304
    asked = server.request("QUERY", "/diagnose/probe", json.dumps(fields), {"Content-Type": "application/json"})
    assert asked.status == 200 and asked.body == got.body
    text = server.get("/diagnose/probe?" + urllib.parse.urlencode({**fields, "format": "text"}))
    assert len(text.body.decode().splitlines()) == 3 and text.headers["Content-Type"].startswith("text/plain")