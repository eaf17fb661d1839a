"""Laws that a row of ../cases may name in "law": what an answer must obey and no list of values says. A law is a function of the
answer, the row and the server; its docstring is the sentence that it holds."""
import numpy as np

import tensors

LAWS = {}


def law(function):
    LAWS[function.__name__] = function
    return function


@law
def config_again(answer, row, server):
    """The config of an answer, posted with the fields that are no parameters, gives the same tensors (API: config)."""
    from run import again, arrays, ask
    request = row["request"]
    config = ask(server, again(row, data=False, format=None)).json()["config"]
    kept = {name: value for name, value in request.items() if name not in (*config, "rope_theta", "partial_rotary_factor")}  # other names of its fields
    found = arrays(ask(server, {**row, "request": {**config, **kept}}))
    for name, array in arrays(answer).items():
        assert found[name].tobytes() == array.tobytes(), f"{name}: config {config}"


@law
def rows_sum_to_one(answer, row, server):
    """Attention's weights of a query that sees a key sum to 1."""
    probs = tensors.from_json(answer)["probs"].astype(float)
    sums = probs.sum(-1)
    assert np.abs(sums[sums > 0] - 1).max(initial=0) <= 1e-6


# ---- /encode, /rotate ----


@law
def no_negative_zero(answer, row, server):
    """0 is never negative (it would print as -0.0); there is one."""
    from run import arrays
    found = arrays(answer)
    assert any((array == 0).any() for array in found.values())
    for name, array in found.items():
        assert not np.signbit(array[array == 0]).any(), name


@law
def slice_of_the_whole(answer, row, server):
    """What slice leaves of each output are the bits that the whole has there."""
    from run import again, arrays, ask
    whole = arrays(ask(server, again(row, slice=None)))
    for name, part in arrays(answer).items():
        index = tuple(slice(None) if cut is None else slice(*cut) for cut in row["request"]["slice"][name])
        assert np.array_equal(part, whole[name][index]), name


@law
def passes_outside(answer, row, server):
    """Channels of q and k that are not rotated come back bit for bit."""
    from run import arrays, made
    request = row["request"]
    for name, found in arrays(answer).items():
        sent, first = made(request[name]), request.get("rotary_offset", 0)
        sent = np.array(sent["data"], found.dtype).reshape(sent["shape"])
        end = first + request.get("rotary_dim", found.shape[-1])
        assert found[..., :first].tobytes() == sent[..., :first].tobytes() and found[..., end:].tobytes() == sent[..., end:].tobytes(), name


@law
def same_inline(answer, row, server):
    """Tensors in parts of a form, as .npy files, give the same bytes as numbers in JSON, or as one .npy beside a query."""
    from run import drawn, in_query
    tensors_sent = {name: part for name, part in row["parts"].items() if name != "request"}
    inline = {name: {"dtype": part.get("dtype", "f64"), "shape": part["$normal"], "data": drawn(part).ravel().tolist()} for name, part in tensors_sent.items()}
    assert server.post(row["post"], {**row["parts"]["request"], **inline}).body == answer.body
    if list(tensors_sent) == ["x"]:
        found = server.post(in_query(row["post"], row["parts"]["request"]), tensors.npy(drawn(tensors_sent["x"])), {"Content-Type": "application/x-npy"})
        assert found.status == 200 and found.body == answer.body, found


@law
def range_of_the_whole(answer, row, server):
    """The bytes of a Range are those that the whole body has there."""
    from run import ask
    first, last = map(int, row["headers"]["Range"].removeprefix("bytes=").split("-"))
    assert answer.body == ask(server, {**row, "headers": {}}).body[first:last + 1]


import laws_analyze  # noqa: E402, F401  (laws of areas)
import laws_attention  # noqa: E402, F401
import laws_diagnose  # noqa: E402, F401
import laws_golden  # noqa: E402, F401
import laws_machine  # noqa: E402, F401
import laws_mcp  # noqa: E402, F401
import laws_wire  # noqa: E402, F401
