"""The life of connections: what keeps them and what closes them, bodies, the log. Their end is test_end.py.

The contents of requests do not matter here. Answers are read through plain sockets, so that the tests see the bytes on
the wire."""

import contextlib
import json
import re

import pytest

from conftest import start_server
from connection import SMALL, SMALL_BYTES, Client, get, is_quiet, metric, post, wait_until
from token_files import READER, token_server


# ---- Connections ------------------------------------------------------------------------------------------------------


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


def test_a_body_is_asked_for_and_a_refused_one_is_not(server):
    with Client(server) as client:
        head, body = post(SMALL, "/encode", "Expect: 100-continue").split(b"\r\n\r\n")
        client.send(head + b"\r\n\r\n")
        assert client.head()[0] == 100
        client.send(body)
        assert len(client.answer()[2]) == SMALL_BYTES
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


def chunked(body, size):
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


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


# ---- Clients that leave ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "reset"])
def test_leaving_an_upload(server, how):
    before = metric(server, 'posenc_cancelled_total{stage="receiving"}')
    client = Client(server)
    client.send(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n" + b"{" * 100_000)
    assert wait_until(lambda: metric(server, "posenc_in_flight_requests") == 2)
    (client.reset if how == "reset" else client.__exit__)()
    assert wait_until(lambda: metric(server, 'posenc_cancelled_total{stage="receiving"}') > before)
    assert wait_until(lambda: is_quiet(server))


# ---- Log and metrics --------------------------------------------------------------------------------------------------


def test_one_json_line_for_each_event(tmp_path):
    """The options that differ and where they are from, then the requests."""
    (tmp_path / "conf").write_text('{"max_body": "1MiB", "workers": 3, "max_queue": 1024}')
    with start_server("--config", str(tmp_path / "conf"), "--log-format", "json", "--workers", "2", env={"POSENC_MAX_STREAMS": "7"}) as server:
        with Client(server) as client:
            client.send(post(SMALL, "/encode", "X-Request-Id: first") + get("/%22%0a<x>", "X-Request-Id: second"))
            client.answer()
            client.answer()
        assert wait_until(lambda: "second" in server.stderr_text())
        events = [json.loads(line) for line in server.stderr_text().splitlines()]
    options = {event["name"]: (event["value"], event["source"]) for event in events if event["event"] == "option"}
    assert options["workers"] == ("2", "flag") and options["max-streams"] == ("7", "environment")
    assert options["max-body"][1] == "file" and "max-answer" not in options and "max-queue" not in options
    first, second = [event for event in events if event["event"] == "request"][-2:]
    assert (first["id"], first["method"], first["path"], first["scheme"]) == ("first", "POST", "/encode", "alibi")
    assert (first["status"], first["bytes"]) == (200, SMALL_BYTES)
    assert {"receive_ms", "queue_ms", "compute_ms", "send_ms", "total_ms"} <= first.keys() and first["client"] == "127.0.0.1"
    assert (second["path"], second["status"]) == ('/"\n<x>', 404)
