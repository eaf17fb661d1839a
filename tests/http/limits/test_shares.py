"""The share that one client can hold: slow bodies, complete bodies, streams and unread pictures leave room for other
clients, and a refused client gets the reason. Clients here are addresses of the loopback network."""
import contextlib
import http.client
import io
import json
import select
import socket
import ssl
import time

import numpy as np
import pytest

from conftest import SANITIZED, start_server
from test_limits import MIB, declared, refusal, rejected, taken
from connection import HUGE, MEDIUM, MEDIUM_BYTES, SMALL, UNHURRIED, Client, asked, at_once, certificate, clients, get, is_asleep, metric, post, wait_until

ONE, OTHER = "127.0.0.2", "127.0.0.3"
CHUNKED = b"POST /encode HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


def ask_from(server, source, request):
    return asked(server, request, source=source)


def clients_from(server, source, n, **options):
    return clients(server, n, source=source, **options)


def tensor(n):
    """An upload of n megabytes that takes no memory but its own to read."""
    array = np.zeros((n * 256, 16, 64), "f4")
    file = io.BytesIO()
    np.save(file, array)
    return post(file.getvalue(), "/rotate?scheme=rope&format=npy", "Content-Type: application/x-npy")


def body_of(n):
    """A request of n bytes that is answered with a few."""
    return SMALL + b" " * (n - len(SMALL))


# ---- Connections ------------------------------------------------------------------------------------------------------

MOST = 8  # --max-connections


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """Flags for TLS, and the context of its clients."""
    crt, key = certificate(tmp_path_factory.mktemp("tls"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return ["--tls-cert", str(crt), "--tls-key", str(key)], context


@pytest.fixture(params=["plain", "TLS"])
def few(request):
    """A server with MOST connections, and a function that connects to it from an address."""
    flags, context = request.getfixturevalue("secure") if request.param == "TLS" else ([], None)
    with start_server("--max-connections", str(MOST), "--io-threads", "2", *UNHURRIED, *flags) as server, contextlib.ExitStack() as stack:

        def connect(source):
            sock = stack.enter_context(socket.create_connection((server.host, server.port), timeout=20, source_address=(source, 0)))
            return stack.enter_context(context.wrap_socket(sock)) if context else sock

        yield server, connect, stack


def status_of(sock, request=get("/healthz")):
    """Of the answer, whose rest is read; None: the connection is closed."""
    try:
        sock.sendall(request)
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return None


WORK = get("/encode?scheme=alibi&num_heads=1&len=2")


def test_idle_connections_of_one_client_shut_nobody_out(few):
    """Others get places until they have as many; the connections that have been idle longest go."""
    server, connect, _ = few
    idle = [connect(ONE) for _ in range(MOST)]
    assert [status_of(sock) for sock in idle] == [200] * MOST
    assert status_of(idle[0]) == 200  # now the second one has waited longest
    others = [connect(OTHER) for _ in range(MOST // 2)]
    assert [status_of(sock, WORK) for sock in others] == [200] * (MOST // 2)
    left = [status_of(sock) for sock in idle]  # a loop may notice the end of an answer after the next one has been sent by another, so neighbours may change places
    assert left[0] == 200 and left.count(200) == left.count(None) == MOST // 2
    assert [status_of(sock, WORK) for sock in others] == [200] * (MOST // 2)  # they keep them


def test_silent_connections_shut_nobody_out(few):
    """They have not even sent a request, or, with TLS, not greeted."""
    server, connect, stack = few
    silent = [stack.enter_context(socket.create_connection((server.host, server.port), timeout=20, source_address=(ONE, 0))) for _ in range(MOST)]
    assert wait_until(lambda: metric_from(connect, "posenc_connections") >= MOST)
    assert [status_of(connect(OTHER), request) for request in (WORK, get("/healthz"), get("/readyz"))] == [200] * 3
    assert len(silent) == MOST


def metric_from(connect, name):
    sock = connect("127.0.0.9")
    sock.sendall(get("/metrics", "Connection: close"))
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    return sum(float(line.split()[1]) for line in answer.read().decode().splitlines() if line.startswith(name + " "))


def test_probes_are_answered_beside_connections_that_all_work(few):
    """None of them can be closed: each is being answered."""
    _, connect, _ = few
    for sock in [connect(ONE) for _ in range(MOST)]:
        sock.sendall(post(HUGE))
        assert sock.recv(1)
    for path, expected in (("/healthz", 200), ("/readyz", 200), ("/v2/health/live", 200), ("/encode?scheme=alibi&num_heads=1&len=2", 503), ("/schemes", 503)):
        sock = connect(OTHER)
        assert status_of(sock, get(path)) == expected, path
        assert status_of(sock) is None  # such a place is for one request
    quiet = [connect(OTHER) for _ in range(40)]  # more than there are such places
    assert status_of(connect(OTHER)) == 200 and len(quiet) == 40


def test_one_client_takes_no_spare_place_from_another(few):
    """It connects again and again, and says half a head, or half a greeting of TLS: of the spare places, it loses its own."""
    server, connect, stack = few
    for sock in [connect(ONE) for _ in range(MOST)]:
        sock.sendall(post(HUGE))
        assert sock.recv(1)
    slow, n = connect(OTHER), 25
    slow.sendall(get("/healthz")[:20])
    halves = [stack.enter_context(socket.create_connection((server.host, server.port), timeout=20, source_address=("127.0.0.4", 0))) for _ in range(n)]
    with contextlib.suppress(OSError):
        assert halves[5].recv(1) == b""  # more have come than there are spare places
    assert status_of(slow, get("/healthz")[20:]) == 200


def test_a_client_with_the_most_is_refused_itself(few):
    server, connect, _ = few
    idle = [connect(ONE) for _ in range(MOST)]
    assert [status_of(sock) for sock in idle] == [200] * MOST
    assert status_of(connect(OTHER)) == 200  # of the eight, one is for the other client now
    with contextlib.suppress(OSError):  # TLS: closed without an answer
        assert status_of(connect(ONE)) in (503, None)
    left = [status_of(sock) for sock in idle]
    assert left.count(200) == MOST - 1 and left.count(None) == 1


def test_bodies_that_arrive_are_not_closed_for_others(few):
    """One client has the most connections, and each of them works; strangers have one idle connection each."""
    server, connect, _ = few
    uploads, n, step = [connect(ONE) for _ in range(MOST // 2)], 60, 1000
    for sock in uploads:
        sock.sendall(declared(n * step))
    idle = [connect("127.0.1.%d" % (i + 1)) for i in range(MOST // 2)]
    assert [status_of(sock) for sock in idle] == [200] * (MOST // 2)
    body = body_of(n * step)
    for i in range(n):  # longer than the silence after which a body may be closed
        for sock in uploads:
            sock.sendall(body[i * step : (i + 1) * step])
        if i % 6 == 0:
            stranger = connect("127.0.2.%d" % (i + 1))
            assert status_of(stranger, WORK) == 200  # gets the place of another idle one
        time.sleep(0.05)
    assert [status_of(sock, b"") for sock in uploads] == [200] * (MOST // 2)
    assert [status_of(sock) for sock in idle] == [None] * (MOST // 2)


def test_bodies_that_have_stopped_are_closed_for_others(few):
    server, connect, _ = few
    uploads = [connect(ONE) for _ in range(MOST)]
    for sock in uploads:
        sock.sendall(declared(60_000) + b" ")
    assert wait_until(lambda: status_of(connect(OTHER), WORK) == 200)
    assert status_of(connect("127.0.0.4"), WORK) == 200


def read_at(readers, seconds, n_bytes, between=lambda: None, step=0.25):
    """Each reads so many bytes a second; returns those that are cut."""
    cut = set()
    for _ in range(int(seconds / step)):
        for reader in readers - cut:
            try:
                if not reader.socket.recv(int(n_bytes * step), socket.MSG_DONTWAIT):
                    cut.add(reader)
            except BlockingIOError:
                pass
            except OSError:
                cut.add(reader)
        between()
        time.sleep(step)
    return cut


@contextlib.contextmanager
def readers_of_one(receive_buffer):
    """A server whose connections are all taken by answers to ONE, and these."""
    with start_server("--max-connections", str(MOST), "--io-threads", "2", "--min-rate", "1KiB") as server:
        with clients_from(server, ONE, MOST, receive_buffer=receive_buffer) as readers:
            for reader in readers:
                reader.send(post(HUGE))
                assert reader.head()[0] == 200
            yield server, set(readers)


def slow_readers_of_one_client_leave_places_for_others():
    """They read at little more than --min-rate; the client that has more than half of all connections loses what others need, down to half."""
    with readers_of_one(4096) as (server, readers), contextlib.ExitStack() as stack:
        entered, end = [], time.monotonic() + 30

        def enter():
            client = stack.enter_context(Client(server, source=OTHER))
            client.send(WORK)
            if client.answer()[0] == 200:
                entered.append(client)

        cut = read_at(readers, 1, 2000, enter)
        assert not cut and not entered  # at first they might be quick readers
        while len(cut) < MOST // 2 and time.monotonic() < end:
            cut |= read_at(readers - cut, 1, 2000, enter)
        assert len(entered) == MOST // 2
        assert len(cut | read_at(readers - cut, 2, 2000, enter)) == len(entered) == MOST // 2


def readers_at_a_good_rate_are_not_cut_for_others():
    """Nor one that is quick on the whole and pauses for seconds."""
    with readers_of_one(1 << 16) as (server, readers):
        statuses = []

        def ask():
            statuses.append((ask_from(server, OTHER, WORK)[0], ask_from(server, OTHER, get("/healthz"))[0]))

        assert not read_at(readers, 3, 60_000, ask)
        assert not read_at(set(), 5, 0, ask)  # a pause
        assert not read_at(readers, 1, 60_000, ask)
        assert set(statuses) == {(503, 200)}


def test_of_one_client_s_readers_only_slow_ones_are_cut_for_others():
    at_once(lambda check: check(), [slow_readers_of_one_client_leave_places_for_others, readers_at_a_good_rate_are_not_cut_for_others])


def test_a_trusted_proxy_is_many_clients():
    """Its connections are not counted together: none of them is closed for another client, which gets a place for a probe only."""
    with start_server("--max-connections", str(MOST), "--trusted-proxy", ONE) as server, clients_from(server, ONE, MOST) as proxied:
        for client in proxied:
            client.send(get("/healthz"))
            assert client.answer()[0] == 200
        assert ask_from(server, OTHER, get("/healthz"))[0] == 200
        refusal(ask_from(server, OTHER, WORK), 503, "--max-connections", f"{MOST} connections")
        assert ask_from(server, ONE, get("/readyz"))[0] == 200
        for client in proxied:
            client.send(get("/healthz"))
            assert client.answer()[0] == 200


# ---- Bodies -----------------------------------------------------------------------------------------------------------


def test_slow_bodies_take_what_has_come_of_them():
    """More than --max-memory declared in all, a few kilobytes sent: others notice nothing."""
    lengths = [256 * MIB] * 7 + [(256 * MIB) >> k for k in range(1, 13)] + [70000, 66000] + [256 * MIB] * 11
    with start_server("--min-rate", "0") as server, clients_from(server, ONE, len(lengths)) as slow:
        assert sum(lengths) > 2 * 2048 * MIB
        for client, n in zip(slow, lengths):
            client.send(b"POST /rotate?scheme=rope HTTP/1.1\r\nHost: localhost\r\n")  # no length yet: a small connection
        for client, n in zip(slow, lengths):
            client.send(b"Content-Type: application/x-npy\r\nContent-Length: %d\r\n\r\n" % n)
        for i in range(5):
            for client in slow:
                client.send(b"x" * 800)
            assert ask_from(server, OTHER, post(body_of(200 + i)))[0] == 200
            assert ask_from(server, OTHER, tensor(1))[0] == 200
            assert len(ask_from(server, OTHER, post(MEDIUM))[2]) == MEDIUM_BYTES
            time.sleep(0.05)
        assert wait_until(lambda: taken(server) < (len(slow) + 4) * MIB)  # a connection may have one to receive it
        for client in slow:  # all are still being received
            client.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                assert client.socket.recv(100) == b"not refused"


def has_bytes(client):
    """Whether something has come that is not read yet."""
    return bool(select.select([client.socket], [], [], 0)[0])


def test_bodies_that_come_in_full_stay_within_the_limit():
    with start_server("--max-memory", "64MiB") as server, contextlib.ExitStack() as stack:
        before, statuses, held = server.memory(), [], 0
        for i in range(12):  # one client's; none of them ends
            client = stack.enter_context(Client(server, source=ONE))
            client.send(declared(8 * MIB))
            with contextlib.suppress(OSError):
                client.send(b" " * (8 * MIB - 1))
            assert wait_until(lambda: has_bytes(client) or taken(server) > held + 7 * MIB)
            if has_bytes(client):
                answer = client.answer()
                refusal(answer, 503, "--max-memory", "four times", str(64 * MIB))
                statuses.append(answer[0])
            held = taken(server)
            assert held <= 64 * MIB
        assert 5 <= len(statuses) <= 8  # four fifths are 51 MiB
        assert ask_from(server, OTHER, tensor(1))[0] == 200
        assert ask_from(server, OTHER, post(SMALL))[0] == 200
        assert len(ask_from(server, OTHER, post(MEDIUM))[2]) == MEDIUM_BYTES
        assert SANITIZED or server.memory("VmRSS") - before < (64 + 24) * MIB
        assert rejected(server, "memory") == len(statuses)


def test_a_body_that_cannot_go_on_is_told_so_at_once():
    """Chunks that find no memory any more: the refusal comes while the client still sends."""
    chunk = b"80000\r\n" + b" " * 0x80000 + b"\r\n"
    with start_server("--max-memory", "16MiB") as server, Client(server, source=ONE) as client:
        client.send(CHUNKED)
        sent = 0
        while not has_bytes(client) and sent < 40:
            client.send(chunk)
            sent += 1
            assert wait_until(lambda: has_bytes(client) or is_asleep(server))  # it has read what was sent
        assert sent * 0x80000 <= 14 * MIB
        answer = client.answer()
        refusal(answer, 503, "the body takes", "--max-memory", str(16 * MIB))
        assert answer[1]["connection"] == "close"
        assert wait_until(lambda: taken(server) <= MIB)  # memory of the connection for receiving it
        client.send(chunk + b"0\r\n\r\n")  # read, so that the close is no reset
        assert client.is_closed()
        assert rejected(server, "memory") == 1


# ---- What an answer holds while it is read ----------------------------------------------------------------------------


def table(**fields):
    return post(json.dumps({"scheme": "sinusoidal", "format": "raw", **fields}).encode())


def wide(offset):
    """A plan of some 5 MiB, and an answer that no socket holds."""
    return table(len=400_000, dim=16384, offset=offset)


def noise(seed):
    """A picture of 6 MB; systems keep 4 for a reader."""
    return post(json.dumps({"scheme": "learned", "len": 2600, "dim": 2600, "seed": seed, "format": "png"}).encode())


# What: flags; a request that takes a part of it and is not read; how many a client asks for; of those at least answered, at least refused;
# the status and the words of a refusal.
UNREAD = {
    "streams": (["--max-streams", "8"], lambda i: post(HUGE), 9, 6, 3, 429, ["--max-streams", "6 answers", "of the 8", "four times"]),
    "memory of streams": (["--max-memory", "16MiB"], lambda i: table(dim=512, len=4194304), 30, 5, 5, 503, ["--max-memory", "four times"]),
    "memory of plans": (["--max-memory", "128MiB"], wide, 40, 3, 5, 503, ["--max-memory", "four times"]),
    "pictures": (["--buffer-memory", "20MiB"], noise, 4, 2, 2, 503, ["--buffer-memory", "four times"]),
}


@pytest.mark.parametrize("what", UNREAD)
def test_what_one_client_does_not_read_leaves_room_for_others(what):
    flags, request, n, n_answered, n_refused, status, words = UNREAD[what]
    with start_server(*flags, *UNHURRIED) as server:
        with contextlib.ExitStack() as stack:
            statuses = []

            def asking(i, source=ONE):
                client = stack.enter_context(Client(server, source=source, receive_buffer=4096))
                client.send(request(i))
                return client

            for i in range(n):
                client = asking(i)
                found, headers = client.head()
                statuses.append(found)
                if found != 200:
                    refusal((found, headers, client.file.read(int(headers["content-length"]))), status, *words)
            assert statuses.count(200) >= n_answered and statuses.count(status) >= n_refused and len(set(statuses)) == 2, statuses
            assert asking(1000, OTHER).head()[0] == 200
            if "--max-memory" in flags:
                assert taken(server) <= int(flags[1].removesuffix("MiB")) * MIB
                for _ in range(3):
                    assert len(ask_from(server, OTHER, post(MEDIUM))[2]) == MEDIUM_BYTES
        assert wait_until(lambda: metric(server, "posenc_streams") == 0 and taken(server) == 0)
        with Client(server, source=ONE, receive_buffer=4096) as again:
            again.send(request(2000))
            assert again.head()[0] == 200
