"""Layers that differ: a config without layer_type is refused with the kinds of its layers, and every answer states its kind and its layers.
Which layers are of which kind is written here by hand, from each class's code (transformers' configuration_*.py)."""
import json

import pytest

from asking import refused
from test_hf_truth import CASES, asked

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"


def every(period, n, others=SLIDING, last=FULL):
    return [last if layer % period == period - 1 else others for layer in range(n)]


LAYERS = {  # a bare config's: the class's default
    "llama4_text": every(4, 48, CHUNKED),
    "smollm3": every(4, 36, FULL, "nope"),
    "gemma3_text": every(6, 26),
    "gemma3n_text": every(5, 35),
    "gemma4_text": every(6, 30),
    "t5gemma2_text": every(6, 26),
    "modernbert": [SLIDING if layer % 3 else FULL for layer in range(22)],
    "modernbert-decoder": [SLIDING if layer % 3 else FULL for layer in range(22)],
    "cohere2": every(4, 40),
    "cohere2_moe": every(4, 40),
    "afmoe": every(4, 32),
    "exaone4": every(4, 32),
    "exaone_moe": every(4, 32),
    "muse_glimmer_text": [FULL if (51 - layer) % 4 == 0 else SLIDING for layer in range(52)],
    "mimo_v2_flash": [FULL if layer == 0 or layer % 6 == 5 else SLIDING for layer in range(48)],
    "deepseek_v4": ["heavily_compressed_attention"] * 2
    + ["compressed_sparse_attention" if layer % 2 else "heavily_compressed_attention" for layer in range(41)],
}
PARTS = {"seamless_m4t": ["speech_encoder", "text_encoder", "text_decoder"], "seamless_m4t_v2": ["speech_encoder", "text_encoder", "text_decoder"],
         "whisper": ["encoder", "decoder"], "led": ["encoder", "decoder"], "t5": ["encoder", "decoder"], "swin": ["stage1", "stage2", "stage3", "stage4"],
         "layoutlmv2": ["rel_pos", "rel_pos_x", "rel_pos_y"]}


def layers(server, config, layer_type=None):
    answer = server.post("/encode", {"hf_config": config, "len": 2, "data": False, **({"layer_type": layer_type} if layer_type else {})})
    assert answer.status == 200, answer
    report = answer.json()["hf_config"]
    return report["layer_type"], report["layers"]


def asked_for(server, **fields):
    """The problem of a request whose layers differ."""
    refused(server, "/layer_type", "differ; give layer_type:", len=2, **fields)
    return server.post("/encode", {"len": 2, **fields}).json()


def of(kinds, kind):
    return [layer for layer, each in enumerate(kinds) if each == kind]


@pytest.mark.parametrize("model_type", LAYERS)
def test_a_bare_config_must_name_its_layers(server, model_type):
    kinds = LAYERS[model_type]
    answer = asked_for(server, hf_config={"model_type": model_type})
    listed = answer["layer_types"]
    assert set(kinds) <= set(listed) and len(answer["detail"].splitlines()) == 1 + len(listed)
    for kind, line in zip(listed, answer["detail"].splitlines()[1:]):
        assert line.startswith(f'"{kind}" ({kinds.count(kind)} of {len(kinds)}'), line
        assert layers(server, {"model_type": model_type}, kind) == (kind, of(kinds, kind))


@pytest.mark.parametrize("model_type", PARTS)
def test_parts_are_listed_in_order(server, model_type):
    answer = asked_for(server, hf_config={"model_type": model_type})
    assert answer["layer_types"] == PARTS[model_type]
    assert [line.split('"')[1] for line in answer["detail"].splitlines()[1:]] == PARTS[model_type]


def test_the_sentence(server):
    rope = {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0, "original_max_position_embeddings": 8192}
    answer = asked_for(server, hf_config={"model_type": "llama4", "text_config": {"model_type": "llama4_text", "rope_scaling": rope}})
    assert answer["detail"] == ('layers of "llama4_text" differ; give layer_type:\n'
                                '"chunked_attention" (36 of 48: 0-2, 4-6, …, 44-46): rope, base 500000, llama3 factor 16\n'
                                '"full_attention" (12 of 48: 3, 7, …, 47): no positions')


@pytest.mark.parametrize("path, more", [("/rotate", {"q": [[1.0] * 8]}), ("/attention", {"q": [[1.0] * 8], "k": [[1.0] * 8]}),
                                        ("/analyze", {}), ("/diagnose", {"encoding": [[1.0] * 8]})])
def test_every_endpoint_asks(server, path, more):
    config = {"model_type": "llama4_text", "head_dim": 8}
    fields = {"configs": [{"hf_config": config}], "len": 2} if path == "/analyze" else {"hf_config": config, **({} if "q" in more else {"len": 1}), **more}
    answer = server.post(path, fields)
    assert answer.status == 422 and answer.json()["pointer"].endswith("/layer_type"), answer
    assert answer.json()["layer_types"] == [CHUNKED, FULL]


@pytest.mark.parametrize("config, expected", [
    ({"model_type": "llama", "num_hidden_layers": 3}, (FULL, [0, 1, 2])),
    ({"model_type": "llama"}, (FULL, None)),
    ({"model_type": "gemma2", "num_hidden_layers": 4}, (FULL, [0, 1, 2, 3])),  # masks differ, positions do not
    ({"model_type": "gemma2", "layer_types": [SLIDING, FULL, SLIDING]}, (FULL, [0, 1, 2])),
    ({"model_type": "gemma3_text", "layer_types": [SLIDING] * 3}, (SLIDING, [0, 1, 2])),
    ({"model_type": "gemma3_text", "num_hidden_layers": 5}, (SLIDING, [0, 1, 2, 3, 4])),
    ({"model_type": "gemma3_text", "sliding_window_pattern": 1, "num_hidden_layers": 2}, (FULL, [0, 1])),
    ({"model_type": "llama4_text", "no_rope_layers": [0, 0]}, (FULL, [0, 1])),
    ({"model_type": "llama4_text", "no_rope_layers": [1, 1]}, (CHUNKED, [0, 1])),
    ({"model_type": "smollm3", "no_rope_layers": [1, 1, 1]}, (FULL, [0, 1, 2])),
    ({"model_type": "smollm3", "no_rope_layer_interval": 1, "num_hidden_layers": 2}, ("nope", [0, 1])),
    ({"model_type": "exaone4", "sliding_window": None, "num_hidden_layers": 2}, (FULL, [0, 1])),
    ({"model_type": "olmo3", "rope_theta": 5e5, "num_hidden_layers": 4}, (FULL, [0, 1, 2, 3])),
    ({"model_type": "olmo3", "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}, "num_hidden_layers": 4}, (FULL, [0, 1, 2, 3])),
    ({"model_type": "deepseek_v4", "compress_ratios": [4, 128, 4]}, ("compressed_sparse_attention", [0, 1, 2])),
    ({"model_type": "laguna", "num_hidden_layers": 2}, (FULL, [0, 1])),
    ({"model_type": "qwen3_next", "num_hidden_layers": 8}, (FULL, [3, 7])),  # the others are no attention
    ({"model_type": "lfm2", "layer_types": ["conv", FULL, "conv"]}, (FULL, [1])),
    ({"model_type": "lfm2", "num_hidden_layers": 3}, (FULL, None)),
    ({"model_type": "granitemoehybrid", "position_embedding_type": "rope", "layer_types": ["mamba", "attention"]}, ("attention", [1])),
    ({"model_type": "marian", "encoder_layers": 6}, (FULL, list(range(6)))),
    ({"model_type": "t5", "is_encoder_decoder": False, "num_layers": 2}, ("encoder", [0, 1])),
])
def test_one_kind_needs_no_name(server, config, expected):
    assert layers(server, config) == expected


@pytest.mark.parametrize("config, kinds", [
    ({"model_type": "deepseek_v4", "num_hidden_layers": 3, "compress_ratios": [0, 4, 128, 0]}, {SLIDING: [0], "compressed_sparse_attention": [1], "heavily_compressed_attention": [2]}),
    ({"model_type": "smollm3", "layer_types": [FULL] * 4, "no_rope_layers": [1, 0, 1, 0]}, {FULL: [0, 2], "nope": [1, 3]}),
    ({"model_type": "exaone4", "sliding_window_pattern": "LG", "num_hidden_layers": 5}, {SLIDING: [0, 2], FULL: [1, 3, 4]}),
    ({"model_type": "olmo3", "num_hidden_layers": 4, "rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2}}, {SLIDING: [0, 1, 2], FULL: [3]}),
    ({"model_type": "cwm", "layer_types": [SLIDING, FULL], "rope_parameters": {kind: {"rope_type": "default", "rope_theta": theta} for kind, theta in ((FULL, 10), (SLIDING, 20))}}, {SLIDING: [0], FULL: [1]}),
    ({"model_type": "whisper", "encoder_layers": 2, "decoder_layers": 1}, {"encoder": [0, 1], "decoder": [0]}),
    ({"model_type": "swin", "depths": [1, 2, 1, 3]}, {"stage1": [0], "stage2": [0, 1], "stage3": [0], "stage4": [0, 1, 2]}),
])
def test_which_layers_of_several_kinds(server, config, kinds):
    assert set(asked_for(server, hf_config=config)["layer_types"]) == set(kinds)
    for kind, expected in kinds.items():
        own = {"seed": 1} if kind == "decoder" else {}  # a table; stages have a window of their own
        answer = server.ask(hf_config=config, layer_type=kind, data=False, **own, **({} if kind.startswith("stage") else {"len": 2})).json()
        assert (answer["hf_config"]["layer_type"], answer["hf_config"]["layers"]) == (kind, expected)


def test_a_kind_that_cannot_be_read_is_named_itself(server):
    config = {"model_type": "gemma3_text", "layer_types": [FULL, SLIDING], "rope_parameters": {SLIDING: {"rope_theta": 1e4, "rope_type": "default"}}}
    refused(server, "/hf_config/rope_parameters", "no object for layers", len=2, hf_config=config)


def test_every_case_of_the_truth_keeps_the_rule(session_server):
    """Without layer_type: refused with kinds of which at least two are answered differently, or answered as every kind is."""
    wrong = []
    for case in CASES:
        status, bare = asked(session_server, {**case, "layer_type": None})
        named = {kind: asked(session_server, {**case, "layer_type": kind}) for kind in bare.get("layer_types", ())}
        configs = {json.dumps(answer.get("config")) for kind_status, answer in named.values() if kind_status == 200}
        if status == 200 and not (bare["hf_config"]["layer_type"] and "layers" in bare["hf_config"]):
            wrong.append(f"{case['type']} of {case['of']}: states no layers")
        if named and (len(configs) < 2 or any(kind_status != 200 for kind_status, _ in named.values())):
            wrong.append(f"{case['type']} of {case['of']}: {named}")
        if status == 200 and case.get("layer_type") == bare["hf_config"]["layer_type"]:
            _, answer = asked(session_server, case)
            if answer["config"] != bare["config"]:
                wrong.append(f"{case['type']} of {case['of']}: {bare['config']} without a name, {answer['config']} with one")
    assert not wrong, "\n".join(wrong)
