"""A page that follows an experiment with the browser's own EventSource: unnamed events, each with an id, up to `done`; then the browser
connects again by itself, names the last id, and stops for good at the 204."""
import json
import urllib.parse

from browser import until

ASKED = {"task": "local", "steps": 20, "train_len": 16, "eval_len": 24, "configs": json.dumps([{"scheme": "alibi"}])}

FOLLOW = """
const source = new EventSource(arguments[0]);
window.followed = {events: [], ids: [], errors: [], source};
source.onmessage = (message) => { followed.events.push(JSON.parse(message.data)); followed.ids.push(message.lastEventId); };
source.onerror = () => followed.errors.push(source.readyState);
"""
CONNECTING, CLOSED = 0, 2  # EventSource.readyState


def begun(server):
    """How many experiments have ended, in any way; none is running."""
    lines = dict(line.rsplit(" ", 1) for line in server.get("/metrics").body.decode().splitlines() if line.startswith("posenc_experiments"))
    assert lines["posenc_experiments"] == "0"
    return sum(float(value) for name, value in lines.items() if name.startswith("posenc_experiments_total"))


def test_a_browser_follows_an_experiment_once(open_page, server):
    page, before = open_page("view=gallery"), begun(server)
    try:
        page.run(FOLLOW, "/experiments?" + urllib.parse.urlencode(ASKED))
        until(lambda: page.run("return followed.source.readyState") == CLOSED, 10, "the end of the EventSource")
        events, ids, errors = (page.run(f"return followed.{name}") for name in ("events", "ids", "errors"))
    finally:
        page.run("window.followed?.source.close()")
    assert [event["event"] for event in events if event["event"] != "alive"] == ["start"] + ["progress"] * 3 + ["done"]
    assert ids == [str(i) for i in range(len(events))] and len(events[-1]["tensors"]["excess.0"]["data"]) == ASKED["eval_len"]
    assert errors == [CONNECTING, CLOSED]  # the body has ended; the second connection was answered 204
    assert begun(server) == before + 1
