"""Every field that a row of core/models reads, null or of another kind: the config is read or refused, and the server goes on."""
import pathlib
import re

import pytest

MODELS = pathlib.Path(__file__).resolve().parents[3] / "core" / "models"
OTHERS = (None, [], {}, "x", -1, 0.5, [None])


def fields_of(name):
    """Of each row the fields that have a value in it, or that it reads."""
    rows, row = {}, set()
    for line in (MODELS / name).read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            row = rows.setdefault(line.split("/")[0].strip(), set())
        row.update(re.findall(r"\b([a-z]\w*)=", line))
        key, _, words = line.strip().partition(" ")
        if key in ("reads", "rope_if", "base"):
            row.update(re.findall(r"[a-z]\w*", words))
    return rows


@pytest.mark.parametrize("name, key, values", [("types.txt", "model_type", (None, [])), ("classes.txt", "_class_name", OTHERS)])
def test_a_field_of_another_kind(server, name, key, values):
    rows = fields_of(name)
    assert len(rows) > 40 and any(rows.values())
    for model, fields in rows.items():
        for field in sorted(fields):
            for value in values:
                answer = server.post("/explain", {"hf_config": {key: model, field: value}})
                assert answer.status in (200, 422), (model, field, value, answer)
