"""What a review found in asking: slips that nobody was told of, and errors that named no place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Feedback, Flow, FlowInvalidError, Holdfast, Interactions, operator
from holdfast.errors import InputError
from holdfast.holds.interactions import review

pytestmark = pytest.mark.anyio

SLIPS: dict[str, tuple[dict[str, Any], str]] = {
    "a text for options": ({"options": "ab"}, "options='ab'"),
    "no option at all": ({"options": []}, "a free answer"),
    "an unknown word": (
        {"options": [{"id": "no", "requires_coment": True}]},
        "unknown field 'requires_coment'",
    ),
    "a comment nearly required": (
        {"options": [{"id": "no", "requires_comment": "true"}]},
        "requires_comment of option 'no' is not True or False",
    ),
    "a default that is nearly one": (
        {"options": [{"id": "no", "default": 1}]},
        "default of option 'no' is not True or False",
    ),
    "a list as context": ({"context": [1]}, "context"),
    "a text as context": ({"context": "x"}, "context"),
    "a type that is no text": ({"type": 5}, "type"),
    "no question": ({"prompt": None}, "prompt"),
}


@pytest.fixture
async def hf(anyio_backend: str) -> AsyncIterator[Holdfast]:
    async with Holdfast("memory:") as hf:
        yield hf


@pytest.mark.covers("CP-6", "HOLD-BAD-02")
@pytest.mark.parametrize("slip", list(SLIPS))
def test_a_flow_does_not_compile_with_a_slip_in_its_question(slip: str) -> None:
    given, text = SLIPS[slip]
    flow = Flow("f", effect="pure")
    flow.hold("ask", **{"prompt": "?", **given})
    with pytest.raises(FlowInvalidError) as caught:
        flow.compile()
    assert text in str(caught.value)
    assert "node 'ask'" in str(caught.value)


@pytest.mark.covers("CP-6", "HOLD-BAD-02")
@pytest.mark.parametrize("slip", list(SLIPS))
async def test_a_node_asks_nobody_with_a_slip_in_its_question(hf: Holdfast, slip: str) -> None:
    given, text = SLIPS[slip]
    flow = Flow("f", effect="pure")

    @flow.script
    async def ask(ctx: Context) -> dict[str, Any]:
        asked: dict[str, Any] = {"prompt": "?", **given}
        return {"said": (await ctx.ask(**asked)).decision}

    result = await flow.run({}, on=hf)
    assert result.status == "failed"
    assert result.error is not None
    assert text in result.error.message
    assert result.error.code in ("answer_invalid", "invalid_input")


@pytest.mark.covers("HOLD-BAD-02")
@pytest.mark.parametrize(
    ("limits", "place"),
    [({"kind": "number", "min": 5, "max": 1}, "max"), ({"min_length": 5, "max_length": 1}, "max_length")],
)
def test_a_field_that_nothing_fits_does_not_compile(limits: dict[str, Any], place: str) -> None:
    flow = Flow("f", effect="pure")
    flow.hold("ask", prompt="?", sections=[{"type": "input", "field": "a", **limits}])
    with pytest.raises(FlowInvalidError, match=rf"sections\[0\]\.{place}: no value is at least 5"):
        flow.compile()


@pytest.mark.covers("HOLD-SEC-14")
async def test_a_text_for_a_file_opens_nothing_here(hf: Holdfast, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("of this machine")
    flow = Flow("f", effect="pure")
    flow.hold("ask", prompt="?", sections=[{"type": "input", "field": "doc", "kind": "file"}])
    (hold,) = (await flow.run({}, on=hf)).holds
    holds = await hf.holds()
    sent: Any = str(secret)
    with pytest.raises(InputError, match="must be bytes"):
        await holds.attach(operator(), hold.id, "doc", "secret.txt", sent)
    assert await holds.files(operator(), hold.id) == []
    assert (await holds.attach(operator(), hold.id, "doc", "secret.txt", secret))["size"] == 15


@pytest.mark.covers("G-46")
@pytest.mark.parametrize("text", ["", "  ", "x" * 10_001])
async def test_feedback_says_something_and_not_too_much(hf: Holdfast, text: str) -> None:
    people = Interactions(hf)
    with pytest.raises(InputError):
        await people.give_feedback(Feedback(text=text))
    assert await people.feedback() == []


@pytest.mark.parametrize("confidence", [5, -0.1, float("nan")])
def test_a_review_has_a_confidence_or_none(confidence: float) -> None:
    with pytest.raises(InputError, match="not between 0 and 1"):
        review("Dear all", confidence=confidence)
