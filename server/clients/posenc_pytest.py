"""posenc in the tests of a port, a plugin of pytest: a fixture whose functions know the model that a test is about.

    @pytest.mark.preset("gemma-3-27b")
    @pytest.mark.layer_type("sliding_attention")
    def test_rope(posenc):
        posenc.check(q=q, q_out=my_rope(q))

The functions are those of posenc.py, in process unless POSENC_URL names a service. A mark of a class or module holds for its
tests; a field of the call wins.
"""
import functools

import pytest

import posenc as module

MARKS = {"preset": "the model that the functions of the fixture posenc take", "layer_type": "the kind of its layers"}
OF_A_MODEL = {"encode", "rotate", "attention", "diagnose", "check", "golden", "assert_matches", "probe"}


class Posenc:
    """The functions of posenc.py with the fields of a test's marks."""

    def __init__(self, **belief):
        self.belief = belief

    def __getattr__(self, name):
        found = getattr(module, name)
        return functools.partial(found, **self.belief) if name in OF_A_MODEL else found


def pytest_configure(config):
    for name, means in MARKS.items():
        config.addinivalue_line("markers", f"{name}(name): {means}")


@pytest.fixture
def posenc(request):
    marks = {name: request.node.get_closest_marker(name) for name in MARKS}
    return Posenc(**{name: mark.args[0] for name, mark in marks.items() if mark})
