"""How often the page asks while a slider moves, and how soon the server's work ends when nobody wants it any more. These tests measure,
so they run alone."""
import json
import os
import re
import time
import urllib.parse

import pytest

from browser import fragment, until
from conftest import SANITIZED
from rough_proxy import rough_proxy
from test_server_life import metric

pytestmark = pytest.mark.fresh  # what a page has done before would be measured

ROPE = {"scheme": "rope", "head_dim": 64, "len": 256}
TABLE = fragment("table", ROPE)
SLOW = {"scheme": "floater", "dim": 512, "len": 2500, "seed": 1}  # 2 ms a row, one after the other


def noise():
    """How much longer things take here than on a machine with nothing else to do."""
    return max(10 if SANITIZED else 1, os.getloadavg()[0] / os.cpu_count())


@pytest.fixture
def rough(server):
    with rough_proxy(server) as proxy:
        yield proxy


# ---- asking while dragging ------------------------------------------------------------------------------------------------


MOVE = """
const [name, milliseconds, lastShare, done] = arguments;
const slider = document.querySelector(`[data-slider="${name}"]`);
const drawn = [], begin = performance.now();
addEventListener('posenc:drawn', () => drawn.push(performance.now() - begin));
slider.focus();
const low = Number(slider.min), high = Number(slider.max), step = Number(slider.step) || (high - low) / 1000;
let moves = 0;
const timer = setInterval(() => {
  moves += 1;
  const isLast = performance.now() - begin >= milliseconds;
  const share = isLast ? lastShare : 0.2 + 0.6 * Math.abs((moves % 120) / 60 - 1);
  slider.value = low + Math.round((high - low) * share / step) * step;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  if (!isLast) return;
  clearInterval(timer);
  slider.dispatchEvent(new Event('change', { bubbles: true }));
  done([moves, drawn, performance.now() - begin]);
}, 1000 / 60);
"""


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
    for last_share in (0.85, 0.9, 0.95):  # a machine with other work may need more than one try; the page asks no value twice
        rough.clear()
        moves, drawn, took = page.driver.execute_async_script(MOVE, field, 2000, last_share)
        asked = rough.take("asked")
        assert len(asked) <= 15 * took / 1000 + 1, f"{len(asked)} requests in {took} ms"
        slack = max(1, took * 60 / 1000 / moves)  # such a machine moves the slider less often, and draws less often
        gaps = [b - a for a, b in zip([0, *drawn], drawn)]
        page.settle()
        if slack < 4 and len(drawn) >= pictures / slack and max(gaps) < 500 * slack:
            break
    else:
        raise AssertionError(f"{moves} moves and {len(drawn)} pictures in {took} ms; between them {gaps}")
    last = json.loads(urllib.parse.unquote(re.search(r"[#&]a=([^&]*)", page.run("return location.href"))[1]))[field]
    assert last != config.get(field)
    assert str(last) in page.copied("json")
    windows = [urllib.parse.unquote(path) for _, path in rough.take("asked") if "data=false" not in path and '"data":false' not in path]
    assert f"{field}={last}" in windows[-1] or f'"{field}":{last}' in windows[-1]
    assert page.state() == "ready"


# ---- aborting -------------------------------------------------------------------------------------------------------------


def quiet_within(server, seconds, what):
    begin = time.monotonic()
    until(lambda: metric(server, "posenc_busy_workers") == 0 and metric(server, "posenc_queued_jobs") == 0, 10, what)
    assert time.monotonic() - begin < seconds * noise(), what


def busy_with(page, server):
    page.hash(fragment("table", SLOW))
    until(lambda: metric(server, "posenc_busy_workers") > 0, what="work")
    until(lambda: page.notice("loading"), what="the notice")


ABORT_SECONDS = 0.25  # 100 ms, and the time of looking


def test_the_work_of_a_cancelled_picture_ends(open_page, server):
    page = open_page(TABLE)
    busy_with(page, server)
    page.click('figure [data-action="cancel"]')
    quiet_within(server, ABORT_SECONDS, "the end of the work")


def test_the_work_of_a_view_that_is_left_ends(open_page, server):
    page = open_page(TABLE)
    busy_with(page, server)
    page.click('a[data-view="docs"]')
    quiet_within(server, ABORT_SECONDS, "the end of the work")


def test_a_picture_that_is_overtaken_for_a_second_is_aborted(open_page, server):
    page = open_page(TABLE)
    busy_with(page, server)
    begin = time.monotonic()
    page.hash(TABLE)
    page.wait_state("ready")
    page.settle()
    assert 1 <= time.monotonic() - begin < 3 * noise()
    quiet_within(server, ABORT_SECONDS, "the end of the work")
