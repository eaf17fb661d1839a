"""Rows of /analyze and /diagnose through the server: processor time of one request; and how long others wait beside them."""
import io
import json
import re
import threading
import urllib.request

import numpy

from rows import COMMIT, LIMIT, cost, row

ROPE = {"scheme": "rope", "head_dim": 128, "len": 2048}
LARGEST = [{"scheme": "sinusoidal", "dim": 512, "len": 16384, "metrics": ["unique", "similarity"]},
           {"scheme": "rope", "head_dim": 128, "len": 16384, "metrics": ["unique", "similarity", "shift", "precision"]}]


def post(server, path, body, content_type="application/json", timeout=120):
    request = urllib.request.Request(server.url + path, body, {"Content-Type": content_type})
    with urllib.request.urlopen(request, timeout=timeout) as reply:
        return reply.read()


def cpu_seconds(server):
    with urllib.request.urlopen(server.url + "/metrics", timeout=10) as reply:
        return float(re.search(r"^process_cpu_seconds_total (\S+)$", reply.read().decode(), re.M)[1])


def cpu_of(server, times, ask):
    """Milliseconds of processor time of one request, of several samples."""
    found = []
    for _ in range(times):
        before = cpu_seconds(server)
        ask()
        found.append(1e3 * (cpu_seconds(server) - before))
    return found


def usual_metrics(server):
    """The metrics computed by default, but those that look at other lengths."""
    answer = json.loads(post(server, "/analyze", json.dumps({**ROPE, "len": 16, "outputs": []}).encode()))
    return [name for name in answer["results"][0] if name not in ("extrapolation", "properties")]


@row("analyze_rope", "usual metrics of rope [2048, 128] but extrapolation, properties: CPU", COMMIT, quick=True)
def analyze_rope(run):
    server = run.posencd("--answer-cache", "0")
    body = json.dumps({**ROPE, "metrics": usual_metrics(server)}).encode()
    return cost(cpu_of(server, run.rounds(9), lambda: post(server, "/analyze", body)), [], "ms")


# ---- Diagnosis ---------------------------------------------------------------------------------------------------------------

def tables(n, pairs, base=10000.0):
    angles = numpy.outer(numpy.arange(n), base ** (-numpy.arange(pairs) / pairs))
    return numpy.cos(angles), numpy.sin(angles)


def rotated(q, base=10000.0):
    """q [..., n, d] turned with halves."""
    half = q.shape[-1] // 2
    cos, sin = tables(q.shape[-2], half, base)
    a, b = q[..., :half].astype("f8"), q[..., half:].astype("f8")
    return numpy.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype("f4")


def multipart(request, **arrays):
    parts, edge = [], "edge-of-a-part"
    for name, payload in [("request", json.dumps(request).encode())] + [(n, npy(a)) for n, a in arrays.items()]:
        parts.append(f'--{edge}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.npy"\r\n\r\n'.encode() + payload + b"\r\n")
    return b"".join(parts) + f"--{edge}--\r\n".encode(), f"multipart/form-data; boundary={edge}"


def npy(array):
    out = io.BytesIO()
    numpy.save(out, array)
    return out.getvalue()


def diagnose(server, body, content_type, code):
    answer = json.loads(post(server, "/diagnose", body, content_type))
    assert [finding["code"] for finding in answer["findings"]][:1] == [code], answer["findings"]


@row("diagnose_rotated", "level-1 diagnosis of q, q_out [1,32,2048,128] f32: CPU", COMMIT)
def diagnose_rotated(run):
    server = run.posencd()
    q = numpy.random.default_rng(0).normal(size=(1, 32, 2048, 128)).astype("f4")
    body, kind = multipart({"scheme": "rope"}, q=q, q_out=rotated(q))
    return cost(cpu_of(server, run.rounds(5), lambda: diagnose(server, body, kind, "layout_swapped")), [], "ms")


@row("diagnose_tables", "level-1 diagnosis of cos, sin [2048,64] f32: CPU", COMMIT, quick=True)
def diagnose_tables(run):
    server = run.posencd()
    cos, sin = tables(2048, 64, 500000.0)
    body, kind = multipart({"scheme": "rope"}, cos=cos.astype("f4"), sin=sin.astype("f4"))
    return cost(cpu_of(server, run.rounds(9), lambda: diagnose(server, body, kind, "base_other")), [], "ms")


def llama3(pairs, base=500000.0, factor=8, length=8192):
    w = base ** (-numpy.arange(pairs) / pairs)
    smooth = numpy.clip((length * w / (2 * numpy.pi) - 1) / 3, 0, 1)
    return smooth * w + (1 - smooth) * w / factor


@row("diagnose_blind", "cos, sin [1,8192,128] of Llama 3.1 without a belief: CPU", COMMIT)
def diagnose_blind(run):
    server = run.posencd()
    angles = numpy.outer(numpy.arange(8192), numpy.tile(llama3(64), 2))[None]
    body, kind = multipart({}, cos=numpy.cos(angles).astype("f4"), sin=numpy.sin(angles).astype("f4"))
    return cost(cpu_of(server, run.rounds(5), lambda: diagnose(server, body, kind, "identified")), [], "ms")


@row("diagnose_noise", "cos, sin [1,8192,128] that nothing explains: CPU", COMMIT)
def diagnose_noise(run):
    server = run.posencd()
    cos, sin = numpy.random.default_rng(0).uniform(-1, 1, size=(2, 1, 8192, 128)).astype("f4")
    body, kind = multipart({}, cos=cos, sin=sin)
    return cost(cpu_of(server, run.rounds(5), lambda: diagnose(server, body, kind, "unexplained")), [], "ms")


@row("diagnose_xpos", "q, q_out [246,64] of xPos that nothing explains: CPU", COMMIT)
def diagnose_xpos(run):
    server = run.posencd()
    q, out = numpy.random.default_rng(0).normal(size=(2, 246, 64)).astype("f4")
    body, kind = multipart({"scheme": "xpos"}, q=q, q_out=out)
    return cost(cpu_of(server, run.rounds(5), lambda: diagnose(server, body, kind, "unexplained")), [], "ms")


# ---- Others beside the largest analyses --------------------------------------------------------------------------------------

def keep_asking(server, body, end):
    while not end.is_set():
        try:
            post(server, "/analyze", body)
        except OSError:
            end.wait(0.2)


@row("analyses_health", "p99 of /healthz beside eight of the largest analyses", LIMIT)
def analyses_health(run):
    """Eight clients, so that the workers always have an analysis to compute and others wait."""
    server, end = run.posencd("--answer-cache", "0"), threading.Event()

    def p99s():
        return [1e3 * sorted(run.transfers(server.port, "/healthz", 300)[0])[297] for _ in range(run.rounds(5))]

    idle = p99s()
    clients = [threading.Thread(target=keep_asking, args=(server, json.dumps(LARGEST[i % 2]).encode(), end)) for i in range(8)]
    for client in clients:
        client.start()
    end.wait(0.5)
    try:
        return cost(p99s(), idle, "ms", "an idle server")
    finally:
        end.set()
        for client in clients:
            client.join()
