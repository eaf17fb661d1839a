"""Turns at the workers: a request that computes for minutes, whatever it computes, delays other requests only by the
length of turns."""
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import stated_work
from connection import Client, at_once, metric, post, within
from conftest import SANITIZED, Stopwatch, slowness, start_server
from tensors import multipart, npy
from token_files import bearer, token_server
from weights_asking import TABLE, file

WORDS = [str(i) for i in range(4096)]
SLOW = 10 if SANITIZED else 1


def n_begun(server):
    """A job between two turns may be counted nowhere for a moment, and for longer where its thread has no processor."""
    return max(metric(server, "posenc_busy_workers") + metric(server, "posenc_parked_jobs") for _ in range(3))


def parts(request, **arrays):
    body, headers = multipart(request=json.dumps(request), **{n: npy(a) for n, a in arrays.items()})
    return post(body, "/attention", f"Content-Type: {headers['Content-Type']}")


def asking(path, body):
    return post(body, path, "Content-Type: application/json")


def fields(path="/encode", **request):
    return asking(path, json.dumps(request).encode())


def heads(shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f4")


def of_maps(i):
    return {name: {"shape": [2, 1024, 1024], "seed": i + k, "std": 1} for k, name in enumerate(("q", "k"))}


# Each computes for half a minute or more in one job; i tells them apart, so that none shares another's work.
HEAVY = {
    "a picture of a table": lambda i: fields(scheme="sinusoidal", dim=512, len=4000000000, slice=[[None, None, 8000000], None], reduce="absmax", format="text", vmin=-2.0 - i),
    "a picture of attention": lambda i: fields("/attention", scheme="alibi", tokens=WORDS, num_heads=128, head_dim=64, format="text", seed=i,
                                               slice=[[None, None, 128], None, None], reduce="max"),
    "a reduced block": lambda i: fields(scheme="sinusoidal", dim=2, len=(1 << 40) - i, slice=[[None, None, 1 << 40], 0], reduce="mean", format="raw"),
    "the last row of floater": lambda i: fields(scheme="floater", dim=512, positions=[3000], seed=i, format="raw"),
    "the last row of recursive": lambda i: fields(scheme="recursive", dim=1448, hidden=1440, positions=[8000], seed=i, format="raw"),
    "an analysis": lambda i: fields("/analyze", scheme="sinusoidal", dim=2048, len=16384, offset=i, metrics=["unique"]),
    "a diagnosis of scores": lambda i: fields("/diagnose", scheme="rope", **of_maps(i), scores={"shape": [2, 1024, 1024], "seed": i, "std": 1}),
    "a diagnosis of probabilities": lambda i: fields("/diagnose", scheme="rope", **of_maps(i), probs={"shape": [2, 1024, 1024], "seed": i, "std": 1}),
    "a window's table": lambda i: fields(scheme="swinv2", grid=[64, 64], num_heads=256, hidden=1024, seed=i, format="raw"),
    "long rows of attention": lambda i: parts({"scheme": "none", "num_heads": 1, "format": "raw", "outputs": ["row_entropy"], "softmax_scale": 0.01 + i}, q=heads((1, 30000, 64)), k=heads((1, 30000, 64))),
    "values that are no numbers": lambda i: parts({"scheme": "none", "num_heads": 1, "format": "raw", "outputs": ["output"], "softmax_scale": 0.01 + i}, q=heads((1, 9000, 64)), k=heads((1, 20000, 64)),
                                                  v=np.full((1, 20000, 64), np.nan, "f4")),
}


def begin(server, request, source, headers=None):
    client = Client(server, source=source)
    client.socket.settimeout(300)
    lines = "".join(f"\r\n{name}: {value}" for name, value in (headers or {}).items()).encode()
    client.send(request.replace(b"\r\n", lines + b"\r\n", 1) if lines else request)
    return client


def finish(client):
    with client:
        return client.answer()[::2]


def leave(clients):
    for client in clients:
        client.reset()


@pytest.fixture(scope="module")
def server():
    flags = "--workers", "1", "--io-threads", "1", "--answer-cache", "0", "--max-body", "1GiB", "--max-memory", "8GiB", "--max-work", str(10**16)
    with start_server(*flags) as server:
        yield server


SMALL = fields("/analyze", scheme="alibi", len=2, num_heads=1, metrics=["bounds"], outputs=[])
PICTURE = {"scheme": "sinusoidal", "len": 300, "dim": 300, "format": "png"}  # some milliseconds of a worker

# Those of the table of routes that are limited, and some that take longest in reading.
LIMITED = {f"{i} {path}": lambda _, path=path, request=request: asking(path, json.dumps(request).encode()) for i, (path, request) in enumerate([
    *((path.replace("{name}", "rope"), row[1]) for path, row in stated_work.ROUTES.items() if row and isinstance(row[1], dict) and "version" not in path),
    ("/mcp", stated_work.call_of("encode", {"values": [[]] * 2000000})),
    ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "teach_scheme", "arguments": {"scheme": [{}] * 4000000}}}),
    ("/diagnose", {"encoding": stated_work.drawn(16384, 512)}),
    ("/diagnose", {"encoding": stated_work.drawn(4, 16384)}),
    ("/diagnose", {"scheme": "xpos", "cos": stated_work.drawn(16384, 64), "sin": stated_work.drawn(16384, 64, seed=2)}),
])}


def longest_wait(server, asked, source, seconds=0.4, n=60):
    """Of small requests, six or more, that are asked one after the other for so many seconds of the server's: in its processor time, or by a clock that
    leaves out what all wait for processors; on a busy machine the worker goes on while the answer's reader has none."""
    begun, waited = server.processor(), []
    while len(waited) < 6 or server.processor() - begun < seconds and len(waited) < n:
        before, watch = server.processor(), Stopwatch(server)
        assert finish(begin(server, asked(len(waited)), source))[0] == 200
        waited.append(min(server.processor() - before, watch.seconds()))
    return max(waited)


@pytest.mark.skipif(SANITIZED, reason="sanitizers add their own time")
@pytest.mark.parametrize("kind", [*HEAVY, *LIMITED])
def test_a_small_request_waits_for_turns(server, kind):
    """Another client's and the same one's, beside two of each kind; and when their client leaves, their work ends."""
    connections = [begin(server, {**HEAVY, **LIMITED}[kind](i), "127.0.0.2") for i in range(2)]
    try:
        if kind in HEAVY:
            within(60, lambda: n_begun(server) == 2)
        assert longest_wait(server, lambda i: SMALL, "127.0.0.3") < 0.1 * slowness()
        assert longest_wait(server, lambda i: fields(**PICTURE, offset=i), "127.0.0.2", n=6) < 1.5
        if kind in HEAVY:
            within(10, lambda: n_begun(server) == 2)  # one that were done would not be counted again
    finally:
        leave(connections)
    watch = Stopwatch(server)
    within(30, lambda: n_begun(server) == 0)
    assert watch.seconds() < 0.6


def ones(n, head, item=b"1"):
    return head + (item + b",") * (n - 1) + item + b"]}"


READ = {  # made when they are sent: some hundred megabytes
    "key_mask": lambda: ones(8000000, b'{"scheme":"alibi","num_heads":1,"len":8000000,"format":"raw","slice":[0,[0,1],[0,1]],"key_mask":['),
    "k_positions": lambda: ones(8000000, b'{"scheme":"alibi","num_heads":1,"format":"raw","q_positions":[1],"slice":[0,[0,1],[0,1]],"k_positions":['),
    "lens": lambda: ones(8000000, b'{"scheme":"sinusoidal","dim":2,"format":"raw","slice":[[0,1]],"lens":['),
    "short rows": lambda: ones(6000000, b'{"scheme":"rope","format":"raw","slice":[[0,1]],"q":[', b"[1,1,1,1]")[:-1] + b"}",
    "spaces": lambda: b'{"scheme":"sinusoidal","dim":2,"format":"raw","positions":[1,' + b" " * 100000000 + b"2]}",
}


@pytest.mark.skipif(SANITIZED, reason="sanitizers add their own time")
@pytest.mark.parametrize("name", READ)
def test_a_small_request_waits_for_turns_of_reading(server, name):
    """Long lists of a request are read, checked and written into the configuration in turns."""
    asked, answers, waited = asking("/encode", READ[name]()), [], []
    reader = threading.Thread(target=lambda: answers.append(finish(begin(server, asked, "127.0.0.2"))))
    reader.start()
    while reader.is_alive():
        before, watch = server.threads(), Stopwatch(server)  # reading a body from its socket is no worker's turn
        assert finish(begin(server, SMALL, "127.0.0.3"))[0] == 200
        after = server.threads()
        waited.append(min(watch.seconds(), max(after[name] - before.get(name, 0) for name in after)))
    reader.join()
    assert answers and len(waited) > 5 and max(waited) < 0.08, (len(waited), max(waited))


@pytest.mark.skipif(SANITIZED, reason="sanitizers add their own time")
def test_many_large_requests_of_one_address_keep_nobody_out(server):
    with contextlib.ExitStack() as stack:
        connections = [begin(server, HEAVY["the last row of floater"](i), "127.0.0.2") for i in range(60)]
        stack.callback(leave, connections)
        within(60, lambda: metric(server, "posenc_parked_jobs") >= 10)
        assert longest_wait(server, lambda i: fields(**PICTURE, offset=1000 + i), "127.0.0.3", n=6) < 1.5
        assert metric(server, "posenc_parked_jobs") <= 14 + 1, "one client holds a share of the threads"
    within(30, lambda: n_begun(server) == 0)


# Some tenths of a second each: their bytes alone and in turns.
FINITE = [
    fields(scheme="sinusoidal", dim=512, len=150000, slice=[[None, None, 40], None], reduce="absmax", format="text"),
    fields(scheme="floater", dim=200, positions=[400], seed=0, format="raw"),
    fields(scheme="swinv2", grid=[32, 32], num_heads=16, hidden=192, seed=0, format="raw"),
    fields("/attention", scheme="alibi", tokens=WORDS[:900], num_heads=8, head_dim=64, seed=0, format="raw", outputs=["probs"], slice=[[None, None], [None, None, 300], None]),
]


def test_the_same_bytes_in_turns():
    with start_server("--workers", "1", "--answer-cache", "0") as alone:
        expected = [finish(begin(alone, asked, "127.0.0.1")) for asked in FINITE]
    with start_server("--workers", "2", "--answer-cache", "0") as server:
        got = [[] for _ in FINITE]

        def ask(i, source):
            for _ in range(2):
                got[i].append(finish(begin(server, FINITE[i], source)))

        at_once(lambda both: ask(*both), [(i, f"127.0.0.{2 + k}") for i in range(len(FINITE)) for k in range(2)])
        assert metric(server, "posenc_yields_total") > 0
    for i, answers in enumerate(got):
        assert expected[i][0] == 200 and len(answers) == 4
        assert all(answer == expected[i] for answer in answers), FINITE[i]


def test_more_readers_of_one_attention_than_desks():
    """Equal requests share one plan, which has working memory for four threads."""
    asked = fields("/attention", scheme="cope", tokens=WORDS[:400], num_heads=24, head_dim=64, seed=1, format="raw", outputs=["probs"])
    with start_server("--workers", "2", "--answer-cache", "0") as server:
        before = metric(server, "posenc_shared_answers_total")
        answers = at_once(lambda i: finish(begin(server, asked, f"127.0.0.{2 + i}")), range(10))
        assert {answer[0] for answer in answers} == {200} and len({answer[1] for answer in answers}) == 1
        assert metric(server, "posenc_shared_answers_total") > before + 4


def test_the_end_with_jobs_that_wait_for_their_turn():
    with start_server("--workers", "1", "--drain-seconds", "1") as server:
        connections = [begin(server, HEAVY["the last row of floater"](i), "127.0.0.2") for i in range(6)]
        within(60, lambda: metric(server, "posenc_parked_jobs") >= 4)
        server.process.terminate()
        assert server.ended(5 * SLOW) == 0
        leave(connections)


def test_the_stopwatch_counts_what_the_server_waits_for(server):
    """A process that stands still waits for no processor, and programs beside it that have them all are not its fault."""
    os.kill(server.pid, signal.SIGSTOP)
    threading.Timer(0.7, os.kill, (server.pid, signal.SIGCONT)).start()
    watch = Stopwatch(server)
    assert server.get("/healthz").status == 200
    assert watch.seconds() > 0.4
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * os.cpu_count())]
    try:
        begun, watch = time.monotonic(), Stopwatch(server)
        finish(begin(server, FINITE[1], "127.0.0.2"))
        wall, taken = time.monotonic() - begun, watch.seconds()
    finally:
        for other in others:
            other.kill()
            other.wait()
    print(f"{wall:.2f} s, the server's {taken:.2f}")
    assert taken < 0.7 * wall


# ---- SIGHUP ----


def test_tokens_and_weights_are_read_again_while_all_workers_compute(tmp_path):
    lines = ["eve eve-token-0123456 read", "ops ops-token-0123456 write"]
    with token_server(lines, "--workers", "1", "--weights-dir", str(tmp_path)) as server:
        eve, ops = bearer("eve-token-0123456"), bearer("ops-token-0123456")

        def hang_up(*left):
            server.token_path.write_text("\n".join(left) + "\n")
            os.kill(server.pid, signal.SIGHUP)

        connections = [begin(server, HEAVY["values that are no numbers"](i), "127.0.0.2", eve) for i in range(3)]
        within(60, lambda: n_begun(server) == 3)
        (tmp_path / "late.safetensors").write_bytes(file(table=TABLE))
        watch = Stopwatch(server)
        hang_up(lines[1])
        within(20, lambda: server.get("/encode?scheme=rope&len=4", eve).status == 401)
        assert watch.seconds() < 1 * SLOW
        within(20, lambda: b'"late"' in server.get("/weights", ops).body)
        assert watch.seconds() < 2 * SLOW
        for i in range(20):  # again and again, also while it is being read
            hang_up(*lines[i % 2:])
        hang_up(*lines)
        within(20, lambda: server.get("/encode?scheme=rope&len=4", eve).status == 200)
        leave(connections)


# ---- Computing is charged ----


def left_early(server, headers, i, kind):
    connections = [begin(server, HEAVY[kind](2 * i + k), "127.0.0.2", headers) for k in range(2)]
    time.sleep(0.4)
    leave(connections)


def left_stream(server, headers, i):
    client = begin(server, fields("/attention", scheme="rope", tokens=WORDS[:1500], num_heads=64, head_dim=64, seed=i, format="raw", outputs=["probs"]), "127.0.0.2", headers)
    client.head()
    client.file.read(1000000)
    leave([client])


def timed_out(server, headers, i):
    assert finish(begin(server, HEAVY["the last row of floater"](i), "127.0.0.2", {**headers, "X-Request-Timeout": "0.3"}))[0] == 503


CHARGED = {
    "while it is planned": functools.partial(left_early, kind="a picture of attention"),
    "within a picture": functools.partial(left_early, kind="a picture of a table"),
    "within a piece": functools.partial(left_early, kind="the last row of floater"),
    "within a stream": left_stream,
    "by its own time": timed_out,
}


@pytest.mark.parametrize("how", [pytest.param(how, marks=pytest.mark.slow) if "picture" in how or "piece" in how else how for how in CHARGED])
def test_work_is_charged_whose_client_has_left(how):
    with token_server(["eve eve-token-0123456 read work=1000/s"], "--workers", "2", "--max-work", str(10**16)) as server:
        headers, begun = bearer("eve-token-0123456"), server.processor()
        for i in range(100):  # beside other work a request gets little of the processor in its time
            CHARGED[how](server, headers, i)
            if i >= 3 and server.processor() - begun > 0.5:
                break
        within(30, lambda: n_begun(server) == 0)
        seconds, ratio = server.processor() - begun, metric(server, 'posenc_token_compute_seconds_total{token="eve"}') / (server.processor() - begun)
        print(f"{how}: {seconds:.2f} s used, {ratio:.2f} of it charged")
        assert seconds > 0.3, "nothing to charge"
        assert ratio > 0.6, "the rest is reading requests and changing threads"


def test_a_quota_shows_before_a_long_job_ends():
    with token_server(["eve eve-token-0123456 read work=0.2/m"], "--workers", "1") as server:
        eve = bearer("eve-token-0123456")
        client = begin(server, HEAVY["the last row of floater"](0), "127.0.0.2", eve)
        within(20, lambda: server.get("/encode?scheme=rope&len=4", eve).status == 429)
        within(10, lambda: n_begun(server) == 1)  # it goes on: what has begun is not cut
        leave([client])
