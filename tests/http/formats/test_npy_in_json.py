"""A .npy file in base64 as a tensor of JSON: {"npy":"…"}, on every endpoint that reads JSON, what is refused of it is in
../cases/refused_formats.jsonl."""
import base64
import struct

import numpy as np
import pytest

from messages import call
from tensors import from_npy, from_safetensors, npy

Q = np.random.default_rng(3).standard_normal((1, 2, 5, 8))


def inside(array):
    return {"npy": base64.b64encode(npy(array)).decode()}


@pytest.mark.parametrize("array", [Q, Q.astype("f4"), Q.astype("f2"), Q.astype(">f4"), np.asfortranarray(Q.astype("f4"))],
                         ids=["f64", "f32", "f16", "big endian", "Fortran"])
def test_it_is_the_file_sent_alone(server, array):
    ask = {"scheme": "rope", "layout": "half", "format": "npy"}
    alone = server.request("POST", "/rotate?scheme=rope&layout=half&format=npy", npy(array), {"Content-Type": "application/x-npy"})
    answer = server.post("/rotate", {**ask, "q": inside(array)})
    assert answer.status == alone.status == 200 and answer.body == alone.body
    assert from_npy(answer).dtype == array.dtype.newbyteorder("=")


def test_elements_at_any_place_in_the_file(server):
    """The header's length moves the elements by a byte at a time."""
    values = np.arange(8.0).reshape(1, 1, 1, 8) + 1
    whole = from_npy(server.post("/rotate", {"scheme": "rope", "format": "npy", "q": values.tolist(), "dtype": "f64", "offset": 3}))
    for n in range(60, 76):
        head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1, 8), }"
        file = b"\x93NUMPY\x01\x00" + struct.pack("<H", n + 20) + head.ljust(n + 19) + b"\n" + values.tobytes()
        answer = server.post("/rotate", {"scheme": "rope", "format": "npy", "q": {"npy": base64.b64encode(file).decode()}, "offset": 3})
        assert np.array_equal(from_npy(answer), whole), n


def test_every_endpoint_reads_it(server):
    q = Q.astype("f4")
    both = {"scheme": "alibi", "format": "safetensors", "outputs": ["probs"]}
    listed, sent = (from_safetensors(server.post("/attention", {**both, "q": one, "k": one}))["probs"] for one in (q.tolist(), inside(q)))
    assert np.array_equal(listed, sent)
    table = np.random.default_rng(4).standard_normal((6, 4)).astype("f4")
    answer = server.post("/encode", {"scheme": "learned", "len": 6, "dim": 4, "table": inside(table), "format": "npy"})
    assert np.array_equal(from_npy(answer), table)
    answer = server.post("/encode", {"scheme": "rope", "head_dim": 4, "positions": inside(np.array([5, 900])), "format": "npy", "outputs": ["cos"]})
    assert np.array_equal(from_npy(answer), np.cos(np.outer([5, 900], [1, 0.01])).astype("f4"))
    rotated = from_npy(server.post("/rotate", {"scheme": "rope", "layout": "half", "q": q.tolist(), "format": "npy"}))
    belief = {"scheme": "rope", "layout": "interleaved", "q": inside(q), "q_out": inside(rotated)}
    answer = server.post("/diagnose", belief).json()
    assert answer["findings"][0]["code"] == "layout_swapped"
    assert server.post("/check", {**belief, "layout": "half"}).json()["fits"] is True
    assert call(server, "diagnose", **belief)["findings"] == answer["findings"]
