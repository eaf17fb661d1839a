"""Tensors that public code computed (../../field): how many of the known half /diagnose explains may not fall. Nothing is asked of the half
that is aside; `score.py` prints the score of both."""
import sys

import pytest

from conftest import ROOT, SANITIZED

sys.path.append(str(ROOT / "tests/field"))
import score  # noqa: E402
import store  # noqa: E402

# Questions of each kind, and how many of them may be answered wrongly. Fewer is better: then this table follows.
QUESTIONS = {"found": (79, 0), "right": (137, 0)}
WRONG = {1: (1009, 1), 3: (333, 1)}


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_the_score_does_not_fall(session_server, every):
    """And no wrong belief is accepted: of each row every third, another one in each row, and in `make test-slow` all, whose answers are 40 s of
    the server's processor; under sanitizers, which are ten times slower, of a part of the rows."""
    rows = [{**row, "wrong": row["wrong"][i % every::every]} for i, row in enumerate(store.rows("known"))]
    answers = score.score(session_server.url, rows[::8 if SANITIZED else 1])
    for kind, (n, wrong) in {**QUESTIONS, "wrong": WRONG[every]}.items():
        asked = [answer for answer in answers if answer.kind == kind]
        bad = [answer for answer in asked if not answer.good]
        assert len(asked) == n or SANITIZED
        assert len(bad) <= wrong, "\n".join(score.failures(bad))
    accepted = [answer for answer in answers if answer.kind == "wrong" and answer.fits]
    assert not accepted, "\n".join(score.failures(accepted))
