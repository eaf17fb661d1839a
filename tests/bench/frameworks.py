"""Rows against the usual service: FastAPI and torch behind uvicorn with two workers (peer_fastapi.py), ours as it starts."""
import statistics

import peers
from measure import interleaved, wrk
from rows import rate, reached, row, time_of

NEEDS = ["torch", "fastapi", "uvicorn"]
APP = ("peer_fastapi:app", 2)


def of_paths(run, ours, theirs, rounds, times):
    """One client reads the answer some times on one connection: medians of wall time, in turn."""
    server, peer = run.posencd(), run.shared(peers.Uvicorn, *APP)
    def seconds(server, path, times):
        return lambda: statistics.median(run.transfers(server.port, path, times)[0])
    both = interleaved(run.rounds(rounds, 2), seconds(server, ours, times * 5), seconds(peer, theirs, times))
    resident = max(peers.memory(pid, "VmRSS") for pid in peer.pids) / 1e6
    note = f"resident: ours {peers.memory(server.pids[0], 'VmRSS') / 1e6:.0f} MB, the peer's largest process {resident:.0f} MB"
    return time_of(*both, "FastAPI", note)


@row("fastapi_small", "8×16 table as JSON, 64 connections: requests/s", reached(avx2=48.7), [*NEEDS, "wrk"])
def fastapi_small(run):
    server, peer = run.posencd(), run.shared(peers.Uvicorn, *APP)
    both = interleaved(run.rounds(3), lambda: wrk(f"{server.url}/encode?scheme=sinusoidal&dim=16&len=8", server.pids, 2),
                       lambda: wrk(f"{peer.url}/small", peer.pids, 2))
    return rate(*[[load.per_second for load in loads] for loads in both], "req/s", "FastAPI")


@row("fastapi_json", "2048×128 table as JSON", reached(avx2=66.4), NEEDS)
def fastapi_json(run):
    return of_paths(run, "/encode?scheme=sinusoidal&dim=128&len=2048", "/table", 5, 3)


@row("fastapi_raw", "2048×128 table as bytes", reached(avx2=6.18), NEEDS)
def fastapi_raw(run):
    return of_paths(run, "/encode?scheme=sinusoidal&dim=128&len=2048&format=raw", "/table?form=raw", 5, 15)


@row("fastapi_alibi_json", "8×1024×1024 ALiBi as JSON", reached(avx2=110), NEEDS)
def fastapi_alibi_json(run):
    return of_paths(run, "/encode?scheme=alibi&num_heads=8&len=1024&outputs=bias", "/alibi", 3, 1)


@row("fastapi_alibi_raw", "8×2048×2048 ALiBi as bytes", reached(avx2=14.8), NEEDS)
def fastapi_alibi_raw(run):
    return of_paths(run, "/encode?scheme=alibi&num_heads=8&len=2048&outputs=bias&format=raw", "/alibi?n=2048&form=raw", 5, 2)
