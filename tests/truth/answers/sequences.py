"""The positions of a request's sequence, in whichever of the ways it is given, or as many as x or q has rows."""
import itertools

import numpy as np

import truth.rotary as rotary
import truth.segments as segments

GIVES = ("len", "offset", "positions", "positions_layout", "attention_mask", "padding", "pad_position", "grid", "grid_coords", "lens", "cu_seqlens", "shard", "tokens",
         "segments", "q_len", "k_len", "q_offset", "q_positions", "k_positions")


def run(first, n):
    return [first + i for i in range(n)]


def lengths(request):
    """Of packed sequences, or None."""
    ends = request.get("cu_seqlens")
    return request.get("lens") or (np.diff(ends).tolist() if ends else None)


def batch(request):
    """A request for each row of a batch whose rows have positions of their own, or None."""
    mask, layout = request.get("attention_mask"), request.get("positions_layout", "axes")
    if mask is not None:
        rows = [positions_of_mask(row, request) for row in np.atleast_2d(mask)]
    elif layout in ("batch", "batch_axes"):
        rows = request["positions"]
    elif layout == "axes_batch":
        rows = np.moveaxis(np.array(request["positions"], object), 1, 0).tolist()
    else:
        return None
    rest = {name: value for name, value in request.items() if name not in GIVES}
    if rest.get("scaling"):  # which is of the longest row
        rest["scaling"] = {"seq_len": max(int(np.max(np.array(rows, float))) + 1, 0), **rest["scaling"]}
    return [{**rest, "positions": row} for row in rows]


def positions_of_mask(row, request):
    """As transformers: cumsum(mask) - 1, and pad_position where the mask is 0; `counted`: by columns."""
    first = request.get("offset", 0)
    if request.get("padding", "skipped") == "counted":
        return run(first, len(row))
    return np.where(row == 1, row.cumsum() - 1 + first, request.get("pad_position", 1)).tolist()


def shard(n, first, rank, of, split="zigzag"):
    """The rows of one rank: chunks rank and 2·of - 1 - rank of 2·of, or one chunk of `of`."""
    if split == "contiguous" or of == 1:
        return run(first + rank * n, n)
    half = n // 2
    return run(first + rank * half, half) + run(first + (2 * of - 1 - rank) * half, half)


def axes(request, n=None, coords="index"):
    """Coordinates by axis, after the last step; n: rows of x or of q."""
    steps = {name: request[name] for name in ("axis_scale", "axis_divisor", "axis_shift") if request.get(name)}
    found = positions(request, n, coords)
    return rotary.last_step(found, **steps) if steps else found


def positions(request, n=None, coords="index"):
    if "grid_coords" in request:
        return [list(axis) for axis in zip(*itertools.product(*request["grid_coords"]))]
    if "segments" in request:
        return segments.positions(request["segments"], **segment_rules(request))[0].tolist()
    if "grid" in request:
        rows = rotary.coordinates(request["grid"], coords, request.get("ref_grid"), request.get("order", "row_major"), request.get("spatial_merge_size", 2),
                                  request.get("crop_end", "open"))
        return [list(axis) for axis in zip(*rows)]
    if "positions" in request:
        given = request["positions"]
        return [list(axis) for axis in given] if isinstance(given[0], (list, tuple)) else [list(given)]
    first, many = request.get("offset", 0), lengths(request)
    if many:
        return [[p for m in many for p in run(first, m)]]
    n = request.get("len", len(request["tokens"]) if "tokens" in request else n)
    return [shard(n, first, **request["shard"])] if "shard" in request else [run(first, n)]


def segment_rules(request):
    names = ("position_style", "spatial_merge_size", "tokens_per_second", "position_id_per_seconds", "seconds_per_chunk", "temporal_scale")
    return {name: request[name] for name in names if name in request}


def pairs(request, memory=0):
    """Positions of queries and of keys."""
    if "q_positions" in request:
        return request["q_positions"], request["k_positions"]
    if "q_len" not in request and "k_len" not in request and not memory:
        k = axes(request)[0]
        shift = request.get("q_offset")
        return (k if shift is None else [p + shift for p in k]), k
    q_len = request.get("q_len", request.get("k_len", request.get("len")))
    k_len = request.get("k_len", q_len + memory if memory else q_len)
    first = request.get("offset", 0)
    return run(first + request.get("q_offset", k_len - q_len), q_len), run(first, k_len)
