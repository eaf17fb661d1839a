"""A reader of PNG files with a palette, from the specification (W3C PNG, second edition): checks every chunk's CRC, the order
of chunks and the length of the pixels, and gives indices, colours, opacities and texts."""
import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunks(data):
    assert data[:8] == SIGNATURE
    at = 8
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + n]
        assert len(body) == n, "a chunk is cut"
        assert struct.unpack(">I", data[at + 8 + n:at + 12 + n])[0] == zlib.crc32(kind + body), f"CRC of {kind}"
        yield kind, body
        at += 12 + n


def unfilter(raw, height, width):
    """Rows of one byte a pixel with a byte of filter type before each: none, or a difference to left or above."""
    rows = np.frombuffer(raw, np.uint8).reshape(height, width + 1)
    pixels = np.zeros((height + 1, width), np.uint8)
    for i, (kind, row) in enumerate(zip(rows[:, 0], rows[:, 1:])):
        assert kind in (0, 1, 2), f"filter {kind} is for amounts, not for indices"
        pixels[i + 1] = row if kind == 0 else np.cumsum(row, dtype=np.uint8) if kind == 1 else row + pixels[i]
    return pixels[1:]


class Picture:
    """pixels [height,width] of indices; palette [n,3]; opacity [n]; texts by keyword."""

    def __init__(self, data):
        parts = list(chunks(data))
        kinds = [kind for kind, _ in parts]
        assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND" and kinds.count(b"PLTE") == 1
        assert kinds.index(b"PLTE") < kinds.index(b"tRNS") < kinds.index(b"IDAT")
        last = len(kinds) - 1 - kinds[::-1].index(b"IDAT")
        assert set(kinds[kinds.index(b"IDAT"):last + 1]) == {b"IDAT"}, "the pixels' chunks stand together"
        body = dict(parts)
        self.width, self.height, *rest = struct.unpack(">IIBBBBB", body[b"IHDR"])
        assert rest == [8, 3, 0, 0, 0], "8 bits, a palette, deflate, no interlacing"
        self.palette = np.frombuffer(body[b"PLTE"], np.uint8).reshape(-1, 3)
        self.opacity = np.full(len(self.palette), 255)
        self.opacity[:len(body[b"tRNS"])] = list(body[b"tRNS"])
        pixels = zlib.decompressobj()
        raw = pixels.decompress(b"".join(b for kind, b in parts if kind == b"IDAT"))
        assert pixels.eof and not pixels.unused_data
        self.pixels = unfilter(raw, self.height, self.width)
        assert self.pixels.max() < len(self.palette)
        self.texts = dict(b.split(b"\0", 1) for kind, b in parts if kind == b"tEXt")
