"""Every story: its contents, its figures by name, by hand and by their rows (cases/figures.jsonl), both languages, narrow screens, the
numbers of its text, and how one comes to it."""
import json
import re
import statistics

import pytest
from selenium.webdriver.common.keys import Keys

import rows
from browser import until
from conftest import ROOT
from figures import Figure
from looks import CONTRAST, SMALL, STRAY, nameless, violations
from story_texts import story_texts

FIGURES = {
    "designing": "dogs wishes integer integer-normalized binary-252 binary-waves top-bit binary-path sine-waves sine-path shift-matrix clocks chased "
                 "rotation ladder distance grid-2d p-rope",
    "introduction": "order five-by-five first-indices later-indices dims rows-20 rows-40000 learned-2d rope-turn rope-distance m-rope",
    "three-encodings": "order table-viridis table-50x64 unique-bounded learned norms cache alibi-heads alibi-as-printed compare-three extrapolation training",
    "sin-and-cos": "wavelengths cosine-sum sin-only layouts layouts-products mismatched flipped",
    "absolute-relative": "order learned-end floater multiply four-terms shaw xlnet t5-buckets deberta rotation linear-attention",
}
STORIES = sorted(FIGURES)
FIRST = "designing"
ROWS = rows.rows("figures", "put", "pick", "change")
# Links within the text of a story, in their order.
LINKS = {
    "designing": ["https://fleetwood.dev/posts/you-could-have-designed-SOTA-positional-encoding"],
    "sin-and-cos": ['#view=table&a={"scheme":"sinusoidal","dim":64,"len":128}&cur=37,12&why=a', "#view=rotate", "#view=story&story=designing", "#view=story&story=absolute-relative"],
    "absolute-relative": ["#view=extrapolate", '#view=table&a={"scheme":"t5","len":128}&out=buckets&cur=91,0&why=a', "#view=experiment", "#view=story&story=three-encodings"],
}

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
# How many controls a figure has that are seen.
CONTROLS_SEEN = """const figure = document.getElementById(`fig-${arguments[0]}`);
const fields = [...figure.querySelectorAll('[data-slider], .segmented, select, input, textarea')].filter((node) => node.checkVisibility() && node.getBoundingClientRect().width > 1);
return new Set(fields.map((node) => node.closest('.field') ?? node)).size"""

# Of a figure: its height; whether its text is beside it; what scrolls within it; its pictures with their labels, [kind, width, height, top, bottom];
# the share of its area that they take; the sides of map cells that have words at their edges, and how many words.
WHOLE = """const figure = document.getElementById(`fig-${arguments[0]}`), prose = figure.parentElement.querySelector('.story-prose');
const scrolls = (node) => ['auto', 'scroll'].includes(getComputedStyle(node).overflowX) && node.scrollWidth > node.clientWidth + 1;
const rect = (node) => node.getBoundingClientRect(), box = rect(figure);
const inner = [...figure.children].filter((node) => node.checkVisibility()).map((node) => rect(node).bottom);
const seen = [...figure.querySelectorAll('.heat, .chart-plot, canvas.hands, .wishes')].filter((node) => node.checkVisibility({ visibilityProperty: true }));
const pictures = seen.map((node) => [node.className, rect(node).width, rect(node).height, rect(node).top, rect(node).bottom, Boolean(node.closest('.head'))]);
const worded = seen.filter((node) => node.querySelector('.heat-rows [translate=no]')).map((node) => [Number(node.querySelector('canvas').dataset.rowPx), node.querySelectorAll('.heat-rows span').length]);
return { high: Math.max(box.height, Math.max(...inner) - box.top), beside: !prose || rect(prose).right <= box.left,
  scrolled: [...figure.querySelectorAll('.story-place *')].filter(scrolls).map((node) => node.className),
  share: pictures.reduce((sum, [, width, height]) => sum + width * height, 0) / (box.width * box.height), pictures, worded }"""
STAYS_PX = 900 - 76 - 12  # of a window of 900 pixels what its banner leaves: a figure stays while its text scrolls past
SHARE, FAR, FEW_WORDS = 0.4, (320, 240), 6
NO_SHARE = {"training", "cache"}  # one is empty until it is asked for, one has maps of a single row


def too_small(page, name):
    """What is wrong with the picture of a figure in a window of at least 1200 × 900 px, or None: nobody sees it from afar, or it leaves the window."""
    whole = page.run(WHOLE, name)
    charts = [picture[1:3] for picture in whole["pictures"] if picture[0] == "chart-plot"]
    small = [chart for chart in charts if len(charts) < 3 and (chart[0] < FAR[0] or chart[1] < FAR[1])]
    cells = [(px, words) for px, words in whole["worded"] if px < (40 if words <= FEW_WORDS else 30)]
    wrong = whole["high"] > STAYS_PX or not whole["beside"] or whole["scrolled"] or small or cells or (name not in NO_SHARE and whole["share"] < SHARE)
    return {**whole, "small": small, "cells": cells} if wrong else None


def both_seen(page, name):
    """The pictures of a figure that compares two are on a phone's screen together."""
    whole = page.run(WHOLE, name)
    tops, bottoms = ([picture[i] for picture in whole["pictures"] if not picture[5]] for i in (3, 4))
    return len(tops) != 2 or max(bottoms) - min(tops) <= 844


def open_story(open_page, story, **keys):
    return open_page("&".join(["view=story", f"story={story}", *(f"{key}={value}" for key, value in {"lang": "en", **keys}.items())]))


def reach(page, name):
    """Scrolls to a figure and waits until it is there."""
    return Figure(page, name, states=None)


# ---- contents and figures ------------------------------------------------------------------------------------------------


def contents(page, story):
    assert page.attribute("article", "data-story") == story and page.run("return document.querySelectorAll('h1').length") == 1
    names = page.run(NAMES)
    assert names == FIGURES[story].split()
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
    links = page.run("return [...document.querySelectorAll('.story-prose > p a')].map((a) => [a.getAttribute('href'), a.target, a.rel])")
    assert story not in LINKS or [href for href, *_ in links if story != FIRST or href.startswith("https")] == LINKS[story]
    assert all((target, rel) == ("_blank", "noopener noreferrer") for href, target, rel in links if href.startswith("https"))
    texts = story_texts((ROOT / f"server/page/stories/{story}.en.md").read_text())
    shown = page.run("return document.querySelectorAll('.story-text > section > h2, .story-prose > p, .story-figure > figcaption > p').length")
    assert shown == len([key for key, _ in texts if key[0].isdigit() or key.startswith("fig.")]), "no text is left over"


def caption(figure):
    at = figure.at
    assert re.match(r"#view=(?!story)\w+&", figure.link()), at
    assert figure.is_untouched() and figure.page.run(TOUCHABLE, at.removeprefix("#fig-")) > 0, at
    texts = [text.strip() for text in figure.all("> figcaption > p")]
    assert len(texts) == 2 and all(len(text) > 10 for text in texts), at


# The controls that a story gives a figure: [field, whether it slides]; one of them is moved: a slider by a third, else what is not chosen.
CONTROLS = """return [...document.querySelectorAll(`${arguments[0]} .story-touch :is([data-slider], [data-field]:has([data-value]))`)]
  .map((one) => one.dataset.slider ?? one.dataset.field)"""
MOVE = """const [at, field] = arguments, slider = document.querySelector(`${at} .story-touch [data-slider="${field}"]`);
if (!slider) return [...document.querySelectorAll(`${at} .story-touch [data-field="${field}"] [data-value]`)].findLast((one) => one.ariaPressed !== 'true').click();
const third = Number(slider.min) + Math.round((slider.max - slider.min) / 3 / (slider.step || 1)) * (slider.step || 1);
slider.value = Math.abs(third - slider.value) < 1e-9 ? slider.max : third;
slider.dispatchEvent(new Event('input', { bubbles: true }));"""
TRIED = {(row["id"].split("/")[1], field) for row in ROWS for way in ("put", "pick", "change") for field in row.get(way, ())}


def controls(figure, name):
    """Each changes the link, the picture is again that of its link, and there is a way back; those that no row tries."""
    for field in set(figure.page.run(CONTROLS, figure.at)) - {field for of, field in TRIED if of == name}:
        before = figure.link()
        figure.page.run(MOVE, figure.at, field)
        figure.page.settle()
        assert figure.link() != before, (name, field)
        figure.check_drawn()
        figure.reset()
        assert figure.link() == before, (name, field)


@pytest.mark.parametrize("story", STORIES)
def test_contents_and_every_figure(open_page, story):
    """Loaded when they are near; each picture is what separate requests of its link give, as it is and after each control."""
    page = open_story(open_page, story)
    contents(page, story)
    for name in FIGURES[story].split():
        figure = Figure(page, name, states=("empty" if name == "training" else "ready",))
        caption(figure)
        if name != "training":
            figure.check_drawn()
            controls(figure, name)
    assert [entry["message"] for entry in page.driver.get_log("browser")] == []  # nothing was asked for that is refused


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"], marks=pytest.mark.xdist_group(row["id"].split("/")[0])) for row in ROWS])
def test_a_figure(visit, row):
    """As its row says; pictures of what was changed are those of the changed link."""
    story, name, *_ = row["id"].split("/")
    figure = Figure(visit(f"view=story&story={story}&lang=en"), name)
    before = figure.snapshot(row)
    for field, value in row.get("pick", {}).items():
        figure.pick(field, value)
    for way, event in (("put", "input"), ("change", "change")):
        for field, value in row.get(way, {}).items():
            figure.slide(field, value, event)
    is_changed = not figure.is_untouched()
    assert is_changed == bool(row.keys() & {"put", "pick", "change"})
    try:
        rows.check(figure, row, before)
        if is_changed:
            figure.check_drawn()
    finally:
        if is_changed:
            figure.reset()


# What a figure says in numbers, texts and colours.
SAID = """return [[...document.querySelectorAll(`${arguments[0]} figure[data-figure] data`)].map((e) => e.value),
  [...document.querySelectorAll(`${arguments[0]} [data-readout] output`)].map((e) => e.textContent),
  [...document.querySelectorAll(`${arguments[0]} canvas[data-heat]`)].map(({ dataset: { output, min, max } }) => [output, min, max])]"""


def test_a_figure_opens_as_it_is_seen(visit):
    """One of each view."""
    seen = {}
    page = visit("view=story&story=designing&lang=en")
    for name in "dogs wishes integer-normalized binary-path shift-matrix rotation distance".split():
        figure = Figure(page, name)
        seen[name] = page.run(SAID, figure.at), figure.link()
    for name, (said, link) in seen.items():
        page.go(link[1:])
        assert page.run(SAID, "main") == said, name
        if name == "shift-matrix":
            copied = json.loads(page.copied("json"))
            assert (copied["metrics"], copied["k"], copied["outputs"]) == (["shift"], [3], ["shift_matrix"])


def test_a_figure_keeps_what_was_touched_to_itself_and_opens_it(open_page):
    page = open_story(open_page, "sin-and-cos", sec=3)
    figure = Figure(page, "cosine-sum")
    before, link = page.run("return location.hash"), figure.link()
    figure.slide("dim", 8)
    assert page.run("return location.hash") == before and figure.link() != link and figure.config()["dim"] == 8
    figure.press("a[data-action=open]")
    page.comes(lambda: "view=distance" in page.run("return location.hash"), "the figure's view")
    assert page.state() == "ready" and page.field("dim").get_property("value") == "8"
    page.driver.back()
    page.comes(lambda: page.all("article[data-story]"), "the story")


def test_a_key_moves_the_distance_of_both(visit):
    figure = Figure(visit("view=story&story=sin-and-cos&lang=en"), "flipped")
    before = figure.numbers("similarity", "b")
    figure.page.find("#fig-flipped figure[data-config=a] canvas[data-lines]").send_keys(Keys.ARROW_RIGHT)
    figure.page.settle()
    assert figure.numbers("similarity", "b") != before
    figure.check_drawn()
    figure.reset()


@pytest.mark.fresh
def test_chinese_has_its_own_sentence(open_page):
    figure = Figure(open_story(open_page, "absolute-relative", lang="zh"), "order")
    assert figure.config()["tokens"] == list("猫追狗，狗追猫") and figure.numbers("difference", "none") == [0]
    figure.check_drawn()


def trained(server):
    """Trainings that were begun."""
    text = server.get("/metrics").body.decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("posenc_requests_total") and "/experiments" in line)


def test_training_waits_for_its_button(open_page, server):
    page = open_story(open_page, "three-encodings", sec=8)
    before = trained(server)
    Figure(page, "training", states=("empty",))
    page.do('article a[href*="sec=1"]')
    figure = Figure(page, "training", states=("empty",))
    for key, value in {"steps": 2, "train": 16, "eval": 16, "seed": 3}.items():
        figure.slide(key, value)
    assert set(figure.states()) == {"empty"} and trained(server) == before
    figure.press("[data-action=start]")
    assert figure.states() == ["ready", "ready"] and trained(server) == before + 1
    body = {"task": "local", "steps": 2, "train_len": 16, "eval_len": 16, "seed": 3, "configs": [{"scheme": name} for name in ("sinusoidal", "rope", "alibi", "learned")]}
    done = [json.loads(line) for line in server.post("/experiments", body).body.splitlines()][-1]
    assert figure.all("tr[data-config] [data-what=rise]", "Number(e.value)") == [one["rise"] for one in done["results"]]
    figure.pick("task", "lag")
    assert "stale" in figure.states() and trained(server) == before + 2  # ours was the second
    figure.reset()
    assert figure.all("[data-field=steps]", "e.value") == ["300"] and "steps=300" in figure.link()


# ---- looks -----------------------------------------------------------------------------------------------------------------


def sizes(page, width, names):
    page.settle()
    assert set(page.run(STATES)) <= {"ready", "empty"}, width
    assert page.run("return document.documentElement.scrollWidth") <= width, f"{width}: the page scrolls sideways"
    assert page.run(WIDE) == [], f"{width}: cut off"
    assert page.run(BEYOND) == [], f"{width}: beyond its paragraph"
    assert width > 390 or page.run(TOC_ABOVE), width
    assert {name: count for name in names if (count := page.run(CONTROLS_SEEN, name)) > 3} == {}, width
    assert width < 1200 or {name: small for name in names if (small := too_small(page, name))} == {}, width
    assert width < 1200 or statistics.median(page.run(WHOLE, name)["share"] for name in names) >= (0.55 if width > 1200 else 0.5), width
    assert width != 390 or [name for name in names if not both_seen(page, name)] == []
    assert width != 390 or page.run(SMALL) == []


@pytest.mark.parametrize("story", STORIES)
def test_looks(open_page, narrow, axe, story):
    """In both languages and themes, on phones and screens; a language builds no figure anew and draws no map again."""
    narrow(320)  # where the figures are built
    page = open_story(open_page, story)
    names = FIGURES[story].split()
    for name in names:
        reach(page, name)
    assert page.run(TWICE) == [] and nameless(page.driver) == []
    assert page.run(RAW, story) == [] and page.run(STRAY, False) == []
    page.run(f"window.kept = [...document.querySelectorAll('{PICTURES}')]; window.were = kept.map((c) => JSON.stringify({{ ...c.dataset }}))")
    english = page.text("article")
    page.click("[data-action=lang]")
    page.comes(lambda: page.attribute("html", "lang") == "zh-CN", "Chinese")
    assert page.run(f"const now = [...document.querySelectorAll('{PICTURES}')]; return now.length === kept.length && now.every((c, i) => c === kept[i])"), "a figure was built anew"
    assert page.run("return kept.filter((c, i) => c.dataset.heat !== undefined && JSON.stringify({ ...c.dataset }) !== were[i]).length") == 0
    assert page.run(RAW, story) == [] and page.run(UNREAD) == [] and page.run(STRAY, True) == []
    assert page.text("article") != english and nameless(page.driver) == []
    for width in (320, 390, 1440):
        narrow(width, 844 if width < 500 else 900)
        sizes(page, width, names)
    page.click("[data-action=lang]")  # English texts are the longer ones
    until(lambda: page.attribute("html", "lang") == "en", what="English")
    narrow(1200)
    sizes(page, 1200, names)
    for theme in ("light", "dark"):  # colours are judged in both, all else by axe-core once
        page.go(f"view=story&story={story}&lang=en&theme={theme}")
        assert page.run(CONTRAST) == [], theme
    narrow(390, 844)
    page.settle()
    assert violations(page, axe) == []


def test_axe_core_is_to_be_had(axe):
    if axe is None:
        pytest.skip("npm is missing, or has no network: no test has looked for violations of accessibility with axe-core")


def test_a_line_of_the_contents_is_an_address_and_back_leads_back(open_page):
    page = open_story(open_page, "sin-and-cos")
    top = "return Math.round(document.querySelector(`section[data-sec=\"${arguments[0]}\"]`).getBoundingClientRect().top)"
    links = page.run("return [...document.querySelectorAll('nav[data-toc] a')].map((a) => a.getAttribute('href'))")
    assert all(f"sec={i + 1}" in link and "story=sin-and-cos" in link for i, link in enumerate(links))
    for sec in (4, 2):
        page.click(f'nav[data-toc] a[data-sec="{sec}"]')
        page.comes(lambda: -10 < page.run(top, sec) < 200, f"section {sec} at the top, not at {page.run(top, sec)}")
        assert f"sec={sec}" in page.run("return location.hash")
        assert page.run("return [...document.querySelectorAll('nav[data-toc] [aria-current]')].map((a) => Number(a.dataset.sec))") == [sec]
    page.driver.back()
    until(lambda: "sec=4" in page.run("return location.hash"), what="the section before")
    page = open_story(open_page, "sin-and-cos", sec=5)
    until(lambda: -10 < page.run(top, 5) < 200, what="the section of the address")


# ---- ways to a story -----------------------------------------------------------------------------------------------------


def test_the_gallery_leads_to_each_story(open_page):
    page = open_page("view=gallery&lang=en")
    links = dict(page.run("return [...document.querySelectorAll('main a[data-story]')].map((a) => [a.dataset.story, a.getAttribute('href')])"))
    assert sorted(links) == STORIES
    for story, link in links.items():
        assert f"view=story&story={story}" in link
    title = page.run("return document.querySelector('main a[data-story=\"sin-and-cos\"] strong').textContent")
    page.click('main a[data-story="sin-and-cos"]')
    page.comes(lambda: page.all('article[data-story="sin-and-cos"]'), "the story")
    assert page.text("h1") == title
    page.click(f'article a[data-story="{FIRST}"]')
    page.comes(lambda: page.all(f'article[data-story="{FIRST}"]'), "the next story")
    assert len(page.all("article")) == 1 and page.text("h1") != title
    page.driver.back()
    page.comes(lambda: page.all('article[data-story="sin-and-cos"]'), "the story before")
