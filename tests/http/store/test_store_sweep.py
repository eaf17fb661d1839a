"""posencd --store-sweep: blobs that no name refers to leave the bucket when they are a day old, and nothing else does."""
import contextlib
import json
import subprocess
import threading

import pytest

from conftest import POSENCD, without_posenc
from connection import wait_until
from s3_store import PLACE, S3Store, blob_key as key, n_seen, name_text, on
from weights_asking import OTHER, T5, TABLE, file, put

DAY = 86400
PRESET = {"config": {"scheme": "rope", "base": 500000}}


@pytest.fixture
def s3():
    with S3Store(list_max=2) as store:  # every list has parts
        yield store


@pytest.fixture
def server(s3):
    with on(s3) as one:
        yield one


def sweep(s3, *more, env=None):
    return subprocess.run([POSENCD, "--store", PLACE, "--store-endpoint", s3.endpoint, "--store-sweep", *more], capture_output=True, text=True, env=without_posenc(env or s3.env()), timeout=60)


def make_old(s3, *keys, seconds=2 * DAY):
    for each in keys or list(s3.objects):
        s3.written[each] = s3.now() - seconds


def put_preset(server):
    assert server.request("PUT", "/presets/team-b", json.dumps(PRESET).encode(), {"Content-Type": "application/json"}).status == 201


def blobs(s3):
    return {each for each in s3.objects if each.startswith("team/a/blobs/")}


def test_what_no_name_stands_for_goes(s3, server):
    """Of a replaced name and of a deleted one; not what two names shared, a preset, other teams or other people's files."""
    replaced, deleted, shared = (file(table=TABLE + i) for i in range(3))
    for name, body in (("t", replaced), ("gone", deleted), ("x", shared), ("y", shared)):
        put(server, name, body)
    put(server, "t", file(table=OTHER), 200)
    assert server.request("DELETE", "/weights/gone").status == 204 and server.request("DELETE", "/weights/x").status == 204
    put_preset(server)
    others = {"team/b/blobs/" + "0" * 64: b"another team's", "team/a/blobs/notes.txt": b"not ours", "blobs/" + "1" * 64: b"above"}
    s3.objects.update(others)
    make_old(s3)
    before, n_blobs = dict(s3.objects), len(blobs(s3)) - 1
    done = sweep(s3)
    assert done.returncode == 0 and not done.stderr, done
    assert set(before) - set(s3.objects) == {key(replaced), key(deleted)}
    assert done.stdout == f"{PLACE}: 2 of {n_blobs} blobs removed, {len(replaced) + len(deleted)} bytes; 0 have no name and are not a day old\n"
    with on(s3) as later:
        assert later.get("/weights/t").body == file(table=OTHER) and later.get("/weights/y").body == shared
        assert later.get("/presets/team-b").json()["config"] == PRESET["config"]
    assert sweep(s3).stdout.startswith(f"{PLACE}: 0 of ")


@pytest.mark.parametrize("age, is_removed", [(0, False), (DAY - 60, False), (DAY + 60, True)])
@pytest.mark.parametrize("ahead", [0, 10 * DAY, -10 * DAY], ids=["same clock", "ahead", "behind"])
def test_a_day_by_the_clock_of_the_store(s3, age, is_removed, ahead):
    """Without keys no clock is compared, and only the store's own says how old a blob is."""
    s3.ahead = ahead
    left = "team/a/blobs/" + "2" * 64
    s3.objects[left] = b"nobody's"
    make_old(s3, left, seconds=age)
    s3.is_open = True
    env = {name: value for name, value in s3.env().items() if "KEY" not in name}
    done = sweep(s3, env=env)
    assert done.returncode == 0, done
    assert (left not in s3.objects) == is_removed
    assert f"{int(not is_removed)} have no name" in done.stdout


def test_a_blob_stored_again_is_new(s3, server):
    """So a sweep that has seen it without a name finds it young before it would remove it."""
    body = file(table=TABLE)
    put(server, "t", body)
    assert server.request("DELETE", "/weights/t").status == 204
    make_old(s3)
    s3.fault(path="/blobs/", method="HEAD", times=1, delay=1)  # the sweep's
    with sweeping(s3, "HEAD", key(body)) as results:
        put(server, "again", body)
    assert results[0].returncode == 0 and "0 of 1 blobs removed" in results[0].stdout, results
    assert s3.objects[key(body)] == body
    with on(s3) as later:
        assert later.get("/weights/again").body == body and later.ask(**T5, weights="again").status == 200


# ---- Beside a server that stores an old blob again -----------------------------------------------------------------------------


def left_blob(s3, body):
    """A blob of two days that no name refers to."""
    s3.objects[key(body)] = body
    make_old(s3, key(body))


@contextlib.contextmanager
def sweeping(s3, method, path):
    """A sweep in the background, whose first request of that kind has arrived at the store: a list of its result, at the end."""
    results, n_before = [], n_seen(s3, method, end=path)
    running = threading.Thread(target=lambda: results.append(sweep(s3)))
    running.start()
    assert wait_until(lambda: n_seen(s3, method, end=path) > n_before), s3.seen
    yield results
    running.join()


def test_a_put_while_a_delete_is_on_its_way(s3, server):
    """The DELETE arrives after the PUT has written blob and name, and the PUT does not answer before it has written the blob again."""
    body = file(table=TABLE)
    left_blob(s3, body)
    s3.fault(method="DELETE", path=key(body), delay=1, times=1)
    with sweeping(s3, "DELETE", key(body)) as results:
        put(server, "again", body)
        assert s3.objects[key(body)] == body
    assert results[0].returncode == 0 and "1 of 1 blobs removed" in results[0].stdout, results
    assert blobs(s3) == {key(body)}  # no mark is left
    with on(s3) as later:
        assert later.get("/weights/again").body == body


def test_a_name_that_comes_while_the_sweep_writes_its_mark(s3):
    """By a server that knows of no marks and has not written the blob anew."""
    body = file(table=TABLE)
    left_blob(s3, body)
    s3.fault(method="PUT", path=".sweep", delay=0.5, times=1)
    with sweeping(s3, "PUT", ".sweep") as results:
        s3.objects["team/a/names/late"] = name_text(body)
    assert results[0].returncode == 0 and "0 of 1 blobs removed" in results[0].stdout, results
    assert blobs(s3) == {key(body)}


@pytest.mark.parametrize("fault", [{"status": 503}, {"close": 1}], ids=["503", "closed"])
def test_a_delete_is_sent_once(s3, fault):
    """A second one could arrive after the blob has been stored again."""
    body = file(table=TABLE)
    left_blob(s3, body)
    s3.fault(method="DELETE", path=key(body), times=1, **fault)
    done = sweep(s3)
    assert done.returncode == 1 and " 0 of 1 blobs removed" in done.stdout, done
    assert [where for method, where in s3.seen if method == "DELETE"] == [f"/weights/{key(body)}"]


def test_a_blob_that_goes_while_its_name_is_written(s3, server):
    body = file(table=TABLE)
    s3.fault(method="PUT", path="/names/t", delay=0.5)
    storing = threading.Thread(target=lambda: put(server, "t", body))
    storing.start()
    assert wait_until(lambda: ("PUT", "/weights/team/a/names/t") in s3.seen)
    s3.objects.pop(key(body))
    storing.join()
    assert s3.objects[key(body)] == body


# ---- What is not certain ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["names", "presets", "blobs"])
def test_half_a_list_removes_nothing(s3, server, what):
    """Without Content-Length, an answer that breaks off looks whole, and says of the rest that it has gone."""
    s3.list_max = 1000
    for i in range(8):
        put(server, f"n{i}", file(table=TABLE + i))
    put_preset(server)
    left_blob(s3, file(table=OTHER))
    make_old(s3)
    before = dict(s3.objects)
    for cut in (0, 90, 200):
        s3.fault(path=f"{what}%2F", method="GET", bare=1, cut=cut)
        done = sweep(s3)
        assert done.returncode == 1 and "its list is not whole" in done.stderr and " 0 of " in done.stdout, (cut, done)
        assert s3.objects == before
        s3.heal()
    assert " 1 of 10 blobs removed" in sweep(s3).stdout


def test_more_than_half_of_the_old_blobs_stay(s3, server):
    """A list may lack names in other ways. So a sweep stops if it would remove more than half of what is a day old."""
    for i in range(5):
        put(server, f"n{i}", file(table=TABLE + i))
    make_old(s3)
    for i in range(3):
        put(server, f"young{i}", file(table=OTHER + i))  # these count for nothing
    for i in range(6):
        left_blob(s3, file(table=10 * TABLE + i))
    before = dict(s3.objects)
    done = sweep(s3)
    assert done.returncode == 1 and "6 blobs have no name, more than 50 percent" in done.stderr and "--store-sweep-max" in done.stderr, done
    assert s3.objects == before and " 0 of 14 " in done.stdout
    assert sweep(s3, "--store-sweep-max", "54").returncode == 1 and s3.objects == before
    done = sweep(s3, "--store-sweep-max", "55")  # 6 of 11
    assert done.returncode == 0 and " 6 of 14 " in done.stdout, done
    assert len(blobs(s3)) == 8


def test_half_and_few(s3, server):
    """Five of ten; and four of four, as of a bucket whose few names were all deleted."""
    for i in range(5):
        put(server, f"n{i}", file(table=TABLE + i))
        left_blob(s3, file(table=OTHER + i))
    make_old(s3)
    assert " 5 of 10 " in sweep(s3).stdout
    for i in range(1, 5):
        assert server.request("DELETE", f"/weights/n{i}").status == 204
    assert " 4 of 5 " in sweep(s3).stdout


def test_a_name_that_one_of_two_lists_lacks(s3, server):
    """The names are listed twice before anything is removed; whichever list lacks it, its blob stays."""
    s3.list_max = 1000
    put(server, "t", file(table=TABLE))
    put(server, "u", file(table=OTHER))
    make_old(s3)
    short = (f"<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>team/a/names/u</Key><ETag>{s3.tag('team/a/names/u')}</ETag>"
             "</Contents></ListBucketResult>").encode()
    for n_before in (0, 1):
        if n_before:
            s3.fault(path="names%2F", times=n_before)
        s3.fault(path="names%2F", times=1, body=short)
        assert sweep(s3).returncode == 0 and len(blobs(s3)) == 2
        s3.heal()


@pytest.mark.parametrize("fault, word", [
    ({"path": "/names/t", "status": 500}, "status 500"),
    ({"path": "/names/t", "status": 403, "code": "AccessDenied"}, "AccessDenied"),
    ({"path": "/names/t", "close": 1}, "no answer"),
    ({"path": "/presets/", "status": 503}, "status 503"),
    ({"path": "/weights", "method": "GET", "status": 503}, "status 503"),
    ({"close": 1}, "no answer"),
    ({"path": "/names/t", "method": "GET", "body": b'{"sha512":"'}, "its name has no"),
], ids=["name 500", "name 403", "name closed", "presets 503", "all 503", "nothing", "name of something else"])
def test_what_is_not_certain_removes_nothing(s3, server, fault, word):
    put(server, "t", file(table=TABLE))
    put(server, "t", file(table=OTHER), 200)
    put_preset(server)
    make_old(s3)
    before = dict(s3.objects)
    s3.fault(**fault)
    done = sweep(s3)
    assert done.returncode == 1 and word in done.stderr and PLACE in done.stderr, done
    assert " 0 of " in done.stdout and s3.objects == before


def test_it_needs_a_store():
    for more in ([], ["--weights-dir", "/tmp"]):
        run = subprocess.run([POSENCD, "--store-sweep", *more], capture_output=True, text=True, env=without_posenc(None), timeout=20)
        assert run.returncode == 2 and "--store, which is not given" in run.stderr
