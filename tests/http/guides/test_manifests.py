"""The manifests of deploy/: every field exists and has its type, limits follow from flags, and what belongs together agrees."""
import json
import pathlib
import re
import subprocess
import urllib.parse

import pytest
import yaml

import manifests
from conftest import POSENCD, ROOT, SANITIZED, start_server
from s3_store import S3Store
from weights_asking import TABLE, file, put

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
FOLDERS = ["base", "overlays/small", "overlays/team", "kserve"]
MIB = 1 << 20
UNITS = {"Ki": 1 << 10, "Mi": MIB, "Gi": 1 << 30, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30, "k": 1 << 10, "m": MIB, "g": 1 << 30, "M": MIB, "G": 1 << 30, "": 1}


def n_bytes(text):
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]*)", str(text)).groups()
    return int(number) * UNITS[unit]


def flags(container):
    return dict(arg.lstrip("-").split("=", 1) for arg in container["args"])


def containers():
    for folder in FOLDERS:
        for one in manifests.build(KUBERNETES / folder):
            spec = one["spec"]["template"]["spec"] if one["kind"] == "Deployment" else one["spec"] if one["kind"] == "ServingRuntime" else {}
            for container in spec.get("containers", []):
                yield folder, spec, container


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_field_is_one_of_the_api(folder):
    objects = manifests.build(KUBERNETES / folder)
    assert objects
    for one in objects:
        assert manifests.check(one) == [], one["kind"]
        assert one["metadata"]["labels"]["app"] == "posenc" and re.fullmatch(r"[a-z0-9-]{1,63}", one["metadata"]["name"])
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert len(set(names)) == len(names)


def test_every_file_belongs_to_a_folder_that_is_built():
    used = set()
    for path in KUBERNETES.rglob("kustomization.yaml"):
        text = yaml.safe_load(path.read_text())
        used |= {(path.parent / name).resolve() for name in [*text.get("resources", []), *(patch["path"] for patch in text.get("patches", []))]}
    found = {path.resolve() for path in KUBERNETES.rglob("*.yaml") if path.name != "kustomization.yaml"}
    assert found <= used
    built = {folder for name in FOLDERS for folder in yaml.safe_load((KUBERNETES / name / "kustomization.yaml").read_text()).get("components", [])}
    assert {path.name for path in (KUBERNETES / "components").iterdir()} == {pathlib.PurePath(name).name for name in built}


@pytest.mark.parametrize("change,said", [
    (lambda one: one["spec"].update(replica=2), "/spec/replica: there is no such field"),
    (lambda one: one["spec"].update(minReadySeconds="5"), "/spec/minReadySeconds: '5' is not of type integer"),
    (lambda one: one["spec"].update(minReadySeconds=True), "not of type integer"),
    (lambda one: one["spec"].pop("selector"), "selector is missing"),
    (lambda one: one["spec"].update(paused=True), "has no type for this field yet"),
    (lambda one: one["spec"]["template"]["spec"].update(containers={}), "is not a list"),
    (lambda one: one.update(apiVersion="apps/v2"), "no table for apps/v2/Deployment"),
])
def test_the_check_can_fail(change, said):
    one = manifests.build(KUBERNETES / "base")[0]
    change(one)
    assert any(said in fault for fault in manifests.check(one))


def test_limits_follow_from_flags():
    n = 0
    for folder, _, container in containers():
        own = flags(container)
        need = n_bytes(own["max-memory"]) + n_bytes(own["max-weights"]) + 64 * MIB
        assert n_bytes(container["resources"]["limits"]["memory"]) >= need, folder
        n += 1
    assert n == 4


def test_compose_and_unit_too():
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["posenc-1"]
    own = service["environment"]
    assert n_bytes(service["deploy"]["resources"]["limits"]["memory"]) >= n_bytes(own["POSENC_MAX_MEMORY"]) + n_bytes(own["POSENC_MAX_WEIGHTS"]) + 64 * MIB
    limit = n_bytes(re.search(r"^MemoryMax=(\w+)", (DEPLOY / "posenc.service").read_text(), re.M)[1])
    assert limit >= min(limit // 2, 2 << 30) + (1 << 30) + 64 * MIB  # the defaults of --max-memory and --max-weights


def test_the_grace_is_long_enough():
    for folder, spec, container in containers():
        if "terminationGracePeriodSeconds" in spec:
            own = flags(container)
            assert spec["terminationGracePeriodSeconds"] >= int(own["drain-delay"]) + int(own["drain-seconds"]) + 5, folder
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["posenc-1"]
    assert int(service["stop_grace_period"].rstrip("s")) >= int(service["environment"]["POSENC_DRAIN_DELAY"]) + 30 + 5


def environment(folder, container):
    """What a container of this folder finds in its environment."""
    secrets = {one["metadata"]["name"]: one["stringData"] for one in manifests.build(KUBERNETES / folder) if one["kind"] == "Secret"}
    env = {entry["name"]: entry["value"] for entry in container.get("env", [])}
    for source in container.get("envFrom", []):
        env |= secrets[source["secretRef"]["name"]]
    return env


@pytest.mark.skipif(SANITIZED, reason="nothing of it depends on memory errors")
def test_posencd_takes_the_flags(tmp_path):
    """With a token file, folders and a store that are here; the keys and all else of the store are those of the manifests."""
    n_stores = 0
    for folder, _, container in containers():
        own, env = flags(container), environment(folder, container)
        if "token-file" in own:
            secret = [one for one in manifests.build(KUBERNETES / folder) if one["kind"] == "Secret" and "tokens" in one["stringData"]][0]
            own["token-file"] = str(tmp_path / "tokens")
            placeholder, token = secret["stringData"]["tokens"].split()[1], "Vn3kQ8r0YxJ2mB7tLw5z"
            (tmp_path / "tokens").write_text(secret["stringData"]["tokens"].replace(placeholder, token))
        for name in {"weights-dir", "store-cache"} & set(own):
            own[name] = str(tmp_path / name)
            (tmp_path / name).mkdir(exist_ok=True)
        bucket, _, prefix = own.get("store", "").removeprefix("s3://").partition("/")
        with S3Store(bucket) as s3:
            if "store" in own:
                n_stores += 1
                own["store-endpoint"] = s3.endpoint
                s3.access_key, s3.secret_key = env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
                env["no_proxy"] = "127.0.0.1"
            with start_server(*(f"--{name}={value}" for name, value in own.items()), env=env) as server:
                assert server.get("/readyz").status == 200
                if "store" in own:
                    put(server, "t", file(table=TABLE), Authorization=f"Bearer {token}")
                    assert f"{prefix}/names/t" in s3.objects and len(list((tmp_path / "store-cache").rglob("*"))) > 0
                server.process.kill()
    assert n_stores == 1


def test_the_store_of_a_pod_is_complete():
    """The cache is a volume that is mounted, may be written and has room for all weights; the endpoint's port is open; nothing is built in."""
    known = {line.split()[0].lstrip("-") for line in subprocess.run([POSENCD, "--help"], capture_output=True, text=True, timeout=20).stdout.splitlines()
             if line.strip().startswith("--store")}
    assert known >= {"store", "store-endpoint", "store-credentials", "store-cache", "store-refresh"}
    found = [(folder, spec, container) for folder, spec, container in containers() if "store" in flags(container)]
    assert [folder for folder, _, _ in found] == ["overlays/team"]
    for folder, spec, container in found:
        own = flags(container)
        assert {name for name in own if name.startswith("store")} <= known and "weights-dir" not in own
        mount = [mount for mount in container["volumeMounts"] if own["store-cache"] == mount["mountPath"]][0]
        volume = [volume for volume in spec["volumes"] if volume["name"] == mount["name"]][0]
        assert not mount.get("readOnly") and n_bytes(volume["emptyDir"]["sizeLimit"]) >= n_bytes(own["max-weights"])
        assert own["store-endpoint"].startswith("https://"), "keys and weights go through other networks"
        assert {"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} == set(environment(folder, container))
        policy = [one for one in manifests.build(KUBERNETES / folder) if one["kind"] == "NetworkPolicy"][0]["spec"]
        assert (urllib.parse.urlsplit(own["store-endpoint"]).port or 443) in {port["port"] for rule in policy["egress"] for port in rule["ports"]}


def test_what_points_somewhere_points_at_something():
    for folder in FOLDERS[:3]:
        objects = {one["kind"]: one for one in manifests.build(KUBERNETES / folder) if one["metadata"]["name"] != "posenc-sweep"}
        deployment = objects["Deployment"]["spec"]["template"]
        labels, pod = deployment["metadata"]["labels"], deployment["spec"]
        assert objects["Service"]["spec"]["selector"] == labels
        for kind in ("PodDisruptionBudget", "NetworkPolicy", "PodMonitor"):
            if kind in objects:
                spec = objects[kind]["spec"]
                assert spec.get("selector", spec.get("podSelector"))["matchLabels"] == labels
        ports = {port["name"] for port in pod["containers"][0]["ports"]}
        assert {port["targetPort"] for port in objects["Service"]["spec"]["ports"]} <= ports
        assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        secrets = {one["metadata"]["name"] for one in manifests.build(KUBERNETES / folder) if one["kind"] == "Secret"}
        assert {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume} <= secrets
        assert {source["secretRef"]["name"] for source in pod["containers"][0].get("envFrom", [])} <= secrets
        assert "replicas" not in objects["Deployment"]["spec"], "the autoscaler's"


def sweep_of(folder):
    """(CronJob, NetworkPolicy) of the sweep of a store."""
    objects = {one["kind"]: one for one in manifests.build(KUBERNETES / folder) if one["metadata"]["name"] == "posenc-sweep"}
    return objects["CronJob"]["spec"], objects["NetworkPolicy"]["spec"]


def test_the_sweep_is_of_the_servers_store():
    """The same program, place, keys and way out; no service sends it requests."""
    job, policy = sweep_of("overlays/team")
    pod = job["jobTemplate"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    _, spec, server = [found for found in containers() if found[0] == "overlays/team"][0]
    place = {f"--{name}={value}" for name, value in flags(server).items() if name in ("store", "store-endpoint")}
    assert len(place) == 2 and set(container["args"]) == {*place, "--store-sweep"}
    assert container["image"] == server["image"] and environment("overlays/team", container) == environment("overlays/team", server)
    assert container["securityContext"] == server["securityContext"] and pod["spec"]["restartPolicy"] == "Never"
    assert {**pod["spec"]["securityContext"], "fsGroup": 65534} == spec["securityContext"]
    objects = manifests.build(KUBERNETES / "overlays/team")
    service = [one for one in objects if one["kind"] == "Service"][0]
    assert pod["metadata"]["labels"] == policy["podSelector"]["matchLabels"] != service["spec"]["selector"]
    of_servers = [one for one in objects if one["kind"] == "NetworkPolicy" and one["metadata"]["name"] == "posenc"][0]["spec"]
    assert policy["egress"] == of_servers["egress"] and policy["ingress"] == [] and job["concurrencyPolicy"] == "Forbid"


def test_the_sweep_runs_as_written():
    """On a store that is here, with the manifest's flags and keys."""
    container = sweep_of("overlays/team")[0]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    env = environment("overlays/team", container)
    bucket, _, prefix = container["args"][0].removeprefix("--store=s3://").partition("/")
    with S3Store(bucket) as s3:
        s3.access_key, s3.secret_key = env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
        left = f"{prefix}/blobs/" + "0" * 64
        s3.objects[left] = b"nobody's"
        s3.written[left] = s3.now() - 90000
        args = [f"--store-endpoint={s3.endpoint}" if arg.startswith("--store-endpoint=") else arg for arg in container["args"]]
        run = subprocess.run([POSENCD, *args], capture_output=True, text=True, timeout=30, env={**env, "no_proxy": "127.0.0.1"})
        assert run.returncode == 0 and "1 of 1 blobs removed" in run.stdout and not s3.objects, run


def test_the_network_lets_out_what_is_needed():
    policies = {folder: [one for one in manifests.build(KUBERNETES / folder) if one["kind"] == "NetworkPolicy"][0]["spec"] for folder in FOLDERS[:3]}
    for folder, spec in policies.items():
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        ports = {port["port"] for rule in spec["egress"] for port in rule["ports"]}
        assert ports == ({53, 443} if folder == "overlays/team" else set())


def test_ingress_has_every_route_but_metrics(server):
    ingress = [one for one in manifests.build(KUBERNETES / "overlays/small") if one["kind"] == "Ingress"][0]
    paths = {entry["path"]: entry["pathType"] for rule in ingress["spec"]["rules"] for entry in rule["http"]["paths"]}
    assert "/metrics" not in paths and paths["/"] == "Exact"
    for route in server.get("/openapi.json").json()["paths"]:
        if route not in ("/metrics", "/"):
            assert any(route == path or route.startswith(path + "/") for path in paths if path != "/"), route


def test_rules_are_the_same_for_both():
    rule = [one for one in manifests.build(KUBERNETES / "overlays/team") if one["kind"] == "PrometheusRule"][0]
    assert rule["spec"]["groups"] == yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())["groups"]


def test_compose_names_files_and_addresses_that_are_there():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for name, service in services.items():
        for volume in service.get("volumes", []):
            assert (DEPLOY / volume.split(":")[0]).is_file(), (name, volume)
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), (name, port)
    addresses = {name: service["networks"]["servers"]["ipv4_address"] for name, service in services.items() if isinstance(service["networks"], dict)}
    proxy = services["haproxy"]["environment"]
    assert [proxy[f"POSENC_{i}"] for i in (1, 2, 3)] == [addresses[f"posenc-{i}"] + ":8080" for i in (1, 2, 3)]
    assert services["posenc-1"]["environment"]["POSENC_TRUSTED_PROXY"] == addresses["haproxy"]
    for name in set(re.findall(r"POSENC_\w+", (DEPLOY / "haproxy.cfg").read_text())) - {"POSENC_CERT"}:
        assert name in proxy
    scraped = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"][0]
    assert scraped["job_name"] == "posenc" and scraped["static_configs"][0]["targets"] == [f"posenc-{i}:8080" for i in (1, 2, 3)]
    assert json.loads((DEPLOY / "grafana/posenc.json").read_text())["title"] == "posenc"
