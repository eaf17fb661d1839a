"""A model_type without a row is refused, and read only as the request itself says."""
import pytest

from asking import refused

NEW = {"model_type": "brand_new", "hidden_size": 64, "num_attention_heads": 4, "rope_theta": 77777, "vocab_size": 10}
TOLD = {"scheme": "rope", "layout": "half"}


def read(server, config, **fields):
    return server.ask(len=2, data=False, hf_config=config, **fields).json()


@pytest.mark.parametrize("model_type, nearest", [("qwen4", "qwen2"), ("llama_3", "llama4"), ("gemma33", "gemma3")])
def test_an_unknown_type_is_refused_with_the_nearest_names(server, model_type, nearest):
    refused(server, "/hf_config/model_type", "not known here", f'"{nearest}"', '"scheme":"rope"', len=2, hf_config={**NEW, "model_type": model_type})


def test_the_pointer_leads_to_the_inner_type(server):
    refused(server, "/hf_config/text_config/model_type", "brand_new", len=2, hf_config={"model_type": "llava", "text_config": NEW})
    refused(server, "/hf_config/thinker_config/text_config/model_type", "brand_new", len=2, hf_config={"model_type": "x", "thinker_config": {"text_config": NEW}})


def test_a_missing_type_is_refused(server):
    refused(server, "/hf_config/model_type", "model_type is missing", len=2, hf_config={"hidden_size": 64, "rope_theta": 1e4})


def test_an_unknown_shell_around_a_known_model(server):
    answer = read(server, {"model_type": "brand_new_vl", "text_config": {"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 2}})
    assert answer["config"]["head_dim"] == 128 and answer["hf_config"]["model_type"] == "qwen3"


def test_positions_that_no_scheme_gives_are_named(server):
    refused(server, "/hf_config/model_type", "convolution", len=2, hf_config={"model_type": "wav2vec2"})


def test_as_told(server):
    answer = read(server, NEW, **TOLD)
    assert answer["hf_config"] == {"model_type": "brand_new", "certainty": "as told", "layer_type": "full_attention", "layers": None, "ignored": ["vocab_size"], "defaults": {}}
    assert {name: answer["config"][name] for name in ("head_dim", "base", "layout")} == {"head_dim": 16, "base": 77777.0, "layout": "half"}


def test_what_the_request_says_wins_and_completes(server):
    config = read(server, {"model_type": "brand_new", "rope_scaling": {"rope_type": "linear", "factor": 4}}, **TOLD, head_dim=32)["config"]
    assert config["head_dim"] == 32 and config["scaling"]["type"] == "linear" and config["scaling"]["factor"] == 4
    assert read(server, NEW, scheme="rope", layout="interleaved", base=5.0)["config"]["base"] == 5


def test_the_layout_is_never_guessed(server):
    refused(server, "/layout", "half", "interleaved", len=2, hf_config=NEW, scheme="rope")
    assert read(server, {**NEW, "rope_interleave": True}, scheme="rope")["config"]["layout"] == "interleaved"


def test_sections_of_axes_are_never_guessed(server):
    config = {**NEW, "rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3]}}
    refused(server, "/hf_config/rope_scaling/mrope_section", "channels", len=2, hf_config=config, **TOLD)
    assert read(server, config, **TOLD, channels="mrope", mrope_section=[2, 3, 3])["config"]["mrope_section"] == [2, 3, 3]


@pytest.mark.parametrize("scheme, config, expected", [
    ("alibi", {"n_head": 8}, {"num_heads": 8, "form": "symmetric"}),
    ("sinusoidal", {"d_model": 32}, {"dim": 32, "layout": "half"}),
    ("none", {"d_model": 32}, {"dim": 32}),
])
def test_other_schemes(server, scheme, config, expected):
    answer = read(server, {"model_type": "brand_new", **config}, scheme=scheme, **({"layout": "half"} if scheme == "sinusoidal" else {}))
    assert answer["hf_config"]["certainty"] == "as told" and expected.items() <= answer["config"].items()


def test_a_table_as_told(server):
    answer = read(server, {"model_type": "brand_new", "d_model": 8, "max_position_embeddings": 16}, scheme="learned", seed=1)
    assert answer["config"]["rows"] == 16 and answer["config"]["dim"] == 8


def test_what_cannot_be_told(server):
    refused(server, "/scheme", "rope, learned, sinusoidal", len=2, hf_config=NEW, scheme="cope")
    refused(server, "/scheme", "nearest", len=2, hf_config={"model_type": "llama"}, scheme="rop")
    refused(server, "/scheme", "leave scheme out", len=2, hf_config={"model_type": "bert"}, scheme="rope", layout="half")


def test_a_known_type_stays_as_it_is_known(server):
    assert read(server, {"model_type": "cohere"}, scheme="rope")["hf_config"]["certainty"] == "class default"
    assert read(server, {"model_type": "cohere"}, scheme="rope", layout="half")["config"]["layout"] == "half"


def test_layers_without_positions(server):
    def layer(config, layer_type):
        return read(server, config, layer_type=layer_type)["scheme"]
    assert layer({"model_type": "cohere2"}, "full_attention") == "none" and layer({"model_type": "cohere2"}, "sliding_attention") == "rope"
    assert layer({"model_type": "smollm3"}, "nope") == "none" and layer({"model_type": "smollm3"}, "full_attention") == "rope"
    assert layer({"model_type": "llama4_text"}, "chunked_attention") == "rope"
    refused(server, "/layer_type", "no positions", len=2, hf_config={"model_type": "cohere2"})
    refused(server, "/layer_type", "has no layers of type", '"full_attention"', len=2, hf_config={"model_type": "llama"}, layer_type="nope")


def test_parts_of_a_model(server):
    whisper = {"model_type": "whisper", "d_model": 64, "max_target_positions": 10}
    refused(server, "/layer_type", '"encoder": sinusoidal', '"decoder": learned', len=2, hf_config=whisper)
    assert read(server, whisper, layer_type="encoder")["scheme"] == "sinusoidal"
    assert read(server, whisper, layer_type="decoder", seed=1)["config"]["rows"] == 10
    refused(server, "/layer_type", "encoder", len=2, hf_config=whisper, layer_type="full_attention")


def test_fields_that_are_not_read_here_are_refused(server):
    refused(server, "/hf_config/use_long_context", "not read", len=2, hf_config={"model_type": "zamba2", "use_mem_rope": True, "use_long_context": True})
    assert read(server, {"model_type": "zamba2"})["scheme"] == "none"
    assert read(server, {"model_type": "zamba2", "use_mem_rope": True})["config"]["head_dim"] == 160


def test_a_part_is_no_type_of_a_config(server):
    for part in ("whisper/encoder", "voxtral/text", "seamless_m4t/text_encoder"):
        refused(server, "/hf_config/model_type", "not known here", len=2, hf_config={"model_type": part})
    refused(server, "/hf_config/text_config/model_type", "not known here", len=2, hf_config={"model_type": "llava", "text_config": {"model_type": "voxtral/text"}})


def test_a_shell_needs_the_type_of_what_it_holds(server):
    for config in ({}, {"decoder": None}, {"decoder": {}}):
        refused(server, ("/hf_config/model_type", "/hf_config/decoder/model_type"), "holds another model", "decoder", len=2, hf_config={"model_type": "encoder-decoder", **config})


def test_a_model_of_its_own_reads_no_inner_object(server):
    answer = read(server, {"model_type": "qwen3", "head_dim": 32, "text_config": {"model_type": "gpt2"}})
    assert answer["config"]["head_dim"] == 32 and "text_config" in answer["hf_config"]["ignored"]


def test_objects_of_unknown_layers_are_refused(server):
    rope = {"rope_type": "linear", "factor": 4, "rope_theta": 10000}
    for config in ({**rope, "note": {}}, {"global": rope, "local": rope}):
        for fields in ({}, {"layer_type": "full_attention"}):
            refused(server, "/hf_config/rope_parameters", "layer types", len=2, hf_config={"model_type": "llama", "rope_parameters": config}, **fields)


def test_lists_of_words_are_spelled(server):
    refused(server, "/layer_type", "encoder, decoder", len=2, hf_config={"model_type": "t5"}, layer_type="middle")
    refused(server, "/layer_type", '"full_attention" (27 of 36', '"nope" (9 of 36', len=2, hf_config={"model_type": "smollm3"}, layer_type="middle")


def test_a_word_for_another_kind_of_positions_where_no_code_reads_it(server):
    refused(server, "/hf_config/position_embedding_type", "absolute", len=2, hf_config={"model_type": "gpt2", "position_embedding_type": "rotary"})
    assert read(server, {"model_type": "esm", "position_embedding_type": "rotary", "pad_token_id": 1})["scheme"] == "rope"


def test_hunyuans_alpha_is_hunyuans(server):
    scaling = {"rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}}
    assert read(server, {"model_type": "hunyuan_v1_dense", **scaling})["config"]["scaling"]["type"] == "ntk"
    refused(server, "/hf_config", "alpha", len=2, hf_config={"model_type": "llama", **scaling})
