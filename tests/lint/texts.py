"""Holds the texts in two languages: English in the C sources, Chinese in zh.po of core and api, with the same placeholders and one term
for one idea. Core's texts name no endpoint and no flag: api adds them (api/problem.c).

    python3 tests/lint/texts.py [--root .]

No C file has Chinese. Each entry of a catalogue names the files that have its English as a string literal, or several in a row; an entry
whose text has gone is stale. core/glossary.txt has the terms, also of the page's texts and stories. That no row lacks a text is checked by tests/core/test_texts.c, on the rows.
Prints one line per violation; status 1 if there is one.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

LITERAL = r'"(?:[^"\\\n]|\\.)*"'
COMMENT = re.compile(rf"({LITERAL}|'(?:[^'\\]|\\.)+')|/\*.*?\*/|//[^\n]*", re.S)
TOKEN = re.compile(rf"{LITERAL}|#\w+|[A-Za-z_]\w*|\\\n|\s+|.", re.S)
MACRO = re.compile(rf"^#define (\w+)((?:\s|\\\n|{LITERAL}|[A-Z_]+\b)+)$", re.M)
CHINESE = re.compile("[\u3400-\u9fff]")
ONLY_CHINESE = re.compile("[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")  # with its punctuation
PLACEHOLDER = re.compile(r"\{[\w.]+\}")
CONVERSION = re.compile(r"%(?:\d+\$)?[-+ #0]*[\d*]*(?:\.(?:[\d*]+))?(?:hh|h|ll|l|z|j)?[a-zA-Z]")
LATIN_PAIR = re.compile(r"([A-Za-z][\w.+-]*) +([A-Za-z][\w.+-]*)")
HALF_WIDTH = re.compile("[\u3400-\u9fff][,;:!?()]|[,;:!?()][\u3400-\u9fff]")
UNSPACED = re.compile("[\u3400-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u3400-\u9fff]")
OF_SERVER = re.compile(r"\b(?:GET|POST|PUT) /|(?<![\w-])--[a-z]")
ANYTHING = "\0"  # what a macro's argument stands for

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
    """Every text of a file: literals in a row are one; macros that are literals count as such, arguments of macros as anything."""
    bare = COMMENT.sub(lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group(0)), source)
    macros = {name: body for name, body in MACRO.findall(bare) if '"' in body}
    text = None

    def value(token):
        if token[0] == '"':
            return token[1:-1]
        if token[0] == "#":
            return ANYTHING
        return "".join(value(t) for t in TOKEN.findall(macros[token]) if t[0] == '"' or t in macros)

    yield from map(value, macros)
    for token in [*TOKEN.findall(bare), ";"]:
        if token[0] == '"' or token in macros or token[0] == "#" and text is not None:
            text = (text or "") + value(token)
        elif not token.isspace() and token != "\\\n":
            if text is not None:
                yield text
            text = None


def has(found, text):
    return text in found or any(re.fullmatch(".+".join(map(re.escape, one.split(ANYTHING))), text) for one in found if ANYTHING in one)


def entries(catalogue):
    """(line, {"": comments, "msgctxt": …, "msgid": …, "msgstr": …}) of each entry but the first, which describes the file."""
    entry, word, first = {"": []}, None, 1
    for number, line in enumerate([*catalogue.splitlines(), ""], 1):
        if line.startswith("#"):
            entry[""].append(line)
        elif line.startswith("msg"):
            word, text = line.split(" ", 1)
            entry[word] = text[1:-1]
        elif line.startswith('"'):
            entry[word] += line[1:-1]
        else:
            if entry.get("msgid"):
                yield first, entry
            entry, first = {"": []}, number + 1


def glossary(path):
    """[(pattern of the English, the Chinese words of which the text has one, words that it must not have)]"""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and line[0] != "#":
            english, chinese, wrong = (part.strip() for part in (line + "||").split("|")[:3])
            rows.append((re.compile(rf"(?<![\w.]){re.escape(english)}(?:s|es)?(?!\w|\.\w)", re.I), english,
                         [word.strip() for word in chinese.split(",")], [word.strip() for word in wrong.split(",") if word.strip()]))
    return rows


def faults(english, chinese, words, terms):
    if english is None or ONLY_CHINESE.search(english):
        yield "no English text before it"
        return
    if sorted(PLACEHOLDER.findall(english)) != sorted(PLACEHOLDER.findall(chinese)):
        yield f"placeholders differ from those of {english!r}"
    bare = CONVERSION.sub("%", chinese)
    for first, second in LATIN_PAIR.findall(re.sub(r"`[^`]*`", "``", bare)):
        if f"{first} {second}" not in NAMES and not {first, second} <= words:
            yield f"two Latin words in a row, {first} {second}"
    for mark in HALF_WIDTH.findall(bare):
        yield f"half-width punctuation beside Chinese, {mark}"
    for place in UNSPACED.findall(bare):
        yield f"no space between Chinese and Latin, {place}"
    yield from term_faults(english, chinese, words, terms)


def term_faults(english, chinese, words, terms):
    for pattern, term, chosen, wrong in terms:
        if pattern.search(english):
            own = {word for word in re.findall(r"[a-z]\w*", chinese) if word in words}  # a field keeps its name
            if not any(word in chinese for word in chosen) and not own & {term, term + "s"}:
                yield f"{term!r} is {' or '.join(chosen)} (core/glossary.txt)"
            for word in wrong:
                if word in chinese:
                    yield f"{term!r} is {' or '.join(chosen)}, not {word} (core/glossary.txt)"


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


def plain(text):
    return text.replace('\\"', '"')


def catalogue_problems(root, path, words, terms):
    found = {}
    for line, entry in entries(path.read_text()):
        where, english, chinese = f"{path.relative_to(root)}:{line}", entry["msgid"], entry.get("msgstr", "")
        if any("fuzzy" in comment for comment in entry[""] if comment.startswith("#,")):
            yield f"{where}: {english!r}: marked as fuzzy"
        if not chinese:
            yield f"{where}: {english!r}: not translated"
            continue
        references = [comment[2:].strip() for comment in entry[""] if comment.startswith("#:")]
        if not references:
            yield f"{where}: {english!r}: names no file"
        for name in references:
            if name not in found:
                found[name] = set(texts((root / name).read_text())) if (root / name).exists() else set()
            if not has(found[name], english):
                yield f"{where}: {english!r}: stale, {name} does not have it"
        for fault in faults(plain(english), plain(chinese), words, terms):
            yield f"{where}: {plain(chinese)!r}: {fault}"


def gettext_problems(path):
    if not shutil.which("msgfmt"):
        return ["msgfmt is missing, which checks catalogues; 'make test' installs it on Debian (package gettext)"]
    return subprocess.run(["msgfmt", "--check", "-o", "/dev/null", path], capture_output=True, text=True).stderr.splitlines()


def problems(root):
    words, terms = words_of(root), glossary(root / "core/glossary.txt")
    for path in sorted((root / "core").rglob("*.txt")):
        for line, english, chinese in pairs(path.read_text()) if path.name != "glossary.txt" else []:
            for fault in faults(english, chinese, words, terms):
                yield f"{path.relative_to(root)}:{line}: {chinese!r}: {fault}"
    for path in sorted((root / "core").rglob("*.[ch]")):
        for text in texts(path.read_text()):
            if OF_SERVER.search(text):
                yield f"{path.relative_to(root)}: {text!r}: an endpoint or a flag of the server in core"
    for layer in ("core", "api", "server", "tests"):
        for path in sorted((root / layer).rglob("*.[ch]")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if ONLY_CHINESE.search(line):
                    yield f"{path.relative_to(root)}:{number}: Chinese in C; it belongs in {layer}/zh.po"
    for path in (root / "core/zh.po", root / "api/zh.po"):
        if path.exists():
            yield from gettext_problems(path)
            yield from catalogue_problems(root, path, words, terms)
    yield from page_problems(root, words, terms)


def page_problems(root, words, terms):
    """The terms of the page's texts, key by key, and of its stories, paragraph by paragraph."""
    page, found = root / "server/page", []
    for path in sorted(page.glob("text/zh.json")):
        english, chinese = json.loads(path.with_name("en.json").read_text()), json.loads(path.read_text())
        found += [(f"{path.relative_to(root)}: {key}", text, chinese.get(key, "")) for key, text in english.items()]
    for path in sorted(page.glob("stories/*.zh.md")):
        english, chinese = path.with_name(path.name.replace(".zh.", ".en.")).read_text().split("\n\n"), path.read_text().split("\n\n")
        if len(english) != len(chinese):
            yield f"{path.relative_to(root)}: {len(chinese)} paragraphs; the English has {len(english)}"
        found += [(f"{path.relative_to(root)}: paragraph {i}", " ".join(text.split()), other)
                  for i, (text, other) in enumerate(zip(english, chinese), 1)]
    for where, text, other in found:
        yield from (f"{where}: {fault}" for fault in term_faults(text, other, words, terms))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    bad = list(problems(parser.parse_args().root))
    print("\n".join(bad), end="\n" if bad else "")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
