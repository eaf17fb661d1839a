"""Requests and refusals in the form that the tests use: tensors as JSON, expected refusals and their fields, and a
config posted again."""
import numpy as np

from tensors import from_raw


def given(**fields):
    """Without the fields that are None."""
    return {name: value for name, value in fields.items() if value is not None}


def metric(server, name):
    """A figure of /metrics, with its labels."""
    text = server.get("/metrics").body.decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.split()[0] == name)


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


def check_again(server, request, keep, answer, path="/encode"):
    """The config of an answer, with the fields that are no parameters, gives the same bytes; answer: tensors by name."""
    config = server.ask(path, **request, data=False).json()["config"]
    kept = {name: request[name] for name in keep if name in request}
    again = from_raw(server.ask(path, **{**config, **kept}, format="raw"))
    assert set(again) == set(answer)
    for name, array in answer.items():
        assert again[name].tobytes() == array.tobytes(), (name, request)
