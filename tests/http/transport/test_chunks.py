"""Long JSON, whose chunks are sent without the HTTP library: complete, on kept connections, beside small requests, to
clients that read slowly or disconnect."""
import hashlib
import http.client
import json
import socket

from connection import ended

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


# ---- --tcp-cc ----------------------------------------------------------------------------------------------------------

def test_a_congestion_control_that_is_not_there_is_refused():
    """One that is: tests/server/transport/test_listen.c."""
    status, said = ended("--tcp-cc", "wishful")
    assert status == 1 and "--tcp-cc wishful: cannot be used" in said and "reno" in said
