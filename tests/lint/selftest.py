"""A checker that cannot fail checks nothing: feeds layers.py, rooms.py, texts.py, words.py, named.py and core/models/rows.awk what
breaks one rule each, and what breaks none."""
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CHECKER = pathlib.Path(__file__).with_name("layers.py")
ROOMS = pathlib.Path(__file__).with_name("rooms.py")
TEXTS = pathlib.Path(__file__).with_name("texts.py")
WORDS = pathlib.Path(__file__).with_name("words.py")
NAMED = pathlib.Path(__file__).with_name("named.py")
ROWS = pathlib.Path(__file__).parents[2] / "core/models/rows.awk"
LIST = ROWS.parent / "hf/list.h"
# What a checker prints beside its verdict: counts of words, a warning of msgfmt.
SILENT = r"words to be rare|.*header field"

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

# additions to the clean tree, and the words that the checker must print (None: it must accept the tree)
CASES = [
    ({}, None),
    ({"core/numeric/gemm.c": "#include <cblas.h>\n"}, None),
    ({"core/plan.c": '#include "include/cblas.h"\n'}, "core/plan.c: reaches cblas.h"),
    ({"core/plan.c": '#include "include/jansson.h"\n'}, "core/plan.c: reaches jansson.h"),
    ({"core/plan.c": '#include "api/api.h"\n'}, "core/plan.c: reaches api/api.h"),
    ({"core/posenc.h": '#include "include/jansson.h"\n'}, "server/process/log.c: reaches jansson.h"),
    ({"core/plan.c": "#include <pthread.h>\n"}, "core/plan.c: includes <pthread.h>"),
    ({"core/plan.c": "#include <time.h>\n"}, "core/plan.c: includes <time.h>"),
    ({"core/plan.c": "#include <unistd.h>\n"}, "core/plan.c: includes <unistd.h>"),
    ({"core/schemes/rotary/rope.c": '#include "core/numeric/numeric.h"\n', "core/numeric/numeric.h": ""}, "a scheme may include"),
    ({"core/schemes/xpos.h": "", "core/schemes/rotary/rope.c": '#include "core/schemes/xpos.h"\n'}, "a scheme may include"),
    ({"core/kernels/waves.c": '#include "core/scheme.h"\n'}, "core/kernels/waves.c: reaches core/scheme.h"),
    ({"api/replies/reply.c": '#include "core/scheme.h"\n'}, "api/replies/reply.c: reaches core/scheme.h"),
    ({"api/replies/reply.c": '#include "server/process/log.h"\n', "server/process/log.h": ""}, "api/replies/reply.c: reaches server/process/log.h"),
    ({"api/formats/png.c": '#include "include/png.h"\n'}, None),
    ({"api/replies/reply.c": '#include "include/png.h"\n'}, "api/replies/reply.c: reaches png.h"),
    ({"api/replies/reply.c": "#include <sys/socket.h>\n"}, "api/replies/reply.c: includes <sys/socket.h>"),
    ({"server/process/log.c": '#include "include/microhttpd.h"\n'}, "server/process/log.c: reaches microhttpd.h"),
    ({"server/transport/http.c": '#include "include/uv.h"\n'}, "server/transport/http.c: reaches uv.h"),
    ({"server/transport/http.c": '#include "api/replies/replies.h"\n', "api/replies/replies.h": ""}, "server/transport/http.c: reaches api/replies/replies.h"),
]


@contextlib.contextmanager
def tree(files):
    """A small tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield root


def compiled(root, files, *flags):
    """Their objects, where the Makefile would put them."""
    for name in files:
        obj = (root / "build/obj" / name).with_suffix(".o")
        obj.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", *flags, "-c", root / name, "-o", obj], check=True)


def judged(what, words, *command, **more):
    """What a checker makes of a tree: it accepts it (words None), or prints these words. (whether it does, a sentence)"""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    said = "".join(line for line in (done.stdout + done.stderr).splitlines(True) if not re.match(SILENT, line))
    ok = done.returncode == 0 or not said if words is None else done.returncode and words in said
    return ok, f"{what}: expected {words!r}, got status {done.returncode}: {said.strip()}"


def python(checker, root, *flags):
    return sys.executable, checker, "--root", root, *flags


def check_includes(extra, words):
    with tree(CLEAN | extra) as root:
        return judged(extra, words, *python(CHECKER, root))


def check_calls(call, allowed):
    """An object that calls something, in a tree of its own."""
    files = {"core/plan.c": f"extern void {call}(void);\nvoid f(void);\nvoid f(void) {{ {call}(); }}\n"}
    with tree(files) as root:
        compiled(root, files, "-fno-builtin")
        return judged(f"core calling {call}", None if allowed else call, *python(CHECKER, root, "--calls", "--build", root / "build"))


def function(name, *callees):
    """C text of a function that calls others."""
    calls = "".join(f"void {callee}(void);\n" for callee in callees)
    return f"{calls}void {name}(void);\nvoid {name}(void) {{ {' '.join(f'{callee}();' for callee in callees)} }}\n"

RING = {f"core/waves/{a}.c": function(a, b) for a, b in ("ab", "bc", "cd")}

# files of a small tree, and the words that rooms.py must print (None: it must accept the tree)
ROOM_CASES = [
    ({"core/waves/a.c": function("a"), "core/plan.c": function("f", "a")}, None),
    ({"core/waves/a.c": function("a", "f"), "core/plan.c": function("f")}, "core/waves/a.c (waves/) calls f of core/plan.c"),
    ({"core/error.c": function("a", "f"), "core/sequence/s.c": function("f")}, "core/error.c"),
    ({"core/numeric/a.c": function("a", "f"), "core/error.c": function("f")}, "core/numeric/a.c (numeric/) calls f of core/error.c"),
    (RING | {"core/waves/d.c": function("d")}, None),
    ({**RING, "core/waves/c.c": function("c", "a")}, None),  # three in a circle
    (RING | {"core/waves/d.c": function("d", "a")}, "4 files call each other in a circle"),
    ({"core/attic/a.c": function("a")}, "core/attic/ is no room"),
]


def check_rooms(files, words):
    with tree(files) as root:
        compiled(root, files)
        return judged(f"rooms {list(files)}", words, *python(ROOMS, root, "--build", root / "build"))

# English and Chinese of an entry, and the words that texts.py must print (None: it must accept them)
TEXT_CASES = [
    ("width", "宽度", None),
    ("half, key", "half key 两个值", None),
    ("as in Hugging Face", "与 Hugging Face 一致", None),
    ("%zu of {model}", "{model} 的 %zu 项", None),
    ("宽度", "宽度", "Chinese in C"),
    ("{a} of {b}", "{a} 的 {c}", "placeholders differ"),
    ("the head", "这个 attention head 头", "two Latin words in a row, attention head"),
    ("a, b", "甲, 乙", "half-width punctuation beside Chinese"),
    ("head 1", "第1头", "no space between Chinese and Latin"),
    ("a：b", "甲：乙", "Chinese in C"),
    ("a window", "一扇门", "'window' is 窗口"),
    ("the windows", "窗口的框", "'window' is 窗口, not 框"),
    ("empty", "", "not translated"),
    ("%d of %s", "%s 的 %d", "format specifications"),
    ("POST /attention has it", "由 `POST /attention` 给出", "in core"),
]
TEXT_HEAD = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'

# What fails, and the words that texts.py must print: the file has Chinese for "%s is odd".
REFUSALS = [
    ('void f(struct pe_failure *err)\n{\n    pe_fail(err, "/x", "%s is odd", "x");\n}\n', None),
    ('void f(struct pe_failure *err)\n{\n    pe_fail(err, "/x", "%s is " "even", "x");\n}\n', "'%s is even': no Chinese"),
    ('void f(struct pe_failure *err)\n{\n    pe_fail(err, "/x", "%s is odd", pe_text("one or two"));\n}\n', "'one or two': no Chinese"),
    ('static void g(struct pe_failure *err, const char *what)\n{\n    pe_fail(err, "/x", "%s is odd", pe_text(what));\n}\n\n'
     'void f(struct pe_failure *err)\n{\n    g(err, "this list");\n}\n', "'this list': no Chinese"),
    ('void f(struct pe_failure *err, bool two)\n{\n    const char *what = two ? "both of them" : "x";\n    pe_fail(err, "/x", "%s is odd", pe_text(what));\n}\n',
     "'both of them': no Chinese"),
]

# Further files, and the words that texts.py must print
UNTRANSLATED = [
    ({"core/a.c": 'const struct pe_member rows[] = {{.name = "a", .summary = "one number"}};\n'}, "'one number': no Chinese"),
    ({"core/schemes/scalings/a.c": 'const struct pe_scaling_rule a = {.name = "a", .convention_about = "vllm differs"};\n'}, "'vllm differs': no Chinese"),
    ({"api/endpoints/openapi/a.c": 'static const char json[] = "{\\"description\\":\\"list\\"}";\n'}, "'list': no Chinese"),
    ({"core/models/types.txt": "a-1\n    kind       other\n    positions  two\n               tables\n    source     a file\n"}, "types.txt:3: 'two tables': no Chinese"),
    ({"core/models/types.txt": "a-1\n    kind       other\n    source     positions  one table\n",
      "api/zh.po": TEXT_HEAD + '#: core/models/types.txt\nmsgid "one table"\nmsgstr "一张表"\n'}, "'one table': stale, core/models/types.txt"),
]


def check_texts(english, chinese, words, row=None, comment="", code="", files=()):
    """row: another text than the entry's English; code: more of the file; files: further ones."""
    flag = "#, c-format\n" if "%" in english else ""
    with tree({"core/rows.c": f'static const char *const values[] = {{"half", "key"}};\nconst char *row = "{row or english}";\n{code}',
               "core/glossary.txt": "window | 窗口 | 框\n",
               "core/zh.po": f'{TEXT_HEAD}{comment}#: core/rows.c\n{flag}msgid "{english}"\nmsgstr "{chinese}"\n', **dict(files)}) as root:
        return judged(f"texts {english!r}, {chinese!r}", words, *python(TEXTS, root))

# English and Chinese of a story, and the words that texts.py must print
STORY_CASES = [("A window.\n\nA door.", "窗口。\n\n门。", None), ("A window.\n\nA door.", "门。\n\n门。", "paragraph 1: 'window' is 窗口"), ("a\n\nb", "甲", "1 paragraphs")]


def check_story(english, chinese, words):
    with tree({"core/glossary.txt": "window | 窗口 | 框\n", "server/page/text/en.json": '{"a": "a window"}', "server/page/text/zh.json": '{"a": "窗口"}',
               "server/page/stories/a.en.md": english, "server/page/stories/a.zh.md": chinese}) as root:
        return judged(f"texts of a story {english!r}, {chinese!r}", words, *python(TEXTS, root))

# a file, and the words that words.py must print (None: it must accept the file)
WORD_CASES = [
    ("core/a.c", "/* The log states why. */\nint says(void); // nobody's\n", 'core/a.c:2: "nobody"'),
    ("core/a.c", '/* A row\n * says so. */\nint x;\n', 'core/a.c:2: "says"'),
    ("core/a.c", 'const char *text = "a /* row */ says so"; /* what "the row says" */\nint stands(void);\n', None),
    ("server/a.h", "/* It stands here. */\n", 'server/a.h:1: "stands"'),
    ("api/README.md", "It is\nTold.\n", 'api/README.md:2: "Told"'),
    ("api/README.md", "`says` and \"says\"\n```\nnobody\n```\n<!-- a:begin -->\nsays\n<!-- a:end -->\n", None),
    ("server/page/stories/a.en.md", "A row says.\n", None),
]


def check_words(name, text, words):
    with tree({name: text}) as root:
        return judged(f"words {name} {text!r}", words, *python(WORDS, root))

# blocks of core/models, the line of the mistake, and the words that rows.awk must print (None: it must accept them)
PRESET = "a-1\n    label      A 1\n    source     a file\n    certainty  checkpoint\n    fields     scheme=rope base=1e4\n"
TYPE = "a-1\n    kind       rope\n    fields     head_dim=8 pad=null\n    source     a file\n    certainty  class default\n"
BLOCK_CASES = [
    ("presets", PRESET, 0, None),
    ("presets", PRESET + "               scaling.type=yarn grid=[14,\n               14] terms=[c2p,p2c]\n\n# more\n" + PRESET.replace("a-1", "b"), 0, None),
    ("presets", PRESET.replace("label ", "lable "), 2, 'unknown key "lable"'),
    ("presets", PRESET.replace("    source     a file\n", ""), 1, '"a-1" has no source'),
    ("presets", PRESET.replace("    certainty  checkpoint\n", ""), 1, '"a-1" has no certainty'),
    ("presets", PRESET.replace("checkpoint", "sure"), 4, 'certainty of "a-1" is "sure"'),
    ("presets", PRESET + PRESET.replace("a-1", "a"), 6, '"a" belongs before "a-1"'),
    ("presets", PRESET + PRESET, 6, '"a-1" has two blocks'),
    ("presets", PRESET + "    source     another\n", 6, "two of source"),
    ("presets", PRESET.replace("scheme=", ""), 5, '"rope" of "a-1" is no name=value'),
    ("presets", PRESET.replace("1e4", "1e4x"), 5, '"1e4x" of "a-1" is no number'),
    ("presets", PRESET.replace("1e4", "[1,a]"), 5, "numbers and words"),
    ("presets", PRESET.replace("    fields     scheme=rope base=1e4\n", ""), 1, "needs fields, or a layer"),
    ("presets", PRESET + "    note       English alone\n", 1, "both note and note.zh"),
    ("presets", PRESET.replace("a-1", "a 1"), 1, "has a space"),
    ("presets", "  " + PRESET, 1, "a key before the first name"),
    ("presets", PRESET.replace("    source", "    aliases    b|c\n    source") + PRESET.replace("a-1", "c"), 7, '"c" is a name of "a-1" too'),
    ("types", TYPE, 0, None),
    ("types", TYPE + "    aliases    c|\n               d\n    traits     sliding_unscaled yarn_unscaled\n" + TYPE.replace("a-1", "b"), 0, None),
    ("types", TYPE.replace("rope\n", "rop\n"), 2, 'kind of "a-1" is "rop"'),
    ("types", TYPE.replace("    kind       rope\n", ""), 1, '"a-1" has no kind'),
    ("types", TYPE.replace("    source     a file\n", ""), 1, '"a-1" has no source'),
    ("types", TYPE + "    traits     yarn_scaled\n", 6, 'unknown trait "yarn_scaled"'),
    ("types", TYPE + "    traits     sliding_scaled sliding_unscaled\n", 6, "sliding_unscaled and sliding_scaled of"),
    ("types", TYPE + "    masks      some\n", 6, "allowed: alike, differ"),
    ("types", TYPE + "    form       key\n", 6, 'form of "a-1" means nothing for kind rope'),
    ("types", TYPE.replace("rope\n", "learned\n") + "    row_offset pad\n", 6, "an integer, after_padding"),
    ("types", TYPE.replace("rope\n", "other\n"), 1, "needs positions"),
    ("types", TYPE.replace("rope\n", "nested\n") + "    inner      x\n    inner_type c\n", 7, 'refers to "c", which has no block'),
    ("types", TYPE.replace("rope\n", "parts\n") + "    layers     x|y\n", 6, 'refers to "a-1/x"'),
]


def check_blocks(table, text, line, words):
    with tree({f"{table}.txt": text}) as root:
        command = "awk", "-v", f"table={table}", "-v", f"list={LIST}", "-f", ROWS, root / f"{table}.txt"
        ok, what = judged(f"blocks {text!r}", words, *command, env={**os.environ, "LC_ALL": "C"})
        return ok and (words is None or f"{table}.txt:{line}: " in what), f"{what} (line {line})"

# names in the column of promises, in a guide of tests, and what is printed
NAMED_CASES = [
    ("`test_a.py`, `test_one`, `tests/core/test_b.c`, `test_two`, `cases/rows.jsonl`, `rows/first`, `make soak`", "`test_a.py` and `rows/first`, see `core`", None),
    ("`test_c.py`", "", "PROMISES.md:1: test_c.py"), ("`test_three`", "", "PROMISES.md:1: test_three"), ("`cases/other.jsonl`", "", "cases/other.jsonl"),
    ("`rows/second`", "", "rows/second"), ("`rows/f*`", "", None), ("`rows/g*`", "", "rows/g*"), ("`make tea`", "", "make tea"), ("`tests/fuzz/`", "", "tests/fuzz/"), ("nothing", "", "(no test)"),
    ("`test_one`", "`test_gone.py`", "tests/lint/README.md:1: test_gone.py"), ("`test_one`", "`rows/gone`", "rows/gone"), ("`test_one`", "`test_NAME.py`", None)]


# a runner, its list, and what is printed
LISTED_CASES = [("tests/http/conftest.py", 'LONG = ["test_a",\n        "test_gone"]\n', "tests/http/conftest.py:2: test_gone"),
                ("tests/support/run_tests.sh", "BRIEF='test_a test_b'\n", None), ("tests/support/run_tests.sh", "BRIEF='test_c'\n", "run_tests.sh:1: test_c")]


def check_named(held_by, guide, words, runners={}):
    files = {**runners, "server/PROMISES.md": f"| **a** | {held_by} |\n", "tests/lint/README.md": guide, "tests/core/test_b.c": "TEST(two)\n{\n}\n",
             "tests/http/test_a.py": "def test_one(server):\n    pass\n", "tests/cases/rows.jsonl": '{"id":"first"}\n', "Makefile": "soak: all\n"}
    with tree(files) as root:
        return judged(f"named {held_by!r}, {guide!r}", words, sys.executable, NAMED, "--root", root)


def main():
    results = [check_includes(extra, words) for extra, words in CASES]
    results += [check_calls(call, allowed) for call, allowed in
                [("getenv", False), ("fopen", False), ("pthread_create", False), ("json_loads", False), ("sin", True)]]
    results += [check_rooms(files, words) for files, words in ROOM_CASES]
    results += [check_texts(*case) for case in TEXT_CASES]
    results += [check_texts("old", "旧", "stale", row="new"), check_texts("a", "甲", "fuzzy", comment="#, fuzzy\n")]
    results += [check_texts("%s is odd", "%s 是奇数", words, code=code) for code, words in REFUSALS]
    results += [check_texts("a", "甲", words, files=files) for files, words in UNTRANSLATED]
    results += [check_story(*case) for case in STORY_CASES]
    results += [check_words(*case) for case in WORD_CASES]
    results += [check_blocks(*case) for case in BLOCK_CASES]
    results += [check_named(*case) for case in NAMED_CASES]
    results += [check_named("`test_one`", "", words, {runner: text}) for runner, text, words in LISTED_CASES]
    for ok, text in results:
        if not ok:
            print(f"selftest: {text}")
    sys.exit(0 if all(ok for ok, _ in results) else 1)

if __name__ == "__main__":
    main()
