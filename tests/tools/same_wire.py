"""Two builds of the server send the same bytes: for changes of code that must not be noticed. Run by hand.

    python3 tests/tools/same_wire.py OLDER [NEWER]     programs; NEWER is build/posencd

Compared are status, headers and body, but for dates, digits of Server-Timing, and what tells the build or counts requests; of requests that
are cut off, what the log has of them; of small requests, the allocations, of which the newer build makes no more. Prints what differs; the
status is 1 if anything does."""
import concurrent.futures
import contextlib
import itertools
import json
import pathlib
import re
import socket
import sys
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/http"), str(ROOT / "tests/http/transport"), str(ROOT / "tests")]

import heads  # noqa: E402
import run  # noqa: E402
from conftest import start_server  # noqa: E402
from connection import Client, get, wait_until  # noqa: E402
from faults import LIBRARY, REQUESTS, WEIGHTS, ask, control, put  # noqa: E402

FLAGS = ["--workers", "1", "--max-queue", "8", "--log-format", "json", "--experiments", "1", "--experiment-seconds", "1"]
# Answers that are about the process: only their heads are compared, without their lengths.
OF_THE_PROCESS = re.compile(r"/metrics|/version|/v2/?$|/stats|/openapi.json|^/$|/docs|/ui/|/clients/")


def call(method, path, *headers, body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    return "\r\n".join(lines + ([f"Content-Length: {len(body)}"] if body else []) + ["", ""]).encode() + body


def with_header(request, *headers):
    head, _, body = request.partition(b"\r\n\r\n")
    return b"\r\n".join([head, *(h.encode() for h in headers)]) + b"\r\n\r\n" + body


def as_method(request, method):
    return method.encode() + request[request.index(b" "):]


def path_of(request):
    return (request.split(b" ", 2) + [b"", b""])[1].decode("latin1")


def of_row(row):
    """A row of tests/cases as bytes."""
    method, path, body, headers = run.sent(row)
    return call(method.upper(), path, *(f"{name}: {value}" for name, value in headers.items()), body=body or b"")


WITHOUT_FLAGS = [row for row in run.every() if "flags" not in row]
ROWS = {run.name_of(row): of_row(row) for row in WITHOUT_FLAGS}
HEADS = {f"heads/{id}": raw for id, raw, expect in heads.rows() if "status" in expect}
EVERY_PATH = sorted({row["get"].partition("?")[0] for row in WITHOUT_FLAGS if "get" in row})
LIVE = {"task": "local", "configs": [{"scheme": "rope"}], "steps": 2, "train_len": 16, "eval_len": 16, "seed": 1}
BASE = {**REQUESTS, **{path: get(path) for path in EVERY_PATH}, "live": ask("/experiments", **LIVE)}
VARIED = {
    "HEAD": lambda r: as_method(r, "HEAD") if r.startswith(b"GET") else None,
    "QUERY": lambda r: as_method(r, "QUERY") if r.startswith(b"POST") else None,
    "Range": lambda r: with_header(r, "Range: bytes=3-41"),
    "the end": lambda r: with_header(r, "Range: bytes=-7") if r.startswith(b"GET") else None,
    "no such range": lambda r: with_header(r, "Range: bytes=999999999-") if r.startswith(b"GET") else None,
    "any tag": lambda r: with_header(r, "If-None-Match: *"),
    "late": lambda r: with_header(r, "X-Request-Timeout: 0.000001"),
    "again": lambda r: r,
}


def worked(server):
    """An analysis that keeps a worker busy for some 0.5 s: the first metric of the registry that compares every row with every other."""
    metrics = json.loads(server.get("/schemes").body)["metrics"]
    name = next(metric["name"] for metric in metrics if metric["work"].startswith("n^2"))
    request = ask("/analyze", scheme="sinusoidal", len=8000, dim=512, metrics=[name])
    assert b"HTTP/1.1 200 " in sent(server, request), name
    return request


def every_call(base):
    varied = {f"{how}: {name}": vary(r) for (how, vary), (name, r) in itertools.product(VARIED.items(), base.items()) if vary(r)}
    return {**base, **ROWS, **HEADS, **varied}


def sent(server, request, tries=5):
    try:
        with Client(server) as client:
            client.send(request)
            with contextlib.suppress(OSError): # it has closed already
                client.socket.shutdown(socket.SHUT_WR)
            return client.file.read()
    except ConnectionError: # the server has refused a body that it does not read, and the reset overtook the refusal
        if tries == 1:
            raise
        return sent(server, request, tries - 1)


def answer(server, request):
    """All that arrives until the server closes, without what no two runs have in common."""
    request = with_header(request, "X-Request-Id: the-same") if b"HTTP/1.1" in request else request
    said = sent(server, request).replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")  # which comes if the body comes late
    head, _, body = said.partition(b"\r\n\r\n")
    if b"application/x-ndjson" in head:  # its chunks are as long as the times in them
        body = re.sub(rb"(?m)^[0-9a-f]+\r\n", b"", body)
    head = re.sub(rb"(?m)^Date:.*$", b"Date:", head)
    head = re.sub(rb'"[0-9a-f]{32}"', b'"TAG"', head) # the commit is part of it
    head = re.sub(rb"(?m)^Server-Timing:.*$", lambda m: re.sub(rb"[\d.]+", b"", m[0]), head)
    head = re.sub(rb"(?m)^(X-Request-Id: ).*$", rb"\1", head) if b"the-same" not in head else head
    if OF_THE_PROCESS.search(path_of(request)):
        return re.sub(rb"(?m)^(ETag|Content-Length|Link|Content-Security-Policy):.*$", rb"\1", head), None
    return head, re.sub(rb"20\d\d-\d\d-\d\dT[\d:]+Z", b"TIME", re.sub(rb'"(seconds|ms)":[\d.]+', b"", body))


@contextlib.contextmanager
def started(program):
    """A server of this build with its numbers of faults, and weights."""
    with control() as (path, numbers), start_server(*FLAGS, program=program, env={"LD_PRELOAD": str(LIBRARY), "FAULTS_CONTROL": path}) as server:
        server.faults = numbers
        with Client(server) as client:
            client.send(put("t5", WEIGHTS))
            assert client.answer()[0] == 201
        yield server


def tagged(server, path):
    """The answer to a request with the tag that the server itself has sent."""
    return answer(server, get(path, "If-None-Match: " + server.get(path).headers.get("ETag", "none")))


# ---- Clients that leave, and times that end: what the log says -------------------------------------------------------------------

LONG = {"live": ask("/experiments", task="local", configs=[{"scheme": "rope"}], steps=1000, seed=1),
        "stream": ask(scheme="rope", len=1000000, head_dim=128, format="raw"), "text stream": ask(scheme="rope", len=300000, head_dim=128),
        "large body": ask(scheme="rope", head_dim=128, format="npy", positions=list(range(80000)))}
# Of 0.15 s a time ends within the worker's work, or within the answer, which then is cut.
LEAVING = {"in the body": lambda r: r[:-5], "at once": lambda r: r, "in the answer": lambda r: r,
           "out of time": lambda r: with_header(r, "X-Request-Timeout: 0.15")}


def told_of(server, request_id, before):
    """The line of the log, and the refusals and cancellations that are counted since."""
    def find():
        return [line for line in server.stderr_text().splitlines() if request_id in line]
    assert wait_until(find, 10), request_id
    line = json.loads(find()[0])
    after = counted(server)
    return {k: line.get(k) for k in ("event", "method", "path", "scheme", "status", "cancelled")}, {k: n - before[k] for k, n in after.items() if n != before[k]}


def counted(server):
    lines = server.get("/metrics").body.decode().splitlines()
    return {name: float(n) for name, n in (line.rsplit(" ", 1) for line in lines if line.startswith(("posenc_cancelled", "posenc_rejected")))}


def leave(server, request, step):
    request_id, before = uuid.uuid4().hex, counted(server)
    with Client(server) as client:
        client.send(LEAVING[step](with_header(request, "X-Request-Id: " + request_id)))
        if step == "out of time":
            client.head()
            time.sleep(1)
        elif step == "in the answer":
            assert client.file.read(1) == b"H"
        else:
            time.sleep(0.1) # what has not been read is lost with the reset
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return told_of(server, request_id, before)


# ---- Allocations -----------------------------------------------------------------------------------------------------------------

SMALL = ["GET", "HEAD", "json", "refused", "text", "oip", "/healthz", "/schemes/rope", "limits"]


def allocations(server, request, is_new):
    """The fewest of five tries, each on a connection that has been used: by requests that are new, or that the cache has."""
    counts = []
    with Client(server) as client:
        for i in range(6):
            varied = with_header(request, f"Accept-Language: x{i}" if is_new else "Accept-Language: y")
            with server.faults.allocations(1 << 40):
                client.send(varied)
                client.head() if request.startswith(b"HEAD") else client.answer()
                time.sleep(0.02)
                counts.append(server.faults.alloc_count)
    return min(counts[1:])


# ---- Both --------------------------------------------------------------------------------------------------------------------------


def comparisons(worker):
    """(name, what to ask of each server, whether both may be asked at the same time: where no time decides)"""
    for name, request in every_call({**BASE, "worker": worker}).items():
        yield name, lambda server, request=request: answer(server, request), not ("late: " in name or name.endswith("live"))
    for path in EVERY_PATH:
        yield "its tag: " + path, lambda server, path=path: tagged(server, path), True
    for (name, request), step in itertools.product({**LONG, "worker": worker}.items(), LEAVING):
        if (name, step) != ("worker", "in the answer"):  # its answer is sent at once
            yield f"{name} left {step}", lambda server, request=request, step=step: leave(server, request, step), False


def main(older, newer=str(ROOT / "build/posencd")):
    n, different, since = 0, 0, time.monotonic()
    with started(older) as old, started(newer) as new, concurrent.futures.ThreadPoolExecutor(1) as beside:
        for name, look, is_parallel in comparisons(worked(old)):
            if is_parallel:
                right = beside.submit(look, new)
                left, right = look(old), right.result()
            if not is_parallel or left != right:  # a reset may overtake an answer, once
                left, right = look(old), look(new)
            n, different = n + 1, different + (left != right)
            if left != right:
                print(f"{name}:\n  older {str(left)[:500]}\n  newer {str(right)[:500]}", flush=True)
            if n % 1000 == 0:
                print(f"{n} compared, {different} differ, {time.monotonic() - since:.0f} s", flush=True)
        for name, is_new in itertools.product(SMALL, (True, False)):
            left, right = (allocations(server, BASE[name], is_new) for server in (old, new))
            n, different = n + 1, different + (right > left)
            print(f"{name:20} {left:5} → {right:5} allocations" + (", more" if right > left else ""))
    print(f"{n} compared, {different} differ, {time.monotonic() - since:.0f} s")
    return 1 if different else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
