"""attention_mask of /rotate: the positions of a padded batch, against those of transformers' rule in NumPy, and refusals."""
import numpy as np
import pytest

import truth
from tensors import rotate_files

MASK = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def by_tokens(mask, pad=1, offset=0):
    """As transformers: position_ids = mask.cumsum(-1) - 1, masked_fill_(mask == 0, 1)."""
    return np.where(mask == 1, mask.cumsum(-1) - 1 + offset, pad)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


@pytest.mark.parametrize("dtype", ["i8", "u1", "?", "f4"])
@pytest.mark.parametrize("fields, positions", [
    ({}, by_tokens(MASK)), ({"padding": "skipped", "pad_position": -3}, by_tokens(MASK, -3)), ({"offset": 7}, by_tokens(MASK, offset=7)),
    ({"padding": "counted"}, np.arange(5) + 0 * MASK), ({"padding": "counted", "offset": 2, "len": 5}, np.arange(5) + 2 + 0 * MASK)])
def test_positions(server, fields, positions, dtype):
    q, k = drawn(3, 4, 5, 8), drawn(3, 1, 5, 8, seed=1)
    found = rotate_files(server, {"scheme": "rope", "layout": "half", **fields}, q=q, k=k, attention_mask=MASK.astype(dtype))
    for name, x in (("q", q), ("k", k)):
        right = np.stack([truth.rotate(row, p, layout="half") for row, p in zip(x, positions)])
        assert np.abs(found[name] - right).max() < 1e-6


def test_one_mask_for_all(server):
    q = drawn(3, 2, 5, 8)
    found = rotate_files(server, {"scheme": "rope", "layout": "half", "attention_mask": MASK[0].tolist()}, q=q)["q"]
    assert np.abs(found - truth.rotate(q, by_tokens(MASK)[0], layout="half")).max() < 1e-6
    again = rotate_files(server, {"scheme": "rope", "layout": "half", "attention_mask": MASK[:1].tolist()}, q=q)["q"]
    assert again.tobytes() == found.tobytes()


@pytest.mark.parametrize("fields, pointer, words", [
    ({"attention_mask": [[0, 2, 1]] * 2}, "/attention_mask", "2"), ({"attention_mask": [[0, 0.5, 1]] * 2}, "/attention_mask", "0 and 1"),
    ({"attention_mask": [[0, 0, 0]] * 2}, "/attention_mask", "every column is padding"), ({"attention_mask": [[1, 1]] * 2}, "/attention_mask", "q has 3 positions"),
    ({"attention_mask": [[1, 1, 1]] * 3}, "/attention_mask", "3 lists, but q has a batch of 2"), ({"attention_mask": [1, 1, 1], "len": 4}, "/len", "3 columns"),
    ({"attention_mask": [1, 1, 1], "positions": [0, 1, 2]}, "/attention_mask", "leave it or positions out"),
    ({"attention_mask": [1, 1, 1], "positions_layout": "batch"}, "/positions_layout", "needs positions"),
    ({"padding": "counted"}, "/padding", "needs attention_mask"), ({"pad_position": 0}, "/pad_position", "needs attention_mask"),
    ({"attention_mask": [1, 1, 1], "padding": "left"}, "/padding", "skipped")])
def test_refusals(server, fields, pointer, words):
    answer = server.post("/rotate", {"scheme": "rope", "q": drawn(2, 2, 3, 4).tolist(), **fields})
    problem = answer.json()
    assert answer.status == 422 and problem["pointer"] == pointer, problem
    assert words in problem["detail"], problem
