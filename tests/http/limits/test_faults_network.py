"""Network failures: too few descriptors, clients that reset in every phase, calls that are cut short or interrupted."""
import collections
import random
import resource
import time

import pytest

from conftest import SANITIZED, start_server
from faults import AGAIN, DROPPED, INTERRUPTED, REQUESTS, RESET, SHORT, WEIGHTS, answer_of, answer_on_new, faulty_server, is_right, put
from connection import Client, is_quiet, metric, n_descriptors, post, wait_until

NAMES = [name for name in REQUESTS if not name.startswith(("PUT", "list"))]
preloaded = pytest.mark.skipif(SANITIZED, reason="preloads")


@pytest.fixture(scope="module")
def faulty():
    with faulty_server("--io-threads", "2", "--workers", "2", "--log-level", "error") as server:
        assert answer_on_new(server, put("t5", WEIGHTS))[0] == 201
        server.right = {name: answer_on_new(server, REQUESTS[name]) for name in NAMES}
        yield server
        server.faults.calm()
        assert is_right(server) and wait_until(lambda: is_quiet(server))


@pytest.fixture
def calm(faulty):
    yield faulty
    faulty.faults.calm()
    assert faulty.is_alive(), faulty.stderr_text()[-3000:]


# ---- Calls that go wrong ----------------------------------------------------------------------------------------------------


@preloaded
@pytest.mark.parametrize("permille", [100, 600])
@pytest.mark.parametrize("kinds", [SHORT, INTERRUPTED, AGAIN, SHORT | INTERRUPTED | AGAIN])
def test_calls_cut_short_change_no_answer(calm, kinds, permille):
    calm.faults.set(net_kinds=kinds, net_permille=permille)
    for name in NAMES:
        assert answer_on_new(calm, REQUESTS[name]) == calm.right[name], name
    with Client(calm) as client:
        for name in ("json", "stream of json", "GET", "npz", "refused", "json"):
            assert answer_of(client, REQUESTS[name]) == calm.right[name], name
        client.send(REQUESTS["json"] + REQUESTS["stream"] + REQUESTS["GET"])
        assert client.answer()[2] == calm.right["json"][1]
        assert client.answer()[2] == calm.right["stream"][1]
        assert client.answer()[2] == calm.right["GET"][1]
    assert calm.faults.net_hits > 5


@preloaded
@pytest.mark.parametrize("permille", [100, 300])
def test_resets_in_the_middle_end_one_connection(calm, permille):
    calm.faults.set(net_kinds=RESET | SHORT, net_permille=permille)
    n_right = 0
    for name in NAMES * 3:
        answer = answer_on_new(calm, REQUESTS[name])
        assert answer in (DROPPED, calm.right[name]), name
        n_right += answer != DROPPED
    assert calm.faults.net_hits > 5 and n_right > 3
    calm.faults.calm()
    assert is_right(calm) and wait_until(lambda: is_quiet(calm))


# ---- Clients that reset ----------------------------------------------------------------------------------------------------


def reset_after(server, request, n_sent, n_read):
    """Sends so many bytes, reads so many, then RST."""
    client = Client(server)
    client.send(request[:n_sent])
    if n_read:
        client.socket.recv(n_read)
    client.reset()


def test_clients_that_reset_in_every_phase(faulty):
    rng = random.Random(3)
    before = metric(faulty, "posenc_connections")
    for name in NAMES:
        request = REQUESTS[name]
        head = request.index(b"\r\n\r\n") + 4
        for n_sent in (0, 1, head // 2, head - 1, head, (head + len(request)) // 2, len(request)):
            reset_after(faulty, request, n_sent, 0)
        for n_read in (1, 100, 100_000):
            reset_after(faulty, request, len(request), n_read)
        for _ in range(3):  # while it is computed
            client = Client(faulty)
            client.send(request)
            time.sleep(rng.random() * 0.003)
            client.reset()
    assert is_right(faulty)
    assert wait_until(lambda: is_quiet(faulty) and metric(faulty, "posenc_connections") <= before + 1)


@pytest.mark.parametrize("behind", [2, 8])
def test_clients_that_reset_before_the_next_turn_of_the_loop(behind):
    """A request that a worker is to answer has been read whole, and the reset arrives before the daemon is called for it again."""
    body = b'{"scheme":"rope","head_dim":64,"format":"raw","positions":[' + b"1," * 9000 + b"%d]}"
    with start_server("--io-threads", "1", "--workers", "1", "--log-level", "error") as server:
        clients = collections.deque()
        for i in range(4000):
            clients.append(Client(server))
            clients[-1].send(post(body % i))
            if len(clients) > behind:
                clients.popleft().reset()
        for client in clients:
            client.reset()
        assert wait_until(lambda: is_quiet(server)) and server.is_alive()


# ---- Descriptors ----------------------------------------------------------------------------------------------------------


def test_no_descriptor_left():
    """Clients in progress stay served; clients in the kernel's queue are accepted when there is room."""
    with faulty_server("--io-threads", "1", "--max-connections", "400") as server:
        early = Client(server)
        assert answer_of(early, REQUESTS["json"])[0] == 200
        before = n_descriptors(server)
        limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (before + 20, limits[1]))
        clients = [Client(server) for _ in range(60)]
        wait_until(lambda: n_descriptors(server) >= before + 20, 3)
        assert answer_of(early, REQUESTS["stream"])[0] == 200
        cpu = server.processor()
        time.sleep(1)
        assert server.processor() - cpu < 0.3 or SANITIZED  # it does not spin
        assert answer_of(early, put("t5", WEIGHTS))[0] == 201  # in memory: needs none
        for client in clients[:50]:
            client.__exit__()
        for client in clients[50:]:
            assert answer_of(client, REQUESTS["stored weights"])[0] == 200
        assert is_right(server)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
        for client in clients[50:] + [early]:
            client.__exit__()
        assert wait_until(lambda: n_descriptors(server) <= before, 5), (n_descriptors(server), before)
