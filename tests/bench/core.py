"""Rows of the core: tables, lists, 16-bit tables, rotations, biases; how their time grows; what a second worker gives.

Ours is bench_answers: pieces of answers, as the server's workers compute them, beside memset, memcpy or bare operations in the same
rounds.
Peers run here, one thread, thread CPU time on both sides."""
import concurrent.futures
import functools
import json
import time
import urllib.request

from measure import cpu_seconds
from rows import LIMIT, PEER, row, speed, times

MIB = 1 << 20
UNITS = "FMA units"


def of_limit(run, name, limit, rounds=(7, 3), inner=9):
    """Speeds of a row of bench_answers and of its limit, in several processes: where pages lie differs from one to the next. The limit of
    UNITS is what the units that multiply and add would make, with nothing else to do."""
    found = [run.answer(name, inner) for _ in range(run.rounds(*rounds))]
    seconds = [a.units if limit == UNITS else a.limit for a in found if not run.earlier]  # an earlier commit may have had another limit
    return speed([a.bytes / a.ours / 1e9 for a in found], [a.bytes / s / 1e9 for a, s in zip(found, seconds)], "GB/s", limit)


def of_peer(run, name, peer, against, rounds=(7, 3), inner=5):
    """Ours and a peer's function in turn."""
    return times(*run.turns(rounds[0], lambda: run.answer(name, inner).ours, theirs=lambda: cpu_seconds(peer), quick=rounds[1]), against)


@functools.cache
def torch_peer():
    from peer_arrays import Torch
    return Torch()


@functools.cache
def torch_map(name):
    """The function that computes a map, or rotates, with its tensors ready."""
    return getattr(torch_peer(), name)()


# ---- Tables --------------------------------------------------------------------------------------------------------------

@row("table", "f32 table, 512×128 in cache, correctly rounded", LIMIT, quick=True)
def table(run):
    return of_limit(run, "table", UNITS)


@row("table_numpy", "the same, against NumPy f32", PEER, ["numpy"], quick=True)
def table_numpy(run):
    from peer_arrays import numpy_table
    return of_peer(run, "table", numpy_table, "NumPy")


@row("table_torch", "the same, against torch f32", PEER, ["numpy", "torch"], quick=True)
def table_torch(run):
    return of_peer(run, "table", lambda: torch_peer().table(), "torch")


@row("table_avx2", "f32 table with AVX2", LIMIT)
def table_avx2(run):
    return of_limit(run, "table_avx2", UNITS)


@row("table_base", "f32 table, plain instructions", LIMIT)
def table_base(run):
    return of_limit(run, "table_base", UNITS)


@row("list", "position list f32", LIMIT, quick=True)
def position_list(run):
    return of_limit(run, "list", UNITS)


@row("table_bf16", "bf16 table", LIMIT, quick=True)
def table_bf16(run):
    return of_limit(run, "table_bf16", UNITS)


@row("table_f16", "f16 table", LIMIT, quick=True)
def table_f16(run):
    return of_limit(run, "table_f16", UNITS)


# ---- Rotations and biases --------------------------------------------------------------------------------------------------

@row("rotate", "RoPE on q, k f32, out of place", LIMIT, quick=True)
def rotate(run):
    return of_limit(run, "rotate", "memcpy")


@row("rotate_in_place", "RoPE on q, k f32, in place", LIMIT)
def rotate_in_place(run):
    return of_limit(run, "rotate_in_place", "memcpy")


@row("rotate_torch", "RoPE on q, k f32, against torch rotate_half", PEER, ["numpy", "torch"])
def rotate_torch(run):
    return of_peer(run, "rotate", lambda: torch_map("rotate_half")(), "torch")


@row("alibi", "Toeplitz bias 8×1024×1024", LIMIT, quick=True)
def alibi(run):
    return of_limit(run, "alibi", "memset")


@row("alibi_torch", "the same, against torch ALiBi", PEER, ["numpy", "torch"])
def alibi_torch(run):
    return of_peer(run, "alibi", lambda: torch_peer().alibi(), "torch")


@row("t5_torch", "T5's bias, against torch T5", PEER, ["numpy", "torch"])
def t5_torch(run):
    return of_peer(run, "t5", lambda: torch_peer().t5(), "torch")


# ---- Growth --------------------------------------------------------------------------------------------------------------

def streamed(run, mib, offset=1000000):
    """Seconds of an f32 table of so many MiB, made piece by piece into one buffer."""
    request = {"scheme": "sinusoidal", "dim": 128, "offset": offset, "format": "raw", "len": mib * MIB // 512}
    return run.answer("/encode", 9 if mib <= 64 else 3, json.dumps(request)).ours


@row("growth", "streamed table of 1 GiB, against 64 of 16 MiB", LIMIT)
def growth(run):
    return times(*run.turns(9, lambda: streamed(run, 1024), theirs=lambda: 64 * streamed(run, 16)), "64 × 16 MiB")


@row("offset", "table of 16 MiB at offset 2^40, against offset 0", LIMIT)
def offset(run):
    return times(*run.turns(15, lambda: streamed(run, 16, 2 ** 40 - 32768), theirs=lambda: streamed(run, 16, 0)), "offset 0")


# A mean over all rows: the whole table is made in pieces that stay in cache, and the answer is a few hundred bytes. Long
# enough, a quarter of a second, that what the client and the loop take beside the workers does not count.
ROWS = 2 ** 18
SUMMARY = {"scheme": "sinusoidal", "dim": 128, "len": ROWS, "slice": [[None, None, ROWS]], "reduce": "mean"}


def summaries(server, n=8):
    """Seconds of n different requests by four clients at once."""
    def ask(i):
        body = json.dumps({**SUMMARY, "offset": i}).encode()
        urllib.request.urlopen(f"{server.url}/encode", body, timeout=60).read()
    begun = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        list(clients.map(ask, range(n)))
    return time.perf_counter() - begun


@row("workers", "two workers over one, tables summed up in cache, against what two bare threads gain", LIMIT)
def workers(run):
    """Wall time needs two free cores, and cores may share units or a clock: two threads that only multiply and add gain as much as the
    machine allows in these seconds."""
    two, one = (run.posencd("--workers", n, "--answer-cache", "0") for n in ("2", "1"))
    return speed(*run.turns(7, lambda: summaries(one) / summaries(two), theirs=lambda: 2 * run.units(1) / run.units(2)), "×", "two threads")
