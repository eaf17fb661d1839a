"""A configuration in the words of other tools, as text to copy and in the card of tools: against /translate asked by ourselves."""
import json

import pytest

from browser import fragment, until
from probes import ask
from test_explain_view import CARD, LLAMA_31, choose

TAB, PANE = "#tab-tool", "#copy-tool"
READ = """const root = document.querySelector(arguments[0]), pre = root.querySelector('pre');
return { text: pre.hidden ? null : pre.textContent, losses: [...root.querySelectorAll('[data-loss]')].map((one) => [one.dataset.loss, one.textContent]),
  exact: root.querySelector('[data-exact]') !== null, notes: root.querySelector('.translation-notes').textContent }"""


def say(page, root, tool):
    page.run("const one = document.querySelector(`${arguments[0]} [data-field=tool]`); one.value = arguments[1]; one.dispatchEvent(new Event('change'))", root, tool)
    page.settle()
    return page.run(READ, root)


@pytest.fixture
def opened(open_page):
    """A page whose tab of tools is in front; another test finds it as it was."""
    pages = []

    def opened_at(fragment):
        page = open_page(fragment)
        pages.append(page)
        page.do(TAB)
        return page

    yield opened_at
    for page in pages:
        say(page, PANE, "")
        page.click("#tab-curl")


def test_every_tool_is_there_with_its_text_and_losses(opened, server):
    page = opened(fragment("table", {"preset": "llama-3.1", "len": 16}))
    names = [row["name"] for row in server.get("/schemes").json()["targets"]]
    assert page.run(f"return [...document.querySelectorAll('{PANE} [data-field=tool] option')].map((one) => one.value)") == ["", *names] and len(names) == 14
    exact = set()
    for name in ("transformers5", "vllm", "llama.cpp", "gguf", "megatron"):
        [entry] = ask(server, "/translate", preset="llama-3.1", to=name)["targets"]
        shown = say(page, PANE, name)
        assert shown["text"] == entry["text"] and shown["exact"] == entry["exact"]
        assert shown["losses"] == [[loss["what"], loss["detail"]] for loss in entry["loses"]]
        assert all(f"{field} {json.dumps(value)}" in shown["notes"] for field, value in entry["needs"].items())
        exact.add(shown["exact"])
    assert exact == {True, False}


def test_it_follows_the_form_and_the_language(opened, server):
    scaling = {"type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}
    page = opened(fragment("table", {"scheme": "rope", "head_dim": 64, "len": 16}, lang="en"))
    first = say(page, PANE, "llama.cpp")
    page.type("base", "77000", enter=True)
    until(lambda: "77000" in (page.run(READ, PANE)["text"] or ""), what="the base in the tool's words")
    assert "77000" not in first["text"]
    page.go(fragment("table", {"scheme": "rope", "head_dim": 64, "len": 16, "scaling": scaling}, lang="zh"))
    [entry] = ask(server, "/translate", scheme="rope", head_dim=64, to="llama.cpp", scaling=scaling)["targets"]
    assert page.run(READ, PANE)["losses"] == [[loss["what"], loss["detail_zh"]] for loss in entry["loses"]]


def test_what_does_not_rotate_cannot_be_said(opened):
    page = opened(fragment("table", {"scheme": "sinusoidal", "dim": 32, "len": 16}))
    shown = say(page, PANE, "vllm")
    assert shown["text"] is None and [what for what, _ in shown["losses"]] == ["scheme"]


def test_a_dropped_file_in_the_words_of_another_tool(open_page, server, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_31))
    page = open_page("view=explain")
    choose(page, tmp_path / "config.json")
    place = f"{CARD} [data-section=said]"
    try:
        for name in ("vllm", "gguf"):
            [entry] = ask(server, "/translate", hf_config=LLAMA_31, to=name)["targets"]
            shown = say(page, place, name)
            assert shown["text"] == entry["text"] and shown["losses"] == [[loss["what"], loss["detail"]] for loss in entry["loses"]]
        page.run("window.copied = null; navigator.clipboard.writeText = async (one) => { window.copied = one; }")
        page.click(f"{place} [data-action=copy]")
        until(lambda: page.run("return window.copied") == entry["text"], what="the text in the clipboard")
    finally:
        page.run("delete navigator.clipboard.writeText; delete window.copied")
        say(page, place, "")


def test_each_kind_of_layers_has_its_own_text(open_page, server):
    page = open_page("view=explain")  # its example has two
    place = f"{CARD} [data-section=said]"
    config = json.loads(page.copied("json"))
    entries = ask(server, "/translate", hf_config=config["hf_config"], to="vllm_old")["targets"]
    try:
        shown = say(page, place, "vllm_old")
        assert shown["text"] == "\n\n".join(f"# {entry['layer_type']}\n{entry['text']}" for entry in entries) and len(entries) == 2
    finally:
        say(page, place, "")
