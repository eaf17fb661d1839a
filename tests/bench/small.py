"""Rows of small requests: wrk, 64 connections kept alive, against nginx serving a file as long as our answer.

Server and client share the machine's cores, so requests per second say how much both cost together; CPU for each request
is the server's own and the steadier of the two."""
import json
import tempfile
import urllib.request

import peers
from measure import interleaved, wrk
from rows import RECORD, Skip, rate, reached, reached_cost, row

GET = "/encode?scheme=sinusoidal&dim=4&len=1"
POST = {"scheme": "rope", "head_dim": 8, "len": 1, "base": 500000.0, "layout": "half", "dtype": "f32", "digits": 6,
        "outputs": ["cos", "sin"], "format": "json"}
NEEDS = ["nginx", "wrk"]


def answer_bytes(server, path, body=None):
    with urllib.request.urlopen(server.url + path, body and json.dumps(body).encode(), timeout=10) as reply:
        return len(reply.read())


def post_script():
    """What makes wrk post; the file lives as long as the bench."""
    script = tempfile.NamedTemporaryFile("w", suffix=".lua")
    script.write(f"wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = '{json.dumps(POST)}'\n")
    script.flush()
    return script


def one_thread(run):
    """The flag for one I/O thread; a server without it has only one."""
    try:
        return [run.flag("--io-threads"), "1"]
    except Skip:
        return []


def loads(run, servers, nginx_workers, path, body=None):
    """One list of loads for each server and one for nginx."""
    script = run.once(lambda _: post_script()).name if body else None
    size = answer_bytes(servers[0], path, body)
    nginx = run.shared(peers.Nginx, nginx_workers, ("answer", size))
    seconds = 1 if run.quick else 2

    def load(server, path, script):
        return lambda: wrk(server.url + path, server.pids, seconds, script)

    return interleaved(run.rounds(5), *[load(s, path, script) for s in servers], load(nginx, "/answer", None))


def get_loads(run):
    flags = one_thread(run)
    return loads(run, [run.posencd(*flags), run.posencd(*flags, "--answer-cache", "0")], 1, GET)


def post_loads(run):
    flags = one_thread(run)
    return loads(run, [run.posencd(*flags, "--answer-cache", "0"), run.posencd(*flags)], 1, "/encode", POST)


def get_loads_2(run):
    return loads(run, [run.posencd(run.flag("--io-threads"), "2")], 2, GET)


def speeds(ours, theirs, workers=1):
    return rate([l.per_second / 1e3 for l in ours], [l.per_second / 1e3 for l in theirs], "k req/s",
                f"nginx, {workers} worker{'s' * (workers > 1)}")


def costs(ours, theirs):
    return rate([l.cpu_us for l in ours], [l.cpu_us for l in theirs], "µs", "nginx")


@row("get", "small GET, 1 I/O thread: requests/s", reached(avx2=1.54, avx512=1.29), NEEDS, quick=True)
def get(run):
    ours, _, theirs = run.once(get_loads)
    return speeds(ours, theirs)


@row("get_cpu", "small GET: server CPU for each request", reached_cost(avx2=(0.59, 0.73), avx512=0.77), NEEDS, quick=True)
def get_cpu(run):
    ours, _, theirs = run.once(get_loads)
    return costs(ours, theirs)


@row("get_computed", "small GET, answer cache off: requests/s", RECORD, NEEDS, quick=True)
def get_computed(run):
    _, ours, theirs = run.once(get_loads)
    return speeds(ours, theirs)


@row("get_computed_cpu", "small GET, answer cache off: server CPU for each request", RECORD, NEEDS, quick=True)
def get_computed_cpu(run):
    _, ours, theirs = run.once(get_loads)
    return costs(ours, theirs)


@row("get_2", "small GET, 2 I/O threads: requests/s", reached(avx2=1.58, avx512=1.31), NEEDS)
def get_2(run):
    return speeds(*run.once(get_loads_2), workers=2)


@row("post", "small POST, JSON in and out, answer cache off: requests/s", reached(avx2=0.467, avx512=0.46), NEEDS)
def post(run):
    ours, _, theirs = run.once(post_loads)
    return speeds(ours, theirs)


@row("post_cached", "small POST, with the answer cache: requests/s", reached(avx2=1.64, avx512=1.27), NEEDS)
def post_cached(run):
    _, ours, theirs = run.once(post_loads)
    return speeds(ours, theirs)
