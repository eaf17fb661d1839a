"""Two servers on one folder of stored weights, or one bucket: what one stores the other serves, and guards hold between them."""
import contextlib
import fcntl
import os
import signal
import threading
import time

import numpy as np
import pytest

from conftest import start_server
from connection import at_once, within
from s3_store import S3Store, names, on
from weights_asking import OTHER, T5, TABLE, file, put, tag

REFRESH = 1


@contextlib.contextmanager
def servers(where, folder):
    """Two on this folder, or on a bucket of their own."""
    with contextlib.ExitStack() as stack:
        s3 = stack.enter_context(S3Store()) if where == "bucket" else None
        yield [stack.enter_context(on(s3) if s3 else start_server("--weights-dir", str(folder), "--weights-refresh", str(REFRESH))) for _ in range(2)]


@pytest.fixture(params=["folder", "bucket"])
def two(request, tmp_path):
    with servers(request.param, tmp_path) as both:
        yield both


@pytest.fixture
def on_a_folder(tmp_path):
    with servers("folder", tmp_path) as both:
        yield both


def test_a_new_name_is_served_by_the_other_at_once(two, request):
    a, b = two
    if "folder" in request.node.name:  # a bucket is asked for a name once a second
        assert b.get("/weights/t").status == 404
    put(a, "t", file(table=TABLE))
    assert b.ask(**T5, weights="t").body == a.ask(**T5, weights="t").body == a.ask(**T5, table=TABLE.tolist()).body
    assert b.get("/weights/t").headers["ETag"] == tag(file(table=TABLE))
    assert b.request("HEAD", "/weights/never").status == 404 and b.post("/encode", {**T5, "weights": "never"}).status == 422


def test_changes_are_seen_within_a_refresh(two):
    a, b = two
    put(a, "t", file(table=TABLE))
    assert b.get("/weights/t").body == file(table=TABLE)
    put(a, "t", file(table=OTHER), 200)
    within(REFRESH + 5, lambda: b.get("/weights/t").body == file(table=OTHER))
    put(a, "u", file(table=TABLE))
    within(REFRESH + 5, lambda: names(b) == ["t", "u"])
    assert a.request("DELETE", "/weights/t").status == 204
    within(REFRESH + 5, lambda: b.get("/weights/t").status == 404)


def test_a_pinned_digest_is_never_old(two):
    a, b = two
    put(a, "t", file(table=TABLE))
    assert b.get("/weights/t").status == 200
    for i in range(20):
        body = file(table=np.full((32, 2), i, "f4"))
        put(a, "t", body, 200)
        pinned = {"name": "t", "sha256": tag(body)[1:-1].upper()}
        assert b.ask(**T5, weights=pinned).body == np.full(2 * 81, i, "f4").tobytes()
    assert b.post("/encode", {**T5, "weights": {"name": "t", "sha256": "0" * 64}}).status == 412


def test_guards_hold_between_servers(two):
    a, b = two
    put(a, "t", file(table=TABLE), 201, If_None_Match="*")
    assert tag(file(table=TABLE))[1:-1] in put(b, "t", file(table=OTHER), 412, If_None_Match="*").json()["detail"]
    put(b, "t", file(table=OTHER), 200, If_Match=tag(file(table=TABLE)))
    put(a, "t", file(table=TABLE), 412, If_Match=tag(file(table=TABLE)))  # what a remembers is stale
    assert a.get("/weights/t").body == file(table=OTHER)
    assert a.request("DELETE", "/weights/t", headers={"If-Match": tag(file(table=TABLE))}).status == 412
    assert a.request("DELETE", "/weights/t", headers={"If-Match": tag(file(table=OTHER))}).status == 204
    assert b.request("DELETE", "/weights/t").status == 404


@pytest.mark.parametrize("same", [False, True], ids=["different", "equal"])
@pytest.mark.parametrize("guard", ["If-None-Match", "If-Match"])
def test_one_of_many_wins(two, guard, same):
    """Of twenty guarded PUTs at two servers exactly one succeeds, also if all have the same bytes; both then serve the winner's file."""
    current = file(table=TABLE)
    put(two[0], "race", current)
    for turn in range(1, 4):
        name, value = (f"race{turn}", "*") if guard == "If-None-Match" else ("race", tag(current))
        won = []

        def store(i):
            body = file(table=np.full((32, 2), turn if same else 100 * turn + i, "f4"))
            status = two[i % 2].request("PUT", "/weights/" + name, body, {guard: value}).status
            assert status in (200, 201, 412), status
            if status != 412:
                won.append(body)

        at_once(store, range(20))
        assert len(won) == 1
        current = won[0]
        for server in two:
            assert server.ask(**T5, weights={"name": name, "sha256": tag(current)[1:-1]})


def test_a_writer_that_stands_still_with_the_lock(on_a_folder, tmp_path):
    """It is waited for; others are served meanwhile, changes are refused after 5 s, and go on when it does. A server that starts
    leaves the draft of who waits."""
    def drafts():
        return {path.name for path in tmp_path.glob(".posenc-*")} - {".posenc-lock"}

    a, _ = on_a_folder
    put(a, "t", file(table=TABLE))
    with open(tmp_path / ".posenc-lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = []
        thread = threading.Thread(target=lambda: results.append(a.request("PUT", "/weights/u", file(table=TABLE))))
        thread.start()
        within(3, drafts)
        with start_server("--weights-dir", str(tmp_path)):
            assert drafts()
        while thread.is_alive():
            assert a.get("/weights/t").status == 200 and a.ask(**T5, weights="t")
            time.sleep(0.1)
        assert results[0].status == 503 and results[0].headers["Retry-After"]
    put(a, "u", file(table=TABLE))


def test_broken_files_are_logged_once(on_a_folder, tmp_path):
    a, _ = on_a_folder
    (tmp_path / "bad.safetensors").write_bytes(b"no such thing")
    within(REFRESH + 5, lambda: "bad" in a.stderr_text())
    assert a.get("/weights/bad").status == 404
    time.sleep(2.2 * REFRESH)
    assert a.stderr_text().count("weights bad of") == 1
    (tmp_path / "bad.safetensors").write_bytes(file(table=TABLE))
    within(REFRESH + 5, lambda: a.get("/weights/bad").status == 200)


def test_a_refresh_of_nothing_is_none(tmp_path):
    with start_server("--weights-dir", str(tmp_path), "--weights-refresh", "0") as server:
        (tmp_path / "t.safetensors").write_bytes(file(table=TABLE))
        time.sleep(0.5)
        assert server.get("/weights").json() == {"weights": []}
        assert server.get("/weights/t").status == 200  # who asks for it gets it
        os.kill(server.pid, signal.SIGHUP)
        within(5, lambda: len(server.get("/weights").json()["weights"]) == 1)


def test_a_zarr_store_of_weights_that_are_not_read_yet(tmp_path):
    """A reader that gets 503 for a chunk may take it for one that is not there."""
    with start_server("--weights-dir", str(tmp_path), "--weights-refresh", "3600") as server:
        for name, key in (("a", ".zattrs"), ("b", "bias/.zarray"), ("c", "bias/0.0.0")):
            (tmp_path / f"{name}.safetensors").write_bytes(file(table=TABLE))
            assert server.get(f"/zarr/scheme=t5&num_heads=2&len=9&weights={name}/{key}").status == 200, name
        problem = server.get("/zarr/scheme=t5&num_heads=2&len=9&weights=never/.zattrs")
        assert problem.status == 422 and problem.json()["pointer"] == "/weights"
