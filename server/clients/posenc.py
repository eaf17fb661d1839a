"""posenc: the numbers of Transformer positional encodings as NumPy arrays, computed in this process or by a posenc service.

    import posenc                                    # in process, by libposenc.so.0; with POSENC_URL by the service there

    cos, sin = posenc.encode(scheme="rope", len=2048, head_dim=128)
    table = posenc.encode(preset="llama-3.1", len=131072, file="table.safetensors")      # on disk, however large
    turned = posenc.rotate(q=q, k=k, preset="qwen2.5-vl", segments=[...]).q
    maps = posenc.attention(scheme="alibi", tokens=["The", "dog"], num_heads=8, head_dim=64)

    posenc.check(cos=my_cos, sin=my_sin, preset="llama-3.1") # in a port's test: raises Mismatch, which says what differs
    posenc.assert_matches(my_rope, preset="llama-3.1")       # the same of a function my_rope(q, positions)
    with posenc.watch(model) as seen:                        # what a model's own modules have, while it runs once
        model(**inputs)
    print(seen)
    print(*posenc.probe("llama-3.1"), sep="\n")              # ten numbers to look at where no tensor can be saved
    print(posenc.explain("Qwen3-8B"))                        # what each tool reads of its config.json, and where they part
    print(posenc.translate("Qwen3-8B", to="llama.cpp"))      # the same positions in another tool's words, and what it loses
    posenc.check_conversion("Llama-3.1-8B", "llama.gguf")    # raises unless both files mean the same rotation
    posenc.check_rows(meta_wk, hf_wk, num_heads=32, num_kv_heads=8)      # which order a conversion gave to the rows of a projection

Requests are those of the service (its /docs): each field is a keyword. Arrays are NumPy's, PyTorch's or JAX's. A
service, a token or a certificate: posenc.Client(url, token=...), which has the same functions. posenc.where() says which answers.

Needs Python 3.8 and NumPy. Answers are read without a copy; without PyTorch, bf16 arrives as f32, which holds every value; f8 always.
"""
import base64
import contextlib
import ctypes
import html
import http.client
import itertools
import json
import math
import operator
import os
import ssl
import struct
import sys
import textwrap
import threading
import time
import urllib.parse
import uuid
import warnings

import numpy as np

__version__ = "VERSION"
__tracebackhide__ = True  # pytest shows the line of the test that failed, and the sentence
__all__ = ["Client", "Tensors", "Diagnosis", "Explanation", "Entry", "Translation", "Refused", "Away", "Mismatch", "encode", "rotate", "attention", "analyze", "diagnose", "check", "golden", "derive", "assert_matches", "probe", "watch", "check_conversion", "check_rows", "explain", "translate", "read_gguf", "schemes", "presets", "where"]

SAFETENSORS = "application/vnd.safetensors"
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?", "F8_E4M3": "u1", "F8_E5M2": "u1"}
BITS = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}  # which NumPy has not: their names elsewhere
NAMES = {np.dtype(code): name for name, code in DTYPES.items() if name not in BITS}
OBJECTS = ("config", "hf_config", "configs", "layers", "tolerance")  # of a file's metadata, which has text only
PIECE = 1 << 20  # bytes read or sent at a time
SHOWN = 64 << 20  # answers from this size on show their progress on a terminal
LIBRARY = "libposenc.so.0"
MAX_WORK = 1e13  # multiply-adds of one answer in this process: what a service allows
RESENT = 16 << 20  # arrays up to this size are sent again for a notebook's picture
SIDE = 1024  # longer sides of a picture become this long; a pixel is then the mean of several elements, or one of them if the tensor is large


# ---- what can go wrong ----


class Refused(Exception):
    """The service refused a request; str() is its sentence. status, pointer (to the field), problem (all of it)."""

    def __init__(self, status, problem):
        super().__init__(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        self.status, self.problem, self.pointer = status, problem, problem.get("pointer")


class Away(ConnectionError):
    """Neither library nor service is here; or the service cannot be reached, its answer broke off, or what answers in its place is no posenc (a login page, a proxy)."""


class Mismatch(AssertionError):
    """A tensor is not what was believed; str() says what differs. diagnosis: the service's whole answer."""

    def __init__(self, diagnosis, line=None):
        super().__init__("\n".join(str(part) for part in (line, diagnosis) if part is not None))
        self.diagnosis = diagnosis


# ---- answers ----


class Tensors:
    """The tensors of an answer: answer["cos"], answer.cos, or `cos, sin = answer`, in the service's order. config is the
    request with every parameter resolved; scheme, hf_config and meta (all that came beside the tensors) as they were sent."""

    def __init__(self, arrays, meta, picture=None):
        self._arrays, self.meta, self._picture = arrays, meta, picture
        self.config, self.scheme, self.hf_config = meta.get("config", {}), meta.get("scheme"), meta.get("hf_config")

    def __getitem__(self, name):
        return self._arrays[name]

    def __iter__(self):  # unpacking gives arrays, as NumPy's functions do; keys() gives names
        return iter(self._arrays.values())

    def __len__(self):
        return len(self._arrays)

    def __contains__(self, name):
        return name in self._arrays

    def keys(self):
        return self._arrays.keys()

    def values(self):
        return self._arrays.values()

    def items(self):
        return self._arrays.items()

    def __getattr__(self, name):
        try:
            return self.__dict__["_arrays"][name]
        except KeyError:
            raise AttributeError(f"no tensor {name!r}; there are: {', '.join(self.__dict__.get('_arrays', ()))}") from None

    def torch(self):
        """The same as PyTorch tensors, bf16 as bfloat16; memory is shared where PyTorch can."""
        import torch

        def shared(array):
            array = array if array.flags.writeable else array.copy()
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if array.dtype == np.uint16 else torch.from_numpy(array)

        return {name: shared(self._raw.get(name, array)) for name, array in self._arrays.items()}

    _raw = {}  # bf16 as its bits, for torch()

    def __repr__(self):
        return "\n".join([str(self.scheme), *_config_lines(self.config)] + [f"  {name}: {array.dtype} {list(array.shape)}" for name, array in self.items()])

    def _repr_png_(self):
        """A notebook's picture of the first tensor, drawn by the service once."""
        if callable(self._picture):
            self._picture = self._picture()
        return self._picture

    def _repr_html_(self):
        """A notebook's view: the picture, the tensors, the configuration, and what was read of a config.json."""
        picture = self._repr_png_()
        image = f'<img alt="heat map" src="data:image/png;base64,{base64.b64encode(picture).decode()}">' if picture else ""
        tensors = [(name, f"{array.dtype} {list(array.shape)}, {array.nbytes:,} bytes") for name, array in self.items()]
        return image + _html(self.scheme or "tensors", tensors) + _html("config", _rows(self.config)) + _html("hf_config", _rows(self.hf_config))


def _hides_alike(finding):
    """A finite mask hides the same keys as -inf if it is as low as the lowest number of f16, or lower."""
    return finding["code"] == "mask_value" and isinstance(finding["found"], (int, float)) and finding["found"] <= -65504


def _indented(text):
    return [f"    {line}" for line in (text or "").splitlines()]


class Diagnosis(dict):
    """The answer of /diagnose; str() is its findings in words, each with the lines of Python that mend it, fits whether the tensor is
    what was believed."""

    @property
    def fits(self):
        return self.passes()

    def passes(self, strict=False):
        """Whether the tensor is what was believed. Angles in float32 and rounded numbers pass unless strict; so does a tensor
        that another reading would give too: its finding says at which position the two differ."""
        rounded = () if strict else ("angles_f32", "coordinates_f32", "table_dtype")
        return bool(self.get("explained")) and all(one["code"] in ("as_believed", "undecided", *rounded) or
                                                   (not strict and _hides_alike(one)) for one in self["findings"])

    def __str__(self):
        lines = [line for one in self["findings"] for line in (one["detail"], *_indented((one.get("cure") or {}).get("torch")))]
        if self.get("unseen"):
            lines.append(f"These mistakes would not show in this tensor: {', '.join(self['unseen'])}.")
        bad = (self.get("belief") or {}).get("first_bad")
        if bad and not self.fits:
            lines.append(f"first difference: {bad['output']}{bad['index']} is {bad['found']}, expected {bad['expected']}")
        if self.best and not self.fits:
            near = "nearly " if self.best["verdict"] == "near" else ""
            then = json.dumps(self.best["transforms"]) if self.best.get("transforms") else ""
            gives = json.dumps(self.config) if self.config else ""
            lines.append(f"it is {near}what this gives: {', then '.join(part for part in (gives, then) if part)}")
        return "\n".join(lines)

    @property
    def best(self):
        """The candidate that explains the tensor best; {} if none does."""
        return next((one for one in self["candidates"][:1] if one["verdict"] != "none"), {})

    @property
    def config(self):
        """What gives the tensor, with its sequence, as a request to encode or rotate."""
        return {**(self.best.get("config") or {}), **(self.best.get("sequence") or {})}

    def _repr_html_(self):
        """A notebook's view: the findings, and the configuration that explains the tensor best."""
        found = [(one["code"], one["detail"]) for one in self["findings"]]
        then = [("transforms", _brief(self.best["transforms"]))] if self.best.get("transforms") else []
        return _html("explained" if self.get("explained") else "not explained", found) + _html(self.best.get("verdict"), _rows(self.config) + then)


class Entry(dict):
    """A number to look at: tensor, position, channel (of a bias head, query, key), and what is expected there."""

    decimals = 4

    def __str__(self):
        at = ", ".join(str(value) for name, value in self.items() if name not in ("tensor", "expected", "value"))
        return f"{self['tensor']}[{at}]  expected {self['expected']:.{self.decimals}f}"


class Explanation(dict):
    """The answer of /explain; str() is every kind of layers, a table of fields with a column for each tool, and the findings."""

    def __str__(self):
        lines = [f"{layer['layer_type']}: {layer['summary']}" for layer in self["layers"] if layer.get("summary")]
        lines += self.table()
        lines += [f"{one['level']} {one['code']}: {one['detail']}" for one in self["findings"]]
        return "\n".join([*lines, *([self["detail"]] if self.get("detail") else [])])

    def table(self):
        """Lines of columns: a field, its value, what each tool takes; "-" where one does not read the field."""
        tools = list(self.get("readers") or {})
        rows = [["field", "value", *tools]]
        for field in self["fields"]:
            readers = field.get("readers") or {}
            rows.append([field["pointer"], _brief(field.get("value"), 24), *(self.taken(readers.get(tool)) for tool in tools)])
        widths = [max(map(len, column)) for column in zip(*rows)]
        return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows] if len(rows) > 1 else []

    @staticmethod
    def taken(reader):
        return "-" if not reader else _brief(reader.get("takes"), 24) + ("" if reader.get("reads") else f" ({reader.get('from')})")

    def _repr_html_(self):
        return _html("layers", [(str(layer["layer_type"]), str(layer.get("summary"))) for layer in self["layers"]]) + _html(
            "findings", [(one["code"], one["detail"]) for one in self["findings"]])


class Translation(dict):
    """The answer of /translate; str() is a table: a target, whether it is exact or what it loses, and what to paste."""

    def __str__(self):
        lines = []
        for one in self["targets"]:
            kind = f" ({one['layer_type']})" if one.get("layer_type") else ""
            lost = "exact" if one["exact"] else " ".join(loss["detail"] for loss in one["loses"])
            lines += [f"{one['to'] + kind:<24}  {lost}", *(f"    {line}" for line in (one["text"] or "").splitlines())]
        return "\n".join([*lines, self["detail"]])

    def __getitem__(self, name):
        """A member of the answer; or, by a target's name, its first entry."""
        found = [one for one in dict.get(self, "targets", ()) if one["to"] == name]
        return found[0] if found and name not in self else super().__getitem__(name)

    def _repr_html_(self):
        return _html("translations", [(one["to"], one["text"] or "") for one in self["targets"]])


class Derivation(dict):
    """The answer of /derive; str() is the number, a step of its formula on each line, and what a recipe of rounding makes of each."""

    def __str__(self):
        return "\n\n".join(self._in_lines(one) for one in self.get("numbers", [self]))

    @staticmethod
    def _in_lines(one):
        number, lines = one["number"], []
        for steps, beside in (one["steps"], "text"), (one["float32"] or [], "error"):
            rows = [[step["symbol"], step.get("value", ""), step.get(beside, "")] for step in steps]
            widths = [max(map(len, column)) for column in zip(*rows)]
            lines.append(["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows])
        head = f"{number['tensor']}{_brief(number['index']).replace(' ', '')} = {number['value']}  {number['bits']}"
        return "\n".join([head, *lines[0], *([f"{one['recipe']}:", *lines[1]] if lines[1] else []), one["detail"]])

    def _repr_html_(self):
        return _html("steps", [(step["symbol"], f"{step.get('value', '')} {step.get('text', '')}") for one in self.get("numbers", [self])
                               for step in one["steps"]])


# ---- answers to look at ----


def _brief(value, most=80):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else text[: most - 1] + "…"


def _rows(config, before=""):
    """Names and values in words; members of an object as scaling.factor."""
    rows = []
    for name, value in (config or {}).items():
        rows += _rows(value, f"{before}{name}.") if value and isinstance(value, dict) else [(before + name, _brief(value))]
    return rows


def _config_lines(config):
    """All but the scheme, in lines that end between two parameters."""
    text = ", ".join(f"{name} {value}".replace(" ", "\xa0") for name, value in _rows(config) if name != "scheme")
    lines = textwrap.wrap(text, 100, initial_indent="  ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def _html(title, rows):
    """A table of names and values under its title; nothing without rows."""
    cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
    return f"<table><caption>{html.escape(str(title))}</caption>{cells}</table>" if rows else ""


# ---- tensors as bytes ----


class _Bits:
    """bf16 as its 16 bits, f8 as its eight."""

    def __init__(self, bits, dtype="BF16"):
        self.bits, self.shape, self.dtype_name = bits, bits.shape, dtype


def _wide(bits, dtype):
    """The numbers of BITS in f32, which holds them all."""
    if dtype == "BF16":
        return (bits.astype("<u4") << 16).view("<f4")
    if dtype == "F8_E5M2":  # the upper half of an f16
        return (bits.astype("<u2") << 8).view("<f2").astype("<f4")
    code = np.arange(128)  # e4m3fn: the last code is NaN, all others are finite
    table = np.ldexp(np.where(code < 8, code, 8 + code % 8), np.maximum(code >> 3, 1) - 10).astype("<f4")
    table[127] = np.nan
    return np.concatenate([table, -table])[bits]


def _of_torch(value):
    """A tensor of PyTorch in memory, what it does lazily done."""
    value = value.detach().cpu()
    for name in ("resolve_conj", "resolve_neg"):
        value = getattr(value, name)() if hasattr(value, name) else value
    return value.contiguous() if hasattr(value, "contiguous") else value


def _of_library(value):
    """NumPy's array of whatever can be one: by its memory where it has that on this machine, else by __array__ or a buffer."""
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.from_dlpack(value)


def _array(value):
    """Whatever can be an array, as one of NumPy; bf16 and f8 (PyTorch's, ml_dtypes', mlx') as (bits, 'BF16')."""
    if isinstance(value, _Bits):
        return np.ascontiguousarray(value.bits), value.dtype_name
    if hasattr(value, "detach"):  # PyTorch
        value = _of_torch(value)
        if str(value.dtype) == "torch.bfloat16":
            return value.view(sys.modules["torch"].int16).numpy().view(np.uint16), "BF16"
        for name, its in BITS.items():
            if str(value.dtype) == "torch." + its:
                return value.view(sys.modules["torch"].uint8).numpy(), name
        value = value.numpy()
    if str(getattr(value, "dtype", "")) == "mlx.core.bfloat16":
        value = value.view(sys.modules["mlx.core"].uint16)
        return np.ascontiguousarray(_of_library(value)), "BF16"
    array = np.ascontiguousarray(_of_library(value))
    for name, its in BITS.items():
        if array.dtype.name == its:
            return array.view(DTYPES[name]), name
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.dtype not in NAMES:
        raise TypeError(f"arrays of {array.dtype} cannot be sent; there are: {', '.join(str(dtype) for dtype in NAMES)}, {', '.join(BITS.values())}")
    return array, NAMES[array.dtype]


def _pairs(name, value):
    """Complex freqs_cis as [..., 2]."""
    dtype = getattr(value, "dtype", None)
    if getattr(dtype, "kind", "") != "c" and "complex" not in str(dtype):  # NumPy's, PyTorch's
        return value
    if name != "freqs_cis":
        raise TypeError(f"{name} has the dtype {dtype}; only freqs_cis may be complex: send real numbers, [..., 2]")
    if hasattr(value, "detach"):  # PyTorch: what is conjugated lazily has other bits in memory
        value = _of_torch(value).numpy()
    array = np.ascontiguousarray(_of_library(value))
    return array.view(array.real.dtype).reshape(*array.shape, 2)


def _packed(arrays, metadata):
    """A safetensors file as a list of pieces and their size."""
    head, at, pieces = {"__metadata__": metadata}, 0, []
    for name, value in arrays.items():
        array, dtype = _array(_pairs(name, value))
        head[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
        pieces.append(memoryview(array).cast("B") if array.nbytes else b"")
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return [struct.pack("<Q", len(text)) + text, *pieces], 8 + len(text) + at


def _layout(buffer):
    """[(name, dtype, shape, begin, end)] and the metadata of a safetensors file in memory or mapped, in the file's order. ValueError
    unless its tensors fill it to its last byte: an answer without a length that was cut off shows only here."""
    view = memoryview(buffer)
    size = struct.unpack("<Q", view[:8])[0] if len(view) >= 8 else len(view)
    if 8 + size > len(view):
        raise ValueError("it is no safetensors file, or was cut off in its head")
    try:
        head = json.loads(bytes(view[8 : 8 + size]))
        metadata = {key: json.loads(value) if key in OBJECTS else value for key, value in head.pop("__metadata__", {}).items()}
        rows = []
        for name, row in head.items():
            begin, end = (8 + size + operator.index(offset) for offset in row["data_offsets"])
            shape = [operator.index(side) for side in row["shape"]]
            if min(shape, default=0) < 0 or end - begin != np.dtype(DTYPES[row["dtype"]]).itemsize * math.prod(shape):
                raise ValueError(f"{name} of {shape} has {end - begin} bytes")
            rows.append((name, row["dtype"], shape, begin, end))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its head is not that of a safetensors file: {error!r}") from error
    at = 8 + size
    rows.sort(key=lambda row: row[3:])
    for name, _, _, begin, end in rows:
        if begin != at:
            raise ValueError(f"{name} begins at byte {begin}, what is before it ends at {at}")
        at = end
    if at != len(view):
        raise ValueError(f"it has {len(view)} bytes, its head names {at}")
    return rows, metadata


def _unpacked(buffer):
    """{name: array}, {name: bits of bf16} and the metadata of a safetensors file in memory or mapped."""
    view = memoryview(buffer)
    rows, metadata = _layout(buffer)
    arrays, raw = {}, {}
    for name, dtype, shape, begin, end in rows:
        array = np.frombuffer(view[begin:end], DTYPES[dtype]).reshape(shape)
        if dtype == "BF16":
            raw[name] = array
        if dtype in BITS:
            array = _wide(array, dtype)
        arrays[name] = array
    return arrays, raw, metadata


def _has_buffer(value):
    """The buffer protocol, which text has too."""
    if isinstance(value, (str, bytes, bytearray)):
        return False
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _is_tensor(value):
    is_array = isinstance(value, (np.ndarray, np.generic, _Bits)) or hasattr(value, "__array__") or hasattr(value, "detach")
    return is_array or hasattr(value, "__dlpack__") or _has_buffer(value)


PLACES = {"inv_freq": ("channel",), "bias": ("head", "query", "key")}


def _place(one):
    """A typed number as the service reads it: an object as it is, or (tensor, position, channel, value)."""
    if isinstance(one, dict):
        return {name: value for name, value in one.items() if name != "expected"}
    tensor, *at, value = one
    names = PLACES.get(tensor, ("position", "channel"))
    if len(at) != len(names):
        raise ValueError(f"{one!r}: a number of {tensor} is ({tensor!r}, {', '.join(names)}, value)")
    return {"tensor": tensor, **dict(zip(names, at)), "value": value}


def _divided(request):
    """The fields of a request as JSON, and its arrays. What is not given stays away; names that Python keeps for itself may
    end in an underscore."""
    fields, arrays = {}, {}
    for name, value in request.items():
        name = name[:-1] if name.endswith("_") else name
        if value is None:
            continue
        if isinstance(value, np.generic) and value.ndim == 0:
            fields[name] = value.item()
        elif _is_tensor(value):
            arrays[name] = value
        else:
            fields[name] = value
    return fields, arrays


# ---- the service ----


class _Progress:
    """How much of an answer is there, on a terminal's last line."""

    def __init__(self, total, wanted):
        self.total, self.begun, self.said = total, time.monotonic(), 0.0
        self.shown = wanted if wanted is not None else sys.stderr.isatty() and (total or 0) >= SHOWN

    def at(self, received, last=False):
        now = time.monotonic()
        if not self.shown or (now - self.said < 0.1 and not last):
            return
        self.said = now
        rate = received / max(now - self.begun, 1e-3)
        whole = f" of {self.total / 1e6:.1f}" if self.total else ""
        bar = "█" * int(24 * received / self.total) if self.total else ""
        sys.stderr.write(f"\r{bar:24} {received / 1e6:.1f}{whole} MB, {rate / 1e6:.0f} MB/s" + ("\n" if last else ""))
        sys.stderr.flush()


# ---- the library in this process ----


def _library():
    """libposenc.so.0 beside this file (a wheel), in sys.prefix, or where the loader finds it. Declared as posenc.h declares it."""
    beside = [os.path.join(folder, LIBRARY) for folder in (os.path.dirname(os.path.abspath(__file__)), os.path.join(sys.prefix, "lib"))]
    reasons = []
    for name in [*filter(os.path.exists, beside), LIBRARY]:
        try:
            library = ctypes.CDLL(name)
            library.pe_call.restype = ctypes.c_void_p
            library.pe_call.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_double, ctypes.c_double]
            library.pe_reply_status.argtypes = library.pe_reply_free.argtypes = [ctypes.c_void_p]
            library.pe_reply_header.argtypes, library.pe_reply_header.restype = [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_char_p
            library.pe_reply_read.argtypes, library.pe_reply_read.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t], ctypes.c_ssize_t
            library.pe_version.restype = ctypes.c_char_p
            return library
        except (OSError, AttributeError) as error:  # AttributeError: it is older than pe_call
            reasons.append(str(error))
    raise Away(f"no posenc is here ({reasons[0]}): install python3-posenc or its wheel, which have {LIBRARY}, "
               "or start posencd and set POSENC_URL=http://localhost:8080") from None


class _Reply:
    """An answer of the library, with what is used of an http.client.HTTPResponse."""

    def __init__(self, library, method, path, body, kind):
        self._library, self._reply, pieces = library, None, body or []
        self._body = np.frombuffer(pieces[0] if len(pieces) == 1 else b"".join(pieces), np.uint8) if pieces else None  # must stay until the end
        data, size = (self._body.ctypes.data, self._body.size) if pieces else (None, 0)
        self._reply = library.pe_call(method.encode(), path.encode(), kind and kind.encode(), data, size, 0, MAX_WORK)
        if not self._reply:
            raise MemoryError("no memory for the answer")
        self.status, self.headers, length = library.pe_reply_status(self._reply), self, self.get("Content-Length")
        self.length = None if length is None else int(length)

    def get(self, name):
        value = self._library.pe_reply_header(self._reply, name.encode())
        return value and value.decode()

    def readinto(self, into):
        there = np.frombuffer(into, np.uint8)
        return self._library.pe_reply_read(self._reply, there.ctypes.data, there.size)

    def read(self):
        if self.length is None:
            pieces = iter(lambda piece=bytearray(PIECE): bytes(piece[: self.readinto(piece)]), b"")
            return b"".join(pieces)
        whole = bytearray(self.length)
        if self.length:
            self.readinto(whole)
        return bytes(whole)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._library.pe_reply_free(self._reply)
        self._reply = None

    def __del__(self):  # of a refusal
        self.__exit__()


class Client:
    """posenc in this process, or a service. Safe to share between threads: each has a connection of its own.

    url      of a service, else POSENC_URL; a path before the service's is kept. Without either libposenc.so.0 answers in
             this process, and what follows has no meaning but progress
    token    POSENC_TOKEN; sent to this service only
    context  an ssl.SSLContext, for certificates of one's own
    timeout  seconds without a byte; retries: how often a busy or restarting service (429, 503) is asked again, after as
             long as it says, patience at most seconds in all; progress: True, False, None (on a terminal, if it is large)
    """

    def __init__(self, url=None, token=None, *, context=None, timeout=60.0, retries=5, patience=60.0, progress=None):
        url = url or os.environ.get("POSENC_URL")
        self._library = None if url else _library()
        if self._library:
            name = self._library._name
            with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
                name = next((line.split(maxsplit=5)[-1].strip() for line in maps if os.path.basename(name) in line), name)
            url = f"{name} (in this process, version {self._library.pe_version().decode()})"
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        if not self._library and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError(f"{url!r} is no address of a service; for instance http://localhost:8080")
        self.url, self.token = url, token if token is not None else os.environ.get("POSENC_TOKEN")
        self.context, self.timeout, self.retries, self.patience, self.progress = context, timeout, retries, patience, progress
        self._parts, self._own = parts, threading.local()

    # ---- what the service computes ----

    def encode(self, *, file=None, **request):
        """A scheme's tensors: tables, cos and sin, bias maps. file: written there as safetensors and mapped into memory."""
        return self._tensors("/encode", request, file)

    def rotate(self, *, file=None, **request):
        """q, k or both, turned by their positions."""
        return self._tensors("/rotate", request, file)

    def attention(self, *, file=None, **request):
        """Attention maps of q and k, of embeddings x, or of tokens."""
        return self._tensors("/attention", request, file)

    def analyze(self, *configs, **request):
        """Properties of configurations, each a dict: analyze({"scheme": "rope", "len": 64}, metrics=["wavelengths"])."""
        fields, arrays = _divided({"configs": list(configs) or None, **request})
        return self._json("/analyze", fields, arrays)

    def diagnose(self, tensor=None, *, name="encoding", **request):
        """What made these tensors (cos and sin, q and q_out, inv_freq, freqs_cis, encoding, bias, scores with q and k …), beside what
        they are believed to be. freqs_cis may be complex; a text is what a program printed: diagnose(cos="tensor([[1.0000, …").
        values: numbers typed by hand, [("sin", 30, 32, "0.0157"), ...], those that probe() asks for."""
        if request.get("values") is not None:
            request["values"] = [_place(one) for one in request["values"]]
        fields, arrays = _divided({**({} if tensor is None else {name: tensor}), **request})
        return Diagnosis(self._json("/diagnose", fields, arrays))

    def check(self, tensor=None, *, name="encoding", strict=False, **request):
        """Raises Mismatch unless the tensor is what the request gives: check(cos=c, sin=s, preset="llama-3.1"). Numbers that
        float32 code may have pass; with strict only those that are right to the last rounding. Returns the diagnosis, whose
        text says which of the two they are, and which mistakes the tensor could not have shown (`unseen`)."""
        diagnosis = self.diagnose(tensor, name=name, **request)
        if not diagnosis.passes(strict):
            raise Mismatch(diagnosis)
        return diagnosis

    def probe(self, preset=None, **belief):
        """The numbers to look at where a tensor cannot be saved: a list of tensor, position, channel and what is expected there.
        What is there goes back as diagnose(values=[("sin", 30, 32, "0.0157"), ...], **belief). of: tables, rotated (of the query
        1 + j/head_dim), inv_freq, angles, encoding, bias; count (10), decimals (4), len (32)."""
        answer = self._json("/diagnose/probe", {**({"preset": preset} if preset else {}), **belief})
        entries = [Entry(one) for one in answer["probe"]]
        for one in entries:
            one.decimals = answer["decimals"]
        return entries

    def watch(self, model, preset=None, *, rows=64, calls=1, **belief):
        """Looks at the positions of a model of PyTorch while it runs: with watch(model, "llama-3.1") as seen: model(**inputs).

        At once it takes buffers named inv_freq, original_inv_freq, cos_cached, sin_cached, cos_sin_cache and freqs_cis; then, in
        the first `calls` forwards of each module, outputs that are cosines and sines: two real arrays, or a complex one. Of each
        at most `rows` rows are copied. Without preset or belief, model.config is what is believed. seen.report has an entry for
        each different capture, str(seen) a line, seen.check() raises Mismatch for the first that is not what is believed.

        It cannot see rotations inside functions and fused kernels, tables that are made at import, modules that rotate q and k
        themselves, and compiled graphs that drop hooks: for those, check(q=..., q_out=...) or assert_matches."""
        return _Watch(self, model, {**({"preset": preset} if preset else {}), **belief}, rows, calls)

    def golden(self, preset=None, *, layer_type=None, dtype=None, seed=None, positions=None, **config):
        """A few exact tensors of a configuration: position_ids, q, k, q_out, k_out, cos, sin, inv_freq, or encoding, or bias.
        meta["configs"] has every kind of layers with its parameters; of several kinds, names end in .KIND. At most 64 KiB: a
        port's tests may keep the file itself, GET /golden/PRESET, and its ETag."""
        given = {"preset": preset, "layer_type": layer_type, "dtype": dtype, "seed": seed, "positions": positions}
        tensors = self._tensors("/golden", {**given, **config}, None)
        tensors.scheme = tensors.meta.get("preset") or next(iter(tensors.meta["configs"].values()))["scheme"]
        return tensors

    def assert_matches(self, fn, *, preset=None, like="numpy", tensor_layout="bhnd", layer_type=None, dtype="f32", strict=False, **config):
        """Calls a port's rotation with golden queries and raises Mismatch unless it is that of the preset or configuration.

        fn(q, positions) returns the rotated q; a function of three arguments, fn(q, k, positions), returns both. q has the axes of
        tensor_layout, positions are [n] or [axes, n]. like: arrays of "numpy", "torch", "jax", "mlx", or what a function makes of
        NumPy's. A model with several kinds of layers needs layer_type, one whose scaling reads the length "short" or "long". What
        passes is as for check. Returns the diagnosis, whose `unseen` names mistakes that these positions cannot show."""
        return _Matching(self, preset, layer_type, dtype, config).judge(fn, like, tensor_layout, strict)

    def explain(self, x=None, **fields):
        """What each tool reads of a model's positions: x is a path (a config.json, its folder, a .gguf file, a log, a script), the
        object of one, a text as it was pasted ("vllm serve Qwen/Qwen3-8B --hf-overrides '{…}'", a log), or left out for the fields
        of a request: explain(preset="qwen3"). fields: length, layer_type, readers, lang; said, on top of a model. Of a config or
        .gguf file only what is about positions is sent."""
        return Explanation(self._json("/explain", {**_source(x), **fields}))

    def translate(self, x=None, to="all", **fields):
        """The same positions in the words of other tools, with what each of them loses: x as for explain, to a target, a list of
        them, or "all". fields: layer_type, architecture (of gguf), length, lang. The answer prints as a table; translation["vllm"] is
        an entry, whose value every request takes as said={"to": "vllm", "value": value} beside its needs."""
        return Translation(self._json("/translate", {**_source(x), "to": to, **fields}))

    def derive(self, **request):
        """Why a number is what it is: the steps of its formula with 20 digits, and what float32, or recipe=, makes of each. A
        configuration as for encode, and which number: position and channel or pair; head, query and key; or tensor and index. Lists
        are several numbers. The answer prints as lines."""
        return Derivation(self._json("/derive", *_divided(request)))

    def check_conversion(self, hf_dir, gguf_path, length=None):
        """Raises AssertionError, in one sentence, unless a .gguf file says the positions of the config.json that it was made from:
        frequencies and factors within 2^-22, and pairs that are the same but for the converter's order of rows. hf_dir: the folder
        of the config.json, or that file. length: of the text, where a scaling reads it; left out, a short text, the longest one, and
        lengths on both sides of each border of a scaling, which /explain states.
        Only the config and the keys about positions are sent. Where the file differs and says all that GGUF can say of the config,
        that is a warning.
        Returns the results, one for each kind of layers."""
        config, keys = read_config(hf_dir), read_gguf(gguf_path)
        lengths = [length] if length else self._lengths_of(config)
        results = _Conversion(self, {"hf_config": config}, {"gguf": keys}, lengths).results()
        worst = max(results, key=_badness)
        if worst["verdict"] == "differs":
            best = self._best_gguf(config, keys)
            rest = _Conversion(self, {"gguf": best["value"]}, {"gguf": keys}, lengths).results() if best else results
            if max(rest, key=_badness)["verdict"] == "differs":
                raise AssertionError(worst["detail"])
            lost = " ".join(one["detail"] for one in best["loses"])
            warnings.warn(f"{worst['detail']} No .gguf file can do better: {lost}", stacklevel=2)
        return results

    def _lengths_of(self, config):
        """Lengths of texts at which no scaling can be another rule unseen."""
        told = self._json("/explain", {"hf_config": config, "readers": []})
        longest = 64 if told["model"]["length_assumed"] else told["model"]["length"]
        return sorted({64, longest, *(n for layer in told["layers"] for n in layer.get("lengths", ()))})

    def _best_gguf(self, config, keys):
        """What /translate makes of the config for this file's architecture, if that loses something."""
        architecture = {"architecture": keys["general.architecture"]} if "general.architecture" in keys else {}
        try:
            best = self.translate(config, to="gguf", **architecture)["gguf"]
        except Refused:
            return None
        return best if best.get("value") and best["loses"] else None

    def schemes(self, name=None):
        """What there is to ask for: every scheme, or one, with its parameters."""
        return self._json(f"/schemes/{_quoted(name)}" if name else "/schemes")

    def presets(self, name=None):
        """Public models by name, and the presets that a team has stored."""
        return self._json(f"/presets/{_quoted(name)}" if name else "/presets")

    # ---- requests ----

    def _json(self, path, fields=None, arrays=None):
        body, size, kind = self._body(fields, arrays) if fields is not None else (None, 0, None)
        with self._ask("POST" if body else "GET", path, body, size, kind, "application/json") as answer:
            text = self._read(answer)
        try:
            found = json.loads(text)
            if not isinstance(found, dict):
                raise ValueError(f"it is {_brief(found)}, not an object")
            return found
        except ValueError as error:
            raise self._foreign(answer, error) from error

    def _tensors(self, path, request, file):
        fields, arrays = _divided(request)
        if fields.get("format", "safetensors") != "safetensors":
            raise ValueError("format: arrays come as safetensors; other formats by curl")
        fields["format"] = "safetensors"
        body, size, kind = self._body(fields, arrays)
        with self._ask("POST", path, body, size, kind) as answer:
            try:
                tensors, raw, meta = _unpacked(self._received(answer, file))
            except ValueError as error:
                raise self._foreign(answer, error) from error
        small = sum(_array(array)[0].nbytes for array in arrays.values()) <= RESENT
        found = Tensors(tensors, meta, (lambda: self._picture(path, fields, arrays, found)) if small else None)
        found._raw = raw
        return found

    def _picture(self, path, fields, arrays, found):
        """The request as png; None where the service draws none."""
        body, size, kind = self._body({**fields, **_smaller(fields, found), "format": "png"}, arrays)
        try:
            with self._ask("POST", path, body, size, kind) as answer:
                return self._read(answer)
        except (Refused, Away):
            return None

    @staticmethod
    def _body(fields, arrays):
        """Pieces of a body, its size, its content type: JSON, or safetensors where there are arrays."""
        if arrays:
            return (*_packed(arrays, {"request": json.dumps(fields)}), SAFETENSORS)
        text = json.dumps(fields).encode()
        return [text], len(text), "application/json"

    def _received(self, answer, file):
        """The body in memory, or in a file that is mapped; the file is replaced by a whole answer or not at all."""
        total = answer.length
        progress = _Progress(total, self.progress)
        if file is None:
            buffer = np.empty(total, np.uint8) if total is not None else None
            if buffer is None:
                return self._read(answer)
            view, at = memoryview(buffer), 0
            while at < total:
                at += self._read(answer, view[at : at + PIECE], at=at, total=total)
                progress.at(at)
            progress.at(at, last=True)
            return buffer
        # Beside the file, so that a rename replaces it; created as open() does, so that the umask decides who may read it.
        part = f"{os.path.abspath(file)}.{uuid.uuid4().hex[:8]}"
        sink = open(part, "xb")
        try:
            with sink:
                piece, at = bytearray(PIECE), 0
                while at != total:
                    got = self._read(answer, piece, at=at, total=total)
                    if not got:
                        break
                    sink.write(memoryview(piece)[:got])
                    progress.at(at := at + got)
                progress.at(at, last=True)
            _layout(np.memmap(part, np.uint8, "r") if at else b"")
            os.replace(part, file)
        except BaseException:
            os.unlink(part)
            raise
        return np.memmap(file, np.uint8, "r")

    def _read(self, answer, into=None, at=0, total=None):
        """All of a body; or what there is of it, at most `into`, and how much that was. Away if it breaks off."""
        try:
            if into is None:
                return answer.read()
            got = answer.readinto(into)
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: of a chunk's size
            self._close()
            raise Away(f"the answer of {self.url} broke off: {error!r}") from error
        if not got and total is not None:
            self._close()
            raise Away(f"the answer of {self.url} broke off after {at} of {total} bytes")
        return got

    def _foreign(self, answer, error):
        kind = answer.headers.get("Content-Type")
        return Away(f"{self.url} gives an answer that is no whole one of posenc ({kind}): {error}")

    def _close(self):
        """The next request of this thread opens a connection of its own."""
        if self._own.connection is not None:
            self._own.connection.close()
        self._own.connection = None

    def _ask(self, method, path, body=None, size=0, kind=None, accept=None):
        """The answer to a request, open; the service is asked again while it is busy. All that is asked here is pure: whatever
        got no answer may be asked again."""
        if self._library:
            return self._checked(_Reply(self._library, method, path, body, kind), path)
        headers = {"User-Agent": f"posenc.py/{__version__}"}
        if accept:
            headers["Accept"] = accept
        if body is not None:
            headers.update({"Content-Type": kind, "Content-Length": str(size)})
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        until = time.monotonic() + self.patience
        for left in range(self.retries, -1, -1):
            try:
                answer = self._once(method, path, body, headers)
            except Away:
                answer, wait = None, 0.5
                if not left or time.monotonic() + wait > until:
                    raise
            else:
                wait = _seconds(answer.headers.get("Retry-After"))
                if answer.status not in (429, 503) or not left or time.monotonic() + wait > until:
                    return self._checked(answer, path)
                with contextlib.suppress(Away):
                    self._read(answer)
            time.sleep(wait)
        raise AssertionError("the last try has returned or raised")

    def _once(self, method, path, body, headers):
        """An answer of whatever status. A kept connection may have been closed meanwhile: that is asked again at once."""
        while True:
            connection, fresh = self._connection()
            try:
                connection.request(method, self._parts.path.rstrip("/") + path, body=_pieces(body), headers=headers, encode_chunked=False)
                return connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                answer = self._early(connection)
                if answer is not None:
                    return answer
                self._close()
                if isinstance(error, ssl.SSLCertVerificationError):
                    raise Refused(0, {"detail": f"{self.url}: {error.verify_message}"}) from error
                if fresh:
                    raise Away(f"{self.url} gives no answer: {error}") from error

    @staticmethod
    def _early(connection):
        """A refusal that came while the body was still being sent."""
        try:
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException, AttributeError):
            return None
        return answer if answer.status >= 400 else None

    def _connection(self):
        """This thread's connection, and whether it is new."""
        connection = getattr(self._own, "connection", None)
        if connection is not None and connection.sock is not None:
            return connection, False
        parts = self._parts
        if parts.scheme == "https":
            context = self.context or ssl.create_default_context()
            connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=self.timeout, context=context)
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout)
        self._own.connection = connection
        return connection, True

    def _checked(self, answer, path):
        if answer.status == 200:
            return answer
        if answer.status < 400:  # no redirect is followed: the token belongs to this service only
            self._close()
            raise Refused(answer.status, {"detail": f"{self.url} answers with status {answer.status}{self._elsewhere(answer.headers.get('Location'), path)}"})
        text = self._read(answer)
        try:
            problem = json.loads(text)
        except ValueError:
            problem = None
        if not isinstance(problem, dict) or not (problem.get("detail") or problem.get("title")):
            raise self._foreign(answer, f"HTTP status {answer.status}: {text[:200].decode(errors='replace')}")
        raise Refused(answer.status, problem)

    def _elsewhere(self, location, path):
        """Where a redirect leads: to another url of the service if the path asked for is at its end, else to some page."""
        if not location:
            return ", not with 200"
        own = self._parts._replace(path=self._parts.path.rstrip("/"), query="", fragment="").geturl()
        try:
            to = urllib.parse.urlsplit(urllib.parse.urljoin(own + path, location))
        except ValueError:
            return f"; it leads to {location}"
        base = to._replace(path=to.path[: -len(path)], query="", fragment="").geturl()
        if not to.path.endswith(path) or base == own:
            return f"; it leads to {to.geturl()}"
        return f"; the service is said to be at {base}: give that as url"


def _pieces(body):
    """Pieces as http.client sends them: at most PIECE bytes at a time."""
    if body is None:
        return None
    if len(body) == 1 and isinstance(body[0], bytes):
        return body[0]
    return (piece[at : at + PIECE] for piece in body for at in range(0, len(piece), PIECE))


def _smaller(fields, found):
    """What a request for a picture has in addition: the first tensor alone, a long one in steps."""
    name, array = next(iter(found.items()))
    steps = [1] * (array.ndim - 2) + [-(-n // SIDE) for n in array.shape[-2:]]
    chosen = {"outputs": [name]} if "outputs" in fields else {}
    if max(steps, default=1) < 2 or "slice" in fields:
        return chosen
    return {**chosen, "slice": [[None, None, step] for step in steps], "reduce": "mean" if array.nbytes < SHOWN else "sample"}


def _seconds(text):
    """Of Retry-After, which the service gives in seconds."""
    try:
        seconds = float(text)
    except (TypeError, ValueError):
        seconds = math.nan
    return min(max(seconds, 0.05), 3600) if math.isfinite(seconds) else 1.0


_quoted = urllib.parse.quote


# ---- golden vectors against a function ----


def _three_arguments(fn):
    """Whether fn needs q, k and positions, not q and positions."""
    import inspect

    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # of a function in C
        return False
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in by_place and one.default is inspect.Parameter.empty for one in parameters) == 3


def _loaded(name):
    if name not in sys.modules:
        raise ValueError(f"like: {name} is not loaded; import it first")
    return sys.modules[name]


def _maker(like):
    """What makes an array of NumPy one of the library. bits: of a bf16 array, which then is f32."""
    if callable(like):
        return lambda array, bits: like(array)
    if like == "numpy":
        return lambda array, bits: array
    if like == "torch":
        torch = _loaded("torch")
        return lambda array, bits: torch.from_numpy(array) if bits is None else torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16)
    if like in ("jax", "mlx"):
        library = _loaded("jax.numpy" if like == "jax" else "mlx.core")
        narrow = lambda made, bits: made if bits is None else made.astype(library.bfloat16)
        return lambda array, bits: narrow(library.asarray(array) if like == "jax" else library.array(array), bits)
    raise ValueError(f"like is {like!r}; there are: numpy, torch, jax, mlx, or a function that makes an array")


LAYOUTS = {  # of [1, heads, n, head_dim]
    "bhnd": lambda x: x,
    "bnhd": lambda x: x.transpose(0, 2, 1, 3),
    "nbhd": lambda x: x.transpose(2, 0, 1, 3),
    "nhd": lambda x: x[0].transpose(1, 0, 2),
    "flat": lambda x: x[0].transpose(1, 0, 2).reshape(x.shape[2], -1),
    "bflat": lambda x: x.transpose(0, 2, 1, 3).reshape(1, x.shape[2], -1),
}
PLACE = {"bhnd": -2, "bnhd": -3, "nbhd": 0, "nhd": 0, "flat": 0, "bflat": -2}  # the axis of positions


class _Matching:
    """The golden vectors of one kind of layers, and the belief that they are of."""

    def __init__(self, client, preset, layer_type, dtype, config):
        self.client, self.belief = client, {**({"preset": preset} if preset else {}), **config}
        self.name = preset or config.get("scheme") or (config.get("hf_config") or {}).get("model_type", "hf_config")
        self.tensors = client.golden(preset, dtype=dtype, **config)
        kinds = self.tensors.meta["configs"]
        if layer_type is not None and layer_type not in kinds:
            self.belief["layer_type"] = layer_type
            self.tensors = client.golden(preset, dtype=dtype, layer_type=layer_type, **config)
            kinds = self.tensors.meta["configs"]
        elif layer_type is None and len(kinds) > 1:
            raise ValueError(f"{self.name} has several kinds of layers; give layer_type, one of: {', '.join(kinds)}")
        if layer_type not in kinds and len(kinds) > 1:
            raise ValueError(f"{layer_type} of {self.name} has several kinds; give one of: {', '.join(kinds)}")
        self.kind = layer_type if layer_type in kinds else next(iter(kinds))
        if self.kind.rpartition(".")[2] in ("short", "long"):  # the length is stated in the scaling
            self.belief = {name: value for name, value in kinds[self.kind].items() if name != "form"}
        elif len(kinds) > 1:
            self.belief["layer_type"] = self.kind
        if "q" not in self.tensors and f"q.{self.kind}" not in self.tensors:
            raise ValueError(f"{self.name} rotates nothing; compare its {', '.join(self.tensors.keys())} with check")

    def given(self, name, tensor_layout, contiguous):
        """An input as NumPy's array, and its bits if it is bf16."""
        name = name if name in self.tensors else f"{name}.{self.kind}"
        bits = self.tensors._raw.get(name)
        lay = LAYOUTS[tensor_layout]
        return contiguous(lay(self.tensors[name])), None if bits is None else contiguous(lay(bits))

    def judge(self, fn, like, tensor_layout, strict):
        if tensor_layout not in LAYOUTS:
            raise ValueError(f"tensor_layout is {tensor_layout!r}; there are: {', '.join(LAYOUTS)}")
        make, both = _maker(like), _three_arguments(fn)
        contiguous = lambda array: np.array(array, order="C")  # which fn may write to
        inputs = {name: self.given(name, tensor_layout, contiguous) for name in ("q", "k")[: 1 + both]}
        positions = self.tensors.position_ids
        outputs = fn(*(make(*pair) for pair in inputs.values()), make(contiguous(positions), None))
        outputs = tuple(outputs) if both else (outputs,)
        if len(outputs) != len(inputs):
            raise ValueError(f"fn has returned {len(outputs)} tensors; needed: {', '.join(f'{name}_out' for name in inputs)}")
        sent = {name: array for name, (array, _) in inputs.items()}
        sent.update({f"{name}_out": array for name, array in zip(inputs, outputs)})
        diagnosis = self.client.diagnose(**sent, **self.belief, positions=positions.tolist(), tensor_layout=tensor_layout)
        if not diagnosis.passes(strict):
            raise Mismatch(diagnosis, self.line(diagnosis, positions, tensor_layout))
        return diagnosis

    def line(self, diagnosis, positions, tensor_layout):
        """NAME: the finding (first at position P, channel J: FOUND, expected E)."""
        bad = (diagnosis.get("belief") or {}).get("first_bad")
        where = ""
        if bad:
            at = positions[..., bad["index"][PLACE[tensor_layout]]].tolist()
            where = f" (first at position {at}, channel {bad['index'][-1]}: {_number(bad['found'])}, expected {_number(bad['expected'])})"
        finding = next((one["detail"] for one in diagnosis["findings"] if one["code"] != "as_believed"), "it differs").rstrip(".")
        room = 240 - len(self.name) - 2 - len(where)
        return f"{self.name}: {finding if len(finding) <= room else finding[: room - 1] + '…'}{where}"


def _number(value):
    return f"{value:.7g}" if isinstance(value, float) else str(value)


# ---- a model while it runs ----

BUFFERS = {"inv_freq": "inv_freq", "original_inv_freq": "inv_freq", "cos_sin_cache": "cos_sin", "freqs_cis": "freqs_cis"}


class _Capture:
    """What one or several modules have: tensors by name, each with some rows of it."""

    def __init__(self, module, name, what, shape, dtype, tensors, positions):
        self.modules, self.name, self.what, self.shape, self.dtype = [module], name, what, list(shape), dtype
        self.tensors, self.positions = tensors, positions

    def key(self):
        return (self.what, self.name, *((name, dtype, array.shape, array.tobytes()) for name, (array, dtype) in self.tensors.items()), str(self.positions))


def _chosen(n, most):
    """Numbers of rows: the first half of them one after another, the rest spread up to the last."""
    if n <= most:
        return list(range(n))
    first = max(most // 2, 1)
    spread = np.linspace(first, n - 1, max(most - first, 1)).astype(int).tolist()
    return [*range(first), *dict.fromkeys(spread)]


def _is_integer(value):
    return _is_tensor(value) and "int" in str(getattr(value, "dtype", "")) and math.prod(getattr(value, "shape", ())) > 0


def _floats(array, dtype):
    return _wide(array, dtype).astype(float) if dtype in BITS else np.asarray(array, float)


def _is_constant(squares):
    """cos² + sin²: one number, but for roundings, and not zero."""
    return squares.size > 0 and np.isfinite(squares).all() and squares.min() > 0 and squares.max() - squares.min() <= 1e-2 * squares.max()


class _Watch:
    """What watch() gives: a context whose hooks look at outputs, and the report."""

    def __init__(self, client, model, belief, rows, calls):
        for name in ("named_modules", "named_buffers"):
            if not callable(getattr(model, name, None)):
                raise TypeError(f"the model has no {name}(); watch needs a module of PyTorch, or one that is like it")
        config = getattr(model, "config", None)
        if not belief and callable(getattr(config, "to_dict", None)):
            belief = {"hf_config": json.loads(json.dumps(config.to_dict(), default=str))}
        self.client, self.model, self.belief, self.rows, self.calls = client, model, belief, rows, calls
        self.captures, self.errors, self._hooks, self._counts, self._report, self._kinds = {}, [], [], {}, None, None

    def __enter__(self):
        try:
            for name, module in self.model.named_modules():
                self._hooks.append(self.hook(name or type(module).__name__, module))
        except BaseException:
            self.__exit__()
            raise
        self.buffers()
        return self

    def __exit__(self, *_):
        for handle in self._hooks:
            handle.remove()
        self._hooks = []

    def hook(self, name, module):
        def look(module, args, kwargs, output):
            try:
                self._counts[name] = self._counts.get(name, 0) + 1
                if self._counts[name] <= self.calls:
                    self.output(name, [*args, *kwargs.values()], output)
            except Exception as error:  # a model must run as if nobody looked
                self.failed(name, "output", error)

        try:
            return module.register_forward_hook(look, with_kwargs=True)
        except TypeError as error:
            raise TypeError(f"the hooks of {type(module).__name__} show no keywords (with_kwargs=True), which PyTorch 2.0 and later can") from error

    def failed(self, module, what, error):
        self.errors.append({"module": module, "what": what, "layers": [module], "shape": None, "dtype": None, "positions": None,
                            "diagnosis": None, "line": f"{module}: {type(error).__name__}: {error}"})

    # ---- what is there ----

    def keep(self, capture):
        key = capture.key()
        if key not in self.captures:
            self.captures[key] = capture
        elif capture.modules[0] not in self.captures[key].modules:
            self.captures[key].modules.append(capture.modules[0])

    def buffers(self):
        tables = {}
        for path, value in self.model.named_buffers():
            module, _, name = path.rpartition(".")
            try:
                if name in ("cos_cached", "sin_cached"):
                    tables.setdefault(module, {})[name] = value
                elif name in BUFFERS:
                    self.table(module, name, "buffer", {BUFFERS[name]: value}, None)
            except Exception as error:
                self.failed(path, "buffer", error)
        for module, pair in tables.items():
            try:
                if len(pair) == 2:
                    self.table(module, "cos_cached", "buffer", {"cos": pair["cos_cached"], "sin": pair["sin_cached"]}, None)
            except Exception as error:
                self.failed(module, "buffer", error)

    def table(self, module, name, what, tensors, positions):
        """Rows of tables of one shape, the axes of a row last; all of inv_freq."""
        first = next(iter(tensors.values()))
        shape, kept = list(first.shape), {}
        is_pair = "freqs_cis" in tensors and "complex" not in str(first.dtype)  # [..., 2]
        tail = shape[-1 - is_pair:]
        n = math.prod(shape[: len(shape) - len(tail)])
        rows = None if "inv_freq" in tensors else _chosen(n, self.rows)
        for key, value in tensors.items():
            some = value if rows is None else value.reshape(n, *tail)[rows]
            array, dtype = _array(_pairs(key, some))
            kept[key] = np.array(array), dtype  # which is ours from here on
        if rows is not None:
            positions = [positions[row] for row in rows] if positions is not None else rows
        capture = _Capture(module, name, what, shape, str(first.dtype), kept, positions)
        if what == "buffer" or self.turns(capture):
            self.keep(capture)

    @staticmethod
    def turns(capture):
        """Are these cosines and sines?"""
        parts = [_floats(*pair) for pair in capture.tensors.values()]
        if len(parts) == 1:
            return _is_constant((parts[0] ** 2).sum(-1))
        return _is_constant(parts[0] ** 2 + parts[1] ** 2)

    def output(self, module, arguments, output):
        if _is_tensor(output) and "complex" in str(getattr(output, "dtype", "")):
            tensors, n = {"freqs_cis": output}, math.prod(output.shape[:-1])
        elif isinstance(output, (tuple, list)) and len(output) == 2 and all(_is_tensor(x) for x in output):
            real = all("float" in str(x.dtype) for x in output)
            if not real or tuple(output[0].shape) != tuple(output[1].shape) or len(output[0].shape) < 2:
                return
            tensors, n = dict(zip(("cos", "sin"), output)), math.prod(output[0].shape[:-1])
        else:
            return
        at = next((x for x in arguments if _is_integer(x) and math.prod(x.shape) == n), None)
        positions = None if at is None else _array(at)[0].ravel().tolist()
        self.table(module, "output", "output", tensors, positions)

    # ---- what it means ----

    def judge(self, capture):
        sent = {name: _Bits(array, dtype) if dtype in BITS else array for name, (array, dtype) in capture.tensors.items()}
        if capture.positions is not None:
            sent["positions"] = capture.positions
        kinds = self.kinds()
        if not kinds:
            return self.client.diagnose(**sent, **self.belief), None
        answers = []
        for kind in kinds:
            answers.append((self.client.diagnose(**sent, **self.belief, layer_type=kind), kind))
            if answers[-1][0].fits:
                return answers[-1]
        off = lambda one: (one[0].get("belief") or {}).get("max_error")
        return min(answers, key=lambda one: math.inf if off(one) is None else off(one))

    def kinds(self):
        """Layer types of the model, where they are several and the belief names none."""
        source = {name: self.belief[name] for name in ("preset", "hf_config", "gguf") if name in self.belief}
        if self._kinds is None and source and "layer_type" not in self.belief:
            try:
                layers = self.client._json("/explain", source)["layers"]
            except Refused:
                layers = []
            self._kinds = [layer["layer_type"] for layer in layers] if len(layers) > 1 else []
        return self._kinds or []

    def entry(self, capture):
        module = capture.modules[0]
        entry = {"module": module, "what": capture.what, "layers": capture.modules, "shape": capture.shape, "dtype": capture.dtype,
                 "positions": capture.positions, "diagnosis": None}
        name = f"{module}.{capture.name}" if capture.what == "buffer" else module
        more = f" (and {len(capture.modules) - 1} more)" if len(capture.modules) > 1 else ""
        try:
            entry["diagnosis"], kind = self.judge(capture)
            said = next(one["detail"] for one in entry["diagnosis"]["findings"])
            if kind:
                entry["layer_type"] = kind
            said = f"[{kind}] {said}" if kind else said
        except Refused as error:
            said = str(error)
        return {**entry, "line": f"{name}{more}: {said}"}

    @property
    def report(self):
        """An entry for each different capture: module, what, layers, shape, dtype, positions, diagnosis, line."""
        if self._report is None or len(self._report) != len(self.captures) + len(self.errors):
            self._report = [self.entry(capture) for capture in self.captures.values()] + self.errors
        return self._report

    def __str__(self):
        return "\n".join(one["line"] for one in self.report) or "nothing was seen"

    def check(self, strict=False):
        """Raises Mismatch with the first capture that is not what is believed; LookupError if nothing was seen."""
        if not self.report:
            raise LookupError("nothing was seen: no buffer and no output looks like positions")
        for one in self.report:
            diagnosis = one["diagnosis"]
            if diagnosis is None or not diagnosis.passes(strict):
                raise Mismatch(diagnosis, one["line"])


# ---- files of models ----

GGUF_TYPES = ("u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64")  # by their numbers
GGUF_CODES = {"u8": "<u1", "i8": "<i1", "u16": "<u2", "i16": "<i2", "u32": "<u4", "i32": "<i4", "f32": "<f4", "bool": "<u1", "u64": "<u8", "i64": "<i8", "f64": "<f8"}
GGUF_STORED = {  # the keys that are read, behind the architecture's name and a dot, by the types as which llama.cpp reads them
    "u32": "block_count nextn_predict_layers leading_dense_block_count context_length embedding_length attention.key_length "
           "attention.key_length_swa attention.key_length_mla rope.dimension_count rope.dimension_count_swa attention.sliding_window "
           "rope.scaling.original_context_length attention.relative_buckets_count attention.temperature_length",
    "f32": "rope.freq_base rope.freq_base_swa rope.scaling.factor rope.scale_linear rope.scaling.attn_factor rope.scaling.alpha "
           "rope.scaling.yarn_log_multiplier rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow rope.scaling.yarn_ext_factor "
           "rope.scaling.yarn_attn_factor attention.compress_rope_freq_base attention.max_alibi_bias attention.temperature_scale attention.scale attention.output_scale attn_logit_softcapping",
    "bool": "rope.scaling.finetuned",
    "string": "rope.scaling.type",
    "u32, u32[], i32[]": "attention.head_count",
    "u32[], i32[]": "rope.dimension_sections attention.compress_ratios",
    "u32, u32[], i32[], bool[]": "attention.sliding_window_pattern",
}
GGUF_KEYS = {key: types for types, keys in GGUF_STORED.items() for key in keys.split()}
GGUF_TENSORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
GGUF_LONG, GGUF_LIST, GGUF_NAME = 1024, 65536, 65535  # bytes of a string, elements of a list that are kept; bytes of a name
GGUF_MOST_KEYS, GGUF_MOST_TENSORS, GGUF_OTHERS = 65536, 1 << 20, 64  # others: keys about positions that have no effect


def _once(members):
    """An object, which has no key twice: tools differ in which of the two they take."""
    config = dict(members)
    if len(config) < len(members):
        names = [name for name, _ in members]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return config


def read_config(path):
    """The object of a config.json: a path of the file or of its folder."""
    path = os.path.join(path, "config.json") if os.path.isdir(path) else path
    with open(path, encoding="utf-8-sig") as file:  # it may begin with a byte order mark
        try:
            config = json.load(file, object_pairs_hook=_once)
        except RecursionError:
            raise ValueError(f"{path} is no config.json: its lists are nested too deeply") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} is no config.json: it holds {_brief(config)}")
    return config


_TEXT_MAX = 1 << 20  # of a text as it was pasted


def _source(x):
    """A path, an object, or a text as it was pasted as the field of a request."""
    if x is None:
        return {}
    if isinstance(x, dict):
        return {"gguf" if "general.architecture" in x else "hf_config": x}
    is_text = isinstance(x, str) and any(c.isspace() for c in x)
    if is_text and ("\n" in x or not os.path.exists(x)):
        return {"said": x}
    if not os.path.isfile(x):
        return {"hf_config": read_config(x)}
    if os.fspath(x).endswith(".gguf"):
        return {"gguf": read_gguf(x)}
    with open(x, encoding="utf-8-sig", errors="replace") as file:
        text = file.read(_TEXT_MAX + 1)
    return {"hf_config": read_config(x)} if text.lstrip()[:1] in ("{", "[", "") or len(text) > _TEXT_MAX else {"said": text}


def _spelled(x):
    """A number as JSON has it: in words if it is not finite."""
    if math.isfinite(x):
        return x
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"


class _Gguf:
    """The head of a GGUF file, read key by key, with the refusals of the service: what is not about positions is passed by a seek, so
    gigabytes are never read."""

    def __init__(self, file, name):
        self.file, self.name = file, name
        self.size = file.seek(0, os.SEEK_END)
        file.seek(0)

    def refuse(self, what):
        raise ValueError(f"{self.name} is no GGUF file that can be read: {what}")

    def has(self, n):
        return n <= self.size - self.file.tell()

    def need(self, n):
        if not self.has(n):
            self.refuse(f"it ends at byte {self.size}, {n} more are needed at byte {self.file.tell()}")

    def take(self, n):
        self.need(n)
        return self.file.read(n)

    def skip(self, n):
        self.need(n)
        self.file.seek(n, os.SEEK_CUR)

    def number(self, code):
        return int.from_bytes(self.take(np.dtype(code).itemsize), "little")

    def text(self, raw, what):
        try:
            if b"\0" not in raw:
                return raw.decode()
        except UnicodeDecodeError:
            pass
        return self.refuse(f"{what} is not UTF-8")

    def string(self, key, kept):
        n = self.number("<u8")
        if kept and n > GGUF_LONG:
            self.need(n)
            self.refuse(f"{key} is a string of more than {GGUF_LONG} bytes")
        if kept:
            return self.text(self.take(n), key)
        is_shown = key == "general.name" and n <= GGUF_LONG
        return self.take(n).decode(errors="replace").replace("\0", "") if is_shown else self.skip(n)

    def numbers(self, key, kind, n):
        raw = self.take(n * np.dtype(GGUF_CODES[kind]).itemsize)
        array = np.frombuffer(raw, GGUF_CODES[kind])
        if kind == "bool" and (array > 1).any():
            self.refuse(f"{key} has a boolean other than 0 and 1")
        return (array != 0).tolist() if kind == "bool" else [_spelled(x) for x in array.tolist()]

    def kind(self, key):
        number = self.number("<u4")
        return GGUF_TYPES[number] if number < len(GGUF_TYPES) else self.refuse(f"{key} has the type {number}; allowed: at most 12")

    def array(self, key, kept):
        kind, n = self.kind(key), self.number("<u8")
        if kind == "array":
            self.refuse(f"{key} is an array of arrays")
        if kind == "string":
            self.need(8 * n)
            for _ in range(n):
                self.skip(self.number("<u8"))
            return "string[]", None
        self.need(n * np.dtype(GGUF_CODES[kind]).itemsize)
        if kept and n > GGUF_LIST:
            self.refuse(f"{key} has more than {GGUF_LIST} elements")
        return f"{kind}[]", self.numbers(key, kind, n) if kept else self.skip(n * np.dtype(GGUF_CODES[kind]).itemsize)

    def value(self, key, kept):
        """Its type and itself. None: it is not kept, or an integer beyond those that every reader of JSON takes."""
        kind = self.kind(key)
        if kind == "array":
            return self.array(key, kept)
        if kind == "string":
            return kind, self.string(key, kept)
        [x] = self.numbers(key, kind, 1)
        return kind, None if isinstance(x, int) and abs(x) > 1 << 53 else x

    def keys(self, n):
        """Those about positions, whatever the architecture, with their types; and the alignment."""
        keys = {}
        for _ in range(n):
            n_bytes = self.number("<u8")
            self.need(n_bytes)
            if not 0 < n_bytes <= GGUF_NAME:
                self.refuse(f"a key without a name, or with one of more than {GGUF_NAME} bytes")
            raw = self.take(n_bytes)
            name = raw.decode(errors="replace")
            _, _, rest = name.partition(".")
            kept = name in ("general.architecture", "general.alignment") or rest in GGUF_KEYS or (rest.startswith("rope.") and rest != "rope.")
            if kept:
                name = self.text(raw, "a key")
            if kept and name in keys:
                self.refuse(f"{name} is there twice")
            value = self.value(name, kept)
            if kept or (name == "general.name" and value[1] is not None):
                keys[name] = value
        return keys

    def alignment(self, keys):
        kind, n = keys.pop("general.alignment", ("u32", 32))
        if kind != "u32" or n < 1 or n & (n - 1):
            self.refuse(f"general.alignment is {n} as {kind}; allowed: a power of two as u32")
        return n

    def chosen(self, keys):
        """The keys of the architecture, with their types checked, and some others, which have no effect."""
        if "general.architecture" not in keys:
            return {}
        kind, architecture = keys["general.architecture"]
        if kind != "string":
            self.refuse(f"general.architecture is stored as {kind}; llama.cpp reads string and refuses the file")
        chosen, n_others = {}, 0
        for name, (kind, value) in keys.items():
            before, _, rest = name.partition(".")
            types = GGUF_KEYS.get(rest) if before == architecture else None
            if types and kind not in types.split(", "):
                self.refuse(f"{name} is stored as {kind}; llama.cpp reads {types} and refuses the file")
            is_named = types or name in ("general.architecture", "general.name")
            n_others += not is_named
            if is_named or n_others <= GGUF_OTHERS:
                chosen[name] = value
        return chosen

    def tensor(self):
        """Its name, without that of the first block, its shape, type and place. None: the file ends before that."""
        n = self.number("<u8") if self.has(8) else self.size
        if not self.has(n + 4):
            return None
        name, n_axes = self.take(n), self.number("<u4")
        if n_axes > 4:
            self.refuse(f"{name[:64].decode(errors='replace')} has more than 4 dimensions")
        if not self.has(8 * n_axes + 12):
            return None
        shape = [self.number("<u8") for _ in range(n_axes)]
        return (name[6:] if name.startswith(b"blk.0.") else name).decode(errors="replace"), shape, self.number("<u4"), self.number("<u8")

    def tensors(self, n, alignment):
        """The three that divide frequencies; None: in the table, but not in this file. Of a table that is cut, none is known."""
        places = {}
        for _ in range(n):
            tensor = self.tensor()
            if tensor is None:
                return {name: {"needs": None} for name in GGUF_TENSORS}
            name, shape, kind, offset = tensor
            if name not in GGUF_TENSORS:
                continue
            if name in places:
                self.refuse(f"{name} is there twice")
            if kind != 0 or len(shape) != 1 or shape[0] > GGUF_LIST:
                self.refuse(f"{name} is no short list of f32")
            places[name] = offset, shape[0]
        start = -(-self.file.tell() // alignment) * alignment
        return {name: self.floats(name, start + offset, n) for name, (offset, n) in places.items()}

    def floats(self, name, at, n):
        if at + 4 * n > self.size:
            return None
        self.file.seek(at)
        return self.numbers(name, "f32", n)

    def head(self):
        if self.size < 4 or self.take(4) != b"GGUF":
            self.refuse("it does not begin with GGUF")
        self.need(20)
        version = self.number("<u4")
        n_tensors, n_keys = self.number("<u8"), self.number("<u8")
        if version not in (2, 3):
            self.refuse("it was written big-endian" if version and not version & 0xFFFF else f"version {version}; 2 and 3 are read")
        if n_keys > GGUF_MOST_KEYS or n_tensors > GGUF_MOST_TENSORS:
            self.refuse(f"it has more than {GGUF_MOST_KEYS} keys or {GGUF_MOST_TENSORS} tensors")
        keys = self.keys(n_keys)
        tensors = self.tensors(n_tensors, self.alignment(keys))
        return {**self.chosen(keys), **({"tensors": tensors} if tensors else {})}


def read_gguf(path):
    """The keys about positions of a .gguf file, as every request takes them: encode(gguf=read_gguf(path), len=16). The tokenizer is
    passed over, the three tensors that divide frequencies are read: of many gigabytes some hundred KiB. Of a file in several parts
    the first is enough. ValueError for a file that the service would refuse: a key twice, one of a type that llama.cpp refuses."""
    with open(path, "rb", buffering=1 << 16) as file:
        return _Gguf(file, os.path.basename(path)).head()


class _Conversion:
    """A config.json and a .gguf file: the difference of the two, kind by kind of layers."""

    def __init__(self, client, published, converted, lengths):
        self.client, self.sides, self.lengths = client, (published, converted), lengths

    def results(self):
        """A side whose layers are all alike has no names of kinds."""
        kinds = [self.kinds(side) for side in self.sides]
        return [self.kind(name, kinds) for name in dict.fromkeys([*kinds[0], *kinds[1]]) or [None]]

    def kinds(self, side):
        try:
            self.client._json("/encode", {**side, "len": 1, "data": False})
        except Refused as error:
            if not error.problem.get("layer_types"):
                raise
            return error.problem["layer_types"]
        return []

    def kind(self, name, kinds):
        """Of a side that has no kind of this name, whichever fits: the same positions in the same layers."""
        before, has = f"{name}: " if name else "", [not own or name in own for own in kinds]
        pairs = itertools.product(*([None] if not own else [name] if name in own else own for own in kinds))
        best = min((self.worst(pair) for pair in pairs), key=_badness)
        if not all(has) and best["verdict"] == "differs" and best["reasons"] != ["layers"]:
            where = "the config.json" if has[0] else "the .gguf file"
            return self.result(name, {"verdict": "differs", "reasons": ["kind"], "detail": f"{before}only {where} has layers of this kind."})
        return self.result(name, {**best, "detail": before + best["detail"]})

    def worst(self, pair):
        """Of all lengths."""
        configs = [{**side, **({"layer_type": name} if name else {})} for side, name in zip(self.sides, pair)]
        return max((self.difference(configs, length) for length in self.lengths), key=_badness)

    def difference(self, configs, length):
        positions = sorted({0, 1, length // 2, length - 1} & set(range(length)))
        answer = self.client._json("/analyze", {"configs": configs, "positions": positions, "metrics": ["difference"], "outputs": []})
        return answer["results"][1]["difference"]

    @staticmethod
    def result(name, found):
        frequencies = found.get("frequencies") or {"max_rel": None, "pair": None}
        return {"layer_type": name, "verdict": found["verdict"], **frequencies, "reasons": found["reasons"], "detail": found["detail"]}


def _badness(found):
    """For the worst of several verdicts."""
    return found["verdict"] == "differs", (found.get("frequencies") or found).get("max_rel") or 0


# ---- the rows of two checkpoints ----

CONVERSIONS = ("none", "interleaved_to_half", "half_to_interleaved")
PRECISION = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}


def _rows_before(conversion, heads, width, rotated):
    """The row that each row was before a conversion: of Meta's weights rows 0, 2, 4, … of each head, then 1, 3, 5, …."""
    head = np.r_[0:rotated:2, 1:rotated:2, rotated:width] if conversion != "none" else np.arange(width)
    head = np.argsort(head) if conversion == "half_to_interleaved" else head
    return (np.arange(heads)[:, None] * width + head).ravel()


def _heads_order(expected, found, heads):
    """Which expected head each head is, equal ones in their order; None: they are not the same heads."""
    places = {}
    for j, head in enumerate(expected.reshape(heads, -1)):
        places.setdefault(head.tobytes(), []).append(j)
    order = [places.get(head.tobytes()) and places[head.tobytes()].pop(0) for head in found.reshape(heads, -1)]
    return None if None in order or [] in order else order


def _block(expected, found):
    """Where the expected rows are in a larger matrix: as one block, or as every so many-th; None: nowhere."""
    n, n_found = len(expected), len(found)
    for first in np.flatnonzero(found == expected[0])[:8]:
        for block in (n // parts for parts in range(1, n + 1) if n % parts == 0):
            if not np.array_equal(found[first:first + block], expected[:block]):
                continue
            steps = [n_found] if block == n else np.flatnonzero(found[first + block + 1:] == expected[block]) + block + 1
            for every in map(int, steps):
                at = first + every * np.arange(n // block)[:, None] + np.arange(block)
                if at[-1, -1] < n_found and np.array_equal(found[at].ravel(), expected):
                    return {"first": int(first), "block": block, "every": every}
    return None


def _row_classes(believed, found, factor, unit):
    """Equal rows have one number: those of both matrices; with a factor, up to roundings. None: rows without a partner remain."""
    if abs(factor) == 1:
        _, classes = np.unique(np.concatenate([believed, factor * found]) + 0.0, axis=0, return_inverse=True)
        return classes.ravel()[:len(believed)], classes.ravel()[len(believed):]
    key = np.random.default_rng(1).uniform(-1, 1, believed.shape[1])
    order, there = np.argsort(factor * (believed @ key)), np.argsort(found @ key)
    if np.any(np.abs(found[there] - factor * believed[order]) > 4 * unit * np.abs(found[there])):
        return None
    classes = np.unique(believed, axis=0, return_inverse=True)[1].ravel()
    of_found = np.empty_like(classes)
    of_found[there] = classes[order]
    return classes, of_found


def _narrowest(array):
    """The shortest dtype that holds every number."""
    return next(name for name in PRECISION if np.array_equal(_rounded(array, name), array))


def _rounded(array, name):
    if name == "bf16":
        bits = array.astype("f4").view(np.uint32).astype(np.uint64)
        return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view("f4").astype(float)
    with np.errstate(over="ignore"):
        return array.astype({"f16": "f2", "f32": "f4", "f64": "f8"}[name]).astype(float)


def check_rows(believed, found, *, num_heads=None, num_kv_heads=None, head_dim=None, rotary_dim=None, conversion="none"):
    """What became of the rows of a projection of q or k between two checkpoints, [out, in] each; no service is asked.

    num_heads, for keys num_kv_heads too, or head_dim; rotary_dim where a conversion moves only the first rows of a head;
    conversion: what it was meant to do: none, interleaved_to_half (rows 0, 2, 4, … then 1, 3, 5, … of each head, as the weights of
    Meta are converted) or half_to_interleaved. Rows are matched by their numbers in the coarser dtype; 64 columns are enough.
    Returns what is there beside that, a list of (code, found): [("as_believed", None)], rows_permuted, rows_permuted_twice,
    rows_heads_other (k's rows moved with the heads of q), heads_order, rows_fused, rows_other, negated, scaled, transposed,
    table_dtype, or [("unexplained", {"missing": rows})]."""
    arrays = [_array(x) for x in (believed, found)]
    b, f = (_floats(*one) for one in arrays)
    if b.ndim != 2 or f.ndim != 2 or not b.size or b.shape[1] not in f.shape:
        raise ValueError(f"matrices of {b.shape} and {f.shape}: both are [out, in], with as many columns")
    if not (np.isfinite(b).all() and np.isfinite(f).all()):
        raise ValueError("a matrix has NaN or infinities")
    if conversion not in CONVERSIONS:
        raise ValueError(f"conversion {conversion!r}: one of {', '.join(CONVERSIONS)}")
    n, heads = len(b), num_kv_heads or num_heads
    if not heads and not head_dim:
        raise ValueError("num_heads is missing (of keys num_kv_heads too), or head_dim")
    heads = heads or n // head_dim
    width = n // heads if heads else 0
    rotated = rotary_dim or width
    if not heads or heads * width != n or head_dim not in (None, width) or rotated % 2 or not 0 < rotated <= width:
        raise ValueError(f"{n} rows are not {heads} heads of {head_dim or width} rows, of which {rotated} are rotated in pairs")
    short = _narrowest(f)
    lost = [("table_dtype", short)] if PRECISION[short] < PRECISION[_narrowest(b)] else []
    dtype = min([kind.lower() for _, kind in arrays if kind.lower() in PRECISION] + [code for _, code in lost] or ["f64"], key=PRECISION.get)
    b, f, unit, missing = _rounded(b, dtype), _rounded(f, dtype), 2.0 ** -PRECISION[dtype], n
    others = [h for h in dict.fromkeys([num_heads, num_kv_heads, *range(1, n + 1)]) if h and h != heads and n % h == 0 and n // h % 2 == 0]
    for turned in ([], [("transposed", None)]):
        m = f.T if turned else f
        if m.shape[1] != b.shape[1]:
            continue
        size = math.sqrt((m * m).sum() / (b * b).sum()) if len(m) == n and b.any() and m.any() else 1
        size = float(f"{size:.{max(3, 2 + int(-math.log10(unit)))}g}")
        for factor in dict.fromkeys([1, -1, size, -size]):
            classes = _row_classes(b, m, factor, unit)
            if classes is None:
                continue
            old, new = classes
            room = max(old.max(), new.max()) + 1
            nowhere = int(np.maximum(np.bincount(old, minlength=room) - np.bincount(new, minlength=room), 0).sum())
            missing = min(missing, nowhere)
            if not nowhere:
                changed = [("negated", None)] * (factor < 0) + turned + [("scaled", abs(factor))] * (abs(factor) != 1)
                sizes = (heads, width, rotated)
                return _moves(old, new, sizes, others, conversion) + changed + lost or [("as_believed", None)]
    return [("unexplained", {"missing": missing})]


def _moves(old, new, sizes, others, conversion):
    """The likeliest way in which the rows came to their places, a list of (code, found)."""
    heads, width, rotated = sizes
    expected, readings = old[_rows_before(conversion, *sizes)], []

    def attempt(rows, code, found, may_move_heads=True):
        moved = [(code, found)] if code else []
        order = _heads_order(rows, new, heads) if may_move_heads and heads > 1 and len(new) == len(rows) else None
        block = _block(rows, new) if len(new) > len(rows) else None
        if np.array_equal(rows, new):
            readings.append(moved)
        elif order or block:
            readings.append(moved + ([("heads_order", {"order": order})] if order else [("rows_fused", block)]))

    attempt(expected, None, None)
    for times, code in ((1, "rows_permuted"), (2, "rows_permuted_twice")):
        for one in CONVERSIONS[1:]:
            rows = expected
            for _ in range(times):
                rows = rows[_rows_before(one, *sizes)]
            attempt(rows, code, {"conversion": one, "heads": heads, "times": times})
    for h in others:
        part = rotated if rotated < width and rotated <= len(old) // h else len(old) // h
        for one in CONVERSIONS[1:] if conversion == "none" else [conversion]:
            attempt(old[_rows_before(one, h, len(old) // h, part)], "rows_heads_other", {"heads": h}, False)
    if not readings and len(new) == len(old):
        places = {}
        for i, (a, b) in enumerate(zip(expected.tolist(), new.tolist())):
            if a != b:
                places.setdefault(a, []).append(i)
        order = [i if a == b else places[b].pop(0) for i, (a, b) in enumerate(zip(expected.tolist(), new.tolist()))]
        return [("rows_other", {"rows": order})]
    surprise = {"rows_permuted": 1, "rows_heads_other": 1, "rows_permuted_twice": 3, "heads_order": 3, "rows_fused": 3}
    return min(readings, key=lambda one: (len(one), sum(surprise[code] for code, _ in one)), default=[("rows_other", None)])


# ---- the usual service ----

_usual = None
_making = threading.Lock()


def _client():
    global _usual
    with _making:
        _usual = _usual or Client()
        return _usual


def encode(**request):
    return _client().encode(**request)


def rotate(**request):
    return _client().rotate(**request)


def attention(**request):
    return _client().attention(**request)


def analyze(*configs, **request):
    return _client().analyze(*configs, **request)


def diagnose(tensor=None, **request):
    return _client().diagnose(tensor, **request)


def check(tensor=None, **request):
    return _client().check(tensor, **request)


def golden(preset=None, **request):
    return _client().golden(preset, **request)


def derive(**request):
    return _client().derive(**request)


def assert_matches(fn, **request):
    return _client().assert_matches(fn, **request)


def probe(preset=None, **belief):
    return _client().probe(preset, **belief)


def watch(model, preset=None, **belief):
    return _client().watch(model, preset, **belief)


def explain(x=None, **fields):
    return _client().explain(x, **fields)


def translate(x=None, to="all", **fields):
    return _client().translate(x, to, **fields)


def check_conversion(hf_dir, gguf_path, length=None):
    return _client().check_conversion(hf_dir, gguf_path, length)


def where():
    """Which posenc answers: the url of a service, or the library in this process with its version."""
    return _client().url


def schemes(name=None):
    return _client().schemes(name)


def presets(name=None):
    return _client().presets(name)


for _function in (encode, rotate, attention, analyze, diagnose, check, golden, derive, assert_matches, probe, watch, check_conversion, explain, translate, schemes, presets):
    _function.__doc__ = getattr(Client, _function.__name__).__doc__
del _function
