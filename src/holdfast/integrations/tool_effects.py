"""What the tools of other frameworks do, as their users declare it (IN-53)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from holdfast.errors import InputError
from holdfast.model.expressions import mapping_resolver
from holdfast.model.idempotency_keys import key_value
from holdfast.model.template import TemplateRenderError, single_braces
from holdfast.types.status import Effect

_OPTIONS: Final = {"effect", "idempotency_key"}


class OperationEffect(NamedTuple):
    """How an operation is recorded. `key`: a template over the arguments of the tool; empty: none."""

    effect: Effect
    key: str = ""

    def key_of(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        """Raises InputError if an argument that it names is missing or empty: calls would share the key."""
        if not self.key:
            return None
        try:
            return str(key_value(self.key, mapping_resolver(arguments)))
        except TemplateRenderError as error:
            raise InputError(
                f"the idempotency key {self.key!r} of tool {tool!r}: {error}",
                hint="Make the arguments that it names required in the tool, or name others.",
            ) from error


READ: Final = OperationEffect(Effect.read)
EXTERNAL: Final = OperationEffect(Effect.external)


def read_effects(effects: Mapping[str, Any] | None) -> dict[str, OperationEffect]:
    """By name of the tool: a class such as "read", or a dict with an `idempotency_key`. Raises InputError."""
    return {
        name: read_effect({"effect": given} if isinstance(given, str) else given, f"effects[{name!r}]")
        for name, given in (effects or {}).items()
    }


def read_effect(given: Any, where: str) -> OperationEffect:
    """Raises InputError."""
    options = cast("dict[str, Any]", given) if isinstance(given, dict) else None
    hint = 'Write {"effect": "read"}, and "idempotency_key": "refund-{{order_id}}" if the callee has one.'
    if options is None or options.keys() - _OPTIONS:
        raise InputError(f"{where} is {given!r}, which does not say what the tool does.", hint=hint)
    key = options.get("idempotency_key", "")
    try:
        effect = Effect(options.get("effect", Effect.external))
    except ValueError as error:
        raise InputError(f"{where}: the effect is one of {', '.join(Effect)}.", hint=hint) from error
    if not isinstance(key, str):
        raise InputError(f"{where}: the idempotency_key is a text.", hint=hint)
    if key and (single_braces(key) or "{{" not in key):
        raise InputError(f"{where}: the idempotency_key {key!r} is the same for every call.", hint=hint)
    return OperationEffect(effect, key)
