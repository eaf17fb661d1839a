"""Rows of /experiments: one decoder trained for 600 steps and evaluated, beside the same decoder in PyTorch (peer_training.py), which
gets its sequences ready made. Processor time of the server, and of this process; one thread each."""
import functools
import json
import time

from diagnosis import cpu_of, post
from rows import PEER, row, times

ASKED = {"task": "local", "steps": 600, "train_len": 128, "eval_len": 256, "seed": 0}
NEEDS = ["numpy", "mpmath", "torch"]
LOSS = 1e-3  # the same decoder differs by 3e-7 in its first 20 losses


def ours(server, scheme, losses):
    """Seconds of one run; losses becomes {step: loss} of those that are reported."""
    def ask():
        answer = post(server, "/experiments", json.dumps({**ASKED, "configs": [{"scheme": scheme}]}).encode())
        events = [json.loads(line) for line in answer.splitlines()]
        assert events[-1]["event"] == "done", events[-1]
        losses.update((event["step"], event["loss"]) for event in events if event["event"] == "progress")
    return cpu_of(server, 1, ask)[0] / 1e3


def theirs(peer, losses):
    begun = time.process_time()
    losses[:], _ = peer.run()
    return time.process_time() - begun


def check_same(reported, losses):
    """Both train the same decoder if they begin alike; later, the last bits are amplified."""
    apart = {step: abs(reported[step] - losses[step - 1]) for step in (1, 10, 20)}
    if max(apart.values()) > LOSS:
        raise RuntimeError(f"the peer trains another decoder: its losses differ by {apart}")


def of_torch(run, scheme):
    server, reported, losses = run.posencd(), {}, []

    @functools.cache
    def peer():
        from peer_training import Training
        return Training(scheme, **ASKED)

    both = run.turns(3, lambda: ours(server, scheme, reported), theirs=lambda: theirs(peer(), losses))
    if losses:
        check_same(reported, losses)
    return times(*both, "torch")


@row("experiment_alibi", "600 steps of /experiments under ALiBi, against torch", PEER, NEEDS)
def experiment_alibi(run):
    return of_torch(run, "alibi")


@row("experiment_rope", "600 steps of /experiments under RoPE, against torch", PEER, NEEDS)
def experiment_rope(run):
    return of_torch(run, "rope")
