"""Owns what right means: every request of the well-behaved with a check of its whole answer against NumPy in float64, by the
formulas of tests/truth/. A check raises AssertionError; nothing of ours is compared with itself."""
import functools
import hashlib
import json

import numpy as np

import oip_client
import truth
import truth.attention
import truth.bias
import safetensors_reader
from pictures import level
from png_reader import Picture
from tensors import MIME, from_json, from_npy, from_npz, from_raw, from_safetensors, multipart, npy

# Half a unit in the last place below 1, and what float64 loses at position 10^4.
NEAR = {"f32": 7e-8, "f64": 2e-11, "f16": 2.5e-4, "bf16": 2e-3}
READERS = {"json": from_json, "raw": from_raw, "npz": from_npz, "safetensors": from_safetensors}
BASE = 10000.0


def near(got, want, tolerance):
    assert got.shape == want.shape, f"shape {got.shape}, not {want.shape}"
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(got.astype("f8") - want) <= tolerance) | (got == want))
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(wrong))
        raise AssertionError(f"{got[at]!r} at {at}, not {want[at]!r}; {int(wrong.sum())} of {wrong.size} values are wrong")


def arrays_of(answer, format_, names):
    assert answer.headers["Content-Type"].split(";")[0] == MIME[format_], answer.headers["Content-Type"]
    if format_ == "npy":
        return {names[0]: from_npy(answer)}
    got = READERS[format_](answer)
    assert list(got) == list(names), list(got)
    return got


class Ask:
    """One request; check(answer) sees whole answers of status `status` only."""

    def __init__(self, method, path, check, body=b"", headers=None, status=200):
        self.method, self.path, self.check, self.body, self.headers, self.status = method, path, check, body, headers or {}, status

    def __repr__(self):
        return f"{self.method} {self.path[:200]} {bytes(self.body[:160])!r}"


def posted(fields, want, tolerance, path="/encode"):
    """Fields as JSON; want: arrays by name."""
    def check(answer):
        for name, got in arrays_of(answer, fields["format"], list(want)).items():
            near(got, want[name], tolerance)
    return Ask("POST", path, check, json.dumps(fields).encode())


# ---- Analyses --------------------------------------------------------------------------------------------------------------


def decay(n, dim):
    """B(d) = (1/C) sum over j of |sum of exp(i d w_c) over c < j|, the bound of Su et al. (2021), section 3.4.3."""
    waves = np.exp(1j * angles(np.arange(n), dim))
    return np.abs(np.cumsum(waves, axis=1)).mean(axis=1)


def ask_analysis(rng):
    n, dims = rng.randint(2, 600), [2 * rng.randint(1, 64) for _ in range(rng.randint(1, 3))]
    fields = {"configs": [{"head_dim": dim} for dim in dims], "scheme": "rope", "len": n, "metrics": ["decay"],
              "format": rng.choice(["json", "raw", "npz", "safetensors"])}
    return posted(fields, {f"decay.{i}": decay(n, dim) for i, dim in enumerate(dims)}, 1e-10, "/analyze")


def ask_diagnosis(rng):
    """q rotated by another layout or another offset than believed: the code of the difference."""
    dim, n, offset = 2 * rng.randint(2, 32), rng.randint(2, 100), rng.randint(1, 1000)
    q = np.random.default_rng(rng.getrandbits(32)).standard_normal((n, dim)).astype("f4")
    a, (first, second) = angles(offset + np.arange(n), dim), np.split(q.astype("f8"), 2, axis=1)
    turned = np.hstack([first * np.cos(a) - second * np.sin(a), second * np.cos(a) + first * np.sin(a)]).astype("f4")
    belief, code = rng.choice([({"layout": "interleaved", "offset": offset}, "layout_swapped"), ({"layout": "half", "offset": offset - 1}, "off_by_one"),
                               ({"layout": "half", "offset": offset}, "as_believed")])
    body, headers = multipart(request=json.dumps({"scheme": "rope", **belief}), q=npy(q), q_out=npy(turned))

    def check(answer):
        found = json.loads(answer.body)
        assert found["explained"] and [finding["code"] for finding in found["findings"]][:1] == [code], (belief, found["findings"])
    return Ask("POST", "/diagnose", check, body, headers)


# ---- Tables ----------------------------------------------------------------------------------------------------------------


def angles(positions, width):
    return np.asarray(positions, float)[:, None] * BASE ** (-2.0 * np.arange(width // 2) / width)


def sinusoidal(positions, dim):
    a = angles(positions, dim)
    return np.stack([np.sin(a), np.cos(a)], -1).reshape(len(positions), dim)


def form(rng):
    """bf16 has no NumPy dtype, so no npy."""
    format_ = rng.choice(["json", "raw", "npy", "npz", "safetensors"])
    return format_, rng.choice(["f32", "f64", "f16"] + ["bf16"] * (format_ in ("raw", "safetensors", "json")))


def sequence(rng):
    """(fields, positions)"""
    if rng.random() < 0.3:
        positions = [rng.randrange(-5000, 10000) for _ in range(rng.randint(1, 400))]
        return {"positions": positions}, positions
    n, offset = rng.randint(1, 120), rng.randint(-100, 9000)
    return {"len": n, "offset": offset}, range(offset, offset + n)


def ask_sinusoidal(rng):
    format_, dtype = form(rng)
    fields, positions = sequence(rng)
    dim = rng.choice([2, 16, 64, 128])
    want = {"encoding": sinusoidal(positions, dim)}
    return posted({"scheme": "sinusoidal", "dim": dim, "format": format_, "dtype": dtype, **fields}, want, NEAR[dtype])


def ask_rope(rng):
    format_, dtype = form(rng)
    fields, positions = sequence(rng)
    width = rng.choice([2, 32, 64])
    a = angles(positions, width)
    want = {"cos": np.cos(a), "sin": np.sin(a)}
    names = ["cos"] if format_ == "npy" else ["cos", "sin"]
    fields = {"scheme": "rope", "head_dim": width, "format": format_, "dtype": dtype, "outputs": names, **fields}
    return posted(fields, {name: want[name] for name in names}, NEAR[dtype])


def alibi(n, heads=8, first=0, last=None):
    """[rows, n] of [heads, n, n], exact: the slopes of 8 heads are powers of two."""
    row = np.arange(first, heads * n if last is None else last)
    return -(2.0 ** -(row // n + 1.0))[:, None] * np.abs(np.arange(n)[None] - (row % n)[:, None])


def ask_alibi(rng):
    n, format_ = rng.randint(1, 48), rng.choice(["json", "raw", "npy", "npz", "safetensors"])
    fields = {"scheme": "alibi", "num_heads": 8, "len": n, "outputs": ["bias"], "format": format_}
    return posted(fields, {"bias": alibi(n).reshape(8, n, n)}, 0)


def ask_cached(rng):
    """Few requests, asked again and again: kept answers, tags, conditions."""
    n = rng.randint(1, 6)
    path = f"/encode?scheme=sinusoidal&dim=8&len={n}&format=npy"
    return Ask("GET", path, lambda answer: near(from_npy(answer), sinusoidal(range(n), 8), NEAR["f32"]))


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


def ask_rotate(rng):
    """As multipart, as a safetensors file, as one npy with the request in the query."""
    q = normal(rng, rng.randint(1, 2), rng.randint(1, 4), rng.choice([1, 7, 64, 512]), 64)
    offset, how = rng.randint(0, 5000), rng.choice(["multipart", "safetensors", "npy"])
    want = truth.rotate(q, range(offset, offset + q.shape[2]))
    fields, path = {"scheme": "rope", "offset": offset, "format": "safetensors"}, "/rotate"
    if how == "multipart":
        body, headers = multipart(request=json.dumps(fields), q=npy(q))
    elif how == "safetensors":
        body, headers = safetensors_reader.dumps({"q": q}, {"request": json.dumps(fields)}), {"Content-Type": MIME["safetensors"]}
    else:
        path = f"/rotate?scheme=rope&offset={offset}&format=safetensors"
        body, headers = npy(q), {"Content-Type": MIME["npy"]}
    return Ask("POST", path, lambda answer: near(list(from_safetensors(answer).values())[0], want, 1e-6), body, headers)


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


def ask_attention(rng):
    heads, n, d = rng.choice([(1, 5, 4), (2, 33, 16), (8, 40, 8), (8, 150, 32)])
    q, k, v = (normal(rng, 1, heads, n, d) for _ in range(3))
    scheme = "alibi" if heads == 8 else "none"
    bias = alibi(n).reshape(1, 8, n, n) if heads == 8 else 0
    names = ["probs", "output", "row_entropy"]
    want = truth.attention.attend(q, k, v, bias=bias)
    fields = {"scheme": scheme, "outputs": names, "format": "raw", **({"num_heads": 8} if heads == 8 else {})}
    body, headers = multipart(request=json.dumps(fields), q=npy(q), k=npy(k), v=npy(v))

    def check(answer):
        for name, got in arrays_of(answer, "raw", names).items():
            near(got, want[name], 2e-5)
    return Ask("POST", "/attention", check, body, headers)


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


def ask_oip(rng):
    q, binary = normal(rng, 1, 1, rng.randint(1, 30), 8), rng.random() < 0.5
    offset = rng.randint(0, 900)
    head, tail = oip_client.body_of([oip_client.Input("q", q, binary=binary)], [oip_client.Output("q_out", binary)], "soak",
                                    {"offset": offset})
    headers = {"Inference-Header-Content-Length": len(head), "Content-Type": "application/octet-stream"} if tail else {}
    want = truth.rotate(q, range(offset, offset + q.shape[2]))
    return Ask("POST", "/v2/models/rope/infer", lambda answer: near(oip_client.Result(answer)["q_out"], want, 1e-6), head + tail, headers)


SMALL = [ask_sinusoidal, ask_rope, ask_alibi, ask_cached, ask_cached, ask_range]


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
