"""Requests cannot be smuggled through nginx or HAProxy (deploy/nginx.conf, deploy/haproxy.cfg).

Each attack, a row of cases/heads.jsonl that expects `"smuggled": false`, is sent through the proxy. Then other clients send requests, which use the same connection as the attack did:
the only one that the proxy keeps to posencd. Each must get its own answer, checked by its X-Request-Id and by value. And
posencd must have served exactly the requests that the proxy's log lists as forwarded: an additional one would have been
smuggled."""
import contextlib
import re
import socket
import threading

import pytest

import heads
from conftest import SANITIZED, start_server
from connection import wait_until
from proxies import start_proxy

ATTACKS = [raw for _, raw, expect in heads.rows() if "smuggled" in expect]


def send(proxy, raw, seconds=1 if SANITIZED else 0.25):
    """An attacker: sends, receives for a while, and leaves."""
    with socket.create_connection((proxy.host, proxy.port), timeout=seconds) as s:
        with contextlib.suppress(OSError):
            s.sendall(raw)
            while s.recv(65536):
                pass


def ask(proxy, i):
    """Another client, with a request of its own; (status, request id, body)."""
    answer = proxy.get(f"/encode?scheme=alibi&num_heads=1&len={1 + i % 50}&digits=6", {"X-Request-Id": f"victim-{i}", "Connection": "close"})
    return answer.status, answer.headers["X-Request-Id"], answer.body


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
