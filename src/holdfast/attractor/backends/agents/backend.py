"""An agent as a backend: `AgentBackend("claude")`, `--backend agent:claude`, `agent=claude` on a stage."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from holdfast.agents.messages import Message
from holdfast.agents.prices import Prices
from holdfast.attractor import detached_commands, run_files
from holdfast.attractor.backends.agents import session as sessions
from holdfast.attractor.backends.agents.adapter import AgentAdapter, AgentStart
from holdfast.attractor.backends.agents.agent_process import AgentLaunch, idle_of
from holdfast.attractor.backends.agents.claude import ClaudeAdapter
from holdfast.attractor.backends.agents.codex import CodexAdapter
from holdfast.attractor.backends.agents.failure import failure_kind
from holdfast.attractor.backends.agents.gemini import GeminiAdapter
from holdfast.attractor.backends.agents.session import SessionChoice
from holdfast.attractor.backends.agents.stream import AgentReport
from holdfast.attractor.backends.base import (
    BackendAnswer,
    BackendReply,
    PromptRequest,
    as_conversation,
    missing_error,
)
from holdfast.attractor.backends.tools import refuse_approvals, workdir_of
from holdfast.attractor.failures import TRANSIENT
from holdfast.attractor.fidelity import HIGH
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.tool import ToolHandler, next_turn
from holdfast.attractor.machine_requirements import require_allowed
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.preamble import preamble
from holdfast.attractor.providers import Providers
from holdfast.errors import HoldfastError, InputError
from holdfast.frontends.dot.attributes import AGENTS, PERMISSIONS
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.model_choice import agent_fault
from holdfast.runs.context.context import Context
from holdfast.runs.steer_messages import place_of

PREFIX: Final = "agent:"
ADAPTERS: Final[Mapping[str, AgentAdapter]] = {
    adapter.name: adapter for adapter in (ClaudeAdapter(), CodexAdapter(), GeminiAdapter())
}
assert tuple(ADAPTERS) == AGENTS
VARIABLE: Final = "HOLDFAST_AGENT_PERMISSIONS"
READ_ONLY: Final = "plan"
DEFAULT: Final = "edit"
_LAST: Final = 300


class AgentBackend:
    """`by_document`: a stage names it, and not the operator. Raises InputError if it is not known."""

    keeps_approvals = True  # it refuses such stages, unless its agent may only read
    steerable = True

    def __init__(self, name: str, *, by_document: bool = False) -> None:
        if name not in ADAPTERS:
            raise InputError(f"there is no agent {name!r}.", hint=f"Known: {', '.join(ADAPTERS)}.")
        self.adapter = ADAPTERS[name]
        self.backend_name = f"{PREFIX}{name}"
        self._by_document = by_document

    async def answer(self, visit: StageVisit, prompt: str) -> BackendAnswer:
        reply = await self.converse(PromptRequest(visit=visit, prompt=prompt, equipped=False))
        if reply.failed:
            return StageOutcome(status=StageStatus.FAIL, failure_reason=reply.failed)
        return reply.text

    async def converse(self, asking: PromptRequest) -> BackendReply:
        visit = asking.visit
        permissions = self._permissions(asking)
        prices = self._prices(visit.stage, visit.pipeline)
        if not shutil.which(self.adapter.program):
            raise missing_error([self.backend_name])
        number = next_turn(visit.ctx)
        recorded = await visit.ctx.step("session", self._choose, asking, number, effect="read")
        choice = msgspec.convert(recorded, SessionChoice)
        ended = await self._run(asking, choice, permissions, prices, number)
        if choice.resume and self._is_lost(ended):
            number = next_turn(visit.ctx)
            choice = sessions.fresh(self.adapter, visit, str(number), lost=True)
            ended = await self._run(asking, choice, permissions, prices, number)
        asking, choice, ended, said = await self._steered(asking, choice, ended, permissions, prices)
        report = msgspec.convert(ended["report"], AgentReport)
        if asking.thread and report.session:
            usage = report.usage or choice.usage
            kept = sessions.session_of(self.adapter, visit, report.session, usage)
            sessions.keep_for_thread(visit, asking.thread, kept)
        return self._reply(asking, ended, report, said)

    async def _steered(
        self,
        asking: PromptRequest,
        choice: SessionChoice,
        ended: dict[str, Any],
        permissions: str,
        prices: Prices | None,
    ) -> tuple[PromptRequest, SessionChoice, dict[str, Any], list[Message]]:
        """A further turn of its session for the messages of people that came while it worked; with what was
        said before that turn."""
        visit = asking.visit
        said: list[Message] = []
        while True:
            report = msgspec.convert(ended["report"], AgentReport)
            failed, _ = self._failure(visit, ended, report)
            taken = [] if failed or not report.session else await _take_messages(visit)
            if not taken:
                return asking, choice, ended, said
            said += [Message("user", asking.prompt), Message("assistant", report.text)]
            text = "\n\n".join(each["text"] for each in taken)
            asking = msgspec.structs.replace(asking, prompt=text, preamble="")
            usage = report.usage or choice.usage
            choice = SessionChoice(session=report.session, resume=True, usage=usage)
            ended = await self._run(asking, choice, permissions, prices, next_turn(visit.ctx))
            # Only now: it is durable that the agent has them.
            await visit.ctx.steering.remove(*(each["id"] for each in taken))

    def _choose(self, asking: PromptRequest, number: int) -> dict[str, Any]:
        return msgspec.to_builtins(sessions.choose(self.adapter, asking, number))

    async def _run(
        self,
        asking: PromptRequest,
        choice: SessionChoice,
        permissions: str,
        prices: Prices | None,
        number: int,
    ) -> dict[str, Any]:
        visit = asking.visit
        text = asking.with_verdict(self._prompt(asking, choice))
        # A name of its own for each process: after a crash an agent may still read it.
        request = visit.folder / ("request.md" if number == 1 else f"request-{number}.md")
        run_files.write_or_raise(request, text)
        launch = AgentLaunch(
            adapter=self.adapter, prompt=text, used=choice.usage, prices=prices, first=number == 1
        )

        def command(tries: int) -> str:
            start = AgentStart(
                session=choice.session,
                resume=choice.resume,
                permissions=permissions,
                workspace=workdir_of(visit),
                folders=(visit.folder.resolve(),),
                **self._model(visit.stage, visit.pipeline),
            )
            again = self._again(visit, start, f"{number}.{tries}") if tries > 1 else start
            words = self.adapter.words(again)
            return f"exec {shlex.join(words)} <{shlex.quote(str(request.resolve()))}"

        with visit.ctx.patience:
            ended = await ToolHandler(command=launch.maker()).once(visit, command, number, self._work(asking))
        if run_files.is_refused_here():
            request.unlink(missing_ok=True)
        return ended

    def _work(self, asking: PromptRequest) -> str:
        """Without the session and the paths, which another machine has otherwise."""
        model = self._model(asking.visit.stage, asking.visit.pipeline)
        return "\0".join((self.backend_name, *model.values(), asking.prompt))

    def _again(self, visit: StageVisit, start: AgentStart, number: str) -> AgentStart:
        """The outcome of the process before is unknown: its session goes on if it had begun."""
        known = sessions.read(visit, self.adapter.name)
        here = (visit.ctx.visit, visit.ctx.attempt)
        if known is not None and (known.visit, known.attempt) == here:
            return msgspec.structs.replace(start, session=known.session, resume=True)
        if start.resume:
            return start
        new = sessions.fresh(self.adapter, visit, number)
        return msgspec.structs.replace(start, session=new.session)

    def _prompt(self, asking: PromptRequest, choice: SessionChoice) -> str:
        """A session that goes on has the conversation; a lost one gets a summary."""
        if choice.resume:
            # In a conversation, after what happened outside of it.
            return asking.whole if asking.thread else asking.prompt
        if not choice.lost:
            return as_conversation(asking)
        visit = asking.visit
        text = f"the session of {self.adapter.name} is lost: a new session starts with {HIGH}"
        visit.ctx.emit(f"stage {visit.stage.id}: {text}", "log")
        return f"{preamble(visit, HIGH)}\n\n{asking.prompt}"

    def _is_lost(self, ended: Mapping[str, Any]) -> bool:
        """It found no session, and so did nothing: at most one event says so."""
        report = msgspec.convert(ended["report"], AgentReport)
        if report.text or report.events > 1 or ended["why"]:
            return False
        return bool(self.adapter.lost.search(f"{report.failed}\n{ended['stderr']}"))

    # ------------------------------------------------------------------ what it may do
    def _permissions(self, asking: PromptRequest) -> str:
        """Raises InputError if the document asks for more than the operator allows."""
        visit = asking.visit
        if self._by_document:
            require_allowed(visit)
        refused = asking.refuses(visit) if asking.refuses is not None else ""
        if refused and self._by_document:
            raise InputError(f"stage {visit.stage.id!r} runs the agent {self.adapter.name}: {refused}")
        wanted = wanted_permissions(visit.stage, visit.pipeline)
        if refused or not asking.equipped:
            return READ_ONLY
        self._refuse_approvals(visit.stage, visit.pipeline, wanted)
        return wanted

    def _refuse_approvals(self, stage: Stage, pipeline: Pipeline, permissions: str) -> None:
        if permissions != READ_ONLY:
            refuse_approvals(stage, pipeline, self.adapter.name, f", or agent_permissions={READ_ONLY}")

    def _model(self, stage: Stage, pipeline: Pipeline) -> dict[str, str]:
        fault, hint = agent_fault(self.adapter.name, stage, pipeline)
        if fault:
            raise InputError(f"{fault}.", hint=hint)
        model = stage.text("llm_model") or pipeline.text("llm_model")
        if model.startswith("-"):
            raise InputError(f"stage {stage.id!r}: the model {model[:40]!r} looks like an option.")
        effort = stage.text("reasoning_effort") or pipeline.text("reasoning_effort")
        return {"model": model.removeprefix(f"{self.adapter.provider}/"), "effort": effort}

    def _prices(self, stage: Stage, pipeline: Pipeline) -> Prices | None:
        """Raises InputError if the cost has a limit, and would not be known."""
        if self.adapter.reports_cost:
            return None
        model = self._model(stage, pipeline)["model"]
        prices = Providers().prices_of(model) if model else None
        if prices is None and pipeline.text("budget_usd"):
            what = f"the model {model!r} has no prices" if model else "it names no model"
            raise InputError(
                f"stage {stage.id!r} runs the agent {self.adapter.name}, which does not report its cost, and "
                f"{what}: budget_usd cannot be kept.",
                hint="Set llm_model and its prices in the file of HOLDFAST_MODELS, or remove budget_usd.",
            )
        return prices

    def problems(self, pipeline: Pipeline, stages: Iterable[Stage]) -> Mapping[str, HoldfastError]:
        """The stages that it cannot do here, and why: checked before anything runs."""
        found: dict[str, HoldfastError] = {}
        for stage in stages:
            try:
                self._refuse_approvals(stage, pipeline, wanted_permissions(stage, pipeline))
                self._prices(stage, pipeline)
                self._model(stage, pipeline)
                if not shutil.which(self.adapter.program):
                    raise missing_error([self.backend_name])
            except HoldfastError as error:
                found[stage.id] = error
        return found

    # ------------------------------------------------------------------ what came of it
    def _reply(
        self,
        asking: PromptRequest,
        ended: Mapping[str, Any],
        report: AgentReport,
        said: Sequence[Message] = (),
    ) -> BackendReply:
        failed, kind = self._failure(asking.visit, ended, report)
        return BackendReply(
            text=report.text,
            messages=(*said, Message("user", asking.prompt), Message("assistant", report.text)),
            model=f"{self.backend_name}/{report.model}",
            status=ended.get("status"),
            fault=str(ended.get("fault", "")),
            structured=report.structured,
            failed=failed,
            kind=kind,
            session=report.session,
        )

    def _failure(self, visit: StageVisit, ended: Mapping[str, Any], report: AgentReport) -> tuple[str, str]:
        """(why it is no success, its class), or two empty texts."""
        why, code, name = ended["why"], ended["code"], self.adapter.name
        if ended.get("assumed"):
            return "", ""
        if why == "timeout":
            limit = visit.stage.text("timeout")
            return f"timeout: {name} took longer than {limit} and was stopped", TRANSIENT
        if why == "idle":
            return f"{name} was silent for {idle_of(visit):g} seconds and was stopped", TRANSIENT
        if why == "output":
            return f"{name} wrote more than {detached_commands.MAX_STREAM:,} bytes and was stopped", ""
        if why:
            return f"{name} was started, but its result is unknown", ""
        if report.ended and not report.failed and code == 0:
            return "", ""
        lines = str(ended["stderr"]).strip().splitlines()
        last = lines[-1] if lines else ""
        text = report.failed or last
        kind = failure_kind(self.adapter, report, code, f"{report.failed}\n{ended['stderr'][-4000:]}")
        shown = f": {text[:_LAST]}" if text else ""
        if report.failed:
            return f"{name} reports an error{shown}", kind
        if report.ended:
            return f"{name} ended with exit code {code}{shown}", kind
        return f"{name} ended without its last event, with exit code {code}{shown}", kind


_taken: WeakKeyDictionary[Context, int] = WeakKeyDictionary()


async def _take_messages(visit: StageVisit) -> list[dict[str, str]]:
    """Messages of people to this stage, recorded before the agent gets them."""
    ctx = visit.ctx
    number = _taken[ctx] = _taken.get(ctx, 0) + 1
    key, taker = f"steer.{number}", f"{ctx.scope}{ctx.node}/agent"
    if ctx.recorded(key) is None and not await ctx.steering.waiting(taker, place_of(ctx)):
        return []

    async def take() -> list[dict[str, str]]:
        return [
            {"id": each.id, "text": each.text, "by": each.by}
            for each in await ctx.steering.take(taker, place_of(ctx))
        ]

    return await ctx.step("steer", take, effect="read", key=key)


def wanted_permissions(stage: Stage, pipeline: Pipeline) -> str:
    """Raises InputError if it is no permission, or more than the operator allows."""
    wanted = stage.text("agent_permissions") or pipeline.text("agent_permissions") or DEFAULT
    allowed = os.environ.get(VARIABLE) or DEFAULT
    for word, where in ((wanted, f"stage {stage.id!r}: agent_permissions"), (allowed, VARIABLE)):
        if word not in PERMISSIONS:
            raise InputError(f"{where} is {word!r}.", hint=f"Use one of {', '.join(PERMISSIONS)}.")
    if PERMISSIONS.index(wanted) > PERMISSIONS.index(allowed):
        raise InputError(
            f"stage {stage.id!r} asks for agent_permissions={wanted}, and this worker allows {allowed}.",
            hint=f"Set {VARIABLE}={wanted} on the worker, or change the pipeline.",
        )
    return wanted


def installed_agents() -> list[str]:
    return [name for name, adapter in ADAPTERS.items() if shutil.which(adapter.program)]
