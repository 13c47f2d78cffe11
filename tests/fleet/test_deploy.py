"""What deploy/ says fits the program: its commands, options, paths and figures are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast import RunSettings
from holdfast.cli.commands.serve import PORT
from holdfast.cli.main import run
from holdfast.config import ENVIRONMENT
from holdfast.runs.worker.health_server import PATIENCE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(DEPLOY.rglob("*.y*ml"))
PODS = ("kubernetes/server.yaml", "kubernetes/worker.yaml", "kubernetes/migrate.yaml")

pytestmark = pytest.mark.covers("FLEET-OPS-04")


def documents(name: str) -> list[Any]:
    return [each for each in yaml.safe_load_all((DEPLOY / name).read_text()) if each]


def of_kind(name: str, kind: str) -> Any:
    (found,) = [each for each in documents(name) if each["kind"] == kind]
    return found


def command_lines() -> list[list[str]]:
    """Every command line that a container is started with."""
    compose = documents("compose.yaml")[0]
    lines = [each["command"] for each in compose["services"].values() if each.get("image") == "holdfast"]
    lines.append(documents("compose.temporal.yaml")[0]["services"]["engine"]["command"])
    for name in PODS:
        for document in documents(name):
            pod = document.get("spec", {}).get("template", {}).get("spec", {})
            lines += [container["args"] for container in pod.get("containers", [])]
    return lines


def test_every_command_line_is_one_that_the_program_takes(capsys: pytest.CaptureFixture[str]) -> None:
    lines = command_lines()
    assert {line[0] for line in lines} == {"serve", "worker", "migrate", "top", "engine"}
    for line in lines:
        # All options are read before the help is shown: one that is not there is an error.
        assert run([*line, "--help"]) == 0, (line, capsys.readouterr().err)


def test_probes_ask_where_a_server_answers() -> None:
    container = of_kind("kubernetes/server.yaml", "Deployment")["spec"]["template"]["spec"]["containers"][0]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    metrics = container["args"][container["args"].index("--metrics") + 1].rpartition(":")[2]
    assert ports == {"http": PORT, "metrics": int(metrics)}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container["readinessProbe"]["timeoutSeconds"] > PATIENCE


def test_probes_ask_where_a_worker_answers() -> None:
    container = of_kind("kubernetes/worker.yaml", "Deployment")["spec"]["template"]["spec"]["containers"][0]
    port = container["args"][container["args"].index("--metrics") + 1].rpartition(":")[2]
    assert container["ports"] == [{"name": "metrics", "containerPort": int(port)}]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
    scraped = documents("prometheus.yml")[0]["scrape_configs"][0]["dns_sd_configs"][0]["port"]
    assert scraped == int(port)


def test_every_figure_that_is_asked_for_is_reported() -> None:
    """The reference page lists them all, which a test of its own checks."""
    listed = set(re.findall(r"`(holdfast_\w+)`", (ROOT / "docs/reference/metrics.md").read_text("utf-8")))
    asked = {name for file in FILES for name in re.findall(r"\bholdfast_\w+", file.read_text("utf-8"))}
    assert {"holdfast_backlog_runs", "holdfast_store_up"} <= asked
    assert asked <= listed


def test_autoscaling_goes_by_the_backlog_of_the_workers_that_are_deployed() -> None:
    scaled = of_kind("kubernetes/autoscaling.yaml", "ScaledObject")["spec"]
    deployed = of_kind("kubernetes/worker.yaml", "Deployment")["metadata"]["name"]
    assert scaled["scaleTargetRef"]["name"] == deployed
    assert any("holdfast_backlog_runs" in each["metadata"]["query"] for each in scaled["triggers"])


def test_workers_get_longer_to_stop_than_they_take_to_drain() -> None:
    pod = of_kind("kubernetes/worker.yaml", "Deployment")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > RunSettings().grace
    assert (
        int(documents("compose.yaml")[0]["services"]["worker"]["stop_grace_period"][:-1])
        > RunSettings().grace
    )


def test_nothing_secret_is_written_down_and_every_setting_is_known() -> None:
    known = set(ENVIRONMENT) | {"POD_NAME"}
    for file in FILES:
        text = file.read_text("utf-8")
        assert set(re.findall(r"\bHOLDFAST_[A-Z_]+", text)) <= known, file
        assert not re.search(r"postgresql://\w+:(?!\$|password@)", text), file


def test_image_runs_as_a_number_where_pods_may_not_be_root() -> None:
    """Kubernetes starts no container with `runAsNonRoot` whose image names its user by a word."""
    users = re.findall(r"^USER (\S+)$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert [int(user) > 0 for user in users] == [True]
    for name in (*PODS, "kubernetes/postgres.yaml"):
        (pod,) = [
            each["spec"]["template"]["spec"] for each in documents(name) if "template" in each.get("spec", {})
        ]
        assert all(each["securityContext"]["runAsNonRoot"] for each in pod["containers"])


def test_probe_waits_longer_than_a_worker_waits_for_its_store() -> None:
    """Otherwise nobody would read why a worker is not ready."""
    container = of_kind("kubernetes/worker.yaml", "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["readinessProbe"]["timeoutSeconds"] > PATIENCE


def test_every_manifest_is_in_the_kustomization() -> None:
    listed = documents("kubernetes/kustomization.yaml")[0]["resources"]
    there = {file.name for file in (DEPLOY / "kubernetes").glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed) == there


@pytest.mark.covers("FLEET-OPS-05")
def test_sizing_guide_tells_figures_that_the_benchmark_measures() -> None:
    """Its tables have the rows of `bench/fleet.py`; the command that it names measures them again."""
    from bench import fleet

    page = (ROOT / "docs/how-to/size-a-fleet.md").read_text("utf-8")
    for kind, sizes in fleet.FLEETS.items():
        for workers in sizes:
            row = re.search(rf"^\| {workers} workers? \| ([\d,]+) \|", _table(page, kind), re.MULTILINE)
            assert row, (kind, workers)
            assert int(row.group(1).replace(",", "")) > 0
    assert 'make bench ARGS="--peers no --only P,W"' in page


def _table(page: str, kind: str) -> str:
    """The table about steps of this kind."""
    begins = page.index({"waiting": "steps that wait 20 ms |", "busy": "| steps that do nothing"}[kind])
    return page[begins:].partition("\n\n")[0]
