"""What a store of --store or its cache says, and is not so: lists that break off, conditions that nothing obeys, another store's names."""
import contextlib
import json
import os
import re
import subprocess
import threading
import time

import pytest

from conftest import POSENCD, SANITIZED, start_server
from s3_store import S3Store
from test_store_s3 import figure, names, on, sha, within
from weights_asking import OTHER, T5, TABLE, file, put, tag

BODY, LATER = file(table=TABLE), file(table=OTHER)


@pytest.fixture
def s3():
    with S3Store() as store:
        yield store


# ---- Half a list ----------------------------------------------------------------------------------------------------------------

def test_half_a_list_is_not_believed(s3):
    """What a server knows stays, and the log says why."""
    with on(s3) as a:
        for i in range(4):
            put(a, f"w{i}", file(table=TABLE + i))
    with on(s3) as b:
        within(10, lambda: len(names(b)) == 4)
        s3.fault(path="names%2F", bare=1, cut=300)
        n_lists = len([1 for method, path in s3.seen if (method, path) == ("GET", "/weights")])
        within(10, lambda: len([1 for method, path in s3.seen if (method, path) == ("GET", "/weights")]) > n_lists + 4)
        assert names(b) == ["w0", "w1", "w2", "w3"] and b.get("/weights/w3").status == 200
        within(5, lambda: "its list is not whole" in b.stderr_text())
        s3.heal()
        s3.objects.pop("team/a/names/w0")
        within(10, lambda: names(b) == ["w1", "w2", "w3"])


# ---- Conditions -----------------------------------------------------------------------------------------------------------------

def probes(s3):
    return [each for each in s3.seen if "_probe" in each[1]]


def test_a_store_that_ignores_conditions(s3):
    """Guarded changes are refused, because nothing would guard them; the others work. It is asked once, and nothing is left there."""
    s3.ignored = {"If-Match", "If-None-Match"}
    with on(s3) as a:
        assert not probes(s3)  # not at the start
        put(a, "t", BODY)
        assert not probes(s3)
        for _ in range(3):
            assert "conditional" in put(a, "u", BODY, 501, If_None_Match="*").json()["detail"]
            put(a, "t", LATER, 501, If_Match=tag(BODY))
        assert a.request("DELETE", "/weights/t", headers={"If-Match": tag(BODY)}).status == 501
        put(a, "t", LATER, 412, If_None_Match="*")  # what is known to fail needs no condition
        assert [method for method, _ in probes(s3)] == ["PUT", "PUT", "PUT", "DELETE"]
        assert not [key for key in s3.objects if "probe" in key]
        assert a.stderr_text().count("ignores the condition") == 2
        preset = json.dumps({"config": {"scheme": "rope"}}).encode()
        assert a.request("PUT", "/presets/p", preset, {"If-None-Match": "*", "Content-Type": "application/json"}).status == 501
        put(a, "t", LATER, 200)
        assert len(probes(s3)) == 4 and names(a) == ["t"] and a.request("DELETE", "/weights/t").status == 204


@pytest.mark.parametrize("ignored, statuses", [("If-Match", (201, 501)), ("If-None-Match", (501, 200))])
def test_one_condition_is_ignored(s3, ignored, statuses):
    s3.ignored = {ignored}
    with on(s3) as a:
        put(a, "t", BODY)
        put(a, "u", BODY, statuses[0], If_None_Match="*")
        put(a, "t", LATER, statuses[1], If_Match=tag(BODY))
        assert a.stderr_text().count("ignores the condition") == 1 and f"condition {ignored} of" in a.stderr_text()


def test_a_probe_that_fails_is_made_again(s3):
    with on(s3) as a:
        s3.fault(path="_probe", method="PUT", status=403, code="AccessDenied")
        assert put(a, "t", BODY, 503, If_None_Match="*").headers["Retry-After"]
        assert not [key for key in s3.objects if "probe" in key or "/names/" in key]
        s3.heal()
        put(a, "t", BODY, 201, If_None_Match="*")
        n_probes = len(probes(s3))
        put(a, "t", LATER, 200, If_Match=tag(BODY))
        assert len(probes(s3)) == n_probes and "ignores" not in a.stderr_text()
        assert not [key for key in s3.objects if "probe" in key]


def test_a_probe_is_in_no_list(s3):
    with on(s3) as a, on(s3) as b:
        s3.fault(path="_probe", method="DELETE", status=403, code="AccessDenied")
        put(a, "t", BODY, 201, If_None_Match="*")
        assert [key for key in s3.objects if "probe" in key]
        within(10, lambda: names(b) == ["t"])
        assert "cannot be removed" in a.stderr_text() and "probe" not in b.stderr_text()
