"""Equal requests at the same time: a worker answers the first one, and the others get its answer; different requests
never share."""
import contextlib
import json
import time

import numpy as np
import pytest

import connection
import heavy
import safetensors_reader
from conftest import start_server
from connection import Client, get, is_quiet, metric, wait_until
from connection import post as post_bytes
from tensors import multipart, npy

PICTURE = "/encode?scheme=sinusoidal&len=1000&dim=1000&format=png"
SHARED = "posenc_shared_answers_total"


def at_once(server, requests):
    """The answers of all requests, each on a connection of its own and sent when all are open."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server)) for _ in requests]
        for client, request in zip(clients, requests):
            client.send(request)
        return connection.at_once(Client.answer, clients)


@pytest.fixture(params=["1", "3"])
def server(request):
    with start_server("--io-threads", request.param, "--workers", "1") as server:
        yield server


def test_one_picture_for_all(server):
    answers = at_once(server, [get(PICTURE)] * 12)
    assert {status for status, _, _ in answers} == {200}
    assert len({body for _, _, body in answers}) == 1
    assert len({headers["x-request-id"] for _, headers, _ in answers}) == 12
    assert metric(server, SHARED) >= 6
    assert wait_until(lambda: is_quiet(server))


def test_streams_are_shared_from_their_plan(server):
    """Replies in pieces: each client has its own stream of the one plan."""
    request = post_bytes(b'{"scheme":"sinusoidal","len":200000,"dim":16,"format":"raw"}')
    answers = at_once(server, [request] * 8)
    assert {len(body) for _, _, body in answers} == {200000 * 16 * 4}
    assert len({body for _, _, body in answers}) == 1


def test_others_are_not_confused(server):
    requests = [get(PICTURE.replace("len=1000", f"len={990 + i % 3}")) for i in range(9)]
    alone = [at_once(server, [request])[0][2] for request in requests[:3]]
    answers = at_once(server, requests)
    assert [body for _, _, body in answers] == alone * 3


def test_the_first_may_leave(server):
    """A client that waits for the answer of a client that leaves still gets an answer."""
    blocker, leader = Client(server), Client(server)
    blocker.send(get(PICTURE.replace("dim=1000", "dim=3999")))  # the only worker is busy, so the leader waits
    time.sleep(0.02)
    leader.send(get(PICTURE))
    time.sleep(0.05)
    followers = [Client(server) for _ in range(5)]
    for client in followers:
        client.send(get(PICTURE))
    leader.reset()
    answers = [client.answer() for client in followers]
    assert {status for status, _, _ in answers} == {200} and len({body for _, _, body in answers}) == 1
    for client in (blocker, *followers):
        client.__exit__()
    assert wait_until(lambda: is_quiet(server))


def test_stored_weights_are_each_clients_own(server):
    """An answer from stored weights, which may be replaced meanwhile, is never shared."""
    put = server.request("PUT", "/weights/w", safetensors_reader.dumps({"table": np.zeros((32, 64), "f4")}))
    assert put.status in (200, 201, 204)
    request = post_bytes(b'{"scheme":"t5","num_heads":64,"len":400,"weights":"w","format":"png"}')
    before = metric(server, SHARED)
    answers = at_once(server, [request] * 6)
    assert len({(status, body) for status, _, body in answers}) == 1
    assert metric(server, SHARED) == before


def test_refusals_are_not_shared(server):
    before = metric(server, SHARED)
    answers = at_once(server, [get(PICTURE + "&cmap=none")] * 6)
    assert {status for status, _, _ in answers} == {422}
    assert metric(server, SHARED) == before


# ---- Leaders that leave in the middle ---------------------------------------------------------------------------------

SECRET = 1234.5678  # in the memory of another client


OFTEN, RARELY = heavy.table("shared"), heavy.table("shared, slow")


@pytest.mark.parametrize("name", [*OFTEN, *(pytest.param(name, marks=pytest.mark.slow) for name in RARELY)])
def test_followers_of_a_leader_that_leaves_get_whole_answers(name):
    """Whenever the leader leaves, the clients that wait for the same answer get the same bytes as from an undisturbed
    server."""
    victim = post_bytes(json.dumps({"scheme": "rope", "layout": "half", "format": "raw", "q": [[SECRET] * 64] * 1250}).encode(), "/rotate")
    request = {**OFTEN, **RARELY}[name]()
    with start_server("--io-threads", "1", "--workers", "2") as server:
        began = time.monotonic()
        expected = at_once(server, [request])[0]
        took = min(time.monotonic() - began, 2)
        assert expected[0] == 200
        for share in (0.15, 0.35, 0.55, 0.75):
            at_once(server, [victim] * 2)
            leader = Client(server)
            leader.send(request)
            time.sleep(0.01)
            followers = [Client(server) for _ in range(2)]
            for follower in followers:
                follower.send(request)
            time.sleep(took * share)
            leader.reset()
            for follower in followers:
                status, _, body = follower.answer()
                follower.__exit__()
                assert (status, body) == (200, expected[2]), f"left after {share} of the time"
        assert at_once(server, [request])[0][2] == expected[2]
        assert wait_until(lambda: is_quiet(server))


@pytest.mark.parametrize("ends", ["disconnects", "is late"])
def test_work_that_others_wait_for_goes_on(ends):
    """The worker that computes for a leader that disconnects, or whose time is over, computes for its follower: nothing
    is begun again, so the follower's answer counts as shared. The work takes a second, the leader has a fifth."""
    request = OFTEN["map-as-png"](num_heads=256, dim=512)
    first, rest = request.split(b"\r\n", 1)
    with start_server("--io-threads", "1", "--workers", "1") as server:
        leader, follower, before = Client(server), Client(server), metric(server, SHARED)
        leader.send(b"\r\n".join([first, b"X-Request-Timeout: 0.2", rest]) if ends == "is late" else request)
        follower.send(request)
        if ends == "is late":
            assert leader.answer()[0] == 503
        else:
            assert wait_until(lambda: metric(server, "posenc_busy_workers") == 1 and metric(server, "posenc_in_flight_requests") >= 3)
            leader.reset()
        status, _, body = follower.answer()
        assert status == 200 and metric(server, SHARED) == before + 1
        assert body == at_once(server, [request])[0][2]
        follower.__exit__()
        assert wait_until(lambda: is_quiet(server))


def with_table(first):
    """A request of a tensor in its body, whose plan takes a worker and whose answer is streamed from that body."""
    table = np.arange(first, first + 32 * 16, dtype="f4").reshape(32, 16)
    body, headers = multipart(request='{"scheme":"t5","num_heads":16,"lens":[600,47400],"slice":[null,[0,8],null],"format":"raw"}',
                              table=npy(table))
    return post_bytes(body, "/encode", *(f"{name}: {value}" for name, value in headers.items()))


def test_a_shared_answer_outlives_the_request_it_was_made_for(server):
    """The pieces read a tensor of the leader's body, long after the leader has left and others have its memory."""
    alone = at_once(server, [with_table(0)])[0][2]
    assert len(alone) == 16 * 8 * 48000 * 4
    others = [Client(server, source=f"127.0.0.{100 + i}") for i in range(16)]  # the leader has its turn after all of them
    for i, other in enumerate(others):
        other.send(get(PICTURE.replace("dim=1000", f"dim={3999 - i}")))
    assert wait_until(lambda: metric(server, "posenc_parked_jobs") >= 12)
    clients = [Client(server, receive_buffer=65536) for _ in range(4)]
    before = metric(server, SHARED)
    for client in clients:
        client.send(with_table(0))
    assert wait_until(lambda: metric(server, SHARED) >= before + 3)
    for other in others:
        other.reset()
    clients[0].reset()
    time.sleep(0.1)
    for i in range(8):
        server.post("/encode", with_table(1000 * i + 7).partition(b"\r\n\r\n")[2])  # a boundary without its header: refused
    assert [answer[2] == alone for answer in connection.at_once(Client.answer, clients[1:])] == [True] * 3
    for client in clients[1:]:
        client.__exit__()


def test_those_who_follow_in_vain_keep_to_the_queue():
    """Requests that cannot share are computed separately: at most --max-queue of them wait."""
    with start_server("--io-threads", "1", "--workers", "1", "--max-queue", "3") as server:
        server.request("PUT", "/weights/w", safetensors_reader.dumps({"table": np.zeros((32, 64), "f4")}))
        request = post_bytes(b'{"scheme":"t5","num_heads":64,"len":400,"weights":"w","format":"png"}')
        blocker = Client(server)
        blocker.send(get(PICTURE.replace("dim=1000", "dim=3999")))
        assert wait_until(lambda: metric(server, "posenc_busy_workers") == 1)
        answers = at_once(server, [request] * 30)
        blocker.__exit__()
        refused = [json.loads(body) for status, headers, body in answers if status == 503 and headers["retry-after"]]
        assert {status for status, _, _ in answers} == {200, 503} and len(refused) >= 20
        assert all("--max-queue" in problem["detail"] for problem in refused)
        assert metric(server, 'posenc_rejected_total{reason="queue"}') == len(refused)
        assert wait_until(lambda: is_quiet(server))
