"""posenc.py and the files of models: .gguf and config.json are read as the service reads them, conversions are compared; explanations."""
import json
import os
import re

import numpy as np
import pytest

from conftest import ROOT
from handed_out import LYING, folder, lying_heads  # noqa: F401
from truth import gguf_writer as gguf

LLAMA_31 = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "rope_theta": 500000.0,
            "max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                                                "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}
GEMMA_3 = {"model_type": "gemma3_text", "head_dim": 256, "hidden_size": 1152, "num_attention_heads": 4, "num_hidden_layers": 26,
           "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 512, "max_position_embeddings": 32768}


@pytest.fixture
def model(tmp_path):
    """A folder with a config.json, and a .gguf file."""
    def made(config, file):
        (tmp_path / "config.json").write_text(json.dumps(config))
        (tmp_path / "model.gguf").write_bytes(file)
        return tmp_path, tmp_path / "model.gguf"
    return made


@pytest.mark.parametrize("name", gguf.ARCHITECTURES)
def test_a_gguf_file_is_read_as_the_service_reads_it(server, posenc, client, tmp_path, name):
    _, _, layer_type, _ = gguf.ARCHITECTURES[name]
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf.file(name))
    keys = posenc.read_gguf(path)
    assert not [key for key in keys if key.startswith("tokenizer.")] and len(json.dumps(keys)) < 8192
    query = "len=3&format=raw" + (f"&layer_type={layer_type}" if layer_type else "")
    by_bytes = server.request("POST", f"/encode?{query}", path.read_bytes(), {"Content-Type": "application/x-gguf"})
    by_keys = server.ask("/encode", gguf=keys, len=3, format="raw", **({"layer_type": layer_type} if layer_type else {}))
    assert by_bytes.status == 200 and by_bytes.body == by_keys.body


def test_every_type_and_both_versions_of_gguf(posenc, tmp_path):
    for i, file in enumerate(gguf.samples()):
        (tmp_path / f"{i}.gguf").write_bytes(file)
        assert posenc.read_gguf(tmp_path / f"{i}.gguf")["general.architecture"] in ("llama", "gemma3")


STORED = {"U32": "u32", "F32": "f32", "BOOL": "bool", "STRING": "string", "ARRAY_U32": "u32[]", "ARRAY_I32": "i32[]", "ARRAY_BOOL": "bool[]"}


def test_a_lying_gguf_head_is_refused_as_by_the_service(server, posenc, tmp_path):
    """Two readers of one format: each file is answered by its bytes exactly if it is answered by its keys, with the same configuration."""
    path, n_answered = tmp_path / "m.gguf", 0
    one = {"string": "a", "bool": 1}
    kinds = [kind + end for kind in gguf.TYPES if kind != "array" for end in ("", "[]")]
    typed = [gguf.head([("general.architecture", "string", "llama"), ("llama.attention.key_length", "u32", 8)][: 1 + (key != "attention.key_length")]
                       + [(f"llama.{key}", kind, [one.get(kind[:-2], 8)] if kind.endswith("[]") else one.get(kind, 8))])
             for key in posenc.GGUF_KEYS for kind in kinds]
    for i, file in enumerate([*lying_heads(), *gguf.samples(), *LYING, *typed]):
        path.write_bytes(file)
        whole = server.request("POST", "/encode?len=2&data=false", file, {"Content-Type": "application/x-gguf"})
        try:
            read = server.post("/encode", {"gguf": posenc.read_gguf(path), "len": 2, "data": False})
        except ValueError as error:
            assert whole.status in (400, 422), (i, whole, error)
            continue
        assert whole.status == read.status and (whole.status == 422 or whole.json()["config"] == read.json()["config"]), (i, whole, read)
        n_answered += whole.status == 200
    assert n_answered > 50


@pytest.mark.parametrize("begin, more, status", [
    (b"", b"", 200), (b"\xef\xbb\xbf", b"", 200), (b"\n", b',"x":"NaN"', 200), (b"", b',"rope_theta":5,"rope_theta":6', 400), (b"", b',"x":{"":1,"":1}', 400),
    (b"", b',"rope_theta":NaN', 400), (b"", b',"x":' + b"[" * 3000 + b"]" * 3000, 400), (b"", b',"x":"\0"', 400), (b"", b',"x":"\xff"', 400), (b"", b',"x":"\\ud800"', 400),
    (b"", b',"x":"\t"', 400), (b"", b',"x":01', 400), (b"", b',', 400)], ids=range(13))
def test_a_config_is_read_as_by_the_service(server, posenc, tmp_path, begin, more, status):
    config = begin + b'{"model_type":"llama","hidden_size":64,"num_attention_heads":2%s}' % more
    (tmp_path / "config.json").write_bytes(config)
    assert server.post("/encode", b'{"len":2,"data":false,"hf_config":%s}' % config.lstrip(b"\xef\xbb\xbf")).status == status
    try:
        read = server.post("/encode", json.dumps({"hf_config": posenc.read_config(tmp_path), "len": 2, "data": False}).encode())
    except ValueError:
        assert status == 400
    else:
        assert read.status == status


def test_the_keys_of_gguf_are_those_of_the_service(folder, posenc):
    text = (ROOT / "core/models/gguf/keys.h").read_text()
    rows = re.findall(r'KEY\(\w+, "([\w.]+)",\s+([^,]+),', text)
    assert len(rows) == text.count("KEY(") and {key: types.split(", ") for key, types in posenc.GGUF_KEYS.items()} == {
        key: [of for name, of in STORED.items() if f"PE_GGUF_{name}" in bits.split(" | ")] for key, bits in rows}


def test_of_gigabytes_the_head_is_read(posenc, tmp_path):
    """A file of 8 GiB, with holes: its numbers behind the head are not touched, and a list beyond its end is null."""
    path = tmp_path / "large.gguf"
    path.write_bytes(gguf.file("llama"))
    os.truncate(path, 8 << 30)
    assert len(posenc.read_gguf(path)["tensors"]["rope_freqs.weight"]) == 64
    path.write_bytes(gguf.file("llama")[:-40])
    assert posenc.read_gguf(path)["tensors"] == {"rope_freqs.weight": None}


@pytest.mark.parametrize("file,words", [(b"GGML" + bytes(40), "begin with GGUF"), (b"GGUF", "ends at byte 4"),
                                        (gguf.file("llama")[:300], "ends at byte 300"),
                                        (gguf.head([("general.architecture", "string", "llama")], version=1), "version 1"),
                                        (gguf.head([("general.architecture", "string", "llama")], n_keys=1 << 60), "more than 65536 keys"),
                                        (gguf.head([("general.architecture", "string", "llama")], n_keys=9), "a key without a name")])
def test_a_bad_gguf_file_is_refused_in_words(posenc, tmp_path, file, words):
    (tmp_path / "bad.gguf").write_bytes(file)
    with pytest.raises(ValueError, match=words):
        posenc.read_gguf(tmp_path / "bad.gguf")


def test_a_conversion_that_fits(client, model):
    found = client.check_conversion(*model(LLAMA_31, gguf.file("llama")))
    assert [one["verdict"] for one in found] == ["rounding"] and 0 < found[0]["max_rel"] < 2.0**-22
    qwen3 = {"model_type": "qwen3", "head_dim": 128, "rope_theta": 1000000, "max_position_embeddings": 40960}
    assert client.check_conversion(*model(qwen3, gguf.file("qwen3")))[0]["verdict"] == "same"
    found = client.check_conversion(*model(GEMMA_3, gguf.file("gemma3")))
    assert {one["layer_type"]: one["verdict"] for one in found} == {"full_attention": "same", "sliding_attention": "same"}


def test_a_conversion_that_does_not_fit(client, model):
    keys, tensors, *_ = gguf.ARCHITECTURES["llama"]
    without = gguf.head(keys, [])
    with pytest.raises(AssertionError, match="scaling is llama3 with factor 8 in the config.json, default in the .gguf file. Frequencies differ most in pair [3-6][0-9]"):
        client.check_conversion(*model(LLAMA_31, without))
    no_base = gguf.head([key for key in keys if "freq_base" not in key[0]], tensors)
    with pytest.raises(AssertionError, match="base is 500000 in the config.json, 10000 in the .gguf file"):
        client.check_conversion(*model(LLAMA_31, no_base))
    other = [(name.replace("llama.", "qwen2."), kind, "qwen2" if value == "llama" else value) for name, kind, value in keys]
    plain = {**LLAMA_31, "rope_scaling": None, "model_type": "qwen2", "hidden_size": 4096}
    assert client.check_conversion(*model(plain, gguf.head(other, [])))[0]["verdict"] == "same"
    with pytest.raises(AssertionError, match='layout is "half" in the config.json, "interleaved" in the .gguf file'):
        chatglm = [(name.replace("llama.", "chatglm."), kind, "chatglm" if value == "llama" else value) for name, kind, value in keys]
        client.check_conversion(*model(plain, gguf.head(chatglm, [])))
    slow = {**GEMMA_3, "rope_local_base_freq": 20000.0}
    with pytest.raises(AssertionError, match="sliding_attention: base is 20000 in the config.json, 10000 in"):
        client.check_conversion(*model(slow, gguf.file("gemma3")))


def test_a_conversion_that_fits_short_texts_only(client, model):
    """The file has no word for dynamic, which does nothing up to the model's length: 64 positions, and the longest text that the model states, fit."""
    config = {"model_type": "qwen2", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2, "max_position_embeddings": 2048,
              "rope_theta": 500000.0, "rope_scaling": {"type": "dynamic", "factor": 2.0}}
    keys = [(name.replace("llama.", "qwen2."), kind, "qwen2" if value == "llama" else value) for name, kind, value in gguf.ARCHITECTURES["llama"][0]]
    with pytest.warns(UserWarning, match="scaling is dynamic with factor 2 in the config.json, default in the .gguf file.* Only sequences of 2049 positions or more"):
        assert client.check_conversion(*model(config, gguf.head(keys, [])))[0]["verdict"] == "differs"
    assert client.check_conversion(*model(config, gguf.head(keys, [])), length=2048)[0]["verdict"] == "same"


def test_a_difference_that_no_file_could_avoid_is_a_warning(client, model):
    scaling = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False}
    config = {"model_type": "gpt_oss", "head_dim": 64, "hidden_size": 2880, "num_attention_heads": 64, "num_hidden_layers": 24,
              "max_position_embeddings": 131072, "rope_theta": 150000, "sliding_window": 128, "rope_scaling": scaling}
    with pytest.warns(UserWarning, match="scaling.truncate is false .* No .gguf file can do better: .*truncate true"):
        assert client.check_conversion(*model(config, gguf.file("gpt-oss")))[0]["reasons"] == ["scaling.truncate"]
    keys = [(key, kind, 16.0 if key.endswith("scaling.factor") else value) for key, kind, value in gguf.ARCHITECTURES["gpt-oss"][0]]
    with pytest.raises(AssertionError, match="scaling.factor is 32"):
        client.check_conversion(*model(config, gguf.head(keys, [])))


def file_of(architecture, layers, width, heads, *more, context=65536):
    return gguf.head(gguf.model(architecture, layers, context, width, heads, heads, *more))


BASE = "rope.freq_base", "f32"
SMOLLM3 = {"model_type": "smollm3", "hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 36, "max_position_embeddings": 65536,
           "rope_theta": 5000000.0, "no_rope_layers": [1, 1, 1, 0] * 9}
COHERE2 = {"model_type": "cohere2", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "rope_theta": 50000.0, "sliding_window": 4096,
           "max_position_embeddings": 65536, "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 8}
OLMO3 = {"model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 65536, "rope_theta": 500000,
         "sliding_window": 4096, "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 8,
         "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192, "beta_fast": 32, "beta_slow": 1}}
LLAMA4 = {"model_type": "llama4_text", "hidden_size": 5120, "num_attention_heads": 40, "head_dim": 128, "num_hidden_layers": 48, "rope_theta": 500000.0,
          "max_position_embeddings": 65536, "no_rope_layers": [1, 1, 1, 0] * 12}
EXAONE4 = {"model_type": "exaone4", "hidden_size": 5120, "num_attention_heads": 40, "head_dim": 128, "num_hidden_layers": 64, "rope_theta": 1000000.0,
           "sliding_window": 4096, "sliding_window_pattern": "LLLG", "max_position_embeddings": 65536}
DEEPSEEK4 = {"model_type": "deepseek_v4", "hidden_size": 4096, "num_hidden_layers": 5, "num_attention_heads": 64, "head_dim": 512, "qk_rope_head_dim": 64,
             "rope_theta": 10000.0, "compress_rope_theta": 160000, "compress_ratios": [0, 0, 4, 128, 0], "max_position_embeddings": 65536, "sliding_window": 128,
             "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 16, "original_max_position_embeddings": 4096, "type": "yarn"}}
YARN = [("rope.scaling.type", "string", "yarn"), ("rope.scaling.factor", "f32", 8.0), ("rope.scaling.original_context_length", "u32", 8192)]
WINDOW = "attention.sliding_window", "u32"
PERIOD = "attention.sliding_window_pattern", "u32"
SMOLLM3_FILE = file_of("smollm3", 36, 2048, 16, (*BASE, 5e6))
COHERE2_FILE = file_of("cohere2", 32, 4096, 32, (*BASE, 5e4), (*WINDOW, 4096))
GEMMA_KEYS = [("attention.key_length", "u32", 256), (*BASE, 1e6), (*WINDOW, 512)]
OLMO3_KEYS = [(*BASE, 5e5), (*WINDOW, 4096), *YARN]
LLAMA4_FILE = file_of("llama4", 48, 5120, 40, (*BASE, 5e5), ("attention.key_length", "u32", 128))
EXAONE4_FILE = file_of("exaone4", 64, 5120, 40, (*BASE, 1e6), ("attention.key_length", "u32", 128), (*WINDOW, 4096))
DEEPSEEK4_KEYS = [("attention.key_length", "u32", 512), ("rope.dimension_count", "u32", 64), (*BASE, 1e4), ("rope.scaling.type", "string", "yarn"),
                  ("attention.compress_rope_freq_base", "f32", 160000.0), ("rope.scaling.factor", "f32", 16.0), ("rope.scaling.original_context_length", "u32", 4096)]
RATIOS = "attention.compress_ratios", "u32[]"


@pytest.mark.parametrize("config, file", [
    (SMOLLM3, SMOLLM3_FILE), (COHERE2, COHERE2_FILE), (LLAMA4, LLAMA4_FILE), (EXAONE4, EXAONE4_FILE), (GEMMA_3, file_of("gemma3", 26, 1152, 4, *GEMMA_KEYS)),
    ({**GEMMA_3, "sliding_window_pattern": 4}, file_of("gemma3", 26, 1152, 4, *GEMMA_KEYS, (*PERIOD, 4))), (OLMO3, file_of("olmo2", 32, 4096, 32, *OLMO3_KEYS)),
    (DEEPSEEK4, file_of("deepseek4", 5, 4096, 64, *DEEPSEEK4_KEYS, (*RATIOS, [0, 0, 4, 128, 0])))],
    ids=["smollm3", "cohere2", "llama4", "exaone4", "gemma3", "gemma3_of_period_4", "olmo3", "deepseek4"])
def test_a_right_conversion_of_layers_that_differ(client, model, recwarn, config, file):
    """Layers without positions have no width, and a kind may have another name in the file."""
    found = client.check_conversion(*model(config, file))
    assert len(found) > 1 and {one["verdict"] for one in found} <= {"same", "rounding"} and not any(one["reasons"] for one in found)
    assert not [w for w in recwarn if w.category is UserWarning]


@pytest.mark.parametrize("config, file, words", [
    (SMOLLM3, file_of("smollm3", 36, 2048, 16, (*BASE, 1e4)), "full_attention: base is 5000000 in the config.json, 10000 in the .gguf file"),
    (COHERE2, file_of("cohere2", 32, 4096, 32, (*BASE, 5e4), (*WINDOW, 4096), (*PERIOD, 2)),
     "sliding_attention: the config.json has .* in layers 0-2, 4-6, …, 28-30, the .gguf file in layers 0, 2, …, 30: 8 of 32 layers differ"),
    (GEMMA_3, file_of("gemma3", 26, 1152, 4, *GEMMA_KEYS, (*PERIOD, 4)), "in layers 0-4, 6-10, …, 24-25, the .gguf file in layers 0-2, 4-6, …, 24-25: 6 of 26 layers differ"),
    ({**GEMMA_3, "sliding_window_pattern": 4}, file_of("gemma3", 26, 1152, 4, *GEMMA_KEYS), "6 of 26 layers differ"),
    ({**GEMMA_3, "layer_types": (["full_attention"] * 5 + ["sliding_attention"]) * 4 + ["full_attention"] * 2}, file_of("gemma3", 26, 1152, 4, *GEMMA_KEYS, (*PERIOD, 4)),
     "of 26 layers differ"),
    (OLMO3, file_of("olmo2", 32, 4096, 32, *OLMO3_KEYS, (*PERIOD, 2)), "8 of 32 layers differ"),
    (LLAMA4, file_of("llama4", 48, 5120, 40, (*BASE, 5e5), ("attention.key_length", "u32", 128), (*WINDOW, 0)),
     "chunked_attention: .* in layers 0-2, 4-6, …, 44-46, the .gguf file in layers 0-46: 11 of 48 layers differ"),
    (EXAONE4, file_of("exaone4", 32, 5120, 40, (*BASE, 1e6), ("attention.key_length", "u32", 128), (*WINDOW, 4096)), "8 of 32 layers differ"),
    (DEEPSEEK4, file_of("deepseek4", 5, 4096, 64, *DEEPSEEK4_KEYS, (*RATIOS, [0, 4, 4, 128, 0])), "sliding_attention: .* in layers 0-1, 4, the .gguf file in layers 0, 4: 1 of 5 layers differ")],
    ids=["smollm3", "cohere2", "gemma3", "gemma3_of_period_4", "gemma3_exchanged", "olmo3", "llama4", "exaone4", "deepseek4"])
def test_a_wrong_conversion_of_layers_that_differ(client, model, config, file, words):
    with pytest.raises(AssertionError, match=words):
        client.check_conversion(*model(config, file))


def test_layers_that_no_file_could_name(client, model):
    """llama.cpp leaves out every fourth layer of SmolLM3, whatever the config's list states."""
    with pytest.warns(UserWarning, match="leaves out layers 0-2, 4-6, …, 32-34, the .gguf file leaves out layers 3, 7, …, 35: 36 of 36 layers differ"):
        found = client.check_conversion(*model({**SMOLLM3, "no_rope_layers": [0, 0, 0, 1] * 9}, SMOLLM3_FILE))
    assert [one["reasons"] for one in found] == [["layers"], ["layers"]]


QWEN_5 = {"model_type": "qwen3", "head_dim": 128, "num_hidden_layers": 4, "max_position_embeddings": 40960,
          "rope_parameters": {"rope_type": "default", "rope_theta": 1000000}}


def test_explain_takes_whatever_names_a_model(client, model):
    """A folder, its file, the object, a preset, a .gguf file: the same answer as the service's."""
    folder, file = model(QWEN_5, gguf.file("llama"))
    by_object = client.explain(QWEN_5)
    assert client.explain(folder) == client.explain(folder / "config.json") == by_object == client._json("/explain", {"hf_config": QWEN_5})
    assert [one["code"] for one in by_object["findings"] if one["level"] == "error"] == ["theta_dropped"]
    assert client.explain(preset="qwen3")["dialect"] == "preset"
    found = client.explain(file, length=4096)
    assert found["dialect"] == "gguf" and found["model"]["length"] == 4096 and found["rows"] == "permuted"
    words = "vllm serve a/b --hf-overrides '{\"rope_parameters\":{\"rope_theta\":5000}}'"
    (folder / "serve.sh").write_text("#!/bin/sh\n" + words)
    of_text = client.explain(words, hf_config=QWEN_5)
    assert of_text["layers"] == client.explain(folder / "serve.sh", hf_config=QWEN_5)["layers"]
    assert of_text["layers"][0]["config"]["base"] == 5000 and of_text["pasted"]["tool"] == "vllm"


@pytest.mark.parametrize("number", [{"preset": "llama-3.1", "position": 8192, "pair": [29, 40]}, {"scheme": "learned", "seed": 3, "dim": 16, "position": 5, "channel": 2},
                                    {"scheme": "rope", "layout": "half", "tensor": "q_out", "q": np.arange(8, dtype="f4"), "position": 3, "channel": 1}])
def test_a_derivation_is_the_text_of_the_service(client, number):
    found = client.derive(**number)
    fields = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in number.items()}
    with client._ask("POST", "/derive", *client._body({**fields, "format": "text"}, None), "text/plain") as answer:
        assert str(found) + "\n" == client._read(answer).decode()
    assert (found.get("numbers") or [found])[0]["steps"] and "<table" in found._repr_html_()


def test_an_explanation_is_a_table(client):
    lines = str(client.explain(QWEN_5)).splitlines()
    assert lines[0] == "full_attention: rope, base 1000000, 128 of 128 channels, half"
    head = next(line for line in lines if line.startswith("field"))
    assert head.split() == ["field", "value", "transformers4", "transformers5", "vllm", "sglang", "llama.cpp", "lmdeploy", "tensorrt_llm", "exllamav3"]
    row = next(line for line in lines if line.startswith("/hf_config/rope_parameters/rope_theta"))
    assert row.split()[1:4] == ["1000000", "10000.0", "(default)"] and row.split()[4:] == ["1000000.0"] * 7
    assert any(line.startswith("error theta_dropped: transformers 4 does not read rope_parameters") for line in lines)


def test_a_translation_is_a_table(client, model):
    folder, file = model(QWEN_5, gguf.file("llama"))
    found = client.translate(folder, to=["vllm", "torchtune"])
    assert found == client._json("/translate", {"hf_config": QWEN_5, "to": ["vllm", "torchtune"]})
    assert [one["to"] for one in found["targets"]] == ["vllm", "torchtune"] and found["vllm"]["text"].startswith("--hf-overrides '{")
    lines = str(found).splitlines()
    assert lines[0].split() == ["vllm", "exact"] and lines[1] == "    " + found["vllm"]["text"] and lines[-1] == found["detail"]
    assert len(client.translate(file)["targets"]) == 14 and client.translate(preset="llama-3.1", to="gguf")["gguf"]["architecture"] == "llama"
    one = found["vllm"]
    assert client.encode(said={"to": "vllm", "value": one["value"]}, **one["needs"], len=4).config["base"] == 1000000
