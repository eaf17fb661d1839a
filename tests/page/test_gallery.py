"""The start view: a card for each scheme, pairs of models, search, and links that lead where they say."""
import html
import json
import re
import urllib.parse

import pytest

from browser import PUT, keys_of, until
from conftest import start_server
from token_files import LINES, READER, bearer, token_server


@pytest.fixture(scope="module")
def schemes(server):
    return server.get("/schemes").json()["schemes"]


@pytest.fixture(scope="module")
def presets(server):
    return server.get("/presets").json()["presets"]


@pytest.fixture
def gallery(visit):
    """As another test may have left it, but for what that one looked for."""
    page = visit("view=gallery&lang=en")
    page.put('main input[type="search"]', "")
    return page


def links(page, name):
    """{value of data-NAME: its address}."""
    return dict(page.run("return [...document.querySelectorAll(`a[data-${arguments[0]}]`)].map(a => [a.dataset[arguments[0]], a.href])", name))


# ---- cards --------------------------------------------------------------------------------------------------------------


def test_a_card_for_each_scheme_by_family(gallery, schemes, server):
    assert set(links(gallery, "scheme")) == {row["name"] for row in schemes}
    families = {row["name"]: row["label"] for row in server.get("/schemes").json()["families"]}
    for row in schemes:
        card = gallery.find(f'a[data-scheme="{row["name"]}"]')
        assert row["label"] in card.text.lower() or row["label"] in card.text, row["name"]
        assert row["summary"][1:] in gallery.run("return arguments[0].textContent", card)
        assert gallery.run("return arguments[0].closest('section').querySelector('h2').textContent", card) == families[row["family"]]


def test_its_pictures_are_those_of_the_catalogue(gallery, schemes):
    found = dict(gallery.run("return [...document.querySelectorAll('a[data-scheme] img')].map(i => [i.closest('a').dataset.scheme, i.getAttribute('src')])"))
    assert found == {row["name"]: row["picture"] for row in schemes if row["picture"]}
    sizes = "return [...document.querySelectorAll('main img')].map(i => [i.getAttribute('src'), i.naturalWidth, i.getAttribute('width'), i.getAttribute('height')])"
    for image in gallery.all("main img"):
        gallery.run("arguments[0].scrollIntoView()", image)  # they load when near
    until(lambda: all(width for _, width, _, _ in gallery.run(sizes)), what="a picture in each card")
    assert all(width and height for _, _, width, height in gallery.run(sizes))
    for row in schemes:
        card = f'a[data-scheme="{row["name"]}"]'
        assert row["label"] in gallery.attribute(f"{card} img", "alt") if row["picture"] else row["name"] in gallery.text(f"{card} .thumb")


# ---- where links lead ---------------------------------------------------------------------------------------------------


def assert_opens(page, link, name):
    state = keys_of(link)
    page.go(link.split("#")[1])
    wanted = [slot for slot in "abcd" if slot in state] or ["a"]
    if state.get("on") == "b-a":
        wanted.append("b-a")
    states = page.run("return [...document.querySelectorAll('figure[data-figure]')].map(f => [f.dataset.figure, f.dataset.config, f.dataset.state])")
    for slot in wanted:
        own = [found for found in states if found[1] == slot]
        assert own and all(found == [state["view"], slot, "ready"] for found in own), (name, slot, states, page.run("return document.querySelector('figure')?.innerText.slice(0, 300)"))
    assert page.attribute("html", "data-busy") == "0"


@pytest.mark.slow
def test_every_scheme_opens(open_page, schemes):
    page = open_page()
    targets = links(page, "scheme")
    for row in schemes:
        state = keys_of(targets[row["name"]])
        assert state["a"]["scheme"] == row["name"]
        assert_opens(page, targets[row["name"]], row["name"])


def test_the_view_is_the_one_that_suits_the_scheme(gallery, schemes):
    views = {name: keys_of(link)["view"] for name, link in links(gallery, "scheme").items()}
    for row in schemes:
        if row["family"] == "bias":
            assert views[row["name"]] == "bias"
        if "/encode" not in row["endpoints"] or row["name"] == "none":
            assert views[row["name"]] == "attention"
    assert views["rope"] == views["sinusoidal"] == "table"


def test_a_card_opens_what_its_picture_shows(gallery, schemes):
    targets = links(gallery, "scheme")
    for row in schemes:
        state = keys_of(targets[row["name"]])
        if state["view"] == "table":
            query = dict(urllib.parse.parse_qsl(row["picture"].split("?")[1]))
            assert state.get("out") == query.get("outputs")
            for key in set(query) - {"outputs", "format"}:
                assert query[key] in (str(state["a"][key]), json.dumps(state["a"][key]), str(state["a"][key])[1:-1].replace(" ", "")), (row["name"], key)


def test_every_pair_opens(open_page, presets):
    page = open_page()
    targets = links(page, "pair")
    assert len(targets) >= 6
    for name, link in targets.items():
        state = keys_of(link)
        assert {state["a"]["preset"], state["b"]["preset"]} <= {preset["name"] for preset in presets}
        assert_opens(page, link, name)


def models(page):
    """Their links, which are made when the list of them opens."""
    page.run("document.querySelector('details:has(> .model-list)').open = true")
    return until(lambda: links(page, "preset"), what="the list of models")


def test_every_model_can_be_encoded(gallery, presets, server):
    """Its configuration, asked for itself: a page for each would take minutes."""
    targets = models(gallery)
    assert set(targets) == {preset["name"] for preset in presets}
    for name, link in targets.items():
        config = keys_of(link)["a"]
        assert config["preset"] == name
        assert server.post("/encode", {**config, "data": False}).status == 200, config


# ---- the slider ---------------------------------------------------------------------------------------------------------

# Both pictures as pixels: the policy lets no script read the address of what is shown.
SAME_PICTURE = """const [path, done] = arguments;
    const pixels = (image) => {
      const canvas = Object.assign(document.createElement('canvas'), { width: image.naturalWidth, height: image.naturalHeight });
      canvas.getContext('2d').drawImage(image, 0, 0);
      return [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data].join();
    };
    const other = new Image();
    other.src = path;
    other.decode().then(() => done(pixels(other) === pixels(document.querySelector('.live-picture'))), () => done(null));"""


def drag(page, value):
    page.run(PUT, 'main [data-slider="base"]', value, "input")


def assert_shows_its_base(page):
    base = page.attribute("main .live-value data", "value")
    state = keys_of(page.find('main .live [data-action="open"]').get_attribute("href"))
    assert state["view"] == "table" and state["a"]["scheme"] == "rope" and state["a"]["base"] == float(base)
    query = urllib.parse.urlencode({**state["a"], "outputs": "cos", "format": "png", "zoom": 2})
    assert page.driver.execute_async_script(SAME_PICTURE, f"/encode?{query}") is True
    return base


def test_the_document_begins_with_the_picture_of_the_slider(open_page, server):
    """It is there before a script has run, and the slider has nothing to move away from it."""
    [address] = re.findall(r'<img[^>]* src="([^"]*)"', html.unescape(server.get("/").body.decode()))
    gallery = open_page()
    state = keys_of(gallery.find('main .live [data-action="open"]').get_attribute("href"))
    path, query = address.split("?")
    assert path == "/encode"
    assert dict(urllib.parse.parse_qsl(query)) == {**{key: str(value) for key, value in state["a"].items()}, "outputs": "cos", "format": "png", "zoom": "2"}


def test_the_slider_shows_what_the_server_draws(open_page):
    gallery = open_page()
    assert assert_shows_its_base(gallery) == "10000"
    drag(gallery, 0)
    gallery.settle()
    assert assert_shows_its_base(gallery) == "100"
    for step in range(40):  # as a hand does: the last one wins
        drag(gallery, step)
    gallery.settle()
    assert assert_shows_its_base(gallery) == "800000"
    assert gallery.attribute('main [data-slider="base"]', "aria-valuetext") == "800000"


# ---- search -------------------------------------------------------------------------------------------------------------


def search(page, text):
    field = page.find('main input[type="search"]')
    field.clear()
    field.send_keys(text)


def visible(page, name):
    return page.run("return [...document.querySelectorAll(`a[data-${arguments[0]}]`)].filter(a => a.checkVisibility()).map(a => a.dataset[arguments[0]])", name)


@pytest.mark.parametrize("query, scheme, model", [("rope", "rope", "llama-3.1"), ("旋转", "rope", "qwen2.5"), ("ALiBi", "alibi", "bloom"),
                                                  ("llama-3.3-70b", None, "llama-3.1"), ("t5 11b", None, "t5-11b"), ("nothing-like-this", None, None)])
def test_search_finds_cards_and_models_and_says_how_many(gallery, schemes, query, scheme, model):
    search(gallery, query)
    cards, found = visible(gallery, "scheme"), visible(gallery, "preset")
    assert scheme in [None, *cards] and model in [None, *found] and len(cards) < 12 and len(found) < 130
    counts = gallery.text('main [role="status"]')
    if model is None:
        assert cards == found == visible(gallery, "pair") == [] and counts.strip()
        gallery.put('main input[type="search"]', "")
        assert len(visible(gallery, "scheme")) == len(schemes) and gallery.text('main [role="status"]') == "" and visible(gallery, "story")
    else:
        assert str(len(cards)) in counts and str(len(found)) in counts


# ---- language and tokens -----------------------------------------------------------------------------------------------------


def test_language_changes_texts_and_not_pictures(open_page, schemes):
    gallery = open_page()
    gallery.run("window.kept = [...document.querySelectorAll('main img')]; window.asked = performance.getEntriesByType('resource').length")
    gallery.click('[data-action="lang"]')
    until(lambda: gallery.attribute("html", "lang") == "zh-CN", what="Chinese")
    for row in schemes:
        assert row["label_zh"] in gallery.text(f'a[data-scheme="{row["name"]}"]'), row["name"]
    assert gallery.run("return [...document.querySelectorAll('main img')].every((image, i) => image === kept[i])")
    gallery.click('[data-action="lang"]')
    until(lambda: gallery.attribute("html", "lang") == "en", what="English")
    gallery = open_page("lang=zh")  # links keep the language of the address
    assert all(keys_of(link)["lang"] == "zh" for targets in (links(gallery, "scheme"), links(gallery, "pair"), models(gallery)) for link in targets.values())


def test_with_a_token_pictures_are_fetched(open_page):
    with token_server(LINES) as guarded:
        page = open_page(url=guarded.url, settle=False)
        page.give(READER)
        until(lambda: page.all("a[data-scheme]"), what="the gallery")
        for image in page.all("main img"):
            page.run("arguments[0].scrollIntoView()", image)
        images = "return [...document.querySelectorAll('main img')].map(i => [i.src.split(':')[0], i.naturalWidth])"
        until(lambda: all(width for _, width in page.run(images)), what="a picture in each card")
        assert {scheme for scheme, _ in page.run(images)} == {"blob"}
        assert READER not in page.run("return document.documentElement.outerHTML + location.href + JSON.stringify(localStorage)")
        picture = page.run("return JSON.stringify(performance.getEntriesByType('resource').map(e => e.name))")
        assert READER not in picture
        page.open()  # private again: the token lived in memory
        assert guarded.get("/schemes", bearer(READER)).status == 200


def test_a_stored_preset_is_among_the_models(open_page):
    with start_server() as own:
        body = {"config": {"scheme": "rope", "head_dim": 32, "base": 7.0}, "note": "ours"}
        assert own.request("PUT", "/presets/team-a-rope", json.dumps(body).encode()).status == 201
        gallery = open_page(url=own.url)
        search(gallery, "team-a")
        assert visible(gallery, "preset") == ["team-a-rope"]
        gallery.do('a[data-preset="team-a-rope"]')
        assert keys_of(gallery.driver.current_url)["a"]["preset"] == "team-a-rope"
        states = gallery.run("return [...document.querySelectorAll('figure[data-figure]')].map(f => f.dataset.state)")
        assert states and set(states) == {"ready"}


def test_the_dialog_for_a_token_is_chinese_on_the_chinese_page(open_page):
    """The first refusal comes before the page knows its language, and speaks of headers: what was asked without a token needs no reason."""
    with token_server(LINES) as server:
        page = open_page("view=gallery&lang=zh", server.url, settle=False)
        until(lambda: page.all("dialog[open] [data-field=token]"), what="the dialog")
        assert "Authorization" not in page.text("dialog[open]") and not page.all(".token-detail")
        page.find("dialog[open] [data-field=token]").send_keys("wrong", "\n")
        until(lambda: page.all("dialog[open] .token-detail"), what="the reason")
        assert re.search("[\u4e00-\u9fff]", page.text("dialog[open] .token-detail"))
