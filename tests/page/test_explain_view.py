"""The view `explain`: its card against /explain asked by ourselves; files of models chosen together, of which only keys reach the server;
the verdict and the curve of two, against the service's numbers and NumPy's."""
import json
import os
import subprocess

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

from browser import fragment, until
from probes import ask
from truth import gguf_writer as gguf

LLAMA_31 = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "rope_theta": 500000.0,
            "max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                                                "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}
QWEN_5 = {"model_type": "qwen3", "head_dim": 128, "num_hidden_layers": 4, "max_position_embeddings": 40960,
          "rope_parameters": {"rope_type": "default", "rope_theta": 1000000}}
GEMMA_3 = {"model_type": "gemma3_text", "head_dim": 256, "hidden_size": 1152, "num_attention_heads": 4, "num_hidden_layers": 26,
           "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 512, "max_position_embeddings": 32768}
CARD = "figure[data-figure=explain]:not([data-config=b-a])"
VERDICT = "figure[data-figure=explain][data-config=b-a]"
INPUT = ".view input[type=file][data-drop]"


def choose(page, *paths):
    page.find(INPUT).send_keys("\n".join(str(path) for path in paths))
    page.settle()


def verdict(page):
    return page.attribute(f"{VERDICT} .verdict", "data-verdict"), page.text(f"{VERDICT} .verdict-sentence")


@pytest.fixture
def model(tmp_path):
    def written(config, file, size=None):
        (tmp_path / "config.json").write_text(json.dumps(config))
        (tmp_path / "model.gguf").write_bytes(file)
        if size:
            os.truncate(tmp_path / "model.gguf", size)
        return tmp_path / "config.json", tmp_path / "model.gguf"
    return written


# ---- the card ----


def test_its_example_has_two_kinds_of_layers_and_a_finding(open_page):
    page = open_page("view=explain")
    layers = page.run(f"return [...document.querySelectorAll('{CARD} [data-layer]')].map((one) => one.dataset.kind)")
    assert len(layers) == 26 and layers.count("full_attention") == 4 and layers[5] == "full_attention"
    assert page.run(f"return [...document.querySelectorAll('{CARD} [data-layer-type]')].map((one) => one.dataset.layerType)") == ["sliding_attention", "full_attention"]
    assert page.attribute(f"{CARD} [data-finding]", "data-level") == "error" and page.state() == "ready"


def test_a_card_says_what_the_service_says(open_page, server):
    page = open_page(fragment("explain", {"hf_config": QWEN_5, "len": 128}))
    answer = ask(server, "/explain", hf_config=QWEN_5)
    rows = page.run(f"return [...document.querySelectorAll('{CARD} [data-pointer]')].map((row) => [row.dataset.pointer, ...[...row.querySelectorAll('[data-tool]')]"
                    ".map((one) => [one.dataset.tool, one.dataset.differs === 'true', one.dataset.from, one.querySelector('[translate=no]').textContent])])")
    assert [row[0] for row in rows] == [field["pointer"] for field in answer["fields"]]
    for field, (_, *cells) in zip(answer["fields"], rows):
        for tool, differs, source, text in cells:
            found = field["readers"][tool]
            assert differs == (found["takes"] is not None and found["takes"] != field["value"]), (field["pointer"], tool)
            if found["takes"] is not None:
                assert source == found["from"] and float_or_word(text) == found["takes"]
    shown = page.run(f"return [...document.querySelectorAll('{CARD} [data-finding]')].map((one) => [one.dataset.finding, one.textContent])")
    assert [code for code, _ in shown] == [one["code"] for one in answer["findings"]]
    assert all(one["detail"] in text for one, (_, text) in zip(answer["findings"], shown))
    consequence = answer["findings"][0]["consequence"]
    assert float(page.attribute(f"{CARD} data[data-what=max_abs_cos]", "value")) == consequence["max_abs_cos"]
    assert int(page.attribute(f"{CARD} data[data-what=position]", "value")) == consequence["position"]


def float_or_word(text):
    return float(text) if text[0].isdigit() else text


def test_the_curve_of_a_finding_is_on_a_log_axis(open_page):
    """Base 10000 in place of 1000000: the range of the curve is that of NumPy's differences over the same positions."""
    page = open_page(fragment("explain", {"hf_config": QWEN_5, "len": 128}))
    canvas = f"{CARD} [data-finding=theta_dropped] canvas[data-lines]"
    until(lambda: page.attribute(canvas, "data-x-scale") == "log", what="the curve")
    low, high, top = (float(page.attribute(canvas, f"data-{name}")) for name in ("x-min", "x-max", "y-max"))
    assert 0.5 < low <= 1 and 40959 <= high < 60000
    # the axis ends at what is drawn, within a tenth
    pairs = np.arange(64)
    positions = np.unique(np.round(40959 ** (np.arange(120) / 119)))[:, None]
    most = np.abs(np.cos(positions * 1e6 ** (-pairs / 64)) - np.cos(positions * 1e4 ** (-pairs / 64))).max()
    assert most <= 2 and most <= top <= 1.1 * 2


def test_layers_are_walked_with_the_keys(open_page):
    page = open_page("view=explain")
    page.run(f"document.querySelector('{CARD} .layers').focus()")
    for _ in range(5):
        page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert page.attribute(f"{CARD} .layers-line data[data-what=layer]", "value") == "5"
    assert page.attribute(f"{CARD} .layers-line data[data-what=base]", "value") == "1000000" and "full_attention" in page.text(f"{CARD} .layers-line")
    page.driver.switch_to.active_element.send_keys(Keys.END)
    assert page.attribute(f"{CARD} .layers-line data[data-what=layer]", "value") == "25"


# ---- two files ----


def test_files_that_fit(open_page, model):
    """Of a file of 1 GiB the keys are read, and nothing else is in the address, which is all that a request is made of."""
    page = open_page("view=explain")
    choose(page, *model(LLAMA_31, gguf.file("llama"), size=1 << 30))
    until(lambda: verdict(page)[0] == "rounding", what="the verdict")
    assert "up to the rounding of f32" in verdict(page)[1]
    address = page.run("return decodeURIComponent(location.hash)")
    assert "rope_freqs.weight" in address and "tokenizer" not in address and len(address) < 8192
    assert not page.all(f"{VERDICT} .chart:not([hidden])")


def test_files_that_differ(open_page, model, server):
    keys, *_ = gguf.ARCHITECTURES["llama"]
    page = open_page("view=explain")
    choose(page, *reversed(model(LLAMA_31, gguf.head(keys, []))))
    until(lambda: verdict(page)[0] == "differs", what="the verdict")
    kept = {name: value for name, _, value in keys if not name.startswith(("tokenizer.", "general.")) or name == "general.architecture"}
    answer = ask(server, "/analyze", configs=[{"hf_config": LLAMA_31}, {"gguf": kept}], positions=[0, 131071], metrics=["difference"])
    assert answer["results"][1]["difference"]["reasons"] == ["scaling"] and "scaling" in verdict(page)[1]
    assert "llama3 with factor 8 in the config.json, default in the .gguf file" in page.text(f"{VERDICT} .verdict-kinds")
    assert page.attribute(f"{VERDICT} canvas[data-lines]", "data-x-scale") == "log"
    page.run(f"document.querySelector('{VERDICT} details[data-table]').open = true")
    rows = until(lambda: page.run(f"return [...document.querySelectorAll('{VERDICT} details tbody tr')].map((row) => [...row.children].map((one) => one.textContent))"),
                 what="the data table")
    positions = [int(x) for x, _ in rows]
    assert len(positions) == 32 and positions == sorted(set(positions))
    answer = ask(server, "/analyze", configs=[{"hf_config": LLAMA_31}, {"gguf": kept}], positions=positions, metrics=["difference"])
    np.testing.assert_allclose([float(value) for _, value in rows], answer["tensors"]["difference.1"]["data"], rtol=1e-6, atol=1e-9)


def test_each_kind_has_its_verdict(open_page, model):
    slow = {**GEMMA_3, "rope_local_base_freq": 20000.0}
    page = open_page("view=explain")
    choose(page, *model(slow, gguf.file("gemma3")))
    until(lambda: verdict(page)[0] == "differs", what="the verdict")
    kinds = page.run(f"return [...document.querySelectorAll('{VERDICT} .verdict-kinds li')].map((one) => [one.dataset.layerType, one.dataset.verdict])")
    assert kinds == [["sliding_attention", "differs"], ["full_attention", "same"]] and "base" in verdict(page)[1]


def test_one_file_after_the_other(open_page, model):
    config, file = model(LLAMA_31, gguf.file("llama"))
    page = open_page("view=explain")
    choose(page, file)
    assert page.attribute(f"{CARD}", "data-config") == "a" and not page.all(f"{VERDICT}:not([hidden])")
    choose(page, config)
    until(lambda: verdict(page)[0] == "rounding", what="the verdict")
    assert json.loads(page.run("return JSON.stringify(Object.keys(JSON.parse(decodeURIComponent(/a=([^&]*)/.exec(location.hash)[1]))))"))[0] == "hf_config"


def test_a_bad_file_is_refused_in_words(open_page, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGML" + bytes(64))
    page = open_page("view=explain")
    choose(page, tmp_path / "bad.gguf")
    until(lambda: "begin with GGUF" in (page.text("[data-notice=paste]") or ""), what="the notice")


def test_a_file_dropped_elsewhere_opens_this_view(open_page, model):
    _, file = model(LLAMA_31, gguf.file("llama"))
    page = open_page("view=diagnose")
    choose(page, file)
    page.comes(lambda: page.all(CARD), "the card")
    assert page.state() == "ready" and "converter" in page.text(f"{CARD} figcaption")


# ---- words ----


def test_in_chinese(open_page, model):
    keys, *_ = gguf.ARCHITECTURES["llama"]
    page = open_page("view=explain&lang=zh")
    choose(page, *model(LLAMA_31, gguf.head(keys, [])))
    until(lambda: verdict(page)[0] == "differs", what="the verdict")
    assert verdict(page)[1].startswith("两者表示的位置不同") and "config.json 中是" in page.text(f"{VERDICT} .verdict-kinds")


def test_what_is_copied_gives_the_explanation(open_page, server, tmp_path):
    page = open_page(fragment("explain", {"hf_config": QWEN_5, "len": 128}))
    until(lambda: "/explain" in (page.copied("curl") or ""), what="the request")
    run = subprocess.run(["sh", "-c", page.copied("curl")], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert run.stdout == ""
    [file] = tmp_path.iterdir()
    assert file.suffix == ".json" and json.loads(file.read_text()) == ask(server, "/explain", hf_config=QWEN_5)
    assert json.loads(page.copied("json")) == {"hf_config": QWEN_5}
