"""Where two configurations part, in words above the views that compare them: against cosines computed with NumPy."""
import numpy as np

from browser import fragment, until
from lines import Lines

LLAMA, QWEN = {"preset": "llama-3.1", "len": 1024}, {"preset": "qwen2.5", "len": 1024}


def frequencies(base):
    return base ** (-np.arange(64) / 64)


def stretched(freq, factor=8.0, low=1.0, high=4.0, trained=8192):
    """The rule of Llama 3.1: long waves are divided by the factor, short ones stay, between them a ramp."""
    waves = 2 * np.pi / freq
    ramp = np.clip((trained / waves - low) / (high - low), 0, 1)
    return freq * ((1 - ramp) / factor + ramp)


def expected(first=0, n=1024):
    positions = np.arange(first, first + n)[:, None]
    difference = abs(np.cos(positions * frequencies(1e6)) - np.cos(positions * stretched(frequencies(5e5))))
    apart = difference > 0.01
    row = int(np.argmax(apart.any(axis=1)))
    return {
        "cols": np.flatnonzero(apart.any(axis=0)), "first": (row, int(np.argmax(apart[row]))),
        "most": tuple(int(i) for i in np.unravel_index(difference.argmax(), difference.shape)), "value": difference.max(),
    }


def shown(page):
    """{which: (row, col, text)} of the links, and the sentences."""
    until(lambda: page.all(".parting a[data-part=most]"), what="where the two part")
    links = page.run("return [...document.querySelectorAll('.parting a')].map((a) => [a.dataset.part, +a.dataset.row, +a.dataset.col, a.textContent])")
    return {which: (row, col, text) for which, *(row, col, text) in links}, page.text(".parting")


def test_where_llama_and_qwen_part(open_page):
    page = open_page(fragment("table", LLAMA, QWEN))
    links, text = shown(page)
    want = expected()
    assert links["first"][:2] == want["first"] and links["most"][:2] == want["most"]
    assert links["most"][2] == "position {}, pair {}".format(*want["most"])
    assert abs(float(page.attribute(".parting data[data-what=parting]", "value")) - want["value"]) < 1e-12
    cols = want["cols"]
    assert list(cols) == list(range(cols[0], cols[-1] + 1)) and f"{len(cols)} of 64 columns (pair {cols[0]} to {cols[-1]})" in text
    assert "within 1024 rows" in text and f"{want['value']:.5g}" in text
    fields = page.run("return [...document.querySelectorAll('[data-differs]')].map((one) => [one.dataset.differs, ...[...one.querySelectorAll('b')].map((b) => b.textContent)])")
    assert fields == [["base", "500000", "1000000"], ["scaling", "llama3", "default"]]
    page.click(".parting a[data-part=most]")   # the cursor goes there
    page.settle()
    assert page.run("return location.hash").endswith("cur={}%2C{}".format(*want["most"]))
    outputs = page.run("return [...document.querySelectorAll('figure [data-readout] output')].map((one) => +one.dataset.value)")
    assert abs(abs(outputs[1] - outputs[0]) - want["value"]) < 1e-6


def test_no_two_rules_of_two_models_look_alike(visit):
    """The rule of a configuration has its colour in both charts, and no other rule has it."""
    page = visit(fragment("scaling", {"preset": "llama-3.1", "len": 64}, {"preset": "qwen2.5", "len": 64}, lang="en"))
    charts = [Lines(page, slot).legend for slot in "ab"]
    assert len(charts[0]) > 5 and charts[0]["a:llama3"][0] == charts[1]["a:llama3"][0] != charts[0]["b:default"][0]
    for legend in charts:
        colors = [color for color, _ in legend.values()]
        assert len(set(colors)) == len(colors), legend


def test_positions_are_those_of_the_configurations(visit):
    page = visit(fragment("curves", {**LLAMA, "offset": 500, "len": 64}, {**QWEN, "offset": 500, "len": 64}, out="cos"))
    links, _ = shown(page)
    want = expected(500, 64)
    assert links["first"] == (*want["first"], "position {}, pair {}".format(500 + want["first"][0], want["first"][1]))
    assert links["most"][2] == "position {}, pair {}".format(500 + want["most"][0], want["most"][1])


def test_the_same_twice_and_two_schemes(visit):
    page = visit(fragment("table", LLAMA, LLAMA))
    until(lambda: "all numbers of the first 1024 rows are equal" in page.text(".parting"), what="that nothing parts")
    assert "are the same configuration" in page.text(".parting")
    page = visit(fragment("table", {"scheme": "rope", "len": 16}, {"scheme": "alibi", "len": 16}))
    page.comes(lambda: page.all("[data-differs=scheme]"), "the schemes")
    assert len(page.all("[data-differs]")) == 1 and not page.all(".parting a")   # no output in common
    page = visit(fragment("table", LLAMA))
    assert not page.run("return document.querySelector('.parting')?.checkVisibility() ?? false")


def test_the_sentence_is_chinese_on_the_chinese_page(visit):
    page = visit(fragment("table", LLAMA, QWEN, lang="zh"))
    links, text = shown(page)
    assert links["most"][:2] == expected()["most"] and "64 列里有" in text and "differ" not in text
