"""What /encode gives for a request, /diagnose with the same request as its belief takes as right: every scheme and preset, in
every form that is evidence, with sizes left to their defaults."""
import io
import json

import numpy as np

from connection import at_once
from diagnosing import SEQUENCES, beliefs, codes_of
from tensors import from_safetensors, multipart, npy

EVIDENCE = [("encoding",), ("cos", "sin"), ("bias",), ("buckets",), ("index",), ("bias", "index"), ("position_ids",)]  # an index is sent as buckets
LEN = 12
ASKED_AT_ONCE = 4  # so that all workers of the server have a question
SIZES = [
    {"scheme": "rope", "partial_rotary_factor": 0.5},
    {"scheme": "rope", "partial_rotary_factor": 0.25, "layout": "interleaved"},
    {"scheme": "rope", "partial_rotary_factor": 0.5, "base": 500000},
    {"scheme": "rope", "channels": "dinov3"},
    {"scheme": "rope", "rotary_dim": 32},
    {"scheme": "rope", "rotary_dim": 32, "head_dim": 96},
    {"scheme": "rope", "scaling": {"rope_type": "linear", "factor": 4}},
    {"scheme": "rope", "arith": "float32"},
    {"scheme": "rope", "direction": -1},
    {"scheme": "rope", "offset": 7},
    {"scheme": "xpos", "partial_rotary_factor": 0.5},
    {"scheme": "xpos"},
    {"scheme": "sinusoidal"},
    {"scheme": "sinusoidal", "dim": 9},
    {"scheme": "alibi"},
    {"scheme": "alibi", "causal": True, "num_heads": 3},
    {"scheme": "t5", "seed": 0},
    {"scheme": "sandwich"},
]
FORMS = ["pairs", "expanded"]


def requests(server):
    """Everything that /encode can compute from a name and a sequence, with drawn weights where it takes them: lists, of which the first that
    is answered counts."""
    examples = [[scheme["example"]] for scheme in server.get("/schemes").json()["schemes"]]
    return examples + [in_sequences(belief) for belief in beliefs(server)] + [[{**sizes, "len": LEN}] for sizes in SIZES]


def answered(server, ways):
    return next((request for request in ways if server.post("/encode", {**request, "data": False}).status == 200), None)


def in_sequences(belief):
    return [{**belief, **sequence, **seed} for sequence in SEQUENCES for seed in ({"seed": 1}, {})]


def in_forms(request):
    yield request
    for form in FORMS:
        yield {**request, "form": form}


def encode(server, request):
    answer = server.post("/encode", {**request, "format": "npz"})
    return dict(np.load(io.BytesIO(answer.body))) if answer.status == 200 else {}


def diagnose(server, request, arrays):
    body, headers = multipart(request=json.dumps(request), **{name: npy(a) for name, a in arrays.items()})
    return server.request("POST", "/diagnose", body, headers)


# A table by distance is not added, which /diagnose says of it.
NO_EVIDENCE = "has no encoding to be added"


def complaints(server, ways):
    """(how many tensors were sent, what is wrong); the form that is the default is not sent again by its name."""
    n, wrong, seen, request = 0, [], set(), answered(server, ways)
    for asked in in_forms(request) if request else ():
        found = encode(server, asked)
        for names in EVIDENCE:
            if not all(name in found for name in names):
                continue
            arrays = {"buckets" if name == "index" else name: found[name] for name in names}
            data = b"".join(a.tobytes() for a in arrays.values())
            if data in seen:
                continue
            seen.add(data)
            answer = diagnose(server, asked, arrays)
            codes = [finding["code"] for finding in answer.json()["findings"]] if answer.status == 200 else [answer.json()["detail"]]
            if NO_EVIDENCE in codes[0] and names == ("encoding",):
                continue
            n += 1
            if answer.status != 200 or not answer.json()["explained"] or codes[0] != "as_believed":
                wrong.append(f"{asked} {names}: {codes[:3]}")
    return n, wrong


def test_what_encode_gives_is_right(server):
    counts = at_once(lambda ways: complaints(server, ways), requests(server), ASKED_AT_ONCE)
    n, wrong = sum(n for n, _ in counts), [text for _, texts in counts for text in texts]
    assert n > 240 and not wrong, "\n".join([f"{len(wrong)} of {n}"] + wrong)


# Widths that the usual head, of 64 channels, has no room for.
SECTIONS, GRID = [16, 56, 56], [2, 3, 4]
WIDE = [{"axes_dim": SECTIONS, "grid": GRID}, {"rotary_dim": 128, "len": LEN}]


def test_a_head_is_as_wide_as_what_the_belief_rotates(server):
    for fields in WIDE:
        widths, positions = (SECTIONS, np.indices(GRID).reshape(3, -1)) if "grid" in fields else ([128], np.arange(LEN)[None])
        pairs = np.hstack([np.outer(p, 10000.0 ** (-np.arange(0, n, 2) / n)) for n, p in zip(widths, positions)])
        for angles in (pairs, np.repeat(pairs, 2, 1)):  # interleaved, if each is given twice
            tables = {"cos": np.cos(angles).astype("f4").tolist(), "sin": np.sin(angles).astype("f4").tolist()}
            answer = server.ask("/diagnose", scheme="rope", **fields, **tables).json()
            assert answer["belief"]["first_bad"] is None and answer["candidates"][0]["config"]["head_dim"] == 128, (fields, answer["belief"])
    odd = server.post("/diagnose", {"scheme": "rope", "grid": GRID, "axes_dim": [16, 56, 58], **tables}).json()
    assert odd["pointer"] == "/axes_dim" and "130 channels" in odd["detail"], odd


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
    parts = {"outputs": ["cos", "sin", "inv_freq", "positions"], "form": "pairs", "dtype": "f32", "format": "safetensors"}

    def told(belief):
        """(belief, tensor, codes) of each arrangement."""
        for sequence in SEQUENCES:
            response = server.post("/encode", {**belief, **sequence, **parts})
            if response.status == 200:
                break
        else:
            return []
        found = []
        for name, tensor in arranged(from_safetensors(response)):
            answer = diagnose(server, {**belief, **({} if name == "inv_freq" else sequence)}, {name: tensor.astype("f4")})
            found.append((belief, name, tensor.shape, codes_of(answer.json()) if answer.status == 200 else [answer.json()["detail"]]))
        return found
    every = [one for found in at_once(told, beliefs(server), ASKED_AT_ONCE) for one in found]
    failed = [one for one in every if one[-1][0] != "as_believed"]
    assert not failed and len(every) > 300, (len(every), failed)
