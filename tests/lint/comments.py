"""Holds that a file which a comment or a guide names is there, and that a ruler (a heading between functions) is one line.

    python3 tests/lint/comments.py [--root .]

A name is `name.c` or `folder/name.c` in backquotes of a guide (*.md), or bare in a comment of C; a file whose path ends with it is enough,
since a comment names a neighbour without its folder. In capitals is a placeholder (`NAME.c`); what a build writes is in build/; OTHERS are files of other programs, and
comments name files of Python, JSON and texts of other programs only. Prints one line per violation; status 1 if there is one.
"""
import re

import checker
import words

OTHERS = {"config.json", "model_index.json", "zarr.json", "microhttpd.h", "uv.h", "curl/curl.h", "sanitizer/msan_interface.h", "sleefsimddp.c",
          "docs/source/basic_tutorials/launcher.md", "driver/others/memory.c", "gemm_small_kernel_nn_skylakex.c", "c/blake3_dispatch.c", "ATen/native/UpSample.h"}
ENDINGS = "c|h|js|mjs|awk|sh|md|jsonl|po"
IN_GUIDE = re.compile(rf"(?:\.\.?/)*((?:[\w.-]+/)*[\w-]{{2,}}(?:\.\w+)*\.(?:{ENDINGS}|py|json|txt|html|css))")
IN_COMMENT = re.compile(rf"(?<![\w./-])((?:[\w-]+/)*[\w-]{{2,}}(?:\.en|\.zh|\.test)?\.(?:{ENDINGS}))(?![\w/*(])")
PLACEHOLDER = re.compile(r"(?<![A-Za-z])[A-Z_]{4,}(?![a-z])")
CODE = re.compile(r"^```.*?^```|`([^`\n]+)`", re.M | re.S)
RULER = re.compile(r"/\* ?-{3,}")


def endings(root):
    """{"api/text.c", "text.c"} and so on: every end of the path of every file."""
    found = set()
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        if path.is_file() and parts[0] not in ("build", ".git"):
            found.update("/".join(parts[i:]) for i in range(len(parts)))
    return found


def in_guide(text):
    for match in CODE.finditer(text):
        whole = IN_GUIDE.fullmatch(match[1] or "")
        if whole:
            yield match.start(), whole[1]


def comments(text):
    return ((match.start(1), match[1]) for match in words.COMMENT.finditer(text) if match[1])


def in_comments(text):
    for start, comment in comments(text):
        for match in IN_COMMENT.finditer(comment):
            yield start + match.start(), match[1]


def broken_rulers(text):
    """A ruler may have prose below it, but its own dashes end on its line."""
    for start, comment in comments(text):
        first, _, rest = comment.partition("\n")
        if RULER.match(comment) and rest and (not rest.strip(" -*/") or re.search(r"-{3,} *\*/$", rest)):
            yield start


def problems(root):
    known = endings(root)
    for path in [*root.rglob("*.md"), *root.rglob("*.[ch]")]:
        parts = path.relative_to(root).parts
        if parts[0] in ("build", ".git") or "stories" in parts:
            continue
        text, where = path.read_text(), path.relative_to(root)
        for at, name in (in_guide if path.suffix == ".md" else in_comments)(text):
            if name not in known and name not in OTHERS and not name.startswith("build/") and not PLACEHOLDER.search(name.rpartition(".")[0]):
                yield f"{where}:{text.count(chr(10), 0, at) + 1}: {name}: no such file"
        if path.suffix != ".md":
            for at in broken_rulers(text):
                yield f"{where}:{text.count(chr(10), 0, at) + 1}: a ruler over two lines; shorten it"


if __name__ == "__main__":
    checker.main(lambda arguments: problems(arguments.root))
