"""The view `docs`: every route of /openapi.json can be opened, every example runs, and its command does the same."""
import re
import subprocess

import numpy as np
import pytest

import safetensors_reader
from browser import until
from token_files import LINES, READER, WRITER, bearer, token_server

# Opens every route, chooses every scheme and every method, presses Run and Copy; gives what came of it.
WORK = """const [only, done] = arguments;
const wait = async (test) => { for (let i = 0; i < 1000; i += 1) { const found = test(); if (found) return found; await new Promise((next) => setTimeout(next, 10)); } throw new Error('no answer'); };
const change = (select, value) => { select.value = value; select.dispatchEvent(new Event('change', { bubbles: true })); };
const all = [];
async function press(route) {
  const place = route.querySelector('.trial-result');
  place.replaceChildren();
  route.querySelector('[data-action=start]').click();
  const status = await wait(() => place.querySelector('[data-status], .bad'));
  const [choice, method] = [route.querySelector('.trial-scheme select'), route.querySelector('.trial-method select')];
  all.push({ path: route.dataset.route, scheme: choice?.value ?? '', method: method?.value ?? '', status: status.dataset.status ?? status.textContent,
    head: place.querySelector('[data-answer=head]')?.textContent, answer: place.querySelector('[data-answer=body]')?.textContent, cut: Boolean(place.querySelector('.hint')),
    curl: route.querySelector('[data-curl]').textContent, rows: route.querySelectorAll('[data-parameter]').length, text: route.textContent });
}
(async () => {
  for (const route of document.querySelectorAll('[data-route]')) {
    if (only && route.dataset.route !== only) continue;
    route.open = true;
    await wait(() => route.querySelector('[data-action=start]'));
    await press(route);
    const [choice, method] = [route.querySelector('.trial-scheme select'), route.querySelector('.trial-method select')];
    for (const select of [choice, method].filter(Boolean))
      for (const option of [...select.options].slice(1)) { change(select, option.value); await press(route); }
    route.open = false;
  }
})().then(() => done(all), (error) => done(String(error.stack)));"""


def work(page, only=""):
    page.driver.set_script_timeout(240)
    results = page.driver.execute_async_script(WORK, only)
    assert isinstance(results, list), results
    return results


@pytest.fixture(scope="module")
def stored(server):
    """The files and models that examples name."""
    weights = safetensors_reader.dumps({"table": np.zeros((2, 2), "f4")}, {})
    assert server.request("PUT", "/weights/t5-small", weights).status == 201
    yield
    server.request("DELETE", "/weights/t5-small")


@pytest.fixture
def docs(open_page):
    return open_page("view=docs")


@pytest.fixture(scope="module")
def description(server):
    return server.get("/openapi.json").json()


@pytest.fixture(scope="module")
def worked(driver, server, stored):
    from browser import Page

    page = Page(driver, server.url).open("view=docs")
    return work(page)


def test_every_route_is_there_and_opens(worked, description):
    assert {result["path"] for result in worked} == set(description["paths"])
    for result in worked:
        item = description["paths"][result["path"]]
        assert (item.get("post") or item["get"])["summary"] in result["text"] and "the head passes its limit" in result["text"]
    by_path = {result["path"]: result for result in worked}
    whole = by_path["/openapi.json"]  # answers are cut at 4 kilobytes
    assert whole["cut"] and whole["answer"].startswith('{"openapi"') and len(whole["answer"].encode()) <= 4096 + 2 and not by_path["/healthz"]["cut"]


def test_every_example_is_answered(worked, server):
    for result in worked:
        assert result["status"] == ("501" if result["path"].endswith("/unload") else "200"), result
        assert "server-timing: queue;dur=" in result["head"] and result["answer"] is not None
    tried = {(result["path"], result["scheme"]) for result in worked}
    for scheme in server.get("/schemes").json()["schemes"]:
        assert (scheme["endpoints"][0], scheme["name"]) in tried
    assert {result["method"] for result in worked if result["path"] == "/encode"} == {"GET", "POST", "QUERY"}
    alibi, rows = server.get("/schemes/alibi").json(), {result["scheme"]: result["rows"] for result in worked if result["path"] == "/encode"}
    assert rows["alibi"] - rows[""] == len(alibi["parameters"]) + len(alibi["inputs"])


def test_commands_do_the_same(worked):
    seen = set()
    for result in worked:
        key = result["path"], result["method"]
        if key in seen or result["path"] == "/metrics" or re.search("octet-stream|safetensors|png", result["head"]):
            continue
        seen.add(key)
        out = subprocess.run(["sh", "-c", result["curl"] + " -sS"], capture_output=True, timeout=30).stdout.decode()
        same = [re.sub(r'"(?:step_)?seconds":(?:[\d.e-]+|\[[\d.e,-]*\])', "", text[:3000]) for text in (out, result["answer"])]  # experiments state their time
        assert same[0] == same[1], result["curl"]


def test_copy_puts_the_command_on_the_clipboard(docs, server):
    docs.driver.execute_cdp_cmd("Browser.grantPermissions", {"origin": server.url, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    docs.run("document.querySelector('[data-route=\"/version\"]').open = true")
    until(lambda: docs.all('[data-route="/version"] [data-action="copy"]'), what="the route")
    docs.click('[data-route="/version"] [data-action="copy"]')
    until(lambda: docs.text('[data-route="/version"] [role="status"]'), what="a word")
    copied = docs.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], e => arguments[0](String(e)))")
    assert copied == docs.text('[data-route="/version"] [data-curl]') == f"curl '{server.url}/version'"


def test_what_is_typed_is_what_runs(docs):
    docs.run("document.querySelector('[data-route=\"/encode\"]').open = true")
    until(lambda: docs.all('[data-route="/encode"] textarea'), what="the route")
    field = docs.find('[data-route="/encode"] textarea')
    field.clear()
    field.send_keys('{"scheme":"rop","len":2}')
    docs.click('[data-route="/encode"] [data-action="start"]')
    until(lambda: docs.all('[data-route="/encode"] [data-status]'), what="an answer")
    assert docs.attribute('[data-route="/encode"] [data-status]', "data-status") == "422" and 'nearest: \\"rope\\"' in docs.text('[data-route="/encode"] [data-answer="body"]')


def test_a_stored_file_is_changed_by_commands(docs, server):
    docs.run("document.querySelector('[data-route=\"/weights/{name}\"]').open = true")
    until(lambda: docs.all('[data-route="/weights/{name}"] pre'), what="the route")
    text = docs.text('[data-route="/weights/{name}"]')
    assert f"curl -T FILE.safetensors '{server.url}/weights/NAME'" in text and f"curl -X DELETE '{server.url}/weights/NAME'" in text


# ---- search -------------------------------------------------------------------------------------------------------------


def search(page, text):
    page.run("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', { bubbles: true }))", page.find("#parameters input"), text)
    return page.run("return [...document.querySelectorAll('#parameters [data-parameter]')].map(r => r.dataset.parameter)")


def test_search(docs, server):
    docs.find("#parameters input").send_keys("rotary_dim")
    assert docs.attribute("#parameters [data-parameter]", "data-parameter") == "rotary_dim"
    assert search(docs, "nothing-like-this") == []
    assert 0 < len(search(docs, "window seen left")) < 20
    assert "base" in search(docs, "底数") and "base" in search(docs, "rope_theta")
    search(docs, "x")
    docs.find("#parameters input").send_keys("\b")
    total = int(re.match(r"(\d+) of \1 ", docs.text("#parameters [data-found]"))[1])
    assert total > sum(len(scheme["parameters"]) for scheme in server.get("/schemes").json()["schemes"])


# ---- languages ----------------------------------------------------------------------------------------------------------

LOOSE = """const kept = 'code, pre, kbd, math, [translate=no], script, style, noscript';
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(kept)) found.push(walker.currentNode.data);
    return found;"""


def test_chinese_rows_and_marked_english(open_page, server):
    page = open_page("view=docs&lang=zh")
    page.run("for (const route of document.querySelectorAll('[data-route]')) route.open = true")
    until(lambda: page.run("return [...document.querySelectorAll('[data-route]')].every(r => r.children.length > 1)"), what="all routes")
    base = next(row for row in server.get("/schemes/rope").json()["parameters"] if row["name"] == "base")
    search(page, "rope_theta")
    assert base["label_zh"] in page.text('#parameters [data-parameter="base"]') and base["summary_zh"] in page.text('#parameters [data-parameter="base"]')
    assert [text for text in page.run(LOOSE) if re.search(r"[A-Za-z][\w'-]*\s+[A-Za-z]", text)] == []
    chinese = server.get("/openapi.json?lang=zh").json()
    for path in ("/encode", "/healthz"):
        operation = chinese["paths"][path].get("post") or chinese["paths"][path]["get"]
        assert operation["summary"] in page.text(f'[data-route="{path}"] summary')
    assert chinese["components"]["responses"]["422"]["description"] in page.text('[data-route="/encode"]')


def test_another_language_rewrites_the_texts_of_routes(open_page, server):
    """What is open stays open, and what was typed stays."""
    page = open_page("view=docs&lang=en")
    texts = {lang: server.get(f"/openapi.json?lang={lang}").json()["paths"]["/encode"]["post"]["summary"] for lang in ("en", "zh")}
    page.run("const route = document.querySelector('[data-route=\"/encode\"]'); route.open = true; window.kept = route")
    until(lambda: page.run("return window.kept.children.length > 1"), what="the route")
    assert texts["en"] in page.text('[data-route="/encode"] summary')
    for lang, html in (("zh", "zh-CN"), ("en", "en")):
        page.click("[data-action=lang]")
        until(lambda: page.run("return document.documentElement.lang") == html, what=lang)
        assert texts[lang] in page.text('[data-route="/encode"] summary')
        assert page.run("return window.kept.isConnected && window.kept.open")


def test_docs_is_also_at_its_path(open_page, server):
    page = open_page()
    page.driver.get(server.url + "/docs")
    page.settle()
    assert page.attribute("nav [aria-current=page]", "data-view") == "docs" and page.all('[data-route="/encode"]')
    tags = [(item.get("post") or item["get"])["tags"][0] for item in server.get("/openapi.json").json()["paths"].values()]
    assert page.run("return [...document.querySelectorAll('[data-tag]')].map(s => s.dataset.tag)") == list(dict.fromkeys(tags))
    assert all(page.run("return [...document.querySelectorAll('[data-tag] h2')].map(h => h.textContent.trim())"))
    assert [text for text in page.run(LOOSE) if re.search("[\u4e00-\u9fff]", text)] == []


# ---- tokens -------------------------------------------------------------------------------------------------------------


def test_with_a_token(open_page):
    """The page sends it with all that it runs, and shows it nowhere."""
    weights = safetensors_reader.dumps({"table": np.zeros((2, 2), "f4")}, {})
    with token_server(LINES) as guarded:
        assert guarded.request("PUT", "/weights/t5-small", weights, bearer(WRITER)).status == 201
        page = open_page("view=docs", guarded.url, settle=False)
        page.give(READER)
        until(lambda: page.all("[data-route]"), what="the routes")
        for path in ("/attention", "/schemes/{name}", "/weights/{name}"):
            for result in work(page, path):
                assert result["status"] == "200" and "$TOKEN" in result["curl"], result
        assert READER not in page.run("return document.documentElement.outerHTML + location.href + JSON.stringify(localStorage)") + guarded.stderr_text()
