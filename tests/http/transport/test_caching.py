"""GET, HEAD and QUERY /encode: the same bytes as POST, entity tags, conditions, ranges, caches (RFC 9110)."""
import json
import random
import socket
import urllib.parse

import numpy as np
import pytest

from asking import refused
from tensors import MIME, from_raw

TABLE = "/encode?scheme=rope&len=40&head_dim=6&format="
BINARY = ["raw", "npy", "safetensors"]


def table(form):
    return TABLE + form + ("&outputs=cos" if form == "npy" else "")


@pytest.mark.parametrize("form", ["json", *BINARY])
def test_get_is_post(server, form):
    posted = server.post("/encode", {"scheme": "rope", "len": 40, "head_dim": 6, "format": form, **({"outputs": ["cos"]} if form == "npy" else {})})
    got = server.get(table(form))
    assert got.status == 200 and got.body == posted.body and got.headers["Content-Type"] == posted.headers["Content-Type"]
    assert "ETag" not in posted.headers and got.headers["ETag"][0] == '"'


@pytest.mark.parametrize("query,request_", [
    ("scheme=alibi&num_heads=2&len=4&causal=true", {"scheme": "alibi", "num_heads": 2, "len": 4, "causal": True}),
    ("scheme=rope&positions=1,2.5,7&outputs=cos,sin", {"scheme": "rope", "positions": [1, 2.5, 7], "outputs": ["cos", "sin"]}),
    ("scheme=sinusoidal&grid=[2,3]&style=mae&dim=8", {"scheme": "sinusoidal", "grid": [2, 3], "style": "mae", "dim": 8}),
    ("preset=llama-3.1&len=3&slice=[[0,2],null]", {"preset": "llama-3.1", "len": 3, "slice": [[0, 2], None]}),
])
def test_parameters_of_the_query(server, query, request_):
    assert server.get("/encode?" + query).body == server.post("/encode", request_).body
    whole = urllib.parse.quote(json.dumps(request_))
    assert server.get("/encode?request=" + whole).body == server.post("/encode", request_).body


def test_a_request_in_the_query_beside_others(server):
    whole = urllib.parse.quote('{"scheme":"rope","len":3}')
    assert server.get(f"/encode?digits=2&request={whole}").body == server.post("/encode", {"scheme": "rope", "len": 3, "digits": 2}).body
    assert server.get(f"/encode?len=3&request={whole}").status == 400  # given twice
    assert server.get("/encode?request=%7B").status == 400


def test_query_method(server):
    body = {"scheme": "rope", "len": 4}
    got = server.request("QUERY", "/encode", json.dumps(body), {"Content-Type": "application/json"})
    assert got.status == 200 and got.body == server.post("/encode", body).body and got.headers["ETag"]
    again = server.request("QUERY", "/encode", json.dumps(body), {"If-None-Match": got.headers["ETag"]})
    assert again.status == 304 and again.body == b""


def test_head(server):
    for form in BINARY:
        head, got = server.request("HEAD", table(form)), server.get(table(form))
        assert head.status == 200 and head.body == b""
        for name in ("Content-Length", "Content-Type", "ETag", "Cache-Control", "Vary", "Posenc-Tensors"):
            assert head.headers[name] == got.headers[name]
    assert server.request("HEAD", "/encode?scheme=rope&len=10000000&format=raw").headers["Content-Length"] == str(10 ** 7 * 64 * 4)


def test_other_methods(server):
    answer = server.request("DELETE", "/encode")
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD, POST, QUERY"
    assert server.get("/rotate").headers["Allow"] == "POST"


# ---- Entity tags ------------------------------------------------------------------------------------------------------------

VARIANTS = ["scheme=rope&len=4", "scheme=rope&len=5", "scheme=rope&len=4&offset=1", "scheme=rope&len=4&dtype=f64", "scheme=rope&len=4&format=raw", "scheme=rope&len=4&digits=3",
            "scheme=rope&len=4&base=5", "scheme=rope&len=4&outputs=cos", "scheme=rope&len=4&outputs=sin", "scheme=rope&len=4&outputs=sin,cos", "scheme=rope&len=4&data=false",
            "scheme=rope&len=4&slice=[0]", "scheme=rope&len=4&slice=[[0,1]]", "scheme=rope&len=4&slice=[[null,null,2]]", "scheme=rope&len=4&slice=[[null,null,2]]&reduce=mean",
            "scheme=sinusoidal&len=4", "scheme=t5&len=4&seed=0", "scheme=t5&len=4&seed=1", "scheme=rope&positions=0,1,2,4", "scheme=rope&positions=0,1,2,5"]


def test_a_tag_for_each_answer(server):
    tags = [server.get("/encode?" + v).headers["ETag"] for v in VARIANTS]
    assert len(set(tags)) == len(tags)
    assert tags == [server.get("/encode?" + v).headers["ETag"] for v in VARIANTS]
    assert server.get("/encode?len=4&scheme=rope").headers["ETag"] == tags[0]
    assert server.get("/encode?scheme=rope&len=4", {"Accept": MIME["raw"]}).headers["ETag"] == tags[4]


@pytest.mark.parametrize("form", ["json", *BINARY])
def test_not_modified(server, form):
    tag = server.get(table(form)).headers["ETag"]
    for value in (tag, f'"x", {tag}', f"W/{tag}", "*", f'"a","b" ,{tag} , "c"'):
        answer = server.get(table(form), {"If-None-Match": value})
        assert answer.status == 304 and answer.body == b"" and answer.headers["ETag"] == tag, value
        assert "Vary" not in answer.headers and answer.headers["Cache-Control"] == "public, max-age=86400"
    for value in ('"x"', tag[:-1], tag[1:-1], tag[:-2] + '"', ""):
        assert server.get(table(form), {"If-None-Match": value}).status == 200, value


def test_a_tag_costs_no_answer(server):
    """64 GiB named at once."""
    path = "/encode?scheme=alibi&num_heads=16&len=32768&format=raw&outputs=bias"
    tag = server.request("HEAD", path).headers["ETag"]
    assert server.get(path, {"If-None-Match": tag}).status == 304


def test_caches(server):
    got = server.get(TABLE + "raw")
    assert got.headers["Cache-Control"] == "public, max-age=86400" and "Vary" not in got.headers
    assert server.get("/encode?scheme=rope&tokens=a,b").headers["Cache-Control"] == "private, no-cache"
    assert "no-store" in server.get("/encode?scheme=rop&len=3").headers["Cache-Control"]


@pytest.mark.parametrize("accept", [None, "*/*", MIME["raw"], "application/json;q=0.5, image/png"])
def test_an_answer_varies_by_accept_only_if_its_url_names_no_format(server, accept):
    """Whole, not modified, a part of it, and by HEAD and QUERY: many caches keep nothing that varies."""
    headers = {"Accept": accept} if accept else {}
    bare = "/encode?scheme=alibi&num_heads=2&len=4&outputs=bias"
    for path, varies in ((bare, "Accept"), *((f"{bare}&format={form}", None) for form in ("raw", "json", "npy", "png"))):
        got = server.get(path, headers)
        tag = got.headers["ETag"]
        for answer in (got, server.request("HEAD", path, headers=headers), server.get(path, {**headers, "If-None-Match": tag}),
                       server.get(path, {**headers, "Range": "bytes=0-3"})):
            assert answer.status in (200, 206, 304) and answer.headers["Vary"] == varies, (path, answer)
    for form, varies in (("", "Accept"), (',"format":"raw"', None)):
        assert server.request("QUERY", "/encode", b'{"scheme":"rope","len":4%s}' % form.encode(), headers).headers["Vary"] == varies


# ---- Ranges -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*(table(f) for f in BINARY), "/encode?scheme=alibi&num_heads=3&len=300&format=raw", "/encode?scheme=sinusoidal&len=5000&dim=100&format=safetensors",
                                  "/encode?scheme=rope&len=7&dtype=bf16&format=raw", "/encode?scheme=t5&len=700&outputs=buckets&format=npy"])
def test_parts_of_the_body(server, path):
    whole = server.get(path)
    n = len(whole.body)
    assert whole.headers["Accept-Ranges"] == "bytes"
    rng = random.Random(1)
    ends = [(0, 0), (0, n - 1), (n - 1, n - 1), (1, n - 2), (n // 2, n // 2 + 5)] + [sorted(rng.sample(range(n), 2)) for _ in range(12)]
    for first, last in ends:
        part = server.get(path, {"Range": f"bytes={first}-{last}"})
        assert part.status == 206 and part.body == whole.body[first:last + 1], (first, last)
        assert part.headers["Content-Range"] == f"bytes {first}-{last}/{n}" and part.headers["ETag"] == whole.headers["ETag"]
        assert part.headers["Content-Length"] == str(last - first + 1)
    cuts = sorted(rng.sample(range(1, n), min(5, n - 1)))
    pieces = [server.get(path, {"Range": f"bytes={a}-{b - 1}"}).body for a, b in zip([0, *cuts], [*cuts, n])]
    assert b"".join(pieces) == whole.body


def test_open_and_last_bytes(server):
    path = TABLE + "raw"
    whole = server.get(path).body
    assert server.get(path, {"Range": "bytes=100-"}).body == whole[100:]
    assert server.get(path, {"Range": "bytes=-7"}).body == whole[-7:]
    assert server.get(path, {"Range": "bytes=-100000"}).body == whole
    assert server.get(path, {"Range": "bytes=10-100000"}).body == whole[10:]


@pytest.mark.parametrize("value", ["bytes=5-2", "bytes=", "bytes=-", "bytes=a-b", "bytes=0-1,4-5", "lines=0-1", "bytes 0-1", "bytes=0-1x", "bytes=99999999999999999999-"])
def test_what_is_no_range_is_the_whole(server, value):
    assert server.get(TABLE + "raw", {"Range": value}).status == 200


def test_a_range_behind_the_end(server):
    n = len(server.get(TABLE + "raw").body)
    for value in (f"bytes={n}-", f"bytes={n + 5}-{n + 9}", "bytes=-0"):
        answer = server.get(TABLE + "raw", {"Range": value})
        assert answer.status == 416 and answer.headers["Content-Range"] == f"bytes */{n}"


@pytest.mark.parametrize("value", ["bytes=-100", "bytes=0-10", "bytes=30-5000000", "bytes=4000000-"])
def test_an_archive_has_no_ranges(server, value):
    """Its end has checksums of all in front of it."""
    path = "/encode?scheme=sinusoidal&dim=512&len=4096&format=npz"
    answer = server.get(path, {"Range": value})
    assert answer.status == 200 and "Accept-Ranges" not in answer.headers
    assert answer.body == server.get(path).body


@pytest.mark.parametrize("path", ["/", "/docs", "/schemes", "/presets", "/healthz", "/version", "/weights", "/weights/absent",
                                  *(TABLE + f for f in ("json", "raw", "npy", "npz", "safetensors", "png", "text"))])
def test_head_has_the_headers_of_get(server, path):
    def lasting(answer):
        return {k: v for k, v in answer.headers.items() if k not in ("Date", "Server-Timing", "X-Request-Id")}

    head, got = server.request("HEAD", path, headers={"Range": "bytes=0-3"}), server.get(path)
    assert head.status == got.status and head.body == b"" and lasting(head) == lasting(got)


@pytest.mark.parametrize("path", [TABLE + "json", "/encode?scheme=rope&len=8192&format=json", "/encode?scheme=rope&len=8192&format=raw", TABLE + "png", "/schemes"])
def test_nothing_follows_the_head(server, path):
    """Not the empty chunk that ends a body of unknown length: it would stand in front of the next answer."""
    with socket.create_connection((server.host, server.port)) as client:
        client.sendall(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        client.settimeout(30)
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(65536)
        assert head.startswith(b"HTTP/1.1 200") and b"Content-Type" in head and head.endswith(b"\r\n\r\n") and head.count(b"\r\n\r\n") == 1
        client.settimeout(1)
        try:
            assert client.recv(100) == b"" and b"Connection: close" in head
        except TimeoutError:
            pass  # kept for the next request


BODIES = [b'{"base":7}', b'{"direction":-1}', b" ", b"x" * 70_000]


@pytest.mark.parametrize("body", BODIES, ids=["base", "direction", "blank", "long"])
@pytest.mark.parametrize("path", ["/encode?scheme=rope&len=3&head_dim=4&outputs=sin", "/encode", "/schemes", "/schemes/rope", "/weights", "/v2", "/v2/models/rope", "/healthz", "/", "/nothing"])
def test_what_a_cache_keeps_depends_on_no_body(server, path, body):
    """RFC 9110, 9.3.1: the content of a GET has no meaning; a client that sends one is told where it belongs."""
    before = server.get(path)
    for method in ("GET", "HEAD"):
        for encode in (False, True):
            headers = {"Transfer-Encoding": "chunked"} if encode else {}
            answer = server.request(method, path, iter([body]) if encode else body, headers)
            assert answer.status == 400, (method, path, answer)
            assert "public" not in answer.headers.get("Cache-Control", "") and "ETag" not in answer.headers
            if method == "GET":
                assert "POST" in answer.json()["detail"] and "QUERY" in answer.json()["detail"]
        assert server.request(method, path, headers={"Content-Length": "0"}).status == before.status
    after = server.get(path)
    assert (after.status, after.body) == (before.status, before.body)


def test_what_a_cache_keeps_depends_on_no_header_it_does_not_name(server):
    """The same URL beside headers that steer other requests: same answer, or one that is not kept."""
    path = "/encode?scheme=rope&len=3&head_dim=4&outputs=sin"
    plain = server.get(path)
    for headers in ({"Content-Type": "application/x-npy"}, {"Content-Type": "multipart/form-data; boundary=b"}, {"Inference-Header-Content-Length": "3"},
                    {"Content-Encoding": "gzip"}, {"X-Request-Timeout": "0.000001"}, {"Authorization": "Bearer x"}, {"Origin": "https://example.org"},
                    {"X-Forwarded-For": "10.0.0.1"}, {"Cookie": "a=b"}, {"X-Request-Id": "y"}):
        answer = server.get(path, headers)
        is_kept = "max-age" in answer.headers.get("Cache-Control", "")
        assert answer.status != 200 or answer.body == plain.body, headers
        assert not is_kept or (answer.status, answer.body) == (200, plain.body), headers
    raw = server.get(path, {"Accept": "application/octet-stream"})
    assert raw.body != plain.body and "Accept" in raw.headers["Vary"] and "Accept" in plain.headers["Vary"]


def test_text_and_other_methods_have_no_ranges(server):
    assert server.get(TABLE + "json", {"Range": "bytes=0-5"}).status == 200 and "Accept-Ranges" not in server.get(TABLE + "json").headers
    body = json.dumps({"scheme": "rope", "len": 3, "format": "raw"})
    for method in ("POST", "QUERY"):
        assert server.request(method, "/encode", body, {"Range": "bytes=0-5"}).status == 200


def test_if_range(server):
    path = TABLE + "raw"
    tag = server.get(path).headers["ETag"]
    assert server.get(path, {"Range": "bytes=0-5", "If-Range": tag}).status == 206
    for other in ('"x"', f"W/{tag}", "Sat, 21 Nov 2026 00:00:00 GMT"):
        assert server.get(path, {"Range": "bytes=0-5", "If-Range": other}).status == 200


def test_a_range_of_an_answer_that_would_take_long(server):
    """The last bytes of 64 GiB."""
    path = "/encode?scheme=alibi&num_heads=16&len=32768&format=raw&outputs=bias"
    part = server.get(path, {"Range": "bytes=-16"})
    assert part.status == 206 and np.frombuffer(part.body, "<f4").tolist() == [-3 * 2.0 ** -8, -2 * 2.0 ** -8, -1 * 2.0 ** -8, 0]
