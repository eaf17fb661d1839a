"""The web page as the server delivers it: codings and tags, the policy, what is open, --ui-dir. What its files may contain: test_page_files.py;
what the page does: tests/page/."""
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

import pytest

from conftest import start_server
from page_files import FILES, FOLDER, TYPES, base, base_of, source  # noqa: F401
from token_files import LINES, READER, bearer, token_server

ENDLESS = "public, max-age=31536000, immutable"
POLICY = ("default-src 'none'; base-uri 'none'; frame-ancestors 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
          "img-src 'self' blob: data:; require-trusted-types-for 'script'; trusted-types 'none'")
FRONTS = ["index.html", "plain.html"]  # the second: what /docs is, and / where a token is needed, which an <img> cannot send


def places(base):
    """(path, file, Cache-Control) of the page's addresses and of every file."""
    return [("/", "index.html", "no-cache"), ("/docs", "plain.html", "no-cache"), *((f"{base}/{name}", name, ENDLESS) for name in FILES)]


def expected(base, name):
    if name not in FRONTS:
        return (FOLDER / name).read_bytes()
    lines = (FOLDER / "index.html").read_text().replace("/ui/BUILD", base).splitlines(keepends=True)
    return "".join(line for line in lines if name == "index.html" or "<img" not in line).encode()


def shortened(names, folder=FOLDER):
    """What esbuild makes of scripts and styles, which is what the program has of them."""
    stories = [name for name in names if name.startswith("stories/") and name.endswith(".js")]  # their names stay, for readers by /mcp
    with tempfile.TemporaryDirectory() as there:
        for how, some in ("--minify", sorted(set(names) - set(stories))), ("--minify-whitespace", stories):
            subprocess.run(["esbuild", how, "--target=es2022", "--log-level=warning", "--outbase=.", f"--outdir={there}", *some], cwd=folder, check=True)
        return {name: (pathlib.Path(there) / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def embedded(base):
    """Each file as it is in the program."""
    found = {name: expected(base, name) for name in {*FILES, *FRONTS}} | shortened([f for f in FILES if f.endswith((".js", ".css"))])
    for name in FILES:
        if name.endswith(".json"):
            found[name] = json.dumps(json.loads(source(name)), ensure_ascii=False, separators=(",", ":")).encode()
    return found


def test_every_file_in_both_codings(server, base, embedded):
    tags = {}
    for path, name, kept in places(base):
        plain, packed = server.get(path), server.get(path, {"Accept-Encoding": "gzip, deflate, br, zstd"})
        for answer in (plain, packed):
            assert answer.status == 200 and answer.headers["Content-Type"] == TYPES[pathlib.Path(name).suffix], path
            assert answer.headers["Cache-Control"] == kept and answer.headers["Vary"] == "Accept-Encoding", path
        assert plain.headers["Content-Encoding"] is None and packed.headers["Content-Encoding"] == "gzip"
        assert plain.body == gzip.decompress(packed.body) == embedded[name], path
        assert packed.body[:10] == b"\x1f\x8b\x08\0\0\0\0\0\x02\x03"  # no time, no name, best compression
        strong = [answer.headers["ETag"] for answer in (plain, packed)]
        assert all(re.fullmatch(r'"[\x21\x23-\x7e]+"', tag) for tag in strong) and strong[0] != strong[1]
        tags.setdefault(name, set()).add(tuple(strong))
    assert all(len(of_file) == 1 for of_file in tags.values())
    assert len({pair for of_file in tags.values() for pair in of_file}) == len(tags)  # other bytes, other tags


def test_head(server, base):
    for path in ("/", "/docs", f"{base}/main.js"):
        for headers in ({}, {"Accept-Encoding": "gzip"}):
            head, got = server.request("HEAD", path, headers=headers), server.get(path, headers)
            assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == str(len(got.body))
            assert all(head.headers[name] == got.headers[name] for name in ("ETag", "Content-Type", "Content-Encoding", "Vary", "Cache-Control"))
            kept = server.get(path, {**headers, "If-None-Match": got.headers["ETag"]})
            assert kept.status == 304 and kept.body == b"" and kept.headers["Content-Security-Policy"] == POLICY
        refused = server.post(path, {})
        assert refused.status == 405 and refused.headers["Allow"] == "GET, HEAD"


def test_an_older_build_is_gone(server, base):
    build = base.rpartition("/")[2]
    for other in ("0" * 16, build[:-1], build + "0", build.upper() + "x", "dev", "BUILD"):
        answer = server.get(f"/ui/{other}/main.js")
        assert answer.status == 404 and answer.headers["Content-Type"] == "application/problem+json"
        assert build in answer.json()["detail"] and answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("name", ["", "views", "views/", "none.js", "README.md", "embed.sh", "main.js/", "/main.js", "views//gallery.js", "./main.js", "../ui", "..%2fmain.js", "%2e%2e/x",
                                  "views/../main.js", "views/%2e%2e/main.js", "main.js%00", "MAIN.JS", "main%2ejs%20", "\\main.js", "a" * 3000])
def test_no_other_file(server, base, name):
    answer = server.get(f"{base}/{name}")
    assert answer.status in (400, 404) and answer.headers["Content-Type"] == "application/problem+json"


# ---- Safety ----------------------------------------------------------------------------------------------------------------


def test_the_policy(server, base):
    for path in ("/", "/docs", *(f"{base}/{name}" for name in FILES), f"{base}/none.js", "/ui/old/main.js"):
        answer = server.get(path)
        assert answer.headers.get_all("Content-Security-Policy") == [POLICY], path
        assert answer.headers["Referrer-Policy"] == "no-referrer"


def raw(server, request):
    with socket.create_connection((server.host, server.port), timeout=20) as client:
        client.sendall(request)
        return client.recv(65536)


@pytest.mark.parametrize("request_", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\nA: b\r\n\r\n"])
def test_a_refusal_before_a_request_is_what_it_says(server, request_):
    assert b"\r\nX-Content-Type-Options: nosniff\r\n" in raw(server, request_)


# ---- Where there are tokens -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded():
    with token_server(LINES) as server:
        yield server


def test_the_page_is_open_and_its_data_is_not(guarded):
    base = base_of(guarded)
    for path in ("/", "/docs", "/cmaps", "/limits", f"{base}/main.js", f"{base}/text/zh.json"):
        for headers in ({}, bearer("nonsense"), bearer(READER)):
            assert guarded.get(path, headers).status == 200, path
    for headers in ({}, bearer(READER)):  # an <img> sends none, so it would be refused
        assert guarded.get("/", headers).body == guarded.get("/docs", headers).body == expected(base, "plain.html")
    assert guarded.get(f"{base}/none.js").status == guarded.get("/ui/old/main.js").status == 404
    for path in ("/schemes", "/presets", "/openapi.json", "/encode?scheme=rope&len=2", "/ui", "/nothing"):
        assert guarded.get(path).status == 401, path
    assert READER not in guarded.stderr_text()


# ---- A figure in the page of another ------------------------------------------------------------------------------------------------


def test_only_the_pages_that_are_named_may_frame_a_figure(session_server):
    assert session_server.get("/?embed").headers["Content-Security-Policy"] == POLICY  # none, unless the server is told
    with start_server("--frame-origin", "https://a.example", "--frame-origin", "https://b.example:8443") as server:
        named = POLICY.replace("frame-ancestors 'none'", "frame-ancestors https://a.example https://b.example:8443")
        for path, policy in {"/?embed": named, "/?embed=1": named, "/?embed&x=1": named, "/docs?embed": named, "/": POLICY, "/?embedded": POLICY, "/?x=embed": POLICY, "/ui/old/main.js": POLICY}.items():
            assert server.get(path).headers["Content-Security-Policy"] == policy, path
        assert server.get("/?embed").body == server.get("/").body


@pytest.mark.parametrize("origin", ["https://a.example; script-src *", "'self'", "https://a.example,https://b.example", '"'])
def test_an_origin_that_would_be_more_than_one_is_refused_at_start(origin):
    with pytest.raises(RuntimeError, match="--frame-origin"):
        with start_server("--frame-origin", origin):
            pass


# ---- --ui-dir ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def developing(tmp_path_factory):
    copy = tmp_path_factory.mktemp("page") / "page"
    shutil.copytree(FOLDER, copy)
    (copy.parent / "secret.js").write_text("secret")
    (copy / "link.js").symlink_to(copy.parent / "secret.js")
    (copy / "up").symlink_to(copy.parent)
    (copy / ".hidden.js").write_text("hidden")
    os.mkfifo(copy / "pipe.js")
    with start_server("--ui-dir", str(copy)) as server:
        server.folder = copy
        yield server


def test_files_from_a_folder(developing):
    assert base_of(developing) == "/ui/dev"
    for path, name, _ in places("/ui/dev"):
        answer = developing.get(path, {"Accept-Encoding": "gzip", "If-None-Match": "*"})
        assert answer.status == 200 and answer.body == expected("/ui/dev", "index.html" if name in FRONTS else name), path
        assert answer.headers["Cache-Control"] == "no-store" and answer.headers["ETag"] is None and answer.headers["Content-Encoding"] is None
        assert answer.headers["Content-Type"] == TYPES[pathlib.Path(name).suffix] and answer.headers["Content-Security-Policy"] == POLICY
        head = developing.request("HEAD", path)
        assert head.status == 200 and head.headers["Content-Length"] == str(len(answer.body))


def test_a_change_is_seen_at_once(developing):
    file = developing.folder / "views/new.js"
    for text in ("one", "two, longer", "", "x" * 100_000):
        file.write_text(text)
        for _ in range(3):
            assert developing.get("/ui/dev/views/new.js").body.decode() == text
    file.unlink()
    assert developing.get("/ui/dev/views/new.js").status == 404
    start = developing.folder / "index.html"
    kept = start.read_text()
    start.write_text("/ui/BUILD/new /ui/BUILD")
    assert developing.get("/").body == developing.get("/docs").body == b"/ui/dev/new /ui/dev"
    start.write_text(kept)


@pytest.mark.parametrize("name", ["../secret.js", "%2e%2e/secret.js", "..%2fsecret.js", "views/../../secret.js", "views/..%2f..%2fsecret.js", "up/secret.js", "link.js", "pipe.js", ".hidden.js",
                                  "views", "views/", "views//gallery.js", "./main.js", "", ".", "..", "/etc/passwd", "//etc/passwd", "%2fetc/passwd", "main.js%00", "main.js%0a", "views\\gallery.js", "main.js/."])
def test_nothing_outside_of_the_folder(developing, name):
    answer = developing.get(f"/ui/dev/{name}")
    assert answer.status in (400, 404) and b"secret" not in answer.body.replace(b"secret.js", b"") and b"root:" not in answer.body


def test_only_its_own_build(developing, base):
    assert developing.get(base + "/main.js").status == 404 and "dev" in developing.get(base + "/main.js").json()["detail"]


@pytest.mark.parametrize("make, word", [(lambda folder: None, "No such file"), (lambda folder: folder.mkdir(), "index.html"), (lambda folder: folder.write_text("x"), "Not a directory")])
def test_a_folder_without_a_page_is_refused_at_start(tmp_path, make, word):
    folder = tmp_path / "page"
    make(folder)
    with pytest.raises(RuntimeError, match=f"--ui-dir .*{word}"):
        with start_server("--ui-dir", str(folder)):
            pass
