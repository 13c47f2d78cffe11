"""What `make test` leaves to `make slow`, which CI runs with each change, and to the soak.

Each of these takes seconds of two cores, and what it proves has a smaller form in `make test`, in the same
file or in the one that its line names. A name with brackets is one of the cases of a test.
"""

from __future__ import annotations

from typing import Final

import pytest

ALL: Final = frozenset[str]()
SLOW: Final[dict[str, frozenset[str]]] = {
    # The program is whole; redocly stays, and the routes have unit tests.
    "api/test_openapi_tools": frozenset({
        "test_program_with_a_generated_typescript_client_compiles_and_a_wrong_one_does_not",
        "test_spectral_finds_no_error_and_warns_only_of_missing_prose",
    }),
    "api/test_js_client": frozenset({"test_types_are_whole_and_say_what_is_right_and_wrong"}),
    # The other templates stay.
    "cli/test_new": frozenset({
        "test_new_project_runs_and_its_tests_pass_as_it_is[agent]",
        "test_new_project_runs_and_its_tests_pass_as_it_is[approval]",
    }),
    # Each page is read and its snippets run; the site is made of them by a program that is not ours.
    "docs/test_pages": frozenset({"test_the_site_builds"}),
    "docs/test_types": frozenset({
        "test_pyright_strict_knows_the_state_and_passes_the_examples"  # `make check` runs mypy on them
    }),
    "docs/test_snippets": frozenset({"test_every_snippet_of_a_page_runs[docs/how-to/crash-tests.md]"}),
    # The encrypted ones stay.
    "fleet/test_promote": frozenset({
        "test_everything_is_seen_as_before_when_a_store_moves_and_comes_back[plain]"
    }),
    "mariadb/test_promote": frozenset({
        "test_everything_is_seen_as_before_when_a_store_moves_to_mariadb_and_comes_back[plain]"
    }),
    "fleet/test_deploy_schemas": frozenset({
        "test_compose_file_fits_the_specification_and_a_wrong_one_does_not"
    }),
    # They prove the judge of the soak.
    "fleet/test_torture": ALL,
    "integrations/test_pytest_entry": frozenset({
        "test_runs_are_killed_at_each_crash_point_and_have_to_end_the_same[anyio-asyncio-options0]"
    }),
    "integrations/test_partners": frozenset({"test_tests_that_are_all_skipped_prove_nothing"}),
    "mcp/test_conformance": ALL,  # integrations/mcp has its own tests of each call
    "repository/test_prefork": frozenset({
        "test_children_have_holdfast_imported_when_the_first_one_is_started_from_another_folder"
    }),
    "repository/test_reporting": frozenset({
        "test_second_try_runs_only_what_failed_when_it_belongs_to_a_group"
    }),
    "temporal/test_documents": frozenset({
        "test_file_is_run_by_the_command_line_with_a_worker_that_has_its_functions"
    }),
    # Workers that are killed at a point stay.
    "temporal/test_kill": frozenset({
        "test_worker_that_is_killed_before_a_new_history_doubles_and_loses_nothing",
        "test_workers_and_server_that_are_killed_at_random_double_and_lose_nothing[some]",
    }),
    "temporal/test_moves": frozenset({"test_command_that_dies_between_the_steps_leaves_one_owner"}),
    "temporal/test_nodes": frozenset({
        "test_execution_that_loses_its_worker_five_times_is_a_dead_letter_and_can_be_retried"
    }),
    "temporal/test_pipeline_workers": frozenset({
        "test_command_line_that_follows_a_run_writes_the_whole_directory",
        "test_command_of_a_killed_worker_runs_once_and_is_asked_about_if_it_is_gone[machine]",
    }),
    # On SQLite with one worker it stays.
    "temporal/test_suite": frozenset({"test_flows_of_every_store_end_the_same_on_a_cluster[postgres-0-3]"}),
    "upgrade/test_last_release": frozenset({
        "test_old_command_line_works_until_the_upgrade_is_finished_and_is_then_refused"
    }),
    "web/test_budgets": frozenset({
        "test_events_of_a_busy_run_are_read_once_and_only_those_in_view_are_on_the_page"
    }),
    "web/test_build": frozenset({"test_without_npm_there_is_one_attempt_one_sentence_and_no_failure"}),
    "web/test_demo": ALL,  # cli/test_demo has the same demo, and web/test_stories its first decision
    "web/test_distribution": ALL,
    "web/test_editor": frozenset({
        "test_a_text_is_imported_after_its_problems_are_shown_and_keys_go_through_its_nodes",
        "test_a_thousand_nodes_are_drawn_and_one_more_opens_as_text_that_says_why",
        "test_all_problems_are_at_their_places_and_a_deployment_says_what_it_changes",
        "test_canvas_and_text_are_one_document",
        "test_code_is_read_only_and_runs_show_their_states_on_the_nodes",
        "test_the_editor_is_accessible_and_fits_a_phone",
        "test_the_form_builder_offers_every_kind_in_order_with_a_preview_and_compiles",
    }),
    "web/test_flows": frozenset({
        "test_a_flow_shows_its_graph_versions_runs_and_failures",
        "test_a_name_with_a_slash_has_its_pages",
        "test_a_run_starts_on_the_version_that_is_chosen",
    }),
    "web/test_forms": frozenset({
        "test_proposed_previous_and_edited_values_stand_side_by_side",
        "test_the_page_says_while_people_type_what_the_server_would_say",
        "test_what_is_focused_is_never_behind_the_decisions",
    }),
    "web/test_hostile": frozenset({
        "test_hostile_values_run_nothing_fetch_nothing_and_keep_the_layout",
        "test_huge_values_are_shown_in_steps",
        "test_the_app_works_below_a_path_prefix",
    }),
    "web/test_inbox": frozenset({"test_keys_claim_snooze_watch_and_comment"}),
    "web/test_inbox_decide": frozenset({
        "test_the_second_click_of_a_double_click_does_not_decide_the_next_hold_however_late_it_comes"
    }),
    "web/test_inbox_search": frozenset({"test_a_wrong_word_is_named_and_the_last_good_list_stays"}),
    "web/test_inbox_triage": frozenset({
        "test_a_hundred_thousand_questions_are_read_page_by_page",
        "test_a_question_is_released_reassigned_asked_about_and_replied_to",
    }),
    "web/test_operations_trouble": frozenset({
        "test_an_operator_sees_notifications_by_state_and_sends_a_failed_one_again",
        "test_a_directory_that_is_not_used_says_so_and_offers_nobody",
        "test_each_chart_has_its_table_and_its_span_in_the_address",
        "test_verify_names_the_first_record_that_was_changed",
    }),
    "web/test_page_texts": frozenset({
        "test_a_long_label_of_a_decision_does_not_scroll_a_phone_sideways",
        "test_tables_of_a_flow_and_errors_in_lists_fit_a_phone",
        "test_the_shadow_answer_of_a_judge_is_shown_after_the_decision_only",
    }),
    "web/test_proof": frozenset({"test_a_question_is_decided_and_its_run_followed_on_postgresql"}),
    "web/test_run_history": frozenset({"test_a_pruned_run_says_what_is_readable_and_why_not_the_rest"}),
    "web/test_runs": frozenset({
        "test_a_state_with_more_than_200_names_is_forked_as_json",
        "test_every_part_of_a_run_is_accessible_and_fits_a_phone",
        "test_two_records_and_two_runs_are_compared_by_path_line_visit_and_cost",
    }),
    # Inbox, question, form and accessibility have the checks of each state at its test.
    "web/test_screens": ALL,
    "web/test_shell": frozenset({
        "test_a_tenant_switch_empties_what_was_read",
        "test_another_release_of_the_server_offers_a_reload_that_keeps_the_draft",
        "test_links_are_shown_by_right_and_an_address_names_the_missing_one",
        "test_the_palette_finds_pages_flows_ids_and_actions",
    }),
    "web/test_stories_trouble": frozenset({
        "test_a_browser_whose_clock_is_an_hour_off_shows_and_keeps_the_times_of_the_server",
        "test_a_question_is_decided_below_a_path_prefix",
        "test_eight_tabs_of_one_browser_are_all_live",
    }),
}  # fmt: skip


def is_slow(item: pytest.Item) -> bool:
    names = SLOW.get(f"{item.path.parent.name}/{item.path.stem}")
    if names is None:
        return False
    name = item.name.partition("@")[0]
    return not names or name in names or name.partition("[")[0] in names
