"""posencd --store-sweep: blobs that no name stands for leave the bucket when they are a day old, and nothing else does."""
import json
import subprocess
import threading
import time

import pytest

from conftest import POSENCD, start_server, without_posenc
from s3_store import S3Store
from weights_asking import OTHER, T5, TABLE, file, put, tag

DAY = 86400
PLACE = "s3://weights/team/a"
PRESET = {"config": {"scheme": "rope", "base": 500000}}


@pytest.fixture
def s3():
    with S3Store(list_max=2) as store:  # every list has parts
        yield store


def flags(s3):
    return ("--store", PLACE, "--store-endpoint", s3.endpoint)


@pytest.fixture
def server(s3):
    with start_server(*flags(s3), "--store-refresh", "1", env=s3.env()) as one:
        yield one


def sweep(s3, *more, env=None):
    return subprocess.run([POSENCD, *flags(s3), "--store-sweep", *more], capture_output=True, text=True, env=without_posenc(env or s3.env()), timeout=60)


def key(body):
    return f"team/a/blobs/{tag(body)[1:-1]}"


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
    with start_server(*flags(s3), env=s3.env()) as later:
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
    n_heads = [method for method, _ in s3.seen].count("HEAD")
    results = []
    running = threading.Thread(target=lambda: results.append(sweep(s3)))
    running.start()
    end = time.monotonic() + 20
    while [method for method, _ in s3.seen].count("HEAD") == n_heads:
        assert time.monotonic() < end
        time.sleep(0.01)
    put(server, "again", body)
    running.join()
    assert results[0].returncode == 0 and "0 of 1 blobs removed" in results[0].stdout, results
    assert s3.objects[key(body)] == body
    with start_server(*flags(s3), env=s3.env()) as later:
        assert later.get("/weights/again").body == body and later.ask(**T5, weights="again").status == 200


@pytest.mark.parametrize("fault, word", [
    ({"path": "/names/t", "status": 500}, "status 500"),
    ({"path": "/names/t", "status": 403, "code": "AccessDenied"}, "AccessDenied"),
    ({"path": "/names/t", "close": 1}, "no answer"),
    ({"path": "/presets/", "status": 503}, "status 503"),
    ({"path": "/weights", "method": "GET", "status": 503}, "status 503"),
], ids=["name 500", "name 403", "name closed", "presets 503", "all 503"])
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


def test_a_name_that_says_something_else(s3, server):
    put(server, "t", file(table=TABLE))
    s3.objects["team/a/names/odd"] = b'{"sha512":"'
    s3.objects["team/a/blobs/" + "3" * 64] = b"nobody's"
    make_old(s3)
    before = dict(s3.objects)
    done = sweep(s3)
    assert done.returncode == 1 and "its name says no" in done.stderr and s3.objects == before


def test_a_store_that_is_not_there(s3):
    s3.kill()
    done = sweep(s3)
    assert done.returncode == 1 and "no answer" in done.stderr


def test_it_needs_a_store():
    for more in ([], ["--weights-dir", "/tmp"]):
        run = subprocess.run([POSENCD, "--store-sweep", *more], capture_output=True, text=True, env=without_posenc(None), timeout=20)
        assert run.returncode == 2 and "--store, which is not given" in run.stderr
