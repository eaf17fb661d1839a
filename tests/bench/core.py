"""Rows of the core: tables, lists, 16-bit tables, rotations, biases; how their time grows; what a second worker gives.

Ours is bench_answers: pieces of answers, as the server's workers make them, beside memset, memcpy or bare operations in the same
rounds.
Peers run here, one thread, thread CPU time on both sides."""
import concurrent.futures
import json
import statistics
import time
import urllib.request

import peers
from measure import cpu_seconds, interleaved
from rows import alone, law, rate, reached, row, time_of

MIB = 1 << 20


def of_limit(run, name, limit):
    """Speeds of a row of bench_answers and of its limit, in several processes: where pages lie differs from one to the next."""
    found = [run.answer(name) for _ in range(run.rounds(7))]
    speeds = [a.bytes / a.ours / 1e9 for a in found], [a.bytes / a.limit / 1e9 for a in found]
    return rate(*speeds, "GB/s", limit)


def of_units(run, name, limit="", rounds=(7, 3), note=""):
    """The same beside what the units that multiply and add would make, with nothing else to do: that share belongs to the code, while
    the limit's, which is noted, is as much the memory's of the machine."""
    found = [run.answer(name, 9 if limit else 3) for _ in range(run.rounds(*rounds))]
    speeds = [[a.bytes / seconds / 1e9 for a, seconds in zip(found, times)] for times in ([a.ours for a in found], [a.units for a in found])]
    if limit:
        note = f"{statistics.median(a.limit / a.ours for a in found):.3g} of {limit}"
    return rate(*speeds, "GB/s", "FMA units", note)


def of_peer(run, name, peer, against, factor=1):
    """Ours and a peer's function in turn; factor: of the peer's work that ours does as well."""
    ours, theirs = interleaved(run.rounds(7), lambda: run.answer(name, 5).ours, lambda: factor * cpu_seconds(peer))
    return time_of(ours, theirs, against)


def torch_peer(run):
    from peer_arrays import Torch
    return run.once(lambda _: Torch())


# Figures of AVX2 were reached with POSENC_KERNELS=avx2 on a machine with AVX-512; the lower ones while the other core had other work.
# ---- Tables --------------------------------------------------------------------------------------------------------------

@row("table", "f32 table, 512×128 in cache, correctly rounded: share of the FMA units", reached(avx2=(0.355, 0.5), avx512=(0.475, 0.574)),
     quick=True)
def table(run):
    return of_units(run, "table", "memset")


@row("table_numpy", "the same, against NumPy f32", reached(avx2=10.6), ["numpy"], quick=True)
def table_numpy(run):
    from peer_arrays import numpy_table
    return of_peer(run, "table", numpy_table, "NumPy")


@row("table_torch", "the same, against torch f32", reached(avx2=15), ["numpy", "torch"], quick=True)
def table_torch(run):
    return of_peer(run, "table", torch_peer(run).table, "torch")


@row("table_avx2", "f32 table with AVX2: share of the FMA units", reached(avx2=(0.35, 0.5), avx512=(0.35, 0.513)))
def table_avx2(run):
    return of_units(run, "table_avx2", "memset")


@row("table_base", "f32 table, plain instructions: share of the FMA units", reached(avx2=(0.377, 0.538), avx512=(0.377, 0.538)))
def table_base(run):
    return of_units(run, "table_base", "memset")


@row("list", "position list f32: share of the FMA units", reached(avx2=(0.385, 0.505), avx512=(0.525, 0.629)), quick=True)
def position_list(run):
    return of_units(run, "list", "memset")


@row("table_bf16", "bf16 table: share of the FMA units", reached(avx2=(0.415, 0.449), avx512=(0.36, 0.465)), quick=True)
def table_bf16(run):
    return of_units(run, "table_bf16", "memset")


@row("table_f16", "f16 table: share of the FMA units", reached(avx2=(0.523, 0.538), avx512=(0.533, 0.612)), quick=True)
def table_f16(run):
    return of_units(run, "table_f16", "memset")


# ---- Rotations and biases --------------------------------------------------------------------------------------------------

@row("rotate", "RoPE on q, k f32, out of place, against memcpy", reached(avx2=1.36, avx512=1.18), quick=True)
def rotate(run):
    return of_limit(run, "rotate", "memcpy")


@row("rotate_in_place", "RoPE on q, k f32, in place, against memcpy", reached(avx2=1.52, avx512=1.46))
def rotate_in_place(run):
    return of_limit(run, "rotate_in_place", "memcpy")


@row("rotate_torch", "RoPE on q, k f32, against torch rotate_half", reached(avx2=28.4), ["numpy", "torch"])
def rotate_torch(run):
    return of_peer(run, "rotate", torch_peer(run).rotate_half(), "torch")


@row("alibi", "Toeplitz bias 8×1024×1024, against memset of a value", reached(avx2=0.99), quick=True)
def alibi(run):
    return of_limit(run, "alibi", "memset")


@row("alibi_torch", "the same, against torch ALiBi", reached(avx2=57.1), ["numpy", "torch"])
def alibi_torch(run):
    return of_peer(run, "alibi", torch_peer(run).alibi, "torch")


@row("t5_torch", "T5's bias, against torch T5", reached(avx2=217), ["numpy", "torch"])
def t5_torch(run):
    return of_peer(run, "t5", torch_peer(run).t5, "torch")


# ---- Growth --------------------------------------------------------------------------------------------------------------

def streamed(run, mib, offset=1000000):
    """Seconds of an f32 table of so many MiB, made piece by piece into one buffer."""
    request = {"scheme": "sinusoidal", "dim": 128, "offset": offset, "format": "raw", "len": mib * MIB // 512}
    return run.answer("/encode", 9 if mib <= 64 else 3, json.dumps(request)).ours


@row("growth", "time(2N)/time(N), streamed tables 1 MiB…1 GiB: the ratio furthest from 2", law(1.75, 2.25))
def growth(run):
    sizes = [2 ** i for i in range(run.rounds(11, 8))]
    times = interleaved(run.rounds(9), *[lambda mib=mib: streamed(run, mib) for mib in sizes])
    ratios = [statistics.median(b / a for a, b in zip(*pair)) for pair in zip(times, times[1:])]
    worst = max(ratios, key=lambda r: abs(r - 2))
    at = sizes[ratios.index(worst)]
    return alone(ratios, "×", worst, f"from {at} to {2 * at} MiB; median of all sizes {statistics.median(ratios):.2f}")


@row("offset", "time at offset 2^40 over time at offset 0, 16 MiB", law(0.95, 1.05))
def offset(run):
    far, near = interleaved(run.rounds(15, 5), lambda: streamed(run, 16, 2 ** 40 - 32768), lambda: streamed(run, 16, 0))
    return rate([1e3 * t for t in far], [1e3 * t for t in near], "ms", "offset 0")


# A mean over all rows: the whole table is made in pieces that stay in cache, and the answer is a few hundred bytes. Long
# enough, a quarter of a second, that what the client and the loop take beside the workers does not count.
ROWS = 2 ** 18
SUMMARY = {"scheme": "sinusoidal", "dim": 128, "len": ROWS, "slice": [[None, None, ROWS]], "reduce": "mean"}


def summaries(server, n):
    """n different requests by four clients at once: how many a second, and the server's CPU time for one."""
    def ask(i):
        body = json.dumps({**SUMMARY, "offset": i}).encode()
        urllib.request.urlopen(f"{server.url}/encode", body, timeout=60).read()
    begun, used = time.perf_counter(), peers.cpu_seconds(server.pids)
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        list(clients.map(ask, range(n)))
    return n / (time.perf_counter() - begun), (peers.cpu_seconds(server.pids) - used) / n


@row("workers", "two workers against one, tables made and summed up in cache: share of what two bare threads gain", reached(avx2=0.97))
def workers(run):
    """Wall time needs two free cores, and cores may share units or a clock: two threads that only multiply and add gain as much as the
    machine allows in these seconds. The note says how many cores were to be had, and what a second worker costs the first."""
    servers = [run.posencd("--workers", n, "--answer-cache", "0") for n in ("2", "1")]
    two, one, both, alone = interleaved(run.rounds(7), *[lambda s=s: summaries(s, 8) for s in servers], *[lambda n=n: run.units(n) for n in (2, 1)])
    cores = statistics.median(speed * cpu for speed, cpu in two)
    dearer = statistics.median(a[1] / b[1] for a, b in zip(two, one))
    return rate([a[0] / b[0] for a, b in zip(two, one)], [2 * b / a for a, b in zip(both, alone)], "×", "two threads",
                f"two workers got {cores:.2f} cores; CPU for each request ×{dearer:.2f}")
