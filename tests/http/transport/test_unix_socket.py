"""--socket: serving on a path, the file's mode, its removal, and files that already exist there. Slow clients of it are those of test_slow.py."""
import os
import socket
import stat

import pytest

from conftest import SANITIZED, start_server
from connection import Client, ended, get, metric, wait_until


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s"


def serving(path, *flags):
    return start_server("--socket", str(path), *flags)


def refused(path):
    status, said = ended("--socket", str(path))
    assert status != 0 and "--socket" in said
    return said


def test_served_on_a_path(path):
    with serving(path, "--io-threads", "2") as server:
        assert f"listening on unix:{path}\n" in server.stderr_text() and "beyond this machine" not in server.stderr_text()
        assert stat.S_ISSOCK(path.stat().st_mode) and stat.S_IMODE(path.stat().st_mode) == 0o660
        for _ in range(4):
            assert server.get("/healthz").body == b'{"status":"ok"}'
        assert len(server.get("/encode?scheme=sinusoidal&len=100000&dim=64&format=raw").body) == 100000 * 64 * 4
        assert server.post("/encode", b'{"scheme":"rope","len":2,"positions":[' + b"1," * 200000 + b"1]}").status == 422
        assert server.get("/readyz", {"Host": "posenc.example.org"}).status == 200  # it has no name
        assert "somebody serves there" in refused(path)
        assert server.get("/healthz").status == 200  # the second has left the first's socket alone
    assert not path.exists()


def test_who_leaves_a_short_stream_leaves_nothing_behind(path):
    """1.5 MiB are complete in the server's memory while they are sent in parts: unlike TCP, this socket accepts
    little at a time. Slow readers get the right bytes; when a client leaves, unsent bytes are released and do not
    count as sent."""
    target = "/encode?scheme=sinusoidal&dim=128&len=3072&format=raw"
    with serving(path, "--log-level", "warn") as server:
        def leave(n):
            for _ in range(n):
                with Client(server) as client:
                    client.send(get(target))
                    assert len(client.file.read(1000)) == 1000
        whole = server.get(target).body
        assert len(whole) == 3072 * 512
        with Client(server) as slow:
            slow.send(get(target))
            assert slow.head()[0] == 200
            assert b"".join(slow.file.read(min(10_007, len(whole) - at)) for at in range(0, len(whole), 10_007)) == whole
        leave(20)
        before, sent = server.memory("VmRSS"), metric(server, "posenc_sent_bytes_total")
        leave(200)
        assert wait_until(lambda: metric(server, "posenc_streams") == 0)
        assert metric(server, "posenc_sent_bytes_total") - sent < 100 * len(whole)
        assert SANITIZED or server.memory("VmRSS") - before < 16 << 20
        assert server.get(target).body == whole


def test_a_stale_socket_is_replaced(path):
    with serving(path) as server:
        server.process.kill()
        server.process.wait()
        assert path.exists()
        with serving(path) as next_one:
            assert next_one.get("/healthz").status == 200


def test_what_is_no_socket_is_left_alone(path, tmp_path):
    path.write_text("mine")
    refused(path)
    (tmp_path / "link").symlink_to(path)
    refused(tmp_path / "link")
    assert path.read_text() == "mine" and (tmp_path / "link").is_symlink()
    assert "at most 107" in refused("/tmp/" + "x" * 120)
    assert "No such file" in refused(tmp_path / "absent" / "s")


def test_anothers_socket_is_not_removed(path):
    with serving(path):
        os.unlink(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert path.exists()
