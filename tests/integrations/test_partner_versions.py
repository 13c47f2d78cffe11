"""Partner libraries that are absent, too old or too new are refused with what to install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast.integrations import partner_versions
from holdfast.integrations.partner_versions import PartnerVersionError, require_partner

ROOT = Path(__file__).parents[2]


@pytest.mark.covers("USERS-BAD-VERSION")
@pytest.mark.parametrize("found", ["2.65.9", "1.107.10", "3.0", "3.0.0b1", "10.0"])
def test_a_version_outside_the_range_is_refused(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partner_versions, "version", lambda _name: found)
    with pytest.raises(PartnerVersionError, match=r"pip install 'holdfast-flow\[pydantic-ai\]'") as raised:
        require_partner("pydantic-ai-slim", "2.66", "3", "pydantic-ai")
    assert raised.value.facts == {"found": found, "lowest": "2.66", "below": "3"}
    assert isinstance(raised.value, ImportError)


@pytest.mark.covers("USERS-BAD-VERSION")
def test_a_range_without_an_end_refuses_older_ones_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partner_versions, "version", lambda _name: "1.39.2")
    with pytest.raises(PartnerVersionError, match=r"1\.40 or later is tested"):
        require_partner("opentelemetry-sdk", "1.40", None, "otel")
    monkeypatch.setattr(partner_versions, "version", lambda _name: "7.0")
    require_partner("opentelemetry-sdk", "1.40", None, "otel")


@pytest.mark.covers("IN-2")
@pytest.mark.parametrize("found", ["2.66.0", "2.66", "2.100.1", "2.66.0rc1"])
def test_a_version_inside_the_range_is_accepted(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partner_versions, "version", lambda _name: found)
    require_partner("pydantic-ai-slim", "2.66", "3", "pydantic-ai")


@pytest.mark.covers("IN-2")
def test_an_absent_library_is_an_import_error_with_what_to_install() -> None:
    with pytest.raises(ImportError, match=r"pip install 'holdfast-flow\[pydantic-ai\]'"):
        require_partner("no-such-distribution-here", "2.66", "3", "pydantic-ai")


@pytest.mark.covers("IN-2")
def test_holdfast_imports_no_agent_framework() -> None:
    names = {"pydantic_ai", "agents", "claude_agent_sdk"}
    code = f"import sys, holdfast; holdfast.Flow; print({names} & {{*sys.modules}})"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"


@pytest.mark.covers("IN-2")
@pytest.mark.parametrize(
    ("folder", "extra", "package", "lowest", "below"),
    [
        ("langgraph", "langgraph", "langgraph-checkpoint", "4.3", "5"),
        ("langgraph", "langgraph", "langgraph", "1.2", "2"),
        ("otel", "otel", "opentelemetry-sdk", "1.40", None),
        ("prometheus", "metrics", "prometheus-client", "0.22", None),
        ("pydantic_ai", "pydantic-ai", "pydantic-ai-slim", "2.66", "3"),
        ("openai_agents", "openai-agents", "openai-agents", "0.24", "0.25"),
        ("claude_agent", "claude-agent", "claude-agent-sdk", "0.2.183", "0.3"),
    ],
)
def test_the_checked_range_is_that_of_the_extra(
    folder: str, extra: str, package: str, lowest: str, below: str | None
) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    source = (ROOT / f"src/holdfast/integrations/{folder}/__init__.py").read_text()
    assert f"{package}>={lowest}" + (f",<{below}" if below else "") in extras[extra]
    end = f'"{below}"' if below else "None"
    assert f'require_partner("{package}", "{lowest}", {end}, "{extra}")' in source
