"""Every row of ../cases is one test; what a bad row is."""
import json

import pytest

import run

SERVERS = pytest.StashKey()


class Row(pytest.Item):
    """A test without fixtures: pytest takes as long for a function with one as most rows are asked for."""

    is_row = True

    def __init__(self, row, **more):
        super().__init__(run.name_of(row), **more)
        self.row = row
        self.add_marker(pytest.mark.xdist_group("cases-" + row["file"]))

    def runtest(self):
        run.check(self.row, servers_of(self.session).of(self.row))

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if isinstance(excinfo.value, AssertionError) else super().repr_failure(excinfo, style)


def items(module):
    """What conftest.py collects beside the functions."""
    return [Row.from_parent(module, row=row) for row in run.every()]


def servers_of(session):
    if SERVERS not in session.stash:
        session.stash[SERVERS] = run.Servers()
        session.addfinalizer(session.stash[SERVERS].stop)
    return session.stash[SERVERS]


GOOD = {"id": "a", "why": "the answer has a status", "get": "/healthz", "expect": {"status": 200}}


@pytest.mark.parametrize("fields, words", [
    ({"expects": {}}, "unknown keys"), ({"id": ""}, "no id"), ({"why": "x"}, "no why"), ({"post": "/encode"}, "method and path"),
    ({"expect": {}}, "nothing is expected"), ({"expect": {"statuz": 200}}, "unknown expectations"),
    ({"expect": {"law": ["no_such_law"]}}, "laws.py has no"), ({"expect": {"truth": True}}, "no answers of this path")])
def test_a_bad_row_ends_the_run_with_its_file_and_line(tmp_path, fields, words):
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, "id": "b", **fields}) + "\n")
    with pytest.raises(run.BadRow, match=words) as raised:
        run.read(path)
    assert f"{path}:2: " in str(raised.value)


def test_two_rows_have_two_names(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD) + "\n")
    with pytest.raises(run.BadRow, match="second row"):
        run.read(path)


@pytest.mark.parametrize("expect", [{"status": 404}, {"words": ["no such word"]}, {"values": {"/status": "bad"}}, {"values": {"/none": 1}}, {"absent": ["/status"]},
                                    {"headers": {"Content-Type": "x"}}, {"text": ""}, {"has": {"/status": "zz"}}, {"no_words": ["ok"]}])
def test_a_row_that_does_not_hold_fails_with_the_row_the_answer_and_the_command(server, expect):
    with pytest.raises(AssertionError) as raised:
        run.check({**GOOD, "file": "some", "expect": expect}, server)
    assert '"why": "the answer has a status"' in str(raised.value)
    assert "answer: <200" in str(raised.value) and "again:  tests/http/run.py some/a" in str(raised.value)
