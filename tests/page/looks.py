"""What every view and story must look like: contrast, sizes, names, one language, no violation that axe-core finds."""
import re

CHINESE = re.compile(r"[\u3400-\u9fff]")

# Text on its background, by WCAG's ratio; what lies over a picture or is disabled does not count.
CONTRAST = """const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const seen = new Map();   // a page has a few colours, and reading a pixel of a canvas takes long
const rgba = (color) => { if (!seen.has(color)) seen.set(color, read(color)); return seen.get(color); };
const read = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
const over = (top, below) => top.slice(0, 3).map((value, i) => value * top[3] + below[i] * (1 - top[3]));
const light = (color) => { const [r, g, b] = color.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
function behind(node) { const layers = []; for (let at = node; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]); }
const weak = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.data.trim(), node = walker.currentNode.parentElement;
  if (!text || !node.checkVisibility({ visibilityProperty: true }) || node.closest('script, noscript, :disabled, option, .visually-hidden')) continue;
  const back = behind(node), color = over(rgba(getComputedStyle(node).color), back);
  const [hi, lo] = [light(color), light(back)].sort((a, b) => b - a);
  if ((hi + 0.05) / (lo + 0.05) < 4.5) weak.push(`${text.slice(0, 40)}: ${((hi + 0.05) / (lo + 0.05)).toFixed(2)}`);
}
return weak;"""

# Controls that a finger would miss.
SMALL = """return [...document.querySelectorAll('button, select, input, summary, nav a, a.button, canvas[tabindex]')]
  .filter((node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !node.closest('.visually-hidden'))
  .map((node) => [node.outerHTML.slice(0, 90), node.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && (box.width < 23.9 || box.height < 23.9)).map(([text, box]) => `${text} ${box.width}x${box.height}`)"""

# What a text of the page may not hold in a language; names of the field stand where no language translates them.
STRAY = """const chinese = arguments[0];
const apart = 'script, style, noscript, code, pre, kbd, samp, math, svg, [translate=no]';
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const wrong = [];
const bad = (text) => chinese ? /[A-Za-z]{2,} +[A-Za-z]{2,}/.test(text) : /[\\u3400-\\u9fff]/.test(text);
const foreign = (node) => { const lang = node.closest('[lang]').lang; return chinese ? lang === 'en' : lang.startsWith('zh'); };
while (walker.nextNode()) {
  const parent = walker.currentNode.parentElement;
  if (!parent.closest(apart) && !foreign(parent) && bad(walker.currentNode.data)) wrong.push(walker.currentNode.data.trim());
}
for (const node of document.querySelectorAll('[aria-label], [title], [placeholder], [alt]')) {
  for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
    const text = node.getAttribute(name);
    if (name === 'placeholder' && node.translate === false) continue;   /* a value, not a text of the page */
    if (text && !chinese && !foreign(node) && bad(text)) wrong.push(name + ': ' + text);
  }
}
return wrong;"""
NUMBERS = "return ['undefined', '[object', 'NaN'].filter((one) => document.body.innerText.includes(one))"
WIDE = "return document.documentElement.scrollWidth"

CONTROLS = {"button", "link", "textbox", "searchbox", "slider", "spinbutton", "combobox", "checkbox", "radio", "application", "dialog"}


def nameless(driver):
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    for command in ("enable", "disable"):  # else the document keeps its tree: each change of it costs a fifth more, also in later tests
        driver.execute_cdp_cmd(f"Accessibility.{command}", {})
    shown = [node for node in nodes if not node["ignored"] and node["role"]["value"] in CONTROLS]
    assert len(shown) > 20
    return [f'{node["role"]["value"]} {node["nodeId"]}' for node in shown if not node.get("name", {}).get("value", "").strip()]


def speaks(page, lang):
    """One language, and every control has a name in it: in English by the browser's own tree, whose making takes a second of the processor,
    in Chinese, which has every text that English has, by axe-core."""
    assert page.run("return document.documentElement.lang") == {"en": "en", "zh": "zh-CN"}[lang]
    assert lang == "zh" or nameless(page.driver) == []
    assert page.run(STRAY, lang == "zh") == []
    assert lang == "en" or CHINESE.search(page.driver.title) and CHINESE.search(page.text("main"))


# Each link of this page begins with #, so one that the row of links has scrolled away is taken for a link that skips something. The one
# that does is tested in test_frame.py. Of colours CONTRAST judges. Selectors of what is right are a fifth of the time.
RUN = """const [done] = arguments;
axe.run(document, { resultTypes: ['violations'], selectors: false, preload: false, rules: { 'skip-link': { enabled: false }, 'color-contrast': { enabled: false } } }).then(({ violations }) => done(violations.flatMap(({ id, nodes }) =>
  nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)}: ${failureSummary.slice(0, 160)}`))), (error) => done([String(error)]));"""


def violations(page, axe):
    """What axe-core finds, [] where it is not to be had."""
    if axe is None:
        return []
    if not page.run("return 'axe' in window"):
        page.run(axe)
    page.driver.set_script_timeout(120)
    try:
        return page.driver.execute_async_script(RUN)
    finally:
        page.driver.set_script_timeout(30)
