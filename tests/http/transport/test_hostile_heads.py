"""Ambiguous requests: RFC 9112's grammar, applied strictly.

Each request is sent unchanged to a real server, followed by a valid request on the same connection. A refused request
gets the status listed here and one JSON problem, and the request behind it is never served: the connection closes. After
an accepted request the one behind it is answered too, which shows that both ends agree on where the first one ended."""
import itertools
import json
import re
import socket
import time

import pytest

from conftest import Stopwatch, start_server

BEHIND = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: behind\r\nConnection: close\r\n\r\n"
GOOD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: before\r\n\r\n"
SECONDS = 20


def head(*lines, line="GET /healthz HTTP/1.1", host="Host: localhost"):
    return "\r\n".join([line, *([host] if host else []), *lines, "", ""]).encode("latin1")


def post(*lines, body=b""):
    return head(*lines, line="POST /encode HTTP/1.1") + body


def chunks(body, *lines):
    return post("Transfer-Encoding: chunked", *lines, body=body)


def asks(target, method="GET", version="HTTP/1.1"):
    return head(line=f"{method} {target} {version}")


REFUSED = [
    # The frame of the body: two lengths, none that is a number, codings we do not know.
    (400, post("Content-Length: 2", "Transfer-Encoding: chunked", body=b"0\r\n\r\n")),
    (400, post("Transfer-Encoding: chunked", "Content-Length: 2", body=b"0\r\n\r\n")),
    (400, post("Content-Length: 2", "Content-Length: 3", body=b"{} ")),
    (400, post("Content-Length: 2", "Content-Length: 2", body=b"{}")),
    (400, post("Content-Length: 2", "content-length: 2", body=b"{}")),
    (400, post("Content-Length: 2, 2", body=b"{}")),
    (400, post("Content-Length: 2,", body=b"{}")),
    (400, post("Content-Length: +2", body=b"{}")),
    (400, post("Content-Length: -2", body=b"{}")),
    (400, post("Content-Length: 0x2", body=b"{}")),
    (400, post("Content-Length: 2 2", body=b"{}")),
    (400, post("Content-Length: 2.0", body=b"{}")),
    (400, post("Content-Length: 2e0", body=b"{}")),
    (400, post('Content-Length: "2"', body=b"{}")),
    (400, post("Content-Length: two", body=b"{}")),
    (400, post("Content-Length:", body=b"{}")),
    (400, post("Content-Length: \xb2", body=b"{}")),
    (400, post("Content-Length: 2\x0b", body=b"{}")),
    (413, post("Content-Length: 9223372036854775808", body=b"{}")),
    (413, post("Content-Length: 18446744073709551618", body=b"{}")),
    (413, post("Content-Length: " + "9" * 400, body=b"{}")),
    (413, post("Content-Length: 00000000000000000002", body=b"{}")),
    (501, post("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n")),
    (501, post("Transfer-Encoding: chunked, gzip", body=b"0\r\n\r\n")),
    (501, post("Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n")),
    (501, post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=b"0\r\n\r\n")),
    (501, post("Transfer-Encoding: chunked", "Transfer-Encoding: identity", body=b"0\r\n\r\n")),
    (501, post("Transfer-Encoding: identity", "Content-Length: 2", body=b"{}")),
    (501, post("Transfer-Encoding: xchunked", "Content-Length: 2", body=b"{}")),
    (501, post("Transfer-Encoding: chunked;q=1", body=b"0\r\n\r\n")),
    (501, post('Transfer-Encoding: "chunked"', body=b"0\r\n\r\n")),
    (501, post("Transfer-Encoding:", "Content-Length: 2", body=b"{}")),
    (400, post("Transfer-Encoding: \x0bchunked", "Content-Length: 2", body=b"{}")),
    (400, post("Transfer-Encoding: chun\rked", "Content-Length: 2", body=b"{}")),
    (400, head("Transfer-Encoding: chunked", line="POST /encode HTTP/1.0") + b"0\r\n\r\n"),
    # Names, blanks and folds that hide a field.
    (400, post("Content-Length : 2", body=b"{}")),
    (400, post("Content-Length\t: 2", body=b"{}")),
    (400, post(" Content-Length: 2", body=b"{}")),
    (400, post("Transfer-Encoding : chunked", body=b"0\r\n\r\n")),
    (501, post("Transfer-Encoding:", " chunked", body=b"0\r\n\r\n")),
    (400, post("X: y", " Content-Length: 2", body=b"{}")),
    (400, post("X: y", "\tz", body=b"")),
    (400, head(host=" Host: localhost")),
    (400, head("X-Folded: a", " b")),
    (400, head("no colon")),
    (400, head(": no name")),
    (400, head("X Y: z")),
    (400, head("X(: z")),
    (400, head("X\x00: z")),
    (400, head("X\x7f: z")),
    (400, head("X\xe4: z")),
    (400, head("X: a\x00b")),
    (400, head("X: a\x01b")),
    (400, head("X: a\x7fb")),
    (400, head("X: a\rb")),
    (400, head("X: a\rContent-Length: 2")),
    (400, head("X: 0123456789abcdef\x0b0123456789")),
    # Ends of lines.
    (400, b"GET /healthz HTTP/1.1\nHost: localhost\n\n"),
    (400, b"GET /healthz HTTP/1.1\r\nHost: localhost\n\r\n"),
    (400, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n"),
    (400, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\r\n\r\n"),
    (400, b"GET /healthz HTTP/1.1\rHost: localhost\r\r"),
    (400, b"\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    (400, b"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    (400, b"\r\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    # Host.
    (400, head(host=None)),
    (400, head("Host: localhost")),
    (400, head("Host: 127.0.0.1")),
    (400, head(host="Host: a b")),
    (400, head(host="Host: a/b")),
    (400, head(host="Host: a@b")),
    (400, head(host="Host: a?b")),
    (400, head(host="Host: \xe4")),
    (400, asks("/healthz", version="HTTP/1.0").replace(b"Host: localhost", b"Host: localhost\r\nHost: 127.0.0.1")),
    # Request line: method, target, version.
    (400, asks("*", "OPTIONS")),
    (400, asks("x:80", "CONNECT")),
    (400, asks("healthz")),
    (400, asks("?a=b")),
    (400, asks("ftp://x/healthz")),
    (400, asks("http:///healthz")),
    (400, asks("http://a@b/healthz")),
    (400, asks("http://a b/healthz")),
    (400, asks("//x/health\x00z")),
    (400, asks("/health\x00z")),
    (400, asks("/health\x01z")),
    (400, asks("/health%00z")),
    (400, asks("/health%0")),
    (400, asks("/health%zz")),
    (400, asks("/health\x7fz")),
    (400, asks("/health\xe4z")),
    (400, asks("/healthz#part")),
    (400, asks("/healthz\t")),
    (400, asks("/healthz ")),
    (400, asks(" /healthz")),
    (400, asks("/a b")),
    (400, asks("")),
    (400, asks("/healthz", "")),
    (400, asks("/healthz", "G(T")),
    (400, asks("/healthz", "GET\t")),
    (400, asks("/healthz", " GET")),
    (400, b"GET /healthz\r\n\r\n"),
    (400, b"GET\r\n\r\n"),
    (400, b"GET /healthz HTTP/1.1 \r\nHost: localhost\r\n\r\n"),
    (400, asks("/healthz", version="http/1.1")),
    (400, asks("/healthz", version="HTTP/1")),
    (400, asks("/healthz", version="HTTP/1.10")),
    (400, asks("/healthz", version="HTTP/01.1")),
    (400, asks("/healthz", version="HTTP/1.1x")),
    (400, asks("/healthz", version="HTTP /1.1")),
    (400, asks("/healthz", version="ICY/1.1")),
    (505, asks("/healthz", version="HTTP/0.9")),
    (505, asks("/healthz", version="HTTP/2.0")),
    (505, asks("/healthz", version="HTTP/3.0")),
    (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    # Bytes that are not HTTP.
    (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    (400, b"\x00" * 100),
    (400, b"\x80\x2e\x01\x03\x01"),
    # Length. The limits are those of server/transport/head.h.
    (414, asks("/" + "a" * 20_000)),
    (414, asks("/healthz?" + "a&" * 200)),
    (414, b"A" * 40_000),
    (431, head("X: " + "a" * 16_000)),
    (431, head("X" * 16_000 + ": a")),
    (431, head(*["X: y"] * 200)),
    (431, head("Cookie: " + "a=b; " * 200)),
    (431, head("X: " + "a" * 200_000)),
    # A body where there is none: an answer may be kept under the URL alone.
    (400, head("Content-Length: 5") + b"GET /"),
    (400, head("Transfer-Encoding: chunked") + b"5\r\nGET /\r\n0\r\n\r\n"),
    (400, head("Content-Length: 2", line="GET /encode?scheme=alibi&len=1 HTTP/1.1") + b"{}"),
    (400, head("Content-Length: 2", "Expect: 100-continue", line="GET /encode HTTP/1.1") + b"{}"),
    (400, head("Content-Length: 100000", line="GET /encode HTTP/1.1") + b" " * 100000),
    (400, head("Transfer-Encoding: chunked", line="GET /weights HTTP/1.1") + b"0\r\n\r\n"),
    (400, head("Content-Length: 1", line="GET /v2/models/rope HTTP/1.1") + b"1"),
    (400, head("Content-Length: 1", line="GET / HTTP/1.1") + b"1"),
    # Chunks.
    (400, chunks(b"0x2\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"+2\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"-2\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b" 2\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"2 \r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"2 ;a\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"2\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"2\r{}\r\n0\r\n\r\n")),
    (400, chunks(b"2;a=\x00\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"2;a\rb\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"2;a\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"2;" + b"a" * 5000 + b"\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"g\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"2\r\n{}0\r\n\r\n")),
    (400, chunks(b"2\r\n{}\n0\r\n\r\n")),
    (400, chunks(b"2\r\n{} \r\n0\r\n\r\n")),
    (400, chunks(b"2\r\n{}\r\r\n0\r\n\r\n")),
    (400, chunks(b"00000000000000002\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"10000000000000002\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"ffffffffffffffff\r\n{}\r\n0\r\n\r\n")),
    (400, chunks(b"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n")),
    (400, chunks(b"2\r\n{}\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n")),
    (400, chunks(b"2\r\n{}\r\n0\r\nHost: 127.0.0.1\r\n\r\n")),
    (400, chunks(b"2\r\n{}\r\n0\r\nX : y\r\n\r\n")),
    (400, chunks(b"2\r\n{}\r\n0\r\nX: y\r\n z\r\n\r\n")),
    (400, chunks(b"2\r\n{}\r\n0\r\nX: y\n\r\n")),
    (400, chunks(b"2\r\n{}\r\n0\r\n\n")),
    (400, chunks(b"2\r\n{}\r\n0\r\n?: 1\r\n\r\n")),
    (431, chunks(b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 300 + b"\r\n")),
]

SMALL = b'{"scheme":"alibi","num_heads":1,"len":1}'
ACCEPTED = [
    (200, asks("/healthz")),
    (200, b"\r\n" + asks("/healthz")),
    (200, asks("http://localhost:1/healthz")),
    (200, asks("HTTP://[::1]:80/healthz?x")),
    (200, asks("/healthz", version="HTTP/1.2")),
    (200, asks("/healthz", version="HTTP/1.9")),
    (200, head("Connection: keep-alive", line="GET /healthz HTTP/1.0")),
    (200, head("Connection: keep-alive", line="GET /healthz HTTP/1.0", host=None)),
    (200, head(host="hOsT:localhost:80\t ")),
    (200, head(host="Host:")),
    (200, head("X:", "Y: \t", "Z: a\tb \xe4\xff", "!#$%&'*+-.^_`|~: z")),
    (200, head(*["X: y"] * 60)),
    (200, head("X: " + "a" * 8_900)),
    (200, asks("/healthz?" + "a" * 8_800)),
    (200, asks('/healthz?"<>\\^`{|}[]%00')),
    (200, post(f"Content-Length:{len(SMALL)}", body=SMALL)),
    (200, post(f"content-length: \t00{len(SMALL)} \t ", body=SMALL)),
    (200, post("TRANSFER-ENCODING:\tCHUNKED \t", body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMALL), SMALL))),
    (200, chunks(b"%X;a=b;c=\"d;e\"\r\n%s\r\n000;f\r\n\r\n" % (len(SMALL), SMALL))),
    (200, chunks(b"%015x\r\n%s\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\n" % (len(SMALL), SMALL))),
    (200, chunks(b"".join(b"1\r\n%c\r\n" % c for c in SMALL) + b"0\r\n\r\n")),
    (400, post("Content-Length: 0")),
    (400, post("Content-Length: 0", "Expect: 100-continue")),
    (400, post("eXPECT:100-continue", "Content-Length: 0", "X: y")),
    (400, post("Expect: 100-continue")),
    (200, head("Expect: 100-continue")),
    (200, head("Expect: 100-CONTINUE", "Expect: 100-continue")),
    (200, post(f"Content-Length: {len(SMALL)}", "Expect: 100-continue", body=SMALL)),
    (200, post("Expect: 100-continue", "Transfer-Encoding: chunked", body=b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMALL), SMALL))),
    (200, head("Content-Length: 0")),
    (200, head("Content-Length: 000")),
    (200, head("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAA")),
]


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


def name(case):
    return repr(case)[:70] if isinstance(case, bytes) else None


@pytest.mark.parametrize("status,raw", REFUSED, ids=name)
def test_refused(server, status, raw):
    for way in WAYS:
        said = talk(server, way(raw))
        if way is second:
            assert said.pop(0)[1]["x-request-id"] == "before"
        assert len(said) == 1, (way.__name__, said)
        found, headers, body = said[0]
        assert found == status, (way.__name__, body)
        kind = "application/json" if b" /v2/" in raw else "application/problem+json"  # KServe's clients read no other
        assert headers["content-type"] == kind and headers["connection"] == "close"
        assert json.loads(body)["status"] == status and len(json.loads(body)["detail"]) > 20


@pytest.mark.parametrize("status,raw", [case for case in REFUSED if case[0] in (414, 431)], ids=name)
def test_too_long_a_head_is_told_what_it_costs(server, status, raw):
    """The limit, how it is counted, and how much of this head arrived before it was refused."""
    for way in WAYS:
        detail = json.loads(talk(server, way(raw))[-1][2])["detail"]
        cost = re.search(r"more than 9216 bytes: .*; what has come of this one costs (\d+)$", detail)
        assert cost and int(cost[1]) > 9216, detail


@pytest.mark.parametrize("status,raw", ACCEPTED, ids=name)
def test_accepted(server, status, raw):
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
    said = talk(server, [raw + GOOD + raw + chunks(b"2\r\n{}\r\nx") + BEHIND])
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
    def cpu():
        ticks = open(f"/proc/{server.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(ticks[11]) + int(ticks[12])) / 100

    before = cpu()
    with socket.create_connection((server.host, server.port), timeout=SECONDS) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw = head("X: " + "a" * 8_800, "Connection: close")
        for i in range(len(raw)):
            s.send(raw[i:i + 1])
        assert s.makefile("rb").read().startswith(b"HTTP/1.1 200 ")
    assert cpu() - before < 2
