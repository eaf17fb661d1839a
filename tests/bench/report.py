"""Judges figures by floors, and says them: a line of the terminal, build/bench.json, a table in Markdown."""
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import time

HOLDS, SHORT, RECORDED, SKIPPED, FAILED = "holds", "short", "for the record", "skipped", "failed"

# What keeps a row from a better figure: one line each, by the row's name, written by whoever looked into it. Empty: nobody
# has, or nothing does.
OBSTACLES = {
    "table": "AVX2 converts half as many doubles an instruction as AVX-512",
    "table_numpy": "",
    "table_torch": "",
    "table_avx2": "",
    "table_base": "",
    "list": "AVX2 registers hold half as many doubles as those of AVX-512",
    "table_bf16": "made in floats; two fifths of the kernel's time is the rounding test of every value",
    "table_f16": "AVX2 converts half as many doubles an instruction as AVX-512; the dropped part of every float is looked at",
    "rotate": "",
    "rotate_in_place": "",
    "rotate_torch": "",
    "alibi": "",
    "alibi_torch": "",
    "t5_torch": "",
    "growth": "the sizes of a GiB take a second, and the machine is shared",
    "offset": "",
    "workers": "",
    "probs": "AVX2 has half of AVX-512's products a cycle, and exponentials",
    "shaw": "as probabilities",
    "transformer_xl": "as probabilities",
    "deberta": "as probabilities",
    "unique": "",
    "unique_equal": "",
    "similarity": "",
    "json": "",
    "json_digits": "AVX-512 makes the digits of twice as many numbers an instruction",
    "json_map": "",
    "json_in": "AVX2 has no instruction that moves the digits of many numbers together; long mantissas and exponents are read one by one",
    "get": "",
    "get_cpu": "differs from run to run with the other work of the machine",
    "get_computed": "",
    "get_computed_cpu": "",
    "get_2": "client and both loops share two cores",
    "post": "between a kept answer and nginx lie 4 µs, in which the whole configuration would have to be read, planned and printed; jansson alone takes 5 to read it; asked again it is the next row's",
    "post_cached": "",
    "stream": "",
    "stream_huge": "nginx moves from 1.2 to 4.2 GB/s between runs, and copies nothing; ours is made and copied by one core, at 1.4 to 4.7 as the machine's other work lets it; its CPU is the smaller",
    "stream_curl": "",
    "stream_cubic": "correctly rounded values are made at 16 GB/s (AVX2) by the core that sends a ready buffer at 5: three quarters at most, on a quiet machine 0.73; the bare loop's block stays in the second-level cache, whatever else the machine does",
    "stream_bare": "",
    "p99": "",
    "p99_nginx": "",
    "upload": "",
    "memory": "",
    "analyze_rope": "",
    "diagnose_rotated": "",
    "diagnose_tables": "",
    "diagnose_blind": "",
    "diagnose_noise": "",
    "diagnose_xpos": "",
    "stated_work": "",
    "analyses_health": "",
    "experiment_alibi": "",
    "experiment_rope": "",
    "fastapi_small": "",
    "fastapi_json": "",
    "fastapi_raw": "a megabyte's way through loopback takes 0.2 ms by itself, making it 0.07; the peer took 2.6 to 4.1 ms",
    "fastapi_alibi_json": "",
    "fastapi_alibi_raw": "",
}


# ---- Judging -------------------------------------------------------------------------------------------------------------

def verdict(figure, low, high):
    if math.isinf(low) and math.isinf(high):
        return RECORDED
    return HOLDS if low <= figure <= high else SHORT


def floor_text(low, high):
    if math.isinf(low):
        return "–" if math.isinf(high) else f"≤ {high:.3g}"
    return f"≥ {low:.3g}" if math.isinf(high) else f"{low:g}–{high:g}"


def judged(row, outcome, isa):
    """What is kept of a row that was measured."""
    low, high, reached, remark = row.floor.on(isa)
    figures = outcome.figures()
    figure = outcome.figure()
    return {**named(row), "ours": statistics.median(outcome.ours),
            "theirs": statistics.median(outcome.theirs) if outcome.theirs else None, "unit": outcome.unit,
            "against": outcome.against, "kind": outcome.kind, "figure": figure, "least": min(figures), "most": max(figures),
            "floor": floor_text(low, high), "reached": reached, "verdict": verdict(figure, low, high),
            "note": "; ".join(filter(None, [remark, outcome.note])),
            "samples": {"ours": outcome.ours, "theirs": outcome.theirs}}


def unmeasured(row, isa, what, why):
    low, high, reached, _ = row.floor.on(isa)
    return {**named(row), "floor": floor_text(low, high), "reached": reached, "verdict": what, "note": why}


def named(row):
    return {"name": row.name, "group": row.group, "what": row.what}


# ---- Saying --------------------------------------------------------------------------------------------------------------

def amount(value, unit):
    if value is None:
        return "–"
    return f"{value:.0f} {unit}" if abs(value) >= 1000 else f"{value:.3g} {unit}"


def figure_text(result):
    return amount(result["figure"], result["unit"] if result["kind"] == "alone" else "").strip()


def line(result):
    if "figure" not in result:
        return f"{result['name']:19} {result['verdict']}: {result['note']}"
    theirs = f"{result['against']} {amount(result['theirs'], result['unit'])}" if result["against"] else ""
    said = f"{result['name']:19} {amount(result['ours'], result['unit']):>13}   {theirs:34} {figure_text(result):>10}   " \
           f"floor {result['floor']:10} {result['verdict']}"
    return f"{said}   ({result['note']})" if result["note"] else said


def markdown(report):
    """The machine in a sentence, then one line for each row."""
    m = report["machine"]
    lines = [f"Measured {m['date'][:10]} at commit {m['commit']} on {m['cpu']}, {m['cores']} cores, {m['isa']}, Linux {m['kernel']}, "
             f"{m['congestion']}, load {m['load'][0]:.1f} at the start: {count(report)}.", "",
             "| what | ours | against | figure | floor | reached before | | what limits it |", "|---|---|---|---|---|---|---|---|"]
    return "\n".join(lines + [cells(r) for r in report["rows"]]) + "\n"


def cells(result):
    way = OBSTACLES.get(result["name"], "")
    if "figure" not in result:
        return f"| {result['what']} | – | – | – | {result['floor']} | {result['reached']} | {result['verdict']} | {result['note']} |"
    theirs = f"{result['against']} {amount(result['theirs'], result['unit'])}" if result["against"] else ""
    sign = "" if result["kind"] == "alone" else "×"
    way = "; ".join(filter(None, [way, result["note"]]))
    return f"| {result['what']} | {amount(result['ours'], result['unit'])} | {theirs} | {figure_text(result)}{sign} | " \
           f"{result['floor']} | {result['reached']} | {result['verdict']} | {way} |"


def count(report):
    kinds = [r["verdict"] for r in report["rows"]]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in (HOLDS, SHORT, RECORDED, SKIPPED, FAILED) if kind in kinds)


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
    render(stem)


def render(stem):
    """stem.md out of stem.json: again after OBSTACLES has changed."""
    pathlib.Path(f"{stem}.md").write_text(markdown(json.loads(pathlib.Path(f"{stem}.json").read_text())))
