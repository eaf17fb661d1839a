"""An independent reader and writer of safetensors, as strict as the format's reference reader: an accepted file has no
gap, no overlap, no trailing byte and no wrong size."""
import json
import struct

import numpy as np

HEADER_MAX = 100_000_000
DTYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "BF16": "bf16", "U32": "<u4",
          "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8"}
SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8,
         "F64": 8}


class Invalid(Exception):
    pass


def require(condition, text):
    if not condition:
        raise Invalid(text)


def widen_bf16(bits):
    """bf16 is the upper half of an f32."""
    return (np.asarray(bits, "<u2").astype("<u4") << 16).view("<f4")


def narrow_bf16(values):
    """The bits of the nearest bf16, ties to even (no NaN)."""
    bits = np.ascontiguousarray(values, "<f4").view("<u4").astype("u8")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def no_duplicates(pairs):
    names = [name for name, _ in pairs]
    require(len(names) == len(set(names)), f"a name stands twice among {names}")
    return dict(pairs)


def read_header(blob):
    require(len(blob) >= 8, "shorter than 8 bytes")
    n = struct.unpack("<Q", blob[:8])[0]
    require(n <= HEADER_MAX, f"header of {n} bytes")
    require(8 + n <= len(blob), "the header is longer than the file")
    require(n % 8 == 0, "the header is not padded to 8 bytes, so the data are not aligned")
    text = blob[8:8 + n].decode("utf-8")
    require(text.startswith("{"), "the header does not start with {")
    require(text == text.rstrip() or text.rstrip(" ").endswith("}"), "the header is padded with something else than spaces")
    return json.loads(text, object_pairs_hook=no_duplicates), 8 + n


def read_metadata(header):
    metadata = header.pop("__metadata__", {})
    require(all(isinstance(v, str) for v in metadata.values()), "metadata that is no string")
    return metadata


def read_entry(name, entry, data):
    require(set(entry) == {"dtype", "shape", "data_offsets"}, f"{name}: keys {sorted(entry)}")
    require(entry["dtype"] in DTYPES, f"{name}: dtype {entry['dtype']}")
    require(all(isinstance(n, int) and n >= 0 for n in entry["shape"]), f"{name}: shape {entry['shape']}")
    begin, end = entry["data_offsets"]
    count = int(np.prod(entry["shape"], dtype=object)) if entry["shape"] else 1
    require(end - begin == count * SIZES[entry["dtype"]], f"{name}: {end - begin} bytes for shape {entry['shape']}")
    part = data[begin:end]
    if entry["dtype"] == "BF16":
        return widen_bf16(np.frombuffer(part, "<u2")).reshape(entry["shape"])
    return np.frombuffer(part, DTYPES[entry["dtype"]]).reshape(entry["shape"])


def loads(blob):
    """(tensors by name, metadata, dtype names by name); bf16 comes as f32."""
    header, start = read_header(blob)
    metadata = read_metadata(header)
    data = blob[start:]
    at = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        require(begin == at and end >= begin, f"{name} begins at {begin}, the tensor before it ends at {at}")
        at = end
    require(at == len(data), f"{len(data) - at} bytes after the last tensor")
    tensors = {name: read_entry(name, entry, data) for name, entry in header.items()}
    return tensors, metadata, {name: entry["dtype"] for name, entry in header.items()}


NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "int32": "I32", "int64": "I64", "uint8": "U8", "bool": "BOOL",
         "int8": "I8", "int16": "I16", "uint16": "U16", "uint32": "U32", "uint64": "U64"}


def dumps(tensors, metadata=None, bf16=()):
    """tensors by name to a file's bytes; those named in bf16 are narrowed to that."""
    header, parts, at = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata
    for name, array in tensors.items():
        raw = narrow_bf16(array).tobytes() if name in bf16 else np.ascontiguousarray(array).tobytes()
        dtype = "BF16" if name in bf16 else NAMES[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)
