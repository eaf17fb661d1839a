"""Golden answers: tests/golden/ holds requests with tensors from an independent implementation, and refused requests
with their texts."""
import json
import pathlib

import numpy as np
import pytest

from tensors import from_raw

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
ANSWERED = sorted(p.parent for p in GOLDEN.glob("*/*/request.json") if p.parent.parent.name != "refused")
REFUSED = sorted(p.parent for p in GOLDEN.glob("refused/*/request.json"))


def name_of(folder):  # of pytest's ids, which also asks for a case when there is none
    return "/".join(folder.parts[-2:]) if isinstance(folder, pathlib.Path) else None


@pytest.mark.parametrize("folder", ANSWERED, ids=name_of)
def test_answered(server, folder):
    request = json.loads((folder / "request.json").read_text())
    path = request.pop("path", "/encode")
    tensors = from_raw(server.ask(path, **request, format="raw"))
    expected = {file.stem: np.load(file) for file in folder.glob("*.npy")}
    assert expected and set(tensors) == set(expected)
    for name, array in expected.items():
        assert tensors[name].dtype == array.dtype and tensors[name].shape == array.shape
        assert tensors[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("folder", REFUSED, ids=name_of)
def test_refused(server, folder):
    """The text is part of the contract with people: a change of it is to be seen in a review."""
    request = json.loads((folder / "request.json").read_text())
    response = server.post(request.pop("path", "/encode"), request)
    problem = response.json()
    got = f"{response.status} {problem.get('pointer', '')}\n{problem['detail']}\n"
    assert got == (folder / "expected.txt").read_text()


def test_there_are_golden_answers():
    assert len(ANSWERED) >= 10 and len(REFUSED) >= 5
