"""A config.json and a .gguf file in one `difference`: the verdict, what it is due to, and the converter's order of rows. The truth is
NumPy's: frequencies from the published rules, vectors that are turned here."""
import json

import numpy as np
import pytest

import truth
from analysis_asking import ask
from truth import gguf_writer as gguf
from tensors import multipart

LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "rope_theta": 500000.0,
         "max_position_embeddings": 131072}
LLAMA_31 = {**LLAMA, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                      "original_max_position_embeddings": 8192}}
GEMMA_3 = {"model_type": "gemma3_text", "head_dim": 256, "hidden_size": 1152, "num_attention_heads": 4, "num_hidden_layers": 26,
           "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 512, "max_position_embeddings": 32768}
POSITIONS = [0, 1, 2, 4095, 131071]
PLAIN = 500000.0 ** -(np.arange(0, 128, 2) / 128)


def exact_divisors():
    """Llama 3.1's rule in float64."""
    turns = 8192 / (2 * np.pi / PLAIN)
    smooth = np.clip((turns - 1) / 3, 0, 1)
    return 1 / ((1 - smooth) / 8 + smooth)


def keys(architecture="llama", divisors=True, **more):
    """The object of the keys; __ stands for a dot."""
    named = {"context_length": 131072, "block_count": 32, "embedding_length": 4096, "attention__head_count": 32, "rope__freq_base": 500000.0,
             "rope__dimension_count": 128, **more}
    found = {"general.architecture": architecture, **{f"{architecture}.{name.replace('__', '.')}": x for name, x in named.items() if x is not None}}
    return {**found, "tensors": {"rope_freqs.weight": gguf.llama3_divisors().astype(float).tolist()}} if divisors else found


def compared(server, first, other, **fields):
    return ask(server, [first, other], ["difference"], **{"positions": POSITIONS, "dtype": "f64", **fields})[0][1]["difference"]


def turned(w, is_half):
    """R_p v of all positions: v_j = 1 + j/d, pairs of halves or of neighbours."""
    d = 2 * len(w)
    return truth.turned(1 + np.arange(d) / d, np.outer(POSITIONS, w), "half" if is_half else "interleaved")


def most(w, other, is_half=True):
    """The largest difference of cosines, sines and turned vectors; the model's pairs are halves."""
    angles = [np.array(POSITIONS)[:, None] * x for x in (w, other)]
    tables = max(np.abs(f(angles[0]) - f(angles[1])).max() for f in (np.cos, np.sin))
    return max(tables, np.abs(turned(w, True) - turned(other, is_half)).max())


# ---- The examples of Llama 3.1 ----


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_true_file(server, is_reversed):
    """The rule in the config.json, its divisors in the file: rounding of f32, and rows that are put back."""
    sides = [{"hf_config": LLAMA_31}, {"gguf": keys()}]
    found = compared(server, *(sides[::-1] if is_reversed else sides))
    w, other = PLAIN / exact_divisors(), PLAIN / gguf.llama3_divisors().astype(float)
    rel = np.abs(other - w) / (other if is_reversed else w)
    assert found["permutation"] == "half_to_interleaved" and found["verdict"] == "rounding" and found["reasons"] == []
    assert found["frequencies"]["pair"] == rel.argmax() and found["frequencies"]["max_rel"] == pytest.approx(rel.max(), rel=1e-6)
    assert found["value"] == pytest.approx(most(w, other), abs=1e-9) and found["compared"] == ["cos", "sin", "rotated"]
    assert 0 < found["value"] < 2e-5
    assert "same positions" in found["detail"] and "f32" in found["detail_zh"]


def test_a_file_without_its_divisors(server):
    found = compared(server, {"hf_config": LLAMA_31}, {"gguf": keys(divisors=False)})
    rel = np.abs(exact_divisors() - 1)
    assert (found["verdict"], found["reasons"], found["permutation"]) == ("differs", ["scaling"], "half_to_interleaved")
    assert found["frequencies"] == {"max_rel": pytest.approx(7, rel=1e-12), "pair": pytest.approx(rel.argmax(), abs=20)}
    assert exact_divisors()[found["frequencies"]["pair"]] == 8
    assert found["value"] == pytest.approx(most(PLAIN / exact_divisors(), PLAIN), abs=1e-9)
    assert "llama3 with factor 8 in the config.json, default in the .gguf file" in found["detail"]
    assert "config.json 中是" in found["detail_zh"]


def test_the_name_of_another_architecture(server):
    """qwen2 turns halves and uses no divisors; the converter has not permuted its rows, so nothing is put back."""
    found = compared(server, {"hf_config": LLAMA_31}, {"gguf": keys("qwen2")})
    assert (found["verdict"], found["reasons"], found["permutation"]) == ("differs", ["scaling"], None)
    found = compared(server, {"hf_config": LLAMA}, {"gguf": keys("qwen2", divisors=False)})
    assert (found["verdict"], found["value"], found["equal"]) == ("same", 0, 1)


def test_neighbours_in_rows_as_published(server):
    """chatglm's neighbours are other pairs than the model's halves: the same frequencies, but other scores."""
    found = compared(server, {"hf_config": LLAMA}, {"gguf": keys("chatglm", divisors=False)})
    assert (found["verdict"], found["reasons"], found["permutation"]) == ("differs", ["layout"], None)
    assert found["frequencies"] == {"max_rel": 0, "pair": 0}
    assert found["value"] == pytest.approx(most(PLAIN, PLAIN, is_half=False), abs=1e-9)
    assert 'layout is "half" in the config.json, "interleaved" in the .gguf file' in found["detail"]


def test_the_rows_of_the_same_numbers(server):
    """Without rounding and without scaling every number is equal, once the rows are put back."""
    found = compared(server, {"hf_config": LLAMA}, {"gguf": keys(divisors=False)})
    assert (found["verdict"], found["value"], found["permutation"]) == ("same", 0, "half_to_interleaved")
    assert found["detail"] == "Both mean the same positions, number for number."
    two_files = compared(server, {"gguf": keys(divisors=False)}, {"gguf": keys(divisors=False)})
    assert (two_files["verdict"], two_files["permutation"]) == ("same", None)
    plain = compared(server, {"scheme": "rope", "head_dim": 128, "base": 500000, "layout": "half"}, {"gguf": keys(divisors=False)})
    assert (plain["verdict"], plain["permutation"]) == ("same", "half_to_interleaved")
    named = compared(server, {"scheme": "rope", "head_dim": 128, "base": 500000, "layout": "interleaved"}, {"gguf": keys(divisors=False)})
    assert (named["verdict"], named["permutation"]) == ("same", None)


# ---- Reasons ----


def reasons(server, config, file, **fields):
    found = compared(server, {"hf_config": config}, {"gguf": file}, **fields)
    return found["verdict"], found["reasons"]


def test_reasons(server):
    """What differs and matters: the same divisors at another base are the same scaling."""
    assert reasons(server, LLAMA_31, keys(rope__freq_base=10000.0)) == ("differs", ["base"])
    assert reasons(server, LLAMA_31, keys(rope__freq_base=None)) == ("differs", ["base"])
    assert reasons(server, {**LLAMA, "rope_theta": 500001.7}, keys(divisors=False, rope__freq_base=float(np.float32(500001.7)))) == ("rounding", [])
    assert reasons(server, LLAMA, keys(divisors=False, rope__scaling__attn_factor=1.5)) == ("differs", ["attention_factor"])
    assert reasons(server, LLAMA, keys("chatglm", divisors=False, rope__dimension_count=64))[1][:1] == ["rotary_dim"]
    yarn = {**LLAMA, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}
    file = {"rope__scaling__type": "yarn", "rope__scaling__factor": 4.0, "rope__scaling__original_context_length": 32768}
    assert reasons(server, yarn, keys(divisors=False, **file)) == ("same", [])
    assert reasons(server, yarn, keys(divisors=False, **{**file, "rope__scaling__factor": 8.0}))[1] == ["scaling.factor", "attention_factor"]
    assert reasons(server, yarn, keys(divisors=False))[1] == ["scaling", "attention_factor"]
    assert reasons(server, {"model_type": "mpt", "d_model": 64, "n_heads": 8, "attn_config": {"alibi": True}}, keys(divisors=False))[1] == ["scheme"]


def test_gpt_oss_cannot_say_truncate(server):
    scaling = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 4096}
    config = {"model_type": "gpt_oss", "head_dim": 64, "rope_theta": 150000, "num_hidden_layers": 24, "max_position_embeddings": 131072,
              "rope_scaling": scaling}
    file = {name: x for name, _, x in gguf.ARCHITECTURES["gpt-oss"][0] if not name.startswith("tokenizer.")}
    assert reasons(server, config, file) == ("differs", ["scaling.truncate"])


def test_without_another_tool(server):
    """Two configurations have a verdict as well; their sentence stays that of the numbers."""
    rope = {"scheme": "rope", "head_dim": 8}
    for other, verdict, why in [({}, "same", []), ({"layout": "half"}, "differs", ["layout"]), ({"base": 9999}, "differs", ["base"]),
                                ({"direction": -1}, "differs", ["direction"]), ({"arith": "float32"}, "rounding", []),
                                ({"scaling": {"type": "linear", "factor": 2}}, "differs", ["scaling"])]:
        found = compared(server, rope, {**rope, **other}, positions=[0, 1, 2, 3])
        assert (found["verdict"], found["reasons"]) == (verdict, why), other
        assert found["detail"].startswith("Compared in f64") and found["permutation"] is None
    at_zero = compared(server, rope, {**rope, "base": 9999}, positions=[0])
    assert (at_zero["value"], at_zero["verdict"], at_zero["reasons"]) == (0, "differs", ["base"])
    found = ask(server, [{**rope, "len": 4}, {**rope, "len": 4, "offset": 1}, {"scheme": "alibi", "len": 4}], ["difference"])[0]
    assert [(one["difference"]["verdict"], one["difference"]["reasons"]) for one in found[1:]] == [("differs", ["positions"]), ("differs", ["scheme"])]
    assert found[2]["difference"]["frequencies"] is None
    bias = [{"scheme": "alibi", "len": 4, "num_heads": 2}] * 2
    assert ask(server, bias, ["difference"])[0][1]["difference"]["verdict"] == "same"


def test_a_verdict_of_one_length(server):
    """dynamic does nothing up to the model's length: without it the numbers are the same there, and the verdict names the length that it is about."""
    plain = {"model_type": "qwen2", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 2048, "rope_theta": 500000.0}
    dynamic = {"hf_config": {**plain, "rope_scaling": {"type": "dynamic", "factor": 2.0}}}
    for last, length, verdict in ((100, 101, "same"), (2047, 2048, "same"), (2048, 2049, "differs"), (5000, 5001, "differs")):
        found = compared(server, dynamic, {"hf_config": plain}, positions=[0, last])
        assert (found["verdict"], found["length"]) == (verdict, length)
        assert (f"for a sequence of {length} positions" in found["detail"]) == (f"{length} 个位置" in found["detail_zh"]) == (verdict == "same")
    stated = {"head_dim": 128, "base": 500000.0, "layout": "half", "scheme": "rope", "scaling": {**dynamic["hf_config"]["rope_scaling"], "max_position_embeddings": 2048, "seq_len": 9}}
    assert compared(server, stated, {"hf_config": plain})["length"] is None and compared(server, {"hf_config": plain}, {"hf_config": plain})["length"] is None


def test_divisors_are_a_scaling(server):
    """Their share of each wavelength is what `wavelengths` calls its ratio."""
    _, tensors = ask(server, {"gguf": keys(), "len": 4}, ["wavelengths"])
    np.testing.assert_allclose(tensors["ratio.0"], 1 / gguf.llama3_divisors().astype(float), rtol=1e-12)


# ---- Kinds of layers ----


def test_kinds_are_paired_by_their_name(server):
    file = {name: x for name, _, x in gguf.ARCHITECTURES["gemma3"][0] if not name.startswith("tokenizer.")}
    sides = {"hf_config": GEMMA_3}, {"gguf": file}
    for kind in ("full_attention", "sliding_attention"):
        assert compared(server, *sides, layer_type=kind)["verdict"] == "same"
    crossed = compared(server, {**sides[0], "layer_type": "full_attention"}, {**sides[1], "layer_type": "sliding_attention"})
    assert (crossed["verdict"], crossed["reasons"]) == ("differs", ["base", "kind"])
    for configs, pointer in ((sides, "/configs/0/layer_type"), (sides[::-1], "/configs/0/layer_type"),
                             (({**sides[0], "layer_type": "full_attention"}, sides[1]), "/configs/1/layer_type")):
        answer = server.post("/analyze", {"configs": list(configs), "len": 4, "metrics": ["difference"]})
        problem = answer.json()
        assert (answer.status, problem["pointer"], sorted(problem["layer_types"])) == (422, pointer, ["full_attention", "sliding_attention"])


SMOLLM = {"model_type": "smollm3", "hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 36, "rope_theta": 5000000.0}
OF_SMOLLM = {"embedding_length": 2048, "attention__head_count": 16, "block_count": 36, "rope__freq_base": 5000000.0, "rope__dimension_count": None}
OF_GEMMA = {"embedding_length": 1152, "attention__head_count": 4, "attention__key_length": 256, "block_count": 26, "rope__freq_base": 1000000.0,
            "rope__dimension_count": None, "attention__sliding_window": 512}
HYBRID = {"model_type": "qwen3_next", "num_hidden_layers": 8, "rope_theta": 1e7, "head_dim": 256, "partial_rotary_factor": 0.25}


@pytest.mark.parametrize("config, file, kinds, layers", [
    (SMOLLM, keys("smollm3", False, **OF_SMOLLM), ("nope", "full_attention"), None),
    ({**SMOLLM, "no_rope_layers": [0, 1, 1, 1] * 9}, keys("smollm3", False, **OF_SMOLLM), ("nope",), ("0, 4, …, 32", "3, 7, …, 35", 18, 36)),
    ({**SMOLLM, "no_rope_layers": [0, 1, 1, 1] * 9}, keys("smollm3", False, **OF_SMOLLM), ("full_attention",), ("1-3, 5-7, …, 33-35", "0-2, 4-6, …, 32-34", 18, 36)),
    (GEMMA_3, keys("gemma3", False, **OF_GEMMA), ("full_attention", "sliding_attention"), None),
    (GEMMA_3, keys("gemma3", False, **OF_GEMMA, attention__sliding_window_pattern=4), ("full_attention",), ("5, 11, …, 23", "3, 7, …, 23", 6, 26)),
    ({**GEMMA_3, "num_hidden_layers": 12}, keys("gemma3", False, **OF_GEMMA), ("full_attention", "sliding_attention"), None),
    (HYBRID, keys("qwen3next", False, attention__key_length=256, block_count=8, rope__freq_base=1e7, rope__dimension_count=64), (None,), None)])
def test_a_kind_is_that_of_the_same_layers(server, config, file, kinds, layers):
    """Layers without positions have no width; layers that both have are compared, if they are attention in both."""
    for kind in kinds:
        found = compared(server, {"hf_config": config}, {"gguf": file}, **({"layer_type": kind} if kind else {}))
        if not layers:
            assert found["verdict"] in ("same", "rounding") and found["reasons"] == [] and "layers" not in found
            assert kind != "nope" or found["detail"] == "Both have no positions."
            continue
        assert (found["verdict"], found["reasons"]) == ("differs", ["layers"]) and found["layers"] == dict(zip(("found", "taken", "differ", "of"), layers))
        assert f"layers {layers[0]}, the .gguf file " in found["detail"] and f": {layers[2]} of {layers[3]} layers differ." in found["detail"]
        assert f"第 {layers[0]} 层" in found["detail_zh"] and f"第 {layers[1]} 层" in found["detail_zh"]


# ---- Files ----


def test_parts_of_one_body(server):
    """The file's bytes as a part that an entry names: the same answer as its keys."""
    request = {"configs": [{"hf_config": LLAMA_31}, {"gguf": "a"}], "positions": POSITIONS, "dtype": "f64", "metrics": ["difference"]}
    body, headers = multipart(request=json.dumps(request), a=gguf.file("llama"))
    answer = server.request("POST", "/analyze", body, headers)
    found = answer.json()["results"][1]["difference"]
    by_keys = compared(server, {"hf_config": LLAMA_31}, {"gguf": keys()})
    assert found == by_keys and found["verdict"] == "rounding"
