"""Ambiguous requests: RFC 9112's grammar, applied strictly, of the table cases/heads.jsonl.

Each request is sent unchanged to a real server, followed by a valid request on the same connection. A refused request
gets the status of its row and one JSON problem, and the request behind it is never served: the connection closes. After
an accepted request the one behind it is answered too, which shows that both ends agree on where the first one ended."""
import itertools
import json
import re
import socket
import time

import pytest

import heads
from conftest import Stopwatch, start_server

BEHIND = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: behind\r\nConnection: close\r\n\r\n"
GOOD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: before\r\n\r\n"
SECONDS = 20


def head(*lines, line="GET /healthz HTTP/1.1", host="Host: localhost"):
    return "\r\n".join([line, *([host] if host else []), *lines, "", ""]).encode("latin1")


def post(*lines, body=b""):
    return head(*lines, line="POST /encode HTTP/1.1") + body


ROWS = heads.rows()
REFUSED = [(id, raw, expect["status"]) for id, raw, expect in ROWS if "status" in expect and "goes_on" not in expect]
SERVED = [(id, raw, expect["status"]) for id, raw, expect in ROWS if "goes_on" in expect]


def answers(data):
    """The answers in the bytes of a connection, as (status, headers, body); their bodies have lengths."""
    found = []
    while data:
        top, end, data = data.partition(b"\r\n\r\n")
        assert end and top.startswith(b"HTTP/1.1 "), (top, data)
        lines = top.decode("latin1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        assert len(headers) == len(lines) - 1, "a header came twice"
        if lines[0].split()[1] == "100":
            continue
        n = int(headers["content-length"])
        assert len(data) >= n
        found.append((int(lines[0].split()[1]), headers, data[:n]))
        data = data[n:]
    return found


def talk(server, pieces):
    """All bytes from the server until it closes. It may close while the test still writes."""
    said = []
    with socket.create_connection((server.host, server.port), timeout=SECONDS) as s:
        try:
            for i, piece in enumerate(pieces):
                time.sleep(0.0003 if i else 0)
                s.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            while got := s.recv(65536):
                said.append(got)
        except ConnectionResetError:
            pass
    return answers(b"".join(said))


def whole(raw):
    return [raw + BEHIND]


def second(raw):
    """On a connection that has served already: no first bytes to look at any more."""
    return [GOOD + raw + BEHIND]


def in_pieces(raw):
    """Cut where it hurts: within line ends, names and numbers. Long ones in fewer pieces."""
    step = 1 + len(raw) // 150
    return [raw[i:i + step] for i in range(0, len(raw), step)] + [BEHIND]


WAYS = [whole, second, in_pieces]


@pytest.mark.parametrize("raw,status", [pytest.param(raw, status, id=id) for id, raw, status in REFUSED])
def test_refused(server, raw, status):
    for way in WAYS:
        said = talk(server, way(raw))
        if way is second:
            assert said.pop(0)[1]["x-request-id"] == "before"
        assert len(said) == 1, (way.__name__, said)
        found, headers, body = said[0]
        assert found == status, (way.__name__, body)
        kind = "application/json" if b" /v2/" in raw else "application/problem+json"  # KServe's clients read no other
        assert headers["content-type"] == kind and headers["connection"] == "close"
        detail = json.loads(body)["detail"]
        assert json.loads(body)["status"] == status and len(detail) > 20
        if status in (414, 431):  # the limit, how it is counted, and how much of this head arrived before it was refused
            cost = re.search(r"more than 9216 bytes: .*; the part of this one that has arrived costs (\d+)$", detail)
            assert cost and int(cost[1]) > 9216, detail


@pytest.mark.parametrize("raw,status", [pytest.param(raw, status, id=id) for id, raw, status in SERVED])
def test_served(server, raw, status):
    for way in WAYS:
        said = talk(server, way(raw))
        ids = [headers["x-request-id"] for _, headers, _ in said]
        assert len(said) == 2 + (way is second) and ids[-1] == "behind", (way.__name__, said)
        assert said[-2][0] == status and said[-1][0] == 200


def test_a_refused_head_has_no_body(server):
    """HEAD stays HEAD where only its fields are wrong."""
    with socket.create_connection((server.host, server.port), timeout=SECONDS) as s:
        s.sendall(head("X : y", line="HEAD /healthz HTTP/1.1") + BEHIND)
        said = s.makefile("rb").read()
    assert said.startswith(b"HTTP/1.1 400 ") and said.endswith(b"\r\n\r\n") and said.count(b"\r\n\r\n") == 1


def test_refusals_wait_for_their_turn(server):
    """Behind answers that take a worker, and in the order of the requests."""
    slow = b'{"scheme":"alibi","num_heads":8,"len":512,"outputs":["bias"],"format":"raw"}'
    raw = post(f"Content-Length: {len(slow)}", body=slow)
    said = talk(server, [raw + GOOD + raw + post("Transfer-Encoding: chunked", body=b"2\r\n{}\r\nx") + BEHIND])
    assert [status for status, _, _ in said] == [200, 200, 200, 400]
    assert said[0][2] == said[2][2] and len(said[0][2]) == 8 * 512 * 512 * 4


FULL = [head(*["X: y"] * n, "X: " + "a" * fill, "Content-Length: 20000", line="POST /encode HTTP/1.1")
        for n, fill in itertools.chain([(58, 10), (58, 3000), (50, 5000), (20, 6700), (1, 8400)])]


@pytest.mark.parametrize("raw", FULL, ids=len)
def test_the_largest_heads_leave_room_for_what_follows(server, raw):
    """The HTTP library keeps a head's fields and received bytes in one memory; with all of it in one write, at worst."""
    said = talk(server, [raw + b"{" + b" " * 19_998 + b"}" + BEHIND * 200])
    assert [status for status, _, _ in said] == [422, 200], said


def test_a_head_that_stops_in_the_middle_is_told_so():
    """The first on its connection or a later one: bytes held back are not silence."""
    with start_server("--header-timeout", "1", "--connection-timeout", "60") as server:
        for before in (b"", GOOD):
            watch = Stopwatch(server)
            with socket.create_connection((server.host, server.port), timeout=SECONDS) as s:
                if before:
                    s.sendall(before)
                    time.sleep(0.2)
                s.sendall(b"GET /healthz HT")
                said = s.makefile("rb").read()
            assert b"HTTP/1.1 408 " in said and watch.seconds() < 10


def test_many_tiny_pieces_cost_little(server):
    """A line is looked at once, however slowly it comes."""
    before = server.processor()
    with socket.create_connection((server.host, server.port), timeout=SECONDS) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw = head("X: " + "a" * 8_800, "Connection: close")
        for i in range(len(raw)):
            s.send(raw[i:i + 1])
        assert s.makefile("rb").read().startswith(b"HTTP/1.1 200 ")
    assert server.processor() - before < 2
