"""Tools for models, if the operator allows them: commands and files of the working folder."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from holdfast.agents.coding.kit import Approvals, coding_tools
from holdfast.agents.local_sandbox import Folder
from holdfast.agents.tools import Tool, ToolError, tool
from holdfast.attractor.command_run import environment, sandbox_of, workdir_text
from holdfast.attractor.handler import StageVisit
from holdfast.errors import InputError, SettingsError
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.model_choice import PROVIDER_ALIASES, PROVIDERS, provider_of
from holdfast.frontends.dot.policies import wanted_approvals

SHELL_TIMEOUT: Final = 600.0
_MAX_READ: Final = 200_000
_LISTED: Final = 500


def workdir_of(visit: StageVisit) -> Path:
    return Path(workdir_text(visit) or ".").resolve()


def coding_of(visit: StageVisit, family: str) -> list[Tool]:
    """Files, search, edits and commands in the way that the family's models know."""
    return coding_tools(
        workdir_of(visit),
        family=family,
        environment=environment(visit),
        owned=visit.workspace is not None,
        sandbox=sandbox_of(visit),
    )


def approvals_of(visit: StageVisit) -> Approvals:
    """`tool_approval`: `all` for each tool that may change something, or the names of tools; of the stage,
    else of the graph."""
    names = wanted_approvals(visit.stage, visit.pipeline)
    if "all" in names:
        return True
    return dict.fromkeys(sorted(names), True) if names else False


def refuse_approvals(stage: Stage, pipeline: Pipeline, who: str, or_else: str = "") -> None:
    """Raises InputError if a person is to be asked before calls of tools: `who` calls them inside its own
    process, where nothing can ask. `or_else`: another way out."""
    asked = wanted_approvals(stage, pipeline)
    if asked:
        raise InputError(
            f"stage {stage.id!r} has tool_approval={','.join(sorted(asked))}, and {who} calls its tools "
            "without asking.",
            hint=f"Let a model with tools do it, or set tool_approval=none on the stage{or_else}.",
        )


def shell_of(visit: StageVisit, _family: str) -> list[Tool]:
    """Without the operator's sandbox it runs as this user. Its environment has no keys."""
    folder, sandbox = Folder(workdir_of(visit), environment(visit)), sandbox_of(visit)

    async def shell(
        command: Annotated[str, "A command line."], timeout: Annotated[float, "Seconds."] = SHELL_TIMEOUT
    ) -> dict[str, Any]:
        """Runs a command in the working folder and returns its exit code and output."""
        try:
            line = shlex.join([*sandbox, "/bin/sh", "-c", command]) if sandbox else command
            return await folder.run(line, min(max(timeout, 1.0), SHELL_TIMEOUT))
        except TimeoutError:
            return {"exit": None, "output": f"It took longer than {timeout:g} s and was stopped."}

    return [tool(shell)]


def files_of(visit: StageVisit, _family: str) -> list[Tool]:
    """The text files of the working folder and below it."""
    root = workdir_of(visit)

    @tool(effect="read")
    async def read_file(path: str) -> str:
        """Reads a text file of the working folder."""
        found = _inside(root, path)
        try:
            with found.open("rb") as file:
                data = file.read(_MAX_READ + 1)
        except OSError as error:
            raise ToolError(f"{path} cannot be read: {error.strerror}") from error
        cut = "\n(cut here)" if len(data) > _MAX_READ else ""
        return data[:_MAX_READ].decode(errors="replace") + cut

    # Idempotent: writing the same text to the same place twice changes nothing.
    @tool(idempotent=True)
    async def write_file(path: str, text: str, idempotency_key: str) -> str:
        """Writes a text file of the working folder, whole."""
        found = _inside(root, path)
        try:
            found.parent.mkdir(parents=True, exist_ok=True)
            fresh = found.with_name(f".{found.name}.{idempotency_key[:8]}.new")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(found)
        except OSError as error:
            raise ToolError(f"{path} cannot be written: {error.strerror}") from error
        return f"{path}: {len(text.encode()):,} bytes"

    @tool(effect="read")
    async def list_files(path: str = ".") -> list[str]:
        """Lists a folder of the working folder; folders end with a slash."""
        found = _inside(root, path)
        try:
            names = sorted(each.name + ("/" if each.is_dir() else "") for each in found.iterdir())
        except OSError as error:
            raise ToolError(f"{path} cannot be listed: {error.strerror}") from error
        more = len(names) - _LISTED
        return [*names[:_LISTED], f"({more} more)"] if more > 0 else names

    return [read_file, write_file, list_files]


def _inside(root: Path, path: str) -> Path:
    """Links are resolved before the check, so that none leads out of the folder."""
    found = (root / path).resolve()
    if not found.is_relative_to(root):
        raise ToolError(f"{path} is not inside the working folder")
    return found


SHELL: Final = "shell"
"""A kit, and its tool."""
CODING: Final = "coding"
FILES: Final = "files"
KITS: Final[Mapping[str, Callable[[StageVisit, str], list[Tool]]]] = {
    SHELL: shell_of,
    FILES: files_of,
    CODING: coding_of,
}
"""Their tools, for a stage and a family of models."""


def check_kits(names: tuple[str, ...]) -> None:
    unknown = [name for name in names if name not in KITS]
    if unknown:
        raise InputError(f"unknown tools {unknown[0]!r}.", hint=f"Known: {', '.join(KITS)}.")


def asks_for_tools(stage: Stage, pipeline: Pipeline) -> str:
    """What the stage, or else the graph, says about them; empty if nothing."""
    return stage.text("tools") if "tools" in stage.attrs else pipeline.text("tools")


def wanted_kits(stage: Stage, pipeline: Pipeline, allowed: tuple[str, ...]) -> list[str]:
    """The allowed tools; a stage or the graph may ask for fewer (`tools="files"`, or `none`). The coding
    tools replace the others."""
    value = asks_for_tools(stage, pipeline)
    wanted = {name.strip() for name in value.split(",")} if value else set(allowed)
    if CODING in wanted and CODING in allowed:
        return [CODING]
    return [name for name in allowed if name in wanted]


def require_tools(stage: Stage, pipeline: Pipeline, allowed: tuple[str, ...]) -> None:
    """Raises SettingsError: without any of the tools that it asks for, a model could only claim its work."""
    value = asks_for_tools(stage, pipeline)
    if value and value != "none" and not wanted_kits(stage, pipeline, allowed):
        raise SettingsError(
            f"stage {stage.id!r} asks for tools={value}, which models may not use here.",
            hint="Allow it with `tools` in the file that HOLDFAST_MODELS names, or write tools=none.",
        )


def family_of(provider: str, model: str) -> str:
    """The provider whose tools a model knows: that of its name behind a gateway; empty for any other."""
    provider = PROVIDER_ALIASES.get(provider, provider)
    return provider if provider in PROVIDERS else provider_of(model)
