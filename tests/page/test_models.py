"""The view `models`: a column of two models on one axis, their difference, and their wavelengths, against separate requests; models chosen by
the names that hubs give them; configurations dropped together, and the names of models that a file is known by."""
import json

import numpy as np
import pytest

from browser import DROP_FILES, fragment, keys_of, until
from probes import ask

LLAMA_31 = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0, "max_position_embeddings": 131072,
            "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}
QWEN_25 = {"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "rope_theta": 1000000.0, "max_position_embeddings": 32768}
NOBODY = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 12345.0}
SERIES = "return [...document.querySelectorAll(`figure[data-config=\"${arguments[0]}\"] [data-series]`)].map((one) => one.dataset.series)"
NAMED = "return [...document.querySelectorAll('.naming [data-named]')].map((one) => one.dataset.named)"


def drop(page, *configs):
    page.run(DROP_FILES, [[f"config{i}.json", list(json.dumps(config).encode())] for i, config in enumerate(configs)])
    page.settle()


def column(server, config, positions, col):
    # the service itself, at each of the positions
    answer = ask(server, "/encode", **config, positions=positions, outputs=["cos"], dtype="f64")
    return np.array(answer["tensors"]["cos"]["data"], float)[:, col]


def test_a_column_its_difference_and_the_wavelengths(open_page, server):
    page = open_page("view=models&cur=832,5&lang=en")
    assert page.run(SERIES, "a") == ["a:5", "b:5"] and page.run(SERIES, "b") == ["a:wavelength", "b:wavelength"]
    llama, qwen = (column(server, {"preset": name}, [832], 5)[0] for name in ("llama-3.1", "qwen2.5"))
    assert page.data("value-a") == pytest.approx([llama], abs=1e-12) and page.data("value-b") == pytest.approx([qwen], abs=1e-12)
    assert page.data("difference", "b-a") == pytest.approx([qwen - llama], abs=1e-12)
    waves = [2 * np.pi * base ** (5 / 64) for base in (500000, 1000000)]  # of pair 5; llama3 leaves it alone
    assert page.data("wavelength-a", "b") + page.data("wavelength-b", "b") == pytest.approx(waves, rel=1e-9)
    assert "Llama 3.1" in page.text(".parting") and "Qwen2.5" in page.text(".parting")


def test_the_slider_of_positions_goes_to_131072(open_page, server):
    page = open_page("view=models&lang=en")
    page.put("[data-slider=position]", page.attribute("[data-slider=position]", "max"))
    assert keys_of(page.run("return location.hash"))["cur"].split(",")[0] == "131072"
    assert page.data("value-a") == pytest.approx(column(server, {"preset": "llama-3.1"}, [131072], 0), abs=1e-9)


def test_a_hub_s_name_is_a_model_s(open_page):
    page = open_page("view=models&lang=en")
    page.put("[data-field=model][data-config=b]", "Qwen/Qwen2.5-VL-7B-Instruct")
    until(lambda: keys_of(page.run("return location.hash")).get("b", {}).get("preset") == "qwen2.5-vl", what="the model is taken")
    page.settle()
    assert "Qwen2.5-VL" in page.text(".parting")
    assert [entry for entry in page.driver.get_log("browser") if "422" in entry["message"]] == []


def test_one_file_is_called_by_its_model(open_page):
    page = open_page("view=table&lang=en")
    drop(page, LLAMA_31)
    until(lambda: page.run(NAMED) == ["llama-3.1"], what="the name of the model")
    assert "These are the positions of Llama 3.1." in page.text(".naming") and "Llama 3.1" in page.text(".figure-title")
    assert 'preset' in page.attribute(".naming [data-model]", "href") and "view=explain" in page.attribute(".naming a:not([data-model])", "href")
    drop(page, NOBODY)
    until(lambda: page.run(NAMED) == [""], what="no name")


def test_two_files_dropped_together_are_compared(open_page):
    page = open_page("view=gallery&lang=en")
    drop(page, LLAMA_31, QWEN_25)
    until(lambda: page.run(NAMED) == ["llama-3.1", "qwen2"], what="both names")
    keys = keys_of(page.run("return location.hash"))
    assert keys["view"] == "models" and (keys["a"]["hf_config"], keys["b"]["hf_config"]) == (LLAMA_31, QWEN_25)
    assert "base 500000 / 1000000" in page.text(".parting") and page.run(SERIES, "a") == ["a:0", "b:0"]
    assert [entry for entry in page.driver.get_log("browser") if "422" in entry["message"]] == []


def test_five_files_say_that_four_are_compared(open_page):
    page = open_page("view=gallery&lang=en")
    drop(page, *({**QWEN_25, "rope_theta": theta} for theta in (1e4, 2e4, 3e4, 4e4, 5e4)))
    assert "d" in keys_of(page.run("return location.hash")) and "5 files" in page.text("[data-notice=paste]")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_both_curves_are_seen_on_a_phone(open_page, narrow, lang):
    narrow(390, 844)
    page = open_page(fragment("models", {"preset": "llama-3.1", "len": 1024}, {"preset": "qwen2.5", "len": 1024}, lang=lang, theme="dark"))
    assert page.run("return document.documentElement.scrollWidth") <= 390 and page.run(SERIES, "a") == ["a:0", "b:0"]
    assert set(page.run("return [...document.querySelectorAll('[data-figure=models]')].map((one) => one.dataset.state)")) == {"ready"}
