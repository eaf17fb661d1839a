"""/mcp: who may ask, resources, what is logged and counted. Messages of both eras, large and hostile ones are rows: ../cases/mcp.jsonl."""
import json
import pathlib
import re

import pytest

from connection import metric
from conftest import start_server
from messages import error, new, old, result, send
from token_files import LINES, token_server

STORIES = pathlib.Path(__file__).resolve().parents[3] / "server/page/stories"

# ---- The order of checks ---------------------------------------------------------------------------------------------------------


def test_pages_of_other_origins(server):
    for origin in ("https://evil.example", "null", f"http://{server.host}:1"):
        answer = send(server, b"{", Origin=origin)
        assert answer.status == 403 and "id" not in answer.json() and "another origin" in answer.json()["error"]["message"]
    assert result(old(server, "ping", Origin=f"http://{server.host}:{server.port}")) == {}


def test_a_page_that_names_this_port_by_its_own_name():
    with token_server(LINES) as server:  # else another Host is 421 before
        name = f"evil.example:{server.port}"
        assert send(server, b"{}", Host=name, Origin=f"http://{name}").status == 403
        assert send(server, b"{}", Host=name).status == 401


# ---- Resources and prompts -------------------------------------------------------------------------------------------------------


def test_every_resource_is_read(server):
    listed = result(old(server, "resources/list"))["resources"]
    schemes, presets = server.get("/schemes").json()["schemes"], server.get("/presets").json()["presets"]
    stories = sorted(path.name.removesuffix(".en.md") for path in STORIES.glob("*.en.md"))
    assert [r["uri"] for r in listed] == [f"posenc://schemes/{s['name']}" for s in schemes] + [f"posenc://presets/{p['name']}" for p in presets] + [
        f"posenc://stories/{name}" for name in stories] and len(stories) > 3
    for one in listed:
        [content] = result(old(server, "resources/read", {"uri": one["uri"]}))["contents"]
        assert content["uri"] == one["uri"] and content["mimeType"] == one["mimeType"] == "text/markdown" and content["text"].startswith("# ")
    text = result(old(server, "resources/read", {"uri": "posenc://schemes/rope"}))["contents"][0]["text"]
    rope = next(s for s in schemes if s["name"] == "rope")
    assert all(f"`{row['name']}`" in text for row in rope["parameters"] + rope["outputs"]) and rope["paper"] in text


@pytest.mark.parametrize("name", ["designing", "sin-and-cos"])
def test_a_story_is_that_of_the_page(server, name):
    """Every paragraph, under its title; the figures by name, and their requests."""
    for asked, lang in (name, "en"), (f"{name}?lang=en", "en"), (f"{name}?lang=zh", "zh"):
        [content] = result(old(server, "resources/read", {"uri": f"posenc://stories/{asked}"}))["contents"]
        title = json.loads((STORIES.parent / f"text/{lang}.json").read_text())[f"story.{name}"]
        whole, module = (STORIES / f"{name}.{lang}.md").read_text(), (STORIES / f"{name}.js").read_text()
        text, rest = content["text"].split("```js\n")
        assert content["uri"] == f"posenc://stories/{asked}" and text.startswith(f"# {title}\n\n## ")
        figures = re.findall(r"figure\('([\w-]+)'", module)
        assert re.findall(r"""figure\(['"]([\w-]+)""", rest) == figures and len(figures) > 3 and rest.endswith("```\n")
        for block in whole.split("\n\n")[1:]:
            lines = block.strip("\n").split("\n")
            if lines[0].startswith("!["):
                assert f"figure('{lines[0][2:-1]}'" in module
                lines[0] = f"**`{lines[0][2:-1]}`**\n"
            assert "\n".join(lines) in text
    assert error(old(server, "resources/read", {"uri": f"posenc://stories/{name}s"}))["message"].endswith(f"nearest: posenc://stories/{name}")


def test_stored_presets_are_resources():
    """Beside those of the program, one of whose names may not be stored; of one server alone, so private."""
    with start_server() as server:
        before = [r["uri"] for r in result(old(server, "resources/list"))["resources"]]
        config = {"scheme": "rope", "head_dim": 64, "base": 5000.0}
        body = {"config": config, "source": "our config.json", "note": 'the "long" one'}
        assert server.request("PUT", "/presets/our-rope", json.dumps(body).encode()).status == 201
        listed = result(old(server, "resources/list"))["resources"]
        [own] = [r for r in listed if r["uri"] not in before]
        assert own == {"uri": "posenc://presets/our-rope", "name": "our-rope", "mimeType": "text/markdown"}
        assert len(listed) == len(before) + 1
        [content] = result(old(server, "resources/read", {"uri": own["uri"]}))["contents"]
        title, fence, *rest = content["text"].split("\n\n")
        assert title == "# our-rope" and rest == ["Source: our config.json", 'the "long" one\n']
        assert json.loads(fence.removeprefix("```json\n").removesuffix("\n```")) == config
        for uri, scope in ((own["uri"], "private"), ("posenc://presets/llama-3.1", "public")):
            assert result(new(server, "resources/read", {"uri": uri}))["cacheScope"] == scope
        nearly = error(old(server, "resources/read", {"uri": own["uri"] + "s"}))["message"]
        assert nearly.endswith("nearest: posenc://presets/our-rope")
        assert server.request("DELETE", "/presets/our-rope").status == 204
        assert error(old(server, "resources/read", {"uri": own["uri"]}))["code"] == -32602
        assert [r["uri"] for r in result(old(server, "resources/list"))["resources"]] == before


# ---- Operation -------------------------------------------------------------------------------------------------------------------


def test_log_and_metrics():
    with start_server() as server:
        old(server, "tools/call", {"name": "encode", "arguments": {"scheme": "rope", "len": 1}})
        old(server, "tools/call", {"name": "encode", "arguments": {"scheme": "rope", "lenn": 1}})
        old(server, "tools/call", {"name": "encode", "arguments": 7})
        for outcome in ("ok", "refused", "error"):
            assert metric(server, f'posenc_mcp_calls_total{{tool="encode",outcome="{outcome}"}}') == 1
        assert 'path="/mcp tools/call encode"' in server.stderr_text()
