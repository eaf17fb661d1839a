"""Reads a zip file once from front to back, as it arrives and without keeping it (PKWARE APPNOTE 6.3.10, §4.3). Its
directory is then read by Python's zipfile, which sees only the end of the file."""
import io
import struct
import zipfile
import zlib

TAIL = 1 << 16  # more than any directory of ours


class Tail(io.RawIOBase):
    """A file of which only the last bytes are there; zipfile seeks from the end and needs no others."""

    def __init__(self, tail, size):
        self.tail, self.size, self.at = tail, size, 0

    def seekable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = {0: 0, 1: self.at, 2: self.size}[whence] + offset
        return self.at

    def read(self, n=-1):
        begin = self.at - (self.size - len(self.tail))
        assert begin >= 0, "the directory is larger than it should be"
        got = self.tail[begin:] if n < 0 else self.tail[begin:begin + n]
        self.at += len(got)
        return got


class Reader:
    """read(n, look) hands out blocks of at most n bytes, as test_streaming.Stream does."""

    def __init__(self, read, length):
        self.read_blocks, self.length, self.at, self.tail = read, length, 0, b""

    def take(self, n, look=lambda block: None):
        """The next n bytes pass by look(); nothing but the tail is kept."""
        def seen(block):
            if self.at + len(block) > self.length - TAIL:
                self.tail = (self.tail + bytes(block))[-TAIL:]
            self.at += len(block)
            look(block)
        assert self.read_blocks(n, look=seen) == n, "the body ends early"

    def bytes(self, n):
        parts = []
        self.take(n, lambda block: parts.append(bytes(block)))
        return b"".join(parts)


def entry(reader, signature):
    """(name, bytes, CRC, offset, is zip64, head) of the entry whose local header begins with signature; head: its first bytes."""
    at = reader.at - 4
    assert signature == b"PK\3\4", signature
    version, flags, method, _, _, crc, packed, size, n_name, n_extra = struct.unpack("<5H3I2H", reader.bytes(26))
    name, extra = reader.bytes(n_name).decode(), reader.bytes(n_extra)
    assert flags == 8 and method == 0 and crc == 0, "stored, CRC after the data"
    is_long = size == 0xFFFFFFFF
    if is_long:
        assert packed == size and version >= 45 and extra[:4] == struct.pack("<2H", 1, 16)
        size, packed = struct.unpack("<2Q", extra[4:])
    assert packed == size
    sum_, head = [0], []

    def look(block):
        sum_[0] = zlib.crc32(block, sum_[0])
        if not head:
            head.append(bytes(block[:256]))
    reader.take(size, look)
    descriptor = reader.bytes(24 if is_long else 16)
    assert struct.unpack("<4sI2Q" if is_long else "<4s3I", descriptor) == (b"PK\7\10", sum_[0], size, size)
    return name, size, sum_[0], at, is_long, head[0]


def check_end(tail, length, directory, n):
    """The records behind a directory of n entries (§4.3.14-16), every field: zipfile looks at half of them."""
    n_bytes, at = length - 22 - directory, directory
    if directory >= 0xFFFFFFFF:
        n_bytes -= 56 + 20
        end64, locator = tail[-98:-42], tail[-42:-22]
        assert struct.unpack("<4sQ2H2I4Q", end64) == (b"PK\6\6", 44, 45, 45, 0, 0, n, n, n_bytes, directory)
        assert struct.unpack("<4sIQI", locator) == (b"PK\6\7", 0, directory + n_bytes, 1)
        at = 0xFFFFFFFF
    assert struct.unpack("<4s4H2IH", tail[-22:]) == (b"PK\5\6", 0, 0, n, n, n_bytes, at, 0)


def read(read_blocks, length):
    """Every entry, checked against its descriptor and against the directory."""
    reader, entries = Reader(read_blocks, length), []
    while (signature := reader.bytes(4)) == b"PK\3\4":
        entries.append(entry(reader, signature))
    assert signature == b"PK\1\2"
    directory = reader.at - 4
    reader.take(length - reader.at)
    check_end(reader.tail, length, directory, len(entries))
    with zipfile.ZipFile(Tail(reader.tail, length)) as directory:
        said = [(i.filename, i.file_size, i.CRC, i.header_offset) for i in directory.infolist()]
        assert all(i.compress_size == i.file_size and i.compress_type == 0 for i in directory.infolist())
    assert said == [e[:4] for e in entries]
    return entries
