"""The language of the catalogue's texts: lang in the query, else Accept-Language, else English; and what the answer says about it."""
import http.client
import json
import re

import jsonschema
import pytest

from conftest import REQUEST_SECONDS, start_server

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
        assert {word for word in TEXTS if word in entry} in (({"label"}, {"label", "note"}) if is_model else ({"label", "summary"},))
        for word in entry.keys() & set(TEXTS):
            assert CHINESE.search(entry[word + "_zh"]) or is_model and word == "label", entry
            assert entry[word] == entry[word + "_zh"] if lang == "zh" else not CHINESE.search(entry[word]), entry


def test_everything_has_its_texts(server):
    """Schemes, their parameters (nested ones too), inputs and outputs, and those that an operation adds."""
    schemes = server.get("/schemes").json()["schemes"]
    for scheme in schemes:
        rows = [scheme]
        for place in (scheme, scheme.get("attention", {}), scheme.get("rotate", {})):
            rows += place.get("parameters", []) + place.get("inputs", []) + place.get("outputs", [])
        rows += [row for parameter in rows for row in parameter.get("parameters", []) if parameter is not scheme]
        for row in rows:
            assert all(isinstance(row[word], str) and row[word] for word in ("label", "label_zh", "summary", "summary_zh")), row
    assert len(entries(schemes)) > 1000
    rope = next(scheme for scheme in schemes if scheme["name"] == "rope")
    base = next(parameter for parameter in rope["parameters"] if parameter["name"] == "base")
    assert base["label"] == "wavelength base" and base["label_zh"] == "波长底数"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query, header, lang", [
    ("", None, "en"), ("?lang=en", None, "en"), ("?lang=zh", None, "zh"), ("?lang=en", BROWSER, "en"), ("?lang=zh", "en", "zh"), ("", BROWSER, "zh"),
    ("", "en-GB,en;q=0.9,zh;q=0.8", "en"), ("", "fr, zh-TW;q=0.1", "zh"), ("", "fr", "en"), ("", "*", "en"), ("", "en;q=0, *", "zh"), ("", "", "en"),
    ("?other=1&lang=zh", None, "zh"), ("?lang=zh&other=%zz", None, "zh"), ("?l%61ng=z%68", None, "zh"), ("?language=zh", None, "en")])
def test_the_language_is_chosen(server, path, query, header, lang):
    for method in ("GET", "HEAD"):
        answer = server.request(method, path + query, headers={} if header is None else {"Accept-Language": header})
        if method == "GET":
            assert_language(answer, lang)
        assert answer.headers["Content-Language"] == lang


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


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("value", ["", "fr", "EN", "zh-CN", "en,zh", "%00" "zh", "z%", "a" * 3000])
def test_another_language_is_refused(server, path, value):
    answer = server.get(f"{path}?lang={value}", {"Accept-Language": "zh"})
    problem = answer.json()
    assert "Content-Language" not in answer.headers
    if "%" in value:
        assert answer.status == 400
    else:
        assert answer.status == 422 and problem["pointer"] == "/lang" and '"en", "zh"' in problem["detail"] and not CHINESE.search(problem["detail"])


def test_errors_and_other_pages_are_english(server):
    """A path's other refusals and the pages without texts in two languages do not look at the header."""
    for path in ("/schemes/rop", "/presets/llama", "/nothing"):
        answer = server.get(path, {"Accept-Language": "zh"})
        assert answer.status == 404 and "Content-Language" not in answer.headers and not CHINESE.search(answer.body.decode())
    plain = server.get("/openapi.json")
    assert server.get("/openapi.json", {"Accept-Language": "zh"}).body == plain.body and not CHINESE.search(plain.body.decode())
    assert "Content-Language" not in plain.headers
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
            for path in PATHS:
                for target, headers in ((f"{path}?lang={lang}", {}), (path, {"Accept-Language": lang})):
                    answer = server.get(target, headers)
                    assert_language(answer, lang)
                    assert first.setdefault((path, lang), answer.body) == answer.body


def test_vary_beside_another_origin():
    with start_server("--cors-origin", "https://vis.example.org") as server:
        answer = server.get("/schemes", {"Origin": "https://vis.example.org"})
        assert names(answer, "Vary") == {"Accept-Language", "Origin"}


def test_the_description_has_them(server):
    document = server.get("/openapi.json").json()
    for path in ("/schemes", "/schemes/{name}", "/presets", "/presets/{name}"):
        for method in ("get", "head"):
            operation = document["paths"][path][method]
            lang = next(parameter for parameter in operation["parameters"] if parameter["name"] == "lang")
            assert lang["in"] == "query" and lang["schema"]["enum"] == ["en", "zh"] and "422" in operation["responses"]
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            example = server.get(path.format(name="rope" if "schemes" in path else "llama-3.1")).json()
            validator = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
            validator.validate(example)
            assert not validator.is_valid({})
    entry = document["components"]["schemas"]["Entry"]
    assert {"label", "label_zh", "summary", "summary_zh"} <= set(entry["required"]) == set(entry["required"]) & set(entry["properties"])
