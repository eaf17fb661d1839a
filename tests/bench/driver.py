"""Goes through rows in order and keeps what the report needs of each, whatever happens to it."""
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import time
import urllib.request

import peers
import report
import rows
import table  # noqa: F401 (adds every row)

PAIRS = 9  # of samples of this commit and of an earlier one


def in_pairs(row, new, old):
    """One sample of each side after the other; which is first alternates."""
    samples = {new: [], old: []}
    for i in range(PAIRS):
        for run in (new, old) if i % 2 else (old, new):
            run.pair = i
            outcome = row.measure(run)
            samples[run].append(statistics.median(outcome.ours))
    return rows.Outcome(samples[new], samples[old], outcome.unit, old.earlier, outcome.is_cost)


def measured(row, new, old, end):
    """What the report keeps of a row. old: the run of an earlier commit, or None."""
    sort, needs = (rows.COMMIT, peers.for_ours(row.needs)) if old else (row.sort, row.needs)
    why = "the time of the whole bench was up" if time.monotonic() > end else peers.missing(needs)
    if not old and sort == rows.COMMIT:
        why = "only make bench-against REV=… measures it"
    if why:
        return report.unmeasured(row, sort, report.SKIPPED, why)
    try:
        return report.judged(row, sort, in_pairs(row, new, old) if old else row.measure(new))
    except rows.Skip as skip:
        return report.unmeasured(row, sort, report.SKIPPED, str(skip))
    except Exception as error:  # one row that fails must not cost the others
        return report.unmeasured(row, sort, report.FAILED, f"{type(error).__name__}: {error}")


def measure_all(chosen, minutes, new, old=None):
    """Rows in order; the peers of a group end with it, so that no group runs beside another's servers."""
    end, results = time.monotonic() + 60 * minutes, []
    for i, row in enumerate(chosen):
        results.append(measured(row, new, old, end))
        print(report.line(results[-1]), flush=True)
        if i + 1 == len(chosen) or chosen[i + 1].group != row.group:
            for run in filter(None, (new, old)):
                run.end_peers()
    return results


def chosen_rows(names, quick, against):
    if names:
        return [r for r in rows.ALL if r.name in names or r.group in names]
    return [r for r in rows.ALL if (r.quick or not quick) and (r.sort != rows.COMMIT or against)]


def isa_of(run):
    server = run.posencd()
    with urllib.request.urlopen(f"{server.url}/version", timeout=10) as reply:
        return json.load(reply)["isa"]


@contextlib.contextmanager
def built(revision, build):
    """An earlier commit in a git worktree, for as long as the block: its build folder. make's flags are in the environment."""
    folder = f"{build}/against"
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    subprocess.run(["git", "worktree", "add", "--force", "--quiet", "--detach", folder, revision], check=True)
    try:
        print(f"building {revision} in {folder}", flush=True)
        subprocess.run(["make", f"-j{os.cpu_count()}", "-C", folder, "BUILD=build", "all", "programs"], check=True, stdout=subprocess.DEVNULL)
        yield f"{folder}/build"
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", folder], check=True)
