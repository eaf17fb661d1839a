"""Holds the texts in two languages: English in the C sources, Chinese in zh.po of core and api, with the same placeholders and one term
for one idea. Core's texts name no endpoint and no flag: api adds them (api/problem.c).

    python3 tests/lint/texts.py [--root .]

No C file has Chinese. Each entry of a catalogue names the files that have its English as a string literal, or several in a row, as a
description in JSON, or as `positions`, `send` or `remark` of a block of core/models; an entry whose text has gone is stale, and a text of these kinds that has no
entry is reported. core/glossary.txt has the terms, also of the page's texts and stories. That no row lacks a text is checked by tests/core/test_texts.c, on the rows.
Prints one line per violation; status 1 if there is one.
"""
import json
import re
import shutil
import subprocess

import checker

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
INTEGERS = {"PRIu64": "lu", "PRId64": "ld"}  # of Linux on machines of 64 bits
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
        if token in INTEGERS:
            return INTEGERS[token]
        return "".join(value(t) for t in TOKEN.findall(macros[token]) if t[0] == '"' or t in macros)

    yield from map(value, macros)
    for token in [*TOKEN.findall(bare), ";"]:
        if token[0] == '"' or token in macros or token in INTEGERS or token[0] == "#" and text is not None:
            text = (text or "") + value(token)
        elif not token.isspace() and token != "\\\n":
            if text is not None:
                yield text
            text = None


def descriptions(source):
    """The descriptions within JSON that is a text of C."""
    return [found for text in texts(source) for found in re.findall(r'\\"description\\":\\"(.+?)\\"', text)]


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


# Functions whose argument of this number is a text that they translate; functions that hand such an argument on are found.
TRANSLATES = {"pe_derived_says": 1, "PE_STEP_SAYS": 1, "pe_fail": 2, "pe_fail_at": 3, "api_fail": 3, "pe_text": 0, "pe_leave_out": 1, "api_refusal": 1, "exchange_refuse_memory": 1}
# Texts that are translated where they are used, from a member of a struct: a file, and what is before the text.
MEMBERS = [("server/transport/*.c", r"refuse\(&?[\w>.-]+, \d+,\s*"), ("server/transport/*.c", r"\(struct http_refusal\)\{\d+,\s*"),
           ("core/schemes/**/*.c", r"\.hint = "), ("core/schemes/scalings/*.c", r"\.(?:\w+_)?about = "), ("api/operations.c", r"\.text = "), ("api/inputs/*.c", r"\.what = "),
           ("api/statuses.c", r"^    \{\d+, "), ("api/statuses.c", rf"^    \{{\d+, {LITERAL},\s*"), ("api/json/json_scan.c", r"error->text = "),
           ("core/**/*.c", r"\.summary = "), ("api/**/*.c", r"\.summary = "), ("api/routes.c", r"(?:\.lang|lang_of_entries\[\]) = "), ("api/routes.c", r"    MODEL\([^,]*, \w+, \w+, "),
           ("api/endpoints/openapi/studies.c", rf"^    \{{{LITERAL}, ")]
FUNCTION = re.compile(r"^(?:[a-z][\w *]*?[ *])(\w+)\(([^;{}]*?)\)\n\{\n(.*?)^\}", re.M | re.S)
WORDS = re.compile(r"[A-Za-z]{2}")


def arguments(source, at):
    """The arguments of the call whose parenthesis opens before `at`."""
    depth, start, found = 0, at, []
    for token in re.finditer(LITERAL + r"|'(?:[^'\\]|\\.)'|[(\[{]|[)\]}]|,", source[at:]):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        if depth < 0 or depth == 0 and token[0] == ",":
            found.append(source[start:at + token.start()])
            start = at + token.end()
        if depth < 0:
            return found
    return found


def messages_of(expression, macros):
    """The texts that an expression may be: literals in a row are one."""
    text, found = None, []
    for token in [*TOKEN.findall(re.sub(r"[=!]= *" + LITERAL, "", expression)), ";"]:
        part = token[1:-1] if token[0] == '"' else INTEGERS.get(token, macros.get(token))
        if part is not None:
            text = (text or "") + part
        elif not token.isspace() and text is not None:
            found.append(text)
            text = None
    return [text for text in found if WORDS.search(CONVERSION.sub("", text))]


def bare_of(path):
    return COMMENT.sub(lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group(0)), path.read_text())


def macros_of(source):
    """Macros that are texts, those of refusals.h without the status and the counter before the text."""
    macros = {}
    for name, body in re.findall(r"^#define (\w+)(?:\(\w+\))?((?:[^\n]*\\\n)*[^\n]*)$", source, re.M):
        literals = [t for t in TOKEN.findall(body) if t[0] == '"' or t in INTEGERS or t in macros]
        if literals and (name.startswith("REFUSED_") or re.fullmatch(rf"(?:\s|\\\n|{LITERAL}|PRI[ud]64)+", body)):
            macros[name] = "".join(t[1:-1] if t[0] == '"' else INTEGERS.get(t, macros.get(t)) for t in literals)
    return macros


def functions_of(source):
    """Of each function: where its body begins and ends, its name, its parameters, and whether it is static."""
    return [(m.start(3), m.end(3), m[1], [re.sub(r".*?(\w+)(?:\[\w*\])?$", r"\1", p.strip(), flags=re.S) for p in m[2].split(",")],
             source[m.start():m.start(1)].startswith("static")) for m in FUNCTION.finditer(source)]


def translated(root):
    """{text: the first file that has it} of all texts which refusals translate: what TRANSLATES gets, as an argument of its function's caller, as
    a variable of the function, or as a row of a table of the file."""
    paths = [path for layer in ("core", "api", "server") for path in sorted((root / layer).rglob("*.[ch]"))]
    sources = {path: bare_of(path) for path in paths}
    found, known, news = {}, set(), {(name, None, at) for name, at in TRANSLATES.items()}
    read = {path: (source, {name: text for name, text in macros_of(source).items() if not name.startswith("REFUSED_")}, functions_of(source))
            for path, source in sources.items()}
    while news:
        seeds, news = news - known, set()
        known |= seeds
        for path, (source, macros, functions) in read.items():
            for name, only, number in sorted(seeds, key=str):
                if only not in (None, path) or name + "(" not in source:
                    continue
                for call in re.finditer(rf"(?<!\w){name}\(", source):
                    inside = next((f for f in functions if f[0] <= call.start() < f[1]), None)
                    given = arguments(source, call.end())
                    if inside is None and not source[:call.start()].endswith((" ", "(", ",", "=")):
                        continue
                    if len(given) <= number:
                        continue
                    expression = given[number]
                    texts_here = messages_of(expression, macros)
                    for word in re.findall(r"(?<![\w.>\"])[a-z_]\w*(?![\w(.]|->)", re.sub(LITERAL, "", expression)):
                        if inside and word in inside[3]:
                            news.add((inside[2], path if inside[4] else None, inside[3].index(word)))
                        body = source[inside[0]:inside[1]] if inside else ""
                        for value in re.findall(rf"(?<![\w.>]){word} = ([^;]*);", body):
                            texts_here += messages_of(value, macros)
                        for table in re.findall(rf"^static const char \*const {word}\[[^\n]*?= \{{(.*?)\}};", source, re.M | re.S):
                            texts_here += messages_of(table.replace(",", ";"), macros)
                        for table in re.findall(rf"^    static const char \*const {word}\[[^\n]*?= \{{(.*?)\}};", body, re.M | re.S):
                            texts_here += messages_of(table, macros)
                    for text in texts_here:
                        found.setdefault(text, path)
                    for called in re.findall(r"\b([a-z_]\w*)\(", re.sub(LITERAL, "", expression)):
                        for f in functions:
                            if f[2] == called:
                                for value in re.findall(r"return ([^;]*);", source[f[0]:f[1]]):
                                    for text in messages_of(value, macros):
                                        found.setdefault(text, path)
    for path in paths:
        for name, text in macros_of(sources[path]).items():
            if name.startswith("REFUSED_"):
                found.setdefault(text, path)
    for pattern, before in MEMBERS:
        for path in sorted(root.glob(pattern)):
            for text in re.findall(rf"{before}((?:{LITERAL}\s*)+)", sources[path], re.M):
                found.setdefault("".join(t[1:-1] for t in re.findall(LITERAL, text)), path)
    return found


def is_sentence(text):
    """Not a name, a list of names, or a shape."""
    words = CONVERSION.sub("%", text)
    return WORDS.search(words) and ("%" in words or re.search(r"[A-Za-z)]{2} [A-Za-z]", words))


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


def blocks(text):
    """{key: [line, value]} of each block of a file (core/models/rows.awk)."""
    values, key = {}, None
    for number, line in enumerate([*text.splitlines(), "end"], 1):
        if line.startswith(" " * 8):
            values[key][1] += " " + line.strip()
        elif line.startswith("    "):
            key, value = line.split(None, 1)
            values[key] = [number, value]
        elif line and line[0] != "#":
            yield values
            values = {}


def pairs(text):
    """(line, English, Chinese): the key x.zh is the twin of x above it."""
    for values in blocks(text):
        yield from ((values[k][0], values.get(k[:-3], [0, None])[1], values[k][1]) for k in values if k.endswith(".zh"))


def sentences(text):
    """(line, sentence): what answers show of a file of blocks and a catalogue translates, the keys `positions`, `send` and `remark`."""
    return [tuple(values[key]) for values in blocks(text) for key in ("positions", "send", "remark") if key in values]


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
                exists = (root / name).exists()
                source = (root / name).read_text() if exists else ""
                found[name] = {*texts(source), *descriptions(source), *macros_of(bare_of(root / name)).values()} if exists else set()
                if name.endswith(".txt"):
                    found[name] = {text for _, text in sentences(source)}
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
    known = set()
    for path in (root / "core/zh.po", root / "api/zh.po"):
        if path.exists():
            yield from gettext_problems(path)
            yield from catalogue_problems(root, path, words, terms)
            known.update(entry["msgid"] for _, entry in entries(path.read_text()))
    needed = {text: path for text, path in translated(root).items() if is_sentence(text)}
    for path in sorted((root / "api/endpoints").glob("openapi/*.c")):
        needed.update({text: path for text in descriptions(path.read_text())})
    for text, path in needed.items():
        if text not in known:
            yield f"{path.relative_to(root)}: {text!r}: no Chinese in zh.po"
    for path in sorted((root / "core/models").glob("*.txt")):
        for line, text in sentences(path.read_text()):
            if text not in known:
                yield f"{path.relative_to(root)}:{line}: {text!r}: no Chinese in zh.po"
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


if __name__ == "__main__":
    checker.main(lambda arguments: problems(arguments.root))
