"""Rows against the usual service: FastAPI and torch behind uvicorn with two workers (peer_fastapi.py), ours as it starts."""
import statistics

import peers
from measure import wrk
from rows import PEER, cost, row, speed, times

NEEDS = ["torch", "fastapi", "uvicorn"]


def fastapi(run):
    return run.shared(peers.Uvicorn, "peer_fastapi:app", 2)


def of_paths(run, ours, theirs, rounds, n):
    """One client reads the answer some times on one connection: medians of wall time, in turn."""
    def seconds(server, path, n):
        return statistics.median(run.transfers(server.port, path, n)[0])
    server = run.posencd()
    return times(*run.turns(rounds, lambda: seconds(server, ours, n * 5), theirs=lambda: seconds(fastapi(run), theirs, n), quick=2), "FastAPI")


@row("fastapi_small", "8×16 table as JSON, 64 connections: requests/s", PEER, [*NEEDS, "wrk"])
def fastapi_small(run):
    server = run.posencd()
    both = run.turns(3, lambda: wrk(f"{server.url}/encode?scheme=sinusoidal&dim=16&len=8", server.pids, 2).per_second,
                     theirs=lambda: wrk(f"{fastapi(run).url}/small", fastapi(run).pids, 2).per_second)
    return speed(*both, "req/s", "FastAPI")


@row("fastapi_json", "2048×128 table as JSON", PEER, NEEDS)
def fastapi_json(run):
    return of_paths(run, "/encode?scheme=sinusoidal&dim=128&len=2048", "/table", 5, 3)


@row("fastapi_raw", "2048×128 table as bytes", PEER, NEEDS)
def fastapi_raw(run):
    return of_paths(run, "/encode?scheme=sinusoidal&dim=128&len=2048&format=raw", "/table?form=raw", 5, 15)


@row("fastapi_alibi_json", "8×1024×1024 ALiBi as JSON", PEER, NEEDS)
def fastapi_alibi_json(run):
    return of_paths(run, "/encode?scheme=alibi&num_heads=8&len=1024&outputs=bias", "/alibi", 3, 1)


@row("fastapi_alibi_raw", "8×2048×2048 ALiBi as bytes", PEER, NEEDS)
def fastapi_alibi_raw(run):
    return of_paths(run, "/encode?scheme=alibi&num_heads=8&len=2048&outputs=bias&format=raw", "/alibi?n=2048&form=raw", 5, 2)


@row("fastapi_memory", "resident memory after these; of the peer, its largest process", PEER, NEEDS)
def fastapi_memory(run):
    def resident(server):
        return max(peers.memory(pid, "VmRSS") for pid in server.pids) / 1e6
    server = run.posencd()
    return cost(*run.turns(1, lambda: resident(server), theirs=lambda: resident(fastapi(run)), quick=1), "MB", "FastAPI")
