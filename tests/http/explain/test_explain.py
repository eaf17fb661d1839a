"""/explain: that a tool agrees, or is said to differ, at every length; a config posted again; text. What transformers 4 and 5, vLLM and llama.cpp
take from a config is in rows of tests/cases/explain.jsonl, written by hand from the tools' sources (transformers modeling_rope_utils.py, vllm
rotary_embedding/__init__.py, llama.cpp conversion/*.py); that a kind's config gives the model's tensors is in ../models/test_hf_truth.py."""
import json
import shlex
import urllib.parse

import numpy as np
import pytest
from mpmath import mp

from by_length import BORDERS, BY_LENGTH, lengths_of
from truth import scaling
from tensors import from_raw

QWEN = {"model_type": "qwen3", "hidden_size": 4096, "head_dim": 128, "num_attention_heads": 32, "num_hidden_layers": 36,
        "max_position_embeddings": 40960, "rope_parameters": {"rope_type": "default", "rope_theta": 1000000}}
GEMMA = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024,
         "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}
TOOLS = ["transformers4", "transformers5", "vllm", "llama.cpp"]


def explain(server, **fields):
    return server.ask("/explain", **fields).json()


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


# ---- Text ----


def test_text_and_tags(server):
    answer = server.post("/explain", {"hf_config": QWEN}, headers={"Accept": "text/plain"})
    lines = answer.body.decode().splitlines()
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain")
    assert lines[0] == "full_attention: rope, base 1000000, 128 of 128 channels, half" and lines[1].startswith("transformers 4: computes other numbers: ")
    path = "/explain?hf_config=" + urllib.parse.quote(json.dumps(QWEN))
    got = server.get(path)
    assert got.status == 200 and got.json() == explain(server, hf_config=QWEN)
    for path in (path, "/translate?preset=llama-3.1&to=vllm,gguf"):
        assert server.get(path, headers={"If-None-Match": server.get(path).headers["ETag"]}).status == 304


def test_text_of_a_translation_for_each_kind(server):
    answer = server.post("/translate", {"hf_config": GEMMA, "to": "vllm_old"}, {"Accept": "text/plain"})
    targets = server.ask("/translate", hf_config=GEMMA, to="vllm_old").json()["targets"]
    assert [target["layer_type"] for target in targets] == ["sliding_attention", "full_attention"]
    lines = [line for target in targets for line in (f"vllm_old, {target['layer_type']}:", target["text"])]
    assert [line for line in answer.body.decode().splitlines() if not line.startswith("  ")][:-1] == lines
    flags = shlex.split(targets[1]["text"])
    assert flags[0] == "--rope-scaling" and json.loads(flags[1])["factor"] == 8
    assert flags[2:] == ["--rope-theta", "1000000.0"]


def test_a_config_has_at_most_4096_members(server):
    """Each tool copies them: more cost seconds before anything was computed."""
    for n, status in ((4000, 200), (4096, 422)):
        many = {"model_type": "gemma3_text", **{f"x{i}": i for i in range(n)}}
        for config, place in ((many, "/hf_config"), ({"model_type": "gemma3", "text_config": many}, "/hf_config/text_config")):
            answer = server.post("/explain", {"hf_config": config})
            assert (answer.status, answer.json().get("pointer")) == (status, place if status == 422 else None)
