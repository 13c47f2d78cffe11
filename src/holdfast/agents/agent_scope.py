"""The scope of an agent in a node: its sub-steps and questions have keys, so that their order does not
matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.runs.context.context import Context
from holdfast.runs.context.questions import Reply

ROOT = "agent"


class AgentScope:
    """A path of keys in one context. `label` is shown before the names of sub-steps: `researcher/search`."""

    def __init__(self, ctx: Context, path: str, label: str = "") -> None:
        self.ctx = ctx
        self.path = path
        self.label = label

    @property
    def is_root(self) -> bool:
        return not self.label

    def key(self, part: str) -> str:
        return f"{self.path}/{part}"

    def below(self, part: str, label: str | None = None) -> AgentScope:
        return AgentScope(self.ctx, self.key(part), self.label if label is None else f"{self.label}{label}/")

    async def step(self, part: str, name: str, fn: Callable[..., Any], **options: Any) -> Any:
        return await self.ctx.step(f"{self.label}{name}", fn, key=self.key(part), **options)

    async def ask(self, part: str, prompt: str, **options: Any) -> Reply:
        return await self.ctx.ask(prompt, key=self.key(part), **options)

    def has(self, part: str) -> bool:
        return self.ctx.recorded(self.key(part)) is not None

    def asked(self, part: str) -> str | None:
        """The recorded question: its text must not change if its inputs change."""
        return self.ctx.recorded(self.key(part))

    async def mark_turn(self, number: int, shown: dict[str, str], *, listed: bool) -> None:
        await self.ctx.mark_turn(number, shown or None, key=self.key(f"{number}/turn"), listed=listed)


class ScriptContext:
    """The `ctx` of a script tool: its calls have their own numbers, separate from other tools."""

    def __init__(self, at: AgentScope) -> None:
        self._at = at
        self._calls = 0

    def _next(self) -> str:
        self._calls += 1
        return f"s{self._calls}"

    async def step(self, name: str, fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
        options.setdefault("key", self._at.key(self._next()))
        return await self._at.ctx.step(f"{self._at.label}{name}", fn, *args, **options)

    async def ask(self, prompt: str, **options: Any) -> Reply:
        options.setdefault("key", self._at.key(self._next()))
        return await self._at.ctx.ask(prompt, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._at.ctx, name)


_used: WeakKeyDictionary[Context, int] = WeakKeyDictionary()


def new_agent_scope(ctx: Context) -> AgentScope:
    """A separate scope for each conversation of a node, numbered in order of their start."""
    number = _used[ctx] = _used.get(ctx, 0) + 1
    return AgentScope(ctx, ROOT if number == 1 else f"{ROOT}#{number}")
