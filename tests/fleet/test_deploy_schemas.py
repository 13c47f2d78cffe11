"""The files of deploy/ fit the schemas of the tools that read them, and each other."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.api.auth.settings import read_sign_in
from holdfast.drivers.temporal.address import parse_address
from tests.services import absent, manifests

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))

pytestmark = pytest.mark.covers("SAFE-TOOLS-04")


def documents(path: Path) -> list[Any]:
    return [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each]


def all_manifests() -> list[Any]:
    """Without the kustomization, which only kustomize itself reads."""
    return [each for path in KUBERNETES if path.name != "kustomization.yaml" for each in documents(path)]


def compose() -> dict[str, Any]:
    return documents(DEPLOY / "compose.yaml")[0]


def test_every_manifest_fits_the_schema_of_its_kind_and_a_wrong_one_does_not() -> None:
    found = all_manifests()
    wrong = copy.deepcopy(found)
    for each in wrong:
        each["spec" if "spec" in each else "metadata"] = "nothing"
    assert manifests.kubernetes_problems(found) == []
    assert len(manifests.kubernetes_problems(wrong)) == len(wrong)


def test_compose_file_fits_the_specification_and_a_wrong_one_does_not() -> None:
    assert manifests.compose_problems(compose()) == []
    wrong = compose()
    wrong["services"]["server"]["restarts"] = "always"
    assert manifests.compose_problems(wrong) != []


def test_compose_file_with_a_temporal_cluster_fits_the_specification_and_the_other_one() -> None:
    found = documents(DEPLOY / "compose.temporal.yaml")[0]
    assert manifests.compose_problems(found) == []
    for name, service in found["services"].items():
        # What is new says what it is; the others are those of compose.yaml.
        assert ("image" in service) == (name not in compose()["services"]), name
        assert service.get("depends_on", {}).keys() <= (found["services"] | compose()["services"]).keys()
    address = found["services"]["worker"]["environment"]["HOLDFAST_ENGINE"]
    assert parse_address(address.removeprefix("${ENGINE:-").removesuffix("}")).host == "temporal"
    wrong = copy.deepcopy(found)
    wrong["services"]["temporal"]["restarts"] = "always"
    assert manifests.compose_problems(wrong) != []


def test_kustomize_builds_all_manifests() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        absent("kubectl", "kubectl is not installed")
    done = subprocess.run(
        [kubectl, "kustomize", str(DEPLOY / "kubernetes")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    built = [each for each in yaml.safe_load_all(done.stdout) if each]
    assert len(built) == len(all_manifests())
    assert {each["metadata"].get("namespace", "holdfast") for each in built} == {"holdfast"}


def test_deployments_have_a_server_workers_postgresql_and_an_ingress() -> None:
    assert {"postgres", "migrate", "server", "worker", "ingress"} <= compose()["services"].keys()
    kinds = {(each["kind"], each["metadata"]["name"]) for each in all_manifests()}
    assert kinds >= {
        ("StatefulSet", "holdfast-postgres"), ("Service", "holdfast-postgres"),
        ("Deployment", "holdfast-server"), ("Service", "holdfast-server"),
        ("Deployment", "holdfast-worker"), ("Job", "holdfast-migrate"), ("Ingress", "holdfast"),
    }  # fmt: skip


def test_image_has_the_extras_of_the_distribution_but_two() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    (named,) = re.findall(r"/build\[([\w,-]+)\]", (DEPLOY / "Dockerfile").read_text("utf-8"))
    # One would hold back other packages, the other is larger than all else in the image.
    assert named.split(",") == sorted(declared.keys() - {"claude-agent", "openai-agents"})


def test_names_that_manifests_refer_to_are_there() -> None:
    found = all_manifests()
    services = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "Service"}
    pods = [each["spec"]["template"] for each in found if "template" in each.get("spec", {})]
    for name, spec in services.items():
        chosen = [pod for pod in pods if spec["selector"].items() <= pod["metadata"]["labels"].items()]
        ports = {port["name"] for pod in chosen for one in pod["spec"]["containers"] for port in one["ports"]}
        assert {each["targetPort"] for each in spec["ports"]} <= ports, name
    (ingress,) = [each for each in found if each["kind"] == "Ingress"]
    (rule,) = ingress["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend["port"]["name"] in {each["name"] for each in services[backend["name"]]["ports"]}
    maps = {each["metadata"]["name"] for each in found if each["kind"] == "ConfigMap"}
    mounted = [volume for pod in pods for volume in pod["spec"].get("volumes", ()) if "configMap" in volume]
    assert {volume["configMap"]["name"] for volume in mounted} == maps
    # The secret's address names the server that is deployed with it.
    notes = (DEPLOY / "kubernetes/kustomization.yaml").read_text("utf-8")
    assert any(f"@{name}/" in notes for name in services)


def test_sign_in_files_are_valid_and_name_the_address_of_the_ingress(tmp_path: Path) -> None:
    own = read_sign_in(DEPLOY / "sign-in.toml")
    assert own.public_url == f"https://{compose()['services']['ingress']['environment']['SITE'][8:-1]}"
    (given,) = [each for each in all_manifests() if each["kind"] == "ConfigMap"]
    (tmp_path / "sign-in.toml").write_text(given["data"]["sign-in.toml"])
    (ingress,) = [each for each in all_manifests() if each["kind"] == "Ingress"]
    host = ingress["spec"]["rules"][0]["host"]
    assert read_sign_in(tmp_path / "sign-in.toml").public_url == f"https://{host}"


def test_ingress_of_compose_is_in_the_network_that_the_server_believes() -> None:
    whole = compose()
    command = whole["services"]["server"]["command"]
    believed = command[command.index("--proxy") + 1]
    assert whole["networks"]["front"]["ipam"]["config"] == [{"subnet": believed}]
    assert whole["services"]["ingress"]["networks"] == ["front"]
    assert "front" in whole["services"]["server"]["networks"]
    assert "reverse_proxy server:8420" in (DEPLOY / "Caddyfile").read_text("utf-8")


def rules() -> list[Any]:
    return documents(DEPLOY / "alerts.yml")[0]["groups"][0]["rules"]


def test_both_files_of_alerts_have_the_same_rules() -> None:
    (operator,) = documents(DEPLOY / "kubernetes/alerts.yaml")
    assert operator["spec"] == documents(DEPLOY / "alerts.yml")[0]


@pytest.mark.parametrize("rule", rules(), ids=[each["alert"] for each in rules()])
def test_every_alert_leads_to_a_section_that_exists(rule: Any) -> None:
    page, _, section = rule["annotations"]["runbook"].partition("#")
    text = (ROOT / page).read_text("utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert section in {re.sub(r"[^a-z0-9]+", "-", each.lower()).strip("-") for each in headings}
    assert f"`{rule['alert']}`" in text


def test_every_page_that_a_file_names_exists() -> None:
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            for name in re.findall(r"\b(?:docs|deploy|examples)/[\w./-]+\w", path.read_text("utf-8")):
                assert (ROOT / name).exists(), (path.name, name)
