"""npz as a body: files as np.savez writes them, cut everywhere and damaged at random. Archives that are inconsistent, overlapping or compressed:
../cases/refused_formats.jsonl."""
import io
import random
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
