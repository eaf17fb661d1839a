"""A checker that cannot fail checks nothing: feeds layers.py, rooms.py and texts.py trees that break one rule each, and one that breaks none."""
import pathlib
import subprocess
import sys
import tempfile

CHECKER = pathlib.Path(__file__).with_name("layers.py")
ROOMS = pathlib.Path(__file__).with_name("rooms.py")
TEXTS = pathlib.Path(__file__).with_name("texts.py")

CLEAN = {
    "core/posenc.h": "#include <stddef.h>\n",
    "core/scheme.h": '#include "core/posenc.h"\n',
    "core/plan.c": '#include "core/scheme.h"\n#include <math.h>\n',
    "core/schemes/list.h": "SCHEME(rope)\nSCHEME(xpos)\n",
    "core/schemes/rotary.h": '#include "core/scheme.h"\n',
    "core/schemes/rope.c": '#include "core/schemes/rotary.h"\n',
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
    ({"core/schemes/rope.c": '#include "core/numeric/dtype.h"\n', "core/numeric/dtype.h": ""}, "a scheme may include"),
    ({"core/schemes/xpos.h": "", "core/schemes/rope.c": '#include "core/schemes/xpos.h"\n'}, "a scheme may include"),
    ({"core/kernels/waves.c": '#include "core/scheme.h"\n'}, "core/kernels/waves.c: reaches core/scheme.h"),
    ({"api/replies/reply.c": '#include "core/scheme.h"\n'}, "api/replies/reply.c: reaches core/scheme.h"),
    ({"api/replies/reply.c": '#include "server/process/log.h"\n', "server/process/log.h": ""}, "api/replies/reply.c: reaches server/process/log.h"),
    ({"api/formats/png.c": '#include "include/png.h"\n'}, None),
    ({"api/replies/reply.c": '#include "include/png.h"\n'}, "api/replies/reply.c: reaches png.h"),
    ({"api/replies/reply.c": "#include <sys/socket.h>\n"}, "api/replies/reply.c: includes <sys/socket.h>"),
    ({"server/process/log.c": '#include "include/microhttpd.h"\n'}, "server/process/log.c: reaches microhttpd.h"),
    ({"server/transport/http.c": '#include "include/uv.h"\n'}, "server/transport/http.c: reaches uv.h"),
    ({"server/transport/http.c": '#include "api/replies/reply.h"\n', "api/replies/reply.h": ""}, "server/transport/http.c: reaches api/replies/reply.h"),
]


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(root, *flags):
    done = subprocess.run([sys.executable, CHECKER, "--root", root, *flags], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def check_includes(extra, words):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write(root, CLEAN | extra)
        status, said = run(root)
    ok = status == 0 and not said if words is None else status == 1 and words in said
    return ok, f"{extra}: expected {words!r}, got status {status}: {said.strip()}"


def check_calls(call, allowed):
    """An object that calls something, in a tree of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write(root, {"core/plan.c": f"extern void {call}(void);\nvoid f(void);\nvoid f(void) {{ {call}(); }}\n"})
        (root / "build/obj/core").mkdir(parents=True)
        subprocess.run(["gcc", "-fno-builtin", "-c", root / "core/plan.c", "-o", root / "build/obj/core/plan.o"], check=True)
        status, said = run(root, "--calls", "--build", root / "build")
    return (status == 0) == allowed, f"core calling {call}: status {status}: {said.strip()}"


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
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write(root, files)
        for name in files:
            obj = (root / "build/obj" / name).with_suffix(".o")
            obj.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["gcc", "-c", root / name, "-o", obj], check=True)
        done = subprocess.run([sys.executable, ROOMS, "--root", root, "--build", root / "build"], capture_output=True, text=True)
    said = done.stdout + done.stderr
    ok = done.returncode == 0 and not said if words is None else done.returncode == 1 and words in said
    return ok, f"rooms {list(files)}: expected {words!r}, got status {done.returncode}: {said.strip()}"


# two texts of a row in core/, and the words that texts.py must print (None: it must accept them)
TEXT_CASES = [
    ('"width", "宽度"', None),
    ('"the head of {model}" /* "汉" */, "{model} 的 " "头（默认 1）"', None),
    ('"half, key", "half key 两个值"', None),
    ('"as in Hugging Face", "与 Hugging Face 一致"', None),
    ('"宽度", "宽度"', "no English text before it"),
    ('"{a} of {b}", "{a} 的 {c}"', "placeholders differ"),
    ('"the head", "这个 attention head 头"', "two Latin words in a row, attention head"),
    ('"a, b", "甲, 乙"', "half-width punctuation beside Chinese"),
    ('"head 1", "第1头"', "no space between Chinese and Latin"),
    ('"a：b", "甲：乙"', "Chinese punctuation in English"),
]


def check_texts(row, words):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write(root, {"core/rows.c": 'static const char *const values[] = {"half", "key"};\nstruct row row = {' + row + "};\n"})
        done = subprocess.run([sys.executable, TEXTS, "--root", root], capture_output=True, text=True)
    said = done.stdout + done.stderr
    ok = done.returncode == 0 and not said if words is None else done.returncode == 1 and words in said
    return ok, f"texts {row}: expected {words!r}, got status {done.returncode}: {said.strip()}"


def main():
    results = [check_includes(extra, words) for extra, words in CASES]
    results += [check_calls(call, allowed) for call, allowed in
                [("getenv", False), ("fopen", False), ("pthread_create", False), ("json_loads", False), ("sin", True)]]
    results += [check_rooms(files, words) for files, words in ROOM_CASES]
    results += [check_texts(row, words) for row, words in TEXT_CASES]
    for ok, text in results:
        if not ok:
            print(f"selftest: {text}")
    sys.exit(0 if all(ok for ok, _ in results) else 1)


if __name__ == "__main__":
    main()
