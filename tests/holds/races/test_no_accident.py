"""Nothing equals approval by accident: whatever is sent, left out, broken or late, only a yes is a yes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Flow, Holdfast
from holdfast.errors import ConflictError, HoldfastError, InputError
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.holds.policies.judge import read_judgement
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus, RunStatus
from holdfast.types.terms import Actor, operator
from tests.holds.notify.scene import Diary
from tests.holds.races.race import Arena

# What looks like an approval to a careless eye.
NEARLY = (
    "Approve", "APPROVE", " approve", "approve ", "approve\n", "approve\x00", "\u200bapprove", "\u0430pprove",
    "approved", "yes", "ok", "true", "default", "submit", "1", "", " ", "null", "None", "approve,reject",
)  # fmt: skip
WORDS = st.sampled_from((*NEARLY, "approve", "reject"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=True) | WORDS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["decision", "resolution", "approved", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
NAMES = st.sampled_from(
    ["decision", "resolution", "comment", "response_data", "request_hash", "approved", "status", "Decision"]
)
BODIES = WORDS | st.dictionaries(NAMES, VALUES, max_size=3)


def says(body: Any) -> str | None:
    """What a body decides, read as narrowly as it can be; none: nothing, or not clearly."""
    if isinstance(body, str):
        return body
    found = [body.get("decision"), body.get("resolution")]
    inner = found[1]
    words = [found[0], inner.get("decision") if isinstance(inner, Mapping) else inner]
    given_words = [word for word in words if word is not None]
    same = len({str(word) for word in given_words}) == 1 and all(isinstance(w, str) for w in given_words)
    return given_words[0] if same else None


class Till:
    """An instance in memory whose runs pay where somebody approves."""

    def __init__(self, hf: Holdfast, **asked: Any) -> None:
        self.hf, self.paid = hf, list[str]()
        self.flow = Flow("refund", effect="pure")
        ask = self.flow.hold("ask", prompt="Pay?", **{"options": ["approve", "reject"], **asked})

        @self.flow.node(effect="external", idempotency_key="pay")
        async def pay(_s: dict[str, Any], ctx: Any) -> dict[str, Any]:
            self.paid.append(ctx.run_id)
            return {}

        self.flow.edge(ask, pay, when="decision == 'approve'")

    async def asks(self) -> HoldRow:
        (hold,) = (await self.flow.run({}, on=self.hf)).holds
        return hold

    async def row(self, hold: HoldRow) -> HoldRow:
        found = await (await self.hf.open()).hold(hold.id)
        assert found is not None
        return found

    async def is_paid(self, hold: HoldRow) -> bool:
        await self.flow.resume(hold.run, on=self.hf)
        return hold.run in self.paid


@pytest.mark.covers("HOLD-BAD-03", "RS-1", "RS-3")
@pytest.mark.parametrize("options", [["approve", "reject"], None])
def test_only_the_word_itself_approves_whatever_is_sent(options: Any) -> None:
    async def sent(body: Any) -> None:
        async with Holdfast("memory:", clock=FakeClock()) as hf:
            till = Till(hf, options=options)
            hold = await till.asks()
            meant = says(body)
            try:
                await (await hf.holds()).resolve(operator(), hold.id, body)
            except (InputError, ConflictError):
                assert (await till.row(hold)).status is HoldStatus.pending
            else:
                kept = msgspec.json.decode((await till.row(hold)).resolution or b"{}")
                assert kept["decision"] == meant
            assert await till.is_paid(hold) <= (meant == "approve")

    @settings(max_examples=120)
    @given(BODIES)
    def whatever(body: Any) -> None:
        asyncio.run(sent(body))

    whatever()


@pytest.mark.covers("HOLD-BAD-03", "G-42")
@settings(max_examples=300)
@given(VALUES | st.fixed_dictionaries({"approved": VALUES, "confidence": VALUES}))
def test_a_judge_approves_only_where_it_says_so(said: Any) -> None:
    try:
        found = read_judgement(said)
    except (ValueError, TypeError, AttributeError):
        return
    assert 0 <= found.confidence <= 1
    if found.decision == "approve":
        plainly = said is True or said == "approve"
        in_full = isinstance(said, dict) and (said.get("approved") is True or said["decision"] == "approve")
        assert plainly or in_full


# ---------------------------------------------------------------------- what is broken, late or looked at


@pytest.mark.anyio
@pytest.mark.covers("HOLD-BAD-03", "EX-8", "EX-5")
@pytest.mark.parametrize(
    "on_timeout",
    [{}, {"on_timeout": "fail"}, {"on_timeout": "cancel"}, {"on_timeout": "default"},
     {"on_timeout": "default", "default_option": "reject"}, {"on_timeout": "escalate:"},
     {"on_timeout": "escalate:group:leads"}, {"ladder": [("1h", "user:x")]}],
)  # fmt: skip
async def test_nobody_is_paid_because_nobody_answered(arena: Arena, on_timeout: dict[str, Any]) -> None:
    arena.asking(timeout="1h", **on_timeout)
    try:
        row = await arena.asked()
    except InputError:
        return  # it is no flow at all
    sweeper = HoldSweeper(arena.store, arena.clock)
    for _ in range(6):
        arena.clock.advance(hours=2)
        await sweeper.sweep()
    result = await arena.goes_on(row)
    assert (await arena.row(row.id)).status is not HoldStatus.pending
    assert result.status in (RunStatus.completed, RunStatus.failed, RunStatus.cancelled)
    assert arena.payments(row) == 0


@pytest.mark.anyio
@pytest.mark.covers("HOLD-BAD-03")
@pytest.mark.parametrize("mail", ["answer", "lapse", "resume", "timer", "cancelled", "approve"])
async def test_a_run_that_is_woken_for_nothing_goes_on_waiting(arena: Arena, mail: str) -> None:
    arena.asking()
    row = await arena.asked()
    await arena.store.send(row.run, mail, row.id.encode() if mail != "resume" else b"")
    assert (await arena.goes_on(row)).status is RunStatus.pending_input
    assert (await arena.row(row.id)).status is HoldStatus.pending
    assert arena.payments(row) == 0


@pytest.mark.anyio
@pytest.mark.covers("HOLD-BAD-03", "NO-2")
async def test_a_dead_channel_decides_nothing(arena: Arena) -> None:
    async def dies(_notice: Any) -> None:
        raise OSError("no route to host")

    arena.asking(assignee="user:dana@acme")
    row = await arena.asked()
    channels = Channels(arena.store, arena.clock, given=(Diary(before=dies),))
    deliverer = Deliverer(arena.store, arena.clock, channels)
    for _ in range(30):
        await deliverer.deliver()
        arena.clock.advance(hours=12)
    after = await arena.row(row.id)
    assert (after.status, after.notification_sent) == (HoldStatus.pending, False)
    assert (await arena.goes_on(row)).status is RunStatus.pending_input


@pytest.mark.anyio
@pytest.mark.covers("HOLD-BAD-03", "HOLD-SEC-02")
async def test_looking_decides_nothing_however_often(arena: Arena) -> None:
    arena.asking(assignee="user:dana@acme")
    row = await arena.asked()
    links = Links(arena.holds.ctx)
    token = await links.make(row, LinkGrant(to="user:dana@acme", purpose="decide", decisions=("approve",)))
    for _ in range(20):
        assert (await links.look(token)).way == "decide"
    dana = Actor(id="user:dana@acme")
    await arena.holds.seen(dana, row.id)
    await arena.holds.save_draft(dana, row.id, Submission(decision="approve"))
    await arena.holds.claim(dana, row.id)
    assert (await arena.holds.bulk(dana, [row.id], "approve", preview=True)).done == 1
    assert (await arena.goes_on(row)).status is RunStatus.pending_input
    assert arena.payments(row) == 0


@pytest.mark.anyio
@pytest.mark.covers("HOLD-BAD-03", "HOLD-BAD-01")
async def test_a_decision_that_was_refused_leaves_nothing_that_could_be_taken_for_one(arena: Arena) -> None:
    arena.asking(timeout="1h", late_resolution="reject")
    row = await arena.asked()
    someone = Actor(id="user:sam@acme", groups=frozenset({"finance"}))
    tries: list[dict[str, Any]] = [
        {"if_match": 99},
        {"body": {"decision": "approve", "request_hash": "sha256:other"}},
        {"body": {"decision": "approve", "resolution": "reject"}},
        {"body": {"decision": "approve", "comment": "x" * 20_000}},
        {"body": {"decision": "approve", "response_data": {"x": "y" * 300_000}}},
        {"body": {"approve": True}},
    ]
    for each in tries:
        with pytest.raises((InputError, ConflictError)):
            await arena.holds.resolve(someone, row.id, **{"body": "approve", **each})
    with pytest.raises(HoldfastError):
        await arena.holds.resolve(Actor(id="user:eve"), row.id, "approve")
    arena.clock.advance(hours=1)
    with pytest.raises(ConflictError):
        await arena.holds.resolve(someone, row.id, "approve")
    assert (await arena.row(row.id)).status is HoldStatus.pending
    await HoldSweeper(arena.store, arena.clock).sweep()
    assert (await arena.goes_on(row)).status is RunStatus.failed
    assert arena.payments(row) == 0


@pytest.mark.anyio
@pytest.mark.covers("HOLD-BAD-01", "RS-6")
@pytest.mark.parametrize("key", ["", "k" * 256, "\ud800", 7, ["k"]])
async def test_what_is_no_key_is_refused_and_decides_nothing(arena: Arena, key: Any) -> None:
    arena.asking()
    row = await arena.asked()
    for act in (arena.holds.resolve, arena.holds.place):
        with pytest.raises(InputError, match="an idempotency key"):
            await act(operator(), row.id, "approve", idempotency_key=key)
    with pytest.raises(InputError):
        await arena.holds.answer(row.id, "approve", by="\ud800")
    assert (await arena.row(row.id)).status is HoldStatus.pending
    # As long as it may be.
    assert not (await arena.holds.resolve(operator(), row.id, "approve", idempotency_key="k" * 255)).replay
