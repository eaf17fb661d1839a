"""What a request must be answered, from its own fields: one function for each endpoint, {path: function}. Each returns the tensors by name
in float64 (or as whole numbers); compare() judges what a server answered."""
import numpy as np

# Half a unit in the last place is the rounding itself; the reference's own error in float64 comes on top.
ULPS = {"f8": 64 * 2.0 ** -53, "f4": 2.0 ** -24 + 2.0 ** -44, "f2": 2.0 ** -11 + 2.0 ** -30}

OF = {}


def of(path):
    def register(function):
        OF[path] = function
        return function
    return register


def compare(path, request, got, tolerance=None):
    """Every tensor of the answer against the truth: the same names, shapes, infinities, and values within one rounding of their type."""
    expected = OF[path](request)
    assert set(got) == set(expected), f"{sorted(got)}, not {sorted(expected)}"
    for name, right in expected.items():
        found, right = got[name], np.asarray(right)
        assert found.shape == right.shape, f"{name}: shape {found.shape}, not {right.shape}"
        if found.dtype.kind == "i":
            assert np.array_equal(found, right), name
            continue
        limit = tolerance or ULPS[found.dtype.str[1:]]
        finite = np.isfinite(right)
        assert np.array_equal(found[~finite], right[~finite], equal_nan=True), f"{name}: infinities"
        error = np.abs(found[finite].astype(float) - right[finite])
        bound = limit * np.maximum(1, np.abs(right[finite]))
        assert (error <= bound).all(), f"{name}: {error.max()} at {np.argwhere(finite)[int(np.argmax(error - bound))].tolist()}"
