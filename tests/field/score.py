#!/usr/bin/env python3
"""How well /diagnose explains tensors that other people's code computed: python3 tests/field/score.py [URL] [--half known] [--table].

Three questions of each row: found without a belief, the right belief accepted as posenc.check accepts it, and each wrong belief named by the
first finding. Several rows are asked at the same time, so that all workers of the service have one. Without a URL a server is started. Of the
half that is aside only totals are printed."""
import argparse
import collections
import concurrent.futures
import contextlib
import http.client
import importlib.util
import json
import sys
import threading
import time
import urllib.parse

import store

HTTP = store.HERE.parent / "http"
sys.path.insert(0, str(HTTP))
import safetensors_reader  # noqa: E402

CLIENT = store.HERE.parents[1] / "server" / "clients" / "posenc.py"


def client_library():
    """What the Python client calls a fit is what counts here."""
    spec = importlib.util.spec_from_file_location("posenc_client", CLIENT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


posenc = client_library()
ASKED_AT_ONCE = 4
Answer = collections.namedtuple("Answer", "row kind mistake good fits status codes seconds")


class Service:
    """One connection to a service at a URL."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=300)

    def diagnose(self, arrays, bf16, belief):
        """Status, the answer or the problem, seconds."""
        body = safetensors_reader.dumps(arrays, {"request": json.dumps(belief)}, bf16)
        begun = time.monotonic()
        self.connection.request("POST", "/diagnose", body, {"Content-Type": "application/vnd.safetensors"})
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        return response.status, answer, time.monotonic() - begun


# ---- The questions of a row -----------------------------------------------------------------------------------------------------


def questions(row):
    """(kind, mistake, belief, what is sent under which name, what must come out)"""
    if row["identify"]:
        yield "found", "", row["identify"]["hint"], {}, row["identify"]["find"]
    if row["right"]:
        yield "right", "", row["right"], {}, None
    for one in row["wrong"]:
        yield "wrong", one["mistake"], one["belief"], one.get("sent_as", {}), set(one["codes"])


def ask(service, row):
    """An Answer for each question of a row."""
    arrays, dtypes = store.arrays(row), store.dtypes(row)
    for kind, mistake, belief, sent_as, wanted in questions(row):
        sent = {sent_as.get(name, name): a for name, a in arrays.items()}
        bf16 = [sent_as.get(name, name) for name, dtype in dtypes.items() if dtype == "bf16"]
        status, answer, seconds = service.diagnose(sent, bf16, belief)
        fits, codes, good = False, [], False
        if status == 200:
            fits, codes = posenc.Diagnosis(answer).fits, [finding["code"] for finding in answer["findings"]]
            good = {"found": lambda: found(answer, wanted), "right": lambda: fits, "wrong": lambda: bool(codes) and codes[0] in wanted}[kind]()
        yield Answer(row, kind, mistake, bool(good), fits, status, codes, seconds)


def found(answer, alternatives):
    """Whether the first candidate has the fields of one of the alternatives."""
    candidates = answer["candidates"]
    if not answer["explained"] or not candidates:
        return False
    return any(all(same(field(candidates[0]["config"], name), value) for name, value in one.items()) for one in alternatives)


def field(config, name):
    for part in name.split("."):
        config = (config or {}).get(part)
    return config


def same(a, b):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-5 * abs(b)
    return a == b


# ---- The score ------------------------------------------------------------------------------------------------------------------


def score(url, rows, told=None):
    """All answers, in the order of the rows; told is called after each row. A thread has a connection of its own."""
    own = threading.local()

    def answers_of(row):
        if not hasattr(own, "service"):
            own.service = Service(url)
        answers = list(ask(own.service, row))
        if told:
            told(row)
        return answers
    with concurrent.futures.ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        return [answer for answers in pool.map(answers_of, rows) for answer in answers]


def figures(answers):
    """{found, right, wrong: (good, all)} and how many wrong beliefs were accepted."""
    out = {kind: (sum(a.good for a in answers if a.kind == kind), sum(a.kind == kind for a in answers)) for kind in ("found", "right", "wrong")}
    return out, sum(a.fits for a in answers if a.kind == "wrong")


def of(pair):
    return f"{pair[0]}/{pair[1]}" if pair[1] else "–"


def line(name, answers, wide):
    numbers, accepted = figures(answers)
    return (f"{name:{wide}}  {len({a.row['id'] for a in answers}):7}  {of(numbers['found']):>9}  {of(numbers['right']):>9}"
            f"  {of(numbers['wrong']):>11}  {accepted:8}")


def seconds_of(answers):
    times = sorted(a.seconds for a in answers)
    at = lambda share: times[min(len(times) - 1, int(share * len(times)))]
    return f"seconds: median {at(0.5):.3f}, 90 % {at(0.9):.2f}, worst {times[-1]:.1f}; in all {sum(times):.0f}"


def by_project(answers):
    groups = collections.defaultdict(list)
    for answer in answers:
        groups[answer.row["project"]].append(answer)
    return dict(sorted(groups.items(), key=lambda item: item[0].lower()))


def report(answers, which):
    """The score as text. A project that is aside is never printed alone."""
    groups = {name: part for name, part in by_project(answers).items() if store.half(name) == "known"}
    wide = max(map(len, [*groups, "all of the half that is known", "all of the half that is aside"]))
    lines = [f"{'project':{wide}}  tensors      found      right        named  accepted"]
    lines += [line(name, part, wide) for name, part in groups.items()]
    for name in ("known", "aside"):
        part = [a for a in answers if store.half(a.row["project"]) == name]
        if which in ("all", name) and part:
            lines += [line(f"all of the half that is {name}", part, wide), f"{'':{wide}}  {seconds_of(part)}"]
    return "\n".join(lines)


def failures(answers):
    """One line for each bad answer of the known half."""
    for a in answers:
        if (not a.good or (a.kind == "wrong" and a.fits)) and store.half(a.row["project"]) == "known":
            yield f"{a.row['id']}: {a.kind} {a.mistake or ''} -> {a.status} {', '.join(a.codes)}"


def table(answers):
    """Markdown: a row for each project, both halves."""
    lines = ["| project, commit | files | tensors | found | right | wrong named | accepted wrongly |", "|---|---|---|---|---|---|---|"]
    for name, part in by_project(answers).items():
        numbers, accepted = figures(part)
        files = sorted({a.row["path"].rsplit("/", 1)[-1] for a in part})
        lines.append(f"| {name} `{part[0].row['commit'][:7]}` | {', '.join(files)} | {len({a.row['id'] for a in part})} | {of(numbers['found'])} | "
                     f"{of(numbers['right'])} | {of(numbers['wrong'])} | {accepted} |")
    return "\n".join(lines)


@contextlib.contextmanager
def server_at(url):
    if url:
        yield url
        return
    import conftest

    with conftest.start_server() as server:
        yield server.url


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?", help="of a running service; without one a server is started")
    parser.add_argument("--half", choices=("known", "aside", "all"), default="known")
    parser.add_argument("--project", help="only projects whose name contains this")
    parser.add_argument("--table", action="store_true", help="the score as Markdown")
    parser.add_argument("--failures", action="store_true", help="also what went wrong, of the known half")
    options = parser.parse_args()
    rows = [row for row in store.rows(options.half) if (options.project or "") in row["project"]]
    with server_at(options.url) as url:
        answers = score(url, rows, lambda row: print(".", end="", file=sys.stderr, flush=True))
    print(file=sys.stderr)
    print(table(answers) if options.table else report(answers, options.half))
    if options.failures:
        print(*failures(answers), sep="\n")
    return 1 if figures(answers)[1] else 0


if __name__ == "__main__":
    sys.exit(main())
