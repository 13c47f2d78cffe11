"""docs/reference/settings.md: what can be set, where, and what it is when nobody sets it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast import Flow, Holdfast
from holdfast.config import ENVIRONMENT
from holdfast.runs.driver.runtime import RunSettings
from tools.pages import ROOT

TOP = """# Settings

<!-- Made by tools/docs.py of the code. -->

Three places, from the nearest to the farthest: what a flow or a node declares, what the program that runs it
sets (`Holdfast(..., settings=RunSettings(...))`), and the environment of the command line.

"""


HEAD = "| option | default | what it is |\n|---|---|---|\n"
FLOW = {
    "state": "the state's type: dataclass, msgspec Struct, TypedDict or pydantic model; none: any mapping",
    "effect": "the effect class of nodes that declare none: `pure`, `read`, `write`, `external`, `human`",
    "in_doubt": "what to do about an effect whose outcome nobody knows: `ask`, `retry`, `fail`, or a probe",
    "checkpoints": "which records are listed as checkpoints: `every_node`, `explicit`, `none`",
    "checkpoint_when": "whether before a node, `after` it, or `both`",
    "mode": "when a step is durable: `barrier`, `strict`, `exit`",
    "lane": "the lane of its runs",
    "priority": "higher is sooner",
    "memory": "how `ctx.memory` is recorded: `live`, `snapshot`, `journaled`",
    "types": "more types that may stand in the state",
    "reducers": "reducers by field, for a state without annotations",
    "version": "what people call this version of the flow: a word, part of what the version is",
    "code_change": "code that is ahead of a run has changed: `allow`, `ask`, `refuse`",
    "allow_uncheckpointed": "go on while the store is away, up to the next effect",
    "traversal": "`dataflow`, or `walk` (one token, one edge at a time)",
    "max_visits": "a walk visits no node more often; 0: no bound",
    "max_goal_jumps": "how often a walk goes back for a goal that was not met",
    "retry_target": "where a walk goes when a goal was not met",
    "fallback_retry_target": "where it goes if that does not exist",
    "retention": "how much of its runs is kept after they end",
    "limits": "how many of its runs go on at a time, and start in a while ([Limits](../how-to/limits.md))",
    "secrets": "paths of fields that are never shown, beside those that the state's type declares",
}
PROGRAM = {
    "clock": "the time; tests pass a fake one",
    "settings": "see below",
    "keys": "the keys of encryption at rest; none: nothing is encrypted",
    "directory": "who people, groups and roles are: a directory, the path of a file, or `store`",
    "policies": "rules for holds, or files of them; `store:` for those in the store",
    "judges": "whom the rules in files may ask, by name",
    "guardrails": "what approvals have to pass that no person gave",
    "notify": "settings of the channels by which people hear of holds, or their file",
    "channels": "further channels, made by the program",
    "scan": "looks at each file that people attach before it is kept",
    "pace": "how fast one person may act on holds; none: as fast as they like",
    "objects": "where large values lie; the default is a folder beside the database",
    "memory": "what `ctx.memory` reads and writes; the default lies in the store",
}


def page() -> str:
    return TOP + "\n".join([_flow(), _hf(), _runs(), _environment()])


def _flow() -> str:
    rows = "\n".join(_parameters(Flow, FLOW))
    return f"## A flow\n\n`Flow(name, ...)`:\n\n{HEAD}{rows}\n"


def _hf() -> str:
    rows = "\n".join(_parameters(Holdfast, PROGRAM))
    return f"## A program\n\n`Holdfast(address, ...)`:\n\n{HEAD}{rows}\n"


def _parameters(value: Any, said: dict[str, str]) -> Iterator[str]:
    for one in list(inspect.signature(value).parameters.values())[1:]:
        if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD):
            default = "required" if one.default is one.empty else _shown(one.default)
            yield f"| `{one.name}` | {default} | {said.get(one.name, '')} |"


def _shown(value: Any) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", str(value) if isinstance(value, str | float | int) else repr(value))
    return f"`{text}`" if text else "empty"


def _runs() -> str:
    said = field_docs(RunSettings)
    rows = [
        f"| `{field.name}` | `{field.default}` | {said.get(field.name, '')} |"
        for field in msgspec.structs.fields(RunSettings)
    ]
    head = "## How runs are kept going\n\n`RunSettings(...)`; times are in seconds.\n\n"
    return f"{head}{HEAD}" + "\n".join(rows) + "\n"


def field_docs(cls: type) -> dict[str, str]:
    """The string below a field is what it is for."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def _environment() -> str:
    rows = "\n".join(f"| `{name}` | {text} |" for name, text in sorted(ENVIRONMENT.items()))
    return f"## The environment\n\n| variable | what it does |\n|---|---|\n{rows}\n"


def variables_in_source() -> set[str]:
    """Every variable that the product's source names."""
    return {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"\bHOLDFAST_[A-Z_]*[A-Z]\b", path.read_text("utf-8"))
    }
