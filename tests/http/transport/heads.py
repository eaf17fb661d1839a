"""The heads of cases/heads.jsonl as bytes. C reads the same table in tests/server/transport/test_head.c."""
import json
import pathlib

TABLE = pathlib.Path(__file__).resolve().parents[2] / "cases/heads.jsonl"


def bytes_of(head):
    """Each character is a byte; {"$repeat": text, "times": n} stands for a long one."""
    parts = head if isinstance(head, list) else [head]
    return "".join(part if isinstance(part, str) else part["$repeat"] * part["times"] for part in parts).encode("latin1")


def rows():
    """[(id, bytes, what is expected)]"""
    found = [json.loads(line) for line in TABLE.read_text().splitlines()]
    return [(row["id"], bytes_of(row["head"]), row["expect"]) for row in found]
