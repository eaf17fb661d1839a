"""Judges outcomes, and reports them: a line of the terminal, build/bench.json, a table in Markdown, a sentence at the end."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

from rows import COMMIT, PEER

AHEAD, LEVEL, BEHIND, HOLDS, SHORT, RECORDED = "ahead", "level", "behind", "holds", "short", "for the record"
SKIPPED, FAILED = "skipped", "failed"
FELL_SHORT = BEHIND, SHORT
SLOWER = 0.95  # than an earlier commit: the better end of the spread is below it


# ---- Judging -------------------------------------------------------------------------------------------------------------


def verdict(sort, outcome):
    best = outcome.spread()[1]
    if sort == PEER:
        return AHEAD if outcome.figure() >= 1 else LEVEL if best >= 1 else BEHIND
    if sort == COMMIT:
        return HOLDS if best >= SLOWER else SHORT
    return RECORDED


def judged(row, sort, outcome):
    """What is kept of a row that was measured."""
    return {**named(row, sort), "ours": statistics.median(outcome.ours), "theirs": statistics.median(outcome.theirs), "unit": outcome.unit,
            "against": outcome.against, "figure": outcome.figure(), "spread": outcome.spread(), "verdict": verdict(sort, outcome),
            "samples": {"ours": outcome.ours, "theirs": outcome.theirs}}


def unmeasured(row, sort, what, why):
    return {**named(row, sort), "verdict": what, "note": why}


def named(row, sort):
    return {"name": row.name, "group": row.group, "what": row.what, "sort": sort}


def status(report):
    """0: nothing fell short; 1: something did; 2: a row failed."""
    verdicts = {r["verdict"] for r in report["rows"]}
    return 2 if FAILED in verdicts else int(not verdicts.isdisjoint(FELL_SHORT))


# ---- Saying --------------------------------------------------------------------------------------------------------------


def rounded(value):
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def cells(result):
    """what, sort, ours, theirs, ratio, verdict: of the terminal and of Markdown."""
    if "figure" not in result:
        return result["sort"], "–", "–", "–", f"{result['verdict']}: {result['note']}"
    ours, theirs, ratio, low, high = map(rounded, (result["ours"], result["theirs"], result["figure"], *result["spread"]))
    return (result["sort"], f"{ours} {result['unit']}", f"{result['against']} {theirs} {result['unit']}", f"{ratio}× ({low}–{high})", result["verdict"])


def line(result):
    return "{:20} {:6} {:>13}   {:34} {:22} {}".format(result["name"], *cells(result))


def markdown(report):
    """The machine in a sentence, then one line for each row."""
    m = report["machine"]
    lines = [f"Measured {m['date'][:10]} at commit {m['commit']}, Linux {m['kernel']}, {m['congestion']}, load {m['load'][0]:.1f} at the start. "
             + summary(report), "", "| what | sort | ours | against | ratio (quartiles) | |", "|---|---|---|---|---|---|"]
    return "\n".join(lines + [f"| {r['what']} | {' | '.join(cells(r))} |" for r in report["rows"]]) + "\n"


def summary(report):
    """What was judged, on which processor, and what fell short."""
    m, judged_by = report["machine"], f"the earlier commit {report['against']}" if report["against"] else "a peer of the same run"

    def of(*verdicts):
        return [r for r in report["rows"] if r["verdict"] in verdicts]

    short = of(*FELL_SHORT)
    shortfall = f"{len(short)} fell short, " + ", ".join(f"{r['name']} ({r['figure']:.3g}× {r['against']})" for r in short)
    rest = [(of(RECORDED), "against a limit, not judged"), (of(SKIPPED), "skipped"), (of(FAILED), "failed")]
    return "; ".join([f"On {m['cpu']} ({m['isa']}, {m['cores']} cores) {len(of(AHEAD, LEVEL, HOLDS)) + len(short)} rows were judged, "
                      f"each against {judged_by}: {shortfall if short else 'none fell short'}",
                      *(f"{len(some)} {what}" for some, what in rest if some)]) + "."


# ---- The machine, and files ------------------------------------------------------------------------------------------------


def text_of(path, pattern="(.*)"):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text())
    except OSError:
        return "unknown"
    return found[1].strip() if found else "unknown"


def commit():
    try:
        return subprocess.run(["git", "describe", "--always", "--dirty"], check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine(isa):
    return {"cpu": text_of("/proc/cpuinfo", r"model name\s*:(.*)"), "isa": isa, "kernel": os.uname().release,
            "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg(),
            "congestion": text_of("/proc/sys/net/ipv4/tcp_congestion_control"),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commit": commit()}


def write(stem, report):
    """stem.json and stem.md."""
    pathlib.Path(f"{stem}.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    pathlib.Path(f"{stem}.md").write_text(markdown(report))
