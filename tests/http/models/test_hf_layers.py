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


@pytest.mark.parametrize("config, kind, expected", [
    ({"model_type": "gpt_oss"}, SLIDING, None),
    ({"model_type": "gemma2", "num_hidden_layers": 4}, SLIDING, None),
    ({"model_type": "gemma2", "num_hidden_layers": 4}, FULL, None),
    ({"model_type": "gemma2", "layer_types": [SLIDING, FULL]}, SLIDING, [0]),
    ({"model_type": "qwen2", "num_hidden_layers": 4}, SLIDING, None),  # its class may mix masks
    ({"model_type": "smollm3", "use_sliding_window": True, "sliding_window": 64}, SLIDING, None),
    ({"model_type": "qwen3_next", "num_hidden_layers": 8}, "linear_attention", [0, 1, 2, 4, 5, 6]),
    ({"model_type": "minimax", "num_hidden_layers": 8}, "linear_attention", None),
    ({"model_type": "granitemoehybrid", "layer_types": ["mamba", "attention"]}, "mamba", [0]),
    ({"model_type": "jamba", "num_hidden_layers": 8, "attn_layer_period": 8}, FULL, None),
    ({"model_type": "nemotron_h", "num_hidden_layers": 8}, None, None),
    ({"model_type": "nemotron_h", "layers_block_type": ["mamba", "attention", "moe"]}, "attention", [1]),
    ({"model_type": "zamba", "num_hidden_layers": 8}, None, None),
    ({"model_type": "llama", "num_hidden_layers": 2}, FULL, [0, 1]),
])
def test_layers_are_those_of_the_kind_or_not_known(server, config, kind, expected):
    assert layers(server, config, kind) == (kind or FULL, expected)


@pytest.mark.parametrize("config, kind, kinds", [
    ({"model_type": "llama4_text"}, "nope", [CHUNKED, FULL]),
    ({"model_type": "llama4_text"}, SLIDING, [CHUNKED, FULL]),
    ({"model_type": "llama4_text"}, "sliding", [CHUNKED, FULL]),
    ({"model_type": "smollm3", "no_rope_layers": [1, 1, 1]}, "nope", [FULL]),
    ({"model_type": "smollm3"}, SLIDING, [FULL, "nope"]),
    ({"model_type": "gemma3_text", "layer_types": [SLIDING] * 3}, FULL, [SLIDING]),
    ({"model_type": "gemma2", "layer_types": [FULL]}, SLIDING, [FULL]),
    ({"model_type": "lfm2", "layer_types": ["conv", FULL]}, SLIDING, [FULL]),
    ({"model_type": "llama"}, SLIDING, [FULL]),
    ({"model_type": "deepseek_v3"}, SLIDING, [FULL]),
    ({"model_type": "deepseek_v4"}, FULL, ["heavily_compressed_attention", "compressed_sparse_attention", SLIDING]),
    ({"model_type": "zaya"}, FULL, ["hybrid"]),
    ({"model_type": "gemma4_unified_text"}, "nope", [SLIDING, FULL]),
    ({"model_type": "qwen2"}, "sliding", [FULL]),
    ({"model_type": "t5"}, FULL, ["encoder", "decoder"]),
    ({"model_type": "seamless_m4t"}, FULL, PARTS["seamless_m4t"]),
])
def test_a_kind_that_the_model_does_not_have(server, config, kind, kinds):
    answer = server.post("/encode", {"hf_config": config, "layer_type": kind, "len": 2})
    assert answer.status == 422 and answer.json()["pointer"] == "/layer_type" and answer.json()["layer_types"] == kinds, answer
    assert kind in answer.json()["detail"] and all(each in answer.json()["detail"] for each in kinds)


def test_the_sentence_of_a_kind_that_the_model_does_not_have(server):
    answer = server.post("/encode", {"hf_config": {"model_type": "llama4_text"}, "layer_type": "sliding", "len": 2}).json()
    assert answer["detail"] == ('"llama4_text" has no layers of type "sliding"; it has:\n'
                                '"chunked_attention" (36 of 48: 0-2, 4-6, …, 44-46): rope, base 500000\n'
                                '"full_attention" (12 of 48: 3, 7, …, 47): no positions')


@pytest.mark.parametrize("config, pointer", [
    ({"model_type": "qwen2", "layer_types": "full"}, "layer_types"),
    ({"model_type": "qwen2", "layer_types": [1, 2]}, "layer_types"),
    ({"model_type": "qwen2", "layer_types": ["foo"]}, "layer_types/0"),
    ({"model_type": "qwen2", "layer_types": [FULL, 3]}, "layer_types/1"),
    ({"model_type": "nemotron_h", "layers_block_type": ["mamba", "foo"]}, "layers_block_type/1"),
    ({"model_type": "qwen2", "num_hidden_layers": 12, "layer_types": [FULL] * 6}, "layer_types"),
    *(({"model_type": "llama", "num_hidden_layers": n}, "num_hidden_layers") for n in ("x", -3, 1e30, 1.5)),
    ({"model_type": "bert", "num_hidden_layers": -3}, "num_hidden_layers"),
    ({"model_type": "smollm3", "no_rope_layers": [True, False]}, "no_rope_layers"),
    ({"model_type": "smollm3", "no_rope_layer_interval": 0}, "no_rope_layer_interval"),
    ({"model_type": "deepseek_v4", "compress_ratios": "4"}, "compress_ratios"),
    *(({"model_type": "gemma3_text", "sliding_window_pattern": n}, "sliding_window_pattern") for n in (0, -1, 1.5, "x")),
    ({"model_type": "qwen3_next", "full_attention_interval": 0}, "full_attention_interval"),
])
def test_layer_data_that_no_class_could_use(server, config, pointer):
    for kind in ({}, {"layer_type": FULL}):
        refused(server, f"/hf_config/{pointer}", "allowed:", len=2, hf_config=config, **kind)


@pytest.mark.parametrize("config", [{"model_type": "gemma3n_text", "sliding_window_pattern": 0}, {"model_type": "olmo3", "rope_theta": 5e5, "sliding_window_pattern": "x"},
                                    {"model_type": "gemma3_text", "layer_types": [FULL, SLIDING], "sliding_window_pattern": 0}])
def test_layer_data_that_is_not_read_is_ignored(server, config):
    report = server.ask(hf_config=config, layer_type=FULL, len=2, data=False).json()["hf_config"]
    assert report["ignored"] == ["sliding_window_pattern"] and "sliding_window_pattern" not in report["defaults"]


def test_as_many_kinds_as_are_listed(server):
    told = {"scheme": "rope", "layout": "half", "len": 2}
    names = [f"kind{i}" for i in range(9)]
    config = {"model_type": "some_new_model", "head_dim": 8, "layer_types": names[:8], "rope_parameters": {name: {"rope_theta": 10 + i} for i, name in enumerate(names)}}
    answer = server.post("/encode", {"hf_config": config, **told}).json()
    assert answer["layer_types"] == names[:8] and len(answer["detail"].splitlines()) == 9
    refused(server, "/hf_config/layer_types", "too many kinds", hf_config={**config, "layer_types": names}, **told)
    config = {**config, "layer_types": [name * 8 for name in names[:8]], "rope_parameters": {name * 8: {"rope_theta": 10 + i} for i, name in enumerate(names)}}
    answer = server.post("/encode", {"hf_config": config, **told}).json()
    assert answer["layer_types"] == config["layer_types"] and answer["detail"].endswith("\n…")


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


# ---- Values that no class could use ----


VL = {"model_type": "qwen2_vl", "hidden_size": 64, "num_attention_heads": 4}
DBRX = {"model_type": "dbrx", "d_model": 64, "n_heads": 4}


@pytest.mark.parametrize("config, kind, pointer, word", [
    ({"model_type": "deepseek_v4", "head_dim": 8, "qk_rope_head_dim": 16}, SLIDING, "", "at least qk_rope_head_dim"),
    ({"model_type": "deepseek_v3", "qk_rope_head_dim": "x"}, None, "/qk_rope_head_dim", "an integer"),
    ({"model_type": "gemma3", "text_config": {"model_type": 5}}, None, "/text_config/model_type", "a word"),
    ({**DBRX, "attn_config": 5}, None, "/attn_config", "an object"),
    ({**DBRX, "attn_config": {"rope_theta": "x"}}, None, "/attn_config/rope_theta", "a number"),
    ({**VL, "vision_config": 5}, None, "/vision_config", "an object"),
    ({**VL, "vision_config": {"spatial_merge_size": "x"}}, None, "/vision_config/spatial_merge_size", "a number"),
    ({"model_type": "swin", "num_heads": None}, "stage1", "", "one for each stage"),
    ({"model_type": "gpt2", "n_embd": 8, "n_positions": "x"}, None, "/n_positions", "an integer"),
])
def test_values_that_no_class_could_use(server, config, kind, pointer, word):
    fields = {"layer_type": kind} if kind else {}
    refused(server, f"/hf_config{pointer}", word, hf_config=config, len=1, **fields)


def test_a_share_beside_the_rule(server):
    """proportional turns the first pairs, by the ladder of the whole head; its share may be beside the object."""
    config = {"model_type": "llama", "head_dim": 16, "partial_rotary_factor": 0.5,
              "rope_scaling": {"rope_type": "proportional"}}
    answer = server.ask("/encode", hf_config=config, len=1, outputs=["inv_freq"]).json()
    w = [10000 ** (-c / 8) for c in range(4)] + [0] * 4
    assert answer["tensors"]["inv_freq"]["data"] == pytest.approx(w, rel=1e-15)
    assert answer["config"]["rotary_dim"] == 16


def test_a_sliding_base_of_a_type_as_told(server):
    """Without a row the two bases are all that says that layers differ."""
    config = {"head_dim": 8, "rope_theta": 1e6, "rope_local_base_freq": 1e4}
    told = {"hf_config": config, "scheme": "rope", "layout": "half", "len": 1}
    refused(server, "/layer_type", "full_attention", "base 10000", **told)
    for kind, base in ((FULL, 1e6), (SLIDING, 1e4)):
        assert server.ask("/encode", **told, layer_type=kind, data=False).json()["config"]["base"] == base


def test_dynamic_without_alpha_is_dynamic(server):
    """Hunyuan's word for ntk is dynamic beside alpha; without it the rule is that of the library."""
    config = {"model_type": "hunyuan_v1_dense", "hidden_size": 64, "num_attention_heads": 4,
              "max_position_embeddings": 512}
    for more, rule, stretch in (({}, "dynamic", 2 * 1024 / 512 - 1), ({"alpha": 50.0}, "ntk", 50)):
        base = 1e4 * stretch ** (16 / 14)
        fields = {**config, "rope_scaling": {"type": "dynamic", "factor": 2, **more}}
        answer = server.ask("/encode", hf_config=fields, positions=[1023], outputs=["inv_freq"], format="json").json()
        assert answer["config"]["scaling"]["type"] == rule
        assert answer["tensors"]["inv_freq"]["data"] == pytest.approx([base ** (-c / 8) for c in range(8)], rel=1e-14)
