"""The view `extrapolate`: shares beyond the training length, their lines over the length of evaluation, and both lengths."""
import json

from selenium.webdriver.common.action_chains import ActionChains

from browser import fragment, until
from lines import Lines, post

ROPE = {"scheme": "rope", "head_dim": 32, "len": 64}
ALIBI = {"scheme": "alibi", "num_heads": 4, "len": 64, "causal": True}


def ask(server, config, **lengths):
    return post(server.url, "/analyze", {**config, **lengths, "metrics": ["extrapolation"]})["results"][0]["extrapolation"]


def value(page, what, config="a"):
    return page.attribute(f'figure[data-config="{config}"] figcaption data[data-what="{what}"]', "value")


def facts(page, config="a"):
    rows = page.run("""return [...document.querySelectorAll(`figure[data-config="${arguments[0]}"] [data-fact]`)]
      .map((row) => [row.dataset.fact, [...row.querySelectorAll('data')].map((one) => one.value)])""", config)
    return {name: list(map(float, values)) for name, values in rows}


def test_captions_facts_and_lines_are_the_servers(open_page, server):
    page = open_page(fragment("extrapolate", ROPE, ALIBI, train=64, eval=320))
    for slot, config, headline in (("a", ROPE, "unseen_angles"), ("b", ALIBI, "mass_beyond")):
        lines = Lines(page, "extrapolate", slot)
        assert lines.scales == ("log", "linear") and page.state(slot) == "ready"
        expected = ask(server, config, train_len=64, eval_len=320)
        assert float(value(page, "value", slot)) == expected["value"]
        shown, attention = facts(page, slot), expected["attention"]
        assert shown["entropy"] == attention["entropy"] and shown["mean_distance"] == attention["mean_distance"]
        assert shown["unseen_pairs"] == [expected["unseen_pairs"]] and shown["mass_beyond"] == [attention["mass_beyond"]]
        assert list(lines.legend)[0] == f"{slot}:{headline}"
        points = [(length, ask(server, config, train_len=64, eval_len=length)["value"]) for length in (64, 128, 320, 1024, 4096)]
        assert lines.missing(f"{slot}:{headline}", points) == []
    assert value(page, "pair") == str(ask(server, ROPE, train_len=64, eval_len=320)["witness"]["pair"])


def test_two_models_have_their_own_length_of_training(open_page):
    """That of its scaling, else that of its note in the catalogue; one that is chosen holds for both."""
    models = [{"preset": "llama-3.1", "len": 1024}, {"preset": "qwen2.5", "len": 1024}]
    page = open_page(fragment("extrapolate", *models))
    assert [value(page, "train_len", slot) for slot in "ab"] == ["8192", "32768"]
    page = open_page(fragment("extrapolate", *models, train=512, eval=1024))
    assert [value(page, "train_len", slot) for slot in "ab"] == ["512", "512"]


def test_both_lengths_can_be_dragged_on_the_picture(open_page):
    page = open_page(fragment("extrapolate", ROPE, train=64, eval=256))
    canvas = page.find('figure[data-figure="extrapolate"] canvas[data-lines]')
    for key, length, other in (("eval", 256, 1500), ("train", 64, 30)):
        lines = Lines(page, "extrapolate")
        (x, y), (to, _) = lines.pixel(length, 0.5), lines.pixel(other, 0.5)
        box = canvas.rect
        ActionChains(page.driver).move_to_element_with_offset(canvas, x - box["width"] / 2, y - box["height"] / 2).click_and_hold() \
            .move_by_offset(int(to - x), 0).release().perform()
        page.settle()
        hash_value = int(page.run("return new URLSearchParams(location.hash.slice(1)).get(arguments[0])", key))
        assert abs(hash_value - other) < 0.05 * other
        assert value(page, f"{key}_len") == str(hash_value)
        assert page.attribute(f'[data-field="{key}"]', "type") == "number" and int(page.find(f'[data-field="{key}"]').get_property("value")) == hash_value


def test_lengths_nobody_named_are_the_servers(open_page, server):
    page = open_page(fragment("extrapolate", {"preset": "llama-3.1", "len": 64}, {"scheme": "learned", "dim": 8, "len": 64, "seed": 0}))
    assert [value(page, key) for key in ("train_len", "eval_len")] == ["8192", "16384"]
    assert value(page, "value", "b") == "0.5" and list(Lines(page, "extrapolate", "b").legend)[0] == "b:positions_without_row"
    page.run("const slider = document.querySelector('[data-slider=train]'); slider.value = 0; slider.dispatchEvent(new Event('input', { bubbles: true }))")
    page.settle()
    assert [value(page, key) for key in ("train_len", "eval_len")] == ["16", "32"] and value(page, "eval_len", "b") == "32"  # evaluation follows while none is named


def test_a_length_that_is_too_short_is_refused(open_page):
    page = open_page(fragment("extrapolate", ROPE, train=100, eval=50))
    assert page.state() == "refused" and "eval_len is 50" in page.text("figure [role=alert]")
    page.run("const field = document.querySelector('[data-field=eval]'); field.value = 400; field.dispatchEvent(new Event('input', { bubbles: true }))")
    page.settle()
    assert page.state() == "ready" and value(page, "eval_len") == "400"


def test_what_is_copied_gives_the_numbers(open_page, server):
    page = open_page(fragment("extrapolate", ROPE, ALIBI, train=64))
    assert json.loads(page.copied("json")) == {**ROPE, "metrics": ["extrapolation"], "outputs": ["unseen"], "train_len": 64}
    assert "rope-unseen.npy" in page.copied("curl")
    page.hash(fragment("extrapolate", ROPE, ALIBI, train=64, on="b"))
    until(lambda: "alibi" in page.copied("json"), what="the request in front")
    body = json.loads(page.copied("json"))
    assert post(server.url, "/analyze", body)["results"][0]["extrapolation"]["train_len"] == 64
    assert "alibi.json" in page.copied("curl") and "json.load(answer)" in page.copied("python")  # no tensor comes with it
