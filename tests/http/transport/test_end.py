"""The end of a server that others depend on: from SIGTERM on every answer closes its connection; while answers are sent, the socket
stays open and refuses; the service manager is told."""
import contextlib
import json
import os
import signal
import socket
import time

import pytest

from conftest import SANITIZED, Stopwatch, start_server
from connection import HUGE, MEDIUM, MEDIUM_BYTES, SMALL, Client, asked, get, large_request, metric, post, wait_until

LOOPS = ["1", "3"]


def terminated(server, number=signal.SIGTERM):
    os.kill(server.pid, number)
    assert wait_until(lambda: "draining" in server.stderr_text())


@contextlib.contextmanager
def draining(*flags):
    """A server that has got SIGTERM and still sends one long answer; yields it and the client that reads that."""
    with start_server(*flags) as server, Client(server, receive_buffer=4096) as reader:
        reader.send(post(MEDIUM))
        assert reader.head()[0] == 200
        terminated(server)
        assert wait_until(lambda: asked(server, post(SMALL))[0] == 503)
        yield server, reader


# ---- The delay: the server serves, but each answer is the last of its connection ------------------------------------------


@pytest.mark.parametrize("loops", LOOPS)
def test_every_answer_of_the_delay_closes(loops):
    """Small ones, those that are kept, streams, pictures, refusals, 304 and HEAD; on new connections and on kept ones."""
    with start_server("--drain-delay", "60", "--io-threads", loops) as server:  # a second signal ends it
        tag = server.get("/encode?scheme=rope&len=2&format=raw").headers["ETag"]
        requests = [(200, get("/healthz")), (503, get("/readyz")), (200, post(SMALL)), (200, post(SMALL)), (200, post(MEDIUM)),
                    (200, post(b'{"scheme":"rope","len":5000}')), (404, get("/nowhere")), (422, post(b'{"scheme":"rop"}')),
                    (304, get("/encode?scheme=rope&len=2&format=raw", f"If-None-Match: {tag}")), (200, post(large_request(20000)))]
        kept = [Client(server) for _ in requests]
        for client in kept:
            client.send(get("/healthz"))
            assert "connection" not in client.answer()[1]
        terminated(server)
        time.sleep(0.3)  # an idle connection lasts through the delay
        for clients in (kept, [Client(server) for _ in requests]):
            for client, (status, request) in zip(clients, requests):
                with client:
                    client.send(request)
                    if status == 304:
                        found, headers = client.head()
                    else:
                        found, headers, _ = client.answer()
                    assert found == status and headers["connection"] == "close", request[:60]
                    assert client.is_closed()


# ---- Answers are still sent: new work is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("loops", LOOPS)
def test_new_work_is_refused_while_an_answer_is_sent(loops):
    with draining("--io-threads", loops) as (server, reader):
        # Of a large body all bytes are read: otherwise the close would be a reset, and the refusal might be lost.
        for request in (post(SMALL), post(large_request(20000)), post(large_request(2_000_000)), get("/encode?scheme=rope&len=2"), get("/schemes"),
                        post(SMALL, "/encode", "Expect: 100-continue")):
            status, headers, body = asked(server, request)
            assert status == 503 and int(headers["retry-after"]) >= 1 and headers["connection"] == "close", request[:60]
            problem = json.loads(body)
            assert problem["status"] == 503 and "shutting down" in problem["detail"] == problem["error"]
        status, headers, _ = asked(server, get("/readyz"))
        assert status == 503 and headers["connection"] == "close"
        assert asked(server, get("/v2/health/ready"))[0] in (400, 503)
        assert asked(server, get("/healthz"))[0] == 200
        assert metric(server, 'posenc_rejected_total{reason="draining"}') >= 6
        assert len(reader.file.read(MEDIUM_BYTES)) == MEDIUM_BYTES and reader.is_closed()
        assert server.ended(10) == 0


@pytest.mark.parametrize("loops", LOOPS)
def test_what_has_begun_is_finished_and_idle_connections_are_closed(loops):
    with start_server("--io-threads", loops) as server:
        streams = [Client(server, receive_buffer=65536) for _ in range(3)]
        idle, fresh = [Client(server) for _ in range(3)], [Client(server) for _ in range(3)]
        for client in idle:
            client.send(get("/healthz"))
            assert client.answer()[0] == 200
        for client in streams:
            client.send(post(MEDIUM))
        heads = [client.head() for client in streams]
        terminated(server)
        assert all(client.is_closed() for client in idle + fresh)
        for client, (status, headers) in zip(streams, heads):
            assert status == 200 and len(client.file.read(MEDIUM_BYTES)) == int(headers["content-length"]) == MEDIUM_BYTES
            assert client.is_closed()
        assert server.ended(10) == 0
        with pytest.raises(OSError):
            Client(server)


def test_a_limit_of_processor_time_begins_the_end():
    """Its signal repeats every second of work; that is no wish to end at once."""
    with start_server() as server, Client(server, receive_buffer=4096) as reader:
        reader.send(post(MEDIUM))
        assert reader.head()[0] == 200
        terminated(server, signal.SIGXCPU)
        os.kill(server.pid, signal.SIGXCPU)
        assert asked(server, get("/readyz"))[0] == 503
        assert len(reader.file.read(MEDIUM_BYTES)) == MEDIUM_BYTES and server.process.wait(10) == 0


@pytest.mark.parametrize("loops", LOOPS)
def test_drain_seconds_cut_what_does_not_end(loops):
    """Answers of known length, and in chunks."""
    with start_server("--drain-seconds", "1", "--io-threads", loops) as server:
        readers = [Client(server, receive_buffer=4096) for _ in range(6)]
        for i, reader in enumerate(readers):
            reader.send(post(HUGE if i % 2 else HUGE.replace(b',"format":"raw"', b"")))
            assert reader.head()[0] == 200
        terminated(server)
        assert asked(server, post(SMALL))[0] == 503
        assert server.ended(10) == 0
        said = server.stderr_text()
        assert "--drain-seconds are over" in said and "cutting 6 connections" in said and "cancelled=true" in said


@pytest.mark.parametrize("loops", LOOPS)
def test_a_second_signal_ends_at_once(loops):
    with draining("--drain-seconds", "60", "--io-threads", loops) as (server, _):
        time.sleep(0.3)
        assert server.is_alive()  # it waits for the reader
        os.kill(server.pid, signal.SIGINT)
        assert server.ended(5) == 128 + signal.SIGINT


def test_a_body_on_its_way_is_answered():
    with start_server() as server, Client(server) as client:
        request = post(large_request(20000))
        client.send(request[:5000])
        assert wait_until(lambda: metric(server, "posenc_in_flight_requests") == 2)
        terminated(server)
        assert wait_until(lambda: asked(server, post(SMALL))[0] == 503)
        client.send(request[5000:])
        status, headers, body = client.answer()
        assert status == 200 and len(body) == 80000 and headers["connection"] == "close"
        assert server.ended(10) == 0


@pytest.mark.parametrize("loops", LOOPS)
def test_clients_that_keep_coming_do_not_prolong_the_end(loops):
    """Some say nothing, some half a head: as soon as the last answer is sent, the process ends."""
    with draining("--io-threads", loops, "--header-timeout", "60") as (server, reader):
        silent = [Client(server) for _ in range(5)]
        half = [Client(server) for _ in range(5)]
        for client in half:
            client.send(b"GET /encode?scheme=rope&len=2 HT")
        assert asked(server, post(SMALL))[0] == 503
        assert len(reader.file.read(MEDIUM_BYTES)) == MEDIUM_BYTES
        assert server.ended(5) == 0
        assert all(client.is_closed() for client in silent)


# ---- The service manager -----------------------------------------------------------------------------------------------------


class Manager:
    """The socket of a service manager, on a path or in no folder."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)

    def messages(self, seconds):
        """Those of the next seconds."""
        found, end = [], time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            with contextlib.suppress(TimeoutError):
                found.append(self.socket.recv(1024).decode())
        return found

    def next(self, seconds=10):
        self.socket.settimeout(seconds)
        return self.socket.recv(1024).decode()


@pytest.mark.parametrize("name", ["path", "@"])
def test_the_service_manager_is_told(tmp_path, name):
    address = str(tmp_path / "notify") if name == "path" else f"@posenc-test-{os.getpid()}-{time.monotonic_ns()}"
    manager = Manager(address if name == "path" else "\0" + address[1:])
    with start_server("--drain-delay", "1", env={"NOTIFY_SOCKET": address}) as server:
        assert manager.next() == "READY=1"
        assert server.get("/readyz").status == 200
        assert manager.messages(0.3) == []  # without a watchdog there are no signs of life
        os.kill(server.pid, signal.SIGTERM)
        assert manager.next() == "STOPPING=1"
        assert server.get("/readyz").status == 503
        assert server.ended(20) == 0


@pytest.mark.parametrize("loops", ["1", "3"])
def test_signs_of_life(tmp_path, loops):
    """Several in the watchdog's time, also while workers are busy; none from a process that stands still."""
    manager = Manager(str(tmp_path / "notify"))
    with start_server("--io-threads", loops, env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}) as server:
        assert manager.next() == "READY=1"
        with Client(server, receive_buffer=4096) as reader:
            reader.send(post(HUGE))
            watch = Stopwatch(server)
            assert {manager.next() for _ in range(5)} == {"WATCHDOG=1"} and watch.seconds() < (1 if not SANITIZED else 3)
        os.kill(server.pid, signal.SIGSTOP)
        manager.messages(0.1)
        assert manager.messages(0.5) == []
        os.kill(server.pid, signal.SIGCONT)
        assert manager.next() == "WATCHDOG=1"


@pytest.mark.parametrize("env", [{"WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": ""}])
def test_a_watchdog_that_waits_for_another_gets_nothing(tmp_path, env):
    manager = Manager(str(tmp_path / "notify"))
    with start_server(env={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000", **env}):
        assert manager.messages(0.5) == ["READY=1"]


@pytest.mark.parametrize("address", ["", "@", "nowhere", "/no/such/socket", "/" + "x" * 200])
def test_a_service_manager_that_is_not_there_stops_nothing(address):
    with start_server(env={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "50000"}) as server:
        time.sleep(0.2)
        assert server.get("/readyz").status == 200
