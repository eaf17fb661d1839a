"""Stored weights of one client cost other clients little: lists of them are not kept whole for slow readers, and finding
a name in files of many tensors, or among many files, takes almost no time of the loop."""
import contextlib
import json
import struct

import numpy as np
import pytest

from conftest import SANITIZED, start_server
from connection import UNHURRIED, Client, get, least_loop_ms, metric, post, wait_until
from weights_asking import file, put

MIB = 1 << 20
N_TENSORS = 15000  # as many as the longest header can name


def empty_tensors(names):
    header = json.dumps({name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names}, separators=(",", ":")).encode()
    return struct.pack("<Q", len(header)) + header


MANY = empty_tensors(f"m.{i:05d}" for i in range(N_TENSORS))


def least_ms(server, request, status):
    """The loop's time for one request, at best; and the answer."""
    ms, answer = least_loop_ms(server, request)
    assert answer[0] == status, answer
    return ms, answer[2].decode()


@pytest.fixture(scope="module")
def single():
    with start_server("--io-threads", "1", "--workers", "2") as server:
        yield server


# ---- Lists -------------------------------------------------------------------------------------------------------------


def test_a_list_of_many(single):
    """Longer than any piece; names of every kind; the same as a description made here."""
    files = {"a": MANY, "b": empty_tensors(['quote"', "back\\slash", "é" * 500, "x" * 70000, "line\n"]), "c": file(t=np.ones((2, 3), "i4")), "d": MANY}
    for name, body in files.items():
        stored = put(single, name, body)
        assert stored.json()["tensors"] == description(body), name
    answer = single.get("/weights")
    listed = answer.json()["weights"]
    assert [entry["name"] for entry in listed] == list(files) and answer.headers["Content-Length"] == str(len(answer.body))
    for entry in listed:
        assert entry["tensors"] == description(files[entry["name"]]) and entry["bytes"] == len(files[entry["name"]])
    head = single.request("HEAD", "/weights")
    assert head.headers["Content-Length"] == str(len(answer.body)) and head.body == b""
    for name in files:
        single.request("DELETE", f"/weights/{name}")


def description(body):
    n = struct.unpack("<Q", body[:8])[0]
    return {name: {"dtype": entry["dtype"].lower(), "shape": entry["shape"]} for name, entry in json.loads(body[8:8 + n]).items()}


@pytest.mark.skipif(SANITIZED, reason="memory means nothing here")
def test_lists_left_unread_take_no_memory():
    """30 readers of a list of 6 MB: each holds only pieces, and these are reserved from --max-memory. It shows the files stored when it
    began, and holds none of their bytes."""
    big = np.zeros(16 * MIB, "u1")
    with start_server("--workers", "2", *UNHURRIED) as server, contextlib.ExitStack() as stack:
        for i in range(12):
            put(server, f"copy{i}", MANY)
        put(server, "z", file(t=big))
        length = len(server.get("/weights").body)
        assert length > 6 * MIB
        before = server.memory("VmRSS")
        for i in range(30):
            reader = stack.enter_context(Client(server, receive_buffer=4096))
            reader.send(get("/weights"))
            assert reader.head()[0] == 200
            if i % 4 == 0:
                big[0] = i + 1
                put(server, "z", file(t=big), 200)
        assert server.memory("VmRSS") - before < (40 + 48) * MIB < 30 * length / 2  # one body and one file at a time, not eight
        assert wait_until(lambda: metric(server, "posenc_streams") == 30)
        assert wait_until(lambda: metric(server, "posenc_taken_memory_bytes") > 0)
        put(server, "z", file(t=big[1:]), 200)
        entry = json.loads(reader.file.read(length))["weights"][-1]  # and it goes on where it stopped
        assert entry["name"] == "z" and entry["sha256"] != server.get("/weights").json()["weights"][-1]["sha256"]


# ---- Names of tensors --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(SANITIZED, reason="time means nothing here")
@pytest.mark.parametrize("request_", [
    {"scheme": "deberta", "q": [[1, 0]], "k": [[1, 0]]}, {"scheme": "xlnet", "q": [[1, 0]], "k": [[1, 0]]},
    {"scheme": "conformer", "q": [[1, 0]], "k": [[1, 0]]}], ids=lambda r: r["scheme"])
def test_naming_a_file_of_many_tensors(single, request_):
    """No more of the loop than a file of one, but for a part of a millisecond."""
    put(single, "many", MANY)
    put(single, "few", empty_tensors(["m.0"]))
    times = [least_ms(single, post(json.dumps({**request_, "weights": name}).encode(), "/attention"), 422)[0] for name in ("many", "few")]
    for name in ("many", "few"):
        single.request("DELETE", f"/weights/{name}")
    assert times[0] < times[1] + 0.4, times


# ---- Names of files ----------------------------------------------------------------------------------------------------


def test_a_guess_among_thousands():
    """Names that differ in a few letters: the right one, within 5 ms of the loop at best."""
    tail, small = "abcdefghij" * 5, empty_tensors(["t"])
    with start_server("--io-threads", "1", "--workers", "2") as server, Client(server) as client:
        for i in range(4000):
            client.send(f"PUT /weights/n{i:05d}{tail} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(small)}\r\n\r\n".encode() + small)
            if i % 40 == 39:
                assert all(client.answer()[0] == 201 for _ in range(40))
        for asked, right in ((f"n0123{tail}", f"n00123{tail}"), (f"n03999{tail[:-1]}", f"n03999{tail}"), (f"x02000{tail}", f"n02000{tail}")):
            path = f"/weights/{asked}"
            ms, text = least_ms(server, get(path), 404)
            assert f'nearest: \\"{right}\\"' in text, text
            assert SANITIZED or ms < 5, (asked, ms)
        ms, text = least_ms(server, get("/weights/n00001" + "abcdefghik" * 5 + "zz"), 404)
        assert SANITIZED or ms < 5, ms
        ms, text = least_ms(server, post(json.dumps({"scheme": "t5", "len": 2, "weights": f"n0123{tail}"}).encode()), 422)
        assert f"n00123{tail}" in text and (SANITIZED or ms < 5), (ms, text)
