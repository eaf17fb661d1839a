"""The requests of cases/heavy.jsonl as bytes, each made when it is needed: some are large."""
import functools
import json

import run
from connection import post


def in_bytes(row, **fields):
    """With other fields in its request."""
    _, path, body, headers = run.sent(run.again(row, **fields) if fields else row)
    return post(body, path, *(f"{name}: {value}" for name, value in headers.items()))


def table(use):
    """{id: a function that makes the request} of the rows of a use."""
    rows = [json.loads(line) for line in (run.CASES / "heavy.jsonl").read_text().splitlines()]
    return {row["id"]: functools.partial(in_bytes, row) for row in rows if row["expect"]["table"] == use}
