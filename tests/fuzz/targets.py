"""Runs fuzz targets for a count of executions or a time, one line each at the end, and writes build/fuzz.json.

    python3 tests/fuzz/targets.py --build build/fuzz [--runs 10000000 | --seconds 30] [NAME …]
    python3 tests/fuzz/targets.py --build build/fuzz --keep [NAME …]      renews tests/fuzz/corpus
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import archive

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES_MAX, BYTES_MAX = 200, 200_000  # of the committed corpus of one target

# Longest input, and the dictionary. Texts of a few hundred bytes reach all code and keep an execution short.
TARGETS = {
    "accept": (300, "headers"), "config": (1024, "config"), "gguf": (1024, None), "head": (600, "headers"),
    "headers": (600, "headers"), "hf_config": (800, "hf_config"), "http": (800, "headers"), "mcp": (1024, "json"), "multipart": (2048, "headers"),
    "names": (200, None), "npy": (1024, None), "npz": (2048, None), "numbers": (2048, "numbers"), "oip": (1024, "json"),
    "pasted": (1200, "pasted"), "plan": (600, "json"), "printed": (800, "numbers"), "query": (400, "query"), "range": (300, "headers"),
    "request": (1024, "json"), "said": (800, "said"), "store": (1024, "store"), "safetensors": (1024, "json"), "tokens": (700, "tokens"),
}


def names(build):
    return sorted(p.name[len("fuzz_"):] for p in (build / "tests/fuzz").glob("fuzz_*") if not p.suffix)


def program(build, name):
    return str(build / "tests/fuzz" / f"fuzz_{name}")


def crashes(build, name):
    return {p.name for p in (build / "crashes" / name).glob("*-*")}


def committed(build, name):
    """The committed corpus, unpacked."""
    folder = build / "tests/fuzz/corpus" / name
    archive.to_folder(archive.read(archive.path_of(name)), folder)
    return folder


def command(build, name, limit):
    n_bytes, words = TARGETS.get(name, (1024, None))
    grown, found = build / "corpus" / name, build / "crashes" / name
    for folder in (grown, found):
        folder.mkdir(parents=True, exist_ok=True)
    flags = [limit, f"-max_len={n_bytes}", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", "-entropic=0",
             "-reload=0", "-print_funcs=0", f"-artifact_prefix={found}/"]
    if words:
        flags.append(f"-dict={ROOT / 'tests/fuzz/dict' / words}.dict")
    return [program(build, name), *flags, str(grown), str(committed(build, name))]


def run(build, name, limit):
    """One target; its log stays beside its crashes. What it found is there too, to be run again by itself."""
    before, begun = crashes(build, name), time.monotonic()
    line = command(build, name, limit)
    log = build / "crashes" / f"{name}.log"
    with log.open("w") as out:
        status = subprocess.run(line, stdout=out, stderr=out, check=False).returncode
    text = log.read_text(errors="replace")
    counted = re.search(r"number_of_executed_units:\s*(\d+)", text)
    new = sorted(crashes(build, name) - before)
    seen = [int(n) for n in re.findall(r"^#(\d+)\s", text, re.M)]
    return {"name": name, "executions": int(counted[1]) if counted else max(seen, default=0),
            "seconds": round(time.monotonic() - begun, 1), "new_crashes": len(new) or int(status != 0), "files": new,
            "law": (re.findall(r"broken law: .*|SUMMARY: .*", text) or [""])[0]}


def print_row(row):
    rate = row["executions"] / max(row["seconds"], 0.1)
    print(f"fuzz {row['name']:<12} {row['executions']:>10} executions {row['seconds']:>8.1f} s {rate:>8.0f}/s "
          f"{row['new_crashes']} new crashes{': ' + row['law'] if row['law'] else ''}", flush=True)


def shortest_first(inputs):
    return sorted(inputs.items(), key=lambda item: (len(item[1]), item[0]))


def chosen(given, merged):
    """The inputs with a name that a person has given, then the shortest of the merged ones, up to the limits."""
    inputs, total = dict(given), sum(map(len, given.values()))
    for name, data in shortest_first(merged):
        if len(inputs) < FILES_MAX and total + len(data) <= BYTES_MAX:
            inputs[name], total = data, total + len(data)
    return inputs


def keep(build, name, seeds):
    """Of seeds, the committed corpus and what has been found: the few that reach all that is reached, shortest first.
    Inputs with a name a person has given stay."""
    folder, grown = committed(build, name), build / "corpus" / name
    for place in (grown, seeds / name):
        place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as merged:
        n_bytes = max(TARGETS.get(name, (1024, None))[0], 4096)
        subprocess.run([program(build, name), "-set_cover_merge=1", f"-max_len={n_bytes}", merged, str(folder),
                        str(seeds / name), str(grown)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        given = {k: v for k, v in archive.from_folder(folder).items() if not re.fullmatch(r"[0-9a-f]{40}", k)}
        inputs = chosen(given, archive.from_folder(merged))
    written = archive.write(archive.path_of(name), inputs)
    print(f"corpus {name}: {len(inputs)} inputs, {sum(map(len, inputs.values()))} bytes{'' if written else ', as before'}",
          flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/fuzz")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(names(asked.build))
    if unknown:
        sys.exit(f"no fuzz target {', '.join(sorted(unknown))}; there are: {', '.join(names(asked.build))}")
    targets = asked.names or names(asked.build)
    if asked.keep:
        with tempfile.TemporaryDirectory() as seeds:
            subprocess.run([sys.executable, ROOT / "tests/fuzz/seeds.py", seeds], check=True)
            for name in targets:
                keep(asked.build, name, pathlib.Path(seeds))
        return
    limit = f"-runs={asked.runs}" if asked.runs else f"-max_total_time={asked.seconds}"
    rows = []
    for name in targets:
        rows.append(run(asked.build, name, limit))
        print_row(rows[-1])
    (asked.json or asked.build / "fuzz.json").write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(any(row["new_crashes"] for row in rows))

if __name__ == "__main__":
    main()
