"""Admission by cost: every limit refuses a request that exceeds it, with the right text, before anything is computed or
allocated, and releases its reservations. A refusal states the limit, its flag, and what the request would have cost."""

import json

from conftest import start_server
from connection import HUGE, MEDIUM, MEDIUM_BYTES, SMALL, Client, asked, clients, get, metric, n_descriptors, post, wait_until

MIB = 1024 * 1024


def refusal(answer, status, *words):
    assert answer[0] == status, answer
    problem = json.loads(answer[2])
    assert problem["status"] == status
    for word in words:
        assert word in problem["detail"], problem["detail"]
    assert (answer[1].get("retry-after") is not None) == (status in (429, 503))
    return problem["detail"]


def declared(n, *headers):
    return "\r\n".join(["POST /encode HTTP/1.1", "Host: localhost", f"Content-Length: {n}", *headers, "", ""]).encode()


def taken(server):
    return metric(server, "posenc_taken_memory_bytes")


def rejected(server, reason):
    return metric(server, f'posenc_rejected_total{{reason="{reason}"}}')


# ---- Connections ------------------------------------------------------------------------------------------------------


def test_one_connection_too_many_is_told_so():
    with start_server("--max-connections", "3") as server:
        with clients(server, 3) as three:
            for client in three:
                client.send(get("/healthz"))
                assert client.answer()[0] == 200
            before = n_descriptors(server)
            for request in (get("/healthz"), post(SMALL), b""):  # whatever the request is, even none
                with Client(server) as fourth:
                    fourth.send(request)
                    refusal(fourth.answer(), 503, "--max-connections", "3 connections")
                    assert fourth.is_closed()
            assert wait_until(lambda: n_descriptors(server) <= before)
            with clients(server, 200) as many:  # a flood costs no descriptors
                assert {client.answer()[0] for client in many} == {503}
                assert n_descriptors(server) <= before + 32
            assert wait_until(lambda: n_descriptors(server) == before)
            three[0].send(get("/healthz"))
            assert three[0].answer()[0] == 200  # those within it are served on
        assert wait_until(lambda: asked(server, get("/healthz"))[0] == 200)
        assert wait_until(lambda: metric(server, "posenc_connections") == 1)
        assert rejected(server, "connections") >= 3


# ---- Streams ----------------------------------------------------------------------------------------------------------


def test_one_stream_too_many():
    """Three of one client and one of another; the limits of a single client are tested in test_shares.py."""
    with start_server("--max-streams", "4") as server:
        with clients(server, 3, receive_buffer=4096) as three, Client(server, receive_buffer=4096, source="127.0.0.2") as fourth:
            for client in (*three, fourth):
                client.send(post(HUGE))
                assert client.head()[0] == 200
            for _ in range(3):
                refusal(asked(server, post(MEDIUM)), 429, "--max-streams", "4 answers")
            assert asked(server, post(SMALL))[0] == 200  # it is none
            assert rejected(server, "streams") == 3
        assert wait_until(lambda: metric(server, "posenc_streams") == 0)
        for _ in range(5):  # each that ends makes room for another
            assert len(asked(server, post(MEDIUM))[2]) == MEDIUM_BYTES
        assert wait_until(lambda: taken(server) == 0)


# ---- Memory -----------------------------------------------------------------------------------------------------------


def test_json_is_refused_in_the_chunk_that_is_too_much():
    with start_server("--max-json", "4KiB") as server:
        chunked = b"POST /encode HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n" + b" " * 4097 + b"\r\n0\r\n\r\n"
        refusal(asked(server, chunked), 413, "--max-json", "4097 bytes", "4096")


def test_clients_that_leave_give_back():
    with start_server("--max-memory", "64MiB", "--max-streams", "4") as server:
        for n in range(8):  # in the head, in the body, before the answer, within it
            for request in (b"POST /enc", declared(MIB), declared(MIB) + b" " * (n * 70_000), post(HUGE)):
                with Client(server, receive_buffer=4096) as client:
                    client.send(request)
                    if n % 2 and request == post(HUGE):
                        client.head()
                    if n % 3 == 0:
                        client.reset()
        assert wait_until(lambda: taken(server) == 0 and metric(server, "posenc_streams") == 0)
        assert len(asked(server, post(MEDIUM))[2]) == MEDIUM_BYTES
