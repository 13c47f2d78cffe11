"""One effect without a flow: calls of a function are runs of a flow of one node, found by their key."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast, get_type_hints

import msgspec

from holdfast.app.flow import Flow, run_blocking
from holdfast.checkpoint.shapes import shape_of
from holdfast.errors import ExpressionError, InputError, NotDone, ValueNotStorableError
from holdfast.frontends.python.code import code_fingerprint
from holdfast.frontends.python.function_parameters import is_coroutine
from holdfast.model.annotations import named_types
from holdfast.model.expressions.resolve import mapping_resolver
from holdfast.model.idempotency_keys import key_value
from holdfast.model.template import as_text, compile_template, single_braces
from holdfast.model.user_code.boundary import call, call_plain
from holdfast.runs.context.context import Context
from holdfast.runs.driver.retryable_errors import is_declared
from holdfast.types.ids import DEFAULT_TENANT, EFFECT_FLOW, RunId, effect_run_id
from holdfast.types.redaction import MASK
from holdfast.types.status import REPEATABLE
from holdfast.types.text import clean_text, require_text
from holdfast.types.value import freeze, thaw

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast

TextOfCall = str | Callable[..., str]
"""A template over the arguments such as `refund-{{order}}`, or a function of them."""
MARK: Final = "holdfast_effect"
APPROVE: Final = "approve"
CALL: Final = "call"
OPTIONS: Final = (APPROVE, "reject")
MAX_KEY: Final = 255
_OWNER: Final = ("self", "cls")


@dataclass
class EffectState:
    """What is recorded of a call."""

    key: str
    arguments: dict[str, Any]
    question: str = ""
    decision: str = ""
    result: Any = None


class EffectCall(NamedTuple):
    """A call as it is recorded, and what its function gets that is not recorded."""

    run: RunId
    tenant: str
    started_by: str | None
    given: dict[str, Any]
    unrecorded: dict[str, Any]
    # What the function raised while this call ran it: raised again as it is.
    raised: list[BaseException]


class EffectFunction:
    """The declaration of `hf.effect(...)` around one function. `flow`: what its calls are runs of."""

    def __init__(
        self,
        hf: Holdfast,
        fn: Callable[..., Any],
        *,
        key: TextOfCall,
        name: str | None,
        effect: str,
        in_doubt: str,
        probe: Callable[..., Any] | None,
        hold: bool | TextOfCall | Mapping[str, Any] | None,
        ignore: Iterable[str],
        tenant: TextOfCall,
        started_by: TextOfCall | None,
        policies: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> None:
        self.hf, self.fn = hf, fn
        self.name = name or getattr(fn, "__name__", type(fn).__name__)
        self.is_async = is_coroutine(fn)
        self.key, self.tenant, self.started_by = key, tenant, started_by
        if self.name == "<lambda>":
            raise InputError("an effect is a lambda: all of them have one name.", hint="Give name=.")
        self.signature = _signature(fn, self.name)
        self._require_filled(key)
        self.ignored = frozenset(self._named(ignore, "ignores")) | self._owner()
        self.question, self._hold = _question(hold, self.name)
        self.probe = probe
        # Calls that this process advances at the moment.
        self.running: dict[RunId, EffectCall] = {}
        # Whether it may run again where it is not known whether it happened.
        self.is_repeatable = effect in REPEATABLE or in_doubt == "retry"
        self.flow = self._flow(effect, in_doubt, dict(policies), dict(settings))

    def _require_filled(self, key: TextOfCall) -> None:
        """Raises InputError for `refund-{order}`: it would be one key for all orders."""
        for path in single_braces(key) if isinstance(key, str) else ():
            raise InputError(
                f"the key of the effect {self.name!r} has {{{path}}}, which is not replaced.",
                hint=f"Write {{{{{path}}}}}.",
            )

    def _named(self, given: Iterable[str], does: str) -> list[str]:
        """Names of parameters. Raises InputError for one that the function does not take."""
        names = list(self.signature.parameters)
        wanted = [given] if isinstance(given, str) else list(given)
        unknown = sorted(set(wanted) - set(names))
        if unknown:
            raise InputError(
                f"the effect {self.name!r} {does} {', '.join(map(repr, unknown))}, which its function does "
                "not take.",
                hint=f"Its parameters are: {', '.join(names) or 'none'}.",
            )
        return wanted

    def _owner(self) -> frozenset[str]:
        return frozenset(list(self.signature.parameters)[:1]) & frozenset(_OWNER)

    # ------------------------------------------------------------------ as a flow
    def _flow(
        self, effect: str, in_doubt: str, policies: dict[str, Any], settings: dict[str, Any]
    ) -> Flow[EffectState]:
        hidden = settings.get("secrets") or ()
        self.hidden = frozenset(self._named([each.partition(".")[0] for each in hidden], "hides"))
        settings["secrets"] = [f"arguments.{each}" for each in hidden]
        settings["types"] = (*settings.get("types", ()), *self._types())
        made: Flow[EffectState] = Flow(f"{EFFECT_FLOW}{self.name}", state=EffectState, **settings)
        if in_doubt == "retry":
            # The other side recognises the key: running the function again is safe.
            policies["idempotency_key"] = "{{key}}"
        else:
            policies["in_doubt"] = in_doubt
        if self.probe is not None:
            policies |= {"probe": self._probed, "in_doubt": "probe"}
        handler = self._perform_async if self.is_async else self._perform
        act = made.node(id=CALL, effect=effect, **policies)(handler)
        # The user's code, not ours, is what may change between two versions.
        code = code_fingerprint(self.fn)
        made.handlers[CALL] = msgspec.structs.replace(made.handlers[CALL], code=code)
        if self._hold is not None:
            asked = made.hold(APPROVE, **self._hold)
            made.edge(asked, act, when=f"decision == '{APPROVE}'")
        made.program()
        return made

    def _types(self) -> list[type]:
        """Those of arguments and results that a record can have."""
        try:
            hints = get_type_hints(self.fn)
        except Exception:  # a name that only checkers know
            return []
        found = dict.fromkeys(kind for hint in hints.values() for kind in named_types(hint))
        return [kind for kind in found if _is_storable(kind)]

    async def _perform_async(self, s: EffectState, ctx: Context) -> dict[str, Any]:
        arguments = self._arguments(s, ctx)
        try:
            found = await self.fn(*arguments.args, **arguments.kwargs)
            return {"result": self._storable(found)}
        except BaseException as error:
            noted = self._noted(ctx, error)
            if noted is error:
                raise
            raise noted from error

    def _perform(self, s: EffectState, ctx: Context) -> dict[str, Any]:
        arguments = self._arguments(s, ctx)
        try:
            found = call_plain(self.fn, *arguments.args, **arguments.kwargs)
            return {"result": self._storable(found)}
        except BaseException as error:
            noted = self._noted(ctx, error)
            if noted is error:
                raise
            raise noted from error

    def _storable(self, found: Any) -> Any:
        return freeze(found, self.flow.program().adopt, f"the result of the effect {self.name!r}")

    def _noted(self, ctx: Context, error: BaseException) -> BaseException:
        """What the function raised, for its caller. Recorded is whether it proves that nothing happened."""
        running = self.running.get(ctx.run_id)
        # A cancellation is how a time limit ends it, and says nothing to the caller.
        if running is not None and isinstance(error, Exception):
            running.raised[:] = [error]
        node = self.flow.nodes[0]
        declared = is_declared(node.retry, self.flow.handlers[CALL].retry_on, error)
        if self.is_repeatable or not (declared or isinstance(error, NotDone)):
            return error
        return NotDone(f"{type(error).__name__}: {clean_text(error)}")

    async def _probed(self, s: EffectState, ctx: Context) -> dict[str, Any] | None:
        assert self.probe is not None
        arguments = self._arguments(s, ctx)
        found = await call(self.probe, *arguments.args, **arguments.kwargs)
        if found is None or found is False:
            return None
        return {"result": None if found is True else found}

    def _arguments(self, s: EffectState, ctx: Context) -> inspect.BoundArguments:
        """As they were recorded, and approved. Raises NotDone where the function must not be called."""
        if ctx.run_id != self.run_of(s.key, ctx.tenant):
            # A branch or a run that was started otherwise would repeat what its key stands for.
            raise NotDone(
                f"run {ctx.run_id} is not the run of the key {s.key!r} of the effect {self.name!r}.",
                hint="Call the function; to do it again on purpose, call it with another key.",
            )
        running = self.running.get(ctx.run_id)
        unrecorded = {} if running is None else running.unrecorded
        absent = sorted(self.ignored - unrecorded.keys())
        if absent:
            raise NotDone(
                f"the effect {self.name!r} gets {', '.join(absent)} from its caller, which is not recorded.",
                hint="Call the function again with the same key.",
            )
        bound = inspect.BoundArguments(self.signature, cast("Any", {}))
        given = {**thaw(s.arguments), **unrecorded}
        bound.arguments = {name: given[name] for name in self.signature.parameters if name in given}
        return bound

    # ------------------------------------------------------------------ a call
    def run_of(self, key: str, tenant: str = DEFAULT_TENANT) -> RunId:
        return effect_run_id(tenant, self.name, key)

    def read_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> EffectCall:
        """Raises TypeError as the function would, and InputError for a key that cannot be made."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        recorded = {name: value for name, value in bound.arguments.items() if name not in self.ignored}
        unrecorded = {name: value for name, value in bound.arguments.items() if name in self.ignored}
        self._require_storable(recorded)
        key = self._key(bound)
        tenant = self._text(self.tenant, bound, "tenant")
        given: dict[str, Any] = {"key": key, "arguments": recorded}
        if self.question is not None:
            given["question"] = self._text(self.question, bound, "hold")
        started_by = None if self.started_by is None else self._text(self.started_by, bound, "started_by")
        return EffectCall(self.run_of(key, tenant), tenant, started_by, given, unrecorded, [])

    def _require_storable(self, recorded: dict[str, Any]) -> None:
        for name, value in recorded.items():
            where = f"the argument {name!r} of the effect {self.name!r}"
            try:
                freeze(value, self.flow.program().adopt, where)
            except ValueNotStorableError as error:
                raise ValueNotStorableError(
                    error.message,
                    hint=f"Give plain data; an argument that is not part of what happens, such as a client "
                    f'or a session, is left out of the record by ignore=["{name}"].',
                ) from error

    def _key(self, bound: inspect.BoundArguments) -> str:
        key = self._text(self.key, bound, "key")
        if not key.strip() or len(key) > MAX_KEY:
            raise InputError(
                f"the key of the effect {self.name!r} is {clean_text(repr(key), 80)}.",
                hint=f"It names this one effect, in 1 to {MAX_KEY} characters: key='refund-{{{{order}}}}'.",
            )
        return key

    def _text(self, given: TextOfCall, bound: inspect.BoundArguments, what: str) -> str:
        where = f"{what} of the effect {self.name!r}"
        if callable(given):
            return require_text(call_plain(given, *bound.args, **bound.kwargs), where)
        names = {**bound.arguments}
        if what == "hold":
            names |= dict.fromkeys(self.hidden & names.keys(), MASK)
        for parameter in self.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                names |= names.get(parameter.name, {})
        try:
            resolve = mapping_resolver(names)
            found = (
                key_value(given, resolve)
                if what == "key"
                else compile_template(given).render(resolve, strict=True).value
            )
        except ExpressionError as error:
            raise InputError(
                f"{where}: {error}.",
                hint=f"It may use the parameters: {', '.join(self.signature.parameters)}.",
            ) from error
        return require_text(found if isinstance(found, str) else as_text(found), where)

    # ------------------------------------------------------------------ around the function
    def wrapped(self, wait: float | None, on_conflict: str) -> Callable[..., Any]:
        """A function like the given one: frameworks read its name, signature, types and kind."""
        from holdfast.app.effect_call import perform

        @wraps(self.fn)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            return await perform(self, args, kwargs, wait=wait, on_conflict=on_conflict)

        @wraps(self.fn)
        def synchronous(*args: Any, **kwargs: Any) -> Any:
            return run_blocking(perform(self, args, kwargs, wait=wait, on_conflict=on_conflict))

        made = asynchronous if self.is_async else synchronous
        setattr(made, MARK, self)
        return made


def effect_of(value: Any) -> EffectFunction | None:
    """The declaration behind a decorated function."""
    found = getattr(value, MARK, None) if inspect.isfunction(value) else None
    return found if isinstance(found, EffectFunction) else None


def _signature(fn: Callable[..., Any], name: str) -> inspect.Signature:
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise InputError(
            f"the effect {name!r} is a generator, whose values come one by one.",
            hint="Decorate a function that returns its whole result.",
        )
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the parameters of {name!r} cannot be read: {error}.", hint="Wrap it in a function of your own."
        ) from error


def _question(
    given: bool | TextOfCall | Mapping[str, Any] | None, name: str
) -> tuple[TextOfCall | None, dict[str, Any] | None]:
    """The text of the question, and the other options of its hold."""
    if given is None or given is False:
        return None, None
    options: dict[str, Any] = {"prompt": given}
    if isinstance(given, Mapping):
        options = dict(cast("Mapping[str, Any]", given))
    prompt: Any = options.pop("prompt", True)
    if prompt is True:
        prompt = f"Run {name}?"
    if not (isinstance(prompt, str) or callable(prompt)):
        raise InputError(
            f"the hold of the effect {name!r} asks {clean_text(repr(prompt), 80)}.",
            hint="Give the question, a function that returns it, True, or a dict of options.",
        )
    chosen: list[Any] = options.setdefault("options", list(OPTIONS))
    names: list[Any] = [getattr(each, "id", each) for each in chosen]
    names += [cast("Mapping[str, Any]", each).get("id") for each in chosen if isinstance(each, Mapping)]
    if APPROVE not in names:
        raise InputError(
            f"the hold of the effect {name!r} has no option {APPROVE!r}.",
            hint=f"The effect happens only after {APPROVE!r}; all other options reject it.",
        )
    options.setdefault("context", {"arguments": "{{arguments}}", "key": "{{key}}"})
    return cast("TextOfCall", prompt), {**options, "prompt": "{{question}}", "bind": "decision"}


def _is_storable(kind: type) -> bool:
    try:
        shape_of(kind)
    except (ValueNotStorableError, TypeError):
        return False
    return True
