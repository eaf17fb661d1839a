"""The view `server`: what it shows against /metrics and /limits asked by ourselves, and when it asks."""
import contextlib
import re
import time

import pytest

from browser import until
from test_states import dying


def metrics(server):
    """{name with its labels: text of the value}."""
    lines = [line for line in server.get("/metrics").body.decode().splitlines() if line and not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines)


def looks(server):
    return int(metrics(server).get('posenc_requests_total{route="/metrics",scheme="",status="200"}', 0))


def shown(page):
    """{data-what: value} of the facts, texts as served."""
    return dict(page.run("return [...document.querySelectorAll('figure[data-figure=server] dl data')].map(d => [d.dataset.what, d.value])"))


@pytest.fixture
def view(quick, open_page):
    page = open_page("view=server", settle=False)
    page.wait_state("ready", "none")
    return page


# ---- numbers ------------------------------------------------------------------------------------------------------------


def facts_are_those_of_metrics(view, server):
    before = metrics(server)
    stage = "return document.querySelector('[data-what=posenc_sent_bytes_total]').value"
    first = view.run(stage)
    until(lambda: view.run(stage) != first, what="the next look")
    facts, after = shown(view), metrics(server)
    assert {"posenc_waiting_requests", "posenc_in_flight_requests", "posenc_busy_workers", "posenc_workers", "process_resident_memory_bytes", "posenc_sent_bytes_total",
            "posenc_cache_hits_total"} <= set(facts)
    for name in facts:
        if name not in after:  # refusals and what was cancelled, by reason: tests beside this one may have caused some
            assert facts[name] in [value for sample, value in after.items() if sample.startswith(name + "{")], name
        elif name.endswith("_total"):
            assert float(before[name]) <= float(facts[name]) <= float(after[name]), name
    assert facts["posenc_workers"] == after["posenc_workers"]


BOUNDS = r'posenc_request_seconds_bucket\{route="%s",le="([^"]+)"\}'


def bucket(values, route, share):
    """The bound of the first bucket with at least this share of all."""
    found = [(re.fullmatch(BOUNDS % re.escape(route), name), int(value)) for name, value in values.items() if "_bucket{" in name]
    bounds = [(match[1], value) for match, value in found if match]
    return next(le for le, value in bounds if value >= share * bounds[-1][1])


def latencies_are_the_buckets_in_which_they_lie(view, server):
    for n in range(1, 9):
        server.post("/encode", {"scheme": "sinusoidal", "len": 1000 * n, "dim": 64})
    row = "figure [data-route='/encode']"
    values = metrics(server)
    count = values['posenc_request_seconds_count{route="/encode"}']
    until(lambda: view.attribute(f"{row} [data-what=posenc_request_seconds_count]", "value") == count, what="the count")
    quantiles = view.run("return [...document.querySelectorAll(arguments[0])].map(d => Number(d.value))", f"{row} [data-what=le]")
    assert quantiles == [float(bucket(values, "/encode", share)) for share in (0.5, 0.99)]
    assert all(text.startswith(("≤ ", "> ")) and text.endswith((" ms", " s")) for text in view.run("return [...document.querySelectorAll(arguments[0])].map(d => d.textContent)", f"{row} [data-what=le]"))
    statuses = view.run("return [...document.querySelectorAll(arguments[0])].map(d => d.value)", f"{row} [data-what=posenc_requests_total]")
    served = [value for name, value in metrics(server).items() if name.startswith('posenc_requests_total{route="/encode"')]
    assert sorted(statuses) == sorted(served)


def requests_of_no_route_have_a_name(view, server):
    assert server.get("/nothing").status == 404
    head = "return document.querySelector('figure [data-route=\"\"] th')?.textContent"
    until(lambda: view.run(head), what="the row")
    assert view.run(head) == "other"


def refusals_are_named(view, server):
    assert server.post("/encode", b"x" * 100, {"Content-Length": "100", "Transfer-Encoding": "nonsense"}).status >= 400
    names = {name for name, value in metrics(server).items() if name.startswith(("posenc_rejected_total", "posenc_cancelled_total")) and value != "0"}
    reasons = {re.search(r'"(\w+)"', name)[1] for name in names}
    stage = "return [...document.querySelectorAll('figure dl:last-of-type dt code')].map(c => c.textContent)"
    until(lambda: reasons <= set(view.run(stage)), what=f"{reasons} among what is shown")


def the_data_table_has_everything(view, server):
    view.run("document.querySelector('figure details[data-table]').open = true")
    until(lambda: view.all("figure details[data-table] tbody tr"), what="the table")
    rows = view.run("return [...document.querySelectorAll('figure details[data-table] tbody tr')].map(r => r.cells[0].textContent)")
    families = {re.match(r"\w+", name)[0] for name in metrics(server)}
    assert {name for name in families if not name.endswith("_bucket")} <= set(rows)


def limits_with_their_flags(view, server):
    limits = server.get("/limits").json()
    del limits["routes"]
    rows = view.run("return [...document.querySelectorAll('.server-limits tbody tr')].map(r => [r.querySelector('data').dataset.what, r.querySelector('data').value, r.cells[2].textContent])")
    assert {name: value for name, value, _ in rows} == {name: str(value).lower() for name, value in limits.items()}
    flags = {name: flag for name, _, flag in rows}
    assert flags["max_body"] == "--max-body" and flags["max_work"] == "--max-work"
    assert view.run("return [...document.querySelectorAll('.server-limits data')].find(d => d.dataset.what === 'max_body').textContent") == "256.0 MiB"


def version_and_readiness(view, server):
    text = view.text("figure [data-ready=true]").strip(), view.text(".server-head")
    assert text[0] and all(server.get("/version").json()[key] in text[1] for key in ("version", "commit", "isa"))


CHECKS = (facts_are_those_of_metrics, latencies_are_the_buckets_in_which_they_lie, requests_of_no_route_have_a_name, refusals_are_named,
          the_data_table_has_everything, limits_with_their_flags, version_and_readiness)


def test_what_it_shows(view, server):
    for check in CHECKS:
        check(view, server)


# ---- when it asks -------------------------------------------------------------------------------------------------------


# When the page has asked for /metrics, and had the answer, in ms.
LOOKS = "return performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/metrics')).map((entry) => [entry.startTime, entry.responseEnd])"


def asks_every_two_seconds(page, quick):
    """Three looks more, each 2 s after the answer to the one before; the best of two gaps, as a machine may be busy."""
    before = len(page.run(LOOKS))
    looks = until(lambda: len(page.run(LOOKS)) >= before + 3 and page.run(LOOKS)[before:], what="three looks")
    gaps = [quick * (b - a_end) / 1000 for (_, a_end), (b, _) in zip(looks, looks[1:])]
    assert 1.9 <= min(gaps) < 6, gaps


def asks_no_more(page, server, quick):
    """Neither by its own account nor by the server's, for as long as two looks take."""
    time.sleep(0.3)  # what was under way
    before, counted = len(page.run(LOOKS)), looks(server)
    time.sleep(2 * 2 / quick)
    assert len(page.run(LOOKS)) == before and looks(server) == counted + 1, "ours alone"


def test_it_asks_every_two_seconds_until_it_is_stopped(view, server, quick):
    asks_every_two_seconds(view, quick)
    view.click('figure [data-action="stop"]')
    asks_no_more(view, server, quick)
    view.click('figure [data-action="play"]')
    asks_every_two_seconds(view, quick)


def test_it_stops_where_nobody_looks(view, server, quick):
    view.run("Object.defineProperty(document, 'hidden', { value: true, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))")
    asks_no_more(view, server, quick)
    view.run("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    asks_every_two_seconds(view, quick)
    view.go("view=docs")
    asks_no_more(view, server, quick)


def test_charts_follow(view):
    charts = "return [...document.querySelectorAll('figure [data-series]')].map(s => s.dataset.series)"
    until(lambda: {"none:posenc_waiting_requests", "none:posenc_queue_seconds"} <= set(view.run(charts)), what="charts")
    canvases = view.run("return [...document.querySelectorAll('figure canvas[data-lines]')].map(c => [c.dataset.xMin, c.dataset.xMax, c.dataset.yMin])")
    assert canvases == [["-10", "0", "0"]] * 2  # not a minute of which nothing is known


def test_a_server_that_comes_back_is_watched_again(quick, open_page):
    """Another process: what it counts is not compared with what the first one had counted."""
    with contextlib.ExitStack() as stack, dying(stack) as (proxy, die, come_back):
        page = open_page("view=server", proxy.url, settle=False)
        page.wait_state("ready", "none")
        die()
        page.wait_state("away", "none")
        come_back()
        page.wait_state("ready", "none")
        assert "-" not in "".join(page.run("return [...document.querySelectorAll('.fact-change')].map(e => e.textContent)"))
