"""Whatever a text is, reading it ends soon: in a pipeline that can be rendered, or in faults with places."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import PipelineSyntaxError
from holdfast.frontends.dot import token_reader
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.render import render
from tests.attractor.read import meaning
from tests.attractor.texts import mutants, soups

anything = soups | mutants() | st.text(max_size=200) | st.binary(max_size=200)
long = settings(settings.get_profile("soak"), max_examples=20_000, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def few_tokens_at_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_reader, "WINDOW", 1)
        patch.setattr(token_reader, "AHEAD", 8)
        yield


def holds(source: str | bytes, *, strict: bool) -> None:
    try:
        pipeline = parse(source, strict=strict).pipeline
    except PipelineSyntaxError as error:
        found = error.facts["diagnostics"]
        assert found
        assert all(one.place.line >= 1 and one.place.column >= 1 and one.fix for one in found)  # type: ignore[attr-defined]
    else:
        text = render(pipeline)
        assert meaning(parse(text).pipeline) == meaning(pipeline)


@pytest.mark.covers("ATTRACTOR-PROOF-15")
@given(anything, st.booleans())
@settings(max_examples=300)
def test_reading_neither_hangs_nor_crashes(source: str | bytes, strict: bool):
    holds(source, strict=strict)


@pytest.mark.soak
@given(anything, st.booleans())
@long
def test_reading_neither_hangs_nor_crashes_for_long(source: str | bytes, strict: bool):
    holds(source, strict=strict)
