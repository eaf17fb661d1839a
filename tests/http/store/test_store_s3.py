"""Stored weights in an S3-compatible store (s3_store.py): two servers on one bucket, guards, the cache, and every way in which a
store fails."""
import contextlib
import http.client
import os
import shutil
import signal
import ssl
import subprocess
import threading
import time

import numpy as np
import pytest

from conftest import POSENCD, SANITIZED, Stopwatch, start_server, without_posenc
from connection import at_once, certificate, within
from faults import faulty_server
from s3_store import S3Store, figure, names, on, s3, sha  # noqa: F401 - s3 is a fixture
from weights_asking import OTHER, T5, TABLE, file, put, small_disk

SLOW = 5 if SANITIZED else 1


@pytest.fixture
def two(s3):
    with on(s3) as a, on(s3) as b:
        yield a, b


# ---- Two servers ---------------------------------------------------------------------------------------------------------------


def test_weights_survive_all_servers(s3):
    with on(s3) as a:
        put(a, "t", file(table=TABLE))
    with on(s3) as b:
        assert b.get("/weights/t").body == file(table=TABLE)  # even before the first list is read


def test_a_list_in_parts():
    with S3Store(list_max=3) as s3:
        with on(s3) as a:
            for i in range(10):
                put(a, f"w{i}", file(table=TABLE + i))
        s3.objects["team/a/names/not a name"] = b"{}"
        s3.objects["team/a/names/strange"] = b"not ours"
        s3.objects["team/another"] = s3.objects["team/b/names/x"] = b"{}"
        with on(s3) as b:
            within(6, lambda: names(b) == [f"w{i}" for i in range(10)])
            within(5, lambda: "strange" in b.stderr_text())
            assert b.get("/weights/strange").status == 503 and b.is_alive()


def test_large_files(two):
    a, b = two
    body = file(x=np.random.default_rng(1).integers(0, 255, 20_000_000).astype("u1"))
    put(a, "large", body)
    assert b.get("/weights/large").body == body


def test_places_and_keys(s3, tmp_path):
    """Without a prefix; with a session token; keys from a file that is read again."""
    s3.session_token = "a/b+c=="
    with on(s3, place="s3://weights/") as a:
        put(a, "t", file(table=TABLE))
        assert "names/t" in s3.objects
    s3.session_token = ""
    path = tmp_path / "credentials"

    def write(secret):
        (tmp_path / "new").write_text(f"# keys\n[default]\naws_access_key_id = {s3.access_key}\naws_secret_access_key={secret}\n\n[other]\naws_access_key_id = x\n")
        os.replace(tmp_path / "new", path)

    write(s3.secret_key)
    with on(s3, "--store-credentials", str(path), env={"AWS_REGION": "us-east-1", "no_proxy": "127.0.0.1"}) as a:
        put(a, "u", file(table=TABLE))
        s3.secret_key = "another"
        assert put(a, "v", file(table=TABLE), 503).headers["Retry-After"]
        write(s3.secret_key)
        put(a, "v", file(table=TABLE))
        assert "another" not in a.stderr_text() and "se+cr/et" not in a.stderr_text()


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
@pytest.mark.skipif(SANITIZED, reason="beside other tests a handshake may take longer than a store has to be connected: a second")
def test_https(tmp_path):
    """With a certificate that is trusted, and one that is not."""
    cert, key = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    with S3Store(tls=tls) as s3:
        with on(s3, env=s3.env(AWS_CA_BUNDLE=str(cert))) as a:
            # A handshake on a loaded machine may take longer than the second that a store has to be connected.
            within(10, lambda: a.request("PUT", "/weights/t", file(table=TABLE)).status in (200, 201))
            within(10, lambda: a.request("PUT", "/weights/large", file(x=np.zeros(3_000_000, "u1"))).status in (200, 201))
        with on(s3) as b:
            within(20, lambda: b.get("/weights/t").status == 503 and "certificate" in b.stderr_text())  # asked again, as a slow handshake is


# ---- What is wrong from the start --------------------------------------------------------------------------------------------------


def refused(*flags):
    run = subprocess.run([POSENCD, "--port", "0", *flags], capture_output=True, text=True, env=without_posenc(None), timeout=20)
    assert run.returncode != 0
    return run.stderr


def test_options_that_do_not_fit(tmp_path):
    assert "one of the two" in refused("--weights-dir", str(tmp_path), "--store", "s3://a/b")
    assert "--store, which is not given" in refused("--store-cache", str(tmp_path))
    assert "s3://BUCKET" in refused("--store", "http://a/b") and "s3://BUCKET" in refused("--store", "s3://a/b//c")
    assert "s3://BUCKET" in refused("--store", "s3://a/b c") and "s3://BUCKET" in refused("--store", "s3://")
    assert "http://HOST:PORT" in refused("--store", "s3://a", "--store-endpoint", "localhost:9000")
    assert "http://HOST:PORT" in refused("--store", "s3://a", "--store-endpoint", "http://user:word@localhost")
    assert "--store-cache" in refused("--store", "s3://a", "--store-endpoint", "http://x", "--store-cache", str(tmp_path / "none"))
    assert "--store-credentials" in refused("--store", "s3://a", "--store-endpoint", "http://x", "--store-credentials", str(tmp_path / "none"))
    key = "aws_access_key_id=a\naws_secret_access_key=b\n"
    for text, words in ("nothing", "aws_access_key_id"), (key + "\0", "byte 0"), (key + "#" * 16384, "too large"):
        (tmp_path / "keys").write_text(text)
        assert words in refused("--store", "s3://a", "--store-endpoint", "http://x", "--store-credentials", str(tmp_path / "keys"))


def serves(server):
    """All but stored weights works, within its usual time."""
    watch = Stopwatch(server)
    assert server.get("/readyz").status == 200 and server.get("/healthz").status == 200 and server.ask(scheme="rope", len=8)
    assert watch.seconds() < 0.5 * SLOW


def unknown(server, name="unknown"):
    answer = server.get("/weights/" + name)
    assert answer.status == 503 and answer.headers["Retry-After"] and "not known" in answer.json()["detail"], answer
    answer = server.post("/encode", {**T5, "weights": name})
    assert answer.status == 503 and answer.headers["Retry-After"] and answer.json()["pointer"] == "/weights", answer
    answer = put(server, name, file(table=TABLE), 503)
    assert answer.headers["Retry-After"] and "--store" in answer.json()["detail"]
    assert server.request("DELETE", "/weights/" + name).status == 503


def test_a_store_that_is_not_there_at_start(s3):
    s3.kill()
    with on(s3) as a:
        serves(a)
        unknown(a)
        within(10, lambda: "cannot be read" in a.stderr_text())
        assert figure(a, "posenc_store_reachable") == 0 and figure(a, "posenc_store_index_age_seconds") is None
        s3.revive()
        within(6, lambda: a.request("PUT", "/weights/t", file(table=TABLE)).status in (200, 201))
        assert a.stderr_text().count("cannot be read") == 1
        within(6, lambda: figure(a, "posenc_store_reachable") == 1)


@pytest.mark.parametrize("what, word", [("bucket", "the bucket nowhere is not there"), ("key", "the keys"), ("clock", "ahead of ours"),
                                        ("secret", "SignatureDoesNotMatch")])
def test_what_a_store_refuses(s3, what, word):
    env = s3.env()
    if what == "key":
        env["AWS_ACCESS_KEY_ID"] = "nobody"
    if what == "secret":
        env["AWS_SECRET_ACCESS_KEY"] = "wrong"
    if what == "clock":
        s3.ahead = 2000
    with on(s3, place="s3://nowhere/x" if what == "bucket" else "s3://weights/x", env=env) as a:
        serves(a)
        unknown(a)
        within(5, lambda: word in a.stderr_text())
        assert "se+cr/et" not in a.stderr_text()
        s3.ahead = 0
        if what == "clock":
            within(6, lambda: a.request("PUT", "/weights/t", file(table=TABLE)).status == 201)


# ---- What fails later ---------------------------------------------------------------------------------------------------------------

FAULTS = [{"hang": 1}, {"close": 1}, {"status": 503}, {"status": 500, "code": "InternalError"}, {"kill": 1}]


def test_a_store_that_fails_while_it_is_used():
    """In each way, side by side: what is in memory is served; unknown names and changes are 503; afterwards all is as if nothing had been."""
    def run(fault):
        with S3Store() as s3, on(s3) as a, on(s3) as b:
            fails(s3, a, b, fault)

    at_once(run, FAULTS)


def fails(s3, a, b, fault):
    put(a, "t", file(table=TABLE))
    assert b.get("/weights/t").status == 200
    if "kill" in fault:
        s3.kill()
    else:
        s3.fault(**fault)
    for server in (a, b):
        watch = Stopwatch(server)
        unknown(server)
        assert watch.seconds() < 15 * SLOW
        serves(server)
        assert server.get("/weights/t").body == file(table=TABLE) and server.ask(**T5, weights="t")
        pinned = server.post("/encode", {**T5, "weights": {"name": "t", "sha256": "0" * 64}})
        assert pinned.status == 503 and pinned.headers["Retry-After"]
    within(15, lambda: figure(a, "posenc_store_index_age_seconds") > 2)
    if "kill" in fault:
        s3.revive()
    s3.heal()
    within(10, lambda: b.request("PUT", "/weights/u", file(table=OTHER)).status in (200, 201))
    within(10, lambda: names(a) == ["t", "u"])
    assert a.get("/weights/unknown").status == 404
    outcome = "failed" if "status" in fault else "unanswered"
    assert sum(figure(a, "posenc_store_requests_total", operation=operation, outcome=outcome) for operation in ("get", "list")) > 0


def test_many_unknown_names_of_a_store_that_hangs(s3):
    """They keep no worker and no I/O thread from others."""
    other = {"X-Forwarded-For": "192.0.2.7"}
    with on(s3, "--workers", "2", "--io-threads", "1", "--trusted-proxy", "127.0.0.1") as a:
        put(a, "t", file(table=TABLE))
        s3.fault(hang=1)
        statuses = []
        threads = [threading.Thread(target=lambda i=i: statuses.append(a.get(f"/weights/unknown{i}").status)) for i in range(30)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        slowest = 0
        while any(thread.is_alive() for thread in threads):
            watch = Stopwatch(a)
            assert a.ask(headers=other, scheme="alibi", num_heads=4, len=100, format="png").status == 200  # by a worker
            assert a.ask(headers=other, **T5, weights="t") and a.get("/readyz").status == 200
            slowest = max(slowest, watch.seconds())
        for thread in threads:
            thread.join()
        assert statuses == [503] * 30 and slowest < 0.7 * SLOW, slowest


def test_waiting_is_not_charged(s3, tmp_path):
    """A token with a quota of work may wait for the store: that is not computing."""
    (tmp_path / "tokens").write_text("team secretsecretsecret write work=0.2/s\n")
    headers = {"Authorization": "Bearer secretsecretsecret"}
    with on(s3, "--token-file", str(tmp_path / "tokens")) as a:
        s3.fault(path="/names/", method="GET", delay=1)
        before = figure(a, "posenc_worker_busy_seconds_total")
        for i in range(3):
            assert a.get(f"/weights/unknown{i}", headers).status == 404
        assert figure(a, "posenc_worker_busy_seconds_total") - before < 0.5 * SLOW


def test_a_store_that_fails_now_and_then(s3, two):
    """One failure in a request is repeated and not seen."""
    a, b = two
    for i, fault in enumerate([{"status": 503}, {"close": 1}, {"status": 500}, {"status": 429}]):
        for path in ("/names/", "/blobs/"):
            name = f"{i}{path.strip('/')}"
            body = file(table=np.full((32, 2), 10 * i + len(path) + (path == "/names/"), "f4"))
            s3.fault(path=path, times=1, **fault)
            put(a, name, body)
            s3.fault(path=path, times=1, **fault)
            assert b.get("/weights/" + name).body == body


def test_an_answer_that_got_lost(s3, two):
    """The name was written and the answer did not come: written is written, and it is not taken for another's."""
    a, b = two
    real, lost = s3.objects, []

    class Objects(dict):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            if key.endswith("names/t") and not lost:
                lost.append(key)
                raise ConnectionResetError  # before the answer

    s3.objects = Objects(real)
    put(a, "t", file(table=TABLE), 201, If_None_Match="*")
    assert lost and b.get("/weights/t").body == file(table=TABLE)
    put(b, "t", file(table=OTHER), 412, If_None_Match="*")


def test_a_blob_that_is_spoiled_in_the_store(s3, two):
    """Another PUT of it mends it."""
    a, b = two
    put(a, "t", file(table=TABLE))
    key = f"team/a/blobs/{sha(file(table=TABLE))}"
    s3.objects[key] = s3.objects[key][:-1] + b"\xff"
    assert b.get("/weights/t").status == 503
    put(b, "t", file(table=TABLE), 200)
    assert s3.objects[key] == file(table=TABLE)
    s3.objects.pop(key)
    with on(s3) as c:
        assert c.get("/weights/t").status == 503
        within(5, lambda: "NoSuchKey" in c.stderr_text())
        put(c, "t", file(table=TABLE), 200)
    assert s3.objects[key] == file(table=TABLE)


@pytest.mark.parametrize("fault", [{"hang": 1}, {"trickle": 1}], ids=["hang", "trickle"])
def test_it_ends_while_a_store_hangs(s3, fault):
    with on(s3) as a:
        s3.fault(path="/names/x", **fault)
        s3.objects["team/a/names/x"] = b"x" * 1000
        client = threading.Thread(target=lambda: contextlib.suppress(Exception) and a.get("/weights/x"))
        client.start()
        time.sleep(0.2)
        a.process.send_signal(signal.SIGTERM)
        assert a.ended(8 * SLOW) == 0
        client.join()


# ---- The cache ----------------------------------------------------------------------------------------------------------------------


def test_a_start_without_the_store(s3, tmp_path):
    cache = ("--store-cache", str(tmp_path))
    with on(s3, *cache) as a:
        put(a, "t", file(table=TABLE))
        put(a, "u", file(table=OTHER))
        put(a, "gone", file(table=TABLE + 1))
        assert a.request("DELETE", "/weights/gone").status == 204
        assert (tmp_path / f"{sha(file(table=TABLE))}.safetensors").read_bytes() == file(table=TABLE)
    s3.kill()
    with on(s3, *cache) as a:
        assert names(a) == ["t", "u"] and a.get("/weights/t").body == file(table=TABLE)
        assert a.ask(**T5, weights="u").body == a.ask(**T5, table=OTHER.tolist()).body
        assert figure(a, "posenc_store_cache_hits_total") == 2 and figure(a, "posenc_store_cache_bytes") >= 2 * len(file(table=TABLE))
        unknown(a)
        serves(a)
        s3.revive()
        s3.objects.pop("team/a/names/u")
        within(11, lambda: names(a) == ["t"])
    with on(s3, *cache) as b:
        assert b.get("/weights/t").body == file(table=TABLE)
        assert not [path for method, path in s3.seen[-4:] if sha(file(table=TABLE)) in path]  # a sweep may ask for the blob that is gone


def test_a_cache_that_was_spoiled(s3, tmp_path):
    with on(s3, "--store-cache", str(tmp_path)) as a:
        put(a, "t", file(table=TABLE))
        put(a, "u", file(table=OTHER))
    blob = tmp_path / f"{sha(file(table=TABLE))}.safetensors"
    blob.write_bytes(blob.read_bytes()[:-1] + b"\x00")
    (tmp_path / f"{sha(file(table=OTHER))}.safetensors").write_bytes(b"")
    (tmp_path / ".posenc-0123456789abcdef").write_bytes(b"half")
    with on(s3, "--store-cache", str(tmp_path)) as a:
        assert a.get("/weights/t").body == file(table=TABLE) and a.get("/weights/u").body == file(table=OTHER)
        assert figure(a, "posenc_store_cache_spoiled_total") == 2
        assert blob.read_bytes() == file(table=TABLE) and not (tmp_path / ".posenc-0123456789abcdef").exists()
    for index in (b"", b"\x00\xff\n\n", b"t x 3 y\n../t " + b"0" * 64 + b" 3 y\n"):
        (tmp_path / "index").write_bytes(index)
        with on(s3, "--store-cache", str(tmp_path)) as a:
            assert a.get("/weights/t").body == file(table=TABLE)


def test_the_cache_keeps_what_was_used_last(s3, tmp_path):
    with on(s3, "--store-cache", str(tmp_path), "--max-weights", "100KiB") as a:
        for i in range(8):
            put(a, "hot", file(x=np.full(30_000, i, "u1")), 200 if i else 201)
            assert sum(path.stat().st_size for path in tmp_path.glob("*.safetensors")) <= 100 * 1024
        put(a, "small", file(table=TABLE))
        assert (tmp_path / f"{sha(file(x=np.full(30_000, 7, 'u1')))}.safetensors").exists()
        assert (tmp_path / f"{sha(file(table=TABLE))}.safetensors").exists()
        assert not (tmp_path / f"{sha(file(x=np.full(30_000, 0, 'u1')))}.safetensors").exists()
        assert put(a, "big", file(x=np.zeros(90_000, "u1")), 413)


def test_more_in_the_store_than_fits(s3, two):
    with on(s3, "--max-weights", "1KiB") as small:
        put(two[0], "a", file(table=TABLE))
        put(two[0], "b", file(x=np.zeros(2000, "u1")))
        assert small.get("/weights/a").status == 200
        answer = small.get("/weights/b")
        assert answer.status == 413 and "--max-weights" in answer.json()["detail"]
        assert small.post("/encode", {**T5, "weights": "b"}).status == 413


def test_the_disk_of_the_cache_is_full(s3, tmp_path):
    """Nothing is lost, nothing wrong is served: only the cache does without."""
    with small_disk(tmp_path, "64k"):
        with on(s3, "--store-cache", str(tmp_path)) as a, on(s3) as b:
            for i in range(6):
                body = file(x=np.full(30_000, i, "u1"))
                put(a, f"w{i}", body)
                assert b.get(f"/weights/w{i}").body == a.get(f"/weights/w{i}").body == body
            assert figure(a, "posenc_store_cache_failures_total") > 0 and "No space left" in a.stderr_text()
            assert not list(tmp_path.glob(".posenc-*"))
        s3.kill()
        with on(s3, "--store-cache", str(tmp_path)) as a:
            served = names(a)
            assert served and all(a.get("/weights/" + name).body == file(x=np.full(30_000, int(name[1]), "u1")) for name in served)


# ---- Figures ------------------------------------------------------------------------------------------------------------------------


def test_figures(s3):
    with on(s3) as a:
        put(a, "t", file(table=TABLE))
        assert a.get("/weights/unknown").status == 404
        assert a.get("/weights/unknown").status == 404
        assert figure(a, "posenc_store_requests_total", operation="put", outcome="done") == 2
        assert figure(a, "posenc_store_requests_total", operation="get", outcome="absent") == 2  # once a second a name
        assert figure(a, "posenc_store_request_seconds_total", operation="put") > 0
        within(5, lambda: figure(a, "posenc_store_index_age_seconds") is not None)
        assert figure(a, "posenc_store_index_age_seconds") < 6 and figure(a, "posenc_store_names") == 1
    with start_server() as plain:
        assert "posenc_store_" not in plain.get("/metrics").body.decode()


# ---- Memory -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(SANITIZED, reason="preloads")
@pytest.mark.parametrize("what", ["put", "get", "remove"])
def test_each_allocation_fails_once(s3, what):
    """It costs one request, in this process and in libcurl; nothing wrong is stored or served."""
    flags = ("--store", "s3://weights/a", "--store-endpoint", s3.endpoint, "--store-refresh", "86400", "--io-threads", "1", "--answer-cache", "0")
    old, new = file(table=TABLE), file(table=OTHER)
    with on(s3, place="s3://weights/a") as helper, faulty_server(*flags, **s3.env()) as a:
        put(helper, "x", old)
        assert a.get("/weights/x").body == old
        n_failed = 0
        for n in range(0, 400, 5):
            name = f"{what}{n}"
            if what != "put":
                put(helper, name, old)
            with a.faults.allocations(n):
                try:
                    status = a.request({"put": "PUT", "get": "GET", "remove": "DELETE"}[what], "/weights/" + name, new if what == "put" else None).status
                except (ConnectionError, http.client.HTTPException):
                    status = 0
            n_failed += status in (0, 503)
            assert status in (0, 200, 201, 204, 503), (n, status)
            assert helper.get("/weights/" + name).status in ((200, 404) if status in (0, 503) else (200,) if what != "remove" else (200, 404)), (n, status)
            within(10, lambda: a.get("/weights/" + name).status != 503)  # after a failure it asks nothing for a second
            found = a.get("/weights/" + name)
            assert found.status == 404 or found.body in (old, new), (n, found)
            if status in (200, 201):
                assert found.body == (new if what == "put" else old)
            if a.faults.alloc_failed == 0:
                break
        assert n_failed > 3 and a.is_alive()
        assert a.get("/weights/x").body == old
