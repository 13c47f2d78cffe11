"""The model stylesheet: who wins, what is refused, where it reaches."""

from __future__ import annotations

import pytest

from holdfast.frontends.dot.diagnostics import DiagnosticSeverity
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.model_choice import ModelChoice, model_choice, provider_of
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.stylesheet import StylesheetTransform, parse_stylesheet
from holdfast.frontends.dot.transforms import prepare
from holdfast.frontends.dot.validate import validate


def styled(sheet: str, stages: str = "a", graph: str = "") -> Pipeline:
    written = sheet.replace("\\", "\\\\").replace('"', '\\"')
    text = f'digraph P {{ graph [model_stylesheet="{written}"{graph}]\n{stages} }}'
    return StylesheetTransform().apply(parse(text).pipeline)


def model(pipeline: Pipeline, name: str = "a") -> str:
    return pipeline.stages[name].text("llm_model")


@pytest.mark.covers("AT-206")
def test_an_id_beats_a_class_beats_a_shape_beats_all() -> None:
    sheet = "#a {llm_model: id} .c {llm_model: class} box {llm_model: shape} * {llm_model: all}"
    stages = "a [class=c]; b [class=c]; d; e [shape=hexagon]"
    found = styled(sheet, stages)
    assert [model(found, name) for name in "abde"] == ["id", "class", "shape", "all"]


@pytest.mark.covers("AT-207")
def test_of_equal_rules_the_later_wins_property_by_property() -> None:
    found = styled("* {llm_model: one; llm_provider: openai} * {llm_model: two}")
    assert model(found) == "two"
    assert found.stages["a"].text("llm_provider") == "openai"
    sheet = ".x {llm_model: one} .y {llm_model: two}"
    assert model(styled(sheet, 'a [class="y,x"]')) == "two"
    assert model(styled(".y {llm_model: two} .x {llm_model: one}", 'a [class="y,x"]')) == "one"


@pytest.mark.covers("AT-208")
def test_what_a_stage_says_itself_is_kept() -> None:
    found = styled("#a {llm_model: sheet; reasoning_effort: low}", "a [llm_model=own]")
    assert model(found) == "own"
    assert found.stages["a"].text("reasoning_effort") == "low"


@pytest.mark.covers("AT-208")
def test_defaults_of_a_block_are_not_what_a_stage_says_itself() -> None:
    found = styled(".code {llm_model: sheet}", "node [llm_model=usual]; a [class=code]; b")
    assert [model(found, name) for name in "ab"] == ["sheet", "usual"]


@pytest.mark.covers("AT-209")
def test_other_properties_are_refused() -> None:
    (fault,) = parse_stylesheet("* { temperature: 1 }").faults
    assert "temperature" in fault.message
    assert fault.offset == 4


@pytest.mark.covers("AT-209")
def test_two_short_names_of_properties_are_taken_with_a_warning() -> None:
    found = styled("* { model: m; provider: openai }", "start -> a -> exit; a")
    assert found.stages["a"].text("llm_provider") == "openai"
    lines = [each for each in validate(found) if each.rule == "stylesheet_syntax"]
    assert [each.severity for each in lines] == [DiagnosticSeverity.warning] * 2


@pytest.mark.covers("AT-210")
@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("llm_model: gpt-5.2", "gpt-5.2"),
        ("llm_model:gpt-5.2;", "gpt-5.2"),
        ('llm_model: "a model; with {marks}"', "a model; with {marks}"),
        ('llm_model: "say \\"hi\\""', 'say "hi"'),
        ("llm_model: llama3:70b; ", "llama3:70b"),
        ("llm_model: vendor/model-1.5", "vendor/model-1.5"),
        ("/* why */ llm_model: x", "x"),
    ],
)
def test_values_are_words_or_in_quotes(body: str, value: str) -> None:
    assert model(styled(f"* {{ {body} }}")) == value


@pytest.mark.covers("AT-211")
def test_a_model_is_chosen_by_stage_then_sheet_then_graph_then_default() -> None:
    found = styled("#b {llm_model: gpt-5.2}", "a; b; c [llm_model=gemini-3]", ', llm_model="claude-x"')
    chosen = {name: model_choice(found.stages[name], found) for name in "abc"}
    assert chosen["a"] == ModelChoice(model="claude-x", provider="anthropic", effort="high")
    assert chosen["b"] == ModelChoice(model="gpt-5.2", provider="openai", effort="high")
    assert chosen["c"] == ModelChoice(model="gemini-3", provider="gemini", effort="high")
    assert model_choice(found.stages["a"], parse("digraph P { a }").pipeline) == ModelChoice()


@pytest.mark.covers("AT-211")
@pytest.mark.parametrize(
    ("name", "provider"),
    [("o3-mini", "openai"), ("anthropic/claude-opus-4-6", "anthropic"), ("house-model", "")],
)
def test_the_provider_is_found_by_the_models_name(name: str, provider: str) -> None:
    assert provider_of(name) == provider


@pytest.mark.covers("AT-46", "AT-212")
def test_the_sheet_is_applied_before_validation_and_a_broken_one_is_an_error() -> None:
    text = """digraph P {
    graph [model_stylesheet="* { llm_provider: nobody }"]
    start [shape=Mdiamond]; exit [shape=Msquare]; a [prompt="x"]; start -> a -> exit }"""
    assert "provider_known" in {each.rule for each in prepare(text).diagnostics}
    broken = prepare(text.replace("nobody }", "nobody"))
    (error,) = broken.errors
    assert error.rule == "stylesheet_syntax"
    assert "line 1, column 25" in error.message
    assert (error.place.line, error.place.column) == (2, 12)


@pytest.mark.covers("AT-46")
@pytest.mark.parametrize(
    ("sheet", "says"),
    [
        ("{ llm_model: x }", "starts with"),
        ("box llm_model: x }", "expected { after box"),
        ("box { llm_model x }", "expected : after llm_model"),
        ("box { llm_model: ; }", "expected a value for llm_model"),
        ("box { llm_model: a llm_provider: b }", "expected ; between"),
        ("a, b { llm_model: x }", "starts with"),
        ("box { }", "is empty"),
        ('box { llm_model: "open }', "expected a value for llm_model"),
    ],
)
def test_each_fault_of_a_sheet_is_said(sheet: str, says: str) -> None:
    assert says in parse_stylesheet(sheet).faults[0].message


@pytest.mark.covers("AT-46")
def test_rules_after_a_broken_one_still_count() -> None:
    sheet = parse_stylesheet("box { nonsense } * { llm_model: x }")
    assert len(sheet.faults) == 1
    assert [rule.selector for rule in sheet.rules] == ["*"]


@pytest.mark.covers("AT-213")
def test_the_class_of_a_subgraph_is_reached() -> None:
    found = styled(".loop-a {llm_model: x}", 'subgraph s { label="Loop A"; a }; b')
    assert [model(found, name) for name in "ab"] == ["x", ""]


@pytest.mark.covers("AT-A26")
def test_classes_may_have_capitals_and_underscores() -> None:
    assert model(styled(".Heavy_Work {llm_model: x}", 'a [class="Heavy_Work"]')) == "x"


@pytest.mark.covers("AT-214")
def test_the_example_of_the_specification_resolves_as_it_says() -> None:
    sheet = """
        * { llm_model: claude-sonnet-4-5; llm_provider: anthropic; }
        .code { llm_model: claude-opus-4-6; llm_provider: anthropic; }
        #critical_review { llm_model: gpt-5.2; llm_provider: openai; reasoning_effort: high; }
    """
    stages = "plan [class=planning]; implement [class=code]; critical_review [class=code]"
    found = styled(sheet, stages)
    assert [model(found, name) for name in ("plan", "implement", "critical_review")] == [
        "claude-sonnet-4-5",
        "claude-opus-4-6",
        "gpt-5.2",
    ]
    assert found.stages["critical_review"].text("llm_provider") == "openai"


@pytest.mark.covers("AT-216")
def test_the_pipeline_that_was_given_stays_as_it_was() -> None:
    given = parse('digraph P { graph [model_stylesheet="* {llm_model: x}"] a }').pipeline
    assert model(StylesheetTransform().apply(given)) == "x"
    assert model(given) == ""
