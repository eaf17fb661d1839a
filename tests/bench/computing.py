"""How rows of what one thread computes are measured: pieces of answers made by the library (bench_answers), numbers as text
(bench_numbers), Gram matrices (bench_analysis), experiments in the server. Thread CPU time on both sides; peers run here."""
import concurrent.futures
import functools
import json
import time
import urllib.request

from measure import cpu_seconds
from rows import Skip, speed, times
from serving import cpu_of, post

MIB = 1 << 20
UNITS = "FMA units"


def of_limit(name, limit, rounds=(7, 3), inner=9):
    """Speeds of a row of bench_answers and of its limit, in several processes: where pages lie differs from one to the next. The limit of
    UNITS is what the units that multiply and add would make, with nothing else to do."""
    def measure(run):
        found = [run.answer(name, inner) for _ in range(run.rounds(*rounds))]
        seconds = [a.units if limit == UNITS else a.limit for a in found if not run.earlier]  # an earlier commit may have had another limit
        return speed([a.bytes / a.ours / 1e9 for a in found], [a.bytes / s / 1e9 for a, s in zip(found, seconds)], "GB/s", limit)
    return measure


def numpy_table():
    from peer_arrays import numpy_table
    return numpy_table


@functools.cache
def torch_peer():
    from peer_arrays import Torch
    return Torch()


@functools.cache
def of_torch(name):
    """The function that computes a table or a map, or rotates, with its tensors ready."""
    return getattr(torch_peer(), name)()


def of_peer(name, make, against, rounds=(7, 3), inner=5):
    """Ours and a peer's function in turn; make() gives the function."""
    def measure(run):
        return times(*run.turns(rounds[0], lambda: run.answer(name, inner).ours, theirs=lambda: cpu_seconds(make()), quick=rounds[1]), against)
    return measure


# ---- Growth --------------------------------------------------------------------------------------------------------------


def streamed(run, mib, offset=1000000):
    """Seconds of an f32 table of so many MiB, made piece by piece into one buffer."""
    request = {"scheme": "sinusoidal", "dim": 128, "offset": offset, "format": "raw", "len": mib * MIB // 512}
    return run.answer("/encode", 9 if mib <= 64 else 3, json.dumps(request)).ours


def growth(run):
    return times(*run.turns(9, lambda: streamed(run, 1024), theirs=lambda: 64 * streamed(run, 16)), "64 × 16 MiB")


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


def workers(run):
    """Wall time needs two free cores, and cores may share units or a clock: two threads that only multiply and add gain as much as the
    machine allows in these seconds."""
    two, one = (run.posencd("--workers", n, "--answer-cache", "0") for n in ("2", "1"))
    return speed(*run.turns(7, lambda: summaries(one) / summaries(two), theirs=lambda: 2 * run.units(1) / run.units(2)), "×", "two threads")


# ---- Text, products ------------------------------------------------------------------------------------------------------


def numbers(run):
    """Each process is the median of fifteen rounds already, and takes seconds."""
    return [run.numbers() for _ in range(run.rounds(3, 1))]


def of_numbers(ours, theirs, against):
    """Millions of numbers per second, by the lines of bench_numbers."""
    def measure(run):
        found = run.once(numbers)
        if not {ours, theirs} <= found[0].keys():
            raise Skip(f"bench_numbers prints no line {ours!r} or {theirs!r}")
        return speed(*([each[name] for each in found] for name in (ours, theirs)), "M/s", against)
    return measure


def of_product(metric, scheme):
    """16384 rows of 512 numbers are the largest analysis of one configuration."""
    def measure(run):
        pairs = [run.program("bench_analysis", metric, scheme, 512, 4096 if run.quick else 16384).split() for _ in range(run.rounds(3, 1))]
        return times(*([float(pair[i]) for pair in pairs] for i in (0, 1)), "dgemm")
    return measure


# ---- Experiments ---------------------------------------------------------------------------------------------------------

ASKED = {"task": "local", "steps": 600, "train_len": 128, "eval_len": 256, "seed": 0}
LOSS = 1e-3  # the same decoder differs by 3e-7 in its first 20 losses


def experiment(server, scheme, losses):
    """Seconds of one run; losses becomes {step: loss} of those that are reported."""
    def ask():
        answer = post(server, "/experiments", json.dumps({**ASKED, "configs": [{"scheme": scheme}]}).encode())
        events = [json.loads(line) for line in answer.splitlines()]
        assert events[-1]["event"] == "done", events[-1]
        losses.update((event["step"], event["loss"]) for event in events if event["event"] == "progress")
    return cpu_of(server, 1, ask)[0] / 1e3


def training(peer, losses):
    begun = time.process_time()
    losses[:], _ = peer.run()
    return time.process_time() - begun


def check_same(reported, losses):
    """Both train the same decoder if they begin alike; later, the last bits are amplified."""
    apart = {step: abs(reported[step] - losses[step - 1]) for step in (1, 10, 20)}
    if max(apart.values()) > LOSS:
        raise RuntimeError(f"the peer trains another decoder: its losses differ by {apart}")


def of_training(scheme):
    def measure(run):
        server, reported, losses = run.posencd(), {}, []

        @functools.cache
        def peer():
            from peer_training import Training
            return Training(scheme, **ASKED)

        both = run.turns(3, lambda: experiment(server, scheme, reported), theirs=lambda: training(peer(), losses))
        if losses:
            check_same(reported, losses)
        return times(*both, "torch")
    return measure
