"""Stored weights for the tests: files, PUT, and a server that starts and ends without any."""
import contextlib
import hashlib
import os
import subprocess

import numpy as np
import pytest

import safetensors_reader

RNG = np.random.default_rng(11)
TABLE = RNG.normal(size=(32, 2)).astype("f4")
OTHER = RNG.normal(size=(32, 2)).astype("f4")
T5 = {"scheme": "t5", "num_heads": 2, "len": 9, "format": "raw"}
HF = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"


def file(metadata=None, **tensors):
    return safetensors_reader.dumps(tensors, metadata)


def tag(body):
    return '"' + hashlib.sha256(body).hexdigest() + '"'


def put(server, name, body, status=201, **headers):
    answer = server.request("PUT", "/weights/" + name, body, {k.replace("_", "-"): v for k, v in headers.items()})
    assert answer.status == status, answer
    return answer


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of this size there."""
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("cannot mount")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def clean(server):
    """The session's server, without weights before and after."""
    def clear():
        for entry in server.get("/weights").json()["weights"]:
            assert server.request("DELETE", "/weights/" + entry["name"]).status == 204
    clear()
    yield server
    clear()
