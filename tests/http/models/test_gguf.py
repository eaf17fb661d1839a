"""GGUF keys as JSON: the frequencies of divisors and lists, against truth/ggml.py; a file on every endpoint. Keys, architectures and defaults
are rows of tests/cases/gguf.jsonl, written from a description of llama.cpp's code (commit 6c8dcaa), not from posenc's tables."""

import numpy as np
import pytest

import truth.ggml as ggml_truth
from asking import refused
from tensors import encode, encode_one


def keys(architecture, **more):
    """A file with the keys of its architecture; __ stands for a dot."""
    own = {f"{architecture}.{name.replace('__', '.')}": value for name, value in more.items() if name != "tensors"}
    rest = {"tensors": more["tensors"]} if "tensors" in more else {}
    return {"general.architecture": architecture, **own, **rest}


def ask(server, gguf, **fields):
    return server.ask("/encode", gguf=gguf, **{"len": 2, "data": False, **fields})


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


def test_many_keys_are_quick(server):
    file = {**keys("llama", attention__key_length=8), **{f"llama.rope.k{i}": i for i in range(9000)}}
    answer = ask(server, file).json()
    assert len(answer["gguf"]["ignored"]) == 64 and answer["config"]["base"] == 10000
