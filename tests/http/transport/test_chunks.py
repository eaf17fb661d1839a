"""Long JSON, whose chunks are sent without the HTTP library: complete, on kept connections, beside small requests, to
clients that read slowly or disconnect."""
import hashlib
import http.client
import json
import os
import pathlib
import socket
import subprocess

import pytest

from conftest import POSENCD, start_server
from connection import get

TABLE = "/encode?scheme=sinusoidal&dim=128&len=4096"          # 6 MB in several pieces


def raw_answers(server, request, seconds=60):
    """All bytes that a socket returns for a request that closes the connection."""
    with socket.create_connection((server.host, server.port), timeout=seconds) as s:
        s.sendall(request)
        return s.makefile("rb").read()


def dechunked(body):
    """The body and the lengths of its chunks; every byte of the framing is looked at."""
    whole, lengths = [], []
    while True:
        line, body = body.split(b"\r\n", 1)
        n = int(line, 16)
        lengths.append(n)
        assert body[n:n + 2] == b"\r\n"
        if n == 0:
            assert body == b"\r\n"
            return b"".join(whole), lengths[:-1]
        whole.append(body[:n])
        body = body[n + 2:]


def test_same_bytes_in_chunks_and_without(server):
    """HTTP/1.0 has no chunks: its body is the library's, up to the end of the connection."""
    head, body = raw_answers(server, f"GET {TABLE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()).split(b"\r\n\r\n", 1)
    assert b"Transfer-Encoding: chunked" in head and b"Content-Length" not in head
    whole, lengths = dechunked(body)
    assert len(json.loads(whole)["tensors"]["encoding"]["data"]) == 4096
    assert max(lengths) > 100_000, "chunks as small as the library's"
    plain = raw_answers(server, f"GET {TABLE} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode()).split(b"\r\n\r\n", 1)
    assert b"chunked" not in plain[0] and plain[1] == whole


def test_a_kept_connection_and_requests_in_one_go(server):
    """The daemon continues after the last piece: the next answer follows, whether requested later or long before."""
    small = "/encode?scheme=rope&len=3&head_dim=8"
    connection, digests = http.client.HTTPConnection(server.host, server.port, timeout=60), set()
    for _ in range(3):
        connection.request("GET", TABLE)
        digests.add(hashlib.sha256(connection.getresponse().read()).hexdigest())
        connection.request("GET", small)
        assert connection.getresponse().read() == server.get(small).body
    connection.close()
    assert len(digests) == 1
    lines = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n" for path in (TABLE, small, TABLE, small)]
    said = raw_answers(server, "\r\n".join(lines).encode() + b"Connection: close\r\n\r\n")
    assert said.count(b"HTTP/1.1 200 OK\r\n") == 4 and said.endswith(server.get(small).body)
    assert said.count(b"\r\n0\r\n\r\nHTTP/1.1 200 OK") == 2


def test_who_reads_in_drops_gets_all(server):
    """A small receive buffer: every piece leaves in many parts."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        s.settimeout(60)
        s.connect((server.host, server.port))
        s.sendall(f"GET {TABLE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        parts = []
        while part := s.recv(30011):
            parts.append(part)
    assert dechunked(b"".join(parts).split(b"\r\n\r\n", 1)[1])[0] == server.get(TABLE).body


# ---- --tcp-cc ----------------------------------------------------------------------------------------------------------

AVAILABLE = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@pytest.mark.skipif(not AVAILABLE.exists(), reason="no list of congestion controls")
def test_congestion_control():
    """reno is in every kernel."""
    with start_server("--tcp-cc", "reno") as server:
        assert server.get("/healthz").status == 200
        shown = subprocess.run(["ss", "-tin", f"sport = :{server.port}"], capture_output=True, text=True, check=False).stdout if os.access("/usr/bin/ss", os.X_OK) else " reno"
        assert "cubic" not in shown and "bbr" not in shown
    done = subprocess.run([POSENCD, "--port", "0", "--tcp-cc", "wishful"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1 and "--tcp-cc wishful: cannot be used" in done.stderr and "reno" in done.stderr
