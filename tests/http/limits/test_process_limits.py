"""Limits of the process, one at a time: the server refuses to start and says why, or it answers every kind of request and ends in order.
None may make requests wait for ever, or end the process without a sentence."""
import contextlib
import os
import resource
import shutil
import signal
import tempfile
import time

import pytest

from conftest import POSENCD, SANITIZED, start_server
from connection import at_once, running

MIB = 1 << 20
ENDS_SECONDS = 20  # of an idle server; without its own limits it takes 0.1 s
FLAGS = ("--workers", "1", "--io-threads", "1")
REQUESTS = [
    ("/encode", {"scheme": "sinusoidal", "dim": 256, "len": 20000, "format": "raw"}),
    ("/attention", {"scheme": "alibi", "num_heads": 8, "causal": True, "q": {"shape": [8, 256, 64], "seed": 1}, "k": {"shape": [8, 256, 64], "seed": 2}, "format": "raw"}),
    ("/analyze", {"scheme": "sinusoidal", "dim": 64, "len": 256}),
    ("/diagnose", {"scheme": "rope", "layout": "interleaved", "offset": 5, "q": [[1, 2, 3, 4]], "q_out": [[3.160435, 1.7975838, -0.107937716, 4.0949593]]}),
    ("/rotate", {"scheme": "rope", "q": [[1.0] * 64] * 3000}),
]


def limit(which=None, amount=0, user=None):
    """What a process does to be limited, and to become this user."""
    def before():
        # As on a machine of two processors: OpenBLAS starts a thread for each when it is loaded, before anything of ours runs.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
        if user:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        if which is not None:
            resource.setrlimit(which, (amount, amount))

    return before


@contextlib.contextmanager
def serving(*flags, before=limit(), program=POSENCD):
    with start_server(*FLAGS, *flags, program=program, before=before) as server:
        yield server
        assert server.is_alive(), server.stderr_text()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(ENDS_SECONDS) == 0


def refused(before, *flags, program=POSENCD):
    """What it says when it refuses to start."""
    with pytest.raises(RuntimeError, match=r"does not listen \(status 1\)") as said, serving(*flags, before=before, program=program):
        pass
    return str(said.value)


def answers_all(server):
    for path, request in REQUESTS:
        assert server.post(path, request).status == 200, path
    assert server.get("/healthz").status == 200


plain = pytest.mark.skipif(SANITIZED, reason="sanitizers reserve terabytes of address space, and larger stacks")


@plain
@pytest.mark.parametrize("mib", [130, 200, 250])
def test_too_little_address_space_is_said_at_the_start(mib):
    """OpenBLAS would ask for memory without end: requests of some kinds, and SIGTERM, would never be done."""
    said = refused(limit(resource.RLIMIT_AS, mib * MIB), "--experiments", "0")
    assert "limit of address space (ulimit -v)" in said and "--workers" in said


@plain
@pytest.mark.parametrize("mib", [450, 700])
def test_with_enough_address_space_everything_is_served(mib):
    with serving("--experiments", "0", before=limit(resource.RLIMIT_AS, mib * MIB)) as server:
        answers_all(server)
        assert set(at_once(lambda _: server.post(*REQUESTS[1]).status, range(8))) <= {200, 503}
        # More than there is: refused, or read in what is left; neither the end nor for ever.
        large = server.post("/rotate", b'{"scheme":"rope","q":[' + b",".join([b"[" + b",".join([b"1.5"] * 64) + b"]"] * 60000) + b"]}")
        assert large.status in (200, 503)
        answers_all(server)


@plain
def test_a_small_stack_is_said_at_the_start_or_is_enough():
    """With about 64 KiB the loader has none left for our first line, depending on the environment's size and the kernel's lot."""
    assert "stack" in refused(limit(resource.RLIMIT_STACK, 128 * 1024)) and "ulimit -s" in refused(limit(resource.RLIMIT_STACK, 256 * 1024))
    with serving(before=limit(resource.RLIMIT_STACK, 512 * 1024)) as server:
        answers_all(server)


def test_few_descriptors():
    assert "file descriptors" in refused(limit(resource.RLIMIT_NOFILE, 8))
    with serving(before=limit(resource.RLIMIT_NOFILE, 32)) as server:
        assert "ulimit -n" in server.stderr_text()
        answers_all(server)


@plain
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_few_threads():
    """The limit counts all processes of a user; root has none. A copy of the program is where that user may read it."""
    user = 47000 + os.getpid() % 1000
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(POSENCD, folder)
        assert "ulimit -u" in refused(limit(resource.RLIMIT_NPROC, 2, user), program=program)
        with serving(before=limit(resource.RLIMIT_NPROC, 8, user), program=program) as server:
            answers_all(server)


def test_one_processor_and_a_tenth_of_it():
    """As a control group's quota does: running for 10 ms, stopped for 90."""
    with serving() as server:
        os.sched_setaffinity(server.pid, {min(os.sched_getaffinity(server.pid))})
        answers_all(server)

        def throttle(stop):
            while not stop.is_set():
                os.kill(server.pid, signal.SIGSTOP)
                time.sleep(0.09)
                os.kill(server.pid, signal.SIGCONT)
                time.sleep(0.01)

        with running(throttle):
            answers_all(server)


@plain
def test_no_file_may_grow(tmp_path):
    """ulimit -f 0: a log in a file is lost, a stored file is refused, everything else is served."""
    with serving("--weights-dir", str(tmp_path)) as server:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, 0))
        answer = server.request("PUT", "/presets/x", b'{"config":{"scheme":"rope"}}')
        assert answer.status in (500, 503, 507) and answer.json()["detail"], answer
        assert server.get("/presets/x").status == 404 and not [path for path in tmp_path.iterdir() if path.name.startswith("x")]
        answers_all(server)
