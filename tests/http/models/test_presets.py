"""Presets: every one can be planned and computed and names its layers; published frequencies; and what is pasted or stored is what is named.
The numbers of each model, copied by hand from published configs, are rows of tests/cases/presets.jsonl."""
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
            request = {**named, **sequence_for(config)}
            assert server.ask("/encode", **request, format="raw").body  # some have millions of numbers
            body = server.ask("/encode", **request, data=False).json()
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


def test_windows_have_as_many_distances_as_their_tables_rows(server):
    for fields, rows in (({"preset": "swin-tiny"}, 169), ({"preset": "swin-base-384", "layer_type": "stage3"}, 529), ({"preset": "beit-base-384"}, 2212)):
        assert encode(server, **fields)["index"].max() == rows - 1


def test_a_stored_preset_and_a_preset_of_one(server):
    """A preset of a team is one too, and what is stored under one may name one itself."""
    put = server.request("PUT", "/presets/pointed", b'{"config":{"scheme":"rope","head_dim":128,"rotary_dim":64}}')
    assert put.status == 201, put
    try:
        refused(server, "/preset", 'rotary_dim is set by the preset "pointed"', preset="pointed", head_dim=32, len=4)
        refused(server, "/configs/0/preset", "rotary_dim", path="/analyze", configs=[{"preset": "pointed", "head_dim": 32}], len=4)
    finally:
        assert server.request("DELETE", "/presets/pointed").status == 204
    answer = server.request("PUT", "/presets/pointed", b'{"config":{"preset":"gpt-j","head_dim":32}}')
    assert answer.status == 422 and answer.json()["pointer"] == "/config/preset" and "rotary_dim" in answer.json()["detail"]


LLAMA = {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "hidden_size": 4096, "max_position_embeddings": 131072,
         "model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 8, "rope_theta": 500000.0,
         "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                          "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "torch_dtype": "bfloat16",
         "use_cache": True, "vocab_size": 128256, "pretraining_tp": 1, "bos_token_id": None, "eos_token_id": [128001, 128008]}
SWIN = {"model_type": "swinv2", "embed_dim": 128, "image_size": 384, "num_heads": [4, 8, 16, 32], "patch_size": 4,
        "pretrained_window_sizes": [12, 12, 12, 6], "window_size": 24, "depths": [2, 2, 18, 2]}


def test_a_pasted_config_is_the_preset(server):
    for hf, preset, fields in ((LLAMA, "llama-3.1", {"len": 4, "outputs": ["cos", "inv_freq"]}), (SWIN, "swinv2-base-w12to24", {"layer_type": "stage1"}),
                               (SWIN, "swinv2-base-w12to24", {"layer_type": "stage4"})):
        named, pasted = (server.ask(**model, **fields).json() for model in ({"preset": preset}, {"hf_config": hf}))
        assert pasted["tensors"] == named["tensors"] and pasted["config"] == named["config"]


# Of the published decimals, added exactly: how many, the first, the last, the sum.
LISTS = {
    "phi-3-mini-128k": {"short_factor": (48, 1.05, 3.05, 96.05), "long_factor": (48, 1.03, 64.81, 1513.02), "max_position_embeddings": 131072},
    "phi-4-mini": {"short_factor": (48, 1, 1, 48), "long_factor": (48, 1, 47.77, 844.763412405), "original_max_position_embeddings": 4096},
    "minicpm4-8b": {"short_factor": (64, 0.9977997200264581, 124.09569231686116, 3164.6659163917093),
                    "long_factor": (64, 0.9977997200264581, 124.09569231686116, 3164.6659163917093), "max_position_embeddings": 32768},
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_copied_right(server, name):
    scaling = server.get(f"/presets/{name}").json()["config"]["scaling"]
    for field, expected in LISTS[name].items():
        found = scaling[field]
        if isinstance(found, list):
            assert found == sorted(found) and (len(found), found[0], found[-1]) == expected[:3] and math.fsum(found) == pytest.approx(expected[3], abs=1e-9)
        else:
            assert found == expected
