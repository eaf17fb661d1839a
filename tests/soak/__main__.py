"""python3 tests/soak: minutes of mixed load against one server, judged by verdict.py. `make soak`; README.md says how to read it."""
import argparse
import json
import os
import pathlib
import queue as queues
import random
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "http"), str(HERE.parent / "http/transport")]
sys.path.append(str(HERE.parent))  # tests/truth

import crowd as crowds  # noqa: E402
import troublemakers  # noqa: E402
import verdict  # noqa: E402
import watch  # noqa: E402
from actors import ACTORS  # noqa: E402
from conftest import start_server  # noqa: E402
from connection import is_quiet  # noqa: E402
from watch import MIB  # noqa: E402

# A cache of answers as large as by default would fill for minutes, and hide whether the rest is flat.
FLAGS = ["--workers", "2", "--max-queue", "64", "--answer-cache", "1MiB", "--log-level", "warn",
         "--header-timeout", str(troublemakers.HEADER_SECONDS), "--connection-timeout", str(troublemakers.TIMEOUT_SECONDS)]
# What a sanitizer keeps of freed memory would hide whether ours is flat.
ENVIRONMENT = {"ASAN_OPTIONS": "quarantine_size_mb=8:malloc_context_size=5:" + os.environ.get("ASAN_OPTIONS", "")}
REPORT = re.compile(r".*(?:Sanitizer|runtime error|panic|assertion).*", re.I)
N_WRONG_MAX = 40


class Run:
    """The figures, gathered while it goes."""

    def __init__(self, server, seed, sanitized):
        self.server, self.began = server, time.monotonic()
        self.figures = {"seed": seed, "sanitized": sanitized, "wrong": [], "calm": [], "words": {},
                        "before": None, "after": None, "n_hangups": 0}

    def minute(self):
        return (time.monotonic() - self.began) / 60

    def take(self, queue):
        f = self.figures
        while True:
            try:
                words, wrong = queue.get_nowait()
            except queues.Empty:
                return
            for (actor, word), n in words.items():
                of = f["words"].setdefault(actor, {})
                of[word] = of.get(word, 0) + n
            f["wrong"] = (f["wrong"] + wrong)[:N_WRONG_MAX]

    def sample(self):
        now = watch.sample(self.server)
        return now and {**now, "minute": round(self.minute(), 3)}

    def calm(self, crowd):
        """Nobody new asks for a moment: what the server holds then is its own. Clients that have no processor take longer to notice."""
        crowd.calm(True)
        time.sleep(1.5)
        sample = self.sample()
        for _ in range(20):
            if not sample or sample["fds"] <= verdict.descriptors_max(self.figures["before"], self.figures["n_clients"]):
                break
            time.sleep(0.5)
            sample = self.sample()
        if sample:
            self.figures["calm"].append(sample)
        crowd.calm(False)


def table(run):
    """What was done so far, one line an actor, and the server's figures."""
    f, lines = run.figures, []
    for actor, words in sorted(f["words"].items()):
        said = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
        lines.append(f"  {actor:20} {sum(words.values()):7}   {said}")
    now = watch.sample(run.server) or f["after"] or {}
    lines.append(f"  server: {now.get('rss', 0) / MIB:.1f} MiB (peak {now.get('peak', 0) / MIB:.1f}), {now.get('fds')} descriptors, "
                 f"{now.get('threads')} threads; {len(f['wrong'])} wrong")
    return "\n".join(lines)


def load(run, crowd, seconds):
    """The crowd at work: SIGHUP now and then, calm moments, a table each minute; ends early if the server is gone. On a busy machine a short run
    goes on, for a minute more at most, until every kind of client has come."""
    rng = random.Random(run.figures["seed"])
    warm = min(60.0, seconds / 4)
    every = max(4.0, min(15.0, seconds / 5))
    next_calm, next_hangup, next_table = warm, 1.0, 60.0
    missing = lambda: [name for name in run.figures["expected"] if name not in run.figures["words"]]
    while run.server.is_alive() and ((now := run.minute() * 60) < seconds or (now < seconds + 60 and missing())):
        run.take(crowd.queue)
        if now > next_hangup:
            run.server.process.send_signal(signal.SIGHUP)
            run.figures["n_hangups"] += 1
            next_hangup = now + rng.uniform(0.2, 3)
        if now > next_calm:
            run.calm(crowd)
            next_calm = now + every
        if now > next_table:
            print(f"minute {now / 60:.0f}\n{table(run)}", flush=True)
            next_table += 60
        time.sleep(0.05)


def wait_until_quiet(run, seconds=20):
    """Back to the descriptors it began with, nothing in flight; whatever it is after that time is what is judged."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if is_quiet(run.server) and run.sample()["fds"] == run.figures["before"]["fds"]:
                return
        except Exception:  # gone: the verdict says so
            return
        time.sleep(0.2)
    run.figures["wrong"].append("not quiet 20 s after the last client left: " + str(run.sample()))


def attend(run, args):
    f, server = run.figures, run.server
    f["version"], f["metrics_before"], f["load_before"] = server.get("/version").json(), watch.metrics(server), os.getloadavg()
    time.sleep(0.3)
    f["before"] = run.sample()
    crowd = crowds.Crowd(server.port, run.figures["seed"], args.clients, args.rate)
    f["n_clients"], f["expected"] = crowd.n_threads, [row[0] for row in ACTORS + troublemakers.HOSTILE + troublemakers.SLOW + crowds.BURST]
    crowd.start()
    load(run, crowd, args.seconds)
    f["wrong"] += crowd.stop(run.take)
    return finish(run)


def finish(run):
    f, server = run.figures, run.server
    f["minutes"], f["load_after"] = run.minute(), os.getloadavg()
    wait_until_quiet(run)
    f["after"] = run.sample()
    f["metrics_after"] = watch.metrics(server) if f["after"] else None
    if f["after"]:
        f["calm"].append(f["after"])
    try:
        f["status"] = server.stop()
    except subprocess.TimeoutExpired:  # it had to be killed
        f["status"] = None
    f["reports"] = REPORT.findall(server.stderr_text())
    return run


def arguments():
    parser = argparse.ArgumentParser(prog="tests/soak", description=__doc__)
    parser.add_argument("--program", default="build/posencd")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--clients", type=int, default=3, help="processes of well-behaved clients")
    parser.add_argument("--rate", type=float, default=40, help="requests a second of each of them, at most")
    parser.add_argument("--seed", default="")
    parser.add_argument("--flag", action="append", default=[], help="a flag for posencd")
    parser.add_argument("--output", default="build/soak.json")
    args = parser.parse_args()
    args.program = str(pathlib.Path(args.program).resolve())
    return args


def report(run, output):
    bad = verdict.violations(run.figures)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({**run.figures, "slope_mib_a_minute": verdict.slope(run.figures["calm"]) / MIB, "violations": bad}, indent=1))
    print(f"end, {run.figures['minutes']:.1f} minutes\n{table(run)}")
    print(f"  slope {verdict.slope(run.figures['calm']) / MIB:.2f} MiB a minute over {len(run.figures['calm'])} calm moments; "
          f"{run.figures['n_hangups']} SIGHUP; exit status {run.figures['status']}; figures in {output}")
    for text in bad:
        print("  VIOLATION " + text)
    if bad:
        print("  the log's end:\n" + run.server.stderr_text()[-1500:])
    print(f"soak: {len(bad)} violations", flush=True)
    return 1 if bad else 0


def main():
    args = arguments()
    seed = crowds.seed_from(args.seed)
    print(f"soak: {args.seconds:.0f} s of {args.program}, seed {seed} (SOAK_SEED={seed} repeats it)", flush=True)
    with start_server(*FLAGS, *args.flag, env=ENVIRONMENT, program=args.program) as server:
        return report(attend(Run(server, seed, "POSENC_SANITIZED" in os.environ), args), pathlib.Path(args.output))


sys.exit(main())
