"""The client libraries that the server hands out: how they are delivered, and posenc.py and posenc.js at work, against NumPy in
float64, over TLS with a token, and against servers that are busy, break off or go away."""
import ast
import base64
import contextlib
import gzip
import html
import importlib.util
import itertools
import json
import os
import pathlib
import re
import shutil
import socketserver
import ssl
import subprocess
import threading

import numpy as np
import pytest

import png_reader
import safetensors_reader
from conftest import ROOT, start_server
from connection import at_once
from truth import gguf_writer as gguf
from test_gguf_head import LIES
from token_files import LINES, READER, token_server

NODE = shutil.which("node")
TYPES = {"posenc.py": "text/x-python; charset=utf-8", "posenc.js": "text/javascript; charset=utf-8"}


@pytest.fixture(scope="module")
def folder(session_server, tmp_path_factory):
    """As `curl -O` leaves them; node takes a module by its ending."""
    folder = tmp_path_factory.mktemp("clients")
    for name in TYPES:
        (folder / name).write_bytes(session_server.get(f"/clients/{name}").body)
    shutil.copy(folder / "posenc.js", folder / "posenc.mjs")
    return folder


@pytest.fixture(scope="module")
def posenc(folder):
    spec = importlib.util.spec_from_file_location("posenc_handed_out", folder / "posenc.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def client(posenc, server):
    return posenc.Client(f"http://{server.host}:{server.port}", retries=0)


def rotary(n, width, base=10000.0):
    return np.outer(np.arange(n), base ** (-np.arange(0, width, 2) / width))


# ---- Delivery --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TYPES)
def test_delivery(server, name):
    answer, packed = server.get(f"/clients/{name}"), server.get(f"/clients/{name}", {"Accept-Encoding": "gzip"})
    assert answer.status == 200 and answer.headers["Content-Type"] == TYPES[name] and answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["Content-Encoding"] is None and packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == answer.body
    assert answer.headers["Vary"] == "Accept-Encoding" and answer.headers["ETag"] != packed.headers["ETag"]
    assert server.get(f"/clients/{name}", {"If-None-Match": answer.headers["ETag"]}).status == 304
    assert server.request("HEAD", f"/clients/{name}").headers["Content-Length"] == str(len(answer.body))
    version = json.loads(server.get("/version").body)["version"]
    assert f'"{version}"'.encode() in answer.body.replace(b"'", b'"') and b'"VERSION"' not in answer.body


def test_names_that_are_not_there(server):
    for name in ("posenc.rb", "../posenc.py", "posenc.py/", "POSENC.PY"):
        answer = server.get(f"/clients/{name}")
        assert answer.status == 404 and answer.headers["Content-Type"] == "application/problem+json", name
    assert "posenc.py, posenc.js" in server.get("/clients/x").json()["detail"]
    assert server.post("/clients/posenc.py", {}).status == 405


def test_open_without_a_token_and_to_other_pages():
    with token_server(LINES, "--cors-origin", "https://vis.example.org") as server:
        answer = server.get("/clients/posenc.js", {"Origin": "https://vis.example.org"})
        assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == "https://vis.example.org"


# ---- posenc.py -------------------------------------------------------------------------------------------------------------


def test_encode(client):
    answer = client.encode(scheme="rope", len=33, head_dim=8)
    cos, sin = answer
    assert cos is answer["cos"] is answer.cos and list(answer.keys()) == ["cos", "sin"] and "sin" in answer and len(answer) == 2
    angles = rotary(33, 8)
    assert cos.dtype == np.float32 and np.array_equal(cos, np.cos(angles).astype("f4")) and np.array_equal(sin, np.sin(angles).astype("f4"))
    assert answer.config["base"] == 10000.0 and answer.scheme == "rope" and "cos: float32 [33, 4]" in repr(answer)
    with pytest.raises(AttributeError, match="cos, sin"):
        answer.tan
    assert client.encode(scheme="rope", len=2, head_dim=4, dtype="f64").cos.dtype == np.float64
    half = client.encode(scheme="rope", len=9, head_dim=8, dtype="bf16").cos
    assert half.dtype == np.float32 and np.abs(half - np.cos(rotary(9, 8))).max() <= 2.0**-9 and not (half.view("u4") & 0xFFFF).any()
    assert client.encode(scheme="rope", positions=np.array([7, 3]), head_dim=4).cos[0, 0] == np.float32(np.cos(7))
    assert client.encode(scheme="alibi", num_heads=np.int64(2), len=3, causal=None).bias.shape == (2, 3, 3)


def test_rotate_keeps_norms_and_shapes(client):
    rng = np.random.default_rng(1)
    for dtype in ("f8", "f4", "f2"):
        q = rng.standard_normal((2, 3, 17, 16)).astype(dtype)
        turned = client.rotate(q=q, scheme="rope").q
        assert turned.shape == q.shape and turned.dtype == q.dtype
        assert np.allclose(np.linalg.norm(turned.astype("f8"), axis=-1), np.linalg.norm(q.astype("f8"), axis=-1), rtol=4 * np.finfo(dtype).eps)
    strange = np.asfortranarray(q.astype(">f4"))[:, ::2]
    assert np.array_equal(client.rotate(q=strange, scheme="rope").q, client.rotate(q=np.ascontiguousarray(strange, "<f4"), scheme="rope").q)
    with pytest.raises(TypeError, match="complex128"):
        client.rotate(q=q.astype("c16"), scheme="rope")


def test_attention_analyze_and_catalogue(client):
    assert np.allclose(client.attention(scheme="alibi", tokens=["a", "b", "a"], num_heads=2, head_dim=8).probs.sum(-1), 1)
    answer = client.analyze({"scheme": "rope", "head_dim": 64, "len": 8}, metrics=["wavelengths"])
    assert answer["configs"][0]["scheme"] == "rope"
    assert client.schemes("rope")["name"] == "rope" and client.presets("llama-3.1")["config"]["scheme"] == "rope" and len(client.presets()["presets"]) > 100


def test_a_file_is_mapped_whole_or_not_there(client, posenc, tmp_path):
    path = tmp_path / "table.safetensors"
    table = client.encode(scheme="sinusoidal", dim=256, len=30000, file=str(path)).encoding
    assert table.shape == (30000, 256) and path.stat().st_size > table.nbytes and path.name in pathlib.Path("/proc/self/maps").read_text()
    assert table[29999, 0] == np.float32(np.sin(29999)) and not table.flags.writeable
    with pytest.raises(posenc.Refused):
        client.encode(scheme="sinusoidal", dim=3, len=1, base=-1, file=str(tmp_path / "other"))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_complex_numbers_are_pairs(client, posenc):
    turns = np.exp(1j * rotary(16, 64, 500000.0))
    for dtype in ("c8", "c16", ">c8"):
        for array in (turns.astype(dtype), np.asfortranarray(turns.astype(dtype))):
            assert client.check(freqs_cis=array, scheme="rope", base=500000.0, head_dim=64).fits
    with pytest.raises(posenc.Mismatch, match="other way|direction"):
        client.check(freqs_cis=turns.conj(), scheme="rope", base=500000.0, head_dim=64)
    with pytest.raises(TypeError, match="cos has the dtype complex128"):
        client.check(cos=turns, sin=turns.imag, scheme="rope")


def test_complex_tensors_of_pytorch(client):
    torch = pytest.importorskip("torch")
    turns = torch.polar(torch.ones(16, 32), torch.from_numpy(rotary(16, 64, 500000.0)).float())
    assert client.check(freqs_cis=turns, scheme="rope", base=500000.0, head_dim=64).fits
    assert client.check(freqs_cis=turns.conj(), scheme="rope", base=500000.0, head_dim=64, direction=-1).fits  # conjugated lazily


def test_a_padded_batch_is_checked_with_its_mask(posenc, client):
    """Positions that count padding are named in the first line."""
    mask = np.array([[0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
    q = np.random.default_rng(0).standard_normal((2, 2, 6, 8)).astype("f4")
    believed = {"scheme": "rope", "layout": "half"}
    right = client.rotate(q=q, attention_mask=mask, **believed).q
    assert client.check(q=q, q_out=right, attention_mask=mask, **believed).fits
    with pytest.raises(posenc.Mismatch) as caught:
        client.check(q=q, q_out=client.rotate(q=q, **believed).q, attention_mask=mask, **believed)
    assert str(caught.value).splitlines()[0].startswith("Positions count the columns, padding included")


def test_the_check_that_the_docstring_shows_runs(posenc, client):
    my_cos, my_sin = client.encode(preset="llama-3.1", len=16)
    [shown] = re.findall(r"^    posenc(\.check\(.*?\)) ", posenc.__doc__, re.M)
    assert eval("client" + shown, {"client": client, "my_cos": my_cos, "my_sin": my_sin}).fits


def test_check_says_in_one_line_what_a_port_does_wrong(client, posenc):
    angles = rotary(16, 64, 500000.0)
    first, second = np.random.default_rng(2).standard_normal((2, 1, 2, 16, 32))
    q = np.concatenate([first, second], -1)
    halves = np.concatenate([first * np.cos(angles) - second * np.sin(angles), second * np.cos(angles) + first * np.sin(angles)], -1)
    believed = {"scheme": "rope", "base": 500000.0, "layout": "half"}
    assert client.check(q=q, q_out=halves, **believed).fits
    pairs = q.copy()
    pairs[..., 0::2], pairs[..., 1::2] = (q[..., 0::2] * np.cos(angles) - q[..., 1::2] * np.sin(angles), q[..., 1::2] * np.cos(angles) + q[..., 0::2] * np.sin(angles))
    with pytest.raises(posenc.Mismatch, match="layout interleaved; the configuration says half") as caught:
        client.check(q=q, q_out=pairs, **believed)
    assert isinstance(caught.value, AssertionError) and caught.value.diagnosis["findings"][0]["code"] == "layout_swapped"
    assert "first difference: q_out" in str(caught.value) and '"layout": "interleaved"' in str(caught.value)
    with pytest.raises(posenc.Mismatch):
        client.check(np.random.default_rng(3).standard_normal((16, 8)), scheme="sinusoidal")
    assert client.check(np.hstack([np.sin(rotary(8, 4)), np.cos(rotary(8, 4))]), scheme="sinusoidal", layout="half").fits


def test_check_passes_what_float32_code_computes(client, posenc):
    """Llama's own recipe, far out: right code, whose angles are wrong in the last bits of a float32."""
    w = np.float32(1) / np.float32(500000.0) ** (np.arange(0, 64, 2, dtype=np.float32) / np.float32(64))
    angles = np.outer(np.arange(131000, 131032, dtype=np.float32), w)
    tables = {"cos": np.cos(angles), "sin": np.sin(angles), "scheme": "rope", "base": 500000.0, "offset": 131000}
    assert "float32" in str(client.check(**tables))
    with pytest.raises(posenc.Mismatch, match="float32"):
        client.check(**tables, strict=True)
    for wrong in ({"base": 10000.0}, {"offset": 131001}, {"base": 500100.0}, {"scaling": {"type": "linear", "factor": 2}}):
        with pytest.raises(posenc.Mismatch):
            client.check(**{**tables, **wrong})


def test_a_pass_says_what_the_tensor_could_not_have_shown(client, posenc):
    """Tables of pairs are the same in every layout; a rotated vector is not."""
    tables = client.encode(scheme="rope", head_dim=8, len=6)
    seen = client.check(cos=tables.cos, sin=tables.sin, scheme="rope", head_dim=8)
    assert str(seen).splitlines()[1].startswith("These mistakes would not show in this tensor: layout_swapped, ")
    q = np.random.default_rng(5).standard_normal((6, 8))
    seen = client.check(q=q, q_out=client.rotate(scheme="rope", q=q).q, scheme="rope")
    assert "would not show" not in str(seen) and seen["unseen"] == []


def test_check_passes_what_two_readings_give(client, posenc):
    """A decoding step of ALiBi is the same in three forms."""
    bias = client.encode(scheme="alibi", q_len=1, k_len=40).bias
    for strict in (False, True):
        seen = client.check(bias=bias, scheme="alibi", q_len=1, k_len=40, strict=strict)
        assert [one["code"] for one in seen["findings"]] == ["as_believed", "undecided"]
    with pytest.raises(posenc.Mismatch):
        client.check(bias=bias * 2, scheme="alibi", q_len=1, k_len=40)


def test_refusals_carry_their_words_and_pointer(client, posenc):
    with pytest.raises(posenc.Refused, match='nearest: "rope"') as caught:
        client.encode(scheme="rop", len=2)
    assert (caught.value.status, caught.value.pointer) == (422, "/scheme")
    with pytest.raises(ValueError, match="safetensors"):
        client.encode(scheme="rope", len=2, format="npz")
    with pytest.raises(posenc.Refused):
        client.presets("no such/preset")
    with pytest.raises(ValueError, match="no address"):
        posenc.Client("ftp://example.org")


# What a notebook shows: text, HTML and a picture, each when it asks for it.


def shown(answer):
    """The picture in an answer's HTML, and its tables as {caption: {name: value}}."""
    text = answer._repr_html_()
    pictures = [base64.b64decode(data) for data in re.findall(r'src="data:image/png;base64,([^"]*)"', text)]
    tables = {title: dict(re.findall(r"<tr><th>(.*?)</th><td>(.*?)</td></tr>", rows)) for title, rows in re.findall(r"<table><caption>(.*?)</caption>(.*?)</table>", text)}
    return pictures, {title: {name: html.unescape(value) for name, value in rows.items()} for title, rows in tables.items()}


def test_a_notebook_sees_a_picture_and_the_configuration(client):
    answer = client.encode(preset="qwen2.5-yarn-128k", len=32)
    pictures, tables = shown(answer)
    assert pictures == [answer._repr_png_()] and len(png_reader.Picture(pictures[0]).pixels) % 32 == 0
    assert tables["rope"] == {"cos": "float32 [32, 64], 8,192 bytes", "sin": "float32 [32, 64], 8,192 bytes"}
    assert tables["config"]["layout"] == '"half"' and tables["config"]["scaling.factor"] == "4.0" and "hf_config" not in tables
    assert tables["config"].keys() - {"scheme"} == {name for name in re.findall(r"(?:^|, |\n)\s*([a-z_.]+) ", repr(answer)) if name != "rope"}


def test_text_of_an_answer(client):
    assert repr(client.encode(scheme="rope", len=33, head_dim=8)) == """\
rope
  head_dim 8, rotary_dim 8, rotary_offset 0, base 10000.0, layout "interleaved", direction 1,
  scaling.type "default", attention_factor 1.0, form "pairs", arith "exact"
  cos: float32 [33, 4]
  sin: float32 [33, 4]"""
    long = repr(client.encode(preset="minicpm4", len=2))
    assert max(map(len, long.splitlines())) < 120 and "…" in long  # LongRoPE's lists


def test_a_notebook_sees_what_was_read_of_a_config(client):
    tables = shown(client.encode(hf_config={"model_type": "chatglm", "kv_channels": 128, "rope_ratio": 500, "<b>": 1}, len=3))[1]
    assert tables["hf_config"]["model_type"] == '"chatglm"' and tables["hf_config"]["ignored"] == '["<b>"]'
    assert "<b>" not in client.encode(hf_config={"model_type": "chatglm", "kv_channels": 128, "<b>": 1}, len=3)._repr_html_()


@pytest.mark.parametrize("request_", [
    {"preset": "llama-3.1", "len": 20000}, {"scheme": "alibi", "len": 1500, "causal": True, "num_heads": 1}, {"scheme": "rope", "len": 9000, "outputs": ["cos", "inv_freq"]},
    {"scheme": "rope", "len": 9000, "form": "matrix"}, {"scheme": "rope", "len": 9000, "dtype": "bf16", "slice": [[0, 9], [0, 4]]}, {"scheme": "sinusoidal", "dim": 1024, "len": 20000}],
    ids=["table", "map", "outputs", "four axes", "slice", "large"])
def test_long_tensors_are_drawn_in_steps(client, request_):
    answer = client.encode(**request_)
    height, width = png_reader.Picture(answer._repr_png_()).pixels.shape
    assert height <= 1024 and width <= 1024


def test_a_picture_is_asked_once_and_not_for_large_arrays(client, posenc, monkeypatch):
    asked, ask = [], posenc.Client._ask
    monkeypatch.setattr(posenc.Client, "_ask", lambda self, *arguments: asked.append(arguments[1]) or ask(self, *arguments))
    turned = client.rotate(q=np.ones((1, 1, 5000, 8), "f4"), scheme="rope")
    assert turned._repr_png_() == turned._repr_png_() and turned._repr_html_() == turned._repr_html_() and asked == ["/rotate"] * 2
    monkeypatch.setattr(posenc, "RESENT", 1000)
    turned = client.rotate(q=np.ones((1, 1, 5000, 8), "f4"), scheme="rope")
    assert turned._repr_png_() is None and "<img" not in turned._repr_html_() and "config" in shown(turned)[1] and len(asked) == 3


def test_a_notebook_sees_a_service_that_is_gone(posenc):
    with Rough(GOOD) as rough:
        answer = posenc.Client(f"http://127.0.0.1:{rough.server_address[1]}", retries=0).encode(scheme="rope", len=2)
        rough.shutdown()
    assert answer._repr_png_() is None and shown(answer) == ([], {"tensors": {"cos": "float32 [2, 2], 16 bytes"}})


def test_a_notebook_sees_the_findings_of_a_diagnosis(client):
    table = client.encode(scheme="sinusoidal", dim=16, len=9, layout="half").encoding
    tables = shown(client.diagnose(table, scheme="sinusoidal", layout="interleaved"))[1]
    assert "half" in tables["explained"]["layout_swapped"] and tables["exact"]["layout"] == '"half"' and tables["exact"]["scheme"] == '"sinusoidal"'
    scaled = client.diagnose(2 * table, scheme="sinusoidal", layout="half")
    assert shown(scaled)[1]["exact"]["transforms"] in str(scaled) and "2" in shown(scaled)[1]["exact"]["transforms"] and scaled.config["len"] == 9
    noise = client.diagnose(np.random.default_rng(3).standard_normal((16, 8)), scheme="sinusoidal")
    assert list(shown(noise)[1]) == ["not explained"] and noise.config == {} and "gives:" not in str(noise)


# ---- Files of models ----


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


LYING = [gguf.lying(np.random.default_rng(seed)) for seed in range(300)]
STORED = {"U32": "u32", "F32": "f32", "BOOL": "bool", "STRING": "string", "ARRAY_U32": "u32[]", "ARRAY_I32": "i32[]", "ARRAY_BOOL": "bool[]"}


def test_a_lying_gguf_head_is_refused_as_by_the_service(server, posenc, tmp_path):
    """Two readers of one format: each file is answered by its bytes exactly if it is answered by its keys, with the same configuration."""
    path, n_answered = tmp_path / "m.gguf", 0
    one = {"string": "a", "bool": 1}
    kinds = [kind + end for kind in gguf.TYPES if kind != "array" for end in ("", "[]")]
    typed = [gguf.head([("general.architecture", "string", "llama"), ("llama.attention.key_length", "u32", 8)][: 1 + (key != "attention.key_length")]
                       + [(f"llama.{key}", kind, [one.get(kind[:-2], 8)] if kind.endswith("[]") else one.get(kind, 8))])
             for key in posenc.GGUF_KEYS for kind in kinds]
    for i, file in enumerate([*(file for _, file in LIES), *gguf.samples(), *LYING, *typed]):
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
    rows = re.findall(r'KEY\(\w+, "([\w.]+)",\s+([^)]+)\)', text)
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


# ---- Conversions of models whose layers differ ----


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


def test_an_explanation_is_a_table(client):
    lines = str(client.explain(QWEN_5)).splitlines()
    assert lines[0] == "full_attention: rope, base 1000000, 128 of 128 channels, half"
    head = next(line for line in lines if line.startswith("field"))
    assert head.split() == ["field", "value", "transformers4", "transformers5", "vllm", "llama.cpp"]
    row = next(line for line in lines if line.startswith("/hf_config/rope_parameters/rope_theta"))
    assert row.split()[1:4] == ["1000000", "10000.0", "(default)"] and row.split()[4:] == ["1000000.0"] * 3
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


def test_many_threads_share_a_client(client):
    found = {}

    def ask(i):
        for j in range(20):
            found[i, j] = client.encode(scheme="rope", len=1, offset=100 * i + j, head_dim=2, dtype="f64").cos[0, 0]

    at_once(ask, range(8))
    assert len(found) == 160 and all(abs(value - np.cos(float(100 * i + j))) < 1e-15 for (i, j), value in found.items())


class Stalled(bytes):
    """An answer after which the connection stays open."""


class Rough(socketserver.ThreadingTCPServer):
    """Answers the connections one after the other with these bytes, then closes them."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self, *answers):
        self.answers, self.asked, self.heads, self.over = list(answers), 0, [], threading.Event()
        super().__init__(("127.0.0.1", 0), Rough.Talk)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *what):
        self.over.set()
        self.shutdown()
        super().__exit__(*what)

    class Talk(socketserver.StreamRequestHandler):
        def handle(self):
            head = b"".join(itertools.takewhile(lambda line: line not in (b"\r\n", b""), self.rfile))
            if not head:  # the client connected and left
                return
            size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
            self.rfile.read(size)
            self.server.asked += 1
            self.server.heads.append(head)
            answer = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
            self.wfile.write(answer)
            self.wfile.flush()
            if isinstance(answer, Stalled):
                self.server.over.wait(60)


def bare(status, body=b"{}", *headers, length=None):
    return b"\r\n".join([b"HTTP/1.1 %d X" % status, b"Content-Length: %d" % (len(body) if length is None else length), *headers, b"", body])


GOOD = bare(200, safetensors_reader.dumps({"cos": np.ones((2, 2), "f4")}))


@pytest.mark.parametrize("answers, expected", [
    ([bare(503, b'{"detail":"draining"}', b"Retry-After: 0"), bare(429, b"{}", b"Retry-After: 0"), GOOD], 3),
    ([b"", GOOD], 2), ([bare(503, b"{}", b"Retry-After: soon", b"Connection: close"), GOOD], 2)], ids=["busy", "closed", "words"])
def test_asks_again_while_the_service_is_busy(posenc, answers, expected):
    with Rough(*answers) as rough:
        client = posenc.Client(f"http://127.0.0.1:{rough.server_address[1]}", patience=20)
        assert client.encode(scheme="rope", len=2).cos.shape == (2, 2)
        assert rough.asked == expected
        rough.shutdown()


def test_gives_up_in_words(posenc, tmp_path):
    with Rough(bare(503, b'{"detail":"the queue is full"}', b"Retry-After: 0")) as rough:
        client = posenc.Client(f"http://127.0.0.1:{rough.server_address[1]}", retries=2)
        with pytest.raises(posenc.Refused, match="the queue is full"):
            client.encode(scheme="rope", len=2)
        assert rough.asked == 3
        rough.shutdown()
    with Rough(bare(200, GOOD.split(b"\r\n\r\n", 1)[1][:-4], length=len(GOOD.split(b"\r\n\r\n", 1)[1]))) as rough:
        client = posenc.Client(f"http://127.0.0.1:{rough.server_address[1]}", retries=0)
        with pytest.raises(posenc.Away, match="broke off after"):
            client.encode(scheme="rope", len=2)
        with pytest.raises((posenc.Away, OSError)):
            client.encode(scheme="rope", len=2, file=str(tmp_path / "x"))
        assert list(tmp_path.iterdir()) == []
        port = rough.server_address[1]
        rough.shutdown()
    with pytest.raises(posenc.Away, match="gives no answer"):
        posenc.Client(f"http://127.0.0.1:{port}", retries=1, patience=5).schemes()


# ---- Answers that are none ----------------------------------------------------------------------------------------------

WHOLE = safetensors_reader.dumps({"cos": np.ones((2, 2), "f4")})


def without_length(body, *headers):
    return b"\r\n".join([b"HTTP/1.1 200 X", b"Connection: close", *headers, b"", body])


def laid_out(head, n_data=16):
    """A safetensors file with this head."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return bare(200, len(text).to_bytes(8, "little") + text + bytes(n_data))


def row(begin=0, end=16, shape=(2, 2), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


CHUNKED = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"
BROKEN = {
    "cut, no length": without_length(WHOLE[:-4]),
    "cut in the head, no length": without_length(WHOLE[:20]),
    "cut in the size, no length": without_length(WHOLE[:5]),
    "nothing, no length": without_length(b""),
    "cut": bare(200, WHOLE[:-4], length=len(WHOLE)),
    "chunked, cut": CHUNKED + b"50\r\nabc",
    "chunked, no last chunk": CHUNKED + b"%x\r\n%b\r\n" % (len(WHOLE) - 4, WHOLE[:-4]),
    "chunked, no size": CHUNKED + b"zz\r\nabc",
    "stalled": Stalled(bare(200, WHOLE[:-4], length=len(WHOLE))),
    "a login page": bare(200, b"<html>Please log in</html>", b"Content-Type: text/html"),
    "empty": bare(200, b""),
    "204": b"HTTP/1.1 204 X\r\n\r\n",
    "206": bare(206, WHOLE[:9], b"Content-Range: bytes 0-8/99"),
    "202": bare(202, WHOLE),
    "redirect": bare(302, b"", b"Location: https://login.example/?back=posenc"),
    "304": b"HTTP/1.1 304 X\r\n\r\n",
    "error, cut": bare(422, b'{"detail":', length=99),
    "tail": bare(200, WHOLE + b"\n"),
    "hole": laid_out({"cos": row(4, 20)}, 20),
    "overlap": laid_out({"cos": row(), "sin": row(8, 24)}, 24),
    "shape": laid_out({"cos": row(shape=(2, 3))}),
    "negative shape": laid_out({"cos": row(shape=(-2, -2))}),
    "shape of reals": laid_out({"cos": row(shape=(2.0, 2.0))}),
    "dtype": laid_out({"cos": row(dtype="F8")}),
    "no offsets": laid_out({"cos": {"dtype": "F32", "shape": [4]}}),
    "a list": laid_out(b"[1,2,3,4]"),
    "no JSON": laid_out(b"{cos}"),
    "config that is none": laid_out({"__metadata__": {"config": "{"}, "cos": row()}),
}


@pytest.mark.parametrize("case", BROKEN)
def test_python_keeps_a_good_file_when_an_answer_is_none(posenc, tmp_path, case):
    file = tmp_path / "table.safetensors"
    with Rough(BROKEN[case], BROKEN[case], GOOD) as rough:
        client = posenc.Client(rough.url, timeout=1, retries=0)
        with pytest.raises((posenc.Away, posenc.Refused)) as caught:
            client.encode(scheme="rope", len=2)
        assert isinstance(caught.value, posenc.Away) or caught.value.status in (204, 206, 202, 302, 304)
        file.write_bytes(WHOLE)
        with pytest.raises(type(caught.value)):
            client.encode(scheme="rope", len=2, file=file)
        assert file.read_bytes() == WHOLE and list(tmp_path.iterdir()) == [file]
        assert client.encode(scheme="rope", len=2, file=str(file)).cos.tolist() == [[1, 1], [1, 1]] and file.read_bytes() == GOOD.split(b"\r\n\r\n")[1]


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b"[]", b"null", b'{"schemes":['])
def test_python_reads_json_or_is_away(posenc, body):
    for answer in (bare(200, body), without_length(body), bare(200, body, length=99), CHUNKED + b"9\r\n" + body):
        with Rough(answer) as rough, pytest.raises(posenc.Away):
            posenc.Client(rough.url, retries=0).schemes()


def test_python_follows_no_redirect_and_says_where_it_leads(posenc):
    with Rough(bare(200, b"{}")) as other:
        for status in (301, 302, 303, 307, 308):
            with Rough(bare(status, b"", b"Location: %s/schemes" % other.url.encode())) as rough:
                asks = [(lambda client: client.schemes(), f"the service is said to be at {other.url}: give that as url"),
                        (lambda client: client.encode(scheme="rope", len=2), f"it leads to {other.url}/schemes")]
                for ask, words in asks:
                    with pytest.raises(posenc.Refused, match=f"{status}; {re.escape(words)}$") as caught:
                        ask(posenc.Client(rough.url, token="secret"))
                    assert caught.value.status == status
                assert b"Bearer secret" in rough.heads[0]
        assert other.asked == 0


@pytest.mark.parametrize("location, words", [
    ("https://num.example/pe/schemes/rope?a=1#b", "the service is said to be at https://num.example/pe: give that as url"),
    ("/v2/schemes/rope", "the service is said to be at URL/v2: give that as url"),
    ("//num.example/schemes/rope", "the service is said to be at http://num.example: give that as url"),
    ("rope/", "it leads to URL/base/schemes/rope/"), ("?again=1", "it leads to URL/base/schemes/rope?again=1"),
    ("/login?back=/schemes/rope", "it leads to URL/login?back=/schemes/rope"), ("http://[x/schemes/rope", "it leads to http://[x/schemes/rope")])
def test_python_says_the_url_of_the_service_that_moved(posenc, location, words):
    with Rough(bare(307, b"", b"Location: " + location.encode())) as rough, pytest.raises(posenc.Refused) as caught:
        posenc.Client(rough.url + "/base/").schemes("rope")
    assert str(caught.value) == f"{rough.url}/base/ answers with status 307; {words.replace('URL', rough.url)}"


def test_python_finds_the_service_at_the_url_that_a_redirect_names(posenc, server):
    with Rough(bare(308, b"", b"Location: http://%b:%d/encode" % (server.host.encode(), server.port))) as rough, pytest.raises(posenc.Refused) as caught:
        posenc.Client(rough.url).encode(scheme="rope", len=2)
    assert posenc.Client(re.search("said to be at (.*): give", str(caught.value))[1]).encode(scheme="rope", len=2).cos[0, 0] == 1


@pytest.mark.parametrize("status, body", [(404, b"<html>Not Found</html>"), (502, b"<html>Bad Gateway</html>"), (403, b""), (404, b"[]"), (404, b'{"message":"no route"}')])
def test_python_is_away_where_another_program_refuses(posenc, status, body):
    with Rough(bare(status, body, b"Content-Type: text/html")) as rough:
        for ask in (lambda client: client.schemes(), lambda client: client.encode(scheme="rope", len=2)):
            with pytest.raises(posenc.Away, match=f"^{re.escape(rough.url)} .* no whole one of posenc .*HTTP status {status}: {re.escape(body.decode())}"):
                ask(posenc.Client(rough.url, retries=0))


@pytest.mark.parametrize("words", [b"nan", b"inf", b"-inf", b"1e999", b"-5", b"", b"Wed, 21 Oct 2026 07:28:00 GMT"])
def test_python_waits_for_a_while_whatever_retry_after_says(posenc, words):
    with Rough(bare(503, b"{}", b"Retry-After: " + words, b"Connection: close"), GOOD) as rough:
        assert posenc.Client(rough.url, retries=1).encode(scheme="rope", len=2).cos.shape == (2, 2) and rough.asked == 2


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_the_umask_decides_who_reads_a_file(client, tmp_path, umask):
    before = os.umask(umask)
    try:
        client.encode(scheme="rope", len=2, file=tmp_path / "x")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o666 & ~umask


RAW = [b"Content-Type: application/octet-stream", b'Posenc-Tensors: cos;dtype="f32";shape="2,2";offset=0']
NONE = {  # what encode() of posenc.js may be given in place of an answer
    "a login page": bare(200, b"<html>", b"Content-Type: text/html"),
    "header dropped": bare(200, bytes(16), RAW[0]),
    "header empty": bare(200, bytes(16), RAW[0], b"Posenc-Tensors: "),
    "204": b"HTTP/1.1 204 X\r\nConnection: close\r\n\r\n",
    "206": bare(206, bytes(16), *RAW, b"Content-Range: bytes 0-15/99"),
    "202": bare(202, bytes(16), *RAW),
    "cut": bare(200, bytes(8), *RAW, length=16),
    "cut, no length": without_length(bytes(8), *RAW),
    "chunked, cut": CHUNKED.replace(b"\r\n\r\n", b"\r\n" + b"\r\n".join(RAW) + b"\r\n\r\n") + b"10\r\nabc",
    "stalled": Stalled(bare(200, bytes(8), *RAW, length=16)),
    "silent": Stalled(b""),
    "waits for months": bare(503, b"{}", b"Retry-After: 3000000"),
}
RUN_NONE = """
import Posenc from './posenc.mjs';
for (const [name, url] of Object.entries(JSON.parse(process.argv[2]))) {
  const posenc = new Posenc(url, { timeout: 1, retries: 3 });
  for (const ask of [() => posenc.encode({ scheme: 'rope', len: 2 }), () => posenc.schemes(), () => posenc.rotate({ scheme: 'rope', q: Float32Array.of(1, 2) })]) {
    if (name === 'silent' && String(ask).includes('rotate')) continue;   // the clock of an upload runs from its answer's first byte
    await ask().then((value) => console.log(`${name}: ${JSON.stringify(value)}`), (error) => ['Refusal', 'Away'].includes(error.name) || console.log(`${name}: ${error}`));
  }
}
const posenc = new Posenc(process.argv[3]);
const stop = new AbortController();
setTimeout(() => stop.abort(), 200);
await posenc.encode({ scheme: 'rope' }, { signal: stop.signal }).then(console.log, (error) => console.log(error.name));
process.exit();
"""


RUN_REST = """
import Posenc from './posenc.mjs';
await new Posenc(process.argv[2]).encode({ scheme: 'rope', len: 2 }).catch((error) => console.log(error.name, error.message));
"""


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_takes_nothing_else_for_an_answer(folder):
    with contextlib.ExitStack() as stack:
        all = {name: stack.enter_context(Rough(answer)) for name, answer in NONE.items()}
        busy = stack.enter_context(Rough(bare(503, b"{}", b"Retry-After: 50")))
        (folder / "none.mjs").write_text(RUN_NONE)
        done = subprocess.run([NODE, "none.mjs", json.dumps({name: rough.url for name, rough in all.items()}), busy.url], cwd=folder, env={}, capture_output=True, text=True, timeout=40)
        assert (done.returncode, done.stdout) == (0, "AbortError\n"), done.stderr
        assert all["waits for months"].asked == 3 and busy.asked == 1


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_does_not_wait_long_for_the_rest_of_a_small_answer(folder):
    """Without a timeout of the caller's: the service sends an answer of this size at once."""
    with Rough(NONE["stalled"]) as rough:
        (folder / "rest.mjs").write_text(RUN_REST)
        done = subprocess.run([NODE, "rest.mjs", rough.url], cwd=folder, env={}, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout) == (0, f"Away {rough.url} gives no whole answer: no byte for 4 s\n"), done.stderr


RUN_AWAY = """
import Posenc from './posenc.mjs';
for (const url of process.argv.slice(2)) await new Posenc(url).schemes().then(() => console.log('answer'), (error) => console.log(`${error.name} ${error.message}`));
"""


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_says_which_address_gives_no_answer_and_why(folder, server):
    with Rough(bare(502, b"<html>")) as proxy, Rough(b"HTTP/1.1 302 X\r\nLocation: /schemes\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") as loop, Rough(b"") as gone:
        gone.shutdown()
        gone.server_close()
        (folder / "away.mjs").write_text(RUN_AWAY)
        urls = [f"{server.host}:{server.port}", f"{server.host}:{server.port}/", proxy.url, loop.url, gone.url, "ftp://example.org", "http://127.0.0.1:99999"]
        done = subprocess.run([NODE, "away.mjs", *urls], cwd=folder, env={}, capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["answer", "answer"] and len(lines) == 7, (done.stdout, done.stderr)
    for url, line, reason in zip(urls[2:], lines[2:], ("HTTP status 502", "redirect", "ECONNREFUSED", "unknown scheme", "URL")):
        assert line.startswith(f"Away {url} gives no whole answer: ") and reason in line, line


# ---- TLS with a token, in both languages -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    files = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", str(files / "key"), "-out", str(files / "crt")], check=True, capture_output=True)
    with token_server(LINES, "--tls-cert", str(files / "crt"), "--tls-key", str(files / "key")) as server:
        server.certificate, server.url = files / "crt", f"https://{server.host}:{server.port}"
        yield server


def test_python_over_tls_with_a_token(posenc, secure):
    context = ssl.create_default_context(cafile=str(secure.certificate))
    client = posenc.Client(secure.url, READER, context=context)
    assert client.encode(scheme="rope", len=5, head_dim=4).sin[4, 0] == np.float32(np.sin(4.0))
    with pytest.raises(posenc.Refused) as caught:
        posenc.Client(secure.url, context=context, retries=0).schemes()
    assert caught.value.status == 401
    with pytest.raises(posenc.Refused, match="certificate"):
        posenc.Client(secure.url, READER, retries=0).schemes()


SCRIPT = """
import assert from 'node:assert/strict';
import Posenc, { Refusal, version } from './posenc.mjs';
const [url, token] = process.argv.slice(2);
const posenc = new Posenc(url, { token });
assert.match(version, /^\\d/);
const { cos, sin } = await posenc.encode({ scheme: 'rope', len: 3, head_dim: 4 });
assert.deepEqual([cos.dtype, cos.shape, sin.data[2]], ['f32', [3, 2], Math.fround(Math.sin(1))]);
const { positions } = await posenc.encode({ preset: 'qwen2.5-vl', segments: [{ type: 'text', len: 2 }], outputs: ['positions'] });
assert.deepEqual([...positions.data].map(Number), [0, 1, 0, 1, 0, 1]);
const q = { shape: [1, 1, 2, 4], data: Float64Array.from([1, 2, 3, 4, 5, 6, 7, 8]) };
const turned = await posenc.rotate({ scheme: 'rope', layout: 'interleaved', q });
assert.deepEqual([turned.q.dtype, turned.q.shape], ['f64', [1, 1, 2, 4]]);
assert.ok(Math.abs(turned.q.data[4] - (5 * Math.cos(1) - 6 * Math.sin(1))) < 1e-14);
assert.ok((await posenc.check({ scheme: 'rope', layout: 'interleaved', q, q_out: turned.q })).explained);
const pairs = { scheme: 'rope', head_dim: 4, cos, sin };
assert.match(String(await posenc.check(pairs)), /layout_swapped/);
assert.doesNotMatch(String(await posenc.check({ scheme: 'rope', layout: 'interleaved', q, q_out: turned.q })), /would not show/);
const angles = { shape: [3, 2], data: Float32Array.from([0, 0, 1, 0.01, 2, 0.02]) };
const freqs_cis = { shape: [3, 2, 2], data: Float32Array.from([...cos.data].flatMap((c, i) => [c, sin.data[i]])) };
const cos_sin = { shape: [3, 4], data: Float32Array.from([0, 1, 2].flatMap((row) => [cos, sin].flatMap(({ data }) => [...data.slice(2 * row, 2 * row + 2)]))) };
const matrix = { shape: [3, 2, 2, 2], data: Float32Array.from([...cos.data].flatMap((c, i) => [c, -sin.data[i], sin.data[i], c])) };
for (const held of [{ inv_freq: Float32Array.of(1, 0.01) }, { rope_freqs: Float32Array.of(1, 1) }, { angles }, { freqs: angles }, { freqs_cis }, { cos_sin }, { matrix }, { k: q, k_out: turned.q, layout: 'interleaved' }]) {
  assert.ok((await posenc.check({ scheme: 'rope', head_dim: 4, ...held })).explained, Object.keys(held)[0]);
}
await assert.rejects(posenc.check({ scheme: 'rope', layout: 'half', q, q_out: turned.q }), (error) => error.name === 'Mismatch' && /interleaved/.test(error.message));
await assert.rejects(posenc.encode({ scheme: 'rop' }), (error) => error instanceof Refusal && error.status === 422 && error.problem.pointer === '/scheme');
assert.equal((await posenc.schemes('rope')).name, 'rope');
assert.deepEqual([...(await posenc.picture({ scheme: 'rope', len: 8 })).slice(1, 4)], [80, 78, 71]);
assert.equal((await posenc.analyze({ configs: [{ scheme: 'rope', len: 8 }], metrics: ['wavelengths'] })).results.length, 1);
const translation = await posenc.translate({ preset: 'llama-3.1' }, ['vllm', 'mlx']);
assert.deepEqual(translation.targets.map(({ to, exact }) => [to, exact]), [['vllm', true], ['mlx', true]]);
assert.match(String(translation), /^vllm: exact\\n    --hf-overrides '/);
assert.equal((await posenc.explain({ preset: 'llama-3.1' })).dialect, 'preset');
let told = 0;
await posenc.encode({ scheme: 'rope', len: 5000 }, { onProgress: (received) => { told = received; } });
assert.equal(told, 5000 * 32 * 8);
if (token) await assert.rejects(new Posenc(url).schemes(), (error) => error.status === 401);
console.log('all fine');
"""


@pytest.mark.skipif(not NODE, reason="node is not installed")
@pytest.mark.parametrize("kind", ["plain", "worker", "secure"])
def test_the_module_in_node(folder, kind, request):
    (folder / "use.mjs").write_text(SCRIPT)
    (folder / "worker.mjs").write_text("import { Worker } from 'node:worker_threads'; new Worker('./use.mjs', { argv: process.argv.slice(2) });")
    server = request.getfixturevalue("secure" if kind == "secure" else "server")
    arguments = [server.url, READER] if kind == "secure" else [f"http://{server.host}:{server.port}", ""]
    env = {"NODE_EXTRA_CA_CERTS": str(server.certificate)} if kind == "secure" else {}
    done = subprocess.run([NODE, "worker.mjs" if kind == "worker" else "use.mjs", *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "all fine\n"), done.stderr


GGUF_SCRIPT = """
import { readFileSync } from 'node:fs';
import { readGguf } from './posenc.mjs';
const read = async (path) => readGguf(new Blob([readFileSync(path)])).catch((error) => error.message);
console.log(JSON.stringify(await Promise.all(process.argv.slice(2).map(read))));
"""


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_reads_a_gguf_file_as_the_other_client_does(folder, posenc, tmp_path):
    (folder / "read_gguf.mjs").write_text(GGUF_SCRIPT)
    large = gguf.head(gguf.ARCHITECTURES["llama"][0] + [("tokenizer.ggml.merges", "string[]", ["a" * 50] * 60000)], gguf.FREQS)
    files, lying = [*(gguf.file(name) for name in gguf.ARCHITECTURES), *gguf.samples(), gguf.file("llama")[:-40], large], []
    for i, file in enumerate([*(file for _, file in LIES), *LYING]):
        (tmp_path / f"lie{i}.gguf").write_bytes(file)
        try:
            posenc.read_gguf(tmp_path / f"lie{i}.gguf")
            files.append(file)
        except ValueError:
            lying.append(file)
    assert len(files) > 50 and len(lying) > 100
    bad = [b"", b"GGML" + bytes(40), gguf.file("llama")[:300], gguf.head([("general.architecture", "string", "llama")], version=1)]
    paths = [tmp_path / f"{i}.gguf" for i in range(len(files) + len(bad) + len(lying))]
    for path, file in zip(paths, [*files, *bad, *lying]):
        path.write_bytes(file)
    done = subprocess.run([NODE, "read_gguf.mjs", *map(str, paths)], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout, parse_int=float)  # JavaScript has no others
    assert found[: len(files)] == [posenc.read_gguf(path) for path in paths[: len(files)]]
    for message, words in zip(found[len(files) :], ["begin with GGUF", "begin with GGUF", "ends at byte 300", "version 1"]):
        assert words in message
    assert all(isinstance(message, str) and "no GGUF file that can be read" in message for message in found[len(files) :])


@pytest.mark.skipif(not NODE, reason="node is not installed")
def test_the_module_asks_again(folder):
    with Rough(bare(503, b"{}", b"Retry-After: 1"), bare(200, b'{"schemes":[]}', b"Content-Type: application/json")) as rough:
        code = f"import Posenc from './posenc.mjs'; console.log(JSON.stringify(await new Posenc('http://127.0.0.1:{rough.server_address[1]}/').schemes()));"
        done = subprocess.run([NODE, "--input-type=module", "-e", code], cwd=folder, env={}, capture_output=True, text=True, timeout=30)
        assert (done.stdout, rough.asked) == ('{"schemes":[]}\n', 2), done.stderr
        rough.shutdown()


def test_python_3_8_reads_the_module(folder):
    ast.parse((folder / "posenc.py").read_text(), feature_version=(3, 8))


def test_sources_stay_sources():
    """What is handed out is made of these files and the page's own."""
    assert {path.name for path in pathlib.Path(ROOT / "server/clients").iterdir()} == {"README.md", "assemble.sh", "posenc.py", "posenc.js"}
