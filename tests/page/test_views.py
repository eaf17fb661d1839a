"""The rows of cases/views.jsonl: what a link shows, its pictures against separate requests."""
import pytest

import rows
from browser import fragment
from figures import Shown

ROWS = rows.rows("views", "view", "configs", "keys")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_link(visit, row):
    page = visit(fragment(row["view"], *row.get("configs", ()), **{"lang": "en", **row.get("keys", {})}))
    rows.check(Shown(page), row)
