"""Owns what right means: rows of ../cases with what they expect, and what is large or drawn anew with a check of its whole answer against
NumPy in float64. A check raises AssertionError; nothing of ours is compared with itself."""
import functools
import hashlib
import json
import re

import numpy as np

import run
import safetensors_reader
import truth.bias
from pictures import level
from png_reader import Picture
from tensors import MIME, from_npy, npy

NEAR = {"f32": 7e-8}  # half a unit in the last place below 1
BASE = 10000.0


def near(got, want, tolerance):
    assert got.shape == want.shape, f"shape {got.shape}, not {want.shape}"
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(got.astype("f8") - want) <= tolerance) | (got == want))
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(wrong))
        raise AssertionError(f"{got[at]!r} at {at}, not {want[at]!r}; {int(wrong.sum())} of {wrong.size} values are wrong")


class Ask:
    """One request; check(answer) sees whole answers of status `status` only."""

    def __init__(self, method, path, check, body=b"", headers=None, status=200):
        self.method, self.path, self.check, self.body, self.headers, self.status = method, path, check, body, headers or {}, status

    def __repr__(self):
        return f"{self.method} {self.path[:200]} {bytes(self.body[:160])!r}"


def posted(fields, want, tolerance, path="/encode"):
    """Fields as JSON; want: arrays by name."""
    def check(answer):
        got = run.arrays(answer)
        assert list(got) == list(want), list(got)
        for name, wanted in want.items():
            near(got[name], wanted, tolerance)
    return Ask("POST", path, check, json.dumps(fields).encode())


# ---- Rows ------------------------------------------------------------------------------------------------------------------

IN_ANY_FORM = {"numbers", "cells", "names", "shapes", "truth", "tolerance"}


def is_alone(row):
    """Answered, and judged without asking more."""
    expect = row["expect"]
    is_answered = not run.is_refusal(row) and expect.get("status", 200) == 200
    return is_answered and "flags" not in row and "head" not in row and not {"law", "same", "differs"} & set(expect)


def rows(*files):
    """A function that draws one row of these files, tensors in one of three formats where the row leaves it open."""
    found = [row for file in files for row in run.every(file) if is_alone(row)]
    assert found, files

    def ask(rng):
        row = rng.choice(found)
        if set(row["expect"]) <= IN_ANY_FORM and "request" in row and "post" in row and not {"format", "digits"} & set(row["request"]) \
                and not re.search("format=|digits=", row["post"]):
            row = run.again(row, format=rng.choice(["json", "raw", "safetensors"]))
        method, path, body, headers = run.sent(row)

        def check(answer):
            for name, wanted in row["expect"].items():
                run.KINDS[name](wanted, answer, row, None)
        return Ask(method.upper(), path, check, body or b"", headers)
    return ask


# ---- Tables ----------------------------------------------------------------------------------------------------------------


def angles(positions, width):
    return np.asarray(positions, float)[:, None] * BASE ** (-2.0 * np.arange(width // 2) / width)


def sinusoidal(positions, dim):
    a = angles(positions, dim)
    return np.stack([np.sin(a), np.cos(a)], -1).reshape(len(positions), dim)


def alibi(n, heads=8, first=0, last=None):
    """[rows, n] of [heads, n, n], exact: the slopes of 8 heads are powers of two."""
    row = np.arange(first, heads * n if last is None else last)
    return -(2.0 ** -(row // n + 1.0))[:, None] * np.abs(np.arange(n)[None] - (row % n)[:, None])


def ask_cached(rng):
    """Few requests, asked again and again: kept answers, tags, conditions."""
    n = rng.randint(1, 6)
    path = f"/encode?scheme=sinusoidal&dim=8&len={n}&format=npy"
    return Ask("GET", path, lambda answer: near(from_npy(answer), sinusoidal(range(n), 8), NEAR["f32"]))


def ask_probe(rng):
    """How soon these are answered under load: test_saturation.py."""
    return Ask("GET", rng.choice(["/healthz", "/readyz", "/metrics"]), lambda answer: None)


def ask_range(rng):
    n = rng.randint(2, 900)
    first = rng.randrange(n)
    want = sinusoidal(range(first, n), 16)

    def check(answer):
        assert answer.headers["Content-Range"] == f"bytes {first * 64}-{n * 64 - 1}/{n * 64}"
        near(np.frombuffer(answer.body, "<f4").reshape(-1, 16), want, NEAR["f32"])
    return Ask("GET", f"/encode?scheme=sinusoidal&dim=16&len={n}&format=raw", check, headers={"Range": f"bytes={first * 64}-"}, status=206)


# ---- Tensors sent ------------------------------------------------------------------------------------------------------------


def normal(rng, *shape):
    return np.random.default_rng(rng.getrandbits(32)).standard_normal(shape).astype("f4")


def ask_upload(rng):
    """4 to 16 MiB, handed back: position 0 turns nothing."""
    n = rng.choice([4, 8, 16]) * (1 << 18) // 64
    q = normal(rng, 1, 1, n, 64)
    path = "/rotate?scheme=rope&format=raw&rotary_dim=2&base=10000"
    want = q.astype("f8").copy()
    a = np.arange(n) * 1.0
    want[0, 0, :, 0] = q[0, 0, :, 0] * np.cos(a) - q[0, 0, :, 1].astype("f8") * np.sin(a)
    want[0, 0, :, 1] = q[0, 0, :, 1] * np.cos(a) + q[0, 0, :, 0].astype("f8") * np.sin(a)

    def check(answer):
        near(np.frombuffer(answer.body, "<f4").reshape(q.shape), want, 1e-6)
    return Ask("POST", path, check, npy(q), {"Content-Type": MIME["npy"]})


def ask_picture(rng):
    """Values exact in float32, so that the colours are NumPy's."""
    n = rng.randint(2, 200)
    expected = level(alibi(n, 1))

    def check(answer):
        picture = Picture(answer.body)
        assert (picture.height, picture.width) == (n, n)
        opaque = np.flatnonzero(picture.opacity)
        assert (opaque[expected] == picture.pixels).all()
    fields = {"scheme": "alibi", "num_heads": 8, "len": n, "outputs": ["bias"], "format": "png", "zoom": 1}
    return Ask("POST", "/encode", check, json.dumps(fields).encode())


# ---- Streams -----------------------------------------------------------------------------------------------------------------


class AlibiBytes:
    """Looks at a stream of [8, n, n] float32 block by block; `skip` bytes of header come first."""

    def __init__(self, n, skip=0):
        self.n, self.skip, self.at, self.rest = n, skip, 0, b""

    def __call__(self, block):
        if self.skip:
            self.skip, block = max(0, self.skip - len(block)), block[self.skip:]
        data = self.rest + block
        whole = len(data) // 4 * 4
        self.rest = data[whole:]
        got = np.frombuffer(data[:whole], "<f4")
        at = np.arange(self.at, self.at + len(got))
        row, column = np.divmod(at, self.n)
        head, query = np.divmod(row, self.n)
        wrong = np.flatnonzero(got != -(2.0 ** -(head + 1.0)) * np.abs(column - query))
        assert not len(wrong), f"element {at[wrong[0]]} of the stream is {got[wrong[0]]}; {len(wrong)} of {len(got)} are wrong"
        self.at += len(got)


def stream_fields(n, format_="raw"):
    return {"scheme": "alibi", "num_heads": 8, "len": n, "outputs": ["bias"], "format": format_}


# ---- Weights -----------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def buckets():
    return truth.bias.t5_buckets(np.arange(20.0), np.arange(20.0))


def weights_steps(rng, name):
    """PUT, GET, use, DELETE, GET: every answer known beforehand."""
    table = normal(rng, 32, 2)
    file = safetensors_reader.dumps({"table": table})
    tag = f'"{hashlib.sha256(file).hexdigest()}"'

    def same(answer):
        assert answer.body == file and answer.headers["ETag"] == tag
    fields = {"scheme": "t5", "num_heads": 2, "len": 20, "weights": name, "outputs": ["bias"], "format": "raw"}
    want = {"bias": table.astype("f8")[buckets()].transpose(2, 0, 1)}
    path = f"/weights/{name}"
    return [Ask("PUT", path, lambda answer: None, file, status=201), Ask("GET", path, same), posted(fields, want, 1e-9),
            Ask("DELETE", path, lambda answer: None, status=204), Ask("GET", path, lambda answer: None, status=404)]
