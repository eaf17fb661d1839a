"""Laws that a row of ../cases may name in "law": what an answer must obey and no list of values says. A law is a function of the
answer, the row and the server; its docstring is the sentence that it holds."""
import numpy as np

import laws_machine
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


import laws_analyze  # noqa: E402, F401  (laws of areas)
import laws_attention  # noqa: E402, F401
import laws_diagnose  # noqa: E402, F401
import laws_golden  # noqa: E402, F401
import laws_mcp  # noqa: E402, F401
import laws_wire  # noqa: E402, F401

for function in laws_machine.LAWS:
    law(function)
