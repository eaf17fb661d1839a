"""What the page gives to copy and to save: run in an empty folder, it yields the bytes that the API answers."""
import base64
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

import numpy as np
import pytest

from browser import fragment, until
from token_files import LINES, READER, bearer, token_server

ODD = ["it's", '"b"', "$HOME `id`", "中文", "a\\b", "!", "é😀", "%s"]
CASES = {
    "rope": ("table", {"scheme": "rope", "head_dim": 64, "len": 33, "scaling": {"type": "linear", "factor": 4}}, {}),
    "sin": ("table", {"scheme": "rope", "head_dim": 64, "len": 33}, {"out": "sin"}),
    "f64": ("curves", {"scheme": "sinusoidal", "dim": 32, "len": 20, "dtype": "f64"}, {}),
    "heads": ("bias", {"scheme": "alibi", "num_heads": 4, "len": 24}, {}),
    "words": ("attention", {"scheme": "rope", "head_dim": 64, "tokens": ODD}, {}),
}


def run(command, folder, **env):
    """env: a token; a proxy of the environment would stand between."""
    plain = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.run(command, cwd=folder, env={**plain, **env}, capture_output=True, text=True, timeout=60)


def run_curl(page, folder, **env):
    """The one file that curl leaves."""
    ended = run(["sh", "-c", page.copied("curl")], folder, **env)
    assert ended.returncode == 0, ended.stderr
    [file] = pathlib.Path(folder).iterdir()
    return file


def run_python(page, folder, **env):
    code = page.copied("python") + "\nnp.save('x.npy', x)\n"
    ended = run([sys.executable, "-c", code], folder, **env)
    assert ended.returncode == 0, ended.stderr
    return np.load(pathlib.Path(folder, "x.npy"))


def asked(page, server, slot_config, **headers):
    """The whole output in front as npy, by the request that the page shows as JSON."""
    path = page.copied("curl").split()[2].removeprefix(page.url)
    body = json.loads(page.copied("json"))
    assert slot_config.items() <= body.items()
    output = json.loads(page.copied("curl").split("-d '")[1].split("' \\\n")[0].replace("'\\''", "'"))["outputs"]
    answer = server.post(path, {**body, "outputs": output, "format": "npy"}, headers)
    assert answer.status == 200, answer
    return answer.body


@pytest.mark.parametrize("case", CASES)
def test_curl_and_python_give_the_bytes_of_the_api(open_page, server, tmp_path, case):
    view, config, keys = CASES[case]
    page = open_page(fragment(view, config, **keys))
    page.wait_state("ready")
    expected = asked(page, server, config)
    (tmp_path / "curl").mkdir()
    file = run_curl(page, tmp_path / "curl")
    assert file.suffix == ".npy" and file.read_bytes() == expected
    x, wanted = run_python(page, tmp_path), np.load(io.BytesIO(expected))
    assert x.dtype == wanted.dtype and x.tobytes() == wanted.tobytes()


def test_a_difference_is_computed_in_python(open_page, server, tmp_path):
    a, b = {"scheme": "rope", "head_dim": 32, "len": 16}, {"scheme": "rope", "head_dim": 32, "len": 16, "base": 500000}
    page = open_page(fragment("table", a, b, on="b-a"))
    x = run_python(page, tmp_path)
    tables = [np.load(io.BytesIO(server.ask(**config, dtype="f64", outputs=["cos"], format="npy").body)) for config in (a, b)]
    assert x.tobytes() == (tables[1] - tables[0]).tobytes()


def test_bf16_is_saved_as_safetensors(open_page, server, tmp_path):
    page = open_page(fragment("table", {"scheme": "rope", "head_dim": 32, "len": 16, "dtype": "bf16"}))
    (tmp_path / "curl").mkdir()
    assert run_curl(page, tmp_path / "curl").suffix == ".safetensors"
    raw = server.ask(scheme="rope", head_dim=32, len=16, dtype="bf16", outputs=["cos"], format="raw").body
    assert run_python(page, tmp_path).view("<u4").astype("<u4").tobytes() == (np.frombuffer(raw, "<u2").astype("<u4") << 16).tobytes()


@pytest.mark.parametrize("dtype", ["f8_e4m3", "f8_e5m2"])
def test_f8_is_widened_in_python(open_page, server, tmp_path, dtype):
    page = open_page(fragment("table", {"scheme": "rope", "head_dim": 32, "len": 16, "dtype": dtype}))
    printed = server.ask(scheme="rope", head_dim=32, len=16, dtype=dtype, outputs=["cos"]).json()["tensors"]["cos"]["data"]
    assert np.array_equal(run_python(page, tmp_path), printed)


def test_a_refused_request_leaves_no_file_and_says_why(open_page, server, tmp_path):
    page = open_page(fragment("table", {"scheme": "rope", "head_dim": 63, "len": 16}))
    page.wait_state("refused")
    assert run(["sh", "-c", page.copied("curl")], tmp_path).returncode != 0
    assert list(tmp_path.iterdir()) == []
    ended = run([sys.executable, "-c", page.copied("python")], tmp_path)
    assert ended.returncode != 0 and page.notice("refused") in ended.stderr


FETCH = """
const [selector, done] = arguments;
const link = document.querySelector(selector);
fetch(link.href).then((answer) => answer.arrayBuffer()).then((buffer) => {
  let text = '';
  for (const byte of new Uint8Array(buffer)) text += String.fromCharCode(byte);
  done([link.download, btoa(text)]);
});
"""


def follow(page, which):
    name, text = page.driver.execute_async_script(FETCH, f'a[data-action="{which}"]')
    return name, base64.b64decode(text)


def test_npy_and_png_are_links_to_the_server(open_page, server):
    config = {"scheme": "rope", "head_dim": 64, "len": 64}
    page = open_page(fragment("table", config, lang="en", theme="light"))
    name, data = follow(page, "npy")
    assert name.endswith(".npy") and data == asked(page, server, config)
    name, data = follow(page, "png")
    assert name.endswith(".png") and data.startswith(b"\x89PNG")
    assert "lang" not in page.copied("url") and "theme" not in page.copied("url")
    page.click('[data-field="link-looks"]')  # a link may have them
    until(lambda: "lang=" in page.copied("url") and "theme=" in page.copied("url"), what="language and theme")
    page.click('[data-field="link-looks"]')


CATCH = """
window.saved = [];
const plain = URL.createObjectURL;
URL.createObjectURL = (blob) => { window.saved.push(blob); return plain.call(URL, blob); };
HTMLAnchorElement.prototype.click = function () { window.saved.push(this.download); };
"""
SAVED = "const done = arguments[0]; saved[0].arrayBuffer().then((b) => done([saved[1], [...new Uint8Array(b)]]))"


def save(page, which):
    """What a button saves, caught before it becomes a file."""
    page.run(CATCH)
    page.find(f'button[data-action="{which}"]').click()
    until(lambda: page.run("return saved.length") == 2, what="a file")
    name, data = page.driver.execute_async_script(SAVED)
    return name, bytes(data)


@pytest.mark.fresh  # what catches the file is put in once
def test_a_heat_map_is_saved_with_its_title_axes_and_colour_bar(open_page):
    page = open_page(fragment("table", {"scheme": "sinusoidal", "dim": 32, "len": 64}))
    page.click(".inspector h2")
    sides = page.run("return ['.stage', '.colorbar-bar'].map((one) => document.querySelector('figure ' + one).getBoundingClientRect()).map(({ width, height }) => [width, height])")
    name, data = save(page, "figure")
    assert name.endswith("-figure.png") and data.startswith(b"\x89PNG")
    width, height = (int.from_bytes(data[at:at + 4], "big") for at in (16, 20))   # of the header
    assert width >= 2 * max(side[0] for side in sides) and height >= 2 * (sides[0][1] + sides[1][1] + 40)
    page = open_page(fragment("curves", {"scheme": "sinusoidal", "dim": 32, "len": 20}))
    assert not page.all("button[data-action=figure]")   # of lines the picture has its axes


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.fresh
@pytest.mark.parametrize("view", ["curves", "attention"])
def test_a_figure_is_saved_as_svg_with_its_texts_on_light_paper(open_page, view):
    config = {"scheme": "sinusoidal", "dim": 32, "len": 20} if view == "curves" else {"scheme": "rope", "dim": 32, "tokens": ["<b>", "dog&", "dog", "unbelievably"]}
    page = open_page(fragment(view, config, theme="dark", lang="en"))
    texts = {"value", "position", "0.5"} if view == "curves" else {"query ↓".split()[0], "<b>", "dog&", "unbelievably", "probs"}
    texts |= set(page.run("return [...document.querySelectorAll('figure .colorbar-end')].map((end) => end.placeholder)"))  # of the colour bar
    assert view == "curves" or "0" in texts
    name, data = save(page, "svg")
    assert name.endswith(".svg")
    root = xml.etree.ElementTree.fromstring(data)
    written = {text.text for text in root.iter(f"{SVG}text")}
    assert root.tag == f"{SVG}svg" and texts <= written and any(text.startswith(page.url) for text in written), written
    lines = [path for path in root.iter(f"{SVG}path") if path.get("fill") == "none" and path.get("d").count("L") > 15]
    images = [image.get("href") or image.get("{http://www.w3.org/1999/xlink}href") for image in root.iter(f"{SVG}image")]
    assert bool(lines) == (view == "curves") and all(href.startswith("data:image/png;base64,") for href in images) and bool(images)
    ground = next(root.iter(f"{SVG}path")).get("fill")
    assert min(int(part) for part in re.findall(r"\d+", ground)) > 240  # paper, although the page is dark
    assert page.attribute("html", "data-theme") == "dark"


def test_with_a_token_files_are_fetched_and_saved(open_page, tmp_path):
    with token_server(LINES) as server:
        page = open_page(fragment("table", {"scheme": "rope", "head_dim": 64, "len": 64}), server.url, settle=False)
        page.give(READER)
        page.wait_state("ready")
        page.settle()
        assert not page.all('a[data-action="npy"], a[data-action="png"]')
        body = json.loads(page.copied("json"))
        expected = server.post("/encode", {**body, "outputs": ["cos"], "format": "npy"}, bearer(READER)).body
        assert save(page, "npy")[1] == expected
        assert run_curl(page, tmp_path, TOKEN=READER).read_bytes() == expected
        assert run_python(page, tmp_path, TOKEN=READER).tobytes() == np.load(io.BytesIO(expected)).tobytes()


def test_a_large_download_tells_its_size_first(open_page):
    page = open_page(fragment("table", {"scheme": "rope", "head_dim": 64, "len": 4000000}))
    until(lambda: "488.3 MiB" in (page.text("[data-action=npy] .file-size") or ""), what="the size, which the server's answer tells")
    page.run("document.querySelector('[data-action=npy]').click()")
    until(lambda: page.all("dialog[open].confirm"), what="the question")
    assert page.attribute("dialog[open] [data-bytes]", "data-bytes") == str(4000000 * 32 * 4)
    assert "488.3 MiB" in page.text("dialog[open]")
    page.click('dialog[open] [data-action="cancel"]')
    time.sleep(0.2)
    assert not page.all("dialog[open]")
