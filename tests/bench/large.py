"""Rows of large bodies: streams, uploads, their memory, and how long small requests wait beside them.

The reader in C is bench_wire; the bare loops of the same program are the limit of a socket on this machine."""
import contextlib
import statistics
import struct
import tempfile
import threading

import peers
from measure import output
from rows import LIMIT, PEER, Skip, cost, row, speed

MIB = 1 << 20
LARGE, HUGE = 16 * MIB, 256 * MIB


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


def curl_speed(server, path):
    return float(output(["curl", "-s", "-o", "/dev/null", "-w", "%{speed_download}", server.url + path])) / 1e9


# ---- Streams -------------------------------------------------------------------------------------------------------------

def of_nginx(run, read, n_bytes, file):
    """GB/s that read(server, path) finds."""
    ours = run.posencd()
    both = run.turns(9, lambda: read(ours, table_path(n_bytes)), theirs=lambda: read(nginx_files(run), file))
    return speed(*both, "GB/s", "nginx sendfile")


def of_send(run, ours, *cc):
    """16 MiB, beside a loop that sends the same block again and again."""
    both = run.turns(9, lambda: gigabytes(run, ours, table_path(LARGE), 15, *cc),
                     theirs=lambda: gigabytes(run, run.shared(peers.Bare, run.build, LARGE, *cc), "/", 15, *cc))
    return speed(*both, "GB/s", "send()")


@row("stream", "raw answer 16 MiB, default settings, reader in C", PEER, ["nginx"], quick=True)
def stream(run):
    return of_nginx(run, lambda server, path: gigabytes(run, server, path, 15), LARGE, "/large")


def cpu_of_stream(run, server, path):
    """Milliseconds of one answer. nginx copies nothing, we compute what we send."""
    used = peers.cpu_seconds(server.pids)
    run.transfers(server.port, path, 16)
    return 1e3 * (peers.cpu_seconds(server.pids) - used) / 16


@row("stream_cpu", "the same: server CPU", PEER, ["nginx"], quick=True)
def stream_cpu(run):
    ours = run.posencd()
    both = run.turns(9, lambda: cpu_of_stream(run, ours, table_path(LARGE)), theirs=lambda: cpu_of_stream(run, nginx_files(run), "/large"))
    return cost(*both, "ms", "nginx sendfile")


@row("stream_huge", "raw answer 256 MiB, default settings, reader in C", PEER, ["nginx"])
def stream_huge(run):
    return of_nginx(run, lambda server, path: gigabytes(run, server, path, 2), HUGE, "/huge")


@row("stream_curl", "raw answer 256 MiB, default settings, curl", PEER, ["nginx", "curl"])
def stream_curl(run):
    return of_nginx(run, curl_speed, HUGE, "/huge")


@row("stream_cubic", "raw answer 16 MiB under cubic, against a bare send() loop", LIMIT, quick=True)
def stream_cubic(run):
    return of_send(run, run.posencd(*congestion(run, server_too=True)), "cubic")


@row("stream_bare", "the same under the default settings", LIMIT)
def stream_bare(run):
    return of_send(run, run.posencd())


# ---- Small requests beside them ----------------------------------------------------------------------------------------------

@contextlib.contextmanager
def two_readers(run, server, path):
    """Two clients that read huge answers one after the other until the block is left."""
    command = [f"{run.build}/tests/bench/bench_wire", "get", str(server.port), path, "1000000"]
    with contextlib.ExitStack() as stack, open("/dev/null", "w") as nowhere:
        for _ in range(2):
            stack.enter_context(peers.process(command, stdout=nowhere, stderr=nowhere))
        threading.Event().wait(0.5)
        yield


def p99_of(run, server, small, huge):
    """Milliseconds of small requests, one at a time, while two clients stream."""
    with two_readers(run, server, huge):
        times, _ = run.transfers(server.port, small, 500 if run.quick else 2000)
    return sorted(times)[len(times) * 99 // 100] * 1e3


@row("p99", "p99 of small requests while two clients stream", PEER, ["nginx"], quick=True)
def p99(run):
    ours = run.posencd()
    both = run.turns(7, lambda: p99_of(run, ours, "/encode?scheme=sinusoidal&dim=4&len=1", table_path(HUGE)),
                     theirs=lambda: p99_of(run, nginx_files(run), "/small", "/huge"))
    return cost(*both, "ms", "nginx")


# ---- Uploads and memory ------------------------------------------------------------------------------------------------------

def npy_file(n_bytes):
    """f32 [1, 1, n, 128] of nothing but zeros: no value is looked at."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, {n_bytes // 512}, 128), }}"
    header = header.ljust(128 - 10 - 1) + "\n"
    file = tempfile.NamedTemporaryFile(dir=peers.memory_folder(), suffix=".npy")
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(n_bytes))
    file.flush()
    return file


@row("upload", "upload of 16 MiB, against a bare recv() loop; cubic on the client", LIMIT, quick=True)
def upload(run):
    """Shapes only are asked for (data=false), so that receiving is all there is to do. Our client sends, so cubic on its
    side is all that it takes."""
    cc = congestion(run, server_too=False)
    ours = run.posencd()
    with npy_file(LARGE) as file:
        def speed_of(server, path):
            times, n_bytes = run.uploads(server.port, path, file.name, 16, *cc)
            return n_bytes / statistics.median(times[1:]) / 1e9
        both = run.turns(9, lambda: speed_of(ours, "/rotate?scheme=rope&data=false"),
                         theirs=lambda: speed_of(run.shared(peers.Bare, run.build, LARGE), "/"))
    return speed(*both, "GB/s", "recv()")


@row("memory", "memory of a stream of GiB over idle, against the whole answer", LIMIT, quick=True)
def memory(run):
    """Anonymous memory, looked at every few milliseconds, of a server that has answered one small request."""
    n_bytes = (1 if run.quick else 4) * 1024 * MIB
    with peers.Posencd(f"{run.build}/posencd") as server:
        pid = server.pids[0]
        run.transfers(server.port, "/encode?scheme=sinusoidal&dim=4&len=1", 1)
        idle, most = peers.memory(pid, "RssAnon"), 0
        reader = threading.Thread(target=run.transfers, args=(server.port, table_path(n_bytes), 1))
        reader.start()
        while reader.is_alive():
            most = max(most, peers.memory(pid, "RssAnon"))
            reader.join(0.003)
    return cost([max(most - idle, 4096) / MIB], [n_bytes / MIB], "MiB", "the answer")
