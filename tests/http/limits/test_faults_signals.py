"""SIGTERM at any moment, twice, and many SIGHUPs: the process ends in order, and no wrong answer looks complete."""
import os
import random
import signal
import subprocess
import time

import pytest

from conftest import POSENCD, SANITIZED, start_server
from faults import Crowd, REQUESTS, WEIGHTS, answer_on_new, is_right, put
from connection import running
from weights_asking import TABLE, file, tag

NAMES = ["GET", "json", "stream", "stream of json", "stream of npz", "large body", "multipart", "attention", "picture", "stored weights"]
N_ENDS = 20 if not SANITIZED else 5


@pytest.fixture(scope="module")
def right():
    with start_server() as server:
        assert answer_on_new(server, put("t5", WEIGHTS))[0] == 201
        return {name: answer_on_new(server, REQUESTS[name]) for name in NAMES}


def end_once(right, moment, *signals, drain="5", seconds=30):
    """A server under load gets the signals at this moment, and ends within so many seconds; its status."""
    with start_server("--drain-seconds", drain, "--io-threads", "2", "--log-level", "error") as server:
        answer_on_new(server, put("t5", WEIGHTS))
        crowd = Crowd(server, right, leaving=0)
        time.sleep(moment)
        for n in signals:
            os.kill(server.pid, n)
        status = server.ended(seconds)
        return status, crowd.stop()[200]


@pytest.mark.parametrize("n", [N_ENDS, pytest.param(200, marks=pytest.mark.slow)])
def test_sigterm_at_any_moment(right, n):
    rng, n_right = random.Random(5), 0
    for _ in range(n):
        status, n_one = end_once(right, rng.uniform(0, 0.12), signal.SIGTERM)
        assert status == 0
        n_right += n_one
    assert n_right > n


def test_sigterm_while_it_starts():
    """From the first instruction on: it ends by the signal or by itself, not by a fault."""
    for ms in range(0, 40, 2):
        process = subprocess.Popen([POSENCD, "--port", "0", "--log-level", "error"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(ms / 1000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM), ms


def test_sighup_in_a_storm(tmp_path):
    """A thousand, while weights are put, read and removed: every reader gets one of the files that were put, whole."""
    files = [file(table=TABLE + i) for i in range(4)]
    with start_server("--weights-dir", str(tmp_path), "--io-threads", "2", "--log-level", "error") as server:
        assert answer_on_new(server, put("t5", files[0]))[0] == 201
        wanted = {body: answer_on_new(server, REQUESTS["stored weights"])[1] for body in files
                  if answer_on_new(server, put("t5", body))[0] in (200, 201)}
        assert len(set(wanted.values())) == 4

        def again_and_again(what):
            def work(stop):
                while not stop.is_set():
                    what()
            return running(work)

        def write():
            for body in files:
                status, said = answer_on_new(server, put("t5", body))
                assert status in (200, 201), (status, said)

        def read():
            got = server.get("/weights/t5")
            assert got.status == 200 and got.body in files and got.headers["ETag"] == tag(got.body)

        def use():
            status, body = answer_on_new(server, REQUESTS["stored weights"])
            assert status == 200 and body in wanted.values(), status

        def come_and_go():
            assert answer_on_new(server, put("guest", files[1]))[0] in (200, 201)
            assert server.request("DELETE", "/weights/guest").status in (204, 404)

        with again_and_again(write), again_and_again(read), again_and_again(use), again_and_again(come_and_go):
            for _ in range(1000 if not SANITIZED else 200):
                os.kill(server.pid, signal.SIGHUP)
                time.sleep(0.002)
        assert is_right(server) and [path.name for path in tmp_path.glob(".posenc-*")] == [".posenc-lock"]
