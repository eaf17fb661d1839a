"""Laws of rows of /analyze."""
import json
import re

import numpy as np

import tensors
from laws import law

HAN = re.compile("[一-鿿]")


def parts_of(row):
    """(configurations, metrics, other fields) of a request; what stands beside configs is their default."""
    from run import made
    request = made(row["request"])
    alone = {"metrics", "k", "outputs", "train_len", "eval_len", "seed", "recipes", "dtypes", "pairing", "other_base", "tolerance", "dtype", "lang", "format"}
    beside = {name: value for name, value in request.items() if name not in alone and name != "configs"}
    configs = [{**beside, **config} for config in request.get("configs", [{}])]
    return configs, request.get("metrics"), {name: value for name, value in request.items() if name in alone and name != "metrics"}


def asked(server, row, **fields):
    from run import again, ask
    return ask(server, again(row, **fields))


@law
def analysis_is_truth(answer, row, server):
    """Every metric, and every tensor, is what truth/analysis.py computes of the same configurations."""
    from analysis_asking import check
    configs, metrics, fields = parts_of(row)
    check(server, configs, metrics, **fields)


@law
def preset_is_truth(answer, row, server):
    """A preset's configuration, as /encode resolves it, has the values of the definitions."""
    from analysis_asking import check
    config = server.ask("/encode", preset=row["request"]["preset"], len=3, data=False).json()["config"]
    kept = {name: config[name] for name in ("scheme", "head_dim", "base", "layout", "scaling")}
    results, _ = check(server, {**kept, "len": row["request"]["len"]}, row["request"]["metrics"])
    assert results == answer.json()["results"]


@law
def configs_of_encode(answer, row, server):
    """configs are resolved as by /encode."""
    found = [server.ask("/encode", **config, data=False).json()["config"] for config in row["request"]["configs"]]
    assert answer.json()["configs"] == found


@law
def sentences_in_two_languages(answer, row, server):
    for result in answer.json()["results"]:
        for name, found in result.items():
            assert {"value", "witness"} <= set(found), name
            assert found["detail"].strip() and not HAN.search(found["detail"]), (name, found["detail"])
            assert HAN.search(found["detail_zh"]) and "{" not in found["detail"] + found["detail_zh"], (name, found)


@law
def metrics_in_order(answer, row, server):
    """In the order of the catalogue, which GET /schemes lists."""
    known = [metric["name"] for metric in server.get("/schemes").json()["metrics"]]
    for result in answer.json()["results"]:
        assert list(result) == [name for name in known if name in result]


@law
def each_config_alone(answer, row, server):
    """Several configurations have the results and tensors that each has alone; without metrics all that apply are there."""
    document, together, found = answer.json(), tensors.from_json(answer), {}
    for i, config in enumerate(row["request"]["configs"]):
        alone = asked(server, row, configs=[config])
        assert document["configs"][i] == alone.json()["configs"][0]
        assert {name: value for name, value in document["results"][i].items() if name != "difference"} == alone.json()["results"][0]
        found.update({name.replace(".0", f".{i}"): values for name, values in tensors.from_json(alone).items()})
    assert {name for name in together if not name.startswith("difference.")} == set(found)
    assert all(np.array_equal(together[name], values, equal_nan=True) for name, values in found.items())
    known = {metric["name"] for metric in server.get("/schemes").json()["metrics"]}
    assert {name for result in document["results"] for name in result} == known - {"independence"}  # only where it is named


@law
def results_without_form(answer, row, server):
    """The form of an encoding changes no result."""
    plain = asked(server, row, **{name: None for name in ("form", "channels_first") if name in row["request"]})
    assert answer.json()["results"] == plain.json()["results"]


@law
def asked_by_get_and_query(answer, row, server):
    from run import in_query
    path, body = in_query("/analyze", row["request"]), json.dumps(row["request"]).encode()
    got, query = server.get(path), server.request("QUERY", "/analyze", body, {"Content-Type": "application/json"})
    assert got.body == query.body == answer.body and got.headers["ETag"] == query.headers["ETag"] and "ETag" not in answer.headers
    again = server.get(path, {"If-None-Match": got.headers["ETag"]})
    assert again.status == 304 and again.body == b""


@law
def speaks_two_languages(answer, row, server):
    """lang wins over Accept-Language; a refusal in English names no language."""
    def told(headers=None, **fields):
        found = server.ask("/analyze", headers, **row["request"], **fields)
        assert "Accept-Language" in found.headers["Vary"]
        return found.headers["Content-Language"], [one["detail"] for result in found.json()["results"] for one in result.values()]
    english, chinese = told(), told(lang="zh")
    assert english[0] == "en" and chinese[0] == "zh" and all(HAN.search(detail) for detail in chinese[1])
    assert told({"Accept-Language": "zh-CN, en;q=0.5"}) == chinese and told({"Accept-Language": "zh"}, lang="en") == english
    assert server.post("/analyze", {"len": 3}, {"Accept-Language": "zh"}).headers["Content-Language"] == "zh"
    assert "Content-Language" not in server.post("/analyze", {"len": 3}).headers


@law
def text_is_the_sentences(answer, row, server):
    text = asked(server, row, format="text")
    assert text.headers["Content-Type"] == "text/plain; charset=utf-8" and text.headers["Content-Language"].startswith(row["request"]["lang"])
    assert text.body.decode() == "".join(f"{i} {name}: {found['detail']}\n" for i, result in enumerate(answer.json()["results"]) for name, found in result.items())


@law
def lists_both_kinds(answer, row, server):
    assert sorted(answer.json()["layer_types"]) == ["full_attention", "sliding_attention"]


@law
def same_or_rounding(answer, row, server):
    assert answer.json()["results"][1]["difference"]["verdict"] in ("same", "rounding")


@law
def examples_are_analysed(answer, row, server):
    """Every example of GET /schemes has an analysis, but CoPE's, which is content throughout."""
    for scheme in answer.json()["schemes"]:
        found = server.post("/analyze", scheme["example"])
        assert found.status == (422 if scheme["name"] == "cope" else 200), (scheme["name"], found)
        assert found.status == 422 or found.json()["results"][0]
