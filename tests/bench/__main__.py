"""The bench: every row of the table of speeds, ours beside a peer or a limit, judged by its floor.

    python3 tests/bench [--quick] [--build build] [NAME or GROUP …]     measure
    python3 tests/bench --list                                          the rows' names
    python3 tests/bench --render                                        build/bench.md out of build/bench.json

All rows go to build/bench.json and build/bench.md, those of --quick to bench-quick, named ones to bench-part: the
table of SPEEDS.md is of one whole run.
"""
import argparse
import os
import pathlib
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin"  # where Debian keeps nginx

import driver  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
from measure import Run  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(prog="tests/bench", description="measures every row of the table of speeds")
    parser.add_argument("names", nargs="*", help="rows or groups (all)")
    parser.add_argument("--quick", action="store_true", help="a part of the rows, fewer rounds, under two minutes")
    parser.add_argument("--build", default=os.environ.get("BUILD", "build"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--render", action="store_true")
    return parser.parse_args()


def main():
    options = arguments()
    if options.list:
        print("\n".join(f"{r.group:11} {r.name:19} {r.what}" for r in rows.ALL))
        return 0
    if options.render:
        report.render(f"{options.build}/bench")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended"))  # so that the peers are ended too
    chosen = driver.chosen_rows(options.names, options.quick)
    run = Run(options.build, options.quick)
    try:
        isa = driver.isa_of(run)
        found = {"machine": report.machine(isa), "quick": options.quick, "rows": []}
        run.end_peers()
        found["rows"] = driver.measure_all(run, chosen, isa, driver.MINUTES[options.quick])
    finally:
        run.end_peers()
    stem = f"{options.build}/bench{'-part' if options.names else '-quick' if options.quick else ''}"
    report.write(stem, found)
    print(f"{report.count(found)}; {stem}.json, {stem}.md")
    return any(r["verdict"] == report.FAILED for r in found["rows"])


if __name__ == "__main__":
    sys.exit(main())
