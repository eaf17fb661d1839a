"""npz: NumPy, Python's zipfile and Info-ZIP read it; zip64; constant memory; the same bytes whichever thread computes
them; clients that disconnect."""
import io
import random
import shutil
import subprocess
import time
import zipfile

import numpy as np
import pytest

import zip_reader
from conftest import SANITIZED, start_server
from tensors import from_npz, from_raw, multipart, npy
from test_streaming import GIB, HUGE, MIB, Stream, digest

REQUESTS = [
    {"scheme": "rope", "len": 37, "head_dim": 24, "outputs": ["cos", "sin", "inv_freq", "positions", "rope_delta"]},
    {"scheme": "sinusoidal", "dim": 33, "offset": -5, "len": 12},
    {"scheme": "alibi", "num_heads": 5, "q_len": 3, "k_len": 9, "causal": True, "outputs": ["slopes", "bias"]},
    {"scheme": "t5", "len": 40, "num_heads": 2, "seed": 0, "outputs": ["bias", "buckets"]},
    {"scheme": "none", "len": 1, "dim": 1},
    {"scheme": "rope", "len": 40_000, "head_dim": 128, "outputs": ["sin", "cos", "inv_freq"]},  # many pieces
    {"scheme": "rope", "len": 2048},  # a piece each
]


def check_with_unzip(body, tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(body)
    done = subprocess.run(["unzip", "-t", path], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr and "No errors" in done.stdout, done.stdout[-1000:] + done.stderr


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("i", range(len(REQUESTS)))
def test_three_readers(server, i, dtype, tmp_path):
    fields = {**REQUESTS[i], "dtype": dtype}
    response, raw = server.ask(**fields, format="npz"), from_raw(server.ask(**fields, format="raw"))
    assert response.headers["Content-Type"] == "application/zip"
    assert int(response.headers["Content-Length"]) == len(response.body)
    tensors = from_npz(response)
    assert list(tensors) == list(raw)
    for name, values in raw.items():
        got = tensors[name]
        assert got.dtype == values.dtype and got.shape == values.shape and got.tobytes() == values.tobytes(), name
    with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [f"{name}.npy" for name in raw]
    if shutil.which("unzip"):
        check_with_unzip(response.body, tmp_path)


def test_every_dtype_and_a_scalar(server):
    tensors = from_npz(server.ask(scheme="rope", len=3, outputs=["cos", "inv_freq", "positions", "rope_delta"], format="npz"))
    assert {k: v.dtype.str for k, v in tensors.items()} == {
        "cos": "<f4", "inv_freq": "<f8", "positions": "<i8", "rope_delta": "<i8"}
    assert tensors["rope_delta"].shape == ()
    assert from_npz(server.ask(scheme="t5", len=3, outputs=["buckets"], format="npz"))["buckets"].dtype.str == "<i4"


def test_entries_are_the_npy_answers(server):
    for name in ("cos", "sin"):
        body = server.ask(scheme="rope", len=5, outputs=["cos", "sin"], format="npz").body
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            assert archive.read(f"{name}.npy") == server.ask(scheme="rope", len=5, outputs=[name], format="npy").body


def test_rotated_files_and_empty_ones(server):
    """Rotated tensors as npz; a tensor without elements has an entry too."""
    q, k = np.ones((2, 5, 8), "f4"), np.ones((0, 5, 8), "f4")
    for parts in ({"q": npy(q)}, {"q": npy(q), "k": npy(k)}, {"q": npy(k), "k": npy(k)}):
        body, headers = multipart(request='{"scheme":"rope","format":"npz"}', **parts)
        response = server.post("/rotate", body, headers)
        if response.status == 422:  # an endpoint may refuse empty tensors
            assert "k" in parts
            continue
        tensors = from_npz(response)
        assert set(tensors) == set(parts)
        assert all(tensors[name].shape == np.load(io.BytesIO(parts[name])).shape for name in parts)
        with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
            assert archive.testzip() is None


def test_attention(server):
    """Pieces that are whole heads or parts of one."""
    fields = {"scheme": "alibi", "num_heads": 8, "tokens": [f"t{i % 37}" for i in range(611)], "outputs": ["probs", "output", "row_entropy"]}
    raw = from_raw(server.ask("/attention", **fields, format="raw"))
    tensors = from_npz(server.ask("/attention", **fields, format="npz"))
    assert list(tensors) == list(raw)
    assert all(tensors[name].tobytes() == raw[name].tobytes() for name in raw)


def test_accept(server):
    assert server.ask(headers={"Accept": "application/zip"}, scheme="rope", len=2).body[:4] == b"PK\3\4"
    preferred = {"Accept": "application/x-npy;q=0.5, application/zip;q=0.9, application/json;q=0.1"}
    assert server.ask(headers=preferred, scheme="rope", len=2).headers["Content-Type"] == "application/zip"


@pytest.mark.parametrize("outputs", [None, ["inv_freq", "sin"]])
def test_no_bf16(server, outputs):
    response = server.post("/encode", {"scheme": "rope", "len": 2, "format": "npz", "dtype": "bf16", "outputs": outputs})
    assert response.status == 406 and "safetensors" in response.json()["detail"]
    assert response.json()["pointer"] == "/dtype"


def test_read_from_front_to_back(server):
    """Without the directory: the local headers say the sizes."""
    stream = Stream(server, {**REQUESTS[5], "format": "npz"})
    entries = zip_reader.read(stream.read, stream.length)
    stream.close()
    assert [(e[0], e[4]) for e in entries] == [("sin.npy", False), ("cos.npy", False), ("inv_freq.npy", False)]
    assert b"'shape': (40000, 64)" in entries[0][5]


# ---- Over 4 GiB --------------------------------------------------------------------------------------------------------


def check_large(fields, expected):
    """expected: name, bytes of elements, is the entry zip64."""
    with start_server() as server:
        stream = Stream(server, {**fields, "format": "npz"})
        assert stream.length > 4 * GIB
        began = time.monotonic()
        entries = zip_reader.read(lambda n, look: stream.read(n, 300, look), stream.length)
        print(f"{stream.length / GIB:.2f} GiB in {time.monotonic() - began:.1f} s, peak {server.memory() / MIB:.1f} MiB")
        assert [(e[0], e[1] - 128, e[4]) for e in entries] == expected
        assert SANITIZED or server.memory() < 64 * MIB
        stream.close()


@pytest.mark.skipif(SANITIZED, reason="the same path as of shorter answers, for minutes")
def test_a_long_entry_and_one_behind_it():
    check_large({"scheme": "alibi", "num_heads": 17, "len": 8192, "outputs": ["bias", "slopes"]},
                [("bias.npy", 17 * 4 * 8192 ** 2, True), ("slopes.npy", 17 * 4, False)])


@pytest.mark.slow
def test_short_entries_that_are_long_together():
    """No entry needs zip64, the offset of the last and of the directory do."""
    n = 6_000_000
    check_large({"scheme": "rope", "len": n, "head_dim": 192, "outputs": ["cos", "sin", "inv_freq"]},
                [("cos.npy", n * 96 * 4, False), ("sin.npy", n * 96 * 4, False), ("inv_freq.npy", 96 * 8, False)])


@pytest.mark.slow
@pytest.mark.parametrize("size,is_long", [(2 ** 32 - 2, False), (2 ** 32, True)])
def test_the_edge_of_4_gib(size, is_long):
    """2^32-1 and larger sizes need zip64; the .npy head has 128 bytes."""
    check_large({"scheme": "none", "len": (size - 128) // 2, "dim": 1, "dtype": "f16"}, [("encoding.npy", size - 128, is_long)])


@pytest.mark.slow
def test_numpy_and_unzip_read_more_than_4_gib(tmp_path):
    if shutil.disk_usage(tmp_path).free < 12 * GIB:
        pytest.skip("no room for the file")
    with start_server() as server:
        stream = Stream(server, {"scheme": "alibi", "num_heads": 17, "len": 8192, "outputs": ["bias", "slopes"], "format": "npz"})
        with open(tmp_path / "a.npz", "wb") as file:
            assert stream.read(stream.length, 300, file.write) == stream.length
        stream.close()
        slopes = from_raw(server.ask(scheme="alibi", num_heads=17, len=1, outputs=["slopes"], format="raw"))["slopes"]
    assert subprocess.run(["unzip", "-tq", tmp_path / "a.npz"]).returncode == 0
    with np.load(tmp_path / "a.npz") as archive:
        assert np.array_equal(archive["slopes"], slopes)
    with zipfile.ZipFile(tmp_path / "a.npz") as archive, archive.open("bias.npy") as file:
        np.lib.format.read_magic(file)
        assert np.lib.format.read_array_header_1_0(file)[0] == (17, 8192, 8192)


# ---- Memory, workers, clients that leave -------------------------------------------------------------------------------


def test_takes_little_memory():
    with start_server() as server:
        stream = Stream(server, {**HUGE, "format": "npz"})
        n_bytes = GIB // 2 if not SANITIZED else GIB // 16
        assert stream.read(n_bytes, 60) == n_bytes
        peak = server.memory()
        stream.close()
        assert SANITIZED or peak < 64 * MIB, f"peak resident memory {peak / MIB:.1f} MiB"


def test_same_bytes_with_any_workers():
    def digests(*flags):
        with start_server(*flags) as server:
            return [digest(server, {**fields, "format": "npz"}) for fields in REQUESTS]

    expected = digests()
    for workers in (1, 2, 4):
        assert digests("--workers", str(workers)) == expected


def test_clients_that_stop_or_leave():
    """Some stop reading and stay, some leave: in front of a descriptor, within it, behind it, anywhere."""
    fields = {"scheme": "rope", "len": 20_000, "head_dim": 128, "format": "npz"}
    entry = 37 + 128 + 20_000 * 64 * 4
    chosen = random.Random(1)
    with start_server() as server:
        before = server.memory("VmRSS")
        staying = [Stream(server, {**HUGE, "format": "npz", "outputs": ["bias", "slopes"]}) for _ in range(8)]
        for n in [1, entry - 1, entry, entry + 7, entry + 16, *(chosen.randrange(2 * entry) for _ in range(20))]:
            stream = Stream(server, fields)
            assert stream.read(n, 60) == n
            stream.close()
        grown = server.memory("VmRSS") - before
        assert SANITIZED or grown < 64 * MIB, f"{grown / MIB:.1f} MiB"
        tensors = from_npz(server.ask(**fields))
        assert tensors["cos"][0].tolist() == [1.0] * 64
        for stream in staying:
            stream.close()
        assert server.get("/healthz").status == 200
