"""`/absence`: one's own absence, and the substitute who acts meanwhile."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from starlette.responses import Response

from holdfast.api.auth.rights import Right
from holdfast.api.pages.negotiation import pages
from holdfast.api.pages.render import page, redirect
from holdfast.api.problems import status_of
from holdfast.api.routing import ApiCall
from holdfast.errors import HoldfastError, InputError
from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.admin import Registrar
from holdfast.holds.directory.base import Person
from holdfast.holds.directory.stored import TableDirectory
from holdfast.types.clock import to_datetime, to_micros

routes = pages()


@routes.get("/absence", needs=Right.holds_write)
async def absence_page(call: ApiCall) -> Response:
    """Shows one's own absence, and a form to set or end it."""
    return await _show(call)


@routes.post("/absence", needs=Right.holds_write)
async def change_absence(call: ApiCall) -> Response:
    """Sets or ends one's own absence."""
    form, store = await call.form("act", "substitute", "last_day"), await call.hf.open()
    own, registrar = await _own(call), Registrar(store, by=call.actor.id, people=call.actor.people)
    typed = {name: str(form.get(name) or "").strip() for name in ("substitute", "last_day")}
    try:
        if own is None:
            raise InputError("you are not in the directory of this server.")
        if form.get("act") == "end":
            await registrar.back(call.tenant, own.id)
        else:
            if not typed["substitute"]:
                raise InputError("the substitute is missing.", hint="Write their name or address.")
            away = Away(
                substitute=typed["substitute"], until=_after(typed["last_day"]), made_by=call.actor.people
            )
            await registrar.put_away(call.tenant, own.id, away)
    except HoldfastError as error:
        return await _show(call, error, typed)
    return redirect("/absence", call.request)


def _after(day: str) -> int | None:
    """The end of this day (UTC), in microseconds; None if none is given. Raises InputError."""
    if not day:
        return None
    try:
        end = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise InputError("the last day is not a date.", hint="Write 2027-01-31.") from None
    return to_micros(end)


async def _own(call: ApiCall) -> Person | None:
    name = call.actor.id
    tables = TableDirectory(await call.hf.open())
    return await tables.person(call.tenant, name) if name.startswith("user:") else None


async def _show(
    call: ApiCall, error: HoldfastError | None = None, typed: dict[str, str] | None = None
) -> Response:
    own = await _own(call)
    away = None if own is None else own.away
    last = None if away is None or away.until is None else to_datetime(away.until) - timedelta(microseconds=1)
    return page(
        call.request,
        "absence.html",
        who=call.who,
        status=200 if error is None else status_of(error),
        own=own,
        away=away,
        last_day="" if last is None else f"{last:%Y-%m-%d}",
        typed=typed or {},
        error=error,
        csrf=call.who.csrf,
    )
