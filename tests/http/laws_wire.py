"""Laws of forms: of what may be asked in other ways, as a tool of language models or in Chinese; of the formats of an answer."""
import json
import re
import urllib.parse

import numpy as np

import safetensors_reader
import tensors
from laws import law


@law
def in_a_tool(answer, row, server):
    """A tool refuses with the problem of its endpoint (Tools of language models)."""
    from messages import refusal
    from run import made
    assert refusal(server, row["post"][1:], made(row["request"])) == answer.json()


@law
def in_chinese(answer, row, server):
    """A refusal has Chinese words too."""
    from run import ask
    found = ask(server, {**row, "headers": {**row.get("headers", {}), "Accept-Language": "zh"}})
    assert found.headers["Content-Language"].startswith("zh") and any("一" <= letter <= "鿿" for letter in found.json()["detail"])


@law
def says_where(answer, row, server):
    """Triton's clients show `error` and nothing else of a refusal: it begins with the place."""
    problem = answer.json()
    assert problem["error"].startswith(problem["pointer"] + ": ")


# ---- Forms of an answer ----------------------------------------------------------------------------------------------------


def asked(server, row, **fields):
    from run import again, ask
    return ask(server, again(row, **fields))


def texts(answer):
    """The numbers of the first tensor as they are written."""
    data = next(iter(json.loads(answer.body, parse_float=str)["tensors"].values()))["data"]
    return [number for line in data for number in line]


@law
def has_its_length(answer, row, server):
    """Every form but JSON says its length; every answer has an id."""
    length = answer.headers.get("Content-Length")
    assert int(length) == len(answer.body) if row["request"]["format"] != "json" else not length or int(length) == len(answer.body)
    assert answer.headers["X-Request-Id"]


@law
def has_its_own_id(answer, row, server):
    own = answer.headers["X-Request-Id"]
    assert own != row.get("headers", {}).get("X-Request-Id") and re.fullmatch(r"[A-Za-z0-9._-]{1,128}", own)


@law
def is_no_json(answer, row, server):
    assert answer.headers["Content-Type"].split(";")[0] != "application/json"


@law
def safetensors_says_what_it_is(answer, row, server):
    metadata = safetensors_reader.loads(answer.body)[1]
    assert metadata["format"] == "pt" and metadata["scheme"] == row["request"]["scheme"]
    assert json.loads(metadata["config"]) == asked(server, row, format=None).json()["config"]


@law
def npy_is_plain(answer, row, server):
    n = int.from_bytes(answer.body[8:10], "little")
    assert answer.body[:8] == b"\x93NUMPY\x01\x00" and (10 + n) % 64 == 0 and answer.body[9 + n:10 + n] == b"\n"
    assert answer.body[10:10 + n].startswith(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }")


@law
def one_tensor_is_npy(answer, row, server):
    """One tensor is a .npy file too; several are refused there, with their names."""
    from run import arrays
    found, npy = arrays(answer), asked(server, row, format="npy")
    if len(found) == 1:
        assert tensors.from_npy(npy).tobytes() == next(iter(found.values())).tobytes()
    else:
        assert npy.status == 406 and ", ".join(found) in npy.json()["detail"]


@law
def digits_are_pythons(answer, row, server):
    """As many digits behind the point as Python writes, never fewer than one, and no negative 0."""
    exact, digits = next(iter(tensors.from_raw(asked(server, row, digits=None, format="raw")).values())), row["request"]["digits"]
    expected = [f"{number:.{digits}f}" if digits else f"{number:.0f}.0" for number in exact.ravel().tolist()]
    assert texts(answer) == [text.lstrip("-") if float(text) == 0 else text for text in expected]


@law
def shortest_numbers(answer, row, server):
    """The shortest text that reads back to the same number of its dtype, by Python's own or NumPy's."""
    for text in texts(answer):
        if row["request"].get("dtype") == "f64":
            assert text == repr(float(text))
        else:
            assert float(np.format_float_scientific(np.float32(text), unique=True)) == float(text), text


@law
def far_rows(answer, row, server):
    """Rows of a long table are those of their positions."""
    n, [[first, _], [_, pairs]] = row["request"]["len"], row["request"]["slice"]
    near = tensors.encode_one(server, scheme="rope", positions=list(range(n + first, n)), outputs=["cos"])[:, :pairs]
    assert np.array_equal(tensors.from_json(answer)["cos"], near)


@law
def zarr_attributes(answer, row, server):
    """The attributes of both versions of the store are the scheme and the config of /encode."""
    path = row["get"]
    query = dict(field.split("=") for field in urllib.parse.unquote(path.split("/")[2]).split("&") if not field.startswith("outputs"))
    config = server.ask("/encode", scheme=query.pop("scheme"), **{name: int(value) for name, value in query.items()}, data=False).json()["config"]
    assert answer.json()["config"] == config
    assert server.get(path.replace(".zattrs", "zarr.json")).json()["attributes"] == answer.json()


# ---- The Open Inference Protocol -------------------------------------------------------------------------------------------


@law
def has_the_version(answer, row, server):
    assert answer.json()["version"] == server.get("/version").json()["version"]


@law
def takes_no_words(answer, row, server):
    assert "tokens" not in {tensor["name"] for tensor in answer.json()["inputs"]}


@law
def rotates_nothing(answer, row, server):
    assert "q_out" not in {tensor["name"] for tensor in answer.json()["outputs"]}


# ---- Pictures --------------------------------------------------------------------------------------------------------------


@law
def picture_is_numpys(answer, row, server):
    """Indices are those that NumPy computes of the same numbers; zoom makes the longer side 512 pixels or so where it is not given."""
    from pictures import check, matrix, numbers
    from png_reader import Picture
    from run import made
    request = made(row["request"])
    fields = {name: value for name, value in request.items() if name not in ("format", "zoom", "vmin", "vmax", "cmap")}
    values = matrix(numbers(server, row["post"], **fields)) * 2.0 ** -20  # a span of all doubles must not overflow
    given = {name: request[name] * 2.0 ** -20 for name in ("vmin", "vmax") if name in request}
    finite = values[np.isfinite(values)]
    low, high = given.get("vmin", finite.min()), given.get("vmax", finite.max())
    limits = {"vmin": min(low, high) if "vmin" not in given else low, "vmax": max(low, high) if "vmax" not in given else high}
    check(Picture(answer.body), values, request.get("zoom") or max(1, round(512 / max(values.shape))), **limits)
    assert answer.headers["Content-Type"] == "image/png" and int(answer.headers["Content-Length"]) == len(answer.body)


@law
def request_is_inside(answer, row, server):
    """The request that stands in a picture gives the same picture."""
    from png_reader import Picture
    request = json.loads(Picture(answer.body).texts[b"posenc"].decode("latin-1"))
    assert request["format"] == "png" and {"cmap", "zoom", "vmin", "vmax"} <= set(request)
    assert ("slice" in request) == ("slice" in row["request"]) and request.get("reduce") == row["request"].get("reduce")
    assert server.ask(row["post"], **request).body == answer.body
