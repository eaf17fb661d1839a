"""A checker that cannot fail checks nothing: feeds layers.py, rooms.py, texts.py, words.py, comments.py, named.py, faults.py and
core/models/rows.awk what breaks one rule each, and what breaks none; and sizes.py trees whose lines are known.

Each line of selftest.jsonl is a small tree of `files`, which of CHECKS judges it, and the `words` that it must print; null: it must accept
the tree. `at` is a file and line that it must name, too. `prints`: it accepts the tree and prints this; `tagged` are the files at the last tag."""
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
ROWS = HERE.parents[1] / "core/models/rows.awk"
# What a checker prints beside its verdict: counts of words, a warning of msgfmt.
SILENT = r"words to be rare|.*header field"

# What the trees of includes are added to.
CLEAN = {
    "core/posenc.h": "#include <stddef.h>\n",
    "core/scheme.h": '#include "core/posenc.h"\n',
    "core/plan.c": '#include "core/scheme.h"\n#include <math.h>\n',
    "core/schemes/list.h": "SCHEME(rope)\nSCHEME(xpos)\n",
    "core/schemes/rotary/rotary.h": '#include "core/scheme.h"\n',
    "core/schemes/rotary/rope.c": '#include "core/schemes/rotary/rotary.h"\n',
    "core/kernels/kernels.h": "#include <stdint.h>\n",
    "core/kernels/waves.c": '#include "core/kernels/kernels.h"\n',
    "api/api.h": '#include "core/posenc.h"\n',
    "api/replies/reply.c": '#include "api/api.h"\n',
    "server/transport/http.c": '#include "api/api.h"\n',
    "server/process/log.c": '#include "api/api.h"\n#include <unistd.h>\n',
    # Stubs of the outside libraries, so that these tests do not need them.
    "include/jansson.h": "", "include/uv.h": "", "include/microhttpd.h": "", "include/cblas.h": "",
    "include/png.h": "",
}


@contextlib.contextmanager
def tree(files):
    """A small tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write(root, files)
        yield root


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def tag(root):
    """A repository whose last tag has the files of now."""
    for words in ("init -q", "add .", "-c user.name=x -c user.email=x commit -q -m x", "tag v1"):
        subprocess.run(["git", "-C", root, *words.split()], check=True)


def compiled(root):
    """The tree's objects, where the Makefile would put them."""
    for path in sorted(root.rglob("*.c")):
        obj = (root / "build/obj" / path.relative_to(root)).with_suffix(".o")
        obj.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-fno-builtin", "-c", path, "-o", obj], check=True)


def python(checker, root, *flags):
    return sys.executable, HERE / f"{checker}.py", "--root", root, *flags


def of_objects(checker, root, *flags):
    compiled(root)
    return python(checker, root, *flags, "--build", root / "build")


def of_blocks(root):
    table = next(root.glob("*.txt"))
    return "env", "LC_ALL=C", "awk", "-v", f"table={table.stem}", "-v", f"list={ROWS.parent / 'hf/list.h'}", "-f", ROWS, table


CHECKS = {
    "includes": lambda root: python("layers", root),
    "calls": lambda root: of_objects("layers", root, "--calls"),
    "rooms": lambda root: of_objects("rooms", root),
    "texts": lambda root: python("texts", root),
    "words": lambda root: python("words", root),
    "comments": lambda root: python("comments", root),
    "named": lambda root: python("named", root),
    "sizes": lambda root: python("sizes", root),
    "faults": lambda root: python("faults", root),
    "blocks": of_blocks,
}


def fault(row):
    """A sentence if the checker does not do what the row expects."""
    words, start = row.get("words"), CLEAN if row["check"] == "includes" else {}
    with tree(start | row.get("tagged", row["files"])) as root:
        if "tagged" in row:
            tag(root)
            write(root, row["files"])
        done = subprocess.run([str(word) for word in CHECKS[row["check"]](root)], capture_output=True, text=True)
    said = "".join(line for line in (done.stdout + done.stderr).splitlines(True) if not re.match(SILENT, line))
    if "prints" in row:
        return None if done.returncode == 0 and row["prints"] in said else f"{json.dumps(row)}: got status {done.returncode}: {said.strip()}"
    fits = done.returncode == 0 or not said if words is None else done.returncode and words in said and row.get("at", "") in said
    return None if fits else f"{json.dumps(row, ensure_ascii=False)}: got status {done.returncode}: {said.strip()}"


def main():
    rows = [json.loads(line) for line in (HERE / "selftest.jsonl").read_text().splitlines()]
    faults = [text for text in map(fault, rows) if text]
    for text in faults:
        print(f"selftest: {text}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
