"""Stored weights as files: PUT, GET, DELETE /weights/{name}, conditional requests, the folder, concurrent changes."""
import fcntl
import hashlib
import http.client
import io
import json
import os
import signal
import struct

import numpy as np
import pytest

from conftest import POSENCD, start_server
from connection import at_once, wait_until
from tensors import encode, npy
from weights_asking import OTHER, RNG, T5, TABLE, clean, file, put, tag  # noqa: F401 - clean is a fixture


def zipped(**tensors):
    out = io.BytesIO()
    np.savez(out, **tensors)
    return out.getvalue()


# ---- Files -------------------------------------------------------------------------------------------------------------

def test_put_get_delete(clean):
    body = file(table=TABLE, ids=np.arange(3, dtype="i8"), nothing=np.zeros((0, 4), "f8"), one=np.float32(2).reshape(()))
    stored = put(clean, "t5-small", body)
    digest = hashlib.sha256(body).hexdigest()
    told = {"name": "t5-small", "bytes": len(body), "sha256": digest, "tensors": {
        "table": {"dtype": "f32", "shape": [32, 2]}, "ids": {"dtype": "i64", "shape": [3]},
        "nothing": {"dtype": "f64", "shape": [0, 4]}, "one": {"dtype": "f32", "shape": []}}}
    assert stored.json() == told and stored.headers["ETag"] == f'"{digest}"'
    got = clean.get("/weights/t5-small")
    assert got.status == 200 and got.body == body and got.headers["ETag"] == f'"{digest}"'
    assert got.headers["Content-Type"] == "application/vnd.safetensors" and "no-cache" in got.headers["Cache-Control"]
    head = clean.request("HEAD", "/weights/t5-small")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == str(len(body)) and head.headers["ETag"] == f'"{digest}"'
    assert clean.get("/weights").json() == {"weights": [told]}
    gone = clean.request("DELETE", "/weights/t5-small")
    assert gone.status == 204 and gone.body == b""
    assert clean.get("/weights/t5-small").status == clean.request("DELETE", "/weights/t5-small").status == 404
    assert clean.get("/weights").json() == {"weights": []}


def test_replaced_and_listed_in_order(clean):
    put(clean, "b", file(table=TABLE))
    put(clean, "a", file(table=TABLE))
    put(clean, "B", file(table=TABLE))
    put(clean, "b", file(table=OTHER), 200)
    put(clean, "b", file(table=OTHER), 200)  # the same again
    assert [entry["name"] for entry in clean.get("/weights").json()["weights"]] == ["B", "a", "b"]
    assert clean.get("/weights/b").body == file(table=OTHER)


def test_the_size_of_pieces(clean):
    """Longer than any piece of an answer, and of a length that ends within one."""
    for n in (1, 262144 - 40, 1 << 20, 777_777):
        body = file(x=np.arange(n, dtype="u8").astype("u1"))
        put(clean, "big", body, 201 if n == 1 else 200)
        assert clean.get("/weights/big").body == body


def test_parts_of_a_file(clean):
    """As readers of checkpoints fetch them: the header's length, the header, a tensor."""
    body = file(table=TABLE, x=np.arange(1_500_000, dtype="u4").astype("u1"))
    put(clean, "part", body)
    n = len(body)
    whole = clean.get("/weights/part")
    assert whole.headers["Accept-Ranges"] == clean.request("HEAD", "/weights/part").headers["Accept-Ranges"] == "bytes"
    for first, last in [(0, 7), (0, n - 1), (n - 1, n - 1), (5, n - 1), (524_287, 524_288), (524_288, 1_048_576), (1, 1_200_000)]:
        part = clean.get("/weights/part", {"Range": f"bytes={first}-{last}", "If-Range": tag(body)})
        assert part.status == 206 and part.body == body[first:last + 1], (first, last)
        assert part.headers["Content-Range"] == f"bytes {first}-{last}/{n}" and part.headers["ETag"] == tag(body)
    assert clean.get("/weights/part", {"Range": "bytes=-9"}).body == body[-9:]
    assert clean.get("/weights/part", {"Range": "bytes=0-1", "If-Range": '"another"'}).body == body
    assert clean.get("/weights/part", {"Range": "bytes=0-1", "If-None-Match": tag(body)}).status == 304
    behind = clean.get("/weights/part", {"Range": f"bytes={n}-"})
    assert behind.status == 416 and behind.headers["Content-Range"] == f"bytes */{n}"
    head = clean.request("HEAD", "/weights/part", headers={"Range": "bytes=0-1"})
    assert head.status == 200 and head.headers["Content-Length"] == str(n)
    assert clean.request("DELETE", "/weights/part").status == 204


def test_a_body_in_chunks(clean):
    body = file(table=TABLE)
    connection = http.client.HTTPConnection(clean.host, clean.port, timeout=30)
    connection.request("PUT", "/weights/chunked", iter([body[:7], body[7:100], body[100:]]), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert connection.getresponse().status == 201
    connection.close()
    assert clean.get("/weights/chunked").body == body


@pytest.mark.parametrize("name", ["t", "T5.v1_1-x", "0", "a" * 128, "a..b"])
def test_names(clean, name):
    put(clean, name, file(table=TABLE))
    assert clean.get("/weights/" + name).status == 200 and clean.get("/weights").json()["weights"][0]["name"] == name


@pytest.mark.parametrize("body, word", [
    (npy(TABLE), ".npy"), (zipped(table=TABLE), "zip archive"), (b"", "less than 8 bytes"), (b"\x93NUMPY", "less than 8 bytes"), (file(table=TABLE)[:-1], "the end of the file")])
def test_what_is_taken_for_a_file(clean, body, word):
    assert word in put(clean, "a", body, 400).json()["detail"]


@pytest.mark.parametrize("name", [".hidden", "..", "-x", "_x", "a" * 129, "a%20b", "%2e%2e", "a%0ab", "%C3%A9", "a:b", "a%5cb", "t5%22", "a~"])
def test_names_that_are_refused(clean, name):
    answer = put(clean, name, file(table=TABLE), 422)
    assert "letter" in answer.json()["detail"]
    assert clean.get("/weights/" + name).status == 404 and clean.get("/weights").json() == {"weights": []}


@pytest.mark.parametrize("path", ["/weights/", "/weights/a/b", "/weights/..%2f..%2fetc%2fpasswd", "/weights/%2Fetc", "/weights/a%2f"])
def test_paths_that_are_none(clean, path):
    for method in ("PUT", "GET", "DELETE"):
        assert clean.request(method, path, file(table=TABLE) if method == "PUT" else None).status == 404


def test_methods(clean):
    answer = clean.post("/weights/x", file(table=TABLE))
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD, PUT, DELETE"
    assert clean.request("PUT", "/weights", b"x").headers["Allow"] == "GET, HEAD"
    assert put(clean, "x", file(table=TABLE), 415, Content_Encoding="gzip")


def bad_file(entries, data=b"", length=None, pad=True):
    text = json.dumps(entries).encode() if not isinstance(entries, bytes) else entries
    text += b" " * (-len(text) % 8) if pad else b""
    return struct.pack("<Q", len(text) if length is None else length) + text + data


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize("body", [
    b"", b"\0" * 7, b"{}", b"GGUF" + b"\0" * 60, npy(TABLE), json.dumps({"table": TABLE.tolist()}).encode(), b"PK\x03\x04" + b"\0" * 60,
    bad_file({"t": ENTRY}, b"\0" * 8, length=1 << 40), bad_file({"t": ENTRY}, b"\0" * 8, length=2 ** 64 - 1), bad_file({"t": ENTRY}, b"\0" * 7),
    bad_file({"t": ENTRY}, b"\0" * 9), bad_file({"t": {**ENTRY, "shape": [3]}}, b"\0" * 8), bad_file({"t": {**ENTRY, "data_offsets": [4, 12]}}, b"\0" * 12),
    bad_file({"t": ENTRY, "u": ENTRY}, b"\0" * 8), bad_file({"t": {**ENTRY, "shape": [2 ** 40, 2 ** 40]}}, b"\0" * 8), bad_file({"t": {**ENTRY, "shape": [-1]}}, b"\0" * 8),
    bad_file(b'{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', b"\0" * 8),
    bad_file(b"[]"), bad_file(b"{"), bad_file(b'{"__metadata__":3}'), bad_file({"t": {"dtype": "F32"}}, b"\0" * 8), bad_file({"t": []}), bad_file(b'{"\xff":{}}'),
    file(table=TABLE)[:-1], file(table=TABLE) + b"\0",
], ids=lambda body: str(len(body)))
def test_files_that_are_none(clean, body):
    answer = put(clean, "bad", body, 400)
    assert answer.headers["Content-Type"] == "application/problem+json" and "safetensors" in answer.json()["detail"]
    assert clean.get("/weights/bad").status == 404


def test_the_ceiling():
    body = file(x=np.zeros(60_000, "u1"))
    with start_server("--max-weights", "128KiB", "--max-body", "256KiB") as server:
        put(server, "a", body)
        put(server, "b", body)
        answer = put(server, "c", body, 413)
        assert "--max-weights" in answer.json()["detail"] and str(128 * 1024) in answer.json()["detail"]
        put(server, "b", body, 200)  # takes the place of its own
        assert put(server, "d", file(x=np.zeros(200_000, "u1")), 413).json()["detail"].find("--max-weights") > 0
        assert put(server, "d", file(x=np.zeros(300_000, "u1")), 413).json()["detail"].find("--max-body") > 0
        assert server.request("DELETE", "/weights/a").status == 204
        put(server, "c", body)
        assert [entry["name"] for entry in server.get("/weights").json()["weights"]] == ["b", "c"]


# ---- Conditions --------------------------------------------------------------------------------------------------------

def test_guards_of_put(clean):
    first, second = file(table=TABLE), file(table=OTHER)
    missing = put(clean, "g", first, 412, If_Match=tag(first))
    assert missing.headers["Content-Type"] == "application/problem+json" and clean.get("/weights/g").status == 404
    put(clean, "g", first, 412, If_Match="*")
    put(clean, "g", first, 201, If_None_Match="*")
    assert tag(first)[1:-1] in put(clean, "g", second, 412, If_None_Match="*").json()["detail"]
    put(clean, "g", second, 412, If_None_Match=tag(first))
    put(clean, "g", second, 412, If_Match=tag(second))
    put(clean, "g", second, 412, If_Match="W/" + tag(first))  # a weak tag never matches strongly (RFC 9110, 13.1.1)
    put(clean, "g", second, 412, If_Match=tag(first)[1:-1])  # without quotes it is no tag
    assert clean.get("/weights/g").body == first
    put(clean, "g", second, 200, If_Match=f'"x", {tag(first)}')
    assert clean.get("/weights/g").body == second
    put(clean, "g", first, 200, If_Match="*")
    put(clean, "g", second, 200, **{"If_Match": '"x"', "if-match": tag(first)})  # two lines are one list


def test_guards_of_delete(clean):
    body = file(table=TABLE)
    put(clean, "g", body)
    for headers in ({"If-Match": '"x"'}, {"If-None-Match": "*"}, {"If-None-Match": tag(body)}):
        assert clean.request("DELETE", "/weights/g", headers=headers).status == 412
    assert clean.request("DELETE", "/weights/g", headers={"If-Match": tag(body)}).status == 204
    assert clean.request("DELETE", "/weights/g", headers={"If-Match": tag(body)}).status in (404, 412)


def test_conditions_of_get(clean):
    body = file(table=TABLE)
    put(clean, "g", body)
    for method in ("GET", "HEAD"):
        for match in (tag(body), "W/" + tag(body), f'"x" , {tag(body)}', "*"):
            answer = clean.request(method, "/weights/g", headers={"If-None-Match": match})
            assert answer.status == 304 and answer.body == b"" and answer.headers["ETag"] == tag(body), match
        for match in ('"x"', tag(body)[:-2] + '"', '"', "", tag(body)[1:-1]):
            assert clean.request(method, "/weights/g", headers={"If-None-Match": match}).status == 200, match
    assert clean.get("/weights/g", {"If-Match": '"x"'}).status == 412 and clean.get("/weights/g", {"If-Match": tag(body)}).status == 200


# ---- The folder --------------------------------------------------------------------------------------------------------

def test_a_folder_outlives_the_server(tmp_path):
    with start_server("--weights-dir", str(tmp_path)) as server:
        put(server, "kept", file(table=TABLE))
        put(server, "gone", file(table=OTHER))
        put(server, "kept", file(table=OTHER), 200)
        assert server.request("DELETE", "/weights/gone").status == 204
        assert {p.name for p in tmp_path.iterdir()} == {"kept.safetensors", ".posenc-lock"}
        assert (tmp_path / "kept.safetensors").read_bytes() == file(table=OTHER)
    with start_server("--weights-dir", str(tmp_path)) as server:
        assert [entry["name"] for entry in server.get("/weights").json()["weights"]] == ["kept"]
        assert server.get("/weights/kept").headers["ETag"] == tag(file(table=OTHER))
        assert server.ask(**T5, weights="kept").body == server.ask(**T5, table=OTHER.tolist()).body


def hang_up(server, done):
    """Sends SIGHUP and waits until the server shows the expected state."""
    server.process.send_signal(signal.SIGHUP)
    assert wait_until(done), server.stderr_text()[-3000:]


def stored_names(server):
    return [entry["name"] for entry in server.get("/weights").json()["weights"]]


def test_hangup_reads_the_folder_again(tmp_path):
    (tmp_path / "first.safetensors").write_bytes(file(table=TABLE))
    with start_server("--weights-dir", str(tmp_path)) as server:
        assert stored_names(server) == ["first"]
        (tmp_path / "second.safetensors").write_bytes(file(table=OTHER))
        (tmp_path / "first.safetensors").unlink()
        assert stored_names(server) == ["first"]
        hang_up(server, lambda: stored_names(server) == ["second"])
        (tmp_path / "second.safetensors").write_bytes(file(table=TABLE))
        hang_up(server, lambda: server.get("/weights/second").headers["ETag"] == tag(file(table=TABLE)))
        (tmp_path / "second.safetensors").write_bytes(b"broken")  # stays as it was
        (tmp_path / "third.safetensors").write_bytes(file(table=OTHER))
        hang_up(server, lambda: stored_names(server) == ["second", "third"])
        assert server.get("/weights/second").body == file(table=TABLE) and "second" in server.stderr_text()


def test_what_does_not_belong_in_the_folder(tmp_path):
    (tmp_path / "good.safetensors").write_bytes(file(table=TABLE))
    (tmp_path / "broken.safetensors").write_bytes(b"no such thing")
    (tmp_path / "README").write_text("not ours")
    (tmp_path / ".posenc-0123456789abcdef").write_bytes(file(table=TABLE)[:50])
    (tmp_path / "bad name.safetensors").write_bytes(file(table=TABLE))
    (tmp_path / ".safetensors").write_bytes(file(table=TABLE))
    (tmp_path / "folder.safetensors").mkdir()
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "dangling.safetensors").symlink_to(tmp_path / "nowhere")
    (tmp_path / "link.safetensors").symlink_to(tmp_path / "good.safetensors")  # as mounted configuration is
    (tmp_path / "huge.safetensors").write_bytes(file(x=np.zeros(200_000, "u1")))
    with start_server("--weights-dir", str(tmp_path), "--max-weights", "100KiB") as server:
        assert stored_names(server) == ["good", "link"]
        log = server.stderr_text()
        assert all(word in log for word in ("broken", "pipe", "dangling", "folder", "--max-weights"))


def test_what_a_crash_has_left_is_removed(tmp_path):
    """Unfinished files of posenc are removed unless they are being written; files with similar names stay."""
    left, written = tmp_path / ".posenc-0123456789abcdef", tmp_path / ".posenc-fedcba9876543210"
    others = [tmp_path / name for name in (".posenc-notes", ".posenc-0123456789abcdeg", ".posenc-0123456789abcdef0", "posenc-0123456789abcdef")]
    for path in (left, written, *others):
        path.write_bytes(b"half")
    (tmp_path / ".posenc-aaaaaaaaaaaaaaaa").mkdir()
    with open(written, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # as a server on the same folder does while it writes
        with start_server("--weights-dir", str(tmp_path)) as server:
            assert not left.exists() and written.exists() and all(path.exists() for path in others)
            put(server, "a", file(table=TABLE))
    with start_server("--weights-dir", str(tmp_path)) as server:
        assert not written.exists() and stored_names(server) == ["a"]


def test_a_disk_that_is_full(tmp_path):
    """The old file stays, no unfinished file is left, and the server continues."""
    limit = f"ulimit -f 100; exec {POSENCD} \"$@\""  # blocks of 512 bytes or 1 KiB
    (tmp_path / "posencd").write_text("#!/bin/sh\n" + limit)
    (tmp_path / "posencd").chmod(0o755)
    folder = tmp_path / "weights"
    folder.mkdir()
    with start_server("--weights-dir", str(folder), program=tmp_path / "posencd") as server:
        put(server, "a", file(table=TABLE))
        big = file(table=TABLE, x=np.zeros(1_000_000, "u1"))
        assert "--weights-dir" in put(server, "a", big, 503).json()["detail"]
        put(server, "b", big, 503)
        assert stored_names(server) == ["a"] and server.get("/weights/a").body == file(table=TABLE)
        assert {path.name for path in folder.iterdir()} == {"a.safetensors", ".posenc-lock"}
        put(server, "a", file(table=OTHER), 200)


def test_a_folder_that_cannot_be_written(tmp_path):
    folder = tmp_path / "sub"
    folder.mkdir()
    with start_server("--weights-dir", str(folder)) as server:
        put(server, "a", file(table=TABLE))
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        assert put(server, "b", file(table=TABLE), 503).headers["Retry-After"]
        assert stored_names(server) == ["a"] and server.get("/weights/a").body == file(table=TABLE)
        assert "could not be written" in server.stderr_text()


def test_no_such_folder(tmp_path):
    with pytest.raises(RuntimeError, match="--weights-dir"), start_server("--weights-dir", str(tmp_path / "none")):
        pass


# ---- At once -----------------------------------------------------------------------------------------------------------

def test_replaced_while_in_use(clean):
    """Answers are of one file or the other, whole; GETs have the tag of their bytes; nothing of it breaks."""
    files = [file(table=np.full((32, 2), value, "f4"), pad=np.zeros(300_000, "u1")) for value in (1, 2)]
    tags = {tag(body): body for body in files}
    put(clean, "hot", files[0])

    def run(step):
        for i in range(25):
            step(i)

    def store(i):
        put(clean, "hot", files[i % 2], 200)

    def use(i):
        values = set(np.unique(encode(clean, scheme="t5", num_heads=2, len=600, weights="hot")["bias"]))
        assert values in ({1.0}, {2.0}), values

    def fetch(i):
        got = clean.get("/weights/hot")
        assert got.body == tags[got.headers["ETag"]]

    at_once(run, (store, store, use, use, fetch))


def test_only_one_first(clean):
    """If-None-Match: * is decided in the store: of many at once one makes the file."""
    def store(i):
        return clean.request("PUT", "/weights/race", file(table=np.full((32, 2), i, "f4")), {"If-None-Match": "*"}).status

    assert sorted(at_once(store, range(12))) == [201] + [412] * 11


def test_deleted_while_it_is_sent(clean):
    body = file(x=RNG.integers(0, 255, 30_000_000).astype("u1"))
    put(clean, "sent", body)
    connection = http.client.HTTPConnection(clean.host, clean.port, timeout=60)
    connection.request("GET", "/weights/sent")
    answer = connection.getresponse()
    start = answer.read(1000)
    assert clean.request("DELETE", "/weights/sent").status == 204
    assert hashlib.sha256(start + answer.read()).digest() == hashlib.sha256(body).digest()
    connection.close()
