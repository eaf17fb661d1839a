"""/diagnose where a part of the tensor is as believed: which rows, batch rows, heads or pairs, and what the rest is; and tensors with more or fewer
rows than the belief. Truth is NumPy by the formulas; what became of a part is drawn here."""
import numpy as np
import pytest

from diagnosing import ask, check_form, codes_of
from truth import evidence, rotary

f4 = np.float32
N, D, BASE = 48, 32, 500.0
W = evidence.powers(BASE, D)
SLOPES = 2.0 ** -np.arange(1, 9)
random = np.random.default_rng(7)
Q = random.standard_normal((3, 4, N, D)).astype(f4)
TABLE = random.standard_normal((N, 12)).astype(f4)
ROPE = {"scheme": "rope", "head_dim": D, "base": BASE, "layout": "half"}


def turned(q, x, layout="half", base=BASE):
    """q rotated to positions x, [..., n]."""
    return rotary.at_angles(q, np.asarray(x, float)[..., None] * evidence.powers(base, D), layout).astype(f4)


def waves(x):
    """An encoding as the paper has it."""
    angles = np.asarray(x, float)[..., None] * evidence.powers(1e4, D)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(*angles.shape[:-1], D).astype(f4)


P = np.arange(N) * 1.0
# The belief, the axes of the tensor before its channels, the tensor at positions x, what is sent beside it.
KINDS = {
    "q": (ROPE, ("batch_rows", "heads", "rows"), lambda x: {"q_out": turned(Q, np.broadcast_to(x, Q.shape[:-1]))}, {"q": Q}),
    "tables": ({**ROPE, "form": "pairs"}, ("rows",), lambda x: {"cos": np.cos(x[..., None] * W).astype(f4), "sin": np.sin(x[..., None] * W).astype(f4)}, {}),
    "batch": ({**ROPE, "form": "pairs"}, ("batch_rows", "rows"),
              lambda x: {name: f(np.broadcast_to(x, (3, N))[..., None] * W).astype(f4) for name, f in (("cos", np.cos), ("sin", np.sin))}, {}),
    "encoding": ({"scheme": "sinusoidal", "dim": D}, ("rows",), lambda x: {"encoding": waves(x)}, {}),
    "encodings": ({"scheme": "sinusoidal", "dim": D}, ("batch_rows", "rows"), lambda x: {"encoding": waves(np.broadcast_to(x, (3, N)))}, {}),
    "learned": ({"scheme": "learned", "dim": 12}, ("rows",), lambda x: {"encoding": TABLE.copy()}, {"table": TABLE}),
    "bias": ({"scheme": "alibi", "num_heads": 8}, ("heads", "rows"),
             lambda x: {"bias": (-SLOPES[:, None, None] * abs(x[:, None] - x)).astype(f4)}, {}),
}
# The axis, which indices differ: in words and as a slice.
PARTS = {"rows": ("rows 33 to 47", "rows 0 to 32", slice(33, 48), [[33, 47]]), "batch_rows": ("batch row 1", "batch rows 0, 2", slice(1, 2), [[1, 1]]),
         "heads": ("heads 2 to 3", "heads 0 to 1", slice(2, 4), [[2, 3]])}
CODES = {"rows": "rows_other", "batch_rows": "batch_rows_other", "heads": "heads_other"}


def asked(server, kind, became, axis=None):
    """Of a tensor whose part is what became() makes of it: became(a, index) changes the array in place."""
    belief, axes, make, beside = KINDS[kind]
    tensors = make(P)
    index = tuple(PARTS[axis][2] if a == axis else slice(None) for a in axes) if axis else ()
    for name, a in tensors.items():
        became(name, a, index)
    return ask(server, belief, **tensors, **beside)


def is_of(kind, axis):
    return axis in KINDS[kind][1]


def zero(name, a, index):
    a[index] = 0


def garbage(name, a, index):
    a[index] = np.random.default_rng(len(name)).standard_normal(a[index].shape)


def constant(name, a, index):
    a[index] = 2.5


@pytest.mark.parametrize("axis", PARTS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_became_of_a_part(server, kind, axis):
    """Zero, one number, garbage: which indices, as believed or not, in both languages; garbage stays unexplained."""
    if not is_of(kind, axis):
        pytest.skip("no such axis")
    bad, good, _, stretches = PARTS[axis]
    if kind == "bias":
        good = good.replace("heads 0 to 1", "heads 0 to 1, 4 to 7")
    for became, are, words in ((zero, "zero", " zero"), (constant, "number", "one number everywhere: 2.5"), (garbage, "other", "no multiple, copy or constant")):
        answer = asked(server, kind, became, axis)
        where = (kind, axis, are, answer["findings"])
        check_form(answer)
        first = answer["findings"][0]
        assert first["code"] == (CODES[axis] if (axis, are) != ("rows", "zero") else "rows_zero"), where
        assert answer["explained"] == (are != "other"), where
        assert first["found"]["are"] == are and first["found"][axis] == stretches, where
        said = first["detail"][0].lower() + first["detail"][1:]
        assert bad in said and good in said and "as believed" in said and words in said, where
        others = {"rows", "batch_rows", "heads"} - {axis}
        assert all(first["found"][name] is None or first["found"][name] == [[0, n - 1]] for name in others for n in [sizes(kind, name)]), where
        if are == "other":
            groups = {**answer["where"], **answer["where"]["groups"]}
            n = sizes(kind, axis)
            assert [i for a, b in groups[axis] for i in range(a, b + 1)] == sorted(set(range(n)) - set(range(*PARTS[axis][2].indices(n)))), where


def sizes(kind, axis):
    axes, arrays = KINDS[kind][1], KINDS[kind][2](P)
    return next(iter(arrays.values())).shape[axes.index(axis)] if axis in axes else 1


@pytest.mark.parametrize("axis", PARTS)
def test_positions_of_its_own(server, axis):
    """A part that is rotated elsewhere, otherwise or not at all is diagnosed by itself."""
    index = tuple(PARTS[axis][2] if a == axis else slice(None) for a in KINDS["q"][1])
    q = Q[index]
    x = np.broadcast_to(P, Q.shape[:-1])[index]
    for out, codes in ((turned(q, x + 7), {"offset_other", "offsets_by_row", "positions_other"}), (q, {"not_rotated", "positions_other", "offsets_by_row", "position_reset"}),
                       (turned(q, x, "interleaved"), {"layout_swapped"}), (turned(q, x, base=1e4), {"base_other"})):
        q_out = turned(Q, np.broadcast_to(P, Q.shape[:-1]))
        q_out[index] = out
        answer = ask(server, ROPE, q=Q, q_out=q_out)
        check_form(answer)
        first = answer["findings"][0]
        named = set(codes_of(answer)) | set((first["found"] or {}).get("codes", []) if isinstance(first["found"], dict) else [])
        assert answer["explained"] and named & codes, (axis, codes, answer["findings"])
        if first["code"] in CODES.values():
            assert first["found"][axis] == PARTS[axis][3] and len(answer["candidates"][0]["pieces"]) == 2, first


def test_zero_rows_beside_a_mistake(server):
    """Rows of zeros say nothing, so the others are judged as if they were alone."""
    for rows in ([0], [2], [N - 1], range(40, N)):
        cos, sin = np.cos(P[:, None] * W).astype(f4), np.sin(P[:, None] * W).astype(f4)
        cos[list(rows)] = sin[list(rows)] = 0
        answer = ask(server, {**ROPE, "form": "pairs", "base": 1e4}, cos=cos, sin=sin)
        assert answer["explained"] and set(codes_of(answer)) - {"angles_f32"} == {"rows_zero", "base_other"}, answer["findings"]
        assert answer["findings"][0]["found"]["rows"] == [[rows[0], rows[-1]]]
        assert {"name": "zero_rows"}.items() <= answer["candidates"][0]["transforms"][-1].items()


def test_believed_rows_elsewhere(server):
    """A learned table whose last rows are the first ones again."""
    table = TABLE.copy()
    table[40:] = TABLE[3:11]
    answer = ask(server, KINDS["learned"][0], encoding=table, table=TABLE)
    first = answer["findings"][0]
    assert answer["explained"] and first["code"] == "rows_other" and first["found"]["believed_rows"] == [[3, 10]], answer["findings"]
    assert first["detail"] == "Rows 0 to 39 are as believed; rows 40 to 47 are other believed rows: 3 to 10."


def test_a_norm_behind_the_rotation(server):
    """Every row, or those of one head, divided by its root mean square."""
    for heads in (slice(None), slice(1, 2)):
        out = turned(Q, np.broadcast_to(P, Q.shape[:-1]))
        out[:, heads] /= np.sqrt((out[:, heads] ** 2).mean(-1, keepdims=True))
        answer = ask(server, ROPE, q=Q, q_out=out)
        check_form(answer)
        first = answer["findings"][0]
        assert answer["explained"] and first["code"] == ("rows_other" if heads.stop is None else "heads_other"), answer["findings"]
        assert first["found"]["are_normal"] and "norm behind the rotation" in first["detail"], first


@pytest.mark.parametrize("kind", KINDS)
def test_noise_and_single_numbers_stay_unexplained(server, kind):
    def noise(name, a, index):
        a += 1e-3 * np.random.default_rng(3).standard_normal(a.shape)

    def number(name, a, index):
        a[(0,) * (a.ndim - 2) + (20, 3)] += 0.37
    for became in (noise, number):
        assert not asked(server, kind, became)["explained"], (kind, became)


# ---- More and fewer rows -----------------------------------------------------------------------------------------------------------------------------


def of_rows(kind, x):
    belief, _, _, beside = KINDS[kind]
    if kind == "q":
        q = np.random.default_rng(len(x)).standard_normal((1, 2, len(x), D)).astype(f4)
        return {"q": q, "q_out": turned(q, np.broadcast_to(x, q.shape[:-1]))}
    if kind == "encoding":
        return {"encoding": waves(x)}
    return {"cos": np.cos(x[:, None] * W).astype(f4), "sin": np.sin(x[:, None] * W).astype(f4)}


@pytest.mark.parametrize("kind", ["q", "tables", "encoding"])
def test_more_and_fewer_rows(server, kind):
    belief = KINDS[kind][0]
    for n, length in ((64, 20), (21, 20), (20, 33), (1, 33)):
        answer = ask(server, {**belief, "len": length}, **of_rows(kind, np.arange(n) * 1.0))
        check_form(answer)
        first = answer["findings"][0]
        assert answer["explained"] and set(codes_of(answer)) - {"angles_f32", "undecided"} == {"rows_extra" if n > length else "rows_missing"}, answer["findings"]
        assert (first["found"]["n"], first["believed"]) == (n, length) and str(n) in first["detail"] and str(length) in first["detail"], first
        assert first["found"]["rows"] == [[min(n, length), max(n, length) - 1]], first
        if n > length and kind != "q":
            assert first["found"]["are"] == "going_on", first
    if kind == "q":
        return
    here = of_rows(kind, np.arange(12.0) + 5)
    answer = ask(server, {**belief, "len": 33}, **here)  # a shard
    assert answer["explained"] and answer["findings"][0]["found"]["rows"] == [[0, 4], [17, 32]] and answer["candidates"][0]["sequence"] == {"len": 12, "offset": 5}
    token = {name: np.concatenate([np.zeros((1, a.shape[1]), f4), a]) for name, a in of_rows(kind, P[:20]).items()}
    answer = ask(server, {**belief, "len": 20}, **token)  # a class token before the rows
    assert answer["explained"] and answer["findings"][0]["found"] == {"n": 21, "rows": [[0, 0]], "are": "zero"}, answer["findings"]
    again = {name: np.concatenate([a, a]) for name, a in of_rows(kind, P[:20]).items()}
    answer = ask(server, {**belief, "len": 20}, **again)
    assert answer["explained"] and answer["findings"][0]["found"]["are"] == "repeated" and "repeated" in answer["findings"][0]["detail"]
    wrong = ask(server, {**belief, "len": 20, "base": 77}, **of_rows(kind, np.arange(64.0)))  # another mistake beside it
    assert wrong["explained"] and {"rows_extra", "base_other"} <= set(codes_of(wrong)), wrong["findings"]


def test_channels(server):
    """The rotated part of a head alone is as believed; another width is a finding."""
    q = Q[:1, :, :, :16]
    part = ask(server, {"scheme": "rope", "head_dim": 48, "rotary_dim": 16, "rotary_offset": 32, "layout": "interleaved", "base": BASE}, q=q,
               q_out=rotary.at_positions(q, P, BASE).astype(f4))
    assert codes_of(part) == ["as_believed"], part["findings"]
    other = ask(server, {"scheme": "rope", "head_dim": 32, "layout": "interleaved", "base": BASE}, q=q, q_out=rotary.at_positions(q, P, BASE).astype(f4))
    assert other["explained"] and codes_of(other)[0] == "rows_missing" and other["findings"][0]["found"]["channels"] == [[16, 31]], other["findings"]
    config = {"model_type": "qwen3", "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 28,
              "max_position_embeddings": 40960, "rope_theta": 1000000}
    answer = ask(server, {"hf_config": config}, inv_freq=evidence.powers(1e6, 64).astype(f4))
    assert answer["explained"] and "hidden_size / num_attention_heads" in answer["findings"][0]["detail"], answer["findings"]


def test_an_encoding_along_the_batch(server):
    """As a module for sequences first returns it, [n, batch, dim]: each row of the batch would have one position."""
    belief = {"scheme": "sinusoidal", "dim": D}
    along = ask(server, belief, encoding=np.repeat(waves(P[:8])[:, None], 12, 1))
    assert along["explained"] and codes_of(along)[0] == "axes_moved" and along["findings"][0]["found"] == [1, 0, 2], along["findings"]
    assert codes_of(ask(server, belief, encoding=np.repeat(waves(P)[None], 3, 0))) == ["as_believed"]


def test_batch_rows_of_positions(server):
    x = np.stack([P + 3, P * 0 + 1, P])
    q_out = turned(Q, np.broadcast_to(x[:, None], Q.shape[:-1]))
    more = ask(server, {**ROPE, "positions": x[:2].tolist(), "positions_layout": "batch"}, q=Q, q_out=q_out)
    assert more["explained"] and more["findings"][0]["code"] == "rows_extra" and more["findings"][0]["found"]["batch_rows"] == [[2, 2]], more["findings"]
    fewer = ask(server, {**ROPE, "positions": x.tolist(), "positions_layout": "batch"}, q=Q[:2], q_out=q_out[:2])
    assert fewer["explained"] and fewer["findings"][0]["code"] == "rows_missing" and fewer["findings"][0]["found"]["batch_rows"] == [[2, 2]], fewer["findings"]


def test_ids(server):
    ids = np.array(np.meshgrid(0, np.arange(2), np.arange(3), indexing="ij")).reshape(3, -1)
    twice = ask(server, {"preset": "flux.1", "grid": [1, 2, 3]}, position_ids=np.concatenate([ids, ids], 1).astype("i4"))
    assert twice["explained"] and codes_of(twice) == ["rows_extra"] and twice["findings"][0]["found"]["are"] == "repeated", twice["findings"]
    whole = np.array(np.meshgrid(0, np.arange(4), np.arange(6), indexing="ij")).reshape(3, -1).astype("i4")
    more = ask(server, {"preset": "flux.1", "grid": [1, 2, 3]}, position_ids=whole)
    assert more["explained"] and codes_of(more) == ["rows_extra"] and "4 times" in more["findings"][0]["detail"], more["findings"]
    assert (more["findings"][0]["found"], more["findings"][0]["believed"]) == ([1, 4, 6], [1, 2, 3])


def test_heads_and_maps(server):
    """Heads of one rank; a number of heads of its own; a map of other lengths."""
    bias = KINDS["bias"][2](P[:12])["bias"]
    belief = {"scheme": "alibi", "num_heads": 8}
    rank = ask(server, belief, bias=bias[4:])
    assert rank["explained"] and codes_of(rank) == ["rows_missing"] and rank["findings"][0]["found"]["heads"] == [[0, 3]], rank["findings"]
    more = ask(server, belief, bias=np.concatenate([bias, bias[:3]]))
    assert more["explained"] and codes_of(more) == ["rows_extra"] and more["findings"][0]["found"]["heads"] == [[8, 10]], more["findings"]
    four = ask(server, belief, bias=(-(4.0 ** -np.arange(1, 5))[:, None, None] * abs(P[:12, None] - P[:12])).astype(f4))
    assert four["explained"] and codes_of(four) == ["rows_missing"] and four["candidates"][0]["config"]["num_heads"] == 4, four["findings"]
    longer = ask(server, {**belief, "len": 10}, bias=bias)
    assert longer["explained"] and codes_of(longer) == ["rows_extra"] and longer["findings"][0]["found"] == [12, 12], longer["findings"]
