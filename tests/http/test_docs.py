"""The HTML pages, GET / and GET /docs: they load nothing from other hosts, comply with their own policy, and can be
cached; and the script of /docs, run in node on a small document of ours (docs_page.js) against the real server."""
import base64
import hashlib
import html.parser
import json
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

import safetensors_reader
from token_files import LINES, READER, WRITER, bearer, token_server

PAGES = ["/", "/docs"]
VOID = {"meta", "link", "input", "br", "hr", "img"}
HERE = pathlib.Path(__file__).resolve().parent


class Page(html.parser.HTMLParser):
    """Elements as (tag, attributes), text of style and script; refuses tags that do not close in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.inner = [], [], {"style": [], "script": []}
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(set(names)) == len(names)
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in self.inner:
            self.inner[tag].append("")

    def handle_endtag(self, tag):
        if tag in ("p", "dt", "dd"):
            while self.open[-1] != tag:
                assert self.open.pop() in ("p", "dt", "dd")
        assert self.open.pop() == tag, tag

    def handle_data(self, text):
        if self.open and self.open[-1] in self.inner:
            self.inner[self.open[-1]][-1] += text

    def values(self, *names):
        return [attributes[name] for _, attributes in self.elements for name in names if name in attributes]


def policy(answer):
    parts = [part.split() for part in answer.headers["Content-Security-Policy"].split(";")]
    assert len({part[0] for part in parts}) == len(parts)
    return {part[0]: part[1:] for part in parts}


def source(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@pytest.fixture(scope="module", params=PAGES)
def answer(request, session_server):
    got = session_server.get(request.param)
    assert got.status == 200
    got.path = request.param
    return got


def test_headers(answer, server):
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8" and answer.headers["X-Content-Type-Options"] == "nosniff"
    assert len(answer.body) < 25_000
    head = server.request("HEAD", answer.path)
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == str(len(answer.body)) and head.headers["ETag"] == answer.headers["ETag"]
    refused = server.post(answer.path, {})
    assert refused.status == 405 and refused.headers["Allow"] == "GET, HEAD"


def test_kept_by_its_tag(answer, server):
    tag = answer.headers["ETag"]
    assert tag == '"' + hashlib.sha256(answer.body).hexdigest()[:32] + '"'  # strong, and from nothing but the bytes
    assert answer.headers["Cache-Control"] == "no-cache"
    for condition in (tag, "W/" + tag, f'"other", {tag}', "*"):
        kept = server.get(answer.path, {"If-None-Match": condition})
        assert kept.status == 304 and kept.body == b"" and kept.headers["ETag"] == tag, condition
    assert server.get(answer.path, {"If-None-Match": '"other"'}).body == answer.body


def test_nothing_from_elsewhere(answer):
    page = Page(answer.body.decode("ascii"))
    for url in page.values("src", "href", "action", "srcset", "poster", "data"):
        assert re.fullmatch(r"#[\w-]+|/[\w./-]*|data:,", url) and not url.startswith("//"), url
    assert not re.search(r"https?://|@import|url\(|//cdn|\bimport\s*\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", answer.body.decode())
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on") or name == "style"]


def test_the_policy_allows_exactly_what_is_there(answer):
    page, rules = Page(answer.body.decode()), policy(answer)
    assert rules["default-src"] == ["'none'"] and rules["base-uri"] == rules["form-action"] == rules["frame-ancestors"] == ["'none'"]
    assert rules["style-src"] == [source(text) for text in page.inner["style"]]
    assert rules["script-src"] == ([source(text) for text in page.inner["script"]] or ["'none'"])
    assert rules["connect-src"] == (["'self'"] if page.inner["script"] else ["'none'"])
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


def test_links_lead_somewhere(answer, server):
    page = Page(answer.body.decode())
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    for link in page.values("href", "for", "aria-labelledby", "aria-controls"):
        if link.startswith("/"):
            assert server.get(link).status == 200, link
        elif not link.startswith("data:"):
            assert link.lstrip("#") in ids, link


def test_for_everyone(answer):
    page = Page(answer.body.decode())
    assert ("html", {"lang": "en"}) in page.elements and [tag for tag, _ in page.elements].count("h1") == 1
    assert {"title", "main"} <= {tag for tag, _ in page.elements}
    assert "prefers-color-scheme: dark" in page.inner["style"][0] and ":focus-visible" in page.inner["style"][0]
    labelled = page.values("for")
    assert all(attributes.get("id") in labelled for tag, attributes in page.elements if tag in ("input", "select", "textarea"))


def test_docs_without_a_script_is_a_list_of_links(server):
    links = set(Page(server.get("/docs").body.decode()).values("href"))
    routes = {path for path in server.get("/openapi.json").json()["paths"] if path not in ("/docs", "/encode", "/rotate", "/attention", "/analyze", "/diagnose") and "{" not in path and not path.startswith("/v2/")}
    assert routes <= links


def test_front_names_what_it_should(server):
    text = server.get("/").body.decode()
    assert {"/docs", "/schemes", "/presets", "/metrics"} <= set(Page(text).values("href"))
    lines = re.search(r"<pre[^>]*>(.*?)</pre>", text, re.S)[1].replace("&amp;", "&").splitlines()
    assert len(lines) == 3
    for line in lines:
        command = line.replace("localhost:8080", f"{server.host}:{server.port}").replace("-o table.npy", "-o /dev/null")
        shown = subprocess.run(["sh", "-c", command + " -sSf -w '%{http_code}' | tail -c 3"], capture_output=True, text=True, timeout=30)
        assert shown.stdout == "200", (line, shown)


@pytest.mark.parametrize("path", ["/doc", "/Docs", "/docs/", "/docs/x", "//"])
def test_neighbours_are_not_there(server, path):
    assert server.get(path).status == 404


# ---- The script at work --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worked(session_server):
    node = shutil.which("node")
    if not node:
        pytest.skip("node is not installed: the script of /docs is not run")
    page = session_server.get("/docs").body
    weights = safetensors_reader.dumps({"table": np.zeros((2, 2), "f4")}, {})
    assert session_server.request("PUT", "/weights/t5-small", weights).status == 201  # the example's name
    run = subprocess.run([node, str(HERE / "docs_page.js"), session_server.url], input=page, capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr.decode()[-3000:]
    yield json.loads(run.stdout)
    session_server.request("DELETE", "/weights/t5-small")


def test_the_script_fills_the_page(worked, server):
    assert worked["status"] == "" and worked["version"] == server.get("/version").json()["version"]
    assert worked["groups"] == ["compute", "catalogue", "weights", "operation", "inference"]
    assert {r["path"] for r in worked["results"]} == set(server.get("/openapi.json").json()["paths"])


def test_every_example_answers_200(worked, server):
    for result in worked["results"]:
        assert set(result["methods"]) <= {"GET", "HEAD", "POST", "QUERY", "PUT", "DELETE"} and "431the head passes its limit" in result["text"]
        assert result["status"].startswith("501 " if result["path"].endswith("/unload") else "200 "), result
        assert "server-timing: queue;dur=" in result["headers"] and result["answer"] is not None
    tried = {(r["path"], r["scheme"]) for r in worked["results"]}
    for scheme in server.get("/schemes").json()["schemes"]:
        assert (scheme["endpoints"][0], scheme["name"]) in tried
    assert {r["method"] for r in worked["results"] if r["path"] == "/encode"} == {"GET", "POST", "QUERY"}


def test_the_tables_are_of_the_scheme(worked, server):
    alibi = next(s for s in server.get("/schemes").json()["schemes"] if s["name"] == "alibi")
    rows = {r["scheme"]: r["rows"] for r in worked["results"] if r["path"] == "/encode"}
    assert rows["alibi"] - rows[""] == len(alibi["parameters"]) + len(alibi["inputs"])


def test_answers_are_cut_at_4_kilobytes(worked):
    answer = next(r["answer"] for r in worked["results"] if r["path"] == "/openapi.json")
    assert answer.startswith('{"openapi"') and len(answer) < 4150 and answer.endswith("(the first 4 KB)")
    assert not next(r["answer"] for r in worked["results"] if r["path"] == "/healthz").endswith("KB)")


def test_curl_commands_do_the_same(worked, server):
    seen = set()
    for result in worked["results"]:
        if (result["path"], result["method"]) in seen or result["path"] == "/metrics" or "octet-stream" in result["headers"] or "safetensors" in result["headers"]:
            continue
        seen.add((result["path"], result["method"]))
        out = subprocess.run(["sh", "-c", result["curl"] + " -sS"], capture_output=True, timeout=30).stdout.decode()
        assert out[:3000] == result["answer"][:3000], result["curl"]


def test_search(worked, server):
    found = worked["found"]
    assert found["rotary_dim"]["names"][0] == "rotary_dim" and found["nothing-like-this"] == {"said": found["nothing-like-this"]["said"], "names": []}
    total = int(re.match(r"(\d+) of \1 ", found[""]["said"])[1])
    assert total > sum(len(s["parameters"]) for s in server.get("/schemes").json()["schemes"])
    assert found["window seen left"]["names"] and len(found["window seen left"]["names"]) < 20


# ---- Where there are tokens ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded():
    with token_server(LINES) as server:
        yield server


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_browsers_are_given_the_page_that_asks_for_a_token(guarded, server):
    """Still 401; the page's bytes are the program's own, and clients that do not accept HTML get JSON."""
    for headers in (BROWSER, {**BROWSER, **bearer("nonsense")}):
        answer = guarded.get("/docs", headers)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith('Bearer realm="posenc"')
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8" and answer.headers["Cache-Control"] == "no-store"
        assert answer.body == server.get("/docs").body and answer.headers["ETag"] is None
        assert answer.headers["Content-Security-Policy"] == server.get("/docs").headers["Content-Security-Policy"]
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        assert guarded.get("/docs", headers).headers["Content-Type"] == "application/problem+json"
    for path in ("/openapi.json", "/schemes", "/encode?scheme=rope&len=2", "/nothing"):
        answer = guarded.get(path, BROWSER)
        assert answer.status == 401 and answer.headers["Content-Type"] == "application/problem+json", path
    assert guarded.get("/docs", {**BROWSER, **bearer(READER)}).status == 200


def test_the_page_works_with_a_token(guarded):
    """The page asks for a token, reports a wrong one, sends the right one with all its requests, and shows it
    nowhere."""
    node = shutil.which("node")
    if not node:
        pytest.skip("node is not installed: the script of /docs is not run")
    weights = safetensors_reader.dumps({"table": np.zeros((2, 2), "f4")}, {})
    assert guarded.request("PUT", "/weights/t5-small", weights, bearer(WRITER)).status == 201
    page = guarded.get("/docs", BROWSER).body
    run = subprocess.run([node, str(HERE / "docs_page.js"), guarded.url, READER], input=page, capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr.decode()[-3000:]
    worked = json.loads(run.stdout)
    assert worked["doors"] == [{"hidden": False, "status": "This server asks for a token."}, {"hidden": False, "status": "This token is not known here."},
                               {"hidden": True, "left": ""}]
    assert worked["status"] == "" and len(worked["results"]) > 50
    for result in worked["results"]:
        assert result["status"].startswith("501 " if result["path"].endswith("/unload") else "200 "), result
        assert "$TOKEN" in result["curl"]
    assert READER not in run.stdout.decode() and READER not in guarded.stderr_text()
