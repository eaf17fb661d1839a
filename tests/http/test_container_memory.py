"""The memory of a container: by default --max-memory is half of what the control group allows, so that more bodies than fit are refused
by the server, instead of the kernel ending it."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import pytest

from conftest import POSENCD, SANITIZED, start_server
from test_server_life import Client, metric

MIB = 1 << 20
GROUPS = pathlib.Path("/sys/fs/cgroup/memory")
# In a mount namespace of its own, /sys/fs/cgroup says what a container's says.
INSIDE = """mount --make-rprivate / && mount -t tmpfs none /sys/fs/cgroup && echo {limit} >/sys/fs/cgroup/memory.max &&
echo 0::/ >{folder}/cgroup && mount --bind {folder}/cgroup /proc/self/cgroup 2>/dev/null
exec {program} "$@"
"""


def in_container(tmp_path, limit, program=POSENCD):
    """A script in place of posencd, which then sees this limit."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("no namespaces here")
    inner, script = tmp_path / "inner", tmp_path / "posencd"
    inner.write_text(INSIDE.format(limit=limit, folder=tmp_path, program=program))
    script.write_text(f'#!/bin/sh\nexec unshare --mount sh {inner} "$@"\n')
    script.chmod(0o755)
    return str(script)


def chosen(server):
    found = re.search(r"--max-memory is (\d+) bytes: half of the (\d+)", server.stderr_text())
    return (int(found[1]), int(found[2])) if found else None


@pytest.mark.parametrize("limit,expected", [(1024 * MIB, 512 * MIB), (256 * MIB, 128 * MIB), (1 * MIB, 1 * MIB),
                                            (4096 * MIB, None), (1 << 44, None), ("max", None)])
def test_the_default_is_half_of_the_group_s_limit(tmp_path, limit, expected):
    with start_server(program=in_container(tmp_path, limit)) as server:
        assert chosen(server) == (expected and (expected, limit))


def test_a_flag_wins(tmp_path):
    with start_server("--max-memory", "64MiB", program=in_container(tmp_path, 1024 * MIB)) as server:
        assert chosen(server) is None


@pytest.mark.parametrize("text", ["1", "1048575", "-1", "2PiB"])
def test_zero_is_the_only_number_below_the_least(text):
    done = subprocess.run([POSENCD, "--port", "0", f"--max-memory={text}"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and "--max-memory" in done.stderr and "or 0" in done.stderr


# ---- Eight uploads at once ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def real_group(limit):
    """A control group of this machine with that limit; its folder. Killed is who takes more."""
    own = next((line.split(":", 2)[2] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
                if "memory" in line.split(":")[1].split(",")), None)
    group = GROUPS / (own or "").strip("/") / f"posenc-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit))
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        yield None
        return
    try:
        yield group
    finally:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                group.rmdir()
                return
            time.sleep(0.05)


def upload(server, body, answers):
    head = f"PUT /weights/w{len(answers)}-{threading.get_ident()} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with Client(server) as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(head)
            client.send(body)
        status, _, said = client.answer()
        answers.append((status, said))


def weights_file(n_bytes):
    head = json.dumps({"w": {"dtype": "F32", "shape": [n_bytes // 4], "data_offsets": [0, n_bytes]}}).encode()
    return len(head).to_bytes(8, "little") + head + bytes(n_bytes)


@pytest.mark.skipif(SANITIZED, reason="sanitizers take a multiple of the memory")
def test_eight_uploads_at_once_are_refused_not_killed(tmp_path):
    """In a container of 1 GiB with the default and --max-weights as the manifests set it: some are refused, those that are not are
    stored, and the server lives; if this machine lets us make control groups, within a real one."""
    body = weights_file(200 * MIB)
    with real_group(1024 * MIB) as group:
        program = in_container(tmp_path, 1024 * MIB)
        if group:
            joined = tmp_path / "joined"
            joined.write_text(f'#!/bin/sh\necho $$ >{group}/cgroup.procs\nexec {program} "$@"\n')
            joined.chmod(0o755)
            program = str(joined)
        with start_server("--max-weights", "256MiB", program=program) as server:
            answers, threads = [], []
            for _ in range(8):
                threads.append(threading.Thread(target=upload, args=(server, body, answers)))
                threads[-1].start()
            for thread in threads:
                thread.join(120)
            statuses = [status for status, _ in answers]
            assert 503 in statuses and set(statuses) <= {201, 413, 503, 507}, answers
            assert any(b"--max-memory" in said for status, said in answers if status == 503)
            assert server.is_alive() and server.get("/healthz").status == 200
            assert server.memory() < 1024 * MIB
            assert metric(server, "posenc_taken_memory_bytes") < MIB
