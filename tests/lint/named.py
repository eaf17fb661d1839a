"""What a guide names as holding a promise is there: the names in the column "held by" of server/PROMISES.md, and the names of tests in
tests/README.md and the guides of its folders; and the files that the runners list.

    python3 tests/lint/named.py [--root .]

A name is a test (`test_x`), a file of tests (`test_x.py`, `test_x.c`, `x.test.mjs`), rows of tests/cases (`cases/x.jsonl`, one of them as
`x/id`, several as `x/id-*`), `make x`, or a path. In the column every name must be one of these; in guides, where other words stand too, what looks like a test or
like rows. Prints one line per name that is not there; status 1 if there is one.
"""
import fnmatch
import json
import pathlib
import re

import checker

NAME = re.compile(r"`([^`]+)`")
PLACEHOLDER = re.compile(r"[A-Z]{2}")  # a guide says test_NAME.py of any of them
LIKE_A_TEST = re.compile(r"test_\w+(\.(py|c))?|[\w-]+\.test\.mjs|(cases/)?[\w-]+\.jsonl")
DEFINED = re.compile(r"^\s*(?:async )?def (test_\w+)\(|\bvoid (test_\w+)\(|^TEST(?:_BETWEEN)?\((\w+)", re.M)
MAKEFILES = ("Makefile", "*.mk")
# Where runners list files of tests by their names without an ending.
LISTS = [("tests/support/run_tests.sh", r"^(?:BRIEF|measured_c)='([^']*)'"), ("Makefile", r"^COMPUTING := (.*)$"),
         ("tests/http/conftest.py", r"^(?:ALONE|PATIENT|LONG) = [{\[]([^}\]]*)")]


class Tree:
    """What there is to name."""

    def __init__(self, root):
        self.root, tests = root, root / "tests"
        files = [path for path in tests.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        sources = [path for path in files if path.name.startswith("test_") and path.suffix in (".py", ".c")]
        self.files = {path.name for path in files}
        self.defined = {name for path in sources for found in DEFINED.findall(path.read_text()) for name in found if name}
        self.rows = {path.stem: ids(path) for path in tests.glob("cases/*.jsonl")}
        text = "".join(path.read_text() for pattern in MAKEFILES for path in root.glob(pattern))
        self.targets = {target for line in re.findall(r"^([\w -]+):", text, re.M) for target in line.split()}

    def has(self, name):
        if name.startswith("make "):
            return name[5:].split()[0] in self.targets
        if re.fullmatch(r"test_\w+", name):
            return name in self.defined or name[5:] in self.defined
        if name.endswith(".jsonl"):
            return name.removeprefix("cases/") in self.files
        if self.is_row(name):
            file, _, row = name.partition("/")
            return bool(fnmatch.filter(self.rows[file], row))
        return name in self.files or (self.root / name).exists()

    def is_row(self, name):
        file, slash, row = name.partition("/")
        return bool(slash and row) and file in self.rows and not (self.root / "tests" / name).exists()


def ids(path):
    return {json.loads(line)["id"] for line in path.read_text().splitlines() if line.strip()}


def named(root, tree):
    """(guide, line, name) of everything that is named as a test."""
    for number, line in enumerate((root / "server/PROMISES.md").read_text().splitlines(), 1):
        cells = line.split("|")
        if line.startswith("| **"):
            names = NAME.findall(cells[2])
            yield from (("server/PROMISES.md", number, name) for name in names or ["(no test)"])
    for guide in [root / "tests/README.md", *sorted((root / "tests").glob("*/README.md"))]:
        for number, line in enumerate(guide.read_text().splitlines() if guide.exists() else (), 1):
            for name in NAME.findall(line):
                if not PLACEHOLDER.search(name) and (LIKE_A_TEST.fullmatch(name) or tree.is_row(name)):
                    yield guide.relative_to(root).as_posix(), number, name


def listed(root, tree):
    """(runner, line, name) of the files that a runner lists and that are not there."""
    stems = {pathlib.Path(name).stem for name in tree.files}
    for runner, pattern in LISTS:
        text = (root / runner).read_text() if (root / runner).exists() else ""
        for found in re.finditer(pattern, text, re.M):
            for name in re.finditer(r"\btest_\w+", found[1]):
                if name[0] not in stems:
                    yield runner, text[:found.start(1) + name.start()].count("\n") + 1, name[0]


def problems(root):
    tree = Tree(root)
    absent = [*(one for one in named(root, tree) if not tree.has(one[2])), *listed(root, tree)]
    return [f"{guide}:{number}: {name}: no such test, row or path" for guide, number, name in absent]


if __name__ == "__main__":
    checker.main(lambda arguments: problems(arguments.root))
