"""Attention maps as evidence: what float32 and half precision lose of scores and probabilities, counted keys, padded batches. What is named
in which map are rows (../../cases/diagnose_maps.jsonl)."""

import numpy as np
import pytest

from believed import inline, rounded
from diagnosing import ask, codes_of, diagnose
from truth import evidence
from truth.attention import softmax

D, SCALE = 16, 0.25
ROPE = {"scheme": "rope", "layout": "half", "causal": True}
KINDS = ["scores", "probs"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_gives_the_map_back(server, kind):
    rng = np.random.default_rng(37)
    q, k = (rng.standard_normal((1, heads, 12, D)).astype("f4") for heads in (4, 2))
    want = evidence.tensor(kind, {**ROPE, "softmax_scale": 0.3}, q=q, k=k)
    config = ask(server, ROPE, q=q, k=k, **{kind: want.astype("f4")})["candidates"][0]["config"]
    assert config["softmax_scale"] == 0.3
    got = server.ask("/attention", **config, q=inline(q, "f64"), k=inline(k, "f64"), outputs=[kind], dtype="f64").json()["tensors"][kind]["data"]
    np.testing.assert_allclose(np.array([-np.inf if x is None else float(x) for x in np.array(got, object).ravel()]).reshape(want.shape), want, atol=1e-9)


@pytest.mark.parametrize("power, code", [(2, "as_believed"), (0, "mscale_missing"), (4, "mscale_twice")])
def test_a_scaling_that_multiplies_the_softmax_scale(server, power, code):
    """DeepSeek-V3's scores have 192^-1/2 · m^2 = 0.1352338; a belief without softmax_scale includes it."""
    q, k = (np.random.default_rng(seed).normal(size=(1, 1, 6, 192)) for seed in (0, 1))
    sent = {"q": inline(q, "f64"), "k": inline(k, "f64")}
    scale = 192 ** -0.5 * (0.1 * np.log(40) + 1) ** power
    request = {"preset": "deepseek-v3", "softmax_scale": scale, "outputs": ["scores"], "dtype": "f64", **sent}
    found = np.array(server.ask("/attention", **request).json()["tensors"]["scores"]["data"])
    assert codes_of(diagnose(server, {"preset": "deepseek-v3", "scores": inline(found, "f64"), **sent}))[0] == code


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, rows, sums", [(64, 16, "f4"), (300, 300, "f4"), (300, 300, "f8")])
def test_keys_counted_in_float32(server, kind, n, rows, sums):
    """CoPE reads its table between rows at sums of gates, which float32 loses like coordinates; torch's cumsum on a CPU adds in float64
    and rounds. A hundredth of a key more is another count."""
    rng = np.random.default_rng(4)
    q, k, table = (rng.standard_normal((m, D)).astype("f4") for m in (n, n, rows))
    s, seen = q @ k.T * np.float32(SCALE), np.tri(n, dtype=bool)
    gates = np.where(seen, 1 / (1 + np.exp(-s)), np.float32(0))
    count = np.cumsum(gates[:, ::-1], 1, dtype=sums)[:, ::-1].astype("f4")
    for more, fits in ((0, True), (0.01, False)):
        p = np.minimum(count + np.float32(more), np.float32(rows - 1))
        z, low = q @ table.T, np.floor(p).astype(int)
        part = p - low.astype("f4")
        term = np.take_along_axis(z, np.ceil(p).astype(int), 1) * part + np.take_along_axis(z, low, 1) * (1 - part)
        out = np.where(seen, s + term, -np.inf).astype("f4")[None, None]
        sent = {"q": q[None, None], "k": k[None, None], "pos_emb": table, kind: softmax(out) if kind == "probs" else out}
        answer = ask(server, {"scheme": "cope", "causal": True}, "/check", **sent)
        assert answer["fits"] is fits and (not fits or set(codes_of(answer)) <= {"as_believed", "coordinates_f32"}), (more, answer)


# ---- Half precision, and far from position 0: the worst case of roundings is most of a score -----------------------------------


def in_dtype(x, dtype):
    return rounded(np.asarray(x, "f4"), dtype).astype("f4")


def of_port(dtype, n, first, base=1e4, scale=64 ** -0.5, is_still=False):
    """What a port gives that rounds after every step, as PyTorch's eager code does; angles in float32."""
    rng, r = np.random.default_rng(3), lambda x: in_dtype(x, dtype)
    q, k = (r(rng.normal(size=(1, 2, n, 64))) for _ in range(2))
    angle = (np.arange(first, first + n)[:, None].astype("f4") * (base ** (-np.arange(0, 64, 2) / 64)).astype("f4")) * (not is_still)
    c, s = r(np.cos(angle)), r(np.sin(angle))

    def turn(x):
        a, b = x[..., :32], x[..., 32:]
        return np.concatenate([r(r(a * c) - r(b * s)), r(r(b * c) + r(a * s))], -1)

    scores = np.where(np.tri(n, dtype=bool), r(r(turn(q) @ turn(k).swapaxes(-1, -2)) * np.float32(scale)), -np.inf)
    return q, k, scores, in_dtype(softmax(scores.astype(float)), dtype)


@pytest.mark.parametrize("dtype, first", [("bf16", 0), ("f16", 0), ("bf16", 100000), ("f16", 100000), ("f32", 100000)])
@pytest.mark.parametrize("wrong", [{}, {"scale": 0.16}, {"is_still": True}, {"base": 5e5}])
def test_a_wrong_port_is_no_rounding(server, dtype, first, wrong):
    """A scale of 0.16 for 0.125, no rotation and another base lay within 24 roundings of |q|·|k|, each number by itself."""
    q, k, scores, probs = of_port(dtype, 32, first, **wrong)
    for kind, numbers in (("scores", scores), ("probs", probs))[:1 if wrong and first else 2]:
        belief = {**ROPE, "offset": first, "q": inline(q, dtype), "k": inline(k, dtype), kind: inline(numbers, dtype)}
        assert server.ask("/check", **belief).json()["fits"] == (not wrong), (kind, wrong)


def test_a_probability_is_at_most_one(server):
    q, k, _, probs = of_port("bf16", 48, 0)
    probs[0, 0, 0, 0] = 1.25
    answer = server.ask("/check", **ROPE, q=inline(q, "bf16"), k=inline(k, "bf16"), probs=inline(probs, "bf16")).json()
    assert not answer["fits"] and answer["findings"][0]["code"] == "unexplained"


# ---- Batches ------------------------------------------------------------------------------------------------------------------

N = 12
MASK = np.array([[0] * 4 + [1] * 8, [1] * N, [0] * 7 + [1] * 5])
HALF = {"scheme": "rope", "head_dim": D, "layout": "half"}


def drawn(batch=3):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((batch, 2, N, D)) for _ in range(2)]


def scores(q, k, positions, mask=MASK, q_positions=None):
    """Of each row of a batch by its positions; keys of padding are hidden."""
    out = []
    for b, at in enumerate(positions):
        sides = {"q_positions": (at if q_positions is None else q_positions[b]).tolist(), "k_positions": at.tolist()}
        s = evidence.tensor("scores", {**HALF, "causal": True, **sides}, q=q[b], k=k[b])
        out.append(np.where(mask[b] == 0, -np.inf, s))
    return np.stack(out)


def by_tokens(mask):
    return np.where(mask == 1, mask.cumsum(-1) - 1, 1)


def test_padded_maps(server):
    """Padding may hold anything. By columns the distances between tokens are the same, so relative positions hide the offset."""
    q, k = drawn()
    for positions in (by_tokens(MASK), np.arange(N) + 0 * MASK):
        found = scores(q, k, positions)
        found[np.broadcast_to(MASK[:, None, None, :] == 0, found.shape)] = -1e9
        found[np.broadcast_to(MASK[:, None, :, None] == 0, found.shape)] = 3.0
        answer = ask(server, {**HALF, "causal": True, "attention_mask": MASK.tolist()}, q=q, k=k, scores=found)
        assert answer["explained"] and (positions[1, 0] or codes_of(answer) == ["as_believed"]), answer["findings"]


def test_a_side_that_does_not_turn_in_a_padded_batch(server):
    q, k = drawn()
    found = scores(q, k, by_tokens(MASK), q_positions=0 * MASK)
    answer = ask(server, {**HALF, "causal": True, "attention_mask": MASK.tolist()}, q=q, k=k, scores=found)
    assert codes_of(answer) == ["q_not_rotated"], answer["findings"]


def test_a_map_with_its_layout_and_ids_beside_it(server):
    q, k = drawn(1)
    found = scores(q, k, np.arange(N)[None], 0 * MASK + 1)
    turn = lambda x: np.ascontiguousarray(x.transpose(0, 2, 1, 3))
    answer = ask(server, {**HALF, "causal": True, "tensor_layout": "bnhd"}, q=turn(q), k=turn(k), scores=found)
    assert codes_of(answer) == ["as_believed"]
    q, k = drawn()
    ids = np.random.default_rng(1).integers(1, 6, (3, N)).cumsum(-1)
    answer = ask(server, {**HALF, "causal": True}, q=q, k=k, scores=scores(q, k, ids, 0 * MASK + 1), position_ids=ids)
    assert codes_of(answer) == ["as_believed"]


def test_sinks_of_scores_far_below_zero(server):
    """What is not a key adds nothing to the sum of a row."""
    towards, rng = np.zeros((1, 1, 1, D)), np.random.default_rng(8)
    towards[..., [D // 2 - 1, D - 1]] = 1, 1  # the slowest pair hardly turns
    q, k = (rounded(np.round((x + more * towards) * 0.3, 3), "f32") for x, more in zip(rng.standard_normal((2, 1, 3, 24, D)), (-40, 10)))
    at = {"q_positions": list(range(24)), "k_positions": list(range(24))}
    belief = {"scheme": "rope", "layout": "half", **at}
    s = evidence.tensor("scores", belief, q=q, k=k)
    assert -30 < s.mean() < -10, s.mean()
    sinks = [s[0, h].mean() + h for h in range(3)]
    probs = evidence.tensor("probs", {**belief, "sinks": sinks}, q=q, k=k)
    answer = ask(server, belief, q=q.astype("f4"), k=k.astype("f4"), probs=probs.astype("f4"))
    first = answer["findings"][0]
    assert first["code"] == "sinks_extra" and first["found"] == pytest.approx(sinks, abs=1e-4), answer["findings"]
