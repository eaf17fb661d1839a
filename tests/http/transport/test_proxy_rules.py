"""The rules of deploy/'s proxies about single requests: what a cache may store, which paths are guarded however they are spelled, which
ranges pass, what is asked again. Before a real posencd, and before a server that gives the heads of answers that posencd may give one day."""
import contextlib
import itertools
import json
import os
import re
import shutil
import socket
import socketserver
import subprocess
import threading

import pytest

import proxies
from conftest import SANITIZED, start_server
from proxies import start_balancer
from connection import certificate, wait_until

pytestmark = pytest.mark.skipif(SANITIZED, reason="the same bytes on the wire, but slower than the proxies' limits of time")

ALL = ["haproxy", "nginx", "varnish"]
CACHES = ["nginx", "varnish"]
OUTSIDE = "192.0.2.0/24"  # RFC 5737: no test has such an address


def ask(port, method, target, headers=(), body=b""):
    """Status, headers, body of one request whose target is sent as it is."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers, *([f"Content-Length: {len(body)}"] if body else []), "", ""]
        s.sendall("\r\n".join(lines).encode() + body)
        head, _, rest = s.makefile("rb").read().partition(b"\r\n\r\n")
    status, *fields = head.decode().split("\r\n")
    return int(status.split()[1]), {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}, rest


@contextlib.contextmanager
def before(name, port):
    """The proxy before one server in the place of all three."""
    with start_balancer(name, [port] * 3) as proxy:
        assert wait_until(lambda: ask(proxy.port, "GET", "/readyz")[0] == 200)
        yield proxy


@pytest.fixture(scope="module")
def posencd():
    with start_server("--trusted-proxy", "127.0.0.1") as server:
        yield server


@pytest.fixture(scope="module", params=ALL)
def proxied(request, posencd):
    with before(request.param, posencd.port) as proxy:
        yield proxy


# ---- What a cache may store ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("proxied", CACHES, indirect=True)
def test_a_replaced_and_a_deleted_preset_are_not_answered_from_a_cache(proxied, posencd):
    target = "/encode?preset=team-rules&len=2&format=json"
    answers = []
    for base in (10000, 77, 78):
        put = posencd.request("PUT", "/presets/team-rules", json.dumps({"config": {"scheme": "rope", "head_dim": 4, "base": base}}))
        assert put.status in (200, 201)
        answers.append(ask(proxied.port, "GET", target)[2])
        assert answers[-1] == posencd.get(target).body
        assert ask(proxied.port, "GET", target)[2] == answers[-1]
    assert len(set(answers)) == 3
    assert posencd.request("DELETE", "/presets/team-rules").status == 204
    assert ask(proxied.port, "GET", target)[0] == 422


class Stand(socketserver.ThreadingTCPServer):
    """Answers `?case=NAME` with the head that CASES has for it and the number of the request as its body; counts them."""

    allow_reuse_address, daemon_threads, request_queue_size = True, True, 128

    def __init__(self):
        self.asked, self.heads = [], []
        super().__init__(("127.0.0.1", 0), Stand.Talk)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def n_asked(self, case):
        return self.asked.count(case)

    class Talk(socketserver.StreamRequestHandler):
        def handle(self):
            head = b"".join(itertools.takewhile(lambda line: line not in (b"\r\n", b""), self.rfile)).decode()
            if head:
                fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
                self.rfile.read(int(fields.get("content-length", 0)))
                case = (re.search(r"case=([a-z-]+)", head.split()[1]) or [None, ""])[1]
                self.server.asked.append(case)
                self.server.heads.append(head)
                status, lines, _ = CASES.get(case, (200, [], False))
                if callable(status):
                    status = status(self.server.n_asked(case))
                if status is None:
                    return
                body = b"" if status == 304 else b"%06d" % len(self.server.asked)
                self.wfile.write("\r\n".join([f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close", *lines, "", ""]).encode() + body)
                return  # on a connection that was used before, Varnish itself sends a request without a body again


AGED = "Cache-Control: public, max-age=86400"
# case: status, headers, whether a shared cache may answer the second request with it
CASES = {
    "public": (200, [AGED], True),
    "shared-age": (200, ["Cache-Control: public, s-maxage=600"], True),
    "vary-accept": (200, [AGED, "Vary: Accept"], True),
    "private": (200, ["Cache-Control: private, no-cache"], False),
    "private-aged": (200, ["Cache-Control: private, max-age=600"], False),
    "no-cache": (200, ["Cache-Control: no-cache"], False),
    "no-store": (200, ["Cache-Control: max-age=600, no-store"], False),
    "no-store-capitals": (200, ["Cache-Control: Max-Age=600, No-Store"], False),
    "shared-age-none": (200, ["Cache-Control: public, max-age=600, s-maxage=0"], False),
    "no-age": (200, [], False),
    "cookie": (200, [AGED, "Set-Cookie: a=b"], False),
    "vary-all": (200, [AGED, "Vary: *"], False),
    "misdirected": (421, [], False),
    "not-found": (404, [], False),
    "gone": (410, [], False),
    "moved": (301, ["Location: http://localhost/"], False),
    "unprocessable": (422, [], False),
    "too-many": (429, ["Retry-After: 1"], False),
    "draining": (503, ["Retry-After: 1", "Cache-Control: no-store"], False),
    "then-well": (lambda n: 503 if n <= 3 else 200, [], False),
    "no-answer": (None, [], False),
}


@pytest.fixture(scope="module", params=ALL)
def stood(request):
    with Stand() as stand:
        with before(request.param, stand.port) as proxy:
            yield proxy, stand
        stand.shutdown()


caches_only = pytest.mark.parametrize("stood", CACHES, indirect=True)


@caches_only
@pytest.mark.parametrize("case", [case for case in CASES if case not in ("then-well", "no-answer")])
def test_only_what_may_be_shared_is_stored(stood, case):
    proxy, stand = stood
    status, _, may = CASES[case]
    first, second = (ask(proxy.port, "GET", f"/encode?case={case}") for _ in range(2))
    assert first[0] == second[0] == status
    n_kept = stand.n_asked(case)
    if status != 503:
        assert n_kept == (1 if may else 2) and (first[2] == second[2]) == may
    # A token's answer is neither given to others nor taken from them.
    ask(proxy.port, "GET", f"/encode?case={case}", ["Authorization: Bearer x"])
    assert stand.n_asked(case) > n_kept


@caches_only
def test_a_refusal_is_not_given_again_when_the_server_is_well(stood):
    proxy, _ = stood
    assert [ask(proxy.port, "GET", "/encode?case=then-well")[0] for _ in range(3)] == [503, 200, 200]


# ---- What is asked again ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method, target", [("PUT", "/weights/x?"), ("DELETE", "/presets/x?"), ("PUT", "/%77eights/x?"), ("DELETE", "/preset%73/x?")])
def test_a_change_without_an_answer_is_sent_once(stood, method, target):
    proxy, stand = stood
    n = stand.n_asked("no-answer")
    status, headers, _ = ask(proxy.port, method, f"{target}case=no-answer", body=b"{}" if method == "PUT" else b"")
    assert status in (502, 503) and stand.n_asked("no-answer") == n + 1
    for method, body in (("GET", b""), ("POST", b"{}")):
        n = stand.n_asked("no-answer")
        assert ask(proxy.port, method, "/encode?case=no-answer", body=body)[0] in (502, 503) and stand.n_asked("no-answer") > n + 1, method


def test_the_client_s_host_is_passed_on(stood):
    """posencd compares it with its names and with Origin, which has the port."""
    proxy, stand = stood
    for target in ("/schemes", "/encode?scheme=rope&len=2"):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as s:
            s.sendall(f"GET {target} HTTP/1.1\r\nHost: posenc.example.org:8443\r\nConnection: close\r\n\r\n".encode())
            assert b" 200 " in s.makefile("rb").readline()
        passed_on = [head for head in stand.heads if f"GET {target} " in head]  # the proxy's own checks come in between
        assert "\r\nhost: posenc.example.org:8443\r\n" in passed_on[-1].lower()
    assert all(re.search(r"\r\nhost: (localhost|127\.0\.0\.1)(:\d+)?\r\n", head, re.I) for head in stand.heads if "GET /readyz" in head)


# ---- TLS and HTTP/2, as deploy/ configures them; the other tests take the certificate out ---------------------------------------


def with_certificate(name, pem):
    def command(folder, port, upstreams):
        to = [(rf"127.0.0.1:{8081 + i}", f"127.0.0.1:{upstream}") for i, upstream in enumerate(upstreams)]
        if name == "haproxy":
            return proxies.haproxy_with(folder, proxies.changed("haproxy.cfg", (r"bind :443", f"bind 127.0.0.1:{port}"), *to))
        return proxies.nginx_with(folder, proxies.changed("nginx.conf", (r"listen 443 ssl", f"listen 127.0.0.1:{port} ssl"), (r"/etc/ssl\S*(pem|key);", f"{pem};"),
                                                          ("/var/cache/nginx/posenc", f"{folder}/cache"), *to))
    return command


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
@pytest.mark.parametrize("name", ["haproxy", "nginx"])
def test_tls_and_http_2_are_the_proxys(name, posencd, tmp_path, monkeypatch):
    pem = tmp_path / "posenc.pem"
    pem.write_bytes(b"".join(path.read_bytes() for path in certificate(tmp_path)))
    os.chmod(pem, 0o644)
    monkeypatch.setitem(proxies.ENVIRONMENT, "POSENC_CERT", str(pem))
    target = "/encode?scheme=rope&len=50&format=raw"
    with proxies.start(name, with_certificate(name, pem), [posencd.port] * 3) as proxy:
        def curl(version, target, *more):
            done = subprocess.run(["curl", "-sk", version, "-w", "\n%{http_version} %{http_code}", *more, f"https://localhost:{proxy.port}{target}"], capture_output=True, timeout=60,
                                  env={**os.environ, "no_proxy": "*"})
            return done.stdout.rpartition(b"\n")[::2]

        assert wait_until(lambda: curl("--http1.1", "/readyz")[1] == b"1.1 200")
        for version, number in (("--http2", b"2"), ("--http1.1", b"1.1")):
            assert curl(version, target) == (posencd.get(target).body, number + b" 200")
            assert curl(version, "/encode", "-d", '{"scheme":"rope","len":50,"format":"raw"}') == (posencd.get(target).body, number + b" 200")
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "encode", "arguments": {"scheme": "rope", "len": 1}}}
        told = curl("--http1.1", "/mcp", "-H", "Content-Type: application/json", "-H", "X-Forwarded-Proto: http", "-d", json.dumps(message))[0]
        assert json.loads(told)["result"]["structuredContent"]["url"].startswith("https://"), "links lead back through the proxy"


# ---- Guarded paths ---------------------------------------------------------------------------------------------------------


def test_metrics_are_served_inside_and_requests_get_names(proxied):
    """127.0.0.1 is inside, but for Varnish, which stands before the others' rules."""
    is_varnish = proxied.name == "varnish"
    status, headers, said = ask(proxied.port, "GET", "/metrics")
    assert status == 200 or (is_varnish and status == json.loads(said)["status"] == 403 and headers["content-type"] == "application/problem+json")
    assert is_varnish or len(ask(proxied.port, "GET", "/schemes/rope")[1]["x-request-id"]) in (32, 36)


SPELLINGS = ["/metrics", "/metrics?", "/metrics?a=1", "/%6detrics", "/%6Detrics", "/metric%73", "/%6d%65%74%72%69%63%73", "/%6d%65%74%72%69%63%73?x", "http://localhost/metrics",
             "http://localhost/%6detrics?", "HTTP://localhost/metrics", "//metrics", "/x/../metrics", "/./metrics", "/metrics/", "/metrics/.", "/metrics%3f", "/metrics%2f", "/%2fmetrics",
             "/metrics;a", "/METRICS", "/%256detrics", "/metrics%00", "/metrics#", "/x%2f..%2fmetrics"]


@pytest.mark.parametrize("name", ALL)
def test_metrics_are_inside_however_they_are_spelled(name, posencd, monkeypatch):
    def from_outside(folder, conf, plain, inside):
        conf, n = re.subn(inside[0], inside[1], conf)
        assert n == 1
        return plain(folder, conf)

    for writer, inside in (("haproxy_with", ("127.0.0.0/8 10.0.0.0/8", OUTSIDE)), ("nginx_with", (r"allow 10.0.0.0/8;\s*allow 127.0.0.1;", f"allow {OUTSIDE};"))):
        plain = getattr(proxies, writer)
        monkeypatch.setattr(proxies, writer, lambda folder, conf, plain=plain, inside=inside: from_outside(folder, conf, plain, inside))
    with before(name, posencd.port) as proxy:
        seen = {target: ask(proxy.port, method, target) for target in SPELLINGS for method in ("GET", "HEAD")}
        through = [target for target, (status, _, body) in seen.items() if status == 200 or b"posenc_requests_total" in body]
        assert seen["/metrics"][0] == 403 and through == []
        assert ask(proxy.port, "GET", "/schemes/rope")[0] == 200 and ask(proxy.port, "GET", "/scheme%73/r%6fpe?a")[0] in (200, 422)


# ---- Ranges ----------------------------------------------------------------------------------------------------------------

PLAIN = ["bytes=0-1", "bytes=5-", "bytes=-7", "bytes=100-100", "bytes=2-99999999", "bytes=0-999999999999999", "bytes=99999999-"]
RANGES = [*PLAIN, "bytes=-0", "bytes=0-0,2-3", "bytes= 0-1", "bytes=9-3", "items=0-1", "bytes=", "bytes=-", "bytes=a-b", "bytes=0-1,", "Bytes=0-1", "bytes=0--1",
          "bytes=99999999999999999999-", "bytes=0-99999999999999999999", "1-2", "bytes=1-2 "]


def test_a_range_is_a_part_or_is_ignored(proxied, posencd):
    """As posencd alone answers it, or the whole, which HTTP always allows (RFC 9110, 14.2); never 503 and the request once more. nginx, which cuts
    its own slices, refuses what is malformed (416)."""
    target = "/encode?scheme=sinusoidal&dim=64&len=400&format=raw"
    whole = posencd.get(target).body
    for range_ in RANGES:
        alone = posencd.get(target, {"Range": range_})
        status, headers, body = ask(proxied.port, "GET", target, [f"Range: {range_}"])
        is_as_alone = (status, headers.get("content-range")) == (alone.status, alone.headers["Content-Range"]) and (status != 206 or body == alone.body)
        if range_ in PLAIN:
            assert is_as_alone, (range_, status)
            assert ask(proxied.port, "HEAD", target, [f"Range: {range_}"])[0] in (200, alone.status), range_
        else:
            assert is_as_alone or (status, body) == (200, whole) or (status == 416 and proxied.name == "nginx"), (range_, status)
        posted = ask(proxied.port, "POST", "/encode", ["Content-Type: application/json", f"Range: {range_}"], b'{"scheme":"sinusoidal","dim":64,"len":400,"format":"raw"}')
        assert (posted[0], posted[2]) == (200, whole), range_
