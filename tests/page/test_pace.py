"""How often the page asks while a slider moves, and how soon the server's work ends when nobody wants it any more. These tests measure,
so they run alone."""
import contextlib
import json
import pathlib
import re
import statistics
import time
import urllib.parse

import pytest

from browser import fragment, until
from conftest import SANITIZED, Stopwatch
from rough_proxy import rough_proxy
from connection import metric

pytestmark = pytest.mark.fresh  # what a page has done before would be measured

ROPE = {"scheme": "rope", "head_dim": 64, "len": 256}
TABLE = fragment("table", ROPE)
SLOW = {"scheme": "floater", "dim": 512, "len": 2500, "seed": 1}  # 2 ms a row, one after the other


def pids_of_browser(driver):
    """The processes below chromedriver's."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
    found = [driver.service.process.pid]
    for parent in found:
        found += [pid for pid, of in parents.items() if of == parent]
    return found


@pytest.fixture
def rough(server):
    with rough_proxy(server) as proxy:
        yield proxy


# ---- asking while dragging ------------------------------------------------------------------------------------------------


MOVE = """
const [name, milliseconds, lastShare, done] = arguments;
const slider = document.querySelector(`[data-slider="${name}"]`);
performance.clearResourceTimings();
const drawn = [], begin = performance.now();
let stall = 0, before = begin;
addEventListener('posenc:drawn', () => drawn.push(performance.now() - begin));
slider.focus();
const low = Number(slider.min), high = Number(slider.max), step = Number(slider.step) || (high - low) / 1000;
let moves = 0;
const timer = setInterval(() => {
  moves += 1;
  stall = Math.max(stall, performance.now() - before);
  before = performance.now();
  const isLast = performance.now() - begin >= milliseconds;
  const share = isLast ? lastShare : 0.2 + 0.6 * Math.abs((moves % 120) / 60 - 1);
  slider.value = low + Math.round((high - low) * share / step) * step;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  if (!isLast) return;
  clearInterval(timer);
  slider.dispatchEvent(new Event('change', { bubbles: true }));
  done([moves, drawn, performance.now() - begin, stall, performance.getEntriesByType('resource').map((one) => one.duration)]);
}, 1000 / 60);
"""


TRIP, STALL = 130, 50  # milliseconds: of an answer, of which the proxy takes 100, and between two moves, where the machine has no other work


@pytest.mark.parametrize("view, config, field, pictures", [
    ("table", ROPE, "base", 10),
    ("table", {"scheme": "alibi", "num_heads": 8, "len": 64}, "len", 10),
    pytest.param("curves", {"scheme": "sinusoidal", "dim": 64, "len": 64}, "base", 10, marks=pytest.mark.slow),
    ("bias", {"scheme": "alibi", "num_heads": 4, "len": 32}, "len", 4),  # a map a head
    ("attention", {"scheme": "rope", "head_dim": 64}, "base", 10),
])
def test_a_slider_moved_60_times_a_second(open_page, rough, view, config, field, pictures):
    page = open_page(fragment(view, config), rough.url)
    rough.delay = 0.1
    rough.clear()
    moves, drawn, took, stall, trips = page.driver.execute_async_script(MOVE, field, 2000, 0.85)
    asked = rough.take("asked")
    assert len(asked) <= 15 * took / 1000 + 1, f"{len(asked)} requests in {took} ms"
    # Where the machine has other work the slider moves less often and answers come later, and the page draws as much less often.
    slack = max(1, took * 60 / 1000 / moves, statistics.mean(trips) / TRIP)
    most = max(1, stall / STALL, max(trips) / TRIP)
    gaps = [b - a for a, b in zip([0, *drawn], drawn)]
    page.settle()
    assert len(drawn) >= pictures / slack and max(gaps) < 500 * most, f"{moves} moves and {len(drawn)} pictures in {took} ms; between them {gaps}"
    last = json.loads(urllib.parse.unquote(re.search(r"[#&]a=([^&]*)", page.run("return location.href"))[1]))[field]
    assert last != config.get(field)
    assert str(last) in page.copied("json")
    windows = [urllib.parse.unquote(path) for _, path in rough.take("asked") if "data=false" not in path and '"data":false' not in path]
    assert f"{field}={last}" in windows[-1] or f'"{field}":{last}' in windows[-1]
    assert page.state() == "ready"


# ---- aborting -------------------------------------------------------------------------------------------------------------


def quiet_within(page, server, seconds, what):
    watch = Stopwatch(server, *pids_of_browser(page.driver))
    until(lambda: metric(server, "posenc_busy_workers") == 0 and metric(server, "posenc_queued_jobs") == 0, what=what)
    assert watch.seconds() < seconds * (10 if SANITIZED else 1), what


def busy_with(page, server):
    page.hash(fragment("table", SLOW))
    until(lambda: metric(server, "posenc_busy_workers") > 0, what="work")
    until(lambda: page.notice("loading"), what="the notice")


ABORT_SECONDS = 0.25  # 100 ms, and the time of looking


def test_the_work_of_a_cancelled_picture_ends(open_page, server):
    page = open_page(TABLE)
    busy_with(page, server)
    page.click('figure [data-action="cancel"]')
    quiet_within(page, server, ABORT_SECONDS, "the end of the work")


def test_the_work_of_a_view_that_is_left_ends(open_page, server):
    page = open_page(TABLE)
    busy_with(page, server)
    page.click('a[data-view="docs"]')
    quiet_within(page, server, ABORT_SECONDS, "the end of the work")


def test_a_picture_that_is_overtaken_for_a_second_is_aborted(open_page, server):
    page = open_page(TABLE)
    busy_with(page, server)
    begin, watch = time.monotonic(), Stopwatch(server, *pids_of_browser(page.driver))
    page.hash(TABLE)
    page.wait_state("ready")
    page.settle()
    assert 1 <= time.monotonic() - begin and watch.seconds() < 3 * (10 if SANITIZED else 1)
    quiet_within(page, server, ABORT_SECONDS, "the end of the work")
