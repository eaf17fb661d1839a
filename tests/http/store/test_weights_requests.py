"""Requests that name stored weights (core/schemes/SCHEMES.md): our names, map, checkpoints' names, tags of answers."""
import hashlib
import json
import struct

import numpy as np
import pytest

from asking import refused
from truth.bias import t5
from tensors import encode, from_raw, multipart, npy
from weights_asking import HF, OTHER, RNG, T5, TABLE, clean, file, named, put  # noqa: F401 - clean is a fixture


# ---- Requests that name them -------------------------------------------------------------------------------------------

def test_stored_is_sent(clean):
    put(clean, "small", file(table=TABLE))
    sent = clean.ask(**T5, table=TABLE.tolist())
    stored = clean.ask(**T5, weights="small")
    assert stored.body == sent.body and stored.headers["Posenc-Tensors"] == sent.headers["Posenc-Tensors"]
    want = t5(TABLE.astype("f8"), np.arange(9.0), np.arange(9.0))
    np.testing.assert_array_equal(from_raw(stored)["bias"], want.astype("f4"))
    assert clean.ask(**T5, weights={"name": "small"}).body == sent.body
    assert clean.ask(**T5, weights={"name": "small", "sha256": hashlib.sha256(file(table=TABLE)).hexdigest().upper()}).body == sent.body
    assert clean.get("/encode?scheme=t5&num_heads=2&len=9&format=raw&weights=small").body == sent.body
    assert clean.get('/encode?scheme=t5&num_heads=2&len=9&format=raw&weights=%7B"name":"small"%7D').body == sent.body
    body, headers = multipart(request=json.dumps({**T5, "weights": "small"}))
    assert clean.post("/encode", body, headers).body == sent.body


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_dtypes_and_odd_places(clean, dtype):
    """The header's length decides where the data begin; some readers' files are not padded."""
    table = TABLE.astype(dtype)
    raw = table.tobytes()
    word = {"f2": "F16", "f4": "F32", "f8": "F64"}[dtype]
    sent = clean.post("/encode", *multipart(request=json.dumps(T5), table=npy(table))).body
    for spaces in range(9):
        text = json.dumps({"table": {"dtype": word, "shape": [32, 2], "data_offsets": [3, 3 + len(raw)]}, "pad": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}).encode() + b" " * spaces
        put(clean, "odd", struct.pack("<Q", len(text)) + text + b"\1\2\3" + raw, 200 if spaces else 201)
        assert clean.ask(**T5, weights="odd").body == sent, spaces


def test_map(clean):
    put(clean, "two", named({"left.bias": TABLE, "right.bias": OTHER, "table.x": OTHER}))
    for name, table in (("left.bias", TABLE), ("right.bias", OTHER)):
        got = clean.ask(**T5, weights={"name": "two", "map": {"table": name}})
        assert got.body == clean.ask(**T5, table=table.tolist()).body
    refused(clean, "/weights", "left.bias", "map", **T5, weights="two")
    refused(clean, "/weights/map/table", "left.bias", **T5, weights={"name": "two", "map": {"table": "left.bia"}})
    refused(clean, "/weights/map/tabel", "table", **T5, weights={"name": "two", "map": {"tabel": "left.bias"}})
    refused(clean, "/weights/map/table", **T5, weights={"name": "two", "map": {"table": 3}})
    refused(clean, "/weights/map/table", "once", **T5, table=TABLE.tolist(), weights={"name": "two", "map": {"table": "left.bias"}})
    refused(clean, "/weights/map", **T5, weights={"name": "two", "map": {}})
    refused(clean, ("/weights", "/weights/map"), **T5, weights={"name": "two", "map": ["table"]})


def test_names_of_checkpoints(clean):
    """Only if exactly one tensor fits."""
    put(clean, "hf", named({HF: TABLE, "shared.weight": np.zeros((4, 4), "f4")}))
    sent = clean.ask(**T5, table=TABLE.tolist()).body
    assert clean.ask(**T5, weights="hf").body == sent
    put(clean, "hf", named({"encoder.relative_attention_bias.weight": TABLE}), 200)  # MPNet's
    assert clean.ask(**T5, weights="hf").body == sent
    put(clean, "hf", named({"relative_attention_bias.weight": TABLE}), 200)
    assert clean.ask(**T5, weights="hf").body == sent
    put(clean, "hf", named({HF: TABLE, "decoder." + HF[8:]: OTHER}), 200)
    refused(clean, "/weights", "2 tensors", HF, "map", **T5, weights="hf")
    assert clean.ask(**T5, weights={"name": "hf", "map": {"table": HF}}).body == sent
    put(clean, "hf", named({HF: OTHER, "table": TABLE}), 200)  # our name counts before theirs
    assert clean.ask(**T5, weights="hf").body == sent
    put(clean, "hf", named({"xrelative_attention_bias.weight": TABLE}), 200)  # the end of a word is no name
    refused(clean, "/weights", "xrelative_attention_bias.weight", **T5, weights="hf")


def test_swin_names(clean):
    table = RNG.normal(size=(9, 3)).astype("f4")
    request = {"scheme": "swin", "num_heads": 3, "grid": [2, 2], "format": "raw"}
    put(clean, "swin", named({"layers.0.blocks.0.attn.relative_position_bias_table": table, "layers.0.blocks.0.attn.qkv.weight": table}))
    assert clean.ask(**request, weights="swin").body == clean.ask(**request, table=table.tolist()).body


def test_swinv2_names(clean):
    """A network, and a scale that checkpoints have as [num_heads, 1, 1]."""
    w1, b1, w2 = (RNG.normal(size=shape).astype("f4") for shape in ((16, 2), (16,), (3, 16)))
    scale, q = RNG.normal(size=(3, 1, 1)).astype("f4"), RNG.normal(size=(3, 4, 4)).tolist()
    prefix = "layers.0.blocks.0.attn."
    put(clean, "v2", named({prefix + "cpb_mlp.0.weight": w1, prefix + "cpb_mlp.0.bias": b1, prefix + "cpb_mlp.2.weight": w2, prefix + "logit_scale": scale}))
    request = {"scheme": "swinv2", "num_heads": 3, "grid": [2, 2], "hidden": 16, "format": "raw"}
    tensors = {"w1": w1.tolist(), "b1": b1.tolist(), "w2": w2.tolist()}
    assert clean.ask(**request, weights="v2").body == clean.ask(**request, **tensors).body
    assert clean.ask("/attention", **request, q=q, k=q, weights="v2").body == \
        clean.ask("/attention", **request, q=q, k=q, **tensors, logit_scale=scale.ravel().tolist()).body


def test_names_of_a_whole_layer(clean):
    """DeBERTa's: projections of the layer, the table and its norm of the model; XLNet's segments only where they are asked for."""
    q = RNG.normal(size=(2, 5, 4)).tolist()
    ours = {"rel_embeddings": (16, 8), "norm_weight": (8,), "norm_bias": (8,), "w_q": (8, 8), "b_q": (8,), "w_k": (8, 8), "b_k": (8,)}
    ours = {name: RNG.normal(size=shape).astype("f4") for name, shape in ours.items()}
    layer = "deberta.encoder.layer.3.attention.self."
    theirs = dict(zip(["deberta.encoder.rel_embeddings.weight", "deberta.encoder.LayerNorm.weight", "deberta.encoder.LayerNorm.bias", layer + "query_proj.weight",
                       layer + "query_proj.bias", layer + "key_proj.weight", layer + "key_proj.bias"], ours.values()))
    values = {layer + "value_proj.weight": np.ones((8, 8), "f4"), layer + "value_proj.bias": np.ones(8, "f4")}  # only x has values
    put(clean, "deberta", named({**theirs, **values, "deberta.embeddings.LayerNorm.weight": np.ones(8, "f4")}))
    request = {"scheme": "deberta", "position_buckets": 8, "norm_rel_ebd": "layer_norm", "q": q, "k": q, "format": "raw"}
    sent = clean.ask("/attention", **request, **{name: value.tolist() for name, value in ours.items()})
    assert clean.ask("/attention", **request, weights="deberta").body == sent.body
    assert clean.ask("/attention", **{**request, "norm_rel_ebd": False}, weights="deberta").body != sent.body
    put(clean, "deberta", named({**theirs, layer.replace("3", "4") + "key_proj.bias": ours["b_k"]}), 200)
    refused(clean, "/weights", "b_k", path="/attention", **request, weights="deberta")  # no layer is guessed, nor left out

    ours = {name: RNG.normal(size=shape).astype("f4") for name, shape in (("u", (2, 4)), ("v_bias", (2, 4)), ("seg_embed", (2, 2, 4)), ("r_s_bias", (2, 4)))}
    put(clean, "xlnet", named({"transformer.layer.0.rel_attn." + name: ours[our] for name, our in (("r_w_bias", "u"), ("r_r_bias", "v_bias"), ("seg_embed", "seg_embed"), ("r_s_bias", "r_s_bias"))}))
    for extra, uses in (({}, ["u", "v_bias"]), ({"token_type_ids": [0, 0, 1, 1, 1]}, list(ours))):
        request = {"scheme": "xlnet", "seed": 1, "q": q, "k": q, "format": "raw", **extra}
        sent = clean.ask("/attention", **request, **{name: ours[name].tolist() for name in uses})
        assert clean.ask("/attention", **request, weights="xlnet").body == sent.body


def test_sent_counts_before_stored(clean):
    w = {name: RNG.normal(size=shape).astype("f4") for name, shape in (("w1", (16, 2)), ("b1", (16,)), ("w2", (3, 16)))}
    request = {"scheme": "swinv2", "num_heads": 3, "grid": [2, 2], "hidden": 16, "format": "raw"}
    put(clean, "net", file(**w))
    other = RNG.normal(size=(3, 16)).astype("f4").tolist()
    want = clean.ask(**request, w1=w["w1"].tolist(), b1=w["b1"].tolist(), w2=other).body
    assert clean.ask(**request, w2=other, weights="net").body == want


def test_stored_weights_that_add_nothing_to_what_is_sent(clean):
    put(clean, "small", file(table=TABLE))
    put(clean, "other", file(rows=TABLE))
    for name in ("small", "other"):
        refused(clean, "/weights", f'table is given twice, with the request and by the stored weights "{name}"', **T5, table=TABLE.tolist(), weights=name)
    refused(clean, "/weights/name", "table is given twice", **T5, table=TABLE.tolist(), weights={"name": "small"})
    refused(clean, "/weights", "have nothing named as t5's weights", **T5, weights="other")
    net = {"w1": [[1.0, 1.0]] * 16, "b1": [1.0] * 16}
    put(clean, "w2", file(b1=TABLE[0]))
    refused(clean, "/weights", "b1 is given twice", scheme="swinv2", num_heads=3, grid=[2, 2], hidden=16, **net, weights="w2")


def test_attention_with_stored(clean):
    q = RNG.normal(size=(2, 5, 4)).tolist()
    put(clean, "small", file(table=TABLE))
    request = {"scheme": "t5", "num_heads": 2, "q": q, "k": q, "v": q, "format": "raw"}
    assert clean.ask("/attention", **request, weights="small").body == clean.ask("/attention", **request, table=TABLE.tolist()).body


def test_projections_of_attention(clean):
    """w_q and its kin are weights too, where x is projected."""
    x, w = RNG.normal(size=(5, 6)).astype("f4"), {name: RNG.normal(size=(6, 6)).astype("f4") for name in ("w_q", "w_k", "w_v")}
    put(clean, "proj", file(**w))
    request = {"scheme": "none", "num_heads": 2, "x": x.tolist(), "format": "raw"}
    sent = clean.ask("/attention", **request, **{name: value.tolist() for name, value in w.items()})
    assert clean.ask("/attention", **request, weights="proj").body == sent.body


def test_learned_and_presets(clean):
    table = RNG.normal(size=(7, 4)).astype("f4")
    put(clean, "learned", file(table=table))
    np.testing.assert_array_equal(encode(clean, scheme="learned", dim=4, len=5, offset=1, weights="learned")["encoding"], table[1:6])
    put(clean, "t5", named({HF: RNG.normal(size=(32, 8)).astype("f4")}))
    assert clean.ask(preset="t5-small", len=4, weights="t5", format="raw").headers["Posenc-Tensors"].startswith("bias;")


def test_refusals(clean):
    put(clean, "small", file(table=TABLE))
    refused(clean, "/weights", 'nearest: "small"', **T5, weights="smal")
    refused(clean, "/weights/name", 'nearest: "small"', **T5, weights={"name": "smal"})
    refused(clean, "/weights", "PUT", **T5, weights="quite-another-name")
    for name in ("../small", "/etc/passwd", "http://example.org/x", "", "a" * 129, "small.safetensors/..", "\u00e9"):
        refused(clean, "/weights", "letters", **T5, weights=name)
    for value in (3, True, [], ["small"], {}, {"map": {"table": "table"}}, {"name": 3}):
        refused(clean, "/weights", **T5, weights=value)
    refused(clean, "/weights/nam", "name", **T5, weights={"nam": "small"})
    refused(clean, "/weights/sha256", "64", **T5, weights={"name": "small", "sha256": "ab"})
    refused(clean, "/weights/sha256", **T5, weights={"name": "small", "sha256": 3})
    refused(clean, "/weights", "rope", scheme="rope", len=3, weights="small")
    refused(clean, "/weights", path="/rotate", scheme="rope", q=[[1, 0]], weights="small")
    refused(clean, "/scheme", len=3, weights="small")
    refused(clean, "/scheme", "nearest", scheme="t6", len=3, weights="small")
    answer = clean.post("/encode", {**T5, "weights": {"name": "small", "sha256": "0" * 64}})
    assert answer.status == 412 and answer.json()["pointer"] == "/weights/sha256" and hashlib.sha256(file(table=TABLE)).hexdigest() in answer.json()["detail"]
    put(clean, "small", file(table=TABLE[:, :1]), 200)
    refused(clean, "/num_heads", "table", **T5, weights="small")
    refused(clean, ("/table", "/weights"), '"weights":"NAME"', scheme="t5", len=3, outputs=["bias"])


def test_null_is_not_given(clean):
    assert clean.ask(**T5, table=TABLE.tolist(), weights=None).body == clean.ask(**T5, table=TABLE.tolist()).body


# ---- Tags of answers ---------------------------------------------------------------------------------------------------

def test_the_tag_follows_the_file(clean):
    path = "/encode?scheme=t5&num_heads=2&len=6&format=raw&weights=tagged"
    put(clean, "tagged", file(table=TABLE))
    first = clean.get(path)
    assert first.headers["Cache-Control"] == "private, no-cache" and clean.get(path, {"If-None-Match": first.headers["ETag"]}).status == 304
    assert clean.get(path, {"If-None-Match": first.headers["ETag"]}).headers["Cache-Control"] == "private, no-cache"
    put(clean, "tagged", file(table=OTHER), 200)
    second = clean.get(path, {"If-None-Match": first.headers["ETag"]})
    assert second.status == 200 and second.headers["ETag"] != first.headers["ETag"] and second.body != first.body
    put(clean, "tagged", file(table=TABLE), 200)
    assert clean.get(path).headers["ETag"] == first.headers["ETag"]
    query = clean.request("QUERY", "/encode", json.dumps({"scheme": "t5", "num_heads": 2, "len": 6, "weights": "tagged"}), {"Content-Type": "application/json"})
    assert query.status == 200 and query.headers["ETag"] and query.headers["Cache-Control"] == "private, no-cache"
    assert clean.get("/encode?scheme=rope&len=2").headers["Cache-Control"].startswith("public")


def test_the_tag_tells_tensors_of_one_file_apart(clean):
    put(clean, "two", file(left=TABLE, right=OTHER))
    tags = set()
    for name in ("left", "right"):
        body = json.dumps({**T5, "weights": {"name": "two", "map": {"table": name}}})
        tags.add(clean.request("QUERY", "/encode", body, {"Content-Type": "application/json"}).headers["ETag"])
    assert len(tags) == 2 and None not in tags


def test_a_range_of_another_file(clean):
    path = "/encode?scheme=t5&num_heads=2&len=6&format=raw&weights=ranged"
    put(clean, "ranged", file(table=TABLE))
    first = clean.get(path)
    assert clean.get(path, {"Range": "bytes=4-7", "If-Range": first.headers["ETag"]}).body == first.body[4:8]
    put(clean, "ranged", file(table=OTHER), 200)
    answer = clean.get(path, {"Range": "bytes=4-7", "If-Range": first.headers["ETag"]})
    assert answer.status == 200 and len(answer.body) == len(first.body)
