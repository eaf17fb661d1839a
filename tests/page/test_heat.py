"""What stands beside a heat map, repaints; the colours of its cells are rows of cases/views.jsonl."""
import urllib.request

import png_reader
import pytest
from selenium.webdriver.common.keys import Keys

from browser import fragment
from probes import Heat, array

ROPE = {"scheme": "rope", "head_dim": 64, "len": 256}


# ---- The range -------------------------------------------------------------------------------------------------------------------


def test_beyond_64_mebi_elements_it_is_that_of_the_window(visit, server):
    request = {"scheme": "learned", "dim": 4096, "len": 16384 + 1, "seed": 1, "std": 1}
    page = visit(fragment("table", request, win="8000,1000", zoom="8x8"))
    heat = Heat(page)
    values = array(server, request, heat.output, dtype="f32", slice=heat.window([16385, 4096]))
    heat.check(values)
    assert (heat.min, heat.max) == (float(values.min()), float(values.max()))


# ---- What stands beside ------------------------------------------------------------------------------------------------------------


# [left, right, text] of the bar, then of its ticks.
BAR = """const bar = document.querySelector(`figure[data-config="${arguments[0]}"] [data-colorbar]`);
return [bar, ...bar.querySelectorAll('.colorbar-ticks > span')].map((one) => [one, one.getBoundingClientRect()]).map(([one, { left, right }]) => [left, right, one.textContent])"""


@pytest.mark.parametrize("width", [1440, 390])
def test_texts_of_a_colour_bar_do_not_meet_and_stand_at_their_numbers(visit, narrow, width):
    tiny = {"scheme": "learned", "dim": 8, "len": 8, "std": 1.3e-7}
    narrow(width)
    page = visit(fragment("table", {**tiny, "seed": 1}, {**tiny, "seed": 2}))
    for slot in "ab":
        (from_, to, _), *ticks = page.run(BAR, slot)
        ticks.sort()
        has_fields = slot == "a"
        low, high = Heat(page, slot).min, Heat(page, slot).max
        assert ticks and all(before[1] <= after[0] for before, after in zip(ticks, ticks[1:])), (slot, ticks)
        for left, right, text in ticks:
            value, at = float(text.replace("\u2212", "-")), (left + right) / 2
            is_end = min(abs(value - low), abs(value - high)) < (high - low) / 100
            assert has_fields or from_ - 1 <= left and right <= to + 1
            assert is_end or abs(at - (from_ + (value - low) / (high - low) * (to - from_))) < 2, (slot, text)


def test_a_map_is_painted_once_for_other_colours_and_not_for_another_cell(open_page):
    page = open_page(fragment("table", {"scheme": "alibi", "num_heads": 1, "len": 4096}))
    page.run("""window.puts = 0; const old = CanvasRenderingContext2D.prototype.putImageData;
        CanvasRenderingContext2D.prototype.putImageData = function (...given) { puts += this.canvas.hasAttribute('data-heat'); return old.apply(this, given); };
        performance.clearMeasures('posenc:paint');""")
    for key, puts in ((Keys.ARROW_DOWN, 0), ("m", 1)):
        before = page.address()
        page.press("canvas[data-heat]", key)
        page.comes(lambda: page.address() != before, "what the key changes")
        assert page.run("return puts") == puts
    assert min(page.run("return performance.getEntriesByName('posenc:paint').map((e) => e.duration)")) < 100


def test_png_has_the_same_colours(visit, server):
    """The link of the request panel is the server's picture of this output."""
    page = visit(fragment("table", ROPE, cmap="magma"))
    href = page.run("return [...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href')).find((h) => h.includes('png') && h.includes('encode'))")
    assert href, "a link to the server's png"
    heat = Heat(page)
    with urllib.request.urlopen(href if href.startswith("http") else server.url + href) as answer:
        assert answer.headers["Content-Type"] == "image/png"
        picture = png_reader.Picture(answer.read())
    blocks = heat.blocks()
    scale = picture.height // blocks.shape[0], picture.width // blocks.shape[1]
    drawn = picture.palette[picture.pixels[::scale[0], ::scale[1]]]
    assert (drawn[:blocks.shape[0], :blocks.shape[1]] == blocks[..., :3]).all()
