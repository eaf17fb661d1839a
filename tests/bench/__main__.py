"""The bench: every row of the table of speeds, ours beside a peer, a limit or an earlier commit of ours.

    python3 tests/bench [--quick] [--build build] [NAME or GROUP …]     measure
    python3 tests/bench --against COMMIT [NAME or GROUP …]              ours now and at that commit, in pairs
    python3 tests/bench --list                                          the rows' names

The exit status is 0 if nothing fell short, 1 if something did (behind a peer, slower than the commit), 2 if a row or the whole run failed.
All rows go to build/bench.json and build/bench.md, those of --quick to bench-quick, of --against to bench-against, named ones to bench-part:
the table of SPEEDS.md is of one whole run.
"""
import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin"  # where Debian keeps nginx

import driver  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
from measure import Run, output  # noqa: E402

MINUTES = {"bench": 19, "bench-part": 19, "bench-quick": 1.8, "bench-against": 25}  # of all rows; what would come later is skipped


def arguments():
    parser = argparse.ArgumentParser(prog="tests/bench", description="measures every row of the table of speeds")
    parser.add_argument("names", nargs="*", help="rows or groups (all)")
    parser.add_argument("--quick", action="store_true", help="a part of the rows, fewer rounds, under two minutes")
    parser.add_argument("--against", metavar="COMMIT", help="the rows of --quick, or the named ones, of this commit and of an earlier one")
    parser.add_argument("--build", default=os.environ.get("BUILD", "build"))
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    for name in set(options.names) - {r.name for r in rows.ALL} - {r.group for r in rows.ALL}:
        parser.error(f"no row or group {name!r}; --list names them")
    return options


def main():
    options = arguments()
    if options.list:
        print("\n".join(f"{r.group:11} {r.sort:6} {r.name:19} {r.what}" for r in rows.ALL))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that the peers are ended too
    quick, earlier = options.quick or bool(options.against), None
    stem = "bench-against" if options.against else "bench-part" if options.names else "bench-quick" if quick else "bench"
    chosen = driver.chosen_rows(options.names, quick, options.against)
    with contextlib.ExitStack() as stack:
        old = None
        if options.against:
            earlier = output(["git", "rev-parse", "--short", options.against + "^{commit}"]).strip()
            old = stack.enter_context(Run(stack.enter_context(driver.built(earlier, options.build)), quick, options.build, earlier))
        new = stack.enter_context(Run(options.build, quick, options.build, earlier))
        found = {"machine": report.machine(driver.isa_of(new)), "against": earlier, "rows": []}
        new.end_peers()
        found["rows"] = driver.measure_all(chosen, MINUTES[stem], new, old)
    report.write(f"{options.build}/{stem}", found)
    print(f"{options.build}/{stem}.json, {options.build}/{stem}.md\n{report.summary(found)}")
    return report.status(found)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"bench: {error}", getattr(error, "stderr", None) or "", file=sys.stderr)
        sys.exit(2)
