"""docs/reference/source-lines.md: each line of the two documents about checkpoints, and what proves it."""

from __future__ import annotations

from tools import ledger

CHECKPOINTS = "Checkpoints: the data model"
CANVAS = "Human-in-the-loop on the canvas"

# The statement in our words, and the codes of the ledger whose tests prove it.
LINES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    CHECKPOINTS: (
        ("A checkpoint is a paused execution that is kept in MariaDB", ("MB-7", "MB-8")),
        ("Every checkpoint is one row of `mod_scaicore_checkpoints`", ("MB-8",)),
        ("`id` is a UUID and the correlation id of the queue bridge", ("CP-1", "QB-1")),
        ("`core_id` and `tenant_id` name the owner", ("CP-2", "MB-8")),
        ("`execution_id`, `flow_name` and `block_index` say where it stopped", ("CP-2", "MB-8")),
        ("`instance_key` names the entity that waits", ("CP-3", "PLATFORM-ENTITY-01")),
        ("`checkpoint_type` is set by the program", ("CP-4",)),
        ("`prompt` is the question that the assignee sees", ("CP-5",)),
        ("`options` is an optional list of answers", ("CP-6",)),
        ("`assignee_raw` keeps the text of the program", ("CP-7",)),
        ("`assignee_type` is user, group, role, delegated_user or unrouted", ("CP-7", "AS-1", "AS-9")),
        ("`assignee_resolved` holds type and value", ("CP-7",)),
        ("`context` is any JSON, with `resolved_skills` where skills are bound", ("CP-8", "SK-1")),
        ("`status` is pending, resolved, expired or cancelled", ("CP-9",)),
        ("`priority` is low, normal, high or critical", ("CP-10",)),
        ("`expires_at`, `expiry_action` and `escalation_target` control the end", ("CP-11", "CP-12")),
        ("`notification_sent`, `reminder_count` and `reminder_interval_m` count notices", ("CP-13",)),
        ("`resolution`, `resolved_by` and `resolved_at` are set by the decision", ("CP-14",)),
        ("The state is a blob in S3 under `state_s3_key`, and the row is its index", ("BS-7", "CP-15")),
        ("`user:` assigns one person", ("AS-1",)),
        ("`group:` lets each member act", ("AS-1", "AS-11")),
        ("`role:` lets each holder act", ("AS-1", "AS-11")),
        ("No prefix means a user", ("AS-2",)),
        ("A delegated Core routes to the person of the delegation", ("AS-9",)),
        ("Without an assignee the type is `unrouted`", ("AS-4",)),
        ("An administrator claims unrouted checkpoints", ("AS-10",)),
        ("A notice is sent at creation and `notification_sent` is set", ("NO-1",)),
        ("A 15-minute sweep reminds and counts", ("RE-1", "RE-2", "HOLD-TIME-02")),
        ("Values that look like addresses are used as they are", ("NO-4",)),
        ("The notifier expands groups and roles", ("NO-5",)),
        ("A 5-minute sweep finds pending rows that are due", ("EX-1", "HOLD-TIME-01")),
        ("`cancel` cancels the row, and the program never resumes from it", ("EX-4",)),
        ("`default_option` resolves with `default` and `auto_expired`", ("EX-5",)),
        ("`escalate` replaces the assignee, notifies, and stays pending", ("EX-6",)),
        ("A caller with `scaicore:checkpoint_resolve` resolves over HTTP", ("RS-8", "SERVER-SEED-04")),
        ("The body has `decision`, `response_data` and `comment`", ("RS-1", "SERVER-SEED-02")),
        ("The row becomes resolved and the run resumes", ("RS-2", "RM-1")),
        ("`/cancel` ends it without a decision", ("CA-1", "SERVER-SEED-02")),
        ("`/reassign` reads the assignee anew and notifies again", ("RA-1", "SERVER-SEED-02")),
        ("Skills are frozen into `context.resolved_skills`", ("SK-1",)),
        (
            "A resumed run uses the pinned versions, whatever was published since",
            ("SK-3", "PLATFORM-SKILL-01"),
        ),
        ("A yanked pin is used with a warning", ("SK-4", "PLATFORM-SKILL-01")),
        ("A missing pin is tolerated with a warning", ("SK-5", "PLATFORM-SKILL-01")),
        ("A checkpoint is published as a `hitl_request`, and the row keeps `hitl_message_id`", ("QB-1",)),
        ("`scaiqueue.message.completed` resolves it by `correlation_id`", ("QB-3", "QU-4")),
        ("A completion that is delivered again changes nothing", ("QB-4",)),
        ("A completion with another correlation id touches nothing", ("QB-5",)),
        ("`/history` lists created, notified and resolved", ("HI-1", "SERVER-SEED-02")),
        ("The audit filtered by `module=scaicore` is the full log", ("HI-3", "SERVER-IN-06")),
    ),
    CANVAS: (
        ("A checkpoint pauses, persists its state and waits for a signal", ("FL-1", "RM-1")),
        ("Three flavours compile to one block kind", ("FL-1", "PLATFORM-HOLD-01")),
        ("`checkpoint` pauses without routing and without a publish", ("FL-2", "QB-1")),
        ("`breakpoint: true` puts a synthetic checkpoint before the block", ("BP-1",)),
        ("An outside system resumes by `/v1/scaicore/checkpoints/{id}/resolve`", ("SERVER-SEED-03",)),
        (
            "`checkpoint` takes type (approval), prompt, options, timeout, on_timeout",
            ("FL-2", "TO-1", "TO-2"),
        ),
        ("`hitl_decision` is an approval without a publish", ("FL-3",)),
        ("`hitl_decision` takes type, timeout, on_timeout and options", ("FL-3", "CV-25")),
        ("`hitl_review` is one checkpoint with `hitl_target {scope, queue, hitl_spec}`", ("FL-4",)),
        ("The runtime publishes the review to the named queue", ("QB-1", "QB-2")),
        ("The run is suspended with its state in S3", ("BS-7",)),
        ("The completion of the published message is awaited", ("QB-3", "QU-24")),
        ("The run resumes with the resolution as a variable", ("QB-3", "RM-2", "PLATFORM-PROOF-02")),
        ("No correlation ids, bridge or webhook receiver on the user's side", ("PLATFORM-PROOF-02",)),
        ("`scope` may be inherited from the flow", ("SC-1",)),
        ("`queue` is required", ("SC-5",)),
        ("`sections` is the form", ("FM-1", "CV-20")),
        ("`assignee` is optional", ("FL-4", "CP-7")),
        ("`timeout` and `on_timeout` say what happens without an answer", ("TO-1", "TO-2", "TO-3")),
        ("`decision_bind` names the variable and defaults to `decision`", ("RM-2", "PLATFORM-HOLD-01")),
        ("`context` sections are read-only", ("FM-3",)),
        ("`input` sections are editable fields whose `kind` chooses the widget", ("FM-4",)),
        ("`default` may be a template", ("FM-8", "TP-1")),
        ("`decision` sections are buttons, objects and plain texts mixed", ("FM-5",)),
        ("The chosen button's id is the value of the section's field", ("FM-5",)),
        ("`extras.confidence` is shown beside the input", ("FM-9",)),
        ("Other extras pass through unchanged", ("FM-4",)),
        ("The flow's scope is the default of the four node types, at compile time", ("SC-1", "SC-3")),
        ("The inherited scope is written into `hitl_target.scope`", ("SC-1",)),
        ("Without a queue or scope the deployment fails with a clear error", ("SC-5", "PLATFORM-HOLD-02")),
        ("A breakpoint pauses every run just before its node", ("BP-1", "BP-3")),
        ("Its node id is `{id}__breakpoint` and its type `debug_breakpoint`", ("BP-1",)),
        ("Paused executions are listed by `checkpoint_type`", ("BP-8",)),
        ('Continue is a resolution of `"continue"`', ("BP-7", "SERVER-SEED-03")),
        ("Any pending checkpoint is resolved through the proxy", ("SERVER-SEED-03",)),
        ("The proxy needs `scaicore:manage`", ("SERVER-SEED-03", "SERVER-SEED-04")),
        ("It forwards to the module's path", ("SERVER-SEED-03",)),
        ("The resolution of a review is the id of a decision option", ("RS-1", "RS-3")),
    ),
}

TOP = """# The two documents about checkpoints: lines and tests

<!-- Generated by tools/docs.py from tools/pages/source_lines.py and docs/ledger. -->

Two public documents describe checkpoints that people decide: one the data model, one the
canvas with its queue. This page
lists what they promise, in our words, and the tests that prove each line here.
The codes are defined in [holds](behaviours/holds.md) and
[flow documents, queues, MariaDB and S3](behaviours/platform.md).

{counts}
"""
SHOWN = 3


def page() -> str:
    entries = {entry.code: entry for file in ledger.read_files() for entry in file.entries}
    rows = [line for lines in LINES.values() for line in lines]
    proven = sum(_is_proven(entries, codes) for _, codes in rows)
    parts = [
        TOP.format(counts=f"{proven} of {len(rows)} lines are proven; the others say which code is open.")
    ]
    parts += [_section(title, lines, entries) for title, lines in LINES.items()]
    return "\n".join(parts)


def _is_proven(entries: dict[str, ledger.Entry], codes: tuple[str, ...]) -> bool:
    return all(entries[code].tests for code in codes)


def _section(
    title: str, lines: tuple[tuple[str, tuple[str, ...]], ...], entries: dict[str, ledger.Entry]
) -> str:
    rows = "".join(
        f"| {number} | {text} | {', '.join(codes)} | {_proofs([entries[code] for code in codes])} |\n"
        for number, (text, codes) in enumerate(lines, start=1)
    )
    return f"## {title}\n\n| | what must hold | codes | proven by |\n|---|---|---|---|\n{rows}"


def _proofs(entries: list[ledger.Entry]) -> str:
    return "<br>".join(map(_proof, entries))


def _proof(entry: ledger.Entry) -> str:
    """The first tests of a code: the ledger has them all."""
    if not entry.tests:
        return f"{entry.code} is open"
    return "<br>".join(
        f"`{test.removeprefix('tests/').replace('.py::', '::')}`" for test in entry.tests[:SHOWN]
    )
