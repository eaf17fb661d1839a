"""Sentences of README.md and server/RUNNING.md that no other test runs: how the program is built, started and linked, what its log says
at the start and of a request, and the proxy to the store. tests/README.md lists what no test runs."""
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import zlib

import numpy as np
import pytest

from conftest import ROOT, SANITIZED, Server, start_server, without_posenc
from connection import wait_until


def run(*command, **environment):
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)


# ---- README.md ---------------------------------------------------------------------------------------------------------------


def test_what_is_missing_is_said_and_nothing_else_happens(tmp_path):
    """"Where they may not install anything, they stop and say what is missing." """
    done = run("deploy/packages.sh", "check", PKG_CONFIG_LIBDIR=str(tmp_path), PKG_CONFIG_PATH="")
    assert done.returncode == 1 and done.stdout == "" and len(done.stderr.splitlines()) == 1
    assert re.search("missing development files of: libmicrohttpd, libuv, .*openblas", done.stderr)
    shutil.copy("/bin/sh", tmp_path / "sh")
    done = run(str(tmp_path / "sh"), "deploy/packages.sh", "check", PATH=str(tmp_path))
    assert done.returncode == 1 and "pkg-config is missing" in done.stderr
    shutil.copy(shutil.which("pkg-config"), tmp_path / "pkg-config")
    done = run(str(tmp_path / "sh"), "deploy/packages.sh", "check", PATH=str(tmp_path))
    assert done.returncode == 1 and "awk is missing" in done.stderr
    (tmp_path / "awk").symlink_to(shutil.which("awk"))
    done = run(str(tmp_path / "sh"), "deploy/packages.sh", "check", PATH=str(tmp_path))
    assert done.returncode == 1 and "esbuild is missing" in done.stderr
    assert run("deploy/packages.sh", "check").returncode == 0


def test_make_run_serves_where_it_is_told():
    for arguments, host, port in ((), "127.0.0.1", "8080"), (("HOST=0.0.0.0", "PORT=9000"), "0.0.0.0", "9000"):
        done = run("make", "-n", "run", *arguments, MAKEFLAGS="", BUILD="build")
        assert f"build/posencd --host {host} --port {port}\n" in done.stdout, done.stderr


PROGRAM = """
#include "core/posenc.h"
#include <stdio.h>

int main(void)
{
    struct pe_ask *ask = pe_ask_new("encode");
    struct pe_plan *plan;
    struct pe_error err;
    float out[12];
    pe_gemm_setup();
    pe_ask_text(ask, "scheme", "sinusoidal");
    pe_ask_integer(ask, "dim", 4);
    pe_ask_integer(ask, "len", 3);
    if (pe_ask_plan(ask, &plan, &err) != PE_OK)
        return printf("%s\\n", err.detail);
    pe_fill(plan, 0, 0, 12, out);
    for (int i = 0; i < 12; i++)
        printf("%.9g ", (double)out[i]);
    pe_plan_free(plan);
    pe_ask_free(ask);
    return 0;
}
"""


@pytest.mark.skipif(SANITIZED, reason="the archive is built for a sanitizer, the program here is not")
def test_the_library_is_one_archive_and_one_header(tmp_path):
    """"As a library, posenc is build/libposenc.a with core/posenc.h." Nothing of api/, server/, jansson or libmicrohttpd is linked."""
    (tmp_path / "use.c").write_text(PROGRAM)
    archive = ROOT / "build/libposenc.a"
    done = run("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT), str(tmp_path / "use.c"), str(archive), "-lopenblas", "-lm", "-o", str(tmp_path / "use"))
    assert done.returncode == 0, done.stderr
    done = run(str(tmp_path / "use"))
    angles = np.outer(np.arange(3), [1, 0.01])
    expected = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(-1)
    assert done.returncode == 0 and np.allclose([float(text) for text in done.stdout.split()], expected, rtol=0, atol=1e-7), done.stdout


def test_compression_saves_little_on_float_tables(server):
    """"Compression saves 9 % on float tables", so there is no content coding."""
    for request in ({"scheme": "rope", "len": 4096}, {"scheme": "sinusoidal", "dim": 512, "len": 2048}):
        answer = server.ask(**request, format="raw", headers={"Accept-Encoding": "gzip, br, zstd"})
        assert "Content-Encoding" not in answer.headers
        assert 0.8 < len(zlib.compress(answer.body, 6)) / len(answer.body) < 1


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        return True
    except OSError:
        return False


@pytest.mark.parametrize("host, addresses", [("127.0.0.1", ["127.0.0.1"]), ("127.0.0.2", ["127.0.0.2"]), ("0.0.0.0", ["127.0.0.1"]),
                                             *([("::1", ["::1"]), ("::", ["::1", "127.0.0.1"])] if has_ipv6() else [])])
def test_it_listens_where_it_is_told_and_warns_beyond_this_machine(host, addresses):
    with start_server("--host", host) as server:
        assert f"listening on http://{f'[{host}]' if ':' in host else host}:{server.port}" in server.stderr_text()
        assert ("listening beyond this machine without --token-file" in server.stderr_text()) == (host in ("0.0.0.0", "::"))
        for address in addresses:
            with socket.create_connection((address, server.port), timeout=20) as s:
                s.sendall(b"GET /encode?scheme=rope&len=2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert s.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"


# ---- server/RUNNING.md -------------------------------------------------------------------------------------------------------


def test_the_store_is_asked_through_http_proxy():
    """"`http_proxy` and `https_proxy` are obeyed": the store's name is known to the proxy only."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as proxy, tempfile.NamedTemporaryFile(suffix=".log") as log:
        def answer():
            while True:
                try:
                    s = proxy.accept()[0]
                except OSError:
                    return
                with s:
                    asked.append(s.recv(65536).split(b"\r\n")[0])
                    s.sendall(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        environment = without_posenc({"http_proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}", "no_proxy": ""})
        command = [os.environ.get("POSENCD", str(ROOT / "build/posencd")), "--port", "0", "--store", "s3://bucket/here", "--store-endpoint", "http://store.invalid:9000"]
        process = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL, env=environment)
        try:
            server = Server(process, log.name)
            assert wait_until(lambda: asked)
            assert all(re.match(rb"GET http://store\.invalid:9000/bucket", line) for line in asked), asked
            assert server.get("/readyz").status == 200  # which does not depend on the store
            server.stop()
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            proxy.shutdown(socket.SHUT_RDWR)
