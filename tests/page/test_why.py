"""Why a cell has its number, beside its picture; the formula of a scheme in its card. Steps and formulas are those of the service."""
import html
import json
import re
import urllib.parse

import pytest
from selenium.webdriver.common.keys import Keys

import looks
from browser import fragment, until

LLAMA = {"preset": "llama-3.1", "len": 8200}
CANVAS = 'figure[data-config="a"] canvas[data-heat]'
BUTTON = 'figure[data-config="a"] [data-action="why"]'
# [output, index, value, bits, language of the sentences, [[symbol, formula, value, rounded, is lost], …], detail]
SHOWN = """const why = document.querySelector('[data-why]'), of = (row, part) => row.querySelector(part)?.textContent ?? null;
return why && [why.dataset.output, why.dataset.index, why.dataset.value, why.dataset.bits,
  [...why.querySelectorAll('[data-step]')].map((row) => [row.dataset.step, of(row, '.why-formula'), row.querySelector('td.text [data-value]')?.dataset.value ?? null,
    row.querySelector('.why-rounded')?.dataset.value ?? null, row.classList.contains('lost')]),
  why.querySelector('.why-detail')?.textContent]"""


def minus(text):
    """A sign before a number is the page's."""
    return text and re.sub(r"(?<![\w)\]])-(?=\d)|(?<=\de)-(?=\d)", "\u2212", text)


def stated(server, fields, index, tensor="cos", lang="en"):
    """The same of the service."""
    one = server.post("/derive", {**fields, "tensor": tensor, "index": index, "lang": lang}).json()
    number, rounded = one["number"], {step["symbol"]: step["value"] for step in one["float32"] or []}
    steps = [[step["symbol"], minus(step.get("text")), step.get("value"), rounded.get(step["symbol"]) if "value" in step else None,
              bool(one["lost"]) and step["symbol"] == one["lost"]["symbol"]] for step in one["steps"]]
    return [tensor, ",".join(map(str, index)), str(number["value"]), number["bits"], steps, minus(one["detail_zh" if lang == "zh" else "detail"])]


def opened(page):
    until(lambda: page.count("[data-why] [data-step], [data-why] [data-notice]"), what="the steps")
    page.settle()
    return page.read(SHOWN)


def test_the_steps_of_the_cell(open_page, server):
    page = open_page(fragment("table", LLAMA, cur="8192,29"))
    assert not page.count("[data-why]") and page.attribute(BUTTON, "aria-expanded") == "false"
    page.click(BUTTON)
    shown = opened(page)
    assert shown == stated(server, LLAMA, [8192, 29])
    assert [value for _, _, value, _, _ in shown[4]][-1] == "0.45269735178167425453" and shown[3] == "0x3ee7c7f3"
    assert page.address()["why"] == "a" and page.attribute(BUTTON, "aria-expanded") == "true"
    assert page.read("return document.activeElement.hasAttribute('data-why')")
    page.press(CANVAS, *[Keys.ARROW_RIGHT] * 11)
    until(lambda: page.read(SHOWN)[1] == "8192,40", what="the steps of the next cell")
    page.settle()
    assert page.read(SHOWN) == stated(server, LLAMA, [8192, 40])
    links = page.read("return [...document.querySelectorAll('.why-links a')].map((one) => one.getAttribute('href'))")
    texts = [server.get(link).body.decode() for link in links]
    assert texts[0].startswith("cos[8192,40] = ") and texts[1].startswith("\\begin{align*}") and json.loads(texts[2])["number"]["bits"] == "0x3f75f8ac"
    page.click(BUTTON)
    page.settle()
    assert not page.count("[data-why]") and "why" not in page.address()


def test_by_keys_alone(open_page):
    """w opens them and puts the focus there; Escape closes them and gives it back."""
    page = open_page(fragment("table", {"scheme": "alibi", "num_heads": 2, "len": 20}, cur="9,4", at="1"))
    page.press(CANVAS, "w")
    shown = opened(page)
    assert shown[:2] == ["bias", "1,9,4"] and page.read("return document.activeElement.hasAttribute('data-why')")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.settle()
    assert not page.count("[data-why]") and page.read("return document.activeElement.dataset.action") == "why"


def test_one_number_at_a_time(open_page, server):
    """Of two maps the one that is asked last; an address names its slot; a difference has no steps."""
    other = {"preset": "qwen2.5", "len": 8200}
    page = open_page(fragment("table", LLAMA, other, cur="8192,29", why="b"))
    assert opened(page) == stated(server, other, [8192, 29])
    assert page.attribute('figure:has([data-why])', "data-config") == "b"
    page.click(BUTTON)
    page.comes(lambda: page.attribute('figure:has([data-why])', "data-config") == "a", "the other's steps")
    opened(page)
    assert page.count("[data-why]") == 1 and page.read(SHOWN) == stated(server, LLAMA, [8192, 29]) and page.address()["why"] == "a"
    page.go(fragment("table", LLAMA, other, on="b-a", why="a"))
    assert not page.read("return [...document.querySelectorAll('figure[data-config=\"b-a\"] [data-action=why]')].filter((one) => !one.hidden).length")


@pytest.mark.parametrize("width, lang, theme", [(390, "zh", "dark"), (768, "en", "dark"), (1440, "zh", "light"), (390, "en", "light")])
def test_they_are_read_everywhere(open_page, narrow, server, axe, width, lang, theme):
    narrow(width, 844)
    page = open_page(fragment("table", LLAMA, cur="8192,29", why="a", lang=lang, theme=theme))
    assert opened(page) == stated(server, LLAMA, [8192, 29], lang=lang)
    box, canvas = page.read("""return ['[data-why]', 'canvas[data-heat]'].map((one) => document.querySelector(one).getBoundingClientRect())
        .map(({ left, right, top, bottom }) => [left, right, top, bottom])""")
    assert box[0] >= 0 and box[1] <= width and page.read(looks.WIDE) <= width
    assert box[1] - box[0] >= min(width, 360) and box[3] <= 844, "all of it can be read, by scrolling within it"
    assert 0 <= canvas[2] and (canvas[3] <= box[2] if width == 390 else canvas[1] <= box[0] + 1 or canvas[2] < box[2]), "the picture is seen beside it or above it"
    wide = page.read("""return [...document.querySelectorAll('.why-value, .why-formula, .why-error')].filter((one) => one.scrollWidth > one.clientWidth + 1
        || one.getBoundingClientRect().right > innerWidth).map((one) => one.textContent)""")
    assert wide == []
    assert page.run(looks.CONTRAST) == [] and page.run(looks.SMALL) == []
    looks.speaks(page, lang)
    if axe:
        page.run(axe)
        assert page.driver.execute_async_script(looks.RUN) == []


def test_another_language_asks_for_its_sentences(open_page, server):
    page = open_page(fragment("table", LLAMA, cur="8192,29", why="a"))
    opened(page)
    page.go(fragment("table", LLAMA, cur="8192,29", why="a", lang="zh"))
    page.comes(lambda: page.read(SHOWN) == stated(server, LLAMA, [8192, 29], lang="zh"), "Chinese steps")


def test_in_a_story_they_are_over_its_text(open_page):
    page = open_page("view=story&story=three-encodings&sec=2")
    until(lambda: page.count('#fig-table-viridis [data-action="why"]:not([hidden])'), what="the figure")
    page.settle()
    page.click('#fig-table-viridis [data-action="why"]')
    until(lambda: page.count("[data-why] [data-step]"), what="the steps")
    page.settle()
    why, canvas = page.read("""return ['[data-why]', '#fig-table-viridis canvas[data-heat]'].map((one) => document.querySelector(one).getBoundingClientRect())
        .map(({ left, right, top, bottom }) => [left, right, top, bottom])""")
    assert 0 <= why[0] and why[1] <= canvas[0] + 1 and 0 <= why[2] and why[3] <= 900


def test_a_diagnosis_leads_to_both(open_page, server):
    """Of the first number that differs: the steps of the believed one and of the found one."""
    page = open_page("view=diagnose")
    until(lambda: page.count("[data-derive]") == 2, what="two links")
    page.settle()
    shown = page.read("return ['expected', 'found'].map((one) => document.querySelector(`data[data-what=${one}]`).value)")
    links = page.read("return [...document.querySelectorAll('[data-derive]')].map((one) => one.getAttribute('href'))")
    texts = [server.get(link).body.decode() for link in links]
    assert [text.split()[2] for text in texts] == shown and shown[0] != shown[1]


# ---- The formula of the form ----


TEXTS = "return [...document.querySelectorAll('[data-card=\"a\"] [data-line]')].map((one) => [one.dataset.line, one.querySelector('math').textContent, one.querySelector('p').firstChild.textContent])"


def content(markup):
    return html.unescape(re.sub(r"<[^>]*>", "", markup)).replace("\u00a0", " ")


def lines_of(server, name, kind, lang):
    answer = server.get(f"/schemes/{name}?notation=mathml").json()
    own = next((one["formula"] for one in answer.get("scalings", []) if one["name"] == kind), [])
    replaced, lines = {line["symbol"] for line in own}, []
    for line in answer["formula"]:
        if line["symbol"] not in replaced:
            lines.append(line)
        elif own:
            lines += own
            own = []
    return [[line["symbol"], content(line["mathml"]), line["says_zh" if lang == "zh" else "says"]] for line in lines]


def shown_lines(page):
    return [[symbol, text.replace("\u00a0", " "), says] for symbol, text, says in page.read(TEXTS)]


@pytest.mark.parametrize("fields, scheme, kind", [({"preset": "llama-3.1", "len": 64}, "rope", "llama3"), ({"scheme": "sinusoidal", "dim": 16, "len": 8}, "sinusoidal", None)])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_formula_is_that_of_the_scheme(visit, server, fields, scheme, kind, lang):
    page = visit(fragment("table", fields, lang=lang))
    page.run("document.querySelector('[data-card=\"a\"] [data-formula]').open = true")
    until(lambda: page.count("[data-line]"), what="the formula")
    page.settle()
    assert shown_lines(page) == lines_of(server, scheme, kind, lang)
    assert page.count("[data-line] math") == len(page.read(TEXTS)) and not page.count("[data-line] [style]")
    assert set(page.read("return [...document.querySelectorAll('[data-line] math, [data-line] math *')].map((one) => one.namespaceURI)")) == {"http://www.w3.org/1998/Math/MathML"}


def test_a_symbol_leads_to_its_control(open_page):
    page = open_page(fragment("table", {"scheme": "rope", "len": 64}))
    page.run("document.querySelector('[data-card=\"a\"] [data-formula]').open = true")
    until(lambda: page.count('[data-uses="base"]'), what="the formula")
    page.click('[data-uses="base"]')
    assert page.focused_field() == "base"


def test_another_scaling_is_in_the_formula_at_once(open_page, server):
    page = open_page(fragment("table", {"scheme": "rope", "len": 64}))
    page.run("document.querySelector('[data-card=\"a\"] [data-formula]').open = true")
    until(lambda: page.count("[data-line]"), what="the formula")
    page.go(fragment("table", {"scheme": "rope", "len": 64, "scaling": {"type": "linear", "factor": 2}}))
    page.comes(lambda: shown_lines(page) == lines_of(server, "rope", "linear", "en"), "the line of the scaling")


def test_links_of_stories_open_the_steps(open_page, server):
    """Each number that a story explains: the address of its link shows the steps."""
    stories = {story: server.get(f"/ui/{build(server)}/stories/{story}.en.md").body.decode() for story in
               ("designing", "introduction", "three-encodings", "sin-and-cos", "absolute-relative")}
    links = [link for text in stories.values() for link in re.findall(r"\]\((#view=table&[^)\s]*why=a[^)\s]*)\)", text)]
    assert len(links) >= 5
    for link in links:
        page = open_page(link[1:])
        shown = opened(page)
        configuration = json.loads(urllib.parse.unquote(re.search(r"&a=([^&]*)", link)[1]))
        assert shown == stated(server, configuration, [int(i) for i in shown[1].split(",")], tensor=shown[0])


def build(server):
    return re.search(r'/ui/(\w+)', server.get("/").body.decode())[1]
