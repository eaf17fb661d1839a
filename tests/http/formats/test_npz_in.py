"""npz as a body: files as np.savez writes them, and archives that are truncated, inconsistent, overlapping or
compressed."""
import io
import random
import struct
import zipfile

import numpy as np
import pytest

from tensors import from_npz, from_raw, npy, rotate_files

ZIP = {"Content-Type": "application/zip"}
QUERY = "/rotate?scheme=rope&layout=half&format=raw"
Q, K = (np.random.default_rng(i).standard_normal((2, 3, 5, 8)).astype("f4") for i in (0, 1))


def savez(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def archive(entries, **options):
    """A zip of (name, bytes) by Python's zipfile."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", **options) as file:
        for name, data in entries:
            file.writestr(name, data)
    return out.getvalue()


GOOD = savez(q=Q, k=K)


def test_what_numpy_saves(server):
    got = from_raw(server.post(QUERY, GOOD, ZIP))
    expected = rotate_files(server, {"scheme": "rope", "layout": "half"}, q=Q, k=K)
    assert set(got) == {"q", "k"} and all(got[name].tobytes() == expected[name].tobytes() for name in got)
    octets = server.post(QUERY, GOOD, {"Content-Type": "application/octet-stream"})
    assert octets.status == 200 and octets.body == server.post(QUERY, GOOD, ZIP).body


@pytest.mark.parametrize("dtype", ["<f2", "<f8", ">f4", "<i8", "|u1", "|b1"])
def test_dtypes_orders_and_odd_places(server, dtype):
    """Names of any length put the numbers at any address; Fortran's order and big-endian numbers are put in ours."""
    x = (np.arange(24).reshape(4, 6) % 2).astype(dtype)
    for prefix in range(9):
        body = archive([("x.npy", npy(np.asfortranarray(x)))]) if prefix == 0 else savez(x=x)
        extra = io.BytesIO(body)
        with zipfile.ZipFile(extra, "a") as file:
            file.comment = b"c" * prefix
        response = server.post("/encode?scheme=integer&combine=add&format=raw&dtype=f64", extra.getvalue(), ZIP)
        assert response.status == 200, response
        assert np.array_equal(next(iter(from_raw(response).values())), x.astype("f8") + np.arange(4)[:, None])


def test_our_own_answer_is_a_body(server):
    answer = server.post("/rotate?scheme=rope&layout=half&format=npz", GOOD, ZIP)
    back = from_npz(server.post("/rotate?scheme=rope&layout=half&direction=-1&format=npz", answer.body, ZIP))
    assert np.allclose(back["q"], Q, atol=1e-6) and np.allclose(back["k"], K, atol=1e-6)


def test_numeric_lists_by_name(server):
    body = savez(positions=np.array([3, 1, 4, 1, 5]))
    got = from_raw(server.post("/encode?scheme=sinusoidal&dim=8&format=raw", body, ZIP))
    assert np.array_equal(got["encoding"][1], got["encoding"][3]) and got["encoding"].shape == (5, 8)


def refused(server, body, statuses=(400,), *words):
    response = server.post(QUERY, body, ZIP)
    assert response.status in statuses, response
    assert response.headers["Content-Type"] == "application/problem+json"
    assert all(word in response.json()["detail"] for word in words), response.json()["detail"]


def test_compressed_and_encrypted(server):
    out = io.BytesIO()
    np.savez_compressed(out, q=Q)
    refused(server, out.getvalue(), (415,), "compressed", "np.savez")
    flagged = bytearray(GOOD)
    flagged[GOOD.index(b"PK\1\2") + 8] |= 1
    refused(server, bytes(flagged), (415,), "encrypted")


def test_names(server):
    q = npy(Q)
    refused(server, archive([("q.npy", q), ("quux.npy", q)]), (422,), "quux")
    refused(server, archive([("q.txt", q)]), (415,), "q.txt", ".npy")
    refused(server, archive([("q/", b"")]), (415,), "q/")
    refused(server, archive([(".npy", q)]), (415,), ".npy")
    refused(server, archive([("q.npy", b"not an array")]), (400,), "q.npy")
    with pytest.warns(UserWarning):
        twice = archive([("q.npy", q), ("q.npy", q)])
    refused(server, twice, (400,), "twice")
    refused(server, archive([(f"a{i}.npy", q[:0]) for i in range(65)]), (413,), "65", "64")
    assert server.post(QUERY, archive([]), ZIP).status == 422  # nothing to rotate


def with_field(at, width, value, body=GOOD):
    return body[:at] + struct.pack({2: "<H", 4: "<I"}[width], value) + body[at + width:]


CENTRAL, END = GOOD.index(b"PK\1\2"), GOOD.rindex(b"PK\5\6")
SECOND = GOOD.index(b"PK\1\2", CENTRAL + 1)


@pytest.mark.parametrize("body", [
    with_field(CENTRAL + 16, 4, 1),             # CRC
    with_field(CENTRAL + 20, 4, 7),             # two sizes
    with_field(CENTRAL + 42, 4, 1),             # offset of no header
    with_field(CENTRAL + 42, 4, len(GOOD)),
    with_field(CENTRAL + 42, 4, 0xFFFFFFFE),
    with_field(CENTRAL + 28, 2, 0xFFFF),        # name longer than the directory
    with_field(CENTRAL + 30, 2, 0xFFFF),
    with_field(SECOND + 42, 4, 0),              # both entries are the first
    with_field(END + 16, 4, CENTRAL + 1),       # the directory elsewhere
    with_field(END + 16, 4, 0xFFFFFFFF),
    with_field(END + 12, 4, 1),
    with_field(END + 4, 2, 1),                  # another disk
    with_field(END + 10, 2, 1, with_field(END + 8, 2, 1)),
    with_field(END + 10, 2, 3, with_field(END + 8, 2, 3)),
    with_field(END + 20, 2, 5),                 # a comment that is not there
    with_field(26, 2, 4), with_field(28, 2, 60000),  # local header
    GOOD[1:], GOOD + b"x", b"PK\5\6", b"PK\5\6" + b"\0" * 17, GOOD[END:],
], ids=range(22))
def test_archives_that_lie(server, body):
    refused(server, body, (400,))


def test_overlaps(server):
    """Two entries whose data are the same bytes, and one inside the other's data."""
    size = struct.unpack("<I", GOOD[CENTRAL + 24:CENTRAL + 28])[0]
    inner = archive([("k.npy", npy(K))])
    outer = archive([("q.npy", inner)])
    at = outer.index(b"PK\3\4", 4)
    end, central = outer.rindex(b"PK\5\6"), outer.rindex(b"PK\1\2")
    entry = bytearray(inner[inner.index(b"PK\1\2"):inner.rindex(b"PK\5\6")])
    entry[42:46] = struct.pack("<I", at)
    ending = bytearray(outer[end:])
    ending[8:16] = struct.pack("<HHI", 2, 2, end - central + len(entry))
    refused(server, outer[:end] + bytes(entry) + bytes(ending), (400,), "shares bytes")
    assert size == len(npy(Q))


def test_sizes_beyond_the_file(server):
    for value in (len(GOOD), 2 ** 31, 2 ** 32 - 2):
        refused(server, with_field(CENTRAL + 20, 4, value, with_field(CENTRAL + 24, 4, value)), (400,), "reaches")
    refused(server, with_field(CENTRAL + 20, 4, 2 ** 32 - 1, with_field(CENTRAL + 24, 4, 2 ** 32 - 1)), (415,), "zip64")


def test_every_prefix_and_random_damage(server):
    """Refused, or (if the byte is not used) answered as before; never anything else."""
    small = savez(q=np.ones((2, 2), "f4"))
    good = server.post(QUERY, small, ZIP)
    assert good.status == 200
    for n in range(1, len(small)):
        assert server.post(QUERY, small[:n], ZIP).status == 400, n
    chosen = random.Random(4)
    for _ in range(500):
        damaged = bytearray(small)
        damaged[chosen.randrange(len(small))] ^= 1 << chosen.randrange(8)
        response = server.post(QUERY, bytes(damaged), ZIP)
        assert response.status in (400, 413, 415, 422) or response.body == good.body, response
