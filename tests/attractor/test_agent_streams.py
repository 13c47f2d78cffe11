"""The streams of command-line agents: lines become answer, usage and error, whatever they contain."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.agents.messages import TokenUsage
from holdfast.attractor.backends.agents.adapter import AgentStart
from holdfast.attractor.backends.agents.backend import ADAPTERS
from holdfast.attractor.backends.agents.failure import failure_kind
from holdfast.attractor.backends.agents.stream import AgentReport, events_in
from holdfast.attractor.backends.cli import result_in
from tests.attractor import fake_agents
from tests.attractor.fake_agents import Step

NAMES = list(ADAPTERS)


def out(play: list[Step]) -> str:
    return "".join(step.get("out", "") for step in play)


def read(name: str, text: str) -> AgentReport:
    return ADAPTERS[name].read(events_in(text))


def good(name: str, text: str = "It is done.") -> str:
    return out(getattr(fake_agents, name)(text))


@pytest.mark.covers("CP2-P3")
@pytest.mark.parametrize(
    ("name", "model", "usage", "cost"),
    [
        ("claude", "claude-x", TokenUsage(15, 7, 3, 2), 0.25),
        ("codex", "", TokenUsage(100, 20, 10, 0), None),
        ("gemini", "gemini-x", TokenUsage(50, 13, 10), None),
    ],
)
def test_a_whole_stream_gives_answer_session_and_usage(
    name: str, model: str, usage: TokenUsage, cost: float | None
) -> None:
    found = read(name, good(name))
    assert (found.text, found.ended, found.failed) == ("It is done.", True, "")
    assert (found.session, found.model) == ("SESSION", model)
    assert (found.usage, found.cost) == (usage, cost)


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_without_its_last_event_has_not_ended(name: str) -> None:
    text = good(name)
    for cut in range(0, len(text) - 2, 7):
        found = read(name, text[:cut])
        assert not found.ended
        assert found.usage is None


@pytest.mark.parametrize("name", NAMES)
def test_unknown_types_and_lines_that_are_no_events_fail_nothing(name: str) -> None:
    odd: list[Any] = [
        "Loaded cached credentials.", "[1, 2]", "null", "{half", '{"type": 3}', '{"no": "type"}',
        {"type": "rate_limit_event", "x": 1}, {"type": "assistant", "message": 3},
        {"type": "assistant", "message": {"content": [3, {"type": "text", "text": 4}]}},
        {"type": "item.completed", "item": []}, {"type": "message", "role": "assistant", "content": 5},
        {"type": "error", "message": {}}, {"type": "turn.completed", "usage": "x"},
    ]  # fmt: skip
    lines = [each if isinstance(each, str) else json.dumps(each) for each in odd]
    found = read(name, "\n".join(lines) + "\n" + good(name) + '{"type": "cut')
    assert (found.text, found.ended, found.failed) == ("It is done.", True, "")
    events = events_in("plain\n" + good(name) + '{"type": "cut')
    assert (events[0], events[-1]["type"]) == ({"type": "holdfast.text", "text": "plain"}, "holdfast.cut")


@pytest.mark.covers("CP2-C2")
def test_is_error_decides_for_claude_and_a_result_may_lack_its_text() -> None:
    refused = read("claude", out(fake_agents.claude_error(400, "API Error: 400 refused here")))
    assert (refused.ended, refused.failed, refused.status) == (True, "API Error: 400 refused here", 400)
    assert read("claude", out(fake_agents.claude(None))).text == "It is done."
    assert not read("claude", out(fake_agents.claude(None))).failed
    # Without the field its subtype decides.
    assert read("claude", '{"type": "result", "subtype": "error_max_turns"}\n').failed == "error_max_turns"


def test_a_limit_of_claude_is_a_failure_also_if_it_is_no_error() -> None:
    limit = {"type": "result", "subtype": "error_max_turns", "is_error": False}
    found = read("claude", json.dumps(limit) + "\n")
    assert (found.failed, found.limit) == ("error_max_turns", True)


@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_a_turn_after_the_result_has_to_end_too(name: str) -> None:
    whole = good(name)
    assert read(name, whole + whole).ended
    assert not read(name, whole + "".join(whole.splitlines(keepends=True)[:-1])).ended


def test_a_turn_of_codex_that_failed_is_not_completed_after_it() -> None:
    found = read("codex", out(fake_agents.codex_error("refused")) + '{"type": "turn.completed"}\n')
    assert (found.ended, found.failed) == (True, "refused")


@pytest.mark.covers("CP2-V4")
@pytest.mark.parametrize("name", NAMES)
def test_the_stream_of_an_agent_behind_a_template_is_read_as_its_own(name: str) -> None:
    fine = result_in(f"a warning\n{good(name)}")
    assert fine is not None
    assert (fine.text, fine.failed) == ("It is done.", "")
    assert fine.tokens == (read(name, good(name)).usage or TokenUsage()).total
    listed = json.dumps([json.loads(line) for line in good(name).splitlines()])
    assert result_in(listed) == result_in(good(name))
    for cut in ("".join(good(name).splitlines(keepends=True)[:-1]), good(name)[:-20]):
        found = result_in(cut)
        assert found is not None
        assert found.failed == "its output ends without the last event of an agent"


@pytest.mark.covers("CP2-V4")
@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (out(fake_agents.codex_error("refused")), "refused"),
        (out(fake_agents.claude_error(429, "API Error: 429")) + "a line of a log\n" * 30, "API Error: 429"),
        ('{"type": "result", "subtype": "error_max_turns", "is_error": false}', "error_max_turns"),
        ('{"type": "error", "error": {"message": "no"}}', "no"),
        ('some text\n{"type": "error", "message": "lost"}\n', "lost"),
        ('{"type": "error"}', "an error"),
    ],
    ids=["codex", "claude", "limit", "error", "last", "bare"],
)
def test_an_error_that_a_program_reports_is_one_whatever_its_exit_code(text: str, failed: str) -> None:
    found = result_in(text)
    assert found is not None
    assert found.failed == failed


@pytest.mark.parametrize(
    "text",
    ["", "plain", '[{"a": 1}]', "[1", '{"type": "system"}\nplain', '{"type": "error"}\nand then\nit went on'],
)
def test_other_outputs_are_plain_text(text: str) -> None:
    assert result_in(text) is None


def test_error_events_of_codex_are_warnings_unless_the_turn_fails_or_never_ends() -> None:
    warned = fake_agents.codex("Done.", 100, {"type": "error", "message": "Reconnecting... 1/5"})
    assert (read("codex", out(warned)).failed, read("codex", out(warned)).text) == ("", "Done.")
    failed = read("codex", out(fake_agents.codex_error("unexpected status 401 Unauthorized")))
    assert (failed.ended, failed.failed) == (True, "unexpected status 401 Unauthorized")
    endless = read("codex", out(fake_agents.codex_error("stream disconnected", ends=False)))
    assert (endless.ended, endless.failed) == (False, "stream disconnected")


def test_what_gemini_says_after_a_tool_begins_a_line() -> None:
    said = {"type": "message", "role": "assistant"}
    events = [
        {**said, "content": "I "}, {**said, "content": "look."}, {"type": "tool_use"},
        {"type": "tool_result"}, {**said, "content": "```json"}, {**said, "content": "\n{}"},
    ]  # fmt: skip
    assert read("gemini", "\n".join(map(json.dumps, events))).text == "I look.\n\n```json\n{}"


@pytest.mark.covers("CP2-C10")
@pytest.mark.parametrize(
    ("name", "play", "code", "kind"),
    [
        ("claude", fake_agents.claude_error(400, "API Error: 400 x"), 1, "terminal"),
        ("claude", fake_agents.claude_error(401, "API Error: 401 x"), 1, "terminal"),
        ("claude", fake_agents.claude_error(429, "API Error: 429 x"), 1, "transient"),
        ("claude", fake_agents.claude_error(529, "API Error: 529 overloaded"), 1, "transient"),
        ("claude", fake_agents.claude_error(0, "", subtype="error_max_turns", is_error=True), 1, "limit"),
        ("claude", fake_agents.claude_error(0, "", subtype="error_max_budget_usd"), 1, "limit"),
        ("claude", fake_agents.claude_error(0, "", subtype="error_during_execution"), 1, "transient"),
        ("claude", [{"err": "Invalid API key · Please run /login"}], 1, "terminal"),
        ("codex", fake_agents.codex_error("unexpected status 401 Unauthorized: x"), 1, "terminal"),
        ("codex", fake_agents.codex_error('{"error": {"type": "invalid_request_error"}}'), 1, "terminal"),
        ("codex", fake_agents.codex_error("exceeded retry limit, last status: 429 Too Many"), 1, "transient"),
        ("codex", fake_agents.codex_error("unexpected status 503 x"), 1, "transient"),
        ("codex", fake_agents.codex_error("stream disconnected before completion"), 1, "transient"),
        ("codex", fake_agents.codex_error("You've hit your usage limit."), 1, "limit"),
        ("gemini", fake_agents.gemini_error(400), 144, "terminal"),
        ("gemini", fake_agents.gemini_error(401), 145, "terminal"),
        ("gemini", fake_agents.gemini_error(429), 173, "transient"),
        ("gemini", fake_agents.gemini_error(500), 244, "transient"),
        ("gemini", [{"err": "Invalid auth method selected."}], 41, "terminal"),
        ("gemini", [{"err": "Reached max session turns"}], 53, "limit"),
        ("gemini", [{"err": "gone"}], 127, "terminal"),
        ("gemini", [{"err": "ENOTFOUND"}], 1, "transient"),
    ],
)
def test_the_class_of_a_failure(name: str, play: list[Step], code: int, kind: str) -> None:
    report = read(name, out(play))
    text = report.failed + "\n" + "".join(step.get("err", "") for step in play)
    assert failure_kind(ADAPTERS[name], report, code, text) == kind


@pytest.mark.parametrize("permissions", ["plan", "edit", "full"])
@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_of_each_agent(name: str, resume: bool, permissions: str, tmp_path: Any) -> None:
    adapter = ADAPTERS[name]
    start = AgentStart(
        session="U", resume=resume, permissions=permissions, model="m", effort="low", workspace=tmp_path
    )
    words = " ".join(adapter.words(start))
    begin = {
        ("claude", False): "claude -p --output-format stream-json --verbose --session-id U",
        ("claude", True): "claude -p --output-format stream-json --verbose --resume U",
        ("codex", False): f"codex exec --json -C {tmp_path}",
        ("codex", True): "codex exec resume U --json",
        ("gemini", False): "gemini -o stream-json --skip-trust --session-id U",
        ("gemini", True): "gemini -o stream-json --skip-trust --resume U",
    }[name, resume]
    assert words.startswith(begin)
    allowed = {
        "claude": {"plan": "plan", "edit": "acceptEdits", "full": "bypassPermissions"},
        "codex": {"plan": '"read-only"', "edit": '"workspace-write"', "full": '"danger-full-access"'},
        "gemini": {"plan": "plan", "edit": "auto_edit", "full": "yolo"},
    }[name][permissions]
    option = {"claude": "--permission-mode ", "codex": "-c sandbox_mode=", "gemini": "--approval-mode "}[name]
    assert option + allowed in words
    assert (words.split()[-1] == "-") == (name == "codex")


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_that_was_cut_inside_a_character_is_read(name: str) -> None:
    """Programs that count UTF-16 units write half of an emoji."""
    found = read(name, good(name, "Done \ud83d"))
    assert (found.ended, found.failed) == (True, "")
    assert found.text.startswith("Done \ufffd")


@pytest.mark.parametrize("value", ["true", "false", 1, [], {}])
def test_an_is_error_that_is_no_truth_value_is_no_proof_of_a_success(value: Any) -> None:
    assert read("claude", out(fake_agents.claude("It is done.", is_error=value))).failed
    found = result_in(json.dumps({"type": "result", "result": "It is done.", "is_error": value}))
    assert found is not None
    assert found.failed
