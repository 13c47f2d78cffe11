"""Faults that can be planted into the engine, the recorder and the stores, and the tests that must find them.

A proof that passes whatever the code does is no proof. Each fault is one change of one place in the source,
of the kind that a hurried edit makes; `caught_by` names tests that fail with it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "holdfast"


class Fault(NamedTuple):
    name: str
    file: str
    before: str
    after: str
    caught_by: tuple[str, ...]


def plant(fault: Fault, folder: Path) -> Path:
    """A copy of the source with the fault in it; returns the folder to import it from."""
    source = folder / "src"
    shutil.copytree(PACKAGE, source / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    file = source / "holdfast" / fault.file
    text = file.read_text("utf-8")
    file.write_text(text.replace(fault.before, fault.after), "utf-8")
    return source


FAULTS = (
    # ---- callbacks
    Fault(
        "the token of a callback is not compared",
        "holds/callbacks.py",
        "not any(fits)",
        "False",
        ("tests/flows/test_callbacks.py",),
    ),
    Fault(
        "a script whose callback is open is not entered again after a crash",
        "runs/context/callbacks.py",
        "place.numbers.take_beside(spec.prompt, key)",
        "place.numbers.take(spec.prompt, key)",
        ("tests/flows/test_callbacks.py",),
    ),
    Fault(
        "a callback that is silent from the start waits for its time limit",
        "engine/holds.py",
        "return decision.now + min(lengths) if lengths",
        "return decision.now + max(lengths) if lengths",
        ("tests/flows/test_callbacks.py",),
    ),
    # ---- fences and leases
    Fault(
        "no fence in the code: a worker that lost its lease writes on",
        "store/fence.py",
        "return term == lease.term and worker == lease.worker",
        "return True",
        ("tests/conformance/test_store_settle.py",),
    ),
    Fault(
        "no fence in the SQL of a single run: a lost lease is extended, released and parked",
        "store/fence.py",
        'OWNED: Final = "key = ? AND id = ? AND term = ? AND worker = ?"',
        "OWNED: Final = \"key = ? AND id = ? AND ? >= 0 AND ? <> ''\"",
        ("tests/conformance/test_store_leases.py",),
    ),
    Fault(
        "no fence in the one statement of PostgreSQL",
        "store/fence.py",
        '"runs.key = g.key AND runs.id = g.run AND runs.term = g.term AND runs.worker = g.worker"',
        '"runs.key = g.key AND runs.id = g.run"',
        ("tests/conformance/test_store_leases.py",),
    ),
    Fault(
        "a run is claimed by name although its lease lasts",
        "store/sql/sqlite/claim.py",
        "WHERE id = :run AND (worker IS NULL OR lease_until <= :now) AND NOT read_only",
        "WHERE id = :run AND NOT read_only",
        ("tests/conformance/test_store_leases.py", "tests/conformance/test_store_claims.py"),
    ),
    Fault(
        "a reclaimed run keeps its term, so that its old worker may still write",
        "store/sql/reclaim.py",
        "UPDATE @runs SET term = term + 1, worker = NULL, lease_until = NULL, recoveries = ?, ready_at",
        "UPDATE @runs SET worker = NULL, lease_until = NULL, recoveries = ?, ready_at",
        ("tests/conformance/test_store_reclaim.py",),
    ),
    # ---- the journal
    Fault(
        "a settle that is repeated is not compared with what was written",
        "store/sql/sqlite/settle.py",
        "same = all((r.term, r.digest) == e[:2] for r, e in zip(records, existing, strict=False))",
        "same = True",
        ("tests/conformance/test_store_settle.py",),
    ),
    Fault(
        "a gap in the journal is accepted",
        "store/sql/sqlite/settle.py",
        "if records[0].seq != head + 1 or records[-1].seq != head + len(records):",
        "if records[0].seq <= head:",
        ("tests/conformance/test_store_settle.py",),
    ),
    Fault(
        "a commit is acknowledged before it is written",
        "runs/recorder/recorder.py",
        "        while queue.committed < seq:\n",
        "        self._start_commit()\n        while queue.committed < min(seq, 0):\n",
        ("tests/flows/test_commits.py", "tests/crash/test_points_memory.py"),
    ),
    Fault(
        "a refused commit counts as written",
        "runs/recorder/recorder.py",
        "            if answer.refusal is None:\n",
        "            if True:\n",
        ("tests/flows/test_commits.py", "tests/crash/test_lease_lost.py"),
    ),
    Fault(
        "records are written before their blobs",
        "runs/recorder/recorder.py",
        "                if queue.fresh or queue.unrouted:\n",
        "                if queue.unrouted:\n",
        ("tests/flows/test_commits.py", "tests/flows/test_values_on_the_way.py"),
    ),
    Fault(
        "a hold is asked although its state is not stored",
        "runs/driver/record_writer.py",
        "if services.put_hold_states is not None or not services",
        "if not services",
        ("tests/blobs/test_hold_states.py",),
    ),
    Fault(
        "the state of a hold is stored in the clear",
        "runs/hold_states.py",
        "    if encrypted is not None:\n        data = encrypted",
        "    if False:\n        data = encrypted",
        ("tests/blobs/test_hold_states.py",),
    ),
    Fault(
        "a snapshot is one record late",
        "runs/driver/load.py",
        "pos.head, pos.at = record.seq, max(pos.at, record.at)",
        "pos.head, pos.at = record.seq - 1, max(pos.at, record.at)",
        ("tests/flows/test_long_lists.py", "tests/properties/test_runs.py"),
    ),
    # ---- effects
    Fault(
        "an effect starts without its intent",
        "runs/driver/record_writer.py",
        "if graph.repeatable[execution.node] or execution.intent >= 0 or SETTLED in execution.subs:",
        "if True or execution.intent >= 0:",
        ("tests/crash/test_points_memory.py", "tests/flows/test_effects.py"),
    ),
    Fault(
        "an effect starts before its intent is durable",
        "runs/driver/record_writer.py",
        '        await self.recorder.committed(self.queue, seq)\n        crashpoint("after_intent")\n',
        '        crashpoint("after_intent")\n',
        ("tests/flows/test_effects.py", "tests/crash/test_points_memory.py"),
    ),
    Fault(
        "an effect in doubt is repeated instead of asked about",
        "engine/in_doubt.py",
        "    else:\n        ask(decision, execution, error)\n\n\ndef on_probe_finished",
        '    else:\n        retry.restart(decision, execution, "in_doubt")\n\n\ndef on_probe_finished',
        ("tests/flows/test_in_doubt.py",),
    ),
    # ---- holds, timers and the inbox
    Fault(
        "the timer of a join survives it",
        "engine/dataflow_mode.py",
        "            if token in self.pos.join_wakes:\n",
        "            if False:\n",
        ("tests/flows/test_joins.py",),
    ),
    Fault(
        "the timers of a handler survive it",
        "engine/settle.py",
        "        side_of(record).close_timers += tokens\n",
        "        pass\n",
        ("tests/flows/test_sleeps.py",),
    ),
    Fault(
        "the timers of an attempt that failed survive it",
        "engine/retry.py",
        "for token in (execution.token, *naps_of(pos, execution)) if token]",
        "for token in (execution.token,) if token]",
        ("tests/flows/test_sleeps.py",),
    ),
    Fault(
        "a sleep begins anew with the next attempt",
        "runs/context/position_calls.py",
        "if known is None else int(known.value)",
        "",
        ("tests/flows/test_sleeps.py",),
    ),
    Fault(
        "an early answer is dropped: a run parks past a message",
        "store/sql/sqlite/settle.py",
        'WHERE {OWNED} AND inbox_seq = ?"""',
        'WHERE {OWNED} AND inbox_seq >= min(?, 0)"""',
        ("tests/conformance/test_store_leases.py",),
    ),
    Fault(
        "a message that is sent twice is in the inbox twice",
        "store/sql/run_inbox.py",
        "    return dedupe is not None and await conn.row(_KNOWN, key, dedupe) is not None",
        "    return False",
        ("tests/conformance/test_store_inbox.py",),
    ),
    Fault(
        "two records may consume one message",
        "store/sql/side_changes.py",
        "    return len(set(numbers)) == len(numbers) and found is not None and found[0] == len(numbers)\n",
        "    return found is not None\n",
        ("tests/conformance/test_store_sides.py", "tests/conformance/test_store_inbox.py"),
    ),
    Fault(
        "a hold can be decided twice",
        "store/hold_transitions.py",
        "if row.version != change.version or (final and not _only_resumes(row, change)):",
        "if row.version > change.version + 1_000_000:",
        ("tests/conformance/test_store_hold_changes.py",),
    ),
    Fault(
        "a repeated question is a second hold",
        "engine/holds.py",
        "hold = HoldId(derived_id(decision.pos.run, scope, node, visit, why, ordinal))",
        "hold = HoldId(derived_id(decision.pos.run, scope, node, visit, why, ordinal + decision.now))",
        ("tests/flows/test_asks.py", "tests/properties/test_replay.py"),
    ),
    Fault(
        "a decision leaves no line in the audit",
        "store/sql/hold_changes.py",
        "    await audit.append(conn, hold.tenant, change.audit)\n",
        "",
        ("tests/conformance/test_store_audit.py", "tests/holds/actions/test_audit.py"),
    ),
    Fault(
        "an ended run leaves its holds open",
        "store/sql/hold_rows.py",
        "    if side.close_all_holds is not None:\n        await of_run.close_all(side.close_all_holds)\n",
        "",
        ("tests/conformance/test_store_holds.py", "tests/conformance/test_store_sides.py"),
    ),
    # ---- the engine
    Fault(
        "a late report of an earlier visit settles the present one",
        "engine/settle.py",
        'if execution is None or execution.visit != message.visit or execution.phase == "failed":',
        "if execution is None:",
        ("tests/flows/test_loops.py", "tests/flows/test_given_up.py", "tests/unit"),
    ),
    Fault(
        "a join is decided by its first branch",
        "engine/parallel_join.py",
        "    if len(results) >= len(spec.starts):\n",
        "    if results:\n",
        ("tests/attractor/test_parallel_engine.py",),
    ),
    Fault(
        "losers of a join keep running beside the winner",
        "engine/parallel_join.py",
        '        failures.wipe(decision, loser, record, body, "V")\n\n\ndef timed_out',
        "        pass\n\n\ndef timed_out",
        ("tests/attractor/test_parallel_engine.py", "tests/attractor/test_handlers_parallel.py"),
    ),
    Fault(
        "a run that waits for a join that cannot come waits for ever",
        "engine/settle.py",
        "    if scope.tokens or scope.open_loops:\n        end.fail_run",
        "    if False:\n        end.fail_run",
        ("tests/flows/test_joins.py", "tests/flows/test_failures.py", "tests/properties/test_runs.py"),
    ),
    # ---- budgets
    Fault(
        "a call whose worker died costs nothing",
        "runs/driver/budget_ledger.py",
        "        return ended + self.unknown(execution, path)\n",
        "        return ended\n",
        ("tests/agents/test_run_budget.py",),
    ),
    Fault(
        "parallel calls do not see what others have reserved",
        "agents/budget.py",
        "        taken = used + running\n",
        "        taken = used\n",
        ("tests/agents/test_run_budget.py",),
    ),
    Fault(
        "each branch asks its own question about the budget",
        "agents/reservation.py",
        "        if meter.ledger.is_asked(meter.path):\n",
        "        if False:\n",
        ("tests/agents/test_run_budget.py",),
    ),
    Fault(
        "a grant is forgotten with the node that asked",
        "model/budget_ledger.py",
        "        pos.ledger.answers[question_id(execution, body.name)] = answer\n",
        "        pass\n",
        ("tests/agents/test_run_budget.py",),
    ),
    # ---- queues
    Fault(
        "a run takes a message and leaves it to others, too",
        "queues/consume.py",
        '        terms = ResolveConditions(idempotency_key=f"queue:{row.id}", message=done)\n',
        '        terms = ResolveConditions(idempotency_key=f"queue:{row.id}")\n',
        ("tests/queues/test_consume.py",),
    ),
    Fault(
        "the broker does not hear that a review has moved",
        "queues/operations.py",
        "        return change, self.relay.move_notice(row, scope, queue)\n",
        "        return change, []\n",
        ("tests/queues/test_escalation.py",),
    ),
    Fault(
        "what is committed waits for the next round of the queues",
        "store/sql/queues.py",
        "        if concern_queues(records):\n",
        "        if False:\n",
        ("tests/conformance/test_store_queues.py",),
    ),
    Fault(
        "whoever reads a queue reads every review in it",
        "queues/visibility.py",
        "        shown.append(row if visible else replace(row, payload=_HIDDEN, result=None))\n",
        "        shown.append(row)\n",
        ("tests/api/test_queues.py",),
    ),
    Fault(
        "the token of a claim is counted, so that others can guess it",
        "store/queue_rules.py",
        "        claim_token=new_token(row.claim_token),\n",
        "        claim_token=row.claim_token + 1,\n",
        ("tests/conformance/test_store_queues.py",),
    ),
    Fault(
        "anybody who works on a queue takes its reviews out of it",
        "queues/claims.py",
        "                if row.hold is None or await self._may_review(actor, row.hold):\n",
        "                if True:\n",
        ("tests/queues/test_bridge.py",),
    ),
    Fault(
        "a name that a broker brings proves the person",
        "queues/completions.py",
        "        if actor.auth_method != BROKER or not row.terms.binds_everybody:\n",
        "        if True:\n",
        ("tests/queues/test_broker_people.py",),
    ),
    Fault(
        "MariaDB is not asked what it lost in a failover",
        "store/sql/mariadb/failover.py",
        "        if generation <= self._verified:\n",
        "        if True:\n",
        ("tests/mariadb/test_failover.py",),
    ),
    # ---- commands of models, functions that answer stages
    Fault(
        "commands of a model outlive a worker that was killed",
        "agents/command_supervisor.py",
        "            if self._control in ready:\n",
        "            if False:\n",
        ("tests/agents/test_coding_killed.py",),
    ),
    Fault(
        "a function is called again after a crash without a question",
        "attractor/backends/call.py",
        "or Effect.external\n",
        "or Effect.read\n",
        ("tests/attractor/test_backend_killed.py",),
    ),
    # ---- worktrees of pipelines
    Fault(
        "the bases of a run are lost when its directory continues elsewhere",
        "attractor/branch_worktree.py",
        "    if repository.refs(own):\n        return\n",
        "    if own:\n        return\n",
        ("tests/attractor/test_worktrees_elsewhere.py",),
    ),
    Fault(
        "a commit of a stage has the time at which it was made",
        "attractor/branch_worktree.py",
        "        at=workspace.at,\n",
        "        at=visit.ctx.now(),\n",
        ("tests/attractor/test_worktrees_kill.py", "tests/attractor/test_worktrees.py"),
    ),
    Fault(
        "an agent chooses the commit of the next stage",
        "attractor/branch_worktree.py",
        "    return {key: value for key, value in updates.items() if not key.startswith(RESERVED)}\n",
        "    return dict(updates)\n",
        ("tests/attractor/test_worktrees.py",),
    ),
    Fault(
        "stages after a merge that failed work in the user's folder",
        "attractor/branch_worktree.py",
        "        scope = _unmerged_scope(visit)\n",
        "        scope = None\n",
        ("tests/attractor/test_worktrees.py",),
    ),
    Fault(
        "the stream of an agent that breaks off behind a template is a success",
        "attractor/backends/cli.py",
        '        cut = "" if report.ended else ',
        '        cut = "" and ',
        ("tests/attractor/test_agent_streams.py",),
    ),
    Fault(
        "a command runs without the sandbox of the operator",
        "attractor/detached_commands.py",
        "str(folder.resolve()), *sandbox, shell]\n",
        "str(folder.resolve()), shell]\n",
        ("tests/attractor/test_operator_sandbox.py",),
    ),
)
