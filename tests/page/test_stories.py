"""What holds for every story: its contents, its figures by name, both languages, narrow screens, and how one comes to it. What a
single story shows is tested in test_story_NAME.py."""
import re

import pytest

from browser import until
from test_frame import CONTRAST, SMALL, STRAY, nameless, narrow  # noqa: F401 (narrow is a fixture)

FIGURES = {
    "designing": "dogs wishes integer integer-normalized binary-252 binary-waves binary-path sine-waves sine-path shift-matrix chased rotation distance grid-2d p-rope",
    "introduction": "order five-by-five first-indices later-indices dims rows-20 rows-40000 learned-2d rope-distance m-rope",
    "three-encodings": "order table-viridis table-50x64 unique-bounded learned norms alibi-heads alibi-as-printed compare-three extrapolation training",
    "sin-and-cos": "wavelengths cosine-sum sin-only layouts mismatched",
    "absolute-relative": "order learned-end floater multiply four-terms shaw xlnet t5-buckets deberta rotation linear-attention",
}
STORIES = sorted(FIGURES)
FIRST = "designing"

# A figure of a story is what has a button back and a link onward.
NAMES = "return [...document.querySelectorAll('article[data-story] figure[id^=\"fig-\"]')].map((figure) => figure.id.slice(4))"
INNER = "return [...document.querySelectorAll(`#fig-${arguments[0]} figure[data-figure]`)].map((figure) => figure.dataset.state)"
STATES = "return [...document.querySelectorAll('article[data-story] figure[data-figure]')].map((figure) => figure.dataset.state)"
TOUCHABLE = """return [...document.querySelectorAll(`#fig-${arguments[0]} :is([data-slider], input[data-field], [data-field] button, select, canvas[tabindex="0"])`)]
  .filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.disabled).length"""
PICTURES = "canvas[data-heat], canvas[data-lines], canvas[tabindex]"  # swatches of a legend are canvases too
# Texts as they are read, formulas apart: keys that no file has, values that nobody filled in.
RAW = """const [story] = arguments, copy = document.querySelector('article[data-story]').cloneNode(true);
for (const math of copy.querySelectorAll('math, code')) math.remove();
return copy.textContent.match(new RegExp(`\\\\b(?:${story}|story|view|figure|heat|axis)\\\\.[a-z][\\\\w.-]*|\\\\{\\\\w+\\\\}|undefined|\\\\[object|NaN`, 'g')) ?? [];"""
# Markup that was not read as markup, and commands that prose.js does not know.
UNREAD = """return [...document.querySelectorAll('article[data-story] :is(p, h2, li)')].filter((node) => !node.closest('figure[data-figure]'))
  .map((node) => [...node.childNodes].filter((child) => child.nodeType === 3).map((child) => child.data).join('')).filter((text) => /[`$\\\\]|\\*\\w|\\]\\(#/.test(text))"""
MATH_NAMES = "return [...new Set([...document.querySelectorAll('article[data-story] mi')].map((node) => node.textContent).filter((text) => text.length > 1))]"
KNOWN_NAMES = {"sin", "cos", "exp", "log", "ln", "max", "min", "softmax", "elu", "mod", "rank", "diag", "arg", "tan", "tanh", "det", "clip", "sign", "round", "lim", "dim", "atan", "Re", "Im"}
TOC_ABOVE = "return document.querySelector('nav[data-toc]').getBoundingClientRect().bottom <= document.querySelector('section[data-sec]').getBoundingClientRect().top"
TWICE = "const ids = [...document.querySelectorAll('[id]')].map((node) => node.id); return ids.filter((id, i) => ids.indexOf(id) !== i)"
# Boxes of a line do not break: formulas, and what has to stay in one line.
WIDE = """return [...document.querySelectorAll('article[data-story] :is(p, h2, li, em) > math, article[data-story] a[data-story] > *, nav[data-toc] a')]
  .filter((node) => node.checkVisibility() && node.getBoundingClientRect().right > innerWidth + 1).map((node) => node.textContent)"""
BEYOND = """return [...document.querySelectorAll(':is(.story-prose, figcaption) > p:not([class=products]) math')]
  .filter((math) => math.getBoundingClientRect().right > math.closest('p').getBoundingClientRect().right + 1).map((math) => math.textContent)"""
# What a figure has before "Open": its height without its caption, and controls that are seen.
SHOWN = """const figure = document.getElementById(`fig-${arguments[0]}`), place = figure.querySelector('.story-place'), touch = figure.querySelector('.story-touch');
const fields = [...figure.querySelectorAll('[data-slider], .segmented, select, input, textarea')].filter((node) => node.checkVisibility() && node.getBoundingClientRect().width > 1);
return [place.getBoundingClientRect().bottom - (touch.checkVisibility() ? touch : place).getBoundingClientRect().top,
  new Set(fields.map((node) => node.closest('.field') ?? node)).size]"""

# Where the window has room: its whole height, whether its text is beside it, and what scrolls within it.
WHOLE = """const figure = document.getElementById(`fig-${arguments[0]}`), prose = figure.parentElement.querySelector('.story-prose');
const scrolls = (node) => ['auto', 'scroll'].includes(getComputedStyle(node).overflowX) && node.scrollWidth > node.clientWidth + 1;
const box = figure.getBoundingClientRect(), inner = [...figure.children].filter((node) => node.checkVisibility()).map((node) => node.getBoundingClientRect().bottom);
return { high: Math.max(box.height, Math.max(...inner) - box.top), beside: !prose || prose.getBoundingClientRect().right <= box.left,
  scrolled: [...figure.querySelectorAll('.story-place *')].filter(scrolls).map((node) => node.className) }"""
FIGURE_PX = 420


def too_large(page, name):
    """What is wrong with the size of a figure in a window of at least 1200 px, or None."""
    whole = page.run(WHOLE, name)
    return whole if whole["high"] > FIGURE_PX or not whole["beside"] or whole["scrolled"] else None


def open_story(open_page, story, **keys):
    return open_page("&".join(["view=story", f"story={story}", *(f"{key}={value}" for key, value in {"lang": "en", **keys}.items())]))


def reach(page, name):
    """Scrolls to a figure and waits until it is there; those above it take their room meanwhile."""
    def near():
        page.run("document.getElementById(arguments[0]).scrollIntoView()", f"fig-{name}")
        return page.run(INNER, name)

    until(near, what=f"figure {name}")
    page.settle()


# ---- contents ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("story", STORIES)
def test_contents_sections_and_what_is_loaded(open_page, story):
    page = open_story(open_page, story)
    assert page.attribute("article", "data-story") == story and page.run("return document.querySelectorAll('h1').length") == 1
    names = page.run(NAMES)
    assert len(set(names)) == len(names) and set(FIGURES[story].split()) <= set(names)
    titles = page.run("return [...document.querySelectorAll('article[data-story] section > h2')].map((h2) => h2.textContent)")
    assert page.run("return [...document.querySelectorAll('nav[data-toc] a')].map((a) => a.textContent)") == titles and len(titles) > 2
    loaded = [name for name in names if page.run(INNER, name)]
    assert names[-1] not in loaded and len(loaded) <= 4, loaded  # those that are near
    assert page.run(RAW, story) == [] and page.run(UNREAD) == []
    assert set(page.run(MATH_NAMES)) <= KNOWN_NAMES
    papers = page.run("return [...document.querySelectorAll('.papers li a')].map((a) => [a.href, a.target, a.rel])")
    assert papers and all(re.fullmatch(r"https://arxiv\.org/abs/\d{4}\.\d{5}", href) and (target, rel) == ("_blank", "noopener noreferrer") for href, target, rel in papers)
    ends = page.run("return [...document.querySelectorAll('article[data-story] a[data-story]')].map((a) => a.dataset.story)")
    assert sorted(ends) == [name for name in STORIES if name != story]


def test_a_line_of_the_contents_is_an_address_and_back_leads_back(open_page):
    page = open_story(open_page, "sin-and-cos")
    top = "return Math.round(document.querySelector(`section[data-sec=\"${arguments[0]}\"]`).getBoundingClientRect().top)"
    links = page.run("return [...document.querySelectorAll('nav[data-toc] a')].map((a) => a.getAttribute('href'))")
    assert all(f"sec={i + 1}" in link and "story=sin-and-cos" in link for i, link in enumerate(links))
    for sec in (4, 2):
        page.click(f'nav[data-toc] a[data-sec="{sec}"]')
        until(lambda: -10 < page.run(top, sec) < 200, what=f"section {sec} at the top, not at {page.run(top, sec)}")
        page.settle()
        assert f"sec={sec}" in page.run("return location.hash")
        assert page.run("return [...document.querySelectorAll('nav[data-toc] [aria-current]')].map((a) => Number(a.dataset.sec))") == [sec]
    page.driver.back()
    until(lambda: "sec=4" in page.run("return location.hash"), what="the section before")
    page = open_story(open_page, "sin-and-cos", sec=5)
    until(lambda: -10 < page.run(top, 5) < 200, what="the section of the address")


# ---- figures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("story", STORIES)
def test_every_figure_is_ready_touchable_and_named_in_both_languages(open_page, narrow, story):  # noqa: F811
    narrow(320)  # where the figures are built
    page = open_story(open_page, story)
    names = page.run(NAMES)
    for name in names:
        reach(page, name)
        states = page.run(INNER, name)
        assert set(states) <= {"ready", "empty"} and ("ready" in states or name == "training"), (name, states)
        assert page.run(TOUCHABLE, name) > 0, name
        at = f"#fig-{name}"
        assert page.run("return document.querySelector(arguments[0]).disabled", f"{at} [data-action=reset]"), f"{name}: untouched"
        assert re.match(r"#view=(?!story)\w+&", page.attribute(f"{at} a[data-action=open]", "href")), name
        texts = page.run("return [...document.querySelectorAll(arguments[0])].map((p) => p.textContent.trim())", f"{at} > figcaption > p")
        assert len(texts) == 2 and all(len(text) > 10 for text in texts), name
    assert [entry["message"] for entry in page.driver.get_log("browser")] == []  # nothing was asked for that is refused
    assert page.run(TWICE) == [] and nameless(page.driver) == []
    assert page.run(RAW, story) == [] and page.run(STRAY, False) == []

    page.run(f"window.kept = [...document.querySelectorAll('{PICTURES}')]; window.were = kept.map((c) => JSON.stringify({{ ...c.dataset }}))")
    english = page.text("article")
    page.click("[data-action=lang]")
    until(lambda: page.attribute("html", "lang") == "zh-CN", what="Chinese")
    page.settle()
    assert page.run(f"const now = [...document.querySelectorAll('{PICTURES}')]; return now.length === kept.length && now.every((c, i) => c === kept[i])"), "a figure was built anew"
    assert page.run("return kept.filter((c, i) => c.dataset.heat !== undefined && JSON.stringify({ ...c.dataset }) !== were[i]).length") == 0
    assert page.run(RAW, story) == [] and page.run(UNREAD) == [] and page.run(STRAY, True) == []
    assert page.text("article") != english and nameless(page.driver) == []

    for width in (320, 390, 1200, 1440):
        narrow(width)
        page.settle()
        assert set(page.run(STATES)) <= {"ready", "empty"}, width
        assert page.run("return document.documentElement.scrollWidth") <= width, f"{width}: the page scrolls sideways"
        assert page.run(WIDE) == [], f"{width}: cut off"
        assert page.run(BEYOND) == [], f"{width}: beyond its paragraph"
        assert width > 390 or page.run(TOC_ABOVE), width
        shown = {name: page.run(SHOWN, name) for name in names}
        assert {name: size for name, size in shown.items() if width > 320 and size[0] > 420 or size[1] > 3} == {}, width
        assert width < 1200 or {name: large for name in names if (large := too_large(page, name))} == {}, width
        assert width != 390 or page.run(SMALL) == []
    page.click("[data-action=lang]")  # English texts are the longer ones
    until(lambda: page.attribute("html", "lang") == "en", what="English")
    for width in (1440, 1200):
        narrow(width)
        page.settle()
        assert {name: large for name in names if (large := too_large(page, name))} == {}, width


@pytest.mark.parametrize("story", STORIES)
def test_texts_stand_out(open_page, story):
    for theme in ("light", "dark"):
        page = open_story(open_page, story, theme=theme)
        reach(page, FIGURES[story].split()[-1])
        assert page.run(CONTRAST) == [], theme


def test_a_figure_keeps_what_was_touched_to_itself(open_page):
    page = open_story(open_page, "sin-and-cos", sec=3)
    reach(page, "cosine-sum")
    before, link = page.run("return location.hash"), page.attribute("#fig-cosine-sum a[data-action=open]", "href")
    page.run("const s = document.querySelector('#fig-cosine-sum [data-slider=dim]'); s.value = 8; s.dispatchEvent(new Event('input', { bubbles: true }))")
    page.settle()
    changed = page.attribute("#fig-cosine-sum a[data-action=open]", "href")
    assert page.run("return location.hash") == before and changed != link and "%22dim%22%3A8" in changed
    page.click("#fig-cosine-sum a[data-action=open]")
    until(lambda: "view=distance" in page.run("return location.hash"), what="the figure's view")
    page.settle()
    assert page.state() == "ready" and page.attribute('[data-field="dim"]', "data-config") == "a" and page.field("dim").get_property("value") == "8"
    page.driver.back()
    until(lambda: page.all("article[data-story]"), what="the story")
    page.settle()


# ---- ways to a story -----------------------------------------------------------------------------------------------------


def test_the_gallery_leads_to_each_story(open_page):
    page = open_page("view=gallery&lang=en")
    links = dict(page.run("return [...document.querySelectorAll('main a[data-story]')].map((a) => [a.dataset.story, a.getAttribute('href')])"))
    assert sorted(links) == STORIES
    for story, link in links.items():
        assert f"view=story&story={story}" in link
    title = page.run("return document.querySelector('main a[data-story=\"sin-and-cos\"] strong').textContent")
    page.click('main a[data-story="sin-and-cos"]')
    until(lambda: page.all('article[data-story="sin-and-cos"]'), what="the story")
    page.settle()
    assert page.text("h1") == title
    page.click(f'article a[data-story="{FIRST}"]')
    until(lambda: page.all(f'article[data-story="{FIRST}"]'), what="the next story")
    page.settle()
    assert len(page.all("article")) == 1 and page.text("h1") != title
    page.driver.back()
    until(lambda: page.all('article[data-story="sin-and-cos"]'), what="the story before")
    page.settle()


def test_without_a_name_the_first_story_opens(open_page):
    page = open_page("view=story&lang=en")
    assert page.attribute("article", "data-story") == FIRST and not page.all('[data-notice="state"]')


def test_a_story_that_is_not_there_is_named(open_page):
    page = open_page("view=story&story=none&lang=en")
    assert "story" in page.text('[data-notice="state"]') and page.attribute("article", "data-story") == FIRST
    page.hash("view=story&story=sin-and-cos&sec=x&lang=en")
    page.settle()
    assert "sec" in page.text('[data-notice="state"]') and page.attribute("article", "data-story") == "sin-and-cos"
