"""What each model_type's code does with a config.json, against a table of truth (hf_truth/*.jsonl) that was written from that code and from
released checkpoints, not from our rows. No answer may differ from it; a config may be refused, by name, only if its type is one of those
here whose positions no scheme gives, or that are refused for a reason."""
import functools
import json
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent / "hf_truth"
CASES = [json.loads(line) for path in sorted(HERE.glob("*.jsonl")) for line in path.read_text().splitlines()]

SEQUENCES = ({"len": 1}, {"grid": [2, 2]}, {})  # the last: the model's own window
NO_SEQUENCE = ("/len", "/grid", "/positions", "/interpolate", "/axes_dim", "/channels", "/style", "/normalize")
RIGHT_AT_LEAST = 1642  # of these cases; a new one that is right is counted here


def asked(server, case):
    """(status, answer): with the case's own sequence, else the first that the scheme takes."""
    fields = {"hf_config": case["config"], "data": False, **({"layer_type": case["layer_type"]} if case.get("layer_type") else {})}
    for sequence in ([case["request"]] if "request" in case else SEQUENCES):
        answer = server.post("/encode", {**fields, "seed": 1, **sequence})
        if answer.status == 422 and answer.json().get("pointer") == "/seed":  # nothing is drawn
            answer = server.post("/encode", {**fields, **{name: value for name, value in sequence.items() if name != "seed"}})
        needs_grid = answer.status == 422 and "give a grid" in answer.json()["detail"]  # of a style that the config sets
        if answer.status == 200 or not (needs_grid or answer.json().get("pointer") in NO_SEQUENCE):
            break
    return answer.status, answer.json()


KNOWN = {}


def known(server, case):
    """asked() of a row of the truth, once for all tests."""
    return KNOWN.get(id(case)) or KNOWN.setdefault(id(case), asked(server, case))


def is_same(expected, found):
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(name in found and is_same(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(is_same, expected, found))
    if isinstance(expected, (int, float)) and isinstance(found, (int, float)):
        return expected == found or abs(expected - found) <= 1e-9 * abs(expected)
    return expected == found


def verdict(server, case):
    """"right", "refused", or what differs."""
    status, answer = known(server, case)
    if status == 422:
        assert answer["pointer"], (case, answer)
        return "right" if case["expect"].get("refused") else "refused"
    assert status == 200, (case, answer)
    if case["expect"].get("refused"):
        return f"answered, and is to be refused: {answer['config']}"
    differs = {name: (value, answer["config"].get(name)) for name, value in case["expect"].items() if not is_same(value, answer["config"].get(name))}
    return f"(expected, found): {differs}" if differs else "right"


@pytest.fixture(name="verdicts", scope="module")
def all_verdicts(session_server):
    return [(case, verdict(session_server, case)) for case in CASES]


def test_no_answer_differs_from_the_truth(verdicts):
    wrong = [f"{case['type']} {case.get('layer_type', '')} of {case['of']}: {said}" for case, said in verdicts if said not in ("right", "refused")]
    assert not wrong, "\n".join(wrong)


def test_no_case_that_was_right_is_refused(verdicts):
    assert sum(said == "right" for _, said in verdicts) >= RIGHT_AT_LEAST


# ---- Fields more, fields fewer: every case, every field ----

PLAIN = [case for case in CASES if not case["expect"].get("refused")]
UNREAD = {"unread_integer": -2**40, "unread_real": 2.5e-7, "unread_word": "\u00e9 ~/", "unread_flag": True, "unread_null": None, "unread_list": [0, 9],
          "unread_object": {"unread_inner": 3}, "rope": 1, "layer": "full_attention", "unread_rope_theta": 5.0}
NAMED = {name for name, value in UNREAD.items() if value is not None}


def failing(check):
    """The cases that fail it, one line each."""
    return [f"{case['type']} of {case['of']}: {problem}" for case in PLAIN for problem in check(case)]


def test_fields_that_nobody_reads_change_nothing(session_server):
    def check(case):
        status, before = known(session_server, case)
        after_status, after = asked(session_server, {**case, "config": {**case["config"], **UNREAD}})
        if status != 200 or after_status != 200:
            return [] if (status, before["pointer"]) == (after_status, after["pointer"]) else [f"{before} became {after}"]
        ignored = set(after["hf_config"]["ignored"]) - set(before["hf_config"]["ignored"])
        return [f"{before} became {after}"] * (after["config"] != before["config"] or ignored != NAMED)
    wrong = failing(check)
    assert not wrong, "\n".join(wrong)


def without_each(config):
    """(name, the config without it) of each field, also of models inside; the fields of rope objects are the library's."""
    for name, value in config.items():
        if isinstance(value, dict) and name not in ("rope_scaling", "rope_parameters"):
            yield from ((f"{name}.{inner}", {**config, name: rest}) for inner, rest in without_each(value))
        elif not isinstance(value, dict) and name != "model_type":
            yield name, {key: other for key, other in config.items() if key != name}


WIDTHS = {"head_dim", "kv_channels", "d_kv", "attention_head_dim"}  # without it: the width divided by the heads
OF_WIDTHS = {"head_dim", "rotary_dim"}


def test_a_missing_field_is_a_named_default_or_was_not_read(session_server):
    def check(case):
        status, before = known(session_server, case)
        for name, rest in without_each(case["config"]) if status == 200 else ():
            after_status, after = asked(session_server, {**case, "config": rest})
            if after_status != 200 or after["config"] == before["config"]:
                continue
            changed = {field for field in {**before["config"], **after["config"]} if before["config"].get(field) != after["config"].get(field)}
            is_derived = name.split(".")[-1] in WIDTHS and changed <= OF_WIDTHS
            if name in before["hf_config"]["ignored"]:
                yield f"{name} is ignored, but {changed} change without it"
            elif not is_derived and not set(after["hf_config"]["defaults"]) - set(before["hf_config"]["defaults"]):
                yield f"without {name} {changed} change, and no default is named: {after}"
    wrong = failing(check)
    assert not wrong, "\n".join(wrong)


def test_a_kinds_config_gives_the_models_tensors(session_server):
    """`config` of each kind in /explain's answer, sent to /encode with positions: the bytes of the model itself, also beyond the length it states."""
    n, differing = 0, []
    encoded = functools.cache(lambda body: session_server.post("/encode", body.encode()))  # many kinds are equal
    for case in CASES:
        answer = session_server.post("/explain", {"hf_config": case["config"], "readers": []})
        kinds = [kind for kind in answer.json()["layers"] if kind["part"] == "text"] if answer.status == 200 else []
        for kind in (kind for kind in kinds if kind["config"]):
            model = {"hf_config": case["config"], **({"layer_type": kind["layer_type"]} if len(kinds) > 1 else {})}
            on_grid = [{}] if "grid" in kind["config"] else [{"grid": [2, 2]}] if "coords" in kind["config"] else []
            sequences = on_grid or [{"positions": [0, 1, 77, 5000]}, {"len": 4}, {"grid": [2, 2]}]  # Swin's window is its own
            for sequence in sequences:
                whole = session_server.post("/encode", {**model, **sequence, "format": "raw"})
                config = encoded(json.dumps({**kind["config"], **sequence, "format": "raw"}))
                if config.status != whole.status or (whole.status == 200 and config.body != whole.body):
                    differing.append((case["type"], kind["layer_type"], sequence, config.status, whole.status))
                if whole.status == 200:
                    n += 1
                    break
    assert n > 1400 and differing == []


def test_a_config_names_its_layers_or_has_one_kind(session_server):
    """Without layer_type: refused with kinds of which at least two are answered differently, or answered as every kind is."""
    wrong = []
    for case in CASES:
        status, bare = asked(session_server, {**case, "layer_type": None})
        whole = {name: value for name, value in case.items() if name != "request"}  # parts differ in the sequence that they take
        named = {kind: asked(session_server, {**whole, "layer_type": kind}) for kind in bare.get("layer_types", ())}
        configs = {json.dumps(answer.get("config")) for kind_status, answer in named.values() if kind_status == 200}
        if status == 200 and not (bare["hf_config"]["layer_type"] and "layers" in bare["hf_config"]):
            wrong.append(f"{case['type']} of {case['of']}: states no layers")
        if named and (len(configs) < 2 or any(kind_status != 200 for kind_status, _ in named.values())):
            wrong.append(f"{case['type']} of {case['of']}: {named}")
        if status == 200 and case.get("layer_type") == bare["hf_config"]["layer_type"]:
            _, answer = known(session_server, case)
            if answer["config"] != bare["config"]:
                wrong.append(f"{case['type']} of {case['of']}: {bare['config']} without a name, {answer['config']} with one")
    assert not wrong, "\n".join(wrong)
