"""Rows of large bodies: streams, uploads, their memory, and how long small requests wait beside them.

The reader in C is bench_wire; the bare loops of the same program are the limit of a socket on this machine."""
import contextlib
import statistics
import struct
import tempfile
import threading

import peers
from measure import interleaved, output
from rows import RECORD, Skip, alone, rate, reached, reached_cost, row

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


def speed(run, server, path, times, *cc):
    """GB/s: the median of some transfers on one connection, the first left out."""
    times_each, n_bytes = run.transfers(server.port, path, times + 1, *cc)
    return n_bytes / statistics.median(times_each[1:]) / 1e9


def speeds(run, ours, theirs, times, against, *cc):
    """ours, theirs: (server, path). The CPU time of a GB is the steadier figure: it stands in the note."""
    def one(server, path):
        used = peers.cpu_seconds(server.pids)
        return speed(run, server, path, times, *cc), peers.cpu_seconds(server.pids) - used
    pairs = interleaved(run.rounds(9), lambda: one(*ours), lambda: one(*theirs))
    spent = [1e3 * statistics.median(used for _, used in side) / (times + 1) for side in pairs]
    note = f"server CPU for one: {spent[0]:.2f} ms, {against} {spent[1]:.2f} ms"
    return rate(*[[found for found, _ in side] for side in pairs], "GB/s", against, note)


def curl_speed(server, path):
    return float(output(["curl", "-s", "-o", "/dev/null", "-w", "%{speed_download}", server.url + path])) / 1e9


# ---- Streams -------------------------------------------------------------------------------------------------------------

@row("stream", "raw answer 16 MiB, default settings, reader in C", reached(avx2=1.7, avx512=(0.84, 0.98)), ["nginx"], quick=True)
def stream(run):
    nginx = nginx_files(run)
    return speeds(run, (run.posencd(), table_path(LARGE)), (nginx, "/large"), 15, "nginx sendfile")


@row("stream_huge", "raw answer 256 MiB, default settings, reader in C", reached(avx2=1.12, avx512=(0.84, 0.98)), ["nginx"])
def stream_huge(run):
    nginx = nginx_files(run)
    return speeds(run, (run.posencd(), table_path(HUGE)), (nginx, "/huge"), 2, "nginx sendfile")


@row("stream_curl", "raw answer 256 MiB, default settings, curl", reached(avx2=1.28, avx512=(0.84, 0.98)), ["nginx", "curl"])
def stream_curl(run):
    ours, nginx = run.posencd(), nginx_files(run)
    both = interleaved(run.rounds(9), lambda: curl_speed(ours, table_path(HUGE)), lambda: curl_speed(nginx, "/huge"))
    return rate(*both, "GB/s", "nginx sendfile")


@row("stream_cubic", "raw answer 16 MiB under cubic, against a bare send() loop", reached(avx2=(0.508, 0.73), avx512=0.6), quick=True)
def stream_cubic(run):
    ours = run.posencd(*congestion(run, server_too=True))
    bare = run.shared(peers.Bare, run.build, LARGE, "cubic")
    return speeds(run, (ours, table_path(LARGE)), (bare, "/"), 15, "send()", "cubic")


@row("stream_bare", "the same under the default settings", RECORD)
def stream_bare(run):
    bare = run.shared(peers.Bare, run.build, LARGE)
    return speeds(run, (run.posencd(), table_path(LARGE)), (bare, "/"), 15, "send()")


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


def waits(run, server, small, huge):
    """(median, 99th percentile) in ms of small requests, one at a time, while two clients stream."""
    with two_readers(run, server, huge):
        times, _ = run.transfers(server.port, small, 500 if run.quick else 2000)
    times.sort()
    return times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3


def all_waits(run):
    ours, nginx = run.posencd(), nginx_files(run)
    return interleaved(run.rounds(7), lambda: waits(run, ours, "/encode?scheme=sinusoidal&dim=4&len=1", table_path(HUGE)),
                       lambda: waits(run, nginx, "/small", "/huge"))


@row("p99", "p99 of small requests while two clients stream", reached_cost(avx2=2.77), quick=True)
def p99(run):
    """Measured without nginx where it is not installed."""
    if not peers.missing(["nginx"]):
        found = run.once(all_waits)[0]
    else:
        ours = run.posencd()
        found = [waits(run, ours, "/encode?scheme=sinusoidal&dim=4&len=1", table_path(HUGE)) for _ in range(run.rounds(7))]
    return alone([p for _, p in found], "ms", note=f"p50 {statistics.median(m for m, _ in found):.2f} ms")


@row("p99_nginx", "the same, over nginx's under the same load", reached_cost(avx2=0.409), ["nginx"], quick=True)
def p99_nginx(run):
    ours, theirs = run.once(all_waits)
    return rate([p for _, p in ours], [p for _, p in theirs], "ms", "nginx",
                f"nginx's p50 {statistics.median(m for m, _ in theirs):.2f} ms")


# ---- Uploads and memory ------------------------------------------------------------------------------------------------------

def npy_file(n_bytes):
    """f32 [1, 1, n, 128] of nothing but zeros: no value is looked at."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, {n_bytes // 512}, 128), }}"
    header = header.ljust(128 - 10 - 1) + "\n"
    file = tempfile.NamedTemporaryFile(dir=peers.memory_folder(), suffix=".npy")
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(n_bytes))
    file.flush()
    return file


@row("upload", "upload of 16 MiB, against a bare recv() loop", reached(avx2=0.887, avx512=0.76), quick=True)
def upload(run):
    """Shapes only are asked for (data=false), so that receiving is all there is to do. Our client sends, so cubic on its
    side is all that it takes."""
    cc = congestion(run, server_too=False)
    ours, bare = run.posencd(), run.shared(peers.Bare, run.build, LARGE)
    with npy_file(LARGE) as file:
        def speed_of(server, path):
            times, n_bytes = run.uploads(server.port, path, file.name, 16, *cc)
            return n_bytes / statistics.median(times[1:]) / 1e9
        both = interleaved(run.rounds(9), lambda: speed_of(ours, "/rotate?scheme=rope&data=false"),
                           lambda: speed_of(bare, "/"))
    return rate(*both, "GB/s", "recv()", "cubic on the client")


@row("memory", "memory of a 4 GiB stream over idle", reached_cost(avx2=2.21), quick=True)
def memory(run):
    """Anonymous memory, looked at every few milliseconds, of a server that has answered one small request."""
    n_bytes = (1 if run.quick else 4) * 1024 * MIB
    with peers.Posencd(f"{run.build}/posencd") as server:
        pid = server.pids[0]
        run.transfers(server.port, "/encode?scheme=sinusoidal&dim=4&len=1", 1)
        idle, rss, most = peers.memory(pid, "RssAnon"), peers.memory(pid, "VmRSS"), 0
        reader = threading.Thread(target=run.transfers, args=(server.port, table_path(n_bytes), 1))
        reader.start()
        while reader.is_alive():
            most = max(most, peers.memory(pid, "RssAnon"))
            reader.join(0.003)
        whole = (peers.memory(pid, "VmHWM") - rss) / MIB
    note = f"{n_bytes >> 30} GiB; with pages of the program itself {whole:.1f} MiB"
    return alone([(most - idle) / MIB], "MiB", note=note)
