"""Requests of /analyze and /diagnose over schemes, metrics and kinds of evidence; the work that a refusal states for each, and the processor
time that the server spends on it."""
import itertools
import json
import math
import re
import statistics
import time
import urllib.error
import urllib.request

SCHEMES = {
    "sinusoidal": {"dim": 64}, "rope": {"head_dim": 128}, "xpos": {"head_dim": 128}, "learned": {"dim": 64, "seed": 1},
    "floater": {"dim": 64, "seed": 1}, "recursive": {"dim": 128, "seed": 1}, "alibi": {}, "t5": {"seed": 1},
    "kerple": {"num_heads": 8, "r1": [1] * 8, "r2": [0.5] * 8}, "sandwich": {}, "fire": {"seed": 1}, "binary": {"dim": 16}, "shaw": {"seed": 1},
}
METRICS = ["unique", "shift", "bounds", "step", "norms", "similarity", "wavelengths", "decay", "precision", "collisions", "receptive",
           "extrapolation", "properties"]


def drawn(*shape, seed=1):
    return {"shape": list(shape), "seed": seed, "std": 1}


def angles(n, pairs):
    return [[p * 10000 ** (-c / pairs) for c in range(pairs)] for p in range(n)]


def each(function, rows):
    return [[function(x) for x in row] for row in rows]


# Of tensors that are as believed, the arithmetic is told too: that is most of their work.
EVIDENCE = {
    "cos, sin [8,2048]": {"cos": drawn(8, 2048), "sin": drawn(8, 2048, seed=2)},
    "cos, sin of xpos": {"scheme": "xpos", "cos": drawn(64, 32), "sin": drawn(64, 32, seed=2)},
    "cos, sin in float32": {"scheme": "rope", "arith": "float32", "cos": drawn(64, 32), "sin": drawn(64, 32, seed=2)},
    "q, q_out [16,4096]": {"q": drawn(16, 4096), "q_out": drawn(16, 4096, seed=2)},
    "q, q_out [2,64,64]": {"q": drawn(2, 64, 64), "q_out": drawn(2, 64, 64, seed=2)},
    "q, q_out of xpos": {"scheme": "xpos", "q": drawn(2, 256, 64), "q_out": drawn(2, 256, 64, seed=2)},
    "cos, sin [8192,128]": {"cos": drawn(8192, 128), "sin": drawn(8192, 128, seed=2)},
    "encoding [64,64]": {"encoding": drawn(64, 64)},
    "encoding [4096,64]": {"encoding": drawn(4096, 64)},
    "encoding [4,16384]": {"encoding": drawn(4, 16384)},
    "encoding of floater": {"scheme": "floater", "seed": 1, "encoding": drawn(64, 64)},
    "bias": {"bias": drawn(8, 64, 64)},
    "bias [8,256,256]": {"bias": drawn(8, 256, 256)},
    "bias of sandwich": {"scheme": "sandwich", "bias": drawn(8, 64, 64)},
    "bias of fire": {"scheme": "fire", "seed": 1, "bias": drawn(8, 32, 32)},
    "bias of t5": {"scheme": "t5", "seed": 1, "bias": drawn(8, 64, 64)},
    "scores [2,64,64]": {"scheme": "rope", "q": drawn(2, 64, 64), "k": drawn(2, 64, 64, seed=2), "scores": drawn(2, 64, 64, seed=3)},
    "probs of alibi": {"scheme": "alibi", "num_heads": 2, "q": drawn(2, 64, 64), "k": drawn(2, 64, 64, seed=2), "probs": drawn(2, 64, 64, seed=3)},
    "cos, sin of a batch": {"cos": drawn(4, 256, 64), "sin": drawn(4, 256, 64, seed=2)},
    "cos, sin as believed": {"scheme": "rope", "head_dim": 64, "cos": each(math.cos, angles(1024, 32)), "sin": each(math.sin, angles(1024, 32))},
    "angles as believed": {"scheme": "rope", "head_dim": 256, "angles": angles(512, 128)},
    "inv_freq as believed": {"scheme": "rope", "head_dim": 256, "inv_freq": angles(2, 128)[1]},
    "encoding as believed": {"scheme": "sinusoidal", "dim": 128, "layout": "half", "encoding": [s + c for s, c in zip(each(math.sin, angles(512, 64)), each(math.cos, angles(512, 64)))]},
}


# Sizes that make an example of the catalogue long enough to be measured.
LARGER = {"dim": 256, "head_dim": 128, "bar_dim": 64, "len": 512, "num_freqs": 32, "grid": [16, 16]}
GRIDS = [16, 32], [8, 8, 8], [2, 2, 3, 3, 2, 2, 3]


def variants(scheme):
    """(name, request) of a scheme of GET /schemes: its example in each style and arithmetic, on one axis and on several."""
    example = {name: LARGER.get(name, value) for name, value in scheme["example"].items()}
    words = {p["name"]: p["values"] for p in scheme["parameters"] if p["name"] in ("style", "arith")}
    for grid in (None, *GRIDS):
        for values in itertools.product(*words.values()):
            request = {**example, **dict(zip(words, values))}
            if grid:
                request.pop("len", None)
                request["grid"] = grid
            if request.get("style") == "perceiver":
                request.pop("num_freqs")
            yield " ".join([scheme["name"], *values, f"on {len(grid)} axes" if grid else ""]).strip(), request


def catalogue(url):
    with urllib.request.urlopen(url + "/schemes") as reply:
        return json.load(reply)["schemes"]


def cases(length, schemes=()):
    """(name, path, request); schemes: those of GET /schemes that are tried too."""
    for scheme in schemes:
        for name, request in variants(scheme):
            for metric in ("bounds", "step"):
                yield f"{metric} of {name}", "/analyze", {**request, "metrics": [metric], "outputs": []}
    for scheme, fields in SCHEMES.items():
        for metric in METRICS:
            yield f"{metric} of {scheme}", "/analyze", {"scheme": scheme, **fields, "len": length, "metrics": [metric], "outputs": []}
        two = [{"scheme": scheme, **fields}, {"scheme": scheme, **fields}]
        yield f"difference of {scheme}", "/analyze", {"configs": two, "len": length, "metrics": ["difference"], "outputs": []}
    for name, request in EVIDENCE.items():
        yield name, "/diagnose", request


# ---- Every route, and every tool of /mcp -----------------------------------------------------------------------------------------------


def longrope(base, pairs=2048):
    return {"rope_type": "longrope", "rope_theta": base, "original_max_position_embeddings": 4096, "short_factor": [2] * pairs,
            "long_factor": [round(1 + base / 1e5 + i % 9 / 10, 2) for i in range(pairs)]}


HF = {"model_type": "gemma3_text", "head_dim": 4096, "hidden_size": 131072, "num_attention_heads": 32, "num_hidden_layers": 34,
      "max_position_embeddings": 131072, "sliding_window": 1024,
      "rope_parameters": {"full_attention": longrope(1e4), "sliding_attention": longrope(2e4)}}
TABLE = {"scheme": "sinusoidal", "len": 1 << 20, "dim": 512}
QUERIES = drawn(8, 4096, 128)
FULL = {name: QUERIES for name in ("q", "k", "v")}
INFER = {"inputs": [], "parameters": {"len": 1 << 20, "head_dim": 128}, "outputs": [{"name": "cos"}]}
EXPERIMENT = {"task": "local", "steps": 20000, "configs": [{"scheme": "alibi"}, {"scheme": "rope"}]}
PLACES = {"{name}": "rope", "{version}": "1", "{preset}": "llama-3.1", "{file}": "index.html", "{build}": "x"}

# The path of a row: the flag that limits it and a request over the limit. None: nothing that a client sends makes it compute for long.
ROUTES = {
    "/encode": ("--max-work", TABLE), "/rotate": ("--max-work", {"scheme": "rope", "q": QUERIES}),
    "/attention": ("--max-work", {"scheme": "alibi", **FULL}),
    "/analyze": ("--max-analysis", {"scheme": "sandwich", "num_heads": 16, "len": 16384, "metrics": ["bounds"], "outputs": []}),
    "/diagnose": ("--max-analysis", {"encoding": [[0.5 * ((i * j) % 7) for j in range(256)] for i in range(64)]}),
    "/diagnose/probe": ("--max-analysis", {"scheme": "rope", "head_dim": 4096}),
    "/check": ("--max-analysis", {"scheme": "rope", "cos": each(math.cos, angles(512, 64)), "sin": each(math.sin, angles(512, 64))}),
    "/explain": ("--max-analysis", {"hf_config": HF}), "/translate": ("--max-analysis", {"hf_config": HF}),
    "/golden": ("--max-analysis", {"scheme": "rope", "head_dim": 128, "layout": "half"}), "/golden/{preset}": ("--max-analysis", None),
    "/derive": None, "/experiments": ("--experiment-seconds", EXPERIMENT),
    "/zarr/{query}/{key}": ("--max-work", "/zarr/scheme=rope&len=1048576&head_dim=128/cos/0.0"),
    "/v2/models/{name}/infer": ("--max-work", INFER), "/v2/models/{name}/versions/{version}/infer": ("--max-work", INFER),
    "/mcp": None, "/presets": None, "/presets/{name}": None, "/weights": None, "/weights/{name}": None,
    **dict.fromkeys(["/schemes", "/schemes/{name}", "/cmaps", "/openapi.json", "/healthz", "/readyz", "/metrics", "/version", "/limits",
                     "/", "/docs", "/ui/{build}/{file}", "/clients/{file}", "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models",
                     "/v2/models/stats", "/v2/repository/index", "/v2/repository/models/{name}/load",
                     "/v2/repository/models/{name}/unload"]),
    **{f"/v2/models/{{name}}{version}{end}": None for version in ("", "/versions/{version}") for end in ("", "/ready", "/config", "/stats")},
}

# The same of a tool; a path: as its route.
TOOLS = {**{path[1:]: path for path in ("/encode", "/rotate", "/attention", "/analyze", "/diagnose", "/check", "/explain", "/translate")},
         "picture": ("--max-work", TABLE), "experiment": "/experiments", "schemes": None, "presets": None, "derive": "/derive"}


def tool_law(tool):
    law = TOOLS[tool]
    return ROUTES[law] if isinstance(law, str) else law


def routes(server):
    """{path: its methods} of the description, without HEAD."""
    return {path: [m.upper() for m in row if m in ("get", "post", "put", "delete")] for path, row in server.get("/openapi.json").json()["paths"].items()}


def tools(server):
    listed = server.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).json()
    return [tool["name"] for tool in listed["result"]["tools"]]


def call_of(tool, arguments):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def named(path):
    """A path of the description, with a name in each of its places."""
    for place, word in PLACES.items():
        path = path.replace(place, word)
    return path


def heaviest(path, methods):
    """(method, path, body) of a row's request: JSON or nothing."""
    law = ROUTES[path]
    if law and isinstance(law[1], str):
        return "GET", law[1], None
    path = named(path)
    return ("POST", path, law[1]) if law and law[1] else (methods[0], path, {} if methods[0] == "POST" else None)


def ask(url, path, request):
    """(status, body)."""
    question = urllib.request.Request(url + path, json.dumps(request).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(question, timeout=300) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def stated(url, path, request):
    """Multiply-adds by the words of a server that allows one; None: no such metric of this scheme."""
    status, body = ask(url, path, request)
    found = re.search(rb"(?:needs|takes)(?: up to| about)? ([\d.e+]+) (?:multiply-adds|multiplications)", body)
    assert status == 422 or found, (status, body)
    return float(found[1]) if found else None


def clock(pid):
    """Processor time of a process, in seconds: Linux makes a clock's number of a process's."""
    return time.clock_gettime(~pid << 3 | 2)


def spent(pid, url, path, request):
    """(seconds of processor time, answer)."""
    begun = clock(pid)
    status, body = ask(url, path, request)
    assert status == 200, (status, body[:300])
    return clock(pid) - begun, body


def ratios(pid, url, asked, apart):
    """{name: nanoseconds of processor time for each multiply-add stated} of {name: (path, request, work)}. What is further from the median
    than apart is asked again, and the least of its times counts: the first may have brought pages into memory, and other programs slow
    the processor."""
    def once(name):
        path, request, work = asked[name]
        return 1e9 * spent(pid, url, path, request)[0] / work

    found = {name: once(name) for name in asked}
    for _ in range(4):
        most = apart * statistics.median(found.values())
        found = {name: min(ratio, once(name)) if ratio > most else ratio for name, ratio in found.items()}
    return found
