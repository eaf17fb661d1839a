"""Every view by its name alone, on one visit, since drawing a view takes longer than looking at it: what it loads, that nothing jumps, both
languages and themes, widths, names, sizes, and no violation that axe-core finds."""
import pytest

from browser import until
from looks import CONTRAST, NUMBERS, SMALL, WIDE, speaks, violations
from test_frame import ALONE, LISTED

VIEWS = [*LISTED, "story"]  # of stories the navigation has each by its name

ENTRIES = "return [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map((e) => [e.name, e.encodedBodySize, e.transferSize])"


def loaded(page):
    """{address below the server: (bytes as sent, bytes on the wire)}"""
    found = {}
    for name, body, wire in page.run(ENTRIES):
        assert name.startswith(page.url + "/"), f"{name} is elsewhere"
        found[name[len(page.url):].split("#")[0]] = (body, wire)
    return found


# All that have moved things since the page was opened: [when, how much, what].
SHIFTS = """const done = arguments[0];
new PerformanceObserver((list, watch) => {
  watch.disconnect();
  done(list.getEntries()
    .map((one) => [one.startTime, one.value, one.sources.map(({ node }) => (node?.outerHTML ?? node?.data ?? '').slice(0, 80))]));
}).observe({ type: 'layout-shift', buffered: true });"""
JUMP = "const now = performance.now(); document.querySelector('main').style.marginTop = '300px'; return now;"


def shifts(page):
    """Those until now: of a jump of this test's own the browser tells last."""
    now = page.run(JUMP)
    found = until(lambda: [one for one in [page.driver.execute_async_script(SHIFTS)] if one[-1][0] >= now], what="the jump of this test")[0]
    page.run("document.querySelector('main').style.marginTop = ''")
    return [one for one in found if one[0] < now]


# How many lines the visible children of an element take.
LINES = """const rows = [...document.querySelector(arguments[0]).children].filter((one) => one.checkVisibility() && one.offsetWidth)
  .map((one) => one.getBoundingClientRect()).sort((one, other) => one.top - other.top);
return rows.reduce((lines, { top, bottom }) => top >= (lines.at(-1) ?? -1) ? [...lines, bottom] : lines, []).length"""


# Of the nearest edges of two elements, one above the other.
GAP = "const [upper, lower] = [...arguments].map((one) => document.querySelector(one).getBoundingClientRect()); return lower.top - upper.bottom"


# Whose place is known before their first picture comes, and how much may move.
STEADY = {"table": 0.02, "attention": 0.02, **dict.fromkeys(("curves", "distance", "bias", "trajectory", "properties", "scaling", "multimodal", "rotate", "extrapolate"), 0.1)}
# Figures are drawn by these once something was chosen or asked for.
WITHOUT_FIGURES = {"gallery", "walk", "explain", "docs", "server", "weights", "experiment", "diagnose", "story"}
BESIDE = {"attention": (".tokens", "figure[data-config=a]"), **dict.fromkeys(("extrapolate", "properties", "experiment"), (".view", ".inspector"))}
LABELLED = {"rotate", "attention", "distance", "scaling", "extrapolate", "experiment", "trajectory", "bias"}
LABELS = """return [...document.querySelectorAll('.view :is(.view-controls, .controls, .heat-leads) .field')].filter((one) => one.checkVisibility())
  .map((one) => [one.firstChild.textContent.trim()[0], getComputedStyle(one.firstChild, '::first-letter').textTransform])"""


def stays_on_its_server(page, view):
    """The addresses of all that it loads and asks, and of all links that it offers. Nothing is asked for that is refused, of which the
    browser says nothing else than in its console."""
    assert view == "story" or page.attribute(f'nav [data-view="{view}"]', "aria-current")
    assert len(page.all("h1")) == 1 and page.text("h1").strip() and not page.all("[data-notice=state]")
    states = page.run("return [...document.querySelectorAll(arguments[0])].map((figure) => figure.dataset.state)", f'figure[data-figure="{view}"]')
    assert view in WITHOUT_FIGURES or set(states) == {"ready"}, states
    assert loaded(page)
    sources = page.run("return [...document.querySelectorAll('[src], link[href], form[action]')].map((e) => e.src || e.href || e.action)")
    assert all(source.startswith((page.url + "/", "data:", "blob:")) for source in sources), sources
    assert page.run("return document.querySelectorAll('style, [style*=\"url\"], script:not([src])').length") == 0
    assert page.run("return [...document.querySelectorAll('*')].flatMap((e) => [...e.attributes]).filter((a) => a.name.startsWith('on')).length") == 0
    assert [entry["message"] for entry in page.driver.get_log("browser")] == []


def takes_its_room(page, view):
    """At 1440: menus and tools in one line, no empty band between what belongs together; the form beside it, or not."""
    assert page.run(LINES, ".nav-views") == 1
    if view == "attention":
        assert page.run(LINES, "figure[data-config=a] .heat-tools") == 1
        assert page.all("[data-slider=at]"), "the head is still chosen"
    if view in BESIDE:
        assert page.run(GAP, *BESIDE[view]) <= 40
    assert page.run("return document.querySelector('.side').checkVisibility()") == (view not in ALONE)


def fits(page, narrow, widths):
    page.run("for (const one of document.querySelectorAll('figure details')) one.open = true")
    page.settle()
    for width in widths:
        narrow(width, 844 if width < 500 else 900)
        page.settle()
        until(lambda: page.run(WIDE) <= width, 5, f"a page of {width}")  # a figure is drawn again a moment later
        assert width != 390 or page.run(SMALL) == []


def looks_right(page, lang, theme):
    assert page.run("return document.documentElement.dataset.theme") == theme
    assert page.run(CONTRAST) == []
    page.run("for (const part of document.querySelectorAll('main details')) part.open = true")
    page.settle()
    speaks(page, lang)
    assert page.run(NUMBERS) == []


def closed(page):
    page.run("for (const part of document.querySelectorAll('main details')) part.open = false")


@pytest.mark.fresh
@pytest.mark.parametrize("view", VIEWS)
def test_a_view(open_page, narrow, server, axe, view):
    if view == "server":  # what it shows depends on what was asked: also of no route, with and without a scheme, and refused
        assert [server.get("/nothing").status, server.post("/encode", {"scheme": "rope", "lenn": 2}).status] == [404, 422]
    narrow(1440)
    page = open_page(f"view={view}&theme=light")
    stays_on_its_server(page, view)
    jumps = shifts(page)
    assert sum(value for _, value, _ in jumps) < STEADY.get(view, 9), jumps
    page.go(f"view={view}&lang=en&theme=light")
    takes_its_room(page, view)
    if view in LABELLED:  # as the labels of the form do
        starts = page.run(LABELS)
        assert starts and all(letter.isupper() or how == "uppercase" for letter, how in starts), starts
    looks_right(page, "en", "light")
    fits(page, narrow, [1080, 320])
    closed(page)
    page.go(f"view={view}&lang=zh&theme=dark")
    assert violations(page, axe) == []
    looks_right(page, "zh", "dark")
    fits(page, narrow, [390])
    narrow(1440)
    page.settle()
    takes_its_room(page, view)


@pytest.mark.slow
@pytest.mark.parametrize("lang, widths", [("en", [768, 1440]), ("zh", [320, 768, 1080, 1440])], ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_other_widths(visit, narrow, view, lang, widths):
    fits(visit(f"view={view}&lang={lang}"), narrow, widths)
