"""What a store of --store or its cache says, and is not so: lists that break off, conditions that nothing obeys, another store's names."""
import json
import os

import pytest

from s3_store import S3Store, figure, lay, n_seen, names, on, s3, sha  # noqa: F401 - s3 is a fixture
from connection import within
from weights_asking import OTHER, T5, TABLE, file, put, tag

BODY, LATER = file(table=TABLE), file(table=OTHER)


# ---- Half a list ----------------------------------------------------------------------------------------------------------------


def test_half_a_list_is_not_believed(s3):
    """What a server knows stays, and the log says why."""
    with on(s3) as a:
        for i in range(4):
            put(a, f"w{i}", file(table=TABLE + i))
    with on(s3) as b:
        within(10, lambda: len(names(b)) == 4)
        s3.fault(path="names%2F", bare=1, cut=300)
        n_lists = n_seen(s3, "GET", end="/weights")
        within(10, lambda: n_seen(s3, "GET", end="/weights") > n_lists + 4)
        assert names(b) == ["w0", "w1", "w2", "w3"] and b.get("/weights/w3").status == 200
        within(5, lambda: "its list is not whole" in b.stderr_text())
        s3.heal()
        s3.objects.pop("team/a/names/w0")
        within(10, lambda: names(b) == ["w1", "w2", "w3"])


# ---- Conditions -----------------------------------------------------------------------------------------------------------------


def probes(s3):
    return [each for each in s3.seen if "_probe" in each[1]]


@pytest.mark.parametrize("refuses", [False, True], ids=["ignores", "refuses"])
def test_a_store_without_conditions(s3, refuses):
    """Guarded changes are refused, because nothing would guard them; the others work. It is asked once, and nothing is left there."""
    s3.ignored = {"If-Match", "If-None-Match"} if not refuses else set()
    s3.has_conditions = not refuses
    with on(s3) as a:
        assert not probes(s3)  # not at the start
        put(a, "t", BODY)
        assert not probes(s3)
        for _ in range(3):
            assert "conditional" in put(a, "u", BODY, 501, If_None_Match="*").json()["detail"]
            put(a, "t", LATER, 501, If_Match=tag(BODY))
        assert a.request("DELETE", "/weights/t", headers={"If-Match": tag(BODY)}).status == 501
        put(a, "t", LATER, 412, If_None_Match="*")  # what is known to fail needs no condition
        assert refuses or [method for method, _ in probes(s3)] == ["PUT", "PUT", "PUT", "DELETE"]
        assert not [key for key in s3.objects if "probe" in key or key.endswith("names/u")]
        assert a.stderr_text().count("ignores the condition") == 2 * (not refuses)
        preset = json.dumps({"config": {"scheme": "rope"}}).encode()
        assert a.request("PUT", "/presets/p", preset, {"If-None-Match": "*", "Content-Type": "application/json"}).status == 501
        put(a, "t", LATER, 200)
        assert refuses or len(probes(s3)) == 4
        assert names(a) == ["t"] and a.request("DELETE", "/weights/t").status == 204


@pytest.mark.parametrize("ignored, statuses", [("If-Match", (201, 501)), ("If-None-Match", (501, 200))])
def test_one_condition_is_ignored(s3, ignored, statuses):
    s3.ignored = {ignored}
    with on(s3) as a:
        put(a, "t", BODY)
        put(a, "u", BODY, statuses[0], If_None_Match="*")
        put(a, "t", LATER, statuses[1], If_Match=tag(BODY))
        assert a.stderr_text().count("ignores the condition") == 1 and f"condition {ignored} of" in a.stderr_text()


def test_a_probe_that_fails_is_made_again(s3):
    with on(s3) as a:
        s3.fault(path="_probe", method="PUT", status=403, code="AccessDenied")
        assert put(a, "t", BODY, 503, If_None_Match="*").headers["Retry-After"]
        assert not [key for key in s3.objects if "probe" in key or "/names/" in key]
        s3.heal()
        put(a, "t", BODY, 201, If_None_Match="*")
        n_probes = len(probes(s3))
        put(a, "t", LATER, 200, If_Match=tag(BODY))
        assert len(probes(s3)) == n_probes and "ignores" not in a.stderr_text()
        assert not [key for key in s3.objects if "probe" in key]


def test_a_probe_is_in_no_list(s3):
    with on(s3) as a, on(s3) as b:
        s3.fault(path="_probe", method="DELETE", status=403, code="AccessDenied")
        put(a, "t", BODY, 201, If_None_Match="*")
        assert [key for key in s3.objects if "probe" in key]
        within(10, lambda: names(b) == ["t"])
        assert "cannot be removed" in a.stderr_text() and "probe" not in b.stderr_text()


# ---- The cache of another store ---------------------------------------------------------------------------------------------------


def fill(s3, cache):
    """A server of s3://weights/other has used the folder."""
    for prefix, body in (("other", LATER), ("team", BODY)):
        lay(s3, "model", body, prefix)
        lay(s3, f"only-{prefix}", body, prefix)
    with on(s3, *cache, place="s3://weights/other") as a:
        within(10, lambda: names(a) == ["model", "only-other"])
        preset = json.dumps({"config": {"scheme": "rope", "base": 7}}).encode()
        assert a.request("PUT", "/presets/p", preset, {"Content-Type": "application/json"}).status == 201


def serves_nothing(server):
    assert names(server) == [] and server.get("/presets/p").status == 503
    for name in ("model", "only-other"):
        assert server.get("/weights/" + name).status == 503
        assert server.post("/encode", {**T5, "weights": name}).status == 503


def test_the_cache_of_another_store_is_not_used(s3, tmp_path):
    """Another prefix, and the same one at another endpoint. The folder is filled with what is of this store as soon as it answers."""
    cache = ("--store-cache", str(tmp_path))
    fill(s3, cache)
    with S3Store() as elsewhere:
        elsewhere.kill()
        with on(elsewhere, *cache, place="s3://weights/other") as a:
            serves_nothing(a)
    s3.kill()
    with on(s3, *cache, place="s3://weights/team") as a:
        serves_nothing(a)
        assert a.stderr_text().count("does not state that it is of http") == 2  # weights and presets, once
        assert "weights/team/names, and is not used" in a.stderr_text()
    with on(s3, *cache, place="s3://weights/other") as a:
        assert names(a) == ["model", "only-other"] and a.get("/weights/model").body == LATER  # nobody has written it anew
        assert a.get("/presets/p").json()["config"]["base"] == 7 and "does not state" not in a.stderr_text()
    s3.revive()
    with on(s3, *cache, place="s3://weights/team") as a:
        within(10, lambda: names(a) == ["model", "only-team"])
        within(10, lambda: b"weights/team/names\n" in (tmp_path / "index").read_bytes())
    s3.kill()
    with on(s3, *cache, place="s3://weights/team") as a:
        assert names(a) == ["model", "only-team"] and a.get("/weights/model").body == BODY
        assert a.get("/presets/p").status == 503


def test_a_cache_of_a_version_that_did_not_say_whose_it_is(s3, tmp_path):
    cache = ("--store-cache", str(tmp_path))
    fill(s3, cache)
    for index in (tmp_path / "index", tmp_path / "presets" / "index"):
        index.write_bytes(index.read_bytes().partition(b"\n")[2])
    s3.kill()
    with on(s3, *cache, place="s3://weights/other") as a:
        serves_nothing(a)
        assert a.stderr_text().count("does not state that it is of http") == 2
        n_before = len(s3.seen)
        s3.revive()
        within(15, lambda: names(a) == ["model", "only-other"])
        within(15, lambda: b"weights/other/presets\n" in (tmp_path / "presets" / "index").read_bytes())
        assert not [path for _, path in s3.seen[n_before:] if "/blobs/" in path]  # the blobs were right
    s3.kill()
    with on(s3, *cache, place="s3://weights/other") as a:
        assert names(a) == ["model", "only-other"] and "does not state" not in a.stderr_text()


# ---- A cache that cannot be read ----------------------------------------------------------------------------------------------------


def in_the_way(path, kind):
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "full folder":
        (path / "inner").mkdir(parents=True)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/nowhere/at/all")
    elif kind == "link to a pipe":
        os.mkfifo(path.with_suffix(".pipe"))
        path.symlink_to(path.with_suffix(".pipe"))
    else:
        path.write_bytes(b"of another size")


@pytest.mark.parametrize("kind", ["folder", "full folder", "pipe", "link", "link to a pipe", "other file"])
def test_what_of_the_cache_cannot_be_read(s3, tmp_path, kind):
    """A blob, and the index, are replaced, so that the next start without the store has them; what cannot be replaced is counted and logged."""
    cache = ("--store-cache", str(tmp_path))
    path = tmp_path / f"{sha(BODY)}.safetensors"
    with on(s3, *cache) as a:
        put(a, "t", BODY)
        put(a, "u", LATER)
    in_the_way(path, kind)
    in_the_way(tmp_path / "index", kind)
    with on(s3, *cache) as a:
        within(10, lambda: names(a) == ["t", "u"])
        assert a.get("/weights/t").body == BODY
        if kind == "full folder":
            assert figure(a, "posenc_store_cache_failures_total") >= 1 and "irectory" in a.stderr_text()
        else:
            assert figure(a, "posenc_store_cache_failures_total") == 0 and path.read_bytes() == BODY and not path.is_symlink()
            within(10, (tmp_path / "index").is_file)
    s3.kill()
    with on(s3, *cache) as a:
        assert a.get("/weights/t").status == (503 if kind == "full folder" else 200)
        assert a.get("/weights/u").status == (503 if kind == "full folder" else 200)  # without an index nothing is known
