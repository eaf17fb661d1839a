"""Tensors of rows (../cases): {"$truth": belief, "tensor": name…} is what tests/truth/evidence.py predicts for a belief, changed as a wrong
port has it."""
import numpy as np

from tensors import to_bf16
from truth import evidence

INPUTS = ("q", "k", "table", "attention_mask", "w1", "b1", "w2", "b2")
NUMPY = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4"}


def rounded(values, dtype):
    """Rounded once to the dtype, as float64 or as whole numbers."""
    if dtype[0] == "i":
        return np.asarray(values, np.int64)
    with np.errstate(over="ignore"):
        return (to_bf16(np.asarray(values, float)) if dtype == "bf16" else np.asarray(values).astype(NUMPY[dtype])).astype(float)


def number(x):
    return x if isinstance(x, int) or np.isfinite(x) else "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"


def inline(values, dtype="f32"):
    """A tensor in JSON, rounded to its dtype, with infinities."""
    values = rounded(values, dtype)
    numbers = values.ravel().tolist()
    return {"dtype": dtype, "shape": list(values.shape), "data": numbers if np.isfinite(values).all() else list(map(number, numbers))}


def put(a, place, value):
    a = np.array(a)
    a[tuple(place)] = value
    return a


def scaled(a, factor):
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(a), a * np.array(factor), a)


def whole(a, layout, width, first=0):
    """Matrices [n, width, width] of matrices [n, C, 2, 2] of pairs, in channels from `first` on; the others pass by."""
    n, pairs = a.shape[:2]
    out = np.broadcast_to(np.eye(width), (n, width, width)).copy()
    for c in range(pairs):
        i, j = (first + c, first + c + pairs) if layout == "half" else (first + 2 * c, first + 2 * c + 1)
        out[:, [[i, i], [j, j]], [[i, j], [i, j]]] = a[:, c]
    return out


CHANGES = {  # in the order in which a row lists them
    "times": scaled,
    "plus": lambda a, place, x: put(a, place, np.asarray(a)[tuple(place)] + x),
    "put": put,
    "take": lambda a, axis, order: np.take(a, order, axis),
    "flip": np.flip,
    "axes": np.transpose,
    "shape": np.reshape,
    "repeat": np.repeat,
    "tile": np.tile,
    "hidden": lambda a, x: np.where(np.isneginf(a), x, a),
    "round": rounded,
    "mod": lambda a, low: np.mod(a - low, 2 * np.pi) + low,
    "over": lambda a, power: np.asarray(a, float) ** power,
    "softmax": lambda a: np.exp(a) / np.exp(a).sum(-1, keepdims=True),
    "log": np.log,
    "whole": whole,
}


def changed(a, changes):
    for name, *arguments in changes:
        a = CHANGES[name](a, *arguments)
    return a


def array_of(value, drawn):
    if isinstance(value, dict):
        return changed(drawn(value), value.get("changed", [])) if "$normal" in value else np.array(value["data"]).reshape(value["shape"])
    return np.array(value)


def tensor(spec, drawn):
    """The array of a row's {"$truth": …}; drawn: of {"$normal": …}."""
    belief = dict(spec["$truth"])
    arrays = {name: array_of(belief.pop(name), drawn).astype(float) for name in INPUTS if name in belief}
    if "attention_mask" in arrays:
        arrays["attention_mask"] = arrays["attention_mask"].astype(int)
    parts = [evidence.tensor(name, belief, spec.get("shape"), **arrays) for name in spec["tensor"].split("+")]
    return changed(np.stack(parts) if len(parts) > 1 else parts[0], spec.get("changed", []))
