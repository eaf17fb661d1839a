"""Biases on the logits: [num_heads, q_len, k_len], -inf where a query does not see a key."""
import numpy as np

import truth
import truth.bias as formulas
import truth.window as window
from truth.answers import sequences, tensor
from truth.answers.absolute import some, weights


def heads_of(request, name, axis):
    """num_heads, or what a tensor sent makes it."""
    return tensor(request[name], name).shape[axis] if name in request else request.get("num_heads", 8)


def alibi(request, q, k):
    n = request.get("num_heads", 8)
    usual = request.get("slopes") or [float(m) for m in truth.alibi_slopes(n, request.get("bias_max", 8))]
    left, right = (request.get(name) or usual for name in ("slopes_left", "slopes_right"))
    bias = [truth.alibi(request.get("form", "symmetric"), m, q, k, request.get("key_mask"), r) for m, r in zip(left, right)]
    return {"bias": np.stack(bias), "slopes": np.array(usual)}


def t5(request, q, k):
    shape = some(request, "arith", "num_buckets", "max_distance", "bidirectional")
    has_table = "table" in request or "seed" in request or "std" in request
    if "table" in request:
        shape["num_buckets"] = len(tensor(request["table"], "table"))
    buckets = formulas.t5_buckets(q, k, **shape)
    if not has_table:
        return {"buckets": buckets}
    table = weights(request, table=(shape.get("num_buckets", 32), request.get("num_heads", 8)))["table"]
    return {"bias": table[buckets].transpose(2, 0, 1) * request.get("table_scale", 1.0), "buckets": buckets}


def kerple(request, q, k):
    n = request.get("num_heads", 8)
    r1, r2 = (r if isinstance(r, list) else [r] * n for r in (request.get("r1", 1.0), request.get("r2", 1.0)))
    if request.get("arith") == "float32":
        return {"bias": formulas.kerple_float32(r1, r2, q, k)}
    return {"bias": formulas.kerple(request.get("kind", "log"), r1, r2, q, k)}


def fire(request, q, k):
    heads, hidden = heads_of(request, "w2", 0), request.get("hidden", 32)
    network = weights(request, w1=(hidden, 1), b1=(hidden,), w2=(heads, hidden), b2=(heads,))
    return {"bias": formulas.fire(**network, q=q, k=k, **some(request, "c", "init_l", "l_mult"))}


def sandwich(request, q, k):
    return {"bias": formulas.sandwich(request.get("num_heads", 8), q, k, **some(request, "bar_dim", "base"))}


PAIRS = {"alibi": alibi, "t5": t5, "kerple": kerple, "fire": fire, "sandwich": sandwich}


def of_pairs(request, queries=slice(None)):
    """Of all queries, or of a slice of them."""
    q, k = sequences.pairs(request)
    q = q[queries]
    found = PAIRS[request["scheme"]](request, q, k)
    if "bias" in found:
        found["bias"] = formulas.masked(found["bias"], q, k, **some(request, "key_mask", "causal", "window", "window_right"))
        many = sequences.lengths(request)
        if many:  # packed sequences do not see each other
            piece = np.repeat(range(len(many)), many)
            found["bias"][:, piece[queries, None] != piece] = -np.inf
    return found, usual(found)


def usual(found):
    return ["bias"] if "bias" in found else list(found)[:1]


def of_windows(request):
    scheme, grid = request["scheme"], request.get("grid") or [request.get("len") or len(request["tokens"])]
    h, w = grid if len(grid) == 2 else (1, *grid)
    found, mask = {}, some(request, "key_mask", "causal", "window", "window_right")
    if {"table", "w1", "seed", "std"} & set(request):
        if scheme == "swinv2":
            heads, hidden = heads_of(request, "w2", 0), request.get("hidden", 512)
            network = weights(request, w1=(hidden, 2), b1=(hidden,), w2=(heads, hidden))
            grown = [given or own for given, own in zip(request.get("pretrained_grid", [0, 0]), (h, w))]
            found["bias"] = window.swinv2(h, w, **network, pretrained=grown)
        else:
            table = weights(request, table=(window.rows(scheme, h, w), request.get("num_heads", 8)))["table"]
            found["bias"] = window.looked_up(scheme, table, h, w)
        tokens = range(found["bias"].shape[-1])
        found["bias"] = formulas.masked(found["bias"], tokens, tokens, **mask)
    found["index"] = window.INDEX[scheme](h, w)
    return found, usual(found)


SCHEMES = {**dict.fromkeys(PAIRS, of_pairs), **dict.fromkeys(("swin", "swinv2", "beit"), of_windows)}
