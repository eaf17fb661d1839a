"""The cosines and sines of RoPE, computed by libposenc directly into NumPy's memory: no copy, no server, no compiler.

    python3 table.py [LIBRARY]     libposenc.so.0 by default

ctypes releases the interpreter's lock during pe_fill, so threads fill in parallel.
"""
import ctypes
import sys

import numpy as np

lib = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libposenc.so.0")
P, SIZE, TEXT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
lib.pe_ask_new.restype, lib.pe_ask_new.argtypes = P, [TEXT]
lib.pe_ask_text.argtypes, lib.pe_ask_integer.argtypes = [P, TEXT, TEXT], [P, TEXT, ctypes.c_int64]
lib.pe_ask_plan.argtypes, lib.pe_ask_free.argtypes, lib.pe_plan_free.argtypes = [P, P, P], [P], [P]
lib.pe_output_find.argtypes, lib.pe_fill.argtypes = [P, TEXT], [P, SIZE, ctypes.c_uint64, SIZE, P]
lib.pe_output_rank.argtypes, lib.pe_output_shape.argtypes = [P, SIZE], [P, SIZE]
lib.pe_output_shape.restype = ctypes.POINTER(ctypes.c_uint64)


def table(output, scheme, **sizes):
    ask, plan, err = lib.pe_ask_new(b"encode"), P(), ctypes.create_string_buffer(804)  # a struct pe_error
    lib.pe_ask_text(ask, b"scheme", scheme.encode())
    for name, value in sizes.items():
        lib.pe_ask_integer(ask, name.encode(), value)
    status = lib.pe_ask_plan(ask, ctypes.byref(plan), err)
    lib.pe_ask_free(ask)
    if status:
        raise ValueError(err.raw[4 + 160:].split(b"\0")[0].decode())  # behind the status and the pointer: the sentence
    i = lib.pe_output_find(plan, output.encode())
    out = np.empty(lib.pe_output_shape(plan, i)[:lib.pe_output_rank(plan, i)], "f4")
    lib.pe_fill(plan, i, 0, out.size, out.ctypes.data)
    lib.pe_plan_free(plan)
    return out


cos, sin = (table(output, "rope", len=2048, head_dim=64) for output in ("cos", "sin"))
print(cos.shape, cos[2047, 0], sin[2047, 0])
