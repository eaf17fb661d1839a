"""/diagnose: tensors whose axes have another order than believed, and rows of a batch with positions of their own. The rotation is
NumPy's; candidates are posted to /rotate, which must give the tensor back."""
import numpy as np
import pytest

import truth
from diagnosing import SEQUENCES, beliefs, codes_of, diagnose, finding
from tensors import from_safetensors
from wrong_tensors import Tensor, inline

N, HEADS, WIDTH = 20, 4, 16
HOLD = {  # [batch, heads, n, d] as each layout holds it; nhd and flat have no batch
    "bhnd": lambda a: a,
    "bnhd": lambda a: a.transpose(0, 2, 1, 3),
    "nbhd": lambda a: a.transpose(2, 0, 1, 3),
    "nhd": lambda a: a[0].transpose(1, 0, 2),
    "flat": lambda a: a[0].transpose(1, 0, 2).reshape(a.shape[2], -1),
    "bflat": lambda a: a.transpose(0, 2, 1, 3).reshape(a.shape[0], a.shape[2], -1),
}


def heads(batch=2, seed=1):
    return np.random.default_rng(seed).standard_normal((batch, HEADS, N, WIDTH)).astype("f4")


def turned(q, positions, **ways):
    """positions [n], or [batch, n]."""
    at = np.broadcast_to(positions, (len(q), q.shape[2]))
    return np.stack([truth.rotate(row, p, **{"layout": "half", **ways}) for row, p in zip(q, at)]).astype("f4")


def asked(server, belief, q, out, memory):
    tensors = {"q": HOLD[memory](q), "q_out": HOLD[memory](out)}
    return diagnose(server, {"scheme": "rope", "layout": "half", **belief, **{name: inline(Tensor(np.ascontiguousarray(a), "f32")) for name, a in tensors.items()}})


def check_back(server, answer, q, out, memory):
    """config and sequence, posted to /rotate with q, give q_out."""
    first = answer["candidates"][0]
    sent = inline(Tensor(np.ascontiguousarray(HOLD[memory](q)), "f32"))
    response = server.ask("/rotate", **{**first["config"], **first["sequence"]}, q=sent, format="safetensors")
    got = np.asarray(from_safetensors(response)["q"])
    np.testing.assert_allclose(got.reshape(HOLD[memory](out).shape), HOLD[memory](out), atol=2e-5)


# ---- tensor_layout ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", HOLD)
def test_the_believed_layout(server, memory):
    q = heads()
    out = turned(q, np.arange(N) + 3)
    answer = asked(server, {"tensor_layout": memory, "head_dim": WIDTH, "offset": 3}, q, out, memory)
    assert codes_of(answer) == ["as_believed"]
    check_back(server, answer, q, out, memory)


@pytest.mark.parametrize("given", [{}, {"offset": 3}, {"offset": 3, "len": N}, {"positions": [*range(3, N + 3)]}])
@pytest.mark.parametrize("believed", [None, "bhnd", "nbhd", "flat"])
@pytest.mark.parametrize("memory", ["bnhd", "nbhd", "nhd", "bflat"])
def test_another_layout_is_named(server, memory, believed, given):
    if memory == believed:
        return
    q = heads()
    out = turned(q, np.arange(N) + 3 * bool(given))
    belief = {"head_dim": WIDTH, **given, **({"tensor_layout": believed} if believed else {})}
    answer = asked(server, belief, q, out, memory)
    assert codes_of(answer) == ["tensor_layout_other"], answer["findings"]
    named = answer["findings"][0]
    assert named["pointer"] == "/tensor_layout" and named["found"] == memory and named["believed"] == (believed or "bhnd")
    assert answer["candidates"][0]["config"]["tensor_layout"] == memory
    check_back(server, answer, q, out, memory)


@pytest.mark.parametrize("code, ways, offset", [
    ("layout_swapped", {"layout": "interleaved"}, 0), ("base_other", {"base": 500000.0}, 0), ("direction_reversed", {"direction": -1}, 0),
    ("offset_other", {}, 77), ("off_by_one", {}, 1), ("rotary_dim_other", {"rotary_dim": 8}, 0)])
@pytest.mark.parametrize("memory", ["bnhd", "nbhd", "bflat"])
def test_another_layout_and_another_mistake(server, memory, code, ways, offset):
    q = heads()
    out = turned(q, np.arange(N) + offset, **ways)
    answer = asked(server, {"head_dim": WIDTH}, q, out, memory)
    assert codes_of(answer)[:2] == ["tensor_layout_other", code], answer["findings"]
    if code in ("offset_other", "off_by_one"):
        assert (finding(answer, code)["pointer"], finding(answer, code)["found"], finding(answer, code)["believed"]) == ("/offset", offset, 0)
    check_back(server, answer, q, out, memory)


def test_a_leading_axis_of_length_one(server):
    q = heads(1)
    out = turned(q, np.arange(N))
    hold = lambda a: inline(Tensor(np.ascontiguousarray(HOLD["nhd"](a)[None]), "f32"))
    body = {"scheme": "rope", "layout": "half", "q": hold(q), "q_out": hold(out)}
    assert codes_of(diagnose(server, {**body, "tensor_layout": "nhd"})) == ["as_believed"]
    answer = diagnose(server, body)
    assert codes_of(answer) == ["tensor_layout_other"] and answer["findings"][0]["found"] == "bnhd"


@pytest.mark.parametrize("belief, pointer, words", [
    ({"head_dim": 24}, "/head_dim", ["24", "64"]),
    ({"head_dim": WIDTH, "len": 33}, "/len", ["[2,20,64]", "33"]),
    ({"tensor_layout": "flat"}, "/head_dim", ["flat needs head_dim"]),
    ({"tensor_layout": "bhdn"}, "/tensor_layout", ["bhdn", "bhnd", "bflat"]),
    ({"positions": [[0] * N] * 3, "positions_layout": "batch", "head_dim": WIDTH}, "/positions", ["[2,20,64]", "[3,20,16]"]),
    ({"positions": [0] * N, "positions_layout": "batch"}, "/positions", ["two levels"]),
    ({"positions": [[0] * N] * 2, "positions_layout": "rows"}, "/positions_layout", ["rows", "batch"]),
])
def test_what_no_layout_can_have_is_refused(server, belief, pointer, words):
    q = heads()
    tensors = {name: inline(Tensor(np.ascontiguousarray(HOLD["bflat"](q)), "f32")) for name in ("q", "q_out")}
    response = server.post("/diagnose", {"scheme": "rope", **belief, **tensors})
    problem = response.json()
    assert response.status == 422 and problem["pointer"] == pointer and all(word in problem["detail"] for word in words), problem


def test_a_wrong_layout_is_never_accepted(server):
    """No number of a layout where other rows are at each position is the belief's."""
    q = heads()
    out = turned(q, np.arange(N))
    for memory in ("bnhd", "nbhd"):
        answer = asked(server, {"tensor_layout": "bhnd"}, q, out, memory)
        assert "as_believed" not in codes_of(answer) and answer["belief"]["equal"] < 0.2


def test_openapi_has_the_layouts(server):
    fields = server.get("/openapi.json").json()["components"]["schemas"]["Diagnosis"]["properties"]
    assert set(fields["tensor_layout"]["enum"]) == set(HOLD) and fields["positions_layout"]["enum"] == ["axes", "batch", "batch_axes", "axes_batch"]


# ---- Positions of each row of the batch ----------------------------------------------------------------------------------------


def by_row(first):
    return np.asarray(first)[:, None] + np.arange(N)


PADDED = np.array([np.arange(N), [1] * 3 + [*range(N - 3)], [1] * 9 + [*range(N - 9)]])


@pytest.mark.parametrize("memory", ["bhnd", "bnhd", "bflat"])
@pytest.mark.parametrize("positions", [by_row([0, 7, 100]), by_row([4000, 12, 0]), PADDED], ids=["offsets", "caches", "padded"])
def test_rows_with_their_own_positions(server, positions, memory):
    q = heads(3)
    out = turned(q, positions)
    answer = asked(server, {"tensor_layout": memory, "head_dim": WIDTH}, q, out, memory)
    assert codes_of(answer)[0] == "offsets_by_row", answer["findings"]
    named = answer["findings"][0]
    assert named["pointer"] == "/positions" and named["found"] == positions[:, 0].tolist()
    sequence = answer["candidates"][0]["sequence"]
    assert sequence == {"positions": positions.tolist(), "positions_layout": "batch"}
    again = asked(server, {"tensor_layout": memory, "head_dim": WIDTH, **sequence}, q, out, memory)
    assert codes_of(again)[0] in ("as_believed", "angles_f32")
    check_back(server, answer, q, out, memory)


def test_rows_with_their_own_positions_and_another_mistake(server):
    q = heads(3)
    positions = by_row([0, 7, 100])
    out = turned(q, positions, layout="interleaved")
    answer = asked(server, {}, q, out, "bhnd")
    assert codes_of(answer) == ["layout_swapped", "offsets_by_row"]
    answer = asked(server, {"positions": positions.tolist(), "positions_layout": "batch"}, q, out, "bhnd")
    assert codes_of(answer) == ["layout_swapped"]
    answer = asked(server, {"positions": positions.tolist(), "positions_layout": "batch", "tensor_layout": "bnhd"}, q, turned(q, positions), "bhnd")
    assert codes_of(answer) == ["tensor_layout_other"]
    answer = asked(server, {"positions": (positions + 1).tolist(), "positions_layout": "batch"}, q, turned(q, positions), "bhnd")
    assert codes_of(answer) == ["off_by_one"]


def test_rows_that_share_an_offset(server):
    q = heads(3)
    assert codes_of(asked(server, {}, q, turned(q, np.arange(N) + 7), "bhnd")) == ["offset_other"]


# ---- Shapes as modules return them -----------------------------------------------------------------------------------------------


def encoded(server, **fields):
    return {name: np.asarray(a) for name, a in from_safetensors(server.ask("/encode", **fields, format="safetensors")).items()}


def sent(**arrays):
    return {name: inline(Tensor(np.ascontiguousarray(a), "i64" if a.dtype.kind == "i" else "f32")) for name, a in arrays.items()}


AXES = {"[1,n,d]": lambda a: a[None], "[n,1,d]": lambda a: a[:, None], "[n,1,1,d]": lambda a: a[:, None, None], "[1,1,n,d]": lambda a: a[None, None]}


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("belief", [{"scheme": "rope", "head_dim": 16}, {"scheme": "rope", "head_dim": 16, "form": "expanded"},
                                    {"scheme": "sinusoidal", "dim": 16}])
def test_axes_of_length_one(server, belief, axes):
    arrays = encoded(server, **belief, len=9, offset=2)
    assert codes_of(diagnose(server, {**belief, "len": 9, "offset": 2, **sent(**{k: AXES[axes](a) for k, a in arrays.items()})})) == ["as_believed"]
    wrong = {name: AXES[axes](a.astype("f4")) for name, a in encoded(server, **belief, len=9, offset=3).items()}
    answer = diagnose(server, {**belief, "len": 9, "offset": 2, **sent(**wrong)})
    assert codes_of(answer) == ["off_by_one"]
    index = answer["belief"]["first_bad"]["index"]
    first = next(iter(wrong.values()))
    assert len(index) == first.ndim and abs(float(first[tuple(index)]) - answer["belief"]["first_bad"]["found"]) < 1e-6


CHANNELS = [({"scheme": "sinusoidal", "style": "detr", "dim": 16}, None), ({"scheme": "sinusoidal", "style": "detr", "dim": 16, "normalize": False}, True),
            ({"scheme": "sinusoidal", "style": "mae", "dim": 16}, True), ({"scheme": "sinusoidal", "style": "detr", "dim": 16}, False)]


@pytest.mark.parametrize("lead", [0, 1])
@pytest.mark.parametrize("belief, first", CHANNELS)
def test_channels_first(server, belief, first, lead):
    """[dim, h, w] as /encode gives it, and its config gives it back; a batch of one before it; rows sent flat."""
    belief = {**belief, "grid": [3, 5], **({} if first is None else {"channels_first": first})}
    a = encoded(server, **belief)["encoding"]
    assert a.shape == ((16, 3, 5) if first is not False else (15, 16))
    body = {**belief, **sent(encoding=a.reshape((1,) * lead + a.shape))}
    answer = diagnose(server, body)
    assert codes_of(answer) == ["as_believed"], answer["findings"]
    one = answer["candidates"][0]
    assert np.array_equal(encoded(server, **one["config"], **one["sequence"])["encoding"], a)
    a = -a.astype("f4")
    other = diagnose(server, {**body, **sent(encoding=a.reshape((1,) * lead + a.shape))})
    assert codes_of(other)[0] == "negated"
    index = other["belief"]["first_bad"]["index"]
    assert len(index) == a.ndim + lead and abs(float(a[tuple(index[lead:])]) - other["belief"]["first_bad"]["found"]) < 1e-6


def test_channels_first_by_mistake(server):
    belief = {"scheme": "sinusoidal", "style": "mae", "dim": 16, "grid": [3, 5]}
    answer = diagnose(server, {**belief, **sent(encoding=encoded(server, **belief, channels_first=True)["encoding"])})
    assert codes_of(answer) == ["transposed"]


def test_channels_first_in_rows_of_which_only_a_part_is_compared(server):
    positions = np.arange(5000.0)
    angles = np.outer(positions, 1e4 ** (-np.arange(0, 32, 2) / 32))
    encoding = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(5000, 32)
    answer = diagnose(server, {"scheme": "sinusoidal", "dim": 32, "len": 5000, **sent(encoding=encoding.T.copy())})
    assert codes_of(answer) == ["transposed"]


def test_rows_where_channels_first_is_usual(server):
    belief = {"scheme": "sinusoidal", "style": "detr", "dim": 16, "grid": [3, 5]}
    assert codes_of(diagnose(server, {**belief, **sent(encoding=encoded(server, **belief, channels_first=False)["encoding"])})) == ["as_believed"]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("flat", [False, True])
def test_biases_of_a_batch(server, batch, flat):
    """[batch, heads, q, k], or BLOOM's [batch·heads, 1, k]."""
    belief = {"scheme": "alibi", "num_heads": 4, **({"form": "key", "q_len": 1, "k_len": 9} if flat else {"form": "symmetric", "len": 9})}
    a = encoded(server, **belief)["bias"]
    whole = np.concatenate([a] * batch) if flat else np.stack([a] * batch)
    assert codes_of(diagnose(server, {**belief, **sent(bias=whole)}))[0] == "as_believed"
    answer = diagnose(server, {**belief, **sent(bias=whole * np.float32(3))})
    assert "as_believed" not in codes_of(answer) and answer["explained"]


@pytest.mark.parametrize("flat", [False, True])
def test_a_bias_that_differs_in_the_batch_is_refused(server, flat):
    a = encoded(server, scheme="alibi", num_heads=4, form="symmetric", len=9)["bias"]
    whole = np.concatenate([a, 2 * a]) if flat else np.stack([a, 2 * a])
    response = server.post("/diagnose", {"scheme": "alibi", "num_heads": 4, **sent(bias=whole)})
    problem = response.json()
    assert response.status == 422 and problem["pointer"] == ("/num_heads" if flat else "/bias"), problem
    assert ("8" if flat else "[2,4,9,9]") in problem["detail"]


def test_maps_and_ids_of_a_batch_of_one(server):
    t5 = {"scheme": "t5", "q_len": 5, "k_len": 9}
    buckets = encoded(server, **t5, outputs=["buckets"])["buckets"].astype("i8")
    assert codes_of(diagnose(server, {**t5, **sent(buckets=buckets[None])}))[0] == "as_believed"
    ids = np.arange(7)
    assert codes_of(diagnose(server, {"scheme": "rope", "position_ids": ids[None].tolist(), "len": 7, "base": 10000}))[0] == "as_believed"
    segments = [{"type": "text", "len": 2}, {"type": "image", "grid": [1, 4, 6]}]
    mrope = {"scheme": "rope", "head_dim": 16, "channels": "mrope", "mrope_section": [2, 3, 3], "segments": segments}
    ids = encoded(server, **mrope, outputs=["positions"])["positions"].astype("i8")
    assert codes_of(diagnose(server, {**mrope, **sent(position_ids=ids[:, None])}))[0] == "as_believed"


def arranged(tensors):
    """{name of the evidence: tensor} of what the tables of a belief, as pairs, are sent as elsewhere."""
    cos, sin = np.array(tensors["cos"], "f4"), np.array(tensors["sin"], "f4")
    matrix = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)
    yield "cos_sin", np.stack([cos, sin])
    yield "cos_sin", np.concatenate([cos, sin], -1)
    yield "freqs_cis", np.stack([cos, sin], -1)
    yield "matrix", matrix
    if tensors["positions"].ndim == 1 or len(tensors["positions"]) == 1:
        yield "angles", np.outer(tensors["positions"].ravel(), tensors["inv_freq"])
    yield "inv_freq", tensors["inv_freq"]


def test_what_encode_gives_in_one_tensor_is_as_believed(server):
    """Every rotary scheme and preset: its tables in the arrangements of other libraries, its angles and frequencies."""
    failed, n_told = [], 0
    for belief in beliefs(server):
        for sequence in SEQUENCES:
            parts = {"outputs": ["cos", "sin", "inv_freq", "positions"], "form": "pairs", "dtype": "f32", "format": "safetensors"}
            response = server.post("/encode", {**belief, **sequence, **parts})
            if response.status == 200:
                break
        else:
            continue
        for name, tensor in arranged(from_safetensors(response)):
            answer = server.post("/diagnose", {**belief, **({} if name == "inv_freq" else sequence), **sent(**{name: tensor.astype("f4")})})
            codes = codes_of(answer.json()) if answer.status == 200 else [answer.json()["detail"]]
            n_told += 1
            if codes[0] != "as_believed":
                failed.append((belief, name, tensor.shape, codes))
    assert not failed and n_told > 300, (n_told, failed)
