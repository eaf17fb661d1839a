"""Every allocation of every kind of request fails once: the result is a 503 or the end of that one connection, and then
the server works as before."""
import contextlib
import http.client
import os
import select
import shutil
import signal
import ssl
import subprocess
import threading
import time

import pytest

from conftest import SANITIZED, without_posenc
from faults import Crowd, DROPPED, EXPERIMENTS, LIBRARY, PROGRAM, REQUESTS, WEIGHTS, answer_of, answer_on_new, control, faulty_server, is_right, put
from connection import Client, certificate, get, is_asleep, is_quiet, metric, post, wait_until
from token_files import READER

FOR_EVER = 1 << 40
N_MAX = 20000  # allocations of one request


def answer_twice(server, request):
    answer_on_new(server, request)  # PUT says 201 once, then 200; what is made once is made
    return answer_on_new(server, request)


def alive(server):
    """Blocks that are alive when nothing is going on, and some time after."""
    assert wait_until(lambda: is_quiet(server))
    time.sleep(0.5)
    return server.faults.live_blocks


@pytest.fixture(scope="module")
def faulty():
    """Without the answer cache, so that the live memory between requests is always the same."""
    with faulty_server("--answer-cache", "0", "--io-threads", "1", "--log-level", "error") as server:
        assert answer_on_new(server, put("t5", WEIGHTS))[0] == 201
        server.right = {name: answer_twice(server, request) for name, request in REQUESTS.items()}
        server.alive = alive(server)
        yield server
        assert wait_until(lambda: is_quiet(server))


def settled(server, expected):
    """Blocks that are alive now; no more than expected, if that only takes patience."""
    wait_until(lambda: server.faults.live_blocks <= expected, 2)
    return server.faults.live_blocks


def test_what_is_lost_would_be_seen(faulty):
    before = alive(faulty)  # other tests may have left what a later request uses again
    answer_on_new(faulty, put("more", WEIGHTS))
    assert wait_until(lambda: is_quiet(faulty))
    assert SANITIZED or faulty.faults.live_blocks > before
    assert faulty.request("DELETE", "/weights/more").status == 204
    assert SANITIZED or settled(faulty, before) <= before


# ---- One request, one failure -----------------------------------------------------------------------------------------------


def sweep(server, right, ask, burst=1, is_well=is_right):
    """Fails the n-th allocation and the next burst - 1, for n = 0, 1, … until a request has fewer; how each n ended. A diagnosis has
    thousands: after the first hundred an ever smaller part of them fails."""
    ends, n = [], 0
    while n < N_MAX:
        with server.faults.allocations(n, burst):
            answer = ask(server)
        assert server.is_alive(), (n, server.stderr_text()[-3000:])
        if server.faults.alloc_failed == 0:
            assert answer == right, (n, answer)
            return ends
        assert answer == DROPPED or answer[0] == 503 or answer == right, (n, answer)
        assert is_well(server), n
        ends.append("dropped" if answer == DROPPED else answer[0])
        n += 1 + n // 100
    raise AssertionError("no end of allocations")


BURSTS = [1, 3] + [FOR_EVER] * (not SANITIZED)


# Three diagnoses have the same server around them; each allocation of their searches: tests/api/requests/test_memory.c.
@pytest.mark.parametrize("name, burst", [(name, burst) for name in REQUESTS for burst in BURSTS if burst == 1 or not name.startswith("diagnose of")])
def test_each_allocation_fails_once(faulty, name, burst):
    def swept(burst=burst):
        return sweep(faulty, faulty.right[name], lambda server: answer_on_new(server, REQUESTS[name]), burst)

    ends = swept()
    for _ in range(5):  # kept for later, or lost? What is lost is so every time; what is kept ends after a few blocks
        now = settled(faulty, faulty.alive)
        if now <= faulty.alive or SANITIZED:
            break
        faulty.alive = now
        swept()
    else:
        pytest.fail(f"every sweep leaves more blocks: {now} by now; {ends}")
    assert len(ends) > 2 if SANITIZED else len(ends) > 10
    for _ in range(5 * (burst == 1 and not SANITIZED)):  # the n-th is another one now and then: threads allocate beside it, and some requests have one alone
        ends += swept() if 503 not in ends else []
    assert 503 in ends or burst > 1 or SANITIZED
    assert answer_on_new(faulty, REQUESTS[name]) == faulty.right[name]


@pytest.mark.parametrize("name", ["GET", "json", "multipart", "stream", "stream of json", "PUT of weights"])
def test_the_connection_that_stays_goes_on(faulty, name):
    """On a connection in use; if the answer leaves it open, its next answer is right."""
    def ask(server):
        server.faults.alloc_armed = 0
        with Client(server) as client:
            assert answer_of(client, REQUESTS["list of weights"])[0] == 200
            server.faults.alloc_armed = 1
            answer = answer_of(client, REQUESTS[name])
            server.faults.alloc_armed = 0
            after = answer_of(client, REQUESTS["json"]) if answer != DROPPED else DROPPED
            assert after in (DROPPED, server.right["json"])
            return answer
    assert len(sweep(faulty, faulty.right[name], ask)) > 2


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_without_memory_ends_and_the_server_goes_on(faulty, name):
    """At any allocation; what has begun ends with an event or a message that says so, or with the connection."""
    request = EXPERIMENTS[name]
    for _ in range(2):  # what is made once is made
        assert wait_until(lambda: is_quiet(faulty))  # the experiment before has given up its place
        right = answer_on_new(faulty, request)
        assert right[0] == 200 and b"again later" not in right[1], right
    for burst in (1, FOR_EVER):
        ends = set()
        for n in range(N_MAX):
            assert wait_until(lambda: is_quiet(faulty))  # one at a time, and one whose client was cut off ends a moment later
            with faulty.faults.allocations(n, burst):
                status, body = answer_on_new(faulty, request)
            assert faulty.is_alive(), (n, faulty.stderr_text()[-3000:])
            if faulty.faults.alloc_failed == 0:
                break
            assert (status, body) == right or status in (503, None) or b"memory" in body[-200:], (n, status, body)
            assert is_right(faulty), n
            ends.add(status)
        assert ends >= {503, None} and faulty.faults.alloc_failed == 0


# ---- Many at once -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [29, 211, 1009])
def test_many_clients_while_allocations_fail(every):
    """With kept answers, equal requests at one time answered once, and two loops."""
    with faulty_server("--io-threads", "2", "--workers", "3", "--log-level", "error") as server:
        assert answer_on_new(server, put("t5", WEIGHTS))[0] == 201
        names = [name for name in REQUESTS if not name.startswith(("PUT", "list"))]
        server.right = {name: answer_on_new(server, REQUESTS[name]) for name in names}
        server.faults.alloc_every = every
        with server.faults.allocations(0, 0):
            crowd = Crowd(server, server.right, 6)
            time.sleep(12 if SANITIZED else 1.2)
            n_of = crowd.stop()
        assert server.faults.alloc_failed > 5 and n_of[200] > 5, n_of
        for name in names:
            assert answer_on_new(server, REQUESTS[name]) == server.right[name]
        assert wait_until(lambda: is_quiet(server))


def read_meanwhile(reader):
    """Reads the answer on a thread: a function that waits for it and gives its body, or what went wrong. A reader with a small buffer may
    wait for the rest long after the server has ended: the kernel sends it, and doubles its pauses while there is no room."""
    got = []

    def read():
        try:
            got.append(reader.answer()[2])
        except (AssertionError, OSError) as error:
            got.append(error)
    thread = threading.Thread(target=read)
    thread.start()
    return lambda: thread.join(120) or got[0]


@pytest.mark.parametrize("burst", [1, FOR_EVER])
def test_the_end_while_memory_is_short(burst):
    """Exit status 0 in time, whether or not the clients in progress get their answers."""
    for n in (0, 1, 2, 3, 4, 6, 9, 14) if burst == 1 else (0, 4, 8):
        with faulty_server("--io-threads", "2", "--drain-seconds", "3", "--log-level", "error") as server:
            with Client(server) as idle, Client(server, receive_buffer=4096) as reader:
                right = answer_of(idle, REQUESTS["stream"])
                reader.socket.settimeout(100)
                reader.send(REQUESTS["stream"])
                with server.faults.allocations(n, burst):
                    server.process.terminate()
                    answer = read_meanwhile(reader)
                    assert server.ended(20 if SANITIZED else 10) == 0, n  # --drain-seconds and a second
                    failed = server.faults.alloc_failed
                assert answer() == right[1] or failed > 0, n


# ---- Tokens, and TLS --------------------------------------------------------------------------------------------------------


def test_each_allocation_of_a_request_with_a_token(tmp_path):
    (tmp_path / "tokens").write_text(f"alice {READER} read requests=1000000/s streams=4\n")
    with faulty_server("--token-file", str(tmp_path / "tokens"), "--answer-cache", "0", "--io-threads", "1") as server:
        head = f"Authorization: Bearer {READER}"
        for request in (get("/encode?scheme=sinusoidal&len=5&dim=8", head), post(REQUESTS["stream"].split(b"\r\n\r\n")[1], "/encode", head)):
            right = answer_on_new(server, request)
            assert right[0] == 200
            ends = sweep(server, right, lambda server: answer_on_new(server, request), 1, lambda server: answer_on_new(server, request) == right)
            assert len(ends) > 10


@pytest.mark.skipif(not shutil.which("openssl") or SANITIZED, reason="openssl is not installed")
def test_each_allocation_under_tls(tmp_path):
    """The handshake's among them, but libtasn1's (tests/faults/memory.c): GnuTLS gives up that connection."""
    cert, key = map(str, certificate(tmp_path))
    context = ssl.create_default_context(cafile=cert)

    def ask(server):
        connection = http.client.HTTPSConnection(server.host, server.port, context=context, timeout=20)
        try:
            connection.request("GET", "/encode?scheme=sinusoidal&len=5&dim=8")
            answer = connection.getresponse()
            return answer.status, answer.read()
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException):
            return DROPPED
        finally:
            connection.close()

    with faulty_server("--tls-cert", cert, "--tls-key", key, "--answer-cache", "0", "--io-threads", "1") as server:
        right = ask(server)
        assert right[0] == 200
        assert len(sweep(server, right, ask, is_well=lambda server: server.is_alive())) > 10
        assert ask(server) == right


# ---- Reading again, and the start --------------------------------------------------------------------------------------------


def reread(server, tmp_path, n):
    """The n-th allocation fails after SIGHUP, which finds a file that has changed; how many there were. It is over when no more come."""
    os.utime(tmp_path / "t5.safetensors", (n, n))
    with server.faults.allocations(n):
        os.kill(server.pid, signal.SIGHUP)
        for _ in range(100):
            n_before = server.faults.alloc_count
            time.sleep(0.3 if SANITIZED or n == FOR_EVER else 0.03)
            if server.faults.alloc_count == n_before > 0:
                break
    return server.faults.alloc_count


def test_each_allocation_of_reading_again_fails_once(tmp_path):
    """Stored files stay, or are restored."""
    with faulty_server("--weights-dir", str(tmp_path), "--answer-cache", "0", "--io-threads", "1") as server:
        assert answer_on_new(server, put("t5", WEIGHTS))[0] == 201
        (tmp_path / "b.safetensors").write_bytes(WEIGHTS)
        right = answer_on_new(server, REQUESTS["stored weights"])
        n_all = reread(server, tmp_path, FOR_EVER)
        assert n_all > 3
        for n in range(n_all + 3):
            reread(server, tmp_path, n)
            assert answer_on_new(server, REQUESTS["stored weights"]) == right, (n, server.stderr_text()[-2000:])
        os.kill(server.pid, signal.SIGHUP)
        assert wait_until(lambda: b'"b"' in answer_on_new(server, REQUESTS["list of weights"])[1])


def start(n, *flags):
    """A server whose n-th allocation fails while it starts: whether it listens, its status, its output, and the
    number of allocations."""
    with control() as (path, faults):
        faults.set(alloc_first=n, alloc_burst=1, alloc_armed=1)
        env = {**without_posenc(None), "FAULTS_CONTROL": path, "LD_PRELOAD": str(LIBRARY)}
        process = subprocess.Popen([PROGRAM, "--port", "0", *flags], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env)
        said, listens = [], False
        for line in process.stderr:
            said.append(line)
            if line.startswith(b"listening"):
                listens, faults.alloc_armed = True, 0
                process.terminate()
        return listens, process.wait(20), said, faults.alloc_count


@pytest.mark.skipif(SANITIZED, reason="preloads")
@pytest.mark.parametrize("has_files", [False, True])
def test_each_allocation_of_the_start_fails_once(tmp_path, has_files):
    """A server that reports the failed allocation, or one that serves."""
    (tmp_path / "a.safetensors").write_bytes(WEIGHTS)
    (tmp_path / "tokens").write_text("alice rd-7Fq2mXv0Tz9LkP4 read\n")
    flags = ["--weights-dir", str(tmp_path), "--token-file", str(tmp_path / "tokens")] if has_files else []
    n_before = start(FOR_EVER, "--version")[3]  # what libraries do before main is their business
    n_all, n_refused = start(FOR_EVER, *flags)[3], 0
    assert n_all > n_before + 30
    for n in range(n_before, n_all, 1 + has_files):
        listens, status, said, _ = start(n, *flags)
        assert status == 0 if listens else status in (1, 2) and said, (n, status, said)
        n_refused += not listens
    assert n_refused > 3


def n_sockets(server):
    """A file that it reads now and then, as that of its memory, is none."""
    n, folder = 0, f"/proc/{server.pid}/fd"
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):  # closed meanwhile
            n += os.readlink(f"{folder}/{name}").startswith("socket:")
    return n


def has_ended(client):
    """Its server has closed it: a read of something else, as of the memory's file, had one of the allocations that were left."""
    return bool(select.select([client.socket], [], [], 0)[0])


def test_silent_connections_while_memory_is_short():
    """The event loop's tables by descriptor have room for all descriptors from the start."""
    patient = ("--header-timeout", "3600", "--connection-timeout", "3600")  # a silent one is not cut off, however long 600 take
    with faulty_server("--io-threads", "1", "--max-connections", "700", *patient) as server, contextlib.ExitStack() as clients:
        clients.enter_context(Client(server))  # the first of a client takes one for the client
        assert wait_until(lambda: is_asleep(server))
        for _ in range(600):
            n = n_sockets(server)
            with server.faults.allocations(3):  # after those for its place, the connection and its watch
                client = clients.enter_context(Client(server))
                assert wait_until(lambda: (n_sockets(server) > n or has_ended(client)) and is_asleep(server))
        assert is_right(server), server.stderr_text()[-500:]
        assert metric(server, "posenc_connections") > 550
