"""Tools of /mcp: the list, what each answers beside its endpoint, random requests to both, experiments. Refusals are rows: ../cases/mcp.jsonl."""
import base64
import json
import os
import random
import signal
import socket
import time

import jsonschema
import numpy as np
import pytest

from conftest import Stopwatch, start_server
from connection import metric, within
from messages import JSON, call, new, old, refusal, result
from tensors import from_npy, from_safetensors

TOOLS = ["schemes", "presets", "explain", "encode", "rotate", "attention", "analyze", "diagnose", "check", "picture", "experiment",
         "translate", "derive"]
WORDS = {"type", "properties", "required", "items", "enum", "anyOf", "description", "default", "minimum", "maximum", "additionalProperties"}
SMALL = {"task": "local", "steps": 40, "train_len": 16, "eval_len": 24, "configs": [{"scheme": "alibi"}, {"scheme": "rope"}]}


@pytest.fixture(scope="module")
def tools(session_server):
    return {tool["name"]: tool for tool in result(old(session_server, "tools/list"))["tools"]}


def words_of(schema):
    yield from schema
    for inner in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
        yield from words_of(inner)


def test_the_list(server, tools):
    assert list(tools) == [name for name in TOOLS if name in tools] and set(TOOLS) - set(tools) <= {"explain"}
    assert all(len(ask(server, "tools/list").body) <= 48 * 1024 for ask in (old, new)) and old(server, "tools/list").body == old(server, "tools/list").body
    for tool in tools.values():
        assert 20 <= len(tool["description"]) <= 400 and set(words_of(tool["inputSchema"])) <= WORDS and set(words_of(tool["outputSchema"])) <= WORDS
        assert tool["annotations"] == {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
        assert "summary" in tool["outputSchema"]["required"]


def valid(tools, name, content):
    jsonschema.Draft202012Validator(tools[name]["outputSchema"]).validate(content)
    return content


# ---- Each tool beside its endpoint -------------------------------------------------------------------------------------------------


def test_schemes(server, tools):
    found = valid(tools, "schemes", call(server, "schemes"))["schemes"]
    whole = server.get("/schemes").json()["schemes"]
    assert [s["name"] for s in found] == [s["name"] for s in whole] and all(set(s) == {"name", "family", "summary", "outputs", "example"} for s in found)
    assert call(server, "schemes", name="rope")["schemes"] == [server.get("/schemes/rope?notation=text").json()]
    assert call(server, "schemes", name="rope", lang="zh")["summary"] != call(server, "schemes", name="rope")["summary"]


def test_presets(server, tools):
    found = valid(tools, "presets", call(server, "presets", query="llama"))
    whole = server.get("/presets?query=llama&limit=10").json()
    assert {name: found[name] for name in whole} == whole
    assert len(call(server, "presets")["presets"]) == 10 and call(server, "presets", limit=2)["total"] > 10
    alone = valid(tools, "presets", call(server, "presets", query="zzzzqqqqq"))
    assert alone["summary"] == f"no preset has these words; nearest: {alone['nearest']}"
    assert alone["presets"] == [] and alone["total"] == 0


def shown(tensor):
    """How many numbers of each axis, by the rule: as many as there is room for, from the last axis to the first."""
    return [[0, stop] for stop in stops(tensor["shape"], 64)]


def stops(shape, values):
    found = []
    for n in reversed(shape):
        found.append(min(n, max(1, min(n, values))))
        values //= found[-1] or 1
    return found[::-1]


@pytest.mark.parametrize("shape_of", [{"scheme": "rope", "len": 2048}, {"scheme": "alibi", "len": 5, "num_heads": 3}, {"scheme": "sinusoidal", "len": 3, "dim": 200},
                                      {"scheme": "sinusoidal", "len": 1, "dim": 2}, {"scheme": "rope", "len": 40, "dtype": "bf16", "digits": 2}])
def test_the_first_numbers_and_a_link_to_all(server, tools, shape_of):
    content = valid(tools, "encode", call(server, "encode", **shape_of))
    whole = server.ask("/encode", **shape_of).json()
    assert content["config"] == whole["config"] and content["scheme"] == whole["scheme"] and "preset" not in content and set(content["tensors"]) == set(whole["tensors"])
    for name, tensor in content["tensors"].items():
        assert tensor["shape"] == whole["tensors"][name]["shape"] and tensor["shown"] == shown(tensor)
        cut = tuple(slice(*axis) for axis in tensor["shown"])
        assert tensor["data"] == np.array(whole["tensors"][name]["data"], object)[cut].tolist()
    numbers = sum(np.prod(t["shape"]) for t in whole["tensors"].values())
    assert content["complete"] == all(np.prod(t["shape"]) == np.prod([b for _, b in t["shown"]]) for t in content["tensors"].values()) and numbers
    path = content["url"].removeprefix(server.url)
    answer = server.get(path)
    assert answer.status == 200, path
    read = from_safetensors(answer) if path.endswith("safetensors") else {next(iter(whole["tensors"])): from_npy(answer)}
    for name, tensor in whole["tensors"].items():
        assert list(np.asarray(read[name]).shape) == tensor["shape"]


@pytest.mark.parametrize("fields", [{"preset": "llama-3.1"}, {"preset": "gemma-3"}, {"preset": "gemma-3", "layer_type": "sliding_attention"}])
def test_a_preset_is_stated_as_by_the_endpoint(server, tools, fields):
    content = valid(tools, "encode", call(server, "encode", len=2, **fields))
    whole = server.ask("/encode", len=2, **fields).json()
    assert whole["preset"]["name"] == fields["preset"] and content["preset"] == whole["preset"]
    rows = {"q": [[0.5] * whole["config"]["head_dim"]]}
    assert call(server, "rotate", **rows, **fields)["preset"] == server.post("/rotate", {**rows, **fields}).json()["preset"]


def test_the_link_is_in_the_content(server):
    found = result(old(server, "tools/call", {"name": "encode", "arguments": {"scheme": "rope", "len": 2048}}))
    link = found["content"][1]
    assert link["type"] == "resource_link" and link["uri"] == found["structuredContent"]["url"] == f"{server.url}/encode?scheme=rope&len=2048&format=safetensors"
    assert link["mimeType"] == "application/vnd.safetensors" and found["structuredContent"]["summary"].startswith(
        "rope: cos f32 [2048,32], sin f32 [2048,32]; 524288 bytes in all, the first 64 numbers of each are shown; GET the url")


def test_no_link_where_get_cannot_ask(server):
    content = call(server, "attention", scheme="alibi", num_heads=1, tokens=list("abcdefghijklmnop"))
    assert content["url"] is None and content["summary"].endswith("POST /attention with the same arguments gives all numbers.") and content["empty_rows"] == 0
    assert call(server, "encode", scheme="rope", positions=list(range(10000, 13000)))["url"] is None, "longer than 8 KiB"


def test_terms_have_their_names(server, tools):
    fields = {"scheme": "transformer_xl", "num_heads": 1, "tokens": ["a", "b"], "outputs": ["terms"]}
    content, whole = valid(tools, "attention", call(server, "attention", **fields)), server.ask("/attention", **fields).json()
    assert content["terms"] == whole["terms"] and len(content["terms"]) == content["tensors"]["terms"]["shape"][0] == 4


def test_a_public_url():
    with start_server("--public-url", "https://posenc.example.org") as server:
        assert call(server, "encode", scheme="rope", len=1)["url"].startswith("https://posenc.example.org/encode?")


def test_large_answers_cost_as_little(server):
    with_stopwatch = Stopwatch(server)
    content = call(server, "encode", scheme="rope", len=1 << 24)
    assert content["complete"] is False and with_stopwatch.seconds() < 1


def test_analyze(server, tools):
    fields = {"scheme": "rope", "len": 16, "metrics": ["bounds", "unique"]}
    content = valid(tools, "analyze", call(server, "analyze", **fields))
    whole = server.ask("/analyze", **fields, outputs=[]).json()
    assert content["results"] == whole["results"] and content["configs"] == whole["configs"] and content["tensors"] == {}
    assert all(value["detail"] in content["summary"] for value in whole["results"][0].values())


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_diagnose_and_check(server, tools, layout):
    fields = {"scheme": "rope", "layout": layout, "offset": 5, "q": [[1, 2, 3, 4]], "q_out": [[3.160435, 1.7975838, -0.107937716, 4.0949593]]}
    diagnosis, check = valid(tools, "diagnose", call(server, "diagnose", **fields)), valid(tools, "check", call(server, "check", **fields))
    whole = server.ask("/diagnose", **fields).json()
    assert {name: diagnosis[name] for name in whole} == whole and diagnosis["fits"] == check["fits"] == (layout == "half")
    assert diagnosis["summary"] == check["summary"] == whole["findings"][0]["detail"]
    assert call(server, "check", **fields, lang="zh")["summary"] == whole["findings"][0]["detail_zh"]


def test_picture(server, tools):
    fields = {"scheme": "sinusoidal", "len": 20, "dim": 32, "zoom": 2}
    found = result(old(server, "tools/call", {"name": "picture", "arguments": fields}))
    text, image, link = found["content"]
    png = base64.b64decode(image["data"], validate=True)
    assert image["mimeType"] == "image/png" and png == server.ask("/encode", **fields, format="png").body == server.get(link["uri"].removeprefix(server.url)).body
    content = valid(tools, "picture", found["structuredContent"])
    assert content["output"] == "encoding" and content["shape"] == [20, 32] and content["config"]["dim"] == 32
    for of, more in (("attention", {"scheme": "alibi", "tokens": ["a", "b"]}), ("analyze", {"scheme": "rope", "len": 32, "metrics": ["similarity"]})):
        valid(tools, "picture", call_picture(server, of=of, **more))


def test_a_picture_of_every_length_in_base64(server):
    """Three bytes are four characters; one or two bytes at the end have padding."""
    seen = set()
    for length in range(1, 30):
        fields = {"scheme": "sinusoidal", "len": length, "dim": 8}
        _, image, _ = result(old(server, "tools/call", {"name": "picture", "arguments": fields}))["content"]
        png = server.ask("/encode", **fields, format="png").body
        assert image["data"] == base64.b64encode(png).decode()
        seen.add(len(png) % 3)
    assert seen == {0, 1, 2}


def call_picture(server, **arguments):
    found = result(old(server, "tools/call", {"name": "picture", "arguments": arguments}))
    assert found["content"][1]["type"] == "image", found
    return found["structuredContent"]


# ---- Refusals, and random requests ---------------------------------------------------------------------------------------------------


def random_request(draw, schemes):
    scheme = draw.choice(schemes)
    request = json.loads(json.dumps(scheme["example"]))
    for _ in range(draw.randint(0, 3)):
        row = draw.choice(scheme["parameters"])
        choices = {"integer": [0, 1, 2, 3, 7, 64, -1, "x"], "number": [0.5, 1, 10000.0, -3], "boolean": [True, False, 1], "string": [*row.get("values", []), "nothing"]}
        request[row["name"]] = draw.choice(choices.get(row["type"], [None, [1, 2], {}]))
    if draw.random() < 0.3:
        request[draw.choice(["len", "offset", "q_len", "dtype", "outputs", "positions", "lenn"])] = draw.choice([0, 3, 17, "bf16", ["cos"], [1.5, 2], None])
    return request


def test_tool_and_endpoint_agree(server, tools):
    draw, schemes, answered = random.Random(7), server.get("/schemes").json()["schemes"], 0
    for _ in range(1000):
        request, tool = random_request(draw, schemes), draw.choice(["encode", "encode", "rotate", "attention"])
        whole = server.post(f"/{tool}", request)
        if whole.status != 200:
            assert refusal(server, tool, request) == whole.json(), request
            continue
        content, answered = valid(tools, tool, call(server, tool, **request, values=4096)), answered + 1
        assert content["config"] == whole.json()["config"]
        for name, tensor in whole.json()["tensors"].items():
            cut = tuple(slice(*axis) for axis in content["tensors"][name].get("shown", []))
            if cut:
                assert content["tensors"][name]["data"] == np.array(tensor["data"], object)[cut].tolist(), (request, name)
    assert answered > 150


PAGES = {"another site": {"Sec_Fetch_Site": "cross-site"}, "in advance": {"Sec_Purpose": "prefetch"}, "this page": {"Sec_Fetch_Site": "same-origin"}, "none": {}}


@pytest.mark.parametrize("page", PAGES)
def test_a_tool_has_the_rules_of_its_route(server, tools, page):
    """Whatever the headers of a browser forbid an endpoint, its tool refuses, and nothing else."""
    headers, found = PAGES[page], {}
    for tool in tools:
        path = {"picture": "/encode", "check": "/check", "experiment": "/experiments"}.get(tool, f"/{tool}")
        sent = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
        method = "GET" if tool in ("schemes", "presets") else "POST"
        status = server.request(method, path, b'{"len":0}' if method == "POST" else None, sent).status
        answer = result(old(server, "tools/call", {"name": tool, "arguments": {"len": 0} if method == "POST" else {}}, **headers))
        found[tool] = status == 403, answer.get("_meta", {}).get("posenc/problem", {}).get("status") == 403
    assert all(route == tool for route, tool in found.values()), found
    assert found["experiment"][0] == (page in ("another site", "in advance"))


# ---- Experiments -----------------------------------------------------------------------------------------------------------------


def events(answer):
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream" and answer.headers["Cache-Control"] == "no-store"
    blocks = answer.body.decode().split("\n\n")
    assert blocks.pop() == ""
    return [json.loads(block.removeprefix("data: ")) for block in blocks if block != ":"]


@pytest.mark.parametrize("ask", [old, new])
def test_progress(server, tools, ask):
    meta = {"progressToken": "t-1"}
    params = {"name": "experiment", "arguments": SMALL}
    answer = ask(server, "tools/call", params, meta=meta) if ask is new else ask(server, "tools/call", {**params, "_meta": meta})
    *progress, last = events(answer)
    assert progress and all(p["method"] == "notifications/progress" and p["params"]["progressToken"] == "t-1" and p["params"]["total"] == 80 for p in progress)
    steps = [p["params"]["progress"] for p in progress]
    assert steps == sorted(set(steps)) and steps[-1] == 80 and progress[0]["params"]["message"].startswith("alibi: step 1 of 40, loss ")
    content = valid(tools, "experiment", last["result"]["structuredContent"])
    assert last["id"] == 1 and len(content["results"]) == len(content["configs"]) == 2
    whole = [json.loads(line) for line in server.post("/experiments", SMALL).body.decode().splitlines()]
    assert content["results"] == whole[-1]["results"] and content["configs"] == whole[0]["configs"] and "data" not in content["tensors"]["excess.0"]


def test_json_at_the_end(server):
    answer = old(server, "tools/call", {"name": "experiment", "arguments": {**SMALL, "values": 3}}, Accept="application/json")
    assert answer.headers["Content-Type"] == "application/json"
    assert len(result(answer)["structuredContent"]["tensors"]["excess.1"]["data"]) == 3


LONG = {"steps": 2000, "train_len": 512, "eval_len": 512, "configs": [{"scheme": "rope"}]}


def begin(server, tool, fields, **params):
    """A connection on which the call of a tool has been sent."""
    params = {"name": tool, "arguments": fields, **params}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in {**JSON, "Content-Length": len(body)}.items())
    client = socket.create_connection((server.host, server.port), timeout=60)
    client.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode() + body)
    return client


@pytest.mark.parametrize("accept", ["text/event-stream, application/json", "application/json"])
def test_an_experiment_that_takes_too_long(accept):
    """The refusal is the result: after the first byte there is no other status."""
    with start_server("--experiment-seconds", "1") as server:
        last = json.loads(server.post("/experiments", LONG, {"Accept-Language": "zh"}).body.decode().splitlines()[-1])
        for lang in ("en", "zh"):
            params = {"name": "experiment", "arguments": LONG}
            answer = old(server, "tools/call", params, Accept=accept, Accept_Language=lang)
            told = result(answer) if accept == "application/json" else events(answer)[-1]["result"]
            problem = told["_meta"]["posenc/problem"]
            assert told["isError"] is True and problem["status"] == 503 and "--experiment-seconds" in problem["detail"]
            assert told["content"] == [{"type": "text", "text": problem["detail"]}]
            assert (problem["detail"] == last["detail"]) is (lang == "zh")
        assert metric(server, 'posenc_mcp_calls_total{tool="experiment",outcome="refused"}') == 2
        assert metric(server, "posenc_experiments") == 0


@pytest.mark.parametrize("params", [{}, {"_meta": {"progressToken": 7}}], ids=["no token", "token"])
def test_silence_is_a_comment(params):
    """A comment for each progress without a token, and after two seconds without progress: the server is stopped."""
    with start_server() as server, begin(server, "experiment", LONG, **params) as client:
        received = client.recv(65536)
        while b":\n\n" not in received:
            if params:
                os.kill(server.pid, signal.SIGSTOP)
                time.sleep(2.2)
                os.kill(server.pid, signal.SIGCONT)
            more = client.recv(65536)
            assert more, received[-1000:]
            received += more
        assert b'"result"' not in received and (params or b"data: " not in received)


def test_an_analysis_whose_client_leaves_is_counted():
    long = {"scheme": "sinusoidal", "dim": 1024, "len": 16384, "metrics": ["unique"]}
    with start_server() as server:
        with begin(server, "analyze", long):
            within(10, lambda: metric(server, "posenc_busy_workers") == 1)
        within(5, lambda: metric(server, 'posenc_mcp_calls_total{tool="analyze",outcome="cancelled"}') == 1)


def test_a_client_that_leaves_ends_the_work():
    with start_server() as server, begin(server, "experiment", LONG, _meta={"progressToken": 7}) as client:
        received = b""
        while b"notifications/progress" not in received:
            received += client.recv(65536)
        assert b'"progressToken":7' in received and metric(server, "posenc_experiments") == 1
        client.close()
        within(10, lambda: metric(server, "posenc_experiments") == 0)
        within(10, lambda: metric(server, 'posenc_mcp_calls_total{tool="experiment",outcome="cancelled"}') == 1)


def test_translate(server, tools):
    """The endpoint's own answer, whose sentence is the summary."""
    fields = {"hf_config": {"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "rope_theta": 1000000.0}, "to": ["vllm", "megatron"]}
    content = valid(tools, "translate", call(server, "translate", **fields))
    whole = json.loads(server.post("/translate", json.dumps(fields).encode()).body)
    assert content["targets"] == whole["targets"] and content["summary"] == whole["detail"]
    assert [target["to"] for target in content["targets"]] == fields["to"] and "--rotary-base 1000000" in content["targets"][1]["text"]


def test_derive(server, tools):
    """The endpoint's own answer; the cosines are those of DERIVE.md."""
    fields = {"preset": "llama-3.1", "position": 8192, "pair": 29}
    content = valid(tools, "derive", call(server, "derive", **fields))
    whole = json.loads(server.post("/derive", json.dumps(fields).encode()).body)
    assert {name: content[name] for name in whole} == whole and content["summary"] == whole["detail"]
    assert content["steps"][-1]["value"] == "0.45269735178167425453" and content["number"]["bits"] == "0x3ee7c7f3"
    several = valid(tools, "derive", call(server, "derive", **{**fields, "pair": [29, 40]}))
    assert [one["steps"][-1]["value"] for one in several["numbers"]] == ["0.45269735178167425453", "0.96082569555884910961"]
    assert several["summary"] == "2 numbers, each with its steps."
    assert set(tools["derive"]["inputSchema"]["properties"]) == {"scheme", "preset", "hf_config", "tensor", "index", "position", "channel", "pair", "head",
                                                                 "query", "key", "recipe", "lang"}
    assert "channel 200" in refusal(server, "derive", {"preset": "llama-3.1", "position": 1, "channel": 200})["detail"]
