"""Laws of rows that ask /diagnose or /check: candidates taken at their word, and what the two endpoints have in common."""
import numpy as np

import diagnosing
from laws import law
from truth import evidence


def tensors_of(row):
    """The tensors of a row as they were sent, and the dtype of what is compared."""
    from run import made
    sent = {name: value for name, value in made(row["request"]).items() if isinstance(value, dict) and "data" in value}
    arrays = {name: np.array([float(x) for x in value["data"]]).reshape(value["shape"]) for name, value in sent.items()}
    return arrays, next(value["dtype"] for name, value in sent.items() if name not in ("q", "k", "table"))


@law
def comes_back(answer, row, server):
    """The first candidate, posted to /encode or /rotate, gives the tensor; its transforms are applied here."""
    arrays, dtype = tensors_of(row)
    found = answer.json()["candidates"][0]
    may = {name: 1e-5 * np.abs(np.where(np.isfinite(a), a, 0)).max() for name, a in arrays.items()}
    reason = diagnosing.unlike(server, {**found, "verdict": "rounding"}, arrays, dtype if dtype in evidence.UNIT else "f64", may)
    assert reason is None, f"{reason}: {found['config']} {found['sequence']}"


@law
def as_diagnose_refuses(answer, row, server):
    """/check refuses what /diagnose refuses, in the same words."""
    from run import ask
    whole = ask(server, {**row, "post": "/diagnose"})
    assert answer.status == whole.status >= 400 and answer.json() == whole.json()


@law
def check_is_the_diagnosis(answer, row, server):
    """/check has the findings and the error of the whole diagnosis, and fits by the guide's rule; both have the header Posenc-Fits."""
    from run import ask
    whole = ask(server, {**row, "post": "/diagnose"})
    short, long = answer.json(), whole.json()
    allowed = {"as_believed", "undecided"} | (set() if row["request"].get("strict") else {"angles_f32", "coordinates_f32", "table_dtype"})
    assert short["fits"] == (long["explained"] and set(diagnosing.codes_of(long)) <= allowed)
    assert short["findings"] == long["findings"] and short["max_error"] == long["belief"]["max_error"]
    assert answer.headers["Posenc-Fits"] == whole.headers["Posenc-Fits"] == ("?1" if short["fits"] else "?0")
    assert set(short) == {"fits", "verdict", "findings", "max_error"}


@law
def diagnosis_form(answer, row, server):
    """Every member that the guide promises, sentences in two languages, candidates in order: fit, cost, exact before rounding."""
    diagnosing.check_form(answer.json())


@law
def chinese_is_the_same(answer, row, server):
    """In Chinese the same findings, in the sentences that the English answer has as detail_zh; by ?lang, by lang, by Accept-Language."""
    from run import again, ask
    english = answer.json()
    for other in (again(row, lang="zh"), {**row, "headers": {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"}}):
        found = ask(server, other)
        assert found.headers["Content-Language"] == "zh" and "accept-language" in found.headers["Vary"].lower()
        for one, two in zip(english["findings"], found.json()["findings"], strict=True):
            assert two["detail"] == two["detail_zh"] == one["detail_zh"] != one["detail"] and two["code"] == one["code"]
        assert found.json()["candidates"] == english["candidates"]


@law
def padded_comes_back(answer, row, server):
    """The first candidate of a padded batch, sent to /rotate with its mask, gives the tokens' numbers."""
    arrays, _ = tensors_of(row)
    found = answer.json()["candidates"][0]
    config = {name: value for name, value in found["config"].items() if name != "form"}
    again = diagnosing.reproduce(server, {**found, "config": config}, arrays)["q_out"]
    tokens = np.broadcast_to(np.array(row["request"]["attention_mask"])[:, None, :] == 1, again.shape[:3])
    assert np.abs(again - arrays["q_out"])[tokens].max() < 1e-5


@law
def what_was_ruled_out(answer, row, server):
    """Kinds that were tried are listed once, each with its best error; nothing fits."""
    found = answer.json()
    kinds = [entry["kind"] for entry in found["ruled_out"]]
    assert len(kinds) == len(set(kinds)) >= 3 and found["searched"] > 50
    assert all(set(entry) == {"kind", "code", "max_error"} and entry["max_error"] > 0.1 for entry in found["ruled_out"])
    assert all(c["verdict"] in ("near", "none") for c in found["candidates"])


@law
def presets_give_the_tensor(answer, row, server):
    """Every preset that is listed, in place of the candidate's configuration, gives the tensor."""
    arrays, dtype = tensors_of(row)
    first, may = answer.json()["candidates"][0], dict.fromkeys(arrays, 1e-5)
    for preset in first["presets"]:
        candidate = {**first, "verdict": "rounding", "config": {"preset": preset}}
        assert diagnosing.unlike(server, candidate, arrays, dtype, may) is None, preset
