"""/rotate: q and k turned at their positions, in the memory layout in which they came."""
import numpy as np

import truth.rotary as formulas
from truth.answers import of, tensor
from truth.answers import sequences
from truth.answers.rotary import Turns

ORDERS = {"bhnd": (0, 1, 2, 3), "bnhd": (0, 2, 1, 3), "nbhd": (1, 2, 0, 3)}  # axes of a tensor as batch, heads, n, head_dim


def in_order(x, request):
    """[batch, heads, n, head_dim], and the function that gives back the shape and order of x."""
    layout, shape = request.get("tensor_layout", "bhnd"), x.shape
    if layout in ("flat", "bflat"):
        x = x.reshape(*shape[:-1], -1, request["head_dim"])
    if layout in ("flat", "nhd"):
        x = x[None]
    if layout in ("flat", "bflat", "nhd"):
        layout = "bnhd"
    if layout == "bnhd" and x.ndim == 2:
        x = x[:, None]
    whole = x.reshape((1,) * (4 - x.ndim) + x.shape)
    order = ORDERS[layout]
    back = np.argsort(order)
    return whole.transpose(order), lambda out: out.transpose(back).reshape(shape)


def query_factor(rule, positions):
    """The factor on the rows of q, by their positions: Ministral's and Llama 4's steps, and logarithms of the length."""
    p, original = np.array(positions, float), rule.get("original_max_position_embeddings", 8192)
    if rule["type"] == "logn":
        return np.maximum(1, np.log(p + 1) / np.log(original))
    return 1 + rule.get("beta", 0.1) * np.log1p(np.floor((p + (rule["type"] == "llama4")) / original))


def turned(name, x, request, n):
    """x [batch, heads, rows, head_dim] at the last rows of n positions, or from q_offset on."""
    turns = Turns({**request, "head_dim": x.shape[-1]}, n)
    rows = x.shape[-2]
    first = len(turns.rows) - rows if name == "k" or "q_offset" not in request else request["q_offset"]
    if name == "q" and "q_offset" in request:
        turns = Turns({**request, "head_dim": x.shape[-1], "offset": request.get("offset", 0) + first}, rows)
        first = 0
    cos, sin = (table[first:first + rows] for table in turns.tables())
    if request["scheme"] == "xpos":
        scale = turns.scale(n)[first:first + rows] ** (-1 if name == "k" else 1)
        cos, sin = cos * scale, sin * scale
    out = formulas.rotate(x, cos, sin, turns.layout, turns.blocks, request.get("rotary_offset", 0))
    if name == "q" and "query_scale" in request:
        out *= query_factor(request["query_scale"], turns.axes[0][first:first + rows])[:, None]
    return out


@of("/rotate")
def rotate(request):
    tensors = {name: in_order(tensor(request[name], name), request) for name in ("q", "k") if name in request}
    n = max(x.shape[-2] for x, _ in tensors.values())
    rest = {name: value for name, value in request.items() if name not in ("q", "k")}
    found = {}
    for name, (x, back) in tensors.items():
        rows = sequences.batch(rest)
        if rows:
            rows = rows * len(x) if len(rows) == 1 else rows
            found[name] = back(np.concatenate([turned(name, x[b:b + 1], row, n) for b, row in enumerate(rows)]))
        else:
            found[name] = back(turned(name, x, rest, n))
    return {name: found[name] for name in request.get("outputs", found)}
