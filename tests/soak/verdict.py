"""Owns the laws of the soak, on plain figures: each violation is one sentence. No clock and no socket here, so that tests can
show that every law can be broken."""
import statistics

MIB = 1 << 20
SLOPE_MAX = MIB  # bytes a minute
SLOPE_MINUTES = 1.5  # of calm samples after the warm-up, before a slope says anything
STEP_MAX = 24 * MIB  # shorter runs: from the first calm to the last
PEAK_MAX = 640 * MIB
def slope(samples):
    """Theil and Sen: the median of the slopes of all pairs, which a burst of memory for one upload does not move. The first
    third of a run still warms up: arenas, kept answers, what a sanitizer remembers."""
    samples = [sample for sample in samples if sample["minute"] >= samples[-1]["minute"] / 3]
    pairs = [(b["rss"] - a["rss"]) / (b["minute"] - a["minute"]) for i, a in enumerate(samples) for b in samples[i + 1:]]
    return statistics.median(pairs) if pairs else 0.0


def memory(calm, sanitized):
    if not calm:
        yield "no calm moment was measured"
        return
    minutes, allowed = calm[-1]["minute"] - calm[0]["minute"], SLOPE_MAX * (3 if sanitized else 1)
    if minutes >= SLOPE_MINUTES and slope(calm) > allowed:
        yield f"memory grows by {slope(calm) / MIB:.2f} MiB a minute over {minutes:.1f} minutes; allowed: {allowed / MIB:.0f}"
    step = STEP_MAX * (8 if sanitized else 1)  # what a sanitizer remembers of twenty seconds
    if minutes < SLOPE_MINUTES and calm[-1]["rss"] - calm[0]["rss"] > step:
        yield f"memory grew from {calm[0]['rss'] / MIB:.1f} to {calm[-1]['rss'] / MIB:.1f} MiB; allowed: {step / MIB:.0f} more"
    peak = calm[-1]["peak"]
    if peak > PEAK_MAX * (4 if sanitized else 1):
        yield f"peak memory is {peak / MIB:.0f} MiB; allowed: {PEAK_MAX / MIB:.0f}"


def descriptors_max(before, n_clients):
    return before["fds"] + 2 * n_clients + 4


def handles(before, calm, after, n_clients):
    if after is None:
        yield "the server was gone before the end"
        return
    if after["fds"] != before["fds"]:
        yield f"{after['fds']} file descriptors when all clients have gone; before they came: {before['fds']}"
    most = max((sample["fds"] for sample in calm), default=0)
    if most > descriptors_max(before, n_clients):
        yield f"{most} file descriptors in a calm moment, for {n_clients} clients"
    # Threads do not end while the server runs. A job that loses its turn keeps its own, which serves later jobs (server/loop/workers.c):
    # one for each client at most.
    least, most = max((sample["threads"] for sample in [before, *calm]), default=0), before["threads"] + n_clients
    if not least <= after["threads"] <= most:
        yield f"{after['threads']} threads when all clients have gone; allowed: from {least} to {most}"


def counters(first, last, n_busy, n_left):
    """503 and 429 are deserved where the server's own counters say that a limit was reached (`limit` counts 413)."""
    if last is None:
        return
    moved = lambda name: last.get(name, 0.0) - first.get(name, 0.0)
    rejected = moved("posenc_rejected_total") - sum(moved(f'posenc_rejected_total{{reason="{r}"}}') for r in ("head", "timeout", "limit"))
    if n_busy > rejected:
        yield f"{n_busy} answers 503 or 429, but the server counts {rejected:.0f} refusals by a limit"
    if n_left > 5 and moved("posenc_cancelled_total") == 0:
        yield f"{n_left} clients left, none counted in posenc_cancelled_total"


def violations(run):
    """run: the figures as in build/soak.json."""
    out = list(run["wrong"])
    out += memory(run["calm"], run["sanitized"])
    out += handles(run["before"], run["calm"], run["after"], run["n_clients"])
    count = lambda word: sum(n for words in run["words"].values() for w, n in words.items() if w == word)
    out += counters(run["metrics_before"], run["metrics_after"], count("busy"), count("left"))
    out += [f"nothing was asked by {name}" for name in run["expected"] if not run["words"].get(name)]
    if run["status"] != 0:
        out.append(f"the server's exit status after SIGTERM is {run['status']}")
    if run["reports"]:
        out.append(f"the server's log holds: {run['reports'][0][:300]}")
    return out
