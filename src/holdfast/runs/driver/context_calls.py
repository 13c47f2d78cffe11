"""What the contexts of handlers ask of the driver: keys, intents, sub-steps, questions, memory."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.engine import holds, timers
from holdfast.engine.decision import lists_checkpoint
from holdfast.engine.messages import HandlerFinished, Message, SubstepEvidence
from holdfast.errors import VersionMismatchError
from holdfast.model.graph import HoldSpec, Node
from holdfast.model.paths import resolver
from holdfast.model.position import Exec, Sub
from holdfast.model.record_bodies import ChunkBody, IntentBody, SubstepBody
from holdfast.model.template import as_text, compile_template
from holdfast.runs.context.context import Context
from holdfast.runs.context.skills import RunSkills
from holdfast.runs.context.substeps import SubstepCall
from holdfast.runs.context.threads import Suspended, ThreadContext
from holdfast.runs.memory import NodeMemory, StoredMemory
from holdfast.telemetry import crashpoint, log
from holdfast.types.ids import derived_id
from holdfast.types.memory import Memory
from holdfast.types.record import Kind
from holdfast.types.skill import RESOLVED_SKILLS
from holdfast.types.value import FrozenDict

if TYPE_CHECKING:
    from holdfast.runs.driver.driver import Driver


def _place(execution: Exec, node: Node) -> tuple[str, str]:
    """What keys are made of: where the execution began, whatever it has been renamed to."""
    return execution.born or (execution.scope, node.id)


class ContextCalls:
    """Serves all contexts of one run, on the driver's loop."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.skills = RunSkills()
        # Writes to a memory of somebody else's, by (scope, node, visit).
        self.remember_later: dict[tuple[str, int, int], list[Memory]] = {}

    async def take_skills(self) -> None:
        """Before the first handler is called: what it finds there does not depend on when it looks."""
        from holdfast.runs.deployments import load_skills

        driver = self.driver
        self.skills = await load_skills(driver.runtime.store, driver.row, driver.pos.skills)

    # Keys and code.
    def idempotency_key(self, execution: Exec, node: Node) -> str:
        if node.idempotency_key:
            tree = self.driver.pos.scopes[execution.scope].tree
            shown = compile_template(node.idempotency_key).render(
                resolver(tree, execution.frame), strict=True
            )
            return str(shown.value)
        return derived_id(self.driver.run, *_place(execution, node), execution.visit, -1)

    def render(self, execution: Exec, text: str) -> str:
        tree = self.driver.pos.scopes[execution.scope].tree
        shown = compile_template(text).render(resolver(tree, execution.frame), strict=True).value
        return shown if isinstance(shown, str) else as_text(shown)

    def step_key(self, execution: Exec, node: Node, ordinal: str) -> str:
        return derived_id(self.driver.run, *_place(execution, node), execution.visit, ordinal)

    def code_of(self, execution: Exec) -> str:
        program = self.driver.program.at(self.driver.pos.scopes[execution.scope].graph)
        return program.code.get(program.graph.nodes[execution.node].id, "")

    def check_reentry(self) -> None:
        """Other code may not go on amid a visit: its sub-steps were made by the old one (D-34)."""
        driver = self.driver
        for execution in driver.pos.execs.values():
            node = driver.node(execution).id
            program = driver.program.at(driver.pos.scopes[execution.scope].graph)
            if execution.code and not program.accepts_code(node, execution.code):
                raise VersionMismatchError(
                    f"the code of node {node!r} has changed, and visit {execution.visit} of it has "
                    "recorded sub-steps or answers that the old code made.",
                    hint="Load the old code; or, if the new code takes the same steps, say so on the node: "
                    f"compatible_with={execution.code!r}.",
                    flow=driver.graph.name,
                    node=node,
                )

    def artifact_op(self, execution: Exec, name: str) -> str:
        driver = self.driver
        graph = driver.pos.scope_graph(driver.graph, driver.pos.scopes[execution.scope])
        return graph.spec.reducers.get(f"artifacts.{name}", "set")

    async def file(self, reference: Any) -> bytes:
        driver = self.driver
        read = driver.runtime.shelf.read_for
        return await driver.retry_while_unavailable(partial(read, driver.run, driver.row.tenant, reference))

    def lists_turns(self, execution: Exec, node: Node) -> bool:
        """Where the settings list no checkpoints of this node, they list none inside it (D-10)."""
        pos = self.driver.pos
        graph = pos.scope_graph(self.driver.graph, pos.scopes[execution.scope])
        return any(
            lists_checkpoint(pos, graph, node, moment, execution.scope) for moment in ("after", "before")
        )

    # Sub-steps and live output.
    async def intend_step(self, execution: Exec, node: Node, step: SubstepCall) -> None:
        driver = self.driver
        key = self.step_key(execution, node, step.ordinal) if step.idempotent else ""
        body = IntentBody(0, step.ordinal, key, FrozenDict({"step": step.name}))
        seq = driver.writer.note(Kind.intent, body, execution, node, effect=step.effect)
        await driver.recorder.committed(driver.queue, seq)
        crashpoint("after_intent")
        await driver.lease_margin()

    async def note_substep(
        self,
        execution: Exec,
        node: Node,
        body: SubstepBody,
        *,
        effect: str = "",
        outcome: str = "",
        listed: bool = False,
    ) -> None:
        """What was paid for, and what is listed as a checkpoint, is durable before the handler goes on."""
        driver = self.driver
        intent = execution.step_intents.get(body.ordinal)
        if intent is not None and body.error is None:
            proven = SubstepEvidence(ordinal=body.ordinal, name=body.name, value=body.value, effect=effect)
            driver.late_evidence.keep(driver.pos.head + 1, intent, proven)
        outcome = outcome or ("success" if body.error is None else "fail")
        driver.writer.note(Kind.substep, body, execution, node, outcome=outcome, effect=effect, listed=listed)
        crashpoint("after_substep")
        kept = (listed or body.usage is not None) and not driver.queue.lazy
        if driver.writer.strict or kept:
            await driver.recorder.committed(driver.queue, driver.pos.head)
        elif driver.queue.full:
            await driver.recorder.room(driver.queue)

    def step_ended(self) -> None:
        """Perhaps nothing of that handler is under way any more but a question."""
        if self.driver.handler_tasks.answers:
            self.driver.awake.set()

    def note_chunks(self, execution: Exec, node: Node, items: list[tuple[str, Any]], *, inside: bool) -> None:
        driver = self.driver
        here = driver.pos.execs.get((execution.scope, execution.node)) is execution
        if here and not driver.is_lost and driver.queue.poison is None:
            driver.writer.note(Kind.chunk, ChunkBody(items, inside), execution, node)
            driver.recorder.hurry()

    # Questions.
    def ask_inside(
        self, execution: Exec, key: str, ordinal: int, spec: HoldSpec, context: dict[str, Any]
    ) -> None:
        if RESOLVED_SKILLS in context:
            said = "the context of a question has %r, which names the skills of the run and is replaced"
            log.warning(said, RESOLVED_SKILLS, extra={"run": self.driver.run})
        decision = self.driver.decision()
        frozen = FrozenDict(context)
        holds.ask_inside(decision, execution, key, ordinal, spec, frozen, self.code_of(execution))
        self.driver.writer.append_all(decision)
        self.driver.recorder.hurry()

    def sleep_inside(self, execution: Exec, node: Node, key: str, seconds: float) -> None:
        """Where a sleep of before has lost its timer, it ends when it would have ended."""
        known = execution.subs.get(key)
        wake = self.driver.runtime.clock.now() + int(seconds * 1e6) if known is None else int(known.value)
        decision = self.driver.decision()
        timers.sleep_inside(decision, execution, node, key, wake)
        self.driver.writer.append_all(decision)
        self.driver.recorder.hurry()

    async def wait_answer(self, ctx: Context, execution: Exec, key: str) -> Sub:
        """The handler stands still here, until an answer comes or the driver parks the run."""
        driver = self.driver
        await driver.recorder.committed(driver.queue, driver.pos.head)
        if isinstance(ctx, ThreadContext):
            raise Suspended
        known = execution.subs.get(key)
        if known is not None and known.done:
            return known
        where = (execution.scope, execution.node, key)
        answer: asyncio.Future[Sub] = driver.loop.create_future()
        driver.handler_tasks.answers[where] = answer
        driver.awake.set()
        try:
            return await answer
        finally:
            driver.handler_tasks.answers.pop(where, None)

    # Memory.
    def memory_of(self, ctx: Context, execution: Exec, node: Node) -> NodeMemory:
        return NodeMemory(self.driver.runtime.memory, ctx, self.consistency(execution, node))

    def consistency(self, execution: Exec, node: Node) -> str:
        driver = self.driver
        graph = driver.pos.scope_graph(driver.graph, driver.pos.scopes[execution.scope])
        return node.memory or graph.spec.memory

    def remember_at_settle(self, finished: HandlerFinished, memories: list[Memory]) -> None:
        if isinstance(self.driver.runtime.memory, StoredMemory):
            finished.memories = memories
        else:
            self.remember_later[(finished.scope, finished.node, finished.visit)] = memories

    async def remember(self, messages: list[Message]) -> None:
        """Writes to a memory that is not the store's own: applied after the settle has committed."""
        driver = self.driver
        settled = [(m.scope, m.node, m.visit) for m in messages if type(m) is HandlerFinished]
        for key in [key for key in settled if key in self.remember_later]:
            await driver.recorder.committed(driver.queue, driver.pos.head)
            for memory in self.remember_later.pop(key):
                await driver.runtime.memory.write(memory)
