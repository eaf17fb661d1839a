"""What an answer says of a config.json: the names that were not read, the values taken for missing ones."""
import json
import urllib.parse

import numpy as np
import pytest

import safetensors_reader
from tensors import from_npy, multipart

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 32000, "rope_theta": 500000.0,
         "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}


def report(server, config, **fields):
    answer = server.ask(len=2, data=False, hf_config=config, **fields).json()
    assert list(answer)[:3] == ["scheme", "config", "hf_config"]
    return answer["hf_config"]


def test_names_that_are_not_read(server):
    said = report(server, LLAMA)
    assert said == {"model_type": "llama", "certainty": "class default", "layer_type": "full_attention", "layers": None, "ignored": ["architectures", "vocab_size"], "defaults": {}}


MARK = b"\xef\xbb\xbf"  # as Windows' editors begin a file in UTF-8


def sent(server, way, config):
    """Answer to a config.json of these bytes."""
    if way == "query":
        return server.get("/encode?len=2&hf_config=" + urllib.parse.quote_from_bytes(config))
    before, mark = MARK * config.startswith(MARK), config.removeprefix(MARK)
    body = before + b'{"len":2,"hf_config":' + mark + b"}"
    headers = {"Content-Type": "application/json"}
    if way == "part":
        body, headers = multipart(request=body)
    return server.request("POST", "/encode", body, headers)


@pytest.mark.parametrize("way", ["body", "part", "query"])
def test_a_byte_order_mark_is_ignored(server, way):
    config = json.dumps(LLAMA).encode()
    plain = sent(server, way, config)
    assert plain.status == 200 and plain.json()["config"]["base"] == 500000
    for begin in (MARK, MARK + b" \r\n\t", b"\n "):
        answer = sent(server, way, begin + config)
        assert answer.status == 200 and answer.body == plain.body, begin
    wrong = sent(server, way, MARK + config[:-1])
    assert wrong.status == 400 and "line 1, column" in wrong.json()["detail"]
    for begin in (MARK + MARK, MARK[:2], MARK + b" " + MARK):
        assert sent(server, way, begin + config).status in (400, 422), begin


@pytest.mark.parametrize("config, defaults", [
    ({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2}, {"rope_theta": 10000}),
    ({"model_type": "llama"}, {"hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 10000}),
    ({"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 2, "rope_theta": 1e6}, {"head_dim": 128}),
    ({"model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 2, "rotary_emb_base": 10000}, {"rotary_pct": 0.25}),
    ({"model_type": "bert", "hidden_size": 64, "position_embedding_type": "relative_key", "num_attention_heads": 2}, {"max_position_embeddings": 512}),
])
def test_values_taken_for_missing_ones(server, config, defaults):
    assert report(server, config)["defaults"] == defaults


def test_fields_that_were_not_sent_are_not_ignored(server):
    for model_type in ("gemma4_text", "diffusion_gemma"):
        assert report(server, {"model_type": model_type}, layer_type="sliding_attention")["ignored"] == []


def test_no_field_is_ignored_and_missing(server):
    for config in ({"model_type": "bamba", "partial_rotary_factor": 0.3}, {"model_type": "gemma4_text", "rope_theta": 7, "sliding_window_pattern": 3}):
        said = report(server, config, layer_type="full_attention")
        assert set(config) - {"model_type"} == set(said["ignored"]) and not set(said["ignored"]) & set(said["defaults"])


def test_other_types_fields_are_ignored(server):
    others = {"rotary_dim": 32, "rope_interleave": True, "rope_ratio": 8, "kv_channels": 64, "mrope_section": [16, 24, 24], "no_rope_layers": [0, 0]}
    assert set(report(server, {**LLAMA, **others})["ignored"]) == {"architectures", "vocab_size", *others}
    config = {"model_type": "llama", "rope_scaling": {"rope_type": "default", "mrope_section": [16, 24, 24]}}
    assert report(server, config)["ignored"] == ["rope_scaling.mrope_section"]


def test_the_rate_of_a_missing_tower(server):
    video = {"segments": [{"type": "text", "len": 2}, {"type": "video", "grid": [2, 4, 4]}], "data": False}
    for config in ({}, {"vision_config": {}}):
        answer = server.ask(**video, hf_config={"model_type": "qwen2_5_vl", **config}).json()
        assert answer["config"]["tokens_per_second"] == 4 and answer["hf_config"]["defaults"]["tokens_per_second"] == 4


def test_a_default_that_an_object_replaces(server):
    config = {"model_type": "gemma3_text", "rope_parameters": {name: {"rope_theta": 10000} for name in ("full_attention", "sliding_attention")}}
    assert report(server, config, layer_type="sliding_attention")["defaults"] == {
        "head_dim": 256, "num_hidden_layers": 26, "sliding_window_pattern": 6, "query_pre_attn_scalar": 256}


@pytest.mark.parametrize("config, fields, first", [
    ({"model_type": "m2m_100"}, {}, 2),
    ({"model_type": "m2m_100", "pad_token_id": 3}, {}, 4),
    ({"model_type": "fsmt"}, {}, 2),
    ({"model_type": "seamless_m4t"}, {"layer_type": "text_decoder"}, 1),
    ({"model_type": "xglm", "pad_token_id": 7}, {}, 2),
])
def test_where_the_first_token_stands(server, config, fields, first):
    """create_position_ids_from_input_ids begins at padding_idx + 1; XGLM adds its own 2. Sent as offset it gives the rows of the model's tokens."""
    assert report(server, config, **fields)["first_position"] == first
    half = 512
    frequencies = 10000.0 ** (-np.arange(half) / (half - 1))
    table = from_npy(server.ask(hf_config=config, **fields, len=2, offset=first, dtype="f64", format="npy"))
    angles = np.arange(first, first + 2)[:, None] * frequencies
    assert np.allclose(table, np.concatenate([np.sin(angles), np.cos(angles)], axis=1), rtol=0, atol=1e-12)


def test_a_first_position_of_zero_is_not_mentioned(server):
    for config in ({"model_type": "marian"}, {"model_type": "musicgen_decoder"}, LLAMA, {"model_type": "m2m_100", "pad_token_id": None}):
        assert "first_position" not in report(server, config)


def test_null_is_not_missing(server):
    """EXAONE 4 has layers without positions only beside a window, and a window by default."""
    config = {"model_type": "exaone4", "hidden_size": 64, "num_attention_heads": 2}
    assert server.ask(len=2, data=False, hf_config={**config, "sliding_window": None}, layer_type="full_attention").json()["scheme"] == "rope"
    assert server.ask(len=2, data=False, hf_config=config, layer_type="full_attention").json()["scheme"] == "none"
    assert "sliding_window" not in report(server, {**config, "sliding_window": None})["ignored"]


def test_null_is_not_missing_in_a_list_of_configs(server):
    """As in /encode, where the width is missing then."""
    config = {"model_type": "llama", "hidden_size": None, "num_attention_heads": 4}
    for path, fields in (("/encode", {"hf_config": config}), ("/analyze", {"configs": [{"hf_config": config}]})):
        answer = server.post(path, {"len": 2, **fields})
        assert answer.status == 422 and "width is missing" in answer.json()["detail"], answer


def test_nested_objects(server):
    said = report(server, {"model_type": "qwen2_vl", "vision_config": {"depth": 32}, "text_config": {**LLAMA, "model_type": "qwen2_vl_text"}})
    assert said["model_type"] == "qwen2_vl_text" and set(said["ignored"]) == {"vision_config.depth", "text_config.architectures", "text_config.vocab_size"}


def test_certainty_of_rows_from_memory(server):
    assert report(server, {"model_type": "encodec"})["certainty"] == "unverified"


def test_only_where_a_config_was_sent(server):
    assert "hf_config" not in server.ask(scheme="rope", len=2).json()
    assert "hf_config" not in server.ask(preset="llama-3.1", len=2).json()


def test_metadata_of_safetensors(server):
    _, metadata, _ = safetensors_reader.loads(server.ask(len=2, format="safetensors", hf_config=LLAMA).body)
    assert json.loads(metadata["hf_config"])["ignored"] == ["architectures", "vocab_size"]
