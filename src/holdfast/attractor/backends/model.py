"""A model endpoint as a backend: each answer and each tool call is recorded, so that nothing is asked twice
after a crash.

A model reports the verdict on its stage in a JSON block at the end of its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from holdfast.agents.agent import Agent
from holdfast.agents.model import Model
from holdfast.agents.model_http import require_library
from holdfast.agents.tools import Tool, as_tool
from holdfast.attractor.backends.base import BackendAnswer, BackendReply, PromptRequest, missing_error
from holdfast.attractor.backends.tools import KITS, SHELL, check_kits, wanted_kits
from holdfast.attractor.conversations import history_of
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.tool import environment
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.providers import Providers
from holdfast.attractor.required_access import require_allowed
from holdfast.attractor.tool_hooks import POST, PRE, Hooks, command_of
from holdfast.attractor.verdict import instruction
from holdfast.errors import HoldfastError, InputError, SettingsError
from holdfast.frontends.dot.document import Pipeline, Stage


def instructions(asking: PromptRequest, *, files: bool) -> str:
    """The system message: the stage, and how to report its verdict."""
    visit = asking.visit
    text = f"You do one stage of a pipeline, {visit.stage.label}. Do what the prompt asks; report on it."
    return f"{text}\n\n{instruction(visit, files=files)}" if asking.verdict else text


NAME = "model"
ModelOf = Callable[[Stage, Pipeline], Model]


class ModelBackend:
    """`providers` select the model of each stage; `model` is one for all stages. `kits`: the built-in tools
    that a model may use, "shell" and "files"; none, unless they are named here or in the settings.
    `tools`: your functions."""

    reserves = True

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
        self._max_turns = max_turns or self.providers.settings.max_turns

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
        """The number of the stage, else of the graph, else of the settings."""
        of_graph = visit.pipeline.integer("max_turns", self._max_turns)
        return max(1, visit.stage.integer("max_turns", of_graph))

    async def answer(self, visit: StageVisit, prompt: str) -> BackendAnswer:
        reply = await self.converse(PromptRequest(visit=visit, prompt=prompt, equipped=False))
        return reply if isinstance(reply, StageOutcome) else reply.text

    async def converse(self, asking: PromptRequest) -> BackendReply | StageOutcome:
        visit = asking.visit
        model = self._model or self._model_for(visit)
        tools = self._equipped(asking)
        agent = Agent(
            visit.stage.id,
            model=model,
            instructions=_plain(instructions(asking, files=any(each.name == SHELL for each in tools))),
            tools=tools,
            max_turns=self._turns(visit),
        )
        history = history_of(asking.turns, model=model.name, tools=bool(tools))
        result = await agent.run(visit.ctx, asking.whole, history=history, thread=asking.thread)
        text = str(result.value)
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

    def _equipped(self, asking: PromptRequest) -> list[Tool]:
        """If commands of a document may not run, its prompts get no tools, and its hooks are refused."""
        visit = asking.visit
        if not asking.equipped:
            return []
        refused = asking.refuses(visit) if asking.refuses is not None else ""
        kits = [] if refused else wanted_kits(visit.stage, visit.pipeline, self.kits)
        found = [*self._tools, *(each for kit in kits for each in KITS[kit](visit))]
        if not found:
            return []
        if refused and (command_of(visit, PRE) or command_of(visit, POST)):
            require_allowed(visit)
            raise InputError(f"stage {visit.stage.id!r} has tool hooks: {refused}")
        hooks = Hooks(visit, environment(visit))
        return [hooks.around(each) for each in found]

    def problems(self, pipeline: Pipeline, stages: Iterable[Stage]) -> Mapping[str, HoldfastError]:
        """The stages that no provider here can answer, and why: checked before anything runs."""
        if self._model is not None:
            return {}
        found: dict[str, HoldfastError] = {}
        for stage in stages:
            try:
                self.providers.model_for(stage, pipeline)
                require_library()
            except HoldfastError as error:
                found[stage.id] = error
        return found


def _plain(text: str) -> str:
    """Labels are not templates."""
    return text.replace("{{", "{ {")
