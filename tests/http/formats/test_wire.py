"""All outputs together: every format, dtype and part agrees with the JSON of f64; answers of 8 GiB in each format take
little memory."""
import http.client
import json

import numpy as np
import pytest

from conftest import SANITIZED, start_server
from tensors import MIME, from_json, from_npy, from_npz, from_raw, from_safetensors, to_bf16

GIB, MIB = 1 << 30, 1 << 20
READERS = {"json": from_json, "raw": from_raw, "npz": from_npz, "safetensors": from_safetensors}
NARROW = {"f64": lambda x: x, "f32": lambda x: x.astype("f4"), "f16": lambda x: x.astype("f2"), "bf16": to_bf16}

REQUESTS = [
    {"scheme": "rope", "len": 50, "head_dim": 20},
    {"scheme": "sinusoidal", "dim": 33, "len": 64, "offset": 1000},
    {"scheme": "alibi", "num_heads": 3, "q_len": 20, "k_len": 26, "causal": True},
    {"scheme": "kerple", "num_heads": 2, "len": 30},
    {"scheme": "fourier", "positions": [[0.25 * i for i in range(40)]], "num_freqs": 4},
]
SLICES = [None, [1], [[1, 9]], [[None, None, 2]], [[-4, None]], [[5, 5]]]


def read(server, format_, request):
    """Tensors by name, whatever holds them; npy one at a time."""
    if format_ != "npy":
        return READERS[format_](server.ask(**request, format=format_))
    names = list(server.ask(**request, data=False).json()["tensors"])
    cut = request["slice"]
    return {name: from_npy(server.ask(**{**request, "outputs": [name], "slice": cut}, format="npy")) for name in names}


@pytest.mark.parametrize("cut", SLICES, ids=str)
@pytest.mark.parametrize("dtype", list(NARROW))
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r["scheme"])
def test_every_format_says_the_same(server, request_, dtype, cut):
    request = {**request_, "slice": cut, "dtype": dtype}
    truth = from_json(server.ask(**{**request, "dtype": "f64"}, format="json"))
    for format_ in MIME:
        if format_ not in (*READERS, "npy") or (dtype == "bf16" and format_ in ("npy", "npz")):
            continue
        got = read(server, format_, request)
        assert set(got) == set(truth), format_
        for name, exact in truth.items():
            assert got[name].shape == exact.shape, (format_, name)
            assert got[name].tobytes() == NARROW[dtype](exact).tobytes(), (format_, name)


# ---- 8 GiB -------------------------------------------------------------------------------------------------------------

LARGE = {"json": {"scheme": "alibi", "num_heads": 8, "len": 11_000, "digits": 4},  # 968 million numbers of 10 bytes
         "npy": {"scheme": "sinusoidal", "dim": 1024, "len": 2 ** 21}, "npz": {"scheme": "rope", "head_dim": 256, "len": 2 ** 23},
         "safetensors": {"scheme": "rope", "head_dim": 256, "len": 2 ** 23}, "raw": {"scheme": "alibi", "num_heads": 32, "len": 8192}}


def peak(format_, n_bytes):
    """Resident memory at most while n_bytes are read, and how long the answer says it is."""
    with start_server() as server:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        connection.request("POST", "/encode", json.dumps({**LARGE[format_], "format": format_}))
        answer, block, n = connection.getresponse(), memoryview(bytearray(MIB)), 0
        assert answer.status == 200
        while n < n_bytes and (got := answer.readinto(block[:min(MIB, n_bytes - n)])):
            n += got
        length = answer.headers["Content-Length"]
        connection.close()
        assert n == n_bytes
        return server.memory(), int(length) if length else None


@pytest.mark.parametrize("format_", list(LARGE))
def test_8_gib_in_little_memory(format_):
    """Reads a part of it: the memory held does not grow with the bytes sent. `make test-slow` reads all."""
    memory, length = peak(format_, GIB // 4 if not SANITIZED else GIB // 64)
    assert length is None or length >= 8 * GIB
    assert SANITIZED or memory < 64 * MIB, f"{memory / MIB:.1f} MiB"


@pytest.mark.slow
@pytest.mark.parametrize("format_", list(LARGE))
def test_all_of_8_gib_in_little_memory(format_):
    memory, _ = peak(format_, 8 * GIB)
    assert memory < 64 * MIB, f"{memory / MIB:.1f} MiB"
