"""/translate and said: every preset in the words of every target, read back; numbers by hand from the tools' sources, in NumPy."""
import json
import math
import shlex
import urllib.parse

import numpy as np
import pytest

import connection
from asking import given, metric, refused
from by_length import BORDERS, BY_LENGTH, lengths_of
from conftest import SANITIZED, Stopwatch, start_server
from tensors import from_raw, multipart, npy

TARGETS = ["transformers4", "transformers5", "vllm", "vllm_old", "sglang", "llama.cpp", "gguf", "megatron", "transformer_engine", "mlx", "torchtune",
           "x_transformers", "rotary_embedding_torch", "exllamav2"]
READ_TEXT = ["vllm", "vllm_old", "sglang", "llama.cpp", "megatron"]
QWEN = {"model_type": "qwen3", "hidden_size": 4096, "head_dim": 128, "num_attention_heads": 32, "num_hidden_layers": 36, "max_position_embeddings": 131072,
        "rope_theta": 1000000, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}
LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 131072,
         "rope_theta": 500000.0, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                                  "original_max_position_embeddings": 8192, "rope_type": "llama3"}}
OSS = {"model_type": "gpt_oss", "head_dim": 64, "hidden_size": 2880, "num_attention_heads": 64, "num_hidden_layers": 4, "max_position_embeddings": 131072,
       "rope_theta": 150000, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 2,
       "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": False}}
GEMMA = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024, "max_position_embeddings": 131072,
         "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}
MANY_AXES = {"axes_dim", "channels", "mrope_section", "axis_order", "coords", "ref_grid", "max_freq"}


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


def plain(base, r):
    return base ** (-np.arange(0, r, 2) / r)


def llama3(base, r, s, low, high, o):
    w = plain(base, r)
    turns = o * w / (2 * np.pi)
    t = (turns - low) / (high - low)
    return np.where(turns < low, w / s, np.where(turns > high, w, (1 - t) * w / s + t * w))


def yarn(base, r, s, o, fast=32, slow=1, truncate=True):
    low, high = (r * math.log(o / (2 * math.pi * b)) / (2 * math.log(base)) for b in (fast, slow))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    ramp = np.clip((np.arange(r // 2) - max(low, 0)) / (min(high, r - 1) - max(low, 0)), 0, 1)
    w = plain(base, r)
    return w / s * ramp + w * (1 - ramp)


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


def check_entry(server, preset, answer, entry):
    kinds = [kind for kind in answer["layers"] if kind["part"] == "text" and kind["same_as"] is None]
    chosen = [kind for kind in kinds if entry.get("layer_type") in (None, kind["layer_type"]) and kind["config"]["scheme"] == "rope"]
    for kind in chosen:
        several = axes_of(kind["config"])
        theirs_several = 1 if MANY_AXES & set(lost(entry)) else several
        extra = {"layer_type": kind["layer_type"]} if "layer_type" not in entry and len(kinds) > 1 else {}
        for positions in some_positions(answer["model"]["length"], kind["config"]):
            ours = tables(server, positions if several == 1 else [positions] * several, preset=preset, layer_type=kind["layer_type"])
            theirs = tables(server, positions if theirs_several == 1 else [positions] * theirs_several, **said(entry, **extra))
            where = (preset, kind["layer_type"], entry["to"], lost(entry), positions)
            if entry["exact"]:
                assert ours["cos"].tobytes() == theirs["cos"].tobytes() and ours["sin"].tobytes() == theirs["sin"].tobytes(), where
            elif ours["cos"].shape == theirs["cos"].shape:
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
                check_entry(server, preset["name"], answer, entry)
    assert n_exact > 300


@pytest.mark.parametrize("name", BY_LENGTH)
def test_exact_at_every_length(server, name):
    """exact: the same bytes at every length that is asked about; else every length that differs is within those of a loss, and no other is."""
    border, stretched = BORDERS[name]
    for more in ({}, {"length": border}, {"length": 3 * stretched}):
        ours = {n: tables(server, [n // 3, n - 1], hf_config=BY_LENGTH[name]) for n in lengths_of(name, **more)}
        entries = translate(server, hf_config=BY_LENGTH[name], **more)["targets"]
        assert sum(entry["exact"] for entry in entries) >= 3
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


def test_a_rule_that_is_dropped(server):
    """dynamic does nothing up to the model's length, so a tool that has no such rule differs beyond it only."""
    for target in ("llama.cpp", "megatron", "gguf", "mlx", "torchtune", "exllamav2"):
        entry = to(server, target, hf_config=BY_LENGTH["dynamic"])
        [loss] = entry["loses"]
        what = "seq_len" if target == "gguf" else "scaling"  # which has one list of divisors
        assert (loss["what"], loss["lengths"], entry["exact"]) == (what, [[2049, None]], False), target
        assert "Only sequences of 2049 positions or more differ." in loss["detail"] and "2049" in loss["detail_zh"]
        assert entry["consequence"]["max_abs_cos"] > 1.9 and entry["consequence"]["length"] > 2048
        assert to(server, target, hf_config=BY_LENGTH["dynamic"], length=2048)["exact"], target
    [loss] = to(server, "vllm", preset="phi-3-mini-128k")["loses"]
    assert (loss["what"], loss["lengths"]) == ("convention", [[4097, 4097]])


def test_text_is_read_back(server):
    for preset in ("llama-3.1", "qwen2.5-yarn", "phi-3-mini-128k", "gpt-oss", "deepseek-v3", "qwen3-vl", "glm-4"):
        if server.get(f"/presets/{preset}").status != 200:
            continue
        for entry in translate(server, READ_TEXT, preset=preset)["targets"]:
            by_text = server.ask("/encode", said={"to": entry["to"], "text": entry["text"]}, **entry["needs"], len=1, data=False).json()
            by_value = server.ask("/encode", **said(entry, len=1, data=False)).json()
            assert by_text["config"] == by_value["config"], (preset, entry["to"])
            assert shlex.split(entry["text"]), "a shell splits it too"


def test_values_as_hf_config_and_gguf(server):
    for config in (LLAMA, QWEN, OSS):
        for name in ("transformers4", "transformers5"):
            entry = to(server, name, hf_config=config)
            both = [server.ask("/encode", len=1, data=False, **fields).json()["config"] for fields in (
                said(entry), {"scheme": "rope", "hf_config": entry["value"], **entry["needs"]})]
            assert both[0] == both[1], (name, entry["value"])
        entry = to(server, "gguf", hf_config=config)
        both = [frequencies(server, layer_type="full_attention", **fields) for fields in (said(entry), {"gguf": entry["value"]})]
        assert both[0].tobytes() == both[1].tobytes()


# ---- Numbers by hand ----


def test_llama_as_gguf(server):
    entry = to(server, "gguf", hf_config=LLAMA)
    assert (entry["architecture"], entry["architecture_assumed"], entry["rows"], lost(entry)) == ("llama", False, "permuted", ["rounding"])
    divisors = np.array(entry["value"]["tensors"]["rope_freqs.weight"])
    assert divisors[:29].tolist() == [1] * 29 and divisors[35:].tolist() == [8] * 29
    assert divisors[29:35] == pytest.approx([1.2074839, 1.5534146, 2.0263133, 2.6945298, 3.6842525, 5.2573266], rel=1e-7)
    assert np.array_equal(divisors, (plain(5e5, 128) / llama3(5e5, 128, 8, 1, 4, 8192)).astype("f4").astype("f8"))
    assert entry["consequence"]["max_abs_cos"] == pytest.approx(5.4e-6, rel=0.02) and entry["consequence"]["first"] is None


def test_gpt_oss(server):
    entry = to(server, "gguf", hf_config=OSS)
    assert entry["architecture"] == "gpt-oss" and lost(entry) == ["truncate"] and entry["loses"][0]["wanted"] is False
    assert entry["consequence"]["max_abs_cos"] == pytest.approx(2.693, abs=5e-4) and entry["consequence"]["first"] == 35
    assert entry["loses"][0]["detail"] == "GGUF computes with truncate true in place of false."
    assert lost(to(server, "llama.cpp", hf_config=OSS)) == ["truncate"] and lost(to(server, "mlx", hf_config=OSS)) == ["truncate"]
    megatron = to(server, "megatron", hf_config=OSS)
    assert megatron["exact"] and megatron["value"]["no-yarn-correction-range-round-to-int"] is True
    assert np.allclose(frequencies(server, **said(megatron)), yarn(150000, 64, 32, 4096, truncate=False), rtol=1e-14)


def test_qwen_in_words(server):
    entries = {entry["to"]: entry for entry in translate(server, hf_config=QWEN)["targets"]}
    assert entries["vllm"]["text"] == ("--hf-overrides '{\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1000000.0,\"factor\":4.0,"
                                       "\"original_max_position_embeddings\":32768}}' --max-model-len 131072")
    assert entries["vllm"]["needs"] == {"head_dim": 128, "layout": "half"} and entries["vllm"]["exact"]
    assert entries["llama.cpp"]["text"] == "--rope-scaling yarn --rope-scale 4.0 --rope-freq-base 1000000.0 --yarn-orig-ctx 32768"
    assert entries["transformers4"]["value"]["rope_scaling"] == {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    assert entries["megatron"]["value"]["mscale"] == 1 and entries["megatron"]["value"]["mscale-all-dim"] == 0
    assert entries["mlx"]["text"].startswith("initialize_rope(dims=128, base=1000000.0, traditional=False, scaling_config={\"rope_type\": \"yarn\"")
    assert entries["gguf"]["architecture"] == "qwen3" and entries["gguf"]["rows"] == "as_published" and entries["gguf"]["exact"]
    for name in ("vllm", "llama.cpp", "megatron", "mlx", "transformers5"):
        assert np.allclose(frequencies(server, **said(entries[name])), yarn(1e6, 128, 4, 32768), rtol=1e-14), name
        config = server.ask("/encode", **said(entries[name], len=1, data=False)).json()["config"]
        assert config["attention_factor"] == pytest.approx(1 + 0.1 * math.log(4), rel=1e-15)
    for name in ("transformer_engine", "torchtune", "x_transformers", "exllamav2"):
        assert lost(entries[name]) == ["attention_factor", "scaling"] and entries[name]["consequence"]["first"] == 0
    assert lost(entries["rotary_embedding_torch"]) == ["attention_factor"]


def test_hand_written_words(server):
    """Words that no translation wrote, by the tools' own documentation."""
    here = {"head_dim": 128, "layout": "half"}

    def w(target, value=None, text=None, **fields):
        return frequencies(server, said={"to": target, **({"value": value} if value else {"text": text})}, **{**here, **fields})
    assert np.allclose(w("llama.cpp", text="llama-server --rope-scaling linear --rope-freq-scale 0.25 --rope-freq-base 5e5"), plain(5e5, 128) / 4, rtol=1e-15)
    assert np.allclose(w("megatron", text="--position-embedding-type rope --rotary-base 500000 --kv-channels 128 --use-rope-scaling"),
                       llama3(5e5, 128, 8, 1, 4, 8192), rtol=1e-14)
    assert np.allclose(w("megatron", {"rotary-percent": 0.5, "kv-channels": 64, "rotary-seq-len-interpolation-factor": 2}, head_dim=64), plain(1e4, 32) / 2)
    assert np.allclose(w("torchtune", {"class": "Qwen2RotaryPositionalEmbeddings", "dim": 128}), plain(1e6, 128))
    assert np.allclose(w("torchtune", {"class": "Llama3ScaledRoPE", "dim": 128}, layout="interleaved"), llama3(5e5, 128, 8, 1, 4, 8192))
    assert np.allclose(w("x_transformers", {"dim": 32, "base_rescale_factor": 4}, layout="interleaved"), plain(1e4 * 4 ** (32 / 30), 32))
    assert np.allclose(w("x_transformers", {"dim": 32, "base_rescale_factor": 4, "interpolation_factor": 2}, layout="interleaved"),
                       plain(1e4 * 4 ** (32 / 30), 32) / 2)
    assert np.allclose(w("exllamav2", {"scale_alpha_value": 2.5}), plain(1e4 * 2.5 ** (128 / 126), 128))
    assert np.array_equal(w("rotary_embedding_torch", {"dim": 8, "custom_freqs": [1, 0.5, 0.25, 0.125]}, layout="interleaved"), [1, 0.5, 0.25, 0.125])
    assert np.allclose(w("vllm", text="vllm serve Qwen/Qwen3-8B --hf-overrides '{\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":2,\"rope_theta\":5000}}'"),
                       plain(5000, 128) / 2)
    assert np.allclose(w("vllm_old", text="--rope-theta=20000 --rope_scaling \"{\\\"type\\\": \\\"linear\\\", \\\"factor\\\": 8.0}\""), plain(20000, 128) / 8)
    assert np.allclose(w("transformers5", {"head_dim": 128}), plain(1e4, 128)), "the tool's defaults"
    factor = server.ask("/encode", said={"to": "vllm", "value": {"hf_overrides": {"rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096, "attn_factor": 1.5, "attention_factor": 9.0}}}}, **here, len=1,
        data=False).json()["config"]["attention_factor"]
    assert factor == pytest.approx(1.5 * (1 + 0.1 * math.log(4)), rel=1e-15), "vLLM does not read attention_factor"
    linear = server.ask("/encode", said={"to": "llama.cpp", "value": {"rope-scaling": "yarn", "rope-scale": 4, "yarn-orig-ctx": 4096, "yarn-attn-factor": 3}},
                        **here, len=1, data=False).json()["config"]
    assert linear["attention_factor"] == pytest.approx(1 + 0.1 * math.log(4), rel=1e-15), "yarn overwrites yarn-attn-factor"


def test_numbers_that_a_tool_rounds(server):
    entry = to(server, "megatron", scheme="rope", head_dim=64, layout="half", base=10000.5)
    assert entry["value"]["rotary-base"] == 10000 or entry["value"]["rotary-base"] == 10001
    assert lost(entry) == ["base"] and entry["loses"][0]["wanted"] == 10000.5
    entry = to(server, "megatron", scheme="rope", head_dim=64, layout="half", scaling={"type": "linear", "factor": 2.5})
    assert lost(entry) == ["factor"]
    entry = to(server, "transformers4", scheme="rope", head_dim=64, layout="half", scaling={"type": "ntk", "factor": 4})
    assert lost(entry) == ["rounding"] and entry["value"]["rope_theta"] == pytest.approx(10000 * 4 ** (64 / 62), rel=1e-15)
    assert to(server, "x_transformers", scheme="rope", head_dim=64, layout="half", scaling={"type": "ntk", "factor": 4})["exact"]
    entry = to(server, "gguf", scheme="rope", head_dim=64, layout="half", base=10000.1)
    assert lost(entry) == ["rounding"] and entry["architecture_assumed"] and entry["architecture"] == "llama"


# ---- Kinds of layers, architectures ----


def test_kinds(server):
    answer = translate(server, hf_config=GEMMA)
    by = {}
    for entry in answer["targets"]:
        by.setdefault(entry["to"], []).append(entry)
    assert answer["config"] is None and len(by["transformers5"]) == len(by["gguf"]) == 1
    assert {entry["layer_type"] for entry in by["vllm"]} == {"sliding_attention", "full_attention"} and len(by["vllm"]) == 2
    [five] = by["transformers5"]
    assert five["exact"] and five["value"]["rope_parameters"]["sliding_attention"]["rope_theta"] == 10000
    assert five["value"]["layer_types"][:6] == ["sliding_attention"] * 5 + ["full_attention"] and len(five["value"]["layer_types"]) == 34
    refused(server, "/layer_type", "sliding_attention", "full_attention", len=1, **said(five))
    [file] = by["gguf"]
    assert file["exact"] and file["architecture"] == "gemma3" and file["value"]["gemma3.rope.freq_base_swa"] == 10000
    full = {entry["layer_type"]: entry for entry in by["llama.cpp"]}
    assert full["full_attention"]["exact"] and "rope-freq-base" not in full["sliding_attention"]["value"]
    [one] = translate(server, "llama.cpp", hf_config=GEMMA, layer_type="full_attention")["targets"]
    assert "layer_type" not in one


def test_architectures(server):
    assumed = {"llama": {}, "stablelm": {"rotary_dim": 32}, "chatglm": {"rotary_dim": 32, "layout": "interleaved"},
               "qwen2vl": {"channels": "mrope", "mrope_section": [8, 12, 12]}, "qwen3vl": {"channels": "mrope_interleaved", "mrope_section": [11, 11, 10]},
               "mistral3": {"scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096, "beta_fast": 16}}}
    for name, fields in assumed.items():
        entry = to(server, "gguf", **{"scheme": "rope", "head_dim": 64, "layout": "half", **fields})
        assert (entry["architecture"], entry["architecture_assumed"]) == (name, True)
        assert entry["exact"], (name, entry["loses"])
    entry = to(server, "gguf", hf_config=LLAMA, architecture="qwen2")
    assert entry["architecture"] == "qwen2" and lost(entry) == ["scaling"] and entry["rows"] == "as_published"
    assert entry["consequence"]["max_abs_cos"] == pytest.approx(1.99999995, abs=1e-8) and entry["consequence"]["first"] == 12
    answer = to(server, "gguf", gguf=to(server, "gguf", hf_config=QWEN)["value"])
    assert answer["architecture"] == "qwen3" and answer["exact"]


def test_pairs_that_stand_still(server):
    """ggml gives pairs 61 and 62 of [24, 20, 20] to an axis whose coordinate is 0: cosines at base 5e6 differ by 0.0058, sines by 0.108."""
    fields = {"scheme": "rope", "head_dim": 128, "layout": "half", "base": 5e6, "channels": "mrope_interleaved", "mrope_section": [24, 20, 20]}
    entry = to(server, "gguf", length=262144, **fields)
    assert lost(entry) == ["channels"] and entry["consequence"]["first"] == 24265
    assert (entry["consequence"]["max_abs_cos"], entry["consequence"]["max_abs_sin"]) == pytest.approx((0.0058, 0.108), rel=0.01)
    assert to(server, "transformers5", **fields)["exact"] and lost(to(server, "mlx", **fields)) == ["channels", "mrope_section"]


def test_permuted_rows(server):
    entry = to(server, "x_transformers", scheme="rope", head_dim=64, layout="half")
    assert entry["exact"] and entry["rows"] == "permuted" and entry["needs"] == {"layout": "interleaved"}
    assert to(server, "x_transformers", scheme="rope", head_dim=64, layout="interleaved")["rows"] == "as_published"


def test_other_schemes(server):
    for entry in translate(server, scheme="alibi", num_heads=8)["targets"]:
        assert entry["value"] is None and entry["text"] is None and lost(entry) == ["scheme"] and entry["consequence"] is None
    entry = to(server, "megatron", scheme="none")
    assert entry["exact"] and entry["text"] == "--position-embedding-type none"
    assert server.ask("/encode", said={"to": "megatron", "value": entry["value"]}, len=2, data=False).json()["scheme"] == "none"


# ---- Words that only some configurations need ----


YARN = {"scheme": "rope", "head_dim": 64, "layout": "half",
        "scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 4096}}


@pytest.mark.parametrize("head_dim, r", [(64, 64), (64, 16)])
def test_a_file_of_ntk(server, head_dim, r):
    """No key states the rule: freq_base is base·s^(r/(r - 2)), as f32, and cosines are off by what that rounds."""
    rope = {"scheme": "rope", "head_dim": head_dim, "rotary_dim": r, "layout": "half",
            "scaling": {"type": "ntk", "factor": 4}}
    entry = to(server, "gguf", **rope, length=6000)
    name, base = entry["architecture"], 1e4 * 4 ** (r / (r - 2))
    assert (name, lost(entry)) == ("llama" if r == 64 else "stablelm", ["rounding"])
    assert entry["value"][f"{name}.rope.freq_base"] == float(np.float32(base))
    w = frequencies(server, **said(entry))
    assert np.allclose(w, plain(float(np.float32(base)), r), rtol=1e-14, atol=1e-16)
    p = np.arange(6000)[:, None]
    apart = np.abs(np.cos(p * plain(base, r)) - np.cos(p * w)).max()
    assert entry["consequence"]["max_abs_cos"] == pytest.approx(apart, abs=2e-9)
    assert entry["consequence"]["first"] is None


def test_the_ends_of_the_ramp(server):
    rope = {**YARN, "scaling": {**YARN["scaling"], "beta_fast": 16, "beta_slow": 2}}
    names = {"llama.cpp": "yarn-beta-{}", "megatron": "yarn-beta-{}", "gguf": "mistral3.rope.scaling.yarn_beta_{}"}
    objects = ["transformers4", "transformers5", "vllm", "vllm_old", "sglang", "mlx"]
    for entry in translate(server, [*objects, *names], **rope)["targets"]:
        text = json.dumps(entry["value"])
        for end, beta in (("fast", 16.0), ("slow", 2.0)):
            assert f'"{names.get(entry["to"], "beta_{}").format(end)}": {beta}' in text, entry
        w = frequencies(server, **said(entry))
        assert entry["exact"] and np.allclose(w, yarn(1e4, 64, 4, 4096, 16, 2), rtol=1e-14), entry["to"]


def test_half_of_the_ramp(server):
    """ext 0.5: w/s + (w - w/s)·0.5·(1 - ramp), said by a flag, by divisors, or not at all."""
    rope = {**YARN, "scaling": {**YARN["scaling"], "extrapolation_factor": 0.5}}
    w = (plain(1e4, 64) / 4 + yarn(1e4, 64, 4, 4096)) / 2
    flag, file, vllm = translate(server, ["llama.cpp", "gguf", "vllm"], **rope)["targets"]
    assert flag["exact"] and flag["value"]["yarn-ext-factor"] == 0.5
    assert np.allclose(frequencies(server, **said(flag)), w, rtol=1e-14)
    assert lost(file) == ["rounding"]
    assert np.array_equal(file["value"]["tensors"]["rope_freqs.weight"], (plain(1e4, 64) / w).astype("f4").astype("f8"))
    assert lost(vllm) == ["extrapolation_factor"]


def test_a_factor_beside_two_lists(server):
    """attention_factor 2 is not longrope's own sqrt(1 + ln 4/ln 64); vLLM has one factor for each list."""
    rope = {"scheme": "rope", "head_dim": 8, "layout": "half", "scaling": {
        "type": "longrope", "factor": 4, "original_max_position_embeddings": 64, "short_factor": [1, 1.5, 2, 3],
        "long_factor": [1, 4, 8, 16], "attention_factor": 2}}
    four, five, vllm = translate(server, ["transformers4", "transformers5", "vllm"], **rope)["targets"]
    assert four["exact"] and five["exact"] and four["value"]["rope_scaling"]["attention_factor"] == 2
    assert five["value"]["rope_parameters"]["attention_factor"] == 2
    assert four["value"]["original_max_position_embeddings"] == 64
    words = vllm["value"]["hf_overrides"]["rope_parameters"]
    assert (words["short_mscale"], words["long_mscale"]) == (2, 2) and "attention_factor" not in words


ALTERNATING = {"model_type": "gemma3_text", "hidden_size": 256, "head_dim": 64, "num_attention_heads": 4,
               "num_hidden_layers": 4, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"] * 2}


def test_a_list_of_layers_that_slide(server):
    """gemma4 and mimo2 need it, as integers: llama.cpp refuses floats. Other architectures have other layers."""
    for name in ("gemma4", "mimo2"):
        entry = to(server, "gguf", hf_config=ALTERNATING, architecture=name)
        pattern = entry["value"][f"{name}.attention.sliding_window_pattern"]
        assert entry["exact"] and pattern == [1, 0, 1, 0] and all(type(mark) is int for mark in pattern)
        assert entry["value"][f"{name}.attention.sliding_window"] == 16
        for kind, base, layers in (("sliding_attention", 1e4, [0, 2]), ("full_attention", 1e6, [1, 3])):
            assert np.allclose(frequencies(server, gguf=entry["value"], layer_type=kind), plain(base, 64), rtol=1e-15)
            answer = server.ask("/encode", gguf=entry["value"], layer_type=kind, len=1, data=False).json()
            assert answer["gguf"]["layers"] == layers
    entry = to(server, "gguf", hf_config=ALTERNATING, architecture="llama4")
    assert lost(entry) == ["scheme", "layers"], "its full layers do not turn, and only layer 3 is one"
    assert (entry["loses"][0]["wanted"], entry["loses"][0]["gets"]) == ("rope", "none")
    entry = to(server, "gguf", hf_config=ALTERNATING, architecture="step35")
    assert entry["value"] is None and "at most the width of a head" in entry["loses"][0]["detail"], "it turns half"
    axes = {"channels": "mrope", "mrope_section": [8, 12, 12]}
    sections = to(server, "gguf", scheme="rope", head_dim=64, layout="half", **axes)
    assert sections["exact"] and "[8, 12, 12, 0]" in json.dumps(sections["value"])


V4 = {"model_type": "deepseek_v4", "hidden_size": 512, "num_attention_heads": 4, "head_dim": 64, "qk_rope_head_dim": 16,
      "num_hidden_layers": 5, "sliding_window": 16, "max_position_embeddings": 8192,
      "compress_ratios": [0, 4, 128, 0, 4],
      "rope_theta": 20000.0, "compress_rope_theta": 160000.0,
      "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}}


def test_compressed_layers(server):
    """DeepSeek V4: layers of ratio 0 have a base of their own, and no rule; yarn of the others no factor on cos."""
    slides, sparse, heavy = (f"{name}_attention" for name in ("sliding", "compressed_sparse", "heavily_compressed"))
    file, five = translate(server, ["gguf", "transformers5"], hf_config=V4)["targets"]
    assert file["exact"] and file["architecture"] == "deepseek4"
    own = {name.removeprefix("deepseek4."): value for name, value in file["value"].items()}
    assert own["attention.compress_ratios"] == [0, 4, 128, 0, 4] and own["block_count"] == 5
    assert (own["rope.freq_base"], own["attention.compress_rope_freq_base"]) == (20000, 160000)
    assert "rope.scaling.attn_factor" not in own
    again = to(server, "gguf", gguf=file["value"])
    assert again["exact"] and again["value"]["deepseek4.attention.compress_ratios"] == [0, 4, 4, 0, 4]
    assert five["exact"] and five["value"]["layer_types"] == [slides, sparse, heavy, slides, sparse]
    assert set(five["value"]["rope_parameters"]) == {slides, sparse, heavy}
    tool = server.ask("/explain", hf_config=V4).json()["readers"]["llama.cpp"]
    assert tool["agrees"] and [config["base"] for config in tool["configs"]] == [20000, 160000, 160000]
    for kind, of_file, w in ((slides, "main", plain(2e4, 16)), (sparse, "compress", yarn(160000, 16, 4, 2048)),
                             (heavy, "compress", yarn(160000, 16, 4, 2048))):
        for fields in ({"gguf": file["value"], "layer_type": of_file}, said(five, layer_type=kind)):
            assert np.allclose(frequencies(server, **fields), w, rtol=1e-14, atol=1e-16)
            answer = server.ask("/encode", **fields, len=1, data=False).json()
            assert (answer["config"]["attention_factor"], answer["config"]["rotary_offset"]) == (1, 48)
        one = server.ask("/explain", hf_config=V4, layer_type=kind).json()["readers"]["llama.cpp"]
        assert one["agrees"] and len(one["configs"]) == 1


def test_an_architecture_for_the_layers_that_turn(server):
    """exaone_moe's full layers have no positions, and are the first: the yarn of the others decides."""
    config = {"model_type": "exaone_moe", "num_hidden_layers": 4, "sliding_window": 16,
              "layer_types": ["full_attention", "sliding_attention"] * 2,
              "rope_parameters": {**QWEN["rope_scaling"], "rope_theta": 1e4, "beta_fast": 16}}
    entry = to(server, "gguf", hf_config=config)
    assert (entry["architecture"], entry["architecture_assumed"]) == ("mistral3", True)
    assert entry["value"]["mistral3.rope.scaling.yarn_beta_fast"] == 16
    assert lost(entry) == ["scheme", "layers"] and entry["loses"][0]["layer_type"] == "full_attention"


def test_layers_that_are_no_attention(server):
    """They have no positions, which Megatron states of a named kind; transformers 5 lists no layers beside them."""
    config = {**ALTERNATING, "model_type": "exaone4", "layer_types": ["linear_attention", "full_attention"] * 2}
    kind = {"hf_config": config, "layer_type": "linear_attention"}
    megatron, file, vllm = translate(server, ["megatron", "gguf", "vllm"], **kind)["targets"]
    assert megatron["exact"] and megatron["value"] == {"position-embedding-type": "none"}
    assert (file["value"], lost(file), vllm["value"], lost(vllm)) == (None, ["layers"], None, ["scheme"])
    explained = server.ask("/explain", **kind).json()
    [layer] = explained["layers"]
    assert (layer["layer_type"], layer["layers"], layer["config"]["scheme"]) == ("linear_attention", [0, 2], "none")
    assert all(tool["agrees"] for tool in explained["readers"].values())
    kinds = ["sliding_attention", "linear_attention", "full_attention", "linear_attention"]
    mixed = {**ALTERNATING, "layer_types": kinds}
    five = to(server, "transformers5", hf_config=mixed)
    assert five["exact"] and "layer_types" not in five["value"]
    for name, base in (("sliding_attention", 1e4), ("full_attention", 1e6)):
        assert np.allclose(frequencies(server, **said(five, layer_type=name)), plain(base, 64), rtol=1e-14, atol=1e-16)


def test_a_file_of_two_layers(server):
    """gemma3's period is 6 unless the file states another: of two layers none has full attention, if it is not the last of a period."""
    config = {**ALTERNATING, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}
    entry = to(server, "gguf", hf_config=config)
    assert entry["exact"] and entry["value"]["gemma3.attention.sliding_window_pattern"] == 2
    assert server.ask("/encode", gguf=entry["value"], layer_type="full_attention", len=1, data=False).json()["gguf"]["layers"] == [1]
    entry = to(server, "gguf", hf_config={**config, "layer_types": config["layer_types"][::-1]})
    assert lost(entry) == ["base", "layers"] and (entry["loses"][0]["wanted"], entry["loses"][0]["gets"]) == (1e6, 1e4)
    assert entry["loses"][0]["layer_type"] == "full_attention"


def test_the_first_position_that_is_not_found(server):
    """Factors 1.009 and 1 differ by 0.009: nothing shows until angles do by 0.0043, which is beyond 2^20 positions."""
    rope = {"scheme": "rope", "head_dim": 4, "layout": "half", "base": 10000.004, "attention_factor": 1.009}
    w, v = 10000.004 ** -0.5, 10000 ** -0.5
    begin = math.floor((0.01 - 0.009) / (1.009 * abs(w - v)))
    p = np.arange(begin + (1 << 20))
    assert max(np.abs(1.009 * f(p * w) - f(p * v)).max() for f in (np.cos, np.sin)) < 0.01
    entry = to(server, "megatron", length=4000000, **rope)
    assert lost(entry) == ["base", "attention_factor"]
    assert (entry["consequence"]["first"], entry["consequence"]["first_after"]) == (None, begin + (1 << 20))
    assert entry["consequence"]["max_abs_cos"] > 0.01


def test_a_layout_that_a_tool_has_not(server):
    """Halves of each axis, and V-JEPA 2's pairs, are neither neighbours nor halves of the head."""
    rows = (("half_per_axis", ["layout"]), ("vjepa2", ["layout"]), ("interleaved_to_half", []), ("half", []))
    for layout, losses in rows:
        for name in ("x_transformers", "gguf"):
            entry = to(server, name, scheme="rope", head_dim=8, layout=layout)
            assert lost(entry) == losses, (layout, name)
            assert not losses or (entry["loses"][0]["wanted"], entry["loses"][0]["gets"]) == (layout, "interleaved")


def test_lengths_that_are_no_integers(server):
    """The objects of transformers have them; flags do not, and say so."""
    rope = {**YARN, "scaling": {**YARN["scaling"], "original_max_position_embeddings": 4096.5}}
    five, flag = translate(server, ["transformers5", "llama.cpp"], **rope)["targets"]
    assert five["exact"] and five["value"]["rope_parameters"]["original_max_position_embeddings"] == 4096.5
    assert flag["value"] is None and "yarn-orig-ctx is 4096.5" in flag["loses"][0]["detail"]


def test_a_file_without_full_attention(server):
    """gemma3 takes 10000 for layers that slide unless a key of theirs says otherwise."""
    slides = {**ALTERNATING, "layer_types": ["sliding_attention"] * 4, "rope_local_base_freq": 20000.0}
    entry = to(server, "gguf", hf_config=slides)
    assert entry["exact"] and entry["value"]["gemma3.rope.freq_base_swa"] == 20000
    w = frequencies(server, gguf=entry["value"], layer_type="sliding_attention")
    assert np.allclose(w, plain(2e4, 64), rtol=1e-14)


SMOL = {"model_type": "smollm3", "hidden_size": 256, "num_attention_heads": 4, "rope_theta": 5000000.0}


@pytest.mark.parametrize("turns, period, layers", [([1, 1, 1, 0] * 2, 4, []), ([1, 1, 0] * 3, 3, ["layers"]),
                                                  ([1, 1, 1, 0, 0, 1, 1, 1], None, ["layers"]),
                                                  ([1, 1, 1, 0, 1, 1, 1, 1], None, ["layers"])])
def test_every_so_many_layers_without_positions(server, turns, period, layers):
    """Megatron's no-rope-freq N: one layer without after N - 1 that turn. llama.cpp's smollm3 has every fourth."""
    config = {**SMOL, "num_hidden_layers": len(turns), "no_rope_layers": turns}
    [full, still, file] = translate(server, ["megatron", "gguf"], hf_config=config)["targets"]
    assert full["value"].get("no-rope-freq") == period and still["value"] == {"position-embedding-type": "none"}
    assert full["exact"] and still["exact"] and lost(file) == layers


# ---- said as a dialect ----


def test_said_elsewhere(server):
    words = {"said": {"to": "llama.cpp", "value": {"rope-freq-base": 500000}}, "head_dim": 64, "layout": "half"}
    plainly = {"scheme": "rope", "base": 500000, "head_dim": 64, "layout": "half"}
    q = [[1.0] * 64]
    assert server.ask("/rotate", q=q, **words).json()["tensors"] == server.ask("/rotate", q=q, **plainly).json()["tensors"]
    assert '"verdict":"same"' in server.ask("/analyze", configs=[words, plainly], len=8, metrics=["difference"]).body.decode().replace(" ", "")
    cos, sin = (server.ask("/encode", len=4, outputs=[name], **plainly).json()["tensors"][name]["data"] for name in ("cos", "sin"))
    assert server.ask("/check", cos=cos, sin=sin, **words).json()["fits"] is True
    explained = server.ask("/explain", **words).json()
    assert explained["dialect"] == "said" and explained["readers"] == {} and explained["layers"][0]["config"]["base"] == 500000
    assert to(server, "vllm", **words)["value"]["hf_overrides"]["rope_parameters"]["rope_theta"] == 500000
    query = urllib.parse.quote(json.dumps({"to": "x_transformers", "value": {"dim": 64}}))
    assert server.get(f"/encode?said={query}&len=2&data=false").json()["config"]["layout"] == "interleaved"


def test_lists_in_narrow_numbers_are_stated_as_they_are(server):
    """0.1f is 0.10000000149011612: what is stated gives the same numbers again."""
    request = {"scheme": "rope", "head_dim": 4, "positions": [1, 100000], "dtype": "f64"}
    body, headers = multipart(request=json.dumps(request), inv_freq=npy(np.array([1, 0.1], "f4")))
    first = server.post("/encode", body, headers).json()
    again = server.ask("/encode", **{**request, **first["config"]}).json()
    assert first["config"]["inv_freq"] == [1, float(np.float32(0.1))] and again["tensors"] == first["tensors"]
    assert first["tensors"]["cos"]["data"][1] == pytest.approx(np.cos(1e5 * np.array([1, float(np.float32(0.1))])), abs=1e-15)


def test_what_stands_for_ntk_is_rounded(server):
    """base·s^(d/(d-2)) is no double: in f64 the tables differ, if only in their last bits."""
    rope = {"scheme": "rope", "head_dim": 8, "layout": "half", "base": 10000.0, "scaling": {"type": "ntk", "factor": 3}}
    for name in ("vllm", "transformers4", "transformers5"):
        entry = to(server, name, **rope, length=131072)
        assert lost(entry) == ["rounding"] and not entry["exact"] and entry["consequence"]["max_abs_cos"] < 1e-9


def test_a_file_of_one_kind_of_layers(server):
    entry = to(server, "gguf", hf_config=GEMMA, layer_type="sliding_attention")
    assert entry["value"] is None and lost(entry) == ["layers"] and "leave layer_type out" in entry["loses"][0]["detail"]
    assert to(server, "gguf", hf_config=GEMMA)["value"]["gemma3.block_count"] == 34


def test_one_list_where_there_are_two(server):
    longrope = {"rope_type": "longrope", "factor": 4.0, "short_factor": [1, 1, 4, 54], "long_factor": [26, 1, 1, 1], "attention_factor": 1}
    entry = to(server, "rotary_embedding_torch", hf_config={"model_type": "granite", "head_dim": 8, "rope_scaling": longrope}, length=5000)
    assert lost(entry)[-1] == "seq_len" and "has one list" in entry["loses"][-1]["detail"]
    assert "nan" not in json.dumps(entry)


def test_a_target_named_often_is_there_once(server):
    names = ["vllm"] * 5000 + ["mlx"] + ["all"] * 5000
    assert [entry["to"] for entry in translate(server, names, scheme="rope", head_dim=8)["targets"]] == ["vllm", "mlx", *(one for one in TARGETS if one not in ("vllm", "mlx"))]


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


def test_form_and_tags(server):
    answer = server.post("/translate", {"preset": "llama-3.1", "to": ["vllm", "llama.cpp"]}, headers={"Accept": "text/plain"})
    lines = answer.body.decode().splitlines()
    assert answer.status == 200 and lines[0] == "vllm:" and lines[1].startswith("--hf-overrides '{")
    assert lines[2:4] == ["llama.cpp:", "--rope-scaling none --rope-freq-base 500000.0"] and lines[4].startswith("  llama.cpp cannot state the scaling llama3")
    got = server.get("/translate?preset=llama-3.1&to=vllm,gguf")
    assert got.status == 200 and [entry["to"] for entry in got.json()["targets"]] == ["vllm", "gguf"]
    assert server.get("/translate?preset=llama-3.1&to=vllm,gguf", headers={"If-None-Match": got.headers["ETag"]}).status == 304
    assert [entry["architecture"] for entry in server.get("/translate?preset=llama-3.1&to=gguf&architecture=qwen2").json()["targets"]] == ["qwen2"]
    assert [entry["to"] for entry in translate(server, ["mlx", "vllm", "mlx"], preset="llama-3.1")["targets"]] == ["mlx", "vllm"]
    zh = server.post("/translate", {"preset": "llama-3.1", "to": "llama.cpp", "lang": "zh"}).json()
    assert zh["targets"][0]["loses"][0]["detail"] == zh["targets"][0]["loses"][0]["detail_zh"] == "llama.cpp 无法表示缩放 llama3；它按 default 计算。"


def test_catalogue(server):
    rows = {row["name"]: row for row in server.get("/schemes").json()["targets"]}
    assert list(rows) == TARGETS and all(row["source"] and row["summary"] and row["certainty"] for row in rows.values())
    assert [name for name, row in rows.items() if row["reads_text"]] == READ_TEXT and rows["sglang"]["certainty"] == "unverified"
    members = {row["name"]: row.get("default") for row in rows["megatron"]["members"]}
    assert members["rotary-base"] == 10000 and members["rope-scaling-factor"] == 8.0 and members["mscale"] == 1.0 and members["kv-channels"] is None


# ---- Refusals ----


def test_refusals(server):
    def no(pointers, *words, **fields):
        refused(server, pointers, *words, path="/translate", **given(**{"preset": "llama-3.1", **fields}))
    no("/to", 'nearest: "vllm"', to="vlm")
    no("/to", "names", to=4)
    no("/to", "empty", to=[])
    no("/architecture", "nearest", to="gguf", architecture="lama")
    no("/architecture", "no rotary", to="gguf", architecture="bloom")
    no("/architecture", "not a string", to="gguf", architecture=4)
    no("/layer_type", "not a string", layer_type=4)
    parameters = {"sliding_attention": {"rope_theta": 1e4}, "full_attention": {"rope_type": "ntk", "factor": 2}}
    no("/hf_config/rope_parameters/full_attention/rope_type", "proportional", preset=None,
       hf_config={**ALTERNATING, "rope_parameters": parameters})
    no("/len", "no sequence", len=4)
    no("/length", "", length=0)
    no("/layer_type", "", layer_type="sliding_attention")
    assert server.post("/translate", {"preset": "llama-3.1", "format": "npy"}).status == 406


def test_said_refused(server):
    def no(pointers, *words, said, **fields):
        refused(server, pointers, *words, said=said, **{"head_dim": 64, "layout": "half", "len": 1, **fields})
    no("/said", "not an object", said=4)
    for wrong in (4, "a", [1], ["a"], [[{}]], {"shape": [2, 2], "seed": 1}):
        for path in ("/explain", "/translate"):
            refused(server, "/said", "not an object", path=path, said=wrong)
    assert server.get("/explain?said=%5B%5B1%5D%5D").status == 422
    no("/said/to", "missing", said={"value": {}})
    no("/said/to", 'nearest: "megatron"', said={"to": "megatrom", "value": {}})
    no("/said/to", 'nearest: "megatron"', said={"to": "megatrom", "text": "--a b"})
    no("/said/value", "missing", said={"to": "megatron"})
    no("/said/words", "no member", said={"to": "megatron", "value": {}, "words": 1})
    no("/said/value/rotary-bas", 'rotary-base', said={"to": "megatron", "value": {"rotary-bas": 1}})
    no("/said/value/rotary-base", "integer", said={"to": "megatron", "value": {"rotary-base": 1.5}})
    no("/said/value/position-embedding-type", "rope", said={"to": "megatron", "value": {"position-embedding-type": "mrope"}})
    no("/said/value/rope-freq-scale", "inverse", said={"to": "llama.cpp", "value": {"rope-scaling": "linear", "rope-scale": 2, "rope-freq-scale": 0.5}})
    no("/said/value/yarn-orig-ctx", "missing", said={"to": "llama.cpp", "value": {"rope-scaling": "yarn", "rope-scale": 2}})
    no("/said/value/hf_overrides", "not an object", said={"to": "vllm", "value": {"hf_overrides": {"rope_parameters": 4}}})
    no("/said/value/hf_overrides", "rope_parameters", said={"to": "vllm", "value": {"hf_overrides": {"model": 4}}})
    no("/said/value/rope_parameters/rope_type", "proportional", said={"to": "transformers5", "value": {"rope_parameters": {"rope_type": "ntk"}}})
    no("/said/value/rope_parameters/thta", "member", said={"to": "transformers5", "value": {"rope_parameters": {"thta": 4}}})
    no("/said/value/general.architecture", "", said={"to": "gguf", "value": {"llama.rope.freq_base": 1e4}})
    no("/said/value/scale_factor", "", said={"to": "torchtune", "value": {"class": "RotaryPositionalEmbeddings", "scale_factor": 8}})
    no("/head_dim", "do not state", said={"to": "llama.cpp", "value": {"rope-freq-base": 5000}}, head_dim=None)
    no("/layout", "layout", said={"to": "llama.cpp", "value": {"rope-freq-base": 5000}}, layout=None)
    no("/layer_type", "not used", said={"to": "llama.cpp", "value": {}}, layer_type="full_attention")
    no(("/said", "/preset"), "exclude", said={"to": "llama.cpp", "value": {}}, preset="llama-3.1")
    no("/scheme", "alibi", said={"to": "llama.cpp", "value": {"rope-freq-base": 5000}}, scheme="alibi")


@pytest.mark.parametrize("target, member, value, sentence", [
    ("megatron", "rotary-base", 1.5, "is 1.5; allowed: an integer from 0 to 1000000000000"),
    ("megatron", "rotary-percent", 1.5, "is 1.5; allowed: a number from 0 to 1"),
    ("megatron", "rotary-interleaved", 1.5, "is 1.5; allowed: true or false"),
    ("megatron", "position-embedding-type", "x", 'is "x"; allowed: "rope", "yarn", "none"'),
    ("rotary_embedding_torch", "custom_freqs", [], "is empty; allowed: at least one number"),
])
def test_the_sentence_of_a_member(server, target, member, value, sentence):
    """Members have no texts of their own to be quoted."""
    answer = server.post("/encode", {"said": {"to": target, "value": {member: value}}, "len": 1})
    assert answer.status == 422 and answer.json()["detail"] == f"{member} {sentence}"


def test_members_refused(server):
    def no(pointer, word, target, value, **fields):
        rest = {"head_dim": 64, "layout": "half", "len": 1, **fields}
        refused(server, pointer, word, said={"to": target, "value": value}, **given(**rest))
    length, original = "max_position_embeddings", "original_max_position_embeddings"
    for member, value, word in (("rope_theta", "x", "a number"), (length, "x", "a number"), (original, "x", "a number"),
                                ("rope_type", 4, "a string"), ("type", 4, "a string")):
        rope = {"rope_type": "yarn", "factor": 4, member: value}
        if member == "type":
            del rope["rope_type"]
        no(f"/said/value/rope_parameters/{member}", word, "transformers5", {"rope_parameters": rope})
    many = {f"m{i}": 1 for i in range(25)}
    no("/said/value/rope_parameters", "at most 24", "transformers5", {"rope_parameters": many})
    no("/said/value", "not an object", "transformers5", 4)
    no("/said/value/json_model_override_args", "not an object", "sglang", {"json_model_override_args": 4})
    no("/said/value/json_model_override_args/max_position_embeddings", "not a number", "sglang",
       {"json_model_override_args": {"max_position_embeddings": "x"}})
    no("/head_dim", "exponent", "exllamav2", {"scale_pos_emb": 2, "scale_alpha_value": 2}, head_dim=None)
    alone = {"head_dim": None, "layout": None}
    no("/said/value/interpolate_factor", "divide", "rotary_embedding_torch",
       {"dim": 4, "custom_freqs": [1, 0.5], "interpolate_factor": 2}, **alone)
    two = {"kv-channels": 64, "use-rope-scaling": True, "rotary-seq-len-interpolation-factor": 2}
    no("/said/value/use-rope-scaling", "two rules", "megatron", two, **alone)
    yarn = {"rope-scaling": "yarn", "rope-scale": 4, "yarn-orig-ctx": 4096}
    no("/said/value/yarn-beta-fast", "by which llama.cpp divides", "llama.cpp", {**yarn, "yarn-beta-fast": 0})
    no("/said/value/yarn-beta-slow", "by which Megatron-LM divides", "megatron",
       {"position-embedding-type": "yarn", "yarn-beta-slow": 0}, layout=None)
    kinds = {"sliding_attention": {"rope_theta": 1e4}, "full_attention": {"rope_theta": 1e6}}
    no("/layer_type", "it has: sliding_attention, full_attention", "transformers5", {"rope_parameters": kinds},
       layer_type="chunked_attention")


def test_numbers_that_tools_derive(server):
    """transformers takes the model's length where yarn states none; exllamav2 multiplies by both of its factors."""
    here = {"head_dim": 64, "layout": "half"}
    value = {"rope_parameters": {"rope_type": "yarn", "factor": 4}, "max_position_embeddings": 4096}
    w = frequencies(server, said={"to": "transformers5", "value": value}, **here)
    assert np.allclose(w, yarn(1e4, 64, 4, 4096), rtol=1e-14)
    w = frequencies(server, said={"to": "exllamav2", "value": {"scale_pos_emb": 2, "scale_alpha_value": 3}}, **here)
    assert np.allclose(w, plain(1e4 * 3 ** (64 / 62), 64) / 2, rtol=1e-14)


def test_text_refused(server):
    def no(text, *words, to="llama.cpp", status=422):
        response = server.post("/encode", {"said": {"to": to, "text": text}, "head_dim": 64, "layout": "half", "len": 1})
        assert response.status == status and response.json()["pointer"].startswith("/said"), response
        for word in words:
            assert word in response.json()["detail"], response.json()["detail"]
    no("--rope-scal linear", 'nearest: "--rope-scal')
    no("--rope-scaling", "no value")
    no("--rope-scaling yarn --rope-scaling none", "twice")
    no("--rope-scaling 'yarn", "quote")
    no('--rope-scaling "yarn', "quote")
    no("--rope-freq-base $BASE", "single quotes")
    no('--rope-freq-base "`date`"', "single quotes")
    no("--rope-scaling none | tee log", "ends")
    no("--rope-scaling none --rope-freq-bas 5000", 'nearest: "--rope-freq-base"')
    no("--rope-freq-baze 5000", 'nearest: "--rope-freq-base"')
    no("--rope-theta 5000", "flag of vllm_old, not of llama.cpp")
    no("serve NAME --rope-scaling '{}'", "--rope-scaling is a flag of vllm_old, not of vllm", to="vllm")
    no("--rope-scale four", "rope-scale")
    no("--hf-overrides '{\"rope_parameters\":'", "not JSON", to="vllm", status=400)
    no("--dim 64", "value", to="mlx")
    no(4, "not a string")
    no("--rope-scale " + "4" * 65536, "at most 65536", status=413)
    both = server.post("/encode", {"said": {"to": "llama.cpp", "text": "", "value": {}}, "head_dim": 64, "layout": "half", "len": 1})
    assert both.status == 422 and "give one" in both.json()["detail"]
    fine = {"said": {"to": "llama.cpp", "text": "llama-cli \\\n  --rope-freq-base 5000 # a comment\n"}, "head_dim": 64, "layout": "half"}
    answer = server.ask("/encode", **fine, len=1, data=False).json()
    assert answer["config"]["base"] == 5000 and "said" not in answer


LINES = {
    "llama.cpp": ("./llama-server -m 'models/a b.gguf' -c 131072 -ngl -1 --host 0.0.0.0 --rope-scaling yarn --rope-scale 4 --jinja "
                  "--rope-freq-base=1000000 --yarn-orig-ctx 32768 -fa on --temp=-0.5 extra",
                  ["-m", "-c", "-ngl", "--host", "--jinja", "-fa", "--temp", "extra"], {"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}),
    "vllm_old": ("VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --rope-scaling '{\"rope_type\":\"yarn\",\"factor\":4.0,"
                 "\"original_max_position_embeddings\":32768}' --rope-theta 1000000 --max-num-seqs 4 --enforce-eager",
                 ["--tensor-parallel-size", "--max-num-seqs", "--enforce-eager"], {"type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}),
    "megatron": ("torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --position-embedding-type rope --rotary-base 1000000 "
                 "--apply-rope-fusion --kv-channels 128 --no-rope-fusion --bf16",
                 ["--nproc-per-node", "--num-layers", "--hidden-size", "--apply-rope-fusion", "--no-rope-fusion", "--bf16"], {"type": "default"}),
}


@pytest.mark.parametrize("to", LINES)
def test_a_whole_command_line(server, to):
    text, ignored, scaling = LINES[to]
    fields = {"said": {"to": to, "text": text}, "head_dim": 128, "layout": "half"}
    answer = server.ask("/encode", **fields, len=1, data=False).json()
    assert answer["said"] == {"to": to, "ignored": ignored}
    assert answer["config"]["base"] == 1000000 and scaling.items() <= answer["config"]["scaling"].items()
    plain = {name: value for name, value in answer["config"].items()}
    again = frequencies(server, said=fields["said"], head_dim=128, layout="half")
    assert np.array_equal(again, frequencies(server, **plain))
    for path in ("/explain", "/translate"):
        assert server.ask(path, **fields).json()["model"]["ignored"] == ignored
    echoed = server.ask("/encode", **{**fields, "said": {"to": "llama.cpp", "value": {"rope-freq-base": 5000}, "ignored": ["-m"]}}, len=1, data=False).json()
    assert echoed["said"] == {"to": "llama.cpp", "ignored": ["-m"]}
    wrong = server.post("/encode", {**fields, "said": {"to": "llama.cpp", "value": {}, "ignored": [4]}, "len": 1})
    assert wrong.status == 422 and wrong.json()["pointer"] == "/said/ignored"


@pytest.mark.parametrize("to, member, said", [
    ("llama.cpp", "rope-freq-base", "hello"), ("llama.cpp", "yarn-orig-ctx", "llama-server -m model.gguf -c 4096 --temp 0.5"), ("llama.cpp", "rope-scale", ""),
    ("llama.cpp", "rope-scaling", "llama_model_loader: - kv 17: llama.rope.freq_base f32 = 500000.000000"),
    ("vllm", "hf_overrides", "vllm serve Qwen/Qwen3-8B --max-model-len 4096"), ("megatron", "rotary-base", "torchrun pretrain_gpt.py --num-layers 32"),
    ("transformers5", "rope_parameters", {}), ("transformers5", "rope_parameters", {"rope_parameters": {"rope_theta": None}}), ("vllm", "hf_overrides", {"hf_overrides": {}}),
    ("mlx", "dims", {}), ("transformers4", "rope_theta", {"max_position_embeddings": 4096, "rope_scaling": None}), ("megatron", "rotary-base", "--kv-channels 64"), ("x_transformers", "interpolation_factor", {"dim": None}), ("exllamav2", "rotary_embedding_base", {})])
def test_words_of_which_none_is_the_tools_are_no_defaults(server, to, member, said):
    for path in ("/encode", "/explain", "/translate"):
        sequence = {"len": 1} if path == "/encode" else {}
        refused(server, "/said", "no word of", member, path=path, said={"to": to, "text" if isinstance(said, str) else "value": said}, head_dim=64, layout="half", **sequence)


@pytest.mark.parametrize("text", ["--rope-scale 4", "--rope-freq-scale 0.25", "--rope-scaling linear --rope-scale 4"])
def test_a_factor_alone_is_linear_in_llama_cpp(server, text):
    w = frequencies(server, said={"to": "llama.cpp", "text": text}, head_dim=64, layout="half")
    assert np.allclose(w, 1e4 ** (-np.arange(0, 64, 2) / 64) / 4, rtol=1e-6)


def test_what_is_ignored_is_bounded(server):
    text = " ".join(f"--other-{i} {'x' * 9}" for i in range(90)) + " --" + "é" * 90 + " --rope-freq-base 5000 --other-1"
    answer = server.ask("/encode", said={"to": "llama.cpp", "text": text}, head_dim=64, layout="half", len=1, data=False).json()
    assert answer["said"]["ignored"] == [f"--other-{i}" for i in range(64)] and answer["config"]["base"] == 5000
    answer = server.ask("/encode", said={"to": "llama.cpp", "text": "--" + "é" * 90 + " a --rope-freq-base 5000"}, head_dim=64, layout="half", len=1, data=False).json()
    assert answer["said"]["ignored"] == ["--" + "é" * 63]


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
