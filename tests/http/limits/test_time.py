"""Requests with a time limit: late is 503 at that time, and the work ends. Clients that are slow are those of test_slow.py."""
import json
import time

import pytest

from conftest import SANITIZED, Stopwatch, start_server
from test_cancel import LONG_ROW, Watch
from connection import Client, get, is_quiet, metric, post, wait_until


@pytest.fixture(scope="module")
def one_worker():
    with start_server("--workers", "1") as server:
        yield server


def with_time(request, seconds):
    return request.replace(b"Host: localhost\r\n", b"Host: localhost\r\nX-Request-Timeout: %s\r\n" % str(seconds).encode(), 1)


PICTURE = get("/encode?scheme=floater&len=2400&dim=512&seed=0&format=png")


@pytest.mark.parametrize("request_,busy", [(LONG_ROW(), False), (PICTURE, False), (PICTURE, True)], ids=["opening", "working", "in the queue"])
def test_late_is_503_at_that_time_and_the_work_ends(one_worker, request_, busy):
    watch, other = Watch(one_worker), Client(one_worker)
    if busy:
        other.send(LONG_ROW())
        assert watch.wait(lambda w: w["posenc_busy_workers"] == 1) is not None
    before = [watch['posenc_cancelled_total{stage="late"}'], watch['posenc_rejected_total{reason="late"}']]
    with Client(one_worker) as client:
        begun, clock = time.monotonic(), Stopwatch(one_worker)
        client.send(with_time(request_, 0.3))
        status, headers, text = client.answer()
        seconds, taken = time.monotonic() - begun, clock.seconds()
        assert status == 503 and headers["retry-after"] and "0.300000 s" in json.loads(text)["detail"]
        assert 0.3 <= seconds and taken < 0.3 + (0.25 if not SANITIZED else 2)
        other.reset()
        assert watch.wait(lambda w: w["posenc_busy_workers"] == 0) < 0.25 or SANITIZED
        client.send(get("/healthz"))  # the connection is as good as before
        assert client.answer()[0] == 200
    after = [watch['posenc_cancelled_total{stage="late"}'], watch['posenc_rejected_total{reason="late"}']]
    assert after == [n + 1 for n in before]


@pytest.mark.parametrize("fields", [{"format": "raw"}, {}], ids=["with a length", "chunked"])
@pytest.mark.parametrize("reads", [True, False])
def test_late_while_sending_is_cut_so_that_it_shows(one_worker, fields, reads):
    body = json.dumps({"scheme": "alibi", "num_heads": 32, "len": 8192, "outputs": ["bias"], **fields}).encode()
    before = metric(one_worker, 'posenc_cancelled_total{stage="late"}')
    with Client(one_worker, receive_buffer=65536) as client:
        clock = Stopwatch(one_worker)
        client.send(with_time(post(body), 1))
        status, headers = client.head()
        assert status == 200 and ("content-length" in headers) == bool(fields)
        n = 0
        while reads and (part := client.file.read1(1 << 20)):
            n += len(part)
            tail = part[-7:]
        if not reads:
            assert wait_until(lambda: metric(one_worker, 'posenc_cancelled_total{stage="late"}') == before + 1, 5)
        assert clock.seconds() < 2.5
        if reads and fields:
            assert 0 < n < int(headers["content-length"])
        elif reads:
            assert n > 0 and not tail.endswith(b"0\r\n\r\n")
    assert wait_until(lambda: metric(one_worker, 'posenc_cancelled_total{stage="late"}') == before + 1)
    assert wait_until(lambda: is_quiet(one_worker))
