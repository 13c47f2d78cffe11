"""Selects the handler of a stage: by its type, else by its shape, else codergen."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any

from holdfast.attractor.handler import BuiltInHandler, StageHandler
from holdfast.errors import InputError
from holdfast.frontends.dot.document import Stage
from holdfast.frontends.dot.handler_kinds import BUILT_IN, DEFAULT, SHAPES, kind_of

AnyHandler = StageHandler | BuiltInHandler


class HandlerRegistry:
    """Registering a type again replaces its handler."""

    def __init__(self, handlers: Mapping[str, AnyHandler] | None = None) -> None:
        self._handlers: dict[str, AnyHandler] = dict(handlers or {})
        self.default_handler: AnyHandler | None = None

    def register(self, type_string: str, handler: AnyHandler) -> None:
        """Raises InputError if it is not a handler."""
        if not type_string:
            raise InputError(
                "a handler is registered without a type.", hint='registry.register("my_type", ...)'
            )
        if not callable(getattr(handler, "execute", None)) and not callable(
            getattr(handler, "perform", None)
        ):
            raise InputError(
                f"the handler of type {type_string!r} is a {type(handler).__name__} without `execute`.",
                hint="Give an object with execute(node, context, graph, logs_root) -> Outcome.",
            )
        self._handlers[type_string] = handler

    def __contains__(self, type_string: str) -> bool:
        return type_string in self._handlers

    def get(self, type_string: str) -> AnyHandler | None:
        return self._handlers.get(type_string)

    @property
    def types(self) -> frozenset[str]:
        """The values of `type=`: built-in and registered ones."""
        return BUILT_IN | self._handlers.keys()

    @property
    def registered(self) -> frozenset[str]:
        return frozenset(self._handlers)

    @property
    def custom(self) -> frozenset[str]:
        return frozenset(self._handlers.keys() - BUILT_IN)

    def kind_of(self, stage: Stage) -> str:
        return kind_of(stage, self.types)

    def resolve(self, stage: Stage) -> AnyHandler:
        """By type, then shape, then the default; an unregistered type falls back to the shape."""
        for kind in (stage.type, self.kind_of(stage), SHAPES.get(stage.shape, "")):
            found = self._handlers.get(kind)
            if found is not None:
                return found
        if self.default_handler is not None:
            return self.default_handler
        found = self._handlers.get(DEFAULT)
        if found is None:
            raise InputError(f"no handler for stage {stage.id!r} is registered.", hint="Register one.")
        return found

    def only(self, types: Collection[str]) -> HandlerRegistry:
        """A new registry with the handlers of these types."""
        found = HandlerRegistry({kind: each for kind, each in self._handlers.items() if kind in types})
        found.default_handler = self.default_handler
        return found

    def merged(self, other: HandlerRegistry | None) -> HandlerRegistry:
        """A new registry: this one with what the other adds or replaces."""
        whole = HandlerRegistry(self._handlers)
        whole.default_handler = self.default_handler
        if other is not None:
            whole._handlers.update(other._handlers)
            whole.default_handler = other.default_handler or self.default_handler
        return whole


def wants_visit(handler: Any) -> bool:
    """Whether `execute` has a parameter `visit`."""
    try:
        return "visit" in inspect.signature(handler.execute).parameters
    except (TypeError, ValueError):
        return False
