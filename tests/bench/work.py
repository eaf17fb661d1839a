"""A row about --max-analysis: how far processor time is from the work that a refusal states, over schemes, metrics and evidence."""
import contextlib
import pathlib
import statistics
import sys

import peers
from rows import alone, law, row

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "http"))

import stated_work  # noqa: E402


@row("stated_work", "CPU for each multiply-add stated by /analyze and /diagnose: farthest from the median, times", law(1, 10))
def farthest(run):
    """The median over the rounds of the farthest case: one slow moment of the machine is not the law's fault."""
    @contextlib.contextmanager
    def allowing(limit):
        flags = "--max-analysis", str(limit), "--workers", "1", "--answer-cache", "0"
        with peers.Posencd(f"{run.build}/posencd", *flags) as server:
            yield server.pids[0], server.url

    apart, worst = [], ""
    with allowing(1) as (_, refusing):
        for _ in range(run.rounds(3, 1)):
            found = stated_work.ratios(refusing, allowing, 1024)
            median = statistics.median(found.values())
            far = {name: max(ratio / median, median / ratio) for name, ratio in found.items()}
            worst = max(far, key=far.get)
            apart.append(far[worst])
    return alone(apart, "times", note=f"farthest: {worst}; median {median:.2f} ns a multiply-add")
