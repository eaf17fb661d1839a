"""A padded batch before /diagnose: rows of padding are not compared, and wrong positions are named by what the code did."""
import itertools
import json

import numpy as np
import pytest

import truth
import safetensors_reader
from diagnosing import diagnose
from tensors import multipart, npy, rotate_files

N, WIDTH = 24, 32
LEFT = np.array([[0] * 7 + [1] * 17, [0] * 2 + [1] * 22, [1] * 24])
EQUAL = np.array([[0] * 4 + [1] * 20] * 3)
BELIEF = {"scheme": "rope", "layout": "half"}


def by_tokens(mask, pad=1):
    return np.where(mask == 1, mask.cumsum(-1) - 1, pad)


def by_columns(mask):
    return np.arange(mask.shape[1]) + 0 * mask


def heads(seed=0):
    return np.random.default_rng(seed).standard_normal((3, 2, N, WIDTH)).astype("f4")


def turned(q, positions, base=10000.0, layout="half"):
    angle = positions[:, None, :, None] * base ** (-np.arange(0, WIDTH, 2) / WIDTH)
    return truth.turned(q, angle, layout).astype("f4")


def asked(server, q, out, mask, **fields):
    return diagnose(server, *multipart(request=json.dumps({**BELIEF, **fields}), q=npy(q), q_out=npy(out), attention_mask=npy(mask)))


def codes(answer):
    return [finding["code"] for finding in answer["findings"]]


@pytest.mark.parametrize("pad", [1, 0, -5])
def test_what_is_right_passes_whatever_padding_holds(server, pad):
    q = heads()
    out = turned(q, by_tokens(LEFT, pad))
    answer = asked(server, q, out, LEFT)
    assert codes(answer) == ["as_believed"] and answer["explained"]
    assert answer["candidates"][0]["sequence"] == {"attention_mask": LEFT.tolist(), "padding": "skipped", "pad_position": 1}
    out[0, :, :7] = 1e8  # as nothing says what is there
    assert codes(asked(server, q, out, LEFT)) == ["as_believed"]
    assert codes(asked(server, q, turned(q, by_columns(LEFT)), LEFT, padding="counted")) == ["as_believed"]
    out[1, 0, 2, 3] += 1e-3  # a token's number, beside padding of 1e8
    assert codes(asked(server, q, out, LEFT)) == ["unexplained"]


def test_left_padding_with_positions_from_0(server):
    """The oldest mistake of batched generation, in one line."""
    q = heads()
    answer = asked(server, q, turned(q, by_columns(LEFT)), LEFT)
    first = answer["findings"][0]
    assert codes(answer) == ["padding_counted"] and first["pointer"] == "/padding" and (first["found"], first["believed"]) == ("counted", "skipped")
    assert "position_ids must follow attention_mask" in first["detail"] and first["detail_zh"] != first["detail"]
    assert [other["codes"] for other in answer["candidates"][0]["also"]] == [["offsets_by_row"]]
    check_back(server, answer, q, turned(q, by_columns(LEFT)), LEFT)


def check_back(server, answer, q, out, mask):
    """The candidate, sent to /rotate, gives the tokens' numbers."""
    best = answer["candidates"][0]
    config = {name: value for name, value in best["config"].items() if name != "form"}
    again = rotate_files(server, {**config, **best["sequence"]}, q=q)["q"]
    tokens = np.broadcast_to(mask[:, None, :] == 1, q.shape[:3])
    assert np.abs(again - out)[tokens].max() < 1e-5


@pytest.mark.parametrize("wrong, fields, expected", [
    ({"positions": by_columns(EQUAL)}, {}, ["padding_counted"]), ({"positions": by_tokens(LEFT)}, {"padding": "counted"}, ["padding_skipped"]),
    ({"positions": by_tokens(LEFT[:, ::-1])}, {}, ["padding_side"]), ({"positions": by_tokens(LEFT) + 1}, {}, ["off_by_one"]),
    ({"positions": by_columns(LEFT) + [[9], [0], [30]]}, {}, ["offsets_by_row"]), ({"positions": by_tokens(LEFT), "base": 500000.0}, {}, ["base_other"]),
    ({"positions": by_tokens(LEFT), "layout": "interleaved"}, {}, ["layout_swapped"]),
    ({"positions": by_columns(LEFT), "base": 500000.0}, {}, ["padding_counted", "base_other"]),
    ({"positions": by_columns(LEFT), "layout": "interleaved"}, {}, ["layout_swapped", "padding_counted"])])
def test_what_is_wrong_is_named(server, wrong, fields, expected):
    q, mask = heads(), EQUAL if expected == ["padding_counted"] and not fields else LEFT
    out = turned(q, **wrong)
    answer = asked(server, q, out, mask, **fields)
    assert codes(answer) == expected, answer["findings"]
    check_back(server, answer, q, out, mask)


def test_no_wrong_positions_pass(server):
    """Each rule against each other, on each mask where tokens differ."""
    q = heads()
    rules = {"skipped": by_tokens, "counted": by_columns, "mirrored": lambda mask: by_tokens(mask[:, ::-1]), "rolled": lambda mask: np.roll(by_tokens(mask), 1, 0)}
    for mask, (name, rule), believed in itertools.product((LEFT, EQUAL, LEFT[:, ::-1].copy()), rules.items(), ("skipped", "counted")):
        right, found = rules[believed](mask), rule(mask)
        answer = asked(server, q, turned(q, found), mask, padding=believed)
        assert (codes(answer) == ["as_believed"]) == np.array_equal(found[mask == 1], right[mask == 1]), (name, believed, answer["findings"])


def test_keys_and_both_sides(server):
    q, k = heads(), heads(3)[:, :1]
    request = {**BELIEF, "attention_mask": LEFT.tolist()}
    tensors = {"q": q, "q_out": turned(q, by_tokens(LEFT)), "k": k, "k_out": turned(k, by_columns(LEFT))}
    body = safetensors_reader.dumps(tensors, {"request": json.dumps(request)})
    answer = diagnose(server, body, {"Content-Type": "application/vnd.safetensors"})
    assert answer["sides"]["q"]["codes"] == [] and answer["sides"]["k"]["codes"] == ["padding_counted"] and codes(answer)[-1] == "sides_differ"


def test_a_vector_for_the_whole_batch(server):
    q = heads()
    answer = asked(server, q, turned(q, by_tokens(EQUAL)), EQUAL[0])
    assert codes(answer) == ["as_believed"]
    assert codes(asked(server, q, turned(q, by_columns(EQUAL)), EQUAL[0])) == ["padding_counted"]


@pytest.mark.parametrize("fields, pointer, words", [
    ({"attention_mask": (LEFT * 0).tolist()}, "/attention_mask", "every column is padding"), ({"attention_mask": LEFT[:, 1:].tolist()}, "/attention_mask", "[3,23,32]"),
    ({"attention_mask": LEFT.tolist(), "positions": [0] * N}, "/attention_mask", "leave it or positions out"), ({"attention_mask": LEFT[:2].tolist()}, "/attention_mask", "[2,24,32]"),
    ({"attention_mask": LEFT.tolist(), "len": 5}, "/len", "24 columns"), ({"attention_mask": LEFT.tolist(), "positions_layout": "batch"}, "/positions_layout", "needs positions")])
def test_refusals(server, fields, pointer, words):
    q = heads()
    answer = server.post("/diagnose", {**BELIEF, "q": q.tolist(), "q_out": q.tolist(), **fields})
    assert answer.status == 422 and answer.json()["pointer"] == pointer and words in answer.json()["detail"], answer
