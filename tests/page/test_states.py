"""The states of a figure: of a server that dies or wants a token, and behind a proxy that is slow or refuses. That a full server refuses so
is tested in tests/http."""
import contextlib
import re
import time

import pytest

from browser import fragment, until
from conftest import start_server
from rough_proxy import rough_proxy
from token_files import LINES, READER, token_server

pytestmark = pytest.mark.fresh  # what loading does is what is tested

ROPE = {"scheme": "rope", "head_dim": 64, "len": 256}
TABLE = fragment("table", ROPE)
CURVES = fragment("curves", {"scheme": "sinusoidal", "dim": 64, "len": 64})


@pytest.fixture
def rough(server):
    with rough_proxy(server) as proxy:
        yield proxy


# ---- loading, ready, stale, cancelled -----------------------------------------------------------------------------------


PROGRESS = "const p = document.querySelector('figure progress'); return p && p.max > 1 && p.value > 0 && p.value < p.max"


def test_a_first_picture_that_takes_long_shows_its_bytes_and_can_be_cancelled(open_page, rough):
    rough.rate = 20000
    page = open_page(TABLE, rough.url, settle=False)
    until(lambda: page.notice("loading"), what="the notice")
    assert page.state() == "loading"
    until(lambda: page.run(PROGRESS), what="progress")
    assert re.search(r"\d.* of \d", page.notice("loading"))
    page.click('figure [data-action="cancel"]')
    page.comes(lambda: rough.take("left"), "a closed connection")
    assert page.state() == "cancelled" and page.notice("cancelled")
    rough.rate = None
    page.click('figure [data-notice="cancelled"] [data-action="retry"]')
    page.wait_state("ready")
    assert not page.all("figure [data-notice]")


def test_progress_is_shown_after_300_ms_and_the_last_picture_stays(open_page, rough):
    page = open_page(CURVES, rough.url)
    rough.delay = 2
    page.run("""window.seen = [];
        const figure = document.querySelector('figure');
        const start = performance.now();
        const watch = () => {
          seen.push([performance.now() - start, figure.dataset.state, Boolean(figure.querySelector('[data-notice=loading]'))]);
          if (performance.now() - start < 1200) setTimeout(watch, 20);
        };
        location.hash = arguments[0];
        setTimeout(watch);""", fragment("curves", {"scheme": "sinusoidal", "dim": 64, "len": 65}))
    opacity = "return getComputedStyle(document.querySelector('figure .stage')).opacity"
    until(lambda: float(page.run(opacity)) < 0.9, what="a dimmed picture")
    time.sleep(1)
    seen = page.run("return seen")
    assert {state for at, state, _ in seen if 100 < at < 1200} == {"stale"}
    assert not any(shown for at, _, shown in seen if at < 250) and all(shown for at, _, shown in seen if at > 500)
    rough.delay = 0
    page.settle()
    assert page.state() == "ready"
    assert page.run("return performance.getEntriesByName('posenc:first-picture').length") == 1


def test_a_choice_taken_back_while_its_picture_comes_is_the_one_shown(open_page, rough):
    """The picture on the way is not the newest wish, though what was shown when it was asked for is."""
    page = open_page(fragment("table", {"scheme": "rope", "head_dim": 512, "len": 4000}), rough.url)
    reduced = "return document.querySelector('figure canvas[tabindex]').dataset.reduce"
    assert page.run(reduced) == "mean"
    rough.delay = 0.5
    on_canvas = """document.querySelector('figure canvas[tabindex]').dispatchEvent(new KeyboardEvent('keydown', { key: 'r', bubbles: true }))"""
    page.run(on_canvas)
    time.sleep(0.2)
    page.run(f"for (let i = 0; i < 4; i++) {on_canvas}")
    page.settle()
    assert "red" not in page.address() and page.run(reduced) == "mean"


# ---- busy ---------------------------------------------------------------------------------------------------------------


def test_it_tries_five_times_and_stops(quick, open_page, rough):
    page = open_page(CURVES, rough.url)
    rough.refuse, seen = (429, 1), set()
    rough.clear()
    page.hash(fragment("curves", {"scheme": "sinusoidal", "dim": 64, "len": 66}))
    page.wait_state("busy")
    until(lambda: seen.add(page.attribute('figure [data-notice="busy"]', "data-seconds")) or None in seen, what="the end")
    assert "1" in seen and page.state() == "busy" and page.all('figure [data-action="retry"]')
    assert len(rough.take("asked")) == 6, "once, and five times more"
    time.sleep(3 / quick)
    assert len(rough.take("asked")) == 6
    rough.refuse = None
    page.click('figure [data-action="retry"]')
    page.wait_state("ready")


def test_countdown_goes_down_retry_and_stop(quick, open_page, rough):
    page = open_page(CURVES, rough.url)
    rough.refuse = (503, 40)
    page.hash(fragment("curves", {"scheme": "sinusoidal", "dim": 64, "len": 67}))
    seconds = lambda: page.attribute('figure [data-notice="busy"]', "data-seconds")
    until(lambda: seconds() == "40", what="40 s")
    until(lambda: seconds() == "38", what="38 s")
    rough.clear()
    page.hash(fragment("curves", {"scheme": "sinusoidal", "dim": 64, "len": 68}))
    time.sleep(0.3)
    assert rough.take("asked") == [], "a server that is busy is not asked for each change"
    page.click('figure [data-action="retry"]')
    until(lambda: rough.take("asked"), what="another try")
    assert "68" in rough.take("asked")[-1][1], "the newest"
    until(lambda: seconds() == "40", what="40 s anew")
    page.click('figure [data-action="stop"]')
    assert page.state() == "cancelled"
    rough.refuse = None
    page.click('figure [data-action="retry"]')
    page.wait_state("ready")


PICTURES = ["table", "attention", "properties", "diagnose", "experiment", *(pytest.param(view, marks=pytest.mark.slow) for view in (
    "curves", "rotate", "scaling", "bias", "distance", "multimodal", "extrapolate", "trajectory"))]


@pytest.mark.parametrize("view", PICTURES)
def test_each_view_waits_for_a_busy_server_and_says_what_is_refused(open_page, rough, view):
    config = "none" if view == "diagnose" else "a"
    rough.refuse = (503, "30")
    page = open_page(f"view={view}", rough.url, settle=False)
    page.wait_state("busy", config)
    rough.refuse = None
    page.click(f"figure[data-config={config}] [data-action=retry]")
    page.wait_state("ready", config)
    page.hash(fragment(view, {"scheme": "rop", "len": 8}))
    page.wait_state("refused", config)
    assert "rope" in page.text(f"figure[data-config={config}] [role=alert]")


# ---- away ---------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def dying(stack):
    """A proxy whose server is gone within the block, and another one after it."""
    first = start_server()
    proxy = stack.enter_context(rough_proxy(first.__enter__()))

    def die():
        proxy.back.process.kill()
        proxy.back.process.wait()

    yield proxy, die, lambda: setattr(proxy, "back", stack.enter_context(start_server()))
    with contextlib.suppress(AssertionError):
        first.__exit__(None, None, None)


def test_a_server_that_dies_and_comes_back(open_page):
    with contextlib.ExitStack() as stack, dying(stack) as (proxy, die, come_back):
        page = open_page(CURVES, proxy.url)
        die()
        page.hash(fragment("curves", {"scheme": "sinusoidal", "dim": 64, "len": 70}, {"scheme": "sinusoidal", "dim": 64, "len": 71}))
        for config in "ab":
            page.wait_state("away", config)
        assert page.notice("away")
        come_back()
        for config in "ab":
            page.wait_state("ready", config)


def test_a_view_opened_while_the_server_is_away_opens_once_it_is_back(open_page):
    with contextlib.ExitStack() as stack, dying(stack) as (proxy, die, come_back):
        page = open_page(CURVES, proxy.url)
        die()
        page.hash(fragment("scaling", ROPE))
        until(lambda: page.all(".notices [data-notice=view]"), what="the notice of a view that could not be loaded")
        come_back()
        page.wait_state("ready")
        assert page.text("h1") == "Scaling" and not page.all(".notices [data-notice=view]")


# ---- private ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [False, True])
def test_a_token_is_asked_for_and_stays_in_the_tab(open_page, keep):
    with token_server(LINES) as server:
        page = open_page(TABLE, server.url, settle=False)
        page.give("not-the-token-at-all")
        page.give(READER, keep)
        page.wait_state("ready")
        page.settle()
        stored = page.run("return JSON.stringify(sessionStorage)")
        assert (READER in stored) == keep
        places = page.run("return [location.href, document.cookie, JSON.stringify(localStorage), document.documentElement.outerHTML]")
        assert not any(READER in text for text in places)
        for kind in ("curl", "python", "json", "url"):
            assert READER not in page.copied(kind)
        assert "$TOKEN" in page.copied("curl") and 'os.environ["TOKEN"]' in page.copied("python")
        page.driver.refresh()
        if keep:
            page.wait_state("ready")
        else:
            until(lambda: page.all('dialog[open] [data-field="token"]'), what="the dialog again")
