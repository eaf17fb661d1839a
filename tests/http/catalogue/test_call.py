"""pe_call by ctypes gives the bytes of the service, for the rows of tests/cases; the client in process, and how it is found."""
import collections
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import run
from conftest import SANITIZED, shared_library

pytestmark = pytest.mark.skipif(SANITIZED, reason="there is no shared library of sanitizers")

# What only a server answers, and what states its options or its commit.
ELSEWHERE = ("/weights", "/experiments", "/metrics", "/healthz", "/readyz", "/ui/", "/docs", "/clients", "/limits", "/version", "/openapi.json")
MOST = 60  # rows of a file
# Not ETag, which depends on the commit of the server.
HEADERS = ("Content-Type", "Posenc-Fits", "Content-Language", "Content-Disposition", "Allow", "Vary", "Cache-Control", "Retry-After", "Posenc-Scheme")


def is_asked(row):
    """Whether a call can ask it: it has no headers but the type of its body."""
    return not row.get("flags") and run.method_of(row) in ("get", "post", "query") and set(row.get("headers", {})) <= {"Content-Type"} and not (
        run.path_of(row).startswith(ELSEWHERE) or run.path_of(row) == "/" or set(run.statuses(row)) & {413, 503})


ROWS = collections.defaultdict(list)
for _row in run.every():
    if is_asked(_row):
        ROWS[_row["file"]].append(_row)


@pytest.fixture(scope="module")
def call(posenc):
    library = posenc._library()

    def called(method, path, body, kind):
        with posenc._Reply(library, method, path, [body] if body else None, kind) as reply:
            return reply.status, reply.read(), {name: reply.get(name) for name in HEADERS}
    return called


@pytest.mark.parametrize("file", ROWS)
def test_a_call_gives_the_bytes_of_the_service(server, call, file):
    rows, compared = ROWS[file], 0
    for row in rows[:: -(-len(rows) // MOST)]:
        method, path, body, headers = run.sent(row)
        if any(ord(letter) <= 32 or ord(letter) > 126 for letter in path):  # no line of HTTP has them
            continue
        answer = server.request(method.upper(), path, body, headers)
        if server.host.encode() in answer.body:  # links of /mcp
            continue
        status, content, found = call(method.upper(), path, body, headers.get("Content-Type"))
        assert status == answer.status, (run.name_of(row), status, content[:300], answer)
        assert content == answer.body, (run.name_of(row), content[:300], answer)
        assert found == {name: answer.headers.get(name) for name in HEADERS}, run.name_of(row)
        compared += 1
    assert compared


@pytest.mark.parametrize("method, path", [("PUT", "/presets/a"), ("DELETE", "/weights/a"), ("GET", "/metrics"), ("GET", "/healthz"), ("GET", "/"),
                                          ("POST", "/experiments")])
def test_what_needs_a_server_is_not_here(call, method, path):
    status, content, headers = call(method, path, b"{}", "application/json")
    assert status == 404 and headers["Content-Type"] == "application/problem+json" and b"needs a server (posencd)" in content


def imported(folder, code, **env):
    """A fresh Python that takes posenc.py from the folder."""
    env = {**{name: value for name, value in os.environ.items() if not name.startswith("POSENC_") and name != "LD_LIBRARY_PATH"}, **env}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env={**env, "PYTHONPATH": str(folder)}, capture_output=True, text=True, timeout=120)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@pytest.fixture
def folder(posenc, tmp_path):
    shutil.copy(posenc.__file__, tmp_path / "posenc.py")
    return tmp_path


CHECK = "import posenc; a = posenc.encode(scheme='rope', len=4, head_dim=8); print(posenc.check(cos=a.cos, sin=a.sin, scheme='rope', head_dim=8).fits, posenc.where())"


def test_without_a_service_the_library_answers(folder):
    (folder / "libposenc.so.0").symlink_to(shared_library())
    fits, where = imported(folder, CHECK).split(maxsplit=1)
    assert fits == "True" and "(in this process, version " in where and where.startswith(str(shared_library()))


def test_the_loader_finds_it_too(folder):
    there = folder / "lib"
    there.mkdir()
    (there / "libposenc.so.0").symlink_to(shared_library())
    assert imported(folder, CHECK, LD_LIBRARY_PATH=str(there)).startswith("True ")


def test_a_url_wins(server, folder):
    (folder / "libposenc.so.0").symlink_to(shared_library())
    url = f"http://{server.host}:{server.port}"
    assert imported(folder, CHECK, POSENC_URL=url) == f"True {url}"
    assert imported(folder, f"import posenc; print(posenc.Client({url!r}).url)") == url


def test_without_either_one_line_says_how_to_get_one(folder):
    words = imported(folder, "import posenc; posenc.encode(scheme='rope', len=2)")
    assert words.startswith("posenc.Away: no posenc is here (libposenc.so.0: cannot open shared object file")
    assert "install python3-posenc or its wheel" in words and "POSENC_URL=http://localhost:8080" in words


def test_a_library_that_misses_another_says_which(folder):
    (folder / "libposenc.so.0").write_bytes(pathlib.Path(shared_library()).read_bytes().replace(b"libjansson.so.4", b"libjansson.so.9"))
    assert "libjansson.so.9" in imported(folder, "import posenc; posenc.encode(scheme='rope', len=2)")
