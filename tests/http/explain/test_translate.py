"""/translate and said: every preset in the words of every target, read back; what is lost, in NumPy. What each tool's words mean is in rows of
tests/cases/translate.jsonl, by hand from the tools' sources."""
import json
import random
import shlex

import numpy as np
import pytest

import connection
from connection import metric
from by_length import BORDERS, BY_LENGTH, lengths_of
from conftest import SANITIZED, Stopwatch, start_server
from tensors import from_raw, multipart, npy
from truth import draw

TARGETS = ["transformers4", "transformers5", "vllm", "vllm_old", "sglang", "llama.cpp", "gguf", "megatron", "transformer_engine", "mlx", "torchtune",
           "x_transformers", "rotary_embedding_torch", "exllamav2"]
READ_TEXT = ["vllm", "vllm_old", "sglang", "llama.cpp", "megatron"]
MANY_AXES = {"axes_dim", "channels", "channel_axis", "mrope_section", "axis_order", "coords", "ref_grid", "max_freq"}

COMPARED_ELSE = {"rotary_offset", "layout", "axis_scale", "axis_divisor", "axis_shift"}  # other channels, or other coordinates: a consequence is of frequencies


def translate(server, to="all", **fields):
    return server.ask("/translate", to=to, **fields).json()


def to(server, name, **fields):
    """The one entry of a target."""
    [entry] = translate(server, name, **fields)["targets"]
    return entry


def lost(entry):
    return [loss["what"] for loss in entry["loses"]]


def said(entry, **fields):
    return {"said": {"to": entry["to"], "value": entry["value"]}, **entry["needs"], **fields}


def tables(server, positions, **fields):
    return from_raw(server.ask("/encode", positions=positions, dtype="f64", format="raw", outputs=["cos", "sin"], **fields))


def frequencies(server, **fields):
    return np.array(server.ask("/encode", len=1, outputs=["inv_freq"], digits=17, **fields).json()["tensors"]["inv_freq"]["data"])


# ---- The law: what was said is read back ----


def axes_of(config):
    if "axes_dim" in config:
        return len(config["axes_dim"])
    return {"mrope": 3, "mrope_interleaved": 3, "imrope": 3, "videorope": 3, None: 1}.get(config.get("channels"), 2)


def some_positions(length, config):
    scaling = config.get("scaling") or {}
    border = scaling.get("original_max_position_embeddings" if scaling.get("type") == "longrope" else "max_position_embeddings", 0)
    lists = [sorted({0, 1, 2, 37, 4095, length // 3, length - 200, length - 1})]
    if scaling.get("type") in ("longrope", "dynamic") and border + 1 < length:
        lists += [[0, int(border) - 1], [0, int(border)]]
    return [[p for p in positions if 0 <= p < length] for positions in lists]


def check_entry(server, asked, answer, entry):
    kinds = [kind for kind in answer["layers"] if kind["part"] in ("text", "generator") and kind["same_as"] is None]
    chosen = [kind for kind in kinds if entry.get("layer_type") in (None, kind["layer_type"]) and kind["config"]["scheme"] == "rope"]
    for kind in chosen:
        several = axes_of(kind["config"])
        theirs_several = 1 if MANY_AXES & set(lost(entry)) else several
        is_part = entry["to"] in ("gguf", "llama.cpp") and kind["layer_type"] in ("visual", "text", "spatial", "temporal")  # of diffusers
        extra = {"layer_type": kind["layer_type"]} if "layer_type" not in entry and len(kinds) > 1 and not is_part else {}
        for positions in some_positions(answer["model"]["length"], kind["config"]):
            ours = tables(server, positions if several == 1 else [positions] * several, **asked, **({"layer_type": kind["layer_type"]} if "preset" in asked else {}))
            theirs = tables(server, positions if theirs_several == 1 else [positions] * theirs_several, **said(entry, **extra))
            where = (asked, kind["layer_type"], entry["to"], lost(entry), positions)
            if entry["exact"]:
                assert ours["cos"].tobytes() == theirs["cos"].tobytes() and ours["sin"].tobytes() == theirs["sin"].tobytes(), where
                if entry["to"] not in ("gguf", "llama.cpp") and "preset" in asked:  # on top of the model itself they change nothing
                    over = tables(server, positions if several == 1 else [positions] * several, **asked, layer_type=kind["layer_type"],
                                  said=said(entry)["said"])
                    assert over["cos"].tobytes() == ours["cos"].tobytes() and over["sin"].tobytes() == ours["sin"].tobytes(), where
            elif ours["cos"].shape == theirs["cos"].shape and not COMPARED_ELSE & set(lost(entry)):
                for name in ("cos", "sin"):
                    apart = np.abs(ours[name] - theirs[name]).max()
                    # Beyond 4096 P has every so many positions: between them another one may be off by a little more.
                    most = entry["consequence"][f"max_abs_{name}"]
                    assert apart <= most + 1e-8 or (answer["model"]["length"] > 20480 and most > 1 and apart <= 1.01 * most), (where, name, apart, most)


def test_every_preset_in_every_target(server):
    n_exact = 0
    for preset in server.get("/presets").json()["presets"]:
        depends = any((config.get("scaling") or {}).get("type") in ("longrope", "dynamic") for config in (
            preset.get("config") or {}, *(layer.get("config") or {} for layer in preset.get("layers") or ())))
        answer = translate(server, preset=preset["name"], **({} if depends else {"length": 6000}))
        assert list(dict.fromkeys(entry["to"] for entry in answer["targets"])) == TARGETS
        assert answer["exact"] == sum(entry["exact"] for entry in answer["targets"]) and answer["entries"] == len(answer["targets"])
        for entry in answer["targets"]:
            assert entry["exact"] == (entry["loses"] == []), entry
            assert entry["consequence"] is None or not entry["exact"]
            assert (entry["value"] is None) == (entry["text"] is None)
            if entry["value"] is not None:
                n_exact += entry["exact"]
                check_entry(server, {"preset": preset["name"]}, answer, entry)
    assert n_exact > 300


def test_drawn_configurations_in_every_target(server):
    """import(export(c)) is c, or its loss is stated: of configurations drawn from the rows of the catalogue."""
    [row] = [row for row in server.get("/schemes").json()["schemes"] if row["name"] == "rope"]
    names, rng, seen = {p["name"] for p in row["parameters"]} - {"form", "arith"}, random.Random(20261129), set()
    for _ in range(120):
        asked = {name: value for name, value in draw.encode(row, rng).items() if name in names | {"scheme"}}
        response = server.post("/translate", {"length": 300, **asked})
        if response.status == 422:  # without the sequence that it was drawn for
            continue
        answer = response.json()
        for entry in answer["targets"]:
            seen.add((entry["to"], entry["exact"]))
            if entry["value"] is not None:
                check_entry(server, asked, answer, entry)
    assert {(name, False) for name in TARGETS} <= seen and len(seen) > 22


@pytest.mark.parametrize("name", BY_LENGTH)
def test_exact_at_every_length(server, name):
    """exact: the same bytes at every length that is asked about; else every length that differs is within those of a loss, and no other is."""
    border, stretched = BORDERS[name]
    for more in ({}, {"length": border}, {"length": 3 * stretched}):
        ours = {n: tables(server, [n // 3, n - 1], hf_config=BY_LENGTH[name]) for n in lengths_of(name, **more)}
        entries = translate(server, hf_config=BY_LENGTH[name], **more)["targets"]
        assert sum(entry["exact"] for entry in entries) >= 2
        for entry in entries:
            ranges = [pair for loss in entry["loses"] for pair in loss.get("lengths", [[1, None]]) if loss["what"] != "rounding"]
            for n, numbers in ours.items():
                theirs = tables(server, [n // 3, n - 1], **said(entry))
                is_same = all(numbers[t].tobytes() == theirs[t].tobytes() for t in ("cos", "sin"))
                is_lost = any(first <= n and (last is None or n <= last) for first, last in ranges)
                where = (name, entry["to"], n, more, entry["loses"])
                assert is_same or not entry["exact"], where
                assert is_same or is_lost or lost(entry)[0] == "rounding", where
                assert not (is_same and is_lost) or n in (1, stretched), where  # vLLM's table is the one for that length


def test_text_is_read_back(server):
    for preset in ("llama-3.1", "qwen2.5-yarn-128k", "phi-3-mini-128k", "gpt-oss", "deepseek-v3", "qwen3-vl", "glm-4-9b"):
        for entry in translate(server, READ_TEXT, preset=preset)["targets"]:
            by_text = server.ask("/encode", said={"to": entry["to"], "text": entry["text"]}, **entry["needs"], len=1, data=False).json()
            by_value = server.ask("/encode", **said(entry, len=1, data=False)).json()
            assert by_text["config"] == by_value["config"], (preset, entry["to"])
            assert shlex.split(entry["text"]), "a shell splits it too"


def test_values_as_hf_config_and_gguf(server):
    for preset in ("llama-3.1", "qwen2.5-yarn-128k", "gpt-oss-20b"):
        for name in ("transformers4", "transformers5"):
            entry = to(server, name, preset=preset)
            both = [server.ask("/encode", len=1, data=False, **fields).json()["config"] for fields in (
                said(entry), {"scheme": "rope", "hf_config": entry["value"], **entry["needs"]})]
            assert both[0] == both[1], (name, entry["value"])
        entry = to(server, "gguf", preset=preset)
        both = [frequencies(server, **fields) for fields in (said(entry), {"gguf": entry["value"]})]
        assert both[0].tobytes() == both[1].tobytes()


ALTERNATING = {"model_type": "gemma3_text", "hidden_size": 256, "head_dim": 64, "num_attention_heads": 4,
               "num_hidden_layers": 4, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"] * 2}


def test_a_list_of_layers_that_slide(server):
    """gemma4 and mimo2 need it, as integers: llama.cpp refuses floats."""
    for name in ("gemma4", "mimo2"):
        entry = to(server, "gguf", hf_config=ALTERNATING, architecture=name)
        pattern = entry["value"][f"{name}.attention.sliding_window_pattern"]
        assert entry["exact"] and pattern == [1, 0, 1, 0] and all(type(mark) is int for mark in pattern)
        assert entry["value"][f"{name}.attention.sliding_window"] == 16
        for kind, base, layers in (("sliding_attention", 1e4, [0, 2]), ("full_attention", 1e6, [1, 3])):
            answer = server.ask("/encode", gguf=entry["value"], layer_type=kind, len=1, data=False).json()
            assert answer["gguf"]["layers"] == layers and (answer["config"]["base"], answer["config"]["scaling"]) == (base, {"type": "default"})


def test_lists_in_narrow_numbers_are_stated_as_they_are(server):
    """0.1f is 0.10000000149011612: what is stated gives the same numbers again."""
    request = {"scheme": "rope", "head_dim": 4, "positions": [1, 100000], "dtype": "f64"}
    body, headers = multipart(request=json.dumps(request), inv_freq=npy(np.array([1, 0.1], "f4")))
    first = server.post("/encode", body, headers).json()
    again = server.ask("/encode", **{**request, **first["config"]}).json()
    assert first["config"]["inv_freq"] == [1, float(np.float32(0.1))] and again["tensors"] == first["tensors"]
    assert first["tensors"]["cos"]["data"][1] == pytest.approx(np.cos(1e5 * np.array([1, float(np.float32(0.1))])), abs=1e-15)


LONG = {"scheme": "rope", "head_dim": 512, "rotary_dim": 256, "base": 10000.4, "length": 1 << 31,
        "scaling": {"type": "yarn", "factor": 3.3, "original_max_position_embeddings": 4097, "attention_factor": 1.71, "beta_fast": 31, "truncate": False}}


@pytest.mark.skipif(SANITIZED, reason="a measure of time")
def test_a_client_that_leaves_ends_the_measuring():
    with start_server("--workers", "1") as server:
        with connection.Client(server) as client:
            client.send(connection.post(json.dumps(LONG).encode(), "/translate"))
            assert connection.wait_until(lambda: metric(server, "posenc_busy_workers") == 1)
        watch = Stopwatch(server)
        assert connection.wait_until(lambda: metric(server, "posenc_busy_workers") + metric(server, "posenc_parked_jobs") == 0, 30)
        assert watch.seconds() < 0.6


# ---- What is lost ----


def turned(server, length, **fields):
    """cos and sin of a configuration by the formula, from its own frequencies and factor: [length, pairs] each."""
    config = server.ask("/encode", **fields, len=1, data=False).json()["config"]
    angle = np.outer(np.arange(length), frequencies(server, **fields))
    return config["attention_factor"] * np.cos(angle), config["attention_factor"] * np.sin(angle)


YARNED = {"scheme": "rope", "head_dim": 64, "layout": "half", "scaling": {"type": "yarn", "factor": 8, "original_max_position_embeddings": 512}}
APART = [YARNED, {**YARNED, "scaling": {"type": "ntk", "factor": 3}}, {**YARNED, "scaling": {"type": "proportional", "partial_rotary_factor": 0.5}},
         {"scheme": "rope", "head_dim": 128, "layout": "half", "base": 5e5, "attention_factor": 1.25},
         {"scheme": "rope", "head_dim": 32, "layout": "half", "scaling": {"type": "longrope", "factor": 4, "original_max_position_embeddings": 8192,
          "short_factor": [1 + i / 9 for i in range(16)], "long_factor": [2.0] * 16}}]


@pytest.mark.parametrize("i", range(len(APART)))
def test_consequences_are_the_largest_differences(server, i):
    """Of every target with as many pairs: NumPy looks at all pairs and positions."""
    length, n = 3000, 0
    ours = turned(server, length, **APART[i])
    for entry in server.ask("/translate", **APART[i], length=length).json()["targets"]:
        told = entry["consequence"]
        if not told or not entry["value"] or entry["to"] == "gguf":
            continue
        theirs = turned(server, length, **said(entry))
        if theirs[0].shape != ours[0].shape:
            continue
        cos, sin = abs(ours[0] - theirs[0]), abs(ours[1] - theirs[1])
        assert told["max_abs_cos"] == pytest.approx(cos.max(), abs=2e-9) and told["max_abs_sin"] == pytest.approx(sin.max(), abs=2e-9), entry["to"]
        assert cos[told["position"], told["pair"]] == pytest.approx(cos.max(), abs=1e-9), entry["to"]
        first = np.flatnonzero((np.maximum(cos, sin) > 0.01).any(axis=1))
        assert told["first"] == (first[0] if first.size else None), entry["to"]
        n += 1
    assert n
