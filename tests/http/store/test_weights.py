"""Stored weights as files: PUT, GET, DELETE /weights/{name}, conditional requests, the folder, concurrent changes."""
import fcntl
import hashlib
import http.client
import json
import os
import signal
import struct

import numpy as np
import pytest

import laws_machine
from conftest import start_server
from connection import wait_until
from s3_store import names
from tensors import multipart, npy
from weights_asking import OTHER, RNG, T5, TABLE, clean, file, put, tag  # noqa: F401 - clean is a fixture


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


def test_the_size_of_pieces(clean):
    """Longer than any piece of an answer, and of a length that ends within one."""
    for n in (1, 262144 - 40, 1 << 20, 777_777):
        body = file(x=np.arange(n, dtype="u8").astype("u1"))
        put(clean, "big", body, 201 if n == 1 else 200)
        assert clean.get("/weights/big").body == body


def test_conditions_and_parts_of_a_file(clean):
    """As readers of checkpoints fetch them: the header's length, the header, a tensor."""
    body = file(table=TABLE, x=np.arange(1_500_000, dtype="u4").astype("u1"))
    put(clean, "part", iter([body[:7], body[7:100], body[100:]]))  # in chunks
    whole, row = clean.get("/weights/part"), {"get": "/weights/part"}
    assert whole.body == body
    for law in (laws_machine.head_is_get, laws_machine.tag_answers_conditions, laws_machine.ranges_are_parts):
        law(whole, row, clean)
    assert clean.get("/weights/part", {"Range": "bytes=524288-1048576", "If-Match": tag(body)}).body == body[524288:1048577]
    assert clean.get("/weights/part", {"If-Match": '"x"'}).status == 412


# ---- Requests that name them; what rows of ../../cases/store.jsonl cannot say -----------------------------------------------


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_dtypes_and_odd_places(clean, dtype):
    """The header's length decides where the data begin; some readers' files are not padded."""
    table = TABLE.astype(dtype)
    raw = table.tobytes()
    word = {"f2": "F16", "f4": "F32", "f8": "F64"}[dtype]
    sent = clean.post("/encode", *multipart(request=json.dumps(T5), table=npy(table))).body
    for spaces in range(9):
        text = json.dumps({"table": {"dtype": word, "shape": [32, 2], "data_offsets": [3, 3 + len(raw)]}, "pad": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}).encode() + b" " * spaces
        put(clean, "odd", struct.pack("<Q", len(text)) + text + b"\1\2\3" + raw, 200 if spaces else 201)
        assert clean.ask(**T5, weights="odd").body == sent, spaces


def test_the_tag_follows_the_file(clean):
    path = "/encode?scheme=t5&num_heads=2&len=6&format=raw&weights=tagged"
    put(clean, "tagged", file(table=TABLE))
    first = clean.get(path)
    assert first.headers["Cache-Control"] == "private, no-cache" and clean.get(path, {"If-None-Match": first.headers["ETag"]}).status == 304
    old = {"Range": "bytes=4-7", "If-Range": first.headers["ETag"]}
    assert clean.get(path, old).body == first.body[4:8]
    put(clean, "tagged", file(table=OTHER), 200)
    second, part = (clean.get(path, headers) for headers in ({"If-None-Match": first.headers["ETag"]}, old))
    assert second.status == 200 and second.headers["ETag"] != first.headers["ETag"] and second.body != first.body
    assert part.status == 200 and part.body == second.body
    put(clean, "tagged", file(table=TABLE), 200)
    assert clean.get(path).headers["ETag"] == first.headers["ETag"]


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
        assert names(server) == ["kept"]
        assert server.get("/weights/kept").headers["ETag"] == tag(file(table=OTHER))
        assert server.ask(**T5, weights="kept").body == server.ask(**T5, table=OTHER.tolist()).body


def hang_up(server, done):
    """Sends SIGHUP and waits until the server shows the expected state."""
    server.process.send_signal(signal.SIGHUP)
    assert wait_until(done), server.stderr_text()[-3000:]


def test_hangup_reads_the_folder_again(tmp_path):
    (tmp_path / "first.safetensors").write_bytes(file(table=TABLE))
    with start_server("--weights-dir", str(tmp_path)) as server:
        assert names(server) == ["first"]
        (tmp_path / "second.safetensors").write_bytes(file(table=OTHER))
        (tmp_path / "first.safetensors").unlink()
        assert names(server) == ["first"]
        hang_up(server, lambda: names(server) == ["second"])
        (tmp_path / "second.safetensors").write_bytes(file(table=TABLE))
        hang_up(server, lambda: server.get("/weights/second").headers["ETag"] == tag(file(table=TABLE)))
        (tmp_path / "second.safetensors").write_bytes(b"broken")  # stays as it was
        (tmp_path / "third.safetensors").write_bytes(file(table=OTHER))
        hang_up(server, lambda: names(server) == ["second", "third"])
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
        assert names(server) == ["good", "link"]
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
        assert not written.exists() and names(server) == ["a"]


# ---- At once -----------------------------------------------------------------------------------------------------------


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
