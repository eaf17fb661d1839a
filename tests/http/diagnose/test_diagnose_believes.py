"""What /encode gives for a request, /diagnose with the same request as its belief takes as right: every scheme and preset, in
every form that is evidence, with sizes left to their defaults."""
import io
import json

import numpy as np

from tensors import multipart, npy

EVIDENCE = [("encoding",), ("cos", "sin"), ("bias",), ("buckets",), ("position_ids",)]
LEN = 12
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
    """(name, request) of everything that /encode can compute from a name and a length."""
    catalogue = server.get("/schemes").json()
    for scheme in catalogue["schemes"]:
        yield scheme["name"], json.loads(scheme["example"]) if isinstance(scheme["example"], str) else scheme["example"]
    for preset in server.get("/presets").json()["presets"]:
        yield preset["name"], {"preset": preset["name"], "len": LEN}
    for sizes in SIZES:
        yield json.dumps(sizes), {**sizes, "len": LEN}


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


# Encodings that /diagnose refuses in words: a table by distance is not added, and a grid's has more axes.
NO_EVIDENCE = "has no encoding to be added"


def is_evidence(name, array):
    return name != "encoding" or array.ndim == 2


def complaints(server, name, request):
    for asked in in_forms(request):
        found = encode(server, asked)
        for names in EVIDENCE:
            if not all(n in found and is_evidence(n, found[n]) for n in names):
                continue
            answer = diagnose(server, asked, {n: found[n] for n in names})
            codes = [finding["code"] for finding in answer.json()["findings"]] if answer.status == 200 else [answer.json()["detail"]]
            if NO_EVIDENCE in codes[0] and names == ("encoding",):
                continue
            if answer.status != 200 or not answer.json()["explained"] or codes[0] != "as_believed":
                yield f"{name} {asked} {names}: {codes[:3]}"


def test_what_encode_gives_is_right(server):
    wrong, n = [], 0
    for name, request in requests(server):
        n += 1
        wrong += complaints(server, name, request)
    assert n > 60 and not wrong, "\n".join([f"{len(wrong)} of {n}"] + wrong)


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
