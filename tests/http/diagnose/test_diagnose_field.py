"""Tensors that public code computed (../../field): how many of the known half /diagnose explains may not fall. Nothing is asked of the half
that is aside; `score.py` prints the score of both."""
import sys

from conftest import ROOT, SANITIZED

sys.path.append(str(ROOT / "tests/field"))
import score  # noqa: E402
import store  # noqa: E402

# Questions of each kind, and how many of them may be answered wrongly. Fewer is better: then this table follows.
QUESTIONS = {"found": (79, 0), "right": (137, 0), "wrong": (1009, 1)}


def test_the_score_does_not_fall(session_server):
    """And no wrong belief is accepted. All in one test, since the answers are 40 s of the server's processor; under sanitizers, which are ten
    times slower, of a part of the rows."""
    answers = score.score(session_server.url, store.rows("known")[::8 if SANITIZED else 1])
    for kind, (n, wrong) in QUESTIONS.items():
        asked = [answer for answer in answers if answer.kind == kind]
        bad = [answer for answer in asked if not answer.good]
        assert len(asked) == n or SANITIZED
        assert len(bad) <= wrong, "\n".join(score.failures(bad))
    accepted = [answer for answer in answers if answer.kind == "wrong" and answer.fits]
    assert not accepted, "\n".join(score.failures(accepted))
