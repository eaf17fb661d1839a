"""Requests and refusals in the form that the tests use: tensors as JSON, expected refusals and their fields."""
import numpy as np


def given(**fields):
    """Without the fields that are None."""
    return {name: value for name, value in fields.items() if value is not None}


def inline(array, dtype="f64"):
    """A tensor in JSON that keeps its dtype."""
    array = np.asarray(array)
    return {"dtype": dtype, "shape": list(array.shape), "data": array.ravel().tolist()}


def refused(server, pointers, *words, path="/encode", **fields):
    """422 at one of these fields, or inside it; the detail holds the words."""
    response = server.post(path, fields)
    assert response.status == 422, (fields, response)
    assert response.headers["Content-Type"].split(";")[0] == "application/problem+json"
    problem = response.json()
    pointer = problem.get("pointer", "")
    allowed = (pointers,) if isinstance(pointers, str) else pointers
    assert any(pointer == p or p and pointer.startswith(p + "/") for p in allowed), (fields, problem)
    for word in words:
        assert word in problem["detail"], f"{word!r} is missing in: {problem['detail']}"
