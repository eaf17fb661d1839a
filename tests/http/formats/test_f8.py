"""f8_e4m3 and f8_e5m2: every code, every midpoint and its neighbours against tables that are made here from the definition of the formats;
all formats that can hold them, and those that cannot."""
import json

import numpy as np
import pytest

from tensors import MIME

# Bits of the fraction and of the exponent; whether the largest exponent is for infinities and NaN alone; and names.
TYPES = {"f8_e4m3": (3, 4, False, "F8_E4M3", "float8_e4m3fn"), "f8_e5m2": (2, 5, True, "F8_E5M2", "float8_e5m2")}


def table(dtype):
    """The numbers of the codes 0 to 255, in float64."""
    fraction, exponent, infinite, *_ = TYPES[dtype]
    code = np.arange(128)
    field, part = code >> fraction, code & ((1 << fraction) - 1)
    bias = 2 ** (exponent - 1) - 1
    sizes = np.where(field > 0, 2.0**fraction + part, part) * 2.0 ** (np.maximum(field, 1) - bias - fraction)
    if infinite:
        sizes[field == 2**exponent - 1] = np.nan
        sizes[(2**exponent - 1) << fraction] = np.inf
    else:
        sizes[127] = np.nan
    return np.concatenate([sizes, -sizes])


def finite(dtype):
    """Those that are finite and not negative, in order, and behind them the number that would follow."""
    sizes = table(dtype)[:128]
    sizes = sizes[np.isfinite(sizes)]
    return np.append(sizes, 2 * sizes[-1] - sizes[-2])


def nearest(dtype, x):
    """The number nearest to each x, ties to the even code; beyond the last one infinity or NaN."""
    sizes, a = finite(dtype), np.abs(x)
    middles = (sizes[:-1] + sizes[1:]) / 2
    code = np.searchsorted(middles, a)  # middles[code - 1] < a <= middles[code]
    is_tie = code < len(middles)
    is_tie &= middles[np.minimum(code, len(middles) - 1)] == a
    return np.copysign(table(dtype)[:128][code + (is_tie & (code % 2 == 1))], x)


def values(dtype, raw):
    return table(dtype)[np.frombuffer(raw, "u1")]


def numbers_beside_middles(dtype):
    sizes = finite(dtype)
    middles = (sizes[:-1] + sizes[1:]) / 2
    x = np.concatenate([sizes[:-1], middles[:-1], np.nextafter(middles[:-1], 0), np.nextafter(middles[:-1], np.inf), np.nextafter(middles[-1:], 0)])
    return np.concatenate([x, -x])


@pytest.mark.parametrize("dtype", TYPES)
def test_every_code_middle_and_neighbour(server, dtype):
    """Sent as doubles in JSON, rounded once to the type, and not turned at position 0."""
    x = numbers_beside_middles(dtype)
    x = np.append(x, np.zeros(-len(x) % 8)).reshape(-1, 8)
    q = {"dtype": dtype, "data": x.tolist()}
    answer = server.post("/rotate", {"scheme": "rope", "positions": [0] * len(x), "format": "raw", "q": q})
    assert answer.status == 200, answer.body
    assert f'dtype="{dtype}"' in answer.headers["Posenc-Tensors"]
    assert np.array_equal(values(dtype, answer.body), nearest(dtype, x.ravel()))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("start", [0, 1000, -(2**33)])
def test_tables_are_correctly_rounded(server, dtype, start):
    """A run, and the same positions as a list, which another kernel computes."""
    ask = {"scheme": "sinusoidal", "dim": 64, "dtype": dtype, "format": "raw", "base": 16}
    positions = np.arange(start, start + 300)
    w = 16.0 ** (-np.arange(32) / 32)
    angle = (positions[:, None] * w.astype(np.longdouble)) if start >= 0 else None
    run = server.post("/encode", {**ask, "len": 300, "offset": start})
    listed = server.post("/encode", {**ask, "positions": positions.tolist()})
    assert run.status == 200 and run.body == listed.body
    if angle is None:  # float64's frequencies are not good enough there: those of the f64 answer are
        exact = np.frombuffer(server.post("/encode", {**ask, "dtype": "f64", "len": 300, "offset": start}).body)
    else:
        exact = np.stack([np.sin(angle), np.cos(angle)], axis=-1).astype(float).ravel()
    sizes = finite(dtype)
    middles = np.concatenate([[-1], (sizes[:-1] + sizes[1:]) / 2])
    beside = np.abs(middles[np.searchsorted(middles, np.abs(exact)) % len(middles)] - np.abs(exact)) < 1e-9
    beside |= np.abs(middles[np.searchsorted(middles, np.abs(exact)) - 1] - np.abs(exact)) < 1e-9
    got = values(dtype, run.body)
    assert np.array_equal(got[~beside], nearest(dtype, exact)[~beside]) and beside.mean() < 1e-2


def test_beyond_the_largest_number(server):
    """ALiBi of one head: -distance / 256. 448 is e4m3's largest number and 464 the tie, which is even; e5m2's are 57344 and 61440."""
    def bias(dtype, *distances):
        ask = {"scheme": "alibi", "num_heads": 1, "dtype": dtype, "q_positions": [0], "k_positions": [256 * d for d in distances], "outputs": ["bias"]}
        answer = server.post("/encode", ask)
        assert answer.status == 200, answer.body
        return np.ravel(answer.json()["tensors"]["bias"]["data"]).tolist()

    got = bias("f8_e4m3", 448, 464, 465)
    assert [str(x) for x in got] == ["-448.0", "-448.0", "NaN"]
    got = bias("f8_e5m2", 57344, 61439, 61440)
    assert [str(x) for x in got] == ["-57344.0", "-57344.0", "-Infinity"]


@pytest.mark.parametrize("dtype", TYPES)
def test_formats(server, dtype):
    *_, name, of_numpy = TYPES[dtype]
    ask = {"scheme": "rope", "len": 40, "head_dim": 16, "dtype": dtype, "outputs": ["cos"]}
    raw = server.post("/encode", {**ask, "format": "raw"}).body
    printed = server.post("/encode", ask).json()["tensors"]["cos"]
    assert printed["dtype"] == dtype
    assert np.array_equal(np.ravel(printed["data"]), values(dtype, raw))
    assert np.array_equal(np.float32(np.ravel(printed["data"])), np.ravel(printed["data"]).astype("f4"))
    file = server.post("/encode", {**ask, "format": "safetensors"}).body
    n = int.from_bytes(file[:8], "little")
    entry = json.loads(file[8 : 8 + n])["cos"]
    assert entry["dtype"] == name and entry["shape"] == [40, 8] and file[8 + n :] == raw
    npy = server.post("/encode", {**ask, "format": "npy"}).body
    n = 10 + int.from_bytes(npy[8:10], "little")
    assert f"'descr': '{of_numpy}'".encode() in npy[:n] and npy[n:] == raw
    assert server.post("/encode", {**ask, "format": "npz"}).status == 200
    assert server.post("/encode", {**ask, "format": "png"}).status == 200


def safetensors(dtype, request="{}", **tensors):
    head, body = {"__metadata__": {"request": request}}, b""
    for name, codes in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(codes.shape), "data_offsets": [len(body), len(body) + codes.size]}
        body += codes.tobytes()
    head = json.dumps(head).encode()
    return len(head).to_bytes(8, "little") + head + body


def npy(descr, codes):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {codes.shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + codes.tobytes()


CODES = np.random.default_rng(1).integers(0, 0x70, (3, 16)).astype("u1")


@pytest.mark.parametrize("dtype", TYPES)
def test_inputs(server, dtype):
    """A tensor of eight bits is turned as its values are, and the answer has its type."""
    *_, name, of_numpy = TYPES[dtype]
    ask = "/rotate?scheme=rope&layout=half&offset=5&format=raw"
    q = {"dtype": dtype, "data": table(dtype)[CODES].tolist()}
    expected = server.post("/rotate", {"scheme": "rope", "layout": "half", "offset": 5, "format": "raw", "q": q})
    assert expected.status == 200 and f'dtype="{dtype}"' in expected.headers["Posenc-Tensors"]
    sent = server.request("POST", ask, safetensors(name, q=CODES), {"Content-Type": MIME["safetensors"]})
    assert sent.status == 200 and sent.body == expected.body
    codes = [of_numpy] + ["<f1", "|f1"] * (dtype == "f8_e5m2")
    for descr in codes:
        sent = server.request("POST", ask, npy(descr, CODES), {"Content-Type": MIME["npy"]})
        assert sent.status == 200 and sent.body == expected.body, descr


def test_bytes_without_a_type_are_refused(server):
    for descr in ("<V1", "|V1", "<V2"):
        codes = CODES.view("u2") if descr == "<V2" else CODES
        sent = server.request("POST", "/rotate?scheme=rope", npy(descr, codes), {"Content-Type": MIME["npy"]})
        assert sent.status == 422 and "safetensors" in sent.json()["detail"] and descr in sent.json()["detail"]


@pytest.mark.parametrize("dtype", TYPES)
def test_formats_without_the_type(server, dtype):
    answer = server.get(f"/zarr/scheme=rope&len=4&dtype={dtype}/zarr.json")
    assert answer.status == 406 and dtype in answer.json()["detail"]
    body = {"inputs": [{"name": "q", "shape": [1, 1, 2, 4], "datatype": "FP32", "data": [1.0] * 8}], "parameters": {"dtype": dtype}}
    answer = server.post("/v2/models/rope/infer", body)
    assert answer.status == 422 and answer.json()["error"].count(dtype) == 1


@pytest.mark.parametrize("dtype", TYPES)
def test_diagnose(server, dtype):
    """The type's own noise explains nothing, and another base is found all the same."""
    *_, name, _ = TYPES[dtype]

    def diagnose(base):
        made = {"scheme": "rope", "head_dim": 32, "len": 128, "layout": "half", "base": base, "dtype": dtype}
        bits = {key: np.frombuffer(server.post("/encode", {**made, "outputs": [key], "format": "raw"}).body, "u1").reshape(128, 16) for key in ("cos", "sin")}
        belief = {"scheme": "rope", "head_dim": 32, "layout": "half", "base": 10000}
        answer = server.request("POST", "/diagnose", safetensors(name, json.dumps(belief), **bits), {"Content-Type": MIME["safetensors"]})
        assert answer.status == 200, answer.body
        return answer.json()

    right = diagnose(10000)
    assert right["explained"] and {finding["code"] for finding in right["findings"]} <= {"as_believed", "undecided"}, right["findings"]
    other = diagnose(500000)
    assert [(finding["pointer"], finding["found"]) for finding in other["findings"]] == [("/base", 500000.0)]


@pytest.mark.parametrize("dtype, hidden", [("f8_e4m3", "NaN"), ("f8_e5m2", "-Infinity")])
def test_masks_of_biases(server, dtype, hidden):
    """Rows of single bytes, written by windows of a line: the map of f32, rounded."""
    ask = {"scheme": "alibi", "num_heads": 4, "len": 150, "causal": True, "outputs": ["bias"]}
    wide = np.frombuffer(server.post("/encode", {**ask, "format": "raw"}).body, "f4").astype(float)
    got = values(dtype, server.post("/encode", {**ask, "dtype": dtype, "format": "raw"}).body)
    assert np.array_equal(got, nearest(dtype, wide), equal_nan=True)
    printed = server.post("/encode", {**ask, "len": 2, "dtype": dtype}).json()["tensors"]["bias"]["data"]
    assert printed[0][0] == [0.0, hidden]
