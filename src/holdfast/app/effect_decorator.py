"""`hf.effect(...)`: the smallest way in, one effect without a flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from holdfast.errors import InputError
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.ids import DEFAULT_TENANT
from holdfast.types.retention import Retention

if TYPE_CHECKING:
    from datetime import timedelta

    from holdfast.app.effect_function import EffectFunction, TextOfCall
    from holdfast.app.holdfast import Holdfast
    from holdfast.frontends.python.policies import Duration, Retry

F = TypeVar("F", bound="Callable[..., Any]")


class EffectDeclarations:
    """The part of an instance that declares effects."""

    def __init__(self) -> None:
        self.effects: dict[str, EffectFunction] = {}

    def effect(
        self,
        *,
        key: TextOfCall,
        effect: str = "external",
        name: str | None = None,
        hold: bool | TextOfCall | Mapping[str, Any] | None = None,
        in_doubt: str = "ask",
        probe: Callable[..., Any] | None = None,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        ignore: Iterable[str] = (),
        wait: float | str | timedelta | None = 0,
        on_conflict: str = "wait",
        tenant: TextOfCall = DEFAULT_TENANT,
        started_by: TextOfCall | None = None,
        secrets: Iterable[str] = (),
        types: Iterable[type] = (),
        lane: str = "default",
    ) -> Callable[[F], F]:
        """Make each call of a function one recorded effect, which is never repeated in silence.

        `key` names the effect: a template over the arguments (`refund-{{order}}`) or a function of them. A
        call with a key that was used before returns the recorded result; with other arguments it raises
        KeyReusedError. An error of the function is raised as it is, and the next call tries again, unless the
        outcome is unknown: after a crash, a timeout or any error that does not prove that nothing happened
        (`NotDone`, or those in `Retry(retry_on=...)`). Then `in_doubt` decides: `ask` opens a hold and raises
        EffectInDoubtError, `fail` raises OutcomeUnknownError in every call, `retry` runs it again, for
        functions whose other side knows the key. `probe`: a function of the same arguments that finds out;
        None or False if it did not happen, True or the result if it did.

        `hold`: a person approves each effect first. True, the question (a template or function), or the
        options of `flow.hold`. Until then a call raises EffectWaitingError. `wait`: so long a call waits for
        a person first; None: for ever. `on_conflict`: `wait` for another process that runs the same key, or
        `refuse` with RunBusyError.

        `ignore`: parameters that are not recorded, such as clients. `name`: of the effect, by default the
        function's; its flow is `effect.NAME`. `secrets`: arguments that are never shown."""
        from holdfast.app.effect_function import EffectFunction

        patience = _patience(wait)
        if on_conflict not in ("wait", "refuse"):
            raise InputError(f"on_conflict is {on_conflict!r}.", hint="It is `wait` or `refuse`.")
        if probe is not None and in_doubt != "ask":
            raise InputError(
                f"an effect has probe= and in_doubt={in_doubt!r}.",
                hint="Leave in_doubt out: a person is asked where the probe cannot tell.",
            )
        if probe is not None and not callable(probe):
            raise InputError(
                f"probe is {probe!r}.", hint="Give a function of the same arguments that finds out."
            )
        _require_texts(key=key, tenant=tenant)
        if in_doubt == "probe" and probe is None:
            raise InputError("in_doubt is 'probe', but no probe is given.", hint="Give probe= a function.")

        def declare(fn: F) -> F:
            made = EffectFunction(
                cast("Holdfast", self), fn,
                key=key, name=name, effect=effect, in_doubt=in_doubt, probe=probe, hold=hold, ignore=ignore,
                tenant=tenant, started_by=started_by, policies={"retry": retry, "timeout": timeout},
                # A key is known only while its run is kept, so retention deletes none of them.
                settings={"secrets": list(secrets), "types": tuple(types), "lane": lane,
                          "retention": Retention()},
            )  # fmt: skip
            self._require_one(made)
            return cast("F", made.wrapped(patience, on_conflict))

        return declare

    def _require_one(self, made: EffectFunction) -> None:
        """A name stands for one function: with two of them, one key would mean two effects."""
        known = self.effects.setdefault(made.name, made)
        if _place(known.fn) != _place(made.fn):
            raise InputError(
                f"two functions are the effect {made.name!r}: {_place(known.fn)} and {_place(made.fn)}.",
                hint="Give one of them another name: @hf.effect(name=..., key=...).",
            )
        self.effects[made.name] = made


def _place(fn: Callable[..., Any]) -> str:
    kind = fn if hasattr(fn, "__qualname__") else type(fn)
    return f"{kind.__module__}.{kind.__qualname__}"


def _require_texts(**given: Any) -> None:
    for name, value in given.items():
        if not (isinstance(value, str) or callable(value)):
            raise InputError(
                f"{name} is {value!r}.", hint=f"Give a template or a function: {name}='refund-{{{{order}}}}'."
            )


def _patience(wait: float | str | timedelta | None) -> float | None:
    if wait is None or wait == 0:
        return None if wait is None else 0.0
    try:
        return parse_duration(wait).total_seconds()
    except (DurationError, TypeError, ValueError) as error:
        raise InputError(f"wait is {wait!r}: {error}.", hint='Write "5m", seconds, or None.') from error
