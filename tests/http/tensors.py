"""Answers in every format to NumPy arrays by name, and arrays to request bodies."""
import io
import json
import re

import numpy as np

import safetensors_reader
from truth import to_bf16

RAW = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "bf16": "bf16", "i32": "<i4", "i64": "<i8"}
MIME = {"json": "application/json", "raw": "application/octet-stream", "npy": "application/x-npy", "npz": "application/zip",
        "safetensors": "application/vnd.safetensors"}


def from_json(response):
    """Numbers as the doubles of their text, narrowed to the given dtype."""
    out = {}
    for name, tensor in response.json()["tensors"].items():
        dtype = tensor["dtype"]
        doubles = np.array(tensor["data"], RAW[dtype] if dtype[0] == "i" else "f8").reshape(tensor["shape"])
        out[name] = to_bf16(doubles) if dtype == "bf16" else doubles.astype(RAW[dtype])
    return out


def raw_entries(header):
    """The header Posenc-Tensors: a list of tokens with string and integer parameters (RFC 8941)."""
    for item in header.split(", "):
        found = re.fullmatch(r'([a-z*][a-z0-9_\-.:/*]*);dtype="(\w+)";shape="([\d,]*)";offset=(\d+)', item)
        assert found, f"not an item of the form promised: {item!r}"
        shape = tuple(int(n) for n in found[3].split(",") if n)
        yield found[1], found[2], shape, int(found[4])


def from_raw(response):
    out, at = {}, 0
    for name, dtype, shape, offset in raw_entries(response.headers["Posenc-Tensors"]):
        assert offset == at, "tensors stand one after the other"
        count = int(np.prod(shape, dtype=object))
        size = 2 if dtype == "bf16" else np.dtype(RAW[dtype]).itemsize
        part = response.body[offset:offset + count * size]
        values = safetensors_reader.widen_bf16(np.frombuffer(part, "<u2")) if dtype == "bf16" else np.frombuffer(part, RAW[dtype])
        out[name] = values.reshape(shape)
        at += count * size
    assert at == len(response.body)
    return out


def from_npy(response):
    return np.load(io.BytesIO(response.body), allow_pickle=False)


def from_npz(response):
    with np.load(io.BytesIO(response.body), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def from_safetensors(response):
    return safetensors_reader.loads(response.body)[0]


def encode(server, **fields):
    """Tensors of POST /encode by name, through raw (exact, and fast to read)."""
    return from_raw(server.ask("/encode", **fields, format="raw"))


def encode_one(server, **fields):
    tensors = encode(server, **fields)
    assert len(tensors) == 1, list(tensors)
    return next(iter(tensors.values()))


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


BOUNDARY = "----posenc7MA4YWxk"


def multipart(**parts):
    """(body, headers): parts of bytes are files, of str are fields, as a browser or curl sends them."""
    body = b""
    for name, content in parts.items():
        file = "" if isinstance(content, str) else f'; filename="{name}.npy"\r\nContent-Type: application/octet-stream'
        data = content.encode() if isinstance(content, str) else content
        body += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def rotate_files(server, request, **arrays):
    """POST /rotate with .npy parts, answered as safetensors: tensors by name."""
    text = json.dumps({**request, "format": "safetensors"})
    body, headers = multipart(request=text, **{name: npy(a) for name, a in arrays.items()})
    response = server.post("/rotate", body, headers)
    assert response.status == 200, response
    return from_safetensors(response)
