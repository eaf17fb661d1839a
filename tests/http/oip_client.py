"""A client of the Open Inference Protocol v2 written from its specification. It sends the same bytes as
tritonclient.http: compact JSON, then the tensors' bytes; Inference-Header-Content-Length; outputs as bytes unless
requested otherwise."""
import json
import struct
from urllib.parse import quote

import numpy as np

from safetensors_reader import widen_bf16
from tensors import to_bf16

DATATYPES = {"BOOL": "?", "INT8": "i1", "INT16": "<i2", "INT32": "<i4", "INT64": "<i8", "UINT8": "u1", "UINT16": "<u2",
             "UINT32": "<u4", "UINT64": "<u8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8"}


def to_bytes(array, datatype):
    if datatype == "BF16":
        return (to_bf16(np.asarray(array, float)).view("<u4") >> 16).astype("<u2").tobytes()
    if datatype == "BYTES":
        return b"".join(struct.pack("<I", len(w.encode())) + w.encode() for w in array)
    return np.ascontiguousarray(array, DATATYPES[datatype]).tobytes()


def from_bytes(raw, datatype):
    return widen_bf16(np.frombuffer(raw, "<u2")) if datatype == "BF16" else np.frombuffer(raw, DATATYPES[datatype])


def from_list(data, datatype):
    assert not any(isinstance(item, list) for item in data), "data is flat"
    if datatype == "BF16":
        return to_bf16(np.array(data, float))
    return np.array(data, "f8").astype(DATATYPES[datatype]) if datatype[0] in "FB" else np.array(data, DATATYPES[datatype])


class Input:
    def __init__(self, name, array, datatype="FP32", binary=True, **parameters):
        self.array = list(array) if datatype == "BYTES" else np.asarray(array)
        self.raw = to_bytes(self.array, datatype) if binary else b""
        shape = [len(self.array)] if datatype == "BYTES" else list(self.array.shape)
        self.json = {"name": name, "shape": shape, "datatype": datatype}
        if binary:
            parameters = {"binary_data_size": len(self.raw), **parameters}
        else:
            self.json["data"] = self.array if datatype == "BYTES" else self.array.ravel().tolist()
        if parameters:
            self.json["parameters"] = parameters


class Output:
    def __init__(self, name, binary=True, **parameters):
        self.json = {"name": name, "parameters": {"binary_data": binary, **parameters}}


def body_of(inputs=(), outputs=None, request_id=None, parameters=None):
    document = {"inputs": [i.json for i in inputs]}
    if request_id is not None:
        document["id"] = request_id
    if outputs is not None:
        document["outputs"] = [o.json for o in outputs]
    if parameters:
        document["parameters"] = parameters
    return json.dumps(document).encode(), b"".join(i.raw for i in inputs)


class Result:
    """Reads an answer as strictly as the protocol allows."""

    def __init__(self, response):
        self.response, length = response, response.headers["Inference-Header-Content-Length"]
        head, tail = (response.body, b"") if length is None else (response.body[:int(length)], response.body[int(length):])
        self.json = json.loads(head)
        expected = "application/json" if length is None else "application/octet-stream"
        assert response.headers["Content-Type"] == expected
        if length is not None:
            assert int(response.headers["Content-Length"]) == len(response.body) and tail
        self.names, self.arrays = [o["name"] for o in self.json["outputs"]], {}
        for output in self.json["outputs"]:
            size = output.get("parameters", {}).get("binary_data_size")
            assert (size is None) == ("data" in output)
            flat = from_list(output["data"], output["datatype"]) if size is None else from_bytes(tail[:size], output["datatype"])
            tail = tail if size is None else tail[size:]
            self.arrays[output["name"]] = flat.reshape(output["shape"])
        assert not tail

    def __getitem__(self, name):
        return self.arrays[name]

    def datatype(self, name):
        return next(o["datatype"] for o in self.json["outputs"] if o["name"] == name)


class Client:
    def __init__(self, server):
        self.server = server

    def post(self, model, head, tail=b"", version=None, length=None):
        """length: of the header; by default right, absent without a tail."""
        path = f"/v2/models/{quote(model, safe='')}" + (f"/versions/{version}" if version else "") + "/infer"
        length = str(len(head)) if tail and length is None else length
        headers = {} if length is None else {"Inference-Header-Content-Length": length, "Content-Type": "application/octet-stream"}
        return self.server.request("POST", path, head + tail, headers)

    def infer(self, model, inputs=(), outputs=None, request_id=None, parameters=None, version=None):
        response = self.post(model, *body_of(inputs, outputs, request_id, parameters), version=version)
        assert response.status == 200, response
        result = Result(response)
        assert result.json["model_name"] == model and result.json["model_version"] == "1"
        assert result.json.get("id") == request_id
        return result
