"""The language of the catalogue's texts: lang in the query, else Accept-Language, else English; and what the answer says about it."""
import collections
import http.client
import json
import re

import jsonschema
import pytest

import run
from conftest import REQUEST_SECONDS, ROOT, start_server

PATHS = ["/schemes", "/schemes/rope", "/presets", "/presets/llama-3.1"]
TEXTS = ("label", "summary", "note")
CHINESE = re.compile("[\u3400-\u9fff]")
BROWSER = "zh-CN,zh;q=0.9,en-GB;q=0.8,en;q=0.7"


def entries(value):
    """Every object of an answer that has texts."""
    if isinstance(value, list):
        return [entry for item in value for entry in entries(item)]
    if isinstance(value, dict):
        return [value] * (not value.keys().isdisjoint(TEXTS)) + [entry for name, item in value.items() if name not in ("example", "config") for entry in entries(item)]
    return []


def names(answer, header):
    return {name.strip() for line in answer.headers.get_all(header) or [] for name in line.split(",")}


def assert_language(answer, lang):
    assert answer.status == 200 and answer.headers.get_all("Content-Language") == [lang] and "Accept-Language" in names(answer, "Vary")
    found = entries(answer.json())
    assert found
    for entry in found:
        is_model = "certainty" in entry  # its label is a name, which may be the same in Chinese
        assert {word for word in TEXTS if word in entry} in (({"label"}, {"label", "note"}, {"label", "summary"}) if is_model else ({"label", "summary"},))
        for word in entry.keys() & set(TEXTS):
            assert CHINESE.search(entry[word + "_zh"]) or is_model and word == "label", entry
            assert entry[word] == entry[word + "_zh"] if lang == "zh" else not CHINESE.search(entry[word]), entry


def test_several_lines_are_one_list(server):
    """RFC 9110, 5.3: every line counts."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=REQUEST_SECONDS)
    connection.putrequest("GET", "/schemes/none")
    for value in ("fr", "en;q=0.4", "zh;q=0.5"):
        connection.putheader("Accept-Language", value)
    connection.endheaders()
    answer = connection.getresponse()
    entry = json.loads(answer.read())
    connection.close()
    assert answer.getheader("Content-Language") == "zh" and entry["label"] == entry["label_zh"]


NUMBER_OR_NAME = re.compile(r'"[^"]*"|\d+(?:\.\d+)?|--[a-z-]+|/[a-z]\w*')


def assert_chinese(answer, english):
    """The same refusal in Chinese: its numbers, quoted values, flags and paths are those of the English one."""
    ours, theirs = answer.json(), english.json()
    assert answer.status == english.status and answer.headers.get_all("Content-Language") == ["zh"] and "Accept-Language" in names(answer, "Vary")
    assert {name: value for name, value in ours.items() if name not in ("title", "detail", "error")} \
        == {name: value for name, value in theirs.items() if name not in ("title", "detail", "error")}
    assert ours["error"] == ours["detail"] and CHINESE.search(ours["title"]) and CHINESE.search(ours["detail"]), ours
    assert "Content-Language" not in english.headers and not CHINESE.search(english.body.decode())
    found, expected = (collections.Counter(NUMBER_OR_NAME.findall(problem["detail"])) for problem in (ours, theirs))
    assert expected <= found, (ours["detail"], theirs["detail"])
    same = ("Allow", "Accept-Post", "Accept-Encoding", "WWW-Authenticate", "Cache-Control", "Content-Type")
    assert [answer.headers.get(name) for name in same] == [english.headers.get(name) for name in same]


def test_every_refusal_of_the_rows_is_in_the_language_of_the_call(server):
    """One of each sentence; a text that is cut at its longest is not compared."""
    seen = set()
    for row in run.every():
        if row.get("flags") or not run.is_refusal(row):
            continue
        english = run.ask(server, row)
        if english.status < 400 or not english.body or english.json().get("detail", "…").endswith("…"):
            continue
        sentence = english.status, NUMBER_OR_NAME.sub("", english.json()["detail"])
        if sentence not in seen:
            seen.add(sentence)
            in_chinese, others = (run.ask(server, {**row, "headers": {**row.get("headers", {}), "Accept-Language": lang}}) for lang in (BROWSER, "de, en;q=0.5"))
            assert_chinese(in_chinese, english)
            assert others.body == english.body and "Content-Language" not in others.headers
    assert len(seen) > 300


def test_the_query_and_the_body_choose_before_the_header(server):
    body = {"scheme": "rope", "len": 4, "metrics": ["uniqe"]}
    english = server.post("/analyze", body)
    assert_chinese(server.post("/analyze?lang=zh", body, {"Accept-Language": "en"}), english)
    assert_chinese(server.post("/analyze", {**body, "lang": "zh"}, {"Accept-Language": "en"}), english)
    for target, fields in (("/analyze?lang=en", body), ("/analyze", {**body, "lang": "en"})):
        answer = server.post(target, fields, {"Accept-Language": "zh"})
        assert answer.body == english.body and "Content-Language" not in answer.headers
    assert_chinese(server.get("/schemes/rop?lang=zh", {"Accept-Language": "en"}), server.get("/schemes/rop"))


def test_a_model_that_sets_the_field_is_named(server):
    """The advice to leave a field out is dropped with its sentence, in both languages."""
    body = {"preset": "llama-3.1", "q": [[[[1.0, 0.0], [0.0, 1.0]]]]}
    english, chinese = server.post("/rotate", body), server.post("/rotate", body, {"Accept-Language": "zh"})
    assert english.status == 422 and english.json()["pointer"] == "/preset" and "leave" not in english.json()["detail"]
    assert_chinese(chinese, english)
    assert "去掉" not in chinese.json()["detail"] and "由预设" in chinese.json()["detail"]


def positions_of_types():
    """{model_type: what its positions are} of those that no scheme gives."""
    found = {}
    for block in re.split(r"\n\n", (ROOT / "core/models/types.txt").read_text()):
        positions = re.search(r"^    positions +((?:.+\n {8,})*.+)", block, re.M)
        if positions and "/" not in block.split()[0]:
            found[block.split()[0]] = " ".join(positions[1].split())
    return found


def test_what_a_model_has_instead_is_translated_too(server):
    types = positions_of_types()
    assert len(types) > 60
    for name, positions in types.items():
        body = {"hf_config": {"model_type": name}, "len": 2}
        english, chinese = server.post("/encode", body), server.post("/encode", body, {"Accept-Language": "zh"})
        assert english.status == 422 and positions in english.json()["detail"], (name, english.body)
        assert_chinese(chinese, english)
        assert CHINESE.search(chinese.json()["detail"].split("：")[-1]), chinese.json()


def test_the_server_refuses_in_the_language_of_the_call(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("anna aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa read requests=1/h\nbert bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb read\n")
    with start_server("--token-file", str(tokens), "--max-body", "1024") as server:
        key = {"Authorization": "Bearer " + "a" * 32}
        assert server.get("/schemes/rope", key).status == 200
        english = server.get("/schemes/rope", key)
        answer = server.get("/schemes/rope", {**key, "Accept-Language": "zh"})
        assert answer.status == english.status == 429 and CHINESE.search(answer.json()["detail"]) and "requests=" in answer.json()["detail"]
        assert answer.headers["Content-Language"] == "zh" and int(answer.headers["Retry-After"]) > 0
        assert_chinese(server.get("/encode", {"Accept-Language": "zh"}), server.get("/encode"))
        key = {"Authorization": "Bearer " + "b" * 32}
        assert_chinese(server.request("PUT", "/weights/w", b"x", {**key, "Accept-Language": "zh"}), server.request("PUT", "/weights/w", b"x", key))
        large = server.request("POST", "/encode", b" " * 2000, key)
        assert large.status == 413
        assert_chinese(server.request("POST", "/encode", b" " * 2000, {**key, "Accept-Language": "zh"}), large)


def sentences(value, path=""):
    """(path, text) of every summary and description of an OpenAPI document, those of its examples left out."""
    if isinstance(value, list):
        return [found for i, item in enumerate(value) for found in sentences(item, f"{path}/{i}")]
    found = []
    for name, item in value.items() if isinstance(value, dict) else ():
        if name in ("summary", "description") and isinstance(item, str):
            found.append((f"{path}/{name}", item))
        elif name not in ("example", "examples"):
            found += sentences(item, f"{path}/{name}")
    return found


def without_sentences(value):
    if isinstance(value, dict):
        return {name: without_sentences(item) for name, item in value.items() if not (name in ("summary", "description") and isinstance(item, str))}
    return [without_sentences(item) for item in value] if isinstance(value, list) else value


def test_the_description_is_in_the_language_of_the_call(server):
    """Every summary and description; nothing else of the document differs."""
    english, chinese = server.get("/openapi.json"), server.get("/openapi.json?lang=zh")
    assert not CHINESE.search(english.body.decode())
    ours, theirs = sentences(chinese.json()), dict(sentences(english.json()))
    assert len(ours) > 800 and [path for path, _ in ours] == list(theirs)
    for path, text in ours:
        assert CHINESE.search(text) or re.fullmatch(r"\[[a-z_, /0-9]+\]", text), (path, text)  # a shape is the same in both
    assert json.dumps(without_sentences(chinese.json())) == json.dumps(without_sentences(english.json()))


def test_tensors_have_no_language(server):
    """Answers without texts in two languages do not look at the header."""
    for body in ({"scheme": "rope", "len": 2}, {"preset": "llama-3.1", "len": 2}):
        assert server.post("/encode", body, {"Accept-Language": "zh"}).body == server.post("/encode", body).body


def test_only_the_first_of_a_pair_differs(server):
    """The names, numbers and Chinese twins of the two documents are equal, and so is their order."""
    def without(value):
        if isinstance(value, dict):
            return {name: without(item) for name, item in value.items() if name + "_zh" not in value}
        return [without(item) for item in value] if isinstance(value, list) else value
    for path in PATHS:
        english, chinese = server.get(path + "?lang=en"), server.get(path + "?lang=zh")
        assert english.body != chinese.body
        assert json.dumps(without(english.json())) == json.dumps(without(chinese.json()))


@pytest.mark.parametrize("flags", [[], ["--answer-cache", "0"]])
def test_languages_do_not_mix(flags):
    """Answers that the server keeps are kept for each language; the same request gets the same bytes."""
    with start_server(*flags) as server:
        first = {}
        for lang in ("zh", "en", "zh", "en", "en", "zh"):
            for path in (*PATHS, "/openapi.json"):
                for target, headers in ((f"{path}?lang={lang}", {}), (path, {"Accept-Language": lang}), (path, {"Accept-Language": BROWSER if lang == "zh" else "fr"})):
                    head, answer = (server.request(method, target, headers=headers) for method in ("HEAD", "GET"))
                    if path in PATHS:
                        assert_language(answer, lang)
                    assert first.setdefault((path, lang), (answer.headers["ETag"], answer.body)) == (head.headers["ETag"], answer.body)
                    assert head.headers["Content-Language"] == answer.headers["Content-Language"] == lang and "Accept-Language" in names(answer, "Vary")
        for path in (*PATHS, "/openapi.json"):
            assert all(zh != en or zh is None for zh, en in zip(first[path, "zh"], first[path, "en"]))  # a single entry has no tag


def test_vary_beside_another_origin():
    with start_server("--cors-origin", "https://vis.example.org") as server:
        answer = server.get("/schemes", {"Origin": "https://vis.example.org"})
        assert names(answer, "Vary") - {"Accept-Encoding"} == {"Accept-Language", "Origin"}


def test_the_description_has_them(server):
    document = server.get("/openapi.json").json()
    for path in ("/schemes", "/schemes/{name}", "/presets", "/presets/{name}", "/openapi.json"):
        for method in ("get", "head"):
            operation = document["paths"][path][method]
            lang = next(parameter for parameter in operation["parameters"] if parameter["name"] == "lang")
            assert lang["in"] == "query" and lang["schema"]["enum"] == ["en", "zh"] and "422" in operation["responses"]
            if path == "/openapi.json":
                continue
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            example = server.get(path.format(name="rope" if "schemes" in path else "llama-3.1")).json()
            validator = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
            validator.validate(example)
            assert not validator.is_valid({})
    entry = document["components"]["schemas"]["Entry"]
    assert {"label", "label_zh", "summary", "summary_zh"} <= set(entry["required"]) == set(entry["required"]) & set(entry["properties"])
