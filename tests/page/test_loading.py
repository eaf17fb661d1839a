"""What is loaded, and when: budgets as the browser counts them, nothing off origin, files kept by their build."""
import pytest

from browser import fragment
from conftest import ROOT, start_server
from rough_proxy import rough_proxy
from test_every_view import loaded, shifts

pytestmark = pytest.mark.fresh  # what loading does is what is tested

KIB = 1024
def own_files(entries):
    return {name: sizes for name, sizes in entries.items() if name == "/" or name.startswith("/ui/")}


@pytest.fixture
def no_cache(driver):
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.clearBrowserCache", {})


def test_the_first_load(open_page, no_cache):
    page = open_page()
    files = own_files(loaded(page))
    assert 5 < len(files) <= 40, sorted(files)
    assert all(body > 0 for body, _ in files.values()), files
    assert sum(body for body, _ in files.values()) <= 60 * KIB, sorted(files.items(), key=lambda item: -item[1][0])


def test_all_that_the_first_picture_needs(open_page, no_cache):
    """With the catalogue; what the parameters mean is asked for where there is a form."""
    page = open_page()
    needed = {name: body for name, (body, _) in loaded(page).items() if name.startswith(("/ui/", "/schemes", "/presets", "/cmaps", "/limits")) or name == "/"}
    assert {"/schemes?view=page", "/presets"} <= set(needed) and "/schemes" not in needed
    assert sum(needed.values()) <= 108 * KIB, sorted(needed.items(), key=lambda item: -item[1])
    page.go(fragment("table", {"scheme": "rope", "len": 16}))
    assert "/schemes" in loaded(page)
    hint = page.run("return document.getElementById(document.querySelector('[data-card=a] [data-field=base]').getAttribute('aria-describedby')).textContent")
    assert "wavelength" in hint.lower() and len(hint) > 30, hint


def test_a_second_visit_is_told_that_the_catalogue_is_the_same(open_page, no_cache):
    open_page("view=table")
    page = open_page("view=table")
    sizes = {name: sizes for name, sizes in loaded(page).items() if name in ("/schemes?view=page", "/presets", "/cmaps")}
    assert len(sizes) == 3 and all(0 < wire < 1000 for _, wire in sizes.values()), sizes  # heads of 304


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width, height", [(390, 844), (1440, 900)])
def test_nothing_jumps_while_the_start_is_loaded(open_page, narrow, width, height, lang):
    narrow(width, height)
    page = open_page(f"lang={lang}")
    before = shifts(page)
    assert sum(value for _, value, _ in before) < 0.05, before


def test_views_are_loaded_when_they_are_opened(open_page, no_cache):
    page = open_page()
    first = own_files(loaded(page))
    assert not any(name.endswith(("/views/table/view.js", "/views/curves/view.js", "/heatmap.js", "/text/zh.json")) for name in first), sorted(first)
    page.hash(fragment("table", {"scheme": "rope", "len": 16}))
    page.comes(lambda: any(name.endswith("/views/table/view.js") for name in loaded(page)), "the view's module")
    assert any(name.endswith("/heatmap.js") for name in loaded(page)) and not any(name.endswith("/views/rotate/view.js") for name in loaded(page))


def test_files_are_kept_between_visits(open_page, no_cache):
    page = open_page("view=table")
    build = {name for name in own_files(loaded(page)) if name != "/"}
    page.open("view=table")
    again = own_files(loaded(page))
    assert {name for name in again if name != "/"} == build
    assert all(wire == 0 for name, (_, wire) in again.items() if name != "/"), "asked again although immutable"
    assert again["/"][1] > 0, "the page itself is asked for each time"


def test_nothing_is_kept_but_settings(open_page):
    page = open_page(fragment("table", {"scheme": "rope", "len": 16}))
    page.do('[data-action="theme"]')
    stored = page.run("return [Object.keys(localStorage), Object.keys(sessionStorage), document.cookie]")
    try:
        assert len(stored[0]) <= 2 and all("theme" in key or "lang" in key for key in stored[0]), stored
        assert stored[1] == [] and stored[2] == ""
    finally:
        page.run("localStorage.clear()")


def test_an_open_page_survives_a_newer_server(open_page, server, driver):
    """A view not loaded before is gone with its build: the page says so, and what it offers leads on."""
    with rough_proxy(server) as proxy, start_server("--ui-dir", str(ROOT / "server/page")) as newer:
        page = open_page(fragment("table", {"scheme": "rope", "len": 16}), proxy.url)
        proxy.back = newer  # another build
        page.click('nav [data-view="curves"]')
        page.comes(lambda: page.all("[data-notice=view]"), "a notice")
        driver.get_log("browser")  # the browser tells of the 404
        page.click("[data-notice=view] a, [data-notice=view] button")
        page.comes(lambda: page.all('figure[data-figure="curves"][data-state="ready"]'), "the view of the newer page")
        assert "/ui/dev" in page.attribute('meta[name="posenc-ui"]', "content")
        assert page.field("len").get_attribute("value") == "16", "with the configurations that it had"
