"""Presets: every one can be planned and computed and names its layers; published frequencies; and what is pasted or stored is what is named.
The numbers of each model, copied by hand from published configs, are rows of tests/cases/presets.jsonl."""
import math

import pytest


RELATIVE = {"shaw", "deberta", "transformer_xl", "xlnet", "conformer"}
CERTAINTY = {"checkpoint", "class default", "unverified"}


@pytest.fixture(scope="module")
def presets(session_server):
    return session_server.get("/presets").json()["presets"]


PLACED = {"z_image", "ideogram4", "longcat_image", "hunyuan_image_3"}  # where an image is depends on what is around it


def sequence_for(config):
    """A sequence that a model's scheme takes."""
    scheme, axes = config["scheme"], len(config.get("axes_dim", []))
    if "grid" in config:  # the model's own window
        return {}
    if config.get("position_style") in PLACED:
        return {"segments": [{"type": "image", "grid": [1, 4, 4]}]}
    if config.get("channels") in ("pixtral", "dinov3") or config.get("style") in ("axial", "detr", "mae", "timm", "vjepa"):
        return {"grid": [4, 4]}
    if config.get("style") == "cogvideox":
        return {"grid": [4, 4, 4]}
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


def test_names_and_labels_are_unique(presets):
    names = [n for p in presets for n in [p["name"], *p.get("aliases", [])]]
    assert len(names) == len(set(names))
    for label in ("label", "label_zh"):
        assert len({preset[label] for preset in presets}) == len(presets) > 100


def test_one_by_name(server, presets):
    for preset in presets[:5]:
        for name in [preset["name"], *preset.get("aliases", [])]:
            assert server.get(f"/presets/{name}").json() == preset
    answer = server.get("/presets/lama-3.1")
    assert answer.status == 404 and "llama-3.1" in answer.json()["detail"]


def test_presets_whose_layers_differ_state_which_are_answered(server, presets):
    several = [preset for preset in presets if "layers" in preset]
    assert len(several) > 10
    for preset in several:
        kinds = [layer["layer_type"] for layer in preset["layers"]]
        configs = {None: preset["config"], **{layer["layer_type"]: layer["config"] for layer in preset["layers"]}}
        zh = server.get(f"/presets/{preset['name']}?lang=zh").json()
        assert f"Without layer_type: {kinds[0]}." in preset["note"] and f"不写 layer_type 时为 {kinds[0]}。" in zh["note"], preset
        for asked in (None, *kinds):
            fields = {"data": False, "seed": 0, **sequence_for(configs[asked])}
            answer = server.post("/encode", {**fields, "preset": preset["name"], **({"layer_type": asked} if asked else {})})
            if answer.status == 422:  # no weights to draw
                answer = server.post("/encode", {"preset": preset["name"], **{k: v for k, v in fields.items() if k != "seed"}, **({"layer_type": asked} if asked else {})})
            assert answer.json()["preset"]["layer_type"] == (asked or kinds[0]), answer


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
