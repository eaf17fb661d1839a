"""What a request must be answered, from its own fields: one function for each endpoint, {path: function}. Each returns the tensors by name
in float64 (or as whole numbers); compare() judges what a server answered. encode.py has /encode, rotate.py /rotate."""
import base64
import io

import numpy as np

import truth
from truth.absolute import seeded

DTYPES = {"f64": "f8", "f32": "f4", "f16": "f2", "bf16": "f4", "i32": "i4", "i64": "i8"}
OWN = 2.0 ** -50  # what the reference itself may be off, of the larger of 1 and the value
RELATIVE = ("inv_freq", "slopes", "scale")  # of the value itself, however small

OF = {}


def of(path):
    def register(function):
        OF[path] = function
        return function
    return register


def tensor(value, name):
    """A tensor of a request in float64: nested lists (which are f32), {dtype, shape, data}, {npy}, or drawn: {shape, seed, std}; or an array."""
    if isinstance(value, np.ndarray):
        return value.astype(float)
    if not isinstance(value, dict):
        return np.array(value, "f4").astype(float)
    if "npy" in value:
        return np.load(io.BytesIO(base64.b64decode(value["npy"]))).astype(float)
    if "data" not in value:
        return seeded(name, tuple(value["shape"]), int(value["seed"]), value.get("std", 0.02)).astype(float)
    dtype = value.get("dtype", "f32")
    data = np.array(value["data"], float)
    data = truth.to_bf16(data).astype(float) if dtype == "bf16" else data.astype(DTYPES[dtype]).astype(float)
    return data.reshape(value.get("shape", data.shape))


def dtype_of(request):
    """Of an answer's real numbers: as asked, else that of the tensors sent."""
    sent = next((request[name] for name in ("x", "q", "k") if name in request), None)
    return request.get("dtype") or (sent.get("dtype", "f32") if isinstance(sent, dict) else "f32")


def rounded(values, dtype):
    with np.errstate(over="ignore"):
        return truth.to_bf16(values) if dtype == "bf16" else values.astype(DTYPES[dtype])


def compare(path, request, got, tolerance=None):
    """Every tensor of the answer against the truth: the same names, shapes, infinities, and the nearest number of their type, which
    the reference's own error may make one of two; or within a tolerance, absolute below 1 and relative above."""
    expected, dtype = OF[path](request), dtype_of(request)
    assert set(got) == set(expected), f"{sorted(got)}, not {sorted(expected)}"
    for name, right in expected.items():
        found, right = got[name], np.asarray(right)
        assert found.shape == right.shape, f"{name}: shape {found.shape}, not {right.shape}"
        if found.dtype.kind == "i":
            assert np.array_equal(found, right), name
            continue
        finite, own = np.isfinite(right), dtype if found.dtype.itemsize < 8 else "f64"
        assert np.array_equal(found[~finite], right[~finite], equal_nan=True), f"{name}: infinities"
        found, right = found[finite].astype(float), right[finite].astype(float)
        slack = (tolerance or OWN) * np.maximum(0 if name in RELATIVE else 1, np.abs(right))
        low, high = (rounded(x, own).astype(float) for x in (right - slack, right + slack))
        bad = ~((low <= found) & (found <= high))
        assert not bad.any(), f"{name}: {found[bad][0]!r}, not {right[bad][0]!r} at {np.argwhere(finite)[bad][0].tolist()}"


import truth.answers.encode  # noqa: E402, F401  (it registers itself above)
import truth.answers.rotate  # noqa: E402, F401
