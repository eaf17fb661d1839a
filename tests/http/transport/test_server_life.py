"""The life of the server: connections, clients that disconnect or are slow, hostile heads, limits, shutdown.

The contents of requests do not matter here. Answers are read through plain sockets, so that the tests see the bytes on
the wire."""

import contextlib
import json
import os
import re
import signal
import socket
import struct
import threading
import time

import pytest

from conftest import Stopwatch, start_server
from connection import (HUGE, MEDIUM, MEDIUM_BYTES, SMALL, SMALL_BYTES, Client, at_once, cancelled, get, has_exited, is_quiet, large_request, metric, post,
                        wait_until)
from token_files import READER, token_server


# ---- Connections ------------------------------------------------------------------------------------------------------


def test_keep_alive_and_pipelining(server):
    with Client(server) as client:
        client.send(get("/healthz") + post(SMALL) + post(MEDIUM) + get("/healthz") + post(SMALL))
        sizes = [len(client.answer()[2]) for _ in range(5)]
    assert sizes == [15, SMALL_BYTES, MEDIUM_BYTES, 15, SMALL_BYTES]


def test_pipelined_answers_are_those_of_single_requests(server):
    with Client(server) as client:
        client.send(post(MEDIUM))
        alone = client.answer()[2]
        client.send(post(MEDIUM) * 3)
        assert all(client.answer()[2] == alone for _ in range(3))


def test_http_1_0_closes(server):
    with Client(server) as client:
        client.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        status, _, body = client.answer()
        assert (status, json.loads(body)) == (200, {"status": "ok"})
        assert client.is_closed()


def test_connection_close_is_obeyed(server):
    with Client(server) as client:
        client.send(post(MEDIUM, "/encode", "Connection: close"))
        assert len(client.answer()[2]) == MEDIUM_BYTES
        assert client.is_closed()


@pytest.mark.parametrize("path", ["/healthz", "/schemes", "/encode?scheme=rope&len=40", "/encode?scheme=rope&len=8192", "/encode?scheme=rope&len=8192&format=raw",
                                  "/encode?scheme=rope&len=40&outputs=cos&format=png"])
def test_nothing_follows_the_head(server, path):
    """Not the empty chunk that ends a body of unknown length: it would stand in front of the next answer."""
    with Client(server) as client:
        client.send(get(path).replace(b"GET", b"HEAD", 1) + get("/healthz"))
        status, headers = client.head()
        assert status == 200
        if headers.get("connection") == "close":
            assert client.is_closed()
        else:
            assert client.answer()[::2] == (200, b'{"status":"ok"}')


def test_half_closed_client_gets_its_answer(server):
    with Client(server) as client:
        client.send(post(MEDIUM))
        client.socket.shutdown(socket.SHUT_WR)
        assert len(client.answer()[2]) == MEDIUM_BYTES


def test_expect_continue(server):
    with Client(server) as client:
        head, body = post(SMALL, "/encode", "Expect: 100-continue").split(b"\r\n\r\n")
        client.send(head + b"\r\n\r\n")
        assert client.head()[0] == 100
        client.send(body)
        assert len(client.answer()[2]) == SMALL_BYTES


def test_a_refused_body_is_not_asked_for(server):
    with Client(server) as client:
        client.send(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n")
        assert client.head()[0] == 413


# ---- Refusals on a kept connection --------------------------------------------------------------------------------------

WITHOUT_BODY = [
    (404, get("/nothing")), (404, get("/schemes/rop")), (404, b"HEAD /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"), (404, post(b"", "/nothing")),
    (404, get("/nothing", "Expect: 100-continue")), (405, get("/rotate")), (405, b"DELETE /encode HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    (405, post(b"", "/schemes")), (406, get("/encode?scheme=rope&len=2", "Accept: image/gif")), (415, get("/schemes", "Content-Encoding: gzip")),
    (422, get("/encode?scheme=rop&len=2")), (400, get("/schemes", "X-Request-Timeout: soon")),
]
BODY = b"x" * 100
WITH_BODY = [
    (404, post(BODY, "/nothing")), (405, post(BODY, "/schemes")), (415, post(BODY, "/encode", "Content-Encoding: gzip")),
    (404, b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + BODY + b"\r\n0\r\n\r\n"),
]


@pytest.mark.parametrize("status,asked", WITHOUT_BODY, ids=lambda x: repr(x)[:60])
def test_a_refusal_of_a_request_without_a_body_keeps_the_connection(server, status, asked):
    """Sent alone, and with the next request right behind it."""
    head = asked.startswith(b"HEAD")
    with Client(server) as client:
        for sent in ([asked, get("/healthz")] * 3, [asked + asked + get("/healthz")]):
            for piece in sent:
                client.send(piece)
                for one in re.findall(rb"(?:GET|HEAD|POST|DELETE) \S+ HTTP", piece):
                    got = client.head() if head and b"HEAD" in one else client.answer()
                    assert got[0] == (200 if b"/healthz" in one else status)
                    assert "connection" not in got[1], got[1]


def test_refusals_of_tokens_and_quotas_keep_the_connection():
    reads = f"Authorization: Bearer {READER}"
    asked = [(401, get("/schemes")), (401, get("/schemes", "Authorization: Bearer wrong")), (200, get("/schemes", reads)),
             (403, f"DELETE /weights/w HTTP/1.1\r\nHost: localhost\r\n{reads}\r\n\r\n".encode()), (429, get("/schemes", reads)), (200, get("/healthz"))]
    with token_server([f"alice {READER} read requests=1/h"]) as server, Client(server) as client:
        for status, request in asked:
            client.send(request)
            assert client.answer()[0] == status, request


@pytest.mark.parametrize("status,asked", WITH_BODY, ids=lambda x: repr(x)[:60])
def test_a_refusal_before_the_body_closes_the_connection(server, status, asked):
    """The rest of the body would be read for nothing."""
    with Client(server) as client:
        client.send(asked)
        found, headers, _ = client.answer()
        assert found == status and headers["connection"] == "close" and client.is_closed()


# ---- Bodies -----------------------------------------------------------------------------------------------------------


def test_large_bodies_are_answered_by_a_worker(server):
    with Client(server) as client:
        client.send(post(large_request(1_000_000)))
        status, headers, body = client.answer()
    assert (status, body) == (200, struct.pack("<f", 1.0) * 1_000_000)
    assert re.search(r"queue;dur=0\.000\b", headers["server-timing"]) is None


def chunked(body, size):
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunked_bodies(server, size):
    with Client(server) as client:
        client.send(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(SMALL, size))
        assert len(client.answer()[2]) == SMALL_BYTES


@pytest.mark.parametrize("n", [1_200_000, 20_000_000])
def test_body_over_the_limit(n):
    with start_server("--max-body", "1MiB") as server:
        with Client(server) as client:
            client.send(post(b"")[:-2].replace(b"Length: 0", b"Length: %d" % n) + b"\r\n")
            status, headers, body = client.answer()
            assert status == 413 and b"--max-body" in body
            assert headers["content-type"] == "application/problem+json"
        with Client(server) as client:
            client.send(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # cut, but only after the answer was sent
                client.send(chunked(b" " * n, 65536))
            status, _, body = client.answer()
            assert status == 413 and b"--max-body" in body
        assert wait_until(lambda: metric(server, "posenc_in_flight_requests") == 1)


# ---- Clients that leave, clients that dawdle --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 100_000, 5_000_000])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_leaving_a_download_cancels_its_work(server, n, how):
    before = cancelled(server)
    client = Client(server)
    client.send(post(HUGE))
    assert wait_until(lambda: metric(server, "posenc_streams") == 1)  # a reset would take the request along
    for _ in range(n // 100_000):
        client.socket.recv(100_000)
    (client.reset if how == "reset" else client.__exit__)()
    assert wait_until(lambda: cancelled(server) > before)
    assert wait_until(lambda: is_quiet(server))


@pytest.mark.parametrize("how", ["close", "reset"])
def test_leaving_an_upload(server, how):
    before = metric(server, 'posenc_cancelled_total{stage="receiving"}')
    client = Client(server)
    client.send(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n" + b"{" * 100_000)
    assert wait_until(lambda: metric(server, "posenc_in_flight_requests") == 2)
    (client.reset if how == "reset" else client.__exit__)()
    assert wait_until(lambda: metric(server, 'posenc_cancelled_total{stage="receiving"}') > before)
    assert wait_until(lambda: is_quiet(server))


def test_slow_readers_hold_up_nobody():
    with start_server("--buffer-memory", "1MiB") as server:
        slow = [Client(server, receive_buffer=4096) for _ in range(20)]
        for client in slow:
            client.send(post(HUGE))
        watch = Stopwatch(server)
        with Client(server) as client:
            for _ in range(3):
                client.send(post(MEDIUM))
                assert len(client.answer()[2]) == MEDIUM_BYTES
        assert watch.seconds() < 10
        for client in slow:
            client.reset()
        assert wait_until(lambda: is_quiet(server))


def test_slow_heads_and_bodies_get_408():
    with start_server("--header-timeout", "1", "--connection-timeout", "2") as server:
        clients = [Client(server) for _ in range(4)]
        silent, head, body, kept = clients
        head.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        body.send(post(SMALL)[:-5])
        kept.send(get("/healthz"))
        assert kept.answer()[0] == 200
        stop = threading.Event()

        def dribble():  # a byte now and then does not help
            while not stop.wait(0.2):
                try:
                    head.send(b"X")
                except OSError:
                    return

        thread = threading.Thread(target=dribble)
        thread.start()
        watch = Stopwatch(server)
        assert head.answer()[0] == 408
        stop.set()
        thread.join()
        assert silent.answer()[0] == 408
        status, headers, text = body.answer()
        assert status == 408 and headers["content-type"] == "application/problem+json"
        assert json.loads(text)["status"] == 408
        assert kept.is_closed()  # without a word
        assert watch.seconds() < 6
        for client in clients:
            client.__exit__()
        assert metric(server, 'posenc_rejected_total{reason="timeout"}') == 3


def test_full_queue_is_503():
    with start_server("--workers", "1", "--max-queue", "1") as server:
        clients = [Client(server, receive_buffer=4096) for _ in range(40)]
        large = post(large_request(1_000_000))

        def run(client):
            with contextlib.suppress(OSError):
                client.send(large)
                answers.append(client.answer())

        answers = []
        at_once(run, clients)
        statuses = {status for status, _, _ in answers}
        assert 200 in statuses and statuses <= {200, 503}
        for status, headers, body in answers:
            if status == 503:
                assert headers["retry-after"] and b"--max-queue" in body
        for client in clients:
            client.__exit__()
        assert wait_until(lambda: is_quiet(server))


# ---- The end ----------------------------------------------------------------------------------------------------------


def test_sigterm_finishes_streams_and_refuses_new_requests():
    with start_server() as server:
        streams = [Client(server, receive_buffer=65536) for _ in range(3)]
        idle, fresh = Client(server), Client(server)
        idle.send(get("/healthz"))
        idle.answer()
        for client in streams:
            client.send(post(MEDIUM))
        heads = [client.head() for client in streams]
        os.kill(server.pid, signal.SIGTERM)
        assert idle.is_closed() and fresh.is_closed()
        with Client(server) as late:
            late.send(post(SMALL))
            status, headers, body = late.answer()
            assert status == 503 and headers["retry-after"] and headers["connection"] == "close" and b"shutting down" in body
        for client, (status, headers) in zip(streams, heads):
            assert status == 200
            assert len(client.file.read(MEDIUM_BYTES)) == int(headers["content-length"]) == MEDIUM_BYTES
            assert client.is_closed()
        assert server.ended(10) == 0
        assert "draining" in server.stderr_text()


def test_drain_delay_goes_on_taking_requests_but_is_not_ready():
    with start_server("--drain-delay", "3") as server:
        with Client(server) as client:
            client.send(get("/readyz"))
            assert client.answer()[0] == 200
        os.kill(server.pid, signal.SIGTERM)
        assert wait_until(lambda: server.get("/readyz").status == 503)
        with Client(server) as client:
            client.send(post(SMALL))
            assert client.answer()[0] == 200
        assert server.ended(20) == 0


def test_drain_seconds_cut_what_does_not_end():
    with start_server("--drain-seconds", "1") as server:
        with Client(server, receive_buffer=4096) as client:
            client.send(post(HUGE))
            client.head()
            os.kill(server.pid, signal.SIGTERM)
            assert server.ended(15) == 0
        assert "cancelled=true" in server.stderr_text()


def test_second_signal_ends_at_once():
    with start_server() as server:
        with Client(server, receive_buffer=4096) as client:
            client.send(post(HUGE))
            client.head()
            os.kill(server.pid, signal.SIGTERM)
            time.sleep(0.3)
            assert not has_exited(server)
            os.kill(server.pid, signal.SIGINT)
            assert server.ended(2) == 128 + signal.SIGINT


def test_sighup_is_survived(server):
    os.kill(server.pid, signal.SIGHUP)
    with Client(server) as client:
        client.send(get("/healthz"))
        assert client.answer()[0] == 200


# ---- Log and metrics --------------------------------------------------------------------------------------------------


def test_one_json_line_for_each_event():
    with start_server("--log-format", "json", "--max-queue", "7") as server:
        with Client(server) as client:
            client.send(post(SMALL, "/encode", "X-Request-Id: first") + get("/%22%0a<x>", "X-Request-Id: second"))
            client.answer()
            client.answer()
        assert wait_until(lambda: "second" in server.stderr_text())
        events = [json.loads(line) for line in server.stderr_text().splitlines()]
    options = {event["name"]: event for event in events if event["event"] == "option"}
    assert options["max-queue"]["value"] == "7" and options["max-queue"]["source"] == "flag"
    assert "max-body" not in options
    first, second = [event for event in events if event["event"] == "request"][-2:]
    assert (first["id"], first["method"], first["path"], first["scheme"]) == ("first", "POST", "/encode", "alibi")
    assert (first["status"], first["bytes"]) == (200, SMALL_BYTES)
    assert {"receive_ms", "queue_ms", "compute_ms", "send_ms", "total_ms"} <= first.keys()
    assert (second["path"], second["status"]) == ('/"\n<x>', 404)


# ---- All at once ------------------------------------------------------------------------------------------------------


def test_many_clients_of_all_kinds(server):
    end = time.monotonic() + 3

    def whole():
        with Client(server) as client:
            client.send(post(SMALL) + post(MEDIUM) + get("/healthz"))
            assert [len(client.answer()[2]) for _ in range(3)] == [SMALL_BYTES, MEDIUM_BYTES, 15]

    def leaves():
        client = Client(server)
        client.send(post(HUGE))
        client.socket.recv(10_000)
        client.reset()

    def uploads():
        with Client(server) as client:
            client.send(post(large_request(100_000)))
            assert len(client.answer()[2]) == 400_000

    def worker(kind):
        while time.monotonic() < end:
            kind()

    at_once(worker, [whole, leaves, uploads] * 3)
    assert wait_until(lambda: is_quiet(server))
