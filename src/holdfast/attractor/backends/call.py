"""The call of a backend that records nothing itself: a function, or an object with `run`.

It may do anything, so it counts as an effect outside, like a handler of one's own: if the worker dies during
the call, a person is asked before it is made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from holdfast.attractor.backends.base import AnyBackend, declared_effect
from holdfast.attractor.backends.select import backend_name
from holdfast.attractor.failures import CLASS_KEY, failure_of, timed_out
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.stage_effects import mark_effect
from holdfast.frontends.dot.policies import declared_effect_of
from holdfast.types.status import REPEATABLE, Effect


def effect_for(backend: AnyBackend, visit: StageVisit) -> Effect:
    """What the stage says, else the backend; external without either."""
    return declared_effect_of(visit.stage) or declared_effect(backend) or Effect.external


async def call_once(
    backend: AnyBackend, visit: StageVisit, name: str, fn: Callable[[], Awaitable[Any]]
) -> Any:
    """The recorded result of `fn`, which calls the backend. An error and the timeout of the stage are results
    too, with `failed` and `class`: only an end that nobody saw is in doubt. Of a call that a person says has
    happened it is what the person gave."""
    effect = effect_for(backend, visit)

    async def call() -> Any:
        try:
            if effect not in REPEATABLE:
                await mark_effect(visit, backend_name(backend))
            return await fn()
        except asyncio.CancelledError:
            limit = visit.ctx.patience.limit
            if limit is None or not limit.expired():
                raise
            return failure_fields(timed_out(visit.stage))
        except Exception as error:
            return failure_fields(failure_of(error))

    return await visit.ctx.step(name, call, effect=effect)


def failure_fields(failed: StageOutcome) -> dict[str, Any]:
    return {"failed": failed.failure_reason, "class": failed.context_updates[CLASS_KEY]}


def as_fields(found: Any) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None
