"""A diagnosis in this process by ctypes, without NumPy and without posenc.py, which does this and more.

    python3 diagnose.py [LIBRARY]     libposenc.so.0 by default

ctypes releases the interpreter's lock during a call, so threads compute in parallel.
"""
import ctypes
import json
import math
import sys

lib = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libposenc.so.0")
P, TEXT, SIZE, REAL = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_double
lib.pe_call.restype, lib.pe_call.argtypes = P, [TEXT, TEXT, TEXT, TEXT, SIZE, REAL, REAL]
lib.pe_reply_read.restype, lib.pe_reply_read.argtypes = ctypes.c_ssize_t, [P, P, SIZE]
lib.pe_reply_status.argtypes = lib.pe_reply_free.argtypes = [P]


def ask(target, **request):
    """The status and the text of an answer; body is borrowed until the reply is freed."""
    body, piece, pieces = json.dumps(request).encode(), ctypes.create_string_buffer(65536), []
    reply = lib.pe_call(b"POST", target.encode(), b"application/json", body, len(body), 0, 0)
    if not reply:
        raise MemoryError
    while (n := lib.pe_reply_read(reply, piece, len(piece))) > 0:
        pieces.append(piece.raw[:n])
    status = lib.pe_reply_status(reply)
    lib.pe_reply_free(reply)
    return status, b"".join(pieces).decode()


def turned(x, y, angle):
    return [x * math.cos(angle) - y * math.sin(angle), y * math.cos(angle) + x * math.sin(angle)]


# The neighbouring channels are rotated; the layout half pairs channel 0 with 2, and 1 with 3.
status, text = ask("/diagnose?format=text", scheme="rope", layout="half", head_dim=4, offset=1, q=[[1, 2, 3, 4]],
                   q_out=[turned(1, 2, 1) + turned(3, 4, 0.01)])
print(text, end="")
sys.exit(0 if status == 200 else 2)
