"""The client libraries that the server hands out: how they are delivered, and posenc.py at work, against NumPy in float64, and in a notebook."""
import ast
import base64
import html
import pathlib
import re

import numpy as np
import pytest

import png_reader
from conftest import ROOT
from connection import at_once
from handed_out import GOOD, Rough, TYPES, folder, rotary  # noqa: F401
from token_files import LINES, token_server


@pytest.mark.parametrize("name", TYPES)
def test_delivery(server, name):
    answer = server.get(f"/clients/{name}")
    assert answer.status == 200 and answer.headers["Content-Type"] == TYPES[name] and answer.headers["Cache-Control"] == "no-cache"
    version = server.get("/version").json()["version"]
    assert f'"{version}"'.encode() in answer.body.replace(b"'", b'"') and b'"VERSION"' not in answer.body


def test_open_without_a_token_and_to_other_pages():
    with token_server(LINES, "--cors-origin", "https://vis.example.org") as server:
        answer = server.get("/clients/posenc.js", {"Origin": "https://vis.example.org"})
        assert answer.status == 200 and answer.headers["Access-Control-Allow-Origin"] == "https://vis.example.org"


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
    for dtype, unit in ("f8_e4m3", 2.0**-4), ("f8_e5m2", 2.0**-3):
        eighth = client.encode(scheme="rope", len=9, head_dim=8, dtype=dtype).cos
        assert eighth.dtype == np.float32 and (np.abs(eighth - np.cos(rotary(9, 8))) <= np.maximum(unit * np.abs(eighth), 2.0**-10)).all()
    assert client.encode(scheme="rope", positions=np.array([7, 3]), head_dim=4).cos[0, 0] == np.float32(np.cos(7))
    assert client.encode(scheme="alibi", num_heads=np.int64(2), len=3, causal=None).bias.shape == (2, 3, 3)


def test_f8_goes_and_comes(client, posenc):
    """1.0 in either type, and what PyTorch calls them."""
    for name, code in ("F8_E4M3", 0x38), ("F8_E5M2", 0x3C):
        ones = np.full((1, 8), code, "u1")
        turned = client.rotate(q=posenc._Bits(ones, name), scheme="rope", offset=0).q
        assert turned.dtype == np.float32 and (turned == 1).all()


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
    assert client.check(q=q, q_out=halves, **believed).fits and client.check(query_states=q, q_embed=halves, **believed).fits
    with pytest.raises(posenc.Mismatch, match="NaN or infinite"):
        client.check(q=q, q_out=np.where(q > 2, np.nan, halves), **believed)
    pairs = q.copy()
    pairs[..., 0::2], pairs[..., 1::2] = (q[..., 0::2] * np.cos(angles) - q[..., 1::2] * np.sin(angles), q[..., 1::2] * np.cos(angles) + q[..., 0::2] * np.sin(angles))
    with pytest.raises(posenc.Mismatch, match="layout interleaved; the configuration has half") as caught:
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
        answer = posenc.Client(rough.url, retries=0).encode(scheme="rope", len=2)
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


def test_many_threads_share_a_client(client):
    found = {}

    def ask(i):
        for j in range(20):
            found[i, j] = client.encode(scheme="rope", len=1, offset=100 * i + j, head_dim=2, dtype="f64").cos[0, 0]

    at_once(ask, range(8))
    assert len(found) == 160 and all(abs(value - np.cos(float(100 * i + j))) < 1e-15 for (i, j), value in found.items())


def test_python_3_8_reads_the_module(folder):
    ast.parse((folder / "posenc.py").read_text(), feature_version=(3, 8))


def test_sources_stay_sources():
    """What is handed out is made of these files and the page's own."""
    assert {path.name for path in pathlib.Path(ROOT / "server/clients").iterdir()} == {"README.md", "assemble.sh", "posenc.py", "posenc.js", "posenc_pytest.py", "wheel.py"}
