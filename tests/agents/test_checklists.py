"""The checklists of the public specifications of a model client (ULM 8.9, 8.10) and of a coding agent
(CAL 9.12, 9.13): each line with its test, or with why it does not apply."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
CLIENT: Final = "agents/test_provider_parity.py"
AGENT: Final = "attractor/test_coding_parity.py"
NO_IMAGES: Final = "images are left out: a stage has texts and files"
NO_SPAWN: Final = (
    "`spawn_agent` is not built; an agent as a tool of another is tested in agents/test_subagents.py"
)

ULM_8_9: Final = {
    "Simple text generation": "test_a_text_is_generated",
    "Streaming text generation": "test_a_text_is_streamed",
    "Image input (base64)": NO_IMAGES,
    "Image input (URL)": NO_IMAGES,
    "Single tool call + execution": "test_a_tool_is_called_once",
    "Multiple parallel tool calls": "test_tools_of_one_reply_are_called_together",
    "Multi-step tool loop (3+ rounds)": "test_rounds_of_tools_follow_each_other",
    "Streaming with tool calls": "test_tools_of_one_reply_are_called_together",
    "Structured output (generate_object)": "test_an_answer_has_the_form_that_was_asked_for",
    "Reasoning/thinking token reporting": "test_reasoning_tokens_are_told_apart",
    "Error handling (invalid API key -> 401)": (
        "test_an_invalid_key_and_an_unknown_model_are_refused_at_once"
    ),
    "Error handling (rate limit -> 429)": "test_a_rate_limit_is_waited_for",
    "Usage token counts are accurate": "test_tokens_of_a_run_are_the_sum_of_its_calls",
    "Prompt caching (cache_read_tokens > 0 on turn 2+)": "test_the_second_turn_reads_the_cache",
    "Provider-specific options pass through": "test_options_of_a_provider_pass_through",
}
ULM_8_10: Final = {
    "1. Basic generation across all providers": "test_a_text_is_generated",
    "2. Streaming": "test_a_text_is_streamed",
    "3. Tool calling with parallel execution": "test_tools_of_one_reply_are_called_together",
    "4. Image input": NO_IMAGES,
    "5. Structured output": "test_an_answer_has_the_form_that_was_asked_for",
    "6. Error handling": "test_an_invalid_key_and_an_unknown_model_are_refused_at_once",
}
CAL_9_12: Final = {
    "Simple file creation task": "test_a_file_is_created_read_edited_and_run",
    "Read file, then edit it": "test_a_file_is_created_read_edited_and_run",
    "Multi-file edit in one session": "test_several_files_are_edited_in_one_reply",
    "Shell command execution": "test_a_file_is_created_read_edited_and_run",
    "Shell command timeout handling": "test_a_command_that_takes_too_long_is_a_result",
    "Grep + glob to find files": "test_files_are_found_by_name_and_by_content",
    "Multi-step task (read -> analyze -> edit)": "test_a_task_takes_several_steps",
    "Tool output truncation (large file)": "test_a_long_result_is_cut_and_whole_in_the_run_directory",
    "Parallel tool calls (if supported)": ("test_reads_of_one_reply_come_back_in_the_order_of_their_calls"),
    "Steering mid-task": "test_a_message_of_a_person_changes_the_task",
    "Reasoning effort change": "test_the_effort_of_a_stage_reaches_its_model",
    "Subagent spawn and wait": NO_SPAWN,
    "Loop detection triggers warning": "test_a_loop_is_warned_of",
    "Error recovery (tool fails, model retries)": "test_a_failed_call_is_corrected",
    "Provider-specific editing format works": "test_each_family_is_offered_its_own_way_to_edit",
}
CAL_9_13: Final = {
    "1. Simple file creation": "test_a_file_is_created_read_edited_and_run",
    "2. Read and edit": "test_a_file_is_created_read_edited_and_run",
    "3. Shell execution": "test_a_file_is_created_read_edited_and_run",
    "4. Truncation verification": "test_a_long_result_is_cut_and_whole_in_the_run_directory",
    "5. Steering": "test_a_message_of_a_person_changes_the_task",
    "6. Subagent": NO_SPAWN,
    "7. Timeout handling": "test_a_command_that_takes_too_long_is_a_result",
}


@pytest.mark.covers("CP2-P1")
@pytest.mark.parametrize(
    ("file", "lines"),
    [(CLIENT, ULM_8_9), (CLIENT, ULM_8_10), (AGENT, CAL_9_12), (AGENT, CAL_9_13)],
    ids=["ULM 8.9", "ULM 8.10", "CAL 9.12", "CAL 9.13"],
)
def test_each_line_of_the_checklists_has_a_test_or_a_reason(file: str, lines: dict[str, str]) -> None:
    tree = ast.parse((ROOT / file).read_text())
    tests = {node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)}
    missing = {line: name for line, name in lines.items() if name.startswith("test_") and name not in tests}
    assert not missing
