"""Goes through rows in order and keeps what the report says of each, whatever happens to it."""
import json
import sys
import time
import urllib.request

import peers
import report
import rows

import core, attention, analysis, text, small, large, diagnosis, work, experiment, frameworks  # noqa: E401, F401 (each adds its rows, in this order)

MINUTES = {False: 19, True: 1.8}  # of all rows together; what comes later is skipped


def measured(run, row, isa, end):
    """What the report keeps of a row, whatever happens to it."""
    if time.monotonic() > end:
        return report.unmeasured(row, isa, report.SKIPPED, "the time of the whole bench was up")
    why = peers.missing(row.needs)
    if why:
        return report.unmeasured(row, isa, report.SKIPPED, why)
    try:
        return report.judged(row, row.measure(run), isa)
    except rows.Skip as skip:
        return report.unmeasured(row, isa, report.SKIPPED, str(skip))
    except Exception as error:  # one row that fails must not cost the others
        return report.unmeasured(row, isa, report.FAILED, f"{type(error).__name__}: {error}")


def measure_all(run, chosen, isa, minutes):
    """Rows in order; the peers of a group end with it, so that no group runs beside another's servers."""
    end, results = time.monotonic() + 60 * minutes, []
    for i, row in enumerate(chosen):
        results.append(measured(run, row, isa, end))
        print(report.line(results[-1]), flush=True)
        if i + 1 == len(chosen) or chosen[i + 1].group != row.group:
            run.end_peers()
    return results


def chosen_rows(names, quick):
    known = {r.name for r in rows.ALL} | {r.group for r in rows.ALL}
    for name in names:
        if name not in known:
            sys.exit(f"bench: no row or group {name!r}; --list names them")
    if names:
        return [r for r in rows.ALL if r.name in names or r.group in names]
    return [r for r in rows.ALL if r.quick or not quick]


def isa_of(run):
    server = run.posencd()
    with urllib.request.urlopen(f"{server.url}/version", timeout=10) as reply:
        return json.load(reply)["isa"]
