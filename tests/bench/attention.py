"""Rows of attention: maps of probabilities, 8 heads, 2048 positions, 64 channels, one thread, thread CPU time."""
import statistics

import peers
from core import of_units, torch_peer
from measure import cpu_seconds, interleaved
from rows import rate, reached, reached_cost, row


@row("probs", "attention probabilities: time over the bare QKᵀ product", reached_cost(avx2=1.39), quick=True)
def probs(run):
    found = [run.answer("probs", 5) for _ in range(run.rounds(5, 2))]
    return rate([1e3 * a.ours for a in found], [1e3 * a.limit for a in found], "ms", "sgemm")


def of_units_and_torch(run, name):
    """By the products of its matrices; torch, whose speed is not ours to judge, is noted where it is installed."""
    lacking = peers.missing(["numpy", "torch"])
    if lacking:
        return of_units(run, name, rounds=(5, 2), note=lacking)
    peer = getattr(torch_peer(run), name)()
    ours, theirs = interleaved(run.rounds(5, 2), lambda: run.answer(name, 3), lambda: cpu_seconds(peer))
    times = statistics.median(b / a.ours for a, b in zip(ours, theirs))
    return rate([a.bytes / a.ours / 1e9 for a in ours], [a.bytes / a.units / 1e9 for a in ours], "GB/s", "FMA units", f"torch takes {times:.3g} times as long")


@row("shaw", "Shaw's map: share of the FMA units", reached(avx2=0.506, avx512=0.537))
def shaw(run):
    return of_units_and_torch(run, "shaw")


@row("transformer_xl", "Transformer-XL's map: share of the FMA units", reached(avx2=0.62, avx512=0.581))
def transformer_xl(run):
    return of_units_and_torch(run, "transformer_xl")


@row("deberta", "DeBERTa's map: share of the FMA units", reached(avx2=0.399, avx512=0.436))
def deberta(run):
    return of_units_and_torch(run, "deberta")
