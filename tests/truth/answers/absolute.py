"""Encodings that are added to x. Each function: (request, positions by axis) to [n, width]."""
import numpy as np

import truth.absolute as formulas
import truth.dynamics as dynamics
import truth.resample as resample
import truth.rotary
from truth.answers import sequences, tensor
from truth.absolute import seeded


def some(request, *names):
    """These fields of a request, as arguments of a formula that has the defaults."""
    return {name: request[name] for name in names if request.get(name) is not None}


def sinusoidal(request, axes):
    """Behind its rows of zeros."""
    return np.concatenate([np.zeros((request.get("num_prefix", 0), request["dim"])), sines(request, axes)])


def sines(request, axes):
    style, base = request.get("style", "axial"), request.get("temperature", request.get("base"))
    more = {} if base is None else {"temperature" if style == "detr" else "base": base}
    wave = some(request, "layout", "freq_shift", "odd", "flip_sin_to_cos", *(["angle_scale"] if style == "axial" else []))
    grid, rows = request.get("grid"), list(zip(*axes))
    if len(axes) == 1:
        return formulas.table(formulas.one_axis(0, request["dim"], **more, **wave), rows)
    if style == "detr" and grid:
        rows = formulas.detr_coordinates(grid, rows=rows, **some(request, "normalize", "angle_scale"))
    more |= some(request, "axes_dim", "axis_order", "interleave_sin_cos", "uniform_power")
    return formulas.table(formulas.STYLES[style](request["dim"], len(axes), **more, **wave), rows)


def fourier(request, axes):
    style, rows = request.get("style", "nerf"), list(zip(*axes))
    if style == "nerf":
        return formulas.table(formulas.nerf(len(axes), **some(request, "num_freqs", "include_input", "log_sampling", "multiply_pi")), rows)
    if style == "perceiver":
        lengths = request.get("grid") or [len(axes[0])]
        if "positions" not in request:
            rows = formulas.perceiver_coordinates(lengths)
        lengths = lengths if len(lengths) == len(axes) else [None] * len(axes)
        return formulas.table(formulas.perceiver(lengths, **some(request, "num_bands", "max_resolution", "concat_pos", "sine_only")), rows)
    shape = request.get("num_freqs", 256), len(axes)
    b = tensor(request["b"], "b") if "b" in request else seeded("b", shape, request.get("seed", 0), request.get("sigma", 1.0))
    return formulas.table(formulas.gaussian(b), rows)


def weights(request, **shapes):
    """Tensors as they were sent, or drawn by the request's seed."""
    seed, std = request.get("seed", 0), request.get("std", 0.02)
    return {name: tensor(request[name], name) if name in request else seeded(name, shape, seed, std).astype(float) for name, shape in shapes.items()}


def recurrence(request, axes):
    """recursive and floater: rows from 0 on, of which those asked for."""
    is_timed = request["scheme"] == "floater"
    names = [name for name in request if name[0] in "wb" and name[1:].isdigit()]
    d, inputs = request["dim"], int(is_timed and request.get("time_input", True))
    hidden = request.get("hidden", d)
    sizes = {"p0": (d,), "w1": (hidden, d + inputs), "b1": (hidden,), "w2": (d, hidden + inputs), "b2": (d,)}
    network = weights(request, **({name: None for name in ["p0", *names]} if names else sizes))
    make = dynamics.floater if is_timed else dynamics.recursive
    more = some(request, "activation", "residual", "output_activation", "dt", "substeps", "method", "time_input")
    return make(max(axes[0]) + 1, **more, **network)[axes[0]]


def row_of(place, n, rule):
    """The row of a table of n rows, or None."""
    return {"clamp": min(max(place, 0), n - 1), "wrap": place % n}.get(rule, place if 0 <= place < n else None)


def looked_up(table, places, rule):
    rows = [row_of(int(p), len(table), rule) for p in places]
    return np.array([np.zeros(table.shape[1]) if row is None else table[row] for row in rows])


def stretched(table, positions, offset):
    """The largest position meets the last row; rows before row_offset stay where they are."""
    room, last = len(table) - 1 - offset, max(positions)
    at = offset + np.array(positions, float) * min(1, room / last if last else 1)
    low = np.clip(np.floor(at).astype(int), 0, len(table) - 1)
    part = (at - low)[:, None]
    return (1 - part) * table[low] + part * table[np.minimum(low + 1, len(table) - 1)]


def is_by_column(shape, sides):
    """[dim,h,w], as a convolution's output is laid out; where both would fit, it is [h,w,dim]."""
    return sides and len(shape) >= 3 and list(shape[-2:]) == list(sides) and list(shape[-3:-1]) != list(sides)


def repeated(window, grid, width):
    """A table of a window, [h,w,dim] or [dim,h,w], over the whole grid."""
    window = window if window.shape[-1] == width else np.moveaxis(window, -3, -1)
    h, w = window.shape[-3:-1]
    return np.array([[window.reshape(h, w, width)[y % h, x % w] for x in range(grid[1])] for y in range(grid[0])])


def longer(table, name, last, request):
    """The table, with rows of the seed behind its own where the request draws them."""
    if request.get("out_of_range") != "seeded" or last < len(table):
        return table
    drawn = formulas.seeded(name, (int(last) + 1, table.shape[1]), request["seed"], request.get("std", 0.02)).astype(float)
    return np.concatenate([table, drawn[len(table):]])


def learned(request, axes):
    rule, offset, d = request.get("out_of_range", "error"), request.get("row_offset", 0), request["dim"]
    grid, trained, prefix = request.get("grid"), request.get("table_grid"), request.get("num_prefix", 0)
    if trained:
        table = weights(request, table=(prefix + trained[0] * trained[1], d))["table"]
        table = np.moveaxis(table, -3, -1).reshape(-1, d) if is_by_column(table.shape, trained) else table.reshape(-1, d)
        body = resample.resample_grid(request.get("interpolate", "bicubic"), table[prefix:].reshape(*trained, -1), *grid,
                                      offset=request.get("interpolate_offset", 0), cubic_a=request.get("cubic_a"))
        if "window_table" in request:
            body = body + repeated(tensor(request["window_table"], "window_table"), grid, d)
        body = body.reshape(grid[0] * grid[1], -1)
        order = truth.rotary.merge_order(grid, request.get("spatial_merge_size", 2)) if request.get("order") == "merge" else slice(None)
        return np.concatenate([table[:prefix], body[order]])
    if len(axes) > 1 and ("row_table" in request or "table" not in request):
        needed = [request.get("rows", int(max(axis)) + offset + 1) for axis in axes]
        tables = weights(request, row_table=(needed[0], d // 2), col_table=(needed[1], d // 2))
        rows, columns = (looked_up(longer(tables[name], name, max(axis) + offset, request), [p + offset for p in axis], rule) for name, axis in zip(("row_table", "col_table"), axes))
        return np.hstack([columns, rows])
    places = axes[0] if len(axes) == 1 else range(len(axes[0]))
    table = weights(request, table=(request.get("rows", int(max(places)) + offset + 1), d))["table"]
    table = longer(table, "table", max(places) + offset, request)
    return stretched(table, places, offset) if rule == "interpolate" else looked_up(table, [p + offset for p in places], rule)


def integer(request, axes):
    scale = request.get("pe_scale", 1.0)
    values = formulas.integer(axes[0], request.get("normalize", "none"), request["dim"] ** 0.5 if scale == "sqrt_dim" else scale)
    return np.tile(np.array(values, float)[:, None], request["dim"])


FORMULAS = {
    "none": lambda request, axes: np.zeros((len(axes[0]), request["dim"])), "integer": integer, "sinusoidal": sinusoidal, "fourier": fourier,
    "binary": lambda request, axes: formulas.binary(axes[0], request["dim"], **some(request, "bits", "bit_order", "low", "high")),
    "learned": learned, "recursive": recurrence, "floater": recurrence,
}


def width_of(request):
    """dim: as asked, that of x, or of the tensors sent."""
    sent = next((request[name] for name in ("x", "table", "p0") if name in request), None)
    if "row_table" in request:
        return 2 * tensor(request["row_table"], "row_table").shape[-1]
    shape = (512,) if sent is None else tensor(sent, "").shape
    return request.get("dim") or shape[-3 if is_by_column(shape, request.get("table_grid")) else -1]


def channels_first(request, table):
    """Over a grid [dim, …grid]; so are DETR's two encodings if nothing is said."""
    is_detr = request.get("style") == "detr" or request["scheme"] == "learned" and "table" not in request and "table_grid" not in request
    if "grid" in request and request.get("channels_first", is_detr):
        return table.T.reshape(-1, *request["grid"])
    return table


def combined(request, table):
    x, scale = tensor(request["x"], "x"), {} if request["scheme"] == "integer" else some(request, "pe_scale")
    return {"encoding": table, "combined": formulas.combine(x, table, request.get("combine", "add"), **some(request, "x_scale"), **scale)}


def outputs(request):
    request = {**request, "dim": width_of(request)}
    n = tensor(request["x"], "x").shape[-2] - request.get("num_prefix", 0) if "x" in request else None
    coords = request.get("coords", "one_based" if request.get("style") == "detr" else "index")
    table = FORMULAS[request["scheme"]](request, sequences.axes(request, n, coords))
    if "x" in request:
        return combined(request, table), ["combined"]
    return {"encoding": channels_first(request, table)}, ["encoding"]


SCHEMES = dict.fromkeys(FORMULAS, outputs)
