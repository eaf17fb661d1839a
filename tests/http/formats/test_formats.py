"""All formats together: each, read by its own strict reader, has the numbers of the JSON of f64, for every dtype and part; answers of 8 GiB
in each format take little memory. How a form is chosen and written: ../cases/formats.jsonl."""
import http.client
import io
import json
import zipfile

import pytest

import run
from conftest import SANITIZED, start_server
from tensors import MIME, from_json, from_npy, from_npz, from_raw, from_safetensors, to_bf16

GIB, MIB = 1 << 30, 1 << 20


def from_zip(answer):
    """By NumPy and zipfile; Info-ZIP reads one in test_npz.py."""
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.testzip() is None and all(name.endswith(".npy") for name in archive.namelist())
    return from_npz(answer)


READERS = {"json": from_json, "raw": from_raw, "npz": from_zip, "safetensors": from_safetensors}
NARROW = {"f64": lambda x: x, "f32": lambda x: x.astype("f4"), "f16": lambda x: x.astype("f2"), "bf16": to_bf16}

REQUESTS = [
    {"scheme": "rope", "len": 50, "head_dim": 20},
    {"scheme": "rope", "len": 14, "form": "matrix", "head_dim": 8},
    {"scheme": "sinusoidal", "dim": 33, "len": 64, "offset": 1000},
    {"scheme": "alibi", "num_heads": 3, "q_len": 20, "k_len": 26, "causal": True, "outputs": ["bias"]},
    {"scheme": "kerple", "num_heads": 2, "len": 30},
    {"scheme": "fourier", "positions": [[0.25 * i for i in range(40)]], "num_freqs": 4},
]
SLICES = [None, [1], [[1, 9]], [[None, None, 2]], [[-4, None]], [[5, 5]]]


def read(server, format_, request):
    """Tensors by name, whatever holds them; npy one at a time."""
    if format_ != "npy":
        return READERS[format_](server.ask(**request, format=format_))
    names = list(server.ask(**request, data=False).json()["tensors"])
    return {name: from_npy(server.ask(**{**request, "outputs": [name]}, format="npy")) for name in names}


@pytest.mark.parametrize("cut", SLICES, ids=str)
@pytest.mark.parametrize("dtype", list(NARROW))
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r["scheme"])
def test_every_format_says_the_same(server, request_, dtype, cut):
    request = {**request_, "slice": cut, "dtype": dtype}
    truth = from_json(server.ask(**{**request, "dtype": "f64"}, format="json"))
    for format_ in MIME:
        if dtype == "bf16" and format_ in ("npy", "npz"):
            continue
        got = read(server, format_, request)
        assert list(got) == list(truth) or format_ == "safetensors" and set(got) == set(truth), format_
        for name, exact in truth.items():
            assert got[name].shape == exact.shape, (format_, name)
            assert got[name].tobytes() == NARROW[dtype](exact).tobytes(), (format_, name)


def test_every_scheme_has_known_defaults(server):
    encoded = {scheme["name"] for scheme in server.get("/schemes").json()["schemes"] if "/encode" in scheme["endpoints"]}
    assert {row["request"]["scheme"] for row in run.every("formats") if row["id"].startswith("default-")} == encoded


# ---- 8 GiB -----------------------------------------------------------------------------------------------------------------

LARGE = {"json": {"scheme": "alibi", "num_heads": 8, "len": 11_000, "digits": 4},  # 968 million numbers of 10 bytes
         "npy": {"scheme": "sinusoidal", "dim": 1024, "len": 2 ** 21}, "npz": {"scheme": "rope", "head_dim": 256, "len": 2 ** 23},
         "safetensors": {"scheme": "rope", "head_dim": 256, "len": 2 ** 23}, "raw": {"scheme": "alibi", "num_heads": 32, "len": 8192}}


@pytest.mark.parametrize("share", [GIB // 4 if not SANITIZED else GIB // 64, pytest.param(8 * GIB, marks=pytest.mark.slow)])
@pytest.mark.parametrize("format_", list(LARGE))
def test_8_gib_in_little_memory(format_, share):
    """Reads a part of it: the memory held does not grow with the bytes sent. `make test-slow` reads all."""
    with start_server() as server:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        connection.request("POST", "/encode", json.dumps({**LARGE[format_], "format": format_}))
        answer, block, n = connection.getresponse(), memoryview(bytearray(MIB)), 0
        assert answer.status == 200
        while n < share and (got := answer.readinto(block[:min(MIB, share - n)])):
            n += got
        length, memory = answer.headers["Content-Length"], server.memory()
        connection.close()
    assert n == share and (length is None or int(length) >= 8 * GIB)
    assert SANITIZED or memory < 64 * MIB, f"{memory / MIB:.1f} MiB"
