"""Which host a request may name, and which page may change what is stored. A page whose name has been bound anew to 127.0.0.1 (DNS
rebinding) is this server's own page to a browser, so a server that only this machine reaches, and that needs no token, answers for its
own names only. Browsers say which page sends a request: PUT and DELETE are refused to pages of other origins on every server."""
import json
import socket

import pytest

from conftest import Server, start_server
from connection import wait_until

OURS = ["localhost", "LOCALHOST:1", "localhost.", "page.localhost:8080", "127.0.0.1", "127.0.0.1:80", "127.8.9.1", "[::1]", "[::1]:8080", "[::ffff:127.0.0.1]", ""]
OTHERS = ["evil.example", "evil.example:8080", "notlocalhost", "localhost.evil.example", "127.0.0.1.evil.example", "128.0.0.1", "0.0.0.0", "[::2]", "[::1]evil.example",
          "localhost:80a", "x", "10.0.0.1:8080", "localhost,evil.example", "..localhost", "-.localhost", "a-.localhost", "a..localhost", ".localhost", "%61.localhost", "localhost.."]
PRESET = b'{"config":{"scheme":"rope"}}'


def raw(server, text):
    """The status, and the body as JSON."""
    with socket.create_connection((server.host, server.port), timeout=30) as s:
        s.sendall(text)
        with s.makefile("rb") as stream:
            head, _, body = stream.read().partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), json.loads(body or b"null")


def asks(server, host, method="GET", path="/presets", body=b"", version="1.1", **headers):
    lines = [f"{method} {path} HTTP/{version}", *([] if host is None else [f"Host: {host}"]), *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    lines += ["Connection: close", f"Content-Length: {len(body)}"]
    return raw(server, "\r\n".join([*lines, "", ""]).encode() + body)


def raw_status(server, method, path, host, origin=None):
    """Of an answer that need not be JSON."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *([f"Origin: {origin}"] if origin else []), "Connection: close", "", ""]
    with socket.create_connection((server.host, server.port), timeout=30) as s, s.makefile("rb") as stream:
        s.sendall("\r\n".join(lines).encode())
        return int(stream.read().split()[1])


@pytest.fixture(scope="module")
def named():
    with start_server("--allowed-host", "Posenc.Example.org", "--allowed-host", "proxy") as server:
        yield server


@pytest.mark.parametrize("host", OURS)
def test_own_names(server, host):
    assert asks(server, host)[0] == 200


@pytest.mark.parametrize("host", OTHERS)
def test_other_names(server, host):
    status, head, problem = asks(server, host)
    assert status == 421 and "application/problem+json" in head
    assert problem["status"] == 421 and problem["title"] == "Misdirected Request" and "--allowed-host" in problem["detail"]


def test_every_path_and_method(server):
    evil = "evil.example:8080"
    for method, path, body in (("GET", "/healthz", b""), ("GET", "/", b""), ("HEAD", "/schemes", b""), ("POST", "/encode", b'{"scheme":"rope","len":2}'), ("PUT", "/presets/a", PRESET),
                               ("DELETE", "/presets/a", b""), ("OPTIONS", "/encode", b""), ("GET", "/nothing", b"")):
        text = "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {evil}", f"Origin: http://{evil}", "Sec-Fetch-Site: same-origin", "Connection: close", f"Content-Length: {len(body)}", "", ""])
        with socket.create_connection((server.host, server.port), timeout=30) as s:
            s.sendall(text.encode() + body)
            assert s.recv(4096).split()[1] == b"421", (method, path)


@pytest.mark.parametrize("target, host, status", [("http://evil.example", "localhost", 421), ("http://evil.example:80", "localhost", 421), ("HTTPS://evil.example", "localhost", 421),
                                                  ("http://-.localhost", "localhost", 421), ("http://localhost", "localhost", 200), ("http://127.0.0.1:9", "evil.example", 200)])
def test_the_host_of_the_target_wins(server, target, host, status):
    """RFC 9112, 3.2.2: a server ignores Host if the target names a host."""
    assert asks(server, host, path=target + "/presets")[0] == status
    assert asks(server, host, path=target + "?x=1", version="1.0")[0] in (421,) if status == 421 else True
    page = {"Origin": target.lower()}
    assert asks(server, host, "PUT", target + "/presets/page", PRESET, **page)[0] in ((421,) if status == 421 else (200, 201))
    asks(server, "localhost", "DELETE", "/presets/page")


def test_without_a_host(server):
    """Browsers always send one; probes and old programs by HTTP/1.0 need not."""
    assert asks(server, None, path="/readyz", version="1.0")[0] == 200


@pytest.mark.parametrize("host", ["posenc.example.org", "posenc.example.org:8443", "PROXY", "localhost"])
def test_allowed_names(named, host):
    assert asks(named, host)[0] == 200


def test_nothing_else_is_allowed(named):
    for host in ("example.org", "x.proxy", "proxy.evil.example"):
        assert asks(named, host)[0] == 421, host


def test_from_the_environment_and_the_file(tmp_path):
    (tmp_path / "config.json").write_text('{"allowed_host":"a.example b.example"}')
    with start_server("--config", str(tmp_path / "config.json")) as server:
        assert [asks(server, host)[0] for host in ("a.example", "b.example", "c.example")] == [200, 200, 421]
    with start_server(env={"POSENC_ALLOWED_HOST": "a.example, b.example"}) as server:
        assert [asks(server, host)[0] for host in ("a.example", "b.example", "c.example")] == [200, 200, 421]


def test_the_value_of_host():
    with start_server("--host", "localhost") as server:
        assert [asks(server, host)[0] for host in ("localhost", "evil.example")] == [200, 421]


@pytest.mark.parametrize("flags", [["--host", "0.0.0.0"], ["--token-file"]])
def test_where_others_reach_it_or_tokens_are_needed(tmp_path, flags):
    """There a page gains nothing by the name: other machines have names of their own, and a page has no token."""
    (tmp_path / "tokens").write_text("user secret-of-twenty-characters write\n")
    with start_server(*flags, *([str(tmp_path / "tokens")] if flags[-1] == "--token-file" else [])) as server:
        server.host = "127.0.0.1"
        assert asks(server, "posenc.example.org", Authorization="Bearer secret-of-twenty-characters")[0] == 200


def test_a_unix_socket(tmp_path):
    path = str(tmp_path / "s")
    found = Server._wait_until_listening  # a Unix socket has no port to find
    Server._wait_until_listening = lambda self: (path, 0)
    try:
        with start_server("--socket", path) as server:
            assert wait_until(lambda: f"unix:{path}" in server.stderr_text())
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                s.sendall(b"GET /readyz HTTP/1.1\r\nHost: posenc.example.org\r\nConnection: close\r\n\r\n")
                assert s.recv(4096).split()[1] == b"200"
    finally:
        Server._wait_until_listening = found


# ---- Pages of other origins -------------------------------------------------------------------------------------------

OWN_PAGES = [("localhost:8080", "http://localhost:8080"), ("localhost", "http://localhost"), ("localhost", "https://localhost"), ("localhost:443", "https://LOCALHOST"),
             ("[::1]:8080", "http://[::1]:8080"), ("localhost:80", "http://localhost")]
FOREIGN_PAGES = [("localhost:8080", origin) for origin in ("http://evil.example", "http://localhost", "http://localhost:3000", "null", "file://", "http://localhost:8080.evil.example",
                                                           "http://127.0.0.1:8080", "localhost:8080")]


@pytest.mark.parametrize("host, origin", OWN_PAGES)
def test_own_pages_may_change(server, host, origin):
    assert asks(server, host, "PUT", "/presets/page", PRESET, Origin=origin)[0] in (200, 201)
    assert asks(server, host, "DELETE", "/presets/page", Origin=origin)[0] == 204


@pytest.mark.parametrize("host, origin", FOREIGN_PAGES)
def test_foreign_pages_may_not(server, host, origin):
    for method, path, body in (("PUT", "/presets/page", PRESET), ("DELETE", "/presets/page", b""), ("PUT", "/weights/page", b"")):
        status, _, problem = asks(server, host, method, path, body, Origin=origin)
        assert status == 403 and "--cors-origin" in problem["detail"], (method, origin)
    assert asks(server, host, "POST", "/encode", b'{"scheme":"rope","len":2}', Origin=origin)[0] == 200  # what changes nothing is answered, and not shown to the page
    assert asks(server, host, path="/presets/page")[0] == 404


@pytest.mark.parametrize("host, origin", FOREIGN_PAGES)
def test_foreign_pages_begin_no_experiment(server, host, origin):
    """Browsers send Sec-Fetch-Site only to hosts that they trust, so a server elsewhere without TLS sees nothing but Origin."""
    short = b'{"scheme":"none","steps":1,"train_len":16,"eval_len":16}'
    status, _, problem = asks(server, host, "POST", "/experiments", short, Origin=origin)
    assert status == 403 and "--cors-origin" in problem["detail"]
    assert raw_status(server, "OPTIONS", "/experiments", host, origin) == 204


@pytest.mark.parametrize("host, origin", OWN_PAGES[:2])
def test_own_pages_begin_experiments(server, host, origin):
    assert raw_status(server, "GET", "/experiments?scheme=none&steps=1&train_len=16&eval_len=16", host, origin) == 200


def test_also_with_tokens_and_beyond_this_machine(tmp_path):
    (tmp_path / "tokens").write_text("user secret-of-twenty-characters write\n")
    with start_server("--host", "0.0.0.0", "--token-file", str(tmp_path / "tokens"), "--cors-origin", "https://app.example") as server:
        server.host = "127.0.0.1"
        token = {"Authorization": "Bearer secret-of-twenty-characters"}
        assert asks(server, "posenc.example", "PUT", "/presets/a", PRESET, Origin="https://evil.example", **token)[0] == 403
        for origin in ("https://app.example", "https://posenc.example"):
            assert asks(server, "posenc.example", "PUT", "/presets/a", PRESET, Origin=origin, **token)[0] in (200, 201)
