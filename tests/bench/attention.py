"""Rows of attention: maps of probabilities, 8 heads, 2048 positions, 64 channels, one thread, thread CPU time."""
from core import UNITS, of_limit, of_peer, torch_map
from rows import LIMIT, PEER, row


@row("probs", "attention probabilities, against the bare QKᵀ product", LIMIT, quick=True)
def probs(run):
    return of_limit(run, "probs", "sgemm", (5, 2), 5)


def of_maps(name, what):
    """A row by the products of the map's matrices, and one against torch."""
    row(name, what, LIMIT)(lambda run: of_limit(run, name, UNITS, (5, 2), 3))
    row(f"{name}_torch", f"{what}, against torch", PEER, ["numpy", "torch"])(
        lambda run: of_peer(run, name, lambda: torch_map(name)(), "torch", (5, 2), 3))


of_maps("shaw", "Shaw's map")
of_maps("transformer_xl", "Transformer-XL's map")
of_maps("deberta", "DeBERTa's map")
