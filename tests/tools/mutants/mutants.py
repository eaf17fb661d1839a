#!/usr/bin/python3
"""Mutants: small mistakes put into core, api and server one at a time, to know which of them the tests notice.

    mutants.py draw --seed 51 --count 63     writes mutants.jsonl, beside this file: file, line, kind, text before and after
    mutants.py map                           which tests execute their lines (gcov), into build/mutants/map.json
    mutants.py run [--only 3,17] [--part 0/2]  puts each to the tests that execute its line, quickest first, until one fails;
                                             results in build/mutants/results.jsonl
    mutants.py report                        a line for each, and how many were caught

map and run go on where they stopped; --part 0/2 and 1/2 are two runs beside each other. The code is that of HEAD when they begin, in clones
of their own, so the working copy may change meanwhile. What the compiler refuses or turns into the same instructions is not drawn; what
is seen to change nothing keeps its row, with the reason as `same`, and is not run."""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LIST = HERE / "mutants.jsonl"
WORK = ROOT / "build/mutants"
PYTHON = "/usr/bin/python3"
PYTEST = [PYTHON, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
MAKE = ["make", "--no-print-directory", "-j2", "WERROR="]
COMPILER = "ccache gcc" if subprocess.run(["which", "ccache"], capture_output=True).returncode == 0 else "gcc"
# What the compiler refuses in every build is no mutant, as pointers of two types exchanged.
STRICT = COMPILER + " -Werror=incompatible-pointer-types -Werror=int-conversion -Werror=array-bounds"
DECLARES = re.compile(r"\s+(?:static |const |struct |unsigned )*\w+ \**\w+\[\w+\](?:;| =)")
# These start many servers, wait or load the machine: they come last, and are not mapped.
HEAVY = re.compile(r"faults|soak|proxies|monitoring|container|store_s3|store_slow|test_time|saturation|install|smuggling|experiments_finding|stated_work")


# ---- Drawing -----------------------------------------------------------------------------------------------------------

FAIL = r"return \w*(?:fail|refuse)\w*\("
SIMPLE = r"[\w.\->\[\]&*]+"

# kind: places of a line that it changes, and what it makes of each
KINDS = {
    "sign": (r"(?<=[\w\])]) [+-] (?=[\w(])", lambda m: m[0].replace("+", "#").replace("-", "+").replace("#", "-")),
    "bound": (r" (?:<=|>=|<|>) ", lambda m: {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > "}[m[0]]),
    "index": (r"(?<=\w)\[(\w+)\]", lambda m: f"[{m[1]} + 1]" if not m[1].isdigit() else f"[{int(m[1]) ^ 1}]"),
    "refusal": None,  # of two lines: refusals()
    "swap": (rf"(?<=[(])({SIMPLE}), ({SIMPLE})(?=[,)])", lambda m: f"{m[2]}, {m[1]}"),
    "equal": (r" (?:==|!=) ", lambda m: " != " if m[0] == " == " else " == "),
    "logic": (r" (?:&&|\|\|) ", lambda m: " || " if m[0] == " && " else " && "),
}


def candidates(path):
    """(number, text, kind, changed text) of every place of a file's functions."""
    found, inside, comment = [], False, False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("{") or re.match(r"^[\w].*\) \{$", line):
            inside = True
        if line.startswith("}"):
            inside = False
        stripped = line.strip()
        comment = comment or stripped.startswith("/*")
        ended = "*/" in line
        if inside and not comment and line.startswith("    ") and '"' not in line and "sizeof" not in line and "assert" not in line and not DECLARES.match(line):
            for kind, (pattern, change) in ((kind, how) for kind, how in KINDS.items() if how):
                for match in re.finditer(pattern, line):
                    made = line[:match.start()] + change(match) + line[match.end():]
                    if made != line:
                        found.append((number, line, kind, made))
        comment = comment and not ended
    return found


def refusals(path):
    """Dropped refusals: the condition above a `return fail…(` of the next line."""
    lines, found = path.read_text().splitlines(), []
    for number, (line, after) in enumerate(zip(lines, lines[1:]), 1):
        match = re.fullmatch(r"(\s+)if \((.*)\)( \{)?", line)
        if match and re.match(rf"\s+{FAIL}", after):
            found.append((number, line, "refusal", f"{match[1]}if (0 && ({match[2]})){match[3] or ''}"))
    return found


def objects_of(file):
    return f"build/obj/{file[:-2]}.o"


def code_of(tree, file):
    """The instructions of an object, without what differs by line numbers."""
    subprocess.run([*MAKE, objects_of(file), f"CC={STRICT}"], cwd=tree, check=True, capture_output=True)
    dumped = subprocess.run(["objdump", "-d", "-r", "--no-show-raw-insn", objects_of(file)], cwd=tree, capture_output=True, text=True, check=True)
    return dumped.stdout


def draw(seed, count):
    rng = random.Random(seed)
    tree = clone()
    files = subprocess.run(["git", "ls-files", "core/*.c", "api/*.c", "server/*.c"], cwd=tree, capture_output=True, text=True).stdout.split()
    places = {file: candidates(tree / file) + refusals(tree / file) for file in files}
    by_kind = {kind: [(file, *place) for file in files for place in places[file] if place[2] == kind] for kind in KINDS}
    kinds, drawn, files_drawn = itertools.cycle(KINDS), [], set()
    while len(drawn) < count:
        kind = next(kinds)
        file, number, before, _, after = rng.choice(by_kind[kind])
        if file in files_drawn or not is_mutant(tree, file, number, before, after):
            continue
        files_drawn.add(file)
        drawn.append({"n": len(drawn) + 1, "file": file, "line": number, "kind": kind, "before": before.strip(), "after": after.strip()})
        print(json.dumps(drawn[-1]), flush=True)
    LIST.write_text("".join(json.dumps(row) + "\n" for row in drawn))


def is_mutant(tree, file, number, before, after):
    """Whether it compiles, to other instructions."""
    path = tree / file
    original = path.read_text()
    usual = code_of(tree, file)
    try:
        path.write_text(changed(original, number, before, after))
        return code_of(tree, file) != usual
    except subprocess.CalledProcessError:
        return False
    finally:
        path.write_text(original)


def changed(text, number, before, after):
    """A text with one line changed: the one of these words nearest to the number, since code moves."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if line.strip() == before.strip()]
    if not places:
        raise ValueError("the line is not there any more")
    at = min(places, key=lambda i: abs(i + 1 - number))
    indent = lines[at][:len(lines[at]) - len(lines[at].lstrip())]
    lines[at] = indent + after.strip()
    return "\n".join(lines)


# ---- What executes a line ----------------------------------------------------------------------------------------------


def clone(name="tree"):
    """HEAD, in a clone that is kept between runs."""
    tree = WORK / name
    if not tree.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(tree)], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["git", "fetch", "-q", str(ROOT), head], cwd=tree, check=True)
    subprocess.run(["git", "checkout", "-q", "-f", "--detach", head], cwd=tree, check=True)
    return tree


def units(tree, build):
    """{name: (target of make, command)}: each program in C, each fuzz target's inputs, each file of tests over a socket, each file of rows."""
    found = {}
    for source in sorted((tree / "tests").glob("*/**/test_*.c")):
        program = f"{build}/{source.relative_to(tree).with_suffix('')}"
        found[f"c:{source.relative_to(tree / 'tests').with_suffix('')}"] = program, [program]
    for source in sorted((tree / "tests/fuzz").glob("fuzz_*.c")):
        program = f"{build}/tests/fuzz/{source.stem}.replay"
        found[f"fuzz:{source.stem}"] = program, [program, f"{build}/tests/fuzz/corpus/{source.stem.removeprefix('fuzz_')}"]
    for file in sorted([*(tree / "tests").glob("http/**/test_*.py"), *(tree / "tests").glob("diagnose/**/test_*.py")]):
        name = str(file.relative_to(tree))
        if file.stem != "test_cases":
            found[name] = "all", [*PYTEST, name]
    for rows in sorted((tree / "tests/cases").glob("*.jsonl")):
        found[f"cases:{rows.stem}"] = "all", [*PYTEST, "tests/http/test_cases.py", "-k", f"{rows.stem}/"]
    return found


def run_unit(tree, build, command, environment=None, timeout=900):
    """Status and seconds."""
    begun = time.monotonic()
    env = {**os.environ, "POSENCD": str(tree / build / "posencd"), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
    try:
        status = subprocess.run(command, cwd=tree, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=timeout).returncode
    except subprocess.TimeoutExpired:
        status = -1
    return status, time.monotonic() - begun


def lines_of(gcda, source):
    """Line numbers of a source that a data file says were executed."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", gcda.name], cwd=gcda.parent, capture_output=True)
    try:
        files = json.loads(done.stdout)["files"]
    except (ValueError, KeyError):
        return []
    return sorted(line["line_number"] for file in files if file["file"].endswith(source) for line in file["lines"] if line["count"])


def make_map():
    tree, rows = clone(), mutants()
    compile_(tree, "all", "tests", f"CC={COMPILER} --coverage", "BUILD=build/coverage")
    path = WORK / "map.json"
    known = json.loads(path.read_text()) if path.exists() else {}

    def run_one(name, command):
        data = WORK / "data" / re.sub(r"\W", "_", name)
        status, seconds = run_unit(tree, "build/coverage", command, {"GCOV_PREFIX": str(data)})
        executed = {}
        for file in sorted({row["file"] for row in rows}):
            objects = pathlib.Path(f"{data}{tree}/build/coverage/obj") / file
            for gcda in objects.parent.glob(f"{objects.stem}.*gcda"):  # a kernel's has its instruction set in the name
                gcda.with_suffix(".gcno").write_bytes((tree / "build/coverage/obj" / file).with_name(gcda.name).with_suffix(".gcno").read_bytes())
                executed[file] = sorted({*executed.get(file, []), *lines_of(gcda, file)})
        subprocess.run(["rm", "-rf", str(data)], check=True)
        known[name] = {"seconds": round(seconds, 2), "status": status, "lines": executed}
        path.write_text(json.dumps(known))
        print(f"{name}: {seconds:.1f} s, status {status}, {sum(map(len, executed.values()))} lines", flush=True)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(run_one, name, command) for name, (_, command) in units(tree, "build/coverage").items()
                   if name not in known and not HEAVY.search(name)]
        for one in waiting:
            one.result()


def compile_(tree, *words):
    subprocess.run([*MAKE, *words], cwd=tree, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# ---- Running -----------------------------------------------------------------------------------------------------------


def mutants():
    return [json.loads(line) for line in LIST.read_text().splitlines()]


def tests_for(row, tree, known):
    """Names of tests: those that execute the line, quickest first, then those that were not mapped."""
    text = (tree / row["file"]).read_text().split("\n")
    places = [i + 1 for i, line in enumerate(text) if line.strip() == row["before"]]
    if not places:
        return None
    line = min(places, key=lambda i: abs(i - row["line"]))
    near = set(range(line - 2, line + 3))  # gcov names the first line of a statement, or the last
    everything = units(tree, "build")
    executing = [name for name in everything if near & set(known.get(name, {"lines": {}})["lines"].get(row["file"], []))]
    return sorted(executing, key=lambda name: known[name]["seconds"]) + [name for name in everything if executing and name not in known]


def put_to_tests(row, tree, known):
    """What happened to one mutant: the test that failed, and how many were tried."""
    subprocess.run(["git", "checkout", "-q", "-f", "."], cwd=tree, check=True)
    source, names, everything = tree / row["file"], tests_for(row, tree, known), units(tree, "build")
    if names is None:
        return {"caught": None, "note": "the line is not there any more"}
    right = source.read_text()
    wrong = changed(right, row["line"], row["before"], row["after"])

    def status_of(name, text):
        target, command = everything[name]
        if source.read_text() != text:
            source.write_text(text)
        compile_(tree, target, "build/tests/faults/faults.so", f"CC={COMPILER}")
        return run_unit(tree, "build", command, timeout=60 + 10 * known.get(name, {"seconds": 60})["seconds"])[0]

    for tried, name in enumerate(names, 1):
        if known.get(name, {"status": 0})["status"] not in (0, 5):
            continue
        status = status_of(name, wrong)
        if status not in (0, 5) and (name in known or status_of(name, right) in (0, 5)):  # one that was not mapped may always fail
            return {"caught": name, "tried": tried, **({"note": "out of time"} if status == -1 else {})}
    return {"caught": None, "tried": len(names)}


def results():
    path = WORK / "results.jsonl"
    return {row["n"]: row for row in map(json.loads, path.read_text().splitlines())} if path.exists() else {}


def run(only, part):
    number, of = map(int, part.split("/"))
    tree, known = clone(f"tree{number}"), json.loads((WORK / "map.json").read_text())
    compile_(tree, "all", "tests", f"CC={COMPILER}")
    for row in mutants():
        if "same" in row or row["n"] % of != number or (row["n"] not in only if only else row["n"] in results()):
            continue
        result = {"n": row["n"], **put_to_tests(row, tree, known)}
        with (WORK / "results.jsonl").open("a") as out:
            out.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)


def report():
    found = results()
    for row in mutants():
        result = found.get(row["n"], {"caught": None, "note": "not run"})
        how = f"by {result['caught']} {result.get('note', '')}".rstrip() if result["caught"] else result.get("note", "MISSED")
        state = f"no mutant: {row['same']}" if "same" in row else how
        print(f"{row['n']:3} {row['kind']:8} {row['file']}:{row['line']}  {state}")
    print(f"{sum(bool(r['caught']) for r in found.values())} of {sum('same' not in row for row in mutants())} caught")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["draw", "map", "run", "report"])
    parser.add_argument("--seed", type=int, default=51)
    parser.add_argument("--count", type=int, default=63)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="0/1")
    given = parser.parse_args()
    todo = {"draw": lambda: draw(given.seed, given.count), "map": make_map, "report": report,
            "run": lambda: run({int(n) for n in given.only.split(",") if n}, given.part)}
    todo[given.what]()


if __name__ == "__main__":
    sys.exit(main())
