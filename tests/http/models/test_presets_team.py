"""Presets that a team stores: PUT, GET, DELETE /presets/{name}, guards, tokens, their use on every endpoint, and servers that share a folder
or a bucket of them. What is no preset that may be stored: tests/cases/presets.jsonl; what a stored one does on each endpoint:
presets_team.jsonl."""
import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import threading

import pytest

from conftest import start_server
from connection import within
from s3_store import S3Store
from weights_asking import T5, TABLE, file

REFRESH = 1
YARN = {"scheme": "rope", "head_dim": 128, "base": 500000.0, "layout": "half",
        "scaling": {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096}}


def put(server, name, config, status=201, headers=None, **members):
    answer = server.request("PUT", f"/presets/{name}", json.dumps({"config": config, **members}).encode(), headers or {})
    assert answer.status == status, answer
    return answer


def delete(server, name, status=204, **headers):
    answer = server.request("DELETE", f"/presets/{name}", headers=headers)
    assert answer.status == status, answer
    return answer


def config_of(server, preset, **fields):
    return server.ask("/encode", preset=preset, len=1, data=False, **fields).json()["config"]


def stored(server):
    return [row["name"] for row in server.get("/presets").json()["presets"] if "stored_at" in row]


@pytest.fixture
def clean(server):
    def clear():
        for name in stored(server):
            delete(server, name)
    clear()
    yield server
    clear()


# ---- One preset ----------------------------------------------------------------------------------------------------------------


def test_put_get_delete(clean):
    answer = put(clean, "team-a-yarn8", YARN, source="run 7", note="8 × “long”")
    row = answer.json()
    assert row.pop("stored_at").startswith("20") and re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", answer.json()["stored_at"])
    assert row == {"name": "team-a-yarn8", "config": YARN, "source": "run 7", "note": "8 × “long”", "stored_by": None}
    got = clean.get("/presets/team-a-yarn8")
    assert got.body == answer.body and got.headers["ETag"] == answer.headers["ETag"] and "no-cache" in got.headers["Cache-Control"]
    head = clean.request("HEAD", "/presets/team-a-yarn8")
    assert head.status == 200 and head.body == b"" and head.headers["ETag"] == got.headers["ETag"]
    listed = clean.get("/presets")
    assert listed.json()["presets"][-1] == got.json() and listed.json()["presets"][0]["name"] != "team-a-yarn8"
    assert "no-cache" in listed.headers["Cache-Control"]
    assert delete(clean, "team-a-yarn8").body == b""
    assert clean.get("/presets/team-a-yarn8").status == delete(clean, "team-a-yarn8", 404).status
    assert stored(clean) == []


def test_what_get_answers_can_be_put_back(clean):
    first = put(clean, "a", {"preset": "gpt-neox-20b", "base": 1e5}, note="n").json()
    again = clean.request("PUT", "/presets/a", json.dumps(first).encode())
    assert again.status == 200 and {**again.json(), "stored_at": 0} == {**first, "stored_at": 0}
    other = clean.request("PUT", "/presets/b", json.dumps(first).encode())
    assert other.status == 422 and other.json()["pointer"] == "/name"


def test_guards(clean):
    first = put(clean, "a", YARN, headers={"If-None-Match": "*"}).headers["ETag"]
    assert first[1:-1] in put(clean, "a", YARN, 412, headers={"If-None-Match": "*"}).json()["detail"]
    assert clean.get("/presets/a", {"If-None-Match": first}).status == 304
    second = put(clean, "a", {"scheme": "rope"}, 200, headers={"If-Match": first}).headers["ETag"]
    assert second != first and clean.get("/presets/a", {"If-Match": first}).status == 412
    put(clean, "a", YARN, 412, headers={"If-Match": first})
    put(clean, "new", YARN, 412, headers={"If-Match": first})
    delete(clean, "a", 412, **{"If-Match": first})
    assert clean.get("/presets/a").json()["config"] == {"scheme": "rope"}
    delete(clean, "a", 204, **{"If-Match": second})


def test_names(clean):
    for name in ("a", "A.b_c-9", "x" * 128):
        put(clean, name, YARN)
    assert stored(clean) == sorted(["a", "A.b_c-9", "x" * 128])


def test_replaced_and_listed_in_order(clean):
    for name in ("b", "a", "B"):
        put(clean, name, {"scheme": "alibi"})
    put(clean, "b", {"scheme": "rope"}, 200)
    assert stored(clean) == ["B", "a", "b"] and clean.get("/presets/b").json()["config"] == {"scheme": "rope"}
    assert clean.get("/presets?lang=zh").headers["Content-Language"] == "zh" and stored(clean)


# ---- What may be stored --------------------------------------------------------------------------------------------------------


def test_what_is_inherited_is_stored(clean):
    llama = clean.get("/presets/llama-3.1").json()["config"]
    assert put(clean, "a", {"preset": "llama-3.1", "base": 1e4}).json()["config"] == {**llama, "base": 1e4}
    assert put(clean, "b", {"preset": "a", "head_dim": 64}).json()["config"] == {**llama, "base": 1e4, "head_dim": 64}
    delete(clean, "a")  # what was stored from it stays
    assert config_of(clean, "b")["scaling"]["type"] == "llama3"
    t5 = put(clean, "c", {"preset": "t5-small", "layer_type": "decoder"}).json()["config"]
    assert t5["bidirectional"] is False and t5["softmax_scale"] == 1 and t5["head_dim"] == 64  # also what /encode does not use
    read = put(clean, "d", {"hf_config": {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "rope_theta": 7.0}}).json()
    assert read["config"]["base"] == 7 and read["config"]["head_dim"] == 8 and "hf_config" not in read["config"]
    qwen = put(clean, "e", {"preset": "qwen2-vl-7b"}).json()["config"]
    assert qwen["position_style"] == "qwen2_vl" and qwen == {**qwen, **clean.get("/presets/qwen2-vl-7b").json()["config"]}


def test_every_preset_of_the_program_can_be_stored(clean):
    for row in clean.get("/presets").json()["presets"][::4]:
        if "stored_at" in row:
            continue
        answer = clean.request("PUT", "/presets/copy", json.dumps({"config": {"preset": row["name"]}}).encode())
        assert answer.status in (200, 201) and answer.json()["config"] == row["config"], row["name"]
        again = clean.request("PUT", "/presets/copy", json.dumps({"config": row["config"]}).encode())
        assert again.status == 200 and again.json()["config"] == row["config"], again


def test_every_scheme(clean):
    for row in clean.get("/schemes").json()["schemes"]:
        sizes = {p["name"]: row["example"][p["name"]] for p in row["parameters"] if p["name"] in row["example"]}
        put(clean, f"s-{row['name']}", {"scheme": row["name"], **sizes})


def test_characters_are_stored_as_they_are(clean):
    put(clean, "mine", {"scheme": "rope"}, note="\u00e9" * 10000)
    assert clean.get("/presets/mine").json()["note"] == "\u00e9" * 10000


def test_there_is_a_most(clean):
    note, n = "x" * 60000, 0
    while (answer := clean.request("PUT", f"/presets/n{n}", json.dumps({"config": {"scheme": "rope"}, "note": note}).encode())).status == 201:
        n += 1
        assert n < 100
    assert answer.status == 413 and n == (2 << 20) // 60110 and "presets" in answer.json()["detail"] and "program" in answer.json()["detail"]
    assert len(stored(clean)) == n
    put(clean, "n0", {"scheme": "rope"}, 200)
    put(clean, "small", {"scheme": "rope"})


# ---- Their use -----------------------------------------------------------------------------------------------------------------


def test_variants_that_are_evaluated(clean):
    """`eval` of an experiment holds configurations too: its presets may be stored ones, in a configuration and beside `configs`."""
    put(clean, "team", {"scheme": "rope", "base": 500.0})
    sizes = {"steps": 1, "train_len": 16, "eval_len": 16}

    def results(**fields):
        answer = clean.post("/experiments", {**sizes, **fields})
        assert answer.status == 200, answer
        done = json.loads(answer.body.splitlines()[-1])
        return [{name: value for name, value in result.items() if name != "seconds"} for result in done["results"]]

    team, same = [{"preset": "team", "head_dim": 8}], [{"scheme": "rope", "base": 500.0, "head_dim": 8}]
    for wrap in (lambda variants: {"scheme": "rope", "eval": variants}, lambda variants: {"configs": [{"scheme": "rope", "eval": variants}, {"scheme": "none"}]},
                 lambda variants: {"configs": [{"scheme": "rope"}, {"scheme": "rope", "layout": "interleaved"}], "eval": variants}):
        assert results(**wrap(team)) == results(**wrap(same))
    for fields, pointer in (({"scheme": "rope", "eval": [{"preset": "tean"}]}, "/eval/0/preset"), ({"configs": [{"scheme": "rope", "eval": [{}, {"preset": "tean"}]}]}, "/configs/0/eval/1/preset"),
                            ({"configs": [{"scheme": "rope"}], "eval": [{"preset": "tean"}]}, "/eval/0/preset")):
        answer = clean.post("/experiments", {**sizes, **fields})
        assert answer.status == 422 and answer.json()["pointer"] == pointer and '"team"' in answer.json()["detail"], answer
    assert clean.post("/experiments", {**sizes, "scheme": "rope", "eval": [{"preset": 5}]}).status == 422
    delete(clean, "team")


def test_an_answer_is_never_that_of_the_preset_before(clean):
    put(clean, "mine", {"scheme": "rope", "head_dim": 4, "base": 100.0})
    path = "/encode?preset=mine&len=4&format=json"
    tags = set()
    for i in range(1, 6):
        put(clean, "mine", {"scheme": "rope", "head_dim": 4, "base": 100.0 * i}, 200)
        for _ in range(3):  # an answer that could be kept would be by now
            answer = clean.get(path)
            assert answer.json()["config"]["base"] == 100 * i and answer.headers["Cache-Control"] == "private, no-cache"
            assert clean.ask("/encode", preset="mine", len=4).json()["config"]["base"] == 100 * i
        tags.add(answer.headers["ETag"])
        assert clean.get(path, {"If-None-Match": answer.headers["ETag"]}).status == 304
    assert len(tags) == 5
    put(clean, "mine", {"scheme": "rope", "head_dim": 4, "base": 500.0}, 200, note="new")  # the note is in the answer
    assert clean.get(path).headers["ETag"] not in tags
    delete(clean, "mine")
    assert clean.get(path).status == 422 and "public" in clean.get("/encode?preset=llama-3.1&len=1").headers["Cache-Control"]


def test_requests_while_it_changes(clean):
    put(clean, "mine", {"scheme": "rope", "head_dim": 64, "base": 100.0})
    done, seen = threading.Event(), []

    def ask():
        while not done.is_set():
            seen.append(config_of(clean, "mine")["base"])

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(30):
        put(clean, "mine", {"scheme": "rope", "head_dim": 64, "base": 100.0 + i}, 200)
    done.set()
    for thread in threads:
        thread.join()
    assert len(seen) > 10 and set(seen) <= {100.0 + i for i in range(30)}


# ---- A folder ------------------------------------------------------------------------------------------------------------------


def on_folder(folder, *flags):
    return start_server("--weights-dir", str(folder), "--weights-refresh", str(REFRESH), *flags)


def test_what_a_server_has_not_seen_yet(tmp_path):
    """On every endpoint: the first request for a name has to look into the folder, which an I/O thread leaves to a worker."""
    asked = {
        "encode": lambda server, name: server.get(f"/encode?preset={name}&len=2"),
        "zarr": lambda server, name: server.get(f"/zarr/preset={name}&len=2/.zattrs"),
        "zarr-chunk": lambda server, name: server.get(f"/zarr/preset={name}&len=2/cos/0.0"),
        "analyze": lambda server, name: server.post("/analyze", {"preset": name, "len": 8, "metrics": ["bounds"], "outputs": []}),
        "diagnose": lambda server, name: server.post("/diagnose", {"preset": name, "q": [[1, 2, 3, 4]], "q_out": [[1, 2, 3, 4]]}),
        "rotate": lambda server, name: server.post("/rotate", {"preset": name, "q": [[1, 2, 3, 4]]}),
        "infer": lambda server, name: server.post("/v2/models/rope/infer", {"inputs": [], "parameters": {"preset": name, "len": 2}}),
    }
    with start_server("--weights-dir", str(tmp_path), "--weights-refresh", "3600") as server:
        for name, ask in asked.items():
            (tmp_path / f"{name}.preset.json").write_text('{"config":{"scheme":"rope","head_dim":4}}')
            assert ask(server, name).status == 200, name
            problem = ask(server, "x" + name)
            assert problem.status == 422 and problem.json()["pointer"].endswith("/preset"), problem


def test_they_survive_a_restart_and_are_files(tmp_path):
    with on_folder(tmp_path) as server:
        before = put(server, "mine", YARN, note="kept").json()
    by_hand = {"config": {"scheme": "alibi", "num_heads": 4}}
    in_full = {**by_hand, "source": "s", "note": 'n "x"', "stored_by": "bob", "stored_at": "2026-03-01T12:00:00Z"}
    (tmp_path / "full.preset.json").write_text(json.dumps({"later": [1], **in_full}, indent=1))
    (tmp_path / "hand.preset.json").write_text(json.dumps(by_hand))
    (tmp_path / "llama-3.1.preset.json").write_text(json.dumps(by_hand))
    (tmp_path / "broken.preset.json").write_text("{")
    (tmp_path / "nothing.preset.json").write_text('{"config":{"preset":"llama-3.1"}}')
    (tmp_path / "x.preset.json.safetensors").write_text("no preset")
    with on_folder(tmp_path) as server:
        assert server.get("/presets/mine").json() == before and stored(server) == ["full", "hand", "mine"]
        assert server.get("/presets/hand").json() == {"name": "hand", **by_hand, "stored_by": None, "stored_at": None}
        assert server.get("/presets/full").json() == {"name": "full", **in_full}
        assert config_of(server, "hand")["num_heads"] == 4
        assert config_of(server, "llama-3.1")["scheme"] == "rope"  # the program's own
        assert server.get("/presets/broken").status == 404 and "broken" in server.stderr_text()
        guarded = put(server, "broken", YARN, 412, headers={"If-None-Match": "*"}).json()["detail"]
        assert guarded.startswith("If-None-Match") and "cannot read it" in guarded
        (tmp_path / "hand.preset.json").write_text(json.dumps({"config": {"scheme": "alibi", "num_heads": 2}}))
        server.process.send_signal(signal.SIGHUP)
        within(5, lambda: config_of(server, "hand")["num_heads"] == 2)
        (tmp_path / "later.preset.json").write_text('{"config":{"scheme":"alibi","num_hads":2}}')
        assert server.post("/encode", {"preset": "later", "len": 1}).status in (200, 422)


WAYS = {"presets": (".preset.json", json.dumps({"config": YARN}).encode(), {"len": 1}, "preset"),
        "weights": (".safetensors", file(table=TABLE), T5, "weights")}


@pytest.mark.parametrize("what", WAYS)
@pytest.mark.parametrize("kind", ["folder", "full folder", "link to a folder", "pipe", "device", "socket"])
def test_what_is_no_file_in_the_folder(tmp_path, what, kind):
    """It counts as a file that cannot be one of them: passed over with a line in the log, and otherwise as if it were not there. Only a folder,
    which nothing may replace, refuses a PUT, and says why."""
    suffix, body, request, field = WAYS[what]
    path = tmp_path / ("odd" + suffix)
    if "folder" in kind:
        (tmp_path / "elsewhere" / "inner" if kind == "link to a folder" else path / "inner" if kind == "full folder" else path).mkdir(parents=True)
    if kind == "link to a folder":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    with on_folder(tmp_path) as server:
        for _ in range(2):
            assert server.get(f"/{what}/odd").status == 404
            refused = server.post("/encode", {**request, field: "odd"})
            assert refused.status == 422 and refused.json()["pointer"] == f"/{field}", refused
        within(10, lambda: "odd" in server.stderr_text() and "passed over: it is" in server.stderr_text())
        assert server.stderr_text().count("passed over") == 1
        assert server.request("PUT", f"/{what}/odd", body, {"If-Match": f'"{"0" * 64}"'}).status == 412
        answer = server.request("PUT", f"/{what}/odd", body, {"If-None-Match": "*"})
        if kind in ("folder", "full folder"):
            assert answer.status == 422 and "has a folder" in answer.json()["detail"], answer
            assert server.request("PUT", f"/{what}/odd", body).status == 422 and server.request("DELETE", f"/{what}/odd").status == 404
            assert path.is_dir()
        else:
            assert answer.status in (200, 201) and server.get(f"/{what}/odd").status == 200 and not path.is_symlink(), answer
            assert server.request("DELETE", f"/{what}/odd").status == 204 and not path.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(tmp_path):
    with on_folder(tmp_path) as server:
        tmp_path.chmod(0o500)
        assert put(server, "mine", YARN, 503).headers["Retry-After"]
        tmp_path.chmod(0o700)


# ---- A bucket ------------------------------------------------------------------------------------------------------------------


def on_bucket(s3, *flags):
    return start_server("--store", "s3://weights/team", "--store-endpoint", s3.endpoint, "--store-refresh", str(REFRESH), *flags, env=s3.env())


def test_two_servers_on_one_bucket(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    with S3Store() as s3, contextlib.ExitStack() as stack:
        a = stack.enter_context(on_bucket(s3))
        b = stack.enter_context(on_bucket(s3, "--store-cache", str(cache)))
        made = put(a, "mine", YARN)
        digest = made.headers["ETag"][1:-1]
        assert set(s3.objects) == {f"team/blobs/{digest}", "team/presets/mine"}
        assert hashlib.sha256(s3.objects[f"team/blobs/{digest}"]).hexdigest() == digest
        assert b.get("/presets/mine").body == made.body and config_of(b, "mine")["base"] == 500000
        put(b, "mine", {"scheme": "rope"}, 412, headers={"If-None-Match": "*"})
        put(b, "mine", {"scheme": "rope", "base": 7.0}, 200, headers={"If-Match": made.headers["ETag"]})
        within(REFRESH + 5, lambda: config_of(a, "mine")["base"] == 7)
        put(a, "gone", {"scheme": "rope"})
        within(REFRESH + 5, lambda: stored(b) == ["gone", "mine"])
        delete(b, "gone")
        within(REFRESH + 5, lambda: stored(a) == ["mine"])
        assert a.get("/weights").json() == {"weights": []}
        s3.kill()
        for server in (a, b):
            assert config_of(server, "mine")["base"] == 7 and stored(server) == ["mine"]
            for answer in (server.get("/presets/other"), server.post("/encode", {"preset": "other", "len": 1}),
                           server.get("/encode?preset=other&len=1"),
                           server.request("PUT", "/presets/new", json.dumps({"config": YARN}).encode())):
                assert answer.status == 503 and answer.headers["Retry-After"], answer
            assert server.get("/readyz").status == 200
        b.stop()
        again = stack.enter_context(on_bucket(s3, "--store-cache", str(cache)))  # starts without the store
        assert config_of(again, "mine")["base"] == 7
        s3.revive()
        within(10, lambda: again.get("/presets/other").status == 404)


def test_a_bucket_that_refuses_only_presets():
    """The weights beside them are served, so no other line of the log would say why."""
    with S3Store() as s3:
        s3.fault(status=403, code="AccessDenied", path="/team/presets/")
        with on_bucket(s3) as server:
            for name in "xyz":
                assert server.get(f"/presets/{name}").status == 503 and server.get(f"/weights/{name}").status == 404
            assert server.stderr_text().count("AccessDenied") == 1 and "presets: names in s3://weights/team/" in server.stderr_text()
            s3.heal()
            s3.objects = {**s3.objects, **{f"team/presets/n{i}": b"" for i in range(1025)}}
            within(REFRESH + 5, lambda: "more than 1024 names" in server.stderr_text())
            put(server, "mine", YARN)
            s3.objects = {key: text for key, text in s3.objects.items() if text}
            within(REFRESH + 5, lambda: "presets: 1 files" in server.stderr_text())
            assert server.stderr_text().count("more than 1024 names") == 1
