"""/explain: what transformers 4 and 5, vLLM and llama.cpp take from a config. The expected values are written by hand from the tools' sources
(transformers modeling_rope_utils.py, vllm rotary_embedding/__init__.py, llama.cpp conversion/*.py), the consequences are computed here in NumPy."""
import io
import json
import math
import shlex
import urllib.parse

import numpy as np
import pytest
from mpmath import mp

from asking import refused
from by_length import BORDERS, BY_LENGTH, lengths_of
from truth import scaling
from tensors import from_raw

LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 131072,
         "rope_theta": 500000.0, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                                  "original_max_position_embeddings": 8192, "rope_type": "llama3"}}
QWEN = {"model_type": "qwen3", "hidden_size": 4096, "head_dim": 128, "num_attention_heads": 32, "num_hidden_layers": 36,
        "max_position_embeddings": 40960, "rope_theta": 1000000, "rope_scaling": None}
QWEN5 = {**{k: v for k, v in QWEN.items() if k not in ("rope_theta", "rope_scaling")}, "rope_parameters": {"rope_type": "default", "rope_theta": 1000000}}
GEMMA = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024,
                                                 "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
         "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896, "patch_size": 14, "num_attention_heads": 16}}
DEEPSEEK = {"model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128, "num_hidden_layers": 61, "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64, "max_position_embeddings": 163840, "rope_theta": 10000,
            "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                             "original_max_position_embeddings": 4096, "type": "yarn"}}
OSS = {"model_type": "gpt_oss", "head_dim": 64, "hidden_size": 2880, "num_attention_heads": 64, "num_hidden_layers": 4, "max_position_embeddings": 131072,
       "rope_theta": 150000, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 2,
       "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": False}}
PHI = {"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 131072,
       "original_max_position_embeddings": 4096, "rope_theta": 10000.0,
       "rope_scaling": {"long_factor": [1.0 + i for i in range(48)], "short_factor": [1.0] * 48, "type": "longrope"}}
TOOLS = ["transformers4", "transformers5", "vllm", "llama.cpp"]


def explain(server, **fields):
    return server.ask("/explain", **fields).json()


def agreeing(answer):
    return [name for name in TOOLS if answer["readers"][name]["agrees"]]


def codes(answer, level=None):
    return [f["code"] for f in answer["findings"] if level in (None, f["level"])]


def found(answer, code, reader=None):
    """The one finding of a code."""
    matching = [f for f in answer["findings"] if f["code"] == code and reader in (None, f["reader"])]
    assert len(matching) == 1, answer["findings"]
    return matching[0]


def positions(length):
    step = max(1, math.ceil((length - 4096) / 16384))
    return np.unique(np.concatenate([np.arange(min(length, 4096)), np.arange(4096, length, step), np.arange(max(0, length - 256), length)]))


def distance(w, v, length, g=1.0, h=1.0):
    """The consequence of frequencies v with factor h in place of w with g."""
    p = positions(length)[:, None].astype(float)
    apart = np.abs(g * np.cos(p * w) - h * np.cos(p * v))
    at = np.unravel_index(np.argmax(apart), apart.shape)
    first = next((q for q in range(length) if np.any(np.abs(g * np.cos(q * w) - h * np.cos(q * v)) > 0.01)
                  or np.any(np.abs(g * np.sin(q * w) - h * np.sin(q * v)) > 0.01)), None)
    return apart[at], int(positions(length)[at[0]]), int(at[1]), first


def ladder(r, base):
    return base ** (-np.arange(0, r, 2) / r)


def same_as(consequence, expected):
    assert consequence["max_abs_cos"] == pytest.approx(expected[0], abs=2e-9)
    assert (consequence["position"], consequence["pair"], consequence["first"]) == expected[1:]


# ---- Public models, pasted as published ----


def test_llama(server):
    answer = explain(server, hf_config=LLAMA)
    assert agreeing(answer) == TOOLS and answer["findings"] == []
    assert answer["model"] == {"model_type": "llama", "architecture": None, "certainty": "class default", "num_layers": 32, "length": 131072,
                               "length_assumed": False}
    [kind] = answer["layers"]
    assert (kind["layer_type"], kind["part"], kind["layers"], kind["count"], kind["same_as"]) == ("full_attention", "text", list(range(32)), 32, None)
    assert kind["summary"] == "rope, base 500000, llama3 factor 8, 128 of 128 channels, half"
    program = answer["readers"]["llama.cpp"]
    assert (program["architecture"], program["rows"]) == ("llama", "permuted")
    divisors = program["configs"][0]["scaling"]["divisors"]
    assert divisors[29:35] == pytest.approx([1.2074839, 1.5534146, 2.0263133, 2.6945298, 3.6842525, 5.2573266], rel=1e-7) and divisors[35:] == [8] * 29
    assert program["configs"][0]["layout"] == "interleaved"


def test_a_base_that_is_dropped_and_equal(server):
    """llama's class has 10000 too: a note, which names one number."""
    config = {**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
    answer = explain(server, hf_config={name: value for name, value in config.items() if name not in ("rope_scaling", "rope_theta")})
    finding = found(answer, "theta_dropped")
    assert finding["level"] == "note" and finding["found"] == finding["taken"] == 10000 and finding["consequence"] is None
    assert finding["detail"] == "transformers 4 does not read rope_parameters, but base 10000 is also the default of the model's class."
    assert agreeing(answer) == TOOLS


def test_a_base_of_a_tool_that_refuses_is_no_finding(server):
    """transformers 4 refuses the sections, so it takes no base; it was "base null is also the default"."""
    rope = {"rope_type": "default", "rope_theta": 500000, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}
    answer = explain(server, hf_config={"model_type": "glm46v", "text_config": {"model_type": "glm4v_text", "hidden_size": 4096, "num_attention_heads": 32, "rope_parameters": rope}})
    assert answer["readers"]["transformers4"]["refuses"] and not [f for f in answer["findings"] if f["reader"] == "transformers4"]


def test_qwen(server):
    assert agreeing(explain(server, hf_config=QWEN)) == TOOLS
    answer = explain(server, hf_config=QWEN5)
    assert agreeing(answer) == TOOLS[1:] and codes(answer) == ["theta_dropped"]
    finding = found(answer, "theta_dropped")
    assert finding["pointer"] == "/hf_config/rope_parameters/rope_theta" and (finding["found"], finding["taken"]) == (1000000, 10000)
    same_as(finding["consequence"], distance(ladder(128, 1e6), ladder(128, 1e4), 40960))
    assert (finding["consequence"]["position"], finding["consequence"]["pair"], finding["consequence"]["first"]) == (2650, 28, 1)
    assert finding["detail"] == ("transformers 4 does not read rope_parameters: it turns by base 10000 instead of 1000000. Cosines are off by up to "
                                 "2.00, by more than 0.01 from position 1 on.")
    [base] = [f for f in answer["fields"] if f["pointer"].endswith("/rope_theta")]
    assert base["readers"]["transformers4"] == {"reads": False, "takes": 10000.0, "from": "default"}
    assert base["readers"]["vllm"] == {"reads": True, "takes": 1000000.0, "from": "field"}


def test_gemma(server):
    answer = explain(server, hf_config=GEMMA)
    assert agreeing(answer) == TOOLS and set(codes(answer)) == {"layers_differ", "theta_default"}
    kinds = {(k["layer_type"], k["part"]): k for k in answer["layers"]}
    assert kinds["sliding_attention", "text"]["count"] == 29 and kinds["full_attention", "text"]["layers"] == [5, 11, 17, 23, 29]
    assert kinds["sliding_attention", "text"]["config"]["base"] == 10000 and kinds["full_attention", "text"]["config"]["base"] == 1000000
    assert kinds["full_attention", "vision"]["config"]["scheme"] == "learned"
    assert list(kinds)[-1][1] == "vision" and answer["readers"]["llama.cpp"]["architecture"] == "gemma3"
    [only] = explain(server, hf_config=GEMMA, layer_type="sliding_attention")["layers"]
    assert only["layer_type"] == "sliding_attention"


def test_deepseek(server):
    answer = explain(server, hf_config=DEEPSEEK)
    assert agreeing(answer) == TOOLS and answer["findings"] == []
    config = answer["readers"]["llama.cpp"]["configs"][0]
    assert (config["head_dim"], config["rotary_dim"], config["rotary_offset"], config["attention_factor"]) == (192, 64, 128, 1)
    fields = {f["pointer"].split("/")[-1]: f["readers"] for f in answer["fields"]}
    assert [fields["mscale"][name]["reads"] for name in TOOLS] == [True, True, True, False]
    assert [fields["beta_fast"][name]["reads"] for name in TOOLS] == [True, True, True, False]


def test_gpt_oss(server):
    answer = explain(server, hf_config=OSS)
    assert agreeing(answer) == TOOLS[:3]
    assert [k["same_as"] for k in answer["layers"]] == [None, 0]
    finding = found(answer, "truncate_dropped")
    assert finding["reader"] == "llama.cpp" and finding["layers"] == ["sliding_attention", "full_attention"]
    assert finding["consequence"]["max_abs_cos"] == pytest.approx(2.693, abs=5e-4) and finding["consequence"]["first"] == 35
    truncate = next(f for f in answer["fields"] if f["pointer"].endswith("/truncate"))
    assert truncate["readers"]["llama.cpp"] == {"reads": False, "takes": True, "from": "default"}
    assert truncate["readers"]["transformers5"] == {"reads": True, "takes": False, "from": "field"}


def test_phi(server):
    answer = explain(server, hf_config=PHI)
    assert agreeing(answer) == TOOLS[:2], "up to 4096 positions llama.cpp has the long list, at 4097 vLLM the short one"
    factor = math.sqrt(1 + math.log(32) / math.log(4096))
    assert answer["readers"]["llama.cpp"]["configs"][0]["attention_factor"] == pytest.approx(factor, rel=2e-7)
    assert answer["layers"][0]["config"]["attention_factor"] == pytest.approx(factor, rel=1e-15)
    assert any("short list" in note for note in answer["notes"])
    zh = explain(server, hf_config=PHI, lang="zh")
    assert any("短列表" in note for note in zh["notes"]) and zh["detail"] == zh["detail_zh"]


def test_the_config_posted_again(server):
    """A kind's config gives the tensors that the model itself gives."""
    for model in (LLAMA, QWEN, DEEPSEEK, OSS, PHI, *BY_LENGTH.values()):
        config = explain(server, hf_config=model)["layers"][0]["config"]
        for last in (37, 2047, 2048, 4095, 4096, 5000, 40000, 131071):
            ask = {"positions": [0, 1, last], "format": "raw"}
            kind = {"layer_type": "full_attention"}
            a, b = from_raw(server.ask("/encode", **config, **ask)), from_raw(server.ask("/encode", hf_config=model, **kind, **ask))
            assert all(a[name].tobytes() == b[name].tobytes() for name in ("cos", "sin")), (model, last)


def test_a_config_beside_embeddings(server):
    """A factor on embeddings is beside the config, which /encode takes without any."""
    model = {"model_type": "pegasus_x", "d_model": 64, "encoder_attention_heads": 4, "scale_embedding": True}
    [kind] = explain(server, hf_config=model)["layers"]
    assert kind["with_x"] == {"x_scale": "sqrt_dim"} and server.post("/encode", {**kind["config"], "len": 3}).status == 200
    x = {"x": np.arange(192).reshape(3, 64).tolist(), "format": "raw"}
    a, b = server.ask("/encode", **kind["config"], **kind["with_x"], **x), server.ask("/encode", hf_config=model, **x)
    assert a.body == b.body


# ---- Rules that depend on the length of the sequence ----


def check_agreement(server, name, border, stretched, reader, more):
    """agrees: frequencies of both are near those of the formula at every length; else a finding has the lengths, and there they are not."""
    answer = explain(server, hf_config=BY_LENGTH[name], readers=[reader], **more)
    [ours], tool = answer["layers"], answer["readers"][reader]
    for n in lengths_of(name, **more):
        at = {"positions": [n - 1], "outputs": ["cos"], "format": "raw", "dtype": "f64"}
        w = scaling.inv_freq(ours["config"]["scaling"], 10000.0, ours["config"]["rotary_dim"], n)
        g = scaling.attention_factor(ours["config"]["scaling"], n)
        formula = np.array([float(g * mp.cos(f * (n - 1))) for f in w])
        mine = from_raw(server.ask("/encode", hf_config=BY_LENGTH[name], **at))["cos"][0]
        assert np.allclose(mine, formula, rtol=0, atol=1e-12), (name, n)
        theirs = from_raw(server.ask("/encode", **tool["configs"][0], **at))["cos"][0]
        is_same = np.allclose(theirs, formula, rtol=0, atol=n * 2.0**-21 + 2.0**-20)
        findings = [f for f in answer["findings"] if f["reader"] == reader and f["level"] == "error"]
        differs = not tool["agrees"] and any(first <= n and (last is None or n <= last) for f in findings for first, last in f.get("lengths", [[1, None]]))
        assert is_same or differs, (name, reader, n, more, tool, answer["findings"])
        if differs and n > 1 and n != stretched and n - border != 1:  # few positions after the border hardly anything has changed
            assert not is_same, (name, reader, n, findings)
    assert tool["agrees"] or findings and findings[0]["consequence"]["max_abs_cos"] > 0.01


@pytest.mark.parametrize("reader", TOOLS)
@pytest.mark.parametrize("name", BY_LENGTH)
def test_agreement_at_every_length(server, name, reader):
    border, stretched = BORDERS[name]
    for more in ({}, {"length": border}, {"length": border // 2}, {"length": stretched}, {"length": 3 * stretched}):
        check_agreement(server, name, border, stretched, reader, more)


def test_a_rule_without_a_word_up_to_its_border(server):
    """llama.cpp has no dynamic: up to 2048 positions that is no difference, and is said of them only."""
    within = explain(server, hf_config=BY_LENGTH["dynamic"], length=2048)
    assert within["readers"]["llama.cpp"]["agrees"] and "llama.cpp" not in within["detail"]
    answer = explain(server, hf_config=BY_LENGTH["dynamic"])
    finding = found(answer, "rule_unknown")
    assert finding["lengths"] == [[2049, None]] and (finding["found"], finding["reader"]) == ("dynamic", "llama.cpp")
    assert "Only sequences of 2049 positions or more differ." in finding["detail"] and finding["consequence"]["max_abs_cos"] > 1.9
    vllm = found(answer, "length_read_otherwise")
    assert vllm["reader"] == "vllm" and "lengths" not in vllm, "its table is that of 4096 positions, at every length"
    phi = explain(server, hf_config=PHI)
    vllm, llama = found(phi, "length_read_otherwise", "vllm"), found(phi, "length_read_otherwise", "llama.cpp")
    assert vllm["lengths"] == [[4097, 4097]] and llama["lengths"] == [[1, 4096]] and llama["taken"] == 131072
    assert llama["detail"].startswith("llama.cpp takes the list of longrope for 131072 positions, whatever the sequence's length.")


# ---- Contradictions ----


def test_the_factor_of_old_versions(server):
    answer = explain(server, hf_config={**QWEN, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}})
    finding = found(answer, "factor_mismatch")
    assert (finding["reader"], finding["before"], finding["found"], finding["taken"]) == ("transformers4", "4.56", 4, 1.25)
    assert finding["consequence"]["max_abs_cos"] == pytest.approx(2.16083097, abs=1e-8) and finding["consequence"]["first"] == 0
    assert agreeing(answer) == TOOLS, "these are the numbers of 4.56"
    fitting = {**QWEN, "max_position_embeddings": 131072, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}
    assert explain(server, hf_config=fitting)["findings"] == []


def test_the_original_length_of_llama3(server):
    def model(inside, outside=None):
        scaling = {**LLAMA["rope_scaling"], "original_max_position_embeddings": inside}
        return {**LLAMA, "rope_scaling": scaling, **({"original_max_position_embeddings": outside} if outside else {})}
    answer = explain(server, hf_config=model(4096))
    finding = found(answer, "original_max_placement")
    assert (finding["reader"], finding["found"], finding["taken"]) == ("llama.cpp", 4096, 8192)
    same = finding["consequence"]
    assert (same["position"], same["pair"], same["first"]) == (14280, 25, 6) and same["max_abs_cos"] == pytest.approx(1.99993646, abs=1e-8)
    assert agreeing(answer) == TOOLS[:3]
    answer = explain(server, hf_config=model(4096, 2048))
    assert {f["reader"]: f["taken"] for f in answer["findings"] if f["code"] == "original_max_placement"} == {
        "transformers5": 2048, "vllm": 2048, "llama.cpp": 2048}


def test_two_bases(server):
    answer = explain(server, hf_config={**QWEN, "rope_scaling": {"rope_type": "default", "rope_theta": 5000000}})
    finding = found(answer, "theta_differs")
    assert (finding["reader"], finding["found"], finding["taken"]) == ("transformers4", 5000000, 1000000)
    assert agreeing(answer) == TOOLS[1:]


def test_no_base(server):
    answer = explain(server, hf_config={k: v for k, v in QWEN.items() if k != "rope_theta"})
    finding = found(answer, "theta_default")
    assert finding["level"] == "note" and finding["taken"] == 10000 and finding["consequence"] is None


def test_scaling_only_in_rope_parameters(server):
    parameters = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10240, "rope_theta": 1000000}
    answer = explain(server, hf_config={**QWEN5, "rope_parameters": parameters, "rope_theta": 1000000})
    assert found(answer, "scaling_dropped")["reader"] == "transformers4" and agreeing(answer) == TOOLS[1:]


def test_two_objects(server):
    answer = explain(server, hf_config={**QWEN, "rope_scaling": {"rope_type": "linear", "factor": 2.0},
                                        "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1000000}})
    finding = found(answer, "scaling_twice")
    assert (finding["reader"], finding["found"], finding["taken"]) == ("llama.cpp", "rope_scaling", "rope_parameters")
    assert answer["readers"]["llama.cpp"]["configs"][0]["scaling"]["factor"] == 4


def test_two_types(server):
    answer = explain(server, hf_config={**QWEN, "rope_scaling": {"rope_type": "linear", "type": "dynamic", "factor": 2.0}})
    finding = found(answer, "type_differs")
    assert finding["reader"] == "vllm" and "vLLM refuses" in answer["readers"]["vllm"]["refuses"] and not answer["readers"]["vllm"]["agrees"]
    assert "type_differs" not in codes(explain(server, hf_config={**PHI, "rope_scaling": {**PHI["rope_scaling"], "type": "su", "rope_type": "longrope"}}))


def test_rules_without_a_word(server):
    answer = explain(server, hf_config={**QWEN, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}}, length=131072)
    finding = found(answer, "rule_unknown")
    assert (finding["reader"], finding["found"], finding["taken"]) == ("llama.cpp", "dynamic", "default")
    assert finding["consequence"]["max_abs_cos"] > 1.9
    answer = explain(server, hf_config={**QWEN, "rope_scaling": {**LLAMA["rope_scaling"]}})
    assert found(answer, "rule_unknown")["found"] == "llama3", "the architecture qwen3 uses no divisors"


def test_attention_factors(server):
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10240, "attention_factor": 1.0}
    answer = explain(server, hf_config={**QWEN, "rope_scaling": yarn})
    assert {f["reader"] for f in answer["findings"] if f["code"] == "attention_factor_ignored"} == {"vllm", "llama.cpp"}
    finding = found(answer, "attention_factor_ignored", "vllm")
    assert finding["found"] == 1 and finding["taken"] == pytest.approx(1 + 0.1 * math.log(4), rel=1e-15)
    assert "/hf_config/rope_scaling/attention_factor" in finding["detail"]
    assert finding["consequence"]["first"] == 0 and agreeing(answer) == TOOLS[:2]


def test_no_original_length(server):
    answer = explain(server, hf_config={**QWEN, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}})
    finding = found(answer, "original_max_missing")
    assert finding["reader"] == "llama.cpp" and finding["taken"] == 40960
    assert "original_max_position_embeddings" in answer["readers"]["llama.cpp"]["refuses"]


def test_widths(server):
    answer = explain(server, hf_config={**DEEPSEEK, "partial_rotary_factor": 0.5})
    assert found(answer, "share_on_mla")["taken"] == 64
    assert found(explain(server, hf_config=OSS), "head_dim_mismatch")["found"] == 64
    glm = {"model_type": "glm4", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2, "max_position_embeddings": 32768}
    dropped = explain(server, hf_config={**glm, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}})
    assert found(dropped, "share_dropped")["reader"] == "transformers4"


def test_pairs_that_stand_still(server):
    model = {"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 4096, "head_dim": 128, "num_attention_heads": 32,
                                                       "num_hidden_layers": 2, "max_position_embeddings": 262144, "rope_theta": 5000000,
                                                       "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"}}}
    answer = explain(server, hf_config=model)
    finding = found(answer, "mrope_still_pairs")
    assert (finding["reader"], finding["found"], finding["consequence"]["first"]) == ("llama.cpp", 2, 24265)
    assert finding["consequence"]["max_abs_sin"] == pytest.approx(0.108, abs=1e-3)
    sum_ = json.loads(json.dumps(model))
    sum_["text_config"]["rope_scaling"]["mrope_section"] = [24, 20, 19]
    assert found(explain(server, hf_config=sum_), "mrope_sum")["found"] == 63, "transformers gives the rest to time"
    del sum_["text_config"]["rope_scaling"]["mrope_interleaved"]
    sum_["model_type"], sum_["text_config"]["model_type"] = "qwen2_vl", "qwen2_vl_text"
    broken = explain(server, hf_config=sum_)
    assert found(broken, "mrope_sum")["taken"] == 64 and broken["layers"][0]["config"] is None and broken["layers"][0]["refused"]


def test_classes_that_write_no_base(server):
    """The converter's classes of Gemma, Gemma 2 and Phi-2 write their own keys: neither a base nor a rule of scaling."""
    gemma = {"model_type": "gemma2", "hidden_size": 2304, "head_dim": 256, "num_attention_heads": 8, "num_hidden_layers": 4, "sliding_window": 4096,
             "max_position_embeddings": 8192, "rope_theta": 10000.0}
    assert agreeing(explain(server, hf_config=gemma)) == TOOLS
    answer = explain(server, hf_config={**gemma, "rope_theta": 50000.0})
    assert agreeing(answer) == TOOLS[:3]
    finding = found(answer, "theta_not_written")
    assert (finding["reader"], finding["found"], finding["taken"]) == ("llama.cpp", 50000, 10000)
    assert finding["detail"].startswith("llama.cpp writes no base for this model: it turns by base 10000 instead of 50000.")
    same_as(finding["consequence"], distance(ladder(256, 5e4), ladder(256, 1e4), 8192))
    answer = explain(server, hf_config={**gemma, "rope_scaling": {"rope_type": "linear", "factor": 2.0}})
    assert found(answer, "rule_unknown")["reader"] == "llama.cpp"


# ---- GGUF ----

FILE = {"general.architecture": "llama", "llama.context_length": 131072, "llama.embedding_length": 4096, "llama.attention.head_count": 32,
        "llama.rope.freq_base": 500000.0, "llama.rope.dimension_count": 128, "llama.block_count": 32}


def test_a_file_without_divisors(server):
    answer = explain(server, gguf=FILE)
    finding = found(answer, "divisors_missing")
    assert finding["level"] == "note" and finding["certain"] is False
    c = finding["consequence"]
    assert (c["position"], c["pair"], c["first"]) == (112496, 41, 12) and c["max_abs_cos"] == pytest.approx(1.99999995, abs=1e-8)
    assert list(answer["readers"]) == ["llama.cpp"] and answer["rows"] == "permuted" and answer["model"]["architecture"] == "llama"
    assert answer["model"]["num_layers"] == 32 and answer["dialect"] == "gguf"
    with_them = {**FILE, "tensors": {"rope_freqs.weight": [1.0] * 35 + [8.0] * 29}}
    assert "divisors_missing" not in codes(explain(server, gguf=with_them))
    assert "divisors_missing" not in codes(explain(server, gguf={**FILE, "llama.context_length": 8192}))


def test_a_file_in_part(server):
    answer = explain(server, gguf={**FILE, "tensors": {"rope_freqs.weight": None}})
    assert found(answer, "factors_unread")["level"] == "error" and answer["layers"][0]["config"] is None and answer["layers"][0]["refused"]


def test_keys_of_files(server):
    file = {"general.architecture": "qwen2", "qwen2.attention.key_length": 128, "qwen2.context_length": 40960, "qwen2.rope.scaling.factor": 4.0,
            "qwen2.rope.scaling.yarn_beta_fast": 64.0, "qwen2.rope.scaling.yarn_beta_slow": 1.0}
    answer = explain(server, gguf=file)
    assert found(answer, "freq_base_missing")["taken"] == 10000 and found(answer, "type_missing")["found"] == 4
    assert answer["defaults"]["qwen2.rope.freq_base"] == 10000
    fields = {f["pointer"]: f["readers"]["llama.cpp"] for f in answer["fields"]}
    assert fields["/gguf/qwen2.rope.scaling.factor"] == {"reads": True, "takes": 4, "from": "field"}
    assert fields["/gguf/qwen2.rope.scaling.yarn_beta_fast"]["reads"] is False and fields["/gguf/qwen2.rope.scaling.yarn_beta_fast"]["why"]
    assert {f["pointer"] for f in answer["findings"] if f["code"] == "key_not_read"} >= {"/gguf/qwen2.rope.scaling.yarn_beta_fast"}
    ends = {"qwen2.rope.scaling.yarn_beta_fast": 32, "qwen2.rope.scaling.yarn_beta_slow": 2}
    answer = explain(server, gguf={**file, **ends, "qwen2.rope.scaling.type": "yarn"})
    assert found(answer, "key_not_read")["pointer"].endswith("beta_slow"), "32 is what is taken for beta_fast anyway"
    gemma = explain(server, gguf={"general.architecture": "gemma3", "gemma3.attention.key_length": 256, "gemma3.block_count": 12,
                                  "gemma3.attention.sliding_window": 1024, "gemma3.rope.freq_base": 1000000.0})
    assert {"freq_base_swa_missing", "layers_differ"} <= set(codes(gemma))
    assert [k["layer_type"] for k in gemma["layers"]] == ["sliding_attention", "full_attention"]
    still = explain(server, gguf={"general.architecture": "llama4", "llama4.attention.key_length": 128, "llama4.block_count": 8,
                                  "llama4.attention.sliding_window": 0, "llama4.rope.freq_base": 500000.0})
    assert "last_layer_still" in codes(still)


# ---- Objects by kind of layers, as transformers 5 writes them ----

GEMMA5 = {"model_type": "gemma3_text", "hidden_size": 2560, "head_dim": 256, "num_attention_heads": 8,
          "num_hidden_layers": 12, "sliding_window": 1024, "max_position_embeddings": 32768,
          "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 2}
QWEN_VL = {"model_type": "qwen2_vl", "hidden_size": 1024, "num_attention_heads": 8, "num_hidden_layers": 2,
           "max_position_embeddings": 4096}


def by_layer(full, base=10000.0):
    return {**GEMMA5, "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": base},
                                          "full_attention": {"rope_theta": 1000000.0, **full}}}


def test_objects_by_layer(server):
    full = {"rope_type": "linear", "factor": 8.0, "rope_theta": 2000000.0}
    answer = explain(server, hf_config=by_layer(full, 20000.0))
    assert agreeing(answer) == TOOLS[1:] and codes(answer, "error") == ["scaling_dropped", "theta_dropped"]
    for name, bases in zip(TOOLS, [(10000, 1000000)] + [(20000, 2000000)] * 3):
        assert tuple(config["base"] for config in answer["readers"][name]["configs"]) == bases
    for name, factors in zip(TOOLS, [(None, None)] + [(None, 8)] * 3):
        assert tuple(config["scaling"].get("factor") for config in answer["readers"][name]["configs"]) == factors
    apart = {"sliding_attention": distance(ladder(256, 2e4), ladder(256, 1e4), 32768),
             "full_attention": distance(ladder(256, 2e6) / 8, ladder(256, 1e6), 32768)}
    scaling, base = found(answer, "scaling_dropped"), found(answer, "theta_dropped")
    assert (scaling["layers"], scaling["found"], scaling["taken"]) == (["full_attention"], "linear", "default")
    same_as(scaling["consequence"], apart["full_attention"])
    assert base["pointer"] == "/hf_config/rope_parameters/sliding_attention/rope_theta"
    assert (base["layers"], base["found"], base["taken"]) == (["sliding_attention", "full_attention"], 20000, 10000)
    same_as(base["consequence"], max(apart.values()))
    fields = {field["pointer"]: field["readers"] for field in answer["fields"]}
    factor = fields["/hf_config/rope_parameters/full_attention/factor"]
    assert [factor[name]["reads"] for name in TOOLS] == [False, True, True, True] and factor["vllm"]["takes"] == 8


@pytest.mark.parametrize("kind, bases", [("sliding_attention", (50000.0, 1000000.0)),
                                         ("full_attention", (10000.0, 5000000.0))])
def test_the_object_whose_base_is_dropped(server, kind, bases):
    finding = found(explain(server, hf_config=by_layer({"rope_theta": bases[1]}, bases[0])), "theta_dropped")
    assert finding["pointer"] == f"/hf_config/rope_parameters/{kind}/rope_theta" and finding["layers"] == [kind]
    assert (finding["found"], finding["taken"]) == ((50000, 10000) if kind[0] == "s" else (5000000, 1000000))


@pytest.mark.parametrize("kind, base", [("main", 20000.0), ("compress", 320000.0)])
def test_objects_of_compressed_layers(server, kind, base):
    """DeepSeek V4's objects have names of their own: main is that of layers of ratio 0."""
    objects = {"main": {"rope_type": "default", "rope_theta": 10000.0},
               "compress": {"rope_type": "default", "rope_theta": 160000.0}}
    objects[kind]["rope_theta"] = base
    config = {"model_type": "deepseek_v4", "num_hidden_layers": 3, "compress_ratios": [0, 4, 128]}
    answer = explain(server, hf_config={**config, "rope_parameters": objects})
    expected = [objects["main"]["rope_theta"]] + [objects["compress"]["rope_theta"]] * 2
    for name in TOOLS[1:]:
        assert [config["base"] for config in answer["readers"][name]["configs"]] == expected
    assert agreeing(answer) == TOOLS[1:]


def test_listed_frequencies(server):
    """They replace base and rule of the config: no base is named, and the rule is none."""
    config = {"model_type": "qwen3", "head_dim": 8, "rope_scaling": {"rope_type": "linear", "factor": 2}}
    answer = explain(server, hf_config=config, inv_freq=[1, 0.5, 0.2, 0.1])
    assert answer["layers"][0]["summary"] == "rope, 8 of 8 channels, half"
    rule = next(field for field in answer["fields"] if field["pointer"].endswith("/rope_type"))
    assert rule["value"] == "linear" and {tool["takes"] for tool in rule["readers"].values()} == {"default"}


def test_positions_that_do_not_turn(server):
    for config, scheme in (({"model_type": "bloom", "n_head": 4, "hidden_size": 64}, "alibi"),
                           ({"model_type": "gpt2", "n_embd": 8, "n_positions": 16}, "learned")):
        answer = explain(server, hf_config=config)
        assert agreeing(answer) == TOOLS and answer["layers"][0]["config"]["scheme"] == scheme
        assert all(tool["configs"][0]["scheme"] == scheme for tool in answer["readers"].values())


def test_rounding_by_layer(server):
    """transformers 5 reads truncate beside the objects only, the converter never."""
    def yarn(r, base, s, original, rounds):
        ends = [r * math.log(original / (2 * math.pi * beta)) / (2 * math.log(base)) for beta in (32, 1)]
        low, high = (math.floor(ends[0]), math.ceil(ends[1])) if rounds else ends
        ramp = np.clip((np.arange(r // 2) - low) / (high - low), 0, 1)
        return ladder(r, base) * (1 - ramp + ramp / s)
    answer = explain(server, hf_config=by_layer({"rope_type": "yarn", "factor": 4.0, "truncate": False,
                                                 "original_max_position_embeddings": 8192}))
    assert agreeing(answer) == ["vllm"]
    g = 1 + 0.1 * math.log(4)
    apart = distance(*(yarn(256, 1e6, 4, 8192, rounds) for rounds in (False, True)), 32768, g, g)
    for name in ("transformers5", "llama.cpp"):
        finding = found(answer, "truncate_dropped", name)
        assert finding["pointer"] == "/hf_config/rope_parameters/full_attention/truncate"
        assert (finding["layers"], finding["taken"]) == (["full_attention"], True)
        same_as(finding["consequence"], apart)


def test_objects_by_layer_that_tools_refuse(server):
    answer = explain(server, hf_config=by_layer({"rope_type": "linear", "type": "dynamic", "factor": 2.0}))
    assert answer["readers"]["vllm"]["refuses"] == "vLLM refuses a rope object whose type and rope_type differ"
    assert answer["readers"]["vllm"]["configs"] == [None, None]
    assert found(answer, "type_differs")["pointer"] == "/hf_config/rope_parameters/full_attention/type"
    answer = explain(server, hf_config=by_layer({"rope_type": "ntk", "factor": 2.0}))
    assert answer["readers"]["transformers5"]["refuses"] == 'transformers 5 has no rule "ntk"'
    assert answer["readers"]["llama.cpp"]["configs"][1]["scaling"] == {"type": "default"}, "the converter drops it"


def test_an_object_for_each_layer_beside_one_for_all(server):
    """Its rule is known to the converter, which reads the other object."""
    config = {**by_layer({"rope_type": "default"}), "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    answer = explain(server, hf_config=config)
    finding = found(answer, "scaling_twice")
    assert (finding["reader"], finding["taken"]) == ("llama.cpp", "rope_parameters")
    assert finding["layers"] == ["full_attention"]
    same_as(finding["consequence"], distance(ladder(256, 1e6) / 8, ladder(256, 1e6), 32768))
    assert codes(answer, "error") == ["scaling_twice"] and agreeing(answer) == TOOLS[:3]
    answer = explain(server, hf_config=config, readers=TOOLS[:3])
    finding = found(answer, "scaling_twice")
    assert (finding["reader"], finding["found"], finding["taken"]) == (None, "rope_parameters", "rope_scaling")
    assert finding["consequence"] is None and all(answer["readers"][name]["agrees"] for name in TOOLS[:3])


def test_one_kind_of_a_file(server):
    """The converter writes the base of sliding layers whether or not the others are asked about."""
    config = by_layer({"rope_type": "linear", "factor": 8.0}, 20000.0)
    for kind, base in (("sliding_attention", 20000), ("full_attention", 1000000)):
        tool = explain(server, hf_config=config, layer_type=kind)["readers"]["llama.cpp"]
        assert tool["agrees"] and [one["base"] for one in tool["configs"]] == [base]
    deep = {"model_type": "gemma4_text", "num_hidden_layers": 5000}
    too_many = explain(server, hf_config=deep)["readers"]["llama.cpp"]
    assert "sliding_window_pattern is missing" in too_many["refuses"] and too_many["configs"] == [None, None]
    unknown = explain(server, hf_config={"model_type": "persimmon"})["readers"]["llama.cpp"]
    assert "no architecture is known" in unknown["refuses"] and unknown["configs"] == [None]


def test_a_language_model_without_an_object(server):
    """The class makes it, with its defaults: there is nothing that a tool could read otherwise."""
    answer = explain(server, hf_config={"model_type": "gemma3"})
    assert agreeing(answer) == TOOLS and codes(answer, "error") == []
    for name in TOOLS:
        assert [config["base"] for config in answer["readers"][name]["configs"]] == [10000, 1000000]


@pytest.mark.parametrize("rule", [{"type": "dynamic", "factor": 2.0},
                                  {"type": "yarn", "original_max_position_embeddings": 1024}])
def test_sections_of_a_rule_that_is_dropped(server, rule):
    """The converter writes sections whatever the rule: dynamic has no key, and yarn needs the factor."""
    answer = explain(server, hf_config={**QWEN_VL, "rope_scaling": {**rule, "mrope_section": [16, 24, 24]}})
    config = answer["readers"]["llama.cpp"]["configs"][0]
    assert (config["scaling"], config["mrope_section"]) == ({"type": "default"}, [16, 24, 24])
    assert (config["head_dim"], config["channels"]) == (128, "mrope") and "mrope_sum" not in codes(answer)


def test_a_share_that_is_no_number(server):
    """It is refused; the sum of sections is compared with half of the whole head."""
    config = {**QWEN_VL, "partial_rotary_factor": True, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
    answer = explain(server, hf_config=config)
    finding = found(answer, "mrope_sum")
    assert answer["layers"][0]["refused"] and (finding["found"], finding["taken"]) == (8, 64)


# ---- Other dialects, forms, refusals ----


def test_presets_and_fields(server):
    answer = explain(server, preset="gemma-3")
    assert answer["readers"] == {} and answer["fields"] == [] and len(answer["layers"]) == 2 and answer["model"]["length_assumed"]
    answer = explain(server, scheme="rope", head_dim=64, base=5000)
    assert answer["dialect"] == "fields" and answer["layers"][0]["config"]["base"] == 5000


def test_readers_and_length(server):
    answer = explain(server, hf_config=QWEN5, readers=["transformers4"], length=100)
    assert list(answer["readers"]) == ["transformers4"] and found(answer, "theta_dropped")["consequence"]["length"] == 100
    same_as(found(answer, "theta_dropped")["consequence"], distance(ladder(128, 1e6), ladder(128, 1e4), 100))


def test_text_and_tags(server):
    answer = server.post("/explain", {"hf_config": QWEN5}, headers={"Accept": "text/plain"})
    lines = answer.body.decode().splitlines()
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain")
    assert lines[0] == "full_attention: rope, base 1000000, 128 of 128 channels, half" and lines[1].startswith("error theta_dropped: transformers 4")
    path = "/explain?hf_config=" + urllib.parse.quote(json.dumps(QWEN5))
    got = server.get(path)
    assert got.status == 200 and got.json() == explain(server, hf_config=QWEN5)
    assert server.get(path, headers={"If-None-Match": got.headers["ETag"]}).status == 304


# ---- Which layers ----


SMOLLM = {"model_type": "smollm3", "hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 36, "max_position_embeddings": 65536, "rope_theta": 5000000.0}
COHERE = {"model_type": "cohere2", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 8, "sliding_window": 4096}
EXAONE = {"model_type": "exaone4", "hidden_size": 4096, "num_attention_heads": 32, "sliding_window": 4096}
GEMMA_TEXT = {**GEMMA["text_config"], "num_hidden_layers": 26, "rope_scaling": None}
NEXT = {"model_type": "qwen3_next", "num_hidden_layers": 8, "rope_theta": 1e7}
S, F = "sliding_attention", "full_attention"


@pytest.mark.parametrize("config, pointer, kind, layers, n, of", [
    ({**SMOLLM, "no_rope_layers": [0, 0, 0, 1] * 9}, "no_rope_layers", "nope", ("0-2, 4-6, …, 32-34", "3, 7, …, 35"), 36, 36),
    ({**SMOLLM, "no_rope_layers": [0, 1, 1, 1] * 9}, "no_rope_layers", "nope", ("0, 4, …, 32", "3, 7, …, 35"), 18, 36),
    ({**SMOLLM, "no_rope_layers": [1] * 36}, "no_rope_layers", F, ("0-35", "0-2, 4-6, …, 32-34"), 9, 36),
    ({**SMOLLM, "no_rope_layer_interval": 2}, "no_rope_layer_interval", "nope", ("1, 3, …, 35", "3, 7, …, 35"), 9, 36),
    ({**SMOLLM, "no_rope_layers": [1, 1, 1, 0] * 9}, None, None, None, 0, 0), (SMOLLM, None, None, None, 0, 0), (COHERE, None, None, None, 0, 0),
    ({**COHERE, "layer_types": [F, S, S, S] * 2}, "layer_types", F, ("0, 4", "3, 7"), 4, 8),
    ({**GEMMA_TEXT, "sliding_window_pattern": 4}, "sliding_window_pattern", F, ("3, 7, …, 23", "5, 11, …, 23"), 6, 26),
    ({**GEMMA_TEXT, "layer_types": ([F] * 5 + [S]) * 4 + [F, F]}, "layer_types", S, ("5, 11, …, 23", "0-4, 6-10, …, 24-25"), 26, 26),
    (GEMMA_TEXT, None, None, None, 0, 0), ({**OSS, "layer_types": [F, S] * 2}, None, None, None, 0, 0), (NEXT, None, None, None, 0, 0),
    ({**EXAONE, "num_hidden_layers": 32}, "", F, ("3, 7, …, 31", ""), 8, 32), ({**EXAONE, "num_hidden_layers": 64}, None, None, None, 0, 0)],
    ids=range(15))
def test_layers_that_llama_cpp_takes_otherwise(server, config, pointer, kind, layers, n, of):
    """Every fourth layer of SmolLM3 and Cohere 2, every sixth of Gemma 3, whatever the config states; masks alone are no difference of positions."""
    answer = explain(server, hf_config=config)
    findings = [one for one in answer["findings"] if one["code"] == "layers"]
    if not n:
        assert findings == []
        return
    [finding] = findings
    assert finding["pointer"] == f"/hf_config/{pointer}".rstrip("/") and (finding["reader"], finding["layers"]) == ("llama.cpp", [kind])
    assert (finding["found"], finding["taken"]) == layers and f": {n} of {of} layers differ." in finding["detail"]
    assert all(text in finding["detail_zh"] for text in (f"{of} 层中有 {n} 层不同", *(f"第 {ranges} 层" for ranges in layers if ranges)))
    assert agreeing(answer) == TOOLS[:3] and answer["detail"].endswith(": llama.cpp.")
    alone = explain(server, hf_config=config, layer_type=kind)
    assert agreeing(alone) == TOOLS[:3] and [one["found"] for one in alone["findings"] if one["code"] == "layers"] == [layers[0]]


def test_olmo3_in_transformers_5(server):
    """One rotation for all layers: that of yarn, which the model was trained without in layers that slide."""
    rope = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192, "beta_fast": 32, "beta_slow": 1}
    config = {"model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 65536, "rope_theta": 500000}
    answer = explain(server, hf_config={**config, "rope_scaling": rope})
    assert agreeing(answer) == ["transformers4", "vllm", "llama.cpp"]
    slides, full = answer["readers"]["transformers5"]["configs"]
    assert slides["scaling"] == full["scaling"] == answer["layers"][1]["config"]["scaling"] and slides["scaling"]["type"] == "yarn"
    finding = found(answer, "sliding_scaled", "transformers5")
    assert (finding["pointer"], finding["layers"], finding["found"], finding["taken"]) == ("/hf_config/rope_scaling/rope_type", [S], "default", "yarn")
    assert finding["consequence"]["first"] == 0, "the factor on cos and sin is 1.2"
    assert agreeing(explain(server, hf_config=config)) == TOOLS
    by_kind = {**config, "rope_parameters": {F: {**rope, "rope_theta": 500000}, S: {"rope_type": "default", "rope_theta": 500000}}}
    assert explain(server, hf_config=by_kind)["readers"]["transformers5"]["agrees"], "each kind has its own object"


def test_slopes_of_mpt(server):
    """transformers' class takes 8 whatever the config states; vLLM and llama.cpp read it."""
    config = {"model_type": "mpt", "d_model": 512, "n_heads": 8, "n_layers": 2, "attn_config": {"alibi": True, "alibi_bias_max": 16}}
    answer = explain(server, hf_config=config)
    assert agreeing(answer) == TOOLS[2:] and answer["detail"].endswith(": transformers 4, transformers 5.")
    for tool in TOOLS[:2]:
        finding = found(answer, "slopes_dropped", tool)
        assert (finding["pointer"], finding["found"], finding["taken"]) == ("/hf_config/attn_config/alibi_bias_max", 16, 8)
        assert "slopes are those of 8 instead of 16" in finding["detail"]
    assert agreeing(explain(server, hf_config={**config, "attn_config": {"alibi": True, "alibi_bias_max": 8}})) == TOOLS


@pytest.mark.parametrize("fields, sentence", [
    ({"hf_config": QWEN}, "Every tool that was asked computes these numbers."),
    ({"hf_config": QWEN, "readers": []}, "No tool was asked."),
    ({"hf_config": GEMMA}, "Every tool that was asked computes these numbers of the language model; how tools read its other parts is not known."),
    ({"hf_config": {**QWEN, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}},
     "The tools that were asked compute these numbers, but not in every case: see the findings and notes."),
    ({"hf_config": {"model_type": "internlm3", "hidden_size": 64, "num_attention_heads": 2}, "readers": ["llama.cpp"]},
     "These tools compute other numbers, or refuse the model: llama.cpp."),
    ({"gguf": {"general.architecture": "llama", "llama.attention.key_length": 8}}, "Only these numbers are known; no other tool reads this dialect.")])
def test_what_every_tool_computes(server, fields, sentence):
    assert explain(server, **fields)["detail"] == sentence


def test_a_tool_agrees_with_no_refusal(server):
    """Sections that do not fit are refused by every tool, and so by none agreed with."""
    config = {"model_type": "qwen2_vl", "hidden_size": 1024, "num_attention_heads": 8, "num_hidden_layers": 2, "rope_theta": 1e6,
              "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 25]}}
    answer = explain(server, hf_config=config)
    assert answer["layers"][0]["config"] is None and agreeing(answer) == []
    cut = explain(server, gguf={"general.architecture": "llama", "llama.attention.key_length": 8, "tensors": {"rope_freqs.weight": None}})
    assert cut["readers"]["llama.cpp"]["agrees"] is False and cut["readers"]["llama.cpp"]["refuses"]


def test_the_text_has_refusals_and_notes(server):
    def text(config):
        return server.request("POST", "/explain", json.dumps({"hf_config": config}).encode(), {"Content-Type": "application/json", "Accept": "text/plain"}).body.decode()
    lines = text({"model_type": "internlm3", "hidden_size": 64, "num_attention_heads": 2}).splitlines()
    assert 'llama.cpp: no architecture is known here for model_type "internlm3"' in lines
    assert any(line.startswith("note: longrope: transformers takes the short list") for line in text(PHI).splitlines())


def test_catalogue(server):
    schemes = server.get("/schemes").json()
    assert [row["name"] for row in schemes["dialects"]] == TOOLS and all(row["source"] and row["summary"] for row in schemes["dialects"])
    rows = {row["code"]: row for row in schemes["contradictions"]}
    assert rows["theta_dropped"]["level"] == "error" and len(rows) == 31


def test_refusals(server):
    def no(pointers, *words, **fields):
        refused(server, pointers, *words, path="/explain", **fields)
    no("/hf_config/model_type", "not known", hf_config={"model_type": "qwen9"})
    no("/gguf/general.architecture", "", gguf={"general.architecture": "gptj"})
    no("/len", "no sequence", hf_config=QWEN, len=4)
    no("/readers", 'nearest: "transformers4"', hf_config=QWEN, readers=["transformer4"])
    no("/readers", "list of names", hf_config=QWEN, readers=[4])
    no("/readers", "one of: transformers4, transformers5, vllm, llama.cpp", hf_config=QWEN, readers="qqqqqqqqqq")
    no("/layer_type", "not a string", hf_config=GEMMA, layer_type=4)
    no("/length", "", hf_config=QWEN, length=0)
    no("/hf_conf", "unknown field", hf_config=QWEN, hf_conf={})
    no("/layer_type", "", hf_config=GEMMA, layer_type="chunked_attention")
    no("/preset", "unknown preset", preset="llama-9")
    no(("/preset", "/gguf"), "exclude", hf_config=QWEN, preset="llama-3.1")
    no("/scheme", "", layer_type="full_attention")
    no("/q", "not used", hf_config=QWEN, q=[[1, 2]])


# ---- Formats, and the text of a command ----


@pytest.mark.parametrize("path, words", [("/explain", "an explanation"), ("/translate", "a translation")])
def test_formats_that_are_refused(server, path, words):
    """At the field, or at nothing if Accept asks for it; a tensor alone would be q, which is not used."""
    for name, fields, headers in (("npy", {"format": "npy"}, {}), ("png", {"format": "png"}, {}),
                                  ("npy", {}, {"Accept": "application/x-npy"})):
        answer = server.post(path, {"hf_config": QWEN, **fields}, headers)
        told = f"{words} is JSON or text and has no tensor, so {name} cannot carry it"
        assert answer.status == 406 and answer.json()["detail"] == told, answer
        assert answer.json().get("pointer") == ("/format" if fields else None)
    file = io.BytesIO()
    np.save(file, np.ones((2, 4), "f4"))
    answer = server.post(f"{path}?preset=llama-3.1", file.getvalue(), {"Content-Type": "application/x-npy"})
    assert answer.status == 422 and answer.json()["pointer"] == "/q" and "not used" in answer.json()["detail"]


def test_text_of_a_translation_for_each_kind(server):
    answer = server.post("/translate", {"hf_config": GEMMA, "to": "vllm_old"}, {"Accept": "text/plain"})
    targets = server.ask("/translate", hf_config=GEMMA, to="vllm_old").json()["targets"]
    assert [target["layer_type"] for target in targets] == ["sliding_attention", "full_attention"]
    lines = [line for target in targets for line in (f"vllm_old, {target['layer_type']}:", target["text"])]
    assert [line for line in answer.body.decode().splitlines() if not line.startswith("  ")][:-1] == lines
    flags = shlex.split(targets[1]["text"])
    assert flags[0] == "--rope-scaling" and json.loads(flags[1])["factor"] == 8
    assert flags[2:] == ["--rope-theta", "1000000.0"]


KNOWN = {"head_dim": 64, "layout": "half"}


def test_words_are_split_as_a_shell_does(server):
    """What Python's shlex makes of it; a flag that is not read is named, its first 128 bytes in whole characters."""
    text = ("vllm serve a\\ b --one\\ two --three'fo\\ur' --fi\\\\ve \"--si\\\"x\" --sev\\\nen --'eight nine' "
            '--max-model-len 50\\\n00 --\\{ten --a' + "é" * 100 + " --hf-overrides {\\\"rope_parameters\\\":{\\\"rope_theta\\\":5e5}}")
    words = shlex.split(text.replace("\\\n", ""))
    answer = server.ask("/translate", said={"to": "vllm", "text": text}, to="transformers5", **KNOWN).json()
    assert answer["config"]["base"] == json.loads(words[-1])["rope_parameters"]["rope_theta"] == 5e5
    flags = [word.encode()[:128].decode(errors="ignore") for word in words if word.startswith("--")]
    assert answer["model"]["ignored"] == [flag for flag in flags if flag not in ("--max-model-len", "--hf-overrides")]
    assert len(answer["model"]["ignored"]) == 8


STATED = "--hf-overrides '{\"rope_parameters\":{\"rope_theta\":5e5}}'"


@pytest.mark.parametrize("text, status, words", [
    (STATED + " x" * 1022, 200, ""), ("x " * 1025, 422, "at byte 2048 there are more than 1024 words"), (STATED + " " + "x" * (65535 - len(STATED)), 200, ""),
    ("x" * 65537, 413, "text has 65537 bytes; allowed: at most 65536"),
    ("x --hf-overrides '" + "\x01" * 65000 + "'", 422, "hf_overrides is not an object")], ids=range(5))
def test_long_texts(server, text, status, words):
    answer = server.post("/translate", {"said": {"to": "vllm", "text": text}, **KNOWN})
    assert answer.status == status, answer
    if words:
        assert words in answer.json()["detail"] and answer.json()["pointer"].startswith("/said/")
