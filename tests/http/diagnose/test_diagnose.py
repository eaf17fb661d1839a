"""/diagnose: verdicts, what is undecided, the forms in which a tensor comes and an answer goes. What is named in which tensor are rows
(../../cases/diagnose*.jsonl) and four families (test_diagnose_families.py)."""
import base64
import io
import json
import urllib.parse

import jsonschema
import numpy as np
import pytest

import safetensors_reader
import truth.scaling
from connection import metric
from believed import inline, rounded
from conftest import start_server
from diagnosing import FITS, ask, codes_of, diagnose, finding
from tensors import multipart, npy
from test_errors import check_problem
from token_files import bearer, token_server
from truth import evidence

# ---- Verdicts -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 8192, 100000])
def test_float32_angles(server, offset):
    """torch's recipe: the belief is right, and a finding says from which position on the angles' rounding shows."""
    n, width, base = 32, 64, np.float32(500000.0)
    inv_freq = np.float32(1) / base ** (np.arange(0, width, 2, dtype="f4") / np.float32(width))
    angle = np.arange(offset, offset + n, dtype="f4")[:, None] * inv_freq
    tables = {"cos": np.cos(angle), "sin": np.sin(angle)}
    belief = {"scheme": "rope", "head_dim": width, "base": 5e5, "len": n, "offset": offset}
    answer = ask(server, belief, **tables)
    assert [ask(server, {**belief, "strict": strict}, "/check", **tables)["fits"] for strict in (False, True)] == [True, False]
    first = answer["candidates"][0]
    assert answer["explained"] and first["verdict"] == "rounding" and first["codes"] in ([], ["angles_f32"])
    found = finding(answer, "angles_f32")
    exact = np.outer(np.arange(offset, offset + n), evidence.powers(5e5, width))
    beyond = np.maximum(*(np.abs(tables[name] - rounded(f(exact), "f32")).max(1) for name, f in (("cos", np.cos), ("sin", np.sin))))
    first, last = (offset + np.flatnonzero(beyond > k * 2.0**-24)[0] for k in (3, 5))  # 4uS, of values rounded or not
    assert first <= found["position"] <= last


@pytest.mark.parametrize("share, verdict", [(0.03, "near"), (0.2, "none")])
def test_near_is_an_error_of_five_per_cent(server, share, verdict):
    right = evidence.tensor("encoding", {"scheme": "sinusoidal"}, (30, 32))
    noise = np.random.default_rng(9).standard_normal(right.shape) * share * np.sqrt((right ** 2).mean())
    answer = diagnose(server, {"scheme": "sinusoidal", "encoding": inline(right + noise)})
    assert not answer["explained"] and all(c["verdict"] == verdict for c in answer["candidates"])
    assert answer["candidates"] or verdict == "none"
    assert codes_of(answer) == ["unexplained"]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_rotation_is_exact_within_one_rounding(server, dtype):
    """Of the number, or of float32's products: 6·2^-24 of the length of its own pair. Ten times as much of one number is no rounding, though
    another pair is a thousand times as long."""
    unit = evidence.UNIT[dtype]
    q = np.random.default_rng(10).standard_normal((8, 16))
    q[..., 3] *= 1000
    q = rounded(q, dtype)
    out = rounded(evidence.tensor("q_out", {"scheme": "rope"}, q=q), dtype)
    i = np.unravel_index(5, out.shape)
    length = np.abs(out[i[:-1]]).min() + np.abs(q[i])
    for units, verdicts in ((0, {"exact"}), (1 if dtype == "bf16" else 2, {"exact"}), (60, {"near", "none"})):
        sent = out.copy()
        sent[i] += units * unit * (length if units > 2 else np.abs(out[i]))
        answer = diagnose(server, {"scheme": "rope", "q": inline(q, dtype), "q_out": inline(sent, dtype)})
        assert answer["candidates"][0]["verdict"] in verdicts, (units, answer["candidates"][0])


# ---- Undecided ----------------------------------------------------------------------------------------------------------------

LADDER = [*range(64), *(2 ** k for k in range(6, 41))]  # positions that are asked about, in turn


def row_at(candidate, position):
    """cos, sin of a candidate's configuration at one position, by the tests' own formulas."""
    config = {name: value for name, value in candidate["config"].items() if name != "form"}
    at = {"positions": [position], **config}
    return np.concatenate([evidence.tensor(name, at, (1, 32))[0] for name in ("cos", "sin")])


def apart(pair, position):
    return float(np.abs(row_at(pair[0], position) - row_at(pair[1], position)).max())


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_what_few_rows_cannot_tell_is_undecided(server, dtype):
    """One row at position 0 has the same numbers under all scalings. The named position tells them apart."""
    answer = diagnose(server, {"scheme": "rope", "head_dim": 64, "cos": inline(np.ones((1, 32)), dtype), "sin": inline(np.zeros((1, 32)), dtype)})
    assert answer["explained"] and answer["undecided"] is not None and "undecided" in codes_of(answer), answer
    one, other = answer["undecided"]["candidates"]
    assert one == 0 < other < len(answer["candidates"])
    position = answer["undecided"]["decide"]["position"]
    pair = [answer["candidates"][i] for i in (one, other)]
    assert all(candidate["verdict"] in FITS for candidate in pair)
    bound = 16 * evidence.UNIT[dtype]
    assert apart(pair, position) >= 0.99 * bound
    assert all(apart(pair, p) <= 1.01 * bound for p in LADDER[:LADDER.index(position)]), "an earlier position decides as well"


def test_one_more_row_decides(server):
    """With the named position among the rows, one of the two is left out or the question is about others."""
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    positions, answer = [0, 1, 2], None
    for _ in range(12):
        port = {"scheme": "rope", "head_dim": 64, "positions": positions, "scaling": scaling}
        tables = {name: inline(evidence.tensor(name, port, (len(positions), 32)), "f16") for name in ("cos", "sin")}
        answer = diagnose(server, {"scheme": "rope", "head_dim": 64, "positions": positions, **tables})
        assert answer["explained"]
        if not answer["undecided"]:
            break
        position = answer["undecided"]["decide"]["position"]
        assert position not in positions
        positions = positions + [position]
    assert answer["undecided"] is None, positions
    config = answer["candidates"][0]["config"]
    found, right = ([float(w) for w in truth.scaling.inv_freq(s, b, 64, 1)] for s, b in ((config["scaling"], config["base"]), (scaling, 1e4)))
    np.testing.assert_allclose(found, right, rtol=1e-9)


def test_twelve_positions_leave_open_where_buckets_end(server):
    """The position that the answer names tells T5's candidates apart, and none before it."""
    t5 = {"scheme": "t5", "bidirectional": True}
    answer = diagnose(server, {"scheme": "t5", "buckets": inline(evidence.tensor("buckets", t5, (12, 12)), "i64")})
    said = finding(answer, "undecided")
    rival = {**t5, "max_distance": answer["candidates"][said["candidate"]]["config"]["max_distance"]}
    far = [evidence.tensor("buckets", {**b, "q_offset": said["position"]}, (1, said["position"] + 1))[0, ::-1] for b in (t5, rival)]
    assert codes_of(answer)[0] == "as_believed" and np.flatnonzero(far[0] != far[1]).tolist() == [said["position"]]


# ---- Every way in -------------------------------------------------------------------------------------------------------------

ANGLES = np.outer(np.arange(5, 13), 10000.0 ** (-np.arange(0, 8, 2) / 8))
COS, SIN = np.cos(ANGLES).astype("f4"), np.sin(ANGLES).astype("f4")
BELIEF = {"scheme": "rope", "head_dim": 8, "offset": 4}  # where offset 5 is right
ROTATED = {"scheme": "rope", "layout": "interleaved", "offset": 5, "q": [[1, 2, 3, 4]], "q_out": [[3.160435, 1.7975838, -0.107937716, 4.0949593]]}


def ways(server):
    text, tensors = json.dumps(BELIEF), {"cos": COS, "sin": SIN}
    body, headers = multipart(request=text, cos=npy(COS), sin=npy(SIN))
    yield server.post("/diagnose", body, headers)
    file = safetensors_reader.dumps(tensors, {"request": text})
    yield server.post("/diagnose", file, {"Content-Type": "application/vnd.safetensors"})
    yield server.post("/diagnose", file, {"Content-Type": "application/octet-stream"})
    packed = io.BytesIO()
    np.savez(packed, **tensors)
    yield server.post("/diagnose?" + urllib.parse.urlencode(BELIEF), packed.getvalue(), {"Content-Type": "application/zip"})
    yield server.post("/diagnose", {**BELIEF, "cos": inline(COS), "sin": inline(SIN)})
    yield server.post("/diagnose?offset=4", {"scheme": "rope", "head_dim": 8, "cos": COS.tolist(), "sin": SIN.tolist()})


def test_every_way_a_tensor_comes_in(server):
    answers = list(ways(server))
    for answer in answers:
        assert answer.status == 200, answer
        assert answer.body == answers[0].body
    assert codes_of(answers[0].json()) == ["off_by_one"] and answers[0].json()["candidates"][0]["sequence"]["offset"] == 5


def test_members_of_files_by_any_name(server):
    """As parts of a form, which are rows of ../../cases/diagnose_names.jsonl."""
    npz = io.BytesIO()
    np.savez(npz, rope_cos=COS, rope_sin=SIN)
    file = safetensors_reader.dumps({"rope_cos": COS, "rope_sin": SIN}, {"request": json.dumps(BELIEF)})
    for body, media, code in ((npz.getvalue(), "zip", "identified"), (file, "vnd.safetensors", "off_by_one")):
        answer = diagnose(server, body, {"Content-Type": f"application/{media}"})
        assert codes_of(answer)[0] == code and [(one["name"], one["as"]) for one in answer["taken"]] == [("rope_cos", "cos"), ("rope_sin", "sin")]


def test_bf16_comes_as_safetensors(server):
    cos, sin = (rounded(a, "bf16").astype("f4") for a in (COS, SIN))
    file = safetensors_reader.dumps({"cos": cos, "sin": sin}, {"request": json.dumps(BELIEF)}, ["cos", "sin"])
    by_file = diagnose(server, file, {"Content-Type": "application/vnd.safetensors"})
    assert by_file == diagnose(server, {**BELIEF, "cos": inline(cos, "bf16"), "sin": inline(sin, "bf16")})


def lone(server, array, query=""):
    return server.post("/diagnose" + query, npy(array), {"Content-Type": "application/x-npy"})


def test_a_lone_tensor_says_by_its_shape_what_it_is(server):
    encoding = evidence.tensor("encoding", {"scheme": "sinusoidal"}, (12, 16)).astype("f4")
    bias = evidence.tensor("bias", {"scheme": "alibi", "num_heads": 8}, (8, 6, 6)).astype("f4")
    for array, scheme in ((encoding, "sinusoidal"), (encoding[None], "sinusoidal"), (bias, "alibi")):
        answer = lone(server, array)
        assert answer.status == 200, answer
        assert answer.json()["candidates"][0]["config"]["scheme"] == scheme and answer.json()["belief"] is None
    for array, name in ((np.array([[0.5, np.nan]], "f4"), "encoding"), (np.full((1, 2, 2), np.nan, "f4"), "bias")):
        found = lone(server, array).json()["findings"][0]
        assert found["code"] == "not_finite" and found["pointer"] == f"/{name}" and found["found"]["n_rows"] == found["found"]["of_rows"]
    wrong = lone(server, np.zeros((2, 2, 2, 2), "i4"))
    assert wrong.status == 422 and wrong.json()["pointer"].startswith("/position_ids")
    assert codes_of(lone(server, np.arange(5, 12), "?scheme=rope&offset=4").json()) == ["off_by_one"]


def as_part(name, array):
    return multipart(request=json.dumps({"scheme": "rope", "head_dim": 8}), **{name: npy(array)})


def as_safetensors(name, array):
    """C64: the reader of our tests writes pairs of F32, and the header is changed."""
    pairs = np.stack([array.real, array.imag], -1).astype("f4")
    blob = safetensors_reader.dumps({name: pairs}, {"request": json.dumps({"scheme": "rope", "head_dim": 8})})
    old, new = f'"F32","shape":{list(pairs.shape)}'.replace(" ", ""), f'"C64","shape":{list(array.shape)}'.replace(" ", "")
    size = int.from_bytes(blob[:8], "little")
    head = blob[8:8 + size].decode().replace(" ", "").replace(old, new)
    assert new in head, head
    return len(head).to_bytes(8, "little") + head.encode() + blob[8 + size:], {"Content-Type": "application/vnd.safetensors"}


SENT = {"part": as_part, "safetensors": as_safetensors}
TURNS = np.exp(1j * np.outer(np.arange(12), evidence.powers(1e4, 8)))


@pytest.mark.parametrize("form", SENT)
def test_complex_numbers(server, form):
    dtypes = ["<c8", "<c16", ">c8", ">c16"] if form == "part" else ["<c8"]
    for dtype in dtypes:
        for order in "CF":
            turns = np.asarray(TURNS.astype(dtype), order=order)
            for array, code in ((turns, "as_believed"), (turns.conj(), "direction_reversed")):
                answer = server.post("/diagnose", *SENT[form]("freqs_cis", np.asarray(array, dtype, order=order))).json()
                assert codes_of(answer)[0] == code, (dtype, order, answer["findings"])
    check_problem(server.post("/diagnose", *SENT[form]("cos", TURNS)), 422, "/cos", ["complex numbers are only for freqs_cis; send [...,2]"])


def test_typed_numbers_are_text_and_binary_ones_are_not(server):
    table = evidence.tensor("encoding", {"scheme": "sinusoidal"}, (3, 8))
    few = {"encoding": {"npy": base64.b64encode(npy(table[:2, :2].astype("f4"))).decode()}}
    assert diagnose(server, few)["searched"], "binary numbers were not typed"


# ---- Answers ------------------------------------------------------------------------------------------------------------------


def test_the_answer_is_json(server):
    whole = server.ask("/diagnose", **ROTATED)
    assert whole.headers["Content-Type"] == "application/json" and int(whole.headers["Content-Length"]) == len(whole.body)
    assert "ETag" not in whole.headers
    assert server.ask("/diagnose", **ROTATED, format="json", outputs=[], data=True).body == whole.body


def test_sentences_for_a_person(server):
    body = {"scheme": "rope", "head_dim": 8, "offset": 5, "cos": COS.tolist(), "sin": SIN.tolist()}
    answer = server.post("/check", body, {"Accept": "text/plain"})
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain") and answer.headers["Posenc-Fits"] == "?1"
    findings = server.post("/check", body).json()["findings"]
    assert answer.body.decode() == f"fits: {findings[0]['detail']}\n" and len(findings) == 1 and ". " not in findings[0]["detail"]
    answer = server.post("/diagnose?lang=zh", {**body, "format": "text"})
    assert answer.body.decode() == "explained:" + "".join(f" {finding['detail_zh']}\n" for finding in findings)
    wrong = COS.copy()
    wrong[3][1] = 0.5
    answer = server.post("/check", {**body, "cos": wrong.tolist(), "format": "text"})
    bad = server.post("/diagnose", {**body, "cos": wrong.tolist()}).json()["belief"]["first_bad"]
    first, second = answer.body.decode().splitlines()
    assert answer.headers["Posenc-Fits"] == "?0" and first.startswith("differs: ") and bad["output"] == "cos" and bad["found"] == 0.5
    assert second == f"first difference: cos[{','.join(map(str, bad['index']))}] is 0.5, expected {bad['expected']:.4g}"
    q, q_out = np.ones((2, 8), "f4"), np.ones((2, 8), "f4")
    q_out[0, 0] = np.inf
    body, headers = multipart(request='{"scheme":"rope","format":"text"}', q=npy(q), q_out=npy(q_out))
    first, *cure, second = server.post("/check", body, headers).body.decode().splitlines()
    assert all(line.startswith("    ") for line in cure)
    assert "infinite: 1, in 1 of 2 rows" in first, "a row that is not finite is told, the others are compared"
    assert second == f"first difference: q_out[1,0] is 1, expected {np.cos(1) - np.sin(1):.4g}"


def test_strict_in_the_query_of_a_file(server):
    parts = {"cos": npy(COS), "sin": npy(SIN)}
    answer = server.post("/check?strict=true", *multipart(request=json.dumps({**BELIEF, "offset": 5}), **parts))
    assert answer.status == 200 and answer.json()["fits"] is True


def test_figures(server):
    names = ["posenc_hypotheses_searched_total", 'posenc_analysis_seconds_count{metric="diagnose"}']
    server.ask("/diagnose", **ROTATED)
    before = [metric(server, name) for name in names]
    searched = server.ask("/diagnose", {"Accept-Language": "en;q=0.31"}, **ROTATED).json()["searched"]
    after = [metric(server, name) for name in names]
    assert [b - a for a, b in zip(before, after)] == [searched, 1]


def test_the_description_and_the_catalogue_have_the_codes(server):
    document, faults = server.get("/openapi.json").json(), server.get("/schemes").json()["faults"]
    assert len({(fault["code"], fault["kind"]) for fault in faults}) == len(faults)
    for fault in faults:
        assert set(fault) == {"code", "kind", "surprise", "label", "label_zh", "summary", "summary_zh"} and fault["kind"].islower()
        assert fault["surprise"] in range(1, 9) or (fault["kind"], fault["surprise"]) == ("finding", 0), fault
    surprise = {fault["code"]: fault["surprise"] for fault in faults}
    assert [surprise[code] for code in ("layout_swapped", "scaling_other", "position_stride", "negated", "attention_factor_other", "inv_freq_other")] == [1, 2, 3, 4, 5, 8]
    schemas = document["components"]["schemas"]

    def fits(value, schema):
        return jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver("", document)).is_valid(value)
    assert fits(server.ask("/diagnose", **ROTATED).json(), schemas["DiagnosisAnswer"])
    body = document["paths"]["/diagnose"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert fits(ROTATED, body) and fits({"encoding": [[1, 2]]}, body), "no scheme is needed"
    assert list(document["paths"]["/diagnose"]) == ["parameters", "post"]
    fields = schemas["Diagnosis"]["properties"]
    assert set(fields["tensor_layout"]["enum"]) == {*evidence.LAYOUTS, *evidence.FLAT}
    assert fields["positions_layout"]["enum"] == ["axes", "batch", "batch_axes", "axes_batch"]


def test_stored_weights_of_the_belief(server):
    table = np.arange(12, dtype="f4").reshape(4, 3)
    assert server.request("PUT", "/weights/for-diagnosis", safetensors_reader.dumps({"table": table}, {})).status == 201
    try:
        found = server.ask("/diagnose", scheme="learned", weights="for-diagnosis", encoding=table.tolist()).json()
        assert found["belief"]["max_error"] == 0 and codes_of(found) == ["as_believed"]
    finally:
        server.request("DELETE", "/weights/for-diagnosis")


def test_the_same_request_gives_the_same_bytes(server):
    with start_server("--answer-cache", "0") as fresh:
        for body in (ROTATED, {**BELIEF, "cos": COS.tolist(), "sin": SIN.tolist()}):
            assert fresh.post("/diagnose", body).body == fresh.post("/diagnose", body).body


def test_tokens():
    with token_server(["reader reader-token-0123456 read"]) as server:
        assert server.post("/diagnose", ROTATED).status == 401
        assert server.post("/diagnose", ROTATED, bearer("reader-token-0123456")).status == 200
