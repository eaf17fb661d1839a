"""Prints the code lines (neither blank nor comment) of each room, and their change since the last tag: a figure to look at, not a limit.

    python3 tests/lint/sizes.py [--root .]

Rooms are the folders of core/, api/ and server/ (C), tests/ (C and Python) and server/page/ (JavaScript). Without git, or without a tag, as
in a tarball or a shallow clone, no change is printed. The status is 0.
"""
import collections
import io
import pathlib
import re
import subprocess
import tarfile

import checker

LAYERS = {"core": (".c", ".h"), "api": (".c", ".h"), "server": (".c", ".h", ".js"), "tests": (".c", ".h", ".py")}
NO_CODE = {".py": re.compile(r"#[^\n]*|^\s*(?:\"\"\".*?\"\"\"|'''.*?''')", re.M | re.S)}
OF_C = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`|/\*.*?\*/|//[^\n]*', re.S)


def code_lines(name, text):
    """A comment of several lines leaves its line breaks, which are blank lines then."""
    if name.endswith(".py"):
        text = NO_CODE[".py"].sub("", text)
    else:
        text = OF_C.sub(lambda m: m[0] if m[0][0] in "\"'`" else "\n" * m[0].count("\n"), text)
    return sum(1 for line in text.splitlines() if line.strip())


def room_of(name):
    layer, *inner = pathlib.PurePosixPath(name).parts
    return layer, inner[0] if len(inner) > 1 else "."


def counted(files):
    """{(layer, room): code lines} of (name, text) pairs."""
    sizes = collections.Counter()
    for name, text in files:
        sizes[room_of(name)] += code_lines(name, text)
    return sizes


def is_counted(name):
    path = pathlib.PurePosixPath(name)
    return path.suffix in LAYERS.get(path.parts[0], ()) and (path.suffix != ".js" or path.parts[1] == "page")


def now(root):
    for layer in LAYERS:
        for path in sorted((root / layer).rglob("*")):
            name = path.relative_to(root).as_posix()
            if is_counted(name) and path.is_file():
                yield name, path.read_text()


def last_tag(root):
    """The last tag and the files that it had; None: there is no git, no tag, or not its commit."""
    def git(*words):
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True).stdout
    try:
        if pathlib.Path(git("rev-parse", "--show-toplevel").decode().strip()) != root.resolve():
            return None, []
        tag = git("describe", "--tags", "--abbrev=0").decode().strip()
        with tarfile.open(fileobj=io.BytesIO(git("archive", tag))) as archive:
            return tag, [(m.name, archive.extractfile(m).read().decode()) for m in archive if m.isfile() and is_counted(m.name)]
    except (OSError, subprocess.CalledProcessError):
        return None, []


def shown(name, size, change):
    return f"{name} {size}" + (f" ({change:+d})" if change else "")


def problems(root):
    sizes, (tag, files) = counted(now(root)), last_tag(root)
    before = counted(files) if tag else sizes
    print("code lines" + (f", and their change since {tag}" if tag else ""))
    for layer in LAYERS:
        rooms = sorted(room for of, room in {*sizes, *before} if of == layer)
        total, was = (sum(counts[layer, room] for room in rooms) for counts in (sizes, before))
        print(f"  {shown(layer, total, total - was)}: " +
              ", ".join(shown(room, sizes[layer, room], sizes[layer, room] - before[layer, room]) for room in rooms))
    return []


if __name__ == "__main__":
    checker.main(lambda arguments: problems(arguments.root))
