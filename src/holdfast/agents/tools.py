"""Tools: typed Python functions that a model may call, each with an effect class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from copy import copy
from datetime import timedelta
from typing import Any, overload

import msgspec

from holdfast.agents.messages import ToolSpec
from holdfast.agents.schemas import Read, parameters_of, reader_of, schema_of
from holdfast.agents.truncation import OutputLimit
from holdfast.errors import InputError, NotDone
from holdfast.model.expressions import compile_expr, mapping_resolver
from holdfast.model.template import compile_template
from holdfast.model.user_code.boundary import call_plain
from holdfast.types.duration import parse_duration
from holdfast.types.status import REPEATABLE, Effect

Duration = str | int | float | timedelta
When = bool | str | Callable[[Mapping[str, Any]], bool]

# Parameters that the model does not set.
OURS = frozenset({"ctx", "idempotency_key", "files", "sandbox", "prepared"})
ALWAYS, NEVER = "always", "never"


class ToolError(NotDone):
    """Raise it from a tool if nothing happened; the model gets the message."""

    code = "tool"


class ToolOutput(msgspec.Struct, frozen=True):
    """Return it from a tool whose result is an error although it ran: a command that failed, for example."""

    text: str
    failed: bool = False


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Approval by a person before a tool runs. `when`: always, an expression over the arguments
    (`"amount > 100"`), or a function of them. `prompt`: a template over the arguments. `on_timeout`: reject
    (default), approve, error, or an action of holds."""

    when: When = True
    assignee: str | None = None
    timeout: Duration | None = None
    on_timeout: str | None = None
    priority: str = "normal"
    prompt: str | None = None

    def manner(self) -> dict[str, Any]:
        """The arguments for `ctx.ask`."""
        asked = {"assignee": self.assignee, "timeout": self.timeout, "priority": self.priority}
        action, _, word = (self.on_timeout or "").partition(":")
        word = {"approve": "approve", "accept": "approve", "reject": "reject"}.get(action, word)
        if word and action != "escalate":
            return {**asked, "on_timeout": "default_option", "default_option": word}
        return {**asked, "on_timeout": "fail" if action == "error" else self.on_timeout}

    def is_needed(self, arguments: Mapping[str, Any]) -> bool:
        """If the condition cannot be evaluated, a person is asked."""
        when = self.when
        if isinstance(when, bool):
            return when
        if isinstance(when, str) and when in (ALWAYS, NEVER):
            return when == ALWAYS
        try:
            if isinstance(when, str):
                return compile_expr(when).evaluate(mapping_resolver(dict(arguments))) is not False
            return call_plain(when, arguments) is not False
        except Exception:
            return True


class Tool:
    """A tool for a model. Created by `@tool` from a function, or by `Agent.as_tool`."""

    def __init__(
        self,
        fn: Callable[..., Any] | None,
        *,
        name: str,
        description: str,
        schema: dict[str, Any],
        read: Read,
        effect: Effect = Effect.external,
        idempotent: bool = False,
        approval: Approval | None = None,
        script: bool = False,
        timeout: float | None = None,
        max_calls: int | None = None,
        prepare: Callable[..., Any] | None = None,
        ordered: bool = False,
        limit: OutputLimit | None = None,
    ) -> None:
        self.fn = fn
        self.spec = ToolSpec(name, description, schema)
        self.read = read
        self.effect = effect
        self.idempotent = idempotent
        self.approval = approval
        self.script = script
        self.timeout = timeout
        self.max_calls = max_calls
        self.prepare = prepare
        self.ordered = ordered
        self.limit = limit
        given = inspect.signature(fn).parameters.keys() if fn is not None else set[str]()
        # Further parameters besides the model's arguments.
        self.wants = frozenset(OURS & given)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_repeatable(self) -> bool:
        """Whether the model may get its errors: it changed nothing, or may be called again."""
        return self.effect in REPEATABLE or self.idempotent

    def with_description(self, description: str) -> Tool:
        """The same tool with another description, if there is one."""
        if not description:
            return self
        made = copy(self)
        made.spec = msgspec.structs.replace(self.spec, description=description)
        return made

    def with_approval(self, approval: When | Approval) -> Tool:
        """The same tool, which a person approves. Raises InputError."""
        made = copy(self)
        made.approval = approval_of(approval, None, self.name, self.spec.schema.get("properties"))
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A tool can be called like its function: a test needs no model."""
        if self.fn is None:
            raise TypeError(f"tool {self.name!r} has no function to call")
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name!r} {self.effect}>"


@overload
def tool(fn: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: str = "external",
    idempotent: bool = False,
    approval: When | Approval | None = None,
    assignee: str | None = None,
    script: bool = False,
    timeout: Duration | None = None,
    max_calls: int | None = None,
    prepare: Callable[..., Any] | None = None,
    ordered: bool = False,
    limit: OutputLimit | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a typed function a tool. Its docstring is the description for the model.

    `effect` as for nodes: `external` (default), `read` if it only reads, `pure` if it only computes.
    `idempotent`: it takes `idempotency_key` and may be called again with the same one. `approval`: True,
    an expression over the arguments, a function of them, or an `Approval`. `script`: it takes `ctx` and is
    made of sub-steps and questions itself. `timeout`: of one call. `max_calls`: in one conversation.
    `prepare`: a function of the same arguments that changes nothing; what it returns is recorded before the
    call, and given to it as `prepared`, the same after a crash. `ordered`: of several calls in one reply it
    waits for those before it, and those after it wait for it. `limit`: how much of its result the model gets.
    """
    if fn is not None:
        return _tool(fn)

    def made(inner: Callable[..., Any]) -> Tool:
        return _tool(inner, **options)

    return made


def as_tool(given: Any) -> Tool:
    """A tool as it is, or a plain function with the defaults."""
    if isinstance(given, Tool):
        return given
    if callable(given):
        return _tool(given)
    raise InputError(f"{given!r} is not a tool.", hint="Pass functions, @tool functions or Agent.as_tool().")


def _tool(
    fn: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    effect: str = "external",
    idempotent: bool = False,
    approval: When | Approval | None = None,
    assignee: str | None = None,
    script: bool = False,
    timeout: Duration | None = None,
    max_calls: int | None = None,
    prepare: Callable[..., Any] | None = None,
    ordered: bool = False,
    limit: OutputLimit | None = None,
) -> Tool:
    called = name or getattr(fn, "__name__", type(fn).__name__)
    _check_function(fn, called, script=script, idempotent=idempotent)
    given = parameters_of(fn, called, OURS)
    schema = schema_of(given, f"tool {called!r}")
    schema.pop("title", None)
    return Tool(
        fn,
        name=called,
        description=description if description is not None else inspect.getdoc(fn) or "",
        schema=schema,
        read=reader_of(given),
        effect=_effect(effect, called),
        idempotent=idempotent,
        approval=approval_of(approval, assignee, called, schema.get("properties")),
        script=script,
        timeout=None if timeout is None else parse_duration(timeout).total_seconds(),
        max_calls=max_calls,
        prepare=prepare,
        ordered=ordered,
        limit=limit,
    )


def _check_function(fn: Callable[..., Any], name: str, *, script: bool, idempotent: bool) -> None:
    parameters = inspect.signature(fn).parameters
    is_async = inspect.iscoroutinefunction(fn)
    if "ctx" in parameters and not is_async:
        raise InputError(
            f"tool {name!r} takes ctx but is not `async def`.", hint="Write it as `async def`, or remove ctx."
        )
    if script and "ctx" not in parameters:
        raise InputError(f"tool {name!r} is a script without ctx.", hint="Add the parameter ctx: Context.")
    if idempotent and "idempotency_key" not in parameters:
        raise InputError(
            f"tool {name!r} is declared idempotent but has no parameter idempotency_key.",
            hint="Add `idempotency_key: str`, and pass it to the service that it calls.",
        )


def _effect(given: str, name: str) -> Effect:
    try:
        return Effect(given)
    except ValueError:
        hint = f"Use one of: {', '.join(Effect)}."
        raise InputError(f"tool {name!r}: effect={given!r} is not valid.", hint=hint) from None


def approval_of(
    given: When | Approval | None, assignee: str | None, name: str, arguments: Collection[str] | None = None
) -> Approval | None:
    """`arguments`: those that the condition and the prompt may read, if they are known. Raises InputError."""
    if given is None or given is False or given == NEVER:
        return None
    found = given if isinstance(given, Approval) else Approval(when=given, assignee=assignee)
    if found.on_timeout in ("default", "default_option"):
        raise InputError(
            f"tool {name!r}: on_timeout={found.on_timeout!r} is not valid.",
            hint='Use "reject" (default) or "approve".',
        )
    readers = (
        ("approval", found.when, _names_of_condition),
        ("prompt", found.prompt, _names_of_text),
    )
    for field, text, read in readers:
        if isinstance(text, str) and text not in (ALWAYS, NEVER):
            try:
                names = read(text)
            except ValueError as error:
                raise InputError(f"tool {name!r}: {field}={text!r}: {error}.") from error
            unknown = sorted(names.difference(arguments)) if arguments is not None else []
            if unknown:
                raise InputError(
                    f"tool {name!r}: {field}={text!r} reads {unknown[0]!r}, which is not an argument.",
                    hint=f"Its arguments are: {', '.join(arguments or ()) or 'none'}.",
                )
    return found


def _names_of_condition(text: str) -> set[str]:
    return {path[0] for path in compile_expr(text).names}


def _names_of_text(text: str) -> set[str]:
    """A person would be asked about something that is not shown."""
    return {path[0] for path in compile_template(text).names}
