"""GGUF keys as JSON: keys, architectures and defaults as llama.cpp takes them. The expected values are written from a
description of its code (commit 6c8dcaa), not from posenc's tables and not from the code itself; frequencies are compared with truth/ggml.py."""
import math

import numpy as np
import pytest

import truth.ggml as ggml_truth
from asking import refused
from tensors import encode, encode_one

NEIGHBOURS = """llama llada llama4 deci baichuan internlm2 minicpm xverse command-r cohere2 cohere2moe olmo arctic deepseek deepseek2
 deepseek32 deepseek4 plm chatglm granite granitemoe granitehybrid chameleon bailingmoe neo-bert smollm3 arcee ernie4_5 ernie4_5-moe
 mistral3 eagle3 mistral4 llama-embed maincoder glm-dsa nanbeige glm4""".split()
HALVES = """falcon falcon-h1 grok dbrx jina-bert-v3 modern-bert nomic-bert nomic-bert-moe eurobert stablelm bitnet qwen qwen2 dream
 qwen2moe qwen3 qwen3moe llada-moe rnd1 olmo2 olmoe phi2 phi3 phimoe plamo plamo2 plamo3 gemma gemma2 gemma3 gemma3n gemma4
 gemma4-assistant gemma-embedding starcoder2 openelm gptneox codeshell orion nemotron exaone exaone4 exaone-moe minicpm3 bailingmoe2
 dots1 hunyuan-moe jais2 gpt-oss hunyuan-dense hy_v3 lfm2 lfm2moe smallthinker seed_oss grovemoe apertus minimax-m2 minimax-m3 cogvlm
 pangu-embedded afmoe laguna qwen3next mimo2 step35 talkie mellum glm4moe hunyuan_vl deepseek2-ocr qwen2vl paddleocr qwen3vl qwen3vlmoe
 qwen35 qwen35moe""".split()
PERMUTED = """llama llama-embed deci mistral3 arcee smollm3 granite granitemoe granitehybrid minicpm eagle3 deepseek baichuan internlm2
 xverse olmo arctic chameleon bailingmoe llada maincoder nanbeige""".split()
LAST = "deepseek2 deepseek32 deepseek4 glm-dsa mistral4 minicpm3 plm".split()
REFUSED = "clip wavtokenizer-dec gptj dflash barbet".split()
UNSURE = "baichuan internlm2 xverse olmo arctic chameleon bailingmoe llada maincoder nanbeige".split()
NO_POSITIONS = "mamba mamba2 jamba rwkv6 rwkv6qwen2 rwkv7 arwkv7 nemotron_h nemotron_h_moe kimi-linear".split()


def keys(architecture, **more):
    """A file with the keys of its architecture; __ stands for a dot."""
    own = {f"{architecture}.{name.replace('__', '.')}": value for name, value in more.items() if name != "tensors"}
    rest = {"tensors": more["tensors"]} if "tensors" in more else {}
    return {"general.architecture": architecture, **own, **rest}


def ask(server, gguf, **fields):
    return server.ask("/encode", gguf=gguf, **{"len": 2, "data": False, **fields})


def config(server, architecture, layer_type=None, **more):
    fields = {"layer_type": layer_type} if layer_type else {}
    answer = ask(server, keys(architecture, **more), **fields)
    return answer.json()["config"]


# ---- The rotation of each architecture ----


@pytest.mark.parametrize("architecture", NEIGHBOURS + HALVES)
def test_pairing(server, architecture):
    head, r = 24, 24 if architecture not in LAST else 16
    more = {"attention__key_length": head, "rope__dimension_count": r, "rope__dimension_sections": [4, 4, 4, 0]}
    if architecture == "deepseek4":
        more |= {"attention__compress_ratios": [0, 0], "attention__compress_rope_freq_base": 5000}
    fields = {"layer_type": "full_attention"} if architecture == "smollm3" else {"layer_type": "chunked_attention"} if architecture == "llama4" else {"layer_type": "full_attention"} if architecture == "afmoe" else {}
    answer = ask(server, keys(architecture, **more), **fields).json()
    mrope = architecture in ("glm4", "glm4moe", "hunyuan_vl", "qwen2vl", "paddleocr")
    imrope = architecture in ("qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe")
    assert answer["config"]["layout"] == ("half" if architecture in HALVES or mrope else "interleaved")
    assert answer["config"].get("channels") == ("mrope" if mrope else "imrope" if imrope else None)
    assert answer["config"]["rotary_offset"] == (head - r if architecture in LAST else 0)
    assert answer["gguf"]["rows"] == ("permuted" if architecture in PERMUTED else "as_published")
    assert answer["gguf"]["architecture"] == architecture and answer["gguf"]["source"] == "llama.cpp 6c8dcaa"
    assert answer["gguf"]["certainty"] == ("unverified" if architecture in UNSURE else "code")


@pytest.mark.parametrize("architecture", ["glm4", "glm4moe", "hunyuan_vl"])
def test_sections_decide(server, architecture):
    for sections in ({}, {"rope__dimension_sections": [0, 0, 0, 0]}, {"rope__dimension_sections": [12, 0, 0, 0]}):
        found = config(server, architecture, attention__key_length=24, **sections)
        assert "channels" not in found and found["layout"] == ("interleaved" if architecture == "glm4" else "half")


def test_sections_are_needed(server):
    for architecture in ("qwen2vl", "qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe"):
        refused(server, f"/gguf/{architecture}.rope.dimension_sections", "missing", gguf=keys(architecture, attention__key_length=24), len=2)
    refused(server, "/gguf/qwen2vl.rope.dimension_sections", "", gguf=keys("qwen2vl", attention__key_length=24, rope__dimension_sections=[4, 4, 3, 0]), len=2)


def test_the_whole_head(server):
    for architecture in ("llama", "deci", "falcon", "llama-embed"):
        refused(server, f"/gguf/{architecture}.rope.dimension_count", "refuses",
                gguf=keys(architecture, attention__key_length=64, rope__dimension_count=32), len=2)
    assert config(server, "stablelm", attention__key_length=64, rope__dimension_count=16)["rotary_dim"] == 16


# ---- Keys ----


def test_the_example_of_a_lost_base(server):
    answer = ask(server, keys("qwen2", embedding_length=3584, attention__head_count=28, context_length=32768)).json()
    assert (answer["config"]["head_dim"], answer["config"]["base"], answer["config"]["layout"]) == (128, 10000, "half")
    assert answer["config"]["scaling"] == {"type": "default"}
    assert answer["gguf"]["defaults"] == {"qwen2.rope.freq_base": 10000.0, "qwen2.rope.dimension_count": 128}


def test_widths(server):
    assert config(server, "llama", embedding_length=64, attention__head_count=[0, 8, 4])["head_dim"] == 8
    assert config(server, "deepseek2", attention__key_length=576, attention__key_length_mla=192, rope__dimension_count=64)["rotary_offset"] == 128
    refused(server, "/gguf/llama.attention.head_count", "divisor", gguf=keys("llama", embedding_length=64, attention__head_count=7), len=2)
    refused(server, "/gguf/llama.embedding_length", "missing", gguf=keys("llama"), len=2)
    for name, value in (("embedding_length", 0), ("attention.head_count", 0), ("attention.key_length", 0), ("attention.key_length", 1.5),
                        ("attention.key_length", "8"), ("attention.key_length", -8), ("rope.freq_base", 0), ("rope.freq_base", -1),
                        ("rope.freq_base", "NaN"), ("rope.freq_base", True), ("rope.scaling.factor", -2), ("rope.scaling.type", "su"),
                        ("rope.scaling.type", 1), ("rope.scaling.attn_factor", 0), ("rope.freq_base", 1e15)):
        file = {"general.architecture": "llama", "llama.embedding_length": 64, "llama.attention.head_count": 8, f"llama.{name}": value}
        refused(server, f"/gguf/llama.{name}", "", gguf=file, len=2)


def scaling(server, architecture, layer_type=None, **more):
    more = {"attention__key_length": 128, "context_length": 131072, **{f"rope__scaling__{k}" if not k.startswith("_") else k[1:]: v for k, v in more.items()}}
    found = config(server, architecture, layer_type, **more)
    return found["scaling"], found["attention_factor"]


def test_types(server):
    assert scaling(server, "qwen2", type="none", factor=4) == ({"type": "default"}, 1)
    assert scaling(server, "qwen2", factor=1) == scaling(server, "qwen2", factor=0) == ({"type": "default"}, 1)
    for file in (dict(factor=4), dict(type="linear", factor=4), dict(_rope__scale_linear=4), dict(type="longrope", factor=4)):
        found, factor = scaling(server, "qwen2", **file)
        assert (found["type"], found["convention"], found["factor"], factor) == ("linear", "ggml", 4, 1)
    assert scaling(server, "qwen2", factor=4, attn_factor=1.5)[1] == 1.5
    assert scaling(server, "qwen2", attn_factor=1.5) == ({"type": "default"}, 1.5)
    found, factor = scaling(server, "qwen2", type="yarn", factor=4, yarn_beta_fast=64, yarn_log_multiplier=1, yarn_attn_factor=3)
    assert (found["type"], found["original_max_position_embeddings"], found["beta_fast"], found["beta_slow"]) == ("yarn", 131072, 32, 1)
    assert factor == pytest.approx(float(ggml_truth.magnitude(4, 1)), rel=1e-15)
    assert scaling(server, "qwen2", type="yarn", factor=4, original_context_length=32768)[0]["original_max_position_embeddings"] == 32768
    assert scaling(server, "mistral3", type="yarn", factor=4, yarn_beta_fast=64, yarn_beta_slow=2)[0]["beta_fast"] == 64
    assert scaling(server, "mistral3", type="yarn", factor=4, yarn_log_multiplier=1)[1] == 1
    assert scaling(server, "grok", type="yarn", factor=4)[0]["beta_fast"] == 8
    assert scaling(server, "grok", type="yarn", factor=4, yarn_ext_factor=0, yarn_attn_factor=3, attn_factor=2) == (
        {"type": "linear", "convention": "ggml", "factor": 4.0}, 6)
    assert scaling(server, "grok", factor=4, yarn_ext_factor=0.5)[0]["extrapolation_factor"] == 0.5
    assert scaling(server, "deepseek2-ocr", type="yarn", factor=4, _rope__freq_base=5e5) == ({"type": "default"}, 1)


def test_mla(server):
    """DeepSeek-V3 and V2, and V2's keys under another architecture's name."""
    for architecture, stored, attention, softmax in [("deepseek2", 0.1, 1, 1.8738542070926265), ("deepseek2", 0.0707, 1, 1.5896261651208736),
                                                     ("deepseek32", 0.0707, 1.0857263992561355, 1.8738542070926258)]:
        found, factor = scaling(server, architecture, type="yarn", factor=40, original_context_length=4096, yarn_log_multiplier=stored)
        assert factor == pytest.approx(attention, rel=1e-15) and found["softmax_scale_factor"] == pytest.approx(softmax, rel=1e-15)
    found, factor = scaling(server, "glm-dsa", attn_factor=2)
    assert factor == 2 and found["softmax_scale_factor"] == 4


def test_alpha(server):
    for architecture, expected in (("hunyuan_vl", 10000 * 1000 ** (128 / 126)), ("hunyuan-dense", 10000)):
        found = config(server, architecture, attention__key_length=128, rope__scaling__alpha=1000)
        assert found["base"] == pytest.approx(expected, rel=1e-14)


def test_finetuned(server):
    for architecture in ("granite", "granitemoe", "granitehybrid"):
        for value, scheme in ((True, "rope"), (False, "none")):
            assert config(server, architecture, attention__key_length=64, rope__scaling__finetuned=value)["scheme"] == scheme
        assert config(server, architecture, attention__key_length=64)["scheme"] == "rope"
    assert config(server, "llama", attention__key_length=64, rope__scaling__finetuned=False)["scheme"] == "rope"


def test_ignored(server):
    file = {**keys("qwen2", attention__key_length=64, rope__scaling__yarn_beta_fast=64, rope__scaling__what=1, general__name="x", vocab_size=5,
                   attention__sliding_window=7, attention__scale=0.1), "llama.rope.freq_base": 5e5, "tokenizer.ggml.model": "gpt2"}
    answer = ask(server, file).json()
    assert sorted(answer["gguf"]["ignored"]) == ["llama.rope.freq_base", "qwen2.attention.scale", "qwen2.attention.sliding_window", "qwen2.rope.scaling.what",
                                                "qwen2.rope.scaling.yarn_beta_fast"]
    assert answer["config"]["base"] == 10000


BUCKETS, SECTIONS = "attention.relative_buckets_count", "rope.dimension_sections"
PATTERN, RATIOS = "attention.sliding_window_pattern", "attention.compress_ratios"
# Architecture, keys, the key or tensor at which it is refused, a word of the sentence.
WRONG = [
    ("llama", dict(embedding_length=64), "attention.head_count", "missing"),
    ("llama", dict(embedding_length=64, attention__head_count=True), "attention.head_count", "true; allowed"),
    ("llama", dict(embedding_length=64, attention__head_count={"a": 1}), "attention.head_count", "an object"),
    ("stablelm", dict(attention__key_length=64, rope__dimension_count=128), "rope.dimension_count", "the width"),
    ("stablelm", dict(attention__key_length=64, rope__dimension_count="x"), "rope.dimension_count", "integer"),
    ("hunyuan_vl", dict(attention__key_length=64, rope__scaling__alpha=-1), "rope.scaling.alpha", "at least 0"),
    ("hunyuan_vl", dict(attention__key_length=2, rope__scaling__alpha=4), "rope.scaling.alpha", "divides by zero"),
    ("granite", dict(attention__key_length=64, rope__scaling__finetuned=1), "rope.scaling.finetuned", "true or false"),
    ("qwen2vl", dict(attention__key_length=64, rope__dimension_sections=[16, 16]), SECTIONS, "4 integers"),
    ("qwen2vl", dict(attention__key_length=64, rope__dimension_sections="a"), SECTIONS, "list of numbers"),
    ("mpt", dict(attention__head_count=4, attention__max_alibi_bias="x"), "attention.max_alibi_bias", "finite"),
    ("mpt", dict(attention__max_alibi_bias=8), "attention.head_count", "a slope of its own"),
    ("mpt", dict(attention__max_alibi_bias=8, attention__head_count=[0, 0]), "attention.head_count", "above 0"),
    ("mpt", dict(attention__max_alibi_bias=8, attention__head_count="x"), "attention.head_count", "integer"),
    ("t5encoder", dict(attention__relative_buckets_count=32), "attention.head_count", "a column of the table"),
    ("t5", dict(attention__head_count=4, attention__relative_buckets_count=0), BUCKETS, "above 0"),
    ("t5encoder", dict(attention__head_count=4, attention__relative_buckets_count=-1), BUCKETS, "-1"),
    ("gpt2", dict(context_length=8), "embedding_length", "a size of the table"),
    ("gpt2", dict(context_length=8, embedding_length=0), "embedding_length", "above 0"),
    ("gpt2", dict(context_length=2.5, embedding_length=8), "context_length", "2.5"),
]
YARN_WRONG = [
    ("mistral3", dict(yarn_beta_slow=0), "rope.scaling.yarn_beta_slow", "above 0"),
    ("mistral3", dict(yarn_beta_fast="x"), "rope.scaling.yarn_beta_fast", "finite"),
    ("grok", dict(yarn_ext_factor=1.5), "rope.scaling.yarn_ext_factor", "at most 1"),
    ("grok", dict(yarn_ext_factor="x"), "rope.scaling.yarn_ext_factor", "finite"),
    ("deepseek2", dict(yarn_log_multiplier=-1), "rope.scaling.yarn_log_multiplier", "at least 0"),
    ("deepseek2", dict(yarn_log_multiplier="x"), "rope.scaling.yarn_log_multiplier", "finite"),
    ("qwen2", dict(original_context_length=-8), "rope.scaling.original_context_length", "-8"),
    ("qwen2", dict(_context_length="x"), "context_length", "integer"),
]
LAYERS_WRONG = [
    ("gemma3", dict(attention__sliding_window_pattern=0), PATTERN, "from 1"),
    ("gemma3", dict(attention__sliding_window_pattern="x"), PATTERN, "integer"),
    ("gemma4", dict(attention__sliding_window_pattern=["x", 1]), PATTERN, "booleans or numbers"),
    ("gemma4", dict(attention__sliding_window_pattern=[[1, 0]]), PATTERN, "booleans or numbers"),
    ("gemma4", dict(attention__sliding_window_pattern=[]), PATTERN, "each layer"),
    ("mellum", dict(attention__sliding_window_pattern=[]), PATTERN, "each layer"),
    ("gemma4", dict(attention__sliding_window_pattern=[True] * 4097), PATTERN, "at most 4096"),
    ("gemma4", dict(block_count=3, attention__sliding_window_pattern=[True, False]), PATTERN, "each layer"),
    ("gemma4", dict(block_count=4097, attention__sliding_window_pattern=[True]), "block_count", "at most 4096 layers"),
    ("gemma4", dict(block_count=2.5, attention__sliding_window_pattern=[True]), "block_count", "integer"),
    ("deepseek4", dict(attention__compress_ratios=[0, 4]), "attention.compress_rope_freq_base", "missing"),
    ("deepseek4", dict(attention__compress_rope_freq_base=5), RATIOS, "missing"),
    ("deepseek4", dict(block_count=3, attention__compress_ratios=[0, 4]), RATIOS, "an element for each layer"),
    ("deepseek4", dict(attention__compress_ratios=[4] * 4097), RATIOS, "at most 4096"),
    ("deepseek4", dict(attention__compress_ratios=7), RATIOS, "list of numbers"),
]


def scaled(key):
    return key[1:] if key[0] == "_" else f"rope__scaling__{key}"


def test_wrong_keys(server):
    yarn = {"attention__key_length": 64, "context_length": 9, "rope__scaling__type": "yarn", "rope__scaling__factor": 2}
    layers = {"attention__key_length": 64, "attention__sliding_window": 9}
    rows = [*WRONG, *((name, {**layers, **more}, *rest) for name, more, *rest in LAYERS_WRONG)]
    for name, more, *rest in YARN_WRONG:
        rows.append((name, {**yarn, **{scaled(key): value for key, value in more.items()}}, *rest))
    for architecture, more, name, word in rows:
        refused(server, f"/gguf/{architecture}.{name}", word, gguf=keys(architecture, **more), len=2)


def test_wrong_lists(server):
    """A factor multiplies the lists: the products must fit in 1024 numbers, whether or not a key states the width."""
    def lists(n_long, n_short):
        return {"rope_factors_long.weight": [1.0] * n_long, "rope_factors_short.weight": [1.0] * n_short}

    def phi(width, tensors, **more):
        more = {"context_length": 9, "rope__scaling__type": "longrope", **more}
        return keys("phi3", attention__key_length=width, tensors=tensors, **more)

    def no(at, word, width, tensors, **more):
        file = phi(width, tensors, **more)
        refused(server, f"/gguf/{at}", word, gguf=file, len=2)
    for more in ({}, {"rope__dimension_count": 1026}):
        no("tensors/rope_factors_long.weight", "513 numbers; allowed beside a factor: at most 512", 1026,
           lists(513, 513), rope__scaling__factor=2, **more)
    no("tensors/rope_factors_short.weight", "needed: 4", 8, lists(4, 3))
    no("phi3.context_length", "-9", 8, lists(4, 4), context_length=-9)
    no("phi3.rope.scaling.original_context_length", "1.5", 8, lists(4, 4), rope__scaling__original_context_length=1.5)
    widest = phi(1024, lists(512, 512), rope__scaling__factor=2)
    assert encode_one(server, gguf=widest, len=1, outputs=["inv_freq"])[0] == 0.5


def test_as_many_layers_as_the_list(server):
    """Without block_count the list of the file says how many layers there are."""
    file = keys("gemma4", attention__key_length=64, attention__sliding_window=9,
                attention__sliding_window_pattern=[True, False, True])
    assert ask(server, file, layer_type="sliding_attention").json()["gguf"]["layers"] == [0, 2]
    assert ask(server, file, layer_type="full_attention").json()["gguf"]["layers"] == [1]
    file = keys("deepseek4", attention__key_length=64, attention__compress_ratios=[0, 4, 128],
                attention__compress_rope_freq_base=5e4)
    assert ask(server, file, layer_type="compress").json()["gguf"]["layers"] == [1, 2]


# ---- Divisors ----

FREQS = "llama deci minicpm mistral3 granite granitemoe llama-embed apertus arcee eagle3 exaone granitehybrid nanbeige".split()


@pytest.mark.parametrize("architecture", FREQS + ["qwen2", "llada", "cogvlm", "phi3"])
def test_rope_freqs(server, architecture):
    file = keys(architecture, attention__key_length=8, rope__scaling__factor=2, tensors={"rope_freqs.weight": [1, 2, 8, 1e30]})
    w = encode_one(server, gguf=file, len=1, outputs=["inv_freq"])
    divisors = [1, 2, 8, 1e30] if architecture in FREQS else None
    np.testing.assert_allclose(w, [float(x) for x in ggml_truth.frequencies(8, 10000, s=2, divisors=divisors)], rtol=1e-15)
    unsent = {**file, "tensors": {"rope_freqs.weight": None}}
    if architecture in FREQS:
        refused(server, "/gguf/tensors/rope_freqs.weight", "not sent", gguf=unsent, len=2)
    else:
        ask(server, unsent)


@pytest.mark.parametrize("architecture,kind,used", [("phi3", "linear", True), ("phimoe", "longrope", True), ("minicpm3", "none", True),
                                                    ("llama", "longrope", True), ("llama", "linear", False), ("arcee", "longrope", False)])
def test_lists(server, architecture, kind, used):
    lists = {"rope_factors_long.weight": [2, 3, 4, 5], "blk.0.rope_factors_short.weight": [1, 1.5, 1, 1]}
    file = keys(architecture, attention__key_length=8, context_length=1000, rope__scaling__type=kind,
                rope__scaling__original_context_length=100, rope__scaling__attn_factor=1.2, tensors=lists)
    for context, used_list in ((1000, [2, 3, 4, 5]), (100, [1, 1.5, 1, 1])):
        file[f"{architecture}.context_length"] = context
        w = encode_one(server, gguf=file, len=3, outputs=["inv_freq"])
        np.testing.assert_allclose(w, 10000.0 ** (-np.arange(4) / 4) / (used_list if used else 1), rtol=1e-15)
        assert ask(server, file).json()["config"]["attention_factor"] == 1.2
    if used and kind == "longrope":  # the factor multiplies the lists
        file[f"{architecture}.rope.scaling.factor"] = 4
        assert ask(server, file).json()["config"]["scaling"]["long_factor"] == [8, 12, 16, 20]


def test_bad_tensors(server):
    at = "/gguf/tensors/rope_freqs.weight"
    for value, word in (([1, 2, 3], "needed: 4"), ([1, 2, 0, 1], "index 2"), ([1, -2, 1, 1], "index 1"), (["Infinity", 1, 1, 1], "inf"),
                        ("x", "list"), ([[1, 1], [1, 1]], "list"), (None, "not sent")):
        refused(server, at, word, gguf=keys("llama", attention__key_length=8, tensors={"rope_freqs.weight": value}), len=2)
    refused(server, "/gguf/tensors", "both", gguf=keys("phi3", attention__key_length=8, tensors={"rope_factors_long.weight": [1, 1, 1, 1]}), len=2)


# ---- Layers ----

RUNS = [
    ("gemma3", dict(block_count=12, attention__sliding_window=9), "sliding_attention", [l for l in range(12) if l % 6 != 5], 1e4, "default"),
    ("gemma3", dict(block_count=12, attention__sliding_window=9), "full_attention", [5, 11], 5e5, "linear"),
    ("gemma3n", dict(block_count=10, attention__sliding_window=9), "full_attention", [4, 9], 5e5, "linear"),
    ("gemma3", dict(block_count=4, attention__sliding_window=9, rope__freq_base_swa=77), "sliding_attention", [0, 1, 2, 3], 77, "default"),
    ("modern-bert", dict(block_count=7, attention__sliding_window=9), "full_attention", [0, 3, 6], 5e5, "linear"),
    ("plamo3", dict(block_count=16, attention__sliding_window=9), "full_attention", [7, 15], 5e5, "linear"),
    ("olmo2", dict(block_count=8, attention__sliding_window=9, rope__freq_base_swa=77), "sliding_attention", [0, 1, 2, 4, 5, 6], 5e5, "default"),
    ("mellum", dict(block_count=3, attention__sliding_window=9, attention__sliding_window_pattern=[True, False, True]), "full_attention", [1], 5e5, "linear"),
    ("laguna", dict(block_count=5, attention__sliding_window=9, rope__freq_base_swa=77), "sliding_attention", [1, 2, 3], 77, "default"),
    ("gemma4", dict(block_count=3, attention__sliding_window=9, attention__sliding_window_pattern=[1, 0, 1]), "sliding_attention", [0, 2], 1e4, "default"),
    ("llama4", dict(block_count=48), "chunked_attention", [l for l in range(48) if l % 4 != 3], 5e5, "linear"),
    ("afmoe", dict(block_count=8, attention__sliding_window=9), "sliding_attention", [0, 1, 2, 4, 5, 6], 5e5, "linear"),
    ("exaone4", dict(block_count=64, attention__sliding_window=9), "sliding_attention", [l for l in range(64) if l % 4 != 3], 5e5, "linear"),
    ("smollm3", dict(block_count=8), "full_attention", [0, 1, 2, 4, 5, 6], 5e5, "linear"),
    ("deepseek4", dict(block_count=4, attention__compress_ratios=[0, 4, 128, 0], attention__compress_rope_freq_base=160000), "main", [0, 3], 5e5, "default"),
    ("deepseek4", dict(block_count=4, attention__compress_ratios=[0, 4, 128, 0], attention__compress_rope_freq_base=160000), "compress", [1, 2], 160000, "linear"),
    ("glm4moe", dict(block_count=47, nextn_predict_layers=1), "full_attention", list(range(46)), 5e5, "linear"),
]


@pytest.mark.parametrize("architecture,more,kind,layers,base,rule", RUNS)
def test_kinds(server, architecture, more, kind, layers, base, rule):
    file = keys(architecture, attention__key_length=64, rope__freq_base=5e5, rope__scaling__factor=2, **more)
    answer = ask(server, file, layer_type=kind)
    answer = answer.json()
    assert (answer["gguf"]["layer_type"], answer["gguf"]["layers"]) == (kind, layers)
    assert (answer["config"]["base"], answer["config"]["scaling"]["type"]) == (base, rule)


STILL = [
    ("llama4", dict(block_count=8), "full_attention", [3, 7]),
    ("llama4", dict(block_count=8, attention__sliding_window=0), "nope", [7]),
    ("afmoe", dict(block_count=8, attention__sliding_window=9), "full_attention", [3, 7]),
    ("afmoe", dict(block_count=8, attention__sliding_window=9, attention__sliding_window_pattern=3), "nope", [3, 7]),
    ("cohere2", dict(block_count=8, attention__sliding_window=9), "full_attention", [3, 7]),
    ("exaone-moe", dict(block_count=8, attention__sliding_window=9), "full_attention", [3, 7]),
    ("cohere2moe", dict(block_count=8, attention__sliding_window=9, leading_dense_block_count=1), "nope", [4]),
    ("smallthinker", dict(block_count=8, attention__sliding_window=9), "full_attention", [0, 4]),
    ("smollm3", dict(block_count=8), "nope", [3, 7]),
]


@pytest.mark.parametrize("architecture,more,kind,layers", STILL)
def test_layers_without_positions(server, architecture, more, kind, layers):
    answer = ask(server, keys(architecture, attention__key_length=64, **more), layer_type=kind)
    assert answer.json()["config"]["scheme"] == "none" and answer.json()["gguf"]["layers"] == layers


def test_a_layer_must_be_named(server):
    file = keys("gemma3", attention__key_length=64, block_count=12, attention__sliding_window=9, rope__freq_base=1e6)
    answer = server.post("/encode", {"gguf": file, "len": 2})
    assert answer.status == 422 and answer.json()["pointer"] == "/layer_type"
    assert answer.json()["layer_types"] == ["sliding_attention", "full_attention"]
    assert '"full_attention" (2 of 12: 5, 11): rope, base 1000000' in answer.json()["detail"]
    for path, more in (("/analyze", {"metrics": ["norms"], "len": 4}), ("/rotate", {"q": [[[1.0] * 64]]})):
        refused(server, "/layer_type", "differ", path=path, gguf=file, **more)
    refused(server, "/layer_type", "main", gguf=file, layer_type="main", len=2)
    for architecture in ("gemma2", "gpt-oss", "exaone4"):  # one kind, or kinds whose positions are the same
        ask(server, keys(architecture, attention__key_length=64, block_count=12, attention__sliding_window=9))
    assert ask(server, keys("gemma3", attention__key_length=64, block_count=12)).json()["gguf"]["layer_type"] == "full_attention"


def test_step35(server):
    file = keys("step35", attention__key_length=128, rope__dimension_count=128, block_count=2, attention__sliding_window=9,
                attention__sliding_window_pattern=[True, False], tensors={"rope_freqs.weight": [float(1 + i) for i in range(64)]})
    full, local = (ask(server, file, layer_type=f"{kind}_attention").json()["config"] for kind in ("full", "sliding"))
    assert (full["rotary_dim"], len(full["scaling"]["divisors"])) == (64, 32) and local["rotary_dim"] == 128
    refused(server, "/gguf/gemma4.attention.sliding_window_pattern", "missing", len=2,
            gguf=keys("gemma4", attention__key_length=64, block_count=4, attention__sliding_window=9))


# ---- Other schemes, other endpoints, refusals ----


def test_other_schemes(server):
    for architecture in ("bloom", "refact", "jina-bert-v2"):
        assert config(server, architecture, attention__head_count=4)["scheme"] == "alibi"
    assert config(server, "baichuan", attention__head_count=4, embedding_length=64, block_count=40)["scheme"] == "alibi"
    assert config(server, "baichuan", attention__head_count=4, embedding_length=64, block_count=32)["scheme"] == "rope"
    assert config(server, "mpt", attention__head_count=4, attention__max_alibi_bias=16)["bias_max"] == 16
    assert config(server, "jais", attention__head_count=4)["scheme"] == "none"
    found = config(server, "t5", "decoder", attention__head_count=4, attention__relative_buckets_count=32)
    assert (found["bidirectional"], found["num_buckets"], found["max_distance"]) == (False, 32, 128)
    assert config(server, "t5encoder", attention__head_count=4, attention__relative_buckets_count=32)["bidirectional"]
    refused(server, "/gguf/t5encoder.attention.relative_buckets_count", "missing", gguf=keys("t5encoder", attention__head_count=4), len=2)
    for architecture in NO_POSITIONS:
        assert config(server, architecture)["scheme"] == "none"
    for architecture in ("gpt2", "starcoder", "bert"):
        answer = server.ask("/encode", gguf=keys(architecture, context_length=8, embedding_length=4), seed=1, len=2, data=False).json()
        assert (answer["config"]["scheme"], answer["config"]["rows"], answer["config"]["dim"]) == ("learned", 8, 4)


def test_everywhere(server):
    file = keys("qwen2", attention__key_length=4, rope__freq_base=1e6)
    q = [[[1.0, 2, 3, 4]]]
    by_hand = server.ask("/rotate", scheme="rope", head_dim=4, base=1e6, layout="half", q=q, positions=[5]).json()
    assert server.ask("/rotate", gguf=file, q=q, positions=[5]).json()["tensors"] == by_hand["tensors"]
    server.ask("/attention", gguf=file, q=q, k=q, num_heads=1)
    hf = {"model_type": "qwen2", "hidden_size": 8, "num_attention_heads": 2, "rope_theta": 1e6}
    found = server.ask("/analyze", configs=[{"hf_config": hf}, {"gguf": file}], len=9, metrics=["difference"]).json()
    assert found["results"][1]["difference"]["equal"] == 1
    tables = encode(server, scheme="rope", head_dim=4, base=1e6, layout="half", len=8)
    found = server.ask("/diagnose", gguf=file, **{name: table.tolist() for name, table in tables.items()}).json()
    assert found["explained"] and [f["code"] for f in found["findings"]] == ["as_believed"]
    assert server.ask("/encode", gguf=file, base=5e5, len=2, data=False).json()["config"]["base"] == 5e5


def test_refused(server):
    file = keys("llama", attention__key_length=8)
    for name in REFUSED + ["lama", "", "LLAMA"]:
        refused(server, "/gguf/general.architecture", "not known", gguf={"general.architecture": name}, len=2)
    refused(server, "/gguf/general.architecture", 'nearest: "llama"', gguf={"general.architecture": "lama"}, len=2)
    refused(server, "/gguf/general.architecture", "missing", gguf={"llama.block_count": 3}, len=2)
    refused(server, "/gguf/general.architecture", "string", gguf={"general.architecture": 3}, len=2)
    refused(server, "/gguf", "object", gguf="a", len=2)
    refused(server, "/gguf", "exclude", gguf=file, preset="llama-3.1", len=2)
    refused(server, "/gguf", "exclude", gguf=file, hf_config={"model_type": "llama"}, len=2)
    refused(server, "/said", "said and gguf exclude", gguf=file, said={"to": "mlx", "value": {}}, len=2)
    refused(server, "/scheme", "leave scheme out", gguf=file, scheme="alibi", len=2)
    refused(server, "/gguf/tensors", "object", gguf={**file, "tensors": [1]}, len=2)


def test_a_refusal_points_at_the_key(server):
    """What a file gives and a scheme refuses is refused where the file has it, whole lists too."""
    file = keys("llama", attention__key_length=8, tensors={"rope_freqs.weight": [1, 2, 3, 4]})
    refused(server, "/gguf/tensors/rope_freqs.weight", "needed: 2", gguf=file, rotary_dim=4, len=2)
    file = keys("qwen2vl", attention__key_length=64, rope__dimension_sections=[-1, 16, 17, 0])
    refused(server, "/gguf/qwen2vl.rope.dimension_sections", "-1 at index 0", gguf=file, len=2)
    lists = {"rope_factors_long.weight": [1e30, 1, 1, 1], "rope_factors_short.weight": [1, 1, 1, 1]}
    file = keys("phi3", attention__key_length=8, context_length=9, rope__scaling__type="longrope", tensors=lists)
    refused(server, "/gguf/tensors/rope_factors_long.weight", "1e+30 at index 0", gguf=file, len=2)


def test_a_factor_of_layers_that_are_not_scaled(server):
    """attn_factor multiplies them too, but not in olmo2, mellum and laguna."""
    for name, factor in (("gemma3", 1.5), ("plamo3", 1.5), ("olmo2", 1), ("laguna", 1)):
        file = keys(name, attention__key_length=64, block_count=16, attention__sliding_window=9,
                    rope__scaling__attn_factor=1.5, rope__scaling__factor=2)
        for kind, rule, found in (("sliding_attention", "default", factor), ("full_attention", "linear", 1.5)):
            answer = ask(server, file, layer_type=kind).json()["config"]
            assert (answer["scaling"]["type"], answer["attention_factor"]) == (rule, found), (name, kind)


def test_many_keys_are_quick(server):
    file = {**keys("llama", attention__key_length=8), **{f"llama.rope.k{i}": i for i in range(9000)}}
    answer = ask(server, file)
    assert len(answer.json()["gguf"]["ignored"]) == 64
    assert math.isclose(answer.json()["config"]["base"], 10000)
