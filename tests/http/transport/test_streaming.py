"""Large answers: constant memory, and the same bytes whatever the workers and the instruction set."""
import hashlib
import http.client
import json
import os
import time

import numpy as np
import pytest

from conftest import SANITIZED, start_server

GIB, MIB = 1 << 30, 1 << 20
HUGE = {"scheme": "alibi", "num_heads": 32, "len": 8192, "format": "raw", "outputs": ["bias"]}
BLOCK = 4 * MIB


class Stream:
    """An answer read block by block into one buffer, which a client must not hold whole."""

    def __init__(self, server, fields):
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        self.connection.request("POST", "/encode", json.dumps(fields))
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.length = int(self.answer.headers.get("Content-Length", 0))  # JSON says none
        self.buffer = memoryview(bytearray(BLOCK))

    def read(self, n_bytes, seconds=60.0, look=lambda block: None):
        """At most n_bytes, for at most that long; how many arrived."""
        n, end = 0, time.monotonic() + seconds
        while n < n_bytes and time.monotonic() < end:
            got = self.answer.readinto(self.buffer[:min(BLOCK, n_bytes - n)])
            if got == 0:
                break
            look(self.buffer[:got])
            n += got
        return n

    def close(self):
        self.connection.close()


@pytest.mark.parametrize("fields, n_bytes", [(HUGE, GIB // 8 if SANITIZED else GIB), pytest.param(HUGE, 8 * GIB, marks=pytest.mark.slow),
                                             ({"scheme": "sinusoidal", "len": 50_000}, 64 * MIB)])
def test_8_gib_take_little_memory(fields, n_bytes):
    """Read for a minute at most."""
    with start_server() as server:
        stream = Stream(server, fields)
        assert stream.length == (8 * GIB if fields is HUGE else 0)
        began = time.monotonic()
        n = stream.read(n_bytes, 60)
        peak = server.memory()
        stream.close()
        assert n == n_bytes or time.monotonic() - began >= 60, "the stream ended early"
        assert SANITIZED or peak < 64 * MIB, f"peak resident memory {peak / MIB:.1f} MiB"
        assert server.get("/healthz").status == 200


def test_a_slow_client_holds_little():
    """Few pieces are computed ahead: a client that does not read costs a window, not the whole answer."""
    with start_server() as server:
        before = server.memory("VmRSS")
        streams = [Stream(server, HUGE) for _ in range(8)]
        time.sleep(1)
        grown = server.memory("VmRSS") - before
        for stream in streams:
            stream.close()
        assert SANITIZED or grown < 64 * MIB, f"{grown / MIB:.1f} MiB for 8 clients"


def digest(server, fields):
    stream, sha = Stream(server, fields), hashlib.sha256()
    assert stream.read(stream.length, 60, sha.update) == stream.length
    stream.close()
    return sha.hexdigest()


REQUESTS = [
    {"scheme": "sinusoidal", "dim": 384, "len": 20_000, "offset": -5, "format": "raw"},
    {"scheme": "sinusoidal", "dim": 77, "positions": [i * 1.37 for i in range(3000)], "format": "raw", "dtype": "f64"},
    {"scheme": "rope", "head_dim": 128, "len": 30_000, "base": 5e5, "format": "raw", "form": "expanded", "dtype": "bf16"},
    {"scheme": "rope", "offset": 2 ** 33, "len": 10_000, "format": "raw", "dtype": "f16"},
    {"scheme": "fourier", "num_freqs": 8, "multiply_pi": True, "offset": 1, "len": 50_000, "format": "raw", "dtype": "f16"},
    {"scheme": "alibi", "num_heads": 12, "len": 1024, "causal": True, "format": "raw"},
]


def test_same_bytes_with_any_workers_and_instruction_set():
    """Base, AVX2, AVX-512; one worker, two, four, on several loops: no value depends on who computed it."""
    def digests(*flags):
        with start_server(*flags) as server:
            return [digest(server, fields) for fields in REQUESTS], server.get("/version").json()["isa"]

    expected, best = digests()
    for workers, loops in (("1", "3"), ("2", "1"), ("4", "2")):
        assert digests("--workers", workers, "--io-threads", loops)[0] == expected
    for isa in ["base", "avx2", "avx512"][:["base", "avx2", "avx512"].index(best) + 1]:
        got, used = digests("--kernels", isa)
        assert used == isa and got == expected, isa


@pytest.mark.skipif(SANITIZED or (os.cpu_count() or 1) < 2, reason="a measure of speed")
def test_alone_and_among_many_a_table_has_the_same_bytes(server):
    """A single stream computes its pieces where they are sent, one among many uses workers; a range cuts the first
    and the last piece."""
    fields = {"scheme": "sinusoidal", "dim": 128, "len": 16001, "format": "raw"}
    alone = Stream(server, fields)
    whole = bytearray()
    alone.read(alone.length, look=whole.extend)
    assert len(whole) == 16001 * 128 * 4
    many = [Stream(server, fields) for _ in range(24)]
    parts = [bytearray() for _ in many]
    for _ in range(alone.length // MIB + 1):
        for stream, part in zip(many, parts):
            stream.read(MIB, look=part.extend)
    assert all(part == whole for part in parts)
    query = "/encode?scheme=sinusoidal&dim=128&len=16001&format=raw"
    ranged = server.get(query, headers={"Range": "bytes=524289-6000001"})
    assert ranged.status == 206 and ranged.body == whole[524289:6000002]
    for stream in [alone, *many]:
        stream.close()


ROW_BYTES = 128 * 4
PIECE_ROWS = 1024  # 512 KiB


@pytest.mark.parametrize("made", ["run", "list"])
def test_lengths_around_pieces_are_parts_of_one_table(server, made):
    """Answers of one piece, of a window's, of more: however they leave, on one kept connection, the rows are the same."""
    most = 4 * PIECE_ROWS
    positions = {"run": {"len": most}, "list": {"positions": [i + 0.25 for i in range(most)]}}[made]
    fields = {"scheme": "sinusoidal", "dim": 128, "format": "raw", "dtype": "f32", **positions}
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)

    def rows(n):
        connection.request("POST", "/encode", json.dumps({**fields, "slice": [[0, n]]}))
        answer = connection.getresponse()
        assert answer.status == 200 and int(answer.headers["Content-Length"]) == n * ROW_BYTES
        return answer.read()

    whole = rows(most)
    angles = (np.arange(most)[:, None] + (made == "list") * 0.25) * 10000.0 ** (-np.arange(64) / 64)
    assert np.abs(np.frombuffer(whole, "<f4").reshape(most, 128)[:, 1::2] - np.cos(angles)).max() < 1e-7
    for n in [127, 128, 129, *(k * PIECE_ROWS + d for k in (1, 2, 3) for d in (-1, 0, 1))]:
        assert rows(n) == whole[:n * ROW_BYTES], n
    connection.close()
