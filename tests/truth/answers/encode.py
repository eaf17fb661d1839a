"""/encode: the outputs of every scheme. A scheme is a function of the request and its positions, {output: values}, the usual ones first."""
import numpy as np

from truth.answers import of
from truth.answers import absolute, bias, relative, rotary, sequences

SCHEMES = {**absolute.SCHEMES, **rotary.SCHEMES, **bias.SCHEMES, **relative.SCHEMES}
WITHOUT_BATCH = ("inv_freq", "slopes", "scale")


@of("/encode")
def encode(request):
    rows = sequences.batch(request)
    if rows and request["scheme"] in absolute.SCHEMES and "x" in request:
        plain = {name: value for name, value in request.items() if name != "x"}
        table = encode({**plain, "outputs": ["encoding"]})["encoding"]
        return chosen(request, absolute.combined(request, table), ["combined"])
    if rows:
        answers = [encode(row) for row in rows]
        return {name: one if name in WITHOUT_BATCH else np.stack([answer[name] for answer in answers]) for name, one in answers[0].items()}
    return chosen(request, *SCHEMES[request["scheme"]](request))


def chosen(request, outputs, usual):
    return {name: outputs[name] for name in request.get("outputs", usual)}
