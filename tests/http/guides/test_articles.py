"""The table of five articles in deploy/README.zh.md: each row's request is sent, and its answer has the values that the row states.

A value is written `path` = `value`, < or >. A path names members and places with dots; `status` and `Content-Type` are the response's. Numbers
are equal to the digits that are written. A value that is no JSON is another path. Of /experiments the last event is read."""
import json
import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).parents[3] / "deploy" / "README.zh.md"
STATED = re.compile(r"`([^`]+)` ([=<>]) `([^`]+)`")


class Written:
    """A number with the digits that it has."""

    def __init__(self, text):
        digits, _, power = text.lower().partition("e")
        self.value, self.unit = float(text), 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))

    def __repr__(self):
        return str(self.value)


def rows():
    section = GUIDE.read_text(encoding="utf-8").split("\n## 五篇文章的要求\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def find(document, path):
    """Names may contain dots, as those of tensors do: the longest one is meant."""
    parts = path.split(".")
    while parts:
        if isinstance(document, list):
            document, parts = document[int(parts[0])], parts[1:]
            continue
        n = next(n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in document)
        document, parts = document[".".join(parts[:n])], parts[n:]
    return document


def is_near(found, stated):
    if isinstance(stated, Written):
        return abs(found - stated.value) <= 0.5000001 * stated.unit
    if isinstance(stated, dict):
        return all(is_near(found[name], value) for name, value in stated.items())
    if isinstance(stated, list):
        return len(found) == len(stated) and all(map(is_near, found, stated))
    return found == stated


def read(response):
    kind = response.headers["Content-Type"].split(";")[0]
    document = json.loads(response.body.splitlines()[-1]) if "json" in kind else {}
    return {**document, "status": response.status, "Content-Type": kind}


def marks(request):
    return [pytest.mark.slow] if '"steps":300' in request else []


@pytest.mark.parametrize("request_text, answer", [pytest.param(row[2], row[3], id=f"{i}-{row[1]}", marks=marks(row[2])) for i, row in enumerate(rows())])
def test_row(server, request_text, answer):
    path, body = request_text.strip("`").split(" ", 1)
    found, stated = read(server.post(path, json.loads(body))), STATED.findall(answer)
    assert stated, answer
    for where, relation, text in stated:
        value = find(found, where)
        try:
            expected = json.loads(text, parse_float=Written, parse_int=Written)
        except ValueError:
            expected = find(found, text)
        if relation == "=":
            assert is_near(value, expected), (where, value, text)
        else:
            limit = expected.value if isinstance(expected, Written) else expected
            assert value < limit if relation == "<" else value > limit, (where, value, text)


def test_all_five_articles_are_there():
    assert {name for row in rows() for name in row[0].split("、")} == set("一二三四五") and len(rows()) >= 61
