"""Heat maps: every pixel that is drawn has the colour of the value that the API gives for its cell."""
import urllib.request

import numpy as np
import png_reader
import pytest

from browser import fragment, until
from probes import Heat, array, attributes, get, shape_of

SINUSOIDAL = {"scheme": "sinusoidal", "dim": 64, "len": 128}
ROPE = {"scheme": "rope", "head_dim": 64, "len": 256}
LARGE = {"scheme": "sinusoidal", "dim": 512, "len": 5003}
ALIBI = {"scheme": "alibi", "num_heads": 8, "len": 60, "causal": True}


def shown(visit, server, request, **keys):
    page = visit(fragment("table", request, **keys))
    heat = Heat(page)
    heat.check_against(server, request, shape_of(server, request, heat.output))
    return page, heat


# ---- Values and colours --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [SINUSOIDAL, ROPE, {"scheme": "binary", "bits": 8, "len": 40}, {"scheme": "fourier", "grid": [9, 13]},
                                      {"scheme": "t5", "num_heads": 4, "len": 33, "seed": 3}, {"scheme": "learned", "dim": 48, "len": 70, "seed": 5},
                                      {**SINUSOIDAL, "len": 1}, {"scheme": "sinusoidal", "dim": 2, "len": 3}, {"scheme": "sinusoidal", "dim": 16, "positions": [0.5, -3, 2.25e11]}],
                         ids=lambda request: request["scheme"])
def test_every_cell_has_the_colour_of_its_value(visit, server, request_):
    _, heat = shown(visit, server, request_)
    shape = shape_of(server, request_, heat.output)
    assert heat.row0 == heat.col0 == 0 and heat.row_step == heat.col_step == 1
    assert (heat.rows, heat.cols) == tuple(shape[-2:]), "fit shows all"


@pytest.mark.parametrize("output", ["cos", "sin"])
def test_an_output_is_chosen(visit, server, output):
    _, heat = shown(visit, server, ROPE, out=output)
    assert heat.output == output


@pytest.mark.parametrize("cmap", ["viridis", "magma", "coolwarm", "gray"])
def test_colours_are_those_of_the_server(visit, server, cmap):
    _, heat = shown(visit, server, SINUSOIDAL, cmap=cmap)
    assert heat.cmap == cmap


def test_what_is_masked_is_transparent(visit, server):
    page, heat = shown(visit, server, ALIBI)
    alpha = heat.blocks()[..., 3]
    assert (alpha[np.triu_indices(60, 1)] == 0).all() and (alpha[np.tril_indices(60)] == 255).all()


@pytest.mark.parametrize("head", [0, 3, 7])
def test_leading_axes_stand_where_the_address_says(visit, server, head):
    _, heat = shown(visit, server, ALIBI, at=head)
    assert heat.at == [head]


def test_packed_sequences_are_masked_across(visit, server):
    _, heat = shown(visit, server, {"scheme": "kerple", "num_heads": 4, "lens": [7, 9, 2]})
    assert (heat.blocks()[:7, 7:, 3] == 0).all()


# ---- The range -------------------------------------------------------------------------------------------------------------------


def test_the_range_is_the_catalogue_s_if_it_has_one(visit, server):
    _, heat = shown(visit, server, {**SINUSOIDAL, "len": 2})
    row = next(row for row in get(server, "/schemes/sinusoidal")["outputs"] if row["name"] == "encoding")
    assert [heat.min, heat.max] == row["range"] == [-1, 1]


@pytest.mark.parametrize("request_", [ALIBI, {"scheme": "t5", "num_heads": 4, "len": 33, "seed": 3}, {"scheme": "learned", "dim": 48, "len": 70, "seed": 5}], ids=lambda request: request["scheme"])
def test_otherwise_it_is_that_of_the_whole(visit, server, request_):
    """Also of the heads that are not shown."""
    _, heat = shown(visit, server, request_)
    whole = array(server, request_, heat.output, dtype="f32")
    whole = whole[np.isfinite(whole)]
    assert (heat.min, heat.max) == (float(whole.min()), float(whole.max()))


def test_a_window_keeps_the_range_of_the_whole(visit, server):
    request = {"scheme": "learned", "dim": 256, "len": 600, "seed": 5}
    _, heat = shown(visit, server, request, win="200,100", zoom="8x8")
    whole = array(server, request, heat.output, dtype="f32")
    assert (heat.min, heat.max) == (float(whole.min()), float(whole.max()))


def test_the_address_sets_the_range(visit, server):
    _, heat = shown(visit, server, SINUSOIDAL, lo="-0.25", hi="0.5")
    assert (heat.min, heat.max) == (-0.25, 0.5)  # beyond it the first and last colours


def test_several_figures_share_the_widest_range(visit, server):
    requests = [{"scheme": "learned", "dim": 32, "len": 40, "seed": seed, "std": std} for seed, std in ((1, 0.5), (2, 2), (3, 1))]
    page = visit(fragment("table", *requests))
    heats = [Heat(page, slot) for slot in "abc"]
    wholes = [array(server, request, heat.output, dtype="f32") for request, heat in zip(requests, heats)]
    for request, heat in zip(requests, heats):
        assert heat.min == float(min(whole.min() for whole in wholes)) and heat.max == float(max(whole.max() for whole in wholes))
        heat.check_against(server, request, shape_of(server, request, heat.output))


def test_beyond_64_mebi_elements_it_is_that_of_the_window(visit, server):
    request = {"scheme": "learned", "dim": 4096, "len": 16384 + 1, "seed": 1, "std": 1}
    page = visit(fragment("table", request, win="8000,1000", zoom="8x8"))
    heat = Heat(page)
    values = array(server, request, heat.output, dtype="f32", slice=heat.window([16385, 4096]))
    heat.check(values)
    assert (heat.min, heat.max) == (float(values.min()), float(values.max()))


def test_one_value_everywhere_is_drawn(visit, server):
    request = {"scheme": "none", "dim": 16, "len": 20}
    page = visit(fragment("table", request))
    heat = Heat(page)
    blocks = heat.blocks()
    assert np.isfinite([heat.min, heat.max]).all() and (blocks[..., 3] == 255).all() and len(np.unique(blocks.reshape(-1, 4), axis=0)) == 1


# ---- Zoom and window -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduce", ["mean", "min", "max", "absmax", "sample"])
def test_zoomed_out_a_pixel_is_the_server_s_reduction(visit, server, reduce):
    _, heat = shown(visit, server, LARGE, red=reduce)
    assert heat.reduce == reduce and heat.row_step > 1 and heat.row_px == 1
    assert heat.rows * heat.row_step >= 5003, "fit shows all, the last rows too"


@pytest.mark.parametrize("zoom, steps, px", [("1x1", (1, 1), (1, 1)), ("8x8", (1, 1), (8, 8)), ("1/7x1", (7, 1), (1, 1)), ("1/133x2", (133, 1), (1, 2)), ("3x1/4", (1, 4), (3, 1)), ("1/16x1/16", (16, 16), (1, 1))])
def test_the_zoom_of_the_address(visit, server, zoom, steps, px):
    page, heat = shown(visit, server, LARGE, zoom=zoom)
    assert ((heat.row_step, heat.col_step), (heat.row_px, heat.col_px)) == (steps, px)
    if steps[0] > 1:
        assert str(steps[0]) in page.text("figure")  # the toolbar says it


@pytest.mark.parametrize("window", ["0,0", "17,5", "250,250", "255,255", "256,256", "257,3", "1000,500", "4990,500", "5002,511"])
def test_windows_across_the_borders_of_what_is_asked(visit, server, window):
    """Every cell of the window, wherever the page cuts the table into requests; the last row and column too."""
    row, col = map(int, window.split(","))
    _, heat = shown(visit, server, LARGE, win=window, zoom="2x2")
    assert (heat.row0, heat.col0) == (row, col), "the first cell is kept, even if room stays empty"


@pytest.mark.parametrize("window", ["999,333", "4998,0", "77,77"])
@pytest.mark.parametrize("reduce", ["mean", "absmax"])
def test_reduced_windows_begin_at_multiples(visit, server, window, reduce):
    row, col = map(int, window.split(","))
    _, heat = shown(visit, server, LARGE, win=window, zoom="1/9x1/3", red=reduce)
    assert heat.row0 == row // 9 * 9 and heat.col0 == col // 3 * 3


def test_masked_cells_are_left_out_of_a_reduction(visit, server):
    request = {"scheme": "alibi", "num_heads": 2, "len": 3000, "causal": True}
    for reduce in ("mean", "min"):
        _, heat = shown(visit, server, request, red=reduce)
        assert heat.row_step > 1 and (heat.blocks()[0, 5:, 3] == 0).all()


def test_four_thousand_squared_in_windows(visit, server):
    request = {"scheme": "alibi", "num_heads": 1, "len": 4096}
    for keys in ({}, {"zoom": "1x1", "win": "2000,2000"}, {"zoom": "1/2x1/2", "win": "1024,3000"}):
        shown(visit, server, request, **keys)


# ---- Differences -----------------------------------------------------------------------------------------------------------------


def test_a_difference_is_b_minus_a(visit, server):
    a, b = {**ROPE, "base": 10000}, {**ROPE, "base": 500000}
    page = visit(fragment("table", a, b, on="b-a"))
    heat = Heat(page, "b-a")
    window = heat.window(shape_of(server, a, heat.output))
    difference = array(server, b, heat.output, slice=window) - array(server, a, heat.output, slice=window)
    heat.check(difference)
    assert heat.cmap == "coolwarm" and heat.min == -heat.max < 0
    assert heat.max >= np.abs(difference).max() or heat.max == 2


def test_a_difference_zoomed_out(visit, server):
    a, b = LARGE, {**LARGE, "base": 20000}
    page = visit(fragment("table", a, b, on="b-a", zoom="1/11x1/2", win="100,40"))
    heat = Heat(page, "b-a")
    form = {"slice": heat.window([5003, 512]), "reduce": heat.reduce}
    heat.check(array(server, b, heat.output, **form) - array(server, a, heat.output, **form))


def test_a_tiny_difference_is_not_lost(visit, server):
    """In f32 both are the same."""
    a, b = SINUSOIDAL, {**SINUSOIDAL, "base": 10000.0000001}
    page = visit(fragment("table", a, b, on="b-a"))
    heat = Heat(page, "b-a")
    difference = array(server, b, heat.output) - array(server, a, heat.output)
    assert 0 < np.abs(difference).max() < 1e-7
    heat.check(difference)
    assert len(np.unique(heat.blocks().reshape(-1, 4), axis=0)) > 20


# ---- What stands beside ------------------------------------------------------------------------------------------------------------


def test_the_figure_keeps_its_promises(visit, server):
    page = visit(fragment("table", ROPE))
    assert page.attribute("figure", "data-figure") == "table" and page.state() == "ready"
    assert page.text("figure figcaption[data-caption]").strip()
    canvas = attributes(page, page.find("canvas[data-heat]"))
    assert canvas["tabindex"] == "0" and canvas["role"] == "application"
    assert all(word in canvas["aria-label"] for word in ("rope", "cos", "256", "32"))
    assert page.text("#" + canvas["aria-describedby"]).strip()
    bar, heat = attributes(page, page.find("[data-colorbar]")), Heat(page)
    assert (float(bar["data-min"]), float(bar["data-max"]), bar["data-cmap"]) == (heat.min, heat.max, heat.cmap)


# [left, right, text] of the bar, then of its ticks.
BAR = """const bar = document.querySelector(`figure[data-config="${arguments[0]}"] [data-colorbar]`);
return [bar, ...bar.querySelectorAll('.colorbar-ticks > span')].map((one) => [one, one.getBoundingClientRect()]).map(([one, { left, right }]) => [left, right, one.textContent])"""


@pytest.mark.parametrize("width", [1440, 390])
def test_texts_of_a_colour_bar_do_not_meet_and_stand_at_their_numbers(visit, driver, width):
    tiny = {"scheme": "learned", "dim": 8, "len": 8, "std": 1.3e-7}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    try:
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
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_numbers_in_the_caption_are_served_numbers(visit, server):
    page = visit(fragment("table", {"scheme": "learned", "dim": 48, "len": 70, "seed": 5}))
    heat = Heat(page)
    for datum in page.all("figcaption data[value][data-what]"):
        given = attributes(page, datum)
        assert given["data-what"] not in ("min", "max") or float(given["value"]) in (heat.min, heat.max)


def test_a_language_draws_no_heat_map_again(open_page):
    page = open_page(fragment("table", ROPE))
    page.run("""window.drawn = 0;
        for (const name of ['putImageData', 'drawImage', 'fillRect', 'clearRect']) {
          const old = CanvasRenderingContext2D.prototype[name];
          CanvasRenderingContext2D.prototype[name] = function (...given) { drawn += this.canvas.hasAttribute('data-heat'); return old.apply(this, given); };
        }""")
    before = page.text("figcaption[data-caption]")
    page.click('[data-action="lang"]')
    until(lambda: page.run("return document.documentElement.lang") == "zh-CN", what="Chinese")
    page.settle()
    assert page.run("return drawn") == 0 and page.text("figcaption[data-caption]") != before


def test_a_repaint_is_quick(open_page, server):
    """At most one putImageData a repaint, measured as posenc:paint."""
    page = open_page(fragment("table", {"scheme": "alibi", "num_heads": 1, "len": 4096}))
    page.run("""window.puts = 0; const old = CanvasRenderingContext2D.prototype.putImageData;
        CanvasRenderingContext2D.prototype.putImageData = function (...given) { puts += this.canvas.hasAttribute('data-heat'); return old.apply(this, given); };
        performance.clearMeasures('posenc:paint');""")
    page.hash(fragment("table", {"scheme": "alibi", "num_heads": 1, "len": 4096}, cmap="magma"))
    until(lambda: Heat(page).cmap == "magma", what="other colours")
    page.settle()
    paints = page.run("return performance.getEntriesByName('posenc:paint').map((e) => e.duration)")
    assert paints and page.run("return puts") == 1
    assert min(paints) < 100


def test_the_first_picture_is_marked_once(open_page):
    page = open_page(fragment("table", ROPE))
    assert page.run("return performance.getEntriesByName('posenc:first-picture').length") == 1


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
