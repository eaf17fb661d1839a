"""What takes a store's user long: the patience of a request for a name that is being read, the rest after a spoiled blob, a sweep beside a
PUT. All of it at the same time, each on a store and a server of its own."""
import signal
import threading
import time

from conftest import Stopwatch
from connection import Client, at_once, metric, within
from s3_store import S3Store, blob_key, figure, lay, n_seen, name_text, names, on
from test_store_slow import PATIENCE, SLOW, lay_slow, quiet, wanting
from test_store_sweep import blobs, left_blob, make_old, sweep, sweeping
from weights_asking import OTHER, TABLE, file, put


def of_equal_requests_one_waits_for_all(s3):
    """When its client leaves, the next one does not wait anew."""
    with quiet(s3, "--workers", "1") as a:
        lay_slow(s3, "slow")
        first, next_one = Client(a), Client(a)
        first.send(wanting("slow", 0))
        within(5, lambda: metric(a, "posenc_in_flight_requests") == 2)
        next_one.send(wanting("slow", 0))
        begun, watch = time.monotonic(), Stopwatch(a)
        time.sleep(PATIENCE / 2)
        first.reset()
        status, headers, _ = next_one.answer()
        assert status == 503 and headers["retry-after"]
        assert PATIENCE - 0.1 < time.monotonic() - begun and watch.seconds() < PATIENCE + PATIENCE / 3


def equal_requests_wait_together(s3):
    with quiet(s3) as a:
        within(5, lambda: metric(a, "posenc_store_reachable") == 1)
        lay_slow(s3, "slow")
        watch = Stopwatch(a)
        assert at_once(lambda _: a.get("/weights/slow").status, range(4)) == [503] * 4
        assert watch.seconds() < 1.5 * PATIENCE  # one after the other: twice as long and more


def one_slow_blob_stops_no_news(s3):
    """The comparison goes on, and requests for the slow name are refused, not left without an answer."""
    for name in "bcd":
        lay(s3, name, file(table=TABLE + ord(name)))
    with on(s3) as a:
        within(10, lambda: len(names(a)) == 3)
        for i in range(8):  # more than are read at the same time
            lay_slow(s3, f"a-slow{i}")
        within(10, lambda: n_seen(s3, "GET", "/blobs/") >= 5)
        answers, watch = {}, Stopwatch(a)

        def ask(method):
            answers[method] = a.request(method, "/weights/a-slow0", file(table=TABLE) if method == "PUT" else None)
            assert watch.seconds() < (PATIENCE + 5) * SLOW

        threads = [threading.Thread(target=ask, args=(method,)) for method in ("GET", "PUT", "DELETE")]
        for thread in threads:
            thread.start()
        del s3.objects["team/a/names/c"]
        s3.objects["team/a/names/d"] = s3.objects["team/a/names/d"].rstrip()  # the same blob with another tag
        n_asked = n_seen(s3, end="/names/d")
        within(5, lambda: a.get("/weights/c").status == 404)
        within(5, lambda: n_seen(s3, end="/names/d") > n_asked)
        lay(s3, "e", file(table=TABLE))
        assert a.get("/weights/e").body == file(table=TABLE)  # a new name, on a request
        for thread in threads:
            thread.join()
        assert {method: answer.status for method, answer in answers.items()} == {"GET": 503, "PUT": 503, "DELETE": 503}
        assert all(answer.headers["Retry-After"] for answer in answers.values())
        s3.heal()


def a_spoiled_blob(s3, fault):
    """Refused, counted, fetched again; never served. It is tried again after 30 s, or at once after SIGHUP."""
    with on(s3) as a, on(s3) as b:
        put(a, "t", file(table=TABLE))
        s3.fault(path="/blobs/", method="GET", times=1, **fault)
        assert b.get("/weights/t").body == file(table=TABLE)
        put(a, "u", file(table=OTHER))
        s3.fault(path="/blobs/", method="GET", **fault)
        assert b.get("/weights/u").status == 503 and names(b) == ["t"]
        if "corrupt" in fault:
            assert figure(b, "posenc_store_spoiled_total") >= 2 and "another digest" in b.stderr_text()
        s3.heal()
        assert b.get("/weights/u").status == 503
        if "cut" in fault:
            b.process.send_signal(signal.SIGHUP)
        within(45 if "corrupt" in fault else 5, lambda: b.get("/weights/u").body == file(table=OTHER))


def a_corrupt_blob_is_tried_again_by_itself(s3):
    a_spoiled_blob(s3, {"corrupt": 1})


def a_cut_blob_is_tried_again_after_sighup(s3):
    a_spoiled_blob(s3, {"cut": 100})


def a_store_that_is_away_is_not_called_reachable_between_two_requests(s3):
    """Otherwise an alert that waits minutes would never fire."""
    with on(s3, refresh=4) as a:
        within(10, lambda: figure(a, "posenc_store_reachable") == 1)
        s3.kill()
        within(10, lambda: figure(a, "posenc_store_reachable") == 0)
        end = time.monotonic() + 6
        while time.monotonic() < end:
            assert figure(a, "posenc_store_reachable") == 0
            time.sleep(0.1)


def a_name_that_comes_too_late_fails_the_sweep(s3):
    """By a server that knows of no marks, after the sweep's last look at the names: it cannot bring the blob back, but says so."""
    body = file(table=TABLE)
    left_blob(s3, body)
    s3.fault(method="DELETE", path=blob_key(body), delay=0.5, times=1)
    with sweeping(s3, "DELETE", blob_key(body)) as results:
        s3.objects["team/a/names/late"] = name_text(body)
    assert results[0].returncode == 1 and "the name late was stored while its blob" in results[0].stderr, results


def the_mark_of_a_sweep_that_died(s3):
    """It delays a PUT for a minute at most, and the next sweep removes it."""
    body = file(table=TABLE)
    left_blob(s3, body)
    mark = blob_key(body) + ".sweep"
    s3.objects[mark] = b"a sweep is removing this blob\n"
    with on(s3) as server:
        assert "status" in put(server, "again", body, 503).json() and s3.objects[blob_key(body)] == body
        make_old(s3, mark, seconds=70)
        put(server, "again", body, 200)
    assert sweep(s3).returncode == 0 and blobs(s3) == {blob_key(body)}


WAITS = [of_equal_requests_one_waits_for_all, equal_requests_wait_together, one_slow_blob_stops_no_news, a_corrupt_blob_is_tried_again_by_itself,
         a_cut_blob_is_tried_again_after_sighup, a_store_that_is_away_is_not_called_reachable_between_two_requests,
         a_name_that_comes_too_late_fails_the_sweep, the_mark_of_a_sweep_that_died]


def test_what_waits_for_a_store_ends_when_it_should():
    def run(wait):
        with S3Store() as s3:
            wait(s3)

    at_once(run, WAITS)
