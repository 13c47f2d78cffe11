"""Flows that a command loads are checked first: errors refuse, warnings are printed once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.cli.output.console import print_note
from holdfast.model.diagnostics import GraphProblem, Severity, require_valid

if TYPE_CHECKING:
    from holdfast.app.flow import Flow
    from holdfast.app.holdfast import Holdfast


def load_checked_flow(spec: str) -> Flow:
    """Raises FlowNotFoundError, InputError, or FlowInvalidError that lists every error."""
    from holdfast.app.loader import load_flow

    flow = load_flow(spec)
    print_warnings(_warnings(flow, spec))
    return flow


def load_checked_flows(specs: Iterable[str]) -> list[tuple[str, Flow]]:
    """All flows of these modules, each with the name it was found by. Raises as `load_checked_flow`."""
    from holdfast.app.loader import load_flows

    found = [(spec, flow) for spec in specs for flow in load_flows(spec)]
    print_warnings(text for spec, flow in found for text in _warnings(flow, spec))
    return found


def _warnings(flow: Flow, spec: str) -> list[str]:
    """Raises FlowInvalidError."""
    flow.program()
    return _shown(flow.problems(), spec)


def _shown(problems: Iterable[GraphProblem], source: str) -> list[str]:
    """The warnings among them, as `holdfast check` prints them."""
    found: list[str] = []
    for each in problems:
        if each.severity is Severity.warning:
            place = f"{each.file}:{each.line}" if each.file else source
            fix = f" ({each.fix})" if each.fix else ""
            found.append(f"{place}: warning: {each.text}{fix} [{each.rule}]")
    return found


def print_warnings(warnings: Iterable[str]) -> None:
    """On stderr, each once: a flow may be part of several that are loaded."""
    for text in dict.fromkeys(warnings):
        print_note(text)


async def check_stored_flow(hf: Holdfast, name: str, version: str = "") -> None:
    """The graph of the newest version of a stored flow, or of the one that is named, which is to be deployed.
    Raises FlowInvalidError. A flow that is not stored is left to the caller."""
    from holdfast.model.fingerprint import decode_graph
    from holdfast.model.validate import validate
    from holdfast.runs.flow_versions import newest_first

    service = await hf.service()
    rows = [row for row in await service.store.flows() if row.name == name]
    found = [row for row in rows if version in ("", row.version)]
    if not found:
        return
    spec = decode_graph((await newest_first(service, found))[0].graph)
    problems = validate(spec)
    require_valid(name, problems)
    print_warnings(_shown(problems, name))
