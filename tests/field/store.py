"""The rows of cases.jsonl and their arrays."""
import functools
import hashlib
import json
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # tests/truth
STORED = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "bf16": "<u2", "i64": "<i8", "i32": "<i4"}


def half(project):
    """Half of the projects are aside, so that nobody mends the diagnosis for them: by a hash of the name."""
    return "aside" if int(hashlib.sha256(project.encode()).hexdigest(), 16) % 2 else "known"


def rows(which="all"):
    with open(HERE / "cases.jsonl", encoding="utf-8") as lines:
        every = [json.loads(line) for line in lines]
    return [row for row in every if which in ("all", half(row["project"]))]


@functools.lru_cache(maxsize=8)
def stored(name):
    with np.load(HERE / "tensors" / name) as file:
        return {key: file[key] for key in file.files}


def raw(row, name):
    """An array as it is stored; bf16 as its bits."""
    entry = row["arrays"][name]
    if "drawn" in entry:
        return np.random.RandomState(entry["drawn"]).standard_normal(entry["shape"]).astype("<f4")
    return stored(row["store"])[entry["key"]]


def arrays(row):
    """{name: array}, bf16 widened to f32."""
    out = {name: raw(row, name) for name in row["arrays"]}
    return {name: widened(a) if row["arrays"][name]["dtype"] == "bf16" else a for name, a in out.items()}


def widened(bits):
    return (bits.astype("<u4") << 16).view("<f4")


def dtypes(row):
    return {name: entry["dtype"] for name, entry in row["arrays"].items()}
