"""Requests cannot be smuggled through nginx or HAProxy (deploy/nginx.conf, deploy/haproxy.cfg).

Each attack is sent through the proxy. Then other clients send requests, which use the same connection as the attack did:
the only one that the proxy keeps to posencd. Each must get its own answer, checked by its X-Request-Id and by value. And
posencd must have served exactly the requests that the proxy's log lists as forwarded: an additional one would have been
smuggled."""
import contextlib
import http.client
import re
import socket
import threading

import pytest

from conftest import SANITIZED, start_server
from connection import wait_until
from proxies import start_proxy

HIDDEN = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: smuggled\r\n"
BAIT = HIDDEN + b"X-Rest: "  # the next client's request would be the rest of this one's head
WHOLE = HIDDEN + b"\r\n"


def post(*lines, body=b"", version="1.1", method="POST"):
    top = [f"{method} /encode HTTP/{version}", "Host: localhost", *lines, "", ""]
    return "\r\n".join(top).encode("latin1") + body


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


CL_TE = b"0\r\n\r\n" + BAIT  # whoever counts takes all of it, whoever reads chunks stops at the first line
TE_CL = chunk(WHOLE) + b"0\r\n\r\n"  # whoever counts 4 bytes takes "5f\r\n" and serves the chunk
SIZE_LINE = len(b"%x\r\n" % len(WHOLE))


def obfuscated(field):
    """Transfer-Encoding written so that one end may overlook it: both ways."""
    return [post(f"Content-Length: {len(CL_TE)}", field, body=CL_TE),
            post(f"Content-Length: {SIZE_LINE}", field, body=TE_CL)]


FIELDS = ["Transfer-Encoding: chunked", "Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", " Transfer-Encoding: chunked",
          "X: y\n Transfer-Encoding: chunked", "X: y\nTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked",
          "Transfer-Encoding:\r\n chunked", "Transfer-Encoding\r\n : chunked", "Transfer-Encoding: xchunked",
          "Transfer-Encoding: chunked\x00", "Transfer-Encoding: \x0bchunked", "Transfer-Encoding: \x0cchunked",
          "Transfer-Encoding: chunked\x0b", "Transfer-Encoding:\tchunked", 'Transfer-Encoding: "chunked"',
          "Transfer-Encoding: identity, chunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: chunked, chunked",
          "Transfer-Encoding: chunked;a=b", "Transfer-Encoding: ,chunked", "Transfer-Encoding: gzip, chunked",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
          "Transfer_Encoding: chunked", "transfer-encoding: CHUNKED", "Transfer-Encoding: chun\r\n ked", "Transfer-Encoding:",
          "X\x00Transfer-Encoding: chunked", "Connection: Content-Length\r\nTransfer-Encoding: chunked",
          "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked", "Transfer-Encoding: \xa0chunked"]

N = len(WHOLE)
LENGTHS = [
    post("Content-Length: 0", f"Content-Length: {N}", body=WHOLE),
    post(f"Content-Length: {N}", "Content-Length: 0", body=WHOLE),
    post(f"Content-Length: 0, {N}", body=WHOLE),
    post(f"Content-Length: {N}, {N}", body=WHOLE),
    post(f"Content-Length: +{N}", body=WHOLE),
    post(f"Content-Length: -{N}", body=WHOLE),
    post(f"Content-Length: {N}abc", body=WHOLE),
    post(f"Content-Length: {N:#x}", body=WHOLE),
    post(f"Content-Length: {2**64 + N}", body=WHOLE),
    post(f"Content-Length: {2**32 + N}", body=WHOLE),
    post(f"Content-Length : {N}", body=WHOLE),
    post(f"Content-Length\t: {N}", body=WHOLE),
    post(f" Content-Length: {N}", body=WHOLE),
    post(f"Content-Length:\r\n {N}", body=WHOLE),
    post(f"X: y\r\n Content-Length: {N}", body=WHOLE),
    post(f"X: y\nContent-Length: {N}", body=WHOLE),
    post(f"X: y\rContent-Length: {N}", body=WHOLE),
    post(f"Content_Length: {N}", body=WHOLE),
    post(f"Content-Length: \x0b{N}", body=WHOLE),
    post(f"Content-Length: {N}\x00", body=WHOLE),
    post(f"Content-Length\x00: {N}", body=WHOLE),
    post(f"X\x00: a\r\nContent-Length: {N}", body=WHOLE),
    post(f"Content-Length: {N}", "Connection: Content-Length", body=WHOLE),
    post(f"Content-Length: {N}", "Connection: close, Content-Length", body=WHOLE),
    post(f"Content-Length: {N}", body=WHOLE, method="GET"),
    post(f"Content-Length: {N}", body=WHOLE, method="HEAD"),
    post(f"Content-Length: {N}", body=WHOLE, method="OPTIONS"),
    post(f"Content-Length: {N}", body=WHOLE, version="1.0"),
    post(f"Content-Length: {N}", "Expect: 100-continue", body=WHOLE),
    post(f"Content-Length: {N}", "Expect: y 100-continue", body=WHOLE),
    post("Content-Length:", body=WHOLE),
    post(body=WHOLE),
    post("Transfer-Encoding: chunked", body=TE_CL, version="1.0"),
    post("Transfer-Encoding: chunked", body=TE_CL, method="GET"),
    post("Transfer-Encoding: chunked", body=TE_CL, version="1.7"),
]


def chunked(body):
    return post("Transfer-Encoding: chunked", body=body)


CHUNKS = [
    chunked(b"0x2\r\n{}\r\n0\r\n\r\n" + BAIT),
    chunked(b"2\n{}\r\n0\r\n\r\n" + BAIT),
    chunked(b"2;a\n{}\r\n0\r\n\r\n" + BAIT),
    chunked(b"2;\n" + b"xx\r\n%x\r\n0\r\n\r\n" % N + WHOLE + b"\r\n0\r\n\r\n"),
    chunked(b"2;a\rb\r\n{}\r\n0\r\n\r\n" + BAIT),
    chunked(b"2 \r\n{}\r\n0\r\n\r\n" + BAIT),
    chunked(b"+2\r\n{}\r\n0\r\n\r\n" + BAIT),
    chunked(b"-1\r\n{}\r\n0\r\n\r\n" + BAIT),
    chunked(b"10000000000000002\r\n{}\r\n0\r\n\r\n" + BAIT),
    chunked(b"100000002\r\n{}\r\n0\r\n\r\n" + BAIT),
    chunked(b"2\r\n{}XX0\r\n\r\n" + BAIT),
    chunked(b"2\r\n{}\n0\r\n\r\n" + BAIT),
    chunked(b"2\r\n{}\r\n0\n\n" + BAIT),
    chunked(b"2\r\n{}\r\n0\r\n\n" + BAIT),
    chunked(b"2\r\n{}\r\n0\r\nContent-Length: 99\r\n\r\n" + BAIT),
    chunked(b"2\r\n{}\r\n0\r\nX: y\n\r\n" + BAIT),
    chunked(b"2\r\n{}\r\n\x00\r\n\r\n" + BAIT),
    chunked(b"0;" + b"a" * 3000 + b"\r\n\r\n" + BAIT),
    chunked(b"2\r\n{}\r\n"),
    chunked(b"ff\r\n{}"),
]


def top(line, *lines):
    return "\r\n".join([line, *lines, "", ""]).encode("latin1")


HEADS = [
    top("GET /healthz HTTP/1.1", "Host: localhost", "Host: 127.0.0.1"),
    top("GET /healthz HTTP/1.1", "Host: localhost\x00y"),
    top("GET /health\x00z HTTP/1.1", "Host: localhost"),
    top("GET /health%00z HTTP/1.1", "Host: localhost"),
    top("GET /healthz%20HTTP/1.1%0d%0aHost:x%0d%0a%0d%0aGET%20/smuggled HTTP/1.1", "Host: localhost"),
    top("GET /healthz HTTP/1.1\r\n", "Host: localhost") + BAIT,
    top("GET http://x/healthz HTTP/1.1", "Host: 127.0.0.1"),
    top("GET http://y/healthz?\\r\\n HTTP/1.1", "Host: localhost"),
    top("OPTIONS * HTTP/1.1", "Host: localhost"),
    top("CONNECT x:80 HTTP/1.1", "Host: localhost") + BAIT,
    top("GET /healthz HTTP/2.0", "Host: localhost") + BAIT,
    top("GET /healthz HTTP/1.1", "Host: localhost", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__") + BAIT,
    top("GET /healthz HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket") + BAIT,
    top("GET /healthz HTTP/1.1", "Host: localhost", "Connection: X-Request-Id, Host"),
    top("GET /healthz HTTP/1.1", "Host: localhost", "X: a\r b"),
    top("GET /healthz HTTP/1.1", "Host: localhost", "X: a", " b"),
    top("GET /healthz HTTP/1.1", "Host: localhost", "X: a\x00b"),
    top("GET /healthz HTTP/1.1", "Host: localhost", *["X: y"] * 150),
    top("GET /healthz HTTP/1.1", "Host: localhost", "X: " + "a" * 8000, "Y: " + "a" * 7900),
    b"GET /smuggled\r\n",
]

ATTACKS = [attack for field in FIELDS for attack in obfuscated(field)] + LENGTHS + CHUNKS + HEADS


def send(proxy, raw, seconds=1 if SANITIZED else 0.25):
    """An attacker: sends, receives for a while, and leaves."""
    with socket.create_connection((proxy.host, proxy.port), timeout=seconds) as s:
        with contextlib.suppress(OSError):
            s.sendall(raw)
            while s.recv(65536):
                pass


def ask(proxy, i):
    """Another client, with a request of its own; (status, request id, body)."""
    connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=20)
    try:
        connection.request("GET", f"/encode?scheme=alibi&num_heads=1&len={1 + i % 50}&digits=6",
                           headers={"X-Request-Id": f"victim-{i}", "Connection": "close"})
        answer = connection.getresponse()
        return answer.status, answer.headers["X-Request-Id"], answer.read()
    finally:
        connection.close()


def n_served(server):
    """Requests in posencd's log, but those for its figures."""
    return len(re.findall(r" request id=(?!direct)", server.stderr_text()))


def open_connections(server):
    return int(re.search(r"^posenc_connections (\d+)", server.get("/metrics", {"X-Request-Id": "direct"}).body.decode(), re.M)[1]) - 1


@pytest.fixture(scope="module", params=["nginx", "haproxy"])
def pair(request):
    with start_server() as server, start_proxy(request.param, server.port) as proxy:
        yield server, proxy


def agree(server, proxy):
    """The log lines of both are written a moment after the answers."""
    wait_until(lambda: n_served(server) == proxy.n_forwarded(), 5)
    return n_served(server), proxy.n_forwarded()


def test_the_proxy_keeps_one_connection(pair):
    """Without that, nothing below would show anything."""
    server, proxy = pair
    for i in range(10):
        assert ask(proxy, i)[:2] == (200, f"victim-{i}"), proxy.log()
    assert open_connections(server) == 1
    served, forwarded = agree(server, proxy)
    assert served == forwarded == 10


def test_everybody_gets_their_own_answer(pair):
    server, proxy = pair
    own = {1 + i % 50: body for i in range(50) for body in [ask(proxy, i)[2]]}
    assert len(set(own.values())) == 50
    for k, attack in enumerate(ATTACKS):
        ask(proxy, k)  # leaves a connection for the attacker to use
        send(proxy, attack)
        for i in (2 * k, 2 * k + 1):
            status, id, body = ask(proxy, i)
            assert (status, id) == (200, f"victim-{i}") and body == own[1 + i % 50], (proxy.name, attack, body[:300])
        served, forwarded = agree(server, proxy)
        assert served == forwarded, (proxy.name, attack, proxy.log()[-1500:], server.stderr_text()[-1500:])


def test_while_others_ask(pair):
    """Attackers and others at the same time."""
    server, proxy = pair
    wrong = []

    def others(first):
        for i in range(first, first + 100):
            status, id, _ = ask(proxy, i)
            if (status, id) != (200, f"victim-{i}"):
                wrong.append((i, status, id))

    threads = [threading.Thread(target=others, args=(1000 * t,)) for t in range(3)]
    for thread in threads:
        thread.start()
    for attack in ATTACKS[::3]:
        send(proxy, attack, 0.01)
    for thread in threads:
        thread.join()
    assert not wrong
