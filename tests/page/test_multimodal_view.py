"""The view `multimodal`: its blocks, lines, grids and caption against ids asked for by the test, and what changes the segments."""
import json
import re
import urllib.parse

from selenium.webdriver.common.action_chains import ActionChains

from browser import fragment, until
from lines import Lines
from probes import post

IMAGE = {"preset": "qwen2.5-vl", "segments": [{"type": "text", "len": 3}, {"type": "image", "grid": [1, 4, 8]}, {"type": "text", "len": 5}]}
VIDEO = {"preset": "qwen2.5-vl", "segments": [{"type": "text", "len": 2}, {"type": "video", "grid": [3, 4, 4], "second_per_grid": 0.5}]}
FIGURE = 'figure[data-figure="multimodal"][data-config="{}"]'
AXES = ("temporal", "height", "width")


def asked(server, request):
    """ids [3][n], rope_delta."""
    tensors = json.loads(post(server, "/encode", **request, outputs=["positions", "rope_delta"]))["tensors"]
    return tensors["positions"]["data"], tensors["rope_delta"]["data"]


def segments(page, slot="a"):
    """Those of the address."""
    found = re.search(rf"&{slot}=([^&]*)", page.run("return location.hash"))
    return json.loads(urllib.parse.unquote(found[1]))["segments"]


def blocks(page, slot="a"):
    return page.run("return [...document.querySelectorAll(arguments[0] + ' [data-segment]')].map((b) => [b.dataset.type, Number(b.dataset.count)])", FIGURE.format(slot))


def said(page, what, slot="a"):
    return page.run("return Number(document.querySelector(arguments[0])?.value)", f'{FIGURE.format(slot)} figcaption data[data-what="{what}"]')


def drag(page, selector, dx):
    ActionChains(page.driver).click_and_hold(page.find(selector)).move_by_offset(dx // 2, 0).move_by_offset(dx - dx // 2, 0).release().perform()
    page.settle()


def test_blocks_lines_grid_and_caption_say_what_the_service_says(open_page, server):
    page = open_page(fragment("multimodal", IMAGE, cur="0,7"))
    ids, delta = asked(server, IMAGE)
    assert page.state() == "ready" and blocks(page) == [["text", 3], ["image", 8], ["text", 5]]
    lines = Lines(page, "multimodal")
    assert list(lines.legend) == [f"a:{axis}" for axis in AXES]
    assert not lines.missing("a:temporal", list(enumerate(ids[0])), reach=3)  # the one in front
    assert not lines.missing("a:width", [(i, ids[2][i]) for i in range(16) if ids[2][i] not in (ids[0][i], ids[1][i])], reach=3)
    assert [said(page, axis) for axis in AXES] == [row[7] for row in ids] and said(page, "rope_delta") == delta
    cells = page.run("return [...document.querySelectorAll('[data-grid] td[data-token]')].map((td) => [td.dataset.token, td.dataset.t, td.dataset.h, td.dataset.w].map(Number))")
    assert cells == [[i, *(row[i] for row in ids)] for i in range(3, 11)]
    edges = page.run("return [...document.querySelectorAll('[data-segment]')].map((b) => b.getBoundingClientRect().right)")
    left = page.run("return document.querySelector('canvas[data-lines]').getBoundingClientRect().left")
    for edge, end in zip(edges, (3, 11, 16)):
        assert abs(left + lines.pixel(end - 0.5, 0)[0] - edge) < 2, (edge, end)


def test_segments_are_stretched_moved_added_and_removed_and_the_address_has_them(open_page, server):
    page = open_page(fragment("multimodal", IMAGE))
    page.run("const s = document.querySelector('[data-slider=w]'); s.value = 12; s.dispatchEvent(new Event('input', { bubbles: true }))")
    page.settle()
    assert segments(page)[1]["grid"] == [1, 4, 12] and blocks(page)[1] == ["image", 12]
    width = page.run("return document.querySelector('[data-segment=\"1\"]').getBoundingClientRect().width")
    drag(page, '[data-segment="1"] .segment-edge', -round(width / 2))
    assert segments(page)[1]["grid"] == [1, 4, 6] and blocks(page)[1] == ["image", 6]
    drag(page, '[data-segment="1"]', round(page.run("return document.querySelector('.segments').getBoundingClientRect().width") / 2))
    assert [one["type"] for one in segments(page)] == ["text", "text", "image"]
    page.click("[data-edit=earlier]")
    page.click("[data-edit=video]")
    page.settle()
    assert [one["type"] for one in segments(page)] == ["text", "image", "video", "text"]
    ids, delta = asked(server, {**IMAGE, "segments": segments(page)})
    assert said(page, "rope_delta") == delta and sum(count for _, count in blocks(page)) == len(ids[0])
    page.click("[data-edit=drop]")
    page.settle()
    assert [kind for kind, _ in blocks(page)] == ["text", "image", "text"] and '"grid"' in page.copied("json")
    hash_ = page.run("return location.hash").lstrip("#")
    before = blocks(page)
    page = open_page(hash_)
    assert blocks(page) == before


def test_frames_of_a_video_and_several_configurations(open_page, server):
    page = open_page(fragment("multimodal", VIDEO, {"scheme": "rope", "len": 9}, {"scheme": "alibi"}, lang="zh"))
    ids, _ = asked(server, VIDEO)
    assert [page.state(slot) for slot in "abc"] == ["ready", "ready", "refused"]
    frames = page.run("return [...document.querySelectorAll('[data-grid]')].map((g) => [...g.querySelectorAll('td[data-token]')].map((td) => Number(td.dataset.t)))")
    assert [time for frame in frames for time in frame] == ids[0][2:] and len(frames) == 3
    assert "multimodal." not in page.text("main") and "rope" in page.notice("refused")
    page.click(f"{FIGURE.format('b')} [data-action=start]")
    page.settle()
    assert len(segments(page, "b")) == 3 and len(blocks(page, "b")) == 3


def test_what_the_service_refuses_is_said_and_can_be_undone(open_page):
    page = open_page(fragment("multimodal", IMAGE))
    page.run("const f = document.querySelector('[data-field=h]'); f.value = 5; f.dispatchEvent(new Event('input', { bubbles: true }))")
    page.wait_state("refused")
    assert "divisible" in page.notice("refused")
    page.click("[data-action=undo]")
    until(lambda: page.state() == "ready", what="the picture again")
