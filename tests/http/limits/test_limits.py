"""Admission by cost: every limit refuses a request that exceeds it, with the right text, before anything is computed or
allocated, and releases its reservations. A refusal states the limit, its flag, and what the request would have cost."""

import contextlib
import json
import struct

import pytest

from conftest import SANITIZED, Stopwatch, start_server
from connection import HUGE, MEDIUM, MEDIUM_BYTES, SMALL, Client, get, large_request, metric, post, wait_until

MIB = 1024 * 1024


def steps(n, seed=0):
    """Rows that follow from the rows before them: one piece of work for one worker, 2 ms a row."""
    n = n // 6 if SANITIZED else n
    fields = {"scheme": "floater", "dim": 512, "positions": [n], "seed": seed, "format": "raw"}
    return json.dumps(fields).encode()


def refusal(answer, status, *words):
    assert answer[0] == status, answer
    problem = json.loads(answer[2])
    assert problem["status"] == status
    for word in words:
        assert word in problem["detail"], problem["detail"]
    assert (answer[1].get("retry-after") is not None) == (status in (429, 503))
    return problem["detail"]


def ask(server, request):
    with Client(server) as client:
        client.send(request)
        return client.answer()


def declared(n, *headers):
    return "\r\n".join(["POST /encode HTTP/1.1", "Host: localhost", f"Content-Length: {n}", *headers, "", ""]).encode()


def taken(server):
    return metric(server, "posenc_taken_memory_bytes")


def rejected(server, reason):
    return metric(server, f'posenc_rejected_total{{reason="{reason}"}}')


@contextlib.contextmanager
def clients(server, n, **options):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Client(server, **options)) for _ in range(n)]


# ---- Connections ------------------------------------------------------------------------------------------------------


def test_one_connection_too_many_is_told_so():
    with start_server("--max-connections", "3") as server:
        with clients(server, 3) as three:
            for client in three:
                client.send(get("/healthz"))
                assert client.answer()[0] == 200
            for request in (get("/healthz"), post(SMALL), b""):  # whatever the request is, even none
                with Client(server) as fourth:
                    fourth.send(request)
                    refusal(fourth.answer(), 503, "--max-connections", "3 connections")
                    assert fourth.is_closed()
            three[0].send(get("/healthz"))
            assert three[0].answer()[0] == 200  # those within it are served on
        assert wait_until(lambda: ask(server, get("/healthz"))[0] == 200)
        assert wait_until(lambda: metric(server, "posenc_connections") == 1)
        assert rejected(server, "connections") >= 3


def test_a_flood_of_connections_costs_no_descriptors():
    with start_server("--max-connections", "2") as server:
        with clients(server, 2) as two:
            for client in two:
                client.send(get("/healthz"))
                client.answer()
            two[0].send(get("/metrics"))
            before = fds(two[0])
            with clients(server, 200) as many:
                answers = [client.answer()[0] for client in many]
                two[0].send(get("/metrics"))
                assert fds(two[0]) <= before + 32
            assert set(answers) == {503}
            assert wait_until(lambda: two[0].send(get("/metrics")) or fds(two[0]) == before)


def fds(client):
    text = client.answer()[2].decode()
    return float(next(line for line in text.splitlines() if line.startswith("process_open_fds ")).split()[1])


# ---- Streams ----------------------------------------------------------------------------------------------------------


def test_one_stream_too_many():
    """Three of one client and one of another; the limits of a single client are tested in test_shares.py."""
    with start_server("--max-streams", "4") as server:
        with clients(server, 3, receive_buffer=4096) as three, Client(server, receive_buffer=4096, source="127.0.0.2") as fourth:
            for client in (*three, fourth):
                client.send(post(HUGE))
                assert client.head()[0] == 200
            for _ in range(3):
                refusal(ask(server, post(MEDIUM)), 429, "--max-streams", "4 answers")
            assert ask(server, post(SMALL))[0] == 200  # it is none
            assert rejected(server, "streams") == 3
        assert wait_until(lambda: metric(server, "posenc_streams") == 0)
        for _ in range(5):  # each that ends makes room for another
            assert len(ask(server, post(MEDIUM))[2]) == MEDIUM_BYTES
        assert wait_until(lambda: taken(server) == 0)


# ---- Memory -----------------------------------------------------------------------------------------------------------


def test_what_can_never_fit_is_too_large():
    with start_server("--max-memory", "16MiB") as server:
        for n in (13 * MIB, 17 * MIB):  # no client gets more than four fifths
            detail = refusal(ask(server, declared(n)), 413, "--max-memory", str(n), str(16 * MIB * 4 // 5))
            assert "try again" not in detail


def test_a_chunked_body_takes_memory_as_it_grows():
    with start_server("--max-memory", "16MiB") as server:
        with Client(server) as holder, Client(server, source="127.0.0.2") as growing:
            holder.send(declared(8 * MIB) + b" " * (7 * MIB))
            growing.send(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            chunk = b"80000\r\n" + b" " * 0x80000 + b"\r\n"
            for _ in range(4):
                growing.send(chunk)
            assert wait_until(lambda: taken(server) >= 9 * MIB)
            for _ in range(10):
                growing.send(chunk)
            growing.send(b"0\r\n\r\n")
            refusal(growing.answer(), 503, "--max-memory")
        assert wait_until(lambda: taken(server) == 0)


def test_numbers_in_json_take_more_than_their_text():
    """"0," is two bytes and becomes a double: known before it is read."""
    body = large_request(1_000_000)
    with start_server("--max-memory", "32MiB") as server:
        refusal(ask(server, post(body)), 413, "reading the body", "--max-memory")
        assert wait_until(lambda: taken(server) == 0)
    with start_server("--max-memory", "256MiB") as server:
        assert ask(server, post(body))[0] in (200, 413, 422)  # whatever the language says of so many positions
        assert wait_until(lambda: taken(server) == 0)


LONG = b'{"scheme":"sinusoidal","dim":512,"len":4194304,"format":"raw"}'


def test_streams_take_memory():
    """A piece and the daemon's block each, in the worst case three pieces; memory held by slow readers is not
    available to others."""
    with start_server("--max-memory", "8MiB", "--io-threads", "1") as server:
        with clients(server, 20, receive_buffer=4096) as many:
            answers = []
            for client in many:
                client.send(post(LONG))
                answers.append(client.head()[0])
            assert answers.count(200) >= 3 and answers.count(503) >= 5 and len(set(answers)) == 2
            assert taken(server) <= 8 * MIB
            assert rejected(server, "memory") == answers.count(503)
        assert wait_until(lambda: taken(server) == 0)
        assert len(ask(server, post(MEDIUM))[2]) == MEDIUM_BYTES


def test_pictures_take_memory():
    body = json.dumps({"scheme": "sinusoidal", "len": 4096, "dim": 4096, "format": "png"}).encode()
    with start_server("--max-memory", "8MiB") as server:
        refusal(ask(server, post(body)), 413, "making the answer", "--max-memory")
        assert wait_until(lambda: taken(server) == 0)


def test_plans_take_memory():
    body = json.dumps({"scheme": "sinusoidal", "len": 4, "dim": 65536, "format": "raw"}).encode()
    with start_server("--max-memory", "8MiB") as server:
        refusal(ask(server, post(body)), 413, "planning the answer", "--max-memory")
        assert (rejected(server, "memory"), rejected(server, "limit")) == (0, 1)
        assert wait_until(lambda: taken(server) == 0)
    with start_server() as server:
        assert ask(server, post(body))[0] == 200
        assert wait_until(lambda: taken(server) == 0)


CONFIGS = {
    "a wide table": ({"model_type": "marian", "d_model": 65536}, {"len": 4}),
    "a wide head": ({"model_type": "llama", "hidden_size": 8192, "head_dim": 4096, "num_attention_heads": 2}, {"positions": list(range(8000))}),
    "many heads": ({"model_type": "bloom", "hidden_size": 65536, "n_head": 4096}, {"len": 200, "outputs": ["bias"]}),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_numbers_of_a_model_count_like_ones_own(server, what):
    """Values from a config.json are refused before planning, with the same text as for the explicit request."""
    config, sequence = CONFIGS[what]
    resolved = server.ask(**sequence, hf_config=config, data=False).json()["config"]
    details = []
    with start_server("--max-memory", "1MiB") as small:
        for fields in ({"hf_config": config}, resolved):
            body = json.dumps({**fields, **sequence, "format": "raw"}).encode()
            details.append(refusal(ask(small, post(body)), 413, "planning the answer", "--max-memory"))
        assert wait_until(lambda: taken(small) == 0)
        assert details[0] == details[1]
    with start_server("--max-answer", "1KiB") as small:
        body = json.dumps({"hf_config": config, **sequence, "format": "raw"}).encode()
        refusal(ask(small, post(body)), 413, "--max-answer", "1024")


REFUSED = [SMALL[:-1], b'{"scheme":"nobody"}', b'{"scheme":"sinusoidal","dim":-3,"len":4}', b"[" * 100, b"\xff", b"{}"]


def test_every_path_gives_back():
    with start_server("--max-memory", "64MiB", "--max-streams", "4") as server:
        for body in REFUSED:
            assert ask(server, post(body + b" " * 100_000))[0] in (400, 413, 422)
            assert ask(server, post(body))[0] in (400, 413, 422)
        for n in range(8):  # clients that leave: in the head, in the body, before the answer, within it
            for request in (b"POST /enc", declared(MIB), declared(MIB) + b" " * (n * 70_000), post(HUGE)):
                with Client(server, receive_buffer=4096) as client:
                    client.send(request)
                    if n % 2 and request == post(HUGE):
                        client.head()
                    if n % 3 == 0:
                        client.reset()
        assert wait_until(lambda: taken(server) == 0 and metric(server, "posenc_streams") == 0)
        assert len(ask(server, post(MEDIUM))[2]) == MEDIUM_BYTES


# ---- Work -------------------------------------------------------------------------------------------------------------

TOO_MUCH = {
    "a table": {"scheme": "sinusoidal", "dim": 512, "len": 1 << 20},
    "exponentials": {"scheme": "xpos", "head_dim": 64, "len": 1 << 15},
    "a network": {"scheme": "fire", "num_heads": 4, "len": 1024, "outputs": ["bias"], "seed": 1},
    "steps": {"scheme": "floater", "dim": 512, "len": 2500, "seed": 1},
    "a block reduced": {"scheme": "sinusoidal", "dim": 512, "len": 1 << 40, "slice": [[0, None, 1 << 39], [0, None, 512]],
                        "reduce": "mean"},
    "a picture": {"scheme": "alibi", "num_heads": 1, "len": 2048, "outputs": ["bias"], "format": "png"},
}


@pytest.fixture(scope="module")
def lazy():
    with start_server("--max-work", "500000000") as server:
        yield server


@pytest.mark.parametrize("what", TOO_MUCH)
def test_work_is_known_before_it_is_done(lazy, what):
    body = {"format": "raw", **TOO_MUCH[what]}
    clock = Stopwatch(lazy)
    detail = refusal(ask(lazy, post(json.dumps(body).encode())), 413, "--max-work", "multiplications", "5e+08")
    assert SANITIZED or clock.seconds() < 1, detail
    small = {k: v for k, v in body.items() if k not in ("slice", "reduce")}
    small["len"] = 16
    assert ask(lazy, post(json.dumps(small).encode()))[0] == 200


def test_the_reduction_of_half_a_table_is_too_much_by_default(server):
    body = json.dumps({"format": "raw", **TOO_MUCH["a block reduced"]}).encode()
    refusal(ask(server, post(body)), 413, "--max-work", "1e+13")


# ---- JSON -------------------------------------------------------------------------------------------------------------


def test_depth_and_size_of_json(server):
    refusal(ask(server, post(b'{"a":' * 65 + b"1" + b"}" * 65)), 400, "64 levels")
    refusal(ask(server, post(b'{"a":"' + b"x" * (2 * MIB) + b'"}')), 413, "1048576")


ROPE = b'{"scheme":"rope","len":2,"head_dim":4,"outputs":["cos"]}'


def part(name, content):
    return b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), content)


def npy(n):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 4), }" % n
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(16 * n)


def test_json_over_its_own_limit():
    """In every form in which JSON is sent; tensors beside it are limited only by the body's limit."""
    long = ROPE + b" " * (4096 - len(ROPE) + 1)
    multipart = ["Content-Type: multipart/form-data; boundary=b"]
    tensor = part("q", npy(1000))
    infer = json.dumps({"inputs": [{"name": "q", "shape": [1, 1, 2, 2], "datatype": "FP32", "data": [0, 1, 2, 3]}]}).encode()
    with start_server("--max-json", "4KiB") as server:
        assert ask(server, post(long[:-1]))[0] == 200
        with Client(server) as client:  # before any of it has come
            client.send(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4097\r\n\r\n")
            refusal(client.answer(), 413, "--max-json", "4097 bytes", "4096")
        chunked = b"POST /encode HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n" + long + b"\r\n0\r\n\r\n"
        refusal(ask(server, chunked), 413, "--max-json", "4097 bytes", "4096")
        request = json.dumps({"scheme": "rope", "format": "raw"}).encode()
        assert ask(server, post(part("request", request) + tensor + b"--b--\r\n", "/rotate", *multipart))[0] == 200
        body = part("request", request + b" " * 5000) + tensor + b"--b--\r\n"
        refusal(ask(server, post(body, "/rotate", *multipart)), 413, "part \"request\"", "--max-json", f"{len(request) + 5000} bytes")
        assert ask(server, post(infer, "/v2/models/rope/infer"))[0] == 200
        refusal(ask(server, post(infer + b" " * 5000, "/v2/models/rope/infer")), 413, "--max-json", f"{len(infer) + 5000} bytes")
        assert wait_until(lambda: rejected(server, "limit") == 4)
        assert wait_until(lambda: taken(server) == 0)
