"""How often /diagnose names what was done to a tensor: every code over random configurations and dtypes, and pairs of faults of
different kinds. A case counts when the findings name the faults that were made (or others that give the same tensor: `names` of
wrong_tensors.py) and the first candidate, posted to /encode or /rotate, gives the tensor back. The table is always printed."""
import pytest

import diagnosing
from wrong_tensors import CODES, KIND_OF, draw, draw_pair, families

SEEDS = [range(1), pytest.param(range(1, 6), marks=pytest.mark.slow)]  # of each code
PAIRS = [range(24), pytest.param(range(24, 80), marks=pytest.mark.slow)]


def verdict_on(server, case):
    """None where the answer is right, else what is wrong with it."""
    response = server.post("/diagnose", case.body())
    if response.status != 200:
        return f"{response.status} {response.json()['detail']}"
    answer = response.json()
    found = {finding["code"] for finding in answer["findings"]}
    if not answer["explained"]:
        return "unexplained"
    told = (found & set(case.codes)) | diagnosing.named(answer)
    if not any(told == right for right in accepted(case)):
        return f"named {sorted(told)}"
    return diagnosing.unlike(server, answer["candidates"][0], case.tensors, case.wrong.tolerance)


def accepted(case):
    """Sets of codes."""
    return [{name} if isinstance(name, str) else set(name) for name in case.names]


def show(capsys, title, rows):
    with capsys.disabled():
        print(f"\n{title}")
        for name, right, total, first in rows:
            print(f"  {name:26} {right:3} of {total:3}  {first or ''}"[:220])


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_single_faults(server, capsys, seeds):
    rows = []
    for code in CODES:
        cases = [(seed, draw(code, seed, families(code)[seed % len(families(code))])) for seed in seeds]
        wrong = [(seed, reason) for seed, case in cases if (reason := verdict_on(server, case))]
        rows.append((code, len(seeds) - len(wrong), len(seeds), wrong[0] if wrong else None))
    show(capsys, "single faults named and reproduced", rows)
    assert all(right == total for _, right, total, _ in rows), [row for row in rows if row[1] < row[2]]


@pytest.mark.parametrize("seeds", PAIRS, ids=str)
def test_pairs_of_faults(server, capsys, seeds):
    counts, wrong = {}, []
    for seed in seeds:
        case = draw_pair(seed)
        reason = verdict_on(server, case)
        wrong += [(seed, case.codes, reason)] if reason else []
        for code in case.codes:
            right, total = counts.get(KIND_OF[code], (0, 0))
            counts[KIND_OF[code]] = (right + (not reason), total + 1)
    show(capsys, f"pairs named and reproduced, by kind: {len(seeds) - len(wrong)} of {len(seeds)}",
         [(kind, *count, next((w for w in wrong if kind in map(KIND_OF.get, w[1])), None)) for kind, count in counts.items()])
    assert len(wrong) <= 0.05 * len(seeds), wrong
