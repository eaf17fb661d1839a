"""Requests of /analyze, and an answer compared with the reference's, field by field."""
import math

import numpy as np

import truth.analysis as analysis_truth
import truth.analysis_lengths as lengths
import truth.analysis_plans as plans
import truth.analysis_rows as rows
from tensors import from_json

NEAR = 1e-9  # of the largest number that a metric handles
PARTS = {"results", "configs", "tensors"}


def ask(server, configs, metrics=None, **fields):
    """(results, tensors by name) of configurations, or of one."""
    configs = [configs] if isinstance(configs, dict) else configs
    if metrics is not None:
        fields["metrics"] = metrics
    answer = server.ask("/analyze", configs=configs, **fields)
    document = answer.json()
    assert PARTS <= set(document), document
    return document["results"], from_json(answer)


def number(value):
    """JSON's, or the text of an infinity or NaN."""
    return float(value) if isinstance(value, str) and value in ("Infinity", "-Infinity", "NaN") else value


def is_number(value):
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def by_name(container, name):
    """An entry of an object, or of a list of objects that name themselves."""
    if isinstance(container, dict):
        return container[name]
    found = [entry for entry in container if name in entry.values()]
    assert len(found) == 1, (name, container)
    return found[0]


def compare(got, expected, scale, path):
    """Every field of the expected value stands in the answer; numbers are near."""
    got = number(got)
    if isinstance(expected, dict):
        for name, value in expected.items():
            if isinstance(got, list):
                compare(by_name(got, name), value, scale, f"{path}.{name}")
            else:
                assert isinstance(got, dict) and name in got, (path, name, got)
                compare(got[name], value, scale, f"{path}.{name}")
    elif isinstance(expected, (list, tuple, np.ndarray)):
        assert isinstance(got, (list, dict)) and len(got) == len(expected), (path, got, expected)
        for i, value in enumerate(expected):
            here = got[i] if isinstance(got, list) else got[value["recipe"]]
            compare(here, {k: v for k, v in value.items() if k != "recipe"} if isinstance(value, dict) else value, scale, f"{path}[{i}]")
    elif is_number(expected):
        assert is_number(got), (path, got, expected)
        same = got == expected or math.isclose(got, expected, rel_tol=NEAR, abs_tol=NEAR * scale)
        assert same, (path, got, expected)
    else:
        assert got == expected and type(got) is type(expected), (path, got, expected)


# ---- What stands between two honest answers ---------------------------------------------------------------------------------


def scale_of(plan, metric):
    if metric == "similarity":
        return max(1e-300, rows.size(plan.rows()) ** 2 * plan.rows().shape[1])
    if metric in ("norms", "precision", "collisions", "receptive", "extrapolation", "properties", "wavelengths"):
        return 1.0
    if metric == "decay":
        return float(len(plan.frequencies()))
    if metric == "difference":
        return 1.0
    return max(1e-300, rows.size(plan.rows()))


def check_tie_of_angles(plan, got, tensor, ask_):
    """Angles that are just reached may count as seen or not."""
    train_len = ask_.get("train_len", plan.train_len)
    eval_len = ask_.get("eval_len", 2 * train_len)
    least, most = (lengths.unseen_angles(plan, train_len, eval_len, margin) for margin in (1e-13, -1e-13))
    share = np.asarray(tensor, float)
    assert ((least - NEAR <= share) & (share <= most + NEAR)).all(), (share, least, most)
    assert math.isclose(got["unseen_angles"], share.mean(), rel_tol=NEAR, abs_tol=NEAR)
    return bool((least != most).any())


def is_shift_fragile(plan, ks):
    return any(rows.exact_shift(plan, k) is None and rows.is_fragile(plan.rows(), k) for k in ks if k < plan.n)


def without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


def check_metric(plan, metric, got, expected, tensors, ask_):
    """Where rounding decides, only that much is compared."""
    scale = scale_of(plan, metric)
    if metric == "shift" and is_shift_fragile(plan, ask_.get("k", [1])):
        assert got["method"] == "fit" and len(got["by_k"]) == len(expected["by_k"])
        return
    if metric == "properties" and analysis_truth.is_vector_run(plan) and is_shift_fragile(plan, [1]):
        for name, wish in expected["wishes"].items():
            if name != "linear":
                compare(by_name(got["wishes"], name), wish, max(scale, rows.size(plan.rows())), f"{metric}.{name}")
        return
    if metric == "properties":
        scale = max(scale, rows.size(plan.rows()))
    if metric == "extrapolation" and "unseen_angles" in expected:
        if check_tie_of_angles(plan, got, tensors["unseen"], ask_):
            expected = without(expected, "unseen_angles", "witness", "value")
    compare(got, expected, scale, metric)
    assert isinstance(got["detail"], str) and isinstance(got["detail_zh"], str)


def check(server, configs, metrics=None, **fields):
    """Every metric that is asked for (or applies) is the reference's."""
    configs = [configs] if isinstance(configs, dict) else configs
    results, tensors = ask(server, configs, metrics, **fields)
    parameters = {name: fields[name] for name in fields if name not in ("outputs", "lang")}
    expected = analysis_truth.analyze(configs, metrics, **parameters)
    assert len(results) == len(configs)
    for i, (config, got, wanted) in enumerate(zip(configs, results, expected["results"])):
        plan = plans.Plan(config)
        assert list(got) == list(wanted), (config, list(got), list(wanted))
        mine = {name.rpartition(".")[0]: values for name, values in tensors.items() if name.endswith(f".{i}")}
        for metric in wanted:
            try:
                check_metric(plan, metric, got[metric], wanted[metric], mine, parameters)
            except AssertionError as error:
                raise AssertionError(f"{config} {metric}: {error}") from None
    check_tensors(configs, tensors, expected["tensors"], fields.get("outputs"))
    return results, tensors


FRAGILE = ("shift_matrix", "unseen")


def check_tensors(configs, tensors, expected, names):
    wanted = {name for name in expected if (name.rpartition(".")[0] in names if names is not None else
                                            name.rpartition(".")[0] not in analysis_truth.ON_REQUEST)}
    assert set(tensors) == wanted, (set(tensors), wanted)
    for name in wanted:
        assert tensors[name].shape == expected[name].shape, name
        if name.rpartition(".")[0] not in FRAGILE:
            finite = expected[name][np.isfinite(expected[name])]
            np.testing.assert_allclose(tensors[name], expected[name], rtol=NEAR, atol=NEAR * max(1, np.abs(finite).max(initial=0)),
                                       err_msg=f"{configs} {name}")
