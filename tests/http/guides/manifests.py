"""Kubernetes manifests: built as kustomize does (resources, components, JSON patches, namespace), and checked field by field.

kubernetes_fields.json has, for each kind that deploy/kubernetes uses, the names and types of its fields: an object is an object of fields
(name! is required, * is any name), [type] a list, "a|b" a choice of words, "?" lists the names of further fields whose type our manifests have not
needed. So an unknown field is told from one that the table does not describe yet; to use the latter, add its type."""
import copy
import json
import pathlib

import yaml

FIELDS = json.loads((pathlib.Path(__file__).parent / "kubernetes_fields.json").read_text())
SCALARS = {"string": str, "integer": int, "boolean": bool, "number": (int, float), "integer or string": (int, str), "object": dict}


def build(folder):
    """The objects of a folder with a kustomization.yaml."""
    folder = pathlib.Path(folder).resolve()
    text = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert set(text) <= {"apiVersion", "kind", "namespace", "resources", "components", "patches"}, folder
    is_component = text["kind"] == "Component"
    assert (text["kind"], text["apiVersion"]) in {("Component", "kustomize.config.k8s.io/v1alpha1"), ("Kustomization", "kustomize.config.k8s.io/v1beta1")}
    objects = add(folder, [], text)
    for component in text.get("components", []):
        place = folder / component
        part = yaml.safe_load((place / "kustomization.yaml").read_text())
        assert part["kind"] == "Component", place
        objects = add(place, objects, part)
    if "namespace" in text:
        for one in objects:
            one["metadata"]["namespace"] = text["namespace"]
    assert not is_component
    return objects


def add(folder, objects, text):
    for name in text.get("resources", []):
        path = folder / name
        objects = objects + (build(path) if path.is_dir() else [one for one in yaml.safe_load_all(path.read_text()) if one])
    for patch in text.get("patches", []):
        target = patch["target"]
        chosen = [one for one in objects if one["kind"] == target["kind"] and one["metadata"]["name"] == target["name"]]
        assert len(chosen) == 1, (folder, target)
        for step in yaml.safe_load((folder / patch["path"]).read_text()):
            apply(chosen[0], step)
    return objects


def apply(one, step):
    """RFC 6902: add and replace."""
    *above, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
    for part in above:
        one = one[int(part)] if isinstance(one, list) else one[part]
    value = copy.deepcopy(step["value"])
    if isinstance(one, list):
        assert step["op"] == "add" and last == "-"
        one.append(value)
    else:
        assert (step["op"] == "replace") == (last in one) and step["op"] in ("add", "replace"), step
        one[last] = value


def faults(value, kind, path=""):
    """Sentences, one for each field that the API would not take."""
    if kind == "integer or string" and isinstance(value, bool):
        yield f"{path}: {value!r} is not an {kind}"
    elif isinstance(kind, dict):
        yield from object_faults(value, kind, path)
    elif isinstance(kind, list):
        if not isinstance(value, list):
            yield f"{path}: {value!r} is not a list"
            return
        for i, one in enumerate(value):
            yield from faults(one, kind[0], f"{path}/{i}")
    elif kind in SCALARS:
        if not isinstance(value, SCALARS[kind]) or (isinstance(value, bool) and kind != "boolean"):
            yield f"{path}: {value!r} is not of type {kind}"
    elif value not in kind.split("|"):
        yield f"{path}: {value!r} is none of {kind}"


def object_faults(value, kind, path):
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is not an object"
        return
    known = {name.rstrip("!"): type for name, type in kind.items() if name != "?"}
    for name in kind:
        if name.endswith("!") and name[:-1] not in value:
            yield f"{path}: {name[:-1]} is missing"
    for name, one in value.items():
        if name in known or "*" in known:
            yield from faults(one, known.get(name, known.get("*")), f"{path}/{name}")
        elif name in kind.get("?", "").split():
            yield f"{path}/{name}: the table has no type for this field yet"
        else:
            yield f"{path}/{name}: there is no such field"


def check(one):
    kind = FIELDS.get(f"{one['apiVersion']}/{one['kind']}")
    return list(faults(one, kind)) if kind else [f"no table for {one['apiVersion']}/{one['kind']}"]
