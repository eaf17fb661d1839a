"""Pictures: what a tag costs, the sequences of models, clients that disconnect. GET and tags: ../cases/pictures.jsonl."""
import json
import socket
import time

import pytest

from conftest import start_server
from connection import within
from pictures import HEAT
from png_reader import Picture


def timed(server, do):
    """And the server's processor time."""
    begun = server.processor()
    return do(), server.processor() - begun


def test_a_tag_costs_no_picture(server):
    """The whole picture takes a second or two."""
    path = "/encode?scheme=sinusoidal&len=8192&dim=4096&format=png"
    tag, drawn = timed(server, lambda: server.request("HEAD", path).headers["ETag"])
    known = [timed(server, lambda: server.get(path, {"If-None-Match": tag}).status) for _ in range(5)]
    assert {status for status, _ in known} == {304} and min(seconds for _, seconds in known) < drawn / 4


# ---- The request inside ------------------------------------------------------------------------------------------------


def test_the_sequence_of_a_model_is_inside(server):
    """Every example, and every preset: with a length, or with the sequence of its own (Swin's window)."""
    asked = [s["example"] for s in server.get("/schemes").json()["schemes"]]
    for preset in server.get("/presets").json()["presets"]:
        asked += [{"preset": preset["name"], "len": 9}, {"preset": preset["name"], "len": None}]
    drawn = [(r, a) for r in asked if (a := server.post("/encode", {**r, "format": "png"})).status == 200]
    assert len(drawn) > 150 and any(r.get("len", 0) is None for r, _ in drawn)
    for request, answer in drawn:
        again = server.post("/encode", json.loads(Picture(answer.body).texts[b"posenc"]))
        assert again.status == 200 and again.body == answer.body, (request, again)


# ---- Slow readers ------------------------------------------------------------------------------------------------------

NOISE = {"scheme": "learned", "len": 2300, "dim": 2300, "seed": 1, "format": "png"}  # 5 MB; systems keep 4 for a reader


def test_pictures_that_are_not_read_have_a_bound():
    bodies = [json.dumps({**NOISE, "seed": seed}).encode() for seed in (1, 2)]  # equal ones would be drawn once, and kept once
    with start_server("--buffer-memory", "8MiB") as alone:
        readers = []
        try:
            for body in bodies:
                readers.append(socket.socket())
                readers[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                readers[-1].connect((alone.host, alone.port))
                readers[-1].sendall(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            statuses = sorted(reader.recv(12)[9:] for reader in readers)
            assert statuses == [b"200", b"503"]
            assert alone.post("/encode", NOISE).headers["Retry-After"]
            assert alone.ask(**HEAT).status == 200  # streamed formats are not refused
        finally:
            for reader in readers:
                reader.close()
        within(60, lambda: alone.post("/encode", NOISE).status == 200)


# ---- Long work ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [
    {"scheme": "sinusoidal", "dim": 512, "len": 10 ** 9, "slice": [[None, None, 10 ** 6]], "reduce": "absmax", "format": "png"},
    {"scheme": "sinusoidal", "dim": 512, "len": 10 ** 9, "slice": [[None, None, 10 ** 6]], "reduce": "absmax", "format": "text"},
])
def test_who_leaves_ends_the_drawing(fields):
    """Minutes of work for the only worker; it is free again soon after the client has gone."""
    with start_server("--workers", "1") as alone:
        body = json.dumps(fields).encode()
        with socket.create_connection((alone.host, alone.port)) as client:
            client.sendall(b"POST /encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            time.sleep(0.3)
        answer, seconds = timed(alone, lambda: alone.ask(**HEAT, format="png"))
        assert answer.body[:4] == b"\x89PNG" and seconds < 20
