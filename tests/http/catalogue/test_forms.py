"""What forms and pictures need beside names and ranges: groups, levels, usual values, axes, ranges, pictures in /schemes; /cmaps; /limits."""
import math

import numpy as np
import pytest

from conftest import start_server
from png_reader import Picture
from tensors import from_raw
from token_files import LINES, READER, WRITER, bearer, token_server

AXES = {"position", "query", "key", "head", "batch", "pair", "dim", "axis", "distance", "component", "term"}
FORM = {"dtype", "format", "digits", "outputs", "slice", "reduce", "data", "cmap", "vmin", "vmax", "zoom", "legend", "ascii", "columns"}
SEQUENCE = {"len", "offset", "positions", "grid", "lens", "segments", "tokens", "q_len", "k_len", "q_offset", "q_positions", "k_positions"}


@pytest.fixture(scope="module")
def catalogue(session_server):
    return session_server.get("/schemes").json()


def rows_of(place):
    """Parameter rows, nested ones too."""
    for row in place.get("parameters", []):
        yield row
        yield from rows_of(row)


def rows(catalogue):
    for scheme in catalogue["schemes"]:
        for place in (scheme, scheme.get("attention", {}), scheme.get("rotate", {})):
            yield from rows_of(place)
    yield from catalogue["common"]


def outputs(catalogue):
    for scheme in catalogue["schemes"]:
        yield from scheme["outputs"] + scheme["attention"]["outputs"]


def test_every_parameter_has_its_control(catalogue):
    groups = [group["name"] for group in catalogue["groups"]]
    used = set()
    for row in rows(catalogue):
        used.add(row["group"])
        assert row["level"] in ("basic", "more"), row
        is_number = row["type"] in ("integer", "number")
        assert ("usual" in row) == ("spacing" in row) == is_number, row
        if not is_number:
            continue
        lo, hi = row["usual"]
        assert row.get("min", -math.inf) <= lo < hi <= row.get("max", math.inf) and math.isfinite(hi - lo), row
        assert row["default"] is None or lo <= row["default"] <= hi, row
        assert row["spacing"] == ("log" if lo > 0 and hi / lo >= 64 else "linear"), row
        assert row["type"] == "number" or all(isinstance(x, int) for x in (lo, hi)), row
    assert used == set(groups) and len(groups) == len(used)


def test_every_form_shows_something_at_once(catalogue):
    """Every scheme with parameters of its own, and the sequence; but not all of them."""
    for scheme in catalogue["schemes"]:
        levels = {row["level"] for row in scheme["parameters"]}
        assert levels == {"basic", "more"}, scheme["name"]
    level = {row["name"]: row["level"] for place in [{"parameters": catalogue["common"]}, *catalogue["schemes"][0].values(), *catalogue["schemes"]]
             if isinstance(place, dict) for row in place.get("parameters", [])}
    assert {name for name in ("len", "dim", "base", "head_dim", "num_heads", "causal", "scaling", "seed") if level[name] == "basic"} == {
        "len", "dim", "base", "head_dim", "num_heads", "causal", "scaling", "seed"}
    assert level["arith"] == level["rotary_offset"] == level["key_mask"] == level["digits"] == "more"


def test_beside_the_schemes(catalogue):
    assert SEQUENCE | FORM <= {row["name"] for row in catalogue["common"]}
    assert {row["name"]: row["group"] for row in catalogue["common"]}["cmap"] == "picture"
    assert {scheme["family"] for scheme in catalogue["schemes"]} == {family["name"] for family in catalogue["families"]}


def test_axes_are_those_of_the_shape(catalogue):
    for output in outputs(catalogue):
        terms = output["shape"].split(",") if output["shape"] else []
        assert len(output["axes"]) == len(terms) and set(output["axes"]) <= AXES, output
        for term, axis in zip(terms, output["axes"]):
            assert {"n": "position", "q_len": "query", "k_len": "key", "num_heads": "head", "rotary_dim/2": "pair", "dim": "dim"}.get(term, axis) == axis


def test_a_range_holds_all_values(catalogue, session_server):
    """Of examples, of the picture, and of requests that stretch it."""
    stretched = {"sinusoidal": [{"len": 40, "dim": 33, "odd": "pad", "angle_scale": 900}, {"grid": [5, 7], "dim": 24, "style": "detr", "normalize": True},
                                {"positions": [-1e9, 0.5, 2.0 ** 40], "dim": 64, "base": 0.01}]}
    found = 0
    for scheme in catalogue["schemes"]:
        ranges = {output["name"]: output["range"] for output in scheme["outputs"] if output["range"]}
        found += len(ranges)
        for request in [scheme["example"]] * bool(ranges) + [{"scheme": scheme["name"], **more} for more in stretched.get(scheme["name"], [])]:
            answer = from_raw(session_server.ask(**request, format="raw"))
            for name, (lo, hi) in ranges.items():
                assert lo <= answer[name].min() and answer[name].max() <= hi and answer[name].max() - answer[name].min() > (hi - lo) / 2, (request, name)
    probs = next(output for output in outputs(catalogue) if output["name"] == "probs")
    assert probs["range"] == [0, 1] and found >= 4
    yarn = session_server.ask(scheme="rope", len=64, scaling={"type": "yarn", "factor": 40, "original_max_position_embeddings": 64}, format="raw")
    assert from_raw(yarn)["cos"].max() > 1  # so cosines have no range that always holds
    assert next(output for output in outputs(catalogue) if output["name"] == "cos")["range"] is None


def test_every_picture_is_answered(catalogue, session_server):
    for scheme in catalogue["schemes"]:
        assert (scheme["picture"] is None) == ("/encode" not in scheme["endpoints"]), scheme["name"]
        if scheme["picture"] is None:
            continue
        answer = session_server.get(scheme["picture"])
        assert answer.status == 200 and answer.headers["Content-Type"] == "image/png", scheme["name"]
        indices = Picture(answer.body).pixels
        assert scheme["name"] == "none" or len(np.unique(indices)) > 1, scheme["name"]


# ---- /cmaps -------------------------------------------------------------------------------------------------------------------


def test_colours_are_those_of_pictures(session_server):
    """Values 0 to 254 as a picture: value k has colour k of the list."""
    maps = session_server.get("/cmaps").json()["cmaps"]
    assert [cmap["name"] for cmap in maps] == ["viridis", "magma", "coolwarm", "gray"]
    assert maps[3]["colors"] == [f"#{k:02x}{k:02x}{k:02x}" for k in np.rint(np.arange(255) * 255 / 254).astype(int)]
    for cmap in maps:
        table = [[k, 0] for k in range(255)]
        answer = session_server.ask(scheme="learned", dim=2, len=255, table=table, format="png", cmap=cmap["name"], zoom=1, slice=[None, [0, 1]])
        picture = Picture(answer.body)
        drawn = ["#%02x%02x%02x" % tuple(picture.palette[index][:3]) for index in picture.pixels[:, 0]]
        assert drawn == cmap["colors"] and len(drawn) == 255


# ---- /limits ------------------------------------------------------------------------------------------------------------------


def test_limits_are_those_that_refuse(session_server):
    flags = {"max_body": 64 << 10, "max_answer": 1 << 20, "max_work": 10 ** 8, "max_analysis": 10 ** 5}
    with start_server(*(word for name, value in flags.items() for word in ("--" + name.replace("_", "-"), str(value)))) as server:
        limits = server.get("/limits").json()
        assert flags.items() <= limits.items()
        assert server.post("/encode", {"scheme": "none", "len": 2, "dim": 2, "positions": [0] * (64 << 10)}).status == 413
        for floats, status in ((limits["max_answer"] // 4, 200), (limits["max_answer"] // 4 + 4, 413)):
            assert server.get(f"/encode?scheme=none&dim=4&format=raw&len={floats // 4}").status == status
    limits = session_server.get("/limits").json()
    for position, status in ((limits["position"], 200), (limits["position"] + 1, 422)):
        assert session_server.post("/encode", {"scheme": "none", "dim": 1, "len": 1, "offset": position}).status == status
    for side, status in ((limits["picture_side"], 200), (limits["picture_side"] + 1, 413)):
        assert session_server.get(f"/encode?scheme=none&dim=1&format=png&zoom=1&len={side}").status == status
    for n, status in ((limits["configs"], 200), (limits["configs"] + 1, 422)):
        assert session_server.post("/analyze", {"scheme": "none", "len": 2, "dim": 2, "metrics": ["bounds"], "configs": [{}] * n}).status == status


def test_limits_list_the_routes(session_server):
    routes = session_server.get("/limits").json()["routes"]
    document = session_server.get("/openapi.json").json()
    described = {path: {method.replace("x-", "").upper() for method in item if method != "parameters"} for path, item in document["paths"].items()}
    assert {path: set(methods) for path, methods in routes.items()} == described


def test_limits_say_what_the_token_may_do():
    with token_server(LINES) as server:
        for headers, may_write in (({}, False), (bearer("nonsense"), False), (bearer(READER), False), (bearer(WRITER), True), (bearer(READER), False)):
            answer = server.get("/limits", headers)
            assert answer.status == 200 and answer.json()["private"] is True and answer.json()["may_write"] is may_write
        assert server.get("/cmaps").status == 200
        assert server.get("/schemes").status == 401
