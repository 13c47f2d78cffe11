"""The comparison with peers: what it measures of ours, how it judges, what an absent peer does to it."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from bench import fleet
from bench.peers import chart, compare, environment, kit
from tests.deadlines import HANG
from tests.services import postgres

pytestmark = pytest.mark.usefixtures("small_heap")


def figure(runtime: str, value: float, row: str = "A", unit: str = kit.STEP) -> compare.Figure:
    return compare.Figure(row, runtime, unit, value, 0.0, 5, 200.0)


@pytest.fixture
def no_peers(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "STAMP", tmp_path / "absent")
    monkeypatch.setattr(environment.setup, "find_uv", lambda: "false")


@pytest.mark.covers("TOOL-BENCH-04")
def test_a_peer_that_cannot_be_installed_is_named_and_fails_nothing(no_peers, monkeypatch, capsys):
    monkeypatch.setattr(compare, "_run_ours", lambda row, on, quick: ([figure("Holdfast memory", 20.0)], ""))
    found = compare.compare(["A"], quick=True, quiet=True)
    assert set(found.absent) == set(compare.PEERS)
    assert [line.name for line in found.lines if not line.target] == ["Holdfast memory"]
    assert {line.verdict for line in found.lines if line.target} == {"absent"}
    assert "langgraph is absent: not installed" in capsys.readouterr().err


@pytest.mark.covers("TOOL-BENCH-04")
def test_a_peer_that_fails_is_named_with_its_last_words():
    command = [sys.executable, "-c", "raise SystemExit('no saver')"]
    found, error = compare._run(command, compare.HERE, None, True)
    assert (found, error) == ([], "no saver")


@pytest.mark.covers("TOOL-BENCH-01")
def test_peers_are_locked_apart_from_our_own_environment():
    lock = environment.LOCK.read_text()
    assert all(
        f"\n{name}==" in f"\n{lock}"
        for name in ("langgraph", "dbos", "apache-burr", "agent-framework-core", "sayiir")
    )
    assert "://" not in lock
    assert environment.PLACE != environment.setup.VENV
    assert environment.PLACE.name + "/" in (compare.ROOT / ".gitignore").read_text().split()


@pytest.mark.covers("TOOL-BENCH-02")
def test_a_ratio_is_to_ours_before_and_after_that_promises_as_much():
    before = [figure("Holdfast memory", 10.0), figure("Holdfast sqlite strict", 100.0)]
    after = [figure("Holdfast memory", 40.0), figure("Holdfast sqlite strict", 400.0)]
    took = [figure("LangGraph memory", 400.0), figure("LangGraph sqlite sync", 1000.0)]
    assert [one.ratio for one in compare._related(took, before, after)] == pytest.approx([20.0, 5.0])


@pytest.mark.covers("TOOL-BENCH-02")
def test_targets_are_judged_by_the_figures_of_the_same_run():
    figures = [figure("Holdfast memory", 20.0), figure("LangGraph memory", 100.0), figure("Burr none", 30.0)]
    verdicts = {line.name: line.verdict for line in compare._judged("A", figures)}
    assert verdicts["LangGraph memory by Holdfast memory, us a step"] == "MISSED"
    assert verdicts["Burr none by Holdfast memory, us a step"] == "ok"


@pytest.mark.covers("TOOL-BENCH-02")
@pytest.mark.parametrize(("row", "units"), [("A", {kit.STEP}), ("F", {kit.PERSON})])
def test_our_own_rows_are_measured_like_a_peer(row, units):
    done = subprocess.run(
        [sys.executable, "-m", "bench.peers.holdfast_peer", row],
        cwd=compare.ROOT,
        env={"HOLDFAST_BENCH_ROUNDS": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["unit"] for one in figures} == units, done.stderr
    assert all(one["value"] > 0 and one["runtime"].startswith("Holdfast") for one in figures)


@pytest.mark.covers("TOOL-BENCH-03")
def test_json_and_plot_are_written_and_hold_every_runtime(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(compare, "PUBLISHED", tmp_path / "assets")
    monkeypatch.setattr(compare, "versions", lambda: {"langgraph": "1"})
    figures = [figure("Holdfast memory", 20.0), figure("A <peer> & more", 9000.0)]
    places = compare.write(compare.Comparison(figures, {}, []), quick=True, publish=True)
    assert [place.parent.name for place in places] == ["results", "assets"]
    said = json.loads((tmp_path / "assets/benchmark.json").read_text())
    assert [one["runtime"] for one in said["figures"]] == ["Holdfast memory", "A <peer> & more"]
    shown = " ".join(ET.fromstring(places[1].read_text()).itertext())
    assert "A <peer> & more" in shown
    assert "9,000" in shown


@pytest.mark.covers("TOOL-BENCH-03")
def test_longer_bars_mean_more():
    data = {"machine": "m", "python": "3", "at": "2026-01-01", "figures": []}
    data["figures"] = [
        {"row": "F", "unit": kit.PERSON, "runtime": name, "value": value}
        for name, value in [("slow", 500.0), ("Holdfast sqlite", 2.0)]
    ]
    bars = [
        (one.get("class"), float(one.get("width", "0")))
        for one in ET.fromstring(chart.draw(data)).iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert [kind for kind, _ in bars] == ["ours", "peer"]
    assert bars[0][1] < bars[1][1]


@pytest.mark.covers("FLEET-SPEED-01")
def test_row_d_is_measured_in_a_database_of_its_own_on_one_server():
    found, _ = compare._run_ours("D", postgres.server(), True)
    assert {one.runtime for one in found} == {"Holdfast postgres strict", "Holdfast postgres barrier"}
    peers = [figure("LangGraph postgres sync", 9000.0, "D"), figure("DBOS postgres", 9000.0, "D")]
    judged = list(compare._judged("D", [*found, *peers]))
    assert [line.name.partition(" by ")[0] for line in judged] == ["LangGraph postgres sync", "DBOS postgres"]
    assert all(line.value is not None for line in judged)


@pytest.mark.covers("FLEET-SPEED-02")
def test_a_fleet_of_two_is_measured_with_what_it_cost_whom():
    took = fleet.measured(postgres.server(), "waiting", 2, 12)
    assert took.seconds > fleet.STEPS * fleet.PAUSE
    assert took.workers_cpu > 0
    assert took.server_cpu >= 0
