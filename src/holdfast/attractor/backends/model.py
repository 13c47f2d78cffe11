"""A model endpoint as a backend: each answer and each tool call is recorded, so that nothing is asked twice
after a crash.

A model reports the verdict on its stage in a JSON block at the end of its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.agents.agent import Agent, Preface
from holdfast.agents.catalogue import find_model
from holdfast.agents.coding.kit import with_approvals
from holdfast.agents.coding.prompt import coding_prompt
from holdfast.agents.model import Model
from holdfast.agents.model_call import provider_of as model_provider
from holdfast.agents.model_http import require_library
from holdfast.agents.tools import Tool, as_tool
from holdfast.attractor.backends.base import BackendAnswer, BackendReply, PromptRequest, missing_error
from holdfast.attractor.backends.tools import (
    CODING,
    KITS,
    SHELL,
    approvals_of,
    asks_for_tools,
    check_kits,
    family_of,
    require_tools,
    wanted_kits,
    workdir_of,
)
from holdfast.attractor.command_run import environment
from holdfast.attractor.conversations import history_of
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.machine_requirements import require_allowed
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.providers import Providers
from holdfast.attractor.stage_effects import with_mark
from holdfast.attractor.tool_hooks import POST, PRE, Hooks, command_of
from holdfast.attractor.verdict_instruction import instruction
from holdfast.errors import HoldfastError, InputError, SettingsError
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.schema_rules import schema_of_stage
from holdfast.runs.context.context import Context


def instructions(asking: PromptRequest, *, files: bool) -> str:
    """The system message: the stage, and how to report its verdict."""
    visit = asking.visit
    if visit.stage.text("output_schema"):
        # The whole answer has that form, a verdict in it too.
        return f"You do one stage of a pipeline, {visit.stage.label}. Do what the prompt asks."
    text = f"You do one stage of a pipeline, {visit.stage.label}. Do what the prompt asks; report on it."
    return f"{text}\n\n{instruction(visit, files=files)}" if asking.verdict else text


NAME = "model"
ModelOf = Callable[[Stage, Pipeline], Model]


class ModelBackend:
    """`providers` select the model of each stage; `model` is one for all stages. `kits`: the built-in tools
    that a model may use, "shell", "files" and "coding"; none, unless they are named here or in the settings.
    `tools`: your functions."""

    reserves = True
    keeps_approvals = True
    steerable = True

    def __init__(
        self,
        providers: Providers | None = None,
        *,
        model: Model | None = None,
        kits: Sequence[str] | None = None,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        max_turns: int | None = None,
    ) -> None:
        self.providers = providers or Providers()
        self._model = model
        self.kits = tuple(self.providers.settings.tools if kits is None else kits)
        check_kits(self.kits)
        self._tools = tuple(as_tool(each) for each in tools)
        self._max_turns = self.providers.settings.max_turns if max_turns is None else max_turns

    @property
    def selects(self) -> bool:
        """Whether the providers select the model of each stage."""
        return self._model is None

    @property
    def backend_name(self) -> str:
        """Of a single model, where it was made: other processes have to be given the same."""
        kind = type(self._model)
        return NAME if self.selects else f"function:{kind.__module__}.{kind.__qualname__}"

    def _turns(self, visit: StageVisit) -> int:
        """The number of the stage, else of the graph, else of the settings; 0 for any number."""
        of_graph = visit.pipeline.integer("max_turns", self._max_turns)
        return max(0, visit.stage.integer("max_turns", of_graph))

    async def answer(self, visit: StageVisit, prompt: str) -> BackendAnswer:
        reply = await self.converse(PromptRequest(visit=visit, prompt=prompt, equipped=False))
        return reply if isinstance(reply, StageOutcome) else reply.text

    async def converse(self, asking: PromptRequest) -> BackendReply | StageOutcome:
        visit = asking.visit
        model = self._model or self._model_for(visit)
        family = self._family(visit, model)
        kits, tools = self._equipped(asking, family)
        schema = schema_of_stage(visit.stage)
        agent = Agent(
            visit.stage.id,
            model=model,
            instructions=_plain(instructions(asking, files=any(each.name == SHELL for each in tools))),
            tools=tools,
            returns=schema,
            max_repairs=2 if schema is None else 1,
            max_turns=self._turns(visit),
            preface=_preface(visit, family, model, tools) if CODING in kits else None,
            detect_loops=True,
            window=window_of(family, model.name, visit.ctx.now()),
            steerable=asking.equipped,
        )
        history = history_of(asking.turns, model=model.name, tools=bool(tools))
        result = await agent.run(visit.ctx, asking.whole, history=history, thread=asking.thread)
        text = str(result.value) if schema is None else msgspec.json.encode(result.value).decode()
        if result.stopped:
            visit.ctx.emit(f"the answer of {visit.stage.id} was cut at its limit ({result.stopped})", "log")
        new = [m for m in result.messages if m.role != "system"][len(history) :]
        return BackendReply(text=text, messages=tuple(new), model=model.name, cut=result.stopped)

    def _model_for(self, visit: StageVisit) -> Model:
        """Raises RequirementsMissingError if the provider of the stage is not, or no longer, usable here."""
        try:
            return self.providers.model_for(visit.stage, visit.pipeline)
        except SettingsError as error:
            provider = self.providers.choice_for(visit.stage, visit.pipeline).provider
            if provider and not self.providers.is_usable(provider):
                raise missing_error([f"provider:{provider}"], error) from error
            raise

    def _family(self, visit: StageVisit, model: Model) -> str:
        choice = self.providers.choice_for(visit.stage, visit.pipeline) if self.selects else None
        return family_of(model_provider(model) if choice is None else choice.provider, model.name)

    def _equipped(self, asking: PromptRequest, family: str) -> tuple[list[str], list[Tool]]:
        """(the kits, all tools): if commands of a document may not run, its prompts get no tools, and its
        hooks are refused."""
        visit = asking.visit
        if not asking.equipped:
            return [], []
        require_tools(visit.stage, visit.pipeline, self.kits)
        refused = asking.refuses(visit) if asking.refuses is not None else ""
        kits = wanted_kits(visit.stage, visit.pipeline, self.kits)
        if refused and kits and asks_for_tools(visit.stage, visit.pipeline):
            # An answer without the tools that were asked for would be another one.
            require_allowed(visit)
        kits = [] if refused else kits
        own = {each.name for each in self._tools}
        found = [each for kit in kits for each in KITS[kit](visit, family) if each.name not in own]
        found = with_approvals([*self._tools, *found], approvals_of(visit))
        if not found:
            return [], []
        if refused and (command_of(visit, PRE) or command_of(visit, POST)):
            require_allowed(visit)
            raise InputError(f"stage {visit.stage.id!r} has tool hooks: {refused}")
        hooks = Hooks(visit, environment(visit))
        # Inside the hooks: a call that a hook refuses has no effect.
        return kits, [hooks.around(with_mark(visit, each)) for each in found]

    def problems(self, pipeline: Pipeline, stages: Iterable[Stage]) -> Mapping[str, HoldfastError]:
        """The stages that no provider here can answer, and why: checked before anything runs."""
        if self._model is not None:
            return {}
        found: dict[str, HoldfastError] = {}
        for stage in stages:
            try:
                self.providers.model_for(stage, pipeline)
                require_library()
                require_tools(stage, pipeline, self.kits)
            except HoldfastError as error:
                found[stage.id] = error
        return found


def window_of(family: str, model: str, now: int) -> int | None:
    """From the catalogue; None for a model that it does not have."""
    known = find_model(family, model, datetime.fromtimestamp(now / 1e6, UTC))
    return None if known is None else known.context_window


def _preface(visit: StageVisit, family: str, model: Model, tools: Sequence[Tool]) -> Preface:
    async def preface(ctx: Context) -> str:
        root = workdir_of(visit)
        return await coding_prompt(root, family=family, model=model.name, tools=tools, now=ctx.now())

    return preface


def _plain(text: str) -> str:
    """Labels are not templates."""
    return text.replace("{{", "{ {")
