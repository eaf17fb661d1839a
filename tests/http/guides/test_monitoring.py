"""The dashboard and the alerts of deploy/: their metrics exist, and a Prometheus that scrapes three servers with a store behind HAProxy, with
the files of deploy/ but for ports, has data for every query."""
import contextlib
import json
import re
import subprocess
import time
import urllib.parse

import pytest
import yaml

from conftest import ROOT, SANITIZED, at_url, start_server
from proxies import ENVIRONMENT, find, held_port, start_balancer
from replicas import Load, replicas
from s3_store import S3Store
from test_proxies import FLAGS, REQUESTS
from connection import ports_of, wait_until
from weights_asking import TABLE, file, put

DEPLOY = ROOT / "deploy"
pytestmark = pytest.mark.waiting
WORDS = {"sum", "by", "rate", "changes", "increase", "count", "absent", "or", "and", "histogram_quantile", "le", "status", "route", "reason", "stage",
         "operation", "outcome", "instance"}
STORE = ("--store", "s3://weights/monitored")


def dashboard_queries():
    board = json.loads((DEPLOY / "grafana/posenc.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def alert_queries():
    groups = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def scaling_query():
    return re.search(r"query: (.*)", (DEPLOY / "kubernetes/components/keda/scaledobject.yaml").read_text())[1]


def names_in(query):
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"[^\"]*\"", "", query)
    return set(re.findall(r"[a-z_]{3,}", bare)) - WORDS


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A server that has every metric: with a store whose names it has read, and a cache."""
    with S3Store() as s3, start_server(*STORE, "--store-endpoint", s3.endpoint, "--store-cache", str(tmp_path_factory.mktemp("cache")),
                                       env=s3.env()) as server:
        server.ask(scheme="rope", len=8)
        assert wait_until(lambda: b"posenc_store_index_age_seconds" in server.get("/metrics").body)
        yield server


def test_every_metric_exists(stored):
    server = stored
    page = server.get("/metrics").body.decode()
    known = set(re.findall(r"^([a-z_]+)", page, re.M))
    for query in [*dashboard_queries(), *alert_queries(), scaling_query()]:
        assert names_in(query) and names_in(query) <= known, query
    for query in [*dashboard_queries(), *alert_queries()]:
        for label, values in re.findall(r"(reason|stage)=~\"([^\"]*)\"", query):
            assert all(f'{label}="{value}"' in page for value in values.split("|")), query


def test_the_dashboard_shows_most_of_what_there_is(stored):
    """A metric that is new should be shown, or be named here."""
    shown = set().union(*map(names_in, dashboard_queries()))
    left_out = {"posenc_build_info", "posenc_buffer_bytes", "posenc_hypotheses_searched_total", "posenc_experiments", "posenc_experiments_total",
                "posenc_experiment_steps_total", "posenc_cache_bytes", "posenc_queued_jobs", "posenc_yields_total", "posenc_jobs_total",
                "posenc_undecided_values_total", "posenc_compute_seconds_total", "posenc_output_bytes_total", "posenc_analysis_seconds", "posenc_mcp_calls_total"}
    for name, kind in re.findall(r"^# TYPE (posenc_\w+) (\w+)", stored.get("/metrics").body.decode(), re.M):
        assert name in left_out or (name + "_bucket" if kind == "histogram" else name) in shown, name


def test_panels_have_places_of_their_own():
    board = json.loads((DEPLOY / "grafana/posenc.json").read_text())
    places = [tuple(panel["gridPos"][key] for key in "xywh") for panel in board["panels"]]
    assert len(set(places)) == len(places) and len({panel["id"] for panel in board["panels"]}) == len(places)
    assert all(x in (0, 12) and w == 12 for x, _, w, _ in places)


@contextlib.contextmanager
def prometheus(folder, targets):
    """Prometheus with deploy/prometheus/, whose targets have the ports of this test; its own port."""
    text = (DEPLOY / "prometheus/prometheus.yml").read_text()
    for i, target in enumerate(targets):
        text = text.replace(f"posenc-{i + 1}:8080", target)
    (folder / "prometheus.yml").write_text(text)
    (folder / "rules.yml").write_text((DEPLOY / "prometheus/rules.yml").read_text())
    with held_port() as port, open(folder / "log", "w") as log:
        process = subprocess.Popen([find("prometheus", "--version"), f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                    f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log, env=ENVIRONMENT)
        try:
            assert wait_until(lambda: process.poll() is not None or port in ports_of(process.pid) and at_url(f"http://127.0.0.1:{port}").get("/-/ready").status == 200, 30)
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            yield port
        finally:
            process.terminate()
            process.wait(20)


def ask(port, query):
    answer = at_url(f"http://127.0.0.1:{port}").get("/api/v1/query?" + urllib.parse.urlencode({"query": query})).json()
    assert answer["status"] == "success", (query, answer)
    return answer["data"]["result"]


@pytest.mark.skipif(SANITIZED, reason="the same figures, later")
def test_every_query_of_the_dashboard_has_data(tmp_path):
    with S3Store() as s3, replicas(*FLAGS, *STORE, "--store-endpoint", s3.endpoint, "--store-cache", "{folder}", env=s3.env()) as three, \
            start_balancer("haproxy", [replica.port for replica in three]) as proxy, \
            prometheus(tmp_path, [f"127.0.0.1:{replica.port}" for replica in three]) as port:
        put(three[0].server, "t", file(table=TABLE))
        with Load(proxy.port, REQUESTS, n_clients=2) as load:
            queries = [query.replace("$__rate_interval", "1m").replace("$job", "posenc") for query in dashboard_queries()] + [scaling_query()]
            end, missing = time.monotonic() + 40, queries
            while missing and time.monotonic() < end:
                time.sleep(1)
                missing = [query for query in missing if not ask(port, query)]
            assert not missing
        assert ask(port, 'count(posenc_workers{job="posenc"})')[0]["value"][1] == "3"
        for query in alert_queries():
            ask(port, query)  # it is understood
        rules = at_url(f"http://127.0.0.1:{port}").get("/api/v1/rules").json()["data"]["groups"]
        assert {rule["name"] for group in rules for rule in group["rules"]} >= {"PosencRefuses", "PosencDown", "PosencStoreAway"}
        away = [query for query in alert_queries() if query.startswith("posenc_store_reachable")][0]
        assert not ask(port, away)
        s3.kill()
        assert wait_until(lambda: len(ask(port, away)) == 3, 30)
        assert all(len(ask(port, away)) == 3 for _ in range(8) if not time.sleep(1))  # for as long as it lasts: the alert waits minutes
    assert not load.failures, load.failures[:3]
