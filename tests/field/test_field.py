"""The store of other people's tensors is whole, and its beliefs are what the formulas say; no server is asked here."""
import hashlib
import re

import pytest
import store  # first: it finds tests/truth
from truth import evidence

ROWS = store.rows()
FIELDS = {"id", "project", "commit", "licence", "path", "symbol", "evidence", "layout", "store", "arrays", "identify", "right", "wrong", "note", "differs"}
CODE = re.compile(r"\b(def|class|import|return|lambda|torch\.|np\.|jnp\.|self\.)\b|[{};]\s*$")
KINDS = {"cos", "sin", "q", "q_out", "k", "k_out", "angles", "position_ids", "encoding", "bias", "buckets", "table", "freqs_cis", "cos_sin", "matrix", "inv_freq",
         "rope_freqs", "scores", "probs", "attention_mask"}
MOST = 12 << 20


def by_id(rows):
    return [pytest.param(row, id=row["id"]) for row in rows]


@pytest.mark.parametrize("row", by_id(ROWS))
def test_row(row):
    assert set(row) <= FIELDS and FIELDS - set(row) <= {"note", "differs"}
    assert re.fullmatch(r"[0-9a-f]{40}", row["commit"]) and row["project"].count("/") == 1
    assert set(row["arrays"]) <= KINDS
    assert len(row["wrong"]) >= 4 and all(one["codes"] and one["mistake"] for one in row["wrong"])
    assert (row["right"] is None) == ("differs" in row)
    words = [row[name] for name in ("symbol", "layout", "note", "differs") if name in row] + [one["mistake"] for one in row["wrong"]]
    assert not [text for text in words if CODE.search(text) or len(text) > 200]


@pytest.mark.parametrize("row", by_id(ROWS))
def test_arrays(row):
    for name, entry in row["arrays"].items():
        a = store.raw(row, name)
        assert list(a.shape) == entry["shape"] and a.dtype == store.STORED[entry["dtype"]]
        if "sha256" in entry:
            assert hashlib.sha256(a.tobytes()).hexdigest() == entry["sha256"], name


@pytest.mark.parametrize("row", by_id(ROWS))
def test_beliefs(row):
    """The right belief is within what float32 loses; no wrong one is."""
    arrays, dtypes = store.arrays(row), store.dtypes(row)
    if row["right"]:
        assert evidence.agrees(row["right"], arrays, dtypes) <= 1
    for one in row["wrong"]:
        if "sent_as" not in one and not (row["right"] is None and one is row["wrong"][0]):
            assert evidence.apart(one["belief"], arrays, dtypes) > 0, one["mistake"]


def test_whole():
    assert len(ROWS) == len({row["id"] for row in ROWS})
    used = {(row["store"], entry["key"]) for row in ROWS for entry in row["arrays"].values() if "key" in entry}
    held = {(file.name, key) for file in (store.HERE / "tensors").iterdir() for key in store.stored(file.name)}
    assert used == held
    assert sum(file.stat().st_size for file in (store.HERE / "tensors").iterdir()) < MOST


def test_halves():
    halves = [store.half(project) for project in {row["project"] for row in ROWS}]
    assert 0.35 < halves.count("aside") / len(halves) < 0.65
