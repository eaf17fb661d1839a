"""Rows of small requests: wrk, 64 connections kept alive, against nginx serving a file as long as our answer: a peer of answers from the
cache, a limit of computed ones, since nginx reads, plans and prints nothing.

Server and client share the machine's cores, so requests per second say how much both cost together; CPU for each request
is the server's own and the steadier of the two."""
import json
import tempfile
import urllib.request

import peers
from measure import wrk
from rows import LIMIT, PEER, Skip, cost, row, speed

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
    script = run.shared(post_script).name if body else None

    def load(server, path, script):
        return wrk(server.url + path, server.pids, 1 if run.quick else 2, script)

    def nginx():
        return run.shared(peers.Nginx, nginx_workers, ("answer", answer_bytes(servers[0], path, body)))

    return run.turns(5, *[lambda s=s: load(s, path, script) for s in servers], theirs=lambda: load(nginx(), "/answer", None))


def get_loads(run):
    flags = one_thread(run)
    return loads(run, [run.posencd(*flags), run.posencd(*flags, "--answer-cache", "0")], 1, GET)


def post_loads(run):
    flags = one_thread(run)
    return loads(run, [run.posencd(*flags, "--answer-cache", "0"), run.posencd(*flags)], 1, "/encode", POST)


def get_loads_2(run):
    return loads(run, [run.posencd(run.flag("--io-threads"), "2")], 2, GET)


def speeds(ours, theirs, against="nginx"):
    return speed([l.per_second / 1e3 for l in ours], [l.per_second / 1e3 for l in theirs], "k req/s", against)


def costs(ours, theirs):
    return cost([l.cpu_us for l in ours], [l.cpu_us for l in theirs], "µs", "nginx")


@row("get", "small GET, 1 I/O thread: requests/s", PEER, NEEDS, quick=True)
def get(run):
    ours, _, theirs = run.once(get_loads)
    return speeds(ours, theirs)


@row("get_cpu", "small GET: server CPU for each request", PEER, NEEDS, quick=True)
def get_cpu(run):
    ours, _, theirs = run.once(get_loads)
    return costs(ours, theirs)


@row("get_computed", "small GET, answer cache off: requests/s", LIMIT, NEEDS, quick=True)
def get_computed(run):
    _, ours, theirs = run.once(get_loads)
    return speeds(ours, theirs)


@row("get_computed_cpu", "small GET, answer cache off: server CPU for each request", LIMIT, NEEDS, quick=True)
def get_computed_cpu(run):
    _, ours, theirs = run.once(get_loads)
    return costs(ours, theirs)


@row("get_2", "small GET, 2 I/O threads: requests/s", PEER, NEEDS)
def get_2(run):
    return speeds(*run.once(get_loads_2), "nginx, 2 workers")


@row("post", "small POST, JSON in and out, answer cache off: requests/s", LIMIT, NEEDS)
def post(run):
    ours, _, theirs = run.once(post_loads)
    return speeds(ours, theirs)


@row("post_cached", "small POST, with the answer cache: requests/s", PEER, NEEDS)
def post_cached(run):
    _, ours, theirs = run.once(post_loads)
    return speeds(ours, theirs)
