"""GET /presets?query=…&scheme=…&limit=…: which presets match, in which order, compared with a search over the whole list. Refusals and the
texts of nothing are rows of tests/cases/presets.jsonl."""
import re
import urllib.parse

import pytest


def ask(server, **fields):
    answer = server.get("/presets?" + urllib.parse.urlencode(fields))
    assert answer.status == 200, answer
    return answer.json()


def texts(preset):
    return [preset["name"], *preset.get("aliases", []), *(preset.get(key) or "" for key in ("label", "label_zh", "source", "note", "note_zh"))]


def found(presets, query):
    """Names in the order of the answer, by the rule of the guide."""
    words = query.lower().split()
    inside = {w: re.compile(r"(?<![a-z])%s" % re.escape(w) if w[0].isalpha() else r"(?<!\d)%s" % re.escape(w), re.A) for w in words}
    whole = {w: re.compile(inside[w].pattern + (r"(?![a-z])" if w[-1].isalpha() else r"(?!\d)"), re.A) for w in words}
    def has(preset, forms):
        return all(any(forms[w].search(text.lower()) for text in texts(preset)) for w in words)
    def rank(p):
        is_named = query.lower().strip() in (p["name"], *p.get("aliases", []))
        begins = words and p["name"].lower().startswith(words[0])
        return 0 if is_named else 1 if begins else 2 if words and has(p, whole) else 3
    hits = [p for p in presets if has(p, inside) or rank(p) == 0]
    return [p["name"] for p in sorted(hits, key=rank)]


@pytest.mark.parametrize("query", ["llama", "LLAMA", "llama-3.1", "llama 70b", "bert", "百川", "modeling", "gpt", "qwen  vl", "qwen3-8b", "wan", "3 8b", " ", "unverified-nothing"])
def test_every_word_is_searched(server, query):
    presets = server.get("/presets").json()["presets"]
    answer = ask(server, query=query)
    assert [p["name"] for p in answer["presets"]] == found(presets, query)
    assert answer["total"] == len(answer["presets"])


def test_an_entry_is_that_of_the_list_with_its_scheme(server):
    whole = {p["name"]: p for p in server.get("/presets").json()["presets"]}
    for one in ask(server, query="a")["presets"]:
        assert one.pop("scheme") == one["config"]["scheme"] and one == whole[one["name"]]


def test_scheme_and_limit(server):
    answer = ask(server, scheme="alibi", limit=2)
    whole = server.get("/presets").json()["presets"]
    assert answer["total"] == sum(p["config"]["scheme"] == "alibi" for p in whole) and len(answer["presets"]) == 2
    for limit in (0, 9, 10, 1000):
        some = ask(server, scheme="rope")["presets"][:limit]
        assert ask(server, scheme="rope", limit=limit)["presets"] == some
        lines = server.get(f"/presets?format=text&scheme=rope&limit={limit}").body.decode().splitlines()
        assert [line.split()[0] for line in lines] == [preset["name"] for preset in some]
