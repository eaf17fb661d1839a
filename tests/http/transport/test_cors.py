"""Pages of other origins (the Fetch standard's CORS protocol): off unless an origin is listed; preflights; the headers
that pages may read."""
import json

import pytest

from conftest import start_server

PAGE, OTHER = "https://vis.example.org", "http://localhost:3000"
EXPOSED = {"ETag", "Posenc-Tensors", "Posenc-Fits", "Content-Range", "Server-Timing", "X-Request-Id"}


def names(value):
    return {name.strip() for name in (value or "").split(",")}


def test_off_by_default(server):
    answer = server.post("/encode", {"scheme": "rope", "len": 2}, {"Origin": PAGE})
    assert answer.status == 200 and not any(name.startswith("Access-Control") for name in answer.headers)
    answer = server.request("OPTIONS", "/encode", headers={"Origin": PAGE, "Access-Control-Request-Method": "POST"})
    assert answer.status == 204 and "Access-Control-Allow-Origin" not in answer.headers


def test_options_tells_the_methods(server):
    assert server.request("OPTIONS", "/encode").headers["Allow"] == "GET, HEAD, POST, QUERY"
    assert server.request("OPTIONS", "/healthz").headers["Allow"] == "GET, HEAD"
    assert server.request("OPTIONS", "/weights/x").headers["Allow"] == "GET, HEAD, PUT, DELETE"
    assert server.request("OPTIONS", "/nothing").status == 404


@pytest.fixture(scope="module")
def open_server():
    with start_server("--cors-origin", PAGE, "--cors-origin", OTHER) as server:
        yield server


@pytest.mark.parametrize("origin", [PAGE, OTHER])
def test_named_origins_may_read(open_server, origin):
    for answer in (open_server.post("/encode", {"scheme": "rope", "len": 2, "format": "raw"}, {"Origin": origin}), open_server.get("/encode?scheme=rope&len=2", {"Origin": origin}),
                   open_server.get("/schemes", {"Origin": origin}), open_server.post("/encode", {"scheme": "rop"}, {"Origin": origin}), open_server.get("/nothing", {"Origin": origin}),
                   open_server.get("/encode?scheme=rope&len=2", {"Origin": origin, "If-None-Match": "*"})):
        assert answer.headers["Access-Control-Allow-Origin"] == origin and "Origin" in names(", ".join(answer.headers.get_all("Vary")))
        assert names(answer.headers["Access-Control-Expose-Headers"]) == EXPOSED


def test_inferences_say_how_long_their_json_is(open_server):
    """Without that header a page cannot read an answer with bytes."""
    body = b'{"parameters":{"len":2,"binary_data_output":true}}'
    for path in ("/v2/models/rope/infer", "/v2/models/rope/versions/1/infer", "/v2/models/rop/infer"):
        answer = open_server.request("POST", path, body, {"Origin": PAGE})
        assert names(answer.headers["Access-Control-Expose-Headers"]) == EXPOSED | {"Inference-Header-Content-Length"}
    assert names(open_server.get("/v20", {"Origin": PAGE}).headers["Access-Control-Expose-Headers"]) == EXPOSED
    answer = open_server.request("OPTIONS", "/v2/models/rope/infer", headers={"Origin": PAGE, "Access-Control-Request-Method": "POST"})
    assert names(answer.headers["Access-Control-Allow-Headers"]) == {"Content-Type", "Inference-Header-Content-Length"}
    answer = open_server.request("OPTIONS", "/v2/models/rope/infer", headers={"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "inference-header-content-length"})
    assert names(answer.headers["Access-Control-Allow-Headers"]) == {"inference-header-content-length"}


def test_preflight(open_server):
    answer = open_server.request("OPTIONS", "/encode", headers={"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-request-id"})
    assert answer.status == 204 and answer.body == b"" and answer.headers["Access-Control-Allow-Origin"] == PAGE
    assert "POST" in names(answer.headers["Access-Control-Allow-Methods"])
    assert names(answer.headers["Access-Control-Allow-Headers"]) == {"content-type", "x-request-id"}
    assert int(answer.headers["Access-Control-Max-Age"]) > 0
    answer = open_server.request("OPTIONS", "/weights/t5", headers={"Origin": PAGE, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "if-match"})
    assert {"PUT", "DELETE"} <= names(answer.headers["Access-Control-Allow-Methods"]) and names(answer.headers["Access-Control-Allow-Headers"]) == {"if-match"}


@pytest.mark.parametrize("asked", ["x-a,\tx-b", "x-a\x0b", "x-a: b", "x-\xe9"])
def test_what_is_no_list_of_names_is_not_said_again(open_server, asked):
    """Found by fuzzing: bytes of the request stood in a header of ours, and where the HTTP library refused them, with a tab, there was no answer."""
    answer = open_server.request("OPTIONS", "/encode", headers={"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked})
    if "\x0b" in asked:  # the head itself is refused
        assert answer.status == 400 and "Access-Control-Allow-Headers" not in answer.headers
    else:
        assert answer.status == 204 and answer.headers["Access-Control-Allow-Headers"] == "Content-Type"


def test_what_is_too_long_is_not_said_again():
    """A head may have 9 KiB, and the connection has 10 for it and the answer's."""
    with start_server("--cors-origin", "*") as server:
        asking = {"Origin": "https://a", "Access-Control-Request-Method": "POST"}
        answer = server.request("OPTIONS", "/encode", headers={**asking, "Access-Control-Request-Headers": ",".join(["x-name"] * 1100)})
        assert answer.status == 204 and answer.headers["Access-Control-Allow-Headers"] == "Content-Type"
        answer = server.request("OPTIONS", "/encode", headers={**asking, "Origin": "https://" + "a" * 8000})
        assert answer.status == 204 and answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("origin", ["https://evil.example.org", PAGE + ".evil.org", PAGE[:-1], "null", "", PAGE.upper(), "https://vis.example.org http://localhost:3000"])
def test_others_may_not(open_server, origin):
    answer = open_server.post("/encode", {"scheme": "rope", "len": 2}, {"Origin": origin})
    assert answer.status == 200 and "Access-Control-Allow-Origin" not in answer.headers


LONG = b'{"scheme":"floater","dim":512,"positions":[3000],"seed":0}'  # many seconds of one worker


def every_kind(server, headers):
    """Answers from every part of the server that sends one."""
    raw, table = "/encode?scheme=rope&len=2&format=raw", "/encode?scheme=rope&len=100000&format=raw"
    tag = server.get(raw).headers["ETag"]
    tensors = json.dumps({"scheme": "rope", "len": 2}).encode()
    yield "small", server.get(raw, headers)
    yield "the same, kept", server.get(raw, headers)
    yield "stream", server.get(table, headers)
    yield "chunked", server.get("/encode?scheme=rope&len=100000", headers)
    yield "HEAD", server.request("HEAD", table, headers=headers)
    yield "304", server.get(raw, {**headers, "If-None-Match": tag})
    yield "206", server.get(raw, {**headers, "Range": "bytes=0-3"})
    yield "POST", server.request("POST", "/encode", tensors, headers)
    yield "live", server.request("POST", "/experiments", b'{"scheme":"none","steps":1,"train_len":16,"eval_len":16}', headers)
    for status, method, path, body, more in ((404, "GET", "/nothing", None, {}), (405, "DELETE", "/encode", None, {}), (406, "GET", "/encode?scheme=rope&len=2", None, {"Accept": "x/y"}), (422, "GET", "/encode?scheme=rop", None, {}),
                                             (400, "GET", "/healthz", b"{}", {}), (400, "GET", "/healthz", None, {"X-Request-Timeout": "soon"}), (413, "POST", "/encode", b" " * 5000, {}),
                                             (421, "GET", "/encode?scheme=rope&len=2", None, {"Host": "evil.example"}), (503, "POST", "/encode", LONG, {"X-Request-Timeout": "0.01"})):
        answer = server.request(method, path, body, {**headers, **more})
        assert answer.status == status, answer
        yield status, answer
    for path in ("/", "/schemes", "/healthz", "/metrics", "/openapi.json", "/v2", "/cmaps", "/presets"):
        yield path, server.get(path, headers)
    yield "OPTIONS", server.request("OPTIONS", "/encode", headers=headers)
    yield "preflight", server.request("OPTIONS", "/encode", headers={**headers, "Access-Control-Request-Method": "POST"})


@pytest.mark.parametrize("origin", [None, PAGE, "https://else.example"])
def test_caches_know_that_answers_depend_on_the_origin(origin):
    """An answer that was stored for a request without Origin must not be served to the page that may read it with one."""
    with start_server("--cors-origin", PAGE, "--max-body", "4KiB") as server:
        for what, answer in every_kind(server, {"Origin": origin} if origin else {}):
            assert "Origin" in names(", ".join(answer.headers.get_all("Vary", []))), what
            assert answer.headers["Access-Control-Allow-Origin"] == (PAGE if origin == PAGE else None), what


@pytest.mark.parametrize("origin", [None, "null", PAGE])
def test_every_origin(origin):
    """Then no answer depends on it."""
    with start_server("--cors-origin", "*", "--max-body", "4KiB") as server:
        for what, answer in every_kind(server, {"Origin": origin} if origin else {}):
            assert answer.headers.get_all("Access-Control-Allow-Origin") == ["*"] and "Origin" not in names(", ".join(answer.headers.get_all("Vary", []))), what


def test_from_the_environment():
    with start_server(env={"POSENC_CORS_ORIGIN": f"{PAGE}, {OTHER}"}) as server:
        for origin in (PAGE, OTHER):
            assert server.get("/version", {"Origin": origin}).headers["Access-Control-Allow-Origin"] == origin
