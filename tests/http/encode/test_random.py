"""Every scheme of GET /schemes on random requests: the answer of /encode and /rotate is what tests/truth computes of the same fields, each number
the nearest of its type, and the config of an answer, posted with the fields that are no parameters, gives the same bytes. Seeds are
fixed, and a failure prints its request."""
import json
import random

import pytest

import truth.answers
import truth.draw
from tensors import from_safetensors

EACH = 40
BLOCKS = {"rope": 20, "sinusoidal": 4, "learned": 3, "fourier": 3, "alibi": 3, "t5": 3}  # of requests; of the others 2
ENCODE = [(scheme, block) for scheme in truth.draw.SCHEMES for block in range(BLOCKS.get(scheme, 2))]
ROTATE = [("rope", block) for block in range(8)] + [("xpos", block) for block in range(3)]
OWN = {"fire": 1e-12, "recursive": 1e-12, "floater": 1e-12, "swinv2": 1e-13, "sandwich": 1e-14, "learned": 1e-14, "fourier": 1e-14, "xpos": 1e-14,
       "sinusoidal": 4e-15}  # what the reference's own sums, powers and products with x may be off; elsewhere as compare() has it
TURNED = {"f64": 1e-13}  # products of tables in the tensor's type, or in f32: 1e-6


@pytest.fixture(scope="module")
def rows(session_server):
    return {row["name"]: row for row in session_server.get("/schemes").json()["schemes"]}


def test_every_scheme_is_drawn(rows):
    assert set(truth.draw.SCHEMES) == {name for name, row in rows.items() if "/encode" in row["endpoints"]}


def asked(server, path, request):
    answer = server.post(path, {**request, "format": "safetensors"})
    assert answer.status == 200, answer
    return answer


def each(path, scheme, block, check, rows):
    """Draws, and checks; a failure is one line and the request."""
    make = truth.draw.encode if path == "/encode" else truth.draw.rotate
    for seed in range(EACH):
        request = make(rows[scheme], random.Random(f"{path} {scheme} {block} {seed}"))
        try:
            check(request)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{json.dumps(request)}", pytrace=False)


@pytest.mark.parametrize("scheme, block", ENCODE)
def test_encode(server, rows, scheme, block):
    parameters = {p["name"] for p in rows[scheme]["parameters"]}

    def check(request):
        answer = asked(server, "/encode", request)
        truth.answers.compare("/encode", request, from_safetensors(answer), OWN.get(scheme))
        config = server.ask(**request, data=False).json()["config"]
        kept = {name: value for name, value in request.items() if name not in parameters}
        assert asked(server, "/encode", {**config, **kept}).body == answer.body, f"config {config}"
    each("/encode", scheme, block, check, rows)


@pytest.mark.parametrize("scheme, block", ROTATE)
def test_rotate(server, rows, scheme, block):
    def check(request):
        answer = asked(server, "/rotate", request)
        truth.answers.compare("/rotate", request, from_safetensors(answer), TURNED.get(truth.answers.dtype_of(request), 1e-6))
    each("/rotate", scheme, block, check, rows)
