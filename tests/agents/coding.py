"""Calls of a coding agent's tools without a model: planned, then made, as the loop does it."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import msgspec

from holdfast import Tool, coding_tools
from holdfast.agents.tools import ToolOutput


def tool_named(root: Path, name: str, **options: Any) -> Tool:
    family = "openai" if name == "apply_patch" else "gemini"
    return next(each for each in coding_tools(root, family=family, **options) if each.name == name)


def planned(tool: Tool, **given: Any) -> tuple[dict[str, Any], Any]:
    """(the arguments with their defaults, what is recorded before the call)."""
    read = tool.read(msgspec.json.encode(given).decode())
    whole = {name: getattr(read, name) for name in read.__struct_fields__}
    return whole, None if tool.prepare is None else tool.prepare(**whole)


def made(tool: Tool, whole: dict[str, Any], prepared: Any = None, key: str = "key-1") -> str:
    more = {"prepared": prepared, "idempotency_key": key}
    value = tool(**whole, **{name: each for name, each in more.items() if name in tool.wants})
    if inspect.isawaitable(value):
        value = asyncio.run(_awaited(value))
    return value.text if isinstance(value, ToolOutput) else value


async def _awaited(value: Any) -> Any:
    return await value


def use(root: Path, name: str, **given: Any) -> str:
    tool = tool_named(root, name)
    return made(tool, *planned(tool, **given))


def tree(root: Path) -> dict[str, bytes]:
    return {str(each.relative_to(root)): each.read_bytes() for each in root.rglob("*") if each.is_file()}
