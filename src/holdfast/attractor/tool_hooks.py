"""Commands around tool calls of a model: `tool_hooks.pre` may refuse one, `tool_hooks.post` gets its result.

They run inside the recorded step of the call: if the call is not repeated, neither are its hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Final

import msgspec

from holdfast.agents.agent import AgentTool
from holdfast.agents.command import run_command
from holdfast.agents.tool_call import result_text
from holdfast.agents.tools import OURS, Tool, ToolError, ToolOutput
from holdfast.attractor.command_run import sandbox_of
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.run_files import is_refused_here, make_private, open_private
from holdfast.errors import InputError, RequirementsMissingError
from holdfast.model.user_code.boundary import call as call_code
from holdfast.types.text import clean_text

PRE, POST = "tool_hooks.pre", "tool_hooks.post"
TIMEOUT: Final = 60.0
FILE: Final = "tool_hooks.jsonl"
_SHOWN: Final = 300


class Hooks:
    """The hooks of one stage: its own commands, else the graph's."""

    def __init__(self, visit: StageVisit, environment: Mapping[str, str]) -> None:
        self._visit = visit
        self._environment = environment
        self.pre, self.post = command_of(visit, PRE), command_of(visit, POST)
        limit = visit.stage.microseconds("tool_hooks.timeout")
        limit = visit.pipeline.microseconds("tool_hooks.timeout") if limit is None else limit
        self._timeout = TIMEOUT if limit is None else limit / 1e6

    def around(self, tool: Tool) -> Tool:
        """The same tool with the hooks around each call; an agent as a tool with hooks around those that it
        makes. Tools made of sub-steps get no hooks: their code runs again on every entry."""
        if isinstance(tool, AgentTool):
            return tool.with_each_tool(self.around)
        if tool.fn is None or tool.script or not (self.pre or self.post):
            return tool
        made = copy(tool)
        made.fn = self._hooked(tool.name, tool.fn)
        return made

    def _hooked(self, name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
        async def call(**given: Any) -> Any:
            shown = {key: value for key, value in given.items() if key not in OURS}
            # Outside of the try: a refused call was not made, so the post hook does not run.
            await self._run_pre_hook(name, shown)
            try:
                value = await call_code(fn, **given)
            except Exception as error:
                await self._run_post(name, shown, clean_text(error, 2000), failed=True)
                raise
            failed = isinstance(value, ToolOutput) and value.failed
            await self._run_post(name, shown, result_text(value), failed=failed)
            return value

        return call

    async def _run_pre_hook(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Any exit code except 0 refuses the call, and so does a hook that cannot be run."""
        if not self.pre:
            return
        code, output = await self._run(self.pre, {"hook": "pre", "tool": name, "arguments": arguments})
        if code != 0:
            why = f"{PRE} ended with {_ending(code)}{': ' + output if output else ''}"
            self._note({"hook": "pre", "tool": name, "code": code, "said": output, "skipped": True})
            raise ToolError(f"the call was not made: {why}")

    async def _run_post(self, name: str, arguments: Mapping[str, Any], result: str, *, failed: bool) -> None:
        if not self.post:
            return
        data = {"hook": "post", "tool": name, "arguments": arguments, "result": result, "failed": failed}
        code, output = await self._run(self.post, data)
        # Only logged: the call is made and cannot be refused any more.
        if code != 0:
            self._note({"hook": "post", "tool": name, "code": code, "said": output, "skipped": False})

    def _note(self, entry: dict[str, Any]) -> None:
        """Log the hook: in the run's log and in the stage's folder."""
        what = "skipped by" if entry["skipped"] else "made; failed:"
        text = f": {entry['said']}" if entry["said"] else ""
        hook = PRE if entry["hook"] == "pre" else POST
        self._visit.ctx.emit(f"{entry['tool']} {what} {hook} ({_ending(entry['code'])}){text}", "log")
        with suppress(OSError):
            if is_refused_here():
                return
            make_private(self._visit.folder)
            with open_private(self._visit.folder / FILE, appends=True) as file:
                file.write(msgspec.json.encode(entry) + b"\n")

    async def _run(self, command: str, data: Mapping[str, Any]) -> tuple[int | None, str]:
        """(exit code, output); None if it could not be run or took too long."""
        visit = self._visit
        more = {"run_id": visit.ctx.run_id, "stage": visit.stage.id, "visit": visit.ctx.visit}
        body = msgspec.json.encode({**data, **more}, enc_hook=str)
        environment = {
            **self._environment,
            "TOOL_HOOK": str(data["hook"]),
            "TOOL_NAME": str(data["tool"]),
            "TOOL_FAILED": "true" if data.get("failed") else "false",
        }
        try:
            return await run_hook(command, body, environment, self._timeout, sandbox_of(visit))
        except (OSError, InputError, RequirementsMissingError) as error:
            # No exit code counts as a refusal of the pre hook: a check that cannot be run has not passed.
            reason = error.strerror if isinstance(error, OSError) else error.message
            return None, f"it cannot be run: {reason}"


def command_of(visit: StageVisit, key: str) -> str:
    """An empty hook on the stage disables the graph's."""
    return visit.stage.text(key) if key in visit.stage.attrs else visit.pipeline.text(key)


async def run_hook(
    command: str,
    body: bytes,
    environment: Mapping[str, str],
    timeout: float,
    sandbox: Sequence[str] = (),
) -> tuple[int | None, str]:
    ended = await run_command(
        (*sandbox, "/bin/sh", "-c", command),
        cwd=None,
        env=environment,
        timeout=timeout,
        most=2**16,
        given=body,
        errors_only=True,
    )
    if ended.timed_out:
        return None, f"it took longer than {timeout:g} s"
    return ended.code, clean_text(ended.output.strip(), _SHOWN)


def _ending(code: int | None) -> str:
    return "no exit code" if code is None else f"exit code {code}"
