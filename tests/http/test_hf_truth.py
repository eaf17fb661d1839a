"""What each model_type's code does with a config.json, against a table of truth (hf_truth/*.jsonl) that was written from that code and from
released checkpoints, not from our rows. No answer may differ from it; a config may be refused, by name, only if its type is one of those
here whose positions no scheme gives, or that are refused for a reason."""
import collections
import json
import pathlib

import pytest
from hypothesis import given, settings, strategies as st

HERE = pathlib.Path(__file__).parent / "hf_truth"
CASES = [json.loads(line) for path in sorted(HERE.glob("*.jsonl")) for line in path.read_text().splitlines()]
BY_TYPE = collections.defaultdict(list)
for each in CASES:
    BY_TYPE[each["type"]].append(each)

SEQUENCES = ({"len": 1}, {"grid": [2, 2]}, {})  # the last: the model's own window
NO_SEQUENCE = ("/len", "/grid", "/positions", "/interpolate", "/axes_dim", "/channels", "/style", "/normalize")
RIGHT_AT_LEAST = 540  # types


def asked(server, case):
    """(status, answer): with the case's own sequence, else the first that the scheme takes."""
    fields = {"hf_config": case["config"], "data": False, **({"layer_type": case["layer_type"]} if case.get("layer_type") else {})}
    for sequence in ([case["request"]] if "request" in case else SEQUENCES):
        answer = server.post("/encode", {**fields, "seed": 1, **sequence})
        if answer.status == 422 and answer.json().get("pointer") == "/seed":  # nothing is drawn
            answer = server.post("/encode", {**fields, **{name: value for name, value in sequence.items() if name != "seed"}})
        if answer.status == 200 or answer.json().get("pointer") not in NO_SEQUENCE:
            break
    return answer.status, answer.json()


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
    status, answer = asked(server, case)
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


def test_most_types_are_right(verdicts):
    right = {case["type"] for case, said in verdicts if said == "right"}
    assert len(right) >= RIGHT_AT_LEAST, f"{len(right)} of {len(BY_TYPE)}"


def test_checkpoints_are_right(verdicts):
    """Excerpts of the files of released models."""
    of = {case["of"] for case, said in verdicts if said == "right" and "/" in case["of"]}
    assert len(of) >= 300, len(of)


def test_what_was_once_asked_for_is_right(verdicts):
    """Types that were answered wrongly, by luck, or not at all, before each had a row."""
    named = """qwen3_moe gpt_oss seed_oss apertus lfm2 falcon_h1 bamba minimax minimax_m2 dots1 arcee csm moshi mimi mllama_text_model gemma3n_text ministral eurobert bitnet
        helium phimoe gptj codegen zamba2 nanochat deepseek_v4 mpt nemotron_h musicgen cohere2_moe moonshine_streaming hunyuan_v1_dense hunyuan_v1_moe siglip_text_model
        siglip_vision_model dinov2 clip_vision_model glm4v_moe dbrx moonshine big_bird biogpt led trocr data2vec-text lilt layoutlm musicgen_decoder ctrl donut-swin
        wav2vec2-bert parakeet_encoder exaone4 exaone_moe afmoe smollm3 llama4 jamba mamba""".split()
    right = {case["type"] for case, said in verdicts if said == "right"}
    tested = {case["type"] for case in CASES}
    assert not [name for name in named if name in tested and name not in right]


# ---- Fields more, fields fewer ----

PLAIN = [case for case in CASES if "request" not in case and not case["expect"].get("refused")]
NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=3, max_size=20).map(lambda text: f"unread_{text}")
WORDS = st.text(max_size=8).filter(lambda text: "\0" not in text)  # a NUL in a string is refused
VALUES = st.one_of(st.integers(-2**40, 2**40), st.floats(allow_nan=False, allow_infinity=False), WORDS, st.booleans(), st.none(),
                   st.lists(st.integers(0, 9), max_size=3), st.dictionaries(NAMES, st.integers(0, 9), max_size=2))


@settings(max_examples=150)
@given(case=st.sampled_from(PLAIN), more=st.dictionaries(NAMES, VALUES, max_size=3))
def test_fields_that_nobody_reads_change_nothing(server, case, more):
    status, before = asked(server, case)
    _, after = asked(server, {**case, "config": {**case["config"], **more}})
    if status != 200:
        assert after["pointer"] == before["pointer"]
        return
    assert after["config"] == before["config"]
    ignored = set(after["hf_config"]["ignored"]) - set(before["hf_config"]["ignored"])
    assert {name for name, value in more.items() if value is not None and not isinstance(value, dict)} <= ignored | {name for name in more if name in case["config"]}


@settings(max_examples=200)
@given(case=st.sampled_from(PLAIN), data=st.data())
def test_a_missing_field_is_a_named_default_or_was_not_read(server, case, data):
    names = [name for name in case["config"] if name != "model_type"]
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    status, before = asked(server, case)
    rest = {key: value for key, value in case["config"].items() if key != name}
    after_status, after = asked(server, {**case, "config": rest})
    if status != 200 or after_status != 200 or isinstance(case["config"][name], dict):
        return
    if name in before["hf_config"]["ignored"]:
        assert after["config"] == before["config"]
    elif after["config"] != before["config"]:
        new = set(after["hf_config"]["defaults"]) - set(before["hf_config"]["defaults"])
        derived = any(field in case["config"] for field in ("hidden_size", "d_model", "n_embd", "embed_dim", "emb_dim", "dim"))
        assert new or derived or name in ("layer_types", "sliding_window"), (name, before, after)


@settings(max_examples=100)
@given(model_type=st.text("abcdefghijklmnopqrstuvwxyz0123456789_-./", min_size=1, max_size=30).map(lambda text: f"my_{text}"), theta=st.floats(1, 1e9))
def test_a_type_that_nobody_knows_is_refused(server, model_type, theta):
    config = {"model_type": model_type, "hidden_size": 64, "num_attention_heads": 4, "rope_theta": theta, "max_position_embeddings": 128}
    answer = server.post("/encode", {"hf_config": config, "len": 2})
    assert answer.status == 422 and answer.json()["pointer"] == "/hf_config/model_type"
