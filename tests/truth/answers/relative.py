"""Relative schemes, as far as they do not depend on content: rows of tables, and encodings of distances."""
import numpy as np

import truth.absolute
import truth.attention as formulas
from truth.answers import sequences, tensor
from truth.answers.absolute import some


def shaw(request, q, k):
    most, direction = request.get("max_relative"), request.get("direction", "key_minus_query")
    if request.get("table_style", "").startswith("relative_key"):
        direction = "query_minus_key"
        most = (len(tensor(request["rel_k"], "rel_k")) - 1) // 2 if "rel_k" in request else most
    low, high = (request.get("p_min", -4), request.get("p_max", 4)) if most is None else (-most, most)
    return formulas.shaw_index(q, k, low, high, direction).astype(int), high - low


def deberta(request, q, k):
    rules = some(request, "position_buckets", "max_relative_positions", "clamp_first")
    rules |= {"max_relative_positions": request["max_relative"]} if "max_relative" in request else {}
    if rules.get("max_relative_positions", 1) < 1:
        rules["max_relative_positions"] = 512
    buckets = rules.get("position_buckets", -1)
    return formulas.deberta_index(q, k, **rules), 2 * (buckets if buckets > 0 else rules.get("max_relative_positions", 512)) - 1


ROWS = {"shaw": shaw, "deberta": deberta}  # (the row of a table for each query and key, the last row)


def index(request):
    return {"index": ROWS[request["scheme"]](request, *sequences.pairs(request))[0]}, ["index"]


def distances(scheme, q, k, causal):
    """From the farthest key before a query to the farthest after it; Transformer-XL knows none after, XLNet has one more in front."""
    top, bottom = max(q) - min(k), min(q) - max(k)
    if scheme == "transformer_xl":
        top = max(top, 0)
    if scheme == "transformer_xl" or scheme == "xlnet" and causal:
        bottom = 0
    return list(range(top + (scheme == "xlnet"), bottom - 1, -1))


def sinusoids(request):
    scheme, q_k = request["scheme"], sequences.pairs(request, request.get("mem_len", 0))
    listed = distances(scheme, *q_k, request.get("causal", False))
    width = request.get("d_model", request.get("num_heads", 8) * request.get("head_dim", 64))
    columns = truth.absolute.one_axis(0, width, layout="interleaved" if scheme == "conformer" else "half", base=request.get("base", 10000.0))
    clamped = formulas.clamp(scheme, np.array(listed), request.get("clamp_len", -1)).tolist()
    return {"encoding": truth.absolute.table(columns, [(d,) for d in clamped]), "distances": np.array(listed)}, ["encoding", "distances"]


def decomposed(request):
    """index_h and index_w of a grid, line by line."""
    height, width = request["grid"]
    y, x = (axis.ravel() for axis in np.divmod(np.arange(height * width), width))
    return {name: place[:, None] - place[None] + side - 1 for name, place, side in (("index_h", y, height), ("index_w", x, width))}, ["index_h", "index_w"]


SCHEMES = {"decomposed": decomposed, **dict.fromkeys(ROWS, index), **dict.fromkeys(("transformer_xl", "xlnet", "conformer"), sinusoids)}
