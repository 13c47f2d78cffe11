"""From a text to a pipeline that can run: order, files, and pipelines made of pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.errors import InputError, PipelineInvalidError
from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.render import render
from holdfast.frontends.dot.transforms import FileAccess, embed, merge, prepare

SMALL = """digraph P {
    graph [goal="win"]
    start [shape=Mdiamond]; exit [shape=Msquare]
    work [prompt="do $goal, then $goal again"]
    start -> work -> exit
}"""


def rules(text: str, **options: object) -> list[str]:
    return [each.rule for each in prepare(text, **options).diagnostics]  # type: ignore[arg-type]


def with_prompt(prompt: str) -> str:
    return SMALL.replace("do $goal, then $goal again", prompt)


class Suffix:
    def __init__(self, text: str) -> None:
        self._text = text

    def apply(self, pipeline: Pipeline) -> Pipeline:
        stage = pipeline.stages["work"]
        changed = replace(stage, attrs={**stage.attrs, "prompt": stage.prompt + self._text})
        return replace(pipeline, stages={**pipeline.stages, "work": changed})


@pytest.mark.covers("AT-215", "AT-217")
def test_own_transforms_run_after_the_built_in_ones_in_their_order() -> None:
    found = prepare(SMALL, transforms=[Suffix(" $goal"), Suffix("!"), Suffix("?").apply])
    assert found.pipeline.stages["work"].prompt == "do win, then win again $goal!?"


@pytest.mark.covers("AT-216")
def test_what_was_parsed_is_not_changed_by_transforms() -> None:
    parsed = parse(SMALL).pipeline
    before = parsed.stages["work"].prompt
    Suffix("!").apply(parsed)
    prepare(SMALL)
    assert parsed.stages["work"].prompt == before


@pytest.mark.covers("AT-217")
def test_a_prompt_that_names_a_goal_which_is_not_there_is_informed_of() -> None:
    assert "goal_missing" in rules(SMALL.replace('graph [goal="win"]', ""))
    assert "goal_missing" not in rules(SMALL)


class AuditBeforeExit:
    """Puts a stage in front of the exit, whatever leads there."""

    def apply(self, pipeline: Pipeline) -> Pipeline:
        audit = Stage(id="audit", attrs={"shape": "parallelogram", "tool_command": "true"})
        links = [replace(link, target="audit") if link.target == "exit" else link for link in pipeline.links]
        links.append(Link(source="audit", target="exit"))
        return replace(pipeline, stages={**pipeline.stages, "audit": audit}, links=tuple(links))


@pytest.mark.covers("AT-218")
def test_a_transform_can_inject_a_stage() -> None:
    found = prepare(SMALL, transforms=[AuditBeforeExit()])
    assert found.diagnostics == ()
    assert [(link.source, link.target) for link in found.pipeline.links] == [
        ("start", "work"),
        ("work", "audit"),
        ("audit", "exit"),
    ]


@pytest.mark.covers("AT-56")
def test_validation_sees_what_transforms_made() -> None:
    broken = SMALL.replace("-> exit", "")
    assert not prepare(SMALL).errors
    assert prepare(broken).errors

    def lead_to_exit(pipeline: Pipeline) -> Pipeline:
        return replace(pipeline, links=(*pipeline.links, Link(source="work", target="exit")))

    assert not prepare(broken, transforms=[lead_to_exit]).errors
    errors = prepare(SMALL, transforms=[lambda pipeline: replace(pipeline, links=())]).errors
    assert {each.rule for each in errors} == {"reachability"}


@pytest.mark.covers("AT-215")
def test_a_transform_that_fails_is_one_error_that_names_it() -> None:
    def explode(pipeline: Pipeline) -> Pipeline:
        raise ValueError("boom")

    def forget(pipeline: Pipeline) -> Pipeline:
        return None  # type: ignore[return-value]

    (error,) = prepare(SMALL, transforms=[explode]).errors
    assert "explode failed: ValueError: boom" in error.message
    (error,) = prepare(SMALL, transforms=[forget]).errors
    assert "forget" in error.message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "work.md").write_text("Read this: $goal")
    return tmp_path


def at(folder: Path) -> str:
    return str(folder / "main.dot")


@pytest.mark.covers("AT-217")
def test_a_prompt_is_read_from_the_file_that_it_names(folder: Path) -> None:
    found = prepare(with_prompt("@prompts/work.md"), path=at(folder))
    assert found.pipeline.stages["work"].prompt == "Read this: win"
    assert not found.diagnostics


def test_what_only_looks_like_a_file_is_text(folder: Path) -> None:
    for written, meant in [("@@home", "@home"), ("@dana please look", "@dana please look"), ("@", "@")]:
        assert prepare(with_prompt(written), path=at(folder)).pipeline.stages["work"].prompt == meant


@pytest.mark.covers("ATTRACTOR-BAD-04")
def test_a_prompt_file_that_is_missing_is_one_diagnostic_with_its_place(folder: Path) -> None:
    (text,) = prepare(with_prompt("@prompts/gone.md"), path=at(folder)).diagnostics
    assert text.rule == "file_reference"
    assert "prompts/gone.md does not exist" in text.message
    assert "@@prompts/gone.md" in text.fix
    assert (text.node_id, text.place.line, text.path) == ("work", 4, at(folder))
    with pytest.raises(PipelineInvalidError, match="does not exist"):
        prepare(with_prompt("@prompts/gone.md"), path=at(folder)).require_valid()


@pytest.mark.covers("ATTRACTOR-BAD-04")
@pytest.mark.parametrize(
    ("name", "says"),
    [("prompts", "not a file"), ("raw.bin", "UTF-8"), ("x" * 5000, "cannot be a file"), ("big.md", "larger")],
)
def test_what_cannot_be_a_prompt_is_one_diagnostic(folder: Path, name: str, says: str) -> None:
    (folder / "raw.bin").write_bytes(b"\xff\x00\xfe")
    with (folder / "big.md").open("wb") as big:
        big.truncate(5 * 1024 * 1024)
    (text,) = prepare(with_prompt(f"@{name}"), path=at(folder)).diagnostics
    assert says in text.message


def test_a_document_that_was_handed_in_reads_nothing_outside_of_its_folder(folder: Path) -> None:
    outside = folder / "secret.md"
    outside.write_text("secret")
    files = FileAccess(base=folder / "prompts")
    (folder / "prompts" / "link.md").symlink_to(outside)
    assert not prepare(with_prompt("@work.md"), files=files).diagnostics
    for name in ("../secret.md", str(outside), "link.md"):
        (text,) = prepare(with_prompt(f"@{name}"), files=files).diagnostics
        assert "outside" in text.message
    (text,) = prepare(with_prompt("@work.md")).diagnostics
    assert "may not read files" in text.message


def test_the_stylesheet_may_be_a_file_too(folder: Path) -> None:
    (folder / "models.css").write_text("* { llm_model: gpt-5.2 }")
    text = SMALL.replace('goal="win"', 'goal="win", model_stylesheet="@models.css"')
    found = prepare(text, path=at(folder))
    assert found.pipeline.stages["work"].text("llm_model") == "gpt-5.2"


CHILD = """digraph Child {
    graph [goal="inner", default_max_retries=2, model_stylesheet="#dig { llm_model: gpt-5.2 }"]
    start [shape=Mdiamond]; end [shape=Msquare]
    dig [prompt="@dig.md", goal_gate=true, retry_target=look]
    look [prompt="look at $goal"]
    start -> look -> dig
    dig -> look [condition="outcome=fail"]
    dig -> end [condition="outcome=success"]
}"""
PARENT = """digraph Parent {
    graph [goal="outer"]
    start [shape=Mdiamond]; exit [shape=Msquare]
    sub [subgraph_file="parts/child.dot", label="Sub", class=heavy]
    mend [prompt="mend $goal"]
    start -> sub
    sub -> exit [condition="outcome=success"]
    sub -> mend [condition="outcome!=success"]
    mend -> sub
}"""


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "child.dot").write_text(CHILD)
    (tmp_path / "parts" / "dig.md").write_text("dig for $goal")
    return tmp_path


@pytest.mark.covers("AT-219")
def test_a_pipeline_in_a_file_takes_the_place_of_a_stage(parts: Path) -> None:
    found = prepare(PARENT, path=at(parts))
    assert not found.diagnostics
    stages = found.pipeline.stages
    assert list(stages) == ["start", "exit", "sub", "sub__end", "sub__dig", "sub__look", "mend"]
    assert stages["sub__dig"].prompt == "dig for inner"
    assert stages["mend"].prompt == "mend outer"
    assert stages["sub__dig"].text("retry_target") == "sub__look"
    assert stages["sub__dig"].text("llm_model") == "gpt-5.2"
    assert stages["sub__look"].integer("max_retries") == 2
    assert "heavy" in stages["sub__look"].classes
    assert [stages[name].shape for name in ("sub", "sub__end")] == ["diamond", "diamond"]
    assert {(link.source, link.target) for link in found.pipeline.links} == {
        ("start", "sub"),
        ("sub", "sub__look"),
        ("sub__look", "sub__dig"),
        ("sub__dig", "sub__look"),
        ("sub__dig", "sub__end"),
        ("sub__look", "sub__end"),  # if it fails, and nothing inside answers that
        ("sub__end", "exit"),
        ("sub__end", "mend"),
        ("mend", "sub"),
    }


@pytest.mark.covers("AT-219")
def test_an_included_pipeline_is_the_same_when_it_is_written_out_and_read_again(parts: Path) -> None:
    parent = PARENT.replace("mend [prompt", 'subgraph s { label="Outer Loop"; sub }; mend [prompt')
    child = CHILD.replace("look [prompt", 'subgraph t { label="Inner Loop"; look }; look [prompt')
    (parts / "parts" / "child.dot").write_text(child)
    made = prepare(parent, path=at(parts)).require_valid()
    again = parse(render(made)).pipeline
    assert made.stages["sub__look"].classes == ("heavy", "outer-loop", "inner-loop")
    assert {name: (dict(each.attrs), each.classes, each.derived) for name, each in again.stages.items()} == {
        name: (dict(each.attrs), each.classes, each.derived) for name, each in made.stages.items()
    }
    assert {(each.source, each.target, each.condition) for each in again.links} == {
        (each.source, each.target, each.condition) for each in made.links
    }


@pytest.mark.covers("AT-219")
def test_what_a_stage_says_of_its_end_and_its_models_reaches_what_takes_its_place(parts: Path) -> None:
    more = "goal_gate=true, retry_target=mend, llm_model=claude-x, max_visits=3, label"
    stages = prepare(PARENT.replace("label", more, 1), path=at(parts)).pipeline.stages
    assert stages["sub__end"].flag("goal_gate")
    assert stages["sub__end"].text("retry_target") == "mend"
    assert not stages["sub"].flag("goal_gate")
    assert stages["sub"].integer("max_visits") == 3
    assert stages["sub__look"].text("llm_model") == "claude-x"
    assert stages["sub__dig"].text("llm_model") == "gpt-5.2"


@pytest.mark.covers("AT-219")
def test_faults_of_an_included_file_are_reported_with_its_own_place(parts: Path) -> None:
    (parts / "parts" / "child.dot").write_text("digraph Child {\n  a ->\n}")
    result = prepare(PARENT, path=at(parts)).errors
    assert [(Path(each.path).name, each.place.line) for each in result] == [("child.dot", 3)]


@pytest.mark.covers("AT-219")
def test_an_included_file_without_start_or_exit_cannot_stand_for_a_stage(parts: Path) -> None:
    (parts / "parts" / "child.dot").write_text("digraph Child { a -> b }")
    lines = [each for each in prepare(PARENT, path=at(parts)).errors if each.rule == "include"]
    assert len(lines) == 1
    assert "0 starts" in lines[0].message
    assert lines[0].place.line == 4


@pytest.mark.covers("ATTRACTOR-BAD-03")
def test_pipelines_that_include_each_other_are_one_diagnostic_that_names_the_cycle(tmp_path: Path) -> None:
    template = 'digraph P {{ start -> s; s [subgraph_file="{0}"]; s -> exit; start; exit }}'
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / f"{name}.dot").write_text(template.format(f"{other}.dot"))
    path = tmp_path / "a.dot"
    (text,) = prepare(path.read_text(), path=str(path)).errors
    assert "a.dot -> b.dot -> c.dot -> a.dot" in text.message
    assert Path(text.path).name == "c.dot"
    itself = template.format("own.dot")
    (tmp_path / "own.dot").write_text(itself)
    (text,) = prepare(itself, path=str(tmp_path / "own.dot")).errors
    assert "own.dot -> own.dot" in text.message


@pytest.mark.covers("ATTRACTOR-BAD-03")
def test_includes_that_multiply_end_at_a_bound(tmp_path: Path) -> None:
    for level in range(12):
        stages = " ".join(
            f's{i} [subgraph_file="{level + 1}.dot"]; start -> s{i} -> exit;' for i in range(12)
        )
        (tmp_path / f"{level}.dot").write_text(f"digraph P {{ start; exit; {stages} }}")
    (tmp_path / "12.dot").write_text("digraph P { start -> exit; start; exit }")
    path = tmp_path / "0.dot"
    result = prepare(path.read_text(), path=str(path)).errors
    assert len([each for each in result if "exceeds the limit" in each.message]) == 1


@pytest.mark.covers("AT-219")
def test_two_pipelines_are_merged_side_by_side() -> None:
    one = parse('digraph One { graph [goal="one"]; a -> b; a; b }').pipeline
    two = parse('digraph Two { graph [goal="two", label="T"]; a [retry_target=c]; a -> c; c }').pipeline
    with pytest.raises(InputError, match="both have a stage a"):
        merge(one, two)
    both = merge(one, two, prefix="x_")
    assert list(both.stages) == ["a", "b", "x_a", "x_c"]
    assert both.stages["x_a"].text("retry_target") == "x_c"
    assert [(link.source, link.target) for link in both.links] == [("a", "b"), ("x_a", "x_c")]
    assert (both.name, both.goal, both.text("label")) == ("One", "one", "T")
    assert list(one.stages) == ["a", "b"]


@pytest.mark.covers("AT-219")
def test_a_pipeline_is_embedded_by_a_transform() -> None:
    child = parse("digraph C { start -> inner -> exit; start; exit; inner [label=in] }").pipeline
    found = prepare(SMALL, transforms=[lambda pipeline: embed(pipeline, "work", child)])
    assert not found.errors
    assert {"work", "work__inner", "work__exit"} < set(found.pipeline.stages)


def test_the_child_of_a_manager_that_is_not_there_is_informed_of(parts: Path) -> None:
    text = """digraph M { graph [stack.child_dotfile="parts/child.dot"]
        start -> boss -> exit; start; exit; boss [shape=house] }"""
    assert "child_dotfile" not in rules(text, path=at(parts))
    assert "child_dotfile" in rules(text.replace("child.dot", "gone.dot"), path=at(parts))


@pytest.mark.parametrize("absolute", [False, True])
def test_managers_in_files_that_are_included_by_included_files_keep_their_children(
    tmp_path: Path, absolute: bool
) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "c.dot").write_text("digraph C { start; exit; work [label=W]; start -> work -> exit }")
    named = str(deep / "c.dot") if absolute else "c.dot"
    manager = f'm [shape=house, "stack.child_dotfile"="{named}"]'
    (deep / "y.dot").write_text(f"digraph Y {{ start; exit; {manager}; start -> m -> exit }}")
    inner = 'i [subgraph_file="b/y.dot"]; n [shape=house, "stack.child_dotfile"="b/c.dot"]'
    (tmp_path / "a/x.dot").write_text(f"digraph X {{ start; exit; {inner}; start -> i -> n -> exit }}")
    root = tmp_path / "root.dot"
    source = 'digraph R { start; exit; x [subgraph_file="a/x.dot"]; start -> x -> exit }'
    found = prepare(source, path=str(root))
    assert not found.errors
    assert list(found.pipeline.children) == ["a/b/c.dot"]
    children = {name: stage.text("stack.child_dotfile") for name, stage in found.pipeline.stages.items()}
    assert (children["x__i__m"], children["x__n"]) == ("a/b/c.dot", "a/b/c.dot")


def test_attributes_that_have_no_effect_on_an_included_pipeline_are_named(parts: Path) -> None:
    given = (
        'max_retries=3, timeout=10m, prompt="more", goal_gate=true, fail_closed=true, llm_model=m, cwd="x"'
    )
    text = PARENT.replace("subgraph_file", f'{given}, human.assignee="user:ann", subgraph_file', 1)
    assert text != PARENT
    found = [each for each in prepare(text, path=at(parts)).diagnostics if "has no effect on" in each.message]
    shown = {each.message.split()[0]: str(each.severity) for each in found}
    warned = dict.fromkeys(("max_retries", "timeout", "prompt"), "warning")
    assert shown == {**warned, "human.assignee": "error"}
