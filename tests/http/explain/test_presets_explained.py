"""A preset that has the config.json of a class is explained as that: the tools are asked, and each kind of layers that the preset
states has the very parameters that the preset gives. /translate answers the preset itself, so it is the other side."""


def whole(layer):
    return {**(layer.get("config") or {}), **layer.get("with_attention", {})}


def test_the_config_says_what_the_preset_says(server):
    n_asked = 0
    for preset in server.get("/presets").json()["presets"]:
        explained = server.post("/explain", {"preset": preset["name"], "readers": ["vllm"]}).json()
        config = explained["model"].get("hf_config")
        assert explained["dialect"] == "preset" and explained["model"]["preset"] == preset["name"]
        assert (config is None) == (explained["readers"] == {}) == (explained["model"]["model_type"] is None), preset["name"]
        if not config:
            continue
        n_asked += 1
        kinds = {layer["layer_type"]: whole(layer) for layer in explained["layers"] if layer["part"] in ("text", "indexer", "generator")}
        alone = [kind for kind in kinds.values() if kind.get("scheme") == preset["config"]["scheme"]]
        for layer in preset.get("layers", [{"layer_type": None}]):
            name = layer["layer_type"]
            beside = {"layer_type": name} if name else {}
            stated = whole(server.post("/translate", {"preset": preset["name"], "to": "transformers5", **beside}).json()["layers"][0])
            found = kinds.get(name) or alone[0]
            assert {key: value for key, value in stated.items() if key != "dim" or key in found} == {key: found.get(key) for key in stated if key != "dim" or key in found}, (preset["name"], name)
    assert n_asked > 100
