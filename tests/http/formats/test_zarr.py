"""/zarr: the bytes of every chunk against /encode; read by zarr, dask, xarray and a reader written from the specification of version 3."""
import contextlib
import http.server
import re
import threading
import time
import urllib.parse

import numpy as np
import pytest

import proxies
from conftest import ROOT, SANITIZED
from replicas import replicas
from tensors import from_raw

STORES = {
    "scheme=alibi&num_heads=3&len=50&outputs=bias": [1, 7, 64, 1000, 10000, 1 << 22],
    "scheme=rope&len=33&head_dim=8": [16, 100, 1 << 22],
    "scheme=sinusoidal&dim=24&len=10&dtype=f64": [8, 100, 1 << 22],
    "scheme=sinusoidal&dim=24&len=10&dtype=f16": [64],
    "scheme=rope&head_dim=8&positions=[5,1.5,3]&scaling={\"type\":\"linear\",\"factor\":2}": [40],
    "scheme=rope&head_dim=8&len=5&base=1e+5": [1 << 22],
    "scheme=alibi&num_heads=2&len=9&outputs=bias,slopes": [16],
}


def path_of(query, key):
    return f"/zarr/{urllib.parse.quote(query, safe='=&,')}/{key}"


def source_of_the_store():
    text = (ROOT / "api/USING.md").read_text()
    return re.search(r"```python\n(import http\.client.*?)```", text, re.S)[1]


def Posenc(address, query):
    """The store of the guide."""
    return module().Posenc(address, query)


def module():
    """Importable by workers in other processes, as a user's file is."""
    import importlib.util
    import sys
    if "posenc_store" not in sys.modules:
        spec = importlib.util.spec_from_loader("posenc_store", loader=None)
        made = importlib.util.module_from_spec(spec)
        exec(compile(source_of_the_store(), "USING.md", "exec"), made.__dict__)
        sys.modules["posenc_store"] = made
    return sys.modules["posenc_store"]


def whole(server, query):
    """{name: array} of /encode."""
    return from_raw(server.get("/encode?" + "&".join(urllib.parse.quote(part, safe="=,[]") for part in query.split("&")) + "&format=raw"))


def get(server, query, key):
    answer = server.get(path_of(query, key))
    assert answer.status == 200, (query, key, answer)
    return answer


def grid_of(shape, chunk):
    return np.ndindex(*(-(-n // c) for n, c in zip(shape, chunk)))


def read_2(server, query):
    found = {}
    metadata = get(server, query, ".zmetadata").json()["metadata"]
    for name in [key[:-8] for key in metadata if key.endswith("/.zarray")]:
        array = metadata[name + "/.zarray"]
        assert array == get(server, query, name + "/.zarray").json() and metadata[name + "/.zattrs"] == get(server, query, name + "/.zattrs").json()
        assert (array["zarr_format"], array["compressor"], array["filters"], array["order"]) == (2, None, None, "C")
        fill = np.array(array["fill_value"], array["dtype"])
        found[name] = assemble(server, query, name, array["shape"], array["chunks"], array["dtype"], fill)
    return found, metadata


def assemble(server, query, name, shape, chunk, dtype, fill):
    padded = np.zeros([-(-n // c) * c for n, c in zip(shape, chunk)], dtype)
    for place in grid_of(shape, chunk):
        body = get(server, query, f"{name}/{'.'.join(map(str, place)) or '0'}").body
        here = np.frombuffer(body, dtype).reshape(chunk)
        padded[tuple(slice(i * c, (i + 1) * c) for i, c in zip(place, chunk))] = here
    inner = tuple(slice(0, n) for n in shape)
    outside = np.ones(padded.shape, bool)
    outside[inner] = False
    np.testing.assert_array_equal(padded[outside], np.broadcast_to(fill, padded[outside].shape))
    return padded[inner]


def read_3(server, query):
    """From the specification of version 3: regular grid, key encoding v2, codec bytes."""
    root = get(server, query, "zarr.json").json()
    assert (root["zarr_format"], root["node_type"]) == (3, "group") and root["consolidated_metadata"]["kind"] == "inline"
    assert root["consolidated_metadata"]["must_understand"] is False
    found = {}
    for name, array in root["consolidated_metadata"]["metadata"].items():
        assert array == get(server, query, name + "/zarr.json").json()
        assert (array["zarr_format"], array["node_type"], array["chunk_grid"]["name"]) == (3, "array", "regular")
        assert array["codecs"] == [{"name": "bytes", "configuration": {"endian": "little"}}]
        assert array["chunk_key_encoding"] == {"name": "v2", "configuration": {"separator": "."}}
        assert len(array["dimension_names"]) == len(array["shape"]) and array["attributes"] == {}
        dtype = np.dtype(array["data_type"]).newbyteorder("<")
        found[name] = assemble(server, query, name, array["shape"], array["chunk_grid"]["configuration"]["chunk_shape"], dtype,
                               np.array(array["fill_value"], dtype))
    return found, root


@pytest.mark.parametrize("query,chunk", [(query, chunk) for query, chunks in STORES.items() for chunk in chunks])
def test_the_chunks_are_the_answer(server, query, chunk):
    if chunk == 1 or chunk == 7:
        query = query.replace("len=50", "len=6")
    expected = whole(server, query)
    store = f"{query}&chunk={chunk}" if chunk != 1 << 22 else query
    for read in (read_2, read_3):
        found, _ = read(server, store)
        assert list(found) == list(expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype and found[name].shape == array.shape
            np.testing.assert_array_equal(found[name], array)


# ---- As an answer that may be kept ---------------------------------------------------------------------------------------------


def test_every_key_has_its_own_tag(server):
    keys = [".zgroup", ".zattrs", ".zmetadata", "zarr.json", "bias/.zarray", "bias/.zattrs", "bias/zarr.json", "bias/0.0.0", "bias/1.0.0"]
    queries = ["scheme=alibi&num_heads=2&len=16&outputs=bias", "scheme=alibi&num_heads=2&len=17&outputs=bias", "scheme=alibi&num_heads=2&len=16&outputs=bias&chunk=1024"]
    tags = [get(server, query, key).headers["ETag"] for query in queries for key in keys if key != "bias/1.0.0" or "chunk" in query]
    same = [(".zgroup",), (".zattrs",)]
    assert len(set(tags)) >= len(tags) - 2 * len(same) * 2
    per_store = [get(server, queries[2], key).headers["ETag"] for key in keys]
    assert len(set(per_store)) == len(keys)


# ---- Refusals ------------------------------------------------------------------------------------------------------------------

A = "scheme=alibi&num_heads=2&len=16"


@pytest.mark.skipif(SANITIZED, reason="measures time")
def test_the_end_of_four_tebibytes_comes_as_fast_as_the_beginning(server):
    n = 1 << 24
    query = f"scheme=sinusoidal&dim=65536&len={n}"  # 2^24 rows of 256 KiB
    array = get(server, query, "encoding/.zarray").json()
    assert array["shape"] == [n, 65536] and array["chunks"] == [16, 65536]
    last, times = n // 16 - 1, {}
    for chunk in [0, last] * 5:
        begun = server.processor()
        body = get(server, query, f"encoding/{chunk}.0").body
        times.setdefault(chunk, []).append(server.processor() - begun)
    assert len(body) == 4 << 20 and min(times[last]) < 3 * min(times[0]), times
    rows = server.ask(scheme="sinusoidal", dim=65536, offset=n - 16, len=16, format="raw").body
    assert body == rows


# ---- Readers that others wrote -------------------------------------------------------------------------------------------------


@pytest.fixture
def zarr():
    return pytest.importorskip("zarr")


def address_of(server):
    return f"{server.host}:{server.port}"


def test_zarr_reads_it(server, zarr):
    query = "scheme=alibi&num_heads=3&len=101&outputs=bias&chunk=5000"
    expected = whole(server, query.replace("&chunk=5000", ""))["bias"]
    store = zarr.storage.KVStore(Posenc(address_of(server), query))
    for group in (zarr.open(store, mode="r"), zarr.open_consolidated(store, mode="r")):
        np.testing.assert_array_equal(group["bias"][:], expected)
        np.testing.assert_array_equal(group["bias"][1, 90:, ::7], expected[1, 90:, ::7])
        assert group.attrs["scheme"] == "alibi"


def test_xarray_reads_it_with_names(server, zarr):
    xarray = pytest.importorskip("xarray")
    store = zarr.storage.KVStore(Posenc(address_of(server), "scheme=rope&len=33&head_dim=8&chunk=100"))
    data = xarray.open_zarr(store, consolidated=True)
    expected = whole(server, "scheme=rope&len=33&head_dim=8")
    assert data["cos"].dims == data["sin"].dims == ("position", "pair")
    for name in ("cos", "sin"):
        np.testing.assert_array_equal(data[name].values, expected[name])


class Front(http.server.BaseHTTPRequestHandler):
    """In front of posencd: some chunks fail, for a while or for ever."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        key = urllib.parse.unquote(self.path).split("/")[-1]
        self.server.counts[key] = self.server.counts.get(key, 0) + 1
        status = self.server.status_of(key, self.server.counts[key])
        body = b"{}"
        if status == 200:
            answer = self.server.behind.get(self.path)
            status, body = answer.status, answer.body
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def front(server, status_of):
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
    made.behind, made.status_of, made.counts = server, status_of, {}
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{made.server_port}"
    finally:
        made.shutdown()
        made.server_close()


def test_a_chunk_that_does_not_come_raises(server, zarr, monkeypatch):
    """What zarr-python 2 itself would fill with NaN; and what fails for a while only is asked again."""
    monkeypatch.setattr(module().time, "sleep", lambda s: None)
    query = "scheme=alibi&num_heads=2&len=64&outputs=bias&chunk=4096"
    expected = whole(server, query.replace("&chunk=4096", ""))["bias"]
    with front(server, lambda key, n: 503 if key == "1.2.0" else 200) as address:
        array = zarr.open(zarr.storage.KVStore(Posenc(address, query)), mode="r")["bias"]
        np.testing.assert_array_equal(array[0], expected[0])
        with pytest.raises(OSError, match="503"):
            array[:]
    with front(server, lambda key, n: 503 if n < 3 and key[0].isdigit() else 200) as address:
        array = zarr.open(zarr.storage.KVStore(Posenc(address, query)), mode="r")["bias"]
        np.testing.assert_array_equal(array[:], expected)
    with pytest.raises(OSError, match="422"):
        Posenc(address_of(server), "scheme=alib&len=4")[".zgroup"]


def test_the_store_is_read_only_and_small(server):
    store = Posenc(address_of(server), A)
    with pytest.raises(TypeError):
        store["x"] = b""
    with pytest.raises(KeyError):
        store["nothing"]
    lines = [line for line in source_of_the_store().splitlines() if line.strip()]
    assert len(lines) <= 40


WORKERS = """
import sys, dask.array, distributed, zarr
sys.path.insert(0, sys.argv[3])
from posenc_store import Posenc
if __name__ == "__main__":
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1") as cluster, distributed.Client(cluster):
        store = zarr.storage.KVStore(Posenc(sys.argv[1], sys.argv[2]))
        print(repr(float(dask.array.from_zarr(zarr.open(store, mode="r")["bias"]).sum(dtype="f8").compute())))
"""


@pytest.mark.skipif(SANITIZED, reason="the same bytes on the wire")
def test_distributed_workers_sum_it(server, tmp_path):
    pytest.importorskip("distributed")
    import subprocess
    (tmp_path / "posenc_store.py").write_text(source_of_the_store())
    (tmp_path / "run.py").write_text(WORKERS)
    query = "scheme=alibi&num_heads=8&len=512&outputs=bias&chunk=500000"
    done = subprocess.run(["/usr/bin/python3", tmp_path / "run.py", address_of(server), query, tmp_path], capture_output=True, text=True, timeout=100,
                          env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout.split()[-1]) == whole(server, query.replace("&chunk=500000", ""))["bias"].sum(dtype="f8")


@pytest.mark.slow
def test_dask_sums_sixteen_gibibytes_over_several_servers(zarr):
    """ALiBi of 16 heads and 16384 positions, in 4096 chunks, through HAProxy; the sum is known by arithmetic."""
    dask_array = pytest.importorskip("dask.array")
    n = 16384
    with replicas("--trusted-proxy", "127.0.0.1", "--log-level", "warn") as three, \
            proxies.start_balancer("haproxy", [replica.port for replica in three]) as proxy:
        time.sleep(2)
        array = zarr.open(zarr.storage.KVStore(Posenc(f"127.0.0.1:{proxy.port}", f"scheme=alibi&num_heads=16&len={n}&outputs=bias")), mode="r")["bias"]
        assert array.nbytes == 16 << 30
        begun = time.monotonic()
        got = dask_array.from_zarr(array).sum(dtype="f8").compute(scheduler="threads", num_workers=4)
        print(f"{(16 << 30) / (time.monotonic() - begun) / 1e6:.0f} MB/s")
        slopes = sum(2 ** (-(h + 1) / 2) for h in range(16))
        distances = 2 * sum((n - d) * d for d in range(1, n))
        assert got == pytest.approx(-slopes * distances, rel=1e-6)
