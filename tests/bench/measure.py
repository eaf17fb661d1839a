"""The instruments: the C programs of this folder, thread CPU time of a Python function, wrk, and peers shared by rows."""
import collections
import contextlib
import os
import re
import subprocess
import time

import peers
from rows import Skip

Answer = collections.namedtuple("Answer", "ours limit bytes units")  # seconds, seconds, bytes, seconds
Load = collections.namedtuple("Load", "per_second cpu_us")

STEP_SECONDS = 120  # no single step takes longer, or the row fails
LEAST_SECONDS = 5e-3  # of one sample of a Python peer


class Run:
    """One run of the bench: where the build is, how long to measure, and the peers started so far. earlier: the commit that another run
    beside this one measures; then a row measures one sample of our side only."""

    def __init__(self, build, quick=False, clients=None, earlier=None):
        self.build, self.quick, self.clients, self.earlier = build, quick, clients or build, earlier
        self.stack, self.running, self.known, self.pair = contextlib.ExitStack(), {}, {}, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_peers()

    def rounds(self, full, quick=3):
        return 1 if self.earlier else quick if self.quick else full

    def turns(self, rounds, *ours, theirs, quick=3):
        """Samples of our functions and, last, of their one, in turn; theirs is called only if their side is measured."""
        if self.earlier:
            return [*interleaved(1, *ours), []]
        return interleaved(self.rounds(rounds, quick), *ours, theirs)

    # ---- Things that rows of a group share -----------------------------------------------------------------------------

    def shared(self, kind, *args):
        """The running peer kind(*args), started when it is first asked for, ended by end_peers()."""
        key = (kind, args)
        if key not in self.running:
            self.running[key] = self.stack.enter_context(kind(*args))
        return self.running[key]

    def posencd(self, *flags):
        return self.shared(peers.Posencd, f"{self.build}/posencd", *flags)

    def end_peers(self):
        self.running.clear()
        self.stack.close()

    def once(self, function):
        """What function(run) found, measured once (in each pair) for all the rows that show a part of it."""
        key = (function, self.pair)
        if key not in self.known:
            self.known[key] = function(self)
        return self.known[key]

    def flag(self, name):
        """name, or Skip where this posencd has no such option."""
        if f"{name} " not in output([f"{self.build}/posencd", "--help"]):
            raise Skip(f"posencd has no {name}")
        return name

    # ---- C programs ----------------------------------------------------------------------------------------------------

    def program(self, name, *args, build=None):
        """What one of our programs prints. OpenBLAS without this variable begins with a second thread that spins for 30 ms."""
        return output([f"{build or self.build}/tests/bench/{name}", *map(str, args)], env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})

    def answer(self, row, rounds=9, request=None):
        """Seconds of an answer made by the library, of its limit, and of its operations alone. request: row is then a path."""
        args = [row, rounds] if request is None else [row, request, rounds]
        try:
            ours, limit, n_bytes, units = self.program("bench_answers", *args).split()
        except subprocess.CalledProcessError as error:
            raise Skip(error.stderr.strip() or f"bench_answers has no row {row}") from error
        return Answer(float(ours), float(limit), int(n_bytes), float(units))

    def units(self, threads):
        """Seconds of the clock in which so many threads at once do nothing but multiply and add, each as often."""
        return float(self.program("bench_answers", "units", threads))

    def numbers(self):
        """{name: millions of numbers per second} of bench_numbers."""
        lines = re.findall(r"^ *(.+?) +([\d.]+) M/s$", self.program("bench_numbers"), re.M)
        found = {}
        for name, figure in lines:
            found.setdefault(name, float(figure))  # peers stand under several headings; ours only once
        return found

    def transfers(self, port, path, times, *congestion):
        """Seconds of each of `times` answers to a reader in C, and the bytes of one."""
        return samples(self.program("bench_wire", "get", port, path, times, *congestion, build=self.clients))

    def uploads(self, port, path, file, times, *congestion):
        return samples(self.program("bench_wire", "put", port, path, file, times, *congestion, build=self.clients))


def output(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=STEP_SECONDS, **options).stdout


def samples(text):
    lines = [line.split() for line in text.splitlines()]
    return [float(t) for t, _ in lines], int(lines[-1][1])


def cpu_seconds(function):
    """Thread CPU time of one call; several calls where one is too short for the clock."""
    begun = time.thread_time()
    function()
    repeat = int(LEAST_SECONDS / (time.thread_time() - begun + 1e-9)) + 1
    begun = time.thread_time()
    for _ in range(repeat):
        function()
    return (time.thread_time() - begun) / repeat


def wrk(url, pids, seconds, script=None):
    """64 connections kept alive asking for url: requests per second, and microseconds of server CPU for one."""
    before = peers.cpu_seconds(pids)
    text = output(["wrk", "-t2", "-c64", f"-d{seconds}s", *(["-s", script] if script else []), url])
    used = peers.cpu_seconds(pids) - before
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    if bad:
        raise RuntimeError(f"{url}: {bad[1]} answers were refusals")
    n = int(re.search(r"(\d+) requests in", text)[1])
    return Load(float(re.search(r"Requests/sec: +([\d.]+)", text)[1]), used / max(n, 1) * 1e6)


def interleaved(rounds, *functions):
    """One list of results for each function, called in turn so that a slow minute of the machine touches all."""
    found = [[] for _ in functions]
    for _ in range(rounds):
        for results, function in zip(found, functions):
            results.append(function())
    return found
