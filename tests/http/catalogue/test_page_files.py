"""What the page's files may contain, how many bytes they are, how they are built in, their texts, and the page without JavaScript."""
import gzip
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.parse

import pytest

import png_reader
from page_files import FILES, FOLDER, SCRIPTS, TYPES, base, code, source  # noqa: F401
from story_texts import story_texts

KIB = 1024
COLUMNS = 120


def test_lines_fit_on_a_screen():
    """Scripts and styles; a text in JSON is one line, however long."""
    for name in SCRIPTS + [f for f in FILES if f.endswith(".css")]:
        long = [line for line in source(name).splitlines() if len(line) > COLUMNS]
        assert long == [], (name, long)


# ---- How they are built in ----


def contents(made):
    """The first file in a source that embed.sh wrote."""
    return gzip.decompress(bytes(int(digits, 8) for digits in re.findall(r"\\(\d{3})", made.split(";", 1)[0]))).decode()


def embed(folder, *names, struct="page_built_in", **environment):
    return subprocess.run([FOLDER / "embed.sh", struct, folder, *names], capture_output=True, text=True, env={**os.environ, **environment})


def test_the_build_names_all_bytes():
    """embed.sh on copies of the folder: the same files give the same program, any change another build."""

    def made(folder):
        names = sorted(f.relative_to(folder).as_posix() for f in folder.rglob("*") if f.suffix in TYPES)
        source_in_c = embed(folder, *names).stdout
        return source_in_c, re.search(r'\.build = "(\w+)"', source_in_c)[1]

    with tempfile.TemporaryDirectory() as there:
        copy = pathlib.Path(there) / "page"
        copy.mkdir()
        (copy / "index.html").write_text("/ui/BUILD/a.js")
        (copy / "a.js").write_text("f('\\377\"?\\n\0\u4e2d');\n")
        first = made(copy)
        assert made(copy) == first and f"/ui/{first[1]}" not in first[0]  # compressed
        os.utime(copy / "a.js", (1, 1))
        assert made(copy) == first
        (copy / "a.js").rename(copy / "b.js")
        renamed = made(copy)
        (copy / "b.js").write_text("f('\\n');")
        assert len({first[1], renamed[1], made(copy)[1]}) == 3


def test_what_others_name_in_a_script_keeps_its_name(tmp_path):
    """Files that it imports, names that it exports, fields of objects; local and private names become short."""
    (tmp_path / "a.js").write_text("""import { far } from './b/c.js';  // why
export class Near { #hidden = 1; shown(argument) { return `a  ${far(argument)}` + this.#hidden; } }
export const later = () => import('./d.js');
""")
    text = contents(embed(tmp_path, "a.js").stdout)
    assert all(name in text for name in ("./b/c.js", "Near", "shown", "later", "./d.js", "`a  ${", "export")), text
    assert not any(name in text for name in ("why", "hidden", "argument")) and "\n" not in text.strip()
    assert contents(embed(tmp_path, "a.js", struct="clients_built_in").stdout) == (tmp_path / "a.js").read_text()  # for readers: as it is


def test_a_script_that_no_browser_reads_stops_the_build(tmp_path):
    (tmp_path / "a.js").write_text("const a = ;\n")
    done = embed(tmp_path, "a.js")
    assert done.returncode != 0 and "a.js:1:10" in done.stderr and done.stdout == ""


def test_without_esbuild_there_is_one_sentence(tmp_path):
    for program in ("sh", "dirname", "mkdir", "mktemp", "rm"):
        (tmp_path / program).symlink_to(shutil.which(program))
    done = embed(FOLDER, "main.js", PATH=str(tmp_path))
    assert done.returncode == 1 and "esbuild is missing" in done.stderr and len(done.stderr.splitlines()) == 1 and done.stdout == ""


# ---- Nothing inline, nothing from elsewhere ----


class Page(html.parser.HTMLParser):
    """Elements as (tag, attributes), and the text of each; refuses tags that do not close in order."""

    VOID = {"meta", "link", "input", "br", "hr", "img"}

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.chinese, self.other = [], [], "", ""
        self.feed(text)
        self.close()
        assert not self.open, [tag for tag, _, _ in self.open]

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(set(names)) == len(names)
        element = (tag, dict(attributes), [])
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        while tag not in ("p", "li", "dt", "dd", "option") and self.open[-1][0] in ("p", "li", "dt", "dd", "option"):
            self.open.pop()
        assert self.open.pop()[0] == tag, tag

    def handle_data(self, text):
        for _, _, texts in self.open:
            texts.append(text)
        if any(attributes.get("lang") == "zh-CN" for _, attributes, _ in self.open):
            self.chinese += text
        elif not any(tag in ("pre", "code", "option") for tag, _, _ in self.open):
            self.other += text

    def all(self, tag, **attributes):
        return [(given, "".join(texts)) for name, given, texts in self.elements if name == tag and all(given.get(k) == v for k, v in attributes.items())]

    def values(self, *names):
        return [attributes[name] for _, attributes, _ in self.elements for name in names if attributes.get(name) is not None]


@pytest.fixture(scope="module")
def page(session_server):
    return Page(session_server.get("/").body.decode())


def test_nothing_inline(page, base):
    assert not page.all("style") and all(attributes.get("src", "").startswith(base + "/") and not text.strip() for attributes, text in page.all("script"))
    assert not [name for _, attributes, _ in page.elements for name in attributes if name.startswith("on") or name == "style"]
    for url in page.values("src", "href", "action", "srcset", "poster", "data", "formaction"):
        assert re.fullmatch(r"#[\w-]*|/[\w./-]*(\?[\w.&=-]*)?|data:,", url) and not url.startswith("//"), url


# Of namespaces, and where papers and articles are, which a reader may follow a link to: nothing is fetched from there.
OWN_NAMES = re.compile(r"http://www\.w3\.org/(1998/Math/MathML|2000/svg|1999/xhtml|1999/xlink)|https://(arxiv\.org/abs|fleetwood\.dev/posts)/")
ELSEWHERE = re.compile(r"""["'`(]\s*(https?:|wss?:|ftp:)?//\w""")
MAKES_MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\s*\(|new Function|srcdoc|DOMParser|createContextualFragment|importScripts|setTimeout\(\s*['\"`]"
                          r"|setAttribute\(\s*['\"]style['\"]|javascript:|document\.cookie")


@pytest.mark.parametrize("name", FILES)
def test_nothing_from_elsewhere(name):
    text = source(name) if not name.endswith(".js") else code(name)
    assert not ELSEWHERE.search(OWN_NAMES.sub("", text)), ELSEWHERE.search(OWN_NAMES.sub("", text))
    if name.endswith(".css"):
        assert not re.search(r"url\(|@import|expression\(", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
    if name.endswith(".js"):
        assert not MAKES_MARKUP.search(text), MAKES_MARKUP.search(text)


MAKES_NUMBERS = re.compile(r"Math\.(a?sinh?|a?cosh?|a?tanh?|atan2|exp|expm1|sqrt|cbrt|random)\b")


@pytest.mark.parametrize("name", [f for f in SCRIPTS if not f.startswith("draw/")])
def test_no_formula_of_ours(name):
    """Numbers come from the server; only draw/ turns cameras and hands."""
    assert not MAKES_NUMBERS.search(code(name)), MAKES_NUMBERS.search(code(name))


# ---- Which files are loaded, and how many bytes they are ---------------------------------------------------------------------


def literals(name, pattern):
    """Files that a script names in this way."""
    here = pathlib.PurePosixPath(name).parent
    return {os.path.normpath(here / found) for found in re.findall(pattern, code(name))}


def imports(name):
    return literals(name, r"""(?m)^\s*(?:import|export)\b(?:[^'"`;()]*?\bfrom)?\s*['"](\.[^'"]+)['"]""")


def opened_later(name):
    return literals(name, r"""\bimport\(\s*['"](\.[^'"]+)['"]""")


def styles(name):
    return literals(name, r"""\bnew URL\(\s*['"](\.[^'"]+\.css)['"]""")


def closure(names, step):
    seen, rest = set(), list(names)
    while rest:
        name = rest.pop()
        if name not in seen:
            seen.add(name)
            rest += step(name)
    return seen


def test_imports_lead_somewhere():
    for name in SCRIPTS:
        assert imports(name) | opened_later(name) <= set(SCRIPTS), name


def test_what_the_first_script_imports_is_asked_for_with_it(page, base):
    """Else the browser learns of each module only from the one before: four journeys of the network."""
    preloaded = [given["href"][len(base) + 1:] for tag, given, _ in page.elements if tag == "link" and given.get("rel") == "modulepreload"]
    assert sorted(preloaded) == sorted(closure(["main.js", "views/gallery/view.js"], imports) - {"main.js"})  # and the view that the page starts with


def test_the_first_words_need_no_script(session_server):
    """In both languages, because no script has read which one is wanted."""
    shell = Page(re.sub(r"<noscript>.*?</noscript>", "", session_server.get("/").body.decode(), flags=re.S))
    (_, title), = shell.all("h1")
    assert "Positional encodings" in title and len(CHINESE.findall(title)) >= 4 and not CHINESE.search(shell.other)


def test_no_file_is_left_over(page, base):
    first = {url[len(base) + 1:] for url in page.values("src", "href") if url.startswith(base + "/")}
    assert first <= set(FILES)
    used = closure([f for f in first if f.endswith(".js")], lambda name: imports(name) | opened_later(name)) | first | {"index.html"}
    used |= set().union(*(styles(name) for name in used if name.endswith(".js")))
    texts = {f for f in FILES if re.fullmatch(r"text/(en|zh)\.json|stories/[\w-]+\.(en|zh)\.md", f)}
    assert set(FILES) - used - texts == set()


def packed(server, base, name):
    return len(server.get(f"{base}/{name}", {"Accept-Encoding": "gzip"}).body)


def test_the_first_load_is_small(server, base):
    first = closure(["main.js", "views/gallery/view.js"], imports) | {"index.html", "style.css", "text/en.json"}
    first |= closure(opened_later("main.js"), imports)
    sizes = {name: packed(server, base, name) for name in first}
    assert len(first) <= 40, sorted(first)
    assert sum(sizes.values()) <= 60 * KIB, sorted(sizes.items(), key=lambda item: -item[1])


STORY = re.compile(r"stories/(designing|introduction|three-encodings|sin-and-cos|absolute-relative|walk)\.")


def test_all_files_are_small(server, base):
    """What a reader of one language loads who opens every view, and what each story adds to that; and all of it, stories too."""
    sizes = {name: packed(server, base, name) for name in FILES}
    for lang, other in (("en", "zh"), ("zh", "en")):
        mine = {name: size for name, size in sizes.items() if not name.endswith((f"{other}.json", f"{other}.md"))}
        assert sum(mine.values()) <= 240 * KIB, (lang, sorted(mine.items(), key=lambda item: -item[1]))
        views = {name: size for name, size in mine.items() if not STORY.match(name)}
        assert sum(views.values()) <= 208 * KIB, sorted(views.items(), key=lambda item: -item[1])
        for story in {found[1] for found in map(STORY.match, mine) if found}:
            assert sum(size for name, size in mine.items() if (found := STORY.match(name)) and found[1] == story) <= 9 * KIB, (story, lang)


# ---- Texts -------------------------------------------------------------------------------------------------------------------

TEXT_PAIRS = sorted(f for f in FILES if f == "text/en.json" or re.fullmatch(r"stories/[\w-]+\.en\.md", f))
PLACEHOLDER = re.compile(r"\{\w+\}")
CHINESE = re.compile("[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
LATIN_PAIR = re.compile(r"[A-Za-z][\w.+'-]*[ \u00a0]+[A-Za-z]")


OTHER = "page.otherLanguage"  # the button that switches: in the language it switches to


def no_twice(pairs):
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return dict(pairs)


def texts(name):
    return no_twice(story_texts(source(name))) if name.endswith(".md") else json.loads(source(name), object_pairs_hook=no_twice)


def unmarked(text):
    """A text of a story without what no language translates: code, formulas, addresses of links."""
    return re.sub(r"`[^`]+`|\$[^$]+\$|\]\(#[^)]+\)", "", text)


def twin(name):
    return re.sub(r"en(\.json|\.md)$", r"zh\1", name)


@pytest.mark.parametrize("name", TEXT_PAIRS)
def test_texts_in_two_languages(name):
    english, chinese = texts(name), texts(twin(name))
    assert set(english) == set(chinese)
    for key in english:
        en, zh = english[key], chinese[key]
        assert isinstance(en, str) and isinstance(zh, str) and en.strip() and zh.strip(), key
        assert sorted(PLACEHOLDER.findall(en)) == sorted(PLACEHOLDER.findall(zh)), key
        assert not CHINESE.search(en) or key == OTHER, (key, en)
        assert not LATIN_PAIR.search(PLACEHOLDER.sub("", unmarked(zh) if name != "text/en.json" else zh)), (key, zh)


def test_each_text_has_its_twin():
    assert {f for f in FILES if f.endswith(("zh.json", "zh.md"))} == {twin(f) for f in TEXT_PAIRS} and len(TEXT_PAIRS) == 7


KEY = r"[a-z]\w*(?:\.[\w$-]+)*"


def templates():
    """Every key that a script makes from parts, as a pattern: `gallery.pair.${pair.id}`."""
    found = set().union(*(re.findall(r"`([a-z][\w.-]*\$\{[^`]*)`", code(name)) for name in SCRIPTS))
    found |= set().union(*(re.findall(r"`(\$\{\w+\}\.[\w.]+)`", code(name)) for name in SCRIPTS))
    return {re.sub(r"\\\$\\\{.*?\\\}", r"[\\w.-]+", re.escape(template)) for template in found}


def test_every_text_that_a_script_shows_exists():
    keys = set(texts("text/en.json"))  # those of stories are made of their blocks: tests/page/stories.test.mjs
    for name in SCRIPTS:
        asked = re.findall(rf"\b(?:word|phrase)\(\s*'({KEY})'", code(name))
        assert set(asked) <= keys, (name, set(asked) - keys)
        for template in re.findall(r"\b(?:word|phrase)\(\s*`([^`]*\$\{[^`]*)`", code(name)):
            pattern = re.sub(r"\\\$\\\{.*?\\\}", r"[\\w.-]+", re.escape(template))
            assert any(re.fullmatch(pattern, key) for key in keys), (name, template)


def test_every_text_is_shown_somewhere():
    """Those of stories: tests/page/stories.test.mjs."""
    quoted = set().union(*(re.findall(r"""['"`]([a-z][\w.-]*)['"`]""", code(name)) for name in SCRIPTS))
    patterns = [re.compile(template) for template in templates()]
    left = {key for key in texts("text/en.json") if key not in quoted and not any(pattern.fullmatch(key) for pattern in patterns)}
    assert left == set()


# ---- Without JavaScript ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def without(session_server):
    found = re.findall(r"<noscript>(.*?)</noscript>", session_server.get("/").body.decode(), re.S)
    assert len(found) == 1
    return Page(found[0])


def test_says_what_this_is_in_two_languages(without):
    assert len(without.other.split()) > 20 and not CHINESE.search(without.other)
    assert len(CHINESE.findall(without.chinese)) > 40 and not LATIN_PAIR.search(without.chinese)


def test_links_to_what_programs_read(without, server):
    links = set(without.values("href"))
    assert {"/schemes", "/presets", "/openapi.json"} <= links
    assert all(server.get(link).status == 200 for link in links if link.startswith("/"))


def test_its_commands_work(without, server):
    lines = [line for _, text in without.all("pre") + without.all("code") for line in text.splitlines() if line.startswith("curl ")]
    assert lines
    for line in dict.fromkeys(lines):
        command = re.sub(r"(http://)?localhost:8080", f"{server.host}:{server.port}", line)
        command = re.sub(r"-o \S+", "-o /dev/null", command)
        shown = subprocess.run(["sh", "-c", command + " -sSf -w '%{http_code}' | tail -c 3"], capture_output=True, text=True, timeout=30)
        assert shown.stdout == "200", (line, shown)


def test_its_form_asks_for_a_picture(without, server):
    (form, _), = without.all("form")
    assert form["action"] == "/encode" and form.get("method", "get").lower() == "get" and "target" not in form
    fields = {}
    for tag, attributes, given in without.elements:
        if tag == "input" and attributes.get("name") and attributes.get("type") not in ("submit", "button", "reset"):
            assert attributes.get("type") not in ("checkbox", "radio") or "checked" in attributes
            fields[attributes["name"]] = attributes.get("value", "")
        if tag == "select":
            fields[attributes["name"]] = None
        if tag == "option" and fields and fields[list(fields)[-1]] is None:
            fields[list(fields)[-1]] = attributes.get("value", "".join(given))
    assert fields["format"] == "png"
    answer = server.get("/encode?" + urllib.parse.urlencode(fields))
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/png"
    assert png_reader.Picture(answer.body).width > 0
    for option, text in without.all("option"):
        chosen = next(name for name in fields if name in [a.get("name") for a, _ in without.all("select")])
        value = option.get("value", text)
        assert server.get("/encode?" + urllib.parse.urlencode({**fields, chosen: value})).status == 200, value
