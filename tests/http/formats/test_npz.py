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
from tensors import from_npz, from_raw
from test_streaming import GIB, HUGE, MIB, Stream, digest

PIECES = {"scheme": "rope", "len": 40_000, "head_dim": 128, "outputs": ["sin", "cos", "inv_freq"]}
REQUESTS = [{"scheme": "t5", "len": 40, "num_heads": 2, "seed": 0, "outputs": ["bias", "buckets"]}, {"scheme": "none", "len": 1, "dim": 1}, PIECES, {"scheme": "rope", "len": 2048}]


def test_unzip_and_npy(server, tmp_path):
    """Info-ZIP reads every entry, which is the .npy answer; a tensor without elements has an entry too."""
    for i, fields in enumerate(REQUESTS):
        body = server.ask(**fields, format="npz").body
        (tmp_path / f"{i}.npz").write_bytes(body)
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            for name in archive.namelist():
                assert archive.read(name) == server.ask(**{**fields, "outputs": [name[:-4]]}, format="npy").body
        if not shutil.which("unzip"):
            continue
        done = subprocess.run(["unzip", "-t", tmp_path / f"{i}.npz"], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr and "No errors" in done.stdout, done.stdout[-1000:] + done.stderr
    found = from_npz(server.ask(scheme="rope", len=5, slice=[[3, 3]], format="npz"))
    assert {name: array.shape for name, array in found.items()} == {"cos": (0, 32), "sin": (0, 32)}


def test_read_from_front_to_back(server):
    """Without the directory: the local headers say the sizes."""
    stream = Stream(server, {**PIECES, "format": "npz"})
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
