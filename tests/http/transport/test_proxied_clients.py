"""--trusted-proxy: behind a trusted proxy, each client has its own turns and share; X-Forwarded-For from other addresses
has no effect."""
import contextlib

import pytest

from conftest import SANITIZED, start_server
from proxies import start_proxy
from test_fairness import N_MANY, place_of_the_one
from test_limits import refusal
from test_shares import UNHURRIED
from connection import HUGE, MEDIUM, MEDIUM_BYTES, Client, asked, metric, post, wait_until

PROXY, DIRECT = "127.0.0.1", "127.0.0.2"
A, B = "X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2"


def holding(server, stack, n, header, source=PROXY):
    """Takes n streams and does not read them."""
    for i in range(n):
        client = stack.enter_context(Client(server, receive_buffer=4096, source=source))
        client.send(post(HUGE, "/encode", *([header(i)] if callable(header) else [header] if header else [])))
        assert client.head()[0] == 200, i


def ask(server, *headers, source=PROXY):
    return asked(server, post(MEDIUM, "/encode", *headers), source=source)


@pytest.fixture
def stack():
    with contextlib.ExitStack() as stack:
        yield stack


FROM = "X-Forwarded-For: 192.0.2."
# Flags and environment; who holds six of eight streams: header and peer of the i-th; then headers and peers, and whether they are the holder.
# Which of several addresses counts: tests/server/transport/test_forwarded.c.
SHARES = {
    "clients behind a proxy": (["--trusted-proxy", PROXY, "--trusted-proxy", "10.0.0.0/8"], {}, lambda i: (A, PROXY),
                               [(f"X-Forwarded-For: 203.0.113.1\r\nAccept: */*\r\n{FROM}1, 127.0.0.1", PROXY, True), (f"{FROM}1, 10.1.2.3", PROXY, True),
                                (B, PROXY, False), (f"{FROM}1, unknown", PROXY, False), ("X: y", PROXY, False)]),
    "an untrusted peer": (["--trusted-proxy", PROXY], {}, lambda i: (f"{FROM}{i}", DIRECT),
                          [(f"{FROM}100", DIRECT, True), (f"X-Forwarded-For: {DIRECT}", PROXY, True), (A, PROXY, False)]),  # also behind a proxy
    "without the flag": ([], {}, lambda i: (f"{FROM}{i}", PROXY), [(A, PROXY, True), (A, DIRECT, False)]),
    "an IPv6 network": ([], {"POSENC_TRUSTED_PROXY": f"::1, {PROXY}"}, lambda i: (f"X-Forwarded-For: 2001:db8::{i}:1", PROXY),
                        [("X-Forwarded-For: [2001:db8::ffff]:443", PROXY, True), ("X-Forwarded-For: 2001:db8:0:1::1", PROXY, False)]),
}


@pytest.mark.parametrize("name", SHARES)
def test_whose_share_a_request_takes(stack, name):
    flags, env, holder, asked = SHARES[name]
    server = stack.enter_context(start_server(*UNHURRIED, "--max-streams", "8", *flags, env=env))
    holding(server, stack, 6, lambda i: holder(i)[0], source=holder(0)[1])
    for header, source, is_the_holder in asked:
        answer = ask(server, header, source=source)
        if is_the_holder:
            refusal(answer, 429, "6 answers", "four times")
        else:
            assert answer[0] == 200 and len(answer[2]) == MEDIUM_BYTES, header


def test_one_connection_carries_many_clients(stack):
    """As a proxy's does that keeps it: each request is its own client's."""
    server = stack.enter_context(start_server(*UNHURRIED, "--max-streams", "8", "--trusted-proxy", PROXY))
    holding(server, stack, 6, A)
    client = stack.enter_context(Client(server))
    for i in range(6):
        client.send(post(MEDIUM, "/encode", (A, B)[i % 2]))
        assert client.answer()[0] == (429, 200)[i % 2]


@pytest.mark.skipif(SANITIZED, reason="the many wait too long for their worker")
def test_turns_are_taken_by_forwarded_clients():
    def asked(address):
        return {"headers": {"X-Forwarded-For": address}}
    with start_server("--workers", "1", "--trusted-proxy", "127.0.0.0/8") as server:
        assert place_of_the_one(server, asked("192.0.2.1"), asked("192.0.2.2")) <= 6
    with start_server("--workers", "1", "--io-threads", "1") as server:
        assert place_of_the_one(server, asked("192.0.2.1"), asked("192.0.2.2")) >= N_MANY // 3


def test_a_unix_socket_is_named_by_its_kind(tmp_path):
    for flags, last in ((["--trusted-proxy", "unix"], 200), (["--trusted-proxy", PROXY], 429)):
        with start_server("--socket", str(tmp_path / "s"), *UNHURRIED, "--max-streams", "8", "--drain-seconds", "0", *flags) as server, contextlib.ExitStack() as stack:
            holding(server, stack, 6, A, source=None)
            assert [ask(server, header, source=None)[0] for header in (A, B)] == [429, last]


@pytest.mark.parametrize("name", ["nginx", "haproxy"])
def test_through_the_proxies_of_deploy(name, stack):
    """The address that a client claims stands before the one that the proxy adds."""
    server = stack.enter_context(start_server(*UNHURRIED, "--max-streams", "8", "--trusted-proxy", PROXY))
    proxy = stack.enter_context(start_proxy(name, server.port))
    holding(proxy, stack, 6, lambda i: f"X-Forwarded-For: 192.0.2.{i}", source=DIRECT)
    assert metric(server, "posenc_streams") == 6
    refusal(ask(proxy, "X-Forwarded-For: 192.0.2.100", source=DIRECT), 429, "6 answers", "four times")
    answer = ask(proxy, source="127.0.0.3")
    assert answer[0] == 200 and len(answer[2]) == MEDIUM_BYTES


def test_the_log_names_the_client(stack):
    """The address that a trusted proxy names, nobody else's word; with a token too."""
    server = stack.enter_context(start_server("--trusted-proxy", PROXY, "--trusted-proxy", "10.0.0.0/8"))
    for source, header, client in ((PROXY, A, "192.0.2.1"), (PROXY, "X-Forwarded-For: 203.0.113.1, 2001:db8::5, 10.1.2.3", "2001:db8::5"),
                                   (PROXY, "X-Forwarded-For: unknown", PROXY), (PROXY, "X-Y: z", PROXY), (DIRECT, A, DIRECT)):
        before = len(server.stderr_text())
        ask(server, header, source=source)
        assert wait_until(lambda: f" client={client} " in server.stderr_text()[before:]), server.stderr_text()[before:]
