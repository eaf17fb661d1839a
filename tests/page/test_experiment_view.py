"""The view `experiment`: its curves and results against those of the same request, when it trains and when it stops, what is refused."""
import json

import pytest

from browser import fragment, until
from conftest import start_server
from connection import metric
from lines import Lines

EXAMPLE = {"task": "local", "steps": 120, "train_len": 32, "eval_len": 96, "seed": 0, "configs": [{"scheme": "alibi"}, {"scheme": "sinusoidal"}]}


def events(server, body):
    return [json.loads(line) for line in server.post("/experiments", body).body.splitlines()]


def results(page):
    """{data-config: {data-what: value}} of the table."""
    rows = page.run("return [...document.querySelectorAll('tr[data-config]')].map(r => [r.dataset.config, [...r.querySelectorAll('data')].map(d => [d.dataset.what, Number(d.value)])])")
    return {slot: dict(values) for slot, values in rows}


def training(server):
    """Experiments that run now."""
    return metric(server, "posenc_experiments")


ASKED = """const plain = window.fetch; window.asked = [];
window.fetch = (url, options) => { if (String(url).startsWith('/experiments')) asked.push([options.method, String(url), options.headers.Accept]); return plain(url, options); };"""


def test_events_are_asked_for_by_get_until_the_address_is_too_long(open_page):
    page = open_page("view=gallery&lang=en")
    page.run(ASKED)
    page.hash(fragment("experiment", {"scheme": "none"}, steps=1, train=16, eval=16, lang="en"))
    until(lambda: page.state() == "ready", what="the picture")
    page.hash(fragment("experiment", {"scheme": "alibi", "slopes": [0.1234567890123] * 300}, steps=1, train=16, eval=16, lang="en"))
    until(lambda: page.state() == "refused", what="the answer to what is too long")
    (get, url, accept), (post, path, again) = page.run("return asked")
    assert (get, post, path, accept, again) == ("GET", "POST", "/experiments", "text/event-stream", "text/event-stream") and "train_len=16" in url


def test_opened_by_name_it_stands_finished(open_page, server):
    page = open_page("view=experiment")
    assert page.state("a") == "ready" and page.run("return [...document.querySelectorAll('figure[data-figure]')].map((one) => one.dataset.output)") == ["loss", "excess"]
    expected = events(server, EXAMPLE)
    done = expected[-1]
    assert results(page) == {slot: {key: one[key] for key in ("inside", "outside", "rise")} for slot, one in zip("ab", done["results"])}
    loss = Lines(page)
    assert set(loss.legend) == {f"{slot}:{kind}" for slot in "ab" for kind in ("loss", "excess")} and loss.x_range == [0, 120]
    for run, slot in enumerate("ab"):
        points = [(event["step"], event["loss"]) for event in expected if event["event"] == "progress" and event["run"] == run]
        assert len(loss.missing(f"{slot}:loss", points, reach=3)) <= 1, slot  # where the other line may lie above
    page.run("document.querySelectorAll('figure details[data-table]')[1].open = true")
    page.settle()
    cells = page.run("return [...document.querySelectorAll('figure ~ figure details[data-table] tbody tr')].map(r => [...r.cells].map(c => c.textContent.replace('\\u2212', '-')))")
    for i, (_, *values) in enumerate(cells):
        assert [float(value) for value in values] == pytest.approx([done["tensors"][f"excess.{run}"]["data"][i] for run in (0, 1)], rel=1e-6)


def test_a_link_is_trained_and_a_change_waits_for_start(open_page, server):
    rope = {"scheme": "rope", "head_dim": 64, "eval": [{"scaling": {"type": "linear", "factor": 2}}]}
    page = open_page(fragment("experiment", rope, task="lag", steps=20, train=16, eval=48, seed=3))
    done = events(server, {"task": "lag", "steps": 20, "train_len": 16, "eval_len": 48, "seed": 3, "configs": [{k: v for k, v in rope.items() if k != "head_dim"}]})[-1]
    rises = page.run("return [...document.querySelectorAll('tr[data-config] [data-what=rise]')].map(d => Number(d.value))")
    assert rises == [one["rise"] for one in done["results"]]
    assert [page.run("return document.querySelector(arguments[0]).value", f"[data-field={key}]") for key in ("steps", "train", "eval", "seed")] == ["20", "16", "48", "3"]
    assert '"train_len": 16' in page.copied("curl") and "/experiments" in page.copied("python")
    page.run("const n = document.querySelector('[data-field=seed]'); n.value = 4; n.dispatchEvent(new Event('input', { bubbles: true }))")
    page.settle()
    assert page.state() == "stale" and "seed=4" in page.run("return location.hash")
    page.do("[data-action=start]")
    assert page.state() == "ready" and rises != page.run("return [...document.querySelectorAll('tr[data-config] [data-what=rise]')].map(d => Number(d.value))")


def test_the_result_is_saved_as_served(open_page, server):
    page = open_page(fragment("experiment", {"scheme": "none"}, steps=2, train=16, eval=16))
    page.run("""window.saved = null; const plain = URL.createObjectURL;
    URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return plain(blob); };
    HTMLAnchorElement.prototype.click = () => {};""")
    page.click("[data-action=save]")
    saved = json.loads(until(lambda: page.run("return window.saved"), what="the file"))
    assert saved["event"] == "done" and saved["results"] == events(server, {"steps": 2, "train_len": 16, "eval_len": 16, "configs": [{"scheme": "none"}]})[-1]["results"]


def test_stop_and_leaving_end_the_work(open_page, server):
    page = open_page(fragment("experiment", {"scheme": "rope"}, steps=2000, train=512, eval=1024), settle=False)
    until(lambda: page.all("figure [data-series='a:loss']"), what="the first curve")
    assert training(server) == 1 and page.run("return document.querySelector('[data-action=start]').disabled")
    page.do("[data-action=stop]")
    assert page.state() == "cancelled" and page.all("figure [data-series='a:loss']")
    until(lambda: training(server) == 0, what="the end of the work")
    page.click("[data-action=start]")
    until(lambda: training(server) == 1, what="another")
    page.hash("view=gallery")
    until(lambda: training(server) == 0, what="the end of the other")


def test_what_is_refused_is_said_where_it_stands(open_page):
    page = open_page(fragment("experiment", {"scheme": "alibi"}, steps=5000, lang="zh"))
    assert page.state() == "refused" and "5000" in page.notice("refused")
    assert page.attribute("[data-field=steps]", "aria-invalid") == "true" and page.focused_field() == "steps"
    assert "experiment." not in page.run("return document.body.innerText")
    page.hash(fragment("experiment", {"scheme": "alibi"}, b=json.dumps({"scheme": "binary"}), lang="en"))
    page.comes(lambda: "binary" in (page.notice("refused") or ""), "the other refusal")
    assert page.attribute('[data-field="scheme"][data-config="b"]', "aria-invalid") == "true" and page.attribute("[data-field=steps]", "aria-invalid") == "false"


def test_a_server_without_experiments_names_the_flag(open_page):
    with start_server("--experiments", "0") as other:
        page = open_page("view=experiment", url=other.url)
        assert page.state() == "refused" and "--experiments" in page.notice("refused")
