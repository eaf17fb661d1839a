"""Holds the texts in two languages: each Chinese text in core/ and api/ stands right after its English twin and says the same names.

    python3 tests/lint/texts.py [--root .]

A text is a string literal, or several in a row. One with Chinese characters is a twin; the text before it in the file is its English.
Prints one line per violation; status 1 if there is one. That no row lacks a text is checked by tests/core/test_texts.c, on the rows.
"""
import argparse
import pathlib
import re
import sys

LITERAL = r'"(?:[^"\\\n]|\\.)*"'
TEXT = re.compile(rf"{LITERAL}(?:(?:\s|\\\n|#\w+)*{LITERAL})*")
COMMENT = re.compile(rf"({LITERAL}|'(?:[^'\\]|\\.)+')|/\*.*?\*/|//[^\n]*", re.S)
CHINESE = re.compile("[\u3400-\u9fff]")
ONLY_CHINESE = re.compile("[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")  # with its punctuation
PLACEHOLDER = re.compile(r"\{\w+\}")
LATIN_PAIR = re.compile(r"([A-Za-z][\w.+-]*) +([A-Za-z][\w.+-]*)")
HALF_WIDTH = re.compile("[\u3400-\u9fff][,;:!?()]|[,;:!?()][\u3400-\u9fff]")
UNSPACED = re.compile("[\u3400-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u3400-\u9fff]")

# Names of two words; those of one word, and of words joined by a hyphen, need no entry.
NAMES = {"Hugging Face", "Swin V2", "Command R", "Command R+"}


def words_of(root):
    """Names of schemes, fields, values and outputs: the literals of core/ that are one word, and the fields of row macros."""
    words = set()
    for path in sorted((root / "core").rglob("*.[ch]")):
        source = path.read_text()
        words.update(re.findall(r'"([a-z][a-z0-9_]*)"', source))
        words.update(re.findall(r"\b[A-Z][A-Z_]*\((?:\w+, )?([a-z][a-z0-9_]*),", source))
    for path in sorted((root / "core").rglob("*.txt")):
        words.update(word for field in re.findall(r"[\w.]+=[\w,\[\]]+", path.read_text()) for word in re.findall(r"[a-z]\w*", field))
    return words


def texts(source):
    """(line, text) of every literal outside of comments."""
    bare = COMMENT.sub(lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group(0)), source)
    for match in TEXT.finditer(bare):
        joined = "".join(part[1:-1] for part in re.findall(LITERAL, match.group(0)))
        yield source.count("\n", 0, match.start()) + 1, joined.replace('\\"', '"')


def faults(english, chinese, words):
    if english is None or ONLY_CHINESE.search(english):
        yield "no English text before it"
        return
    if sorted(PLACEHOLDER.findall(english)) != sorted(PLACEHOLDER.findall(chinese)):
        yield f"placeholders differ from those of {english!r}"
    for first, second in LATIN_PAIR.findall(re.sub(r"`[^`]*`", "``", chinese)):
        if f"{first} {second}" not in NAMES and not {first, second} <= words:
            yield f"two Latin words in a row, {first} {second}"
    for mark in HALF_WIDTH.findall(chinese):
        yield f"half-width punctuation beside Chinese, {mark}"
    for place in UNSPACED.findall(chinese):
        yield f"no space between Chinese and Latin, {place}"


def pairs(blocks):
    """(line, English, Chinese) of a file of blocks (core/models/rows.awk): the key x.zh is the twin of x above it."""
    values, key = {}, None
    for number, line in enumerate([*blocks.splitlines(), "end"], 1):
        if line.startswith(" " * 8):
            values[key][1] += " " + line.strip()
        elif line.startswith("    "):
            key, text = line.split(None, 1)
            values[key] = [number, text]
        elif line and line[0] != "#":
            yield from ((values[k][0], values.get(k[:-3], [0, None])[1], values[k][1]) for k in values if k.endswith(".zh"))
            values = {}


def problems(root):
    words = words_of(root)
    for path in sorted((root / "core").rglob("*.txt")):
        for line, english, chinese in pairs(path.read_text()):
            for fault in faults(english, chinese, words):
                yield f"{path.relative_to(root)}:{line}: {chinese!r}: {fault}"
    for layer in ("core", "api"):
        for path in sorted((root / layer).rglob("*.[ch]")):
            before = None
            for line, text in texts(path.read_text()):
                if CHINESE.search(text):
                    for fault in faults(before, text, words):
                        yield f"{path.relative_to(root)}:{line}: {text!r}: {fault}"
                elif ONLY_CHINESE.search(text):
                    yield f"{path.relative_to(root)}:{line}: {text!r}: Chinese punctuation in English"
                before = text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    bad = list(problems(parser.parse_args().root))
    print("\n".join(bad), end="\n" if bad else "")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
