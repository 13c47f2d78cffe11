"""Those who only look, while others write in the middle of it: what they see is whole."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.holds.queries.audit import verify_audit
from holdfast.holds.service import HoldService
from holdfast.types.hold import HoldRow
from tests.holds.races.acts import ADMIN, DANA
from tests.holds.races.race import Arena
from tools.verify_evidence import verify

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-PG-14")]

READS = {"hold", "audit", "audit_head", "hold_notes", "list_holds"}


class Disturbed:
    """A handle on a store at whose nth read somebody else has just decided the hold."""

    def __init__(self, arena: Arena, row: HoldRow, nth: int) -> None:
        self._arena, self._row, self._nth = arena, row, nth
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._arena.store, name)
        if name not in READS:
            return found

        async def read(*args: Any, **given: Any) -> Any:
            self.reads += 1
            if self.reads == self._nth:
                await self._arena.holds.resolve(DANA, self._row.id, "approve")
            return await found(*args, **given)

        return read


@pytest.mark.covers("HI-5", "HOLD-SEC-13")
async def test_an_audit_that_grows_while_it_is_checked_is_whole(arena: Arena) -> None:
    arena.asking()
    for nth in range(1, 9):
        disturbed: Any = Disturbed(arena, await arena.asked(), nth)
        found = await verify_audit(disturbed, "default")
        assert found.whole, (nth, found)
        if disturbed.reads < nth:
            return
    pytest.fail("it reads without end")


@pytest.mark.covers("HOLD-PROOF-01", "HOLD-SEC-13")
async def test_evidence_is_sound_that_is_taken_while_somebody_decides(arena: Arena) -> None:
    arena.asking()
    for nth in range(1, 30):
        row = await arena.asked()
        disturbed: Any = Disturbed(arena, row, nth)
        pack = await HoldService(disturbed).evidence(ADMIN, row.id)
        assert list(verify(pack)) == [], nth
        if disturbed.reads < nth:
            return
    pytest.fail("it reads without end")
