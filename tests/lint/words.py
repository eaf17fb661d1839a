"""Holds the English of comments, guides and texts for users: plain verbs, not the dialect that this project once had.

    python3 tests/lint/words.py [--root .]

A word of REFUSED has no proper use in a comment, a guide or a string of C with a space (one without is a name). Those of COUNTED often
have one (a branch is taken), so they are only counted, in one line. Names and quotations do not count: code blocks, `code`, "texts" in
comments, QUOTED_TEXTS, the generated parts of guides and the page's stories, which are served. And a static function is not called by a
verb of BARE alone, unless it is the entry of that name in a table of functions. Prints one line per word; status 1 if there is one.
"""
import collections
import re

import checker

REFUSED = {"nobody": "no client, no request, not … by anyone: whom you mean", "stands": "is, is stored, denotes, is stopped", "told": "given, known, sent",
           "says": "states, has, reports", "breathe": "yield", "breathes": "yields"}
# Strings that quote others: a value of answers, JSON's names in C, the words of tools.
QUOTED_TEXTS = {"as told"}
COUNTED = ["come", "comes", "taken", "land", "lands", "lies", "rests", "face", "said", "stand", "say", "seat", "kept", "made", "leaves"]
BARE = re.compile(r"^static\b[^;={}()\n]*\b(add|compute|find|put|see|take)\(", re.M)
NOT_YET = {"core/derive/derive.c", "core/derive/tex.c"}  # have such functions still

LITERAL = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\''
COMMENT = re.compile(rf"{LITERAL}|(/\*.*?\*/|//[^\n]*)", re.S)
STRING = re.compile(r'("(?:[^"\\\n]|\\.)*")|\'(?:[^\'\\\n]|\\.)+\'|/\*.*?\*/|//[^\n]*', re.S)
QUOTED = re.compile(r'"[^"\n]*"')
IN_GUIDE = re.compile(r"^```.*?^```|<!-- (\w+):begin -->.*?<!-- \1:end -->|`[^`]*`|\"[^\"\n]*\"", re.M | re.S)


def blank(text):
    """The same lines without their words."""
    return re.sub(r"[^\n]", " ", text)


def prose(path, text):
    """What a reader reads as English, every line at its place."""
    if path.suffix == ".md":
        return IN_GUIDE.sub(lambda m: blank(m.group(0)), text)
    kept, at = [], 0
    for match in COMMENT.finditer(text):
        kept.append(blank(text[at:match.start(1)] if match.group(1) else text[at:match.end()]))
        kept.append(QUOTED.sub(lambda m: blank(m.group(0)), match.group(1)) if match.group(1) else "")
        at = match.end()
    return "".join(kept) + blank(text[at:])


def strings(text):
    """What users read: the strings of C that have a space, every line at its place."""
    kept, at = [], 0
    for match in STRING.finditer(text):
        found = match.group(1)
        shown = found and " " in found and found[1:-1] not in QUOTED_TEXTS
        kept.append(blank(text[at:match.start()]) + (f" {found[1:-1]} " if shown else blank(match.group(0))))
        at = match.end()
    return "".join(kept) + blank(text[at:])


def files(root):
    for layer in ("core", "api", "server"):
        yield from sorted((root / layer).rglob("*.[ch]"))
    for path in sorted(root.rglob("*.md")):
        if not any(part in ("build", "stories") or part.startswith(".") for part in path.relative_to(root).parts):
            yield path


def problems(root):
    counts = collections.Counter()
    refused = re.compile(rf"\b({'|'.join(REFUSED)})\b", re.I)
    counted = re.compile(rf"\b({'|'.join(COUNTED)})\b", re.I)
    for path in files(root):
        source = path.read_text()
        text = prose(path, source)
        counts.update(word.lower() for word in counted.findall(text))
        for read in (text, strings(source)) if path.suffix != ".md" else (text,):
            for match in refused.finditer(read):
                line = read.count("\n", 0, match.start()) + 1
                yield f'{path.relative_to(root)}:{line}: "{match.group(1)}"; instead: {REFUSED[match.group(1).lower()]}'
        for match in BARE.finditer(source) if path.suffix != ".md" and str(path.relative_to(root)) not in NOT_YET else ():
            line, name = source.count("\n", 0, match.start()) + 1, match.group(1)
            if not re.search(rf"\.{name} = {name}\b", source):
                yield f"{path.relative_to(root)}:{line}: {name}() does not say what; instead: {name}_ and a noun"
    print("words to be rare in comments and guides: " + ", ".join(f"{word} {n}" for word, n in counts.most_common()))


if __name__ == "__main__":
    checker.main(lambda arguments: problems(arguments.root))
