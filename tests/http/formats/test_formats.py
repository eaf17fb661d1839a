"""The form of answers: formats agree with each other; Accept and format select one; digits, outputs, data; and the
config posted again."""
import json
import re

import numpy as np
import pytest

import safetensors_reader
from tensors import MIME, from_json, from_npy, from_npz, from_raw, from_safetensors

REQUESTS = [
    {"scheme": "rope", "len": 37, "head_dim": 24},
    {"scheme": "rope", "len": 5, "form": "matrix", "outputs": ["matrix", "inv_freq", "positions"]},
    {"scheme": "sinusoidal", "dim": 33, "offset": -5, "len": 12},
    {"scheme": "alibi", "num_heads": 5, "q_len": 3, "k_len": 9, "causal": True, "outputs": ["bias", "slopes"]},
    {"scheme": "none", "len": 1, "dim": 1},
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r["scheme"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_formats_hold_the_same_values(server, request_, dtype):
    fields = {**request_, "dtype": dtype}
    as_json = from_json(server.ask(**fields))
    as_raw = from_raw(server.ask(**fields, format="raw"))
    as_safetensors = from_safetensors(server.ask(**fields, format="safetensors"))
    assert list(as_json) == list(as_raw) and set(as_json) == set(as_safetensors)
    for name, values in as_raw.items():
        assert values.tobytes() == as_json[name].tobytes(), name  # the shortest text reads back to the same value
        assert values.shape == as_json[name].shape == as_safetensors[name].shape
        assert values.tobytes() == as_safetensors[name].tobytes(), name
        if dtype != "bf16":
            assert from_npz(server.ask(**fields, format="npz"))[name].tobytes() == values.tobytes(), name
            one = server.ask(**{**fields, "outputs": [name]}, format="npy")
            array = from_npy(one)
            assert array.dtype == values.dtype and array.shape == values.shape and array.tobytes() == values.tobytes()


@pytest.mark.parametrize("format_", list(MIME))
def test_content_type_and_length(server, format_):
    response = server.ask(scheme="sinusoidal", len=3, dim=8, format=format_)
    assert response.headers["Content-Type"].split(";")[0] == MIME[format_]
    if format_ != "json":
        assert int(response.headers["Content-Length"]) == len(response.body)
    assert response.headers["X-Request-Id"]


def test_raw_lists_its_tensors(server):
    """Raw bytes and their headers."""
    response = server.ask(scheme="rope", len=2048, format="raw")
    assert response.headers["Posenc-Tensors"] == (
        'cos;dtype="f32";shape="2048,32";offset=0, sin;dtype="f32";shape="2048,32";offset=262144')


def test_safetensors_metadata(server):
    response = server.ask(scheme="rope", len=2, format="safetensors")
    _, metadata, _ = safetensors_reader.loads(response.body)
    assert metadata["format"] == "pt" and metadata["scheme"] == "rope"
    assert json.loads(metadata["config"]) == server.ask(scheme="rope", len=2).json()["config"]


def test_npy_is_aligned_and_plain(server):
    body = server.ask(scheme="sinusoidal", len=3, dim=4, format="npy").body
    assert body[:8] == b"\x93NUMPY\x01\x00"
    n = int.from_bytes(body[8:10], "little")
    assert (10 + n) % 64 == 0 and body[9 + n:10 + n] == b"\n"
    assert body[10:10 + n].startswith(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }")


# ---- Choosing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accept,expected", [
    ("*/*", "json"), ("application/json", "json"), ("application/octet-stream", "raw"),
    ("application/x-npy", "npy"), ("application/vnd.safetensors", "safetensors"),
    ("application/zip", "npz"), ("application/json;q=0.1, application/*;q=0, application/zip;q=0.2", "npz"),
    ("application/json;q=0.5, application/octet-stream", "raw"),
    ("application/octet-stream;q=0.3, application/x-npy;q=0.8", "npy"),
    ("image/gif, application/x-npy;q=0.1", "npy"),
    ("application/json;q=0, */*", "any but json"),
    ("APPLICATION/X-NPY", "npy"),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "json"),  # a browser
])
def test_accept(server, accept, expected):
    response = server.ask(headers={"Accept": accept}, scheme="sinusoidal", len=2, dim=4)
    got = response.headers["Content-Type"].split(";")[0]
    if expected == "any but json":
        assert got != MIME["json"]
    else:
        assert got == MIME[expected]


@pytest.mark.parametrize("accept", ["image/gif", "application/json;q=0", "text/html", "*/*;q=0"])
def test_nothing_acceptable(server, accept):
    response = server.post("/encode", {"scheme": "rope", "len": 2}, {"Accept": accept})
    assert response.status == 406
    assert "application/json" in response.json()["detail"]


def test_format_wins_over_accept(server):
    response = server.ask(headers={"Accept": "application/json"}, scheme="rope", len=2, format="raw")
    assert response.headers["Content-Type"] == MIME["raw"]
    assert server.ask(headers={"Accept": "image/gif"}, scheme="rope", len=2, format="json").status == 200


def test_npy_holds_one_tensor(server):
    response = server.post("/encode", {"scheme": "rope", "len": 2, "format": "npy"})
    assert response.status == 406
    assert "cos" in response.json()["detail"] and "sin" in response.json()["detail"]


# What a scheme answers where `outputs` is not given, as each one's publication would have it: one tensor, unless it takes
# several to say it. Schemes with weights answer theirs, or without any what needs none.
COS_SIN = ["cos", "sin"]
SINUSOIDS = ["encoding", "distances"]
DEFAULTS = [
    *((name, {}, ["encoding"]) for name in ("none", "integer", "binary", "sinusoidal", "fourier")),
    *((name, {"seed": 1}, ["encoding"]) for name in ("learned", "recursive", "floater")),
    ("rope", {}, COS_SIN), ("rope", {"form": "expanded"}, COS_SIN), ("rope", {"form": "concat"}, ["cos_sin"]),
    ("rope", {"form": "complex"}, ["freqs_cis"]), ("rope", {"form": "matrix"}, ["matrix"]), ("xpos", {}, [*COS_SIN, "scale"]),
    *((name, {}, ["bias"]) for name in ("alibi", "kerple", "sandwich")),
    ("alibi", {"form": "asymmetric", "slopes_left": [1] * 8, "slopes_right": [2] * 8}, ["bias"]),
    *((name, {"seed": 1}, ["bias"]) for name in ("t5", "fire", "swin", "swinv2", "beit")),
    ("t5", {}, ["buckets"]), *((name, {}, ["index"]) for name in ("swin", "swinv2", "beit", "shaw", "deberta")),
    *((name, {}, SINUSOIDS) for name in ("transformer_xl", "xlnet", "conformer")),
]


@pytest.mark.parametrize("scheme,fields,names", DEFAULTS, ids=lambda v: v if isinstance(v, str) else None)
def test_one_tensor_is_npy_without_outputs(server, scheme, fields, names):
    request = {"scheme": scheme, "len": 4, **fields}
    tensors = from_raw(server.ask(**request, format="raw"))
    assert list(tensors) == names == list(from_json(server.ask(**request)))
    response = server.post("/encode", {**request, "format": "npy"})
    if len(names) == 1:
        assert from_npy(response).tobytes() == tensors[names[0]].tobytes()
    else:
        assert response.status == 406 and ", ".join(names) in response.json()["detail"]


def test_every_scheme_has_known_defaults(server):
    encoded = {s["name"] for s in server.get("/schemes").json()["schemes"] if "/encode" in s["endpoints"]}
    assert {name for name, _, _ in DEFAULTS} == encoded


def test_slopes_come_when_asked_for(server):
    slopes = [2.0 ** -h for h in range(1, 9)]
    tensors = from_raw(server.ask(scheme="alibi", len=3, outputs=["bias", "slopes"], format="raw"))
    assert list(tensors) == ["bias", "slopes"] and tensors["slopes"].tolist() == slopes
    assert from_npy(server.ask(scheme="alibi", len=3, outputs=["slopes"], format="npy")).tolist() == slopes
    rows = server.get("/schemes/alibi").json()["outputs"]
    assert {row["name"]: row["default"] for row in rows} == {"bias": True, "slopes": False}


def test_npy_has_no_bf16(server):
    response = server.post("/encode", {"scheme": "sinusoidal", "len": 2, "format": "npy", "dtype": "bf16"})
    assert response.status == 406 and "safetensors" in response.json()["detail"]


# ---- Outputs, digits, data ---------------------------------------------------------------------------------------------


def test_outputs_come_in_the_order_asked_for(server):
    for format_, read in (("json", from_json), ("raw", from_raw)):
        response = server.ask(scheme="rope", len=2, outputs=["sin", "inv_freq", "cos"], format=format_)
        assert list(read(response)) == ["sin", "inv_freq", "cos"]


@pytest.mark.parametrize("digits", [0, 1, 3, 9, 17])
def test_digits(server, digits):
    response = server.ask(scheme="sinusoidal", len=20, dim=6, digits=digits, dtype="f64")
    exact = from_raw(server.ask(scheme="sinusoidal", len=20, dim=6, format="raw", dtype="f64"))["encoding"]
    text = response.body.decode()
    numbers = re.findall(r"-?\d+\.\d+", text[text.index('"data"'):])
    expected = [f"{v:.{digits}f}" if digits else f"{v:.0f}.0" for v in exact.ravel().tolist()]
    expected = [t.lstrip("-") if float(t) == 0 else t for t in expected]
    assert numbers == expected


def test_shortest_numbers_are_python_s(server):
    text = server.ask(scheme="sinusoidal", len=200, dim=32, dtype="f64").body.decode()
    values = json.loads(text, parse_float=str)["tensors"]["encoding"]["data"]
    assert all(t == repr(float(t)) for row in values for t in row)


def test_shortest_f32_is_numpy_s(server):
    text = server.ask(scheme="rope", len=300, outputs=["sin"]).body.decode()
    values = json.loads(text, parse_float=str)["tensors"]["sin"]["data"]
    for row in values:
        for t in row:
            digits = np.format_float_scientific(np.float32(t), unique=True)
            assert float(digits) == float(t), t


def test_without_data(server):
    """Configuration and shapes at once, however large the answer would be."""
    answer = server.ask(scheme="rope", len=2 ** 30, data=False).json()
    assert answer["tensors"] == {"cos": {"dtype": "f32", "shape": [2 ** 30, 32]}, "sin": {"dtype": "f32", "shape": [2 ** 30, 32]}}
    assert answer["config"]["head_dim"] == 64


def test_null_means_not_given(server):
    plain = server.ask(scheme="rope", len=2).body
    assert server.ask(scheme="rope", len=2, base=None, format=None, outputs=None, positions=None).body == plain


def test_whole_numbers_are_integers(server):
    plain = server.ask(scheme="rope", len=2, head_dim=4).body
    assert server.post("/encode", b'{"scheme":"rope","len":2.0,"head_dim":4.0e0}').body == plain


@pytest.mark.parametrize("path,sequence,fields", [
    ("/encode", {"len": 9}, {"scheme": "rope", "rope_theta": 5e5, "head_dim": 80, "partial_rotary_factor": 0.3}),
    ("/encode", {"positions": [1, 5.5]}, {"scheme": "rope", "inv_freq": [1, 0.25], "head_dim": 4, "form": "complex"}),
    ("/encode", {"len": 9}, {"scheme": "sinusoidal", "dim": 7, "freq_shift": 1, "odd": "pad"}),
    ("/encode", {"len": 6}, {"scheme": "alibi", "num_heads": 3, "slopes": [1, 0.1, 3e-5], "window": 3}),
    ("/encode", {"len": 6}, {"scheme": "alibi", "form": "asymmetric", "key_mask": [1, 1, 0, 1, 1, 0]}),
    ("/encode", {"len": 6}, {"scheme": "none", "dim": 3, "arith": "float32"}),
    ("/rotate", {"offset": 3, "q": [[1, 2, 3, 4], [5, 6, 7, 8]]}, {"scheme": "rope", "layout": "half", "attention_factor": 1.5}),
])
def test_config_posted_again_gives_the_same_bytes(server, path, sequence, fields):
    first = server.ask(path, **fields, **sequence)
    config = first.json()["config"]
    assert server.ask(path, **config, **sequence).body == first.body


def test_names_may_stand_in_the_query(server):
    plain = server.ask(scheme="rope", len=3, head_dim=8, outputs=["sin"], format="raw")
    asked = server.post("/encode?head_dim=8&outputs=sin&format=raw", {"scheme": "rope", "len": 3})
    assert asked.status == 200 and asked.body == plain.body
    listed = server.post("/encode?positions=0,1,2", {"scheme": "rope", "head_dim": 8, "outputs": ["sin"], "format": "raw"})
    assert listed.status == 200 and listed.body == plain.body


def test_request_id_is_echoed(server):
    for id_ in ("abc", "A.b_c-9", "x" * 128):
        assert server.ask(headers={"X-Request-Id": id_}, scheme="rope", len=1).headers["X-Request-Id"] == id_
    for id_ in ("has space", "x" * 129, "semi;colon"):
        new = server.ask(headers={"X-Request-Id": id_}, scheme="rope", len=1).headers["X-Request-Id"]
        assert new != id_ and re.fullmatch(r"[A-Za-z0-9._-]{1,128}", new)


def test_rows_longer_than_a_piece_and_many_pieces(server):
    """JSON cut into pieces keeps its brackets, whatever the rank."""
    for fields in ({"scheme": "alibi", "num_heads": 3, "q_len": 5, "k_len": 40_000, "outputs": ["bias"]},
                   {"scheme": "alibi", "num_heads": 1, "q_len": 1, "k_len": 200_001, "outputs": ["bias"]},
                   {"scheme": "rope", "len": 3000, "form": "matrix", "head_dim": 32},
                   {"scheme": "rope", "len": 100_003, "outputs": ["positions"]}):
        as_json, as_raw = from_json(server.ask(**fields)), from_raw(server.ask(**fields, format="raw"))
        for name in as_raw:
            assert as_json[name].tobytes() == as_raw[name].tobytes()
