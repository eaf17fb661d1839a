"""GGUF keys as JSON: a file on every endpoint. Keys, architectures, divisors, lists and defaults are rows of tests/cases/gguf.jsonl, written
from a description of llama.cpp's code (commit 6c8dcaa) and truth/ggml.py, not from posenc's tables."""
from tensors import encode


def keys(architecture, **more):
    """A file with the keys of its architecture; __ stands for a dot."""
    own = {f"{architecture}.{name.replace('__', '.')}": value for name, value in more.items() if name != "tensors"}
    rest = {"tensors": more["tensors"]} if "tensors" in more else {}
    return {"general.architecture": architecture, **own, **rest}


def ask(server, gguf, **fields):
    return server.ask("/encode", gguf=gguf, **{"len": 2, "data": False, **fields})


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
