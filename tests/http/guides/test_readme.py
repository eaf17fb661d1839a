"""The commands of the README and of the pages it links to work as printed: every curl in an ```sh block is run against a
server, and so is the Python code."""
import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

import safetensors_reader
from conftest import ROOT
from truth import gguf_writer

README = ROOT / "README.md"
PROMISES = ROOT / "server/PROMISES.md"
GUIDE = ROOT / "deploy/README.zh.md"
PAGES = [README, GUIDE, ROOT / "core/DECISIONS.md", ROOT / "core/schemes/SCHEMES.md", ROOT / "api/USING.md", ROOT / "server/RUNNING.md", PROMISES,
         ROOT / "tests/bench/SPEEDS.md"]


def blocks(language, pages=PAGES):
    return [block for page in pages for block in re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)]


def commands(block):
    """As a shell reads them: a command goes on after a backslash, and until its quote is closed."""
    command = ""
    for line in block.splitlines():
        command += line
        if command.endswith("\\"):
            command = command[:-1]
        elif command.count("'") % 2:
            command += "\n"
        else:
            yield command
            command = ""


CURLS = list(dict.fromkeys(command for block in blocks("sh") for command in commands(block) if command.startswith("curl ")))


def here(text, server):
    """As the reader types it, at our port; an experiment takes fewer steps than its half minute."""
    text = re.sub(r'"task":"local","configs"', '"task":"local","steps":20,"configs"', text)
    return text.replace("localhost:8080", f"{server.host}:{server.port}")


@pytest.fixture
def folder(tmp_path):
    """A folder with the files that the commands send."""
    for name in ("q", "k", "v"):
        np.save(tmp_path / f"{name}.npy", np.ones((1, 2, 8, 64), "f4"))
    first, second = np.ones((8, 32), "f4"), np.ones((8, 32), "f4")  # q turned as the layout half pairs channels
    angles = np.outer(np.arange(8), 10000.0 ** (-np.arange(32) / 32))
    turned = np.hstack([first * np.cos(angles) - second * np.sin(angles), second * np.cos(angles) + first * np.sin(angles)])
    np.save(tmp_path / "q_out.npy", np.broadcast_to(turned.astype("f4"), (1, 2, 8, 64)))
    scores = np.where(np.tri(8, dtype=bool), turned @ turned.T / 8, -np.inf)
    projection = np.random.default_rng(1).normal(size=(8 * 16, 4)).astype("f4")  # of 8 key heads
    np.save(tmp_path / "meta_wk.npy", projection)
    np.save(tmp_path / "hf_wk.npy", projection.reshape(32, 2, 2, 4).transpose(0, 2, 1, 3).reshape(-1, 4))  # for 32
    np.save(tmp_path / "scores.npy", np.broadcast_to(scores.astype("f4"), (1, 2, 8, 8)))
    np.save(tmp_path / "cos.npy", np.cos(np.outer(np.arange(8), 500000.0 ** (-np.arange(64) / 64))).astype("f4"))
    np.save(tmp_path / "sin.npy", np.sin(np.outer(np.arange(8), 500000.0 ** (-np.arange(64) / 64))).astype("f4"))
    np.save(tmp_path / "encoding.npy", np.hstack([np.sin(angles), np.cos(angles)]).astype("f4"))
    pair = {"q": np.ones((1, 2, 8, 64), "f4"), "k": np.ones((1, 1, 8, 64), "f4")}
    np.savez(tmp_path / "qk.npz", **pair)
    (tmp_path / "qk.safetensors").write_bytes(safetensors_reader.dumps(pair))
    (tmp_path / "head.gguf").write_bytes(gguf_writer.file("qwen3"))
    name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    (tmp_path / "model.safetensors").write_bytes(safetensors_reader.dumps({name: np.ones((32, 8), "f4")}))
    return tmp_path


@pytest.fixture
def emptied(server):
    yield server
    for path in ("/weights/t5-small", "/presets/team-a-yarn8"):
        server.request("DELETE", path)


@pytest.mark.parametrize("command", CURLS)
def test_every_curl(emptied, folder, command):
    server = emptied
    if '"weights"' in command:  # stored by the command before, when all run
        server.request("PUT", "/weights/t5-small", (folder / "model.safetensors").read_bytes())
    if "team-a-yarn8" in command:  # likewise
        server.request("PUT", "/presets/team-a-yarn8", b'{"config":{"scheme":"rope"}}')
    done = subprocess.run(["sh", "-c", here(command, server) + " -sS -w '%{stderr}%{http_code}'"], cwd=folder,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    wrong = '"lenn"' in command or '"model_type":"qwen2.5"' in command or '"num_hidden_layers":8},"len"' in command
    expected = 422 if wrong else 206 if " -r " in command else 204 if " -X DELETE " in command else 200
    allowed = (200, 201) if " -T " in command or " -X PUT " in command else (expected,)
    assert int(done.stderr.split()[-1]) in allowed, done.stdout[:500]
    words = shlex.split(command)
    if "-o" in words:
        assert (folder / words[words.index("-o") + 1]).stat().st_size > 0


@pytest.mark.parametrize("page", [page for page in PAGES if blocks("python", [page])], ids=lambda page: page.name)
def test_the_python(server, folder, page):
    """Later blocks of a page continue the earlier ones."""
    (folder / "example.py").write_text(here("\n".join(blocks("python", [page])), server))
    (folder / "posenc.py").write_bytes(server.get("/clients/posenc.py").body)
    env = {**os.environ, "POSENC_URL": f"http://{server.host}:{server.port}"}
    done = subprocess.run([sys.executable, "example.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    if page == GUIDE:  # whose blocks of text are what its code prints, in order
        assert done.stdout == "".join(blocks("text", [page]))


def test_the_guide_leads_to_every_story_and_to_views():
    """By addresses that the page knows, each story under its Chinese title and lead."""
    text, words = GUIDE.read_text(), json.loads((ROOT / "server/page/text/zh.json").read_text())
    stories = re.findall(r"^  story\('([\w-]+)'", (ROOT / "server/page/stories/list.js").read_text(), re.M)
    for story in stories:
        address = f"http://localhost:8080/#view=story&story={story}&lang=zh"
        assert f"| [{words['story.' + story]}]({address}) | {words['story.' + story + '.lead']} |" in text, story
    addresses = re.findall(r"\[([^\]]+)\]\(http://localhost:8080/#view=(\w+)&lang=zh\)", text)
    assert set(re.findall(r"view=story&story=([\w-]+)", text)) == set(stories) and len(stories) > 4 and len(addresses) > 4
    for title, view in addresses:
        assert words[f"view.{view}"] == title, view


def test_the_numbers_of_the_guide(server):
    """Those that stand in its sentences."""
    text = re.sub(r"\s+", " ", GUIDE.read_text())
    limits = server.get("/limits").json()
    assert f"请求体 {limits['max_body'] >> 20} MiB，响应 {limits['max_answer'] >> 30} GiB，位置 2^{limits['position'].bit_length() - 1}" in text
    assert f"图片边长 {limits['picture_side']} 像素，一次最多比较 {limits['configs']} 个配置" in text
    command = next(command for command in CURLS if "precision" in command and "32767" in command)
    found = server.post("/analyze", json.loads(re.search(r"-d '([^']*)'", command)[1])).json()["results"][0]["precision"]["recipes"]
    assert f"最大误差为 {found['bf16_inv_freq']['worst']:.2f}；" in text and f"最大误差为 {found['f32_bf16']['worst']:.4f}。" in text
    narrow, exact = (np.frombuffer(server.post("/encode", {"preset": "qwen2.5", "len": 131072, "outputs": ["cos"], "arith": arith, "format": "raw"}).body, "f4")
                     for arith in ("float32", "exact"))
    assert f"`cos` 最多差 {np.abs(narrow - exact).max():.4f}" in text
    slopes = server.post("/encode", {"preset": "baichuan-13b", "len": 1, "outputs": ["slopes"]}).json()["tensors"]["slopes"]["data"]
    sequences = [2.0 ** (-8 * np.arange(1, 33) / 32), 2.0 ** (-8 * np.arange(1, 65) / 64)]
    assert np.array_equal(np.array(slopes, "f4"), np.concatenate([sequences[0], sequences[1][:16:2]]).astype("f4"))


def test_the_table_of_models_in_the_guide(server):
    """Each row against the presets that it names."""
    rows = {cells[1].strip(): cells for cells in (line.split("|") for line in GUIDE.read_text().splitlines()) if len(cells) == 7}
    for row, presets in {"Qwen2.5、Qwen3": ["qwen2.5", "qwen3"], "GLM-4（`glm`、`glm4`、`chatglm`）": ["glm-4-9b", "glm-4-9b-chat"], "ERNIE 4.5": ["ernie-4.5"],
                         "DeepSeek-V3": ["deepseek-v3"], "InternLM3": ["internlm3-8b"], "Qwen2.5-VL": ["qwen2.5-vl"]}.items():
        layout, channels, base = (cell.strip() for cell in rows[row][2:5])
        for preset in presets:
            config = server.post("/encode", {"preset": preset, "len": 1, "data": False}).json()["config"]
            width, rotary, offset = config["head_dim"], config["rotary_dim"], config["rotary_offset"]
            assert layout == f"`{config['layout']}`"
            assert channels == (f"全部 {width} 个" if rotary == width else f"{width} 个中的{'最后' if offset else '前'} {rotary} 个") and offset in (0, width - rotary)
            plain = {"10^6": 1e6, "5·10^7": 5e7}.get(base) or float(re.match(r"\d+", base)[0])
            assert config["base"] == plain * (500 if preset == "glm-4-9b-chat" else 1)


def test_the_answers_printed_are_the_answers_given(server):
    """Each ```json block that is whole must come back for some curl above it, white space apart."""
    said = [re.sub(r"\s+", "", b) for b in blocks("json") if "…" not in b]
    answers = []
    for command in CURLS:
        body = re.search(r"-d '([^']*)'", command)
        if body and "-o" not in command and "-N" not in command:  # -N: minutes of events
            path = re.search(r"localhost:8080(\S*)", command)[1]
            answers.append(re.sub(r"\s+", "", server.post(path, json.loads(body[1])).body.decode()))
        elif "/zarr/" in command:
            answers.append(server.get(re.search(r"localhost:8080([^' ]*)", command)[1]).body.decode())
    for text in said:
        assert text in answers, text


def test_the_words_of_the_first_diagnosis_are_the_answers_words(server, folder):
    """The first page shows an answer in part: its finding comes back from the command above it."""
    shown = next(block for block in blocks("json", [README]) if "findings" in block)
    command = next(command for command in CURLS if command.endswith("/diagnose"))
    answer = subprocess.run(["sh", "-c", here(command, server) + " -sS"], cwd=folder, capture_output=True, timeout=60).stdout.decode()
    finding = re.sub(r"\n\s*", " ", re.search(r'"findings":\[\{(.*?),?…', shown, re.S)[1])
    assert json.loads("{" + finding + "}").items() <= json.loads(answer)["findings"][0].items()
    assert json.loads(answer)["explained"] and json.loads(answer)["candidates"][0]["config"]["layout"] == "half"


def test_the_picture_printed_is_the_picture_given(server):
    """The one whose command says ascii."""
    path = next(re.search(r"localhost:8080(\S*)'", c)[1] for c in CURLS if "ascii=true" in c)
    drawn = server.get(path).body.decode()
    assert drawn in blocks("text"), drawn


def test_the_derivation_printed_is_the_one_given(server):
    """The steps of a number, line by line."""
    path = next(re.search(r"localhost:8080(/derive[^']*)'", c)[1] for c in CURLS if "/derive?preset=" in c)
    assert server.get(path).body.decode() in blocks("text")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_the_readme_is_short_and_leads_to_every_page():
    text = README.read_text()
    assert len(text.encode()) <= 16 * 1024
    for page in PAGES[1:]:
        assert f"({page.relative_to(ROOT).as_posix()})" in text, page
