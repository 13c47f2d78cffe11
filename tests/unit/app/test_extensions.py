"""The core knows other packages only as extension points that they fill."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from holdfast.app.extensions import AGENT_NODES, PIPELINES, POSTMORTEMS, ExtensionPoint, stored_dialects
from holdfast.errors import InputError

OUTSIDE = ("agents", "api", "attractor", "cli", "demo", "drawing", "integrations", "reports", "torture")


@pytest.mark.parametrize("point", [AGENT_NODES, PIPELINES, POSTMORTEMS], ids=lambda point: point.feature)
def test_a_package_registers_itself_when_its_feature_is_first_used(point: ExtensionPoint[Any]) -> None:
    fresh: ExtensionPoint[Any] = ExtensionPoint(point.feature, point.module)
    assert point.load() is point.load()
    # Imported already: what registers once is the import, so a second point of the same module stays empty.
    with pytest.raises(InputError, match=r"registers nothing"):
        fresh.load()


def test_what_an_application_registers_replaces_what_comes_with_holdfast(monkeypatch: Any) -> None:
    point: ExtensionPoint[str] = ExtensionPoint("things", "things_of_holdfast")
    monkeypatch.setitem(sys.modules, "things_of_holdfast", ModuleType("things_of_holdfast"))
    point.register("ours")
    assert point.load() == "ours"


def test_a_package_that_is_not_installed_is_named_with_what_to_do() -> None:
    with pytest.raises(InputError) as caught:
        ExtensionPoint("agent nodes", "holdfast.no_such_package.node").load()
    assert "agent nodes are not available" in str(caught.value)
    assert "holdfast.no_such_package.node" in str(caught.value)
    assert "Reinstall" in caught.value.hint


def test_a_fault_inside_of_a_package_is_not_taken_for_its_absence(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "faulty_extension.py").write_text("import a_library_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_library_that_is_not_there"):
        ExtensionPoint("things", "faulty_extension").load()


@pytest.mark.covers("PLAIN-CORE-01")
def test_declaring_and_running_a_flow_loads_no_package_outside_of_the_core(tmp_path: Any) -> None:
    """`stored_dialects` is part of every `Holdfast`: it loads pipelines only for a stored pipeline."""
    program = tmp_path / "program.py"
    program.write_text(f"""
import sys
from holdfast import Flow, Holdfast
flow = Flow("f")

@flow.node(effect="pure")
def one(state):
    return {{"n": 1}}

assert flow.run_sync({{}}, on=Holdfast("memory:")).status == "completed"
print([name for name in sys.modules if name.startswith(tuple("holdfast." + each for each in {OUTSIDE!r}))])
""")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_stored_pipelines_and_documents_have_a_dialect() -> None:
    assert list(stored_dialects()) == ["attractor", "canvas"]
