"""/diagnose where no mistake explains a tensor: what was done to the numbers of the configuration is measured and stated. Every tensor is made
here by NumPy in float64, from the papers' formulas, and then changed by one line."""
import numpy as np
import pytest

from diagnosing import ask, codes_of, finding

F = np.float32
N, D, H = 16, 64, 4
SLOPES = 2.0 ** -np.arange(1, 9)
BY = np.arange(N)[:, None] - np.arange(N)  # query less key
SINUSOID, ALIBI = {"scheme": "sinusoidal", "dim": D, "len": N}, {"scheme": "alibi", "num_heads": 8, "len": N, "causal": True}
ROPE = {"scheme": "rope", "head_dim": D, "layout": "half"}
CAUSAL = {**ROPE, "causal": True}


def angles(n=N):
    return np.outer(np.arange(n), 1e4 ** (-np.arange(0, D, 2) / D))


def sinusoid(n=N):
    return np.stack([np.sin(angles(n)), np.cos(angles(n))], -1).reshape(n, D)


def rotated(q, direction=1):
    c, s = np.cos(angles()), direction * np.sin(angles())
    a, b = q[..., :D // 2], q[..., D // 2:]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def drawn(seed):
    return np.random.default_rng(seed).standard_normal((1, H, N, D)).astype(F)


Q, K = drawn(6), drawn(7)
SCORES = np.einsum("bhid,bhjd->bhij", rotated(Q), rotated(K)) / 8


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def in_place(q):
    """The second channel reads the first one after it was written."""
    c, s = np.cos(angles()), np.sin(angles())
    a, b = q[..., :D // 2], q[..., D // 2:]
    first = a * c - b * s
    return np.concatenate([first, first * s + b * c], -1)


def decaying(x, share=0.25):
    out = x.copy()
    for i in range(1, len(x)):
        out[i] = share * x[i] + (1 - share) * out[i - 1]
    return out


def tables_of(a):
    return {"cos": np.cos(a), "sin": np.sin(a)}


def buckets_of(rounding):
    """T5's, whose logarithm is rounded by this in place of down."""
    n = np.abs(np.arange(64)[:, None] - np.arange(64))
    far = np.minimum(8 + rounding(np.log(np.maximum(n, 1) / 8) / np.log(128 / 8) * 8).astype(int), 15)
    return np.where(n < 8, n, far) + 16 * (np.arange(64)[:, None] < np.arange(64))


def biases(change, sees=BY >= 0):
    return np.where(sees, -SLOPES[:, None, None] * change(np.abs(BY)), -np.inf)


def normal(x, axis):
    return (x - x.mean(axis, keepdims=True)) / x.std(axis, keepdims=True)


def of_q(out):
    return {"q": Q, "q_out": out}


def maps(name, x):
    return {"q": Q, "k": K, name: x}


def where(sees):
    return np.where(sees, SCORES, -np.inf)


PE, OUT = sinusoid(), rotated(Q)
GAIN = np.random.default_rng(8).uniform(0.5, 2, D)
LONG = np.random.default_rng(9).standard_normal((1, 3 * H, N, D)).astype(F)
TURN = np.linalg.qr(np.random.default_rng(10).standard_normal((D, D)))[0]
MASKS = {"j-i <= 1": BY >= -1, "j-i >= 1": BY < 0, "j-i <= 0 or j < 4": (BY >= 0) | (np.arange(N) < 4), "-2 <= j-i <= 1": (BY >= -1) & (BY <= 2),
         "j-i <= -1 or j < 1": (BY > 0) | (np.arange(N) < 1)}
# What is believed, what is sent, and a part of the sentence; `found.rule`, or `found.first`, is in it where there is one.
CHANGES = {
    "absolute": (SINUSOID, {"encoding": np.abs(PE)}, "Every number is |x|,"),
    "squared": (SINUSOID, {"encoding": PE ** 2}, "Every number is x²,"),
    "through-tanh": (SINUSOID, {"encoding": np.tanh(PE)}, "Every number is tanh(x),"),
    "affine": (SINUSOID, {"encoding": PE / 2 + 0.25}, "Every number is 0.5*x+0.25,"),
    "layer-norm": (SINUSOID, {"encoding": normal(PE, -1)}, "Each row is that of the configuration, shifted and scaled to mean 0 and variance 1"),
    "column-norm": (SINUSOID, {"encoding": normal(PE, 0)}, "Each column is that of the configuration, shifted and scaled"),
    "without-mean": (SINUSOID, {"encoding": PE - PE.mean(-1, keepdims=True)}, "In each row every number is x+b with"),
    "dropout": (SINUSOID, {"encoding": PE * (np.random.default_rng(1).random(PE.shape) > 0.1) / 0.9}, "numbers are 0 and the others are 1.11111 times"),
    "int8": (SINUSOID, {"encoding": np.round(PE * 127) / 127}, "rounded to multiples of 1/127."),
    "big-endian": (SINUSOID, {"encoding": PE.astype(F).byteswap()}, "the other byte order"),
    "rolled-channels": (SINUSOID, {"encoding": np.roll(PE, 32, 1)}, "column i is its column (i + 32) mod 64"),
    "reversed-channels": (SINUSOID, {"encoding": PE[:, ::-1]}, "column i is its column 63-i"),
    "heads-in-pairs": (ROPE, of_q(OUT[:, [1, 0, 3, 2]]), "head i is its head i xor 1"),
    "heads-listed": (ROPE, of_q(OUT[:, [2, 0, 3, 1]]), "head i is its head order[i]; the first ones are 2, 0, 3, 1."),
    "memory": (ROPE, of_q(OUT.swapaxes(1, 2).reshape(OUT.shape)), "they are stored as nhd and read as hnd"),
    "cut-off": (ROPE, of_q(np.clip(OUT, -1.5, 1.25)), "would be below -1.5 or above 1.25"),
    "residual": (ROPE, of_q(OUT + Q), "Every number is x+q,"),
    "absolute-encoding": (ROPE, of_q(Q + PE), "is the same in every head: something was added"),
    "gain": (ROPE, of_q(OUT * GAIN), "In each column every number is a*x with"),
    "gain-before": (ROPE, of_q(rotated(Q * GAIN)), "Turned back by the rotation of the configuration, every number is a*x with"),
    "bias-before": (ROPE, of_q(rotated(Q + GAIN)), "Turned back by the rotation of the configuration, every number is x+b with"),
    "norm-before": (ROPE, of_q(rotated(Q / np.sqrt((Q ** 2).mean(-1, keepdims=True)) * GAIN)), "as of a norm with weights that is applied before the rotation"),
    "hadamard": (ROPE, {"q": LONG, "q_out": rotated(LONG) @ TURN}, "times one orthogonal matrix, the same for all rows"),
    "matrix": (ROPE, {"q": LONG, "q_out": rotated(LONG) @ (TURN + 0.1)}, "times one matrix, the same for all rows"),
    "distance-squared": (ALIBI, {"bias": biases(np.square)}, "the bias is a*d², d the distance, with coefficients of the head's own; in the first: a = -0.5"),
    "distance-log": (ALIBI, {"bias": biases(np.log1p)}, "the bias is a*ln(1 + d)"),
    "distance-root": (ALIBI, {"bias": biases(np.sqrt)}, "the bias is a*sqrt(d)"),
    "distance-plus-one": (ALIBI, {"bias": biases(lambda d: d + 1)}, "plus one number (b = -0.5 in the first), which a softmax over the keys does not see"),
    "transposed": ({**ROPE, "causal": False}, maps("scores", SCORES.swapaxes(-1, -2)), "they are stored as hdn and read as hnd"),
    "normalised": ({**ROPE, "causal": False}, maps("scores", SCORES / np.linalg.norm(Q, axis=-1)[..., None] / np.linalg.norm(K, axis=-1)[:, :, None]),
                   "times a factor of its row and one of its column"),
    "over-queries": (CAUSAL, maps("probs", softmax(where(BY >= 0), -2)), "the softmax was taken over the queries, not over the keys"),
    "scaled-late": (CAUSAL, maps("probs", softmax(8 * where(BY >= 0)) / 8), "Each row of probabilities sums to 0.125, not to 1."),
    "hidden-late": (CAUSAL, maps("probs", np.where(BY >= 0, softmax(SCORES), 0)), "so it no longer sums to 1"),
    **{f"mask-of-scores {rule}": (CAUSAL, maps("scores", where(sees)), f"the keys j with {rule}.") for rule, sees in MASKS.items()},
    **{f"mask-of-biases {rule}": (ALIBI, {"bias": biases(lambda d: d, sees)}, f"the keys j with {rule}.") for rule, sees in MASKS.items() if "<= j-i <=" not in rule},
    **{f"mask-of-probs {rule}": (CAUSAL, maps("probs", softmax(where(sees))), f"the keys j with {rule}.") for rule, sees in MASKS.items() if sees.any(-1).all()},
    "filled": (SINUSOID, {"encoding": 0 * PE + 0.25}, "Every number is 0.25."),
    "running-sum": (SINUSOID, {"encoding": np.cumsum(PE, 0)}, "Along the rows every number is x[i]+y[i-1],"),
    "running-sum-back": (SINUSOID, {"encoding": np.cumsum(PE[::-1], 0)[::-1]}, "Along the rows every number is x[i]+y[i+1],"),
    "differences": (SINUSOID, {"encoding": np.diff(PE, axis=1, prepend=0)}, "Along the columns every number is x[i]-x[i-1],"),
    "decaying-mean": (SINUSOID, {"encoding": decaying(PE)}, "Along the rows every number is 0.25*x[i]+0.75*y[i-1],"),
    "in-place": (ROPE, of_q(in_place(Q)), "The first channel of each pair is c*q1-s*q2 and the second c*q2+s*y1, where"),
    "angles-in-half": ({**ROPE, "len": N}, tables_of((np.arange(N, dtype=np.float16)[:, None] * (1e4 ** (-np.arange(0, D, 2) / D)).astype(np.float16)).astype(float)),
                       "positions, frequencies or angles were rounded to float16."),
    "turns-in-half": ({**ROPE, "len": N}, tables_of((angles() % (2 * np.pi)).astype(np.float16).astype(float)),
                      "the angles were reduced to one turn and then rounded to float16."),
    "mask-of-zeros": (CAUSAL, maps("probs", softmax(np.where(BY >= 0, SCORES, 0))), "Keys that the configuration hides have a weight, the same for all that a query does not see"),
    "documents": (CAUSAL, maps("scores", where((BY >= 0) & (np.arange(N)[:, None] // 5 == np.arange(N) // 5))),
                  "query 5 is the first that sees other keys: 5; in the configuration 0-5."),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_done_to_the_numbers_is_stated(server, name):
    belief, tensors, words = CHANGES[name]
    answer = ask(server, belief, **{tensor: np.ascontiguousarray(x, F) for tensor, x in tensors.items()})
    said = finding(answer, "unexplained")
    assert words in said["detail"] and not answer["explained"]
    assert (said["believed"] is not None) == ("in the configuration" in said["detail"])
    assert all(f"{said['found'][member]:.6g}" in said["detail"] for member in {"numbers", "value"} & set(said["found"]) if name != "int8")  # nothing of other measures
    assert all(text in said["detail_zh"] for text in map(str, said["found"].values()) if text in said["detail"])


def test_numbers_that_are_cut_off_are_counted(server):
    said = finding(ask(server, ROPE, q=Q, q_out=np.clip(OUT, -1.5, 1.25).astype(F)), "unexplained")
    assert said["found"] == {"numbers": int(((OUT < -1.5) | (OUT > 1.25)).sum()), "least": -1.5, "most": 1.25}


def test_an_order_of_no_axis_is_told_by_one_number(server):
    wrong = np.random.default_rng(3).permutation(OUT.ravel()).reshape(OUT.shape).astype(F)
    said = finding(ask(server, ROPE, q=Q, q_out=wrong), "unexplained")
    found, believed = said["found"], said["believed"]
    assert "in another order" in said["detail"] and found["index"] != believed["index"]
    assert wrong[tuple(found["index"])] == F(found["value"]) and abs(OUT[tuple(believed["index"])] - found["value"]) < 1e-5


@pytest.mark.parametrize("seed", range(2))
def test_what_nothing_was_done_to_is_not_explained_by_chance(server, seed):
    """Noise, an orthogonal map, another table: no function and no order."""
    draw = np.random.default_rng(seed)
    turn = np.linalg.qr(draw.standard_normal((D, D)))[0]
    for belief, tensors in [(SINUSOID, {"encoding": draw.standard_normal((N, D))}), (SINUSOID, {"encoding": PE @ turn}), (ROPE, of_q(OUT @ turn)),
                            (ALIBI, {"bias": np.where(BY >= 0, draw.standard_normal((8, N, N)), -np.inf)}), (CAUSAL, maps("probs", softmax(where(BY >= 0) * 1.7 + draw.standard_normal((N, N)))))]:
        said = finding(ask(server, belief, **{name: x.astype(F) for name, x in tensors.items()}), "unexplained")
        assert said["found"] is None, said["detail"]


def test_buckets_of_no_rule_are_told_by_distance(server):
    rounded, right = buckets_of(np.round), buckets_of(np.floor)
    answer = ask(server, {"scheme": "t5", "num_heads": 4, "bidirectional": True}, buckets=rounded.astype(np.int64))
    off = [by for by in range(-63, 64) if (np.diag(rounded, by) != np.diag(right, by)).all()]
    nearest = min(off, key=abs)
    said = finding(answer, "unexplained")
    assert said["found"] == {"numbers": len(off), "rule": str(np.diag(rounded, nearest)[0]), "first": str(nearest)}
    assert said["believed"] == str(np.diag(right, nearest)[0]) and f"bucket {said['found']['rule']}, in the configuration {said['believed']}." in said["detail"]


SIDES = {
    "k_reversed": (maps("scores", np.einsum("bhid,bhjd->bhij", rotated(Q), rotated(K, -1)) / 8), {**ROPE, "causal": False}, "The keys were rotated in the opposite direction"),
    "q_reversed": (maps("probs", softmax(np.einsum("bhid,bhjd->bhij", rotated(Q, -1), rotated(K)) / 8)), {**ROPE, "causal": False}, "The queries were rotated in the opposite direction"),
    "slopes_order": ({"bias": biases(lambda d: d)[[3, 1, 0, 2, 7, 6, 5, 4]]}, ALIBI, "The slopes are right, but the heads have them in another order."),
    "slopes_other": ({"bias": biases(lambda d: d)[[0] * 8]}, ALIBI, "Every head has the slope of the first one."),
    "positions_scaled": (tables_of(angles() * np.pi / 180), {**ROPE, "len": N}, "0.0174533 times those of the configuration. It is pi/180."),
}


@pytest.mark.parametrize("code", SIDES)
def test_what_has_a_name(server, code):
    tensors, belief, words = SIDES[code]
    answer = ask(server, belief, **{name: np.ascontiguousarray(x, F) for name, x in tensors.items()})
    assert codes_of(answer) == [code] and words in answer["findings"][0]["detail"] and answer["explained"]


# Positions and frequencies that a rule of the grammar names; the candidate's positions are checked by NumPy.
POSITIONS = {
    "int8": (np.arange(200).astype(np.int8).astype(float), "positions_wrapped", "overflow a signed integer of few bits: -128 in place of 128, first in row 128"),
    "half": (np.arange(200) // 3 * 1.0, "position_stride", "divided by 3 and rounded down"),
    "rolled": (np.roll(np.arange(200.0), -7), "positions_other", "shifted round: the first row has the position of row 7"),
    "transposed": (np.arange(200.0).reshape(8, 25).T.ravel(), "positions_other", "those of [8, 25] are stored as [25, 8]"),
}
LADDERS = {
    "groups": (lambda w: np.repeat(w[::4], 4), "Pairs share their frequencies in groups of 4"),
    "decimals": (lambda w: np.round(w, 3), "rounded to 3 decimals"),
    "steps": (lambda w: np.linspace(1, 1e-4, len(w)), "fall by equal steps, from 1 to 0.0001"),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_of_a_rule(server, name):
    p, code, words = POSITIONS[name]
    a = np.outer(p, 1e4 ** (-np.arange(0, D, 2) / D))
    answer = ask(server, {**ROPE, "len": 200}, cos=np.cos(a).astype(F), sin=np.sin(a).astype(F))
    assert codes_of(answer) == [code] and words in answer["findings"][0]["detail"] and answer["candidates"][0]["sequence"]["positions"] == p.tolist()


@pytest.mark.parametrize("name", LADDERS)
def test_frequencies_of_a_rule(server, name):
    change, words = LADDERS[name]
    a = np.outer(np.arange(N), change(1e4 ** (-np.arange(0, D, 2) / D)))
    answer = ask(server, {**ROPE, "len": N}, cos=np.cos(a).astype(F), sin=np.sin(a).astype(F))
    assert "inv_freq_other" in codes_of(answer) and words in finding(answer, "inv_freq_other")["detail"]


@pytest.mark.parametrize("apart, twice", [(D // 2, lambda x, y: np.concatenate([x, y], -1)), (1, lambda x, y: np.stack([x, y], -1).reshape(len(x), -1))])
def test_sines_that_have_the_minus(server, apart, twice):
    c, s = np.cos(angles()), np.sin(angles())
    layout = {"layout": "half" if apart > 1 else "interleaved"}
    answer = ask(server, {**ROPE, **layout, "len": N}, cos=twice(c, c).astype(F), sin=twice(-s, s).astype(F))
    assert codes_of(answer) == ["sines_signed"] and answer["findings"][0]["found"] == apart and answer["explained"]
    other = ask(server, {**ROPE, **layout, "len": N, "base": 5e5}, cos=twice(c, c).astype(F), sin=twice(-s, s).astype(F))
    assert codes_of(other) == ["sines_signed", "base_other"]
