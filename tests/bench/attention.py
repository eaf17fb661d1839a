"""Rows of attention: maps of probabilities, 8 heads, 2048 positions, 64 channels, one thread, thread CPU time."""
from core import torch_peer
from measure import cpu_seconds, interleaved
from rows import rate, reached, reached_cost, row, time_of


@row("probs", "attention probabilities: time over the bare QKᵀ product", reached_cost(avx2=1.39), quick=True)
def probs(run):
    found = [run.answer("probs", 5) for _ in range(run.rounds(5, 2))]
    return rate([1e3 * a.ours for a in found], [1e3 * a.limit for a in found], "ms", "sgemm")


def of_torch(run, name):
    peer = getattr(torch_peer(run), name)()
    return time_of(*interleaved(run.rounds(5, 2), lambda: run.answer(name, 3).ours, lambda: cpu_seconds(peer)), "torch")


@row("shaw", "Shaw's map, against torch", reached(avx2=5.67), ["numpy", "torch"])
def shaw(run):
    return of_torch(run, "shaw")


@row("transformer_xl", "Transformer-XL's map, against torch", reached(avx2=6.12), ["numpy", "torch"])
def transformer_xl(run):
    return of_torch(run, "transformer_xl")


@row("deberta", "DeBERTa's map, against torch", reached(avx2=6.53), ["numpy", "torch"])
def deberta(run):
    return of_torch(run, "deberta")
