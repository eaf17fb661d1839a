"""Presets: every one can be planned and computed; their values are compared with a separate table, copied by hand from
published configs; and the request's own fields take precedence."""
import json
import math

import pytest

from asking import refused
from tensors import encode

RELATIVE = {"shaw", "deberta", "transformer_xl", "xlnet", "conformer"}
CERTAINTY = {"checkpoint", "class default", "unverified"}


@pytest.fixture(scope="module")
def presets(session_server):
    return session_server.get("/presets").json()["presets"]


def sequence_for(config):
    """A sequence that a model's scheme takes."""
    scheme, axes = config["scheme"], len(config.get("axes_dim", []))
    if "grid" in config:  # the model's own window
        return {}
    if config.get("channels") in ("pixtral", "dinov3") or config.get("style") in ("detr", "mae", "timm", "vjepa"):
        return {"grid": [4, 4]}
    if scheme == "learned" and ("table_grid" in config or config.get("style") == "detr"):
        return {"grid": [4, 4], "seed": 0}
    if scheme == "learned":
        return {"len": 8, "seed": 0}
    if scheme == "fourier":
        return {"grid": config.get("max_resolution", [4, 4])}
    return {"grid": [4] * axes} if axes > 1 else {"len": 8}


def requests_of(preset):
    for layer in preset.get("layers", [{"config": preset["config"]}]):
        named = {"preset": preset["name"]}
        if "layer_type" in layer:
            named["layer_type"] = layer["layer_type"]
        yield named, layer["config"]


def test_every_preset_plans_and_fills(server, presets):
    assert len(presets) >= 60
    for preset in presets:
        assert preset["source"] and preset["certainty"] in CERTAINTY
        for named, config in requests_of(preset):
            answer = server.post("/encode", {**named, **sequence_for(config)})
            assert answer.status == 200, (named, answer)
            body = answer.json()
            assert body["scheme"] == config["scheme"] and body["tensors"]
            assert body["preset"]["certainty"] == preset["certainty"]
            for name, value in config.items():  # the preset's values are those used in the computation
                if config["scheme"] in RELATIVE and name not in body["config"]:
                    continue  # attention's, as its index or distances need no heads
                if name in ("softmax_scale", "head_dim") and config["scheme"] in ("alibi", "t5", "swin", "swinv2", "beit"):
                    assert name not in body["config"], (named, name)  # attention's
                elif name in ("base", "head_dim", "layout", "dim", "rotary_dim", "rotary_offset", "num_heads", "form", "bias_max",
                              "num_buckets", "max_distance", "bidirectional", "table_scale", "bias_scaled", "pretrained_grid"):
                    assert body["config"][name] == value, (named, name)


def test_names_and_aliases_are_unique(presets):
    names = [n for p in presets for n in [p["name"], *p.get("aliases", [])]]
    assert len(names) == len(set(names))


def test_one_by_name(server, presets):
    for preset in presets[:5]:
        for name in [preset["name"], *preset.get("aliases", [])]:
            assert server.get(f"/presets/{name}").json() == preset
    answer = server.get("/presets/lama-3.1")
    assert answer.status == 404 and "llama-3.1" in answer.json()["detail"]


# ---- Rotary models by hand (smollm3: the checkpoint's base, not the class default): layout, head_dim, rotary_dim, base, scaling type and factor ------

ROTARY = {
    "llama-1": ("half", 128, 128, 1e4, None), "llama-2": ("half", 128, 128, 1e4, None),
    "llama-3": ("half", 128, 128, 5e5, None), "llama-3.1": ("half", 128, 128, 5e5, ("llama3", 8)),
    "llama-3.2-1b": ("half", 64, 64, 5e5, ("llama3", 32)), "llama-3.2-3b": ("half", 128, 128, 5e5, ("llama3", 32)),
    "llama-4-scout": ("interleaved", 128, 128, 5e5, ("llama3", 16)),
    "mistral-7b-v0.1": ("half", 128, 128, 1e4, None), "mistral-7b-v0.2": ("half", 128, 128, 1e6, None),
    "qwen2": ("half", 128, 128, 1e6, None), "qwen3": ("half", 128, 128, 1e6, None),
    "qwen3-next": ("half", 256, 64, 1e7, None), "phi-2": ("half", 80, 32, 1e4, None),
    "phi-3-mini-4k": ("half", 96, 96, 1e4, None), "phi-4-mini": ("half", 128, 96, 1e4, ("longrope", None)),
    "minicpm4-8b": ("half", 128, 128, 1e4, ("longrope", None)), "gemma-2": ("half", 256, 256, 1e4, None),
    "gemma-3-1b": ("half", 256, 256, 1e6, None), "gemma-3-4b": ("half", 256, 256, 1e6, ("linear", 8)),
    "deepseek-v3": ("interleaved", 192, 64, 1e4, ("yarn", 40)), "deepseek-v2": ("interleaved", 192, 64, 1e4, ("yarn", 40)),
    "gpt-oss": ("half", 64, 64, 150000, ("yarn", 32)), "internlm3-8b": ("half", 128, 128, 5e7, ("dynamic", 6)),
    "gpt-j-6b": ("interleaved", 256, 64, 1e4, None), "gpt-neox-20b": ("half", 96, 24, 1e4, None),
    "glm-4-9b": ("interleaved", 128, 64, 1e4, None), "smollm3": ("half", 128, 128, 5e6, None),
    "modernbert": ("half", 64, 64, 160000, None), "roformer": ("interleaved", 64, 64, 1e4, None),
    "qwen2-vl": ("half", 128, 128, 1e6, None), "qwen2.5-vl": ("half", 128, 128, 1e6, None),
    "qwen3-vl": ("half", 128, 128, 5e6, None), "flux.1": ("interleaved", 128, 128, 1e4, None),
    "dinov3": ("half", 64, 64, 100, None),
}


@pytest.mark.parametrize("name", ROTARY)
def test_rotary(server, name):
    layout, head_dim, rotary_dim, base, scaling = ROTARY[name]
    answer = server.get(f"/presets/{name}")
    assert answer.status == 200, answer
    config = server.ask("/encode", preset=name, **sequence_for(answer.json()["config"]), data=False).json()["config"]
    assert (config["layout"], config["head_dim"], config["rotary_dim"], config["base"]) == (layout, head_dim, rotary_dim, base)
    assert config["scaling"]["type"] == (scaling[0] if scaling else "default")
    if scaling and scaling[1]:
        assert config["scaling"]["factor"] == scaling[1]


def frequencies(server, **fields):
    return encode(server, outputs=["inv_freq"], **fields)["inv_freq"]


def test_reference_values_by_name(server):
    llama = frequencies(server, preset="llama-3.1-8b", len=1)
    assert llama[29] == pytest.approx(0.0021665707635, rel=5e-12) and llama[63] == pytest.approx(3.06892598891e-07, rel=5e-12)
    oss = frequencies(server, preset="gpt-oss-20b", len=1)
    assert oss[8] == pytest.approx(0.0508132748155, rel=5e-12) and oss[31] == pytest.approx(3.02351142812e-07, rel=5e-12)
    deepseek = server.ask("/encode", preset="deepseek-v3", len=1, outputs=["inv_freq"]).json()
    assert deepseek["tensors"]["inv_freq"]["data"][11] == pytest.approx(0.0390069265671, rel=5e-12)
    assert deepseek["config"]["scaling"]["softmax_scale_factor"] == pytest.approx(1.87385, rel=1e-5)
    assert deepseek["config"]["rotary_offset"] == 128 and deepseek["config"]["attention_factor"] == 1
    phi = server.ask("/encode", preset="phi-3-mini-128k", len=4097, data=False).json()["config"]
    assert phi["attention_factor"] == pytest.approx(1.19023807142, rel=1e-11) and phi["scaling"]["list"] == "long"


def test_ministral_3_multiplies_no_softmax_scale(server):
    """Ministral3Attention's scaling is head_dim**-0.5, with any mscale_all_dim; as Llama's and Qwen's is."""
    assert "softmax_scale_factor" not in server.ask(preset="ministral-3", len=2).json()["config"]["scaling"]
    yarn = {"rope_type": "yarn", "factor": 16, "original_max_position_embeddings": 16384, "mscale": 1.0, "mscale_all_dim": 1.0}
    for model_type in ("ministral3", "llama", "qwen3"):
        config = server.ask(hf_config={"model_type": model_type, "rope_parameters": yarn}, len=2).json()["config"]
        assert config["scaling"]["softmax_scale_factor"] == 1 and config["attention_factor"] == 1, config
    latent = server.ask(hf_config={"model_type": "deepseek_v3", "rope_parameters": yarn}, len=2).json()["config"]
    assert latent["scaling"]["softmax_scale_factor"] == pytest.approx((0.1 * math.log(16) + 1) ** 2)


def test_presets_whose_layers_differ_state_which_are_answered(server, presets):
    several = [preset for preset in presets if "layers" in preset]
    assert len(several) > 10
    for preset in several:
        kinds = [layer["layer_type"] for layer in preset["layers"]]
        zh = server.get(f"/presets/{preset['name']}?lang=zh").json()
        assert f"Without layer_type: {kinds[0]}." in preset["note"] and f"不写 layer_type 时为 {kinds[0]}。" in zh["note"], preset
        for asked in (None, *kinds):
            fields = {"data": False, "seed": 0, **sequence_for(preset["config"])}
            answer = server.post("/encode", {**fields, "preset": preset["name"], **({"layer_type": asked} if asked else {})})
            if answer.status == 422:  # no weights to draw
                answer = server.post("/encode", {"preset": preset["name"], **{k: v for k, v in fields.items() if k != "seed"}, **({"layer_type": asked} if asked else {})})
            assert answer.json()["preset"]["layer_type"] == (asked or kinds[0]), answer
    assert server.ask(preset="gemma-3-12b", len=2).json()["preset"]["layer_type"] == "full_attention"
    assert "layer_type" not in server.ask(preset="llama-3.1", len=2).json()["preset"]
    rotated = server.post("/rotate", {"preset": "gemma-3", "layer_type": "sliding_attention", "q": [[1.0] * 256]}).json()
    assert rotated["preset"]["layer_type"] == "sliding_attention"


def test_layers(server):
    local = server.ask("/encode", preset="gemma-3-4b", layer_type="sliding_attention", len=2, data=False).json()["config"]
    assert (local["base"], local["scaling"]["type"]) == (1e4, "default")
    gemma4 = server.ask("/encode", preset="gemma-4", len=2, outputs=["inv_freq"]).json()
    w = gemma4["tensors"]["inv_freq"]["data"]
    assert len(w) == 256 and w[63] == pytest.approx(0.0333762469429, rel=5e-12) and w[64] == 0
    refused(server, "/layer_type", "sliding_attention", preset="gemma-3-4b", layer_type="sliding", len=2)
    refused(server, "/layer_type", "preset", scheme="rope", layer_type="full_attention", len=2)


# ---- Models with biases, relative terms and windows, by name ----


def test_biases_by_name(server):
    slopes = encode(server, preset="bloom", len=1, outputs=["slopes"])["slopes"]
    assert slopes.shape == (112,) and slopes[0] == pytest.approx(0.9170, abs=5e-5) and slopes[64] == pytest.approx(0.9576, abs=5e-5)
    assert slopes[63] == pytest.approx(0.0039, abs=5e-5) and slopes[111] == pytest.approx(0.0163, abs=5e-5)
    writer = encode(server, preset="mpt-7b-storywriter", len=1, outputs=["slopes"])["slopes"]
    assert writer[0] == pytest.approx(2**-0.5, rel=1e-7) and writer[31] == 2**-16
    falcon = server.ask("/encode", preset="falcon-rw-1b", len=2, data=False).json()
    assert falcon["config"]["bias_scaled"] is True and falcon["preset"]["certainty"] == "unverified"


def test_stacks_of_t5(server):
    far = [200, 64, 16, 15, 1, 0]  # distances back from a query at 200
    both = encode(server, preset="t5-small", q_positions=[200], k_positions=[200 - n for n in far], outputs=["buckets"])["buckets"]
    assert both.tolist() == [[15, 14, 10, 9, 1, 0]]
    back = encode(server, preset="t5-small", layer_type="decoder", q_positions=[200], k_positions=[200 - n for n in far],
                  outputs=["buckets"])["buckets"]
    assert back.tolist() == [[31, 26, 16, 15, 1, 0]]
    refused(server, "/layer_type", "decoder", preset="t5-small", layer_type="middle", len=2)


def test_windows_are_the_models(server):
    index = encode(server, preset="swin-tiny")["index"]
    assert index.shape == (49, 49) and index[0, 0] == 84 and index[48, 0] == 168  # 169 rows
    assert encode(server, preset="swin-base-384", layer_type="stage3")["index"].max() == 528
    assert encode(server, preset="beit-base-384")["index"].max() == 2211
    assert encode(server, preset="swin-tiny", grid=[2, 2])["index"].tolist() == [[4, 3, 1, 0], [5, 4, 2, 1], [7, 6, 4, 3], [8, 7, 5, 4]]
    assert encode(server, preset="swin-tiny", layer_type="stage4", seed=0)["bias"].shape == (24, 49, 49)


def test_what_is_attentions_is_idle_only_where_it_is_inherited(server):
    refused(server, "/head_dim", "head_dim", preset="t5-small", head_dim=64, len=2)
    refused(server, "/softmax_scale", "softmax_scale", preset="t5-small", softmax_scale=1, len=2)


# ---- The request's own fields ----


def test_own_fields_win(server):
    def config(**fields):
        return server.ask("/encode", preset="llama-3.1", len=2, data=False, **fields).json()["config"]
    assert config(rope_theta=1e4)["base"] == 1e4 and config(base=1e4)["scaling"]["type"] == "llama3"
    assert config(scaling={"type": "default"})["scaling"] == {"type": "default"}
    assert config(layout="interleaved")["layout"] == "interleaved"
    assert config(scheme="rope")["head_dim"] == 128
    own = config(head_dim=4, inv_freq=[1.0, 0.5])
    assert own["inv_freq"] == [1.0, 0.5] and "base" not in own and "scaling" not in own
    neox = server.ask("/encode", preset="gpt-neox-20b", len=2, partial_rotary_factor=0.5, data=False).json()["config"]
    assert neox["rotary_dim"] == 48


def test_presets_refused(server):
    refused(server, "/scheme", "rope", preset="llama-3.1", scheme="sinusoidal", len=2)
    refused(server, "/preset", "llama-3.1", preset="lama-3.1", len=2)
    refused(server, "/preset", "hf_config", preset="llama-3.1", hf_config={"model_type": "llama"}, len=2)
    refused(server, "/preset", "string", preset=3, len=2)
    refused(server, "/hed_dim", "head_dim", preset="llama-3.1", hed_dim=2, len=2)


def test_the_sizes_of_q_are_the_models(server):
    refused(server, "/preset", "64", "head_dim is set by the preset \"llama-3.1\"", path="/rotate", preset="llama-3.1", q=[[0.0] * 64])
    answer = server.ask("/rotate", preset="llama-3.1", q=[[1.0] * 128], offset=3).json()
    assert answer["config"]["layout"] == "half" and answer["preset"]["name"] == "llama-3.1"


# ---- Errors about what is inherited ----

# rotary_dim 64 of the preset and of the config does not fit into these heads; rope_theta cannot be negative.
SMALL_HEADS = {"preset": "gpt-j", "head_dim": 32}
GPTJ = {"hf_config": {"model_type": "gptj", "n_embd": 128, "n_head": 4, "rotary_dim": 64}}
NEGATIVE = {"hf_config": {"model_type": "llama", "rope_theta": -1, "hidden_size": 64, "num_attention_heads": 4}}
ROWS = [[1.0] * 32] * 3


def wrong_field(**fields):
    return {"hf_config": {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 64, **fields}}


NOPE = {"hf_config": {"model_type": "smollm3", "hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 4}, "layer_type": "nope"}
SECTIONS = {"preset": "qwen2-vl"}  # its mrope_section does not fit into the heads of an experiment


@pytest.mark.parametrize("path, fields, pointer, words", [
    ("/encode", {**SMALL_HEADS, "len": 4}, "/preset", 'rotary_dim is set by the preset "gpt-j-6b"'),
    ("/encode", {**GPTJ, "len": 4}, "/hf_config/rotary_dim", "rotary_dim is set by hf_config"),
    ("/encode", {**NEGATIVE, "len": 4}, "/hf_config/rope_theta", "base is set by hf_config"),
    ("/encode", {**wrong_field(rope_theta=0, rope_ratio=2), "len": 4}, "/hf_config/rope_theta", "base is set by hf_config"),
    ("/encode", {**wrong_field(model_type="chatglm", rope_theta=None, rope_ratio=-2, kv_channels=16), "len": 4}, "/hf_config", "base is set by hf_config"),  # of several
    ("/encode", {**wrong_field(head_dim=7), "len": 4}, "/hf_config/head_dim", "head_dim is set by hf_config"),
    ("/encode", {**wrong_field(rope_parameters={"rope_type": "default", "rope_theta": -3}), "len": 4}, "/hf_config/rope_parameters/rope_theta", "base is set by"),
    ("/encode", {**wrong_field(rope_scaling={"rope_type": "linear", "factor": -2}), "len": 4}, "/hf_config/rope_scaling/factor", "scaling is set by hf_config"),
    ("/encode", {**wrong_field(rope_scaling={"rope_type": "yarn", "factor": 2, "beta_fast": -2}), "len": 4}, "/hf_config/rope_scaling/beta_fast", "scaling is set by"),
    ("/encode", {**wrong_field(rope_scaling={"rope_type": "longrope", "factor": 2, "long_factor": [1] * 8, "short_factor": [1] * 7 + [-1], "original_max_position_embeddings": 9}), "len": 4},
     "/hf_config/rope_scaling/short_factor", "scaling is set by hf_config"),
    ("/encode", {"hf_config": {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "head_dim": 8, "rope_theta": -1}}, "layer_type": "full_attention", "len": 4},
     "/hf_config/text_config/rope_theta", "base is set by hf_config"),
    ("/encode", {"preset": "qwen2-vl", "head_dim": 64, "len": 4}, "/preset", 'mrope_section is set by the preset "qwen2-vl"'),
    ("/rotate", {**SMALL_HEADS, "q": ROWS}, "/preset", "rotary_dim is set by"),
    ("/rotate", {"preset": "gpt-j", "q": ROWS}, "/preset", "head_dim is set by"),
    ("/rotate", {"preset": "t5-small", "q": ROWS}, "/preset", "scheme is set by"),
    ("/attention", {"preset": "gpt-j", "q": ROWS, "k": ROWS, "v": ROWS}, "/preset", "head_dim is set by"),
    ("/analyze", {**SMALL_HEADS, "len": 8}, "/preset", "rotary_dim is set by"),
    ("/analyze", {"configs": [{"scheme": "rope"}, SMALL_HEADS], "len": 8}, "/configs/1/preset", "rotary_dim is set by"),
    ("/analyze", {"configs": [{"scheme": "rope"}, NEGATIVE], "len": 8}, "/configs/1/hf_config/rope_theta", "base is set by"),
    ("/analyze", {"configs": [{"head_dim": 256}, {"head_dim": 32}], "preset": "gpt-j", "len": 8}, "/preset", "rotary_dim is set by"),
    ("/diagnose", {**SMALL_HEADS, "cos": ROWS, "sin": ROWS}, "/preset", "rotary_dim is set by"),
    ("/diagnose", {"preset": "gpt-j", "encoding": ROWS}, "/preset", "scheme is set by"),
    ("/rotate", {**NOPE, "q": ROWS}, "/layer_type", 'scheme is set by layer_type "nope" of hf_config'),
    ("/diagnose", {**NOPE, "cos": ROWS, "sin": ROWS}, "/layer_type", 'scheme is set by layer_type "nope" of hf_config'),
    ("/rotate", {"preset": "t5-small", "layer_type": "decoder", "q": ROWS}, "/preset", 'scheme is set by the preset "t5-small"'),
    ("/experiments", {"configs": [{"scheme": "rope"}, SECTIONS]}, "/configs/1/preset", "mrope_section is set by"),
    ("/experiments", {**SECTIONS, "configs": [{"layout": "half"}]}, "/preset", "mrope_section is set by"),
    ("/experiments", {"configs": [{"scheme": "rope", "eval": [SECTIONS]}]}, "/configs/0/eval/0/preset", "mrope_section is set by"),
    ("/experiments", {"configs": [{"preset": "deberta-v2"}]}, "/configs/0/preset", "scheme is set by the preset"),
])
def test_an_error_about_an_inherited_field_points_to_the_model(server, path, fields, pointer, words):
    """The body does not have the field, so a pointer to it would lead nowhere."""
    problem = server.post(path, fields)
    assert problem.status == 422 and problem.json()["pointer"] == pointer and words in problem.json()["detail"], problem
    at = fields
    for step in pointer.split("/")[1:]:
        at = at[int(step)] if step.isdigit() else at[step]


def test_a_grid_that_the_model_needs_is_missing(server):
    """What is missing is the request's to give."""
    siglip = {"model_type": "siglip_vision_model", "hidden_size": 8, "num_attention_heads": 2, "image_size": 4, "patch_size": 1}
    refused(server, "/grid", "interpolate needs a grid", hf_config=siglip, len=4, seed=1)
    assert server.post("/encode", {"hf_config": siglip, "grid": [2, 2], "seed": 1}).status == 200


@pytest.mark.parametrize("fields, pointer", [
    ({"preset": "gpt-j", "rotary_dim": 7}, "/rotary_dim"),
    ({"preset": "gpt-j", "head_dim": 32, "rotary_dim": 64}, "/rotary_dim"),
    ({"preset": "llama-3.1", "rope_theta": -1}, "/rope_theta"),  # another name of base, which the preset has
    ({"preset": "llama-3.1", "scaling": {"type": "yarn"}}, "/scaling/factor"),
    ({"preset": "llama-3.1", "scheme": "alibi"}, "/scheme"),
    ({"preset": "llama-3.1", "rotery_dim": 8}, "/rotery_dim"),
    ({**NEGATIVE, "base": -2}, "/base"),
    ({"scheme": "rope", "head_dim": 32, "rotary_dim": 64}, "/rotary_dim"),
])
def test_an_error_about_an_own_field_points_to_it(server, fields, pointer):
    problem = server.post("/encode", {**fields, "len": 4})
    assert problem.status == 422 and problem.json()["pointer"] == pointer and "is set by" not in problem.json()["detail"], problem


def test_a_stored_preset_and_a_preset_of_one(server):
    """A preset of a team is one too, and what is stored under one may name one itself."""
    put = server.request("PUT", "/presets/pointed", json.dumps({"config": {"scheme": "rope", "head_dim": 128, "rotary_dim": 64}}).encode())
    assert put.status == 201, put
    try:
        refused(server, "/preset", 'rotary_dim is set by the preset "pointed"', preset="pointed", head_dim=32, len=4)
        refused(server, "/configs/0/preset", "rotary_dim", path="/analyze", configs=[{"preset": "pointed", "head_dim": 32}], len=4)
    finally:
        assert server.request("DELETE", "/presets/pointed").status == 204
    answer = server.request("PUT", "/presets/pointed", json.dumps({"config": SMALL_HEADS}).encode())
    assert answer.status == 422 and answer.json()["pointer"] == "/config/preset" and "rotary_dim" in answer.json()["detail"]


@pytest.mark.parametrize("path, fields, said", [
    ("/rotate", {"preset": "gpt-j", "q": [[1.0] * 32]}, 'head_dim is 256, the tensor q makes it 32; head_dim is set by the preset "gpt-j-6b"'),
    ("/attention", {"preset": "bloom", "q": [[[[1.0] * 4] * 3] * 2], "k": [[[[1.0] * 4] * 3] * 2]},
     'num_heads is 112, the tensor q makes it 2; num_heads is set by the preset "bloom"'),
    ("/encode", {"hf_config": {"model_type": "t5", "num_heads": 4}, "layer_type": "encoder", "len": 3, "table": [[1.0] * 8] * 32},
     "num_heads is 4, the tensor table makes it 8; num_heads is set by hf_config"),
])
def test_what_a_request_inherits_it_need_not_leave_out(server, path, fields, said):
    assert server.post(path, fields).json()["detail"] == said


def test_a_size_that_the_request_has_is_left_out(server):
    refused(server, "/head_dim", "the tensor q makes it 32; leave head_dim out", path="/rotate", preset="gpt-j", head_dim=16, q=[[1.0] * 32])
    refused(server, "/rotary_dim", "rotary_dim is 7, which is odd", scheme="rope", head_dim=8, rotary_dim=7, len=2)
    refused(server, "/head_dim", "head_dim makes rotary_dim 7, which is odd", scheme="rope", head_dim=7, len=2)


# ---- Whole configs ----

LLAMA = {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "hidden_size": 4096, "max_position_embeddings": 131072,
         "model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 8, "rope_theta": 500000.0,
         "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                          "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "torch_dtype": "bfloat16",
         "use_cache": True, "vocab_size": 128256, "pretraining_tp": 1, "bos_token_id": None, "eos_token_id": [128001, 128008]}
GEMMA3 = {"model_type": "gemma3", "text_config": {
    "model_type": "gemma3_text", "head_dim": 256, "hidden_size": 2560, "num_attention_heads": 8, "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024,
    "max_position_embeddings": 131072}}
PHI3 = {"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "rope_theta": 10000.0,
        "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
        "rope_scaling": {"type": "su", "short_factor": [1.05] * 48, "long_factor": [2.0] * 48}}


def test_hf_config_is_the_preset(server):
    named = server.ask("/encode", preset="llama-3.1", len=4, outputs=["cos", "inv_freq"]).json()
    pasted = server.ask("/encode", hf_config=LLAMA, len=4, outputs=["cos", "inv_freq"]).json()
    assert pasted["tensors"] == named["tensors"] and pasted["config"] == named["config"]


def test_hf_config_of_layers(server):
    def base(**fields):
        config = server.ask("/encode", hf_config=GEMMA3, len=2, data=False, **fields).json()["config"]
        return config["base"], config["scaling"]["type"], config["head_dim"]
    refused(server, "/layer_type", '"full_attention"', '"sliding_attention"', hf_config=GEMMA3, len=2)
    assert base(layer_type="full_attention") == (1e6, "linear", 256)
    assert base(layer_type="sliding_attention") == (1e4, "default", 256)


def test_hf_config_of_phi3(server):
    config = server.ask("/encode", hf_config=PHI3, positions=[4096], data=False).json()["config"]
    assert config["scaling"]["list"] == "long" and config["attention_factor"] == pytest.approx(1.19023807142, rel=1e-11)


def test_hf_config_of_biases(server):
    def config(hf, **fields):
        return server.ask("/encode", hf_config=hf, data=False, **fields).json()["config"]
    t5 = {"model_type": "t5", "d_model": 512, "d_kv": 64, "num_heads": 8, "is_encoder_decoder": True, "n_positions": 512,
          "relative_attention_num_buckets": 32}
    assert config(t5, len=2, layer_type="encoder") == config({**t5, "is_encoder_decoder": False}, len=2)
    assert config(t5, len=2, layer_type="encoder")["bidirectional"] and not config(t5, len=2, layer_type="decoder")["bidirectional"]
    swin = {"model_type": "swinv2", "embed_dim": 128, "image_size": 384, "num_heads": [4, 8, 16, 32], "patch_size": 4,
            "pretrained_window_sizes": [12, 12, 12, 6], "window_size": 24, "depths": [2, 2, 18, 2]}
    for stage in ("stage1", "stage4"):
        named = server.ask("/encode", preset="swinv2-base-w12to24", layer_type=stage).json()
        assert server.ask("/encode", hf_config=swin, layer_type=stage).json()["tensors"] == named["tensors"]
        assert config(swin, layer_type=stage) == named["config"]


def test_hf_config_refused(server):
    refused(server, "/hf_config", hf_config=3, len=2)
    refused(server, "/hf_config", hf_config={}, len=2)
    refused(server, "/hf_config", hf_config={"rope_theta": 1e4}, len=2)
