"""A config.json as bytes, and what the metadata of a file say of it. What an answer says of its fields: tests/cases/models.jsonl."""
import json
import urllib.parse

import pytest

import safetensors_reader
from tensors import multipart

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 32000, "rope_theta": 500000.0,
         "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}


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
    for begin in (MARK + MARK, MARK[:2], MARK + b" " + MARK) if way != "query" else ():  # there it is a text with a config in it
        assert sent(server, way, begin + config).status in (400, 422), begin


def test_metadata_of_safetensors(server):
    _, metadata, _ = safetensors_reader.loads(server.ask(len=2, format="safetensors", hf_config=LLAMA).body)
    assert json.loads(metadata["hf_config"])["ignored"] == ["architectures", "vocab_size"]
