"""How rows of a running server are measured: requests by wrk, streams and uploads by bench_wire, processor time of one request.

Server and client share the machine's cores, so requests per second say how much both cost together; CPU for each request
is the server's own and the steadier of the two. The bare loops of bench_wire are the limit of a socket on this machine."""
import contextlib
import io
import json
import re
import statistics
import struct
import tempfile
import threading
import urllib.request

import peers
from measure import output, wrk
from rows import Skip, cost, speed, times

MIB = 1 << 20
LARGE, HUGE = 16 * MIB, 256 * MIB
GET = "/encode?scheme=sinusoidal&dim=4&len=1"
POST = {"scheme": "rope", "head_dim": 8, "len": 1, "base": 500000.0, "layout": "half", "dtype": "f32", "digits": 6,
        "outputs": ["cos", "sin"], "format": "json"}


def post(server, path, body, content_type="application/json", timeout=120):
    request = urllib.request.Request(server.url + path, body, {"Content-Type": content_type})
    with urllib.request.urlopen(request, timeout=timeout) as reply:
        return reply.read()


def cpu_seconds(server):
    with urllib.request.urlopen(server.url + "/metrics", timeout=10) as reply:
        return float(re.search(r"^process_cpu_seconds_total (\S+)$", reply.read().decode(), re.M)[1])


def cpu_of(server, times, ask):
    """Milliseconds of processor time of one request, of several samples."""
    found = []
    for _ in range(times):
        before = cpu_seconds(server)
        ask()
        found.append(1e3 * (cpu_seconds(server) - before))
    return found


# ---- Small requests, 64 connections kept alive, beside nginx serving a file as long as our answer -----------------------------


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


def cached_or_not(run):
    flags = one_thread(run)
    return [run.posencd(*flags), run.posencd(*flags, "--answer-cache", "0")]


def get_loads(run):
    return loads(run, cached_or_not(run), 1, GET)


def post_loads(run):
    return loads(run, cached_or_not(run), 1, "/encode", POST)


def get_loads_2(run):
    return loads(run, [run.posencd(run.flag("--io-threads"), "2")], 2, GET)


CACHED, COMPUTED = 0, 1


def per_second(measured, side=CACHED, against="nginx"):
    def measure(run):
        found = run.once(measured)
        return speed(*([load.per_second / 1e3 for load in found[i]] for i in (side, -1)), "k req/s", against)
    return measure


def cpu_each(measured, side=CACHED):
    def measure(run):
        found = run.once(measured)
        return cost(*([load.cpu_us for load in found[i]] for i in (side, -1)), "µs", "nginx")
    return measure


# ---- Streams -------------------------------------------------------------------------------------------------------------


def table_path(n_bytes):
    return f"/encode?scheme=sinusoidal&dim=128&format=raw&len={n_bytes // 512}"


def congestion(run, server_too):
    """cubic on our client's side; server_too: and the flag for posencd's, or Skip."""
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as file:
        if "cubic" not in file.read().split():
            raise Skip("this kernel has no cubic")
    return [run.flag("--tcp-cc"), "cubic"] if server_too else ["cubic"]


def nginx_files(run):
    """small: as long as the answer asked for beside streams, 128 positions of JSON."""
    return run.shared(peers.Nginx, 1, ("large", LARGE), ("huge", HUGE), ("small", 300))


def gigabytes(run, server, path, times, *cc):
    """GB/s: the median of some transfers on one connection, the first left out."""
    times_each, n_bytes = run.transfers(server.port, path, times + 1, *cc)
    return n_bytes / statistics.median(times_each[1:]) / 1e9


def curl_speed(run, server, path):
    return float(output(["curl", "-s", "-o", "/dev/null", "-w", "%{speed_download}", server.url + path])) / 1e9


def in_c(times):
    return lambda run, server, path: gigabytes(run, server, path, times)


def of_nginx(read, n_bytes, file):
    """GB/s that read(run, server, path) finds."""
    def measure(run):
        ours = run.posencd()
        both = run.turns(9, lambda: read(run, ours, table_path(n_bytes)), theirs=lambda: read(run, nginx_files(run), file))
        return speed(*both, "GB/s", "nginx sendfile")
    return measure


def of_send(is_cubic):
    """16 MiB, beside a loop that sends the same block again and again."""
    def measure(run):
        cc = ["cubic"] if is_cubic else []
        ours = run.posencd(*congestion(run, server_too=True)) if is_cubic else run.posencd()
        both = run.turns(9, lambda: gigabytes(run, ours, table_path(LARGE), 15, *cc),
                         theirs=lambda: gigabytes(run, run.shared(peers.Bare, run.build, LARGE, *cc), "/", 15, *cc))
        return speed(*both, "GB/s", "send()")
    return measure


def stream_cpu(run):
    """Milliseconds of one answer. nginx copies nothing, we compute what we send."""
    def cpu(server, path):
        used = peers.cpu_seconds(server.pids)
        run.transfers(server.port, path, 16)
        return 1e3 * (peers.cpu_seconds(server.pids) - used) / 16
    ours = run.posencd()
    return cost(*run.turns(9, lambda: cpu(ours, table_path(LARGE)), theirs=lambda: cpu(nginx_files(run), "/large")), "ms", "nginx sendfile")


@contextlib.contextmanager
def two_readers(run, server, path):
    """Two clients that read huge answers one after the other until the block is left."""
    command = [f"{run.build}/tests/bench/bench_wire", "get", str(server.port), path, "1000000"]
    with contextlib.ExitStack() as stack, open("/dev/null", "w") as nowhere:
        for _ in range(2):
            stack.enter_context(peers.process(command, stdout=nowhere, stderr=nowhere))
        threading.Event().wait(0.5)
        yield


def p99(run):
    """Milliseconds of small requests, one at a time, while two clients stream."""
    def beside(server, small, huge):
        with two_readers(run, server, huge):
            found, _ = run.transfers(server.port, small, 500 if run.quick else 2000)
        return sorted(found)[len(found) * 99 // 100] * 1e3
    ours = run.posencd()
    return cost(*run.turns(7, lambda: beside(ours, GET, table_path(HUGE)), theirs=lambda: beside(nginx_files(run), "/small", "/huge")), "ms", "nginx")


# ---- Uploads and memory ------------------------------------------------------------------------------------------------------


def npy_file(n_bytes):
    """f32 [1, 1, n, 128] of nothing but zeros: no value is looked at."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, {n_bytes // 512}, 128), }}"
    header = header.ljust(128 - 10 - 1) + "\n"
    file = tempfile.NamedTemporaryFile(dir=peers.memory_folder(), suffix=".npy")
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(n_bytes))
    file.flush()
    return file


def upload(run):
    """Shapes only are asked for (data=false), so that receiving is all there is to do. Our client sends, so cubic on its
    side is all that it takes."""
    cc = congestion(run, server_too=False)
    ours = run.posencd()
    with npy_file(LARGE) as file:
        def speed_of(server, path):
            found, n_bytes = run.uploads(server.port, path, file.name, 16, *cc)
            return n_bytes / statistics.median(found[1:]) / 1e9
        both = run.turns(9, lambda: speed_of(ours, "/rotate?scheme=rope&data=false"),
                         theirs=lambda: speed_of(run.shared(peers.Bare, run.build, LARGE), "/"))
    return speed(*both, "GB/s", "recv()")


def memory(run):
    """Anonymous memory, looked at every few milliseconds, of a server that has answered one small request."""
    n_bytes = (1 if run.quick else 4) * 1024 * MIB
    with peers.Posencd(f"{run.build}/posencd") as server:
        pid = server.pids[0]
        run.transfers(server.port, GET, 1)
        idle, most = peers.memory(pid, "RssAnon"), 0
        reader = threading.Thread(target=run.transfers, args=(server.port, table_path(n_bytes), 1))
        reader.start()
        while reader.is_alive():
            most = max(most, peers.memory(pid, "RssAnon"))
            reader.join(0.003)
    return cost([max(most - idle, 4096) / MIB], [n_bytes / MIB], "MiB", "the answer")


# ---- /analyze and /diagnose ----------------------------------------------------------------------------------------------

ROPE = {"scheme": "rope", "head_dim": 128, "len": 2048}
LARGEST = [{"scheme": "sinusoidal", "dim": 512, "len": 16384, "metrics": ["unique", "similarity"]},
           {"scheme": "rope", "head_dim": 128, "len": 16384, "metrics": ["unique", "similarity", "shift", "precision"]}]


def analyze_rope(run):
    """The metrics computed by default, but those that look at other lengths."""
    server = run.posencd("--answer-cache", "0")
    usual = json.loads(post(server, "/analyze", json.dumps({**ROPE, "len": 16, "outputs": []}).encode()))["results"][0]
    body = json.dumps({**ROPE, "metrics": [name for name in usual if name not in ("extrapolation", "properties")]}).encode()
    return cost(cpu_of(server, run.rounds(9), lambda: post(server, "/analyze", body)), [], "ms")


def zipped(arrays):
    import numpy
    body = io.BytesIO()
    numpy.savez(body, **arrays)
    return body.getvalue()


def rotated(server):
    """q, and q turned with halves."""
    import numpy
    q = numpy.random.default_rng(0).normal(size=(1, 32, 2048, 128)).astype("f4")
    turned = post(server, "/rotate?scheme=rope&layout=half&format=npz", zipped({"q": q}), "application/zip")
    return zipped({"q": q, "q_out": numpy.load(io.BytesIO(turned))["q"]})


def tables(**fields):
    """cos and sin of this configuration of rope."""
    return lambda server: post(server, "/encode", json.dumps({"format": "npz", **fields}).encode())


def noise(*names, shape):
    def make(_server):
        import numpy
        drawn = numpy.random.default_rng(0).uniform(-1, 1, size=(len(names), *shape))
        return zipped(dict(zip(names, drawn.astype("f4"))))
    return make


def of_diagnosis(belief, make, code, rounds=5):
    """CPU of a diagnosis of these tensors, whose first finding has this code."""
    def measure(run):
        server = run.posencd()
        body = make(server)

        def diagnose():
            answer = json.loads(post(server, f"/diagnose?{belief}", body, "application/zip"))
            assert [finding["code"] for finding in answer["findings"]][:1] == [code], answer["findings"]
        return cost(cpu_of(server, run.rounds(rounds), diagnose), [], "ms")
    return measure


def keep_asking(server, body, end):
    while not end.is_set():
        try:
            post(server, "/analyze", body)
        except OSError:
            end.wait(0.2)


def analyses_health(run):
    """Eight clients, so that the workers always have an analysis to compute and others wait."""
    server, end = run.posencd("--answer-cache", "0"), threading.Event()

    def p99s():
        return [1e3 * sorted(run.transfers(server.port, "/healthz", 300)[0])[297] for _ in range(run.rounds(5))]

    idle = p99s()
    clients = [threading.Thread(target=keep_asking, args=(server, json.dumps(LARGEST[i % 2]).encode(), end)) for i in range(8)]
    for client in clients:
        client.start()
    end.wait(0.5)
    try:
        return cost(p99s(), idle, "ms", "an idle server")
    finally:
        end.set()
        for client in clients:
            client.join()


# ---- FastAPI and torch behind uvicorn with two workers (peer_fastapi.py), ours as it starts -----------------------------------


def fastapi(run):
    return run.shared(peers.Uvicorn, "peer_fastapi:app", 2)


def of_paths(ours, theirs, rounds, n):
    """One client reads the answer some times on one connection: medians of wall time, in turn."""
    def measure(run):
        def seconds(server, path, n):
            return statistics.median(run.transfers(server.port, path, n)[0])
        server = run.posencd()
        return times(*run.turns(rounds, lambda: seconds(server, ours, n * 5), theirs=lambda: seconds(fastapi(run), theirs, n), quick=2), "FastAPI")
    return measure


def fastapi_small(run):
    server = run.posencd()
    both = run.turns(3, lambda: wrk(f"{server.url}/encode?scheme=sinusoidal&dim=16&len=8", server.pids, 2).per_second,
                     theirs=lambda: wrk(f"{fastapi(run).url}/small", fastapi(run).pids, 2).per_second)
    return speed(*both, "req/s", "FastAPI")


def fastapi_memory(run):
    """Of the peer, its largest process."""
    def resident(server):
        return max(peers.memory(pid, "VmRSS") for pid in server.pids) / 1e6
    server = run.posencd()
    return cost(*run.turns(1, lambda: resident(server), theirs=lambda: resident(fastapi(run)), quick=1), "MB", "FastAPI")
