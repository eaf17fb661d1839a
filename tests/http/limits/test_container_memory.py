"""The memory of a container: by default --max-memory is half of what the control group allows and --max-weights a quarter, and limits that
do not fit are refused at the start, so that what is too much is refused by the server, instead of the kernel ending it."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from conftest import POSENCD, SANITIZED, start_server
from connection import Client, at_once, metric

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


def chosen(server, flag, part):
    found = re.search(rf"{flag} is (\d+) bytes: (less than )?{part} of the (\d+) that", server.stderr_text())
    return (int(found[1]), int(found[3])) if found else None


def limits(server):
    return chosen(server, "--max-memory", "half"), chosen(server, "--max-weights", "a quarter")


@pytest.mark.parametrize("limit,memory,weights", [(1024 * MIB, 512 * MIB, 256 * MIB), (256 * MIB, 128 * MIB, 64 * MIB),
                                                  (124 * MIB, 40 * MIB, 20 * MIB), (2048 * MIB, 1024 * MIB, 512 * MIB),
                                                  (4096 * MIB, None, None), (1 << 44, None, None), ("max", None, None)])
def test_the_defaults_follow_the_group_s_limit(tmp_path, limit, memory, weights):
    """Half and a quarter; in a small group two thirds and a third of what the program leaves."""
    with start_server(program=in_container(tmp_path, limit)) as server:
        assert limits(server) == (memory and (memory, limit), weights and (weights, limit))


@pytest.mark.parametrize("flag,memory,weights", [("--max-memory=64MiB", None, 256 * MIB), ("--max-memory=900MiB", None, 60 * MIB),
                                                 ("--max-weights=256MiB", 512 * MIB, None), ("--max-weights=600MiB", 360 * MIB, None)])
def test_a_flag_wins(tmp_path, flag, memory, weights):
    """And the other default leaves it its place."""
    with start_server(flag, program=in_container(tmp_path, 1024 * MIB)) as server:
        assert limits(server) == (memory and (memory, 1024 * MIB), weights and (weights, 1024 * MIB))


@pytest.mark.parametrize("limit,flags", [(1024 * MIB, ("--max-memory=700MiB", "--max-weights=300MiB")), (1024 * MIB, ("--max-memory=961MiB",)),
                                         (1024 * MIB, ("--max-weights=1GiB",)), (1024 * MIB, ("--max-memory=8GiB", "--max-weights=8GiB")),
                                         (64 * MIB, ()), (1 * MIB, ())])
def test_limits_that_do_not_fit_are_refused(tmp_path, limit, flags):
    done = subprocess.run([in_container(tmp_path, limit), "--port", "0", *flags], capture_output=True, text=True, timeout=20)
    errors = [line for line in done.stderr.splitlines() if " error " in line]
    assert done.returncode == 1 and len(errors) == 1 and "listening" not in done.stderr, done.stderr
    assert "--max-memory" in errors[0] and "--max-weights" in errors[0] and str(limit) in errors[0]


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


def upload(server, body, i):
    head = f"PUT /weights/w{i} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with Client(server) as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(head)
            client.send(body)
        return client.answer()[::2]


def weights_file(n_bytes):
    head = json.dumps({"w": {"dtype": "F32", "shape": [n_bytes // 4], "data_offsets": [0, n_bytes]}}).encode()
    return len(head).to_bytes(8, "little") + head + bytes(n_bytes)


@contextlib.contextmanager
def in_a_group(tmp_path, limit):
    """posencd with default flags in a container; if this machine lets us make control groups, within a real one."""
    with real_group(limit) as group:
        program = in_container(tmp_path, limit)
        if group:
            joined = tmp_path / "joined"
            joined.write_text(f'#!/bin/sh\necho $$ >{group}/cgroup.procs\nexec {program} "$@"\n')
            joined.chmod(0o755)
            program = str(joined)
        with start_server(program=program) as server:
            yield server


@pytest.mark.skipif(SANITIZED, reason="sanitizers take a multiple of the memory")
def test_eight_uploads_at_once_are_refused_not_killed(tmp_path):
    """In a container of 1 GiB: some are refused, those that are not are stored, and the server lives."""
    body = weights_file(200 * MIB)
    with in_a_group(tmp_path, 1024 * MIB) as server:
        answers = [answer for answer in at_once(lambda i: upload(server, body, i), range(8)) if answer]
        statuses = [status for status, _ in answers]
        assert 503 in statuses and set(statuses) <= {201, 413, 503, 507}, answers
        assert any(b"--max-memory" in said for status, said in answers if status == 503)
        assert server.is_alive() and server.get("/healthz").status == 200
        assert server.memory() < 1024 * MIB
        assert metric(server, "posenc_taken_memory_bytes") < MIB
