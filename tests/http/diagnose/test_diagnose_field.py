"""Tensors that public code computed (../../field): how many of the known half /diagnose explains may not fall. Nothing is asked of the half
that is aside; `score.py` prints the score of both."""
import sys

import pytest

from conftest import ROOT, SANITIZED

sys.path.append(str(ROOT / "tests/field"))
import score  # noqa: E402
import store  # noqa: E402

# Questions of each kind, and how many of them may be answered wrongly. Fewer is better: then this table follows.
QUESTIONS = {"found": (79, 0), "right": (139, 0), "wrong": (1017, 1)}


@pytest.fixture(scope="module")
def answers(session_server):
    """All, in 40 s of the server's processor; under sanitizers, which are ten times slower, a part of the rows."""
    return score.score(session_server.url, store.rows("known")[::8 if SANITIZED else 1])


@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_score_does_not_fall(answers, kind):
    asked = [answer for answer in answers if answer.kind == kind]
    bad = [answer for answer in asked if not answer.good]
    assert len(asked) == QUESTIONS[kind][0] or SANITIZED
    assert len(bad) <= QUESTIONS[kind][1], "\n".join(score.failures(bad))


def test_no_wrong_belief_is_accepted(answers):
    accepted = [answer for answer in answers if answer.kind == "wrong" and answer.fits]
    assert not accepted, "\n".join(score.failures(accepted))
